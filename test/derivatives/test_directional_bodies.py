"""Derivatives of joint wrenches and body accelerations by every parameter, against free bodies on complex numbers."""

import dataclasses
import re
from pathlib import Path

import numpy as np
import pytest
from support import complex_step as cs
from support.robots import assert_close
from support.varied import STEP, Varied, inverse, pose
from test_directional_parameters import CLOSE, TREES, case, parameters, rubbing, varied

import rbd_ros as rbd
from rbd_ros.core.dynamics import kinematics
from rbd_ros.core.model.assembly import depth_first


def free_bodies(model, other, q, v, a, F, tangent):
    """V̇ and F of every link (nb, 6) at complex (q, v, a): each link's motion from its node's, then the sum of what
    moves all links behind it, in the world's axes about its origin.
    """
    n, size = cs.nodes(model), kinematics.SIZE
    W = np.zeros(size * n, dtype=complex)
    M, q, v, a = (np.asarray(x, dtype=complex) for x in (other.block, q, v, a))
    cs.node_motion(M, q, 0, v, a, 0, 2, True, W)
    W = W.reshape(n, size)
    parameters = np.asarray(model.inertial_parameters).reshape(-1, 10)
    g = model._block[3:6] + (0.0 if tangent.gravity is None else STEP * np.asarray(tangent.gravity))
    world, accelerations, loads = {}, np.zeros((len(model.body_names), 6), dtype=complex), {}
    for i, name in enumerate(model.body_names):
        node, T = other.links[name]
        w = al = velo = accel = np.zeros(3, dtype=complex)
        X = pose(np.eye(3), np.zeros(3))
        if node >= 0:
            row = W[node]
            part = {what: row[at:at + 3] for what, at in (("w", kinematics._OMEGA), ("v", kinematics._V),
                                                          ("al", kinematics._ALPHA), ("a", kinematics._ACCEL))}
            X = pose(row[kinematics._R:kinematics._R + 9], row[kinematics._P:kinematics._P + 3])
            w, al, p = part["w"], part["al"], T[:3, 3]
            velo = part["v"] + np.cross(w, p)
            accel = part["a"] + np.cross(al, p) + np.cross(w, np.cross(w, p))
        R = T[:3, :3]
        accelerations[i] = np.concatenate([R.T @ al, R.T @ (accel - np.cross(w, velo))])
        X = world[name] = X @ T
        w, al, accel = (R.T @ x for x in (w, al, accel))
        x = parameters[i] + STEP * np.asarray(tangent.inertias.get(name, np.zeros(10)))
        J = np.array([[x[4], x[5], x[7]], [x[5], x[6], x[8]], [x[7], x[8], x[9]]])
        accel = accel - X[:3, :3].T @ g
        c, wrench = x[1:4], F[i] + STEP * (0.0 if tangent.external_wrenches is None else tangent.external_wrenches[i])
        f = x[0] * accel + np.cross(al, c) + np.cross(w, np.cross(w, c)) - wrench[3:]
        m = np.cross(c, accel) + J @ al + np.cross(w, J @ w) - wrench[:3]
        loads[name] = X[:3, :3] @ m + np.cross(X[:3, 3], X[:3, :3] @ f), X[:3, :3] @ f    # about the world's origin
    root, order = depth_first(model.description)
    behind = {name: [name] for name in (root, *(spec.child for spec in order))}
    for spec in reversed(order):
        behind[spec.parent] += behind[spec.child]
    wrenches = np.zeros_like(accelerations)
    for i, name in enumerate(model.body_names):
        moment, force = (sum(loads[other][k] for other in behind[name]) for k in (0, 1))
        T = inverse(world[name])
        force_here = T[:3, :3] @ force
        wrenches[i] = np.concatenate([T[:3, :3] @ moment + np.cross(T[:3, 3], force_here), force_here])
    return accelerations, wrenches


