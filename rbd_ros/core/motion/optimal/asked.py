"""From the arguments of `optimize_motion` to a checked task, of an open chain or of a mechanism with loops."""
from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...actuation.friction import friction_of
from ...errors import RbdError
from ...model.robot_model import RobotModel
from ...model.state import node_wrenches
from ..closed.closed_chain import ClosedChain, closed_chain, closed_posture
from ..splines import Basis, basis
from ..trajectory import Reference
from .limits import checked_limits
from .task import (
    Task, check_ends, check_model, checked_duration, checked_objective, checked_waypoints, end_state,
)

Array = NDArray[np.float64]
CONSISTENT = 1e-6    # of given rates with the loops, relative


def asked(model: Any, start: Any, goal: Any, duration: Any, objective: Any, limits: Any, waypoints: Any, wrenches: Any,
          smoothing: float, degree: int, control_points: int, constraints: Any = None, actuated: Any = None,
          minimize: str = "effort") -> Task:
    """What `optimize_motion` was asked; `RbdError` for what is malformed, or contradicts itself at once."""
    check_model(model, constraints)
    B = basis(degree, control_points)
    node_wrenches(model, wrenches, None)
    fixed, bounds = checked_duration(duration)
    weights, kept = checked_objective(model, objective), checked_limits(model, limits)
    friction = friction_of(model, smoothing)
    if constraints is None:
        if actuated is not None:
            raise RbdError("actuated is for mechanisms with loops: it needs constraints; without them all joints have "
                           "motors")
        first = end_state(model, start, "start", B.end_derivatives)
        task = Task(model, B, first, end_state(model, goal, "goal", B.end_derivatives), fixed, bounds, weights, kept,
                    *checked_waypoints(model, waypoints), wrenches, friction)
    else:
        begin = start.q if isinstance(start, Reference) else start
        chain = closed_chain(model, constraints, actuated, minimize, weights.get("effort", np.ones(model.nv)), friction,
                             wrenches, begin)
        times, points = checked_waypoints(model, waypoints, model.nq)
        via = [closed_posture(model, constraints, q, f"waypoints[{i}]") for i, q in enumerate(points)]
        ends = [_closed_end(chain, B, value, name) for name, value in (("start", start), ("goal", goal))]
        postures = np.array([ends[0][0], ends[1][0], *via])
        own = postures[:, chain.places[chain.independent]]
        task = Task(model, B, ends[0][1], ends[1][1], fixed, bounds, weights, kept, times, own[2:], wrenches, friction,
                    chain, postures)
    if task.uses_rate and wrenches is not None:
        raise RbdError("effort_rate: its derivatives are not known under external wrenches")
    if task.uses_rate and task.chain is not None:
        raise RbdError("effort_rate: its derivatives are not known for mechanisms with loops")
    check_ends(task)
    return task


def _closed_end(chain: ClosedChain, B: Basis, value: Any, name: str) -> tuple[Array, Array]:
    """Posture (nq,), and rows u, u̇, ü, … (derivatives, n) of an end."""
    model: RobotModel = chain.model
    given = value if isinstance(value, Reference) else Reference(value, np.zeros(model.nv), np.zeros(model.nv))
    q = closed_posture(model, chain.constraints, given.q, name)
    rows = end_state(model, given._replace(q=np.zeros(model.nv)), name, B.end_derivatives)
    own = rows[:, chain.independent]
    own[0] = q[chain.places[chain.independent]]
    at = chain.lifted(q[None], own[1:2], own[2:3])
    for what, wanted, has in (("velocity", rows[1], at.v[0]), ("acceleration", rows[2], at.a[0])):
        # a posture at rest keeps the loops as it is; a reference says so itself
        if isinstance(value, Reference) and np.abs(wanted - has).max() > CONSISTENT * max(1.0, np.abs(has).max()):
            j = int(np.argmax(np.abs(wanted - has)))
            raise RbdError(f"{name}: the {what} of joint '{model.velocity_names[j]}' is {wanted[j]:.6g}, with which "
                           f"the loops do not stay closed: {has[j]:.6g}")
    return q, own


def check_way(task: Task, u: Array) -> None:
    """`RbdError` where the loops cannot be closed along a first guess u (N, n), or it ends in another posture."""
    assert task.chain is not None and task.postures is not None
    chain, N = task.chain, len(u)
    q = chain.along(u, chain.start)
    bad = ~np.isfinite(q).all(axis=1)
    if bad.any():
        raise RbdError(f"on the way of least jerk, the loops of '{task.model.name}' cannot be closed at "
                       f"{int(np.argmax(bad)) / (N - 1):.3g} of the duration: give waypoints around, or a goal nearer")
    apart = np.abs(task.model.difference(task.postures[1], q[-1]))
    if apart.max() > CONSISTENT:
        j = int(np.argmax(apart))
        raise RbdError("goal: on the way there the mechanism comes to another posture, "
                       f"'{task.model.velocity_names[j]}' differs by {apart[j]:.3g}: give waypoints, or that posture")
