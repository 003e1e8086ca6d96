"""Crocoddyl on this library's dynamics finds the optimum that it finds on Pinocchio's."""
from __future__ import annotations

import numpy as np
import pytest
from support.pages import ROOT

import rbd_ros as rbd

pytest.importorskip("crocoddyl")


@pytest.fixture
def example(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "examples")
    import crocoddyl_reach
    return crocoddyl_reach


def test_the_same_optimum_as_with_pinocchio(example):
    ours, theirs = example.main(quiet=True)
    assert ours.iterations == theirs.iterations < 100
    np.testing.assert_allclose(ours.cost, theirs.cost, rtol=1e-9)
    np.testing.assert_allclose(ours.x, theirs.x, atol=1e-6)
    np.testing.assert_allclose(ours.u, theirs.u, atol=1e-6)
    model = rbd.sample("iiwa")
    tip = rbd.forward_kinematics(model, ours.x[-1, :7])[model.body_index(example.TIP), :3, 3]
    assert np.linalg.norm(tip - example.TARGET) < 5e-3


def test_derivatives_are_those_of_differences(example):
    """By Crocoddyl's own numerical differentiation."""
    import crocoddyl

    model = rbd.sample("iiwa").with_(armature=example.ROTORS)
    ours = example.Reach(model, example.TIP, example.TARGET, example.START, example.RUNNING)
    theirs = crocoddyl.DifferentialActionModelNumDiff(ours, False)
    x, u = np.random.default_rng(0).normal(size=14), np.random.default_rng(1).normal(size=7)
    found, expected = ours.createData(), theirs.createData()
    for model, data in ((ours, found), (theirs, expected)):
        model.calc(data, x, u)
        model.calcDiff(data, x, u)
    for name in ("Fx", "Fu", "Lx", "Lu"):
        wanted = getattr(expected, name)
        np.testing.assert_allclose(getattr(found, name), wanted, atol=1e-5 * max(1.0, np.abs(wanted).max()))


def test_models_with_quaternions_are_refused(example):
    with pytest.raises(rbd.RbdError, match="without quaternions"):
        example.Reach(rbd.sample("biped", root="floating"), "x", example.TARGET, example.START, example.RUNNING)
