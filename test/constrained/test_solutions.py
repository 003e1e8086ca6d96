"""General solutions, and the choices among them: internal forces, preferred efforts, least effort within limits."""

import numpy as np
import pytest
from support.closed import check_equations, closed, consistent_states, terms
from support.robots import assert_close

import rbd_ros as rbd
from rbd_ros.core.dynamics.constrained.least_effort import OutOfLimits, least_effort

ROBOTS = {"five_bar": ["left_shoulder", "right_shoulder", "left_elbow"], "stewart": None, "biped": None}


def case(name, count=4):
    model, constraints, _ = closed(name)
    mask = np.isin(model.velocity_names, ROBOTS[name]) if ROBOTS[name] else np.arange(model.nv) >= (
        6 if name == "biped" else 0)
    return model, constraints, mask, *(x[:count] for x in consistent_states(name)[:3])


@pytest.mark.parametrize("name", ROBOTS)
def test_all_solutions(name):
    """K 59, 61: every s solves the equations; N spans the null space of A_pᵀ; s = 0 is the least ‖λ‖."""
    model, constraints, mask, q, v, a = case(name)
    batch = rbd.constrained_inverse_solutions(model, constraints, q, v, a, mask)
    plain = rbd.constrained_inverse_dynamics(model, constraints, q, v, a, mask)
    assert_close(batch.effort, plain.effort, 1e-9)
    k = batch.effort_null.shape[-1]
    rng = np.random.default_rng(1)
    for i in range(len(q)):
        one = rbd.constrained_inverse_solutions(model, constraints, q[i], v[i], a[i], mask)
        A = terms(model, constraints, q[i], v[i])[2]
        null = one.multipliers_null
        assert null.shape[1] == len(A) - np.linalg.matrix_rank(A[:, ~mask], tol=1e-8) == k
        assert_close(null.T @ null, np.eye(k), 1e-12)
        assert np.abs(A[:, ~mask].T @ null).max(initial=0.0) < 1e-9
        assert np.abs(null.T @ one.multipliers).max() <= 1e-9 * np.abs(one.multipliers).max()
        for found in (one.at(rng.normal(size=k)), one.at(100.0 * rng.normal(size=k))):
            check_equations(model, constraints, q[i], v[i], a[i], found.effort, found.multipliers)
            assert not found.effort[~mask].any()
    s = rng.normal(size=(len(q), k))
    check_equations(model, constraints, q, v, a, *batch.at(s)[:2])
    moved = rbd.constrained_forward_dynamics(model, constraints, q, v, batch.at(s).effort)
    np.testing.assert_allclose(moved.acceleration, a, rtol=1e-6, atol=1e-6)    # internal forces move nothing


def test_hybrid_solutions():
    """K 70–80: three of the five-bar's joints prescribed, the constraints leave one internal force."""
    model, constraints, mask, q, v, a = case("five_bar")
    rng = np.random.default_rng(2)
    tau = rng.normal(size=q.shape)
    accelerations, all_of_them = rbd.constrained_hybrid_solutions(model, constraints, q, v, a, tau, mask)
    plain = rbd.constrained_hybrid_dynamics(model, constraints, q, v, a, tau, mask)
    np.testing.assert_array_equal(accelerations, plain.acceleration)
    assert_close(all_of_them.effort, plain.effort, 1e-7)
    found = all_of_them.at([3.0])
    check_equations(model, constraints, q, v, accelerations, found.effort, found.multipliers, 1e-8)
    np.testing.assert_array_equal(found.effort[:, ~mask], tau[:, ~mask])
    assert np.abs(found.effort - plain.effort).max() > 0.1


@pytest.mark.parametrize("name", ROBOTS)
def test_a_preferred_effort(name):
    """Σ w (τ − p)² is stationary over the null space; efforts that are possible are taken as they are."""
    model, constraints, mask, q, v, a = case(name)
    rng = np.random.default_rng(3)
    w, p = rng.uniform(0.5, 2.0, mask.sum()), 5.0 * rng.normal(size=(len(q), mask.sum()))
    got = rbd.constrained_inverse_dynamics(model, constraints, q, v, a, mask, "effort", w, preferred_effort=p)
    check_equations(model, constraints, q, v, a, got.effort, got.multipliers)
    solutions = rbd.constrained_inverse_solutions(model, constraints, q, v, a, mask)
    gradient = np.swapaxes(solutions.effort_null[:, mask], -1, -2) @ (w * (got.effort[:, mask] - p))[..., None]
    assert np.abs(gradient).max() < 1e-8 * np.abs(w * (got.effort[:, mask] - p)).max()
    possible = solutions.at(rng.normal(size=solutions.effort_null.shape[-1])).effort
    again = rbd.constrained_inverse_dynamics(model, constraints, q, v, a, mask, "effort", preferred_effort=possible)
    assert_close(again.effort, possible, 1e-8)


