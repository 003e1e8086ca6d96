"""`rbd.batch`: the same results on any executor, whoever is lost on the way."""
from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest

import rbd_ros as rbd
from rbd_ros.core import batch as inside

CASES = 300    # more than the parts that are sent


def drawn(case, random):
    return case + random.standard_normal()


def moved(model, effort, random):
    """A short simulation, from a random start."""
    simulator = rbd.Simulator(model, q=random.uniform(-1.0, 1.0, model.nq))
    simulator.step(np.full(model.nv, effort), 50)
    return simulator.q.tobytes()


def killed_once(folder, at, case, random):
    """The first worker that comes to case `at` is killed."""
    try:
        if case == at:
            os.close(os.open(os.path.join(folder, "killed"), os.O_CREAT | os.O_EXCL))
            os.kill(os.getpid(), signal.SIGKILL)
    except FileExistsError:
        pass
    return drawn(case, random)


def killed_always(case, random):
    if case == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return case


def refused(case, random):
    if case >= 40:
        raise ZeroDivisionError(f"no {case}")
    return case


@pytest.fixture(scope="module")
def alone():
    return rbd.batch(drawn, range(CASES))


@pytest.mark.parametrize("executor", [1, 2, 3, partial(ProcessPoolExecutor, 2, get_context("spawn")),
                                      partial(ThreadPoolExecutor, 4)])
def test_results_are_the_same_to_the_bit_and_in_order(executor, alone):
    assert rbd.batch(drawn, range(CASES), executor) == alone
    assert sorted(alone) != alone and abs(np.mean(np.subtract(alone, range(CASES)))) < 0.2


def test_simulations_are_the_same_to_the_bit():
    model = rbd.sample("two_link")
    efforts = np.linspace(-1.0, 1.0, 12)
    assert rbd.batch(partial(moved, model), efforts, 2, seed=5) == rbd.batch(partial(moved, model), efforts, seed=5)


def test_an_executor_that_is_given_stays_open(alone):
    with ThreadPoolExecutor(2) as pool:
        assert rbd.batch(drawn, range(CASES), pool) == alone
        assert pool.submit(int, "7").result() == 7


def test_the_seed_and_the_number_of_a_case_decide_alone(alone):
    assert rbd.batch(drawn, range(40)) == alone[:40]
    assert rbd.batch(drawn, range(40), seed=1) != alone[:40]
    assert len({value - i for i, value in enumerate(alone)}) == CASES    # no stream twice


@pytest.mark.parametrize("at", [1, 150, CASES - 1])
def test_cases_of_a_killed_worker_are_done_again(at, alone, tmp_path):
    assert rbd.batch(partial(killed_once, str(tmp_path), at), range(CASES), 2) == alone
    assert (tmp_path / "killed").exists()


def test_a_case_that_kills_every_worker_is_named():
    with pytest.raises(rbd.RbdError, match=r"case 3: lost 3 workers"):
        rbd.batch(killed_always, range(8), 1)


def test_a_broken_pool_that_was_given_says_what_helps():
    pool = ProcessPoolExecutor(1, get_context("spawn"))
    with pool, pytest.raises(rbd.RbdError, match=r"takes no work.*a number of processes"):
        rbd.batch(killed_always, range(8), pool)


class Unsteady(Executor):
    """Loses the first answer of each part, as a cluster does whose workers go away."""

    def __init__(self, times):
        self._left, self.submitted = {}, 0
        self._times = times

    def submit(self, function, /, cases):
        self.submitted += 1
        future = Future()
        left = self._left.setdefault(cases[0][0], [self._times])
        if left[0]:
            left[0] -= 1
            future.set_exception(ConnectionError("worker gone"))
        else:
            future.set_result(function(cases))
        return future


def test_what_a_cluster_loses_is_submitted_again(alone):
    cluster = Unsteady(2)
    assert rbd.batch(drawn, range(CASES), cluster) == alone
    with pytest.raises(rbd.RbdError, match=r"lost 3 workers.*worker gone"):
        rbd.batch(drawn, range(CASES), Unsteady(3))


