"""The float test in the loop: what it measures on simulated arms, its verdicts, and how it ends."""
from __future__ import annotations

import json

import numpy as np
import pytest

import rbd_ros as rbd
from rbd_ros.core.model.payload import with_payloads
from rbd_ros.runtime.control.float_check import FloatCheck, FloatSettings
from rbd_ros.runtime.control.float_verdict import RETURNED

RATE = 250.0
TWO_LINK = rbd.sample("two_link").with_(friction=[0.3, 0.15], damping=[0.6, 0.3], armature=[0.06, 0.03])
START = np.array([0.4, 0.5])
VALUES = {"gains.kp": [626.0, 102.0], "gains.kd": [29.0, 4.7], "poses": ["0.4 0.5", "-0.7 0.9"]}
LOAD = rbd.Inertia(1.0, [0.02, 0.0, 0.1], 1e-3 * np.eye(3))


class Plant:
    """An arm, whose torques are `gain` times what it is sent."""

    def __init__(self, truth, gain=1.0):
        self.sim, self.gain = rbd.Simulator(truth, step=1.0 / RATE, q=START), gain

    @property
    def state(self):
        return self.sim.q, self.sim.v

    def step(self, effort):
        self.sim.step(self.gain * effort)


class Mujoco:
    """The same in MuJoCo."""

    def __init__(self, truth, gain=1.0):
        mujoco = pytest.importorskip("mujoco", reason="MuJoCo is not installed: scripts/setup --peers")
        from support.mujoco_peer import Peer
        self.peer, self.gain, self._step = Peer(truth, rbd.sample_path("two_link").read_text(), False), gain, (
            mujoco.mj_step)
        mj = self.peer.mj
        mj.opt.timestep = 1.0 / RATE / 4
        mj.opt.disableflags &= ~int(mujoco.mjtDisableBit.mjDSBL_CONSTRAINT)    # which dry friction is there
        mj.jnt_limited[:] = 0
        for name in ("armature", "damping"):
            getattr(mj, f"dof_{name}")[self.peer.v] = getattr(truth, name)
        mj.dof_frictionloss[self.peer.v] = truth.friction
        self.peer.data.qpos[self.peer.q] = START

    @property
    def state(self):
        return self.peer.data.qpos[self.peer.q].copy(), self.peer.data.qvel[self.peer.v].copy()

    def step(self, effort):
        self.peer.data.qfrc_applied[self.peer.v] = self.gain * effort
        for _ in range(4):
            self._step(self.peer.mj, self.peer.data)


class Loop:
    """The test on a plant; `log` has time, phase, q, v, effort and weights of the gains per state."""

    def __init__(self, plant, model=TWO_LINK, **values):
        self.plant, self.now, self.log = plant, 0.0, []
        self.check = FloatCheck(model, FloatSettings.from_values({**VALUES, **values}, model))
        self.check.activate(0.0)

    def cycle(self):
        self.now += 1.0 / RATE
        q, v = self.plant.state
        command = self.check.on_state(self.now, round(self.now * 1e9), ["shoulder", "elbow"], q, v)
        self.log.append((self.now, self.check.phase, q, v, command.effort,
                         None if self.check._held is None else np.array(self.check._held.weight)))
        self.plant.step(command.effort)

    def begin(self):
        begin = self.now
        while self.check.start():
            self.cycle()
            assert self.now < begin + 5.0, self.check.start()
        return self

    def until(self, condition):
        begin = self.now
        while not condition():
            self.cycle()
            assert self.now < begin + 200.0
        return self

    def report(self):
        found = []
        self.until(lambda: found.append(self.check.take_report()) or found[-1])
        return found[-1]

    def releases(self, j):
        return self.check.phase.endswith("release") and self.check._held.weight[j] <= 0.0


def test_an_arm_that_is_as_its_model_passes():
    loop = Loop(Plant(TWO_LINK)).begin()
    report = loop.report()
    assert report.passed and not report.advice and not report.gains and report.text == "float test: pass"
    assert [joint.name for joint in report.joints] == ["shoulder", "elbow"] * 2
    for joint in report.joints:
        assert abs(joint.seen.drift) < 1e-4 and joint.as_predicted
        np.testing.assert_allclose(joint.seen.sweep.missing, 0.0, atol=1e-3)
        np.testing.assert_allclose(    # friction at the speed of the sweep
            joint.seen.sweep.level, (TWO_LINK.friction + 0.02 * TWO_LINK.damping)[joint.seen.joint], rtol=0.02)
    while loop.log[-1][3].any():
        loop.cycle()
    np.testing.assert_allclose(loop.plant.state[0], [-0.7, 0.9], atol=2e-3)    # the last pose


