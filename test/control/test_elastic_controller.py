"""The controller of elastic joints: what it commands, and that the arm moves as it should."""
from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from support.arm import NAMES, Q, V, arm
from support.elastic_arm import (DRIVES, MOTORS, MS, R, W, Z, answer, close, commanded, controller, expected, holding,
                                 motion)

import rbd_ros as rbd
from rbd_ros.core.actuation.motor_reference import MotorReference
from rbd_ros.core.simulation.elastic_simulator import ElasticSimulator
from rbd_ros.runtime.control.elastic_settings import ElasticSettings
from rbd_ros.runtime.control.smooth_stiffness import SmoothStiffness
from rbd_ros.runtime.safety.motor_ramp import MotorRamp

# ---- the command

def test_feed_forward_is_the_flatness_map():
    made = controller(mode="feed_forward")
    found = commanded(made, motors=False)
    close(found.motor_effort, expected(made).effort)
    for got, wanted in zip(found.motors, expected(made), strict=True):
        close(got, wanted)
    close(found.effort, expected(made).torque)
    assert found.rates is not None and found.problem == "" and made.safety.mode == "running"


def test_pd_acts_on_all_motors():
    kp, kd = [100.0, 50.0, 1e-4], [3.0, 2.0, 1e-5]
    made = controller(motor_gains__kp=kp, motor_gains__kd=kd)
    motors = expected(made)
    close(answer(made), motors.effort + np.array(kp) * (motors.position - Z) + np.array(kd) * (motors.velocity - W))


def test_feedback_linearization_is_that_of_the_library():
    made = controller(mode="feedback_linearization", state_rate=1000.0, poles=[60.0, 80.0], stiffness_poles=30.0)
    gains = rbd.FeedbackGains.placed(made.actuation, {"shoulder": 60.0, "elbow": 80.0}, 30.0)
    close(answer(made), np.clip(rbd.feedback_linearization(made.actuation, gains, Q, V, Z, W, R).effort,
                                *made.settings.motors.effort_limit * [[-1.0], [1.0]]))


@pytest.mark.parametrize("changed", [
    {"mode": "feed_forward"}, {"motor_gains__kp": [120.0, 100.0, 0.0]}, {"motor_gains__kd": [4.0, 3.0, 0.0]},
    {"stiffness": 500.0}, {"motor_effort_limits__maximum": 0.5}, {"friction__damping": False},
    {"friction__coulomb": False}, {"friction__smoothing": 0.5}, {"gravity": True}, {"payload": True}],
    ids=lambda changed: next(iter(changed)))
def test_every_parameter_changes_the_motor_effort(changed):
    changed = dict(changed)
    gains = {"motor_gains__kp": [100.0, 100.0, 0.0], "motor_gains__kd": [3.0, 3.0, 0.0]}
    model = arm().with_(gravity=(0.0, 0.0, -1.6)) if changed.pop("gravity", False) else arm()
    if changed.pop("payload", False):
        changed = {"payload__body": "lower", "payload__mass": 0.5}
    assert np.abs(answer(controller(**gains)) - answer(controller(model=model, **gains | changed))).max() > 1e-3


@pytest.mark.parametrize("changed", [{"poles": 70.0}, {"stiffness_poles": 40.0}, {"state_rate": 500.0}],
                         ids=lambda changed: next(iter(changed)))
def test_every_parameter_of_feedback_linearization_changes_it(changed):
    given = {"mode": "feedback_linearization", "state_rate": 1000.0, "poles": 60.0, "motor_effort_limits__maximum": 1e6}
    efforts = []
    for made in (controller(**given), controller(**given | changed)):
        answer(made, 1.0, MS)
        efforts.append(answer(made, 1.001, 2 * MS))    # the second one looks ahead
    assert np.abs(efforts[0] - efforts[1]).max() > 1e-9


