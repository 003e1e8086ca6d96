"""The peer of a node under attack: sends messages, records deliveries, and receives all outputs."""
from __future__ import annotations

import math
import os
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

import rclpy
from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import PoseStamped, TwistStamped, WrenchStamped
from lifecycle_msgs.msg import State, Transition
from lifecycle_msgs.srv import ChangeState, GetState
from rcl_interfaces.srv import SetParameters, SetParametersAtomically
from rclpy.context import Context
from rclpy.executors import SingleThreadedExecutor
from rclpy.parameter import Parameter
from sensor_msgs.msg import JointState
from std_msgs.msg import Bool
from std_srvs.srv import SetBool, Trigger
from trajectory_msgs.msg import JointTrajectory, MultiDOFJointTrajectory

from rbd_interfaces.msg import JointReference, NamedWrenches

from .hostile import Sent
from .outputs import QUEUE, Outputs
from .targets import CARTESIAN, Process, Target
from .verdict import NOTHING, Ledger

PATIENCE = 30.0    # s: against hanging for ever
TURN = 0.05        # s: the most that one turn of waiting counts; a longer one was of a machine that stood still
MOST = 20          # violations that are written down


class Violation(Exception):
    """The node no longer answers."""


class Peer:
    """Talks to one node over DDS. Each violation is written to the folder, with what was sent before it."""

    def __init__(self, target: Target, process: Process, folder: Path, seed: int) -> None:
        self.target, self.process, self._folder, self._seed = target, process, folder, seed
        self.context = Context()
        rclpy.init(context=self.context, domain_id=int(os.environ["ROS_DOMAIN_ID"]))
        node = self.node = rclpy.create_node("attacker", context=self.context)
        self._ear = rclpy.create_node("listener", context=self.context)    # in no executor: messages are taken
        self._executor = SingleThreadedExecutor(context=self.context)
        self._executor.add_node(node)
        self.outputs = Outputs(self._ear, target, self.offend)
        self.violations: list[str] = []
        self.ledger, self.looks = Ledger(), False    # whether joint states are surely looked at
        self.sent = self.states = 0
        self._recent: deque[tuple[float, Any]] = deque(maxlen=100)
        self._stamp, self._begin = 0, time.monotonic_ns()
        self.diagnostics: dict[str, str] = {}
        self.heard = 0       # diagnostics
        self._rated: set[str] = set()    # parameters by which a rate limit stretches other limits' coming
        name = target.executable
        kinds: dict[str, tuple[Any, str]] = {"state": (JointState, "joint_states")}
        if name == "cartesian":
            kinds |= {key: (kind, f"{name}/{CARTESIAN[key]}") for key, kind in (
                ("goal", PoseStamped), ("twist", TwistStamped), ("course", MultiDOFJointTrajectory),
                ("push", WrenchStamped))} | {"pushed": (WrenchStamped, "pushed")}
        else:
            kinds |= {"reference": (JointReference, f"{name}/reference"),
                      "trajectory": (JointTrajectory, f"{name}/joint_trajectory"),
                      "wrenches": (NamedWrenches, f"{name}/external_wrenches")}
        if target.motors:
            kinds["motors"] = JointState, "motor_states"
        self.topics = list(kinds)
        self.publishers = {key: node.create_publisher(kind, topic, QUEUE) for key, (kind, topic) in kinds.items()}
        self.stops = node.create_publisher(Bool, f"{name}/emergency_stop", QUEUE)
        self._clients = {kind: node.create_client(kind, f"{name}/{service}") for kind, service in (
            (ChangeState, "change_state"), (GetState, "get_state"), (SetParameters, "set_parameters"),
            (SetParametersAtomically, "set_parameters_atomically"), (Trigger, "reset"))}
        if name == "cartesian":
            self._clients[SetBool] = node.create_client(SetBool, f"{name}/guide")
        node.create_subscription(DiagnosticArray, "/diagnostics", self._on_diagnostics, 50)

    def close(self) -> None:
        self._executor.shutdown()
        self.node.destroy_node()
        self._ear.destroy_node()
        rclpy.shutdown(context=self.context)

    def _on_diagnostics(self, message: Any) -> None:
        for status in message.status:
            if status.name == f"/{self.target.executable}":
                self.diagnostics = {item.key: item.value for item in status.values}
                self.heard += 1

    # ---- violations

    def offend(self, what: str, message: Any = None) -> None:
        """Record a violation, once of each kind."""
        if what in self.violations or len(self.violations) >= MOST:
            return
        self.violations.append(what)
        file = self._folder / f"{self.target.name}-{self._seed}-{len(self.violations)}.txt"
        lines = [f"{what}\n", f"node {self.target.name}, seed {self._seed}, after {self.sent} messages",
                 f"received: {message!r}", f"diagnostics: {self.diagnostics}", "sent before, the last one first:"]
        now = time.monotonic()
        lines += [f"  {1e3 * (now - at):9.1f} ms ago: {_shown(item)}" for at, item in reversed(self._recent)]
        file.write_text("\n".join(lines) + "\n")
        print(f"\n  VIOLATION, {self.target.name}: {what} ({file})", flush=True)

    # ---- time

    def stamp(self) -> int:
        """A new stamp in ns, later than all before, in pace with the clock."""
        self._stamp = max(self._stamp + 1000, 1_000_000_000_000 + time.monotonic_ns() - self._begin)
        return self._stamp

    def spin(self, seconds: float = 0.0) -> None:
        """Receive messages for at least this time."""
        end = time.monotonic() + seconds
        while True:
            self._executor.spin_once(timeout_sec=0.0)
            taken = self.outputs.take()
            if time.monotonic() >= end:
                return
            if not taken:
                time.sleep(2e-4)

    def until(self, condition: Callable[[], Any], what: str, repeat: Callable[[], Any] | None = None,
              patience: float = PATIENCE) -> Any:
        """Spin until the condition holds, calling `repeat` every 5 ms; `Violation` after `patience` s in which this
        process could run: where it is starved, so is the node.
        """
        waited, last, due = 0.0, time.monotonic(), 0.0
        while not (found := condition()):
            now = time.monotonic()
            waited, last = waited + min(now - last, TURN), now
            if waited > patience or self.process.ended:
                self.offend(f"the process ended while waiting for {what}" if self.process.ended else
                            f"no {what} within {patience:g} s")
                raise Violation(what)
            if repeat is not None and now >= due:
                repeat()
                due = now + 5e-3
            self.spin(5e-4)
        return found

    # ---- sending

    def send(self, item: Sent) -> None:
        """Publish a message, and record its expected verdict."""
        state = item.topic == "state"
        self.ledger.sent(item.verdict, self.looks or not state)
        self.states += state
        self.sent += 1
        self._recent.append((time.monotonic(), item))
        self.publishers[item.topic].publish(item.message)

    def note(self, what: str) -> None:
        """For the record of what was sent."""
        self._recent.append((time.monotonic(), what))

    def answer(self, make: Any, patience: float = PATIENCE) -> None:
        """Good states of `make` until one is answered, as the node must within some timeouts: what came before is done
        then.
        """
        stamps: set[int] = set()

        def ask() -> None:
            stamp = self.stamp()
            if self.target.motors:
                self.send(Sent("motors", make.motors(stamp), NOTHING))
            self.send(Sent("state", make.state(stamp), NOTHING))
            stamps.add(stamp)

        self.until(lambda: self.outputs.last_stamp in stamps, "answer to good states", ask, patience)

    def call(self, kind: Any, request: Any, repeat: Callable[[], Any] | None = None,
             patience: float = PATIENCE) -> Any:
        """The answer of a service, which may take `patience` s to appear; `repeat` goes on meanwhile."""
        client = self._clients[kind]
        self.until(client.service_is_ready, f"service {client.srv_name}", repeat, patience)
        future = client.call_async(request)
        self.until(future.done, f"answer of {client.srv_name}", repeat)
        return future.result()

    def change(self, transition: int, repeat: Callable[[], Any] | None = None) -> bool:
        """A transition of the life cycle; while it lasts nobody knows which joint states are looked at."""
        self.note(f"transition {transition}")
        self.looks = False
        done = bool(self.call(ChangeState, ChangeState.Request(transition=Transition(id=transition)), repeat).success)
        self.looks = self.call(GetState, GetState.Request()).current_state.id == State.PRIMARY_STATE_ACTIVE
        return done

    def reset(self) -> None:
        """Release the emergency stop."""
        self.note("reset")
        self.call(Trigger, Trigger.Request())

    def guide(self, on: bool) -> None:
        """Begin or end hand guiding, of node cartesian."""
        self.note(f"guide {on}")
        self.ledger.possible += 1    # may be refused, which counts
        self.call(SetBool, SetBool.Request(data=on))

    def set(self, changes: dict[str, Any]) -> list[Any]:
        """Set parameters, each for itself; the results."""
        self.note(f"parameters {changes}")
        asked = time.time_ns()
        limits = {"effort_limits.maximum": self.outputs.limits,
                  "motor_effort_limits.maximum": self.outputs.motor_limits}
        for name in limits.keys() & changes.keys():
            value = changes[name][0] if isinstance(changes[name], list) else math.nan
            limits[name].ask(value if value >= 0.0 else math.inf, asked)
        request = SetParameters.Request(parameters=[
            Parameter(name, value=value).to_parameter_msg() for name, value in changes.items()])
        results = self.call(SetParameters, request).results
        for (name, value), result in zip(changes.items(), results, strict=True):
            if name.endswith("effort_limits.rate") and result.successful:
                self._rated = self._rated | {name} if value[0] < 1e100 else self._rated - {name}
                if self._rated:
                    for each in limits.values():
                        each.stretch(asked - 1e9, 5e9)
            if name in limits:
                limits[name].answer(result.successful, time.time_ns(), 5e9 if self._rated else 0.0)
        return list(results)


def _shown(item: Any) -> str:
    text = repr(item)
    return text if len(text) < 3000 else text[:3000] + "…"
