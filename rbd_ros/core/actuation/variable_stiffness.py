"""Springs of joints with variable stiffness: `τ = f(φ, σ)`, stiffness `k = ∂f/∂φ`, of the deflection φ = θ − q and the
coordinate σ of a second motor (P §5; Palli, Melchiorri & De Luca 2008; Buondonno & De Luca 2016).

All springs conserve energy: f = ∂U/∂φ, and the reaction ρ = ∂U/∂σ acts on the second motor.

| type                      | U(φ, σ)                               | f                    | k                      |
|---------------------------|---------------------------------------|----------------------|------------------------|
| `StiffnessInput`          | ½ s φ² + ¼ c φ⁴, s = k₀ + k₁σ         | s φ + c φ³           | s + 3 c φ²             |
| `AntagonisticQuadratic`   | ∫T(σ+φ) + ∫T(σ−φ), T(x) = c₁x + c₂x²  | 2 (c₁ + 2 c₂ σ) φ    | 2 c₁ + 4 c₂ σ          |
| `AntagonisticExponential` | the same, T(x) = T₀ (exp(a x) − 1)    | 2 T₀ e^{aσ} sinh aφ  | 2 T₀ a e^{aσ} cosh aφ  |

Two antagonistic motors turn pulleys z₁ = θ + σ and z₂ = θ − σ, each pulling by its tendon: `θ = (z₁ + z₂)/2`,
`σ = (z₁ − z₂)/2`. A tendon cannot push, so |φ| ≤ σ.

Fields are numbers of one joint or arrays of many. All functions except those of ranges accept complex numbers.
"""
from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import ClassVar, NamedTuple, TypeVar

import numpy as np

from ..errors import RbdError, shown
from ..model.inertia import Array


class Partials(NamedTuple):
    """f and the partial derivatives required for two time derivatives of (τ, k): index p is ∂/∂φ, s is ∂/∂σ."""

    f: Array
    p: Array     # the stiffness k
    s: Array
    pp: Array
    ps: Array
    ss: Array
    ppp: Array
    pps: Array
    pss: Array


Spring = TypeVar("Spring", bound="VariableSpring")


@dataclass(frozen=True, eq=False)
class VariableSpring(ABC):
    """Base class of springs: σ between `lower` and `upper`, |φ| ≤ `max_deflection` (inf: no limit), in rad."""

    lower: Array | float
    upper: Array | float
    max_deflection: Array | float
    antagonistic: ClassVar[bool] = False

    @classmethod
    def stacked(cls: type[Spring], springs: Sequence[Spring]) -> Spring:
        """The springs of several joints as one, in this order."""
        return cls(**{field.name: np.array([getattr(spring, field.name) for spring in springs], dtype=float)
                      for field in fields(cls)})

    @abstractmethod
    def partials(self, phi: Array, sigma: Array) -> Partials:
        """f (N m) and its derivatives at (φ, σ)."""

    @abstractmethod
    def energy(self, phi: Array, sigma: Array) -> Array:
        """U(φ, σ), J, zero for σ = φ = 0."""

    @abstractmethod
    def reaction(self, phi: Array, sigma: Array) -> Array:
        """ρ = ∂U/∂σ, the effort that holds the second coordinate, N m."""

    @abstractmethod
    def reaction_slope(self, phi: Array, sigma: Array) -> Array:
        """∂ρ/∂σ, N m/rad."""

    @abstractmethod
    def invert(self, tau: Array, k: Array) -> tuple[Array, Array]:
        """(φ, σ) with torque τ and stiffness k; k is not checked against `stiffness_range`."""

    @abstractmethod
    def stiffness_range(self, tau: Array) -> tuple[Array, Array]:
        """Least and largest stiffness that can be reached under torque τ; least > largest: τ cannot be transmitted."""

    def rest_stiffness(self, sigma: Array) -> Array:
        """Stiffness without torque."""
        return self.partials(0.0 * sigma, sigma).p

    # ---- motors: (θ, σ) and the coordinates of the two motors

    def to_motors(self, theta: Array, sigma: Array) -> tuple[Array, Array]:
        """Motor coordinates (z₁, z₂) of (θ, σ), or their rates."""
        return (theta + sigma, theta - sigma) if self.antagonistic else (theta, sigma)

    def from_motors(self, first: Array, second: Array) -> tuple[Array, Array]:
        """(θ, σ) of the motor coordinates, or their rates."""
        return (0.5 * (first + second), 0.5 * (first - second)) if self.antagonistic else (first, second)

    def loads(self, torque: Array, reaction: Array) -> tuple[Array, Array]:
        """Load of the spring on each motor, ∂U/∂z₁ and ∂U/∂z₂, N m."""
        if self.antagonistic:
            return 0.5 * (torque + reaction), 0.5 * (torque - reaction)
        return torque, reaction