@pytest.mark.parametrize("name", TREES)
def test_bodies_along_every_parameter(name):
    """∂V̇_i, ∂F_i of inverse, forward and hybrid dynamics, one kind of parameter after another, all of them at once."""
    model, (law, q, v, a, tau, F, mask), rng = case(name)
    changes = parameters(model, rng)
    everything = {**changes, **dict(zip(("q", "v", "a", "tau"), rng.normal(size=(4, model.nv)), strict=True))}
    everything["screws"] = {}
    tangents = [rbd.Tangent(**{kind: change}) for kind, change in changes.items()] + [rbd.Tangent(**everything)]
    forward = rbd.forward_dynamics(model, q, v, tau, F, friction=law)
    held = rbd.hybrid_dynamics(model, q, v, a, tau, mask, F, friction=law)
    found = (rbd.inverse_dynamics_directional(model, q, v, a, tangents, F, friction=law, bodies=True),
             rbd.forward_dynamics_directional(model, q, v, tau, tangents, F, friction=law, bodies=True),
             rbd.hybrid_dynamics_directional(model, q, v, a, tau, mask, tangents, F, friction=law, bodies=True))
    plain = (rbd.inverse_dynamics_directional(model, q, v, a, tangents, F, friction=law),
             rbd.forward_dynamics_directional(model, q, v, tau, tangents, F, friction=law),
             rbd.hybrid_dynamics_directional(model, q, v, a, tau, mask, tangents, F, friction=law))
    np.testing.assert_array_equal(found[0].effort, plain[0])
    np.testing.assert_array_equal(found[1].acceleration, plain[1])
    np.testing.assert_array_equal(np.where(mask, found[2].effort, found[2].acceleration), plain[2])
    for i, tangent in enumerate(tangents):
        what = [*changes, "everything"][i]
        other = Varied(model, tangent)
        step = [x if change is None else x + STEP * along @ change for x, change, along in (
            (q, tangent.q, cs.tangents(model, q)), (v, tangent.v, np.eye(model.nv)))]
        _, da, dh = varied(model, law, q, v, a, tau, F, mask, tangent)
        own = np.zeros(model.nv) if tangent.a is None else tangent.a
        given = np.zeros(model.nv) if tangent.tau is None else tangent.tau
        assert_close(found[2].acceleration[i], np.where(mask, own, dh), CLOSE, what)
        assert_close(found[2].effort[i], np.where(mask, dh, given), CLOSE, what)
        for result, at, change in zip(found, (a, forward, held.acceleration), (own, da, np.where(mask, own, dh)),
                                      strict=True):
            accelerations, wrenches = free_bodies(model, other, *step, at + STEP * change, F, tangent)
            for part, want in ((result.body_accelerations[i], accelerations), (result.joint_wrenches[i], wrenches)):
                size = max(np.abs(want.imag / STEP.imag).max(), 1.0)
                np.testing.assert_allclose(part, want.imag / STEP.imag, rtol=0.0, atol=CLOSE * size, err_msg=what)


def test_the_values_themselves_are_those_of_the_functions():
    """The reference is right: its real parts."""
    model, (_, q, v, a, _, F, _), _ = case("floating")
    tangent = rbd.Tangent()
    accelerations, wrenches = free_bodies(model, Varied(model, tangent), q, v, a, F, tangent)
    assert_close(rbd.body_accelerations(model, q, v, a), accelerations.real, 1e-11)
    assert_close(rbd.joint_wrenches(model, q, v, a, F), wrenches.real, 1e-11)


@pytest.mark.parametrize("name", TREES)
def test_one_state_looked_up_once_is_the_same(name):
    """The quick way, with and without named parameters; laws of numbers and of arrays."""
    model, (law, q, v, a, tau, _, mask), rng = case(name)
    changes = {"q": rng.normal(size=model.nv), "v": rng.normal(size=model.nv), "tau": rng.normal(size=model.nv),
               "a": rng.normal(size=model.nv), "placements": parameters(model, rng)["placements"]}
    rough = {model.joint_names[-1]: {"coulomb": 0.3, "smoothing": -0.1}, model.joint_names[0]: {"damping": 0.2}}
    for friction in (law, rbd.Friction(0.3, 0.5, None, 0.8, 0.4)):
        for tangents in ([rbd.Tangent(**changes)],
                         [rbd.Tangent(**changes, friction=rough), rbd.Tangent(friction=rough)]):
            for call in (lambda t, f: rbd.inverse_dynamics_directional(model, q, v, a, t, friction=f),
                         lambda t, f: rbd.forward_dynamics_directional(model, q, v, tau, t, friction=f),
                         lambda t, f: rbd.hybrid_dynamics_directional(model, q, v, a, tau, mask, t, friction=f)):
                assert_close(call(rbd.Tangents(model, tangents), friction), call(tangents, friction), 1e-11)


