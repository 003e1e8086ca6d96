"""What the parameters of node `float_check` do, in its logic without ROS."""
from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from parameters.case import Case, Values
from parameters.torque_cases import (
    FALLBACK, LOAD, Arm, at_last, compares_gravity, estimated_velocity, fastest, late_states, slow_loops,
    until_fallback, until_finished, until_not_held, until_running, until_stale,
)
from support.arm import NAMES, TILT, TILTED, Q, V, arm, arm_urdf

import rbd_ros as rbd
from rbd_ros.core.model.payload import payload, with_payloads

FLOAT = "float_check"
GAINS: dict[str, Any] = {"gains.kp": [10.0, 20.0], "gains.kd": [3.0, 4.0]}
QUICK: dict[str, Any] = {**GAINS, "sweep": [0.0], "fade": 0.0, "time": 0.1, "feedback.min_rate": 0.0}
STILL = np.zeros(2)


class Float(Arm):
    """The arm held at Q, whose test has begun; it stands wherever it is put."""

    def __init__(self, values: Values, urdf: str = "") -> None:
        super().__init__(FLOAT, values, urdf)
        self.state(v=STILL)
        self.tick(Q)
        assert not (problem := self.made.start()), problem

    def tick(self, q: Any, v: Any = STILL) -> Any:
        self.now += 0.01
        return self.state(q, v)

    @property
    def released(self) -> list[int]:
        return [] if self.made._held is None else np.flatnonzero(self.made._held.weight < 1.0).tolist()

    def until_released(self) -> float:
        return self.time_until(lambda: self.state(Q, STILL) is not None and bool(self.released))

    def until_caught(self) -> float:
        return self.time_until(lambda: self.state(Q, STILL) is not None and not self.released)

    def report(self, q: Any = Q) -> Any:
        """Of the test on an arm that is at q whenever its first joint is released."""
        found: list[Any] = []

        def ended() -> bool:
            self.state(q if self.released == [0] else Q, STILL)
            found[:] = [self.made.take_report()]
            return found[0] is not None

        self.time_until(ended)
        return found[0]


def effort(values: Values, urdf: str = "") -> Any:
    """Where the arm is held, in motion."""
    return Arm(FLOAT, values, urdf).state()


def published(values: Values) -> Any:
    made = Arm(FLOAT, values)
    return made.made.settings.joints, made.state()[made.made.settings.output]


def change(values: Values) -> Any:
    """Of the effort within 10 ms when the payload changes."""
    made = Arm(FLOAT, {"ramp_in": 0.01, **values})
    made.state(v=STILL)
    made.now += 0.04
    before = made.state(v=STILL)
    made.made.apply(made.made.settings.from_values({**values, "ramp_in": 0.01, **LOAD}, rbd.load_urdf(arm_urdf())))
    made.now += 0.01
    return np.abs(made.state(v=STILL) - before)


def off(values: Values) -> Any:
    """The effort beyond gravity of an arm that is held 0.01 rad away, at V."""
    made = Arm(FLOAT, values)
    made.state(v=STILL)
    made.now += 0.01
    return made.state(Q + 0.01, V) - rbd.gravity_effort(arm(), Q + 0.01)


def fed_back(values: Values) -> Any:
    """The effort beyond gravity 80 ms after the state was sent, with states at 100 Hz."""
    made = Arm(FLOAT, {"state_rate": 100.0, "ramp_in": 0.5, **GAINS, **values})
    return made.made.on_state(made.now, round(made.now * 1e9), NAMES, Q, V, (), 0.08).problem == "", (
        made.made.loop.share)


def released_effort(values: Values) -> Any:
    """The effort beyond gravity of a released joint in motion."""
    made = Float({**QUICK, **values})
    made.until_released()
    return (made.tick(Q, 0.01 * V) - rbd.gravity_effort(arm(), Q))[:1]


def catches(values: Values, q: float = 0.0, v: float = 0.0) -> bool:
    """Whether the gains of a released joint return at this distance and speed."""
    made = Float({**QUICK, **values})
    made.until_released()
    made.tick(Q + np.array([q, 0.0]), np.array([v, 0.0]))
    made.tick(Q + np.array([q, 0.0]), np.array([v, 0.0]))
    return not made.released


def observed(values: Values) -> float:
    made = Float({**QUICK, **values})
    made.until_released()
    return made.until_caught()


def joints_released(values: Values) -> Any:
    return tuple(joint.name for joint in Float({**QUICK, **values}).report().joints)


def poses(values: Values) -> Any:
    """Where the arm, which does not move, is said to go."""
    made = Float({**QUICK, **values, "tolerance": [3.0]})
    made.time_until(lambda: made.tick(Q) is not None and bool(made.released))
    return made.made._held.q


def until_there(values: Values) -> float:
    return Float({**QUICK, "tolerance": [3.0], "poses": ["0.4 -0.7"], **values}).until_released()


def reference_of_sweep(values: Values) -> float:
    """The reference of the first joint, rad from Q, while the arm does not move."""
    made = Float({**QUICK, "tolerance": [0.5], **values})
    largest = [0.0]
    for _ in range(100):
        made.tick(Q)
        largest.append(float(made.made._held.q[0] - Q[0]) if made.made._held is not None else 0.0)
    return round(max(largest), 6)


def aborted(values: Values) -> bool:
    """By a joint that is 0.05 rad from where it is held."""
    made = Float({**QUICK, **values})
    made.tick(Q + np.array([0.0, 0.05]))
    made.tick(Q + np.array([0.0, 0.05]))
    report = made.made.take_report()
    return report is not None and "tolerance" in report.aborted


