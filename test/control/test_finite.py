"""Which numbers count as finite; and that numpy has nothing to say about any of it on a node's stderr."""
from __future__ import annotations

import numpy as np
import pytest
from support.arm import NAMES, Q, V, arm, arm_urdf
from support.elastic_arm import MOTORS, MS, R, W, Z, controller

import rbd_ros as rbd
from rbd_ros.runtime.control.feedforward import FeedforwardController, FeedforwardSettings
from rbd_ros.runtime.control.flatness import FlatnessController, FlatnessSettings
from rbd_ros.runtime.inputs.finite import HUGE, all_finite
from rbd_ros.runtime.inputs.joint_states import StateInput
from rbd_ros.runtime.inputs.rejections import Rejections

pytestmark = pytest.mark.filterwarnings("error::RuntimeWarning")
ABSURD = (1e30, 1e80, 1e149, 1e151, 1e160, 1e308)
GAINS = {"gains.kp": 1e9, "gains.kd": 1e9, "friction.smoothing": 1e-6, "ramp_in": 0.0, "plausible_velocity": np.inf}


@pytest.mark.parametrize("count", [1, 2, 7, 100, 101, 5000])
@pytest.mark.parametrize("strided", [False, True])
def test_finite_numbers(count, strided):
    values = np.zeros(2 * count)[::2] if strided else np.zeros(count)
    values[:] = -3.0
    assert all_finite(values) and all_finite(np.zeros(0))
    for at in (0, count // 2, count - 1):
        for number in (0.9 * HUGE, -0.9 * HUGE, 1e-320):
            values[at] = number
            assert all_finite(values)
        for number in (1.1 * HUGE, -1e160, 1.7e308, np.inf, -np.inf, np.nan):
            values[at] = number
            assert not all_finite(values)
            values[at - 1] = np.inf    # beside each of them
            assert not all_finite(values)
            values[at - 1] = -3.0
        values[at] = -3.0


def test_the_motor_whose_number_is_too_large_is_named():
    made = controller()
    for bad in (1e200, np.nan, np.inf):
        assert not made.on_motor_state(1.0, MS, MOTORS, [Z[0], bad, Z[2]], W)
        assert "'elbow'" in made.rejections.last and made.rejections.last.startswith("position")


def test_wrenches_whose_sum_overflows_are_refused():
    subject, body = made("gravity"), arm().body_names[-1]
    assert not subject.on_wrenches(1.0, [(body, np.full(6, 1e308))] * 2)
    assert subject.rejections.counts["non_finite"] == 1 and f"'{body}'" in subject.rejections.last
    assert not subject.on_wrenches(1.0, [(body, np.full(6, 1e149))] * 2)
    assert subject.rejections.counts["excessive_wrench"] == 1 and f"'{body}'" in subject.rejections.last


@pytest.mark.parametrize("wait", [1e-3, 100.0])
def test_a_velocity_that_is_too_fast_is_named(wait):
    """Also where its ratio to a slow limit overflows."""
    model = rbd.load_urdf(arm_urdf().replace('velocity="3"', 'velocity="0.1"'))
    state = StateInput(model, Rejections(), 0.05, 0.0, 2.0)
    assert state.accept(0.0, MS, NAMES, Q, [0.0, 0.0])
    for i in range(1, 12):
        assert not state.accept(wait + 1e-3 * i, (1 + i) * MS, NAMES, Q, [0.0, 1.7e308])
    assert "velocity of joint 'elbow'" in state.refused


def rigid(kind, settings, **values):
    made = kind(arm(), settings.from_values(GAINS | values, arm()))
    made.activate(0.0)
    return made


def made(name):
    if name == "flatness":
        return rigid(FlatnessController, FlatnessSettings)
    if name == "elastic":
        return controller(motor_gains__kp=1e9, motor_gains__kd=1e9, friction__smoothing=1e-6,
                          plausible_velocity=np.inf, safe_output__damping=100.0)
    return rigid(FeedforwardController, FeedforwardSettings, feedforward=name)


@pytest.mark.parametrize("every", [7, pytest.param(1, marks=pytest.mark.thorough)])    # across signs and sizes
@pytest.mark.parametrize("name", ["gravity", "full", "computed_torque", "flatness", "elastic"])
def test_absurd_numbers_make_no_warnings(name, every):
    """In states, motor states and references: all that is published is finite, and there is no word of numpy."""
    cases = [(where, row, size * sign) for where, rows in (("state", 2), ("motors", 2), ("reference", 5))
             for row in range(rows) for size in ABSURD for sign in (1.0, -1.0)]
    for where, row, size in cases[::every]:
        if where == "motors" and name != "elastic":
            continue
        subject, now = made(name), 1.0
        for cycle in range(12):
            now += 2e-3
            given = {"state": np.array([Q, V]), "motors": np.array([Z, W]), "reference": R.copy()}
            if cycle >= 4:
                given[where][row, cycle % 2] = size
            if name == "elastic":
                subject.on_motor_state(now, round(now * 1e9), MOTORS, *given["motors"])
            subject.on_reference(now, 0, NAMES, *given["reference"])
            subject.on_state(now, round(now * 1e9), NAMES, *given["state"])
            assert all(np.isfinite(channel.output).all() for channel in subject.safety.channels), (where, row, size)
