"""Drive gains from a known load: factors K_j from recorded currents to N m or N, by motions without and with the load.

Per joint j, with s_j = 1 / K_j, the base regressor Y_j, and L_j the effort of the load (zero in recordings without):

    y_j(t + δ_j) = c_j (1 + l_j sign(c_j) p_j) + F_j φ_j + noise,    c_j = s_j (Y_j π + L_j),    p_j = tanh(v_j / s)

(Gautier, Briot 2014). Bodies π are common to all joints and recordings; friction φ_j, in units of the recording, and
the delay δ_j belong to one joint and recording; the load-dependent friction l_j of the gear to one joint. The noise is
on y, so least squares of y, weighted by joint, is the total least squares of the problem; Gauss–Newton from a linear
fit: per joint, y_j on [Y_j, L_j, F_j] is linear in s_j. Intervals of K_j are the inverted ones of s_j, with the
covariance of `linear_fit`; if an interval of s_j contains zero, K_j is unknown.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..derivatives.regressor import PARAMETERS
from ..dynamics.friction import SMOOTHING
from ..errors import RbdError, shown, unknown_name
from ..model.inertia import Inertia
from ..model.payload import payload
from ..model.robot_model import RobotModel
from ..model.state import not_a_model
from .base_parameters import structural_base
from .effort_checks import CLEAR as CLEAR_FACTOR
from .effort_checks import HIGH, LOW, check_efforts
from .effort_factor import correlated
from .linear_fit import FINEST, LinearFit, Rows, linear_fit
from .recorded.recording import Recording
from .recorded.signals import LARGEST, REST, decimation, prepare
from .regressor_columns import columns_of, parameters_of
from .stacking import Equations
from .transmission import CoupledMotors

Array = NDArray[np.float64]
KNOWN = {"inertia": 10, "com": 4, "mass": 1}    # of the load: how many of its ten numbers are known
ROUNDS = 15          # of Gauss–Newton
SETTLED = 1e-4       # relative change of the gains that ends it
LONGEST_DELAY = 0.2  # s
FELT = 3.0           # smallest s_j, in standard errors, of a joint in the initial fit
CLEAR = 0.5          # largest relative half width of the interval of a reported gain
MISFIT = 0.5         # largest relative residual of a joint with a reported gain
COLOURED, PEAK = 0.08, 8.0    # largest relative residual with a spectral peak above PEAK times the mean
JUMPS = 5.0          # largest travel of a joint's raw positions, relative to that of the filtered ones
ROWS, SHORTEST = 3, 5.0    # fewest filtered rows per unknown, and s, without and with the load
APART = 5.0          # largest difference of gain between a joint's separate fit and the common fit, in standard errors
SURELY = 2.0         # significance of friction ratios, in standard errors
CHANGED, UNLIKE = 1.3, 2.0    # ratios of friction that are reported, and that rule out a gain
UNSEEN = 1e-3        # lower bound of friction, relative to the largest
AGAINST = 4.0        # significance of negative friction power, in standard errors
FRICTION = ("viscous", "coulomb", "offset")


@dataclass(frozen=True, eq=False, repr=False)
class DriveGains:
    """The result of `drive_gains`, in the model's order of joints.

    gains (nv,): factors from recorded values to N m or N, with sign; NaN if the recordings do not determine one.
    interval (nv, 2): at 95 %; infinite if unbounded. residual (nv,): ‖y − ŷ‖ / ‖y‖ of the recorded values while the
    joint moves, NaN without any. delay (k, nv): of values relative to positions, s, per recording, those without load
    first. load_friction (nv,): friction as a share of the joint's load. findings: exclusions, misfits and doubts, as
    text.
    """

    joints: tuple[str, ...]
    gains: Array
    interval: Array
    residual: Array
    delay: Array
    load_friction: Array
    findings: tuple[str, ...]

    @property
    def missing(self) -> tuple[str, ...]:
        """Joints with undetermined gain."""
        return tuple(name for name, gain in zip(self.joints, self.gains, strict=True) if np.isnan(gain))

    def __repr__(self) -> str:
        return "DriveGains\n  " + "\n  ".join(
            f"{name}: not shown" if np.isnan(gain) else f"{name}: {gain:.4g} ({low:.4g} to {high:.4g})"
            for name, gain, (low, high) in zip(self.joints, self.gains, self.interval, strict=True))


def drive_gains(model: RobotModel, unloaded: Recording | Sequence[Recording], loaded: Recording | Sequence[Recording],
                body: str, load: Inertia, *, known: str = "inertia", cutoff: float | None = None,
                smoothing: float = SMOOTHING, slowest: float = REST) -> DriveGains:
    """Find the factors from recorded currents, or torques in other units, to N m and N, from a known load.

    unloaded, loaded: one or several recordings without and with the load, of the same or different motions; inertias
    and friction are unknown. load: added to `body`, in the frame of its link. known: "inertia" (all of the load), "com"
    (its mass and centre of mass) or "mass"; the other parameters of the load are unknown. cutoff (Hz), smoothing and
    slowest (rad/s, m/s) as of `identify`. Raises `RbdError` for invalid data, if no joint feels the load, or if
    recordings without and with the load are swapped.

        >>> model, load = rbd.sample("two_link"), rbd.Inertia(2.0, np.array([0.1, 0.0, 0.0]), 0.01 * np.eye(3))
        >>> t, sides = np.linspace(0.0, 20.0, 2001), []
        >>> for k, robot in enumerate((model, model.with_payload("tip", load))):
        ...     motion = rbd.SplineMotion(np.random.default_rng(k).normal(size=(40, 2)), 20.0)(t)
        ...     currents = rbd.inverse_dynamics(robot, motion.q, motion.v, motion.a) / [10.0, 5.0]
        ...     sides.append(rbd.Recording(t, motion.q, tau=currents))
        >>> rbd.drive_gains(model, *sides, "tip", load).gains.round(2)
        array([10.,  5.])
    """
    if not isinstance(model, RobotModel):
        raise not_a_model(model)
    first, second = _recordings(unloaded, "unloaded"), _recordings(loaded, "loaded")
    if body not in model.body_names:
        raise unknown_name("body", body, model.body_names)
    if not isinstance(load, Inertia):
        raise RbdError(f"load: expected rbd.Inertia, got {shown(load)}")
    load = payload(load.mass, load.com, load.matrix)
    if known not in KNOWN:
        raise unknown_name("known", known, KNOWN)
    for a in first:
        if any(a.same_as(b) for b in second):
            raise RbdError(f"{a.source}: the same recording is given without and with the load")
    if cutoff is None:
        cutoff = max(prepare(model, recording, None, 0.0, smoothing).cutoff for recording in (*first, *second))
    columns = slice(PARAMETERS * model.body_index(body), PARAMETERS * model.body_index(body) + PARAMETERS)
    records, findings = [], []
    for k, recording in enumerate((*first, *second)):
        condition = "unloaded" if k < len(first) else "loaded"
        prepared = prepare(model, recording, cutoff, 0.0, smoothing)
        equations = Equations(model, prepared, np.ones(model.nv), CoupledMotors.none(model.nv), slowest)
        _require_motion(recording, equations)
        rows = equations.rows()
        findings += [f"{condition}: {note}" for note in (*prepared.notes, *equations.left_out(rows))]
        records.append(_Record(equations, rows, rows.X[..., columns] * (k >= len(first))))
    problem = _Problem(model, records, _ten(load), KNOWN[known])
    if not (problem.L.any() or problem.M.any()):
        raise RbdError(f"body '{body}' does not move in the loaded recording: a load on it has no effect")
    _require_length(problem, np.arange(len(records)) >= len(first))
    return _result(problem, findings, body)


def _recordings(value: object, name: str) -> list[Recording]:
    recordings: list[Recording] = []
    for recording in value if isinstance(value, list | tuple) else [value]:
        if not isinstance(recording, Recording):
            raise RbdError(f"{name}: expected rbd.Recording, or several, got {shown(recording)}")
        recordings.append(recording)
    if not recordings:
        raise RbdError(f"{name}: expected at least one recording")
    return recordings


def _ten(load: Inertia) -> Array:
    """Mass, first moment, inertia about the origin in the order of the regressor."""
    xx, xy, xz, yy, yz, zz = load.about_origin[np.triu_indices(3)]
    return np.array([load.mass, *load.moment, xx, xy, yy, xz, yz, zz])


def _require_motion(recording: Recording, equations: Equations) -> None:
    """Raise `RbdError` if positions jump back and forth between rows: mixed rows, or noise."""
    ordered = recording.in_order_of(equations.model)[0]
    order = np.argsort(ordered.t, kind="stable")
    good: NDArray[np.bool_] = np.all(np.abs(ordered.q) < LARGEST, axis=1)[order]
    travel = np.sum(np.abs(np.diff(ordered.q[order[good]], axis=0)), axis=0)
    pieces = equations.prepared.pieces
    filtered = np.sum([np.abs(piece.v).sum(axis=0) / piece.rate for piece in pieces], axis=0)
    longest = int(np.argmax(filtered))
    if travel[longest] > JUMPS * filtered[longest]:
        raise RbdError(f"{recording.source}: positions of {equations.model.velocity_names[longest]} jump back and "
                       f"forth between rows: they travel {travel[longest]:.3g} in all, {filtered[longest]:.3g} "
                       "filtered. Are the stamps right?")


def _require_length(problem: _Problem, loaded: NDArray[np.bool_]) -> None:
    """Raise `RbdError` if the recordings without the load, or those with it, are too short."""
    least = ROWS * (problem.Y.shape[-1] + len(FRICTION) + 1)
    for condition, side in (("without", ~loaded), ("with", loaded)):
        indices = np.flatnonzero(side)
        count = int(np.isin(problem.owner, indices).sum())
        seconds = sum(problem.records[int(k)].equations.prepared.duration for k in indices)
        if count < least or seconds < SHORTEST:
            raise RbdError(f"the motion {condition} the load is too short: {seconds:.1f} s with {count} filtered rows, "
                           f"expected at least {SHORTEST:g} s and {least}. Record a longer one")


def _result(problem: _Problem, findings: list[str], body: str) -> DriveGains:
    """Solve, leaving out joints that contradict the others, and assess the result."""
    model, names = problem.model, problem.model.velocity_names
    faults: list[str] = []
    silent = ~problem.measured.any(axis=0)
    while True:
        start = problem.start()
        if start is None:
            raise RbdError("; ".join([*faults, f"no joint feels the load on '{body}': record a motion that turns it "
                                               "against gravity, or a heavier load"]))
        x, fit = problem.solved(start)
        described = problem.Y_all @ parameters_of(model)[:problem.Y_all.shape[-1]]
        weights = fit.weights / problem.noise(problem.signals(x) - problem.predicted(x))**2
        if np.sum(weights * x[problem.s]**2 * (problem.Y @ x[problem.pi]) * described) < 0.0:
            raise RbdError("the bodies that explain both recordings have negative masses: the recording without the "
                           "load and that with it are swapped, their columns are mixed, or the load hangs on another "
                           "body")
        y = problem.signals(x)
        residual = problem.residual(x, np.ones(len(y), dtype=bool))
        fault = _faults(problem, x, fit, y, residual)
        if not fault:
            break
        worst = max(fault, key=lambda j: float(residual[j]))
        faults.append(f"gain not shown: {names[worst]}: {fault[worst]}")
        problem.measured[:, worst] = False
        if 2 * len(faults) >= np.sum(~silent):
            raise RbdError("half of the joints, or more, contradict the rest, so no gain is shown: "
                           + "; ".join(faults))
    s, half = x[problem.s], fit.half_width[problem.s]
    delay = x[problem.delta].reshape(model.nv, -1).T
    with np.errstate(invalid="ignore"):
        clear = problem.measured.any(axis=0) & (half < CLEAR * np.abs(s))
    vague = problem.measured.any(axis=0) & ~clear
    findings = [*findings, *faults]
    for reason, which in (("no values were recorded", silent), ("the motions do not show it", vague)):
        if which.any():
            findings.append(f"gain not shown: {', '.join(names[j] for j in np.flatnonzero(which))}: {reason}")
    gains, interval = np.full(model.nv, np.nan), np.tile([-np.inf, np.inf], (model.nv, 1))
    gains[clear] = 1.0 / s[clear]
    interval[clear] = np.sort(np.column_stack([1.0 / (s - half)[clear], 1.0 / (s + half)[clear]]), axis=1)
    if (gains < 0.0).any():
        findings.append("gains with a negative sign: " + ", ".join(names[j] for j in np.flatnonzero(gains < 0.0)))
    findings += [f"friction of {names[j]} is {ratio:.2g} times as large in one recording as in another: was it as "
                 "warm, and were its values of the same unit?" for j, ratio in enumerate(problem.friction_ratio(x, fit))
                 if ratio > CHANGED and clear[j]]
    findings += _scale(problem, gains)
    return DriveGains(names, gains, interval, residual, delay, x[problem.l], tuple(findings))


def _faults(problem: _Problem, x: Array, fit: LinearFit, y: Array, residual: Array) -> dict[int, str]:
    """Joints whose values contradict the others' or physics, with the reason."""
    s, half = x[problem.s], fit.half_width[problem.s]
    separate, error = problem.separate_fits(x)
    late = np.abs(x[problem.delta].reshape(len(s), -1)).max(axis=1) >= LONGEST_DELAY
    residuals = (y - problem.predicted(x)) * problem.measured
    by_recording = [problem.residual(x, problem.owner == k) for k in range(len(problem.records))]
    worst = np.fmax.reduce([residual, *by_recording])    # of single recordings too: large values of others may hide it
    backwards, changed = problem.negative_friction(x, fit), problem.friction_ratio(x, fit)
    faults: dict[int, str] = {}
    for j in map(int, np.flatnonzero(problem.measured.any(axis=0))):
        if late[j]:
            faults[j] = f"its values fit the positions best {LONGEST_DELAY:g} s or more later or earlier"
        elif worst[j] > MISFIT or (residual[j] > COLOURED and correlated(residuals[:, j]) > PEAK):
            faults[j] = f"{100.0 * worst[j]:.0f} % of its values are not explained"
        elif np.isfinite(half[j]) and abs(separate[j] - s[j]) > APART * np.hypot(error[j], half[j] / 1.96):
            faults[j] = "it differs from what its own values say alone, without the other joints'"
        elif backwards[j]:
            faults[j] = "its friction would drive it"
        elif changed[j] > UNLIKE:
            faults[j] = f"its friction is {changed[j]:.3g} times as large in one recording as in another"
    return faults


