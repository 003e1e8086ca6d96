"""Redundant rows, singular poses, damping, Baumgarte terms, mimic joints, and constraints of the user's own."""

import numpy as np
import pytest
from support.closed import check_equations, closed, consistent_states, dense_solution, terms
from support.robots import assert_close, build, random_state

import rbd_ros as rbd


def five_bar(axes):
    model, constraints, _ = closed("five_bar")
    return model, rbd.ConstraintSet([rbd.LoopClosure("right_lower", "tool", axes,
                                                     constraints["closure"].predecessor_frame)])


@pytest.mark.parametrize("axes", ["fixed", ["ry", "x", "y", "z"], ["rx", "ry", "x", "z"]])
def test_redundant_rows_move_as_the_minimal_set_does(axes):
    model, minimal, _ = closed("five_bar")
    q, v, _, tau = (x[:50] for x in consistent_states("five_bar"))
    few = rbd.constrained_forward_dynamics(model, minimal, q, v, tau)
    _, constraints = five_bar(axes)
    many = rbd.constrained_forward_dynamics(model, constraints, q, v, tau)
    assert_close(many.acceleration, few.acceleration, 1e-9)
    assert (many.rank == 3).all()
    assert (few.rank == 3).all()
    for i in range(3):
        _, lam = dense_solution(*terms(model, constraints, q[i], v[i]), tau[i])
        assert_close(many.multipliers[i], lam, 1e-8, "multipliers of least norm")


def test_the_same_constraint_twice():
    """Twice the rows, half the multipliers each."""
    model, constraints, _ = closed("talos")
    twice = rbd.ConstraintSet([*constraints.constraints, *(
        rbd.FixedContact(c.link, c.frame, c.kind, c.world, f"{c.name} again") for c in constraints.constraints)])
    q, v, _, tau = (x[:20] for x in consistent_states("talos"))
    once, both = (rbd.constrained_forward_dynamics(model, c, q, v, tau) for c in (constraints, twice))
    assert_close(both.acceleration, once.acceleration, 1e-9)
    assert_close(both.multipliers, np.tile(once.multipliers / 2.0, 2), 1e-8)
    assert (both.rank == 12).all()


def singular(turn):
    """The four-bar turned this much (rad) away from all links on a line."""
    angle = np.pi / 2.0 - turn
    return np.array([angle, -angle, angle])


def test_singular_pose_of_the_four_bar():
    model, constraints, _ = closed("four_bar")
    still, moving = np.zeros(3), np.array([1.0, -1.0, 1.0])
    assert np.abs(rbd.constraint_jacobian(model, constraints, singular(0.0)) @ moving).max() < 1e-12
    regular = rbd.constrained_forward_dynamics(model, constraints, singular(0.5), still, still)
    assert (regular.rank, regular.condition < 100.0) == (2, True)
    # at rest the lost rank is reported, and the equations hold
    got = rbd.constrained_forward_dynamics(model, constraints, singular(0.0), still, still)
    assert got.rank == 1
    check_equations(model, constraints, singular(0.0), still, got.acceleration, still, got.multipliers)
    # near it, the condition tells
    near = rbd.constrained_forward_dynamics(model, constraints, singular(1e-5), still, still)
    assert near.rank == 2
    assert near.condition > 1e4
    check_equations(model, constraints, singular(1e-5), still, near.acceleration, still, near.multipliers)
    # along the parallelogram's motion the pose is passed with finite forces; along the other branch as well
    passing = rbd.constrained_forward_dynamics(model, constraints, singular(0.0), moving, still)
    assert passing.residual < 1e-9
    # a velocity that satisfies A v = 0 here and continues into no motion contradicts the constraints
    with pytest.raises(rbd.RbdError, match=r"four_bar.*cannot be met: rank 1 of 5.*residual [\d.]+.*damping"):
        rbd.constrained_forward_dynamics(model, constraints, singular(0.0), np.array([1.0, 0.0, -2.0]), still)
    with pytest.raises(rbd.RbdError, match=r"state 1: .*rank 1 of 5"):
        rbd.constrained_forward_dynamics(model, constraints, singular(0.0), np.array([still, [1.0, 0.0, -2.0]]), still)
    # inverse dynamics there: the rank is that of A_p
    with pytest.raises(rbd.RbdError, match="in 1 of 2 directions"):
        rbd.constrained_inverse_dynamics(model, constraints, singular(0.0), still, still, ["crank_joint"])


