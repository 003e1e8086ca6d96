"""Joints without motors in open chains: derivatives, simulation with the motors' efforts alone, optimum, refusals."""
from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.optimize import minimize
from support.robots import build

import rbd_ros as rbd
from rbd_ros.core.motion import own_code
from rbd_ros.core.motion.optimal.checked_task import checked_task
from rbd_ros.core.motion.optimal.first_guess import minimum_jerk
from rbd_ros.core.motion.optimal.problem import Problem

CART, POLE, LENGTH, INERTIA, G = 1.0, 0.3, 0.5, 0.02, 9.81
LIMITS = rbd.MotionLimits(effort=40.0, velocity=15.0)


def cart_pole(poles=1, **options):
    """A cart on a rail and poles that hang in a row from it."""
    joints = [rbd.JointSpec("cart", "prismatic", "rail", "cart", axis=(1.0, 0.0, 0.0))]
    links = {"cart": rbd.Inertia(CART, np.zeros(3), 0.01 * np.eye(3))}
    for i in range(poles):
        joints.append(rbd.JointSpec(f"pole_{i}", "revolute", f"pole_{i - 1}" if i else "cart", f"pole_{i}",
                                    position=(0.0, 0.0, -0.8 * bool(i)), axis=(0.0, -1.0, 0.0)))
        links[f"pole_{i}"] = rbd.Inertia(POLE, np.array([0.0, 0.0, -LENGTH]), np.diag([INERTIA, INERTIA, 1e-3]))
    return build(joints, links, gravity=(0.0, 0.0, -G), **options)


def textbook(state, force):
    """d/dt of (x, θ, ẋ, θ̇) of a cart with a pole, θ = 0 hanging; also of many, (4, N)."""
    _, th, v, w = state
    s, c = np.sin(th), np.cos(th)
    m, both, n = CART + POLE, POLE * LENGTH * c, INERTIA + POLE * LENGTH**2    # of the mass matrix
    f, g = force + POLE * LENGTH * s * w**2, -POLE * G * LENGTH * s
    return np.array([v, w, (n * f - both * g) / (m * n - both**2), (m * g - both * f) / (m * n - both**2)])


def driven(model, motion, until=None):
    """Where the robot is when it is driven by the motors' planned efforts alone, from the start, (101, 2 nv)."""
    def slope(t, x):
        q, v = x[:model.nv], x[model.nv:]
        return np.concatenate([v, rbd.forward_dynamics(model, q, v, motion.effort(t))])

    at, until = motion(0.0), until or motion.duration
    found = solve_ivp(slope, (0.0, until), [*at.q, *at.v], "DOP853", rtol=1e-8, atol=1e-9,
                      t_eval=np.linspace(0.0, until, 101))
    return found.t, found.y.T


@pytest.mark.parametrize("free", [False, True])
@pytest.mark.parametrize("degree", [5, 7])
def test_the_equations_have_the_derivatives_of_differences(degree, free):
    model = cart_pole(2).with_(damping=[0.5, 0.01, 0.02])
    task = checked_task(model, np.zeros(3), [0.6, 0.0, 0.0], (0.5, 4.0) if free else 1.5,
                        {"effort": 1.0, "duration": 3.0}, LIMITS, [(0.4, [0.3, 0.2, -0.1])], None, 0.05, degree, 16,
                        actuated=["cart"])
    problem = Problem(task, task.nodes(40), 10.0)
    rng = np.random.default_rng(3)
    x = problem.unknowns(minimum_jerk(task, 1.5), 1.5)
    x += 0.1 * rng.normal(size=len(x)) * (np.arange(len(x)) < problem.free)
    at, linear = problem.values(x), problem.linear(x)
    held = 3 if degree == 5 else 4
    assert len(at.equations) == 3 + 2 * (16 - 2 * held + 2) and len(task.basis.collocation) == 16 - 2 * held + 2
    nu = rng.normal(size=len(at.equations))
    h = 1e-3

    def change(f, e):
        near, far = (f(x + k * h * e) - f(x - k * h * e) for k in (1, 2))
        return (8.0 * near - far) / (12.0 * h)

    columns = problem.equations.columns(linear)
    exact = np.array([change(lambda z: problem.values(z).equations, e) for e in np.eye(len(x))])
    assert np.abs(columns - exact).max() <= 1e-8 * np.abs(exact).max()

    def gradient(z):
        there = problem.linear(z)
        return problem.gradient(there, np.zeros(len(at.rows))) + problem.equations.columns(there) @ nu

    none = np.zeros(len(at.rows))
    step = problem.step_matrix(linear, none, nu, problem.curvature(linear, none, nu), none)
    H = np.zeros((len(x), len(x)))
    for d, row in enumerate(step.band):
        n = problem.free - d
        H[np.arange(n) + d, np.arange(n)] = H[np.arange(n), np.arange(n) + d] = row[:n]
    if free:
        H[:-1, -1:], H[-1:, :-1], H[-1:, -1:] = step.border, step.border.T, step.corner
    exact = np.array([change(gradient, e) for e in np.eye(len(x))])
    assert np.abs(H - exact).max() <= 1e-5 * np.abs(exact).max()    # second derivatives are differences


