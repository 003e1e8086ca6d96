"""Gaps and rows of the contacts and stops of a simulated robot, and projection of states onto them."""
from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...dynamics.constrained.given import contact_values
from ...dynamics.constrained.projection import nearest, project
from ...dynamics.contact.coordinates import closest_points
from ...dynamics.kinematics import forward_kinematics
from ...errors import RbdError
from ...lie import se3
from ...model.assembly import WORLD
from ...model.constraint_block import node_frame
from ...model.constraints import Constraint, ConstraintSet, JointCoupling
from ...model.inertia import Array
from ...model.robot_model import RobotModel
from ...model.surfaces.contacts import RollingContact, SlidingContact
from ...model.surfaces.shapes import ELLIPSOID, PLANE, SPHERE
from ...model.surfaces.surface import Plane, Surface
from ...model.surfaces.unilateral import UnilateralContact
from ..bounds import Bounds
from .contact_steps import CLOSE, FACE, STOP, STOP_LIMIT, touching_rows_entry

Mask = NDArray[np.bool_]
DEEPEST = 1e-3    # m: largest initial overlap, which is removed; more is an error


class Gaps(NamedTuple):
    """n contacts, including stops: `gap` (n,); `margin` (n,): distance of the contact from the edge of its face, inside
    positive, infinite without an edge; `J` (n, 3, nv): rows normal, tangent_x and tangent_y; `bias` (n, 3): J̇ v; `rows`
    (3 n, nv + 2): J, bias and gap as kernels take them.
    """

    gap: Array
    margin: Array
    J: Array
    bias: Array
    rows: Array

    def slip(self, v: Array) -> Array:
        """Speeds of sliding (n,) with velocities v (nv,)."""
        return np.hypot(*(self.J[:, 1:] @ v).T)


