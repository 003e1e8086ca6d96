"""Optimal motions of mechanisms with loops: gradients against complex step, closed loops, efforts by dense algebra."""
from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from scipy.integrate import trapezoid
from scipy.interpolate import BSpline
from scipy.linalg import qr
from scipy.optimize import minimize
from support import complex_step
from support.closed import closed
from support.lagrangians import summed

import rbd_ros as rbd
from rbd_ros.core.dynamics.friction import Friction
from rbd_ros.core.motion.closed.closed_chain import closed_chain
from rbd_ros.core.motion.optimal.checked_task import checked_task, check_first_guess
from rbd_ros.core.motion.optimal.first_guess import minimum_jerk
from rbd_ros.core.motion.optimal.nodes import Nodes
from rbd_ros.core.motion.optimal.problem import Problem

STEP = 1e-30
LEGS = [f"slide_{i}" for i in range(1, 7)]
MOTORS = {"five_bar": ["left_shoulder", "right_shoulder"], "four_bar": ["crank_joint"],
          "gripper": ["left_crank_joint"], "delta": ["motor_1", "motor_2", "motor_3"], "stewart": LEGS}
REDUNDANT = {"five_bar": ["left_shoulder", "left_elbow", "right_shoulder", "right_elbow"],
             "gripper": ["left_crank_joint", "right_crank_joint"]}
WAY = {"five_bar": 0.5, "four_bar": 0.6, "gripper": 0.3, "delta": 0.3, "stewart": 0.05}    # rad, m
CASES = [(name, MOTORS[name], "effort") for name in MOTORS] + [
    (name, motors, rule) for name, motors in REDUNDANT.items() for rule in ("effort", "multipliers")]


@cache
def mechanism(name):
    """Model with friction, constraints, and two postures that one motion of the motors leads from and to."""
    model, constraints, near = closed(name)
    model = model.with_(damping=np.where(model.velocity_limit < np.inf, 0.05, 0.0))
    q0 = rbd.project(model, constraints, near).q
    chain = closed_chain(model, constraints, MOTORS[name], "effort", np.ones(model.nv), Friction(), None, q0)
    u = q0[chain.own]
    du = WAY[name] * np.random.default_rng(3).uniform(-1.0, 1.0, chain.size)
    return model, constraints, q0, chain.along(np.linspace(u, u + du, 40), q0)[-1]


def problem_of(name, motors, rule, objective, duration=1.0, wrenches=None):
    model, constraints, q0, q1 = mechanism(name)
    task = checked_task(model, q0, q1, duration, objective, None, (), wrenches, 0.05, 5, 12, constraints, motors, rule)
    problem = Problem(task, Nodes.of(task.basis, 14, task.orders), 2.0)
    x = problem.unknowns(minimum_jerk(task, 1.0), 1.0)
    rng = np.random.default_rng(4)
    return problem, x + 0.05 * WAY[name] * rng.normal(size=len(x)) * (np.arange(len(x)) < problem.free)


def complex_columns(task, q, rates, accelerations):
    """All of what is limited or weighed at one node, complex, by dense algebra; q moved along the tangent."""
    chain, model = task.chain, task.model
    d, u = chain.dependent, chain.independent
    A, _ = complex_step.constraint_rows(model, chain.constraints, q, np.zeros(model.nv))

    independent_rows = rows_of(A[:, d])
    Ad, Au = A[independent_rows][:, d], A[independent_rows][:, u]
    T = np.zeros((model.nv, len(u)), dtype=complex)
    T[u], T[d] = np.eye(len(u)), -np.linalg.solve(Ad, Au)
    v = T @ rates
    bias = complex_step.constraint_rows(model, chain.constraints, q, v)[1]
    a = T @ accelerations
    a[d] -= np.linalg.solve(Ad, bias[independent_rows])
    wrench = None if task.wrenches is None else complex_step.wrenches_of(model, task.wrenches)
    h = complex_step.inverse_dynamics(model, q, v, a, wrench) + task.friction.effort(v)
    motors, passive = chain.actuated, chain.passive
    if chain.minimize == "effort":
        Ta, W = T[motors], np.diag(1.0 / chain.weights)
        tau = W @ Ta @ np.linalg.solve(Ta.T @ W @ Ta, T.T @ h)
    else:
        B = A[independent_rows][:, passive]    # all rows of these samples are independent where this is asked
        assert len(independent_rows) == len(A)
        lam = B @ np.linalg.solve(B.T @ B, h[passive])
        tau = h[motors] - A[:, motors].T @ lam
    return {"effort": tau, "power": tau * v[motors], "velocity": v, "acceleration": a}


def rows_of(B):
    """As many rows as there are columns, independent."""
    return np.sort(qr(B.real.T, mode="r", pivoting=True)[1][:B.shape[1]])


