"""What the parameters of node `cartesian` do, in its logic without ROS."""
from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from parameters import held_cases
from parameters.case import Case, Values
from parameters.held_cases import STILL
from parameters.torque_cases import Arm
from support.arm import Q, V, arm

import rbd_ros as rbd
from rbd_ros.core.lie.so3 import from_rpy, to_quaternion
from rbd_ros.runtime.control.cartesian import SETTLING

CARTESIAN = "cartesian"
AWAY = np.array([0.02, 0.03])    # rad, off the pose that is held
UPPER = {"end_effector": "upper"}    # at the shoulder: its pose leaves the elbow open
BENT = Q + np.array([0.0, 0.1])
NEAR_LIMIT = np.array([0.3, -2.98])


def effort(values: Values, at: Any = Q, v: Any = STILL, q: Any = Q) -> Any:
    """The effort beyond gravity of the arm that is held at a place, in a state."""
    made = Arm(CARTESIAN, values)
    for _ in range(SETTLING):
        made.state(at, STILL)
        made.now += 0.01
    return made.state(q, v) - rbd.gravity_effort(arm(), q)


off = partial(effort, q=Q + AWAY)


def springs(forces: Any, moment: float) -> Any:
    """Joint torques (2,) of a force (3,) on link lower, at the elbow, and a moment about the axis, at Q + AWAY."""
    s, c = np.sin(Q[0] + AWAY[0]), np.cos(Q[0] + AWAY[0])
    return np.array([forces @ [-0.4 * s, 0.0, -0.4 * c] + moment, moment])


class Goal:
    """The arm, held at Q, with a goal for link lower: this far away (m), turned about the axis of the joints (rad)."""

    def __init__(self, values: Values, distance: float = 0.0, angle: float = 0.0) -> None:
        self.arm = Arm(CARTESIAN, values)
        self.arm.state(v=STILL)
        pose = self.arm.made.pose
        self.start, quaternion = pose[:3, 3], to_quaternion(pose[:3, :3] @ from_rpy((0.0, angle, 0.0)))
        self.accepted = bool(self.arm.made.on_goal(
            self.arm.now, "", tuple(self.start + distance * np.eye(3)[0]), tuple(quaternion)))

    def target(self) -> Any:
        """(24,), 10 ms later."""
        self.arm.now += 0.01
        self.arm.state(v=STILL)
        return self.arm.made._aim.target

    def fastest(self, k: int) -> float:
        """Largest speed within 1 s; k: where it is in the target."""
        return max(float(np.linalg.norm(self.target()[k:k + 3])) for _ in range(100))


def until_halfway(values: Values) -> float:
    """Seconds to half of a way so short that the speed is not limited."""
    goal = Goal(values, 0.01)
    return 0.01 * next(k for k in range(1, 1000) if goal.target()[9] - goal.start[0] > 0.005)


def until_slower(values: Values) -> float:
    """Seconds from a twist until the target becomes slower."""
    goal = Goal(values)
    goal.arm.made.on_twist(goal.arm.now, "", (0.1, 0.0, 0.0), (0.0, 0.0, 0.0))
    speeds = [goal.target()[15] for _ in range(100)]
    return 0.01 * int(np.argmax(speeds))


def accepts_goal(values: Values) -> bool:
    return Goal(values, 0.5).accepted


def cases() -> dict[str, Case]:
    """By name of the parameter."""
    lower = [rbd.forward_kinematics(arm(), q)[-1][:3, 3] for q in (Q, Q + AWAY)]
    e, turned = lower[0] - lower[1], -AWAY.sum()
    soft, stiff = np.array([100.0, 300.0, 500.0]), [300.0] * 3
    axes = from_rpy((0.0, Q.sum(), 0.0))
    kp, kd = np.array([10.0, 20.0]), np.array([3.0, 4.0])
    return {
        **held_cases.cases(CARTESIAN),
        "end_effector": Case("upper", off, np.array([-20.0 * AWAY[0], 0.0]), {"posture.bandwidth": 0.0}),
        "law": Case("joint", off, -np.array([10.0, 20.0]) * AWAY, {"gains.kp": [10.0, 20.0]}),
        "stiffness.translation": Case(list(soft), off, springs(soft * e, 20.0 * turned)),
        "stiffness.rotation": Case([20.0, 50.0, 20.0], off, springs(stiff * e, 50.0 * turned)),
        "stiffness.frame": Case("target", off, springs(axes @ (soft * (axes.T @ e)), 20.0 * turned),
                                {"stiffness.translation": list(soft)}),
        "damping_ratio": Case(0.5, partial(effort, v=V), lambda was: 0.5 * was),
        "largest.force": Case(1.0, off, springs(e / np.linalg.norm(e), 20.0 * turned)),
        "largest.moment": Case(0.5, off, springs(stiff * e, -0.5)),
        "posture.bandwidth": Case(5.0, partial(effort, q=BENT), rbd.mass_matrix(arm(), BENT) @ [0.0, -25.0 * 0.1],
                                  UPPER),
        "posture.damping": Case(3.0, partial(effort, v=np.array([0.0, 0.2])),
                                rbd.mass_matrix(arm(), Q) @ [0.0, -3.0 * 0.2], UPPER),
        "limits.margin": Case([0.05, 0.1], partial(effort, at=NEAR_LIMIT, q=NEAR_LIMIT), np.array([0.0, 8.0])),
        "limits.stiffness": Case([100.0, 50.0], partial(effort, at=NEAR_LIMIT, q=NEAR_LIMIT), np.array([0.0, 1.5])),
        "target.bandwidth": Case(5.0, until_halfway, lambda was: 2.0 * was, tolerance=0.021),
        "target.speed": Case(0.1, lambda values: Goal(values, 0.6).fastest(15), 0.1, tolerance=1e-3),
        "target.angular_speed": Case(0.5, lambda values: Goal(values, angle=1.5).fastest(12), 0.5, tolerance=5e-3),
        "target.twist_timeout": Case(0.405, until_slower, 0.4, tolerance=0.011),
        "target.farthest": Case(0.4, accepts_goal, False),
        "gains.kp": Case(list(kp), partial(held_cases.pushed, CARTESIAN), -0.02 * kp),
        "gains.kd": Case(list(kd), partial(held_cases.pushed, CARTESIAN, v=V), lambda was: was - kd * V,
                         {"gains.kp": list(kp)}),
    }
