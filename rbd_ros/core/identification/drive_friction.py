"""Friction by direction and by load: further terms per joint, each included if held-out motion shows it.

`a tanh(v / s)²`, `e v tanh(v / s)` and `k |τ|_ε tanh(v / s)` of `dynamics.friction` are linear in a, e and k. |τ|
depends on the unknown inertias: it is evaluated with the previous fit, and the fit repeated. In motion the first term
is a constant effort like the offset; only motion near rest distinguishes them.

Terms are chosen by forward selection with cross-validation over contiguous blocks of the recording: each step adds the
term that most reduces the squared residual of the held-out block, if the mean reduction over the blocks exceeds `SURE`
standard errors.
"""
from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..dynamics.friction import LOAD_SMOOTHING
from ..model.robot_model import RobotModel
from .linear_fit import LinearFit, Rows, linear_fit
from .recorded.signals import Piece, Prepared, decimation, low_pass
from .regressor_columns import columns_of, full_regressor

Array = NDArray[np.float64]
KINDS = ("asymmetry", "viscous_asymmetry", "load")
BLOCKS = 12
SURE = 2.0            # significant mean improvement, in standard errors
OWN = 0.05            # smallest share of a term's column (norm) that the others do not explain
ROUNDS = 3
LARGEST_LOAD = 0.95
WEAKEST = 1e-6        # singular values of scaled columns below which a direction is undetermined


class DriveFriction(NamedTuple):
    """Half differences between directions of the Coulomb level (N m or N) and of the viscous coefficient (N m s/rad or
    N s/m), and shares of the load, (nv,) each: see `Friction`.
    """

    asymmetry: Array
    viscous_asymmetry: Array
    load: Array


@dataclass(frozen=True, eq=False)
class DriveTerms:
    """Columns (kind, joint), kinds by index in `KINDS`. theta: the parameters for |τ|. smoothing: s."""

    terms: tuple[tuple[int, int], ...]
    theta: Array
    smoothing: float

    def names(self, model: RobotModel) -> tuple[str, ...]:
        """Names of the parameters."""
        return tuple(f"{KINDS[kind]}({model.velocity_names[j]})" for kind, j in self.terms)

    def columns(self, model: RobotModel, prepared: Prepared, piece: Piece) -> Array:
        """Columns (N, nv, k) for the samples of a piece, filtered at the full rate like efforts."""
        from scipy.interpolate import CubicSpline

        factor = max(1, round(prepared.rate / piece.rate))
        t = np.linspace(piece.t[0], piece.t[-1], factor * (len(piece.t) - 1) + 1)
        v = CubicSpline(piece.t, piece.v)(t)
        direction = np.tanh(v / self.smoothing)
        signals = [direction * direction, v * direction]
        if any(KINDS[kind] == "load" for kind, _ in self.terms):
            Y = full_regressor(model, piece.q, piece.v, piece.a, np.zeros_like(piece.v))
            carried = Y[..., :columns_of(model, "viscous").start] @ self.theta[:columns_of(model, "viscous").start]
            signals.append(direction * np.hypot(CubicSpline(piece.t, carried)(t), LOAD_SMOOTHING))
        out = np.zeros((len(piece.t), model.nv, len(self.terms)))
        if self.terms:
            columns = np.stack([signals[kind][:, j] for kind, j in self.terms], axis=1)
            columns = low_pass(columns, factor * piece.rate, prepared.cutoff)[::factor]
            for c, (_, j) in enumerate(self.terms):
                out[:, j, c] = columns[:, c]
        return out

    def of_rows(self, model: RobotModel, prepared: Prepared) -> Array:
        """Columns (N, nv, k) at the rows of equations."""
        return np.concatenate([self.columns(model, prepared, piece)[decimation(prepared, piece)]
                               for piece in prepared.pieces])

    def values(self, model: RobotModel, coefficients: Array) -> DriveFriction:
        """Coefficients (k,) by joint, clipped to the bounds of `Friction`, within which friction is dissipative."""
        out = np.zeros((len(KINDS), model.nv))
        for (kind, j), value in zip(self.terms, coefficients, strict=True):
            out[kind, j] = value
        return DriveFriction(np.clip(out[0], -model.friction, model.friction),
                             np.clip(out[1], -model.damping, model.damping), np.clip(out[2], 0.0, LARGEST_LOAD))


def find_drive_terms(model: RobotModel, rows: Rows, prepared: Prepared, theta: Array, free: NDArray[np.int64],
                     joints: NDArray[np.int64], smoothing: float, robust: bool) -> DriveTerms:
    """The terms of these joints that held-out motion shows. rows: all columns of θ, of which the independent ones,
    `free`, are unknown.
    """
    fixed = np.array(theta)
    fixed[free] = 0.0
    base = rows.columns(free, fixed)
    candidates = tuple((kind, int(j)) for kind in range(len(KINDS)) for j in joints)
    fit, estimate = linear_fit(base, robust, intervals=False), np.array(theta)
    chosen: tuple[tuple[int, int], ...] = ()
    estimate[free] = fit.beta
    for _ in range(ROUNDS):
        columns = DriveTerms(candidates, estimate, smoothing).of_rows(model, prepared)[:len(rows.y)]
        before, chosen = chosen, _chosen(base, columns, fit, candidates)
        chosen_columns = [candidates.index(term) for term in chosen]
        fit = linear_fit(replace(base, X=np.concatenate([base.X, columns[..., chosen_columns]], axis=2)), robust,
                         intervals=False)
        estimate[free] = fit.beta[:len(free)]
        if before == chosen and not any(KINDS[kind] == "load" for kind, _ in chosen):
            break
    return DriveTerms(chosen, estimate, smoothing)


