"""The hold of a robot that is stopped or waits for a command: bounded feedback of position, in the safe effort.

Gravity torque alone does not hold a position: with an error of 5 % in the model the arm drifts away. Per coordinate, a
spring whose far end slips as soon as it carries more than a bound, and a damper:

    effort = kp z − kd v,    ż = −v while |z| < z_max, else |z| = z_max

As dry friction it only takes energy out, wherever the arm is pushed to; at rest z carries what gravity torque lacks.
The damper has no bound: brakes that are too weak for their share of the momentum would throw light joints about. Gains
of accelerations act through the mass matrix, as joints one by one would be too stiff where axes are nearly parallel.
z sums up differences of positions, so an outlier is gone with the next state.
"""
from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


class HoldGains(NamedTuple):
    """kp, kd (n,): N m/rad and N m s/rad, or 1/s² and 1/s with the mass matrix (n, n). most (n,): deflections, rad."""

    kp: Array
    kd: Array
    most: Array
    mass: Array | None = None


class PositionHold:
    """Deflection z (n,) of the springs, 0 where the coordinates are first followed after `forget`. turn (n,): 2π where
    angles wrap, else 0.
    """

    def __init__(self, turn: Array) -> None:
        self._turn, self._zero = turn, np.zeros(len(turn))
        self.forget()

    def forget(self) -> None:
        """Nothing is held."""
        self.deflection = self._zero
        self._last: Array | None = None

    def pause(self) -> None:
        """The coordinates go where nothing holds them: the springs stay as they are, and are relaxed when they are
        followed again.
        """
        self._last = None

    def follow(self, q: Array, most: Array) -> None:
        """The coordinates are at q (n,); most (n,): as in `HoldGains`."""
        if self._last is None:
            self.deflection = self._zero
        else:
            moved = q - self._last
            moved -= self._turn * np.round(moved / (2.0 * np.pi))
            self.deflection = np.clip(self.deflection - moved, -most, most)
        self._last = np.array(q)

    def effort(self, gains: HoldGains, v: Array) -> Array:
        """Holding effort (n,) at the velocity v (n,)."""
        effort: Array = gains.kp * self.deflection - gains.kd * v
        return effort if gains.mass is None else gains.mass @ effort
