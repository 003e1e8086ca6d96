"""Weighted linear least squares of stacked efforts, robust to outliers, with a covariance that knows of correlation.

Weights per joint are one over the residual's standard deviation; Huber's function bounds what a single sample does.
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
HUBER = 2.0          # standard deviations, from where on a residual counts linearly
OUTLIER = 6.0        # standard deviations: reported
ROUNDS = 6
LAGS = 10            # samples of the residuals' autocovariance that count in full; to twice that it fades
FINEST = 1e-6        # of the largest effort: nothing is measured better
WEAKEST = 1e-6       # singular values of scaled columns: what is below is not shown
REFINEMENTS = 3


@dataclass(frozen=True, eq=False)
class Rows:
    """Stacked efforts: X (N, nv, p) and y (N, nv) of pieces with these lengths; measured (N, nv):
    efforts that say something. correlation (K,): of white noise after the filter, at 0, 1, … samples."""

    X: Array
    y: Array
    lengths: tuple[int, ...]
    measured: NDArray[np.bool_]
    correlation: Array

    def columns(self, chosen: NDArray[np.int64], known: Array | None = None) -> Rows:
        """These columns only, what parameters `known` (p,) explain taken off the efforts."""
        y = self.y if known is None else self.y - self.X @ known
        return Rows(self.X[..., chosen], y, self.lengths, self.measured, self.correlation)


@dataclass(frozen=True, eq=False)
class LinearFit:
    """beta (p,), covariance (p, p) (infinite on the diagonal where nothing is seen), sigma (nv,): residuals' standard
    deviation per joint; weights (N, nv): of the squares, 1/σ² and Huber's; condition: of the scaled columns; outliers.
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
        """Of 95 % intervals."""
        return 1.959964 * np.sqrt(np.diag(self.covariance))


def linear_fit(rows: Rows, robust: bool = True, intervals: bool = True) -> LinearFit:
    """The parameters that explain the efforts best; `RbdError` where there are fewer rows than parameters. Without
    intervals the covariance is zero.
    """
    n, nv, p = rows.X.shape
    told = rows.measured
    count = int(told.sum())
    if count < 2 * p:
        raise RbdError(f"{count} efforts for {p} parameters: the recording is too short, or the cutoff too low")
    sigma = np.maximum(_per_joint(np.std, rows.y, told), 1e-12)
    huber = np.ones((n, nv))
    beta = np.zeros(p)
    for _ in range(ROUNDS):
        weights = np.where(told, huber / sigma**2, 0.0)
        beta, inverse, condition, seen, lost = _solve(rows.X, rows.y, weights)
        residual = rows.y - rows.X @ beta
        floor = FINEST * np.maximum(np.abs(rows.y).max(axis=0), 1e-9)
        if robust:    # 1.4826 median|r|: the standard deviation of normal ones, whatever outliers do
            sigma = np.maximum(1.4826 * _per_joint(np.median, np.abs(residual), told), floor)
            huber = np.minimum(1.0, HUBER / np.maximum(np.abs(residual) / sigma, HUBER))
        else:
            sigma = np.maximum(_per_joint(np.std, residual, told), floor)
    outliers = int(np.sum((np.abs(residual) > OUTLIER * sigma) & told))
    covariance = _covariance(rows, residual, weights, inverse) if intervals else np.zeros((p, p))
    if lost is not None:
        covariance[lost, :] = covariance[:, lost] = 0.0
        covariance[lost, lost] = np.inf
    return LinearFit(beta, covariance, sigma, weights, condition, seen, outliers)


def _per_joint(measure: Callable[[Array], np.floating[Any]], values: Array, told: NDArray[np.bool_]) -> Array:
    """Of each column's values that tell something; infinite where none does."""
    return np.array([float(measure(column[there])) if there.any() else np.inf
                     for column, there in zip(values.T, told.T, strict=True)])