def test_limits_of_motors():
    made = controller()
    close(made.settings.motors.effort_limit, [100.0, 50.0, 50.0])    # those of the joints
    free = answer(made)
    made = controller(motor_effort_limits__maximum=[1.0, -1.0, 0.001])
    close(answer(made), np.clip(free, [-1.0, -50.0, -0.001], [1.0, 50.0, 0.001]))
    assert made.report()["motor_saturated"] == 1 and made.report()["saturated"] == 0
    made = controller(motor_effort_limits__rate=2.0, motor_gains__kp=[100.0, 100.0, 0.0])
    first = np.array(answer(made))
    made.on_reference(1.01, 0, NAMES, *(R + 0.1))
    close(np.abs(answer(made, 1.01, 11 * MS, None) - first)[:2], [0.02, 0.02])
    assert made.report()["motor_rate_limited"] == 1


def test_order_of_joints_and_motors():
    made = controller(joints=["elbow", "shoulder"], motor_gains__kp=[1.0, 2.0, 3.0])
    assert made.settings.motor_names == ("elbow", "shoulder", "elbow/stiffness")
    close(made.settings.law.kp, [2.0, 1.0, 3.0])
    both = {name: dict(DRIVES["elbow"], stiffness=k) for name, k in (("shoulder", 100.0), ("elbow", 200.0))}
    made = controller(both, joints=["elbow", "shoulder"], stiffness=[-1.0, 400.0], stiffness_poles=[5.0, 6.0])
    assert made.settings.motor_names == ("elbow", "shoulder", "elbow/stiffness", "shoulder/stiffness")
    close(made.settings.stiffness, [400.0, 200.0])
    close(made.settings.stiffness_poles, [6.0, 5.0])
    close(np.array([1.0, 2.0, 3.0, 4.0])[made.settings.motor_output], [2.0, 1.0, 4.0, 3.0])


def test_lists_of_motors_are_in_the_order_of_joints():
    model = rbd.sample("iiwa")
    drives = {name: {"type": "rigid", "motor": {"rotor_inertia": 0.1}} for name in model.joint_names}
    names = [*model.joint_names[2:], *model.joint_names[:2]]
    made = controller(drives, model, joints=names, motor_gains__kp=[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0])
    assert made.settings.motor_names == tuple(names)
    close(made.settings.law.kp, [6.0, 7.0, 1.0, 2.0, 3.0, 4.0, 5.0])


def test_external_wrenches_reach_the_motors():
    made = controller(mode="feed_forward", wrench_limits__rate=np.inf)
    wrench = np.array([0.1, 0.2, 0.3, 1.0, 2.0, 3.0])
    made.on_wrenches(1.0, [("lower", wrench)])
    found = commanded(made)
    without = expected(made).torque
    torque = rbd.inverse_dynamics(made.model, *R[:3], {"lower": wrench}) - rbd.inverse_dynamics(made.model, *R[:3])
    close(found.motors.torque, without + torque)
    assert abs(found.motor_effort[0] - expected(made).effort[0] - torque[0]) > 1e-6    # the springs' motion, too


def test_a_jump_to_the_same_motion_changes_nothing():
    """In any cycle: what the ramp blends is the jump alone, not how far the motors came since the last one."""
    a = np.array([0.7, -2.0])

    def reference(t):
        zero = np.zeros(2)
        return MotorReference(0.3 + 0.5 * t + 0.5 * a * t * t, 0.5 + a * t, a, zero, zero, zero)

    ramp = MotorRamp()
    ramp.follow(1.0, reference(1.0))
    for i in range(1, 60):
        t = 1.0 + 0.01 * i
        if i % 3 == 0:
            ramp.jump(t, reference(t), 0.5)
        for found, wanted in zip(ramp.follow(t, reference(t))[:3], reference(t), strict=False):
            close(found, wanted, 1e-12)


# ---- stiffness

