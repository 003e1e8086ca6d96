"""The ten inertial parameters of a load on a body, while the robot moves: recursive least squares with forgetting.

`τ − ID(q, v, a) − τ_f = Y_body(q, v, a) π`. Without accelerations both sides pass through the filter of the momentum
observer: the left one is less its estimate, and Y_body follows from the estimates of observers of robots that carry a
point mass each, without effort, since they are linear in the masses. Sums of products of the rows [Y_j, y_j] of all
joints with each other and with those of the sample before are kept, so that the residual's covariance and its
correlation from one sample to the next (of first order, as of a low-pass) are those of the present estimate at any
time. The estimate is that of generalized least squares (Cochrane and Orcutt 1949) with weights per joint; its
intervals count the correlation between joints, which share the noise of velocities (White 1980). Errors δ of the arm's
own parameters, with rows X δ of efforts, move the estimate by `(YᵀWY)⁻¹ YᵀWX δ`; their covariance is that of the
identification.
"""
from __future__ import annotations

import math
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..derivatives.regressor import PARAMETERS, inertial_regressor
from ..dynamics.friction import Friction, fitting, left_over, same_friction
from ..dynamics.inverse import inverse_dynamics
from ..errors import RbdError, shown
from ..identification.consistency import REACH, parameters_of_pseudo_inertia, prior_factor
from ..identification.consistent_fit import consistent_fit
from ..identification.expected_error import ParameterErrors
from ..identification.linear_fit import Rows
from ..identification.regressor_columns import inertia_of
from ..identification.unknowns import LOAD, LOAD_SPREAD, Unknowns
from ..model.inertia import Array, Inertia
from ..model.robot_model import RobotModel
from ..model.scalars import positive
from ..model.state import not_a_model, states
from .momentum_observer import LONGEST, MomentumObserver

if TYPE_CHECKING:    # 45 ms of imports that nodes do not need
    from ..identification.identified import Identification

HALF_WIDTH = 1.959964    # standard deviations of a 95 % interval
ROUNDS = 4               # of weights
FINEST = 1e-6            # smallest standard deviation of a residual, relative to the RMS of the effort
MOST_CORRELATED = 0.98
CLEAR = 0.3              # half width of an observed parameter, in units of the load's own mass and size
LEAST_MASS = 0.05        # kg: unit of loads that are lighter
FEWEST = 20              # samples
WEIGHT = 0.1             # of the prior of the consistent load, as in `identify`
UNCERTAIN = 0.05         # of the Coulomb level: open friction of a joint that counts
UNDETERMINED = 1e12      # variance, SI units, of the arm's parameters that its recording did not determine
OFTEN = 5                # times per sample that effects of the arm's parameters are computed, without accelerations
SPACING, SETTLING = 0.5, 5.0    # time constants of the filter between samples, and after a gap until the first one
PARDON = 0.25            # s of motion that the load explains, per second, take back what it did not
MOST = 1e8               # in rows, SI units: beyond what any arm has, and one of them outweighs all others for long
HEAVY, LONG = 10.0, 0.3    # kg, m: standard deviation of a load of which nothing is known, and its size


class FilteredRows:
    """Rows [Y_j, y_j] of a load's parameters without accelerations, through the filter K/(s + K) with K = gain."""

    def __init__(self, model: RobotModel, body: str, friction: Friction | None, gain: float) -> None:
        points = np.concatenate([np.zeros((1, 3)), np.eye(3), -np.eye(3), 1.0 - np.eye(3)])
        x = np.concatenate([points, np.ones((len(points), 1))], axis=1)
        self._to_parameters = np.linalg.inv(parameters_of_pseudo_inertia(x[:, :, None] * x[:, None, :]))
        self._arm, self._empty, *self._loaded = self._observers = (
            MomentumObserver(model, gain, friction), MomentumObserver(model, gain),
            *(MomentumObserver(model.with_payload(body, Inertia(1.0, point, np.zeros((3, 3)))), gain)
              for point in points))
        self._zeros = np.zeros(model.nv)
        self.time = math.nan    # of the last state, s

    def reset(self, t: float, q: Array, v: Array) -> None:
        """Begin with this state."""
        for observer in self._observers:
            observer.reset(q, v)
        self.time = t

    def update(self, t: float, q: Array, v: Array, tau: Array) -> tuple[Array, Array]:
        """The rows (nv, 11) at this state, tau the mean effort since the last one, and how much of each joint's effort
        friction near rest may be (nv,).
        """
        step, self.time = t - self.time, t
        external = self._arm.update(step, q, v, tau)
        empty = self._empty.update(step, q, v, self._zeros)
        of_masses = np.array([observer.update(step, q, v, self._zeros) - empty for observer in self._loaded])
        rows = np.vstack([self._to_parameters @ of_masses, -external]).T
        return rows, self._arm.friction_uncertainty


