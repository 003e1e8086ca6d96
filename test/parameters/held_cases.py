"""What the common parameters of programs do that hold the arm from its first state on, in their logic without ROS."""
from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from parameters.case import Case, Values
from parameters.torque_cases import (
    FALLBACK, LOAD, PROGRAMS, Arm, at_last, compares_gravity, estimated_velocity, fastest, late_states, slow_loops,
    until_fallback, until_finished, until_not_held, until_running, until_stale,
)
from support.arm import NAMES, TILT, TILTED, Q, V, arm, arm_urdf

import rbd_ros as rbd
from rbd_ros.core.model.payload import payload, with_payloads
from rbd_ros.runtime.control.torque_controller import SETTLING

GAINS: dict[str, Any] = {"gains.kp": [10.0, 20.0], "gains.kd": [3.0, 4.0]}
STILL = np.zeros(2)


def effort(program: str, values: Values, urdf: str = "") -> Any:
    """Where the arm is held, at rest."""
    return Arm(program, values, urdf).state(v=STILL)


def published(program: str, values: Values) -> Any:
    made = Arm(program, values)
    return made.made.settings.joints, made.state(v=STILL)[made.made.settings.output]


def change(program: str, values: Values) -> Any:
    """Of the effort within 10 ms when the payload changes."""
    made = Arm(program, {"ramp_in": 0.01, **values})
    made.state(v=STILL)
    made.now += 0.04
    before = made.state(v=STILL)
    settings = PROGRAMS[program][1]
    made.made.apply(settings.from_values({**values, "ramp_in": 0.01, **LOAD}, rbd.load_urdf(arm_urdf())))
    made.now += 0.01
    return np.abs(made.state(v=STILL) - before)


def fed_back(program: str, values: Values) -> Any:
    """Whether there is a command 80 ms after the state was sent, with states at 100 Hz, and its share of feedback."""
    made = Arm(program, {"state_rate": 100.0, "ramp_in": 0.5, **GAINS, **values})
    return made.made.on_state(made.now, round(made.now * 1e9), NAMES, Q, V, (), 0.08).problem == "", (
        made.made.loop.share)


def stopped(program: str, values: Values) -> Any:
    """The safe effort in motion, after an emergency stop."""
    made = Arm(program, values)
    made.state(v=STILL)
    made.made.safety.stop()
    return made.state()


def pushed(program: str, values: Values, v: Any = STILL) -> Any:
    """What is added to the gravity torque where the stopped arm was pushed to."""
    made = Arm(program, values)
    made.state(v=STILL)
    made.made.safety.stop()
    for _ in range(SETTLING + 2):
        made.state(v=STILL)
        made.now += 0.01
    return made.state(Q + 0.02, v) - rbd.gravity_effort(made.made.model, Q + 0.02)


def cases(program: str) -> dict[str, Case]:
    """By name of the parameter."""
    model = arm()
    gravity = rbd.gravity_effort(model, Q)
    tilted = rbd.gravity_effort(model.with_(gravity=TILTED), Q)
    locked = {angle: rbd.gravity_effort(rbd.load_urdf(arm_urdf(), locked={"elbow": angle}), Q[:1])
              for angle in (0.0, 0.5)}
    weak = partial(effort, urdf=arm_urdf(shoulder_effort=0.0))

    def case(value: Any, observe: Callable[..., Any], expected: Any, given: Values | None = None) -> Case:
        return Case(value, partial(observe, program), expected, given or {})

    def load(name: str) -> Case:
        xx, yy, zz, xy, xz, yz = LOAD["payload.inertia"]
        body = payload(2.0, LOAD["payload.com"], [[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        loaded = with_payloads(model, {"lower": body})
        damped = rbd.gravity_effort(loaded, Q) - 5.0 * rbd.mass_matrix(loaded, Q) @ V
        return case(LOAD[name], stopped, damped, {other: value for other, value in LOAD.items() if other != name})

    return {
        "gravity": case([0.0, 1.0, -1.62], effort, rbd.gravity_effort(model.with_(gravity=(0.0, 1.0, -1.62)), Q)),
        "joints": case(NAMES[::-1], published, lambda was: (was[0][::-1], was[1][::-1])),
        "mounting.rpy": case(list(TILT), effort, tilted),
        "locked.joints": case(["elbow"], effort, locked[0.0]),
        "locked.positions": case(0.5, effort, locked[0.5], {"locked.joints": ["elbow"]}),
        "rotor_inertia": case([0.3, -1.0], stopped, lambda was: was - 5.0 * np.array([0.3, 0.0]) * V),
        **{name: load(name) for name in LOAD},
        "robot_compensates": case(["gravity"], effort, STILL),
        "gravity_check": case(False, compares_gravity, False),
        "effort_limits.maximum": case(0.5, effort, np.clip(gravity, -0.5, 0.5)),
        "effort_limits.override_zero": case(0.5, weak, np.clip(gravity, [-0.5, -50.0], [0.5, 50.0])),
        "effort_limits.rate": case(2.0, change, np.array([0.02, 0.02])),
        "state_timeout": case(0.205, until_stale, 0.21),
        "state_rate": case(100.0, late_states, 1),
        "velocity_cutoff": case(0.0, estimated_velocity, np.array([1.0, -2.0])),
        "plausible_velocity": case(1.0, fastest, 3.0),
        "feedback.max_age": case(9.0, fed_back, (True, 1.0)),
        "feedback.min_rate": case(0.1, slow_loops, 0),
        "ramp_in": case(0.105, until_running, 0.11),
        "ramp_out": case(0.105, until_finished, 0.11),
        "safe_output.damping": case(3.0, stopped, gravity - 3.0 * rbd.mass_matrix(model, Q) @ V),
        "safe_output.hold_position": case(0.0, pushed, STILL, {"gains.kp": [10.0, 20.0]}),
        "safe_output.hold": case(0.105, until_not_held, 0.16, {"safe_output.fallback_ramp": 0.0}),
        "safe_output.fallback_ramp": case(0.205, until_fallback, 0.26, {"safe_output.hold": 0.0}),
        "safe_output.fallback": case(list(FALLBACK), at_last, FALLBACK),
    }
