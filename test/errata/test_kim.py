"""Misprints of K: what is printed gives wrong numbers, what docs/errata.md says instead gives the right ones."""

import numpy as np
import pytest
from errata import kim
from errata.kim import Ad, Tree, ad, back, hat, hybrid, inverse
from support.robots import assert_close

import rbd_ros as rbd

TREE = Tree(1)
M, B = TREE.dense()
TRUE = np.linalg.solve(M, TREE.tau - B)


def wrong(got, expected, by=1e-2):
    assert np.abs(np.asarray(got) - expected).max() > by * np.abs(expected).max()


def test_definition_of_S():
    T = TREE.T[0]
    moved = T @ (np.eye(4) + 1e-30j * hat(TREE.S[0]))
    assert_close((inverse(T) @ moved).imag / 1e-30, hat(TREE.S[0]), 1e-14)
    printed = (inverse(T) @ inverse(moved)).imag / 1e-30
    wrong(printed, hat(TREE.S[0]))
    assert np.abs(printed[:3, :3] + printed[:3, :3].T).max() > 0.1    # no element of se(3) at all


def test_equations_34_and_72_to_77_take_M_vu():
    def block(n, m):
        u, v = slice(0, n), slice(n, n + m)
        rng = np.random.default_rng(2)
        factor = rng.normal(size=(n + m, n + m))
        mass, b, a, A = factor @ factor.T, rng.normal(size=n + m), rng.normal(size=n + m), rng.normal(size=(1, n + m))
        tau = mass @ a + b
        K = np.block([[mass[v, v], -A[:, v].T], [A[:, v], np.zeros((1, 1))]])
        drift = 0.3
        loop = np.linalg.solve(K, np.concatenate([tau[v] - b[v] - mass[v, u] @ a[u], -drift - A[:, u] @ a[u]]))

        def both(coupling):
            free = np.linalg.solve(mass[v, v], tau[v] - b[v] - coupling @ a[u])                       # 34, 77
            carried = np.linalg.solve(mass[v, v], A[:, v].T)
            force = -np.linalg.solve(A[:, v] @ carried, A[:, u] @ a[u] + A[:, v] @ free + drift)       # 74, 75
            return free, np.concatenate([free + carried @ force, force])                              # 72, 73
        return mass, u, v, a[v], loop, both

    mass, u, v, free, loop, both = block(3, 3)
    for got, expected in zip(both(mass[v, u]), (free, loop), strict=True):
        assert_close(got, expected, 1e-9)
    for got, expected in zip(both(mass[u, v]), (free, loop), strict=True):
        wrong(got, expected)
    mass, u, v, *_, both = block(2, 3)
    with pytest.raises(ValueError, match="mismatch"):
        both(mass[u, v])


def test_equation_52():
    prescribed = (1, 3)
    free = [0, 2, 4]
    expected = np.linalg.solve(M[np.ix_(free, free)],
                               TREE.tau[free] - B[free] - M[np.ix_(free, prescribed)] @ TREE.a[list(prescribed)])
    a, tau, _ = hybrid(TREE, prescribed)
    assert_close(a[free], expected, 1e-11)
    assert_close(tau, M @ a + B, 1e-11)
    wrong(hybrid(TREE, prescribed, right=Ad)[0][free], expected)


def test_tables_3_and_4():
    assert_close(hybrid(TREE)[0], TRUE, 1e-11)
    for misprint in ({"left": Ad}, {"bias": lambda T: Ad(T).T}, {"base": Ad}):
        wrong(hybrid(TREE, **misprint)[0], TRUE)


def test_equation_54_is_with_A():
    model = rbd.sample("four_bar")
    constraints = rbd.sample_constraints("four_bar", model)
    q, v = rbd.project(model, constraints, model.neutral() + 0.1, np.ones(model.nv))
    found = rbd.constrained_forward_dynamics(model, constraints, q, v, np.ones(model.nv))
    force = rbd.inverse_dynamics(model, q, v, found.acceleration) - 1.0
    A = rbd.constraint_jacobian(model, constraints, q)
    assert_close(force, A.T @ found.multipliers, 1e-9)
    J = rbd.jacobian(model, q, model.body_names[-1])
    wrong(J.T[:, :len(found.multipliers)] @ found.multipliers, force)


def test_null_space_of_equations_62_to_64():
    """N has m − rank(A_p) columns: with the m − n_p of the text the effort is not the least where A_p is singular."""
    rng = np.random.default_rng(3)
    A = rng.normal(size=(4, 6))
    A[:, 5] = A[:, 4]                        # n_p = 2 passive coordinates, rank 1
    Aa, Ap, tau_r = A[:, :4], A[:, 4:], rng.normal(size=6)
    tau_r[5] = tau_r[4]                      # so that a solution exists
    null = np.linalg.svd(Ap.T)[2][1:].T
    start = np.linalg.pinv(Ap.T) @ tau_r[4:]

    def effort(N):
        rest = tau_r[:4] - Aa.T @ start
        X = Aa.T @ N
        return rest - X @ np.linalg.pinv(X) @ rest

    least = np.linalg.lstsq(np.vstack([1e9 * Ap.T, Aa.T]), np.concatenate([1e9 * tau_r[4:], tau_r[:4]]), rcond=None)[0]
    assert np.linalg.norm(effort(null)) == pytest.approx(np.linalg.norm(tau_r[:4] - Aa.T @ least), rel=1e-6)
    assert np.linalg.norm(effort(null[:, :2])) > 1.01 * np.linalg.norm(effort(null))


def test_equation_88_has_an_inverse():
    h, T = np.random.default_rng(4).normal(size=6), TREE.T[1]
    moved = T @ (np.eye(4) + 1e-30j * hat(h))
    assert_close(back(moved).imag / 1e-30, -ad(h) @ back(T), 1e-14)                # 87
    assert_close(back(moved).T.imag / 1e-30, -back(T).T @ ad(h).T, 1e-14)          # 88 with T⁻¹
    assert_close(Ad(moved).T.imag / 1e-30, ad(h).T @ Ad(T).T, 1e-14)
    wrong(-Ad(T).T @ ad(h).T, Ad(moved).T.imag / 1e-30)                            # as printed


def test_equation_91_is_for_state_variables_only():
    """By a parameter of the joint itself (its placement B, p = the turn of B about an axis) ∂h ≠ 0, though p ∉ q."""
    turn, S = np.array([0.0, 0.0, 1.0, 0.0, 0.0, 0.0]), TREE.S[0]
    placement, joint = rbd.lie.se3.exp(TREE.S[1]), rbd.lie.se3.exp(0.7 * S)
    moved = placement @ (np.eye(4) + 1e-30j * hat(turn)) @ joint
    found = (inverse(placement @ joint) @ moved).imag / 1e-30
    assert_close(found, hat(back(joint) @ turn), 1e-13)
    assert np.abs(found).max() > 0.1


def test_table_6():
    """Against a complex step through Table 3, by everything at once: placements, S, inertias, wrenches, q̇, τ."""
    rng = np.random.default_rng(5)
    change = {name: rng.normal(size=shape) for name, shape in
              {"h": (5, 6), "S": (5, 6), "I": (5, 6, 6), "W": (5, 6), "v": 5, "a": 5, "tau": 5}.items()}
    change["I"] = 0.1 * (change["I"] + change["I"].transpose(0, 2, 1))
    expected = hybrid(TREE.along(change))[0].imag / 1e-30
    assert_close(kim.table_6(TREE, change), expected, 1e-11)
    wrong(kim.table_6(TREE, change, base=Ad), expected)
    wrong(kim.table_6(TREE, change, left=back), expected)
