"""Continuity of successive joint states: inequalities on positions and velocities.

With Δt the time since the last valid state (the longest of: by stamps, by reception, two periods), L = `bound` the
factor of the parameter times the velocity limit V of the joint, and v₀ the velocity before:

    |q − q₀| ≤ max(L, GROWTH |v₀|) Δt + SLACK
    |v|      ≤ max(L, GROWTH |v₀|)
    min(v₀, w) − T ≤ v ≤ max(v₀, w) + T,    w = (q − q₀)/Δt,  T = (WITHIN + Δt/BRAKING) V

(in w, Δt is at least one period, and by stamps). The third line rejects a velocity that agrees neither with the
previous velocity nor with the positions; delayed filtered velocities agree with the previous one. GROWTH accepts a
robot that is faster than its description.
"""
from __future__ import annotations

import numpy as np

from ..compiled.entry import quick_entry
from ..compiled.exact import exact

SLACK = 2e-3          # rad or m: quanta and noise of positions
WITHIN = 0.5          # of the velocity limit: noise of velocities
BRAKING = 0.02        # s: the shortest time in which a joint gains or loses its velocity limit
GROWTH = 1.25


@exact
def follows(q0, v0, q, v, bound, usual, turn, longest, least):
    """Whether all three inequalities hold. NaN in v: not measured."""
    for i in range(len(q)):
        moved = q[i] - q0[i]
        if turn[i] > 0.0:
            moved -= turn[i] * np.rint(moved / turn[i])
        fastest = max(bound[i], GROWTH * abs(v0[i]))
        if not abs(moved) <= fastest * longest + SLACK:
            return False
        if np.isnan(v[i]):
            continue
        tolerance = (WITHIN + longest / BRAKING) * usual[i]
        quotient = moved / least
        if not (abs(v[i]) <= fastest and min(v0[i], quotient) - tolerance <= v[i] <= max(v0[i], quotient) + tolerance):
            return False
    return True


@quick_entry("boolean(float64[::1], float64[::1], float64[::1], float64[::1], float64[::1], float64[::1], "
             "float64[::1], float64, float64)")
def follows_entry(q0, v0, q, v, bound, usual, turn, longest, least):
    return follows(q0, v0, q, v, bound, usual, turn, longest, least)
