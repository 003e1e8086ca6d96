"""The fastest timing of a path: closed forms, an independent optimiser, limits sampled by other code, toppra."""
from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import trapezoid
from scipy.optimize import LinearConstraint, minimize
from support.robots import build, chain, inertia, load, urdf_paths

import rbd_ros as rbd

IIWA = rbd.sample("iiwa")
WIDE = rbd.MotionLimits(velocity=np.inf, effort=np.inf)


def slider(mass=2.0, **fields):
    joint = rbd.JointSpec("rail", "prismatic", "world", "mass", axis=(1.0, 0.0, 0.0))
    return build([joint], {"mass": inertia(mass)}, gravity=(0.0, 0.0, -9.81)).with_(**fields)


def path_of(seed, count=4, model=IIWA):
    rng = np.random.default_rng(seed)
    return np.array([0.4 * model.random_configuration(rng) for _ in range(count)])


def test_a_mass_goes_at_full_force_and_brakes_at_full_force():
    motion = rbd.time_optimal(slider(effort_limit=6.0), [[0.0], [0.7]]).check()
    np.testing.assert_allclose(motion.duration, 2.0 * np.sqrt(2.0 * 0.7 / 6.0), rtol=2e-3)
    np.testing.assert_allclose(np.abs(motion.effort(np.linspace(0.01, 0.99, 30) * motion.duration)), 6.0, rtol=2e-2)


def test_with_a_speed_limit_it_is_a_trapezoid():
    motion = rbd.time_optimal(slider(effort_limit=6.0, velocity_limit=0.8), [[0.0], [0.7]]).check()
    np.testing.assert_allclose(motion.duration, 0.7 / 0.8 + 0.8 * 2.0 / 6.0, rtol=2e-3)


def test_viscous_friction_slows_and_helps_to_brake():
    """m a = F − d v: v = F/d (1 − e^{−d t/m}) up to the switch, then braking with F + d v; solved by quadrature."""
    m, d, F, way = 2.0, 9.0, 6.0, 0.7

    def distance(v):    # of speeding up to v and of braking from it
        x = np.linspace(0.0, v, 20001)
        return trapezoid(m * x / (F - d * x), x) + trapezoid(m * x / (F + d * x), x)
    low, high = 0.0, F / d * (1.0 - 1e-9)
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if distance(middle) < way else (low, middle)
    x = np.linspace(0.0, low, 20001)
    exact = trapezoid(m / (F - d * x), x) + trapezoid(m / (F + d * x), x)
    motion = rbd.time_optimal(slider(effort_limit=F, damping=d), [[0.0], [way]]).check()
    np.testing.assert_allclose(motion.duration, exact, rtol=5e-3)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("friction", [False, True])
def test_limits_are_kept_and_one_is_always_in_use(seed, friction):
    model = IIWA.with_(damping=8.0, friction=4.0) if friction else IIWA
    limits = rbd.MotionLimits(effort=0.5 * IIWA.effort_limit, acceleration=15.0 if seed % 2 else np.inf,
                              velocity=(3.0 if seed % 3 else 1.0) * IIWA.velocity_limit)
    points = path_of(seed)
    motion = rbd.time_optimal(model, points, limits=limits).check()
    t = np.linspace(0.0, motion.duration, 20_000)
    q, v, a = motion(t)[:3]
    tau = rbd.inverse_dynamics(model, q, v, a) + rbd.friction_effort(model, v)
    used = np.stack([np.max(np.abs(v) / limits.velocity, axis=1), np.max(np.abs(a) / limits.acceleration, axis=1),
                     np.max(np.abs(tau) / limits.effort, axis=1)])
    assert used.max() <= 1.0 + 5e-3 and motion.violation <= 1e-9    # at 1 kHz and at all grid points
    assert np.mean(used.max(axis=0) > 0.95) > 0.8
    np.testing.assert_allclose(motion.effort(t), tau, atol=1e-9)
    np.testing.assert_allclose(motion(np.array([0.0, motion.duration])).q, points[[0, -1]], atol=1e-9)
    inner = [np.min(np.linalg.norm(q - point, axis=1)) for point in points]
    assert max(inner) < 1e-2
    np.testing.assert_allclose(np.gradient(q, t, axis=0)[5:-5], v[5:-5], atol=2e-2 * np.abs(v).max())


