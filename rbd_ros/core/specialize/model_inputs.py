"""Numbers of the model as inputs of a function: inertial parameters of bodies, a load, gravity."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..derivatives.variable_inertias import ROUNDING, inertia_map, moving_bodies, node_of
from ..model.block import GRAVITY
from ..model.inertia import Inertia, combine
from ..model.robot_model import RobotModel
from .functions import Variables
from .program import Symbols

Array = NDArray[np.float64]


def lumped(model: RobotModel) -> RobotModel:
    """The same robot, with the inertias of links that are fixed to another moving one in that of the link behind the
    joint.
    """
    links = dict(model.description.links)
    for joint in model.joints:
        node, T = node_of(model, joint.child)
        parts = []
        for body in model.body_names:
            at, pose = node_of(model, body)
            if at == node:
                pose = np.linalg.inv(T) @ pose
                parts.append(links[body].transformed(pose[:3, :3], pose[:3, 3]) if body != joint.child else links[body])
                links[body] = Inertia.zero()
        links[joint.child] = parts[0] if len(parts) == 1 else combine(parts)
    return RobotModel.from_description(replace(model.description, links=links))


class ModelInputs(NamedTuple):
    """Inputs of a function after the state: their sizes by name, in order; what they change in the packed model, None
    without any; the bodies of `inertias`; the body of `payload`, "" without.
    """

    sizes: dict[str, int]
    variables: Variables | None
    bodies: tuple[str, ...]
    payload: str

    def example(self, model: RobotModel, rng: np.random.Generator) -> tuple[dict[str, np.ndarray], RobotModel]:
        """Random values, and the model that has them."""
        def loaded(body: str) -> tuple[RobotModel, np.ndarray]:
            load = Inertia(rng.uniform(0.5, 2.0), rng.uniform(-0.1, 0.1, 3), np.diag(rng.uniform(0.02, 0.03, 3)))
            changed = model.with_payload(body, load)
            return changed, changed.inertial_parameters - model.inertial_parameters

        values = {}
        for body in self.bodies:
            model = loaded(body)[0]
        if self.bodies:
            own = dict(zip(model.body_names, model.inertial_parameters.reshape(-1, 10), strict=True))
            values["inertias"] = np.concatenate([own[body] for body in self.bodies])
        if self.payload:
            model, change = loaded(self.payload)
            values["payload"] = change.reshape(-1, 10)[model.body_index(self.payload)]
        if "gravity" in self.sizes:
            values["gravity"] = rng.normal(size=3)
            model = model.with_(gravity=values["gravity"])
        return values, model


def model_inputs(model: RobotModel, inertias: Sequence[str] = (), payload: str = "",
                 gravity: bool = False) -> ModelInputs:
    """The inputs of a function after the state.

    inertias: bodies whose ten inertial parameters are an input `inertias`, in place of the model's; payload: a body
    with a load, whose parameters in the body's frame are added (`payload`); gravity: its acceleration in axes of the
    root link, m/s² (`gravity`, 3). Raises `RbdError` for unknown bodies, and those fixed to the world.
    """
    bodies = tuple(moving_bodies(model, inertias, "inertias"))
    if payload:
        moving_bodies(model, [payload], "payload")
    sizes = ({"inertias": 10 * len(bodies)} if bodies else {}) | ({"payload": 10} if payload else {}) | (
        {"gravity": 3} if gravity else {})
    if not sizes:
        return ModelInputs({}, None, bodies, payload)
    own = {name: x for name, x in zip(model.body_names, model.inertial_parameters.reshape(-1, 10), strict=True)}
    load = [1.0, 0.01, 0.02, 0.03, 0.02, 0.001, 0.03, 0.002, 0.003, 0.04]    # any
    replaced, changed = len(bodies), [*bodies, *([payload] if payload else [])]

    def put(block: Symbols, inputs: Symbols) -> None:
        for k, body in enumerate(changed):
            record, matrix = inertia_map(model, body)
            if k < replaced:
                rest, size = block[record] - matrix @ own[body], np.abs(matrix) @ np.abs(own[body])
                block[record] = [0.0 if isinstance(x, float) and abs(x) <= ROUNDING * scale else x
                                 for x, scale in zip(rest, size, strict=True)]
            block[record] = block[record] + matrix @ inputs[10 * k:10 * k + 10]
        if gravity:
            block[GRAVITY:GRAVITY + 3] = inputs[-3:]

    values = [*(own[body] + load for body in bodies), *([load] if payload else [])]
    numbers = np.array(values).reshape(-1)
    variables = Variables(np.append(numbers, [0.3, -0.2, -9.7]) if gravity else numbers, put)
    return ModelInputs(sizes, variables, bodies, payload)