@pytest.mark.parametrize("name", ROBOTS)
def test_least_effort_within_limits_is_optimal(name):
    """KKT conditions, with multipliers of the limits by non-negative least squares from the gradient alone."""
    optimize = pytest.importorskip("scipy.optimize")
    model, constraints, mask, q, v, a = case(name, 6)
    free = rbd.constrained_inverse_dynamics(model, constraints, q, v, a, mask, "effort")
    solutions = rbd.constrained_inverse_solutions(model, constraints, q, v, a, mask)
    tightened = 0
    for i in range(len(q)):
        largest = np.abs(free.effort[i, mask]).max()
        other = solutions.effort[i] + solutions.effort_null[i] @ (
            0.05 * largest * np.random.default_rng(i).normal(size=solutions.effort_null.shape[-1]))
        # limits that another solution keeps, though the least one may not
        limit = np.abs(other[mask]) * 1.001 + 1e-3
        got = rbd.constrained_inverse_dynamics(model, constraints, q[i], v[i], a[i], mask, "effort",
                                               effort_limit=limit)
        tau = got.effort[mask]
        check_equations(model, constraints, q[i], v[i], a[i], got.effort, got.multipliers, 1e-8)
        assert (np.abs(tau) <= limit * (1 + 1e-9) + 1e-9 * largest).all()
        assert tau @ tau <= other[mask] @ other[mask] * (1 + 1e-9)
        B = solutions.effort_null[i, mask]
        at_limit = np.abs(tau) > limit * (1 - 1e-7)
        tightened += at_limit.any()
        outward = (np.sign(tau)[:, None] * B)[at_limit].T    # −∇ = Σ y outward, y ≥ 0
        left = np.linalg.norm(B.T @ tau)
        if at_limit.any():
            left = optimize.nnls(outward, -B.T @ tau)[1]
        assert left < 1e-7 * np.linalg.norm(tau)
    assert tightened >= 3
    wide = rbd.constrained_inverse_dynamics(model, constraints, q, v, a, mask, "effort",
                                            effort_limit=np.full(mask.sum(), np.inf))
    assert_close(wide.effort, free.effort, 1e-9)
    batch = rbd.constrained_inverse_dynamics(model, constraints, q, v, a, mask, "effort",
                                             effort_limit=np.full(model.nv, 2.0 * np.abs(free.effort).max()))
    assert_close(batch.effort, free.effort, 1e-9)
    assert_close(batch.multipliers, free.multipliers, 1e-8)


def test_random_quadratic_programmes():
    """Least efforts of random sizes, scales and degenerate B: KKT conditions; where it says there is none, a linear
    programme says so as well.
    """
    optimize = pytest.importorskip("scipy.optimize")
    none, at_limits = 0, 0
    for seed in range(400):
        rng = np.random.default_rng(seed)
        n, k, scale = int(rng.integers(1, 9)), int(rng.integers(1, 7)), 10.0 ** rng.integers(-6, 7)
        B = rng.normal(size=(n, k))
        if seed % 3 == 0:
            B[:, 0] = B[:, -1]
        if seed % 5 == 0:
            B[0] = 0.0
        c, preferred = scale * rng.normal(size=(2, n))
        root, limit = rng.uniform(0.3, 3.0, n), scale * rng.uniform(0.0, 2.0, n)
        limit[rng.random(n) < 0.2] = np.inf
        try:
            s = least_effort(c, B, root, preferred, limit, 1e-10)
        except OutOfLimits as error:
            none += 1
            bounded = np.isfinite(limit)
            slack = np.append(np.zeros(k), 1.0)    # the least by which limits must be exceeded
            rows = np.vstack([np.c_[B, -np.ones(n)][bounded], np.c_[-B, -np.ones(n)][bounded]])
            least = optimize.linprog(slack, rows, np.concatenate([limit - c, limit + c])[np.tile(bounded, 2)] / scale,
                                     bounds=[(None, None)] * k + [(0, None)])
            assert least.fun > 1e-10 and error.excess > 0.0
            continue
        tau = c + B @ s
        size = scale + np.abs(tau).max()
        assert (np.abs(tau) <= limit + 1e-9 * size).all()
        gradient = B.T @ (root**2 * (tau - preferred))
        active = np.abs(tau) > limit - 1e-9 * size
        at_limits += active.any()
        outward = (np.sign(tau)[:, None] * B)[active].T
        left = optimize.nnls(outward, -gradient)[1] if active.any() else np.linalg.norm(gradient)
        assert left < 1e-7 * size, seed
    assert none > 30 and at_limits > 100


