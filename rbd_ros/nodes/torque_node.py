"""What every node that publishes torque shares: life cycle, robot description, joint states, watchdog, diagnostics.

Topics (relative names):
  joint_states          sensor_msgs/JointState, in, best effort
  robot_description     std_msgs/String, in, latched; unless a parameter gives it
  ~/emergency_stop      std_msgs/Bool, in; true latches the safe output until service ~/reset (std_srvs/Trigger)
  ~/effort              rbd_interfaces/JointEffort, out; its stamp is that of the joint state it answers
  /diagnostics          diagnostic_msgs/DiagnosticArray, out, once a second, one status named after the node. Keys:
                        mode, rate_hz, latency_p50_us, latency_p99_us (joint state received by the middleware → effort
                        published), deadline_misses, cycles, late_states, clock_restarts, saturated, rate_limited,
                        non_finite_command, timeouts, rejected_total and rejected_<kind>
"""
from __future__ import annotations

import gc
import time
import traceback
from collections.abc import Callable, Mapping
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rclpy.clock import Clock, ClockType
from rclpy.lifecycle import LifecycleNode, LifecycleState, TransitionCallbackReturn
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from rclpy.qos_overriding_options import QoSOverridingOptions
from sensor_msgs.msg import JointState
from std_msgs.msg import Bool, String
from std_srvs.srv import Trigger

from ..core.control.inputs import Rejections
from ..core.control.parameters import Table, validate
from ..core.control.torque import TorqueController
from ..core.control.torque_settings import TorqueSettings, load_model
from ..core.errors import RbdError
from ..core.model.robot_model import RobotModel
from . import parameters
from .adapters import Output, make_outputs
from .conversions import nanoseconds

BEST_EFFORT = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)
RELIABLE = QoSProfile(depth=1)
LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)


