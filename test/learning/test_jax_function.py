"""Functions of JAX: their derivatives by differences, transformations, types, and adam's."""
from __future__ import annotations

import sys

import numpy as np
import pytest
from support.differentiated import FRICTION, MODELS, RUBBED, SIZES, TWICE, states, text_of

import rbd_ros as rbd

jax = pytest.importorskip("jax")
jnp = pytest.importorskip("jax.numpy")
pytestmark = pytest.mark.filterwarnings("ignore::rbd_ros.RbdWarning")


@pytest.fixture(autouse=True)
def double():
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", before)


def state(model, name, lead=(2,), seed=0):
    return [jnp.array(x) for x in states(model, name, lead, seed)]


@pytest.mark.parametrize(("name", "kind"), [*((name, "all joints") for name in SIZES),
                                            *((name, "floating") for name in TWICE), ("forward_dynamics", "mimic")])
def test_derivatives_are_those_of_differences(name, kind):
    """Forward and reverse, and of second order where there are some."""
    from jax.test_util import check_grads

    model = MODELS[kind]()
    friction = FRICTION if name in RUBBED else None
    function = rbd.jax_function(model, text_of(model, name), friction=friction)
    x = state(model, name, (1,))
    if kind != "floating":
        check_grads(function, x, order=1, atol=1e-3, rtol=1e-3)
    else:
        check_grads(function, x, order=2, modes=["fwd", "rev"], atol=1e-2, rtol=1e-2, eps=1e-5)


def test_derivatives_by_parameters():
    from jax.test_util import check_grads

    model = MODELS["floating"]()
    function = rbd.jax_function(model, "forward_dynamics", friction=FRICTION, inertias=model.body_names[-1:],
                                friction_fields=["coulomb"])
    own, law = jnp.array(model.inertial_parameters[-10:]), jnp.ones(model.nv)
    x = state(model, "forward_dynamics", (2,))
    check_grads(lambda *y: function(*y[:3], inertias=y[3], friction=y[4]), [*x, own, law], order=1, atol=1e-3,
                rtol=1e-3)


def test_transformations_of_functions():
    model = rbd.sample("iiwa")
    function = rbd.jax_function(model, "inverse_dynamics")
    x = state(model, "inverse_dynamics", (4,))
    by = rbd.inverse_dynamics_derivatives(model, *map(np.asarray, x))
    for derive in (jax.jacfwd, jax.jacrev):
        for k, found in enumerate(jax.jit(jax.vmap(derive(function, (0, 1, 2))))(*x)):
            np.testing.assert_allclose(found, by[k], atol=1e-12)
    second = rbd.inverse_dynamics_second_derivatives(model, *map(np.asarray, x))
    found = jax.jit(jax.vmap(jax.hessian(function, (0, 1, 2))))(*x)
    for i, j, expected in ((0, 0, second.qq), (0, 1, second.qv), (1, 1, second.vv), (2, 0, second.aq)):
        np.testing.assert_allclose(found[i][j], expected, atol=1e-11)


def test_vmap_of_any_axes_and_leading_axes():
    model = rbd.sample("iiwa")
    function = rbd.jax_function(model, "inverse_dynamics", inertias=["link_7"])
    q, v, a = state(model, "inverse_dynamics", (5, 3))
    own = jnp.array(model.inertial_parameters[-10:]) * jnp.linspace(0.9, 1.1, 3)[:, None]
    expected = function(q, v, a, own)
    flat = [np.asarray(x).reshape(-1, 7) for x in (q, v, a)]
    np.testing.assert_allclose(expected[:, 1].reshape(-1, 7), rbd.inverse_dynamics(model, *flat).reshape(5, 3, 7)[:, 1],
                               atol=1e-12)
    for found in (jax.vmap(function, (0, 0, 0, None))(q, v, a, own), jax.vmap(function, (1, 1, 1, 0), 1)(q, v, a, own),
                  jax.jit(jax.vmap(jax.vmap(function), (0, 0, 0, None)))(q, v, a, own)):
        np.testing.assert_allclose(found, expected, atol=1e-12)
    np.testing.assert_allclose(jax.vmap(lambda p: function(q, v[0, 0], a[0], p))(own),
                               function(q, v[0, 0], a[0], own[:, None, None]), atol=1e-12)
    assert function(q[:0], v[0, 0], a[0, 0], own[0]).shape == (0, 3, 7)
    acceleration, effort = rbd.jax_function(model, "hybrid_dynamics:joint_1")(q, v, a, a)
    assert acceleration.shape == effort.shape == (5, 3, 7)
    assert rbd.jax_function(model, "forward_kinematics")(q).shape == (5, 3, len(model.body_names), 4, 4)


