"""Old states are not fed back, and a loop that is too slow gets the safe output; what only looks so is let be."""
from __future__ import annotations

import itertools

import numpy as np
import pytest
from support import elastic_arm
from support.arm import A_REF, NAMES, Q_REF, V_REF, Q, V, arm

import rbd_ros as rbd
from rbd_ros.core.simulation.simulator import Simulator
from rbd_ros.runtime.control.feedforward import FeedforwardController, FeedforwardSettings
from rbd_ros.runtime.control.flatness import FlatnessController, FlatnessSettings
from rbd_ros.runtime.control.loop_rate import LEARNING, LoopRate, Transit
from rbd_ros.runtime.inputs.references import Point

KP, KD = np.array([30.0, 20.0]), np.array([3.0, 2.0])
FEEDBACK = KP * (Q_REF - Q) + KD * (V_REF - V)
S = 1_000_000_000


# ---- the judge of the loop

class Stream:
    """States for a `LoopRate`; `now` and `stamp` in s."""

    def __init__(self, rate=0.0, max_age=5.0, fraction=0.25, ramp=0.5):
        self.loop, self.ramp, self.now, self.stamp = LoopRate(rate, max_age, fraction), ramp, 1.0, 1e5

    def go(self, seconds, step, age=0.0, wait=None):
        """States `step` s apart by stamps, `wait` s by reception; age: s, or one per state."""
        ages = itertools.cycle(np.atleast_1d(age))
        for _ in range(round(seconds / step)):
            self.now, self.stamp = self.now + (step if wait is None else wait), self.stamp + step
            self.loop.judge(self.now, round(self.stamp * 1e9), next(ages), self.ramp)
        return self.loop


@pytest.mark.parametrize("rate", [0.0, 500.0])
def test_an_old_state_takes_the_feedback_out_and_it_comes_back_within_the_ramp(rate):
    stream = Stream(rate)
    assert stream.go(1.0, 0.002, 0.009).share == 1.0
    loop = stream.go(0.002, 0.002, 0.011)
    assert loop.share == 0.0 and loop.counts == {"old_states": 1, "slow_loops": 0}
    assert stream.go(0.25, 0.002).share == pytest.approx(0.5)
    assert stream.go(0.25, 0.002).share == pytest.approx(1.0) and not loop.slow


@pytest.mark.parametrize("h", [1e-3, 2e-3, 0.01, 1.0 / 30.0])
@pytest.mark.parametrize("known", [True, False])
def test_a_slow_loop_is_found_counted_named_and_forgiven(h, known):
    stream = Stream(1.0 / h if known else 0.0)
    loop = stream.go(max(2.0, 2 * LEARNING * h), h)
    longest = max(0.5, 50.0 * h)
    assert not stream.go(3.0 * longest, 3.9 * h).slow
    stream.go(2.0 * longest, h)
    assert stream.go(3.0 * longest, 5.0 * h).slow and loop.counts["slow_loops"] == 1
    assert f"than {0.25 / h:.3g} Hz" in loop.problem and f"of {1.0 / h:.3g} Hz" in loop.problem
    assert ("'state_rate'" in loop.problem) and ("learnt" in loop.problem) != known
    assert 0.0 < loop.slow_for(stream.now) < 3.0 * longest
    assert stream.go(3.0 * longest, 3.0 * h).slow    # better, but not `EAGER` times
    assert not stream.go(3.0 * longest, 2.0 * h).slow and loop.problem == "" and loop.slow_for(stream.now) == 0.0


def test_answers_that_are_old_on_average_are_a_slow_loop_too():
    stream = Stream(500.0)
    assert not stream.go(2.0, 0.002, [0.001, 0.001, 0.015]).slow
    loop = stream.go(2.0, 0.002, [0.001, 0.015, 0.015])
    assert loop.slow and "max_age" in loop.problem and "10 ms" in loop.problem
    assert not stream.go(1.0, 0.002).slow


