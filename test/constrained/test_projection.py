"""States brought onto the manifold, and what cannot be."""

import numpy as np
import pytest
from support.closed import NAMES, SPREAD, closed, times

import rbd_ros as rbd


@pytest.mark.parametrize("name", NAMES)
def test_converges_from_perturbed_states(name):
    model, constraints, nominal = closed(name)
    rng = np.random.default_rng(1)
    q = np.array([model.integrate(nominal, rng.uniform(-1.0, 1.0, model.nv) * SPREAD[name]) for _ in range(50)])
    v = rng.normal(size=(50, model.nv))
    got = rbd.project(model, constraints, q, v)
    assert np.abs(rbd.constraint_values(model, constraints, got.q)).max() <= 1e-9
    A = rbd.constraint_jacobian(model, constraints, got.q)
    assert np.abs(times(A, got.v)).max() < 1e-11
    again = rbd.project(model, constraints, got.q, got.v)
    np.testing.assert_allclose(again.q, got.q, atol=1e-9)
    np.testing.assert_allclose(again.v, got.v, atol=1e-12)
    for joint in model.joints:
        if joint.type == "floating":
            np.testing.assert_allclose(np.linalg.norm(got.q[:, joint.idx_q + 3:joint.idx_q + 7], axis=1), 1.0)


@pytest.mark.parametrize("name", ["four_bar", "talos", "delta"])
def test_least_change_of_the_velocity(name):
    """The change is A's row space, or M⁻¹ times it: then kinetic energy is lost, never gained, by an impulse Aᵀλ."""
    model, constraints, q = closed(name)
    q = rbd.project(model, constraints, q).q
    v = np.random.default_rng(2).normal(size=model.nv)
    A, M = rbd.constraint_jacobian(model, constraints, q), rbd.mass_matrix(model, q)
    null = np.linalg.svd(A)[2][np.linalg.matrix_rank(A, 1e-8):].T
    plain = rbd.project(model, constraints, q, v).v
    weighted = rbd.project(model, constraints, q, v, mass_weighted=True).v
    for result in (plain, weighted):
        assert np.abs(A @ result).max() < 1e-11
    assert np.abs(null.T @ (plain - v)).max() < 1e-11
    assert np.abs(null.T @ M @ (weighted - v)).max() < 1e-10
    assert rbd.kinetic_energy(model, q, weighted) < rbd.kinetic_energy(model, q, v)


def test_a_heavy_link_at_the_end_of_a_light_chain():
    """Whose inertia is so near to singular that its inverse is not positive definite in floating point."""
    def link(i):
        m = 10.0 if i == 12 else 1e-6
        return (f'<link name="l{i}"><inertial><origin xyz="0.5 0 0"/><mass value="{m}"/>'
                f'<inertia ixx="{m}" iyy="{m}" izz="{m}" ixy="0" ixz="0" iyz="0"/></inertial></link>')

    joints = (f'<joint name="j{i}" type="continuous"><parent link="l{i - 1}"/><child link="l{i}"/>'
              '<origin xyz="1 0 0"/><axis xyz="0 0 1"/></joint>' for i in range(1, 13))
    model = rbd.load_urdf(f'<robot name="cable"><link name="l0"/>{"".join(map(link, range(1, 13)))}{"".join(joints)}'
                          "</robot>")
    coupled = rbd.ConstraintSet([rbd.JointCoupling({"j1": 1.0, "j2": -1.0})])
    for seed in range(20):
        q, v = np.random.default_rng(seed).normal(size=(2, model.nv))
        got = rbd.project(model, coupled, q, v, mass_weighted=True)
        assert abs(got.q[0] - got.q[1]) < 1e-12 and abs(got.v[0] - got.v[1]) < 1e-9 * np.abs(got.v).max()
        assert rbd.kinetic_energy(model, got.q, got.v) < 1.0001 * rbd.kinetic_energy(model, got.q, v)


def test_what_is_out_of_reach():
    model = rbd.sample("two_link")
    far = rbd.ConstraintSet([rbd.FixedContact("tip", kind="point", world=[2.0, 0.0, 0.0], name="far")])
    with pytest.raises(rbd.RbdError, match=r"two_link.*does not converge: far/x stays off by 1\.0"):
        rbd.project(model, far, [0.1, 0.2], np.zeros(2))
    near = rbd.ConstraintSet([rbd.LoopClosure("world", "tip", ["x", "z"], [0.6, 0.0, -0.3])])
    q, v = rbd.project(model, near, [0.1, 0.2])
    np.testing.assert_allclose(rbd.forward_kinematics(model, q)[-1, :3, 3], [0.6, 0.0, -0.3], atol=1e-12)
    assert not v.any()


def test_anchored_contacts_are_where_the_links_are():
    model, constraints, q = closed("talos")
    q = model.integrate(q, np.random.default_rng(0).normal(size=model.nv))
    for kind in ("point", "surface"):
        contacts = rbd.ConstraintSet([rbd.FixedContact(c.link, c.frame, kind) for c in constraints.constraints])
        assert np.abs(rbd.constraint_values(model, contacts, q)).max() > 0.01
        here = rbd.anchored(model, contacts, q)
        assert here.names == contacts.names
        assert np.abs(rbd.constraint_values(model, here, q)).max() < 1e-12


def test_a_batch_cannot_be_anchored():
    model, constraints, q = closed("biped")
    with pytest.raises(rbd.RbdError, match=r"one state: q has shape \(2, \d+\)"):
        rbd.anchored(model, constraints, np.stack([q, q]))
