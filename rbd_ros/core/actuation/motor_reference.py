"""Flatness of robots with elastic joints: motor motion from link motion.

The flat output is q, and the stiffness k of joints with variable stiffness (De Luca & Lucibello 1998; Palli, Melchiorri
& De Luca 2008; Buondonno & De Luca 2015, 2016). With the link-side torques τ, τ̇, τ̈ of the motion:

| joint           | motor                                                                                   |
|-----------------|-----------------------------------------------------------------------------------------|
| rigid           | θ = q,                                             τ_m = τ + τ_f(q̇), τ with M + B        |
| series elastic  | f(φ) = τ, θ = q + φ, θ̇ = q̇ + φ̇, θ̈ = q̈ + φ̈,        τ_m = B θ̈ + τ + τ_f(θ̇)                |
| … with damping  | the same, with f(φ) + D φ̇ = τ (`DampedDeflection`)                                      |
| variable        | f(φ, σ) = τ, ∂f/∂φ = k, also for σ,                τ_m = B z̈ + ∂U/∂z + τ_f(ż), z of both |

`spring_motion` has φ̇, φ̈. All motor quantities are those behind the gear.
"""
from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..derivatives.time_derivatives import inverse_dynamics_time_derivatives
from ..errors import RbdError
from ..model.inertia import Array
from ..model.state import real, states
from .actuation import Actuation
from ..dynamics.friction import friction_effort, friction_effort_derivatives
from .spring_motion import Motion, series_motion, series_motion_of_one, variable_motion


class MotorReference(NamedTuple):
    """Motors for a motion of the links: position, velocity, acceleration, effort, each (nm,) or (N, nm), in the order
    of `Actuation.motor_names`; stiffness (nv,) or (N, nv) of the springs, inf at rigid joints; torque, the link-side
    effort, likewise.
    """

    position: Array
    velocity: Array
    acceleration: Array
    effort: Array
    stiffness: Array
    torque: Array


def motor_reference(actuation: Actuation, q: ArrayLike, v: ArrayLike, a: ArrayLike, efforts: ArrayLike,
                    stiffness: ArrayLike | None = None, deflection: ArrayLike | None = None) -> MotorReference:
    """The motors for links at (q, v, a) under efforts τ, τ̇, τ̈.

    q, v, a (nv,) or (N, nv); efforts (3, nv) or (N, 3, nv): of `actuation.model`, joint friction included, N m.
    stiffness (n,), (3, n) or (N, 3, n): k and, unless zero, k̇, k̈ of the joints in `actuation.variable`; by default
    the `stiffness` of their drives. deflection (nd,) or (N, nd): of the springs with damping, see `DampedDeflection`;
    by default that of the steady motion. Raises `RbdError` naming the input, or the joint whose spring cannot
    produce the effort.

        >>> model = rbd.sample("two_link")
        >>> drive = rbd.SeriesDrive(rbd.SeriesSpring([500.0]), motor=rbd.Motor(rotor_inertia=1e-4, gear_ratio=100.0))
        >>> arm = rbd.Actuation(model, {"shoulder": drive, "elbow": drive})
        >>> efforts = rbd.link_efforts(arm, [0.3, 0.5], *np.zeros((4, 2)))
        >>> rbd.motor_reference(arm, [0.3, 0.5], [0, 0], [0, 0], efforts).position.round(4)
        array([0.3079, 0.5035])
    """
    checked = states(actuation.model, positions={"q": q}, rates={"v": v, "a": a})
    lead = () if checked.batch is None else (checked.batch,)
    tau = _shaped("efforts", efforts, (3, actuation.nv), lead)
    k = stiffness_motion(actuation, stiffness, lead)
    if deflection is not None:
        deflection = _shaped("deflection", deflection, (actuation.damped.size,), lead)
    motors = flat_motors(actuation, Motion(*checked.arrays), Motion(*(tau[..., i, :] for i in range(3))), k, deflection)
    checked.finite(**{name: getattr(motors, name) for name in ("position", "velocity", "acceleration", "effort")})
    return motors