def test_a_starved_loop_is_found_within_half_a_second():
    """45 Hz of 500, answers 42 ms old, as measured on a machine without a free core."""
    stream = Stream()
    stream.go(1.0, 0.002)
    assert stream.go(0.023, 0.022, 0.042).share == 0.0
    begin = stream.now
    while not stream.go(0.022, 0.022, 0.042).slow:
        assert stream.now - begin < 0.5


@pytest.mark.parametrize("rate", [0.0, 500.0])
@pytest.mark.parametrize(("gap", "answers"), [(0.03, 5), (0.034, 3), (0.034, 4), (0.042, 1)])
def test_a_loop_that_stutters_is_found_before_it_swings_up(rate, gap, answers):
    """The process runs in bursts: each answer is to a fresh state, but the torque of the last one is held for long."""
    stream = Stream(rate)
    stream.go(2.0, 0.002, 0.001)
    begin = stream.now
    while not stream.loop.slow:
        stream.go(gap, gap, 0.001)
        stream.go(answers * 0.002, 0.002, 0.001)
        assert stream.now - begin < 0.25
    assert stream.loop.counts == {"old_states": 0, "slow_loops": 1}


@pytest.mark.parametrize("fraction", [0.0, 0.02, 0.25])
@pytest.mark.parametrize("h", [1e-3, 2e-3, 0.01, 1.0 / 30.0])
def test_one_pause_is_no_slow_loop_however_long(fraction, h):
    """Nor is one that ends with an old state."""
    for pause in (20.0 * h, 0.2, 1e3):
        stream = Stream(1.0 / h, fraction=fraction)
        stream.go(3.0, h)
        assert not stream.go(pause, pause, 1.0).slow and not stream.go(1.0, h).slow


@pytest.mark.parametrize("limits", [{"max_age": np.inf, "fraction": 0.0}])
def test_both_limits_can_be_switched_off(limits):
    loop = Stream(500.0, **limits).go(10.0, 0.1, 3.0)
    assert loop.share == 1.0 and not loop.slow and not any(loop.counts.values())


def jittery(count, h, seed=1):
    return h * np.random.default_rng(seed).lognormal(0.0, 0.5, count)


@pytest.mark.parametrize("h", [1e-3, 2e-3, 0.01, 1.0 / 30.0])
@pytest.mark.parametrize("name", ["jitter", "pauses", "one long pause", "coarse stamps", "stamps twice", "stands still",
                                  "a message in three is lost"])
def test_no_false_alarm(name, h):
    steps = {"jitter": jittery(3000, h), "pauses": np.where(np.arange(3000) % 500 == 499, 0.045, h),
             "one long pause": np.where(np.arange(3000) == 1000, 1e3, h),
             "coarse stamps": np.diff(np.floor(np.arange(3000) * h / 0.02 / (h / 2e-3)) * 0.02 * (h / 2e-3)),
             "stamps twice": np.where(np.arange(3000) % 2, h, 0.0),
             "stands still": np.where(np.arange(3000) % 1000 > 500, 0.0, h),
             "a message in three is lost": np.where(np.arange(3000) % 2, h, 2.0 * h)}[name]
    for rate in (0.0, 1.0 / h):
        loop, now, stamp = LoopRate(rate, 5.0, 0.25), 1.0, S
        for step in steps:
            now, stamp = now + max(step, h), stamp + round(step * 1e9)
            loop.judge(now, stamp, 0.5 * h, 0.5)
            assert not loop.slow and loop.share == 1.0, (rate, now, loop.problem)


def test_a_restart_forgets_what_was_learnt():
    stream = Stream()
    stream.go(1.0, 0.001)
    stream.loop.restart()
    assert not stream.go(10.0, 0.01).slow
    assert stream.loop.period == pytest.approx(0.01)


# ---- the age of a message

def ages(transit, delays, offset=0, received=()):
    """Of messages every 2 ms with these delays (s); offset: ns that the publisher's clock is ahead."""
    begin = 10**18
    return [transit.age(begin + 2_000_000 * i + round(delay * 1e9), begin + 2_000_000 * i + offset, 0)
            for i, delay in enumerate(delays)]


