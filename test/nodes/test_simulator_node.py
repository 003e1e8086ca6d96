"""The simulator node as users have it: a process of its own, reached over DDS."""
from __future__ import annotations

import math
import signal
from functools import partial

import numpy as np
import pytest
from harness import LATCHED, RELIABLE, Peer
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState
from rclpy.qos import QoSProfile
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray, String
from std_srvs.srv import SetBool

import rbd_ros as rbd
from rbd_interfaces.msg import ConstraintForces, NamedWrench, NamedWrenches, RobotState
from rbd_interfaces.srv import Reset, Step
from rbd_ros.core.simulation.simulator import Simulator

URDF = rbd.sample_path("two_link")
NAMES = ["shoulder", "elbow"]
Q0 = [0.4, -0.6]
MANY = QoSProfile(depth=1000)    # none is lost while this process has no processor for a second
STILL = {"paused": True, "publish_clock": True, "initial_position": Q0, "command_timeout": 0.0,
         "timeout_action": "zero"}


class Robot(Peer):
    """Hears the simulator and commands it."""

    def __init__(self):
        super().__init__("simulator")
        self.states: list[JointState] = []
        self.clocks: list[Clock] = []
        self.node.create_subscription(JointState, "joint_states", self.states.append, MANY)
        self.node.create_subscription(Clock, "/clock", self.clocks.append, RELIABLE)
        self.commands = self.node.create_publisher(Float64MultiArray, "simulator/commands", 10)
        self.named = self.node.create_publisher(JointState, "simulator/effort_commands", 10)
        self.wrenches = self.node.create_publisher(NamedWrenches, "simulator/external_wrenches", 10)

    def ready(self):
        self.spin_until(lambda: self.diagnostics and all(
            sender.get_subscription_count() for sender in (self.commands, self.named, self.wrenches)), "simulator")
        self.diagnostics.clear()    # until the next, the node knows these senders, too: its inputs are best effort
        self.spin_until(lambda: self.diagnostics, "diagnostics")
        return self

    def count(self, key):
        return int(self.diagnostics.get(key, 0))

    def step(self, steps):
        """Step the paused simulator; the state after it."""
        answer = self.call(Step, "simulator/step", Step.Request(steps=steps))
        assert answer.success, answer.message
        return self.spin_until(lambda: next((state for state in reversed(self.states)
                                             if state.header.stamp == answer.time), None), "state after the steps")


@pytest.fixture
def start(start_node):
    return partial(start_node, "simulator", robot_description_file=str(URDF))


def at(stamp):
    return stamp.sec * 10**9 + stamp.nanosec


def library(effort, steps, wrenches=None, model=None, **settings):
    simulator = Simulator(model or rbd.load_urdf(URDF), q=Q0, **settings)
    simulator.step(effort, steps, external_wrenches=wrenches)
    return simulator


@pytest.mark.parametrize("integrator", ["variational", "semi_implicit", "rk4"])
def test_the_response_to_a_command_is_that_of_the_library(start, integrator):
    start(**STILL, integrator=integrator, mass_scale=1.05, friction__damping=0.3, friction__coulomb=[0.1, 0.2])
    model = rbd.load_urdf(URDF).with_scaled_masses(1.05).with_(damping=0.3, friction=[0.1, 0.2])
    with Robot() as robot:
        robot.ready()
        robot.commands.publish(Float64MultiArray(data=[3.0, -1.0]))
        robot.spin_until(lambda: robot.count("commands") == 1, "command")
        state = robot.step(200)
    expected = library([3.0, -1.0], 200, model=model, integrator=integrator)
    assert list(state.name) == NAMES
    np.testing.assert_allclose(state.position, expected.q, rtol=0.0, atol=1e-12)
    np.testing.assert_allclose(state.velocity, expected.v, rtol=0.0, atol=1e-12)
    np.testing.assert_array_equal(state.effort, [3.0, -1.0])
    assert state.header.stamp.nanosec == 200_000_000


def test_joints_are_commanded_and_published_in_the_order_of_the_parameter(start):
    start(**(STILL | {"initial_position": Q0[::-1]}), joints=NAMES[::-1])
    with Robot() as robot:
        robot.ready()
        robot.commands.publish(Float64MultiArray(data=[-1.0, 3.0]))
        robot.spin_until(lambda: robot.count("commands") == 1, "command")
        state = robot.step(100)
    assert list(state.name) == NAMES[::-1]
    np.testing.assert_allclose(state.position[::-1], library([3.0, -1.0], 100).q, rtol=0.0, atol=1e-12)


