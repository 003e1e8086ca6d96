"""Continuous joints whose driver reports angles between −π and π, and references in other turns than the robot."""
from __future__ import annotations

import numpy as np
import pytest
from support.arm import NAMES, Q, V, arm_urdf
from support.elastic_arm import MOTORS, R, W, Z, controller

import rbd_ros as rbd
from rbd_ros.runtime.control.feedforward import FeedforwardController, FeedforwardSettings
from rbd_ros.runtime.control.flatness import FlatnessController, FlatnessSettings
from rbd_ros.runtime.inputs.references import Point

MS = 1_000_000
TURN = 2.0 * np.pi
MODEL = rbd.load_urdf(arm_urdf().replace('"revolute"', '"continuous"', 1))    # the shoulder


@pytest.fixture(params=[(FeedforwardController, FeedforwardSettings), (FlatnessController, FlatnessSettings)],
                ids=["feedforward", "flatness"])
def made(request):
    controller, settings = request.param
    values = {"gains.kp": 30.0, "gains.kd": 3.0, "ramp_in": 0.0, "velocity_cutoff": 0.0}
    made = controller(MODEL, settings.from_values(values, MODEL))
    made.activate(0.0)
    return made


def test_an_angle_that_jumps_by_a_turn_is_no_motion(made):
    """It was 1570 rad/s, and an error of a turn: on and on at the effort limit."""
    for k in range(6):
        angle = np.pi - 0.01 + 0.004 * k
        made.on_reference(k * 4e-3, 0, NAMES, [np.pi, 0.0])
        wrapped = angle - TURN * (angle > np.pi)
        effort = made.on_state(k * 4e-3, (k + 1) * 4 * MS, NAMES, [wrapped, 0.0]).effort
        np.testing.assert_allclose(made.state.v, [float(k > 0), 0.0], rtol=0, atol=1e-9)
        expected = rbd.gravity_effort(MODEL, [np.pi, 0.0]) + np.array([30.0 * (np.pi - angle) - 3.0 * (k > 0), 0.0])
        np.testing.assert_allclose(effort, expected, rtol=0, atol=1e-9)


def test_trajectories_take_the_short_way(made):
    made.on_state(1.0, 1000 * MS, NAMES, [3.1, 0.0])
    assert made.on_trajectory(1.0, 0, NAMES, [Point(1.0, [-3.1, 0.0])])
    for stamp in (1000, 1500, 2000):
        reference = made.reference.sample(1.0, stamp * MS).q[0]
        assert abs((reference - np.pi + 1.0) % TURN - 1.0) < 0.05


def test_joints_with_limits_have_one_turn_only(made):
    made.on_reference(0.0, 0, NAMES, [0.0, 2.9])
    effort = made.on_state(0.0, MS, NAMES, [TURN, -2.9], [0.0, 0.0]).effort
    assert abs(effort[0]) < 30.0 and effort[1] == 50.0    # the limit


@pytest.mark.parametrize("mode", ["feed_forward_pd", "feedback_linearization"])
def test_elastic_joints_and_their_motors(mode):
    efforts = []
    for joint, motor in ((0.0, 0.0), (TURN, 0.0), (0.0, -TURN), (-TURN, TURN)):
        made = controller(model=MODEL, mode=mode, motor_gains__kp=10.0, state_rate=1000.0)
        made.on_reference(1.0, 0, NAMES, *R)
        made.on_motor_state(1.0, MS, MOTORS, Z + np.array([motor, 0, 0]), W)
        efforts.append(made.on_state(1.0, MS, NAMES, Q + np.array([joint, 0.0]), V).motor_effort)
        assert made.safety.mode == "running"
    np.testing.assert_allclose(efforts, np.tile(efforts[0], (4, 1)), rtol=0, atol=1e-6)
