"""Friction and limits of joints, as kernels of the simulation take them, and the boxes of their impulses (`impulses`).

Dry friction by load depends on what the joint carries, which the drive's effort determines: while it slides it is what
`friction_unloaded` takes of that effort, and at rest it is anything between its values in both directions.

A stop has target velocity zero and a one-sided impulse. A velocity limit V has target ±V and brakes only, as in DART:
with u = v ∓ V, either u = 0, or the impulse is zero. Dry friction of a joint beyond its velocity limit acts in full.
"""
from __future__ import annotations

import numpy as np

from ..compiled.entry import entry
from ..compiled.kernel import kernel, sweep
from ..dynamics.friction import friction_level, friction_unloaded
from ..model.block import all_finite

# Rows of `joints` (ROWS, nv). POSITION: index in q of a coordinate that stops act on, or −1.
DAMPING, COULOMB, BREAKAWAY, STRIBECK, BRAKES, FASTEST, POSITION, LOWER, UPPER, ASYMMETRY, LOAD, ROWS = range(12)
# Rows of boxes (6, nv): impulses from LOW to HIGH, at the target velocity AIM; those of dry friction from LEAST to
# MOST; LIMIT.
LOW, HIGH, AIM, LEAST, MOST, LIMIT, BOX_ROWS = range(7)
FREE, BRAKED, HELD = 0.0, 1.0, 2.0    # values of LIMIT: within limits, at that of velocity, at a stop
ROUNDING = 1e-12    # relative to a velocity limit


@kernel
def dry_friction(joints, i, speed):
    """Dry friction of coordinate i at this speed, brakes included, without direction and load, N m or N."""
    coulomb, breakaway = joints[COULOMB, i], joints[BREAKAWAY, i]
    if coulomb == breakaway:
        return joints[BRAKES, i] + coulomb
    return joints[BRAKES, i] + friction_level(
        (0.0, coulomb, breakaway, joints[STRIBECK, i], 1.0, 0.0, 0.0, 0.0), speed)


@kernel
def friction_range(joints, i, speed, effort):
    """Least and largest effort of dry friction on coordinate i, those of sliding forwards and backwards, at this speed
    and effort of the drive, less damping.
    """
    level = dry_friction(joints, i, speed)
    forwards, backwards = level + joints[ASYMMETRY, i], level - joints[ASYMMETRY, i]
    share = joints[LOAD, i]
    if share == 0.0:
        return -forwards, backwards
    return friction_unloaded(share, effort - forwards) - effort, friction_unloaded(-share, effort + backwards) - effort


@kernel
def friction_boxes(joints, v, effort, scale, boxes):
    """Boxes of dry friction in `scale` s at velocities v and efforts of the drives, without limits; returns whether any
    is not 0.
    """
    rubs = False
    for i in range(v.shape[0]):
        low, high = friction_range(joints, i, v[i], effort[i] - joints[DAMPING, i] * v[i])
        boxes[LOW, i] = boxes[LEAST, i] = scale * low
        boxes[HIGH, i] = boxes[MOST, i] = scale * high
        boxes[AIM, i] = 0.0
        boxes[LIMIT, i] = FREE
        rubs |= low < high
    return rubs


@kernel
def is_rough(joints):
    """Whether any coordinate has dry friction."""
    for i in range(joints.shape[1]):
        if (joints[COULOMB, i] != 0.0 or joints[BREAKAWAY, i] != 0.0 or joints[BRAKES, i] != 0.0
                or joints[ASYMMETRY, i] != 0.0 or joints[LOAD, i] != 0.0):
            return True
    return False


@kernel
def has_stops(joints):
    """Whether any coordinate has a stop."""
    for i in range(joints.shape[1]):
        if joints[POSITION, i] >= 0.0 and (joints[LOWER, i] > -np.inf or joints[UPPER, i] < np.inf):
            return True
    return False


@kernel
def is_limited(joints):
    """Whether any coordinate has a stop or a velocity limit."""
    for i in range(joints.shape[1]):
        if joints[FASTEST, i] < np.inf:
            return True
    return has_stops(joints)


@sweep
def limit_boxes(joints, q, v, boxes):
    """Add boxes for the limits that a state exceeds; returns 0 if there is no new one, 1, or 2 if one is a stop."""
    found = 0
    for i in range(v.shape[0]):
        k = int(joints[POSITION, i])
        below = k >= 0 and q[k] < joints[LOWER, i]
        above = k >= 0 and q[k] > joints[UPPER, i]
        if (below or above) and boxes[LIMIT, i] != HELD:
            boxes[LIMIT, i] = HELD
            boxes[AIM, i] = 0.0
            boxes[LOW, i] = -np.inf if above else boxes[LEAST, i]
            boxes[HIGH, i] = np.inf if below else boxes[MOST, i]
            found = 2
        elif abs(v[i]) > (1.0 + ROUNDING) * joints[FASTEST, i] and boxes[LIMIT, i] == FREE:
            boxes[LIMIT, i] = BRAKED
            boxes[AIM, i] = np.sign(v[i]) * joints[FASTEST, i]
            boxes[LOW, i] = boxes[MOST, i] if v[i] < 0.0 else -np.inf
            boxes[HIGH, i] = np.inf if v[i] < 0.0 else boxes[LEAST, i]
            found = max(found, 1)
    return found


@entry("boolean(float64[:, ::1], float64[::1], float64[::1], float64, float64[:, ::1])")
def friction_boxes_entry(joints, v, effort, scale, boxes):
    """`friction_boxes`."""
    return friction_boxes(joints, v, effort, scale, boxes)


@entry("int64(float64[:, ::1], float64[::1], float64[::1], float64[:, ::1])")
def limit_boxes_entry(joints, q, v, boxes):
    """`limit_boxes`."""
    return limit_boxes(joints, q, v, boxes)


@kernel
def any_fast(joints, v):
    """Whether a velocity is beyond its limit."""
    fast = False
    for i in range(v.shape[0]):
        fast |= abs(v[i]) > (1.0 + ROUNDING) * joints[FASTEST, i]
    return fast


@kernel
def finite(q, v):
    """Whether a state is finite."""
    return all_finite(q) and all_finite(v)


@kernel
def effort_at(efforts, x, out):
    """out (nv,): efforts (k, nv), given at equal distances over a step, at the part x of it: their polynomial."""
    count = efforts.shape[0]
    if count == 1:
        for i in range(out.shape[0]):
            out[i] = efforts[0, i]
        return
    for i in range(out.shape[0]):
        out[i] = 0.0
    at = (count - 1) * x
    for j in range(count):
        weight = 1.0
        for k in range(count):
            if k != j:
                weight *= (at - k) / (j - k)
        for i in range(out.shape[0]):
            out[i] += weight * efforts[j, i]