@pytest.mark.parametrize("kind", [pytest.param(Plant, marks=pytest.mark.thorough), Mujoco])
def test_a_wrong_gain_is_found(kind):
    report = Loop(kind(TWO_LINK, np.array([1.0, 1.3]))).begin().report()
    assert not report.passed and report.load is None
    assert {joint.name for joint in report.joints if joint.verdict != "rests"} == {"elbow"}
    assert report.gains.keys() == {"elbow"}
    np.testing.assert_allclose(report.gains["elbow"], 1.3, rtol=0.02)
    assert "elbow climbs" in report.text and "elbow=1.3" in report.text and "a second pose" not in report.text
    assert all(joint.as_predicted for joint in report.joints)
    repaired = np.array([1.0, 1.3]) / [1.0, report.gains["elbow"]]
    assert Loop(kind(TWO_LINK, repaired)).begin().report().passed


def test_a_load_that_the_model_lacks_is_found():
    report = Loop(Plant(with_payloads(TWO_LINK, {"tip": LOAD}))).begin().report()
    assert not report.passed and not report.gains
    assert {joint.verdict for joint in report.joints} == {"sinks"}
    np.testing.assert_allclose([report.load.mass, *report.load.com], [1.0, 0.02, 0.0, 0.1], atol=0.02)
    assert "a load is missing" in report.text and len(report.advice) == 1


def test_drifts_are_those_of_the_equation_of_motion_and_within_the_prediction():
    """With a window that is never left: the measured drift lies in the interval."""
    plant = Plant(TWO_LINK, np.array([1.0, 1.12]))
    report = Loop(plant, window=[0.5], fastest=[5.0], time=0.5, fade=0.02, poses=["0.4 0.5"]).begin().report()
    elbow = report.joints[1]
    assert not elbow.seen.left and abs(elbow.seen.drift) > 0.01
    assert min(elbow.low, elbow.high) < elbow.seen.drift < max(elbow.low, elbow.high)
    np.testing.assert_allclose(elbow.seen.drift, elbow.predicted, rtol=0.15)


def test_one_pose_tells_factor_and_offset_only_together():
    report = Loop(Plant(TWO_LINK, np.array([1.0, 1.3])), poses=["0.4 0.5"]).begin().report()
    np.testing.assert_allclose(report.gains["elbow"], 1.3, rtol=0.02)
    assert "a second pose tells" in report.text


def test_without_a_sweep_drifts_are_judged_by_the_window_alone():
    report = Loop(Plant(TWO_LINK, np.array([1.0, 1.3])), sweep=[0.0], poses=["0.4 0.5"]).begin().report()
    assert [joint.verdict for joint in report.joints] == ["rests", "climbs"] and not report.gains
    assert "did not move both ways" in report.text and json.loads(report.as_json())["joints"][1]["predicted"] is None


def test_gains_fade_without_a_step_of_the_effort():
    """While a joint is faded out, is free and is faded in, its effort changes slowly, on an arm that is 5 % off."""
    loop = Loop(Plant(TWO_LINK, np.array([1.0, 1.05])), poses=["0.4 0.5"]).begin()
    loop.report()
    efforts, weights = (np.array([row[k] for row in loop.log]) for k in (4, 5))
    faded = (weights[1:] < 1.0) | (weights[:-1] < 1.0)
    steps = np.abs(np.diff(efforts, axis=0))
    assert faded.any(axis=0).all()
    assert steps[faded].max() < 0.06    # N m in 4 ms; the feedback before is up to 0.5 N m


