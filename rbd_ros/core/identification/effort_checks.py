"""Checks of a recording's efforts: delay, sign, currents in place of efforts, missing gravity; with findings as text.

A finding is a hypothesis test: `RARE` is its rate of false findings per recording, for any friction and length, if the
errors of the description are no larger than `SPREAD`, `PLACE` and `LOAD`.
"""
from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import RbdError, shown, unknown_name
from ..model.robot_model import RobotModel
from .consistency import body_map, prior_factor
from .effort_factor import EffortFactor, effort_factor
from .linear_fit import Rows
from .regressor_columns import columns_of, parameters_of
from .stacking import Equations

Array = NDArray[np.float64]
LONGEST_DELAY = 0.05     # s
STEPS = 20               # steps of the search on each side
RARE = 1e-3              # rate of recordings with right efforts and a false finding
KINDS = 5                # tests per joint
LOW, HIGH = 0.5, 2.0     # factors in between are no finding
SPREAD = 0.25            # standard deviation of a body's mass, shape and place in its own units: see `body_map`
PLACE = 0.02             # m, additional standard deviation of the centre of mass
LOAD, LEVER = 0.05, 0.1  # undescribed load on the last links: share of the robot's mass, lever (m)
ROUNDS = 5               # iterations of the estimate of a factor
LEAST = 0.01             # smallest factor at which its standard error is evaluated
MOSTLY = 0.7             # smallest share of friction in an effort that is mostly friction
CLEAR = 0.25             # largest relative standard error of a usable factor


@dataclass(frozen=True)
class EffortCheck:
    """Per joint: factor (nv,) between effort and description, and its relative standard error (nv,), infinite if the
    motion does not show it; reversed: joints whose effort has the wrong sign.
    """

    factor: Array
    error: Array
    findings: tuple[str, ...]
    reversed: tuple[str, ...]


def check_efforts(equations: Equations, rows: Rows, loaded: str | None = None) -> EffortCheck:
    """Test recorded efforts against the description's, with unknown friction, rotors and offsets. loaded: a body with
    an unknown load.
    """
    model = equations.model
    end = columns_of(model, "inertial").stop
    theta, doubt = parameters_of(model), _doubt(model, loaded)
    gravity = equations.gravity()
    level = 2.0 * float(rows.correlation.sum()) - 1.0, RARE / (KINDS * model.nv)
    findings: list[str] = []
    wrong_signs: list[str] = []
    factor, error = np.ones(model.nv), np.full(model.nv, np.inf)
    for j in np.flatnonzero(rows.measured.any(axis=0)):
        name, measured = model.velocity_names[j], rows.measured[:, j]
        X, heavy, y = rows.X[measured, j], gravity[measured, j], rows.y[measured, j]
        moving = X[:, :end] - heavy
        gravity_effort, motion_effort = heavy @ theta[:end], moving @ theta[:end]
        described = gravity_effort + motion_effort
        free, friction = _free(model, X, int(j), described)
        common = effort_factor(y, described[:, None], (X[:, :end] @ doubt,), free, friction, *level)
        if common is None:
            continue
        k, spread = 1.0, np.inf
        for _ in range(ROUNDS):    # with the covariance at the factor
            estimates, errors = common.estimate(np.full(1, max(abs(k), LEAST)))
            k, spread = float(estimates[0]), float(errors[0])
        factor[j], error[j] = k, spread / max(abs(k), 1e-12)
        separate = effort_factor(y, np.column_stack([gravity_effort, motion_effort]),
                                 (heavy @ doubt, moving @ doubt), free, friction, *level)
        if common.below(0.0, LOW, 1.0) or _opposes_friction(model, X, y, int(j), described, X[:, :end] @ doubt, level):
            wrong_signs.append(name)
            findings.append(f"effort of {name} has the opposite sign of what the description and friction say: its "
                            f"gain is negative. Give it, as {name}=-1, and those of the others")
        elif separate is not None and _weightless(separate):
            findings.append(f"effort of {name} is without gravity: it is gravity-compensated")
        elif (k > HIGH and common.above(1.0, HIGH)) or (0.0 < k < LOW and common.below(LOW, 1.0)):
            findings.append(f"effort of {name} is {k:.3g} times what the description says: a current, or a torque "
                            f"before the gear{', or without gravity' if k < 1.0 else ''}? Its gain is unknown")
    return EffortCheck(factor, error, tuple(findings), tuple(wrong_signs))


def _weightless(separate: EffortFactor) -> bool:
    """Whether an effort lacks gravity but has the other parts of the description's effort."""
    estimates, error = separate.estimate(np.array([0.0, 1.0]))
    return (separate.below(LOW, 1.0) and abs(estimates[0]) < 0.5 * LOW < estimates[1]
            and bool(abs(estimates[1] - 1.0) < separate.limit * error[1] < estimates[1]))


def _opposes_friction(model: RobotModel, X: Array, y: Array, j: int, described: Array, doubt: Array,
                    level: tuple[float, float]) -> bool:
    """Whether an effort is mostly friction of the wrong sign."""
    slip, end = X[:, columns_of(model, "coulomb").start + j], columns_of(model, "inertial").stop
    free = np.delete(X, np.r_[:end, columns_of(model, "viscous"), columns_of(model, "coulomb")], axis=1)
    factor = effort_factor(y, np.column_stack([slip, described]), (0.0 * doubt, doubt), free, free[:, :0], *level)
    if factor is None or not factor.below(0.0):
        return False
    size = float(factor.estimate(np.array([0.0, 1.0]))[0][0]) * float(np.linalg.norm(slip))
    return size < -MOSTLY * float(np.linalg.norm(y - y.mean()))


