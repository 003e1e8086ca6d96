"""Motions that hit nothing: obstacles as texts of strangers, the process of searches, the points of the answer."""
from __future__ import annotations

import sys
from dataclasses import replace
from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from scipy.interpolate import BPoly
from support.arm import NAMES, arm_to_sphere, arm_urdf, shaped_arm_urdf
from support.collisions import robot
from support.obstacle_messages import marker, markers

import rbd_ros as rbd
from rbd_ros.core.model.payload import payload, with_payloads
from rbd_ros.runtime.planning.motion_planner import MotionPlanner
from rbd_ros.runtime.planning.motion_request import MotionRequest
from rbd_ros.runtime.planning.planner_settings import PlannerSettings
from rbd_ros.runtime.planning.robot_collisions import UNAWARE, considered
from rbd_ros.runtime.planning.sampled import Points, interpolated
from rbd_ros.runtime.planning.search_process import SearchProcess

pytest.importorskip("coal")
URDF = shaped_arm_urdf()
MODEL = rbd.load_urdf(URDF)
START, GOAL = [-0.5, 0.4], [0.6, -0.3]
CENTRE, RADIUS = (0.72, 0.0), 0.05
BALL = "obstacles:\n- {name: ball, shape: sphere, radius: 0.05, frame: [0.72, 0.0, 0.0]}\n"
REQUEST = {"name": NAMES, "start": START, "goal": GOAL, "duration": 2.0}


@cache
def known(text):
    model = rbd.load_urdf(text)
    return model, considered(PlannerSettings.from_values({}, model), text, model).collisions


def planner(text=URDF, **values):
    model, collisions = known(text)
    settings = PlannerSettings.from_values({"time_limit": 60.0} | {k.replace("__", "."): v for k, v in values.items()},
                                           model)
    if any(name.startswith("collisions") for name in values):
        collisions = considered(settings, text, model).collisions
    return MotionPlanner(model, settings, collisions)


def planned(made, **fields):
    return made.search(made.prepare(MotionRequest(**REQUEST | fields), 0.0))


def nearest(plan, centre=CENTRE, radius=RADIUS):
    """The smallest distance of the motion as a controller interpolates it."""
    return arm_to_sphere(interpolated(*plan.points[:4])[1], centre, radius).min()


def test_it_goes_around_what_a_text_says_and_straight_again_without():
    made = planner(collisions__clearance=0.02)
    straight = planned(made)
    assert straight.good and nearest(straight) < -0.05
    assert made.surroundings.take_text(BALL) and made.surroundings.obstacles == 1
    around = planned(made)
    assert around.good and 0.02 - 1e-6 <= nearest(around) < 0.1
    np.testing.assert_allclose(around.points.q[[0, -1]], [START, GOAL], atol=1e-12)
    assert made.surroundings.take_text("") and made.surroundings.obstacles == 0
    np.testing.assert_allclose(planned(made).points.q, straight.points.q, atol=1e-9)


def test_a_text_replaces_those_before_but_not_the_file(tmp_path):
    file = tmp_path / "cell.yaml"
    file.write_text("obstacles:\n- {name: floor, shape: plane, frame: [0.0, 0.0, -2.0]}\n")
    made = planner(collisions__obstacles=str(file))
    for text, names in (("", ["floor"]), (BALL, ["floor", "ball"]), (BALL.replace("ball", "b"), ["floor", "b"]),
                        ("obstacles: []", ["floor"]), (BALL, ["floor", "ball"]), (" \n", ["floor"])):
        assert made.surroundings.take_text(text)
        assert [piece.name for piece in made.surroundings.collisions.pieces if not piece.own] == names
    assert not made.surroundings.take_text(BALL.replace("ball", "floor"))
    assert "'floor' is given twice" in made.surroundings.rejections.last


