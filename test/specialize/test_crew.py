"""Threads that share a batch: who is away, busy or gone, several calling threads, forks, the end of a process."""
from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path

import numpy as np
import pytest
from support.own_code import states

import rbd_ros as rbd
from rbd_ros.core.compiled.kernel import COMPILED
from rbd_ros.core.specialize.batches import lanes
from rbd_ros.core.specialize.batches.crew import (
    AT_WORK, AWAY, DONE, OFFER, OFFERED, RESERVED, STATE, WAITING, WORKER, Crew, crew, worker_entry,
)

pytestmark = [pytest.mark.thorough, pytest.mark.skipif(not COMPILED, reason="needs numba")]
MODEL = rbd.sample("iiwa")
COUNT = 3003    # enough to be shared


class Nobody:
    """A crew of which nobody ever comes."""

    def __init__(self, *found):
        self.workers = np.zeros((len(found), WORKER), np.int64)
        self.workers[:, STATE] = found
        self.woken = 0

    def wake(self):
        self.woken += 1


def given_and_expected(count=COUNT, seed=0):
    given = states(MODEL, "qvv", count, seed=seed)
    return given, rbd.inverse_dynamics(rbd.specialize(MODEL), *given)


@pytest.fixture
def few(monkeypatch):
    monkeypatch.setattr(lanes, "PIECE", 1000)
    monkeypatch.setattr(lanes, "LEAST", 1000)


@pytest.mark.parametrize("found", [AWAY, WAITING, RESERVED, OFFERED, AT_WORK, DONE])
def test_a_call_waits_for_nobody_who_has_not_begun(found, few, monkeypatch):
    """As where workers are late, busy with another call, or threads that a fork left behind."""
    nobody = Nobody(found, found)
    monkeypatch.setattr(lanes, "crew", lambda threads: nobody)
    given, expected = given_and_expected()
    for _ in range(2):
        np.testing.assert_array_equal(rbd.inverse_dynamics(rbd.specialize(MODEL, threads=3), *given), expected)
        assert nobody.workers[:, STATE].tolist() == [found, found]
        assert not nobody.workers[:, 1].any()    # no address of memory that is gone
    assert nobody.woken == 2


def test_short_batches_wake_nobody(few, monkeypatch):
    nobody = Nobody(AWAY)
    monkeypatch.setattr(lanes, "crew", lambda threads: nobody)
    given, expected = given_and_expected(200)
    np.testing.assert_array_equal(rbd.inverse_dynamics(rbd.specialize(MODEL, threads=2), *given), expected)
    assert not nobody.woken


def switches(thread):
    """How often this thread of this process gave its processor away to wait."""
    status = Path(f"/proc/self/task/{thread}/status").read_text()
    return int(status.split("\nvoluntary_ctxt_switches:")[1].split()[0])


def test_a_call_sleeps_while_a_worker_does_not_come_to_an_end(monkeypatch):
    """One that waits for the processor on which the calling thread runs, with a higher priority."""
    late = Nobody(WAITING)
    monkeypatch.setattr(lanes, "crew", lambda threads: late)
    given, expected = given_and_expected(300_000)
    caller = threading.get_native_id()

    def take():
        state, until = late.workers[:, STATE], time.monotonic() + 60.0
        while state[0] != AT_WORK:
            if state[0] == OFFERED:
                state[0] = AT_WORK
                if not late.workers[0, OFFER]:    # which was taken back meanwhile
                    state[0] = WAITING
        before = switches(caller)
        while switches(caller) < before + 100 and time.monotonic() < until:
            pass
        slept.append(switches(caller) >= before + 100)
        state[0] = DONE

    slept: list[bool] = []
    worker = threading.Thread(target=take)
    worker.start()
    fast = rbd.specialize(MODEL, ["inverse_dynamics"], threads=2)
    while not slept:    # the worker may not see the first offers
        np.testing.assert_array_equal(rbd.inverse_dynamics(fast, *given), expected)
    worker.join()
    assert slept == [True] and late.workers[0, STATE] == WAITING


