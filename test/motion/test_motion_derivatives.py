"""Derivatives of the optimisation problem: against complex step, differences and second derivatives."""
from __future__ import annotations

import numpy as np
import pytest
from scipy.interpolate import BSpline
from scipy.optimize import minimize_scalar
from support import complex_step
from support.robots import chain

import rbd_ros as rbd
from rbd_ros.core.dynamics.friction import Friction
from rbd_ros.core.motion.optimal.curvature import EffortCurvature
from rbd_ros.core.motion.optimal.first_guess import minimum_jerk
from rbd_ros.core.motion.interior_point.search import best_slack
from rbd_ros.core.motion.interior_point.newton_step import newton_step
from rbd_ros.core.motion.optimal.nodes import Nodes
from rbd_ros.core.motion.interior_point.linearization import StepMatrix
from rbd_ros.core.motion.optimal.problem import Problem
from rbd_ros.core.motion.optimal.arguments import checked_objective
from rbd_ros.core.motion.optimal.task import Task
from rbd_ros.core.motion.splines import basis
from rbd_ros.core.motion.trajectory import Reference

STEP = 1e-30
RNG = np.random.default_rng(8)
MODEL = chain("revolute", "prismatic", "revolute", gravity=(0.0, 0.0, -9.81)).with_(damping=0.3, friction=0.7)
LIMITS = rbd.MotionLimits(position_lower=-4.0, position_upper=4.0, velocity=3.0, effort=60.0)
MORE = rbd.MotionLimits(**{**vars(LIMITS), "acceleration": 9.0, "jerk": 80.0, "effort_rate": 500.0})
WEIGHTS = {"effort": [1.0, 2.0, 0.5], "power": 0.3, "velocity": 1.0, "acceleration": 0.2, "jerk": 1e-3, "duration": 7.0}


def task(objective, limits, free, degree=5, wrenches=None, via=True):
    ends = RNG.normal(size=(2, 4 if degree == 7 else 3, MODEL.nv)) * 0.5
    times, points = (np.array([0.4]), RNG.normal(size=(1, MODEL.nv))) if via else (np.zeros(0), np.zeros((0, MODEL.nv)))
    return Task(MODEL, basis(degree, 13), ends[0], ends[1], None if free else 1.3, (0.5, 4.0) if free else (1.3, 1.3),
                checked_objective(MODEL, objective), limits.checked(MODEL), times, points, wrenches,
                Friction(MODEL.damping, MODEL.friction, MODEL.friction, 1.0, 0.1))


def made(given):
    """The problem, and a point of it."""
    problem = Problem(given, Nodes.of(given.basis, 30, given.orders, np.array([0.0, 0.05, 0.5, 1.0])), 3.0)
    x = problem.unknowns(minimum_jerk(given, 1.3), 1.3)
    return problem, x + 0.2 * RNG.normal(size=len(x)) * (np.arange(len(x)) < problem.free)


def complex_states(problem, x):
    """States at the nodes for complex x: SciPy's splines of all control points, and the ends' own dependence on T."""
    given, B = problem.task, problem.task.basis
    T = x[-1] if problem.free_duration else given.duration
    ends = [np.linalg.solve(m, rows * T ** np.arange(len(rows))[:, None]) for m, rows in (
        (np.array([BSpline(B.knots, np.eye(B.count), B.degree)(0.0, nu=k)[:len(given.start)]
                   for k in range(len(given.start))]), given.start),
        (np.array([BSpline(B.knots, np.eye(B.count), B.degree)(1.0, nu=k)[-len(given.goal):]
                   for k in range(len(given.goal))]), given.goal))]
    control = np.concatenate([ends[0], x[:problem.free].reshape(-1, MODEL.nv), ends[1]])
    spline = [BSpline(B.knots, part, B.degree) for part in (control.real, control.imag)]
    s = problem.nodes.s
    return T, [(spline[0](s, nu=k) + 1j * spline[1](s, nu=k)) / T**k for k in range(4)], control


