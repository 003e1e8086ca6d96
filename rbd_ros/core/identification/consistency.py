"""Physical consistency of bodies: pseudo-inertias, and the divergence between two of them.

A body has a density ρ ≥ 0 only if its pseudo-inertia `P = ∫ ρ [x; 1] [x; 1]ᵀ = [[Σ, m c], [(m c)ᵀ, m]]` is positive
definite, with `Σ = ½ tr(I) 1 − I` (Wensing, Kim, Slotine 2018). The divergence `tr(P P₀⁻¹) − log det(P P₀⁻¹) − 4`
from a prior P₀ (Lee, Wensing, Park 2020) is convex in P, depends neither on frames nor on units, and grows without
bound at the boundary of definiteness: minimisers of its sum with any convex function are physically consistent.
"""
from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..errors import RbdError

Array = NDArray[np.float64]
SIZE = 10
LEAST = 0.02     # smallest second moment of a prior, as a share of the largest
ROUNDING = 1e-9  # relative second moment that counts as zero
REACH = 0.1      # m: assumed size of a point mass
_ROWS, _COLUMNS = np.tril_indices(4)
BASIS = np.zeros((SIZE, 4, 4))    # of symmetric matrices
BASIS[np.arange(SIZE), _ROWS, _COLUMNS] = BASIS[np.arange(SIZE), _COLUMNS, _ROWS] = 1.0
IDENTITY = (_ROWS == _COLUMNS).astype(np.float64)    # coordinates of 1


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
    """Whether a body of non-negative density can have these ten parameters."""
    P = pseudo_inertia(np.asarray(parameters, dtype=np.float64))
    return bool(P[3, 3] > 0.0 and np.linalg.eigvalsh(P / np.outer(_scale(P), _scale(P)))[0] >= 0.0)


def _scale(P: Array) -> Array:
    """Scales of length and mass that normalise P for its eigenvalues."""
    length = np.sqrt(max(float(np.trace(P[:3, :3])) / P[3, 3], 1e-12)) if P[3, 3] > 0.0 else 1.0
    return np.array([length, length, length, 1.0]) * np.sqrt(max(float(P[3, 3]), 1e-12))


def prior_factor(parameters: Array) -> tuple[Array, bool]:
    """L₀ (4, 4) of a description's body, and whether it was corrected because the described one is inconsistent.

    Second moments about the centre of mass are raised to at least `LEAST` of the largest: tiny ones, as of a plate, are
    too narrow a prior, and non-positive ones carry no information.
    """
    m = float(parameters[0])
    if not m > 0.0:
        raise RbdError(f"prior: a mass of {m:g} kg, expected a positive number")
    P = pseudo_inertia(parameters)
    c = P[:3, 3] / m
    spread = P[:3, :3] - m * np.outer(c, c)
    sizes, axes = np.linalg.eigh((spread + spread.T) / 2)
    original = sizes
    mended = bool(not sizes[-1] > ROUNDING * m or sizes[0] < ROUNDING * sizes[-1])
    if not sizes[-1] > ROUNDING * m:
        sizes = np.full(3, m * REACH**2 / 5.0)
    if sizes[0] < LEAST * sizes[-1]:
        sizes = np.maximum(sizes, LEAST * sizes[-1])
    if mended or not np.array_equal(sizes, original):
        P = P.copy()
        P[:3, :3] = axes @ np.diag(sizes) @ axes.T + m * np.outer(c, c)
    factor = np.zeros((4, 4))
    factor[3, 3] = np.sqrt(m)
    factor[:3, 3] = P[:3, 3] / factor[3, 3]
    factor[:3, :3] = np.linalg.cholesky(P[:3, :3] - np.outer(factor[:3, 3], factor[:3, 3]))
    return factor, mended


def body_map(factor: Array) -> Array:
    """Matrix (10, 10) from the coordinates of S in `BASIS` to the ten parameters of `L₀ S L₀ᵀ`; S = 1 is the prior."""
    matrix: Array = parameters_of_pseudo_inertia(factor @ BASIS @ factor.T).T
    return matrix


def divergence(y: Array) -> tuple[float, Array, Array]:
    """`tr S − log det S − 4` of S with these coordinates (10,), its gradient and Hessian; infinite unless S ≻ 0."""
    S = np.tensordot(y, BASIS, 1)
    try:
        L = np.linalg.cholesky(S)
        half = np.linalg.inv(L)
    except np.linalg.LinAlgError:
        return float("inf"), np.zeros(SIZE), np.eye(SIZE)
    inverse = half.T @ half
    turned = inverse @ BASIS
    value = float(np.trace(S) - 2.0 * np.sum(np.log(np.diag(L))) - 4.0)
    gradient = np.trace(BASIS, axis1=1, axis2=2) - np.trace(turned, axis1=1, axis2=2)
    return value, gradient, np.einsum("kij,lji->kl", turned, turned)
