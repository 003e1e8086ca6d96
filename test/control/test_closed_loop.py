"""The arm in the loop: what stops, stalls, cancels and outliers do to it, by every shipped configuration.

`benchmark/loop` has the arms (errors of masses and friction, motor lag, delay, encoders, brakes) and a walk through
random events; here is a short one, and the events that once lost the arm.
"""
from __future__ import annotations

import numpy as np
import pytest
from benchmark.loop.cases import CASES, case
from benchmark.loop.episode import Episode
from benchmark.loop.link import LinkEpisode
from benchmark.loop.rig import Rig

import rbd_ros as rbd
from rbd_ros.cli.demo_touch import BODY, LOAD, WAY, bench
from rbd_ros.runtime.estimation.payload_adoption import payload_values
from rbd_ros.runtime.inputs.references import Point
from rbd_ros.runtime.steady.steady_tracking import TrackingCycle

pytestmark = pytest.mark.closed_loop
pytest.importorskip("pinocchio", reason="arms are those of example-robot-data: scripts/setup --peers")


@pytest.fixture(params=["direct", "executor"])
def way(request, monkeypatch):
    """States as bytes, with the steady cycle; or as messages, without it."""
    if request.param == "executor":
        monkeypatch.setattr(TrackingCycle, "answer", lambda *message: None)


every_case = pytest.mark.parametrize("name", CASES)


def rig_of(name, smooth=False, **changed):
    """A rig whose arm is 5 % heavier than the model, at rest near the middle of its range. smooth: of little friction.
    """
    found = case(name)
    rig = Rig(found, np.random.default_rng(5))
    rig.arm = found.model.with_scaled_masses(1.05)
    rig.plant.become(rig.arm)
    rig.plant.rest_at(0.5 * (found.poses[0] + found.poses[1]) + 0.3)
    if smooth:
        rig.plant.become(rig.arm.with_(friction=0.0 * rig.arm.friction, damping=0.1 * rig.arm.damping))
    rig.has_brakes, rig._delay, rig._jitter, rig._noise = False, 0.002, 0.0, 0.0
    if changed:
        rig.settings = found.settings(**changed)
        rig.start()
    for _ in range(50):
        rig.cycle()
    return rig


def run(rig, duration, look=None):
    """Cycles for that long (s); the largest speed (rad/s) on the way."""
    fastest, end = 0.0, rig.now + duration
    while rig.now < end:
        rig.cycle()
        fastest = max(fastest, float(np.abs(rig.plant.v).max()))
        if look is not None:
            look()
    return fastest


def move(rig, reach=0.4, duration=1.6):
    """Begin a quintic over that distance (rad) from where the arm is; its speed is up to 1.9 reach/duration."""
    zero = np.zeros(len(rig.plant.q))
    goal = rig.plant.q - reach
    assert rig.controller.on_trajectory(rig.now, 0, rig.case.model.joint_names, [Point(duration, goal, zero, zero)])
    return goal


@every_case
@pytest.mark.parametrize("rate", [None, 500.0])
def test_an_empty_trajectory_in_motion_stops_the_arm(name, rate):
    rig = rig_of(name, **({} if rate is None else {"effort_limits.rate": [rate]}))
    move(rig)
    run(rig, 0.8)
    speed, place = np.abs(rig.plant.v).max(), rig.plant.q.copy()
    assert speed > 0.3
    assert rig.controller.on_trajectory(rig.now, 0, rig.case.model.joint_names, [])
    assert run(rig, 1.2) < speed + 0.7
    assert np.abs(rig.plant.v).max() < 0.15 and np.abs(rig.plant.q - place).max() < 0.1 + 0.2 * speed


@every_case
def test_a_motion_that_is_halted_ends_softly(name):
    rig = rig_of(name, **{"effort_limits.rate": [500.0]})
    move(rig)
    run(rig, 0.8)
    speed, place = np.abs(rig.plant.v).max(), rig.plant.q.copy()
    assert speed > 0.3
    rig.controller.halt(rig.now)
    assert run(rig, 0.2) < speed + 0.1 and not rig.controller.rests()
    rested = []
    assert run(rig, 1.5, lambda: rested.append(rig.controller.rests())) < speed + 0.1
    assert rested[-1] and np.abs(rig.plant.q - place).max() < 0.05 + 0.3 * speed


