"""The Python of README.md runs as shown."""
from __future__ import annotations

import re
import shutil
from pathlib import Path

import numpy as np
import pytest

import rbd_ros as rbd

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")


@pytest.mark.filterwarnings("ignore::rbd_ros.RbdWarning")
def test_the_example_of_the_readme_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copy(rbd.sample_path("iiwa"), tmp_path / "my_robot.urdf")
    names: dict = {}
    (code,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    exec(code.replace("10_000", "10"), names)
    model, q, v, a, tau = (names[name] for name in ("model", "q", "v", "a", "tau"))
    np.testing.assert_allclose(rbd.forward_dynamics(model, q, v, tau), a, atol=1e-9)
    assert names["Q"].shape == (10, model.nq) and names["D"].a.shape == (model.nv, model.nv)


def test_files_that_the_readme_links_to_exist():
    root = Path(__file__).parents[1]
    links = [link for link in re.findall(r"\]\(([^)#]+)\)", README) if "://" not in link]
    assert links
    for link in links:
        assert (root / link).is_file(), link
