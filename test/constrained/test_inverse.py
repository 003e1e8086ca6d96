"""Constrained inverse dynamics: unique, redundant with its optimality conditions, and under-actuated."""

import numpy as np
import pytest
from support.closed import check_equations, closed, consistent_states, terms
from support.robots import assert_close

import rbd_ros as rbd

TWO = ["left_shoulder", "right_shoulder"]
THREE = [*TWO, "left_elbow"]


@pytest.fixture(scope="module")
def five_bar():
    model, constraints, _ = closed("five_bar")
    return model, constraints, *(x[0] for x in consistent_states("five_bar")[:3])


def transposed_parts(model, constraints, q, v, actuated):
    _, _, A, _ = terms(model, constraints, q, v)
    mask = np.isin(model.velocity_names, actuated)
    return A[:, mask].T, A[:, ~mask].T, mask


def test_two_motors_are_just_enough(five_bar):
    """K eq. 58, literally."""
    model, constraints, q, v, a = five_bar
    got = rbd.constrained_inverse_dynamics(model, constraints, q, v, a, TWO)
    A_a, A_p, mask = transposed_parts(model, constraints, q, v, TWO)
    reference = rbd.inverse_dynamics(model, q, v, a)
    assert_close(got.effort[mask], reference[mask] - A_a @ np.linalg.solve(A_p, reference[~mask]), 1e-10)
    assert not got.effort[~mask].any()
    assert got.rank == 3
    for minimize in ("multipliers", "effort"):
        same = rbd.constrained_inverse_dynamics(model, constraints, q, v, a, TWO, minimize, passive_effort=np.zeros(5))
        assert_close(same.effort, got.effort, 1e-10)


def test_three_motors_with_least_constraint_forces(five_bar):
    """No other solution has smaller multipliers: λ is orthogonal to the null space of A_pᵀ (K eq. 59)."""
    model, constraints, q, v, a = five_bar
    got = rbd.constrained_inverse_dynamics(model, constraints, q, v, a, THREE)
    check_equations(model, constraints, q, v, a, got.effort, got.multipliers)
    _, A_p, _ = transposed_parts(model, constraints, q, v, THREE)
    null = np.linalg.svd(A_p)[2][2:].T
    assert np.abs(null.T @ got.multipliers).max() < 1e-10 * np.abs(got.multipliers).max()


@pytest.mark.parametrize("weights", [None, [1.0, 2.0, 5.0], [1.0, 3.0, 1.0, 2.0, 1.0]])
def test_three_motors_with_least_effort(five_bar, weights):
    """The gradient of ½ Σ w τ² along the null space vanishes, and any other multipliers cost more (K eq. 62–64)."""
    model, constraints, q, v, a = five_bar
    got = rbd.constrained_inverse_dynamics(model, constraints, q, v, a, THREE, "effort", weights)
    check_equations(model, constraints, q, v, a, got.effort, got.multipliers)
    A_a, A_p, mask = transposed_parts(model, constraints, q, v, THREE)
    w = np.ones(3) if weights is None else np.array(weights) if len(weights) == 3 else np.array(weights)[mask]
    null = np.linalg.svd(A_p)[2][2:].T
    assert np.abs((A_a @ null).T @ (w * got.effort[mask])).max() < 1e-10 * np.abs(got.effort).max()
    least = w @ got.effort[mask] ** 2
    for step in (-1e-3, 1e-3):
        other = got.effort[mask] - A_a @ null[:, 0] * step
        assert w @ other ** 2 > least
    if weights is None:    # K eq. 62
        reference = rbd.inverse_dynamics(model, q, v, a)
        part = reference[mask] - A_a @ np.linalg.pinv(A_p) @ reference[~mask]
        B = A_a @ null
        assert_close(got.effort[mask], part - B @ np.linalg.pinv(B) @ part, 1e-10)


def test_all_actuated_with_least_effort(five_bar):
    """K eq. 65, 66."""
    model, constraints, q, v, a = five_bar
    got = rbd.constrained_inverse_dynamics(model, constraints, q, v, a, np.ones(5, dtype=bool), "effort")
    M, b, A, _ = terms(model, constraints, q, v)
    lam = np.linalg.solve(A @ A.T, A @ (M @ a + b))
    assert_close(got.multipliers, lam, 1e-10)
    assert_close(got.effort, M @ a + b - A.T @ lam, 1e-10)


