"""Derivatives of constrained dynamics against differences, on loops with redundant rows too."""

import numpy as np
import pytest

import rbd_ros as rbd
from support.closed import NAMES, closed, consistent_states
from support.robots import assert_close

STEP = 1e-5
each_robot = pytest.mark.parametrize("name", NAMES)


def difference(function, directions):
    """Fourth-order central differences along each direction."""
    columns = []
    for e in directions:
        f = [function(s * STEP * e) for s in (1.0, -1.0, 2.0, -2.0)]
        columns.append([(8.0 * (p - m) - (pp - mm)) / (12.0 * STEP) for p, m, pp, mm in zip(*f, strict=True)])
    return [np.stack(part, axis=-1) for part in zip(*columns, strict=True)]


@each_robot
def test_forward(name):
    """By v and tau anywhere; by q where the rows' number stays: on the manifold along it, of minimal sets anywhere."""
    model, constraints, _ = closed(name)
    q, v, _, tau = (x[3] for x in consistent_states(name))
    found = rbd.constrained_forward_dynamics_derivatives(model, constraints, q, v, tau)

    def forward(q, v, tau):
        return rbd.constrained_forward_dynamics(model, constraints, q, v, tau)[:2]

    one = np.eye(model.nv)
    expected = difference(lambda d: forward(q, v, tau + d), one)
    assert_close(found.acceleration_tau, expected[0], 1e-7, "a by tau")
    assert_close(found.multipliers_tau, expected[1], 1e-7, "λ by tau")
    A = rbd.constraint_jacobian(model, constraints, q)
    _, s, Vt = np.linalg.svd(A)
    rank = int((s > 1e-8 * s[0]).sum())
    if rank == constraints.size:
        expected = difference(lambda d: forward(model.integrate(q, d), v, tau), one)
        assert_close(found.acceleration_q, expected[0], 1e-6, "a by q")
        assert_close(found.multipliers_q, expected[1], 1e-6, "λ by q")
        expected = difference(lambda d: forward(q, v + d, tau), one)
        assert_close(found.acceleration_v, expected[0], 1e-6, "a by v")
        assert_close(found.multipliers_v, expected[1], 1e-6, "λ by v")
        return
    free = Vt[rank:]    # motions of the mechanism, that the state stays on the manifold with
    expected = difference(lambda d: forward(q, v + d, tau), free)
    for part, want in ((found.acceleration_v @ free.T, expected[0]), (found.multipliers_v @ free.T, expected[1])):
        assert np.abs(part - want).max() <= 1e-6 * max(1.0, np.abs(want).max())    # a parallelogram's may vanish

    def along(d):
        moved, rates = rbd.project(model, constraints, model.integrate(q, d), v)
        change.append((model.difference(q, moved), rates - v))
        return forward(moved, rates, tau)

    for e in free:
        change = []
        expected = difference(along, [e])
        moves = [(8.0 * (change[0][i] - change[1][i]) - (change[2][i] - change[3][i])) / (12.0 * STEP) for i in (0, 1)]
        assert_close(found.acceleration_q @ moves[0] + found.acceleration_v @ moves[1], expected[0][:, 0], 1e-5)
        assert_close(found.multipliers_q @ moves[0] + found.multipliers_v @ moves[1], expected[1][:, 0], 1e-5)


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
    found = rbd.constrained_inverse_dynamics_derivatives(model, constraints, q, v, a, actuated)
    one = np.eye(model.nv)

    def inverse(q, v, a):
        return rbd.constrained_inverse_dynamics(model, constraints, q, v, a, actuated, check_acceleration=False)[:2]

    for which, call in (("q", lambda d: inverse(model.integrate(q, d), v, a)), ("v", lambda d: inverse(q, v + d, a)),
                        ("a", lambda d: inverse(q, v, a + d))):
        effort, multipliers = difference(call, one)
        assert_close(getattr(found, f"effort_{which}"), effort, 1e-6, f"τ by {which}")
        assert_close(getattr(found, f"multipliers_{which}"), multipliers, 1e-6, f"λ by {which}")


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
