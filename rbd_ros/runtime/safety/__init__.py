"""The safety filter between control laws and the robot: modes, fades and limits, each with its inequality."""
from __future__ import annotations

from .channel import SafetySettings
from .filter import Command, SafetyFilter

__all__ = ["Command", "SafetyFilter", "SafetySettings"]
