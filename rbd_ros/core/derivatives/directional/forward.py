"""Derivatives of forward and hybrid dynamics by any scalar p: K Tables 6 and 7, O(n) per direction."""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...dynamics.forward import forward_dynamics, solve_mass_matrix
from ...dynamics.friction import Friction
from ...dynamics.hybrid import hybrid_dynamics, prescribed_mask
from ...dynamics.mass_matrix import mass_matrix
from ...dynamics.singular import SingularMassMatrix, by_rows, solved, wrenches_of
from ...model.inertia import Array
from ...model.robot_model import RobotModel
from ...compiled.door import where_suited
from .bodies import ForwardDirectional, HybridDirectional, of_bodies
from .run import NO_MASK, NOTHING, Case, at_once, case, rubbing_state, run
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
    if external_wrenches is None and friction is None and bodies is None:
        derivative = where_suited(at_once, model, q, v, v, tau, tangent)
        if derivative is not None:
            return derivative    # type: ignore[no-any-return]
    if friction is not None and external_wrenches is None and not bodies:
        quick = rubbing_state(model, q, v, v, tau, NO_MASK, tangent, friction)
        if quick is not None:
            return quick
    found, _ = case(model, tangent, q=q, v=v, tau=tau).less(friction)
    q, v, tau = found.inputs
    out = by_states(model, found, (q, v, v, tau), NO_MASK, external_wrenches)
    if not bodies:
        return found.result(out)
    a = forward_dynamics(model, q, v, tau, external_wrenches)
    return ForwardDirectional(found.result(out), *of_bodies(found, a, out, external_wrenches))


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
    if friction is not None and external_wrenches is None and not bodies:
        quick = rubbing_state(model, q, v, a, tau, mask, tangent, friction)
        if quick is not None:
            return quick
    found, rubbed = case(model, tangent, q=q, v=v, a=a, tau=tau).less(friction)
    out = by_states(model, found, found.inputs, mask, external_wrenches, mask * rubbed)
    if not bodies:
        return found.result(out)
    changes = found.changes.reshape(found.tangents.count, 4, *out.shape[1:])
    da = np.where(mask, changes[:, 2], out)
    q, v, a, tau = found.inputs
    a = hybrid_dynamics(model, q, v, a, tau, mask, external_wrenches).acceleration
    return HybridDirectional(found.result(da), found.result(np.where(mask, out, changes[:, 3] + rubbed)),
                             *of_bodies(found, a, da, external_wrenches))


def by_states(model: RobotModel, found: Case, inputs: tuple[Array, ...], mask: NDArray[np.bool_],
              external_wrenches: Any, more: Any = 0.0) -> Array:
    """What is `sought` and more; the error for a singular state of a batch has the results of all others."""
    try:
        return sought(model, found, inputs, mask, external_wrenches) + more
    except SingularMassMatrix:
        if found.given.batch is None:
            raise

    def one(row: int) -> Array:
        return sought(model, found.state(row), tuple(x[row] for x in inputs), mask, wrenches_of(external_wrenches, row))

    out = found.empty()
    try:
        by_rows(found.given, np.moveaxis(out, 1, 0), one)
    except SingularMassMatrix as error:
        error.result = found.result(out + more)
        raise
    raise AssertionError("singular in a batch and not alone")


def sought(model: RobotModel, found: Case, inputs: tuple[Array, ...], mask: NDArray[np.bool_],
           external_wrenches: Any) -> Array:
    """∂ of what is sought, directions first; inputs: q, v, a, tau."""
    out = found.empty()
    if not model.mimics:
        solved(run(found, inputs, mask, external_wrenches, out), found.given, derivative=out)
        return out
    found.given.check_values()
    q, v, a, tau = inputs
    held = mask if len(mask) else np.zeros(model.nv, dtype=np.bool_)
    free = ~held
    changes = found.changes.reshape(found.tangents.count, 4, *out.shape[1:])
    kept = np.array(changes)
    kept[:, 2] *= held
    a = hybrid_dynamics(model, q, v, a, tau, held, external_wrenches).acceleration
    if run(found._replace(changes=kept.reshape(-1)), (q, v, a, NOTHING), NO_MASK, external_wrenches, out) != 0:
        found.given.refuse(derivative=out)
    if free.any():
        M = mass_matrix(model, q)
        rest = (changes[:, 3] - out)[..., free]
        M_ff = np.broadcast_to(M[..., free, :][..., free], (*rest.shape, rest.shape[-1]))
        change = solve_mass_matrix(model, np.ascontiguousarray(M_ff), rest[..., None])
        out[..., held] += (M[..., held, :][..., free] @ change)[..., 0]
        out[..., free] = change[..., 0]
    return found.given.finite(derivative=out)[0]
