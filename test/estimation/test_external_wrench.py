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
    found = [rbd.external_wrench(IIWA, q, effort + half @ rng.normal(size=7), TIP, covariance=covariance)
             for _ in range(3000)]
    sample = np.cov(np.array([one.wrench for one in found]).T)
    said = np.mean([one.covariance for one in found], axis=0)
    scale = np.sqrt(np.diag(sample))
    np.testing.assert_allclose(said / np.outer(scale, scale), sample / np.outer(scale, scale), atol=0.12)


def test_the_touched_body():
    joints = IIWA.joints
    for k in range(7):
        q, rng = IIWA.random_configuration(k), np.random.default_rng(k)
        effort = rbd.jacobian(IIWA, q, joints[k].child).T @ (20.0 * rng.normal(size=6))
        assert rbd.touched_body(IIWA, effort, 1e-9) == joints[k].child
    assert rbd.touched_body(IIWA, np.zeros(7), 0.1) is None
    assert rbd.touched_body(IIWA, [0, 0, 5.0, 0, 0, 0, 0.2], [1, 1, 1, 1, 1, 1, 0.1]) == joints[6].child


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
