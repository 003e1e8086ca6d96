"""Forward dynamics of trees in O(n): K Table 3, the articulated-body algorithm (ABA) of `articulated`."""
from __future__ import annotations

from typing import Any, Literal, NamedTuple, overload

import numpy as np
from numpy.typing import ArrayLike

from ..compiled.entry import entry, quick_entry
from ..model.block import SHARED, all_finite, node_count, rates_valid
from ..model.configuration import positions_valid
from ..model.inertia import Array
from ..model.robot_model import RobotModel
from ..model.state import States, node_wrenches, shaped
from ..compiled.door import Call, door
from ..compiled.workspace import ONE_STATE
from .articulated import SINGULAR, SIZE, articulated_recursion, articulated_states
from .bodies.joint_wrenches import joint_wrenches as wrenches_of_joints
from .friction import Friction, left_over
from .inverse import bias_effort
from .mass_matrix import mass_matrix
from .singular import SingularMassMatrix, dense, solved, wrenches_of


@quick_entry("int64(float64[::1], float64[::1], float64[::1], float64[::1], float64[::1], float64[::1])")
def forward_dynamics_entry(B, q, v, tau, W, out):
    """`forward_dynamics` of one state: 0; −1 for invalid input or a result that is not finite; singular node + 1."""
    if B[SHARED] > 0.0 or not (positions_valid(B, q, 1) and rates_valid(B, v, 1) and rates_valid(B, tau, 1)):
        return -1
    status = articulated_recursion(B, q, 0, v, tau, 0, (W[:0].view(np.bool_), v), (W[:0], 0), W, out, out)
    return status if status != 0 or all_finite(out) else -1


@entry("int64(float64[::1], float64[::1], float64[::1], float64[::1], float64[::1], int64, float64[::1])", nogil=True)
def forward_dynamics_batch(B, q, v, tau, wrench, states, out):
    """`forward_dynamics` of `states` states, wrenches in node frames or empty; returns as `forward_dynamics_entry`."""
    if not (positions_valid(B, q, states) and rates_valid(B, v, states) and rates_valid(B, tau, states)):
        return -1
    W = np.empty(SIZE * node_count(B))
    status = articulated_states(B, q, v, tau, (np.empty(0, np.bool_), v), wrench, states, W, out, out)
    return status if status != 0 or all_finite(out) else -1


ONE_STATE.takes(lambda nodes, columns, nv: SIZE * nodes)


_door = door("forward_dynamics", Call(forward_dynamics_entry, "B q v tau W >", lambda model: [(model.nv,)]))


class Forward(NamedTuple):
    """`acceleration` (nv,) and `joint_wrenches` (nb, 6) as of the function `joint_wrenches`; a batch adds an axis."""

    acceleration: Array
    joint_wrenches: Array


@overload
def forward_dynamics(model: RobotModel, q: ArrayLike, v: ArrayLike, tau: ArrayLike, external_wrenches: Any = None, *,
                     friction: Friction | None = None, joint_wrenches: Literal[False] | None = None) -> Array: ...
@overload
def forward_dynamics(model: RobotModel, q: ArrayLike, v: ArrayLike, tau: ArrayLike, external_wrenches: Any = None, *,
                     friction: Friction | None = None, joint_wrenches: Literal[True]) -> Forward: ...
def forward_dynamics(model: RobotModel, q: ArrayLike, v: ArrayLike, tau: ArrayLike,
                     external_wrenches: Any = None, *, friction: Friction | None = None,
                     joint_wrenches: bool | None = None) -> Array | Forward:
    """Accelerations a (nv,) or (N, nv) under joint efforts tau at (q, v): K Table 3, O(n).

    The articulated-body algorithm (ABA; Featherstone 1983). Shapes, units, external_wrenches and friction as in
    `inverse_dynamics`. Mimic joints (projected) couple distant bodies: such models are solved through the mass matrix.
    Raises `RbdError` for wrong input, and `SingularMassMatrix`, naming joint and row, with the results of all other
    rows. With joint_wrenches=True returns `Forward`, which includes the joint wrenches.

        >>> model = rbd.sample("two_link")
        >>> rbd.forward_dynamics(model, [0.3, 0.5], [0.0, 0.0], rbd.gravity_effort(model, [0.3, 0.5])).round(9)
        array([-0.,  0.])
    """
    if external_wrenches is None and friction is None and not joint_wrenches and (
            a := _door(model, q, v, tau)) is not None:
        return a    # type: ignore[no-any-return]
    if friction is not None:
        tau = left_over(model, friction, v, tau)
    if joint_wrenches:
        a = forward_dynamics(model, q, v, tau, external_wrenches)
        return Forward(a, wrenches_of_joints(model, q, v, a, external_wrenches))
    inputs = shaped(model, positions={"q": q}, rates={"v": v, "tau": tau})
    out = inputs.empty(model.nv)

    def row_result(row: int) -> Array:
        q, v, tau = (x[row] for x in inputs.arrays)
        return forward_dynamics(model, q, v, tau, wrenches_of(external_wrenches, row))

    if model.mimics:
        inputs.check_values()
        return dense(inputs, out, row_result, lambda: solve_dense(model, inputs, external_wrenches))
    wrenches = node_wrenches(model, external_wrenches, inputs.batch)
    status = forward_dynamics_batch.call(model._block, *inputs.flat, wrenches, inputs.count, out.reshape(-1))
    solved(status, inputs, rows=(out, row_result), acceleration=out)
    return out


def solve_dense(model: RobotModel, inputs: States, external_wrenches: Any) -> Array:
    """`M a = τ − b` by the mass matrix, for models with mimic joints."""
    q, v, tau = inputs.arrays
    residual = (tau - bias_effort(model, q, v, external_wrenches))[..., None]
    return inputs.finite(acceleration=solve_mass_matrix(model, mass_matrix(model, q), residual)[..., 0])[0]


def solve_mass_matrix(model: RobotModel, matrix: Array, right: Array) -> Array:
    """`M⁻¹ right` for a matrix (…, nv, nv) or block of one; `SingularMassMatrix` unless positive definite."""
    try:
        pivots = np.diagonal(np.linalg.cholesky(matrix), axis1=-2, axis2=-1) ** 2
        regular = bool((pivots > SINGULAR * np.diagonal(matrix, axis1=-2, axis2=-1)).all())    # above rounding
    except np.linalg.LinAlgError:
        regular = False
    if not regular:
        raise SingularMassMatrix(model.name)
    return np.asarray(np.linalg.solve(matrix, right), dtype=np.float64)
