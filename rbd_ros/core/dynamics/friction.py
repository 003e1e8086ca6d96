"""Friction: viscous and Coulomb with Stribeck effect, smoothed by tanh, and its time derivatives.

`τ_f(v) = d v + g(v) tanh(v / s)` with `g(v) = c + (b − c) exp(−(v / v_s)²)`: Coulomb level c, breakaway level b ≥ c
near rest, Stribeck velocity v_s, smoothing s.
"""
from __future__ import annotations

import functools
from contextlib import suppress
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..errors import RbdError, shown
from ..model.inertia import Array
from ..model.robot_model import RobotModel
from ..model.scalars import positive
from ..model.state import finite_entry, not_a_model, shaped, states

SMOOTHING = 0.01         # rad/s or m/s
STRIBECK_VELOCITY = 0.1  # rad/s or m/s


@dataclass(frozen=True)
class Friction:
    """The friction law of this module; each field a number or (n,), for n joints or motors; unvalidated.

    `joint_friction` returns the law of a model's joints, for the argument `friction=` of dynamics.

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
                with suppress(TypeError, ValueError):    # `packed` raises for invalid numbers
                    object.__setattr__(self, field.name, np.asarray(value, dtype=float))
        level: Any = self.breakaway    # default: coulomb, no Stribeck effect
        if level is None:
            object.__setattr__(self, "breakaway", self.coulomb)

    def level(self, v: Array) -> Array:
        """g(v) (…, n): level of the Coulomb friction at velocities v, N m or N."""
        return self.coulomb + (self.breakaway - self.coulomb) * np.exp(-(v / self.stribeck_velocity) ** 2)

    def effort(self, v: Array) -> Array:
        """Effort that overcomes friction at velocities v (…, n), N m or N."""
        return self.damping * v + self.level(v) * np.tanh(v / self.smoothing)

    def slope(self, v: Array) -> Array:
        """∂effort/∂v (…, n)."""
        return self._expanded(v)[0]

    def curvature(self, v: Array) -> Array:
        """∂²effort/∂v² (…, n)."""
        return self._expanded(v)[1]

    @functools.cached_property
    def packed(self) -> Array:
        """All fields (5, 1) or (5, n); `RbdError` for invalid numbers."""
        for field in fields(self):
            field_value = getattr(self, field.name)
            try:
                value = np.asarray(field_value, dtype=float)
            except (TypeError, ValueError):
                raise RbdError(f"friction.{field.name}: expected one finite number or one per coordinate, got "
                               f"{shown(field_value)}") from None
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
        """∂effort/∂field in order of the fields: (5, …, n)."""
        s, w = self.smoothing, self.stribeck_velocity
        t = np.tanh(v / s)
        near, far = np.exp(-(v / w) ** 2), -np.expm1(-(v / w) ** 2)
        bump = (self.breakaway - self.coulomb) * near
        return np.stack(np.broadcast_arrays(
            v, far * t, near * t, bump * (2.0 * v * v / w**3) * t,
            -(self.coulomb + bump) * (1.0 - t * t) * v / s**2))

    def _expanded(self, v: Array) -> tuple[Array, Array]:
        s, w = self.smoothing, self.stribeck_velocity
        t = np.tanh(v / s)
        t1 = (1.0 - t * t) / s
        t2 = -2.0 * t * t1 / s
        bump = (self.breakaway - self.coulomb) * np.exp(-(v / w) ** 2)
        g = self.coulomb + bump
        g1 = -2.0 * v / w**2 * bump
        g2 = (4.0 * v * v / w**4 - 2.0 / w**2) * bump
        return self.damping + g1 * t + g * t1, g2 * t + 2.0 * g1 * t1 + g * t2


def friction_effort(model: RobotModel, v: ArrayLike, smoothing: float = SMOOTHING,
                    breakaway: ArrayLike | None = None, stribeck_velocity: float = STRIBECK_VELOCITY) -> Array:
    """Effort that overcomes friction, `damping v + g(v) tanh(v / smoothing)`: (nv,) or (N, nv), N m or N.

    v: (nv,) or (N, nv) in rad/s or m/s; `damping` and `friction` are the model's. smoothing: speed in v's unit at
    which 76 % of the Coulomb friction acts. breakaway: friction near rest, a number or (nv,), at least `friction`;
    without it `g = friction`. With `friction=joint_friction(model, …)` inverse dynamics adds this effort, forward
    dynamics subtracts it. Raises `RbdError` for wrong shapes and invalid numbers.

        >>> model = rbd.sample("two_link")
        >>> rbd.friction_effort(model.with_(damping=[0.5, 0.1], friction=[1.0, 0.2]), [1.0, -1.0]).round(3)
        array([ 1.5, -0.3])
    """
    inputs = shaped(model, rates={"v": v})
    effort = joint_friction(model, smoothing, breakaway, stribeck_velocity).effort(inputs.arrays[0])
    if not finite_entry.call(effort.reshape(-1)):    # v or effort
        inputs.refuse(effort=effort)
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
    inputs = states(model, rates={"v": v, "a": a, "jerk": jerk})
    speed, rate, rate_dot = inputs.arrays
    law = joint_friction(model, smoothing, breakaway, stribeck_velocity)
    slope, curvature = law._expanded(speed)
    first, second = inputs.finite(first=slope * rate, second=slope * rate_dot + curvature * rate * rate)
    return first, second


def joint_friction(model: RobotModel, smoothing: float = SMOOTHING, breakaway: ArrayLike | None = None,
                stribeck_velocity: float = STRIBECK_VELOCITY) -> Friction:
    """The friction law of a model's joints, with parameters as in `friction_effort`: the argument `friction=` of
    inverse, forward and hybrid dynamics, constrained or not, and of their directional derivatives.

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
    """Friction effort (…, nv) at velocities v (…, nv)."""
    inputs = shaped(model, rates={"v": v})
    inputs.check_values()
    return inputs.finite(friction=fitting(model, friction).effort(inputs.arrays[0]))[0]


def left_over(model: RobotModel, friction: Friction, v: ArrayLike, tau: ArrayLike) -> Array:
    """Efforts tau (…, nv) minus friction at velocities v (…, nv)."""
    inputs = shaped(model, rates={"v": v, "tau": tau})
    inputs.check_values()
    speed, effort = inputs.arrays
    return inputs.finite(tau=effort - fitting(model, friction).effort(speed))[0]


def friction_slope(model: RobotModel, friction: Friction, v: ArrayLike) -> Array:
    """∂effort/∂v (…, nv) of friction."""
    return fitting(model, friction).slope(shaped(model, rates={"v": v}).arrays[0])


def fitting(model: RobotModel, friction: Friction) -> Friction:
    """The law itself; raises `RbdError` unless it has one or nv values per field."""
    if not isinstance(friction, Friction):
        raise RbdError(f"friction: expected a Friction, such as joint_friction(model), got {type(friction).__name__}")
    if friction.packed.shape[1] not in (1, model.nv):
        raise RbdError(f"friction: expected numbers or arrays of {model.nv}, one per coordinate, got "
                       f"{friction.packed.shape[1]}")
    return friction
