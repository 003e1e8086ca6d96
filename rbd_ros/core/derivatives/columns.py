"""Common part of all first derivatives: per column of S the change of motion of the subtree (K eq. 87–91).

All vectors are in world axes about one point O (the first node with mass, to keep precision far from the world's
origin): twists (ω, u), u the velocity of the body's point at O. A displacement along column s changes the motion of all
bodies of the subtree, in axes that move along, by the same `δV = Ψ̇` and `δV̇ = Ψ̈ − ad_V Ψ̇`; a rate along s gives
`δV = s`, `δV̇ = Ξ − ad_V s`. Then `δF = Î Ψ̈ + B̂ Ψ̇` with composite Î and B̂, and B̂ has columns only for the angular
part of Ψ̇: (N, −2 [h]) with momentum h and `N = −2 (ω̂ Σ + ĉ û)`, Σ = ½ tr(I) 1 − I.
With V, V̇ of the parent, V' of the node:  Ψ̇ = ad_V s,  Ψ̈ = ad_V̇ s + ad_V Ψ̇,  Ξ = ad_(V + V') s.
If S = S(q), Ψ̇ gains σ = ∂S/∂q q̇, Ψ̈ gains ∂(S q̈ + Ṡ q̇)/∂q + ad_V' σ, and Ξ gains ∂(Ṡ q̇)/∂q̇.
"""
from __future__ import annotations

from ..compiled.kernel import kernel, sweep
from ..lie.spatial import (
    add, add_cross, add_rotated, compose, cross, dot, rotate, rotate_symmetric, scale, sub, symmetric_times, unit,
)
from ..model.block import (
    GRAVITY, INERTIA, MASS, MOMENT, RATIO, first_position, first_velocity, kind, layout, matrix, node, node_count,
    parent, put, put_add, put_matrix, put_six, six, vector, zero,
)
from ..model.joint_kinds import (
    column, dof, is_revolute, is_screw, joint_bias, joint_pose, rates, second_slope, slope, varies,
)

# workspace of one node: pose, twist, acceleration; composite mass, moment, inertia, N, momentum; wrench about O
R, P, OMEGA, U, ALPHA, ACCEL, TOTAL, FIRST_MOMENT, I, B_HAT, H, MOMENT_O, FORCE, NODE_SIZE = layout(
    R=9, p=3, omega=3, u=3, alpha=3, accel=3, total=1, first_moment=3, I=6, b_hat=9, h=3, moment_o=3, force=3)
COMPOSITE = 28    # numbers from TOTAL on that are summed up the tree
# workspace of one column: s (6), Ψ̇ (6), Ξ (6), Ψ̈ (6), Î s (6)
S, PSI, XI, PSI2, MOMENTUM, COLUMN = layout(s=6, psi=6, xi=6, psi2=6, momentum=6)


@kernel
def ad(a, b, x, y):
    """`ad_(a, b) (x, y)`."""
    return cross(a, x), add_cross(cross(a, y), b, x)


@kernel
def put_pair(A, k, x, y):
    put(A, k, x)
    put(A, k + 3, y)


@kernel
def about_origin(E, p, x):
    """The twist x of a node with world axes E, at p from O, in world axes about O."""
    a = rotate(E, x[0])
    return a, add_cross(rotate(E, x[1]), p, a)


@kernel
def put_pair_add(A, k, x, y):
    put_add(A, k, x)
    put_add(A, k + 3, y)


@sweep
def column_slopes(B, o, q, k, v, j, a, x, c):
    """Derivatives for S = S(q): ∂(S q̇) and ∂(S q̈ + Ṡ q̇) by coordinate c of q, ∂(Ṡ q̇) by that of q̇. q̈ at a[x:]."""
    t = kind(B, o)
    rate = rates(t, v, j)
    e = unit(c, q[k])
    sigma, sigma_l = slope(B, o, q, k, e, rate)
    rho, rho_l = slope(B, o, q, k, e, rates(t, a, x))
    second, second_l = second_slope(B, o, q, k, e, rate)
    xi, xi_l = slope(B, o, q, k, rate, e)
    return (sigma, sigma_l), (add(rho, second), add(rho_l, second_l)), (add(sigma, xi), add(sigma_l, xi_l))


@kernel
def count_columns(B):
    """Number of columns of S of all nodes: nv, or more if bodies share coordinates."""
    count = 0
    for i in range(node_count(B)):
        count += dof(kind(B, node(i)))
    return count