def _scale(problem: _Problem, gains: Array) -> list[str]:
    """Finding about bodies much heavier or lighter than in the description."""
    record = problem.records[0]
    equations = replace(record.equations, gain=np.where(np.isnan(gains), 1.0, gains))
    check = check_efforts(equations, replace(record.rows, y=equations.rows().y))
    usable = ~np.isnan(gains) & (check.error < CLEAR_FACTOR)
    factor = float(np.median(check.factor[usable])) if usable.any() else 1.0
    return [f"with these gains the efforts are {factor:.3g} times what the description says: is the mass of the load "
            "right?"] * (not LOW <= factor <= HIGH)


@dataclass(frozen=True, eq=False)
class _Record:
    """The rows of one recording: pieces in equations, load columns (N, nv, 10), zeros without the load."""

    equations: Equations
    rows: Rows
    load: Array

    def signals(self, delay: Array) -> Array:
        """The recorded values (N, nv), read `delay` (nv,) later."""
        from scipy.interpolate import CubicSpline

        y = []
        for piece in self.equations.prepared.pieces:
            t = piece.t[decimation(self.equations.prepared, piece)]
            splines = [CubicSpline(piece.t, column) for column in piece.tau.T]
            times = [np.clip(t + late, piece.t[0], piece.t[-1]) for late in delay]
            y.append(np.column_stack([f(x) for f, x in zip(splines, times, strict=True)]))
        return np.concatenate(y)


