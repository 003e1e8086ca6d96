"""Time-optimal speed along a path in two sweeps over a grid (TOPP-RA, Pham & Pham 2018), friction included.

With b = ṡ² and u = s̈, every limit at a grid point is `low ≤ f(q' √b, A u + B b + G) ≤ high`, f the effort with
friction, which grows with that without: for given b an interval of u, for any f. From one point to the next b grows by
2 Δs u. The backward sweep finds the largest b from which the end can be reached, the forward sweep the
largest u that stays below it.
"""
from __future__ import annotations

import numpy as np

from ...compiled.entry import entry
from ...compiled.kernel import sweep
from ...dynamics.friction import friction_law, friction_load_share, friction_unloaded

SCANS, HALVINGS = 200, 40
CANDIDATES = 32


@sweep
def accelerations(rows, i, limits, friction, b):
    """Interval of u at point i for this b. rows (4, N, R): A, B, G, slope of q; limits (2, N, R), friction (8, R)."""
    low, high = -np.inf, np.inf
    speed = np.sqrt(b)
    for r in range(rows.shape[2]):
        v = rows[3, i, r] * speed
        law = (friction[0, r], friction[1, r], friction[2, r], friction[3, r], friction[4, r], friction[5, r],
               friction[6, r], friction[7, r])
        rubs = friction_law(law, v)
        least, most = limits[0, i, r] - rubs, limits[1, i, r] - rubs
        if friction[7, r] > 0.0:
            share = friction_load_share(law, v)
            least, most = friction_unloaded(share, least), friction_unloaded(share, most)
        rest = rows[1, i, r] * b + rows[2, i, r]
        A = rows[0, i, r]
        if abs(A) > 1e-12:
            x = (least - rest) / A
            y = (most - rest) / A
            low = max(low, min(x, y))
            high = min(high, max(x, y))
        elif rest < least or rest > most:
            return np.inf, -np.inf
    return low, high


@sweep
def reaches(rows, i, limits, friction, b, step, after):
    """Whether some feasible u leads from b at point i to a value in [0, after] at the next point."""
    low, high = accelerations(rows, i, limits, friction, b)
    return max(low, -b / step) <= min(high, (after - b) / step)


@sweep
def holds(rows, i, limits, friction, b, step, u):
    """Whether u, from b at the previous point, is within the limits at point i."""
    least, most = accelerations(rows, i, limits, friction, max(b + step * u, 0.0))
    return least <= u <= most


@sweep
def fastest(rows, i, limits, friction, b, step, after):
    """The largest u from b at point i to at most `after` at the next point, feasible there too if possible."""
    low, high = accelerations(rows, i, limits, friction, b)
    high = min(high, (after - b) / step)
    low = min(max(low, -b / step), high)
    if holds(rows, i + 1, limits, friction, b, step, high):
        return high
    for k in range(1, CANDIDATES + 1):
        good = high - (high - low) * k / CANDIDATES
        if holds(rows, i + 1, limits, friction, b, step, good):
            bad = high - (high - low) * (k - 1) / CANDIDATES
            for _ in range(HALVINGS):
                u = 0.5 * (good + bad)
                if holds(rows, i + 1, limits, friction, b, step, u):
                    good = u
                else:
                    bad = u
            return good
    return high


@entry("int64(float64[:, :, ::1], float64[:, :, ::1], float64[:, ::1], float64[::1], float64, float64, float64, "
       "float64[::1], float64[::1])", nogil=True)
def path_speed(rows, limits, friction, most, spacing, first, last, b, u):
    """b (N,) and u (N − 1,) of the fastest motion from b = first to last; most (N,): bounds of b.

    Returns −1 on success, the point from which the end cannot be reached, or 0 if the start is too fast.
    """
    count = b.shape[0]
    step = 2.0 * spacing
    b[count - 1] = last
    for i in range(count - 2, -1, -1):
        good = -1.0
        bad = most[i]
        if reaches(rows, i, limits, friction, most[i], step, b[i + 1]):
            good = most[i]
        else:
            x = most[i]
            for k in range(SCANS):
                x = most[i] * ((SCANS - 1.0 - k) / SCANS) ** 2
                if reaches(rows, i, limits, friction, x, step, b[i + 1]):
                    good = x
                    break
                bad = x
        if good < 0.0:
            return i
        for _ in range(HALVINGS if good < most[i] else 0):
            x = 0.5 * (good + bad)
            if reaches(rows, i, limits, friction, x, step, b[i + 1]):
                good = x
            else:
                bad = x
        b[i] = good
    if first > b[0]:
        return 0
    b[0] = first
    for i in range(count - 1):
        u[i] = fastest(rows, i, limits, friction, b[i], step, b[i + 1])
        b[i + 1] = max(b[i] + step * u[i], 0.0)
    return -1
