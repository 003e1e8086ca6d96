"""Start and goal of a motion: states, or initial postures for poses of bodies."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...compiled.computing_time import computing_time
from ...dynamics.constrained.mechanism import Mechanism, places
from ...dynamics.constrained.projection import project
from ...dynamics.constrained.values import evaluate
from ...errors import RbdError
from ...model.constraints import ConstraintSet
from ...model.robot_model import RobotModel
from .body_goal import BodyGoal, EndPose
from ..splines import Basis
from ..trajectory import Reference
from ..optimal.arguments import end_state
from ..optimal.limits import CheckedLimits

Array = NDArray[np.float64]
GIVEN = 1e-6         # m, rad: largest residual of loops of given ends and waypoints
CONSISTENT = 1e-6    # relative tolerance of given rates with the loops


class Ends(NamedTuple):
    """Ends in the coordinates of a chain: postures (2 + W, nq) of ends and waypoints, rows u, u̇, ü, … (derivatives, n)
    of the ends, and the poses among them.
    """

    chain: Mechanism
    postures: Array
    start: Array
    goal: Array
    poses: tuple[EndPose | None, EndPose | None]


def ends(model: RobotModel, constraints: ConstraintSet, mechanism: Callable[[Array], Mechanism], B: Basis,
         start: Any, goal: Any, points: Array, limits: CheckedLimits, until: float) -> Ends:
    """Ends and waypoints (W, nq). mechanism: creates the chain at a posture (nq,). Postures of poses are searched near
    the next point of the motion, by the time `until` (`computing_time`).
    """
    low, high = limits.position_lower, limits.position_upper
    state = next((end for end in (start, goal) if not isinstance(end, BodyGoal)), None)
    if state is None:
        begin: Any = model.neutral()
        index = places(model)
        plain = index >= 0
        begin[index[plain]] = np.clip(begin[index[plain]], low[plain], high[plain])
        begin = project(model, constraints, begin).q
    else:
        begin = closed_posture(model, constraints, state, "goal" if state is goal else "start")
    chain = mechanism(begin)
    via = [closed_posture(model, constraints, q, f"waypoints[{i}]") for i, q in enumerate(points)]
    poses: list[EndPose | None] = [None, None]
    at_rest = np.zeros((B.end_derivatives, chain.size))

    def end(place: int, value: Any, near: Array, deadline: float) -> tuple[Array, Array]:
        name = ("start", "goal")[place]
        if not isinstance(value, BodyGoal):
            return _given_end(chain, B, value, name)
        poses[place] = pose = EndPose(value, chain, near)
        q = pose.posture(low, high, deadline, name)
        rows = at_rest.copy()
        rows[0] = q[chain.own]
        return q, rows

    now = computing_time()
    # the posture of a start pose is searched near the first waypoint or the goal, and likewise for a goal pose
    deadline = now + 0.5 * (until - now) if state is None else until
    q0, first = end(0, start, via[0] if via else begin, deadline)
    q1, last = end(1, goal, via[-1] if via else q0, until)
    return Ends(chain, np.array([q0, q1, *via]), first, last, (poses[0], poses[1]))


def closed_posture(model: RobotModel, constraints: ConstraintSet, value: Any, name: str) -> Array:
    """The posture (nq,) of an end or waypoint; raises `RbdError` if its loops are open."""
    q: Array = end_state(model, value, name, 1, model.nq)[0]
    zero = np.zeros(model.nv)
    residual = np.abs(evaluate(model, constraints, q, zero, zero, 0).value)
    if residual.max(initial=0.0) > GIVEN:
        row = int(np.argmax(residual))
        raise RbdError(f"{name}: {constraints.row_names[row]} is off by {residual[row]:.3g}; rbd.project closes the "
                       "loops")
    return q


def _given_end(chain: Mechanism, B: Basis, value: Any, name: str) -> tuple[Array, Array]:
    """Posture (nq,), and rows u, u̇, ü, … (derivatives, n) of an end."""
    model: RobotModel = chain.model
    q = closed_posture(model, chain.constraints, value, name)
    reference = value if isinstance(value, Reference) else Reference(q, np.zeros(model.nv), np.zeros(model.nv))
    rows = end_state(model, reference._replace(q=np.zeros(model.nv)), name, B.end_derivatives)
    independent = rows[:, chain.independent]
    independent[0] = q[chain.own]
    if isinstance(value, Reference) and len(chain.dependent):    # a posture at rest satisfies the loops
        lifted = chain.lifted(q[None], independent[1:2], independent[2:3])
        for quantity, requested, consistent in (("velocity", rows[1], lifted.v[0]),
                                                ("acceleration", rows[2], lifted.a[0])):
            if np.abs(requested - consistent).max() > CONSISTENT * max(1.0, np.abs(consistent).max()):
                j = int(np.argmax(np.abs(requested - consistent)))
                raise RbdError(f"{name}: the {quantity} of joint '{model.velocity_names[j]}' is {requested[j]:.6g}, "
                               f"with which the loops do not stay closed; expected {consistent[j]:.6g}")
    return q, independent
