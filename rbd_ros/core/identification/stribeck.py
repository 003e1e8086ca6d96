"""Stribeck's effect: friction near rest beyond the Coulomb level, `(b − c) exp(−(v / w)²) tanh(v / s)`.

The law is linear in the height b − c, but not in the velocity w of each joint, which is found by a grid search for the
largest reduction of the residual, with refinement. Intervals are those of the linearised law, with the derivative by w
as an additional column, so that the uncertainty of w widens all intervals.
"""
from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..dynamics.friction import Friction
from .linear_fit import LinearFit, Rows, linear_fit
from .recorded.signals import Piece, Prepared, decimation, low_pass

Array = NDArray[np.float64]
GRID = 24             # velocities of the search
REFINED = 12          # steps of the golden-section refinement
SLOWEST = 3.0         # smallest w relative to the smoothing, from which it would be indistinguishable
FASTEST = 0.5         # largest w relative to the joint's largest speed; wider is viscous friction
ROUNDS = 3
STEP = 1e-3           # relative step of differences by w
EDGE = 1.05           # relative distance from the ends of the range within which a velocity is rejected


@dataclass(frozen=True, eq=False)
class StribeckTerms:
    """Columns for joints (k,) with Stribeck velocities (k,), rad/s or m/s; smoothing s, likewise."""

    joints: NDArray[np.int64]
    velocities: Array
    smoothing: float

    def columns(self, prepared: Prepared, piece: Piece) -> Array:
        """Columns (N, k) for the samples of a piece, filtered at the full rate like efforts."""
        return filtered_law(prepared, piece, self.joints, self.velocities, self.smoothing)


def filtered_law(prepared: Prepared, piece: Piece, joints: NDArray[np.int64], velocities: Array,
                 smoothing: float) -> Array:
    """`exp(−(v / w)²) tanh(v / s)` (N, k), low-passed: its edges are shorter than the piece's period."""
    from scipy.interpolate import CubicSpline

    factor = max(1, round(prepared.rate / piece.rate))
    t = np.linspace(piece.t[0], piece.t[-1], factor * (len(piece.t) - 1) + 1)
    v = CubicSpline(piece.t, piece.v[:, joints])(t)
    law = Friction(breakaway=1.0, stribeck_velocity=velocities, smoothing=smoothing).effort(v)
    return low_pass(law, factor * piece.rate, prepared.cutoff)[::factor]


@dataclass(frozen=True, eq=False)
class Stribeck:
    """Identified Stribeck effect. terms: joints with a significant effect. half_width (k,): of 95 % intervals of their
    velocities. unseen: examined joints without significant effect. fit: least squares of the base columns, the heights
    and the derivatives by the velocities, in this order.
    """

    terms: StribeckTerms
    half_width: Array
    unseen: tuple[int, ...]
    fit: LinearFit


def find_stribeck(rows: Rows, pieces: LawOf, fastest: Array, joints: NDArray[np.int64], smoothing: float,
                  robust: bool) -> Stribeck:
    """Identify Stribeck's effect. rows: of the base columns, with known efforts subtracted. pieces(joints, velocities):
    the law's columns at these rows. fastest (nv,): largest speeds. joints: to examine.
    """
    low, high = SLOWEST * smoothing, np.maximum(FASTEST * fastest, 2.0 * SLOWEST * smoothing)
    velocity = np.sqrt(low * high)
    height = np.zeros_like(velocity)
    fit = linear_fit(rows, robust, intervals=False)
    for _ in range(ROUNDS):
        for j in joints:
            others = joints[(joints != j) & (height[joints] > 0.0)]
            complement = _Complement(_with(rows, pieces, others, velocity[others]), fit.weights, int(j))
            velocity[j], height[j] = _best(complement, pieces, int(j), low, float(high[j]))
        accepted = joints[height[joints] > 0.0]
        fit = linear_fit(_with(rows, pieces, accepted, velocity[accepted]), robust, intervals=False)
    while True:
        fit, significant, half = _judged(rows, pieces, accepted, velocity, (low, high), robust)
        if significant.all():
            break
        accepted = accepted[significant]
    unseen = tuple(int(j) for j in np.setdiff1d(joints, accepted))
    return Stribeck(StribeckTerms(accepted, velocity[accepted], smoothing), half, unseen, fit)


class LawOf:
    """Columns of the law at the rows of equations."""

    def __init__(self, prepared: Prepared, smoothing: float, count: int) -> None:
        self.prepared, self.smoothing, self.count = prepared, smoothing, count

    def __call__(self, joints: NDArray[np.int64], velocities: Array) -> Array:
        """Columns (N, k) for joints (k,) with these velocities (k,)."""
        parts = [filtered_law(self.prepared, piece, joints, velocities, self.smoothing)
                 [decimation(self.prepared, piece)] for piece in self.prepared.pieces]
        columns: Array = np.concatenate(parts)[:self.count]
        return columns