@pytest.mark.parametrize("offset", [0, 3 * S, -7 * S, 10**17])
def test_age_is_counted_from_the_most_prompt_message_whatever_the_clock(offset):
    found = ages(Transit(), [0.001, 0.0005, 0.0205, 0.0005, 0.0015], offset)
    np.testing.assert_allclose(found, [0.0, 0.0, 0.02, 0.0, 0.001], atol=1e-6)


def test_age_is_at_least_that_since_the_reception():
    assert Transit().age(10**18, 0, 10**18 - 30_000_000) == pytest.approx(0.03)
    assert Transit().age(10**18, 10**18 - 1, 10**18 - 30_000_000) == pytest.approx(0.03)
    assert Transit().age(10**18, 0, 0) == 0.0    # nothing is known


@pytest.mark.parametrize("leap", [3.0, -3.0])
def test_a_clock_that_leaps_makes_nothing_old_for_long(leap):
    transit, delays = Transit(), np.full(3000, 0.001)
    delays[1000:] += leap
    assert np.flatnonzero(np.array(ages(transit, delays)) > 0.005).size == 0


def test_clocks_that_drift_make_nothing_old():
    assert max(ages(Transit(), 0.001 + 2e-3 * 2e-4 * np.arange(20_000))) < 1e-3


# ---- controllers

def feedforward(**values):
    return _made(FeedforwardController, FeedforwardSettings, values)


def flatness(**values):
    return _made(FlatnessController, FlatnessSettings, values)


def _made(controller, settings, values):
    values = {"ramp_in": 0.0, "ramp_out": 0.0, "state_rate": 500.0, "gains.kp": list(KP), "gains.kd": list(KD)} | {
        name.replace("__", "."): value for name, value in values.items()}
    made = controller(arm(), settings.from_values(values, arm()))
    made.activate(0.0)
    return made


class Run:
    """A controller at a reference in a state that both stay; `now` (s)."""

    def __init__(self, made):
        self.made, self.now = made, 1.0

    def answer(self, age=0.0, step=0.002, refer=True):
        self.now += step
        if refer:
            assert self.made.on_reference(self.now, 0, NAMES, Q_REF, V_REF, A_REF)
        return self.made.on_state(self.now, round(self.now * 1e9), NAMES, Q, V, (), age)


def wanted(made):
    """Without feedback."""
    model = made.model
    smoothing = 0.01 if isinstance(made, FeedforwardController) else 0.1
    return (rbd.inverse_dynamics(model, Q_REF, V_REF, A_REF) + model.damping * V_REF
            + model.friction * np.tanh(V_REF / smoothing))


@pytest.mark.parametrize("make", [feedforward, flatness])
def test_an_answer_to_an_old_state_carries_no_feedback(make):
    run = Run(make())
    np.testing.assert_allclose(run.answer(0.009), wanted(run.made) + FEEDBACK, atol=1e-9)
    np.testing.assert_allclose(run.answer(0.011), wanted(run.made), atol=1e-9)
    np.testing.assert_allclose(run.answer(), wanted(run.made) + FEEDBACK, atol=1e-9)    # the ramp takes no time here
    assert run.made.report()["old_states"] == 1 and run.made.safety.mode == "running"


@pytest.mark.parametrize("make", [feedforward, flatness])
def test_feedback_comes_back_within_ramp_in(make):
    run = Run(make(ramp_in=0.1))
    for _ in range(60):
        run.answer()
    run.answer(0.03)
    for share in np.arange(1, 51) / 50.0:
        np.testing.assert_allclose(run.answer(), wanted(run.made) + share * FEEDBACK, atol=1e-9)


def test_computed_torque_loses_its_feedback_too():
    run = Run(feedforward(feedforward="computed_torque"))
    without = _made(FeedforwardController, FeedforwardSettings, {"feedforward": "computed_torque", "gains.kp": [0.0],
                                                                 "gains.kd": [0.0]})
    np.testing.assert_allclose(run.answer(0.011), Run(without).answer(), atol=1e-9)
    assert np.abs(run.answer() - Run(without).answer()).max() > 0.1


