"""Bodies that can be: pseudo-inertias against clouds of points, the divergence against its eigenvalues."""
from __future__ import annotations

import numpy as np
import pytest
from support.trees import random_inertia, random_rotation

import rbd_ros as rbd
from rbd_ros.core.identification import consistency as c


def cloud(rng, count=12):
    """Ten parameters of heavy points, and these."""
    m, x = rng.uniform(0.1, 1.0, count), rng.normal(scale=0.3, size=(count, 3)) + 0.2
    I = sum(w * (y @ y * np.eye(3) - np.outer(y, y)) for w, y in zip(m, x, strict=True))
    return np.array([m.sum(), *(m @ x), I[0, 0], I[0, 1], I[1, 1], I[0, 2], I[1, 2], I[2, 2]]), m, x


@pytest.mark.parametrize("seed", range(5))
def test_the_pseudo_inertia_is_the_sum_over_points(seed):
    theta, m, x = cloud(np.random.default_rng(seed))
    y = np.column_stack([x, np.ones(len(x))])
    P = c.pseudo_inertia(theta)
    np.testing.assert_allclose(P, (y * m[:, None]).T @ y, rtol=1e-12)
    np.testing.assert_allclose(c.parameters_of_pseudo_inertia(P), theta, rtol=1e-12)
    assert c.is_consistent(theta)


def test_bodies_that_cannot_be_are_found():
    theta, *_ = cloud(np.random.default_rng(0))
    for change in ({0: -1.0}, {4: 10.0 * theta[4]}, {9: 0.0}):    # mass, triangle inequality, no inertia about z
        wrong = theta.copy()
        for at, value in change.items():
            wrong[at] = value
        assert not c.is_consistent(wrong), change


@pytest.mark.parametrize("seed", range(5))
def test_a_prior_is_the_description_or_a_mended_one(seed):
    rng = np.random.default_rng(seed)
    theta = rbd.RobotModel.from_description(rbd.Description(
        "x", {"a": random_inertia(rng)}, ())).inertial_parameters
    factor, mended = c.prior_factor(theta)
    assert not mended
    np.testing.assert_allclose(c.parameters_of_pseudo_inertia(factor @ factor.T), theta, rtol=1e-9, atol=1e-12)
    R = random_rotation(rng)
    flat = R @ np.diag([0.1, 0.1, 0.5]) @ R.T    # violates the triangle inequality
    wrong = np.array([2.0, 0, 0, 0, *(flat[i, j] for i, j in ((0, 0), (0, 1), (1, 1), (0, 2), (1, 2), (2, 2)))])
    factor, mended = c.prior_factor(wrong)
    found = c.parameters_of_pseudo_inertia(factor @ factor.T)
    assert mended and c.is_consistent(found) and found[0] == pytest.approx(2.0)
    factor, mended = c.prior_factor(np.array([2.0, *np.zeros(9)]))
    assert mended and c.is_consistent(c.parameters_of_pseudo_inertia(factor @ factor.T))
    with pytest.raises(rbd.RbdError, match="mass"):
        c.prior_factor(np.zeros(10))


@pytest.mark.parametrize("seed", range(5))
def test_the_divergence_is_that_of_the_eigenvalues(seed):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(4, 6))
    S = A @ A.T / 6.0
    y = S[np.tril_indices(4)]
    value, gradient, hessian = c.divergence(y)
    sizes = np.linalg.eigvalsh(S)
    assert value == pytest.approx(np.sum(sizes - np.log(sizes) - 1.0))
    h = 1e-6
    for k in range(10):
        step = h * np.eye(10)[k]
        up, down = c.divergence(y + step), c.divergence(y - step)
        assert (up[0] - down[0]) / (2.0 * h) == pytest.approx(gradient[k], rel=1e-5, abs=1e-6)
        np.testing.assert_allclose((up[1] - down[1]) / (2.0 * h), hessian[k], rtol=1e-4, atol=1e-5)
    assert c.divergence(c.IDENTITY)[0] == pytest.approx(0.0) and np.isinf(c.divergence(-c.IDENTITY)[0])
    assert not c.divergence(c.IDENTITY)[1].any()
