"""Turns with Gazebo: stand-ins with its services and topics, and who starts them."""
from __future__ import annotations

import itertools
import os

import numpy as np
import pytest
from nodes.harness import Peer, rclpy
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64, Float64MultiArray

import rbd_ros as rbd
from rbd_interfaces.msg import JointEffort
from rbd_ros.core.simulation.simulator import Simulator
from rbd_ros.nodes import lockstep
from rbd_ros.nodes.base.conversions import fields_of

URDF = rbd.sample_path("two_link")
NAMES = ["shoulder", "elbow"]
Q0 = [0.4, -0.6]
SECOND = 1_000_000_000


class World(Peer):
    """Our simulator behind the services of Gazebo; it answers each state with an effort of its own."""

    def __init__(self, package, kind, service):
        super().__init__("lockstep")
        module = pytest.importorskip(f"{package}.srv", reason=f"{package} is not built in this environment")
        self.simulator = Simulator(rbd.load_urdf(URDF), q=Q0)
        self.pending, self.requests = 0, []
        self.current = np.zeros(2)
        self.log = []
        self.states = self.node.create_publisher(JointState, "joint_states", 10)
        self.answers = self.node.create_publisher(JointEffort, "feedforward/effort", 10)
        for i, name in enumerate(NAMES):
            self.node.create_subscription(Float64, f"/model/arm/joint/{name}/cmd_force",
                                          lambda message, i=i: self.current.__setitem__(i, message.data), 10)
        self.node.create_service(getattr(module, kind), service, self.on_request)
        self.node.create_timer(0.001, self.on_timer)

    def on_request(self, request, response):
        if hasattr(request, "world_control"):
            assert request.world_control.pause
            self.pending += request.world_control.multi_step
            response.success = True
        else:
            self.pending += request.steps
            response.result.result = response.result.RESULT_OK
        self.requests.append(self.pending)
        return response

    def on_timer(self):
        if not self.pending:
            return
        self.simulator.step(self.current, self.pending)
        self.pending = 0
        ns = round(self.simulator.time * SECOND)
        state = JointState(name=NAMES, position=self.simulator.q, velocity=self.simulator.v, effort=[0.0, 0.0])
        state.header.stamp.sec, state.header.stamp.nanosec = divmod(ns, SECOND)
        self.states.publish(state)
        effort = [np.sin(ns * 1e-9), 0.1]
        self.log.append((ns, self.current.tolist()))
        self.answers.publish(JointEffort(header=state.header, name=NAMES, effort=effort))


@pytest.mark.parametrize(("stepper", "package", "kind", "service", "names"), [
    ("gazebo", "ros_gz_interfaces", "ControlWorld", "/world/lab/control", {"world": "lab"}),
    ("simulation_interfaces", "simulation_interfaces", "StepSimulation", "/gzserver/step_simulation",
     {"plant": "/gzserver"})])
def test_gazebo_is_stepped_by_its_own_services(start, stepper, package, kind, service, names):
    with World(package, kind, service) as world:
        process = start("lockstep", stepper=stepper, joints=NAMES, controller="''", bridge_model="arm", steps=5,
                        settle=0.003, **names)
        world.spin_until(lambda: len(world.log) > 100, "100 turns")
        world.spin_until(lambda: world.diagnostics.get("cycles", "0") > "0", "diagnostics")
        assert process.end() == 0
    shown = world.requests.index(5)    # until there is an answer, at least once, a state is shown
    assert shown and set(world.requests[:shown]) == {1} and set(world.requests[shown:shown + 9]) == {5}
    for (before, _), (after, acted) in itertools.pairwise(world.log[shown - 1:]):
        assert after - before == 5_000_000
        assert acted == [np.sin(before * 1e-9), 0.1]    # the answer to a state acts from that state on


class PausedGazebo:
    """In place of a stepper: it is there, and counts."""

    ready = True

    def __init__(self):
        self.steps, self.clients = [], {}

    def step(self, steps, done):
        self.steps.append(steps)
        done(True, "")

    def show(self, done):
        done(True, "")

    def destroy(self):
        pass


