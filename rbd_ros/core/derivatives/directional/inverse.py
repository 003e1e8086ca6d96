"""Derivatives of inverse dynamics by any scalar p, as K Table 5 gives them: O(n) per direction."""
from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, overload

from numpy.typing import ArrayLike

from ...dynamics.friction import Friction
from ...model.inertia import Array
from ...model.robot_model import RobotModel
from .bodies import InverseDirectional, body_changes
from .run import NO_MASK, NOTHING, at_once, perturbation, run
from .tangent import Tangent, Tangents


@overload
def inverse_dynamics_directional(model: RobotModel, q: ArrayLike, v: ArrayLike, a: ArrayLike,
                                 tangent: Tangent | Iterable[Tangent] | Tangents, external_wrenches: Any = None, *,
                                 friction: Friction | None = None, bodies: Literal[False] | None = None) -> Array: ...
@overload
def inverse_dynamics_directional(model: RobotModel, q: ArrayLike, v: ArrayLike, a: ArrayLike,
                                 tangent: Tangent | Iterable[Tangent] | Tangents, external_wrenches: Any = None, *,
                                 friction: Friction | None = None, bodies: Literal[True]) -> InverseDirectional: ...
def inverse_dynamics_directional(model: RobotModel, q: ArrayLike, v: ArrayLike, a: ArrayLike,
                                 tangent: Tangent | Iterable[Tangent] | Tangents, external_wrenches: Any = None, *,
                                 friction: Friction | None = None,
                                 bodies: bool | None = None) -> Array | InverseDirectional:
    """∂τ/∂p (nv,) or (N, nv) of `inverse_dynamics` by a scalar p on which all inputs may depend: K Table 5, O(n).

    tangent: see `Tangent` (its `tau` is ignored), of one state or of a batch. Several tangents in one call (a list, or
    `Tangents`, which looks up names once) cost less than one call each; directions are then the result's first axis.
    Other arguments and errors as of `inverse_dynamics`. bodies=True adds ∂V̇_i and ∂F_i.

        >>> model = rbd.sample("two_link")
        >>> rbd.inverse_dynamics_directional(model, [0.3, 0.5], [0, 0], [1, 0], rbd.Tangent(gravity=[0, 0, 1])).round(3)
        array([-0.401, -0.179])
    """
    if external_wrenches is None and not bodies and (
            derivative := at_once(model, q, v, a, NOTHING, NO_MASK, tangent, friction)) is not None:
        return derivative
    perturbed = perturbation(model, tangent, friction, q=q, v=v, a=a)
    out = perturbed.empty()
    q, v, a = perturbed.inputs
    if run(perturbed, (q, v, a, NOTHING), NO_MASK, external_wrenches, friction, out) != 0:
        perturbed.states.refuse(derivative=out)
    if not bodies:
        return perturbed.result(out)
    return InverseDirectional(perturbed.result(out),
                              *body_changes(perturbed, a, perturbed.changes[:, 2], external_wrenches))
