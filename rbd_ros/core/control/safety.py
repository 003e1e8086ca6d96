"""The safety filter: a small state machine between a control law and the robot. Time is an argument (s, steady).

Downstream controllers latch the last torque that they received, so silence is not safe. While a robot is active there
is always an output, and every output is finite, within the effort limits and, if set, within the rate limits.

| mode       | output                                                                                  |
|------------|-----------------------------------------------------------------------------------------|
| `inactive` | none                                                                                    |
| `waiting`  | none before the first joint state; the safe effort while there is no command            |
| `ramp_in`  | from the safe effort to the command within `ramp_in`                                    |
| `running`  | the command                                                                             |
| `ramp_out` | from the command to the safe effort within `ramp_out`, then the safe effort             |
| `stale`    | no joint state for `state_timeout`: the last safe effort for `hold`, then a ramp to     |
|            | `fallback` within `fallback_ramp`, and that for ever. A fresh state starts `ramp_in`    |
| `stopped`  | emergency stop: the safe effort, or as `stale`, until `reset`                           |
"""
from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .inputs import all_finite

Array = NDArray[np.float64]


@dataclass(frozen=True)
class SafetySettings:
    """Limits (nv,) in N m or N and per second, inf for none; times in s."""

    effort_limit: Array
    rate_limit: Array
    fallback: Array
    state_timeout: float = 0.05
    hold: float = 0.5
    fallback_ramp: float = 1.0
    ramp_in: float = 0.5
    ramp_out: float = 0.5

    @property
    def limits_rate(self) -> bool:
        return bool(np.isfinite(self.rate_limit).any())


