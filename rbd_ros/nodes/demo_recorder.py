"""Recorder of the demo: sends the trajectory to the controller and records the robot's motion."""
from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import rclpy
from builtin_interfaces.msg import Duration, Time
from diagnostic_msgs.msg import DiagnosticArray
from numpy.typing import NDArray
from rcl_interfaces.msg import Parameter, ParameterType, ParameterValue
from rcl_interfaces.srv import SetParameters
from rclpy.action import ActionClient
from rclpy.executors import SingleThreadedExecutor
from rclpy.signals import SignalHandlerOptions
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from rbd_interfaces.action import PlanMotion
from rbd_interfaces.msg import JointEffort, MotionRequest

from ..core.errors import RbdError
from .base.conversions import nanoseconds
from .base.rclpy_inside import take

Array = NDArray[np.float64]
SECOND = 1_000_000_000


@dataclass
class Recording:
    """Joint states since the start of the motion: t (N,) in s by their stamps; q, v, effort (N, nv), model order.

    `report`, `plant`: final diagnostics of controller and simulator; counters since the start of the motion.
    """

    t: Array
    q: Array
    v: Array
    effort: Array
    report: dict[str, float] = field(default_factory=dict)
    plant: dict[str, float] = field(default_factory=dict)


class TooBusy(RbdError):
    """The nodes answered after the motion was to start: where the simulated robot is then is not known."""


