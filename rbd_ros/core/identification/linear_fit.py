"""Weighted linear least squares of stacked efforts, robust to outliers, with a covariance for correlated residuals.

Weights per joint are the inverse standard deviation of the residual; Huber's function bounds the influence of a sample.
Filtered residuals are correlated in time: the covariance is `A⁻¹ B A⁻¹` with B from the residuals' autocovariance.
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import RbdError

Array = NDArray[np.float64]
HUBER = 2.0          # standard deviations above which a residual has linear cost
OUTLIER = 6.0        # standard deviations above which a residual is reported
ROUNDS = 6
LAGS = 10            # lags of the autocovariance with full weight, tapered to zero at twice that
FINEST = 1e-6        # smallest standard deviation, relative to the largest effort
WEAKEST = 1e-6       # singular values of scaled columns below which a direction is undetermined
REFINEMENTS = 3


@dataclass(frozen=True, eq=False)
class Rows:
    """Stacked efforts: X (N, nv, p) and y (N, nv) of pieces with these lengths; measured (N, nv): mask of usable
    efforts. correlation (K,): of white noise after the filter, at lags 0, 1, … samples.
    """

    X: Array
    y: Array
    lengths: tuple[int, ...]
    measured: NDArray[np.bool_]
    correlation: Array

    def columns(self, chosen: NDArray[np.int64], known: Array | None = None) -> Rows:
        """The chosen columns, with the efforts of parameters `known` (p,) subtracted."""
        y = self.y if known is None else self.y - self.X @ known
        return Rows(self.X[..., chosen], y, self.lengths, self.measured, self.correlation)


@dataclass(frozen=True, eq=False)
class LinearFit:
    """beta (p,); covariance (p, p), infinite on the diagonal for undetermined parameters; sigma (nv,): residuals'
    standard deviation per joint; weights (N, nv): of the squares, 1/σ² times Huber's; condition: of the scaled columns;
    outliers: number.
    """

    beta: Array
    covariance: Array
    sigma: Array
    weights: Array
    condition: float
    seen: int
    outliers: int

    @property
    def half_width(self) -> Array:
        """Half widths of 95 % intervals."""
        return 1.959964 * np.sqrt(np.diag(self.covariance))


def linear_fit(rows: Rows, robust: bool = True, intervals: bool = True) -> LinearFit:
    """Least-squares parameters; raises `RbdError` for fewer rows than parameters. Without intervals the covariance is
    zero.
    """
    n, nv, p = rows.X.shape
    measured = rows.measured
    count = int(measured.sum())
    if count < 2 * p:
        raise RbdError(f"{count} efforts for {p} parameters: the recording is too short, or the cutoff too low")
    sigma = np.maximum(_per_joint(np.std, rows.y, measured), 1e-12)
    huber = np.ones((n, nv))
    beta = np.zeros(p)
    for _ in range(ROUNDS):
        weights = np.where(measured, huber / sigma**2, 0.0)
        beta, inverse, condition, seen, lost = _solve(rows.X, rows.y, weights)
        residual = rows.y - rows.X @ beta
        floor = FINEST * np.maximum(np.abs(rows.y).max(axis=0), 1e-9)
        if robust:    # 1.4826 median|r|: robust standard deviation
            sigma = np.maximum(1.4826 * _per_joint(np.median, np.abs(residual), measured), floor)
            huber = np.minimum(1.0, HUBER / np.maximum(np.abs(residual) / sigma, HUBER))
        else:
            sigma = np.maximum(_per_joint(np.std, residual, measured), floor)
    outliers = int(np.sum((np.abs(residual) > OUTLIER * sigma) & measured))
    covariance = _covariance(rows, residual, weights, inverse) if intervals else np.zeros((p, p))
    if lost is not None:
        covariance[lost, :] = covariance[:, lost] = 0.0
        covariance[lost, lost] = np.inf
    return LinearFit(beta, covariance, sigma, weights, condition, seen, outliers)


def _per_joint(measure: Callable[[Array], np.floating[Any]], values: Array, told: NDArray[np.bool_]) -> Array:
    """The measure of each column's usable values; infinite without any."""
    return np.array([float(measure(column[there])) if there.any() else np.inf
                     for column, there in zip(values.T, told.T, strict=True)])


