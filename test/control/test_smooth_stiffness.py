"""A wanted stiffness and its time derivatives, whatever targets and poles become on the way."""
from __future__ import annotations

import numpy as np
import pytest

from rbd_ros.runtime.control.smooth_stiffness import SmoothStiffness

LOW, HIGH = np.array([1.0, 300.0]), np.array([600.0, 900.0])


def test_poles_that_become_slow_on_the_way():
    """With three poles at 5 instead of 200 1/s from the state on the way down, the stiffness would become -2.8."""
    made = SmoothStiffness(np.array([600.0]), np.array([200.0]))
    made.aim(np.array([1.0]), np.array([200.0]))
    made.advance(0.012)
    made.aim(np.array([1.0]), np.array([5.0]))
    values = np.array([made.advance(1e-3)[0] for _ in range(5000)])
    assert values.min() >= 1.0 - 1e-9 and (np.diff(values[:, 0]) <= 1e-9).all()
    assert values[-1] == pytest.approx(1.0, abs=1e-3)


def test_the_range_of_the_targets_is_never_left():
    rng = np.random.default_rng(5)
    made = SmoothStiffness(LOW, np.full(2, 50.0))
    target, poles = LOW, np.full(2, 50.0)
    moved = np.zeros(2)
    for _ in range(3000):
        if rng.random() < 0.2:
            target = np.where(rng.random(2) < 0.5, LOW, HIGH)
        if rng.random() < 0.2:
            poles = 10.0 ** rng.uniform(-3.0, 5.0, 2)
        made.aim(target, poles)
        value = made.advance(rng.choice([0.0, 1e-4, 1e-3, 0.01, 0.3]))
        assert np.isfinite(value).all()
        assert (value[0] >= LOW - 1e-6).all() and (value[0] <= HIGH + 1e-6).all()
        moved = np.maximum(moved, np.abs(value[1]))
    assert (moved > 1.0).all()


def on_the_way():
    made = SmoothStiffness(np.array([600.0]), np.array([60.0]))
    made.aim(np.array([200.0]), np.array([60.0]))
    made.advance(0.02)
    made.aim(np.array([300.0]), np.array([20.0]))
    return made


def test_nothing_jumps_where_the_poles_change():
    made = on_the_way()
    before = made.value.copy()
    np.testing.assert_allclose(made.advance(1e-9), before, rtol=1e-6)


def test_the_derivatives_are_those_of_the_stiffness():
    h = 1e-5
    for t in (0.004, 0.02, 0.1):
        below, at, above = (on_the_way().advance(t + d) for d in (-h, 0.0, h))
        np.testing.assert_allclose(at[1:], (above - below)[:2] / (2.0 * h), rtol=1e-5)


def test_one_long_step_is_many_short_ones():
    once, often = on_the_way(), on_the_way()
    for _ in range(100):
        often.advance(1e-3)
    np.testing.assert_allclose(once.advance(0.1), often.value, rtol=1e-9, atol=1e-9)


def test_poles_act_at_once_while_the_stiffness_rests():
    made, other = (SmoothStiffness(np.array([600.0]), np.array([b])) for b in (50.0, 10.0))
    made.advance(0.1)
    made.aim(np.array([200.0]), np.array([10.0]))
    other.aim(np.array([200.0]), np.array([10.0]))
    np.testing.assert_allclose(made.advance(0.07), other.advance(0.07), rtol=1e-12)
