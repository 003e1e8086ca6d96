"""`friction=` of the dynamics, constrained or not: added to inverse, subtracted in forward dynamics."""

import dataclasses

import numpy as np
import pytest
from support.closed import closed, consistent_states
from support.robots import assert_close, random_state
from support.trees import TYPES, random_tree

import rbd_ros as rbd
from rbd_ros.core.derivatives.time_derivatives import friction_series
from rbd_ros.core.dynamics.friction import LOAD_SMOOTHING


PLAIN = rbd.Friction(0.3, 0.5, 0.9, 0.8, 0.5)
DRIVE = rbd.Friction(0.3, 0.5, 0.9, 0.8, 0.5, asymmetry=-0.4, viscous_asymmetry=0.2, load=0.3)
LAWS = pytest.mark.parametrize("law", [PLAIN, DRIVE], ids=["plain", "drive"])


def rough(model, seed=1):
    rng = np.random.default_rng(seed)
    model = model.with_(damping=rng.uniform(0.1, 1.0, model.nv), friction=rng.uniform(0.1, 1.0, model.nv))
    return model, rbd.joint_friction(model, 0.5, model.friction + 0.4, 0.8)


@LAWS
@pytest.mark.parametrize("root", ["fixed", "floating"])
def test_trees(root, law):
    model = random_tree(2, TYPES, root=root)
    q, v, a = random_state(model, 2)
    tau, bare = rbd.inverse_dynamics(model, q, v, a, friction=law), rbd.inverse_dynamics(model, q, v, a)
    np.testing.assert_allclose(tau, bare + law.effort(v, bare), rtol=1e-14)
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


def test_mechanisms_whose_friction_depends_on_the_load():
    """The load is what a joint carries in the mechanism: all functions give each other's results, and the motion is
    that without friction under what it leaves of the efforts.
    """
    model, constraints, _ = closed("five_bar")
    q, v, _, tau = (x[0] for x in consistent_states("five_bar"))
    plain = rbd.constrained_forward_dynamics(model, constraints, q, v, DRIVE.remove(v, tau))
    found = rbd.constrained_forward_dynamics(model, constraints, q, v, tau, friction=DRIVE)
    for part, expected in zip(found, plain, strict=True):
        np.testing.assert_allclose(part, expected, rtol=1e-12)
    a, driven = plain.acceleration, np.arange(model.nv) >= 2
    for given in (np.zeros(model.nv), tau):
        inverse = rbd.constrained_inverse_dynamics(model, constraints, q, v, a, driven, passive_effort=given,
                                                   friction=DRIVE)
        A = rbd.constraint_jacobian(model, constraints, q)
        carried = rbd.inverse_dynamics(model, q, v, a) - A.T @ inverse.multipliers
        assert_close(inverse.effort, carried + DRIVE.effort(v, carried), 1e-9)
        again = rbd.constrained_forward_dynamics(model, constraints, q, v, inverse.effort, friction=DRIVE)
        assert_close(again.acceleration, a, 1e-8)
        hybrid = rbd.constrained_hybrid_dynamics(model, constraints, q, v, a, inverse.effort, driven, friction=DRIVE)
        assert_close(hybrid.acceleration, a, 1e-8)
        assert_close(hybrid.effort, inverse.effort, 1e-8)
    with pytest.raises(rbd.RbdError, match="least efforts"):
        rbd.constrained_inverse_dynamics(model, constraints, q, v, a, driven, "effort", friction=DRIVE)


@LAWS
@pytest.mark.parametrize("batch", [False, True], ids=["one state", "batch"])
def test_full_derivatives_are_the_directional_ones(batch, law):
    """By v, with friction; by everything else the same as without it at the efforts that it leaves."""
    model = random_tree(2, TYPES)
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


