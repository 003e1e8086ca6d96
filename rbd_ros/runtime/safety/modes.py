"""The modes of a torque controller, and the weight of its command relative to the safe effort.

| mode       | output                                                                                  |
|------------|-----------------------------------------------------------------------------------------|
| `inactive` | none                                                                                    |
| `waiting`  | none before the first joint state; the safe effort while there is no command            |
| `ramp_in`  | between the safe effort and the command; on to the command within `ramp_in`             |
| `running`  | the command                                                                             |
| `ramp_out` | between both; back to the safe effort, or near it to what carried the robot at rest,    |
|            | within `ramp_out`, then that                                                            |
| `stale`    | no joint state for `state_timeout`: the last safe effort, or near it what carried the   |
|            | robot at rest, for `hold`, then a ramp to `fallback` within `fallback_ramp`, and that   |
|            | for ever. A fresh state starts `ramp_in`                                                |
| `stopped`  | emergency stop: the safe effort, or as `stale`, until `reset`                           |

Invariants: 0 ≤ weight ≤ 1; it grows by at most elapsed/ramp_in, only in `ramp_in`; it is 1 in `running`; it counts
in `ramp_in`, `running` and `ramp_out` alone.
"""
from __future__ import annotations


class Modes:
    """The state machine; times are s."""

    def __init__(self) -> None:
        self.mode = "inactive"
        self.weight = 0.0        # of the command; in `stopped`, the rest of the ramp that the stop replaced
        self.latched = False     # whether an emergency stop awaits `reset`
        self.leaving = False     # deactivated: no further ramp-in

    def activate(self) -> None:
        """Activate without a known state; an earlier emergency stop stays latched."""
        self.mode, self.weight, self.leaving = "stopped" if self.latched else "waiting", 0.0, False

    def deactivate(self) -> None:
        """Start the ramp to the safe effort."""
        self.leaving = True
        if self.mode in ("waiting", "ramp_in", "running", "stale"):
            self.mode = "ramp_out"

    def end(self) -> None:
        self.mode, self.weight = "inactive", 0.0

    def stop(self) -> None:
        """Emergency stop, latched through deactivation and activation. In `ramp_out` it replaces the ramp for the rest
        of its time.
        """
        self.latched = True
        if self.mode not in ("inactive", "stopped"):
            self.weight = self.weight if self.mode == "ramp_out" else 0.0
            self.mode = "stopped"

    def reset(self) -> None:
        """Release the emergency stop: ramp in as after activation."""
        self.latched = False
        if self.mode == "stopped":
            self.mode, self.weight = "ramp_out" if self.leaving else "waiting", 0.0

    def restart(self) -> None:
        """Ignore commands so far and ramp in as after activation; during deactivation, drop them."""
        if self.mode in ("ramp_in", "running"):
            self.mode, self.weight = "waiting", 0.0
        elif self.mode == "ramp_out":
            self.weight = 0.0

    def lose(self) -> None:
        """Handle the loss of joint states."""
        if self.mode not in ("stopped", "ramp_out"):
            self.mode = "stale"
        self.weight = 0.0

    def advance(self, elapsed: float, commanded: bool, ramp_in: float, ramp_out: float) -> None:
        """Advance for a joint state `elapsed` s after the last one; `commanded`: whether there is a command for it."""
        if self.mode == "stale" or (self.mode == "waiting" and commanded):
            self.mode, self.weight, elapsed = ("ramp_in" if commanded else "waiting"), 0.0, 0.0
        elif self.mode in ("ramp_in", "running") and not commanded:
            self.mode, self.weight = "waiting", 0.0
        elif self.mode in ("ramp_out", "stopped"):
            gone = self.mode == "ramp_out" and not commanded
            self.weight = 0.0 if gone or ramp_out <= 0.0 else max(self.weight - elapsed / ramp_out, 0.0)
        if self.mode == "ramp_in":
            self.weight = min(self.weight + elapsed / ramp_in, 1.0) if ramp_in > 0.0 else 1.0
            if self.weight >= 1.0:
                self.mode = "running"

    @property
    def share(self) -> float:
        """The weight of the command in the output."""
        return self.weight if self.mode in ("ramp_in", "running", "ramp_out") else 0.0
