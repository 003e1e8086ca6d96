"""Joint states as bytes, read in place.

A sensor_msgs/JointState in CDR, little-endian, at offsets from the beginning of the encapsulation:

    0  encapsulation (4)   4  stamp (8)   12  frame, names   P  positions   V  velocities   E  efforts

All but the stamp and the numbers is the same in every message of a driver. The first one shows the layout, by way of
the middleware's own conversion; a later one of the same length whose other bytes are the same is read at these offsets.
Bytes that only align others are left out, as middlewares write whatever lay in their memory. Any other message goes by
way of the conversion, and shows its layout in turn.
"""
from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .rejections import Rejected

Array = NDArray[np.float64]
Words = NDArray[np.int64]

HEAD = b"\x00\x01\x00\x00"    # encapsulation: CDR, little-endian
NAMES = 12                    # where the part begins that does not change
LAYOUTS = 8                   # of drivers on one topic that are kept
LOOK = 1.0                    # s between two looks at messages without any joint of the robot
_EMPTY = np.zeros(0)


class Fields(NamedTuple):
    """What a joint state holds: stamp (s, ns), names, and numbers by name."""

    sec: int
    nanosec: int
    names: Sequence[str]
    position: Any
    velocity: Any
    effort: Any

    @property
    def stamp_ns(self) -> int:
        return self.sec * 1_000_000_000 + self.nanosec


class Malformed(Rejected):
    """Bytes that are not a message of the expected type."""

    def __init__(self, data: bytes, kind: str, error: Exception) -> None:
        super().__init__("malformed", f"{len(data)} bytes are not a {kind}: {error}")


class Layout(NamedTuple):
    """Layout of the messages of a driver."""

    length: int
    numbers: int                # offset of the first of them
    mask: int                   # of NAMES … numbers: what does not only align others
    same: int                   # what that is
    sizes: tuple[tuple[int, bytes], ...]    # offset and bytes of the sizes of velocities and efforts
    width: int                  # numbers and, between them, sizes, of 8 bytes each
    end: int                    # behind them
    names: Sequence[str]
    parts: tuple[slice, slice, slice]       # of positions, velocities, efforts

    def read(self, data: bytes) -> Fields | None:
        """What `data` of this length hold; None if they have another layout."""
        if (int.from_bytes(data[NAMES:self.numbers], "little") & self.mask != self.same or data[:4] != HEAD
                or any(data[at:at + 4] != size for at, size in self.sizes)):
            return None
        numbers = np.frombuffer(bytearray(data[self.numbers:self.end])) if self.width else _EMPTY    # aligned
        position, velocity, effort = self.parts
        sec, nanosec = _STAMP.unpack_from(data, 4)
        return Fields(sec, nanosec, self.names, numbers[position], numbers[velocity], numbers[effort])


    def words(self, data: bytes) -> tuple[Words, Words]:
        """The message in words of 8 bytes from 4 before its encapsulation on, and which bits of them never change."""
        mask = bytearray(len(data))
        mask[:len(HEAD)] = b"\xff" * len(HEAD)
        mask[NAMES:self.numbers] = self.mask.to_bytes(self.numbers - NAMES, "little")
        for at, size in self.sizes:
            mask[at:at + len(size)] = b"\xff" * len(size)
        return as_words(data), as_words(mask)

    @property
    def complete(self) -> bool:
        """Whether there are a position and a velocity for each name, and efforts for all or none."""
        position, velocity, effort = (part.stop - part.start for part in self.parts)
        return position == velocity == len(self.names) > 0 and effort in (0, len(self.names))

    def places(self) -> tuple[int, int, int]:
        """In which words positions, velocities and efforts begin; 0 for none."""
        first = (self.numbers + 4) // 8
        position, velocity, effort = (first + part.start if part.stop > part.start else 0 for part in self.parts)
        return position, velocity, effort


def as_words(data: bytes | bytearray) -> Words:
    """int64 of a message from 4 bytes before it on, so that its numbers are aligned."""
    return np.frombuffer(bytes(4) + bytes(data) + bytes(-(len(data) + 4) % 8), np.int64).copy()


_STAMP = struct.Struct("<iI")
_SIZE = struct.Struct("<I")


