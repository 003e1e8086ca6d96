"""Decoding of serialized joint states in place.

A sensor_msgs/JointState in CDR, little-endian, at offsets from the beginning of the encapsulation:

    0  encapsulation (4)   4  stamp (8)   12  frame, names   P  positions   V  velocities   E  efforts

Only stamp and numbers differ between the messages of a driver. The layout is learnt from the first message, which the
middleware's own conversion decodes; later messages of the same length and with the same other bytes are read at the
learnt offsets. Padding bytes are not compared, because middlewares leave them uninitialised. Any other message is
decoded by the conversion, and its layout is learnt.
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
NAMES = 12                    # offset of the constant part
LAYOUTS = 8                   # largest number of layouts (drivers) kept per topic
LOOK = 1.0                    # s between two checks of messages without joints of the robot
_EMPTY = np.zeros(0)


class Fields(NamedTuple):
    """Contents of a joint state: stamp (s, ns), names, and numbers by name."""

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
    """Rejection of bytes that are not a message of the expected type."""

    def __init__(self, data: bytes, kind: str, error: Exception) -> None:
        super().__init__("malformed", f"{len(data)} bytes are not a {kind}: {error}")


class Layout(NamedTuple):
    """Layout of the messages of a driver."""

    length: int
    numbers: int                # offset of the first number
    mask: int                   # bits of NAMES … numbers that are no padding
    same: int                   # value of these bits
    sizes: tuple[tuple[int, bytes], ...]    # offset and bytes of the sizes of velocities and efforts
    width: int                  # words of 8 bytes: numbers, and the sizes between them
    end: int                    # offset behind the numbers
    names: Sequence[str]
    parts: tuple[slice, slice, slice]       # of positions, velocities, efforts

    def read(self, data: bytes) -> Fields | None:
        """Decode `data` of this layout's length; None for another layout."""
        if (int.from_bytes(data[NAMES:self.numbers], "little") & self.mask != self.same or data[:4] != HEAD
                or any(data[offset:offset + 4] != size for offset, size in self.sizes)):
            return None
        numbers = np.frombuffer(bytearray(data[self.numbers:self.end])) if self.width else _EMPTY    # aligned
        position, velocity, effort = self.parts
        sec, nanosec = _STAMP.unpack_from(data, 4)
        return Fields(sec, nanosec, self.names, numbers[position], numbers[velocity], numbers[effort])


    def words(self, data: bytes) -> tuple[Words, Words]:
        """The message as words of 8 bytes, starting 4 bytes before its encapsulation, and the mask of constant bits."""
        mask = bytearray(len(data))
        mask[:len(HEAD)] = b"\xff" * len(HEAD)
        mask[NAMES:self.numbers] = self.mask.to_bytes(self.numbers - NAMES, "little")
        for offset, size in self.sizes:
            mask[offset:offset + len(size)] = b"\xff" * len(size)
        return as_words(data), as_words(mask)

    @property
    def complete(self) -> bool:
        """Whether every name has a position and a velocity, and all or none have efforts."""
        position, velocity, effort = (part.stop - part.start for part in self.parts)
        return position == velocity == len(self.names) > 0 and effort in (0, len(self.names))

    def places(self) -> tuple[int, int, int]:
        """Indices of the first words of positions, velocities and efforts; 0 if absent."""
        first = (self.numbers + 4) // 8
        position, velocity, effort = (first + part.start if part.stop > part.start else 0 for part in self.parts)
        return position, velocity, effort


def as_words(data: bytes | bytearray) -> Words:
    """The message as int64 words, starting 4 bytes before it, so that its numbers are aligned."""
    return np.frombuffer(bytes(4) + bytes(data) + bytes(-(len(data) + 4) % 8), np.int64).copy()


_STAMP = struct.Struct("<iI")
_SIZE = struct.Struct("<I")


def stamp_of(data: bytes) -> tuple[int, int]:
    """Stamp (s, ns) of a message with a header, read in place."""
    sec, nanosec = _STAMP.unpack_from(data, 4)
    return sec, nanosec


class JointStateReader:
    """Decodes the messages of one subscription. convert: the middleware's conversion of bytes to a message; it may
    raise any exception for malformed bytes. joints: of the robot, () to accept any message.
    """

    def __init__(self, convert: Callable[[bytes], Any], joints: Sequence[str] = ()) -> None:
        self._convert = convert
        self._joints = [name.encode() for name in joints]
        self._looked = -math.inf
        self._layouts: list[Layout] = []
        self.learnt = 0    # number of messages decoded by the conversion

    def is_foreign(self, now: float, data: bytes) -> bool:
        """Whether to skip a message without any of the joints, because one was read less than `LOOK` s ago."""
        if not self._joints or any(name in data for name in self._joints):
            return False
        if now - self._looked < LOOK:
            return True
        self._looked = now
        return False

    def read(self, data: bytes) -> Fields:
        """Decode a message; raises `Malformed`."""
        length = len(data)
        for layout in self._layouts:
            if layout.length == length and (fields := layout.read(data)) is not None:
                return fields
        return self._learn(data)

    def layout(self, data: bytes) -> Layout | None:
        """The known layout of a message; None if unknown."""
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
    """The layout of a message; None if not encoded as in the module's docstring."""
    mask = bytearray(b"\xff" * len(data))
    offset = NAMES

    def aligned(size: int) -> int:
        nonlocal offset
        padding = -(offset - 4) % size
        mask[offset:offset + padding] = bytes(padding)
        offset += padding
        return offset

    def size() -> int:
        nonlocal offset
        number: int = _SIZE.unpack_from(data, aligned(4))[0]
        offset += 4
        if number > len(data):
            raise ValueError
        return number

    def text() -> str:
        nonlocal offset
        count = size()
        offset += count
        raw = data[offset - count:offset]
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
            sizes.append((offset - 4, data[offset - 4:offset]))
            begin = aligned(8) if count else offset
            offset += 8 * count
            numbers.append((begin, count))
        if offset > len(data):
            raise ValueError
    except (ValueError, struct.error):    # including names that are not UTF-8
        return None
    first = next((begin for begin, count in numbers if count), numbers[0][0])
    last = max((begin + 8 * count for begin, count in numbers if count), default=first)
    parts = [slice((begin - first) // 8, (begin - first) // 8 + count) if count else slice(0, 0)
             for begin, count in numbers]
    return Layout(len(data), first, int.from_bytes(mask[NAMES:first], "little"),
                   int.from_bytes(data[NAMES:first], "little") & int.from_bytes(mask[NAMES:first], "little"),
                   tuple((place, size) for place, size in sizes if place >= first), (last - first) // 8, last, names,
                   (parts[0], parts[1], parts[2]))


def _equal(first: Fields | None, second: Fields) -> bool:
    """Whether both are equal; NaN equals NaN."""
    return (first is not None and first[:2] == second[:2] and list(first.names) == list(second.names)
            and all(np.asarray(a, np.float64).tobytes() == np.asarray(b, np.float64).tobytes()
                    for a, b in zip(first[3:], second[3:], strict=True)))
