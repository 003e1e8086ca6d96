"""Joint states and references: any order, gaps filled, everything wrong rejected by kind."""
from __future__ import annotations

from array import array

import numpy as np
import pytest
from actuation.drives import mixed
from support.arm import A_REF, MIMIC, NAMES, Q_REF, V_REF, Q, V, arm, measured

from rbd_ros.runtime.inputs.joint_map import as_array
from rbd_ros.runtime.inputs.joint_states import StateInput
from rbd_ros.runtime.inputs.motor_states import MotorInput
from rbd_ros.runtime.inputs.rejections import Rejections
from rbd_ros.runtime.inputs.plausibility import CONFIRMED
from rbd_ros.runtime.inputs.references import Point, ReferenceInput

MS = 1_000_000


@pytest.fixture
def rejections():
    return Rejections()


@pytest.fixture
def state(rejections):
    return StateInput(arm(), rejections, timeout=0.05, cutoff=0.0)


@pytest.fixture
def reference(rejections):
    return ReferenceInput(arm(), rejections, timeout=0.2)


def test_order_and_extra_joints(state):
    assert state.accept(0.0, MS, NAMES, array("d", Q), array("d", V))
    np.testing.assert_array_equal([state.q, state.v], [Q, V])
    assert state.accept(0.001, 2 * MS, ["wheel", "elbow", "shoulder"], [9, *Q[::-1]], [9, *V[::-1]], [np.nan] * 3)
    np.testing.assert_array_equal([state.q, state.v], [Q, V])


@pytest.mark.parametrize("values", [array("d", Q), array("f", Q), list(Q), tuple(Q), Q.astype(np.float32)])
def test_numbers_of_any_kind_are_read(values):
    np.testing.assert_allclose(as_array(values), Q, rtol=1e-7)
    assert as_array(array("d")).size == 0


def test_state_of_other_joints_is_not_ours(state, rejections):
    assert not state.accept(0.0, MS, ["gripper"], [0.1])
    assert rejections.total == 0


def test_why_there_is_no_state(state):
    state.accept(0.0, MS, ["gripper"], [0.1])
    state.accept(0.0, MS, ["elbow"], [0.1])
    state.accept(0.0, MS, ["gripper"], [0.1])
    assert state.foreign == ["gripper"] and "joint 'shoulder' is missing" in state.refused
    state.accept(0.0, MS, NAMES, Q)
    assert not state.foreign and not state.refused


@pytest.mark.parametrize(("kind", "arguments"), [
    ("wrong_size", (NAMES, [0.1])), ("wrong_size", (NAMES, [])), ("wrong_size", (NAMES, Q, [1.0])),
    ("wrong_size", (NAMES, Q, V, [1.0])), ("non_finite", (NAMES, [0.1, np.nan])), ("non_finite", (NAMES, [np.inf, 0])),
    ("missing_joint", (["elbow"], [0.1])), ("duplicate_joint", (["elbow", "elbow", "shoulder"], [0.1] * 3)),
])
def test_malformed_states_are_counted_and_leave_the_last_one(state, rejections, kind, arguments):
    assert state.accept(0.0, MS, NAMES, Q, V)
    assert not state.accept(0.001, 2 * MS, *arguments)
    assert rejections.counts[kind] == rejections.total == 1
    np.testing.assert_array_equal([state.q, state.v], [Q, V])
    assert state.age(0.03) == 0.03


def test_stamps_must_not_go_back_while_the_state_is_fresh(state, rejections):
    assert state.accept(0.0, 100 * MS, NAMES, Q, V)
    assert not state.accept(0.001, 99 * MS, NAMES, Q, V)
    assert rejections.counts["stamp_backwards"] == 1
    assert not state.accept(0.002, 0, NAMES, Q, V)    # no stamp any more: what runs by stamps would begin anew


def test_a_clock_that_leaps_ahead_counts_as_a_restart(state):
    """A trajectory would be over at once, and its end a jump. At once where states were stale anyway."""
    for now, stamp, restarts in ((0.0, 100, 0), (0.01, 110, 0), (9.0, 9100, 0), (9.9, 13120, 1), (10.0, 13220, 1)):
        assert state.accept(now, stamp * MS, NAMES, Q, V) and state.clock_restarts == restarts
    for i in range(CONFIRMED):
        accepted = state.accept(10.001 + 1e-3 * i, (15000 + i) * MS, NAMES, Q, V)
    assert accepted and state.clock_restarts == state.restarts == 2


def test_stamps_that_begin_are_another_clock():
    unstamped = StateInput(arm(), Rejections(), 0.05, 0.0)
    assert all(unstamped.accept(1e-3 * i, 0, NAMES, Q, V) for i in range(20))
    accepted = [unstamped.accept(0.02 + 1e-3 * i, (5000 + i) * MS, NAMES, Q, V).taken for i in range(CONFIRMED)]
    assert accepted == [False] * (CONFIRMED - 1) + [True] and unstamped.clock_restarts == 1


