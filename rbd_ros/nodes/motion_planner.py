"""Node `motion_planner`: trajectory optimisation on request (`runtime.planning`).

Topics (relative names):
  robot_description     std_msgs/String, in, latched; unless a parameter gives it
  joint_states          sensor_msgs/JointState, in, best effort: start of requests without one
  ~/obstacles           std_msgs/String, in, latched: YAML text of what stands around the robot (docs/collision.md),
                        from the next request on; each replaces the earlier ones, "" removes them. An invalid one is
                        rejected, and the earlier ones stay. Unless `collisions.use` is never
  <collisions.marker_topic>    visualization_msgs/MarkerArray, in: obstacles, if the parameter names a topic
  <collisions.scene_topic>     moveit_msgs/PlanningScene, in: obstacles, attached objects, allowed pairs, likewise
  <collisions.cloud_topic>     sensor_msgs/PointCloud2, in, best effort: points around the robot, likewise
  ~/collision_markers   visualization_msgs/MarkerArray, out, latched, with `collisions.show`: collision shapes and
                        obstacles in the frames of their links; red what the latest motion that was asked for hits
  /diagnostics          diagnostic_msgs/DiagnosticArray, out, once a second. Keys: requests, good, not_good, cancelled,
                        refused, defects (errors of the program), waiting, time_p50_us, time_p99_us (of searches),
                        joint_state_age (s), collision_pairs (0: collisions are not considered), obstacles (of
                        file and topics), rejected_total (joint states, obstacles)
Service and action (rbd_interfaces/PlanMotion): ~/plan_motion

Both exist as long as the node. Searches take from some 10 ms to `time_limit`: they run in a worker process, which is
killed if a search is late, and in a separate node, because dynamics_server answers within a millisecond. Threads wait
for the searches, one at a time.
"""
from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from rclpy.action import ActionServer, CancelResponse, GoalResponse
from rclpy.callback_groups import MutuallyExclusiveCallbackGroup
from rclpy.lifecycle import LifecycleState, TransitionCallbackReturn
from sensor_msgs.msg import JointState

from rbd_interfaces import action, srv

from ..core.errors import RbdError
from ..core.model.robot_model import RobotModel
from ..runtime.inputs.rejections import Rejected
from ..runtime.planning.motion_planner import MotionPlanner, pieces_in_touch, pieces_of_plan
from ..runtime.planning.planner_settings import PLANNER_TABLE, PlannerSettings
from ..runtime.planning.robot_collisions import considered
from ..runtime.planning.search_process import SearchProcess
from ..runtime.planning.turns import Turns
from ..runtime.statistics import CycleStatistics
from .base.answering import answered
from .base.conversions import nanoseconds
from .base.model_node import BEST_EFFORT, ModelNode
from .base.parameters import EXECUTOR, MODEL_NODE_TABLE
from .base.rclpy_inside import MULTI_THREADED
from .base.spin import run
from .motion_conversions import motion_request, planned_motion
from .obstacle_topics import ObstacleTopics

MOST_GOALS = 8           # waiting or active; more are rejected
FEEDBACK_PERIOD = 0.05   # s
LONGEST_END = 1.0        # s for searches to end
CANCELLED = "cancelled"


