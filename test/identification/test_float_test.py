"""The float test of a recording: closed forms against integration and simulation, and what is wrong by its name."""

import re

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import rbd_ros as rbd
from rbd_ros.core.identification.float_test import drift, drift_interval
from rbd_ros.core.model.payload import with_payloads

IIWA = rbd.sample("iiwa")
LEVEL = np.array([2.0, 3.0, 1.5, 1.5, 0.8, 0.5, 0.3])
DAMPING = 0.5 * LEVEL
LOAD = rbd.Inertia(2.0, [0.02, 0.01, 0.1], 1e-3 * np.eye(3))


def motion(model, seed=0, reach=0.3, duration=60.0):
    """A slow motion of all joints: t, q, v, a."""
    rng = np.random.default_rng((21, seed))
    t = np.arange(0.0, duration, 0.01)
    w = 2.0 * np.pi * np.arange(1, 4) / 30.0
    amplitude, phase = reach * rng.normal(size=(3, model.nv)), rng.uniform(0.0, 2.0 * np.pi, (3, model.nv))
    angle = w[None, :, None] * t[:, None, None] + phase
    w = w[:, None]
    return (t, (amplitude * np.sin(angle)).sum(axis=1), (amplitude * w * np.cos(angle)).sum(axis=1),
            -(amplitude * w * w * np.sin(angle)).sum(axis=1))


def record(truth, seed=0, factor=1.0, offset=0.0, noise=0.1, **options):
    """The motion with efforts of the true robot, as its drives say them."""
    t, q, v, a = motion(truth, seed, **options)
    rng = np.random.default_rng((22, seed))
    nv = truth.nv
    tau = rbd.inverse_dynamics(truth, q, v, a) + LEVEL[:nv] * np.tanh(v / 0.002) + DAMPING[:nv] * v
    tau = factor * tau + offset + noise * rng.normal(size=tau.shape)
    return rbd.Recording(t, q + 1e-5 * rng.normal(size=q.shape), tau=tau, joints=truth.joint_names)


def at(j, value, otherwise):
    """An array of seven numbers, of which number j is another."""
    array = np.full(7, otherwise)
    array[j] = value
    return array


@pytest.mark.parametrize("damping", [0.0, 1e-9, 1e-4, 0.1, 2.0, 300.0])
def test_the_closed_form_is_the_motion_from_rest(damping):
    rng = np.random.default_rng(3)
    level, inertia, time = rng.uniform(0.1, 2.0, (3, 15))
    excess = rng.uniform(-4.0, 4.0, 15)
    force = np.sign(excess) * np.maximum(np.abs(excess) - level, 0.0)
    assert force.any() and not force.all()

    def rates(share, x):
        """Of all 15 at once, each in its own time."""
        v = x[15:]
        return np.concatenate([time * v, time * (force - damping * v) / inertia])

    slopes = np.block([[np.zeros((15, 15)), np.diag(time)], [np.zeros((15, 15)), np.diag(-time * damping / inertia)]])
    way = solve_ivp(rates, (0.0, 1.0), np.zeros(30), rtol=1e-10, atol=1e-13, method="Radau", jac=slopes).y[:15, -1]
    for k in range(15):
        np.testing.assert_allclose(drift(excess[k], level[k], damping, inertia[k], time[k]), way[k], rtol=1e-6,
                                   atol=1e-11)


def test_both_forms_of_small_damping_agree():
    below, above = (drift(2.0, 0.5, damping, 1.0, 2.0) for damping in (0.5e-3 * (1 - 1e-9), 0.5e-3 * (1 + 1e-9)))
    np.testing.assert_allclose(below, above, rtol=1e-8)


def test_the_interval_is_that_of_its_corners():
    rng = np.random.default_rng(4)
    for _ in range(50):
        e, half = rng.normal(), rng.uniform(0.0, 1.0)
        intervals = [tuple(np.sort(rng.uniform(0.1, 1.5, 2))) for _ in range(3)]
        low, high = drift_interval(e, half, *intervals, 1.0)
        drifts = [drift(rng.uniform(e - half, e + half), *(rng.uniform(*each) for each in intervals), 1.0)
                  for _ in range(200)]
        assert low <= min(drifts) and max(drifts) <= high
        corners = [drift(e + s * half, level, damping, inertia, 1.0) for s in (-1, 1) for level in intervals[0]
                   for damping in intervals[1] for inertia in intervals[2]]
        np.testing.assert_allclose([low, high], [min(corners), max(corners)])


@pytest.mark.parametrize("seed", range(3))
def test_a_model_that_is_right_passes(seed):
    result = rbd.float_test(IIWA, record(IIWA, seed))
    assert result.passed and not result.advice and not result.gains and result.load is None
    assert all(joint.low == joint.drift == joint.high == 0.0 for joint in result.joints)
    np.testing.assert_allclose([joint.level for joint in result.joints], LEVEL, rtol=0.15)


@pytest.mark.parametrize(("j", "gain"), [(1, 1.3), (3, 0.7), (1, -1.0)])
def test_a_wrong_gain_is_found(j, gain):
    recording = record(IIWA, 1, at(j, 1.0 / gain, 1.0))
    result = rbd.float_test(IIWA, recording)
    name = IIWA.joint_names[j]
    assert [joint.joint for joint in result.joints if not joint.passed] == [name] == list(result.gains)
    np.testing.assert_allclose(result.gains[name], gain, rtol=0.01)
    verdict = result.joints[j].verdict
    assert verdict == ("climbs" if gain > 1.0 or gain < 0.0 else "sinks")
    assert f"{name}={result.gains[name]:.4g}" in result.advice[0] or (
        gain < 0.0 and f"{name} has the opposite sign" in result.advice[0])
    assert rbd.float_test(IIWA, recording, gains=result.gains).passed


