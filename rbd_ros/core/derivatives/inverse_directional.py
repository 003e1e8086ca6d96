"""Derivatives of inverse dynamics by any scalar p: K Table 5, O(n)."""
from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..compile import entry, kernel, routine, sweep
from ..errors import RbdError
from ..lie.spatial import compose, cross, rotate_back, scale, sub, unit
from ..model.block import (
    ARMATURE, GRAVITY, MASS, MOMENT, OFFSET, POSITION, RATIO, ROTATION, all_finite, first_position, first_velocity,
    kind, layout, matrix, node, node_count, parent, put, put_matrix, rates_valid, six, size_q, size_v, vector, zero,
)
from ..model.block import INERTIA as BODY_INERTIA
from ..model.configuration import positions_valid
from ..model.inertia import Array
from ..model.joint_kinds import (
    column, dof, is_screw, joint_bias, joint_pose, joint_twist, rates, screw, second_slope, slope, slope_along, varies,
)
from ..model.robot_model import RobotModel
from ..model.state import States, node_wrenches, shaped
from .columns import put_pair
from .twists import inertia_times, lie, lie_dual, minus, pair, pairing, plus, times, to_child, wrench_to_parent
from .tangent import INERTIA, PLACEMENT, RECORD, SCREW, Tangent, parameter_tangents

# workspace of one node: pose, V, ∂V, V̇, ∂V̇, F, ∂F, ∂h
R, P, V, DV, A, DA, F, DF, DH, SIZE = layout(R=9, p=3, v=6, dv=6, a=6, da=6, f=6, df=6, dh=6)


@routine
def twist_of(B, o, q, k, x, j):
    return joint_twist(B, o, q, k, x, j)


@routine
def bias_of(B, o, q, k, v, j):
    return joint_bias(B, o, q, k, v, j)


@routine
def pose_of(B, o, q, k):
    return joint_pose(B, o, q, k)


@routine
def column_of(B, o, q, k, c):
    return column(B, o, q, k, c)


@routine
def direction_slopes(B, o, q, k, v, a, j, dq, dv):
    """Where S varies: ∂S q̇, and ∂S q̈ + ∂(Ṡ q̇) along dq[j:], dv[j:]; v[j:], a[j:]."""
    t = kind(B, o)
    rate, along, change = rates(t, v, j), rates(t, dq, j), rates(t, dv, j)
    second = plus(slope(B, o, q, k, along, rates(t, a, j)), second_slope(B, o, q, k, along, rate))
    mixed = plus(slope(B, o, q, k, change, rate), slope(B, o, q, k, rate, change))
    return slope(B, o, q, k, along, rate), plus(second, mixed)


@routine
def turned_back(E, p, o, B, x):
    """`Ad_{T_J⁻¹} x` for the motion T_J of the joint: its pose (E, p) without its place."""
    E0 = matrix(B, o + ROTATION)
    E_J = compose((E0[0], E0[3], E0[6], E0[1], E0[4], E0[7], E0[2], E0[5], E0[8]), E)
    return to_child(E_J, rotate_back(E0, sub(p, vector(B, o + POSITION))), x)


@routine
def screw_motion(B, o, q, iq, w, u):
    """∂h of a screw whose S changes by (w, u): `∫₀ˣ Ad_exp(−S y) (w, u) dy`, x = ratio q + offset."""
    x = B[o + RATIO] * q[iq] + B[o + OFFSET]
    z = 0.0 * x
    turned, slid = screw(B, o, q, iq, kind(B, o))
    e = (z, z, z + 1.0)
    if turned == 0.0:
        return scale(x, w), sub(scale(x, u), scale(0.5 * x * x, cross(e, w)))
    s = np.sin(x)
    c = 2.0 * np.sin(0.5 * x) * np.sin(0.5 * x)    # 1 − cos
    angular = (s * w[0] + c * w[1], s * w[1] - c * w[0], x * w[2])
    linear = (s * u[0] + c * u[1], s * u[1] - c * u[0], x * u[2])
    a = x * s - c                    # ∫ y cos y
    b = s - x * (1.0 - c)            # ∫ y sin y
    linear = sub(linear, scale(slid, cross(e, (a * w[0] + b * w[1], a * w[1] - b * w[0], z))))
    return angular, linear


@routine
def frame_change(B, o, q, iq, E, p, D, d, dq, y):
    """∂h of a node, `T⁻¹ ∂T`: from its coordinates along dq[y:], its placement and its screw."""
    h = turned_back(E, p, o, B, pair(D, d + PLACEMENT))
    t = kind(B, o)
    if is_screw(t):
        h = plus(h, screw_motion(B, o, q, iq, vector(D, d + SCREW), vector(D, d + SCREW + 3)))
    for c in range(dof(t)):
        h = plus(h, times(dq[y + c], column_of(B, o, q, iq, c)))
    return h


