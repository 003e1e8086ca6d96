"""`RobotModel`: names, limits, topology, and the packed array of kernels; immutable."""
from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..compiled.kernel import COMPILED
from ..errors import RbdError, shown, unknown_name
from ..compiled.door import Call, door
from ..compiled.workspace import ONE_STATE
from . import block
from .assembly import Assembly, Description, assemble
from .configuration import difference_entry, integrate_entry
from .coordinates import Joint, Mimic, per_coordinate
from .inertia import Array, Inertia, combine, finite, read_only
from .joints import Kind, kind_of
from .state import shaped

_integrate = door("integrate", Call(integrate_entry, "B q dv > =1", lambda model: [(model.nq,)]))
_difference = door("difference", Call(difference_entry, "B q0 q1 > =1", lambda model: [(model.nv,)]))
FARTHEST = 1e15    # rad or m: random configurations ignore larger limits


@dataclass(frozen=True, eq=False, repr=False)
class RobotModel:
    """A tree of rigid bodies: nq position and nv velocity coordinates, in the order of `joints`.

    Made by `load_urdf`, `sample` or `RobotModel.from_description`; all arrays are read-only, changed copies come
    from `with_` and `with_body`. SI units; `gravity` (3,) in world axes.

        >>> model = rbd.sample("two_link")
        >>> model.nq, model.nv, model.body_names
        (2, 2, ('base', 'upper', 'lower', 'tip'))
    """

    name: str
    nq: int
    nv: int
    joints: tuple[Joint, ...]
    mimics: tuple[Mimic, ...]
    body_names: tuple[str, ...]
    gravity: Array
    position_lower: Array
    position_upper: Array
    velocity_limit: Array
    effort_limit: Array
    damping: Array
    friction: Array
    armature: Array
    description: Description = dataclasses.field(repr=False)
    _block: Array = dataclasses.field(repr=False)
    _work: Array = dataclasses.field(init=False, repr=False)    # scratch memory, see `workspace`
    _ways: list[Any] = dataclasses.field(init=False, repr=False)    # see `compiled.door`

    def __post_init__(self) -> None:
        object.__setattr__(self, "_ways", [])
        if COMPILED:
            object.__setattr__(self, "_work", self._new_work())

    def _new_work(self) -> Array:
        count = int(self._block[block.NODES])
        return np.empty(ONE_STATE.size(nodes=count, columns=sum(kind.nv for _, kind in self._kinds), nv=self.nv))

    @classmethod
    def from_description(cls, description: Description) -> RobotModel:
        """Assemble a model; raises `RbdError` naming the error in the tree, a joint or a link."""
        gravity = finite(description.gravity, (3,), "gravity")
        assembly: Assembly = assemble(description)
        joints = tuple(assembly.joints)

        def gather(field: str) -> Array:
            return read_only(np.concatenate([getattr(joint, field) for joint in joints] or [np.zeros(0)]))

        return cls(
            name=description.name, nq=int(assembly.block[block.NQ]), nv=int(assembly.block[block.NV]), joints=joints,
            mimics=tuple(assembly.mimics), body_names=tuple(assembly.link_names), gravity=gravity,
            position_lower=gather("lower"), position_upper=gather("upper"), velocity_limit=gather("velocity"),
            effort_limit=gather("effort"), damping=gather("damping"), friction=gather("friction"),
            armature=read_only(assembly.armature), description=description, _block=assembly.block)

    def __repr__(self) -> str:
        """Name, size, joints and mass."""
        kinds = ", ".join(f"{joint.name} ({joint.type})" for joint in self.joints[:7])
        more = f", … {len(self.joints) - 7} more" if len(self.joints) > 7 else ""
        return (f"RobotModel '{self.name}': nq {self.nq}, nv {self.nv}, {len(self.body_names)} bodies, "
                f"{self.total_mass:.4g} kg\n  joints: {kinds}{more}")

    def __reduce__(self) -> tuple[Any, ...]:
        return RobotModel.from_description, (self.description,)

    @functools.cached_property
    def joint_names(self) -> tuple[str, ...]:
        """Names of the moving, independent joints."""
        return tuple(joint.name for joint in self.joints)

    @functools.cached_property
    def velocity_names(self) -> tuple[str, ...]:
        """A name per velocity coordinate: the joint's, or `joint/k` if the joint has several."""
        return tuple(joint.name if joint.nv == 1 else f"{joint.name}/{k}"
                     for joint in self.joints for k in range(joint.nv))

    @functools.cached_property
    def total_mass(self) -> float:
        """Mass of all links (kg), a fixed base included."""
        return float(sum(inertia.mass for inertia in self.description.links.values()))

    @functools.cached_property
    def inertial_parameters(self) -> Array:
        """Parameters of the regressor (10·nb,): per body m, m c (3), inertia xx, xy, yy, xz, yz, zz about the link's
        origin (kg, kg m, kg m²).
        """
        rows = []
        for name in self.body_names:
            body = self.description.links[name]
            c = np.asarray(body.com)
            J = np.asarray(body.matrix) + body.mass * (c @ c * np.eye(3) - np.outer(c, c))
            rows.append([body.mass, *(body.mass * c), J[0, 0], J[0, 1], J[1, 1], J[0, 2], J[1, 2], J[2, 2]])
        return read_only(np.array(rows).reshape(-1))

    def joint(self, name: str) -> Joint:
        """The joint of this name; `RbdError` lists the valid names."""
        if name not in self._joint_by_name:
            raise unknown_name("joint", name, self.joint_names)
        return self._joint_by_name[name]

    @functools.cached_property
    def _joint_by_name(self) -> dict[str, Joint]:
        return {joint.name: joint for joint in self.joints}

    def body_index(self, name: str) -> int:
        """Position of a body in `body_names`; `RbdError` lists the valid names."""
        if name not in self._body_by_name:
            raise unknown_name("body", name, self.body_names)
        return self._body_by_name[name]

    @functools.cached_property
    def _body_by_name(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self.body_names)}

    def neutral(self) -> Array:
        """Zero positions (nq,), identity quaternions."""
        q = np.zeros(self.nq)
        for offset in self._quaternions:
            q[offset + 3] = 1.0
        return q

    def random_configuration(self, rng: np.random.Generator | int | None = None) -> Array:
        """Positions (nq,) uniform within the limits, quaternions uniform. A coordinate without limits: ±π or ±1 m; with
        a single limit outside of this: up to 2π or 2 m from it.
        """
        rng = np.random.default_rng(rng)
        q = self.neutral()
        for i, (low, high) in enumerate(zip(self.position_lower, self.position_upper, strict=True)):
            reach = 1.0 if self._is_length[i] else np.pi
            if low < -FARTHEST:
                low = -reach if high > -reach else high - 2.0 * reach
            if high > FARTHEST:
                high = reach if low < reach else low + 2.0 * reach
            q[i] = rng.uniform(low, high)
        for offset in self._quaternions:
            x = rng.normal(size=4)
            q[offset:offset + 4] = x / np.linalg.norm(x)
        return q

    @functools.cached_property
    def _node_rows(self) -> Array:
        count = int(self._block[block.NODES])
        return self._block[block.HEADER:block.HEADER + count * block.NODE].reshape(count, block.NODE)

    @functools.cached_property
    def _kinds(self) -> tuple[tuple[Array, Kind], ...]:
        """Record and kind of each node."""
        return tuple((row, kind_of(int(row[block.TYPE]))) for row in self._node_rows)

    @functools.cached_property
    def _quaternions(self) -> tuple[int, ...]:
        return tuple(int(row[block.IQ]) + kind.quaternion for row, kind in self._kinds if kind.quaternion is not None)

    @functools.cached_property
    def _chains(self) -> dict[int, Any]:
        """What `inverse_kinematics` keeps, by link."""
        return {}

    @functools.cached_property
    def _is_length(self) -> NDArray[np.bool_]:
        lengths = np.zeros(self.nq, dtype=bool)
        for row, kind in self._kinds:
            if row[block.OWNER]:
                lengths[[int(row[block.IQ]) + i for i in kind.q_lengths]] = True
        return lengths

    @functools.cached_property
    def _zeros(self) -> Array:
        """(nv,) zeros for kernels; never written to."""
        return np.zeros(self.nv)

    def integrate(self, q: ArrayLike, dv: ArrayLike) -> Array:
        """`q ⊕ dv` (nq,) or (N, nq): move from q along velocity coordinates dv = v·dt, quaternions on the group."""
        if (moved := _integrate(self, q, dv)) is not None:
            return moved    # type: ignore[no-any-return]
        inputs = shaped(self, positions={"q": q}, rates={"dv": dv})
        out = inputs.empty(self.nq)
        if not integrate_entry.call(self._block, *inputs.flat, out.reshape(-1), inputs.count):
            inputs.refuse(q=out)
        return out

    def difference(self, q0: ArrayLike, q1: ArrayLike) -> Array:
        """The dv (nv,) or (N, nv) with `integrate(q0, dv) = q1`; rotation vectors are the shortest."""
        if (dv := _difference(self, q0, q1)) is not None:
            return dv    # type: ignore[no-any-return]
        inputs = shaped(self, positions={"q0": q0, "q1": q1})
        out = inputs.empty(self.nv)
        if not difference_entry.call(self._block, *inputs.flat, out.reshape(-1), inputs.count):
            inputs.refuse(difference=out)
        return out

    def with_(self, *, gravity: Sequence[float] | Array | None = None,
              **coordinates: ArrayLike | Mapping[str, ArrayLike] | None) -> RobotModel:
        """A changed copy: `gravity` (3,), and per velocity coordinate (nv,), one number for all of them, or {joint:
        number or (k,)} for some: `damping`, `friction`, `armature`, `velocity_limit`, `effort_limit`. None: unchanged.
        A floating root has none of these. New damping and friction replace those of mimic joints, too; rotors of mimic
        joints are unchanged. Raises `RbdError` for another field, unknown joints and invalid numbers.
        """
        fields = {"damping": "damping", "friction": "friction", "armature": "rotor_inertia",
                  "velocity_limit": "velocity", "effort_limit": "effort"}
        specs = {spec.name: spec for spec in self.description.joints}
        for name, value in coordinates.items():
            if name not in fields:
                raise unknown_name("model field", name, ["gravity", *fields])
            if value is None:
                continue
            array = (self._by_joint(name, value) if isinstance(value, Mapping) else
                     per_coordinate(value, self.nv, 0.0, name))
            for joint in self.joints:
                if joint.name in specs:
                    part = array[joint.idx_v:joint.idx_v + joint.nv]
                    change: dict[str, Any] = {fields[name]: part}
                    specs[joint.name] = dataclasses.replace(specs[joint.name], **change)
            if name in ("damping", "friction"):
                for mimic in self.mimics:
                    none: dict[str, Any] = {fields[name]: 0.0}
                    specs[mimic.name] = dataclasses.replace(specs[mimic.name], **none)
        description = dataclasses.replace(self.description, joints=tuple(specs.values()))
        if gravity is not None:
            description = dataclasses.replace(description, gravity=tuple(finite(gravity, (3,), "gravity")))
        return RobotModel.from_description(description)

    def _by_joint(self, field: str, values: Mapping[str, ArrayLike]) -> Array:
        """A copy of the field (nv,) with the values of some joints replaced."""
        array = np.array(getattr(self, field))
        for name, value in values.items():
            if name not in self.joint_names:
                raise unknown_name("joint", name, self.joint_names, field)
            joint = self.joint(name)
            array[joint.idx_v:joint.idx_v + joint.nv] = per_coordinate(value, joint.nv, 0.0, f"joint '{name}': {field}")
        return array

    def with_body(self, name: str, *, mass: float | None = None, com: ArrayLike | None = None,
                  inertia: ArrayLike | None = None) -> RobotModel:
        """A copy with other inertial data of link `name` (kg, m, kg m² about the centre of mass, link frame)."""
        self.body_index(name)
        old = self.description.links[name]
        new = Inertia(old.mass if mass is None else float(finite(mass, (), f"body '{name}': mass")),
                      old.com if com is None else finite(com, (3,), f"body '{name}': com"),
                      old.matrix if inertia is None else finite(inertia, (3, 3), f"body '{name}': inertia"))
        links = {**self.description.links, name: new}
        return RobotModel.from_description(dataclasses.replace(self.description, links=links))

    def with_payload(self, body: str, load: Inertia) -> RobotModel:
        """A copy with a load on a link (kg, m, kg m² about the load's centre of mass, link frame)."""
        self.body_index(body)
        if not isinstance(load, Inertia):
            raise RbdError(f"load: expected rbd.Inertia, got {shown(load)}")
        links = {**self.description.links, body: combine([self.description.links[body], load])}
        return RobotModel.from_description(dataclasses.replace(self.description, links=links))

    def with_scaled_masses(self, factor: float) -> RobotModel:
        """A copy with every mass and inertia multiplied by `factor`, a positive number."""
        factor = float(finite(factor, (), "mass factor"))
        if factor <= 0.0:
            raise RbdError(f"mass factor must be positive, got {shown(factor)}")
        links = {name: Inertia(factor * old.mass, old.com, factor * old.matrix)
                 for name, old in self.description.links.items()}
        return RobotModel.from_description(dataclasses.replace(self.description, links=links))


if not COMPILED:    # plain Python: new scratch memory per call
    RobotModel._work = property(RobotModel._new_work)    # type: ignore[assignment]
