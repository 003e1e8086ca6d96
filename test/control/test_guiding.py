"""Hand guiding on a simulated arm: light, along free axes alone, never by itself; held where it drifts; taught."""
from __future__ import annotations

import numpy as np
import pytest
from support.cartesian_rig import GAINS, MODEL, START, STEP, Rig

import rbd_ros as rbd
from rbd_ros.core.dynamics.friction import Friction
from rbd_ros.core.lie import so3
from rbd_ros.runtime.control.cartesian import CartesianController
from rbd_ros.runtime.control.cartesian_settings import CartesianSettings
from rbd_ros.runtime.control.friction_compensation import FrictionCompensation
from rbd_ros.runtime.control.guiding import LONGEST, SPACING, Taught

STIFF = {"stiffness.translation": [2000.0] * 3, "stiffness.rotation": [100.0] * 3, "largest.force": 100.0}
RUB = np.array([6.0, 6.0, 4.0, 4.0, 2.0, 2.0, 0.8])    # N m, Coulomb friction of the true arm


class Arm(Rig):
    """With friction; rubs: share of RUB; identified: ratio of the friction in the controller's model to the true one.
    """

    def __init__(self, identified=1.0, masses=1.0, rubs=1.0, **values):
        model = MODEL.with_(friction=identified * rubs * RUB)
        super().__init__(masses)
        self.controller = CartesianController(model, CartesianSettings.from_values(
            {**GAINS, "friction.compensation": 0.75, **values}, model))
        self.controller.activate(0.0)
        self.plant = rbd.Simulator(MODEL.with_scaled_masses(masses).with_(friction=rubs * RUB), step=STEP, q=START)


def guided(*args, **values):
    made = Arm(*args, **values).run(0.8)
    assert made.controller.guide(made.now, True)
    return made.run(0.5)


def moves(made, force):
    """Whether the tip leaves its place within a second under a force (3,), axes of the world, N."""
    before = made.pose[:3, 3].copy()
    return float(np.linalg.norm(made.run(1.0, force=force).pose[:3, 3] - before)) > 2e-3


@pytest.mark.parametrize("direction", [(0.0, 1.0, 0.0), pytest.param((0.0, 0.0, 1.0), marks=pytest.mark.thorough)])
def test_a_light_push_starts_it(direction):
    """Where 10 N do not move it without compensation, 3 N do with it."""
    push = np.array(direction)
    assert not moves(guided(**{"friction.compensation": 0.0}), 10.0 * push)
    assert moves(guided(), 3.0 * push)


@pytest.mark.parametrize("seconds", [4.0, pytest.param(600.0, marks=pytest.mark.thorough)])
def test_it_never_moves_by_itself(seconds):
    """With friction that is over-estimated by 30 %, guided and held by springs."""
    made = guided(1.3)
    assert np.linalg.norm(made.run(seconds).plant.q - START) < 1e-3 and made.controller.report()["guided"] == "yes"
    assert made.controller.guide(made.now, False)
    assert np.linalg.norm(made.run(2.0).plant.q - START) < 1e-3 and made.controller.report()["guided"] == "no"


def test_the_largest_share_drives_nothing_with_friction_a_quarter_too_large():
    """After a push, at the largest share that is accepted; at 0.95 it went on at the velocity limit."""
    made = guided(1.24, **{"friction.compensation": 0.8})
    made.run(0.3, force=np.array([0.0, 15.0, 0.0])).run(1.8)
    assert made.rests()
    with pytest.raises(rbd.RbdError, match=r"friction\.compensation"):
        Arm(**{"friction.compensation": 0.85})


def test_friction_compensation_brings_the_link_to_its_target():
    """The distance that friction leaves at a goal falls to a quarter."""
    off = []
    for share in (0.0, 0.75):
        made = Arm(**{"friction.compensation": share}).run(0.8)
        made.goal([0.0, 0.1, -0.1])
        made.run(2.5)
        assert made.rests()
        off.append(made.controller.report()["position_error_mm"])
    assert off[0] > 5.0 and off[1] < 0.35 * off[0]


