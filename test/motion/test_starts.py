"""Several first guesses of an optimal motion, one after the other or with the workers of an executor."""
from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from support.robots import load, urdf_paths

import rbd_ros as rbd
from benchmark.motion import problems

# with code of its own, which rounds otherwise than the kernels, from the beginning: not made once searches took long
MODEL = rbd.specialize(rbd.sample("two_link")) if rbd.COMPILED else rbd.sample("two_link")
GOAL = np.array([2.6, 1.2])
ASKED = {"duration": 1.2, "control_points": 12, "nodes": 60}


def test_the_best_of_all_guesses_is_returned_whoever_searches():
    """The cost is that of the best guess, searched for alone; 1, 2 and no processes agree bit for bit."""
    with ThreadPoolExecutor(2) as pool:
        found = rbd.optimize_motion(MODEL, np.zeros(2), GOAL, starts=5, executor=pool, **ASKED)
        alone = [rbd.optimize_motion(MODEL, np.zeros(2), GOAL, starts=count, executor=pool, **ASKED).cost
                 for count in (1, 3, 5)]
    assert found.good
    assert alone == sorted(alone, reverse=True) and found.cost == alone[-1]    # more guesses can only help
    processes = rbd.optimize_motion(MODEL, np.zeros(2), GOAL, starts=5, executor=2, **ASKED)
    t = np.linspace(0.0, 1.2, 7)
    assert processes.cost == found.cost
    assert np.array_equal(processes.effort(t), found.effort(t))


def test_one_start_is_enough_where_it_leads_to_a_good_motion():
    """The guesses are those of an executor, searched one after the other."""
    seen = []
    one = rbd.optimize_motion(MODEL, np.zeros(2), GOAL, starts=1, progress=seen.append, **ASKED)
    assert one.good and [now.iterations for now in seen].count(0) == 1
    with ThreadPoolExecutor(1) as pool:
        costs = [rbd.optimize_motion(MODEL, np.zeros(2), GOAL, starts=count, executor=pool, **ASKED).cost
                 for count in (1, 3)]
    assert [one.cost, rbd.optimize_motion(MODEL, np.zeros(2), GOAL, **ASKED).cost] == costs


@pytest.mark.skipif(not urdf_paths(), reason="example-robot-data is not installed")
@pytest.mark.parametrize(("robot", "seed", "share"), [("xarm_description/xarm7", 3, 0.05),
                                                      ("ur_description/ur5_robot", 3, 0.5)])
def test_the_default_leaves_a_basin_that_is_dearer_than_its_neighbour(robot, seed, share):
    """Several starts are tried by default, and give the same motion each time."""
    model = load(robot)
    q0, q1, duration = problems(model, seed + 1)[seed]
    one, default, again = (rbd.optimize_motion(model, q0, q1, duration, **given).check()
                           for given in ({"starts": 1}, {}, {}))
    assert default.cost < (1.0 - share) * one.cost
    assert again.cost == pytest.approx(default.cost, rel=1e-6)


def test_starts_end_with_the_time_limit_and_when_they_are_told_to():
    """The best motion so far is the answer."""
    one = rbd.optimize_motion(MODEL, np.zeros(2), GOAL, starts=1, **ASKED)
    late = rbd.optimize_motion(MODEL, np.zeros(2), GOAL, starts=100_000, time_limit=0.5, **ASKED)
    assert late.good and late.seconds < 60.0 and late.cost <= one.cost
    told = rbd.optimize_motion(MODEL, np.zeros(2), GOAL, progress=lambda now: now.iterations > one.iterations, **ASKED)
    assert told.good and told.cost == one.cost and told.iterations == one.iterations + 1


def test_progress_is_of_one_process():
    with pytest.raises(rbd.RbdError, match="progress: not with an executor"):
        rbd.optimize_motion(MODEL, np.zeros(2), GOAL, executor=2, progress=lambda _: False, **ASKED)


def test_what_is_asked_for_is_checked_before_workers_are():
    with pytest.raises(rbd.RbdError, match="goal"):
        rbd.optimize_motion(MODEL, np.zeros(2), np.zeros(3), starts=2, executor=2, **ASKED)
