"""Deflections of springs with damping: `D φ̇ + f(φ) = τ(t)`, the internal dynamics of the flatness map.

Over a control period h the torque is the polynomial of degree five through (τ, τ̇, τ̈) at both ends. With z = kh/D the
linear equation has the solution

    φ(h) = e^(−z) φ(0) + (1/D) Σ_j c_j j! h^(j+1) ϕ_(j+1)(−z),    τ(t) = Σ_j c_j t^j,

which is exact for any z (exponential integrator; ϕ: Hochbruck & Ostermann 2010, eq. 2.11). For a nonlinear spring k is
that at the start, and `f(φ) − kφ` is interpolated linearly in time (two passes, order 2).
"""
from __future__ import annotations

from math import factorial

import numpy as np
from numpy.typing import ArrayLike

from ..model.inertia import Array
from ..model.scalars import positive
from .actuation import Actuation
from .motor_reference import _shaped
from .series_elastic import SeriesSpring
from .spring_motion import Motion, series_motion

_TERMS = 6


class DampedDeflection:
    """The deflections `value` (nd,) of the springs with damping, carried along a motion of equal periods (s).

    efforts: τ, τ̇, τ̈ (3, nv) at the first instant. start (nd,): initial deflections, by default those of a steady
    motion.

        >>> model = rbd.sample("two_link")
        >>> drive = rbd.SeriesDrive(rbd.SeriesSpring([500.0]), motor=rbd.Motor(rotor_inertia=1e-4, gear_ratio=100.0))
        >>> arm = rbd.Actuation(model, {"shoulder": drive, "elbow": drive})
        >>> springs = rbd.DampedDeflection(arm, 0.001, rbd.link_efforts(arm, [0.3, 0.5], *np.zeros((4, 2))))
        >>> springs.value.shape    # of springs with damping: none
        (0,)
    """

    def __init__(self, actuation: Actuation, period: float, efforts: ArrayLike, start: ArrayLike | None = None) -> None:
        self.actuation, self.period = actuation, positive(period, "period", "time in seconds")
        damped = actuation.damped
        self._joints = actuation.series[damped]
        spring = actuation.series_spring
        self._spring = SeriesSpring(spring.coefficients[damped], np.full(damped.size, np.inf)
                                    if not damped.size else np.asarray(spring.max_deflection)[damped])
        self._linear = not self._spring.coefficients[:, 1:].any()
        self._damping = actuation.spring_damping[damped]
        tau = _shaped("efforts", efforts, (3, actuation.nv), ())
        self._last = tau[:, self._joints]
        if start is None:
            steady = series_motion(actuation, Motion(*tau[:, actuation.series]))
            self.value = steady.value[damped]
        else:
            self.value = np.array(_shaped("start", start, (damped.size,), ()))

    def advance(self, efforts: ArrayLike) -> Array:
        """The deflections (nd,) one period later, with efforts τ, τ̇, τ̈ (3, nv) at that time."""
        tau = _shaped("efforts", efforts, (3, self.actuation.nv), ())[:, self._joints]
        c = hermite(self._last, tau, self.period)
        before, spring = self.value, self._spring
        k = spring.stiffness(before)
        weights = _weights(k * self.period / self._damping, self.period) / self._damping
        decay = np.exp(-k * self.period / self._damping)
        if self._linear:
            self.value = decay * before + np.sum(weights * c, axis=0)
        else:
            nonlinear = spring.torque(before) - k * before
            c[0] -= nonlinear
            self.value = decay * before + np.sum(weights * c, axis=0)
            c[1] -= (spring.torque(self.value) - k * self.value - nonlinear) / self.period
            self.value = decay * before + np.sum(weights * c, axis=0)
        self._last = tau
        return self.value


def hermite(first: Array, last: Array, h: float) -> Array:
    """Coefficients (6, n) of the polynomial in t with (value, rate, acceleration) (3, n) at t = 0 and t = h."""
    x0, v0, a0 = first
    d = last[0] - x0 - h * (v0 + 0.5 * h * a0)
    e = h * (last[1] - v0 - h * a0)
    g = h * h * (last[2] - a0)
    return np.stack([x0, v0, 0.5 * a0, (10.0 * d - 4.0 * e + 0.5 * g) / h**3,
                     (-15.0 * d + 7.0 * e - g) / h**4, (6.0 * d - 3.0 * e + 0.5 * g) / h**5])


def _weights(z: Array, h: float) -> Array:
    """`∫₀ʰ exp(−z (1 − s/h)) s^j ds` for j = 0 … 5: j! h^(j+1) ϕ_(j+1)(−z), (6, n)."""
    phi = np.empty((_TERMS, z.size))
    small = z < 2.0
    x = -np.where(small, z, 0.0)
    for j in range(_TERMS):    # ϕ_j(x) = Σ xⁱ / (i + j)!
        total = np.zeros_like(x)
        for i in range(26, -1, -1):
            total = total * x + 1.0 / factorial(i + j + 1)
        phi[j] = total
    large, y = np.exp(-z), -np.where(small, 1.0, z)
    for j in range(_TERMS):    # ϕ_(j+1)(x) = (ϕ_j(x) − 1/j!) / x
        large = (large - 1.0 / factorial(j)) / y
        phi[j] = np.where(small, phi[j], large)
    scale = np.array([factorial(j) * h ** (j + 1) for j in range(_TERMS)])
    return scale[:, None] * phi