class DemoRecorder:
    """Client of the nodes `simulator` and `feedforward` of one namespace; a context manager."""

    def __init__(self, namespace: str, joints: tuple[str, ...], check: Callable[[], None],
                 history: int = 1000) -> None:
        self._check, self._joints = check, joints
        rclpy.init(args=[], signal_handler_options=SignalHandlerOptions.NO)
        self._node = node = rclpy.create_node("demo_recorder", namespace=namespace)
        self._executor = SingleThreadedExecutor()
        self._executor.add_node(node)
        self._states: list[tuple[int, Any, Any, Any]] = []
        self._order: NDArray[np.intp] | None = None
        self._efforts = 0
        self._reports: list[tuple[int, dict[str, str]]] = []
        self._plant_reports: list[tuple[int, dict[str, str]]] = []
        self._reports_of = {f"{namespace}/feedforward": self._reports, f"{namespace}/simulator": self._plant_reports}
        self._subscription = node.create_subscription(JointState, "joint_states", self._on_state, history)
        node.create_subscription(JointEffort, "feedforward/effort", self._on_effort, 10)
        node.create_subscription(DiagnosticArray, "/diagnostics", self._on_diagnostics, 10)
        self._trajectory = node.create_publisher(JointTrajectory, "feedforward/joint_trajectory", 1)
        self._parameters = node.create_client(SetParameters, "simulator/set_parameters")

    def __enter__(self) -> DemoRecorder:
        return self

    def __exit__(self, *_: object) -> None:
        self._executor.shutdown()
        self._node.destroy_node()
        rclpy.try_shutdown()

    # ---- steps of the demo

    def wait_until_ready(self, timeout: float) -> None:
        """Wait until the robot publishes its state and the controller answers."""
        self._wait(lambda: bool(self._states) and self._efforts > 0 and all(self._reports_of.values()) and
                   self._trajectory.get_subscription_count() > 0 and self._parameters.service_is_ready(),
                   timeout, "the nodes to find each other")

    def plan(self, goal: Sequence[float], duration: float,
             objective: Mapping[str, float]) -> tuple[tuple[Array, Array, Array, Array], dict[str, float]]:
        """An optimal motion from the present position, by node `motion_planner`: points for `play`, and figures."""
        client = ActionClient(self._node, PlanMotion, "motion_planner/plan_motion")
        self._wait(client.server_is_ready, 60.0, "the planner")
        start = np.array(self._states[-1][1])[self._order]    # the planner may not have received a state yet
        request = PlanMotion.Goal(motion=MotionRequest(
            name=list(self._joints), start=start.tolist(), goal=list(goal), duration=duration,
            objective=list(objective), weight=list(objective.values())))

        def answer(future: Any, what: str) -> Any:
            self._wait(future.done, 60.0, what)
            return future.result()

        result = answer(answer(client.send_goal_async(request), "the planner").get_result_async(), "the plan").result
        if not result.success:
            raise RbdError(f"the planner found no motion: {result.message}")
        points, plan = result.plan.trajectory.points, result.plan
        t = np.array([nanoseconds(point.time_from_start) / SECOND for point in points])
        q, v, a = (np.array([getattr(point, field) for point in points])
                   for field in ("positions", "velocities", "accelerations"))
        return (t, q, v, a), {"iterations": plan.iterations, "planning_time_s": plan.planning_time, "cost": plan.cost,
                              "kkt_residual": plan.kkt_residual, "violation": plan.violation}

    def play(self, points: tuple[Array, Array, Array, Array], progress: Callable[[float], None],
             lead: float = 2.0) -> Recording:
        """Release the brakes at the start of a trajectory, and record until its end.

        points: times (N,) from 0, positions, velocities, accelerations (N, nv) in model order. lead: s from now to
        the start, for the controller to take the trajectory and to ramp in; `TooBusy` if that takes longer.
        """
        start = self._begin(points, lead)
        end = start + int(points[0][-1] * SECOND)

        def done() -> bool:
            progress(float(np.clip((self._now - start) / (end - start), 0.0, 1.0)))
            return self._now >= end

        self._wait(done, 60.0 + 20.0 * (end - self._now) / SECOND, "the motion to end")
        seen = [len(reports) for reports in self._reports_of.values()]
        self._wait(lambda: all(len(reports) > count for reports, count in
                               zip(self._reports_of.values(), seen, strict=True)), 60.0, "the diagnostics of the nodes")
        return self._recording(start, end)

    def _begin(self, points: tuple[Array, Array, Array, Array], lead: float) -> int:
        """Send the trajectory, and the time of its start to the brakes; returns the stamp of the start (ns) when the
        controller follows.
        """
        self._catch_up()
        start, hold = self._now + int(lead * SECOND), int(0.2 * lead * SECOND)
        self._trajectory.publish(self._message(start, hold, *points))
        self._release(start)
        seen = len(self._reports)
        self._wait(lambda: self._following(seen) or self._now >= start - hold, 60.0 + 20.0 * lead, "the controller")
        self._catch_up()
        if self._now >= start - hold:
            raise TooBusy("this machine is too busy: the controller takes the trajectory too late")
        return start

    def _following(self, seen: int) -> bool:
        """Whether the controller follows, by a report after the first `seen` ones."""
        return any(report.get("mode") in ("ramp_in", "running") for _, report in self._reports[seen:])

    def _release(self, start: int) -> None:
        """Tell the simulator to release the brakes at this stamp (ns)."""
        value = ParameterValue(type=ParameterType.PARAMETER_DOUBLE, double_value=start / SECOND)
        future = self._parameters.call_async(SetParameters.Request(
            parameters=[Parameter(name="brakes_until", value=value)]))
        self._wait(future.done, 60.0, "the simulator to set its brakes")
        result = future.result().results[0]
        if not result.successful:
            raise RbdError(f"the simulator refuses to release its brakes: {result.reason}")
        self._catch_up()
        if self._now >= start:    # the simulator may have received it too late
            raise TooBusy("this machine is too busy: the simulator answers too late")

    def _message(self, start: int, hold: int, t: Array, q: Array, v: Array, a: Array) -> JointTrajectory:
        """The motion from `start` (ns) on, after `hold` (ns) at its first position.

        A point at rest shortly before the start prevents an overshoot by the polynomial to a non-zero acceleration.
        """
        message, begin, zeros = JointTrajectory(joint_names=list(self._joints)), start - hold, np.zeros((2, q.shape[1]))
        message.header.stamp = Time(sec=begin // SECOND, nanosec=begin % SECOND)
        q, v, a = np.concatenate([q[[0, 0]], q]), np.concatenate([zeros, v]), np.concatenate([zeros, a])
        for i, offset in enumerate([0, hold - SECOND // 100, *(np.round(t * SECOND).astype(int) + hold).tolist()]):
            message.points.append(JointTrajectoryPoint(
                positions=q[i].tolist(), velocities=v[i].tolist(), accelerations=a[i].tolist(),
                time_from_start=Duration(sec=offset // SECOND, nanosec=offset % SECOND)))
        return message

    def _recording(self, start: int, end: int) -> Recording:
        # Tolerance of half a microsecond, because a stamp may equal the start.
        chosen = [state for state in self._states if start - 500 <= state[0] <= end + 500]
        if len(chosen) < 2:
            raise RbdError("the robot published no states during the motion")
        t, q, v, effort = (np.array([state[i] for state in chosen]) for i in range(4))
        order = self._order
        return Recording((t - start) / SECOND, q[:, order], v[:, order], effort[:, order],
                         _since(start, self._reports), _since(start, self._plant_reports))

    # ---- messages

    @property
    def _now(self) -> int:
        """Stamp of the last state (ns): the time of the robot."""
        return self._states[-1][0] if self._states else 0

    def _on_state(self, message: JointState) -> None:
        if self._order is None:
            self._order = np.array([list(message.name).index(name) for name in self._joints])
        self._states.append((nanoseconds(message.header.stamp), message.position, message.velocity, message.effort))

    def _on_effort(self, message: JointEffort) -> None:
        self._efforts += 1

    def _on_diagnostics(self, message: DiagnosticArray) -> None:
        for status in message.status:
            if status.name in self._reports_of and status.values:
                self._reports_of[status.name].append((self._now, {item.key: item.value for item in status.values}))

    def _catch_up(self) -> None:
        """Read the waiting states, without the executor, which a busy machine lets fall behind them."""
        while (taken := take(self._subscription)) is not None:
            self._on_state(taken[0])

    def _wait(self, condition: Callable[[], bool], timeout: float, what: str) -> None:
        deadline = time.monotonic() + timeout
        checked = 0.0
        while not condition():
            self._executor.spin_once(timeout_sec=0.05)
            self._catch_up()
            now = time.monotonic()
            if now > checked + 0.2:
                self._check()
                checked = now
            if now > deadline:
                raise RbdError(f"waited {timeout:.0f} s without success for {what}")


def _since(start: int, reports: list[tuple[int, dict[str, str]]]) -> dict[str, float]:
    """Numbers of the last report; counters relative to their values at the stamp `start`."""
    before = next((report for stamp, report in reversed(reports) if stamp <= start), {})
    report: dict[str, float] = {}
    for key, text in (reports[-1][1] if reports else {}).items():
        try:
            report[key] = float(text)
        except ValueError:
            continue
        if key != "rate_hz" and not key.startswith("latency"):
            report[key] -= float(before.get(key, 0.0))
    return report
