"""Declared constraints `f(q) = 0` on a model's coordinates: loops, couplings, contacts, and users' functions.

Declarations have names only; `ConstraintSet.bound` looks these up in a model and packs the set for the kernels of
`dynamics.constrained.rows`, which compute f, its Jacobian A (m, nv) and Ȧq̇ (K §3; M a + b = τ + Aᵀλ).
"""
from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import RbdError, shown, unknown_name
from .checks.frames import Frame, frame_pose
from .constraint_block import Bound, ContactRows, coupling_record, pose_record, user_record
from .inertia import Array, finite
from .robot_model import RobotModel
from .surfaces.contacts import Contact, RollingContact, SlidingContact

AXES = ("rx", "ry", "rz", "x", "y", "z")
CUT_JOINTS: dict[str, tuple[str, ...]] = {
    "fixed": AXES, "revolute": ("rx", "ry", "x", "y", "z"), "prismatic": ("rx", "ry", "rz", "x", "y"),
    "cylindrical": ("rx", "ry", "x", "y"), "universal": ("rz", "x", "y", "z"), "spherical": ("x", "y", "z"),
    "planar": ("rx", "ry", "z")}


@dataclass(frozen=True, eq=False)
class LoopClosure:
    """A cut joint that closes a loop between the links `predecessor` and `successor` ("world": the world, or the
    model's link of this name).

    axes: the constrained ones of rx, ry, rz, x, y, z of the joint's frame on the predecessor, or the name of a joint
    (`CUT_JOINTS`; their free axis is z). predecessor_frame, successor_frame: the joint's frame on either link, which
    coincide except in the free axes; each as in `frame_pose`.

    f, with R, p the pose of the successor's frame in the predecessor's: translations are the components of p (m).
    Rotations are 2 sin(θ/2) u (no unit) of the misalignment angle θ and axis u: with three constrained axes, those of
    R; with two, of the shortest rotation that aligns the free axes of both frames. One constrained axis makes a
    universal joint, f the cosine of an angle: of rx, ry, rz in cyclic order the axis after the constrained one is
    the predecessor's, the other the successor's, and they stay perpendicular (at θ + π as well: a planar loop closed
    with one rotation closes in two ways). A = ∂f/∂q and Ȧq̇ are exact anywhere, and singular at θ = π. On the
    manifold A is the geometric Jacobian, and the multipliers are the moment (N m) and the force (N) on the successor
    at its frame's origin, in axes of the predecessor's frame (of a universal joint: about the normal of both axes).
    Redundant axes are allowed (a planar loop closed in 3-D) if they agree to 1e-8; of axes that are parallel to a few
    digits only, declare just those that the mechanism needs.

        >>> held = rbd.ConstraintSet([rbd.LoopClosure("base", "tip", axes=["x", "z"])])
        >>> rbd.constraint_jacobian(rbd.sample("two_link"), held, [0.3, 0.5]).shape
        (2, 2)
    """

    predecessor: str
    successor: str
    axes: Sequence[str] | str = AXES
    predecessor_frame: Frame = None
    successor_frame: Frame = None
    name: str = ""

    def __post_init__(self) -> None:
        axes = self.axes
        if isinstance(axes, str):
            if axes not in CUT_JOINTS:
                raise unknown_name("cut joint", axes, [*CUT_JOINTS, f"or any of {', '.join(AXES)} in a list"])
            axes = CUT_JOINTS[axes]
        for axis in axes:
            if axis not in AXES:
                raise unknown_name("constrained axis", axis, AXES)
        if not axes or len(set(axes)) != len(axes):
            raise RbdError(f"axes: expected some of {', '.join(AXES)}, each once, got {shown(self.axes)}")
        object.__setattr__(self, "axes", tuple(axis for axis in AXES if axis in axes))
        for end in ("predecessor", "successor"):
            pose = frame_pose(getattr(self, f"{end}_frame"), f"{end}_frame of '{self.name or self.successor}'")
            object.__setattr__(self, f"{end}_frame", pose)

    def rows(self) -> tuple[str, ...]:
        """A name per row."""
        return tuple(self.axes)

    def record(self, model: RobotModel, row: int, user: int) -> list[float]:
        """This constraint for the kernels, its first row at `row`."""
        return pose_record(model, row, self.predecessor, np.asarray(self.predecessor_frame), self.successor,
                           np.asarray(self.successor_frame), [axis in self.axes for axis in AXES])


