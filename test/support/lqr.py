"""The gain of law `lqr` once more: derivatives of forward dynamics, the exponential, and SciPy's Riccati equation."""
from __future__ import annotations

import numpy as np
from scipy.linalg import expm, solve_discrete_are

import rbd_ros as rbd


def gain(model, q, v, a, position=1e4, velocity=10.0, effort=0.01, period=0.001):
    """K (nv, 2 nv) of joints whose coordinates add up, with viscous friction of the model."""
    n = model.nv
    by = rbd.forward_dynamics_derivatives(model, q, v, rbd.inverse_dynamics(model, q, v, a))
    generator = np.zeros((3 * n, 3 * n))
    generator[:n, n:2 * n] = np.eye(n)
    generator[n:2 * n] = np.hstack([by.q, by.v - by.tau @ np.diag(model.damping), by.tau])
    step = expm(period * generator)
    A, B = step[:2 * n, :2 * n], step[:2 * n, 2 * n:]
    Q = np.diag(np.concatenate([np.broadcast_to(x, n) for x in (position, velocity)]))
    R = np.diag(np.broadcast_to(effort, n))
    P = solve_discrete_are(A, B, Q, R)
    return -np.linalg.solve(R + B.T @ P @ B, B.T @ P @ A)
