"""Motions with an end: their samples at a rate, and their export as joint trajectories."""
from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import RbdError
from ..model.scalars import positive
from .trajectory import Reference

Array = NDArray[np.float64]


class SampledMotion(ABC):
    """A motion `motion(t)` from 0 to `duration` (s)."""

    duration: float

    @abstractmethod
    def __call__(self, t: ArrayLike) -> Reference:
        """The reference at time t (s), or at (N,) of them."""

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
            head = ",".join(["t", *(f"{field}_{name}" for field in ("q", "v", "a") for name in joints)])
            lines = [head, *(",".join(f"{x:.9g}" for x in row) for row in np.column_stack([t, q, v, a]))]
        else:
            lines = ["joint_names: [" + ", ".join(f'"{name}"' for name in joints) + "]", "points:"]
            for time, *rows in zip(t, q, v, a, strict=True):
                stamp = round(1e9 * float(time))
                fields = [f"{field}: [{', '.join(f'{x:.9g}' for x in row)}]" for field, row in
                          zip(("positions", "velocities", "accelerations"), rows, strict=True)]
                lines.append(f"- {{{', '.join(fields)}, "
                             f"time_from_start: {{sec: {stamp // 10**9}, nanosec: {stamp % 10**9}}}}}")
        try:
            Path(path).write_text("\n".join(lines) + "\n", encoding="utf-8")
        except OSError as error:
            raise RbdError(f"cannot write '{path}': {error.strerror or error}") from None
