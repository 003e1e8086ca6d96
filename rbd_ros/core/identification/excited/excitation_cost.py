"""Cost and gradient of excitation: information of a motion, and penalties of limits."""
from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...dynamics.friction import Friction, joint_friction
from ...derivatives.inverse import inverse_dynamics_derivatives
from ...derivatives.regressor import PARAMETERS, inertial_regressor
from ...dynamics.inverse import inverse_dynamics
from ...model.robot_model import RobotModel
from ...motion.collision.distance_rows import DistanceRows
from ...motion.optimal.limits import CheckedLimits
from ...motion.places.plane_limit import Planes
from ...motion.periodic_motion import fourier
from ..regressor_columns import columns_of, full_regressor

Array = NDArray[np.float64]
STEP = 1e-6          # of differences; the regressor is linear in a and quadratic in v
SLIP = 0.1           # rad/s, m/s: smoothing of Coulomb friction in the optimisation
RUBS = Friction(coulomb=1.0, smoothing=SLIP)
SLOWEST_SLIP = 0.02  # in the final evaluation
CLEAR, UNIT = 0.005, 0.2    # m: margin of clearances, and unit of their violation
TINY = 1e-12


class Series:
    """Fourier series starting at rest, sampled at N equidistant times: unknowns x (size, nv), orthonormalised."""

    def __init__(self, count: int, period: float, samples: int) -> None:
        self.count, self.period = count, period
        t = np.arange(samples) * period / samples
        raw = [fourier(t, count, period, d) for d in range(3)]
        start = np.concatenate([fourier(np.zeros(1), count, period, d) for d in (1, 2)])
        harmonic = np.concatenate([[1.0], np.repeat(np.arange(1, count + 1), 2)])
        weighted = start / harmonic
        _, _, V = np.linalg.svd(weighted)
        free = V[2:].T    # null space of zero velocity and acceleration at the ends
        constant = np.zeros((len(harmonic), 1))
        constant[0] = 1.0
        free = np.concatenate([constant, (free - constant @ (constant.T @ free))], axis=1)
        Q, R = np.linalg.qr(free)
        significant = np.abs(np.diag(R)) > 1e-9
        Q = Q[:, significant]
        Q[:, 0] *= np.sign(Q[0, 0])
        self.free = Q / harmonic[:, None]
        self.size = self.free.shape[1]
        self.bases = [b @ self.free for b in raw]

    def motion(self, x: Array) -> tuple[Array, Array, Array]:
        """Samples q, v, a (N, nv)."""
        q, v, a = (b @ x for b in self.bases)
        return q, v, a

    def gradient(self, dq: Array, dv: Array, da: Array) -> Array:
        """Gradient by x from gradients by q, v, a."""
        return self.bases[0].T @ dq + self.bases[1].T @ dv + self.bases[2].T @ da

    def coefficients(self, x: Array) -> Array:
        """Fourier coefficients (2 count + 1, nv)."""
        return self.free @ x

    def projected(self, coefficients: Array) -> Array:
        """The unknowns x of coefficients."""
        return np.linalg.lstsq(self.free, coefficients, rcond=None)[0]


