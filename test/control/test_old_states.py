"""Controllers do not feed old states back, and give the safe output in a loop that is too slow."""
from __future__ import annotations

import numpy as np
import pytest
from support import elastic_arm
from support.arm import A_REF, NAMES, Q_REF, V_REF, Q, V, arm, measured

import rbd_ros as rbd
from rbd_ros.runtime.control.feedforward import FeedforwardController, FeedforwardSettings
from rbd_ros.runtime.control.flatness import FlatnessController, FlatnessSettings
from rbd_ros.runtime.inputs.references import Point

KP, KD = np.array([30.0, 20.0]), np.array([3.0, 2.0])
FEEDBACK = KP * (Q_REF - Q) + KD * (V_REF - V)


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
        q = measured(self.made.state.q)
        return self.made.on_state(self.now, round(self.now * 1e9), NAMES, q, V, (), age).effort


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
        found = made.on_state(now, stamp, NAMES, measured(made.state.q), V, (), 0.006 / pace).effort    # three periods
    assert made.loop.counts["old_states"] <= 8 and made.loop.counts["slow_loops"] == 0    # 8 tell the pace
    np.testing.assert_allclose(found, wanted(made) + FEEDBACK, atol=1e-9)


def test_states_without_stamps_are_judged_by_their_reception():
    made, now = feedforward(state_rate=0.0), 1.0
    for step in [0.002] * 200 + [0.022] * 60:
        now += step
        made.on_state(now, 0, NAMES, measured(made.state.q), V)
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
    robot = rbd.Simulator(model.with_(damping=[2.0, 2.0, 1.0, 1.0, 0.3, 0.3, 0.1],
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
            coming += [(k + age, answer.effort.copy())] if answer else []
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
    return made, made.on_state(at, (run + 1) * elastic_arm.MS, NAMES, measured(made.state.q), V, (), age)


def test_motors_have_no_pd_for_an_old_state():
    made, found = elastic(mode="feed_forward_pd", motor_gains__kp=[100.0, 50.0, 1e-4], age=0.006)
    elastic_arm.close(found.motor_effort, elastic_arm.expected(made).effort)
    assert made.report()["old_states"] == 1


def test_feedback_linearization_has_no_command_for_an_old_state():
    made, found = elastic(mode="feedback_linearization", poles=60.0, age=0.006)
    elastic_arm.close(found.motor_effort, elastic_arm.holding(made), atol=3.0)    # and braking
    assert made.safety.mode == "waiting" and made.counts["feedback_missing"] == 1 and "too old" in found.problem
    assert found.motors is None and found.rates is None


def test_motors_are_safe_in_a_slow_loop():
    made, _ = elastic(mode="feed_forward_pd", motor_gains__kp=10.0)
    for k in range(60):
        found = elastic_arm.commanded(made, 1.2 + 0.02 * k, (200 + 20 * k) * elastic_arm.MS)
    assert made.safety.mode == "waiting" and found.motors is None and "Hz" in found.problem
