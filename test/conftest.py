"""Fixtures of more than one folder, and what may run side by side."""
from __future__ import annotations

from pathlib import Path

import pytest
from support.launching import launch  # noqa: F401

HERE = Path(__file__).parent
PROCESSES = ("cli", "cosimulation", "nodes", "parameters", "test_kernel_cache", "test_launch", "test_scripts")


@pytest.hookimpl(tryfirst=True)    # before pytest-xdist reads the groups
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Where pytest-xdist runs tests side by side: those that start processes and wait for them one after the other,
    and first; of the others each file by itself.
    """
    if not config.pluginmanager.has_plugin("xdist"):
        return
    groups = {item: str(item.path.relative_to(HERE)) for item in items}
    waiting = {item for item, path in groups.items() if path.startswith(PROCESSES)}
    for item, path in groups.items():
        item.add_marker(pytest.mark.xdist_group("processes" if item in waiting else path))
    items.sort(key=lambda item: item not in waiting)
