"""The safety filter between control laws and one robot. Time is an argument (s, steady).

Downstream controllers latch the last received torque, so silence is not safe. While a robot is active there is always
an output. In every cycle it is computed only from the commands and safe efforts of that cycle:

    C = (1 − u) C_old + u C_new       commands of the laws before and after a change (`Fade`), each clipped
    S = (1 − u) S_old + u S_new       safe efforts likewise
    output = S + w (C − S)            w by the mode (`Modes`)

followed by the rate limit, which applies to changes by references, w and u, never to the response to the measured state
(`Channel.emit`). Component by component, with w and u between 0 and 1:

- the output is finite and within the effort limits;
- it lies between C and S, and C between C_old and C_new, for any measured state;
- from one cycle to the next it moves by at most the change of the clipped commands and safe efforts, plus their
  distances times elapsed/ramp. Steps occur only if a mode ends at once: missing states, a missing or non-finite
  command, an emergency stop, the final output.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from ...core.actuation.motor_reference import MotorReference
from ...core.errors import RbdError
from ..inputs.finite import all_finite
from .channel import Channel, SafetySettings
from .command import NOTHING, Command, NoCommand
from .fade import Fade, mix
from .modes import Modes

Array = NDArray[np.float64]
Laws = TypeVar("Laws")
Efforts = Sequence[Array]    # one per output of the robot: joints, and motors of elastic joints


class SafetyFilter(Generic[Laws]):
    """Filters the commands of one robot: call `update` with each joint state and `watchdog` regularly.

    settings: of each output; times are those of the first one. laws: any object; commands are computed from it by the
    argument of `update`, safe efforts by `safe(laws, at_rest)`, one per output, in the last known state; `at_rest`
    omits damping, for efforts that are repeated or latched when the velocity is no longer known. carried(efforts):
    what is repeated instead of these safe efforts once states have ceased.
    """

    def __init__(self, settings: Sequence[SafetySettings], laws: Laws, safe: Callable[[Laws, bool], Efforts],
                 carried: Callable[[list[Array]], list[Array]] = lambda efforts: efforts) -> None:
        self.settings = settings[0]
        self.channels = [Channel(each) for each in settings]
        self.laws: Fade[Laws] = Fade(laws)
        self.modes = Modes()
        self.counts = self.channels[0].counts
        self.counts.update({"non_finite_command": 0, "timeouts": 0})
        self._safe_efforts, self._carried = safe, carried
        self._stale: list[Array] | None = None    # efforts that are repeated once the state is stale
        self._down = 0.0                          # progress of the ramp from these to the fallback, 0 to 1
        self._absent: Laws | None = None          # law of the present fade that lacked a command
        self._faded = False                       # whether the last output mixes two laws
        self._stopping = False                    # emergency stop without an output so far
        self._fresh_at = self.time = 0.0          # time: of the last output, s
        self._before: tuple[Laws | None, Laws, float, float] = (None, laws, 1.0, 0.0)    # its old, new, u, w

    @property
    def mode(self) -> str:
        return self.modes.mode

    @property
    def latched(self) -> bool:
        """Whether an emergency stop is latched until `reset`."""
        return self.modes.latched

    @property
    def leaving(self) -> bool:
        """Whether the controller is deactivated, or on its way there."""
        return self.modes.leaving

    @property
    def output(self) -> Array | None:
        """The last effort of the joints (nv,)."""
        return self.channels[0].output

    @property
    def outputs(self) -> list[Array]:
        """The last effort of every output; [] before the first."""
        return [channel.output for channel in self.channels if channel.output is not None]

    @property
    def clipped(self) -> bool:
        """Whether the last output differs from the command."""
        return (self.mode != "running" or self._faded
                or any(channel.saturated or channel.held is not None for channel in self.channels))

    def activate(self, now: float) -> None:
        """Activate without a known state; an earlier emergency stop stays latched."""
        self.modes.activate()
        self.time, self._stale, self._stopping = now, None, False
        self.laws.replace(self.laws.newest)
        self._absent = None
        for channel in self.channels:
            channel.output = channel.held = None
            channel.limiter.settle()
            channel.fallback.replace(channel.fallback.newest)

    def deactivate(self) -> None:
        """Start the ramp to the safe effort; `finished` tells when it is reached."""
        self.modes.deactivate()

    def stop(self) -> None:
        """Emergency stop (`Modes.stop`)."""
        self._stopping = self._stopping or self.mode not in ("inactive", "stopped")
        self.modes.stop()

    def reset(self) -> None:
        """Release the emergency stop."""
        self.modes.reset()

    def restart(self) -> None:
        """Ramp in again, because the robot takes commands only from now on (`Modes.restart`)."""
        self.modes.restart()

    def use(self, settings: Sequence[SafetySettings], laws: Laws) -> None:
        """Change the settings. Lower limits act at once, all other changes fade in within `ramp_in`."""
        self.settings = settings[0]
        for channel, each in zip(self.channels, settings, strict=True):
            channel.use(each)
        self.laws.change(laws)

    @property
    def settled(self) -> bool:
        """Whether neither rate limit nor a change of settings modifies the last output."""
        return not (self._stopping or self.laws.fading
                    or any(channel.held is not None or channel.limiter.fading for channel in self.channels))

    @property
    def finished(self) -> bool:
        """Whether the output no longer depends on commands or fading limits."""
        return self.mode not in ("ramp_in", "running") and self.modes.weight <= 0.0 and self.settled

    def lose(self) -> None:
        """Handle a too long gap of the output."""
        self.modes.lose()

    @property
    def patience(self) -> float:
        """Time (s) without states after which earlier commands expire."""
        return self.settings.state_timeout + min(self.settings.hold, 1.0)

    def abandoned(self, now: float) -> bool:
        """Whether the robot is stopped, or without states for longer than `patience`."""
        return self.mode == "stopped" or (self.output is not None and now - self._fresh_at > self.patience)

    @property
    def steady(self) -> bool:
        """Whether the next output is the clipped command: no ramp or fade is active."""
        return (self.mode == "running" and self._absent is None and not self.laws.fading
                and not any(channel.fading or channel.held is not None for channel in self.channels))

    def keep(self, now: float, efforts: Efforts) -> None:
        """`update` of a steady filter with a command that needs no limit."""
        self.time, self._fresh_at, self._faded = now, now, False
        self._before = None, self.laws.new, 1.0, 1.0
        for channel, effort in zip(self.channels, efforts, strict=True):
            channel.keep(effort.copy())

    def update(self, now: float, command: Callable[[Laws], Command | NoCommand],
               again: Callable[[Laws], Efforts | None] = lambda laws: None) -> Command:
        """Output for a fresh joint state. command(laws): command of these laws; again(laws): their efforts in this
        state with all other inputs as in the previous cycle, None if unknown.
        """
        elapsed = self._advance(now)
        laws = self.laws
        if self._absent is not None:
            self._let_in()
        new = self._asked(command, laws.new)
        old = NOTHING if laws.old is None else self._asked(command, laws.old)
        commanded, commanded_before = isinstance(new, Command), isinstance(old, Command)
        if laws.old is not None and commanded != commanded_before and self.modes.share > 0.0:
            self._absent = laws.old if commanded else laws.new
        stopping, stale = self._stopping, self._stale is not None
        self._fresh_at, self._stale, self._down, self._stopping = now, None, 0.0, False
        s, modes = self.settings, self.modes
        modes.advance(elapsed, commanded or commanded_before, s.ramp_in, s.ramp_out)
        share, channels = modes.share, self.channels
        for channel in channels:
            channel.saturated = False
        safe: list[Array] = []
        if share < 1.0 or (laws.fading and not (commanded and commanded_before)):
            safe = self._safe(False)
        commands = wanted = safe
        if share > 0.0:
            commands = wanted = self._mixed(new, old, safe)
            if share < 1.0:
                wanted = [mix(S, C, share) for S, C in zip(safe, commands, strict=True)]
        before, self._before = self._before, (laws.old, laws.new, laws.share, share)
        lost = stopping or (share < before[3] and not (self.mode == "ramp_out" and (commanded or commanded_before)))
        unmoved: list[Array] = []

        def unmoved_of(i: int) -> Array:
            if not unmoved:
                unmoved.extend(self._unmoved_since_stale() if stale else self._unmoved(before, again, commands))
            return unmoved[i]

        for i, (channel, effort) in enumerate(zip(channels, wanted, strict=True)):
            channel.emit(effort, elapsed, None if lost else partial(unmoved_of, i))
        problem = new.problem or old.problem
        if not isinstance(new, Command) or self.mode not in ("ramp_in", "running"):
            return self._sent(problem)
        return self._sent(problem, None if new.rates is None or self.clipped else new.rates, new.motors)

    def watchdog(self, now: float) -> Command | None:
        """Output if the state is stale; None while it is fresh, or before the first one."""
        s, age = self.settings, now - self._fresh_at
        if self.mode == "inactive" or self.output is None or age < s.state_timeout:
            return None
        elapsed = self._advance(now)
        first = self._stale is None
        if self._stale is None:
            self.counts["timeouts"] += 1
            self._stale = self._carried(self._resting())
        self.modes.lose()
        self._stopping = False
        # integrated, so that changed settings of the ramp do not make it jump
        down = min(age - s.state_timeout - s.hold, elapsed)
        if down > 0.0 or (down == 0.0 and s.fallback_ramp <= 0.0):
            self._down = min(self._down + down / s.fallback_ramp, 1.0) if s.fallback_ramp > 0.0 else 1.0
        for channel, safe in zip(self.channels, self._stale, strict=True):
            channel.saturated = False
            effort, last = mix(channel.clip(safe), channel.let_down, self._down), channel.output
            channel.emit(effort, elapsed, None if first or last is None else partial(np.array, last))
        self._before = None, self.laws.new, 1.0, 0.0
        way = ("publishing the safe effort" if age <= s.state_timeout + s.hold else
               f"{'on the way to' if self._down < 1.0 else 'publishing'} 'safe_output.fallback'")
        return self._sent(f"no valid joint state for {age:.3f} s: {way}")

    def finish(self, now: float) -> Command | None:
        """The final output, which stays latched downstream: the safe effort at rest. None before any output.

        On the ramp to the fallback, or after it, the fallback. Fades are completed, because the output is permanent.
        """
        active = self.output is not None and self.mode != "inactive"
        self.modes.end()
        if not active:
            return None
        self.laws.replace(self.laws.newest)
        for channel in self.channels:
            channel.limiter.settle()
            channel.fallback.replace(channel.fallback.newest)
            channel.saturated = False
        efforts = self._stale or self._resting()
        for channel, effort in zip(self.channels, efforts, strict=True):
            channel.emit(channel.clip(channel.let_down if self._stale and self._down > 0.0 else effort), 0.0)
        return self._sent("")

    def _advance(self, now: float) -> float:
        """Advance the fades; returns the time since the last output (s)."""
        elapsed, self.time = max(now - self.time, 0.0), now
        ramp = self.settings.ramp_in
        if self.laws.fading:
            self.laws.advance(elapsed, ramp)
        for channel in self.channels:
            channel.advance(elapsed, ramp)
        return elapsed

    def _let_in(self) -> None:
        """Handle a law that lacked a command during a fade: the safe effort replaces its commands until the fade is
        over, then they ramp in (`Modes.restart`).
        """
        if self.modes.share <= 0.0:    # any command ramps in from the safe effort
            self._absent = None
        elif not self.laws.fading or (self._absent is not self.laws.old and self._absent is not self.laws.new):
            if self._absent is self.laws.new:
                self.modes.restart()
            self._absent = None

    def _asked(self, command: Callable[[Laws], Command | NoCommand], laws: Laws) -> Command | NoCommand:
        reply = command(laws)
        if isinstance(reply, Command):
            if not (all_finite(reply.effort) and (reply.motor_effort is None or all_finite(reply.motor_effort))):
                self.counts["non_finite_command"] += 1
                return NoCommand("the command is not finite")
            if laws is self._absent:
                return NOTHING
        return reply

    def _sent(self, problem: str, rates: Array | None = None, motors: MotorReference | None = None) -> Command:
        """The last output of all channels as a command."""
        channels = self.channels
        assert channels[0].output is not None
        return Command(channels[0].output, rates, channels[1].output if len(channels) > 1 else None, motors, problem)

    def _mixed(self, new: Command | NoCommand, old: Command | NoCommand, safe: list[Array]) -> list[Array]:
        """C; the safe effort replaces a missing command of one of the laws."""
        fresh = safe if isinstance(new, NoCommand) else [
            channel.clip(effort) for channel, effort in zip(self.channels, new.efforts, strict=True)]
        self._faded = False
        if not self.laws.fading:
            return fresh
        before = safe if isinstance(old, NoCommand) else [
            channel.clip(effort) for channel, effort in zip(self.channels, old.efforts, strict=True)]
        self._faded = not all(map(np.array_equal, before, fresh))
        return [mix(b, f, self.laws.share) for b, f in zip(before, fresh, strict=True)]

    def _unmoved(self, before: tuple[Laws | None, Laws, float, float], again: Callable[[Laws], Efforts | None],
                 commands: list[Array]) -> list[Array]:
        """The output, before the rate limit, in this state with laws, u, w and references of the previous cycle; with
        the present commands if those are unknown.
        """
        def clipped(laws: Laws) -> list[Array] | None:
            efforts = again(laws)
            if efforts is None or not all(map(all_finite, efforts)):
                return None
            return [channel.limiter.clip(effort) for channel, effort in zip(self.channels, efforts, strict=True)]

        old, new, u, w = before
        safe = self._safe(False) if w < 1.0 else commands
        if w <= 0.0:
            return safe
        command = clipped(new)
        if command is not None and old is not None and u < 1.0:
            faded = clipped(old)
            command = None if faded is None else [mix(o, n, u) for o, n in zip(faded, command, strict=True)]
        return [mix(S, C, w) for S, C in zip(safe, command or commands, strict=True)]

    def _unmoved_since_stale(self) -> list[Array]:
        """The last output with the damping of this state added."""
        return [safe if channel.output is None else channel.limiter.clip(channel.output + safe - carried)
                for channel, safe, carried in zip(self.channels, self._safe(False), self._safe(True), strict=True)]

    def _safe(self, at_rest: bool) -> list[Array]:
        """Safe efforts S."""
        new = self._clipped_safe(self.laws.new, at_rest)
        if self.laws.old is None:
            return new
        old = self._clipped_safe(self.laws.old, at_rest)
        return [mix(o, n, self.laws.share) for o, n in zip(old, new, strict=True)]

    def _clipped_safe(self, laws: Laws, at_rest: bool) -> list[Array]:
        efforts = self._finite(laws, at_rest)
        return [channel.clip(effort) for channel, effort in zip(self.channels, efforts, strict=True)]

    def _resting(self) -> list[Array]:
        """S at rest before the limits, which may change while S is repeated."""
        new = self._finite(self.laws.new, True)
        if self.laws.old is None:
            return new
        return [mix(o, n, self.laws.share) for o, n in zip(self._finite(self.laws.old, True), new, strict=True)]

    def _finite(self, laws: Laws, at_rest: bool) -> list[Array]:
        """The safe efforts of these laws, the fallback if non-finite."""
        try:
            efforts = self._safe_efforts(laws, at_rest)
        except RbdError:
            return [channel.let_down for channel in self.channels]
        return [effort if all_finite(effort) else channel.let_down
                for channel, effort in zip(self.channels, efforts, strict=True)]
