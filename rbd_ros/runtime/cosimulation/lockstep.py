"""Order of events in lockstep with a simulation: state, answer, command, steps, next state. Without ROS.

| phase       | waits for                                | then                                              |
|-------------|------------------------------------------|---------------------------------------------------|
| `starting`  | the answer to any state                  | `stepping`, with that answer as the first command |
| `stepping`  | a state with a stamp at or after the target | `computing`                                    |
| `computing` | the answer to that state, by its stamp   | `sending`: the command goes out                   |
| `sending`   | receipts of the command's receivers, if requested     | `stepping`: the request for steps goes out |

Simulated time is only compared, never waited for: all waiting is for messages, with deadlines of a steady clock. A
stamp earlier than the previous one means that the simulation was reset: the cycle restarts. Times are in ns.
"""
from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ...core.errors import RbdError
from ..parameters import Parameter, Table, parameter, table_of, taken, validate

STEPPERS = ("rbd", "gazebo", "simulation_interfaces", "none")
PAUSE = 1_000_000_000    # ns of real time without progress after which a pause is reported


@dataclass(frozen=True, kw_only=True)
class LockstepSettings:
    """Validated parameters of node lockstep; period and patience in ns, settle in s."""

    names: Mapping[str, str]
    steps: int
    period: int
    patience: int
    stepper: str = parameter("rbd", "How the paused simulation is stepped: rbd: services <plant>/step and "
                             "<plant>/reset of nodes simulator and mujoco_plant; gazebo: /world/<world>/control "
                             "(ros_gz_interfaces/ControlWorld); simulation_interfaces: <plant>/step_simulation; none: "
                             "it runs by itself, and efforts are only passed on.", choices=STEPPERS, read_only=True)
    effort_topic: str = parameter("feedforward/effort", "Efforts (rbd_interfaces/JointEffort) that answer joint states "
                                  "by their stamp.", read_only=True)
    joints: tuple[str, ...] = parameter((), "Order of joints in <controller>/commands. Empty: as in the efforts.",
                                        read_only=True)
    controller: str = parameter("effort_controller", "Efforts go to <controller>/commands "
                                "(std_msgs/Float64MultiArray). Empty: none.", read_only=True)
    bridge_model: str = parameter("", "Efforts go to /model/<bridge_model>/joint/<joint>/cmd_force (std_msgs/Float64) "
                                  "for ros_gz_bridge; needs `joints`. Empty: none.", read_only=True)
    receivers: tuple[str, ...] = parameter((), "Names of nodes that must subscribe to the efforts before the first one "
                                           "is sent, such as the controller. With steps, they are asked after each one "
                                           "whether they have handled it (service get_parameters of the controller, or "
                                           "<name>/get_parameters), and no step is made before they answer. Empty: any "
                                           "subscriber, and nobody is asked.", read_only=True)
    activity_topic: str = parameter("", "With Gazebo's ros2_control: topic of a joint_state_broadcaster that is "
                                    "activated together with the controller; single steps are made until it publishes. "
                                    "Empty: until joint_states has a publisher and the commands a subscriber.",
                                    read_only=True)
    settle: float = parameter(0.0, "Real time between a command and the request for steps, s. The order of topics and "
                              "services through ros_gz_bridge is not defined: 0.01 for Gazebo. It begins when the "
                              "receivers have answered. Not needed for our plants.", lower=0.0, upper=1.0,
                              read_only=True)

    @staticmethod
    def from_values(values: Mapping[str, Any]) -> LockstepSettings:
        """Validate parameter values by name; missing ones get their defaults. Raises `RbdError`."""
        values = validate(LOCKSTEP_TABLE, values)
        steps = round(values["steps"])
        if steps != values["steps"]:
            raise RbdError(f"parameter 'steps' is {values['steps']:g}, expected a whole number")
        if not (values["controller"] or values["bridge_model"]):
            raise RbdError("parameters 'controller' and 'bridge_model' are empty: the efforts would go nowhere")
        if values["bridge_model"] and not values["joints"]:
            raise RbdError("parameter 'bridge_model' needs parameter 'joints': there is a topic per joint")
        return LockstepSettings(
            names={"plant": values["plant"], "world": values["world"]}, steps=steps,
            period=round(steps * values["step"] * 1e9), patience=round(values["patience"] * 1e9),
            **taken(LockstepSettings, values))


LOCKSTEP_TABLE: Table = (
    Parameter("plant", "string", "mujoco_plant", "Name of the simulation node; /gzserver for Gazebo's "
              "simulation_interfaces.", read_only=True),
    Parameter("world", "string", "default", "Name of Gazebo's world.", read_only=True),
    Parameter("step", "number", 0.001, "Integration step of the simulation, s.", lower=1e-9, upper=1.0,
              read_only=True),
    Parameter("steps", "number", 2.0, "Steps per command, a whole number.", lower=1.0, upper=1e6, read_only=True),
    Parameter("patience", "number", 5.0, "Real time after which a missing state is requested again and a missing "
              "answer, or receipt, is reported, s.", lower=0.01, upper=3600.0, read_only=True),
    *table_of(LockstepSettings),
)


