"""Twists and wrenches as pairs of vectors, angular part first, for kernels that differentiate along a direction."""
from __future__ import annotations

from ...compiled.kernel import kernel
from ...lie.spatial import add, cross, dot, rotate, rotate_back, scale, sub, symmetric_times
from ...model.block import vector
from ..columns import ad


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
