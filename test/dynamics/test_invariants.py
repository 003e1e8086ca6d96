"""What holds whatever the robot: power balance, symmetry, inverse functions, momentum, the observer's place."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.robots import assert_close, random_state
from support.samples import samples
from support.trees import random_rotation, random_tree

import rbd_ros as rbd

SEEDS = st.integers(0, 2**32 - 1)
few = settings(max_examples=samples(40), deadline=None, derandomize=True)
ROOTS = st.sampled_from(["fixed", "floating"])


@given(SEEDS, ROOTS)
@few
def test_forward_dynamics_inverts_inverse_dynamics(seed, root):
    model = random_tree(seed, root=root)
    q, v, a = random_state(model, seed)
    condition = max(1.0, np.linalg.cond(rbd.mass_matrix(model, q)) / 1e3)
    tau = rbd.inverse_dynamics(model, q, v, a)
    assert_close(rbd.forward_dynamics(model, q, v, tau), a, 1e-12 * condition * max(1.0, np.abs(tau).max()))
    assert_close(rbd.inverse_dynamics(model, q, v, rbd.forward_dynamics(model, q, v, a)), a, 1e-12 * condition)


@given(SEEDS, ROOTS)
@few
def test_inverse_dynamics_is_the_mass_matrix_times_acceleration_plus_bias(seed, root):
    model = random_tree(seed, root=root)
    q, v, a = random_state(model, seed)
    M = rbd.mass_matrix(model, q)
    assert_close(M @ a + rbd.bias_effort(model, q, v), rbd.inverse_dynamics(model, q, v, a), 1e-12)
    assert_close(rbd.bias_effort(model, q, np.zeros(model.nv)), rbd.gravity_effort(model, q), 1e-12)


@given(SEEDS, ROOTS)
@few
def test_mass_matrix_is_symmetric_positive_definite_and_gives_the_kinetic_energy(seed, root):
    model = random_tree(seed, root=root)
    q, v, _ = random_state(model, seed)
    M = rbd.mass_matrix(model, q)
    assert_close(M, M.T, 1e-15)
    assert np.linalg.eigvalsh(M)[0] > 0.0
    assert_close(rbd.kinetic_energy(model, q, v), v @ M @ v / 2, 1e-12)


def derivative(function, v=0.0, a=0.0):
    """f'(0) by central differences of order 8, with shorter steps the faster the motion."""
    h = 0.06 / (1.0 + np.abs(v).max() + np.sqrt(np.abs(a).max()))
    weights = (672, -168, 32, -3)
    return sum(w * (function(k * h) - function(-k * h)) for k, w in enumerate(weights, 1)) / (840 * h)


@given(SEEDS, ROOTS)
@few
def test_power_of_the_joints_is_the_rate_of_the_energy(seed, root):
    """dE/dt = τᵀ v along the motion that τ makes. Energy is differentiated along q ⊕ (v t + a t²/2), v + a t."""
    model = random_tree(seed, count=4, root=root)
    q, v, a = random_state(model, seed)

    def energy(t):
        x = model.integrate(q, v * t + a * t * t / 2)
        return rbd.kinetic_energy(model, x, v + a * t) + rbd.potential_energy(model, x)

    power = rbd.inverse_dynamics(model, q, v, a) @ v
    scale = max(abs(power), abs(energy(0.0)), 1.0)
    assert abs(derivative(energy, v, a) - power) < 1e-7 * scale


@given(SEEDS)
@few
def test_gravity_effort_is_the_gradient_of_the_potential_energy(seed):
    model = random_tree(seed, count=4, root="floating")
    q = model.random_configuration(seed)
    gradient = [derivative(lambda t, e=e: rbd.potential_energy(model, model.integrate(q, t * e)))
                for e in np.eye(model.nv)]
    np.testing.assert_allclose(gradient, rbd.gravity_effort(model, q), rtol=0,
                               atol=1e-8 * max(1.0, np.abs(gradient).max()))


@given(SEEDS, ROOTS)
@few
def test_jacobians_give_the_twists_and_are_consistent_with_each_other(seed, root):
    model = random_tree(seed, root=root)
    q, v, _ = random_state(model, seed)
    twists, poses = rbd.body_velocities(model, q, v), rbd.forward_kinematics(model, q)
    for k, body in enumerate(model.body_names):
        R, p = poses[k, :3, :3], poses[k, :3, 3]
        scale = max(1.0, np.abs(twists).max())
        in_body, aligned, world = (rbd.jacobian(model, q, body, frame) @ v for frame in ("body", "aligned", "world"))
        expected = np.concatenate([R @ twists[k, :3], R @ twists[k, 3:]])
        np.testing.assert_allclose(in_body, twists[k], rtol=0, atol=1e-12 * scale)
        np.testing.assert_allclose(aligned, expected, rtol=0, atol=1e-12 * scale)
        expected[3:] += np.cross(p, expected[:3])
        np.testing.assert_allclose(world, expected, rtol=0, atol=1e-11 * scale)


