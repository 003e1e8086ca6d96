"""Pacing of steps by absolute deadlines. Times are ns of a steady clock."""
from __future__ import annotations


class Patience:
    """Decides whether the next state waits for the command that answers the last one. Times are ns of a steady clock.

    Waiting is enabled by a command, and disabled when no command comes within `limit` ns (0: never wait).
    """

    def __init__(self) -> None:
        self.waits = 0    # number of due states that had to wait
        self._patient = self._unanswered = self._counted = False
        self._since = 0

    def published(self, now: int) -> None:
        self._unanswered, self._counted, self._since = self._patient, False, now

    def commanded(self, answers: bool = True) -> None:
        """Take a command; `answers`: whether it answers the last state."""
        self._patient = True
        if answers:
            self._unanswered = False

    def waiting(self, now: int, limit: float) -> bool:
        """Whether to delay the next state, which is due."""
        if self._unanswered and now - self._since >= limit:
            self._patient = self._unanswered = False
        if self._unanswered and not self._counted:
            self.waits, self._counted = self.waits + 1, True
        return self._unanswered

    def left(self, now: int, limit: float) -> float:
        """Remaining waiting time (ns) for a command."""
        return max(self._since + limit - now, 0.0) if self._unanswered else 0.0


class Pace:
    """Step k is due at `origin + k · period`, so that delays do not add up.

    period: ns of real time per step. tolerance: ns after the deadline from which a delivery counts as a miss. After a
    delay of more than `give_up` ns the schedule is shifted (counted in `skips`) instead of catching up.
    """

    def __init__(self, period: float, tolerance: float, give_up: float = 2.5e8) -> None:
        self.period, self.tolerance, self.give_up = period, tolerance, give_up
        self.misses = self.skips = 0
        self._origin = 0.0

    def start(self, now: int, steps: int = 0) -> None:
        """Start the schedule: `steps` are done and due now."""
        self._origin = now - steps * self.period

    def due(self, now: int, done: int) -> int:
        """The number of the last step that is due, at least `done`."""
        if now - self._origin - done * self.period > self.give_up:
            self.skips += 1
            self.start(now - int(self.period), done)
        return max(int((now - self._origin) / self.period), done)

    def left(self, now: int, step: int) -> float:
        """ns until this step is due."""
        return max(self._origin + step * self.period - now, 0.0)

    def delivered(self, now: int, step: int) -> None:
        """Record the delivery of this step's result, and count it if late."""
        if now - self._origin - step * self.period > self.tolerance:
            self.misses += 1
