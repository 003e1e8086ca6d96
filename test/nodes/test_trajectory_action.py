"""Goals of MoveIt and others on their way through the effort annotator to a joint_trajectory_controller.

The controller is a stand-in: an action server that answers what a test wants. The messages are the published ones.
"""
from __future__ import annotations

import itertools
import select
import subprocess
import sys
import time
from functools import cached_property

import numpy as np
import pytest
from action_msgs.msg import GoalStatus
from built_messages import OF_TRAJECTORIES, built
from harness import NodeProcess, Peer
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState
from rclpy.action import ActionClient, ActionServer, CancelResponse, GoalResponse
from support.arm import NAMES, arm
from test_effort_annotator_node import LINK, URDF, A, Q, V, trajectory

import rbd_ros as rbd


@pytest.fixture(scope="module", autouse=True)
def control_msgs():
    with built(OF_TRAJECTORIES):
        yield


MORTAL = """
import sys
import rclpy
from control_msgs.action import FollowJointTrajectory
from rclpy.action import ActionServer
rclpy.init()
node = rclpy.create_node("mortal")
server = ActionServer(node, FollowJointTrajectory, sys.argv[1], lambda goal: None,
                      handle_accepted_callback=lambda goal: print("accepted", flush=True))
try:
    rclpy.spin(node)
except BaseException:
    node.destroy_node()
"""


class Controller:
    """Accepts goals while `accepts`, and ends them when it is told to."""

    def __init__(self, node, kind, action):
        self.accepts, self.goals, self.cancelled, self.kind = True, [], [], kind
        self.server = ActionServer(
            node, kind, action, lambda goal: None, handle_accepted_callback=self.goals.append,
            goal_callback=lambda goal: GoalResponse.ACCEPT if self.accepts else GoalResponse.REJECT,
            cancel_callback=self._on_cancel)

    def _on_cancel(self, goal):
        self.cancelled.append(goal)
        return CancelResponse.ACCEPT

    def finish(self, ending, **result):
        def end(goal):
            getattr(goal, ending)()
            return self.kind.Result(**result)

        self.goals[-1].execute(end)


class Way:
    """A client, the annotator in a process of its own, and the controller."""

    def __init__(self, peer, process, controller):
        from control_msgs.action import FollowJointTrajectory
        self.peer, self.process, self.kind = peer, process, FollowJointTrajectory
        self.client = ActionClient(peer.node, self.kind, "effort_annotator/follow_joint_trajectory")
        self.feedback, self.action = [], f"/{controller}/follow_joint_trajectory"
        peer.spin_until(lambda: "active" in peer.status and self.client.server_is_ready(), "active node")

    @cached_property
    def controller(self):
        return Controller(self.peer.node, self.kind, self.action)

    def goal(self, message):
        goal = self.kind.Goal(trajectory=message)
        goal.goal_time_tolerance.sec = 7
        return goal

    def send(self, goal):
        """The answer to a goal; the node needs a moment to see the controller."""
        answer = self.client.send_goal_async(goal, lambda message: self.feedback.append(message.feedback))
        self.peer.spin_until(answer.done, "answer to the goal")
        return answer.result()

    def accepted(self, goal):
        deadline = time.monotonic() + 60.0
        while not (handle := self.send(goal)).accepted:    # until discovery has come to its end
            assert time.monotonic() < deadline
        return handle

    def at_the_controller(self, count=1):
        self.peer.spin_until(lambda: len(self.controller.goals) == count, "goal at the controller")
        return self.controller.goals[-1].request

    def result(self, handle):
        answer = handle.get_result_async()
        self.peer.spin_until(answer.done, "result")
        return answer.result().status, answer.result().result


NUMBERS = itertools.count()    # a controller of an earlier test may still be seen


@pytest.fixture
def way(tmp_path, private_domain):
    urdf = tmp_path / "robot.urdf"
    urdf.write_text(URDF.format(links=LINK.format("upper", 2) + LINK.format("lower", 1)).replace('"9"', '"90"'))
    controller = f"arm_{next(NUMBERS)}"
    with Peer("effort_annotator") as peer:
        process = NodeProcess(tmp_path, "effort_annotator", robot_description_file=str(urdf),
                              action__controller=controller)
        try:
            yield Way(peer, process, controller)
            assert process.end() == 0 and "Traceback" not in process.output(), process.output()
        finally:
            process.kill()


