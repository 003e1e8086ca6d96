"""Derivatives of inverse dynamics by any scalar p: K Table 5, O(n) per direction."""
from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from numpy.typing import ArrayLike

from ...model.inertia import Array
from ...model.robot_model import RobotModel
from ...trying import trying
from .run import NO_MASK, NOTHING, at_once, case, run
from .tangent import Tangent, Tangents


def _one_state(model: RobotModel, q: Any, v: Any, a: Any, tangent: Any) -> Array | None:
    return at_once(model, q, v, a, NOTHING, tangent)


@trying(_one_state)
def inverse_dynamics_directional(model: RobotModel, q: ArrayLike, v: ArrayLike, a: ArrayLike,
                                 tangent: Tangent | Iterable[Tangent] | Tangents,
                                 external_wrenches: Any = None) -> Array:
    """∂τ/∂p (nv,) or (N, nv) of `inverse_dynamics` by a scalar p on which anything may depend: K Table 5, O(n).

    tangent: see `Tangent` (its `tau` has no meaning here), of one state or of a batch. Several (a list, or `Tangents`,
    which looks names up once) cost less than one after another; the result then has directions as its first axis.
    Other arguments and errors as of `inverse_dynamics`.
    """
    found = case(model, tangent, q=q, v=v, a=a)
    out = found.empty()
    q, v, a = found.inputs
    if run(found, (q, v, a, NOTHING), NO_MASK, external_wrenches, out) != 0:
        found.given.refuse(derivative=out)
    return found.result(out)
