"""Optimal motions against closed forms and an independent solver; limits sampled by other code; what cannot be done."""
from __future__ import annotations

import itertools
import time

import numpy as np
import pytest
from scipy.integrate import trapezoid
from scipy.interpolate import BSpline
from scipy.optimize import minimize
from support.robots import build, chain, inertia

import rbd_ros as rbd
from rbd_ros.core.model.payload import with_payloads

IIWA = rbd.sample("iiwa")
Q0 = np.array([0.0, 0.5, 0.0, -1.2, 0.0, 0.8, 0.0])
Q1 = np.array([1.2, -0.3, 0.5, -0.5, 0.6, -0.4, 1.0])
FREE = rbd.MotionLimits(velocity=np.inf, effort=np.inf, position_lower=-np.inf, position_upper=np.inf)


def slider(mass=2.0, **limits):
    """A mass on a horizontal rail."""
    joint = rbd.JointSpec("rail", "prismatic", "world", "mass", axis=(1.0, 0.0, 0.0))
    return build([joint], {"mass": inertia(mass)}, gravity=(0.0, 0.0, -9.81)).with_(**limits)


def problems(count, seed=0):
    """Random ends of the iiwa, and 1.2 times the shortest duration of minimum jerk within the speed limits."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        q0, q1 = 0.9 * IIWA.random_configuration(rng), 0.9 * IIWA.random_configuration(rng)
        yield q0, q1, 1.2 * np.max(1.875 * np.abs(q1 - q0) / IIWA.velocity_limit)


def worst(model, motion, rate=5000.0):
    """Largest ratio to position, velocity and effort limits, with samples and formulas of its own."""
    t = np.arange(0.0, motion.duration, 1.0 / rate)
    q, v, a = motion(t)[:3]
    tau = rbd.inverse_dynamics(model, q, v, a) + rbd.friction_effort(model, v)
    middle = 0.5 * (model.position_upper + model.position_lower)
    return max(np.max(np.abs(q - middle) / (model.position_upper - middle)), np.max(np.abs(v) / model.velocity_limit),
               np.max(np.abs(tau) / model.effort_limit))


def integral(values, t):
    return trapezoid(np.sum(values, axis=1), t)


# ---- closed forms

@pytest.mark.parametrize("degree", [5, 7])
def test_least_jerk_is_the_known_polynomial(degree):
    """∫jerk² = 720 d² / T⁵ from rest to rest."""
    motion = rbd.optimize_motion(IIWA, Q0, Q1, 1.7, "jerk", limits=FREE, nodes=400, degree=degree).check()
    s = np.linspace(0.0, 1.0, 50)
    if degree == 5:    # with no jerk at the ends, as septic splines have it, there is a boundary layer
        expected = Q0 + (10.0 * s**3 - 15.0 * s**4 + 6.0 * s**5)[:, None] * (Q1 - Q0)
        np.testing.assert_allclose(motion(s * 1.7).q, expected, atol=2e-4)
    known = 720.0 * np.sum((Q1 - Q0) ** 2) / 1.7**5
    assert abs(motion.cost / known - 1.0) < (1e-4 if degree == 5 else 0.3)


def test_least_effort_of_a_mass_is_nearly_a_cubic():
    """∫(m a)² ≥ 12 m² d² / T³, which a motion that starts and ends without acceleration approaches only."""
    bound = 12.0 * 2.0**2 * 0.7**2 / 1.5**3
    costs = [rbd.optimize_motion(slider(), [0.0], [0.7], 1.5, limits=FREE, control_points=K).check().cost / bound
             for K in (12, 24, 48)]
    assert 1.0 < costs[2] < costs[1] < costs[0] < 1.2 and costs[2] < 1.06


def test_least_time_of_a_mass_is_nearly_bang_bang():
    """T = 2 √(m d / F)."""
    model = slider(effort_limit=6.0)
    shortest = 2.0 * np.sqrt(2.0 * 0.7 / 6.0)
    times = [rbd.optimize_motion(model, [0.0], [0.7], None, "duration", control_points=K).check().duration / shortest
             for K in (12, 24, 48)]
    assert 1.0 < times[2] < times[1] < times[0] < 1.2 and times[2] < 1.05


def test_free_duration_of_effort_and_time_is_stationary():
    """Among fixed durations, none is cheaper."""
    objective = {"effort": 1.0, "duration": 1000.0}
    free = rbd.optimize_motion(IIWA, Q0, Q1, None, objective).check()
    for factor in (0.98, 1.02):
        assert rbd.optimize_motion(IIWA, Q0, Q1, factor * free.duration, objective).check().cost > free.cost
    np.testing.assert_allclose(rbd.optimize_motion(IIWA, Q0, Q1, free.duration, objective).cost, free.cost, rtol=3e-4)


# ---- an independent solver

def peer(model, q0, q1, T, K, lower, upper, velocity, effort):
    """SLSQP on control points of SciPy's splines, with its own nodes and numerical gradients; the cost."""
    knots = np.concatenate([np.zeros(5), np.linspace(0.0, T, K - 4), np.full(5, T)])
    t = (np.arange(150) + 0.5) / 150 * T

    def control(x):
        return np.concatenate([np.tile(q0, (3, 1)), x.reshape(-1, model.nv), np.tile(q1, (3, 1))])

    def motion(x):
        spline = BSpline(knots, control(x), 5)
        q, v, a = (spline(t, nu=k) for k in range(3))
        return q, v, rbd.inverse_dynamics(model, q, v, a)

    def rows(x):
        q, v, tau = motion(x)
        return np.concatenate([upper - q, q - lower, velocity - v, velocity + v, effort - tau, effort + tau], axis=None)

    scale = np.sum(motion(np.linspace(q0, q1, K - 6).reshape(-1))[2] ** 2)
    found = minimize(lambda x: np.sum(motion(x)[2] ** 2) / scale, np.linspace(q0, q1, K - 6).reshape(-1),
                     constraints={"type": "ineq", "fun": rows}, method="SLSQP", options={"maxiter": 300, "ftol": 1e-9})
    assert found.success, found.message
    return found.fun * scale * T / 150


