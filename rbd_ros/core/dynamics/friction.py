"""Friction: viscous and Coulomb, by direction, with Stribeck's effect and by load, smoothed by tanh.

With t = tanh(v / s), τ the effort of the joint without friction (what a gear carries) and `|τ|_ε = √(τ² + ε²)`:

    τ_f(v, τ) = d v + e v t + g(v) t + a t² + k |τ|_ε t,      g(v) = c + (b − c) exp(−(v / w)²)

Coulomb level c, breakaway level b ≥ c near rest, Stribeck velocity w, smoothing s; half the differences by direction e
of the viscous coefficients d ± e, and a of the Coulomb levels c ± a; share k of the load. The law is implemented here
only, as functions of p = (d, c, b, w, s, a, e, k), v and τ, numbers or arrays, real or complex, and as kernels.

With friction the effort is `τ_m = τ + τ_f(v, τ)`, which grows with τ as k < 1, so that it has an inverse: with
`y = τ_m − τ_f` of all terms but the last and `L = k t`, `τ = (y − L √(y² + ε² (1 − L²))) / (1 − L²)`.
"""
from __future__ import annotations

import functools
from contextlib import suppress
from dataclasses import dataclass, fields, replace
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
LOAD_SMOOTHING = 0.1     # ε, N m or N


def level(p, v):
    """g(v)."""
    return p[1] + (p[2] - p[1]) * np.exp(-(v / p[3]) ** 2)


def effort(p, v):
    """τ_f(v) of all terms but that of the load."""
    t = np.tanh(v / p[4])
    return (p[0] + p[6] * t) * v + (p[1] + (p[2] - p[1]) * np.exp(-(v / p[3]) ** 2) + p[5] * t) * t


def load_share(p, v):
    """L = k t."""
    return p[7] * np.tanh(v / p[4])


def loaded(share, tau):
    """τ + L |τ|_ε."""
    return tau + share * np.sqrt(tau * tau + LOAD_SMOOTHING**2)


def unloaded(share, y):
    """τ of y = τ + L |τ|_ε."""
    complement = 1.0 - share * share
    return (y - share * np.sqrt(y * y + LOAD_SMOOTHING**2 * complement)) / complement


def gain(share, tau):
    """∂τ_m/∂τ."""
    return 1.0 + share * tau / np.sqrt(tau * tau + LOAD_SMOOTHING**2)


def slopes(p, v):
    """∂τ_f/∂v and ∂²τ_f/∂v² of all terms but that of the load."""
    d, c, b, w, s, a, e, _ = p
    t = np.tanh(v / s)
    t1 = (1.0 - t * t) / s
    t2 = -2.0 * t * t1 / s
    bump = (b - c) * np.exp(-(v / w) ** 2)
    g = c + bump + 2.0 * a * t + e * v
    g1 = -2.0 * v / w**2 * bump
    g2 = (4.0 * v * v / w**4 - 2.0 / w**2) * bump
    return (d + e * t) + g1 * t + g * t1, g2 * t + 2.0 * (g1 + a * t1 + e) * t1 + g * t2


def load_slope(p, v, tau):
    """∂τ_f/∂v of the load's term."""
    t = np.tanh(v / p[4])
    return p[7] * np.sqrt(tau * tau + LOAD_SMOOTHING**2) * (1.0 - t * t) / p[4]


def by_parameters(p, v, tau):
    """∂τ_f/∂p, eight values."""
    _, c, b, w, s, a, e, k = p
    t = np.tanh(v / s)
    near, far = np.exp(-(v / w) ** 2), -np.expm1(-(v / w) ** 2)
    bump = (b - c) * near
    size = np.sqrt(tau * tau + LOAD_SMOOTHING**2)
    level = c + bump + 2.0 * a * t + e * v + k * size
    return (v, far * t, near * t, bump * (2.0 * v * v / w**3) * t, -level * (1.0 - t * t) * v / s**2, t * t, v * t,
            size * t)


