"""Poses SE(3) and twists, 6-vectors (angular, linear): exp, log, adjoints, dexp and their derivatives.

T = (R, p), 4 × 4, maps coordinates of the body to those of its parent; V = (ω, v) = (T⁻¹Ṫ)^∨ is the body twist
(K eq. 9, 10). dexp is the *right* Jacobian of exp: T⁻¹dT = (dexp(ξ) dξ)^ for T = exp(ξ).

ad_V is ad of so(3) over the dual numbers ω + εv, ε² = 0. A power series F in ad_V therefore has the blocks

    F(ad_V) = | F(ω̂)         0    |
              | DF(ω̂)[v]   F(ω̂) |

with DF(ω̂)[v] the directional derivative of F on so(3) along v; dexp and its derivatives are computed this way.
"""
from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ..errors import RbdError
from . import so3
from .so3 import Array, checked, checked_rotation


def checked_pose(name: str, value: ArrayLike) -> Array:
    """`value` as poses (…, 4, 4): a rotation matrix to 1e-6 and the last row 0 0 0 1; raises `RbdError` otherwise."""
    T = checked(name, value, (4, 4))
    if (T[..., 3, :] != (0.0, 0.0, 0.0, 1.0)).any():
        raise RbdError(f"{name}: expected a pose with the last row 0 0 0 1")
    checked_rotation(f"{name}, upper left block", T[..., :3, :3])
    return T


def _assemble(R: Array, p: Array) -> Array:
    T = np.zeros((*np.broadcast_shapes(R.shape[:-2], p.shape[:-1]), 4, 4))
    T[..., :3, :3] = R
    T[..., :3, 3] = p
    T[..., 3, 3] = 1.0
    return T


def _blocks(diagonal: Array, lower: Array) -> Array:
    """6 × 6 matrix [[diagonal, 0], [lower, diagonal]]."""
    m = np.zeros((*np.broadcast_shapes(diagonal.shape, lower.shape)[:-2], 6, 6))
    m[..., :3, :3] = m[..., 3:, 3:] = diagonal
    m[..., 3:, :3] = lower
    return m


def _apply(matrix: Array, vector: Array) -> Array:
    return (matrix @ vector[..., None])[..., 0]


def pose(xyz: ArrayLike = (0.0, 0.0, 0.0), rpy: ArrayLike = (0.0, 0.0, 0.0)) -> Array:
    """Pose (…, 4, 4) from a position in m and roll, pitch, yaw in rad, each (…, 3), as the `origin` of URDF."""
    return _assemble(so3.from_rpy(rpy), checked("xyz", xyz, (3,)))


def from_rotation(R: ArrayLike, p: ArrayLike = (0.0, 0.0, 0.0)) -> Array:
    """Pose (…, 4, 4) from a rotation matrix (…, 3, 3) and a position (…, 3) in m."""
    return _assemble(checked_rotation("R", R), checked("p", p, (3,)))


def compose(*poses: ArrayLike) -> Array:
    """Product T_a_b T_b_c … (…, 4, 4), left to right; of none, the identity."""
    T: Array = np.eye(4)
    for index, factor in enumerate(poses):
        T = T @ checked_pose(f"pose {index}", factor)
    return T


def inverse(T: ArrayLike) -> Array:
    """T⁻¹ = (Rᵀ, −Rᵀp) (…, 4, 4)."""
    T = checked_pose("T", T)
    Rt = np.swapaxes(T[..., :3, :3], -1, -2)
    return _assemble(Rt, -_apply(Rt, T[..., :3, 3]))


def hat(V: ArrayLike) -> Array:
    """4 × 4 matrix [[ω̂, v], [0, 0]] (…, 4, 4) of V = (ω, v) (…, 6) (K eq. 9)."""
    V = checked("V", V, (6,))
    m = np.zeros((*V.shape[:-1], 4, 4))
    m[..., :3, :3] = so3.hat(V[..., :3])
    m[..., :3, 3] = V[..., 3:]
    return m


