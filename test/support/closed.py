"""Robots with closed loops and contacts, states of theirs that satisfy the constraints, and the dense solution."""

from functools import cache

import numpy as np

import rbd_ros as rbd
from support.robots import load

# how far from the nominal posture random states are taken before they are projected (rad, m)
SPREAD = {"five_bar": 0.25, "four_bar": 0.7, "gripper": 0.5, "stewart": 0.1, "delta": 0.15, "biped": 0.3, "talos": 0.3}
NAMES = tuple(SPREAD)


@cache
def closed(name):
    """Model, constraints and a posture that nearly satisfies them."""
    if name == "talos":
        model = load("talos_data/talos_reduced", root="floating", mimic="independent")
        q = model.neutral()
        for side in ("left", "right"):
            for joint, angle in (("3", -0.4), ("4", 0.8), ("5", -0.4)):
                q[model.joint(f"leg_{side}_{joint}_joint").idx_q] = angle
        feet = [rbd.FixedContact(f"leg_{side}_6_link", [0.0, 0.0, -0.1], name=side) for side in ("left", "right")]
        return model, rbd.anchored(model, rbd.ConstraintSet(feet), q), q
    model = rbd.sample(name, root="floating" if name == "biped" else "fixed")
    return model, rbd.sample_constraints(name, model), model.neutral()


@cache
def consistent_states(name, count=200):
    """q, v (N, ·) on the manifold; a (N, nv) with A a + Ȧq̇ = 0; tau (N, nv), those of other accelerations."""
    model, constraints, nominal = closed(name)
    rng = np.random.default_rng(len(name))
    q = np.array([model.integrate(nominal, rng.uniform(-1.0, 1.0, model.nv) * SPREAD[name]) for _ in range(count)])
    q, v = rbd.project(model, constraints, q, rng.normal(size=(count, model.nv)))
    a = rng.normal(size=(count, model.nv))
    A = rbd.constraint_jacobian(model, constraints, q)
    rest = (A @ a[..., None])[..., 0] + rbd.constraint_bias(model, constraints, q, v)
    a -= (np.linalg.pinv(A, rcond=1e-8) @ rest[..., None])[..., 0]
    return q, v, a, rbd.inverse_dynamics(model, q, v, rng.normal(size=(count, model.nv)))


def terms(model, constraints, q, v, wrenches=None):
    """M, b, A, Ȧq̇."""
    return (rbd.mass_matrix(model, q), rbd.bias_effort(model, q, v, wrenches),
            rbd.constraint_jacobian(model, constraints, q), rbd.constraint_bias(model, constraints, q, v))


def times(matrix, vector):
    return (matrix @ vector[..., None])[..., 0]


def check_equations(model, constraints, q, v, a, tau, lam, bound=1e-9, wrenches=None, accelerations=True):
    """`M a + b = τ + Aᵀλ` and `A a + Ȧq̇ = 0`, each relative to its largest term, per state."""
    M, b, A, gamma = terms(model, constraints, q, v, wrenches)
    parts = [times(M, a), b, -tau, -times(np.swapaxes(A, -1, -2), lam)]
    scale = np.abs(parts).max(axis=(0, -1))
    error = np.abs(sum(parts)).max(axis=-1) / scale
    assert (error <= bound).all(), f"equation of motion off by {error.max():.3g}"
    if accelerations:
        scale = np.maximum((np.abs(A) @ np.abs(a)[..., None])[..., 0].max(axis=-1), np.abs(gamma).max(axis=-1))
        error = np.abs(times(A, a) + gamma).max(axis=-1) / scale
        assert (error <= bound).all(), f"constraints off by {error.max():.3g}"


def dense_solution(M, b, A, gamma, tau, tolerance=1e-8):
    """Accelerations and multipliers of least norm from the KKT system of one state, by its range space."""
    L = np.linalg.cholesky(M)
    Z = np.linalg.solve(L, A.T)
    free = np.linalg.solve(M, tau - b)
    lam = -np.linalg.pinv(Z, rcond=tolerance) @ np.linalg.pinv(Z.T, rcond=tolerance) @ (A @ free + gamma)
    return free + np.linalg.solve(M, A.T @ lam), lam
