"""Friction by direction and by load: recovered where it is, not reported where it is not; drift in time."""
from __future__ import annotations

import re

import numpy as np
import pytest
from support.recordings import periodic, perturbed, record

import rbd_ros as rbd

pytestmark = pytest.mark.filterwarnings("ignore::rbd_ros.RbdWarning")
MODEL = rbd.sample("two_link")
NONE = np.zeros(2)


def recorded(seed, drift=0.0, period=15.0, reach=0.6, **law):
    truth = perturbed(MODEL, 1)
    motion = periodic(MODEL, seed, period=period, periods=2, reach=reach)
    plain = record(truth, motion, seed, noise=0.03)
    q, v, a = motion(plain.t)[:3]
    friction = rbd.Friction(truth.damping, truth.friction, **law)
    tau = rbd.inverse_dynamics(truth, q, v, a)
    more = friction.add(v, tau) - tau - rbd.friction_effort(truth, v)
    more[:, 0] += drift * (plain.t / plain.t[-1] - 0.5) * np.tanh(v[:, 0] / 0.01)
    return truth, rbd.Recording(plain.t, plain.q, tau=plain.tau + more, joints=plain.joints)


def test_load_and_viscous_asymmetry_are_recovered():
    load, e = np.array([0.15, 0.1]), np.array([0.15, -0.1])
    truth, recording = recorded(0, load=load, viscous_asymmetry=e)
    plain, found = (rbd.identify(MODEL, recording, drives=drives, delay=0.0) for drives in (False, True))
    assert plain.drives is None and found.residual.overall < 0.5 * plain.residual.overall
    np.testing.assert_allclose(found.drives.load, load, atol=0.02)
    np.testing.assert_allclose(found.drives.viscous_asymmetry, e, atol=0.04)
    np.testing.assert_allclose(found.model.damping, truth.damping, atol=0.05)
    np.testing.assert_allclose(found.model.friction, truth.friction, atol=0.06)
    names = [estimate.name for estimate in found.confidence]
    assert {f"load({name})" for name in MODEL.velocity_names} <= set(names)
    q, v, a = np.random.default_rng(3).normal(size=(3, 20, 2)) * 0.5
    tau = rbd.inverse_dynamics(truth, q, v, a)
    expected = rbd.Friction(truth.damping, truth.friction, load=load, viscous_asymmetry=e).add(v, tau)
    np.testing.assert_allclose(found.effort(q, v, a), expected, atol=0.05 * np.abs(expected).max())


@pytest.mark.parametrize("seeds", [5, pytest.param(12, marks=pytest.mark.thorough)])
def test_what_is_not_there_is_seldom_found(seeds):
    found = [rbd.identify(MODEL, recorded(seed)[1], drives=True, delay=0.0) for seed in range(seeds)]
    count = sum(np.count_nonzero(each.drives) for each in found)
    assert count <= 0.08 * 6 * len(found), count
    assert max(np.abs(each.drives.load).max() for each in found) < 0.02
    assert "load(elbow)" in found[0].unidentifiable or found[0].drives.load[1]


def test_the_level_by_direction_is_the_offset_in_motion():
    """Of which the motion shows no difference: it is reported once, as the offset."""
    a = np.array([0.1, -0.15])
    _, recording = recorded(2, asymmetry=a)
    found = rbd.identify(MODEL, recording, drives=True, delay=0.0)
    np.testing.assert_allclose(found.offset + found.drives.asymmetry, a, atol=0.03)
    v = np.array([[1.0, 1.0], [-1.0, -1.0]])
    np.testing.assert_allclose(found.effort(0 * v, v, 0 * v).mean(axis=0) - found.effort(0 * v, 0 * v, 0 * v)[0]
                               + found.offset, a, atol=0.03)


def test_motion_near_rest_tells_the_level_by_direction_from_the_offset():
    a = np.array([0.2, -0.15])
    _, recording = recorded(0, period=30.0, reach=0.3, smoothing=0.1, asymmetry=a)
    found = rbd.identify(MODEL, recording, drives=True, delay=0.0, smoothing=0.1, slowest=0.0)
    np.testing.assert_allclose(found.drives.asymmetry, a, atol=0.02)
    np.testing.assert_allclose(found.offset, 0.0, atol=0.03)


def test_drift_is_a_finding():
    _, recording = recorded(1, drift=0.4)
    found = [line for line in rbd.identify(MODEL, recording, delay=0.0).findings if "temperature" in line]
    assert len(found) == 1
    change, duration = map(float, re.search(r"shoulder changes by (\S+) N m .* over (\d+) s", found[0]).groups())
    assert 15.0 < duration < 30.0 and abs(change - 0.4 * duration / 30.0) < 0.06
    for seed in range(6):
        _, recording = recorded(seed)
        assert not any("temperature" in line for line in rbd.identify(MODEL, recording, delay=0.0).findings)


def test_what_is_not_supported_is_said():
    _, recording = recorded(0)
    with pytest.raises(rbd.RbdError, match="drives: not supported where friction"):
        rbd.identify(MODEL, recording, drives=True, friction=False)


def test_files_have_it(tmp_path):
    _, recording = recorded(0, load=np.array([0.15, 0.1]))
    found = rbd.identify(MODEL, recording, drives=True, delay=0.0)
    found.write_parameters(tmp_path / "found.yaml")
    text = (tmp_path / "found.yaml").read_text()
    assert "friction.load: [0.1" in text and ("asymmetry" in text) == bool(np.any(found.drives[:2]))
