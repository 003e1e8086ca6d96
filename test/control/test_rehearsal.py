"""Shipped configurations of real arms, rehearsed: they hold and follow an arm that does what that robot does itself."""
from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
import yaml
from support.robots import urdf_paths

import rbd_ros as rbd
from rbd_ros.cli.demo_motion import Cosines
from rbd_ros.cli.bringup.demo_rehearsal import deviations, slow_motion
from rbd_ros.runtime.control.feedforward import FeedforwardController, FeedforwardSettings
from rbd_ros.runtime.parameters import select, validate
from rbd_ros.runtime.plant.plant import Plant
from rbd_ros.runtime.plant.simulator_settings import SIMULATOR_TABLE, SimulatorSettings
from rbd_ros.runtime.rehearsal import SAMPLES, rehearse
from rbd_ros.runtime.robot import load_model

CONFIG = Path(__file__).parents[2] / "config"
REST = 1.0     # s before the motion
pytestmark = pytest.mark.filterwarnings("ignore::rbd_ros.RbdWarning")


def plan_of(name, config=None, urdf=None):
    if urdf is None and SAMPLES[name][0] != "iiwa" and not urdf_paths():
        pytest.skip("example-robot-data is not installed: scripts/setup --peers")
    return rehearse(config or CONFIG / f"{name}.yaml", urdf)


def play(plan, duration=3.0, still=False, **robot):
    """Errors (N, nv) of node and robot, one after the other; and the robot. robot: other parameters of it."""
    settings = FeedforwardSettings.from_values(plan.values, plan.model)
    motion = slow_motion(plan.model, settings, duration, 0)
    if still:
        motion = Cosines(motion.position(0.0), *np.zeros((2, plan.model.nv)))
    names = plan.model.joint_names
    values = validate(SIMULATOR_TABLE, select(SIMULATOR_TABLE, plan.robot | deviations(plan, motion) | {
        "initial_position": motion.position(0.0)[[names.index(joint) for joint in plan.robot["joints"]]].tolist(),
        "command_timeout": 0.5} | robot))
    model, _ = load_model(values, plan.description)
    plant = Plant(model, SimulatorSettings.from_values(values, model))
    made = FeedforwardController(plan.model, settings)
    made.activate(0.0)
    errors, period = [], plant.settings.publish_every * plant.settings.step
    for k in range(round((duration + REST) / period)):
        now, t = k * period, max(k * period - REST, 0.0)
        moving = np.array([motion.velocity(t), motion.acceleration(t)]) * (t > 0.0)
        made.on_reference(now, 10**9 + round(now * 1e9), names, motion.position(t), *moving)
        effort = made.on_state(now, 10**9 + round(now * 1e9), names, plant.simulator.q, plant.simulator.v,
                               plant.joint_effort).effort
        assert plant.on_commands(effort[plant.settings.output])
        errors.append(plant.simulator.q - motion.position(t))
        assert plant.advance(plant.settings.publish_every)
    return np.array(errors), plant


@pytest.mark.parametrize(("name", "worst"), [
    ("ur", 0.03), ("franka", 0.2), ("iiwa_lbr", 0.07), ("openarm", 0.05), ("big_yam", 0.3), ("z1", 0.15),
    ("generic_effort", 0.15), ("generic_jtc", 0.15), ("generic_annotator", 0.03), ("generic_mit", 0.16)])
def test_a_shipped_configuration_follows_its_arm(name, worst):
    """Where the robot compensates gravity, too: with gains below the slope of gravity the arm stays upright."""
    errors, plant = play(plan_of(name))
    assert not plant.reflex and not plant.braked
    assert np.abs(errors).max() < worst


def test_gravity_torque_alone_holds_the_arm_where_its_friction_bears_what_is_wrong_with_the_model(tmp_path):
    """The first torque by docs/arms.md: gains 0 instead of the file's; the robot is 5 % heavier than its model."""
    text, replaced = (CONFIG / "generic_effort.yaml").read_text(), []
    for name in ("kp", "kd"):
        text, count = re.subn(rf"gains\.{name}: \[.*?\]", f"gains.{name}: [0.0]", text)
        replaced.append(count)
    assert replaced == [1, 1]
    (tmp_path / "generic_effort.yaml").write_text(text)
    for folder in ("rehearsal", "controllers"):
        (tmp_path / folder).symlink_to(CONFIG / folder)
    plan = plan_of("generic_effort", tmp_path / "generic_effort.yaml")
    assert not np.any(plan.values["gains.kp"]) and not np.any(plan.values["gains.kd"])
    errors, plant = play(plan, 1.0, still=True)
    assert np.abs(errors).max() < 1e-3 and not plant.braked and plant.settings.plant.friction.min() > 0.5


