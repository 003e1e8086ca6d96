"""Factor between a joint's effort and the effort of the description, as a hypothesis test.

`y = Σ_i k_i (b_i + D_i e) + F φ + r`: b_i are parts of the description's effort (its whole, or gravity and the rest)
and k_i their factors; e ~ N(0, 1) is the error of the description, φ are free coefficients of friction, rotor and
offset, r is the noise. For factors k the covariance of y is `S(k) = σ² 1 + D(k) D(k)ᵀ`, and k̂ is the generalised least
squares estimate. A factor k is rejected if k̂ is further from k than `S(k)` explains. Unlike an interval about k̂, this
test keeps its level however uncertain the description is (Fieller's theorem).
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
ROUNDS = 30          # of the noise's variance
INDEPENDENT = 1e-8   # singular values of columns of length one
SMALLEST = 1e-6      # smallest share of an effort, or of a part, that remains after projecting out friction
MISFIT = 0.02        # share of friction that none of the friction columns models
WIDTH = 9            # lines over which the spectrum is smoothed, half a period per recording apart


@dataclass(frozen=True, eq=False)
class EffortFactor:
    """Test problem of one joint, with friction projected out, in r orthonormal directions of time: b (r, m), D (m of
    (r, p)), y (r,). noise: variance σ² per direction; limit: critical value in standard errors.
    """

    b: Array
    D: tuple[Array, ...]
    y: Array
    noise: float
    limit: float

    def estimate(self, factors: Array) -> tuple[Array, Array]:
        """Estimate k̂ (m,) and standard errors (m,), with the covariance S(k) of these factors (m,)."""
        D = sum(k * part for k, part in zip(factors, self.D, strict=True))
        apply = inverse_covariance(np.asarray(D), self.noise)
        covariance = np.linalg.inv(self.b.T @ apply(self.b))
        return covariance @ (self.b.T @ apply(self.y)), np.sqrt(np.diag(covariance))

    def above(self, *factors: float) -> bool:
        """Whether the test rejects each of these values of the first factor from above; other factors are 1."""
        return min(self._deviations(factors)) > self.limit

    def below(self, *factors: float) -> bool:
        """Whether the test rejects each of these values of the first factor from below; other factors are 1."""
        return max(self._deviations(factors)) < -self.limit

    def _deviations(self, factors: tuple[float, ...]) -> list[float]:
        """Differences of the estimate from these values of the first factor, in standard errors."""
        estimates = [self.estimate(np.array([k, *[1.0] * (len(self.D) - 1)])) for k in factors]
        return [float((k_hat[0] - k) / error[0]) for k, (k_hat, error) in zip(factors, estimates, strict=True)]


def effort_factor(y: Array, b: Array, D: tuple[Array, ...], free: Array, friction: Array,
                  filtered: float, rare: float) -> EffortFactor | None:
    """The test problem of y (n,), b (n, m), D (m of (n, p)), free columns (n, f) and columns of friction (n, g).

    filtered: samples of filtered white noise per independent sample. rare: level of the test, one-sided; the noise
    is scaled by Student's t where few independent samples estimate it. None if nothing remains to compare.
    """
    from scipy.special import ndtri, stdtrit

    m, p = b.shape[1], D[0].shape[1]
    Q, columns = _basis(np.column_stack([free, friction])), np.column_stack([y, b, *D])
    columns -= Q @ (Q.T @ columns)
    freedoms = len(y) - Q.shape[1] - m
    sizes = np.linalg.norm(columns[:, :m + 1], axis=0)
    if freedoms < 2 or (sizes <= SMALLEST * np.linalg.norm(np.column_stack([y, b]), axis=0).max()).any():
        return None
    if m > 1 and np.linalg.svd(columns[:, 1:m + 1] / sizes[1:], compute_uv=False)[-1] < SMALLEST:
        return None    # proportional parts, whose factors are indistinguishable
    basis, rotated = np.linalg.qr(columns[:, 1:])
    y_rotated, parts = basis.T @ columns[:, 0], tuple(rotated[:, m + k * p:m + (k + 1) * p] for k in range(m))
    outside = max(float(sizes[0]**2 - y_rotated @ y_rotated), 0.0)
    beta = np.linalg.lstsq(np.column_stack([friction, free, b]), y, rcond=None)[0]
    friction_effort = friction @ beta[:friction.shape[1]]
    misfit = MISFIT**2 * float(np.sum((friction_effort - friction_effort.mean())**2))
    variance, k, share = _noise(y_rotated, rotated[:, :m], parts, outside, freedoms)
    residual = columns[:, 0] - columns[:, 1:] @ np.concatenate([k, share])
    slower = max(filtered, correlated(residual))
    limit = -float(ndtri(rare))
    student_ratio = float(stdtrit(max(freedoms / slower, 1.0), rare)) / limit
    return EffortFactor(rotated[:, :m], parts, y_rotated, variance * slower * student_ratio**2 + misfit, limit)


def _noise(y: Array, b: Array, parts: tuple[Array, ...], outside: float, freedoms: int) -> tuple[float, Array, Array]:
    """Noise variance by fixed-point iteration, with the factors (m,) and the coefficients (m p,) of D at it: the error
    of the description is estimated with its prior, and takes effective degrees of freedom from the residual.
    """
    variance, k, scales = (float(y @ y) + outside) / freedoms, np.ones(b.shape[1]), np.zeros(0)
    for _ in range(ROUNDS):
        before, scales = scales, np.maximum(np.abs(k), 1.0)
        if not np.array_equal(scales, before):
            D = np.asarray(sum(s * part for s, part in zip(scales, parts, strict=True)))
            U, s, _ = np.linalg.svd(D, full_matrices=False)
        shrinkage = s**2 / (s**2 + variance)
        apply = _inverse(U, s, variance)
        k = np.linalg.solve(b.T @ apply(b), b.T @ apply(y))
        residual = y - b @ k
        error = residual - U @ (shrinkage * (U.T @ residual))
        last, variance = variance, max((float(error @ error) + outside) / max(freedoms - float(shrinkage.sum()), 1.0),
                                       1e-12 * float(y @ y) / freedoms)
        if abs(variance - last) < 1e-3 * last:
            break
    return variance, k, np.concatenate([s * (D.T @ apply(residual)) for s in scales])


def inverse_covariance(D: Array, variance: float) -> Callable[[Array], Array]:
    """x → (variance 1 + D Dᵀ)⁻¹ x."""
    U, s, _ = np.linalg.svd(D, full_matrices=False)
    return _inverse(U, s, variance)


def _inverse(U: Array, s: Array, variance: float) -> Callable[[Array], Array]:
    """The same, of the left singular vectors and singular values of D."""
    eigenvalues = s**2 + variance
    spans_all = U.shape[0] == U.shape[1]    # the complement is then rounding, which 1 / variance would amplify

    def apply(x: Array) -> Array:
        inner = U.T @ x
        inside: Array = U @ (inner.T / eigenvalues).T
        return inside if spans_all else inside + (x - U @ inner) / variance

    return apply


def _basis(columns: Array) -> Array:
    """Orthonormal basis of the span of the columns."""
    lengths = np.linalg.norm(columns, axis=0)
    columns = columns[:, lengths > 1e-12] / lengths[lengths > 1e-12]
    U, s, _ = np.linalg.svd(columns, full_matrices=False)
    basis: Array = U[:, s > INDEPENDENT * max(float(s.max(initial=0.0)), 1.0)]
    return basis


def correlated(r: Array) -> float:
    """Samples per independent sample: peak of the residual's smoothed spectral density over its mean. Unmodelled
    friction repeats with the motion, at the frequencies of the rest of the effort.
    """
    density = np.abs(np.fft.rfft(r, 2 * len(r)))**2
    smooth = np.convolve(density, np.full(WIDTH, 1.0 / WIDTH), "valid") if len(density) > WIDTH else density
    return float(smooth.max() / max(float(density.mean()), 1e-300))
