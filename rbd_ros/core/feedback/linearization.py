"""Dynamics linearised along a motion, of rigid and of elastic joints, and the exact step of a period.

The error `x = (q ⊖ q_d, v − v_d)` on the tangent space of `integrate` obeys `ẋ = A x + B (u − u_d)`:
`A = [[−ad_v, 1], [∂q̈/∂q, ∂q̈/∂v]]`, `B = [[0], [∂q̈/∂τ]]`, where ad_v, of the groups of coordinates with quaternions,
comes from the left trivialization: `d/dt (q ⊖ q_d) = δv − ad_v (q ⊖ q_d)` to first order. Elastic joints: q are links
and motors, `M(q)q̈ + h = τ(q) + u` with the springs' efforts τ(q). Viscous friction counts; that of Coulomb, whose
smoothed slope about rest would count as damping, does not.
"""
from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..actuation.actuation import Actuation
from ..actuation.motor_reference import link_efforts, motor_reference
from ..derivatives.forward import ForwardDerivatives, forward_dynamics_derivatives
from ..dynamics.friction import Friction, fitting
from ..dynamics.inverse import inverse_dynamics
from ..errors import RbdError
from ..imaginary_step import STEP
from ..lie import se3, so3
from ..model.block import IV
from ..model.inertia import Array
from ..model.robot_model import RobotModel
from ..motion.trajectory import Reference
from ..simulation.springs import ArmSprings, with_rotors

AT_ONCE = 1000     # matrices
FEASIBLE = 1e-6    # relative effort of a motion on coordinates that are not driven, for rounding


class Course(NamedTuple):
    """States, accelerations and feed-forward of a motion: q (N, nq), v, a (N, n), effort (N, nu)."""

    q: Array
    v: Array
    a: Array
    effort: Array


class RigidPlant:
    """A robot with efforts at the coordinates of `mask` (nv,)."""

    def __init__(self, model: RobotModel, mask: NDArray[np.bool_], friction: Friction | None) -> None:
        self.model, self.mask, self.friction = model, mask, friction
        self.states = model.velocity_names
        self.inputs = tuple(name for name, driven in zip(self.states, mask, strict=True) if driven)
        self._damping = np.zeros(model.nv)
        if friction is not None:
            self._damping += np.broadcast_to(fitting(model, friction).damping, model.nv)

    def course(self, motion: Reference, t: Array) -> Course:
        """The motion's states and feed-forward; raises `RbdError` if it needs other efforts."""
        q, v, a = motion[:3]
        effort = inverse_dynamics(self.model, q, v, a, friction=self.friction)
        missing = np.where(self.mask, 0.0, np.abs(effort))
        if missing.max(initial=0.0) > FEASIBLE * max(np.abs(effort).max(initial=0.0), 1.0):
            row, column = np.unravel_index(np.argmax(missing), missing.shape)
            raise RbdError(f"motion: at {t[row]:.4g} s it needs {effort[row, column]:.4g} N m or N at "
                           f"'{self.states[column]}', which is not driven: expected a motion of this robot without "
                           f"efforts there, or `actuated` with it (driven: {', '.join(self.inputs) or 'none'})")
        return Course(q, v, a, np.ascontiguousarray(effort[:, self.mask]))

    def linearized(self, course: Course) -> tuple[Array, Array]:
        """A (N, nx, nx) and B (N, nx, nu) of `ẋ = A x + B δu`."""
        slopes = _slopes(self.model, course)
        return _first_order(self.model, course.v, slopes.q, slopes.v - slopes.tau * self._damping,
                            slopes.tau[:, :, self.mask])


