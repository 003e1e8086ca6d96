"""One number per slider: joints within their limits, rotations with quaternions as roll, pitch and yaw."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..core.lie.so3 import from_quaternion, from_rpy, to_quaternion
from ..core.model.inertia import Array
from ..core.model.robot_model import RobotModel

WIDEST = 4.0 * np.pi     # rad: joints with a wider or no range get one turn in both directions
LONGEST = 20.0           # m, likewise
STEP = 1e-3              # rad or m: resolution of sliders, if their range allows
AROUND = 1.0             # m in both directions without a limit
ANGLES = ("roll", "pitch", "yaw")


@dataclass(frozen=True)
class Slider:
    """unit: "rad" or "m". index: into q; for an angle of a quaternion that of its x, with `angle` 0, 1 or 2. name: of
    the coordinate (`model.velocity_names`), for couplings; "" for angles of quaternions.
    """

    label: str
    lower: float
    upper: float
    unit: str
    index: int
    angle: int | None = None
    name: str = ""

    @property
    def step(self) -> float:
        """rad or m."""
        return min(STEP, (self.upper - self.lower) / 100.0)


def sliders_of(model: RobotModel) -> tuple[Slider, ...]:
    """The sliders of a model, in the order of q."""
    sliders: list[Slider] = []
    quaternions = set(model._quaternions)
    for joint in model.joints:
        i = 0
        while i < joint.nq:
            i_q = joint.idx_q + i
            if i_q in quaternions:
                sliders += [Slider(f"{joint.name} {angle}", *rounded(-np.pi, np.pi), "rad", i_q, k)
                          for k, angle in enumerate(ANGLES)]
                i += 4
                continue
            label = joint.name if joint.nq == 1 else f"{joint.name} {'xyz'[i] if joint.nq == 7 else i}"
            name = joint.name if joint.nq == 1 else f"{joint.name}/{i}" if joint.nq == joint.nv else ""
            sliders.append(Slider(label, *_range(model, i_q), "m" if model._is_length[i_q] else "rad", i_q, name=name))
            i += 1
    return tuple(sliders)


def _range(model: RobotModel, index: int) -> tuple[float, float]:
    low, high = float(model.position_lower[index]), float(model.position_upper[index])
    length = bool(model._is_length[index])
    around, widest = (AROUND, LONGEST) if length else (np.pi, WIDEST)
    if not np.isfinite([low, high]).all() or not 1e-9 < high - low <= widest:
        middle = low if np.isfinite(low) and abs(low) <= widest and high - low <= 1e-9 else 0.0
        return rounded(middle - around, middle + around)
    return rounded(low, high)


def rounded(low: float, high: float) -> tuple[float, float]:
    """The range, narrowed to numbers with few digits."""
    if high - low > 100.0 * STEP:
        low, high = np.ceil(low / STEP - 1e-9) * STEP, np.floor(high / STEP + 1e-9) * STEP
    return float(round(low, 6)), float(round(high, 6))


def values_of(model: RobotModel, sliders: Sequence[Slider], q: Array) -> list[float]:
    """Numbers of the sliders at q, within their ranges, to a tenth of a step."""
    values = []
    angles: dict[int, Array] = {}
    for slider in sliders:
        if slider.angle is None:
            value = float(q[slider.index])
        else:
            if slider.index not in angles:
                angles[slider.index] = rpy_of(from_quaternion(q[slider.index:slider.index + 4]))
            value = float(angles[slider.index][slider.angle])
        value = round(value / (0.1 * slider.step)) * 0.1 * slider.step
        values.append(round(min(max(value, slider.lower), slider.upper), 9))
    return values


def moved(q: Array, slider: Slider, value: float) -> Array:
    """q (nq,) with one slider at another value."""
    q = q.copy()
    if slider.angle is None:
        q[slider.index] = value
    else:
        rpy = rpy_of(from_quaternion(q[slider.index:slider.index + 4]))
        rpy[slider.angle] = value
        q[slider.index:slider.index + 4] = to_quaternion(from_rpy(rpy))
    return q


def rpy_of(R: Array) -> Array:
    """Roll, pitch, yaw (rad) of a rotation (3, 3): R = R_z(yaw) R_y(pitch) R_x(roll)."""
    pitch = float(np.arctan2(-R[2, 0], np.hypot(R[0, 0], R[1, 0])))
    if np.hypot(R[0, 0], R[1, 0]) < 1e-9:    # roll and yaw about one axis
        return np.array([0.0, pitch, np.arctan2(-R[0, 1], R[1, 1])])
    return np.array([np.arctan2(R[2, 1], R[2, 2]), pitch, np.arctan2(R[1, 0], R[0, 0])])
