"""The fastest motion along a given path within limits of velocity, acceleration and effort, including friction; and of
jerk, effort rate and motor velocity (`smooth_timing`).
"""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from math import comb
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..actuation.actuation import Actuation
from ..dynamics.friction import SMOOTHING, Friction, fitting, joint_friction
from ..dynamics.inverse import inverse_dynamics
from ..errors import RbdError, shown
from ..model.robot_model import RobotModel
from ..model.scalars import positive, whole_number
from .optimal.certificate import ratio_to_limits
from .optimal.limits import CheckedLimits, MotionLimits, checked_limits
from .along.path_speed import path_speed
from .optimal.checked_task import check_model
from .along.path_task import Path
from .optimal.springs import links_and_springs
from .optimal.task import ROUNDING
from .optimization import OptimalMotion
from .along.paths import InterpolatedPath, path_of
from .collision.clearance import CLEARANCE
from .collision.collision_model import CollisionModel
from .collision.distance_rows import checked_collisions
from .along.smooth_timing import smooth_timing
from .splines import SplineMotion, basis
from .trajectory import Reference
from .usage import Usage

Array = NDArray[np.float64]
FIRST_MARGIN = 1e-4  # relative margin to the limits at grid points; increased after violations between them
DEGREE = 6           # of polynomials between grid points
AT_ONCE = 10_000     # polynomials evaluated at once
MORE = 1.1           # factor of a violation in the new margin
ATTEMPTS = 12
AROUND = 2           # grid points on either side
SLOWEST = 1e-12      # share of the largest speed along the path that counts as rest
MOST_PARTS = 1_000_000
UNLIMITED = 1e150    # whose square is a number
DENSE = 4            # factor of the grid for finding the times of its points


