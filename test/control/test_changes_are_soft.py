"""What changes while the robot moves changes its torque, and the reference of its motors, without a step."""
from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from support.arm import NAMES, Q, V, arm
from support.elastic_arm import MOTORS, close, controller, expected, motion

import rbd_ros as rbd
from rbd_ros.runtime.control.elastic_settings import ElasticSettings
from rbd_ros.runtime.control.feedforward import FeedforwardController, FeedforwardSettings
from rbd_ros.runtime.control.flatness import FlatnessController, FlatnessSettings
from rbd_ros.runtime.inputs.references import Point

RIGID = [(FeedforwardController, FeedforwardSettings), (FlatnessController, FlatnessSettings)]
H, RAMP = 1e-3, 0.2    # s
SLOW = 0.1 * V         # so slow that positions may stay equal
OFF = np.array([0.02, 0.03, 40.0])    # error of the motors
FIELDS = ("position", "velocity", "acceleration", "effort")


class Run:
    """Cycles of 1 ms; the reference is where the robot stands slowly, plus `away`."""

    def __init__(self, made):
        self.made, self.n, self.away, self.silent = made, 1000, np.array([0.1, -0.2]), False

    @property
    def now(self):
        return self.n * H

    def cycle(self):
        self.n += 1
        stamp = round(self.now * 1e9)
        if not self.silent:
            assert self.made.on_reference(self.now, 0, NAMES, Q + self.away, 0.5 * V)
        return np.array(self.made.on_state(self.now, stamp, NAMES, Q, SLOW).effort)

    def cycles(self, count):
        return np.array([self.cycle() for _ in range(count)])


@pytest.fixture(params=RIGID, ids=["feedforward", "flatness"])
def rigid(request):
    kind, settings = request.param
    run = Run(kind(arm(), settings.from_values({"ramp_in": RAMP, "gains.kp": 20.0}, arm())))
    run.settings = settings
    run.made.activate(0.0)
    run.cycles(250)
    assert run.made.safety.mode == "running"
    return run


def step(efforts):
    return np.abs(np.diff(efforts, axis=0)).max()


@pytest.mark.parametrize("change", [{"gains.kp": 300.0}, {"gains.kp": 20.0, "gains.kd": 50.0},
                                    {"gains.kp": 20.0, "payload.body": "lower", "payload.mass": 5.0},
                                    {"gains.kp": 20.0, "friction.damping": False, "friction.coulomb": False}])
def test_settings(rigid, change):
    before = rigid.cycle()
    rigid.made.apply(rigid.settings.from_values({"ramp_in": RAMP, **change}, arm()))
    efforts = np.array([before, *rigid.cycles(250)])
    other = Run(type(rigid.made)(arm(), rigid.settings.from_values({"ramp_in": 0.0, **change}, arm())))
    other.made.activate(0.0)
    wanted = other.cycles(10)[-1]
    close(efforts[-1], wanted, 0.0)    # exact again
    assert np.abs(wanted - before).max() > 0.05
    assert step(efforts) <= 1.01 * np.abs(wanted - before).max() * H / RAMP
    close(efforts[100], 0.5 * (before + wanted), 0.01 * np.abs(wanted - before).max())


def test_a_setting_without_influence_leaves_the_torque_exact(rigid):
    before = rigid.cycle()
    rigid.made.apply(rigid.settings.from_values({"ramp_in": RAMP, "gains.kp": 20.0, "wrench_timeout": 3.0}, arm()))
    close(rigid.cycles(5), np.tile(before, (5, 1)), 0.0)
    assert not rigid.made.safety.clipped


def test_limits_act_at_once(rigid):
    rigid.made.apply(rigid.settings.from_values({"gains.kp": 20.0, "effort_limits.maximum": 0.5}, arm()))
    assert np.abs(rigid.cycle()).max() <= 0.5


@pytest.mark.parametrize("pause", ["silence", "trajectory"])
def test_a_stream_that_begins_elsewhere(rigid, pause):
    rigid.silent = True
    if pause == "trajectory":
        assert rigid.made.on_trajectory(rigid.now, 0, NAMES, [Point(0.1, Q)])
    before = rigid.cycles(300)[-1]
    rigid.silent, rigid.away = False, np.array([1.0, 1.0])
    efforts = np.array([before, *rigid.cycles(250)])
    assert np.abs(efforts[-1] - before).max() > 15.0
    assert step(efforts) <= 1.01 * np.abs(efforts[-1] - before).max() * H / RAMP


def test_within_a_stream_steps_are_steps(rigid):
    before, rigid.away = rigid.cycle(), np.array([1.0, 1.0])
    assert np.abs(rigid.cycle() - before).max() > 15.0


# ---- motors of elastic joints

class Motors(Run):
    """The robot follows `motion` with a constant error, the motors with another one: these leap with the payload."""

    def __init__(self, **values):
        values["plausible_velocity"] = np.inf
        super().__init__(controller(ramp_in=RAMP, **values))
        self.measured, self.values = True, values
        self.robot = self.made.actuation    # which does not jump where the controller's model changes

    def cycle(self):
        self.n += 1
        stamp, r, map_ = round(self.now * 1e9), motion(self.now), flat(self, self.robot)
        assert self.made.on_reference(self.now, 0, NAMES, *r)
        if self.measured:
            self.motors = map_.position + OFF, map_.velocity
            assert self.made.on_motor_state(self.now, stamp, MOTORS, *self.motors)
        self.q = r[0] + [0.01, -0.02]
        self.command = self.made.on_state(self.now, stamp, NAMES, self.q, r[1])
        return self.command.motor_effort

    def references(self, count):
        """Position, velocity, acceleration and effort of the motors, (4, count, nm)."""
        found = []
        for _ in range(count):
            self.cycle()
            found.append([getattr(self.command.motors, field) for field in FIELDS])
        return np.array(found).swapaxes(0, 1)

    def change(self, **values):
        self.values |= values
        given = {name.replace("__", "."): value for name, value in self.values.items()}
        self.made.apply(ElasticSettings.from_drives({"ramp_in": RAMP, "ramp_out": 0.0} | given, arm(),
                                                    self.made.settings.given))


