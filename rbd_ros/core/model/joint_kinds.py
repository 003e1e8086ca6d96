"""Joint kinds of the kernels: everything specific to one kind of node. `joints.py` has the declared joint types.

A node has a pose `T(q)` in its parent, a joint twist `S(q) q̇` in node axes, and additive coordinates or a quaternion
(integrated in `configuration.py`). The axis of a node of one coordinate is z, by the model builder; other nodes have
the axes of the joint's frame. Other kernels call the predicates and functions below; for an unknown kind these return
NaN, which entries refuse. A new kind: a number here and a branch wherever kinds differ; further steps are in
CONTRIBUTING.md. `test/model/test_joint_kinds.py` compares the functions with each other.
"""
from __future__ import annotations

import numpy as np

from ..compiled.kernel import kernel, routine, sweep
from ..lie import exponential_series, polynomial_series, steps
from ..lie.so3 import exp_map, right_jacobian, right_jacobian_dot, right_jacobian_second
from ..lie.spatial import add, compose, rotate, rotate_back, scale, unit
from .block import OFFSET, PITCH, POSITION, RATIO, ROTATION, integer, kind, matrix, put_add, vector

REVOLUTE, PRISMATIC, HELICAL, SPHERICAL, SPHERICAL_EXP, FREE, CAM = 0, 1, 2, 3, 4, 5, 6


@kernel
def is_revolute(t):
    """The most frequent kind, with shortcuts in kernels: S is z times `B[o + RATIO]`."""
    return t == REVOLUTE


@kernel
def is_screw(t):
    """One coordinate, constant S: rotation about and translation along z."""
    return t in (REVOLUTE, PRISMATIC, HELICAL)


@kernel
def has_axis(t):
    """One coordinate: rotation about and translation along z."""
    return is_screw(t) or t == CAM


@kernel
def is_free(t):
    """Position and quaternion; velocities ω, then the origin's u, in node axes."""
    return t == FREE


@kernel
def has_quaternion(t):
    """Whether a quaternion describes the rotation, and the first three velocities its rate."""
    return t in (SPHERICAL, FREE)


@kernel
def quaternion_at(t):
    """Index of the quaternion among the node's positions."""
    return 3 if t == FREE else 0


@kernel
def adds_up(t):
    """Whether q ⊕ x is q + x: velocities are derivatives of positions."""
    return has_axis(t) or t == SPHERICAL_EXP


@kernel
def varies(t):
    """Whether S depends on q."""
    return t in (SPHERICAL_EXP, CAM)


@kernel
def dof(t):
    """Number of velocity coordinates; one, with a NaN column, for unknown kinds."""
    if t in (SPHERICAL, SPHERICAL_EXP):
        return 3
    return 6 if t == FREE else 1


@kernel
def advance(B, o, q, k, i):
    """Derivative i of a cam's advance with respect to its angle."""
    return polynomial_series.polynomial(B, integer(B, o + PITCH), i, B[o + RATIO] * q[k] + B[o + OFFSET])


@kernel
def screw(B, o, q, k, t):
    """Rotation about and translation along the axis per unit of the coordinate."""
    one = 1.0 + 0.0 * q[k]
    if t == HELICAL:
        return one, B[o + PITCH] + 0.0 * q[k]
    if t == CAM:
        return one, advance(B, o, q, k, 1)
    return (0.0 * q[k], one) if t == PRISMATIC else (one, 0.0 * q[k])


@kernel
def joint_pose(B, o, q, k):
    """Pose `(R, p)` of the node in its parent at the positions q[k:]."""
    R = matrix(B, o + ROTATION)
    p = vector(B, o + POSITION)
    t = kind(B, o)
    if has_axis(t):
        x = B[o + RATIO] * q[k] + B[o + OFFSET]
        if t == REVOLUTE:
            return steps.turn_z(R, x), p
        axis = (R[2], R[5], R[8])
        if t == PRISMATIC:
            return R, add(p, scale(x, axis))
        travel = advance(B, o, q, k, 0) if t == CAM else B[o + PITCH] * x
        return steps.turn_z(R, x), add(p, scale(travel, axis))
    if t == FREE:
        return compose(R, steps.axes_at(q, k + 3)), add(p, rotate(R, vector(q, k)))
    if t == SPHERICAL:
        return compose(R, steps.axes_at(q, k)), p
    if t == SPHERICAL_EXP:
        return compose(R, exp_map(vector(q, k))), p
    return R, scale(np.nan, p)


@kernel
def joint_twist(B, o, q, k, x, j):
    """`S x` as (angular, linear) in the node's frame, for the rates x[j:]; q is read only if S depends on q."""
    t = kind(B, o)
    z = 0.0 * x[j]
    if t == REVOLUTE:
        return (z, z, B[o + RATIO] * x[j]), (z, z, z)
    if has_axis(t):
        rate = B[o + RATIO] * x[j]
        turned, slid = screw(B, o, q, k, t)
        return (z, z, turned * rate), (z, z, slid * rate)
    if t == FREE:
        return vector(x, j), vector(x, j + 3)
    if t == SPHERICAL:
        return vector(x, j), (z, z, z)
    if t == SPHERICAL_EXP:
        return rotate(right_jacobian(vector(q, k)), vector(x, j)), (z, z, z)
    return (z, z, z), scale(np.nan, (z, z, z))


