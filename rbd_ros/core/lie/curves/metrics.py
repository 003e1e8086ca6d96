"""Left- and right-invariant metrics on SE(3): P eq. 16–18."""
from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ...errors import RbdError, unknown_name
from .motion import single
from ..so3 import Array, checked
from ..trivialized import left_velocity, right_velocity

SIDES = ("left", "right")


@dataclass(frozen=True, eq=False)
class Metric:
    """⟨Ṫ₁, Ṫ₂⟩_T = V₁ᵀ Q V₂ with Q (6, 6) symmetric positive definite, angular part first.

    side "left": V = (T⁻¹Ṫ)^∨, the same at G T for any constant pose G (of the world). "right": V = (ṪT⁻¹)^∨, the same
    at T G (of the body's frame). A left-invariant metric with Q a generalized inertia is twice the kinetic energy.
    """

    Q: Array
    side: str = "left"

    def __post_init__(self) -> None:
        Q = single("Q", self.Q, (6, 6)).copy()
        values = np.linalg.eigvalsh(0.5 * (Q + Q.T))
        if np.abs(Q - Q.T).max() > 1e-9 * np.abs(Q).max() or not values[0] > 1e-12 * values[-1]:
            raise RbdError("Q: expected a symmetric positive definite matrix (6, 6), smallest eigenvalue "
                           f"{values[0]:.3g}, largest {values[-1]:.3g}")
        if self.side not in SIDES:
            raise unknown_name("side", self.side, SIDES)
        Q = 0.5 * (Q + Q.T)
        Q.setflags(write=False)
        object.__setattr__(self, "Q", Q)

    def velocity(self, T: ArrayLike, Tdot: ArrayLike) -> Array:
        """The V (…, 6) that this metric measures, of Ṫ (…, 4, 4) at the pose T (…, 4, 4)."""
        return left_velocity(T, Tdot) if self.side == "left" else right_velocity(T, Tdot)

    def inner(self, T: ArrayLike, Tdot1: ArrayLike, Tdot2: ArrayLike) -> Array:
        """⟨Ṫ₁, Ṫ₂⟩ (…) at the pose T (…, 4, 4)."""
        return np.asarray(((self.velocity(T, Tdot1) @ self.Q) * self.velocity(T, Tdot2)).sum(-1))

    def square(self, V: ArrayLike) -> Array:
        """Vᵀ Q V (…) of velocities V (…, 6) on this metric's side."""
        V = checked("V", V, (6,))
        return np.asarray(((V @ self.Q) * V).sum(-1))
