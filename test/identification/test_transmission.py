"""Coupled wrists: positions and torques of motors as those of joints, and rotors and friction that two joints feel."""
from __future__ import annotations

import dataclasses
from functools import cache

import numpy as np
import pytest
from support.recordings import efforts, periodic, perturbed, record

import rbd_ros as rbd
from rbd_ros.core.model.inertia import combine

pytestmark = pytest.mark.filterwarnings("ignore::rbd_ros.RbdWarning")
IIWA = rbd.sample("iiwa")
NAMES = IIWA.velocity_names
MOTION = periodic(IIWA, 2, periods=3)
ROTOR, VISCOUS, COULOMB = 0.08, 0.7, 1.1
RATIOS = {"equal": (50.0, 50.0), "unlike": (-40.0, 20.0), "without gear": (1.0, 1.0)}
EACH = pytest.mark.parametrize("ratios", [pytest.param(
    ratios, marks=() if name == "unlike" else pytest.mark.thorough, id=name) for name, ratios in RATIOS.items()])


def wrist(first=50.0, second=50.0):
    return rbd.Transmission({**dict.fromkeys(NAMES[:-1], 80.0), NAMES[-1]: {NAMES[-2]: first, NAMES[-1]: second}})


def coupling(first, second, v, a):
    """What the last motor adds to the last two joints."""
    c = np.array([first, second]) / max(abs(first), abs(second))
    speed, acceleration = v[:, -2:] @ c, a[:, -2:] @ c
    out = np.zeros_like(v)
    out[:, -2:] = np.outer(ROTOR * acceleration + VISCOUS * speed + COULOMB * np.tanh(speed / 0.01), c)
    return out


def coupled_recording(truth, first, second, motion=MOTION, seed=0):
    plain = record(truth, motion, seed)
    _, v, a = motion(plain.t)[:3]
    return rbd.Recording(plain.t, plain.q, tau=plain.tau + coupling(first, second, v, a), joints=plain.joints)


@pytest.fixture(scope="module")
def truth():
    return perturbed(IIWA, 4)


@pytest.fixture(scope="module")
def identified(truth):
    """What is found by ratios of the last motor, each once."""
    return cache(lambda *ratios: rbd.identify(IIWA, coupled_recording(truth, *ratios), transmission=wrist(*ratios)))


@EACH
def test_rotor_and_friction_of_the_motor_are_found(truth, identified, ratios):
    found = identified(*ratios)
    assert found.residual.overall < 0.003
    for name, expected in (("rotor", ROTOR), ("viscous", VISCOUS), ("coulomb", COULOMB)):
        value = getattr(found.transmission, name)
        assert value[-1] == pytest.approx(expected, rel=0.08) and not value[:-1].any(), name
        estimate = next(e for e in found.confidence if e.name == f"{name}(motor {NAMES[-1]})")
        assert estimate.seen and abs(estimate.linear - expected) < 1.5 * estimate.half_width
    np.testing.assert_allclose(found.model.damping, truth.damping, rtol=0.08)
    q, v, a = periodic(IIWA, 77)(np.linspace(0.0, 10.0, 300))[:3]
    expected = efforts(truth, periodic(IIWA, 77), np.linspace(0.0, 10.0, 300)) + coupling(*ratios, v, a)
    assert np.linalg.norm(found.effort(q, v, a) - expected) < 0.003 * np.linalg.norm(expected)
    np.testing.assert_allclose(found.transmission.effort(found.model, v, a)[0],
                               found.transmission.effort(found.model, v[0], a[0]), rtol=1e-12)


@EACH
def test_no_numbers_per_joint_can_say_that(truth, identified, ratios):
    alone, known = rbd.identify(IIWA, coupled_recording(truth, *ratios)), identified(*ratios)
    assert (alone.residual.after[-2:] > 5.0 * known.residual.after[-2:]).all() and alone.transmission is None


def test_ratios_count_by_their_proportion(truth, identified):
    first, second = RATIOS["unlike"]
    one = identified(first, second)
    other = rbd.identify(IIWA, coupled_recording(truth, first, second), transmission=wrist(first / 20.0, second / 20.0))
    np.testing.assert_allclose(one.transmission.rotor, other.transmission.rotor, rtol=1e-9)


