"""Stiffness setpoint filtered to be twice continuously differentiable, as the flatness map requires.

In a scaled time τ, dτ/dt = b, the stiffness follows its target with three poles at −1. The step response is monotone,
so the stiffness is a weighted mean of all its targets so far and never leaves their range. The poles only set the speed
b of τ; when they change during a motion, b follows them with two poles at `SPEED`, without a jump.
"""
from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
SPEED = 50.0    # 1/s
REST = 1e-9     # share of the target below which the remaining motion counts as rest


class SmoothStiffness:
    """Filter of k, k̇, k̈ (3, n) in `value`, with three poles at −b (n,) each (1/s) and no overshoot: between two
    constant targets the value stays between them. `advance` is exact for any time step.
    """

    def __init__(self, target: Array, poles: Array) -> None:
        self.target, self.poles = target, poles
        self.reset()

    def reset(self) -> None:
        """Set the value to the target, at rest."""
        zero = np.zeros_like(self.target)
        self._way = np.stack([self.target, zero, zero])    # k, dk/dτ, d²k/dτ²
        self._speed = np.stack([self.poles, zero])         # b, db/dt
        self.value = self._way.copy()
        self._resting = self._steady = True                # at the target, and with the poles

    def aim(self, target: Array, poles: Array) -> None:
        """Set the target. New poles act at once on a stiffness at rest, else within a few 1/`SPEED`."""
        if not np.array_equal(poles, self.poles):
            self.poles = poles
            self._speed = np.where(self._left() <= REST * np.abs(self.target), [poles, 0.0 * poles], self._speed)
            self._steady = False
        self.target, self._resting = target, False

    def advance(self, elapsed: float) -> Array:
        """`value` after `elapsed` seconds."""
        if self._resting:
            return self.value
        e, rate, acceleration = self._way[0] - self.target, self._way[1], self._way[2]
        t = self._own_time(max(elapsed, 0.0))
        c1 = rate + e
        c2 = 0.5 * (acceleration + 2.0 * rate + e)
        # e(τ) = (e + c₁ τ + c₂ τ²) exp(−τ) and its derivatives
        p, p1, p2 = e + t * (c1 + t * c2), c1 + 2.0 * t * c2, 2.0 * c2
        decay = np.exp(-t)
        self._way = np.stack([self.target + p * decay, (p1 - p) * decay, (p2 - 2.0 * p1 + p) * decay])
        k, first, second = self._way
        b, change = self._speed
        self.value = np.stack([k, b * first, b * b * second + change * first])
        if (self._left() <= REST * np.abs(self.target)).all():
            self.reset()
        return self.value

    def _left(self) -> Array:
        """Remaining motion to the target (n,), in its unit."""
        remaining: Array = np.maximum(np.abs(self._way[0] - self.target), np.abs(self._way[1:]).max(axis=0))
        return remaining

    def _own_time(self, t: float) -> Array:
        """Scaled time ∫ b dt over t seconds; updates `_speed` (b and its derivative)."""
        if self._steady:
            return self.poles * t
        d, change = self._speed[0] - self.poles, self._speed[1]
        c1 = change + SPEED * d
        decay = np.exp(-SPEED * t)
        # b(t) = poles + (d + c₁ t) exp(−SPEED t)
        self._speed = np.stack([self.poles + (d + c1 * t) * decay, (c1 - SPEED * (d + c1 * t)) * decay])
        passed = (1.0 - decay) / SPEED
        scaled: Array = self.poles * t + d * passed + c1 * (passed - t * decay) / SPEED
        return scaled
