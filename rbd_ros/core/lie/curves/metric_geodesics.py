"""Minimum-velocity geodesics on SE(3) of a metric with any Q: P eq. 19, 20.

    left-invariant:   Ṫ = T V̂,   Q V̇ = ad_Vᵀ Q V
    right-invariant:  Ṫ = V̂ T,   Q V̇ = −ad_Vᵀ Q V

the first being Euler's equation of a free rigid body with generalized inertia Q. T ↦ T⁻¹ takes one metric to the
other, so the second is solved as the first between T₀⁻¹ and T₁⁻¹. Two-point boundary value problem by shooting, along
Q from that of `geodesics.minimum_velocity` to the wanted one; Taylor series to rounding error.
"""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ...errors import RbdError
from .. import se3, so3
from .motion import Motion, unit_time
from .metrics import Metric
from .shooting import shoot
from ..so3 import Array

_ORDER = 24
_REACH = 0.5             # step of a Taylor series times the largest rate
_SMALLEST_STEP = 1e-3    # of the continuation in Q
_MOST_PIECES = 2000      # of one curve
# structure constants: (ad_U W)_i = _BRACKET[i, j, k] U_j W_k; and the elements of se(3) that belong to the axes
_BRACKET = np.stack([se3.ad(e) for e in np.eye(6)], axis=1)
_HAT = np.stack([se3.hat(e) for e in np.eye(6)], axis=-1)


@dataclass(frozen=True, eq=False)
class MetricGeodesic:
    """A curve on SE(3), 0 ≤ t ≤ `duration` in s; calling it at times t (any shape) gives a `Motion`."""

    duration: float
    metric: Metric
    knots: Array    # (K,) unit times where the Taylor series begin
    twist: Array    # (K, order + 1, 6): their coefficients, of V of the left-invariant problem
    pose: Array     # (K, order + 1, 4, 4): of its T

    def __call__(self, t: ArrayLike) -> Motion:
        s = unit_time(t, self.duration)
        piece = np.clip(np.searchsorted(self.knots, s, side="right") - 1, 0, len(self.knots) - 1)
        power = (s - self.knots[piece])[..., None] ** np.arange(_ORDER + 1)
        T = np.einsum("...k,...kij->...ij", power, self.pose[piece])
        V = np.einsum("...k,...ki->...i", power, self.twist[piece]) / self.duration
        slope = np.arange(1, _ORDER + 1)[:, None] * self.twist[piece][..., 1:, :]
        Vdot = np.einsum("...k,...ki->...i", power[..., :-1], slope) / self.duration**2
        if self.metric.side == "right":    # V = −(ẊX⁻¹)^∨ of the wanted X = T⁻¹, whose body twist is Ad_T of that
            forward = se3.Ad(T)
            T, V, Vdot = se3.inverse(T), *(-(forward @ x[..., None])[..., 0] for x in (V, Vdot))
        return Motion(T, V, Vdot)

    @property
    def length(self) -> float:
        """∫ √⟨V, V⟩ dt: the speed is constant along a geodesic."""
        return float(np.sqrt(self.metric.square(self.twist[0, 0])))


def shortest(metric: Metric, T0: Array, T1: Array, duration: float) -> MetricGeodesic:
    """The geodesic from pose T0 to T1 (4, 4), valid poses, in `duration` s; raises `RbdError` if none is found."""
    if not isinstance(metric, Metric):
        raise RbdError(f"metric: expected a Metric, got {type(metric).__name__}")
    if metric.side == "right":
        T0, T1 = se3.inverse(T0), se3.inverse(T1)
    target = se3.inverse(T0) @ T1
    V = _shoot(metric.Q, target)
    knots, twist, pose = _integrate(metric.Q, V)
    parts = [knots, twist.real.copy(), T0 @ pose.real]
    for part in parts:
        part.setflags(write=False)
    return MetricGeodesic(duration, metric, *parts)


