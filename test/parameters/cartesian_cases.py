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
from rbd_ros.runtime.inputs.pose_points import PosePoint

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


def follows(values: Values, angle: float = 0.0) -> bool:
    """Whether a trajectory is accepted that takes a centimetre, and turns, within 0.2 s: at most 1.4 m/s²."""
    goal = Goal(values)
    made, link = goal.arm.made, goal.arm.made.pose
    way = (*(link[:3, 3] + 0.01 * np.eye(3)[0]), *to_quaternion(link[:3, :3] @ from_rpy((0.0, angle, 0.0))))
    rest = [[0.0] * 6]
    return bool(made.on_trajectory(goal.arm.now, 0, "", [made.settings.body], [PosePoint(0.2, [way], rest, rest)]))


def accepts_goal(values: Values) -> bool:
    return Goal(values, 0.5).accepted


SLOWLY = np.array([0.01, 0.0])
RUBBING = {"friction.compensation": 0.5}


def guided(values: Values, move: Any = STILL, v: Any = STILL) -> Any:
    """The effort beyond gravity of the arm that is guided since a second, `move` away, 10 ms later."""
    made = Arm(CARTESIAN, values)
    made.state(Q, STILL)
    made.made.guide(made.now, True)
    for _ in range(100):
        made.now += 0.01
        made.state(Q, STILL)
    made.now += 0.01
    return made.state(Q + move, v) - rbd.gravity_effort(arm(), Q + move)


def dithers(values: Values) -> float:
    """Changes of sign of the effort of an arm that is guided and at rest, within a second."""
    made = Arm(CARTESIAN, values)
    made.state(Q, STILL)
    made.made.guide(made.now, True)
    efforts, carries = [], rbd.gravity_effort(arm(), Q)[0]
    for _ in range(150):
        made.now += 0.01
        efforts.append(made.state(Q, STILL)[0] - carries)
    return float(np.sum(np.diff(np.sign(efforts[50:])) != 0.0))


def released(values: Values) -> bool:
    """Whether a link that drifted is free again when it is pulled a centimetre away."""
    made = Arm(CARTESIAN, values)
    made.state(Q, STILL)
    made.made.guide(made.now, True)
    q = Q.copy()
    for _ in range(280):
        made.now += 0.01
        q = q + 4e-5
        made.state(q, STILL)
    assert made.made.report()["guided"] == "held"
    for _ in range(5):
        made.now += 0.01
        q = q + 3e-3
        made.state(q, STILL)
    return str(made.made.report()["guided"]) == "yes"


def tank(values: Values) -> float:
    """J in the tank of an arm that is held."""
    made = Arm(CARTESIAN, values)
    made.state(v=STILL)
    return float(made.made.report()["tank_j"])


class Pressing:
    """The arm, held at Q, whose link presses up with 10 N, or with this wrench."""

    def __init__(self, values: Values, wrench: Any = (0.0, 0.0, 0.0, 0.0, 0.0, 10.0)) -> None:
        self.arm = Arm(CARTESIAN, values)
        self.arm.state(v=STILL)
        self.accepted = bool(self.arm.made.on_target_wrench(self.arm.now, "", wrench))

    def force(self, seconds: float, v: Any = STILL, sensed: bool = True) -> Any:
        """What is applied (N) after some time; the measurement is 0."""
        for _ in range(round(seconds / 0.01)):
            self.arm.now += 0.01
            assert not sensed or self.arm.made.on_measured_wrench(self.arm.now, "", [0.0] * 6)
            self.effort = self.arm.state(v=v)
        return self.arm.made._aim.applied[5]


def until_half_the_force(values: Values) -> float:
    pressing = Pressing(values)
    return 0.01 * next(k for k in range(1, 1000) if pressing.force(0.01, sensed=False) > 5.0)


def corrected(values: Values, seconds: float = 1.0) -> float:
    """N, beyond the setpoint."""
    pressing = Pressing(values)
    return float(pressing.force(seconds) - pressing.arm.made._aim.applied[11])


def after_silence(values: Values) -> float:
    """N, of the correction, when the last measurement is 0.08 s old."""
    pressing = Pressing(values)
    pressing.force(1.0)
    return float(pressing.force(0.08, sensed=False) - pressing.arm.made._aim.applied[11])


def dragged(values: Values) -> Any:
    """The torque by which the damping of a contact resists motion."""
    pressing = Pressing(values)
    pressing.force(2.0, sensed=False)
    still = pressing.effort
    pressing.force(0.01, V, sensed=False)
    return pressing.effort - still


