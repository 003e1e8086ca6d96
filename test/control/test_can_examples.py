"""The examples of arms in MIT mode on SocketCAN, through their packages: each tracks better with a model's torque.

Below the packages is `support/can_socket.c`: the C library's sockets of PF_CAN are Unix sockets to the motors of
`support.can_stand_in`, whose loops and arm, in MuJoCo, go by 1 ms each while the example waits. Where the kernel has a
virtual CAN bus vcan0, they are on that, and nothing of the packages is replaced.
"""
from __future__ import annotations

import importlib.util
import os
import re
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from support.arm import arm, arm_urdf
from support.can_stand_in import HEAVIER, START

import rbd_ros as rbd

pytestmark = pytest.mark.closed_loop
TEST = Path(__file__).parents[1]
PACKAGES = {"openarm_arm": ["openarm_can"], "motorbridge_arm": ["motorbridge"],
            "lerobot_arm": ["lerobot", "torch", "can"]}
KP, KD, REACH = np.array([60.0, 30.0]), np.array([4.0, 1.5]), np.array([0.3, -0.4])


@pytest.fixture(scope="module")
def sockets(tmp_path_factory):
    """The library in front of the C library."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler for the stand-in of SocketCAN")
    library = tmp_path_factory.mktemp("sockets") / "can_socket.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-Wall", "-Werror", "-o", library, TEST / "support/can_socket.c",
                    "-ldl"], check=True)
    return library


def text(numbers):
    return ",".join(map(str, numbers))


def run(example, folder, bus, interface, **environment):
    """What an example prints, with motors on this bus."""
    for package in PACKAGES[example]:
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"package {package} is not installed")
    (folder / "arm.urdf").write_text(arm_urdf())
    (folder / "arm.yaml").write_text("feedforward:\n  ros__parameters: {rotor_inertia: [0.1, 0.02]}\n")
    paths = os.pathsep.join(map(str, [TEST, TEST.parent / "examples", TEST.parent, os.environ.get("PYTHONPATH", "")]))
    clock, here = folder / "clock", {**os.environ, "PYTHONPATH": paths, "HOME": str(folder)}
    with subprocess.Popen([sys.executable, "-m", "support.can_stand_in", clock, bus], env=here, text=True,
                          stdout=subprocess.PIPE) as motors:
        try:
            assert motors.stdout.readline() == "ready\n"
            done = subprocess.run(
                [sys.executable, "-W", "ignore", "-m", "support.on_can", clock, example, folder / "arm.urdf", interface,
                 "8009,4310", text(KP), text(KD), text(REACH)], env=here | environment, cwd=folder, text=True,
                capture_output=True, timeout=600, check=False)
        finally:
            motors.terminate()
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def judge(said):
    alone, helped = (float(re.search(rf"{what}: ([\d.]+) mrad", said)[1]) for what in (
        "by the gains alone", "with the torque of the model"))
    sag = 1e3 * HEAVIER * np.abs(rbd.gravity_effort(arm(), START) / KP).max()    # at the beginning, nearly
    assert sag < alone < 1.6 * sag and helped < 0.1 * alone, said
    assert "dropped" not in said and "repeats" not in said and "joint states are back" not in said


@pytest.mark.parametrize("example", PACKAGES)
def test_an_arm_tracks_better_with_the_torque_of_its_model(example, tmp_path, sockets):
    pytest.importorskip("mujoco")
    bus = tmp_path / "bus"
    judge(run(example, tmp_path, bus, "can0", LD_PRELOAD=str(sockets), CAN_STAND_IN=str(bus)))


@pytest.mark.parametrize("example", PACKAGES)
def test_it_does_on_the_virtual_bus_of_the_kernel(example, tmp_path):
    pytest.importorskip("mujoco")
    try:
        with socket.socket(socket.AF_CAN, socket.SOCK_RAW, socket.CAN_RAW) as line:
            line.bind(("vcan0",))
    except OSError:
        pytest.skip("the kernel has no virtual CAN bus vcan0")
    judge(run(example, tmp_path, "vcan0", "vcan0"))
