"""Physically consistent bodies: pseudo-inertias, log-Cholesky coordinates about a prior, and their Jacobian.

A body has a density ρ ≥ 0 only if its pseudo-inertia `P = ∫ ρ [x; 1] [x; 1]ᵀ = [[Σ, m c], [(m c)ᵀ, m]]` is positive
definite, with `Σ = ½ tr(I) 1 − I` (Wensing, Kim, Slotine 2018). With `P = (L₀ T)(L₀ T)ᵀ`, T lower triangular with
exponentials on its diagonal, every ξ (10,) is a possible body and every possible body has one ξ (Rucker, Wensing 2022);
ξ = 0 is the prior `P₀ = L₀ L₀ᵀ`, and |ξ| does not depend on units or frames.
"""
from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..errors import RbdError

Array = NDArray[np.float64]
SIZE = 10
LEAST = 1e-6     # smallest principal second moment of a prior, as a share of the largest
REACH = 0.1      # m: size of a body that has a mass and no extent
_ROWS, _COLUMNS = np.tril_indices(4)
_DIAGONAL = _ROWS == _COLUMNS


def pseudo_inertia(parameters: Array) -> Array:
    """P (4, 4) of ten parameters m, m c, I about the link's origin (xx, xy, yy, xz, yz, zz)."""
    xx, xy, yy, xz, yz, zz = parameters[4:10]
    inertia = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    P = np.empty((4, 4))
    P[:3, :3] = 0.5 * np.trace(inertia) * np.eye(3) - inertia
    P[:3, 3] = P[3, :3] = parameters[1:4]
    P[3, 3] = parameters[0]
    return P


def parameters_of_pseudo_inertia(P: Array) -> Array:
    """The ten parameters of P (…, 4, 4): (…, 10), linear in it."""
    trace = P[..., 0, 0] + P[..., 1, 1] + P[..., 2, 2]
    return np.stack([P[..., 3, 3], P[..., 0, 3], P[..., 1, 3], P[..., 2, 3], trace - P[..., 0, 0], -P[..., 0, 1],
                     trace - P[..., 1, 1], -P[..., 0, 2], -P[..., 1, 2], trace - P[..., 2, 2]], axis=-1)


def is_consistent(parameters: Array) -> bool:
    """Whether a body with a density that is nowhere negative can have these ten parameters."""
    P = pseudo_inertia(np.asarray(parameters, dtype=np.float64))
    return bool(P[3, 3] > 0.0 and np.linalg.eigvalsh(P / np.outer(_scale(P), _scale(P)))[0] >= 0.0)


def _scale(P: Array) -> Array:
    """Lengths and masses by which P is divided before its eigenvalues mean anything."""
    length = np.sqrt(max(float(np.trace(P[:3, :3])) / P[3, 3], 1e-12)) if P[3, 3] > 0.0 else 1.0
    return np.array([length, length, length, 1.0]) * np.sqrt(max(float(P[3, 3]), 1e-12))


def prior_factor(parameters: Array) -> tuple[Array, bool]:
    """L₀ (4, 4) of a description's body, and whether that had to be mended: no body can have what it says.

    Where the second moments about the centre of mass are too small or negative they become `LEAST` of the largest.
    """
    m = float(parameters[0])
    if not m > 0.0:
        raise RbdError(f"prior: a mass of {m:g} kg, expected a positive number")
    P = pseudo_inertia(parameters)
    c = P[:3, 3] / m
    spread = P[:3, :3] - m * np.outer(c, c)
    sizes, axes = np.linalg.eigh((spread + spread.T) / 2)
    largest = float(sizes[-1])
    if not largest > 1e-9 * m:
        sizes, largest = np.full(3, m * REACH**2 / 5.0), 0.0
    mended = bool(sizes[0] < LEAST * sizes[-1]) or largest == 0.0
    sizes = np.maximum(sizes, LEAST * sizes[-1]) if largest else sizes
    if mended or largest == 0.0:
        P = P.copy()
        P[:3, :3] = axes @ np.diag(sizes) @ axes.T + m * np.outer(c, c)
    factor = np.zeros((4, 4))
    factor[3, 3] = np.sqrt(m)
    factor[:3, 3] = P[:3, 3] / factor[3, 3]
    factor[:3, :3] = np.linalg.cholesky(P[:3, :3] - np.outer(factor[:3, 3], factor[:3, 3]))
    return factor, mended


def body_parameters(factor: Array, xi: Array) -> tuple[Array, Array]:
    """The ten parameters (10,) at the coordinates ξ (10,) about the prior L₀, and their Jacobian by ξ (10, 10)."""
    T = np.zeros((4, 4))
    T[_ROWS, _COLUMNS] = np.where(_DIAGONAL, np.exp(xi), xi)
    L = factor @ T
    dL = np.zeros((SIZE, 4, 4))    # ∂L/∂ξ_k = L₀ ∂T/∂ξ_k: one column of L₀, in one column
    dL[np.arange(SIZE), :, _COLUMNS] = (factor[:, _ROWS] * np.where(_DIAGONAL, np.exp(xi), 1.0)).T
    half = dL @ L.T
    return parameters_of_pseudo_inertia(L @ L.T), parameters_of_pseudo_inertia(half + half.transpose(0, 2, 1)).T
