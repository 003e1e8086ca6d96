"""A motion of a mechanism with loops: splines of its independent coordinates, all others by closing the loops."""
from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...errors import RbdError, shown
from ..splines import SplineMotion
from ..trajectory import Reference
from .closed_chain import ClosedChain, Lifted

Array = NDArray[np.float64]
EACH = 20    # postures per interval of the spline that are kept, to begin Newton's method from


class ClosedMotion:
    """`motion(t)` has .q (nq,), .v and .a (nv,) of all coordinates, loops closed to 1e-11 at any t; at rest outside."""

    def __init__(self, spline: SplineMotion, chain: ClosedChain) -> None:
        self.spline, self.chain = spline, chain

    @cached_property
    def _kept(self) -> tuple[Array, Array]:
        """Times, and postures there."""
        t = np.linspace(0.0, self.spline.duration, EACH * self.spline.basis.intervals + 1)
        return t, self.chain.along(self.spline.derivatives(t, 0)[0], self.chain.start)

    def lifted(self, t: Array) -> Lifted:
        """All coordinates at times (N,) within the motion."""
        times, postures = self._kept
        u, rates, accelerations = self.spline.derivatives(t, 2)
        before = postures[np.clip(np.searchsorted(times, t, side="right") - 1, 0, len(times) - 1)]
        near = before[:, self.chain.places[self.chain.independent]]
        q = np.full_like(before, np.nan)
        known = np.isfinite(before).all(axis=1)
        if known.any():
            q[known] = self.chain.closed(u[known], self.chain.moved(before[known], (u - near)[known]))
        if not np.isfinite(q).all():
            at = float(t[int(np.argmin(np.isfinite(q).all(axis=1)))])
            raise RbdError(f"motion: the loops of '{self.chain.model.name}' cannot be closed at {at:.4g} s")
        return self.chain.lifted(q, rates, accelerations)

    def _within(self, t: ArrayLike) -> tuple[Array, Lifted]:
        """The times, and all coordinates there, at rest before and after the motion."""
        times = np.asarray(t, dtype=np.float64)
        if times.ndim > 1 or not np.isfinite(times).all():
            raise RbdError(f"t must be a finite time or (N,) of them, got {shown(t)}")
        given = np.atleast_1d(times)
        at = self.lifted(np.clip(given, 0.0, self.spline.duration))
        outside = (given < 0.0) | (given > self.spline.duration)
        if outside.any():
            rest = np.zeros((int(outside.sum()), self.chain.size))
            still = self.chain.lifted(at.q[outside], rest, rest)
            at.v[outside], at.a[outside] = still.v, still.a
        return times, at

    def __call__(self, t: ArrayLike) -> Reference:
        times, at = self._within(t)
        return Reference(at.q, at.v, at.a) if times.ndim else Reference(at.q[0], at.v[0], at.a[0])

    def effort(self, t: ArrayLike) -> Array:
        """Efforts (nv,) or (N, nv) of the actuated coordinates, those of rest outside; 0 of the others, N m or N."""
        times, at = self._within(t)
        tau = np.zeros_like(at.v)
        tau[:, self.chain.actuated] = self.chain.efforts(at).effort
        return tau if times.ndim else tau[0]
