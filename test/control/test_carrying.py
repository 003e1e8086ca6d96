"""A robot at rest is carried as before once its joint states have ceased; all others get the safe effort."""
from __future__ import annotations

import numpy as np
import pytest
from benchmark.loop.plant import Plant
from support import elastic_arm
from support.arm import NAMES, Q, arm

import rbd_ros as rbd
from rbd_ros.runtime.control.carrying import WINDOW, Carrying
from rbd_ros.runtime.control.feedforward import FeedforwardController, FeedforwardSettings
from rbd_ros.runtime.control.flatness import FlatnessController, FlatnessSettings

MODEL = arm().with_(friction=np.zeros(2), damping=np.zeros(2))
LIMIT = MODEL.effort_limit
G = rbd.gravity_effort(MODEL, Q)
ZERO = np.zeros(2)
VALUES = {"gains.kp": [200.0, 100.0], "gains.kd": [20.0, 5.0], "ramp_in": 0.0, "reference_timeout": 0.0,
          "plausible_velocity": [np.inf], "tracking_tolerance": [np.inf]}
KINDS = {"feedforward": (FeedforwardController, FeedforwardSettings),
         "flatness": (FlatnessController, FlatnessSettings)}
every_kind = pytest.mark.parametrize("kind", KINDS)


def make(kind="feedforward", model=MODEL, **changed):
    controller, settings = KINDS[kind]
    values = VALUES | {name.replace("__", "."): value for name, value in changed.items()}
    made = controller(model, settings.from_values(values, model))
    made.activate(0.0)
    return made


class Run:
    """States every 2 ms; `error` (nv,) is how far the reference is from Q."""

    def __init__(self, made, error=ZERO):
        self.made, self.now = made, 1.0
        assert made.on_reference(1.0, 0, NAMES, Q + error, ZERO, ZERO, ZERO, ZERO)

    def states(self, duration, v=ZERO, age=0.0):
        for _ in range(round(duration / 2e-3)):
            self.now += 2e-3
            sent = self.made.on_state(self.now, round(self.now * 1e9), NAMES, Q, v, (), age).effort
        return sent

    def blind(self, age=0.06):
        return self.made.watchdog(self.now + age).effort


# ---- the arm

def lost(made, real, q, duration=0.4, before=1.5):
    """The largest speeds (nv,) of a real arm whose states cease after `before` s, near q."""
    plant = Plant(real, q, 0.0, ZERO)
    plant.braked, plant.command, now, fastest = False, rbd.gravity_effort(MODEL, q), 1.0, ZERO
    assert made.on_reference(now, 0, NAMES, q, ZERO, ZERO, ZERO, ZERO)
    while now < 1.0 + before + duration:
        now += 2e-3
        plant.advance(4)
        answer = (made.on_state(now, round(now * 1e9), NAMES, plant.q, plant.v) if now < 1.0 + before
                  else made.watchdog(now))
        if answer is not None:
            plant.command = answer.effort
        if now >= 1.0 + before:
            fastest = np.maximum(fastest, np.abs(plant.v))
    assert made.safety.mode == "stale"
    return fastest


@every_kind
def test_an_arm_at_rest_whose_load_differs_within_the_bound_stays_at_rest(kind):
    rng = np.random.default_rng(4)
    for _ in range(8):
        q, real = rng.uniform(-2.0, 2.0, 2), MODEL.with_scaled_masses(rng.uniform(0.7, 1.3))
        lacks = np.abs(rbd.gravity_effort(real, q) - rbd.gravity_effort(MODEL, q))
        assert (lacks < 0.1 * LIMIT).all()
        assert lost(make(kind), real, q).max() < 0.01


def test_beyond_the_bound_it_moves_off_but_less_than_under_the_safe_effort():
    real, q = MODEL.with_scaled_masses(2.5), np.zeros(2)
    lacks = np.abs(rbd.gravity_effort(real, q) - rbd.gravity_effort(MODEL, q))
    assert lacks[0] > 0.1 * LIMIT[0]
    carried, safe = (lost(make(**changed), real, q, 0.15) for changed in ({}, {"safe_output__hold_position": 0.0}))
    assert 0.1 < carried[0] < 0.7 * safe[0]


def test_without_gains_an_arm_that_begins_to_sink_sinks_no_faster():
    """The effort was that of the model, and the acceleration says what it lacked."""
    real, q = MODEL.with_scaled_masses(1.01), np.zeros(2)

    def fastest(**changed):
        return lost(make(feedforward="gravity", gains__kp=0.0, gains__kd=0.0, **changed), real, q, before=0.06).max()

    assert fastest() < 0.05 < 0.15 < fastest(safe_output__hold_position=0.0)


# ---- the effort

