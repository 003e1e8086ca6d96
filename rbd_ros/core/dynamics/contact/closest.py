"""Closest points of two surfaces: a robust `search` in real numbers, then Newton's method in numbers of any type.

Newton's method, with the surfaces' curvature, makes the normals opposite and the offset normal. Its limit is accepted
if it is a minimum of the distance (`touching`).
"""
from __future__ import annotations

import numpy as np

from ...compiled.entry import entry
from ...compiled.kernel import kernel, sweep
from ...lie.spatial import add, dot, rotate, rotate_back, scale, sub
from ...model.block import integer, matrix, vector
from ...model.surfaces.shapes import CYLINDER, ELLIPSOID, PLANE, SPHERE, TORUS, bend, length, normal, settled
from ..turning import transpose
from .search import across, searched

ITERATIONS = 30
CONVERGED = 1e-8    # relative step after which two more steps give full precision, also of imaginary parts
DEFINITE = 1e-12    # least determinant of curvatures, relative


@kernel
def real_shape(shape):
    return (shape[0], shape[1].real, shape[2].real, shape[3].real, shape[4].real)


@kernel
def real_vector(x):
    return (x[0].real, x[1].real, x[2].real)


@sweep
def curvatures(shape, x, n, t, u):
    """The Weingarten map at x along tangent vectors t and u: xx, xy, yy."""
    along, sideways = bend(shape, x, n, t), bend(shape, x, n, u)
    return dot(t, along), dot(t, sideways), dot(u, sideways)


@sweep
def second_curvatures(first, second, R, y, t, u):
    """Weingarten map of the second surface along t and u in the first's frame.

    On a plane instead the motion of the lowest point on the second body per rotation, for `stepped`: for a sphere or
    point the radius in all directions; for a cylinder, which touches with its middle circle, the radius along the
    circle, whose tangent at the lowest point is horizontal for any tilt of the axis.
    """
    k, l = rotate_back(R, t), rotate_back(R, u)
    if first[0] == PLANE and second[0] == SPHERE:
        z = 0.0 * (y[0] + t[0])
        return second[2] + z, z, second[2] + z
    if first[0] == PLANE and second[0] == CYLINDER:
        c, d = y[0] * k[1] - y[1] * k[0], y[0] * l[1] - y[1] * l[0]    # the circle's tangent, times the radius
        scaled = second[2] * np.sqrt(R[6] * R[6] + R[7] * R[7])
        return c * c / scaled, c * d / scaled, d * d / scaled
    return curvatures(second, y, normal(second, y), k, l)


@sweep
def newton_step(first, second, R, p, x, y):
    """Newton steps of x on the first surface and y on the second, tangential, towards closest points.

    `S₁ s₁ + S₂ s₂ = −(n₁ + n₂)` and `s₂ = (1 + d S₁) s₁ − e`, e the tangential part of the offset, d the normal part.
    Returns both steps, and whether the distance has a minimum by second order.
    """
    n1 = normal(first, x)
    n2 = rotate(R, normal(second, y))
    offset = sub(add(rotate(R, y), p), x)
    d = dot(n1, offset)
    t, u = across(n1)
    off = add(n1, n2)
    e = (dot(t, offset), dot(u, offset))
    a = curvatures(first, x, n1, t, u)
    b = second_curvatures(first, second, R, y, t, u)
    s, definite = slid(a, b, d, (b[0] * e[0] + b[1] * e[1] - dot(t, off), b[1] * e[0] + b[2] * e[1] - dot(u, off)))
    r = carried(a, d, s, e)
    return add(scale(s[0], t), scale(s[1], u)), rotate_back(R, add(scale(r[0], t), scale(r[1], u))), definite


@sweep
def slid(a, b, d, c):
    """The solution s₁ of `(S₁ + S₂ (1 + d S₁)) s₁ = c`, and whether the distance is a minimum.

    a, b: S₁ and S₂ as xx, xy, yy; d: the gap. The second derivative of the distance is `(1 + d S₁)` times that matrix.
    """
    g = (1.0 + d * a[0], d * a[1], 1.0 + d * a[2])
    m00, m01 = a[0] + b[0] * g[0] + b[1] * g[1], a[1] + b[0] * g[1] + b[1] * g[2]
    m10, m11 = a[1] + b[1] * g[0] + b[2] * g[1], a[2] + b[1] * g[1] + b[2] * g[2]
    determinant = m00 * m11 - m01 * m10
    h00, h11 = (g[0] * m00 + g[1] * m10).real, (g[1] * m01 + g[2] * m11).real
    h01 = (g[0] * m01 + g[1] * m11).real
    definite = h00 > 0.0 and h11 > 0.0 and h00 * h11 - h01 * h01 > DEFINITE * (h00 + h11) * (h00 + h11)
    return ((m11 * c[0] - m01 * c[1]) / determinant, (m00 * c[1] - m10 * c[0]) / determinant), definite