@pytest.mark.parametrize(("poles", "goal", "duration"), [
    (1, [1.0, 0.0], 1.5), (1, [0.0, np.pi], 2.0), (1, [0.5, np.pi], None), (2, [1.0, 0.0, 0.0], 2.0)])
def test_the_motors_alone_drive_the_robot_along_the_motion(poles, goal, duration):
    """Transfers with poles at rest at the end, swings up; simulated without feedback, the latter by textbook, too."""
    model = cart_pole(poles)
    motion = rbd.optimize_motion(model, np.zeros(1 + poles), goal, duration, {"effort": 1.0, "duration": 20.0},
                                 limits=LIMITS, actuated=["cart"], passive_tolerance=1e-4, time_limit=60.0).check()
    t, x = driven(model, motion)
    there = motion(t)
    np.testing.assert_allclose(x[:, :1 + poles], there.q, atol=5e-3)
    np.testing.assert_allclose(x[:, 1 + poles:], there.v, atol=3e-2)
    assert np.all(motion.effort(t)[:, 1:] == 0.0)
    used = motion.usage["passive_effort"]
    assert 0.0 < used.ratio <= 1.0 and used.joint.startswith("pole")
    q, v, a = there[:3]
    assert np.abs(rbd.inverse_dynamics(model, q, v, a)[:, 1:]).max() < 1e-3 * np.abs(motion.effort(t)).max()
    if poles == 1:
        end = solve_ivp(lambda t, x: textbook(x, motion.effort(t)[0]), (0.0, motion.duration), np.zeros(4), "DOP853",
                        rtol=1e-8, atol=1e-9).y[:, -1]
        np.testing.assert_allclose(end, [*goal, 0.0, 0.0], atol=3e-2)


@pytest.mark.parametrize(("motor", "duration"), [("elbow", 4.0), ("shoulder", 2.0)])
def test_two_links_swing_up_with_one_motor(motor, duration):
    model = rbd.sample("two_link")
    limits = rbd.MotionLimits(effort=np.inf, velocity=30.0, position_lower=-10.0, position_upper=10.0)
    motion = rbd.optimize_motion(model, [0.0, 0.0], [np.pi, 0.0], duration, {"effort": 1.0, "acceleration": 0.01},
                                 limits=limits, actuated=[motor], time_limit=60.0).check()
    t, x = driven(model, motion, 1.0)    # what is tolerated grows later, upright
    np.testing.assert_allclose(x[:, :2], motion(t).q, atol=1e-2)


def test_a_passive_last_joint_without_gravity():
    model = rbd.sample("two_link").with_(gravity=np.zeros(3))
    limits = rbd.MotionLimits(position_lower=-7.0, position_upper=7.0)
    motion = rbd.optimize_motion(model, [0.0, 0.4], [0.6, 0.1], 2.0, actuated=["shoulder"], limits=limits,
                                 time_limit=60.0).check()
    t, x = driven(model, motion)
    np.testing.assert_allclose(x[:, :2], motion(t).q, atol=2e-2)