def test_goals_pass_with_efforts_and_come_back_with_what_the_controller_says(way):
    kind, controller = way.kind, way.controller
    sent = way.goal(trajectory())
    handle = way.accepted(sent)
    received = way.at_the_controller()
    expected = rbd.inverse_dynamics(arm().with_(damping=0.0, friction=0.0), Q, V, A)
    np.testing.assert_allclose([point.effort for point in received.trajectory.points], expected, atol=1e-9)
    for point in received.trajectory.points:
        point.effort = []
    assert received == sent    # nothing else is changed
    told = kind.Feedback(joint_names=NAMES, index=1)
    controller.goals[-1].publish_feedback(told)
    way.peer.spin_until(lambda: way.feedback, "feedback")
    assert way.feedback == [told]
    way.controller.finish("succeed", error_string="done")
    status, result = way.result(handle)
    assert (status, result.error_string) == (GoalStatus.STATUS_SUCCEEDED, "done")

    handle = way.accepted(sent)
    way.at_the_controller(2)
    way.controller.finish("abort", error_code=kind.Result.PATH_TOLERANCE_VIOLATED, error_string="elbow 0.3 rad off")
    status, result = way.result(handle)
    assert (status, result.error_code, result.error_string) == (GoalStatus.STATUS_ABORTED, -4, "elbow 0.3 rad off")

    handle = way.accepted(sent)
    way.at_the_controller(3)
    handle.cancel_goal_async()
    way.peer.spin_until(lambda: way.controller.cancelled, "cancel at the controller")
    way.controller.finish("canceled")
    assert way.result(handle)[0] == GoalStatus.STATUS_CANCELED
    way.peer.spin_until(lambda: way.peer.diagnostics.get("goals_canceled") == "1", "diagnostics")
    assert [way.peer.diagnostics[f"goals_{each}"] for each in ("succeeded", "aborted", "rejected", "running")][:2] == [
        "1", "1"] and way.peer.diagnostics["goals_running"] == "0"


def test_what_cannot_be_done_is_refused_with_a_word(way):
    assert way.controller.accepts
    way.accepted(way.goal(trajectory()))
    way.at_the_controller()
    way.controller.finish("succeed")
    for wrong in (trajectory(Q * np.nan), trajectory(names=["shoulder", "wrist"]), trajectory(q=Q[:0])):
        assert not way.send(way.goal(wrong)).accepted
    assert way.process.output().count("goal rejected: ") >= 3 and len(way.controller.goals) == 1
    way.controller.accepts = False
    status, result = way.result(way.accepted(way.goal(trajectory())))
    assert (status, result.error_code) == (GoalStatus.STATUS_ABORTED, way.kind.Result.INVALID_GOAL)
    assert result.error_string == f"{way.action} rejected the goal: see its log"
    change(way, Transition.TRANSITION_DEACTIVATE)
    assert not way.send(way.goal(trajectory())).accepted
    way.peer.spin_until(lambda: "is not active: inactive" in way.process.output(), "reason in the log")


def test_an_end_of_the_node_stops_the_arm(way):
    assert way.controller.accepts
    handle = way.accepted(way.goal(trajectory()))
    way.at_the_controller()
    change(way, Transition.TRANSITION_DEACTIVATE)
    status, result = way.result(handle)
    assert (status, result.error_string) == (GoalStatus.STATUS_ABORTED, "node /effort_annotator was deactivated")
    way.peer.spin_until(lambda: way.controller.cancelled, "cancel at the controller")
    way.controller.finish("canceled")
    change(way, Transition.TRANSITION_ACTIVATE)
    way.accepted(way.goal(trajectory()))
    way.at_the_controller(2)
    assert way.process.end() == 0
    way.peer.spin_until(lambda: len(way.controller.cancelled) == 2, "cancel of the goal of a process that ends")


@pytest.mark.thorough
def test_a_controller_that_goes_away_ends_its_goals(way):
    with subprocess.Popen([sys.executable, "-c", MORTAL, way.action], stdout=subprocess.PIPE) as controller:
        try:
            sent: list = []    # handle and result; until the annotator knows this controller, goals end unanswered

            def at_the_controller():
                if not sent or sent[1].done():
                    handle = way.accepted(way.goal(trajectory()))
                    sent[:] = handle, handle.get_result_async()
                return select.select([controller.stdout], [], [], 0.0)[0]

            way.peer.spin_until(at_the_controller, "goal at the controller")
            controller.kill()    # seen by the middleware after its lease, 20 s
            status, result = way.result(sent[0])
        finally:
            controller.kill()
    assert (status, result.error_string) == (GoalStatus.STATUS_ABORTED, f"{way.action} has gone")
    assert not way.send(way.goal(trajectory())).accepted
    assert f"goal rejected: there is no action server {way.action}" in way.process.output()


def change(way, transition):
    client = way.peer.node.create_client(ChangeState, "effort_annotator/change_state")
    way.peer.spin_until(client.service_is_ready, "service")
    answer = client.call_async(ChangeState.Request(transition=Transition(id=transition)))
    way.peer.spin_until(answer.done, "transition")
    assert answer.result().success