def test_damping_bounds_the_multipliers():
    """`(A M⁻¹ Aᵀ + μ² max) λ = −(A q̈_r + Ȧq̇)` over the range of A; no error, and a residual that is returned."""
    model, constraints, _ = closed("four_bar")
    v, tau = np.array([1.0, 0.0, -2.0]), np.zeros(3)
    got = rbd.constrained_forward_dynamics(model, constraints, singular(0.0), v, tau, damping=1e-3)
    assert got.residual > 0.01
    assert np.abs(got.multipliers).max() < 1e3
    for turn in (0.5, 1e-4):
        q = singular(turn)
        got = rbd.constrained_forward_dynamics(model, constraints, q, v, tau, damping=1e-3)
        M, b, A, gamma = terms(model, constraints, q, v)
        inverse = A @ np.linalg.solve(M, A.T)
        mu = 1e-6 * np.diag(inverse).max()
        values, vectors = np.linalg.eigh(inverse)
        kept = vectors[:, values > 1e-14]
        c = A @ np.linalg.solve(M, tau - b) + gamma
        lam = -kept @ np.linalg.solve(kept.T @ inverse @ kept + mu * np.eye(kept.shape[1]), kept.T @ c)
        assert_close(got.multipliers, lam, 1e-6)
        assert_close(got.acceleration, np.linalg.solve(M, tau - b + A.T @ lam), 1e-6)


@pytest.mark.parametrize("baumgarte", [(3.0, 5.0), 0.1])
def test_baumgarte(baumgarte):
    """f̈ + 2 α ḟ + β² f = 0 off the manifold."""
    model, constraints, q = closed("five_bar")
    rng = np.random.default_rng(0)
    q, v, tau = q + 0.01 * rng.normal(size=5), rng.normal(size=5), rng.normal(size=5)
    got = rbd.constrained_forward_dynamics(model, constraints, q, v, tau, baumgarte=baumgarte)
    alpha, beta = (10.0, 10.0) if baumgarte == 0.1 else baumgarte
    M, b, A, gamma = terms(model, constraints, q, v)
    f = rbd.constraint_values(model, constraints, q)
    np.testing.assert_allclose(A @ got.acceleration + gamma, -2.0 * alpha * A @ v - beta ** 2 * f, atol=1e-8)
    np.testing.assert_allclose(M @ got.acceleration + b, tau + A.T @ got.multipliers, atol=1e-9)


def geared():
    """Bodies that share coordinates: a mimic joint, which the compiled recursion leaves to the mass matrix."""
    at = np.array([0.3, 0.0, 0.0])
    return build([rbd.JointSpec("a", "revolute", "root", "a", axis=(0.0, 1.0, 0.0)),
                  rbd.JointSpec("b", "revolute", "a", "b", position=at, axis=(0.0, 1.0, 0.0), mimic=("a", 0.5, 0.1)),
                  rbd.JointSpec("c", "revolute", "b", "c", position=at, axis=(0.0, 1.0, 0.0)),
                  rbd.JointSpec("d", "spherical", "c", "d", position=at)])


def test_mimic_joints():
    model = geared()
    constraints = rbd.ConstraintSet([rbd.FixedContact("d", [0.1, 0.0, 0.0], "point"), rbd.FixedContact(
        "d", [0.1, 0.2, 0.0], "point", name="redundant")])
    constraints = rbd.anchored(model, constraints, random_state(model, 0)[0])
    q, v, _ = random_state(model, 0)
    q, v = rbd.project(model, constraints, q, v)
    tau = np.array([1.0, 2.0, 0.5, 0.3, 0.1])
    got = rbd.constrained_forward_dynamics(model, constraints, q, v, tau)
    check_equations(model, constraints, q, v, got.acceleration, tau, got.multipliers, accelerations=False)
    assert got.residual < 1e-9
    batch = rbd.constrained_forward_dynamics(model, constraints, [q, q], v, tau)
    assert_close(batch.acceleration[1], got.acceleration, 1e-12)
    mask = np.array([True, False, False, False, False])
    constraints = rbd.ConstraintSet(constraints.constraints[:1])
    got = rbd.constrained_forward_dynamics(model, constraints, q, v, tau)
    hybrid = rbd.constrained_hybrid_dynamics(model, constraints, q, v, got.acceleration, tau, mask)
    check_equations(model, constraints, q, v, hybrid.acceleration, hybrid.effort, hybrid.multipliers,
                    accelerations=False)
    assert_close(hybrid.effort, tau, 1e-8)
    inverse = rbd.constrained_inverse_dynamics(model, constraints, q, v, got.acceleration, np.ones(5, dtype=bool))
    check_equations(model, constraints, q, v, got.acceleration, inverse.effort, inverse.multipliers,
                    accelerations=False)


