"""Messages for loco-3d's linear-feedback-controller, where linear_feedback_controller_msgs is installed."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from std_msgs.msg import MultiArrayDimension

from ..core.feedback.tracking_gains import TrackingGains
from .base.optional import interface_type


def control(gains: TrackingGains, t: float, hold: float | None = None, joints: Sequence[str] | None = None) -> Any:
    """The linear_feedback_controller_msgs/Control of `gains.control_message`, without stamps. Raises `RbdError` without
    that package.
    """
    message = interface_type("linear-feedback-controller takes", "linear_feedback_controller_msgs", "msg", "Control")()
    _fill(message, gains.control_message(t, hold, joints))
    return message


def _fill(message: Any, fields: Mapping[str, Any]) -> None:
    for name, value in fields.items():
        if isinstance(value, Mapping):
            _fill(getattr(message, name), value)
        else:
            setattr(message, name, [MultiArrayDimension(**each) for each in value] if name == "dim" else value)
