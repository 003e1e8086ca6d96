"""Derivatives of forward and hybrid dynamics by any scalar p, as K Tables 6 and 7 give them: O(n) per direction."""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...dynamics.forward import forward_dynamics, solve_mass_matrix
from ...dynamics.friction import Friction, left_over
from ...dynamics.hybrid import hybrid_dynamics, prescribed_mask
from ...dynamics.mass_matrix import mass_matrix
from ...dynamics.singular import SingularMassMatrix, by_rows, solved, wrenches_of
from ...model.inertia import Array
from ...model.robot_model import RobotModel
from .bodies import ForwardDirectional, HybridDirectional, body_changes
from .run import NO_MASK, NOTHING, Perturbation, at_once, perturbation, run
from .tangent import Tangent, Tangents


@overload
def forward_dynamics_directional(model: RobotModel, q: ArrayLike, v: ArrayLike, tau: ArrayLike,
                                 tangent: Tangent | Iterable[Tangent] | Tangents, external_wrenches: Any = None, *,
                                 friction: Friction | None = None, bodies: Literal[False] | None = None) -> Array: ...
@overload
def forward_dynamics_directional(model: RobotModel, q: ArrayLike, v: ArrayLike, tau: ArrayLike,
                                 tangent: Tangent | Iterable[Tangent] | Tangents, external_wrenches: Any = None, *,
                                 friction: Friction | None = None, bodies: Literal[True]) -> ForwardDirectional: ...
def forward_dynamics_directional(model: RobotModel, q: ArrayLike, v: ArrayLike, tau: ArrayLike,
                                 tangent: Tangent | Iterable[Tangent] | Tangents, external_wrenches: Any = None, *,
                                 friction: Friction | None = None,
                                 bodies: bool | None = None) -> Array | ForwardDirectional:
    """∂q̈/∂p (nv,) or (N, nv) of `forward_dynamics` by a scalar p on which all inputs may depend: K Table 6, O(n).

    tangent: see `Tangent` (its `a` is ignored), or several as in `inverse_dynamics_directional`. Other arguments and
    errors as of `forward_dynamics`. bodies=True adds ∂V̇_i and ∂F_i.

        >>> model = rbd.sample("two_link")
        >>> rbd.forward_dynamics_directional(model, [0.3, 0.5], [0, 0], [1, 0], rbd.Tangent(tau=[1, 0])).round(3)
        array([  5.293, -12.26 ])
    """
    if external_wrenches is None and not bodies and (
            derivative := at_once(model, q, v, v, tau, NO_MASK, tangent, friction)) is not None:
        return derivative
    perturbed = perturbation(model, tangent, friction, q=q, v=v, tau=tau)
    q, v, tau = perturbed.inputs
    out = batch_changes(model, perturbed, (q, v, v, tau), NO_MASK, external_wrenches, friction)
    if not bodies:
        return perturbed.result(out)
    a = forward_dynamics(model, q, v, tau, external_wrenches, friction=friction)
    return ForwardDirectional(perturbed.result(out), *body_changes(perturbed, a, out, external_wrenches))


@overload
def hybrid_dynamics_directional(model: RobotModel, q: ArrayLike, v: ArrayLike, a: ArrayLike, tau: ArrayLike,
                                prescribed: ArrayLike | Sequence[str], tangent: Tangent | Iterable[Tangent] | Tangents,
                                external_wrenches: Any = None, *, friction: Friction | None = None,
                                bodies: Literal[False] = False) -> Array: ...
@overload
def hybrid_dynamics_directional(model: RobotModel, q: ArrayLike, v: ArrayLike, a: ArrayLike, tau: ArrayLike,
                                prescribed: ArrayLike | Sequence[str], tangent: Tangent | Iterable[Tangent] | Tangents,
                                external_wrenches: Any = None, *, friction: Friction | None = None,
                                bodies: Literal[True]) -> HybridDirectional: ...