@given(SEEDS)
@few
def test_a_free_robot_keeps_its_momentum(seed):
    """In free fall about its own centre of mass: no gravity, no effort at the base, any effort at the joints."""
    model = random_tree(seed, count=4, root="floating").with_(gravity=(0, 0, 0))
    q, v, tau = random_state(model, seed)
    tau[:6] = 0.0
    a = rbd.forward_dynamics(model, q, v, tau)

    def momentum(t):
        h = rbd.centroidal_momentum(model, model.integrate(q, v * t + a * t * t / 2), v + a * t)
        com = rbd.center_of_mass(model, model.integrate(q, v * t + a * t * t / 2))
        return np.concatenate([h[:3] + np.cross(com, h[3:]), h[3:]])

    scale = max(1.0, np.abs(momentum(0.0)).max(), np.abs(a).max())
    assert np.abs(derivative(momentum, v, a)).max() < 1e-6 * scale


@given(SEEDS)
@few
def test_momentum_of_the_centre_of_mass_is_mass_times_its_velocity(seed):
    model = random_tree(seed, root="floating")
    q, v, _ = random_state(model, seed)
    velocity = derivative(lambda t: rbd.center_of_mass(model, model.integrate(q, v * t)), v)
    linear = rbd.centroidal_momentum(model, q, v)[3:]
    np.testing.assert_allclose(model.total_mass * velocity, linear, rtol=0, atol=1e-7 * max(1.0, np.abs(linear).max()))


@given(SEEDS, st.sampled_from([1.0, 1e5]))
@few
def test_a_robot_moved_and_turned_with_gravity_computes_the_same(seed, distance):
    """The root link mounted elsewhere, gravity turned along: efforts, masses and body-frame results are the same."""
    model = random_tree(seed)
    rng = np.random.default_rng(seed)
    R, p = random_rotation(rng), distance * rng.normal(size=3)
    old = model.description
    mount = rbd.JointSpec("mount", "fixed", "ground", "base", R, p)
    moved = rbd.RobotModel.from_description(dataclasses.replace(
        old, links={"ground": rbd.Inertia.zero(), **old.links}, joints=(mount, *old.joints), gravity=R @ old.gravity))
    q, v, a = random_state(model, seed)
    body = model.body_names[-1]
    condition = np.linalg.cond(rbd.mass_matrix(model, q))
    pairs = [(f(moved), f(model)) for f in (
        lambda m: rbd.inverse_dynamics(m, q, v, a), lambda m: rbd.mass_matrix(m, q),
        lambda m: rbd.jacobian(m, q, body), lambda m: rbd.kinetic_energy(m, q, v),
        lambda m: rbd.body_velocities(m, q, v)[-1], lambda m: rbd.body_accelerations(m, q, v, a)[-1])]
    for ours, expected in pairs:
        assert_close(ours, expected, 1e-12)
    assert_close(rbd.forward_dynamics(moved, q, v, a), rbd.forward_dynamics(model, q, v, a), 1e-13 * max(10, condition))
    turned = np.linalg.inv(np.block([[R, p[:, None]], [np.zeros(3), 1.0]])) @ rbd.forward_kinematics(moved, q)[-1]
    assert_close(turned, rbd.forward_kinematics(model, q)[-1], 1e-12 * distance)


@pytest.mark.parametrize("distance", [1.0, 1e5, 1e7])
@pytest.mark.parametrize("seed", range(10))
def test_a_floating_robot_far_from_the_origin_loses_no_digits(seed, distance):
    model = random_tree(seed, root="floating")
    q, v, a = random_state(model, seed)
    far = q.copy()
    far[:3] += distance * np.array([0.6, -0.64, 0.48])
    body = model.body_names[-1]
    condition = np.linalg.cond(rbd.mass_matrix(model, q))
    for f, bound in ((lambda x: rbd.inverse_dynamics(model, x, v, a), 1e-14),
                     (lambda x: rbd.mass_matrix(model, x), 1e-14),
                     (lambda x: rbd.jacobian(model, x, body), 1e-14),
                     (lambda x: rbd.kinetic_energy(model, x, v), 1e-14),
                     (lambda x: rbd.body_velocities(model, x, v), 1e-14),
                     (lambda x: rbd.body_accelerations(model, x, v, a), 1e-14),
                     (lambda x: rbd.forward_dynamics(model, x, v, a), 1e-15 * max(10, condition)),
                     # sums over bodies whose world positions carry rounding of that distance
                     (lambda x: rbd.centroidal_momentum(model, x, v), 1e-14 + 1e-15 * distance)):
        assert_close(f(far), f(q), bound, f"{distance:g} m away")
