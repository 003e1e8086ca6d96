"""The collision shapes of a command's robot, and the obstacles around it."""
from __future__ import annotations

import argparse
from pathlib import Path

from ...core.errors import RbdError
from ...core.model.robot_model import RobotModel
from ...core.motion.collision.clearance import CLEARANCE
from ...core.motion.collision.collision_model import CollisionModel
from ...runtime.planning.robot_collisions import UNAWARE, robot_collisions
from .robot import description_of


def add_collisions(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of collision shapes."""
    parser.add_argument("--obstacles", type=Path, metavar="FILE",
                        help="YAML file of what stands around the robot (docs/collision.md)")
    parser.add_argument("--srdf", type=Path, metavar="FILE",
                        help="its <disable_collisions> are the pairs of links that may touch (default: neighbours, and "
                        "pairs that touch in each of some random configurations)")
    parser.add_argument("--clearance", type=float, default=CLEARANCE, metavar="M",
                        help="smallest distance between links, and to obstacles, m (default: %(default)g)")
    parser.add_argument("--no-collisions", action="store_true", help="do not consider collisions")


def collisions_of(namespace: argparse.Namespace, model: RobotModel,
                  needed: bool = False) -> tuple[CollisionModel | None, str]:
    """The collision model of the robot's shapes and --obstacles, or None, and what to say of it.

    Raises `RbdError` if it cannot be made and is `needed`, or if there are --obstacles.
    """
    if namespace.no_collisions:
        if namespace.obstacles is not None:
            raise RbdError("--obstacles and --no-collisions: expected one of them")
        return None, UNAWARE
    try:
        collisions, without = robot_collisions(description_of(namespace), model, namespace.srdf,
                                               namespace.obstacles)
    except RbdError as error:
        if namespace.obstacles is not None or namespace.srdf is not None:
            raise
        if needed:
            raise RbdError(f"{error}. With --no-collisions it goes on without them") from None
        return None, f"{UNAWARE} ({error})"
    return collisions, (f"collisions: {len(collisions.pairs)} pairs of shapes must keep {namespace.clearance:g} m at "
                        f"all times{without}")
