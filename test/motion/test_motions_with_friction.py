"""Optimal motions with Coulomb friction, which is nearly a jump: Newton's matrix, and how many iterations it takes."""
from __future__ import annotations

import numpy as np
import test_motion_derivatives
from test_motion_derivatives import LIMITS, made, task

import rbd_ros as rbd
from rbd_ros.core.dynamics.friction import Friction


def test_what_friction_makes_concave_can_be_left_out(monkeypatch):
    monkeypatch.setattr(test_motion_derivatives, "RNG", np.random.default_rng(9))    # whatever others drew before
    problem, x = made(task("effort", LIMITS, False))
    values = problem.values(x)
    at, y = problem.linear(x), np.random.default_rng(1).uniform(0.0, 1.0, len(values.rows))
    whole = problem.curvature(at, y)
    rest = whole.copy()
    assert problem.convexified(rest)
    n = problem.nv
    v = at.z[:, n:2 * n]
    c = problem._coefficients(at, y)[0][:, :n] / problem.task.scale[:n]
    t = np.tanh(v / 0.1)
    bent = c * problem.task.model.friction * -2.0 * t * (1.0 - t**2) / 0.1**2
    expected = np.zeros_like(whole)
    expected[:, np.arange(n, 2 * n), np.arange(n, 2 * n)] = np.minimum(bent, 0.0)
    assert bent.min() < 0.0
    np.testing.assert_allclose(whole - rest, expected, atol=1e-9 * np.abs(bent).max())
    plain = task("effort", LIMITS, False)
    problem, x = made(type(plain)(**{**vars_of(plain), "friction": Friction(0.3)}))
    problem.values(x)
    at = problem.linear(x)
    assert not problem.convexified(problem.curvature(at, y))


def vars_of(given):
    return {name: getattr(given, name) for name in type(given).__dataclass_fields__}


def test_it_takes_less_than_twice_the_iterations():
    """With a hundredth of the usual speeds as smoothing; 187 once were the most of these, and 90 the median."""
    model = rbd.sample("iiwa").with_(friction=4.0, damping=1.0)
    counts = []
    for seed in range(1, 6):
        rng = np.random.default_rng(seed)
        q0, q1 = 0.9 * model.random_configuration(rng), 0.9 * model.random_configuration(rng)
        duration = float(1.2 * np.max(1.875 * np.abs(q1 - q0) / model.velocity_limit))
        counts.append(rbd.optimize_motion(model, q0, q1, duration, starts=1).check().iterations)
    assert max(counts) <= 110 and np.median(counts) <= 80