friction_level, friction_law = exact(level), exact(effort)
friction_slopes, friction_by_parameters = exact(slopes), exact(by_parameters)
friction_load_share, friction_loaded, friction_unloaded = exact(load_share), exact(loaded), exact(unloaded)
friction_gain, friction_load_slope = exact(gain), exact(load_slope)


@dataclass(frozen=True)
class Friction:
    """The law above; every field is a number or (n,), for n joints or motors. `joint_friction` returns that of a
    model's joints, for the argument `friction=` of the functions of dynamics.

    asymmetry a (N m or N) and viscous_asymmetry e (N m s/rad or N s/m): half the difference of Coulomb level and
    viscous coefficient between forward and backward motion, at most as large as these, so that friction is dissipative.
    load k: share of the joint's effort that is added to the Coulomb level, 0 ≤ k < 1, as in gears.

        >>> rubs = rbd.Friction(damping=0.5, coulomb=2.0)
        >>> rubs.effort(np.array([1.0, -1.0]))
        array([ 2.5, -2.5])
        >>> rbd.Friction(coulomb=2.0, asymmetry=0.5, load=0.1).effort(np.array([1.0, -1.0]), tau=20.0).round(3)
        array([ 4.5, -3.5])
    """

    damping: Array | float = 0.0
    coulomb: Array | float = 0.0
    breakaway: Array | float = None    # type: ignore[assignment]
    stribeck_velocity: Array | float = STRIBECK_VELOCITY
    smoothing: Array | float = SMOOTHING
    asymmetry: Array | float = 0.0
    viscous_asymmetry: Array | float = 0.0
    load: Array | float = 0.0

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, list | tuple):
                with suppress(TypeError, ValueError):    # `packed` raises the error for non-numbers
                    object.__setattr__(self, field.name, np.asarray(value, dtype=float))
        level: Any = self.breakaway    # by default as coulomb: no effect of Stribeck's
        if level is None:
            object.__setattr__(self, "breakaway", self.coulomb)

    @functools.cached_property
    def _parameters(self) -> tuple[Any, ...]:
        return tuple(getattr(self, field.name) for field in fields(Friction))

    @functools.cached_property
    def by_load(self) -> bool:
        """Whether the law depends on the load."""
        return bool(np.any(self.load))

    def level(self, v: Array) -> Array:
        """g(v): the Coulomb friction at this speed, without the terms of direction and load, N m or N."""
        return level(self._parameters, v)    # type: ignore[no-any-return]

    def effort(self, v: Array, tau: ArrayLike | None = None) -> Array:
        """Effort that overcomes friction at velocities v (…, n), N m or N. tau (…, n): efforts of the joints without
        friction, required for load-dependent friction (else `RbdError`).
        """
        bare = effort(self._parameters, v)
        if not self.by_load:
            return bare    # type: ignore[no-any-return]
        return bare + loaded(load_share(self._parameters, v), self._given(tau)) - tau    # type: ignore[no-any-return]

    def add(self, v: Array, tau: Array) -> Array:
        """Efforts with friction τ_m (…, n) of efforts without it, tau (…, n), at velocities v."""
        if not self.by_load:
            return tau + effort(self._parameters, v)    # type: ignore[no-any-return]
        return loaded(load_share(self._parameters, v), tau) + effort(self._parameters, v)    # type: ignore[no-any-return]

    def remove(self, v: Array, tau: Array) -> Array:
        """Efforts without friction (…, n) of efforts with it, tau (…, n), at velocities v: the inverse of `add`."""
        net = tau - effort(self._parameters, v)
        if not self.by_load:
            return net    # type: ignore[no-any-return]
        return unloaded(load_share(self._parameters, v), net)    # type: ignore[no-any-return]

    def slope(self, v: Array, tau: ArrayLike | None = None) -> Array:
        """∂effort/∂v (…, n)."""
        bare = slopes(self._parameters, v)[0]
        return bare + load_slope(self._parameters, v, self._given(tau)) if self.by_load else bare    # type: ignore[no-any-return]

    def gain(self, v: Array, tau: ArrayLike) -> Array:
        """∂`add`/∂tau (…, n), 1 for a law that does not depend on the load."""
        if not self.by_load:
            return np.ones(np.broadcast_shapes(np.shape(v), np.shape(tau)))
        return gain(load_share(self._parameters, v), self._given(tau))    # type: ignore[no-any-return]

    def curvature(self, v: Array) -> Array:
        """∂²effort/∂v² (…, n), of a law that does not depend on the load."""
        self.without_load("its second derivative")
        return slopes(self._parameters, v)[1]    # type: ignore[no-any-return]

    def curvatures(self, v: Array, tau: Array) -> tuple[Array, Array, Array]:
        """Second derivatives of `add` by (v, v), (v, tau) and (tau, tau), (…, n) each."""
        k, s = self._parameters[7], self._parameters[4]
        t, size = np.tanh(v / s), np.sqrt(tau * tau + LOAD_SMOOTHING**2)
        t1 = (1.0 - t * t) / s
        return (slopes(self._parameters, v)[1] - 2.0 * k * size * t * t1 / s, k * t1 * tau / size,
                k * t * LOAD_SMOOTHING**2 / size**3)

    def without_load(self, what: str) -> Friction:
        """The law itself; raises `RbdError` for load-dependent friction, which `what` does not support."""
        if self.by_load:
            raise RbdError(f"friction.load: {what} does not support friction that depends on the load, expected 0, got "
                           f"{shown(self.load)}")
        return self

    def _given(self, tau: ArrayLike | None) -> Any:
        if tau is None:
            raise RbdError(f"friction.load is {shown(self.load)}: this law depends on the efforts, which must be given")
        return np.asarray(tau)

    @functools.cached_property
    def packed(self) -> Array:
        """All fields (8, 1) or (8, n); `RbdError` for invalid numbers."""
        for field in fields(self):
            entry = getattr(self, field.name)
            try:
                value = np.asarray(entry, dtype=float)
            except (TypeError, ValueError):
                raise RbdError(f"friction.{field.name}: expected one finite number or one per coordinate, got "
                               f"{shown(entry)}") from None
            if value.ndim > 1 or not np.isfinite(value).all():
                raise RbdError(f"friction.{field.name}: expected one finite number or one per coordinate, got "
                               f"{shown(value)}")
            if field.name in ("stribeck_velocity", "smoothing") and not np.all(value > 0.0):
                raise RbdError(f"friction.{field.name} must be positive, got {shown(value)}")
            if field.name == "load" and not np.all((value >= 0.0) & (value < 1.0)):
                raise RbdError(f"friction.load must be at least 0 and less than 1, got {shown(value)}")
        try:
            all_fields = np.array(np.broadcast_arrays(*(
                np.atleast_1d(np.asarray(getattr(self, field.name), dtype=float)) for field in fields(self))))
        except ValueError:
            raise RbdError("friction: its fields are of different lengths") from None
        damping, coulomb, breakaway, _, _, asymmetry, viscous_asymmetry, _ = all_fields
        for name, value, bound, of in (("asymmetry", asymmetry, np.minimum(coulomb, breakaway), "coulomb or breakaway"),
                                      ("viscous_asymmetry", viscous_asymmetry, damping, "damping")):
            if np.any((value != 0.0) & ~(np.abs(value) <= bound)):
                raise RbdError(f"friction.{name} must not be larger than {of}, or friction would drive: got "
                               f"{shown(value)} with {shown(bound)}")
        return all_fields

    def by_parameters(self, v: Array, tau: ArrayLike | None = None) -> Array:
        """∂effort by each of its fields, in their order: (8, …, n)."""
        tau = 0.0 if tau is None and not self.by_load else self._given(tau)
        return np.stack(np.broadcast_arrays(*by_parameters(self._parameters, v, tau)))


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
    inputs = shaped(model, rates={"v": v})
    effort = joint_friction(model, smoothing, breakaway, stribeck_velocity).effort(inputs.arrays[0])
    if not finite_entry.call(effort.reshape(-1)):    # includes non-finite v
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
    slope, curvature = law.slope(speed), law.curvature(speed)
    first, second = inputs.finite(first=slope * rate, second=slope * rate_dot + curvature * rate * rate)
    return first, second