def test_a_simulation_that_begins_at_time_zero(state):
    """Its first states have stamp 0, repeated while it stands still, and are no other clock than those that follow."""
    for i in range(30):
        assert state.accept(0.5 * i, 0, NAMES, Q, V) and not state.unstamped
    for i in range(1, 30):
        assert state.accept(15.0 + 1e-3 * i, 2 * i * MS, NAMES, measured(state.q), V) and state.time_ns == 2 * i * MS
    assert state.restarts == 0


def test_clock_that_was_reset_is_accepted_when_the_state_is_stale(state):
    assert state.accept(0.0, 100 * MS, NAMES, Q, V)
    assert state.accept(0.1, MS, NAMES, Q, V)
    assert state.restarts == 1 and state.stamp_ns == MS


@pytest.mark.parametrize("velocity", [[], [np.nan, 0.2], [np.nan, np.nan]])
def test_missing_velocities_are_estimated(state, velocity):
    assert state.accept(0.0, MS, NAMES, Q - 0.004 * V, velocity)
    assert state.accept(0.005, 5 * MS, NAMES, Q, velocity)
    np.testing.assert_allclose(state.v, V)


def test_estimated_velocity_is_filtered(state):
    state.cutoff = 10.0
    state.accept(0.0, MS, NAMES, Q)
    state.accept(0.01, 11 * MS, NAMES, Q + 0.01)
    np.testing.assert_allclose(state.v, 1.0 - np.exp(-2 * np.pi * 10.0 * 0.01))


@pytest.mark.parametrize("multiplier", [1.0, -1.0, 2.0])
@pytest.mark.parametrize("offset", [0.0, 0.1])
def test_a_mimic_joint_stands_in_whatever_its_ratio_and_offset(multiplier, offset, rejections):
    extra = MIMIC.replace('multiplier="2" offset="0.1"', f'multiplier="{multiplier}" offset="{offset}"')
    assert extra != MIMIC
    model = arm(extra=extra)
    state, reference = StateInput(model, rejections, 0.05, 0.0), ReferenceInput(model, rejections, 0.0)
    names, position = ["shoulder", "finger_joint"], [0.3, multiplier * 0.5 + offset]
    assert state.accept(0.0, MS, names, position, [0.0, 0.8])
    np.testing.assert_allclose([state.q, state.v], [[0.3, 0.5], [0.0, 0.8 / multiplier]])
    assert reference.accept_trajectory(0.0, 0, MS, names, [Point(1.0, position), Point(2.0, position)], state.q)
    np.testing.assert_allclose(reference.sample(0.0, 3 * 10**9).q, [0.3, 0.5])


def test_mimic_joint_stands_in_for_its_source(rejections):
    state = StateInput(arm(extra=MIMIC), rejections, 0.05, 0.0)
    assert state.accept(0.0, MS, ["shoulder", "finger_joint"], [0.3, 2 * 0.5 + 0.1], [0.0, 0.8])
    np.testing.assert_allclose([state.q, state.v], [[0.3, 0.5], [0.0, 0.4]])
    assert state.accept(0.001, 2 * MS, ["finger_joint", *NAMES], [9.0, *Q], [9.0, *V])
    np.testing.assert_allclose([state.q, state.v], [Q, V])


def test_reference_in_any_order(reference):
    assert reference.sample(0.0, 0) is None
    assert reference.accept(0.0, 0, NAMES[::-1], Q_REF[::-1], V_REF[::-1], A_REF[::-1])
    sample = reference.sample(0.1, MS)
    np.testing.assert_array_equal([sample.q, sample.v, sample.a], [Q_REF, V_REF, A_REF])


def test_reference_without_derivatives_is_at_rest(reference):
    assert reference.accept(0.0, 0, NAMES, Q_REF)
    sample = reference.sample(0.0, 0)
    assert not sample.v.any() and not sample.a.any()


@pytest.mark.parametrize(("kind", "arguments"), [
    ("unknown_joint", (["shoulder", "wrist"], Q_REF)), ("unknown_joint", ([], [])), ("wrong_size", (NAMES, [1.0])),
    ("missing_joint", (["elbow"], [1.0])), ("wrong_size", (NAMES, Q_REF, [1.0])),
    ("non_finite", (NAMES, Q_REF, V_REF, [0, np.nan])),
])
def test_malformed_references(reference, rejections, kind, arguments):
    assert reference.accept(0.0, 0, NAMES, Q_REF, V_REF)
    assert not reference.accept(0.01, 0, *arguments)
    assert rejections.counts[kind] == rejections.total == 1
    np.testing.assert_array_equal(reference.sample(0.02, 0).v, V_REF)


