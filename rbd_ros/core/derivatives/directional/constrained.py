"""Derivatives of constrained inverse, forward and hybrid dynamics by any scalar p (K §2.4 applied to §3 and §4).

Under the efforts `τ + Aᵀλ` the tree moves as the mechanism does. So `∂q̈ = x + Y ∂λ` with x, its derivative by p at a
fixed λ, and `Y = M⁻¹Aᵀ`, those by the efforts of each row: as in K §3.2, O(n) each. `A ∂q̈ = −∂(A q̈ + Ȧq̇)` gives ∂λ,
O(m³). Where rows depend on each other, λ is that of least norm: `λ = A A⁺λ`, whose derivative has what
`(1 − A A⁺) ∂A A⁺λ` adds, as long as the number of independent rows does not change.
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
from .forward import sought
from .friction_change import LOAD
from .rows import directional_rows
from .run import NO_MASK, NOTHING, Case, case, run
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
    before it. Where they are given, those of the tangent.
    """

    acceleration: Array
    effort: Array
    multipliers: Array


def constrained_forward_dynamics_directional(
        model: RobotModel, constraints: ConstraintSet, q: ArrayLike, v: ArrayLike, tau: ArrayLike,
        tangent: Tangent | Iterable[Tangent] | Tangents, *, external_wrenches: Any = None,
        friction: Friction | None = None) -> ConstrainedForwardDirectional:
    """∂/∂p of `constrained_forward_dynamics`, whose arguments and errors these are, by a scalar p on which anything may
    depend, constraints included: O(n) + O(m³). tangent as in `forward_dynamics_directional`. At any state, off the
    manifold too: the constraints are asked of the accelerations only. Not for constraints given by
    functions (`UserConstraint`, `NonholonomicConstraint`).

        >>> model = rbd.sample("five_bar")
        >>> loop = rbd.sample_constraints("five_bar", model)
        >>> turned = rbd.Tangent(q=np.ones(5))
        >>> rbd.constrained_forward_dynamics_directional(model, loop, *np.zeros((3, 5)), turned).acceleration.shape
        (5,)
    """
    bound_to(model, constraints)    # says what is none
    asked = case(model, tangent, friction, q=q, v=v, tau=tau).less(friction)
    q, v, tau = asked.inputs
    result = constrained_forward_dynamics(model, constraints, q, v, tau, external_wrenches=external_wrenches)
    states = _States(asked, constraints, (q, v, result.acceleration, tau), result.multipliers, NO_MASK,
                     external_wrenches)
    acceleration, _, multipliers = states.solve()
    return ConstrainedForwardDirectional(*states.shaped(acceleration, multipliers))


def constrained_hybrid_dynamics_directional(
        model: RobotModel, constraints: ConstraintSet, q: ArrayLike, v: ArrayLike, a: ArrayLike, tau: ArrayLike,
        prescribed: ArrayLike | Sequence[str], tangent: Tangent | Iterable[Tangent] | Tangents, *,
        external_wrenches: Any = None, friction: Friction | None = None) -> ConstrainedHybridDirectional:
    """∂/∂p of `constrained_hybrid_dynamics` with the least constraint forces, otherwise as
    `constrained_forward_dynamics_directional`; of the tangent's `a` and `tau` what is given counts.

        >>> model = rbd.sample("five_bar")
        >>> loop = rbd.sample_constraints("five_bar", model)
        >>> motors = ["left_shoulder", "right_shoulder"]
        >>> turned = rbd.Tangent(q=np.ones(5))
        >>> rbd.constrained_hybrid_dynamics_directional(model, loop, *np.zeros((4, 5)), motors, turned).effort.shape
        (5,)
    """
    mask = prescribed_mask(model, prescribed)
    bound_to(model, constraints)    # says what is none
    asked = case(model, tangent, friction, q=q, v=v, a=a, tau=tau)
    less = asked.less(friction)
    q, v, a, tau = less.inputs
    result = constrained_hybrid_dynamics(model, constraints, q, v, a, tau, mask, external_wrenches=external_wrenches)
    states = _States(less, constraints, (q, v, result.acceleration, tau), result.multipliers, mask, external_wrenches)
    acceleration, effort, multipliers = states.solve()
    if friction is not None:
        gain, change = asked.rubbed(friction, np.ascontiguousarray(result.effort))
        effort = np.where(mask, gain * effort + change, asked.changes[:, 3])
    return ConstrainedHybridDirectional(*states.shaped(acceleration, effort, multipliers))


