"""`friction=` of the dynamics, constrained or not: added to inverse, subtracted in forward dynamics."""

import numpy as np
import pytest
from support.closed import closed, consistent_states
from support.robots import assert_close, random_state
from support.trees import TYPES, random_tree

import rbd_ros as rbd
from rbd_ros.core.derivatives.time_derivatives import friction_series


def rough(model, seed=1):
    rng = np.random.default_rng(seed)
    model = model.with_(damping=rng.uniform(0.1, 1.0, model.nv), friction=rng.uniform(0.1, 1.0, model.nv))
    return model, rbd.joint_friction(model, 0.5, model.friction + 0.4, 0.8)


@pytest.mark.parametrize("root", ["fixed", "floating"])
def test_trees(root):
    model = random_tree(2, TYPES, root=root)
    law = rbd.Friction(0.3, 0.5, 0.9, 0.8, 0.5)
    q, v, a = random_state(model, 2)
    tau = rbd.inverse_dynamics(model, q, v, a, friction=law)
    np.testing.assert_allclose(tau, rbd.inverse_dynamics(model, q, v, a) + law.effort(v), rtol=1e-15)
    assert_close(rbd.forward_dynamics(model, q, v, tau, friction=law), a, 1e-9)
    both = rbd.forward_dynamics(model, q, v, tau, friction=law, joint_wrenches=True)
    assert_close(both.joint_wrenches, rbd.joint_wrenches(model, q, v, a), 1e-9)
    mask = np.arange(model.nv) % 2 == 0
    for more in (False, True):
        found = rbd.hybrid_dynamics(model, q, v, np.where(mask, a, 7.0), np.where(mask, 7.0, tau), mask, friction=law,
                                    joint_wrenches=more)
        assert_close(found.acceleration, a, 1e-9)
        assert_close(found.effort, tau, 1e-9)
        np.testing.assert_array_equal(found.effort[~mask], tau[~mask])
    assert_close(found.joint_wrenches, both.joint_wrenches, 1e-9)
    batch = np.stack([v, -v])
    assert rbd.inverse_dynamics(model, q, batch, a, friction=law).shape == (2, model.nv)


def test_the_law_of_a_model_is_its_friction_effort():
    model, law = rough(rbd.sample("iiwa"))
    v = np.linspace(-1.0, 1.0, 7)
    np.testing.assert_array_equal(law.effort(v), rbd.friction_effort(model, v, 0.5, model.friction + 0.4, 0.8))
    assert rbd.Friction(1.0, 2.0).breakaway == 2.0


def test_mechanisms():
    """All three give each other's results; the passive joints' friction is borne by the actuated ones."""
    model, constraints, _ = closed("five_bar")
    q, v, _, tau = (x[0] for x in consistent_states("five_bar"))
    model, law = rough(model)
    rubbed = law.effort(v)
    plain = rbd.constrained_forward_dynamics(model, constraints, q, v, tau - rubbed)
    found = rbd.constrained_forward_dynamics(model, constraints, q, v, tau, friction=law)
    np.testing.assert_allclose(found.acceleration, plain.acceleration, rtol=1e-12)
    np.testing.assert_allclose(found.multipliers, plain.multipliers, rtol=1e-12)
    a, driven = plain.acceleration, np.arange(model.nv) < 2
    for minimize in ("multipliers", "effort"):
        inverse = rbd.constrained_inverse_dynamics(model, constraints, q, v, a, ~driven, minimize, friction=law)
        again = rbd.constrained_forward_dynamics(model, constraints, q, v, inverse.effort, friction=law)
        assert_close(again.acceleration, a, 1e-8)
        hybrid = rbd.constrained_hybrid_dynamics(model, constraints, q, v, a, inverse.effort, ~driven,
                                                 minimize=minimize, friction=law)
        assert_close(hybrid.acceleration, a, 1e-8)
        assert_close(hybrid.effort, inverse.effort, 1e-8)
    # least efforts are least with friction in them
    bare = rbd.constrained_inverse_dynamics(model, constraints, q, v, a, np.ones(model.nv, bool), "effort")
    least = rbd.constrained_inverse_dynamics(model, constraints, q, v, a, np.ones(model.nv, bool), "effort",
                                             friction=law)
    assert least.effort @ least.effort < (bare.effort + rubbed) @ (bare.effort + rubbed)


