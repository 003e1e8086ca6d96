"""Twists and wrenches as pairs of vectors, angular part first, for kernels that differentiate along a direction."""
from __future__ import annotations

from ..compile import kernel, routine
from ..lie.spatial import add, cross, dot, rotate, rotate_back, scale, sub, symmetric_times
from ..model.block import vector
from .columns import ad


@kernel
def pair(W, k):
    return vector(W, k), vector(W, k + 3)


@kernel
def plus(x, y):
    return add(x[0], y[0]), add(x[1], y[1])


@kernel
def minus(x, y):
    return sub(x[0], y[0]), sub(x[1], y[1])


@kernel
def times(s, x):
    return scale(s, x[0]), scale(s, x[1])


@kernel
def pairing(x, y):
    return dot(x[0], y[0]) + dot(x[1], y[1])


@kernel
def lie(x, y):
    """`ad_x y`."""
    return ad(x[0], x[1], y[0], y[1])


@kernel
def lie_dual(x, f):
    """`ad*_x f`."""
    return add(cross(f[0], x[0]), cross(f[1], x[1])), cross(f[1], x[0])


@kernel
def to_child(E, p, x):
    """`Ad_{T⁻¹} x`."""
    return rotate_back(E, x[0]), rotate_back(E, sub(x[1], cross(p, x[0])))


@kernel
def wrench_to_parent(E, p, f):
    """`Ad*_{T⁻¹} f`."""
    g = rotate(E, f[1])
    return add(rotate(E, f[0]), cross(p, g)), g


@kernel
def inertia_times(m, c, J, x):
    """`I x` of mass m, first moment c, inertia J about the origin."""
    return add(symmetric_times(J, x[0]), cross(c, x[1])), sub(scale(m, x[1]), cross(c, x[0]))


# 6 × 6 matrices, row by row

@routine
def put_inertia(W, k, m, c, J):
    """The 6 × 6 matrix of mass m, first moment c and inertia J about the origin, to W[k:]."""
    z = 0.0 * m
    rows = ((J[0], J[1], J[2], z, -c[2], c[1]), (J[1], J[3], J[4], c[2], z, -c[0]), (J[2], J[4], J[5], -c[1], c[0], z),
            (z, c[2], -c[1], m, z, z), (-c[2], z, c[0], z, m, z), (c[1], -c[0], z, z, z, m))
    for i in range(6):
        for j in range(6):
            W[k + 6 * i + j] = rows[i][j]


@routine
def matrix_times(W, k, x):
    """The 6 × 6 matrix at W[k:] times the pair x."""
    y = (x[0][0], x[0][1], x[0][2], x[1][0], x[1][1], x[1][2])
    z = 0.0 * y[0]
    a, b, c, d, e, f = z, z, z, z, z, z
    for j in range(6):
        a += W[k + j] * y[j]
        b += W[k + 6 + j] * y[j]
        c += W[k + 12 + j] * y[j]
        d += W[k + 18 + j] * y[j]
        e += W[k + 24 + j] * y[j]
        f += W[k + 30 + j] * y[j]
    return (a, b, c), (d, e, f)


@routine
def add_product(W, k, s, x, y):
    """Add `s (x yᵀ + y xᵀ)` to the matrix at W[k:]."""
    a = (x[0][0], x[0][1], x[0][2], x[1][0], x[1][1], x[1][2])
    b = (y[0][0], y[0][1], y[0][2], y[1][0], y[1][1], y[1][2])
    for i in range(6):
        for j in range(6):
            W[k + 6 * i + j] += s * (a[i] * b[j] + b[i] * a[j])
