"""Damping gains that the rate cannot carry: where the bound is, and the warning by name and with the remedy."""
from __future__ import annotations

import numpy as np
import pytest
from support.arm import arm
from support.elastic_arm import DRIVES, controller

import rbd_ros as rbd
from rbd_ros.runtime.control.feedforward import FeedforwardSettings
from rbd_ros.runtime.control.flatness import FlatnessSettings
from rbd_ros.runtime.damping_gains import LARGEST, felt_inertia, high_damping, largest_damping, sampled_inertia

MODEL = rbd.sample("two_link")
RATE = 500.0


@pytest.mark.parametrize(("share", "settles"), [(0.95, True), (1.1, False)])
def test_a_joint_oscillates_from_the_bound_on(share, settles):
    """Two cycles between state and torque."""
    inertia = 0.02
    ratio = share * float(largest_damping(np.array(inertia), RATE)) / (RATE * inertia)
    v = [1.0, 1.0, 1.0]
    for _ in range(1000):
        v.append(v[-1] - ratio * v[-3])
    assert (max(np.abs(v[-20:])) < 0.1) == settles


def test_the_inertia_that_a_joint_feels_while_the_others_give_way():
    matrices = np.stack([rbd.mass_matrix(MODEL, MODEL.random_configuration(i)) for i in range(3)])
    expected = (1.0 / np.stack([np.diag(np.linalg.inv(each)) for each in matrices])).min(axis=0)
    np.testing.assert_allclose(felt_inertia(matrices), expected)
    assert (expected < np.einsum("nii->ni", matrices).min(axis=0)).all()
    assert felt_inertia(np.zeros((1, 2, 2))) is None and felt_inertia(np.full((1, 2, 2), np.nan)) is None
    assert LARGEST >= 300 and sampled_inertia(MODEL).shape == (2,)


@pytest.mark.parametrize("settings", [FeedforwardSettings, FlatnessSettings])
def test_the_warning_names_joint_gain_bound_and_remedy(settings):
    most = largest_damping(sampled_inertia(MODEL), RATE)
    good = settings.from_values({"gains.kd": (0.9 * most).tolist()}, MODEL).damping_gains()
    assert high_damping(good, RATE) == "" and high_damping(good, 0.5 * RATE)
    said = high_damping(settings.from_values({"gains.kd": [0.9 * most[0], 2.0 * most[1]]}, MODEL).damping_gains(), RATE)
    assert f"elbow: {2.0 * most[1]:.3g}, at most {most[1]:.2g}" in said and "shoulder" not in said
    assert "'gains.kd'" in said and "500 Hz" in said and "no rotor at elbow" in said and "'rotor_inertia'" in said
    rotors = MODEL.with_(armature=1e-6)
    said = high_damping(settings.from_values({"gains.kd": [0.0, 3.0 * most[1]]}, rotors).damping_gains(), RATE)
    assert "elbow" in said and "rotor" not in said and "lower it" in said
    assert settings.from_values({}, MODEL).damping_gains() is None
    heavy = settings.from_values({"gains.kd": [30.0]}, MODEL.with_(armature=0.2)).damping_gains()
    assert high_damping(heavy, RATE) == ""


def test_joints_in_another_order():
    most = largest_damping(sampled_inertia(MODEL), RATE)
    said = high_damping(FeedforwardSettings.from_values(
        {"joints": ["elbow", "shoulder"], "gains.kd": [2.0 * most[1], 0.0]}, MODEL).damping_gains(), RATE)
    assert "elbow" in said and "shoulder" not in said


def test_gains_of_computed_torque_are_accelerations():
    for kd, high in ((290.0, False), (310.0, True)):
        gains = FeedforwardSettings.from_values({"feedforward": "computed_torque", "gains.kd": [kd]},
                                                MODEL).damping_gains()
        assert bool(high_damping(gains, RATE)) == high


def test_motors_feel_their_own_inertia():
    def said(rate, **values):
        gains = controller(DRIVES, arm(), state_rate=rate, **values).settings.damping_gains()
        return "" if gains is None else high_damping(gains, rate)

    assert said(RATE, motor_gains__kd=[80.0, 20.0, 0.0]) == ""
    found = said(RATE, motor_gains__kd=[80.0, 40.0, 0.0])
    assert "'motor_gains.kd'" in found and "elbow: 40, at most 30" in found and "shoulder" not in found
    assert said(RATE, motor_gains__kd=[80.0, 40.0, 0.0], mode="feed_forward") == ""