@pytest.mark.parametrize(("free", "push", "locked"), [
    (["tx", "ty"], (0.0, 20.0, 20.0), [2]), pytest.param(
        ["tz"], (20.0, 20.0, -20.0), [0, 1], marks=pytest.mark.thorough),
    (["rx", "ry", "rz"], (20.0, 20.0, 20.0), [0, 1, 2])])
def test_locked_axes_stay(free, push, locked):
    """A plane, a line, rotation only: locked axes give way as their springs do, free ones as far as the hand goes."""
    made = guided(**{"guide.free": free, **STIFF})
    before = made.pose
    moved = made.run(1.0, force=np.array(push)).pose[:3, 3] - before[:3, 3]
    open_ = [k for k in range(3) if k not in locked]
    assert np.all(np.abs(moved[locked]) < 0.02)
    assert not open_ or np.linalg.norm(moved[open_]) > 0.05
    if "rx" not in free:
        assert np.linalg.norm(so3.log(made.pose[:3, :3] @ before[:3, :3].T)) < 0.1
    assert made.run(1.0).rests()
    there = made.pose[:3, 3]
    assert np.linalg.norm((there - before[:3, 3])[locked]) < 0.02    # back by the springs, but for friction
    assert not open_ or np.linalg.norm((there - before[:3, 3])[open_]) > 0.05


def test_axes_of_the_target_turn_with_the_link():
    made = guided(**{"guide.free": ["tz"], "stiffness.frame": "target", **STIFF})
    axis, before = made.pose[:3, 2].copy(), made.pose[:3, 3].copy()
    moved = made.run(1.0, force=25.0 * axis).pose[:3, 3] - before
    assert moved @ axis > 0.05 and np.linalg.norm(moved - axis * (moved @ axis)) < 0.02


def test_drift_is_noticed_and_held_until_it_is_pulled():
    """The arm is a little heavier than its model, and its friction too small to bear that."""
    made = guided(masses=1.001, rubs=0.01)
    before = made.pose[:3, 3].copy()
    made.run(4.0)
    assert made.controller.report()["guided"] == "held" and made.rests()
    assert "drifts" in made.controller.report()["last_notice"]
    held = made.pose[:3, 3].copy()
    assert np.linalg.norm(held - before) < 0.02
    assert np.linalg.norm(made.run(1.5).pose[:3, 3] - held) < 1e-3
    made.run(0.5, force=np.array([0.0, 40.0, 0.0]))
    assert made.controller.report()["guided"] == "yes" and abs(made.pose[1, 3] - held[1]) > 0.05


def test_beginning_and_end_are_soft():
    made = Arm(masses=1.03).run(1.5)
    for on in (True, False):
        first = len(made.asked)
        made.controller.guide(made.now, on)
        made.run(1.0)
        steps = np.abs(np.diff(np.array(made.asked[first - 100:]), axis=0)).max(axis=1)
        assert steps[99:110].max() < 1.5 * steps[:99].max() and made.rests()    # those of noisy velocities


def change(made, **values):
    made.controller.apply(CartesianSettings.from_values(
        {**GAINS, "friction.compensation": 0.75, **values}, made.controller.settings.model))


def largest_step(made, first):
    return np.abs(np.diff(np.array(made.asked[first - 1:]), axis=0)).max()


@pytest.mark.parametrize("how", ["goal", pytest.param("circle", marks=pytest.mark.thorough)])
def test_guiding_begins_softly_where_the_target_moves(how):
    made = Arm(rubs=0.0, **{**STIFF, "target.speed": 0.5}).run(0.8)
    assert made.goal([0.0, 0.3, 0.0]) if how == "goal" else made.follow(made.circle(0.06, 1.6, turn=0.0))
    made.run(0.4 if how == "goal" else 1.0)
    moving, first = np.linalg.norm(made.controller._aim.target[15:18]), len(made.asked)
    assert moving > 0.2 and made.controller.guide(made.now, True)
    made.run(0.5)
    assert largest_step(made, first) < 3.0 and made.fastest < 1.0 and not made.controller._aim.target[12:].any()
    assert made.controller.guide(made.now, False)
    assert made.run(1.4).rests()


