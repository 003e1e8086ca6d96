"""Requests of motions: in any order of names, and every bad one is refused with words that help."""
from __future__ import annotations

import numpy as np
import pytest
from support.arm import MIMIC, NAMES, arm_urdf

import rbd_ros as rbd
from rbd_ros.core.motion import optimization
from rbd_ros.core.motion.optimal.first_guess import first_guess
from rbd_ros.runtime.planning.motion_planner import MotionPlanner
from rbd_ros.runtime.planning.motion_request import MotionRequest, MotionWaypoint
from rbd_ros.runtime.planning.planner_settings import PlannerSettings
from rbd_ros.runtime.planning.sampled import interpolated

START, GOAL = [-0.5, 0.4], [0.6, -0.3]
GOOD = {"name": NAMES, "start": START, "goal": GOAL, "duration": 1.5}
NAN, INF = float("nan"), float("inf")
POINT = (0.0, 0.0, 0.0)


def planner(extra="", **values):
    model = rbd.load_urdf(arm_urdf(extra=extra))
    return MotionPlanner(model, PlannerSettings.from_values({"time_limit": 60.0} | values, model))


@pytest.fixture(scope="module")
def made():
    return planner()


@pytest.mark.parametrize(("fields", "words"), [
    ({"name": ["shoulder", "elbo"]}, "unknown coordinate in `name`: 'elbo'; did you mean 'elbow'"),
    ({"name": ["shoulder"], "start": [0.1], "goal": [0.2]}, "name: joint 'elbow' is missing, expected every joint"),
    ({"name": ["shoulder", "shoulder"]}, "'shoulder' is listed twice"),
    ({"name": [], "start": [], "goal": []}, "name: joint 'shoulder' is missing"),
    ({"start": [0.1]}, "start has 1 numbers for 2 names"),
    ({"start": [0.1, NAN]}, "start of 'elbow' is nan, expected a finite number"),
    ({"start": []}, "start is empty, which means the present state, but no joint state has been received"),
    ({"goal": []}, "goal has 0 numbers for 2 names"),
    ({"goal": [INF, 0.0]}, "goal of 'shoulder' is inf"),
    ({"goal": [9.0, 0.0]}, "goal: the position of joint 'shoulder' is 9, beyond its limit 3"),
    ({"waypoints": [MotionWaypoint(0.5, [0.1])]}, "waypoints[0].position has 1 numbers for 2 names"),
    ({"waypoints": [MotionWaypoint(1.5, [0.1, 0.0])]}, "waypoints[0].fraction is 1.5, expected a part"),
    ({"waypoints": [MotionWaypoint(NAN, [0.1, 0.0])]}, "waypoints[0].fraction is nan"),
    ({"waypoints": [MotionWaypoint(0.5, START), MotionWaypoint(0.4, START)]}, "must increase between 0 and 1"),
    ({"waypoints": [MotionWaypoint(0.5, [0.0, 9.0])]}, "waypoints[0]: the position of joint 'elbow' is 9"),
    ({"duration": -1.0}, "duration is -1, expected a finite time"),
    ({"duration": NAN}, "duration is nan"),
    ({"duration": 0.01}, "beyond its velocity limit"),
    ({"shortest_duration": 1.0}, "duration is 1.5 s, so shortest_duration is not read"),
    ({"duration": 0.0, "shortest_duration": 2.0, "longest_duration": 1.0},
     "shortest_duration is 2 s, expected less than longest_duration, 1 s"),
    ({"objective": ["efort"]}, "unknown name in `objective`: 'efort'; did you mean 'effort'"),
    ({"objective": ["jerk", "jerk"]}, "objective: 'jerk' is listed twice"),
    ({"weight": [1.0]}, "weight has numbers, but objective is empty"),
    ({"objective": ["jerk"], "weight": [1.0, 2.0]}, "weight has 2 numbers for 1 names"),
    ({"objective": ["jerk"], "weight": [-1.0]}, "weight is [-1.0], expected numbers that are not negative"),
    ({"objective": ["jerk"], "weight": [0.0]}, "one of them positive"),
    ({"max_velocity": [1.0]}, "max_velocity has 1 numbers for 2 names"),
    ({"max_effort": [50.0, -3.0]}, "max_effort of joint 'elbow' is -3, expected a positive number"),
    ({"max_jerk": [50.0, NAN]}, "max_jerk of joint 'elbow' is nan"),
    ({"lower_position": [0.0, NAN]}, "lower_position of joint 'elbow' is nan, expected a number, inf where"),
    ({"lower_position": [0.0, 0.0], "upper_position": [1.0, -1.0]}, "position_lower 0 of joint 'elbow' is not below"),
    ({"upper_position": [0.0, 1.0]}, "goal: the position of joint 'shoulder' is 0.6, beyond its limit 0"),
    ({"max_effort": [1.0, 50.0]}, "the effort of joint 'shoulder' is"),
    ({"payload_body": "lowr", "payload": (1.0, POINT, np.zeros((3, 3)))}, "unknown link in `payload_body`: 'lowr'"),
    ({"payload": (1.0, POINT, np.zeros((3, 3)))}, "payload has a mass of 1 kg, but payload_body names no link"),
    ({"payload_body": "lower", "payload": (-1.0, POINT, np.zeros((3, 3)))}, "payload: inertia.m is -1 kg"),
    ({"payload_body": "lower", "payload": (1.0, (NAN, 0.0, 0.0), np.zeros((3, 3)))}, "payload: inertia.com is"),
    ({"external_wrenches": [("hand", np.zeros(6))]}, "unknown body in `external_wrenches`: 'hand'"),
    ({"external_wrenches": [("lower", np.full(6, NAN))]}, "the wrench on body 'lower' is not finite"),
    ({"sample_period": -0.1}, "sample_period is -0.1"),
    ({"sample_period": 1e-5}, "sample_period is 1e-05 s, expected at least 0.001 s"),
    ({"time_limit": NAN}, "time_limit is nan"),
], ids=lambda value: ",".join(value) if isinstance(value, dict) else None)
def test_bad_requests_are_refused_with_words_that_help(made, fields, words):
    with pytest.raises(rbd.RbdError) as caught:
        made.search(made.prepare(MotionRequest(**GOOD | fields), 0.0))
    assert words in str(caught.value)


