"""Joint types: coordinates, and the chain of kernel nodes of each type.

Constant-S joints and coordinate joints (theory of both: K §2; S_i is `T⁻¹ ∂T/∂q`):

| type | q | v | chain |
|---|---|---|---|
| revolute, continuous | angle (rad) | rate | Rz |
| prismatic | offset (m) | rate | Pz |
| helical | angle (rad); advance `pitch` m/rad | rate | Hz |
| cam | angle (rad); advance a polynomial of it | rate | one node with S(q) |
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

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from ..errors import RbdError, shown, unknown_name
from ..lie import so3
from .inertia import Array, finite
from .joint_kinds import CAM, FREE, HELICAL, PRISMATIC, REVOLUTE, SPHERICAL, SPHERICAL_EXP

Axis = tuple[float, float, float]
X_AXIS, Y_AXIS, Z_AXIS = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)


class Kind(NamedTuple):
    """A kind of kernel node: numbers of coordinates, indices of lengths among them, index of the quaternion's first
    position; screw: `T = exp(S x)` of one coordinate; varies: S depends on q.
    """

    name: str
    nq: int
    nv: int
    q_lengths: tuple[int, ...] = ()
    v_lengths: tuple[int, ...] = ()
    quaternion: int | None = None
    screw: bool = False
    varies: bool = False

    @property
    def free(self) -> bool:
        return self.nv == 6


KINDS = {
    REVOLUTE: Kind("revolute", 1, 1, screw=True),
    PRISMATIC: Kind("prismatic", 1, 1, (0,), (0,), screw=True),
    HELICAL: Kind("helical", 1, 1, screw=True),
    SPHERICAL: Kind("spherical", 4, 3, quaternion=0),
    SPHERICAL_EXP: Kind("spherical_exponential", 3, 3, varies=True),
    FREE: Kind("floating", 7, 6, (0, 1, 2), (3, 4, 5), quaternion=3),
    CAM: Kind("cam", 1, 1, varies=True)}


def kind_of(number: int) -> Kind:
    """The kind with a number of `KINDS`; `RbdError` lists the valid numbers."""
    if number not in KINDS:
        raise RbdError(f"a step of kind {shown(number)}, expected one of "
                       + ", ".join(f"{known} ({kind.name})" for known, kind in KINDS.items()))
    return KINDS[number]


@dataclass(frozen=True)
class Primitive:
    """One kernel node of a joint: type (a key of `KINDS`), axis in the joint's frame, pitch (m/rad), and for a cam
    the advance (m) as coefficients of a polynomial of the angle.

        >>> rbd.JointSpec("hinge", "revolute", "base", "rod").parts
        ()
    """

    type: int
    axis: Axis = Z_AXIS
    pitch: float = 0.0
    advance: tuple[float, ...] = ()

    @property
    def kind(self) -> Kind:
        return kind_of(self.type)

    @property
    def nq(self) -> int:
        return self.kind.nq

    @property
    def nv(self) -> int:
        return self.kind.nv

    def screw(self) -> Array:
        """S (6,) of a screw, per unit of its coordinate, in the joint's frame: angular, then linear."""
        turned, slid = {REVOLUTE: (1.0, 0.0), PRISMATIC: (0.0, 1.0), HELICAL: (1.0, self.pitch)}[self.type]
        axis = np.asarray(self.axis)
        return np.concatenate([turned * axis, slid * axis])

    def pose(self, q: Array) -> tuple[Array, Array]:
        """Pose (R, p) at the positions q (nq,), in the joint's frame."""
        if self.kind.screw:
            S = self.screw()
            return so3.exp(S[:3] * q[0]), S[3:] * q[0]
        if self.type == CAM:
            axis = np.asarray(self.axis)
            return so3.exp(axis * q[0]), axis * np.polynomial.polynomial.polyval(q[0], self.advance)
        if self.type == FREE:
            return so3.from_quaternion(q[3:7]), q[:3]
        if self.type == SPHERICAL:
            return so3.from_quaternion(q), np.zeros(3)
        if self.type == SPHERICAL_EXP:
            return so3.exp(q), np.zeros(3)
        raise RbdError(f"Primitive.pose has no branch for a step of kind '{self.kind.name}'")


