"""The examples of docs/collision.md run as shown."""
from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
import yaml
from support.collisions import collision, robot
from support.pages import run

import rbd_ros as rbd
from rbd_ros.runtime.control.effort_annotator import ANNOTATOR_TABLE
from rbd_ros.runtime.parameters import validate

pytest.importorskip("coal")
PAGE = (Path(__file__).parents[2] / "docs" / "collision.md").read_text(encoding="utf-8")
LINK = collision('<cylinder radius="0.04" length="0.2"/>', '<origin xyz="0 0 0.15"/>')
ARM = robot(LINK, LINK, ("revolute",) * 3, LINK).replace('"l3"', '"flange"').replace('effort="1"', 'effort="50"')


def test_the_example_runs_and_does_what_it_says(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my_robot.urdf").write_text(ARM)
    names: dict = {}
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    run(code, names, "collision.md")
    near, collisions = names["near"], names["collisions"]
    assert not collisions.collides(names["q"], margin=0.01)
    assert 0 < len(near.pairs) < len(collisions.pairs) and (near.distances <= 0.3).all()
    assert names["path"].found and names["motion"].good and collisions.certify(names["motion"], 0.01).clear
    assert collisions.certify([names["q"], names["goal"]], 0.01).clear
    assert {"gripper", "table", "floor"} < set(collisions.piece_names)


def test_the_obstacles_are_read():
    text = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)[0]
    model = rbd.load_urdf(ARM)
    collisions = rbd.CollisionModel.from_urdf(ARM, model, obstacles=text)
    k = collisions.pairs.index(("flange", "floor"))
    assert collisions.distances(np.zeros(3))[k] == pytest.approx(0.6 + 0.05 + 0.8, abs=1e-9)
    assert [name for name in collisions.piece_names if "scan" in name] == ["scan/0", "scan/1"]    # of three points


def test_the_parameters_beside_moveit_are_those_of_the_annotator():
    text = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)[1]
    values = yaml.safe_load(text)["effort_annotator"]["ros__parameters"]
    assert values.pop("input_limits.bytes") > 65536    # of all nodes
    assert validate(ANNOTATOR_TABLE, values)["collisions.reject"] is True
