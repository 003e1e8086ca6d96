"""Who waits for whom in lockstep, without ROS."""
import pytest

import rbd_ros as rbd
from rbd_ros.runtime.cosimulation.lockstep import Lockstep, LockstepSettings, receipt_services

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
    assert logic.counts == {"cycles": 2, "overdue": 0, "refused": 0, "overshoots": 0, "unanswered": 0,
                            "resets": 0, "pauses": 0}


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


def test_with_receipts_no_steps_are_due_before_them():
    logic = Lockstep(2 * MS, patience=100 * MS, receipts=True)
    logic.start(0)
    logic.on_state(1, 0)
    assert not logic.on_receipt(1) and logic.on_answer(2, 0)    # the command goes out
    assert logic.phase == "sending" and logic.on_state(3, 0) is None and not logic.on_answer(3, 0)
    assert not logic.overdue(99 * MS) and logic.overdue(103 * MS) and logic.phase == "sending"
    assert logic.on_receipt(104 * MS) and (logic.phase, logic.target) == ("stepping", 2 * MS)
    assert not logic.on_receipt(105 * MS)


@pytest.mark.parametrize("phase", ["sending", "stepping", "computing"])
def test_after_a_reset_of_the_simulation_turns_begin_anew(phase):
    logic = Lockstep(2 * MS, patience=100 * MS, retry=10 * MS, receipts=phase == "sending")
    logic.start(0)
    logic.on_state(1, 500 * MS)
    assert logic.on_answer(2, 500 * MS)
    if phase == "computing":
        logic.on_state(3, 502 * MS)
    assert logic.phase == phase
    found = logic.on_state(4, 1 * MS)
    assert found.kind == "reset" and found.at == 1e-3
    assert found.seconds == pytest.approx(0.501 if phase == "computing" else 0.499)
    assert logic.phase == "starting" and logic.counts["resets"] == 1
    assert logic.on_answer(5, 1 * MS) and logic.target == 3 * MS
    assert logic.on_state(6, 1 * MS) is None    # shown once more


def test_an_answer_that_overtakes_two_states_is_no_reset():
    logic = started()
    assert logic.on_answer(3, 2 * MS) and logic.on_answer(4, 4 * MS)
    assert logic.on_state(5, 2 * MS) is None and logic.on_state(6, 4 * MS) is None
    assert logic.counts["resets"] == 0 and logic.target == 6 * MS


def test_a_pause_of_the_simulation_is_told_when_it_goes_on():
    logic, second = started(), 1_000_000_000
    logic.on_state(2 * second, 2 * MS)    # it does not run yet: not a pause
    now = 2 * second
    for stamp in (3 * MS, 4 * MS):
        now += MS
        assert logic.on_state(now, stamp) is None
    for _ in range(30):                   # a simulation that stands, and shows its state again and again
        now += second // 4
        assert logic.on_state(now, 4 * MS) is None
    found = logic.on_state(now, 5 * MS)
    assert found == ("pause", 0.004, pytest.approx(7.5)) and logic.counts["pauses"] == 1
    assert logic.on_state(now + MS, 6 * MS) is None


@pytest.mark.parametrize(("controller", "receivers", "services"), [
    ("effort_controller", ("effort_controller",), ["effort_controller/get_parameters"]),
    ("/arm/torque", ("torque",), ["/arm/torque/get_parameters"]), ("", ("bridge",), ["bridge/get_parameters"]),
    ("effort_controller", (), [])])
def test_receivers_are_asked_by_a_service_that_every_node_has(controller, receivers, services):
    assert receipt_services(controller, receivers) == services


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
