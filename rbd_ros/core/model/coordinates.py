"""Joints of a model, values per coordinate (limits, damping, friction), and checks of declared joints."""
from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..errors import RbdError, shown
from .inertia import Array, finite, numbers, read_only
from .joints import JointSpec, primitives


@dataclass(frozen=True, eq=False)
class Joint:
    """A moving joint of a model: q[idx_q : idx_q + nq], v[idx_v : idx_v + nv].

    lower, upper (nq,): rad or m; velocity, effort (nv,): limits; damping, friction (nv,): viscous, Coulomb; SI units.

        >>> rbd.sample("iiwa").joint("joint_2").idx_q
        1
    """

    name: str
    type: str
    parent: str
    child: str
    idx_q: int
    idx_v: int
    nq: int
    nv: int
    lower: Array
    upper: Array
    velocity: Array
    effort: Array
    damping: Array
    friction: Array

    def __post_init__(self) -> None:
        for name in ("lower", "upper", "velocity", "effort", "damping", "friction"):
            object.__setattr__(self, name, read_only(getattr(self, name)))


@dataclass(frozen=True)
class Mimic:
    """A joint that follows another: `q = multiplier · q_source + offset`.

        >>> rbd.Mimic("finger_2", "finger_1", -1.0, 0.0).multiplier
        -1.0
    """

    name: str
    source: str
    multiplier: float
    offset: float


def per_coordinate(value: object, count: int, default: float, what: str) -> Array:
    """A scalar or sequence as an array (count,), one number per coordinate; only limits may be infinite."""
    if value is None:
        return np.full(count, default)
    limit = what.endswith("limit")
    try:
        array = numbers(value)
    except (TypeError, ValueError, OverflowError):
        array = np.full(1, np.nan)
    if array.ndim == 0:
        array = np.full(count, float(array))
    if array.shape != (count,) or np.isnan(array).any() or not (limit or np.isfinite(array).all()):
        raise RbdError(f"{what}: expected one number{f', or {count},' if count > 1 else ''} "
                       f"{'not NaN' if limit else 'finite'}; got {shown(value)}")
    return array


def dissipation(spec: JointSpec, nv: int) -> tuple[Array, Array]:
    """Viscous damping and Coulomb friction (nv,) of a joint; `RbdError` if one is negative."""
    coefficients = []
    for name in ("damping", "friction"):
        value = per_coordinate(getattr(spec, name), nv, 0.0, f"joint '{spec.name}': {name}")
        if (value < 0.0).any():
            raise RbdError(f"joint '{spec.name}': {name} is negative")
        coefficients.append(value)
    return coefficients[0], coefficients[1]


def check(spec: JointSpec) -> None:
    """Raise `RbdError` for a placement that is not a pose, or an invalid pitch."""
    label = f"joint '{spec.name}'"
    finite(spec.position, (3,), f"{label}: position")
    R = finite(spec.rotation, (3, 3), f"{label}: rotation")
    if np.abs(R @ R.T - np.eye(3)).max() > 1e-6 or np.linalg.det(R) < 0.0:
        raise RbdError(f"{label}: rotation is not a rotation matrix")
    finite(spec.pitch, (), f"{label}: pitch")
    for part in spec.parts:
        finite(part.pitch, (), f"{label}: pitch")


def check_quaternions(spec: JointSpec, q: Array) -> None:
    """Raise `RbdError` if the positions q of a joint have a quaternion whose norm differs from one."""
    offset = 0
    for step in primitives(spec):
        if step.kind.quaternion is not None:
            start = offset + step.kind.quaternion
            norm = float(np.linalg.norm(q[start:start + 4]))
            if abs(norm - 1.0) > 1e-2:
                raise RbdError(f"joint '{spec.name}': the last four of {q} are not a unit quaternion x, y, z, w: "
                               f"its norm is {norm:g}")
        offset += step.nq
