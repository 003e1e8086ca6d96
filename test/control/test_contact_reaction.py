"""What a contact does to an arm in the loop: reports, stops, yields, goes back; never a push by the node itself."""
from __future__ import annotations

import numpy as np
import pytest
from benchmark.loop.cases import case
from benchmark.loop.rig import Rig
from control.test_closed_loop import move, rig_of, run, way  # noqa: F401

import rbd_ros as rbd
from rbd_ros.core.motion.retimed import Retimed
from rbd_ros.core.motion.trajectory import Reference, Trajectory, Waypoint
from rbd_ros.runtime.control.feedforward import FeedforwardSettings
from rbd_ros.runtime.estimation.contacts import ContactDetector

pytestmark = pytest.mark.closed_loop
pytest.importorskip("pinocchio", reason="arms are those of example-robot-data: scripts/setup --peers")
THRESHOLD = [8.0, 8.0, 5.0, 4.0, 3.0, 1.5, 1.5]    # of the demo's iiwa, whose masses are 5 % off
LINK = "link_6"


def touched_rig(reaction, **changed):
    return rig_of("demo", **{"contact.reaction": reaction, "contact.threshold": THRESHOLD, **changed})


def push(rig, force, link=LINK):
    """A force (N) on the link from now on, in the axes of the world; None: no more."""
    model = rig.arm
    rig.elsewhere = None if force is None else lambda q, v: rig._acting + rbd.jacobian(
        model, q, link, "aligned").T @ np.concatenate([np.zeros(3), force])


def until_touched(rig, longest=0.5):
    """Cycles until a contact is noticed; s."""
    begin = rig.now
    while rig.controller.contacts.body is None:
        rig.cycle()
        assert rig.now - begin < longest, rig.controller.contacts.external
    return rig.now - begin


@pytest.mark.usefixtures("way")
def test_a_report_changes_nothing():
    """The same bits as without the observer, and a message when it begins and when it ends."""
    outputs = []
    for reaction in ("off", "report"):
        rig = touched_rig(reaction)
        move(rig)
        sent = []
        run(rig, 0.4, lambda: sent.append(rig.last))    # noqa: B023
        push(rig, [80.0, 40.0, 0.0])
        run(rig, 0.2, lambda: sent.append(rig.last))    # noqa: B023
        push(rig, None)
        run(rig, 1.5, lambda: sent.append(rig.last))    # noqa: B023
        outputs.append(np.array(sent))
    changes = rig.controller.take_contact_changes()
    assert changes[0].touching and not changes[-1].touching and len(changes) <= 4
    assert [change.touching for change in changes].count(False) == 1
    assert changes[-1].body == "link_4" and rig.controller.report()["contacts"] == 1
    assert rig.controller.take_contact_changes() == [] and rig.controller.report()["touched"] == ""
    np.testing.assert_array_equal(*outputs)    # joints 5 and 6 feel nothing of a force through their axes


@pytest.mark.usefixtures("way")
def test_motions_without_contact_are_none():
    rig = touched_rig("stop")
    for reach in (0.4, -0.6, 0.5):
        move(rig, reach)
        run(rig, 2.0)
    assert rig.controller.report()["contacts"] == 0 and rig.controller.safety.mode == "running"


@pytest.mark.usefixtures("way")
def test_it_stops_with_the_next_answer():
    rig = touched_rig("stop")
    move(rig)
    run(rig, 0.5)
    push(rig, [100.0, 60.0, 0.0])
    until_touched(rig)
    assert rig.controller.safety.latched
    push(rig, None)
    rig.cycle()
    assert rig.controller.safety.mode == "stopped"
    run(rig, 1.0)
    place = rig.plant.q.copy()
    assert np.abs(rig.plant.v).max() < 0.05
    run(rig, 1.0)
    assert np.abs(rig.plant.q - place).max() < 0.02
    assert any("contact at 'link_" in line and "emergency stop" in line for line in rig.lines)
    rig.controller.reset(rig.now)
    run(rig, 2.0)
    assert np.abs(rig.plant.q - place).max() < 0.05    # the trajectory was dropped


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("force", [[100.0, 60.0, 0.0], [-60.0, 100.0, 50.0]])
def test_it_yields_and_goes_on(force):
    """As long as it is pushed it is compliant; then it follows the rest of its path to the same goal."""
    rig = touched_rig("yield")
    goal = move(rig)
    run(rig, 0.6)
    force = np.array(force)
    start = rbd.forward_kinematics(rig.arm, rig.plant.q)[rig.arm.body_index(LINK)][:3, 3]
    push(rig, force)
    until_touched(rig)
    run(rig, 0.4)
    led = rbd.forward_kinematics(rig.arm, rig.plant.q)[rig.arm.body_index(LINK)][:3, 3] - start
    assert led @ force > 0.02 * np.linalg.norm(force) and rig.controller.safety.mode == "waiting"
    push(rig, None)
    fastest = run(rig, 9.0)
    assert rig.controller.safety.mode == "running" and rig.controller.contacts.body is None
    assert np.abs(rig.plant.q - goal).max() < 0.03 and np.abs(rig.plant.v).max() < 0.02
    assert fastest < 2.5 and rig.controller.report()["not_following"] == 0


