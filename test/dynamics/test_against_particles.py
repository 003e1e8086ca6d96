"""Joints of every type in random trees, against the virtual work of the links' particles (support/particles.py)."""

import dataclasses

import numpy as np
import pytest
from support.particles import Particles
from support.robots import assert_close, random_state
from support.trees import TYPES, random_description, random_tree

import rbd_ros as rbd

BOUND = 1e-11


def check_everything(model, seed):
    q, v, a = random_state(model, seed)
    oracle = Particles(model, q)
    tau = oracle.inverse_dynamics(v, a)
    M = oracle.mass_matrix()
    assert_close(rbd.inverse_dynamics(model, q, v, a), tau, BOUND, "inverse dynamics")
    assert_close(rbd.mass_matrix(model, q), M, BOUND, "mass matrix")
    assert_close(rbd.bias_effort(model, q, v), oracle.inverse_dynamics(v, 0 * a), BOUND, "bias")
    assert_close(rbd.kinetic_energy(model, q, v), oracle.kinetic_energy(v), BOUND, "kinetic energy")
    free = np.random.default_rng(seed).normal(size=model.nv)
    expected = np.linalg.solve(M, free - oracle.inverse_dynamics(v, 0 * a))
    assert_close(rbd.forward_dynamics(model, q, v, free), expected, BOUND * max(1.0, np.linalg.cond(M) / 1e3),
                 "forward dynamics")

    motion, partial = oracle.along(v, a), oracle.partials()
    poses, twists = rbd.forward_kinematics(model, q), rbd.body_velocities(model, q, v)
    rates = rbd.body_accelerations(model, q, v, a)
    for i, name in enumerate(model.body_names):
        T, Tdot, Tddot = motion[name]
        V = np.linalg.inv(T) @ Tdot
        dV = np.linalg.inv(T) @ Tddot - V @ V
        assert_close(poses[i], T, BOUND, f"pose of {name}")
        for X, ours in ((V, twists[i]), (dV, rates[i])):
            x = np.array([X[2, 1], X[0, 2], X[1, 0], X[0, 3], X[1, 3], X[2, 3]])
            np.testing.assert_allclose(ours, x, rtol=0, atol=BOUND * max(1.0, np.abs(x).max()))
        J = np.array([np.linalg.inv(T) @ column for column in partial[name]])
        J = np.stack([J[:, 2, 1], J[:, 0, 2], J[:, 1, 0], J[:, 0, 3], J[:, 1, 3], J[:, 2, 3]])
        np.testing.assert_allclose(rbd.jacobian(model, q, name), J, rtol=0, atol=BOUND * max(1.0, np.abs(J).max()))


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("seed", range(3))
def test_each_joint_type_between_others(kind, seed):
    """In the middle, at the tip and at the root of a branch, moving with what carries it."""
    check_everything(random_tree(seed, ["revolute", kind, "prismatic", kind]), seed)


@pytest.mark.parametrize("root", ["fixed", "floating"])
@pytest.mark.parametrize("seed", range(12))
def test_random_trees(seed, root):
    check_everything(random_tree(100 + seed, root=root), seed)


@pytest.mark.parametrize("kind", ["spherical_exponential", "spherical"])
@pytest.mark.parametrize("size", [0.0, 1e-9, 1e-4, 0.3, 3.1])
def test_rotations_of_any_size(kind, size):
    model = random_tree(7, ["universal", kind, "revolute"])
    q, v, a = random_state(model, 1)
    joint = model.joint("joint1")
    r = size * np.array([0.6, -0.64, 0.48])
    q[joint.idx_q:joint.idx_q + joint.nq] = r if joint.nq == 3 else [*(np.sin(size / 2) * r / (size or 1)),
                                                                      np.cos(size / 2)]
    tau = Particles(model, q).inverse_dynamics(v, a)
    assert_close(rbd.inverse_dynamics(model, q, v, a), tau, BOUND)


@pytest.mark.parametrize("kind", ["revolute", "prismatic", "helical"])
def test_mimic_joints_that_follow_on_other_branches(kind):
    for seed in range(4):
        kinds = ["revolute", kind, "universal", "spherical_exponential", kind, "revolute"]
        description = random_description(seed, kinds)
        joints = [dataclasses.replace(spec, mimic=("joint1", -0.7, 0.2)) if spec.name == "joint4" else
                  dataclasses.replace(spec, mimic=("joint4", 2.0, 0.1)) if spec.name == "joint5" else spec
                  for spec in description.joints]
        model = rbd.RobotModel.from_description(dataclasses.replace(description, joints=tuple(joints)))
        assert {mimic.name for mimic in model.mimics} == {"joint4", "joint5"}
        check_everything(model, seed)


@pytest.mark.parametrize("kind", TYPES)
def test_locked_joint(kind):
    """A model with a locked joint is the oracle's with a constant."""
    description = random_description(3, ["revolute", kind, "spherical_exponential", "revolute"])
    free = rbd.RobotModel.from_description(description)
    joint = free.joint("joint1")
    at = free.random_configuration(5)[joint.idx_q:joint.idx_q + joint.nq]
    model = rbd.RobotModel.from_description(dataclasses.replace(description, locked={"joint1": at}))
    assert "joint1" not in model.joint_names
    check_everything(model, 2)


def test_potential_energy_against_particles():
    for seed in range(5):
        description = random_description(seed, TYPES)
        model = rbd.RobotModel.from_description(description)
        q = model.random_configuration(seed)
        oracle = Particles(model, q)
        assert_close(rbd.potential_energy(model, q), oracle.potential_energy(set(model.body_names) - {"base"}), BOUND)