class Touching:
    """Contacts, followed by stops, of a model; friction, restitution (n,). turns (n,): axes jump between charts."""

    def __init__(self, model: RobotModel, contacts: Sequence[UnilateralContact], bounds: Bounds,
                 constraints: ConstraintSet | None) -> None:
        self.contacts = tuple(contacts)
        self.model = model
        self.names = tuple(contact.name or f"contact_{i}" for i, contact in enumerate(self.contacts))
        self._rolling = [RollingContact(contact.first, contact.second, name=name)
                         for contact, name in zip(self.contacts, self.names, strict=True)]
        self._bound = ConstraintSet(self._rolling).bound(model)
        self._constraints = constraints
        self._sets: dict[tuple[bytes, bytes], ConstraintSet] = {}
        stops = [(q, v, sign, limit) for (q, low, high), v in zip(bounds.positions, bounds.plain_v, strict=True)
                 for sign, limit in ((1.0, low), (-1.0, high)) if np.isfinite(limit)]
        self._stops = np.array(stops, dtype=float).reshape(-1, STOP)
        self._limit = self._stops[:, STOP_LIMIT]
        self._stop_names = [model.velocity_names[stop[1]] for stop in stops]
        self.size = len(self.contacts) + len(stops)
        self.friction, self.restitution = np.zeros((2, self.size))
        for i, contact in enumerate(self.contacts):
            self.friction[i], self.restitution[i] = contact.friction, contact.restitution
        self.turns = np.array([contact.first.kind in (SPHERE, ELLIPSOID) for contact in self.contacts]
                              + [False] * len(stops))
        self._faces = np.array([self._bounded(i, contact.first, contact.second) for i, contact in enumerate(
            self.contacts) if isinstance(contact.first, Plane) and contact.first.size is not None]).reshape(-1, FACE)

    def _bounded(self, i: int, face: Plane, other: Surface) -> list[float]:
        """Of contact i with a plane that has a size, what `touching_rows` takes."""
        assert face.size is not None
        node, pose = node_frame(self.model, "first", face.link, np.asarray(face.frame))
        of, center = node_frame(self.model, "second", other.link, np.asarray(other.frame))
        return [i, node, *pose, *(0.5 * np.asarray(face.size)), of, *center[9:]]

    @property
    def packed(self) -> tuple[Array, Array, Array]:
        """Surfaces, stops and faces, as kernels take them."""
        return self._bound.contacts.block, self._stops, self._faces

    def at(self, q: Array, v: Array) -> Gaps:
        """All contacts at a state."""
        nv = self.model.nv
        R, margin = np.empty((3 * self.size, nv + 2)), np.empty(self.size)
        if touching_rows_entry(self.model._block, *self.packed, q, v, R, margin) != -1:
            contact_values(self._bound, q, v, 1)    # raises
            raise RbdError("contacts: their rows would not be finite")
        rows = R.reshape(self.size, 3, nv + 2)
        return Gaps(rows[:, 0, nv + 1], margin, rows[..., :nv], rows[..., nv], R)

    def onto(self, q: Array, v: Array, closed: Mask, stuck: Mask) -> tuple[Array, Array]:
        """The state projected to closed contacts, sticking contacts without slip, and constraints; velocities by their
        impulses.
        """
        return project(self.model, self._closing(closed, stuck), q, v, mass_weighted=True)

    def close(self, q: Array, closed: Mask) -> Array:
        """Positions projected to closed contacts and constraints, by displacements that impulses would cause."""
        constraints = self._closing(closed, np.zeros(self.size, dtype=bool))
        return nearest(self.model, constraints, q, mass_weighted=True)[0]

    def _closing(self, closed: Mask, stuck: Mask) -> ConstraintSet:
        key = closed.tobytes(), stuck.tobytes()
        if key not in self._sets:
            parts: list[Constraint] = [] if self._constraints is None else list(self._constraints.constraints)
            for i, contact in enumerate(self.contacts):
                if closed[i]:
                    make = RollingContact if stuck[i] else SlidingContact
                    parts.append(make(contact.first, contact.second, name=f"contact {i}"))
            parts += [JointCoupling({name: 1.0}, float(limit)) for name, limit, held in zip(
                self._stop_names, self._limit, closed[len(self.contacts):], strict=True) if held]
            if len(self._sets) > 100:
                self._sets.clear()
            self._sets[key] = ConstraintSet(parts)
        return self._sets[key]

    def start(self, q: Array, v: Array) -> Array:
        """Positions without overlap: small overlaps are removed, a large one raises an error naming the contact."""
        gaps = self.at(q, v)
        deep = (gaps.gap < -CLOSE) & (gaps.margin > 0.0)
        for i, name in enumerate(self.names):
            if deep[i] and gaps.gap[i] < -DEEPEST and np.isinf(gaps.margin[i]):
                raise RbdError(f"contact '{name}' of model '{self.model.name}': the {self.contacts[i].first} and the "
                               f"{self.contacts[i].second} overlap by {-gaps.gap[i]:.3g} m at the start")
        deep &= gaps.gap >= -DEEPEST
        return self.close(q, deep) if deep.any() else q

    def place(self, i: int, q: Array) -> tuple[Array, Array, float]:
        """Point (3,) of contact i on the second surface, axes (3, 3) with the normal last, in the world; gap."""
        first, second = self.contacts[i].first, self.contacts[i].second
        poses = forward_kinematics(self.model, q)
        if first.kind == PLANE and second.kind == SPHERE:
            F, center = self._frame(poses, first), self._frame(poses, second)[:3, 3]
            point = center - second.sizes[0] * F[:3, 2]
            return point, F[:3, :3], float(F[:3, 2] @ (point - F[:3, 3]))
        T = self._link(poses, first)
        touch = closest_points(first, second, se3.inverse(T) @ self._link(poses, second))
        return T[:3, :3] @ touch.point_2 + T[:3, 3], T[:3, :3] @ touch.axes, touch.gap

    def _link(self, poses: Array, surface: Surface) -> Array:
        index = self._index(surface)
        return np.eye(4) if index < 0 else np.asarray(poses[index])

    def _index(self, surface: Surface) -> int:
        """Index of the surface's link among the bodies; −1: the world."""
        return -1 if surface.link == WORLD and WORLD not in self.model.body_names else self.model.body_index(
            surface.link)

    def _frame(self, poses: Array, surface: Surface) -> Array:
        return self._link(poses, surface) @ np.asarray(surface.frame)
