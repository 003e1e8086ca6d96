"""scripts/: what they promise about the environment, signals and errors."""

import os
import re
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[1]
STALE = {
    "PYTHONPATH": "/nowhere",
    "PYTHONHOME": "/nowhere",
    "AMENT_PREFIX_PATH": "/nowhere",
    "CMAKE_PREFIX_PATH": "/nowhere",
    "LD_LIBRARY_PATH": "/nowhere",
    "ROS_DISTRO": "nosuch",
    "RMW_IMPLEMENTATION": "rmw_nosuch",
    "_ROS_WHEELS_BOOTSTRAP_COMPLETE": "1",
}
made_by_setup = pytest.mark.skipif(
    not (CHECKOUT / ".venv/stamps/environment").exists(), reason="no environment made by scripts/setup"
)
made_of_wheels = pytest.mark.skipif(
    not (CHECKOUT / ".venv/lib").exists() or not list((CHECKOUT / ".venv/lib").glob("python3*/site-packages/ros_*")),
    reason="the environment is not one of ROS wheels",
)


def script(name: str, *arguments: str, folder: Path = CHECKOUT, **environment: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [folder / "scripts" / name, *arguments], env=os.environ | environment, capture_output=True, text=True
    )


def bare_copy(folder: Path) -> Path:
    """The scripts and what scripts/setup reads, without an environment."""
    for name in ["scripts", "requirements", "rbd_interfaces", "resource"]:
        shutil.copytree(CHECKOUT / name, folder / name)
    return folder


def tools_without(folder: Path, *missing: str) -> str:
    """A PATH of links to all commands on the PATH except the missing ones (prefixes)."""
    folder.mkdir()
    for directory in os.environ["PATH"].split(os.pathsep):
        if not Path(directory).is_dir():
            continue
        for command in Path(directory).iterdir():
            link = folder / command.name
            if not command.name.startswith(missing) and not link.is_symlink():
                link.symlink_to(command)
    return str(folder)


@made_by_setup
@made_of_wheels
def test_run_replaces_stale_variables():
    program = "import os, rclpy, rbd_interfaces.msg; print(os.environ['ROS_DISTRO'])"
    result = script("run", "python", "-c", program, **STALE)
    assert result.stderr == ""
    distro = re.findall("^distro=(.*)$", (CHECKOUT / ".venv/stamps/environment").read_text(), re.MULTILINE)
    assert result.stdout.split() == (distro or ["jazzy"])


@made_by_setup
def test_run_keeps_traffic_private_and_the_domain_of_the_user():
    command = ["run", "sh", "-c", "echo $ROS_AUTOMATIC_DISCOVERY_RANGE $ROS_DOMAIN_ID"]
    assert script(*command, ROS_DOMAIN_ID="42").stdout == "LOCALHOST 42\n"
    discovery, domain = script(*command, ROS_DOMAIN_ID="").stdout.split()
    assert discovery == "LOCALHOST"
    assert 1 <= int(domain) <= 101


@made_by_setup
def test_run_becomes_the_command_so_that_signals_and_exit_codes_pass():
    command = subprocess.Popen([CHECKOUT / "scripts/run", "sh", "-c", "echo $$; exec cat"],
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert int(command.stdout.readline()) == command.pid
    command.send_signal(signal.SIGTERM)    # SIGINT may be ignored where these tests run in the background
    command.communicate()
    assert command.returncode == -signal.SIGTERM
    assert script("run", "sh", "-c", "exit 7").returncode == 7


def test_run_keeps_the_packages_of_the_caller(tmp_path):
    """Behind those of the environment, so that descriptions in a sourced workspace are found."""
    folder = bare_copy(tmp_path)
    (folder / ".venv/stamps").mkdir(parents=True)
    (folder / ".venv/stamps/environment").write_text("ros=wheels\ndistro=jazzy\n")
    command = ["run", "sh", "-c", "echo $AMENT_PREFIX_PATH"]
    assert script(*command, folder=folder, AMENT_PREFIX_PATH="/my:/other").stdout == f"{folder}/.venv:/my:/other\n"
    assert script(*command, folder=folder, AMENT_PREFIX_PATH="").stdout == f"{folder}/.venv\n"


@made_by_setup
def test_run_names_an_unknown_command():
    result = script("run", "nosuch")
    assert result.returncode != 0
    assert "'nosuch'" in result.stderr


@made_by_setup
def test_run_says_what_to_start_instead_of_ros2():
    if shutil.which("ros2"):
        pytest.skip("there is a command ros2")
    result = script("run", "ros2", "run", "rbd_ros", "feedforward")
    assert result.returncode != 0
    assert "`scripts/run NODE …`" in result.stderr


def test_run_without_environment_says_what_to_do(tmp_path):
    result = script("run", "true", folder=bare_copy(tmp_path))
    assert result.returncode != 0
    assert "scripts/setup" in result.stderr


@pytest.mark.parametrize(
    ("missing", "advice"),
    [
        (("c++", "g++", "clang++"), "apt install g++"),
        (("cmake",), "apt install cmake"),
        (("make",), "apt install make"),
        (("python3", "python"), "apt install python3 python3-venv python3-dev"),
    ],
)
def test_setup_names_a_missing_tool_in_one_line(tmp_path, missing, advice):
    path = tools_without(tmp_path / "bin", *missing)
    result = script("setup", folder=bare_copy(tmp_path / "checkout"), PATH=path, CXX="", PYTHON="", ROS_DISTRO="")
    assert result.returncode != 0
    assert advice in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("interpreter", "advice"),
    [
        ("sys.version_info = (3, 8, 10)", "Python 3.10 or newer is needed"),
        ("sys.modules['ensurepip'] = None", "apt install python3-venv"),
        ("import sysconfig; sysconfig.get_path = lambda name: '/nowhere'", "apt install python3-dev"),
        ("raise SystemExit(1)", "no working Python"),
    ],
)
def test_setup_names_what_an_interpreter_lacks(tmp_path, interpreter, advice):
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nexec python3 -c "import sys; {interpreter}; exec(sys.argv[2])" "$@"\n')
    python.chmod(0o755)
    result = script("setup", folder=bare_copy(tmp_path / "checkout"), PYTHON=str(python), ROS_DISTRO="")
    assert result.returncode != 0
    assert advice in result.stderr
    assert result.stderr.count("\n") == 1


def test_setup_names_the_distros_that_there_are_as_wheels(tmp_path):
    result = script("setup", folder=bare_copy(tmp_path / "checkout"), ROS_WHEELS="nosuch", ROS_DISTRO="")
    assert result.returncode != 0
    assert "ROS_WHEELS is nosuch: there are wheels of jazzy kilted." in result.stderr


def test_matrix_knows_its_rows():
    rows = script("matrix", "--list").stdout.split()
    assert {row.rsplit("-", 1)[0] for row in rows} == {
        f"3.{minor}-{distro}" for minor in range(10, 14) for distro in ("jazzy", "kilted")}
    assert {row.rsplit("-", 1)[1] for row in rows} == {"1.26", "2"}
    result = script("matrix", "3.9-jazzy-2")
    assert result.returncode != 0 and "3.9-jazzy-2" in result.stderr
    for path in re.findall(r"test/[\w/.]+", (CHECKOUT / "scripts" / "matrix").read_text()):
        assert (CHECKOUT / path).exists(), path
