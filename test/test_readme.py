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
    for code in re.findall(r"```python\n(.*?)```", README, re.DOTALL):
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


def test_lines_are_not_longer_than_those_of_the_code():
    """But for rows of tables, which cannot be broken."""
    root = Path(__file__).parents[1]
    files = [*root.glob("*.md"), *root.glob("*.rst"), *root.glob("docs/*.md"), *root.glob("config/**/*.yaml")]
    assert len(files) > 20
    long = [f"{file.relative_to(root)}:{number}" for file in files
            for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1)
            if len(line) > 120 and not line.startswith("|")]
    assert not long, long


def test_commands_for_a_workspace_are_found_there():
    """setup.cfg puts all executables into lib/rbd_ros, where `ros2 run` looks for them and a shell does not."""
    root = Path(__file__).parents[1]
    assert "install_scripts=$base/lib/rbd_ros" in (root / "setup.cfg").read_text()
    pages = [README, *(page.read_text(encoding="utf-8") for page in (root / "docs").glob("*.md"))]
    commands = [command for page in pages for command in re.findall(r"`([^`\n]+)`\s+in\s+a\s+workspace", page)]
    assert commands
    assert all(command.startswith("ros2 run rbd_ros ") for command in commands), commands


def test_the_services_of_the_simulator_are_named():
    root = Path(__file__).parents[1]
    (row,) = re.findall(r"^\| `simulator` \|.*$", README, re.MULTILINE)
    code = "".join(path.read_text(encoding="utf-8") for path in (root / "rbd_ros" / "nodes").glob("*.py"))
    for service in ("~/pause", "~/step", "~/reset"):
        assert f'"{service}"' in code and f"`{service}`" in row
