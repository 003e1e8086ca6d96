"""Feedback linearisation of robots with elastic joints, from the measured state of links and motors.

Each joint has linear error dynamics of the order of its drive (`poles`): rigid 2, series elastic and variable stiffness
4, springs with damping 3 (their deflection is a stable internal dynamics), the stiffness 2. The derivatives of the
motion are computed successively, because the law prescribes the derivatives that it sets directly, and thereby their
derivatives (mixed case of De Luca 1998, without his dynamic extension):

|              | rigid             | spring with damping            | spring without damping                 |
|--------------|-------------------|--------------------------------|----------------------------------------|
| acceleration | law               | `M q̈ + h = τ`, τ of the spring | `M q̈ + h = τ`, τ of the spring         |
| jerk         | d/dt of the law   | law                            | d/dt of `M q̈ + h = τ`, τ̇ of the spring |
| snap         | d²/dt² of the law | d/dt of the law                | law                                    |

Then τ, τ̇, τ̈ of this motion give the motors: `θ̈ = q̈ + φ̈`, `τ_m = B θ̈ + load + τ_f(θ̇)`.
"""
from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..derivatives.time_derivatives import inverse_dynamics_time_derivatives
from ..dynamics.inverse import bias_effort
from ..dynamics.mass_matrix import mass_matrix
from ..errors import RbdError
from ..model.inertia import Array
from ..model.state import real, states
from .actuation import Actuation
from .motor_reference import link_efforts, stiffness_motion
from ..dynamics.friction import friction_effort, friction_effort_derivatives
from .poles import FeedbackGains
from .spring_motion import Motion, solve, variable_partials
from .variable_stiffness import Partials


class FeedbackLinearization(NamedTuple):
    """effort (nm,) of the motors and the resulting motor_acceleration (nm,); acceleration, jerk, snap (nv,) of the
    links in the measured state under this effort; torque (nv,), stiffness (nv,) of the springs (inf at rigid joints).
    """

    effort: Array
    motor_acceleration: Array
    acceleration: Array
    jerk: Array
    snap: Array
    torque: Array
    stiffness: Array


def feedback_linearization(actuation: Actuation, gains: FeedbackGains, q: ArrayLike, v: ArrayLike,
                           motor_position: ArrayLike, motor_velocity: ArrayLike, reference: ArrayLike,
                           stiffness: ArrayLike | None = None) -> FeedbackLinearization:
    """Motor efforts for the error dynamics of `gains`, in one measured state.

    q, v (nv,): links; motor_position, motor_velocity (nm,): motors behind the gears (those of rigid joints are
    ignored). reference (5, nv): q, v, a, jerk, snap. stiffness (n,) or (3, n): k, k̇, k̈ of the joints in
    `actuation.variable`, by default that of their drives. Raises `RbdError` naming the input, or the joint whose
    torque and stiffness cannot be set independently in this state.

        >>> model = rbd.sample("two_link")
        >>> drive = rbd.SeriesDrive(rbd.SeriesSpring([500.0]), motor=rbd.Motor(rotor_inertia=1e-4, gear_ratio=100.0))
        >>> arm = rbd.Actuation(model, {"shoulder": drive, "elbow": drive})
        >>> gains, rest = rbd.FeedbackGains.placed(arm, 20.0), np.zeros((5, 2))
        >>> rbd.feedback_linearization(arm, gains, [0, 0], [0, 0], [0, 0], [0, 0], rest).effort.round(1)
        array([0., 0.])
    """
    nv, nm = actuation.nv, actuation.nm
    checked = states(actuation.model, positions={"q": q}, rates={"v": v})
    if checked.batch is not None:
        raise RbdError("feedback linearisation takes one measured state, not a batch")
    q, v = checked.arrays
    z, z_rate = _array("motor_position", motor_position, (nm,)), _array("motor_velocity", motor_velocity, (nm,))
    r = _array("reference", reference, (5, nv))
    desired = stiffness_motion(actuation, stiffness, ())

    solution = linearized(actuation, Links(actuation), gains, q, v, z, z_rate, r, desired)
    checked.finite(effort=solution.effort, motor_acceleration=solution.motor_acceleration, torque=solution.torque)
    return solution


