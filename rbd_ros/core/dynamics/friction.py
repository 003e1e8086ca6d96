"""Friction: viscous and Coulomb with Stribeck's effect, smoothed by tanh, and its time derivatives.

`τ_f(v) = d v + g(v) tanh(v / s)` with `g(v) = c + (b − c) exp(−(v / w)²)`: Coulomb level c, breakaway level b ≥ c near
rest, Stribeck velocity w, smoothing s. It stands here once, as functions of p = (d, c, b, w, s) and v, numbers or
arrays, real or complex, and as kernels of these.
"""
from __future__ import annotations

import functools
from contextlib import suppress
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..compiled.exact import exact
from ..errors import RbdError, shown
from ..model.inertia import Array
from ..model.robot_model import RobotModel
from ..model.scalars import positive
from ..model.state import finite_entry, not_a_model, shaped, states

SMOOTHING = 0.01         # rad/s or m/s
STRIBECK_VELOCITY = 0.1  # rad/s or m/s


def level(p, v):
    """g(v)."""
    return p[1] + (p[2] - p[1]) * np.exp(-(v / p[3]) ** 2)


def effort(p, v):
    """τ_f(v)."""
    return p[0] * v + (p[1] + (p[2] - p[1]) * np.exp(-(v / p[3]) ** 2)) * np.tanh(v / p[4])


def slopes(p, v):
    """∂τ_f/∂v and ∂²τ_f/∂v²."""
    d, c, b, w, s = p
    t = np.tanh(v / s)
    t1 = (1.0 - t * t) / s
    t2 = -2.0 * t * t1 / s
    bump = (b - c) * np.exp(-(v / w) ** 2)
    g = c + bump
    g1 = -2.0 * v / w**2 * bump
    g2 = (4.0 * v * v / w**4 - 2.0 / w**2) * bump
    return d + g1 * t + g * t1, g2 * t + 2.0 * g1 * t1 + g * t2


def by_parameters(p, v):
    """∂τ_f/∂p, five values."""
    _, c, b, w, s = p
    t = np.tanh(v / s)
    near, far = np.exp(-(v / w) ** 2), -np.expm1(-(v / w) ** 2)
    bump = (b - c) * near
    return v, far * t, near * t, bump * (2.0 * v * v / w**3) * t, -(c + bump) * (1.0 - t * t) * v / s**2


friction_level, friction_law = exact(level), exact(effort)
friction_slopes, friction_by_parameters = exact(slopes), exact(by_parameters)


@dataclass(frozen=True)
class Friction:
    """The law above; every field a number or (n,), of as many joints or motors. Values are taken as given;
    `joint_friction` makes that of a model's joints, which `dynamics` take as `friction=`.

        >>> rubs = rbd.Friction(damping=0.5, coulomb=2.0)
        >>> rubs.effort(np.array([1.0, -1.0]))
        array([ 2.5, -2.5])
    """

    damping: Array | float = 0.0
    coulomb: Array | float = 0.0
    breakaway: Array | float = None    # type: ignore[assignment]
    stribeck_velocity: Array | float = STRIBECK_VELOCITY
    smoothing: Array | float = SMOOTHING

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, list | tuple):
                with suppress(TypeError, ValueError):    # `packed` says what is no number
                    object.__setattr__(self, field.name, np.asarray(value, dtype=float))
        level: Any = self.breakaway    # by default as coulomb: no effect of Stribeck's
        if level is None:
            object.__setattr__(self, "breakaway", self.coulomb)

    @functools.cached_property
    def _parameters(self) -> tuple[Any, ...]:
        return tuple(getattr(self, field.name) for field in fields(Friction))

    def level(self, v: Array) -> Array:
        """g(v): the Coulomb friction that acts at this speed, N m or N."""
        return level(self._parameters, v)    # type: ignore[no-any-return]

    def effort(self, v: Array) -> Array:
        """Effort that overcomes friction at velocities v (…, n), N m or N."""
        return effort(self._parameters, v)    # type: ignore[no-any-return]

    def slope(self, v: Array) -> Array:
        """∂effort/∂v (…, n)."""
        return slopes(self._parameters, v)[0]    # type: ignore[no-any-return]

    def curvature(self, v: Array) -> Array:
        """∂²effort/∂v² (…, n)."""
        return slopes(self._parameters, v)[1]    # type: ignore[no-any-return]

    @functools.cached_property
    def packed(self) -> Array:
        """All fields (5, 1) or (5, n); `RbdError` for invalid numbers."""
        for field in fields(self):
            given = getattr(self, field.name)
            try:
                value = np.asarray(given, dtype=float)
            except (TypeError, ValueError):
                raise RbdError(f"friction.{field.name}: expected one finite number or one per coordinate, got "
                               f"{shown(given)}") from None
            if value.ndim > 1 or not np.isfinite(value).all():
                raise RbdError(f"friction.{field.name}: expected one finite number or one per coordinate, got "
                               f"{shown(value)}")
            if field.name in ("stribeck_velocity", "smoothing") and not np.all(value > 0.0):
                raise RbdError(f"friction.{field.name} must be positive, got {shown(value)}")
        try:
            return np.array(np.broadcast_arrays(*(np.atleast_1d(np.asarray(getattr(self, field.name), dtype=float))
                                                  for field in fields(self))))
        except ValueError:
            raise RbdError("friction: its fields are of different lengths") from None

    def by_parameters(self, v: Array) -> Array:
        """∂effort by each of its fields, in their order: (5, …, n)."""
        return np.stack(np.broadcast_arrays(*by_parameters(self._parameters, v)))


