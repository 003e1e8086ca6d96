"""Nodes flatness and simulator with elastic joints as users have them: processes in closed loop over DDS."""
from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest
from harness import RELIABLE, ROOT, Peer
from rclpy.qos import QoSProfile
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

import rbd_ros as rbd
from rbd_interfaces.msg import ElasticJointReference
from rbd_interfaces.srv import Step
from rbd_ros.core.simulation.elastic_simulator import ElasticSimulator

URDF = rbd.sample_path("two_link")
FILE = ROOT / "config" / "sea_example.actuation.yaml"
NAMES = ["shoulder", "elbow"]
MOTORS = ["shoulder", "elbow", "elbow/stiffness"]
MANY = QoSProfile(depth=1000)    # none is lost while this process has no processor for a second


@pytest.fixture(scope="module")
def actuation():
    return rbd.load_actuation(FILE, rbd.load_urdf(URDF))


@pytest.fixture
def start(start_node):
    return partial(start_node, robot_description_file=str(URDF), actuation_file=str(FILE))


class Motors(Peer):
    """Hears what the flatness node says to motors."""

    def __init__(self):
        super().__init__("flatness")
        self.motor_efforts: list[JointState] = []
        self.motor_commands: list[Float64MultiArray] = []
        self.references: list[ElasticJointReference] = []
        self.states: list[JointState] = []
        self.motor_states: list[JointState] = []
        for kind, topic, found in ((JointState, "flatness/motor_effort", self.motor_efforts),
                                   (Float64MultiArray, "flatness/motor_commands", self.motor_commands),
                                   (ElasticJointReference, "flatness/motor_reference", self.references),
                                   (JointState, "joint_states", self.states),
                                   (JointState, "motor_states", self.motor_states)):
            self.node.create_subscription(kind, topic, found.append, MANY)
        self.motors = self.node.create_publisher(JointState, "motor_states", RELIABLE)

    def send_motors(self, names, position, velocity):
        self.motors.publish(JointState(name=list(names), position=list(position), velocity=list(velocity)))

    def motor_effort_close_to(self, wanted, tolerance, repeat):
        def last():
            return self.motor_efforts and np.allclose(self.motor_efforts[-1].effort, wanted, rtol=0.0, atol=tolerance)

        self.spin_until(last, f"motor effort {wanted}", repeat)


def seconds(message):
    return message.header.stamp.sec + 1e-9 * message.header.stamp.nanosec


def time_of(robot):
    """Time of the simulation, s."""
    now = robot.call(Step, "simulator/step", Step.Request()).time    # a running one refuses the step
    return now.sec + 1e-9 * now.nanosec


