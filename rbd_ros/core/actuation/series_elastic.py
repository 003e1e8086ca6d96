"""Springs of series elastic joints: odd polynomials `τ = k₁φ + k₃φ³ + k₅φ⁵ + …` of the deflection φ = θ − q.

One coefficient is a linear spring, two a cubic one, hardening (k₃ > 0) or softening. Fields may be numbers of one joint
or arrays of many: `stacked` combines the springs of an arm into one object. All functions accept complex numbers.
"""
from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..dynamics.spring_kernels import deflections_entry
from ..errors import RbdError, shown
from ..model.inertia import Array


@dataclass(frozen=True, eq=False)
class SeriesSpring:
    """`τ = Σ coefficients[j] φ^(2j+1)` (N m, rad) up to |φ| ≤ max_deflection (rad).

    coefficients (m,) of one joint, or (n, m) of n joints; max_deflection a number or (n,), inf for none.
    Raises `RbdError` unless the torque increases over the whole range, as required for inversion.

        >>> rbd.SeriesSpring([500.0]).torque(np.array([0.01]))    # N m
        array([5.])
    """

    coefficients: Array
    max_deflection: Array | float = np.inf

    def __post_init__(self) -> None:
        c = np.array(self.coefficients, dtype=float, order="C")
        limit = np.asarray(self.max_deflection, dtype=float)
        if c.ndim not in (1, 2) or c.shape[-1] == 0 or not np.isfinite(c).all():
            raise RbdError(f"spring: expected at least one finite coefficient, got {shown(self.coefficients)}")
        if not np.all(limit > 0.0):
            raise RbdError(f"max_deflection must be positive, got {shown(self.max_deflection)}")
        object.__setattr__(self, "coefficients", c)
        object.__setattr__(self, "max_deflection", limit)
        for row, reach in zip(np.atleast_2d(c), np.broadcast_to(limit, c.shape[:-1]).reshape(-1), strict=True):
            _check_increasing(row, float(reach))

    @staticmethod
    def stacked(springs: Sequence[SeriesSpring]) -> SeriesSpring:
        """The springs of several joints as one, in this order."""
        width = max((spring.coefficients.size for spring in springs), default=1)
        c = np.zeros((len(springs), width))
        for row, spring in zip(c, springs, strict=True):
            row[:spring.coefficients.size] = spring.coefficients
        return SeriesSpring(c, np.array([float(spring.max_deflection) for spring in springs]))

    def torque(self, phi: Array) -> Array:
        """τ at deflections φ, N m."""
        return self._polynomial(phi * phi, self.coefficients) * phi

    def stiffness(self, phi: Array) -> Array:
        """k = ∂τ/∂φ, N m/rad."""
        return self._polynomial(phi * phi, self._of_stiffness)

    def stiffness_slope(self, phi: Array) -> Array:
        """∂²τ/∂φ², N m/rad²."""
        c = self._of_slope
        return self._polynomial(phi * phi, c) * phi if c.shape[-1] else 0.0 * phi

    def energy(self, phi: Array) -> Array:
        """∫τ dφ, J."""
        x = phi * phi
        return self._polynomial(x, self.coefficients / (2 * np.arange(self.coefficients.shape[-1]) + 2)) * x

    @functools.cached_property
    def _of_stiffness(self) -> Array:
        return self.coefficients * (2 * np.arange(self.coefficients.shape[-1]) + 1)

    @functools.cached_property
    def _of_slope(self) -> Array:
        power = 2 * np.arange(self.coefficients.shape[-1]) + 1
        return (self.coefficients * (power * (power - 1)))[..., 1:]

    @functools.cached_property
    def max_torque(self) -> Array:
        """Torque at the largest deflection, N m; inf without a limit."""
        return np.where(np.isinf(self.max_deflection), np.inf,
                        self.torque(np.where(np.isinf(self.max_deflection), 1.0, self.max_deflection)))

    def deflection(self, tau: Array) -> Array:
        """φ of torques τ within ±`max_torque` (not checked): the inverse of `torque`, to rounding."""
        first = self.coefficients[..., 0]
        if self.coefficients.shape[-1] == 1:
            return tau / first
        t = np.array(np.broadcast_to(np.real(tau), np.broadcast_shapes(np.shape(tau), first.shape)), dtype=float,
                     order="C")
        complex_ = np.iscomplexobj(tau) or np.iscomplexobj(first)
        rows, shape = np.ascontiguousarray(np.atleast_2d(np.real(self.coefficients))), (-1, first.size)
        limit = np.array(np.broadcast_to(self.max_deflection, first.shape)).reshape(-1)
        phi = np.empty_like(t)
        deflections_entry(rows, limit, t.reshape(shape), phi.reshape(shape))
        if not complex_:
            return phi
        return phi - (self.torque(phi) - tau) / self.stiffness(phi)    # a step with the imaginary part

    @staticmethod
    def _polynomial(x: Array, c: Array) -> Array:
        total = c[..., -1] + 0.0 * x
        for j in range(c.shape[-1] - 2, -1, -1):
            total = total * x + c[..., j]
        return total


def _check_increasing(c: Array, reach: float) -> None:
    if not c[0] > 0.0:
        raise RbdError(f"stiffness must be positive at rest, got {c[0]:g} N m/rad")
    if np.all(c >= 0.0):
        return
    derivative = c * (2 * np.arange(c.size) + 1)    # in x = φ²
    try:
        roots = np.roots(derivative[::-1])
    except np.linalg.LinAlgError:
        raise RbdError(f"coefficients {shown(c.tolist())} differ by too many orders of magnitude to tell up to which "
                       "deflection the stiffness is positive") from None
    real = roots[(np.abs(roots.imag) < 1e-9 * np.abs(roots)) & (roots.real > 0.0)].real
    end = float(np.sqrt(real.min())) if real.size else np.inf
    if reach >= end or (np.isinf(reach) and c[np.flatnonzero(c)[-1]] < 0.0):
        raise RbdError(f"coefficients {c.tolist()}: the stiffness is not positive beyond a deflection of {end:g} rad; "
                       "give a smaller max_deflection")
