"""Fixtures of more than one folder, and what may run side by side."""
from __future__ import annotations

from typing import Any

import pytest
from support.launching import launch  # noqa: F401

# folders and files of tests that start processes and wait for them
WAITING = ("cli", "cosimulation", "nodes", "parameters", "test_kernel_cache", "test_launch", "test_scripts")


def scope(nodeid: str) -> str:
    """Tests of one scope run one after the other: those that wait, and of the others each file."""
    path = nodeid.partition("::")[0]
    return "waiting" if path.removeprefix("test/").startswith(WAITING) else path


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What waits comes first: the rest is done meanwhile."""
    items.sort(key=lambda item: scope(item.nodeid) != "waiting")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Of pytest-xdist, if that is there and is to distribute by scope."""
    if config.getvalue("dist") != "loadscope":
        return None
    from xdist.scheduler import LoadScopeScheduling

    class Scheduling(LoadScopeScheduling):    # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            return scope(nodeid)

    return Scheduling(config, log)
