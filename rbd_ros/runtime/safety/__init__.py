"""The safety filter between control laws and the robot: modes, fades and limits, each with its inequality."""
from __future__ import annotations

from .channel import SafetySettings
from .command import NOTHING, Command, Defect, NoCommand
from .filter import SafetyFilter

__all__ = ["NOTHING", "Command", "Defect", "NoCommand", "SafetyFilter", "SafetySettings"]