def test_points_are_too_far_apart(made):
    """A controller would not move between them as planned."""
    request = MotionRequest(**GOOD | {"duration": 0.0, "objective": ["duration"], "max_acceleration": [20.0, 20.0],
                                      "sample_period": 0.2})
    with pytest.raises(rbd.RbdError, match=r"sample_period is 0.2 s, too long: between the points the \w+ of joint"):
        made.search(made.prepare(request, 0.0))


@pytest.mark.parametrize("fields", [
    {"objective": ["velocity"], "max_effort": [13.0, 3.5]}, {"objective": ["effort"], "upper_position": [0.7, 0.8]}])
def test_what_a_controller_makes_of_the_points_keeps_every_limit(made, fields):
    """Whatever the period: refused, or efforts and positions stay within, between the points, too."""
    refused = 0
    for period in (0.01, 0.03, 0.06, 0.1, 0.15, 0.2, 0.3):
        task = made.prepare(MotionRequest(**GOOD | fields | {"duration": 0.9, "sample_period": period}), 0.0)
        limits = task.limits.checked(task.model)
        try:
            plan = made.search(task)
        except rbd.RbdError as error:
            assert "sample_period" in str(error)
            refused += 1
            continue
        assert plan.good, plan.reason
        _, q, v, a = interpolated(*plan.points[:4])
        tau = task.friction.add(v, rbd.inverse_dynamics(task.model, q, v, a))
        assert np.max(np.abs(tau) / limits.effort) <= 1.0 + 1e-5
        assert np.max(q - limits.position_upper) <= 1e-5 and np.max(limits.position_lower - q) <= 1e-5
    assert 0 < refused < 7


def test_a_mimic_joint_is_not_planned_for():
    made = planner(MIMIC)
    assert made.search(made.prepare(MotionRequest(**GOOD), 0.0)).good
    with pytest.raises(rbd.RbdError, match="'finger_joint' follows 'elbow'"):
        made.prepare(MotionRequest(**GOOD | {"name": [*NAMES, "finger_joint"]}), 0.0)


def test_wider_limits_change_nothing(made):
    task = made.prepare(MotionRequest(**GOOD | {"max_effort": [1e3, 2.0], "lower_position": [-9.0, -1.0]}), 0.0)
    np.testing.assert_array_equal(task.limits.effort, [100.0, 2.0])
    np.testing.assert_array_equal(task.limits.position_lower, [-3.0, -1.0])


