"""A sourced ROS brings plug-ins for pytest, some of which end a newer pytest: they stay out of these tests."""
from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[1]
# As the packages of Jazzy register them; a hook that pytest does not have is what pytest 9 finds in launch_testing.
ENTRY_POINTS = {"launch_testing": "launch_testing", "launch_testing_ros": "launch_ros",
                "launch_pytest": "launch_pytest"}
PLUGIN = "def pytest_hook_of_another_version(path, parent):\n    pass\n"


@pytest.fixture
def run(tmp_path):
    """Runs pytest with this project's settings on one test, beside the plug-ins of these names."""
    tests, sourced = tmp_path / "project" / "test", tmp_path / "sourced"
    tests.mkdir(parents=True)
    (tests / "test_one.py").write_text("def test_one():\n    pass\n")
    shutil.copy(CHECKOUT / "setup.cfg", tests.parent)

    def start(*packages, settings=True):
        for package in packages:
            module, info = f"{package}_hooks", sourced / f"{package}-1.0.dist-info"
            info.mkdir(parents=True)
            (sourced / f"{module}.py").write_text(PLUGIN)
            (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
            (info / "entry_points.txt").write_text(f"[pytest11]\n{ENTRY_POINTS[package]} = {module}\n")
        options = [] if settings else ["-c", os.devnull, "--rootdir", str(tests.parent)]
        path = os.pathsep.join([str(sourced), *filter(None, [os.getenv("PYTHONPATH")])])
        return subprocess.run([sys.executable, "-m", "pytest", *options, "test"], cwd=tests.parent, text=True,
                              capture_output=True, env=os.environ | {"PYTHONPATH": path, "PYTEST_ADDOPTS": ""})

    return start


@pytest.mark.parametrize("packages", [(), ("launch_testing_ros",), tuple(ENTRY_POINTS)])
def test_tests_run_whatever_plugins_are_there(run, packages):
    result = run(*packages)
    assert result.returncode == 0, result.stderr + result.stdout
    assert "1 passed" in result.stdout


def test_such_a_plugin_would_end_pytest(run):
    result = run("launch_testing", settings=False)
    assert result.returncode != 0
    assert "unknown hook" in result.stderr + result.stdout
