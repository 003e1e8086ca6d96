"""Joint types: how many coordinates, and which chain of kernel nodes each one is.

Constant-S joints and coordinate joints (theory of both: K §2; S_i is `T⁻¹ ∂T/∂q`):

| type | q | v | chain |
|---|---|---|---|
| revolute, continuous | angle (rad) | rate | Rz |
| prismatic | offset (m) | rate | Pz |
| helical | angle (rad); advance `pitch` m/rad | rate | Hz |
| cylindrical | angle, offset | rates | Rz Pz |
| translation | x, y, z | rates, parent axes | Px Py Pz |
| spherical | unit quaternion x, y, z, w | angular velocity, child axes | one node |
| floating | x, y, z, quaternion | twist (ω, v), child axes | one node |
| universal | two angles about axes[0], axes[1] | rates | R R |
| planar | x, y, θ in the plane normal to the axis | rates | Px Py Rz |
| spherical_euler | angles about axes[0..2] (default z, y, x) | rates | R R R |
| spherical_exponential | rotation vector r, R = exp(r) | ṙ | one node with S(q) |
| composite | `parts`: revolute, prismatic and helical steps | rates | as listed |
"""
from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ..errors import RbdError, shown, unknown_name
from . import block
from .inertia import Array, finite, read_only

Z_AXIS = (0.0, 0.0, 1.0)


@dataclass(frozen=True)
class Primitive:
    """One kernel node of a joint: its type, its axis in the joint's frame, its advance per radian (m)."""

    type: int
    axis: tuple[float, float, float] = Z_AXIS
    pitch: float = 0.0

    @property
    def nq(self) -> int:
        return block.NODE_NQ[self.type]

    @property
    def nv(self) -> int:
        return block.NODE_NV[self.type]


@dataclass(frozen=True)
class JointSpec:
    """A joint as declared: between links `parent` and `child`, whose frame is the joint's frame at zero.

    rotation (3, 3), position (3,): pose of the joint's frame in the parent link. Limits are scalars or one per
    coordinate. mimic: (joint, multiplier, offset).
    """

    name: str
    type: str
    parent: str
    child: str
    rotation: Array = field(default_factory=lambda: np.eye(3))
    position: Array = field(default_factory=lambda: np.zeros(3))
    axis: tuple[float, float, float] = (1.0, 0.0, 0.0)
    axes: tuple[tuple[float, float, float], ...] = ()
    parts: tuple[Primitive, ...] = ()
    pitch: float = 0.0
    lower: float | Array | None = None
    upper: float | Array | None = None
    velocity: float | Array | None = None
    effort: float | Array | None = None
    damping: float | Array = 0.0
    friction: float | Array = 0.0
    rotor_inertia: float | Array = 0.0
    mimic: tuple[str, float, float] | None = None


def unit(axis: object, joint: str) -> tuple[float, float, float]:
    """The axis at length one; an axis already within rounding of it is left alone."""
    a = finite(axis, (3,), f"joint '{joint}': axis")
    if np.abs(a).max() > 1e12:
        raise RbdError(f"joint '{joint}': axis {shown(axis)} is far from a unit vector")
    length = float(np.linalg.norm(a))
    if length < 1e-9:
        raise RbdError(f"joint '{joint}': axis {shown(axis)} has length zero")
    if abs(length - 1.0) > 1e-15:
        a = a / length
    return (float(a[0]), float(a[1]), float(a[2]))


def check(spec: JointSpec) -> None:
    """Raise `RbdError` for a placement that is not a pose, or steps that are none."""
    what = f"joint '{spec.name}'"
    finite(spec.position, (3,), f"{what}: position")
    R = finite(spec.rotation, (3, 3), f"{what}: rotation")
    if np.abs(R @ R.T - np.eye(3)).max() > 1e-6 or np.linalg.det(R) < 0.0:
        raise RbdError(f"{what}: rotation is not a rotation matrix")
    finite(spec.pitch, (), f"{what}: pitch")
    for part in spec.parts:
        finite(part.pitch, (), f"{what}: pitch")


def check_quaternions(spec: JointSpec, q: Array) -> None:
    """Raise `RbdError` where positions of this joint hold a quaternion that is not of length one."""
    at = 0
    for step in primitives(spec):
        if step.type in (block.FREE, block.SPHERICAL):
            norm = float(np.linalg.norm(q[at + step.nq - 4:at + step.nq]))
            if abs(norm - 1.0) > 1e-2:
                raise RbdError(f"joint '{spec.name}': the last four of {q} are not a unit quaternion x, y, z, w: "
                               f"its norm is {norm:g}")
        at += step.nq