@pytest.mark.skipif(not urdf_paths(), reason="example-robot-data is not installed")
@pytest.mark.parametrize(("seed", "grid"), [(2, 300), (10, 300), (13, 1000), (17, 1000), (22, 100), (43, 1000)])
def test_limits_are_kept_between_grid_points(seed, grid):
    """Of an xArm7, which motions that were marked good left by up to 2e-3 between samples at 1 kHz."""
    model = load("xarm_description/xarm7").with_(friction=2.0 * (seed == 13))
    rng = np.random.default_rng(seed)
    count, middle = rng.integers(2, 8), 0.5 * (np.maximum(model.position_lower, -2.0)
                                               + np.minimum(model.position_upper, 2.0))
    points = middle + rng.uniform(0.05, 0.5) * rng.normal(size=(count, model.nv))
    acceleration = float(rng.choice([3, 10, 20, 50, 200]))
    motion = rbd.time_optimal(model, points, limits=rbd.MotionLimits(acceleration=acceleration), grid=grid).check()
    part = np.linspace(1e-9, 1.0 - 1e-9, 31)
    t = (motion.times[:-1, None] + np.diff(motion.times)[:, None] * part).ravel()
    at = motion(t)
    shares = {"velocity": np.abs(at.v) / model.velocity_limit, "acceleration": np.abs(at.a) / acceleration,
              "effort": np.abs(motion.effort(t)) / model.effort_limit}
    for name, share in shares.items():
        assert share.max() <= 1.0 + 1e-9 and motion.usage[name].ratio >= share.max() - 1e-9
        assert motion.usage[name].ratio < 1.01 * share.max() + 1e-3    # a bound that is close


def test_the_duration_is_that_of_a_convex_programme():
    """Verscheure 2009: min Σ 2 Δs / (√b_k + √b_k+1) under linear limits in b, by SciPy, without friction."""
    model, N = chain("revolute", "revolute", gravity=(0.0, -9.81, 0.0)), 60
    q0, q1 = np.array([-0.4, 0.3]), np.array([0.8, -0.9])
    limits = rbd.MotionLimits(effort=[22.0, 9.0], velocity=3.0)
    s = np.linspace(0.0, 1.0, N + 1)[:, None]
    q, first, zero = q0 + s * (q1 - q0), np.tile(q1 - q0, (N + 1, 1)), np.zeros((N + 1, 2))
    g = rbd.inverse_dynamics(model, q, zero, zero)
    A = rbd.inverse_dynamics(model, q, zero, first) - g
    B = rbd.inverse_dynamics(model, q, first, zero) - g
    D = (np.eye(N + 1, k=1) - np.eye(N + 1))[:-1] * N / 2.0    # u = D b
    rows = np.concatenate([A[:-1, j, None] * D + B[:-1, j, None] * np.eye(N + 1)[:-1] for j in range(2)])
    effort = np.repeat([22.0, 9.0], N)
    rest = g[:-1].T.reshape(-1)
    most = np.full(N + 1, np.min((3.0 / np.abs(q1 - q0)) ** 2))
    most[[0, -1]] = 0.0
    inner = np.arange(1, N)

    def cost(x):
        b = np.concatenate([[0.0], x, [0.0]])
        return np.sum(2.0 / N / (np.sqrt(b[1:]) + np.sqrt(b[:-1])))

    guess = 0.3 * (s[inner, 0] * (1.0 - s[inner, 0]))
    found = minimize(cost, guess, constraints=LinearConstraint(rows[:, inner], -effort - rest, effort - rest),
                     bounds=[(1e-6, top) for top in most[inner]], method="SLSQP",
                     options={"maxiter": 500, "ftol": 1e-10})
    assert found.success
    np.testing.assert_allclose(rbd.time_optimal(model, [q0, q1], limits=limits).check().duration, found.fun, rtol=1e-2)