@pytest.mark.parametrize("name", [name for name in CASES if name != "gazebo"])    # whose time stands still as well
@pytest.mark.usefixtures("way")
def test_a_rate_limit_does_not_destabilise_the_loop_after_a_stall_of_the_node(name):
    rig = rig_of(name, **{"effort_limits.rate": [500.0]})
    move(rig)
    run(rig, 0.5)
    rig.node_until = rig.now + 0.3
    run(rig, 0.31)
    before = np.abs(rig.plant.v).max()
    assert run(rig, 2.0) < max(before, 0.5) + 1.0
    assert np.abs(rig.plant.v).max() < 0.05
    assert any("stood still" in line for line in rig.lines)


@pytest.mark.usefixtures("way")
def test_a_node_that_stood_still_ramps_in_again():
    """From the safe effort of that state, as its trajectory has gone on meanwhile."""
    rig = rig_of("demo")
    move(rig)
    run(rig, 0.5)
    outputs, rig.node_until = rig.outputs, rig.now + 0.2
    while rig.outputs == outputs:
        rig.cycle()
    controller = rig.controller
    assert controller.safety.mode == "ramp_in"
    assert np.abs(rig.last - controller.safe_effort(False)).max() < 1e-6
    run(rig, 1.0)
    assert controller.safety.mode == "running"


@pytest.mark.parametrize("old", [1, 2, 4])
@pytest.mark.usefixtures("way")
def test_a_trajectory_goes_on_after_the_driver_stood_still_and_sent_old_positions(old):
    rig = rig_of("demo")
    goal = move(rig)
    run(rig, 0.6)
    rig.driver_until, rig.errors["repeat"] = rig.now + 0.1, old
    run(rig, 3.0)
    report = rig.controller.report()
    assert report["position_restarts"] == 0 and report["rejected_implausible"] == 0 and report["mode"] == "running"
    assert np.abs(rig.plant.q - goal).max() < 0.05
    assert any("joint states are back after 0.1" in line for line in rig.lines)


def test_repeated_positions_are_no_evidence_against_those_that_follow():
    rig = rig_of("demo")
    goal = move(rig, 0.4, 1.2)
    run(rig, 0.5)
    rig.errors["repeat"] = 6
    run(rig, 3.0)
    assert rig.controller.report()["rejected_total"] == 0 and np.abs(rig.plant.q - goal).max() < 0.05


def test_an_outlier_after_a_gap_or_at_rest_is_still_one():
    rig = rig_of("demo")
    run(rig, 1.0)
    n = len(rig.plant.q)
    for wait in (0.0, 0.02, 0.3):
        rig.driver_until = rig.now + wait
        run(rig, wait + 0.1)
        before = rig.controller.report()["rejected_implausible"]
        rig.errors["outlier"] = np.full(n, 0.5), np.zeros(n)
        run(rig, 0.1)
        assert rig.controller.report()["rejected_implausible"] == before + 1, wait


def test_an_outlier_that_is_the_first_state_after_a_gap_drops_no_trajectory():
    rig = rig_of("demo")
    goal = move(rig)
    run(rig, 0.5)
    rig.driver_until = rig.now + 0.2
    rig.errors["outlier"] = np.full(len(rig.plant.q), 5.0), np.zeros(len(rig.plant.q))
    run(rig, 3.0)
    report = rig.controller.report()
    assert report["position_restarts"] == 0 and report["rejected_implausible"] == 1 and report["mode"] == "running"
    assert np.abs(rig.plant.q - goal).max() < 0.05


@pytest.mark.parametrize(("name", "stopped"), [    # of each kind of controller one case always
    pytest.param(name, stopped, marks=[pytest.mark.thorough] * ((name, stopped) not in (
        ("demo", False), ("generic_mit", True), ("flatness", True)))) for stopped in (False, True) for name in CASES])
def test_an_outlier_that_is_the_first_state_after_a_gap_leads_no_joint_away(name, stopped):
    """As far off as a robot may have moved in the gap, so that it is believed."""
    def excursion(off):
        rig = rig_of(name)
        run(rig, 0.3)
        if stopped:
            rig.controller.safety.stop()
            run(rig, 0.6)
        rig.driver_until = rig.now + 0.2
        if off:
            rig.errors["outlier"] = off * np.cos(np.arange(len(rig.plant.q))), np.zeros(len(rig.plant.q))
        here, farthest = rig.plant.q.copy(), [0.0]
        run(rig, 0.8, lambda: farthest.append(float(np.abs(rig.plant.q - here).max())))
        return max(farthest)

    usual = excursion(0.0)
    for off in (0.02, 0.1, 0.3):
        assert excursion(off) < usual + 0.02, (off, usual)


