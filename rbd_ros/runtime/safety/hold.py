"""Position hold of a robot that is stopped or waits for a command: bounded position feedback in the safe effort.

Gravity torque alone does not hold a position: with a model error of 5 % the arm drifts. Per coordinate, a damper and a
spring whose far end slips when its load exceeds a bound:

    effort = kp z − kd v,    ż = −v while |z| < z_max, else |z| = z_max

Like dry friction, the hold only dissipates energy; at rest z carries the error of the gravity torque. The damper is
unbounded, because light joints would be thrown about by brakes too weak for their share of the momentum. Gains of
accelerations act through the mass matrix, because gains of single joints would be too stiff for nearly parallel axes.
z is a sum of position differences, so the next state cancels an outlier where the spring did not slip. Of the states
after a pause, among which large ones are not rejected, none changes z.
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
    """Deflection z (n,) of the springs, 0 at the first `follow` after `forget`. turn (n,): 2π for angles that wrap,
    else 0.
    """

    def __init__(self, turn: Array) -> None:
        self._turn, self._zero = turn, np.zeros(len(turn))
        self.forget()

    def forget(self) -> None:
        """Release the hold."""
        self.deflection = self._zero
        self._last: Array | None = None

    def pause(self) -> None:
        """Suspend the hold while a command moves the coordinates; the next `follow` starts with relaxed springs.
        """
        self._last = None

    def follow(self, q: Array, most: Array, doubtful: bool = False) -> None:
        """Update the deflections for the coordinates q (n,). most (n,): as in `HoldGains`; of several, which fade, the
        largest. doubtful: q may be an outlier; the deflections stay, and the motion from this state on counts.
        """
        if self._last is None:
            self.deflection = self._zero
        elif not doubtful:
            moved = q - self._last
            moved -= self._turn * np.round(moved / (2.0 * np.pi))
            self.deflection = np.clip(self.deflection - moved, -most, most)
        self._last = np.array(q)

    def effort(self, gains: HoldGains, v: Array) -> Array:
        """Holding effort (n,) at the velocity v (n,)."""
        effort: Array = gains.kp * np.clip(self.deflection, -gains.most, gains.most) - gains.kd * v
        return effort if gains.mass is None else gains.mass @ effort
