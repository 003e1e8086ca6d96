"""Spatial inertia, momentum, articulated bodies, operational space: against matrices, identities, singular poses."""

import numpy as np
import pytest
from support.bodies import inertial_wrenches, tree_of
from support.robots import assert_close, random_state, random_states
from support.trees import TYPES, mimic_tree, random_tree

import rbd_ros as rbd
from rbd_ros.core.lie import se3

MODELS = {"every joint": lambda: random_tree(4, TYPES), "floating": lambda: random_tree(5, TYPES, root="floating"),
          "locked": lambda: random_tree(
              7, ["revolute", "prismatic", "universal", "revolute"], locked={"joint1": 0.3, "joint2": [0.2, -0.4]})}
each_model = pytest.mark.parametrize("kind", MODELS)


@each_model
def test_inertias_and_momenta_are_those_of_the_energy_and_of_the_whole(kind):
    model = MODELS[kind]()
    q, v, _ = random_state(model, 1)
    V, inertias, momenta = rbd.body_velocities(model, q, v), rbd.spatial_inertias(model), rbd.body_momenta(model, q, v)
    rotors = 0.5 * model.armature @ v**2
    assert 0.5 * np.einsum("bi,bi", V, momenta) + rotors == pytest.approx(rbd.kinetic_energy(model, q, v), rel=1e-12)
    np.testing.assert_allclose(momenta, np.einsum("bij,bj->bi", inertias, V), rtol=1e-13, atol=1e-13)
    if kind == "floating":    # no link is fixed to the world
        T = rbd.forward_kinematics(model, q)
        world = np.array([se3.Ad(np.linalg.inv(pose)).T @ L for pose, L in zip(T, momenta, strict=True)]).sum(axis=0)
        world[:3] -= np.cross(rbd.center_of_mass(model, q), world[3:])
        assert_close(world, rbd.centroidal_momentum(model, q, v), 1e-12)


def dense_articulated_bodies(model, q, v, tau, outside, held, a):
    """K Tables 3 and 4 with matrices: S and η of joints from Jacobians and accelerations of the links."""
    above, names = tree_of(model)
    T, V, nb = rbd.forward_kinematics(model, q), rbd.body_velocities(model, q, v), len(model.body_names)
    velocity_part = rbd.body_accelerations(model, q, v, 0.0 * v)
    J = np.array([rbd.jacobian(model, q, body) for body in model.body_names])
    inertia, bias = rbd.spatial_inertias(model), np.zeros((nb, 6))
    for i in range(nb):
        bias[i] = -se3.ad(V[i]).T @ inertia[i] @ V[i] - outside[i]
    depth = [0] * nb
    for i in range(nb):
        h = above[i]
        while h >= 0:
            depth[i], h = depth[i] + 1, above[h]
    for i in np.argsort(depth)[:0:-1]:
        h = above[i]
        X = se3.Ad(np.linalg.inv(T[i]) @ T[h])    # Ad_{T⁻¹}
        joint = next((joint for joint in model.joints if joint.name == names[i]), None)
        part = slice(joint.idx_v, joint.idx_v + joint.nv) if joint else slice(0, 0)
        S = (J[i] - X @ J[h])[:, part]
        eta = velocity_part[i] - X @ velocity_part[h]
        force = bias[i] + inertia[i] @ (eta + S[:, held[part]] @ a[part][held[part]])
        free = S[:, ~held[part]]
        Psi = np.linalg.inv(free.T @ inertia[i] @ free + np.diag(model.armature[part][~held[part]]))
        U = inertia[i] @ free
        bias[h] += X.T @ (force + U @ Psi @ (tau[part][~held[part]] - free.T @ force))
        inertia[h] += X.T @ (inertia[i] - U @ Psi @ U.T) @ X
    return inertia, bias


