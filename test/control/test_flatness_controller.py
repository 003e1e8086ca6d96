"""The flatness controller: torque and its time derivatives along a reference, and what makes them invalid."""
from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.arm import NAMES, Q, V, arm, measured

import rbd_ros as rbd
from rbd_ros.core.dynamics.friction import friction_effort
from rbd_ros.runtime.control.flatness import FlatnessController, FlatnessSettings
from rbd_ros.runtime.inputs.references import Point

CONFIG = Path(__file__).parents[2] / "config" / "flatness.yaml"
MS = 1_000_000
T0 = 0.4                     # s, where the motion is looked at
AMPLITUDE, RATE = np.array([0.5, -0.8]), np.array([1.7, 2.3])


def motion(t):
    """q, v, a, jerk, snap at time t; a complex t will do."""
    phase = RATE * t
    s, c = AMPLITUDE * np.sin(phase), AMPLITUDE * np.cos(phase)
    return s, RATE * c, -RATE**2 * s, -RATE**3 * c, RATE**4 * s


def controller(model=None, **values):
    model = arm() if model is None else model
    values = {"ramp_in": 0.0, "ramp_out": 0.0} | {name.replace("__", "."): value for name, value in values.items()}
    made = FlatnessController(model, FlatnessSettings.from_values(values, model))
    made.activate(0.0)
    return made


def answer(made, reference=None, now=1.0, stamp_ns=MS):
    """Effort and its derivatives in state Q, V."""
    assert made.on_reference(now, 0, NAMES, *(motion(T0) if reference is None else reference))
    return made.on_state(now, stamp_ns, NAMES, Q, V)[:2]


def differences(function, t=T0, h=1e-3):
    """First and second derivative of a smooth function of time, by differences of eighth order."""
    first = np.array([1 / 280, -4 / 105, 1 / 5, -4 / 5, 0, 4 / 5, -1 / 5, 4 / 105, -1 / 280])
    second = np.array([-1 / 560, 8 / 315, -1 / 5, 8 / 5, -205 / 72, 8 / 5, -1 / 5, 8 / 315, -1 / 560])
    values = np.array([function(t + i * h) for i in range(-4, 5)])
    return np.stack([first @ values / h, second @ values / h**2])


def assert_close(rates, expected):
    """To the rounding errors of `differences`."""
    assert (np.abs(rates - expected) < [[1e-9], [1e-6]]).all(), rates - expected


def torque(model, t, smoothing=0.1):
    q, v, a = motion(t)[:3]
    return rbd.inverse_dynamics(model, q, v, a) + friction_effort(model, v, smoothing)


@pytest.mark.parametrize("values", [{}, {"friction__damping": False}, {"friction__coulomb": False},
                                    {"friction__smoothing": 0.5}, {"robot_compensates": ["friction"]},
                                    {"robot_compensates": ["gravity"]}, {"gravity": True}])
def test_rates_are_the_derivatives_of_the_effort(values):
    model, smoothing = arm(), values.get("friction__smoothing", 0.1)
    expected = model
    if values.pop("gravity", False):
        expected = model = model.with_(gravity=(3.0, 1.0, 0.5))
    if "friction__damping" in values or "friction" in values.get("robot_compensates", ()):
        expected = expected.with_(damping=0.0)
    if "friction__coulomb" in values or "friction" in values.get("robot_compensates", ()):
        expected = expected.with_(friction=0.0)
    if "gravity" in values.get("robot_compensates", ()):
        expected = expected.with_(gravity=(0, 0, 0))
    effort, rates = answer(controller(model, **values))
    np.testing.assert_allclose(effort, torque(expected, T0, smoothing), rtol=0, atol=1e-12)
    assert_close(rates, differences(lambda t: torque(expected, t, smoothing)))


def test_feedback_is_added_to_the_effort_only():
    plain, fed = answer(controller()), answer(controller(gains__kp=[100, 50], gains__kd=3))
    q, v = motion(T0)[:2]
    np.testing.assert_allclose(fed[0] - plain[0], np.array([100, 50]) * (q - Q) + 3 * (v - V), atol=1e-12)
    np.testing.assert_array_equal(fed[1], plain[1])


