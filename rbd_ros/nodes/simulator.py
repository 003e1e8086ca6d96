"""Node `simulator`: joint efforts in, joint states out, with the motion of a robot in between (`core.simulation`).

Topics (relative names):
  robot_description     std_msgs/String, in, latched; unless a parameter gives it
  ~/commands            std_msgs/Float64MultiArray, in, best effort: efforts in the order of parameter `joints`
  ~/effort_commands     sensor_msgs/JointState, in, best effort: efforts by name, every joint, any order
  ~/external_wrenches   rbd_interfaces/NamedWrenches, in, best effort: what the surroundings exert on the robot
  joint_states          sensor_msgs/JointState, out, reliable: position, velocity, and the effort that acts
  /clock                rosgraph_msgs/Clock, out, if parameter `publish_clock`
  /diagnostics          diagnostic_msgs/DiagnosticArray, out, once a second. Keys: simulated_time, commands, saturated,
                        timeouts, failures, deadline_misses, schedule_skips, rejected_total and rejected_<kind>
Services: ~/reset (rbd_interfaces/Reset), ~/pause (std_srvs/SetBool), ~/step (rbd_interfaces/Step, when paused)

A command acts from the step in which it arrives. Real time is soft: states that are published more than one
publishing period late are counted as deadline misses, and made up for.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from builtin_interfaces.msg import Time
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rclpy.clock import Clock, ClockType
from rclpy.lifecycle import LifecycleNode, LifecycleState, TransitionCallbackReturn
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rclpy.qos_overriding_options import QoSOverridingOptions
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray, String
from std_srvs.srv import SetBool

from rbd_interfaces.msg import NamedWrenches
from rbd_interfaces.srv import Reset, Step

from ..core.control.parameters import validate
from ..core.control.torque_settings import load_model
from ..core.errors import RbdError
from ..core.simulation.pace import Pace
from ..core.simulation.plant import Plant
from ..core.simulation.settings import SIMULATOR_TABLE, SimulatorSettings
from . import parameters
from .conversions import named_wrenches
from .spin import run
from .state_publisher import StatePublisher, in_model_order
from .torque_node import LATCHED

INPUT = QoSProfile(depth=10, reliability=ReliabilityPolicy.BEST_EFFORT)
SECOND = 1_000_000_000


class SimulatorNode(LifecycleNode):
    """Converts messages, moves the plant to the present, publishes."""

    def __init__(self) -> None:
        super().__init__("simulator")
        parameters.declare(self, SIMULATOR_TABLE)
        parameters.on_change(self, SIMULATOR_TABLE, self._check_parameters, self._apply_parameters)
        self.plant: Any = None
        self.status = "waiting for robot_description"
        self._active = self._paused = False
        self._description = ""
        self._entities: list[Callable[[], Any]] = []
        self._steady = Clock(clock_type=ClockType.STEADY_TIME)
        self._diagnostics = self.create_publisher(DiagnosticArray, "/diagnostics", 10)
        self.create_subscription(String, "robot_description", self._on_description, LATCHED)
        self.create_timer(1.0, self._publish_diagnostics, clock=self._steady)

    # ---- start and end

    def start(self) -> None:
        """Configure and activate, if that is wanted and there is a robot description."""
        values = parameters.read(self, SIMULATOR_TABLE)
        if values["autostart"] is not True:
            self.status = "not configured"
        elif values["robot_description"] or values["robot_description_file"] or self._description:
            if self.trigger_configure() == TransitionCallbackReturn.SUCCESS:
                self.trigger_activate()
        else:
            self.get_logger().info("waiting for a robot description on topic robot_description")

    def _on_description(self, message: String) -> None:
        if self.plant is not None and message.data != self._description:
            self.get_logger().warning("a new robot description takes effect at the next configuration")
        self._description = message.data
        if self.plant is None and self.get_parameter("autostart").value is True:
            self.start()

    def on_configure(self, state: LifecycleState) -> TransitionCallbackReturn:
        try:
            self._configure()
        except RbdError as error:
            self._clean_up()
            self.status = f"configuration failed: {error}"
            self.get_logger().error(self.status)
            return TransitionCallbackReturn.FAILURE
        return TransitionCallbackReturn.SUCCESS

    def _configure(self) -> None:
        values = validate(SIMULATOR_TABLE, parameters.read(self, SIMULATOR_TABLE))
        description = values["robot_description"] or values["robot_description_file"] or self._description
        if not description:
            raise RbdError(f"no robot description: nothing came on {self.resolve_topic_name('robot_description')}, and "
                           "neither parameter 'robot_description' nor 'robot_description_file' is set")
        self.get_logger().info("loading the robot and its compiled kernels; the first time ever they are compiled, "
                               "which takes up to a few minutes (`rbd compile` does it ahead)")
        model, notes = load_model(values, description)
        for note in notes:
            self.get_logger().warning(note)
        settings = SimulatorSettings.from_values(values, model)
        plant = Plant(model, settings)
        plant.warm_up()
        period = settings.publish_every * settings.step * SECOND
        self._real_time = settings.real_time_factor > 0.0
        if self._real_time:
            period /= settings.real_time_factor
        self._pace = Pace(period / settings.publish_every, tolerance=period)
        self._paused = settings.paused
        self._create_entities(settings, round(period) * 1e-9 if self._real_time else 0.0)
        self.plant, self.status = plant, "configured"
        self.get_logger().info(f"'{model.name}' ready; joints: {', '.join(settings.joints)}")

    def _create_entities(self, settings: SimulatorSettings, period: float) -> None:
        def subscribe(kind: type, topic: str, callback: Callable[..., None]) -> None:
            made = self.create_subscription(kind, topic, callback, INPUT, qos_overriding_options=(
                QoSOverridingOptions.with_default_policies()))
            self._entities.append(lambda: self.destroy_subscription(made))

        def serve(kind: type, name: str, callback: Callable[..., Any]) -> None:
            made = self.create_service(kind, name, callback)
            self._entities.append(lambda: self.destroy_service(made))

        self._states = StatePublisher(self, settings)
        self._timer = self.create_timer(period, self._on_tick, clock=self._steady, autostart=False)
        self._entities += [self._states.destroy, lambda: self.destroy_timer(self._timer)]
        subscribe(Float64MultiArray, "~/commands", self._on_commands)
        subscribe(JointState, "~/effort_commands", self._on_effort_commands)
        subscribe(NamedWrenches, "~/external_wrenches", self._on_wrenches)
        serve(Reset, "~/reset", self._on_reset)
        serve(SetBool, "~/pause", self._on_pause)
        serve(Step, "~/step", self._on_step)

    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        self._active, self.status = True, "active"
        self._begin()
        return TransitionCallbackReturn.SUCCESS

    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        self._timer.cancel()
        self._active, self.status = False, "inactive"
        return TransitionCallbackReturn.SUCCESS

    def on_cleanup(self, state: LifecycleState) -> TransitionCallbackReturn:
        self._clean_up()
        self.status = "not configured"
        return TransitionCallbackReturn.SUCCESS

    def on_shutdown(self, state: LifecycleState) -> TransitionCallbackReturn:
        return self.on_cleanup(state)

    def on_error(self, state: LifecycleState) -> TransitionCallbackReturn:
        return self.on_cleanup(state)

    def _clean_up(self) -> None:
        self._active = False
        for undo in reversed(self._entities):
            undo()
        self._entities, self.plant = [], None

    # ---- time

    def _begin(self, q: Any = None, v: Any = None) -> None:
        """Time zero: a state is published now, the next one a period later."""
        settings = self.plant.settings
        origin = 0 if settings.publish_clock else self.get_clock().now().nanoseconds
        self.plant.reset(q, v, origin * 1e-9)
        self._origin = origin
        self._publish()
        self._resume()

    def _resume(self) -> None:
        """Let time pass from now on, unless paused."""
        if self._paused:
            self._timer.cancel()
        else:
            self._pace.start(self._steady.now().nanoseconds, self.plant.steps)
            self._timer.reset()

    def _on_tick(self) -> None:
        if self._real_time:
            self._catch_up()
        else:
            self._advance_to(self.plant.steps + self.plant.settings.publish_every)

    def _catch_up(self) -> None:
        """Move the plant to the present."""
        if self._active and self._real_time and not self._paused:
            self._advance_to(self._pace.due(self._steady.now().nanoseconds, self.plant.steps))

    def _advance_to(self, target: int) -> None:
        plant, every = self.plant, self.plant.settings.publish_every
        while plant.steps < target:
            after = (plant.steps // every + 1) * every
            if not plant.advance(min(after, target) - plant.steps):
                self.get_logger().error(f"{plant.failure}. The robot stands still until ~/reset")
            if plant.steps == after:
                self._publish()
                if self._real_time:
                    self._pace.delivered(self._steady.now().nanoseconds, after)

    def _publish(self) -> None:
        self._states.publish(self._stamp(), self.plant)

    def _stamp(self) -> Time:
        ns = self._origin + round(self.plant.time * SECOND)
        return Time(sec=ns // SECOND, nanosec=ns % SECOND)

    # ---- inputs

    def _on_commands(self, message: Float64MultiArray) -> None:
        self._take(lambda: self.plant.on_commands(message.data))

    def _on_effort_commands(self, message: JointState) -> None:
        self._take(lambda: self.plant.on_named_commands(message.name, message.effort))

    def _on_wrenches(self, message: NamedWrenches) -> None:
        self._take(lambda: self.plant.on_wrenches(named_wrenches(message)))

    def _take(self, accept: Callable[[], bool]) -> None:
        if self._active:
            self._catch_up()
            if not accept():
                self.get_logger().warning(f"input rejected: {self.plant.rejections.last}", throttle_duration_sec=1.0)

    def _on_reset(self, request: Reset.Request, response: Reset.Response) -> Reset.Response:
        state, model = request.state, self.plant.model
        try:
            if not self._active:
                raise RbdError("the simulator is not active")
            if state.name:
                self._begin(*in_model_order(state, model.joint_names))
            else:
                self._begin()
            response.success = True
        except RbdError as error:
            response.message = str(error)
        return response

    def _on_pause(self, request: SetBool.Request, response: SetBool.Response) -> SetBool.Response:
        if self._active:
            self._catch_up()
            self._paused, response.success = request.data, True
            self._resume()
        else:
            response.message = "the simulator is not active"
        return response

    def _on_step(self, request: Step.Request, response: Step.Response) -> Step.Response:
        if not (self._active and self._paused):
            response.message = "the simulator is not " + ("paused" if self._active else "active")
        elif request.steps < 1:
            response.message = "steps is 0, expected at least 1"
        else:
            self._advance_to(self.plant.steps + request.steps)
            response.success, response.message = not self.plant.failure, self.plant.failure
        response.time = self._stamp()
        return response

    # ---- parameters and diagnostics

    def _check_parameters(self, values: Mapping[str, Any]) -> None:
        checked = validate(SIMULATOR_TABLE, values)
        if self.plant is not None:
            SimulatorSettings.from_values(checked, self.plant.model)

    def _apply_parameters(self) -> None:
        if self.plant is not None:
            self._catch_up()
            values = parameters.read(self, SIMULATOR_TABLE)
            self.plant.settings = SimulatorSettings.from_values(values, self.plant.model)

    def _publish_diagnostics(self) -> None:
        status = DiagnosticStatus(name=self.get_fully_qualified_name(), message=self.status)
        status.level = DiagnosticStatus.OK if self._active else DiagnosticStatus.WARN
        if self.plant is not None:
            if self.plant.failure:
                status.level, status.message = DiagnosticStatus.ERROR, self.plant.failure
            report = {**self.plant.report(), "deadline_misses": self._pace.misses, "schedule_skips": self._pace.skips}
            status.values = [KeyValue(key=key, value=str(value)) for key, value in report.items()]
        message = DiagnosticArray(status=[status])
        message.header.stamp = self.get_clock().now().to_msg()
        self._diagnostics.publish(message)


def main(arguments: list[str] | None = None) -> None:
    """Entry point of executable `simulator`."""
    run(SimulatorNode, arguments)


if __name__ == "__main__":
    main()
