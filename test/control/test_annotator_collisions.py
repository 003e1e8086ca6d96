"""Trajectories that hit, on their way through the effort annotator: found between the points, too, and only these."""
from __future__ import annotations

import re

import numpy as np
import pytest
from scipy.interpolate import BPoly
from support.arm import NAMES, arm_to_sphere, shaped_arm_urdf

import rbd_ros as rbd
from rbd_ros.runtime.control.effort_annotator import Annotation, AnnotatorSettings, EffortAnnotator
from rbd_ros.runtime.inputs.trajectory_points import Point
from rbd_ros.runtime.planning.robot_collisions import considered

pytest.importorskip("coal")
URDF = shaped_arm_urdf()
MODEL = rbd.load_urdf(URDF)
CENTRE, RADIUS = (0.72, 0.0), 0.05
BALL = "obstacles:\n- {name: ball, shape: sphere, radius: 0.05, frame: [0.72, 0.0, 0.0]}\n"


def annotator(**values):
    settings = AnnotatorSettings.from_values({key.replace("__", "."): value for key, value in values.items()}, MODEL)
    made = EffortAnnotator(MODEL, settings, considered(settings, URDF, MODEL).collisions)
    assert made.surroundings.take_text(BALL)
    return made


def points_of(t, *given):
    """Points with positions, and of each what is given of velocities and accelerations."""
    return [Point(*row) for row in zip(t, *given, strict=True)]


def between(t, *given):
    """Positions as a controller interpolates them, 20,001 between the first point and the last."""
    return BPoly.from_derivatives(t, np.stack(given, axis=1))(np.linspace(t[0], t[-1], 20_001))


@pytest.mark.parametrize("count", [50, pytest.param(150, marks=pytest.mark.thorough)])
@pytest.mark.parametrize("degree", [1, 3, 5])
def test_what_hits_between_the_points_is_found_and_nothing_else(degree, count):
    """Against distances by hand."""
    rng, found = np.random.default_rng(degree), []
    for clearance in (0.0, 0.02):
        made = annotator(collisions__clearance=clearance)
        for _ in range(count):
            t = np.cumsum(rng.uniform(0.1, 1.0, 4)) + rng.choice([0.0, 3.0])
            given = [rng.uniform(-1.5, 1.5, (4, 2)), rng.uniform(-2, 2, (4, 2)), rng.uniform(-5, 5, (4, 2))]
            given = given[:(degree + 1) // 2]
            distances = arm_to_sphere(between(t, *given), CENTRE, RADIUS)
            assert isinstance(made.annotate(NAMES, points_of(t, *given)), Annotation)
            if abs(distances.min() - clearance) < 1e-4:
                continue
            assert bool(made.hit.words) == (distances.min() < clearance)
            found.append(bool(made.hit.words))
            if made.hit.words:
                slope = np.abs(np.diff(distances)).max() * 20_000 / (t[-1] - t[0])    # m/s
                time = float(re.search(r" at (\S+) s$", made.hit.words)[1])
                at = np.interp(time, np.linspace(t[0], t[-1], 20_001), distances)
                assert set(made.hit.pieces) in ({"ball", "lower"}, {"ball", "upper"})
                depth = float(re.search(r"overlap by (\S+) m|are (\S+) m apart", made.hit.words)[1] or -float(
                    re.search(r"are (\S+) m apart", made.hit.words)[1]))
                assert at == pytest.approx(-depth, abs=1e-4 + slope * 1e-3 * time)
                assert at < clearance
                assert depth >= -distances.min() - slope * (t[-1] - t[0]) / 199    # of 200 samples
        assert made.counts["hitting"] == sum(found[-made.counts["trajectories"]:])
    assert 60 / 300 < np.mean(found) < 280 / 300


def test_each_segment_is_of_what_its_own_points_have():
    """A middle point without velocities has straight lines beside it: one hits, which a cubic would not."""
    q = np.array([[-0.6, 0.0], [-0.15, 0.0], [-0.14, 0.0], [-0.6, 0.0]])
    made = annotator()
    straight = [Point(float(k), row) for k, row in enumerate(q)]
    bent = [Point(float(k), row, [0.0, 0.0] if k in (0, 3) else [1.0 if k == 1 else -1.0, 0.0])
            for k, row in enumerate(q)]
    mixed = [bent[0], straight[1], bent[2], bent[3]]
    for points, hits in ((straight, False), (bent, True), (mixed, False)):
        made.annotate(NAMES, points)
        assert bool(made.hit.words) == hits, made.hit


def test_what_is_refused_is_counted_and_named_and_may_be_allowed_at_once():
    made = annotator(collisions__reject=True)
    t, q = [1.0, 2.0], np.array([[-0.5, 0.0], [0.5, 0.0]])
    verdict = made.annotate(NAMES, points_of(t, q))
    depth = -arm_to_sphere(np.zeros((1, 2)), CENTRE, RADIUS)[0]
    assert not verdict and re.fullmatch(r"'lower' and 'ball' overlap by 0\.0[78]\d* m at 1\.\d* s", verdict.text)
    assert float(verdict.text.split()[5]) == pytest.approx(depth, abs=1e-3)
    assert made.rejections.counts["hitting"] == made.counts["hitting"] == 1 and made.counts["trajectories"] == 0
    assert made.annotate(NAMES, [Point(7.0, [0.0, 0.0])]).text.endswith("overlap by 0.08 m at 7 s")
    assert made.surroundings.take_text("")
    assert isinstance(made.annotate(NAMES, points_of(t, q)), Annotation) and made.hit == ("", ())


def test_what_is_timed_anew_is_checked_as_it_goes_out():
    """The path stays, so that a hit stays, at another time."""
    s = np.linspace(0.0, 1.0, 9)
    q, v, a = (np.outer(x, [1.0, 0.0]) for x in (
        10 * s**3 - 15 * s**4 + 6 * s**5 - 0.5, (30 * s**2 - 60 * s**3 + 30 * s**4) / 0.4,
        (60 * s - 180 * s**2 + 120 * s**3) / 0.16))
    made = annotator(retime="if_needed", effort_limits__maximum=30.0)
    found = made.annotate(NAMES, points_of(0.4 * s, q, v, a))
    assert found.retimed is not None
    time = float(made.hit.words.split()[-2])
    t, positions = found.retimed[:2]
    assert t[-1] > 0.42 and "'lower' and 'ball' overlap by 0.0" in made.hit.words
    assert abs(np.interp(time, t, positions[:, 0])) < 0.03


def test_trajectories_of_a_robot_without_shapes_or_coal_pass(monkeypatch):
    settings = AnnotatorSettings.from_values({}, MODEL)
    monkeypatch.setitem(__import__("sys").modules, "coal", None)
    none, said, _ = considered(settings, URDF, MODEL)
    assert none is None and "package coal" in said
    made = EffortAnnotator(MODEL, settings, none)
    assert isinstance(made.annotate(NAMES, [Point(0.0, [0.0, 0.0])]), Annotation) and not made.hit.words
