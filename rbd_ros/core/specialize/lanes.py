"""Calling a robot's own code: many states in blocks of lanes, spread over threads."""
from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from ..compile import COMPILED, entry
from .llvm import WIDTH
from .machine import Code

if COMPILED:
    from ..numba_inside import call_at

Array = NDArray[np.float64]
PIECE = 512    # states that a thread takes at least


@entry("void(int64, float64[:, ::1], float64[:, ::1], float64[:, ::1], float64[:, ::1], float64[:, ::1], int64, "
       "int64, int64, float64[:, ::1], boolean[::1])", nogil=True)
def blocks_entry(address, x0, x1, x2, x3, x4, rows, start, end, out, good):
    """States start … end − 1 in blocks; good[s]: whether the code was for that state. rows: of numbers the code fills,
    results first, whether it was for the state next.
    """
    sizes = (x0.shape[1], x1.shape[1], x2.shape[1], x3.shape[1], x4.shape[1])
    inputs = sizes[0] + sizes[1] + sizes[2] + sizes[3] + sizes[4]
    outputs = out.shape[1]
    given = np.zeros((inputs, WIDTH))
    found = np.zeros((rows, WIDTH))
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
            for j in range(outputs):
                out[s + lane, j] = found[j, lane]
            good[s + lane] = found[outputs, lane] == 1.0


_pools: dict[int, ThreadPoolExecutor] = {}


def many_states(code: Code, inputs: Sequence[Array], out: Array, threads: int) -> NDArray[np.bool_]:
    """Code for many states (N, …) each, to out (N, outputs); for which of them it was."""
    states = len(out)
    good = np.empty(states, dtype=np.bool_)
    given = [*inputs, *[np.empty((states, 0))] * (5 - len(inputs))]
    if len(given) > 5:
        given = [*given[:4], np.concatenate(given[4:], axis=1)]

    def part(start: int, end: int) -> None:
        blocks_entry.call(code.address, *given, code.rows, start, end, out, good)

    threads = min(threads, max(1, states // PIECE))
    step = max(WIDTH, -(-states // threads // WIDTH) * WIDTH)
    starts = range(step, states, step)
    waiting = []
    if starts:
        pool = _pools.setdefault(threads, ThreadPoolExecutor(threads - 1, thread_name_prefix="lanes"))
        waiting = [pool.submit(part, start, min(start + step, states)) for start in starts]
    part(0, min(step, states))    # the caller's thread is one of them
    for each in waiting:
        each.result()
    return good