def stamp_of(data: bytes) -> tuple[int, int]:
    """s and ns of a message with a header that is read in place."""
    sec, nanosec = _STAMP.unpack_from(data, 4)
    return sec, nanosec


class JointStateReader:
    """Reads the messages of one subscription. convert: the middleware's way from bytes to a message; it may raise
    anything for malformed bytes. joints: of the robot, () if any message may be of it.
    """

    def __init__(self, convert: Callable[[bytes], Any], joints: Sequence[str] = ()) -> None:
        self._convert = convert
        self._joints = [name.encode() for name in joints]
        self._looked = -math.inf
        self._layouts: list[Layout] = []
        self.learnt = 0    # messages that went by way of the conversion

    def is_foreign(self, now: float, data: bytes) -> bool:
        """Whether a message that has none of the joints need not be read: one was, less than `LOOK` s ago."""
        if not self._joints or any(name in data for name in self._joints):
            return False
        if now - self._looked < LOOK:
            return True
        self._looked = now
        return False

    def read(self, data: bytes) -> Fields:
        """What a message holds; raises `Malformed`."""
        length = len(data)
        for layout in self._layouts:
            if layout.length == length and (fields := layout.read(data)) is not None:
                return fields
        return self._learn(data)

    def layout(self, data: bytes) -> Layout | None:
        """That of a message which is read in place."""
        return next((layout for layout in self._layouts if layout.length == len(data)
                     and layout.read(data) is not None), None)

    def _learn(self, data: bytes) -> Fields:
        self.learnt += 1
        try:
            message = self._convert(data)
        except Exception as error:
            raise Malformed(data, "sensor_msgs/JointState", error) from None
        stamp = message.header.stamp
        fields = Fields(stamp.sec, stamp.nanosec, message.name, message.position, message.velocity, message.effort)
        layout = _layout(data)
        if layout is not None and _equal(layout.read(data), fields):
            self._layouts = [layout, *self._layouts[:LAYOUTS - 1]]
        return fields


def _layout(data: bytes) -> Layout | None:
    """Where things are in a message; None where it is not written as the module's docstring says."""
    mask = bytearray(b"\xff" * len(data))
    at = NAMES

    def aligned(size: int) -> int:
        nonlocal at
        rest = -(at - 4) % size
        mask[at:at + rest] = bytes(rest)
        at += rest
        return at

    def size() -> int:
        nonlocal at
        number: int = _SIZE.unpack_from(data, aligned(4))[0]
        at += 4
        if number > len(data):
            raise ValueError
        return number

    def text() -> str:
        nonlocal at
        count = size()
        at += count
        raw = data[at - count:at]
        if raw[-1:] != b"\0" or b"\0" in raw[:-1]:
            raise ValueError
        return raw[:-1].decode()

    sizes, numbers = [], []
    try:
        if data[:4] != HEAD:
            return None
        text()    # the frame
        names = [text() for _ in range(size())]
        for _ in range(3):
            count = size()
            sizes.append((at - 4, data[at - 4:at]))
            begin = aligned(8) if count else at
            at += 8 * count
            numbers.append((begin, count))
        if at > len(data):
            raise ValueError
    except (ValueError, struct.error):    # also of names that are no text
        return None
    first = next((begin for begin, count in numbers if count), numbers[0][0])
    last = max((begin + 8 * count for begin, count in numbers if count), default=first)
    parts = [slice((begin - first) // 8, (begin - first) // 8 + count) if count else slice(0, 0)
             for begin, count in numbers]
    return Layout(len(data), first, int.from_bytes(mask[NAMES:first], "little"),
                   int.from_bytes(data[NAMES:first], "little") & int.from_bytes(mask[NAMES:first], "little"),
                   tuple((place, size) for place, size in sizes if place >= first), (last - first) // 8, last, names,
                   (parts[0], parts[1], parts[2]))


def _equal(one: Fields | None, other: Fields) -> bool:
    """Whether both hold the same, NaN included."""
    return (one is not None and one[:2] == other[:2] and list(one.names) == list(other.names)
            and all(np.asarray(a, np.float64).tobytes() == np.asarray(b, np.float64).tobytes()
                    for a, b in zip(one[3:], other[3:], strict=True)))
