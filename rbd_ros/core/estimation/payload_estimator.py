"""The ten inertial parameters of a load on a body, while the robot moves: recursive least squares with forgetting.

`τ − ID(q, v, a) − τ_f = Y_body(q, v, a) π`. Sums of products of the rows [Y_j, y_j] with themselves and with those of
the sample before are kept per joint, so that the residual's variance and its correlation from one sample to the next
(of first order, as of a low-pass) are those of the present estimate at any time. Estimate and intervals are those of
generalized least squares (Cochrane and Orcutt 1949).
"""
from __future__ import annotations

import math
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..derivatives.regressor import PARAMETERS, inertial_regressor
from ..dynamics.friction import Friction, fitting, left_over
from ..dynamics.inverse import inverse_dynamics
from ..errors import RbdError, shown
from ..identification.consistency import REACH, parameters_of_pseudo_inertia, prior_factor
from ..identification.consistent_fit import consistent_fit
from ..identification.linear_fit import Rows
from ..identification.regressor_columns import inertia_of
from ..identification.unknowns import LOAD, LOAD_SPREAD, Unknowns
from ..model.inertia import Array, Inertia
from ..model.robot_model import RobotModel
from ..model.scalars import positive
from ..model.state import REASONABLE, not_a_model, states

HALF_WIDTH = 1.959964    # standard deviations of a 95 % interval
ROUNDS = 4               # of weights
FINEST = 1e-6            # smallest standard deviation of a residual, relative to the RMS of the effort
MOST_CORRELATED = 0.98
CLEAR = 0.3              # half width of an observed parameter, in units of the load's own mass and size
LEAST_MASS = 0.05        # kg: unit of loads that are lighter
FEWEST = 20              # samples
WEIGHT = 0.1             # of the prior of the consistent load, as in `identify`


class PayloadEstimator:
    """A load on a body, from motion of an arm whose model is good without it.

    friction: of the joints, or None. memory (s): time constant of forgetting, or None: nothing is forgotten. After
    `update`: mass (kg); com (3,), m, and inertia (3, 3) about it, kg m², in the frame and axes of the body's link;
    confidence (10,): half widths of 95 % intervals of m, m·com (x, y, z) and the inertia about the link's origin (xx,
    xy, yy, xz, yz, zz); observed (10,): which of these the motion has shown. What it has not shown is NaN, in com
    component by component; `load` is the whole as a body that can exist, the rest of it a guess.

        >>> model, rng = rbd.sample("two_link"), np.random.default_rng(0)
        >>> loaded = model.with_payload("lower", rbd.Inertia(0.5, np.array([0.1, 0.0, 0.0]), 1e-3 * np.eye(3)))
        >>> estimator = rbd.PayloadEstimator(model, "lower")
        >>> for k in range(200):
        ...     q, v, a = rng.normal(size=(3, 2))
        ...     estimator.update(0.01 * k, q, v, a, rbd.inverse_dynamics(loaded, q, v, a))
        >>> round(estimator.load.mass, 3), estimator.observed.any()
        (0.5, np.True_)
    """

    def __init__(self, model: RobotModel, body: str, friction: Friction | None = None,
                 memory: float | None = None) -> None:
        if not hasattr(model, "_block"):
            raise not_a_model(model)
        first = PARAMETERS * model.body_index(body)
        self.model, self.body = model, body
        self.friction = None if friction is None else fitting(model, friction)
        self.memory = None if memory is None else positive(memory, "memory", "time")
        self._columns = slice(first, first + PARAMETERS)
        self.reset()

    def reset(self) -> None:
        """Forget everything."""
        size = PARAMETERS + 1
        self._sums = np.zeros((3, self.model.nv, size, size))    # of products of rows: now, with those before, before
        self._count = 0.0
        self._last: tuple[float, Array | None] | None = None    # time, and the row unless in contact
        self._changed()

    def update(self, t: float, q: ArrayLike, v: ArrayLike, a: ArrayLike, tau: ArrayLike, *,
               contact: bool = False) -> None:
        """Take in a sample at time t (s): state, acceleration, and effort (nv,) of the motors. contact: the robot
        touches something, so that the sample says nothing of the load. Raises `RbdError`, and takes nothing in, for
        invalid numbers and times that do not increase.
        """
        time = float(t) if isinstance(t, int | float | np.floating) and math.isfinite(t) else math.nan
        if not math.isfinite(time) or (self._last is not None and time <= self._last[0]):
            raise RbdError(f"t: expected a time later than the one before, got {shown(t)}")
        inputs = states(self.model, positions={"q": q}, rates={"v": v, "a": a, "tau": tau})
        if inputs.batch is not None:
            raise RbdError("the estimator takes one state: arrays of one dimension")
        q, v, a, tau = inputs.arrays
        if contact:
            self._last = (time, None)
            return
        effort = inverse_dynamics(self.model, q, v, a)
        if self.friction is not None:    # which may depend on the load, too
            tau = left_over(self.model, self.friction, v, tau)
        Y = inertial_regressor(self.model, q, v, a)[:, self._columns]
        row = np.concatenate([Y, (tau - effort)[:, None]], axis=1)
        if not (np.abs(row) < REASONABLE).all():
            raise RbdError("payload: the state or the effort is so large that sums of squares overflow")
        if self._last is not None:
            if self.memory is not None:
                kept = math.exp(-(time - self._last[0]) / self.memory)
                self._sums *= kept
                self._count *= kept
            if (before := self._last[1]) is not None:
                for k, (left, right) in enumerate(((row, row), (row, before), (before, before))):
                    self._sums[k] += left[:, :, None] * right[:, None, :]
                self._count += 1.0
                self._changed()
        self._last = time, row

    def _changed(self) -> None:
        for name in ("_fit", "load"):
            self.__dict__.pop(name, None)

    @cached_property
    def _fit(self) -> tuple[Array, Array, Array]:
        """Parameters of least squares (10,), half widths (10,), information (10, 10)."""
        p, undetermined = PARAMETERS, np.full(PARAMETERS, np.inf)
        if self._count < FEWEST:
            return np.zeros(p), undetermined, np.zeros((p, p))
        power = self._sums[0, :, p, p] / self._count
        floor = FINEST**2 * np.maximum(power, 1e-12)
        variance, correlation = np.maximum(power, floor), np.zeros(self.model.nv)
        theta, inverse = np.zeros(p), np.zeros((p, p))
        for _ in range(ROUNDS):    # generalized least squares: rows less ρ times the rows before
            rho = correlation[:, None, None]
            now, cross, before = self._sums
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
                                  / np.maximum(self._count - absorbed, 0.1 * self._count), floor)
            lagged, power = np.einsum("p,ljpq,q->lj", x, self._sums[1:], x)
            correlation = np.clip(lagged / np.maximum(power, 1e-300), 0.0, MOST_CORRELATED)
        blind = np.isinf(scale) | (np.abs(V[:, ~good]).max(axis=1, initial=0.0) > 1e-6)
        width = HALF_WIDTH * np.sqrt(np.maximum(np.diag(inverse), 0.0))
        return theta, np.where(blind, np.inf, width), information

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
