"""Efforts of trajectory points: against inverse dynamics, and missing derivatives against the interpolation."""
from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.arm import MIMIC, NAMES, arm, arm_urdf

import rbd_ros as rbd
from rbd_ros.core.motion.trajectory import Reference, Trajectory, Waypoint
from rbd_ros.runtime.control.effort_annotator import AnnotatorSettings, EffortAnnotator, derive
from rbd_ros.runtime.inputs.references import Point

CONFIG = Path(__file__).parents[2] / "config" / "effort_annotator.yaml"
RNG = np.random.default_rng(7)
TIMES = np.array([0.0, 0.4, 0.7, 1.5])
Q, V, A = RNG.uniform(-1, 1, (4, 2)), RNG.uniform(-1, 1, (4, 2)), RNG.uniform(-3, 3, (4, 2))


def annotator(model=None, **values):
    model = arm() if model is None else model
    values = {name.replace("__", "."): value for name, value in values.items()}
    return EffortAnnotator(model, AnnotatorSettings.from_values(values, model))


def points(q=Q, v=V, a=A, times=TIMES):
    empty = [()] * len(times)
    return [Point(*row) for row in zip(times, q, empty if v is None else v, empty if a is None else a, strict=True)]


def close(actual, expected, bound=1e-9):
    np.testing.assert_allclose(actual, expected, rtol=0, atol=bound)


def full(model, q=Q, v=V, a=A, smoothing=0.01):
    return rbd.inverse_dynamics(model, q, v, a) + model.damping * v + model.friction * np.tanh(v / smoothing)


def test_efforts_of_complete_points():
    model = arm()
    found = annotator(model).annotate(NAMES, points())
    close(found.effort, full(model))
    assert not found.excesses


def test_order_of_the_message():
    model = arm()
    reverse = points(Q[:, ::-1], V[:, ::-1], A[:, ::-1])
    close(annotator(model).annotate(NAMES[::-1], reverse).effort, full(model)[:, ::-1])


def test_mimic_joints_get_no_effort_of_their_own():
    model = arm(extra=MIMIC)
    wide = [np.column_stack([x, 2 * x[:, 1] + 0.1 * (x is Q)]) for x in (Q, V, A)]
    found = annotator(model).annotate([*NAMES, "finger_joint"], points(*wide))
    close(found.effort, np.column_stack([full(model), np.zeros(4)]))


# ---- missing derivatives

def limits(times, q, v, i, eps=1e-8):
    """Acceleration of the interpolation just before and just after point i, as far as there is motion."""
    path = Trajectory([Waypoint(*row) for row in zip(times, q, v, strict=True)], Reference.rest(q[0]))
    sides = [t for t in (times[i] - eps, times[i] + eps) if 0.0 < t < times[-1]]
    return np.mean([path.sample(t).a for t in sides], axis=0)


def test_missing_accelerations_are_those_of_the_interpolation():
    model = arm()
    v, a = derive(model, TIMES, Q, V, np.full_like(A, np.nan))
    assert v is V or (v == V).all()
    for i in range(4):
        close(a[i], limits(TIMES, Q, V, i), 1e-5)
    close(annotator(model).annotate(NAMES, points(a=None)).effort, full(model, a=a))


def test_positions_alone_conserve_what_the_interpolation_does():
    """The accelerations carry all changes of its velocity: from rest to rest, and between the middles of segments."""
    model = arm()
    nan = np.full_like(Q, np.nan)
    v, a = derive(model, TIMES, Q, nan, nan)
    T = np.diff(TIMES)
    slope = np.diff(Q, axis=0) / T[:, None]
    for i in (1, 2):
        close(a[i] * (T[i - 1] + T[i]) / 2, slope[i] - slope[i - 1])
    weights = np.convolve(T, [0.5, 0.5])[:, None]
    close((weights * a).sum(axis=0), 0.0)
    close(v[[0, -1]], 0.0)
    close(annotator(model).annotate(NAMES, points(v=None, a=None)).effort, full(model, v=v, a=a))


