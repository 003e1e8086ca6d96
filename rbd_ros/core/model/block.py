"""The robot as one array of numbers, the only form in which kernels see a model.

One packed array because each array argument costs a compiled call time. Layout: a header, then one record
per *node*, then one record per *link*. A node is a body behind a joint of one of the kinds that kernels know
(`joint_kinds`). A joint of several coordinates (universal, planar, …) is a chain of nodes, massless but for
the last. Parents precede their children.
"""
from __future__ import annotations

from ..compile import kernel

# header
NODES, NQ, NV, GRAVITY, LINKS, SHARED, LINK_START, HEADER = 0, 1, 2, 3, 6, 7, 8, 10
# node record
PARENT, TYPE, IQ, IV, RATIO, OFFSET, PITCH, ROTATION, POSITION, MASS, MOMENT, INERTIA, ARMATURE, OWNER, NODE = (
    0, 1, 2, 3, 4, 5, 6, 7, 16, 19, 20, 23, 29, 35, 36)
# link record: node (−1: the world), pose in the node's frame
LINK_NODE, LINK_ROTATION, LINK_POSITION, LINK = 0, 1, 10, 13

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
def all_finite(x):
    return finite_range(x, 0, x.shape[0])


@kernel
def finite_range(x, start, end):
    finite = True
    for i in range(start, end):
        finite &= x[i] - x[i] == 0.0
    return finite


@kernel
def rates_valid(M, v, states):
    """Whether v (or a, τ) holds this many states of the model: size and finite numbers."""
    return v.shape[0] == states * int(M[NV]) and all_finite(v)
