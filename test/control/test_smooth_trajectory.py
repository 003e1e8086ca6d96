"""C⁴ interpolation: conditions at the waypoints, continuity of four derivatives, polynomials reproduced."""
from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from numpy.polynomial import Polynomial
from support.arm import arm, arm_urdf

import rbd_ros as rbd
from rbd_ros.core.errors import RbdError
from rbd_ros.core.motion.smooth_trajectory import SmoothTrajectory
from rbd_ros.core.motion.trajectory import Reference, Waypoint

RNG = np.random.default_rng(1)
START = Reference(*RNG.normal(size=(5, 2)))
TIMES = (0.5, 1.25, 1.5, 3.0)


def waypoints(known, times=TIMES):
    return [Waypoint(t, RNG.normal(size=2), RNG.normal(size=2) if known > 0 else None,
                     RNG.normal(size=2) if known > 1 else None) for t in times]


def rows(reference):
    return np.stack([reference.q, reference.v, reference.a, reference.jerk, reference.snap])


@pytest.mark.parametrize("times", [TIMES, (2.0,), (0.0, 1.0), (0.0,), (1e-3, 5.0, 5.001)])
@pytest.mark.parametrize("known", [0, 1, 2])
def test_passes_the_waypoints_and_four_derivatives_are_continuous(known, times):
    points = waypoints(known, times)
    trajectory = SmoothTrajectory(points, START)
    dense = np.concatenate([np.linspace(a, b, 50) for a, b in pairwise((0.0, *times))])
    scale = 1.0 + np.abs([rows(trajectory.sample(t)) for t in dense]).max(axis=(0, 2))
    for point in points:
        sample = trajectory.sample(point.time)
        np.testing.assert_allclose(sample.q, point.q, atol=1e-9)
        if known > 0 and point is not points[-1] and point.time > 0.0:
            np.testing.assert_allclose(sample.v, point.v, atol=1e-9 * scale[1])
        if known > 1 and point is not points[-1] and point.time > 0.0:
            np.testing.assert_allclose(sample.a, point.a, atol=1e-9 * scale[2])
        if 0.0 < point.time < times[-1]:
            before = rows(trajectory.sample(np.nextafter(point.time, 0.0)))
            np.testing.assert_array_less(np.abs(before - rows(sample)).max(axis=1), 1e-7 * scale)
    end = rows(trajectory.sample(np.nextafter(times[-1], 0.0)))
    for k, value in enumerate((points[-1].q, points[-1].v, points[-1].a, None, None)):
        if times[-1] > 0.0:
            np.testing.assert_allclose(end[k], 0.0 if value is None else value, atol=1e-7 * scale[k])
    if times[0] > 0.0:
        np.testing.assert_allclose(rows(trajectory.sample(0.0)), rows(START), atol=1e-9)


@pytest.mark.parametrize("known", [0, 1, 2])
def test_a_polynomial_is_reproduced_with_all_derivatives(known):
    """Of degree 9, or 8 through velocities, or 7 through accelerations; without jerk and snap at its end."""
    terms = RNG.normal(size=(10 - known, 2)) * 0.3
    terms[3:5] = 0.0
    exact = [Polynomial(column)(Polynomial([-3.0, 1.0])) for column in terms.T]

    def value(t, k):
        return np.array([p.deriv(k)(t) if k else p(t) for p in exact])

    points = [Waypoint(t, value(t, 0), value(t, 1) if known > 0 or t == 3.0 else None,
                       value(t, 2) if known > 1 or t == 3.0 else None) for t in (0.4, 1.0, 1.7, 2.2, 3.0)]
    trajectory = SmoothTrajectory(points, Reference(*(value(0.0, k) for k in range(5))))
    expected = np.array([[value(t, k) for k in range(5)] for t in np.linspace(0.0, 2.999, 37)])
    actual = np.array([rows(trajectory.sample(t)) for t in np.linspace(0.0, 2.999, 37)])
    np.testing.assert_allclose(actual, expected, rtol=0.0, atol=1e-10 * np.abs(expected).max())


