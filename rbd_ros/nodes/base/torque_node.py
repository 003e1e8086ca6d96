"""Base class of nodes that publish torque: joint states, watchdog, outputs, emergency stop, shutdown.

Topics (relative names):
  joint_states          sensor_msgs/JointState, in, best effort
  robot_description     std_msgs/String, in, latched; unless a parameter gives it
  ~/emergency_stop      std_msgs/Bool, in; true latches the safe output until service ~/reset (std_srvs/Trigger)
  ~/effort              rbd_interfaces/JointEffort, out; its stamp is that of the joint state it answers
  /diagnostics          diagnostic_msgs/DiagnosticArray, out, once a second, one status named after the node. Keys:
                        mode, rate_hz, latency_p50_us, latency_p99_us (joint state received by the middleware → effort
                        published), deadline_misses, cycles, steady_cycles (those answered in one compiled call),
                        notices, last_notice (what happened to the robot or its reference),
                        late_states, clock_restarts, position_restarts, saturated, rate_limited, non_finite_command,
                        timeouts, old_states (answered without feedback), slow_loops (how often the loop became too slow
                        for any command), rejected_total and rejected_<kind>
"""
from __future__ import annotations

import time
import traceback
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from rclpy.lifecycle import LifecycleState, TransitionCallbackReturn

from ...core.model.robot_model import RobotModel
from ...runtime.control.loop_rate import Transit
from ...runtime.control.torque_controller import Controller
from ...runtime.control.torque_settings import TorqueSettings
from ...runtime.inputs.joint_state_bytes import Fields
from ...runtime.inputs.rejections import Rejected, Verdict
from ...runtime.parameters import Parameter, Table
from ...runtime.safety import Command, Defect
from ..outputs import ADAPTERS_TABLE, make_outputs, restricted
from ..outputs.efforts import EffortOutput
from ..outputs.handover import HANDOVER_TABLE, Handover, make_handover
from ..outputs.output import Array, Output, Stamp
from ..loop.control_loop import CONTROL_LOOP_TABLE
from .emergency_stop import EmergencyStop
from ..loop.joint_state_inputs import Info, JointStateInputs, Shortcut
from .model_node import ModelNode
from .parameters import MODEL_NODE_TABLE
from .surroundings import TorqueReminder, no_state, rivals

LONGEST_HALT = 1.0    # s
TORQUE_NODE_TABLE: Table = (
    *MODEL_NODE_TABLE,
    *ADAPTERS_TABLE, *HANDOVER_TABLE,
    Parameter("watchdog_rate", "number", 100.0, "Rate at which the age of the state is checked and the safe output is "
              "repeated, Hz.", lower=1.0, upper=1000.0, read_only=True),
    *CONTROL_LOOP_TABLE,
)


