"""A wanted stiffness that may jump, made twice continuously differentiable, as the flatness map needs it."""
from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


class StiffnessFilter:
    """k, k̇, k̈ (3, n) in `value`, three poles at −b (n,) each (1/s), without overshoot: the motion between two
    constant targets stays between them. `advance` is exact for any time.
    """

    def __init__(self, target: Array, poles: Array) -> None:
        self.target, self.poles = target, poles
        self.reset()

    def reset(self) -> None:
        """Rest at the target."""
        self.value = np.stack([self.target, np.zeros_like(self.target), np.zeros_like(self.target)])

    def advance(self, elapsed: float) -> Array:
        """`value` that many seconds later."""
        b, t = self.poles, max(elapsed, 0.0)
        e, rate, acceleration = self.value[0] - self.target, self.value[1], self.value[2]
        c1 = rate + b * e
        c2 = 0.5 * (acceleration + b * (2.0 * rate + b * e))
        # e(t) = (e + c₁ t + c₂ t²) exp(−b t) and its derivatives
        p, p1, p2 = e + t * (c1 + t * c2), c1 + 2.0 * t * c2, 2.0 * c2
        decay = np.exp(-b * t)
        self.value = np.stack([self.target + p * decay, (p1 - b * p) * decay, (p2 - b * (2.0 * p1 - b * p)) * decay])
        return self.value