@sweep
def stepped(first, second, a, b, d, omega, e):
    """Steps s₁ and s₂ of the closest points under a relative twist: angular velocity ω and sliding velocity e."""
    if first[0] == PLANE and (second[0] == SPHERE or second[0] == CYLINDER):    # b: see `second_curvatures`
        r = (b[0] * omega[1] - b[1] * omega[0], b[1] * omega[1] - b[2] * omega[0])
        return (r[0] + e[0], r[1] + e[1]), r
    s, _ = slid(a, b, d, (omega[1] + b[0] * e[0] + b[1] * e[1], b[1] * e[0] + b[2] * e[1] - omega[0]))
    return s, carried(a, d, s, e)


@kernel
def carried(a, d, s, e):
    """`s₂ = (1 + d S₁) s₁ − e`."""
    return (s[0] + d * (a[0] * s[0] + a[1] * s[1]) - e[0], s[1] + d * (a[1] * s[0] + a[2] * s[1]) - e[1])


@sweep
def touching(first, second, walks, R, p):
    """Closest points x on the first surface and y on the second, in their frames, and whether they are valid: False if
    Newton's method does not converge, or not to a minimum. (R, p): pose of the second's frame in the first's; walks:
    whether the search iterates on the second surface.
    """
    z = 0.0 * (p[0] + first[2] + second[2])
    if first[0] == PLANE and second[0] == SPHERE:
        r = second[2]
        return settled(first, (p[0] + z, p[1] + z, p[2] + z)), (-r * R[6] + z, -r * R[7] + z, -r * R[8] + z), True
    Rr = (R[0].real, R[1].real, R[2].real, R[3].real, R[4].real, R[5].real, R[6].real, R[7].real, R[8].real)
    pr = real_vector(p)
    if walks:
        x0, y0 = searched(real_shape(second), real_shape(first), Rr, pr)
    else:
        y0, x0 = searched(real_shape(first), real_shape(second), transpose(Rr), scale(-1.0, rotate_back(Rr, pr)))
    if second[0] == CYLINDER and first[0] == PLANE:    # lowest point of the middle circle
        down = (-R[6], -R[7], z)
        size = length(down)
        y = scale(second[2] / size, down)
        return settled(first, add(rotate(R, y), p)), y, size.real > 1e-6
    x, y = (x0[0] + z, x0[1] + z, x0[2] + z), (y0[0] + z, y0[1] + z, y0[2] + z)
    more = -1
    definite = False
    for _ in range(ITERATIONS):
        s, r, definite = newton_step(first, second, R, p, x, y)
        sr, rr = real_vector(s), real_vector(r)
        step = np.sqrt(dot(sr, sr) + dot(rr, rr))
        size = extent(first) if first[0] != PLANE else extent(second)
        if not step < 1e3 * size:
            return x, y, False
        if step > 0.3 * size:    # step beyond the range of the curvatures
            s, r = scale(0.3 * size / step, s), scale(0.3 * size / step, r)
        x, y = settled(first, add(x, s)), settled(second, add(y, r))
        if more > 0:
            more -= 1
        elif more < 0 and step < CONVERGED * size:
            more = 2
        if more == 0:
            break
    return x, y, more == 0 and definite


@kernel
def extent(shape):
    """Length scale of the surface: its smallest size."""
    kind = shape[0]
    if kind == ELLIPSOID:
        return min(shape[2].real, shape[3].real, shape[4].real)
    return shape[3].real if kind == TORUS else shape[2].real


@kernel
def shape_of(C, o):
    """The shape at C[o:]: kind, side, three sizes."""
    return integer(C, o), C[o + 1].real, C[o + 2], C[o + 3], C[o + 4]


@entry("boolean(float64[::1], float64[::1])")
def closest_points_entry(pair, out):
    """`touching` of pair: walks, both shapes (5 numbers each), R, p; x, y into out; whether they are valid."""
    x, y, valid = touching(shape_of(pair, 1), shape_of(pair, 6), pair[0] > 0.0, matrix(pair, 11), vector(pair, 20))
    for i in range(3):
        out[i] = x[i]
        out[3 + i] = y[i]
    return valid
