"""Forces on what the link touches: reached with sensor and friction, lost contacts, and sensors that lie."""
from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from support.cartesian_rig import GAINS, MODEL, STEP, TIP, Rig

import rbd_ros as rbd
from rbd_ros.runtime.control.cartesian_settings import CartesianSettings
from rbd_ros.runtime.safety import Command

FREE_Y = {"stiffness.translation": [300.0, 0.0, 300.0]}    # along the force
UP = (0.0, 0.0, 0.0, 0.0, 12.0, 0.0)    # N along y; moment first


class Touching(Rig):
    """The tip before a stiff, damped surface, which is at y = surface and pushes along -y; a sensor that lags."""

    def __init__(self, masses=1.0, friction=0.0, away=0.0, stiffness=2e4, sensed=True, **values):
        super().__init__(masses, friction, **{**FREE_Y, **values})
        self.surface, self.stiffness, self.sensed = self.pose[1, 3] + away, stiffness, sensed
        self.pressed, self.felt, self.forces = 0.0, np.zeros(3), []
        self.lie = lambda wrench: wrench
        self.contact = self.there = True

    def touch(self, seconds):
        for _ in range(round(seconds / STEP)):
            self.now += STEP
            q, v = self.plant.q, self.plant.v + 1e-3 * self.rng.normal(size=7)
            T, J = self.pose, rbd.jacobian(MODEL, self.plant.q, TIP, "aligned")
            deep = T[1, 3] - self.surface
            self.pressed = max(self.stiffness * deep + 50.0 * (J @ self.plant.v)[4], 0.0) if (
                self.there and deep > 0.0) else 0.0
            force = np.array([0.0, -self.pressed, 0.0])
            self.felt += STEP * 50.0 * (force - self.felt)    # as an observer with gain 50/s
            if self.sensed:
                self.controller.on_measured_wrench(self.now, TIP, self.lie([0.0, 0.0, 0.0, *(
                    T[:3, :3].T @ self.felt + 0.2 * self.rng.normal(size=3))]))
            answer = self.controller.on_state(self.now, round(1e9 * self.now), MODEL.joint_names, q, v)
            if isinstance(answer, Command):
                self.effort = answer.effort
            self.plant.step(self.effort, external_wrenches={TIP: np.concatenate([np.zeros(3), T[:3, :3].T @ force])})
            self.fastest = max(self.fastest, float(np.abs(self.plant.v).max()))
            self.forces.append(self.pressed)
            self.asked.append(self.effort)
        return self

    def press(self, wrench=UP, frame=""):
        return self.controller.on_target_wrench(self.now, frame, wrench)


def test_a_force_is_reached_with_sensor_friction_and_a_wrong_model():
    rig = Touching(masses=1.03, friction=0.4).touch(1.0)
    assert rig.press()
    rig.touch(4.0)
    assert np.mean(rig.forces[-500:]) == pytest.approx(12.0, rel=0.02)
    assert max(rig.forces) < 1.3 * 12.0
    assert rig.press((0.0, 0.0, 0.0, 0.0, 6.0, 0.0))
    rig.touch(4.0)
    assert np.mean(rig.forces[-500:]) == pytest.approx(6.0, rel=0.02)


def test_law_joint_ends_a_force():
    """Back under law cartesian, nothing pushes."""
    rig = Touching(away=1.0, sensed=False).touch(1.0)
    assert rig.press()
    rig.touch(0.3).change(**FREE_Y, law="joint").touch(1.5)
    assert rig.controller.report()["target_force_n"] == 0.0
    here = rig.pose[:3, 3]
    rig.change(**FREE_Y).touch(2.0)
    assert np.linalg.norm(rig.pose[:3, 3] - here) < 2e-3


def test_feed_forward_alone_is_as_good_as_the_model():
    rig = Touching(sensed=False).touch(1.0)
    assert rig.press()
    rig.touch(2.0)
    assert np.mean(rig.forces[-100:]) == pytest.approx(12.0, rel=0.01)
    assert max(rig.forces) < 1.1 * 12.0


def test_it_meets_the_surface_slowly_and_keeps_the_force():
    """2 cm ahead: the damping of a contact bounds the speed, and that the impact."""
    rig = Touching(away=0.02).touch(1.0)
    assert rig.press()
    rig.touch(4.0)
    assert np.mean(rig.forces[-500:]) == pytest.approx(12.0, rel=0.02) and max(rig.forces) < 2.5 * 12.0
    assert rig.controller.report()["tank_j"] == pytest.approx(1.0 - 0.02 * 12.0, abs=0.08)