@pytest.mark.parametrize(("seed", "effort"), [(1, np.inf), (2, np.inf), (3, 1.05), (4, 1.05), (5, 1.02)])
def test_the_optimum_is_that_of_an_independent_solver(seed, effort):
    model = chain("revolute", "revolute", gravity=(0.0, -9.81, 0.0))
    rng = np.random.default_rng(seed)
    q0, q1 = rng.uniform(-1.5, 1.5, (2, 2))
    limits = [np.full(2, -2.5), np.full(2, 2.5), np.full(2, 3.0)]
    easy = rbd.optimize_motion(model, q0, q1, 1.2, "jerk", limits=FREE)
    peak = np.abs(easy.effort(np.linspace(0.0, 1.2, 300))).max(axis=0)
    ends = np.abs(easy.effort(np.array([0.0, 1.2]))).max(axis=0)
    limits.append(np.full(2, 1e3) if np.isinf(effort) else np.maximum(effort * ends, 0.7 * peak))
    mine = rbd.optimize_motion(model, q0, q1, 1.2, control_points=12, nodes=150, limits=rbd.MotionLimits(*limits[:3],
                               effort=limits[3])).check()
    theirs = peer(model, q0, q1, 1.2, 12, *(x * (1.0 - 1e-3) for x in limits))
    assert abs(mine.cost / theirs - 1.0) < 1e-3, (mine.cost, theirs)


# ---- limits