class Links:
    """Link dynamics of the law, with joint friction."""

    def __init__(self, actuation: Actuation) -> None:
        self.actuation, self.model = actuation, actuation.model

    def mass_matrix(self, q: Array) -> Array:
        """M (nv, nv)."""
        return mass_matrix(self.model, q)

    def bias(self, q: Array, v: Array) -> Array:
        """h(q, q̇), with friction (nv,)."""
        bias = bias_effort(self.model, q, v)
        return bias + friction_effort(self.model, v) if self.actuation.rubs else bias

    def efforts(self, q: Array, v: Array, a: Array, jerk: Array, snap: Array | None = None) -> Array:
        """τ, τ̇ and with the snap τ̈ (…, nv)."""
        if snap is not None:
            return link_efforts(self.actuation, q, v, a, jerk, snap)
        tau = inverse_dynamics_time_derivatives(self.model, q, v, a, jerk)
        if self.actuation.rubs:
            tau = tau + np.stack([friction_effort(self.model, v),
                                  friction_effort_derivatives(self.model, v, a, jerk)[0]])
        return tau


def linearized(actuation: Actuation, links: Any, gains: FeedbackGains, q: Array, v: Array, z: Array, z_rate: Array,
               r: Array, wanted: Motion) -> FeedbackLinearization:
    """`feedback_linearization` of checked arrays; they may be complex, if the actuation and `links` are."""
    nv, nm = actuation.nv, actuation.nm
    springs = _measured(actuation, q, v, z, z_rate)
    a, jerk, snap = _link_motion(actuation, links, gains.links, q, v, r, springs)
    tau = links.efforts(q, v, a, jerk, snap)
    motor = _motor_acceleration(actuation, gains.stiffness, a, tau, wanted, springs)

    rigid, elastic = actuation.rigid, actuation.elastic
    torque, load = springs.torque.copy(), springs.load
    torque[rigid] = load[rigid] = tau[0][rigid]
    moving = np.concatenate([v, z_rate[nv:]])
    moving[elastic] = z_rate[elastic]
    effort = load + actuation.friction.effort(moving, load)
    behind = np.concatenate([elastic, np.arange(nv, nm)])
    effort[behind] += (actuation.inertia * motor)[behind]
    return FeedbackLinearization(effort, motor, a, jerk, snap, torque, springs.stiffness)


class _Springs(NamedTuple):
    """Springs in the measured state: torque, its rate without dampers, stiffness, rate of the deflection (nv,) each,
    slope ∂k/∂φ of series springs (nv,), load (nm,) of the motors; and of joints with variable stiffness (n,): partial
    derivatives, rates of σ and of the stiffness.
    """

    torque: Array
    torque_rate: Array
    stiffness: Array
    rate: Array
    slope: Array
    load: Array
    partials: Partials | None = None
    sigma_rate: Array | None = None
    stiffness_rate: Array | None = None


def _measured(actuation: Actuation, q: Array, v: Array, z: Array, z_rate: Array) -> _Springs:
    nv, series, variable = actuation.nv, actuation.series, actuation.variable
    torque, torque_rate, rate, slope = np.zeros((4, nv), z.dtype)
    k, load = np.full(nv, np.inf, z.dtype), np.zeros(actuation.nm, z.dtype)
    if series.size:
        phi, phi_rate, spring = z[series] - q[series], z_rate[series] - v[series], actuation.series_spring
        k[series], slope[series], rate[series] = spring.stiffness(phi), spring.stiffness_slope(phi), phi_rate
        torque[series] = load[series] = spring.torque(phi) + actuation.spring_damping * phi_rate
        torque_rate[series] = k[series] * phi_rate
    if not variable.size:
        return _Springs(torque, torque_rate, k, rate, slope, load)
    theta, sigma, theta_rate, sigma_rate, reaction = np.empty((5, variable.size), z.dtype)
    for joints, group in actuation.groups:
        first, second = variable[joints], nv + joints
        theta[joints], sigma[joints] = group.from_motors(z[first], z[second])
        theta_rate[joints], sigma_rate[joints] = group.from_motors(z_rate[first], z_rate[second])
        reaction[joints] = group.reaction(theta[joints] - q[first], sigma[joints])
    P = variable_partials(actuation, theta - q[variable], sigma)
    phi_rate = theta_rate - v[variable]
    rate[variable], k[variable], torque[variable] = phi_rate, P.p, P.f
    torque_rate[variable] = P.p * phi_rate + P.s * sigma_rate
    for joints, group in actuation.groups:
        load[variable[joints]], load[nv + joints] = group.loads(P.f[joints], reaction[joints])
    return _Springs(torque, torque_rate, k, rate, slope, load, P, sigma_rate, P.pp * phi_rate + P.ps * sigma_rate)


