"""The way out with a controller manager: another controller has the arm before the torque ends (docs/safety.md)."""
from __future__ import annotations

import json
import signal
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from harness import RELIABLE, Peer
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState
from stand_in_manager import Manager, install
from std_msgs.msg import Bool

import rbd_ros as rbd
from rbd_ros.runtime.parameters import validate

NAMES = ["shoulder", "elbow"]
Q, REFERENCE = [0.1, 0.2], [0.4, 0.0]
KP = 20.0
PARAMETERS = {"robot_description_file": rbd.sample_path("two_link"), "feedforward": "gravity", "gains__kp": KP,
              "gravity_check": False, "reference_timeout": 0.0, "ramp_in": 0.0, "ramp_out": 0.2, "state_timeout": 10.0,
              "feedback__max_age": ".inf", "feedback__min_rate": 0.0, "adapters": ["forward_command"],
              "handover__controller_manager": "/controller_manager",
              "handover__activate": ["holding_controller"], "handover__deactivate": ["effort_controller"],
              "handover__timeout": 3.0}
MODEL = rbd.sample("two_link")
GRAVITY = rbd.gravity_effort(MODEL, Q)
COMMAND = GRAVITY + KP * (np.array(REFERENCE) - Q)


class Robot(Peer):
    """Joint states every 20 ms, at rest unless it is moving; what `feedforward` publishes."""

    moving = False
    at_rest = 0    # states in a row

    def spin_until(self, condition, what, repeat=None, patience=30.0):
        def tick():
            if repeat is not None:
                repeat()
            self.send_state(NAMES, Q, [0.2, 0.0] if self.moving else [0.0, 0.0])
            self.at_rest = 0 if self.moving else self.at_rest + 1
        return super().spin_until(condition, what, tick, patience)

    def follow(self):
        self.efforts.clear()
        self.spin_until(lambda: self.efforts and close(self.efforts[-1].effort, COMMAND), "following",
                        lambda: self.send_reference(NAMES, REFERENCE))


def close(effort, expected):
    return np.allclose(effort, expected, rtol=0, atol=1e-9)


@pytest.fixture
def robot():
    with Robot() as robot:
        yield robot


@pytest.fixture
def started(start_node, tmp_path, robot):
    """(node that follows, stand-in manager); `started(mode, **parameters)`, mode None: no manager."""
    managers = []

    def start(mode="answer", **parameters):
        if mode is not None:
            managers.append(Manager(robot, mode))
        node = start_node("feedforward", python_path=install(tmp_path / "msgs"), **(PARAMETERS | parameters))
        robot.follow()
        return node, managers[-1] if managers else None

    yield start
    for manager in managers:
        manager.destroy()


def end(robot, node, number=signal.SIGINT):
    """Send the signal and wait until the process has ended, well; the efforts from then on.

    The very last one may be lost with the process on a busy machine; `test_faults.py` looks at it.
    """
    robot.efforts.clear()
    node.process.send_signal(number)
    robot.spin_until(lambda: node.process.poll() is not None, "end of the process")
    assert node.process.returncode == 0
    return np.array([message.effort for message in robot.efforts])


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_other_controller_has_the_arm_before_the_torque_changes(robot, started, number):
    node, manager = started()
    end(robot, node, number)
    assert manager.requests == [{"activate": ["holding_controller"], "deactivate": ["effort_controller"],
                                 "strictness": 2, "asap": True, "timeout": pytest.approx(2.4)}]
    assert manager.states == {"effort_controller": "inactive", "holding_controller": "active"}
    reached = [close(effort, COMMAND) for effort in manager.written]
    assert all(reached[reached.index(True):])    # full torque until the switch: nothing of the ramp reached the arm
    assert manager.late and not close(manager.late[-1], COMMAND)    # that came afterwards, to an inactive controller
    assert "the controllers were switched after" in node.output()


def test_the_switch_waits_until_the_motion_ends(robot, started):
    """joint_trajectory_controller begins with −d v: at rest that is nothing."""
    node, manager = started()
    robot.moving = True
    robot.efforts.clear()
    robot.spin_until(lambda: len(robot.efforts) > 3, "motion")
    node.process.send_signal(signal.SIGINT)
    robot.efforts.clear()
    robot.spin_until(lambda: len(robot.efforts) > 10, "more of it")
    asked = bool(manager.requests)
    robot.moving = False
    robot.spin_until(lambda: manager.requests, "request")
    if "still moves" not in node.output():    # on a machine that stood still
        assert not asked and robot.at_rest >= 5
    robot.spin_until(lambda: node.process.poll() is not None, "end of the process")


