"""∂ of the packed model along a `Tangent`, for imaginary steps of the kernels' inputs."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...errors import RbdError, unknown_name
from ...lie import se3, so3
from ...model.block import (
    ARMATURE, GRAVITY, HEADER, LINK, LINK_NODE, LINK_POSITION, LINK_ROTATION, LINK_START, MASS, NODE, OFFSET, PARENT,
    PITCH, POSITION, RATIO, ROTATION, TURN, TYPE,
)
from ...model.coordinates import per_coordinate
from ...model.inertia import Array, finite
from ...model.joint_kinds import CAM, HELICAL, PRISMATIC, REVOLUTE, TURNING
from ...model.joints import JointSpec, aligning_turn, primitives
from ...model.robot_model import RobotModel

Z = np.array([0.0, 0.0, 1.0])
PARAMETERS = ("inertias", "placements", "screws", "axes", "pitches", "advances", "rotor_inertias", "mimics")


def changes_model(tangent: Any) -> bool:
    """Whether a `Tangent` names a parameter of the model."""
    return tangent.gravity is not None or any(getattr(tangent, name) for name in PARAMETERS)


class ModelChange:
    """∂ of a model along a `Tangent`, added to `block` (∂ of the packed model), `shifts` (nb, 6; twists of the links in
    the axes of their nodes) and `inertias` (nb, 10; of each link ∂ of mass, first moment and inertia about the origin,
    in the axes of its node).

    In `start`, the packed model at which derivatives are taken, a revolute joint that gains a pitch becomes helical,
    and a prismatic joint that gains a rotation `TURNING`, both with the value zero, which other directions share.
    """

    def __init__(self, model: RobotModel, tangent: Any, start: Array, block: Array, inertias: Array,
                 shifts: Array) -> None:
        self.model, self.block, self.inertias, self.shifts = model, block, inertias, shifts
        links = int(start[LINK_START])
        nodes = slice(HEADER, HEADER + NODE * len(model._node_rows))
        self.rows, self.row_changes = (x[nodes].reshape(-1, NODE) for x in (start, block))
        self.links, self.link_changes = (x[links:].reshape(-1, LINK) for x in (start, block))
        if tangent.gravity is not None:
            block[GRAVITY:GRAVITY + 3] = finite(tangent.gravity, (3,), "tangent.gravity")
        self.specs = {spec.name: spec for spec in model.description.joints}
        self.moving = [*dict.fromkeys([*model.joint_names, *(mimic.name for mimic in model.mimics)])]
        for parameter in PARAMETERS:
            for name, value in getattr(tangent, parameter).items():
                getattr(self, f"_{parameter}")(name, value)
        self.follow_shifts()

    def spec(self, parameter: str, name: str, moving: bool = True) -> JointSpec:
        names = self.moving if moving else list(dict.fromkeys([*self.moving, *self.specs]))
        if name not in names:
            raise unknown_name(f"joint in {parameter}", name, names)
        return self.specs.get(name) or JointSpec(name, "floating", "", self.model.joint(name).child)

    def chain(self, spec: JointSpec) -> list[int]:
        """The nodes of a moving joint, from the root on."""
        nodes = [int(self.links[self.model.body_index(spec.child)][LINK_NODE])]
        for _ in primitives(spec)[1:]:
            nodes.append(int(self.rows[nodes[-1]][PARENT]))
        return nodes[::-1]

    def axes_of(self, spec: JointSpec) -> list[Array]:
        """The rotation of each node of a joint, at q = 0, in the frame of the joint."""
        before = self.pose(spec.parent)[:3, :3] if spec.parent else np.eye(3)
        R, axes = (before @ spec.rotation).T, []
        for node in self.chain(spec):
            R = R @ self.rows[node][ROTATION:POSITION].reshape(3, 3)
            axes.append(R)
        return axes

    def pose(self, link: str) -> Array:
        """Pose of a link's frame in its node."""
        row = self.links[self.model.body_index(link)]
        return _pose(row[LINK_ROTATION:LINK_POSITION], row[LINK_POSITION:LINK])

    def steps(self, parameter: str, name: str, value: Any, size: tuple[int, ...]) -> tuple[JointSpec, list[Array]]:
        """The joint, and one validated array of this size per step of it."""
        spec = self.spec(parameter, name)
        count = len(primitives(spec))
        array = finite(value, size if np.ndim(value) == len(size) and count == 1 else (count, *size),
                       f"{parameter}['{name}']")
        return spec, list(array.reshape(count, *size))

    def add_inertia(self, link: Any, P: Array) -> None:
        """Add ∂ of the pseudo-inertia of a link, in the axes of its node."""
        change = node_inertia(P)
        self.inertias[link] += change
        node = int(self.links[link][LINK_NODE])
        if node >= 0:
            self.row_changes[node, MASS:ARMATURE] += change

    def _inertias(self, name: str, value: Any) -> None:
        if name not in self.model._body_by_name:
            raise unknown_name("body in inertias", name, self.model.body_names)
        T = self.pose(name)
        self.add_inertia(self.model.body_index(name),
                         T @ pseudo_inertia(finite(value, (10,), f"inertias['{name}']")) @ T.T)

    def _placements(self, name: str, value: Any) -> None:
        spec = self.spec("placements", name, moving=False)
        x = finite(value, (6,), f"placements['{name}']")
        if name in self.moving:
            R = self.axes_of(spec)[0]
            self.move(self.chain(spec)[0], R.T @ x[:3], R.T @ x[3:])
            return
        shift = se3.Ad(self.pose(spec.parent) @ _pose(spec.rotation, spec.position)) @ x
        fixed_links = [spec.child]
        for link in fixed_links:    # extended in the loop
            self.shifts[self.model.body_index(link)] += shift
            fixed_links += [other.child for other in self.specs.values()
                       if other.parent == link and other.name not in self.moving]

    def tilt(self, spec: JointSpec, step: int, w: Array, u: Array) -> None:
        """Move the screw of a step by the twist (w, u) in its node's axes, and its successors by the opposite twist."""
        nodes = self.chain(spec)
        self.move(nodes[step], w, u)
        if step + 1 < len(nodes):
            self.place(nodes[step + 1], -np.concatenate([w, u]))
        else:
            self.shifts[self.links[:, LINK_NODE] == nodes[step]] -= np.concatenate([w, u])

    def move(self, node: int, w: Array, u: Array) -> None:
        """Move a node by the twist (w, u) in its own axes at q = 0: `∂T = T ξ̂` of its pose in the parent."""
        R = self.rows[node][ROTATION:POSITION].reshape(3, 3)
        self.row_changes[node, ROTATION:POSITION] += (R @ so3.hat(w)).reshape(-1)
        self.row_changes[node, POSITION:MASS] += R @ u

    def place(self, node: int, shift: Array) -> None:
        """Move a node by a twist in the axes of its parent: `∂T = ξ̂ T`."""
        row, change = self.rows[node], self.row_changes[node]
        _shift(row[ROTATION:POSITION], row[POSITION:MASS], shift,
               change[ROTATION:POSITION], change[POSITION:MASS])

    def follow_shifts(self) -> None:
        """Apply the links' shifts to their inertias and to the joints attached to them."""
        parameters = np.asarray(self.model.inertial_parameters).reshape(-1, 10)
        for link in np.flatnonzero(self.shifts.any(axis=1)):
            name, shift, row, change = (self.model.body_names[link], self.shifts[link], self.links[link],
                                        self.link_changes[link])
            T = self.pose(name)
            moved = se3.hat(shift) @ T @ pseudo_inertia(parameters[link]) @ T.T
            self.add_inertia(link, moved + moved.T)
            _shift(row[LINK_ROTATION:LINK_POSITION], row[LINK_POSITION:], shift,
                   change[LINK_ROTATION:LINK_POSITION], change[LINK_POSITION:])
            for spec in self.specs.values():
                if spec.parent == name and spec.name in self.moving:
                    self.place(self.chain(spec)[0], shift)

    def rescale(self, node: int, factor: float) -> None:
        """Change the screw of a node by `factor` times itself."""
        for part in (RATIO, OFFSET):
            self.row_changes[node, part] += factor * self.rows[node, part]

    def add_pitch(self, node: int, change: float) -> None:
        if change and self.rows[node, TYPE] == REVOLUTE:
            self.rows[node, TYPE] = HELICAL
        self.row_changes[node, PITCH] += change

    def _screws(self, name: str, value: Any) -> None:
        spec = self.spec("screws", name)
        for step in primitives(spec):
            if not step.kind.screw:
                raise RbdError(f"screws['{name}']: a joint of type {spec.type} is no screw")
        spec, values = self.steps("screws", name, value, (6,))
        for c, (step, R, x, node) in enumerate(zip(primitives(spec), self.axes_of(spec), values, self.chain(spec),
                                                   strict=True)):
            w, u = R.T @ x[:3], R.T @ x[3:]
            if step.type == PRISMATIC:
                self.tilt(spec, c, np.cross(Z, u), np.zeros(3))
                self.rescale(node, u[2])
                if w.any():
                    self.rows[node, TYPE] = TURNING
                    self.row_changes[node, TURN:TURN + 3] += w
            else:
                self.tilt(spec, c, np.cross(Z, w), np.cross(Z, u - step.pitch * w))
                self.rescale(node, w[2])
                self.add_pitch(node, u[2] - step.pitch * w[2])

    def _axes(self, name: str, value: Any) -> None:
        spec = self.spec("axes", name)
        steps = primitives(spec)
        if spec.type == "composite":
            declared = [part.axis for part in spec.parts]
        elif spec.type in ("universal", "spherical_euler"):
            declared = list(spec.axes) or [step.axis for step in steps]
        elif any(step.type not in (REVOLUTE, PRISMATIC, HELICAL, CAM) for step in steps) or spec.type == "translation":
            raise RbdError(f"axes['{name}']: a joint of type {spec.type} has no axis")
        else:
            declared = [spec.axis]
        several = len(declared) > 1 or spec.type == "composite"
        declared_changes = finite(value, (len(declared), 3) if several else (3,), f"axes['{name}']").reshape(-1, 3)
        turns = [aligning_turn(axis, change) if spec.type == "planar" else np.cross(axis, change) / np.dot(axis, axis)
                 for axis, change in zip(declared, declared_changes, strict=True)]
        for c, R in enumerate(self.axes_of(spec)):
            self.tilt(spec, c, R.T @ turns[c if several else 0], np.zeros(3))

    def _pitches(self, name: str, value: Any) -> None:
        spec, values = self.steps("pitches", name, value, ())
        for step, node, x in zip(primitives(spec), self.chain(spec), values, strict=True):
            if x and step.type not in (REVOLUTE, HELICAL):
                raise RbdError(f"pitches['{name}']: a step of kind '{step.kind.name}' has none")
            self.add_pitch(node, float(x))

    def _advances(self, name: str, value: Any) -> None:
        spec = self.spec("advances", name)
        if spec.type != "cam":
            raise RbdError(f"advances['{name}']: a joint of type {spec.type} is no cam")
        x = finite(value, (len(primitives(spec)[0].advance),), f"advances['{name}']")
        first = int(self.rows[self.chain(spec)[0], PITCH]) + 1    # after the number of coefficients
        self.block[first:first + len(x)] += x

    def _rotor_inertias(self, name: str, value: Any) -> None:
        spec = self.spec("rotor_inertias", name)
        steps = primitives(spec)
        x = per_coordinate(value, sum(step.nv for step in steps), 0.0, f"rotor_inertias['{name}']")    # type: ignore
        finite(x, x.shape, f"rotor_inertias['{name}']")
        first = 0
        for step, node in zip(steps, self.chain(spec), strict=True):
            self.row_changes[node, ARMATURE:ARMATURE + step.nv] += (
                x[first:first + step.nv] * self.rows[node, RATIO] ** 2)
            first += step.nv

    def _mimics(self, name: str, value: Any) -> None:
        if name not in {mimic.name for mimic in self.model.mimics}:
            raise unknown_name("joint in mimics", name, [mimic.name for mimic in self.model.mimics])
        change = finite(value, (2,), f"mimics['{name}']")
        for mimic in self.model.mimics:
            ratio, offset = mimic_map(self.specs, mimic.name, {name: change})[2:]
            change_of_node = self.row_changes[self.chain(self.specs[mimic.name])[0]]
            rotor = per_coordinate(self.specs[mimic.name].rotor_inertia, 1, 0.0, "rotor_inertia")[0]
            change_of_node[RATIO] += ratio
            change_of_node[OFFSET] += offset
            change_of_node[ARMATURE] += 2.0 * rotor * mimic.multiplier * ratio


