"""Plausibility of a state after the last valid one, by clock, positions and velocities (`core.motion.continuity`).

Implausible states are rejected as outliers. CONFIRMED consecutive states that are consistent with each other are
accepted: the clock jumped, or the robot is in another position. In these, velocities beyond L must agree with the
positions: |v − w| ≤ T + SLACK/Δt. The velocity of a state after the timeout only has to satisfy |v| ≤ L.

Drivers may repeat positions with new stamps, above all after a gap (GAP periods). The time of gaps and of bitwise equal
positions is therefore added to the allowed motion of the next CAUGHT_UP states, until one of them moves by more than
would be possible without it; positions that stay equal for longer are those of a robot at rest. If by its velocities a
joint would have moved by STUCK meanwhile, they are those of a driver that repeats itself, and are rejected until they
change, or the measured velocities are those of a robot at rest, as at the end of a driver's low-pass filter.
"""
from __future__ import annotations

import math
from collections.abc import Sequence
from operator import gt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...core.motion.continuity import BRAKING, GROWTH, SLACK, WITHIN, follows_entry
from .stamps import LEAP, StampClock

Array = NDArray[np.float64]

CONFIRMED = 5         # states
GAP, CAUGHT_UP = 3.0, 8    # periods; states
STUCK, CREEP = 0.02, 0.05    # rad or m; rad/s or m/s: slower joints may be at rest
# meanings of an admitted state
FOLLOWS, CLOCK, ELSEWHERE = 0, 1, 2


