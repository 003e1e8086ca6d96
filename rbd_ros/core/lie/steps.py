"""Steps of rotations and poses: rotations about z, and exponential steps of unit quaternions (x, y, z, w) in arrays."""
from __future__ import annotations

import numpy as np

from ..compiled.kernel import kernel
from .series import inverse_ratio
from .sincos import sincos
from .so3 import quaternion_exp, quaternion_log, quaternion_multiply, quaternion_to_matrix, right_jacobian
from .spatial import add, cross, rotate, rotate_back, scale, sub, unit


@kernel
def turn_z(R, x):
    """`R Rz(x)`: R rotated about its body z axis."""
    s, c = sincos(x)
    return (R[0] * c + R[1] * s, R[1] * c - R[0] * s, R[2],
            R[3] * c + R[4] * s, R[4] * c - R[3] * s, R[5],
            R[6] * c + R[7] * s, R[7] * c - R[6] * s, R[8])


@kernel
def turn(q, k, r, out):
    """Into out[k:] the quaternion at q[k:] rotated by the rotation vector r in body axes, renormalised."""
    e = quaternion_exp(r)
    x, y, z, w = quaternion_multiply((q[k], q[k + 1], q[k + 2], q[k + 3]), e)
    s = 1.0 / np.sqrt(x * x + y * y + z * z + w * w)
    out[k] = s * x
    out[k + 1] = s * y
    out[k + 2] = s * z
    out[k + 3] = s * w


@kernel
def turn_between(q0, q1, k):
    """Rotation vector from the quaternion at q0[k:] to that at q1[k:], in body axes of the first."""
    inverse = (-q0[k], -q0[k + 1], -q0[k + 2], q0[k + 3])
    x, y, z, w = quaternion_multiply(inverse, (q1[k], q1[k + 1], q1[k + 2], q1[k + 3]))
    return quaternion_log(x, y, z, w)


@kernel
def turn_tangent(q, k, e, s, out, j):
    """Add s times the derivative of the quaternion at q[k:] by the rotation about e, in body axes, to out[j:]."""
    x, y, z, w = quaternion_multiply((q[k], q[k + 1], q[k + 2], q[k + 3]), (e[0], e[1], e[2], 0.0))
    out[j] += 0.5 * s * x
    out[j + 1] += 0.5 * s * y
    out[j + 2] += 0.5 * s * z
    out[j + 3] += 0.5 * s * w


@kernel
def axes_at(q, k):
    """Rotation matrix of the quaternion at q[k:]."""
    return quaternion_to_matrix(q[k], q[k + 1], q[k + 2], q[k + 3])


@kernel
def move(q, k, r, u, out):
    """Into out[k:] the pose at q[k:] (position, quaternion) times exp of the screw (r, u), in body axes."""
    step = rotate(right_jacobian((-r[0], -r[1], -r[2])), u)
    p = add((q[k], q[k + 1], q[k + 2]), rotate(axes_at(q, k + 3), step))
    out[k] = p[0]
    out[k + 1] = p[1]
    out[k + 2] = p[2]
    turn(q, k + 3, r, out)


@kernel
def move_tangent(q, k, c, s, out, j):
    """Add s times the derivative of the pose at q[k:] along coordinate c of its body twist to out[j:]."""
    if c < 3:
        turn_tangent(q, k + 3, unit(c, q[k]), s, out, j + 3)
        return
    e = rotate(axes_at(q, k + 3), unit(c - 3, q[k]))
    for d in range(3):
        out[j + d] += s * e[d]


@kernel
def move_between(q0, q1, k):
    """Screw (r, u), in body axes, by which `move` takes the pose at q0[k:] to that at q1[k:]."""
    r = turn_between(q0, q1, k + 3)
    p = rotate_back(axes_at(q0, k + 3), sub((q1[k], q1[k + 1], q1[k + 2]), (q0[k], q0[k + 1], q0[k + 2])))
    # inverse of the left Jacobian: 1 − ½ r̂ + c r̂²
    rp = cross(r, p)
    c = inverse_ratio(r[0] * r[0] + r[1] * r[1] + r[2] * r[2])
    return r, add(sub(p, scale(0.5, rp)), scale(c, cross(r, rp)))
