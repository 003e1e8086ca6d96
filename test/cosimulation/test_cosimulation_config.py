"""The YAML files of co-simulation against the parameter tables, and against what Gazebo's packages define."""
import importlib
import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
import yaml

import rbd_ros as rbd

CONFIG = Path(__file__).parents[2] / "config"
BRIDGED = ("rosgraph_msgs/msg/Clock", "sensor_msgs/msg/JointState", "std_msgs/msg/Float64")    # by ros_gz_bridge


def test_the_numbers_for_the_sample_are_those_of_the_demo():
    demo = yaml.safe_load((CONFIG / "demo.yaml").read_text())
    everywhere = demo["/**"]["ros__parameters"] | demo["feedforward"]["ros__parameters"]
    own = yaml.safe_load((CONFIG / "simulation.yaml").read_text())
    assert list(own) == ["/**"]    # sections of nodes would overrule the launch file
    own = own["/**"]["ros__parameters"]
    for name in ("rotor_inertia", "gains.kp", "gains.kd"):
        assert own[name] == everywhere[name]


def test_gains_in_gazebo_are_those_of_the_links_without_rotors():
    rotors = np.array(yaml.safe_load((CONFIG / "demo.yaml").read_text())["/**"]["ros__parameters"]["rotor_inertia"])
    own = yaml.safe_load((CONFIG / "gazebo.yaml").read_text())
    assert list(own) == ["/**"]    # sections of nodes would overrule the launch file
    own = own["/**"]["ros__parameters"]
    np.testing.assert_allclose(own["gains.kp"], 2.0 * rotors * 10.0**2, rtol=2e-3)
    np.testing.assert_allclose(own["gains.kd"], 2.0 * 0.7 * 2.0 * rotors * 10.0, rtol=2e-3)


def test_its_ros_types_exist():
    pytest.importorskip("rclpy", reason="rclpy is not importable: source ROS 2 or use scripts/test")
    for name in BRIDGED:
        package, _, kind = name.split("/")
        assert hasattr(importlib.import_module(f"{package}.msg"), kind)


def test_controllers_take_the_efforts_of_the_sample():
    values = yaml.safe_load((CONFIG / "gazebo_controllers.yaml").read_text())
    manager = values["controller_manager"]["ros__parameters"]
    assert manager["effort_controller"]["type"] == "forward_command_controller/ForwardCommandController"
    controller = values["effort_controller"]["ros__parameters"]
    assert tuple(controller["joints"]) == rbd.sample("iiwa").joint_names
    assert controller["interface_name"] == "effort"


def test_the_xacro_file_has_the_plugins_of_gazebo():
    text = (CONFIG / "gazebo.urdf.xacro").read_text()
    root = ElementTree.fromstring(text)
    space = "{http://www.ros.org/wiki/xacro}"
    macros = {macro.get("name"): macro for macro in root.findall(f"{space}macro")}
    assert set(re.findall(r"<xacro:(\w+) ", text)) - {"include", "macro"} <= set(macros)
    plugins = {(plugin.get("filename"), plugin.get("name")) for plugin in root.iter("plugin") if plugin.get("filename")}
    assert plugins == {("gz_ros2_control-system", "gz_ros2_control::GazeboSimROS2ControlPlugin"),
                       ("gz-sim-joint-state-publisher-system", "gz::sim::systems::JointStatePublisher"),
                       ("gz-sim-apply-joint-force-system", "gz::sim::systems::ApplyJointForce")}
    interfaces = [item.get("name") for item in macros["effort_joint"].iter() if item.tag.endswith("_interface")]
    assert interfaces == ["effort", "position", "velocity", "effort"]
    for macro in macros.values():
        body = ElementTree.tostring(macro, encoding="unicode")
        for name in (macro.get("params") or "").replace(":=0.0", "").split():
            assert f"${{{name}}}" in body or f"${{-{name}}}" in body