def vee(matrix: ArrayLike) -> Array:
    """Inverse of `hat`: (…, 4, 4) → (…, 6)."""
    m = checked("matrix", matrix, (4, 4))
    if m[..., 3, :].any():
        raise RbdError("matrix: expected an element of se(3), whose last row is zero")
    return np.concatenate([so3.vee(m[..., :3, :3]), m[..., :3, 3]], axis=-1)


def exp(V: ArrayLike) -> Array:
    """Pose (…, 4, 4) of the screw V = (ω, v) (…, 6), rad and m: exp(V̂) = (exp ω̂, J(−ω) v) (M eq. 6)."""
    V = checked("V", V, (6,))
    return _assemble(so3.exp(V[..., :3]), _apply(so3.dexp(-V[..., :3]), V[..., 3:]))


def log(T: ArrayLike) -> Array:
    """Screw (…, 6), |ω| ≤ π, with exp(log(T)) = T: ω = log R, v = J⁻¹(−ω) p."""
    T = checked_pose("T", T)
    rotation = so3.log(T[..., :3, :3])
    return np.concatenate([rotation, _apply(so3.dexp_inv(-rotation), T[..., :3, 3])], axis=-1)


def Ad(T: ArrayLike) -> Array:
    """Ad_T (…, 6, 6) = [[R, 0], [p̂R, R]] (K eq. 7): T exp(V) T⁻¹ = exp(Ad_T V)."""
    T = checked_pose("T", T)
    R = T[..., :3, :3]
    return _blocks(R, so3.hat(T[..., :3, 3]) @ R)


def Ad_inv(T: ArrayLike) -> Array:
    """Ad_{T⁻¹} = (Ad_T)⁻¹ (…, 6, 6) = [[Rᵀ, 0], [−Rᵀp̂, Rᵀ]]."""
    T = checked_pose("T", T)
    Rt = np.swapaxes(T[..., :3, :3], -1, -2)
    return _blocks(Rt, -Rt @ so3.hat(T[..., :3, 3]))


def ad(V: ArrayLike) -> Array:
    """ad_V (…, 6, 6) = [[ω̂, 0], [v̂, ω̂]] (K eq. 27): ad_V W = [V, W], and d/dt Ad_T = Ad_T ad_V."""
    V = checked("V", V, (6,))
    return _blocks(so3.hat(V[..., :3]), so3.hat(V[..., 3:]))


def dexp(V: ArrayLike) -> Array:
    """Right Jacobian (…, 6, 6): (T⁻¹Ṫ)^∨ = dexp(ξ) ξ̇ for T = exp(ξ) = Σ (−ad_ξ)ᵏ/(k + 1)!."""
    V = checked("V", V, (6,))
    return _blocks(so3.dexp(V[..., :3]), so3.dexp_dot(V[..., :3], V[..., 3:]))


def dexp_inv(V: ArrayLike) -> Array:
    """Inverse of dexp (…, 6, 6): ξ̇ = dexp⁻¹(ξ) V; raises where |ω| = 2π, 4π, …."""
    V = checked("V", V, (6,))
    inverse_rotation = so3.dexp_inv(V[..., :3])
    slope = so3.dexp_dot(V[..., :3], V[..., 3:])
    return _blocks(inverse_rotation, -inverse_rotation @ slope @ inverse_rotation)


def dexp_dot(V: ArrayLike, Vdot: ArrayLike) -> Array:
    """d/dt dexp(ξ(t)) (…, 6, 6) for ξ, ξ̇ (…, 6)."""
    V, Vdot = checked("V", V, (6,)), checked("Vdot", Vdot, (6,))
    r, v = V[..., :3], V[..., 3:]
    rdot, vdot = Vdot[..., :3], Vdot[..., 3:]
    return _blocks(so3.dexp_dot(r, rdot), so3.dexp_second(r, rdot, v) + so3.dexp_dot(r, vdot))
