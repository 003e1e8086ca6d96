"""Rotation rows of constraints: relative rotation of two frames, smooth except at θ = π.

R is the rotation of frame 2 in frame 1, ω and ω̇ the angular velocity of 2 relative to 1 and its derivative, in axes of
1. All three kinds vanish for aligned constrained axes, where f' = ω, and grow with 2 sin(θ/2) or sin θ.
"""
from __future__ import annotations

import numpy as np

from ..compiled.kernel import kernel
from ..lie.so3 import matrix_to_quaternion
from ..lie.spatial import add, cross, dot, scale


@kernel
def transpose(R):
    return (R[0], R[3], R[6], R[1], R[4], R[7], R[2], R[5], R[8])


@kernel
def row_of(R, c):
    """Row c of R."""
    if c == 0:
        return (R[0], R[1], R[2])
    if c == 1:
        return (R[3], R[4], R[5])
    return (R[6], R[7], R[8])


@kernel
def one_axis(R, c):
    """Unit vector c, in the type of R."""
    z = 0.0 * R[0]
    if c == 0:
        return (z + 1.0, z, z)
    if c == 1:
        return (z, z + 1.0, z)
    return (z, z, z + 1.0)


@kernel
def turned(R, rx, ry, rz):
    """Data of rotation rows: their number, the free axis (two rows) or the constrained one (one row), and
    three: (w, v) of R's quaternion, w ≥ 0;           f = 2 v          f' = w ω + ω × v
    two:   the other's free axis u, h = √(2/(1+u_c)); f = h (e_c × u)  f' = h e_c × u' + h' u'_c e_c × u,  u' = ω × u;
           at θ = π, where the direction is arbitrary, h is −1 and f twice another axis: `project` leaves it;
    one:   b on the predecessor, u on the successor;  f = −b·u         f' = −b·(ω × u).
    """
    count = int(rx.real) + int(ry.real) + int(rz.real)
    z = 0.0 * R[0]
    if count == 3:
        x, y, s, w = matrix_to_quaternion(R)
        if w.real < 0.0:
            x, y, s, w = -x, -y, -s, -w
        return count, 0, (x, y, s), w
    if count == 2:
        c = 0 if rx.real == 0.0 else (1 if ry.real == 0.0 else 2)
        u = row_of(transpose(R), c)
        d = 1.0 + dot(u, one_axis(R, c))
        return count, c, u, np.sqrt(2.0 / d) if d.real > 1e-30 else z - 1.0
    c = 0 if rx.real != 0.0 else (1 if ry.real != 0.0 else 2)
    return count, c, row_of(transpose(R), (c + 2) % 3), z


@kernel
def turning_value(R, count, c, u, s):
    """Rotation rows of f, by axis; undefined for unconstrained axes."""
    if count == 3:
        return scale(2.0, u)
    e = one_axis(R, c)
    if count == 2:
        return scale(s, cross(e, u)) if s.real > 0.0 else scale(2.0, one_axis(R, (c + 1) % 3))
    value = -dot(one_axis(R, (c + 1) % 3), u)
    return scale(value, e)


@kernel
def turning_rate(R, count, c, u, s, omega):
    """Rotation rows of f' = G ω."""
    if count == 3:
        return add(scale(s, omega), cross(omega, u))
    e = one_axis(R, c)
    du = cross(omega, u)
    if count == 2:
        slope = -0.25 * s * s * s    # h' = −½ h/(1 + u_c) = −¼ h³
        return add(scale(s, cross(e, du)), scale(slope * dot(e, du), cross(e, u)))
    return scale(-dot(one_axis(R, (c + 1) % 3), du), e)


@kernel
def turning_acceleration(R, count, c, u, s, omega, alpha):
    """Rotation rows of f'' = G ω̇ + Ġ ω."""
    if count == 3:
        du = scale(0.5, add(scale(s, omega), cross(omega, u)))
        ds = -0.5 * dot(omega, u)
        return add(add(scale(s, alpha), cross(alpha, u)), add(scale(ds, omega), cross(omega, du)))
    e = one_axis(R, c)
    du = cross(omega, u)
    ddu = add(cross(alpha, u), cross(omega, du))
    if count == 2:
        slope = -0.25 * s * s * s
        curvature = 0.1875 * s * s * s * s * s    # h'' = ¾ h/(1 + u_c)² = 3/16 h⁵
        rate = dot(e, du)
        return add(add(scale(s, cross(e, ddu)), scale(2.0 * slope * rate, cross(e, du))),
                   scale(slope * dot(e, ddu) + curvature * rate * rate, cross(e, u)))
    return scale(-dot(one_axis(R, (c + 1) % 3), ddu), e)