@every_kind
def test_it_is_the_mean_of_the_last_50_ms(kind):
    run = Run(make(kind), np.array([0.02, 0.0]))
    run.states(0.2)
    first = run.states(0.03)
    assert run.made.on_reference(run.now, 0, NAMES, Q + np.array([0.0, 0.03]), ZERO, ZERO, ZERO, ZERO)
    second = run.states(0.022)    # the last of them has not acted yet
    assert np.abs(second - first).min() > 1.0
    carried = run.blind()
    np.testing.assert_allclose(carried, 0.6 * first + 0.4 * second, rtol=0, atol=1e-9)
    np.testing.assert_array_equal(run.blind(0.4), carried)


@every_kind
def test_it_is_within_the_share_of_the_limits_of_the_safe_effort(kind):
    for share in (0.0, 0.05, 0.1):
        run = Run(make(kind, safe_output__hold_position=share), np.array([0.09, -0.2]))
        sent = run.states(0.1)
        assert (np.abs(sent - G) > 0.1 * LIMIT).all()
        np.testing.assert_allclose(run.blind(), G + share * LIMIT * [1.0, -1.0], rtol=0, atol=1e-12)


def test_a_saturated_effort_counts_as_it_was_sent():
    run = Run(make(effort_limits__maximum=[6.0, 6.0]), np.array([0.0, -1.0]))
    assert run.states(0.1)[1] == -6.0
    gravity = np.clip(G, -6.0, 6.0)
    carried = run.blind()
    assert carried[1] == pytest.approx(gravity[1] - 0.6) and (np.abs(carried) <= 6.0).all()


def test_an_unlimited_joint_gets_the_safe_effort_as_it_is_not_held_either():
    model = MODEL.with_(effort_limit=np.array([np.inf, 50.0]))
    run = Run(make(model=model), np.array([0.01, 0.01]))
    sent = run.states(0.1)
    np.testing.assert_allclose(run.blind(), [G[0], sent[1]], rtol=0, atol=1e-9)


@pytest.mark.parametrize("speed", [0.06, -3.0])
def test_an_arm_that_moved_within_the_window_gets_the_safe_effort(speed):
    for after, rests in ((0.0, False), (0.04, False), (0.06, True)):
        run = Run(make(), np.array([0.02, 0.0]))
        run.states(0.1)
        run.states(2e-3, v=np.array([0.0, speed]))
        sent = run.states(after) if after else None
        if rests:
            np.testing.assert_allclose(run.blind(), sent, rtol=0, atol=1e-9)
        else:
            np.testing.assert_array_equal(run.blind(), G)


def test_an_arm_slower_than_0_05_is_at_rest_and_its_acceleration_costs_no_effort():
    run, end = Run(make()), np.array([0.04, -0.02])
    run.states(0.1)
    for k in range(25):
        run.states(2e-3, v=(k + 1) / 25 * end)
    sent = [G - [20.0, 5.0] * (k / 25 * end) for k in range(25)]
    inertial = rbd.mass_matrix(MODEL, Q) @ end / 0.05
    np.testing.assert_allclose(run.blind(), np.mean(sent, axis=0) - inertial, rtol=0, atol=1e-6)


def test_noise_of_the_velocities_at_rest_is_no_acceleration():
    """By the difference of two of them it would be one of 0.14 rad/s² (standard deviation)."""
    rng, lacks = np.random.default_rng(2), []
    for _ in range(20):
        run = Run(make(gains__kd=0.0), np.array([0.02, 0.0]))
        for _ in range(50):
            sent = run.states(2e-3, v=0.005 * rng.standard_normal(2))
        lacks.append(run.blind() - sent)
    moved = np.linalg.solve(rbd.mass_matrix(MODEL, Q), np.transpose(lacks))
    assert np.count_nonzero(np.abs(moved) < 1e-9) > 20 and moved.std() < 0.05


def test_states_that_ceased_before_begin_a_new_window():
    run = Run(make(), np.array([0.02, 0.0]))
    run.states(0.1)
    assert not np.array_equal(run.blind(), G)
    run.now += 0.1
    run.states(0.03)
    np.testing.assert_array_equal(run.blind(), G)
    run.now += 0.1
    run.states(0.06)
    assert not np.array_equal(run.blind(), G)


@pytest.mark.parametrize("anew", [lambda made, now: made.activate(now), lambda made, now: made.begin_anew()])
def test_activation_and_other_robots_begin_a_new_window(anew):
    made = make()
    run = Run(made, np.array([0.02, 0.0]))
    run.states(0.1)
    anew(made, run.now)
    run = Run(made, np.array([0.02, 0.0]))
    run.now = 1.1
    run.states(0.03)
    np.testing.assert_array_equal(run.blind(), G)


def test_a_loop_that_is_too_slow_carries_nothing():
    run = Run(make(state_rate=500.0), np.array([0.02, 0.0]))
    run.states(0.1)
    run.states(4e-3, age=0.05)
    assert run.made.loop.share == 0.0
    np.testing.assert_array_equal(run.blind(), G)