def test_no_forces_that_were_shot_are_cheaper():
    """Piecewise linear forces, the textbook's equations, and SLSQP: there, forces may jump at the ends, so it is a
    bound, which the motion comes near with more control points.
    """
    N, T = 30, 1.5
    h = T / N
    goal = np.array([1.0, 0.0, 0.0, 0.0])

    def shot(u):
        x = np.zeros((4, *u.shape[1:]), dtype=u.dtype)
        for k in range(N):
            mid = 0.5 * (u[k] + u[k + 1])
            k1 = textbook(x, u[k])
            k2 = textbook(x + 0.5 * h * k1, mid)
            k3 = textbook(x + 0.5 * h * k2, mid)
            k4 = textbook(x + h * k3, u[k + 1])
            x = x + h / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)
        return (x.T - goal).T

    def shots(u):    # derivatives by complex step
        return shot(u[:, None] + 1e-30j * np.eye(N + 1)).imag / 1e-30

    def cost(u):
        return h / 3.0 * float(np.sum(u[1:] ** 2 + u[1:] * u[:-1] + u[:-1] ** 2))

    found = minimize(cost, np.zeros(N + 1), method="SLSQP", constraints={"type": "eq", "fun": shot, "jac": shots},
                     options={"ftol": 1e-9, "maxiter": 200})
    assert found.success and np.abs(shot(found.x)).max() < 1e-6
    costs = [rbd.optimize_motion(cart_pole(), np.zeros(2), goal[:2], T, limits=LIMITS, actuated=["cart"],
                                 control_points=K, time_limit=60.0).check().cost for K in (30, 90)]
    assert 0.999 * found.fun < costs[1] < costs[0] < 1.15 * found.fun and costs[1] < 1.05 * found.fun


def test_all_joints_with_motors_are_what_they_are_without_saying_so(monkeypatch):
    monkeypatch.setattr(own_code, "WORTH", np.inf)    # with code of its own the second one would round otherwise
    model = rbd.sample("two_link")
    one, two = (rbd.optimize_motion(model, [0.0, 0.0], [0.5, 0.5], 1.0, **given)
                for given in ({}, {"actuated": ["shoulder", "elbow"]}))
    np.testing.assert_array_equal(one.spline.control, two.spline.control)
    assert "passive_effort" not in two.usage


def test_what_is_tolerated_and_not_kept_is_said():
    motion = rbd.optimize_motion(cart_pole(), np.zeros(2), [0.0, np.pi], 2.0, limits=LIMITS, actuated=["cart"],
                                 passive_tolerance=1e-9, control_points=390, starts=1, time_limit=2.0)
    assert not motion.good and motion.usage["passive_effort"].ratio > 1.0 and "pole_0" in motion.reason


@pytest.mark.parametrize(("change", "what"), [
    ({"goal": [0.0, 1.0]}, "goal: joint 'pole_0' has no motor, and needs an effort of"),
    ({"start": [0.0, -1.0]}, "start: joint 'pole_0' has no motor"),
    ({"actuated": []}, "no joint of 'robot' has a motor"),
    ({"objective": {"effort": [0.0, 1.0]}}, "objective: all weights are those of efforts of joints without motors"),
    ({"actuated": ["nobody"]}, "nobody"), ({"passive_tolerance": 0.0}, "passive_tolerance"),
    ({"goal": rbd.BodyGoal("cart", [0.5, 0.0, 0.0])}, "goal: a BodyGoal is not supported with joints without motors"),
    ({"control_points": 8}, "control_points: 8 leave 4 numbers free, fewer than the 4 equations of 1 joints")])
def test_what_cannot_be_is_refused_by_name(change, what):
    with pytest.raises(rbd.RbdError, match=what):
        rbd.optimize_motion(cart_pole(), **{"start": np.zeros(2), "goal": [0.5, 0.0], "duration": 1.5,
                                            "actuated": ["cart"], "limits": LIMITS, **change})