def judged(values: Values) -> str:
    """A joint that drifts by 0.02 rad."""
    return str(Float({**QUICK, **values}).report(Q + np.array([0.02, 0.0])).joints[0].verdict)


def cases() -> dict[str, Case]:
    """By name of the parameter."""
    model = arm()
    gravity = rbd.gravity_effort(model, Q)
    tilted = rbd.gravity_effort(model.with_(gravity=TILTED), Q)
    locked = {angle: rbd.gravity_effort(rbd.load_urdf(arm_urdf(), locked={"elbow": angle}), Q[:1])
              for angle in (0.0, 0.5)}

    def load(name: str) -> Case:
        xx, yy, zz, xy, xz, yz = LOAD["payload.inertia"]
        body = payload(2.0, LOAD["payload.com"], [[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        loaded = with_payloads(model, {"lower": body})
        damped = rbd.gravity_effort(loaded, Q) - 5.0 * rbd.mass_matrix(loaded, Q) @ V
        return Case(LOAD[name], partial(stopped, FLOAT), damped,
                    {other: value for other, value in LOAD.items() if other != name})

    def stopped(program: str, values: Values) -> Any:
        """The safe effort, after an emergency stop."""
        made = Arm(program, values)
        made.state(v=STILL)
        made.made.safety.stop()
        return made.state()

    def weak(values: Values) -> Any:
        return effort(values, arm_urdf(shoulder_effort=0.0))

    def rotating(values: Values) -> Any:
        return stopped(FLOAT, values)

    beyond = np.array([10.0, 20.0]) * -0.01
    return {
        "gravity": Case([0.0, 1.0, -1.62], effort, rbd.gravity_effort(model.with_(gravity=(0.0, 1.0, -1.62)), Q)),
        "joints": Case(NAMES[::-1], published, lambda was: (was[0][::-1], was[1][::-1])),
        "mounting.rpy": Case(list(TILT), effort, tilted),
        "locked.joints": Case(["elbow"], effort, locked[0.0]),
        "locked.positions": Case(0.5, effort, locked[0.5], {"locked.joints": ["elbow"]}),
        "rotor_inertia": Case([0.3, -1.0], rotating, lambda was: was - 5.0 * np.array([0.3, 0.0]) * V),
        **{name: load(name) for name in LOAD},
        "robot_compensates": Case(["gravity"], effort, STILL),
        "gravity_check": Case(False, partial(compares_gravity, FLOAT), False),
        "effort_limits.maximum": Case(0.5, effort, np.clip(gravity, -0.5, 0.5)),
        "effort_limits.override_zero": Case(0.5, weak, np.clip(gravity, [-0.5, -50.0], [0.5, 50.0])),
        "effort_limits.rate": Case(2.0, change, np.array([0.02, 0.02])),
        "state_timeout": Case(0.205, partial(until_stale, FLOAT), 0.21),
        "state_rate": Case(100.0, partial(late_states, FLOAT), 1),
        "velocity_cutoff": Case(0.0, partial(estimated_velocity, FLOAT), np.array([1.0, -2.0])),
        "plausible_velocity": Case(1.0, partial(fastest, FLOAT), 3.0),
        "feedback.max_age": Case(9.0, fed_back, (True, 1.0)),
        "feedback.min_rate": Case(0.1, partial(slow_loops, FLOAT), 0),
        "ramp_in": Case(0.105, partial(until_running, FLOAT), 0.11),
        "ramp_out": Case(0.105, partial(until_finished, FLOAT), 0.11),
        "safe_output.damping": Case(3.0, rotating, gravity - 3.0 * rbd.mass_matrix(model, Q) @ V),
        "safe_output.hold_position": Case(0.0, until_pushed, STILL, {"gains.kp": [10.0, 20.0]}),
        "safe_output.hold": Case(0.105, partial(until_not_held, FLOAT), 0.16, {"safe_output.fallback_ramp": 0.0}),
        "safe_output.fallback_ramp": Case(0.205, partial(until_fallback, FLOAT), 0.26, {"safe_output.hold": 0.0}),
        "safe_output.fallback": Case(list(FALLBACK), partial(at_last, FLOAT), FALLBACK),
        "gains.kp": Case([10.0, 20.0], off, beyond),
        "gains.kd": Case([3.0, 4.0], off, -np.array([3.0, 4.0]) * V),
        "poses": Case(["0.5 -0.9"], poses, np.array([0.5, -0.9])),
        "tested_joints": Case(["elbow"], joints_released, ("elbow",)),
        "window": Case(0.01, partial(catches, q=0.02), True),
        "fastest": Case(0.05, partial(catches, v=0.1), True),
        "time": Case(0.5, observed, lambda was: was + 0.4),
        "fade": Case(0.3, observed, lambda was: was + 0.6, tolerance=0.021),
        "free_damping": Case(0.5, released_effort, -np.array([0.5 * 3.0]) * 0.01 * V[:1]),
        "sweep": Case(0.05, reference_of_sweep, 0.05, tolerance=0.03),
        "speed": Case(0.05, until_there, lambda was: 2.0 * was - 0.5, tolerance=0.02),
        "tolerance": Case(0.02, aborted, True),
        "uncertainty": Case(0.0, judged, "climbs" if 0.02 * gravity[0] > 0.0 else "sinks"),
    }


def until_pushed(values: Values) -> Any:
    """What is added to the gravity torque where the stopped arm was pushed to."""
    made = Arm(FLOAT, values)
    made.state(v=STILL)
    made.made.safety.stop()
    made.state(v=STILL)
    made.now += 0.01
    return made.state(Q + 0.02, STILL) - rbd.gravity_effort(made.made.model, Q + 0.02)
