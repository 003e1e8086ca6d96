"""Numbers of the model as inputs of a function: inertial parameters of bodies, a load, gravity."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ..derivatives.directional.model_change import node_inertia, pseudo_inertia
from ..errors import RbdError, shown, unknown_name
from ..model.block import ARMATURE, GRAVITY, LINK, LINK_NODE, LINK_POSITION, LINK_ROTATION, LINK_START, MASS, node
from ..model.inertia import Inertia, combine
from ..model.robot_model import RobotModel
from .functions import Variables
from .program import Symbols

Array = NDArray[np.float64]
ROUNDING = 1e-15    # of inertial parameters that cancel


def named_bodies(model: RobotModel, names: Sequence[str], argument: str) -> list[str]:
    """Checked names of moving bodies, each once."""
    try:
        bodies = list(dict.fromkeys([names] if isinstance(names, str) else names))
    except TypeError:
        raise RbdError(f"{argument}: expected names of bodies, got {shown(names)}") from None
    for body in bodies:
        if body not in model.body_names:
            raise unknown_name("body", body, model.body_names, argument)
        if place(model, body)[0] < 0:
            raise RbdError(f"{argument}: body {shown(body)} is fixed to the world, expected one that moves")
    return bodies


def place(model: RobotModel, body: str) -> tuple[int, Array]:
    """The node of a body, −1 for the world, and its pose in the node's axes (4, 4)."""
    start = int(model._block[LINK_START]) + LINK * model.body_index(body)
    record = model._block[start:start + LINK]
    T = np.eye(4)
    T[:3, :3], T[:3, 3] = record[LINK_ROTATION:LINK_POSITION].reshape(3, 3), record[LINK_POSITION:LINK]
    return int(record[LINK_NODE]), T


def lumped(model: RobotModel) -> RobotModel:
    """The same robot, with the inertias of links that are fixed to another moving one in that of the link behind the
    joint.
    """
    links = dict(model.description.links)
    for joint in model.joints:
        node, T = place(model, joint.child)
        parts = []
        for body in model.body_names:
            at, pose = place(model, body)
            if at == node:
                pose = np.linalg.inv(T) @ pose
                parts.append(links[body].transformed(pose[:3, :3], pose[:3, 3]) if body != joint.child else links[body])
                links[body] = Inertia.zero()
        links[joint.child] = parts[0] if len(parts) == 1 else combine(parts)
    return RobotModel.from_description(replace(model.description, links=links))


def to_node(T: Array) -> Array:
    """(10, 10): the inertial parameters in the node's axes, as of the packed model, from those of a body at T."""
    matrix = np.array([node_inertia(T @ pseudo_inertia(unit) @ T.T) for unit in np.eye(10)]).T
    matrix[np.abs(matrix) < ROUNDING] = 0.0
    return matrix


def model_inputs(model: RobotModel, inertias: Sequence[str] = (), payload: str = "",
                 gravity: bool = False) -> tuple[dict[str, int], Variables | None]:
    """Sizes of the further inputs by name, in their order, and what they do to the packed model; None without any.

    inertias: bodies whose ten inertial parameters are an input `inertias`, in place of the model's; payload: a body
    with a load, whose parameters in the body's frame are added (`payload`); gravity: its acceleration in axes of the
    root link, m/s² (`gravity`, 3). Raises `RbdError` for unknown bodies, and those fixed to the world.
    """
    bodies = named_bodies(model, inertias, "inertias")
    if payload:
        named_bodies(model, [payload], "payload")
    sizes = ({"inertias": 10 * len(bodies)} if bodies else {}) | ({"payload": 10} if payload else {}) | (
        {"gravity": 3} if gravity else {})
    if not sizes:
        return {}, None
    own = {name: x for name, x in zip(model.body_names, model.inertial_parameters.reshape(-1, 10), strict=True)}
    load = [1.0, 0.01, 0.02, 0.03, 0.02, 0.001, 0.03, 0.002, 0.003, 0.04]    # any
    replaced, changed = len(bodies), [*bodies, *([payload] if payload else [])]

    def put(block: Symbols, inputs: Symbols) -> None:
        for k, body in enumerate(changed):
            at, T = place(model, body)
            matrix, record = to_node(T), slice(node(at) + MASS, node(at) + ARMATURE)
            if k < replaced:
                rest, size = block[record] - matrix @ own[body], np.abs(matrix) @ np.abs(own[body])
                block[record] = [0.0 if isinstance(x, float) and abs(x) <= ROUNDING * scale else x
                                 for x, scale in zip(rest, size, strict=True)]
            block[record] = block[record] + matrix @ inputs[10 * k:10 * k + 10]
        if gravity:
            block[GRAVITY:GRAVITY + 3] = inputs[-3:]

    values = [*(own[body] + load for body in bodies), *([load] if payload else [])]
    numbers = np.array(values).reshape(-1)
    return sizes, Variables(np.append(numbers, [0.3, -0.2, -9.7]) if gravity else numbers, put)

