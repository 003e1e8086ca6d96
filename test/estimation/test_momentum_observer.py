"""The observer against external efforts that are known, through the exact filter; friction, springs, wrong input."""
from __future__ import annotations

import numpy as np
import pytest
from support.robots import random_state
from support.trees import TYPES, mimic_tree, random_tree

import rbd_ros as rbd

H = 1e-3    # s


def filtered(external, gain, h=H):
    """The truth (N, nv), constant within each step, through K/(s + K)."""
    out, kept = np.zeros_like(external), np.zeros(external.shape[1])
    share = 1.0 - np.exp(-gain * h)
    for k, row in enumerate(external):
        kept = kept + share * (row - kept)
        out[k] = kept
    return out


def simulated(model, q, v, tau, external, h=H):
    """States after each step (N, …) under efforts constant within each step, by ten steps of rk4 each."""
    state = rbd.Simulator(model, step=h / 10.0, integrator="rk4", limits=False, q=q, v=v)
    states = []
    for row in tau + external:
        state.step(row, 10)
        states.append((state.q.copy(), state.v.copy()))
    return states


def observed(model, q, v, states, tau, gain, **options):
    observer = rbd.MomentumObserver(model, gain, **options)
    observer.reset(q, v)
    return np.array([observer.update(H, *state, row) for state, row in zip(states, tau, strict=True)])


