"""Decoding of serialized std_msgs numbers, in place for the usual layout.

CDR, little-endian, at offsets from the beginning of the encapsulation:

    std_msgs/Float64              0  encapsulation (4)   4  the number
    std_msgs/Float64MultiArray    0  encapsulation (4)   4  no dimensions: 0 (4)   8  data_offset (4)   12  count (4)
                                  16  between others (4)   20  numbers

Any other layout is decoded by the middleware's conversion (`convert`), which may raise any exception.
"""
from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import numpy as np

from .joint_state_bytes import HEAD, Malformed

_PLAIN = HEAD + bytes(4)    # start of an array without dimensions
_COUNT = struct.Struct("<I")
_NUMBER = struct.Struct("<d")


def read_array(data: bytes, convert: Callable[[bytes], Any]) -> Any:
    """The numbers of a std_msgs/Float64MultiArray; raises `Malformed`."""
    count = len(data) // 8 - 2
    if count > 0 and len(data) == 20 + 8 * count and data[:8] == _PLAIN and _COUNT.unpack_from(data, 12)[0] == count:
        return np.frombuffer(data, np.float64, count, 20)
    try:
        return convert(data).data
    except Exception as error:
        raise Malformed(data, "std_msgs/Float64MultiArray", error) from None


def read_number(data: bytes, convert: Callable[[bytes], Any]) -> float:
    """The number of a std_msgs/Float64; raises `Malformed`."""
    if len(data) == 12 and data[:4] == HEAD:
        return float(_NUMBER.unpack_from(data, 4)[0])
    try:
        return float(convert(data).data)
    except Exception as error:
        raise Malformed(data, "std_msgs/Float64", error) from None
