"""A simulated arm, started as README.md says, moves where examples/move_arm.py tells it to."""
from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest
from harness import ROOT, NodeProcess, Peer

README = (ROOT / "README.md").read_text(encoding="utf-8")
URDF, SIMULATOR, FEEDFORWARD, EXAMPLE = (line.split("    #")[0].rstrip() for line in re.findall(
    r"^(?:URDF=|scripts/run (?:simulator|feedforward|python examples)).*$", README, re.MULTILINE))


def move(*goals: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(ROOT), *filter(None, [os.getenv("PYTHONPATH")])])
    return subprocess.run([sys.executable, "examples/move_arm.py", *goals], cwd=ROOT, capture_output=True, text=True,
                          timeout=120, env=os.environ | {"PYTHONPATH": path})


@pytest.fixture(scope="module")
def arm(tmp_path_factory, private_domain):
    """Both nodes; a busy machine may pause between states."""
    processes = []
    try:
        for line, more in ((SIMULATOR, ("-p", "wait_for_command:=5.0")),
                           (FEEDFORWARD, ("-p", "state_timeout:=10.0"))):
            name, *arguments = line.replace("$URDF", URDF.removeprefix("URDF=")).split()[1:]
            assert arguments[0] == "--ros-args"
            processes.append(NodeProcess(tmp_path_factory.mktemp(name), name, [*arguments[1:], *more]))
        with Peer() as peer:
            peer.spin_until(lambda: float(peer.diagnostics.get("cycles", 0)) > 0, "joint state that is answered")
        yield processes
    finally:
        for process in processes:
            process.kill()


def test_the_arm_arrives(arm):
    result = move(*EXAMPLE.split("move_arm.py ")[1].split())
    assert result.returncode == 0, result.stderr
    assert re.search(r"^joint_1 +0\.(49|50)\d+  off by 0\.00", result.stdout, re.MULTILINE)
    assert len(result.stdout.splitlines()) == 7


def test_a_pose_beyond_the_limits_is_not_reached_and_the_log_says_why(arm):
    result = move("joint_4=-3.7")
    assert result.returncode == 1 and "not there" in result.stderr
    assert "joint 'joint_4' at -3.7 is beyond its limit -2.094" in arm[1].output()


def test_words_that_are_no_goals(arm):
    assert "no joint joint_9; the arm has joint_1" in move("joint_9=0.5").stderr
    assert "move_arm.py joint_1=0.5" in move().stderr
    assert "move_arm.py joint_1=0.5" in move("joint_1").stderr
