"""From excitation to tracking: a simulated arm with wrong inertias, rotors, friction, noise and delay is excited under
feedback, recorded, identified, and driven again by the feed-forward of the old and of the new description.
"""
from __future__ import annotations

import numpy as np
import pytest
from support.recordings import periodic, perturbed, rest_to_rest

import rbd_ros as rbd

pytestmark = pytest.mark.filterwarnings("ignore::rbd_ros.RbdWarning")
PERIOD = 2e-3
STIFFNESS = np.array([400.0, 400.0, 300.0, 300.0, 100.0, 100.0, 50.0])    # N m/rad


def driven(truth, motion, feed_forward):
    """Positions and efforts every 2 ms, under PD control and this feed-forward."""
    simulator = rbd.Simulator(truth, step=0.5e-3, q=motion(0.0).q, limits=False)
    t = np.arange(0.0, motion.duration, PERIOD)
    wanted = motion(t)
    ahead = feed_forward(wanted.q, wanted.v, wanted.a)
    q, tau = np.empty_like(ahead), np.empty_like(ahead)
    for k in range(len(t)):
        q[k] = simulator.q
        tau[k] = ahead[k] + STIFFNESS * (wanted.q[k] - q[k]) + 0.1 * STIFFNESS * (wanted.v[k] - simulator.v)
        simulator.step(tau[k], 4)
    return t, q, tau, float(np.sqrt(np.mean((q - wanted.q) ** 2)))


def test_feed_forward_of_the_result_tracks_five_times_better(tmp_path):
    model = rbd.sample("iiwa")
    truth = perturbed(model, 6, mass=0.3, place=0.03)
    motion = rest_to_rest(periodic(model, 6, periods=2))
    t, q, tau, _ = driven(truth, motion, lambda q, v, a: rbd.gravity_effort(model, q))
    rng = np.random.default_rng(0)
    late = 3    # cycles; efforts act for one cycle after their state, on average half of it
    measured = np.concatenate([np.repeat(tau[:1], late, axis=0), tau[:-late]]) + 0.1 * rng.normal(size=tau.shape)
    recording = rbd.Recording(t, q + 1e-5 * rng.normal(size=q.shape), tau=measured, joints=model.joint_names)
    found = rbd.identify(model, recording)
    assert found.delay == pytest.approx((late - 0.5) * PERIOD, abs=1e-3)
    found.write_urdf(tmp_path / "new.urdf", rbd.sample_path("iiwa"))
    new = rbd.load_urdf(tmp_path / "new.urdf")

    def full(model):
        return lambda q, v, a: rbd.inverse_dynamics(model, q, v, a) + rbd.friction_effort(model, v)

    other = rest_to_rest(periodic(model, 16))
    before, after = (driven(truth, other, full(robot))[3] for robot in (model, new))
    assert after < 0.2 * before, (before, after)
