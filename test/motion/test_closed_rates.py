"""Effort rates and motors behind springs with loops: slopes, limits that are kept, and curvature."""
from __future__ import annotations

import numpy as np
import pytest
from support import complex_step
from support.lagrangians import summed
from test_closed_goals import EIGHTH
from test_closed_motion import MOTORS, REDUNDANT, complex_columns, mechanism

import rbd_ros as rbd
from rbd_ros.core.motion.optimal.checked_task import checked_task
from rbd_ros.core.motion.optimal.first_guess import minimum_jerk
from rbd_ros.core.motion.optimal.nodes import Nodes
from rbd_ros.core.motion.optimal.problem import Problem

TINY = 1e-30
WEIGHTS = {"effort": 1.0, "power": 0.2, "effort_rate": 0.01, "jerk": 1e-3, "acceleration": 0.1, "duration": 2.0}
CASES = [("five_bar", MOTORS["five_bar"], "effort", 0.0), ("five_bar", MOTORS["five_bar"], "effort", 0.4),
         ("five_bar", REDUNDANT["five_bar"], "effort", 0.0), ("five_bar", REDUNDANT["five_bar"], "multipliers", 0.4),
         ("gripper", REDUNDANT["gripper"], "effort", 0.0), ("delta", MOTORS["delta"], "effort", 0.0),
         ("stewart", MOTORS["stewart"], "effort", 0.0)]


def springs_of(model, motors, cubic=200.0):
    return rbd.Actuation(model, {
        name: rbd.SeriesDrive(rbd.SeriesSpring([60.0, cubic]), motor=rbd.Motor(rotor_inertia=0.01))
        if name in motors else rbd.RigidDrive() for name in model.joint_names})


def made(name, motors, rule="effort", coulomb=0.0, free=True, springs=False, count=10):
    model, constraints, q0, q1 = mechanism(name)
    model = model.with_(friction=np.where(model.velocity_limit < np.inf, coulomb, 0.0))
    limits = rbd.MotionLimits(effort_rate=300.0, motor_velocity=5.0 if springs else None)
    task = checked_task(model, q0, q1, (0.5, 4.0) if free else 1.0, WEIGHTS, limits, (), None, 0.05, 5, 12, constraints,
                        motors, rule, actuation=springs_of(model, motors) if springs else None)
    problem = Problem(task, Nodes.of(task.basis, count, task.orders), 2.0)
    x = problem.unknowns(minimum_jerk(task, 1.0), 1.0)
    step = {"stewart": 0.0025, "delta": 0.01}.get(name, 0.02)
    return problem, x + step * np.random.default_rng(4).normal(size=len(x)) * (np.arange(len(x)) < problem.free)


def lagrangian(problem, x, y, near):
    """Cost + yᵀ rows: efforts by dense algebra, τ̇ by a complex step along the motion, loops closed anew near q."""
    task, n = problem.task, problem.nv
    T = x[-1] if problem.free_duration else task.duration
    z = np.matmul(problem.nodes.values / (T ** np.arange(4))[:, None],
                  problem.control(x)[problem.nodes.interval[:, None] + np.arange(6)])
    chain = task.chain
    own = chain.own
    q = chain.closed(z[:, 0], chain.moved(near, z[:, 0] - near[:, own]))
    T_of = chain.lifted(q, z[:, 1], z[:, 2]).T    # tested elsewhere against closing anew
    columns = []
    for k, (u, du, ddu, dddu) in enumerate(z):
        moved = q[k] + complex_step.tangents(task.model, q[k]) @ T_of[k] @ (1j * TINY * du)
        found = complex_columns(task, moved, du + 1j * TINY * ddu, ddu + 1j * TINY * dddu)
        rate = found["effort"].imag / TINY
        found = {name: value.real for name, value in found.items()} | {"effort_rate": rate}
        found["position"] = np.where(chain.places >= 0, q[k][chain.places], 0.0)
        if task.springs is not None:
            spring = task.springs.spring
            c = 1.0 / spring.stiffness(spring.deflection(found["effort"]))
            found["motor_velocity"] = found["velocity"][chain.actuated] + c * rate
        dense = [found[name] if name in ("effort", "power", "effort_rate", "motor_velocity") else found[name][index]
                 for name, index in task.dense]
        columns.append(np.concatenate([*dense, u, du, ddu, dddu]))
    assert n == len(own)
    return summed(problem, T, columns, y)


@pytest.mark.parametrize(("name", "motors", "rule", "coulomb", "springs"), [
    *((*case, False) for case in CASES), ("five_bar", MOTORS["five_bar"], "effort", 0.0, True)])