@dataclass(frozen=True)
class JointSpec:
    """A declared joint between links `parent` and `child`; the child's frame is the joint's frame at zero position.

    rotation (3, 3), position (3,): pose of the joint's frame in the parent link. Limits are scalars or one per
    coordinate, in SI units. mimic: (joint, multiplier, offset). pitch: of a helical joint, m/rad. advance: of a cam,
    coefficients of the powers 0, 1, 2, … of the angle, in m, m/rad, m/rad², ….

        >>> hinge = rbd.JointSpec("hinge", "revolute", "base", "rod", axis=(0.0, 1.0, 0.0), effort=10.0)
        >>> hinge.type, hinge.axis
        ('revolute', (0.0, 1.0, 0.0))
    """

    name: str
    type: str
    parent: str
    child: str
    rotation: Array = field(default_factory=lambda: np.eye(3))
    position: Array = field(default_factory=lambda: np.zeros(3))
    axis: Axis = X_AXIS
    axes: tuple[Axis, ...] = ()
    parts: tuple[Primitive, ...] = ()
    pitch: float = 0.0
    advance: tuple[float, ...] = ()
    lower: float | Array | None = None
    upper: float | Array | None = None
    velocity: float | Array | None = None
    effort: float | Array | None = None
    damping: float | Array = 0.0
    friction: float | Array = 0.0
    rotor_inertia: float | Array = 0.0
    mimic: tuple[str, float, float] | None = None


def unit(axis: object, joint: str) -> Axis:
    """The axis normalised, unless its length is one within rounding; `RbdError` for a zero or huge axis."""
    a = finite(axis, (3,), f"joint '{joint}': axis")
    if np.abs(a).max() > 1e12:
        raise RbdError(f"joint '{joint}': axis {shown(axis)} is far from a unit vector")
    length = float(np.linalg.norm(a))
    if length < 1e-9:
        raise RbdError(f"joint '{joint}': axis {shown(axis)} has length zero")
    if abs(length - 1.0) > 1e-15:
        a = a / length
    return (float(a[0]), float(a[1]), float(a[2]))


def aligning_rotation(axis: Axis) -> Array:
    """A rotation with third column `axis`, smooth in the axis while its largest component is the same; exact
    permutations for the coordinate axes.
    """
    a = np.asarray(axis, dtype=float)
    x = np.cross(_helper(a), a)
    x /= np.linalg.norm(x)
    return np.stack([x, np.cross(a, x), a], axis=1) + 0.0    # no zero is negative


def aligning_turn(axis: Axis, change: Array) -> Array:
    """∂E Eᵀ as an angular velocity (3,), for E = `aligning_rotation` of the unit axis and `change` (3,) = ∂axis."""
    size = float(np.linalg.norm(axis))
    a = np.asarray(axis, dtype=float) / size
    rate = (change - a * (a @ change)) / size
    helper, y = _helper(a), aligning_rotation((a[0], a[1], a[2]))[:, 1]
    return np.asarray(np.cross(a, rate) + a * (np.cross(helper, rate) @ y) / np.linalg.norm(np.cross(helper, a)))


def _helper(a: Array) -> Array:
    """The coordinate axis cyclically before that of a's largest component, with the component's sign."""
    k = int(np.argmax(np.abs(a)))
    helper = np.zeros(3)
    helper[(k + 2) % 3] = np.sign(a[k])
    return helper


def _one_coordinate(kind: int) -> Callable[[JointSpec], tuple[Primitive, ...]]:
    return lambda spec: (Primitive(kind, unit(spec.axis, spec.name), float(spec.pitch) if kind == HELICAL else 0.0),)


def _cam(spec: JointSpec) -> tuple[Primitive, ...]:
    coefficients = finite(spec.advance, (np.size(spec.advance),), f"joint '{spec.name}': advance")
    if coefficients.size < 2:
        raise RbdError(f"joint '{spec.name}': a cam needs `advance`, two or more coefficients of a polynomial of its "
                       f"angle, got {shown(spec.advance)}")
    return (Primitive(CAM, unit(spec.axis, spec.name), advance=tuple(coefficients.tolist())),)


def _turns(*default: Axis) -> Callable[[JointSpec], tuple[Primitive, ...]]:
    """Revolute steps about the joint's `axes`, by default about `default`."""
    def chain(spec: JointSpec) -> tuple[Primitive, ...]:
        axes = spec.axes or default
        if len(axes) != len(default):
            raise RbdError(f"joint '{spec.name}': a {spec.type} joint takes {len(default)} axes, got {len(axes)}")
        return tuple(Primitive(REVOLUTE, unit(a, spec.name)) for a in axes)
    return chain


