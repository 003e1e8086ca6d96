"""Partials of V, V̇ and F of every link: complex step, the efforts' derivatives, one joint by hand."""

import numpy as np
import pytest
from support import complex_step
from support.robots import assert_close, load, random_state, random_states
from support.trees import TYPES, mimic_tree, random_tree

import rbd_ros as rbd

TREES = {"all": {"kinds": list(TYPES)}, "all on a floating root": {"kinds": list(TYPES)[::-1], "root": "floating"},
         "spherical": {"kinds": ["spherical", "cam", "spherical_exponential", "planar"]}}
MODELS = {name: lambda i=i, name=name: random_tree(50 + i, **TREES[name]) for i, name in enumerate(TREES)} | {
    "mimic": mimic_tree, "panda": lambda: load("panda_description/panda")}


def parts(found):
    """Nine arrays: ∂V, ∂V̇, ∂F by q, v, a each."""
    return [part for partials in found for part in partials]


@pytest.mark.parametrize("name", MODELS)
def test_partials_by_complex_step(name):
    model = MODELS[name]()
    one = np.eye(model.nv)
    for seed in range(2):
        q, v, a = random_state(model, seed)
        F = None if seed == 0 else np.random.default_rng(seed).normal(size=(len(model.body_names), 6))
        found = rbd.body_derivatives(model, q, v, a, F)
        arguments = (q, complex_step.tangents(model, q)), (v, one), (a, one)
        functions = (lambda *x: complex_step.body_motions(model, *x)[0],
                     lambda *x: complex_step.body_motions(model, *x)[1],
                     lambda *x, F=F: complex_step.joint_wrenches(model, *x, F))
        for got, function, what in zip(found, functions, ("V", "V̇", "F"), strict=True):
            for part, want, by in zip(got, complex_step.columns(function, *arguments), "qva", strict=True):
                largest = max(np.abs(other).max() for other in got)
                np.testing.assert_allclose(part.reshape(-1, model.nv), want, atol=1e-10 * max(largest, 1.0), rtol=0,
                                           err_msg=f"∂{what}/∂{by}, seed {seed}")


def test_the_references_are_the_public_values():
    model = MODELS["all"]()
    q, v, a = random_state(model, 3)
    assert_close(complex_step.body_motions(model, q, v, a)[0].real.reshape(-1, 6), rbd.body_velocities(model, q, v),
                 1e-13)
    assert_close(complex_step.body_motions(model, q, v, a)[1].real.reshape(-1, 6),
                 rbd.body_accelerations(model, q, v, a), 1e-13)
    assert_close(complex_step.joint_wrenches(model, q, v, a).real.reshape(-1, 6), rbd.joint_wrenches(model, q, v, a),
                 1e-13)


def test_a_batch_is_state_by_state():
    model = MODELS["all"]()
    states = random_states(model, 3, 7)
    F = np.random.default_rng(1).normal(size=(3, len(model.body_names), 6))
    together = parts(rbd.body_derivatives(model, *states, F))
    for i, state in enumerate(zip(*states, strict=True)):
        for whole, part in zip(together, parts(rbd.body_derivatives(model, *state, F[i])), strict=True):
            np.testing.assert_array_equal(whole[i], part)


def test_wrenches_along_the_axes_are_the_efforts():
    """Without rotors Sᵀ ∂F is ∂τ; the acceleration's partial by a is the Jacobian, as that of V by v."""
    model = rbd.sample("iiwa").with_(armature=0.0)
    q, v, a = random_state(model, 2)
    found = rbd.body_derivatives(model, q, v, a)
    efforts = rbd.inverse_dynamics_derivatives(model, q, v, a)
    for joint in model.joints:
        axis = rbd.jacobian(model, q, joint.child)[:, joint.idx_v]
        for got, want in zip(found.wrench, efforts, strict=True):
            assert_close(axis @ got[model.body_index(joint.child)], want[joint.idx_v], 1e-11)
    for i, body in enumerate(model.body_names):
        np.testing.assert_allclose(found.acceleration.a[i], rbd.jacobian(model, q, body), atol=1e-13)
        np.testing.assert_allclose(found.velocity.v[i], rbd.jacobian(model, q, body), atol=1e-13)
    np.testing.assert_array_equal(found.velocity.a, 0.0)


def test_a_pendulum_by_hand():
    """About y with the mass m at z = −l: F in the link's axes is m (−a) there, gravity turned along."""
    m, l, g = 1.3, 0.7, 9.81
    links = {"base": rbd.Inertia.zero(), "link": rbd.Inertia(m, np.array([0.0, 0.0, -l]), np.zeros((3, 3)))}
    joint = rbd.JointSpec("joint", "revolute", "base", "link", axis=(0.0, 1.0, 0.0))
    model = rbd.RobotModel.from_description(rbd.Description("pendulum", links, (joint,), gravity=(0.0, 0.0, -g)))
    q, v, a = 0.4, 1.7, -2.3
    found = rbd.body_derivatives(model, [q], [v], [a])
    link = model.body_index("link")
    s, c = np.sin(q), np.cos(q)
    # f = m (acceleration − g): x: −l a − g s, z: l v² + g c; moment about y: −l f_x
    for got, (fx, fz) in zip(found.wrench, ((-g * c, -g * s), (0.0, 2.0 * l * v), (-l, 0.0)), strict=True):
        np.testing.assert_allclose(got[link, :, 0], m * np.array([0.0, -l * fx, 0.0, fx, 0.0, fz]), atol=1e-14)
    base = found.wrench.a[model.body_index("base"), :, 0]    # m l (cos q, 0, −sin q) horizontally against it
    np.testing.assert_allclose(base, [0.0, m * l * l, 0.0, -m * l * c, 0.0, m * l * s], atol=1e-14)


def test_what_it_does_not_take_is_said():
    model = rbd.sample("two_link")
    with pytest.raises(rbd.RbdError, match="v has shape"):
        rbd.body_derivatives(model, [0.0, 0.0], [0.0], [0.0, 0.0])
    with pytest.raises(rbd.RbdError, match="finite"):
        rbd.body_derivatives(model, [0.0, np.nan], [0.0, 0.0], [0.0, 0.0])