def test_changes_of_the_law_and_of_its_damping_while_guided_make_no_steps():
    push, made = np.array([0.0, 15.0, 0.0]), guided(rubs=0.0, **STIFF)
    made.run(0.5, force=push)
    first = len(made.asked)
    change(made, **{**STIFF, "guide.damping": 10.0})
    made.run(0.4, force=push)
    change(made, **{**STIFF, "law": "joint"})
    made.run(0.5, force=push)
    assert largest_step(made, first) < 3.0 and made.controller.report()["guided"] == "no"
    assert "law joint" in made.controller.report()["last_notice"]
    change(made, **STIFF)
    assert made.run(1.8).rests() and made.goal([0.0, 0.01, 0.0])


def test_axes_that_change_while_guided_leave_no_drawn_spring():
    """A target that is left behind along an axis without stiffness would draw the link back at the end."""
    values = {"guide.free": ["tz"], **STIFF}
    made = guided(rubs=0.0, **values)
    change(made, **{**values, "stiffness.frame": "target"})
    axis = made.run(0.6).pose[:3, 2].copy()
    assert abs(axis[2]) < 0.95
    made.run(0.8, force=20.0 * axis)
    made.run(0.3)
    there = made.pose[:3, 3]
    assert made.controller.guide(made.now, False)
    assert np.linalg.norm(made.run(1.2).pose[:3, 3] - there) < 0.1 and made.rests()


def test_what_is_taught_ends_with_the_guiding_and_at_its_longest():
    made = guided()
    assert made.controller.teach()
    made.run(0.5)
    made.controller.guide(made.now, False)
    made.run(0.6)
    recorded = made.controller.report()["taught_s"]
    assert recorded == pytest.approx(0.5, abs=0.02)
    assert made.controller.guide(made.now, True)
    assert made.run(1.0).controller.report()["taught_s"] == recorded
    taught = Taught()
    for _ in range(700_000):
        if taught.on:
            taught.record(1e-3, START)
    assert taught.duration == pytest.approx(LONGEST, abs=2e-3)
    assert 0.99 < len(taught.positions) * SPACING / LONGEST < 1.01


@pytest.mark.parametrize("what", ["stop", "lost"])
def test_what_ends_the_law_ends_guiding(what):
    made = guided()
    made.controller.teach()
    made.run(0.4, force=np.array([0.0, 20.0, 0.0]))
    if what == "stop":
        made.controller.safety.stop()
        made.run(1.0)
        assert not made.controller.guide(made.now, True) and not made.controller.teach()
        made.controller.reset(made.now)
    else:
        made.run(0.2, lost=True)
    made.run(1.0)
    assert made.controller.report()["guided"] == "no" and made.rests() and made.goal([0.0, 0.01, 0.0])
    assert len(made.controller.take_taught().positions) > 10


def test_goals_wait_until_guiding_is_over():
    made = guided()
    assert "~/guide" in made.goal([0.0, 0.1, 0.0]).text
    assert made.controller.guide(made.now, False) and made.run(0.5).goal([0.0, 0.1, 0.0])
    assert "guided" in made.controller.teach().text


class Turning(Rig):
    """Continuous joints, reported between −π and π; the first one is about to pass π."""

    def __init__(self, **values):
        super().__init__()
        model = rbd.load_urdf(rbd.sample_path("iiwa").read_text().replace('"revolute"', '"continuous"'))
        self.controller = CartesianController(model, CartesianSettings.from_values({**GAINS, **values}, model))
        self.controller.activate(0.0)
        self.plant = rbd.Simulator(model, step=STEP, q=np.append(3.135, START[1:]))
        self.sideways = np.cross([0.0, 0.0, 1.0], self.pose[:3, 3]) / np.linalg.norm(self.pose[:2, 3])

    def turns(self, seconds, force=None):
        for _ in range(round(seconds / STEP)):
            self.run(STEP, force=force, lie=(self.plant.q + np.pi) % (2.0 * np.pi) - np.pi)
        return self


@pytest.mark.filterwarnings("ignore::rbd_ros.RbdWarning")    # the iiwa's inertias are as published
def test_law_joint_holds_a_continuous_joint_past_half_a_turn():
    made = Turning(law="joint").turns(1.0)
    before = made.plant.q.copy()
    made.turns(1.0, 10.0 * made.sideways)
    assert made.plant.q[0] > 3.15 and made.fastest < 0.5
    np.testing.assert_allclose(made.turns(2.0).plant.q, before, atol=1e-2)


