"""Simulated truth: parameters, intervals, consistency, delay, gains, outliers, loads; Pinocchio's efforts as data."""
from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from scipy.stats import binom
from support.recordings import efforts, periodic, perturbed, record, rest_to_rest
from support.robots import urdf_paths

import rbd_ros as rbd
from rbd_ros.core.identification.consistency import is_consistent
from rbd_ros.core.identification.identified import Residuals
from rbd_ros.core.identification.judging import verdict
from rbd_ros.core.identification.regressor_columns import parameter_names, parameters_of

pytestmark = pytest.mark.filterwarnings("ignore::rbd_ros.RbdWarning")
IIWA = rbd.sample("iiwa")
MOTION = periodic(IIWA, 1, periods=3)


@pytest.fixture(scope="module")
def truth():
    return perturbed(IIWA, 1)


def base_values(found, truth):
    names = parameter_names(truth)
    return found.base.values(parameters_of(truth)[[names.index(name) for name in found.base.parameter_names]])


def consistent(model):
    return all(is_consistent(body) for body in model.inertial_parameters.reshape(-1, 10) if body[0] > 0.0)


def error_on_another_motion(found, truth):
    """Relative error of the efforts."""
    motion = periodic(IIWA, 77)
    t = np.linspace(0.0, motion.duration, 500)
    expected = efforts(truth, motion, t)
    return np.linalg.norm(found.effort(*motion(t)[:3]) - expected) / np.linalg.norm(expected)


def test_the_truth_is_found(truth):
    found = rbd.identify(IIWA, record(truth, MOTION))
    assert found.residual.held_out and found.residual.overall < 0.003 < 0.05 < found.residual.overall_before
    assert error_on_another_motion(found, truth) < 0.002
    assert consistent(found.model) and not found.unidentifiable
    np.testing.assert_allclose(found.model.damping, truth.damping, rtol=0.05)
    np.testing.assert_allclose(found.model.friction, truth.friction, rtol=0.05)
    np.testing.assert_allclose(found.friction.coulomb, found.model.friction)
    assert found.residual.overall <= found.residual.overall_unconstrained + 0.003
    values = [estimate.value for estimate in found.confidence]
    half = np.array([estimate.half_width for estimate in found.confidence])
    assert np.mean(np.abs(values - base_values(found, truth)) < 1.5 * half) > 0.9


def test_the_same_recording_gives_the_same_numbers():
    model = rbd.sample("two_link")
    recording = record(perturbed(model), periodic(model))
    one, other = (rbd.identify(model, recording) for _ in range(2))
    assert np.array_equal(one.model.inertial_parameters, other.model.inertial_parameters)


def test_without_noise_the_efforts_are_those_of_the_robot(truth):
    found = rbd.identify(IIWA, record(truth, MOTION, noise=1e-6, encoder=0.0, rate=500.0))
    assert error_on_another_motion(found, truth) < 3e-4


def test_efforts_of_pinocchio_are_explained():
    pin = pytest.importorskip("pinocchio")
    path = urdf_paths().get("ur_description/ur5_robot") or pytest.skip("example-robot-data is not installed")
    model, peer = rbd.load_urdf(path), pin.buildModelFromUrdf(str(path))
    data = peer.createData()
    motion = periodic(model, 3, periods=2)
    t = np.arange(0.0, motion.duration, 0.004)
    q, v, a = motion(t)[:3]
    tau = np.array([pin.rnea(peer, data, *state) for state in zip(q, v, a, strict=True)])
    tau += 2.0 * v + 3.0 * np.tanh(v / 0.01) + 0.5
    tau += 0.02 * np.random.default_rng(0).normal(size=tau.shape)
    light = model.with_scaled_masses(0.7)
    found = rbd.identify(light, rbd.Recording(t, q, tau=tau, joints=list(peer.names)[1:]))
    assert found.residual.overall < 0.002
    np.testing.assert_allclose(found.model.damping, 2.0, rtol=0.05)
    np.testing.assert_allclose(found.model.friction, 3.0, rtol=0.05)
    np.testing.assert_allclose(found.offset[1:], 0.5, atol=0.05)
    at = model.random_configuration(0)
    np.testing.assert_allclose(rbd.gravity_effort(found.model, at), pin.computeGeneralizedGravity(peer, data, at),
                               atol=0.05)


