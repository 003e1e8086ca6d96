"""Common parts of curves on SE(3): their return value, and checks of their ends."""
from __future__ import annotations

from typing import NamedTuple

from numpy.typing import ArrayLike

from ...errors import RbdError
from ..se3 import checked_pose
from ..so3 import Array, checked


class Motion(NamedTuple):
    """Pose (…, 4, 4), body twist V (…, 6) and its component-wise derivative V̇ (…, 6), at times (…)."""

    pose: Array
    twist: Array
    acceleration: Array


def single(name: str, value: ArrayLike, shape: tuple[int, ...]) -> Array:
    """`value` as a finite float array of exactly this shape; raises `RbdError` otherwise."""
    array = checked(name, value, shape)
    if array.shape != shape:
        raise RbdError(f"{name}: expected shape {shape}, got {array.shape}")
    return array


def ends(T0: ArrayLike, T1: ArrayLike, duration: float) -> tuple[Array, Array, float]:
    """Both poses (4, 4) and the duration in s, which is positive."""
    seconds = float(single("duration", duration, ()))
    if seconds <= 0.0:
        raise RbdError(f"duration: expected more than 0 s, got {seconds}")
    return checked_pose("T0", single("T0", T0, (4, 4))), checked_pose("T1", single("T1", T1, (4, 4))), seconds


def unit_time(t: ArrayLike, duration: float) -> Array:
    """Times t in s as parts of the duration; raises `RbdError` outside."""
    time = checked("t", t, ())
    if ((time < -1e-9 * duration) | (time > (1.0 + 1e-9) * duration)).any():
        raise RbdError(f"t: expected 0 … {duration} s, got {time.min()} … {time.max()}")
    return time / duration
