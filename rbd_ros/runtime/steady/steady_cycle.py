"""The steady cycle of a torque controller: from the bytes of a joint state to the effort in one compiled call.

A steady cycle (mode `running`, no fade, no active limit) is one compiled entry (`core/steady`), which uses the same
kernels as the ordinary path. Preconditions are checked in each cycle: in Python, whether anything happened since the
last cycle (a reference, a wrench, other settings, a stop); in the compiled call, before it changes anything, whether
the state is unusual (bytes, stamp, outlier, gap, age, limit, non-finite number). If so, the ordinary path handles the
message, and `prepare` adapts to its result.

Unsupported: missing velocities or stamps, wrenches, joints of several coordinates, joints derived from mimic joints.
Subclasses: `steady_following` for laws that follow references, of those `steady_tracking` and `steady_flatness`;
`steady_cartesian`.
"""
from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from ...core.compiled.entry import Entry
from ...core.steady import cycle_kernel as at
from ..inputs.joint_state_bytes import Layout
from ..inputs.plausibility import Known
from ..inputs.quick_states import message_memory
from ..safety import Command, SafetySettings
from ..control.loop_rate import Transit
from ..control.torque_controller import Controller, Laws

Array = NDArray[np.float64]
L = TypeVar("L", bound=Laws)