def user_loop(model, constraints, name="own"):
    """The same constraint as functions."""
    return rbd.UserConstraint(lambda q: rbd.constraint_values(model, constraints, q),
                              lambda q: rbd.constraint_jacobian(model, constraints, q),
                              lambda q, v: rbd.constraint_bias(model, constraints, q, v), constraints.size, name)


def test_user_constraints_follow_the_same_algebra():
    model, constraints, q0 = closed("gripper")
    mixed = rbd.ConstraintSet([constraints["gear"], user_loop(model, rbd.ConstraintSet([constraints["left_linkage"]])),
                               user_loop(model, rbd.ConstraintSet([constraints["right_linkage"]]), "right")])
    assert mixed.row_names == ("gear/coupling", "own/0", "own/1", "right/0", "right/1")
    q, v, a, tau = (x[:5] for x in consistent_states("gripper"))
    names = [f"{side}_{part}" for side in ("left", "right") for part in ("crank_joint", "follower_joint")]
    for of in (lambda c: rbd.constrained_forward_dynamics(model, c, q, v, tau).acceleration,
               lambda c: rbd.constrained_hybrid_dynamics(model, c, q, v, a, tau, names[:1]).effort,
               lambda c: rbd.constrained_inverse_dynamics(model, c, q, v, a, names).effort,
               lambda c: rbd.constrained_forward_dynamics(model, c, q[0], v[0], tau[0]).acceleration,
               lambda c: rbd.project(model, c, q0 + 0.1, v[0]).q):
        np.testing.assert_allclose(of(mixed), of(constraints), rtol=1e-9, atol=1e-9)
    got = rbd.constrained_forward_dynamics(model, mixed, q, v, tau)
    check_equations(model, mixed, q, v, got.acceleration, tau, got.multipliers)


def test_no_constraints_at_all():
    model = rbd.sample("two_link")
    q, v, tau = np.ones(2), np.ones(2), np.ones(2)
    got = rbd.constrained_forward_dynamics(model, rbd.ConstraintSet(), q, v, tau)
    np.testing.assert_array_equal(got.acceleration, rbd.forward_dynamics(model, q, v, tau))
    assert (got.rank, got.residual, got.multipliers.shape) == (0, 0.0, (0,))
    inverse = rbd.constrained_inverse_dynamics(model, rbd.ConstraintSet(), q, v, got.acceleration, [True, True])
    np.testing.assert_allclose(inverse.effort, tau)


@pytest.mark.parametrize("change, message", [
    ({"q": np.zeros(4)}, "q has shape"), ({"tau": np.full(5, np.inf)}, "tau"),
    ({"v": "fast"}, "v: expected real numbers"),
    ({"damping": -1.0}, "damping"), ({"baumgarte": (1.0, -2.0)}, "baumgarte"), ({"baumgarte": "x"}, "baumgarte"),
    ({"baumgarte": 0.0}, "baumgarte"), ({"damping": np.nan}, "damping"),
])
def test_misuse(change, message):
    model, constraints, q = closed("five_bar")
    arguments = {"q": q, "v": np.zeros(5), "tau": np.zeros(5), **change}
    with pytest.raises(rbd.RbdError, match=message):
        rbd.constrained_forward_dynamics(model, constraints, **arguments)


@pytest.mark.parametrize("wrong", [None, [], "five_bar", rbd.LoopClosure("a", "b")], ids=lambda x: type(x).__name__)
@pytest.mark.parametrize("compute", [
    lambda m, c, x: rbd.constraint_values(m, c, x), lambda m, c, x: rbd.project(m, c, x),
    lambda m, c, x: rbd.constrained_forward_dynamics(m, c, x, x, x),
    lambda m, c, x: rbd.constrained_hybrid_dynamics(m, c, x, x, x, x, []),
    lambda m, c, x: rbd.constrained_inverse_dynamics(m, c, x, x, x, m.joint_names)], ids=range(5))