class TorqueNode(ModelNode, ABC):
    """Base class. A subclass creates settings, controller and further inputs."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.controller: Any = None
        self._stamp = (0, 0)    # stamp of the last joint state: s, ns
        self._transit = Transit()
        self._outputs: list[Output] = []
        self._late: list[Output] = []
        self._states: Any = None
        self._heard: Any = None
        self._watches = False    # whether the watchdog is enabled
        self._handover: Handover | None = None
        self._stops = EmergencyStop(self)
        self._reminder = TorqueReminder(self.get_logger().warning)

    # ---- for subclasses

    @abstractmethod
    def make_controller(self, model: RobotModel, settings: TorqueSettings) -> Controller:
        """The controller with these settings."""

    def effort_output(self, settings: TorqueSettings) -> EffortOutput:
        """The publisher of `~/effort`."""
        return EffortOutput(self, settings)

    def further_outputs(self, settings: TorqueSettings) -> list[Output]:
        """Further publishers of the subclass."""
        return []

    def shortcut(self, transit: Transit) -> Shortcut | None:
        """The fast path for ordinary joint states, None without one. transit: estimator of their age."""
        return None

    def late_outputs(self, settings: TorqueSettings) -> list[Output]:
        """Publishers of the subclass that run after the torque was published. Their errors are only logged.
        """
        return []

    def create_inputs(self) -> None:
        """Create the subscriptions of the subclass with `subscribe`."""

    def report_rejection(self, verdict: Verdict) -> None:
        """Log the reason of a rejection, at most once per second."""
        if not verdict and verdict.text:
            self.seldom.warning("rejected", f"input rejected: {verdict.text}")

    # ---- configuration

    def settings(self, values: Mapping[str, Any], model: RobotModel) -> Any:
        return restricted(super().settings(values, model), values)

    def set_up(self, values: Mapping[str, Any], model: RobotModel) -> None:
        settings = self.settings(values, model)
        self.controller = self.make_controller(model, settings)
        self.controller.warm_up()
        self._stops.set_up()
        if settings.unlimited:
            self.get_logger().warning(f"no limit for the effort of {', '.join(settings.unlimited)}: neither the robot "
                                      "description nor 'effort_limits.maximum' has one")
        self._judge_gains()
        self._outputs = [self.effort_output(settings), *self.further_outputs(settings),
                         *make_outputs(self, model, settings, values)]
        self._late = self.late_outputs(settings)
        self._handover = make_handover(self, values)
        self.undo += [each.destroy for each in (*self._outputs, *self._late, self._handover) if each is not None]
        self.create_inputs()
        states = self._states = JointStateInputs(self, values, lambda: self.controller.statistics.period,
                                                 self._on_watchdog, self._stops.group)
        self.undo.append(states.stop)
        self._heard = self.listen_to_states(states)
        states.start()

    def listen_to_states(self, states: JointStateInputs) -> Any:
        """Create the time-critical subscriptions; returns the subscription to joint states."""
        model = self.controller.model
        return states.listen("joint_states", self._on_joint_state, self.shortcut(self._transit),
                             [*model.joint_names, *(mimic.name for mimic in model.mimics)])

    def tear_down(self) -> None:
        self._stops.tear_down()
        self._outputs, self._late = [], []
        self.controller = self._states = self._heard = self._handover = None

    def apply(self, settings: TorqueSettings) -> None:
        self.controller.apply(settings)

    def report(self) -> Mapping[str, Any]:
        return {**self.controller.report(), **self._states.report()}

    def look_around(self, now: float) -> str:
        self._stops.hear_latched()
        if self.controller is not None:
            self._judge_gains()
        missing = self._missing_state()
        rival = rivals(self, [topic for output in self._outputs for topic in output.topics]) if self.active else ""
        self._reminder.tell(missing, self.model.joint_names if self.model else (), rival, now)
        return "; ".join(filter(None, (missing, self.controller.loop.problem if self.active else "", rival)))

    def _judge_gains(self) -> None:
        """Warn of gains that are too high for the rate."""
        if problem := self.controller.judge_gains():
            self.get_logger().warning(problem)

    def _missing_state(self) -> str:
        """Reason for missing joint states since activation, "" if there was one."""
        with self.lock:
            if not self.active or self.controller.safety.output is not None:
                return ""
            return no_state(self, self._heard.topic_name, self.controller.state, self.controller.model.joint_names)

    # ---- life cycle

    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        self._stops.hear_latched()
        with self.lock:
            self.controller.activate(time.monotonic())
            for output in self._outputs:
                output.begin()
            self.active, self.status = True, "active"
        self._watches = True
        self.get_logger().info("active: torque follows the joint states. If this process is killed, the last torque "
                               "stays: have a watchdog downstream")
        return TransitionCallbackReturn.SUCCESS

    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        self._run_down()
        return TransitionCallbackReturn.SUCCESS

    def stop(self) -> None:
        """Ramp out, publish the final safe effort, and release everything."""
        if self.active:
            self._run_down()
        super().stop()

    def _run_down(self) -> None:
        """Ramp to the safe effort, still answering joint states, and publish it as final output. With a handover, first
        stop the motion and switch to the other controller. An emergency stop ends the ramp.
        """
        controller = self.controller
        self._watches = False
        begin = time.monotonic()
        if self._handover is not None and controller.safety.output is not None:
            with self.lock:
                controller.halt(begin)
            while not controller.rests():
                self._go_on()
                if time.monotonic() > begin + LONGEST_HALT:
                    self.get_logger().warning(f"the robot still moves after {LONGEST_HALT} s")
                    break
            self._handover.run(self._go_on)
        with self.lock:
            controller.deactivate()
        deadline = controller.latest_end(begin, time.monotonic())
        while not controller.finished and time.monotonic() < deadline:
            self._go_on()
        with self.lock:
            self._publish(controller.finish(time.monotonic()))
            self.active, self.status = False, "inactive"

    def _go_on(self) -> None:
        """Do the work of executor and watchdog during a long callback."""
        self._stops.take()
        if not self._states.take():
            with self.lock:
                self._publish(self.controller.watchdog(time.monotonic()))
            time.sleep(1e-3)

    @property
    def state_timeout(self) -> float:
        return float(self.controller.settings.safety.state_timeout)

    @property
    def state_age(self) -> float:
        return float(self.controller.state.age(time.monotonic()))

    def fade_in(self) -> None:
        self.controller.safety.restart()

    # ---- control

    def on_defect(self, trace: str) -> None:
        """Stop: a program error must not end process or thread with the last torque latched."""
        with self.lock:
            self.controller.safety.stop()
        self.seldom.error("defect", "stopped by a defect of this software; publishing the safe effort until "
                                    f"~/reset:\n{trace}")

    def on_rejected(self, error: Rejected) -> None:
        if self.controller is None:
            super().on_rejected(error)
        else:
            self.report_rejection(self.controller.rejections.add(error))

    def _on_joint_state(self, state: Fields, info: Info) -> None:
        if not self.active:
            return
        controller = self.controller
        received = info["received_timestamp"]
        age = self._transit.age(time.time_ns(), info["source_timestamp"], received)
        command = controller.on_state(time.monotonic(), state.stamp_ns, state.names, state.position, state.velocity,
                                      state.effort, age)
        if not isinstance(command, Command):
            self.report_rejection(command)
            return
        self.answer_with(command, (state.sec, state.nanosec), received)

    def answer_with(self, command: Command, stamp: Stamp, received_ns: int) -> None:
        """Publish the answer to the last accepted state, which has this stamp; received_ns as in `answered`."""
        self._stamp = stamp
        self._publish(command)
        if isinstance(command.problem, Defect):
            self.on_defect(command.problem)
        elif command.problem:
            self.seldom.error("problem", f"publishing the safe effort: {command.problem}")
        self.answered(command, received_ns)

    def publish_for(self, command: Command, stamp: Stamp, q: Array, v: Array) -> None:
        """Publish the answer to the state q, v with this stamp."""
        self._stamp = stamp
        for output in self._outputs:
            output.publish(stamp, q, v, command)

    def answered(self, command: Command, received_ns: int) -> None:
        """Finish the cycle after the torque was published. received_ns: reception time in the middleware, 0: unknown.
        """
        self._compare_gravity()
        self._tell_notices()
        self.controller.statistics.published(max(time.time_ns() - received_ns, 0) * 1e-9 if received_ns else 0.0)
        try:
            for output in self._late:
                output.publish(self._stamp, self.controller.state.q, self.controller.state.v, command)
        except Exception:    # no reason to stop
            self.seldom.error("late", f"an output beside the torque failed:\n{traceback.format_exc()}")

    def _tell_notices(self) -> None:
        for notice in self.controller.take_notices():
            self.get_logger().warning(notice)

    def _compare_gravity(self) -> None:
        """Log, twice per activation, the gravity check of robot against model."""
        verdict = self.controller.compare_gravity(time.monotonic())
        if verdict is not None and verdict.agrees:
            self.get_logger().info(verdict.text)
        elif verdict is not None:
            self.get_logger().warning(verdict.text)    # separate line: rclpy requires one severity per line

    def _publish(self, command: Command | None) -> None:
        if command is not None:
            self.publish_for(command, self._stamp, self.controller.state.q, self.controller.state.v)

    def _on_watchdog(self) -> None:
        # After a long callback a fresh state may wait behind the timer.
        if not self._watches or self._states.take():
            return
        with self.lock:
            now = time.monotonic()
            command = self.controller.watchdog(now)
            self._publish(command)
            late = self.controller.statistics.is_late(now)
        if command is None and late:
            self.seldom.warning("late", "joint state late by more than two periods "
                                f"({2e3 * self.controller.statistics.period:.1f} ms)", pause=5.0)
        if command is not None:
            self.seldom.warning("stale", command.problem)
