"""Compliant contacts in a simulation step: elastic efforts, implicit damping, a stability check.

The elastic force acts at the stages of `rk4`, at the start of a step of `semi_implicit`, and for `variational` at the
predicted midpoint: the Störmer–Verlet method for a mass on a spring, which bounds the energy error. Dissipation and
friction are explicit with `rk4`; the other integrators use implicit damping with coefficients of a trial step, so that
friction is stable at any slip speed and never adds energy.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...dynamics.contact.compliant import CompliantContacts, Pressed
from ...dynamics.inverse_mass_matrix import inverse_mass_matrix
from ...errors import RbdError
from ...lie.so3 import quaternion_to_matrix
from ...lie.spatial import rotate
from ...model.inertia import Array
from ...model.robot_model import RobotModel
from ...model.surfaces.compliant import CompliantContact
from ..variational import Variational
from .records import ContactState

LARGEST = 1.0    # largest phase (rad) of the stiffest oscillation per step, and share of velocity damped explicitly


class CompliantMotion:
    """Compliant contacts of a simulated model; h: the step (s)."""

    def __init__(self, model: RobotModel, contacts: Sequence[CompliantContact], h: float) -> None:
        self.model, self.h = model, h
        self.bound = CompliantContacts(model, contacts)
        self._floating = [(joint.idx_q, joint.idx_v) for joint in model.joints if joint.type == "floating"]

    def effort(self, q: Array, v: Array) -> Array:
        """Jᵀ F (nv,) of all forces for explicit integration; stiffness is checked at each evaluation, because a contact
        may close and open within a step.
        """
        touched = self.touched(q, v)
        if touched is None:
            return np.zeros(len(v))
        self._check(touched, q, v, True)
        return np.einsum("cjn,cj->n", touched.J, self.bound.forces(touched.gap, touched.J @ v))

    def begin(self, q: Array, v: Array, implicit: bool) -> CompliantMotion | Touched | None:
        """Forces in a step from this state, as a function of the state; implicit: elastic forces and `damping`, None if
        all contacts are open.
        """
        if not implicit:
            return self
        self.check(q, v)
        return self.touched(q, v)

    def touched(self, q: Array, v: Array) -> Touched | None:
        """The contacts at this state; raises `RbdError` if one is too stiff for the step."""
        J, gap = self.bound.rows(q, v)
        return None if gap.min() >= 0.0 else Touched(self.bound, J, gap)

    def check(self, q: Array, v: Array, explicit: bool = False) -> None:
        """Raise `RbdError`, naming a contact, if the step is too long for its stiffness or, explicit, its damping."""
        touched = self.touched(q, v)
        if touched is not None:
            self._check(touched, q, v, explicit)

    def _check(self, touched: Touched, q: Array, v: Array, explicit: bool) -> None:
        bound, J, h = self.bound, touched.J, self.h
        pressed = bound.pressed(touched.gap, J @ v)
        closed = pressed.depth > 0.0
        J = J[closed]
        W = inverse_mass_matrix(self.model, q)
        stiff = np.sqrt(bound.exponent * pressed.elastic / np.where(closed, pressed.depth, 1.0))[closed, None] * J[:, 0]
        tests = [("stiffness", h * np.sqrt(_largest(stiff @ W @ stiff.T)), stiff)]
        if explicit:
            lost = np.sqrt(np.stack([pressed.damping, pressed.friction, pressed.friction], axis=1))[closed, :, None] * J
            for what, part in (("dissipation", lost[:, 0]), ("friction", lost[:, 1:].reshape(-1, J.shape[-1]))):
                tests.append((what, h * _largest(part @ W @ part.T), part))
        for what, rate, part in tests:
            if rate > LARGEST:
                rates = np.einsum("ij,jk,ik->i", part, W, part).reshape(len(J), -1).max(axis=1)
                i = int(np.flatnonzero(closed)[np.argmax(rates)])
                other = "" if what == "stiffness" else ", or another integrator, which takes it implicitly"
                raise RbdError(
                    f"{what} of contact '{bound.names[i]}', {1e3 * pressed.depth[i]:.3g} mm deep, is too high for the "
                    f"step of {h:g} s: use at most {h * LARGEST / rate:.1e} s{other}")

    def step(self, variational: Variational, q: Array, v: Array, h: float, effort: Array,
             wrenches: Any) -> tuple[Array, Array]:
        """A step of h (s) of the variational integrator."""
        middle = self._middle(q, 0.5 * h * v)
        self.check(middle, v)
        touched = self.touched(middle, v)
        if touched is None:
            return variational.advance(q, v, h, effort, wrenches)
        before = variational.momentum
        push, damping = touched.parts(v)
        v_1 = variational.advance(q, v, h, effort + push, wrenches, damping)[1]
        variational.momentum = before
        push, damping = touched.parts(0.5 * (v + v_1))
        return variational.advance(q, v, h, effort + push, wrenches, damping)

    def _middle(self, q: Array, dv: Array) -> Array:
        """Position after dv; floating bodies on straight lines, not on screws."""
        middle = self.model.integrate(q, dv)
        for i, k in self._floating:
            x, y, z, w = q[i + 3:i + 7]
            middle[i:i + 3] = q[i:i + 3] + rotate(quaternion_to_matrix(x, y, z, w), dv[k + 3:k + 6])
        return middle

    def states(self, q: Array, v: Array) -> tuple[ContactState, ...]:
        """Contact states, with forces, at this state."""
        bound = self.bound
        places = bound.places(q, v)
        force, normal = bound.world_forces(places), places.axes[..., 2]
        slip = np.hypot(places.speed[:, 0], places.speed[:, 1])
        pushes = np.einsum("ci,ci->c", force, normal) > 0.0
        sticks = (slip <= bound.slip_speed) & (bound.coefficient > 0.0)
        modes = np.where(pushes, np.where(sticks, "sticking", "sliding"), "open").tolist()
        return tuple(ContactState(name, modes[i], places.point[i], normal[i], force[i], np.zeros(3),
                                  float(places.gap[i])) for i, name in enumerate(bound.names))


class Touched:
    """Compliant contacts with J (m, 3, nv) and gaps (m,) fixed within a step."""

    def __init__(self, bound: CompliantContacts, J: Array, gap: Array) -> None:
        self.bound, self.J, self.gap = bound, J, gap

    def effort(self, q: Array, v: Array) -> Array:
        """Elastic efforts (nv,)."""
        return self.parts(v)[0]

    def parts(self, v: Array) -> tuple[Array, Array]:
        """Elastic efforts (nv,), and the matrix (nv, nv) of damping at velocities v."""
        pressed: Pressed = self.bound.pressed(self.gap, self.J @ v)
        weights = np.stack([pressed.damping, pressed.friction, pressed.friction], axis=1)
        flat = self.J.reshape(-1, self.J.shape[-1])
        return pressed.elastic @ self.J[:, 0], flat.T @ (weights.reshape(-1, 1) * flat)

    def damping(self, v: Array, free: Array, M: Array, M_damped: Array, h: float) -> Array:
        """Damping matrix for a step from v, with coefficients at the end of the trial step `M_damped⁻¹ M free`."""
        return self.parts(np.asarray(np.linalg.solve(M_damped + h * self.parts(v)[1], M @ free)))[1]


def _largest(matrix: Array) -> float:
    return float(np.linalg.eigvalsh(matrix)[-1])
