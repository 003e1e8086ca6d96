"""Both trivialised differentials of exp and log, by name: P eq. 11–15.

A velocity Ẋ at X of SO(3) or SE(3) is mapped to the Lie algebra by left or right translation; for X = exp(ξ(t)) it is

    left:  (X⁻¹Ẋ)^∨ = dexp_left(ξ) ξ̇,  Σ (−ad_ξ)ᵏ/(k + 1)!      in body axes (`se3.dexp`, the *right* Jacobian)
    right: (ẊX⁻¹)^∨ = dexp_right(ξ) ξ̇, Σ (+ad_ξ)ᵏ/(k + 1)!      in world axes (the *left* Jacobian)

for ξ (…, 3) of SO(3) and (…, 6) of SE(3). Left and right: the side on which X⁻¹ is multiplied.
"""
from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

import numpy as np
from numpy.typing import ArrayLike

from ..errors import RbdError
from . import se3, so3
from .se3 import checked_pose
from .so3 import Array, checked, checked_rotation


def group_of(name: str, xi: ArrayLike) -> tuple[ModuleType, Array]:
    """`so3` or `se3` by the size 3 or 6 of the last axis, and ξ as an array; raises `RbdError` for other sizes."""
    try:
        size = np.shape(xi)[-1:]
    except ValueError:
        size = ()
    if size not in ((3,), (6,)):
        raise RbdError(f"{name}: expected shape (…, 3) of SO(3) or (…, 6) of SE(3), got "
                       f"{'no array' if not size else f'(…, {size[0]})'}")
    return (so3 if size == (3,) else se3), checked(name, xi, size)


def dexp_left(xi: ArrayLike) -> Array:
    """(X⁻¹Ẋ)^∨ = dexp_left(ξ) ξ̇ for X = exp(ξ): (…, 3, 3) or (…, 6, 6)."""
    group, xi = group_of("xi", xi)
    return np.asarray(group.dexp(xi))


def dexp_right(xi: ArrayLike) -> Array:
    """(ẊX⁻¹)^∨ = dexp_right(ξ) ξ̇ for X = exp(ξ): (…, 3, 3) or (…, 6, 6); equals dexp_left(−ξ)."""
    group, xi = group_of("xi", xi)
    return np.asarray(group.dexp(-xi))


def dlog_left(xi: ArrayLike) -> Array:
    """ξ̇ = dlog_left(ξ) (X⁻¹Ẋ)^∨ for ξ = log X; raises where |ω| = 2π, 4π, …."""
    group, xi = group_of("xi", xi)
    return np.asarray(group.dexp_inv(xi))


def dlog_right(xi: ArrayLike) -> Array:
    """ξ̇ = dlog_right(ξ) (ẊX⁻¹)^∨ for ξ = log X; raises where |ω| = 2π, 4π, …."""
    group, xi = group_of("xi", xi)
    return np.asarray(group.dexp_inv(-xi))


def left_velocity(X: ArrayLike, Xdot: ArrayLike) -> Array:
    """(X⁻¹Ẋ)^∨ (…, 3) or (…, 6) of Ẋ at a rotation (…, 3, 3) or pose (…, 4, 4): the body twist (K eq. 9, P eq. 13)."""
    return _velocity(X, Xdot, lambda inverse, rate: inverse @ rate)


def right_velocity(X: ArrayLike, Xdot: ArrayLike) -> Array:
    """(ẊX⁻¹)^∨ (…, 3) or (…, 6) of Ẋ at a rotation (…, 3, 3) or pose (…, 4, 4): the spatial twist (P eq. 14)."""
    return _velocity(X, Xdot, lambda inverse, rate: rate @ inverse)


def _velocity(X: ArrayLike, Xdot: ArrayLike, product: Callable[[Array, Array], Array]) -> Array:
    rotation = np.shape(X)[-2:] == (3, 3)
    X = checked_rotation("X", X) if rotation else checked_pose("X", X)
    inverse = np.swapaxes(X, -1, -2) if rotation else se3.inverse(X)
    element = product(inverse, checked("Xdot", Xdot, X.shape[-2:]))
    skew = element[..., :3, :3]
    size = 1.0 + np.abs(element).max(initial=0.0)
    if np.abs(skew + np.swapaxes(skew, -1, -2)).max(initial=0.0) > 1e-6 * size or element[..., 3:, :].any():
        raise RbdError("Xdot: expected a velocity at X, for which X⁻¹Ẋ has a skew upper left block and a zero last row")
    omega = np.stack([skew[..., 2, 1] - skew[..., 1, 2], skew[..., 0, 2] - skew[..., 2, 0],
                      skew[..., 1, 0] - skew[..., 0, 1]], axis=-1) / 2.0
    return omega if rotation else np.concatenate([omega, element[..., :3, 3]], axis=-1)
