"""Nodes under test in processes of their own, and a peer in this process that talks to them over DDS."""
from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import pytest

rclpy = pytest.importorskip("rclpy", reason="rclpy is not importable: source ROS 2 or use scripts/test")
pytest.importorskip("rbd_interfaces.msg", reason="rbd_interfaces is not built: scripts/setup does it")

from builtin_interfaces.msg import Time  # noqa: E402
from diagnostic_msgs.msg import DiagnosticArray  # noqa: E402
from rclpy.context import Context  # noqa: E402
from rclpy.executors import SingleThreadedExecutor  # noqa: E402
from rclpy.parameter import Parameter  # noqa: E402
from rclpy.parameter_client import AsyncParameterClient  # noqa: E402
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy  # noqa: E402
from sensor_msgs.msg import JointState  # noqa: E402

from rbd_interfaces.msg import JointEffort, JointReference  # noqa: E402
from rbd_ros.nodes.diagnostics_view import LEVELS  # noqa: E402
from support.answers import Answer  # noqa: E402
from support.forks import Fork, new_environment, same_environment  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 60.0    # s: a deadline against hanging for ever, not an expectation
RELIABLE = QoSProfile(depth=50)
LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
BEST_EFFORT = QoSProfile(depth=50, reliability=ReliabilityPolicy.BEST_EFFORT)


def driver_of(period: float, *robots: Mapping[str, float]) -> str:
    """Code for a process of its own that sends joint states, without a stamp: positions of these robots in turn."""
    return f"""
import itertools, rclpy
from sensor_msgs.msg import JointState
rclpy.init()
node = rclpy.create_node("driver")
publisher = node.create_publisher(JointState, "joint_states", 1)
messages = itertools.cycle([JointState(name=list(robot), position=list(robot.values()), velocity=[0.0] * len(robot))
                            for robot in {robots}])
node.create_timer({period}, lambda: publisher.publish(next(messages)))
rclpy.spin(node)
"""


control_loop = ""    # of nodes whose test does not choose one; fixture `each_control_loop` does
LOOPS = ("feedforward", "flatness", "simulator", "mujoco_plant", "lockstep")    # nodes that have one