class MotionPlannerNode(ModelNode):
    """Converts requests, calls the `MotionPlanner`, converts the plans."""

    logic, make_settings = PLANNER_TABLE, staticmethod(PlannerSettings.from_values)
    table = (*(row for row in MODEL_NODE_TABLE if row is not EXECUTOR), *logic)    # its executor has several threads

    def __init__(self) -> None:
        super().__init__("motion_planner")
        self.planner: Any = None
        self._urdf = ""
        self._turns = Turns()
        self._surrounding = MutuallyExclusiveCallbackGroup()
        self._process: Any = None    # the worker process
        self._obstacles: Any = None
        self._activation = object()
        self._open = 0    # unanswered requests and goals
        self._counting = threading.Condition()
        self._counts: Counter[str] = Counter(dict.fromkeys(
            ("requests", "good", "not_good", "cancelled", "refused", "defects"), 0))
        self._statistics = CycleStatistics()
        self.create_service(srv.PlanMotion, "~/plan_motion", self._on_request,
                            callback_group=MutuallyExclusiveCallbackGroup())
        self._action = ActionServer(
            self, action.PlanMotion, "~/plan_motion", self._on_goal, callback_group=MutuallyExclusiveCallbackGroup(),
            goal_callback=self._admit, cancel_callback=lambda goal: CancelResponse.ACCEPT)

    def destroy_node(self) -> None:
        self._action.destroy()
        super().destroy_node()

    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        self._activation = object()
        return super().on_activate(state)

    # ---- configuration

    def load(self, values: Mapping[str, Any], description: str) -> tuple[RobotModel, list[str]]:
        self._urdf = description
        return super().load(values, description)

    def set_up(self, values: Mapping[str, Any], model: RobotModel) -> None:
        settings = self.settings(values, model)
        collisions, said, warns = considered(settings, self._urdf, model)
        planner = MotionPlanner(model, settings, collisions)
        self._process = SearchProcess(model, collisions)
        self.undo.append(self._process.close)
        self._process.ready(self.ending)
        self.subscribe(JointState, "joint_states", self._on_joint_state, BEST_EFFORT)
        self.planner = planner
        self._obstacles = ObstacleTopics(    # beside other callbacks: hulls of meshes take a while
            self, settings, planner.surroundings, callback_group=self._surrounding)
        (self.get_logger().warning if warns else self.get_logger().info)(said)

    def tear_down(self) -> None:
        self.planner = None

    def stop(self) -> None:
        """End searches, too, before their services are destroyed."""
        super().stop()
        with self._counting:
            self._counting.wait_for(lambda: not self._open, LONGEST_END)

    def apply(self, settings: PlannerSettings) -> None:
        self.planner.apply(settings)

    def report(self) -> Mapping[str, Any]:
        p50, p99 = self._statistics.latency_us()
        states, surroundings = self.planner.states, self.planner.surroundings
        return {"model": self.planner.settings.model.name, **self._counts, "waiting": self._turns.waiting,
                "time_p50_us": p50, "time_p99_us": p99, "joint_state_age": states.latest.age(time.monotonic()),
                **surroundings.report(),
                "rejected_total": states.rejections.total + surroundings.rejections.total}

    def on_rejected(self, error: Rejected) -> None:
        super().on_rejected(error)
        if self.planner is not None:
            self.planner.surroundings.rejections.add(error)

    def _on_joint_state(self, message: JointState) -> None:
        planner = self.planner    # another thread may reset it
        if planner is not None:
            planner.states.latest.accept(time.monotonic(), nanoseconds(message.header.stamp), message.name,
                                         message.position, message.velocity)

    # ---- requests

    def _on_request(self, request: Any, response: Any) -> Any:
        with self._counting:
            self._open += 1
        try:
            return self._plan(request.motion, response, lambda: False, lambda progress: None)
        finally:
            self._answered()

    def _answered(self) -> None:
        with self._counting:
            self._open -= 1
            self._counting.notify_all()

    def _admit(self, goal: Any) -> GoalResponse:
        with self._counting:
            if self._open < MOST_GOALS:
                self._open += 1
                return GoalResponse.ACCEPT
        self.get_logger().warning(f"goal rejected: {MOST_GOALS} requests are waiting already")
        return GoalResponse.REJECT

    def _on_goal(self, goal: Any) -> Any:
        try:
            return self._reach(goal)
        finally:
            self._answered()

    def _reach(self, goal: Any) -> Any:
        told = 0.0

        def tell(progress: Any) -> None:
            nonlocal told
            if progress.seconds >= told:
                told = progress.seconds + FEEDBACK_PERIOD
                goal.publish_feedback(action.PlanMotion.Feedback(
                    iterations=progress.iterations, cost=progress.cost, violation=progress.violation,
                    planning_time=progress.seconds))

        result = self._plan(goal.request.motion, action.PlanMotion.Result(), lambda: goal.is_cancel_requested, tell)
        if goal.is_cancel_requested:
            goal.canceled()
            if result.success:    # cancelled too late to end the search: no motion is returned
                result = action.PlanMotion.Result(message=CANCELLED)
        elif result.success:
            goal.succeed()
        else:
            goal.abort()
        return result

    def _plan(self, request: Any, response: Any, cancelled: Callable[[], bool], tell: Callable[[Any], None]) -> Any:
        """Fill the response, at this request's turn; `cancelled()`: whether it is no longer needed."""
        self._counts["requests"] += 1
        activation = self._activation

        def lost() -> str:
            """Reason why an earlier request gets no motion now, "" without one."""
            why = ("ends" if self.ending() else f"is not active: {self.status}" if not self.active else
                   "" if self._activation is activation else "was not active all the time")
            return why and f"node {self.get_fully_qualified_name()} {why}"

        def stop() -> bool:
            return cancelled() or bool(lost())

        def answer() -> None:
            with self._turns.turn(stop) as come:
                with self.lock:    # only while the request is read
                    if why := lost():
                        raise RbdError(why)
                    if not come:
                        self._counts["cancelled"] += 1
                        response.message = CANCELLED
                        return
                    process, task = self._process, self.planner.prepare(request, time.monotonic(), motion_request)
                    obstacles = self._obstacles
                begin = time.perf_counter()
                try:
                    plan = process.search(task, tell, stop)
                except RbdError:
                    obstacles.show_hit(pieces_in_touch(task))
                    raise
                obstacles.show_hit(pieces_of_plan(plan))
                self._statistics.published(time.perf_counter() - begin)
            if why := lost():
                self._counts["cancelled"] += 1
                response.message = why
                return
            self._counts["good" if plan.good else "cancelled" if plan.cancelled else "not_good"] += 1
            response.success, response.message, response.plan = plan.good, plan.reason, planned_motion(plan)

        return answered(self.get_logger(), self._counts, "plan_motion", answer, response)


def main(arguments: list[str] | None = None) -> None:
    """Entry point of executable `motion_planner`."""
    run(MotionPlannerNode, arguments, MULTI_THREADED)


if __name__ == "__main__":
    main()
