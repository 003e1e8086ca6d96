"""docs/safety.md: every fault of its table is injected into a node, or into twins with and without the steady cycle."""
from __future__ import annotations

from pathlib import Path

import pytest

TESTS = Path(__file__).parent
PAGE = (TESTS.parent / "docs" / "safety.md").read_text(encoding="utf-8")
TABLE = PAGE.split("## What happens when")[1].split("\n## ")[0]
ROWS = [row.split("|")[1].strip() for row in TABLE.splitlines()
        if row.startswith("| ") and not row.startswith("| fault")]
TWINS = "control/test_steady_cycle.py::test_a_walk_with_and_without_the_steady_cycle_is_the_same"
EVENTS = "control/test_steady_cycle.py::test_what_is_unusual_goes_the_ordinary_way"
FAULTS, TIME, MOTORS = "nodes/test_faults.py::", "nodes/test_faults_of_time.py::", "nodes/test_faults_of_motors.py::"
AROUND, HANDOVER, WAYS = "nodes/test_surroundings.py::", "nodes/test_handover.py::", "nodes/test_ways.py::"
SMALL, STOP, OUTLIERS = "nodes/test_small_stamps.py::", "nodes/test_emergency_stop.py::", "nodes/test_outliers.py::"
BASE, LARGE = "nodes/test_base_nodes.py::", "nodes/test_large_inputs.py::"
CLOSED = "control/test_closed_loop.py::"
UNUSABLE = TIME + "test_trajectories_that_cannot_be_followed"
# by the beginning of the row
INJECTED: dict[str, tuple[str, ...]] = {
    "joint states stop": (FAULTS + "test_joint_states_stop", FAULTS + "test_publisher_of_the_states_is_killed", TWINS,
                          MOTORS + "test_motor_states_stop"),
    "a joint state is answered late": (TIME + "test_a_state_that_is_answered_late", TWINS),
    "the loop is starved": ("nodes/test_slow_loop.py::test_a_slow_loop_has_the_safe_output_and_comes_back",),
    "no joint state comes": (AROUND + "test_joint_states_that_never_come",
                             AROUND + "test_description_that_never_comes"),
    "another node publishes": (AROUND + "test_another_publisher_on_a_topic_of_the_torque",
                               AROUND + "test_another_node_of_the_same_name"),
    "NaN, infinite or absurd": (FAULTS + "test_malformed_states_and_references", FAULTS + "test_enormous_values",
                                TIME + "test_a_trajectory_that_is_not_finite", EVENTS,
                                "control/test_steady_flatness.py::test_what_is_unusual_goes_the_ordinary_way"),
    "bytes on the topic": (TIME + "test_bytes_that_are_no_joint_state", MOTORS + "test_bytes_that_are_no_motor_state",
                           "control/test_steady_cycle.py::test_hostile_bytes_are_the_same_message_by_message"),
    "a message that is too large": (LARGE + "test_every_input_refuses_what_is_too_large",
                                    LARGE + "test_a_trajectory_with_too_many_points"),
    "an external wrench beyond": (LARGE + "test_an_absurd_wrench",),
    "external wrenches jump": (EVENTS,),
    "a joint or motor state that is implausible": (OUTLIERS + "test_the_effort_stays",
                                                   MOTORS + "test_outliers_of_the_motors", TWINS),
    "a driver repeats its last joint or motor state": (
        "nodes/test_frozen_driver.py::test_an_arm_whose_driver_freezes_in_motion_comes_to_rest",
        "control/test_steady_cycle.py::"
        "test_a_driver_that_repeats_itself_in_motion_is_refused_as_by_the_ordinary_way",
        "control/test_elastic_safety.py::test_motors_whose_driver_repeats_itself_are_refused"),
    "the robot is elsewhere": (OUTLIERS + "test_a_robot_that_is_elsewhere",),
    "a stamp goes backwards": (FAULTS + "test_malformed_states_and_references",
                               TIME + "test_stamps_are_missing_all_of_a_sudden", EVENTS),
    "a single stamp jumps ahead": (OUTLIERS + "test_the_effort_stays", EVENTS),
    "the clock jumps ahead": (TIME + "test_a_clock_that_jumps_ahead", TWINS),
    "the clock is reset": (FAULTS + "test_clock_is_reset", TWINS),
    "the same, for an arm": (MOTORS + "test_the_clock_of_the_motors_is_reset",
                             MOTORS + "test_the_clock_of_the_joints_is_reset", TWINS),
    "no transform of the mounting": (BASE + "test_the_configuration_waits_for_the_mounting",),
    "no odometry yet": (BASE + "test_torque_on_a_base_that_moves",),
    "odometry is older": (BASE + "test_torque_on_a_base_that_moves",),
    "odometry of another": (BASE + "test_torque_on_a_base_that_moves",),
    "odometry turns by more": (BASE + "test_torque_on_a_base_that_moves",),
    "joint states never have stamps": (SMALL + "test_states_without_stamps_have_trajectories_that_begin_at_once",),
    "a command that is not finite": ("control/test_defects.py::test_a_law_that_has_no_numbers_says_why",),
    "a command beyond the limits": (FAULTS + "test_enormous_values", TIME + "test_lower_limits_act_at_once",
                                    SMALL + "test_no_rate_limit_for_one_joint_and_one_for_the_other", TWINS),
    "a trajectory comes before": (MOTORS + "test_before_the_first_state_and_what_no_joint_can",
                                  TIME + "test_a_trajectory_while_states_are_stale"),
    "the angle of a continuous joint": (TIME + "test_a_turn_of_a_continuous_joint_is_nothing",
                                        "control/test_steady_cycle.py::test_angles_that_wrap_are_the_same"),
    "a trajectory starts in the future": (
        SMALL + "test_a_trajectory_that_begins_later_lets_the_stream_run_until_then", EVENTS),
    "the first point of a trajectory": (OUTLIERS + "test_the_effort_stays",),
    "the first point is beyond": (EVENTS,),
    "a trajectory needs more": (UNUSABLE,),
    "a reference of a stream has": (TIME + "test_references_with_rates_that_no_joint_has",),
    "a trajectory, or a stream that": (TIME + "test_what_is_sent_after_the_deactivation",),
    "a trajectory exceeds": (TIME + "test_a_trajectory_beyond_a_velocity_limit",),
    "a trajectory should have started": (UNUSABLE,),
    "a trajectory leaves": (UNUSABLE,),
    "node `flatness`: the smooth": (MOTORS + "test_a_smooth_interpolation_that_swings_out",),
    "the reference stream stops": (TIME + "test_the_reference_stream_stops", TWINS),
    "the stamp of a reference": (TIME + "test_stamps_of_references_go_backwards",
                                 SMALL + "test_a_far_stamp_does_not_lock_out_a_stream_that_never_times_out"),
    "references within a stream jump": (TWINS,),
    "the robot is farther": (
        CLOSED + "test_an_arm_that_another_controller_holds_is_not_thrown_when_it_is_switched_back",
        CLOSED + "test_references_that_are_far_away_are_followed_once_the_robot_is_near_them"),
    "the node itself stands still": (
        CLOSED + "test_a_rate_limit_does_not_destabilise_the_loop_after_a_stall_of_the_node",),
    "the driver stands still": (
        CLOSED + "test_a_trajectory_goes_on_after_the_driver_stood_still_and_sent_old_positions",),
    "emergency stop (": (FAULTS + "test_emergency_stop", FAULTS + "test_emergency_stop_while_inactive",
                         STOP + "test_a_stop_that_is_released_at_once",
                         STOP + "test_a_latched_stop_from_before_the_node_began",
                         STOP + "test_a_stop_while_the_node_is_not_configured", TWINS),
    "emergency stop during": (STOP + "test_a_stop_while_the_robot_is_ramped_out",),
    "deactivation, SIGINT": (FAULTS + "test_deactivation", FAULTS + "test_interrupt",
                             WAYS + "test_the_way_out_of_an_arm", WAYS + "test_the_way_out_of_motors",
                             HANDOVER + "test_the_other_controller_has_the_arm_before_the_torque_changes"),
    "an invalid parameter value": (FAULTS + "test_parameters_set_to_nonsense",),
    "a parameter file that": ("nodes/test_parameter_files.py::test_a_node_ends_with_one_line",),
    "limits are changed": (TIME + "test_lower_limits_act_at_once",
                           WAYS + "test_higher_limits_are_no_step_while_the_output_is_safe", TWINS),
    "gains, poles, laws": (FAULTS + "test_payload_changes_while_running", WAYS + "test_a_fade_between_gains", TWINS),
    "a robot description comes": ("nodes/test_hostile_inputs.py::test_a_description_after_cleanup_moves_nothing",),
    "a defect of this software": ("nodes/test_node_defects.py::test_defects_stop_the_robot_and_not_the_process",),
    "gravity compensated": (FAULTS + "test_gravity_compensated_twice_or_not_at_all",),
    "the controller manager does not": (HANDOVER + "test_a_manager_that_does_not_switch_is_not_waited_for_for_ever",),
    "emergency stop while the node waits": (HANDOVER + "test_emergency_stop_while_the_switch_is_waited_for",),
    "the driver or its controller manager": (FAULTS + "test_publisher_of_the_states_is_killed",),
    "the process is killed": (),    # nothing is published
}


def test_every_fault_of_the_page_is_here():
    assert len(ROWS) == len(INJECTED) > 40
    for row, beginning in zip(ROWS, INJECTED, strict=True):    # in the order of the page
        assert row.startswith(beginning), f"{row!r} instead of {beginning!r}"


@pytest.mark.parametrize("fault", INJECTED)
def test_its_tests_exist(fault):
    for name in INJECTED[fault]:
        file, _, function = name.partition("::")
        assert f"def {function}(" in (TESTS / file).read_text(encoding="utf-8"), name