def test_effort_and_reference_of_motors_over_dds(start, private_domain, actuation):
    patient = {"ramp_in": 0.0, "ramp_out": 0.0, "state_timeout": 0.2, "reference_timeout": 0.0}
    process = start("flatness", "--params-file", "config/flatness.yaml", **patient, motor_gains__kp=[10.0, 5.0, 0.0])
    r, q = np.random.default_rng(5).normal(size=(5, 2)), np.array([0.3, -0.5])
    z, w = np.array([0.31, -0.48, 320.0]), np.zeros(3)
    motors = rbd.motor_reference(actuation, *r[:3], rbd.link_efforts(actuation, *r))
    command = motors.effort + [10.0, 5.0, 0.0] * (motors.position - z)
    g = rbd.gravity_effort(actuation.model, q)
    holding = [g[0], g[1], 0.5 * (g[1] / 300.0) ** 2]
    with Motors() as peer:
        def states_alone():
            peer.send_state(NAMES[::-1], q[::-1], [0.0, 0.0])
            peer.send_reference(NAMES, *r)

        def everything():
            peer.send_motors([MOTORS[2], "gripper", *MOTORS[:2]], [z[2], 0.0, *z[:2]], [w[2], 0.0, *w[:2]])
            states_alone()

        peer.motor_effort_close_to(holding, 1e-9, states_alone)    # no motor state yet
        assert not peer.references
        peer.spin_until(lambda: int(peer.diagnostics.get("motor_state_missing", 0)) > 0
                        and peer.diagnostics["motor_mode"] == "waiting"
                        and "motor state" in peer.diagnostics["problem"] and peer.status.endswith("waiting"), "report",
                        states_alone)

        peer.motor_effort_close_to(command, 1e-9, everything)
        assert list(peer.motor_efforts[-1].name) == MOTORS
        peer.spin_until(lambda: peer.references and peer.motor_commands and np.allclose(
            peer.motor_commands[-1].data, command, rtol=0.0, atol=1e-9), "reference and array", everything)
        reference = peer.references[-1]
        assert list(reference.name) == NAMES
        for field in ("position", "velocity", "acceleration", "effort"):
            wanted = getattr(motors, field)
            np.testing.assert_allclose(getattr(reference, f"motor_{field}"), wanted[:2], atol=1e-9)
            second = getattr(reference, f"stiffness_motor_{field}")
            assert math.isnan(second[0]) and abs(second[1] - wanted[2]) < 1e-9
        np.testing.assert_allclose(reference.stiffness, motors.stiffness, rtol=1e-12)
        peer.spin_until(lambda: peer.efforts and np.allclose(peer.efforts[-1].effort, motors.torque, rtol=0, atol=1e-9),
                        "effort of the links", everything)
        assert peer.efforts[-1].derivatives_valid

        peer.motor_effort_close_to(holding, 1e-9, states_alone)    # stale motor states
        peer.motor_effort_close_to(command, 1e-9, everything)
        # a motor that is missing is named, and its state not used
        peer.spin_until(lambda: int(peer.diagnostics.get("rejected_missing_joint", 0)) > 0, "rejection", lambda: (
            peer.send_motors(MOTORS[:2], z[:2], w[:2]), states_alone()))
        peer.motor_effort_close_to(holding, 1e-9, states_alone)
        # parameters while it runs: refused by name, or obeyed
        result = peer.set_parameter("stiffness", 5.0)
        assert not result.successful and "elbow" in result.reason and "50 to 900" in result.reason
        assert not peer.set_parameter("motor_gains.kp", [1.0, 2.0]).successful
        assert peer.set_parameter("motor_effort_limits.maximum", [0.5, 0.25, 1.0]).successful
        peer.motor_effort_close_to(np.clip(command, [-0.5, -0.25, -1.0], [0.5, 0.25, 1.0]), 1e-9, everything)
        assert process.end() == 0 and "Traceback" not in process.output()


@pytest.mark.parametrize("node", ["flatness", "simulator"])
def test_bad_drives_are_refused_by_name(start, private_domain, tmp_path, node):
    file = tmp_path / "bad.actuation.yaml"
    file.write_text("actuation:\n  shoulder: {type: rigid}\n  elbow: {type: series_elastic, stifness: 300.0}\n")
    start(node, actuation_file=str(file))
    with Peer(node) as peer:
        peer.spin_until(lambda: peer.status.startswith("configuration failed"), "refusal")
        assert "elbow" in peer.status and "stiffness" in peer.status and file.name in peer.status


def test_arm_and_stiffness_follow_in_closed_loop(start, private_domain):
    start("flatness", motor_gains__kp=[600.0, 250.0, 3e-4], motor_gains__kd=[25.0, 8.0, 1e-5], ramp_in=0.1,
          state_timeout=5.0, state_rate=250.0, stiffness_poles=40.0, feedback__max_age=".inf", feedback__min_rate=0.0)
    begin, goal = np.array([0.3, -0.5]), np.array([0.8, 0.2])
    path = np.polynomial.Polynomial([0, 0, 0, 0, 0, 126, -420, 540, -315, 70])    # of the node: rest to rest
    with Motors() as peer, Peer("simulator") as robot:
        publisher = peer.node.create_publisher(JointTrajectory, "flatness/joint_trajectory", RELIABLE)
        start("simulator", "-r", "simulator/effort_commands:=flatness/motor_effort", publish_rate=250.0,
              initial_position=[0.3, -0.5], publish_clock=True, wait_for_command=5.0, brakes_until=1e6)
        robot.spin_until(lambda: int(robot.diagnostics.get("commands", 0)), "closed loop")
        assert robot.set_parameter("brakes_until", 0.0).successful
        now = time_of(robot)
        peer.spin_until(lambda: peer.motor_efforts and peer.motor_states and publisher.get_subscription_count()
                        and peer.states and seconds(peer.states[-1]) > now - 0.01, "states")
        message = JointTrajectory(joint_names=NAMES, points=[JointTrajectoryPoint(positions=list(begin)),
                                                             JointTrajectoryPoint(positions=list(goal))])
        message.points[1].time_from_start.nanosec = 600_000_000

        def send():    # announced long before it begins, as this process or the node may pause
            nonlocal begins
            begins = seconds(peer.states[-1]) + 2.0
            message.header.stamp.sec, message.header.stamp.nanosec = divmod(round(begins * 1e9), 10**9)
            publisher.publish(message)

        begins = 0.0
        peer.references.clear()
        peer.spin_until(lambda: peer.references, "reference", send)
        assert seconds(peer.references[0]) < begins
        peer.spin_until(lambda: seconds(peer.states[-1]) > begins + 0.1, "motion")
        assert peer.set_parameter("stiffness", 500.0).successful
        settled = max(time_of(robot) + 1.0, begins + 0.8)    # the last state received may be older
        peer.spin_until(lambda: min(seconds(peer.states[-1]), seconds(peer.motor_states[-1])) > settled,
                        "end of the motion")
        errors = []
        for state in peer.states:
            s = np.clip((seconds(state) - begins) / 0.6, 0.0, 1.0)
            if seconds(state) > begins:
                errors.append(np.abs(np.array(state.position) - begin - (goal - begin) * path(s)).max())
        assert len(errors) > 150 and max(errors) < 5e-3 and errors[-1] < 1e-3
        stiffness = [state.position[2] for state in peer.motor_states if seconds(state) > begins]
        assert abs(stiffness[0] - 300.0) < 5.0 and abs(stiffness[-1] - 500.0) < 5.0
        assert max(stiffness) < 510.0 and np.abs(np.diff(stiffness)).max() < 20.0    # no jump
        reference = peer.references[-1]
        there = peer.spin_until(lambda: next((state for state in peer.motor_states
                                              if state.header.stamp == reference.header.stamp), None), "its motors")
        np.testing.assert_allclose(there.position[:2], reference.motor_position, atol=2e-3)
        peer.spin_until(lambda: peer.diagnostics["motor_mode"] == "running", "diagnostics")    # once a second
        assert peer.diagnostics["impossible"] == "0"


