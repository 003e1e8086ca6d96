"""Unilateral contacts behind the simulator node, without ROS."""
from __future__ import annotations

import numpy as np
import pytest
from support.ball_and_plate import ARM, BALL, COMPLIANT, HOLDING, UNILATERAL, urdf

import rbd_ros as rbd
from rbd_ros.core.actuation.actuation_yaml import load_actuation
from rbd_ros.runtime.plant.elastic_plant import ElasticPlant
from rbd_ros.runtime.plant.plant import Plant
from rbd_ros.runtime.plant.simulator_settings import SimulatorSettings
from rbd_ros.runtime.service.constrained import ConstrainedRequest
from rbd_ros.runtime.service.dynamics import DynamicsService
from rbd_ros.runtime.service.robot_state import StateRequest
from rbd_ros.runtime.service.server_settings import ServerSettings


@pytest.fixture
def make(tmp_path):
    """A plant of a ball over a plate that does not move."""
    def plant(text, **values):
        path = tmp_path / "contacts.yaml"
        path.write_text(text)
        model = rbd.load_urdf(urdf(), locked=dict.fromkeys(ARM, 0.0))
        start = [0.0, 0.0, 0.002, 0.0, 0.0, 0.0]
        return Plant(model, SimulatorSettings.from_values(
            {"constraints_file": str(path), "initial_position": start, "wrench_joints": ["roll"],
             "timeout_action": "zero", **values}, model))

    return plant


@pytest.mark.parametrize("text", [UNILATERAL, COMPLIANT], ids=["unilateral", "compliant"])
def test_momentum_is_that_of_forces_and_impulses(make, text):
    """Forces of all steps, and impulses however often they are taken, balance the weight; a sensor below shows them."""
    plant, total, shown = make(text), np.zeros(3), []
    mass, plate, h = 0.11, 0.8, plant.settings.step
    states = plant.contact_forces()
    assert states[0].state == "open" and not states[0].force.any()
    for i in range(400):
        assert plant.advance(1)
        total += h * plant.simulator.contacts[0].force
        shown.append(plant.sensed()[0, 5])
        if i % 7 == 6 or i == 399:
            (state,) = plant.contact_forces()
            total += state.impulse
    expected = [0.0, 0.0, mass * (9.81 * plant.time + plant.simulator.v[2])]
    np.testing.assert_allclose(total, expected, atol=2e-2 if text is COMPLIANT else 1e-6)
    assert not plant.contact_forces()[0].impulse.any()
    assert state.state == "sticking" and abs(state.force[2] - mass * 9.81) < 1e-3
    np.testing.assert_allclose(h * np.sum(shown), -plate * 9.81 * plant.time - expected[2], atol=3e-2)


def test_open_while_brakes_hold_and_from_the_start_after_a_reset(make):
    plant = make(UNILATERAL, brakes_until=0.05)
    plant.advance(40)
    assert plant.contact_forces()[0].state == "open" and plant.sensed() is not None
    plant.advance(40)
    assert plant.contact_forces()[0].impulse[2] > 0.0
    plant.advance(40)
    plant.reset()
    plant.advance(60)
    assert plant.contact_forces()[0].state == "open"
    assert make("constraints: []").contact_forces() is None


def test_a_contact_too_stiff_for_the_step_is_a_failure_that_names_it(make):
    plant = make(COMPLIANT.replace("2.0e+4", "1.0e+9"))
    assert not plant.advance(100)
    assert "stiffness of contact 'top'" in plant.failure and "use at most" in plant.failure
    assert plant.contact_forces() is None


def test_what_cannot_use_them_says_so(make, tmp_path):
    settings = make(COMPLIANT).settings
    drives = "actuation:\n" + "".join(f"  {name}: {{type: rigid}}\n" for name in BALL)
    with pytest.raises(rbd.RbdError, match="'constraints_file' is not supported with elastic joints"):
        ElasticPlant(settings.plant, settings, load_actuation(drives, settings.plant).drives)
    model = rbd.load_urdf(urdf())
    path = str(tmp_path / "contacts.yaml")
    service = DynamicsService(model, ServerSettings.from_values({"constraints_file": path}, model))
    assert service.settings.contacts == ("top",)
    with pytest.raises(rbd.RbdError, match=r"no constraints, only unilateral or compliant contacts \(top\).*simulator"):
        service.constrained(StateRequest((), (), ()), ConstrainedRequest(mode=1))
    (tmp_path / "contacts.yaml").write_text(HOLDING + COMPLIANT)
    both = ServerSettings.from_values({"constraints_file": path}, model)
    assert both.contacts == ("top",) and both.constraints.size == 3