def link_efforts(actuation: Actuation, q: ArrayLike, v: ArrayLike, a: ArrayLike, jerk: ArrayLike, snap: ArrayLike,
                 external_wrenches: Any = None) -> Array:
    """Link-side efforts τ, τ̇, τ̈ (3, nv) or (N, 3, nv) of a motion, for `motor_reference`: inverse dynamics of
    `actuation.model` with the friction of its joints, and their time derivatives.

    q, v, a, jerk, snap (nv,) or (N, nv); external_wrenches: a sequence W, Ẇ, Ẅ as in
    `inverse_dynamics_time_derivatives`. Raises `RbdError` naming the input.

        >>> model = rbd.sample("two_link")
        >>> drive = rbd.SeriesDrive(rbd.SeriesSpring([500.0]), motor=rbd.Motor(rotor_inertia=1e-4, gear_ratio=100.0))
        >>> arm = rbd.Actuation(model, {"shoulder": drive, "elbow": drive})
        >>> rbd.link_efforts(arm, [0.3, 0.5], *np.zeros((4, 2))).round(3)
        array([[3.934, 1.759],
               [0.   , 0.   ],
               [0.   , 0.   ]])
    """
    model = actuation.model
    tau = inverse_dynamics_time_derivatives(model, q, v, a, jerk, snap, external_wrenches=external_wrenches)
    if actuation.rubs:
        tau = tau + np.stack([friction_effort(model, v), *friction_effort_derivatives(model, v, a, jerk)], axis=-2)
        states(model, positions={"q": q}, rates={"v": v, "a": a, "jerk": jerk, "snap": snap}).finite(effort=tau)
    return tau


def flat_motors(actuation: Actuation, links: Motion, tau: Motion, k: Motion,
                deflection: Array | None = None) -> MotorReference:
    """`motor_reference` of checked arrays, links = (q, v, a); they may be complex."""
    nv, series, variable = actuation.nv, actuation.series, actuation.variable
    kind = np.result_type(links.value, tau.value, tau.rate, tau.acceleration, k.value)
    motors = [np.empty((*tau.value.shape[:-1], actuation.nm), kind) for _ in range(3)]
    load = np.zeros_like(motors[0])
    stiffness = np.full(tau.value.shape, np.inf, kind)
    for motor, link in zip(motors, links, strict=True):
        motor[..., :nv] = link
    load[..., :nv] = tau.value
    if series.size and deflection is None and actuation.quick and tau.value.ndim == 1 and kind == np.float64:
        series_motion_of_one(actuation, tau, Motion(*motors), stiffness)
    elif series.size:
        phi = series_motion(actuation, Motion(*(x[..., series] for x in tau)), deflection)
        for motor, part in zip(motors, phi, strict=True):
            motor[..., series] += part
        stiffness[..., series] = actuation.series_spring.stiffness(phi.value)
    if variable.size:
        phi, sigma = variable_motion(actuation, Motion(*(x[..., variable] for x in tau)), k)
        for motor, part, other in zip(motors, phi, sigma, strict=True):
            motor[..., variable] += part
            motor[..., nv:] = other
        for joints, spring in actuation.groups:
            first, second = variable[joints], nv + joints
            reaction = spring.reaction(phi.value[..., joints], sigma.value[..., joints])
            load[..., first], load[..., second] = spring.loads(load[..., first], reaction)
            for motor in motors:
                motor[..., first], motor[..., second] = spring.to_motors(motor[..., first], motor[..., second])
        stiffness[..., variable] = k.value
    effort = load + actuation.inertia_behind_springs * motors[2]
    if actuation.motors_rub:
        effort += actuation.friction.effort(motors[1], load)
    return MotorReference(motors[0], motors[1], motors[2], effort, stiffness, tau.value)


def stiffness_motion(actuation: Actuation, stiffness: ArrayLike | None, lead: tuple[int, ...]) -> Motion:
    """k, k̇, k̈ (…, n) from the argument `stiffness` of `motor_reference`."""
    n = actuation.variable.size
    if stiffness is None:
        k = np.broadcast_to(actuation.stiffness, (*lead, n))
        return Motion(k, np.zeros_like(k), np.zeros_like(k))
    if np.shape(stiffness) == (n,):
        stiffness = np.stack([np.asarray(stiffness), *np.zeros((2, n))])
    k = _shaped("stiffness", stiffness, (3, n), lead)
    return Motion(*(k[..., i, :] for i in range(3)))


def _shaped(name: str, value: ArrayLike, shape: tuple[int, ...], lead: tuple[int, ...]) -> Array:
    array = real(value, name, str((*lead, *shape)))
    if array.shape == shape:
        array = np.broadcast_to(array, (*lead, *shape))
    if array.shape != (*lead, *shape):
        raise RbdError(f"{name} has shape {array.shape}, expected {(*lead, *shape)}"
                       + (f" or {shape}" if lead else ""))
    if not np.isfinite(array).all():
        raise RbdError(f"{name} must be finite")
    return array