@pytest.mark.usefixtures("way")
def test_an_emergency_stop_while_it_yields_holds_it():
    rig = touched_rig("yield")
    move(rig)
    run(rig, 0.6)
    push(rig, [100.0, 60.0, 0.0])
    until_touched(rig)
    run(rig, 0.2)
    push(rig, None)
    rig.controller.safety.stop()
    run(rig, 0.5)
    place = rig.plant.q.copy()
    run(rig, 2.0)
    assert not rig.controller.yields and rig.controller.safety.mode == "stopped"
    assert np.abs(rig.plant.q - place).max() < 0.03 and np.abs(rig.plant.v).max() < 0.01
    rig.controller.reset(rig.now)
    run(rig, 2.0)
    assert np.abs(rig.plant.q - place).max() < 0.05    # it does not go on


@pytest.mark.usefixtures("way")
def test_a_trajectory_that_comes_meanwhile_replaces_the_rest():
    rig = touched_rig("yield")
    move(rig)
    run(rig, 0.6)
    push(rig, [100.0, 60.0, 0.0])
    until_touched(rig)
    run(rig, 0.1)
    push(rig, None)
    rig.cycle()
    assert rig.controller.yields and rig.controller.on_trajectory(rig.now, 0, rig.case.model.joint_names, [])
    run(rig, 1.0)
    place = rig.plant.q.copy()
    run(rig, 2.0)
    assert not rig.controller.yields and np.abs(rig.plant.q - place).max() < 0.03


@pytest.mark.usefixtures("way")
def test_at_rest_it_yields_and_stays():
    """Without a reference the hold lets go, and holds again where it was led to."""
    rig = touched_rig("yield")
    assert rig.controller.safety.mode == "waiting"
    place = rig.plant.q.copy()
    push(rig, [100.0, 60.0, 0.0])
    until_touched(rig)
    run(rig, 0.3)
    push(rig, None)
    run(rig, 1.5)
    led = rig.plant.q.copy()
    assert np.abs(led - place).max() > 0.05
    run(rig, 2.0)
    assert np.abs(rig.plant.q - led).max() < 0.05


@pytest.mark.usefixtures("way")
def test_it_goes_back_along_the_path():
    rig = touched_rig("retract", **{"contact.retract": 0.3})
    start = rig.plant.q.copy()
    goal = move(rig)
    run(rig, 0.8)
    push(rig, [100.0, 60.0, 0.0])
    until_touched(rig)
    touched = rig.plant.q.copy()
    push(rig, None)
    assert run(rig, 3.0) < 2.0
    share = (rig.plant.q - start) / (goal - start)    # a straight line
    assert np.ptp(share) < 0.1 and share.mean() < ((touched - start) / (goal - start)).mean() - 0.1
    assert np.abs(rig.plant.v).max() < 0.02 and rig.controller.safety.mode == "running"


@pytest.mark.usefixtures("way")
def test_a_second_contact_on_the_way_back_stops():
    rig = touched_rig("retract", **{"contact.release": 0.02})
    move(rig)
    run(rig, 0.8)
    push(rig, [100.0, 60.0, 0.0])
    until_touched(rig)
    push(rig, None)
    while rig.controller.contacts.body is not None:
        rig.cycle()
    assert not rig.controller.safety.latched
    push(rig, [-100.0, -60.0, 0.0])
    until_touched(rig)
    assert rig.controller.safety.latched


@pytest.mark.parametrize("reaction", ["stop", "yield", "retract"])
def test_lies_of_sensors_do_not_push(reaction):
    """Random outliers, gaps, stalls and wild numbers: the arm may stop or yield, and rests in the end."""
    rng = np.random.default_rng(3)
    for _ in range(2):
        rig = touched_rig(reaction)
        move(rig, 0.3)
        place = rig.plant.q.copy()
        for _ in range(8):
            run(rig, 0.1)
            match int(rng.integers(5)):
                case 0:
                    rig.errors["q"] = lambda q: q + rng.normal(size=len(q))
                case 1:
                    rig.errors["v"] = lambda v: v + 5.0 * rng.normal(size=len(v))
                case 2:
                    rig.blind_until = rig.now + rng.uniform(0.0, 0.2)
                case 3:
                    rig.node_until = rig.now + rng.uniform(0.0, 0.2)
                case 4:
                    rig.driver_until = rig.now + rng.uniform(0.0, 0.2)
            rig.cycle()
            rig.errors.clear()
        assert run(rig, 3.0) < 2.0
        assert np.abs(rig.plant.v).max() < 0.05 and np.abs(rig.plant.q - place).max() < 0.8