def test_the_load_of_a_request_replaces_the_nodes():
    made = planner(**{"payload.body": "lower", "payload.mass": 2.0})
    empty = made.prepare(MotionRequest(**GOOD | {"payload_body": "lower"}), 0.0).model
    heavier = made.prepare(MotionRequest(**GOOD | {"payload_body": "upper", "payload": (5.0, POINT, np.zeros((3, 3)))}),
                           0.0).model
    assert [m.total_mass for m in (empty, made.prepare(MotionRequest(**GOOD), 0.0).model, heavier)] == [3.0, 5.0, 8.0]


def test_the_objective_of_who_names_none_is_calm(made):
    both = {"objective": ["jerk", "duration"], "weight": [0.5, 2.0]}
    for fields, objective in (({}, {"effort": 1.0, "jerk_share": 0.1}),
                              ({"duration": 0.0}, {"duration": 1.0, "jerk_share": 0.1}),
                              (both, {"jerk": 0.5, "duration": 2.0})):
        assert made.prepare(MotionRequest(**GOOD | fields), 0.0).objective == objective


def test_a_search_that_is_stopped(made):
    seen = []

    def progress(now):
        seen.append(now)
        return len(seen) == 4

    plan = made.search(made.prepare(MotionRequest(**GOOD), 0.0), progress)
    assert plan.cancelled and not plan.good and plan.points is None and plan.reason == "cancelled"
    assert [now.iterations for now in seen] == [0, 1, 2, 3] and plan.motion.ended == "stopped"


def test_a_search_that_is_stopped_at_a_later_guess(made, monkeypatch):
    """What is left is the motion of a guess before, or that of least jerk, which ended by itself."""
    task = made.prepare(MotionRequest(**GOOD | {"duration": 0.38}), 0.0)    # as the velocity limit is a bit too low
    whole = made.search(task)
    assert not whole.good and not whole.cancelled
    stopped = []
    for part in (0.1, 0.2, 0.3, 0.5, 0.7):    # a search need not take as many iterations as the one before it
        answers = [False]

        def beyond(now, part=part, answers=answers):
            answers.append(now.iterations > part * whole.motion.iterations)
            return answers[-1]

        plan = made.search(task, beyond)
        assert plan.cancelled == answers[-1] and not plan.good and plan.points is None
        stopped += [plan] if plan.cancelled else []
    assert all(plan.reason == "cancelled" for plan in stopped)
    guesses = []
    monkeypatch.setattr(optimization, "first_guess",
                        lambda task, T, number: guesses.append(number) or first_guess(task, T, number))
    plan = made.search(task, lambda _: len(guesses) > 1)
    assert plan.cancelled and plan.reason == "cancelled" and plan.motion.ended == "converged"


def test_joints_without_motors_get_no_effort():
    """A cart carries a hanging pole from rest to rest."""
    cart = """<joint name="cart" type="prismatic"><parent link="rail"/><child link="cart"/><axis xyz="1 0 0"/>
      <limit lower="-2" upper="2" velocity="3" effort="50"/></joint>
      <joint name="pole" type="continuous"><parent link="cart"/><child link="pole"/><axis xyz="0 1 0"/>
      <limit velocity="20" effort="50"/></joint>"""
    links = """<link name="rail"/><link name="cart"><inertial><mass value="1"/>
      <inertia ixx="0.01" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial></link>
      <link name="pole"><inertial><origin xyz="0 0 -0.5"/><mass value="0.3"/>
      <inertia ixx="0.01" iyy="0.01" izz="0.001" ixy="0" ixz="0" iyz="0"/></inertial></link>"""
    model = rbd.load_urdf(f'<robot name="cart_pole">{links}{cart}</robot>')
    made = MotionPlanner(model, PlannerSettings.from_values({"passive_joints": ["pole"]}, model))
    plan = made.search(made.prepare(MotionRequest(["pole", "cart"], [0.0, 0.8], [0.0, 0.0], duration=2.0), 0.0))
    assert plan.good and plan.motion.usage["passive_effort"].ratio <= 1.0
    assert not plan.points.effort[:, 0].any() and np.abs(plan.points.effort[:, 1]).max() > 0.5
    for passive, words in ((["poel"], "unknown joint in `passive_joints`: 'poel'; did you mean 'pole'"),
                           (["cart", "pole"], "passive_joints are all joints")):
        with pytest.raises(rbd.RbdError, match=words):
            PlannerSettings.from_values({"passive_joints": passive}, model)