@dataclass(frozen=True, eq=False, repr=False)
class TimedPath:
    """A path with its timing: `motion(t)` has .q, .v, .a, at rest outside; .jerk if accelerations are continuous.

    usage: largest ratio to each limit, with joint and time: a bound for all times between grid points, or, with
    continuous accelerations, the maximum of samples at 1 kHz or finer. A motion is `good` if no ratio is above 1 and
    its search has `converged`; `reason`: of the search's end.
    """

    duration: float
    usage: Mapping[str, Usage]
    times: Array            # (N,) at the equidistant grid of s in [0, 1]
    speeds: Array           # (N,) ds/dt there, s in [0, 1]
    _path: Path
    _model: RobotModel
    _friction: Friction
    _wrenches: Any
    _way: SplineMotion | None = None    # s(t) if smooth
    converged: bool = True
    reason: str = "converged"

    def __repr__(self) -> str:
        largest = max(self.usage.items(), key=lambda item: item[1].ratio, default=None)
        used = "" if largest is None else f", {largest[0]} of {largest[1].joint} at {largest[1].ratio:.4g} of its limit"
        return f"TimedPath of '{self._model.name}': {self.duration:.4g} s{used}; {self.reason}"

    @property
    def violation(self) -> float:
        """The worst ratio to a limit, minus 1."""
        return max((usage.ratio for usage in self.usage.values()), default=0.0) - 1.0

    @property
    def good(self) -> bool:
        """Whether all limits are kept, and the motion is locally the fastest."""
        return self.converged and self.violation <= ROUNDING

    def check(self) -> TimedPath:
        """The path itself if it is good; otherwise raises `RbdError` naming limit, joint and time."""
        if self.violation <= ROUNDING and not self.converged:
            raise RbdError(f"time_optimal: not the fastest ({self.reason})")
        if not self.good:
            name, used = max(self.usage.items(), key=lambda item: item[1].ratio)
            raise RbdError(f"time_optimal: the {name} of joint '{used.joint}' is {used.ratio:.6g} times its limit at "
                           f"{used.time:.4g} s: " + (
                "more grid points help" if self._way is None else self.reason if not self.converged else
                "more control_points help"))
        return self

    def along(self, s: ArrayLike) -> tuple[Array, Array, Array]:
        """Positions of the path at s (N,) in [0, 1], and their first and second derivatives by s, (N, nv) each."""
        q, first, second = self._path(np.clip(np.asarray(s, dtype=np.float64), 0.0, 1.0), 2)
        return q, first, second

    def __call__(self, t: ArrayLike) -> Reference:
        times = np.asarray(t, dtype=np.float64)
        if times.ndim > 1 or not np.isfinite(times).all():
            raise RbdError(f"t must be a finite time or (N,) of them, got {shown(t)}")
        clipped = np.clip(np.atleast_1d(times), 0.0, self.duration)
        z = self._along_way(clipped)
        s, rate, u = z[0], z[1][:, None], z[2][:, None]
        p = self._path(np.clip(s, 0.0, 1.0), len(z) - 1)
        rows = [p[0], p[1] * rate, p[1] * u + p[2] * rate**2]
        if len(z) > 3:
            rows.append(p[3] * rate**3 + 3.0 * p[2] * rate * u + p[1] * z[3][:, None])
        outside = np.atleast_1d((times < 0.0) | (times > self.duration))
        for part in rows[1:]:
            part[outside] = 0.0
        return Reference(*(rows if times.ndim else (part[0] for part in rows)))

    def _along_way(self, t: Array) -> Array:
        """s and its derivatives by time (3 or 4, N) at times within the motion."""
        if self._way is not None:
            return self._way.derivatives(t, 3)[:, :, 0]
        i = np.clip(np.searchsorted(self.times, t, side="right") - 1, 0, len(self.times) - 2)
        tau, length = t - self.times[i], self.times[i + 1] - self.times[i]
        u = (self.speeds[i + 1] - self.speeds[i]) / length
        s = i / (len(self.times) - 1) + (self.speeds[i] + 0.5 * u * tau) * tau
        return np.array([s, self.speeds[i] + u * tau, u])

    def sample(self, t: float) -> Reference:
        """The reference at time t (s), as by calling the motion."""
        return self(t)

    def effort(self, t: ArrayLike) -> Array:
        """Efforts with friction and external wrenches (nv,) or (N, nv) at t, N m or N."""
        z = self(t)
        efforts = inverse_dynamics(self._model, z.q, z.v, z.a, self._wrenches)
        return self._friction.add(z.v, efforts)