def lagrangian(problem, x, y, nodes):
    """Cost + yᵀ rows at complex x: loops are closed for its real part, and positions move along their tangent."""
    task, n, N = problem.task, problem.nv, len(problem.nodes.s)
    T = x[-1] if problem.free_duration else task.duration
    ends = [np.linalg.solve(m, rows * T ** np.arange(len(rows))[:, None]) for m, rows in (
        (problem.task.basis.values(np.zeros(1), 2)[1][0][:, :3], task.start),
        (problem.task.basis.values(np.ones(1), 2)[1][0][:, 3:], task.goal))]
    control = np.concatenate([ends[0], x[:problem.free].reshape(-1, n), ends[1]])
    windows = problem.nodes.interval[:, None] + np.arange(6)
    z = np.matmul(problem.nodes.values / (T ** np.arange(3))[:, None], control[windows])
    q, tangents = nodes
    columns = []
    for k in range(N):
        moved = q[k] + complex_step.tangents(task.model, q[k]) @ tangents[k] @ (1j * z[k, 0].imag)
        found = complex_columns(task, moved, z[k, 1], z[k, 2])
        at = task.chain.places
        found["position"] = np.where(at >= 0, moved[at], 0.0)
        dense = [found[name] if name in ("effort", "power") else found[name][index] for name, index in task.dense]
        columns.append(np.concatenate([*dense, *z[k]]))
    return summed(problem, T, columns, y)


@pytest.mark.parametrize("free", [False, True])
@pytest.mark.parametrize(("name", "motors", "rule"), CASES)
def test_gradients_are_those_of_a_complex_step(name, motors, rule, free):
    objective = {"effort": 1.0, "power": 0.3, "velocity": 0.5, "acceleration": 0.1, "duration": 3.0}
    body = mechanism(name)[0].body_names[-1]
    problem, x = problem_of(name, motors, rule, objective, (0.5, 4.0) if free else 1.0,
                            {body: 0.5 * np.random.default_rng(5).normal(size=6)})
    values = problem.values(x)
    y = np.random.default_rng(6).uniform(0.0, 1.0, len(values.rows))
    gradient = problem.gradient(problem.linear(x), y)
    lifted = problem.dynamics._lifted
    nodes = lifted.q, lifted.T
    np.testing.assert_allclose(values.cost + y @ values.rows, lagrangian(problem, x.astype(complex), y, nodes).real,
                               rtol=1e-10)
    which = np.random.default_rng(7).choice(len(x), min(len(x), 8), replace=False)
    which[0] = len(x) - 1    # the duration, where it is free
    exact = np.array([lagrangian(problem, x + 1j * STEP * np.eye(len(x))[i], y, nodes).imag / STEP for i in which])
    assert np.abs(gradient[which] - exact).max() <= 1e-10 * np.abs(gradient).max()


@pytest.mark.parametrize("name", MOTORS)
def test_positions_move_along_the_tangent_that_the_gradients_use(name):
    """Richardson's extrapolation of closing the loops anew."""
    problem, x = problem_of(name, MOTORS[name], "effort", "effort")
    problem.values(x)
    lifted, chain = problem.dynamics._lifted, problem.task.chain
    u, k = lifted.q[:, chain.own], 5
    for e in np.eye(chain.size):
        def change(h, e=e):
            q = chain.closed(np.array([u[k] + h * e, u[k] - h * e]), lifted.q[[k, k]])
            return (chain.model.difference(lifted.q[k], q[0]) - chain.model.difference(lifted.q[k], q[1])) / (2.0 * h)
        d = [change(h) for h in (4e-3, 2e-3)]
        np.testing.assert_allclose((4.0 * d[1] - d[0]) / 3.0, lifted.T[k] @ e, atol=1e-7)


