"""The fastest timing of a path with limits of effort rate, jerk and motors' velocities: closed forms, slopes, peers."""
from __future__ import annotations

import numpy as np
import pytest
from support import complex_step
from support.robots import chain
from test_closed_goals import EIGHTH
from test_time_optimal import IIWA, path_of, slider

import rbd_ros as rbd
from rbd_ros.core.motion.optimal.nodes import Nodes
from rbd_ros.core.motion.along.path_task import PathTask
from rbd_ros.core.motion.optimal.problem import Problem
from rbd_ros.core.motion.optimal.springs import links_and_springs
from rbd_ros.core.dynamics.friction import joint_friction
from rbd_ros.core.motion.splines import basis

TINY = 1e-30


def rates_of(motion, count=3000, h=1e-6):
    """τ̇ by differences of the efforts."""
    t = np.linspace(2.0 * h, motion.duration - 2.0 * h, count)
    return (motion.effort(t + h) - motion.effort(t - h)) / (2.0 * h)


def test_a_mass_with_a_limited_rate_of_its_force():
    """Jerk ± R / m in quarters of the time: d = R T³ / (32 m)."""
    m, rate, way = 2.0, 20.0, 0.7
    motion = rbd.time_optimal(slider(m), [[0.0], [way]], limits=rbd.MotionLimits(effort_rate=rate),
                              time_limit=60.0).check()
    exact = (32.0 * way * m / rate) ** (1.0 / 3.0)
    assert exact * (1.0 - 1e-9) <= motion.duration <= 1.003 * exact
    limits = rbd.MotionLimits(jerk=rate / m)
    same = rbd.time_optimal(slider(m), [[0.0], [way]], limits=limits, time_limit=60.0).check()
    np.testing.assert_allclose(same.duration, motion.duration, rtol=1e-3)


@pytest.mark.parametrize("rate", [30.0, 100.0, 1000.0])
def test_a_mass_with_a_limited_force_and_rate(rate):
    """Force ramps to F in F / R, and speeds up for P in all: a P (P − F / R) = d with a = F / m, T = 2 P."""
    m, F, way = 2.0, 6.0, 0.7
    motion = rbd.time_optimal(slider(m, effort_limit=F), [[0.0], [way]],
                              limits=rbd.MotionLimits(effort_rate=rate), time_limit=60.0).check()
    ramp = F / rate
    exact = ramp + np.sqrt(ramp**2 + 4.0 * way * m / F)
    assert exact * (1.0 - 1e-9) <= motion.duration <= 1.005 * exact


@pytest.mark.parametrize(("seed", "friction"), [(0, False), (2, True)])
def test_effort_rates_are_kept_and_the_duration_falls_to_that_without_them(seed, friction):
    model = IIWA.with_(damping=8.0) if friction else IIWA
    loose = 1e6
    wide = rbd.MotionLimits(effort=0.5 * IIWA.effort_limit)
    free = rbd.time_optimal(model, path_of(seed), limits=wide).check()
    before = np.inf
    for rate in (300.0, 2000.0, loose):
        limits = rbd.MotionLimits(effort=0.5 * IIWA.effort_limit, effort_rate=rate)
        motion = rbd.time_optimal(model, path_of(seed), limits=limits, time_limit=60.0).check()
        found = np.abs(rates_of(motion)).max() / rate
        assert found <= 1.0 + 1e-4
        np.testing.assert_allclose(found, motion.usage["effort_rate"].ratio, rtol=5e-3)
        assert 0.9995 * free.duration <= motion.duration <= 1.001 * before
        t = np.linspace(0.0, motion.duration, 20_000)
        q, v, a, jerk, _ = motion(t)
        tau = rbd.inverse_dynamics(model, q, v, a) + rbd.friction_effort(model, v)
        np.testing.assert_allclose(motion.effort(t), tau, atol=1e-9)
        assert np.max(np.abs(tau) / limits.effort) <= 1.0 + 1e-4
        assert np.max(np.abs(v) / IIWA.velocity_limit) <= 1.0 + 1e-4
        for value, slope in ((q, v), (v, a), (a, jerk)):
            np.testing.assert_allclose(np.gradient(value, t, axis=0)[5:-5], slope[5:-5],
                                       atol=1e-2 * np.abs(slope).max())
        np.testing.assert_allclose(motion(np.array([0.0, motion.duration])).q, path_of(seed)[[0, -1]], atol=1e-9)
        assert not motion(0.0).v.any() and np.abs(motion(0.0).a).max() <= 1e-6
        before = motion.duration
    assert before <= 1.01 * free.duration


