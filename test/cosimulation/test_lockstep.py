"""Who waits for whom in lockstep, without ROS."""
import pytest

import rbd_ros as rbd
from rbd_ros.runtime.cosimulation.lockstep import Lockstep, LockstepSettings

MS = 1_000_000


def started(period=2 * MS):
    """Turns have begun: the state of stamp 0 is answered."""
    logic = Lockstep(period, patience=100 * MS)
    logic.start(0)
    logic.on_state(1, 0)
    assert logic.on_answer(2, 0)
    return logic


def test_a_turn_is_state_answer_steps_state():
    logic = started()
    assert (logic.phase, logic.target) == ("stepping", 2 * MS)
    logic.on_state(3, 2 * MS)
    assert logic.phase == "computing"
    assert logic.on_answer(4, 2 * MS)
    assert (logic.phase, logic.target) == ("stepping", 4 * MS)
    assert logic.counts == {"cycles": 2, "overdue": 0, "refused": 0, "overshoots": 0, "unanswered": 0}


def test_a_command_is_sent_once():
    logic = started()
    assert not logic.on_answer(3, 0)    # what a watchdog repeats
    logic.on_state(4, 2 * MS)
    assert not logic.on_answer(5, 0) and logic.phase == "computing"
    assert logic.on_answer(6, 2 * MS) and not logic.on_answer(7, 2 * MS)
    assert logic.counts["cycles"] == 2


def test_states_before_the_target_are_not_answered():
    logic = started()
    for stamp in (0, MS, 2 * MS - 1):
        logic.on_state(3, stamp)
        assert logic.phase == "stepping"
        assert not logic.on_answer(3, stamp)
    logic.on_state(4, 2 * MS)
    assert logic.phase == "computing"


def test_an_answer_may_overtake_the_state():
    logic = started()
    assert logic.on_answer(3, 2 * MS)
    logic.on_state(4, 2 * MS)    # late
    assert (logic.phase, logic.target) == ("stepping", 4 * MS)


def test_a_lost_answer_does_not_end_the_turns():
    logic = started()
    logic.on_state(3, 2 * MS)                # the answer to it is lost; the simulation made one step more
    logic.on_state(4, 3 * MS)
    assert not logic.on_answer(5, MS)        # what is older answers nothing
    assert logic.on_answer(6, 3 * MS) and logic.counts["unanswered"] == 1
    assert (logic.phase, logic.target) == ("stepping", 5 * MS)
    assert not logic.on_answer(7, 2 * MS)    # too late
    assert logic.on_answer(8, 5 * MS) and logic.counts["unanswered"] == 1


def test_a_simulation_that_makes_more_steps_than_asked_for_is_followed():
    logic = started()
    logic.on_state(3, 5 * MS)
    assert logic.phase == "computing" and logic.on_answer(4, 5 * MS)
    assert logic.target == 7 * MS and logic.counts["overshoots"] == 1
    logic.on_state(5, 7 * MS + 10)    # stamps that are rounded are no overshoot
    assert logic.on_answer(6, 7 * MS + 10) and logic.counts["overshoots"] == 1


def test_the_start_is_repeated_until_there_is_an_answer():
    logic = Lockstep(2 * MS, patience=100 * MS, retry=10 * MS)
    logic.start(0)
    assert not logic.on_answer(1, 0)    # to no state
    assert not logic.overdue(9 * MS) and logic.overdue(10 * MS) and not logic.overdue(19 * MS)
    logic.on_state(11 * MS, 70)
    logic.on_state(12 * MS, 0)          # the simulation was reset
    assert not logic.on_answer(13 * MS, 70)
    assert logic.overdue(20 * MS) and logic.counts["overdue"] == 0
    assert logic.on_answer(21 * MS, 0) and logic.phase == "stepping"


def test_silence_is_noticed_in_every_phase():
    logic = started()
    assert not logic.overdue(99 * MS) and logic.overdue(101 * MS) and not logic.overdue(150 * MS)
    assert logic.overdue(202 * MS) and logic.counts["overdue"] == 2
    logic.on_state(203 * MS, 2 * MS)
    assert not logic.overdue(302 * MS) and logic.overdue(303 * MS)
    logic.on_refused(304 * MS)
    assert logic.counts["refused"] == 1


def test_settings_from_parameters():
    s = LockstepSettings.from_values({"step": 0.0005, "steps": 4, "patience": 2.0, "plant": "simulator"})
    assert (s.steps, s.period, s.patience, s.names["plant"]) == (4, 2 * MS, 2000 * MS, "simulator")


@pytest.mark.parametrize("values, message", [
    ({"steps": 1.5}, "'steps' is 1.5, expected a whole number"), ({"steps": 0}, "'steps' is 0"),
    ({"controller": ""}, "would go nowhere"), ({"bridge_model": "arm"}, "needs parameter 'joints'"),
    ({"stepper": "gz"}, "'rbd', 'gazebo', 'simulation_interfaces', 'none'"), ({"patience": 0.0}, "'patience'")])
def test_what_cannot_be_is_named(values, message):
    with pytest.raises(rbd.RbdError, match=message):
        LockstepSettings.from_values(values)