class Implausible(Exception):
    """An implausible state. `kind`: of `Rejections.KINDS`."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class Known(NamedTuple):
    """A state: steady time of reception (s), time of its stamp (ns), positions and velocities."""

    now: float
    time_ns: int
    q: Array
    v: Array


class Plausibility:
    """Judges states of joints `names` with velocity limits `limit`. turn: 2π for angles that wrap, else 0. unit:
    factor of STUCK and CREEP, for coordinates that are neither angles nor lengths.
    """

    def __init__(self, names: Sequence[str], limit: Array, factor: Array | float, turn: Array,
                 unit: Array | float = 1.0) -> None:
        self._names, self._limit, self._turn, self._unit = names, limit, turn, unit
        self._creep = np.broadcast_to(CREEP * np.asarray(unit), len(limit)).tolist()
        self._wraps = bool(turn.any())
        self.clock = StampClock()
        self.last: Known | None = None
        self._suspect: Known | None = None
        self._suspects = 0
        self._went: Array | None = None     # by velocities, in units, while positions stayed equal
        self.stuck = False                  # whether a state in motion with the last positions will be rejected
        self._gap, self._behind = 0.0, 0    # s added to the allowed motion; number of further states
        self.allow(factor)

    def allow(self, factor: Array | float) -> None:
        """Allow velocities up to `factor` times the limits; inf: no check of that joint."""
        self._bound = factor * self._limit
        self._usual = np.where(np.isinf(self._bound), np.inf, self._limit)
        zero = np.zeros(len(self._limit))
        self._follows(Known(0.0, 0, zero, zero), zero, zero, 0.0, 0.0)    # compiled or loaded here, not in a cycle

    def admit(self, now: float, time_ns: int, q: Array, v: Array | None, timeout: float) -> int:
        """The meaning of a state; raises `Implausible`. v: None or NaN if not measured. `keep` must follow."""
        last = self.last
        if (self.stuck and last is not None and q.tobytes() == last.q.tobytes()
                and v is not None and self._moves(v)):
            i = int(np.argmax(np.abs(self._went)))    # type: ignore[arg-type]
            raise Implausible("repeated", "the driver repeats positions, which stay equal to the bit though joint "
                              f"'{self._names[i]}' moves at {last.v[i]:.3g} (rad/s or m/s)")
        if v is None:
            v = np.zeros_like(q) if last is None else last.v
        jump = trouble = ""
        if last is None:
            leap, fresh = False, False
            v = np.where(np.isnan(v), 0.0, v)
            trouble = self._too_fast(v, self._bound)
        else:
            passed, waited = (time_ns - last.time_ns) * 1e-9, now - last.now
            fresh = waited < timeout
            if passed < 0.0 and fresh:
                raise Implausible("stamp_backwards", f"went backwards by {-passed:.6f} s")
            leap = passed < 0.0 or self.clock.leaps(passed, waited)
            by_stamps = waited if leap else passed
            if not self._follows(last, q, v, by_stamps, waited):
                v = np.where(np.isnan(v), last.v, v)
                jump, trouble = self._problems(last, self._moved(last.q, q), v, by_stamps, waited, fresh)
        if trouble or jump or (fresh and leap):
            problem = ("stamp_leap", f"jumped ahead by {passed - waited:.6f} s") if fresh and leap else (
                "implausible", jump or trouble)
            self._confirm(Known(now, time_ns, q, v), problem)
        return CLOCK if leap else ELSEWHERE if jump else FOLLOWS

    def within(self, v: Array) -> Array:
        """Velocities (nv,) clipped to the allowed ones."""
        return np.clip(v, -self._bound, self._bound)

    def keep(self, now: float, time_ns: int, q: Array, v: Array, meaning: int) -> None:
        """Store an admitted state as the last valid one, and advance the clock."""
        last, state = self.last, Known(now, time_ns, q, v)
        if meaning == CLOCK:
            self.clock.restart()
        elif last is not None:
            self.clock.advance(now, (time_ns - last.time_ns) * 1e-9, now - last.now)
        self.settle(state, meaning != FOLLOWS)

    @property
    def bounds(self) -> tuple[Array, Array, Array]:
        """Arguments of `follows_entry`: bound, usual and turn."""
        return self._bound, self._usual, self._turn

    def settle(self, state: Known, anew: bool = False) -> None:
        """Store an admitted state, after the clock was advanced. anew: the state is a restart."""
        last, self._suspect, self.last = self.last, None, state
        went, self._went, self.stuck = self._went, None, False
        if last is None or anew:
            self._gap, self._behind = 0.0, -1
            return
        step = state.now - last.now
        if step > GAP * self.clock.period:
            self._gap, self._behind = self._gap + step, CAUGHT_UP
        elif state.q.tobytes() == last.q.tobytes():
            self._stay(state, last, went)
            self._behind = CAUGHT_UP if self._behind < 0 else self._behind - 1
            self._gap = self._gap + step if self._behind > 0 else 0.0
        elif self._gap:
            self._behind -= 1
            usual = np.maximum(self._bound, GROWTH * np.abs(last.v)) * 2.0 * self.clock.period + SLACK
            if self._behind <= 0 or (np.abs(self._moved(last.q, state.q)) > usual).any():
                self._gap, self._behind = 0.0, -1
        else:
            self._behind = -1

    def _stay(self, state: Known, last: Known, went: Array | None) -> None:
        """Note how far a robot with the positions of the last state went since, by its velocities. went: until then."""
        if not self._moves(state.v):
            return
        moves = np.abs(state.v) > self._creep
        step = state.v / self._unit * ((state.time_ns - last.time_ns) * 1e-9)
        self._went = np.where(moves, step if went is None else went + step, 0.0)
        self.stuck = bool((np.abs(self._went) > STUCK).any())

    def _moves(self, v: Array) -> bool:
        """Whether any joint's velocity, possibly NaN, shows motion. Python's functions are faster than NumPy's here."""
        return any(map(gt, map(abs, v.tolist()), self._creep))

    def forget(self) -> None:
        """Reset: the next state is the first one."""
        self.last = self._suspect = self._went = None
        self.stuck = False
        self._gap, self._behind = 0.0, -1
        self.clock.restart()

    def _confirm(self, state: Known, problem: tuple[str, str]) -> None:
        """Raise the problem, unless enough consecutive states agree with each other."""
        follows = self._suspect is not None and self._agree(self._suspect, state)
        self._suspects = self._suspects + 1 if follows else 1
        self._suspect = state
        if self._suspects < CONFIRMED:
            raise Implausible(*problem)

    @np.errstate(over="ignore", invalid="ignore")    # by absurd values
    def _agree(self, one: Known, other: Known) -> bool:
        passed, waited = (other.time_ns - one.time_ns) * 1e-9, other.now - one.now
        if not 0.0 <= passed <= waited + LEAP:
            return False
        longest, at_least = max(passed, waited, 2.0 * self.clock.period), max(passed, self.clock.period)
        moved = self._moved(one.q, other.q)
        fast = np.abs(other.v) > self._bound
        tolerance = self._tolerance(longest) + SLACK / at_least
        reach = np.where(fast, np.abs(other.v) + tolerance, self._bound) * longest + SLACK
        against = fast & (np.abs(other.v - moved / at_least) > tolerance)
        return bool((np.abs(moved) <= reach).all() and not against.any())

    def _follows(self, last: Known, q: Array, v: Array, passed: float, waited: float) -> bool:
        period = self.clock.period
        return bool(follows_entry(last.q, last.v, q, v, self._bound, self._usual, self._turn,
                                  max(passed, waited, 2.0 * period) + self._gap, max(passed, period)))

    @np.errstate(over="ignore", invalid="ignore")
    def _problems(self, last: Known, moved: Array, v: Array, passed: float, waited: float,
                  fresh: bool) -> tuple[str, str]:
        """Problems of the positions, and of the velocities."""
        at_least = max(passed, self.clock.period)
        longest = max(passed, waited, 2.0 * self.clock.period) + self._gap
        fastest = np.maximum(self._bound, GROWTH * np.abs(last.v))
        reach = fastest * longest + SLACK
        jump = ""
        if not (np.abs(moved) <= reach).all():
            i = int(np.argmax(np.nan_to_num(np.abs(moved) / reach, nan=np.inf)))
            jump = (f"position of joint '{self._names[i]}' moved by {moved[i]:.4g} within {longest:.4g} s, at most "
                    f"{reach[i]:.4g} (rad or m, parameter 'plausible_velocity')")
        if not fresh:
            return jump, self._too_fast(v, self._bound)
        trouble = self._too_fast(v, fastest)
        if not trouble and not jump:
            tolerance, quotient = self._tolerance(longest), moved / at_least
            low, high = np.minimum(last.v, quotient) - tolerance, np.maximum(last.v, quotient) + tolerance
            over = np.maximum(low - v, v - high)
            if not (over <= 0.0).all():
                i = int(np.argmax(over))
                trouble = (f"velocity of joint '{self._names[i]}' is {v[i]:.4g}, after {last.v[i]:.4g}, and the "
                           f"positions give {quotient[i]:.4g}: expected {low[i]:.4g} to {high[i]:.4g} (rad/s or m/s)")
        return jump, trouble

    @np.errstate(over="ignore", invalid="ignore")
    def _too_fast(self, v: Array, bound: Array) -> str:
        if (np.abs(v) <= bound).all():
            return ""
        i = int(np.argmax(np.abs(v) / bound))
        return (f"velocity of joint '{self._names[i]}' is {v[i]:.4g}, at most {bound[i]:.4g} (rad/s or m/s, parameter "
                "'plausible_velocity')")

    def _tolerance(self, elapsed: float) -> Array:
        return (WITHIN + elapsed / BRAKING) * self._usual

    def _moved(self, one: Array, other: Array) -> Array:
        moved = other - one
        return moved - self._turn * np.round(moved / (2.0 * math.pi)) if self._wraps else moved
