"""examples/watchdog.py: another controller has the arm as soon as the node is silent, and not before."""
from __future__ import annotations

import os
import signal
import subprocess
import sys

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

    def start(**parameters):
        messages = install(tmp_path / "msgs")
        manager = Manager(robot)
        node = start_node("feedforward", python_path=messages, **(PARAMETERS | parameters))
        robot.follow()
        path = os.pathsep.join([str(messages), str(ROOT), *filter(None, [os.getenv("PYTHONPATH")])])
        log = tmp_path / "log"
        with log.open("w") as file:
            process = subprocess.Popen(
                [sys.executable, "examples/watchdog.py", "effort_controller", "holding_controller"], cwd=ROOT,
                stdout=file, stderr=file, env=os.environ | {"PYTHONPATH": path})
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
