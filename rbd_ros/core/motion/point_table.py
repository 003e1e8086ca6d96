"""Points of a trajectory as one array: parsed from the words of a message, selected in model order.

Large trajectories are read here, by compiled code that holds no lock of the interpreter.

| array   | holds                                                                                                      |
|---------|------------------------------------------------------------------------------------------------------------|
| words   | int32 of a message; numbers: the same memory, or any numbers                                               |
| places  | (points, 8): for each of positions, velocities, accelerations, efforts, where its first number is and how  |
|         | many there are; `PLACES` of them                                                                           |
| times   | (points,) ns                                                                                               |
"""
from __future__ import annotations

import numpy as np

from ..compiled.entry import entry
from .cycle import picked

FIELDS = 4
PLACES = 2 * FIELDS
SMALLEST = FIELDS + 2    # words of a point without numbers
SECOND = 1_000_000_000


@entry("int64(int32[::1], int64, int64, int64[:, ::1], int64[::1])", nogil=True)
def find_points_entry(words, begin, end, places, times):
    """Find the points in words[begin:end]: per field a count, and so many numbers of two words at even places; then
    the time, s and ns. How many are whole: as many as there are rows, or the first one that is not.
    """
    at = begin
    for k in range(len(places)):
        for field in range(FIELDS):
            if at >= end:
                return k
            count = np.int64(words[at])
            at += 1
            if count != 0:
                at += at % 2
            if count < 0 or count > (end - at) // 2:
                return k
            places[k, 2 * field] = at // 2
            places[k, 2 * field + 1] = count
            at += 2 * count
        if at + 2 > end:
            return k
        times[k] = SECOND * np.int64(words[at]) + (np.int64(words[at + 1]) & 0xFFFFFFFF)
        at += 2
    return len(places)


@entry("int64(float64[::1], int64[:, ::1], int64, int64, int64[::1], float64[::1], float64[::1], float64[:, ::1])",
       nogil=True)
def pick_points_entry(numbers, places, field, size, indices, scale, offset, out):
    """`picked` of each point's numbers of a field, as many as `size`; a row stays as it is where there are none. How
    many are right: as many as there are points, or the first one with another size or a number that is not finite.
    """
    for k in range(len(places)):
        begin, count = places[k, 2 * field], places[k, 2 * field + 1]
        if count == 0 and field > 0:
            continue
        if count != size or not picked(numbers[begin:begin + count], indices, scale, offset, out[k]):
            return k
    return len(places)
