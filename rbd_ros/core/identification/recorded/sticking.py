"""Joints that stand: dry friction holds them, and their efforts may be anything between minus and plus it.

A driver's current then tells what the controller happened to wind up, not what the joint carries. So a joint is left
out while it stands, with what the filter smears into its motion; the others count on.
"""
from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .signals import REST, Piece

Array = NDArray[np.float64]
SMEARED = 0.5        # periods of the cutoff frequency: how far the low-pass carries a stop into the motion
STANDING = 0.25      # periods of the cutoff frequency: shorter slow stretches are reversals


def sticking(piece: Piece, cutoff: float, slowest: float, motors: Array) -> NDArray[np.bool_]:
    """Which efforts (N, nv) say nothing, for the joint is slower than `slowest` (rad/s, m/s), or a motor (k, nv: speeds
    per joint speed) that moves it and others stands. Nothing sticks where `slowest` is zero.
    """
    nv = piece.v.shape[1]
    found = np.zeros((len(piece.v), nv), dtype=bool)
    if slowest <= 0.0:
        return found
    width, smear = (round(periods * piece.rate / cutoff) for periods in (STANDING, SMEARED))
    for j in range(nv):
        slow = np.abs(piece.v[:, j]) < slowest
        found[:, j] = slow | _widened(_stretches(np.abs(piece.v[:, j]) < min(slowest, REST), width), smear)
    for row in motors:
        still = _widened(_stretches(np.abs(piece.v @ row) < min(slowest, REST), width), smear)
        found[:, row != 0.0] |= still[:, None]
    return found


def _stretches(where: NDArray[np.bool_], width: int) -> NDArray[np.bool_]:
    """Runs of at least `width` samples; shorter ones are dropped."""
    edges = np.diff(np.concatenate([[False], where, [False]]).astype(np.int8))
    found = np.zeros_like(where)
    for first, last in zip(np.flatnonzero(edges == 1), np.flatnonzero(edges == -1), strict=True):
        if last - first >= max(width, 1):
            found[first:last] = True
    return found


def _widened(where: NDArray[np.bool_], by: int) -> NDArray[np.bool_]:
    """With so many samples before and after."""
    found: NDArray[np.bool_] = np.convolve(where, np.ones(2 * by + 1), "same") > 0.5
    return found if len(where) > 2 * by else np.full_like(where, bool(where.any()))
