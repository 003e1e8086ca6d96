"""Forces of compliant contacts at (q, v): Hunt and Crossley (1975) with regularised Coulomb friction."""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ...errors import RbdError
from ...model.assembly import WORLD
from ...model.constraint_block import ContactRows
from ...model.inertia import Array
from ...model.robot_model import RobotModel
from ...model.state import states
from ...model.surfaces.compliant import CompliantContact
from ...model.surfaces.surface import Plane, Surface
from ..constrained.given import contact_values, no_contact
from ..kinematics import forward_kinematics
from .places import AXES, GAP, PLACE, POINT, SPEED, contact_places_entry


class Pressed(NamedTuple):
    """Per contact: depth d (m), elastic force k dⁿ (N), coefficients (N s/m) of normal damping and of tangential
    friction, as factors of the velocity; all zero for separated bodies.
    """

    depth: Array
    elastic: Array
    damping: Array
    friction: Array


class Places(NamedTuple):
    """Per contact, in world axes: `axes` (…, 3, 3), columns x, y and the normal of the first surface; `point` (…, 3);
    `gap` (m); `speed` (…, 3): velocity (m/s) of the second body relative to the first, in contact axes.
    """

    axes: Array
    point: Array
    gap: Array
    speed: Array


class CompliantContacts:
    """Compliant contacts bound to a model; arrays have an entry per contact."""

    def __init__(self, model: RobotModel, items: Iterable[CompliantContact]) -> None:
        if not isinstance(items, Iterable):
            raise RbdError(f"contacts: expected a list of them, got {type(items).__name__}")
        self.model, self.items = model, tuple(items)
        records: dict[str, list[float]] = {}
        for i, item in enumerate(self.items):
            if not isinstance(item, CompliantContact):
                raise RbdError(f"contact {i} is {type(item).__name__}, expected CompliantContact: the forces of others "
                               "do not follow from q and v")
            name = item.name or f"compliant_{i}"
            if name in records:
                raise RbdError(f"duplicate contact name '{name}'")
            try:
                records[name] = item.contact_record(model, 3 * i)
            except RbdError as error:
                raise RbdError(f"contact '{name}': {error}") from None
        self.names = tuple(records)
        self._faces = [(i, item.first, item.second) for i, item in enumerate(self.items)
                       if isinstance(item.first, Plane) and item.first.size is not None]
        self.contacts = ContactRows(records, range(3 * len(records)))
        laws = np.array([item.law for item in self.items]).reshape(-1, 5).T
        self.stiffness, self.dissipation, self.exponent, self.coefficient, self.slip_speed = laws

    def pressed(self, gap: Array, speed: Array) -> Pressed:
        """Force coefficients at gaps (…, m) and velocities (…, m, 3) along normal, x, y; the normal force is ≥ 0."""
        depth = np.maximum(-gap, 0.0)
        elastic = self.stiffness * depth**self.exponent
        damping = 1.5 * self.dissipation * elastic
        normal = elastic - damping * speed[..., 0]
        pushes = normal > 0.0
        slip = np.hypot(speed[..., 1], speed[..., 2])
        small = slip < 1e-6 * self.slip_speed
        ratio = np.where(small, 1.0 / self.slip_speed, np.tanh(slip / self.slip_speed) / np.where(small, 1.0, slip))
        return Pressed(depth, np.where(pushes, elastic, 0.0), np.where(pushes, damping, 0.0),
                       np.where(pushes, self.coefficient * normal * ratio, 0.0))

    def forces(self, gap: Array, speed: Array) -> Array:
        """Normal and tangential forces (…, m, 3), N, on the second bodies; arguments as `pressed`."""
        pressed = self.pressed(gap, speed)
        normal = pressed.elastic - pressed.damping * speed[..., 0]
        return np.stack([normal, -pressed.friction * speed[..., 1], -pressed.friction * speed[..., 2]], axis=-1)

    def rows(self, q: Array, v: Array) -> tuple[Array, Array]:
        """Jacobian (m, 3, nv) of the velocities along normal, x, y, and gaps (m,), at one state."""
        values = contact_values(self, q, v, 1).reshape(len(self.items), 3, -1)
        return values[..., :-2], self._gaps(q, values[:, 0, -1])

    def places(self, q: Array, v: Array) -> Places:
        """Contact kinematics of a state or a batch; `RbdError` names a contact without closest points."""
        lead, count = q.shape[:-1], len(np.atleast_2d(q))
        out = np.empty((count, len(self.items), PLACE))
        status = contact_places_entry.call(self.model._block, self.contacts.block, q.reshape(-1), v.reshape(-1), count,
                                           out.reshape(-1))
        if status == -2:
            raise RbdError("contacts: their places would not be finite")
        if status >= 0:
            raise no_contact(self, status, count)
        out = out.reshape(*lead, *out.shape[1:])
        return Places(out[..., AXES:AXES + 9].reshape(*out.shape[:-1], 3, 3), out[..., POINT:POINT + 3],
                      self._gaps(q, out[..., GAP]), out[..., SPEED:SPEED + 3])

    def _gaps(self, q: Array, gap: Array) -> Array:
        """Gaps, positive for bodies outside the rectangle of a plane with a size."""
        if not self._faces:
            return gap
        poses, gap = forward_kinematics(self.model, q), np.array(gap)
        for i, face, other in self._faces:
            F, center = (_pose(self.model, poses, surface) @ np.asarray(surface.frame) for surface in (face, other))
            local = np.swapaxes(F[..., :3, :3], -1, -2) @ (center - F)[..., :3, 3:]
            beside = (np.abs(local[..., :2, 0]) > 0.5 * np.asarray(face.size)).any(axis=-1)
            gap[..., i] = np.where(beside, np.abs(gap[..., i]), gap[..., i])
        return gap

    def world_forces(self, places: Places) -> Array:
        """Forces (…, m, 3), N, on the second bodies, world axes."""
        local = self.forces(places.gap, places.speed[..., [2, 0, 1]])[..., [1, 2, 0], None]
        return np.asarray((places.axes @ local)[..., 0])


