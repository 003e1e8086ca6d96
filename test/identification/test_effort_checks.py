"""What is said of efforts: nothing wrong of right ones, however much friction they are and however short the motion;
what is wrong is found, and no model is written of efforts with a wrong sign.
"""
from __future__ import annotations

import mpmath
import numpy as np
import pytest
from benchmark.effort_findings import arm, case
from support.recordings import periodic, perturbed, record

import rbd_ros as rbd
from rbd_ros.cli.main import main
from rbd_ros.core.identification.effort_factor import effort_factor, inverse_covariance

pytestmark = pytest.mark.filterwarnings("ignore::rbd_ros.RbdWarning")
IIWA = rbd.sample("iiwa")
NAMES = IIWA.velocity_names
ABOUT = ("opposite sign", "gain is unknown", "gravity")
WRIST = np.array([0.0, 0.0, 0.0, 0.0, 6.0, 6.0, 6.0])    # N m of friction where gravity and motion need 0.1 to 3


def said(found):
    return [finding for finding in found.findings if any(words in finding for words in ABOUT)]


def rubbing(recording, motion, dry):
    """The recording with friction that is larger near rest and in one direction, as gears have it."""
    v = motion(recording.t).v
    more = dry * (1.0 + 0.3 * np.exp(-(v / 0.1)**2) + 0.1 * np.tanh(v / 0.02)) * np.tanh(v / 0.02)
    return rbd.Recording(recording.t, recording.q, tau=recording.tau + more, joints=recording.joints)


def turned(recording, gains):
    return rbd.Recording(recording.t, recording.q, tau=recording.tau * gains, joints=recording.joints)


@pytest.mark.parametrize("seed", [
    0, 5, 18, *(pytest.param(seed, marks=pytest.mark.thorough) for seed in (3, 12, 16, 20, 26))])
def test_right_efforts_are_not_called_wrong(seed):
    """Joints whose effort is mostly friction, large rotors, short and plain motions."""
    found = rbd.identify(IIWA, case("iiwa", seed).recording, delay=0.0)
    assert not said(found) and not found.reversed


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.thorough) for seed in (1, 2, 3))])
def test_short_motions_show_nothing_wrong(seed):
    motion = periodic(IIWA, seed, period=3.0, periods=1, harmonics=1, reach=0.3)
    found = rbd.identify(IIWA, rubbing(record(perturbed(IIWA, seed), motion, seed), motion, WRIST), delay=0.0)
    assert not said(found)
    assert any("too short to keep a part" in finding for finding in found.findings)


@pytest.mark.parametrize("name", ["joint_2", pytest.param("joint_4", marks=pytest.mark.thorough)])
def test_a_motion_that_is_too_poor_is_named(name):
    """A joint that stands until the part that is not fitted begins."""
    j, truth, motion = NAMES.index(name), perturbed(IIWA, 2).with_(friction=20.0), periodic(IIWA, 2, periods=1)
    t = np.arange(0.0, 10.0, 0.004)
    q = motion(t).q
    q[:, j] *= np.clip((t - 7.9) / 2.0, 0.0, 1.0)**4
    v = np.gradient(q, t, axis=0)
    tau = rbd.inverse_dynamics(truth, q, v, np.gradient(v, t, axis=0)) + rbd.friction_effort(truth, v)
    tau += 0.2 * np.random.default_rng(0).normal(size=tau.shape)
    found = rbd.identify(IIWA, rbd.Recording(t, q, tau=tau, joints=NAMES), delay=0.0)
    assert found.residual.overall > 0.1 and not said(found)
    words = next(finding for finding in found.findings if "on motion that was not fitted" in finding)
    assert name in words and "rbd excite" in words and f"{100.0 * found.residual.overall:.1f} %" in words


@pytest.mark.parametrize("joint", [1, 5, *(pytest.param(joint, marks=pytest.mark.thorough) for joint in (0, 3))])
def test_a_wrong_sign_is_found_and_nothing_is_written(joint, tmp_path, capsys):
    gains = np.ones(7)
    gains[joint] = -1.0
    motion = periodic(IIWA, 1, periods=1)
    recording = turned(rubbing(record(perturbed(IIWA, 1), motion), motion, WRIST), gains)
    found = rbd.identify(IIWA, recording, delay=0.0)
    assert found.reversed == (NAMES[joint],)
    for write in (found.write_parameters, found.write_actuation, found.write_ur_friction,
                  lambda path: found.write_urdf(path, rbd.sample_path("iiwa"))):
        with pytest.raises(rbd.RbdError, match=f"--gains {NAMES[joint]}=-1"):
            write(tmp_path / "new")
    assert not list(tmp_path.iterdir())
    if joint == 1:
        path, new, page = (str(tmp_path / name) for name in ("a.npz", "new.urdf", "report.html"))
        np.savez(path, t=recording.t, q=recording.q, tau=recording.tau, joints=np.array(NAMES))
        options = ["identify", str(rbd.sample_path("iiwa")), path, "--delay", "0", "-o", new]
        assert main([*options, "--report", page, "--parameters", new]) == 1
        assert "--gains joint_2=-1" in capsys.readouterr().err.splitlines()[-1]
        assert sorted(file.name for file in tmp_path.iterdir()) == ["a.npz", "report.html"]
        assert main([*options, "--gains", "joint_2=-1"]) == 0 and rbd.load_urdf(new).nv == 7


