"""Calling a robot's own code: many states in blocks of lanes, spread over threads."""
from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from ..compile import COMPILED, entry
from .llvm import WIDTH

if COMPILED:
    from ..numba_inside import call_at

Array = NDArray[np.float64]
PIECE = 512    # states that a thread takes at least


@entry("void(int64, float64[:, ::1], float64[:, ::1], float64[:, ::1], float64[:, ::1], float64[:, ::1], int64, "
       "int64, float64[:, ::1], boolean[::1])", nogil=True)
def blocks_entry(address, x0, x1, x2, x3, x4, start, end, out, good):
    """States start … end − 1 in blocks; good[s]: whether the code was for that state."""
    sizes = (x0.shape[1], x1.shape[1], x2.shape[1], x3.shape[1], x4.shape[1])
    inputs = sizes[0] + sizes[1] + sizes[2] + sizes[3] + sizes[4]
    outputs = out.shape[1]
    given = np.zeros((inputs, WIDTH))
    found = np.empty((outputs + 1, WIDTH))
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


_pools: dict[int, ThreadPoolExecutor] = {}


def many_states(address: int, inputs: Sequence[Array], out: Array, threads: int) -> NDArray[np.bool_]:
    """Code for many states (N, …) each, to out (N, outputs); for which of them it was."""
    states = len(out)
    good = np.empty(states, dtype=np.bool_)
    given = [*inputs, *[np.empty((states, 0))] * (5 - len(inputs))]
    threads = min(threads, max(1, states // PIECE))
    if threads < 2:
        blocks_entry.call(address, *given, 0, states, out, good)
        return good
    step = -(-states // threads // WIDTH) * WIDTH
    pool = _pools.setdefault(threads, ThreadPoolExecutor(threads, thread_name_prefix="lanes"))
    list(pool.map(lambda start: blocks_entry.call(address, *given, start, min(start + step, states), out, good),
                  range(0, states, step)))
    return good