def _pose(model: RobotModel, poses: Array, surface: Surface) -> Array:
    """Pose (…, 4, 4) of the surface's link."""
    if surface.link == WORLD and WORLD not in model.body_names:
        return np.eye(4)
    return np.asarray(poses[..., model.body_index(surface.link), :, :])


def contact_wrenches(model: RobotModel, contacts: Sequence[CompliantContact], q: ArrayLike, v: ArrayLike) -> Array:
    """Wrenches of compliant contacts on the links at q (nq,), v (nv,): (nb, 6), or of a batch (N, nb, 6); moment, then
    force, in the links' frames, about their origins: `external_wrenches` of all functions of dynamics.

    Opposite wrenches act on both bodies of a closed contact. SI units. `RbdError` names a contact whose surfaces
    have no unique closest points, and for wrong input.

        >>> model = rbd.sample("ball_on_plate")
        >>> plate, ball = rbd.surfaces_of(rbd.sample_path("ball_on_plate"), "plate")[4], rbd.Sphere("ball", 0.03)
        >>> soft = rbd.CompliantContact(plate, ball, stiffness=2e5, dissipation=2.0)
        >>> rbd.contact_wrenches(model, [soft], model.neutral(), np.zeros(model.nv)).shape
        (6, 6)
    """
    bound = CompliantContacts(model, contacts)
    inputs = states(model, positions={"q": q}, rates={"v": v})
    Q, V = inputs.arrays
    lead = np.broadcast_shapes(Q.shape[:-1], V.shape[:-1])
    Q, V = (np.array(np.broadcast_to(x, (*lead, x.shape[-1]))) for x in (Q, V))    # kernels need contiguous arrays
    out = np.zeros((*lead, len(model.body_names), 6))
    if not bound.items or not out.size:
        return out
    places, poses = bound.places(Q, V), forward_kinematics(model, Q)
    force = bound.world_forces(places)
    for c, item in enumerate(bound.items):
        for link, sign in ((item.first.link, -1.0), (item.second.link, 1.0)):
            if link == WORLD and WORLD not in model.body_names:
                continue
            i = model.body_index(link)
            back = np.swapaxes(poses[..., i, :3, :3], -1, -2)
            arm = places.point[..., c, :] - poses[..., i, :3, 3]
            for part, value in ((slice(0, 3), np.cross(arm, force[..., c, :])), (slice(3, 6), force[..., c, :])):
                out[..., i, part] += sign * (back @ value[..., None])[..., 0]
    inputs.finite(contact_wrenches=out)
    return out


