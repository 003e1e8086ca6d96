"""Loads of the server's robot, without ROS: they add to their body, replace each other, and come off exactly."""
from __future__ import annotations

import numpy as np
import pytest
from support import service_requests as req
from support.service_calls import service
from support.service_requests import LOOP, NAMES, NAN, TAU, A, Q, V

import rbd_ros as rbd
from rbd_ros.runtime.service.constrained import ConstrainedRequest
from rbd_ros.runtime.service.robot_state import StateRequest

NOW = StateRequest(NAMES, Q, V)


def test_payloads_add_to_their_body_replace_each_other_and_come_off_exactly():
    made = service()
    original, before = made.robot.model, made.inverse(NOW, NAMES, A).effort
    com, matrix = np.array(req.LOAD["com"]), np.array(req.LOAD["matrix"])
    made.set_payload("tool", 50.0, com, 100 * matrix)
    made.set_payload("tool", 2.0, com, matrix)    # replaces it
    link = original.description.links["tool"]
    mass = link.mass + 2.0
    c = (link.mass * link.com + 2.0 * com) / mass

    def about(m, r, I):    # parallel axes, about the common centre of mass
        d = r - c
        return I + m * (d @ d * np.eye(3) - np.outer(d, d))

    loaded = original.with_body("tool", mass=mass, com=c, inertia=about(link.mass, link.com, link.matrix)
                                + about(2.0, com, matrix))
    np.testing.assert_allclose(made.inverse(NOW, NAMES, A).effort, rbd.inverse_dynamics(loaded, Q, V, A), rtol=1e-10)
    motion = rbd.constrained_forward_dynamics(loaded, LOOP, Q, V, TAU)
    np.testing.assert_allclose(made.constrained(NOW, ConstrainedRequest(1, NAMES, effort=TAU)).acceleration,
                               motion.acceleration, rtol=1e-8)
    made.set_payload("left_lower", 1.0, [0.0, 0.0, 0.1], np.zeros((3, 3)))    # a point mass
    assert made.model_info().total_mass == pytest.approx(original.total_mass + 3.0)
    assert "carries no load" in made.set_payload("tool", 0.0, [NAN] * 3, np.full((3, 3), NAN))
    only = original.description.links["left_lower"]
    assert made.robot.model.description.links["left_lower"].mass == pytest.approx(only.mass + 1.0)
    made.set_payload("left_lower", 0.0, np.zeros(3), np.zeros((3, 3)))
    made.set_payload("left_lower", 0.0, np.zeros(3), np.zeros((3, 3)))    # nothing there any more
    np.testing.assert_array_equal(made.inverse(NOW, NAMES, A).effort, before)
    assert made.robot.model is original


def test_a_refused_load_leaves_the_last_one():
    made = service()
    made.set_payload(**req.PAYLOAD_GOOD)
    robot = made.robot
    for _, changes, _ in req.PAYLOAD_BAD:
        with pytest.raises(rbd.RbdError):
            made.set_payload(**(req.PAYLOAD_GOOD | changes))
    assert made.robot is robot
