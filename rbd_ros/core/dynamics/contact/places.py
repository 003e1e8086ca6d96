"""Closest points of contacts in the world, and relative velocities there."""
from __future__ import annotations

import numpy as np

from ...compiled.entry import entry
from ...compiled.kernel import sweep
from ...lie.spatial import add, compose, cross, rotate, rotate_back, sub
from ...model.block import (
    finite_range, integer, layout, matrix, node_count, put, put_matrix, rates_valid, size_q, size_v, vector,
)
from ...model.configuration import positions_valid
from ...model.surfaces.contact_block import (
    FIRST, ITEMS, NODE_1, NODE_2, POSITION_1, POSITION_2, RECORD, ROTATION_1, ROTATION_2, SECOND, START, WALKS,
)
from ..constrained.rows import in_world
from ..kinematics import _OMEGA, _P, _R, _V, SIZE, node_motion
from ..turning import transpose
from .closest import shape_of, touching
from .contact_rows import contact_axes

# per contact: axes (columns x and y of the first surface's chart, z its outward normal) and the second surface's point,
# in the world; gap; velocity of the second body relative to the first at the point, in contact axes
AXES, POINT, GAP, SPEED, PLACE = layout(axes=9, point=3, gap=1, speed=3)


@sweep
def point_velocity(i, W, P):
    """Velocity of the point P (world) of node i, world axes."""
    if i < 0:
        z = 0.0 * P[0]
        return (z, z, z)
    R = matrix(W, SIZE * i + _R)
    r = rotate_back(R, sub(P, vector(W, SIZE * i + _P)))
    return rotate(R, add(vector(W, SIZE * i + _V), cross(vector(W, SIZE * i + _OMEGA), r)))


@sweep
def contact_place(C, o, W, out, offset):
    """Into out[offset:] the data of the contact with record o; whether it has closest points."""
    i1 = integer(C, o + NODE_1)
    i2 = integer(C, o + NODE_2)
    R1, p1 = in_world(W, SIZE, i1, matrix(C, o + ROTATION_1), vector(C, o + POSITION_1))
    R2, p2 = in_world(W, SIZE, i2, matrix(C, o + ROTATION_2), vector(C, o + POSITION_2))
    R = compose(transpose(R1), R2)
    p = rotate_back(R1, sub(p2, p1))
    first, second = shape_of(C, o + FIRST), shape_of(C, o + SECOND)
    x, y, valid = touching(first, second, integer(C, o + WALKS) > 0, R, p)
    if not valid:
        return False
    axes = contact_axes(first, second, R, x, y)[0]
    E = compose(R1, axes)
    P = add(rotate(R2, y), p2)
    put_matrix(out, offset + AXES, E)
    put(out, offset + POINT, P)
    out[offset + GAP] = rotate_back(axes, sub(add(rotate(R, y), p), x))[2]
    put(out, offset + SPEED, rotate_back(E, sub(point_velocity(i2, W, P), point_velocity(i1, W, P))))
    return True


@entry("int64(float64[::1], float64[::1], float64[::1], float64[::1], int64, float64[::1])")
def contact_places_entry(B, C, q, v, states, out):
    """Contacts of `states` states, PLACE numbers per contact; returns as `contact_rows_entry`."""
    items = integer(C, ITEMS)
    if not (positions_valid(B, q, states) and rates_valid(B, v, states)):
        return -2
    W = np.empty(SIZE * node_count(B))
    for s in range(states):
        node_motion(B, q, s * size_q(B), v, v, s * size_v(B), 1, True, W)
        for item in range(items):
            offset = (s * items + item) * PLACE
            if not contact_place(C, START + RECORD * item, W, out, offset):
                return item + s * items
    return -1 if finite_range(out, 0, states * items * PLACE) else -2
