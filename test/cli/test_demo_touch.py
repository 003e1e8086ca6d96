"""`rbd demo touch`: the push is felt, the arm yields and arrives all the same, and the load is weighed."""
from __future__ import annotations

import json

import pytest

from rbd_ros.cli.main import main


@pytest.mark.thorough
def test_the_push_is_felt_and_the_load_is_weighed(tmp_path, capsys):
    assert main(["demo", "touch", "-o", str(tmp_path)]) == 0
    assert "felt" in capsys.readouterr().out
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert summary["false_alarms"] == 0 and summary["force_at_detection_n"] < 25.0
    assert summary["led_rad"] > 0.2 and summary["goal_missed_rad"] < 0.01
    assert summary["largest_error_of_force_n"] < 10.0    # of 63 N, behind a filter of 20 ms
    assert abs(summary["load_found_kg"] - 3.0) < 0.15
    assert summary["off_mrad"]["known"] < 0.4 * summary["off_mrad"]["unknown"]
    assert (tmp_path / "touch.png").stat().st_size > 10_000