def lagrangian(problem, x, y):
    """Cost + yᵀ rows at complex x, written down from the definitions."""
    given = problem.task
    T, (q, v, a, jerk), _ = complex_states(problem, x)
    wrench = None if given.wrenches is None else complex_step.wrenches_of(MODEL, given.wrenches)
    tau = np.array([complex_step.inverse_dynamics(MODEL, *row, wrench) for row in zip(q, v, a, strict=True)])
    tau = tau + MODEL.damping * v + MODEL.friction * np.tanh(v / 0.1)
    columns = {"effort": tau, "power": tau * v, "position": q, "velocity": v, "acceleration": a, "jerk": jerk}
    total = sum(T * problem.nodes.weight @ (columns[name] ** 2 @ weight) for name, weight in given.objective.items()
                if name != "duration")
    total = (total + T * given.omega_duration) / problem.unit
    lower, upper = given.bounds(problem.nodes.s)
    h = np.concatenate([columns[name] for name in (column.name for column in given.columns)], axis=1) / given.scale
    keep_up, keep_low = np.isfinite(upper), np.isfinite(lower)
    rows = [(h - np.where(keep_up, upper, 0.0))[keep_up], (np.where(keep_low, lower, 0.0) - h)[keep_low]]
    if problem.free_duration:
        rows.append(np.array([0.5 / T - 1.0, T / 4.0 - 1.0]))
    return total + y @ np.concatenate(rows)


CASES = [("effort", LIMITS, False, 5, None), (WEIGHTS, LIMITS, False, 5, None), (WEIGHTS, LIMITS, True, 5, None),
         (WEIGHTS, LIMITS, True, 7, None), ("duration", LIMITS, True, 5, None),
         ("effort", LIMITS, True, 5, {MODEL.body_names[-1]: RNG.normal(size=6)})]


@pytest.mark.parametrize(("objective", "limits", "free", "degree", "wrenches"), CASES)
def test_gradients_are_those_of_a_complex_step(objective, limits, free, degree, wrenches):
    problem, x = made(task(objective, limits, free, degree, wrenches))
    y = RNG.uniform(0.0, 1.0, len(problem.values(x).rows))
    at = problem.values(x)    # whose sum may cancel
    np.testing.assert_allclose(at.cost + y @ at.rows, lagrangian(problem, x, y).real, rtol=1e-12, atol=1e-13 * at.cost)
    gradient = problem.gradient(problem.linear(x), y)
    exact = np.array([lagrangian(problem, x + 1j * STEP * e, y).imag / STEP for e in np.eye(len(x))])
    assert np.abs(gradient - exact).max() <= 1e-10 * np.abs(exact).max()


@pytest.mark.parametrize("wrenches", [None, {MODEL.body_names[-1]: 30.0 * RNG.normal(size=6)}])
def test_gradients_of_effort_rates_are_those_of_differences(wrenches):
    """τ̇ itself is exact by a complex step along the motion; Richardson's extrapolation of it by x."""
    problem, x = made(task({"effort_rate": 1.0}, MORE, True, wrenches=wrenches))
    y = RNG.uniform(0.0, 1.0, len(problem.values(x).rows))
    gradient = problem.gradient(problem.linear(x), y)

    def value(z):
        found = problem.values(z)
        return found.cost + y @ found.rows

    for e in np.eye(len(x))[::5]:
        d = [(value(x + h * e) - value(x - h * e)) / (2.0 * h) for h in (1e-3, 5e-4, 2.5e-4)]
        first = [(4.0 * d[1] - d[0]) / 3.0, (4.0 * d[2] - d[1]) / 3.0]
        assert abs((16.0 * first[1] - first[0]) / 15.0 - gradient @ e) <= 1e-7 * np.abs(gradient).max()


@pytest.mark.parametrize("free", [False, True])
@pytest.mark.parametrize("objective", ["effort", WEIGHTS])
def test_newtons_matrix_is_the_derivative_of_the_gradient(objective, free):
    """But for the friction's curvature where it is concave, which is left out, and that of the bounds of T."""
    given = task(objective, LIMITS, free, via=False)
    given = Task(**{**{k: getattr(given, k) for k in Task.__dataclass_fields__}, "model": MODEL.with_(friction=0.0),
                    "friction": Friction(MODEL.damping)})
    problem, x = made(given)
    rows = len(problem.values(x).rows)
    y = RNG.uniform(0.0, 0.1, rows)
    y[rows - 2 * free:] = 0.0
    at = problem.linear(x)
    step = problem.step_matrix(at, np.zeros(rows), None, problem.curvature(at, y), y)
    n = problem.free
    full = np.zeros((len(x), len(x)))
    for k, row in enumerate(step.band):
        index = np.arange(n - k)
        full[index + k, index] = full[index, index + k] = row[:n - k]
    full[:n, n:], full[n:, :n], full[n:, n:] = step.border, step.border.T, step.corner
    h = 1e-5
    exact = np.array([(problem.gradient(problem.linear(x + h * e), y) - problem.gradient(problem.linear(x - h * e), y))
                      / (2.0 * h) for e in np.eye(len(x))])
    bound = 2e-5 * np.abs(exact).max()
    np.testing.assert_allclose(full[:n, :n], exact[:n, :n], atol=bound)
    if free and not given.start[1:].any():
        np.testing.assert_allclose(full, exact, atol=bound)


