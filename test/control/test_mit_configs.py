"""The shipped configurations of arms with MIT-mode motors, closed with such motors in MuJoCo, at their rates.

The stand-ins have the joints of those arms, about their weight, rotors and friction that the node does not know.
"""
from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import rbd_ros as rbd
from rbd_ros.runtime.control.feedforward import FEEDFORWARD_TABLE
from rbd_ros.runtime.inputs.references import Point
from rbd_ros.runtime.parameters import select, validate
from rbd_ros.runtime.rehearsal import rehearse

pytestmark = [pytest.mark.closed_loop, pytest.mark.filterwarnings("ignore::rbd_ros.RbdWarning")]
pytest.importorskip("mujoco", reason="the arm is MuJoCo's")
pytest.importorskip("pinocchio", reason="the arms are of example-robot-data: scripts/setup --peers")
from support import mit_arm  # noqa: E402
from support.mit_arm import MitArm, MitLoop, settings_of  # noqa: E402

CONFIG = Path(__file__).parents[2] / "config"
HOLD, SWING = 1.0, 2.4    # s: at rest before the motion, and half of it
TIMES = np.linspace(0.05, 2.0 * SWING, 96)
SETTINGS = ("mit.torque_scale", "mit.position_change", "mit.velocity_change")


class DriverArm(MitArm):
    """With a driver that repeats the last command in each of its cycles, and adds the gravity torque of model `known`,
    if there is one.
    """

    def __init__(self, known, *arguments, **options):
        self.known, self.last = known, None
        super().__init__(*arguments, **options)

    @property
    def added(self):
        return 0.0 * self.q if self.known is None else rbd.gravity_effort(self.known, self.q)

    def send(self, command):
        self.last = command

    def step(self, look=None):
        cycle = round(mit_arm.PERIOD / mit_arm.STEP)
        if self.last is not None and round(self.now / mit_arm.STEP) % cycle == 0:
            position, velocity, effort, *gains = self.last
            super().send(np.array([position, velocity, effort + self.added, *gains]))
        super().step(look)


def loop_of(name, monkeypatch):
    """The node of config/<name>.yaml and an arm that is 5 % heavier than it knows, and its way."""
    start, way, rotors, share, limits = (np.array(x) for x in ARMS[name])
    plan = rehearse(CONFIG / f"{name}.yaml")
    model = plan.model.with_scaled_masses(float(share)).with_(
        friction=np.zeros(len(start)), damping=np.zeros(len(start)), effort_limit=limits)
    values = validate(FEEDFORWARD_TABLE, select(FEEDFORWARD_TABLE, plan.given))
    period = 1.0 / values["state_rate"]
    monkeypatch.setattr(mit_arm, "PERIOD", period)
    settings, mit = settings_of(model, values, **{
        key[4:]: plan.given[key] for key in plan.given if key in SETTINGS})
    assert plan.given["mit.kp"] == plan.given["gains.kp"] and plan.given["mit.kd"] == plan.given["gains.kd"]
    peak = np.maximum(np.abs(rbd.gravity_effort(model, start)), 2.0)
    real = model.with_scaled_masses(1.05).with_(armature=rotors, friction=0.02 * peak, damping=0.05 * peak)
    known = model if "gravity" in plan.given["robot_compensates"] else None
    return MitLoop(DriverArm(known, real, plan.description, start, 1.0, delay=period), model, settings, mit), way


def motion(start, way, t):
    """There and back: position, velocity, acceleration (3, n)."""
    w = np.pi / SWING
    inside = 0.0 < t < 2.0 * SWING
    phase = w * min(max(t, 0.0), 2.0 * SWING)
    return np.array([start + 0.5 * way * (1.0 - np.cos(phase)), 0.5 * w * way * np.sin(phase) * inside,
                     0.5 * w * w * way * np.cos(phase) * inside])


# start and way of the joints; rotors, kg m^2; the part of the weight, and effort limits of the arm
ARMS = {
    "openarm": ([0.0, -0.5, 0.2, 0.9, 0.0, 0.6, 0.0], [0.6, 0.5, 0.4, 0.6, 0.5, 0.4, 0.5],
                [0.05, 0.05, 0.05, 0.05, 0.01, 0.01, 0.01], 0.4, [40.0, 40.0, 27.0, 27.0, 7.0, 7.0, 7.0]),
    "big_yam": ([0.0, 1.2, -1.2, -0.3, 0.0, 0.0], [0.6, 0.5, 0.4, 0.4, 0.4, 0.4],
                [0.05, 0.05, 0.05, 0.05, 0.01, 0.01], 1.0, [10.0] * 6)}


@pytest.mark.parametrize("name", ARMS)
def test_the_arm_follows_within_the_limits_of_the_file(name, monkeypatch):
    loop, way = loop_of(name, monkeypatch)
    start, errors, most = loop.arm.q, [], []
    loop.run(HOLD)
    begin = loop.arm.now
    assert loop.follow([Point(t, *motion(start, way, t)) for t in TIMES])

    def each():
        errors.append(loop.arm.q - motion(start, way, loop.arm.now - begin)[0])
        most.append(np.abs(loop.arm.applied - loop.arm.added))

    loop.run(2.0 * SWING, each)
    assert np.abs(errors).max() < 0.03
    assert (np.max(most, axis=0) <= np.array(rehearse(CONFIG / f"{name}.yaml").given["effort_limits.maximum"])).all()


def moving(name, monkeypatch):
    """In the middle of the way, at 0.4 rad/s."""
    loop, way = loop_of(name, monkeypatch)
    start = loop.arm.q
    loop.run(HOLD)
    begin = loop.arm.now
    assert loop.follow([Point(t, *motion(start, way, t)) for t in TIMES])
    loop.run(0.5 * SWING)
    assert np.abs(loop.arm.v).max() > 0.35
    return loop, lambda: loop.arm.q - motion(start, way, loop.arm.now - begin)[0]


@pytest.mark.parametrize("name", ARMS)
@pytest.mark.parametrize("dies", [False, True])
def test_a_killed_node_and_lost_states_leave_an_arm_that_is_held(name, dies, monkeypatch):
    loop, _ = moving(name, monkeypatch)
    place, loop.alive, loop.states_until = loop.arm.q, not dies, np.inf
    loop.run(2.0)
    rest = loop.arm.q
    assert np.abs(rest - place).max() < (0.06 if dies else 0.08) and np.abs(loop.arm.v).max() < 0.01
    loop.run(4.0)
    assert np.abs(loop.arm.q - rest).max() < 2e-3


@pytest.mark.parametrize("name", ARMS)
def test_a_node_that_stands_still_for_a_while_catches_up(name, monkeypatch):
    loop, error = moving(name, monkeypatch)
    loop.node_until, loop.speeds = loop.arm.now + 0.3, []
    loop.run(1.5)
    assert max(loop.speeds) < 1.0 and np.abs(error()).max() < 0.03