def same_friction(first: Friction | None, second: Friction | None) -> bool:
    """Whether two laws, or none, have the same parameters."""
    return first is second or (first is not None and second is not None
                               and np.array_equal(first.packed, second.packed))


def joint_friction(model: RobotModel, smoothing: float = SMOOTHING, breakaway: ArrayLike | None = None,
                   stribeck_velocity: float = STRIBECK_VELOCITY, *, asymmetry: ArrayLike = 0.0,
                   viscous_asymmetry: ArrayLike = 0.0, load: ArrayLike = 0.0) -> Friction:
    """The law of a model's joints, with parameters as of `friction_effort` and `Friction`, for the argument `friction=`
    of inverse, forward and hybrid dynamics, constrained or not, and their derivatives.

        >>> model = rbd.sample("two_link").with_(damping=[0.5, 0.1])
        >>> rbd.inverse_dynamics(model, [0.0, 0.0], [1.0, 0.0], [0.0, 0.0], friction=rbd.joint_friction(model)).round(3)
        array([0.5, 0. ])
    """
    if not hasattr(model, "_block"):
        raise not_a_model(model)
    width = positive(smoothing, "smoothing", "speed")
    level, speed = np.asarray(model.friction, dtype=float), 1.0
    if breakaway is not None:
        level = np.asarray(breakaway, dtype=float)
        if level.shape not in ((), (model.nv,)) or not np.all(level >= model.friction) or not np.isfinite(level).all():
            raise RbdError(f"breakaway must be one number or {model.nv}, each at least the model's friction "
                           f"{model.friction.tolist()}, got {shown(breakaway)}")
        speed = positive(stribeck_velocity, "stribeck_velocity", "speed")
    law = Friction(model.damping, model.friction, level, speed, width)
    if np.any(asymmetry) or np.any(viscous_asymmetry) or np.any(load):
        more: Any = {"asymmetry": asymmetry, "viscous_asymmetry": viscous_asymmetry, "load": load}
        law = replace(law, **more)
        fitting(model, law)
    return law