def _cylindrical(spec: JointSpec) -> tuple[Primitive, ...]:
    axis = unit(spec.axis, spec.name)
    return (Primitive(REVOLUTE, axis), Primitive(PRISMATIC, axis))


def _planar(spec: JointSpec) -> tuple[Primitive, ...]:
    normal = unit(spec.axis, spec.name)
    E = aligning_rotation(normal)
    return (*(Primitive(PRISMATIC, unit(E[:, c], spec.name)) for c in range(2)), Primitive(REVOLUTE, normal))


def _composite(spec: JointSpec) -> tuple[Primitive, ...]:
    if not spec.parts or any(part.type in KINDS and not part.kind.screw for part in spec.parts):
        raise RbdError(f"joint '{spec.name}': a composite joint needs `parts`, each revolute, prismatic or helical")
    return tuple(Primitive(part.type, unit(part.axis, spec.name), part.pitch) for part in spec.parts)


class JointType(NamedTuple):
    """A declared type: its chain of kernel nodes; urdf: the elements of URDF read beside origin and links (None: not a
    type of URDF); ends: has position limits in URDF; length: its one coordinate is a length.
    """

    chain: Callable[[JointSpec], tuple[Primitive, ...]]
    urdf: tuple[str, ...] | None = None
    ends: bool = True
    length: bool = False


PARTS = ("axis", "limit", "dynamics", "mimic")
TYPES = {
    "fixed": JointType(lambda spec: (), ()),
    "revolute": JointType(_one_coordinate(REVOLUTE), PARTS),
    "continuous": JointType(_one_coordinate(REVOLUTE), PARTS, ends=False),
    "prismatic": JointType(_one_coordinate(PRISMATIC), PARTS, length=True),
    "helical": JointType(_one_coordinate(HELICAL)),
    "cam": JointType(_cam),
    "cylindrical": JointType(_cylindrical),
    "translation": JointType(lambda spec: tuple(Primitive(PRISMATIC, axis) for axis in (X_AXIS, Y_AXIS, Z_AXIS))),
    "spherical": JointType(lambda spec: (Primitive(SPHERICAL),)),
    "spherical_exponential": JointType(lambda spec: (Primitive(SPHERICAL_EXP),)),
    "spherical_euler": JointType(_turns(Z_AXIS, Y_AXIS, X_AXIS)),
    "universal": JointType(_turns(X_AXIS, Y_AXIS)),
    "planar": JointType(_planar, ("axis", "dynamics")),
    "floating": JointType(lambda spec: (Primitive(FREE),), ()),
    "composite": JointType(_composite)}
JOINT_TYPES = tuple(TYPES)
URDF_TYPES = tuple(name for name, joint in TYPES.items() if joint.urdf is not None)


def primitives(spec: JointSpec) -> tuple[Primitive, ...]:
    """The joint's chain of kernel nodes; empty for a fixed joint. `RbdError` for an unknown type."""
    if spec.type not in TYPES:
        raise unknown_name(f"joint type of '{spec.name}'", spec.type, JOINT_TYPES)
    chain = TYPES[spec.type].chain(spec)
    for step in chain:
        try:
            kind_of(step.type)
        except RbdError as error:
            raise RbdError(f"joint '{spec.name}': {error}") from None
    return chain


def reads(type: str, part: str) -> bool:
    """Whether the URDF element `part` is read for joints of this type."""
    joint = TYPES.get(type)
    return joint is not None and part in (joint.urdf or ())


def is_driven(type: str) -> bool:
    """Whether the type has one axis, limits and a motor in URDF: revolute, continuous, prismatic."""
    return reads(type, "limit")


def has_ends(type: str) -> bool:
    """Whether the type is driven and has position limits in URDF: revolute, prismatic."""
    return is_driven(type) and TYPES[type].ends


def is_endless(type: str) -> bool:
    """Whether the type is driven and without position limits: continuous."""
    return is_driven(type) and not TYPES[type].ends


def is_length(type: str) -> bool:
    """Whether the type's one coordinate is a length."""
    return type in TYPES and TYPES[type].length


def is_loose(type: str) -> bool:
    """Whether the type moves and has no motor in URDF: floating, planar."""
    return type in URDF_TYPES and type != "fixed" and not is_driven(type)