def _doubt(model: RobotModel, loaded: str | None) -> Array:
    """Columns (10·nb, p) of the assumed error of the description's inertial parameters, with coefficients N(0, 1)."""
    theta, parents = model.inertial_parameters, {joint.parent for joint in model.description.joints}
    columns: list[Array] = []
    for k, name in enumerate(model.body_names):
        body = slice(10 * k, 10 * k + 10)
        blocks = []
        if theta[body][0] > 0.0:
            blocks += [SPREAD * body_map(prior_factor(theta[body])[0]), PLACE * theta[body][0] * np.eye(10)[:, 1:4]]
        if name not in parents or name == loaded:
            load = (0.5 if name == loaded else LOAD) * model.total_mass
            blocks.append(load * np.diag([1.0, *[LEVER] * 3, *[LEVER**2] * 6]))
        for block in blocks:
            out = np.zeros((len(theta), block.shape[1]))
            out[body] = block
            columns.append(out)
    return np.concatenate(columns, axis=1) if columns else np.zeros((len(theta), 1))


def _free(model: RobotModel, X: Array, j: int, load: Array) -> tuple[Array, Array]:
    """Free columns of the test: rotors and offsets of all joints that act on this row; and friction, with further
    dependence on direction, load and speed.
    """
    v, slip = X[:, columns_of(model, "viscous").start + j], X[:, columns_of(model, "coulomb").start + j]
    rms_speed = max(float(np.sqrt(np.mean(v**2))), 1e-9)
    friction_columns = np.r_[columns_of(model, "viscous"), columns_of(model, "coulomb")]
    others = np.delete(X, np.r_[columns_of(model, "inertial"), friction_columns], axis=1)
    return others, np.column_stack([X[:, friction_columns], np.abs(slip), np.abs(v), v * np.abs(v), v**3,
                                    slip * np.abs(load), np.tanh(v / (0.1 * rms_speed)),
                                    np.tanh(v / (0.5 * rms_speed))])


def checked_gains(model: RobotModel, gains: object, check: EffortCheck | None) -> tuple[Array, tuple[str, ...]]:
    """Factors (nv,) from recorded values to efforts, and findings about estimated ones, which require a check of the
    recorded values.
    """
    if gains is None:
        return np.ones(model.nv), ()
    if isinstance(gains, str):
        if gains != "estimate":
            raise RbdError(f"gains: expected numbers, names → numbers, or \"estimate\", got {shown(gains)}")
        assert check is not None
        usable = check.error < CLEAR
        factors = np.where(usable, 1.0 / np.where(check.factor == 0.0, 1.0, check.factor), 1.0)
        names = [f"{name} {gain:.4g}" for name, gain in zip(model.velocity_names, factors, strict=True)]
        notes = [f"gains from the description's inertias, which scale the result: {', '.join(names)}"]
        if not usable.all():
            doubtful = [name for name, good in zip(model.velocity_names, usable, strict=True) if not good]
            notes.append(f"gains that cannot be estimated, taken as 1: {', '.join(doubtful)}")
        return factors, tuple(notes)
    values = np.ones(model.nv)
    if isinstance(gains, dict):
        for name, value in gains.items():
            if name not in model.velocity_names:
                raise unknown_name("joint", name, model.velocity_names, "gains")
            values[model.velocity_names.index(name)] = _gain(value)
        return values, ()
    return _gains(gains, model.nv), ()


def _gain(value: object) -> float:
    return float(_gains([value], 1)[0])    # type: ignore[list-item]


def _gains(value: object, count: int) -> Array:
    numbers: ArrayLike = value    # type: ignore[assignment]
    try:
        array = np.asarray(numbers, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        array = np.zeros(0)
    if array.shape != (count,) or not np.isfinite(array).all() or not array.all():
        raise RbdError(f"gains: expected {count} finite numbers other than 0, got {shown(value)}")
    return array


def estimate_delay(equations: Equations, rows: Rows, known: Array, weights: Array) -> float | None:
    """Delay of efforts relative to states (s) with the smallest residual of the base regressor `rows`, with efforts
    `known` (N, nv) subtracted. 0 without a clear minimum, None if the minimum is at an end of the range ±50 ms.
    """
    root = np.sqrt(weights)
    A = (rows.X * root[..., None]).reshape(-1, rows.X.shape[-1])
    lengths = np.linalg.norm(A, axis=0)
    A = A[:, lengths > 0.0] / lengths[lengths > 0.0]
    squares, V = np.linalg.eigh(A.T @ A)
    Q = A @ (V[:, squares > 1e-12 * squares[-1]] / np.sqrt(squares[squares > 1e-12 * squares[-1]]))

    def residual(delay: float) -> float:
        b = ((equations.efforts(delay) - known) * root).reshape(-1)
        return float(b @ b - np.sum((Q.T @ b) ** 2))

    undelayed, significant = residual(0.0), 4.0 * np.log(max(root.size, 2))
    best, width = 0.0, LONGEST_DELAY / STEPS
    steps = range(-STEPS, STEPS + 1)
    for k in range(3):
        values = [residual(best + width * step) for step in steps]
        index = int(np.argmin(values))
        if index in (0, len(values) - 1):
            return None if k == 0 and undelayed - values[index] > significant else 0.0
        before, smallest, after = values[index - 1:index + 2]
        curvature = before - 2.0 * smallest + after
        best += width * (steps[index] + (0.5 * (before - after) / curvature if curvature > 0.0 else 0.0))
        steps, width = range(-2, 3), 0.25 * width
    return best if undelayed - residual(best) > significant else 0.0
