"""The unknowns of identification and their columns: ten numbers per body, and per joint rotor, friction and offset.

`τ = Y π + I_r a + d v + c tanh(v / s) + o`, linear in θ = [π (10·nb), I_r (nv), d (nv), c (nv), o (nv)]. Motors on more
than one joint, if there are any, have three numbers each at the end: all their rotors, then d, then c.
"""
from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..derivatives.regressor import PARAMETERS, inertial_regressor
from ..model.assembly import Description
from ..model.inertia import Inertia
from ..model.joints import primitives
from ..model.robot_model import RobotModel
from .transmission import PER_MOTOR, CoupledMotors

Array = NDArray[np.float64]
INERTIAL = ("m", "mx", "my", "mz", "ixx", "ixy", "iyy", "ixz", "iyz", "izz")
PER_JOINT = ("rotor", "viscous", "coulomb", "offset")
AT_ONCE = 4000    # states


def parameter_names(model: RobotModel, motors: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Names of θ: `m(link)`, `ixy(link)`, …, `rotor(joint)`, `viscous(joint)`, `coulomb(joint)`, `offset(joint)`, and
    `rotor(motor name)`, … of motors on more than one joint.
    """
    return (*(f"{kind}({body})" for body in model.body_names for kind in INERTIAL),
            *(f"{kind}({joint})" for kind in PER_JOINT for joint in model.velocity_names),
            *(f"{kind}(motor {motor})" for kind in PER_MOTOR for motor in motors))


def columns_of(model: RobotModel, what: str) -> slice:
    """Columns of θ of "inertial", "rotor", "viscous", "coulomb" or "offset"."""
    bodies, nv = PARAMETERS * len(model.body_names), model.nv
    if what == "inertial":
        return slice(0, bodies)
    first = bodies + nv * PER_JOINT.index(what)
    return slice(first, first + nv)


def motor_columns(model: RobotModel, count: int, what: str) -> slice:
    """Columns of θ of "rotor", "viscous" or "coulomb" of `count` motors on more than one joint."""
    first = PARAMETERS * len(model.body_names) + len(PER_JOINT) * model.nv + count * PER_MOTOR.index(what)
    return slice(first, first + count)


def full_regressor(model: RobotModel, q: Array, v: Array, a: Array, slip: Array,
                   motors: CoupledMotors | None = None) -> Array:
    """∂τ/∂θ, (N, nv, 10·nb + 4·nv + 3·k); slip (N, nv + k): `tanh(v / s)` of Coulomb friction, of the joints, then of
    the motors.
    """
    n, nv, bodies = len(q), model.nv, PARAMETERS * len(model.body_names)
    end = bodies + len(PER_JOINT) * nv
    out = np.zeros((n, nv, end + (0 if motors is None else motors.parameters.size)))
    if motors is not None:
        out[..., end:] = motors.regressor(v, a, slip[:, nv:])
        slip = slip[:, :nv]
    for part in (slice(k, min(k + AT_ONCE, n)) for k in range(0, n, AT_ONCE)):
        out[part, :, :bodies] = inertial_regressor(model, q[part], v[part], a[part])
    joints = np.arange(nv)
    for kind, column in zip(PER_JOINT, (a, v, slip, np.ones_like(v)), strict=True):
        out[:, joints, columns_of(model, kind).start + joints] = column
    return out


def felt_rotors(model: RobotModel) -> Array:
    """Rotor inertia reflected to each velocity coordinate (nv,), including those of mimic joints."""
    return model.armature + follower_rotors(model)


def follower_rotors(model: RobotModel) -> Array:
    """Rotor inertia of mimic joints reflected to their source joints (nv,), by the square of the ratio."""
    added = np.zeros(model.nv)
    specs = {spec.name: spec for spec in model.description.joints}
    for mimic in model.mimics:
        added[model.joint(mimic.source).idx_v] += mimic.multiplier**2 * float(np.sum(specs[mimic.name].rotor_inertia))
    return added


def parameters_of(model: RobotModel) -> Array:
    """θ of a model, offsets zero."""
    return np.concatenate([model.inertial_parameters, felt_rotors(model), model.damping, model.friction,
                           np.zeros(model.nv)])


def inertia_of(parameters: Array) -> Inertia:
    """A body from its ten parameters about its link's origin."""
    m, c = float(parameters[0]), np.zeros(3)
    if m != 0.0:
        c = parameters[1:4] / m
    xx, xy, yy, xz, yz, zz = parameters[4:]
    about = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    matrix = about - m * (c @ c * np.eye(3) - np.outer(c, c))
    return Inertia(m, c, (matrix + matrix.T) / 2)


def rigid_groups(description: Description) -> dict[str, tuple[str, ...]]:
    """Links rigidly connected by fixed or locked joints, by their topmost link."""
    leader = {name: name for name in description.links}
    fixed = {joint.child: joint.parent for joint in description.joints
             if not primitives(joint) or joint.name in description.locked}
    for name in leader:
        top = name
        while top in fixed:
            top = fixed[top]
        leader[name] = top
    groups: dict[str, list[str]] = {}
    for name, first in leader.items():
        groups.setdefault(first, []).append(name)
    return {first: tuple(names) for first, names in groups.items()}