@pytest.mark.parametrize("batch", [False, True], ids=["one state", "batch"])
def test_full_derivatives_are_the_directional_ones(batch):
    """By v, with friction; by everything else the same as without it at the efforts that it leaves."""
    model = random_tree(2, TYPES)
    law = rbd.Friction(0.3, 0.5, 0.9, 0.8, 0.5)
    q, v, a = random_state(model, 2)
    mask = np.arange(model.nv) % 2 == 0
    if batch:
        q, v, a = np.stack([q, q]), np.stack([v, -0.5 * v]), np.stack([a, a])
    tau = rbd.inverse_dynamics(model, q, v, a)
    for name, inputs, last in (("inverse", (a,), "a"), ("forward", (tau,), "tau"), ("hybrid", (a, tau, mask), None)):
        by = getattr(rbd, f"{name}_dynamics_derivatives")(model, q, v, *inputs, friction=law)
        for part, field in zip(by, ("q", "v", last), strict=True):
            if field is not None:
                along = [rbd.Tangent(**{field: e}) for e in np.eye(model.nv)]
                found = getattr(rbd, f"{name}_dynamics_directional")(model, q, v, *inputs, along, friction=law)
                assert_close(np.moveaxis(found, 0, -1), part, 1e-9, f"{name} by {field}")


def test_full_derivatives_of_mechanisms_are_the_directional_ones():
    model, constraints, _ = closed("five_bar")
    q, v, a, tau = (x[:2] for x in consistent_states("five_bar"))
    law = rbd.Friction(0.3, 0.5, 0.9, 0.8, 0.5)
    along = [rbd.Tangent(v=e) for e in np.eye(model.nv)]
    driven = ["left_shoulder", "right_shoulder"]
    by = rbd.constrained_forward_dynamics_derivatives(model, constraints, q, v, tau, friction=law)
    found = rbd.constrained_forward_dynamics_directional(model, constraints, q, v, tau, along, friction=law)
    for part, full in zip(found, (by.acceleration_v, by.multipliers_v), strict=True):
        assert_close(np.moveaxis(part, 0, -1), full, 1e-8)
    by = rbd.constrained_inverse_dynamics_derivatives(model, constraints, q, v, a, driven, friction=law)
    found = rbd.constrained_inverse_dynamics_directional(model, constraints, q, v, a, driven, along, friction=law)
    for part, full in zip(found, (by.effort_v, by.multipliers_v), strict=True):
        assert_close(np.moveaxis(part, 0, -1), full, 1e-8)


@pytest.mark.parametrize(("law", "word"), [
    (True, "bool"),
    (rbd.Friction(damping=np.ones(3)), "expected numbers or arrays of 7"),
    (rbd.Friction(damping=np.ones(3), coulomb=np.ones(2)), "different lengths"), (rbd.Friction([[1.0]]), "damping"),
    (rbd.Friction(coulomb=np.nan), "coulomb"),
    (rbd.Friction(stribeck_velocity=-1.0), "stribeck_velocity must be positive")])
def test_what_is_no_law_is_named(law, word):
    model = rbd.sample("iiwa")
    one = np.ones(7)
    for call in (lambda: rbd.inverse_dynamics(model, one, one, one, friction=law),
                 lambda: rbd.forward_dynamics(model, one, one, one, friction=law),
                 lambda: rbd.hybrid_dynamics(model, one, one, one, one, [], friction=law)):
        with pytest.raises(rbd.RbdError, match=word):
            call()


