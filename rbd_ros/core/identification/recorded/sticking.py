"""Sticking joints: dry friction holds them, so their efforts are undetermined within ± the friction.

A driver's current then shows the controller's integrator, not the load of the joint. A joint is therefore excluded
while it sticks, including the samples affected by the filter; other joints are still used.
"""
from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .signals import REST, Piece

Array = NDArray[np.float64]
SMEARED = 0.5        # periods of the cutoff frequency: reach of the low-pass from a stop into the motion
STANDING = 0.25      # periods of the cutoff frequency: shorter slow stretches are reversals


def sticking(piece: Piece, cutoff: float, slowest: float, motors: Array) -> NDArray[np.bool_]:
    """Mask of unusable efforts (N, nv): the joint is slower than `slowest` (rad/s, m/s), or one of its shared motors
    (k, nv: speeds per joint speed) is at rest. All False if `slowest` is zero.
    """
    nv = piece.v.shape[1]
    mask = np.zeros((len(piece.v), nv), dtype=bool)
    if slowest <= 0.0:
        return mask
    width, smear = (round(periods * piece.rate / cutoff) for periods in (STANDING, SMEARED))
    for j in range(nv):
        slow = np.abs(piece.v[:, j]) < slowest
        mask[:, j] = slow | _widened(_stretches(np.abs(piece.v[:, j]) < min(slowest, REST), width), smear)
    for row in motors:
        still = _widened(_stretches(np.abs(piece.v @ row) < min(slowest, REST), width), smear)
        mask[:, row != 0.0] |= still[:, None]
    return mask


def _stretches(where: NDArray[np.bool_], width: int) -> NDArray[np.bool_]:
    """Runs of at least `width` samples; shorter ones are dropped."""
    edges = np.diff(np.concatenate([[False], where, [False]]).astype(np.int8))
    runs = np.zeros_like(where)
    for first, last in zip(np.flatnonzero(edges == 1), np.flatnonzero(edges == -1), strict=True):
        if last - first >= max(width, 1):
            runs[first:last] = True
    return runs


def _widened(where: NDArray[np.bool_], by: int) -> NDArray[np.bool_]:
    """The mask widened by `by` samples on both sides."""
    wide: NDArray[np.bool_] = np.convolve(where, np.ones(2 * by + 1), "same") > 0.5
    return wide if len(where) > 2 * by else np.full_like(where, bool(where.any()))
