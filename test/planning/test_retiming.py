"""Trajectories timed anew by the annotator: same path, ends at rest, efforts within limits between the points, too."""
from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial import cKDTree
from support.arm import MIMIC, NAMES, arm

import rbd_ros as rbd
from rbd_ros.core.motion.trajectory import Reference, Trajectory, Waypoint
from rbd_ros.runtime.control.effort_annotator import Annotation, AnnotatorSettings, EffortAnnotator
from rbd_ros.runtime.inputs.references import Point
from rbd_ros.runtime.planning import retiming
from rbd_ros.runtime.planning.retiming import AWAY

IIWA = rbd.sample("iiwa").with_(damping=1.0, friction=0.5)
LOWER, UPPER = 0.7 * IIWA.position_lower, 0.7 * IIWA.position_upper


def annotator(model, **values):
    return EffortAnnotator(model, AnnotatorSettings.from_values(
        {name.replace("__", "."): value for name, value in values.items()}, model))


def curve(model, seed, T, n=15):
    """Times, positions, velocities and accelerations of a curved motion from rest to rest."""
    rng = np.random.default_rng(seed)
    lower, upper = np.maximum(model.position_lower, -2.0), np.minimum(model.position_upper, 2.0)
    q0, q1 = (rng.uniform(0.6 * lower, 0.6 * upper) for _ in range(2))
    bow = 0.2 * rng.normal(size=model.nv)
    x = np.linspace(0.0, 1.0, n)
    s, s1, s2 = (10 * x**3 - 15 * x**4 + 6 * x**5, (30 * x**2 - 60 * x**3 + 30 * x**4) / T,
                 (60 * x - 180 * x**2 + 120 * x**3) / T**2)
    b, b1, b2 = np.sin(np.pi * s), np.pi * np.cos(np.pi * s), -np.pi**2 * np.sin(np.pi * s)
    return (T * x, q0 + np.outer(s, q1 - q0) + np.outer(b, bow), np.outer(s1, q1 - q0) + np.outer(b1 * s1, bow),
            np.outer(s2, q1 - q0) + np.outer(b2 * s1**2 + b1 * s2, bow))


def points(t, q, v, a):
    return [Point(*row) for row in zip(t, q, v, a, strict=True)]


def followed(t, q, v, a):
    """What joint_trajectory_controller makes of the points, at 1 kHz: positions, velocities, accelerations."""
    made = Trajectory([Waypoint(float(row[0]), *row[1:]) for row in zip(t, q, v, a, strict=True)], Reference.rest(q[0]))
    samples = [made.sample(x) for x in np.linspace(0.0, t[-1], round(1000 * t[-1]) + 1)[:-1]]
    return tuple(np.array([getattr(sample, name) for sample in samples]) for name in "qva")


def needed(model, q, v, a):
    return np.abs(rbd.inverse_dynamics(model, q, v, a) + rbd.friction_effort(model, v)).max(axis=0)


@pytest.mark.parametrize("mode", ["if_needed", "always"])
@pytest.mark.parametrize("seed", range(6))
def test_the_path_stays_and_the_limits_are_kept(seed, mode):
    given = curve(IIWA, seed, 1.2)
    before = followed(*given)
    still = np.abs(rbd.gravity_effort(IIWA, before[0])).max(axis=0) + IIWA.friction
    takes = needed(IIWA, *before)
    limit = 1.2 * np.maximum(still, takes) + 2.0
    limit[1] = max(0.5 * (still[1] + takes[1]), 1.05 * still[1])
    assert limit[1] < takes[1]
    found = annotator(IIWA, effort_limits__maximum=limit.tolist(), retime=mode).annotate(
        list(IIWA.joint_names), points(*given))
    assert isinstance(found, Annotation) and not found.kept and found.retimed is not None
    assert not [excess for excess in found.excesses if excess.kind == "effort"]
    t, q, v, a = found.retimed
    assert t[0] == 0.0 and np.diff(t).min() > 0.0 and not v[[0, -1]].any()
    np.testing.assert_allclose(q[[0, -1]], given[1][[0, -1]], atol=1e-9)
    after = followed(t, q, v, a)
    assert np.all(needed(IIWA, *after) <= limit) and np.all(np.abs(after[1]) <= IIWA.velocity_limit)
    assert np.all(np.abs(after[1]).max(axis=0) <= np.abs(before[1]).max(axis=0) + 1e-9)    # as planned, not faster
    assert np.all(np.abs(after[2]).max(axis=0) <= np.abs(before[2]).max(axis=0) * (1.0 + 1e-6))    # nor sharper
    away = cKDTree(before[0]).query(after[0])[0]
    assert away.max() < AWAY + 0.5 * np.linalg.norm(np.diff(before[0], axis=0), axis=1).max()
    assert mode == "always" or t[-1] >= 1.2 - 1e-9
    np.testing.assert_allclose(found.effort, rbd.inverse_dynamics(IIWA, q, v, a) + rbd.friction_effort(IIWA, v),
                               atol=1e-9)