def test_random_motions_are_good_and_keep_all_limits():
    for q0, q1, T in problems(12, seed=100):
        motion = rbd.optimize_motion(IIWA, q0, q1, T).check()
        assert motion.kkt_residual <= 1e-6 and worst(IIWA, motion) <= 1.0 + 1e-6
        assert max(u.ratio for u in motion.usage.values()) == motion.violation + 1.0 <= 1.0
        jerk = rbd.optimize_motion(IIWA, q0, q1, T, "jerk")
        t = np.linspace(0.0, T, 2000)
        np.testing.assert_allclose(integral(motion.effort(t) ** 2, t), motion.cost, rtol=1e-4)
        assert motion.cost < integral(jerk.effort(t) ** 2, t)
        np.testing.assert_allclose(motion(np.array([0.0, T])).q, [q0, q1], atol=1e-12)


@pytest.mark.parametrize(("objective", "duration"), [("power", 1.5), ("effort_rate", 1.5), ("duration", None),
                                                     ({"effort": 1.0, "jerk": [1e-3] * 7}, 1.5)])
def test_all_limits_of_state_and_effort_are_kept(objective, duration):
    limits = rbd.MotionLimits(acceleration=6.0, jerk=100.0, effort=0.5 * IIWA.effort_limit, effort_rate=600.0)
    motion = rbd.optimize_motion(IIWA, Q0, Q1, duration, objective, limits=limits, starts=1, time_limit=30.0).check()
    assert set(motion.usage) == {"position", "velocity", "acceleration", "jerk", "effort", "effort_rate"}
    t = np.linspace(0.0, motion.duration, 3000)
    q, v, a, jerk, _ = motion(t)
    rate = rbd.inverse_dynamics_time_derivatives(IIWA, q, v, a, jerk)[:, 1]
    found = {"acceleration": np.max(np.abs(a)) / 6.0, "jerk": np.max(np.abs(jerk)) / 100.0,
             "effort_rate": np.max(np.abs(rate)) / 600.0}
    for name, ratio in found.items():
        assert ratio <= 1.0 + 1e-6
        np.testing.assert_allclose(ratio, motion.usage[name].ratio, rtol=2e-3)


def test_friction_is_counted():
    model = IIWA.with_(damping=2.0, friction=3.0)
    motion = rbd.optimize_motion(model, Q0, Q1, 1.5).check()
    t = np.linspace(0.0, 1.5, 4001)
    q, v, a = motion(t)[:3]
    tau = rbd.inverse_dynamics(model, q, v, a) + rbd.friction_effort(model, v)
    np.testing.assert_allclose(motion.effort(t), tau, atol=1e-9)
    np.testing.assert_allclose(motion.cost, integral(tau**2, t), rtol=2e-3)
    assert worst(model, motion) <= 1.0 + 1e-6


def test_wrenches_act():
    wrench = {IIWA.body_names[-1]: [0.0, 1.0, 0.0, 10.0, 0.0, -30.0]}
    motion = rbd.optimize_motion(IIWA, Q0, Q1, 1.5, external_wrenches=wrench).check()
    t = np.linspace(0.0, 1.5, 2001)
    q, v, a = motion(t)[:3]
    tau = rbd.inverse_dynamics(IIWA, q, v, a, wrench)
    np.testing.assert_allclose(motion.cost, integral(tau**2, t), rtol=1e-4)
    without = rbd.optimize_motion(IIWA, Q0, Q1, 1.5)(t)
    assert motion.cost < integral(rbd.inverse_dynamics(IIWA, *without[:3], wrench) ** 2, t)


def test_a_load_is_lifted_that_least_jerk_cannot_lift():
    limits = rbd.MotionLimits(effort=[320.0, 150.0, 176.0, 85.0, 110.0, 40.0, 40.0], velocity=10.0)
    load = rbd.Inertia(9.0, np.array([0.0, 0.0, 0.05]), 0.01 * np.eye(3))
    loaded = with_payloads(IIWA, {IIWA.body_names[-1]: load})
    q0, q1 = np.array([0.0, 1.35, 0.0, -0.9, 0.0, 0.5, 0.0]), np.array([0.6, 0.2, 0.0, -1.0, 0.0, 0.5, 0.0])
    jerk = rbd.optimize_motion(loaded, q0, q1, 0.9, "jerk", limits=FREE)
    straight = np.abs(jerk.effort(np.linspace(0.0, 0.9, 500))).max(axis=0) / limits.effort
    assert straight.max() > 1.1
    motion = rbd.optimize_motion(loaded, q0, q1, 0.9, limits=limits).check()
    assert motion.usage["effort"].ratio <= 1.0


