"""External wrenches act on the body, in its link frame: τ falls by Jᵀ F; on fixed links, as arrays and in batches."""

import numpy as np
import pytest
from support.robots import assert_close, chain, random_state, random_states
from support.trees import TYPES, random_tree

import rbd_ros as rbd

MODEL = random_tree(21, TYPES)


def wrenches(rng, count=None):
    shape = (len(MODEL.body_names), 6) if count is None else (count, len(MODEL.body_names), 6)
    return rng.normal(size=shape)


@pytest.mark.parametrize("body", MODEL.body_names)
def test_on_one_body_against_its_jacobian(body):
    q, v, a = random_state(MODEL, 1)
    F = np.random.default_rng(2).normal(size=6)
    change = rbd.inverse_dynamics(MODEL, q, v, a, {body: F}) - rbd.inverse_dynamics(MODEL, q, v, a)
    np.testing.assert_allclose(change, -rbd.jacobian(MODEL, q, body).T @ F, rtol=0, atol=1e-12)
    change = rbd.bias_effort(MODEL, q, v, {body: F}) - rbd.bias_effort(MODEL, q, v)
    np.testing.assert_allclose(change, -rbd.jacobian(MODEL, q, body).T @ F, rtol=0, atol=1e-12)


def test_a_force_accelerates_a_body_its_way():
    model = chain("prismatic").with_(gravity=(0, 0, 0))    # 1 kg along z
    assert rbd.forward_dynamics(model, [0.0], [0.0], [0.0], {"l1": [0, 0, 0, 0, 0, 2.0]}) == pytest.approx([2.0])
    assert rbd.inverse_dynamics(model, [0.0], [0.0], [0.0], {"l1": [0, 0, 0, 0, 0, 2.0]}) == pytest.approx([-2.0])


def test_on_all_bodies_as_array_and_by_name():
    q, v, a = random_state(MODEL, 3)
    F = wrenches(np.random.default_rng(4))
    expected = rbd.inverse_dynamics(MODEL, q, v, a) - sum(
        rbd.jacobian(MODEL, q, body).T @ F[k] for k, body in enumerate(MODEL.body_names))
    by_name = dict(zip(MODEL.body_names, F, strict=True))
    for given in (F, F.tolist(), by_name,
                  {name: list(x) for name, x in by_name.items()}, np.asfortranarray(F)):
        assert_close(rbd.inverse_dynamics(MODEL, q, v, a, given), expected, 1e-12)
        tau = rbd.inverse_dynamics(MODEL, q, v, a, given)
        assert_close(rbd.forward_dynamics(MODEL, q, v, tau, given), a, 1e-9)


def test_a_wrench_on_the_fixed_base_does_nothing():
    q, v, a = random_state(MODEL, 5)
    np.testing.assert_array_equal(rbd.inverse_dynamics(MODEL, q, v, a, {"base": np.ones(6)}),
                                  rbd.inverse_dynamics(MODEL, q, v, a))


@pytest.mark.parametrize("function", [rbd.inverse_dynamics, rbd.forward_dynamics])
def test_batches(function):
    q, v, a = random_states(MODEL, 3, 6)
    F = wrenches(np.random.default_rng(7), 3)
    names = MODEL.body_names
    single = np.array([function(MODEL, q[k], v[k], a[k], F[k]) for k in range(3)])
    assert_close(function(MODEL, q, v, a, F), single, 1e-12)
    assert_close(function(MODEL, q, v, a, {names[-1]: F[:, -1], names[-2]: F[0, -2]}), np.array(
        [function(MODEL, q[k], v[k], a[k], {names[-1]: F[k, -1], names[-2]: F[0, -2]}) for k in range(3)]), 1e-12)
    assert_close(function(MODEL, q, v, a, F[0]), np.array([function(MODEL, q[k], v[k], a[k], F[0]) for k in range(3)]),
                 1e-12)


def test_weight_as_wrenches_on_every_body_replaces_gravity():
    q, v, a = random_state(MODEL, 8)
    poses = rbd.forward_kinematics(MODEL, q)
    given = {}
    for k, (name, link) in enumerate(MODEL.description.links.items()):
        force = link.mass * poses[k, :3, :3].T @ MODEL.gravity
        given[name] = np.concatenate([np.cross(link.com, force), force])
    light = MODEL.with_(gravity=(0, 0, 0))
    assert_close(rbd.inverse_dynamics(light, q, v, a, given), rbd.inverse_dynamics(MODEL, q, v, a), 1e-12)


def test_wrenches_on_projected_mimic_joints():
    joints = [rbd.JointSpec("left", "prismatic", "base", "finger1", axis=(0, 1, 0)),
              rbd.JointSpec("right", "prismatic", "base", "finger2", axis=(0, 1, 0), mimic=("left", -1.0, 0.0))]
    links = {name: rbd.Inertia(1.0, np.zeros(3), 0.01 * np.eye(3)) for name in ("base", "finger1", "finger2")}
    model = rbd.RobotModel.from_description(rbd.Description("gripper", links, tuple(joints)))
    push = {"finger1": [0, 0, 0, 0, 3.0, 0], "finger2": [0, 0, 0, 0, -1.0, 0]}
    assert rbd.inverse_dynamics(model, [0.1], [0.0], [0.0], push) == pytest.approx([-4.0])
    assert rbd.forward_dynamics(model, [0.1], [0.0], [0.0], push) == pytest.approx([2.0])


@pytest.mark.parametrize("bad, message", [
    ({"hand": np.ones(6)}, "unknown body.*'hand'.*link0"), ({"link0": np.ones(5)}, r"link0.*\(5,\).*\(6,\)"),
    ({"link0": np.ones((2, 6))}, r"link0.*\(2, 6\)"), (np.ones((2, 6)), r"external_wrenches.*\(2, 6\)"),
    (np.ones(6), "external_wrenches"), ({"link0": [np.nan] * 6}, "link0.*not finite"), ("none", "external_wrenches"),
    ({"link0": "heavy"}, "external_wrenches.*link0"), ({"link0": None}, "external_wrenches|link0")])
@pytest.mark.parametrize("function", [rbd.inverse_dynamics, rbd.forward_dynamics])
def test_wrong_wrenches_are_named(function, bad, message):
    q, v, a = random_state(MODEL, 9)
    with pytest.raises(rbd.RbdError, match=message):
        function(MODEL, q, v, a, bad)
