"""examples/calibrate.py has the commands of docs/calibration.md, and its arms fail before them and pass after."""
from __future__ import annotations

import importlib.util
import re
import subprocess
import sys

import numpy as np
import pytest
from support.pages import ROOT, blocks

from rbd_ros.core.motion.periodic_motion import PeriodicMotion

spec = importlib.util.spec_from_file_location("calibrate", ROOT / "examples" / "calibrate.py")
calibrate = importlib.util.module_from_spec(spec)
spec.loader.exec_module(calibrate)


def test_the_commands_are_those_of_the_page():
    shown = [block.code for block in blocks("bash") if block.page == "docs/calibration.md"
             and "examples/calibrate.py" in block.reason]
    assert "".join(shown) == "".join(calibrate.COMMANDS.values()) and len(shown) == 6


@pytest.mark.filterwarnings("ignore::rbd_ros.RbdWarning")
def test_what_is_recorded_has_the_load_and_the_gains(tmp_path):
    pytest.importorskip("rosbags")
    rbd = calibrate.rbd
    arm = calibrate.Arm("", calibrate.STAND_IN, "", 1.0, 0.0, (2.0, 4.0), 0.0, 3.0, 0.0)
    robot = calibrate.Robot(arm, rbd.sample_path("iiwa"), tmp_path)
    model = rbd.sample("iiwa")
    q = np.array([0.0, 1.0, 0.0, -1.0, 0.0, 0.5, 0.0])
    PeriodicMotion(np.vstack([q, np.zeros((2, 7))]), 1.0, 1).write_trajectory(
        tmp_path / "rest.yaml", model.joint_names, 10.0)
    for bag, truth in (("bare_bag", model), ("loaded_bag", robot.carrying(model, 3.0))):
        robot.play("rest.yaml", bag)
        found = rbd.Recording.load(tmp_path / bag)
        assert found.joints == model.joint_names and len(found.t) == 100
        wanted = rbd.gravity_effort(truth, q) / [2.0, 4.0, 1.0, 1.0, 1.0, 1.0, 1.0]
        np.testing.assert_allclose(found.tau.mean(axis=0), wanted, rtol=0.01, atol=1e-6)


@pytest.mark.thorough
@pytest.mark.parametrize("kind, reason", [
    ("ur", r"fail: shoulder_lift_joint climbs.*true torque is (?:9\.9|10\.0)\d+ ± 0\.\d+ times what the drive of"),
    ("franka", r"a load is missing in the model: 0\.5\d* ± 0\.0\d+ kg at .* m of\s+panda_hand"),
    ("mit", r"fail: joint2 climbs, joint3\s+climbs.*joint2 +1\.3 .*joint3 +1\.(?:3|299) ")])
def test_an_arm_is_calibrated(kind, reason, tmp_path):
    pytest.importorskip("rosbags")
    if calibrate.description(calibrate.ARMS[kind].source) is None:
        pytest.skip("needs example-robot-data")
    result = subprocess.run([sys.executable, "examples/calibrate.py", kind, str(tmp_path / "new")], cwd=ROOT, text=True,
                            capture_output=True, timeout=300)
    assert result.returncode == 0, result.stdout + result.stderr
    assert re.search(reason, result.stdout, re.DOTALL), result.stdout
    assert result.stdout.endswith("before fail, after pass\n")