@dataclass(frozen=True, eq=False)
class StiffnessInput(VariableSpring):
    """`τ = (k₀ + k₁σ) φ + c φ³`: σ sets the stiffness; linear (c = 0, and σ is the stiffness itself with k₀ = 0 and
    k₁ = 1) or hardening (c > 0). k₀ (N m/rad), k₁ (N m/rad per unit of σ, positive), c (N m/rad³).

    With c > 0 a torque stiffens the spring. Of the two states with the same (τ, k) this uses the one that unloads to
    the smaller deflection, k₀ + k₁σ ≥ 3 c φ².

        >>> rbd.StiffnessInput(lower=10.0, upper=200.0, max_deflection=0.5).gain
        1.0
    """

    offset: Array | float = 0.0
    gain: Array | float = 1.0
    hardening: Array | float = 0.0

    def partials(self, phi: Array, sigma: Array) -> Partials:
        s = self.offset + self.gain * sigma
        c, zero = self.hardening, 0.0 * (phi + sigma)
        return Partials(f=(s + c * phi * phi) * phi, p=s + 3.0 * c * phi * phi, s=self.gain * phi,
                        pp=6.0 * c * phi + zero, ps=self.gain + zero, ss=zero, ppp=6.0 * c + zero, pps=zero, pss=zero)

    def energy(self, phi: Array, sigma: Array) -> Array:
        x = phi * phi
        return (0.5 * (self.offset + self.gain * sigma) + 0.25 * self.hardening * x) * x

    def reaction(self, phi: Array, sigma: Array) -> Array:
        return 0.5 * self.gain * phi * phi

    def reaction_slope(self, phi: Array, sigma: Array) -> Array:
        return 0.0 * (phi + sigma)

    def invert(self, tau: Array, k: Array) -> tuple[Array, Array]:
        c = np.asarray(self.hardening)
        linear = tau / k
        # k φ − 2 c φ³ = τ, the middle root: φ = 2 √(k/6c) sin(asin(x)/3) with x = τ/k · √(27 c / 2k)
        x = linear * np.sqrt(13.5 * c / k)
        small = np.abs(x) < 1e-3    # there, sin(asin(x)/3) = x/3 (1 + 4/27 x² + 16/243 x⁴ + …), and c may be zero
        x2 = x * x
        with np.errstate(divide="ignore", invalid="ignore"):
            third = np.sin(np.arcsin(np.where(small, 0.5, x)) / 3.0) / np.where(small, 0.5, x) * 3.0
        phi = linear * np.where(small, 1.0 + x2 * (4.0 / 27.0 + x2 * (16.0 / 243.0)), third)
        return phi, (k - 3.0 * c * phi * phi - self.offset) / self.gain

    def stiffness_range(self, tau: Array) -> tuple[Array, Array]:
        t, c = np.abs(tau), np.asarray(self.hardening)
        low = self._stiffness(t, self.offset + self.gain * np.asarray(self.lower))
        with np.errstate(divide="ignore", invalid="ignore"):
            fold = np.where(c > 0.0, 6.0 * c * np.cbrt(t / np.where(c > 0.0, 4.0 * c, 1.0)) ** 2, 0.0)
            reach = np.asarray(self.max_deflection)
            bounded = np.isfinite(reach)
            m = np.where(bounded, reach, 1.0)
            bent = np.where(bounded, t / m + 2.0 * c * m * m, 0.0)
        # beyond the fold the least stiffness is that of the fold, whatever σ
        low = np.where(self.offset + self.gain * np.asarray(self.lower) < 0.5 * fold, fold, low)
        bent = np.where(bounded & (6.0 * c * m * m > bent), fold, bent)
        top = self.offset + self.gain * np.asarray(self.upper)
        return np.maximum(low, bent), np.where(top < 0.5 * fold, 0.0, self._stiffness(t, top))

    def _stiffness(self, t: Array, s: Array) -> Array:
        """k at torque t ≥ 0 and s = k₀ + k₁σ."""
        c = np.asarray(self.hardening)
        with np.errstate(divide="ignore", invalid="ignore"):    # c φ³ + s φ = t: the only real root
            r = np.sqrt(s / (3.0 * c))
            phi = 2.0 * r * np.sinh(np.arcsinh(t / (2.0 * c * r**3)) / 3.0)
        phi = np.where((c > 0.0) & np.isfinite(phi), phi, t / s)
        return s + 3.0 * c * phi * phi


