"""Derivatives of constrained inverse, forward and hybrid dynamics by any scalar p (K §2.4 applied to §3 and §4).

Under the efforts `τ + Aᵀλ` the tree moves as the mechanism does. So `∂q̈ = x + Y ∂λ` with x, the derivative by p at
constant λ, and `Y = M⁻¹Aᵀ`, the derivatives by the efforts of each row: as in K §3.2, O(n) each. `A ∂q̈ = −∂(A q̈ + Ȧq̇)`
gives ∂λ, O(m³). For dependent rows, λ has the least norm: `λ = A A⁺λ`, whose derivative has the additional term
`(1 − A A⁺) ∂A A⁺λ`, as long as the rank of A is constant.
"""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...dynamics.constrained.forward import constrained_forward_dynamics
from ...dynamics.constrained.hybrid import constrained_hybrid_dynamics
from ...dynamics.constrained.inverse import _per_actuated, _pseudoinverse, constrained_inverse_dynamics, positive
from ...dynamics.constrained.values import evaluate
from ...dynamics.friction import Friction
from ...dynamics.hybrid import prescribed_mask
from ...dynamics.inverse import inverse_dynamics
from ...errors import RbdError
from ...model.constraints import ConstraintSet, bound_to
from ...model.inertia import Array
from ...model.robot_model import RobotModel
from .forward import unknown_changes
from .friction_change import LOAD
from .rows import directional_rows
from .run import NO_MASK, NOTHING, Perturbation, perturbation, run
from .tangent import Tangent, Tangents


class ConstrainedForwardDirectional(NamedTuple):
    """∂/∂p of `acceleration` (nv,) and `multipliers` (m,); a batch adds an axis, several directions one before it."""

    acceleration: Array
    multipliers: Array


class ConstrainedInverseDirectional(NamedTuple):
    """∂/∂p of `effort` (nv,) and `multipliers` (m,); a batch adds an axis, several directions one before it."""

    effort: Array
    multipliers: Array


class ConstrainedHybridDirectional(NamedTuple):
    """∂/∂p of `acceleration`, `effort` (nv,) and `multipliers` (m,); a batch adds an axis, several directions one
    before it. Prescribed quantities have the tangent's derivatives.
    """

    acceleration: Array
    effort: Array
    multipliers: Array


def constrained_forward_dynamics_directional(
        model: RobotModel, constraints: ConstraintSet, q: ArrayLike, v: ArrayLike, tau: ArrayLike,
        tangent: Tangent | Iterable[Tangent] | Tangents, *, external_wrenches: Any = None,
        friction: Friction | None = None) -> ConstrainedForwardDirectional:
    """∂/∂p of `constrained_forward_dynamics`, with its arguments and errors, by a scalar p on which all inputs may
    depend, constraints included: O(n) + O(m³). tangent as in `forward_dynamics_directional`. At any state, off the
    constraint manifold too: only accelerations must satisfy the constraints. Not for constraints defined by functions
    (`UserConstraint`, `NonholonomicConstraint`).

        >>> model = rbd.sample("five_bar")
        >>> loop = rbd.sample_constraints("five_bar", model)
        >>> turned = rbd.Tangent(q=np.ones(5))
        >>> rbd.constrained_forward_dynamics_directional(model, loop, *np.zeros((3, 5)), turned).acceleration.shape
        (5,)
    """
    bound_to(model, constraints)    # validates the constraints
    perturbed = perturbation(model, tangent, friction, q=q, v=v, tau=tau).without_friction(friction)
    q, v, tau = perturbed.inputs
    result = constrained_forward_dynamics(model, constraints, q, v, tau, external_wrenches=external_wrenches)
    states = _States(perturbed, constraints, (q, v, result.acceleration, tau), result.multipliers, NO_MASK,
                     external_wrenches)
    acceleration, _, multipliers = states.solve()
    return ConstrainedForwardDirectional(*states.shaped(acceleration, multipliers))


def constrained_hybrid_dynamics_directional(
        model: RobotModel, constraints: ConstraintSet, q: ArrayLike, v: ArrayLike, a: ArrayLike, tau: ArrayLike,
        prescribed: ArrayLike | Sequence[str], tangent: Tangent | Iterable[Tangent] | Tangents, *,
        external_wrenches: Any = None, friction: Friction | None = None) -> ConstrainedHybridDirectional:
    """∂/∂p of `constrained_hybrid_dynamics` with constraint forces of least norm, otherwise as
    `constrained_forward_dynamics_directional`; of the tangent's `a` the prescribed coordinates count, of its `tau` the
    others.

        >>> model = rbd.sample("five_bar")
        >>> loop = rbd.sample_constraints("five_bar", model)
        >>> motors = ["left_shoulder", "right_shoulder"]
        >>> turned = rbd.Tangent(q=np.ones(5))
        >>> rbd.constrained_hybrid_dynamics_directional(model, loop, *np.zeros((4, 5)), motors, turned).effort.shape
        (5,)
    """
    mask = prescribed_mask(model, prescribed)
    bound_to(model, constraints)    # validates the constraints
    perturbed = perturbation(model, tangent, friction, q=q, v=v, a=a, tau=tau)
    frictionless = perturbed.without_friction(friction)
    q, v, a, tau = frictionless.inputs
    result = constrained_hybrid_dynamics(model, constraints, q, v, a, tau, mask, external_wrenches=external_wrenches)
    states = _States(frictionless, constraints, (q, v, result.acceleration, tau), result.multipliers, mask,
                     external_wrenches)
    acceleration, effort, multipliers = states.solve()
    if friction is not None:
        gain, change = perturbed.friction_changes(friction, np.ascontiguousarray(result.effort))
        effort = np.where(mask, gain * effort + change, perturbed.changes[:, 3])
    return ConstrainedHybridDirectional(*states.shaped(acceleration, effort, multipliers))


