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
from .bodies import ForwardDirectional, HybridDirectional, of_bodies
from .run import NO_MASK, NOTHING, Case, at_once, case, run
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
    """∂q̈/∂p (nv,) or (N, nv) of `forward_dynamics` by a scalar p on which anything may depend: K Table 6, O(n).

    tangent: see `Tangent` (its `a` has no meaning here), or several as in `inverse_dynamics_directional`. Other
    arguments and errors as of `forward_dynamics`. bodies=True adds ∂V̇_i and ∂F_i.

        >>> model = rbd.sample("two_link")
        >>> rbd.forward_dynamics_directional(model, [0.3, 0.5], [0, 0], [1, 0], rbd.Tangent(tau=[1, 0])).round(3)
        array([  5.293, -12.26 ])
    """
    if external_wrenches is None and not bodies and (
            derivative := at_once(model, q, v, v, tau, NO_MASK, tangent, friction)) is not None:
        return derivative
    asked = case(model, tangent, friction, q=q, v=v, tau=tau)
    q, v, tau = asked.inputs
    out = by_states(model, asked, (q, v, v, tau), NO_MASK, external_wrenches, friction)
    if not bodies:
        return asked.result(out)
    a = forward_dynamics(model, q, v, tau, external_wrenches, friction=friction)
    return ForwardDirectional(asked.result(out), *of_bodies(asked, a, out, external_wrenches))


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
    """∂/∂p (nv,) or (N, nv) of what `hybrid_dynamics` seeks, the effort of prescribed coordinates and the acceleration
    of the others, by a scalar p on which anything may depend: K Table 7, O(n).

    tangent: see `Tangent`; of its `a` and `tau` what is given counts. Several as in `inverse_dynamics_directional`.
    Other arguments and errors as of that function. bodies=True returns both, and ∂V̇_i and ∂F_i.

        >>> model = rbd.sample("two_link")
        >>> turned = rbd.Tangent(q=[1, 0])
        >>> rbd.hybrid_dynamics_directional(model, [0.3, 0.5], [0, 0], [1, 0], [0, 2], ["shoulder"], turned).round(3)
        array([  4.78 , -20.504])
    """
    mask = prescribed_mask(model, prescribed)
    if external_wrenches is None and not bodies and (
            derivative := at_once(model, q, v, a, tau, mask, tangent, friction)) is not None:
        return derivative
    asked = case(model, tangent, friction, q=q, v=v, a=a, tau=tau)
    q, v, a, tau = asked.inputs
    out = by_states(model, asked, asked.inputs, mask, external_wrenches, friction)
    if not bodies:
        return asked.result(out)
    da, dtau = (asked.changes[:, i].reshape(out.shape) for i in (2, 3))
    da, dtau = np.where(mask, da, out), np.where(mask, out, dtau)
    a = hybrid_dynamics(model, q, v, a, tau, mask, external_wrenches, friction=friction).acceleration
    return HybridDirectional(asked.result(da), asked.result(dtau), *of_bodies(asked, a, da, external_wrenches))


def by_states(model: RobotModel, asked: Case, inputs: tuple[Array, ...], mask: NDArray[np.bool_],
              external_wrenches: Any, friction: Friction | None) -> Array:
    """What is `sought`; the error for a singular state of a batch has the results of all others."""
    try:
        return sought(model, asked, inputs, mask, external_wrenches, friction)
    except SingularMassMatrix:
        if asked.states.batch is None:
            raise

    def one(row: int) -> Array:
        return sought(model, asked.state(row), tuple(x[row] for x in inputs), mask,
                      wrenches_of(external_wrenches, row), friction)

    out = asked.empty()
    try:
        by_rows(asked.states, np.moveaxis(out, 1, 0), one)
    except SingularMassMatrix as error:
        error.result = asked.result(out)
        raise
    raise AssertionError("singular in a batch and not alone")


def sought(model: RobotModel, asked: Case, inputs: tuple[Array, ...], mask: NDArray[np.bool_],
           external_wrenches: Any, friction: Friction | None = None) -> Array:
    """∂ of what is sought, directions first; inputs: q, v, a, tau."""
    out = asked.empty()
    if not model.mimics:
        solved(run(asked, inputs, mask, external_wrenches, friction, out), asked.states, derivative=out)
        return out
    asked.states.check_values()
    q, v, a, tau = inputs
    held = mask if len(mask) else np.zeros(model.nv, dtype=np.bool_)
    free = ~held
    kept = np.array(asked.changes)
    kept[:, 2] *= held
    left = tau if friction is None else left_over(model, friction, v, tau)
    bare = hybrid_dynamics(model, q, v, a, left, held, external_wrenches)
    if run(asked._replace(changes=kept), (q, v, bare.acceleration, NOTHING), NO_MASK, external_wrenches, None,
           out) != 0:
        asked.states.refuse(derivative=out)
    gain, rubbed = np.ones(asked.changes.shape[2:]), np.zeros(asked.changes[:, 3].shape)
    if friction is not None:
        gain, rubbed = asked.rubbed(friction, np.ascontiguousarray(bare.effort))
    given = ((asked.changes[:, 3] - rubbed) / gain).reshape(out.shape)
    if free.any():
        M = mass_matrix(model, q)
        rest = (given - out)[..., free]
        M_ff = np.broadcast_to(M[..., free, :][..., free], (*rest.shape, rest.shape[-1]))
        change = solve_mass_matrix(model, np.ascontiguousarray(M_ff), rest[..., None])
        out[..., held] += (M[..., held, :][..., free] @ change)[..., 0]
        out[..., free] = change[..., 0]
    out[..., held] = (gain * out.reshape(rubbed.shape) + rubbed).reshape(out.shape)[..., held]
    return asked.states.finite(derivative=out)[0]