def _solve(X: Array, y: Array, weights: Array) -> tuple[Array, Array, float, int, NDArray[np.int64] | None]:
    """Least squares by the eigenvalues of the normal equations of scaled columns, refined by their residuals (a QR
    factorisation per round of weights takes five times as long); parameters with a part in what is not seen, if any.
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
    half = inverse / scale[:, None]    # A⁻¹ is this times its transpose
    condition = float(sizes[-1] / sizes[good][0]) if good.all() else float("inf")
    return beta / scale, half, condition, int(good.sum()), lost


def _covariance(rows: Rows, residual: Array, weights: Array, inverse: Array) -> Array:
    """`A⁻¹ B A⁻¹`, B = Σ over joints, and over times s and t in the same piece, of w x γ(s − t) xᵀ w.

    γ is that of filtered white noise, and that of the residuals: the larger variance counts. Residuals alone say too
    little: what the parameters could explain of the noise is no longer in them.
    """
    p = rows.X.shape[-1]
    B = [np.zeros((p, p)), np.zeros((p, p))]
    starts = np.concatenate([[0], np.cumsum(rows.lengths)])
    spans = [slice(a, b) for a, b in pairwise(starts) if b - a > 2 * LAGS]
    inner, total = 0.0, 0.0
    taper = np.minimum(1.0, 2.0 - np.arange(2 * LAGS) / LAGS)
    white = np.zeros(2 * LAGS)
    white[:len(rows.correlation)] = rows.correlation[:2 * LAGS]
    band = float(white @ taper) * 2.0 - 1.0    # density of filtered noise where parameters act, over its mean
    for j in np.flatnonzero(rows.measured.any(axis=0)):
        told = rows.measured[:, j]
        level = float(weights[:, j].max())
        huber = weights[:, j] / level
        wx = rows.X[:, j] * (level * told)[:, None]
        r = residual[:, j] * huber    # the scores of a robust estimate
        inner, total = inner + float(np.sum(huber >= 1.0 - 1e-9)), total + float(np.sum(huber))
        taken = min(band * float(np.sum(inverse @ inverse.T * (wx.T @ (wx * huber[:, None]))) / level),
                    0.7 * float(told.sum()))
        variance = float(r @ r) / (float(told.sum()) - taken)
        own = _autocovariance(r, told, spans)
        for part, gamma in zip(B, (variance * white, own), strict=True):
            part += wx.T @ _spread_out(wx, gamma * taper, spans)
    factor = (total / max(inner, 0.5 * total)) ** 2    # Σ w for Σ ψ'
    spread = inverse @ inverse.T
    first, second = (factor * spread @ (part + part.T) @ spread / 2.0 for part in B)
    diagonal = np.diag(first)
    grown = np.sqrt(np.maximum(np.diag(second), diagonal) / np.where(diagonal > 0.0, diagonal, 1.0))
    covariance: Array = first * np.outer(grown, grown)
    return covariance


def _autocovariance(r: Array, told: NDArray[np.bool_], spans: list[slice]) -> Array:
    """Of residuals, zero where nothing is told, at 0 … 2 LAGS − 1 samples."""
    if not spans:    # short pieces only: as if uncorrelated
        return float(r @ r) / float(told.sum()) * np.eye(1, 2 * LAGS)[0]
    count = told.astype(np.float64)
    found = [[float(x[s][:-lag or None] @ x[s][lag:]) for x in (r, count)] for lag in range(2 * LAGS) for s in spans]
    sums: Array = np.array(found).reshape(2 * LAGS, len(spans), 2).sum(axis=1)
    return sums[:, 0] / np.maximum(sums[:, 1], 1.0)


def _spread_out(x: Array, gamma: Array, spans: list[slice]) -> Array:
    """`Σ_s γ(|s − t|) x_s` of rows x_s in the same span."""
    out = gamma[0] * x
    for span in spans:
        part, given = out[span], x[span]
        for lag in range(1, len(gamma)):
            part[lag:] += gamma[lag] * given[:-lag]
            part[:-lag] += gamma[lag] * given[lag:]
    return out