def friction_effort(model: RobotModel, v: ArrayLike, smoothing: float = SMOOTHING,
                    breakaway: ArrayLike | None = None, stribeck_velocity: float = STRIBECK_VELOCITY) -> Array:
    """Effort that overcomes friction, `damping v + g(v) tanh(v / smoothing)`: (nv,) or (N, nv), N m or N.

    v: (nv,) or (N, nv) in rad/s or m/s; `damping` and `friction` are the model's. smoothing: speed in v's unit at
    which 76 % of the Coulomb friction acts. breakaway: friction near rest, a number or (nv,), at least `friction`;
    without it `g = friction`. Inverse dynamics with `friction=joint_friction(model, …)` has it added, forward dynamics
    subtracted.

        >>> model = rbd.sample("two_link")
        >>> rbd.friction_effort(model.with_(damping=[0.5, 0.1], friction=[1.0, 0.2]), [1.0, -1.0]).round(3)
        array([ 1.5, -0.3])
    """
    given = shaped(model, rates={"v": v})
    effort = joint_friction(model, smoothing, breakaway, stribeck_velocity).effort(given.arrays[0])
    if not finite_entry.call(effort.reshape(-1)):    # which it is not either where v is not
        given.refuse(effort=effort)
    return effort


def friction_effort_derivatives(model: RobotModel, v: ArrayLike, a: ArrayLike, jerk: ArrayLike,
                                smoothing: float = SMOOTHING, breakaway: ArrayLike | None = None,
                                stribeck_velocity: float = STRIBECK_VELOCITY) -> tuple[Array, Array]:
    """First and second time derivative of `friction_effort` along a motion: each (nv,) or (N, nv), N m/s and N m/s².

    v, a, jerk: velocity, acceleration and jerk of the joints, (nv,) or (N, nv).

        >>> model = rbd.sample("two_link")
        >>> model = model.with_(damping=[0.5, 0.1])
        >>> rbd.friction_effort_derivatives(model, [1.0, 1.0], [2.0, 0.0], [0.0, 0.0])[0].round(3)
        array([1., 0.])
    """
    given = states(model, rates={"v": v, "a": a, "jerk": jerk})
    speed, rate, rate_dot = given.arrays
    law = joint_friction(model, smoothing, breakaway, stribeck_velocity)
    slope, curvature = law.slope(speed), law.curvature(speed)
    first, second = given.finite(first=slope * rate, second=slope * rate_dot + curvature * rate * rate)
    return first, second


def joint_friction(model: RobotModel, smoothing: float = SMOOTHING, breakaway: ArrayLike | None = None,
                stribeck_velocity: float = STRIBECK_VELOCITY) -> Friction:
    """The law of a model's joints, with parameters as of `friction_effort`: what inverse, forward and hybrid dynamics,
    constrained or not, and their directional derivatives take as `friction=`.

        >>> model = rbd.sample("two_link").with_(damping=[0.5, 0.1])
        >>> rbd.inverse_dynamics(model, [0.0, 0.0], [1.0, 0.0], [0.0, 0.0], friction=rbd.joint_friction(model)).round(3)
        array([0.5, 0. ])
    """
    if not hasattr(model, "_block"):
        raise not_a_model(model)
    width = positive(smoothing, "smoothing", "speed")
    if breakaway is None:
        return Friction(model.damping, model.friction, model.friction, 1.0, width)
    level = np.asarray(breakaway, dtype=float)
    if level.shape not in ((), (model.nv,)) or not np.all(level >= model.friction) or not np.isfinite(level).all():
        raise RbdError(f"breakaway must be one number or {model.nv}, each at least the model's friction "
                       f"{model.friction.tolist()}, got {shown(breakaway)}")
    speed = positive(stribeck_velocity, "stribeck_velocity", "speed")
    return Friction(model.damping, model.friction, level, speed, width)


def overcome(model: RobotModel, friction: Friction, v: ArrayLike) -> Array:
    """Effort of the argument `friction=` at velocities v (…, nv)."""
    given = shaped(model, rates={"v": v})
    given.check_values()
    return given.finite(friction=fitting(model, friction).effort(given.arrays[0]))[0]


def left_over(model: RobotModel, friction: Friction, v: ArrayLike, tau: ArrayLike) -> Array:
    """Efforts tau minus friction."""
    given = shaped(model, rates={"v": v, "tau": tau})
    given.check_values()
    speed, effort = given.arrays
    return given.finite(tau=effort - fitting(model, friction).effort(speed))[0]


def friction_slope(model: RobotModel, friction: Friction, v: ArrayLike) -> Array:
    """∂ of that effort by v (…, nv)."""
    return fitting(model, friction).slope(shaped(model, rates={"v": v}).arrays[0])


def fitting(model: RobotModel, friction: Friction) -> Friction:
    """The law; raises `RbdError` if it does not fit this model."""
    if not isinstance(friction, Friction):
        raise RbdError(f"friction: expected a Friction, such as joint_friction(model), got {type(friction).__name__}")
    if friction.packed.shape[1] not in (1, model.nv):
        raise RbdError(f"friction: expected numbers or arrays of {model.nv}, one per coordinate, got "
                       f"{friction.packed.shape[1]}")
    return friction
