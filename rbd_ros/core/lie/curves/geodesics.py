"""Minimal geodesics on SE(3) for the left-invariant metric ⟨V, V⟩ = α|ω|² + β|v|² (P eq. 19–23, Q = 1), or another.

With this metric SE(3) is, as a Riemannian manifold, the product of SO(3) (bi-invariant) and ℝ³, for any α, β > 0:
the covariant acceleration of a curve (R, p) with body twist (ω, v) is (ω̇, Rᵀp̈), where Rᵀp̈ = v̇ + ω × v.

Minimum velocity, min ∫⟨V, V⟩ dt:              ω̇ = 0,          p̈ = 0.
Minimum acceleration, min ∫|∇V|² dt:           ω⃛ = ω̈ × ω,     p⁗ = 0.

(P's U̇ = [Uᵀ, U] is to be read projected on se(3): ω̇ = 0, v̇ = −ω × v, the first line.) A minimum-velocity curve is
not a screw motion exp(t log(T₀⁻¹T₁)), unless the two coincide. The second rotation equation says that Rω̈ is constant;
it is solved as a two-point boundary value problem by shooting, with Taylor series to rounding error.
"""
from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ...errors import RbdError
from .. import so3
from . import metric_geodesics
from .motion import Motion, ends, single, unit_time
from .metrics import Metric
from .shooting import shoot
from ..so3 import Array

_ORDER = 24           # of the Taylor series
_REACH = 0.6          # step of a Taylor series times the largest rate of the motion
_SMALLEST_STEP = 5e-3    # of the continuation in the end velocities


@dataclass(frozen=True)
class Geodesic:
    """A curve on SE(3), 0 ≤ t ≤ `duration` in s; calling it at times t (any shape) gives a `Motion`."""

    duration: float
    start: Array                # R at t = 0
    knots: Array                # (K,) unit times where the rotation's Taylor series begin; the last is 1
    rotation: Array             # (K, 10, order + 1): Taylor coefficients of quaternion, ω, ω̇ from each knot
    translation: Array          # (4, 3): coefficients of p in the unit time, lowest first

    def __call__(self, t: ArrayLike) -> Motion:
        s = unit_time(t, self.duration)
        piece = np.clip(np.searchsorted(self.knots, s, side="right") - 1, 0, len(self.rotation) - 1)
        step = s - self.knots[piece]
        state = np.zeros((*s.shape, 10))
        for k in range(self.rotation.shape[-1] - 1, -1, -1):
            state = state * step[..., None] + self.rotation[piece, :, k]
        power = s[..., None] ** np.arange(4)
        p = power @ self.translation
        velocity = (power[..., :3] * (1, 2, 3)) @ self.translation[1:] / self.duration
        acceleration = (power[..., :2] * (2, 6)) @ self.translation[2:] / self.duration**2
        R = self.start @ so3.from_quaternion(state[..., :4])
        omega, alpha = state[..., 4:7] / self.duration, state[..., 7:10] / self.duration**2
        v = (velocity[..., None, :] @ R)[..., 0, :]
        pose = np.zeros((*s.shape, 4, 4))
        pose[..., :3, :3], pose[..., :3, 3], pose[..., 3, 3] = R, p, 1.0
        v_dot = (acceleration[..., None, :] @ R)[..., 0, :] - np.cross(omega, v)
        return Motion(pose, np.concatenate([omega, v], -1), np.concatenate([alpha, v_dot], -1))


def minimum_velocity(T0: ArrayLike, T1: ArrayLike, duration: float = 1.0,
                     metric: Metric | None = None) -> Geodesic | metric_geodesics.MetricGeodesic:
    """Curve of least ∫⟨V, V⟩ dt from pose T0 to T1 (4, 4) in `duration` s: R₀ exp(s log(R₀ᵀR₁)), p₀ + s(p₁ − p₀).

    metric: another one, left- or right-invariant with a general Q (P eq. 16–20). The equations are necessary; of their
    solutions this is the one that deforms continuously into the curve above as Q does, and where there is none it
    raises.
    """
    T0, T1, duration = ends(T0, T1, duration)
    if metric is not None:
        return metric_geodesics.shortest(metric, T0, T1, duration)
    r = so3.log(T0[:3, :3].T @ T1[:3, :3])
    knots, rotation = _integrate(np.concatenate([r, np.zeros(6)]))
    translation = np.stack([T0[:3, 3], T1[:3, 3] - T0[:3, 3], np.zeros(3), np.zeros(3)])
    return _frozen(duration, T0[:3, :3], knots, rotation, translation)


def minimum_acceleration(T0: ArrayLike, T1: ArrayLike, V0: ArrayLike, V1: ArrayLike,
                         duration: float = 1.0) -> Geodesic:
    """Curve of stationary ∫|∇V|² dt, in `duration` s, from pose T0 to T1 (4, 4) with body twists V0, V1 (6,) there.

    The equations are necessary, and several curves may satisfy them (any number of extra turns). This is the one
    that deforms continuously into the shortest rotation as the end velocities go to zero; where that branch has
    ended (fast ends, |ω|·duration above about 4 rad), into one by a turn less or more; where these too, it raises.
    """
    T0, T1, duration = ends(T0, T1, duration)
    V0, V1 = single("V0", V0, (6,)) * duration, single("V1", V1, (6,)) * duration    # in unit time
    R0, R1 = T0[:3, :3], T1[:3, :3]
    p0, delta, v0, v1 = T0[:3, 3], T1[:3, 3] - T0[:3, 3], R0 @ V0[3:], R1 @ V1[3:]
    translation = np.stack([p0, v0, 3.0 * delta - 2.0 * v0 - v1, v0 + v1 - 2.0 * delta])    # cubic Hermite
    knots, rotation = _integrate(_shoot(so3.log(R0.T @ R1), V0[:3], V1[:3]))
    return _frozen(duration, R0, knots, rotation, translation)


