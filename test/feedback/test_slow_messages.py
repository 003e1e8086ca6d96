"""A 7R arm led at 50 Hz: its local loop at 1 kHz has gains, feed-forward and reference of messages, or none of these.

The plant differs from the model: 5 % more mass, a load of 0.5 kg, a fifth more friction, dry and viscous.
"""
from __future__ import annotations

import numpy as np
import pytest
from feedback.plants import spline

import rbd_ros as rbd

MS, HOLD, STEPS = 1e-3, 20, 1500
BANDWIDTH = 60.0    # 1/s, of the law without gains, all its poles there


@pytest.fixture(scope="module")
def model():
    return rbd.sample("iiwa").with_(armature=[0.4, 0.4, 0.3, 0.3, 0.15, 0.1, 0.1],
                                    damping=[1.0, 1.0, 0.8, 0.8, 0.5, 0.3, 0.3],
                                    friction=[3.0, 3.0, 2.0, 2.0, 1.0, 1.0, 1.0])


def motion_of(seed):
    rng = np.random.default_rng(seed)
    middle = np.array([0.0, 0.5, 0.0, -1.2, 0.0, 0.8, 0.0])
    return spline(middle + rng.uniform(-0.7, 0.7, 7), middle + rng.uniform(-0.7, 0.7, 7), STEPS * MS)


def error(model, motion, law):
    """RMS error of all joints (rad) with `law(k, q, v)` at 1 kHz; inf where it goes astray."""
    load = rbd.Inertia(0.5, (0.0, 0.0, 0.05), np.diag([1e-3] * 3))
    plant = model.with_scaled_masses(1.05).with_payload("link_7", load).with_(
        armature=model.armature, damping=1.2 * model.damping, friction=1.2 * model.friction)
    simulated = rbd.Simulator(plant, step=MS / 4, limits=False, q=motion(0.0).q)
    reference = motion(MS * np.arange(1, STEPS + 1)).q
    errors = np.empty_like(reference)
    for k in range(STEPS):
        simulated.step(law(k, simulated.q, simulated.v), 4)
        errors[k] = simulated.q - reference[k]
        if np.abs(errors[k]).max() > 2.0:
            return np.inf
    return float(np.sqrt((errors**2).mean()))


def computed_torque(model, motion, every, bandwidth=BANDWIDTH):
    """Computed torque whose efforts are held for `every` milliseconds."""
    friction, held = rbd.joint_friction(model), []

    def law(k, q, v):
        if k % every == 0:
            now = motion(k * MS)
            a = now.a + bandwidth**2 * (now.q - q) + 2.0 * bandwidth * (now.v - v)
            held[:] = rbd.inverse_dynamics(model, q, v, a, friction=friction)
        return np.array(held)

    return law


def led(gains, message):
    """The local loop, with the message of every 20 ms."""
    held = []

    def law(k, q, v):
        if k % HOLD == 0:
            held[:] = message(k * MS)
        return gains.applied(rbd.StateFeedback(*held), q, v)

    return law


def gains_of(model, motion):
    """Stiffness and damping like those of the law without gains, by the masses in the middle of the way."""
    mass = np.median([np.diag(rbd.mass_matrix(model, motion(t).q)) for t in np.linspace(0.0, motion.duration, 20)],
                     axis=0)
    Q = np.repeat([BANDWIDTH**4, 2.0 * BANDWIDTH**2], 7)
    return rbd.tracking_gains(model, motion, Q, 1.0 / mass**2, friction=rbd.joint_friction(model))


@pytest.mark.parametrize("seed", [0, *(pytest.param(k, marks=pytest.mark.thorough) for k in (1, 2, 3))])
def test_an_arm_led_at_50_hz_tracks_as_by_computed_torque_at_1_khz(model, seed):
    motion = motion_of(seed)
    gains = gains_of(model, motion)
    fast = error(model, motion, computed_torque(model, motion, 1))
    assert error(model, motion, led(gains, lambda t: gains.held(t, HOLD * MS))) < 1.2 * fast
    assert error(model, motion, computed_torque(model, motion, HOLD)) > 5.0 * fast


def test_a_reference_that_is_held_from_its_own_time_on_is_late(model):
    motion = motion_of(1)
    gains = gains_of(model, motion)
    middle, late = (error(model, motion, led(gains, message)) for message in (
        lambda t: gains.held(t, HOLD * MS), gains.at))
    assert late > 3.0 * middle


def test_the_same_law_at_50_hz_with_lower_gains_stays_behind(model):
    """The best of what does not diverge there, without any delay of messages."""
    motion = motion_of(3)
    gains = gains_of(model, motion)
    lower = min(error(model, motion, computed_torque(model, motion, HOLD, bandwidth))
                for bandwidth in (20.0, 30.0, 40.0, 50.0))
    assert lower > 1.3 * error(model, motion, led(gains, lambda t: gains.held(t, HOLD * MS)))