def test_from_rest_to_rest_is_the_minimum_jerk_like_polynomial():
    """No derivative at both ends: 126 s⁵ − 420 s⁶ + 540 s⁷ − 315 s⁸ + 70 s⁹."""
    trajectory = SmoothTrajectory([Waypoint(0.0, np.zeros(1)), Waypoint(2.0, np.ones(1))], Reference.rest(np.zeros(1)))
    exact = Polynomial([0, 0, 0, 0, 0, 126, -420, 540, -315, 70])(Polynomial([0.0, 0.5]))
    for t in np.linspace(0.0, 1.999, 20):
        np.testing.assert_allclose(rows(trajectory.sample(t))[:, 0], [exact.deriv(k)(t) if k else exact(t)
                                                                      for k in range(5)], atol=1e-11)


def test_stands_still_before_and_after():
    trajectory = SmoothTrajectory(waypoints(1), START)
    for t, q in ((-0.1, START.q), (3.0, trajectory.end.q), (9.0, trajectory.end.q)):
        sample = rows(trajectory.sample(t))
        np.testing.assert_array_equal(sample[0], q)
        assert not sample[1:].any()


@pytest.mark.parametrize("times", [(), (-1.0, 1.0), (1.0, 1.0), (2.0, 1.0)])
def test_times_out_of_order_are_refused(times):
    with pytest.raises(RbdError, match="strictly increase"):
        SmoothTrajectory(waypoints(0, times), START)


def test_waypoints_that_coincide_numerically_are_refused():
    with pytest.raises(RbdError, match="too close"):
        SmoothTrajectory(waypoints(0, (1.0, 1.0 + 1e-10, 2.0)), START)


@pytest.mark.parametrize(("kind", "times", "refused"), [
    ("revolute", (0.1, 2.0, 2.1, 4.0), "position"), ("continuous", (0.1, 2.0, 2.1, 4.0), "velocity"),
    ("revolute", (1.0, 2.0, 3.0, 4.0), ""), ("continuous", (1.0, 2.0, 3.0, 4.0), ""),
    ("revolute", (0.8, 2.0, 2.6, 4.0), "")])
def test_what_swings_out_is_refused(kind, times, refused):
    """From 0 to 2 rad within 4 s went by way of 163 rad, at the effort limit."""
    model = rbd.load_urdf(arm_urdf().replace('"revolute"', f'"{kind}"'))
    points = [Waypoint(t, np.full(2, q)) for t, q in zip(times, (0.1, 1.0, 1.1, 2.0), strict=True)]
    if not refused:
        assert SmoothTrajectory(points, Reference.rest(np.zeros(2)), model).duration == 4.0
    else:
        with pytest.raises(RbdError, match=f"overshoots, to {refused} .* of joint '(shoulder|elbow)'"):
            SmoothTrajectory(points, Reference.rest(np.zeros(2)), model)


def test_waypoints_beyond_the_limits_are_what_was_asked_for():
    model = arm()
    made = SmoothTrajectory([Waypoint(2.0, model.position_upper + 0.1)], Reference.rest(np.zeros(2)), model)
    np.testing.assert_array_equal(made.end.q, model.position_upper + 0.1)


def test_a_short_way_beyond_a_limit_is_found_on_a_long_segment():
    """By 2 mrad, within a second of 17."""
    points = [Waypoint(t, np.full(2, q)) for t, q in ((18.64939, 2.501394), (20.448202, 2.907246), (37.844923, 0.0))]
    way = SmoothTrajectory(points, Reference.rest(np.zeros(2)))
    assert 3.0015 < max(way.sample(t).q[0] for t in np.linspace(20.0, 30.0, 1000)) < 3.003
    with pytest.raises(RbdError, match="overshoots, to position"):
        SmoothTrajectory(points, Reference.rest(np.zeros(2)), arm())
