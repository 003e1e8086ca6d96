"""What a contact does to an arm in the loop: reports, stops, yields, goes back; never a push by the node itself."""
from __future__ import annotations

import numpy as np
import pytest
from benchmark.loop.cases import case
from control.test_closed_loop import move, rig_of, run, way  # noqa: F401

import rbd_ros as rbd
from rbd_ros.core.motion.retimed import Retimed
from rbd_ros.core.motion.trajectory import Reference, Trajectory, Waypoint
from rbd_ros.runtime.control.contact_reaction import BRAKE
from rbd_ros.runtime.control.feedforward import FeedforwardController, FeedforwardSettings
from rbd_ros.runtime.estimation.contacts import ContactDetector
from rbd_ros.runtime.inputs.references import Point

pytestmark = pytest.mark.closed_loop
pytest.importorskip("pinocchio", reason="arms are those of example-robot-data: scripts/setup --peers")
THRESHOLD = [8.0, 8.0, 5.0, 4.0, 3.0, 1.5, 1.5]    # of the demo's iiwa, whose masses are 5 % off
LINK = "link_6"
WHEEL = """<robot name="wheel"><link name="base"/><link name="wheel"><inertial><mass value="1"/>
  <inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="turn" type="continuous"><parent link="base"/><child link="wheel"/><axis xyz="0 0 1"/>
  <limit effort="50" velocity="10"/></joint></robot>"""


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
    changes = rig.controller.contacts.take_changes()
    assert changes[0].touching and not changes[-1].touching and len(changes) <= 4
    assert [change.touching for change in changes].count(False) == 1
    assert changes[-1].body == "link_4" and rig.controller.report()["contacts"] == 1
    assert rig.controller.contacts.take_changes() == [] and rig.controller.report()["touched"] == ""
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
    push(rig, [60.0, 36.0, 0.0])
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
@pytest.mark.parametrize("force", [[60.0, 36.0, 0.0], pytest.param([-60.0, -36.0, 0.0], marks=pytest.mark.thorough)])
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


def yielding(**changed):
    """A rig whose arm has been pushed for 0.2 s in motion, and is pushed no more."""
    rig = touched_rig("yield", **changed)
    rig.goal = move(rig)
    run(rig, 0.6)
    push(rig, [60.0, 36.0, 0.0])
    until_touched(rig)
    run(rig, 0.2)
    push(rig, None)
    assert rig.controller.contacts.yields
    return rig


@pytest.mark.usefixtures("way")
def test_an_emergency_stop_while_it_yields_holds_it():
    rig = yielding()
    rig.controller.safety.stop()
    run(rig, 0.5)
    place = rig.plant.q.copy()
    run(rig, 2.0)
    assert not rig.controller.contacts.yields and rig.controller.safety.mode == "stopped"
    assert np.abs(rig.plant.q - place).max() < 0.03 and np.abs(rig.plant.v).max() < 0.01
    rig.controller.reset(rig.now)
    run(rig, 2.0)
    assert np.abs(rig.plant.q - place).max() < 0.05    # it does not go on


def stays(rig, settling=1.5):
    """Whether the arm is where it is after a while."""
    run(rig, settling)
    place = rig.plant.q.copy()
    run(rig, 1.0)
    return np.abs(rig.plant.q - place).max() < 0.03 and np.abs(rig.plant.v).max() < 0.02


def test_what_ends_yielding_for_good():
    """A stop, a halt, other parameters and a deactivation: the rest of the motion is dropped, with a word."""
    names = case("demo").model.joint_names
    for end in (lambda rig: rig.controller.on_trajectory(rig.now, 0, names, []),
                lambda rig: rig.controller.halt(rig.now),
                lambda rig: rig.controller.apply(rig.case.settings(**{
                    "contact.reaction": "off", "contact.threshold": THRESHOLD})),
                lambda rig: rig.controller.apply(rig.case.settings(**{
                    "contact.reaction": "yield", "contact.threshold": THRESHOLD, "contact.gain": 30.0})),
                lambda rig: rig.controller.deactivate()):
        rig = yielding()
        end(rig)
        assert stays(rig) and not rig.controller.contacts.yields
        assert any("the rest of the motion was dropped" in line for line in rig.lines)
        assert np.abs(rig.plant.q - rig.goal).max() > 0.05