def test_external_wrenches_count_as_constant_in_the_body():
    made, wrench = controller(wrench_limits__rate=np.inf), np.array([0.1, 0.2, 0.3, 1.0, 2.0, 3.0])
    assert made.on_wrenches(1.0, [("lower", wrench)])
    effort, rates = answer(made)

    def loaded(t):
        q, v, a = motion(t)[:3]
        return rbd.inverse_dynamics(made.model, q, v, a, {"lower": wrench}) + friction_effort(made.model, v, 0.1)

    np.testing.assert_allclose(effort, loaded(T0), atol=1e-12)
    assert_close(rates, differences(loaded))


@pytest.mark.parametrize("count", [3, 4])
def test_without_jerk_or_snap_there_are_no_derivatives(count):
    effort, rates = answer(controller(), motion(T0)[:count])
    np.testing.assert_allclose(effort, torque(arm(), T0), atol=1e-12)
    assert rates is None


def test_what_is_clipped_or_ramped_has_no_derivatives():
    def known(made, reference=None, now=1.0, stamp_ns=MS):
        return answer(made, reference, now, stamp_ns)[1] is not None

    assert not known(controller(effort_limits__maximum=0.1))
    made = controller(effort_limits__rate=0.1)
    assert known(made) and not known(made, tuple(2.0 * x for x in motion(T0)), 1.01, 2 * MS)
    made = controller(ramp_in=1.0, state_timeout=5.0)
    assert not known(made) and not known(made, None, 1.5, 2 * MS)
    assert known(made, None, 2.5, 3 * MS)
    made.safety.stop()
    assert not known(made, None, 2.6, 4 * MS)


def test_the_output_of_the_watchdog_has_no_derivatives():
    made = controller(state_timeout=0.1)
    assert answer(made)[1] is not None
    assert made.watchdog(1.2).rates is None


def test_a_stale_reference_rests_with_derivatives():
    made = controller(reference_timeout=0.1)
    answer(made)
    effort, rates, *_ = made.on_state(1.2, 2 * MS, NAMES, Q, V)
    np.testing.assert_allclose(effort, rbd.gravity_effort(made.model, motion(T0)[0]), atol=1e-12)
    assert not rates.any()


def test_trajectories_are_smooth_enough_for_derivatives():
    """Between rest and rest no derivative jumps, and all belong to the effort."""
    made = controller(state_timeout=10.0, friction__coulomb=False)
    made.on_state(0.0, MS, NAMES, Q, V)
    points = [Point(0.0, Q), Point(0.6, Q + np.array([0.5, -0.3])), Point(1.0, Q + np.array([0.2, 0.4]))]
    assert made.on_trajectory(0.0, MS, NAMES, points)
    step = 1e-3
    stamps = [MS + round(i * step * 1e9) for i in range(1002)]
    answers = np.array([[found.effort, *found.rates] for found in (
        made.on_state(0.0, stamp, NAMES, measured(made.state.q), V) for stamp in stamps)])
    effort, rate, second = answers[:, 0], answers[:, 1], answers[:, 2]
    slopes = (effort[2:] - effort[:-2]) / (2 * step)
    np.testing.assert_allclose(slopes, rate[1:-1], rtol=0, atol=3e-4 * np.abs(second).max())
    jumps = np.abs(np.diff(second, axis=0)).max()
    assert jumps < 0.05 * np.abs(second).max()
    assert not second[0].any() and not second[-1].any()


def test_coriolis_cannot_be_left_to_the_robot():
    with pytest.raises(rbd.RbdError, match=r"robot_compensates.*coriolis"):
        controller(robot_compensates=["coriolis"])


@pytest.mark.closed_loop
def test_the_tolerance_is_by_weak_gains_too():
    laws = controller(gains__kp=[0.5, 0.0], gains__kd=[0.25, 1.0]).safety.laws.newest
    np.testing.assert_array_equal(laws.return_time(), [0.5, np.inf])
    assert np.isfinite(laws.tolerance[0]) and laws.tolerance[1] == np.inf