def test_a_law_of_nothing_but_feedback_has_the_safe_effort_for_an_old_state():
    run = Run(feedforward(feedforward="none", ramp_in=0.1))
    for _ in range(60):
        run.answer()
    np.testing.assert_allclose(run.answer(0.02), run.made.safe_effort(False), atol=1e-12)
    assert run.made.safety.mode == "waiting"
    for share in np.arange(51) / 50.0:
        np.testing.assert_allclose(run.answer(), run.made.safe_effort(False) * (1.0 - share) + share * FEEDBACK,
                                   atol=1e-9)
    for _ in range(60):
        last = run.answer()
    np.testing.assert_allclose(last, FEEDBACK, atol=1e-9)


@pytest.mark.parametrize("make", [feedforward, flatness])
def test_a_slow_loop_has_the_safe_output(make):
    run = Run(make())
    for _ in range(100):
        run.answer()
    for _ in range(40):
        found = run.answer(step=0.022)
    np.testing.assert_allclose(found, run.made.safe_effort(False), atol=1e-12)
    report = run.made.report()
    assert report["mode"] == "waiting" and report["slow_loops"] == 1 and "125 Hz" in run.made.loop.problem
    assert getattr(run.made, "rates", None) is None
    for _ in range(1000):
        found = run.answer()
    np.testing.assert_allclose(found, wanted(run.made) + FEEDBACK, atol=1e-9)
    assert run.made.report()["mode"] == "running"


def test_a_trajectory_does_not_go_on_without_the_robot():
    run = Run(feedforward())
    for _ in range(100):
        run.answer(refer=False)
    assert run.made.on_trajectory(run.now, 0, NAMES, [Point(30.0, Q + 0.5)])
    run.answer(refer=False)
    assert run.made.safety.mode == "running"
    for _ in range(60):    # 1.3 s
        run.answer(step=0.022, refer=False)
    for _ in range(1000):
        found = run.answer(refer=False)
    assert not run.made.loop.slow and run.made.safety.mode == "waiting"
    np.testing.assert_allclose(found, run.made.safe_effort(False), atol=1e-12)


@pytest.mark.parametrize("pace", [0.02, 0.1, 10.0])
def test_a_simulation_of_another_pace_is_judged_in_its_own_time(pace):
    made, now, stamp = feedforward(state_timeout=1.0), 1.0, 10**9
    for _ in range(600):
        now, stamp = now + 0.002 / pace, stamp + 2_000_000
        made.on_reference(now, 0, NAMES, Q_REF, V_REF, A_REF)
        found = made.on_state(now, stamp, NAMES, Q, V, (), 0.006 / pace)    # three periods
    assert made.loop.counts["old_states"] <= 8 and made.loop.counts["slow_loops"] == 0    # 8 tell the pace
    np.testing.assert_allclose(found, wanted(made) + FEEDBACK, atol=1e-9)


def test_states_without_stamps_are_judged_by_their_reception():
    made, now = feedforward(state_rate=0.0), 1.0
    for step in [0.002] * 200 + [0.022] * 60:
        now += step
        made.on_state(now, 0, NAMES, Q, V)
    assert made.loop.slow


def test_activation_and_another_clock_begin_anew():
    run = Run(feedforward())
    for _ in range(60):
        run.answer(step=0.022)
    assert run.made.loop.slow
    run.made.deactivate()
    run.made.finish(run.now)
    run.made.activate(run.now)
    run.answer()
    assert not run.made.loop.slow and run.made.safety.mode == "running"


# ---- the arm