@pytest.mark.parametrize(("name", "motors", "rule"), CASES)
def test_loops_are_closed_at_all_times_and_efforts_are_those_of_inverse_dynamics(name, motors, rule):
    model, constraints, q0, q1 = mechanism(name)
    motion = rbd.optimize_motion(model, q0, q1, 1.0, constraints=constraints, actuated=motors, minimize=rule,
                                 time_limit=60.0).check()
    t = np.linspace(0.0, 1.0, 1501)    # none of the nodes
    q, v, a, *_ = motion(t)
    assert np.abs(rbd.constraint_values(model, constraints, q)).max() <= 1e-9
    A = rbd.constraint_jacobian(model, constraints, q)
    assert np.abs(np.einsum("nij,nj->ni", A, v)).max() <= 1e-9
    bias = rbd.constraint_bias(model, constraints, q, v)
    assert np.abs(np.einsum("nij,nj->ni", A, a) + bias).max() <= 1e-9 * max(1.0, np.abs(a).max())
    h = t[1] - t[0]
    moved = np.array([model.difference(q[i - 1], q[i + 1]) for i in range(200, 300)]) / (2.0 * h)
    np.testing.assert_allclose(moved, v[200:300], atol=1e-4 * np.abs(v).max())
    np.testing.assert_allclose((v[2:] - v[:-2]) / (2.0 * h), a[1:-1], atol=1e-3 * np.abs(a).max())
    friction = rbd.friction_effort(model, v)
    found = rbd.constrained_inverse_dynamics(model, constraints, q, v, a, motors, passive_effort=-friction)
    mask = np.isin(np.arange(model.nv), [model.velocity_names.index(m) for m in motors])
    if len(motors) == len(MOTORS[name]):
        np.testing.assert_allclose(motion.effort(t)[:, mask], (found.effort + friction)[:, mask],
                                   atol=1e-9 * max(1.0, np.abs(found.effort).max()))
    else:
        # friction belongs to what motors give: least of their sum
        whole = rbd.inverse_dynamics(model, q, v, a) + friction
        for k in (300, 700):
            np.testing.assert_allclose(motion.effort(t[k])[mask], shared(whole[k], A[k], mask, rule), atol=1e-8)
    assert not motion.effort(t)[:, ~mask].any()
    np.testing.assert_allclose(motion.cost, trapezoid(np.sum(motion.effort(t) ** 2, axis=1), t), rtol=1e-3)
    np.testing.assert_allclose(model.difference(q0, motion(0.0).q), 0.0, atol=1e-9)
    np.testing.assert_allclose(model.difference(q1, motion(1.0).q), 0.0, atol=1e-9)
    assert not motion(1.2).v.any() and motion.sample(0.3).jerk is None


def shared(whole, A, mask, rule):
    """K eq. 59–66 by the null space of A_pᵀ."""
    lam, *_ = np.linalg.lstsq(A[:, ~mask].T, whole[~mask], rcond=1e-10)
    if rule == "effort":
        _, s, Vt = np.linalg.svd(A[:, ~mask].T)
        null = Vt[np.sum(s > 1e-9):].T
        best, *_ = np.linalg.lstsq(A[:, mask].T @ null, whole[mask] - A[:, mask].T @ lam, rcond=None)
        lam = lam + null @ best
    return whole[mask] - A[:, mask].T @ lam


def test_the_optimum_is_that_of_an_independent_solver():
    """SLSQP on the five-bar, differences for gradients, efforts of `constrained_inverse_dynamics`, its own nodes."""
    model, constraints, q0, q1 = mechanism("five_bar")
    motors, K = REDUNDANT["five_bar"], 10
    task = checked_task(model, q0, q1, 1.0, "effort", None, (), None, 0.05, 5, K, constraints, motors, "effort")
    chain = task.chain
    own = chain.own
    mask = np.isin(np.arange(model.nv), chain.actuated)
    t = (np.arange(60) + 0.5) / 60
    knots = np.concatenate([np.zeros(5), np.linspace(0.0, 1.0, K - 4), np.ones(5)])
    bases = [BSpline(knots, np.eye(K), 5)(t, nu=k) for k in range(3)]

    def cost(x):
        control = np.concatenate([np.tile(q0[own], (3, 1)), x.reshape(-1, 2), np.tile(q1[own], (3, 1))])
        u, du, ddu = (B @ control for B in bases)
        q = q0.copy()
        total = 0.0
        for k in range(60):
            q = chain.closed(u[k:k + 1], chain.moved(q[None], (u[k] - q[own])[None]))[0]
            A = rbd.constraint_jacobian(model, constraints, q)
            d = chain.dependent
            v, a = np.zeros(model.nv), np.zeros(model.nv)
            v[chain.independent], a[chain.independent] = du[k], ddu[k]
            v[d] = -np.linalg.solve(A[:, d], A[:, chain.independent] @ du[k])
            bias = rbd.constraint_bias(model, constraints, q, v)
            a[d] = -np.linalg.solve(A[:, d], A[:, chain.independent] @ ddu[k] + bias)
            whole = rbd.inverse_dynamics(model, q, v, a) + rbd.friction_effort(model, v, smoothing=0.05)
            total += np.sum(shared(whole, A, mask, "effort") ** 2) / 60
        return total

    first = np.linspace(q0[own], q1[own], K - 6).reshape(-1)
    scale = cost(first)
    found = minimize(lambda x: cost(x) / scale, first, method="SLSQP", options={"maxiter": 100, "ftol": 1e-9})
    mine = rbd.optimize_motion(model, q0, q1, 1.0, constraints=constraints, actuated=motors, control_points=K,
                               smoothing=0.05).check()
    assert abs(cost(mine.spline.control[3:K - 3].reshape(-1)) / (found.fun * scale) - 1.0) < 1e-3


