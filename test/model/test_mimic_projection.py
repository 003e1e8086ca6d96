"""Mimic joints projected out: `q = G q_reduced + q_offset`, so `τ = Gᵀ τ_free` and `M = Gᵀ M_free G`."""

import dataclasses

import numpy as np
import pytest
from support.robots import assert_close, load, random_states, urdf_paths

import rbd_ros as rbd

ROBOTS = ["romeo_description/romeo", "talos_data/talos_full_v2", "pr2_description/pr2",
          "tiago_pro_description/tiago_pro", "baxter_description/baxter", "panda_description/panda"]
BOUND = 1e-12
each_robot = pytest.mark.parametrize("name", ROBOTS)
each_root = pytest.mark.parametrize("root", ["fixed", "floating"])

if not urdf_paths():
    pytest.skip("example-robot-data is not installed", allow_module_level=True)


def projection(reduced, free):
    """G (nv_free, nv), and the positions of the free model as a function of the reduced ones'."""
    G = np.zeros((free.nv, reduced.nv))
    followers = {mimic.name: mimic for mimic in reduced.mimics}
    for joint in free.joints:
        mimic = followers.get(joint.name)
        source = reduced.joint(mimic.source if mimic else joint.name)
        ratio = mimic.multiplier if mimic else 1.0
        G[joint.idx_v:joint.idx_v + joint.nv, source.idx_v:source.idx_v + joint.nv] = ratio * np.eye(joint.nv)

    def positions(q):
        out = np.empty((len(q), free.nq))
        for joint in free.joints:
            mimic = followers.get(joint.name)
            source = reduced.joint(mimic.source if mimic else joint.name)
            part = q[:, source.idx_q:source.idx_q + source.nq]
            out[:, joint.idx_q:joint.idx_q + joint.nq] = mimic.multiplier * part + mimic.offset if mimic else part
        return out

    return G, positions


@each_root
@each_robot
def test_projection_of_the_free_model(name, root):
    reduced, free = load(name, root=root), load(name, root=root, mimic="independent")
    assert reduced.mimics and reduced.nv == free.nv - len(reduced.mimics)
    G, positions = projection(reduced, free)
    q, v, a = random_states(reduced, 10, seed=1)
    q_free, v_free, a_free = positions(q), v @ G.T, a @ G.T
    assert_close(rbd.inverse_dynamics(reduced, q, v, a), rbd.inverse_dynamics(free, q_free, v_free, a_free) @ G, BOUND)
    assert_close(rbd.mass_matrix(reduced, q), G.T @ rbd.mass_matrix(free, q_free) @ G, BOUND)
    assert_close(rbd.kinetic_energy(reduced, q, v), rbd.kinetic_energy(free, q_free, v_free), BOUND)
    assert_close(rbd.potential_energy(reduced, q), rbd.potential_energy(free, q_free), BOUND)
    assert_close(rbd.centroidal_momentum(reduced, q, v), rbd.centroidal_momentum(free, q_free, v_free), BOUND)
    assert_close(rbd.forward_kinematics(reduced, q), rbd.forward_kinematics(free, q_free), BOUND)
    assert_close(rbd.body_accelerations(reduced, q, v, a), rbd.body_accelerations(free, q_free, v_free, a_free), BOUND)
    for body in reduced.body_names[-8:]:
        assert_close(rbd.jacobian(reduced, q, body), rbd.jacobian(free, q_free, body) @ G, BOUND, body)


@each_root
@each_robot
def test_forward_dynamics(name, root):
    model = load(name, root=root)
    q, v, tau = random_states(model, 5, seed=2)
    M = rbd.mass_matrix(model, q)
    if not np.linalg.cond(M).max() < 1e8:
        model = model.with_(armature=np.where(np.arange(model.nv) < (6 if root == "floating" else 0), 0.0, 0.01))
    a = rbd.forward_dynamics(model, q, v, tau)
    assert_close(rbd.inverse_dynamics(model, q, v, a), tau, 1e-9)
    for k in range(5):
        assert_close(rbd.forward_dynamics(model, q[k], v[k], tau[k]), a[k], 1e-9, "one state")


@each_robot
def test_what_rubs_in_followers_is_felt_at_their_source(name):
    """The power that viscous and Coulomb friction take, with the speeds of all joints: M, so to say, of the dampers."""
    rng = np.random.default_rng(4)
    free = load(name, mimic="independent")
    free = free.with_(damping=rng.uniform(0.1, 1.0, free.nv), friction=rng.uniform(0.1, 1.0, free.nv))
    reduced = rbd.RobotModel.from_description(dataclasses.replace(free.description, mimic="project"))
    G, _ = projection(reduced, free)
    v = rng.normal(size=(20, reduced.nv))
    for power in (lambda model, v: v**2 @ model.damping, lambda model, v: np.abs(v) @ model.friction):
        assert_close(power(reduced, v), power(free, v @ G.T), BOUND)
    for bare in (reduced.with_(damping=0.0, friction=2.0), reduced.with_(friction=2.0, damping=0.0)):
        assert not bare.damping.any() and (bare.friction == 2.0).all()


@each_robot
def test_against_pinocchio(name):
    pytest.importorskip("pinocchio")
    from support import pinocchio_peer

    model = load(name)
    try:
        theirs = pinocchio_peer.read(urdf_paths()[name], mimic=True)
    except ValueError as error:
        pytest.skip(f"Pinocchio does not load it with mimic joints: {error}")
    peer = pinocchio_peer.Peer(model, theirs)
    for q, v, a in zip(*random_states(model, 10, seed=3), strict=True):
        assert_close(rbd.inverse_dynamics(model, q, v, a), peer.inverse_dynamics(q, v, a), 1e-9, "inverse dynamics")
        assert_close(rbd.mass_matrix(model, q), peer.mass_matrix(q), 1e-9, "mass matrix")
        peer.update(q, v, a)
        assert_close(rbd.forward_kinematics(model, q), peer.poses(), 1e-9, "poses")
        assert_close(rbd.body_accelerations(model, q, v, a), peer.twist_derivatives(), 1e-9, "accelerations")