def test_every_posture_is_one_of_the_path():
    limits = rbd.MotionLimits(effort_rate=1000.0)
    points = path_of(4)
    smooth = rbd.time_optimal(IIWA, points, limits=limits, time_limit=60.0).check()
    dense = rbd.time_optimal(IIWA, points).along(np.linspace(0.0, 1.0, 20_001))[0]
    q = smooth(np.linspace(0.0, smooth.duration, 50)).q
    assert max(np.min(np.linalg.norm(dense - x, axis=1)) for x in q) < 1e-3
    at = smooth(smooth.times[1:-1])    # times at even parts of the path
    np.testing.assert_allclose(at.q, smooth.along(np.linspace(0.0, 1.0, len(smooth.times))[1:-1])[0], atol=1e-4)
    assert (np.diff(smooth.times) > 0.0).all() and smooth.speeds.min() >= -1e-9


def test_a_motion_at_rest_at_its_ends_gives_its_path():
    """Whose joints rest there whatever the speed along it is: the way need not begin slowly."""
    slow = rbd.optimize_motion(IIWA, np.zeros(7), path_of(3)[0], 4.0, "jerk").check()
    limits = rbd.MotionLimits(effort_rate=500.0)
    fast = rbd.time_optimal(IIWA, slow, limits=limits, time_limit=60.0).check()
    assert fast.duration < 0.75 * 4.0 and np.abs(rates_of(fast)).max() <= 500.0 * (1.0 + 1e-4)
    np.testing.assert_allclose(fast(fast.duration).q, slow(4.0).q, atol=1e-9)
    assert np.abs(fast(1e-9).v).max() < 1e-6 and np.abs(fast(fast.duration - 1e-9).v).max() < 1e-6


def test_speeds_at_the_ends():
    limits = rbd.MotionLimits(effort_rate=1000.0)
    rest = rbd.time_optimal(IIWA, path_of(1), limits=limits, time_limit=60.0).check()
    motion = rbd.time_optimal(IIWA, path_of(1), limits=limits, time_limit=60.0, start_speed=0.2, goal_speed=0.1).check()
    np.testing.assert_allclose(motion.speeds[[0, -1]], [0.2, 0.1], rtol=1e-6)
    assert motion.duration < rest.duration


def test_motors_behind_springs_keep_their_speed():
    model = rbd.sample("two_link").with_(damping=0.2)
    spring = rbd.SeriesSpring([30.0, 200.0])
    drives = rbd.Actuation(model, {name: rbd.SeriesDrive(spring, motor=rbd.Motor(0.1)) for name in model.joint_names})
    points = [[-1.2, 0.4], [-0.3, 0.5], [0.3, -0.8]]
    limits = rbd.MotionLimits(velocity=3.0, motor_velocity=2.0)
    motion = rbd.time_optimal(model, points, limits=limits, actuation=drives, time_limit=60.0).check()
    h = 1e-6
    t = np.linspace(2.0 * h, motion.duration - 2.0 * h, 3000)
    after, before = (motion(at).q + spring.deflection(motion.effort(at)) for at in (t + h, t - h))
    found = np.abs(after - before).max() / (2.0 * h) / 2.0
    assert 0.99 < found <= 1.0 + 1e-4
    with pytest.raises(rbd.RbdError, match="give their actuation"):
        rbd.time_optimal(model, points, limits=limits, time_limit=60.0)