@LAWS
def test_full_derivatives_of_mechanisms_are_the_directional_ones(law):
    model, constraints, _ = closed("five_bar")
    q, v, a, tau = (x[:2] for x in consistent_states("five_bar"))
    along = [rbd.Tangent(v=e) for e in np.eye(model.nv)]
    driven = ["left_shoulder", "right_shoulder"]
    by = rbd.constrained_forward_dynamics_derivatives(model, constraints, q, v, tau, friction=law)
    found = rbd.constrained_forward_dynamics_directional(model, constraints, q, v, tau, along, friction=law)
    for part, full in zip(found, (by.acceleration_v, by.multipliers_v), strict=True):
        assert_close(np.moveaxis(part, 0, -1), full, 1e-8)
    found = rbd.constrained_forward_dynamics_directional(model, constraints, q, v, tau, [
        rbd.Tangent(tau=e) for e in np.eye(model.nv)], friction=law)
    assert_close(np.moveaxis(found.acceleration, 0, -1), by.acceleration_tau, 1e-8)
    found = rbd.constrained_hybrid_dynamics_directional(model, constraints, q, v, a, tau, [], along, friction=law)
    assert_close(np.moveaxis(found.acceleration, 0, -1), by.acceleration_v, 1e-8)
    by = rbd.constrained_inverse_dynamics_derivatives(model, constraints, q, v, a, driven, friction=law)
    found = rbd.constrained_inverse_dynamics_directional(model, constraints, q, v, a, driven, along, friction=law)
    for part, full in zip(found, (by.effort_v, by.multipliers_v), strict=True):
        assert_close(np.moveaxis(part, 0, -1), full, 1e-8)
    h, still = 1e-6, rbd.constrained_inverse_dynamics
    for field, full in (("v", by.effort_v), ("a", by.effort_a)):
        for c, e in enumerate(h * np.eye(model.nv)):
            ends = [still(model, constraints, q, v + s * e * (field == "v"), a + s * e * (field == "a"), driven,
                          friction=law, check_acceleration=False).effort for s in (1.0, -1.0)]
            assert_close((ends[0] - ends[1]) / (2.0 * h), full[..., c], 1e-5)


def test_directional_derivatives_of_mechanisms_by_the_law_and_the_load():
    """Of all that a joint's friction depends on, by differences, passive joints with efforts of their own included."""
    model, constraints, _ = closed("five_bar")
    q, v, a, tau = (x[0] for x in consistent_states("five_bar"))
    rng = np.random.default_rng(5)
    names, driven = [field.name for field in dataclasses.fields(DRIVE)], np.arange(model.nv) >= 2
    law = rbd.Friction(*(np.full(model.nv, getattr(DRIVE, name)) for name in names))
    change = rng.uniform(-0.1, 0.1, size=(len(names), model.nv))
    dv, da, dtau = rng.normal(size=(3, model.nv))
    tangent = rbd.Tangent(v=dv, a=da, tau=dtau, friction={
        name: dict(zip(names, change[:, [j]], strict=True)) for j, name in enumerate(model.joint_names)})
    options = {"check_acceleration": False}

    def results(s):
        other = rbd.Friction(*(getattr(law, name) + s * x for name, x in zip(names, change, strict=True)))
        x, y, z = v + s * dv, a + s * da, tau + s * dtau
        return [*rbd.constrained_forward_dynamics(model, constraints, q, x, z, friction=other)[:2],
                *rbd.constrained_hybrid_dynamics(model, constraints, q, x, y, z, driven, friction=other)[:3],
                *rbd.constrained_inverse_dynamics(model, constraints, q, x, y, driven, passive_effort=z,
                                                  friction=other, **options)[:2]]

    found = [*rbd.constrained_forward_dynamics_directional(model, constraints, q, v, tau, tangent, friction=law),
             *rbd.constrained_hybrid_dynamics_directional(model, constraints, q, v, a, tau, driven, tangent,
                                                          friction=law),
             *rbd.constrained_inverse_dynamics_directional(model, constraints, q, v, a, driven, tangent,
                                                           passive_effort=tau, friction=law, **options)]
    for part, ahead, behind in zip(found, results(1e-5), results(-1e-5), strict=True):
        assert_close(part, (ahead - behind) / 2e-5, 1e-6)
    with pytest.raises(rbd.RbdError, match="'load'"):
        rbd.constrained_inverse_dynamics_directional(model, constraints, q, v, a, driven, tangent, "effort",
                                                     friction=PLAIN)