@pytest.mark.parametrize("payload", [{}, {"payload.body": "link_7", "payload.mass": 0.1}])
def test_parameters_that_have_nothing_to_do_with_it_change_nothing(payload):
    rig = yielding(**payload)
    rig.controller.apply(rig.case.settings(**{"contact.reaction": "yield", "contact.threshold": THRESHOLD,
                                              "gains.kd": [25.0], **payload}))
    assert rig.controller.contacts.yields and rig.controller.contacts.body


def test_a_trajectory_while_it_yields_is_refused_with_a_word():
    rig = yielding()
    zero = np.zeros(7)
    verdict = rig.controller.on_trajectory(rig.now, 0, rig.case.model.joint_names, [Point(1.0, rig.goal, zero, zero)])
    assert not verdict and "yields to a contact" in verdict.text


@pytest.mark.usefixtures("way")
def test_the_way_back_is_to_the_place_of_the_interruption():
    rig = touched_rig("yield")
    move(rig)
    run(rig, 0.8)
    push(rig, [60.0, 36.0, 0.0])
    until_touched(rig)
    motion, time = rig.controller.contacts._interrupted
    place = motion.sample(time).q
    run(rig, 0.3)
    led = rig.plant.q.copy()
    push(rig, None)
    seen, rates = [], []

    def look():
        reference = rig.controller.reference.sample(rig.now, rig.controller.state.time_ns)
        seen.append(np.full(7, np.nan) if reference is None else reference.q)
        rates.append(np.full(7, np.nan) if reference is None else reference.v)

    assert np.abs(led - place).max() > 0.05
    run(rig, 6.0, look)
    path = np.array(seen)[~np.isnan(np.array(seen)).any(axis=1)]
    assert np.abs(path - place).max(axis=1).min() < 1e-3
    ends = np.array([path[0], place, rig.plant.q])
    low, high = ends.min(axis=0), ends.max(axis=0)
    assert (path > low - 0.01).all() and (path < high + 0.01).all()
    assert np.abs(np.diff(path, axis=0)).max() < 0.02    # no step
    planned = max(np.abs(motion.sample(t).v).max() for t in np.arange(time + BRAKE, 6.0, 0.001))
    assert 0.95 * planned < np.nanmax(np.abs(rates)) < 1.01 * planned    # then as fast as planned


def test_an_unknown_load_is_a_contact_without_end():
    """The arm sinks no faster than if it were stopped, and is held when the patience is at an end."""
    load, fastest = rbd.Inertia(2.0, np.array([0.1, 0.0, 0.1]), 0.02 * np.eye(3)), []
    for reaction in ("stop", "yield"):
        rig = touched_rig(reaction, **{"contact.patience": 1.0})
        move(rig, 0.2)
        run(rig, 0.4)
        rig.plant.become(rig.arm.with_payload("link_7", load))
        fastest.append(run(rig, 2.5))
        assert rig.controller.safety.latched and stays(rig)
    assert any("lasts for more than 1 s" in line for line in rig.lines)
    assert fastest[1] < 1.2 * fastest[0] + 0.1, fastest


@pytest.mark.usefixtures("way")
def test_what_still_touches_after_a_gap_is_yielded_to_anew():
    """Also if a stream of references goes on meanwhile."""
    rig = touched_rig("yield")
    names, zero = rig.case.model.joint_names, np.zeros(7)

    def stream():
        assert rig.controller.on_reference(rig.now, 0, names, place, zero)

    place = rig.plant.q.copy()
    run(rig, 0.8, stream)
    push(rig, [60.0, 36.0, 0.0])
    run(rig, 0.3, stream)
    assert rig.controller.contacts.yields
    rig.blind_until = rig.now + 0.3
    run(rig, 0.32, stream)
    assert not rig.controller.contacts.yields
    run(rig, 0.3, stream)
    assert rig.controller.contacts.yields and rig.controller.contacts.body


