"""Derivatives of inverse, forward and hybrid dynamics along many directions at once: K Tables 5–7, O(n) each.

What does not depend on the direction is computed once: the dynamics themselves, and from their accelerations the motion
and wrench of every body. A direction then costs K Table 5, and where accelerations are sought one solution of
`M_vv ∂q̈_v = ∂τ_v − ∂ID_v` with the factors Î, U, Ψ that are there. Tables 6 and 7 carry ∂Î and ∂Ψ up the tree instead:
the same numbers, for several times the work. ∂h, T⁻¹∂T, is of a node's pose T in its parent.
"""
from __future__ import annotations

from ...compiled.kernel import kernel, routine, sweep
from ...lie.spatial import unit
from ...model.block import (
    ARMATURE, GRAVITY, INERTIA, MASS, MOMENT, RATIO, first_position, first_velocity, kind, layout, matrix, node,
    node_count, parent, put, put_matrix, six, vector, zero,
)
from ...model.joint_kinds import (
    column, dof, is_revolute, joint_bias, joint_pose, joint_twist, rates, second_slope, slope, varies,
)
from ...dynamics.articulated import _U as COLUMNS
from ...dynamics.articulated import SIZE as FACTORS
from ..columns import put_pair, put_pair_add
from .parameters import (
    CHANGED, D_ARMATURE, D_GRAVITY, D_INERTIA, HEAD, RECORD, parameter_changes, parameter_column,
)
from .twists import inertia_times, lie, lie_dual, minus, pair, pairing, plus, times, to_child, wrench_to_parent

# of a node: pose; twist and acceleration of its parent in its axes, S q̇, its own twist, acceleration and momentum, and
# the wrench that its joint carries
R, P, V_P, A_P, RATE, V, A, H, F, MOTION = layout(R=9, p=3, v_p=6, a_p=6, rate=6, v=6, a=6, h=6, f=6)
# along one direction: ∂h, ∂V, ∂V̇, ∂F (what is solved for included), and per column the effort left over
DH, DV, DA, DF, LEFT, CHANGE = layout(dh=6, dv=6, da=6, df=6, left=6)
FACTOR = 7    # per velocity coordinate, close together: U = Î s and Ψ


@sweep
def bodies(B, q, k, v, a, j, wrenches, S):
    """Motion and wrenches of all bodies at the accelerations a[j:] to S: K Table 2."""
    wrench, e = wrenches
    z = zero(B, v, j)
    n = node_count(B)
    for i in range(n):
        o = node(i)
        w = MOTION * i
        iq = k + first_position(B, o)
        iv = j + first_velocity(B, o)
        E, p = joint_pose(B, o, q, iq)
        h = parent(B, o)
        V_p = ((z, z, z), (z, z, z))
        A_p = ((z, z, z), (z - B[GRAVITY], z - B[GRAVITY + 1], z - B[GRAVITY + 2]))
        if h >= 0:
            V_p = to_child(E, p, pair(S, MOTION * h + V))
            A_p = pair(S, MOTION * h + A)
        A_p = to_child(E, p, A_p)
        rate = joint_twist(B, o, q, iq, v, iv)
        twist = plus(V_p, rate)
        acc = plus(A_p, plus(joint_twist(B, o, q, iq, a, iv), plus(joint_bias(B, o, q, iq, v, iv), lie(V_p, rate))))
        m = B[o + MASS]
        c = vector(B, o + MOMENT)
        J = six(B, o + INERTIA)
        momentum = inertia_times(m, c, J, twist)
        f = minus(inertia_times(m, c, J, acc), lie_dual(twist, momentum))
        if wrench.shape[0] > 0:
            f = minus(f, pair(wrench, e + 6 * i))
        put_matrix(S, w + R, E)
        put(S, w + P, p)
        put_pair(S, w + V_P, V_p[0], V_p[1])
        put_pair(S, w + A_P, A_p[0], A_p[1])
        put_pair(S, w + RATE, rate[0], rate[1])
        put_pair(S, w + V, twist[0], twist[1])
        put_pair(S, w + A, acc[0], acc[1])
        put_pair(S, w + H, momentum[0], momentum[1])
        put_pair(S, w + F, f[0], f[1])
    for i in range(n - 1, -1, -1):
        h = parent(B, node(i))
        if h >= 0:
            w = MOTION * i
            f = wrench_to_parent(matrix(S, w + R), vector(S, w + P), pair(S, w + F))
            put_pair_add(S, MOTION * h + F, f[0], f[1])


@sweep
def gather_factors(B, W, out):
    """The columns that `articulated` left in W, for all directions."""
    for i in range(node_count(B)):
        o = node(i)
        for c in range(dof(kind(B, o))):
            for x in range(FACTOR):
                out[FACTOR * (first_velocity(B, o) + c) + x] = W[FACTORS * i + COLUMNS + 8 * c + x]


@kernel
def about_z(x, y):
    """`ad_(0, 0, x; 0) y`."""
    return (-x * y[0][1], x * y[0][0], 0.0 * x), (-x * y[1][1], x * y[1][0], 0.0 * x)


