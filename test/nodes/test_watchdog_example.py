"""examples/watchdog.py: another controller has the arm as soon as the node is silent or the controller inactive."""
from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest
from harness import ROOT, Peer
from stand_in_manager import Manager, install
from test_handover import PARAMETERS, Robot

SLOW = {"watchdog_rate": 100.0, "state_timeout": 0.05}


@pytest.fixture
def robot():
    with Robot() as robot:
        yield robot


@pytest.fixture
def watched(start_node, tmp_path, robot):
    """(node, stand-in manager, process that watches); `watched(**parameters)`."""
    started = []

    def start(activity=True, arguments=(), **parameters):
        messages = install(tmp_path / "msgs", activity)
        manager = Manager(robot)
        node = start_node("feedforward", python_path=messages, **(PARAMETERS | parameters))
        robot.follow()
        path = os.pathsep.join([str(messages), str(ROOT), *filter(None, [os.getenv("PYTHONPATH")])])
        log = tmp_path / "log"
        with log.open("w") as file:
            process = subprocess.Popen(
                [sys.executable, "examples/watchdog.py", "effort_controller", "holding_controller", *arguments],
                cwd=ROOT, stdout=file, stderr=file, env=os.environ | {"PYTHONPATH": path})
        process.log = log.read_text
        started.append((manager, process))
        robot.spin_until(lambda: "watching" in process.log(), "watchdog")
        return node, manager, process

    yield start
    for manager, process in started:
        process.kill()
        process.wait()
        manager.destroy()


def ended(robot, process):
    robot.spin_until(lambda: process.poll() is not None, "end of the watchdog")
    return process.log()


def test_a_node_that_is_killed(robot, watched):
    node, manager, process = watched()
    assert not manager.requests
    node.process.kill()
    assert "no torque: holding_controller holds the arm" in ended(robot, process) and process.returncode == 0
    assert manager.states == {"effort_controller": "inactive", "holding_controller": "active"}
    assert [each["strictness"] for each in manager.requests] == [2]


def test_a_node_without_joint_states_is_not_silent(robot, watched):
    _, manager, process = watched(**SLOW)
    robot.efforts.clear()
    Peer.spin_until(robot, lambda: len(robot.efforts) > 30, "output of a node without states")
    assert not manager.requests and process.poll() is None


def test_a_regular_end_has_switched_already(robot, watched):
    node, manager, process = watched()
    node.process.send_signal(signal.SIGINT)
    assert "was not switched" in ended(robot, process)
    assert manager.states["holding_controller"] == "active"


def test_a_controller_that_is_deactivated_alone(robot, watched):
    """The node still publishes, and nobody passes its torque on."""
    _, manager, process = watched(**SLOW)
    robot.spin_until(lambda: len(manager.written) > 5, "torque")
    manager.become(effort_controller="inactive")
    begin = time.monotonic()
    robot.spin_until(lambda: manager.requests, "request")
    assert time.monotonic() - begin < 0.5    # 50 ms, on a machine that is busy
    assert "effort_controller is not active: holding_controller holds the arm" in ended(robot, process)
    assert process.returncode == 0
    assert manager.states == {"effort_controller": "inactive", "holding_controller": "active"}
    assert [(each["activate"], each["deactivate"], each["strictness"]) for each in manager.requests] == [
        (["holding_controller"], [], 2)]


def test_switches_by_others_are_none_of_its_business(robot, watched):
    """Also where the manager tells of a switch in two messages; and back."""
    _, manager, process = watched(**SLOW)
    for first, second in (("effort_controller", "holding_controller"), ("holding_controller", "effort_controller")):
        manager.become(**{first: "inactive"})
        manager.become(**{second: "active"})
        robot.efforts.clear()
        robot.spin_until(lambda: len(robot.efforts) > 10, "time")
        assert not manager.requests and process.poll() is None


def test_controllers_are_watched_where_no_node_speaks(robot, watched):
    """As for joint_trajectory_controller, which holds the arm without messages."""
    node, manager, process = watched(arguments=["--ros-args", "-r", "feedforward/effort:=none"])
    assert "no torque yet" in process.log()
    node.process.kill()
    node.process.wait()
    end = time.monotonic() + 0.5
    robot.spin_until(lambda: time.monotonic() > end, "time")
    assert not manager.requests and process.poll() is None
    manager.become(effort_controller="inactive")
    assert "effort_controller is not active: holding_controller holds the arm" in ended(robot, process)
    assert process.returncode == 0 and manager.states["holding_controller"] == "active"


def test_without_the_topic_silence_alone_is_watched(robot, watched):
    node, manager, process = watched(activity=False, **SLOW)
    robot.spin_until(lambda: "only a silent node is noticed" in process.log(), "line")
    manager.become(effort_controller="inactive")
    robot.efforts.clear()
    robot.spin_until(lambda: len(robot.efforts) > 10, "time")
    assert not manager.requests and process.poll() is None
    manager.become(effort_controller="active")
    node.process.kill()
    assert "no torque: holding_controller holds the arm" in ended(robot, process)
