"""Derivatives of forward and hybrid dynamics by any scalar p: K Tables 6 and 7, O(n).

The recursion of `dynamics.articulated`, one column of S at a time, differentiated line by line. As there, η and what
accelerations are prescribed are in the wrench β before a column is eliminated.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..compile import entry, sweep
from ..dynamics.articulated import SINGULAR
from ..dynamics.forward import forward_dynamics, solve_mass_matrix, solved
from ..dynamics.hybrid import hybrid_dynamics, prescribed_mask
from ..dynamics.mass_matrix import mass_matrix
from ..model.block import (
    ARMATURE, MASS, MOMENT, all_finite, first_position, first_velocity, kind, matrix, node, node_count, parent,
    rates_valid, six, size_q, size_v, vector, INERTIA as BODY_INERTIA,
)
from ..model.configuration import positions_valid
from ..model.inertia import Array
from ..model.joint_kinds import dof
from ..model.robot_model import RobotModel
from ..model.state import States, node_wrenches
from .columns import put_pair
from .inverse_directional import (
    DA, DF, DH, DV, A, F, P, R, V, acceleration_before, column_change, column_of, inverse_dynamics_directional,
    motion_changes, velocity_wrench, with_tangent,
)
from .inverse_directional import SIZE as MOTION
from .twists import (
    add_product, lie, lie_dual, matrix_times, minus, pair, pairing, plus, put_inertia, times, to_child,
    wrench_to_parent,
)
from .tangent import INERTIA, RECORD, Tangent, parameter_tangents

# after the motion of a node: η, ∂η; Î and ∂Î (6 × 6); per column s, ∂s, U, ∂U (6 each), D, ∂D, what is left, ∂
ETA, DETA, I, DI, COLUMNS = MOTION, MOTION + 6, MOTION + 12, MOTION + 48, MOTION + 84
COLUMN = 28
SIZE = COLUMNS + 6 * COLUMN


@sweep
def inertia_to_parent(W, w, x):
    """Add `Ad* Π Ad` and `Ad* {∂Π − Π ad_∂h − (Π ad_∂h)ᵀ} Ad` of node record w to Î and ∂Î of record x."""
    E = matrix(W, w + R)
    p = vector(W, w + P)
    dh = pair(W, w + DH)
    z = 0.0 * E[0]
    for j in range(6):
        e = ((z + (1.0 if j == 0 else 0.0), z + (1.0 if j == 1 else 0.0), z + (1.0 if j == 2 else 0.0)),
             (z + (1.0 if j == 3 else 0.0), z + (1.0 if j == 4 else 0.0), z + (1.0 if j == 5 else 0.0)))
        y = to_child(E, p, e)
        f = matrix_times(W, w + I, y)
        # (Π ad_∂h)ᵀ y = ad_∂hᵀ Π y, and ad_∂hᵀ is ad*_∂h
        df = minus(minus(matrix_times(W, w + DI, y), matrix_times(W, w + I, lie(dh, y))), lie_dual(dh, f))
        f = wrench_to_parent(E, p, f)
        df = wrench_to_parent(E, p, df)
        for i in range(3):
            W[x + I + 6 * i + j] += f[0][i]
            W[x + I + 6 * (i + 3) + j] += f[1][i]
            W[x + DI + 6 * i + j] += df[0][i]
            W[x + DI + 6 * (i + 3) + j] += df[1][i]


@sweep
def articulated_directional(B, q, k, v, tau, j, prescribed, change, wrenches, W, zeros, out):
    """One state; out[j:] takes ∂q̈, or ∂τ where the mask says that a[j:] is prescribed; 0, or the singular node + 1.

    prescribed: mask and a; change: dq[j:], dv[j:], da[j:], dtau[j:] and D; wrenches: with their derivatives, both from
    e on.
    """
    mask, a = prescribed
    dq, dv, da, dtau, D = change
    wrench, dwrench, e = wrenches
    n = node_count(B)
    hybrid = mask.shape[0] > 0
    still = (dq, dv, zeros, D)    # η is of no acceleration
    for i in range(n):
        o = node(i)
        w = SIZE * i
        d = RECORD * i
        eta, deta = motion_changes(B, q, k, v, zeros, j, still, W, SIZE, i)
        put_pair(W, w + ETA, eta[0], eta[1])
        put_pair(W, w + DETA, deta[0], deta[1])
        f, df = velocity_wrench(B, o, D, d, pair(W, w + V), pair(W, w + DV), wrench, e + 6 * i, dwrench)
        put_pair(W, w + F, f[0], f[1])
        put_pair(W, w + DF, df[0], df[1])
        put_inertia(W, w + I, B[o + MASS], vector(B, o + MOMENT), six(B, o + BODY_INERTIA))
        put_inertia(W, w + DI, D[d + INERTIA], vector(D, d + INERTIA + 1), six(D, d + INERTIA + 4))
    for i in range(n - 1, -1, -1):
        o = node(i)
        w = SIZE * i
        iq = k + first_position(B, o)
        iv = j + first_velocity(B, o)
        eta = pair(W, w + ETA)
        beta = plus(pair(W, w + F), matrix_times(W, w + I, eta))
        dbeta = plus(pair(W, w + DF), plus(matrix_times(W, w + DI, eta), matrix_times(W, w + I, pair(W, w + DETA))))
        for c in range(dof(kind(B, o)) - 1, -1, -1):
            u = w + COLUMNS + COLUMN * c
            s = column_of(B, o, q, iq, c)
            ds = column_change(B, o, q, iq, c, D, RECORD * i, dq, iv)
            U = matrix_times(W, w + I, s)
            dU = plus(matrix_times(W, w + DI, s), matrix_times(W, w + I, ds))
            pivot = pairing(s, U) + B[o + ARMATURE + c]
            dpivot = pairing(ds, U) + pairing(s, dU)
            left = tau[iv + c] - pairing(s, beta)
            dleft = dtau[iv + c] - pairing(ds, beta) - pairing(s, dbeta)
            put_pair(W, u, s[0], s[1])
            put_pair(W, u + 6, ds[0], ds[1])
            put_pair(W, u + 12, U[0], U[1])
            put_pair(W, u + 18, dU[0], dU[1])
            W[u + 24] = pivot
            W[u + 25] = dpivot
            W[u + 26] = left
            W[u + 27] = dleft
            if hybrid and mask[iv - j + c]:
                W[u + 26] -= tau[iv + c]
                W[u + 27] -= dtau[iv + c]
                beta = plus(beta, times(a[iv + c], U))
                dbeta = plus(dbeta, plus(times(a[iv + c], dU), times(da[iv + c], U)))
                continue
            most = pairing(s, s) * (W[w + I] + W[w + I + 7] + W[w + I + 14] + W[w + I + 21])
            if not pivot.real > SINGULAR * abs(most):
                return i + 1
            psi = 1.0 / pivot
            dpsi = -psi * dpivot * psi
            g = psi * left
            dg = dpsi * left + psi * dleft
            beta = plus(beta, times(g, U))
            dbeta = plus(dbeta, plus(times(g, dU), times(dg, U)))
            add_product(W, w + I, -0.5 * psi, U, U)
            add_product(W, w + DI, -0.5 * dpsi, U, U)
            add_product(W, w + DI, -psi, U, dU)
        h = parent(B, o)
        if h >= 0:
            x = SIZE * h
            E = matrix(W, w + R)
            p = vector(W, w + P)
            f = plus(pair(W, x + F), wrench_to_parent(E, p, beta))
            put_pair(W, x + F, f[0], f[1])
            dbeta = minus(dbeta, lie_dual(pair(W, w + DH), beta))
            f = plus(pair(W, x + DF), wrench_to_parent(E, p, dbeta))
            put_pair(W, x + DF, f[0], f[1])
            inertia_to_parent(W, w, x)
    articulated_changes(B, a, da, j, mask, W, out)
    return 0


@sweep
def articulated_changes(B, a, da, j, mask, W, out):
    """The last sweep, from the base on: ∂q̈, ∂τ."""
    hybrid = mask.shape[0] > 0
    for i in range(node_count(B)):
        o = node(i)
        w = SIZE * i
        iv = j + first_velocity(B, o)
        E = matrix(W, w + R)
        p = vector(W, w + P)
        acc, dacc = acceleration_before(B, parent(B, o), W, SIZE)
        acc = to_child(E, p, acc)
        dacc = minus(to_child(E, p, dacc), lie(pair(W, w + DH), acc))
        for c in range(dof(kind(B, o))):
            u = w + COLUMNS + COLUMN * c
            s = pair(W, u)
            ds = pair(W, u + 6)
            rest = W[u + 26] - pairing(pair(W, u + 12), acc)
            drest = W[u + 27] - pairing(pair(W, u + 18), acc) - pairing(pair(W, u + 12), dacc)
            if hybrid and mask[iv - j + c]:
                x = a[iv + c]
                dx = da[iv + c]
                out[iv + c] = W[u + 25] * x + W[u + 24] * dx - drest
            else:
                psi = 1.0 / W[u + 24]
                x = psi * rest
                dx = psi * (drest - W[u + 25] * x)
                out[iv + c] = dx
            acc = plus(acc, times(x, s))
            dacc = plus(dacc, plus(times(x, ds), times(dx, s)))
        acc = plus(acc, pair(W, w + ETA))
        dacc = plus(dacc, pair(W, w + DETA))
        put_pair(W, w + A, acc[0], acc[1])
        put_pair(W, w + DA, dacc[0], dacc[1])


@entry("int64(float64[::1], float64[::1], float64[::1], float64[::1], float64[::1], boolean[::1], float64[::1], "
       "float64[::1], float64[::1], float64[::1], int64, float64[::1])", nogil=True)
def articulated_directional_entry(B, q, v, a, tau, mask, changes, D, wrench, dwrench, states, out):
    """This many states, checked: 0, or -1 where the input is not what the model takes, or the singular node + 1.

    changes: dq of all states, dv of all, da, dtau.
    """
    n = states * size_v(B)
    if changes.shape[0] != 4 * n:
        return -1
    dq, dv, da, dtau = changes[:n], changes[n:2 * n], changes[2 * n:3 * n], changes[3 * n:]
    if not (positions_valid(B, q, states) and rates_valid(B, v, states) and rates_valid(B, a, states)
            and rates_valid(B, tau, states) and rates_valid(B, dq, states) and rates_valid(B, dv, states)
            and rates_valid(B, da, states) and rates_valid(B, dtau, states)):
        return -1
    nodes = node_count(B)
    W = np.empty(SIZE * nodes)
    zeros = np.zeros(v.shape[0])
    for s in range(states):
        found = articulated_directional(B, q, s * size_q(B), v, tau, s * size_v(B), (mask, a), (dq, dv, da, dtau, D),
                                        (wrench, dwrench, 6 * nodes * s), W, zeros, out)
        if found != 0:
            return found
    return 0 if all_finite(out) else -1


_NO_MASK = np.empty(0, dtype=np.bool_)


def forward_dynamics_directional(model: RobotModel, q: ArrayLike, v: ArrayLike, tau: ArrayLike, tangent: Tangent,
                                 external_wrenches: Any = None) -> Array:
    """∂q̈/∂p (nv,) or (N, nv) of `forward_dynamics` by a scalar p on which anything may depend: K Table 6, O(n).

    tangent: see `Tangent` (its `a` has no meaning here). Other arguments and errors as of `forward_dynamics`.
    """
    given = with_tangent(model, tangent, q=q, v=v, tau=tau)
    q, v, tau, dq, dv, dtau = given.arrays
    if model.mimics:
        given.check_values()
        a = forward_dynamics(model, q, v, tau, external_wrenches)
        rest = dtau - _moved(model, given, a, np.zeros_like(a), tangent, external_wrenches)
        return given.finite(derivative=solve_mass_matrix(model, mass_matrix(model, q), rest[..., None])[..., 0])[0]
    return _run(model, given, (q, v, v, tau), _NO_MASK, (dq, dv, dv, dtau), tangent, external_wrenches)


def hybrid_dynamics_directional(model: RobotModel, q: ArrayLike, v: ArrayLike, a: ArrayLike, tau: ArrayLike,
                                prescribed: ArrayLike | Sequence[str], tangent: Tangent,
                                external_wrenches: Any = None) -> Array:
    """∂/∂p (nv,) or (N, nv) of what `hybrid_dynamics` seeks, the effort of prescribed coordinates and the acceleration
    of the others, by a scalar p on which anything may depend: K Table 7, O(n).

    tangent: see `Tangent`; of its `a` and `tau` what is given counts. Other arguments and errors as of that function.
    """
    mask = prescribed_mask(model, prescribed)
    given = with_tangent(model, tangent, q=q, v=v, a=a, tau=tau)
    q, v, a, tau, dq, dv, da, dtau = given.arrays
    if not model.mimics:
        return _run(model, given, (q, v, a, tau), mask, (dq, dv, da, dtau), tangent, external_wrenches)
    given.check_values()
    a = hybrid_dynamics(model, q, v, a, tau, mask, external_wrenches).acceleration
    free = ~mask
    held = np.where(mask, da, 0.0)
    moved = _moved(model, given, a, held, tangent, external_wrenches)
    M = mass_matrix(model, q)
    out = np.array(moved)
    if free.any():
        change = solve_mass_matrix(model, M[..., free, :][..., free], (dtau - moved)[..., free, None])
        out[..., mask] += (M[..., mask, :][..., free] @ change)[..., 0]
        out[..., free] = change[..., 0]
    return given.finite(derivative=out)[0]


def _moved(model: RobotModel, given: States, a: Array, da: Array, tangent: Tangent, external_wrenches: Any) -> Array:
    """∂ID/∂p at these accelerations."""
    values = dict(zip(given.names, given.arrays, strict=True))
    change = Tangent(values["tangent.q"], values["tangent.v"], da, None, tangent.inertias, tangent.placements,
                     tangent.screws, tangent.external_wrenches)
    return inverse_dynamics_directional(model, values["q"], values["v"], a, change, external_wrenches)


def _run(model: RobotModel, given: States, inputs: tuple[Array, ...], mask: NDArray[np.bool_],
         changes: tuple[Array, ...], tangent: Tangent, external_wrenches: Any) -> Array:
    out = given.empty(model.nv)
    found = articulated_directional_entry.call(
        model._block, *(x.reshape(-1) for x in inputs), mask, np.concatenate(changes, axis=None),
        parameter_tangents(model, tangent), node_wrenches(model, external_wrenches, given.batch),
        node_wrenches(model, tangent.external_wrenches, given.batch), given.count, out.reshape(-1))
    solved(found, given, derivative=out)
    return out
