"""Decoding of serialized sensor_msgs/PointCloud2 in place.

The middleware's conversion makes an object of each field, and holds up all threads where a message names a million.

CDR, little-endian, at offsets from the beginning of the encapsulation:

    0  encapsulation (4)   4  stamp (8)   12  frame, height, width, fields   P  whether big-endian, point_step, row_step
    D  number of bytes, bytes, whether dense; fields: number, and of each name, offset, type, count
"""
from __future__ import annotations

import struct
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .joint_state_bytes import HEAD, NAMES, Malformed
from .trajectory_points import size_at, text_at

MOST_BYTES = 2**25    # of a message
MOST_FIELDS = 100
KIND = "sensor_msgs/PointCloud2"
TYPES = {7: "f4", 8: "f8"}


class Cloud(NamedTuple):
    """Finite points (N, 3) of a message, m, in the axes of `frame_id`."""

    frame_id: str
    points: NDArray[np.float64]


def read_cloud(data: bytes) -> Cloud:
    """Decode a message; raises `Malformed`."""
    try:
        return _read(data)
    except (ValueError, struct.error) as error:
        raise Malformed(data, KIND, error) from None


def _read(data: bytes) -> Cloud:
    if data[:2] != HEAD[:2]:
        raise ValueError("they are not CDR in little-endian order")
    frame, offset = text_at(data, NAMES)
    height, offset = size_at(data, offset)
    width, offset = size_at(data, offset)
    count, offset = size_at(data, offset)
    if count > MOST_FIELDS:
        raise ValueError(f"{count} fields, expected at most {MOST_FIELDS}")
    fields = {}
    for _ in range(count):
        name, offset = text_at(data, offset)
        begin, offset = size_at(data, offset)
        kind = data[offset:offset + 1]
        _, offset = size_at(data, offset + 1)
        fields[name] = begin, TYPES.get(int.from_bytes(kind, "little"), "")
    order = "<>"[data[offset:offset + 1] == b"\1"]
    point_step, offset = size_at(data, offset + 1)
    row_step, offset = size_at(data, offset)
    length, offset = size_at(data, offset)
    if height * width == 0:
        return Cloud(frame, np.empty((0, 3)))
    if missing := [axis for axis in "xyz" if not fields.get(axis, (0, ""))[1]]:
        raise ValueError(f"no field '{missing[0]}' of type FLOAT32 or FLOAT64")
    point = np.dtype({"names": ["x", "y", "z"], "formats": [order + fields[axis][1] for axis in "xyz"],
                      "offsets": [fields[axis][0] for axis in "xyz"], "itemsize": point_step})
    if row_step < width * point_step or min(length, len(data) - offset) < height * row_step:
        raise ValueError(f"{height} rows of {row_step} bytes, with {width} points of {point_step} bytes, are not in "
                         f"{length} bytes of data")
    grid = np.ndarray((height, width), point, data, offset, (row_step, point_step))
    with np.errstate(invalid="ignore"):    # signalling NaN
        points = np.stack([grid[axis].astype(np.float64).reshape(-1) for axis in "xyz"], axis=1)
    return Cloud(frame, points[np.isfinite(points).all(axis=1)])
