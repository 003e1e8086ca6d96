"""Derivatives of constrained forward and inverse dynamics, from the differentiated system (K §3, §4).

The system is `ID(q, q̇, q̈) − Aᵀλ = τ`, `A q̈ + Ȧq̇ = 0`. The derivatives of `A q̈ + Ȧq̇`, `Aᵀλ` and A come from the
kernel of the rows with an imaginary step of 1e-30: exact to rounding. For dependent rows, λ has the least norm, and its
derivatives are exact as long as the rank of A is constant.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..compiled.entry import entry
from ..dynamics.constrained.forward import constrained_forward_dynamics
from ..dynamics.constrained.inverse import RANK_TOLERANCE, constrained_inverse_dynamics
from ..dynamics.constrained.rows import Motion, constraint_rows
from ..dynamics.constrained.values import evaluate
from ..dynamics.contact.contact_rows import contact_changes
from ..dynamics.friction import Friction, friction_slopes_at, left_over
from ..dynamics.hybrid import prescribed_mask
from ..dynamics.inverse import inverse_dynamics
from ..dynamics.kinematics import _ACCEL, _ALPHA, _OMEGA, SIZE, node_motion
from ..errors import RbdError
from ..model.block import integer, node_count, size_q, size_v
from ..model.constraint_block import ROWS, Bound
from ..model.constraints import ConstraintSet, bound_to
from ..imaginary_step import STEP, step_numbers, step_state
from ..model.inertia import Array
from ..model.robot_model import RobotModel
from ..model.state import states
from .inverse import inverse_dynamics_derivatives


class ConstrainedForwardDerivatives(NamedTuple):
    """∂ of accelerations (nv, nv) and multipliers (m, nv) by q (along `integrate`), v and tau; a batch adds an axis."""

    acceleration_q: Array
    acceleration_v: Array
    acceleration_tau: Array
    multipliers_q: Array
    multipliers_v: Array
    multipliers_tau: Array


class ConstrainedInverseDerivatives(NamedTuple):
    """∂ of efforts (nv, nv) and multipliers (m, nv) by q (along `integrate`), v and a; a batch adds an axis."""

    effort_q: Array
    effort_v: Array
    effort_a: Array
    multipliers_q: Array
    multipliers_v: Array
    multipliers_a: Array


@entry("void(float64[::1], float64[::1], float64[:, ::1], float64[:, ::1], float64[::1], float64[::1], float64[::1], "
       "float64[:, :, :, ::1], float64[:, :, :, ::1], float64[:, :, ::1])", nogil=True)
def row_changes_entry(B, C, dB, dC, q, v, a, X, A_out, b_out):
    """∂A (directions, states, m, nv) and ∂(A a + Ȧq̇) (directions, states, m) along X (directions, 4, states, nv), dB
    of the packed model and dC of the packed constraints (directions, …, or empty).
    """
    nv = size_v(B)
    rows = integer(C, ROWS)
    model = B.astype(np.complex128)
    constraints = C.astype(np.complex128)
    x = np.empty(size_q(B), dtype=np.complex128)
    rates = np.empty(nv, dtype=np.complex128)
    acc = np.empty(nv, dtype=np.complex128)
    A = np.empty(rows * nv, dtype=np.complex128)
    f = np.empty(rows, dtype=np.complex128)
    b = np.empty(rows, dtype=np.complex128)
    W = np.empty(SIZE * node_count(B), dtype=np.complex128)
    motion = Motion(W, SIZE, W, SIZE, _OMEGA, _ALPHA, _ACCEL, 0.0)
    for r in range(X.shape[0]):
        if dB.shape[0] > 0:
            step_numbers(B, 0, dB[r], model)
        if dC.shape[0] > 0:
            step_numbers(C, 0, dC[r], constraints)
        for s in range(X.shape[2]):
            step_state(B, (q, v, a), s, X[r], (x, rates, acc))
            node_motion(model, x, 0, rates, acc, 0, 2, True, W)
            constraint_rows(model, constraints, (x, 0, rates, 0, acc, 0), motion, (W[:0], 0), 2, (A, f, b, 0))
            for i in range(rows):
                b_out[r, s, i] = b[i].imag / STEP
                for c in range(nv):
                    A_out[r, s, i, c] = A[i * nv + c].imag / STEP


def row_changes(bound: Bound, q: Array, v: Array, a: Array, X: Array, start: Array, dB: Array, dC: Array,
                contacts: Array | None) -> tuple[Array, Array]:
    """`row_changes_entry` at states whose arrays have a batch axis, including contacts, whose packed numbers change by
    `contacts`.
    """
    if bound.users:
        raise RbdError("derivatives of constrained dynamics: the derivatives of a UserConstraint's or "
                       "NonholonomicConstraint's functions are unknown")
    nv, X = bound.model.nv, np.ascontiguousarray(X)
    dA, bias = np.empty((len(X), len(q), bound.size, nv)), np.empty((len(X), len(q), bound.size))
    row_changes_entry.call(start, bound.block_alone, dB, dC, q.reshape(-1), v.reshape(-1), a.reshape(-1), X, dA, bias)
    if bound.contacts.rows:
        rows = contact_changes(bound, q, v, a, X, start, dB if len(dB) else None, contacts)
        dA[:, :, bound.contacts.at], bias[:, :, bound.contacts.at] = rows[..., :nv], rows[..., nv]
    return dA, bias


def constraint_slopes(model: RobotModel, constraints: ConstraintSet, q: Array, v: Array, a: Array, lam: Array,
                      y: Array) -> tuple[Array, ...]:
    """∂(A a + Ȧq̇)/∂q and /∂v (m, nv), ∂(Aᵀλ)/∂q (nv, nv), ∂(A y)/∂q (m, nv), at states whose arrays have a batch axis.
    """
    count, nv, empty = len(q), model.nv, np.empty((0, 0))
    X = np.zeros((2, nv, 4, count, nv))
    for c in range(nv):
        X[0, c, 0, :, c] = X[1, c, 1, :, c] = 1.0
    dA, bias = row_changes(bound_to(model, constraints), q, v, a, X.reshape(2 * nv, 4, count, nv), model._block, empty,
                           empty, None)
    bias_q, bias_v = (np.moveaxis(part, 0, -1) for part in bias.reshape(2, nv, count, -1))
    slopes = dA[:nv]    # coordinate, state, row, column
    return bias_q, bias_v, np.einsum("csri,sr->sic", slopes, lam), np.einsum("csri,si->src", slopes, y)


def _pinv(B: Array) -> Array:
    try:
        return np.asarray(np.linalg.pinv(B, rcond=RANK_TOLERANCE)) if B.size else np.swapaxes(B, -1, -2)
    except np.linalg.LinAlgError as error:
        raise RbdError(f"derivatives of constrained dynamics: {error}: the state is beyond what floating point numbers "
                       "hold") from None


def _shaped(parts: tuple[Any, ...], batch: int | None) -> tuple[Array, ...]:
    return tuple(part if batch is not None else part[0] for part in parts)


def constrained_forward_dynamics_derivatives(
        model: RobotModel, constraints: ConstraintSet, q: ArrayLike, v: ArrayLike, tau: ArrayLike, *,
        external_wrenches: Any = None, friction: Friction | None = None) -> ConstrainedForwardDerivatives:
    """Derivatives of `constrained_forward_dynamics` by q, v and tau, with its arguments and errors.

    `[M −Aᵀ; A 0] (∂a, ∂λ) = (∂τ − ∂ID + ∂(Aᵀ)λ, −∂(A a + Ȧq̇))`. By q on the tangent space, off the constraint manifold
    too: only accelerations must satisfy the constraints. Not for a `UserConstraint` or `NonholonomicConstraint`.

        >>> model = rbd.sample("five_bar")
        >>> loop = rbd.sample_constraints("five_bar", model)
        >>> rbd.constrained_forward_dynamics_derivatives(model, loop, *np.zeros((3, 5))).acceleration_tau.shape
        (5, 5)
    """
    checked = states(model, positions={"q": q}, rates={"v": v, "tau": tau})
    result = constrained_forward_dynamics(model, constraints, *checked.arrays, external_wrenches=external_wrenches,
                                          friction=friction)
    q, v, tau, a, lam = (np.atleast_2d(x) for x in (*checked.arrays, result.acceleration, result.multipliers))
    A = evaluate(model, constraints, q, v, a, 1).jacobian
    by = inverse_dynamics_derivatives(model, q, v, a, external_wrenches)
    share = np.ones_like(v)    # ∂ of the efforts less friction by tau
    if friction is not None:
        slope, gain = friction_slopes_at(model, friction, v, left_over(model, friction, v, tau))
        share = 1.0 / gain
        by = by._replace(v=by.v + np.eye(model.nv) * (slope * share)[..., None, :])
    At = np.swapaxes(A, -1, -2)
    inverse_A = _pinv(A)
    y = (inverse_A @ lam[..., None])[..., 0]
    bias_q, bias_v, load_q, turn_q = constraint_slopes(model, constraints, q, v, a, lam, y)
    m = A.shape[-2]
    try:
        L = np.linalg.cholesky(by.a)
    except np.linalg.LinAlgError:
        raise checked.beyond_numbers() or RbdError(f"model '{model.name}': the mass matrix is singular") from None
    Z = np.linalg.solve(L, At)
    Z_inverse = _pinv(Z)
    null = np.eye(m) - A @ inverse_A    # projects to the λ without effect, of dependent rows
    by_tau = np.eye(model.nv) * np.broadcast_to(share, v.shape)[..., None, :]
    parts = []
    for force, bias, row_turn in ((load_q - by.q, bias_q, turn_q), (-by.v, bias_v, None), (by_tau, None, None)):
        free = np.linalg.solve(L, force)
        multiplier_change = Z_inverse @ free
        if bias is not None:
            multiplier_change = multiplier_change + Z_inverse @ np.swapaxes(Z_inverse, -1, -2) @ bias
        change = np.linalg.solve(np.swapaxes(L, -1, -2), free - Z @ multiplier_change)
        least = np.swapaxes(inverse_A, -1, -2) @ (At @ -multiplier_change)    # of least norm
        parts.append((change, least if row_turn is None else least + null @ row_turn))
    flat = _shaped((parts[0][0], parts[1][0], parts[2][0], parts[0][1], parts[1][1], parts[2][1]), checked.batch)
    derivatives = ConstrainedForwardDerivatives(*flat)
    checked.finite(**derivatives._asdict())
    return derivatives


def balanced(At: Array, actuated: NDArray[np.bool_], gain: Array, force: Array) -> tuple[Array, Array]:
    """∂ of efforts (…, nv, k) and multipliers (…, m, k) by changes `force` (…, nv, k) of the efforts without friction,
    which constraints balance at passive coordinates: `A_pᵀ ∂λ = force_p`; gain: ∂ of efforts with friction by those
    without.
    """
    change = _pinv(At[:, ~actuated]) @ force[:, ~actuated]
    effort = gain[..., None] * (force - At @ change)
    effort[:, ~actuated] = 0.0
    return effort, change


def constrained_inverse_dynamics_derivatives(
        model: RobotModel, constraints: ConstraintSet, q: ArrayLike, v: ArrayLike, a: ArrayLike,
        actuated: ArrayLike | Sequence[str], *, external_wrenches: Any = None,
        friction: Friction | None = None) -> ConstrainedInverseDerivatives:
    """Derivatives of `constrained_inverse_dynamics` by q, v and a, with its arguments and errors. Raises `RbdError` too
    if the multipliers are not unique: with fewer independent columns of passive coordinates than constraints.

    `A_pᵀ ∂λ = ∂ID_p − ∂(A_pᵀ)λ`, `∂τ_a = ∂ID_a − ∂(A_aᵀ)λ − A_aᵀ ∂λ`, with q, v and a as independent variables; along
    motions of the mechanism, with A a + Ȧq̇ = 0, this is the derivative of the efforts.

        >>> model = rbd.sample("five_bar")
        >>> loop = rbd.sample_constraints("five_bar", model)
        >>> motors = ["left_shoulder", "right_shoulder"]
        >>> rbd.constrained_inverse_dynamics_derivatives(model, loop, *np.zeros((3, 5)), motors).effort_q.shape
        (5, 5)
    """
    mask = prescribed_mask(model, actuated)
    checked = states(model, positions={"q": q}, rates={"v": v, "a": a})
    q, v, a = checked.arrays
    result = constrained_inverse_dynamics(model, constraints, q, v, a, mask, external_wrenches=external_wrenches,
                                          friction=friction)
    if checked.count and int(np.min(result.rank)) < constraints.size:
        raise RbdError(f"model '{model.name}': the multipliers are not unique (rank {int(np.min(result.rank))} of "
                       f"{constraints.size} constraints over passive coordinates): actuate fewer joints")
    q, v, a, lam = (np.atleast_2d(x) for x in (q, v, a, result.multipliers))
    A = evaluate(model, constraints, q, v, a, 1).jacobian
    by = inverse_dynamics_derivatives(model, q, v, a, external_wrenches)
    friction_slope, gain = np.zeros_like(v), np.ones_like(v)
    if friction is not None:    # at the efforts without friction, of passive joints too
        constraint_effort = (np.swapaxes(A, -1, -2) @ lam[..., None])[..., 0]
        friction_slope, gain = friction_slopes_at(
            model, friction, v, inverse_dynamics(model, q, v, a, external_wrenches) - constraint_effort)
    passive = np.where(mask, 0.0, friction_slope / gain)
    by = by._replace(v=by.v + np.eye(model.nv) * passive[..., None, :])
    _, _, load_q, _ = constraint_slopes(model, constraints, q, v, a, lam, np.zeros_like(v))
    At = np.swapaxes(A, -1, -2)
    force = np.concatenate([by.q - load_q, by.v, by.a], axis=2)
    effort, change = balanced(At, mask, gain, force)
    efforts, multipliers = (np.split(part, 3, axis=2) for part in (effort, change))
    efforts[1] = efforts[1] + np.eye(model.nv) * np.where(mask, friction_slope, 0.0)[..., None, :]
    flat = _shaped((*efforts, *multipliers), checked.batch)
    derivatives = ConstrainedInverseDerivatives(*flat)
    checked.finite(**derivatives._asdict())
    return derivatives