def pushes(rng, n, nv):
    """Steps and ramps of external efforts, and efforts of motors that jump."""
    external, tau = np.zeros((n, nv)), np.zeros((n, nv))
    for j in range(nv):
        begin, end = np.sort(rng.integers(5, n, 2))
        external[begin:end, j] += rng.normal()
        external[n // 2:, j] += rng.normal() * np.linspace(0.0, 1.0, n - n // 2)
        tau[rng.integers(n):, j] = rng.normal()
    return external, tau


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", ["fixed", "floating", "mimic"])
def test_it_is_the_truth_through_the_filter(kind, seed):
    model = mimic_tree() if kind == "mimic" else random_tree((seed, 5)[1] + seed, count=5, root=kind)
    rng = np.random.default_rng(seed)
    q, v, _ = random_state(model, seed)
    v = 0.3 * v
    n = 60
    external, tau = pushes(rng, n, model.nv)
    states = simulated(model, q, v, tau, external)
    for gain in (25.0, 500.0):
        found = observed(model, q, v, states, tau, gain)
        exact = filtered(external, gain)
        size = max(np.abs(rbd.bias_effort(model, *state)).max() for state in states)
        assert np.abs(found - exact).max() < 1e-8 * max(1.0, size)


@pytest.mark.parametrize("kind", TYPES)
def test_every_joint_type(kind):
    model = random_tree(7, [kind, "revolute", kind], gravity=(0.0, 0.0, 0.0))
    q, v, _ = random_state(model, 1)
    external, tau = pushes(np.random.default_rng(2), 30, model.nv)
    states = simulated(model, q, 0.2 * v, tau, external)
    for gain in (100.0, 500.0):
        found = observed(model, q, 0.2 * v, states, tau, gain)
        assert np.abs(found - filtered(external, gain)).max() < 2e-8


def test_a_ramp_stays_behind_by_its_known_share():
    model, gain, slope = rbd.sample("two_link"), 200.0, np.array([3.0, -1.0])
    q, v, n = np.array([0.3, 0.5]), np.zeros(2), 300
    external = slope * (np.arange(n)[:, None] + 0.5) * H
    tau = np.tile(rbd.gravity_effort(model, q), (n, 1))
    fine = 20
    state = rbd.Simulator(model, step=H / fine, integrator="rk4", limits=False, q=q, v=v)
    states = []
    for k in range(n):
        state.step(tau[k] + slope * (k * fine + np.arange(fine)[:, None] + 0.5) * H / fine, fine)
        states.append((state.q.copy(), state.v.copy()))
    t = (1.0 + np.arange(n)[:, None]) * H
    exact = slope * (t - (1.0 - np.exp(-gain * t)) / gain)    # the continuous ramp through K/(s + K)
    found = observed(model, q, v, states, tau, gain)
    assert np.abs(found - filtered(external, gain)).max() < 2e-6
    assert np.abs(found - exact).max() < gain * H**2 / 12.0 * np.abs(slope).max() + 2e-6


def test_a_dense_reference_on_noisy_states():
    """The textbook's residual, integrated in small steps between the same samples; states need fit nothing."""
    model, gain, h = rbd.sample("iiwa"), 40.0, 2e-3
    rng = np.random.default_rng(3)
    t = np.arange(0.0, 0.2, h)
    phase = rng.uniform(0.0, 6.0, 7)
    q, v = 0.5 * np.sin(3.0 * t[:, None] + phase), 1.5 * np.cos(3.0 * t[:, None] + phase)
    tau = rng.normal(size=(len(t), 7))
    observer = rbd.MomentumObserver(model, gain)
    observer.reset(q[0], v[0])
    found = np.array([observer.update(h, *row) for row in zip(q[1:], v[1:], tau[1:], strict=True)])
    fine, r = 400, np.zeros(7)
    for k in range(1, len(t)):
        for i in range(fine):
            s = t[k - 1] + (i + 0.5) * h / fine
            x, u = 0.5 * np.sin(3.0 * s + phase), 1.5 * np.cos(3.0 * s + phase)
            # dp/dt of these states less efforts, Coriolis and gravity: what must have acted
            a = -4.5 * np.sin(3.0 * s + phase)
            external = rbd.inverse_dynamics(model, x, u, a) - tau[k]
            r += (1.0 - np.exp(-gain * h / fine)) * (external - r)
        assert np.abs(found[k - 1] - r).max() < 3e-3 * np.abs(external).max()    # of within a step the mean is known


@pytest.mark.parametrize("jump", [0.1, 10.0])
def test_positions_that_contradict_velocities_are_no_velocity(jump):
    """An encoder that jumps while the other joint moves: what is felt is the other gravity, not jump/dt squared."""
    model = rbd.sample("two_link").with_(gravity=np.zeros(3))
    observer, q, v = rbd.MomentumObserver(model, 50.0), np.array([0.3, 0.5]), np.array([0.5, 0.0])
    observer.reset(q, v)
    q = q + H * v
    before = observer.update(H, q, v, rbd.bias_effort(model, q, v))
    after = observer.update(H, q + H * v + [0.0, jump], v, rbd.bias_effort(model, q, v))
    most = np.abs(rbd.mass_matrix(model, [0.0, 0.0]) @ v).max() / H    # of a change of M as large as M
    assert np.abs(after - before).max() < (1.0 - np.exp(-50.0 * H)) * 2.0 * most


def test_friction_is_taken_off():
    model = rbd.sample("two_link").with_(damping=[0.5, 0.2], friction=[1.0, 0.4])
    law = rbd.joint_friction(model)
    q, v, n = np.array([0.3, 0.5]), np.array([1.0, -0.8]), 80
    external = np.zeros((n, 2))
    external[20:] = [2.0, -0.5]
    tau = np.tile(rbd.gravity_effort(model, q) + law.effort(v), (n, 1))
    observer = rbd.MomentumObserver(model, 50.0, friction=law)
    observer.reset(q, v)
    fine = 60
    x, u = q.copy(), v.copy()
    for k in range(n):
        for _ in range(fine):
            h = H / fine
            mid = u + 0.5 * h * rbd.forward_dynamics(model, x, u, tau[k] + external[k], friction=law)
            a = rbd.forward_dynamics(model, x + 0.5 * h * u, mid, tau[k] + external[k], friction=law)
            x, u = x + h * mid, u + h * a
        found = observer.update(H, x, u, tau[k])
    assert np.abs(found - filtered(external, 50.0)[-1]).max() < 1e-5


def test_friction_near_rest_is_uncertain_within_its_level():
    """A joint that is held by friction shows any of it; in motion nothing is uncertain; the filter is the same."""
    model = rbd.sample("two_link").with_(friction=[2.0, 1.0])
    law, q, gain = rbd.joint_friction(model), np.array([0.3, 0.5]), 40.0
    held = rbd.gravity_effort(model, q) - [1.9, -0.9]    # friction does the rest: nobody touches it
    observer = rbd.MomentumObserver(model, gain, law)
    observer.reset(q, [0.0, 0.0])
    assert not observer.friction_uncertainty.any()
    for k in range(1, 100):
        external = observer.update(H, q, [0.0, 0.0], held)
        through = 1.0 - np.exp(-gain * k * H)
        np.testing.assert_allclose(observer.friction_uncertainty, np.array([2.0, 1.0]) * through, atol=1e-12)
        np.testing.assert_allclose(external, np.array([1.9, -0.9]) * through, atol=1e-12)
        assert rbd.touched_body(model, external, 0.01, observer.friction_uncertainty) is None
    assert rbd.touched_body(model, external, 0.01) == model.joints[-1].child
    assert rbd.touched_body(model, [0.0, 1.1], 0.1, observer.friction_uncertainty) == model.joints[-1].child
    for _ in range(1000):
        observer.update(H, q, [0.5, -0.5], held)
    assert observer.friction_uncertainty.max() < 1e-12
    plain = rbd.MomentumObserver(model, gain)
    for _ in range(3):
        plain.update(H, q, [0.0, 0.0], held)
    assert not plain.friction_uncertainty.any()


@pytest.mark.parametrize("way", ["springs", "motors"])
def test_elastic_joints(way):
    model = rbd.sample("two_link")
    drive = rbd.SeriesDrive(rbd.SeriesSpring([800.0]), motor=rbd.Motor(rotor_inertia=1e-4, gear_ratio=100.0))
    arm = rbd.Actuation(model, {"shoulder": drive, "elbow": drive})
    plant = rbd.ElasticSimulator(arm, step=2e-5, integrator="rk4", q=[0.3, 0.5], limits=False)
    n, gain = 100, 100.0
    body, moment = model.body_names[-1], np.array([4.0, 4.0, 4.0, 0.0, 0.0, 0.0])
    external = np.zeros((n, 2))
    external[25:] = rbd.jacobian(model, plant.q, body).T @ moment    # the axes are parallel, so it is the same anywhere
    command = rbd.gravity_effort(model, [0.3, 0.5])
    rotor = 1e-4 * 100.0**2
    observer = rbd.MomentumObserver(model if way == "springs" else model.with_(armature=rotor), gain)
    observer.reset(plant.q, plant.v, **({} if way == "springs" else {"motor_velocity": plant.motor_velocity}))
    found = []
    for k in range(n):
        spring = []
        for _ in range(50):
            plant.step(command, 1, {body: moment} if k >= 25 else None)
            spring.append(800.0 * (plant.motor_position - plant.q))
        if way == "springs":
            found.append(observer.update(H, plant.q, plant.v, np.mean(spring, axis=0)))
        else:
            found.append(observer.update(H, plant.q, plant.v, command, motor_velocity=plant.motor_velocity))
    tolerance = 5e-2 if way == "springs" else 1e-7    # the mean of the springs is that of 50 samples
    assert np.abs(np.array(found) - filtered(external, gain)).max() < tolerance


def test_the_first_update_takes_the_state_and_reset_forgets():
    model = rbd.sample("two_link")
    observer = rbd.MomentumObserver(model)
    assert not observer.update(H, [0.3, 0.5], [1.0, 2.0], [100.0, 0.0]).any()
    assert observer.update(H, [0.3, 0.5], [1.0, 2.0], [100.0, 0.0]).any()
    assert observer.external_effort.any()
    observer.reset([0.0, 0.0], [0.0, 0.0])
    assert not observer.external_effort.any()
    observer.external_effort[:] = 5.0    # a copy
    assert not observer.external_effort.any()


def test_steps_of_any_length():
    """At rest against something: exact at any dt."""
    model, q = rbd.sample("two_link"), np.array([0.3, 0.5])
    tau = rbd.gravity_effort(model, q) + np.array([3.0, -1.0])
    observer, t = rbd.MomentumObserver(model, 20.0), 0.0
    observer.reset(q, [0.0, 0.0])
    for dt in np.random.default_rng(0).uniform(1e-4, 0.05, 50):
        t += dt
        np.testing.assert_allclose(observer.update(float(dt), q, [0.0, 0.0], tau),
                                   np.array([-3.0, 1.0]) * (1.0 - np.exp(-20.0 * t)), atol=1e-12)


@pytest.mark.parametrize(("wrong", "words"), [
    ({"dt": 0.0}, "dt"), ({"dt": -1.0}, "dt"), ({"dt": np.nan}, "dt"), ({"dt": 2.0}, "gap"),
    ({"q": [0.0, np.nan]}, "q"), ({"v": [np.inf, 0.0]}, "v"), ({"tau": [np.nan, 0.0]}, "tau"),
    ({"tau": [1.0]}, "tau"), ({"q": np.zeros((3, 2))}, "one state"), ({"v": "fast"}, "v"),
    ({"motor_velocity": [np.nan, 0.0]}, "motor_velocity"), ({"v": [1e200, 0.0]}, "overflow|finite|large")])
def test_wrong_input_changes_nothing(wrong, words):
    model = rbd.sample("two_link")
    observers = [rbd.MomentumObserver(model) for _ in range(2)]
    good = {"dt": H, "q": [0.3, 0.5], "v": [0.1, 0.2], "tau": [1.0, 2.0]}
    for observer in observers:
        observer.update(**good)
        observer.update(**good)
    with pytest.raises(rbd.RbdError, match=words):
        observers[0].update(**{**good, **wrong})
    np.testing.assert_array_equal(*(observer.update(**good) for observer in observers))


def test_efforts_that_overflow_change_nothing():
    model, q, rest = rbd.sample("two_link"), [0.3, 0.5], [0.0, 0.0]
    observer = rbd.MomentumObserver(model, 1e4)
    observer.reset(q, rest)
    before = observer.update(H, q, rest, [1.7e308, 0.0])
    with pytest.raises(rbd.RbdError, match=r"external_effort\[0\] of joint 'shoulder' would not be finite"):
        observer.update(H, q, rest, [-1.7e308, 0.0])
    np.testing.assert_array_equal(observer.external_effort, before)
    for _ in range(100):
        observer.update(H, q, rest, rbd.gravity_effort(model, q))
    assert np.abs(observer.external_effort).max() < 1e-9


@pytest.mark.parametrize("gain", [0.0, -1.0, np.nan, [1.0], [1.0, 2.0, 3.0], "fast", [1.0, np.inf]])
def test_wrong_gains(gain):
    if gain == [1.0]:
        return    # one number for all
    with pytest.raises(rbd.RbdError, match="gain: expected"):
        rbd.MomentumObserver(rbd.sample("two_link"), gain)
