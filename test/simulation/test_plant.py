"""The commanded plant, its parameters and its pace."""

from pathlib import Path

import numpy as np
import pytest

import rbd_ros as rbd
from rbd_ros.core.simulation.simulator import Simulator
from rbd_ros.runtime.parameters import validate
from rbd_ros.runtime.plant.pace import Pace, Patience
from rbd_ros.runtime.plant.plant import Plant
from rbd_ros.runtime.plant.simulator_settings import SIMULATOR_TABLE, SimulatorSettings
from rbd_ros.runtime.robot import load_model

URDF = str(rbd.sample_path("two_link"))
CONFIG = Path(__file__).parents[2] / "config" / "simulator.yaml"


def make(**values):
    values = validate(SIMULATOR_TABLE, values)
    model, _ = load_model(values, URDF)
    return Plant(model, SimulatorSettings.from_values(values, model))


def moved(steps=100, command=(2.0, -1.0), **values):
    """Where a command leads."""
    plant = make(**values)
    plant.on_commands(np.array(command))
    plant.advance(steps)
    return plant


@pytest.mark.parametrize("changed", [
    {"gravity": [0.0, 0.0, -1.62]}, {"joints": ["elbow", "shoulder"]}, {"step": 0.0005, "publish_rate": 500.0},
    {"integrator": "rk4"}, {"initial_position": 0.2}, {"initial_velocity": [0.1, 0.2]}, {"brakes_until": 0.05},
    {"mass_scale": 1.05}, {"rotor_inertia": 0.1}, {"friction.damping": 0.1}, {"friction.coulomb": [0.1, 0.0]},
    {"locked.joints": ["elbow"], "locked.positions": [0.3]}], ids=lambda changed: next(iter(changed)))
def test_every_parameter_of_the_motion_changes_it(changed):
    command = (2.0,) if "locked.joints" in changed else (2.0, -1.0)
    assert not np.array_equal(moved().simulator.q, moved(command=command, **changed).simulator.q)


def test_limits_of_position_and_effort_can_be_lifted():
    plants = [moved(2000, (100.0, 0.0), **{name: value, "command_timeout": 0.0})
              for name in ("position_limits", "effort_limits") for value in (True, False)]
    assert plants[0].simulator.q[0] <= plants[0].model.position_upper[0] < plants[1].simulator.q[0]
    assert plants[2].effort[0] == plants[2].model.effort_limit[0] < plants[3].effort[0] == 100.0
    assert plants[2].counts["saturated"] == 1 and plants[3].counts["saturated"] == 0


def test_a_command_expires_to_zero_or_is_held():
    zero, hold, never = (moved(150, **changed) for changed in (
        {"timeout_action": "zero"}, {"timeout_action": "hold"}, {"command_timeout": 0.0}))
    reference = Simulator(zero.model)
    reference.step([2.0, -1.0], 100)
    reference.step(None, 50)
    np.testing.assert_array_equal(zero.simulator.q, reference.q)
    np.testing.assert_array_equal(hold.simulator.q, never.simulator.q)
    assert not zero.effort.any() and hold.effort.any()
    assert (zero.counts["timeouts"], hold.counts["timeouts"], never.counts["timeouts"]) == (1, 1, 0)
    zero.on_commands([1.0, 1.0])
    assert zero.effort.any()


def energy(plant):
    q, v = plant.simulator.q, plant.simulator.v
    return float(rbd.kinetic_energy(plant.model, q, v) + rbd.potential_energy(plant.model, q))


def test_brakes_hold_the_joints_until_the_first_command_and_again_after_the_last():
    start = [0.3, -0.5]
    plant = make(initial_position=start)
    plant.advance(500)
    np.testing.assert_array_equal(plant.simulator.q, start)
    assert plant.braked and not plant.simulator.v.any() and plant.report()["brakes"] == "on"
    assert plant.on_commands([8.0, -5.0])    # it acts at once
    assert not plant.braked
    plant.advance(100)
    assert np.abs(plant.simulator.v).max() > 1.0 and not plant.braked
    plant.advance(1)
    assert plant.braked and plant.counts["timeouts"] == 1
    energies, steps = [energy(plant)], 0
    while plant.simulator.v.any():
        plant.advance(1)
        energies.append(energy(plant))
        steps += 1
    assert 5 < steps < 200 and max(np.diff(energies)) < 0.0    # not in one step, and energy only leaves
    held = np.array(plant.simulator.q)
    plant.advance(500)
    np.testing.assert_array_equal(plant.simulator.q, held)
    plant.on_commands([0.0, 0.0])
    plant.advance(2)
    assert plant.report()["brakes"] == "off" and plant.simulator.v.any()
    plant.reset()
    plant.advance(10)
    np.testing.assert_array_equal(plant.simulator.q, start)


