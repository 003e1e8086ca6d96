"""Under `ros2 launch` the nodes of each launch file become active, do their work and end cleanly.

The launch files of co-simulation have a test file of their own in test/cosimulation.
"""
from __future__ import annotations

import re
import subprocess
from typing import Any

import numpy as np
import yaml
from support.launch_files import CHECKOUT, calls, each_file
from support.launching import publish_description

import rbd_ros as rbd

URDF = rbd.sample_path("two_link").read_text()


@each_file
def test_show_args_describes_everything(path, launch):
    result = subprocess.run(["ros2", "launch", path, "--show-args"], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    shown = re.findall(r"^    '(\w+)':\n        (.+)$", result.stdout, re.MULTILINE)
    assert sorted(name for name, _ in shown) == sorted(item["0"] for item in calls(path, "DeclareLaunchArgument"))
    assert not any("no description" in text for _, text in shown)


def test_refuses_what_is_no_choice(launch):
    result = subprocess.run(["ros2", "launch", CHECKOUT / "launch/demo.launch.py", "feedforward:=much"],
                            capture_output=True, text=True)
    assert result.returncode != 0
    assert "much" in result.stdout + result.stderr and "gravity" in result.stdout + result.stderr


def test_demo_moves_the_arm_where_it_is_told(launch):
    from rcl_interfaces.srv import GetParameters
    from sensor_msgs.msg import JointState
    from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

    demo = launch("demo.launch.py", "mass_scale:=1", "feedforward:=full")
    states: list[JointState] = []
    demo.node.create_subscription(JointState, "/joint_states", lambda message: states.__setitem__(slice(1), [message]),
                                  1)
    trajectories = demo.node.create_publisher(JointTrajectory, "/feedforward/joint_trajectory", 1)
    demo.wait_for_active("/simulator", "/feedforward")
    rotors = demo.call(GetParameters, "/simulator/get_parameters", GetParameters.Request(names=["rotor_inertia"]))
    assert len(rotors.values[0].double_array_value) == 7
    demo.wait_for("state and subscription", lambda: states and trajectories.get_subscription_count())
    goal = [0.5, 0.8, 0.0, -1.2, 0.0, 0.6, 0.0]
    point = JointTrajectoryPoint(positions=goal)
    point.time_from_start.sec = 2
    trajectories.publish(JointTrajectory(joint_names=[f"joint_{i}" for i in range(1, 8)], points=[point]))
    demo.wait_for("arm at its goal", lambda: np.allclose(states[0].position, goal, atol=0.01) and np.allclose(
        states[0].velocity, 0.0, atol=0.02))
    for name in ("/simulator", "/feedforward"):
        demo.reports.clear()
        demo.wait_for(f"good diagnostics of {name}",
                      lambda name=name: name in demo.reports and demo.reports[name].level == b"\x00")
    demo.end()


def test_bringup_drives_the_controller_it_is_given(launch):
    from sensor_msgs.msg import JointState
    from std_msgs.msg import Float64MultiArray

    bringup = launch("bringup.launch.py", "namespace:=arm", "joint_states:=/robot/joint_states",
                     "robot_description:=/robot/description", "controller:=/robot/effort_controller")
    node = bringup.node
    commands: list[Any] = []
    node.create_subscription(Float64MultiArray, "/robot/effort_controller/commands", commands.append, 10)
    publish_description(node, "/robot/description", URDF)
    states = node.create_publisher(JointState, "/robot/joint_states", 1)
    model = rbd.load_urdf(URDF)
    message = JointState(name=list(model.joint_names), position=[0.3, -0.5], velocity=[0.0, 0.0])

    def send() -> None:
        message.header.stamp = node.get_clock().now().to_msg()
        states.publish(message)

    bringup.wait_for_active("/arm/feedforward", repeat=send)
    gravity = rbd.gravity_effort(model, np.array(message.position))
    bringup.wait_for("gravity on the controller's topic", lambda: commands and np.allclose(
        commands[-1].data, gravity, atol=1e-9), send)
    bringup.end()


def test_flatness_publishes_the_derivatives_of_the_torque(launch):
    from sensor_msgs.msg import JointState

    from rbd_interfaces.msg import JointEffort, JointReference

    flatness = launch("flatness.launch.py", f"params_file:={CHECKOUT / 'config/flatness.yaml'}", "namespace:=arm",
                      "robot_description:=/robot/description", "joint_states:=/robot/joint_states")
    node = flatness.node
    efforts: list[Any] = []
    node.create_subscription(JointEffort, "/arm/flatness/effort", efforts.append, 10)
    publish_description(node, "/robot/description", URDF)
    states = node.create_publisher(JointState, "/robot/joint_states", 1)
    references = node.create_publisher(JointReference, "/arm/flatness/reference", 1)
    model = rbd.load_urdf(URDF)
    state = JointState(name=list(model.joint_names), position=[0.3, -0.5], velocity=[0.0, 0.0])
    motion = np.linspace(0.1, 1.0, 10).reshape(5, 2)
    reference = JointReference(name=list(model.joint_names), position=motion[0], velocity=motion[1],
                               acceleration=motion[2], jerk=motion[3], snap=motion[4])

    def send() -> None:
        state.header.stamp = node.get_clock().now().to_msg()
        states.publish(state)
        references.publish(reference)

    flatness.wait_for_active("/arm/flatness", repeat=send)
    effort = flatness.wait_for("valid derivatives", lambda: next((e for e in efforts[-1:] if e.derivatives_valid),
                                                                 None), send)
    expected = rbd.inverse_dynamics_time_derivatives(model, *motion)
    np.testing.assert_allclose([effort.effort, effort.effort_rate, effort.effort_acceleration], expected, atol=1e-9)
    flatness.end()


def test_bringup_leaves_outputs_and_life_cycle_to_others(launch, tmp_path):
    from lifecycle_msgs.srv import GetState
    from rcl_interfaces.srv import GetParameters

    file = tmp_path / "arm.yaml"
    file.write_text(yaml.safe_dump({"/**": {"ros__parameters": {
        "robot_description": URDF, "adapters": ["joint_state"], "joint_state.topic": "somewhere"}}}))
    bringup = launch("bringup.launch.py", f"params_file:={file}", "autostart:=false")
    state = bringup.call(GetState, "/feedforward/get_state", GetState.Request())
    assert state.current_state.label == "unconfigured"
    request = GetParameters.Request(names=["adapters", "joint_state.topic"])
    adapters, topic = bringup.call(GetParameters, "/feedforward/get_parameters", request).values
    assert list(adapters.string_array_value) == ["joint_state"]
    assert topic.string_value == "somewhere"
    bringup.end()