def test_an_end_that_touches_is_refused_with_pair_and_depth():
    made = planner()
    assert made.surroundings.take_text(BALL)
    depth = -arm_to_sphere(np.array([[0.0, 0.0]]), CENTRE, RADIUS)[0]
    with pytest.raises(rbd.RbdError, match=rf"goal: 'lower' and 'ball' overlap by {depth:.4g} m"):
        planned(made, goal=[0.0, 0.0])


def test_where_there_is_no_way_the_answer_says_what_touches():
    """A wall that the arm would have to pass through."""
    made = planner()
    assert made.surroundings.take_text(
        "obstacles:\n- {name: wall, shape: box, size: [0.7, 1.0, 0.02], frame: [0.5, 0.0, 0.0]}\n")
    plan = planned(made, start=[-0.9, 0.1], goal=[0.9, -0.1], lower_position=[-1.5, -1.5], upper_position=[1.5, 1.5],
                   time_limit=10.0)
    assert not plan.good and plan.points is None
    assert "'wall'" in plan.reason and "overlap by" in plan.reason and " s" in plan.reason


@pytest.mark.parametrize("period", [0.01, 0.1, 0.4])
def test_the_points_keep_the_clearance_between_them_or_are_refused(period):
    made = planner(collisions__clearance=0.02)
    assert made.surroundings.take_text(BALL)
    try:
        plan = planned(made, sample_period=period)
    except rbd.RbdError as error:
        assert period == 0.4 and "too long: between the points" in str(error)
    else:
        assert plan.good and arm_to_sphere(dense(plan.points), CENTRE, RADIUS).min() >= 0.02 - 2e-6


def dense(points):
    """Positions of quintic pieces, by another library."""
    spline = BPoly.from_derivatives(points.time, np.stack([points.q, points.v, points.a], axis=1))
    return spline(np.linspace(0.0, points.time[-1], 20_001))


def test_pieces_of_the_interpolation_are_those_of_another_library():
    rng = np.random.default_rng(0)
    t = np.cumsum(rng.uniform(0.1, 1.0, 6))
    q, v, a = rng.normal(size=(3, 6, 2))
    breaks, powers = Points(t, q, v, a, q).polynomials()
    middle = 0.5 * (breaks[1:] + breaks[:-1])
    values = np.einsum("kmj,km->kj", powers, (middle - breaks[:-1])[:, None] ** np.arange(powers.shape[1]))
    np.testing.assert_allclose(values, BPoly.from_derivatives(t, np.stack([q, v, a], axis=1))(middle), atol=1e-12)


def test_with_the_load_of_a_request():
    made = planner()
    assert made.surroundings.take_text(BALL)
    plan = planned(made, payload_body="lower", payload=(1.0, (0.1, 0.0, 0.0), np.zeros((3, 3))))
    loaded = with_payloads(MODEL, {"lower": payload(1.0, [0.1, 0.0, 0.0], np.zeros((3, 3)))})
    assert plan.good and nearest(plan) >= 0.01 - 1e-6
    _, q, v, a, effort = plan.points
    np.testing.assert_allclose(effort, rbd.inverse_dynamics(loaded, q, v, a) + rbd.friction_effort(loaded, v),
                               atol=1e-9)


def test_a_request_asks_for_more_clearance_but_not_for_less():
    made = planner(collisions__clearance=0.02)
    assert made.surroundings.take_text(BALL)
    for asked, kept in ((0.0, 0.02), (0.005, 0.02), (0.06, 0.06)):
        plan = planned(made, clearance=asked)
        assert plan.good and kept - 1e-6 <= nearest(plan) < 0.1
    for wrong in (-0.1, float("nan"), float("inf")):
        with pytest.raises(rbd.RbdError, match="clearance"):
            planned(made, clearance=wrong)


