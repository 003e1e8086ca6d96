"""Goals that are poses of bodies, and planes that points stay before: derivatives, optima, limits, refusals."""
from __future__ import annotations

import numpy as np
import pytest
from support.closed import closed

import rbd_ros as rbd
from rbd_ros.core.motion.optimal.checked_task import checked_task
from rbd_ros.core.motion.optimal.first_guess import minimum_jerk
from rbd_ros.core.motion.optimal.nodes import Nodes
from rbd_ros.core.motion.optimal.problem import Problem
from rbd_ros.core.motion.places.body_goal import EndPose
from rbd_ros.core.motion.places.plane_limit import Planes

IIWA = rbd.sample("iiwa")
Q0 = np.array([0.0, 0.5, 0.0, -1.2, 0.0, 0.8, 0.0])
Q1 = np.array([1.2, -0.3, 0.5, -0.5, 0.6, -0.4, 1.0])
TOOL = IIWA.body_names[-1]
OFFSET = np.array([0.02, -0.03, 0.1])


def point(model, q, body=TOOL, offset=OFFSET):
    pose = rbd.forward_kinematics(model, q)[..., model.body_index(body), :, :]
    return pose[..., :3, :3] @ offset + pose[..., :3, 3]


def rotation(axis, angle):
    return np.asarray(rbd.lie.so3.exp(angle * np.asarray(axis) / np.linalg.norm(axis)))


def extrapolated(function, x, e, h=4e-3):
    """Richardson's extrapolation of central differences, error of order h⁶."""
    d = [(function(x + s * e) - function(x - s * e)) / (2.0 * s) for s in (h, h / 2.0, h / 4.0)]
    first = [(4.0 * d[1] - d[0]) / 3.0, (4.0 * d[2] - d[1]) / 3.0]
    return (16.0 * first[1] - first[0]) / 15.0


def complex_poses(model, q):
    """World from body of a serial chain of revolute joints, for complex q: written down from the description."""
    T, found = np.eye(4, dtype=complex), {}
    for joint, angle in zip(model.description.joints, q, strict=True):
        axis = np.array(joint.axis)
        K = np.array([[0.0, -axis[2], axis[1]], [axis[2], 0.0, -axis[0]], [-axis[1], axis[0], 0.0]])
        local = np.eye(4, dtype=complex)
        local[:3, :3] = joint.rotation @ (np.eye(3) + np.sin(angle) * K + (1.0 - np.cos(angle)) * K @ K)
        local[:3, 3] = joint.position
        T = T @ local
        found[joint.child] = T
    return found


@pytest.mark.parametrize("oriented", [False, True])
def test_equations_of_a_pose_have_the_derivatives_of_a_complex_step(oriented):
    R = rotation([1.0, 2.0, -0.5], 0.7)
    goal = rbd.BodyGoal(TOOL, [0.3, 0.2, 0.9], R if oriented else None, OFFSET)
    q = np.random.default_rng(1).uniform(-1.0, 1.0, 7)

    def equations(x):
        pose = complex_poses(IIWA, x)[TOOL]
        off = pose[:3, :3] @ OFFSET + pose[:3, 3] - [0.3, 0.2, 0.9]
        E = R.T @ pose[:3, :3]
        turned = 0.5 * np.array([E[2, 1] - E[1, 2], E[0, 2] - E[2, 0], E[1, 0] - E[0, 1]])
        return np.concatenate([off, turned]) if oriented else off

    np.testing.assert_allclose(goal.equations(IIWA, q), equations(q).real, atol=1e-13)
    exact = np.array([equations(q + 1e-30j * e).imag / 1e-30 for e in np.eye(7)]).T
    np.testing.assert_allclose(goal.jacobian(IIWA, q), exact, atol=1e-12)


def test_clearances_have_the_derivatives_of_a_complex_step():
    normal = np.array([0.0, 0.6, 0.8])
    planes = Planes(IIWA, [rbd.PlaneLimit(TOOL, 3.0 * normal, 0.2, OFFSET), rbd.PlaneLimit("link_4", [0, 0, 1], 0.1)])
    q = np.random.default_rng(1).uniform(-1.0, 1.0, (3, 7))

    def values(x):
        poses = complex_poses(IIWA, x)
        return np.array([normal @ (poses[TOOL][:3, :3] @ OFFSET + poses[TOOL][:3, 3]) - 0.2,
                         poses["link_4"][2, 3] - 0.1])

    for k in range(3):
        np.testing.assert_allclose(planes.values(q)[k], values(q[k]).real, atol=1e-13)
        exact = np.array([values(q[k] + 1e-30j * e).imag / 1e-30 for e in np.eye(7)]).T
        np.testing.assert_allclose(planes.jacobian(q)[k], exact, atol=1e-12)
    weights = np.random.default_rng(2).normal(size=(3, 2))
    found = planes.curvature(q, weights)
    exact = np.array([[extrapolated(lambda x, k=k: weights[k] @ planes.jacobian(x[None])[0], q[k], e)
                       for e in np.eye(7)] for k in range(3)])
    np.testing.assert_allclose(found, exact, atol=1e-5)


