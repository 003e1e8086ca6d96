"""Objective `jerk_share`, and what the default objective of requests does to a real arm."""
from __future__ import annotations

import numpy as np
import pytest
from support.robots import load, urdf_paths

import rbd_ros as rbd
from rbd_ros.runtime.planning.motion_planner import MotionPlanner
from rbd_ros.runtime.planning.motion_request import MotionRequest
from rbd_ros.runtime.planning.planner_settings import PlannerSettings

UR5 = {"home": [0.0, -1.57, 1.57, -1.57, -1.57, 0.0], "left": [1.57, -1.2, 1.4, -1.77, -1.57, 0.0],
       "right": [-0.8, -0.9, 1.9, -2.6, -1.57, 0.5], "near": [1.0, -1.9, 2.2, -1.87, -1.57, 1.0],
       "up": [0.0, -1.57, 0.0, -1.57, 0.0, 0.0]}


def test_a_share_is_a_weight_of_jerk():
    """With w of the rest on the motion of least jerk, whatever units, way and duration are."""
    model, start, goal = rbd.sample("two_link"), np.array([-0.5, 0.4]), np.array([0.6, -0.3])
    for duration, loaded in ((0.8, model), (3.0, rbd.sample("two_link").with_(armature=5.0))):
        straight = rbd.optimize_motion(loaded, start, goal, duration, "jerk").check()
        t = np.linspace(0.0, duration, 4001)
        effort = np.trapezoid((straight.effort(t)**2).sum(axis=1), t)
        shared = rbd.optimize_motion(loaded, start, goal, duration, {"effort": 1.0, "jerk_share": 0.2}).check()
        given = rbd.optimize_motion(loaded, start, goal, duration,
                                    {"effort": 1.0, "jerk": 0.2 * effort / straight.cost}).check()
        assert shared.cost == pytest.approx(given.cost, rel=1e-3)
        assert np.abs(shared(t).q - given(t).q).max() < 1e-2


def test_to_stay_and_to_move_a_little_are_motions():
    model, start = rbd.sample("iiwa"), np.array([0.0, 0.5, 0.0, -1.2, 0.0, 0.8, 0.0])
    for away in (0.0, 1e-6, 1e-3):
        motion = rbd.optimize_motion(model, start, start + away, 2.0, {"effort": 1.0, "jerk_share": 0.1}).check()
        assert np.abs(motion(np.linspace(0.0, 2.0, 200)).q - start).max() < 0.02


@pytest.mark.parametrize(("objective", "message"), [
    ({"jerk_share": 0.1}, "one more term"),
    ({"effort": 1.0, "jerk_share": [0.1, 0.2]}, "weight of jerk_share must be one number"),
])
def test_shares_that_cannot_be(objective, message):
    with pytest.raises(rbd.RbdError, match=message):
        rbd.optimize_motion(rbd.sample("two_link"), [0.0, 0.0], [1.0, 0.0], 1.0, objective)


@pytest.mark.skipif(not urdf_paths(), reason="example-robot-data is not installed")
@pytest.mark.parametrize("duration", [1.0, 2.0, 4.0])
@pytest.mark.parametrize("ends", ["home left", "home right", "right near", "up home"])
def test_requests_without_objective_are_what_one_sends_to_a_ur5(duration, ends):
    """Least effort alone folds its elbow to 3.138 rad and accelerates its wrists to 71 rad/s² in the same motions."""
    model = load("ur_description/ur5_robot")
    start, goal = (np.array(UR5[name]) for name in ends.split())
    planner = MotionPlanner(model, PlannerSettings.from_values({}, model))
    plan = planner.search(planner.prepare(MotionRequest(
        model.joint_names, goal, start, duration=duration), 0.0))
    assert plan.good
    beyond = np.maximum(plan.points.q - np.maximum(start, goal), np.minimum(start, goal) - plan.points.q)
    assert beyond.max() < 0.25
    straight = 10.0 / np.sqrt(3.0) * np.abs(goal - start).max() / duration**2    # of least jerk
    assert np.abs(plan.points.a).max() < 1.4 * straight
    least_jerk = rbd.optimize_motion(model, start, goal, duration, "jerk").check()
    t = plan.points.time
    assert (plan.points.effort**2).sum() < 0.9 * (least_jerk.effort(t)**2).sum()    # what it is for


@pytest.mark.skipif(not urdf_paths(), reason="example-robot-data is not installed")
def test_a_free_duration_leaves_room_below_the_limits():
    model = load("ur_description/ur5_robot")
    start, goal = np.array(UR5["home"]), np.array(UR5["left"])
    planner = MotionPlanner(model, PlannerSettings.from_values({}, model))
    plan = planner.search(planner.prepare(MotionRequest(model.joint_names, goal, start), 0.0))
    assert plan.good and 0.9 < plan.motion.duration < 2.0
    assert np.abs(plan.points.v).max() < 0.9 * model.velocity_limit.min() and np.abs(plan.points.a).max() < 10.0