def constrained_inverse_dynamics_directional(
        model: RobotModel, constraints: ConstraintSet, q: ArrayLike, v: ArrayLike, a: ArrayLike,
        actuated: ArrayLike | Sequence[str], tangent: Tangent | Iterable[Tangent] | Tangents,
        minimize: str = "multipliers", weights: ArrayLike | None = None, passive_effort: ArrayLike | None = None, *,
        external_wrenches: Any = None, friction: Friction | None = None,
        check_acceleration: bool = True) -> ConstrainedInverseDirectional:
    """∂/∂p of `constrained_inverse_dynamics`, with its arguments and errors, for any number of actuators; the tangent's
    `tau` is the change of `passive_effort`. q, v and a are independent variables; along motions of the mechanism, with
    A a + Ȧq̇ = 0, this is the derivative of the efforts. Not for constraints defined by functions (`UserConstraint`,
    `NonholonomicConstraint`).

        >>> model = rbd.sample("five_bar")
        >>> loop = rbd.sample_constraints("five_bar", model)
        >>> motors = ["left_shoulder", "right_shoulder"]
        >>> turned = rbd.Tangent(q=np.ones(5))
        >>> rbd.constrained_inverse_dynamics_directional(model, loop, *np.zeros((3, 5)), motors, turned).effort.shape
        (5,)
    """
    mask = prescribed_mask(model, actuated)
    bound_to(model, constraints)    # validates the constraints
    perturbed = perturbation(model, tangent, friction, q=q, v=v, a=a)
    if passive_effort is not None:
        perturbed = perturbation(model, tangent, friction, q=q, v=v, a=a, passive_effort=passive_effort)
    if minimize == "effort" and np.any(perturbed.tangents.friction[:, LOAD]):
        raise RbdError("tangent.friction: 'load' is not supported with minimize='effort', as in "
                       "constrained_inverse_dynamics")
    q, v, a = perturbed.inputs[:3]
    result = constrained_inverse_dynamics(
        model, constraints, q, v, a, mask, minimize, weights,
        perturbed.inputs[3] if passive_effort is not None else None,
        external_wrenches=external_wrenches, friction=friction, check_acceleration=check_acceleration)
    out = perturbed.empty()
    if run(perturbed, (q, v, a, NOTHING), NO_MASK, external_wrenches, None, out) != 0:
        perturbed.states.refuse(derivative=out)
    states = _States(perturbed, constraints, (q, v, a, v), result.multipliers, NO_MASK, external_wrenches)
    A, dA = states.A, states.dA
    scale = np.linalg.norm(A, axis=(-2, -1))
    change = out.reshape(states.changes[:, 3].shape)
    A_p = np.swapaxes(A[..., ~mask], -1, -2)    # transposed, as in the primal
    A_a = np.swapaxes(A[..., mask], -1, -2)
    inverse, null, _ = _pseudoinverse(A_p, scale)
    load = _times(np.swapaxes(dA, -1, -2), states.lam)
    residual = change - load    # ∂ID − ∂(Aᵀ)λ
    gain, friction_change = np.ones(change.shape[1:]), np.zeros(change.shape)
    if friction is not None:
        load_effort = np.atleast_2d(inverse_dynamics(model, q, v, a, external_wrenches)) - _times(
            np.swapaxes(A, -1, -2), states.lam)
        gain, friction_change = perturbed.friction_changes(friction, load_effort)
    lam = _times(inverse, (residual - (states.changes[:, 3] - friction_change) / gain)[..., ~mask])
    if minimize == "effort":
        # A_a W τ_a = A_p ν, differentiated where the passive efforts leave λ free
        w = _per_actuated(model, weights, mask, "weights", 1.0, positive, "positive numbers")
        weighted = np.zeros_like(np.atleast_2d(a))
        weighted[..., mask] = w * np.atleast_2d(result.effort)[..., mask]
        nu = _times(np.swapaxes(inverse, -1, -2), _times(A[..., mask], weighted[..., mask]))
        weighted[..., ~mask] = -nu
        root = np.sqrt(w)
        free_inverse, _, _ = _pseudoinverse(root[:, None] * (A_a @ null), scale * root.max(initial=0.0))
        force = (_times(A[..., mask], w * ((residual + friction_change)[..., mask] - _times(A_a, lam)))
                 + _times(dA, weighted))
        lam = lam + _times(null @ free_inverse @ np.swapaxes(null @ free_inverse, -1, -2), force)
        pinv_A, null_A, _ = _pseudoinverse(np.swapaxes(A, -1, -2), scale)
        lam = lam + _times(null_A, _times(dA, _times(np.swapaxes(pinv_A, -1, -2), states.lam)))
    else:
        y = np.zeros_like(np.atleast_2d(a))
        y[..., ~mask] = _times(np.swapaxes(inverse, -1, -2), states.lam)
        lam = lam + _times(null, _times(dA, y))
    residual = gain * (residual - _times(np.swapaxes(A, -1, -2), lam)) + friction_change
    effort = np.where(mask, residual, states.changes[:, 3])
    return ConstrainedInverseDirectional(*states.shaped(effort, lam))


