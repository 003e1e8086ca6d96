"""Rows of limits in the barrier problem: slacks, excesses, multipliers and their steps, one pass each.

`min_e ρ e − µ log(e − g) − µ log e` for a row g that may be violated by e at the penalty ρ; s = e − g.
"""
from __future__ import annotations

import numpy as np

from ...compiled.entry import entry

CLIP = 1e8          # multipliers stay within this factor of µ / slack
BOUNDARY = 0.995    # largest share of the step to the boundary


@entry("float64(float64[::1], float64, float64, float64[::1], float64[::1])", nogil=True)
def best_slack(g, mu, rho, e, s):
    """e and s at the minimum of Σ ρ e − µ log(e − g) − µ log e, which is returned; µ / s is a multiplier."""
    total = 0.0
    logs = 0.0
    product = 1.0
    for i in range(g.shape[0]):
        x = rho * g[i]
        near = np.sqrt(x * x + 4.0 * mu * mu) + abs(x)
        far = 4.0 * mu * mu / near    # the other root, without cancellation
        if g[i] > 0.0:
            e[i] = (2.0 * mu + near) / (2.0 * rho)
            s[i] = (2.0 * mu + far) / (2.0 * rho)
        else:
            e[i] = (2.0 * mu + far) / (2.0 * rho)
            s[i] = (2.0 * mu + near) / (2.0 * rho)
        total += e[i]
        product *= e[i] * s[i]
        if not 1e-100 < product < 1e100:    # one logarithm for many rows
            logs += np.log(product)
            product = 1.0
    return rho * total - mu * (logs + np.log(product))


@entry("void(float64[::1], float64[::1], float64[::1], float64, float64, float64[::1], float64[::1], float64[::1])",
       nogil=True)
def prices(e, s, y, mu, rho, w, D, target):
    """Multipliers y of g ≤ e, clipped in place, and w of e ≥ 0; D = 1 / (s / y + e / w), target = µ / s."""
    for i in range(e.shape[0]):
        target[i] = mu / s[i]
        y[i] = min(max(y[i], target[i] / CLIP), min(CLIP * target[i], rho))
        w[i] = min(max(rho - y[i], mu / (CLIP * e[i])), CLIP * mu / e[i])
        D[i] = 1.0 / (s[i] / y[i] + e[i] / w[i])


@entry("void(float64[::1], float64[::1], float64, float64[::1])", nogil=True)
def complements(g, y, rho, out):
    """out := max and sum of the complementarity products, max violation of a row.

    At a stationary point the sum is the duality gap of a convex problem with penalty ρ.
    """
    most = 0.0
    total = 0.0
    worst = -1.0
    for i in range(g.shape[0]):
        c = -g[i] * y[i] if g[i] < 0.0 else g[i] * (rho - y[i])
        most = max(most, c)
        total += c
        worst = max(worst, g[i])
    out[0], out[1], out[2] = most, total, worst


@entry("float64(float64[::1], float64[::1], float64[::1], float64, float64)", nogil=True)
def centring(e, s, y, mu, rho):
    """Largest deviation of the complementarity products from µ."""
    most = 0.0
    for i in range(e.shape[0]):
        most = max(most, abs(s[i] * y[i] - mu), abs(e[i] * (rho - y[i]) - mu))
    return most


@entry("float64(float64[::1], float64[::1], float64[::1], float64[::1], float64[::1], float64[::1], float64, float64, "
       "float64[::1])", nogil=True)
def step_lengths(e, s, y, w, D, change, mu, rho, moved):
    """Step sizes (≤ 1) for a step that changes the rows by `change`; moved := y after its largest step.

    e, s and y change by Newton: dy = µ/s − y + D change, de = e/w D change.
    """
    shrink = 0.0     # of s and e
    shrink_y = 0.0    # of y and ρ − y
    for i in range(e.shape[0]):
        priced = D[i] * change[i]
        dy = mu / s[i] - y[i] + priced
        de = e[i] / w[i] * priced
        shrink = max(shrink, (change[i] - de) / s[i], -de / e[i])
        shrink_y = max(shrink_y, -dy / max(y[i], 1e-300), dy / max(rho - y[i], 1e-300))
        moved[i] = dy
    alpha = min(1.0, BOUNDARY / max(shrink_y, 1e-300))
    for i in range(e.shape[0]):
        moved[i] = min(max(y[i] + alpha * moved[i], 0.0), rho)
    return min(1.0, BOUNDARY / max(shrink, 1e-300))
