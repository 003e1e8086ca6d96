"""Thread pool for batches: the calling thread offers work, computes, and waits for the workers that took part.

To wake a thread takes some 50 µs, a fifth of what 10,000 states of an arm take. So after a batch a worker looks out
for the next one for about a millisecond, without the interpreter's lock, and lets other threads of the machine run each
time it has looked; then it is away. A call waits for nobody who has not begun, so it does not matter who comes late or
never: the calling thread then does all.

Each worker has a row of numbers: its state, and the address of the work on offer.

    away, waiting → reserved → offered           a calling thread
    offered → at work → done                     the worker
    offered → reserved → as before; done → waiting    the calling thread, when nothing is left to do
    away → waiting → away                        the worker
"""
from __future__ import annotations

import contextlib
import os
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from ...compiled.entry import entry
from ...compiled.kernel import COMPILED, kernel
from .blocks import ARRAYS, INPUT, IS_GOOD, LINE, OUT, ROOM, blocks

if COMPILED:
    from .atomic import doze, give_way, number_at, pause, swapped

AWAY, WAITING, RESERVED, OFFERED, AT_WORK, DONE = range(6)
STATE, OFFER, BEFORE, WORKER = 0, 1, 2, 16    # WORKER: two lines of the caches, as these are fetched in pairs
ALONE, TURNS = 10_000, 13_000    # looks of a worker until it gives way to others each time, and until it is away
PATIENT = 20_000                 # looks until a calling thread sleeps each time: one of lower priority may wait for it


@kernel
def rest(turns):
    """Between two looks, after so many."""
    if turns < ALONE:
        pause()
    elif turns < PATIENT:
        give_way()
    else:
        doze()


@kernel
def offer(workers, work):
    """Offer the work to all free workers."""
    for k in range(len(workers)):
        state = workers.ctypes.data + 8 * WORKER * k
        before = number_at(state)
        if before in (AWAY, WAITING) and swapped(state, before, RESERVED):
            workers[k, OFFER] = work
            workers[k, BEFORE] = before
            swapped(state, RESERVED, OFFERED)


@kernel
def collect(workers, work):
    """Take back the offer, and wait for those who took it."""
    for k in range(len(workers)):
        state = workers.ctypes.data + 8 * WORKER * k
        if workers[k, OFFER] == work:
            if swapped(state, OFFERED, RESERVED):
                workers[k, OFFER] = 0
                swapped(state, RESERVED, workers[k, BEFORE])
            else:
                turns = 0
                while number_at(state) != DONE:
                    turns += 1
                    rest(turns)
                workers[k, OFFER] = 0
                swapped(state, DONE, WAITING)


@entry("int64(int64[::1], int64[:, ::1], float64[:, ::1], float64[:, ::1], float64[:, ::1], float64[:, ::1], "
       "float64[:, ::1], float64[:, ::1], float64[::1], float64[::1])", nogil=True)
def share_entry(work, workers, x0, x1, x2, x3, x4, out, good, room):
    """Do this work together with the workers (n, WORKER); returns how many pieces the calling thread took.

    work: as `blocks` takes it, but for the addresses of these: inputs, result, whether it is good, scratch memory.
    """
    for i in range(ARRAYS):
        work[INPUT + i] = (x0, x1, x2, x3, x4)[i].ctypes.data
    work[OUT] = out.ctypes.data
    work[IS_GOOD] = good.ctypes.data
    begin = room.ctypes.data
    work[ROOM] = begin + -begin % (8 * LINE)
    at = work.ctypes.data
    offer(workers, at)
    pieces = blocks(at)
    collect(workers, at)
    return pieces


@entry("int64(int64[:, ::1], int64, int64)", nogil=True)
def worker_entry(workers, k, turns):
    """Loop of worker k, until no work came in this many turns; returns how often it worked."""
    state = workers.ctypes.data + 8 * WORKER * k
    worked, idle = 0, 0
    while True:
        now = number_at(state)
        if now == AWAY:
            swapped(state, AWAY, WAITING)
        elif now == OFFERED:
            if swapped(state, OFFERED, AT_WORK):
                blocks(workers[k, OFFER])
                swapped(state, AT_WORK, DONE)
                worked += 1
                idle = 0
        elif now == WAITING and idle >= turns and swapped(state, WAITING, AWAY):
            return worked
        idle += 1
        rest(idle)


class Crew:
    """Threads beside the calling one."""

    def __init__(self, count: int) -> None:
        self.workers: NDArray[np.int64] = np.zeros((count, WORKER), np.int64)
        worker_entry.compile()    # by no thread of its own
        self._pool = ThreadPoolExecutor(count, thread_name_prefix="lanes")
        self._busy: list[Future[int] | None] = [None] * count

    def wake(self) -> None:
        """Restart workers that ended. Two workers in one place, from two concurrent calls, are harmless."""
        for k, state in enumerate(self.workers[:, STATE].tolist()):
            busy = self._busy[k]
            if state == AWAY and (busy is None or busy.done()):
                with contextlib.suppress(RuntimeError):    # at the end of a process there are no new threads
                    self._busy[k] = self._pool.submit(worker_entry.call, self.workers, k, TURNS)


NOBODY: NDArray[np.int64] = np.zeros((0, WORKER), np.int64)
_crews: dict[int, Crew] = {}


def crew(threads: int) -> Crew:
    """Of so many threads, the calling one included; for all models and calls."""
    found = _crews.get(threads)
    return _crews.setdefault(threads, Crew(threads - 1)) if found is None else found


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_crews.clear)    # a child has none of the threads
