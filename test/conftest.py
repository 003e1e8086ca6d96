"""Fixtures of more than one folder, and the order of the tests."""
from __future__ import annotations

import functools
import gc
import itertools
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest
from support import samples
from support.launching import launch  # noqa: F401

HERE = Path(__file__).parent
# folders and files of tests that start processes and wait for them
WAITING = ("cli", "cosimulation", "nodes", "parameters", "test_kernel_cache", "test_launch", "test_scripts")

# what takes long, as files or parts of ids, beside what is marked where it stands: the rest tests the same in a shorter
# form, or from another side
THOROUGH = (
    "actuation/test_directional_elastic.py", "actuation/test_motor_reference.py::test_efforts_of_the_links", "batch/",
    "cli/test_demo.py::test_a_rehearsal", "cli/test_demo_elastic", "cli/test_demo_identify", "cli/test_demo_lift",
    "cli/test_identify_command.py::test_the_error_to_expect",
    "cli/test_sweep.py::test_a_sweep_that_is_killed", "contact/test_compliant.py", "contact/test_contact_page",
    "contact/test_contact_rows.py", "control/test_steady_cycle.py::test_a", "control/test_steady_cycle.py::test_d",
    "control/test_steady_cycle.py::test_hostile", "control/test_steady_flatness.py::test_a",
    "control/test_steady_flatness.py::test_drivers", "control/test_steady_flatness.py::test_motors",
    "control/test_steady_flatness.py::test_st", "control/test_steady_flatness.py::test_the", "control/test_walk.py",
    "cosimulation/test_cosimulation_nodes.py::test_lockstep_gives_the_same_trajectory_every_time",
    "cosimulation/test_cosimulation_nodes.py::test_mujoco_tracks_as_our_simulator",
    "cosimulation/test_cosimulation_nodes.py::test_the_residual_is_what",
    "identification/test_closed_chains", "identification/test_combinations",
    "identification/test_effort_checks.py::test_gravity_that_is_compensated",
    "identification/test_effort_checks.py::test_the_rate_of_errors", "identification/test_identify.py::test_a_delay",
    "identification/test_identify.py::test_currents_and_signs",
    "identification/test_identify.py::test_intervals_hold",
    "identification/test_stribeck_fit.py::test_intervals_hold", "identification/test_tracking",
    "lie/test_geodesics.py", "lie/test_metric_geodesics.py",
    "motion/test_bounds_of_motions.py::test_effort_rates_under_a_wrench", "motion/test_closed_goals",
    "motion/test_closed_motion", "motion/test_closed_rates", "motion/test_ipopt", "motion/test_motion_docs.py",
    "motion/test_optimization.py::test_random_motions", "motion/test_smooth_timing",
    "nodes/test_ends.py::test_the_demo_takes_its_nodes_along", "nodes/test_ends.py::test_the_middleware_is_gone",
    "nodes/test_high_gains.py", "nodes/test_loading.py",
    "nodes/test_motion_planner.py::test_a_search_does_not_outlive",
    "nodes/test_motion_planner.py::test_an_inactive_node_says_so", "nodes/test_move_arm.py::test_a_pose_beyond",
    "nodes/test_move_arm.py::test_words_that_are_no_goals", "nodes/test_planned_motion", "nodes/test_service_docs.py",
    "nodes/test_small_stamps", "nodes/test_surroundings", "nodes/test_view_listener.py",
    "nodes/test_watchdog_example.py", "simulation/test_contact_energy.py::test_where_the_lowest_of_ten_boxes",
    "simulation/test_variational.py::test_energy_stays_bounded",
    "test_ahead.py::test_code_from_the_cache_does_not_wait",
    "test_ahead.py::test_the_others_go_on_where_one_is_killed",
    "test_kernel_cache.py::test_code_that_others_may_have_written_is_not_loaded[a f",
    "test_kernel_cache.py::test_two_checkouts_share_one_cache", "test_site.py",
    "test_style.py::test_finds_nothing_to_complain_about[mypy]",
)
# where a test has both ways from a message to its answer, the one by the executor, as in fixture `each_control_loop`
BOTH_WAYS = ("control/test_closed_loop", "control/test_contact_reaction", "nodes/test_control_loop")