class TorqueNode(LifecycleNode):
    """Base class. A subclass has a `table`, and says how to make settings and controller, and its other inputs."""

    table: Table

    def __init__(self, name: str) -> None:
        super().__init__(name)
        parameters.declare(self, self.table)
        parameters.on_change(self, self.table, self._check_parameters, self._apply_parameters)
        self.controller: Any = None
        self.status = "waiting for robot_description"
        self._active = False
        self._description = ""
        self._stamp = JointState().header.stamp
        self._entities: list[Callable[[], Any]] = []    # what undoes the configuration
        self._outputs: list[Output] = []
        self._states: Any = None
        self._watchdog: Any = None
        self._steady = Clock(clock_type=ClockType.STEADY_TIME)
        self._diagnostics = self.create_publisher(DiagnosticArray, "/diagnostics", 10)
        self.create_subscription(String, "robot_description", self._on_description, LATCHED)
        self.create_timer(1.0, self._publish_diagnostics, clock=self._steady)

    # ---- for subclasses

    def make_settings(self, values: Mapping[str, Any], model: RobotModel) -> TorqueSettings:
        raise NotImplementedError

    def make_controller(self, model: RobotModel, settings: TorqueSettings) -> TorqueController:
        raise NotImplementedError

    def create_inputs(self) -> None:
        """Create the subscriptions of the subclass with `subscribe`."""

    def subscribe(self, kind: type, topic: str, callback: Callable[..., None], qos: QoSProfile) -> Any:
        """A subscription that lives from configuration to cleanup, with QoS that parameters can override."""
        subscription = self.create_subscription(kind, topic, callback, qos, qos_overriding_options=(
            QoSOverridingOptions.with_default_policies()))
        self._entities.append(lambda: self.destroy_subscription(subscription))
        return subscription

    def report_rejection(self, accepted: bool) -> None:
        """Log the last rejection, at most once a second, unless the input was accepted."""
        if not accepted:
            rejections: Rejections = self.controller.rejections
            self.get_logger().warning(f"input rejected: {rejections.last}", throttle_duration_sec=1.0)

    # ---- start and end

    def start(self) -> None:
        """Configure and activate, if that is wanted and there is a robot description."""
        values = parameters.read(self, self.table)
        if values["autostart"] is not True:
            self.status = "not configured"
        elif values["robot_description"] or values["robot_description_file"] or self._description:
            if self.trigger_configure() == TransitionCallbackReturn.SUCCESS:
                self.trigger_activate()
        else:
            self.get_logger().info(f"waiting for a robot description on {self.resolve_topic_name('robot_description')}")

    def stop(self) -> None:
        """Before the process ends: ramp out and leave a safe effort behind."""
        if self._active:
            self._run_down()

    def _on_description(self, message: String) -> None:
        if self.controller is not None and message.data != self._description:
            self.get_logger().warning("a new robot description takes effect at the next configuration")
        self._description = message.data
        if self.controller is None and self.get_parameter("autostart").value is True:
            self.start()

    # ---- life cycle

    def on_configure(self, state: LifecycleState) -> TransitionCallbackReturn:
        try:
            self._configure()
        except Exception as error:
            self._clean_up()
            self.status = f"configuration failed: {error}"
            self.get_logger().error(self.status)
            if not isinstance(error, RbdError):
                raise
            return TransitionCallbackReturn.FAILURE
        return TransitionCallbackReturn.SUCCESS

    def _configure(self) -> None:
        log = self.get_logger()
        values = validate(self.table, parameters.read(self, self.table))
        description = values["robot_description"] or values["robot_description_file"] or self._description
        if not description:
            raise RbdError("no robot description: nothing came on topic "
                           f"{self.resolve_topic_name('robot_description')}, and neither parameter 'robot_description' "
                           "nor 'robot_description_file' is set")
        log.info("loading the robot and its compiled kernels; the first time ever they are compiled, which takes up to "
                 "a few minutes (`rbd compile` does it ahead)")
        begin = time.monotonic()
        model, notes = load_model(values, description)
        for note in notes:
            log.warning(note)
        settings = self.make_settings(values, model)
        controller = self.make_controller(model, settings)
        controller.warm_up()
        self._outputs = make_outputs(self, model, settings, values)
        self._entities += [output.destroy for output in self._outputs]
        self.controller = controller
        self._states = self.subscribe(JointState, "joint_states", self._on_joint_state, BEST_EFFORT)
        self.subscribe(Bool, "~/emergency_stop", self._on_emergency_stop, RELIABLE)
        reset = self.create_service(Trigger, "~/reset", self._on_reset)
        self._watchdog = self.create_timer(1.0 / values["watchdog_rate"], self._on_watchdog, clock=self._steady,
                                           autostart=False)
        self._entities += [lambda: self.destroy_service(reset), lambda: self.destroy_timer(self._watchdog)]
        self.create_inputs()
        gc.collect()
        gc.freeze()    # what exists now is here to stay: the collector need not look at it in the control loop
        self.status = "configured"
        log.info(f"'{model.name}' ready in {time.monotonic() - begin:.1f} s; joints: {', '.join(settings.joints)}")

    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        self.controller.activate(time.monotonic())
        self._active, self.status = True, "active"
        self._watchdog.reset()
        self.get_logger().info("active: torque follows the joint states. If this process is killed, nothing stops the "
                               "last torque: have a watchdog downstream")
        return TransitionCallbackReturn.SUCCESS

    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        self._run_down()
        return TransitionCallbackReturn.SUCCESS

    def on_cleanup(self, state: LifecycleState) -> TransitionCallbackReturn:
        self._clean_up()
        self.status = "not configured"
        return TransitionCallbackReturn.SUCCESS

    def on_shutdown(self, state: LifecycleState) -> TransitionCallbackReturn:
        self.stop()
        self._clean_up()
        self.status = "shut down"
        return TransitionCallbackReturn.SUCCESS

    def on_error(self, state: LifecycleState) -> TransitionCallbackReturn:
        self.stop()
        self._clean_up()
        return TransitionCallbackReturn.SUCCESS

    def _clean_up(self) -> None:
        for undo in reversed(self._entities):
            undo()
        self._entities, self._outputs = [], []
        self.controller = self._states = self._watchdog = None

    def _run_down(self) -> None:
        """Ramp to the safe effort, still following the joint states, and publish it last."""
        controller, settings = self.controller, self.controller.settings.safety
        self._watchdog.cancel()
        controller.deactivate()
        deadline = time.monotonic() + settings.ramp_out + 2.0 * settings.state_timeout
        while not controller.finished and time.monotonic() < deadline:
            if not self._take_state():
                self._publish(controller.watchdog(time.monotonic()))
                time.sleep(2e-4)
        self._publish(controller.finish(time.monotonic()))
        self._active, self.status = False, "inactive"

    # ---- control

    def _on_joint_state(self, message: JointState, info: Mapping[str, int]) -> None:
        if not self._active:
            return
        controller = self.controller
        rejected = controller.rejections.total
        try:
            effort = controller.on_state(time.monotonic(), nanoseconds(message.header.stamp), message.name,
                                         message.position, message.velocity, message.effort)
        except Exception:    # a defect must not end the process with the last torque latched
            controller.safety.stop()
            self.get_logger().error("stopped by a defect; publishing the safe effort until ~/reset:\n"
                                    + traceback.format_exc(), throttle_duration_sec=1.0)
            return
        if effort is None:
            self.report_rejection(controller.rejections.total == rejected)
            return
        self._stamp = message.header.stamp
        self._publish(effort)
        received = info["received_timestamp"]
        controller.statistics.published(max(time.time_ns() - received, 0) * 1e-9 if received else 0.0)

    def _publish(self, effort: Any) -> None:
        if effort is not None:
            controller = self.controller
            for output in self._outputs:
                output.publish(self._stamp, controller.state.q, controller.state.v, effort, controller.safety.clipped)

    def _take_state(self) -> bool:
        """Handle a joint state that waits in the subscription."""
        with self._states.handle:
            taken = self._states.handle.take_message(self._states.msg_type, False)
        if taken is not None:
            self._on_joint_state(*taken)
        return taken is not None

    def _on_watchdog(self) -> None:
        # After a long callback a fresh state may wait behind this timer.
        if not self._active or self._take_state():
            return
        effort = self.controller.watchdog(time.monotonic())
        if effort is not None:
            self._publish(effort)
            self.get_logger().warning(f"no valid joint state for {self.controller.state.age(time.monotonic()):.3f} s: "
                                      "publishing the safe effort", throttle_duration_sec=1.0)

    def _on_emergency_stop(self, message: Bool) -> None:
        if message.data and self._active and self.controller.safety.mode != "stopped":
            self.controller.safety.stop()
            self.get_logger().error("emergency stop: publishing the safe effort until service ~/reset is called")

    def _on_reset(self, request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        response.success = self.controller.safety.mode == "stopped"
        response.message = "ramping in" if response.success else "there was no emergency stop"
        self.controller.safety.reset()
        return response

    # ---- parameters and diagnostics

    def _check_parameters(self, values: Mapping[str, Any]) -> None:
        checked = validate(self.table, values)
        if self.controller is not None:
            self.make_settings(checked, self.controller.model)

    def _apply_parameters(self) -> None:
        if self.controller is not None:
            values = validate(self.table, parameters.read(self, self.table))
            self.controller.apply(self.make_settings(values, self.controller.model))

    def _publish_diagnostics(self) -> None:
        status = DiagnosticStatus(name=self.get_fully_qualified_name(), message=self.status)
        status.level = DiagnosticStatus.OK if self._active else DiagnosticStatus.WARN
        if self.status.startswith("configuration failed"):
            status.level = DiagnosticStatus.ERROR
        if self.controller is not None:
            report = self.controller.report()
            status.values = [KeyValue(key=key, value=f"{value:.6g}" if isinstance(value, float) else str(value))
                             for key, value in report.items()]
            if self._active and report["mode"] in ("stale", "stopped", "waiting"):
                status.level = DiagnosticStatus.ERROR if report["mode"] == "stopped" else DiagnosticStatus.WARN
                status.message = f"active, {report['mode']}"
        message = DiagnosticArray(status=[status])
        message.header.stamp = self.get_clock().now().to_msg()
        self._diagnostics.publish(message)