def test_a_robot_that_does_not_come_to_rest_is_handed_over_all_the_same(robot, started):
    node, manager = started()
    robot.moving = True
    end(robot, node)
    assert manager.states["holding_controller"] == "active" and "still moves after 1.0 s" in node.output()


def test_without_a_switch_the_last_torque_stays(robot, started):
    """What the switch is for."""
    node, manager = started(handover__controller_manager="''", handover__activate="['']", handover__deactivate="['']")
    end(robot, node)
    assert not manager.requests and manager.states["effort_controller"] == "active"
    assert not close(manager.command, COMMAND)    # the ramp reached the arm, and what came last stays there


def test_deactivation(robot, started):
    node, manager = started()
    assert robot.call(ChangeState, "feedforward/change_state", ChangeState.Request(
        transition=Transition(id=Transition.TRANSITION_DEACTIVATE))).success
    assert manager.states["holding_controller"] == "active" and len(manager.requests) == 1
    assert close(manager.written[-1], COMMAND)
    manager.states = {"effort_controller": "active", "holding_controller": "inactive"}    # back, by hand
    assert robot.call(ChangeState, "feedforward/change_state", ChangeState.Request(
        transition=Transition(id=Transition.TRANSITION_ACTIVATE))).success
    robot.follow()
    end(robot, node)
    assert len(manager.requests) == 2 and manager.states["holding_controller"] == "active"


@pytest.mark.parametrize(("mode", "words"), [
    ("silent", "it did not answer for 1.0 s"), ("refuse", "it refused: Could not switch controllers since prepare"),
    (None, "nobody offers /controller_manager/switch_controller for 1.0 s")])
def test_a_manager_that_does_not_switch_is_not_waited_for_for_ever(robot, started, mode, words):
    """Full torque while it is waited for, then the ramp as ever. (Without `hold_position`: if the node stands still
    during the ramp, its last output would be what carried the arm before.)
    """
    node, _ = started(mode, handover__timeout=3.0 if mode == "refuse" else 1.0,
                      safe_output__hold_position=0.0)
    efforts = end(robot, node)
    assert words in node.output() and "Ramping out all the same" in node.output()
    share = (efforts - GRAVITY) @ (COMMAND - GRAVITY) / np.sum((COMMAND - GRAVITY) ** 2)
    assert share[0] == pytest.approx(1.0) and share[-1] < 0.9
    assert (np.diff(share) <= 1e-9).all()
    if mode != "refuse":
        assert np.isclose(share, 1.0).sum() > 1    # a second of joint states


def test_a_manager_that_would_leave_the_arm_alone_refuses_all(robot, started):
    """STRICT: nothing is deactivated where the other controller cannot be activated."""
    node, manager = started(handover__activate=["holding_controler"])
    end(robot, node)
    assert "no controller with this name exists" in node.output()
    assert manager.states == {"effort_controller": "active", "holding_controller": "inactive"}


def test_emergency_stop_while_the_switch_is_waited_for(robot, started):
    """Acts at once, and does not keep the other controller from getting the arm."""
    node, _ = started("silent", handover__timeout=3.0)
    stops = robot.node.create_publisher(Bool, "feedforward/emergency_stop", RELIABLE)
    robot.efforts.clear()
    node.process.send_signal(signal.SIGINT)
    robot.spin_until(lambda: "asking /controller_manager/switch_controller to" in node.output(), "request")
    robot.spin_until(lambda: robot.efforts and close(robot.efforts[-1].effort, GRAVITY), "safe effort",
                     lambda: stops.publish(Bool(data=True)))
    assert "did not answer" not in node.output()    # before the wait was over
    robot.spin_until(lambda: node.process.poll() is not None, "end of the process")
    assert node.process.returncode == 0 and "it did not answer for 3.0 s" in node.output()
    assert all(close(message.effort, GRAVITY) for message in robot.efforts[-5:])


def test_nothing_is_switched_that_never_had_torque(start_node, tmp_path, robot):
    manager = Manager(robot)
    node = start_node("feedforward", python_path=install(tmp_path / "msgs"), **PARAMETERS)
    Peer.spin_until(robot, lambda: "active: torque follows" in node.output(), "activation")
    node.process.send_signal(signal.SIGINT)
    Peer.spin_until(robot, lambda: node.process.poll() is not None, "end of the process")
    assert node.process.returncode == 0 and not manager.requests
    manager.destroy()


