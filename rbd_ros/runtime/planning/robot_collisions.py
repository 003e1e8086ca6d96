"""The collision shapes between which planned motions keep a clearance: the robot's, and obstacles around it."""
from __future__ import annotations

import os
from collections.abc import Iterable
from typing import NamedTuple

from ...core.errors import RbdError
from ...core.model.robot_model import RobotModel
from ...core.motion.collision.collision_model import CollisionModel
from ...core.motion.collision.distance_rows import checked_collisions
from ...core.motion.collision.sampled import sampled_pairs
from .collision_settings import CollisionSettings

CONFIGURATIONS = 500    # for pairs that always touch
MOST_PAIRS = 5000      # of a robot's shapes: time and memory are in proportion
UNAWARE = "collisions are not considered: with itself, the table, or you"


class Considered(NamedTuple):
    """What is kept apart, None if nothing is; what to say of it, and whether that is a warning."""

    collisions: CollisionModel | None
    said: str
    warns: bool = False


def robot_collisions(description: str | os.PathLike[str], model: RobotModel,
                     srdf: str | os.PathLike[str] | None,
                     obstacles: str | os.PathLike[str] | None) -> tuple[CollisionModel, str]:
    """Collision model of the shapes of a description and a file of obstacles, and in words which pairs are left out
    because they always touch: without an SRDF, which names such pairs. Raises `RbdError`.
    """
    collisions = checked_collisions(model, CollisionModel.from_urdf(description, model, srdf))
    if len(collisions.pairs) > MOST_PAIRS:
        raise RbdError(f"'{model.name}' has {len(collisions.pairs)} pairs of shapes that may touch, expected at most "
                       f"{MOST_PAIRS}: simplify them, or leave out pairs by an SRDF")
    always: list[tuple[str, str]] = []
    if not srdf:
        sampled = sampled_pairs(collisions, CONFIGURATIONS)
        always = [pair for pair, reason in zip(sampled.pairs, sampled.reasons, strict=True) if reason == "Always"]
        collisions = collisions.without_pairs(always)
    return collisions.with_obstacles(obstacles) if obstacles else collisions, (
        f", without {', '.join(' – '.join(pair) for pair in always)}, which always touch" if always else "")


def considered(settings: CollisionSettings, description: str, model: RobotModel) -> Considered:
    """What the parameters `collisions.*` ask for; raises `RbdError` if that cannot be made."""
    asked = {name: value for name, value in (
        ("srdf", settings.srdf), ("obstacles", settings.obstacles), ("marker_topic", settings.marker_topic),
        ("scene_topic", settings.scene_topic), ("cloud_topic", settings.cloud_topic), ("show", settings.show)) if value}
    if settings.use_collisions == "never":
        if asked:
            raise RbdError(f"parameter 'collisions.use' is 'never', so {_listed(asked)} are not read: expected them to "
                           "be empty")
        return Considered(None, f"{UNAWARE} (parameter 'collisions.use')")
    try:
        collisions, without = robot_collisions(description, model, settings.srdf or None, settings.obstacles)
    except RbdError as error:
        if settings.use_collisions == "always" or asked:
            raise RbdError(f"parameters 'collisions.…': {error}") from None
        return Considered(None, f"{UNAWARE} ({error})", True)
    return Considered(collisions, f"collisions are considered: {len(collisions.pairs)} pairs of shapes, at least "
                      f"{settings.clearance:g} m apart{without}; and with what comes on ~/obstacles")


def _listed(names: Iterable[str]) -> str:
    return " and ".join(f"'collisions.{name}'" for name in names)
