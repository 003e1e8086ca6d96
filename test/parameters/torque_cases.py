"""What the parameters of the torque controllers do, in their logic without ROS."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import count
from typing import Any

import numpy as np
from parameters.case import Case, Values, begun
from support.arm import A_REF, NAMES, Q_REF, TILT, TILTED, V_REF, Q, V, arm, arm_urdf, measured
from support.lqr import gain

import rbd_ros as rbd
from rbd_ros.core.dynamics.friction import LOAD_SMOOTHING
from rbd_ros.core.lie.so3 import from_rpy, to_quaternion
from rbd_ros.core.model.payload import payload, with_payloads
from rbd_ros.runtime.control.cartesian import CartesianController
from rbd_ros.runtime.control.cartesian_settings import CARTESIAN_TABLE, CartesianSettings
from rbd_ros.runtime.control.feedforward import FEEDFORWARD_TABLE, FeedforwardController, FeedforwardSettings
from rbd_ros.runtime.control.flatness import FLATNESS_TABLE, FlatnessController, FlatnessSettings
from rbd_ros.runtime.control.following import FollowingController
from rbd_ros.runtime.control.float_check import FLOAT_TABLE, FloatCheck, FloatSettings
from rbd_ros.runtime.control.torque_controller import SETTLING
from rbd_ros.runtime.inputs.references import Point
from rbd_ros.runtime.parameters import validate
from rbd_ros.runtime.robot import load_model
from rbd_ros.runtime.world.odometry import Odometry

PROGRAMS: dict[str, Any] = {"feedforward": (FEEDFORWARD_TABLE, FeedforwardSettings, FeedforwardController, 0.01),
                            "flatness": (FLATNESS_TABLE, FlatnessSettings, FlatnessController, 0.1),
                            "float_check": (FLOAT_TABLE, FloatSettings, FloatCheck, 0.0),
                            "cartesian": (CARTESIAN_TABLE, CartesianSettings, CartesianController, 0.0)}
PULL = np.array([0.0, 0.0, 0.0, 0.0, 0.0, -5.0])
FALLBACK = np.array([7.0, 8.0])
WEIGHTS = {"position": [100.0], "velocity": [2.0], "effort": [0.5]}    # small, so that no limit is reached
REPORTS = {"contact.reaction": "report", "contact.threshold": 0.1}
MEASURES = REPORTS | {"contact.effort": "joint_states"}
LOAD = {"payload.body": "lower", "payload.mass": 2.0, "payload.com": [0.1, 0.0, 0.05],
        "payload.inertia": [0.1, 0.2, 0.25, 0.0, 0.05, 0.0]}


class Arm:
    """A controller of the two-joint arm; its clock (s) is `now`, by default without ramps."""

    def __init__(self, program: str, values: Values, urdf: str = "") -> None:
        table, settings, controller, _ = PROGRAMS[program]
        values = {"ramp_in": 0.0, "ramp_out": 0.0, **values}
        model, _ = load_model(validate(table, values), urdf or arm_urdf())
        self.made = begun(controller, settings, table, model, values)
        self.names = list(model.joint_names)
        self.at = [NAMES.index(name) for name in self.names]
        self.now = 1.0
        self.made.activate(0.0)

    def refer(self, acceleration: Any = A_REF) -> None:
        """A reference, if the program follows any."""
        assert not isinstance(self.made, FollowingController) or self.made.on_reference(
            self.now, 0, self.names, Q_REF[self.at], V_REF[self.at], acceleration[self.at])

    def answer(self, q: Any = Q, v: Any = V, effort: Any = ()) -> Any:
        """The answer to a joint state."""
        if np.any(v):
            q = measured(self.made.state.q, q)
        return self.made.on_state(self.now, round(self.now * 1e9), NAMES, q, v, effort)

    def state(self, *given: Any, **named: Any) -> Any:
        """The effort that answers a joint state."""
        return self.answer(*given, **named).effort

    def time_until(self, condition: Callable[[], Any]) -> float:
        """Seconds from now, in steps of 10 ms, until the condition holds."""
        begin = self.now
        for k in count():
            self.now = begin + 0.01 * k
            if condition():
                return 0.01 * k
            assert k < 1000, "never"
        raise AssertionError


def effort(program: str, values: Values, urdf: str = "") -> Any:
    arm = Arm(program, values, urdf)
    arm.refer()
    return arm.state()


def published(program: str, values: Values) -> Any:
    arm = Arm(program, values)
    arm.refer()
    return arm.made.settings.joints, arm.state()[arm.made.settings.output]


def safe(program: str, values: Values) -> Any:
    return Arm(program, values).state()    # without a reference


def pushed(program: str, values: Values) -> Any:
    """What is added to the gravity torque where the arm was pushed to, without a reference."""
    arm = Arm(program, values)
    for _ in range(SETTLING + 2):
        arm.state(v=0.0 * V)
        arm.now += 0.01
    return arm.state(Q + 0.02, 0.0 * V) - rbd.gravity_effort(arm.made.model, Q + 0.02)


def fastest(program: str, values: Values) -> Any:
    """Velocity (rad/s) of the first state that is taken, of 20 to 1 rad/s; the limit is 3 rad/s."""
    arm = Arm(program, values)
    return next(float(v) for v in np.arange(20.0, 0.0, -1.0) if arm.answer(v=[v, 0.0]))


def change(program: str, values: Values) -> Any:
    """Of the effort within 10 ms when the reference jumps."""
    arm = Arm(program, values)
    arm.refer()
    before = arm.state()
    arm.now += 0.01
    arm.refer(A_REF + 100.0)
    return np.abs(arm.state() - before)


def resting(arm: Arm, effort: Any = (), steps: int = 40) -> FeedforwardController:
    """At rest, with this measured effort, whatever the torque."""
    for _ in range(steps):
        arm.answer(v=0.0 * V, effort=effort)
        arm.now += 0.01
    return arm.made


def reacted(program: str, values: Values) -> Any:
    """The mode of an arm that its torque does not move."""
    arm = Arm(program, values)
    arm.refer()
    return resting(arm).safety.mode


def felt(program: str, values: Values) -> Any:
    """The external effort that balances torque, or measured efforts, and gravity, after 10 ms."""
    arm = Arm(program, values)
    arm.refer()
    return resting(arm, [1.0, 2.0], 2).contacts.external - rbd.gravity_effort(arm.made.model, Q) * (1.0 - np.exp(-0.5))


def gain_seen(program: str, values: Values) -> Any:
    arm = Arm(program, values)
    seen = resting(arm, np.zeros(2), 2).contacts.external[0] / rbd.gravity_effort(arm.made.model, Q)[0]
    return -np.log(1.0 - seen) / 0.01


def until_released(program: str, values: Values) -> float:
    arm = Arm(program, values)
    resting(arm, np.zeros(2))
    assert arm.made.contacts.body
    return arm.time_until(lambda: not resting(arm, rbd.gravity_effort(arm.made.model, Q), 1).contacts.body)


def patience(program: str, values: Values) -> float:
    """How long (s) it yields to a contact without end."""
    arm = Arm(program, values)
    return 0.01 * next(k for k in count() if resting(arm, np.zeros(2), 1).safety.latched)


def goes_back(program: str, values: Values) -> float:
    """How far (s of the motion) from where it was touched."""
    arm = Arm(program, values)
    resting(arm, rbd.gravity_effort(arm.made.model, Q))
    assert arm.made.on_trajectory(arm.now, 0, arm.names, [Point(2.0, Q + 0.1, np.zeros(2), np.zeros(2))])
    resting(arm, rbd.gravity_effort(arm.made.model, Q), 100)
    motion, before, _ = arm.made.reference.place(round(arm.now * 1e9))
    resting(arm, np.zeros(2), 300)
    t = np.linspace(0.0, 2.0, 20001)
    end = arm.made.reference.sample(arm.now, round((arm.now + 10.0) * 1e9)).q[0]
    return before - float(np.interp(end, [motion.sample(x).q[0] for x in t], t))


def sensed(program: str, values: Values) -> Any:
    """Topic and frame of each force-torque sensor, and what they show without a reference."""
    arm = Arm(program, values)
    arm.state()
    shown = arm.made.sensed(arm.now)
    return tuple(text for sensor in arm.made.settings.sensors for text in (sensor.topic, sensor.frame)), (
        np.zeros(0) if shown is None else shown)


def on_a_tilted_base(program: str, values: Values) -> Any:
    """The safe effort without damping, once odometry has said how the base is turned."""
    arm = Arm(program, {**values, "safe_output.damping": 0.0})
    tell(arm)
    return arm.state()


def tell(arm: Arm) -> None:
    if arm.made.odometry is not None:
        arm.made.on_odometry(arm.now, Odometry(0, "world", "base", (0.0,) * 3, tuple(to_quaternion(from_rpy(TILT))),
                                               (0.0,) * 6))


def until_lost(program: str, values: Values) -> float:
    """Seconds from odometry until the arm no longer follows its reference."""
    arm = Arm(program, {**values, "odometry": "odom", "reference_timeout": 0.0, "feedback.min_rate": 0.0})
    tell(arm)
    arm.refer()
    arm.state()
    return arm.time_until(lambda: arm.answer() and arm.made.safety.mode == "waiting")


def until_stale(program: str, values: Values) -> float:
    arm = Arm(program, values)
    arm.state()
    return arm.time_until(lambda: arm.made.watchdog(arm.now) is not None)


def until_not_held(program: str, values: Values) -> float:
    arm = Arm(program, values)
    arm.state()
    held = rbd.gravity_effort(arm.made.model, Q)
    return arm.time_until(lambda: (out := arm.made.watchdog(arm.now)) is not None and not np.allclose(out.effort, held))


def until_fallback(program: str, values: Values) -> float:
    arm = Arm(program, values)
    arm.state()
    return arm.time_until(lambda: (out := arm.made.watchdog(arm.now)) is not None and np.allclose(out.effort, 0.0))


def at_last(program: str, values: Values) -> Any:
    arm = Arm(program, values)
    arm.state()
    return arm.made.watchdog(100.0).effort


def until_running(program: str, values: Values) -> float:
    arm = Arm(program, values)

    def running() -> bool:
        arm.refer()
        arm.state()
        return bool(arm.made.safety.mode == "running")

    return arm.time_until(running)


def until_finished(program: str, values: Values) -> float:
    arm = Arm(program, values)
    arm.refer()
    arm.state()
    arm.made.deactivate()
    return arm.time_until(lambda: arm.state() is not None and arm.made.safety.finished)


def until_at_rest(program: str, values: Values) -> float:
    arm = Arm(program, values)
    arm.refer()
    return arm.time_until(lambda: np.allclose(arm.state(), rbd.gravity_effort(arm.made.model, Q_REF)))


def until_arrived(program: str, values: Values) -> float:
    """When the reference of a trajectory that begins in 0.2 s reaches its end, 0.1 s later."""
    arm, goal = Arm(program, values), Q + 0.01
    made = arm.made
    arm.state(v=0.0 * V)
    zero = np.zeros(2)
    assert made.on_trajectory(arm.now, round((arm.now + 0.2) * 1e9), NAMES, [Point(0.1, goal, zero, zero)])
    return arm.time_until(lambda: arm.state(v=0.0 * V) is not None and np.array_equal(
        made.desired(arm.now, made.safety.laws.newest).q[arm.at], goal))


def until_unloaded(program: str, values: Values) -> float:
    free = effort(program, values)
    arm = Arm(program, values)
    arm.refer()
    assert arm.made.on_wrenches(arm.now, [("lower", PULL)])
    arm.now += 0.01
    assert not np.allclose(arm.state(), free)
    return 0.01 + arm.time_until(lambda: np.allclose(arm.state(), free))


def accepts_pull(program: str, values: Values) -> tuple[bool, ...]:
    """A force of 5 N, and a moment of 1 N m."""
    arm = Arm(program, values)
    return tuple(bool(arm.made.on_wrenches(arm.now, [("lower", wrench)])) for wrench in (PULL, np.eye(6)[0]))


def until_loaded(program: str, values: Values) -> float:
    """With 5 N of at most 500."""
    arm = Arm(program, {**values, "wrench_timeout": 0.0, "reference_timeout": 0.0})
    arm.refer()
    assert arm.made.on_wrenches(arm.now, [("lower", PULL)])
    return arm.time_until(lambda: (used := arm.made.fresh_wrenches(arm.now)) is not None and np.allclose(
        used[arm.made.model.body_index("lower")], PULL))


def estimated_velocity(program: str, values: Values) -> Any:
    arm = Arm(program, values)
    arm.state(Q, ())
    arm.now += 0.01
    arm.state(Q + np.array([0.01, -0.02]), ())
    return arm.made.state.v


def late_states(program: str, values: Values) -> int:
    arm = Arm(program, values)
    arm.state()
    arm.now += 0.03
    arm.state()
    return int(arm.made.report()["late_states"])


def fed_back(program: str, values: Values) -> Any:
    """The effort 80 ms after the state was sent, with states at 100 Hz."""
    arm = Arm(program, {"state_rate": 100.0, "gains.kp": [10.0, 20.0], **values})
    arm.refer()
    return arm.made.on_state(arm.now, round(arm.now * 1e9), NAMES, Q, V, (), 0.08).effort


def slow_loops(program: str, values: Values) -> int:
    """While states come at 22 Hz, expected at 100 Hz."""
    arm = Arm(program, {"state_rate": 100.0, **values})
    for _ in range(100):
        arm.state()
        arm.now += 0.045
    return int(arm.made.report()["slow_loops"])


def compares_gravity(program: str, values: Values) -> bool:
    arm = Arm(program, values)
    arm.state(v=[0.0, 0.0], effort=[1.0, 1.0])
    return arm.made.compare_gravity(arm.now) is not None


def cases(program: str) -> dict[str, Case]:
    """By name of the parameter, for what both programs have."""
    smoothing = PROGRAMS[program][3]
    model = arm()
    t = np.tanh(V_REF / smoothing)
    friction = model.damping * V_REF + model.friction * t

    def follow(model: rbd.RobotModel) -> Any:
        return rbd.inverse_dynamics(model, Q_REF, V_REF, A_REF) + friction

    def locked(angle: float) -> Any:
        alone = rbd.load_urdf(arm_urdf(), locked={"elbow": angle})
        return rbd.inverse_dynamics(alone, Q_REF[:1], V_REF[:1], A_REF[:1]) + friction[:1]

    def load(name: str) -> Case:
        xx, yy, zz, xy, xz, yz = LOAD["payload.inertia"]
        body = payload(2.0, LOAD["payload.com"], [[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        return case(LOAD[name], effort, follow(with_payloads(model, {"lower": body})),
                    {other: value for other, value in LOAD.items() if other != name})

    def case(value: Any, observe: Callable[..., Any], expected: Any, given: Values | None = None) -> Case:
        return Case(value, partial(observe, program), expected, given or {})

    def lqr(name: str, value: Any) -> Case:
        error = np.concatenate([Q - Q_REF, V - V_REF])
        expected = follow(model) + gain(model, Q_REF, V_REF, A_REF, **(WEIGHTS | {name: value})) @ error
        given = {f"lqr.{other}": weight for other, weight in WEIGHTS.items() if other != name}
        return replace(case(value, effort, expected, {"feedforward": "lqr", "state_rate": 1000.0, **given}),
                       tolerance=1e-8)

    weak = partial(effort, urdf=arm_urdf(shoulder_effort=0.0))
    gravity = rbd.gravity_effort(model, Q)
    return {
        "gravity": case([0.0, 1.0, -1.62], effort, follow(model.with_(gravity=(0.0, 1.0, -1.62)))),
        "joints": case(NAMES[::-1], published, lambda was: (was[0][::-1], was[1][::-1])),
        "mounting.rpy": case(list(TILT), effort, follow(model.with_(gravity=TILTED))),
        "locked.joints": case(["elbow"], effort, locked(0.0)),
        "locked.positions": case(0.5, effort, locked(0.5), {"locked.joints": ["elbow"]}),
        "rotor_inertia": case([0.3, -1.0], effort, lambda was: was + [0.3, 0.0] * A_REF),
        **{name: load(name) for name in LOAD},
        "robot_compensates": case(["friction"], effort, lambda was: was - friction),
        "gravity_check": case(False, compares_gravity, False),
        "effort_limits.maximum": case(0.5, effort, lambda was: np.clip(was, -0.5, 0.5)),
        "effort_limits.override_zero": case(0.5, weak, lambda was: np.clip(follow(model), [-0.5, -50.0], [0.5, 50.0])),
        "effort_limits.rate": case(2.0, change, np.array([0.02, 0.02])),
        "state_timeout": case(0.205, until_stale, 0.21),
        "state_rate": case(100.0, late_states, 1),
        "velocity_cutoff": case(0.0, estimated_velocity, np.array([1.0, -2.0])),
        "plausible_velocity": case(1.0, fastest, 3.0),
        "feedback.max_age": case(9.0, fed_back, lambda was: was + [10.0, 20.0] * (Q_REF - Q)),
        "feedback.min_rate": case(0.1, slow_loops, 0),
        "ramp_in": case(0.105, until_running, 0.11),
        "ramp_out": case(0.105, until_finished, 0.11),
        "safe_output.damping": case(3.0, safe, gravity - 3.0 * rbd.mass_matrix(model, Q) @ V),
        "safe_output.hold_position": case(0.0, pushed, np.zeros(2), {"gains.kp": [10.0, 20.0]}),
        "tracking_tolerance": case(0.01, effort, gravity - 5.0 * rbd.mass_matrix(model, Q) @ V),
        "safe_output.hold": case(0.105, until_not_held, 0.16, {"safe_output.fallback_ramp": 0.0}),
        "safe_output.fallback_ramp": case(0.205, until_fallback, 0.26, {"safe_output.hold": 0.0}),
        "safe_output.fallback": case(list(FALLBACK), at_last, FALLBACK),
        "reference_lead": case(0.1, until_arrived, lambda was: was - 0.1),
        "reference_timeout": case(0.305, until_at_rest, 0.31),
        "wrench_timeout": case(0.305, until_unloaded, 0.31, {"reference_timeout": 0.0}),
        "wrench_limits.force": case(4.0, accepts_pull, (False, True)),
        "wrench_limits.moment": case(0.5, accepts_pull, (True, False)),
        "wrench_limits.rate": case(0.048, until_loaded, 0.21),
        "gains.kp": case([10.0, 20.0], effort, lambda was: was + [10.0, 20.0] * (Q_REF - Q)),
        "gains.kd": case([3.0, 4.0], effort, lambda was: was + [3.0, 4.0] * (V_REF - V)),
        "friction.damping": case(False, effort, lambda was: was - model.damping * V_REF),
        "friction.coulomb": case(False, effort, lambda was: was - model.friction * np.tanh(V_REF / smoothing)),
        "friction.smoothing": case(0.5, effort, lambda was: was + model.friction * (
            np.tanh(V_REF / 0.5) - np.tanh(V_REF / smoothing))),
        "friction.asymmetry": case([0.05, 0.0], effort, lambda was: was + [0.05, 0.0] * t**2),
        "friction.viscous_asymmetry": case([0.05, 0.0], effort, lambda was: was + [0.05, 0.0] * V_REF * t),
        "friction.load": case([0.2, 0.1], effort, lambda was: was + [0.2, 0.1] * t * np.hypot(
            was - friction, LOAD_SMOOTHING)),
    } | ({"feedforward": case("none", effort, np.zeros(2)), **{f"lqr.{name}": lqr(name, value) for name, value in (
            ("position", [200.0, 50.0]), ("velocity", [1.0, 3.0]), ("effort", [0.2, 0.1]), ("period", 0.02))},
        "wrench_joints": case(["elbow"], sensed, (
        ("~/wrench/elbow", "lower"), -rbd.joint_wrenches(model, Q, V, 0.0 * V)[[model.body_index("lower")]])),
        "odometry": case("odom", on_a_tilted_base, rbd.gravity_effort(model.with_(gravity=TILTED), Q)),
        "odometry_timeout": case(0.305, until_lost, 0.31),
        "contact.reaction": case("stop", reacted, "stopped", {"contact.threshold": 0.1}),
        "contact.threshold": case(0.1, reacted, "stopped", {"contact.reaction": "stop"}),
        "contact.effort": case("joint_states", felt, -np.array([1.0, 2.0]) * (1.0 - np.exp(-0.5)), REPORTS),
        "contact.gain": case(100.0, gain_seen, 100.0, MEASURES),
        "contact.release": case(0.5, until_released, lambda was: was + 0.2, MEASURES | {"contact.gain": 1e4}),
        "contact.patience": replace(case(2.0, patience, 2.0, MEASURES | {"contact.reaction": "yield"}), tolerance=0.2),
        "contact.retract": replace(case(0.2, goes_back, 0.2, MEASURES | {"contact.reaction": "retract"}),
                                   tolerance=0.02),
    } if program == "feedforward" else {})
