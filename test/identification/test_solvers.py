"""Newton's method of the consistent fit against an interior-point solver and against plain bounded least squares."""
from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import lsq_linear
from support.recordings import periodic, perturbed, record

import rbd_ros as rbd
from rbd_ros.core.identification.consistent_fit import _bounded_step

pytestmark = pytest.mark.filterwarnings("ignore::rbd_ros.RbdWarning")


@pytest.mark.parametrize("seed", range(20))
def test_a_step_is_the_least_of_its_model_within_the_bounds(seed):
    """Columns that are alike are what a step cut off at its bounds does not survive."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 12))
    A = rng.normal(size=(3 * n, n))
    A[:, -1] = A[:, -2] + 1e-3 * rng.normal(size=3 * n)
    b = rng.normal(size=3 * n)
    lower = np.where(rng.random(n) < 0.6, -rng.random(n), -np.inf)
    found = _bounded_step(A.T @ A, -A.T @ b, lower)
    expected = lsq_linear(A, b, (lower, np.full(n, np.inf)), method="bvls", tol=1e-14)
    assert (found >= lower - 1e-9).all()
    assert np.sum((A @ found - b) ** 2) <= 2.0 * expected.cost * (1.0 + 1e-8) + 1e-10


@pytest.mark.parametrize("name, mode", [("two_link", "full"), ("iiwa", "payload"),
                                        pytest.param("iiwa", "full", marks=pytest.mark.thorough)])
def test_the_semidefinite_programme_agrees(name, mode):
    pytest.importorskip("clarabel", reason="clarabel is not installed")
    model = rbd.sample(name)
    recording = record(perturbed(model, 1), periodic(model, 1, periods=2), 1)
    options = {"mode": mode, "delay": 0.0, "body": model.body_names[-1] if mode == "payload" else None}
    newton, cones = (rbd.identify(model, recording, solver=solver, **options) for solver in ("newton", "semidefinite"))
    assert cones.residual.overall == pytest.approx(newton.residual.overall, abs=1e-7)
    np.testing.assert_allclose(cones.model.inertial_parameters, newton.model.inertial_parameters, rtol=1e-3, atol=1e-3)
    for what in ("armature", "damping", "friction"):
        np.testing.assert_allclose(getattr(cones.model, what), getattr(newton.model, what), rtol=1e-5, atol=1e-6)


def test_without_clarabel_it_is_said(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "clarabel", None)
    model = rbd.sample("two_link")
    recording = record(perturbed(model, 1), periodic(model, 1, periods=2), 1)
    with pytest.raises(rbd.RbdError, match="needs the package clarabel"):
        rbd.identify(model, recording, solver="semidefinite")
    with pytest.raises(rbd.RbdError, match="unknown solver"):
        rbd.identify(model, recording, solver="simplex")


def test_a_fit_near_singular_bodies_that_takes_hundreds_of_steps():
    """It ends, instead of saying that the recording is of another robot."""
    model = rbd.sample("iiwa")
    truth = perturbed(model, 158)
    found = rbd.identify(model, record(truth, periodic(model, 8, periods=3), 158))
    assert found.residual.overall - found.residual.overall_unconstrained < 3e-3
