"""Style (ruff, ruff.toml) and types (mypy, setup.cfg) of the whole checkout."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[1]


@pytest.mark.parametrize("tool", [["ruff", "check"], ["mypy"]], ids=["ruff", "mypy"])
def test_finds_nothing_to_complain_about(tool):
    if importlib.util.find_spec(tool[0]) is None:
        pytest.skip(f"{tool[0]} is not installed (scripts/setup installs it)")
    result = subprocess.run([sys.executable, "-m", *tool], cwd=CHECKOUT, capture_output=True, text=True)
    if result.returncode:
        pytest.fail(f"{' '.join(tool)}:\n{result.stdout}{result.stderr}", pytrace=False)


def test_values_in_messages_are_of_bounded_length():
    """Whatever a user gave is written by `shown`: its `repr` may be endless."""
    found = [f"{path.relative_to(CHECKOUT)}:{number}" for path in sorted((CHECKOUT / "rbd_ros").rglob("*.py"))
             for number, line in enumerate(path.read_text().splitlines(), 1) if "!r}" in line]
    assert not found
