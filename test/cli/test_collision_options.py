"""`rbd plan` and `rbd excite` with collision shapes: what is considered, and what is said of it."""
from __future__ import annotations

import csv
import sys

import numpy as np
import pytest
from support.collisions import collision, robot

import rbd_ros as rbd
from rbd_ros.cli.main import main

pytestmark = pytest.mark.filterwarnings("ignore::rbd_ros.RbdWarning")
LINK = collision('<cylinder radius="0.03" length="0.2"/>', '<origin xyz="0 0 0.15"/>')
ARM = robot("", LINK, ("revolute",) * 3, LINK).replace('effort="1"', 'effort="100"').replace(
    'velocity="1"', 'velocity="3"')
POST = "obstacles:\n- {name: post, shape: sphere, radius: 0.1, frame: [0.5, 0.0, 0.65]}\n"
ENDS = ["--from", "0.1", "0.1", "0.1", "--to", "1.6", "0.2", "0.2"]


@pytest.fixture
def cell(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "arm.urdf").write_text(ARM)
    (tmp_path / "post.yaml").write_text(POST)
    return tmp_path


def positions(path):
    with open(path) as file:
        return np.array([[float(row[f"position_j{k}"]) for k in range(3)] for row in csv.DictReader(file)])


def test_a_planned_motion_goes_around(cell, capsys):
    pytest.importorskip("coal")
    model = rbd.load_urdf(ARM)
    around = rbd.CollisionModel.from_urdf(ARM, model, obstacles=POST)
    plan = ["plan", "arm.urdf", *ENDS, "--duration", "3", "--objective", "jerk"]
    free = ["--no-collisions", "-o", "free.csv"]
    assert main([*plan, *free]) == 0
    assert "collisions are not considered: with itself, the table, or you\n" in capsys.readouterr().out
    assert around.collides(positions("free.csv")).any()
    assert main([*plan, "--obstacles", "post.yaml", "--clearance", "0.02", "-o", "around.csv"]) == 0
    said = capsys.readouterr().out
    assert "pairs of shapes must keep 0.02 m at all times" in said and "distance" in said
    assert around.distances(positions("around.csv")).min() > 0.0199
    assert main([*plan, "-o", "alone.csv"]) == 0    # of itself alone, by default
    assert "collisions: 1 pairs of shapes must keep 0.01 m" in capsys.readouterr().out


def test_what_is_contradictory_or_missing_is_said(cell, capsys):
    pytest.importorskip("coal")
    for options, words in ((["--obstacles", "post.yaml", "--no-collisions"], "expected one of them"),
                           (["--obstacles", "nowhere.yaml"], "nowhere.yaml"), (["--srdf", "no.srdf"], "no.srdf"),
                           (["--clearance", "-1"], "clearance")):
        assert main(["plan", "arm.urdf", *ENDS, *options]) == 1
        assert words in capsys.readouterr().err
    assert main(["plan", "arm.urdf", "--from", "0,0,0", "--to", "0.65,0,0", "--obstacles", "post.yaml"]) == 1
    assert "goal: 'l" in (said := capsys.readouterr().err) and "'post' overlap by 0." in said


def test_an_excitation_needs_collision_shapes_or_is_told(cell, capsys):
    assert main(["excite", "two_link", "-o", "motion.yaml", "--seconds", "1", "--duration", "3"]) == 1
    said = capsys.readouterr().err
    assert "With --no-collisions it goes on without them" in said and not (cell / "motion.yaml").exists()


def test_an_excitation_says_what_it_keeps_and_what_that_costs(cell, capsys):
    pytest.importorskip("coal")
    assert main(["excite", "arm.urdf", "-o", "motion.csv", "--seconds", "2", "--duration", "4", "--acceleration", "5",
                 "--obstacles", "post.yaml"]) == 0
    said = capsys.readouterr().out
    assert "distance      at least 0." in said and "without collisions it would be" in said
    assert "pairs of shapes must keep 0.01 m at all times" in said and "the straight way to its first point" in said
    q = np.loadtxt("motion.csv", delimiter=",", skiprows=1)[:, 1:4]
    model = rbd.load_urdf(ARM)
    assert not rbd.CollisionModel.from_urdf(ARM, model, obstacles=POST).collides(q, 0.009).any()


def test_without_coal_a_plan_says_so_and_an_excitation_is_refused(cell, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "coal", None)
    assert main(["plan", "arm.urdf", *ENDS, "--duration", "4"]) == 0
    assert "need the package coal, which is not installed" in capsys.readouterr().out
    assert main(["plan", "arm.urdf", *ENDS, "--obstacles", "post.yaml"]) == 1
    assert main(["excite", "arm.urdf", "-o", "motion.yaml"]) == 1
    assert "need the package coal" in capsys.readouterr().err
