"""`rbd demo guide`: the soft axis gives way, the wall holds, the peg goes in, and what was taught is played."""
from __future__ import annotations

import json

import pytest

from rbd_ros.cli.main import main


@pytest.mark.thorough
def test_a_soft_axis_a_wall_a_peg_and_a_hand(tmp_path, capsys):
    assert main(["demo", "guide", "-o", str(tmp_path)]) == 0
    assert "taught" in capsys.readouterr().out
    summary = json.loads((tmp_path / "summary.json").read_text())
    x, y, z = summary["moved_by_20_n_mm"]
    assert x < 12.0 and y < 12.0 and 60.0 < z < 140.0    # 10 mm, and 133 less what friction keeps
    assert 0.0 < summary["behind_the_wall_mm"] < 10.0
    assert all(25.0 < summary[f"peg_{kind}"]["depth_mm"] < 33.0 for kind in ("stiff", "soft"))
    assert summary["peg_soft"]["largest_n"] < summary["peg_stiff"]["largest_n"] < 40.0
    assert summary["hand_n"] < 25.0 and summary["played_off_mm"] < 10.0
    assert (tmp_path / "guide.png").stat().st_size > 10_000
