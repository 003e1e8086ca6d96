"""Calling a robot's own code: one state, or many in blocks of lanes, spread over threads."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..compile import COMPILED, entry, kernel, quick_entry
from .llvm import WIDTH

if COMPILED:
    from ..numba_inside import call_at

Array = NDArray[np.float64]
HEAD = 4        # numbers that tell address and sizes of the inputs
PIECE = 512    # states that a thread takes at least


@kernel
def copied(work, i, k, x):
    """Input number i to work[k:]; whether it has the right size and finite numbers."""
    if x.shape[0] != int(work[1 + i]):
        return False
    finite = True
    for j in range(x.shape[0]):
        work[k + j] = x[j]
        finite &= x[j] - x[j] == 0.0
    return finite


@kernel
def called(work, k, out):
    """Run the code on the inputs in work[HEAD:k]; whether it is for them, and the outputs are finite."""
    count = out.shape[0]
    call_at(work[:1].view(np.int64)[0], work[HEAD:].ctypes.data, work[k:].ctypes.data)
    good = work[k + count] == 1.0
    for i in range(count):
        out[i] = work[k + i]
        good &= out[i] - out[i] == 0.0
    return good


@quick_entry("boolean(float64[::1], float64[::1], float64[::1], float64[::1], float64[::1])")
def one_entry(work, q, v, a, out):
    """One state. work: address of the code, sizes of the inputs, then room for inputs and outputs. False where the code
    is not for it: other sizes, numbers that are not finite, guards that do not hold.
    """
    k = HEAD + q.shape[0]
    n = v.shape[0]
    return (copied(work, 0, HEAD, q) and copied(work, 1, k, v) and copied(work, 2, k + n, a)
            and called(work, k + 2 * n, out))


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


_pools: dict[int, ThreadPoolExecutor] = {}


def one_state(address: int, sizes: Sequence[int], count: int) -> Callable[..., Array | None]:
    """What calls code for one state with inputs of these sizes: an array of `count` outputs, None where the code is not
    for the state. `TypeError` or the like for what are no arrays of one state.
    """
    work = np.zeros(HEAD + sum(sizes) + count + 1)
    work[:1].view(np.int64)[0] = address
    work[1:1 + len(sizes)] = sizes
    one_entry.compile()
    one, empty = one_entry.call, np.empty

    def call(q: Any, v: Any, a: Any) -> Array | None:
        out = empty(count)
        return out if one(work, q, v, a, out) else None

    return call


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