def test_a_gain_that_gravity_does_not_show_has_a_bound_alone():
    """The first axis is vertical: slow motion says that the torques are too small, not by how much."""
    result = rbd.float_test(IIWA, record(IIWA, 1, at(0, 0.05, 1.0), noise=0.2))
    assert result.joints[0].torques.factor < result.joints[0].torques.factor_half_width
    assert re.match(r"true torque is more than \d.* what the drive of joint_1 says.*known load", result.advice[0])


def test_an_offset_is_found():
    result = rbd.float_test(IIWA, record(IIWA, 2, offset=at(3, 2.5, 0.0)))
    joint = result.joints[3]
    assert not joint.passed and joint.torques.kind == "offset" and not result.gains
    np.testing.assert_allclose(joint.torques.offset, 2.5, atol=0.1)
    assert "offset of +2.5" in result.advice[0]


@pytest.mark.parametrize("gravity", [(0.0, 0.0, -9.81), (6.0, -2.0, -7.0)])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_load_explains_all_joints(gravity, sign):
    model = rbd.sample("iiwa", gravity=gravity)
    loaded = with_payloads(model, {"link_7": LOAD})
    truth, known = (loaded, model) if sign > 0.0 else (model, loaded)
    result = rbd.float_test(known, record(truth, 3))
    assert not result.passed and result.load is not None
    np.testing.assert_allclose(result.load.mass, sign * 2.0, atol=0.1)
    np.testing.assert_allclose(result.load.com, LOAD.com, atol=0.01)
    assert len(result.advice) == 1 and ("missing" in result.advice[0]) == (sign > 0.0)


def test_two_wrong_gains_are_no_load():
    factors = at(1, 1.0 / 1.3, 1.0)
    factors[3] = 1.0 / 0.8
    result = rbd.float_test(IIWA, record(IIWA, 1, factors))
    assert result.load is None
    np.testing.assert_allclose([result.gains["joint_2"], result.gains["joint_4"]], [1.3, 0.8], rtol=0.01)


@pytest.mark.parametrize(("count", "least"), [(20, 16), pytest.param(60, 52, marks=pytest.mark.thorough)])
def test_the_interval_holds_the_gain(count, least):
    """95 % of so many recordings: at least so many of them, which fewer than 1 in 100 would miss."""
    inside = 0
    for seed in range(count):
        gain = 1.0 + 0.4 * np.random.default_rng(seed).uniform(-1.0, 1.0)
        error = rbd.float_test(IIWA, record(IIWA, seed, at(1, 1.0 / gain, 1.0), noise=1.0, duration=30.0)
                               ).joints[1].torques
        inside += abs(error.factor - 1.0 / gain) <= error.factor_half_width
    assert inside >= least


def test_predicted_drifts_are_those_of_a_simulated_arm():
    """Brakes hold all joints but one; its drive exerts 1.3 times what it is told."""
    gain, j = 1.3, 1
    truth = IIWA.with_(friction=LEVEL, damping=DAMPING)
    result = rbd.float_test(IIWA, record(IIWA, 1, at(j, 1.0 / gain, 1.0)), time=0.25)
    joint = result.joints[j]
    arm = rbd.Simulator(truth, q=joint.q, step=1e-4, limits=False)
    arm.brakes = at(j, 0.0, 1e4)
    for _ in range(2500):
        effort = rbd.gravity_effort(IIWA, arm.q)
        effort[j] *= gain
        arm.step(effort)
    moved = arm.q[j] - joint.q[j]
    assert 0.005 < abs(moved) < 0.3
    np.testing.assert_allclose(joint.drift, moved, rtol=0.1)
    assert joint.low <= moved <= joint.high


def test_friction_that_holds_an_error_is_said():
    """Of 5 % on the elbow, whose friction is larger."""
    result = rbd.float_test(IIWA, record(IIWA, 2, at(3, 0.96, 1.0)))
    assert result.passed
    assert "joint_4" in result.advice[0] and "friction holds it" in result.advice[0]


def test_a_joint_that_is_not_shown_does_not_pass():
    recording = record(IIWA, 0)
    q = np.array(recording.q)
    q[:, 4] = 0.3
    result = rbd.float_test(IIWA, rbd.Recording(recording.t, q, tau=recording.tau, joints=IIWA.joint_names))
    assert [joint.joint for joint in result.joints if joint.verdict == "unknown"] == ["joint_5"]
    assert not result.passed and any("joint_5 is not shown" in line for line in result.advice)


def test_a_joint_that_moves_one_way_is_not_shown():
    t = np.linspace(0.0, 20.0, 2001)
    q = np.stack([0.05 * t, 0.5 * np.sin(t)], axis=1)
    model = rbd.sample("two_link")
    tau = rbd.inverse_dynamics(model, q, np.gradient(q, t, axis=0), 0.0 * q)
    result = rbd.float_test(model, rbd.Recording(t, q, tau=tau + 0.2 * np.sign(np.gradient(q, t, axis=0))))
    assert [joint.verdict for joint in result.joints] == ["unknown", "rests"]


@pytest.mark.parametrize(("options", "said"), [
    ({"window": 0.0}, "window: expected a positive number"), ({"window": [0.1, 0.2]}, "or 7"),
    ({"time": -1.0}, "time"), ({"body": "hand"}, "body"), ({"gains": "estimate"}, "gains: expected numbers"),
    ({"gains": {"joint_9": 2.0}}, "joint_9")])
def test_wrong_input_is_refused(options, said):
    with pytest.raises(rbd.RbdError, match=said):
        rbd.float_test(IIWA, record(IIWA, 0), **options)