def test_gradients_are_those_of_complex_efforts(name, motors, rule, coulomb, springs):
    """Of eighth order in x: exact to 1e-11, as efforts and their rates are exact."""
    problem, x = made(name, motors, rule, coulomb, springs=springs)
    values = problem.values(x)
    y = np.random.default_rng(6).uniform(0.0, 1.0, len(values.rows))
    gradient = problem.gradient(problem.linear(x), y)
    near = problem.dynamics._lifted.q
    np.testing.assert_allclose(values.cost + y @ values.rows, lagrangian(problem, x, y, near), rtol=1e-10)
    h = (2e-3 if name == "stewart" else 5e-3) * (0.06 if coulomb else 1.0)    # friction is sharp
    for i in (0, len(x) // 2, len(x) - 2, len(x) - 1):
        e = np.eye(len(x))[i]
        exact = sum(c * (lagrangian(problem, x + k * h * e, y, near) - lagrangian(problem, x - k * h * e, y, near)) / h
                    for k, c in EIGHTH.items())
        assert abs(gradient[i] - exact) <= 1e-10 * np.abs(gradient).max()


@pytest.mark.parametrize(("name", "motors", "rule"), [
    ("five_bar", MOTORS["five_bar"], "effort"), ("five_bar", REDUNDANT["five_bar"], "multipliers"),
    ("delta", MOTORS["delta"], "effort")])
def test_newtons_matrix_is_the_derivative_of_the_gradient(name, motors, rule):
    model, constraints, q0, q1 = mechanism(name)
    task = checked_task(model, q0, q1, 1.0, {"effort": 1.0, "power": 0.2, "velocity": 0.1}, None, (), None, 0.05, 5, 10,
                        constraints, motors, rule)
    problem = Problem(task, Nodes.of(task.basis, 12, task.orders), 2.0)
    x = problem.unknowns(minimum_jerk(task, 1.0), 1.0)
    x = x + 0.02 * np.random.default_rng(4).normal(size=len(x))
    rows = len(problem.values(x).rows)
    y = np.random.default_rng(6).uniform(0.0, 0.1, rows)
    at = problem.linear(x)
    step = problem.step_matrix(at, np.zeros(rows), None, problem.curvature(at, y), y)
    full = np.zeros((len(x), len(x)))
    for k, row in enumerate(step.band):
        index = np.arange(len(x) - k)
        full[index + k, index] = full[index, index + k] = row[:len(x) - k]
    h = 1e-5
    exact = np.array([(problem.gradient(problem.linear(x + h * e), y) - problem.gradient(problem.linear(x - h * e), y))
                      / (2.0 * h) for e in np.eye(len(x))])
    np.testing.assert_allclose(full, exact, atol=1e-5 * np.abs(exact).max())


@pytest.mark.parametrize(("name", "share"), [("five_bar", 0.8), ("delta", 0.9)])
def test_effort_rates_of_motors_are_kept(name, share):
    """As differences of the efforts along the motion have them."""
    model, constraints, q0, q1 = mechanism(name)
    more = {"constraints": constraints, "actuated": MOTORS[name]}
    free = rbd.optimize_motion(model, q0, q1, 1.0, {"effort": 1.0, "jerk": 1e-6}, **more).check()
    t, h = np.linspace(2e-6, 1.0 - 2e-6, 1500), 1e-6

    def rates(motion):
        return (motion.effort(t + h) - motion.effort(t - h)) / (2.0 * h)

    limit = share * np.abs(rates(free)).max()
    motion = rbd.optimize_motion(model, q0, q1, 1.0, {"effort": 1.0, "jerk": 1e-6}, **more, time_limit=60.0,
                                 limits=rbd.MotionLimits(effort_rate=limit)).check()
    found = np.abs(rates(motion)).max() / limit
    assert 0.98 < found <= 1.0 + 1e-5
    np.testing.assert_allclose(found, motion.usage["effort_rate"].ratio, rtol=1e-3)
    assert motion.usage["effort_rate"].joint in MOTORS[name] and motion.cost > free.cost


def test_motors_behind_cubic_springs_keep_their_speed():
    name = "five_bar"
    model, constraints, q0, q1 = mechanism(name)
    more = {"constraints": constraints, "actuated": MOTORS[name], "actuation": springs_of(model, MOTORS[name])}
    free = rbd.optimize_motion(model, q0, q1, 1.0, **more, degree=7).check()
    t, h = np.linspace(2e-6, 1.0 - 2e-6, 1500), 1e-6
    spring = rbd.SeriesSpring([60.0, 200.0])
    own = [model.velocity_names.index(motor) for motor in MOTORS[name]]

    def speeds(motion):
        """By differences of where the motors are."""
        after, before = ((motion(at).q + spring.deflection(motion.effort(at)))[:, own] for at in (t + h, t - h))
        return np.abs(after - before) / (2.0 * h)

    limit = 0.93 * speeds(free).max()
    motion = rbd.optimize_motion(model, q0, q1, 1.0, **more, degree=7,
                                 limits=rbd.MotionLimits(motor_velocity=limit)).check()
    np.testing.assert_allclose(speeds(motion).max() / limit, motion.usage["motor_velocity"].ratio, rtol=1e-4)
    assert speeds(motion).max() <= limit * (1.0 + 1e-5) and motion.cost > free.cost