@dataclass(frozen=True, eq=False)
class FixedContact:
    """A link held by the world: at a point (x, y, z; kind "point") or with a whole surface (kind "surface": 6 axes).

    frame: on the link; world: its prescribed pose in the world; each as in `frame_pose`. The multipliers are the
    force (N) and moment (N m) of the world on the link, in axes of `world`. `anchored` sets `world` to the present
    pose of `frame`.

        >>> foot = rbd.ConstraintSet([rbd.FixedContact("tip", kind="point")])
        >>> rbd.constraint_jacobian(rbd.sample("two_link"), foot, [0.3, 0.5]).shape
        (3, 2)
    """

    link: str
    frame: Frame = None
    kind: str = "surface"
    world: Frame = None
    name: str = ""

    def __post_init__(self) -> None:
        if self.kind not in ("point", "surface"):
            raise unknown_name("kind of contact", self.kind, ("point", "surface"))
        for field in ("frame", "world"):
            object.__setattr__(self, field, frame_pose(getattr(self, field), f"{field} of '{self.name or self.link}'"))

    def rows(self) -> tuple[str, ...]:
        """A name per row."""
        return AXES if self.kind == "surface" else CUT_JOINTS["spherical"]

    def record(self, model: RobotModel, row: int, user: int) -> list[float]:
        """This constraint for the kernels, its first row at `row`."""
        return pose_record(model, row, None, np.asarray(self.world), self.link, np.asarray(self.frame),
                           [axis in self.rows() for axis in AXES])


@dataclass(frozen=True, eq=False)
class JointCoupling:
    """Coupled joints, as by gears: `Σ_i P_i(q_i) = constant` over joints of one coordinate, or coordinates `joint/k`.

    terms: per name the factor of q_i (rad or m), or the coefficients of q_i, q_i², q_i³, … of a polynomial. Mimic
    joints may be named. The multiplier times P_i' is the effort on joint i.

        >>> gears = rbd.ConstraintSet([rbd.JointCoupling({"shoulder": 1.0, "elbow": -2.0}, name="gears")])
        >>> rbd.constraint_values(rbd.sample("two_link"), gears, [1.0, 0.5])
        array([0.])
    """

    terms: Mapping[str, float | Sequence[float]]
    constant: float = 0.0
    name: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.terms, Mapping) or not self.terms:
            raise RbdError(f"terms of a joint coupling: expected {{joint: factor}}, got {shown(self.terms)}")
        checked = {}
        for joint, value in self.terms.items():
            try:
                array = np.atleast_1d(np.asarray(value, dtype=float))
            except (TypeError, ValueError, OverflowError):
                array = np.zeros(0)
            if array.ndim != 1 or not array.size or not np.isfinite(array).all():
                raise RbdError(f"joint coupling: '{joint}' expects a number, or those of q, q², …; got {shown(value)}")
            checked[joint] = tuple(array.tolist())
        object.__setattr__(self, "terms", checked)
        object.__setattr__(self, "constant", float(finite(self.constant, (), "constant of a joint coupling")))

    def rows(self) -> tuple[str, ...]:
        """A name per row."""
        return ("coupling",)

    def record(self, model: RobotModel, row: int, user: int) -> list[float]:
        """This constraint for the kernels, its first row at `row`."""
        return coupling_record(model, row, self.terms, self.constant)    # type: ignore[arg-type]