def mimic_map(specs: Mapping[str, JointSpec], name: str,
              changes: Mapping[str, Any]) -> tuple[float, float, float, float]:
    """Multiplier and offset of a mimic joint relative to the joint at the end of its chain, and their changes."""
    declared = specs[name].mimic
    if declared is None:
        return 1.0, 0.0, 0.0, 0.0
    source, m, c = declared
    dm, dc = changes.get(name, (0.0, 0.0))
    M, C, dM, dC = mimic_map(specs, source, changes)
    return m * M, m * C + c, dm * M + m * dM, dm * C + m * dC + dc


def _shift(R: Array, p: Array, x: Array, dR: Array, dp: Array) -> None:
    """Add `x̂ T` of a pose T = (R, p) to (dR, dp); rotations flat."""
    dR += (so3.hat(x[:3]) @ R.reshape(3, 3)).reshape(-1)
    dp += np.cross(x[:3], p) + x[3:]


def _pose(R: Array, p: Array) -> Array:
    T = np.eye(4)
    T[:3, :3], T[:3, 3] = np.reshape(R, (3, 3)), p
    return T


def node_inertia(P: Array) -> Array:
    """Mass, first moment and inertia of a node in the packed model (10,) of its pseudo-inertia."""
    J = np.trace(P[:3, :3]) * np.eye(3) - P[:3, :3]
    return np.array([P[3, 3], *P[:3, 3], *J[np.triu_indices(3)]])


def pseudo_inertia(x: Array) -> Array:
    """Pseudo-inertia (4, 4) of the ten parameters of `model.inertial_parameters`."""
    J = np.array([[x[4], x[5], x[7]], [x[5], x[6], x[8]], [x[7], x[8], x[9]]])
    P = np.zeros((4, 4))
    P[:3, :3] = 0.5 * np.trace(J) * np.eye(3) - J
    P[:3, 3] = P[3, :3] = x[1:4]
    P[3, 3] = x[0]
    return P
