"""Changed copies of a model mean what they say: bodies, masses, gravity, rotors, locked joints; models are frozen."""

import dataclasses
import pickle

import numpy as np
import pytest
from support.robots import assert_close, build, chain, random_state
from support.trees import TYPES, random_description, random_tree

import rbd_ros as rbd
from rbd_ros.core.model.checks.conditioning import lengths

MODEL = random_tree(41, TYPES)


def test_scaled_masses_scale_efforts_but_not_rotors():
    model = random_tree(42, TYPES, rotors=False)
    q, v, a = random_state(model, 1)
    heavy = model.with_scaled_masses(2.5)
    assert_close(rbd.inverse_dynamics(heavy, q, v, a), 2.5 * rbd.inverse_dynamics(model, q, v, a), 1e-13)
    assert_close(rbd.mass_matrix(heavy, q), 2.5 * rbd.mass_matrix(model, q), 1e-13)
    assert heavy.total_mass == pytest.approx(2.5 * model.total_mass)
    q, rotors = MODEL.random_configuration(1), np.linspace(0.1, 0.5, MODEL.nv)
    change = [rbd.mass_matrix(x.with_(armature=rotors), q) - rbd.mass_matrix(x.with_(armature=0.0), q)
              for x in (MODEL, MODEL.with_scaled_masses(3.0))]
    assert_close(change[1], change[0], 1e-13)


@pytest.mark.parametrize("factor", [0.0, -1.0, np.nan, np.inf])
def test_a_mass_factor_must_be_positive(factor):
    with pytest.raises(rbd.RbdError, match="factor"):
        MODEL.with_scaled_masses(factor)


def test_armature_is_a_diagonal_of_the_mass_matrix_in_every_algorithm():
    rotors = np.linspace(0.1, 0.9, MODEL.nv)
    plain, geared = MODEL.with_(armature=0.0), MODEL.with_(armature=rotors)
    np.testing.assert_array_equal(geared.armature, rotors)
    q, v, a = random_state(MODEL, 2)
    assert_close(rbd.mass_matrix(geared, q), rbd.mass_matrix(plain, q) + np.diag(rotors), 1e-14)
    tau = rbd.inverse_dynamics(geared, q, v, a)
    assert_close(tau, rbd.inverse_dynamics(plain, q, v, a) + rotors * a, 1e-14)
    assert_close(rbd.forward_dynamics(geared, q, v, tau), a, 1e-11)
    assert_close(rbd.kinetic_energy(geared, q, v), rbd.kinetic_energy(plain, q, v) + rotors @ v**2 / 2, 1e-14)
    np.testing.assert_array_equal(MODEL.with_(armature=0.3).armature, np.full(MODEL.nv, 0.3))


def test_other_coordinates_of_a_copy():
    wide = np.linspace(1.0, 2.0, MODEL.nv)
    for name in ("damping", "friction", "velocity_limit", "effort_limit"):
        np.testing.assert_array_equal(getattr(MODEL.with_(**{name: wide}), name), wide)
        np.testing.assert_array_equal(getattr(MODEL.with_(**{name: None}), name), getattr(MODEL, name))
    with pytest.raises(rbd.RbdError, match=r"'dampening'; did you mean 'damping'"):
        MODEL.with_(dampening=1.0)
    with pytest.raises(rbd.RbdError, match="damping"):
        MODEL.with_(damping=np.ones(MODEL.nv + 1))
    with pytest.raises(rbd.RbdError, match="gravity"):
        MODEL.with_(gravity=(0, 0))