@dataclass(frozen=True, eq=False)
class AntagonisticSpring(VariableSpring):
    """Two tendons with T(x) = 0 for x < 0 (slack). Slack states are accepted, for simulation; `stiffness_range` has
    taut tendons only.
    """

    antagonistic: ClassVar[bool] = True

    @abstractmethod
    def tendon(self, x: Array) -> tuple[Array, Array, Array, Array, Array]:
        """∫T dx, T, T′, T″, T‴ of one tendon, taut."""

    @abstractmethod
    def _taut(self, phi: Array, sigma: Array) -> Partials:
        ...

    def partials(self, phi: Array, sigma: Array) -> Partials:
        P = self._taut(phi, sigma)    # without the cancellation of T(σ+φ) − T(σ−φ)
        slack = np.abs(np.real(phi)) > np.real(sigma)
        if not np.any(slack):
            return P
        (_, f1, p1, q1, r1), (_, f2, p2, q2, r2) = self._each(phi, sigma)
        loose = (f1 - f2, p1 + p2, p1 - p2, q1 - q2, q1 + q2, q1 - q2, r1 + r2, r1 - r2, r1 + r2)
        return Partials(*(np.where(slack, x, y) for x, y in zip(loose, P, strict=True)))

    def _each(self, phi: Array, sigma: Array) -> list[list[Array]]:
        return [[np.where(np.real(x) >= 0.0, part, 0.0) for part in self.tendon(x)] for x in (sigma + phi, sigma - phi)]

    def energy(self, phi: Array, sigma: Array) -> Array:
        first, second = self._each(phi, sigma)
        return first[0] + second[0]

    def reaction(self, phi: Array, sigma: Array) -> Array:
        first, second = self._each(phi, sigma)
        return first[1] + second[1]

    def reaction_slope(self, phi: Array, sigma: Array) -> Array:
        return self.partials(phi, sigma).p


@dataclass(frozen=True, eq=False)
class AntagonisticQuadratic(AntagonisticSpring):
    """Two tendons with `T(x) = c₁ x + c₂ x²` (N m, of the torque that each gives): `τ = 2 (c₁ + 2 c₂ σ) φ`,
    `k = 2 c₁ + 4 c₂ σ`: the stiffness does not depend on the torque. c₁ ≥ 0, c₂ > 0.

        >>> spring = rbd.AntagonisticQuadratic(lower=10.0, upper=200.0, max_deflection=0.5, quadratic=100.0)
        >>> spring.stiffness_range(np.array([0.5]))[1].round(3)
        array([80000.])
    """

    linear: Array | float = 0.0
    quadratic: Array | float = 1.0

    def tendon(self, x: Array) -> tuple[Array, Array, Array, Array, Array]:
        a, b, zero = self.linear, self.quadratic, 0.0 * x
        return (0.5 * a + b / 3.0 * x) * x * x, (a + b * x) * x, a + 2.0 * b * x, 2.0 * b + zero, zero

    def _taut(self, phi: Array, sigma: Array) -> Partials:
        zero = 0.0 * (phi + sigma)
        k = 2.0 * self.linear + 4.0 * self.quadratic * sigma + zero
        slope = 4.0 * self.quadratic + zero
        return Partials(f=k * phi, p=k, s=slope * phi, pp=zero, ps=slope, ss=zero, ppp=zero, pps=zero, pss=zero)

    def invert(self, tau: Array, k: Array) -> tuple[Array, Array]:
        return tau / k, (k - 2.0 * self.linear) / (4.0 * self.quadratic)

    def stiffness_range(self, tau: Array) -> tuple[Array, Array]:
        t, c1, c2 = np.abs(tau), np.asarray(self.linear), np.asarray(self.quadratic)
        k_low, k_high = (2.0 * c1 + 4.0 * c2 * np.asarray(end) for end in (self.lower, self.upper))
        # taut as long as φ = τ/k ≤ σ = (k − 2c₁)/4c₂
        taut = c1 + np.sqrt(c1 * c1 + 4.0 * c2 * t)
        return np.maximum(np.maximum(k_low, taut), t / self.max_deflection), k_high + 0.0 * t