def test_something_else_than_a_constraint_set(compute, wrong):
    with pytest.raises(rbd.RbdError, match=f"constraints: expected a ConstraintSet, got {type(wrong).__name__}"):
        compute(rbd.sample("five_bar"), wrong, np.zeros(5))


def test_a_singular_mass_matrix_names_the_joint():
    model = build([rbd.JointSpec("a", "revolute", "root", "a"), rbd.JointSpec("b", "revolute", "a", "b")],
                  {"b": rbd.Inertia.zero()})
    with pytest.raises(rbd.RbdError, match="singular at joint 'b'"):
        rbd.constrained_forward_dynamics(model, rbd.ConstraintSet([rbd.JointCoupling({"a": 1.0})]), *np.zeros((3, 2)))


def test_a_singular_mass_matrix_names_the_joint_and_not_a_follower():
    model = build([rbd.JointSpec("a", "revolute", "root", "a"), rbd.JointSpec("b", "revolute", "a", "b"),
                   rbd.JointSpec("f", "revolute", "root", "f", mimic=("a", 1.0, 0.0))],
                  {"b": rbd.Inertia.zero()})
    x = np.zeros(2)
    for compute in (rbd.forward_dynamics_derivatives, lambda *s: rbd.hybrid_dynamics_derivatives(*s, x, [])):
        with pytest.raises(rbd.RbdError, match="singular at joint 'b'"):
            compute(model, x, x, x)


def test_an_empty_batch_with_a_users_constraint():
    model, constraints, _ = closed("five_bar")
    mixed = rbd.ConstraintSet([*constraints.constraints, user_loop(model, constraints)])
    none = np.zeros((0, 5))
    assert rbd.constraint_values(model, mixed, none).shape == (0, mixed.size)
    assert rbd.constraint_jacobian(model, mixed, none).shape == (0, mixed.size, 5)
    assert rbd.constraint_bias(model, mixed, none, none).shape == (0, mixed.size)
    assert rbd.constrained_forward_dynamics(model, mixed, none, none, none).multipliers.shape == (0, mixed.size)
    inverse = rbd.constrained_inverse_dynamics(model, mixed, none, none, none, model.joint_names)
    assert inverse.effort.shape == (0, 5)


@pytest.mark.parametrize("none", [[], (), [[], []]], ids=str)
def test_a_robot_that_cannot_move(none):
    """Empty lists, which the compiled entry cannot type."""
    model = build([rbd.JointSpec("mount", "fixed", "base", "tool")])
    got = rbd.constrained_forward_dynamics(model, rbd.ConstraintSet(), none, none, none)
    assert got.acceleration.shape == np.shape(none)


@pytest.mark.parametrize("mimic", [False, True])
@pytest.mark.parametrize("scale", [1e-9, 1e-7, 1.0, 1e7, 1e9])
def test_a_row_in_odd_units_is_met_or_refused(scale, mimic):
    """Rows 1e8 times as large as others leave these below what counts as constrained: that must not pass in silence."""
    at = np.array([0.1, 0.0, 0.3])
    model = build([rbd.JointSpec(f"j{i}", "revolute", f"l{i}", f"l{i + 1}", position=at, axis=tuple(np.eye(3)[i % 3]),
                                 mimic=("j0", -0.5, 0.1) if mimic and i == 4 else None) for i in range(5)])
    constraints = rbd.ConstraintSet([rbd.JointCoupling({"j0": 1.0, "j1": -1.0}),
                                     rbd.JointCoupling({"j2": scale, "j3": -scale})])
    q, v, tau = np.zeros(model.nv), np.zeros(model.nv), np.arange(1.0, model.nv + 1.0)
    if abs(np.log10(scale)) < 8:
        a = rbd.constrained_forward_dynamics(model, constraints, q, v, tau).acceleration
        np.testing.assert_allclose([a[0], a[2]], [a[1], a[3]], rtol=1e-7)
        return
    with pytest.raises(rbd.RbdError, match=r"cannot be met.*units"):
        rbd.constrained_forward_dynamics(model, constraints, q, v, tau)
    with pytest.raises(rbd.RbdError, match=r"contradict the constraints"):
        rbd.constrained_inverse_dynamics(model, constraints, q, v, tau, model.joint_names)
