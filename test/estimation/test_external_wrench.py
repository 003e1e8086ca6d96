"""Wrenches that are known, from their joint efforts; directions that a pose does not show; covariances; names."""
from __future__ import annotations

import numpy as np
import pytest
from support.robots import random_state
from support.trees import random_tree

import rbd_ros as rbd

IIWA = rbd.sample("iiwa")
TIP = IIWA.body_names[-1]


@pytest.mark.parametrize("frame", ["body", "world", "aligned"])
@pytest.mark.parametrize("seed", range(5))
def test_a_wrench_is_found_again(frame, seed):
    rng = np.random.default_rng(seed)
    q, w = IIWA.random_configuration(rng), rng.normal(size=6) * [1, 1, 1, 10, 10, 10]
    found = rbd.external_wrench(IIWA, q, rbd.jacobian(IIWA, q, TIP, frame).T @ w, TIP, frame=frame)
    np.testing.assert_allclose(found.wrench, w, rtol=1e-9, atol=1e-9)
    assert not found.unseen.any() and np.abs(found.residual).max() < 1e-9
    assert np.isfinite(found.covariance).all()


def test_a_floating_base_too():
    model = random_tree(3, ["revolute", "prismatic", "spherical"], root="floating")
    q, _, _ = random_state(model, 0)
    w = np.array([1.0, -2.0, 0.5, 3.0, 4.0, -1.0])
    found = rbd.external_wrench(model, q, rbd.jacobian(model, q, "link0").T @ w, "link0")
    np.testing.assert_allclose(found.wrench, w, atol=1e-10)


@pytest.mark.parametrize("link", range(2, 7))
def test_what_joints_do_not_show_is_infinite_and_not_guessed(link):
    """With fewer joints than six before the body, as many directions are hidden; the rest is right."""
    rng = np.random.default_rng(link)
    body = IIWA.joints[link - 1].child
    q = IIWA.random_configuration(rng)
    J, w = rbd.jacobian(IIWA, q, body), rng.normal(size=6)
    found = rbd.external_wrench(IIWA, q, J.T @ w, body)
    rank = min(link, 6)
    assert round(np.trace(found.unseen)) == 6 - rank
    np.testing.assert_allclose(J.T @ found.wrench, J.T @ w, atol=1e-9)
    if rank < 6:
        np.testing.assert_allclose(J.T @ found.unseen, 0.0, atol=1e-9)
        np.testing.assert_allclose(found.unseen @ found.unseen, found.unseen, atol=1e-12)
        np.testing.assert_allclose(found.unseen, found.unseen.T, atol=1e-12)
        hidden = np.diag(found.unseen) > 1e-10
        assert np.isinf(np.diag(found.covariance)[hidden]).all() and hidden.any()
        assert np.isfinite(np.diag(found.covariance)[~hidden]).all()
        assert np.isnan(found.line_of_action).all()


def test_a_force_at_a_point_needs_three_joints():
    rng = np.random.default_rng(1)
    body, p, f = IIWA.joints[3].child, np.array([0.05, -0.02, 0.1]), np.array([10.0, -5.0, 3.0])
    q, w = IIWA.random_configuration(rng), np.concatenate([np.cross(p, f), f])
    found = rbd.external_wrench(IIWA, q, rbd.jacobian(IIWA, q, body).T @ w, body, point=p)
    np.testing.assert_allclose(found.wrench, w, atol=1e-9)
    assert not found.unseen.any()
    at, along = found.line_of_action
    np.testing.assert_allclose(along, f / np.linalg.norm(f))
    np.testing.assert_allclose(np.cross(p - at, along), 0.0, atol=1e-12)


def test_singular_poses_hide_a_direction():
    q = np.zeros(7)    # stretched: nothing feels a force along the arm
    J = rbd.jacobian(IIWA, q, TIP)
    found = rbd.external_wrench(IIWA, q, J.T @ np.array([0.0, 0.0, 0.0, 0.0, 0.0, 100.0]), TIP)
    assert round(np.trace(found.unseen)) == 6 - np.linalg.matrix_rank(J) and np.isinf(found.covariance[5, 5])
    assert abs(found.wrench[5]) < 1e-9