def test_many_states_compiled():
    """The callback gets arrays that the device still computes."""
    model = rbd.sample("iiwa")
    function = rbd.jax_function(model, "inverse_dynamics")
    x = state(model, "inverse_dynamics", (3000,))
    gradient = jax.jit(jax.grad(lambda q, v, a: (function(jnp.sin(q), v @ jnp.eye(7), a) ** 2).sum()))
    tau, by = (np.asarray(y) for y in (function(jnp.sin(x[0]), *x[1:]), gradient(*x)))
    J = rbd.inverse_dynamics_derivatives(model, np.sin(x[0]), *map(np.asarray, x[1:])).q
    np.testing.assert_allclose(by, 2.0 * np.einsum("si,sij->sj", tau, J) * np.cos(x[0]), atol=1e-8)


def test_without_x64_it_computes_in_float64_and_returns_float32():
    model = rbd.sample("iiwa")
    function = rbd.jax_function(model, "forward_dynamics")
    x = [np.asarray(y, dtype=np.float32) for y in state(model, "forward_dynamics", (9,))]
    jax.config.update("jax_enable_x64", False)
    found, by = function(*x), jax.grad(lambda *y: function(*y).sum())(*x)
    assert function(*(y.astype(np.float64) for y in x)).dtype == np.float32    # JAX takes no others then
    jax.config.update("jax_enable_x64", True)
    assert found.dtype == by.dtype == np.float32
    expected = rbd.forward_dynamics(model, *(y.astype(np.float64) for y in x)).astype(np.float32)
    np.testing.assert_array_equal(found, expected)
    mixed = function(x[0], *(y.astype(np.float64) for y in x[1:]))
    assert mixed.dtype == np.float64


def test_what_is_refused():
    model = rbd.sample("two_link")
    function = rbd.jax_function(model, "forward_dynamics")
    x = state(model, "forward_dynamics")
    for change, what in ((lambda y: y.astype(int), "v: expected float64 or float32, got int64"),
                         (lambda y: y.astype(jnp.float16), "v: expected float64 or float32, got float16"),
                         (lambda y: y[:, :1], r"v has shape \(2, 1\), expected \(…, 2\)"),
                         (lambda y: jnp.ones((3, 2)), "leading axes that broadcast")):
        with pytest.raises(rbd.RbdError, match=what):
            jax.jit(function)(x[0], change(x[1]), x[2])
    with pytest.raises(rbd.RbdError, match="forward_dynamics has no second derivatives, which inverse_dynamics"):
        jax.hessian(lambda q: function(q, *x[1:]).sum())(x[0])
    effort = rbd.jax_function(model, "potential_energy")
    with pytest.raises(rbd.RbdError, match="no derivatives of order 3"):
        jax.jacfwd(jax.hessian(effort))(x[0][0])
    with pytest.raises(Exception, match=r"(?s)CpuCallback error.*RbdError: q\[0, 0\] is nan"):
        jax.block_until_ready(function(x[0] * jnp.nan, *x[1:]))


def test_float64_of_one_thread_alone_is_kept_or_refused():
    """In callbacks of other threads, inputs would be rounded to float32 on their way."""
    model = rbd.sample("two_link")
    function = jax.jit(rbd.jax_function(model, "gravity_effort"))
    jax.config.update("jax_enable_x64", False)
    q = np.random.default_rng(0).normal(size=(1000, 2))
    for _ in range(20):
        try:
            with jax.enable_x64(True):
                found = np.asarray(function(jnp.sin(jnp.array(q))))
        except Exception as error:
            assert "jax.config.update('jax_enable_x64', True)" in str(error)
        else:
            np.testing.assert_allclose(found, rbd.gravity_effort(model, np.sin(q)), rtol=0.0, atol=1e-13)


def test_gradients_are_adams():
    adam = pytest.importorskip("adam")
    from adam.jax import KinDynComputations

    model = rbd.sample("iiwa")
    peer = KinDynComputations(str(rbd.sample_path("iiwa")), list(model.joint_names), dtype=jnp.float64,
                              gravity=jnp.array([*model.gravity, 0.0, 0.0, 0.0]))
    peer.set_frame_velocity_representation(adam.Representations.BODY_FIXED_REPRESENTATION)

    def theirs(q, v, a):
        return peer.mass_matrix(jnp.eye(4), q)[6:, 6:] @ a + peer.bias_force(jnp.eye(4), q, jnp.zeros(6), v)[6:]

    x = state(model, "inverse_dynamics", ())
    ours = rbd.jax_function(model, "inverse_dynamics")
    np.testing.assert_allclose(ours(*x), theirs(*x), atol=1e-10)
    weights = np.random.default_rng(1).normal(size=7)
    for left, right in zip(*(jax.grad(lambda *y: function(*y) @ weights, (0, 1, 2))(*x)    # noqa: B023
                             for function in (ours, theirs)), strict=True):
        np.testing.assert_allclose(left, right, atol=1e-9)


def test_without_jax(monkeypatch):
    monkeypatch.setitem(sys.modules, "jax", None)
    with pytest.raises(rbd.RbdError, match=r"needs the package jax \(`pip install jax`\)"):
        rbd.jax_function(rbd.sample("two_link"), "inverse_dynamics")
