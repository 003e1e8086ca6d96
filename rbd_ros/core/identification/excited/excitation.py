"""Excitation motions: periodic, within all limits, with the largest determinant of the information matrix.

`q(t) = c₀ + Σ_k a_k sin(2πkt/T) + b_k cos(2πkt/T)`, with zero velocity and acceleration at its ends, so that it can
start, end and repeat at rest. `log det WᵀW` of the base regressor W, including friction, is maximised by L-BFGS with
limits as penalties (Swevers et al. 1997); remaining violations are removed by a smaller amplitude. Among obstacles the
search begins with that motion about a clear centre, smaller, and ends between this and its optimum.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...compiled.computing_time import computing_time
from ...errors import RbdError, shown
from ...model.robot_model import RobotModel
from ...model.scalars import positive
from ...motion.collision.clearance import CLEARANCE
from ...motion.collision.collision_model import CollisionModel
from ...motion.collision.distance_rows import FAR, DistanceRows
from ...motion.usage import Usage
from ...motion.places.plane_limit import PlaneLimit, Planes
from ...motion.optimal.limits import CheckedLimits, MotionLimits, checked_limits
from ...motion.trajectory import Reference
from ..base_parameters import structural_base
from .excitation_cost import Information, Penalty, Series
from ...motion.periodic_motion import PeriodicMotion
from ..regressor_columns import columns_of, parameter_names

Array = NDArray[np.float64]
Progress = Callable[[str], None]
FREELY = 0.35         # share of the time for the motion without collisions
FASTEST = 0.5          # Hz, default frequency of the highest harmonic
LONGEST_PERIOD = 20.0  # s
RATE = 1000.0          # Hz, of the certificate
MARGIN = 0.97          # share of the limits used in the optimisation
ROUNDS = ((1e1, 0.35), (1e3, 0.35), (1e5, 0.3))    # weight of the limits, share of the time
CENTRES, FEW = 1000, 20    # random configurations, and the farthest from obstacles among them
SHARES, SAMPLES = 0.7 ** np.arange(16), 60    # of the amplitude, and samples of a period, to compare them
TRIALS = 14            # of amplitudes
SMALLEST = 0.2         # of the amplitude that was found, below which limits are called too narrow
REACH = np.pi          # rad or m about neutral, for joints without position limits


@dataclass(frozen=True, eq=False, repr=False)
class Excitation:
    """A motion to record: `motion(t)` has .q, .v, .a (N, nv), rad, m and s; it starts and ends at rest at one position.

    condition: of the sampled base regressor with friction, rows divided by effort limits, unit columns. log_det: of the
    information matrix. usage: the largest ratio to each limit at 1 kHz, at most 1; for "clearance" 1 minus the smallest
    clearance (m), for "distance" 1 minus the smallest distance beyond the clearance of collision shapes. duration (s):
    `periods` times the period. without_collisions: condition and log_det of the motion that would be, without them.
    """

    model: RobotModel
    motion: PeriodicMotion
    duration: float
    periods: int
    condition: float
    log_det: float
    usage: dict[str, Usage]
    seconds: float
    without_collisions: tuple[float, float] | None = None

    def __call__(self, t: ArrayLike) -> Reference:
        return self.motion(t)

    @property
    def good(self) -> bool:
        """Whether all limits are kept."""
        return all(usage.ratio <= 1.0 for usage in self.usage.values())

    def __repr__(self) -> str:
        kept = ", ".join(f"{name} {100.0 * usage.ratio:.0f} % ({usage.joint})" for name, usage in self.usage.items())
        return f"Excitation of '{self.model.name}': {self.duration:g} s, condition number {self.condition:.3g}; {kept}"


def excitation(model: RobotModel, duration: float, *, limits: MotionLimits | None = None, harmonics: int | None = None,
               period: float | None = None, rotors: bool = True, planes: Iterable[PlaneLimit] = (),
               collisions: CollisionModel | None = None, clearance: float = CLEARANCE,
               seconds: float = 40.0, seed: int = 0, progress: Progress | None = None) -> Excitation:
    """A motion of this duration (s) that excites the model's inertial parameters, rotors and friction.

    limits: `MotionLimits`; by default those of the model. harmonics: number; None: up to 0.5 Hz. period (s): None:
    duration divided by the smallest integer that makes it at most 20 s. planes: `PlaneLimit`s of points. collisions: no
    pair of its pieces comes nearer than the clearance (m), certified for all times. seconds: of computation. seed: of
    the random start. progress: called with lines of text. Raises `RbdError` for joints with quaternions, for joints
    without any limit of velocity, acceleration and effort, and if the limits allow no motion.

        >>> limits = rbd.MotionLimits(velocity=2.0, acceleration=10.0)
        >>> rbd.excitation(rbd.sample("two_link"), 5.0, limits=limits, seconds=0.2).motion(0.0).v.round(6) + 0.0
        array([0., 0.])
    """
    total = positive(duration, "duration", "time")
    budget = positive(seconds, "seconds", "time")
    if not model.nv or model.nq != model.nv or model._quaternions:
        raise RbdError("excitation: expected a model with joints without quaternions")
    times = max(1, int(np.ceil(total / LONGEST_PERIOD))) if period is None else max(
        1, round(total / positive(period, "period", "time")))
    cycle = total / times
    count = max(3, round(FASTEST * cycle)) if harmonics is None else harmonics
    if isinstance(count, bool) or not isinstance(count, int) or not 2 <= count <= 100:
        raise RbdError(f"harmonics must be an integer from 2 to 100, got {shown(harmonics)}")
    allowed, half_spaces = checked_limits(model, limits), Planes(model, planes)
    bounded = np.isfinite(allowed.velocity) | np.isfinite(allowed.acceleration) | np.isfinite(allowed.effort)
    if not bounded.all():
        raise RbdError(f"excitation: joint '{model.velocity_names[int(np.argmin(bounded))]}' has no limit of velocity, "
                       "acceleration or effort: its speed would be unbounded. Give one of them")
    tell = progress or (lambda line: None)
    begin = computing_time()
    names = parameter_names(model)
    chosen = np.arange(len(names))
    if not rotors:
        rotor = columns_of(model, "rotor")
        chosen = np.delete(chosen, np.arange(rotor.start, rotor.stop))
    base = structural_base(model, chosen)
    columns = chosen[base.independent]
    series = Series(count, cycle, max(12 * count, 120))
    information = Information(model, series, columns, row_weights(model, allowed))
    rng = np.random.default_rng(seed)
    x = _start(model, series, allowed, rng)
    narrowed = _narrowed(allowed)
    apart = None if collisions is None else DistanceRows.of_all(model, collisions, clearance)
    x = _optimised(x, information, Penalty(model, series, narrowed, half_spaces),
                   begin + (0.9 if apart is None else FREELY) * budget, tell)
    keeps = partial(certified, model, limits=allowed, planes=half_spaces)
    motion, usage = _largest(series.coefficients(x), _at_rest(model, series.coefficients(x), allowed), cycle, times,
                             keeps, SMALLEST)
    free = None
    if apart is not None:
        free = information.quality(series.projected(motion.coefficients))
        keeps = partial(keeps, apart=apart)
        moved = _moved(model, motion.coefficients, allowed, half_spaces, apart, cycle, rng)
        begins = _largest(moved, _at_rest(model, moved, allowed), cycle, times, keeps)[0].coefficients
        x = _optimised(series.projected(begins), information, Penalty(model, series, narrowed, half_spaces, apart),
                       begin + 0.9 * budget, tell)
        motion, usage = _largest(series.coefficients(x), begins, cycle, times, keeps)
    condition, log_det = information.quality(series.projected(motion.coefficients))
    if free is not None and free[1] < log_det:    # both are local optima: this one would do without collisions, too
        free = condition, log_det
    tell(f"condition number {condition:.3g}")
    return Excitation(model, motion, total, times, condition, log_det, usage, computing_time() - begin, free)


def row_weights(model: RobotModel, limits: CheckedLimits) -> Array:
    """Inverse effort limit per joint, or 1 if a joint has none."""
    return 1.0 / limits.effort if np.isfinite(limits.effort).all() else np.ones(model.nv)


def _narrowed(limits: CheckedLimits) -> CheckedLimits:
    half = 0.5 * (limits.position_upper - limits.position_lower)
    bounded = np.isfinite(half)
    middle = np.where(bounded, limits.position_lower + np.where(bounded, half, 0.0), 0.0)
    low = np.where(bounded, middle - MARGIN * half, limits.position_lower)
    high = np.where(bounded, middle + MARGIN * half, limits.position_upper)
    return replace(limits, position_lower=low, position_upper=high, velocity=MARGIN * limits.velocity,
                   acceleration=MARGIN * limits.acceleration, effort=MARGIN * limits.effort)


def joint_ranges(model: RobotModel, limits: CheckedLimits) -> tuple[Array, Array]:
    """Middle and half range of positions; about the neutral position without limits."""
    neutral = model.neutral()
    low = np.where(np.isfinite(limits.position_lower), limits.position_lower, neutral - REACH)
    high = np.where(np.isfinite(limits.position_upper), limits.position_upper, neutral + REACH)
    low, high = np.maximum(low, high - 4.0 * REACH), np.minimum(high, low + 4.0 * REACH)
    return 0.5 * (low + high), 0.5 * (high - low)


def _start(model: RobotModel, series: Series, limits: CheckedLimits, rng: np.random.Generator) -> Array:
    """Random coefficients about the middle, within position and velocity limits."""
    middle, half = joint_ranges(model, limits)
    x = rng.normal(size=(series.size, model.nv))
    x[0] = 0.0
    q, v, a = series.motion(x)
    share = np.maximum(np.abs(q).max(axis=0) / (0.7 * half), np.abs(v).max(axis=0) / (0.6 * limits.velocity))
    share = np.maximum(share, np.abs(a).max(axis=0) / (0.6 * limits.acceleration))
    x = x / np.where(share > 0.0, share, 1.0)
    x[0] = middle
    return x


def _optimised(x: Array, information: Information, penalty: Penalty, until: float, tell: Progress) -> Array:
    """Maximise by L-BFGS with increasing penalty weights, until this time."""
    from scipy.optimize import minimize

    shape, begin = x.shape, computing_time()
    best = x
    reported = [begin]
    spent = 0.0
    for weight, share in ROUNDS:
        spent += share
        stop = begin + spent * (until - begin)

        def cost(flat: NDArray[np.float64], weight: float = weight) -> tuple[float, Array]:
            point = flat.reshape(shape)
            value, gradient, log_det = information.cost(point)
            over, slope = penalty.cost(point)
            now = computing_time()
            if now - reported[0] > 2.0:
                reported[0] = now
                tell(f"log det {log_det:.1f}, beyond limits {over:.2g}")
            return value + weight * over, (gradient + weight * slope).reshape(-1)

        def check(flat: object, stop: float = stop) -> None:
            if computing_time() > stop:
                raise StopIteration

        solution = minimize(cost, best.reshape(-1), jac=True, method="L-BFGS-B", callback=check,
                         options={"maxiter": 1000, "maxcor": 30})
        best = solution.x.reshape(shape)
    return best


def _at_rest(model: RobotModel, coefficients: Array, limits: CheckedLimits) -> Array:
    """No motion, at the centre of this one, away from the ends of the joints."""
    middle, half = joint_ranges(model, limits)
    rest = np.zeros_like(coefficients)
    rest[0] = np.clip(coefficients[0], middle - 0.9 * half, middle + 0.9 * half)
    return rest


def _moved(model: RobotModel, coefficients: Array, limits: CheckedLimits, planes: Planes, apart: DistanceRows,
           cycle: float, rng: np.random.Generator) -> Array:
    """The motion about a clear centre: its own, or of random ones far from obstacles the one with the most amplitude.
    """
    from ...dynamics.inverse import gravity_effort

    def room(q: Array) -> Array:
        """Least distance (N,) beyond the clearance and the planes, m."""
        rows = [apart.values(q) - apart.clearance, planes.values(q)]
        return np.concatenate(rows, axis=1).min(axis=1, initial=FAR)

    middle, half = joint_ranges(model, limits)
    centres = middle + 0.7 * half * rng.uniform(-1.0, 1.0, (CENTRES, model.nv))
    centres = centres[(np.abs(gravity_effort(model, centres)) < MARGIN * limits.effort).all(axis=1)]
    centres = centres[np.argsort(-room(centres), kind="stable")[:FEW]]
    centres = np.concatenate([_at_rest(model, coefficients, limits)[:1], centres])
    centres = centres[room(centres) > 0.0]
    if not len(centres):
        raise RbdError(f"excitation: no motion that hits nothing: none of {CENTRES} random configurations is clear")
    swing = PeriodicMotion(coefficients, cycle, 1)(np.linspace(0.0, cycle, SAMPLES)).q - coefficients[0]
    clear = np.zeros(len(centres), dtype=bool)
    for share in SHARES:
        q = centres[:, None] + share * swing
        clear = (room(q.reshape(-1, model.nv)).reshape(q.shape[:2]) > 0.0).all(axis=1)
        clear &= (np.abs(q - middle) < half).all(axis=(1, 2))
        if clear.any():
            break
    moved = coefficients.copy()
    moved[0] = centres[np.argmax(clear)]    # the first one
    return moved


def _largest(wanted: Array, safe: Array, cycle: float, times: int,
             keeps: Callable[[PeriodicMotion], dict[str, Usage]],
             least: float = 0.0) -> tuple[PeriodicMotion, dict[str, Usage]]:
    """The motion nearest to the wanted one that keeps all limits, of those between a safe one and this, linear in the
    coefficients; raises `RbdError` if none of them from the share `least` of the wanted one on does.
    """
    low, high, share = 0.0, 1.0, 1.0
    found = None
    for k in range(TRIALS):
        trial = PeriodicMotion(safe + share * (wanted - safe), cycle, times)
        usage = keeps(trial)
        if all(entry.ratio <= 1.0 for entry in usage.values()):
            low, found = share, (trial, usage)
            if share in (0.0, 1.0):
                break
        else:
            high = share
        share = 0.5 * (low + high) if low else 0.9 * high**2 if k < TRIALS - 2 else 0.0    # at last the safe one
        if share < least:
            break
    if found is None:
        name, worst = max(usage.items(), key=lambda item: item[1].ratio)
        if name == "distance":
            raise RbdError("excitation: no motion that hits nothing: even with a small amplitude "
                           f"{worst.joint} are nearer than the clearance")
        raise RbdError(f"excitation: no motion within the limits: {name} of {worst.joint} is {worst.ratio:.3g} times "
                       "its limit even with a small amplitude")
    return found


def certified(model: RobotModel, motion: PeriodicMotion, limits: CheckedLimits, planes: Planes,
              rate: float = RATE, apart: DistanceRows | None = None) -> dict[str, Usage]:
    """The largest ratio to each limit at this rate (Hz); for "clearance", 1 minus the smallest clearance (m), and for
    "distance" 1 minus the smallest distance beyond the clearance, which is certified between samples, too.
    """
    from ...dynamics.friction import friction_effort
    from ...dynamics.inverse import inverse_dynamics
    from ...motion.optimal.certificate import ratio_to_limits

    t = np.linspace(0.0, motion.period, max(int(np.ceil(motion.period * rate)), 100) + 1)
    q, v, a = motion(t)[:3]
    values = {"position": q, "velocity": v, "acceleration": a}
    if np.isfinite(limits.effort).any():
        values["effort"] = inverse_dynamics(model, q, v, a) + friction_effort(model, v)
    usage = {}
    for name, column in values.items():
        lower, upper = limits.of(name)
        if (np.isfinite(lower) | np.isfinite(upper)).any():
            ratio = ratio_to_limits(column, lower, upper)
            i, j = np.unravel_index(int(np.argmax(ratio)), ratio.shape)
            usage[name] = Usage(float(ratio[i, j]), model.velocity_names[j], float(t[i]))
    if len(planes):
        clear = planes.values(q)
        i, j = np.unravel_index(int(np.argmin(clear)), clear.shape)
        usage["clearance"] = Usage(1.0 - float(clear[i, j]), planes.names[j], float(t[i]))
    if apart is not None:
        usage["distance"] = apart.usage(motion, q, t)
    return usage