def test_intervals_hold_the_truth_as_often_as_they_say():
    seeds = 12
    inside, count = 0, 0
    for seed in range(seeds):
        truth = perturbed(IIWA, seed)
        found = rbd.identify(IIWA, record(truth, periodic(IIWA, seed, periods=3), seed))
        assert consistent(found.model)
        assert found.residual.overall <= found.residual.overall_unconstrained + 0.003
        hits = [abs(e.linear - x) <= e.half_width for e, x in
                zip(found.confidence, base_values(found, truth), strict=True)]
        inside, count = inside + sum(hits), count + len(hits)
    # parameters of one recording err together: as if a third of them were independent
    low, high = binom.interval(0.999, count // 3, 0.95)
    assert low <= inside / 3.0 <= high, inside / count


def test_a_delay_of_the_efforts_is_found(truth):
    found = rbd.identify(IIWA, record(truth, MOTION, delay=0.0123))
    assert found.delay == pytest.approx(0.0123, abs=2e-4)
    assert any("12.3 ms behind" in finding for finding in found.findings)
    assert error_on_another_motion(found, truth) < 0.003
    assert rbd.identify(IIWA, record(truth, MOTION, delay=-0.004)).delay == pytest.approx(-0.004, abs=2e-4)
    assert abs(rbd.identify(IIWA, record(truth, MOTION)).delay) < 1e-4


def test_currents_and_signs_are_found_and_gains_taken(truth):
    gains = np.array([1.0, 20.0, -1.0, 1.0, 1.0, 1.0, 1.0])
    recording = record(truth, MOTION)
    raw = rbd.Recording(recording.t, recording.q, tau=recording.tau / gains, joints=recording.joints)
    found = rbd.identify(IIWA, raw)
    assert any("link_2" in x or "joint_2" in x for x in found.findings if "gain is unknown" in x)
    known = rbd.identify(IIWA, raw, gains={"joint_2": 20.0, "joint_3": -1.0})
    assert error_on_another_motion(known, truth) < 0.003 and known.gains[1] == 20.0
    estimated = rbd.identify(IIWA, raw, gains="estimate")
    assert estimated.gains[1] == pytest.approx(20.0, rel=0.3) and any("gains from" in x for x in estimated.findings)


@pytest.mark.thorough
def test_compensated_gravity_is_found(truth):
    recording = record(truth.with_(gravity=(0.0, 0.0, 0.0)), periodic(IIWA, 1, period=4.0, periods=5))
    found = rbd.identify(IIWA, recording)
    assert any("gravity-compensated" in finding for finding in found.findings), found.findings


def test_outliers_count_less(truth):
    recording = record(truth, MOTION)
    rng = np.random.default_rng(0)
    tau = recording.tau.copy()
    for at in rng.integers(0, len(tau), 12):
        tau[at:at + 25] += 30.0 * rng.normal(size=7)
    bad = rbd.Recording(recording.t, recording.q, tau=tau, joints=recording.joints)
    robust, plain = (rbd.identify(IIWA, bad, robust=robust, delay=0.0) for robust in (True, False))
    assert error_on_another_motion(robust, truth) < 0.01
    assert error_on_another_motion(robust, truth) < 0.5 * error_on_another_motion(plain, truth)
    assert any("standard deviations off" in finding for finding in robust.findings)


def test_what_is_not_shown_is_named_and_stays_as_described(truth):
    c = np.array(MOTION.coefficients)
    c[:, :5] = 0.0    # only the wrist moves
    still = rbd.identify(IIWA, record(truth, type(MOTION)(c, MOTION.period, MOTION.periods)))
    assert any("do not move: joint_1, joint_2, joint_3, joint_4, joint_5" in finding for finding in still.findings)
    assert {"viscous(joint_4)", "coulomb(joint_2)"} <= set(still.unidentifiable)
    assert consistent(still.model)
    np.testing.assert_array_equal(still.model.damping[:5], IIWA.damping[:5])
    unseen = [e for e in still.confidence if not e.seen]
    assert {e.name for e in unseen} < set(still.unidentifiable) and len(unseen) > 5


def test_a_load_is_found_from_a_short_motion(truth):
    load = rbd.Inertia(2.3, np.array([0.02, -0.03, 0.11]), np.diag([0.012, 0.010, 0.006]))
    body = IIWA.body_names[-1]
    links = dict(truth.description.links)
    with_load = rbd.RobotModel.from_description(dataclasses.replace(truth.description, links={
        **links, body: _union(links[body], load)}))
    found = rbd.identify(truth, record(with_load, periodic(IIWA, 5, period=5.0, periods=1)), mode="payload", body=body)
    assert found.load.mass == pytest.approx(2.3, abs=0.03)
    np.testing.assert_allclose(found.load.com, load.com, atol=0.003)
    np.testing.assert_allclose(found.load.matrix, load.matrix, atol=0.006)
    assert found.load.matrix.trace() > 0.0 and np.linalg.eigvalsh(found.load.matrix)[0] > 0.0
    for name in links:    # nothing but the load
        if name != body:
            assert np.array_equal(found.model.description.links[name].matrix, links[name].matrix)
    with pytest.raises(rbd.RbdError, match="does not move"):
        rbd.identify(truth, record(with_load, MOTION), mode="payload", body=IIWA.body_names[0])


def _union(a, b):
    m = a.mass + b.mass
    c = (a.moment + b.moment) / m
    return rbd.Inertia(m, c, a.about_origin + b.about_origin - m * (c @ c * np.eye(3) - np.outer(c, c)))


def test_friction_alone(truth):
    found = rbd.identify(truth.with_(damping=0.0, friction=0.0), record(truth, MOTION, offset=0.3), mode="friction")
    np.testing.assert_allclose(found.model.damping, truth.damping, rtol=0.03)
    np.testing.assert_allclose(found.model.friction, truth.friction, rtol=0.03)
    np.testing.assert_allclose(found.offset, 0.3, atol=0.02)
    assert np.array_equal(found.model.inertial_parameters, truth.inertial_parameters)


def test_rests_are_left_out(truth):
    """At rest a joint sticks: its effort is anything between minus and plus its friction."""
    recording = record(truth, rest_to_rest(MOTION))
    period, n = recording.t[1] - recording.t[0], 2500
    t = period * np.arange(len(recording.t) + 2 * n)
    q = np.concatenate([np.repeat(recording.q[:1], n, axis=0), recording.q, np.repeat(recording.q[-1:], n, axis=0)])
    stuck = np.array([0.9, -0.9, 0.9, -0.9, 0.9, -0.9, 0.9]) * truth.friction
    ends = [recording.tau[[k]].repeat(n, axis=0) + stuck for k in (0, -1)]
    found = rbd.identify(IIWA, rbd.Recording(t, q, tau=np.concatenate([ends[0], recording.tau, ends[1]]),
                                             joints=recording.joints))
    assert any("in which nothing moves, left out" in finding for finding in found.findings)
    assert found.duration < 31.0 and error_on_another_motion(found, truth) < 0.004


def test_links_fixed_to_others_stay_as_they_are(truth):
    links = dict(IIWA.description.links)
    last = IIWA.body_names[-1]
    tool = rbd.JointSpec("mount", "fixed", last, "tool", position=np.array([0.0, 0.0, 0.1]))
    model = rbd.RobotModel.from_description(dataclasses.replace(
        IIWA.description, links={**links, "tool": rbd.Inertia(0.05, np.zeros(3), 1e-4 * np.eye(3))},
        joints=(*IIWA.description.joints, tool)))
    found = rbd.identify(model, record(truth, MOTION), delay=0.0)
    assert np.array_equal(found.model.description.links["tool"].matrix, 1e-4 * np.eye(3))
    assert found.residual.overall < 0.003 and consistent(found.model)


def test_a_description_without_inertias_is_a_start(truth):
    empty = rbd.RobotModel.from_description(dataclasses.replace(
        IIWA.description, links={name: rbd.Inertia.zero() for name in IIWA.description.links}))
    found = rbd.identify(empty, record(truth, MOTION))
    assert found.residual.overall < 0.003 and consistent(found.model)
    assert any("has no mass in the description" in finding for finding in found.findings)
    assert error_on_another_motion(found, truth) < 0.003


def test_another_recording_to_judge_by(truth):
    other, said = record(truth, periodic(IIWA, 9), 3), []
    found = rbd.identify(IIWA, record(truth, MOTION), validation=other, progress=said.append, delay=0.0)
    assert found.residual.overall < 0.003 and len(found.validation.measured) > 100
    assert len(said) >= 3
    model = rbd.sample("two_link")
    found = rbd.identify(model, record(perturbed(model), periodic(model)), holdout=0.0, progress=said.append)
    assert not found.residual.held_out


def test_efforts_are_checked_after_their_gains(truth):
    """Whoever gives gains of currents is told as well that gravity is missing, or that a sign is wrong."""
    recording = record(truth.with_(gravity=(0.0, 0.0, 0.0)), periodic(IIWA, 1, period=4.0, periods=5))
    currents = rbd.Recording(recording.t, recording.q, tau=recording.tau / 20.0, joints=recording.joints)
    fewer_steps = {"delay": 0.0, "prior": 100.0}
    found = rbd.identify(IIWA, currents, gains=np.full(7, 20.0), **fewer_steps)
    assert any("gravity-compensated" in finding for finding in found.findings), found.findings
    plain = record(truth, MOTION)
    found = rbd.identify(IIWA, plain, gains={"joint_2": -1.0}, **fewer_steps)
    assert any("effort of joint_2 has the opposite sign" in finding for finding in found.findings)


def test_a_delay_beyond_the_range_is_said(truth):
    found = rbd.identify(IIWA, record(truth, MOTION, delay=0.09))
    assert found.delay == pytest.approx(0.09, abs=1e-3) or any("give the delay" in x for x in found.findings)
    early = rbd.identify(IIWA, record(truth, MOTION, delay=-0.5))
    assert any("give the delay" in finding for finding in early.findings), early.findings


def test_what_is_wrong_with_the_recording_to_judge_by_is_said():
    model = rbd.sample("two_link")
    truth = perturbed(model)
    other = record(truth, periodic(model, 9), 3)
    order = np.random.default_rng(0).permutation(len(other.t))
    shuffled = rbd.Recording(other.t[order], other.q[order], tau=-other.tau[order], joints=other.joints)
    found = rbd.identify(model, record(truth, periodic(model)), validation=shuffled, delay=0.0)
    assert any(x.startswith("validation: ") and "not in order of time" in x for x in found.findings)
    assert any(x.startswith("validation: ") and "opposite sign" in x for x in found.findings)


def test_no_description_knows_of_a_load(truth):
    body = IIWA.body_names[-1]
    found = rbd.identify(truth, record(truth, periodic(IIWA, 5, period=5.0, periods=1)), mode="payload", body=body)
    assert not [e for e in found.confidence if e.name.startswith("m") and e.prior != 0.0]


def test_the_recording_that_was_fitted_judges_nothing():
    model = rbd.sample("two_link")
    recording = record(perturbed(model), periodic(model, period=8.0, periods=1))
    again = rbd.Recording(recording.t, recording.q, tau=recording.tau, joints=recording.joints)
    found = rbd.identify(model, recording, validation=again, delay=0.0)
    assert not found.residual.held_out and found.residual.overall == found.residual.training
    assert any("this is the recording that was fitted" in finding for finding in found.findings)


@pytest.mark.parametrize(("before", "after", "training", "held_out", "words"), [
    (0.05, 0.06, 0.05, True, "no better than the description"),
    (0.5, 0.12, 0.11, True, "12.0 % on motion that was not"),
    (0.5, 0.2, 0.19, False, "20.0 % where it was fitted: the motion is too poor"), (0.5, 0.3, 0.02, True, "too poor"),
    (0.2, 0.08, 0.02, True, "too short or too poor"),
    (0.2, 0.08, 0.02, False, ""), (0.2, 0.08, 0.05, True, ""), (0.2, 0.02, 0.001, True, ""),
    (1e-12, 2e-12, 1e-12, True, ""), (float("nan"), float("nan"), 0.1, True, "")])
def test_a_result_that_is_not_good_is_not_called_so(before, after, training, held_out, words):
    each = np.full(7, 0.1)
    said = verdict(IIWA, Residuals(each, each, each, before, after, after, training, held_out))
    assert [words in line for line in said] == [True] * bool(words), said
