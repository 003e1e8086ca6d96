"""Mass, centre of mass and rotational inertia of a link, and their physical consistency."""
from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..errors import RbdError, shown

Array = NDArray[np.float64]


def numbers(value: object) -> Array:
    """`value` as float64; TypeError for text, complex numbers, masked entries and failures of `__array__`."""
    parts = value if isinstance(value, list | tuple) else (value,)
    if any(isinstance(part, np.ma.MaskedArray) and np.ma.is_masked(part) for part in parts):
        raise TypeError("an array with masked entries: fill or drop them")
    try:
        array = np.asarray(value)
        if array.dtype.kind not in "biufO" or (array.dtype.kind == "O" and any(
                isinstance(x, str | bytes) for x in array.reshape(-1))):
            raise TypeError("complex numbers" if array.dtype.kind == "c" else f"no numbers ({array.dtype.name})")
        return np.asarray(array, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise
    except Exception as error:    # of a user's class
        raise TypeError(f"{type(error).__name__}: {error}") from None


def read_only(array: object) -> Array:
    """A read-only float64 copy."""
    copy = np.array(numbers(array))
    copy.flags.writeable = False
    return copy


def finite(value: object, shape: tuple[int, ...], what: str) -> Array:
    """A read-only float64 copy; `RbdError`, naming `what`, unless `value` is finite and of shape `shape`."""
    expected = {(): "one finite number", (3,): "three finite numbers"}.get(shape, f"finite numbers of shape {shape}")
    try:
        array = read_only(value)
    except (TypeError, ValueError, OverflowError):
        raise RbdError(f"{what}: expected {expected}, got {shown(value)}") from None
    if array.shape != shape or not np.isfinite(array).all():
        raise RbdError(f"{what}: expected {expected}, got {shown(value)}")
    return array


@dataclass(frozen=True, eq=False)
class Inertia:
    """Inertia of a link: `mass` (kg), `com` (3,) (m, link frame), `matrix` (3, 3) (kg m², about the centre of mass,
    link axes). Its generalized inertia about the link's origin is K eq. 22.

        >>> rod = rbd.Inertia(2.0, np.array([0.0, 0.0, 0.1]), np.diag([0.02, 0.02, 0.01]))
        >>> rod.problems()
        []
    """

    mass: float
    com: Array
    matrix: Array

    def __post_init__(self) -> None:
        object.__setattr__(self, "com", finite(self.com, (3,), "inertia: centre of mass"))
        object.__setattr__(self, "matrix", finite(self.matrix, (3, 3), "inertia: inertia matrix"))
        object.__setattr__(self, "mass", float(finite(self.mass, (), "inertia: mass")))
        if not np.allclose(self.matrix, self.matrix.T, rtol=1e-9, atol=1e-12):
            raise RbdError("inertia: the inertia matrix is not symmetric")

    @classmethod
    def zero(cls) -> Inertia:
        """The massless inertia."""
        return cls(0.0, np.zeros(3), np.zeros((3, 3)))

    @property
    def is_zero(self) -> bool:
        return self.mass == 0.0 and not self.matrix.any()

    @property
    def moment(self) -> Array:
        """First moment of mass `m c` (3,), kg m."""
        return self.mass * self.com

    @property
    def about_origin(self) -> Array:
        """Rotational inertia about the link's origin (3, 3), kg m²."""
        c = self.com
        return self.matrix + self.mass * (c @ c * np.eye(3) - np.outer(c, c))

    def transformed(self, R: Array, p: Array) -> Inertia:
        """The inertia expressed in a frame in which this link's frame has pose `(R, p)`."""
        matrix = R @ self.matrix @ R.T
        return Inertia(self.mass, R @ self.com + p, (matrix + matrix.T) / 2)

    def problems(self) -> list[str]:
        """Violated conditions of physical consistency, in words; empty if there are none."""
        if self.is_zero:
            return []
        problems = []
        if self.mass < 0.0:
            problems.append(f"mass is {self.mass:g} kg, must be positive")
        elif self.mass == 0.0:
            problems.append("mass is 0 but the inertia matrix is not")
        moments = np.linalg.eigvalsh(self.matrix)
        size = max(float(np.abs(moments).max()), 1e-300)
        if size <= 1e-12 * self.mass:
            return [f"a mass of {self.mass:g} kg without rotational inertia"]
        if moments[0] < -1e-9 * size:
            problems.append(f"inertia matrix is not positive definite (principal moments "
                            f"{', '.join(f'{m:.3g}' for m in moments)} kg m²)")
        elif moments[0] <= 1e-9 * size:
            problems.append("inertia matrix is singular (principal moments "
                            f"{', '.join(f'{m:.3g}' for m in moments)} kg m²)")
        if moments[0] + moments[1] < moments[2] * (1 - 1e-6):
            problems.append(f"principal moments violate the triangle inequality ({moments[0]:.3g} + {moments[1]:.3g} < "
                            f"{moments[2]:.3g} kg m²)")
        return problems


def combine(parts: list[Inertia]) -> Inertia:
    """Inertia of the rigid union of bodies, all in the same frame."""
    mass = sum(part.mass for part in parts)
    moment = np.sum([part.moment for part in parts], axis=0) if parts else np.zeros(3)
    about = np.sum([part.about_origin for part in parts], axis=0) if parts else np.zeros((3, 3))
    com = moment / mass if mass else np.zeros(3)
    matrix = about - mass * (com @ com * np.eye(3) - np.outer(com, com))
    return Inertia(mass, com, (matrix + matrix.T) / 2)
