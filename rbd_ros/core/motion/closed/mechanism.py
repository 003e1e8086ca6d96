"""Construction of a `ClosedChain` from constraints and a posture: independent coordinates, validation."""
from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...dynamics.friction import Friction
from ...dynamics.constrained.inverse import MINIMIZE, RANK_TOLERANCE
from ...dynamics.constrained.values import evaluate
from ...dynamics.hybrid import prescribed_mask
from ...errors import RbdError, unknown_name
from ...model.constraints import ConstraintSet, bound_to
from ...model.robot_model import RobotModel
from .closed_chain import ClosedChain, Index, places

Array = NDArray[np.float64]
GIVEN = 1e-6        # m, rad: largest residual of loops of given ends and waypoints
SINGULAR = 1e7      # largest condition number of the dependent columns


def closed_chain(model: RobotModel, constraints: Any, actuated: Any, minimize: str, weights: Array,
                 friction: Friction, wrenches: Any, start: Any) -> ClosedChain:
    """The validated mechanism at a posture `start` (nq,). actuated: mask or names. weights: of efforts (nv,)."""
    bound = bound_to(model, constraints)
    if bound.contacts.rows:
        raise RbdError(f"optimize_motion: rolling and sliding contacts ({', '.join(bound.contacts.names)}) are not "
                       "supported: what rolls has no positions that follow from those of the motors")
    if bound.users:
        raise RbdError("optimize_motion: functions of a UserConstraint or NonholonomicConstraint do not "
                       "tell how they change")
    if minimize not in MINIMIZE:
        raise unknown_name("quantity to minimize", minimize, MINIMIZE)
    if actuated is None:
        raise RbdError("optimize_motion: which joints of a mechanism with loops have motors? Give actuated=[…]")
    mask = prescribed_mask(model, actuated)
    motors = np.flatnonzero(mask)
    q = closed_posture(model, constraints, start, "start")
    zero = np.zeros((1, model.nv))
    A = evaluate(model, constraints, q[None], zero, zero, 1).jacobian[0]
    independent = _independent(model, A, mask)
    motor_weights = weights[motors] if len(motors) and weights[motors].min() > 0.0 else np.ones(len(motors))
    chain = ClosedChain(model, constraints, independent, motors, minimize, motor_weights, friction, wrenches, q)
    state = chain.lifted(q[None], *np.zeros((2, 1, chain.size)))
    rank = np.linalg.matrix_rank(state.T[0, motors], tol=1e-6) if len(motors) else 0
    if rank < chain.size:
        names = ", ".join(model.velocity_names[j] for j in motors) or "none"
        raise RbdError(f"model '{model.name}' is under-actuated at the start: it moves in {chain.size} ways, and the "
                       f"actuated coordinates ({names}) act on {rank} of them")
    return chain


def closed_posture(model: RobotModel, constraints: ConstraintSet, value: Any, name: str) -> Array:
    """A posture (nq,) with closed loops; raises `RbdError` if the given one is open."""
    try:
        q = np.array(value, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        q = np.zeros(0)
    if q.shape != (model.nq,):
        raise RbdError(f"{name}: expected positions ({model.nq},) of all joints of '{model.name}', got shape {q.shape}")
    zero = np.zeros(model.nv)
    value_of = evaluate(model, constraints, q, zero, zero, 0).value
    if np.abs(value_of).max(initial=0.0) > GIVEN:
        row = int(np.argmax(np.abs(value_of)))
        raise RbdError(f"{name}: {constraints.row_names[row]} is off by {abs(value_of[row]):.3g}; rbd.project closes "
                       "the loops")
    return q


def _independent(model: RobotModel, A: Array, mask: NDArray[np.bool_]) -> Index:
    """Independent coordinates, motors first, such that the dependent ones are well conditioned."""
    from scipy.linalg import qr    # local import: saves 20 MB in nodes without planning

    size = np.linalg.svd(A, compute_uv=False)
    rank = int(np.sum(size > RANK_TOLERANCE * size.max(initial=0.0)))
    count = model.nv - rank
    if not count:
        raise RbdError(f"model '{model.name}' cannot move: its constraints have rank {rank}, as many as coordinates")
    plain = places(model) >= 0
    _, _, Vt = np.linalg.svd(A)
    tangent = Vt[rank:].T    # (nv, count), orthonormal
    chosen: list[int] = []
    for usable in (np.flatnonzero(mask & plain), np.flatnonzero(plain)):
        candidates = [j for j in usable if j not in chosen]
        if not candidates or len(chosen) == count:
            continue
        # remaining freedom with the chosen coordinates fixed
        free = tangent @ np.linalg.svd(tangent[chosen])[2][len(chosen):].T if chosen else tangent
        triangle, order = qr(free[candidates].T, mode="r", pivoting=True)
        sizes = np.abs(np.diagonal(triangle))
        chosen += [candidates[i] for i in order[:len(sizes)][sizes > 1.0 / SINGULAR]][:count - len(chosen)]
    if len(chosen) < count:
        raise RbdError(f"model '{model.name}': no {count} coordinates of joints with a plain position say where its "
                       "other joints are")
    return np.sort(np.array(chosen, dtype=np.int64))