def test_every_shipped_configuration_of_an_arm_can_be_rehearsed():
    with_controllers = {path.stem for path in (CONFIG / "controllers").glob("*.yaml")}
    assert with_controllers == set(SAMPLES) == {path.stem for path in (CONFIG / "rehearsal").glob("*.yaml")}
    for name in SAMPLES:
        given = yaml.safe_load((CONFIG / "rehearsal" / f"{name}.yaml").read_text())["simulator"]["ros__parameters"]
        validate(SIMULATOR_TABLE, given)
        node = yaml.safe_load((CONFIG / f"{name}.yaml").read_text())["/**"]["ros__parameters"]
        assert given.get("robot_compensates", [""]) == node["robot_compensates"]    # what the file says of the robot
        assert given["publish_rate"] == node.get("state_rate", 500.0)


def test_what_is_replaced_is_named():
    plan = plan_of("iiwa_lbr")
    assert plan.replaced == {"adapters": ["forward_command"], "forward_command.controller": plan.robot["controller"]}
    assert any("adapter lbr is replaced by adapter forward_command" in note for note in plan.notes)
    plan = plan_of("generic_annotator")
    assert plan.replaced["gains.kp"] == [300.0, 300.0, 150.0, 50.0, 50.0, 20.0]
    assert any("the gains of controllers/generic_annotator.yaml" in note for note in plan.notes)
    assert "gains.kp" not in plan_of("generic_jtc").replaced    # the node has its own
    assert "handover.controller_manager" in plan_of("generic_effort").replaced


def test_too_fast_a_torque_or_joint_stops_a_franka(tmp_path):
    """A file without the rate limit, and one with gains that throw the arm about."""
    text = (CONFIG / "franka.yaml").read_text()
    (tmp_path / "franka.yaml").write_text(text.replace("effort_limits.rate: [900.0]", "effort_limits.rate: [1.0e+6]"))
    for folder in ("rehearsal", "controllers"):
        (tmp_path / folder).symlink_to(CONFIG / folder)
    _, plant = play(plan_of("franka", tmp_path / "franka.yaml"), 0.5)
    assert "the command to joint" in plant.reflex and "at most 1000 N m/s is allowed" in plant.reflex
    assert plant.braked and not plant.simulator.v.any() and plant.counts["reflexes"] == 1
    plant.reset()
    assert not plant.reflex
    _, plant = play(plan_of("franka"), 2.0, **{"reflex.velocity": 0.05})
    assert "moves by" in plant.reflex and plant.braked


def test_an_arm_of_ones_own(tmp_path):
    model, urdf = rbd.sample("two_link"), rbd.sample_path("two_link")
    file = tmp_path / "mine.yaml"
    file.write_text(yaml.safe_dump({"/**": {"ros__parameters": {
        "joints": list(model.joint_names)[::-1], "robot_compensates": ["gravity"], "adapters": ["forward_command"],
        "forward_command.controller": "arm", "gains.kp": [20.0], "gains.kd": [4.0]}}}))
    plan = rehearse(file, urdf)
    assert plan.robot["controller"] == "arm" and plan.robot["robot_compensates"] == ["gravity"]
    assert any("rehearsal/mine.yaml" in note for note in plan.notes)
    errors, plant = play(plan)
    assert np.abs(errors).max() < 0.1 and not plant.reflex
    with pytest.raises(rbd.RbdError, match="no sample description for 'mine': give the URDF"):
        rehearse(file)
    with pytest.raises(rbd.RbdError, match="cannot read"):
        rehearse(file, tmp_path / "none.urdf")
    file.write_text("{}")
    with pytest.raises(rbd.RbdError, match="no parameters for node feedforward"):
        rehearse(file, urdf)
