"""Conversion of a `Tangent` to the records of the kernels (`parameters`)."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...errors import RbdError, unknown_name
from ...lie import se3
from ...model import block
from ...model.coordinates import per_coordinate
from ...model.inertia import Array, finite
from ...model.joint_kinds import CAM, HELICAL, PRISMATIC, REVOLUTE
from ...model.joints import JointSpec, aligning_turn, primitives
from ...model.robot_model import RobotModel
from .parameters import (
    CHANGED, D_ARMATURE, D_INERTIA, D_OFFSET, D_RATIO, HEAD, PLACEMENT, RECORD, SCREW,
)

Z = np.array([0.0, 0.0, 1.0])
PARAMETERS = ("inertias", "placements", "screws", "axes", "pitches", "advances", "rotor_inertias", "mimics")


def parameter_records(model: RobotModel, tangent: Any) -> tuple[Array, Array | None]:
    """The model's change as `parameters` describes, empty where there is none, and the twists (nb, 6) by which links
    move in the axes of their nodes; None where none does.
    """
    if tangent.gravity is None and not any(getattr(tangent, name) for name in PARAMETERS):
        return np.empty(0), None
    start = block.HEADER + block.NODE * len(model._node_rows)
    curves = int(model._block[block.LINK_START]) - start
    if not any(getattr(tangent, name) for name in PARAMETERS):
        out = np.zeros(HEAD + RECORD * len(model._node_rows) + curves)
        shifts = None
    else:
        made = _Records(model)
        for name in PARAMETERS:
            for key, value in getattr(tangent, name).items():
                getattr(made, name)(key, value)
        made.follow_shifts()
        made.out[:, CHANGED] = made.out[:, 1:].any(axis=1)
        made.out[made.bent, CHANGED] = 1.0
        out = np.concatenate([np.zeros(HEAD), made.out.reshape(-1), made.curves])
        shifts = made.shifts if made.shifts.any() else None
    if tangent.gravity is not None:
        out[:HEAD] = finite(tangent.gravity, (3,), "tangent.gravity")
    return out, shifts


class _Records:
    def __init__(self, model: RobotModel) -> None:
        self.model = model
        self.rows = model._node_rows
        self.out = np.zeros((len(self.rows), RECORD))
        start = block.HEADER + block.NODE * len(self.rows)
        self.curves = np.zeros(int(model._block[block.LINK_START]) - start)
        self.bent: list[int] = []
        self.links = model._block[int(model._block[block.LINK_START]):].reshape(-1, block.LINK)
        self.shifts = np.zeros((len(self.links), 6))
        self.specs = {spec.name: spec for spec in model.description.joints}
        self.moving = [*dict.fromkeys([*model.joint_names, *(mimic.name for mimic in model.mimics)])]

    def spec(self, what: str, name: str, moving: bool = True) -> JointSpec:
        names = self.moving if moving else list(dict.fromkeys([*self.moving, *self.specs]))
        if name not in names:
            raise unknown_name(f"joint in {what}", name, names)
        return self.specs.get(name) or JointSpec(name, "floating", "", self.model.joint(name).child)

    def chain(self, spec: JointSpec) -> list[int]:
        """The nodes of a moving joint."""
        at = int(self.links[self.model.body_index(spec.child)][block.LINK_NODE])
        nodes = [at]
        for _ in primitives(spec)[1:]:
            nodes.append(int(self.rows[nodes[-1]][block.PARENT]))
        return nodes[::-1]

    def axes_of(self, spec: JointSpec) -> list[Array]:
        """The rotation of each of its nodes at zero in the frame of the joint."""
        before = self.pose(spec.parent)[:3, :3] if spec.parent else np.eye(3)
        R, found = (before @ spec.rotation).T, []
        for at in self.chain(spec):
            R = R @ self.rows[at][block.ROTATION:block.POSITION].reshape(3, 3)
            found.append(R)
        return found

    def pose(self, link: str) -> Array:
        """Pose of a link's frame in its node."""
        row = self.links[self.model.body_index(link)]
        return _pose(row[block.LINK_ROTATION:block.LINK_POSITION], row[block.LINK_POSITION:block.LINK])

    def steps(self, what: str, name: str, value: Any, size: tuple[int, ...]) -> tuple[JointSpec, list[Array]]:
        """One array of this size per step of a joint."""
        spec = self.spec(what, name)
        count = len(primitives(spec))
        array = finite(value, size if np.ndim(value) == len(size) and count == 1 else (count, *size),
                       f"{what}['{name}']")
        return spec, list(array.reshape(count, *size))

    def inertias(self, name: str, value: Any) -> None:
        if name not in self.model._body_by_name:
            raise unknown_name("body in inertias", name, self.model.body_names)
        x = finite(value, (10,), f"inertias['{name}']")
        at = int(self.links[self.model.body_index(name)][block.LINK_NODE])
        if at >= 0:
            T = self.pose(name)
            self.out[at, D_INERTIA:D_ARMATURE] += _ten(T @ _pseudo_inertia(x) @ T.T)

    def placements(self, name: str, value: Any) -> None:
        spec = self.spec("placements", name, moving=False)
        x = finite(value, (6,), f"placements['{name}']")
        if name in self.moving:
            R = self.axes_of(spec)[0]
            self.out[self.chain(spec)[0], PLACEMENT:SCREW] += np.concatenate([R.T @ x[:3], R.T @ x[3:]])
            return
        shift = se3.Ad(self.pose(spec.parent) @ _pose(spec.rotation, spec.position)) @ x
        behind = [spec.child]
        for link in behind:    # grows
            self.shifts[self.model.body_index(link)] += shift
            behind += [other.child for other in self.specs.values()
                       if other.parent == link and other.name not in self.moving]

    def tilt(self, spec: JointSpec, step: int, x: Array) -> None:
        """A screw moved by the twist x, in its node's axes: its place, and what is behind it moved back."""
        nodes = self.chain(spec)
        self.out[nodes[step], PLACEMENT:SCREW] += x
        if step + 1 < len(nodes):
            self.place(nodes[step + 1], -x)
        else:
            self.shifts[self.links[:, block.LINK_NODE] == nodes[step]] -= x

    def place(self, at: int, shift: Array) -> None:
        """Node `at` moved by a twist in the axes of its parent."""
        row = self.rows[at]
        T = _pose(row[block.ROTATION:block.POSITION], row[block.POSITION:block.MASS])
        self.out[at, PLACEMENT:SCREW] += se3.Ad(np.linalg.inv(T)) @ shift

    def follow_shifts(self) -> None:
        """Links that move carry their inertia and the joints behind them."""
        parameters = np.asarray(self.model.inertial_parameters).reshape(-1, 10)
        for link in np.flatnonzero(self.shifts.any(axis=1)):
            name, shift = self.model.body_names[link], self.shifts[link]
            at = int(self.links[link][block.LINK_NODE])
            if at >= 0:
                T = self.pose(name)
                moved = se3.hat(shift) @ T @ _pseudo_inertia(parameters[link]) @ T.T
                self.out[at, D_INERTIA:D_ARMATURE] += _ten(moved + moved.T)
            for spec in self.specs.values():
                if spec.parent == name and spec.name in self.moving:
                    self.place(self.chain(spec)[0], shift)

    def screws(self, name: str, value: Any) -> None:
        spec = self.spec("screws", name)
        for step in primitives(spec):
            if not step.kind.screw:
                raise RbdError(f"screws['{name}']: a joint of type {spec.type} is no screw")
        spec, values = self.steps("screws", name, value, (6,))
        for c, (step, R, x) in enumerate(zip(primitives(spec), self.axes_of(spec), values, strict=True)):
            w, u = R.T @ x[:3], R.T @ x[3:]
            if step.type == PRISMATIC:
                self.tilt(spec, c, np.concatenate([np.cross(Z, u), np.zeros(3)]))
                rest = [*w, 0.0, 0.0, u[2]]
            else:
                self.tilt(spec, c, np.concatenate([np.cross(Z, w), np.cross(Z, u - step.pitch * w)]))
                rest = [0.0, 0.0, w[2], 0.0, 0.0, u[2]]
            self.out[self.chain(spec)[c], SCREW:D_RATIO] += rest

    def axes(self, name: str, value: Any) -> None:
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
        many = len(declared) > 1 or spec.type == "composite"
        given = finite(value, (len(declared), 3) if many else (3,), f"axes['{name}']").reshape(-1, 3)
        turns = [aligning_turn(axis, change) if spec.type == "planar" else np.cross(axis, change) / np.dot(axis, axis)
                 for axis, change in zip(declared, given, strict=True)]
        for c, R in enumerate(self.axes_of(spec)):
            self.tilt(spec, c, np.concatenate([R.T @ turns[c if many else 0], np.zeros(3)]))

    def pitches(self, name: str, value: Any) -> None:
        spec, values = self.steps("pitches", name, value, ())
        for step, at, x in zip(primitives(spec), self.chain(spec), values, strict=True):
            if x and step.type not in (REVOLUTE, HELICAL):
                raise RbdError(f"pitches['{name}']: a step of kind '{step.kind.name}' has none")
            self.out[at, SCREW + 5] += x

    def advances(self, name: str, value: Any) -> None:
        spec = self.spec("advances", name)
        if spec.type != "cam":
            raise RbdError(f"advances['{name}']: a joint of type {spec.type} is no cam")
        x = finite(value, (len(primitives(spec)[0].advance),), f"advances['{name}']")
        at = self.chain(spec)[0]
        start = int(self.rows[at][block.PITCH]) - block.HEADER - block.NODE * len(self.rows)
        self.curves[start] = len(x)
        self.curves[start + 1:start + 1 + len(x)] += x
        self.bent.append(at)

    def rotor_inertias(self, name: str, value: Any) -> None:
        spec = self.spec("rotor_inertias", name)
        steps = primitives(spec)
        x = per_coordinate(value, sum(step.nv for step in steps), 0.0, f"rotor_inertias['{name}']")    # type: ignore
        finite(x, x.shape, f"rotor_inertias['{name}']")
        done = 0
        for step, at in zip(steps, self.chain(spec), strict=True):
            self.out[at, D_ARMATURE:D_ARMATURE + step.nv] += x[done:done + step.nv] * self.rows[at][block.RATIO] ** 2
            done += step.nv

    def mimics(self, name: str, value: Any) -> None:
        if name not in {mimic.name for mimic in self.model.mimics}:
            raise unknown_name("joint in mimics", name, [mimic.name for mimic in self.model.mimics])
        change = finite(value, (2,), f"mimics['{name}']")
        for mimic in self.model.mimics:
            ratio, offset = following(self.specs, mimic.name, {name: change})[2:]
            at = self.chain(self.specs[mimic.name])[0]
            rotor = per_coordinate(self.specs[mimic.name].rotor_inertia, 1, 0.0, "rotor_inertia")[0]
            self.out[at, D_RATIO] += ratio
            self.out[at, D_OFFSET] += offset
            self.out[at, D_ARMATURE] += 2.0 * rotor * mimic.multiplier * ratio