class ArmRows:
    """Derivatives of efforts by the arm's own parameters, with accelerations from differences of velocities, through
    the filter K/(s + K): as good as intervals need.
    """

    def __init__(self, errors: ParameterErrors, gain: float) -> None:
        self._errors, self._gain = errors, gain
        self._last = (math.nan, np.zeros(0))    # time, s, and velocities
        self.rows = np.zeros((errors.model.nv, len(errors.names)))

    def reset(self, t: float, v: Array) -> None:
        """Begin with this state."""
        self._last = t, np.array(v)
        self.rows = np.zeros_like(self.rows)

    def update(self, t: float, q: Array, v: Array) -> None:
        """Take in a state."""
        time, before = self._last
        step = t - time
        if step < SPACING / (OFTEN * self._gain):
            return
        X = self._errors.rows(q[None], v[None], (v - before)[None] / step)[0]
        self.rows += -math.expm1(-self._gain * step) * (X - self.rows)
        self._last = t, np.array(v)


class PayloadEstimator:
    """A load on a body, from motion of an arm whose model is good without it.

    friction: of the joints, or None; joints near rest, where friction may be anything, do not count. memory (s of
    motion): time constant of forgetting, or None: nothing is forgotten. gain (1/s): of the filter that takes the place
    of accelerations that are not given. threshold, N m or N, one or (nv,): an effort beyond what the load found so far
    and friction near rest explain, above which the robot touches something, or carries another load; by default never.
    patience (s): after so much motion with such efforts, of which four times as long without them takes as much back,
    it is another load, and everything is forgotten. identification: that the model and friction are of, whose errors
    then count in the intervals; without it the arm is taken to be known exactly.

    After `update`: mass (kg); com (3,), m, and inertia (3, 3) about it, kg m², in the frame and axes of the body's
    link; confidence (10,): half widths of 95 % intervals of m, m·com (x, y, z) and the inertia about the link's origin
    (xx, xy, yy, xz, yz, zz); observed (10,): which of these the motion has shown. What it has not shown is NaN, in com
    component by component; `load` is the whole as a body that can exist, the rest of it a guess. touching: whether the
    last sample was one of a contact, or of another load.

        >>> model, rng = rbd.sample("two_link"), np.random.default_rng(0)
        >>> loaded = model.with_payload("lower", rbd.Inertia(0.5, np.array([0.1, 0.0, 0.0]), 1e-3 * np.eye(3)))
        >>> estimator = rbd.PayloadEstimator(model, "lower")
        >>> for k in range(200):
        ...     q, v, a = rng.normal(size=(3, 2))
        ...     estimator.update(0.01 * k, q, v, a, rbd.inverse_dynamics(loaded, q, v, a))
        >>> round(estimator.load.mass, 3), estimator.observed.any()
        (0.5, np.True_)
    """

    def __init__(self, model: RobotModel, body: str, friction: Friction | None = None, memory: float | None = None, *,
                 gain: float = 10.0, threshold: ArrayLike = np.inf, patience: float = 2.0,
                 identification: Identification | None = None) -> None:
        if not hasattr(model, "_block"):
            raise not_a_model(model)
        if identification is not None and not hasattr(identification, "parameter_errors"):
            raise RbdError(f"identification: expected the result of rbd.identify, got {shown(identification)}")
        if identification is not None and identification.model.body_names != model.body_names:
            raise RbdError(f"identification: of another robot, '{identification.model.name}', expected '{model.name}'")
        first = PARAMETERS * model.body_index(body)
        self.model, self.body = model, body
        self.friction = None if friction is None else fitting(model, friction)
        self.memory = None if memory is None else positive(memory, "memory", "time")
        self.gain, self.patience = positive(gain, "gain", "rate"), positive(patience, "patience", "time")
        try:
            self.threshold = np.array(np.broadcast_to(np.asarray(threshold, dtype=np.float64), model.nv))
        except (TypeError, ValueError):
            self.threshold = np.full(1, np.nan)
        if not (self.threshold > 0.0).all():
            raise RbdError(f"threshold: expected a positive number or {model.nv} of them, got {shown(threshold)}")
        self.identification = identification
        self._errors = None if identification is None else identification.parameter_errors.of_model
        self._columns = slice(first, first + PARAMETERS)
        self._filter: FilteredRows | None = None    # made when it is needed
        self._arm: ArmRows | None = None
        self.reset()

    def reset(self) -> None:
        """Forget everything."""
        size = PARAMETERS + 1
        shape = (self.model.nv, size, self.model.nv, size)
        self._sums = np.zeros((3, *shape))    # of products of rows: now, with those before, before
        errors = 0 if self._errors is None else len(self._errors.names)
        # of products with rows of the arm's parameters: now with now, now with before, before with now, before
        self._arm_sums = np.zeros((4, self.model.nv, PARAMETERS, errors))
        self._count = np.zeros(self.model.nv)
        self._time = -math.inf    # of the last sample
        self._before: tuple[Array, NDArray[np.bool_]] | None = None    # its rows, and which of them count
        self._unexplained = 0.0    # s
        self.touching = False
        self.gap()
        self._changed()

    def same_as(self, other: PayloadEstimator) -> bool:
        """Whether both estimate the same in the same way."""
        return (self.identification is other.identification and (self.body, self.memory, self.gain, self.patience) == (
                    other.body, other.memory, other.gain, other.patience)
                and np.array_equal(self.model._block, other.model._block)
                and np.array_equal(self.threshold, other.threshold) and same_friction(self.friction, other.friction))

    def gap(self) -> None:
        """The filter in place of accelerations begins anew with the next state."""
        if self._filter is not None:
            self._filter.time = math.nan
        self._ready = math.inf

    def update(self, t: float, q: ArrayLike, v: ArrayLike, a: ArrayLike | None, tau: ArrayLike, *,
               contact: bool = False) -> None:
        """Take in a sample at time t (s): state, acceleration, and effort (nv,) of the motors. contact: the robot
        touches something, so that the sample says nothing of the load.

        a None: every state of a control loop comes, tau is the mean effort since the state before, as of
        `MomentumObserver.update`, and both sides of the equation pass through a filter that needs no acceleration. It
        begins anew after `gap` and after 1 s without a state. Raises `RbdError`, and takes nothing in, for invalid
        numbers and times that do not increase.
        """
        time = float(t) if isinstance(t, int | float | np.floating) and math.isfinite(t) else math.nan
        last = self._time if a is not None or self._filter is None else max(self._time, self._filter.time)
        if not math.isfinite(time) or time <= last:
            raise RbdError(f"t: expected a time later than the one before, got {shown(t)}")
        inputs = states(self.model, positions={"q": q}, rates={"v": v, "tau": tau} | ({} if a is None else {"a": a}))
        if inputs.batch is not None:
            raise RbdError("the estimator takes one state: arrays of one dimension")
        if a is not None:
            self._take(time, inputs.arrays[2], *self._rows(*inputs.arrays), contact)
        elif (sample := self._filtered(time, *inputs.arrays)) is not None:
            self._take(time, inputs.arrays[2], *sample, contact)

    @property
    def doubtful(self) -> bool:
        """Whether it touches something, or efforts of the latest motion were not explained: the estimate may be that of
        a load that was put down.
        """
        return self.touching or self._unexplained > 0.0

    def _rows(self, q: Array, v: Array, tau: Array, a: Array) -> tuple[Array, Array]:
        effort, uncertain = inverse_dynamics(self.model, q, v, a), np.zeros(len(v))
        if self.friction is not None:    # which may depend on the load, too
            tau = left_over(self.model, self.friction, v, tau)
            uncertain = (self.friction.level(v) + self.friction.packed[7] * np.abs(tau)) * (
                1.0 - np.tanh(v / self.friction.packed[4]) ** 2)
        Y = inertial_regressor(self.model, q, v, a)[:, self._columns]
        arm = [] if self._errors is None else [self._errors.rows(q[None], v[None], a[None])[0]]
        return np.concatenate([Y, (tau - effort)[:, None], *arm], axis=1), uncertain

    def _filtered(self, t: float, q: Array, v: Array, tau: Array) -> tuple[Array, Array] | None:
        """Rows `SPACING` time constants after the last ones; None in between, and until the filter has settled."""
        if self._filter is None:
            self._filter = FilteredRows(self.model, self.body, self.friction, self.gain)
            self._arm = None if self._errors is None else ArmRows(self._errors, self.gain)
        if not t - self._filter.time <= LONGEST:
            self._filter.reset(t, q, v)
            if self._arm is not None:
                self._arm.reset(t, v)
            self._ready = t + SETTLING / self.gain
            return None
        try:
            rows, uncertain = self._filter.update(t, q, v, tau)
            _check(rows)
            if self._arm is not None:
                self._arm.update(t, q, v)
                rows = np.concatenate([rows, self._arm.rows], axis=1)
        except RbdError:    # some of its observers may have taken the state, others not
            self.gap()
            raise
        return (rows, uncertain) if t >= max(self._ready, self._time + SPACING / self.gain) else None

    def _take(self, time: float, tau: Array, rows: Array, uncertain: Array, contact: bool) -> None:
        """Rows (nv, 11), and of the arm's parameters, at this time; of joints in motion they count. uncertain (nv,):
        what friction may be besides.
        """
        _check(rows)
        step = min(time - self._time, LONGEST)
        known = np.ones(len(tau), dtype=bool)
        if self.friction is not None:
            known = uncertain <= UNCERTAIN * (self.friction.packed[1] + self.friction.packed[7] * np.abs(tau))
        self._time = time
        self.touching = contact
        if not contact and np.isfinite(self.threshold).any():
            expected, sigma = self._expected(rows[:, :PARAMETERS])
            unexplained = np.abs(rows[:, PARAMETERS] - expected) > self.threshold + uncertain + 2.0 * sigma
            self.touching = bool((unexplained & (known | ~known.any())).any())    # at rest all joints are asked
            if known.any():
                self._unexplained = max(self._unexplained + (step if self.touching else -PARDON * step), 0.0)
            if self._unexplained > self.patience:
                ready = self._ready
                self.reset()
                self._time, self._ready = time, ready
                return
        if self.touching or not known.any():
            self._before = None
            return
        if self._before is not None:
            if self.memory is not None:
                kept = math.exp(-step / self.memory)
                self._sums *= kept
                self._arm_sums *= kept
                self._count *= kept
            before, known_before = self._before
            use = known & known_before
            now, earlier = (use[:, None] * x for x in (rows, before))
            own = [x[:, :PARAMETERS + 1].ravel() for x in (now, earlier)]
            for sums, i, k in zip(self._sums, (0, 0, 1), (0, 1, 1), strict=True):
                sums += np.outer(own[i], own[k]).reshape(sums.shape)
            if self._errors is not None:
                loads, arms = (np.stack([now, earlier])[:, :, part] for part in (
                    slice(0, PARAMETERS), slice(PARAMETERS + 1, None)))
                self._arm_sums += np.einsum("ajp,bjr->abjpr", loads, arms).reshape(self._arm_sums.shape)
            self._count += use
            self._changed()
        self._before = rows, known

    def _expected(self, Y: Array) -> tuple[Array, Array]:
        """Effort (nv,) of the load with these regressors (nv, 10), and its standard deviation; before anything is known
        that of a load of up to 2 · `HEAVY`.
        """
        theta, _, information = self._fit
        prior = HEAVY * np.concatenate([[1.0], np.full(3, LONG), np.full(6, LONG**2)])
        sizes, V = np.linalg.eigh(prior[:, None] * information * prior)    # in units of the prior, whose size is 1
        sizes, rows = np.maximum(sizes, 0.0), Y * prior @ V
        expected = rows @ (sizes / (1.0 + sizes) * (V.T @ (theta / prior)))
        return expected, np.sqrt((rows**2) @ (1.0 / (1.0 + sizes)))

    def _changed(self) -> None:
        for name in ("_fit", "load"):
            self.__dict__.pop(name, None)

    @cached_property
    def _fit(self) -> tuple[Array, Array, Array]:
        """Parameters of least squares (10,), half widths (10,), information (10, 10)."""
        p, undetermined = PARAMETERS, np.full(PARAMETERS, np.inf)
        count = np.maximum(self._count, 1e-9)    # below one of what is nearly forgotten
        if self._count.max(initial=0.0) < FEWEST:
            return np.zeros(p), undetermined, np.zeros((p, p))
        now, cross, before = np.einsum("ljpjq->ljpq", self._sums)    # of each joint
        power = now[:, p, p] / count
        floor = FINEST**2 * np.maximum(power, 1e-12)
        variance, correlation = np.maximum(power, floor), np.zeros(self.model.nv)
        theta, inverse = np.zeros(p), np.zeros((p, p))
        for _ in range(ROUNDS):    # generalized least squares: rows less ρ times the rows before
            rho = correlation[:, None, None]
            products = now - rho * (cross + cross.transpose(0, 2, 1)) + rho**2 * before
            information = np.einsum("jpq,j->pq", products[:, :p, :p], 1.0 / variance)
            scale = np.sqrt(np.maximum(np.diag(information), 0.0))
            scale = np.where(scale > 1e-9 * scale.max(initial=0.0), scale, np.inf)
            sizes, V = np.linalg.eigh(information / np.outer(scale, scale))
            good = sizes > 1e-10 * max(sizes[-1], 1e-300)
            half = V[:, good] / np.sqrt(sizes[good]) / scale[:, None]
            inverse = half @ half.T
            theta = inverse @ np.einsum("jp,j->p", products[:, :p, p], 1.0 / variance)
            x = np.append(-theta, 1.0)
            absorbed = np.einsum("jpq,pq->j", products[:, :p, :p], inverse) / variance    # of p in all
            variance = np.maximum(np.einsum("p,jpq,q->j", x, products, x)
                                  / np.maximum(count - absorbed, 0.1 * count), floor)
            lagged, power = (np.einsum("p,jpq,q->j", x, products, x) for products in (cross, before))
            weighed = correlation
            correlation = lagged / np.maximum(power, count * floor)
            correlation = np.clip(correlation + (1.0 + 3.0 * correlation) / np.maximum(count, FEWEST), 0.0,
                                  MOST_CORRELATED)    # less the bias of few samples (Kendall 1954)
            if self._filter is not None:
                variance *= _slower(correlation)
        blind = np.isinf(scale) | (np.abs(V[:, ~good]).max(axis=1, initial=0.0) > 1e-6)
        spread = self._spread(x, weighed, variance, count * floor) + self._arm_spread(weighed, variance)
        width = HALF_WIDTH * np.sqrt(np.maximum(np.diag(inverse @ spread @ inverse), 0.0))
        return theta, np.where(blind, np.inf, width), information

    def _spread(self, x: Array, correlation: Array, variance: Array, least: Array) -> Array:
        """Covariance (10, 10) of the right side of the normal equations, with residuals of the joints (their rows times
        x) that are correlated with each other, as far as their sums of squares are above `least` (nv,), that of
        rounding.
        """
        p, (now, cross, before) = PARAMETERS, self._sums
        rho, other = correlation[:, None, None, None], correlation[:, None]
        products = now - other * cross - rho * cross.transpose(2, 3, 0, 1) + rho * other * before
        residual = np.einsum("p,jpkq,q->jk", x, products, x)
        size = np.sqrt(np.maximum(np.diag(residual), least))
        weights = residual / np.outer(size, size)
        np.fill_diagonal(weights, 1.0)
        weights /= np.sqrt(np.outer(variance, variance))
        return np.asarray(np.einsum("jk,jpkq->pq", weights, products[:, :p, :, :p]))

    def _arm_spread(self, correlation: Array, variance: Array) -> Array:
        """As `_spread`, of the errors of the arm's parameters."""
        if self._errors is None:
            return np.zeros((PARAMETERS, PARAMETERS))
        lags = np.stack([np.ones_like(correlation), -correlation, -correlation, correlation**2]) / variance
        B, covariance = np.einsum("aj,ajpr->pr", lags, self._arm_sums), self._errors.covariance
        lost = ~np.isfinite(np.diag(covariance))
        covariance = np.where(lost[:, None] | lost, 0.0, covariance) + np.diag(UNDETERMINED * lost)
        return np.asarray(B @ covariance @ B.T)

    @property
    def parameters(self) -> Array:
        """m, m·com and inertia about the link's origin (10,); NaN where not observed."""
        return np.where(self.observed, self._fit[0], np.nan)

    @property
    def confidence(self) -> Array:
        return self._fit[1]

    @property
    def observed(self) -> NDArray[np.bool_]:
        theta, width, _ = self._fit
        mass = max(float(theta[0]) if width[0] < abs(theta[0]) else LOAD, LEAST_MASS)
        size = mass * np.concatenate([[1.0], np.full(3, REACH), np.full(6, REACH**2)])
        return np.asarray(width < CLEAR * size)

    @property
    def mass(self) -> float:
        return float(self.parameters[0])

    @property
    def com(self) -> Array:
        parameters = self.parameters
        return np.asarray(parameters[1:4] / parameters[0] if parameters[0] != 0.0 else np.full(3, np.nan))

    @property
    def inertia(self) -> Array:
        """About the centre of mass; all NaN unless everything is observed."""
        parameters = self.parameters
        return inertia_of(parameters).matrix if np.isfinite(parameters).all() else np.full((3, 3), np.nan)

    @cached_property
    def load(self) -> Inertia:
        """The consistent body that explains the efforts best; what they do not show is that of a ball of 0.5 kg."""
        _, _, information = self._fit
        ball = parameters_of_pseudo_inertia(np.diag([LOAD * REACH**2 / 5.0] * 3 + [LOAD]))
        unknown = Unknowns(((self.body, 0, prior_factor(ball)[0]),), np.zeros(0, dtype=np.int64), np.zeros(0),
                           np.zeros(0), np.zeros(0), LOAD_SPREAD, np.zeros(PARAMETERS), (), True)
        sizes, V = np.linalg.eigh(information)
        root = np.sqrt(np.maximum(sizes, 0.0))[:, None] * V.T
        rows = Rows(root[:, None, :], (root @ self._fit[0])[:, None], (PARAMETERS,), np.ones((PARAMETERS, 1), bool),
                    np.ones(1))
        return inertia_of(consistent_fit(rows, np.ones((PARAMETERS, 1)), unknown, WEIGHT))


def _slower(correlation: Array) -> Array:
    """Ratio (nv,) of the power at low frequencies to that of first order with this correlation from one sample to the
    next, of a sum of white noise, of velocities, and noise of efforts behind the filter.
    """
    filtered = math.exp(-SPACING)
    share = np.minimum(correlation / filtered, 1.0)
    mixed = 1.0 + 2.0 * share * filtered / (1.0 - filtered)
    return np.maximum(mixed * (1.0 - correlation) / (1.0 + correlation), 1.0)


def _check(rows: Array) -> None:
    if not (np.abs(rows) < MOST).all():
        raise RbdError("payload: the state or the effort is so large that sums of squares overflow")