def test_a_lost_contact_moves_no_farther_than_the_tank_allows():
    rig = Touching(**{"tank.size": 0.6}).touch(1.0)
    assert rig.press()
    rig.touch(2.0)
    rig.there, start = False, rig.pose[1, 3]
    rig.fastest = 0.0
    rig.touch(4.0)
    report = rig.controller.report()
    # of the force with the integral, and of what is left at 0.2 of the size, over which it fades
    assert 0.02 < rig.pose[1, 3] - start < 1.6 * 0.6 / 12.0 and rig.fastest < 0.5
    assert report["tank_j"] < 0.05 and np.abs(rig.plant.v).max() < 0.05
    assert rig.press(np.zeros(6))
    rig.touch(1.5)
    assert rig.controller.report()["target_force_n"] == 0.0


@pytest.mark.parametrize(("name", "lie"), [    # those that are refused are events of the walk below, too
    ("sign", lambda wrench: [-x for x in wrench]), *(pytest.param(*case, marks=pytest.mark.thorough) for case in (
        ("nan", lambda wrench: [np.nan] * 6), ("huge", lambda wrench: [0.0, 0.0, 0.0, 1e9, 0.0, 0.0]),
        ("stuck", lambda wrench: [0.0] * 6),
        ("full", lambda wrench: [5.0, 5.0, 5.0, 200.0, -200.0, 200.0])))])
def test_sensors_that_lie_change_the_force_by_no_more_than_the_bound(name, lie):
    rig = Touching(friction=0.1).touch(0.8)
    assert rig.press()
    rig.touch(2.0)
    rig.lie, first = lie, len(rig.asked)
    rig.touch(3.0)
    settled = np.mean(rig.forces[-200:])
    assert 0.6 * 12.0 < settled < 1.35 * 12.0 and rig.fastest < 1.0
    assert np.abs(np.diff(rig.asked[first:], axis=0)).max() < 1.0    # no step
    rig.lie = lambda wrench: wrench
    rig.touch(4.0)
    assert np.mean(rig.forces[-500:]) == pytest.approx(12.0, rel=0.03)


def test_stale_measurements_fade_to_feed_forward():
    rig = Touching(masses=1.05).touch(1.0)
    assert rig.press()
    rig.touch(4.0)
    rig.sensed, first, was = False, len(rig.asked), rig.controller._force._integral[1]
    rig.touch(3.0)
    steps = np.abs(np.diff(rig.asked, axis=0)).max(axis=1)    # noise of the velocities
    assert abs(was) > 0.1 > 0.01 > abs(rig.controller._force._integral[1])
    assert steps[first - 1:].max() < 1.2 * steps[first - 1000:first - 1].max()


def test_a_setpoint_in_axes_of_a_link_and_a_moment():
    rig = Touching(away=1.0, sensed=False, **{"stiffness.translation": [300.0] * 3})
    rig.touch(1.0)
    R = rig.pose[:3, :3]
    before = rig.pose[:3, 3].copy()
    assert rig.press((0.0, 0.0, 1.0, 3.0, 0.0, 0.0), TIP)
    rig.touch(3.0)    # springs that are not let go balance it
    np.testing.assert_allclose(rig.pose[:3, 3] - before, 0.01 * R[:, 0], atol=2e-3)
    turned = rig.controller.report()["rotation_error_mrad"]
    assert turned == pytest.approx(50.0, rel=0.1)
    first = len(rig.asked)
    assert rig.press(np.zeros(6))
    rig.touch(3.0)
    np.testing.assert_allclose(rig.pose[:3, 3], before, atol=1e-3)
    assert np.abs(np.diff(rig.asked[first:], axis=0)).max() < 0.5


def test_what_drops_the_goal_drops_the_setpoint():
    rig = Touching().touch(1.0)
    assert rig.press()
    rig.touch(1.0)
    rig.controller.safety.stop()
    rig.touch(0.5)
    refused = rig.press()
    assert not refused and "~/reset" in refused.text
    rig.controller.reset(rig.now)
    rig.touch(1.5)
    assert rig.controller.report()["target_force_n"] == 0.0 and not rig.controller._force.active
    assert rig.press()
    rig.touch(0.6)
    rig.controller.halt(rig.now)
    rig.touch(1.5)
    assert not rig.controller._force.active


