"""The robot as one array of numbers, the only form in which kernels see a model.

One packed array because each array argument costs a compiled call time. Layout: a header, then one record
per *node*, then one record per *link*. A node is a body behind a joint that kernels know: revolute,
prismatic, helical (all about or along z of the node's frame, which the model builder arranges), spherical
(unit quaternion or exponential coordinates) and free. A joint of several coordinates (universal, planar, …)
is a chain of nodes, massless but for the last. Parents precede their children.
"""
from __future__ import annotations

import numpy as np

from ..compile import kernel
from ..lie.sincos import sincos
from ..lie.so3 import exp_map, quaternion_to_matrix, right_jacobian, right_jacobian_dot
from ..lie.spatial import add, compose, rotate, rotate_back, scale

# header
NODES, NQ, NV, GRAVITY, LINKS, SHARED, LINK_START, HEADER = 0, 1, 2, 3, 6, 7, 8, 10
# node record
PARENT, TYPE, IQ, IV, RATIO, OFFSET, PITCH, ROTATION, POSITION, MASS, MOMENT, INERTIA, ARMATURE, OWNER, NODE = (
    0, 1, 2, 3, 4, 5, 6, 7, 16, 19, 20, 23, 29, 35, 36)
# link record: node (−1: the world), pose in the node's frame
LINK_NODE, LINK_ROTATION, LINK_POSITION, LINK = 0, 1, 10, 13

REVOLUTE, PRISMATIC, HELICAL, SPHERICAL, SPHERICAL_EXP, FREE = 0, 1, 2, 3, 4, 5
NODE_NQ = (1, 1, 1, 4, 3, 7)
NODE_NV = (1, 1, 1, 3, 3, 6)

# scratch memory of a call with one state (`RobotModel._work`): per node, per column of S, per coordinate
WORK_NODE, WORK_COLUMN, WORK_COORDINATE = 102, 32, 13

ZERO = (0.0, 0.0, 0.0)


@kernel
def node(i):
    """Offset of node i's record."""
    return HEADER + NODE * i


@kernel
def parent(M, o):
    return int(M[o + PARENT].real)


@kernel
def kind(M, o):
    return int(M[o + TYPE].real)


@kernel
def dof(t):
    """Velocity coordinates of a node of type t."""
    return 1 if t <= HELICAL else (6 if t == FREE else 3)


@kernel
def zero(M, v, j):
    """Zero of the type of v (float, complex), also where the model has no coordinates and v no numbers."""
    return 0.0 * v[j] if j < v.shape[0] else 0.0 * M[0]


@kernel
def vector(A, k):
    return (A[k], A[k + 1], A[k + 2])


@kernel
def six(A, k):
    return (A[k], A[k + 1], A[k + 2], A[k + 3], A[k + 4], A[k + 5])


@kernel
def matrix(A, k):
    return (A[k], A[k + 1], A[k + 2], A[k + 3], A[k + 4], A[k + 5], A[k + 6], A[k + 7], A[k + 8])


@kernel
def put(A, k, a):
    A[k] = a[0]
    A[k + 1] = a[1]
    A[k + 2] = a[2]


@kernel
def put_add(A, k, a):
    A[k] += a[0]
    A[k + 1] += a[1]
    A[k + 2] += a[2]


@kernel
def put_six(A, k, a):
    for j in range(6):
        A[k + j] = a[j]


@kernel
def put_matrix(A, k, B):
    for j in range(9):
        A[k + j] = B[j]


@kernel
def turn_z(R, x):
    """`R Rz(x)`."""
    s, c = sincos(x)
    return (R[0] * c + R[1] * s, R[1] * c - R[0] * s, R[2],
            R[3] * c + R[4] * s, R[4] * c - R[3] * s, R[5],
            R[6] * c + R[7] * s, R[7] * c - R[6] * s, R[8])


@kernel
def joint_pose(M, o, q, k):
    """Pose `(R, p)` of the node in its parent at the positions that start at `q[k]`."""
    R = matrix(M, o + ROTATION)
    p = vector(M, o + POSITION)
    t = kind(M, o)
    if t <= HELICAL:
        x = M[o + RATIO] * q[k] + M[o + OFFSET]
        if t == REVOLUTE:
            return turn_z(R, x), p
        axis = (R[2], R[5], R[8])
        if t == PRISMATIC:
            return R, add(p, scale(x, axis))
        return turn_z(R, x), add(p, scale(M[o + PITCH] * x, axis))
    if t == FREE:
        return compose(R, quaternion_to_matrix(q[k + 3], q[k + 4], q[k + 5], q[k + 6])), add(p, rotate(R, vector(q, k)))
    if t == SPHERICAL:
        return compose(R, quaternion_to_matrix(q[k], q[k + 1], q[k + 2], q[k + 3])), p
    return compose(R, exp_map(vector(q, k))), p