@pytest.mark.parametrize(("law", "word"), [
    (True, "bool"),
    (rbd.Friction(damping=np.ones(3)), "expected numbers or arrays of 7"),
    (rbd.Friction(damping=np.ones(3), coulomb=np.ones(2)), "different lengths"), (rbd.Friction([[1.0]]), "damping"),
    (rbd.Friction(coulomb=np.nan), "coulomb"),
    (rbd.Friction(stribeck_velocity=-1.0), "stribeck_velocity must be positive"),
    (rbd.Friction(load=1.0), "load must be"), (rbd.Friction(load=-0.1), "load must be"),
    (rbd.Friction(coulomb=1.0, asymmetry=-1.1), r"friction\.asymmetry .* coulomb"),
    (rbd.Friction(coulomb=1.0, breakaway=0.5, asymmetry=0.7), r"friction\.asymmetry .* coulomb"),
    (rbd.Friction(damping=0.1, viscous_asymmetry=0.2), r"friction\.viscous_asymmetry .* damping")])
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


@LAWS
@pytest.mark.parametrize("speed", [0.0, 0.02, -0.7, 40.0])
def test_time_derivatives_of_friction_to_any_order(speed, law):
    """Against the Taylor coefficients of the law itself along the motion, in many digits."""
    mpmath = pytest.importorskip("mpmath")
    rates, efforts = np.random.default_rng(4).normal(size=(2, 7))
    rates[0] = speed

    def effort(t):
        v, tau = (sum(mpmath.mpf(x) * t**k / mpmath.factorial(k) for k, x in enumerate(of)) for of in (rates, efforts))
        level = law.coulomb + (mpmath.mpf(law.breakaway) - law.coulomb) * mpmath.exp(-(v / law.stribeck_velocity) ** 2)
        level += law.load * mpmath.sqrt(tau**2 + mpmath.mpf(LOAD_SMOOTHING)**2)
        direction = mpmath.tanh(v / law.smoothing)
        return (law.damping + law.viscous_asymmetry * direction) * v + (level + law.asymmetry * direction) * direction

    with mpmath.workdps(60):
        expected = [float(c * mpmath.factorial(k)) for k, c in enumerate(mpmath.taylor(effort, 0, 6))]
    found = friction_series(law, rates[:, None], efforts[:, None])[:, 0]
    np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-13 * np.abs(expected).max())


@LAWS
@pytest.mark.parametrize("root", ["fixed", "floating"])
def test_time_derivatives(root, law):
    """Inverse dynamics adds the friction's, forward dynamics undoes it, in batches and where a state has no answer."""
    model = random_tree(2, TYPES, root=root)
    q, v, a = random_state(model, 2)
    jerk, snap = np.random.default_rng(3).normal(size=(2, model.nv))
    tau = rbd.inverse_dynamics_time_derivatives(model, q, v, a, jerk, snap, friction=law)
    bare = rbd.inverse_dynamics_time_derivatives(model, q, v, a, jerk, snap)
    assert_close(tau - bare, friction_series(law, [v, a, jerk], bare), 1e-9)
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


def random_laws(count, rng):
    """Many laws, at the edges of what is allowed too."""
    d, c = rng.uniform(0.0, 3.0, size=(2, count))
    return rbd.Friction(d, c, c + rng.uniform(0.0, 2.0, count), rng.uniform(0.05, 1.0, count),
                        rng.uniform(1e-3, 0.5, count), c * rng.choice([-1.0, 0.3, 1.0], count),
                        d * rng.choice([-1.0, 0.5, 1.0], count), rng.choice([0.0, 0.1, 0.5, 0.95], count))


