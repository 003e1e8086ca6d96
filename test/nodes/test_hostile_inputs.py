"""Requests and messages that no client of ours sends, and signals at the wrong time: no process ends by them."""
from __future__ import annotations

import itertools
import math
import random
import signal

import numpy as np
import pytest
from harness import LATCHED, RELIABLE, NodeProcess, Peer
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState
from rcl_interfaces.msg import Parameter, ParameterValue
from rcl_interfaces.srv import SetParameters, SetParametersAtomically
from std_msgs.msg import Float64MultiArray, String

import rbd_ros as rbd
from rbd_interfaces.msg import JointEffort

NAMES, Q = ["shoulder", "elbow"], np.array([0.3, -0.7])
URDF = rbd.sample_path("two_link")
PARAMETERS = {"ramp_in": 0.0, "state_timeout": 10.0, "feedforward": "gravity"}


@pytest.fixture
def start(tmp_path, private_domain):
    started, number = [], itertools.count()

    def launch(name, **parameters):
        folder = tmp_path / str(next(number))
        folder.mkdir()
        started.append(NodeProcess(folder, name, **parameters))
        return started[-1]

    yield launch
    for process in started:
        process.kill()


@pytest.fixture
def peer(private_domain):
    with Peer() as peer:
        yield peer


def change(peer, transition):
    return peer.call(ChangeState, "feedforward/change_state", ChangeState.Request(
        transition=Transition(id=transition))).success


def mode_becomes(peer, mode):
    peer.spin_until(lambda: peer.diagnostics.get("mode") == mode, f"mode {mode}", lambda: peer.send_state(NAMES, Q))


def test_parameters_of_a_type_that_does_not_exist(start, peer):
    process = start("feedforward", robot_description_file=str(URDF), **PARAMETERS)
    mode_becomes(peer, "running")
    strange = Parameter(name="gains.kp", value=ParameterValue(type=99))
    good = Parameter(name="gains.kd", value=ParameterValue(type=3, double_value=1.0))
    answers = peer.call(SetParameters, "feedforward/set_parameters", SetParameters.Request(parameters=[good, strange]))
    assert [result.successful for result in answers.results] == [False, False]
    answer = peer.call(SetParametersAtomically, "feedforward/set_parameters_atomically",
                       SetParametersAtomically.Request(parameters=[strange]))
    assert not answer.result.successful and "'gains.kp' is of type 99" in answer.result.reason
    assert [value.double_value for value in peer.get_parameters(["gains.kp", "gains.kd"])] == [0.0, 0.0]
    mode_becomes(peer, "running")
    assert process.end() == 0


def test_a_description_after_cleanup_moves_nothing(start, peer):
    """An arm that was taken out of service stays so when another node publishes the robot description anew."""
    process = start("feedforward", **PARAMETERS)
    publisher = peer.node.create_publisher(String, "robot_description", LATCHED)
    publisher.publish(String(data=URDF.read_text()))
    mode_becomes(peer, "running")
    assert change(peer, Transition.TRANSITION_DEACTIVATE) and change(peer, Transition.TRANSITION_CLEANUP)
    peer.efforts.clear()
    publisher.publish(String(data=URDF.read_text() + "<!-- new -->"))
    peer.status = ""
    peer.spin_until(lambda: peer.status, "diagnostics")
    peer.status = ""
    peer.spin_until(lambda: peer.status, "diagnostics a second later", lambda: peer.send_state(NAMES, Q))
    assert peer.status == "not configured" and not peer.efforts
    assert change(peer, Transition.TRANSITION_CONFIGURE) and change(peer, Transition.TRANSITION_ACTIVATE)
    mode_becomes(peer, "running")
    assert process.end() == 0


def test_lockstep_gets_efforts_that_make_no_sense(start, peer):
    process = start("lockstep", stepper="none")
    commands = []
    peer.node.create_subscription(Float64MultiArray, "effort_controller/commands", commands.append, RELIABLE)
    efforts = peer.node.create_publisher(JointEffort, "feedforward/effort", RELIABLE)
    bad = {"1 efforts of shoulder, elbow": [9.0], "3 efforts of shoulder, elbow": [9.0, 9.0, 9.0],
           "not finite": [9.0, math.nan]}
    rng = random.Random(5)    # in turns, the one word a second could be about the same kind for ever
    peer.spin_until(lambda: all(words in process.output() for words in bad), "words about all of it",
                    lambda: efforts.publish(JointEffort(name=NAMES, effort=rng.choice([*bad.values()]))))
    peer.spin_until(lambda: commands, "command", lambda: efforts.publish(JointEffort(name=NAMES, effort=[1.0, 2.0])))
    assert all(list(command.data) == [1.0, 2.0] for command in commands)
    assert process.end() == 0


def test_an_impatient_user(start, peer):
    """However often and fast the signal comes, the way out is gone to its end."""
    process = start("feedforward", robot_description_file=str(URDF), **PARAMETERS | {
        "feedforward": "none", "gains__kp": 20.0, "reference_timeout": 0, "ramp_out": 1.0,
        "safe_output__hold_position": 0.0})    # this robot never moves, so that something seems to carry it
    gravity = rbd.gravity_effort(rbd.sample("two_link"), Q)
    peer.answer_close_to([2.0, 2.0], NAMES, Q, [0.0, 0.0], repeat=lambda: peer.send_reference(NAMES, Q + 0.1))
    for _ in range(4):
        process.process.send_signal(signal.SIGINT)
        peer.efforts.clear()
        peer.spin_until(lambda: peer.efforts or process.process.poll() is not None, "effort",
                        lambda: peer.send_state(NAMES, Q, [0.0, 0.0]))
    peer.spin_until(lambda: process.process.poll() is not None, "end",
                    lambda: peer.send_state(NAMES, Q, [0.0, 0.0]))
    assert process.end() == 0
    peer.spin_until(lambda: peer.efforts and np.allclose(peer.efforts[-1].effort, gravity, rtol=0, atol=1e-9),
                    "safe effort as the last one")


def test_an_interrupt_during_configuration(start, peer, tmp_path):
    """What the user wanted to end is not activated first."""
    (tmp_path / "sitecustomize.py").write_text("""
import os
import signal
import sys
sys.path.insert(0, os.getcwd())
from rbd_ros.nodes.base import spin
from rbd_ros.nodes.base.torque_node import TorqueNode
spin.LONGEST_IDLE = 60.0    # s: a slow machine configures to the end
set_up = TorqueNode.set_up

def interrupted(self, *arguments):
    os.kill(os.getpid(), signal.SIGINT)
    set_up(self, *arguments)

TorqueNode.set_up = interrupted
""")
    process = start("feedforward", robot_description_file=str(URDF), python_path=tmp_path, **PARAMETERS)
    peer.spin_until(lambda: process.process.poll() is not None, "end", lambda: peer.send_state(NAMES, Q))
    assert process.end() == 0
    assert "ready in" in process.output() and "active:" not in process.output()