def _chosen(base: Rows, candidate_columns: Array, fit: LinearFit,
            candidates: tuple[tuple[int, int], ...]) -> tuple[tuple[int, int], ...]:
    """Forward selection of the candidates by cross-validation."""
    p, count = base.X.shape[-1], candidate_columns.shape[-1]
    root = np.sqrt(fit.weights)
    X = np.concatenate([base.X, candidate_columns], axis=2) * root[..., None]
    y = base.y * root
    blocks = [(part.reshape(-1, p + count), values.reshape(-1)) for part, values in
              zip(np.array_split(X, BLOCKS), np.array_split(y, BLOCKS), strict=True)]
    squares = np.array([A.T @ A for A, _ in blocks])
    products = np.array([A.T @ b for A, b in blocks])
    constants = np.array([b @ b for _, b in blocks])
    columns, remaining = list(range(p)), list(range(p, p + count))
    held_out = _held_out_squares(squares, products, constants, columns)
    while remaining:
        best, gain, after = -1, SURE, held_out
        for c in remaining:
            if not _shown(squares.sum(axis=0), columns, c):
                continue
            trial = _held_out_squares(squares, products, constants, [*columns, c])
            improvement = held_out - trial
            error = float(improvement.std(ddof=1)) / np.sqrt(BLOCKS)
            value = _solved(squares.sum(axis=0), products.sum(axis=0), [*columns, c])[-1]
            if KINDS[candidates[c - p][0]] == "load" and value <= 0.0:
                continue
            if improvement.mean() > gain * error:
                best, gain, after = c, float(improvement.mean()) / max(error, 1e-300), trial
        if best < 0:
            break
        columns.append(best)
        remaining.remove(best)
        held_out = after
    return tuple(candidates[c - p] for c in sorted(columns[p:]))


def _held_out_squares(squares: Array, products: Array, constants: Array, columns: list[int]) -> Array:
    """Squared residual of each block under the fit of all others."""
    A, b = squares.sum(axis=0), products.sum(axis=0)
    out = np.empty(len(squares))
    for k in range(len(squares)):
        x = _solved(A - squares[k], b - products[k], columns)
        out[k] = constants[k] - 2.0 * products[k, columns] @ x + x @ squares[k][np.ix_(columns, columns)] @ x
    return out


def _solved(A: Array, b: Array, columns: list[int]) -> Array:
    """Least squares by normal equations of scaled columns."""
    A, b = A[np.ix_(columns, columns)], b[columns]
    scale = np.sqrt(np.maximum(np.diag(A), 0.0))
    scale = np.where(scale > 1e-12 * scale.max(initial=1e-300), scale, np.inf)
    squares, V = np.linalg.eigh(A / np.outer(scale, scale))
    good = squares > WEAKEST**2 * squares[-1]
    x: Array = V[:, good] @ ((V[:, good].T @ (b / scale)) / squares[good]) / scale
    return x


def _shown(A: Array, columns: list[int], c: int) -> bool:
    """Whether the other columns leave a part of column c unexplained."""
    x = _solved(A, A[:, c], columns)
    residual = A[c, c] - A[c, columns] @ x
    return bool(residual > OWN**2 * A[c, c] > 0.0)


class Drift(NamedTuple):
    """Change of a joint's friction over the recording: N m or N over s."""

    joint: str
    change: float
    duration: float


def drifting(model: RobotModel, rows: Rows, prepared: Prepared, predicted: Array) -> list[Drift]:
    """Joints whose friction changes in time, e.g. with temperature: the Theil–Sen slope over time of the residual
    against the direction of motion, from the medians of `2 BLOCKS` blocks, if its 95 % interval excludes 0 and the
    change is larger than the noise of the residual.
    """
    from scipy.stats import theilslopes

    t = np.concatenate([piece.t[decimation(prepared, piece)] for piece in prepared.pieces])[:len(rows.y)]
    out: list[Drift] = []
    for j, name in enumerate(model.velocity_names):
        slip = rows.X[:, j, columns_of(model, "coulomb").start + j]
        usable = rows.measured[:, j] & (np.abs(slip) > 0.5)
        if usable.sum() < 10 * BLOCKS:
            continue
        opposing = (rows.y[:, j] - predicted[:, j])[usable] * np.sign(slip[usable])
        parts = zip(np.array_split(t[usable], 2 * BLOCKS), np.array_split(opposing, 2 * BLOCKS), strict=True)
        times, medians = np.array([(part.mean(), np.median(values)) for part, values in parts]).T
        slope, _, low, high = theilslopes(medians, times, 0.95)
        duration = float(t[usable][-1] - t[usable][0])
        noise = 1.4826 * float(np.median(np.abs(opposing - np.median(opposing))))
        if low * high > 0.0 and abs(slope) * duration > noise:
            out.append(Drift(name, float(slope) * duration, duration))
    return out