def test_friction_never_drives():
    rng = np.random.default_rng(1)
    law = random_laws(400, rng)
    assert law.packed.shape == (8, 400)
    v, tau = np.zeros(400), np.zeros(400)
    for _ in range(300):    # a walk
        v, tau = 0.95 * v + 0.2 * rng.normal(size=400), 0.95 * tau + 20.0 * rng.normal(size=400)
        assert (law.effort(v, tau) * v >= -1e-14).all()
        np.testing.assert_allclose(law.effort(v, tau), law.add(v, tau) - tau, rtol=1e-12, atol=1e-12)


def test_add_and_remove_are_inverse_and_monotone():
    rng = np.random.default_rng(2)
    law = random_laws(400, rng)
    for size in (0.0, 1e-3, 0.1, 3.0, 1e6):
        v = rng.normal(size=400) * rng.choice([0.0, 1e-3, 1.0, 1e3], 400)
        tau = size * rng.normal(size=400)
        whole = law.add(v, tau)
        lost = 1e-14 * (1.0 + np.abs(whole)) / (1.0 - law.load)
        assert (np.abs(law.remove(v, whole) - tau) <= lost).all()
        assert (np.abs(law.add(v, law.remove(v, tau)) - tau) <= 1e-14 * (1.0 + np.abs(tau) + np.abs(whole))
                / (1.0 - law.load)).all()
        assert (law.gain(v, tau) > 0.0).all()
        more = tau + 0.01 * (1.0 + size)
        assert (law.add(v, more) > whole).all() and (law.remove(v, more) > law.remove(v, tau)).all()


def test_levels_by_direction_and_load():
    """In motion: c ± a, d ± e, and a share of the load, as data sheets of gears have it."""
    law = rbd.Friction(0.5, 2.0, asymmetry=0.3, viscous_asymmetry=0.1, load=0.2)
    for v, tau in ((2.0, 50.0), (2.0, -50.0), (-2.0, 50.0), (-2.0, -50.0)):
        way = np.sign(v)
        expected = (0.5 + 0.1 * way) * v + (2.0 + 0.3 * way + 0.2 * abs(tau)) * way
        assert abs(law.effort(v, tau) - expected) < 1e-3


def test_slopes_are_derivatives():
    rng = np.random.default_rng(3)
    law = random_laws(200, rng)
    v, tau = 0.3 * rng.normal(size=200), rng.normal(size=200)
    v[:5] = tau[3:8] = 0.0
    h = 1e-30
    np.testing.assert_allclose(law.slope(v, tau), law.add(v + 1j * h, tau).imag / h, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(law.gain(v, tau), law.add(v, tau + 1j * h).imag / h, rtol=1e-12)
    unloaded = dataclasses.replace(law, load=0.0)
    np.testing.assert_allclose(unloaded.curvature(v), unloaded.slope(v + 1j * h).imag / h, rtol=1e-9, atol=1e-8)
    by = law.by_parameters(v, tau)
    for i, field in enumerate(dataclasses.fields(law)):
        other = dataclasses.replace(law, **{field.name: getattr(law, field.name) + 1j * h})
        np.testing.assert_allclose(by[i], other.add(v, tau).imag / h, rtol=1e-10, atol=1e-12, err_msg=field.name)


def test_a_law_by_load_asks_for_it():
    law = rbd.Friction(coulomb=1.0, load=0.1)
    for call in (lambda: law.effort(1.0), lambda: law.slope(1.0), lambda: law.curvature(1.0),
                 lambda: law.by_parameters(1.0), lambda: friction_series(law, [np.ones(1)])):
        with pytest.raises(rbd.RbdError, match=r"friction\.load"):
            call()
    model = rbd.sample("two_link").with_(damping=0.2, friction=0.5)
    law = rbd.joint_friction(model, asymmetry=[0.1, 0.0], viscous_asymmetry=0.1, load=[0.1, 0.2])
    assert law.packed[5:, 0].tolist() == [0.1, 0.1, 0.1] and law.load[1] == 0.2
    with pytest.raises(rbd.RbdError, match="different lengths"):
        rbd.joint_friction(model, load=[0.1] * 3)
