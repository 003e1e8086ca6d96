"""Every constrained result satisfies the equations of motion and the constraints (K eq. 54, 55), on all samples."""

import numpy as np
import pytest
from support.closed import NAMES, check_equations, closed, consistent_states, dense_solution, terms, times
from support.robots import assert_close

import rbd_ros as rbd

RANKS = {"five_bar": 3, "four_bar": 2, "gripper": 5, "stewart": 18, "delta": 18, "biped": 12, "talos": 12}


@pytest.mark.parametrize("name", NAMES)
def test_samples_are_closed_at_the_nominal_posture(name):
    model, constraints, q = closed(name)
    assert np.abs(rbd.constraint_values(model, constraints, q)).max() < 1e-11
    q, v, _, _ = consistent_states(name)
    assert np.abs(rbd.constraint_values(model, constraints, q)).max() < 1e-9
    assert np.abs(times(rbd.constraint_jacobian(model, constraints, q), v)).max() < 1e-9


@pytest.mark.parametrize("name", NAMES)
def test_forward(name):
    model, constraints, _ = closed(name)
    q, v, _, tau = consistent_states(name)
    got = rbd.constrained_forward_dynamics(model, constraints, q, v, tau)
    check_equations(model, constraints, q, v, got.acceleration, tau, got.multipliers)
    assert (got.rank == RANKS[name]).all()
    for i in range(5):
        one = rbd.constrained_forward_dynamics(model, constraints, q[i], v[i], tau[i])
        # one state has an entry of its own, whose sums and products a compiler may contract differently
        assert_close(one.acceleration, got.acceleration[i], 1e-11, "acceleration")
        assert_close(one.multipliers, got.multipliers[i], 1e-10, "multipliers")
        assert one.rank == got.rank[i]
        assert one.residual < 1e-9 and got.residual[i] < 1e-9
        a, lam = dense_solution(*terms(model, constraints, q[i], v[i]), tau[i])
        assert_close(one.acceleration, a, 1e-9, "acceleration")
        assert_close(one.multipliers, lam, 1e-8, "multipliers of least norm")


@pytest.mark.parametrize("name", NAMES)
def test_forward_with_external_wrenches(name):
    model, constraints, _ = closed(name)
    q, v, _, tau = (x[:20] for x in consistent_states(name))
    wrenches = {model.body_names[-1]: np.array([0.3, -0.2, 0.1, 4.0, 5.0, -6.0])}
    got = rbd.constrained_forward_dynamics(model, constraints, q, v, tau, external_wrenches=wrenches)
    check_equations(model, constraints, q, v, got.acceleration, tau, got.multipliers, wrenches=wrenches)
    one = rbd.constrained_forward_dynamics(model, constraints, q[0], v[0], tau[0], external_wrenches=wrenches)
    np.testing.assert_array_equal(one.acceleration, got.acceleration[0])


@pytest.mark.parametrize("name", NAMES)
def test_inverse_all_actuated(name):
    model, constraints, _ = closed(name)
    q, v, a, _ = consistent_states(name)
    every = np.ones(model.nv, dtype=bool)
    for minimize in ("multipliers", "effort"):
        got = rbd.constrained_inverse_dynamics(model, constraints, q, v, a, every, minimize)
        check_equations(model, constraints, q, v, a, got.effort, got.multipliers)
    assert (np.linalg.norm(got.effort, axis=-1)
            <= np.linalg.norm(rbd.inverse_dynamics(model, q, v, a), axis=-1) * (1.0 + 1e-12)).all()


@pytest.mark.parametrize("name", NAMES)
def test_inverse_of_forward(name):
    """With as many motors as the mechanism needs and some more, efforts exist, and give back the acceleration."""
    model, constraints, _ = closed(name)
    q, v, a, tau = (x[:20] for x in consistent_states(name))
    passive = np.zeros(model.nv, dtype=bool)
    if name in ("biped", "talos"):
        passive[:6] = True
    else:
        # the first coordinates whose columns of A are independent: what the constraints carry
        A = rbd.constraint_jacobian(model, constraints, q[0])
        for i in range(model.nv):
            tried = passive.copy()
            tried[i] = True
            passive = tried if np.linalg.matrix_rank(A[:, tried], 1e-2) == tried.sum() else passive
    got = {}
    for minimize in ("multipliers", "effort"):
        got[minimize] = rbd.constrained_inverse_dynamics(model, constraints, q, v, a, ~passive, minimize,
                                                         passive_effort=tau)
        check_equations(model, constraints, q, v, a, got[minimize].effort, got[minimize].multipliers)
        np.testing.assert_array_equal(got[minimize].effort[:, passive], tau[:, passive])
        back = rbd.constrained_forward_dynamics(model, constraints, q, v, got[minimize].effort)
        assert_close(back.acceleration, a, 1e-7, "acceleration")
    norms = {key: np.linalg.norm(value.effort[:, ~passive], axis=-1) for key, value in got.items()}
    assert (norms["effort"] <= norms["multipliers"] * (1.0 + 1e-9)).all()
    single = rbd.constrained_inverse_dynamics(model, constraints, q[0], v[0], a[0], ~passive, "effort", None, tau[0])
    assert_close(single.effort, got["effort"].effort[0], 1e-10)


@pytest.mark.parametrize("name", NAMES)
def test_hybrid(name):
    """Any mask: where the accelerations come from a motion that exists, hybrid dynamics finds it."""
    model, constraints, _ = closed(name)
    q, v, a, tau = consistent_states(name)
    rng = np.random.default_rng(5)
    for share in (0.0, 0.2, 0.6, 1.0):
        mask = rng.random(model.nv) < share
        got = rbd.constrained_hybrid_dynamics(model, constraints, q, v, a, tau, mask)
        check_equations(model, constraints, q, v, got.acceleration, got.effort, got.multipliers)
        np.testing.assert_array_equal(got.acceleration[:, mask], a[:, mask])
        np.testing.assert_array_equal(got.effort[:, ~mask], tau[:, ~mask])
        if share == 0.0:
            forward = rbd.constrained_forward_dynamics(model, constraints, q, v, tau)
            np.testing.assert_allclose(got.acceleration, forward.acceleration, rtol=1e-12, atol=1e-12)
        if share == 1.0:
            np.testing.assert_array_equal(got.acceleration, a)
            assert not got.rank.any()


def test_hybrid_redundant_efforts():
    """m > n_v: least constraint forces, or least efforts, at one motion (K §3.3)."""
    model, constraints, _ = closed("stewart")
    q, v, a, tau = (x[:50] for x in consistent_states("stewart"))
    legs = [name for name in model.joint_names if name != "platform_joint"]
    results = {}
    for minimize in ("multipliers", "effort"):
        results[minimize] = got = rbd.constrained_hybrid_dynamics(model, constraints, q, v, a, tau, legs,
                                                                  minimize=minimize)
        check_equations(model, constraints, q, v, got.acceleration, got.effort, got.multipliers)
        assert_close(got.acceleration, a, 1e-9)
    small, large = results["multipliers"], results["effort"]
    assert (np.linalg.norm(small.multipliers, axis=1) < np.linalg.norm(large.multipliers, axis=1)).all()
    assert (np.linalg.norm(large.effort[:, 6:], axis=1) < np.linalg.norm(small.effort[:, 6:], axis=1)).all()