def test_what_is_within_the_limits_stays_as_it_was():
    found = annotator(IIWA, retime="if_needed").annotate(list(IIWA.joint_names), points(*curve(IIWA, 0, 8.0)))
    assert found.retimed is None and not found.kept
    assert annotator(IIWA).annotate(list(IIWA.joint_names), points(*curve(IIWA, 0, 8.0))).retimed is None


def test_always_is_at_least_as_fast():
    t, q, v, a = curve(IIWA, 1, 3.0)
    found = annotator(IIWA, retime="always").annotate(list(IIWA.joint_names), points(t, q, v, a))
    assert 0.5 < found.retimed[0][-1] < 3.0


@pytest.mark.parametrize(("change", "words"), [
    (lambda t, q, v, a: (t, q, [()] * len(t), [()] * len(t)), "no velocities"),
    (lambda t, q, v, a: (t[:1], q[:1], v[:1], a[:1]), "one point only"),
    (lambda t, q, v, a: (t[:5], q[:5], v[:5], a[:5]), "not at rest at its end"),
    (lambda t, q, v, a: (t, q * [1.0, 0.0] + [0.0, 9.0], v * [1.0, 0.0], a * [1.0, 0.0]), "beyond its limit"),
    (lambda t, q, v, a: (t, 0.0 * q + 0.2, 0.0 * v, 0.0 * a), "does not move")])
def test_what_cannot_be_timed_anew_is_passed_on_with_a_reason(change, words):
    model = arm()
    t, q, v, a = curve(model, 3, 0.5)
    found = annotator(model, retime="always").annotate(NAMES, points(*change(t, 0.3 * q, 0.3 * v, 0.3 * a)))
    assert found.retimed is None and "not timed anew" in found.kept and words in found.kept


def test_a_path_with_a_corner(monkeypatch):
    """A smooth curve cuts it; by how much is bounded."""
    monkeypatch.setattr(retiming, "AWAY", 1e-5)
    corners = np.array([[-2.5, -2.5], [2.5, -2.5], [2.5, 2.5]])
    rest = np.zeros((3, 2))
    found = annotator(arm(), retime="always").annotate(NAMES, points(np.array([0.0, 3.0, 6.0]), corners, rest, rest))
    assert found.retimed is None and "its path has a corner" in found.kept


def test_an_arm_that_cannot_hold_itself_on_the_path():
    found = annotator(arm(), retime="if_needed", effort_limits__maximum=2.0).annotate(
        NAMES, points(*curve(arm(), 3, 2.0)))
    assert found.retimed is None and "to stand still at" in found.kept and "'shoulder'" in found.kept


def test_mimic_joints_move_along():
    model = arm(extra=MIMIC)
    t, q, v, a = curve(model, 2, 1.0)
    wide = [np.column_stack([x, 2.0 * x[:, 1] + offset]) for x, offset in ((q, 0.1), (v, 0.0), (a, 0.0))]
    found = annotator(model, retime="always").annotate([*NAMES, "finger_joint"], points(t, *wide))
    _, q, v, a = found.retimed
    np.testing.assert_allclose(q[:, 2], 2.0 * q[:, 1] + 0.1, atol=1e-12)
    np.testing.assert_allclose(v[:, 2], 2.0 * v[:, 1], atol=1e-12)
    np.testing.assert_allclose(a[:, 2], 2.0 * a[:, 1], atol=1e-12)
    assert found.effort.shape == (len(q), 3) and not found.effort[:, 2].any()