@sweep
def motion_sweep(B, q, k, v, j, a, ja, moving, wrenches, work):
    """Forward recursion, to W by node and L by column: all but Ψ̈. v[j:], a[ja:]; if not `moving`, q̈ counts as zero.

    wrenches: (wrench, e), those of this state from wrench[e:] (empty: none). work: (W, L, T). T receives per column its
    coordinate and its predecessor towards the root (−1: none), and per node its last column.
    """
    wrench, e = wrenches
    W, L, T = work
    n = node_count(B)
    z = zero(B, v, j)
    O = (z, z, z)
    placed = False
    for i in range(n):
        o = node(i)
        w = NODE_SIZE * i
        E, p = joint_pose(B, o, q, k + first_position(B, o))
        h = parent(B, o)
        if h >= 0:
            E_h = matrix(W, NODE_SIZE * h + R)
            p = add_rotated(vector(W, NODE_SIZE * h + P), E_h, p)
            E = compose(E_h, E)
        if not placed and B[o + MASS].real > 0.0:
            placed = True
            O = p
        put_matrix(W, w + R, E)
        put(W, w + P, p)
    index = 0
    last = T.shape[0] - n
    for i in range(n):
        o = node(i)
        w = NODE_SIZE * i
        iq = k + first_position(B, o)
        iv = j + first_velocity(B, o)
        t = kind(B, o)
        E = matrix(W, w + R)
        p = sub(vector(W, w + P), O)
        put(W, w + P, p)
        h = parent(B, o)
        if h < 0:
            omega_p = (z, z, z)
            u_p = (z, z, z)
            alpha = (z, z, z)
            accel = (z - B[GRAVITY], z - B[GRAVITY + 1], z - B[GRAVITY + 2])
            before = -1
        else:
            x = NODE_SIZE * h
            omega_p = vector(W, x + OMEGA)
            u_p = vector(W, x + U)
            alpha = vector(W, x + ALPHA)
            accel = vector(W, x + ACCEL)
            before = T[last + h]
        if is_revolute(t):
            ratio = B[o + RATIO]
            sa = (ratio * E[2], ratio * E[5], ratio * E[8])
            sl = cross(p, sa)
            put_pair(L, COLUMN * index + S, sa, sl)
            omega_r = scale(v[iv], sa)
            u_r = scale(v[iv], sl)
            if moving:
                alpha = add(alpha, scale(a[ja + iv - j], sa))
                accel = add(accel, scale(a[ja + iv - j], sl))
        else:
            omega_r = (z, z, z)
            u_r = (z, z, z)
            for c in range(dof(t)):
                sa, sl = column(B, o, q, iq, c)
                sa, sl = about_origin(E, p, (sa, sl))
                put_pair(L, COLUMN * (index + c) + S, sa, sl)
                omega_r = add(omega_r, scale(v[iv + c], sa))
                u_r = add(u_r, scale(v[iv + c], sl))
                if moving:
                    alpha = add(alpha, scale(a[ja + iv - j + c], sa))
                    accel = add(accel, scale(a[ja + iv - j + c], sl))
            if varies(t):
                x, y = about_origin(E, p, joint_bias(B, o, q, iq, v, iv))
                alpha = add(alpha, x)
                accel = add(accel, y)
        omega = add(omega_p, omega_r)
        u = add(u_p, u_r)
        if is_screw(t):    # Ψ̇ = ad_V s is the same for V before and after the joint, because ad_s s = 0
            l = COLUMN * index
            x, y = ad(omega_p, u_p, vector(L, l + S), vector(L, l + S + 3))
            put_pair(L, l + PSI, x, y)
            put_pair(L, l + XI, scale(2.0, x), scale(2.0, y))
            alpha = add(alpha, scale(v[iv], x))
            accel = add(accel, scale(v[iv], y))
            T[2 * index] = iv - j
            T[2 * index + 1] = before
            before = index
            index += 1
        else:
            x, y = ad(omega, u, omega_r, u_r)
            alpha = add(alpha, x)
            accel = add(accel, y)
            for c in range(dof(t)):
                l = COLUMN * index
                sa = vector(L, l + S)
                sl = vector(L, l + S + 3)
                x, y = ad(omega_p, u_p, sa, sl)
                put_pair(L, l + PSI, x, y)
                x, y = ad(add(omega_p, omega), add(u_p, u), sa, sl)
                put_pair(L, l + XI, x, y)
                if varies(t):
                    sigma, _, xi = column_slopes(B, o, q, iq, v, iv, v, iv, c)
                    x, y = about_origin(E, p, sigma)
                    put_pair_add(L, l + PSI, x, y)
                    x, y = about_origin(E, p, xi)
                    put_pair_add(L, l + XI, x, y)
                T[2 * index] = iv - j + c
                T[2 * index + 1] = before
                before = index
                index += 1
        put(W, w + OMEGA, omega)
        put(W, w + U, u)
        put(W, w + ALPHA, alpha)
        put(W, w + ACCEL, accel)
        T[last + i] = before
        put_body(B, o, W, w, E, p, omega, u, alpha, accel, wrench, e + 6 * i)


