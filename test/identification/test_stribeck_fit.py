"""Stribeck's effect: heights and velocities recovered with honest intervals, and nothing found where nothing is."""
from __future__ import annotations

import numpy as np
import pytest
from support.recordings import periodic, perturbed, record

import rbd_ros as rbd

pytestmark = pytest.mark.filterwarnings("ignore::rbd_ros.RbdWarning")
MODEL = rbd.sample("two_link")
HEIGHT, VELOCITY = np.array([1.2, 0.8]), np.array([0.15, 0.3])


def recorded(seed, height=HEIGHT, velocity=VELOCITY):
    truth = perturbed(MODEL, 1)
    motion = periodic(MODEL, seed, period=15.0, periods=2, reach=0.6)
    plain = record(truth, motion, seed, noise=0.03)
    v = motion(plain.t).v
    more = height * np.exp(-((v / velocity) ** 2)) * np.tanh(v / 0.01)
    return truth, motion, rbd.Recording(plain.t, plain.q, tau=plain.tau + more, joints=plain.joints)


def test_the_law_is_recovered():
    truth, _, recording = recorded(0)
    plain, found = (rbd.identify(MODEL, recording, stribeck=stribeck) for stribeck in (False, True))
    assert found.residual.overall < 0.5 * plain.residual.overall
    np.testing.assert_allclose(found.stribeck_height, HEIGHT, rtol=0.15)
    np.testing.assert_allclose(found.stribeck_velocity, VELOCITY, rtol=0.1)
    np.testing.assert_allclose(found.model.friction, truth.friction, atol=0.05)
    assert np.abs(found.model.friction - truth.friction).max() < np.abs(plain.model.friction - truth.friction).max()
    v = np.linspace(-1.0, 1.0, 401)[:, None] * np.ones(2)
    law = truth.damping * v + (truth.friction + HEIGHT * np.exp(-((v / VELOCITY) ** 2))) * np.tanh(v / 0.01)
    np.testing.assert_allclose(found.friction.effort(v), law, atol=0.12)
    q = np.zeros(2)
    at_rest = rbd.inverse_dynamics(found.model, q, 0 * q, 0 * q) + found.offset
    np.testing.assert_allclose(found.effort(q, v[210], 0 * q) - found.friction.effort(v[210]),
                               rbd.inverse_dynamics(found.model, q, v[210], 0 * q) + found.offset)
    np.testing.assert_allclose(found.effort(q, 0 * q, 0 * q), at_rest)
    names = [estimate.name for estimate in found.confidence]
    assert {f"stribeck({name})" for name in MODEL.velocity_names} <= set(names)


def test_intervals_hold_the_truth_as_often_as_they_say():
    inside = []
    for seed in range(15):
        _, _, recording = recorded(seed)
        found = rbd.identify(MODEL, recording, stribeck=True, delay=0.0)
        for entry in found.stribeck:
            j = MODEL.velocity_names.index(entry.joint)
            inside.append(abs(entry.velocity - VELOCITY[j]) <= entry.half_width)
        for estimate in found.confidence:
            for j, name in enumerate(MODEL.velocity_names):
                if estimate.name == f"stribeck({name})":
                    inside.append(abs(estimate.linear - HEIGHT[j]) <= estimate.half_width)
    assert len(inside) >= 40 and np.mean(inside) >= 0.85, (len(inside), np.mean(inside))


@pytest.mark.parametrize("seeds", [(0, 1), pytest.param((2, 3), marks=pytest.mark.thorough)])
def test_what_is_not_there_is_not_found(seeds):
    for seed in seeds:
        _, _, recording = recorded(seed, np.array([1.2, 0.0]))
        found = rbd.identify(MODEL, recording, stribeck=True, delay=0.0)
        names = [entry.joint for entry in found.stribeck]
        assert MODEL.velocity_names[1] not in names or found.stribeck_height[1] < 0.1
        if MODEL.velocity_names[1] not in names:
            assert f"stribeck({MODEL.velocity_names[1]})" in found.unidentifiable and not found.stribeck_height[1]


def test_it_is_a_part_of_friction():
    _, _, recording = recorded(0)
    with pytest.raises(rbd.RbdError, match="stribeck"):
        rbd.identify(MODEL, recording, stribeck=True, friction=False)
