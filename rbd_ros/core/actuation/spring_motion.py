"""Springs along a motion: conversion between torques and deflections with their time derivatives.

With `τ = f(φ, σ)`, `k = ∂f/∂φ` and their Jacobian J by (φ, σ):

    J (φ̇, σ̇) = (τ̇, k̇)
    J (φ̈, σ̈) = (τ̈ − f_φφ φ̇² − 2 f_φσ φ̇σ̇ − f_σσ σ̇²,  k̈ − f_φφφ φ̇² − 2 f_φφσ φ̇σ̇ − f_φσσ σ̇²)

A spring with damping has `f(φ) + Dφ̇ = τ`: its deflection is a state, `damped`.
"""
from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..dynamics.spring_kernels import series_motion_entry
from ..errors import RbdError
from ..model.inertia import Array
from .actuation import TOLERANCE, Actuation
from .variable_stiffness import Partials


class Motion(NamedTuple):
    """A quantity with its first and second time derivative, each (…, n)."""

    value: Array
    rate: Array
    acceleration: Array


def series_motion(actuation: Actuation, tau: Motion, deflection: Array | None = None) -> Motion:
    """Deflections φ of the series springs under torques τ (…, ns), in the order of `actuation.series`.

    deflection (…, nd): of the springs with damping; by default that of the steady motion under τ, exact for τ quadratic
    in time and linear springs. Raises `RbdError` naming the joint whose spring cannot transmit the torque.
    """
    spring = actuation.series_spring
    reach = spring.max_torque
    if np.any(np.abs(tau.value) > actuation.spring_reach):
        i = _worst(np.abs(np.real(tau.value)) / reach)
        name = actuation.joint_names[actuation.series[i[-1]]]
        raise RbdError(f"joint '{name}': torque {np.real(tau.value[i]):.6g} N m is more than its spring transmits at "
                       f"its largest deflection, {reach[i[-1]]:.6g} N m")
    phi = spring.deflection(tau.value)
    k, slope = spring.stiffness(phi), spring.stiffness_slope(phi)
    rate = tau.rate / k
    acceleration = (tau.acceleration - slope * rate * rate) / k
    if not actuation.damped.size:
        return Motion(phi, rate, acceleration)
    D = actuation.spring_damping
    if deflection is None:
        rate = (tau.rate - D * acceleration) / k
        return Motion(spring.deflection(tau.value - D * rate), rate, acceleration)
    damped = actuation.damped
    phi[..., damped] = deflection
    f, k = spring.torque(phi), spring.stiffness(phi)
    D = np.where(np.real(D) > 0.0, D, 1.0)
    rate[..., damped] = ((tau.value - f) / D)[..., damped]
    acceleration[..., damped] = ((tau.rate - k * rate) / D)[..., damped]
    return Motion(phi, rate, acceleration)


def series_motion_of_one(actuation: Actuation, tau: Motion, motors: Motion, stiffness: Array) -> None:
    """Add `series_motion` of springs without damping to one motion of the motors (nm,), and set their stiffness (nv,);
    tau (nv,).
    """
    spring = actuation.series_spring
    efforts = (x if x.flags.carray else x.copy() for x in tau)
    if not series_motion_entry.call(spring.coefficients, spring.max_deflection, actuation.spring_reach,
                                    actuation.series, *efforts, *motors, stiffness):
        series_motion(actuation, Motion(*(x[actuation.series] for x in tau)))    # raises, naming the joint


def variable_motion(actuation: Actuation, tau: Motion, k: Motion) -> tuple[Motion, Motion]:
    """(φ, σ) of the joints with variable stiffness for torques τ and stiffnesses k, each (…, n).

    Raises `RbdError` naming the joint whose spring cannot reach k under τ, and its range.
    """
    check_stiffness(actuation, tau.value, k.value)
    phi, sigma = np.empty_like(tau.value), np.empty_like(tau.value)
    for joints, spring in actuation.groups:
        phi[..., joints], sigma[..., joints] = spring.invert(tau.value[..., joints], k.value[..., joints])
    P = variable_partials(actuation, phi, sigma)
    phi1, sigma1 = solve(actuation, P, tau.rate, k.rate)
    phi2, sigma2 = solve(actuation, P, tau.acceleration - (P.pp * phi1 + 2.0 * P.ps * sigma1) * phi1
                         - P.ss * sigma1 * sigma1,
                         k.acceleration - (P.ppp * phi1 + 2.0 * P.pps * sigma1) * phi1 - P.pss * sigma1 * sigma1)
    return Motion(phi, phi1, phi2), Motion(sigma, sigma1, sigma2)


def variable_partials(actuation: Actuation, phi: Array, sigma: Array) -> Partials:
    """f and its derivatives of all joints with variable stiffness, each (…, n)."""
    if len(actuation.groups) == 1:
        return actuation.groups[0][1].partials(phi, sigma)
    out = Partials(*(np.empty_like(phi) for _ in Partials._fields))
    for joints, spring in actuation.groups:
        for result, part in zip(out, spring.partials(phi[..., joints], sigma[..., joints]), strict=True):
            result[..., joints] = part
    return out


def solve(actuation: Actuation, P: Partials, tau: Array, k: Array) -> tuple[Array, Array]:
    """(x, y) with `f_φ x + f_σ y = tau`, `f_φφ x + f_φσ y = k`."""
    determinant = P.p * P.ps - P.s * P.pp
    if np.any(np.real(determinant) <= 1e-12 * np.abs(P.p * P.ps)):
        i = _worst(-np.real(determinant))
        raise RbdError(f"joint '{actuation.variable_name(i[-1])}': torque and stiffness of its spring cannot be set "
                       f"independently of each other at stiffness {np.real(P.p[i]):.6g} N m/rad")
    return (P.ps * tau - P.s * k) / determinant, (P.p * k - P.pp * tau) / determinant


def check_stiffness(actuation: Actuation, tau: Array, k: Array) -> None:
    """Raise `RbdError` naming the joint whose spring cannot have stiffness k (…, n) under τ (…, n)."""
    tau, k = np.broadcast_arrays(np.real(tau), np.real(k))
    low, high = stiffness_range(actuation, tau)
    wrong = ~((k >= low * (1.0 - TOLERANCE)) & (k <= high * (1.0 + TOLERANCE)))
    if wrong.any():
        i = _worst(wrong)
        where = f"joint '{actuation.variable_name(i[-1])}': "
        if low[i] > high[i]:
            raise RbdError(f"{where}torque {tau[i]:.6g} N m is more than its spring transmits at any stiffness")
        raise RbdError(f"{where}stiffness {k[i]:.6g} N m/rad under torque {tau[i]:.6g} N m is out of the spring's "
                       f"range, {low[i]:.6g} to {high[i]:.6g}")


def stiffness_range(actuation: Actuation, tau: Array) -> tuple[Array, Array]:
    """Least and largest stiffness of the joints with variable stiffness under torques τ, each (…, n)."""
    low, high = np.empty(np.shape(tau)), np.empty(np.shape(tau))
    for joints, spring in actuation.ranges:
        low[..., joints], high[..., joints] = spring.stiffness_range(tau[..., joints])
    return low, high


def _worst(amount: NDArray[Any]) -> tuple[int, ...]:
    return tuple(int(i) for i in np.unravel_index(int(np.argmax(amount)), amount.shape))