@pytest.mark.parametrize("executor", [None, 2])
def test_a_case_that_raises_is_named_with_its_trace(executor):
    with pytest.raises(rbd.RbdError, match="case 40: ZeroDivisionError: no 40") as raised:
        rbd.batch(refused, [*range(38), 3, 2, *range(40, 90)], executor)
    assert "in refused" in str(raised.value.__cause__)


@pytest.mark.parametrize(("arguments", "text"), [
    ({"executor": 0}, "executor must be a positive number of processes"),
    ({"executor": "two"}, "executor must be"),
    ({"seed": -1}, "seed must be"),
    ({"seed": "x"}, "seed must be"),
    ({"function": lambda case, random: case, "executor": 2}, "function: cannot be sent.*functools.partial"),
    ({"executor": lambda: 3}, "executor: the function made 3"),
    ({"cases": 5}, "cases: expected a list of them, got 5"),
])
def test_what_it_does_not_take_is_named(arguments, text):
    with pytest.raises(rbd.RbdError, match=text):
        rbd.batch(**{"function": drawn, "cases": range(4)} | arguments)


def test_a_closed_executor_is_named():
    pool = ThreadPoolExecutor(1)
    pool.shutdown()
    with pytest.raises(rbd.RbdError, match="executor: takes no work"):
        rbd.batch(drawn, range(4), pool)


def test_a_result_that_cannot_be_sent_is_named():
    with pytest.raises(rbd.RbdError, match="case 1 cannot be sent"):
        rbd.batch(lock, range(4), 1)


def lock(case, random):
    return threading.Lock() if case else 0


def test_no_cases_need_no_executor():
    assert rbd.batch(drawn, [], 2) == [] == rbd.batch(drawn, [])


def test_progress_counts_every_case():
    seen = []
    rbd.batch(drawn, range(CASES), 2, progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (CASES, CASES) and [done for done, _ in seen] == sorted(done for done, _ in seen)


def test_a_bar_ends_its_line(capfd):
    rbd.batch(drawn, range(4), progress=True)
    assert capfd.readouterr().err.endswith("4 of 4, 0 s left\n")
    rbd.batch(drawn, range(4))
    assert not capfd.readouterr().err


def threads(case, random):
    return os.environ.get("OPENBLAS_NUM_THREADS")


def test_workers_have_one_thread_each(monkeypatch):
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    assert rbd.batch(threads, range(3), 1) == [None, "1", "1"]
    assert "OPENBLAS_NUM_THREADS" not in os.environ and inside.THREADS[0] == "OPENBLAS_NUM_THREADS"


def test_the_example_of_the_page_runs(tmp_path):
    page = (Path(__file__).parents[2] / "docs/batch.md").read_text(encoding="utf-8")
    script = tmp_path / "example.py"
    script.write_text(re.search(r"```python\n(.*?)```", page, re.DOTALL)[1])
    result = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False, timeout=120)
    assert result.returncode == 0, result.stderr
    assert len(result.stdout.split()) in (2, 3, 4)


DASK = """
import sys
sys.path.insert(0, {folder!r})
import test_batch as own
from functools import partial
import rbd_ros as rbd
if __name__ == "__main__":
    from distributed import Client, LocalCluster
    with LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster:
        with Client(cluster) as client:
            work = partial(own.killed_once, {tmp!r}, 150)
            print(rbd.batch(work, range(own.CASES), client.get_executor()) == rbd.batch(own.drawn, range(own.CASES)))
"""


def test_a_dask_cluster_one_of_whose_workers_is_killed(tmp_path):
    """A real scheduler and two worker processes."""
    pytest.importorskip("distributed")
    script = tmp_path / "cluster.py"
    script.write_text(DASK.format(folder=os.path.dirname(__file__), tmp=str(tmp_path)))
    result = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False, timeout=600,
                            cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert result.stdout.strip() == "True" and (tmp_path / "killed").exists()
