"""Inertial parameters of bodies as inputs of functions: which bodies, and where they stand in the packed model."""
from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..errors import RbdError, shown, unknown_name
from ..model.block import (
    ARMATURE, LINK, LINK_NODE, LINK_POSITION, LINK_ROTATION, LINK_START, MASS, node,
)
from ..model.inertia import Array
from ..model.robot_model import RobotModel
from .directional.model_change import node_inertia, pseudo_inertia

ROUNDING = 1e-15    # of inertial parameters that cancel


def moving_bodies(model: RobotModel, names: Sequence[str], argument: str) -> list[str]:
    """Checked names of moving bodies, each once."""
    try:
        bodies = list(dict.fromkeys([names] if isinstance(names, str) else names))
    except TypeError:
        raise RbdError(f"{argument}: expected names of bodies, got {shown(names)}") from None
    for body in bodies:
        if body not in model.body_names:
            raise unknown_name("body", body, model.body_names, argument)
        if node_of(model, body)[0] < 0:
            raise RbdError(f"{argument}: body {shown(body)} is fixed to the world, expected one that moves")
    return bodies


def inertia_map(model: RobotModel, body: str) -> tuple[slice, Array]:
    """Where the packed model has the inertia of the body's node, and the map to it (10, 10) from the body's ten
    `model.inertial_parameters`, in which it is linear.
    """
    at, T = node_of(model, body)
    to_node = np.array([node_inertia(T @ pseudo_inertia(unit) @ T.T) for unit in np.eye(10)]).T
    to_node[np.abs(to_node) < ROUNDING] = 0.0
    return slice(node(at) + MASS, node(at) + ARMATURE), to_node


def node_of(model: RobotModel, body: str) -> tuple[int, Array]:
    """The node of a body, −1 for the world, and its pose in the node's axes (4, 4)."""
    start = int(model._block[LINK_START]) + LINK * model.body_index(body)
    record = model._block[start:start + LINK]
    T = np.eye(4)
    T[:3, :3], T[:3, 3] = record[LINK_ROTATION:LINK_POSITION].reshape(3, 3), record[LINK_POSITION:LINK]
    return int(record[LINK_NODE]), T