@kernel
def put_body(B, o, W, w, E, p, omega, u, alpha, accel, wrench, e):
    """Write to W the body's inertia about O, its momentum and N, and the wrench `I V̇ − ad*_V I V − F_ext`."""
    m = B[o + MASS]
    b = rotate(E, vector(B, o + MOMENT))
    J = rotate_symmetric(E, six(B, o + INERTIA))
    g = add(scale(2.0, b), scale(m, p))
    s = dot(p, g)
    c = add(b, scale(m, p))
    J = (J[0] + s - p[0] * g[0], J[1] - p[0] * b[1] - c[0] * p[1], J[2] - p[0] * b[2] - c[0] * p[2],
         J[3] + s - p[1] * g[1], J[4] - p[1] * b[2] - c[1] * p[2], J[5] + s - p[2] * g[2])
    h_a = add_cross(symmetric_times(J, omega), c, u)
    h = add_cross(scale(m, u), omega, c)
    moment = add_cross(add_cross(add_cross(symmetric_times(J, alpha), c, accel), omega, h_a), u, h)
    force = add_cross(add_cross(scale(m, accel), alpha, c), omega, h)
    if wrench.shape[0] > 0:
        f = rotate(E, vector(wrench, e + 3))
        force = sub(force, f)
        moment = sub(moment, add_cross(rotate(E, vector(wrench, e)), p, f))
    W[w + TOTAL] = m
    put(W, w + FIRST_MOMENT, c)
    put_six(W, w + I, J)
    put(W, w + H, h)
    put(W, w + MOMENT_O, moment)
    put(W, w + FORCE, force)
    # N = −2 (ω̂ Σ + ĉ û), ĉ û = u cᵀ − (c·u) 1
    half = 0.5 * (J[0] + J[3] + J[5])
    d = (half - J[0], half - J[3], half - J[5])
    x = scale(-2.0, omega)
    y = scale(-2.0, u)
    cu = dot(c, y)
    W[w + B_HAT] = x[2] * J[1] - x[1] * J[2] + y[0] * c[0] - cu
    W[w + B_HAT + 1] = -x[2] * d[1] - x[1] * J[4] + y[0] * c[1]
    W[w + B_HAT + 2] = x[2] * J[4] + x[1] * d[2] + y[0] * c[2]
    W[w + B_HAT + 3] = x[2] * d[0] + x[0] * J[2] + y[1] * c[0]
    W[w + B_HAT + 4] = -x[2] * J[1] + x[0] * J[4] + y[1] * c[1] - cu
    W[w + B_HAT + 5] = -x[2] * J[2] - x[0] * d[2] + y[1] * c[2]
    W[w + B_HAT + 6] = -x[1] * d[0] - x[0] * J[1] + y[2] * c[0]
    W[w + B_HAT + 7] = x[1] * J[1] + x[0] * d[1] + y[2] * c[1]
    W[w + B_HAT + 8] = x[1] * J[2] - x[0] * J[4] + y[2] * c[2] - cu


@sweep
def acceleration_columns(B, q, k, v, j, a, x, W, L):
    """Ψ̈ of every column, from the accelerations in W; v[j:], a[x:]."""
    z = zero(B, v, j)
    index = 0
    for i in range(node_count(B)):
        o = node(i)
        t = kind(B, o)
        h = parent(B, o)
        b = NODE_SIZE * h
        for c in range(dof(t)):
            l = COLUMN * index
            sa = vector(L, l + S)
            sl = vector(L, l + S + 3)
            if h < 0:
                put_pair(L, l + PSI2, (z, z, z), cross((z - B[GRAVITY], z - B[GRAVITY + 1], z - B[GRAVITY + 2]), sa))
            else:
                d, r = ad(vector(W, b + ALPHA), vector(W, b + ACCEL), sa, sl)
                f, g = ad(vector(W, b + OMEGA), vector(W, b + U), vector(L, l + PSI), vector(L, l + PSI + 3))
                put_pair(L, l + PSI2, add(d, f), add(r, g))
            if varies(t):
                w = NODE_SIZE * i
                iv = first_velocity(B, o)
                E = matrix(W, w + R)
                p = vector(W, w + P)
                sigma, rho, _ = column_slopes(B, o, q, k + first_position(B, o), v, j + iv, a, x + iv, c)
                sa, sl = about_origin(E, p, sigma)
                d, r = ad(vector(W, w + OMEGA), vector(W, w + U), sa, sl)
                f, g = about_origin(E, p, rho)
                put_pair_add(L, l + PSI2, add(f, d), add(g, r))
            index += 1
