"""The controller of elastic joints: what it refuses, and what it does then."""
from __future__ import annotations

import numpy as np
import pytest
from support.arm import NAMES, Q, V, arm, measured
from support.elastic_arm import (DRIVES, MOTORS, MS, R, W, Z, answer, close, commanded, controller, expected, holding,
                                 motion)

import rbd_ros as rbd
from rbd_ros.core.simulation.elastic_simulator import ElasticSimulator
from rbd_ros.runtime.safety import Command, SafetyFilter, SafetySettings

# ---- what cannot be done

def test_without_fresh_motors_the_output_is_safe():
    made = controller(motor_gains__kp=10.0, state_timeout=0.05)
    found = commanded(made, motors=False)
    close(found.motor_effort, holding(made))
    assert made.safety.mode == "waiting" and made.counts["motor_state_missing"] == 1
    assert "motor state" in found.problem and found.motors is None
    found = commanded(made, 1.01, 11 * MS)    # there it is
    close(found.motor_effort, answer(controller(motor_gains__kp=10.0)))
    assert found.problem == "" and found.motors is not None
    found = commanded(made, 1.07, 71 * MS, motors=False)    # and now it is stale
    close(found.motor_effort, holding(made))
    close(found.effort, made.safe_effort(False))
    assert made.safety.mode == "waiting" and made.counts["motor_state_missing"] == 2
    assert found.rates is None
    report = made.report()
    assert report["motor_mode"] == "waiting" and report["motor_state_missing"] == 2 and report["problem"]


def test_feed_forward_needs_no_motor_state():
    made = controller(mode="feed_forward")
    answer(made, motors=False)
    assert made.safety.mode == "running"


def test_a_reference_without_snap_is_not_enough():
    made = controller(mode="feed_forward")
    found = commanded(made, reference=R[:4], motors=False)
    close(found.motor_effort, holding(made))
    assert made.counts["reference_incomplete"] == 1 and "snap" in found.problem and found.motors is None


def test_a_torque_that_the_spring_cannot_bear_is_refused_by_name():
    made = controller(mode="feed_forward")
    assert made.on_reference(1.0, 0, NAMES, R[0], R[1], [300.0, 0.0], R[3], R[4])
    found = made.on_state(1.0, MS, NAMES, Q, V)
    assert made.counts["impossible"] == 1 and "shoulder" in found.problem
    close(found.motor_effort, holding(made))
    assert commanded(made, 1.01, 11 * MS).problem == "" and made.safety.mode == "running"


def test_gravity_beyond_the_spring_is_still_held():
    drives = {**DRIVES, "shoulder": dict(DRIVES["shoulder"], max_deflection=1e-6)}
    made = controller(drives, mode="feed_forward")
    close(answer(made, motors=False)[:2], rbd.gravity_effort(made.model, Q))
    assert made.counts["impossible"] == 1


@pytest.mark.parametrize(("names", "position", "velocity", "kind", "words"), [
    (MOTORS[:2], Z[:2], W[:2], "missing_joint", "elbow/stiffness"), (MOTORS, Z[:2], W, "wrong_size", "position"),
    (MOTORS, Z, [], "wrong_size", "velocity"), (MOTORS, [np.nan, 0, 0], W, "non_finite", "shoulder"),
    (["elbow", *MOTORS], [0, *Z], [0, *W], "duplicate_joint", "elbow")])
def test_bad_motor_states_are_rejected_by_name(names, position, velocity, kind, words):
    made = controller()
    assert not made.on_motor_state(1.0, MS, names, position, velocity)
    assert made.rejections.counts[kind] == 1 and words in made.rejections.last
    answer(made, motors=False)
    assert made.counts["motor_state_missing"] == 1