def per_coordinate(value: object, count: int, default: float, what: str) -> Array:
    """A scalar or sequence as one number per coordinate; only limits can be infinite."""
    if value is None:
        return np.full(count, default)
    limit = what.endswith("limit")
    try:
        array = np.asarray(value, dtype=float)
    except (TypeError, ValueError, OverflowError):
        array = np.full(1, np.nan)
    if array.ndim == 0:
        array = np.full(count, float(array))
    if array.shape != (count,) or np.isnan(array).any() or not (limit or np.isfinite(array).all()):
        raise RbdError(f"{what}: expected one number{f', or {count},' if count > 1 else ''} "
                       f"{'not NaN' if limit else 'finite'}; got {shown(value)}")
    return array


def dissipation(spec: JointSpec, nv: int) -> tuple[Array, Array]:
    """Viscous damping and Coulomb friction (nv,) of a joint; `RbdError` where it would drive itself."""
    found = []
    for name in ("damping", "friction"):
        value = per_coordinate(getattr(spec, name), nv, 0.0, f"joint '{spec.name}': {name}")
        if (value < 0.0).any():
            raise RbdError(f"joint '{spec.name}': {name} is negative")
        found.append(value)
    return found[0], found[1]


def aligning_rotation(axis: tuple[float, float, float]) -> Array:
    """A rotation whose third column is `axis`; exact permutations for the coordinate axes."""
    a = np.asarray(axis, dtype=float)
    k = int(np.argmax(np.abs(a)))
    if np.count_nonzero(a) == 1:
        sign = np.sign(a[k])
        R = np.zeros((3, 3))
        if k == 2:
            R[0, 0], R[1, 1], R[2, 2] = 1.0, sign, sign
            return R
        R[k, 2] = sign                   # z → ± axis, x → next axis, y completes
        R[(k + 1) % 3, 0] = 1.0
        R[:, 1] = np.cross(R[:, 2], R[:, 0])
        return R
    helper = np.zeros(3)
    helper[int(np.argmin(np.abs(a)))] = 1.0
    x = np.cross(helper, a)
    x /= np.linalg.norm(x)
    return np.stack([x, np.cross(a, x), a], axis=1)


def primitives(spec: JointSpec) -> tuple[Primitive, ...]:
    """The chain of kernel nodes that this joint is; empty for a fixed joint."""
    R, P, H = block.REVOLUTE, block.PRISMATIC, block.HELICAL

    def axes(default: tuple[tuple[float, float, float], ...]) -> list[tuple[float, float, float]]:
        given = spec.axes or default
        if len(given) != len(default):
            raise RbdError(f"joint '{spec.name}': a {spec.type} joint takes {len(default)} axes, got {len(given)}")
        return [unit(a, spec.name) for a in given]

    kind = spec.type
    if kind == "fixed":
        return ()
    if kind in ("revolute", "continuous"):
        return (Primitive(R, unit(spec.axis, spec.name)),)
    if kind == "prismatic":
        return (Primitive(P, unit(spec.axis, spec.name)),)
    if kind == "helical":
        return (Primitive(H, unit(spec.axis, spec.name), float(spec.pitch)),)
    if kind == "cylindrical":
        a = unit(spec.axis, spec.name)
        return (Primitive(R, a), Primitive(P, a))
    if kind == "translation":
        return tuple(Primitive(P, a) for a in ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)))
    if kind == "spherical":
        return (Primitive(block.SPHERICAL),)
    if kind == "spherical_exponential":
        return (Primitive(block.SPHERICAL_EXP),)
    if kind == "floating":
        return (Primitive(block.FREE),)
    if kind == "universal":
        return tuple(Primitive(R, a) for a in axes(((1.0, 0.0, 0.0), (0.0, 1.0, 0.0))))
    if kind == "spherical_euler":
        return tuple(Primitive(R, a) for a in axes((Z_AXIS, (0.0, 1.0, 0.0), (1.0, 0.0, 0.0))))
    if kind == "planar":
        normal = unit(spec.axis, spec.name)
        E = aligning_rotation(normal)
        return (Primitive(P, unit(E[:, 0], spec.name)), Primitive(P, unit(E[:, 1], spec.name)), Primitive(R, normal))
    if kind == "composite":
        if not spec.parts or any(part.type not in (R, P, H) for part in spec.parts):
            raise RbdError(f"joint '{spec.name}': a composite joint needs `parts`, each revolute, prismatic or helical")
        return tuple(Primitive(part.type, unit(part.axis, spec.name), part.pitch) for part in spec.parts)
    raise unknown_name(f"joint type of '{spec.name}'", kind, JOINT_TYPES)


JOINT_TYPES = ("fixed", "revolute", "continuous", "prismatic", "helical", "cylindrical", "translation", "spherical",
               "spherical_exponential", "spherical_euler", "universal", "planar", "floating", "composite")


@dataclass(frozen=True, eq=False)
class Joint:
    """A moving joint of a model: q[idx_q : idx_q + nq], v[idx_v : idx_v + nv]; limits per coordinate."""

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
    """A joint that follows another: `q = multiplier · q_source + offset`."""

    name: str
    source: str
    multiplier: float
    offset: float
