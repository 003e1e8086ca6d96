"""Trajectories taken in at once are those taken in point by point, and what is wrong in one is named all the same."""

from array import array

import numpy as np
import pytest

import rbd_ros as rbd
from rbd_ros.core.motion.trajectory import Reference, Trajectory, Waypoint
from rbd_ros.runtime.control.feedforward import FeedforwardController, FeedforwardSettings
from rbd_ros.runtime.inputs.rejections import Rejections
from rbd_ros.runtime.inputs.references import Point, ReferenceInput

MODEL = rbd.sample("iiwa")
NAMES = [*reversed(MODEL.joint_names)]
SECOND = 10**9


@pytest.mark.parametrize("fields", [1, 2, 3])
@pytest.mark.parametrize("kind", [list, np.array, lambda x: array("d", x)], ids=["list", "numpy", "message"])
def test_all_points_are_taken_in_model_order(fields, kind):
    values = np.random.default_rng(1).uniform(-0.05, 0.05, size=(20, 3, 7))
    points = [Point(0.05 * (i + 1), *(kind(x) for x in rows[:fields])) for i, rows in enumerate(values)]
    made = ReferenceInput(MODEL, Rejections(), 0.0)
    assert made.accept_trajectory(0.0, 0, SECOND, NAMES, points, np.zeros(7))
    expected = Trajectory([Waypoint(0.05 * (i + 1), *(x[::-1] for x in rows[:fields]))
                           for i, rows in enumerate(values)], Reference.rest(np.zeros(7)))
    for t in np.linspace(0.0, 1.2, 50):
        for x, y in zip(made.sample(0.0, SECOND + int(t * SECOND))[:3], expected.sample(int(t * SECOND) * 1e-9)[:3],
                        strict=True):
            np.testing.assert_array_equal(x, y)


class Gate:
    """A lock that another thread may have taken whenever it is free: `between` runs each time before it is had."""

    def __init__(self, between):
        self.held, self.times, self._between = False, 0, between

    def __enter__(self):
        self._between(self.times)
        self.held, self.times = True, self.times + 1

    def __exit__(self, *error):
        self.held = False


def controller(monkeypatch, between):
    made = FeedforwardController(MODEL, FeedforwardSettings.from_values({}, MODEL))
    made.activate(0.0)
    made.on_state(0.0, SECOND, MODEL.joint_names, np.zeros(7), np.zeros(7))
    gate = Gate(lambda times: between(made, times))
    offered = ReferenceInput.offered

    def unlocked(self, *arguments):
        assert not gate.held
        return offered(self, *arguments)

    monkeypatch.setattr(ReferenceInput, "offered", unlocked)
    return made, made.on_trajectory(0.0, 0, NAMES, [Point(1.0, [0.1] * 7)], gate), gate


def test_nothing_of_a_trajectory_is_looked_at_under_the_lock(monkeypatch):
    made, verdict, gate = controller(monkeypatch, lambda made, times: None)
    assert verdict and gate.times == 2 and made.reference.followed is not None


def test_an_emergency_stop_while_a_trajectory_is_looked_at(monkeypatch):
    made, verdict, _ = controller(monkeypatch, lambda made, times: made.safety.stop() if times == 1 else None)
    assert "during an emergency stop" in verdict.text and made.reference.followed is None


def test_a_reference_that_changes_while_a_trajectory_is_looked_at(monkeypatch):
    """A robot that is elsewhere meanwhile: the trajectory starts from there."""
    def elsewhere(made, times):
        if times == 1:
            made.reference.clear()
            made.state.q = np.full(7, 0.01)

    made, verdict, gate = controller(monkeypatch, elsewhere)
    assert verdict and gate.times == 4
    np.testing.assert_array_equal(made.reference.sample(0.0, SECOND).q, np.full(7, 0.01))


@pytest.mark.parametrize(("point", "text"), [
    (Point(0.3, [0.1] * 6), "position in trajectory point 2 has 6 numbers for 7 names"),
    (Point(0.3, [0.1] * 7, [0.1] * 8), "velocity in trajectory point 2 has 8 numbers for 7 names"),
    (Point(0.3, [0.1] * 6 + [np.nan]), "position in trajectory point 2 of joint"),
    (Point(0.3, [0.1] * 7, [0.1] * 7, [np.inf] * 7), "acceleration in trajectory point 2 of joint"),
    (Point(np.nan, [0.1] * 7), "time of trajectory point 2 is not finite")])
def test_what_is_wrong_is_named(point, text):
    rejections = Rejections()
    made = ReferenceInput(MODEL, rejections, 0.0)
    good = [Point(0.1, [0.1] * 7), Point(0.2, [0.2] * 7)]
    assert not made.accept_trajectory(0.0, 0, SECOND, NAMES, [*good, point], np.zeros(7))
    assert text in rejections.last


def test_points_with_different_fields():
    """Velocities in some points only: those segments are linear, the others cubic."""
    made = ReferenceInput(MODEL, Rejections(), 0.0)
    points = [Point(1.0, [1.0] * 7, [0.5] * 7), Point(2.0, [2.0] * 7), Point(3.0, [2.0] * 7)]
    assert made.accept_trajectory(0.0, 0, SECOND, NAMES, points, np.zeros(7))
    np.testing.assert_allclose(made.sample(0.0, SECOND + SECOND // 2).v, 1.375)    # Hermite: 1.5 − 0.25 v₁
    np.testing.assert_allclose(made.sample(0.0, SECOND + 3 * SECOND // 2).v, 1.0)


def test_a_dense_trajectory_that_comes_late():
    """Points every ms at 1 rad/s, 5.9 ms late: taken up where the robot can catch up within its velocity limits."""
    made = ReferenceInput(MODEL, Rejections(), 0.0)
    points = [Point(1e-3 * i, [1e-3 * i] * 7, [1.0] * 7) for i in range(1000)]
    assert made.accept_trajectory(0.0, SECOND, SECOND + 5_900_000, NAMES, points, np.zeros(7))
    first = made.sample(0.0, SECOND + 5_900_000)
    np.testing.assert_array_equal(first.q, np.zeros(7))
    slowest = MODEL.velocity_limit.min()
    times = np.arange(5_900_000, 50_000_000, 100_000)
    q = np.array([made.sample(0.0, SECOND + int(t)).q for t in times])
    assert (np.abs(np.diff(q, axis=0)).max() / 1e-4) < 3.0 * slowest    # cubic, so somewhat faster than the mean
    np.testing.assert_allclose(q[-1], 0.0499, atol=1e-4)