class Information:
    """`−log det WᵀW / p` of the base regressor W of a motion, rows weighted per joint."""

    def __init__(self, model: RobotModel, series: Series, columns: NDArray[np.int64], weights: Array) -> None:
        self.model, self.series, self.columns, self.weights = model, series, columns, weights
        nv, bodies = model.nv, PARAMETERS * len(model.body_names)
        self.inertial = columns[columns < bodies]
        own = {kind: columns_of(model, kind).start + np.arange(nv) for kind in ("rotor", "viscous", "coulomb")}
        self.joint_columns = {kind: place[np.isin(place, columns)] for kind, place in own.items()}

    def regressor(self, x: Array, slip: float) -> Array:
        q, v, a = self.series.motion(x)
        W = full_regressor(self.model, q, v, a, Friction(coulomb=1.0, smoothing=slip).effort(v))[..., self.columns]
        return W * self.weights[:, None]

    def quality(self, x: Array) -> tuple[float, float]:
        """Condition number of W with unit columns, and log det WᵀW."""
        W = self.regressor(x, SLOWEST_SLIP).reshape(-1, len(self.columns))
        lengths = np.linalg.norm(W, axis=0)
        sizes = np.linalg.svd(W / np.where(lengths > 0.0, lengths, 1.0), compute_uv=False)
        log_det = float(np.linalg.slogdet(W.T @ W)[1])
        return (float(sizes[0] / sizes[-1]) if sizes[-1] > 0.0 else float("inf")), log_det

    def cost(self, x: Array) -> tuple[float, Array, float]:
        """Value, gradient by x, and log det."""
        model, nv, p = self.model, self.model.nv, len(self.columns)
        q, v, a = self.series.motion(x)
        Y = full_regressor(model, q, v, a, RUBS.effort(v))[..., self.columns] * self.weights[:, None]
        W = Y.reshape(-1, p)
        scale = np.maximum(np.linalg.norm(W, axis=0), TINY)
        M = (W / scale).T @ (W / scale) + 1e-10 * np.eye(p)
        factor = np.linalg.cholesky(M)
        log_det = 2.0 * float(np.sum(np.log(np.diag(factor))) + np.sum(np.log(scale)))
        G = (np.linalg.solve(M, (W / scale).T).T / scale).reshape(Y.shape) * self.weights[:, None]
        full = np.zeros((len(q), nv, PARAMETERS * len(model.body_names)))
        full[..., self.inertial] = G[..., :len(self.inertial)]
        dq, dv, da = self._differences(q, v, a, full)
        offset = len(self.inertial)
        for kind, columns in self.joint_columns.items():
            joints = columns - columns_of(model, kind).start
            part = G[:, joints, offset + np.arange(len(columns))]
            if kind == "rotor":
                da[:, joints] += part
            elif kind == "viscous":
                dv[:, joints] += part
            else:
                dv[:, joints] += part * RUBS.slope(v[:, joints])
            offset += len(columns)
        return -log_det / p, -2.0 / p * self.series.gradient(dq, dv, da), log_det

    def _differences(self, q: Array, v: Array, a: Array, G: Array) -> tuple[Array, Array, Array]:
        """Σ G ∂Y by q, v, a (N, nv) each."""
        n, nv = q.shape
        moved = np.zeros((3 * nv + 1, 3, n, nv))
        moved[:, 0], moved[:, 1], moved[:, 2] = q, v, a
        for k in range(3 * nv):
            moved[k, k // nv, :, k % nv] += STEP if k < 2 * nv else 1.0
        flat = moved.transpose(1, 0, 2, 3).reshape(3, -1, nv)
        Y = inertial_regressor(self.model, *flat).reshape(3 * nv + 1, n, -1)
        sums = np.einsum("knj,nj->kn", Y, G.reshape(n, -1))
        gradients = (sums[:-1] - sums[-1]).T
        return gradients[:, :nv] / STEP, gradients[:, nv:2 * nv] / STEP, gradients[:, 2 * nv:]


class Penalty:
    """Penalty: mean squares of violations, relative to the limits."""

    def __init__(self, model: RobotModel, series: Series, limits: CheckedLimits, planes: Planes,
                 distances: DistanceRows | None = None) -> None:
        self.model, self.series, self.limits, self.planes, self.distances = model, series, limits, planes, distances
        self.friction = joint_friction(model, SLIP)
        self.efforts = bool(np.isfinite(limits.effort).any())

    def cost(self, x: Array) -> tuple[float, Array]:
        """Value and gradient by x."""
        q, v, a = self.series.motion(x)
        total, slopes = 0.0, [np.zeros_like(q) for _ in range(3)]
        for values, name, slope in ((q, "position", slopes[0]), (v, "velocity", slopes[1]),
                                    (a, "acceleration", slopes[2])):
            cost, gradient = _beyond(values, *self.limits.of(name))
            total += cost
            slope += gradient
        if self.efforts:
            tau = inverse_dynamics(self.model, q, v, a) + self.friction.effort(v)
            cost, gradient = _beyond(tau, *self.limits.of("effort"))
            if cost > 0.0:
                total += cost
                D = inverse_dynamics_derivatives(self.model, q, v, a)
                for slope, matrix in zip(slopes, (D.q, D.v, D.a), strict=True):
                    slope += np.einsum("ni,nij->nj", gradient, matrix)
                slopes[1] += gradient * self.friction.slope(v)
        places: list[tuple[Planes | DistanceRows, float]] = [(self.planes, CLEAR)] if len(self.planes) else []
        if self.distances is not None:
            places.append((self.distances, self.distances.clearance + CLEAR))
        for rows, least in places:
            over = np.maximum(least - rows.values(q), 0.0) / UNIT
            total += float(np.sum(over**2)) / len(q)
            if over.any():
                slopes[0] -= 2.0 / UNIT / len(q) * np.einsum("np,npj->nj", over, rows.jacobian(q))
        return total, self.series.gradient(*slopes)


def _beyond(values: Array, lower: Array, upper: Array) -> tuple[float, Array]:
    """Mean squares of violations relative to half the range, and the gradient."""
    half = 0.5 * (upper - lower)
    unit = np.where(np.isfinite(half), half, 1.0)
    over = np.maximum(values - upper, 0.0) - np.maximum(lower - values, 0.0)
    share = over / unit
    return float(np.sum(share**2)) / len(values), 2.0 * share / unit / len(values)
