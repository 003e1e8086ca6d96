"""Launch files and what they refer to: what holds without launch_ros."""
from __future__ import annotations

import re
from typing import Any

import numpy as np
import yaml
from support.launch_files import CHECKOUT, calls, each_file, shared
from support.tables import TABLES

import rbd_ros as rbd
from rbd_ros.cli import demo_motion
from rbd_ros.runtime.parameters import validate


def names(parameters: dict[str, Any], section: str) -> dict[str, Any]:
    return parameters.get(section, {}).get("ros__parameters", {})


@each_file
def test_arguments_are_described_and_used(path):
    arguments = calls(path, "DeclareLaunchArgument") + shared(path)
    assert arguments
    for argument in arguments:
        assert re.fullmatch(r"[A-Z].{10,}\.", argument["description"]), argument["0"]
        assert "default_value" in argument, f"{argument['0']}: a launch file starts without arguments"
        if argument["default_value"] in ("true", "false"):
            assert argument["choices"] == ["true", "false"]
        else:    # what each choice means
            assert all(choice in argument["description"] for choice in argument.get("choices", []))
        assert argument["default_value"] in argument.get("choices", [argument["default_value"]])
    assert len({argument["0"] for argument in arguments}) == len(arguments)
    text = path.read_text()
    assert set(re.findall(r"(\w+):=", text)) <= {argument["0"] for argument in arguments}, "in the documentation"
    for argument in arguments:
        assert len(re.findall(rf'"{argument["0"]}"', text)) >= 2, f"argument {argument['0']} is not used"


@each_file
def test_executables_and_files_exist(path):
    scripts = re.findall(r'"(\w+) = rbd_executables:\w+"', (CHECKOUT / "setup.py").read_text())
    nodes = [node for node in calls(path, "Node") if node["package"] == "rbd_ros"]
    assert nodes
    for node in nodes:
        assert node["executable"] in scripts
        assert node["name"] == node["executable"]
    files = re.findall(r'"(\w+\.yaml)"', path.read_text())
    assert files
    assert all((CHECKOUT / "config" / file).is_file() for file in files)


@each_file
def test_nodes_of_robots_start_in_the_enclave_of_their_name(path):
    nodes = calls(path, "Node")
    enclaves = [call["1"] for call in calls(path, "secured")]
    if path.name in ("bringup.launch.py", "flatness.launch.py", "float.launch.py", "cartesian.launch.py",
                     "annotator.launch.py", "planner.launch.py", "server.launch.py", "observer.launch.py"):
        assert enclaves == [node["executable"] for node in nodes]
    else:
        assert not enclaves


@each_file
def test_is_run_by_a_test(path):
    tests = [file.read_text() for file in (CHECKOUT / "test").rglob("test_*launch.py")]
    assert any(f'launch("{path.name}"' in text for text in tests)


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