def cases() -> dict[str, Case]:
    """By name of the parameter."""
    lower = [rbd.forward_kinematics(arm(), q)[-1][:3, 3] for q in (Q, Q + AWAY)]
    floor = f"walls: [{{plane: {{point: {(0.5 * (lower[0] + lower[1])).tolist()}, normal: [0, 0, 1]}}}}]"
    deep, up = 0.5 * (lower[0] - lower[1])[2], np.array([0.0, 0.0, 1.0])
    e, turned = lower[0] - lower[1], -AWAY.sum()
    soft, stiff = np.array([100.0, 300.0, 500.0]), [300.0] * 3
    axes = from_rpy((0.0, Q.sum(), 0.0))
    kp, kd = np.array([10.0, 20.0]), np.array([3.0, 4.0])
    model, moving, slowly = arm(), partial(effort, v=V), partial(effort, v=SLOWLY)
    gravity = rbd.gravity_effort(model, Q)

    def rubs(v: Any, **law: Any) -> Any:
        """Half of the friction, in the direction of motion, and of the effort asked for."""
        asked, s = effort({}, v=v), law.get("smoothing", 0.01)
        friction, t = rbd.joint_friction(model, **law), np.tanh(v / s)
        fast = np.maximum(np.abs(v), 3.0 * s)
        level = friction.effort(fast, tau=asked + gravity) - model.damping * (fast - np.abs(v))
        rest = np.clip(asked / np.where(level > 0.0, 0.5 * level, np.inf), -1.0, 1.0)
        return asked + 0.5 * level * (t + (1.0 - np.abs(t)) * rest)

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
        "force.largest": Case(5.0, lambda values: Pressing(values).accepted, False),
        "force.largest_moment": Case(1.0, lambda values: Pressing(values, (0.0, 2.0, 0.0, 0.0, 0.0, 0.0)).accepted,
                                     False),
        "force.contact_stiffness": Case(1250.0, dragged, lambda was: 0.5 * was, {
            "stiffness.translation": [0.0] * 3, "stiffness.rotation": [0.0] * 3, "posture.damping": 0.0,
            "damping_ratio": 0.1}, 1e-4),
        "force.bandwidth": Case(5.0, until_half_the_force, lambda was: 2.0 * was, tolerance=0.021),
        "force.integral": Case(1.0, partial(corrected, seconds=0.3), lambda was: 0.5 * was,
                               {"force.integral_bound": 1.0}),
        "force.integral_bound": Case(0.1, partial(corrected, seconds=4.0), 1.0, tolerance=1e-4),
        "force.max_age": Case(0.05, after_silence, lambda was: np.exp(-2.0 * 0.03) * was, {"force.integral_bound": 1.0},
                              0.01),
        "tank.size": Case(0.5, tank, 0.5),
        "walls.file": Case(floor, off, lambda was: was + springs(2000.0 * deep * up, 0.0)),
        "walls.stiffness": Case(1000.0, off, lambda was: was - springs(1000.0 * deep * up, 0.0), {"walls.file": floor}),
        "walls.force": Case(5.0, off, lambda was: was - springs((2000.0 * deep - 5.0) * up, 0.0),
                            {"walls.file": floor, "largest.force": 1.0}),
        "target.bandwidth": Case(5.0, until_halfway, lambda was: 2.0 * was, tolerance=0.021),
        "target.speed": Case(0.1, lambda values: Goal(values, 0.6).fastest(15), 0.1, tolerance=1e-3),
        "target.angular_speed": Case(0.5, lambda values: Goal(values, angle=1.5).fastest(12), 0.5, tolerance=5e-3),
        "target.acceleration": Case(1.0, follows, False),
        "target.angular_acceleration": Case(5.0, partial(follows, angle=0.1), False),
        "target.twist_timeout": Case(0.405, until_slower, 0.4, tolerance=0.011),
        "target.farthest": Case(0.4, accepts_goal, False),
        "friction.compensation": Case(0.5, moving, rubs(V)),
        "friction.damping": Case(False, moving, lambda was: was - 0.5 * model.damping * V, RUBBING),
        "friction.coulomb": Case(False, moving, lambda was: was - 0.5 * model.friction, RUBBING),
        "friction.smoothing": Case(0.02, slowly, rubs(SLOWLY, smoothing=0.02), RUBBING),
        "friction.asymmetry": Case([0.05, 0.0], moving, rubs(V, asymmetry=[0.05, 0.0]), RUBBING),
        "friction.viscous_asymmetry": Case([0.05, 0.0], moving, rubs(V, viscous_asymmetry=[0.05, 0.0]), RUBBING),
        "friction.load": Case([0.2, 0.1], moving, rubs(V, load=[0.2, 0.1]), RUBBING),
        "guide.free": Case(["tx"], partial(guided, move=AWAY), springs([0.0, 0.0, 300.0] * e, 20.0 * turned)),
        "guide.damping": Case(2.0, partial(guided, v=V), lambda was: 2.0 * was),
        "guide.dither": Case(5.0, dithers, 10.0, {**RUBBING}),
        "guide.release": Case(3.0, released, True),
        "teach.file": Case("taught.npz", lambda values: Arm(CARTESIAN, values).made.settings.file, "taught.npz"),
        "gains.kp": Case(list(kp), partial(held_cases.pushed, CARTESIAN), -0.02 * kp),
        "gains.kd": Case(list(kd), partial(held_cases.pushed, CARTESIAN, v=V), lambda was: was - kd * V,
                         {"gains.kp": list(kp)}),
    }
