"""The packed array of a model, the form in which kernels read it.

One array, because every array argument adds time to a compiled call. Layout: a header, one record per *node*, the
polynomials of cams, one record per *link*. A node is a rigid body behind a joint of one of the kinds of `joint_kinds`.
A joint of several coordinates (universal, planar, …) is a chain of nodes, massless but for the last. Parents precede
their children.
"""
from __future__ import annotations

from itertools import accumulate

from ..compiled.kernel import kernel



def layout(**sizes: int) -> tuple[int, ...]:
    """Offsets of the parts of a record, then its size: `R, P, SIZE = layout(R=9, p=3)` is 0, 9, 12."""
    return tuple(accumulate(sizes.values(), initial=0))


NODES, NQ, NV, GRAVITY, LINKS, SHARED, LINK_START, _, HEADER = layout(
    nodes=1, nq=1, nv=1, gravity=3, links=1, shared=1, link_start=1, spare=1)
(PARENT, TYPE, IQ, IV, RATIO, OFFSET, PITCH, ROTATION, POSITION, MASS, MOMENT, INERTIA, ARMATURE, OWNER,
 NODE) = layout(parent=1, type=1, iq=1, iv=1, ratio=1, offset=1, pitch=1, rotation=9, position=3, mass=1, moment=3,
                inertia=6, armature=6, owner=1)
# record of a link: node (−1: the world), pose in the node's frame
LINK_NODE, LINK_ROTATION, LINK_POSITION, LINK = layout(node=1, rotation=9, position=3)

ZERO = (0.0, 0.0, 0.0)


@kernel
def node(i):
    """Offset of node i's record."""
    return HEADER + NODE * i


@kernel
def integer(A, k):
    """Integer at A[k]; A may be complex (complex step)."""
    return int(A[k].real)


@kernel
def node_count(B):
    """Number of nodes."""
    return integer(B, NODES)


@kernel
def size_q(B):
    """nq."""
    return integer(B, NQ)


@kernel
def size_v(B):
    """nv."""
    return integer(B, NV)


@kernel
def parent(B, o):
    """Index of the parent node, −1 for the world; o: offset of the node's record."""
    return integer(B, o + PARENT)


@kernel
def kind(B, o):
    """Joint kind (`joint_kinds`) of the node with record offset o."""
    return integer(B, o + TYPE)


@kernel
def first_position(B, o):
    """Index of the node's first position in q."""
    return integer(B, o + IQ)


@kernel
def first_velocity(B, o):
    """Index of the node's first velocity in v."""
    return integer(B, o + IV)


@kernel
def zero(B, v, j):
    """Zero of the type of v (float, complex); also for an empty v."""
    return 0.0 * v[j] if j < v.shape[0] else 0.0 * B[0]


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
def rates_valid(B, v, states):
    """Whether v (or a, τ) has the size of `states` states of the model and is finite."""
    return v.shape[0] == states * size_v(B) and all_finite(v)
