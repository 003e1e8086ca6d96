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