def test_one_motor_of_three_is_weak():
    """By hand: one internal force, so the weak motor goes to its limit and the others take what is left."""
    model, constraints, mask, q, v, a = case("five_bar")
    free = rbd.constrained_inverse_dynamics(model, constraints, q[0], v[0], a[0], mask, "effort").effort
    at = int(np.flatnonzero(mask)[np.argmax(np.abs(free[mask]))])
    limit = np.full(5, np.inf)
    limit[at] = 0.9 * abs(free[at])
    got = rbd.constrained_inverse_dynamics(model, constraints, q[0], v[0], a[0], mask, "effort", effort_limit=limit)
    assert got.effort[at] == pytest.approx(np.sign(free[at]) * limit[at], rel=1e-12)
    one = rbd.constrained_inverse_solutions(model, constraints, q[0], v[0], a[0], mask)
    s = (got.effort[at] - one.effort[at]) / one.effort_null[at, 0]
    assert_close(got.effort, one.at([s]).effort, 1e-11)
    hybrid = rbd.constrained_hybrid_dynamics(model, constraints, q[0], v[0], a[0], np.zeros(5), mask,
                                             minimize="effort", effort_limit=limit)
    assert_close(hybrid.effort, got.effort, 1e-6)


def test_limits_that_cannot_be_kept_are_named():
    model, constraints, mask, q, v, a = case("five_bar")
    with pytest.raises(rbd.RbdError, match=r"five_bar.*no efforts within.*(shoulder|elbow)' beyond its limit of 0 by"):
        rbd.constrained_inverse_dynamics(model, constraints, q[0], v[0], a[0], mask, "effort", effort_limit=[0.0] * 5)
    with pytest.raises(rbd.RbdError, match=r"state 0: .*no efforts within"):
        rbd.constrained_inverse_dynamics(model, constraints, q, v, a, mask, "effort", effort_limit=np.zeros(3))
    two = ["left_shoulder", "right_shoulder"]    # no choice at all
    found = rbd.constrained_inverse_dynamics(model, constraints, q[0], v[0], a[0], two, "effort").effort
    limit = np.abs(found) * 1.01
    same = rbd.constrained_inverse_dynamics(model, constraints, q[0], v[0], a[0], two, "effort", effort_limit=limit)
    assert_close(same.effort, found, 1e-12)
    with pytest.raises(rbd.RbdError, match="no efforts within"):
        rbd.constrained_inverse_dynamics(model, constraints, q[0], v[0], a[0], two, "effort", effort_limit=0.9 * limit)


@pytest.mark.parametrize(("change", "message"), [
    ({"effort_limit": [1.0, -1.0, 1.0]}, "effort_limit: .*not negative"), ({"effort_limit": [1.0]}, "effort_limit"),
    ({"effort_limit": "model"}, "effort_limit"), ({"preferred_effort": [np.inf, 0, 0]}, "preferred_effort"),
    ({"preferred_effort": np.zeros((2, 3))}, "preferred_effort"),
    ({"effort_limit": [1.0, np.nan, 1.0]}, "effort_limit"),
    ({"minimize": "multipliers", "effort_limit": np.ones(3)}, "minimize='effort'"),
    ({"minimize": "multipliers", "preferred_effort": np.ones(3)}, "minimize='effort'")])
def test_misuse(change, message):
    model, constraints, mask, q, v, a = case("five_bar")
    with pytest.raises(rbd.RbdError, match=message):
        rbd.constrained_inverse_dynamics(model, constraints, q[0], v[0], a[0], mask,
                                         **({"minimize": "effort"} | change))
    solutions = rbd.constrained_inverse_solutions(model, constraints, q[0], v[0], a[0], mask)
    for s in ([1.0, 2.0], "x", [np.nan]):
        with pytest.raises(rbd.RbdError, match="s: expected"):
            solutions.at(s)


def test_limits_of_no_effort_at_all():
    """Nothing is actuated or prescribed: there is nothing to limit, and the limits make no difference."""
    model, constraints, _ = closed("five_bar")
    states = [x[:3] for x in consistent_states("five_bar", 3)]
    none = np.zeros(model.nv, dtype=bool)
    for q, v, a, tau in (states, [x[0] for x in states]):
        free, limited = (rbd.constrained_hybrid_dynamics(
            model, constraints, q, v, a, tau, none, minimize="effort", effort_limit=limit)
            for limit in (None, np.ones(model.nv)))
        for part, expected in zip(limited, free, strict=True):
            np.testing.assert_allclose(part, expected)


@pytest.mark.parametrize("weight", [np.inf, np.nan, 0.0, -1.0])
def test_weights_that_are_none(weight):
    model, constraints, _ = closed("five_bar")
    q, v, a, _ = (x[0] for x in consistent_states("five_bar", 3))
    with pytest.raises(rbd.RbdError, match="weights: expected"):
        rbd.constrained_inverse_dynamics(model, constraints, q, v, a, np.ones(model.nv, dtype=bool), "effort",
                                         weights=np.full(model.nv, weight))