def test_batches_and_single_directions():
    model, (law, q, v, a, tau, F, mask), rng = case("all")
    tangents = [rbd.Tangent(q=rng.normal(size=model.nv), gravity=rng.normal(size=3)), rbd.Tangent(
        a=rng.normal(size=model.nv), external_wrenches={model.body_names[-1]: rng.normal(size=6)})]
    Q, V = np.stack([q, q]), np.stack([v, 0.5 * v])
    for call in (lambda q, v, t: rbd.inverse_dynamics_directional(model, q, v, a, t, F, friction=law, bodies=True),
                 lambda q, v, t: rbd.forward_dynamics_directional(model, q, v, tau, t, F, friction=law, bodies=True),
                 lambda q, v, t: rbd.hybrid_dynamics_directional(model, q, v, a, tau, mask, t, F, friction=law,
                                                                 bodies=True)):
        whole = call(Q, V, tangents)
        for k in (0, 1):
            for i, tangent in enumerate(tangents):
                for part, one in zip(whole, call(Q[k], V[k], tangent), strict=True):
                    assert part.shape == (2, 2, *one.shape)
                    assert_close(part[i, k], one, 1e-12)


def test_the_friction_of_other_functions_is_named():
    model, (law, q, v, a, tau, _, mask), _ = case("chain")
    name = model.joint_names[0]
    tangent = rbd.Tangent(friction={name: {"coulomb": 1.0}})
    for call in (lambda **o: rbd.inverse_dynamics_directional(model, q, v, a, tangent, **o),
                 lambda **o: rbd.forward_dynamics_directional(model, q, v, tau, rbd.Tangents(model, [tangent]), **o),
                 lambda **o: rbd.hybrid_dynamics_directional(model, q, v, a, tau, mask, tangent, **o)):
        with pytest.raises(rbd.RbdError, match="joint_friction"):
            call()
        with pytest.raises(rbd.RbdError, match="expected a Friction"):
            call(friction=True)
        with pytest.raises(rbd.RbdError, match=r"friction\.smoothing"):
            call(friction=dataclasses.replace(law, smoothing=0.0))
    for change, words in (({"joint_9": {"coulomb": 1.0}}, ["friction", "joint_9"]),
                          ({name: {"colomb": 1.0}}, ["colomb", "coulomb"]),
                          ({name: {"damping": [1.0, 2.0]}}, [name, "damping"])):
        with pytest.raises(rbd.RbdError) as caught:
            rbd.Tangents(model, [rbd.Tangent(friction=change)])
        assert all(word in str(caught.value) for word in words), str(caught.value)


def test_without_stribeck_s_effect_the_breakaway_goes_with_the_coulomb_level():
    """The derivative of what `friction_effort` of the model is; of the two apart where both are named."""
    model = rbd.sample("iiwa").with_(friction=2.0, damping=0.5)
    v = np.linspace(-0.02, 0.03, 7)
    law = rbd.joint_friction(model)
    for change, expected in (({"coulomb": 1.0}, np.tanh(v / 0.01)), ({"damping": 1.0}, v),
                             ({"coulomb": 1.0, "breakaway": 0.0}, -np.tanh(v / 0.01) * np.expm1(-v**2))):
        tangent = rbd.Tangent(friction={name: change for name in model.joint_names})
        found = rbd.inverse_dynamics_directional(model, np.zeros(7), v, v, tangent, friction=law)
        assert_close(found, expected, 1e-14)
        assert_close(found, rubbing(model, law, v, rbd.Tangent(friction={
            name: {"breakaway": change["coulomb"], **change} if "coulomb" in change else change
            for name in model.joint_names})).imag / STEP.imag, 1e-12)    # of a difference of large terms


def test_the_example_of_the_page_runs():
    page = (Path(__file__).parents[2] / "docs" / "theory_derivatives.md").read_text(encoding="utf-8")
    names: dict = {}
    exec(re.findall(r"```python\n(.*?)```", page, re.DOTALL)[0], names)
    assert names["found"].acceleration.shape == (2, 7) and (names["found"].acceleration[0] != 0.0).any()