class _Problem:
    """The stacked rows, and the slices of the unknowns: bodies π, s, load λ, l, friction φ, delays δ."""

    def __init__(self, model: RobotModel, records: Sequence[_Record], load: Array, known: int) -> None:
        nv, count = model.nv, len(records)
        self.model, self.records = model, records
        self.joints = np.arange(nv)
        chosen = np.concatenate([np.arange(PARAMETERS * len(model.body_names)),
                                 columns_of(model, "rotor").start + self.joints])
        base = chosen[structural_base(model, chosen).independent]
        self.lengths = tuple(k for record in records for k in record.rows.lengths)
        self.measured = np.concatenate([record.rows.measured for record in records])
        self.correlation = records[0].rows.correlation
        self.Y = np.concatenate([record.rows.X[..., base] for record in records])
        self.Y_all = np.concatenate([record.rows.X[..., columns_of(model, "inertial")] for record in records])
        columns = np.concatenate([record.load for record in records])
        self.L, self.M = columns[..., :known] @ load[:known], columns[..., known:]
        slips, frictions = [], []
        for k, record in enumerate(records):
            parts = [record.rows.X[:, self.joints, columns_of(model, kind).start + self.joints] for kind in FRICTION]
            slips.append(parts[1])
            block = np.zeros((len(parts[0]), nv, len(FRICTION) * count + 2))
            block[..., len(FRICTION) * k:len(FRICTION) * (k + 1)] = np.stack(parts, axis=-1)
            block[..., -2], block[..., -1] = np.abs(parts[0]), parts[0] * np.abs(parts[0])
            frictions.append(block)
        self.p, self.F = np.concatenate(slips), np.concatenate(frictions)
        self.owner = np.repeat(np.arange(count), [len(record.rows.y) for record in records])
        sizes = [self.Y.shape[-1], nv, self.M.shape[-1], nv, nv * self.F.shape[-1], nv * count]
        ends = np.cumsum(sizes)
        self.size = int(ends[-1])
        self.pi, self.s, self.extra, self.l, self.phi, self.delta = (
            slice(int(b - a), int(b)) for a, b in zip(sizes, ends, strict=True))

    def blocks(self, values: Array) -> Array:
        """Columns (N, nv, k) of single joints as block-diagonal columns (N, nv, nv·k)."""
        n, nv, k = values.shape
        out = np.zeros((n, nv, nv, k))
        out[:, self.joints, self.joints] = values
        return out.reshape(n, nv, nv * k)

    def delay_columns(self, slope: Array) -> Array:
        """−ẏ in the column of each joint and recording, (N, nv, nv·R)."""
        in_recording = self.owner[:, None] == np.arange(len(self.records))
        return -self.blocks(slope[..., None] * in_recording[:, None, :])

    def carried(self, x: Array) -> Array:
        """Y π + L (N, nv), efforts without friction in N m or N."""
        effort: Array = self.Y @ x[self.pi] + self.L + self.M @ x[self.extra]
        return effort

    def predicted(self, x: Array) -> Array:
        """y (N, nv) for these unknowns, without delays."""
        c = x[self.s] * self.carried(x)
        phi = x[self.phi].reshape(len(self.joints), -1)
        y: Array = c * (1.0 + x[self.l] * np.sign(c) * self.p) + np.einsum("njk,jk->nj", self.F, phi)
        return y

    def signals(self, x: Array) -> Array:
        delays = x[self.delta].reshape(len(self.joints), -1).T
        return np.concatenate([record.signals(delay) for record, delay in zip(self.records, delays, strict=True)])

    def residual(self, x: Array, chosen: NDArray[np.bool_]) -> Array:
        """‖y − ŷ‖ / ‖y‖ (nv,) of the chosen rows while the joint moves; NaN without any."""
        y = self.signals(x)
        error, size = (np.linalg.norm((z * self.measured)[chosen], axis=0) for z in (y - self.predicted(x), y))
        out: Array = np.where(size > 0.0, error / np.where(size > 0.0, size, 1.0), np.nan)
        return out

    def noise(self, residual: Array) -> Array:
        """Robust standard deviation (by the median) of each joint's residual per recording, (N, nv)."""
        out = np.ones_like(residual)
        for k in range(len(self.records)):
            rows = self.owner == k
            for j in self.joints:
                values = np.abs(residual[rows & self.measured[:, j], j])
                if len(values):
                    out[rows, j] = max(1.4826 * float(np.median(values)), FINEST * float(np.ptp(residual[:, j])), 1e-12)
        return out

    def slope(self, y: Array) -> Array:
        """Time derivatives of rows y (N, nv)."""
        from scipy.interpolate import CubicSpline

        out, first = np.zeros_like(y), 0
        for prepared in (record.equations.prepared for record in self.records):
            for piece in prepared.pieces:
                t = piece.t[decimation(prepared, piece)]
                part = slice(first, first + len(t))
                if len(t) > 1:
                    out[part] = CubicSpline(t, y[part])(t, 1)
                first = part.stop
        return out

    def rows(self, x: Array) -> Rows:
        """The problem linearised about x, whose solution is the next x."""
        y, slope = self.signals(x), self.slope(self.predicted(x))    # without the noise of y
        carried = self.carried(x)
        gain = 1.0 + x[self.l] * np.sign(x[self.s] * carried) * self.p
        J = np.concatenate([
            (x[self.s] * gain)[..., None] * self.Y, self.blocks((carried * gain)[..., None]),
            (x[self.s] * gain)[..., None] * self.M, self.blocks((np.abs(x[self.s] * carried) * self.p)[..., None]),
            self.blocks(self.F), self.delay_columns(slope)], axis=2)
        free = x.copy()
        free[self.delta] = 0.0
        noise = self.noise(y - self.predicted(x))
        return Rows(J / noise[..., None], (y - self.predicted(x) + J @ free) / noise, self.lengths, self.measured,
                    self.correlation)

    def start(self) -> Array | None:
        """Initial unknowns from linear fits: s of each joint separately, π from the joints with significant s, then s
        of the other joints. None if no joint has a significant s.
        """
        x = np.zeros(self.size)
        y = self.signals(x)
        delay_columns, k = self.delay_columns(self.slope(y)), self.F.shape[-1]
        separate, error = self.separate_fits(x)
        significant = np.abs(separate) > FELT * error
        if not significant.any():
            return None
        x[self.s] = s = np.where(significant, separate, 0.0)
        X = np.concatenate([s[:, None] * self.Y, s[:, None] * self.M, self.blocks(self.F), delay_columns], axis=2)
        rows = Rows(X, y - s * self.L, self.lengths, self.measured & significant, self.correlation)
        fit = linear_fit(rows, intervals=False)
        a, b = self.Y.shape[-1], self.Y.shape[-1] + self.M.shape[-1]
        x[self.pi], x[self.extra] = fit.beta[:a], fit.beta[a:b]
        x[self.phi] = fit.beta[b:b + len(self.joints) * k]
        carried = self.carried(x)
        for j in map(int, np.flatnonzero(self.measured.any(axis=0) & ~significant)):
            X = np.concatenate([carried[:, j, None], self.F[:, j]], axis=1)
            beta = linear_fit(self.rows_of_joint(X, y, j), intervals=False).beta
            x[self.s][j], x[self.phi][j * k:(j + 1) * k] = beta[0], beta[1:]
        return x

    def separate_fits(self, x: Array) -> tuple[Array, Array]:
        """s (nv,) of each joint with separate base parameters, a linear problem, and its standard error; load-dependent
        friction is taken from x.
        """
        y = self.signals(x)
        noise = self.noise(y - self.predicted(x))
        delay_columns, count = self.delay_columns(self.slope(y)), len(self.records)
        load_friction = np.abs(x[self.s] * self.carried(x)) * self.p
        values, error = np.zeros(len(self.joints)), np.full(len(self.joints), np.inf)
        for j in map(int, np.flatnonzero(self.measured.any(axis=0))):
            active = np.abs(self.Y[:, j]).max(axis=0) > 0.0
            X = np.concatenate([self.L[:, j, None], self.M[:, j], self.F[:, j], load_friction[:, j, None],
                                delay_columns[:, j, j * count:(j + 1) * count], self.Y[:, j, active]], axis=1)
            fit = linear_fit(self.rows_of_joint(X / noise[:, j, None], y / noise, j))
            values[j], error[j] = fit.beta[0], np.sqrt(fit.covariance[0, 0])
        return values, error

    def rows_of_joint(self, X: Array, y: Array, j: int) -> Rows:
        """The rows of joint j."""
        return Rows(X[:, None], y[:, j, None], self.lengths, self.measured[:, j, None], self.correlation)

    def solved(self, x: Array) -> tuple[Array, LinearFit]:
        """The least-squares solution by Gauss–Newton, and the linear fit about it."""
        for _ in range(ROUNDS):
            before, x = x, linear_fit(self.rows(x), intervals=False).beta + self.delays_only(x)
            x[self.delta] = np.clip(x[self.delta], -LONGEST_DELAY, LONGEST_DELAY)
            if np.all(np.abs(x[self.s] - before[self.s]) <= SETTLED * np.abs(x[self.s])):
                break
        return x, linear_fit(self.rows(x))

    def delays_only(self, x: Array) -> Array:
        """The delays of x, which a step increments, with zeros for all other unknowns."""
        out = np.zeros(self.size)
        out[self.delta] = x[self.delta]
        return out

    def friction_ratio(self, x: Array, fit: LinearFit) -> Array:
        """Lower bound of the ratio of largest to smallest friction among the recordings (nv,), at a common speed. For
        joints with little effort without load, friction is the only evidence of equal units in all recordings.
        """
        count, k = len(self.records), self.F.shape[-1]
        out = np.ones(len(self.joints))
        for j in map(int, np.flatnonzero(self.measured.any(axis=0))):
            offsets = np.arange(len(FRICTION) * count).reshape(count, -1)[:, :2]    # viscous, Coulomb
            indices = self.phi.start + j * k + offsets
            speeds = [self.F[self.measured[:, j] & (self.owner == r), j, len(FRICTION) * r] for r in range(count)]
            if not all(map(len, speeds)):
                continue
            column = np.array([min(np.sqrt(np.mean(v**2)) for v in speeds), 1.0])
            level = x[indices] @ column * np.sign(x[self.s][j])
            error = SURELY * np.sqrt([column @ fit.covariance[np.ix_(a, a)] @ column for a in indices])
            if np.isfinite(error).all():
                low = float(np.max(level - error))
                out[j] = max(1.0, low / max(float(np.min(level + error)), UNSEEN * low)) if low > 0.0 else 1.0
        return out

    def negative_friction(self, x: Array, fit: LinearFit) -> NDArray[np.bool_]:
        """Mask (nv,) of joints whose friction has negative dissipation over all recordings."""
        out = np.zeros(len(self.joints), dtype=bool)
        speed = self.F[..., :len(FRICTION) * len(self.records):len(FRICTION)].sum(axis=-1)
        k = self.F.shape[-1]
        terms = np.setdiff1d(np.arange(k), len(FRICTION) * np.arange(len(self.records)) + FRICTION.index("offset"))
        for j in np.flatnonzero(self.measured.any(axis=0)):
            indices = self.phi.start + j * k + terms
            work = np.sum(speed[:, j, None] * self.F[:, j][:, terms] * self.measured[:, j, None], axis=0)
            covariance = fit.covariance[np.ix_(indices, indices)]
            if not np.isfinite(covariance).all():
                continue
            spread = np.sqrt(work @ covariance @ work)
            out[j] = work @ x[indices] * np.sign(x[self.s][j]) < -AGAINST * spread
        return out