def test_motors_come_in_any_order_with_others_and_not_backwards():
    made = controller(motor_gains__kp=[100.0, 50.0, 1e-4])
    wanted = np.array(answer(made))
    names = ["elbow/stiffness", "gripper", "shoulder", "elbow"]
    assert made.on_motor_state(1.01, 11 * MS, names, [Z[2], 9.0, Z[0], Z[1]], [W[2], np.nan, W[0], W[1]])
    close(answer(made, 1.01, 11 * MS, motors=False), wanted)
    assert not made.on_motor_state(1.011, 2 * MS, MOTORS, Z, W) and "back" in made.rejections.last


def test_the_motor_of_a_rigid_joint_is_the_joint():
    drives = {**DRIVES, "elbow": {"type": "rigid", "motor": {"rotor_inertia": 0.1}}}
    made = controller(drives, motor_gains__kp=[0.0, 50.0], motor_gains__kd=[0.0, 2.0])
    assert made.on_reference(1.0, 0, NAMES, *R) and made.on_motor_state(1.0, MS, ["shoulder"], Z[:1], W[:1])
    found = made.on_state(1.0, MS, NAMES, Q, V)
    motors = expected(made)
    close(found.motor_effort[1], motors.effort[1] + 50.0 * (R[0, 1] - Q[1]) + 2.0 * (R[1, 1] - V[1]))


@pytest.mark.parametrize(("values", "words"), [
    ({"gains__kp": 1.0}, "gains.kp.*motor_gains"), ({"robot_compensates": ["gravity"]}, "robot_compensates"),
    ({"mode": "feedback_linearization"}, "state_rate"), ({"mode": "magic"}, "mode"),
    ({"stiffness": 10.0}, "stiffness.*elbow.*50 to 2000"), ({"stiffness": [100.0, 100.0]}, "'stiffness'.*expected 1"),
    ({"motor_gains__kp": [1.0, 2.0]}, "motor_gains.kp.*2 numbers, expected 1 or 3"),
    ({"motor_effort_limits__maximum": [1.0] * 4}, "motor_effort_limits.maximum")])
def test_settings_that_cannot_be_are_refused_by_name(values, words):
    with pytest.raises(rbd.RbdError, match=words):
        controller(**values)


@pytest.mark.parametrize(("velocity", "taken"), [
    ([0.48, 0.0, 0.0], 43), ([0.0, 0.0, 214.5], 183),    # 0.02 rad; of the second motor, 2 % of its range
    ([0.04, 0.04, 90.0], 500)])    # so slow that positions may stay equal
def test_motors_whose_driver_repeats_itself_are_refused(velocity, taken):
    made = controller()
    verdicts = [bool(made.on_motor_state(1.0 + 1e-3 * k, (1 + k) * MS, MOTORS, Z, velocity)) for k in range(500)]
    assert sum(verdicts) == taken and all(verdicts[:taken]) and made.rejections.counts["repeated"] == 500 - taken
    assert made.on_motor_state(1.5, 501 * MS, MOTORS, Z + 1e-12, velocity)    # it measures again


def test_damped_springs_need_the_rate():
    drives = {**DRIVES, "shoulder": {"type": "series_elastic", "stiffness": 800.0, "damping": 8.0,
                                     "motor": {"rotor_inertia": 0.3}}}
    with pytest.raises(rbd.RbdError, match=r"state_rate.*springs with damping"):
        controller(drives)
    made = controller(drives, mode="feed_forward", state_rate=1000.0)
    error = []
    for i in range(400):    # the deflection obeys D φ̇ + K φ = τ
        now, stamp = 1.0 + 1e-3 * i, (1 + i) * MS
        assert made.on_reference(now, 0, NAMES, *motion(1e-3 * i))
        motors, r = made.on_state(now, stamp, NAMES, measured(made.state.q), V).motors, motion(1e-3 * i)
        error.append(800.0 * (motors.position[0] - r[0, 0]) + 8.0 * (motors.velocity[0] - r[1, 0]) - motors.torque[0])
    close(error, 0.0, 1e-6)
    # a pause: the deflection of the steady motion, as at the start
    fresh = controller(drives, mode="feed_forward", state_rate=1000.0)
    close(answer(fresh, motors=False), answer(made, 1.5, 501 * MS, motors=False))


# ---- safe output, in time