class ElasticPlant:
    """A robot with elastic joints: coordinates are the links, then the motors behind springs."""

    mask: NDArray[np.bool_]

    def __init__(self, actuation: Actuation) -> None:
        self.actuation, self._springs = actuation, ArmSprings(actuation)
        self.model, friction = with_rotors(actuation)
        self._damping = np.diag(np.broadcast_to(friction.damping, self.model.nv)) + self._springs.damping
        self.states = self.model.velocity_names
        self.inputs = actuation.motor_names

    def course(self, motion: Reference, t: Array) -> Course:
        """The motion of links and motors, and the motors' efforts, by the flatness of `motor_reference`."""
        q, v, a, jerk, snap = motion
        if jerk is None or snap is None:
            raise RbdError("motion: elastic joints need its jerk and snap, expected a motion with .jerk and .snap")
        motors = motor_reference(self.actuation, q, v, a, link_efforts(self.actuation, q, v, a, jerk, snap))
        states = np.empty((3, len(q), self._springs.size))
        states[..., self._springs.motors] = motors[:3]
        states[..., :self.actuation.nv] = q, v, a
        return Course(states[0], states[1], states[2], motors.effort)

    def linearized(self, course: Course) -> tuple[Array, Array]:
        """A (N, nx, nx) and B (N, nx, nu) of `ẋ = A x + B δu`."""
        springs, n = self._springs, self._springs.size
        stiffness = np.empty((len(course.q), n, n))    # of the efforts on the coordinates, along x
        for j in range(n):
            moved = course.q + 1j * STEP * np.eye(n)[j]
            stiffness[:, :, j] = np.imag(spring_efforts(self.actuation, springs, moved)) / STEP
        slopes = _slopes(self.model, course)
        return _first_order(self.model, course.v, slopes.q + slopes.tau @ stiffness,
                            slopes.v - slopes.tau @ self._damping, slopes.tau[:, :, springs.motors])


Plant = RigidPlant | ElasticPlant


def spring_efforts(actuation: Actuation, springs: ArmSprings, x: Any) -> Any:
    """Efforts of all springs on links and motors at x (N, n), which may be complex; without damping."""
    out = np.zeros_like(x)
    motors, series, variable = springs.motors, actuation.series, actuation.variable
    tau = actuation.series_spring.torque(x[:, motors[series]] - x[:, series])
    out[:, series], out[:, motors[series]] = tau, -tau
    for joints, spring in actuation.groups:
        link = variable[joints]
        first, second = motors[link], motors[actuation.nv + joints]
        theta, sigma = spring.from_motors(x[:, first], x[:, second])
        phi = theta - x[:, link]
        tau = spring.partials(phi, sigma).f
        loads = spring.loads(tau, spring.reaction(phi, sigma))
        out[:, link], out[:, first], out[:, second] = tau, -loads[0], -loads[1]
    return out


def _slopes(model: RobotModel, course: Course) -> ForwardDerivatives:
    """Derivatives of forward dynamics at the accelerations of the motion."""
    effort = inverse_dynamics(model, course.q, course.v, course.a)
    return forward_dynamics_derivatives(model, course.q, course.v, effort)


def _first_order(model: RobotModel, v: Array, by_q: Array, by_v: Array, by_u: Array) -> tuple[Array, Array]:
    count, n, nu = by_u.shape
    A, B = np.zeros((count, 2 * n, 2 * n)), np.zeros((count, 2 * n, nu))
    A[:, :n, :n] = -_ad(model, v)
    A[:, :n, n:] = np.eye(n)
    A[:, n:, :n], A[:, n:, n:], B[:, n:] = by_q, by_v, by_u
    return A, B


def _ad(model: RobotModel, v: Array) -> Array:
    """ad of the velocities (N, n, n) of the coordinates with a quaternion; the other coordinates commute."""
    out = np.zeros((*v.shape, v.shape[-1]))
    for row, kind in model._kinds:
        if kind.quaternion is not None:
            begin = int(row[IV])
            at = slice(begin, begin + (6 if kind.free else 3))
            out[:, at, at] = se3.ad(v[:, at]) if kind.free else so3.hat(v[:, at])
    return out


def discretized(A: Array, B: Array, period: float) -> tuple[Array, Array]:
    """The exact step `x⁺ = Φ x + Γ u` of `ẋ = A x + B u` over a period with constant A, B and u: Φ, Γ are the rows of
    `exp([[A, B], [0, 0]] h)`.
    """
    from scipy.linalg import expm    # local import: saves 20 MB in nodes without planning

    nx, nu = B.shape[-2:]
    free, forced = np.empty_like(A), np.empty_like(B)
    for begin in range(0, len(A), AT_ONCE):
        part = slice(begin, begin + AT_ONCE)
        generator = np.zeros((len(A[part]), nx + nu, nx + nu))
        generator[:, :nx, :nx], generator[:, :nx, nx:] = period * A[part], period * B[part]
        step = expm(generator)
        free[part], forced[part] = step[:, :nx, :nx], step[:, :nx, nx:]
    return free, forced