@pytest.fixture(scope="module")
def still():
    """A link at rest, for what is refused, which changes nothing."""
    return Touching().touch(0.8)


@pytest.mark.parametrize(("frame", "wrench", "kind"), [
    ("", [np.nan] * 6, "non_finite"), ("map", UP, "frame"), ("", [0.0, 0.0, 0.0, 60.0, 0.0, 0.0], "excessive_wrench"),
    ("", [0.0, 20.0, 0.0, 0.0, 0.0, 0.0], "excessive_wrench"), ("", [0.0, 0.0, 0.0, 1e100, 1e100, 0.0],
                                                                "excessive_wrench")])
def test_wrenches_that_are_refused(still, frame, wrench, kind):
    counts = Counter(still.controller.rejections.counts)
    assert not still.press(wrench, frame)
    assert still.controller.rejections.counts == counts + Counter([kind]) and not still.controller._force.active


def test_measurements_are_taken_in_any_links_axes():
    rig = Touching(sensed=False).touch(0.8)
    T = rbd.forward_kinematics(MODEL, rig.controller.state.q)
    other, force = T[MODEL.body_index("link_4")], np.array([1.0, 2.0, 3.0])
    arm = T[-1, :3, 3] - other[:3, 3]    # acts at the tip
    at_other = np.concatenate([other[:3, :3].T @ np.cross(arm, force), other[:3, :3].T @ force])
    for frame, wrench in (("link_4", at_other), (TIP, [0.0, 0.0, 0.0, *(T[-1, :3, :3].T @ force)]),
                          ("", [0.0, 0.0, 0.0, *force])):
        assert rig.controller.on_measured_wrench(rig.now, frame, wrench)
        np.testing.assert_allclose(rig.controller._force.measured, [0.0, 0.0, 0.0, *-force], atol=1e-9)


@pytest.mark.parametrize(("seed", "events"), [(0, 8), *(pytest.param(seed, 14, marks=pytest.mark.thorough)
                                                        for seed in range(12))])
def test_a_random_walk_with_walls_and_forces_never_runs_away(seed, events):
    """Setpoints, lies of the sensor, surfaces that come and go, walls, stiffnesses, stops: slow, and then at rest."""
    rng = np.random.default_rng(seed)
    rig = Touching(rng.uniform(0.95, 1.05), 0.2).touch(0.8)
    for _ in range(events):
        event = rng.integers(7)
        if event <= 1:
            rig.press(rng.normal(size=6) * [2.0, 2.0, 2.0, 12.0, 12.0, 12.0])
        elif event == 2:
            lie = [np.nan, 0.0, 30.0, -30.0, 1e9][rng.integers(5)]
            rig.lie = (lambda wrench, lie=lie: [lie] * 6) if rng.random() < 0.7 else (lambda wrench: wrench)
        elif event == 3:
            rig.there, rig.surface = bool(rng.random() < 0.6), rig.pose[1, 3] + rng.uniform(0.0, 0.1)
        elif event == 4:
            place, normal = (rig.pose[:3, 3] + 0.1 * rng.normal(size=3)).tolist(), rng.normal(size=3).tolist()
            rig.controller.apply(CartesianSettings.from_values({
                **GAINS, "walls.file": f"walls: [{{plane: {{point: {place}, normal: {normal}}}}}]",
                "stiffness.translation": (rng.uniform(0.0, 600.0, 3) * (rng.random(3) < 0.7)).tolist()}, MODEL))
        elif event == 5:
            rig.controller.safety.stop()
            rig.touch(0.4)
            rig.controller.reset(rig.now)
        else:
            rig.goal(0.1 * rng.normal(size=3), 0.3 * rng.normal(size=3))
        rig.touch(rng.uniform(0.1, 0.8))
    rig.controller.apply(CartesianSettings.from_values(GAINS, MODEL))
    rig.controller.reset(rig.now)
    rig.press(np.zeros(6))
    rig.touch(5.0)
    assert np.isfinite(rig.asked).all() and rig.fastest < 2.5 and rig.creeps()
    assert rig.controller.safety.mode == "running"
