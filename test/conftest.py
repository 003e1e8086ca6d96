"""Fixtures of more than one folder, and the order of the tests."""
from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.launching import launch  # noqa: F401

HERE = Path(__file__).parent
# folders and files of tests that start processes and wait for them
WAITING = ("cli", "cosimulation", "nodes", "parameters", "test_kernel_cache", "test_launch", "test_scripts")

# what takes long, as files or parts of ids, beside what is marked where it stands: the rest tests the same in a shorter
# form, or from another side
THOROUGH = (
    "batch/", "cli/test_demo.py::test_a_rehearsal", "cli/test_demo_identify", "cli/test_demo_lift",
    "cli/test_demo_elastic",
    "contact/test_compliant.py", "contact/test_contact_rows.py", "contact/test_contact_page",
    "control/test_steady_cycle.py", "control/test_steady_flatness.py", "control/test_walk.py",
    "cosimulation/test_cosimulation_nodes.py::test_lockstep_gives_the_same_trajectory_every_time",
    "identification/test_closed_chains", "identification/test_tracking",
    "motion/test_closed_goals", "motion/test_closed_motion", "motion/test_closed_rates", "motion/test_ipopt",
    "motion/test_smooth_timing", "nodes/test_ends.py::test_the_demo_takes_its_nodes_along", "nodes/test_planned_motion",
    "nodes/test_surroundings", "nodes/test_small_stamps",
    "simulation/test_variational.py::test_energy_stays_bounded", "test_site.py",
    "test_kernel_cache.py::test_code_that_others_may_have_written_is_not_loaded[a f",
    "test_kernel_cache.py::test_two_checkouts_share_one_cache",
    "test_style.py::test_finds_nothing_to_complain_about[mypy]",
)
# where a test has both ways from a message to its answer, the one by the executor, as in fixture `each_control_loop`
BOTH_WAYS = ("control/test_closed_loop", "nodes/test_control_loop", "nodes/test_faults")

# tests of one property in very many cases, and which of them always run: every 5th, for example; the others are
# thorough. The steps are primes, so that they go across where cases are combinations of several parameters, not along
# one.
SAMPLED = {
    "cli/test_sweep.py::test_each_spread_worsens_the_error": 3,
    "constrained/test_hybrid_dense.py::test_robots_with_random_masks": 5,
    "contact/test_coordinates.py::test_no_other_points_are_closer": 3,
    "contact/test_coordinates.py::test_rates_and_accelerations_by_differences": 3,
    "contact/test_coordinates.py::test_bodies_of_any_size_far_apart": 5,
    "control/test_closed_loop.py::test_an_emergency_stop_holds_the_arm_in_its_place": 3,
    "control/test_closed_loop.py::test_an_empty_trajectory_in_motion_stops_the_arm": 3,
    "derivatives/test_first.py::test_against_pinocchio": 5,
    "derivatives/test_first.py::test_forward_and_hybrid_dynamics_by_complex_step": 2,
    "derivatives/test_first.py::test_inverse_dynamics_by_complex_step": 2,
    "dynamics/test_against_pinocchio.py": 5,
    "dynamics/test_overflow.py::test_a_huge_state": 3,
    "model/test_misuse.py::test_a_wrong_state_is_named": 19,
    "model/test_misuse.py::test_numbers_in_any_container_are_taken": 13,
    "model/test_misuse.py::test_wrong_wrenches_are_named": 7,
    "model/test_misuse.py::test_something_else_than_a_model_is_refused": 5,
    "model/test_misuse.py::test_a_quaternion_that_is_none_is_named": 7,
    "nodes/test_ends.py::test_helpers_end_at_once_with_the_one_that_compiles": 5,
    "nodes/test_ends.py::test_the_middleware_is_gone_before_the_process_ends": 3,
    "nodes/test_stop_in_motion.py::test_the_arm_rests_where_it_was_stopped": 3,
    "specialize/test_families.py::test_equals_the_ordinary_kernels": 5,
    "specialize/test_specialized.py::test_equals_the_ordinary_kernels": 5,
    "specialize/test_specialized.py::test_robots": 3,
}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What waits comes first: side by side with another file that does, it takes half the time."""
    cases: defaultdict[str, Iterator[int]] = defaultdict(itertools.count)
    for item in items:
        name = item.nodeid.removeprefix("test/")
        step = next((step for part, step in SAMPLED.items() if name.startswith(part)), 1)
        left_out = step > 1 and next(cases[name.partition("[")[0]]) % step != 0
        if left_out or name.startswith(THOROUGH) or (name.startswith(BOTH_WAYS) and "[executor" in name):
            item.add_marker(pytest.mark.thorough)
    items.sort(key=lambda item: not item.path.relative_to(HERE).as_posix().startswith(WAITING))