def test_commands_by_name_and_wrenches_act(start):
    start(**STILL, wrench_timeout=0)
    with Robot() as robot:
        robot.ready()
        wrench = NamedWrench(body="tip")
        wrench.wrench.force.x = 4.0
        wrench.wrench.torque.y = 0.5
        robot.wrenches.publish(NamedWrenches(wrenches=[wrench]))
        robot.named.publish(JointState(name=NAMES[::-1], effort=[-1.0, 3.0]))
        robot.spin_until(lambda: robot.count("commands") == 1, "command")
        state = robot.step(100)
    expected = library([3.0, -1.0], 100, {"tip": [0.0, 0.5, 0.0, 4.0, 0.0, 0.0]})
    np.testing.assert_allclose(state.position, expected.q, rtol=0.0, atol=1e-12)


def test_malformed_input_is_counted_and_changes_nothing(start):
    process = start(**STILL)
    with Robot() as robot:
        robot.ready()
        for data in ([1.0], [1.0, 2.0, 3.0], [], [1.0, math.nan], [math.inf, 0.0]):
            robot.commands.publish(Float64MultiArray(data=data))
        for names, effort in ((NAMES, [1.0]), (["shoulder"], [1.0]), ([*NAMES, "knee"], [1.0] * 3), (["knee"], [1.0]),
                              (NAMES, [1.0, math.nan]), ([*NAMES, "elbow"], [1.0] * 3)):
            robot.named.publish(JointState(name=names, effort=effort))
        robot.wrenches.publish(NamedWrenches(wrenches=[NamedWrench(body="hand")]))
        robot.spin_until(lambda: robot.count("rejected_total") == 12, "12 rejections")
        counts = {kind: robot.count(f"rejected_{kind}") for kind in
                  ("wrong_size", "non_finite", "unknown_joint", "missing_joint", "duplicate_joint", "unknown_body")}
        assert counts == {"wrong_size": 4, "non_finite": 3, "unknown_joint": 2, "missing_joint": 1,
                          "duplicate_joint": 1, "unknown_body": 1}
        assert robot.count("commands") == 0
        np.testing.assert_allclose(robot.step(50).position, library(None, 50).q, rtol=0.0, atol=1e-12)
    assert process.end() == 0


def test_reset_pause_and_step_say_what_is_wrong(start):
    start(**(STILL | {"paused": False, "real_time_factor": 0.0}))
    with Robot() as robot:
        robot.ready()
        assert "not paused" in robot.call(Step, "simulator/step", Step.Request(steps=1)).message
        robot.spin_until(lambda: robot.states and robot.states[-1].header.stamp.sec >= 1, "a second of simulated time")
        assert robot.call(SetBool, "simulator/pause", SetBool.Request(data=True)).success
        assert "steps is 0" in robot.call(Step, "simulator/step", Step.Request(steps=0)).message
        for state, message in ((RobotState(name=["elbow"], position=[0.0]), "every joint once"),
                               (RobotState(name=NAMES, position=[0.0]), "1 positions"),
                               (RobotState(name=NAMES, position=[0.0, 9.0]), "joint 'elbow' starts at 9"),
                               (RobotState(name=NAMES, position=[0.0, math.nan]), "must be finite")):
            answer = robot.call(Reset, "simulator/reset", Reset.Request(state=state))
            assert not answer.success and message in answer.message
        state = RobotState(name=NAMES[::-1], position=[0.2, 0.1], velocity=[2.0, 1.0])
        robot.states.clear()
        assert robot.call(Reset, "simulator/reset", Reset.Request(state=state)).success
        state = robot.spin_until(lambda: next((s for s in robot.states if list(s.position) == [0.1, 0.2]), None),
                                 "state after the reset")
        assert list(state.velocity) == [1.0, 2.0] and at(state.header.stamp) == 0
        assert robot.call(Reset, "simulator/reset", Reset.Request()).success
        np.testing.assert_allclose(robot.step(10).position, library(None, 10).q, rtol=0.0, atol=1e-12)


