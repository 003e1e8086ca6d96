"""Trajectories taken in at once are those taken in point by point, and what is wrong in one is named all the same."""

from array import array

import numpy as np
import pytest

import rbd_ros as rbd
from rbd_ros.runtime.inputs.rejections import Rejections
from rbd_ros.runtime.inputs.references import Point, ReferenceInput

MODEL = rbd.sample("iiwa")
NAMES = [*reversed(MODEL.joint_names)]
SECOND = 10**9


def taken(points, monkeypatch, at_once=True):
    made = ReferenceInput(MODEL, Rejections(), 0.0)
    if not at_once:
        monkeypatch.setattr(made._map, "table", lambda *_: None)
    else:
        monkeypatch.setattr(made, "_waypoint", None)
    assert made.accept_trajectory(0.0, 0, SECOND, NAMES, points, np.zeros(7))
    return [made.sample(0.0, SECOND + int(t * SECOND)) for t in np.linspace(0.0, 1.2, 50)]


@pytest.mark.parametrize("fields", [1, 2, 3])
@pytest.mark.parametrize("kind", [list, np.array, lambda x: array("d", x)], ids=["list", "numpy", "message"])
def test_at_once_and_one_by_one(monkeypatch, fields, kind):
    values = np.random.default_rng(1).uniform(-0.05, 0.05, size=(20, 3, 7))
    points = [Point(0.05 * (i + 1), *(kind(x) for x in rows[:fields])) for i, rows in enumerate(values)]
    for a, b in zip(taken(points, monkeypatch), taken(points, monkeypatch, at_once=False), strict=True):
        for x, y in zip((a.q, a.v, a.a), (b.q, b.v, b.a), strict=True):
            np.testing.assert_array_equal(x, y)


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