# tests of one property in very many cases, and which of them always run: every 5th, for example; the others are
# thorough. The steps are primes, so that they go across where cases are combinations of several parameters, not along
# one.
SAMPLED = {
    "actuation/test_feedback_linearization.py::test_a_step_shows": 3,
    "cli/test_demo.py::test_wrong_arguments_are_named": 7,
    "cli/test_pipes.py::test_a_full_disk_is_one_line": 2,
    "cli/test_pipes.py::test_a_reader_that_goes_away_is_no_fault": 5,
    "cli/test_sweep.py::test_each_spread_worsens_the_error": 3,
    "cli/test_sweep.py::test_the_first_signal_ends_it_with_a_word": 3,
    "constrained/test_hybrid_dense.py::test_robots_with_random_masks": 5,
    "contact/test_charts.py::test_forms_by_complex_step": 3,
    "contact/test_coordinates.py::test_bodies_of_any_size_far_apart": 5,
    "contact/test_coordinates.py::test_no_other_points_are_closer": 5,
    "contact/test_coordinates.py::test_rates_and_accelerations_by_differences": 5,
    "contact/test_held_and_hit.py::test_a_frictionless_box_that_bounces": 2,
    "control/test_cartesian_walls.py::test_links_stay_where_walls_keep_them": 2,
    "control/test_changes_are_soft.py::test_gains_poles_and_laws_of_motors": 7,
    "control/test_closed_loop.py::test_a_motion_that_is_halted_ends_softly": 3,
    "control/test_closed_loop.py::test_a_rate_limit_does_not_destabilise": 3,
    "control/test_closed_loop.py::test_an_emergency_stop_holds_the_arm_in_its_place": 5,
    "control/test_closed_loop.py::test_an_empty_trajectory_in_motion_stops_the_arm": 5,
    "control/test_mit_configs.py::test_a_killed_node_and_lost_states": 3,
    "control/test_plausibility.py::test_slow_joints_with_coarse_encoders": 5,
    "control/test_rehearsal.py::test_a_shipped_configuration_follows_its_arm": 3,
    "control/test_stamps.py::test_a_busy_machine_makes_no_leaps": 5,
    "control/test_standalone.py::test_a_driver_that_repeats_itself": 3,    # with each plant, and each of the other two
    "control/test_standalone.py::test_a_fast_motion_that_begins_where": 3,
    "control/test_standalone.py::test_an_arm_follows_stops_holds_and_goes_on": 3,
    "control/test_standalone.py::test_an_arm_whose_states_cease_is_carried": 3,
    "control/test_states_in_one_call.py::test_a_walk_with_states_as_bytes": 5,
    "control/test_steady_cartesian.py::test_what_is_unusual": 3,
    "control/test_steady_cycle.py::test_every_law": 3,
    "control/test_steady_cycle.py::test_what_is_unusual": 5,
    "control/test_steady_flatness.py::test_every_law": 3,
    "control/test_steady_flatness.py::test_what_is_unusual": 17,
    "cosimulation/test_gazebo_pauses.py::test_a_trajectory_after_a_pause": 3,
    "derivatives/test_bodies.py::test_partials_by_complex_step": 3,
    "derivatives/test_constrained.py::test_forward": 7,
    "derivatives/test_directional_bodies.py::test_bodies_along_every_parameter": 3,
    "derivatives/test_directional_constrained.py::test_every_parameter": 3,
    "derivatives/test_first.py::test_against_pinocchio": 5,
    "dynamics/test_against_pinocchio.py": 5,
    "dynamics/test_overflow.py::test_a_huge_state": 3,
    "identification/test_base_parameters.py::test_rank_in_fifty_digits": 5,
    "identification/test_recording.py::test_mutilated_recordings": 4,
    "learning/test_batch_function.py::test_constrained_dynamics_by_parameters": 3,
    "learning/test_batch_function.py::test_slopes_by_parameters": 2,
    "learning/test_batch_function.py::test_values_and_jacobians_are_casadis": 2,
    "lie/test_campbell_hausdorff.py::test_the_order_and_the_error_term": 3,
    "model/test_misuse.py::test_a_quaternion_that_is_none_is_named": 7,
    "model/test_misuse.py::test_a_wrong_state_is_named": 19,
    "model/test_misuse.py::test_numbers_in_any_container_are_taken": 13,
    "model/test_misuse.py::test_something_else_than_a_model_is_refused": 5,
    "model/test_misuse.py::test_wrong_wrenches_are_named": 7,
    "motion/test_bounds_of_motions.py::test_what_the_barrier_leaves_is_less_than_the_gap": 3,
    "motion/test_collision.py::test_as_pinocchio": 3,
    "motion/test_collision.py::test_gradients_of_arms": 7,
    "motion/test_collision.py::test_no_points_of_arms_are_nearer": 7,
    "motion/test_collision_planning.py::test_a_certificate_is_never_wrong": 3,
    "motion/test_cylinder_depths.py::test_of_parallel_faces_and_axes": 3,
    "motion/test_cylinder_depths.py::test_of_random_poses": 3,
    "motion/test_cylinder_distance.py::test_of_random_poses": 3,
    "motion/test_friction_of_drives_in_motions.py::test_the_fastest_motion": 3,
    "motion/test_optimization.py::test_all_limits_of_state_and_effort": 3,
    "motion/test_optimization.py::test_the_optimum_is_that": 2,
    "motion/test_places.py::test_a_pose_to_start_from": 2,
    "motion/test_random_problems.py::test_random_problems": 7,
    "motion/test_slices.py::test_slices_hold_the_surface_of_open_tangled_meshes": 3,
    "motion/test_slices.py::test_slices_of_real_links": 3,
    "motion/test_time_optimal.py::test_limits_are_kept_and_one_is_always_in_use": 5,
    "motion/test_time_optimal.py::test_the_duration_is_toppras": 3,
    "nodes/test_contacts.py::test_a_ball_dropped_on_a_plate": 2,
    "nodes/test_control_loop.py::test_every_loop_gives_the_same_answer": 3,
    "nodes/test_control_loop.py::test_states_as_bytes_are_answered": 3,
    "nodes/test_effort_observer_and_node.py::test_a_walk_has": 5,
    "nodes/test_emergency_stop.py::test_a_stop_while_the_robot_is_ramped_out": 5,
    "nodes/test_ends.py::test_a_node_ends_before_ros2_launch": 3,
    "nodes/test_ends.py::test_a_node_ends_well_whenever_signals_come": 7,
    "nodes/test_ends.py::test_helpers_end_at_once_with_the_one_that_compiles": 5,
    "nodes/test_handover.py::test_a_manager_that_does_not_switch": 3,
    "nodes/test_handover.py::test_configurations_that_cannot_be": 3,
    "nodes/test_outliers.py::test_the_effort_stays": 5,
    "nodes/test_security.py::test_a_node_has_what_its_policy_grants": 3,
    "nodes/test_simulation_loop.py::test_it_ends_at_once": 3,
    "nodes/test_simulation_loop.py::test_no_command_is_lost": 3,
    "nodes/test_simulator_node.py::test_a_wrong_configuration_is_named": 3,
    "nodes/test_simulator_node.py::test_states_and_clock_come_at_every": 3,
    "nodes/test_simulator_node.py::test_the_response_to_a_command": 3,
    "nodes/test_stop_in_motion.py::test_the_arm_rests_where_it_was_stopped": 13,
    "parameters/test_every_parameter.py::test_it_changes_what_is_observed": 13,
    "parameters/test_refusals.py::test_each_node_refuses_it_while_it_runs": 7,
    "simulation/test_absurd_states.py::test_an_elastic_simulator": 3,
    "simulation/test_elastic_simulator.py::test_feed_forward_by_flatness": 2,
    "simulation/test_lanes.py::test_the_same_motions": 3,
    "simulation/test_many_steps.py::test_steps_with_contacts": 5,
    "simulation/test_many_steps.py::test_the_same_as_one_by_one": 5,
    "simulation/test_simulate.py::test_as_one_by_one": 3,
    "specialize/test_casadi_function.py::test_derivatives_of_forward_dynamics": 3,
    "specialize/test_casadi_function.py::test_derivatives_of_inverse_dynamics": 3,
    "specialize/test_casadi_function.py::test_values_are_the_librarys": 3,
    "specialize/test_families.py::test_equals_the_ordinary_kernels": 5,
    "specialize/test_singular_rows.py::test_large_batches": 3,
    "specialize/test_specialized.py::test_equals_the_ordinary_kernels": 7,
    "specialize/test_specialized.py::test_large_batches": 5,
    "specialize/test_specialized.py::test_robots": 13,
    "test_pytest_plugins.py::test_tests_run_whatever": 3,
    "test_scripts.py::test_setup_names_a_missing_tool_in_one_line": 3,
    "view/test_scenes.py::test_robots_open_with_their_meshes": 3,
}


