"""What the parameters of node `flatness` do to the motors of elastic joints, in its logic without ROS."""
from __future__ import annotations

from typing import Any

import numpy as np
from parameters.case import Case, Values, split
from support.arm import NAMES, Q, V, arm
from support.elastic_arm import MS, R, W, Z, answer, commanded, controller, expected

import rbd_ros as rbd
from rbd_ros.runtime.control.elastic_settings import ElasticSettings
from rbd_ros.runtime.control.flatness import FLATNESS_TABLE

LINEARIZATION = {"mode": "feedback_linearization", "state_rate": 1000.0, "motor_effort_limits.maximum": 1e6}
KP, KD = np.array([100.0, 50.0, 1e-4]), np.array([3.0, 2.0, 1e-5])


def make(values: Values) -> Any:
    first, later = split(FLATNESS_TABLE, values)
    made = controller(**first)
    if later is not None:
        apply(made, later)
    return made


def apply(made: Any, values: Values) -> None:
    made.apply(ElasticSettings.from_drives({"ramp_in": 0.0, **values}, arm(), made.settings.given))


def effort(values: Values) -> Any:
    return np.array(answer(make(values)))


def change(values: Values) -> Any:
    """Of the effort of the joints' motors within 10 ms when the reference jumps."""
    made = make({**values, "motor_gains.kp": [100.0, 100.0, 0.0]})
    before = np.array(answer(made))
    assert made.on_reference(1.01, 0, NAMES, *(R + 0.1))
    return np.abs(answer(made, 1.01, 11 * MS, None) - before)[:2]


def stiffness(values: Values) -> float:
    """Long after the start."""
    made = make({**values, "mode": "feed_forward", "state_rate": 1.0})
    for i in range(3):
        found = commanded(made, 1.0 + i, (1 + 1000 * i) * MS)
    return float(found.motors.stiffness[1])


def changing_stiffness(values: Values) -> float:
    """20 cycles of 1 ms after the wanted stiffness rose from 300 to 600."""
    values = {"mode": "feed_forward", "state_rate": 1000.0, **values}
    made = make(values)
    answer(made)
    apply(made, {**values, "stiffness": 600.0})
    for i in range(1, 21):
        found = commanded(made, 1.0 + 1e-3 * i, (1 + i) * MS)
    return float(found.motors.stiffness[1])


def linearized(values: Values) -> Any:
    return effort({**values, **LINEARIZATION})


def with_poles_at(pole: float) -> Any:
    """The same by the library, all poles of all joints there."""
    actuation = controller(**LINEARIZATION).actuation
    gains = rbd.FeedbackGains.placed(actuation, dict.fromkeys(NAMES, pole), 50.0)
    return rbd.feedback_linearization(actuation, gains, Q, V, Z, W, R).effort


def cases() -> dict[str, Case]:
    motors = expected(controller(mode="feed_forward"))
    proportional, derivative = KP * (motors.position - Z), KD * (motors.velocity - W)
    bt = 40.0 * 0.02    # three poles at 40 1/s
    return {
        "mode": Case("feed_forward", effort, lambda was: was - proportional, {"motor_gains.kp": list(KP)}),
        "motor_gains.kp": Case(list(KP), effort, lambda was: was + proportional),
        "motor_gains.kd": Case(list(KD), effort, lambda was: was + derivative),
        "motor_effort_limits.maximum": Case([1.0, -1.0, 0.001], effort, lambda was: np.clip(
            was, [-1.0, -50.0, -0.001], [1.0, 50.0, 0.001])),
        "motor_effort_limits.rate": Case(2.0, change, np.array([0.02, 0.02])),
        "poles": Case(60.0, linearized, lambda was: with_poles_at(60.0)),
        "stiffness": Case(500.0, stiffness, 500.0),
        "stiffness_poles": Case(40.0, changing_stiffness, 600.0 - 300.0 * np.exp(-bt) * (1.0 + bt + bt**2 / 2.0),
                                tolerance=1e-6),
    }