MODEL = chain("revolute", "prismatic", "revolute", gravity=(0.0, 0.0, -9.81)).with_(damping=0.3, friction=0.7)
AMPLITUDES, PHASES = np.array([0.8, 0.3, -1.1]), np.array([0.2, 1.0, -0.5])


def waves(s, order):
    """Sines of s, and their derivatives."""
    x = 2.0 * np.asarray(s)[:, None] + PHASES
    return np.array([AMPLITUDES * 2.0**k * np.sin(x + 0.5 * np.pi * k) for k in range(order + 1)])


@pytest.mark.parametrize("springs", [False, True])
@pytest.mark.parametrize("loose", [(False, False), (True, False)])
def test_gradients_are_those_of_complex_efforts(loose, springs):
    """τ̇ by a complex step along the motion; of eighth order in x."""
    limits = rbd.MotionLimits(velocity=4.0, acceleration=20.0, jerk=200.0, effort=40.0, effort_rate=400.0,
                              motor_velocity=6.0 if springs else None)
    drives = rbd.Actuation(MODEL, {name: rbd.SeriesDrive(rbd.SeriesSpring([60.0, 200.0]), motor=rbd.Motor(0.1))
                                   for name in MODEL.joint_names})
    model, behind = links_and_springs(MODEL, drives)
    friction = joint_friction(model, 0.1)
    task = PathTask(model, basis(5, 12), np.array([[0.0], [0.1], [0.0]]), np.array([[1.0], [0.0], [0.0]]), None,
                    (0.5, 5.0), {"duration": np.ones(3)}, limits.checked(model), np.zeros(0), np.zeros((0, 1)), None,
                    friction, springs=behind if springs else None, path=waves, position_only=loose)
    problem = Problem(task, Nodes.of(task.basis, 21, task.orders), 1.3)
    control = np.linspace(0.0, 1.0, 12)[:, None] + 0.02 * np.random.default_rng(1).normal(size=(12, 1))
    x = problem.unknowns(control, 1.1)
    y = np.random.default_rng(2).uniform(0.0, 1.0, len(problem.values(x).rows))
    gradient = problem.gradient(problem.linear(x), y)

    def joints(s, ds, dds):
        q = AMPLITUDES * np.sin(2.0 * s + PHASES)
        first, second = 2.0 * AMPLITUDES * np.cos(2.0 * s + PHASES), -4.0 * q
        return q, first * ds, second * ds**2 + first * dds

    def effort(s, ds, dds):
        q, v, a = joints(s, ds, dds)
        return complex_step.inverse_dynamics(model, q, v, a) + friction.effort(v)

    def lagrangian(x):
        T = x[-1]
        z = np.matmul(problem.nodes.values / (T ** np.arange(4))[:, None],
                      problem.control(x)[problem.nodes.interval[:, None] + np.arange(6)])[:, :, 0]
        columns = []
        for s, ds, dds, ddds in z:
            step = 1j * TINY
            tau = effort(s + step * ds, ds + step * dds, dds + step * ddds)
            v, a = (part.real for part in joints(s, ds, dds)[1:])
            jerk = joints(s + step * ds, ds + step * dds, dds + step * ddds)[2].imag / TINY
            rate, tau = tau.imag / TINY, tau.real
            motor = []
            if springs:
                spring = rbd.SeriesSpring([60.0, 200.0])
                motor = [v + rate / spring.stiffness(spring.deflection(tau))]
            columns.append(np.concatenate([tau, rate, *motor, v, a, jerk, [s, ds, dds, ddds]]))
        h = np.array(columns) / task.scale
        lower, upper = task.bounds(problem.nodes.s)
        rows = [(h - np.where(np.isfinite(upper), upper, 0.0))[np.isfinite(upper)],
                (np.where(np.isfinite(lower), lower, 0.0) - h)[np.isfinite(lower)],
                np.array([0.5 / T - 1.0, T / 5.0 - 1.0])]
        return T / problem.unit + y @ np.concatenate(rows)

    found = problem.values(x)
    np.testing.assert_allclose(found.cost + y @ found.rows, lagrangian(x), rtol=1e-11)
    h = 1e-3
    for i in (0, 1, len(x) // 2, len(x) - 2, len(x) - 1):
        e = np.eye(len(x))[i]
        exact = sum(c * (lagrangian(x + k * h * e) - lagrangian(x - k * h * e)) / h for k, c in EIGHTH.items())
        assert abs(gradient[i] - exact) <= 1e-10 * np.abs(gradient).max()


def test_without_time_it_says_that_it_is_not_the_fastest():
    motion = rbd.time_optimal(IIWA, path_of(2), limits=rbd.MotionLimits(effort_rate=300.0), time_limit=0.05)
    assert not motion.good and motion.reason == "time limit"
    with pytest.raises(rbd.RbdError, match=r"time limit"):
        motion.check()


def test_what_is_too_fast_at_an_end_is_refused():
    with pytest.raises(rbd.RbdError, match="path: the speed at its start"):
        rbd.time_optimal(IIWA, path_of(1), start_speed=0.3,
                         limits=rbd.MotionLimits(acceleration=1e-3, jerk=100.0, effort=1e4))


@pytest.mark.parametrize("count", [2, 3, 4, 5, 6, 7, 9])
def test_paths_through_points_have_no_corners(count):
    """Velocities do not jump, whatever the number of points."""
    points = 0.3 * path_of(5, count)
    motion = rbd.time_optimal(IIWA, points).check()
    t = np.linspace(0.0, motion.duration, 40_001)
    q, v, a = motion(t)[:3]
    np.testing.assert_allclose(np.diff(q, axis=0), 0.5 * (v[1:] + v[:-1]) * t[1], atol=1e-5)
    assert np.abs(np.diff(v, axis=0)).max() <= 1.5 * np.abs(a).max() * t[1]
    s = np.cumsum(np.linalg.norm(np.diff(points, axis=0), axis=1))
    at = np.concatenate([[0.0], s]) / s[-1]
    np.testing.assert_allclose(motion.along(at)[0], points, atol=1e-9)


@pytest.mark.parametrize("seed", range(8))
def test_random_paths_and_limits(seed):
    """Whatever is said to be good keeps all limits, by differences; what is refused could not stand still."""
    rng = np.random.default_rng(seed)
    model = MODEL.with_(damping=rng.uniform(0.0, 2.0, 3), friction=0.0)
    points = rng.uniform(-1.0, 1.0, (int(rng.integers(2, 6)), 3)) * [1.5, 0.5, 1.5]
    given = {"effort": rng.uniform(20.0, 80.0), "effort_rate": 10.0 ** rng.uniform(1.5, 4.0),
             "velocity": rng.uniform(1.0, 5.0), "acceleration": rng.uniform(5.0, 50.0) if seed % 2 else np.inf,
             "jerk": rng.uniform(50.0, 1000.0) if seed % 3 else np.inf}
    try:
        motion = rbd.time_optimal(model, points, limits=rbd.MotionLimits(**given), time_limit=30.0, control_points=60)
    except rbd.RbdError as error:
        assert "to stand still at s" in str(error)
        return
    assert motion.good, motion.reason
    t = np.linspace(0.0, motion.duration, 4000)
    _, v, a, jerk, _ = motion(t)
    for name, values in (("velocity", v), ("acceleration", a), ("jerk", jerk), ("effort", motion.effort(t)),
                         ("effort_rate", rates_of(motion))):
        assert np.abs(values).max() <= given[name] * (1.0 + 1e-3), name
    assert max(used.ratio for used in motion.usage.values()) > 0.99