def hybrid_dynamics_directional(model: RobotModel, q: ArrayLike, v: ArrayLike, a: ArrayLike, tau: ArrayLike,
                                prescribed: ArrayLike | Sequence[str], tangent: Tangent | Iterable[Tangent] | Tangents,
                                external_wrenches: Any = None, *, friction: Friction | None = None,
                                bodies: bool = False) -> Array | HybridDirectional:
    """∂/∂p (nv,) or (N, nv) of the unknowns of `hybrid_dynamics` (effort of prescribed coordinates, acceleration of the
    others) by a scalar p on which all inputs may depend: K Table 7, O(n).

    tangent: see `Tangent`; of its `a` the prescribed coordinates count, of its `tau` the others. Several as in
    `inverse_dynamics_directional`. Other arguments and errors as of that function. bodies=True returns both, and ∂V̇_i
    and ∂F_i.

        >>> model = rbd.sample("two_link")
        >>> turned = rbd.Tangent(q=[1, 0])
        >>> rbd.hybrid_dynamics_directional(model, [0.3, 0.5], [0, 0], [1, 0], [0, 2], ["shoulder"], turned).round(3)
        array([  4.78 , -20.504])
    """
    mask = prescribed_mask(model, prescribed)
    if external_wrenches is None and not bodies and (
            derivative := at_once(model, q, v, a, tau, mask, tangent, friction)) is not None:
        return derivative
    perturbed = perturbation(model, tangent, friction, q=q, v=v, a=a, tau=tau)
    q, v, a, tau = perturbed.inputs
    out = batch_changes(model, perturbed, perturbed.inputs, mask, external_wrenches, friction)
    if not bodies:
        return perturbed.result(out)
    da, dtau = (perturbed.changes[:, i].reshape(out.shape) for i in (2, 3))
    da, dtau = np.where(mask, da, out), np.where(mask, out, dtau)
    a = hybrid_dynamics(model, q, v, a, tau, mask, external_wrenches, friction=friction).acceleration
    return HybridDirectional(perturbed.result(da), perturbed.result(dtau),
                             *body_changes(perturbed, a, da, external_wrenches))


def batch_changes(model: RobotModel, perturbed: Perturbation, inputs: tuple[Array, ...], mask: NDArray[np.bool_],
              external_wrenches: Any, friction: Friction | None) -> Array:
    """`unknown_changes`; the error for a singular state of a batch has the results of all other states."""
    try:
        return unknown_changes(model, perturbed, inputs, mask, external_wrenches, friction)
    except SingularMassMatrix:
        if perturbed.states.batch is None:
            raise

    def of_row(row: int) -> Array:
        return unknown_changes(model, perturbed.state(row), tuple(x[row] for x in inputs), mask,
                      wrenches_of(external_wrenches, row), friction)

    out = perturbed.empty()
    try:
        by_rows(perturbed.states, np.moveaxis(out, 1, 0), of_row)
    except SingularMassMatrix as error:
        error.result = perturbed.result(out)
        raise
    raise AssertionError("a state is singular within a batch but not alone")


def unknown_changes(model: RobotModel, perturbed: Perturbation, inputs: tuple[Array, ...], mask: NDArray[np.bool_],
           external_wrenches: Any, friction: Friction | None = None) -> Array:
    """∂ of the unknown accelerations and efforts, directions first; inputs: q, v, a, tau."""
    out = perturbed.empty()
    if not model.mimics:
        solved(run(perturbed, inputs, mask, external_wrenches, friction, out), perturbed.states, derivative=out)
        return out
    perturbed.states.check_values()
    q, v, a, tau = inputs
    prescribed = mask if len(mask) else np.zeros(model.nv, dtype=np.bool_)
    free = ~prescribed
    changes = np.array(perturbed.changes)
    changes[:, 2] *= prescribed
    net_effort = tau if friction is None else left_over(model, friction, v, tau)
    frictionless = hybrid_dynamics(model, q, v, a, net_effort, prescribed, external_wrenches)
    if run(perturbed._replace(changes=changes), (q, v, frictionless.acceleration, NOTHING), NO_MASK,
           external_wrenches, None, out) != 0:
        perturbed.states.refuse(derivative=out)
    gain, friction_change = np.ones(perturbed.changes.shape[2:]), np.zeros(perturbed.changes[:, 3].shape)
    if friction is not None:
        gain, friction_change = perturbed.friction_changes(friction, np.ascontiguousarray(frictionless.effort))
    effort_change = ((perturbed.changes[:, 3] - friction_change) / gain).reshape(out.shape)
    if free.any():
        M = mass_matrix(model, q)
        residual = (effort_change - out)[..., free]
        M_ff = np.broadcast_to(M[..., free, :][..., free], (*residual.shape, residual.shape[-1]))
        change = solve_mass_matrix(model, np.ascontiguousarray(M_ff), residual[..., None])
        out[..., prescribed] += (M[..., prescribed, :][..., free] @ change)[..., 0]
        out[..., free] = change[..., 0]
    effort = (gain * out.reshape(friction_change.shape) + friction_change).reshape(out.shape)
    out[..., prescribed] = effort[..., prescribed]
    return perturbed.states.finite(derivative=out)[0]