@pytest.mark.parametrize("given", ["variances", "matrix", None])
def test_the_covariance_is_that_of_many_samples(given):
    rng = np.random.default_rng(2)
    q, w = IIWA.random_configuration(rng), rng.normal(size=6)
    sigma = np.array([0.5, 0.4, 0.3, 0.3, 0.2, 0.1, 0.1]) if given else np.full(7, 0.3)
    half = rng.normal(size=(7, 7)) * 0.1 + np.diag(sigma) if given == "matrix" else np.diag(sigma)
    covariance = {"variances": sigma**2, "matrix": half @ half.T, None: None}[given]
    effort = rbd.jacobian(IIWA, q, TIP).T @ w
    found = rbd.external_wrench(IIWA, q, effort + rng.normal(size=(3000, 7)) @ half.T, TIP, covariance=covariance)
    sample, said = np.cov(found.wrench.T), np.mean(found.covariance, axis=0)
    scale = np.sqrt(np.diag(sample))
    np.testing.assert_allclose(said / np.outer(scale, scale), sample / np.outer(scale, scale), atol=0.12)


def sensor_of(model, q, v, a, link, wrenches):
    """The reading of a sensor at the joint above a link."""
    return -rbd.joint_wrenches(model, q, v, a, wrenches)[..., model.body_index(link), :]


@pytest.mark.parametrize("frame", ["body", "world", "aligned"])
@pytest.mark.parametrize("kind", ["fixed", "floating"])
def test_a_sensor_and_joints_show_the_same_wrench(kind, frame):
    """Sensors at moving and fixed joints, tools in motion; the joints alone show a part."""
    rng = np.random.default_rng(5)
    model = random_tree(7, ["revolute", "prismatic", "spherical", "revolute"], root=kind)
    tool = next(name for name in reversed(model.body_names) if name.startswith("tool"))
    q, v, a = random_state(model, 1)
    w = rng.normal(size=6) * [1, 1, 1, 10, 10, 10]
    origin = rbd.forward_kinematics(model, q)[model.body_index(tool)]
    if frame != "world":
        origin = np.block([[np.eye(3), origin[:3, 3:]], [np.zeros((1, 3)), np.ones((1, 1))]])
    in_frame = w if frame == "body" else rbd.lie.coadjoint.Ad_star_inv(
        origin if frame == "world" else np.linalg.inv(origin) @ rbd.forward_kinematics(model, q)[
            model.body_index(tool)]) @ w
    parent = next(joint.parent for joint in model.description.joints if joint.child == tool)
    effort = rbd.jacobian(model, q, tool).T @ w
    for links in ((tool,), (parent,), (parent, tool), (model.body_names[0],)):
        sensors = {link: (sensor_of(model, q, v, a, link, {tool: w}), 0.01 * np.ones(6)) for link in links}
        found = rbd.external_wrench(model, q, effort, tool, frame=frame, covariance=np.ones(model.nv), sensors=sensors,
                                    v=v, a=a)
        np.testing.assert_allclose(found.wrench, in_frame, atol=1e-9)
        assert not found.unseen.any() and np.abs(found.residual).max() < 1e-9 and found.residual.shape == (model.nv,)