def time_optimal(model: RobotModel, path: ArrayLike | SplineMotion | OptimalMotion, *,
                 limits: MotionLimits | None = None, external_wrenches: Any = None,
                 collisions: CollisionModel | None = None, clearance: float = CLEARANCE, smoothing: float = SMOOTHING,
                 friction: Friction | None = None, start_speed: float = 0.0, goal_speed: float = 0.0, grid: int = 1000,
                 actuation: Actuation | None = None, control_points: int = 100,
                 time_limit: float = 10.0) -> TimedPath:
    """The fastest motion along a path that keeps the limits, with friction.

    path: positions (N, nq), N ≥ 2, interpolated by a spline of degree up to 5, or a motion, whose timing is ignored.
    limits: the model's by default. external_wrenches: as of `inverse_dynamics`, constant. collisions: the path is
    refused where a pair of its pieces comes nearer than the clearance (m). friction: a law without Stribeck's effect;
    by default the model's, smoothed as in `friction_effort`. start_speed, goal_speed: at the ends, path lengths per
    second. grid: number of parts of the path, each with constant d²s/dt². Margins are increased at limits violated
    between grid points.

    With limits of jerk, effort rate or motor velocity (which needs `actuation`, as of `optimize_motion`), s(t) is a
    quintic spline of control_points, optimised as in `optimize_motion` within time_limit (s), with d²s/dt² = 0 at the
    ends; the result is locally optimal.

    Raises `RbdError` if the path touches something, naming pair and depth, if the robot cannot rest on it within its
    limits, or if the ends are too fast. Method: Pham and Pham (2018), with speed-dependent friction; docs/motion.md.

        >>> model = rbd.sample("two_link")
        >>> limits = rbd.MotionLimits(velocity=2.0, acceleration=10.0)
        >>> rbd.time_optimal(model, [[0.0, 0.0], [0.5, -0.2], [1.0, -0.5]], limits=limits).good
        True
    """
    check_model(model)
    springs = None
    if actuation is not None:
        model, springs = links_and_springs(model, actuation)
    checked = checked_limits(model, limits)
    if springs is None and np.isfinite(checked.motor_velocity).any():
        raise RbdError("limits: motor_velocity is that of motors behind springs: give their actuation")
    if springs is not None:
        checked = replace(checked, effort=np.minimum(checked.effort, springs.max_effort))
    along = path_of(model, path)
    if collisions is not None:
        _check_collisions(model, along if isinstance(along, InterpolatedPath) else path, collisions, clearance)
    count = max(whole_number(grid, "grid", most=MOST_PARTS), 10)
    longest = positive(time_limit, "time_limit", "time")
    basis(5, control_points)
    friction = joint_friction(model, smoothing) if friction is None else fitting(model, friction)
    if np.any(friction.breakaway != friction.coulomb):
        raise RbdError(f"friction.breakaway: time_optimal does not support Stribeck's effect, expected coulomb, "
                       f"{shown(friction.coulomb)}, got {shown(friction.breakaway)}")
    ends = [0.0 if speed == 0.0 else positive(speed, name, "speed")
            for speed, name in ((start_speed, "start_speed"), (goal_speed, "goal_speed"))]
    share = {name: np.full(count + 1, 1.0 - FIRST_MARGIN) for name in ("velocity", "acceleration", "effort")}
    smooth = any(np.isfinite(limit).any() for limit in (checked.jerk, checked.effort_rate, checked.motor_velocity))
    for _ in range(1 if smooth else ATTEMPTS):
        times, speeds = _timing(model, along, checked, friction, external_wrenches, ends, share)
        timed = TimedPath(float(times[-1]), {}, times, speeds, along, model, friction, external_wrenches)
        if smooth:
            break
        usage = _usage(timed, checked, share)
        timed = TimedPath(timed.duration, usage, times, speeds, along, model, friction, external_wrenches)
        if timed.good:
            break
    if not smooth:
        return timed
    best = smooth_timing(model, along, checked, friction, external_wrenches, springs, ends, timed.duration,
                         control_points, longest)
    way = best.way
    t = np.linspace(0.0, way.duration, DENSE * count + 1)
    times = np.interp(np.linspace(0.0, 1.0, count + 1), np.maximum.accumulate(way.derivatives(t, 0)[0, :, 0]), t)
    times[-1] = way.duration
    return TimedPath(way.duration, best.certificate.usage, times, way.derivatives(times, 1)[1, :, 0], along, model,
                     friction, external_wrenches, way, best.converged, best.reason)


def _check_collisions(model: RobotModel, path: Any, collisions: Any, clearance: float) -> None:
    """Raise `RbdError` unless the path keeps the clearance all along, naming pair, place and depth."""
    apart = checked_collisions(model, collisions).certify(path, clearance)
    if not apart.clear:
        raise RbdError(f"path: {apart.reason}, at s = {apart.time / getattr(path, 'duration', 1.0):.4g}")