class SafetyFilter:
    """Filters the commands of one robot: call `update` with each joint state and `watchdog` regularly.

    `safe_effort(at_rest)`: what is safe in the last known state; `at_rest` leaves out damping, for an output that is
    to be repeated or latched when the velocity is no longer known.
    """

    def __init__(self, settings: SafetySettings, safe_effort: Callable[[bool], Array]) -> None:
        self.settings = settings
        self.mode = "inactive"
        self.output: Array | None = None     # last one, (nv,)
        self.clipped = False                 # last output differs from the command
        self._rated = False                  # last output differs from what was meant by the rate limit
        self.counts = Counter({"saturated": 0, "rate_limited": 0, "non_finite_command": 0, "timeouts": 0})
        self._safe_effort = safe_effort
        self._stale_effort: Array | None = None
        self._offset: Array | None = None    # command less safe effort when `ramp_out` began
        self._weight = 0.0                   # of the command
        self._latched = False                # an emergency stop that was not reset
        self._leaving = False                # deactivated: nothing ramps in any more
        self._softening = False              # the next command jumps
        self._wanted: Array | None = None    # last command, with what was left of the last jump
        self._jump: Array | None = None      # last jump, less what the limits hold back
        self._left = 0.0                     # of it
        self._fresh_at = self._time = self._output_at = 0.0

    # ---- events

    def activate(self, now: float) -> None:
        """Begin: nothing is known yet, but an emergency stop from before still holds."""
        self.mode, self._weight, self._time, self._output_at = "waiting", 0.0, now, now
        if self._latched:
            self.mode = "stopped"
        self._leaving = False
        self.output = self._offset = self._stale_effort = None

    def deactivate(self) -> None:
        """Begin the way out; `finished` tells when the safe effort is reached."""
        self._leaving = True
        if self.mode in ("waiting", "ramp_in", "running", "stale"):
            self.mode = "ramp_out"

    @property
    def finished(self) -> bool:
        """Whether command and rate limit have no influence on the output any more."""
        return self.mode not in ("ramp_in", "running") and self._weight <= 0.0 and self.settled

    @property
    def settled(self) -> bool:
        """Whether the last output is what was meant, whatever the rate limit."""
        return not self._rated

    def finish(self, now: float) -> Array | None:
        """The last output of all, which stays latched downstream: the safe effort at rest. None before any output.

        A robot that is being let down, or was, gets the fallback. The rate limit does not hold here: what is latched
        is for ever.
        """
        if self.output is not None and self.mode != "inactive":
            s, stale = self.settings, self._stale_effort
            self.output = None
            if stale is None:
                self._emit(self._finite_safe(True), now)
            else:
                self._emit(s.fallback if now - self._fresh_at > s.state_timeout + s.hold else stale, now)
        self.mode = "inactive"
        return self.output

    def stop(self) -> None:
        """Emergency stop, latched: through deactivation and activation, too. It takes the place of the ramp on the way
        out, for what is left of its time.
        """
        self._latched = True
        if self.mode not in ("inactive", "stopped"):
            self._weight = self._weight if self.mode == "ramp_out" else 0.0
            self.mode, self._rated = "stopped", self.settings.limits_rate    # until the next output tells

    @property
    def latched(self) -> bool:
        """Whether an emergency stop waits to be reset."""
        return self._latched

    def reset(self) -> None:
        """Release the emergency stop: ramp in as after activation."""
        self._latched = False
        if self.mode == "stopped":
            self.mode, self._weight = "ramp_out" if self._leaving else "waiting", 0.0

    @property
    def patience(self) -> float:
        """How long without states, in s, until the robot has nothing to do any more with what it was commanded."""
        return self.settings.state_timeout + min(self.settings.hold, 1.0)

    def abandoned(self, now: float) -> bool:
        """Whether the robot is stopped, or was without states for longer than `patience`."""
        return self.mode == "stopped" or (self.output is not None and now - self._fresh_at > self.patience)

    def restart(self) -> None:
        """The robot begins to listen only now: ramp in as after activation."""
        if self.mode in ("ramp_in", "running"):
            self.mode, self._weight = "waiting", 0.0

    def soften(self) -> None:
        """The next command may jump, as settings or references are others: let the difference fade out within
        `ramp_in`. Lower limits, safe efforts and the changes of the command itself act at once. To be called before
        the settings change: what the limits of now hold back is no part of the jump.
        """
        self._softening = True
        if self._wanted is not None:
            self._wanted = np.clip(self._wanted, -self.settings.effort_limit, self.settings.effort_limit)

    # ---- outputs

    def update(self, now: float, command: Array | None) -> Array:
        """Output for a fresh joint state; `command` is None as long as there is none."""
        elapsed, self._time, self._fresh_at = max(now - self._time, 0.0), now, now
        self._stale_effort = None
        if command is not None and not all_finite(command):
            self.counts["non_finite_command"] += 1
            command = None
        self._advance(elapsed, command is not None)
        if command is not None and (self._softening or self._jump is not None):
            command = self._softened(command, elapsed)
        self._wanted = command
        if self.mode == "running" and command is not None:
            self._offset = None
            return self._emit(command, now)
        safe = self._finite_safe(False)
        if self.mode == "ramp_in" and command is not None:
            limit = self.settings.effort_limit    # else the ramp to a command far beyond it was a step
            return self._emit(safe + self._weight * (np.clip(command, -limit, limit) - safe), now)
        if self.mode == "ramp_out" and self._weight > 0.0 and self.output is not None:
            if self._offset is None:
                self._offset = (self.output - safe) / self._weight
            return self._emit(safe + self._weight * self._offset, now)
        return self._emit(safe, now)

    def _advance(self, elapsed: float, commanded: bool) -> None:
        s = self.settings
        if self.mode == "stale" or (self.mode == "waiting" and commanded):
            self.mode, self._weight = ("ramp_in" if commanded else "waiting"), 0.0
            elapsed, self._wanted, self._jump = 0.0, None, None
        elif self.mode in ("ramp_in", "running") and not commanded:
            self.mode, self._weight = "waiting", 0.0
        elif self.mode in ("ramp_out", "stopped"):
            self._weight = max(self._weight - elapsed / s.ramp_out, 0.0) if s.ramp_out > 0.0 else 0.0
        if self.mode == "ramp_in":
            self._offset = None
            self._weight = min(self._weight + elapsed / s.ramp_in, 1.0) if s.ramp_in > 0.0 else 1.0
            if self._weight >= 1.0:
                self.mode = "running"

    def _softened(self, command: Array, elapsed: float) -> Array:
        """The command, and what is left of its last jump. Jumps upon jumps go on fading: if there is one in every cycle
        the output follows the command as a low-pass does.
        """
        s = self.settings
        limited = np.clip(command, -s.effort_limit, s.effort_limit)
        passed = elapsed / s.ramp_in if s.ramp_in > 0.0 else 1.0
        if self._softening:
            self._softening, self._left = False, 1.0 if self._jump is None else 1.0 - passed
            self._jump = None if self._wanted is None else np.clip(
                self._wanted, -s.effort_limit, s.effort_limit) - limited
        else:
            self._left -= passed
        if self._jump is None or not self._jump.any() or self._left <= 0.0 or s.ramp_in <= 0.0:
            self._jump = None
            return command
        soft: Array = limited + self._left * self._jump
        return soft

    def watchdog(self, now: float) -> Array | None:
        """Output if the state is stale; None while it is fresh, or before the first one."""
        s, age = self.settings, now - self._fresh_at
        if self.mode == "inactive" or self.output is None or age < s.state_timeout:
            return None
        if self._stale_effort is None:
            self.counts["timeouts"] += 1
            self._stale_effort = self._finite_safe(True)
        if self.mode not in ("stopped", "ramp_out"):
            self.mode = "stale"
        self._weight, self._time = 0.0, now
        held = age - s.state_timeout - s.hold
        weight = min(max(held / s.fallback_ramp, 0.0), 1.0) if s.fallback_ramp > 0.0 else float(held >= 0.0)
        return self._emit((1.0 - weight) * self._stale_effort + weight * s.fallback, now)

    def without_states(self, now: float) -> str:
        """What `watchdog` gives at this time, in words."""
        s, held = self.settings, now - self._fresh_at - self.settings.state_timeout - self.settings.hold
        if held <= 0.0:
            return "publishing the safe effort"
        return f"{'on the way to' if held < s.fallback_ramp else 'publishing'} 'safe_output.fallback'"

    def _finite_safe(self, at_rest: bool) -> Array:
        safe = self._safe_effort(at_rest)
        return safe if all_finite(safe) else self.settings.fallback

    def _emit(self, effort: Array, now: float) -> Array:
        """Saturate, limit the rate by the elapsed time, remember."""
        s = self.settings
        limited = np.minimum(np.maximum(effort, -s.effort_limit), s.effort_limit)
        clipped = not np.array_equal(limited, effort)
        self.counts["saturated"] += clipped
        self._rated = False
        if s.limits_rate and self.output is not None:
            step = s.rate_limit * max(now - self._output_at, 0.0)
            within = np.minimum(np.maximum(limited, self.output - step), self.output + step)
            self._rated = not np.array_equal(within, limited)
            self.counts["rate_limited"] += self._rated
            clipped, limited = clipped or self._rated, within
        self.clipped = clipped or self.mode != "running" or self._jump is not None
        self.output, self._output_at = limited, now
        return limited
