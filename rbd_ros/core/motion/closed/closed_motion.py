"""A motion of a closed-loop mechanism: splines of its independent coordinates, the others by loop closure."""
from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...dynamics.constrained.mechanism import Lifted
from ...errors import RbdError, shown
from ..splines import SplineMotion
from ..trajectory import Reference
from .closed_chain import ClosedChain

Array = NDArray[np.float64]
EACH = 20    # stored postures per interval of the spline, as guesses for Newton's method


class ClosedMotion:
    """`motion(t)` has .q (nq,), .v and .a (nv,) of all coordinates, loops closed to 1e-11 at any t; at rest outside."""

    def __init__(self, spline: SplineMotion, chain: ClosedChain) -> None:
        self.spline, self.chain = spline, chain

    @cached_property
    def _kept(self) -> tuple[Array, Array]:
        """Times, and stored postures at these."""
        t = np.linspace(0.0, self.spline.duration, EACH * self.spline.basis.intervals + 1)
        return t, self.chain.along(self.spline.derivatives(t, 0)[0], self.chain.start)

    def lifted(self, t: Array) -> Lifted:
        """All coordinates at times (N,) within the motion."""
        times, postures = self._kept
        u, rates, accelerations = self.spline.derivatives(t, 2)
        before = postures[np.clip(np.searchsorted(times, t, side="right") - 1, 0, len(times) - 1)]
        near = before[:, self.chain.own]
        q = np.full_like(before, np.nan)
        stored = np.isfinite(before).all(axis=1)
        if stored.any():
            q[stored] = self.chain.closed(u[stored], self.chain.moved(before[stored], (u - near)[stored]))
        if not np.isfinite(q).all():
            time = float(t[int(np.argmin(np.isfinite(q).all(axis=1)))])
            raise RbdError(f"motion: the loops of '{self.chain.model.name}' cannot be closed at {time:.4g} s")
        return self.chain.lifted(q, rates, accelerations)

    def _within(self, t: ArrayLike) -> tuple[Array, Lifted]:
        """The times, and all coordinates at these, at rest before and after the motion."""
        times = np.asarray(t, dtype=np.float64)
        if times.ndim > 1 or not np.isfinite(times).all():
            raise RbdError(f"t must be a finite time or (N,) of them, got {shown(t)}")
        flat = np.atleast_1d(times)
        states = self.lifted(np.clip(flat, 0.0, self.spline.duration))
        outside = (flat < 0.0) | (flat > self.spline.duration)
        if outside.any():
            zeros = np.zeros((int(outside.sum()), self.chain.size))
            resting = self.chain.lifted(states.q[outside], zeros, zeros)
            states.v[outside], states.a[outside] = resting.v, resting.a
        return times, states

    def __call__(self, t: ArrayLike) -> Reference:
        times, states = self._within(t)
        parts = (states.q, states.v, states.a)
        return Reference(*parts) if times.ndim else Reference(*(part[0] for part in parts))

    def effort(self, t: ArrayLike) -> Array:
        """Efforts (nv,) or (N, nv) of the actuated coordinates (at rest outside the motion), 0 of the others, N m or N.
        """
        times, states = self._within(t)
        tau = np.zeros_like(states.v)
        tau[:, self.chain.actuated] = self.chain.efforts(states).effort
        return tau if times.ndim else tau[0]
