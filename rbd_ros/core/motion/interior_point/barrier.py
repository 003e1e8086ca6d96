"""Rows of limits in the barrier problem: slacks, violations, multipliers and their steps.

`min_e ρ e − µ log(e − g) − µ log e` for a row g ≤ e with violation e, penalty ρ and slack s = e − g.
"""
from __future__ import annotations

import numpy as np

from ...compiled.entry import entry

MULTIPLIER_RANGE = 1e8    # multipliers stay within this factor of µ / slack
BOUNDARY_SHARE = 0.995    # fraction-to-the-boundary rule


@entry("float64(float64[::1], float64, float64, float64[::1], float64[::1])", nogil=True)
def best_slack(g, mu, rho, e, s):
    """Return the minimum of Σ ρ e − µ log(e − g) − µ log e over e; fill e and s. µ / s is a multiplier."""
    total = 0.0
    logs = 0.0
    product = 1.0
    for i in range(g.shape[0]):
        x = rho * g[i]
        far_root = np.sqrt(x * x + 4.0 * mu * mu) + abs(x)
        near_root = 4.0 * mu * mu / far_root    # root of smaller size, without cancellation
        if g[i] > 0.0:
            e[i] = (2.0 * mu + far_root) / (2.0 * rho)
            s[i] = (2.0 * mu + near_root) / (2.0 * rho)
        else:
            e[i] = (2.0 * mu + near_root) / (2.0 * rho)
            s[i] = (2.0 * mu + far_root) / (2.0 * rho)
        total += e[i]
        product *= e[i] * s[i]
        if not 1e-100 < product < 1e100:    # one logarithm for many rows
            logs += np.log(product)
            product = 1.0
    return rho * total - mu * (logs + np.log(product))


@entry("void(float64[::1], float64[::1], float64[::1], float64, float64, float64[::1], float64[::1], float64[::1])",
       nogil=True)
def multipliers(e, s, y, mu, rho, w, D, target):
    """Multipliers y of g ≤ e (clipped in place) and w of e ≥ 0; D := 1 / (s / y + e / w), target := µ / s."""
    for i in range(e.shape[0]):
        target[i] = mu / s[i]
        y[i] = min(max(y[i], target[i] / MULTIPLIER_RANGE), min(MULTIPLIER_RANGE * target[i], rho))
        w[i] = min(max(rho - y[i], mu / (MULTIPLIER_RANGE * e[i])), MULTIPLIER_RANGE * mu / e[i])
        D[i] = 1.0 / (s[i] / y[i] + e[i] / w[i])


@entry("void(float64[::1], float64[::1], float64, float64[::1])", nogil=True)
def complementarity(g, y, rho, out):
    """out := maximum and sum of the complementarity products, largest row g.

    At a stationary point of a convex problem with penalty ρ, the sum is the duality gap.
    """
    largest = 0.0
    gap = 0.0
    violation = -1.0
    for i in range(g.shape[0]):
        c = -g[i] * y[i] if g[i] < 0.0 else g[i] * (rho - y[i])
        largest = max(largest, c)
        gap += c
        violation = max(violation, g[i])
    out[0], out[1], out[2] = largest, gap, violation


@entry("float64(float64[::1], float64[::1], float64[::1], float64, float64)", nogil=True)
def centring(e, s, y, mu, rho):
    """Largest deviation of the complementarity products from µ."""
    largest = 0.0
    for i in range(e.shape[0]):
        largest = max(largest, abs(s[i] * y[i] - mu), abs(e[i] * (rho - y[i]) - mu))
    return largest


@entry("float64(float64[::1], float64[::1], float64[::1], float64[::1], float64[::1], float64[::1], float64, float64, "
       "float64[::1])", nogil=True)
def step_lengths(e, s, y, w, D, change, mu, rho, y_next):
    """Return the largest primal step size (≤ 1) for the change of the rows; y_next := y after the largest dual step.

    Newton: dy = µ/s − y + D change, de = e/w D change.
    """
    ratio = 0.0      # largest relative decrease of s and e
    ratio_y = 0.0    # largest relative decrease of y and ρ − y
    for i in range(e.shape[0]):
        weighted = D[i] * change[i]
        dy = mu / s[i] - y[i] + weighted
        de = e[i] / w[i] * weighted
        ratio = max(ratio, (change[i] - de) / s[i], -de / e[i])
        ratio_y = max(ratio_y, -dy / max(y[i], 1e-300), dy / max(rho - y[i], 1e-300))
        y_next[i] = dy
    alpha = min(1.0, BOUNDARY_SHARE / max(ratio_y, 1e-300))
    for i in range(e.shape[0]):
        y_next[i] = min(max(y[i] + alpha * y_next[i], 0.0), rho)
    return min(1.0, BOUNDARY_SHARE / max(ratio, 1e-300))