def flat(run, actuation=None):
    """The flatness map at this moment, with the model of the controller unless another one is given."""
    r, actuation = motion(run.now), actuation or run.made.actuation
    return rbd.motor_reference(actuation, *r[:3], rbd.link_efforts(actuation, *r))


def check_smooth(references):
    """Derivatives of each other, and without a jump."""
    for low, high in pairwise(references[:3]):
        np.testing.assert_allclose(np.gradient(low, H, axis=0)[2:-2], high[2:-2], rtol=0,
                                   atol=0.02 * np.abs(high).max())
    for values in references:
        assert (np.abs(np.diff(values, axis=0)).max(axis=0) <= 0.06 * np.ptp(values, axis=0)).all()


def test_references_begin_where_the_motors_are():
    run = Motors(motor_gains__kp=[100.0, 50.0, 1e-4], friction__coulomb=False)
    first = run.references(1)
    close(first[0, 0], run.motors[0])
    close(first[1, 0], run.motors[1])
    close(first[3, 0], run.made.safe_motors(True))
    check_smooth(np.concatenate([first, run.references(250)], axis=1))
    close(run.command.motors.position, flat(run).position)
    assert (np.abs(first[0, 0] - expected(run.made).position) > 0.01).all()


def test_without_measured_motors_they_begin_where_gravity_is_held():
    run = Motors(mode="feed_forward", friction__coulomb=False)
    run.measured = False
    first = run.references(1)
    g = rbd.gravity_effort(run.made.model, run.q)
    close(first[0, 0], [*(run.q + g / [800.0, 300.0]), 300.0])
    close(first[1, 0], np.zeros(3))
    check_smooth(np.concatenate([first, run.references(250)], axis=1)[..., :2])
    close(run.command.motors.position, flat(run).position)


def test_references_begin_anew_after_the_motors_were_on_their_own():
    run = Motors(motor_gains__kp=10.0)
    run.references(250)
    run.n += 200
    assert run.made.watchdog(run.now).motors is None
    close(run.references(1)[0, 0], run.motors[0])
    run.made.safety.stop()
    run.cycles(3)
    assert run.command.motors is None
    run.made.safety.reset()
    close(run.references(1)[0, 0], run.motors[0])


def test_a_load_does_not_jerk_the_motors():
    run = Motors(mode="feed_forward", friction__coulomb=False)
    run.references(250)
    before, light = run.references(10), flat(run).position
    run.change(payload__body="lower", payload__mass=5.0, payload__com=[0.2, 0.0, 0.0])
    assert (np.abs(flat(run).position - light)[:2] > 5e-3).all()
    check_smooth(np.concatenate([before, run.references(250)], axis=1)[..., :2])
    close(run.command.motors.position, flat(run).position)


@pytest.mark.parametrize("change", [
    {"motor_gains__kp": [400.0, 200.0, 1e-3]}, {"mode": "feed_forward"}, {"mode": "feedback_linearization"},
    {"mode": "feedback_linearization", "poles": 40.0}, {"payload__body": "lower", "payload__mass": 5.0}], ids=str)
@pytest.mark.parametrize("mode", ["feed_forward_pd", "feedback_linearization"])
def test_gains_poles_and_laws_of_motors(mode, change):
    run = Motors(mode=mode, motor_gains__kp=[40.0, 20.0, 1e-4], state_rate=1000.0, poles=20.0,
                 motor_effort_limits__maximum=1e9, friction__coulomb=False)
    run.cycles(210)    # longer than the ramp
    before = run.cycle()
    run.change(**change)
    efforts = np.array([before, *run.cycles(210)])[:, :2]
    jump = np.ptp(efforts, axis=0)
    assert (jump > 0.05).all()
    assert (np.abs(np.diff(efforts, axis=0)).max(axis=0) < 0.03 * jump).all()


@pytest.mark.parametrize("cycles", [200, pytest.param(2000, marks=pytest.mark.thorough)])
def test_changes_in_every_cycle_do_not_leave_the_motors_to_themselves(cycles):
    """As where a stream of references times out between its samples."""
    run = Motors(mode="feed_forward", reference_timeout=0.5 * H, friction__coulomb=False)
    run.references(250)
    for _ in range(cycles):
        run.cycle()
        assert np.abs(run.command.motors.position - flat(run).position)[:2].max() < 1e-3


def test_a_simulation_that_rests_does_not_move_the_motors():
    """A change after a pause of its clock begins where the motors were."""
    run = Motors(mode="feed_forward", friction__coulomb=False, state_timeout=10.0, reference_timeout=0.0)
    before = run.references(250)[0, -1]
    run.change(payload__body="lower", payload__mass=5.0)
    r, stamp = motion(run.now), round(run.now * 1e9)
    for pause in (3.0, 3.001):
        assert run.made.on_reference(run.now + pause, 0, NAMES, *r)
        assert run.made.on_motor_state(run.now + pause, stamp, MOTORS, *run.motors)
        close(run.made.on_state(run.now + pause, stamp, NAMES, run.q, r[1]).motors.position, before, 1e-6)
