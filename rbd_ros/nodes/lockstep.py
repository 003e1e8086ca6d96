"""Node `lockstep`: lockstep of a paused simulation and a controller (`runtime.cosimulation.lockstep`).

Topics (relative names):
  joint_states                  sensor_msgs/JointState, in: of the simulation
  <effort_topic>                rbd_interfaces/JointEffort, in: answers, with the stamp of the joint state
  <controller>/commands         std_msgs/Float64MultiArray, out
  /model/<bridge_model>/joint/<joint>/cmd_force   std_msgs/Float64, out, for ros_gz_bridge
  ~/effort                      rbd_interfaces/JointEffort, out: the forwarded answers
  /diagnostics                  diagnostic_msgs/DiagnosticArray, out, once a second. Keys: mode, cycles, rate_hz,
                                overdue, refused, overshoots, unanswered (states whose answer was lost), resets and
                                pauses (of the simulation), late_commands (stepper rbd only: states in whose steps
                                another effort than the sent one acted)
Called services: those of parameter `stepper`, and get_parameters of the `receivers`, whose answers confirm that the
command was handled.

The controller must send its efforts to this node only: a direct command could arrive before or after the steps. The
node waits for messages only, never for ROS time, so it cannot block while the simulation is paused.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray
from rclpy.clock import Clock, ClockType
from rclpy.lifecycle import LifecycleNode, LifecycleState, TransitionCallbackReturn
from sensor_msgs.msg import JointState

from rbd_interfaces.msg import JointEffort

from ..core.errors import RbdError
from ..runtime.cosimulation.lockstep import (
    LOCKSTEP_TABLE, Interruption, Lockstep, LockstepSettings, receipt_services,
)
from ..runtime.inputs.joint_state_bytes import Fields
from ..runtime.parameters import Parameter, select
from .base import parameters
from .base.conversions import nanoseconds
from .base.diagnostics import diagnostic_array
from .base.lifecycle import refuse_impossible_transitions
from .base.spin import run
from .loop.simulation_loop import SIMULATION_LOOP, make_loop
from .loop.turnstile import Turnstile
from .outputs.receipts import Receipts
from .outputs.simulation_commands import QOS, SimulationCommands
from .steppers import Stepper, make_stepper
from .watching.time_jumps import RESET_OF_GAZEBO, watch_time

NEW = 1_000_000_000    # ns: stamps further ahead of /clock are from before a reset


class LockstepNode(LifecycleNode):
    """Converts messages, calls the logic, sends commands and requests."""

    table = (Parameter("autostart", "bool", True, "Configure and activate at the start.", read_only=True),
             parameters.EXECUTOR, parameters.INPUT_BYTES, SIMULATION_LOOP, *LOCKSTEP_TABLE)

    def __init__(self) -> None:
        super().__init__("lockstep")
        refuse_impossible_transitions(self)
        parameters.declare(self, self.table)
        self.lock = Turnstile()    # guards all below
        self._steady = Clock(clock_type=ClockType.STEADY_TIME)
        self._active, self._status = False, "not configured"
        self._settings: Any = None
        self._logic: Any = None
        self._stepper: Stepper | None = None
        self._undo: list[Callable[[], Any]] = []
        self._outputs: Any = None
        self._receipts: Receipts | None = None      # of the nodes that take the commands
        self._settling: Any = None                  # timer between a command and the request for steps
        self._awake = False                         # controllers in Gazebo are active
        self._acquainted = False                    # whether all receivers have answered a request
        self._asked = 0                             # time of the first request to the receivers, or of its report
        self._notice = ""                           # while there are no states after a reset
        self._listening = False                     # whether there are subscribers of the efforts
        self._showing = False                       # whether the request to show the first state is pending
        self._early: JointEffort | None = None      # an answer received before that request was confirmed
        self._sent: dict[int, dict[str, float]] = {}    # stamp of a state → effort that should act until then
        self._late_commands = self._reported = 0
        self._reports = self.create_publisher(DiagnosticArray, "/diagnostics", 10)
        self.create_timer(1.0, self._report, clock=self._steady)

    def start(self) -> None:
        """Configure and activate if parameter `autostart` is set."""
        if self.get_parameter("autostart").value and (
                self.trigger_configure() == TransitionCallbackReturn.SUCCESS):
            self.trigger_activate()

    def stop(self) -> None:
        """Release everything before the process ends."""
        self._clean_up()

    # ---- life cycle

    def on_configure(self, state: LifecycleState) -> TransitionCallbackReturn:
        values = parameters.read(self, self.table)
        self.most_bytes = int(values[parameters.INPUT_BYTES.name])
        loop = make_loop(self, values, lambda error: self.get_logger().error(str(error), throttle_duration_sec=1.0))
        try:
            settings = self._settings = LockstepSettings.from_values(select(LOCKSTEP_TABLE, values))
            self._stepper = make_stepper(settings.stepper, self, dict(settings.names), loop.group)
        except RbdError as error:
            self._status = f"configuration failed: {error}"
            self.get_logger().error(self._status)
            return TransitionCallbackReturn.FAILURE
        self._outputs = SimulationCommands(self, settings)
        self._undo += [self._outputs.destroy, loop.stop]
        services = receipt_services(settings.controller, settings.receivers) if self._stepper is not None else []
        self._logic = Lockstep(settings.period, settings.patience, receipts=bool(services))
        if services:    # after the publishers: see `Receipts`
            receipts = self._receipts = Receipts(self, services, loop.group, self._locked(self._on_receipts))
            self._undo.append(receipts.destroy)
            loop.clients += receipts.clients
        if self._stepper is not None:
            self._undo.append(self._stepper.destroy)
            loop.clients += self._stepper.clients.values()
            timer = self.create_timer(0.1, self._locked(self._on_timer), clock=self._steady)
            self._undo.append(lambda: self.destroy_timer(timer))
            if settings.settle > 0.0:
                settling = self._settling = self.create_timer(settings.settle, self._locked(self._on_settled),
                                                              clock=self._steady, autostart=False)
                self._undo.append(lambda: self.destroy_timer(settling))
        if settings.stepper != "rbd":    # with stepper rbd the states show a reset
            self._undo.append(watch_time(self, self._on_time_back))
        loop.listen(JointState, "joint_states", self._on_state, QOS)
        if settings.activity_topic:
            loop.listen(JointState, settings.activity_topic, self._on_activity, QOS)
        loop.listen(JointEffort, settings.effort_topic, self._on_effort, QOS)
        self._awake = False
        loop.start()
        self._status = "configured"
        return TransitionCallbackReturn.SUCCESS

    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        with self.lock:
            self._active, self._status, self._showing, self._early = True, "active", False, None
            self._sent, self._listening, self._acquainted, self._notice = {}, False, False, ""
            self._asked = self._now
            self._logic.start(self._now - self._logic.retry)
        return TransitionCallbackReturn.SUCCESS

    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        with self.lock:
            self._active, self._status = False, "inactive"
        return TransitionCallbackReturn.SUCCESS

    def on_cleanup(self, state: LifecycleState) -> TransitionCallbackReturn:
        self._clean_up()
        self._status = "not configured"
        return TransitionCallbackReturn.SUCCESS

    def on_shutdown(self, state: LifecycleState) -> TransitionCallbackReturn:
        self._clean_up()
        return TransitionCallbackReturn.SUCCESS

    def _clean_up(self) -> None:
        self._active = False
        while self._undo:
            self._undo.pop()()
        self._stepper = self._logic = self._outputs = self._settling = self._receipts = None

    def _locked(self, call: Callable[[], None]) -> Callable[[], None]:
        def locked() -> None:
            with self.lock:
                call()
        return locked

    @property
    def _now(self) -> int:
        return int(self._steady.now().nanoseconds)

    # ---- lockstep

    def _on_timer(self) -> None:
        if not (self._active and self._stepper is not None and self._stepper.ready):
            return
        if self._logic.phase == "sending" and not self._outputs.received:
            self.get_logger().warning("whoever takes the commands is gone: turns begin anew when it is back")
            self._logic.start(self._now)
            self._expect_others()
        if not self._connected():
            if self._wakes():
                self._stepper.step(1, self._on_stepped)
            return
        if not self._logic.overdue(self._now):
            return
        if not self._acquainted and self._receipts is not None:
            self._get_acquainted(self._receipts)
        elif self._logic.phase == "starting":
            self._showing = True
            self._stepper.show(self._on_shown)
        elif self._logic.phase == "sending" and self._receipts is not None:
            self.get_logger().warning(f"no answer on {self._receipts.missing} to what followed the last command: "
                                      "nobody knows whether it will act, so no steps are made")
            self._receipts.repeat()
        elif self._logic.phase == "stepping":
            self.get_logger().warning("no joint state after the steps: requesting them again")
            self._step()
        else:
            self.get_logger().warning(f"no answer on {self._settings.effort_topic} to the last joint state")

    def _wakes(self) -> bool:
        """Whether controllers in Gazebo still have to be activated, which takes steps (gz_ros2_control)."""
        return (self._settings.stepper == "gazebo" and bool(self._settings.controller)
                and self._logic.phase == "starting"
                and not (self._outputs.controller_listens and self._states_come()))

    def _connected(self) -> bool:
        return self._outputs.received and self._states_come() and bool(
            self.count_publishers(self._settings.effort_topic))

    def _states_come(self) -> bool:
        return bool(self.count_publishers("joint_states")) and (self._awake or not self._settings.activity_topic)

    def _get_acquainted(self, receipts: Receipts) -> None:
        """Wait for one answer of all receivers: messages before discovery is complete may be lost."""
        receipts.repeat() if receipts.missing else receipts.ask()
        if self._now - self._asked > self._logic.patience:
            self._asked = self._now
            self.get_logger().warning(f"no answer on {receipts.missing}: turns begin once there is one")

    def _on_receipts(self) -> None:
        self._acquainted = True
        if self._active and self._logic.on_receipt(self._now):
            self._go_on()

    def _go_on(self) -> None:
        if self._settling is None:
            self._step()
        else:
            self._settling.reset()

    def _on_shown(self, accepted: bool, message: str) -> None:
        self._showing = False
        if not self._active:
            return
        if not accepted:
            self._refused(message)
        elif self._early is not None:
            self._on_effort(self._early)

    def _on_activity(self, state: Fields) -> None:
        self._awake = True

    def _on_state(self, state: Fields) -> None:
        if not self._active:
            return
        if self._notice and state.stamp_ns < self.get_clock().now().nanoseconds + NEW:
            self._notice = ""
        interruption = self._logic.on_state(self._now, state.stamp_ns)
        if interruption is not None:
            self._interrupted(interruption)
        sent = self._sent.pop(state.stamp_ns, None)
        if sent is not None:
            acted = dict(zip(state.names, state.effort, strict=False))
            self._late_commands += any(acted.get(name) != effort for name, effort in sent.items())

    def _interrupted(self, event: Interruption) -> None:
        if event.kind == "pause":
            self.get_logger().info(f"the simulation stood still at {event.at:.3f} s for {event.seconds:.1f} s, and "
                                   "goes on")
            return
        self._expect_others()
        self.get_logger().warning(f"the simulation went back by {event.seconds:.3f} s, to {event.at:.3f} s: turns "
                                  "begin anew")

    def _expect_others(self) -> None:
        """Forget controllers and receivers, which may have been replaced."""
        self._awake = self._acquainted = False
        self._asked = self._now

    def _on_time_back(self, seconds: float) -> None:
        with self.lock:
            if not self._active or (self._stepper is not None and self._logic.phase == "starting"):
                return    # already shown by a state
            self._logic.on_reset(self._now)
            self._interrupted(Interruption("reset", self.get_clock().now().nanoseconds * 1e-9, seconds))
            self._notice = f"no joint state since the simulation was reset. {RESET_OF_GAZEBO}"
            self.get_logger().warning(RESET_OF_GAZEBO)

    def _on_effort(self, message: JointEffort) -> None:
        if not self._active:
            return
        if self._stepper is None:
            self._pass_on(message)
        elif self._showing:
            self._early = message
        elif self._logic.phase == "starting" and not (self._connected() and (
                self._acquainted or self._receipts is None)):
            return    # a running simulation, without receivers of the efforts so far
        elif self._logic.on_answer(self._now, nanoseconds(message.header.stamp)) and self._send(message):
            if self._receipts is None:
                self._go_on()
            else:
                self._receipts.ask()

    def _pass_on(self, message: JointEffort) -> None:
        """Forward an answer without stepping, once the receivers are there, so that no torque is lost."""
        self._listening = self._listening or not self._settings.receivers or self._outputs.received
        if self._listening:
            self._send(message)

    def _send(self, message: JointEffort) -> bool:
        try:
            sent = self._outputs.efforts(message)
        except RbdError as error:
            self.get_logger().error(str(error), throttle_duration_sec=1.0)
            return False
        if self._settings.stepper == "rbd":
            self._sent = {self._logic.target: sent, **dict(list(self._sent.items())[:9])}
        self._outputs.publish(message, sent)
        return True

    def _on_settled(self) -> None:
        self._settling.cancel()
        if self._active:
            self._step()

    def _step(self) -> None:
        assert self._stepper is not None
        self._stepper.step(self._settings.steps, self._on_stepped)

    def _on_stepped(self, accepted: bool, message: str) -> None:
        if not accepted:
            self._refused(message)

    def _refused(self, message: str) -> None:
        if self._logic is not None:
            self._logic.on_refused(self._now)
            self.get_logger().error(f"the simulation refuses: {message}", throttle_duration_sec=1.0)

    def _report(self) -> None:
        report: dict[str, Any] = {}
        with self.lock:
            if self._logic is not None:
                cycles = self._logic.counts["cycles"]
                report = {"mode": self._logic.phase, **self._logic.counts, "rate_hz": float(cycles - self._reported)}
                if self._settings.stepper == "rbd":    # no other simulation reports the acting effort
                    report["late_commands"] = self._late_commands
                self._reported = cycles
        self._reports.publish(diagnostic_array(self, self._status, self._active, report, self._notice))


def main(arguments: list[str] | None = None) -> None:
    """Entry point of executable `lockstep`."""
    run(LockstepNode, arguments)


if __name__ == "__main__":
    main()
