"""Torques of a motion and their time derivatives by Cauchy's integral: the inverse dynamics at complex times around t,
which needs no derivative of the equations of motion at all.
"""

from math import factorial

import numpy as np
from support.plain import plain

from rbd_ros.core.dynamics import inverse
from rbd_ros.core.model import block

POINTS, RADIUS = 16, 0.02    # of the circle; s


def torques(model, motion, times):
    """τ, τ̇, τ̈ (N, 3, nv) at times (N,) of `motion(t, order)` for complex t."""
    circle = RADIUS * np.exp(2j * np.pi * np.arange(POINTS) / POINTS)
    t = np.add.outer(np.asarray(times), circle).reshape(-1)
    q, v, a = (np.array([motion(x, order) for x in t]).reshape(-1) for order in range(3))
    tau = np.zeros(t.size * model.nv, dtype=complex)
    W = np.zeros(inverse.SIZE * int(model._block[block.NODES]), dtype=complex)
    M, nv, recursion = model._block.astype(complex), model.nv, plain(inverse.inverse_dynamics_recursion)
    for s in range(t.size):
        recursion(M, q, s * nv, v, a, s * nv, W[:0], 0, W, tau)
    tau = tau.reshape(-1, POINTS, model.nv)
    return np.stack([factorial(k) * np.einsum("p,npj->nj", circle**-float(k) / POINTS, tau).real for k in range(3)], 1)


class Wave:
    """M's trajectory for the iiwa, `A cos(w t)`, for real and complex times."""

    def __init__(self, amplitude, frequency):
        self.A, self.w = np.asarray(amplitude), np.asarray(frequency)

    def __call__(self, t, order=0):
        value = [np.cos, lambda x: -np.sin(x), lambda x: -np.cos(x), np.sin][order % 4]
        return self.A * self.w**order * value(self.w * t)