def _frozen(duration: float, *arrays: Array) -> Geodesic:
    copies = [np.array(array) for array in arrays]
    for copy in copies:
        copy.setflags(write=False)
    return Geodesic(duration, *copies)


def _taylor(state: Any) -> Any:
    """Taylor coefficients (13, …, order + 1) of q̇ = q∘ω/2, ω̇ = α, α̇ = d, ḋ = d × ω from state (q, ω, α, d) (13, …)."""
    y = np.zeros((*state.shape, _ORDER + 1), state.dtype)
    y[..., 0] = state
    (qx, qy, qz, qw), (ox, oy, oz), (dx, dy, dz) = y[:4], y[4:7], y[10:]
    for k in range(_ORDER):
        a, b, c, w = (part[..., :k + 1] for part in (qx, qy, qz, qw))
        e, f, g = (part[..., :k + 1] for part in (dx, dy, dz))
        x, u, z = (part[..., k::-1] for part in (ox, oy, oz))
        products = (0.5 * (w * x + b * z - c * u), 0.5 * (w * u + c * x - a * z), 0.5 * (w * z + a * u - b * x),
                    -0.5 * (a * x + b * u + c * z), f * z - g * u, g * x - e * z, e * u - f * x)
        for row, product in zip((0, 1, 2, 3, 10, 11, 12), products, strict=True):
            y[row, ..., k + 1] = product.sum(-1) / (k + 1)
        y[4:10, ..., k + 1] = y[7:13, ..., k] / (k + 1)
    return y


def _integrate(initial: Any) -> tuple[Array, Any]:
    """Knots (K,) and Taylor coefficients (K, 10, …) over unit time, from q = 1 and ω, ω̇, ω̈ (9, …) at its start.

    The last knot is the end, and the first coefficients there are the end state.
    """
    state = np.zeros((13, *initial.shape[1:]), initial.dtype)
    state[3], state[4:] = 1.0, initial
    knots, pieces = [0.0], [_taylor(state)]
    while knots[-1] < 1.0:
        rate = max(np.sqrt((state[i:i + 3].real ** 2).sum(0)).max() ** (1.0 / n) for n, i in enumerate((4, 7, 10), 1))
        remaining = 1.0 - knots[-1]
        last = rate * remaining <= _REACH
        step = remaining if last else _REACH / rate
        state = pieces[-1] @ step ** np.arange(_ORDER + 1)
        knots.append(1.0 if last else knots[-1] + step)
        pieces.append(_taylor(state))
    return np.array(knots), np.stack(pieces)[:, :10]


def _shoot(r: Array, omega0: Array, omega1: Array) -> Array:
    """(ω, ω̇, ω̈) at the start of unit time, so that the rotation ends at exp(r) with ω₁."""
    angle = np.linalg.norm(r)
    axis = r / angle if angle > 0.0 else np.array([0.0, 0.0, 1.0])
    for turns in (0, -1, 1):
        unknown = _continue(r + 2.0 * np.pi * turns * axis, omega0, omega1)
        if unknown is not None:
            return np.concatenate([omega0, unknown])
    raise RbdError(f"no minimum-acceleration rotation found with end velocities {omega0}, {omega1} rad per duration; "
                   "expected slower ends or a shorter duration")


def _continue(r: Array, omega0: Array, omega1: Array) -> Array | None:
    """(ω̇, ω̈) at the start, from that between ends at rest to that with ω₀, ω₁; None where the branch folds back."""
    return shoot(partial(_miss, r, omega0, omega1), np.concatenate([6.0 * r, -12.0 * r]), _SMALLEST_STEP)


def _miss(r: Array, omega0: Array, omega1: Array, share: float, unknown: Any) -> Any:
    """Error (N, 6) of the end rotation and angular velocity, from (ω̇, ω̈) (N, 6) at the start, for a share of ω₀, ω₁.
    """
    omega0, omega1 = share * omega0, share * omega1
    x, y, z, w = so3.exp_quaternion(-r)
    to_target = np.array([[w, -z, y, x], [z, w, -x, y], [-y, x, w, z], [-x, -y, -z, w]])    # left multiplication
    start = np.broadcast_to(omega0[:, None], (3, len(unknown)))
    _, pieces = _integrate(np.concatenate([start, unknown.T]))
    x, y, z, w = to_target @ pieces[-1, :4, :, 0]
    sign = np.where(w[0].real < 0.0, -2.0, 2.0)
    return np.concatenate([sign * np.stack([x, y, z]), pieces[-1, 4:7, :, 0] - omega1[:, None]]).T