def _link_motion(actuation: Actuation, links: Any, g: Array, q: Array, v: Array, r: Array,
                 springs: _Springs) -> tuple[Array, Array, Array]:
    """Acceleration, jerk and snap (nv,): the table above, line by line."""
    two, three, four = (actuation.of_order[order] for order in (2, 3, 4))
    M = links.mass_matrix(q)
    a, jerk, snap = np.zeros((3, actuation.nv), q.dtype)

    e0, e1 = r[0] - q, r[1] - v
    a[two] = (r[2] + g[:, 1] * e1 + g[:, 0] * e0)[two]
    bias = links.bias(q, v)
    a[actuation.elastic] = _solved(M, actuation.elastic, two, springs.torque - bias, a)

    e2 = r[2] - a
    jerk[two] = (r[3] + g[:, 1] * e2 + g[:, 0] * e1)[two]
    jerk[three] = (r[3] + g[:, 2] * e2 + g[:, 1] * e1 + g[:, 0] * e0)[three]
    if four.size:
        bias = links.efforts(q, v, a, 0.0 * a)[1]    # d/dt of M q̈ + h, without M q⃛
        jerk[four] = _solved(M, four, np.concatenate([two, three]), springs.torque_rate - bias, jerk)

    e3 = r[3] - jerk
    snap[two] = (r[4] + g[:, 1] * e3 + g[:, 0] * e2)[two]
    snap[three] = (r[4] + g[:, 2] * e3 + g[:, 1] * e2 + g[:, 0] * e1)[three]
    snap[four] = (r[4] + g[:, 3] * e3 + g[:, 2] * e2 + g[:, 1] * e1 + g[:, 0] * e0)[four]
    return a, jerk, snap


def _motor_acceleration(actuation: Actuation, g: Array, a: Array, tau: Array, wanted: Motion,
                        springs: _Springs) -> Array:
    """Accelerations (nm,) of the motors for the torques τ, τ̇, τ̈ (3, nv) and the error dynamics of the stiffness."""
    series, variable, nv = actuation.series, actuation.variable, actuation.nv
    out = np.zeros(actuation.nm, a.dtype)
    out[:nv] = a
    if series.size:
        bend = (tau[2] - springs.slope * springs.rate**2)[series] / springs.stiffness[series]
        d = actuation.damped
        joints = series[d]
        bend[d] = (tau[1][joints] - springs.stiffness[joints] * springs.rate[joints]) / actuation.spring_damping[d]
        out[series] += bend
    if variable.size:
        P, y, k_rate = springs.partials, springs.sigma_rate, springs.stiffness_rate
        assert P is not None and y is not None and k_rate is not None
        x = springs.rate[variable]
        stiffening = wanted.acceleration + g[:, 1] * (wanted.rate - k_rate) + g[:, 0] * (wanted.value - P.p)
        bend, sigma = solve(actuation, P, tau[2][variable] - (P.pp * x + 2.0 * P.ps * y) * x - P.ss * y * y,
                            stiffening - (P.ppp * x + 2.0 * P.pps * y) * x - P.pss * y * y)
        theta = a[variable] + bend
        for joints, group in actuation.groups:
            out[variable[joints]], out[nv + joints] = group.to_motors(theta[joints], sigma[joints])
    return out


def _solved(M: Array, unknown: NDArray[np.intp], known: NDArray[np.intp], bias: Array, x: Array) -> Array:
    """The unknown part of x, from the unknown rows of `M x = rest`."""
    if not unknown.size:
        return np.zeros(0)
    try:
        if unknown.size == len(M):
            return np.asarray(np.linalg.solve(M, bias))
        right = bias[unknown] - M[np.ix_(unknown, known)] @ x[known]
        return np.asarray(np.linalg.solve(M[np.ix_(unknown, unknown)], right))
    except np.linalg.LinAlgError:
        raise RbdError("feedback linearisation: the mass matrix is singular in this state") from None


def _array(name: str, value: ArrayLike, shape: tuple[int, ...]) -> Array:
    array = real(value, name, str(shape))
    if array.shape != shape or not np.isfinite(array).all():
        raise RbdError(f"{name}: expected finite numbers of shape {shape}, got shape {array.shape}")
    return array
