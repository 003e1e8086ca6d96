"""Derivatives of constrained dynamics against a complex step through the dense system, on loops with redundant rows."""

import numpy as np
import pytest
from support import complex_step as cs
from support.closed import NAMES, closed, consistent_states
from support.robots import assert_close

import rbd_ros as rbd

each_robot = pytest.mark.parametrize("name", NAMES)
CLOSE = 1e-10


def independent(A):
    """As many rows as A has rank, one after another."""
    rows = []
    for i in range(len(A)):
        if np.linalg.matrix_rank(A[[*rows, i]], tol=1e-8) > len(rows):
            rows.append(i)
    return rows


def equations(model, constraints, q, v):
    """Complex mass matrix, bias, A and Ȧq̇."""
    zero = np.zeros(model.nv)
    bias = cs.inverse_dynamics(model, q, v, zero)
    weight = cs.inverse_dynamics(model, q, zero, zero)
    mass = np.transpose([cs.inverse_dynamics(model, q, zero, e) - weight for e in np.eye(model.nv)])
    return mass, bias, *cs.constraint_rows(model, constraints, q, v)


def forward(model, constraints, rows, q, v, tau):
    """Accelerations and the multipliers of least norm, by the KKT system of independent rows; holomorphic."""
    mass, bias, A, gamma = equations(model, constraints, q, v)
    S = A[rows]
    zero = np.zeros((len(rows), len(rows)))
    x = np.linalg.solve(np.block([[mass, -S.T], [S, zero]]), np.concatenate([tau - bias, -gamma[rows]]))
    spread = np.linalg.solve(S @ S.T, S @ A.T).T    # A = spread S
    return np.concatenate([x[:model.nv], spread @ np.linalg.solve(spread.T @ spread, x[model.nv:])])


def manifold(model, constraints, rows, q, v):
    """Directions (δq, δv) that keep the state on the manifold: along the motions at hand, and rates alone."""
    Q = cs.tangents(model, q)
    A = cs.constraint_jacobian(model, constraints, q)[rows].real
    free = np.linalg.svd(A)[2][len(rows):]
    for d in free:
        slope = cs.constraint_jacobian(model, constraints, q + 1j * cs.STEP * Q @ d)[rows].imag / cs.STEP
        yield d, -np.linalg.pinv(A) @ (slope @ v)
        yield np.zeros(model.nv), d


@each_robot
def test_forward(name):
    """By tau anywhere; by q and v anywhere for independent rows, else along the manifold, where their number stays."""
    model, constraints, _ = closed(name)
    for q, v, _, tau in zip(*(x[3:6] for x in consistent_states(name)), strict=True):
        found = rbd.constrained_forward_dynamics_derivatives(model, constraints, q, v, tau)
        by = [np.vstack(parts) for parts in zip(found[:3], found[3:], strict=True)]
        A = rbd.constraint_jacobian(model, constraints, q)
        rows = independent(A)
        Q, eye, zero = cs.tangents(model, q), np.eye(model.nv), np.zeros(model.nv)
        moves = [(zero, zero, e) for e in eye]
        if len(rows) == len(A):
            moves += [(e, zero, zero) for e in eye] + [(zero, e, zero) for e in eye]
        moves += [(d, rate, zero) for d, rate in manifold(model, constraints, rows, q, v)]
        expected = [forward(model, constraints, rows, q + 1j * cs.STEP * Q @ x, v + 1j * cs.STEP * y,
                            tau + 1j * cs.STEP * z).imag / cs.STEP for x, y, z in moves]
        got = [by[0] @ x + by[1] @ y + by[2] @ z for x, y, z in moves]
        for part in (slice(None, model.nv), slice(model.nv, None)):
            assert_close(np.array(got)[:, part], np.array(expected)[:, part], CLOSE)


@pytest.mark.parametrize("name", ["five_bar", "four_bar", "delta"])
def test_inverse(name):
    """With as many actuators as the mechanism needs, where the constraints do not depend on each other."""
    model, constraints, _ = closed(name)
    q, v, a, _ = (x[5] for x in consistent_states(name))
    A = rbd.constraint_jacobian(model, constraints, q)
    if np.linalg.matrix_rank(A, tol=1e-8) < constraints.size:
        with pytest.raises(rbd.RbdError, match="not unique"):
            rbd.constrained_inverse_dynamics_derivatives(model, constraints, q, v, a,
                                                         np.ones(model.nv, dtype=bool))
        return
    order = np.argsort([np.linalg.cond(np.delete(A, i, axis=1)) for i in range(model.nv)])
    actuated = np.zeros(model.nv, dtype=bool)
    for i in order:    # actuate one after another as long as the rest keeps its rank
        actuated[i] = True
        if np.linalg.matrix_rank(A[:, ~actuated], tol=1e-6) < constraints.size:
            actuated[i] = False

    def inverse(q, v, a):
        effort = cs.inverse_dynamics(model, q, v, a)
        A = cs.constraint_jacobian(model, constraints, q)
        lam = np.linalg.solve(A[:, ~actuated].T, effort[~actuated])
        return np.concatenate([np.where(actuated, effort - A.T @ lam, 0.0), lam])

    found = rbd.constrained_inverse_dynamics_derivatives(model, constraints, q, v, a, actuated)
    eye = np.eye(model.nv)
    expected = cs.columns(inverse, (q, cs.tangents(model, q)), (v, eye), (a, eye))
    for which, want in zip("qva", expected, strict=True):
        assert_close(getattr(found, f"effort_{which}"), want[:model.nv], CLOSE, f"τ by {which}")
        assert_close(getattr(found, f"multipliers_{which}"), want[model.nv:], CLOSE, f"λ by {which}")


def test_batches_and_users():
    model, constraints, _ = closed("five_bar")
    q, v, _, tau = (x[:3] for x in consistent_states("five_bar"))
    batch = rbd.constrained_forward_dynamics_derivatives(model, constraints, q, v, tau)
    for k in range(3):
        single = rbd.constrained_forward_dynamics_derivatives(model, constraints, q[k], v[k], tau[k])
        for part, one in zip(batch, single, strict=True):
            assert_close(part[k], one, 1e-9)
    user = rbd.ConstraintSet([rbd.UserConstraint(lambda q: q[:1], lambda q: np.eye(model.nv)[:1], lambda q, v: [0.0])])
    with pytest.raises(rbd.RbdError, match="UserConstraint"):
        rbd.constrained_forward_dynamics_derivatives(model, user, q[0], v[0], tau[0])