def _timing(model: RobotModel, along: Path, limits: CheckedLimits,
            friction: Friction, wrenches: Any, ends: list[float],
            share: Mapping[str, Array]) -> tuple[Array, Array]:
    """Times and speeds at the grid, within this share of each limit."""
    count = len(share["effort"]) - 1
    s = np.linspace(0.0, 1.0, count + 1)
    q, first, second = along(s, 2)
    zero = np.zeros_like(q)
    still = inverse_dynamics(model, q, zero, zero, wrenches)
    low, high = limits.position_lower, limits.position_upper
    over = np.maximum(low - q, q - high)
    if over.max() > ROUNDING:
        i, j = np.unravel_index(int(np.argmax(over)), over.shape)
        raise RbdError(f"path: the position of joint '{model.velocity_names[j]}' is {q[i, j]:.6g} at s = {s[i]:.4g}, "
                       "beyond its limit")
    beyond = np.abs(still) - limits.effort
    if beyond.max() > 0.0:
        i, j = np.unravel_index(int(np.argmax(beyond)), beyond.shape)
        raise RbdError(f"path: to stand still at s = {s[i]:.4g} takes an effort of {still[i, j]:.6g} of joint "
                       f"'{model.velocity_names[j]}', beyond its limit {limits.effort[j]:.6g}")
    A = inverse_dynamics(model, q, zero, first) - inverse_dynamics(model, q, zero, zero)
    B = inverse_dynamics(model, q, first, second) - inverse_dynamics(model, q, zero, zero)
    rows = np.ascontiguousarray(np.stack([np.concatenate(pair, axis=1) for pair in (
        (A, first), (B, second), (still, zero), (first, zero))]))
    n = model.nv
    bound = np.concatenate([np.outer(share["effort"], limits.effort),
                            np.outer(share["acceleration"], limits.acceleration)], axis=1)
    bound = np.minimum(np.where(np.isfinite(bound), bound, UNLIMITED), UNLIMITED)
    bound[:, :n] = np.maximum(bound[:, :n], np.minimum(limits.effort, np.abs(still) * (1.0 + 1e-12)))
    law = np.zeros((8, 2 * n))
    law[3:5] = 1.0
    law[:, :n] = friction.packed
    with np.errstate(divide="ignore", invalid="ignore"):
        fastest = (limits.velocity / np.abs(first)).min(axis=1) * share["velocity"]
    length = float(np.abs(first).max()) or 1.0
    fastest = np.minimum(np.nan_to_num(fastest, nan=1e6, posinf=1e6), 1e6 / length)
    b, u = np.empty(count + 1), np.empty(count)
    failed = path_speed.call(rows, np.stack([-bound, bound]), law, fastest**2, 1.0 / count, ends[0] ** 2, ends[1] ** 2,
                             b, u)
    if failed >= 0:
        raise RbdError(f"path: from s = {s[failed]:.4g} on there is no motion to the goal within the limits"
                       if failed else "path: the speed at its start is more than the limits allow")
    speeds = np.sqrt(np.maximum(b, 0.0))
    mean = 0.5 * (speeds[1:] + speeds[:-1])
    if mean.min() <= SLOWEST * max(mean.max(), 1e-300):
        raise RbdError(f"path: the robot would stand still at s = {s[int(np.argmin(mean))]:.4g}")
    return np.concatenate([[0.0], np.cumsum(1.0 / (count * mean))]), speeds


def _usage(motion: TimedPath, limits: CheckedLimits, share: dict[str, Array]) -> dict[str, Usage]:
    """The largest ratio to each limit, also between grid points; shares are reduced at ratios above 1."""
    usage: dict[str, Usage] = {}
    before = {name: values.copy() for name, values in share.items()}
    limited = {name: limits.of(name) for name in ("position", "velocity", "acceleration", "effort")
               if np.isfinite(limits.of(name)).any()}
    for first in range(0, len(motion.times) - 1, AT_ONCE):
        which = np.arange(first, min(first + AT_ONCE, len(motion.times) - 1))
        bounds = _bounds(motion, which)
        for name, (lower, upper) in limited.items():
            ratio = ratio_to_limits(bounds[name], lower, upper)    # (K, n, nv)
            k, i, j = np.unravel_index(int(np.argmax(ratio)), ratio.shape)
            if name not in usage or ratio[k, i, j] > usage[name].ratio:
                t, fraction = motion.times[which[i]:which[i] + 2], k % (DEGREE + 1) / DEGREE
                usage[name] = Usage(float(ratio[k, i, j]), motion._model.velocity_names[j],
                                    float(t[0] + fraction * (t[1] - t[0])))
            if name in share:
                over = ratio.max(axis=(0, 2))
                for point, much in zip(which[over > 1.0], over[over > 1.0], strict=True):
                    near = slice(max(point - AROUND, 0), point + AROUND + 2)
                    less = before[name][near] / (1.0 + MORE * (much - 1.0))
                    share[name][near] = np.minimum(share[name][near], less)
    return usage


