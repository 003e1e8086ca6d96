"""Checks of a recording's efforts: delay, sign, currents in place of efforts, missing gravity; with findings as text.
"""
from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..dynamics.inverse import gravity_effort, inverse_dynamics
from ..errors import RbdError, shown, unknown_name
from ..model.robot_model import RobotModel
from .linear_fit import Rows
from .stacking import Equations

Array = NDArray[np.float64]
LONGEST_DELAY = 0.05     # s
STEPS = 20               # steps of the search on each side
GAIN = 2.0               # factor between efforts and description beyond inertia errors
EXPLAINED = 0.8          # smallest explained share of an effort's square for a meaningful factor


@dataclass(frozen=True)
class EffortCheck:
    """Per joint: factor (nv,) between effort and description, share (nv,) of the effort explained by it."""

    factor: Array
    share: Array
    findings: tuple[str, ...]


def check_efforts(equations: Equations) -> EffortCheck:
    """Compare efforts, without friction and offset, with those of the description."""
    model, pieces = equations.model, equations.prepared.pieces
    q, v, a, tau = (np.concatenate([getattr(piece, name) for piece in pieces]) for name in ("q", "v", "a", "tau"))
    tau = equations.gain * tau
    weight, predicted = gravity_effort(model, q), inverse_dynamics(model, q, v, a)
    if equations.chain is not None:
        reduced = equations.chain.reduced(q, np.stack([tau, weight, predicted], axis=2))
        tau, weight, predicted = np.moveaxis(reduced * equations.chain.judged[:, None], 2, 0)
    findings: list[str] = []
    factor, share = np.ones(model.nv), np.zeros(model.nv)
    for j, name in enumerate(model.velocity_names):
        friction = np.column_stack([v[:, j], np.tanh(v[:, j] / 0.05), np.ones(len(v))])
        friction /= np.maximum(np.linalg.norm(friction, axis=0), 1e-12)
        columns = np.column_stack([tau[:, j], predicted[:, j], weight[:, j]])
        square = friction.T @ friction + 1e-9 * np.eye(3)    # of unit columns; zero for a joint at rest
        y, full, heavy = (columns - friction @ np.linalg.solve(square, friction.T @ columns)).T
        size, norm = float(y @ y), float(full @ full)
        if size <= 1e-12 * float(tau[:, j] @ tau[:, j]) or norm <= 1e-12 or np.ptp(tau[:, j]) == 0.0:
            continue
        factor[j] = float(full @ y) / norm
        share[j] = float(full @ y) ** 2 / (norm * size)
        apart = _apart(y, heavy, full - heavy)
        if share[j] > EXPLAINED and factor[j] < 0.0:
            findings.append(f"effort of {name} has the opposite sign: it is {factor[j]:.3g} times what the "
                            "description says")
        elif share[j] > EXPLAINED and not 1.0 / GAIN < factor[j] < GAIN:
            findings.append(f"effort of {name} is {factor[j]:.3g} times what the description says: a current, or a "
                            "torque before the gear? Its gain is unknown")
        elif apart is not None and apart[0] < 0.2 and 0.4 < apart[1] < 2.5:
            findings.append(f"effort of {name} is without gravity: it is gravity-compensated")
    return EffortCheck(factor, share, tuple(findings))


def _apart(y: Array, heavy: Array, moving: Array) -> Array | None:
    """Factors of gravity and of the other terms, if both are significant and distinguishable."""
    A = np.column_stack([heavy, moving])
    lengths = np.linalg.norm(A, axis=0)
    if not lengths.min() > 0.2 * lengths.max():
        return None
    square = A.T @ A
    alike = abs(float(square[0, 1])) / float(lengths[0] * lengths[1])
    if alike > 0.98:
        return None
    factors: Array = np.linalg.solve(square, A.T @ y)
    residual = y - A @ factors
    return factors if residual @ residual < 0.5 * (y @ y) else None


def checked_gains(model: RobotModel, gains: object, check: EffortCheck | None) -> tuple[Array, tuple[str, ...]]:
    """Factors (nv,) from recorded values to efforts, and findings about estimated factors. check: of the recorded
    values, needed for estimates.
    """
    if gains is None:
        return np.ones(model.nv), ()
    if isinstance(gains, str):
        if gains != "estimate":
            raise RbdError(f"gains: expected numbers, names → numbers, or \"estimate\", got {shown(gains)}")
        assert check is not None
        clear = check.share > 0.5
        factors = np.where(clear, 1.0 / np.where(check.factor == 0.0, 1.0, check.factor), 1.0)
        names = [f"{name} {gain:.4g}" for name, gain in zip(model.velocity_names, factors, strict=True)]
        notes = [f"gains from the description's inertias, which scale the result: {', '.join(names)}"]
        if not clear.all():
            doubtful = [name for name, good in zip(model.velocity_names, clear, strict=True) if not good]
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
    raw: ArrayLike = value    # type: ignore[assignment]
    try:
        array = np.asarray(raw, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        array = np.zeros(0)
    if array.shape != (count,) or not np.isfinite(array).all() or not array.all():
        raise RbdError(f"gains: expected {count} finite numbers other than 0, got {shown(value)}")
    return array


def estimate_delay(equations: Equations, rows: Rows, known: Array, weights: Array) -> float | None:
    """Delay (s) of efforts relative to states, by the least residual of the base regressor `rows` after subtraction of
    the efforts `known` (N, nv); 0 without a clear minimum, None for a minimum at the ends of ±50 ms.
    """
    root = np.sqrt(weights)
    A = (rows.X * root[..., None]).reshape(-1, rows.X.shape[-1])
    lengths = np.linalg.norm(A, axis=0)
    A = A[:, lengths > 0.0] / lengths[lengths > 0.0]
    squares, V = np.linalg.eigh(A.T @ A)
    Q = A @ (V[:, squares > 1e-12 * squares[-1]] / np.sqrt(squares[squares > 1e-12 * squares[-1]]))

    def left(delay: float) -> float:
        b = ((equations.efforts(delay) - known) * root).reshape(-1)
        return float(b @ b - np.sum((Q.T @ b) ** 2))

    now, clear = left(0.0), 4.0 * np.log(max(root.size, 2))
    best, width = 0.0, LONGEST_DELAY / STEPS
    steps = range(-STEPS, STEPS + 1)
    for k in range(3):
        values = [left(best + width * step) for step in steps]
        index = int(np.argmin(values))
        if index in (0, len(values) - 1):
            return None if k == 0 and now - values[index] > clear else 0.0
        before, least, after = values[index - 1:index + 2]
        curvature = before - 2.0 * least + after
        best += width * (steps[index] + (0.5 * (before - after) / curvature if curvature > 0.0 else 0.0))
        steps, width = range(-2, 3), 0.25 * width
    return best if now - left(best) > clear else 0.0