def test_a_request_lets_pairs_touch_in_its_motion_alone():
    made = planner()
    assert made.surroundings.take_markers(markers(marker(7, scale=(0.1, 0.1, 0.1), points=[(0.72, 0, 0), (5, 0, 0)])))
    through = planned(made, allowed_pairs=[("camera/0/0", "lower")])
    assert through.good and nearest(through) < -0.05
    for names in (("lower", "camera/0"), ("camera/0", "lower")):    # both balls of the marker
        np.testing.assert_allclose(planned(made, allowed_pairs=[names]).points.q, through.points.q, atol=1e-9)
    around = planned(made, allowed_pairs=[("lower", "camera/0/1"), ("upper", "camera/0")])
    assert around.good and nearest(around) >= 0.01 - 1e-6
    assert nearest(planned(made)) >= 0.01 - 1e-6
    with pytest.raises(rbd.RbdError, match=r"unknown link, obstacle or object in `allowed_pairs`: 'lowr'.*'lower'"):
        planned(made, allowed_pairs=[("lowr", "camera/0")])
    with pytest.raises(rbd.RbdError, match="allowed_pairs has 1001 entries, expected at most 1000"):
        planned(made, allowed_pairs=[("lower", "upper")] * 1001)


def test_what_a_request_asks_of_clearance_is_refused_where_it_is_not_kept():
    made = planner(arm_urdf())
    for fields in ({"clearance": 0.01}, {"allowed_pairs": [("upper", "lower")]}):
        with pytest.raises(rbd.RbdError, match=f"{next(iter(fields))}: {UNAWARE}"):
            planned(made, **fields)


# ---- texts of strangers

MANY = "obstacles:\n" + "- {shape: sphere, radius: 0.1, frame: [5.0, 0.0, 0.0]}\n" * 201
CORNERS = "\n".join(f"  - [{x:.3f}, {y:.3f}, {z:.3f}]" for x, y, z in np.random.default_rng(0).normal(size=(2001, 3)))


@pytest.mark.parametrize(("text", "words"), [
    ("FILE", "expected `obstacles:` and a list, got '/"),
    ("obstacles:\n- {name: m, shape: mesh, file: FILE}", "obstacle 'm': names a file, which is not opened"),
    ("obstacles:\n- {shape: mesh, file: package://rbd_ros/x.stl, points: [[0, 0, 0]]}", "names a file, which is not"),
    (MANY, "201 of them, expected at most 200"),
    (f"obstacles:\n- shape: mesh\n  points:\n{CORNERS}", "2001 points together, expected at most 2000"),
    ("obstacles: " + "[" * 50 + "]" * 50, "nested too deeply"),
    ("[" * 30_000, "nested too deeply"),
    ("a: &a [1, 1]\n" + "".join(f"{new}: &{new} [{', '.join([f'*{old}'] * 9)}]\n" for old, new in pairwise("abcdefgh")),
     "more than 50000"),
    ("obstacles: &a [*a]", "an alias refers to a value that contains it"),
    ("obstacles: !!python/object/apply:os.system ['touch FILE']", "expected text, a number, a list"),
    (BALL.replace("0.05", ".nan"), "obstacle 'ball': radius"),
    (BALL.replace("0.05", ".inf"), "obstacle 'ball': radius"),
    (BALL.replace("0.05", "1e300"), "obstacle 'ball'"),
    (BALL.replace("0.05", "2.0e+3"), "sizes are (2000.0,), expected 1e-06 to 1000 m"),
    (BALL.replace("0.05", "1.0e-300"), "expected 1e-06 to 1000 m"),
    (BALL.replace("0.05", "9" * 999), "obstacle 'ball'"),
    (BALL.replace("0.05", "-1.0"), "obstacle 'ball': radius"),
    (BALL.replace("0.05", "true"), "expected a value other than true or false"),
    (BALL.replace("0.72", ".nan"), "obstacle 'ball': frame"),
    (BALL.replace("0.72", "1.0e+9"), "a coordinate is larger than 1000 m"),
    (BALL.replace("0.72", "[1, 2]"), "obstacle 'ball': frame"),
    (BALL + BALL.partition("\n")[2], "the name 'ball' is given twice"),
    (BALL.replace("ball", "upper"), "the name 'upper' is given twice"),
    (BALL.replace("ball", "x" * 81), "expected at most 80 characters"),
    (BALL.replace("ball", '"a\\nERROR: b"'), "none of them for control"),
    (BALL.replace("ball", "7"), "name is 7, expected a text"),
    (BALL.replace("sphere", "teapot"), "unknown shape 'teapot'"),
    (BALL.replace("radius: 0.05", "radius: 0.05, colour: red"), "unknown key 'colour'"),
    (BALL.replace("radius: 0.05, ", ""), "a sphere needs radius"),
    ("obstacles:\n- {shape: box, size: [1, 1]}", "size"),
    ("obstacles:\n- {shape: mesh, points: [[0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0]]}", "has no volume"),
    ("obstacles:\n- {shape: mesh, points: [[0, 0, 0]]}", "has no volume"),
    ("obstacles:\n- {shape: mesh, points: []}", "expected finite points"),
    ("obstacles:\n- 7", "obstacles[0]: expected {name"),
    ("obstacles: 7", "expected a list"),
    ("something: else", "expected `obstacles:` and a list"),
    ("\x00", "is not YAML"),
    ("a" * 300_000, "more than 200000 characters"),
])
def test_hostile_texts_are_rejected_and_the_earlier_obstacles_stay(text, words, tmp_path, monkeypatch):
    file = tmp_path / "cell.yaml"
    file.write_text(BALL)
    made = planner()
    assert made.surroundings.take_text(BALL)
    before = made.surroundings.collisions

    def opened(*arguments, **options):
        raise AssertionError(f"opens {arguments}")

    monkeypatch.setattr("pathlib.Path.open", opened)
    verdict = made.surroundings.take_text(text.replace("FILE", str(file)))
    assert not verdict and words in verdict.text and "obstacles rejected, the earlier ones stay" in verdict.text
    assert len(verdict.text) < 700 and verdict.text.isprintable()
    assert made.surroundings.collisions is before
    assert made.surroundings.rejections.counts["malformed"] == made.surroundings.rejections.total == 1


