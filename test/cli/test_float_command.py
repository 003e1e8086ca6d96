"""`rbd float`: verdict, number, exit code, page."""
from __future__ import annotations

import re

import numpy as np
import pytest
from support.recordings import periodic, record

import rbd_ros as rbd
from rbd_ros.cli.main import main

pytestmark = pytest.mark.filterwarnings("ignore::rbd_ros.RbdWarning")


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    """Of an arm whose second drive exerts 1.3 times what it says."""
    path = tmp_path_factory.mktemp("recorded") / "motion.npz"
    model = rbd.sample("iiwa").with_(friction=[2.0, 2.0, 1.0, 1.0, 0.5, 0.5, 0.3])
    found = record(model, periodic(model, 3, period=30.0, reach=0.5))
    np.savez(path, t=found.t, q=found.q, tau=found.tau / [1.0, 1.3, 1.0, 1.0, 1.0, 1.0, 1.0],
             joints=np.array(found.joints))
    return str(path)


def test_the_joint_and_its_gain_are_said(recording, tmp_path, capsys):
    page = tmp_path / "float.html"
    assert main(["float", "iiwa", recording, "--report", str(page)]) == 1
    said = capsys.readouterr().out
    assert "fail: joint_2 climbs" in said and "--gains joint_2=1.30" in said.replace("joint_2=1.3,", "joint_2=1.30,")
    assert all(len(line) <= 110 for line in said.splitlines())
    assert re.search(r"joint_2 +climbs +(> 105|< -105) ", said) and re.search(r"joint_1 +rests +0\.0 ", said)
    text = page.read_text()
    assert text.count("<circle") == 7 and text.count("#c03000") == 2 and "joint_2 climbs" in text


def test_with_its_gain_the_arm_passes(recording, capsys):
    assert main(["float", "iiwa", recording, "--gains", "joint_2=1.3"]) == 0
    assert "pass: every joint stays within the window" in capsys.readouterr().out
    assert main(["float", "iiwa", recording, "--window", "10", "--time", "1"]) == 0    # rad: wide enough for all


def test_wrong_arguments_are_refused(recording, capsys):
    for options, said in ((["--window", "0"], "window"), (["--body", "hand"], "body"), (["--gains", "x"], "--gains"),
                          (["--report", "/nowhere/page.html"], "cannot write")):
        assert main(["float", "iiwa", recording, *options]) == 1
        assert said in capsys.readouterr().err