def test_with_body_changes_this_body_only():
    q, v, a = random_state(MODEL, 3)
    name = "tool3"
    heavier = MODEL.with_body(name, mass=5.0, com=(0.1, 0.2, 0.3), inertia=np.diag([0.1, 0.11, 0.12]))
    link = heavier.description.links[name]
    assert (link.mass, *link.com) == (5.0, 0.1, 0.2, 0.3)
    old = MODEL.description.links[name]
    assert_close(rbd.inverse_dynamics(heavier.with_body(name, mass=old.mass, com=old.com, inertia=old.matrix), q, v, a),
                 rbd.inverse_dynamics(MODEL, q, v, a), 1e-15)
    same = MODEL.with_body(name, mass=5.0)
    np.testing.assert_array_equal(same.description.links[name].com, old.com)
    with pytest.raises(rbd.RbdError, match=r"'tool_3'.*tool3"):
        MODEL.with_body("tool_3", mass=1.0)


def test_a_heavier_body_is_the_old_one_with_the_wrench_of_what_was_added():
    """A point mass added at the link's centre: its inertial and gravity force, as a wrench on the unchanged robot."""
    q, v, a = random_state(MODEL, 4)
    name, added = "link5", 1.7
    link, k = MODEL.description.links[name], MODEL.body_index(name)
    c = link.com
    V, dV = rbd.body_velocities(MODEL, q, v)[k], rbd.body_accelerations(MODEL, q, v, a)[k]
    R = rbd.forward_kinematics(MODEL, q)[k, :3, :3]
    acceleration = (dV[3:] + np.cross(V[:3], V[3:]) + np.cross(dV[:3], c) + np.cross(V[:3], np.cross(V[:3], c))
                    - R.T @ MODEL.gravity)
    wrench = -added * np.concatenate([np.cross(c, acceleration), acceleration])
    assert_close(rbd.inverse_dynamics(MODEL.with_body(name, mass=link.mass + added), q, v, a),
                 rbd.inverse_dynamics(MODEL, q, v, a, {name: wrench}), 1e-12)


@pytest.mark.parametrize("kind", TYPES)
def test_a_locked_joint_is_a_joint_that_does_not_move(kind):
    description = random_description(5, ["revolute", kind, "universal"])
    free = rbd.RobotModel.from_description(description)
    joint = free.joint("joint1")
    at = free.random_configuration(6)[joint.idx_q:joint.idx_q + joint.nq]
    locked = rbd.RobotModel.from_description(dataclasses.replace(description, locked={"joint1": at}))
    assert locked.nv == free.nv - joint.nv and "joint1" not in locked.joint_names
    kept_q = np.r_[0:joint.idx_q, joint.idx_q + joint.nq:free.nq]
    kept = np.r_[0:joint.idx_v, joint.idx_v + joint.nv:free.nv]
    q, v, a = random_state(locked, 7)
    full_q, full_v, full_a = np.empty(free.nq), np.zeros(free.nv), np.zeros(free.nv)
    full_q[kept_q], full_q[joint.idx_q:joint.idx_q + joint.nq] = q, at
    full_v[kept], full_a[kept] = v, a
    assert_close(rbd.inverse_dynamics(locked, q, v, a), rbd.inverse_dynamics(free, full_q, full_v, full_a)[kept], 1e-12)
    assert_close(rbd.mass_matrix(locked, q), rbd.mass_matrix(free, full_q)[np.ix_(kept, kept)], 1e-12)
    assert_close(rbd.forward_kinematics(locked, q), rbd.forward_kinematics(free, full_q), 1e-12)
    assert_close(rbd.gravity_effort(locked, q), rbd.gravity_effort(free, full_q)[kept], 1e-12)


@pytest.mark.parametrize("locked, message", [({"elbow": 0.0}, "'elbow'.*j0"), ({"j0": [0.0, 1.0]}, "'j0'.*finite"),
                                             ({"j0": np.nan}, "'j0'.*finite")])
def test_a_wrong_lock_is_named(locked, message):
    with pytest.raises(rbd.RbdError, match=message):
        chain("revolute", "prismatic", locked=locked)


def test_a_fixed_joint_cannot_be_locked():
    with pytest.raises(rbd.RbdError, match="locked joint 'mount' is fixed"):
        build([rbd.JointSpec("mount", "fixed", "base", "tool")], locked={"mount": 0.0})