@pytest.mark.parametrize("gap", [0.03, 0.06, 0.08, 0.12])
def test_gaps_in_motion_are_no_contacts(gap):
    rig = touched_rig("stop")
    move(rig, 0.6, 1.2)
    for _ in range(3):
        run(rig, 0.25)
        rig.blind_until = rig.now + gap
    run(rig, 1.0)
    assert rig.controller.report()["contacts"] == 0 and not rig.controller.safety.latched


def test_after_a_reset_what_still_touches_stops_anew():
    rig = touched_rig("stop")
    push(rig, [60.0, 36.0, 0.0])
    until_touched(rig)
    run(rig, 0.5)
    rig.controller.reset(rig.now)
    assert not rig.controller.safety.latched
    until_touched(rig)
    rig.cycle()
    assert rig.controller.safety.latched


@pytest.mark.usefixtures("way")
def test_a_defect_of_the_observer_stops_the_arm_and_not_the_output():
    rig = touched_rig("report")
    move(rig)
    run(rig, 0.4)

    def broken(now):
        raise ValueError("a defect")

    rig.controller.contacts.observe = broken
    before = rig.outputs
    run(rig, 0.2)
    assert rig.outputs - before > 90 and rig.controller.safety.latched
    assert any("a defect" in line for line in rig.lines)


def test_blindness_is_told():
    rig = touched_rig("stop", **{"contact.effort": "joint_states"})
    run(rig, 1.5)    # joint states of the rig have no efforts
    assert [line for line in rig.lines if "contacts are not felt: joint states have no efforts" in line]
    assert rig.controller.report()["contact_estimates"] == 0


def test_a_continuous_joint_goes_back_the_short_way():
    """Interrupted at 2.8 rad, led on to 3.3, where the sensor has wrapped."""
    model = rbd.load_urdf(WHEEL)
    settings = FeedforwardSettings.from_values({
        "gains.kp": 100.0, "gains.kd": 10.0, "contact.reaction": "yield", "contact.threshold": 1.0, "ramp_in": 0.2,
        "plausible_velocity": np.inf}, model)
    controller, plant, now, turned = FeedforwardController(model, settings), rbd.Simulator(model, step=0.002), 0.0, 0.0
    controller.activate(0.0)
    plant.reset(q=[2.4])
    for k in range(3000):
        now += 0.002
        wrapped = (plant.q + np.pi) % (2.0 * np.pi) - np.pi
        command = controller.on_state(now, round(now * 1e9), model.joint_names, wrapped, plant.v)
        if k == 100:
            assert controller.on_trajectory(now, 0, model.joint_names, [Point(1.0, np.array([3.0]), *np.zeros((2, 1)))])
        push = 8.0 if 350 < k < 450 else 0.0
        plant.step(command.effort + push)
        turned = max(turned, float(plant.q[0]))
    assert controller.report()["contacts"] == 1 and turned > np.pi
    assert abs(plant.q[0] - 3.0) < 0.02 and turned < 4.5


@pytest.mark.usefixtures("way")
def test_at_rest_it_yields_and_stays():
    """Without a reference the hold lets go, and holds again where it was led to."""
    rig = touched_rig("yield")
    assert rig.controller.safety.mode == "waiting"
    place = rig.plant.q.copy()
    push(rig, [60.0, 36.0, 0.0])
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
    push(rig, [60.0, 36.0, 0.0])
    until_touched(rig)
    touched = rig.plant.q.copy()
    push(rig, None)
    assert run(rig, 3.0) < 2.0
    share = (rig.plant.q - start) / (goal - start)    # a straight line
    assert np.ptp(share) < 0.1 and share.mean() < ((touched - start) / (goal - start)).mean() - 0.1
    assert np.abs(rig.plant.v).max() < 0.02 and rig.controller.safety.mode == "running"