def test_reference_stamps_must_not_go_back_unless_stale(reference, rejections):
    assert reference.accept(0.0, 9 * MS, NAMES, Q_REF)
    assert not reference.accept(0.1, 8 * MS, NAMES, Q_REF)
    assert rejections.counts["stamp_backwards"] == 1
    assert reference.accept(0.5, 7 * MS, NAMES, Q_REF)


def test_stale_reference_stands_still(reference):
    reference.accept(0.0, 0, NAMES, Q_REF, V_REF, A_REF)
    sample = reference.sample(0.21, 0)
    assert reference.stale and not sample.v.any() and not sample.a.any()
    np.testing.assert_array_equal(sample.q, Q_REF)
    reference.timeout = 0.0
    reference.accept(0.3, 0, NAMES, Q_REF, V_REF, A_REF)
    assert reference.sample(1e6, 0).v.any()


def trajectory(reference, *points, stamp_ns=0, now_ns=1000 * MS, names=NAMES):
    return reference.accept_trajectory(0.0, stamp_ns, now_ns, names, points, Q)


def test_trajectory_starts_at_the_last_state_or_its_stamp(reference):
    assert trajectory(reference, Point(1.0, Q_REF))
    np.testing.assert_allclose(reference.sample(0.0, 1500 * MS).q, (Q + Q_REF) / 2)
    reference.clear()
    assert trajectory(reference, Point(1.0, Q_REF), stamp_ns=2000 * MS)
    np.testing.assert_allclose(reference.sample(0.0, 1500 * MS).q, Q)
    np.testing.assert_allclose(reference.sample(0.0, 2250 * MS).q, Q + 0.25 * (Q_REF - Q))


def test_trajectory_follows_on_from_the_reference(reference):
    reference.accept(0.0, 0, NAMES, Q_REF, V_REF, A_REF)
    assert trajectory(reference, Point(1.0, Q, V, V), now_ns=0)
    start = reference.sample(0.0, 0)
    np.testing.assert_allclose([start.q, start.v, start.a], [Q_REF, V_REF, A_REF])


def test_empty_trajectory_stops(reference):
    reference.accept(0.0, 0, NAMES, Q_REF, V_REF)
    assert trajectory(reference, names=[])
    sample = reference.sample(0.0, 5000 * MS)
    np.testing.assert_array_equal([sample.q, sample.v], [Q_REF, 0 * V])


@pytest.mark.parametrize(("kind", "points", "names"), [
    ("bad_trajectory", [Point(1.0, Q), Point(1.0, Q)], NAMES), ("bad_trajectory", [Point(-1.0, Q)], NAMES),
    ("wrong_size", [Point(1.0, [0.1])], NAMES), ("wrong_size", [Point(1.0, Q, [1.0])], NAMES),
    ("non_finite", [Point(1.0, [np.nan, 0])], NAMES), ("non_finite", [Point(np.nan, Q)], NAMES),
    ("unknown_joint", [Point(1.0, Q)], ["shoulder", "wrist"]), ("missing_joint", [Point(1.0, [0.1])], ["elbow"]),
])
def test_malformed_trajectories(reference, rejections, kind, points, names):
    assert not trajectory(reference, *points, names=names)
    assert rejections.counts[kind] == rejections.total == 1
    assert reference.sample(0.0, 0) is None


def test_trajectory_in_the_past(reference, rejections):
    assert not trajectory(reference, Point(0.5, Q_REF), stamp_ns=100 * MS)
    assert rejections.counts["bad_trajectory"] == 1 and "past" in rejections.last


@pytest.mark.parametrize("kind", ["position", "velocity"])
@pytest.mark.parametrize("motor", range(11))
def test_implausible_motors_are_rejected_those_that_set_a_stiffness_too(kind, motor):
    actuation = mixed()
    rejections = Rejections()
    motors, names = MotorInput(actuation, rejections, 0.05, 2.0), list(actuation.motor_names)
    middle = np.zeros(actuation.nm)
    middle[7:] = [3000.0, 0.5, 0.4, 400.0]
    for i in range(20):
        assert motors.accept(1.0 + 1e-3 * i, 10**9 + 10**6 * i, names, middle, 0.0 * middle)
    q, v = middle.copy(), 0.0 * middle
    (q if kind == "position" else v)[motor] += 1e10
    taken = motors.accept(1.02, 1_020_000_000, names, q, v)
    assert bool(taken) == (motor == 0)    # a rigid joint is judged by its own state
    assert motor == 0 or f"motor state: {kind} of joint '{names[motor]}'" in taken.text
    v = 0.0 * middle
    v[7:] = [9e5, 160.0, 120.0, 3.9e5]    # across the range within 5 ms
    v[7:] *= 0.5 * 0.9
    fast = MotorInput(actuation, rejections, 0.05, 2.0)
    assert fast.accept(1.0, 10**9, names, middle, v)
