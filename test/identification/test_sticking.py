"""Joints that stand while others move say nothing: dry friction holds them at any effort."""
from __future__ import annotations

import numpy as np
import pytest
from support.recordings import efforts, periodic, perturbed, record, rest_to_rest

import rbd_ros as rbd
from rbd_ros.core.identification.recorded.signals import Piece
from rbd_ros.core.identification.recorded.sticking import sticking

pytestmark = pytest.mark.filterwarnings("ignore::rbd_ros.RbdWarning")
IIWA = rbd.sample("iiwa")
MOTION = rest_to_rest(periodic(IIWA, 1, periods=4))
STUCK = [1, 4, 6]


@pytest.fixture(scope="module")
def truth():
    return perturbed(IIWA, 1)


@pytest.fixture(scope="module")
def recording(truth):
    """For two of four periods, some joints stand, held by friction at 0.9 of what it can."""
    whole = record(truth, MOTION, noise=0.02)
    q, v, a = (x.copy() for x in MOTION(whole.t)[:3])
    still = (whole.t >= 10.0) & (whole.t < 30.0)
    for j in STUCK:
        q[still, j], v[still, j], a[still, j] = MOTION(0.0).q[j], 0.0, 0.0
    tau = rbd.inverse_dynamics(truth, q, v, a) + rbd.friction_effort(truth, v)
    for j in STUCK:
        tau[still, j] += 0.9 * truth.friction[j] * np.sign(np.sin(0.4 * whole.t[still] + j) + 0.8)
    tau += 0.02 * np.random.default_rng(0).normal(size=tau.shape)
    return rbd.Recording(whole.t, q, tau=tau, joints=whole.joints)


def error_on_another_motion(found, truth):
    motion = periodic(IIWA, 77)
    t = np.linspace(0.0, motion.duration, 500)
    expected = efforts(truth, motion, t)
    return np.linalg.norm(found.effort(*motion(t)[:3]) - expected) / np.linalg.norm(expected)


def test_joints_that_stand_are_left_out(truth, recording):
    found = rbd.identify(IIWA, recording)
    said = next(x for x in found.findings if "while they stand" in x)
    assert all(NAME in said for NAME in (IIWA.velocity_names[j] for j in STUCK)) and said.count("%") == 3, said
    assert error_on_another_motion(found, truth) < 0.003
    np.testing.assert_allclose(found.model.friction, truth.friction, rtol=0.05)
    np.testing.assert_allclose(found.offset[STUCK], 0.0, atol=0.05)
    every = rbd.identify(IIWA, recording, slowest=0.0, robust=False)
    assert error_on_another_motion(every, truth) > 3.0 * error_on_another_motion(found, truth)
    assert not any("while they stand" in x for x in every.findings)


def test_without_friction_nothing_sticks(truth):
    model = rbd.sample("two_link")
    motion = rest_to_rest(periodic(model, 1, periods=4))
    still = rbd.identify(model, record(perturbed(model, 1, friction=False), motion), friction=False)
    assert not any("while they stand" in x for x in still.findings)


def test_what_is_left_out_is_rest_and_not_reversal():
    t = np.arange(0.0, 8.0, 0.01)
    v = np.column_stack([np.where(t < 4.0, np.sin(2.0 * np.pi * t / 2.0), 0.0), np.cos(t), np.full_like(t, 0.05)])
    piece = Piece(t, v, v, v, v, v)
    stuck = sticking(piece, 5.0, 2e-3, np.zeros((0, 3)))
    assert stuck[t > 3.95, 0].all() and not stuck[t < 3.85, 0].any(axis=0).sum() > 4
    assert stuck[:, 1].sum() <= 3 and not stuck[:, 2].any()    # a reversal loses a sample
    assert sticking(piece, 5.0, 0.1, np.zeros((0, 3)))[:, 2].all()
    assert not sticking(piece, 5.0, 0.0, np.zeros((0, 3))).any()
    both = sticking(piece, 5.0, 2e-3, np.array([[1.0, 0.0, 0.0]]))[t > 4.0]    # a motor that stands, on joint 0 alone
    assert both[:, 0].all() and not both[:, 1:].any()
    together = Piece(t, v, np.column_stack([np.cos(t), -np.cos(t)]), v, v, v)
    assert sticking(together, 5.0, 2e-3, np.array([[1.0, 1.0]])).all()    # both joints move, their motor does not
