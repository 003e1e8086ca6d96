"""Cayley–Rodrigues parameters (P §2.2): c = u tan(θ/2) (…, 3) of the rotation by θ about the unit vector u.

    R = (1 − ĉ)⁻¹ (1 + ĉ) = 1 + 2 (ĉ + ĉ²)/(1 + |c|²),    |θ| < π

The parameters are rational in R and compose without trigonometry; θ = π is at infinity. Differentials as in
`trivialized`: left in body axes, right in world axes.
"""
from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ..errors import RbdError
from .so3 import Array, checked, hat, to_quaternion

FARTHEST = 1e7    # largest |c|: θ = π − 2e-7


def cayley(c: ArrayLike) -> Array:
    """Rotation matrix (…, 3, 3) of the Cayley–Rodrigues parameters c (…, 3)."""
    c = checked("c", c, (3,))
    q = np.concatenate([c, np.ones((*c.shape[:-1], 1))], axis=-1)
    q = q / np.abs(q).max(axis=-1, keepdims=True)    # |c|² may overflow, the rotation does not
    q = q / np.linalg.norm(q, axis=-1, keepdims=True)
    x = hat(q[..., :3])
    return np.asarray(np.eye(3) + 2.0 * (q[..., 3, None, None] * x + x @ x))


def cayley_inverse(R: ArrayLike) -> Array:
    """Cayley–Rodrigues parameters c (…, 3) of R (…, 3, 3); raises `RbdError` at θ = π, where c is infinite."""
    q = to_quaternion(R)
    if (np.abs(q[..., 3]) * FARTHEST < 1.0).any():
        raise RbdError("R: turns by half a turn, which has no Cayley–Rodrigues parameters; expected less than π")
    return np.asarray(q[..., :3] / q[..., 3:])


def dcayley_left(c: ArrayLike) -> Array:
    """(RᵀṘ)^∨ = dcayley_left(c) ċ (…, 3, 3): 2 (1 − ĉ)/(1 + |c|²)."""
    c = checked("c", c, (3,))
    return np.asarray(2.0 * (np.eye(3) - hat(c)) / (1.0 + (c**2).sum(-1))[..., None, None])


def dcayley_right(c: ArrayLike) -> Array:
    """(ṘRᵀ)^∨ = dcayley_right(c) ċ (…, 3, 3): 2 (1 + ĉ)/(1 + |c|²)."""
    return dcayley_left(-checked("c", c, (3,)))


def dcayley_inverse_left(c: ArrayLike) -> Array:
    """ċ = dcayley_inverse_left(c) ω (…, 3, 3) with ω in body axes: (1 + ĉ + c cᵀ)/2."""
    c = checked("c", c, (3,))
    return np.asarray(0.5 * (np.eye(3) + hat(c) + c[..., :, None] * c[..., None, :]))


def dcayley_inverse_right(c: ArrayLike) -> Array:
    """ċ = dcayley_inverse_right(c) ω (…, 3, 3) with ω in world axes: (1 − ĉ + c cᵀ)/2."""
    return dcayley_inverse_left(-checked("c", c, (3,)))