def test_the_simulator_is_that_of_the_library(start, private_domain, actuation):
    start("simulator", paused=True, publish_clock=True, initial_position=[-0.6, 0.4], command_timeout=0.0,
          joints=["elbow", "shoulder"])
    effort = [2.0, -1.0, 0.001]    # in the order of the model
    with Peer("simulator") as peer:
        states: dict[str, list[JointState]] = {"joint_states": [], "motor_states": []}
        for topic, found in states.items():
            peer.node.create_subscription(JointState, topic, found.append, RELIABLE)
        commands = peer.node.create_publisher(Float64MultiArray, "simulator/commands", 10)
        peer.spin_until(commands.get_subscription_count, "simulator")
        peer.spin_until(lambda: int(peer.diagnostics.get("rejected_wrong_size", 0)), "rejection",    # one is missing
                        lambda: commands.publish(Float64MultiArray(data=[effort[1], effort[0]])))
        peer.spin_until(lambda: int(peer.diagnostics.get("commands", 0)), "command",
                        lambda: commands.publish(Float64MultiArray(data=[effort[1], effort[0], effort[2]])))
        assert float(peer.diagnostics["stiffness_elbow"]) == pytest.approx(300.0)
        answer = peer.call(Step, "simulator/step", Step.Request(steps=100))
        assert answer.success, answer.message
        links, motors = (peer.spin_until(lambda found=found: next((m for m in found if m.header.stamp == answer.time),
                                                                  None), "state") for found in states.values())
    robot = ElasticSimulator(actuation, step=1e-3, q=[0.4, -0.6])
    robot.step(effort, 100)
    assert list(motors.name) == ["elbow", "shoulder", "elbow/stiffness"] and list(links.name) == ["elbow", "shoulder"]
    np.testing.assert_allclose(links.position, robot.q[::-1], atol=1e-12)
    np.testing.assert_allclose(links.velocity, robot.v[::-1], atol=1e-12)
    np.testing.assert_allclose(links.effort, robot.torque[::-1], atol=1e-9)
    np.testing.assert_allclose(motors.position, robot.motor_position[[1, 0, 2]], atol=1e-12)
    np.testing.assert_allclose(motors.velocity, robot.motor_velocity[[1, 0, 2]], atol=1e-12)
    np.testing.assert_allclose(motors.effort, np.array(effort)[[1, 0, 2]])


def test_a_step_that_is_too_long_for_the_springs_is_refused(start, private_domain):
    start("simulator", integrator="rk4", step=0.02, publish_rate=50.0)
    with Peer("simulator") as peer:
        peer.spin_until(lambda: peer.status.startswith("configuration failed"), "refusal")
        assert "too long for rk4" in peer.status and "use at most" in peer.status and "'" in peer.status
