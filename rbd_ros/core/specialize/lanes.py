"""Calling a robot's own code: many states in blocks of lanes, spread over threads."""
from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from ..compile import COMPILED, entry, kernel
from .llvm import GOOD, NOTHING, WIDTH
from .machine import Code

if COMPILED:
    from ..numba_inside import call_at

Array = NDArray[np.float64]
PIECES = 16            # of a batch, per thread: the last one that runs alone is short
LEAST = 2_000_000      # operations of a batch that threads share: some 80 µs, of which waking a thread takes 50
PIECE = 200_000        # operations of a piece at least
LARGE = 1_000_000      # numbers of a result that does not stay in the caches
LINE = 8               # numbers of a line of the caches


@kernel
def from_line(x):
    """How many numbers come before the first that begins a line of the caches."""
    return -(x.ctypes.data // 8) % LINE


@entry("int64(int64[::1], int64[::1], float64[:, ::1], float64[:, ::1], float64[:, ::1], float64[:, ::1], "
       "float64[:, ::1], int64, int64, int64, float64[:, ::1], boolean[::1])", nogil=True)
def blocks_entry(code, taken, x0, x1, x2, x3, x4, step, rows, outputs, out, good):
    """Takes pieces of `step` states until all are taken, by this thread and others; returns how many it took.

    code: where its functions begin: `f`, `rows_of`, which of both serves whole blocks, and `take`; taken (1): how many
    pieces are. rows: of numbers that `f` fills; good[s]: whether the code was for that state.
    """
    sizes = (x0.shape[1], x1.shape[1], x2.shape[1], x3.shape[1], x4.shape[1])
    given = np.zeros((sizes[0] + sizes[1] + sizes[2] + sizes[3] + sizes[4], WIDTH))
    room = np.empty(rows * WIDTH + LINE)
    at = from_line(room)
    found = room[at:at + rows * WIDTH].reshape(rows, WIDTH)
    found[NOTHING] = 0.0
    last = np.empty((WIDTH, outputs))
    ticket = np.zeros(1, np.int64)
    states = len(good)
    pieces = 0
    while True:
        call_at(code[3], taken.ctypes.data, ticket.ctypes.data)
        start = ticket[0] * step
        if start >= states:
            return pieces
        pieces += 1
        end = min(start + step, states)
        for s in range(start, end, WIDTH):
            count = min(WIDTH, end - s)
            k = 0
            for i in range(5):
                x = (x0, x1, x2, x3, x4)[i]
                for j in range(sizes[i]):
                    for lane in range(count):
                        given[k, lane] = x[s + lane, j]
                    k += 1
            call_at(code[0], given.ctypes.data, found.ctypes.data)
            if count == WIDTH:
                call_at(code[2], found.ctypes.data, out[s:].ctypes.data)
            else:
                call_at(code[1], found.ctypes.data, last.ctypes.data)
                out[s:end, :outputs] = last[:count]
            for lane in range(count):
                good[s + lane] = found[GOOD, lane] == 1.0


_pools: dict[int, ThreadPoolExecutor] = {}


def many_states(code: Code, inputs: Sequence[Array], sizes: Sequence[int], threads: int
                ) -> tuple[Array, NDArray[np.bool_]]:
    """Code for many states (N, …) each: results (N, sum of sizes), and for which states the code was.

    Large ones of several arrays lie in rows that begin lines of the caches.
    """
    states, outputs = len(inputs[0]), sum(sizes)
    good = np.empty(states, dtype=np.bool_)
    given = [*inputs, *[np.empty((states, 0))] * (5 - len(inputs))]
    if len(given) > 5:
        given = [*given[:4], np.concatenate(given[4:], axis=1)]
    if states * outputs < LARGE or (len(sizes) == 1 and outputs % LINE):
        out, whole_rows = np.empty((states, outputs)), code.rows_of
    else:
        pitch = -(-outputs // LINE) * LINE
        room = np.empty(states * pitch + LINE)
        at = -(room.ctypes.data // 8) % LINE
        out, whole_rows = room[at:at + states * pitch].reshape(states, pitch), code.rows_past

    pieces = 1
    if threads > 1 and states * code.operations >= LEAST:
        pieces = min(PIECES * threads, states * code.operations // PIECE)
    step = max(WIDTH, -(-states // max(1, pieces) // WIDTH) * WIDTH)
    functions = np.array([code.f, code.rows_of, whole_rows, code.take])
    taken = np.zeros(1, dtype=np.int64)

    def work() -> int:
        return int(blocks_entry.call(functions, taken, *given, step, code.rows, outputs, out, good))

    others = []
    if pieces > 1:
        pool = _pools.get(threads)
        if pool is None:
            pool = _pools.setdefault(threads, ThreadPoolExecutor(threads - 1, thread_name_prefix="lanes"))
        others = [pool.submit(work) for _ in range(threads - 1)]
    if work() * step < states:    # else the others are too late, and find nothing to do
        for each in others:
            each.result()
    return out[:, :outputs], good