@pytest.mark.parametrize("seed", range(10))
def test_the_duration_is_toppras(seed):
    """toppra, with the same limits, without friction, which it does not know."""
    pytest.importorskip("toppra")
    import toppra.algorithm as algorithm
    import toppra.constraint as constraint
    from toppra.interpolator import SplineInterpolator

    points = path_of(seed)
    velocity, effort = IIWA.velocity_limit * (3.0 if seed % 2 else 1.0), 0.5 * IIWA.effort_limit
    mine = rbd.time_optimal(IIWA, points, limits=rbd.MotionLimits(effort=effort, velocity=velocity)).check()
    s = np.linspace(0.0, 1.0, 1001)
    path = SplineInterpolator(s, mine._path(s)[0])

    def inverse(*state):
        return rbd.inverse_dynamics(IIWA, *(np.array(x, dtype=float) for x in state))

    rows = [constraint.JointVelocityConstraint(np.stack([-velocity, velocity], axis=1)),
            constraint.JointTorqueConstraint(inverse, np.stack([-effort, effort], axis=1), np.zeros(7))]
    peer = algorithm.TOPPRA(rows, path, gridpoints=s, solver_wrapper="seidel")
    speeds = peer.compute_parameterization(0.0, 0.0)[1]
    theirs = np.sum(2.0 / 1000 / (speeds[1:] + speeds[:-1]))
    assert 0.995 < mine.duration / theirs < 1.01


def test_a_motion_gives_its_path():
    slow = rbd.optimize_motion(IIWA, np.zeros(7), path_of(3)[0], 4.0, "jerk").check()
    fast = rbd.time_optimal(IIWA, slow).check()
    assert fast.duration < 3.0
    np.testing.assert_allclose(fast(fast.duration).q, slow(4.0).q, atol=1e-9)
    np.testing.assert_allclose(rbd.time_optimal(IIWA, slow.spline).duration, fast.duration)
    assert not np.any(fast(99.0).v) and not np.any(fast.sample(-1.0).a)


def test_speeds_at_the_ends():
    motion = rbd.time_optimal(IIWA, path_of(1), start_speed=0.2, goal_speed=0.1).check()
    np.testing.assert_allclose(motion.speeds[[0, -1]], [0.2, 0.1], rtol=1e-6)
    assert motion.duration < rbd.time_optimal(IIWA, path_of(1)).duration
    with pytest.raises(rbd.RbdError, match="start"):
        rbd.time_optimal(IIWA, path_of(1), start_speed=50.0)


@pytest.mark.parametrize(("path", "change", "what"), [
    (np.zeros((1, 7)), {}, "path"), (np.zeros((3, 6)), {}, "path"), (np.zeros((3, 7)), {}, "the same"),
    (np.full((2, 7), np.nan), {}, "path"), ("along", {}, "path"),
    ([np.zeros(7), np.full(7, 4.0)], {}, "beyond its limit"),
    (path_of(1), {"limits": rbd.MotionLimits(effort=5.0)}, "to stand still at s"),
    (path_of(1), {"limits": rbd.MotionLimits(motor_velocity=5.0)}, "actuation"), (path_of(1), {"grid": 0}, "positive"),
    (path_of(1), {"time_limit": 0.0}, "time_limit"), (path_of(1), {"control_points": 3}, "control_points"),
    (path_of(1), {"limits": 3.0}, "MotionLimits"), (path_of(1), {"goal_speed": -1.0}, "goal_speed")])
def test_malformed_paths_are_refused(path, change, what):
    with pytest.raises(rbd.RbdError, match=what):
        rbd.time_optimal(IIWA, path, **change)


def test_what_is_not_good_says_so():
    motion = rbd.time_optimal(IIWA, path_of(2), limits=rbd.MotionLimits(effort=0.5 * IIWA.effort_limit, velocity=20.0))
    broken = rbd.TimedPath(motion.duration, {"effort": rbd.Usage(1.2, "joint_2", 0.3)}, motion.times, motion.speeds,
                           motion._path, motion._model, motion._friction, None)
    with pytest.raises(rbd.RbdError, match=r"effort of joint 'joint_2' is 1.2 times its limit at 0.3 s"):
        broken.check()