def test_known_wrenches_are_no_contacts():
    rig = touched_rig("stop", **{"wrench_limits.rate": 1e6})
    wrench = np.array([0.0, 0.0, 0.0, 0.0, 0.0, -100.0])
    push(rig, wrench[3:])
    for _ in range(300):
        turned = rbd.forward_kinematics(rig.arm, rig.plant.q)[rig.arm.body_index(LINK)][:3, :3].T @ wrench[3:]
        assert rig.controller.on_wrenches(rig.now, [(LINK, np.concatenate([np.zeros(3), turned]))])
        rig.cycle()
    assert rig.controller.report()["contacts"] == 0


@pytest.mark.parametrize(("values", "words"), [
    ({"contact.reaction": "flee"}, "contact.reaction"),
    ({"contact.reaction": "stop"}, "every 'contact.threshold' is 0"),
    ({"contact.reaction": "stop", "contact.threshold": [1.0], "robot_compensates": ["gravity"]}, "joint_states"),
    ({"contact.reaction": "stop", "contact.threshold": [1.0], "odometry": "odom"}, "not supported with odometry"),
    ({"contact.threshold": [-1.0]}, "contact.threshold"), ({"contact.retract": -1.0}, "contact.retract")])
def test_wrong_parameters(values, words):
    with pytest.raises(rbd.RbdError, match=words):
        FeedforwardSettings.from_values(values, case("demo").model)


def test_a_retimed_motion_has_the_derivatives_of_its_position():
    path = Trajectory([Waypoint(t, np.array(q), np.array(v), np.zeros(2)) for t, q, v in (
        (1.0, [1.0, -0.5], [0.3, 0.1]), (2.5, [0.3, 0.8], [0.5, -0.2]), (4.0, [1.0, 1.0], [0.0, 0.0]))],
        Reference.rest(np.zeros(2)))
    for motion in (Retimed(path, 1.3, 0.0, 1.55, 1.0, 0.5), Retimed(path, 2.0, 1.0, 1.2, 0.0, 1.9),
                   Retimed(path, 1.3, 0.0, 2.3, 1.0, 2.0, np.array([0.4, -0.3]))):
        for t in np.linspace(0.05, motion.duration - 0.01, 23):
            h = 1e-5
            before, at, after = (motion.sample(t + k * h) for k in (-1, 0, 1))
            np.testing.assert_allclose(at.v, (after.q - before.q) / (2 * h), rtol=0, atol=1e-6)
            if abs(t - motion._blend) > 2 * h:
                np.testing.assert_allclose(at.a, (after.v - before.v) / (2 * h), rtol=0, atol=1e-4)
    going_on = Retimed(path, 1.3, 0.0, 1.55, 1.0, 0.5)
    assert not going_on.caught_up(0.49) and going_on.caught_up(0.5)
    np.testing.assert_allclose(going_on.sample(going_on.duration).q, [1.0, 1.0], rtol=0, atol=1e-12)
    np.testing.assert_allclose(Retimed(path, 2.0, 1.0, 1.2, 0.0, 1.9).sample(9.0).q, path.sample(1.2).q)


def test_contacts_begin_and_end_once():
    model = rbd.sample("iiwa")
    detector = ContactDetector(model, np.array([0.0, *np.full(6, 2.0)]), 0.1)
    q, ms = np.linspace(0.2, 1.0, 7), 1_000_000
    effort = rbd.jacobian(model, q, "link_5").T @ np.array([1.0, 2.0, 9.0, 10.0, 20.0, 0.0])
    seen = [detector.update(k * ms, q, effort * size) for k, size in enumerate(
        [0.0, *np.linspace(0.0, 1.0, 50), *np.full(50, 0.9), *np.zeros(300)])]
    changes = [change for change in seen if change]
    assert [change.touching for change in changes][-1:] == [False] and len(changes) <= 4
    assert changes[-1].body == "link_5" and changes[-1].time_ns - 100 * ms == 100 * ms
    assert detector.update(500 * ms, q, np.array([1e9, *np.zeros(6)])) is None    # its threshold is 0


def test_a_rig_without_contacts_costs_nothing():
    assert not Rig(case("demo"), np.random.default_rng(0)).controller.contacts.watches