# ---- ends and waypoints

def test_waypoints_are_passed_on_time():
    via = [(0.3, Q0 + 0.2), (0.6, 0.5 * (Q0 + Q1))]
    for duration in (2.5, None):
        motion = rbd.optimize_motion(IIWA, Q0, Q1, duration, {"effort": 1.0, "duration": 200.0}, waypoints=via).check()
        for fraction, q in via:
            np.testing.assert_allclose(motion(fraction * motion.duration).q, q, atol=1e-6)


def test_more_waypoints_than_splines_can_pass_are_refused_unread():
    """They made a dense system of equations, whatever the time limit said."""
    with pytest.raises(rbd.RbdError, match="splines of 20 control points can pass 14, and there are more"):
        rbd.optimize_motion(IIWA, Q0, Q1, 1.5, waypoints=((s, Q0) for s in itertools.count(0.1, 1e-9)))


@pytest.mark.parametrize("degree", [5, 7])
@pytest.mark.parametrize("duration", [1.5, None])
def test_ends_have_the_given_derivatives(degree, duration):
    rng = np.random.default_rng(5)
    start, goal = (rbd.Reference(q, *(0.3 * rng.normal(size=(3, 7)))) for q in (Q0, Q1))
    motion = rbd.optimize_motion(IIWA, start, goal, duration, {"effort": 1.0, "duration": 500.0}, degree=degree).check()
    for t, end in ((0.0, start), (motion.duration, goal)):
        for k, value in enumerate(end[:4 if degree == 7 else 3]):
            np.testing.assert_allclose(motion(t)[k], value, atol=1e-8)


def test_before_and_after_the_robot_stands_still():
    motion = rbd.optimize_motion(IIWA, Q0, Q1, 1.5)
    assert not np.any(motion(1.6)[1:]) and not np.any(motion(-0.1)[1:])
    np.testing.assert_allclose(motion(99.0).q, Q1, atol=1e-12)
    assert "good" in repr(motion) and motion.sample(0.7).q.shape == (7,)


def test_a_search_tells_how_far_it_is_and_ends_when_it_is_told_to():
    seen = []
    motion = rbd.optimize_motion(IIWA, Q0, Q1, 1.5, progress=seen.append).check()
    assert [now.iterations for now in seen[:3]] == [0, 1, 2] and motion.iterations - seen[-1].iterations <= 1
    assert all(a.iterations <= b.iterations and a.seconds <= b.seconds for a, b in itertools.pairwise(seen))
    assert seen[0].cost == pytest.approx(1.0) and seen[-1].cost < 0.9 and seen[-1].violation < 1e-5
    stopped = rbd.optimize_motion(IIWA, Q0, Q1, 1.5, progress=lambda now: now.iterations == 3)
    assert not stopped.good and stopped.ended == "stopped" and "stopped" in stopped.reason
    with pytest.raises(rbd.RbdError, match="stopped"):
        stopped.check()


# ---- what cannot be done

def test_an_impossible_motion_is_marked_and_names_limit_joint_and_time():
    limits = rbd.MotionLimits(effort=np.array([320.0, 51.0, 176.0, 70.0, 110.0, 40.0, 40.0]), velocity=10.0)
    q1 = np.array([0.0, -0.5, 0.0, -1.2, 0.0, 0.8, 0.0])
    motion = rbd.optimize_motion(IIWA, Q0, q1, 0.2, limits=limits, starts=1, time_limit=5.0)
    assert not motion.good and not motion.feasible and motion.violation > 0.1
    assert "effort of joint 'joint_2'" in motion.reason and " s" in motion.reason and "NOT GOOD" in repr(motion)
    with pytest.raises(rbd.RbdError, match="infeasible"):
        motion.check()
    jerk = rbd.optimize_motion(IIWA, Q0, q1, 0.2, "jerk", limits=FREE)
    ratio = np.abs(jerk.effort(np.linspace(0.0, 0.2, 300))) / limits.effort
    assert motion.usage["effort"].ratio <= 1.001 * ratio.max()


