"""Stability margins of a linear state feedback, with the loop broken at the plant's input.

For the step `x⁺ = A x + B u`, `u = K x`: `L(z) = −K (z1 − A)⁻¹ B`. A factor c on all inputs moves the closed loop to
`A + c B K`; at the edge of stability, with `z = e^{jωh}`, `c λ = −1` for an eigenvalue λ of L(z). On one input alone,
with the other loops closed, its own loop is `1/S_ii − 1`, `S = (1 + L)⁻¹`. c is real for the gain margin, `e^{−jφ}` for
the phase margin, and `e^{−jωτ}` for the delay margin; the last is exact for delays of whole periods.
"""
from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..model.inertia import Array, read_only

GRID = 400           # frequencies of the search
NEAR = 12            # further ones on each side of each mode
EDGE = 1e-6          # spectral radius beyond 1 that counts as unstable: modes that nothing moves stay at 1
FACTORS = 1e-3, 1e3    # range of the search for gain margins
BISECTIONS = 45


class LoopMargins(NamedTuple):
    """Margins (M, nu) of each input alone, and (M,) of all `together`, None inside that.

    The loop stays stable for factors from lower_gain to upper_gain on the input (0 and inf beyond 1e-3 and 1e3), for a
    lag or lead of less than `phase` (rad), and for a delay of less than `delay` (s), inf if any. All of it by the
    linearisation that stands still at one time. A loop that is unstable as it is has factors 1 and 1, phase and
    delay 0.
    """

    lower_gain: Array
    upper_gain: Array
    phase: Array
    delay: Array
    together: Any = None


def loop_margins(A: Array, B: Array, K: Array, period: float) -> LoopMargins:
    """Margins of M loops: A (M, nx, nx), B (M, nx, nu), K (M, nu, nx)."""
    rows = [_of_one(*each, period) for each in zip(A, B, K, strict=True)]
    table = np.array(rows).reshape(len(rows), K.shape[1] + 1, 4)
    lower, upper, phase, delay = (read_only(x) for x in np.moveaxis(table, 2, 0))
    return LoopMargins(lower[:, :-1], upper[:, :-1], phase[:, :-1], delay[:, :-1],
                       LoopMargins(lower[:, -1], upper[:, -1], phase[:, -1], delay[:, -1]))


def _of_one(A: Array, B: Array, K: Array, period: float) -> Array:
    """(nu + 1, 4) margins of each input, and of all."""
    nu = len(K)
    out = np.tile([1.0, 1.0, 0.0, 0.0], (nu + 1, 1))
    closed = A + B @ K
    if _radius(closed) > 1.0 + EDGE:
        return out
    grid = _frequencies(np.linalg.eigvals(A), np.linalg.eigvals(closed))
    loci = _loci(A, B, K, grid)
    for i in range(nu + 1):
        part = B @ K if i == nu else np.outer(B[:, i], K[i])
        out[i, :2] = _gain(closed, part, FACTORS[0]), _gain(closed, part, FACTORS[1])
        out[i, 2:] = _phase_and_delay(A, B, K, i, grid, loci[i], period)
    return out


def _radius(matrix: Any) -> float:
    return float(np.abs(np.linalg.eigvals(matrix)).max())


def _gain(closed: Array, part: Array, end: float) -> float:
    """The factor between 1 and `end` from which `closed + (factor − 1) part` becomes unstable: 0 or inf if none."""
    factors = np.geomspace(1.0, end, 80)
    radii = np.abs(np.linalg.eigvals(closed + (factors[:, None, None] - 1.0) * part)).max(axis=1)
    unstable = np.flatnonzero(radii > 1.0 + EDGE)
    if not unstable.size:
        return 0.0 if end < 1.0 else np.inf
    inside, outside = factors[max(unstable[0] - 1, 0)], factors[unstable[0]]
    for _ in range(BISECTIONS):
        middle = 0.5 * (inside + outside)
        if _radius(closed + (middle - 1.0) * part) > 1.0 + EDGE:
            outside = middle
        else:
            inside = middle
    return float(inside)


def _frequencies(*spectra: NDArray[Any]) -> Array:
    """Frequencies ωh in (0, π) of the search: a grid, denser about the modes."""
    modes = np.abs(np.angle(np.concatenate(spectra)))
    modes = np.unique(modes[(modes > 1e-6) & (modes < np.pi)].round(12))
    steps = 1.0 + np.concatenate([-np.geomspace(1e-6, 0.3, NEAR), np.geomspace(1e-6, 0.3, NEAR)])
    grid = np.concatenate([np.geomspace(1e-5, np.pi, GRID), np.linspace(0.0, np.pi, GRID)[1:],
                           np.outer(modes, steps).reshape(-1)])
    return np.unique(grid[(grid > 0.0) & (grid <= np.pi)])


def _loci(A: Array, B: Array, K: Array, frequencies: Array) -> list[Any]:
    """Of each input the loop's value (F, 1), and of all the eigenvalues of L (F, nu) in order of modulus."""
    z = np.exp(1j * frequencies)[:, None, None]
    L = -K @ np.linalg.solve(z * np.eye(len(A)) - A, B.astype(complex)[None])
    S = np.linalg.inv(np.eye(len(K)) + L)
    each = 1.0 / np.diagonal(S, axis1=1, axis2=2) - 1.0
    values = np.linalg.eigvals(L)
    order = np.argsort(np.abs(values), axis=1)
    return [*(each[:, i:i + 1] for i in range(len(K))), np.take_along_axis(values, order, axis=1)]


def _phase_and_delay(A: Array, B: Array, K: Array, i: int, grid: Array, locus: Any, period: float
                     ) -> tuple[float, float]:
    """Least phase (rad) and delay (s) of all crossings of the unit circle by a locus."""
    above = np.abs(locus) > 1.0
    phase, delay = np.pi, np.inf
    for f, k in np.argwhere(above[1:] != above[:-1]):
        low, high, start = grid[f], grid[f + 1], above[f, k]
        for _ in range(BISECTIONS):
            middle = 0.5 * (low + high)
            if (abs(_loci(A, B, K, np.array([middle]))[i][0, k]) > 1.0) == start:
                low = middle
            else:
                high = middle
        value = _loci(A, B, K, np.array([high]))[i][0, k]
        lag = float(np.mod(np.angle(value) - np.pi, 2.0 * np.pi))    # φ with e^{−jφ} λ = −1
        phase, delay = min(phase, lag, 2.0 * np.pi - lag), min(delay, lag / high * period)
    return phase, delay
