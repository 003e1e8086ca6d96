"""A defect of the program, or of a driver: there is a safe effort all the same, in every cycle."""
from __future__ import annotations

import numpy as np
import pytest
from support.arm import NAMES, Q, arm

import rbd_ros as rbd
from rbd_ros.runtime.control.feedforward import FeedforwardController, FeedforwardSettings
from rbd_ros.runtime.control.flatness import FlatnessController, FlatnessSettings
from rbd_ros.runtime.safety import Defect

MS = 1_000_000


@pytest.mark.parametrize("place", ["command", "prepare"])
@pytest.mark.parametrize(("controller", "settings"), [(FeedforwardController, FeedforwardSettings),
                                                      (FlatnessController, FlatnessSettings)])
def test_a_defect_that_lasts_is_an_emergency_stop(controller, settings, place):
    model = arm()
    made = controller(model, settings.from_values({"ramp_in": 0.0, "state_timeout": 0.01, "gains.kp": 20.0}, model))
    still = np.zeros(model.nv)
    made.activate(0.0)
    made.on_reference(0.0, 0, NAMES, Q + 0.1)
    made.on_state(0.0, MS, NAMES, Q, still)
    assert made.safety.mode == "running"

    def broken(now, laws=None):
        raise KeyError("a defect")

    sound = getattr(made, place)
    setattr(made, place, broken)
    for cycle in range(5, 3000, 5):    # ms: longer than the hold and the ramp to the fallback
        now = cycle * 1e-3
        found = made.on_state(now, cycle * MS, NAMES, Q, still)
        assert isinstance(found.problem, Defect) and "a defect" in found.problem
        np.testing.assert_allclose(found.effort, rbd.gravity_effort(model, Q), rtol=0, atol=1e-12)
        assert made.watchdog(now) is None and made.safety.mode == "stopped"
    setattr(made, place, sound)
    made.on_state(3.0, 3000 * MS, NAMES, Q, still)
    assert made.safety.mode == "stopped"
    made.safety.reset()
    made.on_reference(3.0, 0, NAMES, Q + 0.1)
    assert made.on_state(3.001, 3001 * MS, NAMES, Q, still).problem == ""
    assert made.safety.mode == "running"


def test_a_law_that_has_no_numbers_says_why():
    """What is wrong is in the output itself, beside the safe effort; with the next good command it is gone."""
    model = arm().with_(velocity_limit=[1e150, 3.0])
    made = FeedforwardController(model, FeedforwardSettings.from_values({"ramp_in": 0.0}, model))
    made.activate(0.0)
    made.on_reference(0.0, 0, NAMES, Q, [1e149, 0.0])
    with np.errstate(all="ignore"):
        found = made.on_state(0.0, MS, NAMES, Q, np.zeros(model.nv))
    np.testing.assert_allclose(found.effort, rbd.gravity_effort(model, Q), rtol=0, atol=1e-12)
    assert "finite" in found.problem and made.report()["non_finite_command"] == 1
    made.on_reference(0.001, 0, NAMES, Q)
    assert made.on_state(0.001, 2 * MS, NAMES, Q, np.zeros(model.nv)).problem == ""


def test_the_largest_number_there_is():
    """Some drivers say so what they do not know. It neither stops the robot nor takes its weight's support away."""
    model = arm()
    made = FeedforwardController(model, FeedforwardSettings.from_values({"feedforward": "none"}, model))
    unknown = np.full(model.nv, np.finfo(float).max)
    made.activate(0.0)
    made.on_state(0.0, MS, NAMES, Q, np.zeros(model.nv), unknown)
    assert made.compare_gravity(0.0) is None
    with np.errstate(all="ignore"):
        made.on_state(0.1, 100 * MS, NAMES, Q, unknown)
        np.testing.assert_allclose(made.safe_effort(False), rbd.gravity_effort(model, Q), rtol=0, atol=1e-12)
