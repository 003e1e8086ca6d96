"""Zero offsets of joint positions and the direction of gravity, from efforts: Gauss–Newton on the base parameters.

Positions q + z and gravity g + dg change efforts by ∂(Y π)/∂q z and by ∂(Y π)/∂g dg, which are further columns of the
equations. Offsets with wide intervals are removed from the unknowns: gravity does not determine them in this motion.
"""
from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..derivatives.regressor import inertial_regressor
from ..model.robot_model import RobotModel
from .base_parameters import BaseParameters
from .linear_fit import LinearFit, Rows, linear_fit
from .recorded.recording import Recording
from .recorded.signals import decimation
from .regressor_columns import columns_of
from .stacking import Equations
from .unknowns import Unknowns

Array = NDArray[np.float64]
STEP = 1e-4             # rad or m, of central differences
WIDEST = 0.02           # rad or m: largest half width of the 95 % interval of a determined offset
ROUNDS = 4
SETTLED = 1e-5          # rad or m
LARGEST = 0.5           # rad: largest plausible zero offset or mounting error


@dataclass(frozen=True, eq=False)
class Zeros:
    """Zero offsets: position (nv,), rad or m, with true position = recorded position + offset, and the half width (nv,)
    of the 95 % interval, infinite if undetermined (the offset is then zero). gravity (3,): m/s² in the axes of the root
    link; tilt: its angle to that of the description, rad, with the half width of the 95 % interval, infinite if
    undetermined.
    """

    position: Array
    half_width: Array
    gravity: Array
    tilt: float
    tilt_half_width: float

    def findings(self, model: RobotModel) -> list[str]:
        """Non-zero offsets, and undetermined ones, as text."""
        shown = np.isfinite(self.half_width)
        lines = [f"zero of {name} is off by {z:.4f} ± {half:.4f} (rad or m): add it to its position, or set the zero "
                 "anew" for name, z, half in zip(model.velocity_names, self.position, self.half_width, strict=True)
                 if abs(z) > half]
        if not shown.all():
            hidden = [name for name, seen in zip(model.velocity_names, shown, strict=True) if not seen]
            lines.append(f"zeros that gravity does not show, or not in this motion, taken as right: "
                         f"{', '.join(hidden)}")
        if self.tilt > self.tilt_half_width:
            numbers = " ".join(f"{x:.4f}" for x in self.gravity)
            lines.append(f"the mounting is tilted by {np.degrees(self.tilt):.2f}° ± "
                         f"{np.degrees(self.tilt_half_width):.2f}°: gravity is {numbers}")
        elif not np.isfinite(self.tilt_half_width):
            lines.append("a tilt of the mounting is not shown in this motion: taken as upright")
        return lines


class ZeroColumns:
    """Further columns of equations: by the zero offsets of moving joints, and by two tilts of gravity."""

    def __init__(self, equations: Equations, rows: Rows, base: BaseParameters, unknown: Unknowns, known: Array,
                 robust: bool) -> None:
        model, prepared = equations.model, equations.prepared
        self.columns = unknown.columns[base.independent]
        self.plain = rows.columns(self.columns, known)
        theta = known.copy()
        theta[self.columns] = linear_fit(self.plain, robust, False).beta
        pi = theta[columns_of(model, "inertial")]
        q, v, a = (np.concatenate([getattr(piece, name)[decimation(prepared, piece)] for piece in prepared.pieces])
                   for name in ("q", "v", "a"))

        def effort(moved: Array, gravity: Array) -> Array:
            return np.asarray(inertial_regressor(model.with_(gravity=gravity), moved, v, a) @ pi)

        self.joints = np.setdiff1d(np.arange(model.nv), prepared.still)
        self.axes = tilt_axes(model.gravity)
        columns = [(effort(q + STEP * unit, model.gravity) - effort(q - STEP * unit, model.gravity)) / (2.0 * STEP)
                   for unit in np.eye(model.nv)[self.joints]]
        nominal = effort(q, model.gravity)
        columns += [effort(q, model.gravity + np.cross(axis, model.gravity)) - nominal for axis in self.axes]
        self.changes = np.stack(columns, axis=-1)    # (N, nv, joints + tilts)
        self.robust = robust

    def solved(self, shown: NDArray[np.bool_] | None = None) -> tuple[Array, Array]:
        """Steps of offsets and tilts (joints + tilts), and half widths; undetermined ones have a step of zero and an
        infinite half width. shown: mask of those determined in an earlier round.
        """
        count = self.changes.shape[-1]
        chosen = [k for k in range(count) if self.changes[..., k].any() and (shown is None or shown[k])]
        step, half = np.zeros(count), np.full(count, np.inf)
        while chosen:
            fit = self._fit(chosen)
            width = fit.half_width[-len(chosen):]
            if (width < WIDEST).all():
                step[chosen], half[chosen] = fit.beta[-len(chosen):], width
                break
            chosen.pop(int(np.argmax(np.where(np.isfinite(width), width, np.inf))))
        return step, half

    def _fit(self, chosen: list[int]) -> LinearFit:
        X = np.concatenate([self.plain.X, self.changes[..., chosen]], axis=-1)
        return linear_fit(replace(self.plain, X=X), self.robust)


def tilt_axes(gravity: Array) -> tuple[Array, ...]:
    """Two unit vectors normal to gravity and to each other; none without gravity."""
    size = np.linalg.norm(gravity)
    if size == 0.0:
        return ()
    first = np.cross(gravity, np.eye(3)[int(np.argmin(np.abs(gravity)))])
    first /= np.linalg.norm(first)
    return first, np.cross(gravity, first) / size


def turned(gravity: Array, tilts: Array) -> Array:
    """Gravity rotated by small tilts about `tilt_axes`, with its magnitude kept."""
    moved = gravity + np.cross(tilts @ np.array(tilt_axes(gravity)), gravity) if len(tilts) else gravity
    size = np.linalg.norm(moved)
    return np.asarray(moved * (np.linalg.norm(gravity) / size if size else 1.0))


def moved(recording: Recording, model: RobotModel, offset: Array) -> Recording:
    """The recording in the model's order with positions plus offsets (nv,)."""
    ordered = recording.in_order_of(model)[0]
    return replace(ordered, q=ordered.q + offset)
