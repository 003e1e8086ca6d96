"""Continuous motor references for drives with position control, starting at the measured motors.

A `Fade` mixes two objects that are both evaluated. Here the start (the measured motors, or the last reference) is known
at one instant only. The offset from the reference is therefore faded out: by a quintic, whose position, velocity and
acceleration reach zero together. A jump multiplied by a smooth share of a fade would deviate up to 1.4 times as far
from the reference for a jump of velocity, and 3.6 times for a jump of acceleration.
"""
from __future__ import annotations

import numpy as np

from ...core.actuation.motor_reference import MotorReference
from ...core.motion.trajectory import Reference, Trajectory, Waypoint


class MotorRamp:
    """Blends jumps of the motor reference as a quintic in time: position, velocity and acceleration stay continuous and
    derivatives of each other; the effort likewise. `last`: the last reference returned. All times (s) are those of the
    references, simulated time in a simulation.
    """

    def __init__(self) -> None:
        self.last: MotorReference | None = None
        self._fade: Trajectory | None = None
        self._began = self._at = 0.0

    @property
    def rests(self) -> bool:
        """Whether references pass unchanged."""
        return self._fade is None and self.last is not None

    def forget(self) -> None:
        """Reset: the next reference is the first one."""
        self.last = self._fade = None

    def jump(self, now: float, wanted: MotorReference, duration: float) -> None:
        """Start a blend from the last returned reference to `wanted`; jumps in every cycle are blended, too."""
        if self.last is not None:
            h = min(max(now - self._at, 0.0), 0.1 * duration)    # a longer pause is not extrapolated
            q, v, a, *_ = wanted
            before = wanted._replace(position=q - h * (v - 0.5 * h * a), velocity=v - h * a)
            self.begin(now - h, self.last, before, duration)

    def begin(self, now: float, start: MotorReference, wanted: MotorReference, duration: float) -> None:
        """Start a blend at `now` (s) from `start` to `wanted`, over `duration` (s)."""
        zero = np.zeros_like(wanted.position)
        jump = [have - want for have, want in zip(start[:4], wanted[:4], strict=True)]
        zeros = np.concatenate([zero, zero])
        first = Waypoint(0.0, *(np.concatenate(pair) for pair in (jump[::3], (jump[1], zero), (jump[2], zero))))
        self._fade = Trajectory([first, Waypoint(duration, zeros, zeros, zeros)], Reference.rest(zeros))
        self._began = now

    def follow(self, now: float, wanted: MotorReference) -> MotorReference:
        """The blended reference."""
        if self._fade is not None and now - self._began >= self._fade.duration:
            self._fade = None
        if self._fade is not None:
            offset, count = self._fade.sample(now - self._began), len(wanted.position)
            wanted = wanted._replace(
                position=wanted.position + offset.q[:count], velocity=wanted.velocity + offset.v[:count],
                acceleration=wanted.acceleration + offset.a[:count], effort=wanted.effort + offset.q[count:])
        self.last, self._at = wanted, now
        return wanted