@routine
def own_changes(B, o, q, iq, v, a, iv, X, y, Y, u):
    """∂h, ∂(S q̇), ∂(S q̈ + Ṡ q̇) of a node of any kind from those of its coordinates, ∂q and ∂q̇ at X[y[0]:], X[y[1]:],
    ∂q̈ at Y[u:].
    """
    t = kind(B, o)
    z = 0.0 * X[y[0]]
    dh = ((z, z, z), (z, z, z))
    for c in range(dof(t)):
        dh = plus(dh, times(X[y[0] + c], column(B, o, q, iq, c)))
    rate = joint_twist(B, o, q, iq, X, y[1])
    acc = joint_twist(B, o, q, iq, Y, u)
    if varies(t):
        along, change, now = rates(t, X, y[0]), rates(t, X, y[1]), rates(t, v, iv)
        rate = plus(rate, slope(B, o, q, iq, along, now))
        acc = plus(acc, plus(slope(B, o, q, iq, along, rates(t, a, iv)), second_slope(B, o, q, iq, along, now)))
        acc = plus(acc, plus(slope(B, o, q, iq, change, now), slope(B, o, q, iq, now, change)))
    return dh, rate, acc


@sweep
def changes_outward(B, q, k, v, a, j, along, dwrench, e, S, W):
    """∂V, ∂V̇ and ∂F of each body alone, to W, along one direction.

    along: X, y, where ∂q, ∂q̇ and ∂τ of the state begin in it, Y, ∂q̈ of the state, and D, d0, the model's own change
    D[d0:] (empty: none). dwrench[e:]: that of external wrenches per node (empty: none).
    """
    X, y, Y, D, d0 = along
    z = zero(B, v, j)
    own = D.shape[0] > 0
    for i in range(node_count(B)):
        o = node(i)
        w = CHANGE * i
        s = MOTION * i
        d = d0 + HEAD + RECORD * i
        iv = first_velocity(B, o)
        E = matrix(S, s + R)
        p = vector(S, s + P)
        h = parent(B, o)
        dV = ((z, z, z), (z, z, z))
        dA = dV
        if h >= 0:
            dV = to_child(E, p, pair(W, CHANGE * h + DV))
            dA = to_child(E, p, pair(W, CHANGE * h + DA))
        elif own:
            g = vector(D, d0 + D_GRAVITY)
            dA = to_child(E, p, ((z, z, z), (-g[0], -g[1], -g[2])))
        changed = own and D[d + CHANGED] != 0.0
        if is_revolute(kind(B, o)) and not changed:
            r = B[o + RATIO]
            x = r * X[y[0] + iv]
            u = r * X[y[1] + iv]
            n = S[s + RATE + 2]
            dV = minus(dV, about_z(x, pair(S, s + V_P)))
            dV = (dV[0][0], dV[0][1], dV[0][2] + u), dV[1]
            # ad_∂V (S q̇) + ad_V ∂(S q̇)
            dA = minus(minus(dA, about_z(x, pair(S, s + A_P))), plus(about_z(n, dV), about_z(u, pair(S, s + V))))
            dA = (dA[0][0], dA[0][1], dA[0][2] + r * Y[iv]), dA[1]
            W[w + DH] = x
        else:
            iq = k + first_position(B, o)
            dh, drate, dacc = own_changes(B, o, q, iq, v, a, j + iv, X, (y[0] + iv, y[1] + iv), Y, iv)
            if changed:
                more = parameter_changes(B, o, q, iq, v, a, j + iv, D, d, d0, E, p)
                dh, drate, dacc = plus(dh, more[0]), plus(drate, more[1]), plus(dacc, more[2])
            dV = plus(minus(dV, lie(dh, pair(S, s + V_P))), drate)
            dA = plus(minus(dA, lie(dh, pair(S, s + A_P))),
                      plus(dacc, plus(lie(dV, pair(S, s + RATE)), lie(pair(S, s + V), drate))))
            put_pair(W, w + DH, dh[0], dh[1])
        put_pair(W, w + DV, dV[0], dV[1])
        put_pair(W, w + DA, dA[0], dA[1])
        m = B[o + MASS]
        c = vector(B, o + MOMENT)
        J = six(B, o + INERTIA)
        dH = inertia_times(m, c, J, dV)
        df = inertia_times(m, c, J, dA)
        if changed:
            m = D[d + D_INERTIA]
            c = vector(D, d + D_INERTIA + 1)
            J = six(D, d + D_INERTIA + 4)
            dH = plus(dH, inertia_times(m, c, J, pair(S, s + V)))
            df = plus(df, inertia_times(m, c, J, pair(S, s + A)))
        df = minus(df, plus(lie_dual(dV, pair(S, s + H)), lie_dual(pair(S, s + V), dH)))
        if dwrench.shape[0] > 0:
            df = minus(df, pair(dwrench, e + 6 * i))
        put_pair(W, w + DF, df[0], df[1])


