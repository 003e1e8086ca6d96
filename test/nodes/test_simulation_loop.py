"""The loop of a simulator over DDS, by its own thread and by an executor: what is lost, what waits, what goes wrong."""
from __future__ import annotations

import itertools
import signal
import time
from functools import partial

import pytest
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState
from rclpy.duration import Duration
from rclpy.serialization import serialize_message
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray
from test_simulator_node import NAMES, STILL, URDF, Robot

from rbd_interfaces.msg import NamedWrench, NamedWrenches
from rbd_interfaces.srv import Step
FREE = {"paused": False, "real_time_factor": 0.0, "publish_rate": 1000.0, "publish_clock": True}    # it never rests
# Loaded at the start of the process: commands beyond 1 N m are a defect.
BROKEN = """
import os
import sys
sys.path.insert(0, os.getcwd())
from rbd_ros.runtime.plant.plant import Plant
on_commands = Plant.on_commands

def broken(self, values):
    if values[0] > 1.0:
        raise KeyError("a defect of the plant")
    return on_commands(self, values)

Plant.on_commands = broken
"""


@pytest.fixture
def start(start_node):
    return partial(start_node, "simulator", robot_description_file=str(URDF))


def test_bytes_that_are_no_command_change_nothing(start, each_control_loop):
    process = start(**STILL)
    with Robot() as robot:
        robot.ready()
        count = 0
        for publisher, message in ((robot.commands, Float64MultiArray(data=[1.0, 2.0])),
                                   (robot.named, JointState(name=NAMES, effort=[1.0, 2.0])),
                                   (robot.wrenches, NamedWrenches(wrenches=[NamedWrench(body="tip")]))):
            good = bytes(serialize_message(message))
            for data in (good[:9], good[:-20], b"\x00\x07" + good[2:9]):
                publisher.publish(data)
                count += 1
        robot.spin_until(lambda: robot.count("rejected_malformed") == count, "their count")
        assert "bytes are not a " in process.output()
        robot.commands.publish(Float64MultiArray(data=[3.0, -1.0]))
        robot.spin_until(lambda: robot.count("commands") == 1, "command")
        assert list(robot.step(2).effort) == [3.0, -1.0]
        assert robot.count("rejected_total") == count
    assert process.end() == 0


@pytest.mark.parametrize("parameters", [STILL, FREE, {}], ids=["paused", "free", "real_time"])
def test_no_command_is_lost(start, parameters):
    """Of a publisher and a subscription that are reliable, however fast they come."""
    start("-p", "qos_overrides./simulator/commands.subscription.reliability:=reliable",
          "-p", "qos_overrides./simulator/commands.subscription.depth:=1000", **parameters)
    with Robot() as robot:
        robot.ready()
        publisher = robot.node.create_publisher(Float64MultiArray, "simulator/commands", 1000)
        robot.spin_until(lambda: publisher.get_subscription_count() == 1, "subscription")

        def send(number=0):
            publisher.publish(Float64MultiArray(data=[1e-3 * number, 0.0]))

        def counted():
            robot.diagnostics.clear()
            robot.spin_until(lambda: robot.diagnostics, "diagnostics")
            return robot.count("commands")

        robot.spin_until(lambda: robot.count("commands"), "command", send)    # before that, the node may not know it
        assert publisher.wait_for_all_acked(Duration(seconds=60))
        before = counted()
        while (now := counted()) > before:
            before = now
        for number in range(1000):
            send(number)
        robot.spin_until(lambda: robot.count("commands") >= before + 1000, "1000 commands")
        assert robot.count("commands") == before + 1000


def test_all_else_is_done_while_the_simulation_never_rests(start):
    """Parameters, diagnostics and transitions belong to another thread."""
    process = start(**FREE)
    with Robot() as robot:
        robot.ready()
        for number in range(3):
            assert robot.set_parameter("command_timeout", 0.5 + number).successful
            for step in (Transition.TRANSITION_DEACTIVATE, Transition.TRANSITION_CLEANUP,
                         Transition.TRANSITION_CONFIGURE, Transition.TRANSITION_ACTIVATE):
                assert robot.call(ChangeState, "simulator/change_state",
                                  ChangeState.Request(transition=Transition(id=step))).success
            robot.states.clear()
            robot.spin_until(lambda: robot.states, "states")
            robot.diagnostics.clear()
            robot.spin_until(lambda: robot.diagnostics.get("mode") == "running", "diagnostics")
    assert process.end() == 0


def test_a_defect_ends_the_process(start, tmp_path):
    (tmp_path / "sitecustomize.py").write_text(BROKEN)
    process = start(**STILL, python_path=tmp_path)
    with Robot() as robot:
        robot.ready()
        robot.spin_until(lambda: process.process.poll() is not None, "end of the process",
                         lambda: robot.commands.publish(Float64MultiArray(data=[2.0, 0.0])))
    assert process.end() == 1
    assert "a defect of the plant" in process.output() and "Traceback" in process.output()


@pytest.mark.parametrize("parameters", [STILL, FREE, {"wait_for_command": 60.0}], ids=["paused", "free", "waiting"])
def test_it_ends_at_once(start, parameters):
    """Whatever it waits for, or is just doing."""
    process = start(**parameters)
    with Robot() as robot:
        robot.ready()
        commands = robot.node.create_timer(1e-3, lambda: robot.commands.publish(Float64MultiArray(data=[0.0, 0.0])))
        robot.spin_until(lambda: robot.count("commands") > 0, "commands")
        if parameters is STILL:    # half a minute of steps, answered at the end with what is left of them
            assert robot.call(Step, "simulator/step", Step.Request(steps=1)).success    # so that both sides are known
            answer = robot.client(Step, "simulator/step").call_async(Step.Request(steps=10**7))
            robot.spin_until(lambda: len(robot.states) > 100, "steps")
        process.process.send_signal(signal.SIGINT)
        begin = time.monotonic()
        robot.spin_until(lambda: process.process.poll() is not None, "end of the process")
        assert process.end() == 0 and time.monotonic() - begin < 15.0    # 0.5 s on a machine that has time
        if parameters is STILL:
            robot.spin_until(answer.done, "answer")
            assert "steps left" in answer.result().message
        robot.node.destroy_timer(commands)
    assert "Traceback" not in process.output()


def test_in_the_pace_of_the_clock_no_state_is_left_out(start):
    """Though commands come at any time between."""
    start("-p", "qos_overrides./joint_states.publisher.depth:=1000", publish_rate=500.0)
    with Robot() as robot:
        robot.ready()
        robot.states.clear()
        robot.spin_until(lambda: len(robot.states) > 500, "500 states",
                         lambda: robot.commands.publish(Float64MultiArray(data=[0.0, 0.0])))
    stamps = [state.header.stamp.sec * 10**9 + state.header.stamp.nanosec for state in robot.states]
    assert {after - before for before, after in itertools.pairwise(stamps)} == {2_000_000}
