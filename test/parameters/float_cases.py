"""What the parameters of node `float_check` do, in its logic without ROS."""
from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from parameters import held_cases
from parameters.case import Case, Values
from parameters.held_cases import GAINS, STILL
from parameters.torque_cases import Arm
from support.arm import Q, V, arm

import rbd_ros as rbd

FLOAT = "float_check"
QUICK: dict[str, Any] = {**GAINS, "sweep": [0.0], "fade": 0.0, "time": 0.1, "feedback.min_rate": 0.0}


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


def off(values: Values) -> Any:
    """The effort beyond gravity of an arm that is held 0.01 rad away, at V."""
    made = Arm(FLOAT, values)
    made.state(v=STILL)
    made.now += 0.01
    return made.state(Q + 0.01, V) - rbd.gravity_effort(arm(), Q + 0.01)


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
    gravity = rbd.gravity_effort(arm(), Q)
    beyond = np.array([10.0, 20.0]) * -0.01
    return {
        **held_cases.cases(FLOAT),
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