def test_locking_the_source_of_a_mimic_joint_locks_both():
    joints = [rbd.JointSpec("a", "revolute", "base", "l1"),
              rbd.JointSpec("b", "revolute", "l1", "l2", mimic=("a", 2.0, 0.1)),
              rbd.JointSpec("c", "revolute", "l2", "l3")]
    model = build(joints, locked={"a": 0.3})
    free = build([dataclasses.replace(joint, mimic=None) for joint in joints])
    assert model.joint_names == ("c",)
    assert_close(rbd.forward_kinematics(model, [0.5]), rbd.forward_kinematics(free, [0.3, 0.7, 0.5]), 1e-14)
    with pytest.raises(rbd.RbdError, match=r"'b' mimics 'a'"):
        build(joints, locked={"b": 0.3})


def test_models_are_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        MODEL.nv = 3
    for name in ("gravity", "position_lower", "velocity_limit", "damping", "armature"):
        with pytest.raises(ValueError):
            getattr(MODEL, name)[0] = 1.0
    before = MODEL._block.copy()
    q, v, a = random_state(MODEL, 8)
    rbd.forward_dynamics(MODEL, q, v, rbd.inverse_dynamics(MODEL, q, v, a))
    MODEL.with_(gravity=(0, 0, 0)).with_scaled_masses(2.0)
    np.testing.assert_array_equal(MODEL._block, before)


def test_a_pickled_model_is_the_same():
    again = pickle.loads(pickle.dumps(MODEL))
    q, v, a = random_state(MODEL, 9)
    np.testing.assert_array_equal(rbd.inverse_dynamics(again, q, v, a), rbd.inverse_dynamics(MODEL, q, v, a))
    assert again.joint_names == MODEL.joint_names and again.body_names == MODEL.body_names


def test_random_configurations_stay_within_the_limits():
    model = build([rbd.JointSpec("a", "revolute", "base", "l1", lower=-0.1, upper=0.2),
                   rbd.JointSpec("b", "planar", "l1", "l2", lower=[-1.0, 2.0, -0.5], upper=[0.0, 3.0, 0.5]),
                   rbd.JointSpec("c", "spherical", "l2", "l3")])
    q = np.array([model.random_configuration(seed) for seed in range(200)])
    assert (q >= np.maximum(model.position_lower, -1.0)).all() and (q <= np.minimum(model.position_upper, 3.0)).all()
    np.testing.assert_allclose(np.linalg.norm(q[:, 4:], axis=1), 1.0, rtol=0, atol=1e-15)
    assert np.ptp(q, axis=0).min() > 0.2


@pytest.mark.parametrize(("lower", "upper"), [(5.0, np.inf), (-np.inf, -4.0), (5.0, None), (2.0, np.inf),
                                              (-1e308, 1e308), (-np.inf, 1e300), (0.5, 1e308)])
@pytest.mark.parametrize("kind", ["revolute", "prismatic"])
def test_random_configurations_with_one_limit_or_a_huge_one(kind, lower, upper):
    model = build([rbd.JointSpec("a", kind, "base", "l1", lower=lower, upper=upper)])
    q = np.array([model.random_configuration(seed)[0] for seed in range(50)])
    assert (q >= model.position_lower).all() and (q <= model.position_upper).all()
    assert 0.1 < np.ptp(q) < 7.0 and np.abs(q).max() < 12.0


def test_a_slide_that_follows_a_hinge_does_not_make_it_a_length():
    model = build([rbd.JointSpec("a", "continuous", "base", "l1"),
                   rbd.JointSpec("b", "prismatic", "l1", "l2", mimic=("a", -0.01, 0.1))])
    assert np.ptp([model.random_configuration(seed)[0] for seed in range(50)]) > 4.0
    assert not lengths(model).any()