@pytest.mark.parametrize("factor", [0.0, 1.0, 4.0])
def test_states_and_clock_come_at_every_multiple_of_the_period(start, factor):
    start(real_time_factor=factor, publish_clock=True, publish_rate=100.0)
    with Robot() as robot:    # of one that runs ahead a busy listener misses some of either
        robot.spin_until(lambda: len({at(state.header.stamp) for state in robot.states}
                                     & {at(clock.clock) for clock in robot.clocks}) > 50, "states and clock")
    stamps = [at(state.header.stamp) for state in robot.states]
    assert all(stamp % 10_000_000 == 0 for stamp in stamps)
    assert sorted(set(stamps)) == stamps


def test_without_clock_stamps_are_those_of_the_system(start):
    start()
    with Robot() as robot:
        before = robot.node.get_clock().now().nanoseconds
        state = robot.spin_until(lambda: robot.states and robot.states[-1], "state")
        after = robot.node.get_clock().now().nanoseconds
        assert not robot.clocks
    assert before - 60 * 10**9 < at(state.header.stamp) <= after


def test_brakes_hold_until_their_time_and_parameters_are_checked(start):
    start(**(STILL | {"brakes_until": 1e9}))
    with Robot() as robot:
        robot.ready()
        held = robot.step(100)
        assert list(held.position) == Q0 and not any(held.velocity)
        assert "from 0 to inf" in robot.set_parameter("brakes_until", -1.0).reason
        assert not robot.set_parameter("step", 0.01).successful
        assert robot.set_parameter("brakes_until", 0.15).successful
        np.testing.assert_allclose(robot.step(150).position, library(None, 100).q, rtol=0.0, atol=1e-12)


def test_brakes_hold_it_until_it_is_commanded_and_when_commands_stop(start):
    process = start(paused=True, publish_clock=True, initial_position=Q0)
    with Robot() as robot:
        robot.ready()
        held = robot.step(200)
        assert list(held.position) == Q0 and robot.diagnostics["brakes"] == "on"
        robot.commands.publish(Float64MultiArray(data=[4.0, -2.0]))
        assert robot.step(50).velocity[0] != 0.0
        robot.spin_until(lambda: robot.diagnostics["brakes"] == "off", "brakes that are released")
        assert not any(robot.step(200).velocity)
        robot.spin_until(lambda: robot.diagnostics["brakes"] == "on", "brakes that engage")
        assert robot.call(Reset, "simulator/reset", Reset.Request()).success
        assert list(robot.step(10).position) == Q0
    assert process.end() == 0
    log = process.output()
    assert log.count("brakes hold the joints until the first command") == 2
    assert log.count("the brakes are released") == log.count("no command for 0.1 s: the brakes engage") == 1


def test_it_stops_itself_until_a_reset(start):
    process = start(**STILL, controller="arm", reflex__effort_rate=100.0)
    with Robot() as robot:
        robot.ready()
        commands = robot.node.create_publisher(Float64MultiArray, "arm/commands", 10)
        robot.spin_until(commands.get_subscription_count, "input of the controller")
        robot.spin_until(lambda: robot.count("commands"), "command",    # the first ones may be lost
                         lambda: commands.publish(Float64MultiArray(data=[5.0, 0.0])))
        assert not any(robot.step(100).velocity)
        robot.spin_until(lambda: robot.diagnostics["mode"] == "stopped", "the stop")
        assert robot.diagnostics["reflexes"] == "1" and "at most 100 N m/s is allowed" in robot.status
        assert robot.call(Reset, "simulator/reset", Reset.Request()).success
        robot.spin_until(lambda: robot.diagnostics["mode"] == "paused", "the reset")
        robot.states.clear()
        assert any(robot.step(50).velocity) and robot.diagnostics["brakes"] == "off"
    assert process.end() == 0
    assert process.output().count("the robot stops itself: the command to joint 'shoulder' changes by") == 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_without_a_word(start, number):
    process = start()
    with Robot() as robot:
        robot.spin_until(lambda: robot.states, "state")
        assert process.end(number) == 0
    assert "Traceback" not in process.output() and "terminate" not in process.output()


@pytest.mark.parametrize(("parameters", "message"), [
    ({"publish_rate": 300.0}, "parameter 'publish_rate' is 300 Hz, expected 1000 Hz"),
    ({"initial_position": [0.0, 5.0]}, "joint 'elbow' starts at 5, outside its limits"),
    ({"integrator": "euler"}, "'variational', 'semi_implicit', 'rk4'"),
    ({"robot_description_file": "/no/such/file.urdf"}, "/no/such/file.urdf"),
])
def test_a_wrong_configuration_is_named(start, parameters, message):
    process = start(**parameters)
    with Robot() as robot:
        robot.spin_until(lambda: "configuration failed" in robot.status, "failure")
        assert message in robot.status
    assert process.end() == 0


