"""Start and goal of a motion: states, or initial postures for poses of bodies."""
from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...dynamics.constrained.projection import project
from ...errors import RbdError
from ...model.constraints import ConstraintSet
from ...model.robot_model import RobotModel
from ..closed.closed_chain import ClosedChain
from ..closed.closed_goal import ClosedGoal
from ..closed.mechanism import closed_posture
from .body_goal import BodyGoal
from ..splines import Basis
from ..trajectory import Reference
from ..optimal.checked import end_state
from ..optimal.limits import CheckedLimits

Array = NDArray[np.float64]
CONSISTENT = 1e-6    # relative tolerance of given rates with the loops


class ClosedEnds(NamedTuple):
    """Ends of a closed-loop mechanism: postures (2 + W, nq) of ends and waypoints, rows u, u̇, ü, … (derivatives, n) of
    the ends, and the poses among them.
    """

    chain: ClosedChain
    postures: Array
    start: Array
    goal: Array
    poses: tuple[ClosedGoal | None, ClosedGoal | None]


def open_ends(model: RobotModel, start: Any, goal: Any, derivatives: int, via: Array, limits: CheckedLimits,
               until: float) -> tuple[Array, Array]:
    """Rows q, v, a, … (derivatives, nv) of start and goal; for a pose, of a posture near the next point of the motion.
    """
    low, high = limits.position_lower, limits.position_upper
    if not isinstance(goal, BodyGoal):
        last = end_state(model, goal, "goal", derivatives)
    if isinstance(start, BodyGoal):
        now = time.perf_counter()
        near = np.clip(model.neutral(), low, high) if isinstance(goal, BodyGoal) else last[0]
        then = now + 0.5 * (until - now) if isinstance(goal, BodyGoal) else until
        start = start.posture(model, via[0] if len(via) else near, low, high, then, "start")
    first = end_state(model, start, "start", derivatives)
    if isinstance(goal, BodyGoal):
        goal = goal.posture(model, via[-1] if len(via) else first[0], low, high, until)
        last = end_state(model, goal, "goal", derivatives)
    return first, last


def closed_ends(model: RobotModel, constraints: ConstraintSet, mechanism: Callable[[Any], ClosedChain], B: Basis,
                start: Any, goal: Any, points: Array, limits: CheckedLimits, until: float) -> ClosedEnds:
    """Ends and waypoints (W, nq). mechanism: creates the chain at a posture (nq,). Postures of poses are searched near
    the next point of the motion, by the time `until` (`time.perf_counter`).
    """
    state = next((end for end in (start, goal) if not isinstance(end, BodyGoal)), None)
    if state is None:
        begin: Any = project(model, constraints, model.neutral()).q
    else:
        begin = state.q if isinstance(state, Reference) else state
    if state is goal:
        closed_posture(model, constraints, begin, "goal")    # raises the error for the goal
    chain = mechanism(begin)
    passed = [closed_posture(model, constraints, q, f"waypoints[{i}]") for i, q in enumerate(points)]
    poses: list[ClosedGoal | None] = [None, None]
    at_rest = np.zeros((B.end_derivatives, chain.size))
    independent = chain.places[chain.independent]

    def end(place: int, value: Any, near: Array, then: float) -> tuple[Array, Array]:
        name = ("start", "goal")[place]
        if not isinstance(value, BodyGoal):
            return _given_end(chain, B, value, name)
        poses[place] = pose = ClosedGoal(value, chain, near)
        q = pose.posture(limits.position_lower, limits.position_upper, then, name)
        rows = at_rest.copy()
        rows[0] = q[independent]
        return q, rows

    now = time.perf_counter()
    # the posture of a start pose is searched near the first waypoint or the goal, and likewise for a goal pose
    q0, first = end(0, start, passed[0] if passed else chain.start, now + 0.5 * (until - now))
    q1, last = end(1, goal, passed[-1] if passed else q0, until)
    return ClosedEnds(replace(chain, start=q0), np.array([q0, q1, *passed]), first, last, (poses[0], poses[1]))


def _given_end(chain: ClosedChain, B: Basis, value: Any, name: str) -> tuple[Array, Array]:
    """Posture (nq,), and rows u, u̇, ü, … (derivatives, n) of an end."""
    model: RobotModel = chain.model
    reference = value if isinstance(value, Reference) else Reference(value, np.zeros(model.nv), np.zeros(model.nv))
    q = closed_posture(model, chain.constraints, reference.q, name)
    rows = end_state(model, reference._replace(q=np.zeros(model.nv)), name, B.end_derivatives)
    independent = rows[:, chain.independent]
    independent[0] = q[chain.places[chain.independent]]
    lifted = chain.lifted(q[None], independent[1:2], independent[2:3])
    for what, wanted, has in (("velocity", rows[1], lifted.v[0]), ("acceleration", rows[2], lifted.a[0])):
        # a posture at rest satisfies the loops; the rates of a reference are checked
        if isinstance(value, Reference) and np.abs(wanted - has).max() > CONSISTENT * max(1.0, np.abs(has).max()):
            j = int(np.argmax(np.abs(wanted - has)))
            raise RbdError(f"{name}: the {what} of joint '{model.velocity_names[j]}' is {wanted[j]:.6g}, with which "
                           f"the loops do not stay closed: {has[j]:.6g}")
    return q, independent
