"""Thresholds from motions without contact: false alarms on other motions, delays, and what is too little."""
from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from support.recordings import periodic, perturbed, record

import rbd_ros as rbd

TWO = rbd.sample("two_link")


@cache
def recording(seed, seconds, truth=TWO):
    motion = periodic(truth, seed, period=10.0, periods=int(seconds / 10.0), reach=0.4)
    found = record(truth, motion, seed, noise=0.3)
    t = found.t
    return rbd.Recording(t, found.q, motion(t).v, tau=found.tau, joints=found.joints)


def alarms(thresholds, other):
    """Seconds (windows of 0.5 s) with an alarm."""
    found = rbd.contact_thresholds(TWO, other, alarms_per_hour=1e6)    # for its residuals
    return (found.largest > thresholds.threshold).any()


@pytest.mark.parametrize("minutes", [4, pytest.param(8, marks=pytest.mark.thorough)])
def test_alarms_are_as_rare_as_asked_for(minutes):
    """At 200 per hour some in recordings of a minute, at 0.01 per hour none."""
    often = rbd.contact_thresholds(TWO, recording(0, 60.0), alarms_per_hour=200.0)
    never = rbd.contact_thresholds(TWO, [recording(0, 60.0), recording(50, 60.0)], alarms_per_hour=0.01)
    others = [recording(seed, 60.0) for seed in range(1, 1 + minutes)]
    assert sum(alarms(often, other) for other in others) >= 2
    assert not any(alarms(never, other) for other in others)
    assert (never.threshold > often.threshold).all() and (never.threshold >= never.largest).all()
    assert (never.threshold < 2.0).all()    # noise of 0.3 N m behind the filter, and not the arm's 10 N m


def test_errors_of_the_model_widen_them():
    rough = rbd.contact_thresholds(TWO, recording(0, 60.0, perturbed(TWO, 0, rotors=False, friction=False)))
    fine = rbd.contact_thresholds(TWO, recording(0, 60.0))
    assert (rough.threshold > 1.5 * fine.threshold).any()
    assert fine.seconds == pytest.approx(60.0, rel=0.01) and (fine.speed > 0.1).all()


def test_delays_are_those_of_the_filter():
    found = rbd.contact_thresholds(TWO, recording(0, 60.0), gain=40.0)
    level = found.threshold
    delay = found.delay(np.array([2.0 * level, [0.5 * level[0], -4.0 * level[1]]]))
    np.testing.assert_allclose(delay[0], np.log(2.0) / 40.0)
    assert np.isinf(delay[1, 0]) and delay[1, 1] == pytest.approx(-np.log(0.75) / 40.0)


def sticking(law, level, n=30_000):
    """A motion with rests, in which friction is anything within its level."""
    t = 0.001 * np.arange(n)
    phase = np.outer(t, [2.0, 3.0])
    rests = np.abs(np.cos(phase)) < 0.3
    v = np.where(rests, 0.0, np.cos(phase) - 0.3 * np.sign(np.cos(phase)))
    a = np.where(rests, 0.0, -np.sin(phase) * [2.0, 3.0])
    q = 0.001 * np.cumsum(v, axis=0)
    friction = np.where(rests, level * np.sin(np.outer(t, [0.7, 0.9])), law.effort(v))
    tau = rbd.inverse_dynamics(TWO, q, v, a) + friction + 0.02 * np.random.default_rng(0).normal(size=q.shape)
    return rbd.Recording(t, q, v, tau=tau, joints=TWO.joint_names)


def test_friction_near_rest_does_not_widen_them():
    level = np.array([2.0, 1.0])
    law = rbd.Friction(coulomb=level)
    found = rbd.contact_thresholds(TWO, sticking(law, level), friction=law)
    smooth = rbd.contact_thresholds(TWO, sticking(law, 0.0), friction=law)
    assert (found.threshold < 0.15 * level).all() and (smooth.threshold < 0.15 * level).all()
    np.testing.assert_allclose(found.covariance, found.covariance.T)
    assert (np.linalg.eigvalsh(found.covariance) > 0.0).all()
    assert (np.sqrt(np.diag(found.covariance)) > found.threshold / 10.0).all()    # all of it, friction included


def test_joints_that_never_move_show_all_of_their_residual():
    t = 0.01 * np.arange(6000)
    q, zero = np.tile([0.3, 0.5], (len(t), 1)), np.zeros((len(t), 2))
    tau = rbd.gravity_effort(TWO, q) + np.random.default_rng(0).normal(size=q.shape)
    still = rbd.Recording(t, q, zero, tau=tau, joints=TWO.joint_names)
    found = rbd.contact_thresholds(TWO, still, friction=rbd.Friction(coulomb=50.0))
    np.testing.assert_allclose(found.threshold, rbd.contact_thresholds(TWO, still).threshold)
    assert (found.threshold > 0.0).all()


def test_gaps_and_holes_are_left_out():
    whole = recording(0, 60.0)
    t, q, tau = whole.t.copy(), whole.q.copy(), whole.tau.copy()
    t[5000:] += 30.0
    q[100:120] = np.nan
    tau[9000] = np.inf
    found = rbd.contact_thresholds(TWO, rbd.Recording(t, q, whole.v, tau=tau, joints=whole.joints))
    plain = rbd.contact_thresholds(TWO, whole)
    np.testing.assert_allclose(found.threshold, plain.threshold, rtol=0.3)
    assert found.seconds < plain.seconds


@pytest.mark.parametrize(("arguments", "words"), [
    (([],), "recordings"), ((None,), "recordings"), ((recording(0, 10.0),), "expected at least 20 s")])
def test_too_little(arguments, words):
    with pytest.raises(rbd.RbdError, match=words):
        rbd.contact_thresholds(TWO, *arguments)
    with pytest.raises(rbd.RbdError, match="alarms_per_hour"):
        rbd.contact_thresholds(TWO, recording(0, 60.0), alarms_per_hour=0.0)


@pytest.mark.parametrize("rate", [40.0, 250.0, pytest.param(1000.0, marks=pytest.mark.thorough)])
def test_the_covariance_of_means_is_that_of_means_of_the_residual(rate):
    """Of a robot that is not seen to move: the residual is noise of efforts behind the filter, a known process."""
    h, K, rng = 1.0 / rate, 20.0, np.random.default_rng(0)
    half = np.array([[1.0, 0.0], [0.5, 0.8]])
    t = h * np.arange(round(200.0 * rate))
    q = np.tile([0.3, 0.5], (len(t), 1))
    tau = rbd.gravity_effort(TWO, q) + rng.normal(size=q.shape) @ half.T
    found = rbd.contact_thresholds(TWO, rbd.Recording(t, q, 0.0 * q, tau=tau, joints=TWO.joint_names), gain=K)
    # of the filter a = exp(−K h) with the mean of both ends of each step, then of a running mean
    a, count = np.exp(-K * h), max(round(0.02 * rate), 1)
    response = (1.0 - a) * np.convolve([0.5, 0.5], a ** np.arange(round(20.0 / (K * h))))
    of_means = np.convolve(response, np.full(count, 1.0 / count))
    np.testing.assert_allclose(found.covariance, (response @ response) * half @ half.T, rtol=0.1)
    np.testing.assert_allclose(found.mean_covariance, (of_means @ of_means) * half @ half.T, rtol=0.1)
