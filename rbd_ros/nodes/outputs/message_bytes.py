"""Messages that are sent as bytes, made once and filled in place: a publisher sends them as they are.

Where the numbers stand is found by marks: the message is converted once with numbers that are in no other place. Where
that fails, for a middleware that writes messages otherwise, the message itself is filled and sent.
"""
from __future__ import annotations

import struct
from array import array
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rclpy.serialization import serialize_message

Array = NDArray[np.float64]
HEAD = b"\x00\x01"    # of what is written in CDR, little-endian
_STAMP = struct.Struct("<iI")
_MARK = (0x5A173C21, 0x2C91E5D7)    # of the stamp


class MessageBytes:
    """`message` with `sizes` numbers in its fields, by path: `effort`, `points.0.effort`. All but these numbers and the
    stamp, where there is one, is sent as it is now.

    `numbers`: a view per field, to write to before `send`.
    """

    def __init__(self, message: Any, sizes: Mapping[str, int], stamped: bool) -> None:
        self._message, self._stamped = message, stamped
        self.numbers: dict[str, Array] = {}
        self._bytes: bytearray | None = None
        self._at = 0
        marks, first = {}, 1
        for path, size in sizes.items():
            marks[path] = array("d", [1e-290 * (first + i) for i in range(size)])
            first += size
            _put(message, path, marks[path])
        if stamped:
            message.header.stamp.sec, message.header.stamp.nanosec = _MARK
        data = _serialized(message)
        places = {path: _only(data, numbers.tobytes()) for path, numbers in marks.items()}
        self._at = _only(data, _STAMP.pack(*_MARK)) if stamped else 0
        if data[:2] == HEAD and self._at >= 0 and min(places.values(), default=0) >= 0:
            self._bytes = bytearray(data)
            for path, at in places.items():
                self.numbers[path] = np.frombuffer(self._bytes, np.float64, sizes[path], at)
        else:
            for path in sizes:
                self.numbers[path] = np.frombuffer(_get(message, path))    # the message's own memory
        for numbers in self.numbers.values():
            numbers[:] = 0.0

    def send(self, publisher: Any, sec: int = 0, nanosec: int = 0) -> None:
        """Publish it, with this stamp if it has one."""
        data = self._bytes
        if data is not None:
            if self._stamped:
                _STAMP.pack_into(data, self._at, sec, nanosec)
            publisher.publish(bytes(data))
            return
        if self._stamped:
            self._message.header.stamp.sec, self._message.header.stamp.nanosec = sec, nanosec
        publisher.publish(self._message)


def _serialized(message: Any) -> bytes:
    """The message as the middleware writes it; nothing where it cannot."""
    try:
        return bytes(serialize_message(message))
    except Exception:    # whatever a middleware raises; publishing says what is wrong
        return b""


def _only(data: bytes, part: bytes) -> int:
    """Where the part stands, if it does once; −1 otherwise. No numbers stand anywhere."""
    if not part:
        return 0
    at = data.find(part)
    return at if data.find(part, at + 1) < 0 else -1


def _holder(message: Any, path: str) -> tuple[Any, str]:
    *steps, field = path.split(".")
    for step in steps:
        message = message[int(step)] if step.isdecimal() else getattr(message, step)
    return message, field


def _put(message: Any, path: str, numbers: array[float]) -> None:
    setattr(*_holder(message, path), numbers)


def _get(message: Any, path: str) -> Any:
    return getattr(*_holder(message, path))
