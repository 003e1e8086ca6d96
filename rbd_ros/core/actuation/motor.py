"""The motor of a joint: rotor inertia behind a gear, friction."""
from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from ..errors import RbdError, shown
from ..dynamics.friction import SMOOTHING, STRIBECK_VELOCITY, Friction
from ..model.files.rotors import LARGEST_RATIO
from ..model.files.urdf_parts import LARGEST


@dataclass(frozen=True)
class Motor:
    """rotor_inertia: of the rotor about its own axis, kg m² (or kg); the gear reflects it by `gear_ratio²`.

    Friction is given behind the gear: damping (N m s/rad), coulomb (N m), breakaway (N m, by default `coulomb`)
    with stribeck_velocity (rad/s), smoothing (rad/s); asymmetry (N m), viscous_asymmetry (N m s/rad) and load, the
    share of the torque that the motor passes on, as in `Friction`; m and N for prismatic joints. Raises `RbdError` for
    numbers that are impossible for a motor.

        >>> rbd.Motor(rotor_inertia=1e-4, gear_ratio=100.0).inertia    # behind the gears, kg m²
        1.0
    """

    rotor_inertia: float = 0.0
    gear_ratio: float = 1.0
    damping: float = 0.0
    coulomb: float = 0.0
    breakaway: float | None = None
    stribeck_velocity: float = STRIBECK_VELOCITY
    smoothing: float = SMOOTHING
    asymmetry: float = 0.0
    viscous_asymmetry: float = 0.0
    load: float = 0.0

    def __post_init__(self) -> None:
        if self.breakaway is None:
            object.__setattr__(self, "breakaway", self.coulomb)
        for name in ("rotor_inertia", "damping", "coulomb", "breakaway", "gear_ratio", "stribeck_velocity",
                     "smoothing", "asymmetry", "viscous_asymmetry", "load"):
            value = getattr(self, name)
            bound = LARGEST_RATIO if name == "gear_ratio" else LARGEST
            if not value < np.inf or not value > -np.inf:
                raise RbdError(f"motor: {name} must be finite, got {shown(value)}")
            if value > bound:
                raise RbdError(f"motor: {name} must be at most {bound:g}, got {shown(value)}")
            if name in ("gear_ratio", "stribeck_velocity", "smoothing"):
                if not value > 0.0:
                    raise RbdError(f"motor: {name} must be positive, got {value:g}")
            elif value < 0.0 and "asymmetry" not in name:
                raise RbdError(f"motor: {name} must not be negative, got {value:g}")
        assert self.breakaway is not None
        if self.breakaway < self.coulomb:
            raise RbdError(f"motor: breakaway {self.breakaway:g} is less than coulomb {self.coulomb:g}")
        try:
            _ = friction_of([self]).packed    # raises
        except RbdError as error:
            raise RbdError(f"motor: {error}") from None

    @property
    def inertia(self) -> float:
        """Rotor inertia reflected through the gear, kg m² or kg."""
        return self.rotor_inertia * self.gear_ratio**2


def friction_of(motors: list[Motor]) -> Friction:
    """The friction of several motors as one law, in this order."""
    return Friction(*(np.array([getattr(motor, name) for motor in motors], dtype=float) for name in (
        field.name for field in fields(Friction))))
