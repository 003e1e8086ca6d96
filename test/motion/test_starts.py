"""Several first guesses of an optimal motion, one after the other or with the workers of an executor."""
from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import rbd_ros as rbd

# with code of its own, which rounds otherwise than the kernels, from the beginning: not made once searches took long
MODEL = rbd.specialize(rbd.sample("two_link")) if rbd.COMPILED else rbd.sample("two_link")
GOAL = np.array([2.6, 1.2])
ASKED = {"duration": 1.2, "control_points": 12, "nodes": 60}


def test_the_best_of_all_guesses_is_returned_whoever_searches():
    """The cost is that of the best guess, searched for alone; 1, 2 and no processes agree bit for bit."""
    with ThreadPoolExecutor(2) as pool:
        found = rbd.optimize_motion(MODEL, np.zeros(2), GOAL, starts=5, executor=pool, **ASKED)
        alone = [rbd.optimize_motion(MODEL, np.zeros(2), GOAL, starts=count, executor=pool, **ASKED).cost
                 for count in range(1, 6)]
    assert found.good
    assert alone == sorted(alone, reverse=True) and found.cost == alone[-1]    # each guess more can only help
    processes = rbd.optimize_motion(MODEL, np.zeros(2), GOAL, starts=5, executor=2, **ASKED)
    t = np.linspace(0.0, 1.2, 7)
    assert processes.cost == found.cost
    assert np.array_equal(processes.effort(t), found.effort(t))


def test_without_an_executor_the_first_good_motion_ends_the_search():
    one = rbd.optimize_motion(MODEL, np.zeros(2), GOAL, starts=1, **ASKED)
    many = rbd.optimize_motion(MODEL, np.zeros(2), GOAL, starts=50, **ASKED)
    assert one.good and many.cost == one.cost


def test_progress_is_of_one_process():
    with pytest.raises(rbd.RbdError, match="progress: not with an executor"):
        rbd.optimize_motion(MODEL, np.zeros(2), GOAL, executor=2, progress=lambda _: False, **ASKED)


def test_what_is_asked_for_is_checked_before_workers_are():
    with pytest.raises(rbd.RbdError, match="goal"):
        rbd.optimize_motion(MODEL, np.zeros(2), np.zeros(3), starts=2, executor=2, **ASKED)
