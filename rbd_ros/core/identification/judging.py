"""Residuals of a result, and confidence of its parameters."""
from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..model.robot_model import RobotModel
from .base_parameters import BaseParameters
from .consistency import SIZE
from .expected_error import residual_by_speed
from .identified import Estimate, Residuals, Validation
from .linear_fit import LinearFit, Rows
from .unknowns import Unknowns

Array = NDArray[np.float64]
POOR = 0.5           # relative residual of a joint above which its efforts count as unexplained
BETTER = "Record a longer motion, with more acceleration of all joints: `rbd excite` finds one"
MEASURABLE = 1e-9    # relative residuals below are rounding
TIMES = 2.0          # ratio of held-out to fitted residual above which the motion is too poor
FEW = 0.03           # held-out residuals below are always accepted
GOOD = 0.1           # largest residual of a useful result


def residuals(model: RobotModel, fitted: Rows, judged: Rows | None, start: Array, theta: Array,
              free: Array) -> tuple[Residuals, Validation]:
    """Relative residuals of parameters θ of the description, the result, and unconstrained least squares."""
    rows = fitted if judged is None else judged
    before, after, linear = (rows.X @ x for x in (start, theta, free))
    residual = Residuals(
        _relative(rows, before), _relative(rows, after), _relative(rows, linear), _overall(rows, before),
        _overall(rows, after), _overall(rows, linear), _overall(fitted, fitted.X @ theta), judged is not None)
    return residual, Validation(rows.y, before, after, residual_by_speed(model, rows, after))


def _relative(rows: Rows, predicted: Array) -> Array:
    """‖τ − τ̂‖ / ‖τ‖ per joint; NaN without measurements."""
    error, size = (np.linalg.norm(x * rows.measured, axis=0) for x in (rows.y - predicted, rows.y))
    return np.where(size > 0.0, error / np.where(size > 0.0, size, 1.0), np.nan)


def _overall(rows: Rows, predicted: Array) -> float:
    error, size = (np.linalg.norm(x[rows.measured]) for x in (rows.y - predicted, rows.y))
    return float(error / size) if size > 0.0 else float("nan")


def estimates(unknown: Unknowns, base: BaseParameters, linear: LinearFit, part: Array) -> tuple[Estimate, ...]:
    """Base parameters with intervals."""
    start, bodies = unknown.prior, SIZE * len(unknown.bodies)
    usual = np.concatenate([*(_sizes(start[k:k + SIZE]) for k in range(0, bodies, SIZE)),
                            np.maximum(np.abs(unknown.start), 0.1 * unknown.scalar_spread)])
    described = start.copy()
    if unknown.load:    # the prior of a load is a guess, not of the description
        described[:bodies] = 0.0
    size, values, prior = np.abs(base.matrix) @ usual, base.matrix @ part, base.matrix @ described
    entries: list[Estimate] = []
    for k, name in enumerate(base.names):
        width = float(linear.half_width[k])
        determined = width < max(0.5 * abs(float(linear.beta[k])), float(size[k]))
        entries.append(Estimate(name, float(values[k]), float(linear.beta[k]), width, float(prior[k]), determined))
    return tuple(entries)


def _sizes(body: Array) -> Array:
    """Usual sizes of a body's ten parameters, from its mass and its extent about the link's origin."""
    m, extent = body[0], np.sqrt(max(body[4] + body[6] + body[9], 1e-12) / (2.0 * body[0]))
    return np.concatenate([[m], np.full(3, m * extent), np.full(6, m * extent**2)])


def verdict(model: RobotModel, residual: Residuals) -> list[str]:
    """Warnings: a result no better than the description, or good on fitted data only; joints that even the best fit
    does not explain.
    """
    warnings: list[str] = []
    was, now = residual.overall_before, residual.overall
    if now >= was > MEASURABLE:
        warnings.append(f"the result explains efforts no better than the description: {100.0 * now:.2f} % are left, "
                        f"before {100.0 * was:.2f} %. Keep the description")
    worst = ", ".join(f"{name} ({100.0 * float(share):.0f} %)" for name, share in
                      zip(model.velocity_names, residual.after, strict=True) if share > GOOD) or "all joints"
    if residual.held_out and now > max(TIMES * residual.training, FEW):
        warnings.append(f"the residual is {100.0 * now:.1f} % on motion that was not fitted, "
                        f"{100.0 * residual.training:.1f} % where it was: the motion is too short or too poor, or "
                        f"something changed in between: {worst}. {BETTER}")
    elif now > GOOD:
        where = "on motion that was not fitted" if residual.held_out else "where it was fitted"
        warnings.append(f"the residual is {100.0 * now:.1f} % {where}: the motion is too poor, or the efforts are not "
                        f"what the model can explain: {worst}. {BETTER}")
    poor = [f"{name} ({100.0 * float(share):.0f} %)" for name, share in
            zip(model.velocity_names, residual.after, strict=True) if share > POOR]
    return warnings + [f"efforts that no parameters explain well: {', '.join(poor)}"] * bool(poor)
