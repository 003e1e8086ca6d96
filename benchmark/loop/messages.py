"""Joint states as the bytes that a driver sends (CDR, little-endian), without a middleware."""
from __future__ import annotations

import struct
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np


class JointStates:
    """Messages of one driver: names, position and velocity."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names, n = list(names), len(names)
        body = bytearray(8)    # the stamp
        self._text(body, "")
        self._size(body, n)
        for name in names:
            self._text(body, name)
        self._numbers = []
        for _ in range(2):
            self._size(body, n)
            body += bytes(-len(body) % 8)
            self._numbers.append(4 + len(body))
            body += bytes(8 * n)
        self._size(body, 0)
        self._data = bytearray(b"\x00\x01\x00\x00" + body)

    @staticmethod
    def _size(body: bytearray, count: int) -> None:
        body += bytes(-len(body) % 4) + struct.pack("<I", count)

    def _text(self, body: bytearray, text: str) -> None:
        self._size(body, len(text) + 1)
        body += text.encode() + b"\0"

    def message(self, stamp_ns: int, q: np.ndarray, v: np.ndarray) -> bytes:
        data = self._data
        struct.pack_into("<iI", data, 4, *divmod(stamp_ns, 1_000_000_000))
        for at, numbers in zip(self._numbers, (q, v), strict=True):
            data[at:at + 8 * len(numbers)] = np.asarray(numbers, np.float64).tobytes()
        return bytes(data)

    def convert(self, data: bytes) -> Any:
        """The message as decoded by the middleware."""
        sec, nanosec = struct.unpack_from("<iI", data, 4)
        q, v = (np.frombuffer(data, np.float64, len(self._names), at) for at in self._numbers)
        return SimpleNamespace(header=SimpleNamespace(stamp=SimpleNamespace(sec=sec, nanosec=nanosec)),
                               name=self._names, position=q.copy(), velocity=v.copy(), effort=np.zeros(0))
