"""Running a launch file under `ros2 launch`, and a node that talks to what it starts."""
from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from .answers import Answer
from .domains import private_domain_id
from .launch_files import CHECKOUT

PATIENCE = 300.0    # s: a deadline against hanging for ever; nodes may have to compile their kernels


class Launch:
    """`ros2 launch <file> <arguments>`, and a node that talks to what it starts."""

    def __init__(self, folder: Path, file: str, *arguments: str) -> None:
        import rclpy
        from rclpy.context import Context
        from rclpy.executors import SingleThreadedExecutor

        self._log = folder / "launch.log"
        # SIGINT as in a terminal, even if whoever runs the tests ignores it. A session of its own, so that it
        # reaches `ros2 launch` and what that started, and nobody else.
        with self._log.open("w") as log:
            self.process = subprocess.Popen(
                ["env", "--default-signal=INT", "ros2", "launch", "--noninteractive", CHECKOUT / "launch" / file,
                 "sigterm_timeout:=60", "sigkill_timeout:=60", *arguments], stdin=subprocess.DEVNULL, stdout=log,
                stderr=subprocess.STDOUT, start_new_session=True,
                env=os.environ | {"ROS_LOG_DIR": str(folder / "ros")})
        self.context = Context()
        rclpy.init(context=self.context, domain_id=int(os.environ["ROS_DOMAIN_ID"]))
        self.node = rclpy.create_node("peer", context=self.context)
        self._executor = SingleThreadedExecutor(context=self.context)
        self._executor.add_node(self.node)
        self.reports: dict[str, Any] = {}
        self._clients: dict[str, Any] = {}
        from diagnostic_msgs.msg import DiagnosticArray
        self.node.create_subscription(DiagnosticArray, "/diagnostics", self._on_diagnostics, 10)

    def _on_diagnostics(self, message: Any) -> None:
        self.reports.update({status.name: status for status in message.status})

    def wait_for(self, what: str, condition: Any, repeat: Any = lambda: None) -> Any:
        """Spin until `condition()` holds and return it, calling `repeat` every 2 ms."""
        deadline = time.monotonic() + PATIENCE
        while not (result := condition()):
            assert self.process.poll() is None, f"ended before {what}:\n{self.output()}"
            assert time.monotonic() < deadline, f"no {what} within {PATIENCE} s:\n{self.output()}\n{self.reports}"
            repeat()
            self._executor.spin_once(timeout_sec=0.002)
        return result

    def call(self, kind: Any, service: str, request: Any, repeat: Any = lambda: None) -> Any:
        if service not in self._clients:
            self._clients[service] = self.node.create_client(kind, service)
        client = self._clients[service]
        self.wait_for(service, client.service_is_ready, repeat)
        return self.wait_for(f"answer of {service}", Answer(lambda: client.call_async(request)).result, repeat)

    def ask(self, kind: Any, service: str, request: Any, repeat: Any) -> Any:
        """A good answer about the robot as it is: asked again where it stood still, so that its last state is old."""
        deadline = time.monotonic() + PATIENCE
        while not (answer := self.call(kind, service, request, repeat)).success:
            assert " s old" in answer.message and time.monotonic() < deadline, answer.message
        return answer

    def wait_for_active(self, *nodes: str, repeat: Any = lambda: None) -> None:
        from lifecycle_msgs.srv import GetState

        for name in nodes:
            self.wait_for(f"active {name}", lambda name=name: (
                name in self.reports and self.reports[name].message.startswith("active")), repeat)
            assert self.call(GetState, f"{name}/get_state", GetState.Request(), repeat).current_state.label == "active"

    def listen(self, kind: Any, topic: str) -> list[Any]:
        """A list that will hold the latest message of a topic."""
        latest: list[Any] = []
        self.node.create_subscription(kind, topic, lambda message: latest.__setitem__(slice(None), [message]), 10)
        return latest

    def at_rest(self, topic: str, names: Sequence[str], position: Sequence[float]) -> Callable[[], None]:
        """A function that publishes this joint state with the time at which it is called."""
        from sensor_msgs.msg import JointState

        publisher = self.node.create_publisher(JointState, topic, 1)
        message = JointState(name=list(names), position=list(position), velocity=[0.0] * len(names))

        def send() -> None:
            message.header.stamp = self.node.get_clock().now().to_msg()
            publisher.publish(message)

        return send

    def describe(self, topic: str, urdf: str) -> None:
        """Publish a robot description as robot_state_publisher does."""
        from rclpy.qos import DurabilityPolicy, QoSProfile
        from std_msgs.msg import String

        latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        self.node.create_publisher(String, topic, latched).publish(String(data=urdf))

    def end(self) -> str:
        """Ctrl-C as a terminal sends it: to `ros2 launch`, and to the nodes, which get it from `ros2 launch` once more.

        Every process must end by itself with code 0. Returns all the output.
        """
        os.killpg(self.process.pid, signal.SIGINT)
        code = self.process.wait(PATIENCE)
        output = self.output()
        assert code == 0, output
        assert "escalating" not in output and "has died" not in output and "Traceback" not in output, output
        assert output.count("process has finished cleanly") == output.count("process started with pid") > 0, output
        return output

    def output(self) -> str:
        return self._log.read_text()

    def close(self) -> None:
        self._executor.shutdown()
        self.node.destroy_node()
        self.context.try_shutdown()
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)    # passed on to the nodes, and to SIGTERM and SIGKILL after that
            self.process.wait(PATIENCE)


@pytest.fixture
def launch(tmp_path, monkeypatch):
    """Starts a launch file in a DDS domain of its own."""
    for module in ("launch_ros", "ros2launch"):
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"{module} is not importable: it comes with a ROS 2 installation only")
    if shutil.which("ros2") is None:
        pytest.skip("there is no command ros2 on the PATH")
    pytest.importorskip("rclpy", reason="rclpy is not importable: source ROS 2 or use scripts/test")
    pytest.importorskip("rbd_interfaces.msg", reason="rbd_interfaces is not built: scripts/setup does it")
    from ament_index_python.packages import PackageNotFoundError, get_package_prefix
    try:
        get_package_prefix("rbd_ros")
    except PackageNotFoundError:
        pytest.skip("package rbd_ros is not installed where ROS looks for it: source the workspace")
    monkeypatch.setenv("ROS_DOMAIN_ID", private_domain_id("launch"))
    monkeypatch.setenv("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
    started = []

    def start(file: str, *arguments: str) -> Launch:
        started.append(Launch(tmp_path, file, *arguments))
        return started[-1]

    yield start
    for item in started:
        item.close()