@pytest.mark.parametrize(("parameters", "words"), [
    ({}, "no package 'controller_manager_msgs'"),
    ({"handover__activate": "['']", "handover__deactivate": "['']"}, "neither 'handover.activate' nor"),
    ({"handover__controller_manager": "''"}, "need 'handover.controller_manager'"),
    ({"handover__timeout": 5.0}, "'handover.timeout' is 5.0")])
def test_configurations_that_cannot_be(start_node, tmp_path, robot, parameters, words):
    (tmp_path / "controller_manager_msgs.py").write_text("raise ImportError\n")
    node = start_node("feedforward", python_path=tmp_path, **(PARAMETERS | parameters))
    Peer.spin_until(robot, lambda: "configuration failed" in robot.status, "refusal")
    assert words in robot.status
    assert node.end() == 0


class FakeManager:
    """A client of the service whose answers are made by the test, and a node that has no other one."""

    def __init__(self, ready=True):
        self.now, self.ready, self.sent, self.logged, self.name = 0.0, ready, [], [], ""
        self.handle, self.pending, self.answers = self, {}, []

    def get_logger(self):
        return SimpleNamespace(**dict.fromkeys(("info", "warning", "error"), self.logged.append))

    def create_client(self, kind, name):
        self.srv_type, self.srv_name = kind, name
        return self

    def service_is_ready(self):
        return self.ready

    def call_async(self, request):
        self.sent.append(json.loads(request.load_namespace))
        self.pending[len(self.sent)] = future = object()
        return future

    def take_response(self, kind):
        return self.answers.pop(0) if self.answers else (None, None)

    def get_pending_request(self, number):
        return self.pending[number]

    def remove_pending_request(self, future):
        self.pending.clear()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass

    def step(self):
        self.now += 0.01

    def answer(self, number, ok, message=""):
        self.answers.append((SimpleNamespace(request_id=SimpleNamespace(sequence_number=number)),
                             SimpleNamespace(ok=ok, message=message)))


@pytest.fixture
def made(tmp_path, monkeypatch):
    """`made(manager, **parameters)`: a `Handover` whose time is the manager's."""
    monkeypatch.syspath_prepend(install(tmp_path))
    from rbd_ros.nodes.outputs import handover

    def make(manager, **parameters):
        monkeypatch.setattr(handover.time, "monotonic", lambda: manager.now)
        values = {name.replace("__", "."): value for name, value in parameters.items()}
        return handover.make_handover(manager, validate(handover.HANDOVER_TABLE, values))

    yield make
    for name in [name for name in sys.modules if name.split(".")[0] == "controller_manager_msgs"]:
        del sys.modules[name]


def test_handover_parameters(made):
    manager = FakeManager()
    handover = made(manager, handover__controller_manager="arm/manager", handover__activate=["a", "b"],
                    handover__deactivate=["c"], handover__timeout=2.0)
    handover.run(manager.step)
    assert manager.srv_name == "arm/manager/switch_controller"
    assert manager.sent == [{"activate": ["a", "b"], "deactivate": ["c"], "strictness": 2, "asap": True,
                             "timeout": pytest.approx(1.6)}]
    assert manager.now == pytest.approx(2.0, abs=0.02) and not manager.pending
    assert "did not answer for 2.0 s" in manager.logged[-1]


def test_a_manager_that_comes_late_is_asked(made):
    manager = FakeManager(ready=False)

    def step():
        manager.step()
        manager.ready = manager.now > 0.5
        if manager.now > 0.6 and not manager.answers:
            manager.answer(1, True)

    made(manager, handover__controller_manager="m", handover__activate=["a"]).run(step)
    assert len(manager.sent) == 1 and manager.now < 0.7 and "were switched" in manager.logged[-1]


def test_a_late_answer_to_an_older_request_is_no_answer(made):
    manager = FakeManager()
    handover = made(manager, handover__controller_manager="m", handover__activate=["a"])
    handover.run(manager.step)
    manager.answer(1, True)
    manager.answer(2, False, "no")
    handover.run(manager.step)
    assert "it refused: no" in manager.logged[-1] and manager.now < 1.1


def test_deactivating_alone_is_warned_of(made):
    manager = FakeManager()
    made(manager, handover__controller_manager="m", handover__deactivate=["c"])
    assert "most hardware keeps applying the last torque" in manager.logged[0]
    assert made(manager) is None
