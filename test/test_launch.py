"""Launch files: what they say holds; where launch_ros is installed, their nodes become active and end cleanly."""
from __future__ import annotations

import ast
import importlib.util
import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

import rbd_ros as rbd
from rbd_ros.cli import demo_motion
from rbd_ros.core.control.feedforward import FEEDFORWARD_TABLE
from rbd_ros.core.control.flatness import FLATNESS_TABLE
from rbd_ros.core.control.parameters import Table, validate
from rbd_ros.core.service.settings import SERVER_TABLE
from rbd_ros.core.simulation.settings import SIMULATOR_TABLE

CHECKOUT = Path(__file__).resolve().parents[1]
FILES = sorted((CHECKOUT / "launch").glob("*.launch.py"))
TABLES: dict[str, Table] = {"feedforward": FEEDFORWARD_TABLE, "flatness": FLATNESS_TABLE, "simulator": SIMULATOR_TABLE}
SERVED = TABLES | {"dynamics_server": SERVER_TABLE}
PATIENCE = 300.0    # s: a deadline against hanging for ever; nodes may have to compile their kernels
URDF = rbd.sample_path("two_link").read_text()
each_file = pytest.mark.parametrize("path", FILES, ids=[path.name for path in FILES])


# ---- what holds without launch_ros

def calls(path: Path, function: str) -> list[dict[str, Any]]:
    """Arguments of each call of `function` in a file: literals, and the syntax tree of what is none."""
    tree = compile(path.read_text(), str(path), "exec", flags=ast.PyCF_ONLY_AST)
    return [{str(index): literal(value) for index, value in enumerate(call.args)}
            | {str(item.arg): literal(item.value) for item in call.keywords}
            for call in ast.walk(tree) if isinstance(call, ast.Call) and getattr(call.func, "id", "") == function]


def literal(tree: ast.expr) -> Any:
    try:
        return ast.literal_eval(tree)
    except ValueError:
        return tree


def names(parameters: dict[str, Any], section: str) -> dict[str, Any]:
    return parameters.get(section, {}).get("ros__parameters", {})


@each_file
def test_arguments_are_described_and_used(path):
    arguments = calls(path, "DeclareLaunchArgument")
    assert arguments
    for argument in arguments:
        assert re.fullmatch(r"[A-Z].{10,}\.", argument["description"]), argument["0"]
        assert "default_value" in argument, f"{argument['0']}: a launch file starts without arguments"
        if argument["default_value"] in ("true", "false"):
            assert argument["choices"] == ["true", "false"]
        assert argument["default_value"] in argument.get("choices", [argument["default_value"]])
    assert len({argument["0"] for argument in arguments}) == len(arguments)
    text = path.read_text()
    assert set(re.findall(r"(\w+):=", text)) <= {argument["0"] for argument in arguments}, "in the documentation"
    for argument in arguments:
        assert len(re.findall(rf'"{argument["0"]}"', text)) >= 2, f"argument {argument['0']} is not used"


@each_file
def test_executables_and_files_exist(path):
    scripts = re.findall(r'"(\w+) = rbd_ros\.nodes\.\w+:main"', (CHECKOUT / "setup.py").read_text())
    nodes = [node for node in calls(path, "Node") if node["package"] == "rbd_ros"]
    assert nodes
    for node in nodes:
        assert node["executable"] in scripts
        assert node["name"] == node["executable"]
    files = re.findall(r'"(\w+\.yaml)"', path.read_text())
    assert files
    assert all((CHECKOUT / "config" / file).is_file() for file in files)


@pytest.mark.parametrize("node", SERVED)
def test_lists_stay_lists(node):
    # Where one file has a number and the next one a list, ROS takes the number.
    values = names(yaml.safe_load((CHECKOUT / f"config/{node}.yaml").read_text()), "/**")
    for row in SERVED[node]:
        assert isinstance(values[row.name], list) == (row.kind in ("numbers", "strings")), row.name


def test_demo_has_the_numbers_of_rbd_demo():
    parameters = yaml.safe_load((CHECKOUT / "config/demo.yaml").read_text())
    model = rbd.sample("iiwa")
    scenario = demo_motion.scenario(model, demo_motion.published_motion(), duration=10.0)
    for node in ("feedforward", "simulator"):
        validate(TABLES[node], names(parameters, "/**") | names(parameters, node))
    own = names(parameters, "feedforward")
    np.testing.assert_allclose(names(parameters, "/**")["rotor_inertia"], scenario.rotors, rtol=2e-3)
    np.testing.assert_allclose(own["gains.kp"], scenario.kp, rtol=2e-3)
    np.testing.assert_allclose(own["gains.kd"], scenario.kd, rtol=2e-3)


