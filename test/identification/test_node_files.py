"""Files for nodes and drivers: what their own loaders make of them."""
from __future__ import annotations

import dataclasses
import re

import numpy as np
import pytest
import yaml
from support.recordings import periodic, perturbed, record
from support.robots import urdf_paths

import rbd_ros as rbd
from rbd_ros.cli.main import main
from rbd_ros.core.dynamics.friction import Friction
from rbd_ros.core.identification.written.node_files import actuation_text, parameters_text, ur_friction_text
from rbd_ros.runtime.control.feedforward import FEEDFORWARD_TABLE
from rbd_ros.runtime.friction_terms import FrictionTerms
from rbd_ros.runtime.parameters import validate
from rbd_ros.runtime.robot import joint_order
from rbd_ros.runtime.plant.simulator_settings import SIMULATOR_TABLE

pytestmark = pytest.mark.filterwarnings("ignore::rbd_ros.RbdWarning")
MODEL = rbd.sample("two_link").with_(armature=[1e-7, 0.25], damping=[0.5, 3.0], friction=[0.125, 1234567.0])
LAW = Friction(MODEL.damping, MODEL.friction, MODEL.friction + np.array([0.0, 0.75]), np.array([0.1, 0.03]), 0.02)


def test_parameters_are_those_of_the_nodes():
    tree = yaml.safe_load(parameters_text(MODEL, LAW))
    common = tree["/**"]["ros__parameters"]
    assert all(isinstance(x, float) for x in common["rotor_inertia"])    # ROS takes no lists of mixed types
    assert list(common["joints"]) == list(MODEL.joint_names) and common["friction.smoothing"] == 0.02
    np.testing.assert_array_equal(common["rotor_inertia"], MODEL.armature)
    assert validate(FEEDFORWARD_TABLE, common)["rotor_inertia"] == tuple(MODEL.armature)
    own = tree["/**/simulator"]["ros__parameters"]
    values = validate(SIMULATOR_TABLE, {key: common[key] for key in ("joints", "rotor_inertia")} | own)
    np.testing.assert_array_equal(values["friction.damping"], MODEL.damping)
    np.testing.assert_array_equal(values["friction.coulomb"], MODEL.friction)


def test_drives_add_to_the_description_what_it_cannot_say():
    """With <dynamics> of the description the drives' friction is the identified law, once."""
    drives = rbd.load_actuation(actuation_text(MODEL, LAW), MODEL)
    v = np.linspace(-0.3, 0.3, 101)[:, None] * np.ones(2)
    total = drives.friction.effort(v) + rbd.friction_effort(MODEL, v, 0.02)
    np.testing.assert_allclose(total, LAW.effort(v), rtol=1e-7)
    np.testing.assert_allclose(drives.inertia, MODEL.armature, rtol=1e-7)
    plain = Friction(MODEL.damping, MODEL.friction, MODEL.friction, 1.0, 0.01)
    assert "breakaway:" not in actuation_text(MODEL, plain)


@pytest.mark.parametrize("more", [{"load": np.array([0.2, 0.1])}, {"asymmetry": np.array([0.05, -0.02])},
                                  {"viscous_asymmetry": np.array([0.02, 0.0]), "load": np.array([0.0, 0.3])}])
def test_drives_and_parameters_together_are_the_law(more):
    """Of node flatness: the motors' friction, of the drives, on top of that of the joints, of parameters."""
    law = dataclasses.replace(LAW, **more)
    text = actuation_text(MODEL, law)
    assert "--parameters" in text and "--parameters" not in actuation_text(MODEL, LAW)
    common = yaml.safe_load(parameters_text(MODEL, law))["/**"]["ros__parameters"]
    values = validate(FEEDFORWARD_TABLE, common)
    joints = FrictionTerms.from_values(values, joint_order(values["joints"], MODEL)[2]).law(MODEL)
    motors = rbd.load_actuation(text, MODEL).friction
    rng = np.random.default_rng(0)
    v, tau = rng.normal(size=(50, 2)), 20.0 * rng.normal(size=(50, 2))
    carried = joints.add(v, tau)
    np.testing.assert_allclose(motors.add(v, carried), law.add(v, tau), rtol=1e-6)


