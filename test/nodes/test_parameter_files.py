"""Parameter files that ROS does not take: a line that names file, line and fix, and a process that ends."""
from __future__ import annotations

import subprocess
import sys
from array import array

import harness
import pytest

from rbd_ros.core.errors import shown
from rbd_ros.runtime.parameter_files import problem_of

BAD = {    # content → what is said
    "feedforward:\n\tros__parameters:\n    autostart: false\n": "line 2: indented by a tab; YAML takes spaces only",
    "gains.kp: 1.0\n": "line 1: '1.0' is not below a node's name and ros__parameters; expected `NODE:`",
    "feedforward:\n  # gains\n  gains.kp: 1.0\n": "line 3: '1.0' is not below a node's name and ros__parameters",
    "feedforward:\n  ros__parameters:\n    gains.kp: [1.0, a]\n": "line 3: a list must hold values of one kind",
    "feedforward:\n  ros__parameters:\n    a: b: c\n": "line 3: not YAML: mapping values are not allowed here",
    "feedforward\n": "line 1: 'feedforward' is not below",
}


def started(name, *arguments):
    return subprocess.run([sys.executable, "-m", "rbd_executables", name, "--ros-args", *arguments], cwd=harness.ROOT,
                          capture_output=True, text=True, timeout=5.0 * harness.PATIENCE)


@pytest.mark.parametrize("content", BAD, ids=range(len(BAD)))
def test_what_is_wrong_with_a_file_is_said_with_its_line(content, tmp_path):
    path = tmp_path / "arm.yaml"
    path.write_text(content)
    assert problem_of(str(path)).startswith(f"parameter file {path}, {BAD[content]}")


def test_what_ros_takes_is_not_faulted(tmp_path):
    path = tmp_path / "arm.yaml"
    for content in ("", "# nothing\n", "/ns:\n  feedforward:\n    ros__parameters: {a: [1, 2], b: {c: x}}\n"):
        path.write_text(content)
        assert problem_of(str(path)) == ""
    for file in sorted((harness.ROOT / "config").rglob("*.yaml")):
        assert problem_of(str(file)) == "" or "ros__parameters" not in file.read_text()


def test_arrays_of_parameters_are_lists_in_messages():
    assert shown(array("d", [-1.0])) == "[-1.0]" and shown({"kp": array("q", range(20))}).endswith("11, ...]}")


@pytest.mark.parametrize(("name", "arguments", "words"), [
    ("feedforward", ["--params-file", "{}/none.yaml"], "none.yaml: No such file"),
    ("diagnostics_view", ["--params-file", "{}/tabs.yaml"], "tabs.yaml, line 2: indented by a tab"),
    ("simulator", ["-p", "gains.kp"], "Couldn't parse parameter override rule: '-p gains.kp'"),
    ("feedforward", ["-p", "use_sim_time:=5"], "'use_sim_time' to '5' of type 'INTEGER'")])
def test_a_node_ends_with_one_line(name, arguments, words, tmp_path):
    (tmp_path / "tabs.yaml").write_text(next(iter(BAD)))
    ended = started(name, *(argument.format(tmp_path) for argument in arguments))
    said = ended.stderr.splitlines()
    assert ended.returncode == 2 and said[-1].startswith("error: ") and words in said[-1], ended.stderr
    assert "Traceback" not in ended.stderr and "/src/" not in said[-1]
