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
from ..model.state import node_wrenches, shaped
from ..compiled.door import Call, door
from ..compiled.workspace import ONE_STATE
from .articulated import SIZE, articulated_recursion, articulated_states
from .bodies.joint_wrenches import joint_wrenches as wrenches_of_joints
from .friction import Friction, left_over
from .singular import SINGULAR, SingularMassMatrix, solved, wrenches_of


@quick_entry("int64(float64[::1], float64[::1], float64[::1], float64[::1], float64[::1], float64[::1])")
def forward_dynamics_entry(B, q, v, tau, W, out):
    """Validate and evaluate one state. Returns 0, −1 for invalid input or a non-finite result, or the singular node
    + 1.
    """
    if B[SHARED] > 0.0 or not (positions_valid(B, q, 1) and rates_valid(B, v, 1) and rates_valid(B, tau, 1)):
        return -1
    singular = articulated_recursion(B, q, 0, v, tau, 0, (W[:0].view(np.bool_), v), (W[:0], 0), W, out, out)
    return singular if singular != 0 or all_finite(out) else -1


@entry("int64(float64[::1], float64[::1], float64[::1], float64[::1], float64[::1], int64, float64[::1])", nogil=True)
def forward_dynamics_batch(B, q, v, tau, wrench, states, out):
    """Validate and evaluate `states` states, with wrenches (empty: none) in node frames. Returns as the entry, or
    INDEFINITE.
    """
    if not (positions_valid(B, q, states) and rates_valid(B, v, states) and rates_valid(B, tau, states)):
        return -1
    W = np.empty(SIZE * node_count(B))
    singular = articulated_states(B, q, v, tau, (np.empty(0, np.bool_), v), wrench, states, W, out, out)
    return singular if singular != 0 or all_finite(out) else -1


ONE_STATE.takes(lambda nodes, columns, nv: SIZE * nodes)


_door = door("forward_dynamics", Call(forward_dynamics_entry, "B q v tau W >", lambda model: [(model.nv,)]))


class Forward(NamedTuple):
    """`acceleration` (nv,) and `joint_wrenches` (nb, 6), as the function of that name returns them; a batch adds an
    axis.
    """

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

    def of_row(row: int) -> Array:
        q, v, tau = (x[row] for x in inputs.arrays)
        return forward_dynamics(model, q, v, tau, wrenches_of(external_wrenches, row))

    status = forward_dynamics_batch.call(model._block, *inputs.flat,
                                         node_wrenches(model, external_wrenches, inputs.batch), inputs.count,
                                         out.reshape(-1))
    solved(status, inputs, rows=(out, of_row), acceleration=out)
    return out


def solve_mass_matrix(model: RobotModel, matrix: Array, right_side: Array) -> Array:
    """`M⁻¹ right_side` for one or many symmetric positive definite matrices; else raises `SingularMassMatrix`."""
    try:
        pivots = np.diagonal(np.linalg.cholesky(matrix), axis1=-2, axis2=-1) ** 2
        regular = bool((pivots > SINGULAR * np.diagonal(matrix, axis1=-2, axis2=-1)).all())    # rounding leaves some
    except np.linalg.LinAlgError:
        regular = False
    if not regular:
        raise SingularMassMatrix(model.name)
    return np.asarray(np.linalg.solve(matrix, right_side), dtype=np.float64)