class _Functions:
    """Base class of constraints given by functions."""
    A: Callable[[Array], ArrayLike]
    gamma: Callable[[Array, Array], ArrayLike]
    size: int
    name: str

    def __post_init__(self) -> None:
        if not all(callable(getattr(self, part, len)) for part in ("f", "A", "gamma")):    # len: no f
            raise RbdError("user constraint: f, A and gamma must be functions")
        if isinstance(self.size, bool) or not isinstance(self.size, int) or self.size < 1:
            raise RbdError(f"user constraint: size is {shown(self.size)}, expected the number of its rows")

    def rows(self) -> tuple[str, ...]:
        """A name per row."""
        return tuple(f"{i}" for i in range(self.size))

    def record(self, model: RobotModel, row: int, user: int) -> list[float]:
        """The packed record, its first row at `row`, its values at row `user` of those computed per state."""
        return user_record(model, row, self.size, user)

    def value(self, q: Array) -> ArrayLike:
        return np.zeros(self.size)

    def values(self, q: Array, v: Array) -> Array:
        """A, Ȧq̇ and f side by side: (size, nv + 2)."""
        out = np.empty((self.size, len(v) + 2))
        for label, value, columns in (("A(q)", self.A(q), slice(0, -2)), ("gamma(q, v)", self.gamma(q, v), -2),
                                      ("f(q)", self.value(q), -1)):
            shape, array = out[:, columns].shape, np.asarray(value, dtype=float)
            if array.ndim < len(shape) and array.size == out[:, columns].size:
                array = array.reshape(shape)
            if array.shape != shape or not np.isfinite(array).all():
                raise RbdError(f"user constraint '{self.name}': {label} gave shape {np.shape(value)}, "
                               f"expected finite numbers of shape {shape}")
            out[:, columns] = array
        return out


@dataclass(frozen=True, eq=False)
class UserConstraint(_Functions):
    """Any holonomic constraint of `size` rows: `f(q)` (size,), `A(q)` (size, nv) = ∂f/∂q on the velocity space, and
    `gamma(q, v)` (size,) = Ȧq̇. The functions take one state; slower than the other constraints.

        >>> same = rbd.UserConstraint(lambda q: [q[0] - q[1]], lambda q: [[1.0, -1.0]], lambda q, v: [0.0])
        >>> rbd.constraint_values(rbd.sample("two_link"), rbd.ConstraintSet([same]), [0.5, 0.2]).round(3)
        array([0.3])
    """

    f: Callable[[Array], ArrayLike]
    A: Callable[[Array], ArrayLike]
    gamma: Callable[[Array, Array], ArrayLike]
    size: int = 1
    name: str = ""

    def value(self, q: Array) -> ArrayLike:
        return self.f(q)


@dataclass(frozen=True, eq=False)
class NonholonomicConstraint(_Functions):
    """`A(q) v = 0` (size rows) that restricts velocities, not positions: blades, wheels, rolling (K eq. 55).

    `A(q)` (size, nv), `gamma(q, v)` (size,) = Ȧq̇. No f(q) has A as derivative: its rows of `constraint_values` are 0,
    `project` changes velocities for it, not positions, and `baumgarte` damps A v. The functions take one state.

        >>> same = rbd.ConstraintSet([rbd.NonholonomicConstraint(lambda q: [[1.0, -1.0]], lambda q, v: [0.0])])
        >>> rbd.constraint_jacobian(rbd.sample("two_link"), same, [0.3, 0.5])
        array([[ 1., -1.]])
    """

    A: Callable[[Array], ArrayLike]
    gamma: Callable[[Array, Array], ArrayLike]
    size: int = 1
    name: str = ""


Constraint: TypeAlias = (LoopClosure | FixedContact | RollingContact | SlidingContact | JointCoupling | UserConstraint
                         | NonholonomicConstraint)
_KINDS = {LoopClosure: "loop", FixedContact: "contact", RollingContact: "rolling", SlidingContact: "sliding",
          JointCoupling: "coupling", UserConstraint: "user", NonholonomicConstraint: "nonholonomic"}
_CONTACTS = (RollingContact, SlidingContact)


LOOKS = 8