def test_a_load_is_found_behind_a_known_wrist(truth):
    known = wrist().with_(rotor=ROTOR, viscous=VISCOUS, coulomb=COULOMB)
    body = IIWA.body_names[-1]
    links = dict(truth.description.links)
    load = rbd.Inertia(2.0, np.array([0.0, 0.02, 0.1]), 0.01 * np.eye(3))
    loaded = rbd.RobotModel.from_description(dataclasses.replace(
        truth.description, links={**links, body: combine([links[body], load])}))
    recording = coupled_recording(loaded, 50.0, 50.0)
    found = rbd.identify(truth, recording, mode="payload", body=body, transmission=known)
    assert found.load.mass == pytest.approx(2.0, abs=0.03)
    assert found.transmission.rotor[-1] == pytest.approx(ROTOR)    # a load does not change it
    friction = rbd.identify(truth, coupled_recording(truth, 50.0, 50.0), mode="friction", transmission=known)
    assert friction.transmission.viscous[-1] == pytest.approx(VISCOUS, rel=0.05)


def test_motors_tell_where_joints_are():
    rng = np.random.default_rng(0)
    drive = rbd.Transmission({"a": 30.0, "b": {"a": 5.0, "b": -20.0}})
    t, q, v, a, tau = np.arange(6.0), *rng.normal(size=(4, 6, 2))
    R = np.array([[30.0, 0.0], [5.0, -20.0]])
    motors = rbd.Recording(t, q @ R.T, v @ R.T, a @ R.T, tau=tau)
    joints = drive.joint_recording(motors, zero={"b": 0.25})
    assert joints.joints == ("a", "b")
    np.testing.assert_allclose(joints.q - q, np.tile([0.0, 0.25], (6, 1)), atol=1e-12)
    np.testing.assert_allclose(joints.v, v)
    np.testing.assert_allclose(joints.a, a)
    np.testing.assert_allclose(np.sum(joints.tau * joints.v, axis=1), np.sum(motors.tau * motors.v, axis=1))   # power
    swapped = rbd.Recording(t, motors.q[:, ::-1], tau=tau[:, ::-1], joints=["b", "a"])
    other = drive.joint_recording(swapped, zero=[0.0, 0.25])
    np.testing.assert_allclose(other.q, joints.q)
    np.testing.assert_allclose(other.tau, joints.tau)
    assert "b: 5 a + -20 b" in repr(drive)


def test_a_file_says_the_same(tmp_path):
    path = tmp_path / "wrist.yaml"
    path.write_text("j5: 45\nj6: {j5: 32, j6: 32}\n")
    loaded = rbd.Transmission.load(path)
    assert loaded.motors == loaded.joints == ("j5", "j6")
    np.testing.assert_array_equal(loaded.matrix, [[45.0, 0.0], [32.0, 32.0]])
    path.write_text("j5: fast\n")
    with pytest.raises(rbd.RbdError, match=r"wrist.yaml.*motor 'j5' has the ratio 'fast'"):
        rbd.Transmission.load(path)


@pytest.mark.parametrize(("call", "words"), [
    (lambda: rbd.Transmission({}), "motor → ratio"), (lambda: rbd.Transmission([1.0]), "motor → ratio"),
    (lambda: rbd.Transmission({"a": 0.0}), "motor 'a' moves no joint"),
    (lambda: rbd.Transmission({"a": {"b": float("nan")}}), "motor 'a' has the ratio nan"),
    (lambda: rbd.Transmission({"a": True}), "motor 'a' has the ratio True"),
    (lambda: wrist().with_(rotor=-1.0), "rotor"), (lambda: wrist().with_(viscous="x"), "viscous"),
    (lambda: rbd.identify(IIWA, record(IIWA, MOTION), transmission={"a": 1.0}), "expected rbd.Transmission"),
    (lambda: rbd.identify(IIWA, record(IIWA, MOTION), transmission=rbd.Transmission({"joint_77": 1.0})),
     "unknown joint 'joint_77'"),
    (lambda: rbd.Transmission({"a": {"a": 1.0, "b": 1.0}}).joint_recording(record(IIWA, MOTION)), "1 motors"),
    (lambda: rbd.Transmission({"a": 1.0}).joint_recording(record(IIWA, MOTION)), "7 columns"),
    (lambda: rbd.Transmission(dict.fromkeys("abcdefg", 2.0)).joint_recording(record(IIWA, MOTION)),
     "no column for a motor"),
    (lambda: rbd.Transmission({"a": 2.0}).joint_recording(rbd.Recording([0.0], [[0.0]], tau=[[0.0]]), {"b": 1.0}),
     "zero: unknown joint 'b'"),
    (lambda: rbd.Transmission({"a": 2.0}).joint_recording(rbd.Recording([0.0], [[0.0]], tau=[[0.0]]), "x"),
     "zero must be"),
])
def test_what_is_wrong_is_said(call, words):
    with pytest.raises(rbd.RbdError, match=words):
        call()


def test_rounding_below_zero_is_zero():
    """Solvers keep bounds to their precision only."""
    found = wrist().identified(np.array([0.1, -1e-13, 0.3]))
    assert (found.rotor[-1], found.viscous[-1], found.coulomb[-1]) == (0.1, 0.0, 0.3)