def test_waits_for_the_robot_description_and_for_activation(start):
    start(robot_description_file="''", autostart=False)
    with Robot() as robot:
        robot.spin_until(lambda: robot.status == "not configured", "node")
        publisher = robot.node.create_publisher(String, "robot_description", LATCHED)
        publisher.publish(String(data=URDF.read_text()))
        robot.spin_until(publisher.get_subscription_count, "subscription")

        def change(transition):
            request = ChangeState.Request(transition=Transition(id=transition))
            return robot.call(ChangeState, "simulator/change_state", request).success

        robot.spin_until(lambda: change(Transition.TRANSITION_CONFIGURE), "configuration")
        assert not robot.states
        assert change(Transition.TRANSITION_ACTIVATE)
        robot.spin_until(lambda: robot.states, "state")
        assert change(Transition.TRANSITION_DEACTIVATE) and change(Transition.TRANSITION_CLEANUP)
        assert change(Transition.TRANSITION_CONFIGURE) and change(Transition.TRANSITION_ACTIVATE)
        robot.states.clear()
        robot.spin_until(lambda: robot.states, "state after a second start")


def test_it_can_wait_for_commands(start):
    start(real_time_factor=0.0, publish_clock=True, wait_for_command=60.0, publish_rate=100.0)
    with Robot() as robot:
        robot.ready()
        robot.commands.publish(Float64MultiArray(data=[0.0, 0.0]))
        robot.spin_until(lambda: robot.count("waits") == 1, "wait")
        before = robot.diagnostics["simulated_time"]
        robot.diagnostics.clear()
        robot.spin_until(lambda: robot.diagnostics, "diagnostics")
        assert robot.diagnostics["simulated_time"] == before
        robot.spin_until(lambda: at(robot.states[-1].header.stamp) > 1e9 * float(before) - 1.5e7, "state of the period")
        last = robot.states[-1].header
        robot.states.clear()
        other = JointState(name=NAMES, effort=[0.0, 0.0])
        other.header.stamp.sec = 10**6
        robot.named.publish(other)    # answers another state
        robot.spin_until(lambda: robot.count("commands") == 2, "second command")
        assert not robot.states
        robot.named.publish(JointState(header=last, name=NAMES, effort=[0.0, 0.0]))
        robot.spin_until(lambda: robot.count("waits") == 2 and robot.states, "second wait")
        assert len(robot.states) == 1


@pytest.mark.parametrize("name", ["five_bar", "four_bar"])
def test_closed_loops_stay_closed_and_their_forces_are_those_of_the_library(start, name):
    process = start(**(STILL | {"initial_position": 0.0}), robot_description_file=str(rbd.sample_path(name)),
                    constraints_file=name, joints=list(rbd.sample(name).joint_names)[::-1])
    model = rbd.sample(name)
    loop = rbd.sample_constraints(name, model)
    effort = np.linspace(0.5, -0.4, model.nv)
    with Robot() as robot:
        forces: list[ConstraintForces] = []
        robot.node.create_subscription(ConstraintForces, "simulator/constraint_forces", forces.append, RELIABLE)
        robot.ready()
        robot.spin_until(lambda: robot.node.count_publishers("simulator/constraint_forces"), "constraint forces")
        robot.commands.publish(Float64MultiArray(data=effort[::-1].tolist()))
        robot.spin_until(lambda: robot.count("commands") == 1, "command")
        state = robot.step(150)
        force = robot.spin_until(lambda: next((f for f in forces if f.header.stamp == state.header.stamp), None),
                                 "constraint forces at the state")
    simulator = Simulator(model, constraints=loop)
    simulator.step(effort, 150)
    q, v = np.array(state.position)[::-1], np.array(state.velocity)[::-1]
    np.testing.assert_allclose(q, simulator.q, rtol=0.0, atol=1e-12)
    assert np.abs(v).max() > 0.1
    friction = model.damping * v + model.friction * np.sign(v)
    expected = rbd.constrained_forward_dynamics(model, loop, q, v, effort - friction)
    np.testing.assert_allclose(force.force, expected.multipliers, rtol=1e-9, atol=1e-9)
    assert list(force.name) == list(loop.row_names) and max(np.abs(force.residual)) < 1e-9
    assert np.abs(rbd.constraint_values(model, loop, q)).max() < 1e-9
    assert process.end() == 0