def test_the_band_solves_as_the_whole_matrix():
    n, width = 20, 6
    lower = np.tril(RNG.normal(size=(n, n))) * (np.subtract.outer(np.arange(n), np.arange(n)) < width)
    H = lower @ lower.T + np.eye(n)
    border, A, corner = RNG.normal(size=(n, 1)), RNG.normal(size=(n + 1, 3)), np.array([[60.0]])
    band = np.array([np.pad(np.diag(H, -k), (0, k)) for k in range(2 * width)])
    gradient, c = RNG.normal(size=n + 1), RNG.normal(size=3)
    found = newton_step(StepMatrix(band, border, corner), gradient, A, c, 0.0)
    whole = np.block([[H, border], [border.T, corner]])
    exact = np.linalg.solve(np.block([[whole, A], [A.T, np.zeros((3, 3))]]), -np.concatenate([gradient, c]))
    assert found is not None
    np.testing.assert_allclose(np.concatenate(found[:2]), exact, rtol=1e-7, atol=1e-9)


def test_slacks_are_the_best_ones():
    g = np.array([-3.0, -1e-3, 0.0, 1e-3, 2.0])
    for mu, rho in ((0.1, 10.0), (1e-3, 100.0)):
        found = best_slack(g, mu, rho)
        for i, gi in enumerate(g):
            low = max(gi, 0.0)
            best = minimize_scalar(lambda e, gi=gi, mu=mu, rho=rho: rho * e - mu * np.log(e - gi) - mu * np.log(e),
                                   bounds=(low, low + 1.0), method="bounded", options={"xatol": 1e-13})
            np.testing.assert_allclose(found.e[i], best.x, rtol=1e-4)
            np.testing.assert_allclose(found.e[i] - gi, found.s[i], rtol=1e-9)
        np.testing.assert_allclose(found.merit, np.sum(rho * found.e - mu * np.log(found.s) - mu * np.log(found.e)))


@pytest.mark.parametrize("model", [rbd.sample("iiwa"), chain("universal", "planar", "prismatic", "cylindrical")])
def test_curvature_is_that_of_the_second_derivatives(model, monkeypatch):
    n = model.nv
    q = np.array([model.random_configuration(RNG) for _ in range(4)])
    v, a, lam = RNG.normal(size=(3, 4, n))
    S = rbd.inverse_dynamics_second_derivatives(model, q, v, a)
    exact = np.zeros((4, 3 * n, 3 * n))
    for i, j, part in ((0, 0, S.qq), (0, 1, S.qv), (1, 1, S.vv), (2, 0, S.aq)):
        exact[:, i * n:(i + 1) * n, j * n:(j + 1) * n] = np.einsum("si,sijk->sjk", lam, part)
    for i, j in ((1, 0), (0, 2)):
        x, y = slice(i * n, (i + 1) * n), slice(j * n, (j + 1) * n)
        exact[:, x, y] = exact[:, y, x].transpose(0, 2, 1)
    for largest in (10**7, 1):    # kept, and made anew
        monkeypatch.setattr("rbd_ros.core.motion.optimal.curvature.MAX_CACHED", largest)
        out = np.zeros_like(exact)
        EffortCurvature(model, q, v, a, None).add(lam, out)
        np.testing.assert_allclose(out, exact, atol=1e-4 * np.abs(exact).max())


def test_a_first_guess_passes_ends_and_waypoints():
    given = task("effort", LIMITS, False)
    motion = rbd.SplineMotion(minimum_jerk(given, 1.3), 1.3)
    np.testing.assert_allclose(motion(0.4 * 1.3).q, given.via[0], atol=1e-9)
    for t, rows in ((0.0, given.start), (1.3, given.goal)):
        np.testing.assert_allclose(np.stack(motion(t)[:3]), rows, atol=1e-8)
    assert isinstance(motion(0.1), Reference)