@every_case
@pytest.mark.parametrize("moving", [False, True])
def test_an_emergency_stop_holds_the_arm_in_its_place(name, moving):
    rig = rig_of(name, True)
    move(rig)
    run(rig, 0.8 if moving else 2.2)
    speed = np.abs(rig.plant.v).max()
    rig.controller.safety.stop()
    run(rig, 2.0)    # braked, and settled
    place = rig.plant.q.copy()
    run(rig, 1.5)
    drift = np.abs(rig.plant.q - place).max() / 1.5
    assert np.abs(rig.plant.v).max() < 0.01 and drift < 0.005, f"{drift} rad/s, stopped at {speed} rad/s"


def test_without_the_hold_it_drifts():
    rig = rig_of("demo", True, **{"safe_output.hold_position": 0.0})
    rig.controller.safety.stop()
    run(rig, 1.0)
    place = rig.plant.q.copy()
    run(rig, 1.5)
    assert np.abs(rig.plant.q - place).max() / 1.5 > 0.02


@pytest.mark.parametrize("name", ["generic_jtc", "flatness"])
@pytest.mark.usefixtures("way")
def test_an_arm_at_rest_without_joint_states_is_carried_as_before(name):
    """Under the safe effort: 0.26 rad/s with `generic_jtc`."""
    rig = rig_of(name, True)
    move(rig)
    run(rig, 3.0)
    assert rig.controller.safety.mode == "running"
    rig.blind_until = rig.now + 1.0
    assert run(rig, 0.5) < 0.01 and rig.controller.safety.mode == "stale"


def test_the_hold_yields_to_a_push_and_holds_where_it_was_pushed_to():
    rig = rig_of("demo")
    rig.controller.safety.stop()
    run(rig, 1.0)
    place = rig.plant.q.copy()
    rig.elsewhere = lambda q, v: rig._acting + np.eye(len(q))[1] * 90.0    # more than a tenth of 320 N m
    run(rig, 0.5)
    pushed = rig.plant.q.copy()
    assert abs(pushed - place)[1] > 0.1
    rig.elsewhere = None
    run(rig, 3.0)
    assert abs(rig.plant.q - pushed)[1] < 0.1 and np.abs(rig.plant.v).max() < 0.01


def test_the_end_of_a_process_in_motion_brakes_the_arm_first():
    rig = rig_of("demo")
    rig.has_brakes = True
    move(rig)
    run(rig, 0.8)
    rig.controller.deactivate()
    rig.leaving = True
    speeds = []
    run(rig, 3.0, lambda: speeds.append(np.abs(rig.plant.v).max() if rig.leaving else 0.0))
    assert 0.0 < max(speeds[speeds.index(0.0) - 10:]) < 0.05
    assert rig.controller.safety.mode == "inactive"
    place = rig.plant.q.copy()
    run(rig, 1.0)
    assert np.abs(rig.plant.q - place).max() < 0.01


@pytest.mark.usefixtures("way")
def test_an_arm_that_another_controller_holds_is_not_thrown_when_it_is_switched_back():
    rig = rig_of("demo")
    move(rig, 0.8, 1.6)
    run(rig, 0.5)
    law = rig.settings.law
    place, torque = rig.plant.q.copy(), rig.plant.tau.copy()
    rig.elsewhere = lambda q, v: torque + law.kp * (place - q) - law.kd * v
    run(rig, 0.6)
    rig.elsewhere = None
    held = rig.plant.q.copy()
    assert run(rig, 2.0) < 0.5
    assert any("the trajectory was dropped" in line and "tracking_tolerance" in line for line in rig.lines)
    assert np.abs(rig.plant.q - held).max() < 0.05 and rig.controller.report()["not_following"] > 0


