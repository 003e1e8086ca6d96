"""What runs beside a public forge: the workflow and the hooks before a commit name what exists."""
from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

CHECKOUT = Path(__file__).parents[1]
WORKFLOW = CHECKOUT / ".github/workflows/ci.yml"
HOOKS = CHECKOUT / ".pre-commit-config.yaml"


def test_workflow_runs_the_one_test_command_and_colcon():
    jobs = yaml.safe_load(WORKFLOW.read_text())["jobs"]
    wheels, colcon = jobs["wheels"], jobs["colcon"]
    assert any(".ci/run" in step.get("run", "") for step in wheels["steps"])
    rows = wheels["strategy"]["matrix"]["include"]
    distros = {path.stem.removeprefix("ros-") for path in (CHECKOUT / "requirements").glob("ros-*.txt")}
    assert {row["distro"] for row in rows} == distros
    oldest = re.search(r'python_requires=">=([\d.]+)"', (CHECKOUT / "setup.py").read_text())[1]
    assert oldest in {row["python"] for row in rows}
    assert {"jazzy", "kilted", "lyrical", "rolling"} == set(colcon["strategy"]["matrix"]["distro"])
    commands = "\n".join(step.get("run", "") for step in colcon["steps"])
    for folder in re.findall(r"src/rbd_ros(/\w+)?", commands):
        assert (CHECKOUT / folder.strip("/") / "package.xml").is_file()
    assert "colcon build" in commands and "colcon test" in commands


def test_hooks_are_the_checks_of_the_tests():
    hooks = yaml.safe_load(HOOKS.read_text())["repos"][0]["hooks"]
    entries = [hook["entry"].split() for hook in hooks]
    assert all(entry[0] == "scripts/run" and hook["language"] == "system"
               for entry, hook in zip(entries, hooks, strict=True))
    [files] = [[word for word in entry if word.startswith("test/")] for entry in entries if "pytest" in entry]
    assert all((CHECKOUT / file).is_file() for file in files) and "test/test_style.py" in files
    if importlib.util.find_spec("pre_commit") is None:
        pytest.skip("pre-commit is not installed")
    subprocess.run([sys.executable, "-m", "pre_commit", "validate-config", HOOKS], check=True)
