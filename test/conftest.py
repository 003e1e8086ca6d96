"""Fixtures of more than one folder, and the order of the tests."""
from __future__ import annotations

from pathlib import Path

import pytest
from support.launching import launch  # noqa: F401

HERE = Path(__file__).parent
# folders and files of tests that start processes and wait for them
WAITING = ("cli", "cosimulation", "nodes", "parameters", "test_kernel_cache", "test_launch", "test_scripts")

# what takes long, as files or parts of ids, beside what is marked where it stands: the rest tests the same in a shorter
# form, or from another side
THOROUGH = (
    "batch/", "cli/test_demo_identify", "cli/test_demo_lift", "cli/test_demo_elastic",
    "contact/test_compliant.py", "contact/test_contact_rows.py", "contact/test_contact_page",
    "control/test_steady_cycle.py", "control/test_steady_flatness.py", "control/test_walk.py",
    "cosimulation/test_cosimulation_nodes.py::test_lockstep_gives_the_same_trajectory_every_time",
    "identification/test_closed_chains", "identification/test_tracking",
    "motion/test_closed_goals", "motion/test_closed_motion", "motion/test_closed_rates", "motion/test_ipopt",
    "motion/test_smooth_timing", "nodes/test_planned_motion", "nodes/test_surroundings", "nodes/test_small_stamps",
    "simulation/test_variational.py::test_energy_stays_bounded", "test_site.py",
    "test_kernel_cache.py::test_code_that_others_may_have_written_is_not_loaded[a f",
    "test_style.py::test_finds_nothing_to_complain_about[mypy]",
)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What waits comes first: side by side with another file that does, it takes half the time."""
    for item in items:
        name = item.nodeid.removeprefix("test/")
        if any(name.startswith(part) for part in THOROUGH):
            item.add_marker(pytest.mark.thorough)
    items.sort(key=lambda item: not item.path.relative_to(HERE).as_posix().startswith(WAITING))