@kernel
def column(B, o, q, k, c):
    """Column c of S in the node's frame: (angular, linear)."""
    t = kind(B, o)
    z = 0.0 * B[o]
    if t == REVOLUTE:
        return (z, z, B[o + RATIO]), (z, z, z)
    if has_axis(t):
        turned, slid = screw(B, o, q, k, t)
        return (z, z, turned * B[o + RATIO]), (z, z, slid * B[o + RATIO])
    if t == SPHERICAL_EXP:
        return rotate(right_jacobian(vector(q, k)), unit(c, z)), (z, z, z)
    if has_quaternion(t):
        return unit(c, z), unit(c - 3, z)
    return (z, z, z), scale(np.nan, (z, z, z))


@kernel
def joint_bias(B, o, q, k, v, j):
    """`Ṡ v` as (angular, linear); zero for constant S."""
    if varies(kind(B, o)):
        return slope_along(B, o, q, k, v, j, rates(kind(B, o), v, j))
    z = 0.0 * v[j]
    return (z, z, z), (z, z, z)


@kernel
def project(B, o, q, k, n, f, out, j):
    """Add `Sᵀ (n, f)` to `out[j:]`."""
    t = kind(B, o)
    if t == REVOLUTE:
        out[j] += B[o + RATIO] * n[2]
    elif has_axis(t):
        turned, slid = screw(B, o, q, k, t)
        out[j] += B[o + RATIO] * (turned * n[2] + slid * f[2])
    elif t == SPHERICAL_EXP:
        put_add(out, j, rotate_back(right_jacobian(vector(q, k)), n))
    elif has_quaternion(t):
        put_add(out, j, n)
        if t == FREE:
            put_add(out, j + 3, f)
    else:
        out[j] += np.nan


# For S(q): `∂S x` along a direction; rates and directions are triples, padded with zeros.

@kernel
def rates(t, x, j):
    """The triple of a node's rates x[j:]."""
    return (x[j], 0.0 * x[j], 0.0 * x[j]) if t == CAM else vector(x, j)


@kernel
def slope(B, o, q, k, y, x):
    """`(∂S/∂q y) x` as (angular, linear)."""
    z = 0.0 * x[0]
    if kind(B, o) == SPHERICAL_EXP:
        return rotate(right_jacobian_dot(vector(q, k), y), x), (z, z, z)
    if kind(B, o) == CAM:
        return (z, z, z), (z, z, B[o + RATIO] * B[o + RATIO] * advance(B, o, q, k, 2) * y[0] * x[0])
    return (z, z, z), scale(np.nan, x)


@kernel
def second_slope(B, o, q, k, y, x):
    """`(∂²S/∂q² y x) x`."""
    z = 0.0 * x[0]
    if kind(B, o) == SPHERICAL_EXP:
        return rotate(right_jacobian_second(vector(q, k), y, x), x), (z, z, z)
    if kind(B, o) == CAM:
        return (z, z, z), (z, z, B[o + RATIO] ** 3 * advance(B, o, q, k, 3) * y[0] * x[0] * x[0])
    return (z, z, z), scale(np.nan, x)


@sweep
def slope_along(B, o, q, k, v, j, x):
    """`Ṡ x` for the rates v[j:]."""
    return slope(B, o, q, k, rates(kind(B, o), v, j), x)


@sweep
def slope_dual(B, o, q, k, y, n, f):
    """`(∂S/∂q y)ᵀ (n, f)`, a triple."""
    if kind(B, o) == SPHERICAL_EXP:
        return rotate_back(right_jacobian_dot(vector(q, k), y), n)
    if kind(B, o) == CAM:
        return scale(B[o + RATIO] * B[o + RATIO] * advance(B, o, q, k, 2) * y[0] * f[2], unit(0, y[0]))
    return scale(np.nan, n)


@routine
def series_size(B, o, K):
    """Length of the record of a node for Taylor series in time of order K."""
    if kind(B, o) == CAM:
        return polynomial_series.record_size(integer(B, integer(B, o + PITCH)), K)
    return exponential_series.record_size(K) if kind(B, o) == SPHERICAL_EXP else 0


@routine
def series_rate(B, o, q, k, v, j, stride, order, K, C, offset):
    """Coefficient `order` ≤ K of `S q̇` from those of q̇ at v[j + m·stride:], with the record C[offset:]."""
    z = 0.0 * v[j]
    if kind(B, o) == SPHERICAL_EXP:
        return exponential_series.exponential_rate(q, k, v, j, stride, order, K, C, offset), (z, z, z)
    if kind(B, o) == CAM:
        r = B[o + RATIO]
        return (z, z, r * v[j + order * stride]), (z, z, polynomial_series.polynomial_rate(
            B, integer(B, o + PITCH), r * q[k] + B[o + OFFSET], r, v, j, stride, order, K, C, offset))
    return (z, z, z), (z, z, z + np.nan)


@routine
def series_dual(B, o, n, f, order, K, C, offset, out, j):
    """Add coefficient `order` of `Sᵀ (n, f)` to out[j:], from those of n and f, after calls for all lower orders."""
    if kind(B, o) == SPHERICAL_EXP:
        put_add(out, j, exponential_series.exponential_dual(n, order, K, C, offset))
    elif kind(B, o) == CAM:
        out[j] += B[o + RATIO] * (n[2] + polynomial_series.polynomial_dual(f[2], order, K, C, offset))
    else:
        out[j] += np.nan
