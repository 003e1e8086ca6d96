"""Periodic motions as finite Fourier series, and their export as joint trajectories."""
from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import RbdError, shown
from ..model.scalars import positive
from .trajectory import Reference

Array = NDArray[np.float64]


def fourier(t: Array, count: int, period: float, derivative: int = 0) -> Array:
    """Columns 1, sin and cos of the harmonics 1 … count, or their derivative by time: (N, 2 count + 1)."""
    k = 2.0 * np.pi * np.arange(1, count + 1) / period
    phase = np.outer(t, k) + 0.5 * np.pi * derivative
    columns = np.empty((len(t), 2 * count + 1))
    columns[:, 0] = 1.0 if derivative == 0 else 0.0
    columns[:, 1::2], columns[:, 2::2] = k**derivative * np.sin(phase), k**derivative * np.cos(phase)
    return columns


class PeriodicMotion:
    """`motion(t)` has .q, .v, .a, .jerk, .snap (nv,), or (N, nv) for t (N,), rad, m and s.

    coefficients (2 count + 1, nv): of 1, sin and cos of each harmonic. Before 0 and after `periods` periods the robot
    is at rest at the ends.
    """

    def __init__(self, coefficients: ArrayLike, period: float, periods: int = 1) -> None:
        c = np.array(coefficients, dtype=np.float64)
        if c.ndim != 2 or len(c) % 2 == 0 or not np.isfinite(c).all():
            raise RbdError(f"coefficients must be finite numbers of shape (2 count + 1, nv), got shape {c.shape}")
        self.coefficients = c
        self.coefficients.setflags(write=False)
        self.period = positive(period, "period", "time")
        self.periods = periods
        self.duration = self.period * periods

    def __call__(self, t: ArrayLike) -> Reference:
        times = np.asarray(t, dtype=np.float64)
        if times.ndim > 1 or not np.isfinite(times).all():
            raise RbdError(f"t must be a finite time or (N,) of them, got {shown(t)}")
        each = np.atleast_1d(times)
        inside = np.clip(each, 0.0, self.duration)
        count = len(self.coefficients) // 2
        out = [fourier(inside, count, self.period, d) @ self.coefficients for d in range(5)]
        for d in range(1, 5):
            out[d][(each < 0.0) | (each > self.duration)] = 0.0
        return Reference(*(x[0] if times.ndim == 0 else x for x in out))

    def sample(self, t: float) -> Reference:
        """The reference at time t (s), as by calling the motion; the interface of torque nodes."""
        return self(t)

    def sampled(self, rate: float) -> tuple[Array, Reference]:
        """Times (N,) at this rate (Hz), including the end, and the motion at these."""
        t = np.linspace(0.0, self.duration, max(round(self.duration * positive(rate, "rate", "frequency")), 2) + 1)
        return t, self(t)

    def write_trajectory(self, path: str | os.PathLike[str], joints: Sequence[str], rate: float = 100.0) -> None:
        """Write a trajectory_msgs/JointTrajectory as YAML (for `ros2 topic pub`), or as CSV by the file's suffix."""
        t, (q, v, a, *_) = self.sampled(rate)
        if Path(path).suffix.lower() == ".csv":
            head = ",".join(["t", *(f"{what}_{name}" for what in ("q", "v", "a") for name in joints)])
            lines = [head, *(",".join(f"{x:.9g}" for x in row) for row in np.column_stack([t, q, v, a]))]
        else:
            lines = ["joint_names: [" + ", ".join(f'"{name}"' for name in joints) + "]", "points:"]
            for time, *rows in zip(t, q, v, a, strict=True):
                stamp = round(1e9 * float(time))
                fields = [f"{what}: [{', '.join(f'{x:.9g}' for x in row)}]" for what, row in
                          zip(("positions", "velocities", "accelerations"), rows, strict=True)]
                lines.append(f"- {{{', '.join(fields)}, "
                             f"time_from_start: {{sec: {stamp // 10**9}, nanosec: {stamp % 10**9}}}}}")
        try:
            Path(path).write_text("\n".join(lines) + "\n", encoding="utf-8")
        except OSError as error:
            raise RbdError(f"cannot write '{path}': {error.strerror or error}") from None
