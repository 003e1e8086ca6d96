"""Time derivatives from Cauchy's integral: plain inverse dynamics at complex instants around t = 0.

Independent of every rule for derivatives: only `inverse_dynamics_recursion` is evaluated, on complex numbers, along a
motion whose rates are polynomials in t. τ(t) is analytic, so the mean of τ(r e^{iφ}) e^{−ikφ} k!/rᵏ over the circle is
its k-th derivative, to rounding.
"""
from math import factorial

import numpy as np

from support.plain import plain

from rbd_ros.core.dynamics import inverse
from rbd_ros.core.model import block, joint_kinds
from rbd_ros.core.model.joints import KINDS
from rbd_ros.core.model.state import node_wrenches

TERMS, POINTS = 60, 64


inverse_dynamics_recursion = plain(inverse.inverse_dynamics_recursion)


def product(p, q):
    """Quaternion product of (x, y, z, w)."""
    return np.concatenate([p[3] * q[:3] + q[3] * p[:3] + np.cross(p[:3], q[:3]), [p[3] * q[3] - p[:3] @ q[:3]]])


TABLE = np.reshape([product(a, b) for a in np.eye(4) for b in np.eye(4)], (16, 4))


def coefficient(p, q):
    """Σ p_j ∘ q_(n−j) of n + 1 coefficients each (n + 1, 4): one of the product of two series."""
    return (p.T @ q[::-1]).reshape(16) @ TABLE


def pure(vectors):
    """Quaternions (…, 4) without a real part."""
    return np.concatenate([vectors, np.zeros((len(vectors), 1))], axis=1)


def turned(quaternions, vectors):
    """Coefficients of `2 (…)`: q ∘ (v, 0) ∘ q* for series of unit quaternions and of vectors."""
    vectors, star = pure(vectors), quaternions * np.array([-1.0, -1.0, -1.0, 1.0])
    first = np.array([coefficient(quaternions[:k + 1], vectors[:k + 1]) for k in range(TERMS)])
    return np.array([coefficient(first[:k + 1], star[:k + 1])[:3] for k in range(TERMS)])


def motion(model, q, rates):
    """Taylor coefficients (TERMS, nq) of the positions and (TERMS, nv) of the velocities v + a t + jerk t²/2 + …."""
    v = np.zeros((TERMS, model.nv))
    for k, row in enumerate(rates):
        v[k] = row / factorial(k)
    positions = np.zeros((TERMS, model.nq))
    positions[0] = q
    for row in model._node_rows:
        if not row[block.OWNER]:
            continue
        at, iv, kind = int(row[block.IQ]), int(row[block.IV]), int(row[block.TYPE])
        if kind not in (joint_kinds.SPHERICAL, joint_kinds.FREE):
            for k in range(1, TERMS):
                size = KINDS[kind].nv
                positions[k, at:at + size] = v[k - 1, iv:iv + size] / k
            continue
        turn = at + 3 if kind == joint_kinds.FREE else at
        quaternions = np.zeros((TERMS, 4))
        quaternions[0] = q[turn:turn + 4]
        spins = pure(v[:, iv:iv + 3])
        for k in range(1, TERMS):    # q̇ = ½ q ∘ ω
            quaternions[k] = coefficient(quaternions[:k], spins[:k]) / (2 * k)
        positions[:, turn:turn + 4] = quaternions
        if kind == joint_kinds.FREE:
            linear = turned(quaternions, v[:, iv + 3:iv + 6])
            positions[1:, at:at + 3] = linear[:-1] / np.arange(1, TERMS)[:, None]
    return positions, v


def effort_derivatives(model, q, rates, order, wrenches=(), radius=0.4):
    """τ and its derivatives to this order (order + 1, nv); wrenches: (nb, 6) each, W, Ẇ, …, components in link axes."""
    positions, v = motion(model, q, rates)
    a = v[1:] * np.arange(1, TERMS)[:, None]
    series = [node_wrenches(model, w, None) / factorial(k) for k, w in enumerate(wrenches)]
    instants = radius * np.exp(2j * np.pi * np.arange(POINTS) / POINTS)
    powers = instants[:, None] ** np.arange(TERMS)
    M = model._block.astype(complex)
    W = np.zeros(inverse.SIZE * int(model._block[block.NODES]), dtype=complex)
    values = np.zeros((POINTS, model.nv), dtype=complex)
    for row, tau in zip(powers, values, strict=True):
        wrench = sum((c * w for c, w in zip(row, series, strict=False)), start=np.zeros(0) if not series else 0.0)
        inverse_dynamics_recursion(M, row @ positions, 0, row @ v, row[:-1] @ a, 0, np.asarray(wrench, dtype=complex),
                                   0, W, tau)
    coefficients = np.fft.fft(values, axis=0).real / POINTS
    return np.array([coefficients[k] * factorial(k) / radius**k for k in range(order + 1)])
