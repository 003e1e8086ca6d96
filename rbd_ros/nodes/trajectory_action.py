"""Goals of control_msgs/FollowJointTrajectory on their way to a controller: filled in, passed on, and followed there.

What the controller decides is what the client is told: its feedback, its result, and its status, except that a goal
which another one replaced is aborted here, as a client did not ask for its end. The package is imported only if used.

A goal stays in state ACCEPTED until its result has come: an execution in rclpy is a coroutine, and while one awaits
another node's answer, its executor is busy all the time.
"""
from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

from action_msgs.msg import GoalInfo, GoalStatus
from action_msgs.srv import CancelGoal
from rclpy.action import ActionClient, ActionServer, CancelResponse, GoalResponse
from rclpy.node import Node

from .base.optional import interface_type
from .base.rclpy_inside import take_answer

PATIENCE = 2.0    # s for a controller to answer, and to be seen again
LONGEST_END = 0.5    # s for a controller to take the cancel of a goal
ENDED = (CancelGoal.Response.ERROR_NONE, CancelGoal.Response.ERROR_GOAL_TERMINATED)
ENDINGS = {GoalStatus.STATUS_SUCCEEDED: "succeed", GoalStatus.STATUS_CANCELED: "canceled"}


class _Relayed:
    """A goal, which has the same identifier in the controller. `sent`: when it was passed on (s); `accepted`: there;
    `lost`: since when the controller has not been seen (s), 0 while it is.
    """

    def __init__(self, goal: Any, sent: float) -> None:
        self.goal, self.sent = goal, sent
        self.accepted, self.lost = False, 0.0


class TrajectoryRelay:
    """Action server `server` of a node, whose goals go to the action server `controller`.

    fill(trajectory): fills in a trajectory_msgs/JointTrajectory in place; the reason why it cannot be executed, ""
    without one.
    """

    def __init__(self, node: Node, server: str, controller: str, fill: Callable[[Any], str]) -> None:
        self._node, self._fill, self._name = node, fill, node.resolve_service_name(controller)
        self._kind = interface_type("parameter 'action.controller' needs", "control_msgs", "action",
                                    "FollowJointTrajectory")
        self.counts = Counter({"goals": 0, "goals_succeeded": 0, "goals_canceled": 0, "goals_aborted": 0,
                               "goals_rejected": 0})
        self._running: list[_Relayed] = []
        self._client = ActionClient(node, self._kind, controller)
        self._cancels = node.create_client(CancelGoal, f"{self._name}/_action/cancel_goal")
        self._server = ActionServer(node, self._kind, server, self._end, goal_callback=self._admit,
                                    handle_accepted_callback=self._pass_on, cancel_callback=self._on_cancel)

    @property
    def running(self) -> int:
        """Number of goals without a result."""
        return len(self._running)

    def check(self) -> None:
        """Ask again for the end of cancelled goals, and abort those whose controller does not answer or has gone."""
        now, seen = time.monotonic(), self._client.server_is_ready()
        for relayed in list(self._running):
            relayed.lost = 0.0 if seen else relayed.lost or now
            if not relayed.accepted and now - relayed.sent > PATIENCE:
                self._finish(relayed, self._aborted(f"{self._name} has not answered for {PATIENCE:g} s"))
            elif relayed.lost and now - relayed.lost > PATIENCE:
                self._finish(relayed, self._aborted(f"{self._name} has gone"))
            elif relayed.goal.is_cancel_requested:
                self._cancel(relayed.goal)

    def end(self, why: str) -> None:
        """Cancel all goals in the controller, so that the arm stops there, and abort them here."""
        deadline = time.monotonic() + LONGEST_END
        for relayed in list(self._running):
            pending, again = None, 0.0    # a cancel that overtakes its goal finds none: it is repeated
            while (now := time.monotonic()) < deadline:
                if now >= again:
                    pending, again = self._cancel(relayed.goal), now + 0.05
                answer = take_answer(self._cancels, pending)
                if answer is not None and answer.return_code in ENDED:
                    break
                time.sleep(0.001)
            self._finish(relayed, self._aborted(why))

    def destroy(self) -> None:
        self.end("the node ends")
        self._server.destroy()
        self._client.destroy()
        self._node.destroy_client(self._cancels)

    # ---- from the client

    def _admit(self, goal: Any) -> GoalResponse:
        problem = (self._fill(goal.trajectory) if self._client.server_is_ready() else
                   f"there is no action server {self._name}")
        if not problem:
            return GoalResponse.ACCEPT
        self.counts["goals_rejected"] += 1
        self._node.get_logger().warning(f"goal rejected: {problem}")
        return GoalResponse.REJECT

    def _on_cancel(self, goal: Any) -> CancelResponse:
        self._cancel(goal)
        return CancelResponse.ACCEPT

    def _cancel(self, goal: Any) -> Any:
        """Ask the controller to cancel a goal; one that it has not got yet, `_accepted` cancels."""
        return self._cancels.call_async(CancelGoal.Request(goal_info=GoalInfo(goal_id=goal.goal_id)))

    # ---- to and from the controller

    def _pass_on(self, goal: Any) -> None:
        relayed = _Relayed(goal, time.monotonic())
        self._running.append(relayed)
        self.counts["goals"] += 1
        answer = self._client.send_goal_async(goal.request, lambda message: self._tell(relayed, message.feedback),
                                              goal.goal_id)
        answer.add_done_callback(partial(self._accepted, relayed))

    def _tell(self, relayed: _Relayed, feedback: Any) -> None:
        if relayed in self._running:
            relayed.goal.publish_feedback(feedback)

    def _accepted(self, relayed: _Relayed, answer: Any) -> None:
        handle = answer.result()
        if not handle.accepted:
            self._finish(relayed, self._aborted(f"{self._name} rejected the goal: see its log"))
            return
        if relayed not in self._running or relayed.goal.is_cancel_requested:    # late, or cancelled meanwhile
            self._cancel(relayed.goal)
        relayed.accepted = True
        handle.get_result_async().add_done_callback(lambda result: self._finish(relayed, result.result()))

    def _aborted(self, why: str) -> Any:
        self._node.get_logger().warning(f"goal aborted: {why}")
        result = self._kind.Result(error_code=self._kind.Result.INVALID_GOAL, error_string=why)
        return self._kind.Impl.GetResultService.Response(status=GoalStatus.STATUS_ABORTED, result=result)

    def _finish(self, relayed: _Relayed, answer: Any) -> None:
        if relayed in self._running:
            self._running.remove(relayed)
            relayed.goal.execute(lambda goal: self._end(goal, answer))

    def _end(self, goal: Any, answer: Any) -> Any:
        ending = ENDINGS.get(answer.status, "abort")
        if ending == "canceled" and not goal.is_cancel_requested:
            ending = "abort"
        getattr(goal, ending)()
        self.counts[{"succeed": "goals_succeeded", "canceled": "goals_canceled"}.get(ending, "goals_aborted")] += 1
        return answer.result