def _times(matrix: Array, vector: Array) -> Array:
    return np.asarray((matrix @ vector[..., None])[..., 0])


class _States:
    """States with a batch axis, their constraint rows and the rows' changes, directions first."""

    def __init__(self, perturbed: Perturbation, constraints: ConstraintSet, inputs: tuple[Array, ...], lam: Array,
                 mask: NDArray[np.bool_], wrenches: Any) -> None:
        self.perturbed, self.inputs, self.mask, self.wrenches = perturbed, inputs, mask, wrenches
        model: Any = perturbed.states.model
        self.model = model
        q, v, a, _ = (np.atleast_2d(x) for x in inputs)
        self.lam = np.atleast_2d(lam)
        self.changes = perturbed.changes
        prescribed = np.array(self.changes)
        if len(mask):
            prescribed[:, 2] *= mask
        elif perturbed.states.names[2:3] == ("tau",):
            prescribed[:, 2] = 0.0
        self.A = evaluate(model, constraints, q, v, a, 1).jacobian
        self.dA, self.bias = directional_rows(model, constraints, perturbed.tangents, q, v, a, prescribed)

    def solve(self) -> tuple[Array, Array, Array]:
        """∂ of accelerations, efforts and multipliers; prescribed quantities have the tangent's derivatives."""
        model, perturbed, A, nv = self.model, self.perturbed, self.A, self.model.nv
        prescribed = self.mask if len(self.mask) else np.zeros(nv, dtype=np.bool_)
        q, v, a, tau = self.inputs
        At = np.swapaxes(A, -1, -2)
        inputs = (q, v, a, np.ascontiguousarray(tau + _times(At, self.lam).reshape(tau.shape)))
        load = _times(np.swapaxes(self.dA, -1, -2), self.lam)
        changes = np.array(self.changes)
        changes[:, 3] += load
        x = unknown_changes(model, perturbed._replace(changes=changes), inputs, self.mask, self.wrenches)
        x = x.reshape(load.shape)
        m = A.shape[-2]
        loads = np.zeros((m, 4, len(A), nv))
        loads[:, 3] = np.moveaxis(A, 1, 0)
        rows = perturbed._replace(changes=loads, tangents=Tangents.for_states(model, m))
        Y = np.moveaxis(unknown_changes(model, rows, inputs, self.mask, self.wrenches).reshape(m, len(A), nv), 0, -1)

        A_free = np.where(prescribed, 0.0, A)
        inverse, null, rank = _pseudoinverse(np.swapaxes(A_free, -1, -2), np.linalg.norm(A, axis=(-2, -1)))
        lam = np.zeros((*x.shape[:-1], m))
        accelerations = np.where(prescribed, 0.0, x)
        violation = self.bias + _times(A, accelerations)
        try:
            for s in range(len(A) if m else 0):
                U = np.linalg.svd(A_free[s], full_matrices=False)[0][:, :rank[s]]
                reduced = U.T @ A_free[s] @ Y[s] @ U
                lam[:, s] = -np.linalg.solve(reduced, U.T @ violation[:, s].T).T @ U.T
        except np.linalg.LinAlgError as error:
            raise perturbed.states.beyond_numbers() or RbdError(
                f"derivatives of constrained dynamics: {error}: the state is beyond what floating point numbers hold"
            ) from None
        x = x + _times(Y, lam)
        acceleration = np.where(prescribed, self.changes[:, 2], x)
        effort = np.where(prescribed, x - load - _times(At, lam), self.changes[:, 3])
        # the part of ∂λ without effect on accelerations: λ keeps the least norm
        y = _times(np.swapaxes(inverse, -1, -2), self.lam)
        lam = lam + _times(null, _times(self.dA, y))
        return acceleration, effort, lam

    def shaped(self, *parts: Array) -> list[Array]:
        """The parts in the shape of the caller's states and directions, checked to be finite."""
        if self.perturbed.states.batch is None:
            parts = tuple(part[:, 0] for part in parts)
        names = {f"derivative[{i}]": part for i, part in enumerate(parts)}
        self.perturbed.states.finite(**names)
        return [self.perturbed.result(part) for part in parts]