@pytest.mark.parametrize("factor", [
    0.2, *(pytest.param(factor, marks=pytest.mark.thorough) for factor in (0.05, 10.0))])
def test_currents_are_found(factor):
    motion = periodic(IIWA, 1, periods=1)
    recording = rubbing(record(perturbed(IIWA, 1), motion), motion, WRIST)
    found = rbd.identify(IIWA, turned(recording, [1.0, factor, 1.0, 1.0, 1.0, 1.0, 1.0]), delay=0.0)
    assert [words for words in said(found) if "joint_2" in words and "gain is unknown" in words] == said(found)
    assert len(said(found)) == 1 and not found.reversed


def test_gravity_that_is_compensated_is_found():
    motion = periodic(IIWA, 1, period=4.0, periods=3)
    found = rbd.identify(IIWA, record(perturbed(IIWA, 1).with_(gravity=(0.0, 0.0, 0.0)), motion), delay=0.0)
    assert any("gravity-compensated" in finding for finding in found.findings)


@pytest.mark.parametrize("doubt", [0.02, 0.2, 1.0])
def test_the_rate_of_errors_is_what_is_asked_for(doubt):
    """Of a description that is off by this share, and noise that is as large as the effort."""
    rng = np.random.default_rng(0)
    t = np.linspace(0.0, 20.0, 200)
    b, D = np.sin(3.0 * t), doubt * np.stack([np.sin(3.0 * t), np.cos(2.0 * t)], axis=1)
    wrong = 0
    for _ in range(1000):
        y = b + D @ rng.normal(size=2) + rng.normal(size=200) + 3.0
        factor = effort_factor(y, b[:, None], (D,), np.ones((200, 1)), np.sign(np.cos(t))[:, None], 1.0, 0.02)
        assert factor is not None
        wrong += factor.above(1.0) or factor.below(1.0)
    assert wrong <= 55    # 40 are expected of both sides
    assert factor.below(20.0 if doubt < 0.5 else 2000.0) == (doubt < 0.5)


@pytest.mark.parametrize(("directions", "doubts"), [(12, 3), (12, 12), (12, 40)])
@pytest.mark.parametrize("variance", [1.0, 1e-6, 1e-14])
def test_the_inverse_covariance_is_that_of_fifty_digits(directions, doubts, variance):
    """Also where the description's error explains all, and the noise is next to nothing."""
    rng = np.random.default_rng(doubts)
    D, x = rng.normal(size=(directions, doubts)), rng.normal(size=directions)
    with mpmath.workdps(50):
        exact = mpmath.matrix(D)
        S = exact * exact.T + mpmath.mpf(variance) * mpmath.eye(directions)
        expected = np.array([float(value) for value in mpmath.lu_solve(S, mpmath.matrix(x))])
    found = inverse_covariance(D, variance)(x)
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=1e-10 * np.abs(expected).max())


def test_a_short_recording_with_more_doubts_than_directions_is_judged():
    """Of the recorded motion little remains beside friction; the covariance once rounded to a singular matrix."""
    found = rbd.identify(arm("kinova"), case("kinova", 271).recording)
    assert not said(found)


def test_parts_of_an_effort_in_proportion_are_not_told_apart():
    t = np.linspace(0.0, 20.0, 200)
    b, y = np.sin(3.0 * t), np.sin(3.0 * t) + 0.1 * np.random.default_rng(0).normal(size=200)
    D = 0.1 * np.cos(2.0 * t)[:, None]
    for parts, usable in (((b, 2.0 * b), False), ((b, np.cos(5.0 * t)), True)):
        factor = effort_factor(y, np.stack(parts, axis=1), (D, D), np.ones((200, 1)), np.sign(np.cos(t))[:, None],
                               1.0, 0.02)
        assert (factor is not None) == usable
