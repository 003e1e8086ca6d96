"""Threads that share a batch: the same numbers as one thread, late threads, several callers, forks, the end."""
from __future__ import annotations

import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from support.own_code import parts, states

import rbd_ros as rbd
from rbd_ros.core.compiled.kernel import COMPILED
from rbd_ros.core.specialize import many_states

pytestmark = pytest.mark.skipif(not COMPILED, reason="needs numba")
MODEL = rbd.sample("iiwa")
COUNT = 1003    # states: two ranges for each of two or three threads


@pytest.fixture(autouse=True)
def shared(monkeypatch):
    """All batches are shared."""
    monkeypatch.setattr(many_states, "LEAST", 1)


@pytest.fixture
def alone(monkeypatch):
    """No thread ever begins: the calls that the pool took are returned."""
    taken = []

    class Late:
        def submit(self, function, *arguments):
            taken.append((function, arguments))

    monkeypatch.setattr(many_states, "pool", lambda threads: Late())
    return taken


def given_and_expected(count=COUNT, seed=0):
    given = states(MODEL, "qvv", count, seed=seed)
    return given, rbd.inverse_dynamics(rbd.specialize(MODEL), *given)


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("name", ["inverse_dynamics", "forward_dynamics_derivatives"])
def test_the_same_bits_as_one_thread(name, threads):
    call = getattr(rbd, name)
    one, fast = rbd.specialize(MODEL), rbd.specialize(MODEL, threads=threads)
    for count in (0, 1, 7, 8, 9, 63, 64, 65, 127, 128, 129, 255, 256, 257, 385, 511, 513, COUNT):
        given = states(MODEL, "qvv", count)
        for expected, found in zip(parts(call(one, *given)), parts(call(fast, *given)), strict=True):
            np.testing.assert_array_equal(found, expected)


def test_both_threads_compute(monkeypatch):
    compute, both, came = many_states.range_entry.call, threading.Barrier(2, timeout=60.0), set()

    def call(*arguments):
        if threading.get_ident() not in came:
            came.add(threading.get_ident())
            both.wait()
        compute(*arguments)

    given, expected = given_and_expected()
    monkeypatch.setattr(many_states.range_entry, "call", call)
    np.testing.assert_array_equal(rbd.inverse_dynamics(rbd.specialize(MODEL, threads=2), *given), expected)
    assert len(came) == 2


def test_a_late_thread_is_not_waited_for_and_changes_nothing(alone):
    given, expected = given_and_expected()
    found = rbd.inverse_dynamics(rbd.specialize(MODEL, threads=3), *given)
    np.testing.assert_array_equal(found, expected)
    found[:] = 0.0
    assert len(alone) == 2
    for function, arguments in alone:
        function(*arguments)
    assert not found.any()


def test_short_batches_are_not_shared(alone, monkeypatch):
    monkeypatch.setattr(many_states, "LEAST", 4_000_000)
    given, expected = given_and_expected()
    np.testing.assert_array_equal(rbd.inverse_dynamics(rbd.specialize(MODEL, threads=2), *given), expected)
    assert not alone


def test_without_new_threads_the_calling_one_computes(monkeypatch):
    ended = ThreadPoolExecutor(1)
    ended.shutdown()
    monkeypatch.setattr(many_states, "pool", lambda threads: ended)
    given, expected = given_and_expected()
    np.testing.assert_array_equal(rbd.inverse_dynamics(rbd.specialize(MODEL, threads=2), *given), expected)


def test_states_of_a_thread_that_fails_are_computed_by_the_ordinary_kernels(monkeypatch):
    compute, caller, failed = many_states.range_entry.call, threading.get_ident(), threading.Event()

    def call(*arguments):
        if threading.get_ident() != caller:
            failed.set()
            raise MemoryError
        failed.wait(60.0)
        compute(*arguments)

    given, expected = given_and_expected()
    monkeypatch.setattr(many_states.range_entry, "call", call)
    found = rbd.inverse_dynamics(rbd.specialize(MODEL, threads=2), *given)
    assert failed.is_set()
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=1e-11)


def test_threads_compile_nothing(monkeypatch):
    """Else each waits for the others, without a cache for long, and a fork meanwhile leaves numba's lock taken."""
    compiled = []
    monkeypatch.setattr(many_states, "_pools", {})
    monkeypatch.setattr(type(many_states.range_entry), "compile", lambda entry: compiled.append(threading.get_ident()))
    many_states.pool(2).shutdown()
    assert compiled == [threading.get_ident()]


def test_many_calling_threads():
    """Each gets its own results, while all share the same pool; errors are those of their own batch."""
    fast = rbd.specialize(MODEL, threads=3)
    batches = [given_and_expected(COUNT + k, seed=k) for k in range(3)]
    wrong = [x.copy() for x in batches[0][0]]
    wrong[2][678, 3] = np.nan

    def call(k):
        for _ in range(30):
            if k == len(batches):
                with pytest.raises(rbd.RbdError, match="678"):
                    rbd.inverse_dynamics(fast, *wrong)
            else:
                given, expected = batches[k]
                np.testing.assert_array_equal(rbd.inverse_dynamics(fast, *given), expected)

    with ThreadPoolExecutor(4) as callers:
        for done in [callers.submit(call, k) for k in range(4)]:
            done.result()


FORK = """
import atexit, os, sys, threading
import numpy as np
import rbd_ros as rbd
from rbd_ros.core.specialize import many_states

many_states.LEAST = 1
fast = rbd.specialize(rbd.sample("iiwa"), threads=3)
given = np.random.default_rng(0).normal(size=(3, 2001, 7))
expected = rbd.inverse_dynamics(fast, *given)    # a fork while code is made may leave llvmlite's lock taken
stop = threading.Event()

def call():
    while not stop.is_set():
        assert np.array_equal(rbd.inverse_dynamics(fast, *given), expected)

thread = threading.Thread(target=call)
thread.start()
for _ in range(5):
    child = os.fork()    # while others compute
    if not child:
        for _ in range(10):
            assert np.array_equal(rbd.inverse_dynamics(fast, *given), expected)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
stop.set()
thread.join()

def last():
    assert np.array_equal(rbd.inverse_dynamics(fast, *given), expected)    # without new threads

atexit.register(last)
sys.exit(7)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_forks_and_the_end_of_a_process():
    ended = subprocess.run([sys.executable, "-W", "ignore::DeprecationWarning", "-c", FORK], timeout=300, check=False,
                           capture_output=True, text=True)
    assert ended.returncode == 7 and not ended.stderr
