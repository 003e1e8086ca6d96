"""Points of a trajectory as one array: parsed from the words of a message, selected in model order.

Compiled code for large trajectories, which runs without the interpreter's lock.

| array   | holds                                                                                                      |
|---------|------------------------------------------------------------------------------------------------------------|
| words   | int32 of a message; numbers: the same memory, or any numbers                                               |
| places  | (points, 8): for each of positions, velocities, accelerations, efforts, index of its first number and      |
|         | count; `PLACES` columns                                                                                    |
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
    """Find the points in words[begin:end]: per field a count and as many numbers of two words, aligned to even indices;
    then the time, s and ns. Returns the number of complete points, i.e. the index of the first incomplete one.
    """
    index = begin
    for k in range(len(places)):
        for field in range(FIELDS):
            if index >= end:
                return k
            count = np.int64(words[index])
            index += 1
            if count != 0:
                index += index % 2
            if count < 0 or count > (end - index) // 2:
                return k
            places[k, 2 * field] = index // 2
            places[k, 2 * field + 1] = count
            index += 2 * count
        if index + 2 > end:
            return k
        times[k] = SECOND * np.int64(words[index]) + (np.int64(words[index + 1]) & 0xFFFFFFFF)
        index += 2
    return len(places)


@entry("int64(float64[::1], int64[:, ::1], int64, int64, int64[::1], float64[::1], float64[::1], float64[:, ::1])",
       nogil=True)
def pick_points_entry(numbers, places, field, size, indices, scale, offset, out):
    """`picked` for each point's `size` numbers of a field; rows without numbers stay unchanged. Returns the number of
    valid points, i.e. the index of the first one with another size or a non-finite number.
    """
    for k in range(len(places)):
        begin, count = places[k, 2 * field], places[k, 2 * field + 1]
        if count == 0 and field > 0:
            continue
        if count != size or not picked(numbers[begin:begin + count], indices, scale, offset, out[k]):
            return k
    return len(places)
