"""Multipliers as wrenches on links, and what joints of closed mechanisms carry."""

import numpy as np
import pytest
from support.bodies import check_balance, joint_powers, tree_of
from support.closed import NAMES, closed, consistent_states

import rbd_ros as rbd

EFFORTS = ("JointCoupling", "UserConstraint")    # at joints, so that bodies feel nothing of them


def loops_of(model, constraints):
    """The constraints that act on bodies, and where their rows are."""
    kept = [name for name, item in zip(constraints.names, constraints.constraints, strict=True)
            if type(item).__name__ not in EFFORTS]
    rows = np.concatenate([np.arange(constraints.size)[constraints.rows[name]] for name in kept])
    return rows


@pytest.mark.parametrize("off", [0.0, 0.2], ids=["closed", "open"])
@pytest.mark.parametrize("name", NAMES)
def test_their_power_is_that_of_the_multipliers(name, off):
    """`Σ W · V = λᵀ A v` for any λ and v, on the manifold and off it."""
    model, constraints, _ = closed(name)
    rng = np.random.default_rng(1)
    q = consistent_states(name, 4)[0]
    q = np.array([model.integrate(x, off * rng.normal(size=model.nv)) for x in q])
    lam, v, rows = rng.normal(size=(4, constraints.size)), rng.normal(size=(len(q), model.nv)), loops_of(
        model, constraints)
    W = rbd.constraint_wrenches(model, constraints, q, lam)
    A = rbd.constraint_jacobian(model, constraints, q)[:, rows]
    expected = np.einsum("nr,nrv,nv->n", lam[:, rows], A, v)
    power = np.einsum("nbi,nbi->n", W, rbd.body_velocities(model, q, v))
    np.testing.assert_allclose(power, expected, rtol=1e-10, atol=1e-10 * np.abs(expected).max())
    for k in range(2):
        np.testing.assert_allclose(rbd.constraint_wrenches(model, constraints, q[k], lam[k]), W[k], atol=1e-13)
    np.testing.assert_allclose(rbd.constraint_wrenches(model, constraints, q[0], lam)[0], W[0], atol=1e-13)


def carried(model, constraints, q, v, a, tau, kind, outside):
    """Accelerations, efforts and result of each kind of constrained dynamics, joint wrenches asked for."""
    held = np.arange(model.nv) % 4 == 0
    if kind == "forward":
        found = rbd.constrained_forward_dynamics(model, constraints, q, v, tau, external_wrenches=outside,
                                                 joint_wrenches=True)
        return found.acceleration, tau, found
    if kind == "inverse":
        found = rbd.constrained_inverse_dynamics(model, constraints, q, v, a, np.ones(model.nv, dtype=bool),
                                                 minimize="effort", external_wrenches=outside, joint_wrenches=True)
        return a, found.effort, found
    found = rbd.constrained_hybrid_dynamics(model, constraints, q, v, a, tau, held & False, external_wrenches=outside,
                                            joint_wrenches=True)
    return found.acceleration, found.effort, found


@pytest.mark.parametrize("kind", ["forward", "inverse", "hybrid"])
@pytest.mark.parametrize("name", NAMES)
def test_every_subtree_of_a_mechanism_is_in_balance(name, kind):
    """With what loops exert, and joints that carry along their axis what their effort is, couplings included."""
    model, constraints, _ = closed(name)
    states = [x[:3] for x in consistent_states(name, 3)]
    outside = np.random.default_rng(2).normal(size=(3, len(model.body_names), 6))
    a, effort, result = carried(model, constraints, *states, kind, outside)
    W = rbd.constraint_wrenches(model, constraints, states[0], result.multipliers)
    A = rbd.constraint_jacobian(model, constraints, states[0])
    others = np.setdiff1d(np.arange(constraints.size), loops_of(model, constraints))
    effort = effort + np.einsum("nr,nrv->nv", result.multipliers[:, others], A[:, others]) - model.armature * a
    names = tree_of(model)[1]
    for k, (q, v) in enumerate(zip(states[0], states[1], strict=True)):
        check_balance(model, q, v, a[k], result.joint_wrenches[k], outside[k] + W[k], 1e-11)
        powers = joint_powers(model, q, v, result.joint_wrenches[k])
        scale = np.abs(powers).max() + np.abs(effort[k] * v).max()
        for joint in model.joints:
            at = names.index(joint.name if joint.name in names else "")
            part = slice(joint.idx_v, joint.idx_v + joint.nv)
            assert abs(powers[at] - effort[k, part] @ v[part]) < 1e-9 * scale, joint.name
    alone = carried(model, constraints, *(x[0] for x in states), kind, outside[0])[2]
    np.testing.assert_allclose(alone.joint_wrenches, result.joint_wrenches[0], rtol=1e-9, atol=1e-9)