@sweep
def wrench_inward(B, i, S, W, straight):
    """Add ∂F of node i to that of its parent; straight: ∂h is an angle about z."""
    h = parent(B, node(i))
    if h >= 0:
        w = CHANGE * i
        s = MOTION * i
        f = pair(S, s + F)
        df = pair(W, w + DF)
        if straight:    # ad* of a turn about z is minus its ad
            df = plus(df, about_z(W[w + DH], f))
        else:
            df = minus(df, lie_dual(pair(W, w + DH), f))
        df = wrench_to_parent(matrix(S, s + R), vector(S, s + P), df)
        put_pair_add(W, CHANGE * h + DF, df[0], df[1])


@routine
def turned_column(B, o, q, iq, c, f, acc, along, iv, d, changed):
    """`∂Sᵀ F` of column c, and ∂(rotor inertia) q̈."""
    X, y, _, D, d0 = along
    x = 0.0 * acc
    if varies(kind(B, o)):
        x += pairing(slope(B, o, q, iq, rates(kind(B, o), X, y[0] + iv), unit(c, q[iq])), f)
    if changed:
        x += pairing(parameter_column(B, o, q, iq, D, d, d0), f) + D[d + D_ARMATURE + c] * acc
    return x


@kernel
def is_changed(i, along):
    """Whether parameters of node i change."""
    D = along[3]
    return D.shape[0] > 0 and D[along[4] + HEAD + RECORD * i + CHANGED] != 0.0


@kernel
def effort_change(B, i, c, q, k, acc, along, changed, S, W):
    """∂τ of inverse dynamics of column c of node i, whose acceleration is acc, by its rotor, ∂F and ∂S."""
    o = node(i)
    w = CHANGE * i
    iv = first_velocity(B, o)
    x = B[o + ARMATURE + c] * along[2][iv + c]
    if is_revolute(kind(B, o)) and not changed:
        return x + B[o + RATIO] * W[w + DF + 2]
    iq = k + first_position(B, o)
    return x + pairing(column(B, o, q, iq, c), pair(W, w + DF)) + turned_column(
        B, o, q, iq, c, pair(S, MOTION * i + F), acc, along, iv, along[4] + HEAD + RECORD * i, changed)


@sweep
def efforts_inward(B, q, k, a, j, along, S, W, out, to):
    """∂τ of inverse dynamics to out[to:]."""
    for i in range(node_count(B) - 1, -1, -1):
        o = node(i)
        iv = first_velocity(B, o)
        changed = is_changed(i, along)
        for c in range(dof(kind(B, o))):
            out[to + iv + c] += effort_change(B, i, c, q, k, a[j + iv + c], along, changed, S, W)
        wrench_inward(B, i, S, W, is_revolute(kind(B, o)) and not changed)


@sweep
def left_inward(B, q, k, a, j, mask, along, factors, S, W):
    """Residual ∂τ, column by column, with the factors of `gather_factors`."""
    X, y = along[:2]
    hybrid = mask.shape[0] > 0
    for i in range(node_count(B) - 1, -1, -1):
        o = node(i)
        w = CHANGE * i
        iv = first_velocity(B, o)
        changed = is_changed(i, along)
        for c in range(dof(kind(B, o)) - 1, -1, -1):
            u = FACTOR * (iv + c)
            x = effort_change(B, i, c, q, k, a[j + iv + c], along, changed, S, W)
            if hybrid and mask[iv + c]:
                W[w + LEFT + c] = -x
                continue
            x = X[y[2] + iv + c] - x
            W[w + LEFT + c] = x
            f = times(factors[u + 6] * x, pair(factors, u))
            put_pair_add(W, w + DF, f[0], f[1])
        wrench_inward(B, i, S, W, is_revolute(kind(B, o)) and not changed)


@sweep
def solution_outward(B, q, k, mask, factors, S, W, out, to):
    """∂q̈, and ∂τ where accelerations are prescribed, to out[to:]; what the bodies feel of it to DA."""
    z = 0.0 * W[0]
    hybrid = mask.shape[0] > 0
    for i in range(node_count(B)):
        o = node(i)
        w = CHANGE * i
        s = MOTION * i
        iv = first_velocity(B, o)
        h = parent(B, o)
        acc = ((z, z, z), (z, z, z))
        if h >= 0:
            acc = to_child(matrix(S, s + R), vector(S, s + P), pair(W, CHANGE * h + DA))
        t = kind(B, o)
        for c in range(dof(t)):
            u = FACTOR * (iv + c)
            rest = W[w + LEFT + c] - pairing(pair(factors, u), acc)
            if hybrid and mask[iv + c]:
                out[to + iv + c] = -rest
                continue
            x = factors[u + 6] * rest
            out[to + iv + c] = x
            if is_revolute(t):
                acc = (acc[0][0], acc[0][1], acc[0][2] + B[o + RATIO] * x), acc[1]
            else:
                acc = plus(acc, times(x, column(B, o, q, k + first_position(B, o), c)))
        put_pair(W, w + DA, acc[0], acc[1])