def constrained_inverse_dynamics_directional(
        model: RobotModel, constraints: ConstraintSet, q: ArrayLike, v: ArrayLike, a: ArrayLike,
        actuated: ArrayLike | Sequence[str], tangent: Tangent | Iterable[Tangent] | Tangents,
        minimize: str = "multipliers", weights: ArrayLike | None = None, passive_effort: ArrayLike | None = None, *,
        external_wrenches: Any = None, friction: Friction | None = None,
        check_acceleration: bool = True) -> ConstrainedInverseDirectional:
    """∂/∂p of `constrained_inverse_dynamics`, whose arguments and errors these are, for any number of actuators; the
    tangent's `tau` is that of `passive_effort`. q, v and a are independent of each other: along motions of the
    mechanism, that keep A a + Ȧq̇ = 0, it is the derivative of the efforts. Not for constraints given by
    functions (`UserConstraint`, `NonholonomicConstraint`).

        >>> model = rbd.sample("five_bar")
        >>> loop = rbd.sample_constraints("five_bar", model)
        >>> motors = ["left_shoulder", "right_shoulder"]
        >>> turned = rbd.Tangent(q=np.ones(5))
        >>> rbd.constrained_inverse_dynamics_directional(model, loop, *np.zeros((3, 5)), motors, turned).effort.shape
        (5,)
    """
    mask = prescribed_mask(model, actuated)
    bound_to(model, constraints)    # says what is none
    asked = case(model, tangent, friction, q=q, v=v, a=a)
    if passive_effort is not None:
        asked = case(model, tangent, friction, q=q, v=v, a=a, passive_effort=passive_effort)
    if minimize == "effort" and np.any(asked.tangents.friction[:, LOAD]):
        raise RbdError("tangent.friction: 'load' is not supported with minimize='effort', as in "
                       "constrained_inverse_dynamics")
    q, v, a = asked.inputs[:3]
    result = constrained_inverse_dynamics(
        model, constraints, q, v, a, mask, minimize, weights, asked.inputs[3] if passive_effort is not None else None,
        external_wrenches=external_wrenches, friction=friction, check_acceleration=check_acceleration)
    out = asked.empty()
    if run(asked, (q, v, a, NOTHING), NO_MASK, external_wrenches, None, out) != 0:
        asked.states.refuse(derivative=out)
    states = _States(asked, constraints, (q, v, a, v), result.multipliers, NO_MASK, external_wrenches)
    A, dA = states.A, states.dA
    scale = np.linalg.norm(A, axis=(-2, -1))
    change = out.reshape(states.changes[:, 3].shape)
    A_p = np.swapaxes(A[..., ~mask], -1, -2)    # transposed, as in the primal
    A_a = np.swapaxes(A[..., mask], -1, -2)
    inverse, null, _ = _pseudoinverse(A_p, scale)
    load = _times(np.swapaxes(dA, -1, -2), states.lam)
    rest = change - load    # ∂ID − ∂(Aᵀ)λ
    gain, rubbed = np.ones(change.shape[1:]), np.zeros(change.shape)
    if friction is not None:
        carried = np.atleast_2d(inverse_dynamics(model, q, v, a, external_wrenches)) - _times(
            np.swapaxes(A, -1, -2), states.lam)
        gain, rubbed = asked.rubbed(friction, carried)
    lam = _times(inverse, (rest - (states.changes[:, 3] - rubbed) / gain)[..., ~mask])
    if minimize == "effort":
        # A_a W τ_a = A_p ν, differentiated where the passive efforts leave λ free
        w = _per_actuated(model, weights, mask, "weights", 1.0, positive, "positive numbers")
        weighted = np.zeros_like(np.atleast_2d(a))
        weighted[..., mask] = w * np.atleast_2d(result.effort)[..., mask]
        nu = _times(np.swapaxes(inverse, -1, -2), _times(A[..., mask], weighted[..., mask]))
        weighted[..., ~mask] = -nu
        root = np.sqrt(w)
        free, _, _ = _pseudoinverse(root[:, None] * (A_a @ null), scale * root.max(initial=0.0))
        force = _times(A[..., mask], w * ((rest + rubbed)[..., mask] - _times(A_a, lam))) + _times(dA, weighted)
        lam = lam + _times(null @ free @ np.swapaxes(null @ free, -1, -2), force)
        every, alone, _ = _pseudoinverse(np.swapaxes(A, -1, -2), scale)
        lam = lam + _times(alone, _times(dA, _times(np.swapaxes(every, -1, -2), states.lam)))
    else:
        y = np.zeros_like(np.atleast_2d(a))
        y[..., ~mask] = _times(np.swapaxes(inverse, -1, -2), states.lam)
        lam = lam + _times(null, _times(dA, y))
    rest = gain * (rest - _times(np.swapaxes(A, -1, -2), lam)) + rubbed
    effort = np.where(mask, rest, states.changes[:, 3])
    return ConstrainedInverseDirectional(*states.shaped(effort, lam))


