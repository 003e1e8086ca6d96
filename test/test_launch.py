"""Under `ros2 launch` the nodes of each launch file become active, do their work and end cleanly.

The launch files of co-simulation have a test file of their own in test/cosimulation.
"""
from __future__ import annotations

import itertools
import os
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest
import yaml
from support.launch_files import CHECKOUT, calls, each_file, shared

import rbd_ros as rbd

URDF = rbd.sample_path("two_link").read_text()
MODEL = rbd.sample("two_link")
Q = np.array([0.3, -0.5])
MOTION = np.linspace(0.1, 1.0, 10).reshape(5, 2)    # position to snap
DRIVES = CHECKOUT / "config" / "sea_example.actuation.yaml"


@each_file
def test_show_args_describes_everything(path, launch):
    result = subprocess.run(["ros2", "launch", path, "--show-args"], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    shown = re.findall(r"^    '(\w+)':\n        (.+)$", result.stdout, re.MULTILINE)
    assert sorted(name for name, _ in shown) == sorted(
        item["0"] for item in calls(path, "DeclareLaunchArgument") + shared(path))
    assert not any("no description" in text for _, text in shown)


def test_refuses_what_is_no_choice(launch):
    result = subprocess.run(["ros2", "launch", CHECKOUT / "launch/demo.launch.py", "feedforward:=much"],
                            capture_output=True, text=True)
    assert result.returncode != 0
    assert "much" in result.stdout + result.stderr and "gravity" in result.stdout + result.stderr


def test_security_asks_for_the_keys_of_the_enclave(launch, tmp_path):
    result = subprocess.run(["ros2", "launch", CHECKOUT / "launch/bringup.launch.py", "security:=true",
                             f"keystore:={tmp_path}", "enclave:=/cell"], capture_output=True, text=True, timeout=120)
    assert f"directory '{tmp_path}/enclaves/cell/feedforward' does not exist" in result.stdout + result.stderr


def test_demo_moves_the_arm_where_it_is_told(launch):
    from rcl_interfaces.srv import GetParameters
    from sensor_msgs.msg import JointState
    from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

    from rbd_interfaces.msg import JointEffort

    demo = launch("demo.launch.py", "mass_scale:=1", "feedforward:=full")
    states = demo.listen(JointState, "/joint_states")
    trajectories = demo.node.create_publisher(JointTrajectory, "/feedforward/joint_trajectory", 1)
    demo.wait_for_active("/simulator", "/feedforward")
    rotors = demo.call(GetParameters, "/simulator/get_parameters", GetParameters.Request(names=["rotor_inertia"]))
    assert len(rotors.values[0].double_array_value) == 7
    efforts = demo.listen(JointEffort, "/feedforward/effort")
    # before a joint state comes to feedforward, it refuses motions
    demo.wait_for("torque", lambda: states and efforts and trajectories.get_subscription_count())
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


@pytest.mark.parametrize("robot", ["iiwa_lbr"])    # needs no other package
def test_a_rehearsal_holds_the_arm(launch, robot):
    from sensor_msgs.msg import JointState

    rehearsal = launch("rehearse.launch.py", f"robot:={robot}", "mass_scale:=1.05")
    states = rehearsal.listen(JointState, "/joint_states")
    rehearsal.wait_for_active("/simulator", "/feedforward")
    rehearsal.wait_for("torque", lambda: "/simulator" in rehearsal.reports and any(
        item.key == "brakes" and item.value == "off" for item in rehearsal.reports["/simulator"].values))
    assert states[0].name[0] == "lbr_A1" and np.allclose(states[0].position, 0.0, atol=0.05)
    assert "adapter lbr is replaced by adapter forward_command" in rehearsal.output()
    rehearsal.end()


def stand_in(prefix, package, tmp_path):
    """A program that writes down its arguments, where ROS looks for the package of this name."""
    program = prefix / "lib" / package / package
    program.parent.mkdir(parents=True)
    program.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > {tmp_path / package}.part\n'
                       f'mv {tmp_path / package}.part {tmp_path / package}.txt\nexec sleep 600\n')
    program.chmod(0o755)
    index = prefix / "share" / "ament_index" / "resource_index" / "packages"
    index.mkdir(parents=True, exist_ok=True)
    (index / package).touch()
    return tmp_path / f"{package}.txt"


@pytest.mark.parametrize(("file", "simulated"), [
    ("demo.launch.py", True), ("simulation.launch.py", True), ("bringup.launch.py", False)])