class SteadyCycle(ABC, Generic[L]):
    """Steady cycle of one controller. `answer` tries a message; if it succeeds, call `keep` after the effort is
    published, else `prepare` after the ordinary path. `stamp` (s, ns), `q`, `v`: of the last answered message. They,
    and the command, are valid until the next message.
    """

    entry: ClassVar[Entry]

    def __init__(self, controller: Controller[L], transit: Transit) -> None:
        self._controller = controller
        self._nv = nv = controller.model.nv
        numbers = self._numbers = np.zeros(at.NUMBERS)
        controller.state.clock.live_in(numbers[at.AT_CLOCK:at.AT_TRANSIT])
        transit.live_in(numbers[at.AT_TRANSIT:at.AT_LOOP])
        controller.loop.live_in(numbers[at.AT_LOOP:at.AT_CYCLES])
        controller.statistics.live_in(numbers[at.AT_CYCLES:at.NUMBERS])
        self._rows = np.zeros(at.STATES * nv + at.NUMBERS)
        self._states = self._rows[:at.STATES * nv].reshape(at.STATES, nv)
        self._constants = np.zeros(at.size_of_constants(nv))
        self._whole = np.zeros(at.HEAD, np.int64)
        self._words = np.zeros(1, np.int64)
        self._bytes, self._doubles = memoryview(b""), self._words.view(np.float64)
        self._layout: Layout | None = None
        self._arrays: tuple[Any, ...] = ()    # arguments of the compiled call
        self.q, self.v = self._states[at.Q], self._states[at.V]
        self._command = Command(self._states[at.SENT])
        self._limits_rate = False
        self._q: Array | None = None    # position of the prepared state
        self._settings: SafetySettings | None = None
        self._laws: L | None = None
        self._now = 0.0
        self._call = self.entry
        if all(joint.nq == joint.nv == 1 for joint in controller.model.joints):
            self._call.compile()

    # ---- law

    @abstractmethod
    def suits(self, laws: L) -> bool:
        """Whether the entry supports these laws."""

    @abstractmethod
    def arrays(self, laws: L) -> tuple[Array, ...]:
        """Block and workspace of the model, and the entry's arguments after those common to all entries."""

    @abstractmethod
    def ready(self, laws: L) -> bool:
        """Prepare for the other inputs of these laws; returns whether they are known for some time ahead."""

    @abstractmethod
    def happened(self, now: float, laws: L) -> bool:
        """Whether any other input of these laws has changed or is unusual."""

    @abstractmethod
    def after(self, time_ns: int) -> None:
        """Update the law's objects after the effort for this stamp was published."""

    # ---- cycle

    @property
    def stamp(self) -> tuple[int, int]:
        return self._whole.item(at.SEC), self._whole.item(at.NANOSEC)

    def answer(self, data: bytes, now: float, now_ns: int, sent_ns: int, received_ns: int) -> Command | None:
        """The command for this message, equal to that of `Controller.on_state`; None if `on_state` must be
        called.

        now: steady, s; the others as in `Transit.age`.
        """
        controller = self._controller
        safety = controller.safety
        laws = safety.laws
        if (controller.state.q is not self._q or controller.state.stuck or safety.modes.mode != "running"
                or safety.settings is not self._settings or laws.new is not self._laws or laws.old is not None
                or len(data) != len(self._bytes) or self.happened(now, laws.new)):
            return None
        self._bytes[:] = data
        words = self._whole
        words[at.NOW_NS], words[at.SENT_NS], words[at.RECEIVED_NS] = now_ns, sent_ns, received_ns
        if not self._call.call(*self._arrays, now):
            return None
        self._now = now
        return self._command

    def keep(self) -> None:
        """Update the objects of the ordinary path after the effort was published."""
        controller, states, time_ns = self._controller, self._states, self._whole.item(at.TIME)
        state = controller.state
        measured = states[at.MEASURED].copy() if self._whole[at.EFFORT] else state.measured_effort
        self._q = self.q.copy()
        state.keep(Known(self._now, time_ns, self._q, self.v.copy()), measured)
        controller.safety.keep(self._now, self._command.efforts)
        controller.loop.time_ns = time_ns
        self.after(time_ns)
        controller.cycled(self._now)

    def prepare(self, layout_of: Callable[[bytes], Layout | None], data: bytes) -> None:
        """Prepare for messages like this one, which the ordinary path has answered. layout_of: layout of a message."""
        self._q = None
        controller = self._controller
        state, safety, laws = controller.state, controller.safety, controller.safety.laws.new
        last = state.follows
        if (last is None or safety.output is None or not safety.steady or not controller.trusts(last)
                or not self.suits(laws) or any(joint.nq * joint.nv != 1 for joint in laws.model.joints)):
            return
        layout = layout_of(data)
        indices = None if layout is None else state.indices(layout.names)
        if layout is None or indices is None or not layout.complete:
            return
        if layout is not self._layout or not np.array_equal(indices, self._whole[at.HEAD:at.HEAD + self._nv]):
            self._whole, self._words, self._doubles, self._bytes = message_memory(layout, data, indices)
            self._layout, self._laws = layout, None
        if laws is not self._laws or safety.settings is not self._settings:
            self._settle(laws)
        self._states[at.Q], self._states[at.V] = state.q, state.v
        for mine, channel in zip(self._command.efforts, safety.channels, strict=True):
            mine[:] = channel.output
        self._whole[at.TIME] = state.time_ns
        if self.ready(laws):
            self._q = state.q

    @property
    def limits(self) -> Array:
        """Rows of `at.LIMITS`."""
        return self._constants[at.SCALARS:at.SCALARS + at.LIMITS * self._nv].reshape(at.LIMITS, self._nv)

    def coefficients(self, count: int) -> Array:
        """So many rows of the reference, or of the polynomial of which it is a value."""
        begin = at.SCALARS + at.LIMITS * self._nv
        return self._constants[begin:begin + count * self._nv].reshape(count, self._nv)

    def _settle(self, laws: L) -> None:
        """Prepare for these laws and the present settings."""
        controller, K = self._controller, self._constants
        state, channel = controller.state, controller.safety.channels[0]
        self._laws, self._settings = laws, controller.safety.settings
        K[at.TIMEOUT], K[at.RAMP] = state.timeout, self._settings.ramp_in
        rows = self.limits
        rows[:at.TOLERANCE] = *state.bounds, *channel.limiter.limits
        self._limits_rate = any(each.limiter.limits_rate for each in controller.safety.channels)
        self._whole[at.TURNS] = rows[at.TURN].any()
        block, work, *law = self.arrays(laws)
        self._arrays = (block, work, self._words, self._doubles, self._whole, K, self._rows, self._numbers, *law)