class NodeProcess:
    """`python -m rbd_ros.nodes.<name>` with parameters; its output is in `output()`."""

    def __init__(self, folder: Path, name: str, arguments: Sequence[str] = (), python_path: Path | None = None,
                 **parameters: Any) -> None:
        if control_loop and name in LOOPS:
            parameters = {"control_loop": control_loop, **parameters}
        self._log = folder / f"{name}.log"
        self._log.write_text("")
        options = [item for key, value in parameters.items()
                   for item in ("-p", f"{key.replace('__', '.')}:={_yaml(value)}")]
        module, arguments = f"rbd_ros.nodes.{name}", ["--ros-args", *arguments, *options]
        changed = python_path is not None and (python_path / "sitecustomize.py").exists()
        if same_environment() and not changed:
            self.process: Fork | subprocess.Popen[bytes] = Fork(module, arguments, self._log, python_path)
            return
        environment = new_environment()
        if python_path is not None:    # before everything else
            environment["PYTHONPATH"] = os.pathsep.join([str(python_path), *filter(None, [os.getenv("PYTHONPATH")])])
        with self._log.open("w") as log:
            self.process = subprocess.Popen([sys.executable, "-m", module, *arguments], cwd=ROOT, env=environment,
                                            stdout=log, stderr=subprocess.STDOUT)

    def output(self) -> str:
        return self._log.read_text()

    def processor_time(self) -> float:
        """s."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def end(self, number: signal.Signals = signal.SIGINT) -> int:
        """Send a signal, wait, return the exit code."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        return self.process.wait(PATIENCE)

    def kill(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()


def _yaml(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_yaml(item) for item in value) + "]"
    return str(value)


class Peer:
    """Publishes joint states and references to a torque node and hears its efforts and diagnostics."""

    def __init__(self, target: str = "feedforward") -> None:
        self.target = target
        self.context = Context()
        rclpy.init(context=self.context, domain_id=int(os.environ["ROS_DOMAIN_ID"]))
        self.node = rclpy.create_node(f"peer_of_{target}", context=self.context)
        self.executor = SingleThreadedExecutor(context=self.context)
        self.executor.add_node(self.node)
        self.efforts: list[JointEffort] = []
        self.diagnostics: dict[str, str] = {}
        self.status = self.level = ""
        self._clients: dict[tuple[Any, str], Any] = {}
        self._parameters: dict[str, AsyncParameterClient] = {}
        self._stamps = itertools.count(1_000_000_000_000, 1_000_000)
        self._moving: Counter[str] = Counter()    # how often these positions were sent in motion
        self._states = self.node.create_publisher(JointState, "joint_states", RELIABLE)
        self._references = self.node.create_publisher(JointReference, f"{target}/reference", RELIABLE)
        self.node.create_subscription(JointEffort, f"{target}/effort", self.efforts.append, RELIABLE)
        self.node.create_subscription(DiagnosticArray, "/diagnostics", self._on_diagnostics, RELIABLE)

    def __enter__(self) -> Peer:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.executor.shutdown()
        self.node.destroy_node()
        rclpy.shutdown(context=self.context)

    def _on_diagnostics(self, message: DiagnosticArray) -> None:
        for status in message.status:
            if status.name.endswith(self.target):
                self.status, self.level = status.message, LEVELS[status.level]
                self.diagnostics = {item.key: item.value for item in status.values}

    def spin_until(self, condition: Callable[[], Any], what: str, repeat: Callable[[], Any] | None = None,
                   patience: float = PATIENCE) -> Any:
        """Spin until `condition` holds, calling `repeat` every 20 ms; fails after `patience` seconds."""
        deadline, due = time.monotonic() + patience, 0.0
        while not (result := condition()):
            now = time.monotonic()
            if now > deadline:
                pytest.fail(f"no {what} within {patience} s; status: {self.status}, {self.diagnostics}")
            if repeat is not None and now >= due:
                repeat()
                due = now + 0.02
            self.executor.spin_once(timeout_sec=0.01)
        return result

    def stamp(self) -> Time:
        """A new stamp, later than all before."""
        ns = next(self._stamps)
        return Time(sec=ns // 1_000_000_000, nanosec=ns % 1_000_000_000)

    def send_state(self, names: Sequence[str], q: Any, v: Any = (), effort: Any = (),
                   stamp: Time | None = None) -> Time:
        """Send a joint state. In motion, positions that were sent before are up to 1.2e-12 off, so that those with new
        stamps are not equal to the bit, as of a driver that repeats itself; by turns of seven, as messages are lost.
        """
        q = list(q)
        if stamp is None:
            stamp = self.stamp()
            if np.any(v):
                turn = self._moving[repr(q)] % 7
                self._moving[repr(q)] += 1
                q = [x + 2e-13 * turn for x in q] if turn else q
        message = JointState(name=list(names), position=q, velocity=list(v), effort=list(effort))
        message.header.stamp = stamp
        self._states.publish(message)
        return stamp

    def send_reference(self, names: Sequence[str], q: Any, v: Any = (), a: Any = (), jerk: Any = (), snap: Any = (),
                       stamp: Time | None = None) -> None:
        message = JointReference(name=list(names), position=list(q), velocity=list(v), acceleration=list(a),
                                 jerk=list(jerk), snap=list(snap))
        message.header.stamp = Time() if stamp is None else stamp
        self._references.publish(message)

    def answer(self, names: Sequence[str], q: Any, v: Any = ()) -> JointEffort:
        """The effort that answers this state: the one with its stamp."""
        sent: list[Time] = []
        self.efforts.clear()
        return self.spin_until(
            lambda: next((effort for effort in reversed(self.efforts) if effort.header.stamp in sent), None), "effort",
            lambda: sent.append(self.send_state(names, q, v)))

    def follow(self, publisher: Any, message: Any, agrees: Callable[[JointEffort, float], bool], names: Sequence[str],
               q: Any, v: Any = ()) -> None:
        """Send a trajectory until an answer to this state `agrees`; the number is the part of its time that passed.

        It begins ahead of the states, as one that comes late is taken up on the way, and is sent again after its end:
        the first one is lost where the node knows this publisher later than this one the node.
        """
        self.spin_until(lambda: publisher.get_subscription_count() > 0, "subscription")
        last = message.points[-1].time_from_start
        start = 0

        def follows() -> bool:
            nonlocal start
            effort = self.answer(names, q, v)
            stamp = effort.header.stamp
            s = (stamp.sec * 1_000_000_000 + stamp.nanosec - start) / (last.sec * 1_000_000_000 + last.nanosec)
            if s > 1.0:
                start = next(self._stamps) + 500_000_000
                message.header.stamp = Time(sec=start // 1_000_000_000, nanosec=start % 1_000_000_000)
                publisher.publish(message)
            return 0.0 < s < 1.0 and agrees(effort, s)

        self.spin_until(follows, "effort along the trajectory")

    def answer_close_to(self, expected: Any, names: Sequence[str], q: Any, v: Any = (), tolerance: float = 1e-9,
                        repeat: Callable[[], Any] | None = None) -> JointEffort:
        """The first answer to this state that equals `expected`: inputs on other topics may still be on their way."""
        last: list[JointEffort] = []

        def matches() -> JointEffort | None:
            last[:] = [self.answer(names, q, v)]
            return last[0] if np.allclose(last[0].effort, expected, rtol=0.0, atol=tolerance) else None

        deadline = time.monotonic() + PATIENCE
        while (found := matches()) is None:
            if time.monotonic() > deadline:
                pytest.fail(f"effort stays {list(last[0].effort)}, expected {list(expected)}; {self.diagnostics}")
            if repeat is not None:
                repeat()
        return found

    def client(self, kind: Any, service: str) -> Any:
        """The client of `call`."""
        if (kind, service) not in self._clients:
            self._clients[kind, service] = self.node.create_client(kind, service)
        return self._clients[kind, service]

    def call(self, kind: Any, service: str, request: Any) -> Any:
        client = self.client(kind, service)
        self.spin_until(client.service_is_ready, f"service {service}")
        return self.spin_until(Answer(lambda: client.call_async(request)).result, f"answer of {service}")

    def set_parameter(self, name: str, value: Any) -> Any:
        """Result of the attempt: `.successful`, `.reason`."""
        return self.set_parameters([(name, value)])[0]

    def set_parameters(self, changes: Sequence[tuple[str, Any]]) -> Any:
        """Results of the attempts, each for itself."""
        return self._ask_parameters("set_parameters", [Parameter(name, value=value) for name, value in changes]).results

    def get_parameters(self, names: Sequence[str]) -> Any:
        return self._ask_parameters("get_parameters", list(names)).values

    def _ask_parameters(self, what: str, content: Any) -> Any:
        if self.target not in self._parameters:
            self._parameters[self.target] = AsyncParameterClient(self.node, self.target)
        client = self._parameters[self.target]
        self.spin_until(client.services_are_ready, "parameter services")
        return self.spin_until(Answer(lambda: getattr(client, what)(content)).result,
                               f"answer about parameters {content}")