def overcome(model: RobotModel, friction: Friction, v: ArrayLike, tau: Array) -> Array:
    """Efforts tau (…, nv) plus the friction of the law at velocities v."""
    inputs = shaped(model, rates={"v": v})
    inputs.check_values()
    return inputs.finite(effort=fitting(model, friction).add(inputs.arrays[0], tau))[0]


def left_over(model: RobotModel, friction: Friction, v: ArrayLike, tau: ArrayLike) -> Array:
    """Efforts tau without friction."""
    inputs = shaped(model, rates={"v": v, "tau": tau})
    inputs.check_values()
    return inputs.finite(tau=fitting(model, friction).remove(*inputs.arrays))[0]


def friction_slopes_at(model: RobotModel, friction: Friction, v: ArrayLike, tau: Array) -> tuple[Array, Array]:
    """Of the efforts that friction makes of tau, efforts without it: ∂ by v and by tau, (…, nv) each."""
    law, speed = fitting(model, friction), shaped(model, rates={"v": v}).arrays[0]
    return law.slope(speed, tau), law.gain(speed, tau)


def fitting(model: RobotModel, friction: Friction) -> Friction:
    """The law; raises `RbdError` if it does not fit this model."""
    if not isinstance(friction, Friction):
        raise RbdError(f"friction: expected a Friction, such as joint_friction(model), got {type(friction).__name__}")
    if friction.packed.shape[1] not in (1, model.nv):
        raise RbdError(f"friction: expected numbers or arrays of {model.nv}, one per coordinate, got "
                       f"{friction.packed.shape[1]}")
    return friction