@each_model
@pytest.mark.parametrize("seed", range(3))
def test_articulated_bodies_are_those_of_the_tables(kind, seed):
    model = MODELS[kind]()
    q, v, tau = random_state(model, seed)
    outside = np.random.default_rng(seed).normal(size=(len(model.body_names), 6))
    held = np.arange(model.nv) % 3 == 1
    a = np.linspace(-1.0, 1.0, model.nv)
    for mask, options in ((0 * held == 1, {}), (held, {"prescribed": held, "a": a})):
        found = rbd.articulated_bodies(model, q, v, tau, outside, **options)
        inertia, bias = dense_articulated_bodies(model, q, v, tau, outside, mask, a)
        assert_close(found.inertia, inertia, 1e-11, "inertia")
        assert_close(found.bias, bias, 1e-11, "bias")
        motion = rbd.hybrid_dynamics(model, q, v, a, tau, mask, outside, joint_wrenches=True)
        T = rbd.forward_kinematics(model, q)
        accelerations = rbd.body_accelerations(model, q, v, motion.acceleration)
        accelerations[:, 3:] -= np.einsum("bji,j->bi", T[:, :3, :3], model.gravity)
        assert_close(np.einsum("bij,bj->bi", found.inertia, accelerations) + found.bias, motion.joint_wrenches, 1e-11)
    batch = rbd.articulated_bodies(model, np.stack([q, q]), v, tau, outside)
    np.testing.assert_array_equal(batch.inertia[1], rbd.articulated_bodies(model, q, v, tau, outside).inertia)


def test_a_link_at_the_end_is_its_own_articulated_body():
    model = rbd.sample("iiwa")
    q, v, tau = random_state(model, 1)
    found = rbd.articulated_bodies(model, q, v, tau)
    assert_close(found.inertia[-1], rbd.spatial_inertias(model)[-1], 1e-14)
    rest = rbd.articulated_bodies(model.with_(gravity=(0.0, 0.0, 0.0)), q, 0.0 * v, 0.0 * tau)
    np.testing.assert_array_equal(rest.bias, 0.0 * rest.bias)
    assert np.isfinite(inertial_wrenches(model, q, v, tau)).all()


def test_articulated_bodies_say_what_is_wrong():
    model = rbd.sample("iiwa")
    zero = np.zeros(7)
    with pytest.raises(rbd.RbdError, match="prescribed"):
        rbd.articulated_bodies(model, zero, zero, zero, a=zero)
    with pytest.raises(rbd.RbdError, match="prescribed"):
        rbd.articulated_bodies(model, zero, zero, zero, prescribed=["joint_1"])
    mimic = mimic_tree()
    with pytest.raises(rbd.RbdError, match=r"mimic joints \(.*independent"):
        rbd.articulated_bodies(mimic, *random_state(mimic, 1))


def with_matrices(model, q, body, frame):
    J = rbd.jacobian(model, q, body, frame)
    return J @ np.linalg.solve(rbd.mass_matrix(model, q), np.swapaxes(J, -1, -2))


@pytest.mark.parametrize("frame", ["body", "world", "aligned"])
@pytest.mark.parametrize("kind", [*MODELS, "mimic"])
def test_operational_space_by_factors_is_that_by_matrices(kind, frame):
    model = mimic_tree() if kind == "mimic" else MODELS[kind]()
    q, _, _ = random_states(model, 3, 2)
    for body in model.body_names:
        dense = with_matrices(model, q, body, frame)
        found = rbd.inverse_operational_space_inertia(model, q, body, frame)
        assert_close(found, dense, 1e-11)
        np.testing.assert_array_equal(found[1] if kind != "mimic" else 0.0, rbd.inverse_operational_space_inertia(
            model, q[1], body, frame) if kind != "mimic" else 0.0)
        if np.linalg.cond(dense).max() < 1e8:
            assert_close(rbd.operational_space_inertia(model, q, body, frame), np.linalg.inv(dense), 1e-8)


@pytest.mark.parametrize("frame", ["body", "world", "aligned"])
def test_a_wrench_moves_the_link_by_its_operational_space_inertia(frame):
    model = rbd.sample("iiwa")
    q, v, tau = random_state(model, 3)
    body, F = "link_7", np.array([0.3, -0.2, 0.5, 4.0, -3.0, 2.0])
    J, T = rbd.jacobian(model, q, body, frame), rbd.forward_kinematics(model, q)[-1]
    back = rbd.jacobian(model, q, body) @ np.linalg.pinv(J)    # twists back into the link's frame
    on_link = np.linalg.solve(back, np.eye(6)).T @ F if frame != "body" else F
    change = rbd.forward_dynamics(model, q, v, tau, {body: on_link}) - rbd.forward_dynamics(model, q, v, tau)
    assert_close(rbd.operational_space_inertia(model, q, body, frame) @ (J @ change), F, 1e-9)
    u = F / np.linalg.norm(F[3:])
    push = rbd.effective_inertia(model, q, body, 17.0 * F, frame) * (u @ J @ change)
    assert push == pytest.approx(np.linalg.norm(F[3:]), rel=1e-9) and T.shape == (4, 4)


