"""One output of the safety filter: its settings, limits, fallback and last effort."""
from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..parameters import parameter
from .fade import Fade, mix
from .limiter import Limiter

Array = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class SafetySettings:
    """Limits (nv,) in N m or N and per second, inf for none; times in s. rate_limit: `Channel.emit`."""

    effort_limit: Array
    rate_limit: Array = parameter((math.inf,), "Rate limit of what references, ramps and fades change in the effort, N "
                                  "m/s or N/s; the response to the state is not held back.", name="effort_limits.rate",
                                  lower=1e-3)
    state_timeout: float = parameter(0.05, "Age of the last joint state at which the safe output begins, s.",
                                     lower=1e-3, upper=10.0)
    ramp_in: float = parameter(0.5, "Time from the safe output to the command after activation, and to the new command "
                               "after a change of parameters or when a stream begins elsewhere, s.", lower=0.0,
                               upper=60.0)
    ramp_out: float = parameter(0.5, "Time from the command to the safe output at deactivation and at the end, s.",
                                lower=0.0, upper=60.0)
    hold: float = parameter(0.5, "How long the safe effort of the last state is held after states stop, s.",
                            name="safe_output.hold", lower=0.0, upper=1e6)
    fallback_ramp: float = parameter(1.0, "Duration of the ramp to the fallback after that, s.",
                                     name="safe_output.fallback_ramp", lower=0.0, upper=1e6)
    fallback: Array = parameter((0.0,), "Effort that is published for ever after that, N m or N.",
                                name="safe_output.fallback", lower=-1e9, upper=1e9)


class Channel:
    """One output: limits, fallback, and last effort (n,)."""

    def __init__(self, settings: SafetySettings) -> None:
        self.limiter = Limiter(settings.effort_limit, settings.rate_limit)
        self.fallback: Fade[Array] = Fade(np.array(settings.fallback))
        self.output: Array | None = None
        self.counts = Counter({"saturated": 0, "rate_limited": 0})
        self.saturated = False    # whether a contribution to the last output was clipped
        self.held: Array | None = None    # correction of the last output by the rate limit; None: none

    def use(self, settings: SafetySettings) -> None:
        self.limiter.use(settings.effort_limit, settings.rate_limit)
        if not np.array_equal(settings.fallback, self.fallback.newest):
            self.fallback.change(np.array(settings.fallback))

    @property
    def fading(self) -> bool:
        """Whether limits or the fallback are fading."""
        return self.limiter.fading or self.fallback.fading

    def keep(self, effort: Array) -> None:
        """Emit an effort that needs no limit."""
        self.output, self.saturated, self.held = effort, False, None

    def advance(self, elapsed: float, duration: float) -> None:
        if self.fading:
            self.limiter.advance(elapsed, duration)
            self.fallback.advance(elapsed, duration)

    def clip(self, effort: Array) -> Array:
        """Clip the effort to the limits, and record whether it was clipped."""
        clipped, same = self.limiter.clipped(effort)
        self.saturated = self.saturated or not same
        return clipped

    @property
    def let_down(self) -> Array:
        """The present fallback within the limits."""
        fade, clip = self.fallback, self.limiter.clip
        return clip(fade.new) if fade.old is None else mix(clip(fade.old), clip(fade.new), fade.share)

    def emit(self, effort: Array, elapsed: float, unmoved: Callable[[], Array] | None = None) -> None:
        """Output an effort that is within the limits, `elapsed` s after the last one.

        The rate limit applies to changes by references, fades and ramps, never to the response to the measured state:
        late feedback destabilises the arm. unmoved: the effort in this state with references, fades and ramps of the
        previous cycle, within the limits; None: a mode that ends at once, without a rate limit.
        """
        self.counts["saturated"] += self.saturated
        held, self.held = self.held, None
        if unmoved is not None and self.output is not None and self.limiter.limits_rate:
            near, same = self.limiter.follow(effort, self.output, elapsed)
            if not same:
                unlimited = unmoved() - effort + (0.0 if held is None else held)
                added = np.clip(near - effort, np.minimum(unlimited, 0.0), np.maximum(unlimited, 0.0))
                if added.any():
                    self.held = added
                    self.counts["rate_limited"] += 1
                    effort = self.limiter.clip(effort + added)
        self.output = effort