def four_bar(cut):
    """A four-bar in the plane x, z, of which the joint between a and b, or the one at b's ground, is cut."""
    def bar(mass, length):
        return rbd.Inertia(mass, np.array([0.5 * length, 0.0, 0.0]), 0.1 * mass * length**2 * np.eye(3))

    y = (0.0, -1.0, 0.0)
    links = {"base": rbd.Inertia.zero(), "left": bar(1.0, 0.4), "top": bar(2.0, 0.8), "right": bar(1.5, 0.5)}
    joints = [rbd.JointSpec("one", "revolute", "base", "left", axis=y),
              rbd.JointSpec("two", "revolute", "left", "top", position=np.array([0.4, 0.0, 0.0]), axis=y)]
    if cut == "ground":    # of the right bar, whose frame is at the top
        joints.append(rbd.JointSpec("three", "revolute", "top", "right", position=np.array([0.8, 0.0, 0.0]), axis=y))
        loop = rbd.LoopClosure("base", "right", ["x", "z"], [0.9, 0.0, 0.0], [0.5, 0.0, 0.0])
    else:
        turned = np.diag([-1.0, -1.0, 1.0])
        joints.append(rbd.JointSpec("four", "revolute", "base", "right", turned, np.array([0.9, 0.0, 0.0]), axis=y))
        links["right"] = rbd.Inertia(1.5, np.array([-0.25, 0.0, 0.0]), links["right"].matrix)
        loop = rbd.LoopClosure("top", "right", ["x", "z"], [0.8, 0.0, 0.0], [-0.5, 0.0, 0.0])
    model = rbd.RobotModel.from_description(rbd.Description("four_bar", links, tuple(joints)))
    return model, rbd.ConstraintSet([loop])


def posed(cut, rate, place=None):
    """A state that moves at this rate of the first joint; place: of the joint between top and right."""
    model, constraints = four_bar(cut)
    found = []
    for third in np.linspace(-3.0, 3.0, 13):
        q = np.array([1.2, -0.9, third])
        for _ in range(60):    # to the first angle itself
            q[0] = 1.2
            q = rbd.project(model, constraints, q)[0]
        found.append(q)
    q = found[0] if place is None else min(found, key=lambda x: np.abs(joint_at(model, x) - place).max())
    A = rbd.constraint_jacobian(model, constraints, q)
    v = np.concatenate([[rate], np.linalg.solve(A[:, 1:], -A[:, 0] * rate)])
    return model, constraints, q, v


def joint_at(model, q):
    return rbd.forward_kinematics(model, q)[model.body_index("top"), :3] @ [0.8, 0.0, 0.0, 1.0]


def test_a_cut_joint_carries_its_multipliers():
    """The same mechanism cut at two places: multipliers at the one are the joint wrench of the other's tree there."""
    rate, drive = 0.7, 2.5
    ground = posed("ground", rate)
    top = posed("top", rate, joint_at(ground[0], ground[2]))
    np.testing.assert_allclose(joint_at(ground[0], ground[2]), joint_at(top[0], top[2]), atol=1e-9)
    found = [rbd.constrained_forward_dynamics(model, constraints, q, v, [drive, 0.0, 0.0], joint_wrenches=True)
             for model, constraints, q, v in (ground, top)]
    np.testing.assert_allclose(found[0].acceleration[0], found[1].acceleration[0], rtol=1e-7)
    model, _, q, _ = top    # what the ground exerts on the right bar, in the world's axes
    force = rbd.forward_kinematics(model, q)[model.body_index("right"), :3, :3] @ found[1].joint_wrenches[
        model.body_index("right"), 3:]
    np.testing.assert_allclose(force[[0, 2]], found[0].multipliers, rtol=1e-7)
    model, _, q, _ = ground    # what the top exerts on the right bar, in its own axes
    T = rbd.forward_kinematics(model, q)
    force = T[model.body_index("top"), :3, :3].T @ T[model.body_index("right"), :3, :3] @ found[0].joint_wrenches[
        model.body_index("right"), 3:]
    np.testing.assert_allclose(force[[0, 2]], found[1].multipliers, rtol=1e-7)
    for body in ("base", "left", "top"):
        np.testing.assert_allclose(found[0].joint_wrenches[ground[0].body_index(body)],
                                   found[1].joint_wrenches[top[0].body_index(body)], rtol=1e-7, atol=1e-7)


def test_they_say_what_is_wrong():
    model, constraints, q = closed("five_bar")
    for wrong in (np.zeros(2), np.zeros((1, 1, 3)), [np.nan, 0.0, 0.0], "three", None):
        with pytest.raises(rbd.RbdError, match="multipliers"):
            rbd.constraint_wrenches(model, constraints, q, wrong)
    with pytest.raises(rbd.RbdError, match="different length"):
        rbd.constraint_wrenches(model, constraints, np.stack([q, q]), np.zeros((3, 3)))
    with pytest.raises(rbd.RbdError, match="ask for them"):
        zero = np.zeros(model.nv)
        _ = rbd.constrained_forward_dynamics(model, constraints, q, zero, zero).joint_wrenches
