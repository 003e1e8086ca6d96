"""Validated limits of a motion; defaults from the model."""
from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...errors import RbdError, shown
from ...model.robot_model import RobotModel
from ..position_limits import coordinate_limits

Array = NDArray[np.float64]
LARGEST = 1e30     # limits above count as infinite
SMALLEST = 1e-12   # limits below are refused: they allow no motion


@dataclass(frozen=True)
class MotionLimits:
    """Limits of a motion per joint: each a number, (nv,), or None. None means the model's limit for positions,
    velocities and efforts, and no limit for the others. rad, m, s, N m, N; `inf`: no limit.

        >>> limits = rbd.MotionLimits(velocity=1.0, acceleration=[5.0, 8.0])
        >>> rbd.optimize_motion(rbd.sample("two_link"), [0.0, 0.0], [1.0, -0.5], 2.0, limits=limits).good
        True
    """

    position_lower: ArrayLike | None = None
    position_upper: ArrayLike | None = None
    velocity: ArrayLike | None = None
    acceleration: ArrayLike | None = None
    jerk: ArrayLike | None = None
    effort: ArrayLike | None = None
    effort_rate: ArrayLike | None = None
    motor_velocity: ArrayLike | None = None

    def checked(self, model: RobotModel) -> CheckedLimits:
        """The limits as arrays (nv,); raises `RbdError`, naming limit and joint."""
        lower, upper = coordinate_limits(model)
        defaults = {"position_lower": lower, "position_upper": upper, "velocity": model.velocity_limit,
                    "effort": model.effort_limit}
        arrays: dict[str, Array] = {}
        for field in fields(self):
            value = getattr(self, field.name)
            arrays[field.name] = _array(defaults.get(field.name, np.inf) if value is None else value, model, field.name)
        for name, value in arrays.items():
            arrays[name] = value = np.where(np.abs(value) > LARGEST, np.copysign(np.inf, value), value)
            wrong = np.isnan(value) if name.startswith("position") else ~(value > SMALLEST)
            if name in defaults and getattr(self, name) is None:
                wrong = np.zeros(model.nv, dtype=bool)    # 0 in a description means no limit
                arrays[name] = value if name.startswith("position") else np.where(value > 0.0, value, np.inf)
            if wrong.any():
                j = int(np.argmax(wrong))
                raise RbdError(f"limits: {name} of joint '{model.velocity_names[j]}' is {value[j]:g}, expected "
                               + ("a number" if name.startswith("position") else
                                  f"a positive number above {SMALLEST:g}"))
        low, high = arrays["position_lower"], arrays["position_upper"]
        ordered = high - low > SMALLEST
        if not np.all(ordered):
            j = int(np.argmin(ordered))
            raise RbdError(f"limits: position_lower {low[j]:g} of joint '{model.velocity_names[j]}' is not below "
                           f"position_upper {high[j]:g}")
        return CheckedLimits(**arrays)


@dataclass(frozen=True)
class CheckedLimits:
    """`MotionLimits` as arrays (nv,)."""

    position_lower: Array
    position_upper: Array
    velocity: Array
    acceleration: Array
    jerk: Array
    effort: Array
    effort_rate: Array
    motor_velocity: Array

    def of(self, name: str) -> tuple[Array, Array]:
        """Lower and upper limit (nv,) of the quantity "position", "velocity", …"""
        if name == "position":
            return self.position_lower, self.position_upper
        upper: Array = getattr(self, name)
        return -upper, upper


def checked_limits(model: RobotModel, limits: object) -> CheckedLimits:
    """Checked limits from the argument `limits`; None means the model's."""
    if limits is None:
        limits = MotionLimits()
    if not isinstance(limits, MotionLimits):
        raise RbdError(f"limits: expected MotionLimits, got {shown(limits)}")
    return limits.checked(model)


def _array(value: ArrayLike, model: RobotModel, name: str) -> Array:
    try:
        array = np.array(np.broadcast_to(np.asarray(value, dtype=np.float64), (model.nv,)))
    except (TypeError, ValueError, OverflowError):
        raise RbdError(f"limits: {name} must be one number or {model.nv}, got {shown(value)}") from None
    return array
