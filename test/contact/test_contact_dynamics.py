"""Dynamics with contacts: equations, inverse and hybrid dynamics, derivatives, wrenches; with a loop and a coupling."""

from functools import cache

import numpy as np
import pytest
from support.closed import check_equations
from support.contacts import FRAMES, bodies, placed, surface
from support.robots import assert_close, build, inertia

import rbd_ros as rbd

KINDS = [("plane", "ellipsoid", True), ("torus", "sphere", False), ("ellipsoid", "cylinder", True),
         ("hollow torus", "ellipsoid", False)]
each_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: "-".join(map(str, kind)))


@cache
def mechanism(first, second, spin):
    """Two bodies that touch, one on an arm, the other on a rail and on the floor: constraints, and a state of them."""
    model = bodies()
    q, _ = placed(first, second, 1)
    poses = rbd.forward_kinematics(model, q)
    arm, two = (poses[model.body_index(link)] for link in ("arm", "two"))
    floor = [*(two @ [0.1, 0.0, 0.0, 1.0])[:2], (two @ [0.1, 0.0, 0.0, 1.0])[2] - 0.25]
    constraints = rbd.ConstraintSet([
        rbd.LoopClosure("arm", "two", ["x"], rbd.lie.se3.inverse(arm) @ two, name="loop"),
        rbd.RollingContact(surface(first, "one", FRAMES[0]), surface(second, "two", FRAMES[1]), spin, "touch"),
        rbd.JointCoupling({"shoulder": [1.0, 0.2]}, q[0] + 0.2 * q[0] ** 2, name="gear"),
        rbd.SlidingContact(rbd.Sphere("base", 5.0, [floor[0], floor[1], floor[2] - 5.0]),
                           rbd.Sphere("two", 0.25, [0.1, 0, 0]), name="rim")])
    rng = np.random.default_rng(3)
    return model, constraints, *rbd.project(model, constraints, q, rng.normal(size=13)), rng.normal(size=13)


def motors(constraints):
    """All coordinates but as many as there are constraints."""
    passive = [0, *range(7, 13)] if constraints.size == 7 else [0, *range(8, 13)]
    return ~np.isin(np.arange(13), passive)


@each_kind
def test_equations_of_forward_inverse_and_hybrid_dynamics(kind):
    model, constraints, q, v, tau = mechanism(*kind)
    found = rbd.constrained_forward_dynamics(model, constraints, q, v, tau)
    check_equations(model, constraints, q, v, found.acceleration, tau, found.multipliers, 1e-10)
    assert found.rank == constraints.size == (6 if kind[2] else 7)
    actuated = motors(constraints)
    inverse = rbd.constrained_inverse_dynamics(model, constraints, q, v, found.acceleration, actuated,
                                               passive_effort=tau)
    check_equations(model, constraints, q, v, found.acceleration, inverse.effort, inverse.multipliers, 1e-9)
    mask = np.zeros(model.nv, dtype=bool)
    mask[[1, 3]] = True
    hybrid = rbd.constrained_hybrid_dynamics(model, constraints, q, v, found.acceleration, tau, mask)
    assert_close(hybrid.acceleration, found.acceleration, 1e-8)
    assert_close(hybrid.effort, tau, 1e-7)


@each_kind
def test_wrenches_do_the_work_of_the_multipliers(kind):
    model, constraints, q, _, _ = mechanism(*kind)
    rng = np.random.default_rng(0)
    lam = rng.normal(size=(2, constraints.size))
    lam[:, constraints.rows["gear"]] = 0.0    # an effort, no wrench
    wrenches = rbd.constraint_wrenches(model, constraints, q, lam)
    A = rbd.constraint_jacobian(model, constraints, q)
    for x, W in zip(lam, wrenches, strict=True):
        work = sum(rbd.jacobian(model, q, name).T @ W[i] for i, name in enumerate(model.body_names))
        assert_close(work, A.T @ x, 1e-11)
    found = rbd.constrained_forward_dynamics(model, constraints, q, np.zeros(model.nv), np.zeros(model.nv),
                                             joint_wrenches=True)
    assert np.isfinite(found.joint_wrenches).all()


@each_kind
def test_derivatives_by_differences(kind):
    model, constraints, q, v, tau = mechanism(*kind)
    found = rbd.constrained_forward_dynamics_derivatives(model, constraints, q, v, tau)
    h = 1e-6

    def both(q, v, tau):
        x = rbd.constrained_forward_dynamics(model, constraints, q, v, tau)
        return np.concatenate([x.acceleration, x.multipliers])

    for i, move in enumerate((lambda e: (model.integrate(q, e), v, tau), lambda e: (q, v + e, tau),
                              lambda e: (q, v, tau + e))):
        numeric = np.stack([(both(*move(h * e)) - both(*move(-h * e))) / (2 * h) for e in np.eye(model.nv)], axis=1)
        assert_close(np.vstack([found[i], found[3 + i]]), numeric, 2e-7)
    acceleration = rbd.constrained_forward_dynamics(model, constraints, q, v, tau).acceleration
    actuated = motors(constraints)
    inverse = rbd.constrained_inverse_dynamics_derivatives(model, constraints, q, v, acceleration, actuated)

    def efforts(q):
        x = rbd.constrained_inverse_dynamics(model, constraints, q, v, acceleration, actuated, check_acceleration=False)
        return np.concatenate([x.effort, x.multipliers])

    numeric = np.stack([(efforts(model.integrate(q, h * e)) - efforts(model.integrate(q, -h * e))) / (2 * h)
                        for e in np.eye(model.nv)], axis=1)
    assert_close(np.vstack([inverse.effort_q, inverse.multipliers_q]), numeric, 2e-6)


