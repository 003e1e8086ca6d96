"""Errors of the gravity torque: per joint a factor, an offset or both, or one load at the last body that explains all.

Per joint, `measured = s x + o + friction`, with the model's torque x; s ≠ 1: the drive's gain or torque constant is
wrong (or the masses are), o ≠ 0: the zero of the torque is. Least squares with the simplest of these that explains the
torques as well as both together, at a significance of 1 in 1,000. If several joints err, a load may be missing, whose
parameters m and m c gravity determines: `measured − x = Y_b [m, m c]`, with the columns Y_b of the regressor at rest.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..derivatives.regressor import PARAMETERS, inertial_regressor
from ..model.robot_model import RobotModel
from .effort_factor import correlated

Array = NDArray[np.float64]
RARE = 10.8          # χ² of one degree of freedom at 1 in 1,000
FEWEST = 10          # smallest number of rows for estimating the noise's correlation
LIKELY = (0.4, 2.5)  # range of plausible factors if a single pose is ambiguous; otherwise an offset is assumed
AS_WELL = 1.1        # largest residual with a load, relative to that with errors per joint, squares


@dataclass(frozen=True, eq=False)
class JointTorques:
    """Torques of one joint: measured and of the model (n,), columns of friction (n, m), standard deviation of the
    measured ones (None: estimated from the residual; otherwise errors are independent).
    """

    measured: Array
    model: Array
    friction: Array
    noise: float | None = None


@dataclass(frozen=True, eq=False)
class TorqueError:
    """`measured = factor · model + offset + friction` of one joint, with 95 % half-widths; N m or N.

    kind: "none", "factor", "offset" or "both": the significant errors. friction, friction_half_width (m,): of the
    columns. remaining: standard deviation of the residual.
    """

    kind: str
    factor: float
    factor_half_width: float
    offset: float
    offset_half_width: float
    friction: Array
    friction_half_width: Array
    remaining: float
    _covariance: Array
    _quantile: float

    @property
    def gain(self) -> float:
        """True torque over measured torque, 1 / factor."""
        return 1.0 / self.factor if self.factor else np.inf

    @property
    def gain_half_width(self) -> float:
        return self.factor_half_width * self.gain**2

    def missing(self, model: Array | float) -> Array:
        """Measured torque without friction, minus the model's torque `model`."""
        return np.asarray((self.factor - 1.0) * model + self.offset)

    def missing_half_width(self, model: Array | float) -> Array:
        """95 % half-width of `missing`, including the residual."""
        columns = np.stack([np.asarray(model, dtype=float), np.ones_like(np.asarray(model, dtype=float))], axis=-1)
        variance = np.einsum("...i,ij,...j", columns, self._covariance, columns) + self.remaining**2
        return np.asarray(self._quantile * np.sqrt(variance))


@dataclass(frozen=True)
class MissingLoad:
    """A load that explains the errors of all joints: mass, kg (negative: the model is too heavy), with its 95 %
    half-width, and centre of mass in the frame of the body, m.
    """

    body: str
    mass: float
    half_width: float
    com: tuple[float, float, float]


def torque_error(joint: JointTorques) -> TorqueError:
    """The errors of one joint's torques."""
    from scipy.special import stdtrit

    n, m = len(joint.measured), joint.friction.shape[1]
    error, both = joint.measured - joint.model, np.column_stack([joint.model, np.ones(n)])
    full = _fit(joint.friction, both, error)
    freedoms, correlation = float(n - full.rank), 1.0
    if joint.noise is None:
        correlation = max(correlated(full.residual), 1.0) if n >= FEWEST else 1.0
        noise = float(np.sqrt(full.square / max(freedoms, 1.0)))
    else:
        noise, freedoms = joint.noise, np.inf
    variance = noise**2 * correlation
    fits = {"none": _fit(joint.friction, both[:, :0], error), "factor": _fit(joint.friction, both[:, :1], error),
            "offset": _fit(joint.friction, both[:, 1:], error), "both": full}
    kind = _simplest(fits, full.square + RARE * variance)
    fit, columns = fits[kind], {"none": [], "factor": [0], "offset": [1], "both": [0, 1]}[kind]
    quantile = float(stdtrit(max(freedoms / correlation, 1.0), 0.975)) if np.isfinite(freedoms) else 1.96
    covariance = variance * fit.inverse
    values, shared = np.zeros(2), np.zeros((2, 2))
    values[columns] = fit.beta[m:]
    shared[np.ix_(columns, columns)] = covariance[m:, m:]
    half = quantile * np.sqrt(np.maximum(np.diag(covariance), 0.0))
    # The half-widths of a factor fixed at 1 or an offset fixed at 0 are those of the fit with both.
    widths = quantile * np.sqrt(np.maximum(np.diag(variance * full.inverse)[m:], 0.0))
    widths[columns] = half[m:]
    remaining = float(np.sqrt(fit.square / max(n - fit.rank, 1.0))) if joint.noise is None else noise
    return TorqueError(kind, 1.0 + float(values[0]), float(widths[0]), float(values[1]), float(widths[1]), fit.beta[:m],
                       half[:m], remaining, shared, quantile)