def test_rviz_is_started_where_it_is_wanted(launch, tmp_path, monkeypatch, file, simulated):
    prefix = tmp_path / "prefix"
    packages = ["rviz2", *["robot_state_publisher"] * simulated]
    notes = [stand_in(prefix, package, tmp_path) for package in packages]
    monkeypatch.setenv("AMENT_PREFIX_PATH", f"{prefix}:{os.environ['AMENT_PREFIX_PATH']}")
    started = launch(file, "rviz:=true", *([] if simulated else ["joint_states:=/robot/joint_states"]))
    for note in notes:
        started.wait_for(note.name, note.exists)
    given = notes[0].read_text().split()
    assert yaml.safe_load(Path(given[given.index("-d") + 1]).read_text())["Visualization Manager"]
    assert given[given.index("-f") + 1] == ("link_0" if simulated else "base_link")
    assert f"/joint_states:={'' if simulated else '/robot/'}joint_states" in given


def test_bringup_drives_the_controller_it_is_given(launch):
    from std_msgs.msg import Float64MultiArray

    bringup = launch("bringup.launch.py", "namespace:=arm", "joint_states:=/robot/joint_states",
                     "robot_description:=/robot/description", "controller:=/robot/effort_controller")
    commands = bringup.listen(Float64MultiArray, "/robot/effort_controller/commands")
    bringup.describe("/robot/description", URDF)
    send = bringup.at_rest("/robot/joint_states", MODEL.joint_names, Q)
    bringup.wait_for_active("/arm/feedforward", repeat=send)
    bringup.wait_for("gravity on the controller's topic", lambda: commands and np.allclose(
        commands[0].data, rbd.gravity_effort(MODEL, Q), atol=1e-9), send)
    bringup.end()


@pytest.mark.parametrize(("adapter", "kind", "topic", "field"), [
    ("forward_command", "std_msgs/Float64MultiArray", "effort_controller/commands", "data"),
    ("joint_state", "sensor_msgs/JointState", "feedforward/effort_commands", "effort"),
    ("jtc", "trajectory_msgs/JointTrajectory", "joint_trajectory_controller/joint_trajectory", "points"),
    ("multi_dof", "control_msgs/MultiDOFCommand", "pid_controller/reference", "values"),
    ("joint_command", "control_msgs/JointCommand", "robot_joint_commands/effort", "values"),
    ("linear_feedback", "linear_feedback_controller_msgs/Control", "control", "feedforward"),
    ("lbr", "lbr_fri_idl/LBRTorqueCommand", "command/torque", "torque"),
    ("mit", "std_msgs/Float64MultiArray", "forward_effort_controller/commands", "data")])
def test_bringup_has_the_outputs_of_the_parameter_file(launch, tmp_path, adapter, kind, topic, field):
    package, name = kind.split("/")
    messages = pytest.importorskip(f"{package}.msg", reason=f"{package} is not installed")
    if not hasattr(messages, name):
        pytest.skip(f"the installed {package} has no {name}")
    model = rbd.sample("iiwa")
    position = np.linspace(-0.6, 0.6, 7)
    file = tmp_path / "arm.yaml"
    file.write_text(yaml.safe_dump({"/**": {"ros__parameters": {
        "robot_description_file": str(rbd.sample_path("iiwa")), "adapters": [adapter], "mit.kp": [50.0]}}}))
    bringup = launch("bringup.launch.py", f"params_file:={file}", "namespace:=lbr")
    commands = bringup.listen(getattr(messages, name), f"/lbr/{topic}")
    send = bringup.at_rest("/lbr/joint_states", model.joint_names, position)
    if adapter == "lbr":    # it sends only while the robot listens
        robot = bringup.node.create_publisher(messages.LBRState, "/lbr/state", 1)
        state = messages.LBRState(session_state=4, measured_joint_position=position)
        send = both(send, lambda: robot.publish(state))

    def effort():
        values = getattr(commands[0], field)
        return values[0].effort if adapter == "jtc" else values.data if adapter == "linear_feedback" else values

    bringup.wait_for_active("/lbr/feedforward", repeat=send)
    bringup.wait_for(f"gravity on {topic}", lambda: commands and np.allclose(
        effort(), rbd.gravity_effort(model, position), atol=1e-9), send)
    bringup.end()


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


def follow_motion(launched):
    """A function that sends the state Q and the reference MOTION to node flatness; its robot is described, too."""
    from rbd_interfaces.msg import JointReference

    launched.describe("/robot/description", URDF)
    publisher = launched.node.create_publisher(JointReference, "/arm/flatness/reference", 1)
    reference = JointReference(name=list(MODEL.joint_names), **dict(zip(
        ("position", "velocity", "acceleration", "jerk", "snap"), MOTION, strict=True)))
    return both(launched.at_rest("/robot/joint_states", MODEL.joint_names, Q), lambda: publisher.publish(reference))


def both(first, second):
    return lambda: (first(), second())


