"""Clocks of stamps against steady time: what is a leap, and what only looks like one."""
from __future__ import annotations

import numpy as np
import pytest
from support.arm import NAMES, Q, arm

from rbd_ros.runtime.inputs.joint_states import StateInput
from rbd_ros.runtime.inputs.rejections import Rejections
from rbd_ros.runtime.inputs.plausibility import CONFIRMED

MS = 1_000_000


def taken(times, timeout=0.05):
    """The input after states of a resting arm: (steady time, stamp), both in s; and which of them were accepted."""
    state = StateInput(arm(), Rejections(), timeout, 30.0, 2.0)
    return state, [state.accept(now, 10**18 + round(stamp * 1e9), NAMES, Q, [0.0, 0.0]).taken for now, stamp in times]


def regular(count, h=1e-3, pace=1.0):
    return [(1.0 + i * h / pace, 1.0 + i * h) for i in range(count)]


def late(times):
    """Two stalls of 40 ms: after the first all messages come in a burst, after the second only the newest."""
    return [(max(now, 1.24), stamp) if 1.2 < now < 1.24 else (1.64, stamp) if round(now, 4) == 1.6 else (now, stamp)
            for now, stamp in times if not 1.6005 < now < 1.64]


PASSES = {
    "regular": regular(2000), "50 Hz": regular(200, h=0.02), "stalls": late(regular(2000)),
    "fast": regular(2000, pace=20.0), "slow": regular(500, pace=0.1), "as fast as possible": [
        (1.0 + t, 1.0 + 1e-3 * i) for i, t in enumerate(np.cumsum(np.random.default_rng(1).exponential(1e-4, 3000)))],
    "fast with drops": [x for i, x in enumerate(regular(4000, pace=10.0)) if i < 100 or i % 200 > 50],
    "lockstep": [(1.0 + 1e-4 * i + 5.0 * (i // 300), 1.0 + 0.01 * i) for i in range(1500)],
    "drift": [(now, 1.0 + 1.0005 * (stamp - 1.0)) for now, stamp in regular(3000)],
    "coarse": [(now, np.floor(100.0 * stamp) / 100.0) for now, stamp in regular(2000)],
}


@pytest.mark.parametrize("name", PASSES)
def test_what_is_no_leap(name):
    state, accepted = taken(PASSES[name], 0.05 if name != "lockstep" else 10.0)
    assert all(accepted), accepted.index(False)
    assert state.restarts == 0


def test_half_a_period_is_the_least_step():
    """It divides differences of positions: nearly equal stamps give no velocity."""
    clock = taken(regular(500, h=0.004))[0]._check.clock
    assert clock.period == pytest.approx(0.004, rel=1e-6) and clock.least == pytest.approx(0.002, rel=1e-6)


@pytest.mark.parametrize("leap", [0.01, 0.1, 0.9, 1.1, 1e5])
@pytest.mark.parametrize("pace", [0.1, 1.0, 10.0])
def test_a_step_of_the_clock_is_a_restart(leap, pace):
    """In simulations only if it is more than what an uneven pace may be."""
    leap += {0.1: 0.1, 1.0: 0.0, 10.0: 2.0}[pace]
    times = regular(1000, pace=pace)
    state, accepted = taken([(now, stamp + leap * (i >= 900)) for i, (now, stamp) in enumerate(times)])
    assert [i for i, good in enumerate(accepted) if not good] == list(range(900, 900 + CONFIRMED - 1))
    assert state.clock_restarts == state.restarts == 1


@pytest.mark.parametrize("leap", [0.01, 0.9, 5.0, -0.005, -5.0])
def test_single_stamps_that_leap_change_nothing(leap):
    times = regular(1000)
    state, accepted = taken([(now, stamp + leap * (i % 10 == 5 and i > 20)) for i, (now, stamp) in enumerate(times)])
    assert accepted == [not (i % 10 == 5 and i > 20) for i in range(1000)] and state.restarts == 0


def test_a_simulation_that_goes_on_with_longer_steps():
    times = [*regular(100), *((1.1 + 1e-3 * i, 1.1 + 0.02 * i) for i in range(1, 100))]
    state, accepted = taken(times)
    assert accepted.count(False) == CONFIRMED - 1 and state.clock_restarts == 1


@pytest.mark.parametrize("seed", range(24))
def test_a_busy_machine_makes_no_leaps(seed):
    """The node handles messages late by up to some 100 ms, and misses those that came meanwhile."""
    rng = np.random.default_rng(seed)
    h, pace = [1e-3, 2e-3, 8e-3, 0.02][seed % 4], [1.0, 0.05, 0.3, 0.8, 3.0, 1.0][seed // 4]
    sent, times, now, i = np.arange(3000) * h / pace, [], 0.0, 0
    while i < len(sent):
        now = max(now, sent[i])
        newest = int(np.searchsorted(sent, now, side="right")) - 1
        i = newest + 1
        now += rng.exponential(2e-4) + (rng.exponential(0.1) if rng.random() < 0.01 else 0.0)
        times.append((1.0 + now, newest * h))
    state, accepted = taken(times, 2.0)
    assert all(accepted) and state.restarts == 0, accepted.count(False)
