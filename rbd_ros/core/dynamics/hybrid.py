"""Hybrid dynamics of trees in O(n): K Table 4, the articulated-body algorithm (ABA) of `articulated`."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..compiled.entry import entry, quick_entry
from ..errors import RbdError, shown
from ..model.block import SHARED, all_finite, node_count, rates_valid, size_v
from ..model.configuration import positions_valid
from ..model.inertia import Array
from ..model.robot_model import RobotModel
from ..model.state import node_wrenches, not_a_model, shaped
from ..compiled.door import Call, door
from ..compiled.workspace import ONE_STATE
from .articulated import SIZE, articulated_recursion, articulated_states
from .bodies.joint_wrenches import Loaded, joint_wrenches as wrenches_of_joints
from .friction import Friction, fitting, left_over
from .singular import completed, solved, wrenches_of


class _Hybrid(NamedTuple):
    acceleration: Array
    effort: Array


class Hybrid(_Hybrid, Loaded):
    """`acceleration` and `effort` of every coordinate, (nv,) or (N, nv) each: the given and the computed ones; and, if
    requested, `joint_wrenches`.
    """


@quick_entry("int64(float64[::1], float64[::1], float64[::1], float64[::1], float64[::1], boolean[::1], float64[::1], "
             "float64[::1], float64[::1])")
def hybrid_dynamics_entry(B, q, v, a, tau, mask, W, acceleration, effort):
    """One state, checked; returns as the batch."""
    if B[SHARED] > 0.0 or mask.shape[0] != size_v(B) or not (
            positions_valid(B, q, 1) and rates_valid(B, v, 1) and rates_valid(B, a, 1) and rates_valid(B, tau, 1)):
        return -1
    singular = articulated_recursion(B, q, 0, v, tau, 0, (mask, a), (W[:0], 0), W, acceleration, effort)
    return singular if singular != 0 or (all_finite(acceleration) and all_finite(effort)) else -1


@entry("int64(float64[::1], float64[::1], float64[::1], float64[::1], float64[::1], boolean[::1], float64[::1], int64, "
       "float64[::1], float64[::1])", nogil=True)
def hybrid_dynamics_batch(B, q, v, a, tau, mask, wrench, states, acceleration, effort):
    """Validate and evaluate `states` states. Returns 0, −1 for invalid input or a non-finite result, the singular node
    + 1, or INDEFINITE.
    """
    if mask.shape[0] != size_v(B) or not (
            positions_valid(B, q, states) and rates_valid(B, v, states) and rates_valid(B, a, states)
            and rates_valid(B, tau, states)):
        return -1
    W = np.empty(SIZE * node_count(B))
    singular = articulated_states(B, q, v, tau, (mask, a), wrench, states, W, acceleration, effort)
    return singular if singular != 0 or (all_finite(acceleration) and all_finite(effort)) else -1


ONE_STATE.takes(lambda nodes, columns, nv: SIZE * nodes)


_door = door("hybrid_dynamics", Call(hybrid_dynamics_entry, "B q v a tau prescribed W > >",
                                     lambda model: [(model.nv,)] * 2, Hybrid))


def hybrid_dynamics(model: RobotModel, q: ArrayLike, v: ArrayLike, a: ArrayLike, tau: ArrayLike,
                    prescribed: ArrayLike | Sequence[str], external_wrenches: Any = None, *,
                    friction: Friction | None = None, joint_wrenches: bool | None = None) -> Hybrid:
    """Hybrid dynamics: accelerations of some coordinates and efforts of the others given, the rest computed; O(n).

    K Table 4: the articulated-body algorithm (ABA) with prescribed accelerations (Featherstone's hybrid dynamics).
    prescribed: mask (nv,) bool of the velocity coordinates with given `a` and unknown `tau`, or names of joints or
    coordinates (`model.velocity_names`). For the others `tau` is given and `a` unknown; entries of unknowns are
    ignored, but must be finite. All shapes (nv,) or (N, nv); external_wrenches and friction as in `inverse_dynamics`.
    Raises `RbdError` for wrong input, and `SingularMassMatrix`, as `forward_dynamics`, if the unknown accelerations are
    not determined. joint_wrenches=True adds the joint wrenches to the result.

        >>> model = rbd.sample("two_link")
        >>> found = rbd.hybrid_dynamics(model, [0.3, 0.5], [0.0, 0.0], [1.0, 0.0], [0.0, 2.0], ["shoulder"])
        >>> found.acceleration.round(3), found.effort.round(3)
        (array([1.   , 0.572]), array([4.68, 2.  ]))
    """
    if external_wrenches is None and friction is None and not joint_wrenches and (
            quick := _door(model, q, v, a, tau, prescribed)) is not None:
        return quick    # type: ignore[no-any-return]
    if friction is not None:
        mask, law = prescribed_mask(model, prescribed), fitting(model, friction)
        speed = shaped(model, rates={"v": v}).arrays[0]
        result: Hybrid = completed(
            lambda: hybrid_dynamics(model, q, v, a, left_over(model, friction, v, tau), mask, external_wrenches),
            lambda bare: Hybrid(bare.acceleration,
                                np.where(mask | np.isnan(bare.effort), law.add(speed, bare.effort), tau)))
        if joint_wrenches:
            result._carrying(wrenches_of_joints(model, q, v, result.acceleration, external_wrenches))
        return result
    if joint_wrenches:
        result = hybrid_dynamics(model, q, v, a, tau, prescribed, external_wrenches)
        result._carrying(wrenches_of_joints(model, q, v, result.acceleration, external_wrenches))
        return result
    mask = prescribed_mask(model, prescribed)
    inputs = shaped(model, positions={"q": q}, rates={"v": v, "a": a, "tau": tau})
    result = Hybrid(inputs.empty(model.nv), inputs.empty(model.nv))

    def of_row(row: int) -> Hybrid:
        q, v, a, tau = (x[row] for x in inputs.arrays)
        return hybrid_dynamics(model, q, v, a, tau, mask, wrenches_of(external_wrenches, row))

    status = hybrid_dynamics_batch.call(
        model._block, *inputs.flat, mask, node_wrenches(model, external_wrenches, inputs.batch), inputs.count,
        result.acceleration.reshape(-1), result.effort.reshape(-1))
    solved(status, inputs, rows=(result, of_row), **result._asdict())
    return result


def prescribed_mask(model: RobotModel, prescribed: ArrayLike | Sequence[str]) -> NDArray[np.bool_]:
    """The boolean mask (nv,) of a mask or of names of joints and velocity coordinates."""
    if not hasattr(model, "nv"):
        raise not_a_model(model)
    if isinstance(prescribed, str):
        prescribed = [prescribed]
    array = np.asarray(prescribed)
    if array.dtype == bool:
        if array.shape != (model.nv,):
            raise RbdError(f"prescribed has shape {array.shape}, expected ({model.nv},): one per coordinate")
        return np.ascontiguousarray(array)
    mask = np.zeros(model.nv, dtype=bool)
    if array.size == 0:
        return mask
    if array.ndim != 1 or array.dtype.kind != "U":
        raise RbdError(f"prescribed: expected a mask of {model.nv} bools or names of joints, got {shown(prescribed)}")
    for name in array.tolist():
        if name in model.velocity_names:
            mask[model.velocity_names.index(name)] = True
        else:
            joint = model.joint(name)
            mask[joint.idx_v:joint.idx_v + joint.nv] = True
    return mask
