"""Positions on the configuration group: `integrate` moves along a velocity, `difference` is its inverse."""
from __future__ import annotations

import numpy as np

from ..compile import kernel, quick_entry
from ..lie.series import inverse_ratio
from ..lie.so3 import (
    quaternion_exp,
    quaternion_log,
    quaternion_multiply,
    quaternion_to_matrix,
    right_jacobian,
)
from ..lie.spatial import add, cross, rotate, rotate_back, scale, sub
from .block import (
    FREE,
    IQ,
    IV,
    NODES,
    NQ,
    NV,
    OWNER,
    SPHERICAL,
    all_finite,
    dof,
    kind,
    node,
    positions_valid,
    put,
    rates_valid,
    vector,
)


@kernel
def _turn(q, k, r, out):
    """Quaternion at q[k:] turned by the body-frame rotation vector r, renormalised."""
    e = quaternion_exp(r)
    x, y, z, w = quaternion_multiply((q[k], q[k + 1], q[k + 2], q[k + 3]), e)
    s = 1.0 / np.sqrt(x * x + y * y + z * z + w * w)
    out[k] = s * x
    out[k + 1] = s * y
    out[k + 2] = s * z
    out[k + 3] = s * w


@kernel
def _between(q0, q1, k):
    """Rotation vector from the quaternion at q0[k:] to that at q1[k:], in the axes of the first."""
    inverse = (-q0[k], -q0[k + 1], -q0[k + 2], q0[k + 3])
    x, y, z, w = quaternion_multiply(inverse, (q1[k], q1[k + 1], q1[k + 2], q1[k + 3]))
    return quaternion_log(x, y, z, w)


@kernel
def integrate_state(M, q, k, dv, j, out):
    """`out = q ⊕ dv` for one state: `T exp(dv)` for poses and quaternions, a sum for all else."""
    for i in range(int(M[NODES].real)):
        o = node(i)
        if M[o + OWNER].real == 0.0:
            continue
        t = kind(M, o)
        iq = k + int(M[o + IQ].real)
        iv = j + int(M[o + IV].real)
        if t == FREE:
            r = vector(dv, iv)
            u = vector(dv, iv + 3)
            step = rotate(right_jacobian((-r[0], -r[1], -r[2])), u)
            R = quaternion_to_matrix(q[iq + 3], q[iq + 4], q[iq + 5], q[iq + 6])
            put(out, iq, add(vector(q, iq), rotate(R, step)))
            _turn(q, iq + 3, r, out)
        elif t == SPHERICAL:
            _turn(q, iq, vector(dv, iv), out)
        else:
            for c in range(dof(t)):
                out[iq + c] = q[iq + c] + dv[iv + c]


@quick_entry("boolean(float64[::1], float64[::1], float64[::1], float64[::1], int64)")
def integrate_entry(M, q, dv, out, states):
    """This many states, checked; False where the input is not what the model takes, or out is not finite."""
    if not (positions_valid(M, q, states) and rates_valid(M, dv, states)):
        return False
    nq = int(M[NQ])
    for s in range(states):
        integrate_state(M, q, s * nq, dv, s * int(M[NV]), out)
    return all_finite(out)


@quick_entry("boolean(float64[::1], float64[::1], float64[::1], float64[::1], int64)")
def difference_entry(M, q0, q1, out, states):
    """This many states, checked; False where the input is not what the model takes, or out is not finite."""
    if not (positions_valid(M, q0, states) and positions_valid(M, q1, states)):
        return False
    nq = int(M[NQ])
    nv = int(M[NV])
    for s in range(states):
        for i in range(int(M[NODES])):
            o = node(i)
            if M[o + OWNER] == 0.0:
                continue
            t = kind(M, o)
            k = s * nq + int(M[o + IQ])
            j = s * nv + int(M[o + IV])
            if t == FREE:
                r = _between(q0, q1, k + 3)
                R = quaternion_to_matrix(q0[k + 3], q0[k + 4], q0[k + 5], q0[k + 6])
                p = rotate_back(R, sub(vector(q1, k), vector(q0, k)))
                # inverse of the left Jacobian: 1 − ½ r̂ + c r̂²
                rp = cross(r, p)
                c = inverse_ratio(r[0] * r[0] + r[1] * r[1] + r[2] * r[2])
                put(out, j, r)
                put(out, j + 3, add(sub(p, scale(0.5, rp)), scale(c, cross(r, rp))))
            elif t == SPHERICAL:
                put(out, j, _between(q0, q1, k))
            else:
                for c in range(dof(t)):
                    out[j + c] = q1[k + c] - q0[k + c]
    return all_finite(out)
