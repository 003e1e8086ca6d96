"""Node `simulator`: a simulated robot that takes joint efforts and publishes joint states (`runtime.plant`).

Topics (relative names):
  robot_description     std_msgs/String, in, latched; unless a parameter gives it
  ~/commands            std_msgs/Float64MultiArray, in, best effort: efforts in the order of parameter `joints`
  <controller>/commands the same, if parameter `controller` names one
  ~/effort_commands     sensor_msgs/JointState, in, best effort: efforts by name, all joints in any order; a non-zero
                        stamp is that of the answered state (for `wait_for_command`)
  ~/external_wrenches   rbd_interfaces/NamedWrenches, in, best effort: wrenches of the environment on the robot
  joint_states          sensor_msgs/JointState, out, reliable: position, velocity, and the acting effort
  ~/constraint_forces   rbd_interfaces/ConstraintForces, out, with each joint state: forces of loops and contacts, if
                        parameter `constraints_file` has any; not while brakes are engaged
  ~/contact_forces      rbd_interfaces/ContactForces, out, with each joint state: unilateral and compliant contacts
                        from the same file: forces, and impulses since the last message; frame_id: the root link
  ~/wrench/<joint>      geometry_msgs/WrenchStamped, out, with each joint state: readings of force-torque sensors at
                        the joints of parameter `wrench_joints`, in the frame of the child link
  /clock                rosgraph_msgs/Clock, out, if parameter `publish_clock`
  /diagnostics          diagnostic_msgs/DiagnosticArray, out, once a second. Keys: mode (running, paused, or stopped by
                        a reflex (protective stop) or a failure of the simulation), simulated_time, brakes (on, off),
                        commands, saturated, timeouts, failures, reflexes, deadline_misses, schedule_skips, waits,
                        rejected_total and rejected_<kind>
Services: ~/reset (rbd_interfaces/Reset), ~/pause (std_srvs/SetBool), ~/step (rbd_interfaces/Step, when paused)

With parameter `actuation_file` the joints are elastic: commands are efforts of the motors behind the gears, the joints
in the order of parameter `joints`, then the second motors (<joint>/stiffness); `effort` of joint_states is the torque
of the springs, as measured by joint torque sensors; and there is
  motor_states          sensor_msgs/JointState, out, just before each joint state: position, velocity, effort of motors
The diagnostics then contain stiffness_<joint> (N m/rad or N/m).

Brakes hold the joints until the first command, and engage when commands stop (parameters `timeout_action`,
`command_timeout`). A command acts from the step in which it arrives. Real time is soft: states published more than one
publishing period late are counted as deadline misses, and the simulation catches up.
"""
from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from builtin_interfaces.msg import Time
from rclpy.lifecycle import LifecycleState, TransitionCallbackReturn
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray
from std_srvs.srv import SetBool

from rbd_interfaces.msg import NamedWrenches
from rbd_interfaces.srv import Reset, Step

from ..core.actuation.actuation_yaml import load_actuation
from ..core.errors import RbdError
from ..core.model.robot_model import RobotModel
from ..runtime.inputs.joint_state_bytes import Fields
from ..runtime.inputs.rejections import Rejected, Verdict
from ..runtime.parameters import Table
from ..runtime.plant.elastic_plant import ElasticPlant
from ..runtime.plant.pace import Pace, Patience
from ..runtime.plant.plant import Plant
from ..runtime.plant.simulator_settings import SIMULATOR_TABLE, SimulatorSettings
from .base.model_node import ModelNode
from .base.parameters import MODEL_NODE_TABLE
from .base.spin import run
from .loop.simulation_loop import SIMULATION_LOOP, SimulationLoop, make_loop
from .loop.turnstile import Turnstile
from .state_publisher import StatePublisher, in_model_order

SECOND = 1_000_000_000
AT_ONCE = 50    # steps between two checks for the end of the process


