"""Joint kinds of the kernels: everything specific to one kind of node. `joints.py` has the joints that users declare.

A node has its pose `T(q)` in its parent, its twist `S(q) q̇` in its own axes, and coordinates that add up, or a
quaternion (how these are moved: `configuration.py`). The model builder turns nodes of one coordinate to have z as their
axis, and leaves the others as the joint's frame stands. Kernels elsewhere ask the predicates and the functions below;
for an unknown kind they return NaN, which no entry point passes on. A new kind: a number here and a branch wherever
kinds differ; CONTRIBUTING.md says what else. A test holds all against each other (`test/model/test_joint_kinds.py`).
"""
from __future__ import annotations

import numpy as np

from ..compiled.kernel import kernel, routine, sweep
from ..lie import exponential_series, polynomial_series, steps
from ..lie.so3 import exp_map, right_jacobian, right_jacobian_dot, right_jacobian_second
from ..lie.spatial import add, compose, dot, rotate, rotate_back, scale, unit
from .block import OFFSET, PITCH, POSITION, RATIO, ROTATION, TURN, integer, kind, matrix, put_add, vector

REVOLUTE, PRISMATIC, HELICAL, SPHERICAL, SPHERICAL_EXP, FREE, CAM = 0, 1, 2, 3, 4, 5, 6
TURNING = 7    # of no model: a prismatic node with the angular part w of its screw, `exp((w; z) x)`, as a first order


@kernel
def is_revolute(t):
    """The commonest kind, for which kernels have a shorter way: S is z times `B[o + RATIO]`."""
    return t == REVOLUTE


@kernel
def is_screw(t):
    """One coordinate, S constant: turns about and slides along z."""
    return t in (REVOLUTE, PRISMATIC, HELICAL)


@kernel
def has_axis(t):
    """One coordinate: turns about and slides along z."""
    return is_screw(t) or t == CAM


@kernel
def is_free(t):
    """Position and quaternion; velocities ω, then u of the origin, in node axes."""
    return t == FREE


@kernel
def has_quaternion(t):
    """Whether a rotation is described by a quaternion, and by the first three velocities."""
    return t in (SPHERICAL, FREE)


@kernel
def quaternion_at(t):
    """Where among the positions it starts."""
    return 3 if t == FREE else 0


@kernel
def adds_up(t):
    """Whether its positions are moved by adding to them, so that its rates are their derivatives."""
    return has_axis(t) or t in (SPHERICAL_EXP, TURNING)


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
    """Derivative i of the advance of a cam by its angle."""
    return polynomial_series.polynomial(B, integer(B, o + PITCH), i, B[o + RATIO] * q[k] + B[o + OFFSET])


@kernel
def screw(B, o, q, k, t):
    """How much a joint with an axis turns about and slides along it, per unit of its coordinate."""
    one = 1.0 + 0.0 * q[k]
    if t == HELICAL:
        return one, B[o + PITCH] + 0.0 * q[k]
    if t == CAM:
        return one, advance(B, o, q, k, 1)
    return (0.0 * q[k], one) if t == PRISMATIC else (one, 0.0 * q[k])


@kernel
def joint_pose(B, o, q, k):
    """Pose `(R, p)` of the node in its parent at the positions that start at `q[k]`."""
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
        slid = advance(B, o, q, k, 0) if t == CAM else B[o + PITCH] * x
        return steps.turn_z(R, x), add(p, scale(slid, axis))
    if t == FREE:
        return compose(R, steps.axes_at(q, k + 3)), add(p, rotate(R, vector(q, k)))
    if t == SPHERICAL:
        return compose(R, steps.axes_at(q, k)), p
    if t == SPHERICAL_EXP:
        return compose(R, exp_map(vector(q, k))), p
    if t == TURNING:
        x = B[o + RATIO] * q[k] + B[o + OFFSET]
        w = scale(x, vector(B, o + TURN))
        one = 1.0 + 0.0 * x
        turned = (one, -w[2], w[1], w[2], one, -w[0], -w[1], w[0], one)
        return compose(R, turned), add(p, rotate(R, (0.5 * x * w[1], -0.5 * x * w[0], x)))
    return R, scale(np.nan, p)


@kernel
def joint_twist(B, o, q, k, x, j):
    """`S x` as (angular, linear) in the node's frame, for the rates that start at `x[j]`; q is read where S = S(q)."""
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
    if t == TURNING:
        rate = B[o + RATIO] * x[j]
        return scale(rate, vector(B, o + TURN)), (z, z, rate)
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
    if t == TURNING:
        return scale(B[o + RATIO], vector(B, o + TURN)), (z, z, B[o + RATIO])
    return (z, z, z), scale(np.nan, (z, z, z))


@kernel
def joint_bias(B, o, q, k, v, j):
    """`Ṡ v` as (angular, linear); zero where S is constant."""
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
    elif t == TURNING:
        out[j] += B[o + RATIO] * (dot(vector(B, o + TURN), n) + f[2])
    else:
        out[j] += np.nan


# Where S varies: `∂S x` along a direction, rates and directions of a node as triples, zero beyond its own.

@kernel
def rates(t, x, j):
    """The numbers of such a node that start at x[j]."""
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


@kernel
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
    """Numbers that Taylor series in time of order K need per node."""
    if kind(B, o) == CAM:
        return polynomial_series.record_size(integer(B, integer(B, o + PITCH)), K)
    return exponential_series.record_size(K) if kind(B, o) == SPHERICAL_EXP else 0


@routine
def series_rate(B, o, q, k, v, j, stride, order, K, C, at):
    """Coefficient `order` ≤ K of `S q̇` from those of q̇ at v[j + m·stride:], and the record C[at:] of lower ones."""
    z = 0.0 * v[j]
    if kind(B, o) == SPHERICAL_EXP:
        return exponential_series.exponential_rate(q, k, v, j, stride, order, K, C, at), (z, z, z)
    if kind(B, o) == CAM:
        r = B[o + RATIO]
        return (z, z, r * v[j + order * stride]), (z, z, polynomial_series.polynomial_rate(
            B, integer(B, o + PITCH), r * q[k] + B[o + OFFSET], r, v, j, stride, order, K, C, at))
    return (z, z, z), (z, z, z + np.nan)


@routine
def series_dual(B, o, n, f, order, K, C, at, out, j):
    """Add coefficient `order` of `Sᵀ (n, f)` to out[j:], from those of n and f; lower orders were given before."""
    if kind(B, o) == SPHERICAL_EXP:
        put_add(out, j, exponential_series.exponential_dual(n, order, K, C, at))
    elif kind(B, o) == CAM:
        out[j] += B[o + RATIO] * (n[2] + polynomial_series.polynomial_dual(f[2], order, K, C, at))
    else:
        out[j] += np.nan
