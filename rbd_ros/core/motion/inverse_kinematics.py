"""Inverse kinematics: postures that bring a body to a pose, a position or an axis, within limits."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..dynamics.constrained.mechanism import Index, places
from ..errors import RbdError, shown
from ..lie import se3
from ..model import block
from ..model.inertia import Array, finite
from ..model.joint_kinds import PRISMATIC, REVOLUTE, SPHERICAL, SPHERICAL_EXP
from ..model.robot_model import FARTHEST, RobotModel
from ..model.scalars import positive, whole_number
from ..model.state import real, shaped
from .damped_newton import (
    ALPHA, ANGULAR, AXIAL, AXIS, FIRST, LINEAR, LOWER, PLACE, POINT, POSITIONS, POSTURES, RANGE, ROWS, STARTS, TABLE,
    TASK, TOLERANCE, TURN, UPPER, goals_entry, postures_entry,
)
from .position_limits import SLACK, coordinate_limits

NEAREST_OF = 12      # postures of which the nearest to the preferred one is taken
MOST_STARTS = 200    # by default
FREE_STARTS = 20     # of the search without limits that tells why a goal is not reached
ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class InverseKinematics:
    """q (nq,): the posture, within limits. converged: whether it is at the goal, within the tolerance. error (2,):
    distance (m) and angle (rad) from the goal. reason: why it is not reached, or "". A batch of N goals adds a leading
    axis everywhere; its `reason` is a tuple.

        >>> model = rbd.sample("iiwa")
        >>> far = rbd.inverse_kinematics(model, "link_7", [0.0, 0.0, 3.0])
        >>> far.converged, far.reason[:12]
        (False, 'out of reach')
    """

    q: Array
    converged: Any
    error: Array
    reason: Any


@dataclass(frozen=True, eq=False)
class Chain:
    """A body and the joints that move it: velocity coordinates, the table of `damped_newton` with the model's limits,
    which positions (nq,) move it, the posture (nq,) in the middle of the limits, where the first joint is, and the most
    that the body's origin gets away from there (m; infinite if unknown).
    """

    model: RobotModel
    link: int
    columns: Index
    table: Array
    moving: NDArray[np.bool_]
    middle: Array
    origin: Array
    reach: float

    @property
    def length(self) -> float:
        """The length (m) that counts as much as a radian."""
        return 0.5 * self.reach if 0.0 < self.reach < np.inf else 0.5

    def limited(self, low: Array, high: Array) -> Array:
        """The table with other limits (nv,)."""
        table = self.table.copy()
        table[LOWER], table[UPPER] = low, high
        _set_ranges(self.model, table)
        return table


def chain_to(model: RobotModel, body: str) -> Chain:
    """The chain to a body, kept with the model."""
    link = model.body_index(body)
    if link not in model._chains:
        model._chains[link] = _chain(model, link)
    return model._chains[link]    # type: ignore[no-any-return]


def _chain(model: RobotModel, link: int) -> Chain:
    record = model._block[int(model._block[block.LINK_START]) + block.LINK * link:][:block.LINK]
    low, high = coordinate_limits(model)
    columns: list[int] = []
    moving = np.zeros(model.nq, dtype=bool)
    origin, reach = np.zeros(3), 0.0
    away = record[block.LINK_POSITION:][:3]
    i = int(record[block.LINK_NODE])
    while i >= 0:
        row, kind = model._kinds[i]
        first = int(row[block.IV])
        columns += range(first, first + kind.nv)
        moving[int(row[block.IQ]):][:kind.nq] = True
        reach += float(np.linalg.norm(away))
        if row[block.TYPE] == PRISMATIC:
            slide = row[block.RATIO] * np.array([low[first], high[first]]) + row[block.OFFSET]
            reach += float(np.abs(slide).max())
        elif row[block.TYPE] not in (REVOLUTE, SPHERICAL, SPHERICAL_EXP):
            reach = np.inf
        origin = away = row[block.POSITION:][:3]
        i = int(row[block.PARENT])
    table = np.zeros((TABLE, model.nv))
    own = np.unique(np.array(columns, dtype=np.int64))
    table[LOWER], table[UPPER], table[PLACE] = low, high, places(model)
    table[ALPHA, own] = np.sqrt(_primes(len(own))) % 1.0
    table[TURN] = _whole_turns(model)
    _set_ranges(model, table)
    return Chain(model, link, own, table, moving, middle(model), np.array(origin), reach)


def _primes(count: int) -> Array:
    primes: list[int] = []
    number = 2
    while len(primes) < count:
        if all(number % prime for prime in primes):
            primes.append(number)
        number += 1
    return np.array(primes, dtype=np.float64)


def _whole_turns(model: RobotModel) -> NDArray[np.bool_]:
    """Velocity coordinates (nv,) by whose whole turns no body moves: those of a single revolute joint."""
    moves, turns = np.zeros(model.nv), np.zeros(model.nv, dtype=bool)
    for row, kind in model._kinds:
        first = int(row[block.IV])
        moves[first:first + kind.nv] += 1
        turns[first] = row[block.TYPE] == REVOLUTE and abs(row[block.RATIO]) == 1.0
    return turns & (moves == 1)


def _set_ranges(model: RobotModel, table: Array) -> None:
    """Set the ranges of starts by the limits: as in `RobotModel.random_configuration`, but at most a whole turn; of
    quaternions, around the first start.
    """
    place = table[PLACE].astype(np.int64)
    lengths = np.zeros(model.nv, dtype=bool)
    for row, kind in model._kinds:
        lengths[[int(row[block.IV]) + i for i in kind.v_lengths]] = True
    reach = np.where(lengths, 1.0, np.pi)
    low, high = (np.where(np.abs(limit) > FARTHEST, np.nan, limit) for limit in (table[LOWER], table[UPPER]))
    first = np.where(np.isnan(low), np.where(high <= -reach, high - 2.0 * reach, -reach), low)
    last = np.where(np.isnan(high), np.where(first >= reach, first + 2.0 * reach, reach), high)
    wide = (place >= 0) & (table[TURN] > 0.0) & (last - first > 2.0 * np.pi)
    table[FIRST] = np.where(wide, 0.5 * (first + last) - np.pi, first)
    table[RANGE] = np.where(wide, 2.0 * np.pi, last - first)


def middle(model: RobotModel) -> Array:
    """The posture (nq,) in the middle of the limits, of unlimited joints as near to neutral as they allow."""
    low, high = coordinate_limits(model)
    index = places(model)
    q, plain = model.neutral(), index >= 0
    with np.errstate(invalid="ignore"):
        centre = np.where(np.isfinite(low) & np.isfinite(high), 0.5 * low + 0.5 * high, np.clip(0.0, low, high))
    q[index[plain]] = centre[plain]
    return q


def inverse_kinematics(model: RobotModel, body: str, pose: ArrayLike, q: ArrayLike | None = None, *,
                       preferred: ArrayLike | None = None, axis: ArrayLike | None = None,
                       offset: ArrayLike = (0.0, 0.0, 0.0), tolerance: float = 1e-6, starts: int = MOST_STARTS
                       ) -> InverseKinematics:
    """Posture within the position limits at which a body has a pose: `InverseKinematics`, which says whether, or how
    far from it and why.

    pose: (4, 4), world from body; or the position (3,) alone (m). q (nq,): where the search begins; None: `preferred`,
    or the middle of the limits. Other starts follow, the same in each call, until one gets there, or `starts` have
    not. Angles that may turn more than once are those nearest to q. preferred (nq,): of several postures the nearest to
    this one, led along those of a redundant arm as near as it goes. Joints that do not move the body stay as there, or
    as in q.
    axis (3,): of the orientation only the direction of this axis of the body counts. offset (3,): a point of the body
    (m, its axes) that comes to the position of the pose instead of its origin. tolerance: m and rad.
    A batch of N poses (N, 4, 4), (N, 3), or of q or preferred (N, nq), gives N results, each as if it were alone. Equal
    limits count as none, a q up to 1 mrad or 1 mm beyond as at its limit. Any joint kinds, floating bases, mimic
    joints, specialized models. Raises `RbdError` for an unknown body, wrong shapes, numbers that are not finite, what
    is no rotation, and q beyond limits.

        >>> model = rbd.sample("iiwa")
        >>> pose = rbd.forward_kinematics(model, [0.3, 0.5, 0.1, -1.2, 0.2, 0.8, 0.4])[-1]
        >>> found = rbd.inverse_kinematics(model, "link_7", pose)
        >>> found.converged, bool(np.allclose(rbd.forward_kinematics(model, found.q)[-1], pose))
        (True, True)
    """
    inputs = shaped(model, positions={name: value for name, value in (("q", q), ("preferred", preferred))
                                      if value is not None})
    inputs.check_values()
    chain = chain_to(model, body)
    goals, pose_batch, oriented = _goals(pose)
    tolerance = positive(tolerance, "tolerance", "number (m and rad)")
    task = task_of(chain, oriented, axis, offset, tolerance, whole_number(starts, "starts", "number of starts"))
    batch = inputs.batch if pose_batch is None else pose_batch
    if None not in (inputs.batch, pose_batch) and inputs.batch != pose_batch:
        raise RbdError(f"batches of different length: pose has {pose_batch}, q or preferred {inputs.batch}")
    given = dict(zip(inputs.names, inputs.arrays, strict=True))
    if q is not None:
        _check_within(chain, given["q"])
    count = 1 if batch is None else batch
    preferred = given.get("preferred")
    start = given.get("q", chain.middle if preferred is None else preferred)
    if preferred is not None:
        start = np.where(chain.moving, start, preferred)
    found, errors = postures(chain, goals, task, chain.table, start, preferred, count)
    inputs.finite(q=found, error=errors)
    converged: NDArray[np.bool_] = np.all(errors <= tolerance, axis=1)
    reasons = [""] * count
    for k in np.flatnonzero(~converged):
        reasons[k] = diagnosis(chain, goals[k % len(goals)], task, chain.table, found[k], errors[k])
    if batch is None:
        return InverseKinematics(found[0], bool(converged[0]), errors[0], reasons[0])
    return InverseKinematics(found, converged, errors, tuple(reasons))


def postures(chain: Chain, goals: Array, task: Array, table: Array, start: Array, preferred: Array | None,
             count: int = 1) -> tuple[Array, Array]:
    """Postures (N, nq) for goals (N, 12), from starts (N, nq), and their errors (N, 2), unchecked; each of the inputs
    may also be one for all.
    """
    model = chain.model
    q, errors = np.empty((count, model.nq)), np.full((count, 2), np.inf)
    q[:] = start
    near = np.empty((0 if preferred is None else count, model.nq))
    near[:] = 0.0 if preferred is None else preferred
    each = goals if len(goals) == count else np.tile(goals, (count, 1))
    postures_entry.call(model._block, chain.link, each, task, table, chain.columns, q, near, errors,
                        np.zeros((2, 6 * model.nv)), np.zeros((ROWS, max(model.nv, 36))),
                        np.empty((POSITIONS, model.nq)))
    return q, errors


def _goals(pose: ArrayLike) -> tuple[Array, int | None, bool]:
    """Goals (N, 12), length of the batch, and whether orientations are given."""
    array = real(pose, "pose", "(4, 4), (3,) or a batch of these")
    if array.ndim in (1, 2) and array.shape[-1] == 3:
        goals = np.concatenate([np.broadcast_to(np.eye(3).reshape(9), (*array.shape[:-1], 9)), array], axis=-1)
        if not np.isfinite(goals).all():
            raise RbdError(f"pose: expected finite numbers, got {shown(pose)}")
        return goals.reshape(-1, 12), None if array.ndim == 1 else len(array), False
    if array.ndim not in (2, 3) or array.shape[-2:] != (4, 4):
        raise RbdError(f"pose has shape {array.shape}, expected (4, 4), a position (3,), or a batch (N, 4, 4), (N, 3)")
    count = 1 if array.ndim == 2 else len(array)
    goals = np.empty((count, 12))
    if not goals_entry.call(array.reshape(count, 16), goals):
        se3.checked_pose("pose", array)    # which says why
    return goals, None if array.ndim == 2 else count, True


def task_of(chain: Chain, oriented: bool, axis: ArrayLike | None, offset: ArrayLike, tolerance: float, starts: int
            ) -> Array:
    """The task of `damped_newton`; raises `RbdError` for a wrong axis or offset."""
    task = np.zeros(TASK)
    task[ANGULAR], task[LINEAR] = float(oriented), 1.0 / chain.length
    task[POINT:POINT + 3] = finite(offset, (3,), "offset")
    task[TOLERANCE], task[STARTS], task[POSTURES] = tolerance, starts, NEAREST_OF
    if axis is not None:
        direction = finite(axis, (3,), "axis")
        length = float(np.linalg.norm(direction))
        if not oriented or not 0.0 < length < np.inf:
            raise RbdError(f"axis: expected a direction that is not zero, and a pose (4, 4), got {shown(axis)}"
                           + ("" if oriented else " and a position"))
        task[AXIAL], task[AXIS:AXIS + 3] = 1.0, direction / length
    return task


def _check_within(chain: Chain, q: Array) -> None:
    """Raise `RbdError` naming the joint that starts beyond a limit."""
    columns = chain.columns[chain.table[PLACE, chain.columns] >= 0.0]
    low, high = chain.table[LOWER, columns], chain.table[UPPER, columns]
    own = q.reshape(-1, chain.model.nq)[:, chain.table[PLACE, columns].astype(np.int64)]
    beyond = np.maximum(low - own, own - high)
    if beyond.max(initial=0.0) > SLACK:
        k, i = np.unravel_index(int(np.argmax(beyond)), beyond.shape)
        raise RbdError(f"q: joint '{chain.model.velocity_names[columns[i]]}' at {own[k, i]:.6g} is beyond its limit "
                       f"{high[i] if own[k, i] > high[i] else low[i]:.6g} (rad or m)")


def diagnosis(chain: Chain, goal: Array, task: Array, table: Array, q: Array, error: Array) -> str:
    """Why a goal (12,) is not reached, of which q (nq,) is the nearest posture found."""
    model = chain.model
    far = float(np.linalg.norm(goal[9:] - chain.origin))
    reach = chain.reach + float(np.linalg.norm(task[POINT:POINT + 3]))
    if far > reach * (1.0 + ROUNDING):
        return f"out of reach: {far:.4g} m from the first joint, of at most {reach:.4g} m"
    none = np.full(model.nv, np.inf)
    fewer = task.copy()
    fewer[STARTS] = min(task[STARTS], FREE_STARTS)
    found, errors = postures(chain, goal[None], fewer, chain.limited(-none, none), q, q)
    place = table[PLACE].astype(np.int64)
    beyond = [f"'{model.velocity_names[j]}' at {found[0, place[j]]:.4g}" for j in chain.columns if place[j] >= 0
              and not table[LOWER, j] - ROUNDING <= found[0, place[j]] <= table[UPPER, j] + ROUNDING]
    best = f"the nearest posture is off by {error[0]:.3g} m, {error[1]:.3g} rad"
    if (errors <= task[TOLERANCE]).all() and beyond:
        return f"position limits: the goal is reached beyond them, e.g. with {', '.join(beyond)}; {best}"
    if (errors > task[TOLERANCE]).any():
        return f"out of reach: not reached from any of {int(fewer[STARTS])} starts without position limits; {best}"
    return f"not found: none of {int(task[STARTS])} starts got there; {best}"