def test_workers_take_part_and_leave(few, monkeypatch):
    """One that looks out takes pieces; after so many looks it is away."""
    seen, fast, until, worked = Nobody(AWAY), rbd.specialize(MODEL, threads=2), time.monotonic() + 60.0, 0
    monkeypatch.setattr(lanes, "crew", lambda threads: seen)
    given, expected = given_and_expected()
    while not worked and time.monotonic() < until:    # the processor may be busy with others
        with ThreadPoolExecutor(1) as pool:
            worker = pool.submit(worker_entry.call, seen.workers, 0, 20_000)
            for _ in range(50):
                np.testing.assert_array_equal(rbd.inverse_dynamics(fast, *given), expected)
            worked = worker.result(60.0)
        assert seen.workers[0, STATE] == AWAY
    assert worked


def test_nobody_keeps_a_processor_busy():
    found = Crew(2)
    found.wake()
    done, late = wait([each for each in found._busy if each is not None], 60.0)
    assert len(done) == 2 and not late and found.workers[:, STATE].tolist() == [AWAY, AWAY]
    found.wake()
    assert not wait([each for each in found._busy if each is not None], 60.0)[1]


def test_threads_compile_nothing(monkeypatch):
    """Else each of many waits for the others, on a machine without a cache for minutes, and a fork meanwhile leaves
    numba's lock taken.
    """
    compiled = []
    monkeypatch.setattr(type(worker_entry), "compile", lambda entry: compiled.append((entry, threading.get_ident())))
    Crew(2)
    assert compiled == [(worker_entry, threading.get_ident())]


def test_many_calling_threads(few):
    """Each gets its own results, while they compete for the same workers; errors are those of their own batch."""
    fast, failures = rbd.specialize(MODEL, threads=3), []
    batches = [given_and_expected(COUNT + k, seed=k) for k in range(4)]
    wrong = [x.copy() for x in batches[3][0]]
    wrong[2][1234, 3] = np.nan

    def call(k):
        try:
            for _ in range(100):
                if k == 3:
                    with pytest.raises(rbd.RbdError, match="1234"):
                        rbd.inverse_dynamics(fast, *wrong)
                else:
                    given, expected = batches[k]
                    np.testing.assert_array_equal(rbd.inverse_dynamics(fast, *given), expected)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=call, args=(k,)) for k in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert not failures
    until = time.monotonic() + 60.0    # one that was woken for nothing may still look for work
    while set(crew(3).workers[:, STATE].tolist()) != {AWAY} and time.monotonic() < until:
        time.sleep(1e-3)
    assert set(crew(3).workers[:, STATE].tolist()) == {AWAY}


FORK = """
import os, sys, threading
import numpy as np
import rbd_ros as rbd

model = rbd.sample("iiwa")
fast = rbd.specialize(model, threads=3)
given = np.random.default_rng(0).normal(size=(3, 4001, 7))
expected = rbd.inverse_dynamics(fast, *given)    # a fork while code is made may leave llvmlite's lock taken
stop = threading.Event()

def call():
    while not stop.is_set():
        assert np.array_equal(rbd.inverse_dynamics(fast, *given), expected)

thread = threading.Thread(target=call)
thread.start()
for _ in range(8):
    child = os.fork()    # while workers look out, or work
    if not child:
        for _ in range(20):
            assert np.array_equal(rbd.inverse_dynamics(fast, *given), expected)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
stop.set()
thread.join()
rbd.inverse_dynamics(fast, *given)
import atexit
atexit.register(lambda: rbd.inverse_dynamics(fast, *given))
sys.exit(7)    # while workers look out
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_forks_and_the_end_of_a_process():
    ended = subprocess.run([sys.executable, "-W", "ignore::DeprecationWarning", "-c", FORK], timeout=600, check=False,
                           capture_output=True, text=True)
    assert ended.returncode == 7 and not ended.stderr
