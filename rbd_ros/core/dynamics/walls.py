"""Virtual walls: potentials that keep a point inside or outside of half-spaces, boxes, spheres and cones.

Behind a wall, at depth d, the potential is ½ k d², and linear from where the force k d is a given largest one. d is the
distance to the allowed space where that is convex (a half-space, and the inside of the others): exact, with edges and
apices rounded. Where the inside is forbidden, d is the distance to the nearest face; where others are not three times
as far, it is less, and its gradient continuous, so that no force has a step. Of spheres and cones, that is so within
half the radius.

A wall is recessed to where the point is when the wall appears, and comes back with it: it never throws the point out.
"""
from __future__ import annotations

import numpy as np

from ..compiled.kernel import routine
from ..lie.spatial import add, rotate, rotate_back, scale, sub
from ..model.block import matrix, vector

PLANE, BOX, SPHERE, CONE = range(4)
# a wall's numbers: kind, whether the inside is allowed, axes (row by row) and origin in axes of the root link, half
# sizes of a box, or radius, or half the angle of a cone; how far it is recessed, m. Planes and cones are along z
KIND, INSIDE, AXES, PLACE, SIZES, RECESS, WALL = 0, 1, 2, 11, 14, 17, 18
FADE = 3e-3    # m of depth over which a wall's stiffness begins to count in the damping


@routine
def lesser(a, b):
    """min(a, b) of numbers ≥ 0 where one is more than twice the other, less between, and both slopes: continuous."""
    x, y = min(a, b), max(a, b)
    if y >= 2.0 * x:
        return x, 1.0 if a <= b else 0.0, 0.0 if a <= b else 1.0
    t = 2.0 - y / x
    value, far = x * (1.0 - 0.2 * t * t), 0.4 * t
    near = (value - far * y) / x    # Euler: the function is homogeneous
    return value, near if a <= b else far, far if a <= b else near


@routine
def rounded(x, knee):
    """x ≥ 0 beyond the knee, a parabola before, and its slopes by x and by the knee: continuous."""
    if x >= knee:
        return x, 1.0, 0.0
    return 0.5 * (x * x / knee + knee), x / knee, 0.5 * (1.0 - x * x / (knee * knee))


@routine
def box_depth(x, h, inside):
    if inside:
        y = (max(abs(x[0]) - h[0], 0.0), max(abs(x[1]) - h[1], 0.0), max(abs(x[2]) - h[2], 0.0))
        d = np.sqrt(y[0] * y[0] + y[1] * y[1] + y[2] * y[2])
        if d == 0.0:
            return 0.0, (0.0, 0.0, 0.0)
        return d, (np.copysign(y[0] / d, x[0]), np.copysign(y[1] / d, x[1]), np.copysign(y[2] / d, x[2]))
    if abs(x[0]) >= h[0] or abs(x[1]) >= h[1] or abs(x[2]) >= h[2]:
        return 0.0, (0.0, 0.0, 0.0)
    a, a0, a1 = lesser(h[0] + x[0], h[0] - x[0])
    b, b0, b1 = lesser(h[1] + x[1], h[1] - x[1])
    c, c0, c1 = lesser(h[2] + x[2], h[2] - x[2])
    ab, of_a, of_b = lesser(a, b)
    d, of_ab, of_c = lesser(ab, c)
    return d, (of_ab * of_a * (a0 - a1), of_ab * of_b * (b0 - b1), of_c * (c0 - c1))


@routine
def sphere_depth(x, radius, inside):
    r = np.sqrt(x[0] * x[0] + x[1] * x[1] + x[2] * x[2])
    if inside:
        return (r - radius, scale(1.0 / r, x)) if r > radius else (0.0, (0.0, 0.0, 0.0))
    y, slope, _ = rounded(r, 0.5 * radius)
    return radius - y, scale(-slope / max(r, 1e-300), x)


@routine
def cone_depth(x, angle, inside):
    s, c, r = np.sin(angle), np.cos(angle), np.sqrt(x[0] * x[0] + x[1] * x[1])
    if inside:
        side = r * c - x[2] * s
        if side <= 0.0:
            return 0.0, (0.0, 0.0, 0.0)
        if x[2] * c + r * s > 0.0:
            return side, (c * x[0] / r, c * x[1] / r, -s)
        d = np.sqrt(r * r + x[2] * x[2])
        return d, scale(1.0 / d, x)
    knee = 0.5 * x[2] * s / c
    if knee <= 0.0:
        return 0.0, (0.0, 0.0, 0.0)
    y, slope, more = rounded(r, knee)
    slope *= c / max(r, 1e-300)
    return x[2] * s - y * c, (-slope * x[0], -slope * x[1], s - 0.5 * more * s)


@routine
def wall_depth(walls, o, p):
    """Depth of p behind the wall at walls[o:], at most 0 in front of it, and the depth's gradient."""
    R, kind, inside = matrix(walls, o + AXES), walls[o + KIND], walls[o + INSIDE] > 0.0
    x = rotate_back(R, sub(p, vector(walls, o + PLACE)))
    if kind == PLANE:
        d, n = -x[2], (0.0, 0.0, -1.0)
    elif kind == BOX:
        d, n = box_depth(x, vector(walls, o + SIZES), inside)
    elif kind == SPHERE:
        d, n = sphere_depth(x, walls[o + SIZES], inside)
    else:
        d, n = cone_depth(x, walls[o + SIZES], inside)
    return d, rotate(R, n)


@routine
def walls_on(walls, p, stiffness, most, twist, rate):
    """Force on p, potential, the stiffness that counts in the damping (xx, xy, xz, yy, yz, zz), and the largest depth.

    A target does not go on behind a wall: the part of its twist (6,) that leads there, and along it that of the twist's
    rate, fade as the stiffness grows. The recesses are brought forward.
    """
    force, energy, deepest, K = (0.0, 0.0, 0.0), 0.0, 0.0, (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    for o in range(0, len(walls), WALL):
        d, n = wall_depth(walls, o, p)
        deepest = max(deepest, d)
        walls[o + RECESS] = min(walls[o + RECESS], max(d, 0.0))
        d -= walls[o + RECESS]
        if not d > 0.0:
            continue
        f = min(stiffness * d, most)
        force = add(force, scale(-f, n))
        energy += f * (d - 0.5 * f / stiffness) if stiffness > 0.0 else 0.0
        share = min(d / FADE, 1.0)
        share *= share * (3.0 - 2.0 * share)
        k = share * stiffness
        K = (K[0] + k * n[0] * n[0], K[1] + k * n[0] * n[1], K[2] + k * n[0] * n[2], K[3] + k * n[1] * n[1],
             K[4] + k * n[1] * n[2], K[5] + k * n[2] * n[2])
        into = share * max(n[0] * twist[3] + n[1] * twist[4] + n[2] * twist[5], 0.0)
        along = share * (n[0] * rate[3] + n[1] * rate[4] + n[2] * rate[5])
        for i in range(3):
            twist[3 + i] -= into * n[i]
            rate[3 + i] -= along * n[i]
    return force, energy, K, deepest