def test_a_ur_is_told_to_compensate_nothing_that_the_model_does():
    path = urdf_paths().get("ur_description/ur5_robot") or pytest.skip("example-robot-data is not installed")
    bare = rbd.load_urdf(path)
    model = bare.with_(damping=[1.0, 1.0, 1.0, 1.0, 1.0, 0.0], friction=[1.0] * 5 + [0.0])
    text = ur_friction_text(model, Friction(model.damping, model.friction, model.friction))
    tree = yaml.safe_load(text)
    assert tree["friction_model_controller"]["ros__parameters"] == {"tf_prefix": ""}
    controllers = tree["controller_manager"]["ros__parameters"]
    assert controllers["friction_model_controller"]["type"] == "ur_controllers/FrictionModelController"
    assert tree["/**/feedforward"]["ros__parameters"]["robot_compensates"] == ["gravity"]
    (request,) = re.findall(r'SetFrictionModelParameters \\\n#     "(.*)"', text)
    scales = yaml.safe_load(request)["parameters"]
    assert scales == {"viscous_scale": [0.0] * 5 + [0.9], "coulomb_scale": [0.0] * 5 + [0.8]}
    assert "No friction was found at wrist_3_joint" in text
    with pytest.raises(rbd.RbdError, match="is not a UR"):
        ur_friction_text(MODEL, LAW)
    named = dataclasses.replace(model.description, joints=tuple(
        dataclasses.replace(spec, name="left_" + spec.name) for spec in model.description.joints))
    left = rbd.RobotModel.from_description(named)
    text = ur_friction_text(left, Friction(left.damping, left.friction, left.friction))
    assert yaml.safe_load(text)["friction_model_controller"]["ros__parameters"] == {"tf_prefix": "left_"}


def test_the_methods_write_them(tmp_path):
    model = rbd.sample("two_link")
    found = rbd.identify(model, record(perturbed(model), periodic(model), 1))
    found.write_parameters(tmp_path / "nodes.yaml")
    found.write_actuation(tmp_path / "drives.yaml")
    assert "rotor_inertia" in (tmp_path / "nodes.yaml").read_text()
    drives = rbd.load_actuation(tmp_path / "drives.yaml", found.model)
    np.testing.assert_allclose(drives.inertia, found.model.armature, rtol=1e-7)
    found.write_controller(tmp_path / "arm.yaml", {"elbow": 2.5})
    numbers = yaml.safe_load((tmp_path / "arm.yaml").read_text())["/**"]["ros__parameters"]
    assert numbers["dynamics"]["torque_scale"] == [1.0, 2.5]
    assert numbers["dynamics"]["joints"] == list(found.model.joint_names)
    links = [joint.child for joint in found.model.joints]
    np.testing.assert_array_equal(np.reshape(numbers["dynamics"]["inertias"], (2, 10)), [
        found.model.inertial_parameters.reshape(-1, 10)[found.model.body_index(link)] for link in links])
    np.testing.assert_array_equal(numbers["dynamics"]["rotor_inertia"], found.model.armature)
    with pytest.raises(rbd.RbdError, match="unknown joint 'wrist'"):
        found.write_controller(tmp_path / "arm.yaml", {"wrist": 2.5})
    with pytest.raises(rbd.RbdError, match="gains"):
        found.write_controller(tmp_path / "arm.yaml", [1.0, 2.0, 3.0])
    with pytest.raises(rbd.RbdError, match="is not a UR"):
        found.write_ur_friction(tmp_path / "ur.yaml")
    with pytest.raises(rbd.RbdError, match="cannot write"):
        found.write_actuation(tmp_path / "no" / "drives.yaml")


def test_drives_without_parameters_are_refused_before_the_fit(capsys):
    assert main(["identify", "two_link", "none.csv", "--drives", "--actuation", "drives.yaml"]) != 0
    assert "give --parameters" in capsys.readouterr().err
