"""Least efforts of the iiwa against CasADi's Ipopt, whose equations of motion, derivatives and splines are its own."""
from __future__ import annotations

import time
from functools import cache

import numpy as np
import pytest

import rbd_ros as rbd
from benchmark.motion import problems
from rbd_ros.core.motion.optimal.checked_task import checked_task
from rbd_ros.core.motion.optimal.first_guess import minimum_jerk
from rbd_ros.core.motion.interior_point.search import solve
from rbd_ros.core.motion.optimal.nodes import Nodes
from rbd_ros.core.motion.optimal.problem import Problem
from rbd_ros.core.motion.optimal.task import MARGIN

IIWA = rbd.sample("iiwa")
CASES = problems(IIWA, 10)
PEER_FINDS_ANOTHER_MINIMUM = {1}


@cache
def nodes():
    task = checked_task(IIWA, *CASES[0], "effort", None, (), None, 0.01, 5, 20)
    return Nodes.of(task.basis, 100, 3)


@cache
def peer():
    pytest.importorskip("casadi")
    from benchmark.ipopt_peer import IpoptPeer
    return IpoptPeer(IIWA, (nodes().s, nodes().weight), 20, 1.0 - MARGIN)


@pytest.mark.parametrize("case", range(len(CASES)))
def test_the_optimum_is_ipopts(case):
    """On the same nodes; `python -m benchmark motion_peers` compares whole motions, 50 of them, on nodes of Ipopt's."""
    q0, q1, T = CASES[case]
    task = checked_task(IIWA, q0, q1, T, "effort", None, (), None, 0.01, 5, 20)
    problem, first = Problem(task, nodes()), minimum_jerk(task, T)
    x = problem.unknowns(first, T)
    problem.unit = problem.values(x).cost
    mine = solve(problem, x, 1e-8, time.perf_counter() + 30.0)
    cost = problem.values(mine.x).cost * problem.unit
    another = case in PEER_FINDS_ANOTHER_MINIMUM
    theirs = peer().solve(q0, q1, T, problem.control(mine.x) if another else first, near=another)
    assert mine.converged and theirs.optimal
    assert abs(cost / theirs.cost - 1.0) < 1e-4


def test_the_peers_equations_of_motion_are_the_libraries():
    pytest.importorskip("casadi")
    from benchmark.ipopt_peer import efforts

    state = np.random.default_rng(0).normal(size=(3, 7))
    np.testing.assert_allclose(np.array(efforts(IIWA)(*state)).ravel(), rbd.inverse_dynamics(IIWA, *state), atol=1e-12)
