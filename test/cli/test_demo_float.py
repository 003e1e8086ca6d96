"""`rbd demo float`: the wrong torque constant fails the test and is named, the calibrated arm passes."""
from __future__ import annotations

import json

import pytest

from rbd_ros.cli.main import main


@pytest.mark.thorough
def test_the_wrong_drive_is_named_and_the_calibrated_arm_passes(tmp_path, capsys):
    assert main(["demo", "float", "-o", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert "fail: joint_4" in said and "calibrated  float test: pass" in said
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert summary["found"].keys() == {"joint_4"} and abs(summary["found"]["joint_4"] - 1.3) < 0.02
    assert [run["failed"] for run in summary["runs"].values()] == [["joint_4"], []]
    assert all(run["as_predicted"] for run in summary["runs"].values())
    assert (tmp_path / "float.png").stat().st_size > 10_000