def following(specs: Mapping[str, JointSpec], name: str,
              changes: Mapping[str, Any]) -> tuple[float, float, float, float]:
    """Multiplier and offset of a follower, chains multiplied out, and their changes."""
    declared = specs[name].mimic
    if declared is None:
        return 1.0, 0.0, 0.0, 0.0
    source, m, c = declared
    dm, dc = changes.get(name, (0.0, 0.0))
    M, C, dM, dC = following(specs, source, changes)
    return m * M, m * C + c, dm * M + m * dM, dm * C + m * dC + dc


def _pose(R: Array, p: Array) -> Array:
    T = np.eye(4)
    T[:3, :3], T[:3, 3] = np.reshape(R, (3, 3)), p
    return T


def _pseudo_inertia(x: Array) -> Array:
    """Of ten parameters as in `model.inertial_parameters`."""
    J = np.array([[x[4], x[5], x[7]], [x[5], x[6], x[8]], [x[7], x[8], x[9]]])
    P = np.zeros((4, 4))
    P[:3, :3] = 0.5 * np.trace(J) * np.eye(3) - J
    P[:3, 3] = P[3, :3] = x[1:4]
    P[3, 3] = x[0]
    return P


def _ten(P: Array) -> Array:
    """Mass, first moment and inertia about the origin of a pseudo-inertia, as kernels have them."""
    J = np.trace(P[:3, :3]) * np.eye(3) - P[:3, :3]
    return np.array([P[3, 3], *P[:3, 3], J[0, 0], J[0, 1], J[0, 2], J[1, 1], J[1, 2], J[2, 2]])