@pytest.mark.parametrize("integrator", ["variational", "semi_implicit", "rk4"])
@pytest.mark.parametrize("loops", [False, True], ids=["tree", "loops"])
def test_brakes_stop_and_hold_with_every_integrator(integrator, loops):
    values = {"integrator": integrator, "initial_velocity": 3.0}
    plant = five_bar(**values)[0] if loops else make(**values)
    plant.advance(300)
    held = np.array(plant.simulator.q)
    plant.advance(100)
    assert not plant.simulator.v.any() and held.any()
    np.testing.assert_array_equal(plant.simulator.q, held)


def test_brakes_slip_under_more_than_their_effort_and_hold_what_has_no_effort_limit():
    slips = moved(300, (30.0, 0.0), brakes_until=1.0, **{"brakes.effort": [5.0, 5.0]})
    assert slips.braked and slips.simulator.v[0] > 0.1
    model = rbd.load_urdf(URDF).with_(effort_limit=0.0)
    poses = np.array([model.random_configuration(seed) for seed in range(100)])
    weight = np.abs(rbd.gravity_effort(model, poses)).max(axis=0)
    assert np.all(SimulatorSettings.from_values({}, model).brake_effort > weight)


@pytest.mark.parametrize("action", ["zero", "hold"])
def test_without_brakes_it_falls_until_it_is_commanded(action):
    free = make(initial_position=0.3, timeout_action=action)
    free.advance(100)
    reference = Simulator(free.model, q=[0.3, 0.3])
    reference.step(None, 100)
    np.testing.assert_array_equal(free.simulator.q, reference.q)
    assert free.report()["brakes"] == "off"


def test_brakes_are_engaged_until_the_stamp_of_a_parameter_whatever_is_commanded():
    plant = make(initial_velocity=1.0, brakes_until=0.1)
    plant.on_commands([2.0, 1.0])
    plant.advance(99)
    assert plant.braked and not plant.simulator.v.any()
    plant.on_commands([2.0, 1.0])
    plant.advance(2)
    assert not plant.braked and plant.simulator.v.any()


def test_wrenches_act_on_the_named_body_and_expire():
    plant = make(timeout_action="zero")
    assert plant.on_wrenches([("tip", [0.0, 0.0, 0.0, 5.0, 0.0, 0.0])])
    plant.advance(150)
    reference = Simulator(plant.model)
    reference.step(None, 100, {"tip": [0.0, 0.0, 0.0, 5.0, 0.0, 0.0]})
    reference.step(None, 50)
    np.testing.assert_array_equal(plant.simulator.q, reference.q)
    assert not plant.on_wrenches([("hand", [0.0] * 6)])
    assert not plant.on_wrenches([("tip", [np.nan] + [0.0] * 5)])
    assert plant.report()["rejected_unknown_body"] == plant.report()["rejected_non_finite"] == 1


def test_a_failing_simulation_stands_still_until_reset():
    plant = make(effort_limits=False, position_limits=False)
    plant.on_commands([1e149, 0.0])
    assert not plant.advance(1000)
    assert "diverged" in plant.failure and "joint" in plant.failure
    q = plant.simulator.q
    assert plant.advance(10) and plant.steps == 1010
    np.testing.assert_array_equal(plant.simulator.q, q)
    plant.reset()
    assert plant.advance(10) and not plant.failure and plant.counts["failures"] == 1


def test_unlimited_effort_where_the_description_says_zero():
    model = rbd.load_urdf(URDF).with_(effort_limit=[0.0, 5.0])
    np.testing.assert_array_equal(SimulatorSettings.from_values({}, model).effort_limit, [np.inf, 5.0])