def test_a_changed_stiffness_is_approached_smoothly():
    made = controller(mode="feed_forward", stiffness_poles=40.0)
    close(commanded(made).motors.stiffness[1], 300.0)
    values = {"ramp_in": 0.0, "mode": "feed_forward", "stiffness_poles": 40.0, "stiffness": 600.0}
    made.apply(ElasticSettings.from_drives(values, arm(), made.settings.given))
    close(made.safe_motors(True), holding(made, stiffness=300.0), 1e-12)    # what is there, not what is wanted
    found = []
    for i in range(1, 400):
        motors = commanded(made, 1.0 + 1e-3 * i, (1 + i) * MS).motors
        found.append((motors.stiffness[1], motors.position[2], motors.velocity[2]))
    k, sigma, rate = np.array(found).T
    assert (np.diff(k) >= 0.0).all() and k[0] < 301.0 and 599.9 < k[-1] <= 600.0
    close(k, sigma)    # of this spring
    np.testing.assert_allclose(np.gradient(sigma, 1e-3)[5:-5], rate[5:-5], atol=2e-3 * rate.max())
    assert made.settings.stiffness == 600.0


def test_the_first_command_has_the_stiffness_that_is_there():
    """However long ago it was that another one was asked for."""
    made = controller(mode="feed_forward", stiffness_poles=40.0)
    values = {"ramp_in": 0.0, "mode": "feed_forward", "stiffness_poles": 40.0, "stiffness": 600.0}
    made.apply(ElasticSettings.from_drives(values, arm(), made.settings.given))
    close(commanded(made).motors.stiffness[1], 300.0)


def test_the_filter_solves_its_differential_equation():
    b, h = np.array([3.0, 20.0]), 1e-3
    one, many = (SmoothStiffness(np.array([1.0, 2.0]), b) for _ in range(2))
    for made in (one, many):
        made.aim(np.array([2.0, -1.0]), b)
    for _ in range(700):
        many.advance(h)
    close(one.advance(0.7), many.value, 1e-9)
    e, d, dd = many.value - [[2.0, -1.0], [0.0, 0.0], [0.0, 0.0]]
    ddd = (many.advance(h)[2] - dd) / h
    np.testing.assert_allclose(ddd, -b**3 * e - 3 * b**2 * d - 3 * b * dd, rtol=0.05, atol=1e-3)


# ---- closed loop

@pytest.mark.parametrize("mode", ["feed_forward_pd", "feedback_linearization"])
def test_the_arm_follows_and_so_does_the_stiffness(mode):
    model = arm().with_(friction=0.0)
    made = controller(model=model, mode=mode, state_rate=1000.0, poles=60.0, stiffness_poles=60.0,
                      motor_effort_limits__maximum=1e3, motor_gains__kp=[1500.0, 500.0, 1e-3],
                      motor_gains__kd=[40.0, 12.0, 1e-5])
    r = motion(0.0)
    start = rbd.motor_reference(made.actuation, *r[:3], rbd.link_efforts(made.actuation, *r))
    robot = ElasticSimulator(rbd.load_actuation(DRIVES, model), step=5e-4, q=r[0], v=r[1],
                             motor_position=start.position, motor_velocity=start.velocity)
    error = []
    for i in range(700):
        now, stamp = 1.0 + 1e-3 * i, MS * (1 + i)
        if i == 200:
            made.apply(dataclasses.replace(made.settings, stiffness=np.array([400.0])))
        assert made.on_reference(now, 0, NAMES, *motion(1e-3 * i))
        assert made.on_motor_state(now, stamp, MOTORS, robot.motor_position, robot.motor_velocity)
        found = made.on_state(now, stamp, NAMES, robot.q, robot.v)
        assert found.problem == ""
        robot.step(found.motor_effort, 2)
        error.append(np.abs(robot.q - motion(1e-3 * (i + 1))[0]).max())
    assert max(error) < 5e-4 and max(error[500:]) < 2e-4
    assert abs(robot.stiffness[1] - 400.0) < 1.0
    assert not any(made.counts.values())