def test_redundant_rows_give_the_efforts_of_the_minimal_set(five_bar):
    model, constraints, q, v, a = five_bar
    every = rbd.ConstraintSet([rbd.LoopClosure("right_lower", "tool", "fixed",
                                               constraints["closure"].predecessor_frame)])
    for actuated, minimize in ((TWO, "multipliers"), (THREE, "effort")):
        minimal = rbd.constrained_inverse_dynamics(model, constraints, q, v, a, actuated, minimize)
        got = rbd.constrained_inverse_dynamics(model, every, q, v, a, actuated, minimize)
        assert_close(got.effort, minimal.effort, 1e-9)
        assert got.rank == minimal.rank


def test_passive_efforts(five_bar):
    model, constraints, q, v, a = five_bar
    passive = np.array([9.0, -0.3, 0.2, 9.0, 0.1])
    got = rbd.constrained_inverse_dynamics(model, constraints, q, v, a, TWO, passive_effort=passive)
    mask = np.isin(model.velocity_names, TWO)
    np.testing.assert_array_equal(got.effort[~mask], passive[~mask])
    check_equations(model, constraints, q, v, a, got.effort, got.multipliers)


def test_one_motor_is_too_few_and_the_message_says_so(five_bar):
    model, constraints, q, v, a = five_bar
    message = r"under-actuated.*3 of 4 .*rank.*residual [\d.]+.*Actuated: left_shoulder\."
    with pytest.raises(rbd.RbdError, match=message):
        rbd.constrained_inverse_dynamics(model, constraints, q, v, a, ["left_shoulder"])
    with pytest.raises(rbd.RbdError, match="Actuated: none"):
        rbd.constrained_inverse_dynamics(model, constraints, q, v, a, [])
    hybrid = rbd.constrained_hybrid_dynamics(model, constraints, q, v, a, np.zeros(5), ["left_shoulder"])
    check_equations(model, constraints, q, v, hybrid.acceleration, hybrid.effort, hybrid.multipliers)


def test_inconsistent_acceleration(five_bar):
    model, constraints, q, v, a = five_bar
    with pytest.raises(rbd.RbdError, match=r"contradict the constraints.*A a \+ Ȧq̇.*residual.*closure/"):
        rbd.constrained_inverse_dynamics(model, constraints, q, v, a + np.eye(5)[0], TWO)
    with pytest.raises(rbd.RbdError, match=r"prescribed at left_shoulder, left_elbow, tip.*residual|cannot be met"):
        rbd.constrained_hybrid_dynamics(model, constraints, q, v, a + 1.0, np.zeros(5), ["left_shoulder", "left_elbow",
                                                                                         "tip"])
    batch = np.array([a, a + np.eye(5)[0]])
    with pytest.raises(rbd.RbdError, match=r"state 1: .*cannot be met: rank 2 of 3"):
        rbd.constrained_hybrid_dynamics(model, constraints, q, v, batch, np.zeros(5), [*THREE])


@pytest.mark.parametrize("change, message", [
    ({"actuated": ["left_sholder"]}, "did you mean 'left_shoulder'"),
    ({"minimize": "torque"}, "multipliers, effort"),
    ({"minimize": "effort", "weights": [1.0, -1.0]}, "positive"),
    ({"minimize": "effort", "weights": [1.0]}, r"\(5,\) or \(2,\)"),
    ({"weights": [1.0, 1.0]}, "minimize='effort'"),
    ({"passive_effort": np.zeros(3)}, "passive_effort"),
    ({"a": np.full(5, np.nan)}, "finite"),
])
def test_misuse(five_bar, change, message):
    model, constraints, q, v, a = five_bar
    arguments = {"q": q, "v": v, "a": a, "actuated": TWO, **change}
    with pytest.raises(rbd.RbdError, match=message):
        rbd.constrained_inverse_dynamics(model, constraints, **arguments)


@pytest.mark.parametrize("scale", [1e-15, 1e-9, 1e9])
def test_too_few_motors_are_too_few_however_small_the_robot(five_bar, scale):
    model, constraints, q, v, a = five_bar
    model = model.with_scaled_masses(scale)
    with pytest.raises(rbd.RbdError, match="under-actuated"):
        rbd.constrained_inverse_dynamics(model, constraints, q, v, a, ["left_shoulder"])
    got = rbd.constrained_inverse_dynamics(model, constraints, q, v, a, TWO)
    forward = rbd.constrained_forward_dynamics(model, constraints, q, v, got.effort)
    np.testing.assert_allclose(forward.acceleration, a, rtol=1e-8, atol=1e-8)
