"""Calling a robot's own code: one state, or many in blocks of lanes, spread over threads."""
from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..compile import COMPILED, entry, quick_entry
from .llvm import WIDTH

if COMPILED:
    from ..numba_inside import call_at

Array = NDArray[np.float64]
LARGEST = 8    # inputs of a function; `HEAD` numbers tell address and sizes
HEAD = LARGEST + 2
PIECE = 512    # states that a thread takes at least


@quick_entry("boolean(float64[::1], float64[::1], float64[::1], float64[::1], float64[::1], float64[::1], "
             "float64[::1])")
def one_entry(work, x0, x1, x2, x3, x4, out):
    """One state. work: address, inputs' sizes, outputs' size, then room for both. False where it is not for this code:
    other sizes, numbers that are not finite, guards that do not hold.
    """
    total = 0
    k = HEAD
    for i in range(5):
        x = (x0, x1, x2, x3, x4)[i]
        if x.shape[0] != int(work[1 + i]):
            return False
        for j in range(x.shape[0]):
            work[k + j] = x[j]
            total += x[j] - x[j] != 0.0
        k += x.shape[0]
    if total > 0:
        return False
    count = out.shape[0]
    call_at(work[:1].view(np.int64)[0], work[HEAD:].ctypes.data, work[k:].ctypes.data)
    finite = work[k + count] == 1.0
    for i in range(count):
        out[i] = work[k + i]
        finite &= out[i] - out[i] == 0.0
    return finite


@entry("int64(int64, float64[:, ::1], float64[:, ::1], float64[:, ::1], float64[:, ::1], float64[:, ::1], int64, "
       "int64, float64[:, ::1], boolean[::1])", nogil=True)
def blocks_entry(address, x0, x1, x2, x3, x4, start, end, out, good):
    """States start … end − 1 in blocks; good[s]: whether the code was for that state. How many it was not for."""
    sizes = (x0.shape[1], x1.shape[1], x2.shape[1], x3.shape[1], x4.shape[1])
    inputs = sizes[0] + sizes[1] + sizes[2] + sizes[3] + sizes[4]
    outputs = out.shape[1]
    given = np.zeros((inputs, WIDTH))
    found = np.empty((outputs + 1, WIDTH))
    bad = 0
    for s in range(start, end, WIDTH):
        count = min(WIDTH, end - s)
        k = 0
        for i in range(5):
            x = (x0, x1, x2, x3, x4)[i]
            for j in range(sizes[i]):
                for lane in range(count):
                    given[k, lane] = x[s + lane, j]
                k += 1
        call_at(address, given.ctypes.data, found.ctypes.data)
        for lane in range(count):
            total = 0.0
            for j in range(inputs):
                total += given[j, lane] - given[j, lane]
            for j in range(outputs):
                out[s + lane, j] = found[j, lane]
                total += found[j, lane] - found[j, lane]
            good[s + lane] = found[outputs, lane] == 1.0 and total == 0.0
            bad += not good[s + lane]
    return bad


_NONE = np.zeros(0)
_pools: dict[int, ThreadPoolExecutor] = {}


class Lanes:
    """The code of one function. single, wide: addresses; sizes: of the inputs; count: of the outputs."""

    def __init__(self, single: int, wide: int, sizes: tuple[int, ...], count: int) -> None:
        self._wide, self._sizes, self._count = wide, sizes, count
        self._rest = (_NONE,) * (5 - len(sizes))
        self._work = np.zeros(HEAD + sum(sizes) + count + 1)
        self._work[:1].view(np.int64)[0] = single
        self._work[1:1 + len(sizes)] = sizes

    def one(self, inputs: tuple[Any, ...], out: Array) -> bool:
        """One state; whether the code was for it. `TypeError` for what are no arrays of one state."""
        found: bool = one_entry.call(self._work, *inputs, *self._rest, out)
        return found

    def many(self, inputs: tuple[Array, ...], out: Array, threads: int) -> NDArray[np.bool_]:
        """States (N, …) each; for which of them the code was."""
        states = len(out)
        good = np.empty(states, dtype=np.bool_)
        given = [*inputs, *[np.empty((states, 0))] * (5 - len(inputs))]
        threads = min(threads, max(1, states // PIECE))
        if threads < 2:
            blocks_entry.call(self._wide, *given, 0, states, out, good)
            return good
        step = -(-states // threads // WIDTH) * WIDTH
        pool = _pools.setdefault(threads, ThreadPoolExecutor(threads, thread_name_prefix="lanes"))
        list(pool.map(lambda start: blocks_entry.call(self._wide, *given, start, min(start + step, states), out, good),
                      range(0, states, step)))
        return good


def cores() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
