"""Assembly of declared links and joints into the packed array: topology, lumping, alignment, mimic joints."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from ..errors import RbdError, unknown_name
from . import block
from .coordinates import Joint, Mimic, check, check_quaternions, dissipation, per_coordinate
from .inertia import Array, Inertia, combine, finite
from .joints import JointSpec, aligning_rotation, primitives
from .mimics import resolve_mimics, with_followers

ROOT_JOINT = "root_joint"
WORLD = "world"


@dataclass(frozen=True)
class Description:
    """The parts of a model: links (name → inertia), joints, and how to interpret them.

        >>> links = {"world": rbd.Inertia.zero(), "ball": rbd.Inertia(1.0, np.zeros(3), np.eye(3))}
        >>> thrown = rbd.Description("ball", links, (rbd.JointSpec("free", "floating", "world", "ball"),))
        >>> rbd.RobotModel.from_description(thrown).nv
        6
    """

    name: str
    links: Mapping[str, Inertia]
    joints: tuple[JointSpec, ...]
    root: str = "fixed"
    gravity: Sequence[float] | Array = (0.0, 0.0, -9.81)
    locked: Mapping[str, float | Sequence[float]] = field(default_factory=dict)
    mimic: str = "project"
    urdf: str | bytes = field(default="", repr=False)    # its source, for the `<collision>` shapes


@dataclass
class Assembly:
    """Assembled model: joints in tree order, the node of each link (−1: world), and the packed array."""

    joints: list[Joint]
    mimics: list[Mimic]
    link_names: list[str]
    link_nodes: list[int]
    armature: Array
    block: Array


def depth_first(description: Description) -> tuple[str, list[JointSpec]]:
    """The root link and the joints with every parent before its children, in declared order otherwise."""
    links = description.links
    if not links:
        raise RbdError(f"model '{description.name}': no links")
    names: set[str] = set()
    above: dict[str, JointSpec] = {}
    below: dict[str, list[JointSpec]] = {name: [] for name in links}
    for joint in description.joints:
        if joint.name in names:
            raise RbdError(f"duplicate joint name '{joint.name}'")
        names.add(joint.name)
        check(joint)
        for end, link in (("parent", joint.parent), ("child", joint.child)):
            if link not in links:
                raise unknown_name(f"{end} link", link, links, f"joint '{joint.name}'")
        if joint.child in above:
            raise RbdError(f"link '{joint.child}' has two parent joints: '{above[joint.child].name}' and "
                           f"'{joint.name}'; a closed loop needs a cut joint declared as a constraint")
        above[joint.child] = joint
        below[joint.parent].append(joint)
    roots = [name for name in links if name not in above]
    if not roots:
        raise RbdError(f"model '{description.name}': the joints form a cycle, so no link is the root")
    if len(roots) > 1:
        raise RbdError(f"model '{description.name}': the tree is disconnected, {len(roots)} links have no parent "
                       "joint: " + ", ".join(roots[:8]))
    order: list[JointSpec] = []
    stack = list(reversed(below[roots[0]]))
    while stack:
        joint = stack.pop()
        order.append(joint)
        stack.extend(reversed(below[joint.child]))
    if len(order) != len(description.joints):
        connected = {joint.name for joint in order}
        unconnected = [joint.name for joint in description.joints if joint.name not in connected]
        raise RbdError(f"model '{description.name}': joints in a cycle, not connected to root link '{roots[0]}': "
                       + ", ".join(unconnected[:8]))
    return roots[0], order


def assemble(description: Description) -> Assembly:
    """Build the packed array of `block.py` and the tables beside it."""
    return _Assembler(description).run()


class _Assembler:
    def __init__(self, description: Description) -> None:
        self.description = description
        self.root, self.order = depth_first(description)
        if description.root == "floating" and any(joint.name == ROOT_JOINT for joint in self.order):
            raise RbdError(f"joint '{ROOT_JOINT}': with a floating root this name is the root's own; rename the joint")
        if description.root not in ("fixed", "floating"):
            raise RbdError(f"root is '{description.root}', expected 'fixed' or 'floating'")
        if description.mimic not in ("project", "independent"):
            raise RbdError(f"mimic is '{description.mimic}', expected 'project' or 'independent'")
        self.mimics = resolve_mimics(self.order) if description.mimic == "project" else {}
        self.locked = self._locked()
        self.place: dict[str, tuple[int, Array, Array]] = {}
        self.rows: list[Array] = []
        self.curves: list[tuple[Array, tuple[float, ...]]] = []
        self.parts: list[list[Inertia]] = []
        self.joints: list[Joint] = []
        self.armature: list[float] = []
        self.nq = self.nv = 0
        self.pending: list[tuple[int, Mimic]] = []

    def _locked(self) -> dict[str, Array]:
        names = {joint.name: joint for joint in self.order}
        locked: dict[str, Array] = {}
        for name, value in self.description.locked.items():
            if name not in names:
                raise unknown_name("locked joint", name, names)
            count = sum(p.nq for p in primitives(names[name]))
            if not count:
                raise RbdError(f"locked joint '{name}' is fixed: it has no position")
            position = finite([value] if np.ndim(value) == 0 else value, (count,),    # type: ignore[arg-type]
                              f"locked joint '{name}'")
            check_quaternions(names[name], position)
            if name in self.mimics:
                raise RbdError(f"locked joint '{name}' mimics '{self.mimics[name].source}': lock that joint instead")
            locked[name] = position
        for mimic in list(self.mimics.values()):
            if mimic.source in locked:
                locked[mimic.name] = mimic.multiplier * locked[mimic.source] + mimic.offset
            elif mimic.multiplier == 0.0:
                locked[mimic.name] = np.array([mimic.offset])
            else:
                continue
            del self.mimics[mimic.name]
        return locked

    def run(self) -> Assembly:
        eye, zero = np.eye(3), np.zeros(3)
        if self.description.root == "floating":
            self._append(JointSpec(ROOT_JOINT, "floating", WORLD, self.root), -1, eye, zero)
        else:
            self.place[self.root] = (-1, eye, zero)
        for spec in self.order:
            node, R, p = self.place[spec.parent]
            self._append(spec, node, R @ spec.rotation, R @ spec.position + p)
        index = {joint.name: joint for joint in self.joints}
        for row, mimic in self.pending:
            self.rows[row][block.IQ] = index[mimic.source].idx_q
            self.rows[row][block.IV] = index[mimic.source].idx_v
        for name, inertia in self.description.links.items():
            node, R, p = self.place[name]
            if node >= 0 and not inertia.is_zero:
                self.parts[node].append(inertia.transformed(R, p))
        for record, parts in zip(self.rows, self.parts, strict=True):
            self._store_inertia(record, parts)
        names = list(self.description.links)
        joints = with_followers(self.joints, self.mimics.values(), {joint.name: joint for joint in self.order})
        return Assembly(joints, list(self.mimics.values()), names, [self.place[name][0] for name in names],
                        np.array(self.armature), self._pack(names))

    def _append(self, spec: JointSpec, node: int, R: Array, p: Array) -> None:
        """Append the joint's nodes below `node`, the joint's frame at (R, p) in it, and place the child link."""
        chain = primitives(spec)
        if spec.name in self.locked:
            offset = 0
            for step in chain:
                Rs, ps = step.pose(self.locked[spec.name][offset:offset + step.nq])
                R, p = R @ Rs, R @ ps + p
                offset += step.nq
            chain = ()
        if not chain:
            self.place[spec.child] = (node, R, p)
            return
        mimic = self.mimics.get(spec.name)
        nv = sum(step.nv for step in chain)
        rotor = per_coordinate(spec.rotor_inertia, nv, 0.0, f"joint '{spec.name}': rotor_inertia")
        if (rotor < 0.0).any():
            raise RbdError(f"joint '{spec.name}': rotor_inertia is negative")
        first_q, first_v = self.nq, self.nv
        offset = 0
        for step in chain:
            A = aligning_rotation(step.axis) if step.nv == 1 else np.eye(3)
            row = np.zeros(block.NODE)
            row[block.PARENT], row[block.TYPE], row[block.PITCH] = node, step.type, step.pitch
            if step.advance:
                self.curves.append((row, step.advance))
            row[block.ROTATION:block.ROTATION + 9] = (R @ A).ravel()
            row[block.POSITION:block.POSITION + 3] = p
            row[block.RATIO] = mimic.multiplier if mimic else 1.0
            row[block.OFFSET] = mimic.offset if mimic else 0.0
            row[block.OWNER] = 0.0 if mimic else 1.0
            row[block.IQ], row[block.IV] = self.nq, self.nv
            row[block.ARMATURE:block.ARMATURE + step.nv] = rotor[offset:offset + step.nv] * row[block.RATIO] ** 2
            if mimic:
                self.pending.append((len(self.rows), mimic))
            else:
                self.nq += step.nq
                self.nv += step.nv
            offset += step.nv
            node = len(self.rows)
            self.rows.append(row)
            self.parts.append([])
            R, p = A.T, np.zeros(3)
        self.place[spec.child] = (node, R, p)
        if mimic is None:
            self.armature.extend(rotor)
            self.joints.append(_joint(spec, first_q, first_v, self.nq - first_q, nv))

    @staticmethod
    def _store_inertia(row: Array, parts: list[Inertia]) -> None:
        total = combine(parts) if parts else Inertia.zero()
        row[block.MASS] = total.mass
        row[block.MOMENT:block.MOMENT + 3] = total.moment
        row[block.INERTIA:block.INERTIA + 6] = total.about_origin[np.triu_indices(3)]

    def _pack(self, names: list[str]) -> Array:
        header = np.zeros(block.HEADER)
        header[[block.NODES, block.NQ, block.NV, block.LINKS]] = len(self.rows), self.nq, self.nv, len(names)
        header[block.GRAVITY:block.GRAVITY + 3] = self.description.gravity
        header[block.SHARED] = len(self.pending)
        curves: list[float] = []    # stored between nodes and links; PITCH of a cam's node is its offset
        for row, coefficients in self.curves:
            row[block.PITCH] = block.HEADER + block.NODE * len(self.rows) + len(curves)
            curves += [float(len(coefficients)), *coefficients]
        header[block.LINK_START] = block.HEADER + block.NODE * len(self.rows) + len(curves)
        links = []
        for name in names:
            node, R, p = self.place[name]
            links.append(np.concatenate([[float(node)], R.ravel(), p]))
        return np.concatenate([header, *self.rows, np.array(curves), *links])


def _joint(spec: JointSpec, idx_q: int, idx_v: int, nq: int, nv: int) -> Joint:
    label = f"joint '{spec.name}'"
    lower = per_coordinate(spec.lower, nq, -np.inf, f"{label}: lower limit")
    upper = per_coordinate(spec.upper, nq, np.inf, f"{label}: upper limit")
    if (lower > upper).any():
        raise RbdError(f"{label}: lower limit {lower} is above upper limit {upper}")
    velocity = per_coordinate(spec.velocity, nv, np.inf, f"{label}: velocity limit")
    effort = per_coordinate(spec.effort, nv, np.inf, f"{label}: effort limit")
    for name, value in (("velocity limit", velocity), ("effort limit", effort)):
        if (value < 0.0).any():
            raise RbdError(f"{label}: {name} is negative")
    return Joint(spec.name, spec.type, spec.parent, spec.child, idx_q, idx_v, nq, nv, lower, upper, velocity, effort,
                 *dissipation(spec, nv))
