"""Calls of specialized code for many states, in blocks of SIMD lanes, which threads share."""
from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue

import numpy as np
from numpy.typing import NDArray

from ..compiled.assign import assign_rows
from ..compiled.callee import call_at
from ..compiled.entry import quick_entry
from ..compiled.kernel import kernel, sweep
from .llvm import GOOD, NOTHING, WIDTH
from .machine import Code

Array = NDArray[np.float64]
ARRAYS = 5             # inputs
LINE = 8               # numbers of a line of the caches
LARGE = 1_000_000      # numbers of a result that does not stay in the caches
LEAST = 4_000_000      # smallest number of operations per thread, about 0.3 ms: starting and joining one takes 0.1 ms
RANGES = 4             # ranges of states per thread: a thread that starts late takes fewer


@kernel
def put_block(x0, x1, x2, x3, x4, begin, end, lanes):
    """Copy the inputs of states begin … end − 1, at most `WIDTH`, to lanes (row, lane)."""
    row = 0
    for x in (x0, x1, x2, x3, x4):
        block = x[begin:end]
        for column in range(block.shape[1]):
            for lane in range(end - begin):
                lanes[row, lane] = block[lane, column]
            row += 1


@sweep
def compute_range(code, x0, x1, x2, x3, x4, out, good, scratch, begin, end):
    """Compute states begin … end − 1, begin a multiple of a group.

    code: addresses of `f`, `group`, and of the functions for rows of whole and of partial blocks; blocks of a group;
    rows that `f` fills; numbers of a result. x0 … x4: inputs (N, …) each. out (N, pitch): results. good: 1 for each
    state in the code's domain, else 0. scratch: `scratch_size` numbers.
    """
    f, group, rows_of, rows_of_rest, blocks, rows, outputs = code
    inputs = x0.shape[1] + x1.shape[1] + x2.shape[1] + x3.shape[1] + x4.shape[1]
    inputs_at = -(scratch.ctypes.data // 8) % LINE
    results_at = inputs_at + blocks * inputs * WIDTH
    partial_at = results_at + blocks * rows * WIDTH
    lanes = scratch[inputs_at:results_at].reshape((blocks, inputs, WIDTH))
    results = scratch[results_at:partial_at].reshape((blocks, rows, WIDTH))
    partial = scratch[partial_at:partial_at + WIDTH * outputs].reshape((WIDTH, outputs))
    lanes[:] = 0.0
    results[:, NOTHING] = 0.0
    for first in range(begin, end, blocks * WIDTH):
        whole = first + blocks * WIDTH <= end
        used = blocks if whole else -(-(end - first) // WIDTH)
        for b in range(used):
            s = first + b * WIDTH
            put_block(x0, x1, x2, x3, x4, s, min(s + WIDTH, end), lanes[b])
        if whole:
            call_at(group, lanes.ctypes.data, results.ctypes.data)
        for b in range(used):
            s = first + b * WIDTH
            count = min(WIDTH, end - s)
            if not whole:
                call_at(f, lanes[b].ctypes.data, results[b].ctypes.data)
            if count == WIDTH:
                call_at(rows_of, results[b].ctypes.data, out[s:].ctypes.data)
            else:
                call_at(rows_of_rest, results[b].ctypes.data, partial.ctypes.data)
                assign_rows(out[s:end], partial[:count])
            for lane in range(count):
                good[s + lane] = results[b, GOOD, lane]


@quick_entry("void(int64[::1], float64[:, ::1], float64[:, ::1], float64[:, ::1], float64[:, ::1], float64[:, ::1], "
             "float64[:, ::1], float64[::1], float64[::1], int64, int64)", nogil=True)
def range_entry(code, x0, x1, x2, x3, x4, out, good, scratch, begin, end):
    """`compute_range`."""
    compute_range(code, x0, x1, x2, x3, x4, out, good, scratch, begin, end)


def scratch_size(code: Code, inputs: int, outputs: int) -> int:
    """Size of one thread's scratch memory: inputs and rows of a group of blocks, by lane, and results of the last
    block; doubled, so that hardware prefetching past the last block takes no cache lines from the next thread.
    """
    return 2 * (code.blocks * (inputs + code.rows) + -(-outputs // LINE) * LINE) * WIDTH + LINE


def many_states(code: Code, inputs: Sequence[Array], sizes: Sequence[int], threads: int
                ) -> tuple[Array, NDArray[np.bool_]]:
    """Code for many states (N, …) each: results (N, sum of sizes), and the states in the code's domain.

    Rows of large results with several arrays are aligned with cache lines. Threads take ranges of states until none is
    left; a thread that starts too late takes none, and is not waited for.
    """
    states, outputs = len(inputs[0]), sum(sizes)
    if states * outputs < LARGE or (len(sizes) == 1 and outputs % LINE):
        out, whole_rows = np.empty((states, outputs)), code.rows_of
    else:
        pitch = -(-outputs // LINE) * LINE
        all_rows = np.empty(states * pitch + LINE)
        first = -(all_rows.ctypes.data // 8) % LINE
        out, whole_rows = all_rows[first:first + states * pitch].reshape(states, pitch), code.rows_past
    good = np.zeros(states)
    padded = [*inputs, *[np.empty((states, 0))] * (ARRAYS - len(inputs))]
    if len(padded) > ARRAYS:
        padded = [*padded[:ARRAYS - 1], np.concatenate(padded[ARRAYS - 1:], axis=1)]
    numbers = code.numbers(whole_rows, outputs)
    size = scratch_size(code, sum(x.shape[1] for x in padded), outputs)
    used = min(threads, states * code.operations // LEAST)
    if used < 2:
        range_entry.call(numbers, *padded, out, good, np.empty(size), 0, states)
        return out[:, :outputs], good == 1.0

    group = code.blocks * WIDTH
    step = -(-states // (RANGES * used) // group) * group
    begins = range(0, states, step)
    remaining, done = iter(begins), SimpleQueue[None]()

    def compute(scratch: Array) -> None:
        """Compute ranges until none is left. States of a failed range count as outside the code's domain."""
        for begin in remaining:
            try:
                range_entry.call(numbers, *padded, out, good, scratch, begin, min(begin + step, states))
            finally:
                done.put(None)

    own_scratch, *other_scratches = np.empty((used, size))
    with contextlib.suppress(RuntimeError):    # no new threads: at the end of a process, or beyond the system's limit
        for scratch in other_scratches:
            pool(threads).submit(compute, scratch)
    compute(own_scratch)
    for _ in begins:
        done.get()
    return out[:, :outputs], good == 1.0


_pools: dict[int, ThreadPoolExecutor] = {}


def pool(threads: int) -> ThreadPoolExecutor:
    """Threads in addition to the calling one; shared by all models and calls."""
    if threads not in _pools:
        range_entry.compile()    # in the calling thread
        _pools.setdefault(threads, ThreadPoolExecutor(threads - 1, thread_name_prefix="lanes"))
    return _pools[threads]


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pools.clear)    # threads do not exist in a child
