"""Poses of bodies as ends of motions of mechanisms with loops: reached, exact slopes, no cheaper posture, refusals."""
from __future__ import annotations

import numpy as np
import pytest
from test_closed_motion import MOTORS, mechanism

import rbd_ros as rbd
from rbd_ros.core.motion.optimal.checked_task import checked_task
from rbd_ros.core.motion.optimal.first_guess import minimum_jerk
from rbd_ros.core.motion.optimal.nodes import Nodes
from rbd_ros.core.motion.optimal.problem import Problem

BODY = {"five_bar": "tool", "gripper": "left_finger", "delta": "platform", "stewart": "platform"}
# of central differences of eighth order
EIGHTH = {1: 4.0 / 5.0, 2: -1.0 / 5.0, 3: 4.0 / 105.0, 4: -1.0 / 280.0}


def pose_of(name, q, oriented=False):
    model = mechanism(name)[0]
    pose = rbd.forward_kinematics(model, q)[model.body_index(BODY[name])]
    return rbd.BodyGoal(BODY[name], pose[:3, 3], pose[:3, :3] if oriented else None)


def planned(name, start, goal, **more):
    model, constraints, _, _ = mechanism(name)
    return rbd.optimize_motion(model, start, goal, 1.0, constraints=constraints, actuated=MOTORS[name],
                               **{"time_limit": 60.0, **more})


@pytest.mark.parametrize(("name", "oriented"), [("five_bar", False), ("gripper", True), ("delta", False),
                                                ("stewart", True), ("stewart", False)])
def test_the_body_gets_there_with_loops_closed(name, oriented):
    model, constraints, q0, q1 = mechanism(name)
    motion = planned(name, q0, pose_of(name, q1, oriented)).check()
    end = motion(1.0)
    np.testing.assert_allclose(pose_of(name, q1, oriented).equations(model, end.q), 0.0, atol=1e-7)
    np.testing.assert_allclose(end.v, 0.0, atol=1e-9)
    np.testing.assert_allclose(model.difference(q0, motion(0.0).q), 0.0, atol=1e-9)
    assert np.abs(rbd.constraint_values(model, constraints, motion(np.linspace(0.0, 1.0, 1001)).q)).max() <= 1e-9
    given = planned(name, q0, q1).check()
    assert motion.cost <= given.cost * 1.0006    # what the barrier may leave
    if name != "stewart" or oriented:    # which the pose determines
        assert abs(motion.cost / given.cost - 1.0) < 1.2e-3


@pytest.mark.parametrize("name", ["five_bar", "stewart"])
def test_a_pose_to_start_from_is_a_pose_to_end_at_seen_backwards(name):
    model, constraints, q0, q1 = mechanism(name)
    still = model.with_(damping=0.0)
    more = {"constraints": constraints, "actuated": MOTORS[name]}
    there = rbd.optimize_motion(still, q0, pose_of(name, q1, True), 1.0, **more).check()
    back = rbd.optimize_motion(still, pose_of(name, q1, True), q0, 1.0, **more).check()
    assert abs(back.cost / there.cost - 1.0) < 1e-3
    t = np.linspace(0.0, 1.0, 11)
    apart = [still.difference(x, y) for x, y in zip(back(t).q, there(1.0 - t).q, strict=True)]
    np.testing.assert_allclose(apart, 0.0, atol=5e-3)


def test_no_other_posture_at_the_pose_is_cheaper():
    """The platform may be turned where only its position is asked for."""
    name = "stewart"
    model, _, q0, q1 = mechanism(name)
    goal = pose_of(name, q1)
    mine = planned(name, q0, goal, control_points=10).check()
    chain = mine._task.chain
    own = chain.own
    end = mine(1.0).q
    pose = mine._task.poses[1]
    null = np.linalg.svd(pose.jacobian(end[own]))[2][3:]
    for way, step in zip(null, (-0.02, 0.02, -0.02), strict=True):
        q = pose.closed(pose.reached(end[own] + step * way))
        np.testing.assert_allclose(goal.equations(model, q), 0.0, atol=1e-9)
        assert np.abs(model.difference(end, q)).max() > 5e-3
        assert planned(name, q0, q, control_points=10).check().cost > mine.cost * (1.0 - 6e-4)


@pytest.mark.parametrize(("name", "oriented"), [("five_bar", True), ("delta", False), ("stewart", True)])
def test_equations_have_the_slopes_of_closing_the_loops_anew(name, oriented):
    model, constraints, q0, q1 = mechanism(name)
    ends = pose_of(name, q0, oriented), pose_of(name, q1, oriented)
    task = checked_task(model, *ends, 1.0, "effort", None, (), None, 0.05, 5, 12, constraints, MOTORS[name], "effort")
    problem = Problem(task, Nodes.of(task.basis, 14, task.orders, np.array([0.0, 1.0])), 2.0)
    x = problem.unknowns(minimum_jerk(task, 1.0), 1.0)
    x = x + 0.02 * np.random.default_rng(3).normal(size=len(x))
    problem.values(x)
    columns = problem.equations.columns(problem.linear(x))
    h = 4e-3 if name == "stewart" else 1e-2
    for i in [*range(problem.nv), *range(len(x) - problem.nv, len(x))]:    # the points that are ends
        e = np.eye(len(x))[i]
        exact = sum(c * (problem.equations.values(problem.control(x + k * h * e), None)
                         - problem.equations.values(problem.control(x - k * h * e), None)) / h
                    for k, c in EIGHTH.items())
        assert np.abs(columns[i] - exact).max() <= 1e-10 * max(1.0, np.abs(exact).max())
    assert not columns[problem.nv:-problem.nv].any()


@pytest.mark.parametrize(("end", "what"), [
    (rbd.BodyGoal("nobody", np.zeros(3)), "nobody"),
    (rbd.BodyGoal("tool", [0.0, 0.0, 9.0]), "no posture within the position limits, with loops closed")])
@pytest.mark.parametrize("where", ["start", "goal"])
def test_poses_out_of_reach_are_refused(where, end, what):
    _, _, q0, q1 = mechanism("five_bar")
    with pytest.raises(rbd.RbdError, match=what):
        planned("five_bar", **{"start": q0, "goal": q1, where: end})
