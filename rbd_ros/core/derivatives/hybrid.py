"""Derivatives of hybrid dynamics by q, q̇ and the given quantities: K eq. 33, 34 differentiated, by `forward`'s kernel.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..dynamics.friction import Friction, friction_slopes_at, left_over
from ..dynamics.hybrid import hybrid_dynamics, prescribed_mask
from ..dynamics.singular import SingularMassMatrix, completed, singular_coordinate, solved, wrenches_of
from ..model.inertia import Array
from ..model.robot_model import RobotModel
from ..model.state import node_wrenches, shaped
from ..compiled.door import Call, door
from ..compiled.workspace import ONE_STATE
from .forward import hybrid_derivatives_batch, hybrid_derivatives_entry, work_size
from .inverse import matrices


class HybridDerivatives(NamedTuple):
    """∂ of the unknowns by `q` (along the tangent of `integrate`), `v` and the `given` inputs: (nv, nv) each, or (N,
    nv, nv).

    Row i belongs to the effort of coordinate i if its acceleration is prescribed, else to its acceleration. Column j of
    `given` belongs to the acceleration of coordinate j if it is prescribed, else to its effort.
    """

    q: Array
    v: Array
    given: Array


ONE_STATE.takes(work_size)


_door = door("hybrid_dynamics_derivatives", Call(
    hybrid_derivatives_entry, "B q v a tau prescribed W > > >", matrices, HybridDerivatives))


def hybrid_dynamics_derivatives(model: RobotModel, q: ArrayLike, v: ArrayLike, a: ArrayLike, tau: ArrayLike,
                                prescribed: ArrayLike | Sequence[str], external_wrenches: Any = None, *,
                                friction: Friction | None = None) -> HybridDerivatives:
    """Derivatives (nv, nv) or (N, nv, nv) of `hybrid_dynamics`, with its arguments and errors; by q on the tangent
    space. With nothing prescribed they are those of forward dynamics, with everything those of inverse dynamics.

        >>> model = rbd.sample("two_link")
        >>> rbd.hybrid_dynamics_derivatives(model, [0.3, 0.5], [0.0, 0.0], [1.0, 0.0], [0.0, 2.0], ["shoulder"]).q.shape
        (2, 2)
    """
    if external_wrenches is None and friction is None and (
            result := _door(model, q, v, a, tau, prescribed)) is not None:
        return result    # type: ignore[no-any-return]
    mask = prescribed_mask(model, prescribed)
    if friction is not None:
        unloaded = left_over(model, friction, v, tau)
        joint_effort = unloaded
        if friction.by_load and mask.any():
            try:
                joint_effort = hybrid_dynamics(model, q, v, a, unloaded, mask, external_wrenches).effort
            except SingularMassMatrix as error:
                if error.result is None:
                    raise
                joint_effort = error.result.effort
        slope, gain = friction_slopes_at(model, friction, v, joint_effort)
        rows = np.where(mask, gain, 1.0)[..., :, None]
        columns = np.where(mask, 1.0, 1.0 / gain)[..., None, :]
        friction_slope = np.where(mask, slope, 0.0)[..., None, :] * np.eye(model.nv)
        free_slope = np.where(mask, 0.0, slope / gain)[..., None, :]
        with_friction: HybridDerivatives = completed(
            lambda: hybrid_dynamics_derivatives(model, q, v, a, unloaded, mask, external_wrenches),
            lambda by: HybridDerivatives(rows * by.q, rows * (by.v - by.given * free_slope) + friction_slope,
                                         rows * by.given * columns))
        return with_friction
    inputs = shaped(model, positions={"q": q}, rates={"v": v, "a": a, "tau": tau})
    out = inputs.empty(3, model.nv, model.nv)
    result = HybridDerivatives(out[..., 0, :, :], out[..., 1, :, :], out[..., 2, :, :])

    def of_row(row: int) -> HybridDerivatives:
        q, v, a, tau = (x[row] for x in inputs.arrays)
        return hybrid_dynamics_derivatives(model, q, v, a, tau, mask, wrenches_of(external_wrenches, row))

    solved(hybrid_derivatives_batch.call(
        model._block, *inputs.flat, mask, node_wrenches(model, external_wrenches, inputs.batch), inputs.count,
        out.reshape(3 * inputs.count, model.nv, model.nv)), inputs, singular_coordinate, (result, of_row),
        derivatives=out)
    return result