@each_kind
def test_directional_derivatives(kind):
    """Those by the state are the matrices' columns; by frames of surfaces and a link's placement by differences."""
    model, constraints, q, v, tau = mechanism(*kind)
    full = rbd.constrained_forward_dynamics_derivatives(model, constraints, q, v, tau)
    rng = np.random.default_rng(1)
    x = rng.normal(size=(3, model.nv))
    found = rbd.constrained_forward_dynamics_directional(model, constraints, q, v, tau,
                                                         rbd.Tangent(q=x[0], v=x[1], tau=x[2]))
    assert_close(found.acceleration, full[0] @ x[0] + full[1] @ x[1] + full[2] @ x[2], 1e-9)
    assert_close(found.multipliers, full[3] @ x[0] + full[4] @ x[1] + full[5] @ x[2], 1e-9)
    a, actuated = rbd.constrained_forward_dynamics(model, constraints, q, v, tau).acceleration, motors(constraints)
    columns = rbd.constrained_inverse_dynamics_derivatives(model, constraints, q, v, a, actuated)
    inverse = rbd.constrained_inverse_dynamics_directional(model, constraints, q, v, a, actuated,
                                                           rbd.Tangent(q=x[0], v=x[1], a=x[2]))
    assert_close(inverse.effort, columns[0] @ x[0] + columns[1] @ x[1] + columns[2] @ x[2], 1e-8)
    mask = np.zeros(model.nv, dtype=bool)
    mask[[1, 3]] = True
    hybrid = rbd.constrained_hybrid_dynamics_directional(model, constraints, q, v, a, tau, mask,
                                                         rbd.Tangent(q=x[0], v=x[1], a=x[2], tau=x[2]))
    h = 1e-6
    after, before = (rbd.constrained_hybrid_dynamics(model, constraints, model.integrate(q, t * x[0]), v + t * x[1],
                                                     a + t * x[2], tau + t * x[2], mask) for t in (h, -h))
    for part in ("acceleration", "effort", "multipliers"):
        assert_close(getattr(hybrid, part), (getattr(after, part) - getattr(before, part)) / (2 * h), 1e-6)
    xi = rng.normal(size=(2, 6))
    found = rbd.constrained_forward_dynamics_directional(model, constraints, q, v, tau, rbd.Tangent(
        predecessor_frames={"touch": xi[0]}, successor_frames={"rim": xi[1]}))

    def moved(t):
        parts = []
        for name in constraints.names:
            item = constraints[name]
            ends = {"touch": ("first", xi[0]), "rim": ("second", xi[1])}.get(name)
            if ends:
                old = getattr(item, ends[0])
                new = type(old)(**{**vars(old), "frame": np.asarray(old.frame) @ rbd.lie.se3.exp(t * ends[1])})
                item = type(item)(**{**vars(item), ends[0]: new})
            parts.append(type(item)(**{**vars(item), "name": name}))
        result = rbd.constrained_forward_dynamics(model, rbd.ConstraintSet(parts), q, v, tau)
        return np.concatenate([result.acceleration, result.multipliers])

    assert_close(np.concatenate(found), (moved(h) - moved(-h)) / (2 * h), 1e-6)
    with pytest.raises(rbd.RbdError, match="'touch' has no constants"):
        rbd.constrained_forward_dynamics_directional(model, constraints, q, v, tau,
                                                     rbd.Tangent(constants={"touch": 1.0}))


def test_a_batch_of_derivatives():
    model, constraints, q, v, tau = mechanism(*KINDS[0])
    Q = np.stack([q, model.integrate(q, 1e-3 * tau)])
    batch = rbd.constrained_forward_dynamics_derivatives(model, constraints, Q, np.stack([v, -v]), np.stack([tau, v]))
    for i, (x, y, z) in enumerate(((Q[0], v, tau), (Q[1], -v, v))):
        alone = rbd.constrained_forward_dynamics_derivatives(model, constraints, x, y, z)
        for part, one in zip(batch, alone, strict=True):
            assert_close(part[i], one, 1e-10)


def test_projection_moves_positions_for_the_gap_alone():
    model = build([rbd.JointSpec("free", "floating", "base", "two")], {"two": inertia()})
    constraints = rbd.ConstraintSet([rbd.RollingContact(rbd.Plane("base"), rbd.Sphere("two", 0.2), spin=False)])
    q = model.neutral()
    q[:3] = 0.4, 0.5, 0.33
    v = np.linspace(-1.0, 1.0, 6)
    projected, rates = rbd.project(model, constraints, q, v)
    np.testing.assert_allclose(projected, [0.4, 0.5, 0.2, 0.0, 0.0, 0.0, 1.0], atol=1e-12)
    np.testing.assert_allclose(rbd.constraint_jacobian(model, constraints, projected) @ rates, 0.0, atol=1e-12)