@pytest.mark.usefixtures("way")
def test_the_way_back_is_no_faster_and_begins_at_once():
    rig = touched_rig("retract", **{"contact.retract": 0.5})
    move(rig)
    run(rig, 0.8)
    push(rig, [60.0, 36.0, 0.0])
    until_touched(rig)
    push(rig, None)
    motion, time = rig.controller.contacts._interrupted
    speed = np.abs(np.gradient([motion.sample(t).q for t in np.arange(0.0, 1.6, 0.01)], 0.01, axis=0)).max()
    forward, fastest = 0.0, 0.0

    def look():
        nonlocal forward, fastest
        reference = rig.controller.reference.sample(rig.now, rig.controller.state.time_ns)
        fastest = max(fastest, float(np.abs(reference.v).max()))
        at = motion.sample(time)
        forward = max(forward, float(at.v @ (reference.q - at.q) / (at.v @ at.v)))

    run(rig, 2.0, look)
    assert forward < 0.08 and fastest < 1.01 * speed


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("at_once", [True, False])
def test_what_opposes_the_way_back_stops_it(at_once):
    """Also where the first contact has not ended."""
    rig = touched_rig("retract", **{"contact.release": 0.02})
    move(rig)
    run(rig, 0.8)
    along = (rbd.jacobian(rig.arm, rig.plant.q, LINK, "aligned") @ rig.plant.v)[3:]
    along *= 100.0 / np.linalg.norm(along)
    push(rig, -along)
    until_touched(rig)
    if not at_once:
        push(rig, None)
        while rig.controller.contacts.body is not None:
            rig.cycle()
    assert rig.controller.contacts.state in ("braking", "retracting") and not rig.controller.safety.latched
    push(rig, along)
    run(rig, 0.5)
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
                    rig.errors["outlier"] = rng.normal(size=7), np.zeros(7)
                case 1:
                    rig.errors["outlier"] = np.zeros(7), 5.0 * rng.normal(size=7)
                case 2:
                    rig.blind_until = rig.now + rng.uniform(0.0, 0.2)
                case 3:
                    rig.node_until = rig.now + rng.uniform(0.0, 0.2)
                case 4:
                    rig.driver_until = rig.now + rng.uniform(0.0, 0.2)
            rig.cycle()
            rig.errors.clear()
        assert run(rig, 2.0) < 2.0
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
    for motion in (Retimed(path, 1.3, 0.0, 1.55, 1.0, 0.5), Retimed(path, 2.0, 1.0, 1.2, 0.0, 1.9)):
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
    seen = [detector.update(k * ms, q, effort * size, np.zeros(7)) for k, size in enumerate(
        [0.0, *np.linspace(0.0, 1.0, 50), *np.full(50, 0.9), *np.zeros(300)])]
    changes = [change for change in seen if change]
    assert [change.touching for change in changes][-1:] == [False] and len(changes) <= 4
    assert changes[-1].body == "link_5" and [change.begins for change in changes].count(True) == 1
    assert changes[-1].time_ns == 200 * ms
    assert detector.update(500 * ms, q, np.array([1e9, *np.zeros(6)]), np.zeros(7)) is None    # its threshold is 0


@pytest.mark.parametrize("known", [False, True])
def test_the_link_of_a_contact_is_the_likeliest_where_the_noise_is_known(known):
    """A force through the axes of joints 5 to 7: the last joint that must feel it is the fourth."""
    model = rbd.sample("iiwa")
    q, ms, rng = np.linspace(0.2, 1.0, 7), 1_000_000, np.random.default_rng(4)
    detector = ContactDetector(model, np.full(7, 0.5), 0.1, 0.03**2 * np.eye(7) if known else None)
    detector.warm_up()
    push = rbd.jacobian(model, q, "link_6").T @ np.array([0.0, 0.0, 0.0, 20.0, 0.0, 0.0])
    changes = []
    for contact in range(2):    # nothing of the first one is left in the second
        begin = 1000 * contact
        for k in range(600):
            effort = push * (0 < k <= 300) + 0.03 * rng.standard_normal(7)
            if change := detector.update((begin + k) * ms, q, effort, np.zeros(7)):
                changes.append((begin + k, change.touching, change.begins, change.body))
    wanted = [(1, True, True, "link_4"), *[(22, True, False, "link_6")] * known,
              (400, False, False, "link_6" if known else "link_4")]
    assert [(at % 1000, *rest) for at, *rest in changes] == wanted * 2