def test_a_model_that_overflows_leaves_the_safe_effort(monkeypatch):
    for inertial in (lambda laws, acceleration: [np.full(2, np.nan)], lambda laws, acceleration: [np.full(2, np.inf)]):
        run = Run(make(), np.array([0.02, 0.0]))
        run.states(0.1)
        monkeypatch.setattr(run.made, "inertial", inertial)
        np.testing.assert_array_equal(run.blind(), G)

    def refuses(laws, acceleration):
        raise rbd.RbdError("overflow")

    run = Run(make(), np.array([0.02, 0.0]))
    run.states(0.1)
    monkeypatch.setattr(run.made, "inertial", refuses)
    np.testing.assert_array_equal(run.blind(), G)


def test_a_robot_that_compensates_gravity_is_carried_by_the_rest():
    run = Run(make(robot_compensates=["gravity"]), np.array([0.02, -0.01]))
    sent = run.states(0.1)
    np.testing.assert_allclose(sent, [4.0, -1.0], rtol=0, atol=1e-9)
    np.testing.assert_allclose(run.blind(), sent, rtol=0, atol=1e-9)


def test_it_is_the_last_effort_of_a_node_that_ends_then():
    run = Run(make(), np.array([0.02, 0.0]))
    run.states(0.1)
    np.testing.assert_array_equal(run.blind(), run.made.finish(run.now + 0.07).effort)


def test_after_the_hold_it_ramps_to_the_fallback():
    run = Run(make(safe_output__hold=0.1, safe_output__fallback_ramp=0.1), np.array([0.02, 0.0]))
    run.states(0.1)
    for age in np.arange(0.06, 0.4, 0.01):
        last = run.blind(age)
    np.testing.assert_array_equal(last, ZERO)


def test_motors_of_elastic_joints_are_carried_too():
    """By the spring's load and the rotor's own acceleration."""
    made = elastic_arm.controller(mode="feed_forward_pd", motor_gains__kp=[20.0, 20.0, 0.0],
                                  motor_gains__kd=[1.0, 1.0, 0.0], state_rate=500.0, reference_timeout=0.0,
                                  plausible_velocity=[np.inf])
    model, place = made.model, np.array([*(Q + 0.01), 300.0])
    end = np.array([0.02, -0.01, 0.03])
    assert made.on_reference(1.0, 0, NAMES, Q, ZERO, ZERO, ZERO, ZERO)
    sent = []
    for k in range(60):
        now, stamp = 1.0 + 2e-3 * k, round((1000.0 + 2e-3 * k) * 1e9)
        v = max(k - 34, 0) / 25 * end
        assert made.on_motor_state(now, stamp, elastic_arm.MOTORS, place, v)
        sent.append(made.on_state(now, stamp, NAMES, Q, 0.5 * v[:2]))
    carried = made.watchdog(now + 0.06)
    load = rbd.mass_matrix(model, Q) @ (0.5 * end[:2] / 0.05)
    motors = np.mean([each.motor_effort for each in sent[-26:-1]], axis=0)
    inertial = np.array([*load, 0.0]) + made.actuation.inertia * end / 0.05
    np.testing.assert_allclose(carried.motor_effort, motors - inertial, rtol=0, atol=1e-6)
    np.testing.assert_allclose(carried.effort, np.mean([each.effort for each in sent[-26:-1]], axis=0) - load,
                               rtol=0, atol=1e-6)


# ---- the window

def test_efforts_count_for_as_long_as_they_acted():
    carrying = Carrying(0.05)
    for time, effort in ((0, 9.0), (10, 1.0), (40, 3.0), (60, 100.0)):    # ms; the last has not acted yet
        carrying.record(time * 1_000_000, np.zeros(1), [np.array([effort])])
    rest = carrying.rest()
    assert rest is not None and rest.efforts[0] == pytest.approx((30 * 1.0 + 20 * 3.0) / 50)


@pytest.mark.parametrize("gap", [-1, WINDOW + 1])
def test_a_gap_or_a_time_that_goes_backwards_begins_a_new_window(gap):
    carrying, time = Carrying(0.05), 0
    for _ in range(6):
        carrying.record(time, np.zeros(1), [np.zeros(1)])
        assert (carrying.rest() is None) == (time < WINDOW)
        time += WINDOW // 5
    carrying.record(time - WINDOW // 5 + gap, np.zeros(1), [np.zeros(1)])
    assert carrying.rest() is None


def test_the_window_keeps_no_more_than_it_needs():
    carrying = Carrying(0.05)
    for k in range(1000):
        carrying.record(k * WINDOW // 50, np.zeros(1), [np.zeros(1)])
    assert len(carrying._cycles) == 51