def missing_load(model: RobotModel, body: str, q: Sequence[Array], joints: Sequence[JointTorques | None],
                 errors: Sequence[TorqueError | None]) -> MissingLoad | None:
    """The load at `body` that explains the errors of all joints; None if it explains less than errors per joint, or if
    fewer than two joints err. q: per joint the positions (n, nq) of its torques.
    """
    if sum(error is not None and error.kind != "none" for error in errors) < 2:
        return None
    first, tables = PARAMETERS * model.body_names.index(body), []
    for j, (joint, error) in enumerate(zip(joints, errors, strict=True)):
        if joint is None or error is None:
            continue
        at_rest = np.zeros((len(q[j]), model.nv))
        columns = inertial_regressor(model, q[j], at_rest, at_rest)[:, j, first:first + 4]
        sigma = max(error.remaining, 1e-9)
        free = _basis(joint.friction)
        table = np.column_stack([joint.measured - joint.model, columns]) / sigma
        tables.append(table - free @ (free.T @ table))
    table = np.concatenate(tables)
    fit = _fit(table[:, :0], table[:, 1:], table[:, 0])
    separate_square = sum(float(len(joint.measured)) for joint in joints if joint is not None)
    if len(table) <= fit.rank or fit.square > AS_WELL * separate_square:
        return None
    visible = fit.projector[0]
    if abs(visible[0] - 1.0) > 1e-6 or not abs(fit.beta[0]) > 0.0:    # the mass alone is not visible
        return None
    spread = fit.square / (len(table) - fit.rank)
    correlation = max(correlated(fit.residual), 1.0) if len(table) >= FEWEST * fit.rank else 1.0
    half = 1.96 * float(np.sqrt(max(spread, 1.0) * correlation * fit.inverse[0, 0]))
    x, y, z = fit.beta[1:] / fit.beta[0]
    return MissingLoad(body, float(fit.beta[0]), half, (float(x), float(y), float(z)))


def cause(name: str, error: TorqueError, unit: str = "N m") -> str:
    """The error of a joint's torque, and its remedy, as a sentence; "" without an error."""
    if error.kind == "none":
        return ""
    if error.kind in ("factor", "both") and error.factor + error.factor_half_width < 0.0:
        return f"the effort of {name} has the opposite sign: gains {name}={error.gain:.3g}"
    offset = (f"{error.offset:+.3g} ± {error.offset_half_width:.2g} {unit}: the zero of its torque is off, or friction "
              "differs by direction")
    if error.kind == "offset":
        return f"the effort of {name} has an offset of {offset}"
    if error.kind == "factor" and error.factor < error.factor_half_width:
        smallest = 1.0 / (error.factor + error.factor_half_width)
        return (f"true torque is more than {smallest:.2g} times what the drive of {name} says, how much is not shown: "
                "find its gain with a known load")
    message = (f"true torque is {error.gain:.3f} ± {error.gain_half_width:.2g} times what the drive of {name} says: "
             f"--gains {name}={error.gain:.4g}, or multiply its torque constant by that")
    return message if error.kind == "factor" else f"{message}; with an offset of {offset}"


def load_cause(load: MissingLoad) -> str:
    """The remedy for a load that is missing in the model, or absent from the robot, as a sentence."""
    position = ", ".join(f"{x:.3f}" for x in load.com)
    size = f"{abs(load.mass):.3g} ± {load.half_width:.2g} kg at ({position}) m of {load.body}"
    return (f"a load is missing in the model: {size}; set payload.* of the nodes, or service set_payload"
            if load.mass > 0.0 else f"the model has a load that is not there: {size}")


@dataclass(frozen=True, eq=False)
class _Fit:
    beta: Array
    square: float
    rank: int
    inverse: Array       # of the normal matrix
    projector: Array     # onto the row space of the columns
    residual: Array


def _fit(friction: Array, columns: Array, y: Array) -> _Fit:
    """Least squares of y (n,) by both kinds of columns, scaled to length one."""
    A = np.column_stack([friction, columns])
    lengths = np.linalg.norm(A, axis=0)
    lengths[lengths == 0.0] = 1.0
    U, s, Vt = np.linalg.svd(A / lengths, full_matrices=False)
    significant = s > 1e-6 * max(float(s.max(initial=0.0)), 1e-300)
    U, s, Vt = U[:, significant], s[significant], Vt[significant]
    beta = (Vt.T @ ((U.T @ y) / s)) / lengths
    residual = y - A @ beta
    inverse = (Vt.T / s**2) @ Vt / np.outer(lengths, lengths)
    return _Fit(beta, float(residual @ residual), len(s), inverse, Vt.T @ Vt, residual)


def _simplest(fits: dict[str, _Fit], largest: float) -> str:
    """The simplest fit with a sum of squares of at most `largest`."""
    if fits["none"].square <= largest:
        return "none"
    factor, offset = fits["factor"], fits["offset"]
    likely = LIKELY[0] <= abs(1.0 + factor.beta[-1]) <= LIKELY[1]
    tie = abs(factor.square - offset.square) <= 1e-3 * max(largest, 1e-300)
    order = ("factor", "offset") if (likely if tie else factor.square < offset.square) else ("offset", "factor")
    return next((kind for kind in order if fits[kind].square <= largest), "both")


def _basis(columns: Array) -> Array:
    """Orthonormal basis of the span of the columns."""
    U, s, _ = np.linalg.svd(columns, full_matrices=False)
    basis: Array = U[:, s > 1e-9 * max(float(s.max(initial=0.0)), 1e-300)]
    return basis
