"""Simulated loops: drift, energy, friction and stops."""

import dataclasses

import numpy as np
import pytest
from support.closed import closed

import rbd_ros as rbd
from rbd_ros.core.simulation.simulator import Simulator


def start(name):
    model, constraints, q = closed(name)
    v = 0.3 * np.random.default_rng(0).normal(size=model.nv)
    return model, constraints, q, v


@pytest.mark.parametrize("name, integrator, energy", [
    ("four_bar", "semi_implicit", 0.02), ("four_bar", "rk4", 1e-6), ("stewart", "semi_implicit", None)])
def test_loops_stay_closed_and_energy_is_kept(name, integrator, energy):
    model, constraints, q, v = start(name)
    if name == "four_bar":
        q = q + 0.9 * np.pi * np.array([1.0, -1.0, 1.0])    # hanging
    simulator = Simulator(model, q=q, v=v, integrator=integrator, constraints=constraints, limits=False)
    # the legs hold the platform's weight, with some damping along them
    slides = np.array([name.startswith("slide") for name in model.velocity_names])
    hold = rbd.constrained_inverse_dynamics(model, constraints, simulator.q, np.zeros(model.nv), np.zeros(model.nv),
                                            slides).effort if name == "stewart" else np.zeros(model.nv)
    first = simulator.energy
    moved = 0.0
    for _ in range(1000):
        tau = hold - np.where(slides, 100.0 * simulator.v, 0.0)
        simulator.step(tau, n=1 if name == "stewart" else 2)
        moved = max(moved, np.abs(simulator.v).max())
        assert np.abs(rbd.constraint_values(model, constraints, simulator.q)).max() < 1e-8
    assert moved > 0.1
    assert np.abs(rbd.constraint_jacobian(model, constraints, simulator.q) @ simulator.v).max() < 1e-8
    assert simulator.multipliers.shape == (constraints.size,)
    if energy is not None:
        assert abs(simulator.energy - first) < energy * (1.0 + abs(first))


def test_friction_and_damping_bring_a_four_bar_to_rest():
    model, constraints, q, v = start("four_bar")
    q = q + 0.8 * np.pi * np.array([1.0, -1.0, 1.0])
    simulator = Simulator(model.with_(friction=0.1, damping=0.05), q=q, v=v, constraints=constraints)
    energy = simulator.energy
    for _ in range(150):
        simulator.step(n=10)
        assert simulator.energy < energy + 1e-9
        energy = simulator.energy
    assert np.abs(simulator.v).max() < 1e-10
    rest = simulator.q.copy()
    simulator.step(n=200)
    np.testing.assert_allclose(simulator.q, rest, atol=1e-10)


def test_a_stop_holds_the_whole_loop():
    model, constraints, q, _ = start("gripper")
    simulator = Simulator(model, q=q, constraints=constraints)
    simulator.step(0.2 * np.eye(6)[0], n=1500)
    index = model.joint("left_crank_joint").idx_q
    assert 1.0 - 1e-3 < simulator.q[index] <= 1.0    # it stops within a step of the limit
    rest = simulator.q.copy()
    simulator.step(0.2 * np.eye(6)[0], n=200)
    np.testing.assert_allclose(simulator.q, rest, atol=1e-3)
    assert np.abs(rbd.constraint_values(model, constraints, simulator.q)).max() < 1e-8


def test_the_start_is_projected():
    model, constraints, q, v = start("five_bar")
    simulator = Simulator(model, q=q + 0.05, v=v, constraints=constraints)
    assert np.abs(rbd.constraint_values(model, constraints, simulator.q)).max() < 1e-12


def test_a_start_at_a_limit_is_not_moved_beyond_it_by_closing_the_loops():
    model = rbd.sample("delta")
    joints = tuple(dataclasses.replace(joint, lower=0.0) if joint.name.startswith("motor") else joint
                   for joint in model.description.joints)
    model = rbd.RobotModel.from_description(dataclasses.replace(model.description, joints=joints))
    constraints = rbd.sample_constraints("delta", model)
    at = [model.joint(name).idx_q for name in model.joint_names if name.startswith("motor")]
    assert (rbd.project(model, constraints, model.neutral()).q[at] < 0.0).any()    # by 1e-12, and so it was refused
    simulator = Simulator(model, constraints=constraints)
    simulator.step(n=20)
    assert np.abs(rbd.constraint_values(model, constraints, simulator.q)).max() < 1e-8
    with pytest.raises(rbd.RbdError, match="starts at"):
        q = model.neutral()
        q[at] = -1e-3
        Simulator(model, constraints=constraints, q=q)
