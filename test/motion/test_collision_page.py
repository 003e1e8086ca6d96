"""The examples of docs/collision.md run as shown."""
from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from support.collisions import collision, robot
from support.pages import run

import rbd_ros as rbd

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
    (text,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    model = rbd.load_urdf(ARM)
    collisions = rbd.CollisionModel.from_urdf(ARM, model, obstacles=text)
    k = collisions.pairs.index(("flange", "floor"))
    assert collisions.distances(np.zeros(3))[k] == pytest.approx(0.6 + 0.05 + 0.8, abs=1e-9)
