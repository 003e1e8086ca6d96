"""`rbd doctor --controllers`: parameter files of ros2_control's controllers that would drop an arm, or shake it."""
from __future__ import annotations

import argparse
import json
from pathlib import Path

import pytest

import rbd_ros as rbd
from rbd_ros.cli import doctor
from rbd_ros.core.errors import RbdError
from rbd_ros.runtime.controller_file import load_controllers

CONFIG = Path(__file__).parents[2] / "config"
JOINTS = ["shoulder", "elbow"]
GOOD = """\
controller_manager:
  ros__parameters:
    update_rate: 500
    effort_controller: {type: forward_command_controller/ForwardCommandController}
    holding_controller: {type: joint_trajectory_controller/JointTrajectoryController}
effort_controller:
  ros__parameters: {interface_name: effort, joints: [shoulder, elbow]}
holding_controller:
  ros__parameters:
    joints: [shoulder, elbow]
    command_interfaces: [effort]
    allow_nonzero_velocity_at_trajectory_end: true
    gains:
      shoulder: {p: 20.0, d: 2.0}
      elbow: {p: 20.0, d: 1.0}
"""
WRONG = {    # what is replaced by what → severity, topic, subject, words of message or fix
    "no rate": ("    update_rate: 500\n", "", "warning", "update rate", "controller manager", "means 100 Hz"),
    "slow": ("500", "50", "warning", "update rate", "controller manager", "is 50 Hz"),
    "joint": ("interface_name: effort, joints: [shoulder,", "interface_name: effort, joints: [sholder,", "error",
              "unknown joint", "effort_controller", "did you mean 'shoulder'"),
    "no joints": ("interface_name: effort, joints: [shoulder, elbow]", "interface_name: effort", "error", "no joints",
                  "effort_controller", "list the joints"),
    "timeout": ("    command_interfaces", "    cmd_timeout: 0.1\n    command_interfaces", "error", "cmd_timeout",
                "holding_controller", "0.1", "cmd_timeout: 0.0"),
    "velocity": ("at_trajectory_end: true", "at_trajectory_end: false", "note", "final velocity", "holding_controller",
                 "jtc"),
    "p 0": ("elbow: {p: 20.0", "elbow: {p: 0.0", "error", "no gain p", "holding_controller", "for elbow:"),
    "no p": ("shoulder: {p: 20.0, ", "shoulder: {", "error", "no gain p", "holding_controller", "for shoulder:"),
    "no d": (", d: 1.0", "", "warning", "no gain d", "holding_controller", "for elbow:"),
    "p": ("shoulder: {p: 20.0", "shoulder: {p: 20000.0", "warning", "position steps", "holding_controller shoulder",
          "1e+03 N m", "enforce_command_limits: true"),
    "d": ("d: 1.0", "d: 200.0", "note", "high gains", "holding_controller elbow", "less than 0.67 kg", "the rotor"),
    "fallback": ("interface_name: effort,", "interface_name: effort, fallback_controllers: [holding_controller],",
                 "warning", "fallback_controllers", "effort_controller", "spawner -p", "beside the controller's type"),
    "alone": ("command_interfaces: [effort]", "command_interfaces: [velocity]", "warning", "nothing holds the arm",
              "effort_controller", "generic_effort.yaml"),
    "without gains": ("p: 20.0", "p: 0.0", "warning", "nothing holds the arm", "effort_controller", "for ever"),
}


@pytest.fixture
def found(tmp_path):
    """Findings about a controllers file for the sample of two links."""
    def run(text):
        path = tmp_path / "controllers.yaml"
        path.write_text(text)
        return doctor.examine(rbd.sample_path("two_link"), controllers=path).findings
    return run


def test_a_good_file_adds_nothing(found):
    assert found(GOOD) == doctor.examine(rbd.sample_path("two_link")).findings
    assert found(GOOD.replace("[effort]", "[position, effort]").replace("p: 20.0", "p: 0.0")) == found(GOOD)
    assert found(GOOD.replace("Controller}", "Controller, fallback_controllers: [holding_controller]}")) == found(GOOD)
    assert found(GOOD.replace("shoulder: {p: 20.0", "shoulder: {p: 20000.0").replace(
        "update_rate: 500", "update_rate: 500\n    enforce_command_limits: true")) == found(GOOD)