@pytest.mark.parametrize("seed", [5, *(pytest.param(k, marks=pytest.mark.thorough) for k in (6, 7, 8))])
def test_random_damage_is_taken_or_rejected_and_never_an_error(seed):
    rng = np.random.default_rng(seed)
    text = (BALL + "- {shape: box, size: [0.1, 0.2, 0.3], frame: {xyz: [3, 0, 0], rpy: [0, 1, 0]}}\n"
            "- {shape: mesh, points: [[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], frame: [3, 3, 3]}\n")
    letters = [*"[]{}:,-.0123456789e&*!|>\n' nan", " obstacles", "1e308", "~", ".inf", "mesh", "0x7f", "é", "\x07"]
    digits = [i for i, letter in enumerate(text) if letter.isdigit()]
    made, verdicts = planner(), []
    for k in range(100):    # anywhere, and other digits alone, which are mostly other obstacles
        damaged = list(text)
        for _ in range(rng.integers(1, 4)):
            damaged[rng.choice(digits if k % 2 else len(text))] = rng.choice(list("0123456789") if k % 2 else letters)
        verdicts.append(bool(made.surroundings.take_text("".join(damaged))))
    assert 25 < sum(verdicts) < 75


def test_as_many_as_are_taken_are_planned_around():
    """At the bounds a search ends within its time, and the process of searches takes the obstacles."""
    made = planner(time_limit=5.0)
    around = "".join(f"- {{shape: box, size: [0.1, 0.1, 0.1], frame: [{x}, 0.0, {z}]}}\n"
                     for x in range(2, 13) for z in range(18))
    points = ", ".join(str(p.round(3).tolist()) for p in np.random.default_rng(0).normal(size=(1990, 3)))
    assert made.surroundings.take_text(f"{BALL}{around}- {{shape: mesh, frame: [0, 9, 0], points: [{points}]}}\n")
    assert made.surroundings.obstacles == 200
    plan = planned(made)
    assert plan.good and nearest(plan) >= 0.01 - 1e-6