def test_effective_inertia_of_what_one_knows():
    """A slider of 2 kg weighs 2 kg along its axis, and a body on a hinge I/r² at the end of its arm."""
    body = rbd.Inertia(2.0, np.array([0.0, 0.5, 0.0]), np.diag([0.1, 0.2, 0.3]))
    links = {"base": rbd.Inertia.zero(), "link": body, "tip": rbd.Inertia.zero()}
    tip = rbd.JointSpec("mount", "fixed", "link", "tip", position=np.array([0.0, 1.5, 0.0]))
    slider = rbd.RobotModel.from_description(rbd.Description("slider", links, (
        rbd.JointSpec("slide", "prismatic", "base", "link", axis=(1.0, 0.0, 0.0)), tip)))
    hinge = rbd.RobotModel.from_description(rbd.Description("hinge", links, (
        rbd.JointSpec("turn", "revolute", "base", "link", axis=(0.0, 0.0, 1.0), rotor_inertia=0.4), tip)))
    about = 0.3 + 2.0 * 0.25 + 0.4
    assert rbd.effective_inertia(slider, [0.2], "tip", [0, 0, 0, 5.0, 0, 0]) == pytest.approx(2.0)
    assert rbd.effective_inertia(hinge, [0.2], "tip", [0, 0, 0, 1, 0, 0]) == pytest.approx(about / 1.5**2)
    assert rbd.effective_inertia(hinge, [0.2], "tip", [0, 0, 3.0, 0, 0, 0]) == pytest.approx(about)
    assert rbd.effective_inertia(hinge, [[0.2], [0.3]], "tip", [0, 0, 1, 0, 0, 0]) == pytest.approx([about, about])
    for direction in ([0, 0, 0, 0, 1, 0], [1, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 1]):
        with pytest.raises(rbd.RbdError, match="cannot give way"):
            rbd.effective_inertia(hinge, [0.2], "tip", direction)
    with pytest.raises(rbd.RbdError, match="cannot give way"):
        rbd.effective_inertia(hinge, [0.2], "base", [0, 0, 0, 0, 0, 1])
    for wrong in (np.zeros(6), [1, 2, 3], [np.nan] * 6, "up", None):
        with pytest.raises(rbd.RbdError, match="direction"):
            rbd.effective_inertia(hinge, [0.2], "tip", wrong)


@pytest.mark.parametrize("near", [1e-1, 1e-2, 1e-3, 1e-4, 0.0])
def test_near_a_singular_pose(near):
    """The elbow of an arm nearly stretched: J M⁻¹ Jᵀ stays exact, its inverse as its condition allows, or says so."""
    model = rbd.sample("iiwa")
    q = np.array([0.3, 0.4, 0.2, near, -0.3, 0.6, 0.1])
    found = rbd.inverse_operational_space_inertia(model, q, "link_7")
    assert_close(found, with_matrices(model, q, "link_7", "body"), 1e-12)
    assert np.linalg.eigvalsh(found)[0] >= -1e-15 * np.abs(found).max()    # never indefinite
    if near == 0.0:
        with pytest.raises(rbd.RbdError, match=r"link_7.*in 5 of 6 directions.*inverse_operational_space_inertia"):
            rbd.operational_space_inertia(model, q, "link_7")
        with pytest.raises(rbd.RbdError, match=r"^state 1: body"):
            rbd.operational_space_inertia(model, np.stack([q + 0.3, q]), "link_7")
    else:
        inertia = rbd.operational_space_inertia(model, q, "link_7")
        error = np.abs(inertia @ found - np.eye(6)).max()
        assert error < 1e-15 * np.linalg.cond(found) * 10
        np.testing.assert_array_equal(inertia, inertia.T)
    assert rbd.effective_inertia(model, q, "link_7", [1, 0, 0, 0, 0, 0]) > 0.0


def test_a_link_on_few_joints_has_no_operational_space_inertia():
    model = rbd.sample("two_link")
    with pytest.raises(rbd.RbdError, match="of 6 directions"):
        rbd.operational_space_inertia(model, [0.1, 0.2], model.body_names[-1])
    with pytest.raises(rbd.RbdError, match="in 0 of 6 directions"):
        rbd.operational_space_inertia(model, [0.1, 0.2], model.body_names[0])
    with pytest.raises(rbd.RbdError, match=r"frame is .*expected one of body, world, aligned"):
        rbd.operational_space_inertia(model, [0.1, 0.2], model.body_names[-1], "tool")