@pytest.mark.parametrize("free", [False, True])
@pytest.mark.parametrize("poses", ["start", "goal", "start, goal"])
def test_the_gradient_by_all_control_points_and_the_postures_of_poses(poses, free):
    """Of cost + yᵀ rows by differences; of the equations, the columns."""
    model = IIWA.with_(damping=0.3)
    R = rbd.forward_kinematics(IIWA, Q0)[IIWA.body_index(TOOL), :3, :3]
    start = rbd.BodyGoal(TOOL, point(IIWA, Q0), R, OFFSET) if "start" in poses else Q0
    goal = rbd.BodyGoal(TOOL, point(IIWA, Q1), offset=OFFSET) if "goal" in poses else Q1
    task = checked_task(model, start, goal, (0.5, 4.0) if free else 1.5,
                        {"effort": 1.0, "power": 0.2, "duration": 3.0}, None, [(0.03, Q0), (0.5, Q0 + 0.2), (0.97, Q1)],
                        None, 0.05, 5, 12, planes=[rbd.PlaneLimit(TOOL, [0, 0, 1], 0.1)])
    problem = Problem(task, Nodes.of(task.basis, 30, task.orders, np.array([0.0, 1.0])), 1000.0)
    rng = np.random.default_rng(3)
    x = problem.unknowns(minimum_jerk(task, 1.5), 1.5)
    x += 0.1 * rng.normal(size=len(x)) * (np.arange(len(x)) < problem.free)
    at = problem.values(x)
    y, nu = rng.uniform(0.0, 1.0, len(at.rows)), rng.normal(size=len(at.equations))
    linear = problem.linear(x)
    gradient = problem.gradient(linear, y) + problem.equations.columns(linear) @ nu

    def value(z):
        found = problem.values(z)
        return found.cost + y @ found.rows + nu @ found.equations

    exact = np.array([extrapolated(value, x, e) for e in np.eye(len(x))])
    assert np.abs(gradient - exact).max() <= 1e-8 * np.abs(exact).max()
    control = problem.control(x)
    np.testing.assert_allclose(control[-3:], np.tile(control[-1], (3, 1)))
    np.testing.assert_allclose(control[:3], np.tile(control[0], (3, 1)))


def test_gradients_with_planes_in_a_mechanism_with_loops():
    model, constraints, near = closed("delta")
    q0 = rbd.project(model, constraints, near).q
    motors = ["motor_1", "motor_2", "motor_3"]
    task = checked_task(model, q0, q0, 1.0, "effort", None, (), None, 0.05, 5, 12, constraints, motors,
                        planes=[rbd.PlaneLimit("platform", [0.1, 0.2, 1.0], -9.0, [0.05, 0.0, 0.0])])
    problem = Problem(task, Nodes.of(task.basis, 20, task.orders), 1.0)
    rng = np.random.default_rng(3)
    x = problem.unknowns(minimum_jerk(task, 1.0), 1.0) + 0.05 * rng.normal(size=problem.size)
    at = problem.values(x)
    y = np.zeros(len(at.rows))
    y[np.abs(at.rows) > 7.0] = 1.0    # clearances: the only rows so far from their limit
    assert y.sum() == 21.0
    gradient = problem.gradient(problem.linear(x), y)
    for e in np.eye(len(x))[::4]:
        exact = extrapolated(lambda z: problem.values(z).cost + y @ problem.values(z).rows, x, e, 1e-3)
        assert abs(gradient @ e - exact) <= 1e-7 * np.abs(gradient).max()


# ---- motions

@pytest.mark.parametrize(("oriented", "duration"), [
    (False, 1.5), (True, None), *(pytest.param(*given, marks=pytest.mark.thorough) for given in ((True, 1.5),
                                                                                               (False, None)))])