@pytest.mark.parametrize("limit", [0.1, 0.5])
def test_the_time_limit_is_honoured(limit):
    limits = rbd.MotionLimits(effort_rate=100.0, jerk=3.0)
    rbd.optimize_motion(IIWA, Q0, Q1, 1.5, "effort_rate", time_limit=1e-3)    # compiled by now
    took = []
    for _ in range(3):    # others may use the machine, and BLAS several processors
        wall, spent = time.perf_counter(), time.process_time()
        motion = rbd.optimize_motion(IIWA, Q0, Q1, 1.5, "effort_rate", limits=limits, time_limit=limit)
        took.append(min(time.perf_counter() - wall, time.process_time() - spent))
        assert not motion.good
    assert min(took) < 1.1 * limit + 0.02


@pytest.mark.parametrize(("change", "what"), [
    ({"start": Q0[:6]}, "start: position must be 7"), ({"goal": Q1 * np.nan}, "goal: position"),
    ({"goal": Q1 + 3.0}, "goal: the position of joint 'joint_1' is 4.2, beyond its limit 2.96"),
    ({"duration": -1.0}, "duration"), ({"duration": "long"}, "duration"), ({"duration": (2.0, 1.0)}, "not below"),
    ({"duration": 0.3}, "joint_1' would move at 4 on average, beyond its velocity limit"),
    ({"objective": "speed"}, "unknown objective 'speed'"), ({"objective": {"effort": -1.0}}, "not negative"),
    ({"objective": {"effort": 0.0}}, "all weights are 0"), ({"objective": {}}, "expected one of"),
    ({"objective": {"effort": [1.0, 2.0]}}, "one number or 7"),
    ({"objective": {"duration": [0.0, *[1.0] * 6]}, "duration": None}, "weight of duration must be one number"),
    ({"limits": {"effort": 1.0}}, "MotionLimits"), ({"limits": rbd.MotionLimits(effort=-1.0)}, "effort of joint"),
    ({"limits": rbd.MotionLimits(effort=[1.0, 2.0])}, "one number or 7"),
    ({"limits": rbd.MotionLimits(position_lower=1.0, position_upper=0.0)}, "is not below"),
    ({"limits": rbd.MotionLimits(effort=10.0)}, "start: the effort of joint 'joint_2'"),
    ({"waypoints": [(0.5, Q0), (0.4, Q1)]}, "increase"), ({"waypoints": [Q0]}, "fraction"),
    ({"waypoints": [(0.01, Q1)]}, "velocity limit"), ({"waypoints": [(0.5, Q0 + 4.0)]}, r"waypoints\[0\]: the pos"),
    ({"degree": 3}, "degree"), ({"control_points": 6}, "control_points"), ({"nodes": 0}, "positive"),
    ({"time_limit": 0.0}, "time_limit"), ({"tolerance": -1.0}, "tolerance"), ({"smoothing": 0.0}, "smoothing"),
    ({"external_wrenches": {"nobody": np.zeros(6)}}, "nobody")])
def test_malformed_problems_are_refused(change, what):
    given = {"start": Q0, "goal": Q1, "duration": 1.5, **change}
    with pytest.raises(rbd.RbdError, match=what):
        rbd.optimize_motion(IIWA, **given)


def test_joints_that_turn_about_no_axis_are_refused():
    with pytest.raises(rbd.RbdError, match="spherical"):
        rbd.optimize_motion(chain("revolute", "spherical"), np.zeros(4), np.zeros(4), 1.0)
    with pytest.raises(rbd.RbdError, match="RobotModel"):
        rbd.optimize_motion(None, np.zeros(4), np.zeros(4), 1.0)
