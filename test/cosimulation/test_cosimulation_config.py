"""The YAML files of co-simulation against the parameter tables, and against what Gazebo's packages define."""
import importlib
import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
import yaml

import rbd_ros as rbd
from rbd_ros.runtime.cosimulation.gazebo_files import write_files

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


@pytest.mark.parametrize("delay", [0, 1])
@pytest.mark.parametrize("steps", [1, 2, 5])
def test_gains_in_gazebo_hold_the_sample_from_its_start_on(tmp_path, steps, delay):
    """Steps of 1 ms, one command per `steps`, which acts `delay` steps late; stretched out at zero, joints on one axis
    hardly have any inertia of their own.
    """
    own = yaml.safe_load((CONFIG / "gazebo.yaml").read_text())
    assert list(own) == ["/**"]    # sections of nodes would overrule the launch file
    own = own["/**"]["ros__parameters"]
    assert own["feedforward"] == "computed_torque"
    model, (kp,), (kd,) = rbd.sample("iiwa"), own["gains.kp"], own["gains.kd"]
    robot = rbd.load_urdf(write_files(rbd.sample_path("iiwa"), tmp_path, "bridge", world="w").description)
    n, h = model.nv, 1e-3
    one, none = np.eye(n), np.zeros((n, n))
    for q in (np.zeros(n), np.full(n, 0.02), np.array([0.5, 0.4, 0.0, -0.6, 0.0, 0.3, 0.0])):
        M, W = rbd.mass_matrix(model, q), np.linalg.inv(rbd.mass_matrix(robot, q))
        cycle = np.block([[one, none, none, none], [none, one, none, none], [none, none, none, one],
                          [-kp * M, -kd * M, none, none]])    # of q, v, the command before, the command
        for k in range(steps):
            acts = h * W @ np.hstack([none, none, one, none] if k < delay else [none, none, none, one])
            v = np.hstack([none, one, none, none]) + acts
            step = np.eye(4 * n)
            step[n:2 * n], step[:n] = v, np.hstack([one, none, none, none]) + h * v
            cycle = step @ cycle
        assert np.abs(np.linalg.eigvals(cycle)).max() < 1.0


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
    assert set(re.findall(r"<xacro:(\w+)", text)) - {"include", "macro", "insert_block"} <= set(macros)
    plugins = {(plugin.get("filename"), plugin.get("name")) for plugin in root.iter("plugin") if plugin.get("filename")}
    assert plugins == {("gz_ros2_control-system", "gz_ros2_control::GazeboSimROS2ControlPlugin"),
                       ("gz-sim-joint-state-publisher-system", "gz::sim::systems::JointStatePublisher"),
                       ("gz-sim-apply-joint-force-system", "gz::sim::systems::ApplyJointForce")}
    interfaces = [item.get("name") for item in macros["effort_joint"].iter() if item.tag.endswith("_interface")]
    assert interfaces == ["effort", "position", "velocity", "effort"]
    for macro in macros.values():
        body = ElementTree.tostring(macro, encoding="unicode")
        for name in (macro.get("params") or "").replace(":=0.0", "").split():
            assert f"${{{name}}}" in body or f"${{-{name}}}" in body or f'insert_block name="{name.strip("*")}"' in body


def test_the_xacro_file_lists_the_joints_whose_states_gazebo_tells(tmp_path):
    xacro = pytest.importorskip("xacro", reason="xacro is not installed")
    (tmp_path / "robot.xacro").write_text(f"""<robot name="r" xmlns:xacro="http://www.ros.org/wiki/xacro">
        <xacro:include filename="{CONFIG / 'gazebo.urdf.xacro'}"/>
        <xacro:gazebo_joint_states>
          <joints><joint_name>a</joint_name><joint_name>b</joint_name></joints>
        </xacro:gazebo_joint_states></robot>""")
    made = ElementTree.fromstring(xacro.process_file(str(tmp_path / "robot.xacro")).toxml())
    assert [joint.text for joint in made.findall("gazebo/plugin/joint_name")] == ["a", "b"]
