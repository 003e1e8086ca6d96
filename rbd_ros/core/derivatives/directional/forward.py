"""Derivatives of forward and hybrid dynamics by any scalar p: K Tables 6 and 7, O(n) per direction."""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...dynamics.forward import solve_mass_matrix, solved
from ...dynamics.hybrid import hybrid_dynamics, prescribed_mask
from ...dynamics.mass_matrix import mass_matrix
from ...model.block import SHARED
from ...model.inertia import Array
from ...model.robot_model import RobotModel
from ...trying import trying
from .run import NO_MASK, NOTHING, Case, at_once, case, run
from .tangent import Tangent, Tangents


def _one_state(model: RobotModel, q: Any, v: Any, tau: Any, tangent: Any) -> Array | None:
    return None if model._block[SHARED] > 0.0 else at_once(model, q, v, v, tau, tangent)


@trying(_one_state)
def forward_dynamics_directional(model: RobotModel, q: ArrayLike, v: ArrayLike, tau: ArrayLike,
                                 tangent: Tangent | Iterable[Tangent] | Tangents,
                                 external_wrenches: Any = None) -> Array:
    """∂q̈/∂p (nv,) or (N, nv) of `forward_dynamics` by a scalar p on which anything may depend: K Table 6, O(n).

    tangent: see `Tangent` (its `a` has no meaning here), or several as in `inverse_dynamics_directional`. Other
    arguments and errors as of `forward_dynamics`.
    """
    found = case(model, tangent, q=q, v=v, tau=tau)
    q, v, tau = found.inputs
    return found.result(sought(model, found, (q, v, v, tau), NO_MASK, external_wrenches))


def hybrid_dynamics_directional(model: RobotModel, q: ArrayLike, v: ArrayLike, a: ArrayLike, tau: ArrayLike,
                                prescribed: ArrayLike | Sequence[str], tangent: Tangent | Iterable[Tangent] | Tangents,
                                external_wrenches: Any = None) -> Array:
    """∂/∂p (nv,) or (N, nv) of what `hybrid_dynamics` seeks, the effort of prescribed coordinates and the acceleration
    of the others, by a scalar p on which anything may depend: K Table 7, O(n).

    tangent: see `Tangent`; of its `a` and `tau` what is given counts. Several as in `inverse_dynamics_directional`.
    Other arguments and errors as of that function.
    """
    mask = prescribed_mask(model, prescribed)
    found = case(model, tangent, q=q, v=v, a=a, tau=tau)
    return found.result(sought(model, found, found.inputs, mask, external_wrenches))


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