def test_lists_are_arrays():
    model, (q, v, a) = rbd.sample("iiwa"), random_state(rbd.sample("iiwa"), 3)
    level = np.linspace(0.1, 0.7, 7)
    laws = [rbd.Friction(made(level), made(2.0 * level), made(3.0 * level)) for made in (np.array, list, tuple)]
    for call in (lambda law: rbd.inverse_dynamics(model, q, v, a, friction=law),
                 lambda law: rbd.forward_dynamics_derivatives(model, q, v, a, friction=law).v,
                 lambda law: rbd.forward_dynamics_directional(model, q, v, a, rbd.Tangent(v=a), friction=law)):
        expected, *others = map(call, laws)
        for found in others:
            np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("what", ["x", 1j, [None] * 7, [[1.0], [1.0, 2.0]]], ids=str)
def test_what_is_no_number_is_named(what):
    model, one = rbd.sample("iiwa"), np.ones(7)
    along = rbd.Tangents(model, rbd.Tangent(v=one))
    for call in (lambda law: rbd.inverse_dynamics(model, one, one, one, friction=law),
                 lambda law: rbd.hybrid_dynamics_derivatives(model, one, one, one, one, [], friction=law),
                 lambda law: rbd.forward_dynamics_directional(model, one, one, one, along, friction=law)):
        with pytest.raises(rbd.RbdError, match=r"friction\.coulomb"):
            call(rbd.Friction(coulomb=what))


@pytest.mark.parametrize("speed", [0.0, 0.02, -0.7, 40.0])
def test_time_derivatives_of_friction_to_any_order(speed):
    """Against the Taylor coefficients of the law itself along the motion, in many digits."""
    mpmath = pytest.importorskip("mpmath")
    law = rbd.Friction(0.3, 0.5, 0.9, 0.8, 0.5)
    rates = [speed, *np.random.default_rng(4).normal(size=6)]

    def effort(t):
        v = sum(mpmath.mpf(rate) * t**k / mpmath.factorial(k) for k, rate in enumerate(rates))
        level = law.coulomb + (mpmath.mpf(law.breakaway) - law.coulomb) * mpmath.exp(-(v / law.stribeck_velocity) ** 2)
        return law.damping * v + level * mpmath.tanh(v / law.smoothing)

    with mpmath.workdps(60):
        expected = [float(c * mpmath.factorial(k)) for k, c in enumerate(mpmath.taylor(effort, 0, 6))]
    found = friction_series(law, [np.array([rate]) for rate in rates])[:, 0]
    np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-13 * np.abs(expected).max())


@pytest.mark.parametrize("root", ["fixed", "floating"])
def test_time_derivatives(root):
    """Inverse dynamics adds the friction's, forward dynamics undoes it, in batches and where a state has no answer."""
    model = random_tree(2, TYPES, root=root)
    law = rbd.Friction(0.3, 0.5, 0.9, 0.8, 0.5)
    q, v, a = random_state(model, 2)
    jerk, snap = np.random.default_rng(3).normal(size=(2, model.nv))
    tau = rbd.inverse_dynamics_time_derivatives(model, q, v, a, jerk, snap, friction=law)
    bare = rbd.inverse_dynamics_time_derivatives(model, q, v, a, jerk, snap)
    np.testing.assert_allclose(tau - bare, friction_series(law, [v, a, jerk]), rtol=1e-9, atol=1e-9 * np.abs(tau).max())
    np.testing.assert_allclose(tau[0], rbd.inverse_dynamics(model, q, v, a, friction=law), rtol=1e-12)
    back = rbd.forward_dynamics_time_derivatives(model, q, v, *tau, friction=law)
    assert_close(back, np.stack([a, jerk, snap]), 1e-8)
    batch = rbd.forward_dynamics_time_derivatives(model, np.stack([q, q]), v, *tau, friction=law)
    assert_close(batch, np.stack([back, back]), 1e-12)
    assert rbd.inverse_dynamics_time_derivatives(model, np.stack([q, q]), v, a, jerk, friction=law).shape == (
        2, 2, model.nv)
    for call in (rbd.inverse_dynamics_time_derivatives, rbd.forward_dynamics_time_derivatives):
        with pytest.raises(rbd.RbdError, match="friction: expected a Friction"):
            call(model, q, v, a, friction=1.0)
        with pytest.raises(rbd.RbdError, match="finite"):
            call(model, q, v, a, np.full(model.nv, np.nan), friction=law)