class ConstraintSet:
    """Constraints by name, m = `size` rows in order of declaration; `rows`: the slice of rows (multipliers) of each.

        >>> gears = rbd.ConstraintSet([rbd.JointCoupling({"shoulder": 1.0, "elbow": -2.0}, name="gears")])
        >>> gears.size, rbd.constraint_values(rbd.sample("two_link"), gears, [1.0, 0.5])
        (1, array([0.]))
    """

    def __init__(self, constraints: Iterable[Constraint] = ()) -> None:
        if not isinstance(constraints, Iterable):
            raise RbdError(f"constraints: expected a list of them, got {type(constraints).__name__}")
        named: dict[str, Constraint] = {}
        for i, constraint in enumerate(constraints):
            if type(constraint) not in _KINDS:
                valid = ("a constraint: what lets go is for Simulator(contacts=[…])" if isinstance(constraint, Contact)
                         else f"one of {', '.join(kind.__name__ for kind in _KINDS)}")
                raise RbdError(f"constraint {i} is {type(constraint).__name__}, expected {valid}")
            name = constraint.name or f"{_KINDS[type(constraint)]}_{i}"
            if name in named:
                raise RbdError(f"duplicate constraint name '{name}'")
            named[name] = constraint
        self._named = named
        self.constraints = tuple(named.values())
        self.names = tuple(named)
        sizes = np.cumsum([0, *(len(constraint.rows()) for constraint in self.constraints)]).tolist()
        self.size: int = sizes[-1]
        self.rows = {name: slice(a, b) for name, a, b in zip(self.names, sizes[:-1], sizes[1:], strict=True)}
        self.row_names = tuple(f"{name}/{row}" for name, item in named.items() for row in item.rows())
        self.holonomic: NDArray[np.bool_] = np.array([    # (m,): rows that restrict positions, too
            held for item in self.constraints for held in getattr(
                item, "holonomic_rows", [not isinstance(item, NonholonomicConstraint)] * len(item.rows()))], dtype=bool)
        self._bound: Bound | None = None
        self.unseen = LOOKS    # further calls of constrained dynamics that check states: see `warn_of_gap`

    @property
    def labels(self) -> tuple[str, ...]:
        """A name per row in results: as `row_names`, but the constraint's name alone if it has one row."""
        return tuple(label for name, item in self._named.items()
                     for label in ([name] if len(item.rows()) == 1 else [f"{name}/{row}" for row in item.rows()]))

    def __repr__(self) -> str:
        return f"ConstraintSet({', '.join(self.names)}: {self.size} rows)"

    def __getitem__(self, name: str) -> Constraint:
        if name not in self._named:
            raise unknown_name("constraint", name, self.names)
        return self._named[name]

    def bound(self, model: RobotModel) -> Bound:
        """The packed form for `model`; `RbdError` names a link or joint that the model lacks."""
        bound = self._bound
        if bound is None or bound.model is not model:
            users = tuple(item for item in self.constraints if isinstance(item, _Functions))
            contact_rows = [row for name, item in self._named.items() if isinstance(item, _CONTACTS)
                            for row in range(self.size)[self.rows[name]]]
            contact_row, user = 0, len(contact_rows)    # rows of the values computed per state: contacts first
            records: list[float] = []
            computed: list[float] = []
            contacts: dict[str, list[float]] = {}
            for name, item in self._named.items():
                start = self.rows[name].start
                try:
                    if isinstance(item, _CONTACTS):
                        contacts[name] = item.contact_record(model, contact_row)
                        computed += user_record(model, start, len(item.rows()), contact_row)
                        contact_row += len(item.rows())
                    else:
                        records += item.record(model, start, user)
                        user += item.size if isinstance(item, _Functions) else 0
                except RbdError as error:
                    raise RbdError(f"constraint '{name}': {error}") from None
            head = [float(self.size), float(len(self.constraints))]
            bound = self._bound = Bound(model, self.size, np.array(head + records + computed), users, self.holonomic,
                                        ContactRows(contacts, contact_rows))
        return bound


def bound_to(model: RobotModel, constraints: ConstraintSet) -> Bound:
    """`constraints.bound(model)`; `RbdError` unless `constraints` is a `ConstraintSet`."""
    if not isinstance(constraints, ConstraintSet):
        raise RbdError(f"constraints: expected a ConstraintSet, got {type(constraints).__name__}")
    return constraints.bound(model)
