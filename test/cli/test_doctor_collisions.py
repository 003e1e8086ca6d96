"""`rbd doctor --collisions`: the SRDF that it writes, and what it says."""

import json

import pytest
from support.collisions import collision, robot

import rbd_ros as rbd
from rbd_ros.cli.main import main

pytest.importorskip("coal")
BALL, LONG = collision('<sphere radius="0.05"/>'), collision('<box size="0.05 0.05 0.5"/>')
ARM = robot(LONG, BALL, ("revolute",) * 3, BALL)


@pytest.fixture
def doctor(tmp_path, capsys):
    def run(text, *arguments):
        (tmp_path / "arm.urdf").write_text(text)
        code = main(["doctor", str(tmp_path / "arm.urdf"), "--collisions", str(tmp_path / "arm.srdf"), *arguments])
        return code, capsys.readouterr(), tmp_path / "arm.srdf"
    return run


def test_it_writes_what_is_read_back(doctor):
    code, printed, file = doctor(ARM)
    assert code == 0 and "6 pairs of links in 10000 random configurations: 3 neighbours" in printed.out
    assert f"written to {file}" in printed.out
    model = rbd.load_urdf(ARM)
    sampled = rbd.sampled_pairs(rbd.CollisionModel.from_urdf(ARM, model))
    assert rbd.CollisionModel.from_urdf(ARM, model, srdf=file).pairs == sampled.collisions.pairs
    assert 0 < len(sampled.collisions.pairs) < 6
    assert 'link1="l0" link2="l1" reason="Adjacent"/>    <!-- touches in 10000 of 10000 -->' in file.read_text()


def test_as_json(doctor):
    code, printed, file = doctor(ARM, "--json")
    found = json.loads(printed.out)["collisions"]
    assert code == 0 and found["file"] == str(file) and found["configurations"] == 10_000
    assert {"links": ["l0", "l1"], "touching": 10_000, "reason": "Adjacent"} in found["pairs"]
    assert any(pair["reason"] is None and 0 < pair["touching"] < 10_000 for pair in found["pairs"])


def test_what_cannot_be_sampled_is_said(doctor):
    code, printed, file = doctor(robot("", "", ("revolute",)))
    assert code == 1 and "no <collision> shapes" in printed.err and not file.exists()
    code, printed, _ = doctor(ARM, "--collisions", "/nowhere/arm.srdf")
    assert code == 1 and "cannot write '/nowhere/arm.srdf'" in printed.err