# ---- what is considered

def test_what_is_considered_is_said(monkeypatch):
    def said(text=URDF, **values):
        model = rbd.load_urdf(text)
        return considered(PlannerSettings.from_values({f"collisions.{k}": v for k, v in values.items()}, model), text,
                          model)

    answer = said()
    assert answer.collisions is not None and not answer.warns and "0 pairs of shapes, at least 0.01 m" in answer.said
    none, words, warns = said(use="never")
    assert none is None and words.startswith(UNAWARE) and not warns
    none, words, warns = said(arm_urdf())
    assert none is None and warns and words == f"{UNAWARE} (URDF text has no <collision> shapes: give `pieces`)"
    with pytest.raises(rbd.RbdError, match=r"parameters 'collisions\.…': URDF text has no <collision> shapes"):
        said(arm_urdf(), use="always")
    with pytest.raises(rbd.RbdError, match="cannot read obstacles"):
        said(obstacles="/nowhere.yaml")
    with pytest.raises(rbd.RbdError, match="cannot read SRDF"):
        said(srdf="/nowhere.srdf")
    with pytest.raises(rbd.RbdError, match=r"'collisions\.use' is 'never'"):
        said(obstacles="/nowhere.yaml", use="never")
    monkeypatch.setitem(sys.modules, "coal", None)
    none, words, warns = said()
    assert none is None and warns and "package coal" in words
    with pytest.raises(rbd.RbdError, match="package coal"):
        said(use="always")


def test_descriptions_of_very_many_shapes_are_planned_without_them():
    """They come on a topic, too."""
    sphere = '<collision><geometry><sphere radius="0.01"/></geometry></collision>'
    for text, words in ((URDF.replace("<collision>", 1000 * sphere + "<collision>", 1), "1002 collision shapes"),
                        (robot("", sphere, ("revolute",) * 110, sphere), "5886 pairs of shapes that may touch")):
        model = rbd.load_urdf(text)
        none, said, warns = considered(PlannerSettings.from_values({}, model), text, model)
        assert none is None and warns and words in said


def test_without_shapes_obstacles_are_rejected():
    made = planner(arm_urdf())
    assert not made.surroundings.take_text(BALL) and UNAWARE in made.surroundings.rejections.last
    assert made.surroundings.take_text("") and made.surroundings.rejections.total == 1 and planned(made).good


# ---- the process of searches

@pytest.fixture
def searcher():    # of each test: a killed search leaves a new process, and the first search of one differs
    made = SearchProcess(MODEL, planner().surroundings.collisions)
    yield made
    made.close()


def test_the_process_plans_around_what_each_task_has(searcher):
    made = planner()
    for text, clear in ((BALL, True), ("", False), (BALL, True)):
        assert made.surroundings.take_text(text)
        task = made.prepare(MotionRequest(**REQUEST), 0.0)
        plan = searcher.search(task)
        assert plan.good and (nearest(plan) >= 0.01 - 1e-6) == clear
        np.testing.assert_allclose(plan.points.q, made.search(task).points.q, atol=1e-5)
    with pytest.raises(rbd.RbdError, match="goal: 'lower' and 'ball' overlap by"):
        searcher.search(made.prepare(MotionRequest(**REQUEST | {"goal": [0.0, 0.0]}), 0.0))


def test_a_search_among_obstacles_is_cancelled_and_bounded_in_memory(searcher):
    made = planner()
    assert made.surroundings.take_text(BALL)
    task = made.prepare(MotionRequest(**REQUEST), 0.0)
    with pytest.raises(rbd.RbdError, match="more memory than parameter 'memory_limit' grants, 16 MiB"):
        searcher.search(replace(task, sample_period=1e-3, duration=19.0, memory_limit=16.0))
    assert searcher.search(task).good
    hasty = replace(task, starts=1000, duration=0.38)    # which no guess makes good, so it is not done before
    assert searcher.search(hasty, gone=lambda: True).cancelled
