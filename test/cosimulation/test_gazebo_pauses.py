"""What docs/cosimulation.md says of pauses, resets and delays in Gazebo."""
from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import yaml
from parameters.node_maker import Nodes
from support.arm import NAMES, Q, arm

import rbd_ros as rbd
from rbd_ros.core.simulation.simulator import Simulator
from rbd_ros.runtime.control.feedforward import FeedforwardController, FeedforwardSettings
from rbd_ros.runtime.inputs.references import Point

CONFIG = Path(__file__).parents[2] / "config"
GAZEBO = yaml.safe_load((CONFIG / "gazebo.yaml").read_text())["/**"]["ros__parameters"]
LOCKSTEP = {**GAZEBO, "state_timeout": 10.0, "ramp_in": 0.0, "ramp_out": 0.0}    # as in gazebo.launch.py


@pytest.mark.parametrize(("values", "shown", "pause", "goes_on"), [
    (GAZEBO, True, 60.0, True), (LOCKSTEP, True, 60.0, True),    # Gazebo itself shows its state all the time
    (GAZEBO, False, 1.4, True), (GAZEBO, False, 1.6, False),     # joint_state_broadcaster does not
    (LOCKSTEP, False, 10.9, True), (LOCKSTEP, False, 11.1, False)])
def test_a_trajectory_after_a_pause_of_gazebo(values, shown, pause, goes_on):
    model = arm()
    made = FeedforwardController(model, FeedforwardSettings.from_values({**values, "gravity_check": False}, model))
    made.activate(0.0)
    now, stamp = 1.0, 10**9

    def run(seconds, passes=True):
        nonlocal now, stamp
        for _ in range(round(seconds * 1000)):
            now, stamp = now + 1e-3, stamp + passes * 1_000_000
            made.on_state(now, stamp, NAMES, Q, np.zeros(2))

    run(1.0)
    assert made.on_trajectory(now, 0, NAMES, [Point(20.0, Q + 0.5)])
    run(0.8)
    assert made.safety.mode == "running"
    if shown:
        run(pause, passes=False)
        assert made.safety.mode == "running"
    else:
        end = now + pause
        while now < end:
            now += 0.01
            made.watchdog(now)
    run(0.8)
    assert made.safety.mode == ("running" if goes_on else "waiting")


def test_a_resting_arm_stays_while_its_states_cease():
    """Though Gazebo goes on, without feedback."""
    model, pose = rbd.sample("iiwa"), np.array([0.5, 0.4, 0.0, -0.6, 0.0, 0.3, 0.0])
    made = FeedforwardController(model, FeedforwardSettings.from_values({**GAZEBO, "gravity_check": False}, model))
    made.activate(0.0)
    robot, torque = Simulator(model, q=pose, step=1e-3, integrator="semi_implicit"), rbd.gravity_effort(model, pose)
    for k in range(1, 3500):
        if k < 1500:
            torque = made.on_state(1e-3 * k, 10**9 + k * 1_000_000, model.joint_names, robot.q, robot.v).effort
        elif (found := made.watchdog(1e-3 * k)) is not None:
            torque = found.effort
        if k == 10:
            assert made.on_trajectory(1e-3 * k, 0, model.joint_names, [Point(0.1, pose)])
        robot.step(torque)
    assert made.safety.mode == "stale"
    np.testing.assert_allclose(robot.q, pose, rtol=0.0, atol=0.01)


def test_the_delay_that_the_gains_for_gazebo_stand():
    """Of one joint, s² + (kd s + kp) exp(−s T) = 0: stable up to the phase margin over the crossover frequency."""
    (kp,), (kd,) = GAZEBO["gains.kp"], GAZEBO["gains.kd"]
    crossover = np.sqrt((kd**2 + np.sqrt(kd**4 + 4.0 * kp**2)) / 2.0)
    said = re.search(r"(\d+) ms", (CONFIG / "gazebo.yaml").read_text())[1]
    assert round(1e3 * np.arctan2(kd * crossover, kp) / crossover) == int(said)


def test_the_residual_says_that_commands_do_not_act_and_what_a_reset_does(monkeypatch):
    said = []
    robot = {"robot_description_file": str(rbd.sample_path("two_link"))}
    with Nodes("residual").started({**robot, "use_sim_time": True}) as node:
        logger = SimpleNamespace(warning=lambda text, **options: said.append(text))
        monkeypatch.setattr(node, "get_logger", lambda: logger)
        for held in (0, 1, 2, 0, 1, 2, 3, 4, 105, 0, 0):
            node._tell_hold(held)
        assert said == ["the last 3 commands do not act: the torque is still that of an older one. Whoever takes the "
                        "commands does not get them", "commands act again; 105 did not"]
        said.clear()
        clock = node.get_clock()
        for seconds in (5, 6, 0):
            clock.set_ros_time_override(clock.now().from_msg(type(clock.now().to_msg())(sec=seconds)))
        [line] = said
        assert "went back by 6.000 s" in line and "start it again" in line
        monkeypatch.undo()