@pytest.mark.usefixtures("way")
def test_references_that_are_far_away_are_followed_once_the_robot_is_near_them():
    rig = rig_of("demo", True, tracking_tolerance=[0.2])
    names, zero = rig.case.model.joint_names, np.zeros(len(rig.plant.q))
    far = rig.plant.q + 0.5

    def send(q):
        return lambda: rig.controller.on_reference(rig.now, 0, names, q, zero, zero)

    assert run(rig, 1.0, send(far)) < 0.1
    assert rig.controller.safety.mode == "waiting"
    near = rig.plant.q + 0.15
    run(rig, 2.0, send(near))
    assert rig.controller.safety.mode == "running" and np.abs(rig.plant.q - near).max() < 0.02


@pytest.mark.parametrize(("name", "events"), [
    ("demo", 25), ("generic_mit", 25), ("flatness", 15), *(pytest.param(name, 40, marks=pytest.mark.thorough)
                                                           for name in CASES)])
def test_a_short_walk(name, events):
    episode = Episode(name, 7, 0)
    episode.run(events)
    assert not episode.violations, (episode.violations, list(episode.history))


@pytest.mark.parametrize(("number", "events"), [(9, 20), *(pytest.param(number, 40, marks=pytest.mark.thorough)
                                                           for number in (9, *range(5)))])
def test_a_short_walk_of_a_link(number, events):
    episode = LinkEpisode("cartesian", 2, number)
    episode.run(events)
    assert not episode.violations, (episode.violations, list(episode.history))


@pytest.mark.parametrize("steps", [10_000, pytest.param(50_000, marks=pytest.mark.thorough)])
def test_a_hold_only_takes_energy_out(steps):
    """Of one coordinate: what a push gives, less what the hold takes, is never negative."""
    from rbd_ros.runtime.safety.hold import HoldGains, PositionHold
    rng = np.random.default_rng(3)
    hold, gains = PositionHold(np.zeros(1)), HoldGains(np.array([50.0]), np.array([2.0]), np.array([0.08]))
    kp, kd, bound = gains.kp, gains.kd, gains.kp * gains.most
    q, v, h, work = np.zeros(1), np.zeros(1), 1e-4, 0.0
    for _ in range(steps):
        hold.follow(q, gains.most)
        effort = hold.effort(gains, v)
        assert abs(effort[0] + kd[0] * v[0]) <= bound[0] + 1e-12
        work -= effort[0] * v[0] * h
        q = q + h * v
        stored = 0.5 * kp[0] * hold.deflection[0] ** 2
        assert work >= stored - 5e-3    # of the sampling
        v = 0.999 * v + 0.05 * rng.standard_normal(1)


def test_plant_of_the_walk_loses_no_energy_but_by_friction():
    """The plant itself: without friction and torque it keeps its energy, to the order of its steps."""
    from benchmark.loop.plant import Plant
    model = rbd.sample("iiwa").with_(friction=np.zeros(7), damping=np.zeros(7))
    plant = Plant(model, np.array([0.0, 0.5, 0.0, -1.0, 0.0, 0.5, 0.0]), 0.0, np.zeros(7))
    plant.braked = False
    start = rbd.potential_energy(model, plant.q)
    plant.advance(400)
    assert abs(plant.kinetic_energy + rbd.potential_energy(model, plant.q) - start) < 0.3
    assert plant.kinetic_energy > 1.0


def test_a_load_taken_over_in_motion_lets_the_arm_track_without_a_jolt():
    """A hand carries 3 kg that the controller does not know, and is told of in the middle of a motion."""
    rig = bench()
    rig.move()
    rig.run(WAY)
    rig.carry(LOAD)
    rig.move()
    rig.run(0.5 * WAY)
    before = rig.taken()
    rig.change(**payload_values(BODY, LOAD, np.full(10, 1e-3), np.ones(10, dtype=bool), False))
    rig.run(0.5 * WAY)
    rig.move()
    rig.run(WAY)
    after = rig.taken()
    off = [np.abs(rows["q"] - rows["reference"])[-500:].max() for rows in (before, after)]
    assert off[1] < 0.1 * off[0]
    steps, usual = (np.abs(np.diff(tau, axis=0)).max(axis=0) for tau in (
        np.concatenate([before["tau"][-100:], after["tau"]]), before["tau"][-500:]))
    assert (steps < 2.0 * usual + 0.05).all() and set(after["mode"]) == {"running"}    # noise of velocities