def test_ramps_stop_and_the_end_hold_gravity_with_the_motors():
    made = controller(ramp_in=1.0, ramp_out=1.0, mode="feed_forward", state_timeout=10.0, reference_timeout=0.0)
    command, safe = expected(made).effort, holding(made)
    close(answer(made, 1.0, MS, motors=False), safe)
    close(answer(made, 1.5, 2 * MS, motors=False), safe + 0.5 * (command - safe))
    close(answer(made, 2.5, 3 * MS, motors=False), command)
    made.deactivate()
    close(answer(made, 3.0, 4 * MS, motors=False), safe + 0.5 * (command - safe))
    assert not made.finished
    close(answer(made, 3.6, 5 * MS, motors=False), safe)
    assert made.safety.finished
    braking = np.array(answer(made, 3.65, 6 * MS))
    assert np.abs(braking - safe).max() > 0.1
    close(made.finish(3.7).motor_effort, safe)    # what is left behind does not brake
    made.activate(4.0)
    answer(made, 4.1, 7 * MS, motors=False)
    made.safety.stop()
    found = commanded(made, 6.0, 7 * MS, motors=False)
    close(found.motor_effort, safe)
    assert found.motors is None and made.safety.latched
    made.safety.reset()
    answer(made, 6.1, 8 * MS, motors=False)
    assert made.safety.mode == "ramp_in"


def test_without_joint_states_gravity_is_held_and_then_the_fallback():
    made = controller(mode="feed_forward", state_timeout=0.05, safe_output__hold=0.5, safe_output__fallback_ramp=1.0,
                      safe_output__fallback=[3.0, -2.0])
    answer(made)
    assert made.watchdog(1.01) is None
    close(made.watchdog(1.06).motor_effort, holding(made))    # the motors' velocity is as old: nothing brakes
    close(made.watchdog(1.0 + 0.05 + 0.5 + 0.5).motor_effort, 0.5 * holding(made) + 0.5 * np.array([3.0, -2.0, 0.0]))
    close(made.watchdog(9.0).motor_effort, [3.0, -2.0, 0.0])


@pytest.mark.parametrize("damping", [5.0, pytest.param(20.0, marks=pytest.mark.thorough)])
def test_the_safe_output_brings_a_moving_arm_to_rest(damping):
    made = controller(safe_output__damping=damping, state_timeout=1.0)
    model = arm().with_(damping=0.0, friction=0.0)
    drives = {**DRIVES, "shoulder": {"type": "series_elastic", "stiffness": 800.0, "motor": {"rotor_inertia": 0.3}}}
    robot = ElasticSimulator(rbd.load_actuation(drives, model), step=5e-4, q=Q, v=2.0 * V)
    now, speed = 1.0, []
    for i in range(1500):
        now, stamp = 1.0 + 1e-3 * i, MS * (1 + i)
        made.on_motor_state(now, stamp, MOTORS, robot.motor_position, robot.motor_velocity)
        robot.step(made.on_state(now, stamp, NAMES, robot.q, robot.v).motor_effort, 2)
        speed.append(np.abs(robot.v).max())
    assert speed[0] > 0.7 and max(speed[-100:]) < 0.1 * speed[0]


@pytest.mark.parametrize("bad", ["joints", "motors"])
def test_a_command_that_is_not_finite_on_one_side_is_none_on_both(bad):
    one = np.ones(1)
    settings = SafetySettings(effort_limit=one, rate_limit=one, fallback=0.0 * one, ramp_in=0.0)
    safety = SafetyFilter([settings, settings], "laws", lambda laws, at_rest: [0.0 * one, 0.0 * one])
    safety.activate(0.0)
    command = Command(np.nan * one if bad == "joints" else one, motor_effort=np.nan * one if bad == "motors" else one)
    found = safety.update(1.0, lambda laws: command)
    assert safety.mode == "waiting" and safety.counts["non_finite_command"] == 1
    assert found.problem == "the command is not finite"
    for channel in safety.channels:
        close(channel.output, 0.0 * one)