def test_flatness_publishes_the_derivatives_of_the_torque(launch):
    from rbd_interfaces.msg import JointEffort

    flatness = launch("flatness.launch.py", f"params_file:={CHECKOUT / 'config/flatness.yaml'}", "namespace:=arm",
                      "robot_description:=/robot/description", "joint_states:=/robot/joint_states")
    efforts = flatness.listen(JointEffort, "/arm/flatness/effort")
    send = follow_motion(flatness)
    flatness.wait_for_active("/arm/flatness", repeat=send)
    flatness.wait_for("valid derivatives", lambda: efforts and efforts[0].derivatives_valid, send)
    found = [efforts[0].effort, efforts[0].effort_rate, efforts[0].effort_acceleration]
    np.testing.assert_allclose(found, rbd.inverse_dynamics_time_derivatives(MODEL, *MOTION), atol=1e-9)
    assert not flatness.node.get_publishers_info_by_topic("/arm/flatness/motor_effort")
    flatness.end()


def test_float_check_offers_its_test(launch):
    from std_srvs.srv import Trigger

    check = launch("float.launch.py", f"params_file:={CHECKOUT / 'config/float_check.yaml'}", "namespace:=arm",
                   "robot_description:=/robot/description", "joint_states:=/robot/joint_states")
    follow_motion(check)    # describes the robot
    check.wait_for_active("/arm/float_check", repeat=check.at_rest("/robot/joint_states", MODEL.joint_names, Q))
    assert ("/arm/float_check/start", [f"std_srvs/srv/{Trigger.__name__}"]) in (
        check.node.get_service_names_and_types())
    check.end()


def test_cartesian_takes_a_goal(launch):
    from geometry_msgs.msg import PoseStamped

    node = launch("cartesian.launch.py", f"params_file:={CHECKOUT / 'config/cartesian.yaml'}", "namespace:=arm",
                  "robot_description:=/robot/description", "joint_states:=/robot/joint_states")
    follow_motion(node)    # describes the robot
    node.wait_for_active("/arm/cartesian", repeat=node.at_rest("/robot/joint_states", MODEL.joint_names, Q))
    assert ("/arm/cartesian/target_pose", [f"geometry_msgs/msg/{PoseStamped.__name__}"]) in (
        node.node.get_topic_names_and_types())
    node.end()


def test_flatness_drives_the_motors_of_elastic_joints(launch):
    from sensor_msgs.msg import JointState

    from rbd_interfaces.msg import ElasticJointReference

    flatness = launch("flatness.launch.py", "namespace:=arm", f"actuation_file:={DRIVES}",
                      "robot_description:=/robot/description", "joint_states:=/robot/joint_states",
                      "motor_states:=/robot/motor_states")
    efforts = flatness.listen(JointState, "/arm/flatness/motor_effort")
    references = flatness.listen(ElasticJointReference, "/arm/flatness/motor_reference")
    names = [*MODEL.joint_names, "elbow/stiffness"]
    send = both(follow_motion(flatness), flatness.at_rest("/robot/motor_states", names, [*Q, 300.0]))
    flatness.wait_for_active("/arm/flatness", repeat=send)
    actuation = rbd.load_actuation(DRIVES, MODEL)
    motors = rbd.motor_reference(actuation, *MOTION[:3], rbd.link_efforts(actuation, *MOTION))
    flatness.wait_for("torque and position of the motors", lambda: references and efforts and np.allclose(
        efforts[0].effort, motors.effort, rtol=0.0, atol=1e-9) and np.allclose(
        references[0].motor_position, motors.position[:2], rtol=0.0, atol=1e-9), send)
    assert list(efforts[0].name) == names
    np.testing.assert_allclose(references[0].stiffness, motors.stiffness, rtol=1e-9)
    flatness.end()


def fresh(report):
    return 0.0 < float(next(item.value for item in report.values if item.key == "joint_state_age")) < 0.5


def test_server_answers_about_the_robot_as_it_is(launch):
    from rbd_interfaces.srv import InverseDynamics

    server = launch("server.launch.py", "namespace:=arm", "robot_description:=/robot/description",
                    "joint_states:=/robot/joint_states")
    server.describe("/robot/description", URDF)
    send = server.at_rest("/robot/joint_states", MODEL.joint_names, Q)
    server.wait_for_active("/arm/dynamics_server", repeat=send)
    request = InverseDynamics.Request(name=list(MODEL.joint_names), acceleration=MOTION[2])
    server.wait_for("joint state", lambda: fresh(server.reports["/arm/dynamics_server"]), send)
    answer = server.ask(InverseDynamics, "/arm/dynamics_server/inverse_dynamics", request, send)
    np.testing.assert_allclose(answer.effort, rbd.inverse_dynamics(MODEL, Q, np.zeros(2), MOTION[2]), atol=1e-9)
    server.end()


