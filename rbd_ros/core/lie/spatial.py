"""Compiled algebra of 3-vectors, rotations and symmetric 3 × 3 matrices as tuples of scalars.

Tuples stay in registers, without allocation, and recursions read like the tables of the papers. A vector
is `(x, y, z)`; a matrix `(m00, m01, …, m22)`, row by row; a symmetric matrix `(xx, xy, xz, yy, yz, zz)`.
A pose `(R, p)` maps child coordinates to parent coordinates. Scalars are floats or complex numbers.
"""
from __future__ import annotations

from ..compiled.kernel import kernel


@kernel
def add(a, b):
    return (a[0] + b[0], a[1] + b[1], a[2] + b[2])


@kernel
def sub(a, b):
    return (a[0] - b[0], a[1] - b[1], a[2] - b[2])


@kernel
def scale(s, a):
    return (s * a[0], s * a[1], s * a[2])


@kernel
def dot(a, b):
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


@kernel
def cross(a, b):
    return (a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0])


@kernel
def add_cross(x, a, b):
    """`x + a × b`, each product added in turn: two fused instructions per number, three for `add(x, cross(a, b))`."""
    return (x[0] + a[1] * b[2] - a[2] * b[1], x[1] + a[2] * b[0] - a[0] * b[2], x[2] + a[0] * b[1] - a[1] * b[0])


@kernel
def unit(c, like):
    """Unit vector of axis c in the type of `like`; the zero vector unless c is 0, 1 or 2."""
    z = 0.0 * like
    return (z + 1.0 if c == 0 else z, z + 1.0 if c == 1 else z, z + 1.0 if c == 2 else z)


@kernel
def rotate(R, a):
    """`R a`."""
    return (R[0] * a[0] + R[1] * a[1] + R[2] * a[2],
            R[3] * a[0] + R[4] * a[1] + R[5] * a[2],
            R[6] * a[0] + R[7] * a[1] + R[8] * a[2])


@kernel
def rotate_back(R, a):
    """`Rᵀ a`."""
    return (R[0] * a[0] + R[3] * a[1] + R[6] * a[2],
            R[1] * a[0] + R[4] * a[1] + R[7] * a[2],
            R[2] * a[0] + R[5] * a[1] + R[8] * a[2])


@kernel
def add_rotated(x, R, a):
    """`x + R a`."""
    return (x[0] + R[0] * a[0] + R[1] * a[1] + R[2] * a[2],
            x[1] + R[3] * a[0] + R[4] * a[1] + R[5] * a[2],
            x[2] + R[6] * a[0] + R[7] * a[1] + R[8] * a[2])


@kernel
def add_rotated_back(x, R, a):
    """`x + Rᵀ a`."""
    return (x[0] + R[0] * a[0] + R[3] * a[1] + R[6] * a[2],
            x[1] + R[1] * a[0] + R[4] * a[1] + R[7] * a[2],
            x[2] + R[2] * a[0] + R[5] * a[1] + R[8] * a[2])


@kernel
def compose(A, B):
    """Matrix product `A B`."""
    return (A[0] * B[0] + A[1] * B[3] + A[2] * B[6], A[0] * B[1] + A[1] * B[4] + A[2] * B[7],
            A[0] * B[2] + A[1] * B[5] + A[2] * B[8],
            A[3] * B[0] + A[4] * B[3] + A[5] * B[6], A[3] * B[1] + A[4] * B[4] + A[5] * B[7],
            A[3] * B[2] + A[4] * B[5] + A[5] * B[8],
            A[6] * B[0] + A[7] * B[3] + A[8] * B[6], A[6] * B[1] + A[7] * B[4] + A[8] * B[7],
            A[6] * B[2] + A[7] * B[5] + A[8] * B[8])


@kernel
def add_matrix(A, B):
    """`A + B`."""
    return (A[0] + B[0], A[1] + B[1], A[2] + B[2], A[3] + B[3], A[4] + B[4], A[5] + B[5], A[6] + B[6], A[7] + B[7],
            A[8] + B[8])


@kernel
def hat(a):
    """The matrix of `a ×`."""
    z = 0.0 * a[0]
    return (z, -a[2], a[1], a[2], z, -a[0], -a[1], a[0], z)


@kernel
def symmetric_times(S, a):
    """`S a` for symmetric `S`."""
    return (S[0] * a[0] + S[1] * a[1] + S[2] * a[2],
            S[1] * a[0] + S[3] * a[1] + S[4] * a[2],
            S[2] * a[0] + S[4] * a[1] + S[5] * a[2])


@kernel
def add_symmetric(x, S, a):
    """`x + S a` for symmetric `S`."""
    return (x[0] + S[0] * a[0] + S[1] * a[1] + S[2] * a[2],
            x[1] + S[1] * a[0] + S[3] * a[1] + S[4] * a[2],
            x[2] + S[2] * a[0] + S[4] * a[1] + S[5] * a[2])


@kernel
def hat_times(p, B):
    """`p̂ B`: p × each column of B."""
    return (p[1] * B[6] - p[2] * B[3], p[1] * B[7] - p[2] * B[4], p[1] * B[8] - p[2] * B[5],
            p[2] * B[0] - p[0] * B[6], p[2] * B[1] - p[0] * B[7], p[2] * B[2] - p[0] * B[8],
            p[0] * B[3] - p[1] * B[0], p[0] * B[4] - p[1] * B[1], p[0] * B[5] - p[1] * B[2])


@kernel
def rotate_symmetric(R, S):
    """`R S Rᵀ` for symmetric `S`."""
    a = symmetric_times(S, (R[0], R[1], R[2]))
    b = symmetric_times(S, (R[3], R[4], R[5]))
    c = symmetric_times(S, (R[6], R[7], R[8]))
    return (R[0] * a[0] + R[1] * a[1] + R[2] * a[2],
            R[3] * a[0] + R[4] * a[1] + R[5] * a[2],
            R[6] * a[0] + R[7] * a[1] + R[8] * a[2],
            R[3] * b[0] + R[4] * b[1] + R[5] * b[2],
            R[6] * b[0] + R[7] * b[1] + R[8] * b[2],
            R[6] * c[0] + R[7] * c[1] + R[8] * c[2])


@kernel
def rotate_matrix(R, B):
    """`R B Rᵀ`."""
    return compose(compose(R, B), (R[0], R[3], R[6], R[1], R[4], R[7], R[2], R[5], R[8]))