@pytest.mark.parametrize("knots", [9, 33, 129])
def test_positions_alone_converge_to_a_smooth_motion(knots):
    s = np.linspace(0, 1, knots)[:, None]
    reach = np.array([1.0, -0.5])
    q, v, a = (reach * (10 * s**3 - 15 * s**4 + 6 * s**5), reach * (30 * s**2 - 60 * s**3 + 30 * s**4),
               reach * (60 * s - 180 * s**2 + 120 * s**3))
    nan = np.full_like(q, np.nan)
    v1, a1 = derive(arm(), s[:, 0], q, nan, nan)
    h = 1 / (knots - 1)
    close(v1, v, 10 * h**2)
    close(a1[1:-1], a[1:-1], 40 * h**2)
    close(a1[[0, -1]], 0.0, 25 * h)    # of first order at the ends
    v2, a2 = derive(arm(), s[:, 0], q, v, nan)
    assert (v2 == v).all()
    close(a2, a, 40 * h**2)


def test_quadratic_motion_is_exact_inside_and_a_late_start_is_not_taken_for_rest():
    times = np.array([0.5, 0.9, 1.0, 1.6])[:, None]
    q, nan = times**2 * np.array([1.0, -2.0]), np.full((4, 2), np.nan)
    v, a = derive(arm(), times[:, 0], q, nan, nan)
    close(v[1:-1], 2 * times[1:-1] * [1.0, -2.0])
    close(a[1:-1], np.array([[2.0, -4.0]] * 2))
    close(v[0], (q[1] - q[0]) / 0.4)
    close(a[0], 0.0)


def test_single_point_is_at_rest_unless_it_says_otherwise():
    model = arm()
    one = {"q": Q[:1], "times": [2.0]}
    close(annotator(model).annotate(NAMES, points(v=None, a=None, **one)).effort, rbd.gravity_effort(model, Q[:1]))
    close(annotator(model).annotate(NAMES, points(v=V[:1], a=A[:1], **one)).effort, full(model)[:1])


def test_points_may_differ_in_what_they_have():
    model = arm()
    mixed = points()
    mixed[1] = Point(TIMES[1], Q[1])
    found = annotator(model).annotate(NAMES, mixed).effort
    close(found[[0, 2, 3]], full(model)[[0, 2, 3]])
    nan = np.full_like(Q, np.nan)
    v, a = derive(model, TIMES, Q, nan, nan)
    close(found[1], full(model, v=v, a=a)[1])


# ---- limits

def test_excesses_are_reported_and_clipped():
    model = arm(shoulder_effort=1.0)
    strong = annotator(model, clip=False)
    found = strong.annotate(NAMES, points())
    expected = full(model)
    close(found.effort, expected)
    over = np.abs(expected[:, 0]) > 1.0
    assert over.any()
    assert [(e.point, e.joint, e.kind, e.limit) for e in found.excesses] == [
        (i, "shoulder", "effort", float(np.copysign(1.0, expected[i, 0]))) for i in np.flatnonzero(over)]
    close([e.value for e in found.excesses], expected[over, 0])
    assert strong.counts["points_over_effort_limit"] == over.sum() and strong.counts["points"] == 4
    clipped = annotator(model).annotate(NAMES, points())
    close(clipped.effort, np.clip(expected, [-1.0, -50.0], [1.0, 50.0]))
    assert clipped.excesses == found.excesses and "limit 1" in str(found.excesses[0]).replace("-1", "1")


def test_velocity_and_position_limits_are_reported():
    model = arm()    # 3 rad/s, ±3 rad
    found = annotator(model)
    q, v = Q.copy(), V.copy()
    q[2, 1], v[1, 0] = -3.5, 4.0
    excesses = found.annotate(NAMES, points(q, v)).excesses
    assert [(e.point, e.joint, e.kind, e.value, e.limit) for e in excesses if e.kind != "effort"] == [
        (1, "shoulder", "velocity", 4.0, 3.0), (2, "elbow", "position", -3.5, -3.0)]
    assert found.counts["points_over_velocity_limit"] == found.counts["points_over_position_limit"] == 1
    unlimited = annotator(rbd.load_urdf(arm_urdf().replace('lower="-3" upper="3" ', "")))    # which means 0 and 0
    assert unlimited.annotate(NAMES, points(q=0.1 * Q))
    assert unlimited.counts["points_over_position_limit"] == 0