def _solve(X: Array, y: Array, weights: Array) -> tuple[Array, Array, float, int, NDArray[np.int64] | None]:
    """Least squares by the eigenvalues of the normal equations of scaled columns, with iterative refinement (a QR
    factorisation per round of weights takes five times as long); also the undetermined parameters, if any.
    """
    root = np.sqrt(weights)
    A = (X * root[..., None]).reshape(-1, X.shape[-1])
    b = (y * root).reshape(-1)
    scale = np.linalg.norm(A, axis=0)
    scale[scale <= 1e-12 * scale.max(initial=1e-300)] = np.inf
    A /= scale
    squares, V = np.linalg.eigh(A.T @ A)
    sizes = np.sqrt(np.maximum(squares, 0.0))
    good = sizes > WEAKEST * sizes[-1]
    inverse = V[:, good] / sizes[good]
    beta = np.zeros(len(scale))
    for _ in range(REFINEMENTS):
        beta = beta + inverse @ (inverse.T @ (A.T @ (b - A @ beta)))
    lost = None
    if not good.all():
        blind = np.abs(V[:, ~good]).max(axis=1) > 1e-4
        lost = np.flatnonzero(blind | np.isinf(scale))
    half = inverse / scale[:, None]    # A⁻¹ = half halfᵀ
    condition = float(sizes[-1] / sizes[good][0]) if good.all() else float("inf")
    return beta / scale, half, condition, int(good.sum()), lost


def _covariance(rows: Rows, residual: Array, weights: Array, inverse: Array) -> Array:
    """`A⁻¹ B A⁻¹`, B = Σ over joints, and over times s and t in the same piece, of w x γ(s − t) xᵀ w.

    γ is that of filtered white noise, or that of the residuals, whichever gives the larger variance. Residuals alone
    underestimate the noise, because the parameters explain a part of it.
    """
    p = rows.X.shape[-1]
    B = [np.zeros((p, p)), np.zeros((p, p))]
    starts = np.concatenate([[0], np.cumsum(rows.lengths)])
    spans = [slice(a, b) for a, b in pairwise(starts) if b - a > 2 * LAGS]
    inner, total = 0.0, 0.0
    taper = np.minimum(1.0, 2.0 - np.arange(2 * LAGS) / LAGS)
    white = np.zeros(2 * LAGS)
    white[:len(rows.correlation)] = rows.correlation[:2 * LAGS]
    band = float(white @ taper) * 2.0 - 1.0    # relative density of filtered noise in the parameters' band
    for j in np.flatnonzero(rows.measured.any(axis=0)):
        measured = rows.measured[:, j]
        level = float(weights[:, j].max())
        huber = weights[:, j] / level
        wx = rows.X[:, j] * (level * measured)[:, None]
        r = residual[:, j] * huber    # the scores of a robust estimate
        inner, total = inner + float(np.sum(huber >= 1.0 - 1e-9)), total + float(np.sum(huber))
        absorbed = min(band * float(np.sum(inverse @ inverse.T * (wx.T @ (wx * huber[:, None]))) / level),
                    0.7 * float(measured.sum()))
        variance = float(r @ r) / (float(measured.sum()) - absorbed)
        empirical = _autocovariance(r, measured, spans)
        for part, gamma in zip(B, (variance * white, empirical), strict=True):
            part += wx.T @ _spread_out(wx, gamma * taper, spans)
    factor = (total / max(inner, 0.5 * total)) ** 2    # Σ w for Σ ψ'
    spread = inverse @ inverse.T
    first, second = (factor * spread @ (part + part.T) @ spread / 2.0 for part in B)
    diagonal = np.diag(first)
    grown = np.sqrt(np.maximum(np.diag(second), diagonal) / np.where(diagonal > 0.0, diagonal, 1.0))
    covariance: Array = first * np.outer(grown, grown)
    return covariance


def _autocovariance(r: Array, told: NDArray[np.bool_], spans: list[slice]) -> Array:
    """Autocovariance of residuals, zero at unusable samples, at lags 0 … 2 LAGS − 1."""
    if not spans:    # only short pieces: assumed uncorrelated
        return float(r @ r) / float(told.sum()) * np.eye(1, 2 * LAGS)[0]
    count = told.astype(np.float64)
    products = [[float(x[s][:-lag or None] @ x[s][lag:]) for x in (r, count)] for lag in range(2 * LAGS) for s in spans]
    sums: Array = np.array(products).reshape(2 * LAGS, len(spans), 2).sum(axis=1)
    return sums[:, 0] / np.maximum(sums[:, 1], 1.0)


def _spread_out(x: Array, gamma: Array, spans: list[slice]) -> Array:
    """`Σ_s γ(|s − t|) x_s` of rows x_s in the same span."""
    out = gamma[0] * x
    for span in spans:
        part, rows = out[span], x[span]
        for lag in range(1, len(gamma)):
            part[lag:] += gamma[lag] * rows[:-lag]
            part[:-lag] += gamma[lag] * rows[lag:]
    return out