@routine
def column_change(B, o, q, iq, c, D, d, dq, y):
    """∂S of column c."""
    z = 0.0 * dq[y]
    t = kind(B, o)
    if is_screw(t):
        return times(B[o + RATIO], pair(D, d + SCREW))
    if varies(t):
        return slope_along(B, o, q, iq, dq, y, unit(c, q[iq]))
    return (z, z, z), (z, z, z)


@routine
def rate_changes(B, o, q, iq, v, a, iv, dq, dv, da, D, d):
    """∂(S q̇) and ∂(S q̈ + Ṡ q̇); v[iv:], a[iv:] and so on."""
    first = twist_of(B, o, q, iq, dv, iv)
    second = twist_of(B, o, q, iq, da, iv)
    t = kind(B, o)
    if is_screw(t):
        s = times(B[o + RATIO], pair(D, d + SCREW))
        first = plus(first, times(v[iv], s))
        second = plus(second, times(a[iv], s))
    elif varies(t):
        sigma, rho = direction_slopes(B, o, q, iq, v, a, iv, dq, dv)
        first = plus(first, sigma)
        second = plus(second, rho)
    return first, second


@kernel
def acceleration_before(B, h, W, stride):
    """V̇ and ∂V̇ of node h, or of the base, which accelerates against gravity."""
    z = 0.0 * W[0]
    if h < 0:
        return (((z, z, z), (z - B[GRAVITY], z - B[GRAVITY + 1], z - B[GRAVITY + 2])), ((z, z, z), (z, z, z)))
    return pair(W, stride * h + A), pair(W, stride * h + DA)


@sweep
def motion_changes(B, q, k, v, a, j, change, W, stride, i):
    """Forward recursion at node i: pose, V, ∂V, ∂h to W; returns η with the joint's own acceleration, and ∂η."""
    dq, dv, da, D = change
    o = node(i)
    w = stride * i
    d = RECORD * i
    z = zero(B, v, j)
    iq = k + first_position(B, o)
    iv = j + first_velocity(B, o)
    E, p = pose_of(B, o, q, iq)
    h = parent(B, o)
    V_p = ((z, z, z), (z, z, z))
    DV_p = V_p
    if h >= 0:
        V_p = to_child(E, p, pair(W, stride * h + V))
        DV_p = pair(W, stride * h + DV)
    dh = frame_change(B, o, q, iq, E, p, D, d, dq, iv)
    rate = twist_of(B, o, q, iq, v, iv)
    acceleration = plus(twist_of(B, o, q, iq, a, iv), bias_of(B, o, q, iq, v, iv))
    drate, dacceleration = rate_changes(B, o, q, iq, v, a, iv, dq, dv, da, D, d)
    twist = plus(V_p, rate)
    dtwist = plus(minus(to_child(E, p, DV_p), lie(dh, V_p)), drate)
    put_matrix(W, w + R, E)
    put(W, w + P, p)
    put_pair(W, w + V, twist[0], twist[1])
    put_pair(W, w + DV, dtwist[0], dtwist[1])
    put_pair(W, w + DH, dh[0], dh[1])
    return (plus(acceleration, lie(twist, rate)),
            plus(plus(dacceleration, lie(dtwist, rate)), lie(twist, drate)))


@sweep
def velocity_wrench(B, o, D, d, twist, dtwist, wrench, e, dwrench):
    """`− ad*_V I V − F_ext` of a body, and its derivative."""
    m = B[o + MASS]
    c = vector(B, o + MOMENT)
    J = six(B, o + BODY_INERTIA)
    h = inertia_times(m, c, J, twist)
    dh = plus(inertia_times(m, c, J, dtwist),
              inertia_times(D[d + INERTIA], vector(D, d + INERTIA + 1), six(D, d + INERTIA + 4), twist))
    f = times(-1.0, lie_dual(twist, h))
    df = times(-1.0, plus(lie_dual(dtwist, h), lie_dual(twist, dh)))
    if wrench.shape[0] > 0:
        f = minus(f, pair(wrench, e))
    if dwrench.shape[0] > 0:
        df = minus(df, pair(dwrench, e))
    return f, df


