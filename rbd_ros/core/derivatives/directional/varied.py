"""Inverse dynamics and its time derivatives of a model that is varied along a `Tangent`, on complex numbers.

An imaginary step of 1e-30 through the Taylor recursion, exact to rounding: what elastic joints differentiate.
"""
from __future__ import annotations

from math import factorial

import numpy as np
from numpy.typing import NDArray

from ...compiled.entry import entry
from ...imaginary_step import STEP
from ...model.inertia import Array
from ...model.robot_model import RobotModel
from ..taylor import taylor_order, taylor_start, workspace_size
from .packed import packed_change
from .tangent import Tangent, Tangents

Complex = NDArray[np.complex128]


@entry("void(complex128[::1], complex128[::1], complex128[::1], complex128[::1], int64, int64, complex128[::1])",
       nogil=True)
def varied_efforts_entry(B, q, x, wrench, orders, top, out):
    """Taylor coefficients of the efforts of one state to order `top`; x: those of v, a, … (top + 2 rows); wrench: as
    of `inverse_time_derivatives_batch`, `orders` of them.
    """
    nv = out.shape[0] // (top + 1)
    W = np.empty(workspace_size(B, top), dtype=np.complex128)
    tau = np.empty(nv, dtype=np.complex128)
    taylor_start(B, q, 0, x, top, W)
    for m in range(top + 1):
        taylor_order(B, q, 0, x, wrench, 0, orders, m, top, W, tau)
        for i in range(nv):
            out[m * nv + i] = tau[i]


class VariedModel:
    """`model` with everything that the tangent names moved by an imaginary step; not for a moving root."""

    def __init__(self, model: RobotModel, tangent: Tangent) -> None:
        self.model = model
        found = Tangents(model, [tangent])
        start, change = np.array(model._block), np.zeros(len(model._block))
        if len(found.records):
            packed_change(model, found.records, found.shifts[0], start, change)
        self.block: Complex = start + 1j * STEP * change

    def efforts(self, q: Complex, *rates: Complex | Array) -> Complex:
        """τ, τ̇, … (len(rates) − 1, nv) of one state; rates: v, a, jerk, …"""
        top, nv = len(rates) - 2, self.model.nv
        x = np.concatenate([np.asarray(rate, dtype=np.complex128) / factorial(i) for i, rate in enumerate(rates)])
        out = np.empty((top + 1) * nv, dtype=np.complex128)
        none = np.empty(0, dtype=np.complex128)
        varied_efforts_entry.call(self.block, np.asarray(q, dtype=np.complex128), x, none, 0, top, out)
        scale = np.array([factorial(m) for m in range(top + 1)], dtype=float)
        return np.asarray(out.reshape(top + 1, nv) * scale[:, None])

    def mass_matrix(self, q: Complex) -> Complex:
        """M (nv, nv)."""
        still = np.zeros(self.model.nv, dtype=np.complex128)
        weight = self.efforts(q, still, still)[0]
        return np.transpose([self.efforts(q, still, unit)[0] - weight for unit in np.eye(self.model.nv)])