@pytest.fixture
def paused(monkeypatch):
    """Node lockstep with a paused Gazebo: (node, gazebo, turn: spin for so many ticks of 0.1 s, with other nodes)."""
    gazebo, nodes = PausedGazebo(), []
    monkeypatch.setattr(lockstep, "make_stepper", lambda *arguments: gazebo)

    def make(*parameters):
        rclpy.init(args=["--ros-args", *(word for item in ["stepper:=gazebo", *parameters] for word in ("-p", item))],
                   domain_id=int(os.environ["ROS_DOMAIN_ID"]))
        node = lockstep.LockstepNode()
        nodes.append(node)
        node.start()
        ticks = []
        node.create_timer(0.1, lambda: ticks.append(1))

        def turn(count, *others):
            ticks.clear()
            while len(ticks) < count:
                rclpy.spin_once(node)
                for other in others:
                    rclpy.spin_once(other, timeout_sec=0.0)

        return node, gazebo, turn

    yield make
    for node in nodes:
        node.stop()
        node.destroy_node()
    rclpy.shutdown()


@pytest.mark.parametrize(("target", "wakes"), [
    (["controller:=effort_controller"], True), (["controller:=''", "bridge_model:=arm", "joints:=[a]"], False)])
def test_controllers_in_a_paused_gazebo_get_the_steps_they_need_to_start(paused, target, wakes):
    # Without steps the controller manager is not updated, and no controller becomes active; but with plain topics
    # nothing holds the arm.
    node, gazebo, turn = paused(*target)
    turn(5)
    assert set(gazebo.steps) == ({1} if wakes else set())
    node.create_subscription(Float64MultiArray, "effort_controller/commands", lambda message: None, 1)
    node.create_publisher(JointState, "joint_states", 1)
    turn(2)    # the controllers are discovered
    made = len(gazebo.steps)
    turn(4)
    assert len(gazebo.steps) == made


def states_and_answers(node):
    """Publishers of both, and a function that sends a state with its answer."""
    states = node.create_publisher(JointState, "joint_states", 10)
    answers = node.create_publisher(JointEffort, "feedforward/effort", 10)

    def show(stamp):
        state = JointState(name=["a"], position=[0.0], velocity=[0.0])
        state.header.stamp.nanosec = stamp
        with node.lock:
            node._on_state(fields_of(state))
            node._on_effort(JointEffort(header=state.header, name=["a"], effort=[1.0]))

    return states, answers, show


def test_an_onlooker_does_not_start_the_turns(paused):
    node, gazebo, turn = paused("controller:=effort_controller", "receivers:=[effort_controller]")
    *_, show = states_and_answers(node)
    onlooker, controller = rclpy.create_node("onlooker"), rclpy.create_node("effort_controller")
    received = []
    try:
        for other in (onlooker, controller):
            other.create_subscription(Float64MultiArray, "effort_controller/commands", received.append, 10)
            while True:
                turn(10, other)
                show(1_000_000)
                turn(5, other)
                if other is onlooker or node._acquainted:
                    break
            assert (node._logic.phase == "stepping") == (other is controller)
        assert received[-1].data.tolist() == [1.0]
        assert set(gazebo.steps[:-1]) == {1} and gazebo.steps[-1] == 2    # what controllers need to start, and a turn
    finally:
        onlooker.destroy_node()
        controller.destroy_node()


def test_turns_start_when_the_broadcaster_says_that_controllers_are_active(paused):
    node, gazebo, turn = paused("controller:=effort_controller", "activity_topic:=broadcaster/joint_states")
    *_, show = states_and_answers(node)
    node.create_subscription(Float64MultiArray, "effort_controller/commands", lambda message: None, 1)
    broadcaster = node.create_publisher(JointState, "broadcaster/joint_states", 1)
    turn(5)
    show(1_000_000)    # Gazebo itself shows states before
    assert node._logic.phase == "starting"
    made = len(gazebo.steps)
    turn(3)
    assert len(gazebo.steps) > made and set(gazebo.steps) == {1}
    broadcaster.publish(JointState())
    turn(2)
    show(2_000_000)
    assert node._logic.phase == "stepping"


def test_efforts_are_passed_on_once_those_who_take_them_are_there(paused):
    node, _, turn = paused("stepper:=none", "controller:=''", "bridge_model:=arm", "joints:=[a]", "receivers:=[bridge]")
    node._stepper = None
    *_, show = states_and_answers(node)
    onlooker, bridge = rclpy.create_node("onlooker"), rclpy.create_node("bridge")
    heard = []
    try:
        for other in (onlooker, bridge):
            other.create_subscription(Float64, "/model/arm/joint/a/cmd_force", heard.append, 10)
            turn(4)
            show(1_000_000)
            rclpy.spin_once(onlooker, timeout_sec=0.5)
            assert [message.data for message in heard] == ([] if other is onlooker else [1.0])
    finally:
        onlooker.destroy_node()
        bridge.destroy_node()
