"""Efforts that carry a robot at rest after its joint states have ceased.

The safe effort is the gravity torque of the model. If the robot is heavier or lighter than that, the step from the
previous efforts to the safe effort would move it unobserved. By the balance of momentum over a window T at nearly
constant position,

    mean(τ) − M(q) mean(v̇) = g(q) + friction    of the real robot,

which therefore keeps it at rest, whatever its load. Efforts are weighted by the time for which they acted. The mean
acceleration is the slope of the velocities by least squares, less two of its standard errors: half a second later the
difference of two noisy velocities (0.005 rad/s) would be 0.15 rad/s.
"""
from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
WINDOW = 50_000_000    # ns
ERRORS = 2.0           # standard errors within which a slope counts as 0


class Rest(NamedTuple):
    """Means over the window at rest: efforts, one array per output, and acceleration, of the size of the velocity."""

    efforts: list[Array]
    acceleration: Array


class Carrying:
    """The states and outputs of the last 50 ms. still: largest speed at rest, rad/s or m/s."""

    def __init__(self, still: float) -> None:
        self._still = still
        self._cycles: deque[tuple[int, Array, Sequence[Array]]] = deque()    # time (ns), velocity, efforts

    def forget(self) -> None:
        """Clear the record: `rest` requires a whole window."""
        self._cycles.clear()

    def record(self, time_ns: int, v: Array, efforts: Sequence[Array]) -> None:
        """Record a state and its answer, as arrays that are not modified later. A gap longer than the window, or
        decreasing time, clears the record.
        """
        cycles = self._cycles
        if cycles and not 0 <= time_ns - cycles[-1][0] <= WINDOW:
            cycles.clear()
        cycles.append((time_ns, v, efforts))
        while len(cycles) > 1 and cycles[1][0] <= time_ns - WINDOW:
            cycles.popleft()

    def rest(self) -> Rest | None:
        """The means up to the last state; None unless the robot was at rest for a whole window."""
        cycles = self._cycles
        if not cycles or cycles[-1][0] - cycles[0][0] < WINDOW:
            return None
        times, velocities, efforts = zip(*cycles, strict=True)
        if not all(np.abs(v).max() < self._still for v in velocities):
            return None
        t = (np.array(times) - times[0]) * 1e-9
        means = [np.diff(t) @ np.array(output[:-1]) / t[-1] for output in zip(*efforts, strict=True)]
        return Rest(means, _slope(t, np.array(velocities)))


def _slope(t: Array, v: Array) -> Array:
    """Slope (n,) of v (N, n) over t (N,), moved towards 0 by `ERRORS` standard errors."""
    t, v = t - t.mean(), v - v.mean(axis=0)
    slope = t @ v / (t @ t)
    residual = v - np.outer(t, slope)
    error = np.sqrt(np.sum(residual**2, axis=0) / (max(len(t) - 2, 1) * (t @ t)))
    shrunk: Array = np.sign(slope) * np.maximum(np.abs(slope) - ERRORS * error, 0.0)
    return shrunk


def near(efforts: Sequence[Array], rest: Rest, inertial: Sequence[Array], bounds: Sequence[Array]) -> list[Array]:
    """The efforts that carry a robot at rest, within `bounds` of the safe `efforts`; each argument one per output.

    inertial: efforts for the mean acceleration.
    """
    return [safe + np.clip(mean - moving - safe, -bound, bound)
            for safe, mean, moving, bound in zip(efforts, rest.efforts, inertial, bounds, strict=True)]
