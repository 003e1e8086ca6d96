"""A load that the robot carries, as parameters that may change while it moves."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..core.errors import RbdError, unknown_name
from ..core.model.payload import FARTHEST, HEAVIEST, payload, with_payloads
from ..core.model.robot_model import RobotModel
from .parameters import Parameter, Table

PAYLOAD_TABLE: Table = (
    Parameter("payload.body", "string", "", "Link that carries a load. Empty: no load."),
    Parameter("payload.mass", "number", 0.0, "Mass of the load, kg.", lower=0.0, upper=HEAVIEST),
    Parameter("payload.com", "numbers", (0.0, 0.0, 0.0), "Its centre of mass in the frame of that link, m.", count=3,
              lower=-FARTHEST, upper=FARTHEST),
    Parameter("payload.inertia", "numbers", (0.0,) * 6, "Its inertia about its centre of mass in the axes of that "
              "link: ixx, iyy, izz, ixy, ixz, iyz, kg m².", count=6, lower=-HEAVIEST * FARTHEST**2,
              upper=HEAVIEST * FARTHEST**2),
)


def loaded(model: RobotModel, values: Mapping[str, Any]) -> RobotModel:
    """The model with the load of these validated values; `RbdError` names the parameter that cannot be."""
    body, mass = values["payload.body"], values["payload.mass"]
    if body and body not in model.body_names:
        raise unknown_name("link in parameter 'payload.body':", body, model.body_names)
    if mass == 0.0:
        return model
    if not body:
        raise RbdError(f"parameter 'payload.mass' is {mass:g} kg, but 'payload.body' names no link that carries it")
    xx, yy, zz, xy, xz, yz = values["payload.inertia"]
    try:
        load = payload(mass, values["payload.com"], np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]))
    except RbdError as error:
        raise RbdError(f"parameters 'payload.…': {error}") from None
    return with_payloads(model, {body: load})