def receipt_services(controller: str, receivers: Sequence[str]) -> list[str]:
    """Receipt services of the nodes that take the commands; topic `<controller>/commands` is in the controller's
    namespace.
    """
    return [f"{controller if controller.rpartition('/')[2] == name else name}/get_parameters" for name in receivers]


class Interruption(NamedTuple):
    """Interruption of simulated time: a `pause` at a time (s) with its duration in real time (s), or a `reset` to a
    time (s) with the size of the step back (s).
    """

    kind: str
    at: float
    seconds: float


class Lockstep:
    """Decides when to send a command and when to request steps.

    period: simulated time between two commands. patience: time without an answer or a state after which `overdue` is
    true; while `starting`, `retry` is the time between two attempts. receipts: whether `on_receipt` follows each
    command.
    """

    def __init__(self, period: int, patience: int, retry: int = 500_000_000, receipts: bool = False) -> None:
        self.period, self.patience, self.retry, self.receipts = period, patience, retry, receipts
        self.counts: Counter[str] = Counter({"cycles": 0, "overdue": 0, "refused": 0, "overshoots": 0, "unanswered": 0,
                                             "resets": 0, "pauses": 0})
        self.phase = "starting"
        self.stamp = -1         # stamp of the state to be answered
        self.target = 0         # stamp of the awaited state
        self._since = 0
        self._last = -1         # stamp of the last state
        self._advanced: int | None = None    # when the stamp last advanced
        self._runs = False

    def start(self, now: int) -> None:
        """Restart; the caller makes the simulation publish a state, now and whenever `overdue` is true."""
        self.phase, self.stamp, self.target, self._since = "starting", -1, 0, now
        self._last, self._advanced, self._runs = -1, None, False

    def on_reset(self, now: int) -> None:
        """Handle a backward jump of time."""
        self.counts["resets"] += 1
        self.start(now)

    def on_state(self, now: int, stamp: int) -> Interruption | None:
        """Take a state of this stamp; returns the interruption of simulated time before it, if any."""
        last, interruption = self._last, None
        if stamp < last and self.phase != "starting":
            self.on_reset(now)
            interruption = Interruption("reset", stamp * 1e-9, (last - stamp) * 1e-9)
        elif stamp > last:
            waited = 0 if self._advanced is None else now - self._advanced
            if self._runs and waited > PAUSE:
                self.counts["pauses"] += 1
                interruption = Interruption("pause", last * 1e-9, waited * 1e-9)
            self._runs = self._advanced is not None and waited <= PAUSE
            self._advanced = now
        self._last = stamp
        self._reach(now, stamp)
        return interruption

    def _reach(self, now: int, stamp: int) -> None:
        if self.phase == "starting":
            self.stamp = stamp
        elif self.phase == "stepping" and stamp >= self.target:
            self.counts["overshoots"] += stamp - self.target >= self.period
            self.phase, self.stamp, self._since = "computing", stamp, now

    def on_answer(self, now: int, stamp: int) -> bool:
        """Take the command that answers the state of this stamp; returns whether to send it, for the next steps.

        The answer may arrive before the state itself, over another connection. An answer to a later state is accepted,
        too: the awaited answer may be lost, and a paused simulation publishes no further state.
        """
        if self.phase == "stepping":
            self._reach(now, stamp)
        elif self.phase == "computing" and stamp > self.stamp:
            self.counts["unanswered"] += 1
            self.stamp = stamp
        if self.phase in ("sending", "stepping") or stamp != self.stamp:
            return False    # a repetition, or the answer to another state
        self.phase, self.target, self._since = "sending" if self.receipts else "stepping", stamp + self.period, now
        self.counts["cycles"] += 1
        return True

    def on_receipt(self, now: int) -> bool:
        """Take the receipt of the command by all receivers; returns whether to request steps."""
        if self.phase != "sending":
            return False
        self.phase, self._since = "stepping", now
        return True

    def on_refused(self, now: int) -> None:
        """Handle a refused request: the simulation made no steps."""
        self.counts["refused"] += 1

    def overdue(self, now: int) -> bool:
        """Whether `patience` has elapsed. In phases other than `computing` the caller repeats its request."""
        limit = self.retry if self.phase == "starting" else self.patience
        if now - self._since < limit:
            return False
        self.counts["overdue"] += self.phase != "starting"
        self._since = now
        return True