@pytest.mark.parametrize("case", WRONG)
def test_finds(case, found):
    old, new, severity, topic, subject, *words = WRONG[case]
    assert old in GOOD
    hits = [each for each in found(GOOD.replace(old, new)) if (each.topic, each.subject) == (topic, subject)]
    assert len(hits) == 1 and hits[0].severity == severity
    assert all(word in hits[0].message + hits[0].fix for word in words), hits[0]


def test_gains_that_are_too_high_for_the_rotors_that_the_description_has(tmp_path):
    rotor = ('<transmission name="t"><joint name="elbow"/><actuator name="a"><drake:rotor_inertia value="0.1"/>'
             '</actuator></transmission></robot>')
    (tmp_path / "arm.urdf").write_text(Path(rbd.sample_path("two_link")).read_text().replace("</robot>", rotor).replace(
        "<robot ", '<robot xmlns:drake="http://drake.mit.edu" '))
    (tmp_path / "controllers.yaml").write_text(GOOD.replace("d: 1.0", "d: 200.0"))
    found = doctor.examine(tmp_path / "arm.urdf", controllers=tmp_path / "controllers.yaml").findings
    assert [each.severity for each in found if each.topic == "high gains"] == ["warning"]


def test_names_with_namespaces_wildcards_and_dots(found):
    flat = GOOD
    for old, new in (("controller_manager:", "/**/controller_manager:"),
                     ("\nholding_controller:", "\n/arm/holding_controller:"), ("    gains:\n", ""),
                     ("      shoulder: {p: 20.0, d: 2.0}", "    gains.shoulder.p: 20\n    gains.shoulder.d: 2.0"),
                     ("      elbow: {", "    gains.elbow: {")):
        assert old in flat
        flat = flat.replace(old, new)
    assert flat != GOOD and found(flat) == found(GOOD)


def renamed(names):
    """The iiwa with as many of its joints as there are names, called like that."""
    text = Path(rbd.sample_path("iiwa")).read_text()
    for i, name in enumerate(names, 1):
        text = text.replace(f'"joint_{i}"', f'"{name}"')
    return text


@pytest.mark.parametrize(("file", "topics"), [
    ("controllers/generic_effort.yaml", set()), ("controllers/generic_jtc.yaml", set()),
    ("controllers/generic_annotator.yaml", {"final velocity"}), ("controllers/iiwa_lbr.yaml", set()),
    ("controllers/generic_mit.yaml", set()), ("controllers/openarm.yaml", set()), ("controllers/big_yam.yaml", set()),
    ("controllers/z1.yaml", set()),
    ("controllers/ur.yaml", {"nothing holds the arm"}), ("controllers/franka.yaml", {"nothing holds the arm"}),
    ("gazebo_controllers.yaml", {"nothing holds the arm"})])
def test_shipped_files(tmp_path, file, topics):
    """For an arm with their names: nothing is wrong but what the robots' own control must hold."""
    controllers = load_controllers(CONFIG / file)
    joints = max((list(each.get("joints", [])) for each in controllers.parameters.values()), key=len)
    path = tmp_path / "arm.urdf"
    path.write_text(renamed(joints))
    report = doctor.examine(path, controllers=CONFIG / file)
    plain = doctor.examine(path)
    assert report.healthy
    assert {each.topic for each in report.findings if each not in plain.findings} - {"high gains"} == topics


def test_exit_code_and_json(tmp_path, capsys):
    path = tmp_path / "controllers.yaml"
    parser = argparse.ArgumentParser()
    doctor.add_arguments(parser)
    given = parser.parse_args([str(rbd.sample_path("two_link")), "--controllers", str(path), "--json"])
    for text, code in ((GOOD, 0), (GOOD.replace("p: 20.0", "p: 0.0"), 1), ("controller_manager: {}", 1)):
        path.write_text(text)
        assert doctor.run(given) == code
        said = json.loads(capsys.readouterr().out)
        assert said["healthy"] == (code == 0)
    assert "no controller found" in said["error"]


@pytest.mark.parametrize("text", ["- 1\n", "a: 1\n", "controller_manager: {ros__parameters: {a: {type: 3}}}\n",
                                  "a: {ros__parameters: 5}"])
def test_what_is_no_such_file(tmp_path, text):
    (tmp_path / "x.yaml").write_text(text)
    with pytest.raises(RbdError, match="no controller found"):
        load_controllers(tmp_path / "x.yaml")