def _bounds(motion: TimedPath, i: NDArray[np.intp]) -> dict[str, Array]:
    """Bounds (K, n, nv) of the limited quantities between grid points i and i + 1, by limit.

    There q, v, a and efforts without Coulomb friction, of either end's share of the load, are (nearly) polynomials of
    time, bounded by their Bernstein coefficients. Coulomb friction and the share are monotone in the velocity, and so,
    on either side of rest, are the differences by direction.
    """
    duration = np.diff(motion.times)[i]
    x, coefficients = _bernstein()
    tau = x[:, None] * duration
    u = (motion.speeds[i + 1] - motion.speeds[i]) / duration
    rate = motion.speeds[i] + u * tau
    s = i / (len(motion.times) - 1) + (motion.speeds[i] + 0.5 * u * tau) * tau
    p = motion._path(np.clip(s, 0.0, 1.0).ravel(), 2).reshape(3, *s.shape, -1)
    v, a = p[1] * rate[:, :, None], p[1] * u[:, None] + p[2] * rate[:, :, None] ** 2
    rows = (-1, p.shape[-1])
    effort = inverse_dynamics(motion._model, p[0].reshape(rows), v.reshape(rows), a.reshape(rows), motion._wrenches)
    effort, viscous = effort.reshape(v.shape), motion._friction.damping * v

    def controls(z: Array) -> Array:
        return np.asarray(np.einsum("kl,lnj->knj", coefficients, z))

    q, v, a = controls(p[0]), controls(v), controls(a)
    ends = v.min(axis=0), v.max(axis=0)
    carried = Friction(smoothing=motion._friction.smoothing, load=motion._friction.load)
    efforts = [controls(carried.add(z, effort) + viscous) + dry
               for z, dry in zip(ends, _dry(motion._friction, *ends), strict=True)]
    return {"position": q, "velocity": v, "acceleration": a, "effort": np.concatenate(efforts)}


def _dry(law: Friction, lowest: Array, highest: Array) -> tuple[Array, Array]:
    """Bounds of the friction beyond that of damping and load at velocities from `lowest` to `highest`."""
    odd = replace(law, damping=0.0, asymmetry=0.0, viscous_asymmetry=0.0, load=0.0)
    lower, upper = odd.effort(lowest), odd.effort(highest)
    nearest = np.clip(0.0, lowest, highest)
    for name in ("asymmetry", "viscous_asymmetry"):
        even = Friction(smoothing=law.smoothing, **{name: getattr(law, name)})
        values = [even.effort(v) for v in (lowest, nearest, highest)]
        lower, upper = lower + np.min(values, axis=0), upper + np.max(values, axis=0)
    return lower, upper


@lru_cache(maxsize=1)
def _bernstein() -> tuple[Array, Array]:
    """Chebyshev points (K,) in [0, 1], and the Bernstein coefficients (K, K) of their Lagrange polynomials."""
    k = np.arange(DEGREE + 1)
    x = 0.5 - 0.5 * np.cos(np.pi * k / DEGREE)
    basis = np.array([comb(DEGREE, m) * x**m * (1.0 - x) ** (DEGREE - m) for m in k]).T
    return x, np.linalg.inv(basis)
