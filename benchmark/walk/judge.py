"""Judges the outputs of one controller: which rules hold in a cycle follows from the events, never from the outputs."""
from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Hashable
from typing import Any

import numpy as np

from . import rules
from .recorder import Recorder
from .rules import Array, Cycle

MARGIN = 0.02     # s: some cycles that a ramp may take longer, as it begins and ends with one
SETTLED = 0.04    # s that velocities which are estimated, and whatever else looks back, need after a jump


class Chain:
    """What may count of something that changes within `ramp_in`: the newest, and older ones until their fade is over.
    `cuts`: where the newest is less than an older one, it counts at once.
    """

    def __init__(self, first: Array, cuts: bool) -> None:
        self._number, self._cuts = itertools.count(), cuts
        self.alive: dict[Hashable, Array] = {next(self._number): first}

    def change(self, newest: Array) -> None:
        if np.array_equal(newest, self.newest):
            return
        if self._cuts:
            self.alive = {key: np.minimum(each, newest) for key, each in self.alive.items()}
        self.alive[next(self._number)] = newest

    @property
    def newest(self) -> Array:
        return self.alive[next(reversed(self.alive))]

    def settle(self) -> None:
        if len(self.alive) > 1:
            self.alive = dict([self.alive.popitem()])


class Judge:
    """Call the methods named after events when they happen, and `updated`, `watched` or `finished` with each output.

    jumped: what references, wrenches or states do by themselves is no step of the controller's; from then on the
    torque is expected to be smooth again after `SETTLED`. changes: steepness of torques (N m/s) that is smooth.
    """

    def __init__(self, controller: Any, recorder: Recorder, smooth: float) -> None:
        self.violations: list[str] = []
        self.seen: Counter[str] = Counter()
        self.recorder = recorder
        self._controller, self.smooth = controller, smooth
        settings = [channel_settings for channel_settings in controller.limits(controller.settings)]
        self._limits = [Chain(each.effort_limit, True) for each in settings]
        self._fallbacks = [Chain(each.fallback, False) for each in settings]
        self._settings = settings
        self._ramp = settings[0].ramp_in    # the longest of those that something may still be fading by
        self._before: list[Cycle | None] = [None] * len(settings)
        self._last: list[Array | None] = [None] * len(settings)
        self._soft_at = self._jumped_at = self._unsafe_at = self._left_at = self._at = self._fresh_at = -np.inf
        self.leaving = self._hard = self._down = self.stopped = False
        self._released = False    # from an emergency stop, with no output since
        self._lacked = False      # there was no command for the last state
        self._way_out = 0.0    # s: the longest `ramp_out` since it began
        self._laws: set[int] = set()     # that were asked last
        self._counted = False, False    # whether commands took part in the last output, and safe efforts with them
        self._stale: list[dict[Hashable, Array]] | None = None
        self.active = False

    # ---- events

    def activate(self, now: float) -> None:
        self.active, self.leaving, self._stale = True, False, None
        self._at, self._unsafe_at = now, now
        self._before, self._last = [None] * len(self._settings), [None] * len(self._settings)
        for chain in (*self._limits, *self._fallbacks):
            chain.settle()

    def deactivate(self, now: float) -> None:
        if not self.leaving:
            self.leaving, self._left_at, self._way_out = True, now, self._settings[0].ramp_out

    def stop(self) -> None:
        self.stopped = self._hard = True

    def reset(self, now: float) -> None:
        if self.stopped:
            self.stopped, self._released = False, True

    def soft(self, now: float) -> None:
        """Something fades in from here."""
        self._soft_at, self._hard = now, self._hard or self._settings[0].ramp_in <= 0.0

    def jumped(self, now: float) -> None:
        self._jumped_at = now

    def changed(self, now: float) -> None:
        """Other settings."""
        old, self._settings = self._settings, self._controller.limits(self._controller.settings)
        for each, limits, fallbacks in zip(self._settings, self._limits, self._fallbacks, strict=True):
            limits.change(each.effort_limit)
            fallbacks.change(each.fallback)
        self._ramp = max(self._ramp, old[0].ramp_in, self._settings[0].ramp_in)
        if any((new.rate_limit > before.rate_limit).any() for new, before in zip(self._settings, old, strict=True)):
            self._hard = True    # what a rate limit held back comes at once
        self.soft(now)

    # ---- outputs

    def updated(self, now: float, outputs: list[Array]) -> None:
        """Of a joint state that was taken."""
        recorder, s = self.recorder, self._settings[0]
        commands = recorder.commands
        missing = not commands or None in commands.values()
        if missing:
            self._hard, self._unsafe_at = True, now
            self.seen["no command"] += 1
        if self._stale is not None:
            self._hard, self._stale = True, None
            self._unsafe_at = now
        if self._last[0] is None or self._released or self._lacked:    # ramps in from the first state that it answers
            self._released, self._unsafe_at = False, now
        self._lacked = missing
        self._settle(now)
        self._way_out = max(self._way_out, s.ramp_out)
        gone = self.leaving and now - self._left_at > max(self._way_out, self._ramp) + MARGIN
        counting = not (self.stopped or gone or all(each is None for each in commands.values()))
        fades = len(commands) > 1 or len(recorder.safe) > 1 or self._laws != set(commands)
        self._laws = set(commands)
        ramps = counting and bool(recorder.safe)
        # a law that lacked a command while it faded in ramps in after the fade
        ways = 3.0 if self._unsafe_at >= self._soft_at else 2.0
        exact = (not (missing or self.leaving or self.stopped) and now - self._soft_at > ways * self._ramp + MARGIN
                 and now - self._unsafe_at > self._ramp + MARGIN)
        ramp = s.ramp_out if self.leaving else s.ramp_in
        self._hard = self._hard or (ramp <= 0.0 and self._counted != (counting, ramps))
        self._counted = counting, ramps
        calm = now - self._jumped_at > SETTLED and not self._hard
        for at, output in enumerate(outputs):
            shares = [(fades or self._faded(at), s.ramp_in), (ramps or self._ramped(at), ramp),
                    (len(self._limits[at].alive) > 1, s.ramp_in), (len(self._fallbacks[at].alive) > 1, s.ramp_in)]
            values = recorder.values(at, self._fallbacks[at].alive, counting)
            cycle = self._judge(now, at, output, values, shares)
            if exact and np.isinf(cycle.rate).all():
                self._note(now, "running", self._exact(at, cycle))
                self.seen["exact"] += 1
            if calm and (before := self._before[at]) is not None:
                self._note(now, "smooth", self._jump(cycle, before))
                self.seen["smooth"] += 1
            self._before[at] = cycle
        self.seen["way out" if self.leaving else "stopped" if self.stopped else "on"] += 1
        self.seen["fading"] += fades
        self._hard, self._at, self._fresh_at = False, now, now

    def watched(self, now: float, outputs: list[Array] | None) -> None:
        """Of the watchdog; None if it had nothing to say."""
        s = self._settings[0]
        expected = self.active and self._last[0] is not None and now - self._fresh_at >= s.state_timeout
        if expected != (outputs is not None):
            self._note(now, "watchdog", f"output {outputs} at an age of {now - self._fresh_at:.4f} s of the state")
        if outputs is None:
            return
        if self._stale is None:
            self._hard = True
            self._stale = [self.recorder.values(at, chain.alive, False) for at, chain in enumerate(self._fallbacks)]
            self._down = False
        self._down = self._down or now - self._fresh_at >= s.state_timeout + s.hold
        self._settle(now)
        for at, output in enumerate(outputs):
            fallbacks = self._fallbacks[at].alive
            values = self._stale[at] | ({("F", key): each for key, each in fallbacks.items()} if self._down else {})
            ways = [(self._down, s.fallback_ramp), (len(fallbacks) > 1, s.ramp_in),
                    (len(self._limits[at].alive) > 1, s.ramp_in)]
            self._before[at] = self._judge(now, at, output, values, ways)
        self.seen["stale"] += 1
        self._hard, self._at, self._unsafe_at = False, now, now

    def finished(self, now: float, outputs: list[Array] | None) -> None:
        """The last output of all: no fades, no rate limit."""
        self.active, self.leaving = False, False
        for chain in (*self._limits, *self._fallbacks):
            chain.settle()
        for at, output in enumerate(outputs or []):
            values = self.recorder.values(at, self._fallbacks[at].alive, False) if self._stale is None else (
                self._stale[at] | {("F", 0): self._fallbacks[at].newest})
            cycle = Cycle(output, values, self._limits[at].alive, np.full(len(output), np.inf), 0.0)
            self._note(now, "finish", rules.limits(cycle, None) or rules.interval(cycle, None))
        self.seen["finished"] += 1
        self._stale = None

    # ---- how

    def _judge(self, now: float, at: int, output: Array, values: dict[Hashable, Array],
               ways: list[tuple[bool, float]]) -> Cycle:
        elapsed, last = now - self._at, self._last[at]
        shares = tuple(elapsed / ramp if ramp > 0.0 else 1.0 for goes, ramp in ways if goes)
        cycle = Cycle(np.array(output), values, dict(self._limits[at].alive), self._settings[at].rate_limit, elapsed,
                      shares)
        before, self._last[at] = self._before[at], cycle.output
        if not values:
            self._note(now, f"output {at}", f"{output}, though nothing was asked that it could be made of")
            return cycle
        if cycle.alone is not None and not rules.exact(cycle, cycle.alone) and before is not None \
                and before.alone is not None and before.values.keys() == values.keys() and np.isfinite(output).all():
            return cycle    # nothing but one law, as in the cycle before: no rule can be broken
        where = f"output {at}"
        self._note(now, where, rules.limits(cycle, last) or rules.interval(cycle, last))
        if last is not None and before is not None and not self._hard:
            self._note(now, where, rules.continuity(cycle, before))
            self.seen["continuous"] += 1
        return cycle

    def _exact(self, at: int, cycle: Cycle) -> str:
        """Nothing fades any more: the output is the command."""
        command, *others = self.recorder.commands.values()
        limit = self._limits[at].newest
        assert command is not None
        return "two laws are asked for longer than twice the ramp" if others else rules.exact(
            cycle, np.minimum(np.maximum(command[at], -limit), limit))

    def _jump(self, cycle: Cycle, before: Cycle) -> str:
        """A smooth motion makes a smooth torque, whatever fades in meanwhile."""
        spread = rules.distance(cycle, before) if cycle.ways else 0.0
        lowered = np.max([*before.limits.values()], axis=0) - np.max([*cycle.limits.values()], axis=0)
        most = (self.smooth * cycle.elapsed + sum(min(way, 1.0) for way in cycle.ways) * spread
                + np.maximum(np.where(np.isfinite(lowered), lowered, 0.0), 0.0))
        moved = np.abs(cycle.output - before.output)
        free = np.isinf(cycle.rate) & np.isinf(before.rate)
        return "" if (moved <= most)[free].all() else f"jumped by {moved}, expected at most {most}"

    def _faded(self, at: int) -> bool:
        before = self._before[at]
        return before is not None and (sum(key[0] == "C" for key in before.values) > 1    # type: ignore[index]
                                       or sum(key[0] == "S" for key in before.values) > 1)    # type: ignore[index]

    def _ramped(self, at: int) -> bool:
        before = self._before[at]
        return before is not None and len({key[0] for key in before.values}) > 1    # type: ignore[index]

    def _settle(self, now: float) -> None:
        if now - self._soft_at > 2.0 * self._ramp + MARGIN:
            for chain in (*self._limits, *self._fallbacks):
                chain.settle()
            self._ramp = self._settings[0].ramp_in

    def _note(self, now: float, where: str, wrong: str) -> None:
        if wrong and len(self.violations) < 5:
            self.violations.append(f"t = {now:.4f} s, {where}: {wrong}")
