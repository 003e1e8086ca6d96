"""A smooth motion, and what a robot that nearly follows it reports."""
from __future__ import annotations

import numpy as np

Array = np.ndarray


class Motion:
    """Sines per joint within ±1 rad; times in s."""

    def __init__(self, joints: int, rng: np.random.Generator) -> None:
        self._amplitude, self._rate = rng.uniform(0.1, 0.4, joints), rng.uniform(0.5, 2.0, joints)
        self._phase, self.offset = rng.uniform(0.0, 6.0, joints), np.zeros(joints)
        self._joint = np.arange(joints)

    def __call__(self, t: float) -> Array:
        """q, v, a, jerk, snap (5, n)."""
        A, w = self._amplitude, self._rate
        s, c = A * np.sin(w * t + self._phase), A * np.cos(w * t + self._phase)
        return np.array([s + self.offset, w * c, -w**2 * s, -w**3 * c, w**4 * s])

    def measured(self, t: float) -> Array:
        """q, v (2, n) of the robot, wherever the references of now are."""
        x, y = self._rate * t + self._phase, 7.0 * t + self._joint
        return np.array([self._amplitude * np.sin(x) + 0.01 * np.sin(y),
                         self._amplitude * self._rate * np.cos(x) + 0.07 * np.cos(y)])