def pytest_configure(config: pytest.Config) -> None:
    samples.every = config.getoption("markexpr") != "not thorough"


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Iterator[None]:
    """Its thousands of objects live until the end: no search for garbage among them, then and later."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Files that are thorough as a whole are not even imported where these are left out."""
    if config.getoption("markexpr") != "not thorough" or not collection_path.is_relative_to(HERE):
        return None
    return _name(collection_path).startswith(THOROUGH) or None


@functools.cache
def _name(path: Path) -> str:
    return path.relative_to(HERE).as_posix()


@functools.cache
def _step(test: str) -> int:
    """Every which case of this test always runs."""
    return next((step for part, step in SAMPLED.items() if test.startswith(part)), 1)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files that wait and files that compute by turns, so that workers side by side leave no processor idle."""
    cases: defaultdict[str, Iterator[int]] = defaultdict(itertools.count)
    for item in items:
        name = item.nodeid.removeprefix("test/")
        test = name.partition("[")[0]
        step = _step(test)
        left_out = step > 1 and next(cases[test]) % step != 0
        if left_out or name.startswith(THOROUGH) or (name.startswith(BOTH_WAYS) and "[executor" in name):
            item.add_marker(pytest.mark.thorough)
    files: tuple[dict[Path, None], dict[Path, None]] = {}, {}    # in the order of their first tests
    for path in dict.fromkeys(item.path for item in items):
        files[not _name(path).startswith(WAITING)][path] = None
    turns = itertools.zip_longest(*files)
    order = {path: i for i, path in enumerate(path for turn in turns for path in turn if path)}
    items.sort(key=lambda item: order[item.path])