def _times(matrix: Array, vector: Array) -> Array:
    return np.asarray((matrix @ vector[..., None])[..., 0])


class _States:
    """States with a batch axis, their constraints and how these change, directions first."""

    def __init__(self, asked: Case, constraints: ConstraintSet, inputs: tuple[Array, ...], lam: Array,
                 mask: NDArray[np.bool_], wrenches: Any) -> None:
        self.asked, self.inputs, self.mask, self.wrenches = asked, inputs, mask, wrenches
        model: Any = asked.states.model
        self.model = model
        q, v, a, _ = (np.atleast_2d(x) for x in inputs)
        self.lam = np.atleast_2d(lam)
        self.changes = asked.changes
        prescribed = np.array(self.changes)
        if len(mask):
            prescribed[:, 2] *= mask
        elif asked.states.names[2:3] == ("tau",):
            prescribed[:, 2] = 0.0
        self.A = evaluate(model, constraints, q, v, a, 1).jacobian
        self.dA, self.bias = directional_rows(model, constraints, asked.tangents, q, v, a, prescribed)

    def solve(self) -> tuple[Array, Array, Array]:
        """∂ of accelerations, efforts and multipliers, where accelerations and other efforts are given."""
        model, asked, A, nv = self.model, self.asked, self.A, self.model.nv
        held = self.mask if len(self.mask) else np.zeros(nv, dtype=np.bool_)
        q, v, a, tau = self.inputs
        At = np.swapaxes(A, -1, -2)
        total = (q, v, a, np.ascontiguousarray(tau + _times(At, self.lam).reshape(tau.shape)))
        load = _times(np.swapaxes(self.dA, -1, -2), self.lam)
        changes = np.array(self.changes)
        changes[:, 3] += load
        x = sought(model, asked._replace(changes=changes), total, self.mask, self.wrenches)
        x = x.reshape(load.shape)
        m = A.shape[-2]
        loads = np.zeros((m, 4, len(A), nv))
        loads[:, 3] = np.moveaxis(A, 1, 0)
        rows = asked._replace(changes=loads, tangents=Tangents.of_states(model, m))
        Y = np.moveaxis(sought(model, rows, total, self.mask, self.wrenches).reshape(m, len(A), nv), 0, -1)

        A_free = np.where(held, 0.0, A)
        inverse, null, rank = _pseudoinverse(np.swapaxes(A_free, -1, -2), np.linalg.norm(A, axis=(-2, -1)))
        lam = np.zeros((*x.shape[:-1], m))
        accelerations = np.where(held, 0.0, x)
        needed = self.bias + _times(A, accelerations)
        try:
            for s in range(len(A) if m else 0):
                U = np.linalg.svd(A_free[s], full_matrices=False)[0][:, :rank[s]]
                gram = U.T @ A_free[s] @ Y[s] @ U
                lam[:, s] = -np.linalg.solve(gram, U.T @ needed[:, s].T).T @ U.T
        except np.linalg.LinAlgError as error:
            raise asked.states.beyond_numbers() or RbdError(
                f"derivatives of constrained dynamics: {error}: the state is beyond what floating point numbers hold"
            ) from None
        x = x + _times(Y, lam)
        acceleration = np.where(held, self.changes[:, 2], x)
        effort = np.where(held, x - load - _times(At, lam), self.changes[:, 3])
        # what no acceleration sees: λ stays the least
        y = _times(np.swapaxes(inverse, -1, -2), self.lam)
        lam = lam + _times(null, _times(self.dA, y))
        return acceleration, effort, lam

    def shaped(self, *parts: Array) -> list[Array]:
        """As the caller gave states and directions."""
        if self.asked.states.batch is None:
            parts = tuple(part[:, 0] for part in parts)
        names = {f"derivative[{i}]": part for i, part in enumerate(parts)}
        self.asked.states.finite(**names)
        return [self.asked.result(part) for part in parts]