def test_server_knows_the_constraints_it_is_given(launch):
    from rbd_interfaces.msg import RobotState
    from rbd_interfaces.srv import ConstrainedDynamics

    model = rbd.sample("five_bar")
    loop = rbd.sample_constraints("five_bar", model)
    q, v = rbd.project(model, loop, [0.1, 0.3, 0.0, -0.1, 0.2], [1.0, 0.0, 0.0, 0.5, 0.0])
    server = launch("server.launch.py", "constraints_file:=five_bar")
    server.describe("/robot_description", rbd.sample_path("five_bar").read_text())
    server.wait_for_active("/dynamics_server")
    request = ConstrainedDynamics.Request(mode=ConstrainedDynamics.Request.FORWARD, state=RobotState(
        name=list(model.joint_names), position=q, velocity=v))
    answer = server.call(ConstrainedDynamics, "/dynamics_server/constrained_dynamics", request)
    assert answer.success, answer.message
    expected = rbd.constrained_forward_dynamics(model, loop, q, v, np.zeros(5))
    np.testing.assert_allclose(answer.acceleration, expected.acceleration, atol=1e-9)
    assert list(answer.constraint) == list(loop.row_names)
    server.end()


def test_planner_plans_from_where_the_robot_is(launch):
    from rbd_interfaces.msg import MotionRequest
    from rbd_interfaces.srv import PlanMotion

    planner = launch("planner.launch.py", "namespace:=arm", "robot_description:=/robot/description",
                     "joint_states:=/robot/joint_states")
    planner.describe("/robot/description", URDF)
    send = planner.at_rest("/robot/joint_states", MODEL.joint_names, Q)
    planner.wait_for_active("/arm/motion_planner", repeat=send)
    planner.wait_for("joint state", lambda: fresh(planner.reports["/arm/motion_planner"]), send)
    answer = planner.ask(PlanMotion, "/arm/motion_planner/plan_motion", PlanMotion.Request(motion=MotionRequest(
        name=list(MODEL.joint_names), goal=[0.1, 0.2], duration=2.0)), send)
    np.testing.assert_allclose(answer.plan.trajectory.points[0].positions, Q, atol=1e-12)
    planner.end()


@pytest.mark.parametrize(("arguments", "before", "after"), [
    ([], "/effort_annotator/joint_trajectory_in", "/effort_annotator/joint_trajectory"),
    (["namespace:=arm", "trajectories:=/planner/path", "controller:=follower", "robot_description:=/robot_description"],
     "/planner/path", "/arm/follower/joint_trajectory")])
def test_annotator_fills_trajectories_on_their_way(launch, arguments, before, after):
    from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

    annotator = launch("annotator.launch.py", *arguments)
    annotator.describe("/robot_description", URDF)
    received = annotator.listen(JointTrajectory, after)
    trajectories = annotator.node.create_publisher(JointTrajectory, before, 1)
    annotator.wait_for_active("/arm/effort_annotator" if arguments else "/effort_annotator")
    annotator.wait_for("annotator's topics", lambda: trajectories.get_subscription_count()
                       and annotator.node.count_publishers(after))
    message = JointTrajectory(joint_names=list(MODEL.joint_names), points=[JointTrajectoryPoint(
        positions=MOTION[0], velocities=MOTION[1], accelerations=MOTION[2])])
    annotator.wait_for("trajectory with efforts", lambda: received, lambda: trajectories.publish(message))
    np.testing.assert_allclose(received[0].points[0].effort, rbd.inverse_dynamics(MODEL, *MOTION[:3]), atol=1e-9)
    annotator.end()


def test_observer_shows_what_the_world_does(launch):
    from sensor_msgs.msg import JointState

    from rbd_interfaces.msg import ExternalEffort

    observer = launch("observer.launch.py", "namespace:=arm", "robot_description:=/robot_description")
    observer.describe("/robot_description", URDF)
    received = observer.listen(ExternalEffort, "/arm/observer/external_effort")
    states = observer.node.create_publisher(JointState, "/arm/joint_states", 10)
    observer.wait_for_active("/arm/observer")
    stamps = itertools.count(1)

    def send():
        message = JointState(name=list(MODEL.joint_names), position=Q, velocity=[0.0] * len(Q), effort=[0.0] * len(Q))
        message.header.stamp.nanosec = 1_000_000 * next(stamps)
        states.publish(message)

    observer.wait_for("external efforts", lambda: received, send)
    assert list(received[-1].name) == list(MODEL.joint_names) and np.isfinite(received[-1].effort).all()
    observer.end()