@pytest.mark.parametrize(("values", "message"), [
    ({"publish_rate": 333.0}, "such as 333.333"), ({"initial_position": [1.0, 2.0, 3.0]}, "expected 1 or 2"),
    ({"joints": ["shoulder"]}, "must list every joint once"), ({"mass": 2.0}, "mass_scale"),
    ({"rotor_inertia": [0.1] * 3}, "expected 1 or 2"), ({"step": 1.0}, "from 1e-06 to 0.1")])
def test_wrong_parameters_are_named(values, message):
    with pytest.raises(rbd.RbdError, match=message):
        make(**values)


def test_pace_keeps_absolute_deadlines():
    pace = Pace(period=1000.0, tolerance=2000.0)
    pace.start(50_000)
    assert [pace.due(now, 0) for now in (50_000, 50_999, 51_000, 59_999)] == [0, 0, 1, 9]
    assert pace.due(51_000, 5) == 5
    assert pace.left(51_000, 5) == 4000.0 and pace.left(56_000, 5) == 0.0
    pace.delivered(55_000, 3)
    assert pace.misses == 0
    pace.delivered(55_001, 3)
    assert pace.misses == 1


def test_pace_gives_up_what_cannot_be_caught_up():
    pace = Pace(period=1e6, tolerance=2e6)
    pace.start(0)
    assert pace.due(10**9, 10) == 11 and pace.skips == 1
    assert pace.due(10**9 + 10**6, 11) == 12


def test_patience_begins_with_a_command_and_ends_without_one():
    patience = Patience()
    patience.published(0)
    assert not patience.waiting(10, 100.0)
    patience.commanded()
    patience.published(20)
    assert patience.waiting(30, 100.0) and patience.waiting(119, 100.0) and patience.waits == 1
    assert patience.left(30, 100.0) == 90.0 and patience.left(121, 100.0) == 0.0
    patience.commanded(answers=False)
    assert patience.waiting(119, 100.0)
    patience.commanded()
    assert not patience.waiting(119, 100.0) and patience.left(30, 100.0) == 0.0
    patience.published(200)
    assert not patience.waiting(300, 100.0)
    patience.published(400)
    assert not patience.waiting(401, 100.0)
    patience.commanded()
    patience.published(500)
    assert not patience.waiting(500, 0.0) and patience.waits == 1


def five_bar(**values):
    model = rbd.sample("five_bar")
    plant = Plant(model, SimulatorSettings.from_values({"constraints_file": "five_bar"} | values, model))
    return plant, model, rbd.sample_constraints("five_bar", model)


def test_constraint_forces_belong_to_the_motion():
    plant, model, loop = five_bar(step=1e-5, publish_rate=1000.0, **{
        "friction.damping": 0.2, "friction.coulomb": 0.05, "wrench_timeout": 0.0, "command_timeout": 0.0})
    assert plant.on_commands([2.0, 0.3, -0.4, -1.0, 0.2])
    plant.on_wrenches([("tool", [0.0, 0.1, 0.0, 2.0, 0.0, -3.0])])
    plant.advance(2000)
    q, v = np.array(plant.simulator.q), np.array(plant.simulator.v)
    assert np.abs(v).min() > 0.01    # everything slides
    found = plant.constraint_forces()
    plant.advance(1)
    a = (plant.simulator.v - v) / 1e-5
    friction = 0.2 * v + 0.05 * np.sign(v)
    left = rbd.inverse_dynamics(model, q, v, a, {"tool": [0.0, 0.1, 0.0, 2.0, 0.0, -3.0]}) - plant.effort + friction
    A = rbd.constraint_jacobian(model, loop, q)
    np.testing.assert_allclose(found.force, np.linalg.lstsq(A.T, left, rcond=None)[0], rtol=1e-4, atol=1e-4)
    np.testing.assert_array_equal(found.residual, rbd.constraint_values(model, loop, q))


def test_no_constraint_forces_without_constraints_or_while_brakes_hold():
    assert make().constraint_forces() is None
    plant = five_bar(brakes_until=0.01, timeout_action="zero")[0]
    assert plant.constraint_forces() is None
    plant.advance(10)
    assert plant.constraint_forces() is not None


def test_constraints_that_are_none_are_named():
    for file, words in (("delta", "do not fit robot 'five_bar'"), ("/no/such.yaml", "cannot read constraints")):
        with pytest.raises(rbd.RbdError, match=words):
            five_bar(constraints_file=file)
