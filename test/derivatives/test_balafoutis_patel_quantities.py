"""G's quantities of every link: written down from G on complex numbers, and the balance of links, G's second sweep."""

import numpy as np
import pytest
from support import complex_step
from support.robots import assert_close, load, random_state, random_states
from support.trees import TYPES, mimic_tree, random_tree

import rbd_ros as rbd
from rbd_ros.core.dynamics.balafoutis_patel import balafoutis_patel as by_recursion

MODELS = {"all": lambda: random_tree(71, list(TYPES)), "floating": lambda: random_tree(
    72, ["revolute", "spherical", "universal", "cam"], root="floating"), "mimic": mimic_tree,
    "iiwa": lambda: rbd.sample("iiwa")}


def tilde(x):
    return np.array([[0, -x[2], x[1]], [x[2], 0, -x[0]], [-x[1], x[0], 0]])


def of_g(model, q, v, a, wrenches):
    """By the names of the result, (nb, …) at complex numbers: G's forward sweep; f, η, τ from the library's kernels."""
    V, V_dot = complex_step.body_motions(model, q, v, a).reshape(2, -1, 6)
    R = complex_step.rotations(model, q)
    out = {name: [] for name in rbd.BalafoutisPatel._fields}
    for i, name in enumerate(model.body_names):
        link = model.description.links[name]
        omega, omega_dot, c = V[i, :3], V_dot[i, :3], np.asarray(link.com)
        Omega = tilde(omega_dot) + tilde(omega) @ tilde(omega)
        s = V_dot[i, 3:] + tilde(omega) @ V[i, 3:] - R[i].T @ np.asarray(model.gravity)
        r = Omega @ c + s
        J = 0.5 * np.trace(link.matrix) * np.eye(3) - np.asarray(link.matrix)
        M = Omega @ J - (Omega @ J).T
        for key, value in zip(out, (omega, omega_dot, Omega, s, r, link.mass * r,
                                    np.array([M[2, 1], M[0, 2], M[1, 0]])), strict=False):
            out[key].append(value)
    F = complex_step.joint_wrenches(model, q, v, a, wrenches).reshape(-1, 6)
    flat = None if wrenches is None else complex_step.wrenches_of(model, wrenches)
    return {key: np.array(value) for key, value in out.items()} | {
        "f": F[:, 3:], "eta": F[:, :3], "tau": complex_step.inverse_dynamics(model, q, v, a, flat)}


@pytest.mark.parametrize("name", MODELS)
def test_all_quantities_and_partials(name):
    model = MODELS[name]()
    one = np.eye(model.nv)
    q, v, a = random_state(model, 4)
    F = np.random.default_rng(1).normal(size=(len(model.body_names), 6))
    found = rbd.balafoutis_patel(model, q, v, a, F)
    values = of_g(model, q, v, a, F)
    slopes = complex_step.columns(lambda *x: np.concatenate([y.reshape(-1) for y in of_g(model, *x, F).values()]),
                                  (q, complex_step.tangents(model, q)), (v, one), (a, one))
    at = 0
    for key, got in found._asdict().items():
        assert_close(got.value, values[key].real, 1e-12, key)
        bound = 1e-10 * max(np.abs(got.q).max(), np.abs(got.v).max(), np.abs(got.a).max(), 1.0)
        for part, want, by in zip(got[1:], slopes, "qva", strict=True):
            np.testing.assert_allclose(part.reshape(-1, model.nv), want[at:at + values[key].size], atol=bound, rtol=0,
                                       err_msg=f"{key} by {by}")
        at += values[key].size
    assert at == len(slopes[0])


@pytest.mark.parametrize("name", MODELS)
def test_the_second_sweep_of_g(name):
    """f_i = F_ci + Σ A f, η_i = r~ F_ci + M_ci + Σ (A η + s~ A f) over the links behind."""
    model = MODELS[name]()
    q, v, a = random_state(model, 5)
    found = rbd.balafoutis_patel(model, q, v, a)
    T = rbd.forward_kinematics(model, q)
    f, eta = found.F_c.value.copy(), found.M_c.value + np.cross(
        [model.description.links[name].com for name in model.body_names], found.F_c.value)
    for joint in model.description.joints:
        i, j = model.body_index(joint.parent), model.body_index(joint.child)
        step = np.linalg.inv(T[i]) @ T[j]
        force = step[:3, :3] @ found.f.value[j]
        f[i] += force
        eta[i] += step[:3, :3] @ found.eta.value[j] + np.cross(step[:3, 3], force)
    assert_close(found.f.value, f, 1e-12)
    assert_close(found.eta.value, eta, 1e-12)


def test_efforts_are_those_of_the_recursion_as_g_writes_it():
    model = load("panda_description/panda")
    q, v, a = random_state(model, 1)
    ours, others = rbd.balafoutis_patel(model, q, v, a).tau, by_recursion(model, q, v, a)
    for got, want in zip(ours, others, strict=True):
        assert_close(got, want, 1e-12)


def test_a_batch_is_state_by_state():
    model = MODELS["all"]()
    states = random_states(model, 3, 7)
    together = rbd.balafoutis_patel(model, *states)
    for i, state in enumerate(zip(*states, strict=True)):
        for whole, part in zip(together, rbd.balafoutis_patel(model, *state), strict=True):
            for batch, single in zip(whole, part, strict=True):
                assert_close(batch[i], single, 1e-13)
    for got, want in zip(rbd.balafoutis_patel(model, states[0][0], states[1], states[2][0]),
                         rbd.balafoutis_patel(model, np.repeat(states[0][:1], 3, 0), states[1],
                                              np.repeat(states[2][:1], 3, 0)), strict=True):
        for one, other in zip(got, want, strict=True):
            np.testing.assert_array_equal(one, other)