def test_redundant_motors_need_less_effort():
    model, constraints, q0, q1 = mechanism("five_bar")
    motors = REDUNDANT["five_bar"]
    costs = [rbd.optimize_motion(model, q0, q1, 1.0, constraints=constraints, actuated=names, minimize=rule).cost
             for names, rule in ((MOTORS["five_bar"], "effort"), (motors, "multipliers"), (motors, "effort"))]
    assert costs[2] < 0.999 * min(costs[:2])


def test_limits_of_dependent_joints_are_kept():
    model, constraints, q0, q1 = mechanism("five_bar")
    free = rbd.optimize_motion(model, q0, q1, 1.0, constraints=constraints, actuated=MOTORS["five_bar"])
    with pytest.raises(rbd.RbdError, match="a motion with loops is not of polynomials"):
        free.polynomials()
    speed = np.abs(free(np.linspace(0.0, 1.0, 400)).v).max(axis=0)
    limit = np.where(np.arange(5) == model.velocity_names.index("left_elbow"), 0.9 * speed, 10.0)
    motion = rbd.optimize_motion(model, q0, q1, 1.0, constraints=constraints, actuated=MOTORS["five_bar"],
                                 limits=rbd.MotionLimits(velocity=limit)).check()
    assert motion.usage["velocity"].joint == "left_elbow" and 0.99 < motion.usage["velocity"].ratio <= 1.0
    assert (np.abs(motion(np.linspace(0.0, 1.0, 3000)).v) <= limit * (1.0 + 1e-6)).all()


def test_the_fastest_motion_and_one_with_waypoints_and_given_rates():
    model, constraints, q0, q1 = mechanism("five_bar")
    motors = MOTORS["five_bar"]
    slow = rbd.optimize_motion(model, q0, q1, 1.0, constraints=constraints, actuated=motors).check()
    limits = rbd.MotionLimits(effort=8.0)
    fast = rbd.optimize_motion(model, q0, q1, None, "duration", limits=limits, constraints=constraints,
                               actuated=motors).check()
    assert fast.duration < 0.6 and fast.usage["effort"].ratio > 0.98
    begin, via = slow(0.3), slow(0.7)
    motion = rbd.optimize_motion(model, begin, q1, 1.0, waypoints=[(0.5, via.q)], constraints=constraints,
                                 actuated=motors).check()
    np.testing.assert_allclose(motion(0.5).q, via.q, atol=1e-6)
    for has, wanted in zip(motion(0.0)[:3], begin[:3], strict=True):
        np.testing.assert_allclose(has, wanted, atol=1e-8)


@pytest.mark.parametrize(("change", "what"), [
    ({"start": np.zeros(5) + 0.1}, "is off by"), ({"start": np.zeros(4)}, "must be 5 finite numbers"),
    ({"goal": np.full(5, np.nan)}, "goal: position"), ({"actuated": None}, "Give actuated"),
    ({"actuated": ["nobody"]}, "nobody"),
    ({"actuated": ["left_shoulder"]}, "under-actuated"), ({"minimize": "noise"}, "noise"),
    ({"constraints": 5}, "ConstraintSet"),
    ({"constraints": None}, "has no motor"), ({"waypoints": [(0.5, np.ones(5))]}, r"waypoints\[0\]"),
    ({"limits": rbd.MotionLimits(effort=1e-6)}, "the effort of joint 'left_shoulder'")])
def test_malformed_problems_are_refused(change, what):
    model, constraints, q0, q1 = mechanism("five_bar")
    given = {"start": q0, "goal": q1, "duration": 1.0, "constraints": constraints, "actuated": MOTORS["five_bar"]}
    with pytest.raises(rbd.RbdError, match=what):
        rbd.optimize_motion(model, **{**given, **change})


def test_rates_that_open_loops_and_goals_of_another_assembly_are_refused():
    model, constraints, q0, q1 = mechanism("five_bar")
    keep = {"constraints": constraints, "actuated": MOTORS["five_bar"]}
    with pytest.raises(rbd.RbdError, match="the loops do not stay closed"):
        rbd.optimize_motion(model, rbd.Reference(q0, np.eye(5)[0], np.zeros(5)), q1, 1.0, **keep)
    other = q1 + 2.0 * np.pi * np.eye(5)[model.velocity_names.index("right_elbow")]
    with pytest.raises(rbd.RbdError, match="another posture"):
        rbd.optimize_motion(model, q0, other, 1.0, **keep)
    task = checked_task(model, q0, q1, 1.0, "effort", None, (), None, 0.05, 5, 12, constraints, MOTORS["five_bar"],
                        "effort")
    with pytest.raises(rbd.RbdError, match=r"cannot be closed at 0\.\d+ of the duration"):
        check_first_guess(task, np.linspace(task.start[0], task.start[0] + [-1.6, 1.6], 50))
