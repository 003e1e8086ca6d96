"""A force on what the link touches: feed-forward of the setpoint, and an integral on the difference to a measurement.

    x = low-pass of the setpoint (two poles at −k),   a = x / |x|
    applied = a (|x| + i),   i' = K (|x| − a·measured),   |i| ≤ bound |x|

for moment and force alone, in axes of the root link about the origin of the controlled one. Without a fresh measurement
i decays at the rate K. The whole fades as the energy tank becomes empty: a link that loses its contact goes as far as
the tank's energy allows.
"""
from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..parameters import parameter

Array = NDArray[np.float64]
NOTHING = 1e-3    # N m and N: setpoints below are over


@dataclass(frozen=True, kw_only=True)
class ForceSettings:
    """Validated parameters of force control."""

    topic: str = parameter("", "Measured wrenches on the link, geometry_msgs/WrenchStamped: ~/external_wrench of node "
                           "observer, or of a sensor with its sign; empty: feed-forward alone.", name="force.topic",
                           read_only=True)
    largest: float = parameter(50.0, "Setpoints with a larger force are rejected, N.", name="force.largest",
                               lower=1e-3, upper=1e5)
    largest_moment: float = parameter(10.0, "Setpoints with a larger moment are rejected, N m.",
                                      name="force.largest_moment", lower=1e-3, upper=1e4)
    contact: float = parameter(5000.0, "Stiffness of what the link presses on, N/m: the damping along the setpoint is "
                               "that of a spring of this.", name="force.contact_stiffness", lower=0.0, upper=1e6)
    low_pass: float = parameter(10.0, "Bandwidth of the filter of the setpoint, 1/s.", name="force.bandwidth",
                                lower=0.1, upper=100.0)
    integral: float = parameter(2.0, "Rate of the integral on the difference to the measurement, 1/s; 0: feed-forward "
                                "alone.", name="force.integral", lower=0.0, upper=20.0)
    bound: float = parameter(0.3, "Largest correction by the integral, as a share of the setpoint.",
                             name="force.integral_bound", lower=0.0, upper=1.0)
    max_age: float = parameter(0.1, "Age from which measured wrenches do not count, s.", name="force.max_age",
                               lower=1e-3, upper=10.0)


class ForceControl:
    """The wrench of one controller; arrays (6,), moment first."""

    def __init__(self, settings: ForceSettings) -> None:
        self.settings = settings
        self.clear()

    def clear(self) -> None:
        """No setpoint, at once."""
        self.goal, self.setpoint, self._rate = np.zeros((3, 6))
        self._integral, self._measured, self._measured_at = np.zeros(2), np.zeros(6), -math.inf

    @property
    def active(self) -> bool:
        """Whether there is a setpoint."""
        return bool(self.goal.any() or self.setpoint.any())

    def aim(self, wrench: Array) -> None:
        """Another setpoint: the wrench of the link on what it touches."""
        self.goal = wrench

    def measure(self, now: float, wrench: Array) -> None:
        """Take a measurement: the wrench of the link on what it touches, at time now (s)."""
        self._measured, self._measured_at = wrench, now

    @property
    def measured(self) -> Array:
        return self._measured

    def advance(self, now: float, dt: float, acts: bool) -> Array:
        """The applied wrench, and the present setpoint, (12,), after dt (s). acts: whether the law has its whole
        effect, so that the integral makes sense.
        """
        settings = self.settings
        k, decay = settings.low_pass, math.exp(-settings.low_pass * dt)
        off = self.setpoint - self.goal
        push = self._rate + k * off
        self.setpoint, self._rate = self.goal + (off + push * dt) * decay, (push - k * (off + push * dt)) * decay
        if not self.goal.any() and np.abs(self.setpoint).max() < NOTHING:
            self.setpoint, self._rate = np.zeros((2, 6))
        applied, fresh = np.zeros(12), now - self._measured_at < settings.max_age
        for part, most in enumerate((settings.largest_moment, settings.largest)):
            place = slice(3 * part, 3 * part + 3)
            x = self.setpoint[place]
            size = float(np.linalg.norm(x))
            if size <= 0.0:
                self._integral[part] = 0.0
                continue
            axis, i = x / size, self._integral[part]
            if fresh and acts:
                i += settings.integral * dt * (size - axis @ self._measured[place])
            elif not fresh:
                i *= math.exp(-settings.integral * dt)
            self._integral[part] = i = min(max(i, -settings.bound * size), settings.bound * size)
            applied[place] = axis * min(size + i, (1.0 + settings.bound) * most)
        applied[6:] = self.setpoint
        return applied