class SimulatorNode(ModelNode):
    """Converts messages, advances the plant to the present, publishes."""

    logic: Table = SIMULATOR_TABLE
    make_settings = staticmethod(SimulatorSettings.from_values)
    table: Table = (*MODEL_NODE_TABLE, SIMULATION_LOOP, *logic)

    def __init__(self, name: str = "simulator") -> None:
        super().__init__(name)
        self.lock: Any = Turnstile()
        self.plant: Any = None
        self._pace: Any = None
        self._states: Any = None
        self._loop: Any = None
        self._patience = Patience()
        self._held = self._real_time = False
        self._origin = 0    # stamp of time zero, ns
        self._published = 0    # steady time of the last published state, ns
        self._last_stamp = Time()
        self._braked, self._stopped = False, ""

    # ---- for subclasses: another simulation behind the same topics

    def make_plant(self, values: Mapping[str, Any], model: RobotModel) -> Plant:
        settings = self.settings(values, model)
        if not values.get("actuation_file"):
            return Plant(model, settings)
        return ElasticPlant(model, settings, load_actuation(Path(values["actuation_file"]), model).drives)

    def create_inputs(self, loop: SimulationLoop, values: Mapping[str, Any], joints: Sequence[str]) -> None:
        """Create further inputs with `loop.listen`; joints: names in the order of commands."""

    # ---- configuration

    def set_up(self, values: Mapping[str, Any], model: RobotModel) -> None:
        plant = self.make_plant(values, model)
        settings = plant.settings
        plant.warm_up()
        self._real_time, self._held = settings.real_time_factor > 0.0, settings.paused
        period = settings.publish_every * settings.step * SECOND / (settings.real_time_factor or 1.0)
        self._pace = Pace(period / settings.publish_every, tolerance=period)
        self._patience = Patience()
        self._states = StatePublisher(self, settings, plant.motor_names)
        loop = self._loop = make_loop(self, values, self.on_rejected, self._go_on,
                                      round(period) * 1e-9 if self._real_time else 0.0)
        self.undo += [self._states.destroy, loop.stop]
        loop.listen(Float64MultiArray, "~/commands", self.on_commands)
        if values["controller"]:
            loop.listen(Float64MultiArray, f"{values['controller']}/commands", self.on_commands)
        loop.listen(JointState, "~/effort_commands", self._on_effort_commands)
        loop.listen(NamedWrenches, "~/external_wrenches", self._on_wrenches)
        self.create_inputs(loop, values, settings.joints)
        loop.serve(Reset, "~/reset", self._on_reset)
        loop.serve(SetBool, "~/pause", self._on_pause)
        loop.serve(Step, "~/step", self._on_step)
        self.plant = plant
        loop.start()

    def tear_down(self) -> None:
        self.plant = self._pace = self._states = self._loop = None

    def apply(self, settings: SimulatorSettings) -> None:
        self._catch_up()
        self.plant.settings = settings

    def report(self) -> Mapping[str, Any]:
        mode = "stopped" if self.plant.failure or self.plant.reflex else "paused" if self._held else "running"
        return {"mode": mode, **self.plant.report(), "deadline_misses": self._pace.misses,
                "schedule_skips": self._pace.skips, "waits": self._patience.waits}

    def look_around(self, now: float) -> str:
        reflex = self.plant.reflex if self.plant is not None else ""
        return "; ".join(filter(None, (super().look_around(now), reflex)))

    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        with self.lock:
            result = super().on_activate(state)
            self._begin()
        return result

    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        with self.lock:
            self._loop.rest()
            return super().on_deactivate(state)

    # ---- time

    def _begin(self, q: Any = None, v: Any = None) -> None:
        """Start at time zero: publish a state now, the next one a period later."""
        settings = self.plant.settings
        origin = 0 if settings.publish_clock else self.get_clock().now().nanoseconds
        self.plant.reset(q, v, origin * 1e-9)
        self._origin, self._published = origin, self.steady.now().nanoseconds
        self._braked, self._stopped = self.plant.braked, ""
        if self._braked:
            self.get_logger().info("brakes hold the joints until the first command" if self.plant.settings.brakes else
                                   "brakes hold the joints until the stamp of parameter 'brakes_until'")
        self._publish()
        self._resume()

    def _resume(self) -> None:
        """Let time pass from now on, unless paused."""
        if self._held:
            self._loop.rest()
        else:
            self._published = self.steady.now().nanoseconds
            self._pace.start(self._published, self.plant.steps)
            self._loop.resume()

    def _go_on(self) -> float:
        """Do due work; returns the time (s) until more is due."""
        if not self.active or self._held:
            return math.inf
        plant, every = self.plant, self.plant.settings.publish_every
        if self._real_time:
            self._catch_up()
        else:
            self._advance_to(plant.steps + every)
        now = self.steady.now().nanoseconds
        left = self._pace.left(now, (plant.steps // every + 1) * every) if self._real_time else 0.0
        return (left or self._patience.left(now, plant.settings.wait_for_command * SECOND)) / SECOND

    def _catch_up(self) -> None:
        """Advance the plant to the present."""
        if self.active and self._real_time and not self._held:
            self._advance_to(self._pace.due(self.steady.now().nanoseconds, self.plant.steps))

    def _advance_to(self, target: int, patiently: bool = True) -> None:
        plant, every = self.plant, self.plant.settings.publish_every
        limit = plant.settings.wait_for_command * SECOND
        while plant.steps < target and not self.ending():
            after = (plant.steps // every + 1) * every
            if patiently and after <= target and self._patience.waiting(self.steady.now().nanoseconds, limit):
                target = after - 1
                continue
            if not plant.advance(min(after, target, plant.steps + AT_ONCE) - plant.steps):
                self.get_logger().error(f"{plant.failure}. The robot stands still until ~/reset")
            self._tell_brakes()
            if plant.steps == after:
                self._publish()
                if self._real_time:
                    self._pace.delivered(self.steady.now().nanoseconds, after)

    def _tell_brakes(self) -> None:
        """Log that the brakes engage or are released."""
        plant, braked = self.plant, self.plant.braked
        if plant.reflex != self._stopped:
            self._stopped = plant.reflex
            self.get_logger().error(f"the robot stops itself: {plant.reflex}. Its brakes hold it until ~/reset")
        elif braked and not self._braked:
            self.seldom.warning("braked", f"no command for {plant.settings.command_timeout:g} s: the brakes engage")
        elif self._braked and not braked:
            self.seldom.warning("released", "the brakes are released")
        self._braked = braked

    def _publish(self) -> None:
        self._last_stamp = self._stamp()
        self._states.publish(self._last_stamp, self.plant)
        now, period = self.steady.now().nanoseconds, self.plant.settings.publish_every * self.plant.settings.step
        if not self._held:
            self.plant.delayed += max((now - self._published) / SECOND - period, 0.0)
        self._published = now
        self._patience.published(now)

    def _stamp(self) -> Time:
        ns = self._origin + round(self.plant.time * SECOND)
        return Time(sec=ns // SECOND, nanosec=ns % SECOND)

    # ---- inputs

    def on_commands(self, efforts: Any) -> None:
        if self.take(lambda: self.plant.on_commands(efforts)):
            self.answered(True)

    def _on_effort_commands(self, command: Fields) -> None:
        if self.take(lambda: self.plant.on_named_commands(command.names, command.effort)):
            last = self._last_stamp
            self.answered(command.stamp_ns == 0 or (command.sec, command.nanosec) == (last.sec, last.nanosec))

    def _on_wrenches(self, wrenches: Any) -> None:
        self.take(lambda: self.plant.on_wrenches(wrenches))

    def on_rejected(self, error: Rejected) -> None:
        if self.plant is None:
            super().on_rejected(error)
        else:
            self.take(lambda: self.plant.rejections.add(error))

    def take(self, accept: Callable[[], Verdict]) -> bool:
        if not self.active:
            return False
        self._catch_up()
        verdict = accept()
        if not verdict:
            self.seldom.warning("rejected", f"input rejected: {verdict.text}")
        return verdict.taken

    def answered(self, last: bool) -> None:
        self._patience.commanded(last)
        self._catch_up()    # a state may have waited for this command

    def _on_reset(self, request: Reset.Request, response: Reset.Response) -> Reset.Response:
        state, model = request.state, self.plant.model
        try:
            if not self.active:
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
        if self.active:
            self._catch_up()
            self._held, response.success = request.data, True
            self._resume()
        else:
            response.message = "the simulator is not active"
        return response

    def _on_step(self, request: Step.Request, response: Step.Response) -> Step.Response:
        if not (self.active and self._held):
            response.message = "the simulator is not " + ("paused" if self.active else "active")
        elif request.steps < 1:
            response.message = "steps is 0, expected at least 1"
        else:
            self._loop.take_waiting()    # waiting commands act in these steps
            target = self.plant.steps + request.steps
            self._advance_to(target, patiently=False)
            remaining = target - self.plant.steps
            response.message = f"the simulator ends with {remaining} of {request.steps} steps left" if remaining else (
                self.plant.failure)
            response.success = not response.message
        response.time = self._stamp()
        return response


def main(arguments: list[str] | None = None) -> None:
    """Entry point of executable `simulator`."""
    run(SimulatorNode, arguments)


if __name__ == "__main__":
    main()