def test_the_covariance_is_that_of_the_stacked_estimates():
    """Of both together the information is the sum; with either nearly unknown it is the other's."""
    rng, q = np.random.default_rng(3), IIWA.random_configuration(3)
    half, other = np.tril(rng.normal(size=(7, 7))) + 3.0 * np.eye(7), np.tril(rng.normal(size=(6, 6))) + 3.0 * np.eye(6)
    efforts, sensor = half @ half.T, other @ other.T
    J, w = rbd.jacobian(IIWA, q, TIP), np.array([1.0, -2.0, 0.5, 10.0, -5.0, 8.0])
    reading = sensor_of(IIWA, q, np.zeros(7), np.zeros(7), "link_6", {TIP: w})
    T = np.linalg.inv(rbd.forward_kinematics(IIWA, q)[6]) @ rbd.forward_kinematics(IIWA, q)[7]
    X = rbd.lie.coadjoint.Ad_star_inv(T)
    information = J @ np.linalg.inv(efforts) @ J.T + X.T @ np.linalg.inv(sensor) @ X
    found = rbd.external_wrench(IIWA, q, J.T @ w, TIP, covariance=efforts, sensors={"link_6": (reading, sensor)})
    np.testing.assert_allclose(found.covariance, np.linalg.inv(information), rtol=1e-9)
    np.testing.assert_allclose(found.wrench, w, atol=1e-9)
    wrong = rbd.external_wrench(IIWA, q, np.zeros(7), TIP, covariance=1e8 * efforts, sensors={
        "link_6": (reading, sensor)})
    back = np.linalg.inv(X)
    np.testing.assert_allclose(wrong.covariance, back @ sensor @ back.T, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(wrong.wrench, w, atol=1e-4)
    blind = rbd.external_wrench(IIWA, q, J.T @ w, TIP, covariance=efforts, sensors={
        "link_6": (np.zeros(6), 1e12 * sensor)})
    alone = rbd.external_wrench(IIWA, q, J.T @ w, TIP, covariance=efforts)
    np.testing.assert_allclose(blind.covariance, alone.covariance, rtol=1e-6)


def test_intervals_of_both_hold_the_wrench():
    """As often as a normal distribution says, along any direction, in a pose in which joints alone show less."""
    rng, q, count = np.random.default_rng(4), np.array([0.3, 0.5, -0.2, 0.0, 0.4, 0.0, 0.1]), 1500
    w, sigma, noise = np.array([1.0, -2.0, 0.5, 10.0, -5.0, 8.0]), 0.3, np.array([0.05] * 3 + [0.6] * 3)
    effort = rbd.jacobian(IIWA, q, TIP).T @ w + sigma * rng.normal(size=(count, 7))
    reading = sensor_of(IIWA, q, np.zeros(7), np.zeros(7), TIP, {TIP: w}) + noise * rng.normal(size=(count, 6))
    found = rbd.external_wrench(IIWA, q, effort, TIP, covariance=np.full(7, sigma**2),
                                sensors={TIP: (reading, noise**2)})
    off, root = found.wrench - w, np.linalg.cholesky(found.covariance[0])
    z = np.linalg.solve(root, off.T)
    inside = (np.abs(z) < 1.959964).mean(axis=1)
    np.testing.assert_allclose(inside, 0.95, atol=4.0 * np.sqrt(0.95 * 0.05 / count))
    np.testing.assert_allclose(np.cov(z), np.eye(6), atol=0.15)
    alone = rbd.external_wrench(IIWA, q, effort, TIP, covariance=np.full(7, sigma**2))
    assert alone.unseen[0].any() and not found.unseen.any()
    assert (np.diag(found.covariance[0]) < noise**2 + 1e-12).all()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(("wrong", "words"), [
    ({"sensors": {"hand": (np.zeros(6), np.ones(6))}}, "hand"),
    ({"sensors": {TIP: (np.zeros(6), np.ones(6))}, "body": "link_3"}, "link_7.*does not carry.*link_3"),
    ({"sensors": {TIP: np.zeros(6)}}, "reading, covariance"), ({"sensors": {TIP: (np.zeros(6), None)}}, "covariance"),
    ({"sensors": {TIP: (np.zeros(5), np.ones(6))}}, "link_7.*reading"),
    ({"sensors": {TIP: (np.full(6, np.nan), np.ones(6))}}, "link_7.*finite"),
    ({"sensors": {TIP: ("strong", np.ones(6))}}, "link_7.*reading"),
    ({"sensors": {TIP: (np.zeros(6), -np.ones(6))}}, "link_7.*covariance.*positive"),
    ({"sensors": {TIP: (np.full(6, 1e308), np.ones(6))}}, "finite|large"),
    ({"sensors": {TIP: (np.zeros(6), np.ones(6))}, "covariance": None}, "covariance of the efforts"),
    ({"sensors": {TIP: (np.zeros(6), np.ones(6))}, "v": np.zeros(6)}, "v"), ({"v": np.zeros(7)}, "only with sensors")])
def test_wrong_sensors(wrong, words):
    arguments = {"body": TIP, "covariance": np.ones(7), **wrong}
    with pytest.raises(rbd.RbdError, match=words):
        rbd.external_wrench(IIWA, np.zeros(7), np.zeros(7), **arguments)


def test_the_touched_body():
    joints = IIWA.joints
    for k in range(7):
        q, rng = IIWA.random_configuration(k), np.random.default_rng(k)
        effort = rbd.jacobian(IIWA, q, joints[k].child).T @ (20.0 * rng.normal(size=6))
        assert rbd.touched_body(IIWA, effort, 1e-9) == joints[k].child
    assert rbd.touched_body(IIWA, np.zeros(7), 0.1) is None
    assert rbd.touched_body(IIWA, [0, 0, 5.0, 0, 0, 0, 0.2], [1, 1, 1, 1, 1, 1, 0.1]) == joints[6].child
    with pytest.raises(rbd.RbdError, match="takes one state"):
        rbd.touched_body(IIWA, np.ones((2, 7)), 0.1)


def test_the_line_of_a_huge_force():
    q, push = IIWA.random_configuration(3), 1e165 * np.array([0.1, -0.2, 0.0, 1.0, 0.5, -2.0])
    found = rbd.external_wrench(IIWA, q, rbd.jacobian(IIWA, q, TIP).T @ push, TIP, covariance=np.ones(7))
    small = rbd.external_wrench(IIWA, q, rbd.jacobian(IIWA, q, TIP).T @ (1e-165 * push), TIP, covariance=np.ones(7))
    np.testing.assert_allclose(found.line_of_action, small.line_of_action)


@pytest.mark.parametrize(("wrong", "words"), [
    ({"threshold": np.ones(3)}, "threshold"), ({"threshold": "low"}, "threshold"), ({"threshold": np.nan}, "threshold"),
    ({"uncertainty": np.ones(6)}, "uncertainty"), ({"uncertainty": np.inf}, "uncertainty"),
    ({"effort": np.zeros(6)}, "effort")])
def test_wrong_thresholds(wrong, words):
    with pytest.raises(rbd.RbdError, match=words):
        rbd.touched_body(IIWA, **{"effort": np.zeros(7), "threshold": 1.0, **wrong})


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(("wrong", "words"), [
    ({"effort": np.full(7, 1e300)}, "too large"), ({"effort": 1.7e308 * np.cos(np.arange(7))}, "too large"),
    ({"effort": np.zeros(6)}, "effort"), ({"effort": np.full(7, np.nan)}, "effort"), ({"body": "no"}, "no"),
    ({"frame": "base"}, "frame"), ({"point": [0.0, 0.0]}, "point"),
    ({"point": [0.0, 0.0, 0.0], "frame": "world"}, "point"),
    ({"covariance": np.zeros(7)}, "covariance"), ({"covariance": -np.eye(7)}, "covariance"),
    ({"covariance": np.ones(6)}, "covariance"), ({"covariance": "small"}, "covariance")])
def test_wrong_input(wrong, words):
    arguments = {"q": np.zeros(7), "effort": np.zeros(7), "body": TIP, **wrong}
    with pytest.raises(rbd.RbdError, match=words):
        rbd.external_wrench(IIWA, **arguments)
