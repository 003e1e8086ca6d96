"""The model of a node from its parameters: gravity, locked joints, rotors, load, order of joints."""
from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.dynamics.mass_matrix import mass_matrix
from ..core.errors import RbdError, RbdWarning, unknown_name
from ..core.lie.so3 import from_rpy
from ..core.model.files.urdf import load_urdf
from ..core.model.payload import FARTHEST, HEAVIEST, payload, with_payloads
from ..core.model.robot_model import RobotModel
from .parameters import Parameter, Table, per_joint

Array = NDArray[np.float64]
MOST_COORDINATES = 1000    # of a node's robot: the check of its mass matrix takes O(n³)

ROBOT_TABLE: Table = (
    Parameter("gravity", "numbers", (0.0, 0.0, -9.81), "Acceleration of gravity in the axes of the world, m/s²: "
              "those of the root link, unless that is mounted at an angle.", read_only=True, count=3),
    Parameter("mounting.rpy", "numbers", (0.0, 0.0, 0.0), "Roll, pitch and yaw of the root link in the world, about "
              "fixed axes as in URDF, rad: gravity acts accordingly.", lower=-10.0, upper=10.0, read_only=True,
              count=3),
    Parameter("locked.joints", "strings", (), "Joints of the description that do not move and have no state.",
              read_only=True),
    Parameter("locked.positions", "numbers", (0.0,), "Positions at which they are locked: one number, or one per "
              "locked joint; rad or m.", read_only=True, per="locked joint"),
    Parameter("rotor_inertia", "numbers", (-1.0,), "Rotor inertia reflected through the gears, kg m² or kg; -1: as in "
              "the description.", lower=-1.0, upper=1e9, read_only=True),
)
PAYLOAD_TABLE: Table = (
    Parameter("payload.body", "string", "", "Link that carries a load. Empty: no load."),
    Parameter("payload.mass", "number", 0.0, "Mass of the load, kg.", lower=0.0, upper=HEAVIEST),
    Parameter("payload.com", "numbers", (0.0, 0.0, 0.0), "Its centre of mass in the frame of that link, m.", count=3,
              lower=-FARTHEST, upper=FARTHEST),
    Parameter("payload.inertia", "numbers", (0.0,) * 6, "Its inertia about its centre of mass in the axes of that "
              "link: ixx, iyy, izz, ixy, ixz, iyz, kg m².", count=6, lower=-HEAVIEST * FARTHEST**2,
              upper=HEAVIEST * FARTHEST**2),
)


def turned(gravity: Sequence[float], mounting: Array) -> Array:
    """Gravity (3,) in axes of the root link; columns of `mounting` (3, 3): axes of the root link in the world."""
    return np.asarray(gravity) if np.array_equal(mounting, np.eye(3)) else mounting.T @ gravity


def joints_row(lists: str) -> Parameter:
    """Parameter `joints`, the order of the named lists."""
    return Parameter("joints", "strings", (), f"Order of {lists}. Empty: the order of the model, which is logged at "
                     "configuration.", read_only=True)


def joint_order(names: tuple[str, ...], model: RobotModel) -> tuple[tuple[str, ...], NDArray[np.intp],
                                                                     NDArray[np.intp]]:
    """The joint names, without a floating base; the permutation from model order to their order; and its inverse."""
    joints = model.joint_names[1:] if model.description.root == "floating" else model.joint_names
    names = names or joints
    for name in names:
        if name not in joints:
            raise unknown_name("joint in parameter 'joints':", name, joints)
    if sorted(names) != sorted(joints):
        raise RbdError(f"parameter 'joints' must list every joint once: {', '.join(joints)}; "
                       f"got {', '.join(names)}. Joints that do not move belong in 'locked.joints'.")
    output = np.array([joints.index(name) for name in names], dtype=np.intp)
    return tuple(names), output, np.argsort(output)


def load_model(values: Mapping[str, Any], description: str) -> tuple[RobotModel, list[str]]:
    """The model of a URDF text or path with these parameters, and warnings. Raises `RbdError`."""
    gravity, locked = turned(values["gravity"], from_rpy(values["mounting.rpy"])), values["locked.joints"]
    positions = values["locked.positions"]
    if locked and len(positions) not in (1, len(locked)):
        raise RbdError(f"parameter 'locked.positions' has {len(positions)} numbers, expected 1 or {len(locked)}")
    if len(positions) == 1:
        positions = positions * len(locked)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", RbdWarning)
        model = load_urdf(description, gravity=gravity, locked=dict(zip(locked, positions, strict=False)))
    order = joint_order(values["joints"], model)[2]
    rotors = per_joint("rotor_inertia", values["rotor_inertia"], order)
    if (rotors >= 0.0).any() and len(rotors) == model.nv:
        model = model.with_(armature=np.where(rotors < 0.0, model.armature, rotors))
    notes = [str(warning.message) for warning in caught if issubclass(warning.category, RbdWarning)]
    check_model(model)
    return model, notes + _zero_limits(model, values.get("effort_limits.override_zero"))


def _zero_limits(model: RobotModel, override: Sequence[float] | None) -> list[str]:
    """Warnings for effort limits of 0 in the description; without an override a torque node rejects the model."""
    names = [name for name, limit in zip(model.velocity_names, model.effort_limit, strict=True) if limit == 0.0]
    if not names or (override is not None and not np.any(np.asarray(override) > 0.0)):
        return []
    return [f"the robot description limits the effort of {', '.join(names)} to 0; "
            + ("that counts as no limit here" if override is None else "'effort_limits.override_zero' counts instead")]


def check_model(model: RobotModel) -> None:
    """Raise `RbdError`, naming the joint, unless the model has joints of one coordinate and a regular mass matrix."""
    if not 0 < model.nv <= MOST_COORDINATES:
        raise RbdError(f"robot '{model.name}' has {model.nv} degrees of freedom, expected 1 to {MOST_COORDINATES}"
                       if model.nv else f"robot '{model.name}' has no moving joint")
    for joint in model.joints:
        if joint.nq != 1 or joint.nv != 1:
            raise RbdError(f"joint '{joint.name}' is {joint.type} and has {joint.nv} coordinates, but a joint state "
                           "has one position per joint: lock it ('locked.joints') or describe it by single joints")
    for q in (model.neutral(), *(model.random_configuration(seed) for seed in range(3))):
        M = mass_matrix(model, q)
        scale = np.sqrt(np.abs(np.diag(M)))
        bare = np.flatnonzero(scale**2 <= 1e-12 * np.max(scale**2))
        if len(bare):
            raise RbdError(f"joint '{model.velocity_names[bare[-1]]}' moves no mass: the mass matrix is singular. Give "
                           "the links behind it an <inertial>, or the joint a rotor inertia, or lock it "
                           "('locked.joints')")
        values, vectors = np.linalg.eigh(M / np.outer(scale, scale))
        if values[0] <= 1e-12:
            names = [model.velocity_names[i] for i in np.flatnonzero(np.abs(vectors[:, 0]) > 0.1)]
            raise RbdError(f"the mass matrix is singular: joints {', '.join(names)} can move against each other "
                           "without moving any mass. Check the <inertial> of the links between them")


def loaded(model: RobotModel, values: Mapping[str, Any]) -> RobotModel:
    """The model with the load of these validated values; raises `RbdError` naming the invalid parameter."""
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
