"""A robot is named in one way in all commands, and errors say what is read."""
from __future__ import annotations

import importlib
import re
import subprocess
import sys
import threading
from pathlib import Path
from xml.etree import ElementTree

import pytest

import rbd_ros as rbd
from rbd_ros.cli.main import COMMANDS, main
from rbd_ros.cli.files import waiting
from rbd_ros.cli.files.robot import description_of, load_robot

ROOT = Path(__file__).parents[2]
MORE = {"plan": ["--to", "1", "--from", "0"], "identify": ["recording.csv"], "float": ["recording.csv"],
        "retrace": ["taught.npz", "-o", "motion.yaml"], "compile": ["--functions", "mass_matrix"]}
NAMED = sorted(set(COMMANDS) - {"secure"})    # that one is for a node
XACRO = """<robot name="arm" xmlns:xacro="http://ros.org/wiki/xacro"><xacro:arg name="mass" default="1"/>
<link name="base"/><joint name="hinge" type="continuous"><parent link="base"/><child link="rod"/></joint>
<link name="rod"><inertial><mass value="$(arg mass)"/>
<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link></robot>
"""


@pytest.fixture
def given(tmp_path, monkeypatch):
    """What a command is given, instead of what it does."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "arm.urdf.xacro").write_text(XACRO)

    def of(*words):
        found = []
        module = importlib.import_module(f"rbd_ros.cli.{COMMANDS[words[0]][0]}")
        monkeypatch.setattr(module, "run", lambda namespace: found.append(namespace) or 0)
        assert main(words) == 0
        return found[0]

    return of


@pytest.mark.parametrize("command", NAMED)
def test_every_command_takes_a_sample_a_file_and_arguments_of_a_xacro_file(command, given):
    more = MORE.get(command, [])
    assert description_of(given(command, "two_link", *more)) == str(rbd.sample_path("two_link"))
    for words in (["arm.urdf.xacro mass:=3", *more], ["arm.urdf.xacro", "mass:=3", *more],
                  ["arm.urdf.xacro", *more, "mass:=3"], ["mass:=3", "arm.urdf.xacro", *more]):
        namespace = given(command, *words)
        assert description_of(namespace) == "arm.urdf.xacro mass:=3"
    assert load_robot(namespace).total_mass == 3.0


@pytest.mark.parametrize("command", NAMED)
def test_what_is_no_robot_is_told_what_is(command, given):
    namespace = given(command, "arm.sdf", *MORE.get(command, []))
    with pytest.raises(rbd.RbdError, match=r"'arm.sdf': there is no such file.*URDF.*\.xacro.*NAME:=VALUE.*two_link"):
        description_of(namespace)
    with pytest.raises(rbd.RbdError, match="sample two_link has no arguments"):
        description_of(given(command, "two_link", "mass:=3", *MORE.get(command, [])))


@pytest.mark.parametrize("words", [
    ["compile", "--urdf", "iiwa"], ["demo", "--urdf", "iiwa"], ["view", "--sample", "iiwa"],
    ["identify", "a.csv", "--urdf", "iiwa"]], ids=" ".join)
def test_what_was_written_once_is_still_read(words, given, capsys):
    namespace = given(*words)
    if words[0] == "identify":    # where the recording came first
        namespace.robot, namespace.recording = None, namespace.robot
    assert description_of(namespace) == str(rbd.sample_path("iiwa")) == description_of(namespace)
    assert capsys.readouterr().err == f"rbd {words[0]}: write the robot as `rbd {words[0]} iiwa`, without an option\n"


def test_results_go_to_o(given):
    for command in sorted({"plan", "sweep", "gazebo", "demo", "generate", "layouts", "excite", "identify",
                           "thresholds"}):
        assert str(given(command, "iiwa", *MORE.get(command, []), "-o", "out.yaml").output) == "out.yaml"
    assert given("secure", "feedforward", "-o", "out.xml").output == "out.xml"


def test_long_work_says_on_a_terminal_that_it_goes_on(capsys, monkeypatch):
    told = threading.Event()
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(sys.stderr, "flush", lambda: told.set())
    monkeypatch.setattr(waiting, "PATIENCE", 0.01)
    with waiting.waiting("searching", 10.0):
        assert told.wait(60.0)
    assert "searching: 0 s of at most 10 s" in capsys.readouterr().err
    monkeypatch.setattr(sys.stderr, "isatty", lambda: False)
    with waiting.waiting("searching", 10.0):
        pass
    assert capsys.readouterr().err == ""


def test_what_is_no_recording_is_told_what_is(tmp_path, capsys):
    (tmp_path / "notes.txt").write_text("")
    for name in ("notes.txt", "nowhere.mcap"):
        assert main(["identify", "two_link", str(tmp_path / name)]) == 1
        assert ".csv, .npz, or a bag (its folder, .db3, .mcap)" in capsys.readouterr().err


def test_the_version_is_that_of_the_manifest(capsys):
    with pytest.raises(SystemExit) as end:
        main(["--version"])
    assert end.value.code == 0
    version = ElementTree.parse(ROOT / "package.xml").findtext("version")
    assert capsys.readouterr().out == f"rbd_ros {version}\n" and rbd.__version__ == version
    for file in ("setup.py", "rbd_ros/__init__.py"):    # it stands nowhere else
        assert not re.search(r"\b\d+\.\d+\.\d+\b", (ROOT / file).read_text(encoding="utf-8")), file


def test_in_a_folder_that_is_not_installed_the_version_is_unknown(tmp_path):
    code = "import importlib.metadata as m\ndef no(name): raise m.PackageNotFoundError\nm.version = no\n" \
           "import rbd_ros; print(rbd_ros.__version__)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True).stdout == "unknown\n"
