"""Trajectory points as received, and decoding of serialized trajectory_msgs/JointTrajectory.

CDR, little-endian, at offsets from the beginning of the encapsulation:

    0  encapsulation (4)   4  stamp (8)   12  frame, names   P  number of points (4), points: see `find_points_entry`
"""
from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...core.model.robot_model import RobotModel
from ...core.motion.point_table import FIELDS, PLACES, SMALLEST, find_points_entry
from ..parameters import Parameter
from .joint_map import as_array
from .joint_state_bytes import HEAD, NAMES, Malformed, stamp_of
from .rejections import Rejected, check_size

Array = NDArray[np.float64]
KIND = "trajectory_msgs/JointTrajectory"
MOST_POINTS = Parameter("input_limits.points", "number", 10_000.0, "Number of points above which a trajectory is "
                        "rejected unread.", lower=1.0, upper=1e7, read_only=True)
_SIZE = struct.Struct("<I")


class Point(NamedTuple):
    """A trajectory point as received: time from start (s) and values in the order of the message's names."""

    time: float
    position: ArrayLike
    velocity: ArrayLike = ()
    acceleration: ArrayLike = ()


@dataclass(frozen=True, eq=False)
class PointTable:
    """All points of a trajectory: times from its start (N,), s, and numbers in the layout of `core.motion.point_table`.
    """

    times: Array
    numbers: Array
    places: NDArray[np.int64]

    @staticmethod
    def of(points: PointTable | Sequence[Point]) -> PointTable:
        """Convert points to a table."""
        if isinstance(points, PointTable):
            return points
        rows = [[as_array(field).reshape(-1) for field in point[1:]] for point in points]
        places = np.zeros((len(rows), PLACES), np.int64)
        places[:, 1:2 * FIELDS - 1:2] = np.array([[len(each) for each in row] for row in rows]).reshape(-1, FIELDS - 1)
        counts = places[:, 1::2]
        places[:, ::2] = (np.cumsum(counts) - counts.reshape(-1)).reshape(counts.shape)
        return PointTable(np.array([point.time for point in points], np.float64),
                          np.concatenate([np.zeros(0), *(each for row in rows for each in row)]), places)

    def __len__(self) -> int:
        return len(self.times)

    def __getitem__(self, index: int) -> Point:
        begins, counts = self.places[index].reshape(FIELDS, 2)[:FIELDS - 1].T
        return Point(float(self.times[index]), *(self.numbers[begin:begin + count]
                                                 for begin, count in zip(begins, counts, strict=True)))


class TrajectoryMessage(NamedTuple):
    """Contents of a trajectory_msgs/JointTrajectory, without its efforts."""

    stamp_ns: int
    names: list[str]
    points: PointTable


class TrajectoryReader:
    """Decodes the messages of one topic: at most `most_points` points after at most `most_bytes` bytes."""

    def __init__(self, topic: str, most_points: int, most_bytes: int, model: RobotModel) -> None:
        self._topic, self._most_points, self._most_bytes = topic, most_points, most_bytes
        joints = model.nv + len(model.mimics)
        self.most = most_bytes + most_points * (8 * FIELDS * (joints + 1) + 8)    # largest size of a message, bytes

    def read(self, data: bytes) -> TrajectoryMessage:
        """Decode a message; raises `Rejected`."""
        try:
            return self._read(data)
        except Rejected:
            raise
        except (ValueError, struct.error) as error:
            raise Malformed(data, KIND, error) from None

    def _read(self, data: bytes) -> TrajectoryMessage:
        if data[:2] != HEAD[:2]:
            raise ValueError("they are not CDR in little-endian order")
        sec, nanosec = stamp_of(data)
        _, offset = text_at(data, NAMES)
        count, offset = size_at(data, offset)
        names = []
        for _ in range(count):
            name, offset = text_at(data, offset)
            names.append(name)
            check_size(self._topic, offset, self._most_bytes, what="bytes before its points")
        count, offset = size_at(data, offset)
        check_size(self._topic, count, self._most_points, "input_limits.points", "points")
        # starting four bytes before the message, so that its numbers are aligned
        aligned: Array = np.zeros(len(data) // 8 + 1)
        aligned.view(np.uint8)[4:4 + len(data)] = np.frombuffer(data, np.uint8)
        begin, end = (offset + 4) // 4, (len(data) + 4) // 4
        if count * SMALLEST > end - begin:
            raise ValueError(f"there are no {count} points")
        places, times = np.zeros((count, PLACES), np.int64), np.zeros(count, np.int64)
        decoded = find_points_entry.call(aligned.view(np.int32), begin, end, places, times)
        if decoded < count:
            raise ValueError(f"point {decoded} is not whole")
        points = PointTable(np.asarray(times * 1e-9, np.float64), aligned, places)
        return TrajectoryMessage(sec * 1_000_000_000 + nanosec, names, points)


def size_at(data: bytes, offset: int) -> tuple[int, int]:
    """The count at the next multiple of four, and the offset of its end."""
    offset += -offset % 4
    return _SIZE.unpack_from(data, offset)[0], offset + 4


def text_at(data: bytes, offset: int) -> tuple[str, int]:
    """The string at an offset, decoded as by the middleware, and the offset of its end."""
    count, offset = size_at(data, offset)
    if offset + count > len(data):
        raise ValueError("a text is not whole")
    return data[offset:offset + count].split(b"\0", 1)[0].decode(errors="replace"), offset + count