@pytest.mark.parametrize(("names", "given", "kind", "words"), [
    (NAMES, [], "bad_trajectory", "no points"),
    (["wrist"], points(), "unknown_joint", "shoulder, elbow"),
    ([*NAMES, "wrist"], points(), "unknown_joint", "wrist"),
    (["elbow"], points(), "missing_joint", "shoulder"),
    (["elbow", "elbow", "shoulder"], points(), "duplicate_joint", "twice"),
    (NAMES, points(Q[:, :1]), "wrong_size", "point 0 has 1 numbers for 2"),
    (NAMES, points(v=V[:, :1]), "wrong_size", "velocity in trajectory point 0"),
    (NAMES, points(a=A * np.nan), "non_finite", "acceleration in trajectory point 0"),
    (NAMES, points(v=V * 1e100, a=A * 1e149), "non_finite", "effort of point 0"),
    (NAMES, points(v=None, a=None, times=TIMES * 1e-200), "bad_trajectory", "so close to its neighbours"),
    (NAMES, points(times=TIMES[[0, 2, 1, 3]]), "bad_trajectory", "strictly increase"),
    (NAMES, points(times=TIMES - 1.0), "bad_trajectory", "at least 0"),
    (NAMES, points(times=TIMES * np.nan), "bad_trajectory", "nan"),
])
def test_malformed_trajectories_are_rejected(names, given, kind, words):
    made = annotator()
    verdict = made.annotate(names, given)
    assert not verdict and words in verdict.text
    assert made.rejections.counts[kind] == made.rejections.total == 1 and words in made.rejections.last
    assert made.counts["trajectories"] == 0


# ---- each parameter changes what the annotator does

def test_parameters():
    model = arm()
    expected, given = full(model), points()
    close(annotator(model, friction__damping=False).annotate(NAMES, given).effort, expected - model.damping * V)
    coulomb = model.friction * np.tanh(V / 0.01)
    close(annotator(model, friction__coulomb=False).annotate(NAMES, given).effort, expected - coulomb)
    close(annotator(model, friction__smoothing=1.0).annotate(NAMES, given).effort, full(model, smoothing=1.0))
    close(annotator(model, robot_compensates="gravity").annotate(NAMES, given).effort,
          expected - rbd.gravity_effort(model, Q))
    close(annotator(model, effort_limits__maximum=[0.5, 0.2]).annotate(NAMES, given).effort,
          np.clip(expected, [-0.5, -0.2], [0.5, 0.2]))
    close(annotator(model, joints=NAMES[::-1], effort_limits__maximum=[0.2, 0.5]).annotate(NAMES, given).effort,
          np.clip(expected, [-0.5, -0.2], [0.5, 0.2]))
    loaded = annotator(model, payload__body="lower", payload__mass=1.0, payload__com=[0.3, 0, 0]).annotate(NAMES, given)
    assert np.abs(loaded.effort - expected).max() > 1.0
    with pytest.raises(rbd.RbdError, match="override_zero"):
        annotator(arm(shoulder_effort=0.0))
    close(annotator(arm(shoulder_effort=0.0), effort_limits__override_zero=[0.5, 9.0]).annotate(
        NAMES, given).effort[:, 0], np.clip(expected[:, 0], -0.5, 0.5))


def test_settings_change_while_running():
    made, model = annotator(), arm()
    made.apply(AnnotatorSettings.from_values({"friction.damping": False, "friction.coulomb": False}, model))
    close(made.annotate(NAMES, points()).effort, rbd.inverse_dynamics(model, Q, V, A))
