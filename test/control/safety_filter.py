"""A safety filter with plain numbers, for the tests of its parts."""
from __future__ import annotations

import dataclasses

import numpy as np

from rbd_ros.runtime.safety import Command, NoCommand, SafetyFilter, SafetySettings

SAFE, AT_REST = np.array([1.0, 2.0]), np.array([1.5, 2.5])
COMMAND, FALLBACK = np.array([5.0, -4.0]), np.array([0.5, 0.0])
FREE = np.full(2, np.inf)


class PlainFilter(SafetyFilter):
    """Commands are given as numbers: one for all laws, or `{laws: command}`. Laws are whatever names them. The outputs
    are numbers, too; `sent` is the last of them with all that goes with it, `ends` is between what it has to lie.
    """

    def __init__(self, settings, safe=None):
        self.wanted, self.lacks = {}, False    # lacks: a finite command
        super().__init__([settings], "first", safe or (lambda laws, at_rest: [AT_REST if at_rest else SAFE]))

    def update(self, now, command, response=0.0):
        """response: of the command to the state, which moved since the cycle before."""
        before, self.wanted = self.wanted, {}

        def asked(laws):
            wanted = self.wanted[laws] = command[laws] if isinstance(command, dict) else command
            return NoCommand() if wanted is None else Command(wanted)

        def again(laws):
            return None if before.get(laws) is None else (before[laws] + response,)

        self.ends = []
        sent = self._number(super().update(now, asked, again))
        self.lacks = any(each is None or not np.isfinite(each).all() for each in self.wanted.values())
        return sent

    def watchdog(self, now):
        return self._number(super().watchdog(now))

    def finish(self, now):
        return self._number(super().finish(now))

    def _number(self, sent):
        self.sent = sent
        return None if sent is None else sent.effort

    def _safe(self, at_rest):
        safe = super()._safe(at_rest)
        self.ends.append(safe[0])
        return safe

    def _mixed(self, *commands_and_safe):
        command = super()._mixed(*commands_and_safe)
        self.ends.append(command[0])
        return command

    def set(self, laws=None, **changes):
        """Other settings, and other laws if they are named."""
        self.use([dataclasses.replace(self.settings, **changes)], laws or self.laws.newest)
        if laws is None:
            self.laws.replace(self.laws.new)


def make(**changes):
    settings = SafetySettings(effort_limit=FREE, rate_limit=FREE, fallback=FALLBACK, state_timeout=0.05, hold=0.1,
                              fallback_ramp=0.2, ramp_in=0.5, ramp_out=0.25)
    safety = PlainFilter(dataclasses.replace(settings, **changes))
    safety.activate(0.0)
    return safety


def close(actual, expected):
    np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-12)


def running(**changes):
    safety = make(**{"ramp_in": 0.0} | changes)
    close(safety.update(1.0, COMMAND), COMMAND)
    assert safety.mode == "running"
    return safety