@kernel
def joint_twist(M, o, q, k, x, j):
    """`S x` as (angular, linear) in the node's frame, for the rates that start at `x[j]`; q is read where S = S(q)."""
    t = kind(M, o)
    z = 0.0 * x[j]
    if t <= HELICAL:
        rate = M[o + RATIO] * x[j]
        if t == REVOLUTE:
            return (z, z, rate), (z, z, z)
        if t == PRISMATIC:
            return (z, z, z), (z, z, rate)
        return (z, z, rate), (z, z, M[o + PITCH] * rate)
    if t == FREE:
        return vector(x, j), vector(x, j + 3)
    if t == SPHERICAL:
        return vector(x, j), (z, z, z)
    return rotate(right_jacobian(vector(q, k)), vector(x, j)), (z, z, z)


@kernel
def joint_bias(M, o, q, k, v, j):
    """`Ṡ v`, which is angular; zero but for exponential coordinates."""
    if kind(M, o) == SPHERICAL_EXP:
        rate = vector(v, j)
        return rotate(right_jacobian_dot(vector(q, k), rate), rate)
    z = 0.0 * v[j]
    return (z, z, z)


@kernel
def column(M, o, q, k, c):
    """Column c of S in the node's frame: (angular, linear)."""
    t = kind(M, o)
    z = 0.0 * M[o]
    one = z + 1.0
    if t == REVOLUTE:
        return (z, z, M[o + RATIO]), (z, z, z)
    if t == PRISMATIC:
        return (z, z, z), (z, z, M[o + RATIO])
    if t == HELICAL:
        return (z, z, M[o + RATIO]), (z, z, M[o + PITCH] * M[o + RATIO])
    if t == SPHERICAL_EXP:
        J = right_jacobian(vector(q, k))
        if c == 0:
            return (J[0], J[3], J[6]), (z, z, z)
        if c == 1:
            return (J[1], J[4], J[7]), (z, z, z)
        return (J[2], J[5], J[8]), (z, z, z)
    if c == 0:
        return (one, z, z), (z, z, z)
    if c == 1:
        return (z, one, z), (z, z, z)
    if c == 2:
        return (z, z, one), (z, z, z)
    if c == 3:
        return (z, z, z), (one, z, z)
    if c == 4:
        return (z, z, z), (z, one, z)
    return (z, z, z), (z, z, one)


@kernel
def project(M, o, q, k, n, f, out, j):
    """Add `Sᵀ (n, f)` to `out[j:]`."""
    t = kind(M, o)
    if t == REVOLUTE:
        out[j] += M[o + RATIO] * n[2]
    elif t == PRISMATIC:
        out[j] += M[o + RATIO] * f[2]
    elif t == HELICAL:
        out[j] += M[o + RATIO] * (n[2] + M[o + PITCH] * f[2])
    elif t == SPHERICAL_EXP:
        put_add(out, j, rotate_back(right_jacobian(vector(q, k)), n))
    else:
        put_add(out, j, n)
        if t == FREE:
            put_add(out, j + 3, f)


@kernel
def all_finite(x):
    return finite_range(x, 0, x.shape[0])


@kernel
def finite_range(x, start, end):
    finite = True
    for i in range(start, end):
        finite &= x[i] - x[i] == 0.0
    return finite


@kernel
def positions_valid(M, q, states):
    """Whether q holds this many states of the model: size, finite numbers, quaternions of norm one within 1 %."""
    nq = int(M[NQ])
    if q.shape[0] != states * nq or not all_finite(q):
        return False
    if nq == int(M[NV]):
        return True
    for s in range(states):
        for i in range(int(M[NODES])):
            o = node(i)
            t = kind(M, o)
            if t in (SPHERICAL, FREE):
                j = s * nq + int(M[o + IQ]) + (3 if t == FREE else 0)
                norm = np.sqrt(q[j] * q[j] + q[j + 1] * q[j + 1] + q[j + 2] * q[j + 2] + q[j + 3] * q[j + 3])
                if not abs(norm - 1.0) <= 1e-2:
                    return False
    return True


@kernel
def rates_valid(M, v, states):
    """Whether v (or a, τ) holds this many states of the model: size and finite numbers."""
    return v.shape[0] == states * int(M[NV]) and all_finite(v)
