"""What a motion is before and after its time; how far its cost may be above the least."""
from __future__ import annotations

import time

import numpy as np
import pytest

import rbd_ros as rbd
from benchmark.motion import problems
from rbd_ros.core.motion.optimal.checked_task import checked_task
from rbd_ros.core.motion.optimal.first_guess import minimum_jerk
from rbd_ros.core.motion.interior_point.search import GAP, solve
from rbd_ros.core.motion.optimal.nodes import Nodes
from rbd_ros.core.motion.optimal.problem import Problem

IIWA = rbd.sample("iiwa")
FAST = rbd.specialize(IIWA)
CASES = problems(IIWA, 8)


@pytest.fixture(scope="module", autouse=True)
def compiled():
    """Time limits do not count the compiler's."""
    for model in (IIWA, FAST):
        rbd.optimize_motion(model, *CASES[0], time_limit=60.0)


def on_nodes(case):
    q0, q1, T = case
    task = checked_task(IIWA, q0, q1, T, "effort", None, (), None, 0.01, 5, 20)
    problem = Problem(task, Nodes.of(task.basis, 100, 3))
    x = problem.unknowns(minimum_jerk(task, T), T)
    problem.unit = problem.values(x).cost
    return problem, x


@pytest.mark.parametrize("case", range(len(CASES)))
def test_what_the_barrier_leaves_is_less_than_the_gap(case):
    """The same problem with a hundredth of the tolerance, and so of the gap: 0.05 % of the cost at most."""
    problem, x = on_nodes(CASES[case])
    coarse = solve(problem, x, 1e-6, time.perf_counter() + 60.0)
    fine = solve(problem, coarse.x, 1e-8, time.perf_counter() + 60.0, coarse)
    assert coarse.converged and fine.converged
    costs = [problem.values(found.x).cost for found in (coarse, fine)]
    assert -1e-8 < costs[0] / costs[1] - 1.0 < GAP * 1e-6


def test_a_specialised_model_finds_the_same_motion():
    for q0, q1, T in CASES[:3]:
        costs = [rbd.optimize_motion(model, q0, q1, T).check().cost for model in (IIWA, FAST)]
        assert abs(costs[0] / costs[1] - 1.0) < 1e-6


def test_effort_rates_under_a_wrench_keep_their_limits():
    """Against differences of efforts by time; without the wrench the motion is another one."""
    wrench = {IIWA.body_names[-1]: [0.0, 1.0, 0.0, 10.0, 0.0, -30.0]}
    q0 = np.array([0.0, 0.5, 0.0, -1.2, 0.0, 0.8, 0.0])
    q1 = np.array([1.2, -0.3, 0.5, -0.5, 0.6, -0.4, 1.0])
    limits = rbd.MotionLimits(effort_rate=220.0)
    motion = rbd.optimize_motion(IIWA, q0, q1, 1.5, external_wrenches=wrench, limits=limits, time_limit=60.0).check()
    t = np.linspace(1e-4, 1.5 - 1e-4, 1501)
    tau = [rbd.inverse_dynamics(IIWA, *motion(x)[:3], wrench) for x in (t - 1e-5, t + 1e-5)]
    rate = np.abs(tau[1] - tau[0]).max() / 2e-5
    assert 0.9 * 220.0 < rate <= 220.0 * (1.0 + 1e-6)
    np.testing.assert_allclose(rate, 220.0 * motion.usage["effort_rate"].ratio, rtol=1e-3)


def test_outside_a_motion_that_ends_moving_efforts_are_those_of_rest():
    model = rbd.sample("five_bar")
    constraints = rbd.sample_constraints("five_bar", model)
    motors = ["left_shoulder", "right_shoulder"]
    q0 = rbd.project(model, constraints, np.zeros(5)).q
    moved = q0.copy()
    moved[[model.velocity_names.index(name) for name in motors]] += 0.2
    q1 = rbd.project(model, constraints, moved).q
    keep = {"constraints": constraints, "actuated": motors}
    whole = rbd.optimize_motion(model, q0, q1, 1.0, "jerk", **keep)
    part = rbd.optimize_motion(model, q0, whole(0.5), 0.6, "jerk", **keep)
    still = rbd.optimize_motion(model, whole(0.5).q, q1, 1.0, "jerk", **keep)
    assert np.abs(part(0.6).v).max() > 0.01 and not part(0.7).v.any() and not part(np.array([-1.0, 0.7])).v.any()
    np.testing.assert_allclose(part.effort(0.7), still.effort(-1.0), atol=1e-6)
