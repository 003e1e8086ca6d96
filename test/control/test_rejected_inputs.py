"""What is rejected changes nothing but counters: the controller is equal to one that never saw it."""
from __future__ import annotations

import copy

import numpy as np
import pytest
from support.arm import NAMES, Q, V, arm, measured
from support.elastic_arm import MOTORS, W, Z, answer, controller, holding
from support.equal import same

from rbd_ros.runtime.control.feedforward import FeedforwardController, FeedforwardSettings
from rbd_ros.runtime.control.flatness import FlatnessController, FlatnessSettings
from rbd_ros.runtime.inputs.references import Point

SECOND, MS = 1_000_000_000, 1_000_000
FAR, STIFF = np.array([0.5, 0.0, 0.0]), np.array([0.0, 0.0, 100.0])
NAN, INF = float("nan"), float("inf")


def bad_state(rng, made, now, stamp):
    q, v = made.state.q, made.state.v
    ahead = stamp + rng.choice([0, 5 * SECOND, 900 * MS])
    return made.on_state, [
        (now, ahead, NAMES, [NAN, 0.0], v), (now, ahead, NAMES, [INF, 0.0]), (now, ahead, NAMES, [0.1]),
        (now, ahead, NAMES, q, [0.0]), (now, ahead, NAMES, q, v, [1.0]), (now, ahead, ["elbow"], [0.1]),
        (now, ahead, ["elbow", "elbow", "shoulder"], [0.1] * 3), (now, stamp - SECOND, NAMES, q, v),
        (now, 0, NAMES, q, v), (now, stamp + 5 * SECOND, NAMES, q, v), (now, stamp, NAMES, q + 0.5, v),
        (now, ahead, NAMES[::-1], q[::-1] + 0.5, v), (now, stamp, NAMES, q, [40.0, 0.0], [1.0, 2.0]),
        (now, ahead, ["gripper"], [0.1])]


def bad_reference(rng, made, now, stamp):
    return made.on_reference, [
        (now, stamp, NAMES, [NAN, 0.0]), (now, stamp, NAMES, [0.1]), (now, stamp, ["wrist"], [0.1]),
        (now, stamp, NAMES[::-1], Q, [0.1]), (now, stamp, NAMES, Q, V, [INF, 0.0]),
        (now, stamp, NAMES, Q, V, V, [NAN] * 2),
        (now, stamp, ["elbow"], [0.1])]


def bad_trajectory(rng, made, now, stamp):
    start = int(rng.choice([0, stamp + SECOND, stamp - 100 * MS]))
    q = made.state.q
    return made.on_trajectory, [
        (now, max(start, stamp + SECOND), NAMES, [Point(0.0, q + 0.8), Point(1.0, q)]),
        (now, start, NAMES, [Point(1.0, [NAN, 0.0])]),
        (now, start, NAMES, [Point(1.0, q), Point(1.0, q)]), (now, start, NAMES[::-1], [Point(1.0, [0.1])]),
        (now, start, ["wrist"], [Point(1.0, [0.1])]), (now, start, NAMES, [Point(2.0, q + 9.0)]),
        (now, stamp - 10 * SECOND, NAMES, [Point(1.0, q)]), (now, start, NAMES, [Point(5.0, q, [90.0, 0.0])])]


def bad_wrenches(rng, made, now, stamp):
    return made.on_wrenches, [(now, [("tool", np.zeros(6))]), (now, [("lower", np.full(6, NAN))])]


@pytest.mark.parametrize("count", [60, pytest.param(300, marks=pytest.mark.thorough)])
@pytest.mark.parametrize("kind", [bad_state, bad_reference, bad_trajectory, bad_wrenches])
@pytest.mark.parametrize(("controller", "settings"), [
    (FeedforwardController, FeedforwardSettings), (FlatnessController, FlatnessSettings)])
def test_it_is_as_if_it_had_not_been(controller, settings, kind, count):
    rng = np.random.default_rng(1)
    model = arm()
    made = controller(model, settings.from_values({"gains.kp": 50.0, "wrench_timeout": 0.0}, model))
    made.activate(0.0)
    for i in range(count):
        now, stamp = 1.0 + 0.002 * i, 1000 * SECOND + 2 * i * MS
        choice = rng.random()
        if choice < 0.1:
            made.on_reference(now, stamp, NAMES, made.state.q, V)
        elif choice < 0.15:
            made.on_trajectory(now, int(rng.choice([0, stamp + 20 * MS])), NAMES, [Point(1.0, Q + 0.3)])
        elif choice < 0.2:
            made.on_wrenches(now, [("lower", np.ones(6))])
        assert made.on_state(now, stamp, NAMES, Q + 1e-3 * np.sin(i), V), made.rejections.last
        if i % 3 == 2:
            before = copy.deepcopy(made)
            accept, messages = kind(rng, made, now + 1e-4, stamp)
            arguments = messages[rng.integers(len(messages))]
            total = made.rejections.total
            assert not isinstance(accept(*arguments), np.ndarray)
            assert made.rejections.total == total + 1 or arguments[2] == ["gripper"], arguments
            assert not same(made, before), (same(made, before), arguments)


@pytest.mark.parametrize("count", [40, pytest.param(100, marks=pytest.mark.thorough)])
def test_motor_states_that_are_rejected_change_nothing(count):
    """Outliers of motors of joints, single stamps that leap; the motor that sets the stiffness has no limits here."""
    rng = np.random.default_rng(1)
    made, plain = (controller(motor_gains__kp=10.0, motor_gains__kd=1.0, state_timeout=0.05) for _ in range(2))
    for i in range(count):
        now, stamp = 1.0 + 1e-3 * i, (1000 + i) * MS
        np.testing.assert_array_equal(answer(made, now, stamp), answer(plain, now, stamp))
        if i > 10:
            messages = [
                (MOTORS, Z + FAR, W, 0), (MOTORS, Z, [0.5, 40.0, 3.0], 0), (MOTORS, Z, W, 900 * MS),
                (MOTORS, Z, W, -MS), (MOTORS, Z, [NAN, 0.0, 0.0], 0), (MOTORS, Z[:2], W, 0),
                (MOTORS[:2], Z[:2], W[:2], 0), (MOTORS[::-1], Z, [50.0, 0.0, 0.0], 0),
                (["shoulder", *MOTORS], [0.0, *Z], [0.0, *W], 0)]
            names, z, w, leap = messages[rng.integers(len(messages))]
            before = copy.deepcopy(made)
            assert not made.on_motor_state(now + 1e-4, stamp + 100 + leap, names, z, w)
            assert not same(made.motor_state, before.motor_state) and not same(made, before)
    assert made.rejections.total == count - 11 and made.rejections.counts["implausible"] > 0.1 * count
    assert made.rejections.counts["stamp_leap"] > 0.03 * count
    assert made.on_motor_state(1.1, 1100 * MS, MOTORS, Z + STIFF, W)


def test_motors_that_are_never_plausible_are_stale():
    made = controller(motor_gains__kp=10.0, state_timeout=0.05)
    answer(made, 1.0, 1000 * MS)
    for i in range(100):
        verdict = made.on_motor_state(1.001 + 1e-3 * i, (1001 + i) * MS, MOTORS, Z, [40.0, 0.0, 0.0])
        assert not verdict and "velocity of joint 'shoulder' is 40" in verdict.text
        found = made.on_state(1.001 + 1e-3 * i, (1001 + i) * MS, NAMES, measured(made.state.q), V)
    np.testing.assert_allclose(found.motor_effort, holding(made), rtol=0, atol=1e-9)
    assert "motor state" in found.problem