def test_the_body_gets_there(oriented, duration):
    pose = rbd.forward_kinematics(IIWA, Q1)[IIWA.body_index(TOOL)]
    goal = rbd.BodyGoal(TOOL, point(IIWA, Q1), pose[:3, :3] if oriented else None, OFFSET)
    motion = rbd.optimize_motion(IIWA, Q0, goal, duration, {"effort": 1.0, "duration": 500.0}).check()
    end = motion(motion.duration)
    np.testing.assert_allclose(point(IIWA, end.q), point(IIWA, Q1), atol=1e-6)
    if oriented:
        np.testing.assert_allclose(rbd.forward_kinematics(IIWA, end.q)[IIWA.body_index(TOOL), :3, :3], pose[:3, :3],
                                   atol=2e-6)
    np.testing.assert_allclose(motion(motion.duration - 1e-9).v, 0.0, atol=1e-6)
    assert set(motion.usage) == {"position", "velocity", "effort"} and motion.kkt_residual <= 1e-6


@pytest.mark.parametrize("duration", [1.5, None])
def test_a_pose_to_start_from_is_a_pose_to_end_at_seen_backwards(duration):
    """Without friction, efforts are the same on the way back: the motions mirror each other in time."""
    goal = rbd.BodyGoal(TOOL, point(IIWA, Q1), offset=OFFSET)
    objective = {"effort": 1.0, "duration": 500.0}
    there = rbd.optimize_motion(IIWA, Q0, goal, duration, objective).check()
    back = rbd.optimize_motion(IIWA, goal, Q0, duration, objective).check()
    assert abs(back.cost / there.cost - 1.0) < 1e-5 and abs(back.duration / there.duration - 1.0) < 1e-3
    t = np.linspace(0.0, 1.0, 11)
    np.testing.assert_allclose(back(t * back.duration).q, there((1.0 - t) * there.duration).q, atol=5e-3)
    np.testing.assert_allclose(point(IIWA, back(0.0).q), point(IIWA, Q1), atol=1e-6)
    np.testing.assert_allclose(back(1e-9).v, 0.0, atol=1e-6)


def test_from_pose_to_pose_no_other_postures_are_cheaper():
    """An arm in a plane with one joint more than needed: postures of both ends around those that were found."""
    model = rbd.sample("iiwa", locked={"joint_1": 0.0, "joint_3": 0.0, "joint_5": 0.0, "joint_7": 0.0})
    tool = model.body_names[-1]
    poses = [rbd.BodyGoal(tool, point(model, q, tool), offset=OFFSET)
             for q in (np.array([0.3, -1.0, 0.5]), np.array([0.9, -0.7, 0.8]))]
    mine = rbd.optimize_motion(model, *poses, 1.2).check()
    ends = [mine(0.0).q, mine(1.2).q]

    def near(pose, q, step):
        J = pose.jacobian(model, q)
        q = q + step * np.linalg.svd(J)[2][-1]
        for _ in range(20):
            q = q - np.linalg.pinv(pose.jacobian(model, q), rcond=1e-6) @ pose.equations(model, q)
        return q

    for pose, q in zip(poses, ends, strict=True):
        assert np.abs(pose.equations(model, q)).max() <= 1e-6
    for steps in ((0.2, 0.0), (-0.2, 0.0), (0.0, 0.2), (0.0, -0.2), (0.15, 0.15), (-0.15, -0.15)):
        other = rbd.optimize_motion(model, *(near(*of) for of in zip(poses, ends, steps, strict=True)), 1.2).check()
        assert mine.cost <= other.cost * (1.0 + 1e-3) and other.cost > 1.0001 * mine.cost


def test_no_posture_of_the_goal_is_cheaper():
    """An arm in a plane with one joint more than needed: all postures of the goal, one by one."""
    model = rbd.sample("iiwa", locked={"joint_1": 0.0, "joint_3": 0.0, "joint_5": 0.0, "joint_7": 0.0})
    q0, q1 = np.array([0.3, -1.0, 0.5]), np.array([0.9, -0.7, 0.8])
    tool = model.body_names[-1]
    goal = rbd.BodyGoal(tool, point(model, q1, tool), offset=OFFSET)
    mine = rbd.optimize_motion(model, q0, goal, 1.2).check()
    end = mine(1.2).q
    costs = []
    J = goal.jacobian(model, end)
    rank = int(np.sum(np.linalg.svd(J)[1] > 1e-6))
    along = np.linalg.svd(J)[2][rank:]
    assert len(along) == 1
    for step in np.linspace(-0.3, 0.3, 13):
        q = end + step * along[0]
        for _ in range(20):
            q = q - np.linalg.pinv(goal.jacobian(model, q), rcond=1e-6) @ goal.equations(model, q)
        costs.append(rbd.optimize_motion(model, q0, q, 1.2).check().cost)
    assert mine.cost <= min(costs) * (1.0 + 1e-3) and np.argmin(costs) in (5, 6, 7)
    assert costs[0] > 1.003 * mine.cost and costs[-1] > 1.003 * mine.cost


