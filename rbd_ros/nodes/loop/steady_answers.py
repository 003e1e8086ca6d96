"""Shortcuts for joint states as bytes: the steady cycle (`runtime.steady.steady_cycle`), and fast acceptance."""
from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from ...runtime.control.loop_rate import Transit
from ...runtime.steady.steady_cycle import SteadyCycle
from ...runtime.inputs.joint_state_bytes import Layout, stamp_of
from ...runtime.inputs.motor_states import MotorInput
from .joint_state_inputs import Info, Shortcut


class SteadyAnswers:
    """`Shortcut` of a torque node with a steady cycle."""

    def __init__(self, node: Any, cycle: SteadyCycle[Any]) -> None:
        self._node, self._cycle = node, cycle

    def answer(self, message: bytes, info: Info) -> bool:
        node, cycle = self._node, self._cycle
        if not node.active:
            return False
        received = info["received_timestamp"]
        command = cycle.answer(message, time.monotonic(), time.time_ns(), info["source_timestamp"], received)
        if command is None:
            return False
        try:
            node.publish_for(command, cycle.stamp, cycle.q, cycle.v)
        finally:
            cycle.keep()
        node.answered(command, received)
        return True

    def prepare(self, layout_of: Callable[[bytes], Layout | None], message: bytes) -> None:
        if self._node.active:
            self._cycle.prepare(layout_of, message)


class QuickAnswers:
    """`Shortcut` of other torque nodes: one call accepts the state, the controller computes the command."""

    def __init__(self, node: Any, transit: Transit) -> None:
        self._node, self._transit = node, transit

    def answer(self, message: bytes, info: Info) -> bool:
        node = self._node
        if not node.active:
            return False
        received = info["received_timestamp"]
        command = node.controller.on_bytes(time.monotonic(), message, lambda: self._transit.age(
            time.time_ns(), info["source_timestamp"], received))
        if command is None:
            return False
        node.answer_with(command, stamp_of(message), received)
        return True

    def prepare(self, layout_of: Callable[[bytes], Layout | None], message: bytes) -> None:
        self._node.controller.state.prepare(layout_of, message)


class InTurn:
    """Tries several `Shortcut`s in turn; those before the answering one are prepared with the message."""

    def __init__(self, *shortcuts: Shortcut) -> None:
        self._shortcuts = shortcuts
        self._layout_of: Callable[[bytes], Layout | None] = lambda data: None    # set by the first message

    def answer(self, message: bytes, info: Info) -> bool:
        for count, shortcut in enumerate(self._shortcuts):
            if shortcut.answer(message, info):
                for earlier in self._shortcuts[:count]:
                    earlier.prepare(self._layout_of, message)
                return True
        return False

    def prepare(self, layout_of: Callable[[bytes], Layout | None], message: bytes) -> None:
        self._layout_of = layout_of
        for shortcut in self._shortcuts:
            shortcut.prepare(layout_of, message)


class QuickMotorStates:
    """`Shortcut` of motor states."""

    def __init__(self, motors: MotorInput) -> None:
        self._motors = motors

    def answer(self, message: bytes, info: Info) -> bool:
        return self._motors.accept_bytes(time.monotonic(), message)

    def prepare(self, layout_of: Callable[[bytes], Layout | None], message: bytes) -> None:
        self._motors.prepare(layout_of, message)