@dataclass(frozen=True, eq=False)
class AntagonisticExponential(AntagonisticSpring):
    """Two tendons with `T(x) = T₀ (exp(a x) − 1)` (N m, of the torque that each gives):
    `τ = 2 T₀ exp(aσ) sinh(aφ)`, `k = 2 T₀ a exp(aσ) cosh(aφ)`. T₀ (N m) and a (1/rad) positive.

        >>> spring = rbd.AntagonisticExponential(lower=10.0, upper=200.0, max_deflection=0.5)
        >>> spring.stiffness_range(np.array([0.5]))[1].round(3)
        array([1.44519475e+87])
    """

    scale: Array | float = 1.0
    rate: Array | float = 1.0

    def tendon(self, x: Array) -> tuple[Array, Array, Array, Array, Array]:
        a = self.rate
        rise, slope = np.expm1(a * x), self.scale * a * np.exp(a * x)
        return self.scale * (rise / a - x), self.scale * rise, slope, a * slope, a * a * slope

    def _taut(self, phi: Array, sigma: Array) -> Partials:
        a = self.rate
        e = 2.0 * self.scale * np.exp(a * sigma)
        sinh, cosh = e * np.sinh(a * phi), e * np.cosh(a * phi)
        return Partials(f=sinh, p=a * cosh, s=a * sinh, pp=a**2 * sinh, ps=a**2 * cosh, ss=a**2 * sinh,
                        ppp=a**3 * cosh, pps=a**3 * sinh, pss=a**3 * cosh)

    def invert(self, tau: Array, k: Array) -> tuple[Array, Array]:
        a = self.rate
        x = a * tau / k
        # cosh(atanh x) = 1/√(1 − x²)
        return np.arctanh(x) / a, np.log(k * np.sqrt((1.0 - x) * (1.0 + x)) / (2.0 * self.scale * a)) / a

    def stiffness_range(self, tau: Array) -> tuple[Array, Array]:
        t, a = np.abs(tau), np.asarray(self.rate)
        k_low, k_high = (a * np.hypot(t, 2.0 * self.scale * np.exp(a * np.asarray(end)))
                         for end in (self.lower, self.upper))
        # taut: φ ≤ σ; equal where τ = T₀ (e^{2aφ} − 1), and there k = a (τ + 2 T₀)
        bent = a * t / np.tanh(a * np.asarray(self.max_deflection))
        return np.maximum(np.maximum(k_low, a * (t + 2.0 * np.asarray(self.scale))), bent), k_high


def check_spring(spring: VariableSpring) -> None:
    """Raise `RbdError` for invalid constants of a single joint's spring."""
    values = {field.name: float(getattr(spring, field.name)) for field in fields(spring)}
    for name, value in values.items():
        if not (np.isfinite(value) or (name == "max_deflection" and value > 0.0)):
            raise RbdError(f"{name} must be finite, got {shown(value)}")
    for name in ("gain", "quadratic", "scale", "rate", "max_deflection"):
        if name in values and not values[name] > 0.0:
            raise RbdError(f"{name} must be positive, got {values[name]:g}")
    for name in ("hardening", "linear"):
        if name in values and values[name] < 0.0:
            raise RbdError(f"{name} must not be negative, got {values[name]:g}")
    if not values["lower"] < values["upper"]:
        raise RbdError(f"range of the stiffness motor: lower {values['lower']:g} is not below upper "
                       f"{values['upper']:g}")
    if spring.antagonistic and values["lower"] < 0.0:
        raise RbdError(f"range of the stiffness motor: lower {values['lower']:g} is negative, and tendons would be "
                       "slack")
    least = float(spring.rest_stiffness(np.asarray(values["lower"])))
    if not least > 0.0:
        raise RbdError(f"stiffness must be positive over the whole range of the stiffness motor, got {least:g} N m/rad "
                       f"at its lower end {values['lower']:g}")
