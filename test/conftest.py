"""Fixtures of more than one folder, and the order of the tests."""
from __future__ import annotations

from pathlib import Path

import pytest
from support.launching import launch  # noqa: F401

HERE = Path(__file__).parent
# folders and files of tests that start processes and wait for them
WAITING = ("cli", "cosimulation", "nodes", "parameters", "test_kernel_cache", "test_launch", "test_scripts")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What waits comes first: side by side with another file that does, it takes half the time."""
    items.sort(key=lambda item: not item.path.relative_to(HERE).as_posix().startswith(WAITING))