def _series(rate: Any, V: Any, T: Any) -> tuple[Any, Any]:
    """Taylor coefficients (…, order + 1, 6) and (…, order + 1, 4, 4) of V̇_i = rate[i, j, k] V_j V_k, Ṫ = T V̂."""
    lead = V.shape[:-1]
    v, x = np.zeros((*lead, _ORDER + 1, 6), V.dtype), np.zeros((*lead, _ORDER + 1, 4, 4), V.dtype)
    hat = np.zeros_like(x)
    v[..., 0, :], x[..., 0, :, :] = V, T
    for k in range(_ORDER):
        hat[..., k, :, :] = np.einsum("ijk,...k->...ij", _HAT, v[..., k, :])
        back = v[..., k::-1, :]
        v[..., k + 1, :] = np.einsum("ijk,...mj,...mk->...i", rate, v[..., :k + 1, :], back, optimize=True) / (k + 1)
        x[..., k + 1, :, :] = (x[..., :k + 1, :, :] @ hat[..., k::-1, :, :]).sum(-3) / (k + 1)
    return v, x


def _integrate(Q: Array, V: Any) -> tuple[Array, Any, Any]:
    """Knots and Taylor coefficients over unit time from T = 1 and V (…, 6); the last piece begins at the end."""
    # Q V̇ = ad_Vᵀ Q V: (ad_Vᵀ w)_k = _BRACKET[i, j, k] V_j w_i
    rate = np.einsum("nk,ijk,im->njm", np.linalg.inv(Q), _BRACKET, Q)
    T = np.broadcast_to(np.eye(4), (*V.shape[:-1], 4, 4)).astype(V.dtype)
    turns = 1.0 + float(np.sqrt((V.real**2).sum(-1)).max()) * float(np.abs(rate).max())
    pieces = int(np.ceil(turns / _REACH))
    if pieces > _MOST_PIECES:
        raise RbdError("geodesic: Q's ratio of largest to smallest, or the distance, is beyond what can be integrated")
    step = 1.0 / pieces
    power = step ** np.arange(_ORDER + 1)
    all_v, all_x = [], []
    for _ in range(pieces):
        v, x = _series(rate, V, T)
        all_v.append(v)
        all_x.append(x)
        V, T = np.einsum("k,...ki->...i", power, v), np.einsum("k,...kij->...ij", power, x)
    all_v.append(np.zeros_like(v))
    all_x.append(np.zeros_like(x))
    all_v[-1][..., 0, :], all_x[-1][..., 0, :, :] = V, T
    return np.linspace(0.0, 1.0, pieces + 1), np.stack(all_v), np.stack(all_x)


def _shoot(Q: Array, target: Array) -> Array:
    """V at the start, so that the curve from 1 ends at `target` after unit time."""
    plain = np.diag(np.repeat([np.trace(Q[:3, :3]) / 3.0, np.trace(Q[3:, 3:]) / 3.0], 3))
    straight = np.concatenate([so3.log(target[:3, :3]), target[:3, 3]])    # p is straight: exact for `plain`
    back = se3.inverse(target)

    def miss(share: float, V: Any) -> Any:
        """Error (N, 6) of the end pose; None if it is more than 75° off."""
        end = back @ _integrate((1.0 - share) * plain + share * Q, V)[2][-1][..., 0, :, :]
        if np.trace(end[0].real) < 2.5:
            return None
        skew = 0.5 * (end[:, :3, :3] - end[:, :3, :3].transpose(0, 2, 1))
        return np.concatenate([np.stack([skew[:, 2, 1], skew[:, 0, 2], skew[:, 1, 0]], -1), end[:, :3, 3]], -1)

    V = shoot(miss, straight, _SMALLEST_STEP)
    if V is None:
        raise RbdError("no geodesic of this metric found that continues that of Q = diag(α, α, α, β, β, β); "
                       "expected ends that are closer, or a Q nearer to such a one")
    return V
