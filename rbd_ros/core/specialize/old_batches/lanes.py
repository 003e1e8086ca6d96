"""Calls of specialized code: many states in blocks of lanes, spread over threads."""
from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from .blocks import ARRAYS, LINE, OUT, OUTPUTS, PITCH, SIZE, WORK, scratch_size
from .crew import NOBODY, crew, share_entry
from ..llvm import WIDTH
from ..machine import Code

Array = NDArray[np.float64]
PIECES = 8             # of a batch, per thread: where two meet they take lines of the caches from each other
PIECE = 100_000        # operations of a piece at least, some 3 µs
LEAST = 500_000        # operations of a batch that threads share who look out for it
WAKING = 2_000_000     # operations of a batch for which threads are woken, which takes 50 µs
LARGE = 1_000_000      # numbers of a result that does not stay in the caches


def many_states(code: Code, inputs: Sequence[Array], sizes: Sequence[int], threads: int
                ) -> tuple[Array, NDArray[np.bool_]]:
    """Code for many states (N, …) each: results (N, sum of sizes), and the states in the code's domain.

    Large ones of several arrays lie in rows that begin lines of the caches.
    """
    states, outputs = len(inputs[0]), sum(sizes)
    if states * outputs < LARGE or (len(sizes) == 1 and outputs % LINE):
        out, whole_rows = np.empty((states, outputs)), code.rows_of
    else:
        pitch = -(-outputs // LINE) * LINE
        all_rows = np.empty(states * pitch + LINE)
        first = -(all_rows.ctypes.data // 8) % LINE
        out, whole_rows = all_rows[first:first + states * pitch].reshape(states, pitch), code.rows_past
    good = np.empty(states)

    operations = states * code.operations
    pieces, parts, workers = 1, 1, NOBODY
    if threads > 1 and operations >= LEAST:
        pieces, parts = min(PIECES * threads, operations // PIECE), threads
        others = crew(threads)
        workers = others.workers
        if operations >= WAKING:
            others.wake()
    given = [*inputs, *[np.empty((states, 0))] * (ARRAYS - len(inputs))]
    if len(given) > ARRAYS:
        given = [*given[:ARRAYS - 1], np.concatenate(given[ARRAYS - 1:], axis=1)]
    columns = [x.shape[1] for x in given]
    group = code.blocks * WIDTH
    step = max(1, -(-states // pieces // group)) * group
    room = np.empty(parts * scratch_size.py_func(code.blocks, sum(columns), code.rows, outputs) + LINE)
    work = np.zeros(WORK, np.int64)
    work[:OUT] = code.f, code.group, whole_rows, code.rows_of, code.blocks, code.rows, states, step
    work[PITCH], work[OUTPUTS], work[SIZE:SIZE + ARRAYS] = out.shape[1], outputs, columns
    share_entry.call(work, workers, *given, out, good, room)
    return out[:, :outputs], good == 1.0
