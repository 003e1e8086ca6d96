"""Changes of springs under load: arm, springs and energy tank together gain no energy but by the work of others."""
from __future__ import annotations

import numpy as np
import pytest
from support.cartesian_rig import GAINS, MODEL, NAMES, START, TIP, Rig

import rbd_ros as rbd
from rbd_ros.runtime.control.cartesian import CartesianController
from rbd_ros.runtime.control.cartesian_settings import CartesianSettings

QUIET = {**GAINS, "posture.bandwidth": 0.0, "ramp_in": 0.1, "state_timeout": 1.0}    # its pull is work of others
STEP = 2.5e-4    # s: of plant and controller where energy is added up; what sampling adds is proportional to it


class Budget:
    """The arm with a target at rest; energies in J."""

    def __init__(self, step=STEP, **values):
        self.values, self.step = {**QUIET, **values}, step
        self.controller = CartesianController(MODEL, CartesianSettings.from_values(self.values, MODEL))
        self.controller.activate(0.0)
        self.plant = rbd.Simulator(MODEL, step=step, q=START)
        self.now, self.work = 1.0, 0.0
        self.run(0.2)

    def apply(self, **values):
        self.controller.apply(CartesianSettings.from_values({**self.values, **values}, MODEL))

    def run(self, seconds, push=(0.0, 0.0, 0.0), age=0.0):
        """push (3,): N on the link, in axes of the root; age: s, of the states."""
        totals = []
        for _ in range(round(seconds / self.step)):
            self.now += self.step
            effort = self.controller.on_state(self.now, round(1e9 * self.now), NAMES, self.plant.q, self.plant.v,
                                              age=age).effort
            totals.append(self.total - self.work)
            if not np.any(push):
                self.plant.step(effort)
                continue
            T = rbd.forward_kinematics(MODEL, self.plant.q)[-1]
            self.plant.step(effort, external_wrenches={TIP: np.concatenate([np.zeros(3), T[:3, :3].T @ push])})
            self.work += push @ (rbd.forward_kinematics(MODEL, self.plant.q)[-1, :3, 3] - T[:3, 3])
        return np.array(totals)

    @property
    def springs(self):
        weights = self.controller.tank.weights
        return sum(weight * laws.law.seen.energy for laws, weight in weights.items())

    @property
    def total(self):
        q, v = self.plant.q, self.plant.v
        return 0.5 * v @ rbd.mass_matrix(MODEL, q) @ v + self.springs + self.controller.tank.level


@pytest.mark.parametrize(("seed", "changes"), [(0, 4), *(pytest.param(seed, 8, marks=pytest.mark.thorough)
                                                         for seed in range(8))])
def test_changes_of_stiffness_pump_no_energy(seed, changes):
    """Stiff while it is off the target, soft near it, and random axes: without the tank this swings the arm up."""
    rng = np.random.default_rng(seed)
    arm = Budget(**{"damping_ratio": 0.02, "posture.damping": 0.0, "tank.size": 0.3})
    arm.apply(**{"stiffness.translation": [100.0] * 3, "damping_ratio": 0.02})
    totals = [arm.run(0.5, push=np.array([12.0, 0.0, 8.0]))]
    for _ in range(changes):
        stiff = [1500.0] * 3 if arm.springs > 0.5 * totals[-1].max() else rng.uniform(50.0, 1500.0, 3).tolist()
        arm.apply(**{"stiffness.translation": stiff, "stiffness.frame": str(rng.choice(["base", "target"]))})
        totals.append(arm.run(rng.uniform(0.1, 0.3)))
    totals = np.concatenate(totals)
    gained = np.max(totals - np.minimum.accumulate(totals))
    assert gained < 0.04, gained


def test_feedback_that_returns_after_old_states_adds_no_energy():
    arm = Budget(**{"tank.size": 0.05, "damping_ratio": 0.1})
    push, totals = np.array([25.0, 0.0, 0.0]), []
    for _ in range(5):    # it comes back within the ramp, while the link is pushed away
        totals += [arm.run(STEP, push, age=8.0 * STEP), arm.run(0.12, push)]
        assert arm.controller.loop.counts["old_states"] == len(totals) // 2
    totals = np.concatenate([*totals, arm.run(0.5)])
    assert arm.controller.report()["goals_dropped"] == 0 and arm.work > 0.5
    assert np.max(totals - np.minimum.accumulate(totals)) < 0.01


def test_a_stiffer_spring_waits_for_energy_and_acts_when_there_is_some():
    arm = Budget(1e-3, **{"tank.size": 0.01})
    push = np.array([15.0, 0.0, 0.0])
    arm.run(1.0, push)
    off = arm.controller.report()["position_error_mm"]
    arm.apply(**{"stiffness.translation": [900.0] * 3})
    arm.run(0.5, push)
    report = arm.controller.report()
    assert report["spring_share"] < 0.8 and report["tank_j"] < 0.01
    assert report["position_error_mm"] == pytest.approx(off, rel=0.05)
    arm.run(1.0)
    report = arm.controller.report()
    assert report["position_error_mm"] < 1.0 and report["spring_share"] == 1.0
    arm.run(1.0, push)
    assert arm.controller.report()["position_error_mm"] == pytest.approx(1e3 * 15.0 / 900.0, rel=0.02)


def test_with_energy_in_the_tank_a_stiffer_spring_acts_within_the_ramp():
    rig = Rig().run(0.8)
    rig.run(1.5, force=np.array([12.0, 0.0, 0.0]))
    rig.controller.apply(CartesianSettings.from_values({**GAINS, "stiffness.translation": [600.0] * 3}, MODEL))
    rig.run(1.5, force=np.array([12.0, 0.0, 0.0]))
    report = rig.controller.report()
    assert report["spring_share"] == 1.0 and report["position_error_mm"] == pytest.approx(20.0, rel=0.05)
    assert report["tank_j"] > 0.5


def test_a_setpoint_of_force_gives_no_more_than_the_tank():
    arm = Budget(**{"stiffness.translation": [300.0, 0.0, 300.0], "tank.size": 0.5, "damping_ratio": 0.3})
    assert arm.controller.on_target_wrench(arm.now, "", (0.0, 0.0, 0.0, 2.0, 15.0, 0.0))
    totals = np.concatenate([arm.run(0.7), arm.run(0.4, push=np.array([5.0, -20.0, 0.0])), arm.run(0.5)])
    assert np.max(totals - np.minimum.accumulate(totals)) < 0.01
    assert arm.controller.tank.level < 0.3
