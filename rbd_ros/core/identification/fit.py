"""From a recorded motion to the model that explains its efforts."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..actuation.friction import SMOOTHING
from ..errors import RbdError, shown
from ..model.robot_model import RobotModel
from ..model.scalars import positive
from .base_parameters import structural_base
from .consistent_fit import consistent_fit
from .effort_checks import check_efforts, checked_gains, estimate_delay
from .identified import Estimate, Identification, Residuals, Validation, identified_model
from .linear_fit import LinearFit, Rows, linear_fit
from .recorded.recording import Recording
from .recorded.signals import REST, Prepared, decimation, low_pass, noise_correlation, prepare
from .recorded.sticking import sticking
from .regressor_columns import columns_of, full_regressor, motor_columns
from .transmission import CoupledMotors, Transmission
from .unknowns import Unknowns, unknowns

Array = NDArray[np.float64]
Progress = Callable[[str], None]
DELAY_ROUNDS, SHORTEST_DELAY = 4, 5e-5    # s


def identify(model: RobotModel, recording: Recording, *, mode: str = "full", body: str | None = None,
             validation: Recording | None = None, holdout: float = 0.2, rotors: bool = True, friction: bool = True,
             cutoff: float | None = None, smoothing: float = SMOOTHING, delay: float | str = "estimate",
             gains: ArrayLike | dict[str, float] | str | None = None, prior: float = 0.1, robust: bool = True,
             slowest: float = REST, transmission: Transmission | None = None,
             progress: Progress | None = None) -> Identification:
    """The model whose efforts are those of the recording, physically consistent by construction.

    mode: "full" (inertias of all bodies, rotors, friction, offsets), "payload" (the ten numbers of a load on `body`,
    and friction), "friction". validation: another recording to judge by; without it the last `holdout` of this one is
    not fitted but kept for that. rotors, friction: whether these are unknown. cutoff: of the zero-phase filter, Hz;
    None: from the positions. smoothing: speed (rad/s, m/s) of `friction_effort`. delay (s): of efforts behind states,
    or "estimate". gains: factors from what was recorded to N m or N, per joint, names → factors, or "estimate" (against
    the description). prior: weight of the description along what the recording does not show, see `consistent_fit`.
    robust: outliers count less. slowest (rad/s, m/s): slower joints stick, and their efforts are left out meanwhile,
    unless `friction` is False; 0 where torque is measured at the link. transmission: of a coupled wrist;
    rotors and friction of its motors on more than one joint are unknown, too. progress: called with a line at each
    step. `RbdError` says what is wrong with data.
    """
    smoothing = positive(smoothing, "smoothing", "speed")
    weight = positive(prior, "prior", "weight")
    slow = positive(slowest, "slowest", "speed, or 0") if slowest and friction else 0.0
    if not isinstance(holdout, int | float) or not 0.0 <= holdout <= 0.8:
        raise RbdError(f"holdout must be a share from 0 to 0.8, got {shown(holdout)}")
    tell = progress or (lambda line: None)
    if not model.nv:
        raise RbdError(f"model '{model.name}' has no joints: nothing can be identified")
    fixed_delay = None if delay == "estimate" else _seconds(delay)
    tell("reading and filtering")
    motors = CoupledMotors.none(model.nv) if transmission is None else _transmission(transmission).coupled(model)
    prepared = prepare(model, recording, cutoff, fixed_delay or 0.0, smoothing, motors.rows)
    findings = list(prepared.notes)
    check = check_efforts(model, prepared.pieces)
    gain, notes = checked_gains(model, gains, check)
    findings += notes if gains is not None else check.findings
    rows = stacked(model, prepared, gain, motors, slow)
    findings += _left_out(model, rows)
    unknown = unknowns(model, rows, mode, body, rotors, friction, prepared.still, motors)
    findings += unknown.notes
    known = _known(unknown)
    columns = unknown.columns
    if not len(columns):
        raise RbdError("nothing is unknown: no body, and rotors and friction are left out")
    base = structural_base(model, columns, motors)
    fitted, held = _split(rows, 0.0 if validation is not None else float(holdout))
    tell(f"{base.rank} base parameters of {len(columns)}, {fitted.y.size} efforts")
    lag = fixed_delay or 0.0
    for _ in range(DELAY_ROUNDS if fixed_delay is None else 0):    # weights are better with less delay left
        less = rows.columns(columns[base.independent], known)
        more = estimate_delay(prepared, gain, less, rows.X @ known, linear_fit(less, robust, False).weights)
        if abs(more) < SHORTEST_DELAY:
            break
        lag += more
        tell(f"efforts {1e3 * lag:.1f} ms behind the states")
        prepared = prepare(model, recording, prepared.cutoff, lag, smoothing, motors.rows)
        rows = stacked(model, prepared, gain, motors, slow)
        fitted, held = _split(rows, 0.0 if validation is not None else float(holdout))
    if lag and fixed_delay is None:
        findings.append(f"efforts are {1e3 * abs(lag):.1f} ms {'behind' if lag > 0.0 else 'ahead of'} the states: "
                        "taken back")
    linear = linear_fit(fitted.columns(columns[base.independent], known), robust)
    tell("consistent fit")
    theta = np.array(unknown.theta)
    part = consistent_fit(fitted.columns(columns, known), linear.weights, unknown, weight)
    if unknown.load:
        theta[columns[10:]] = part[10:]
    else:
        theta[columns] = part
    predicted = known.copy()
    predicted[columns] += part
    judged = held
    if validation is not None:
        tell("validation")
        other = prepare(model, validation, prepared.cutoff, lag, smoothing, motors.rows)
        findings += [f"validation: {note}" for note in other.notes if "left out" in note]
        judged = stacked(model, other, gain, motors, slow)
        findings += [f"validation: {note}" for note in _left_out(model, judged)]
    free = known.copy()
    free[columns[base.independent]] += linear.beta
    residual, shown_rows = _judge(fitted, judged, unknown.theta, predicted, free)
    estimates, unseen = _estimates(unknown, base.matrix, base.names, linear, part)
    if mode != "payload" and friction:
        unseen += tuple(f"{what}({model.velocity_names[j]})" for j in prepared.still for what in ("viscous", "coulomb"))
    if linear.outliers:
        findings.append(f"{linear.outliers} efforts are more than six standard deviations off: they count less")
    findings += _verdict(model, residual)
    result, load, offset = identified_model(model, theta, unknown, part)
    return Identification(
        model=result, smoothing=smoothing, offset=offset, load=load, residual=residual, confidence=estimates,
        unidentifiable=unseen, findings=tuple(findings), base=base, condition=linear.condition, delay=lag, gains=gain,
        cutoff=prepared.cutoff, duration=prepared.duration, prior=model, mode=mode, validation=shown_rows,
        transmission=transmission and transmission.identified(theta[len(theta) - motors.parameters.size:]))


def _seconds(value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = float("nan")
    if not abs(number) <= 1.0:
        raise RbdError(f"delay must be \"estimate\" or seconds within ±1, got {shown(value)}")
    return number


def _transmission(given: object) -> Transmission:
    if not isinstance(given, Transmission):
        raise RbdError(f"transmission: expected rbd.Transmission, got {shown(given)}")
    return given


def _known(unknown: Unknowns) -> Array:
    """θ with zeros where the fit has something to say; a body that gets a load keeps its own."""
    known = np.array(unknown.theta)
    known[unknown.scalars if unknown.load else unknown.columns] = 0.0
    return known


def stacked(model: RobotModel, prepared: Prepared, gain: Array, motors: CoupledMotors, slowest: float) -> Rows:
    """Regressor and efforts of all pieces, filtered alike, at few samples per cycle of the cutoff frequency."""
    X, y, told = [], [], []
    coulomb = columns_of(model, "coulomb")
    for piece in prepared.pieces:
        Y = full_regressor(model, piece.q, piece.v, piece.a, np.zeros_like(piece.slip), motors)
        rows = decimation(prepared, piece)
        Y = low_pass(Y, piece.rate, prepared.cutoff)[rows]
        Y[:, np.arange(model.nv), coulomb.start + np.arange(model.nv)] = piece.slip[rows, :model.nv]
        Y[..., motor_columns(model, len(motors.names), "coulomb")] = piece.slip[rows, None, model.nv:] * motors.rows.T
        X.append(Y)
        y.append(gain * piece.tau[rows])
        told.append(~sticking(piece, prepared.cutoff, slowest, motors.rows)[rows])
    measured = np.concatenate(told)
    measured[:, list(prepared.unmeasured)] = False
    return Rows(np.concatenate(X), np.concatenate(y), tuple(len(part) for part in y), measured,
                noise_correlation(prepared, prepared.pieces[0]))


def _left_out(model: RobotModel, rows: Rows) -> list[str]:
    """Joints that stand for a while."""
    shares = 1.0 - rows.measured.mean(axis=0)
    stuck = [f"{name} {100.0 * share:.0f} %" for name, share in zip(model.velocity_names, shares, strict=True)
             if 0.05 < share < 1.0]
    return [f"efforts of joints while they stand, left out, for they may be anything: {', '.join(stuck)} of the time"
            ] if stuck else []


def _split(rows: Rows, holdout: float) -> tuple[Rows, Rows | None]:
    """The first rows, and the last ones."""
    n = len(rows.y)
    cut = round((1.0 - holdout) * n)
    if holdout == 0.0 or n - cut < 10:
        return rows, None
    ends = np.minimum(np.cumsum(rows.lengths), cut)
    lengths = np.diff(np.concatenate([[0], ends]))
    first = Rows(rows.X[:cut], rows.y[:cut], tuple(int(k) for k in lengths if k), rows.measured[:cut],
                 rows.correlation)
    return first, Rows(rows.X[cut:], rows.y[cut:], (n - cut,), rows.measured[cut:], rows.correlation)


def _judge(fitted: Rows, judged: Rows | None, prior: Array, theta: Array,
           free: Array) -> tuple[Residuals, Validation]:
    """Relative residuals before and after, where it was fitted and where not."""
    rows = fitted if judged is None else judged
    before, after, linear = (rows.X @ x for x in (prior, theta, free))
    residual = Residuals(
        _relative(rows, before), _relative(rows, after), _relative(rows, linear), _overall(rows, before),
        _overall(rows, after), _overall(rows, linear), _overall(fitted, fitted.X @ theta), judged is not None)
    return residual, Validation(rows.y, before, after)


def _relative(rows: Rows, found: Array) -> Array:
    """‖τ − τ̂‖ / ‖τ‖ per joint; NaN where nothing was measured."""
    off, size = (np.linalg.norm(x * rows.measured, axis=0) for x in (rows.y - found, rows.y))
    return np.where(size > 0.0, off / np.where(size > 0.0, size, 1.0), np.nan)


def _overall(rows: Rows, found: Array) -> float:
    off, size = (np.linalg.norm(x[rows.measured]) for x in (rows.y - found, rows.y))
    return float(off / size) if size > 0.0 else float("nan")


def _estimates(unknown: Unknowns, matrix: Array, names: tuple[str, ...], linear: LinearFit,
               part: Array) -> tuple[tuple[Estimate, ...], tuple[str, ...]]:
    """Base parameters with intervals, and names of those that the recording does not show."""
    start = unknown.prior
    usual = np.concatenate([*(_sizes(start[10 * k:10 * k + 10]) for k in range(len(unknown.bodies))),
                            np.maximum(np.abs(unknown.start), 0.1 * unknown.scalar_spread)])
    size = np.abs(matrix) @ usual
    found: list[Estimate] = []
    values = matrix @ part
    for k, name in enumerate(names):
        width = float(linear.half_width[k])
        seen = width < max(0.5 * abs(float(linear.beta[k])), float(size[k]))
        found.append(Estimate(name, float(values[k]), float(linear.beta[k]), width, float((matrix @ start)[k]), seen))
    return tuple(found), tuple(estimate.name for estimate in found if not estimate.seen)


def _sizes(body: Array) -> Array:
    """Usual sizes of a body's ten parameters, from its mass and its extent about the link's origin."""
    m, extent = body[0], np.sqrt(max(body[4] + body[6] + body[9], 1e-12) / (2.0 * body[0]))
    return np.concatenate([[m], np.full(3, m * extent), np.full(6, m * extent**2)])


def _verdict(model: RobotModel, residual: Residuals) -> list[str]:
    """Joints that even the best fit does not explain."""
    poor = [f"{name} ({100.0 * float(share):.0f} %)" for name, share in
            zip(model.velocity_names, residual.after, strict=True) if share > 0.5]
    return [f"efforts that no parameters explain well: {', '.join(poor)}"] if poor else []