def starved(**limits):
    """The iiwa of the demo in simulation, 2 s of a motion, in the second one states and answers are late; fastest joint
    (rad/s), farthest way from the start (rad), the controller.
    """
    model = rbd.sample("iiwa").with_(armature=[0.602, 2.437, 0.0813, 0.4268, 0.00563, 0.00827, 0.001779])
    names, q0 = list(model.joint_names), np.array([0.3, 0.6, 0.0, -1.2, 0.0, 0.8, 0.0])
    inertia = np.diag(rbd.mass_matrix(model, q0))
    values = {"gains.kp": list(400.0 * inertia), "gains.kd": list(28.0 * inertia), "state_rate": 500.0, **limits}
    made = FeedforwardController(model, FeedforwardSettings.from_values(values, model))
    made.activate(0.0)
    robot = Simulator(model.with_(damping=[2.0, 2.0, 1.0, 1.0, 0.3, 0.3, 0.1],
                                  friction=[3.0, 4.0, 2.0, 2.0, 0.5, 0.5, 0.2]), step=0.002)
    robot.reset(q0)
    effort, coming, due, fastest, farthest = rbd.gravity_effort(model, q0), [], 0, 0.0, 0.0
    for k in range(1000):
        now, period, age = 1.0 + 0.002 * k, *((11, 21) if k >= 500 else (1, 1))
        if k >= due:
            s = 2.0 * np.pi * 0.002 * k / 3.0
            made.on_reference(now, 0, names, q0 + 0.2 * (1.0 - np.cos(s)), np.full(7, 0.42 * np.sin(s)),
                              np.full(7, 0.88 * np.cos(s)))
            answer = made.on_state(now, round(now * 1e9), names, robot.q, robot.v, (), 0.002 * age)
            coming += [] if answer is None else [(k + age, answer.copy())]
            due = k + period
        while coming and coming[0][0] <= k:
            effort = coming.pop(0)[1]
        robot.step(effort)
        fastest, farthest = max(fastest, np.abs(robot.v).max()), max(farthest, np.abs(robot.q - q0).max())
    return fastest, farthest, made


def test_a_starved_loop_keeps_the_arm():
    """45 Hz, answers 42 ms old."""
    fastest, farthest, made = starved()
    assert fastest < 1.0 and farthest < 0.45    # the motion itself: 0.42 rad/s, 0.4 rad
    assert made.loop.slow and made.report()["old_states"] > 20


def test_feedback_of_old_states_would_lose_it():
    fastest, farthest, _ = starved(**{"feedback.max_age": np.inf, "feedback.min_rate": 0.0})
    assert fastest > 3.0 and farthest > 0.6


# ---- elastic joints

def elastic(run=60, age=0.0, **values):
    made = elastic_arm.controller(state_rate=1000.0, **values)
    for k in range(run):
        elastic_arm.answer(made, 1.0 + 1e-3 * k, (k + 1) * elastic_arm.MS)
    at = 1.0 + 1e-3 * run
    made.on_reference(at, 0, NAMES, *elastic_arm.R)
    made.on_motor_state(at, (run + 1) * elastic_arm.MS, elastic_arm.MOTORS, elastic_arm.Z, elastic_arm.W)
    made.on_state(at, (run + 1) * elastic_arm.MS, NAMES, Q, V, (), age)
    return made


def test_motors_have_no_pd_for_an_old_state():
    made = elastic(mode="feed_forward_pd", motor_gains__kp=[100.0, 50.0, 1e-4], age=0.006)
    elastic_arm.close(made.motor_effort, elastic_arm.expected(made).effort)
    assert made.report()["old_states"] == 1


def test_feedback_linearization_has_no_command_for_an_old_state():
    made = elastic(mode="feedback_linearization", poles=60.0, age=0.006)
    elastic_arm.close(made.motor_effort, elastic_arm.holding(made), atol=3.0)    # and braking
    assert made.safety.mode == "waiting" and made.counts["feedback_missing"] == 1 and "too old" in made.problem
    assert made.motors is None and made.rates is None


def test_motors_are_safe_in_a_slow_loop():
    made = elastic(mode="feed_forward_pd", motor_gains__kp=10.0)
    for k in range(60):
        elastic_arm.answer(made, 1.2 + 0.02 * k, (200 + 20 * k) * elastic_arm.MS)
    assert made.safety.mode == "waiting" and made.motors is None and "Hz" in made.problem