@sweep
def inverse_directional_recursion(B, q, k, v, a, j, change, wrenches, W, out):
    """One state: K Table 5; out[j:] takes ∂τ. change: dq[j:], dv[j:], da[j:] and D; wrenches: with their derivatives,
    both from e on.
    """
    dq, _, da, D = change
    wrench, dwrench, e = wrenches
    n = node_count(B)
    for i in range(n):
        o = node(i)
        w = SIZE * i
        d = RECORD * i
        eta, deta = motion_changes(B, q, k, v, a, j, change, W, SIZE, i)
        E = matrix(W, w + R)
        p = vector(W, w + P)
        acc, dacc = acceleration_before(B, parent(B, o), W, SIZE)
        acc = to_child(E, p, acc)
        dacc = plus(minus(to_child(E, p, dacc), lie(pair(W, w + DH), acc)), deta)
        acc = plus(acc, eta)
        put_pair(W, w + A, acc[0], acc[1])
        put_pair(W, w + DA, dacc[0], dacc[1])
        m = B[o + MASS]
        c = vector(B, o + MOMENT)
        J = six(B, o + BODY_INERTIA)
        f, df = velocity_wrench(B, o, D, d, pair(W, w + V), pair(W, w + DV), wrench, e + 6 * i, dwrench)
        f = plus(f, inertia_times(m, c, J, acc))
        df = plus(df, plus(inertia_times(m, c, J, dacc), inertia_times(
            D[d + INERTIA], vector(D, d + INERTIA + 1), six(D, d + INERTIA + 4), acc)))
        put_pair(W, w + F, f[0], f[1])
        put_pair(W, w + DF, df[0], df[1])
    for i in range(size_v(B)):
        out[j + i] = zero(B, v, j)
    for i in range(n - 1, -1, -1):
        o = node(i)
        w = SIZE * i
        iv = j + first_velocity(B, o)
        iq = k + first_position(B, o)
        f = pair(W, w + F)
        df = pair(W, w + DF)
        for c in range(dof(kind(B, o))):
            out[iv + c] += (pairing(column_change(B, o, q, iq, c, D, RECORD * i, dq, iv), f)
                            + pairing(column_of(B, o, q, iq, c), df) + B[o + ARMATURE + c] * da[iv + c])
        h = parent(B, o)
        if h >= 0:
            E = matrix(W, w + R)
            p = vector(W, w + P)
            g = plus(pair(W, SIZE * h + F), wrench_to_parent(E, p, f))
            put_pair(W, SIZE * h + F, g[0], g[1])
            df = minus(df, lie_dual(pair(W, w + DH), f))
            g = plus(pair(W, SIZE * h + DF), wrench_to_parent(E, p, df))
            put_pair(W, SIZE * h + DF, g[0], g[1])


@entry("boolean(float64[::1], float64[::1], float64[::1], float64[::1], float64[::1], float64[::1], float64[::1], "
       "float64[::1], float64[::1], float64[::1], int64, float64[::1])", nogil=True)
def inverse_directional_entry(B, q, v, a, dq, dv, da, D, wrench, dwrench, states, out):
    """This many states, checked; False where the input is not what the model takes, or the result is not finite."""
    if not (positions_valid(B, q, states) and rates_valid(B, v, states) and rates_valid(B, a, states)
            and rates_valid(B, dq, states) and rates_valid(B, dv, states) and rates_valid(B, da, states)):
        return False
    nodes = node_count(B)
    W = np.empty(SIZE * nodes)
    for s in range(states):
        inverse_directional_recursion(B, q, s * size_q(B), v, a, s * size_v(B), (dq, dv, da, D),
                                      (wrench, dwrench, 6 * nodes * s), W, out)
    return all_finite(out)


def with_tangent(model: RobotModel, tangent: Tangent, q: Any, **rates: Any) -> States:
    """Inputs and the tangents of q and of all others in the order given, of one batch size."""
    if not isinstance(tangent, Tangent):
        raise RbdError(f"tangent: expected a Tangent, got {type(tangent).__name__}")
    zeros = getattr(model, "_zeros", None)
    changes = {f"tangent.{name}": zeros if (x := getattr(tangent, name)) is None else x for name in ("q", *rates)}
    return shaped(model, positions={"q": q}, rates=rates | changes)


def inverse_dynamics_directional(model: RobotModel, q: ArrayLike, v: ArrayLike, a: ArrayLike, tangent: Tangent,
                                 external_wrenches: Any = None) -> Array:
    """∂τ/∂p (nv,) or (N, nv) of `inverse_dynamics` by a scalar p on which anything may depend: K Table 5, O(n).

    tangent: see `Tangent` (its `tau` has no meaning here). Other arguments and errors as of `inverse_dynamics`; the
    tangent may be of one state or of a batch.
    """
    given = with_tangent(model, tangent, q=q, v=v, a=a)
    D = parameter_tangents(model, tangent)
    out = given.empty(model.nv)
    if not inverse_directional_entry.call(
            model._block, *given.flat, D, node_wrenches(model, external_wrenches, given.batch),
            node_wrenches(model, tangent.external_wrenches, given.batch), given.count, out.reshape(-1)):
        given.refuse(derivative=out)
    return out
