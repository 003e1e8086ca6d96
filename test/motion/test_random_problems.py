"""Random problems, odd and malformed: only RbdError leaves, the time limit holds, and what is not good says why."""
from __future__ import annotations

import time
import warnings
from functools import cache

import numpy as np
import pytest

import rbd_ros as rbd
from benchmark import motion_fuzz

IIWA = rbd.sample("iiwa")


@cache
def models():
    return motion_fuzz.warmed(motion_fuzz.models())    # compiled: time limits are looked at


@pytest.mark.parametrize("seed", range(6))
def test_random_problems_are_answered_honestly_and_in_time(seed):
    """`python -m benchmark motion_fuzz` takes 1,000."""
    rng = np.random.default_rng((77, seed))
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        for _ in range(12):
            model, given = motion_fuzz.problem(rng, models())
            _, fault = motion_fuzz.judged(model, given)
            found += [f"{fault}: {given}"] if fault else []
    assert not found, found


@pytest.mark.parametrize(("change", "what"), [
    ({"degree": {}}, "degree"), ({"degree": np.zeros(2)}, "degree"), ({"waypoints": 5}, "waypoints"),
    ({"waypoints": None}, "waypoints"), ({"waypoints": [(10**400, np.zeros(7))]}, r"waypoints\[0\]"),
    ({"goal": [10**400] * 7}, "goal"), ({"limits": rbd.MotionLimits(jerk=10**400)}, "jerk"),
    ({"objective": {"effort": 10**400}}, "effort"), ({"nodes": 10**9}, "nodes must be"), ({"starts": "a"}, "starts"),
    ({"limits": rbd.MotionLimits(velocity=1e-300)}, "velocity"), ({"duration": 1e-200}, "duration must be between"),
    ({"duration": (1.0, 1e200)}, "duration must be between")])
def test_what_once_left_as_another_error_is_refused(change, what):
    with pytest.raises(rbd.RbdError, match=what):
        rbd.optimize_motion(IIWA, **{"start": np.zeros(7), "goal": np.full(7, 0.3), "duration": 1.5, **change})


def test_limits_beyond_all_numbers_are_none():
    far = rbd.MotionLimits(velocity=1e300, acceleration=1e200)
    motion = rbd.optimize_motion(IIWA, np.zeros(7), np.full(7, 0.3), 1.5, limits=far, starts=1).check()
    assert "velocity" not in motion.usage


def test_many_control_points_are_no_matter():
    models()
    spent = time.process_time()
    motion = rbd.optimize_motion(IIWA, np.zeros(7), np.full(7, 0.3), 1.5, "jerk", control_points=400, time_limit=0.2)
    assert min(motion.seconds, time.process_time() - spent) < 2.0
