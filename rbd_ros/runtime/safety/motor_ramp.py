"""Continuous motor references for drives with position control, starting at the measured motors.

A `Fade` mixes two things that are both alive. Here only one is: where the motors are, or were led, is known at one
moment only, and goes on neither by itself nor in steady time. The quantity that fades is therefore the offset from the
reference, a quintic that ends its position, velocity and acceleration together. The same jump times the share of a
fade, made smooth, would lead up to 1.4 times as far off the reference for a jump of the velocity, 3.6 times for one of
the acceleration.
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
        """The next reference is the first one."""
        self.last = self._fade = None

    def jump(self, now: float, wanted: MotorReference, duration: float) -> None:
        """Blend to other references, from the last one returned, so that a jump in every cycle is followed, too.
        """
        if self.last is not None:
            h = min(max(now - self._at, 0.0), 0.1 * duration)    # a pause is not made up for
            q, v, a, *_ = wanted
            before = wanted._replace(position=q - h * (v - 0.5 * h * a), velocity=v - h * a)
            self.begin(now - h, self.last, before, duration)

    def begin(self, now: float, start: MotorReference, wanted: MotorReference, duration: float) -> None:
        """At `now` (s) the motors are at `start`, and `duration` (s) later where they are wanted."""
        zero = np.zeros_like(wanted.position)
        jump = [have - want for have, want in zip(start[:4], wanted[:4], strict=True)]
        rest = np.concatenate([zero, zero])
        first = Waypoint(0.0, *(np.concatenate(pair) for pair in (jump[::3], (jump[1], zero), (jump[2], zero))))
        self._fade = Trajectory([first, Waypoint(duration, rest, rest, rest)], Reference.rest(rest))
        self._began = now

    def follow(self, now: float, wanted: MotorReference) -> MotorReference:
        """The blended reference."""
        if self._fade is not None and now - self._began >= self._fade.duration:
            self._fade = None
        if self._fade is not None:
            left, count = self._fade.sample(now - self._began), len(wanted.position)
            wanted = wanted._replace(
                position=wanted.position + left.q[:count], velocity=wanted.velocity + left.v[:count],
                acceleration=wanted.acceleration + left.a[:count], effort=wanted.effort + left.q[count:])
        self.last, self._at = wanted, now
        return wanted
