"""External wrenches are used within their bounds, and never change faster than they may, whatever comes when."""
from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import rbd_ros as rbd
from rbd_ros.runtime.inputs.rejections import Rejections
from rbd_ros.runtime.inputs.wrench_input import WrenchInput, WrenchSettings

MODEL = rbd.sample("iiwa")
SETTINGS = WrenchSettings()
HAND = MODEL.body_names[-1]
PUSH = np.array([0.0, 0.0, 5.0, 30.0, 0.0, 40.0])


def made(settings=SETTINGS):
    return WrenchInput(MODEL, Rejections(), settings)


def norms(w):
    return np.linalg.norm(w.reshape(-1, 2, 3), axis=2)


@pytest.mark.parametrize("seed", [
    *range(6), *(pytest.param(seed, marks=pytest.mark.thorough) for seed in range(6, 30))])
def test_it_never_leaves_its_bounds_nor_changes_faster_than_it_may(seed):
    rng = np.random.default_rng(seed)
    timeout, (force, moment) = rng.choice([[0.0, 0.1], [0.1, 1e-3]][seed % 2]), 10.0 ** rng.uniform(0, 3, 2)
    settings = WrenchSettings(timeout=timeout, force=force, moment=moment, rate=10.0 ** rng.uniform(-1, 2))
    subject, now = made(settings), 1.0
    bounds = np.array([settings.moment, settings.force])
    last, at, bodies = np.zeros((len(MODEL.body_names), 6)), now, [*MODEL.body_names, "nothing"]
    for _ in range(400):
        now += 10.0 ** rng.uniform(-5, 0)
        for _ in range(rng.integers(3)):
            message = [(str(rng.choice(bodies)), 10.0 ** rng.uniform(-2, 4) * rng.standard_normal(6)
                        * rng.choice([1.0, 1.0, 1.0, 0.0, np.nan])) for _ in range(rng.integers(3))]
            subject.accept(now - rng.uniform(0.0, 1e-5), message)
        for _ in range(2):    # asked twice in a cycle, it is the same
            used = subject.at(now)
            used = np.zeros_like(last) if used is None else used
            assert np.isfinite(used).all() and (norms(used) <= bounds * (1.0 + 1e-12)).all()
            assert (norms(used - last) <= settings.rate * bounds * (now - at) * (1.0 + 1e-9) + 1e-12 * bounds).all()
            last, at = used, now
    assert subject.any or not last.any()


def test_it_reaches_what_was_accepted_on_a_straight_line():
    subject = made()
    assert subject.accept(1.0, [(HAND, PUSH)]) and subject.any
    assert not subject.at(1.0).any()
    np.testing.assert_allclose(subject.at(1.004)[-1], 0.4 * PUSH)    # 50 of 500 N take 10 ms
    assert subject.accept(1.004, [(HAND, PUSH)])
    np.testing.assert_allclose(subject.at(1.02)[-1], PUSH)


@pytest.mark.parametrize("end", ["expires", "empty", "zero"])
def test_it_fades_when_it_ends(end):
    subject = made()
    subject.accept(1.0, [(HAND, PUSH)])
    begin = 1.0999
    np.testing.assert_array_equal(subject.at(begin)[-1], PUSH)
    if end != "expires":
        assert subject.accept(begin, [] if end == "empty" else [(HAND, 0.0 * PUSH)])
    np.testing.assert_allclose(subject.at(begin + 0.005)[-1], 0.5 * PUSH)
    assert subject.any
    assert subject.at(begin + 0.011) is None and not subject.any


def test_beyond_its_bounds_it_is_named_and_counted():
    subject = made()
    subject.accept(1.0, [(HAND, PUSH)])
    for wrench, text in (([0, 0, 0, 0, 0, 1e9], f"external force of 1e+09 N on body '{HAND}', at most 500"),
                         ([101, 0, 0, 0, 0, 501], f"external moment of 101 N m on body '{HAND}', at most 100"),
                         ([0, 0, 0, 300, 0, 401], f"external force of 500.8 N on body '{HAND}', at most 500")):
        verdict = subject.accept(1.001, [(HAND, np.array(wrench, dtype=float))])
        assert not verdict and verdict.text == text
    assert not subject.accept(1.001, [(HAND, [0, 0, 0, 300, 0, 0])] * 2), "they add up"
    assert subject._rejections.counts["excessive_wrench"] == 4
    np.testing.assert_allclose(subject.at(1.02)[-1], PUSH)
    assert subject.accept(1.02, [(HAND, [0, 0, 100.0, 0, 500.0, 0])])


def test_lower_bounds_act_at_once():
    subject = made()
    subject.accept(1.0, [(HAND, PUSH)])
    subject.at(1.05)
    subject.allow(replace(SETTINGS, force=25.0))
    np.testing.assert_allclose(subject.at(1.05)[-1], 0.5 * PUSH)
    idle = made()
    idle.allow(replace(SETTINGS, force=25.0))
    assert not idle.any and idle.at(2.0) is None


def test_without_a_rate_it_is_there_at_once():
    subject = made(replace(SETTINGS, rate=np.inf))
    subject.accept(1.0, [(HAND, PUSH)])
    np.testing.assert_array_equal(subject.at(1.0)[-1], PUSH)
