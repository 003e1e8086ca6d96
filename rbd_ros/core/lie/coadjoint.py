"""Coadjoint transformations of wrenches and momenta, and time derivatives of Ad and Ad*.

T is the pose of {b} in {a}; twists go by `V_b = Ad_{T⁻¹} V_a` (K eq. 11), wrenches and momenta by the dual map,
`F_b = Ad*_T F_a` (K eq. 13, 24), inertias by `𝓘_b = Ad*_T 𝓘_a Ad_T` (K eq. 21): power and energy are invariant.
ξ is the body twist `T⁻¹ Ṫ` (…, 6); for any scalar p in place of time it is K's ∂h/∂p (eq. 89), and for a joint's
coordinate the column of S (eq. 90).
"""
from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from .se3 import Ad, Ad_inv, ad
from .so3 import Array, checked


def _transposed(matrix: Array) -> Array:
    return np.ascontiguousarray(np.swapaxes(matrix, -1, -2))


def Ad_star(T: ArrayLike) -> Array:
    """Ad*_T = (Ad_T)ᵀ (…, 6, 6) = [[Rᵀ, −Rᵀp̂], [0, Rᵀ]] (K eq. 8): a wrench in {a} seen in {b}."""
    return _transposed(Ad(T))


def Ad_star_inv(T: ArrayLike) -> Array:
    """Ad*_{T⁻¹} (…, 6, 6) = [[R, p̂R], [0, R]]: a wrench in {b} seen in {a}, from a body to its parent."""
    return _transposed(Ad_inv(T))


def ad_star(V: ArrayLike) -> Array:
    """ad*_V = (ad_V)ᵀ (…, 6, 6) (K eq. 29): d/dt of a wrench or momentum Y in axes that move by V is Ẏ − ad*_V Y."""
    return _transposed(ad(V))


def transform_wrench(T: ArrayLike, wrench: ArrayLike) -> Array:
    """`Ad*_T F` (…, 6): a wrench or momentum (moment first) from {a} to {b}."""
    return np.asarray((Ad_star(T) @ checked("wrench", wrench, (6,))[..., None])[..., 0])


def transform_inertia(T: ArrayLike, inertia: ArrayLike) -> Array:
    """`Ad*_T 𝓘 Ad_T` (…, 6, 6): a spatial inertia from {a} to {b} (K eq. 21)."""
    X = Ad(T)
    return np.asarray(_transposed(X) @ checked("inertia", inertia, (6, 6)) @ X)


def Ad_dot(T: ArrayLike, xi: ArrayLike) -> Array:
    """d/dt Ad_T = Ad_T ad_ξ (…, 6, 6), which is K eq. 81: ad of `Ṫ T⁻¹ = Ad_T ξ`, times Ad_T."""
    return np.asarray(Ad(T) @ ad(xi))


def Ad_inv_dot(T: ArrayLike, xi: ArrayLike) -> Array:
    """d/dt Ad_{T⁻¹} = −ad_ξ Ad_{T⁻¹} (…, 6, 6) (K eq. 87)."""
    return np.asarray(-ad(xi) @ Ad_inv(T))


def Ad_star_dot(T: ArrayLike, xi: ArrayLike) -> Array:
    """d/dt Ad*_T = ad*_ξ Ad*_T (…, 6, 6)."""
    return np.asarray(ad_star(xi) @ Ad_star(T))


def Ad_star_inv_dot(T: ArrayLike, xi: ArrayLike) -> Array:
    """d/dt Ad*_{T⁻¹} = −Ad*_{T⁻¹} ad*_ξ (…, 6, 6): K eq. 88 (one scan of the paper prints Ad*_T)."""
    return np.asarray(-Ad_star_inv(T) @ ad_star(xi))