# ---- ros2 launch

class Launch:
    """`ros2 launch <file> <arguments>`, and a node that talks to what it starts."""

    def __init__(self, folder: Path, file: str, *arguments: str) -> None:
        from rclpy.context import Context
        from rclpy.executors import SingleThreadedExecutor

        import rclpy

        self._log = folder / "launch.log"
        # SIGINT as in a terminal, even if whoever runs the tests ignores it. A session of its own, so that the
        # signal reaches `ros2 launch` alone, which passes it on.
        with self._log.open("w") as log:
            self.process = subprocess.Popen(
                ["env", "--default-signal=INT", "ros2", "launch", "--noninteractive", CHECKOUT / "launch" / file,
                 *arguments], stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, start_new_session=True,
                env=os.environ | {"ROS_LOG_DIR": str(folder / "ros")})
        self.context = Context()
        rclpy.init(context=self.context, domain_id=int(os.environ["ROS_DOMAIN_ID"]))
        self.node = rclpy.create_node("peer", context=self.context)
        self._executor = SingleThreadedExecutor(context=self.context)
        self._executor.add_node(self.node)
        self.reports: dict[str, Any] = {}
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
        client = self.node.create_client(kind, service)
        self.wait_for(service, client.service_is_ready, repeat)
        future = client.call_async(request)
        self.wait_for(f"answer of {service}", future.done, repeat)
        return future.result()

    def wait_for_active(self, *nodes: str, repeat: Any = lambda: None) -> None:
        from lifecycle_msgs.srv import GetState

        for name in nodes:
            self.wait_for(f"active {name}", lambda name=name: (
                name in self.reports and self.reports[name].message.startswith("active")), repeat)
            assert self.call(GetState, f"{name}/get_state", GetState.Request(), repeat).current_state.label == "active"

    def end(self) -> str:
        """Interrupt; every process must end by itself with code 0. Returns all the output."""
        self.process.send_signal(signal.SIGINT)
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
    monkeypatch.setenv("ROS_DOMAIN_ID", str(103 + (os.getpid() + 49) % 98))
    monkeypatch.setenv("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
    started = []

    def start(file: str, *arguments: str) -> Launch:
        started.append(Launch(tmp_path, file, *arguments))
        return started[-1]

    yield start
    for item in started:
        item.close()


def publish_description(node: Any, topic: str) -> None:
    from rclpy.qos import DurabilityPolicy, QoSProfile
    from std_msgs.msg import String

    latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
    node.create_publisher(String, topic, latched).publish(String(data=URDF))


@each_file
def test_show_args_describes_everything(path, launch):
    result = subprocess.run(["ros2", "launch", path, "--show-args"], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    shown = re.findall(r"^    '(\w+)':\n        (.+)$", result.stdout, re.MULTILINE)
    assert sorted(name for name, _ in shown) == sorted(item["0"] for item in calls(path, "DeclareLaunchArgument"))
    assert not any("no description" in text for _, text in shown)


def test_refuses_what_is_no_choice(launch):
    result = subprocess.run(["ros2", "launch", CHECKOUT / "launch/demo.launch.py", "feedforward:=much"],
                            capture_output=True, text=True)
    assert result.returncode != 0
    assert "much" in result.stdout + result.stderr and "gravity" in result.stdout + result.stderr


def test_demo_moves_the_arm_where_it_is_told(launch):
    from rcl_interfaces.srv import GetParameters
    from sensor_msgs.msg import JointState
    from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

    demo = launch("demo.launch.py", "mass_scale:=1", "feedforward:=full")
    states: list[JointState] = []
    demo.node.create_subscription(JointState, "/joint_states", lambda message: states.__setitem__(slice(1), [message]),
                                  1)
    trajectories = demo.node.create_publisher(JointTrajectory, "/feedforward/joint_trajectory", 1)
    demo.wait_for_active("/simulator", "/feedforward")
    rotors = demo.call(GetParameters, "/simulator/get_parameters", GetParameters.Request(names=["rotor_inertia"]))
    assert len(rotors.values[0].double_array_value) == 7
    demo.wait_for("state and subscription", lambda: states and trajectories.get_subscription_count())
    goal = [0.5, 0.8, 0.0, -1.2, 0.0, 0.6, 0.0]
    point = JointTrajectoryPoint(positions=goal)
    point.time_from_start.sec = 2
    trajectories.publish(JointTrajectory(joint_names=[f"joint_{i}" for i in range(1, 8)], points=[point]))
    demo.wait_for("arm at its goal", lambda: np.allclose(states[0].position, goal, atol=0.01) and np.allclose(
        states[0].velocity, 0.0, atol=0.02))
    for name in ("/simulator", "/feedforward"):
        demo.reports.clear()
        demo.wait_for(f"good diagnostics of {name}",
                      lambda name=name: name in demo.reports and demo.reports[name].level == b"\x00")
    demo.end()


def test_bringup_drives_the_controller_it_is_given(launch):
    from sensor_msgs.msg import JointState
    from std_msgs.msg import Float64MultiArray

    bringup = launch("bringup.launch.py", "namespace:=arm", "joint_states:=/robot/joint_states",
                     "robot_description:=/robot/description", "controller:=/robot/effort_controller")
    node = bringup.node
    commands: list[Any] = []
    node.create_subscription(Float64MultiArray, "/robot/effort_controller/commands", commands.append, 10)
    publish_description(node, "/robot/description")
    states = node.create_publisher(JointState, "/robot/joint_states", 1)
    model = rbd.load_urdf(URDF)
    message = JointState(name=list(model.joint_names), position=[0.3, -0.5], velocity=[0.0, 0.0])

    def send() -> None:
        message.header.stamp = node.get_clock().now().to_msg()
        states.publish(message)

    bringup.wait_for_active("/arm/feedforward", repeat=send)
    gravity = rbd.gravity_effort(model, np.array(message.position))
    bringup.wait_for("gravity on the controller's topic", lambda: commands and np.allclose(
        commands[-1].data, gravity, atol=1e-9), send)
    bringup.end()


def test_flatness_publishes_the_derivatives_of_the_torque(launch):
    from sensor_msgs.msg import JointState

    from rbd_interfaces.msg import JointEffort, JointReference

    flatness = launch("flatness.launch.py", f"params_file:={CHECKOUT / 'config/flatness.yaml'}", "namespace:=arm",
                      "robot_description:=/robot/description", "joint_states:=/robot/joint_states")
    node = flatness.node
    efforts: list[Any] = []
    node.create_subscription(JointEffort, "/arm/flatness/effort", efforts.append, 10)
    publish_description(node, "/robot/description")
    states = node.create_publisher(JointState, "/robot/joint_states", 1)
    references = node.create_publisher(JointReference, "/arm/flatness/reference", 1)
    model = rbd.load_urdf(URDF)
    state = JointState(name=list(model.joint_names), position=[0.3, -0.5], velocity=[0.0, 0.0])
    motion = np.linspace(0.1, 1.0, 10).reshape(5, 2)
    reference = JointReference(name=list(model.joint_names), position=motion[0], velocity=motion[1],
                               acceleration=motion[2], jerk=motion[3], snap=motion[4])

    def send() -> None:
        state.header.stamp = node.get_clock().now().to_msg()
        states.publish(state)
        references.publish(reference)

    flatness.wait_for_active("/arm/flatness", repeat=send)
    effort = flatness.wait_for("valid derivatives", lambda: next((e for e in efforts[-1:] if e.derivatives_valid),
                                                                 None), send)
    expected = rbd.inverse_dynamics_time_derivatives(model, *motion)
    np.testing.assert_allclose([effort.effort, effort.effort_rate, effort.effort_acceleration], expected, atol=1e-9)
    flatness.end()


def test_bringup_leaves_outputs_and_life_cycle_to_others(launch, tmp_path):
    from lifecycle_msgs.srv import GetState
    from rcl_interfaces.srv import GetParameters

    file = tmp_path / "arm.yaml"
    file.write_text(yaml.safe_dump({"/**": {"ros__parameters": {
        "robot_description": URDF, "adapters": ["joint_state"], "joint_state.topic": "somewhere"}}}))
    bringup = launch("bringup.launch.py", f"params_file:={file}", "autostart:=false")
    state = bringup.call(GetState, "/feedforward/get_state", GetState.Request())
    assert state.current_state.label == "unconfigured"
    request = GetParameters.Request(names=["adapters", "joint_state.topic"])
    adapters, topic = bringup.call(GetParameters, "/feedforward/get_parameters", request).values
    assert list(adapters.string_array_value) == ["joint_state"]
    assert topic.string_value == "somewhere"
    bringup.end()