def _with(rows: Rows, law: LawOf, joints: NDArray[np.int64], velocities: Array, slopes: Array | None = None) -> Rows:
    """The rows with a column per joint, and with the derivatives by their velocities if heights are given."""
    if not len(joints):
        return rows
    columns = [law(joints, velocities)]
    if slopes is not None:
        ahead, behind = (law(joints, velocities * (1.0 + sign * STEP)) for sign in (1.0, -1.0))
        columns.append(slopes * (ahead - behind) / (2.0 * STEP * velocities))
    k = len(joints)
    block = np.zeros((*rows.y.shape, k * len(columns)))
    for index, part in enumerate(columns):
        block[:, joints, index * k + np.arange(k)] = part
    return Rows(np.concatenate([rows.X, block], axis=2), rows.y, rows.lengths, rows.measured, rows.correlation)


class _Complement:
    """Projection of the efforts, and of a further column on joint j, onto the complement of the rows' column space."""

    def __init__(self, rows: Rows, weights: Array, j: int) -> None:
        self.root = np.sqrt(weights[:, j])
        root = np.sqrt(weights)
        A = (rows.X * root[..., None]).reshape(-1, rows.X.shape[-1])
        b = (rows.y * root).reshape(-1)
        lengths = np.linalg.norm(A, axis=0)
        A = A[:, lengths > 0.0] / lengths[lengths > 0.0]
        squares, V = np.linalg.eigh(A.T @ A)
        good = squares > 1e-12 * squares[-1]
        Q = A @ (V[:, good] / np.sqrt(squares[good]))
        nv = rows.y.shape[1]
        self.Q = Q[j::nv]
        self.residual = (b - Q @ (Q.T @ b))[j::nv]

    def gain(self, column: Array) -> tuple[float, float]:
        """Reduction of the sum of squares by the column, and its non-negative coefficient."""
        x = column * self.root
        inner, size = float(x @ self.residual), float(x @ x - np.sum((self.Q.T @ x) ** 2))
        if inner <= 0.0 or size <= 1e-9 * float(x @ x):
            return 0.0, 0.0
        return inner**2 / size, inner / size


def _best(complement: _Complement, law: LawOf, j: int, low: float, high: float) -> tuple[float, float]:
    """The velocity with the largest reduction of the residual, by grid and golden-section search, and its height."""
    grid = np.geomspace(low, high, GRID)
    gains = [complement.gain(column)[0] for column in law(np.full(GRID, j), grid).T]
    k = int(np.argmax(gains))
    a, b = np.log(grid[max(k - 1, 0)]), np.log(grid[min(k + 1, GRID - 1)])
    ratio = 0.5 * (np.sqrt(5.0) - 1.0)

    def value(x: float) -> float:
        return complement.gain(law(np.array([j]), np.exp([x]))[:, 0])[0]

    c, d = b - ratio * (b - a), a + ratio * (b - a)
    at_c, at_d = value(c), value(d)
    for _ in range(REFINED):
        if at_c > at_d:
            b, d, at_d = d, c, at_c
            c = b - ratio * (b - a)
            at_c = value(c)
        else:
            a, c, at_c = c, d, at_d
            d = a + ratio * (b - a)
            at_d = value(d)
    velocity = float(np.exp(0.5 * (a + b)))
    return velocity, complement.gain(law(np.array([j]), np.array([velocity]))[:, 0])[1]


def _judged(rows: Rows, law: LawOf, joints: NDArray[np.int64], velocity: Array, ends: tuple[float, Array],
            robust: bool) -> tuple[LinearFit, NDArray[np.bool_], Array]:
    """The fit with derivatives by the velocities, a mask of significant joints, and half widths of the velocities."""
    k, p = len(joints), rows.X.shape[-1]
    initial = linear_fit(_with(rows, law, joints, velocity[joints]), robust, intervals=False)
    heights = initial.beta[p:]
    fit = linear_fit(_with(rows, law, joints, velocity[joints], heights), robust)
    height, half = fit.beta[p:p + k], fit.half_width
    inside = (velocity[joints] > EDGE * ends[0]) & (velocity[joints] < ends[1][joints] / EDGE)
    significant = inside & (heights > half[p:p + k]) & (height > half[p:p + k]) & (half[p + k:] < velocity[joints])
    return fit, significant, half[p + k:]
