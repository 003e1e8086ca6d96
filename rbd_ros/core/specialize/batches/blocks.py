"""Work of one thread on a batch: pieces, until all are taken, in blocks of lanes.

What threads share is at one address: numbers (int64) as in `lanes.many_states`.
"""
from __future__ import annotations

from ...compiled.assign import assign_rows
from ...compiled.kernel import COMPILED, kernel, routine
from ...model.block import layout
from ..llvm import GOOD, NOTHING, WIDTH

if COMPILED:
    from ...compiled.numba_inside import call_at
    from .atomic import carray, count_up, doubles_at, number_at

ARRAYS = 5    # inputs
LINE = 8      # numbers of a line of the caches
FAR = 16      # numbers between what one thread writes and another reads: lines are fetched in pairs
# addresses of `f`, `group`, and what makes rows of whole blocks and of the rest; blocks of a group; rows `f` fills;
# states, and those of a piece; the result (states, pitch), of which each row has so many numbers; 1 or 0 for each
# state, as the code was for it; scratch memory; the inputs (states, size) each; and, far from what all read, how many
# pieces, and parts of the scratch memory, are taken
(F, GROUP_OF, ROWS_OF, ROWS_OF_REST, BLOCKS, ROWS, STATES, STEP, OUT, PITCH, OUTPUTS, IS_GOOD, ROOM, INPUT, SIZE, _,
 TAKEN, PARTS, _, WORK) = layout(
    f=1, group_of=1, rows_of=1, rows_of_rest=1, blocks=1, rows=1, states=1, step=1, out=1, pitch=1, outputs=1,
    is_good=1, room=1, input=ARRAYS, size=ARRAYS, far=FAR, taken=1, parts=1, far_too=FAR)


@kernel
def scratch_size(blocks, inputs, rows, outputs):
    """Numbers that one thread needs: inputs and rows by lane of a group of blocks, and results of the rest; and as many
    to the next thread's: from block to block processors see strides and fetch what would come next, also past the last,
    which takes lines from who writes there.
    """
    return 2 * (blocks * (inputs + rows) + -(-outputs // LINE) * LINE) * WIDTH


@routine
def given_block(work, s, count, given):
    """These states (count) from s on, by lane."""
    k = 0
    for i in range(ARRAYS):
        size = number_at(work + 8 * (SIZE + i))
        x = carray(doubles_at(number_at(work + 8 * (INPUT + i)) + 8 * size * s), (count, size))
        for j in range(size):
            for lane in range(count):
                given[k, lane] = x[lane, j]
            k += 1


@routine
def blocks(work):
    """Compute pieces until all are taken; returns how many it took. It neither allocates nor raises."""
    group, states, step = number_at(work + 8 * BLOCKS), number_at(work + 8 * STATES), number_at(work + 8 * STEP)
    rows, outputs, pitch = number_at(work + 8 * ROWS), number_at(work + 8 * OUTPUTS), number_at(work + 8 * PITCH)
    inputs = 0
    for i in range(ARRAYS):
        inputs += number_at(work + 8 * (SIZE + i))
    room = number_at(work + 8 * ROOM) + 8 * scratch_size(group, inputs, rows, outputs) * count_up(work + 8 * PARTS)
    given = carray(doubles_at(room), (group, inputs, WIDTH))
    room += 8 * given.size
    found = carray(doubles_at(room), (group, rows, WIDTH))
    last = carray(doubles_at(room + 8 * found.size), (WIDTH, outputs))
    out = carray(doubles_at(number_at(work + 8 * OUT)), (states, pitch))
    good = carray(doubles_at(number_at(work + 8 * IS_GOOD)), states)
    given[:] = 0.0
    found[:, NOTHING] = 0.0
    pieces = 0
    while True:
        start = count_up(work + 8 * TAKEN) * step
        if start >= states:
            return pieces
        pieces += 1
        end = min(start + step, states)
        for first in range(start, end, group * WIDTH):
            whole = first + group * WIDTH <= end
            used = group if whole else -(-(end - first) // WIDTH)
            for b in range(used):
                s = first + b * WIDTH
                given_block(work, s, min(WIDTH, end - s), given[b])
            if whole:
                call_at(number_at(work + 8 * GROUP_OF), given.ctypes.data, found.ctypes.data)
            for b in range(used):
                s = first + b * WIDTH
                if not whole:
                    call_at(number_at(work + 8 * F), given[b].ctypes.data, found[b].ctypes.data)
                count = min(WIDTH, end - s)
                if count == WIDTH:
                    call_at(number_at(work + 8 * ROWS_OF), found[b].ctypes.data, out[s:].ctypes.data)
                else:
                    call_at(number_at(work + 8 * ROWS_OF_REST), found[b].ctypes.data, last.ctypes.data)
                    assign_rows(out[s:end], last[:count])
                for lane in range(count):
                    good[s + lane] = found[b, GOOD, lane]