@pytest.mark.filterwarnings("ignore::rbd_ros.RbdWarning")    # the iiwa's inertias are as published
def test_a_continuous_joint_is_guided_and_taught_past_half_a_turn():
    made = Turning().turns(0.8)
    made.controller.guide(made.now, True)
    made.turns(0.4).controller.teach()
    made.turns(1.0, -15.0 * made.sideways)
    made.controller.guide(made.now, False)
    assert made.turns(1.5).rests()
    taught = made.controller.take_taught().positions
    assert np.abs(np.diff((taught + np.pi) % (2.0 * np.pi), axis=0)).max() > 6.0
    assert np.abs(np.diff(taught, axis=0)).max() < 0.1


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.thorough) for seed in range(1, 8))])
def test_a_random_walk_with_hands_never_runs_away(seed):
    rng = np.random.default_rng(seed)
    made = Arm(rng.uniform(0.9, 1.3), rng.uniform(0.98, 1.02), **{
        "guide.free": rng.choice(["tx", "ty", "tz", "rx", "ry", "rz"], 3, replace=False).tolist()}).run(0.6)
    for _ in range(14):
        event = rng.integers(8)
        if event <= 2:
            made.controller.guide(made.now, bool(event < 2))
            made.run(0.1)
        elif event == 3:
            made.controller.safety.stop()
            made.run(0.3).controller.reset(made.now)
        elif event == 4:
            made.run(0.1, lost=True)
        elif event == 5:
            made.run(0.02, lie=made.plant.q + rng.normal(size=7))
        elif event == 6:
            made.goal(0.2 * rng.normal(size=3))
        made.run(rng.uniform(0.1, 0.6), force=15.0 * rng.normal(size=3))
        assert made.fastest < 1.5 and np.isfinite(made.effort).all()
    made.run(1.5)
    assert made.creeps()


@pytest.mark.parametrize("law", [
    Friction(damping=3.0, coulomb=0.1, smoothing=0.5), Friction(damping=0.4, coulomb=2.0, breakaway=2.6), Friction(
    coulomb=np.array([2.0, 1.0, 0.0]), asymmetry=0.0, load=np.array([0.1, 0.2, 0.0])), Friction(
    damping=0.5, coulomb=2.0, asymmetry=0.6, viscous_asymmetry=0.1)])
def test_compensation_takes_less_power_than_friction_gives(law):
    rng = np.random.default_rng(0)
    made = FrictionCompensation(law, 0.8, 3)
    for _ in range(3000):
        v = rng.choice([-1.0, 1.0], 3) * 10.0 ** rng.uniform(-5.0, 0.5, 3)
        asked, carried = 10.0 ** rng.uniform(-2.0, 2.0) * rng.normal(size=3), 20.0 * rng.normal(size=3)
        tau = made.effort(v, asked, carried, rng.uniform(-1.0, 1.0, 3))
        fast = np.abs(v) > 5.0 * law.smoothing    # where the smoothed law has all of Coulomb friction
        assert np.all(np.abs(tau[fast]) <= 0.8001 * np.abs(law.effort(v, carried)[fast]))
        full = np.maximum(np.abs(v), 3.0 * law.smoothing)
        assert np.all(np.abs(tau) <= 0.8 / np.tanh(3.0) * np.maximum(
            law.effort(full, carried), -law.effort(-full, carried)))
    assert not FrictionCompensation(law, 0.0, 3).effort(v, asked, carried, np.ones(3)).any()


def test_the_link_is_braked_beyond_the_speed_of_targets():
    """An arm that is much heavier than its model sinks no faster than some tenths more than `target.speed`."""
    made = guided(masses=1.1, rubs=0.1)
    speeds = []
    for _ in range(100):
        before = made.pose[:3, 3]
        speeds.append(np.linalg.norm(made.run(0.01).pose[:3, 3] - before) / 0.01)
    assert max(speeds) < 1.4 * 0.25 and made.fastest < 0.7


def test_springs_that_are_drawn_refuse_guiding():
    made = Arm(masses=1.3, rubs=0.1).run(2.0)
    refused = made.controller.guide(made.now, True)
    assert not refused and "the springs carry" in refused.text and made.controller.report()["guided"] == "no"