def test_a_joint_that_leaves_the_window_is_held_where_it_is():
    loop = Loop(Plant(TWO_LINK, np.array([1.0, 1.3])), poses=["0.4 0.5"], tested_joints=["elbow"]).begin()
    report = loop.report()
    elbow = report.joints[0]
    assert f"then its gains returned ({RETURNED[elbow.seen.left]})" in report.text
    times, q = (np.array([row[k] for row in loop.log]) for k in (0, 2))
    free = np.array([row[5][1] < 1.0 for row in loop.log])
    caught = np.flatnonzero(free[:-1] & ~free[1:])[0]
    after = (times > times[caught]) & (times < times[caught] + 1.0)
    assert np.abs(q[after, 1] - elbow.seen.q[1]).max() < 0.035 + 0.02    # it stops within a window's half beyond
    assert np.abs(q[:, 0] - 0.4).max() < 0.02


@pytest.mark.parametrize("when", ["sweep", "release"])
def test_an_emergency_stop_ends_the_test(when):
    loop = Loop(Plant(TWO_LINK)).begin()
    loop.until(lambda: loop.releases(1) if when == "release" else loop.check.phase.endswith(when))
    loop.check.safety.stop()
    loop.cycle()
    report = loop.check.take_report()
    assert "stopped" in report.aborted and not report.passed and loop.check.start()
    place = loop.plant.state[0]
    for _ in range(250):
        loop.cycle()
        assert loop.check.safety.mode == "stopped"
    np.testing.assert_allclose(loop.plant.state[0], place, atol=0.01)
    loop.check.reset(loop.now)
    loop.begin().until(lambda: loop.check.phase.endswith("release"))    # the next test begins


def test_states_that_cease_end_the_test():
    loop = Loop(Plant(TWO_LINK)).begin()
    loop.until(lambda: loop.releases(0))
    loop.now += 0.2
    assert loop.check.watchdog(loop.now) is not None and loop.check.safety.mode == "stale"
    loop.cycle()
    assert "stale" in loop.check.take_report().aborted
    np.testing.assert_array_equal(loop.log[-1][5], 1.0)    # all gains return, by a ramp in


def test_a_deactivation_holds_the_released_joint_without_a_step():
    loop = Loop(Plant(TWO_LINK, np.array([1.0, 1.1])), poses=["0.4 0.5"]).begin()
    loop.until(lambda: loop.releases(1))
    loop.check.deactivate()
    assert "deactivated" in loop.check.take_report().aborted
    before = loop.log[-1][4]
    loop.cycle()
    np.testing.assert_array_equal(loop.log[-1][5], 1.0)
    damping = VALUES["gains.kd"] * np.abs(loop.log[-1][3])
    assert (np.abs(loop.log[-1][4] - before) < 0.01 + damping).all()
    loop.until(lambda: loop.check.finished)


def test_a_change_of_parameters_ends_the_test():
    loop = Loop(Plant(TWO_LINK)).begin()
    loop.until(lambda: loop.releases(1))
    loop.check.apply(FloatSettings.from_values({**VALUES, "time": 1.0}, TWO_LINK))
    assert "parameters were changed" in loop.check.take_report().aborted
    np.testing.assert_array_equal(loop.check._held.weight, 1.0)


def test_a_held_joint_that_is_pushed_away_ends_the_test():
    loop = Loop(Plant(TWO_LINK), tolerance=[0.004, 0.1]).begin()
    loop.until(lambda: loop.releases(1))
    pushed = loop.plant.state[0] + [0.005, 0.0]
    loop.plant.sim.reset(pushed)
    loop.cycle()
    report = loop.check.take_report()
    assert "'shoulder' is 0.00" in report.aborted and "'tolerance'" in report.aborted
    loop.begin()
    np.testing.assert_allclose(loop.plant.state[0], pushed, atol=2e-3)    # held where it was pushed to


def test_what_cannot_be_tested_is_said():
    def refused(**values):
        with pytest.raises(rbd.RbdError) as error:
            FloatSettings.from_values({**VALUES, **values}, TWO_LINK)
        return str(error.value)

    assert "expected texts of 2 numbers" in refused(poses=["0.4"]) and "nan" in refused(poses=["nan 1"])
    assert "'wrist'" in refused(tested_joints=["wrist"])
    loop = Loop(Plant(TWO_LINK), **{"gains.kp": [626.0, 0.0]})
    assert "mode" in loop.check.start()
    loop.until(lambda: loop.check.safety.mode == "running")
    assert "gains.kp" in loop.check.start()
    running = Loop(Plant(TWO_LINK)).begin()
    assert "runs already" in running.check.start()