def test_points_stay_before_planes():
    free = rbd.optimize_motion(IIWA, Q0, Q1, 1.5).check()
    t = np.linspace(0.0, 1.5, 4001)
    lowest = point(IIWA, free(t).q)[:, 2].min()
    ends = min(point(IIWA, Q0)[2], point(IIWA, Q1)[2])
    wall = point(IIWA, free(t).q)[:, 0].max()
    bound = max(point(IIWA, Q0)[0], point(IIWA, Q1)[0])
    normal, beyond = ([0.0, 0.0, 1.0], lowest) if ends - lowest > wall - bound else ([-1.0, 0.0, 0.0], -wall)
    limit = beyond + 0.5 * max(ends - lowest, wall - bound)
    assert limit > beyond + 1e-3    # the plane cuts the free motion
    motion = rbd.optimize_motion(IIWA, Q0, Q1, 1.5, planes=[rbd.PlaneLimit(TOOL, normal, limit, OFFSET)]).check()
    assert (point(IIWA, motion(t).q) @ np.array(normal)).min() >= limit
    assert motion.cost > free.cost and motion.usage["clearance"].ratio <= 1.0
    assert motion.usage["clearance"].joint == TOOL and motion.usage["clearance"].ratio > 1.0 - 1e-3


@pytest.mark.parametrize(("change", "what"), [
    ({"goal": rbd.BodyGoal("nobody", np.zeros(3))}, "nobody"),
    ({"goal": rbd.BodyGoal(TOOL, [0.0, 0.0, 9.0])}, "goal: no posture within the position limits"),
    ({"start": rbd.BodyGoal(TOOL, [0.0, 0.0, 9.0])}, "start: no posture within the position limits"),
    ({"start": rbd.BodyGoal("nobody", np.zeros(3))}, "nobody"),
    ({"planes": [3]}, "PlaneLimit"), ({"planes": None}, "PlaneLimit"),
    ({"planes": [rbd.PlaneLimit("nobody", [0, 0, 1], 0.0)]}, "nobody"),
    ({"planes": [rbd.PlaneLimit(TOOL, [0, 0, 1], 5.0)]}, "start: point 'link_7' is")])
def test_malformed_goals_and_planes_are_refused(change, what):
    with pytest.raises(rbd.RbdError, match=what):
        rbd.optimize_motion(IIWA, **{"start": Q0, "goal": Q1, "duration": 1.5, **change})


@pytest.mark.parametrize("make", [
    lambda: rbd.BodyGoal(TOOL, [0.0, 1.0]), lambda: rbd.BodyGoal(TOOL, np.full(3, np.nan)),
    lambda: rbd.BodyGoal(TOOL, np.zeros(3), np.zeros((3, 3))), lambda: rbd.BodyGoal(TOOL, np.zeros(3), offset="x"),
    lambda: rbd.PlaneLimit(TOOL, np.zeros(3), 0.0), lambda: rbd.PlaneLimit(TOOL, [0, 0, 1], np.inf),
    lambda: rbd.PlaneLimit(TOOL, [0, 0, 1], "low")])
def test_malformed_poses_and_planes_are_refused(make):
    with pytest.raises(rbd.RbdError):
        make()


@pytest.mark.parametrize("end", ["start", "goal"])
def test_half_a_turn_from_a_pose_is_not_there(end, monkeypatch):
    """The equations of an orientation hold there, too; a search that ends there says so."""
    model = rbd.sample("iiwa")
    q = np.array([0.3, 0.5, 0.1, -1.2, 0.2, 0.8, 0.4])
    pose = rbd.forward_kinematics(model, q)[-1]
    goal = rbd.BodyGoal(model.body_names[-1], pose[:3, 3], pose[:3, :3] @ np.diag([-1.0, -1.0, 1.0]))
    assert np.abs(goal.equations(model, q)).max() < 1e-12 and not goal.holds(model, q)
    monkeypatch.setattr(EndPose, "posture", lambda *_: q)
    ends = {"start": np.zeros(7), "goal": np.zeros(7), end: goal}
    motion = rbd.optimize_motion(model, **ends, duration=2.0, starts=1)
    assert not motion.good and f"in another pose than the {end}'s" in motion.reason
