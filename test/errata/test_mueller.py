"""Misprints of M against complex steps along the motion, and against `rbd.inverse_dynamics_time_derivatives`."""

from types import SimpleNamespace

import numpy as np
import pytest
from support.robots import assert_close, random_state
from support.trees import random_tree

import rbd_ros as rbd
from rbd_ros.core.dynamics import closed_form as cf
from rbd_ros.core.lie import se3

MODEL = random_tree(5, ["revolute", "prismatic", "universal", "helical", "planar", "revolute"], rotors=False)
STATE = random_state(MODEL, 1)
HIGHER = np.random.default_rng(1).normal(size=(2, MODEL.nv))


def bracket(twists):
    return cf.block_diagonal([se3.ad(part) for part in twists.reshape(-1, 6)])


@pytest.fixture(scope="module")
def m():
    """M's matrices at one state, by their letters; `terms` has the right answers by the Leibniz rule."""
    q, v, acc = STATE
    f = cf.closed_form(MODEL, q, v, acc, *HIGHER)
    s = SimpleNamespace(terms=f, A=f.A[0], J=f.J[0], v=v, acc=acc)
    X = np.linalg.solve(s.A, s.J)
    s.M = cf.block_diagonal([cf.node_inertia(row) for row in MODEL._node_rows])
    s.a, s.da, s.dda = (bracket(X @ rate) for rate in (v, acc, HIGHER[0]))
    V = [s.J @ v, s.J @ acc + f.J[1] @ v, s.J @ HIGHER[0] + 2 * f.J[1] @ acc + f.J[2] @ v]
    s.b, s.db, s.ddb = (bracket(each) for each in V)
    s.Aa, s.Ada, s.Aaa = s.A @ s.a, s.A @ s.da, s.A @ s.a @ s.a
    s.MAa, s.At = s.M @ s.Aa, s.Aa.T
    s.C = -s.MAa - s.b.T @ s.M
    s.dC = -s.M @ s.Ada - s.db.T @ s.M + s.MAa @ s.Aa - s.M @ s.Aaa
    s.C1 = s.dC - s.C @ s.Aa - s.At @ s.C
    return s


def differs(got, expected, by=1e-3):
    assert np.abs(got - expected).max() > by * np.abs(expected).max()


def test_the_right_terms_are_derivatives(m):
    """Central differences of order 8 along the motion: what the other tests compare with does not rest on M alone."""
    q, v, acc = STATE
    h = 1e-2

    def at(t):
        powers = v * t + acc * t**2 / 2 + HIGHER[0] * t**3 / 6 + HIGHER[1] * t**4 / 24
        rates = v + acc * t + HIGHER[0] * t**2 / 2 + HIGHER[1] * t**3 / 6
        return cf.closed_form(MODEL, q + powers, rates, acc + HIGHER[0] * t + HIGHER[1] * t**2 / 2,
                              HIGHER[0] + HIGHER[1] * t)

    around = {k: (at(k * h), at(-k * h)) for k in range(1, 5)}
    weights = {1: 0.8, 2: -0.2, 3: 4 / 105, 4: -1 / 280}
    for name in ("mass", "coriolis"):
        for order in (0, 1):
            slope = sum(w * (getattr(around[k][0], name)[order] - getattr(around[k][1], name)[order])
                        for k, w in weights.items()) / h
            assert_close(slope, getattr(m.terms, name)[order + 1], 1e-9, f"{name} {order + 1}")


def test_equations_28_and_38_lost_their_dots(m):
    f, (_, v, acc), (jerk, snap) = m.terms, STATE, HIGHER
    tau = rbd.inverse_dynamics_time_derivatives(MODEL, *STATE, *HIGHER)
    rest = [f.gravity[k] for k in range(3)]
    M, C = f.mass, f.coriolis
    right = M[0] @ jerk + (M[1] + C[0]) @ acc + C[1] @ v + rest[1]
    assert_close(right, tau[1], 1e-12)
    differs(M[0] @ acc + (M[1] + C[0]) @ acc + C[1] @ v + rest[1], tau[1])
    right = M[0] @ snap + (2 * M[1] + C[0]) @ jerk + (M[2] + 2 * C[1]) @ acc + C[2] @ v + rest[2]
    assert_close(right, tau[2], 1e-12)
    differs(M[0] @ jerk + (2 * M[1] + C[0]) @ acc + (M[2] + 2 * C[1]) @ acc + C[2] @ v + rest[2], tau[2])


def test_equation_43_starts_with_the_acceleration(m):
    def M1(a):
        return -m.M @ m.A @ a - (m.M @ m.A @ a).T

    turn = m.M @ (m.Aa @ m.A - m.Aa) @ m.a
    rest = turn + turn.T - M1(m.a) @ m.Aa - (M1(m.a) @ m.Aa).T
    assert_close(m.J.T @ (M1(m.da) + rest) @ m.J, m.terms.mass[2], 1e-12)
    differs(m.J.T @ (M1(m.a) + rest) @ m.J, m.terms.mass[2], 0.1)


def second_C(m, last):
    """C̈ of eq. 48, 49, whose term `−3 M A · ·` is `last`."""
    return (-m.M @ m.A @ m.dda - m.ddb.T @ m.M + m.M @ m.Ada @ m.Aa + 2 * m.MAa @ m.Ada - 2 * m.MAa @ m.Aa @ m.Aa
            + 2 * m.MAa @ m.Aaa - 3 * m.M @ m.A @ last - m.M @ m.Aaa @ m.a + m.M @ m.Aaa @ m.Aa)


def test_equation_48(m):
    def full(inner):    # eq. 46, 47
        dC1 = (inner - m.dC @ m.Aa - m.At @ m.dC - m.C @ m.Ada - m.Ada.T @ m.C + m.C @ m.Aa @ m.Aa + m.At @ m.At @ m.C
               - m.C @ m.Aaa - m.a.T @ m.At @ m.C)
        return m.J.T @ (dC1 - m.C1 @ m.Aa - m.At @ m.C1) @ m.J

    assert_close(full(second_C(m, m.a @ m.da)), m.terms.coriolis[2], 1e-12)
    differs(full(second_C(m, m.da @ m.da)), m.terms.coriolis[2])


def test_equation_51(m):
    """The explicit C⁽²⁾: of 2 aᵀAᵀaᵀAᵀC the print has lost the second aᵀ."""
    def explicit(term):
        Aa, At, C, MAa, Ada, Aaa, M = m.Aa, m.At, m.C, m.MAa, m.Ada, m.Aaa, m.M
        return m.J.T @ (
            -M @ m.A @ m.dda - m.ddb.T @ M + 2 * m.db.T @ MAa + 2 * At @ m.db.T @ M + 3 * M @ Ada @ Aa + 2 * MAa @ Ada
            + 2 * At @ M @ Ada - C @ Ada - Ada.T @ C + 2 * C @ Aa @ Aa + 2 * At @ C @ Aa + 2 * term
            - 4 * MAa @ Aa @ Aa - 2 * At @ MAa @ Aa + 2 * M @ Aaa @ Aa + 2 * At @ M @ Aaa + 2 * MAa @ Aaa
            - 3 * M @ Aa @ m.da - M @ Aaa @ m.a + M @ Aaa @ Aa - C @ Aaa - m.a.T @ At @ C) @ m.J

    assert_close(explicit(m.At @ m.At @ m.C), m.terms.coriolis[2], 1e-12)
    differs(explicit(m.a.T @ m.A.T @ m.A.T @ m.C), m.terms.coriolis[2])


def test_rate_of_Ad_before_equation_19():
    """d/dt Ad_{C_{i,i−1}} = −q̇_i ad_{X_i} Ad_{C_{i,i−1}}; the print has Ad_{C_{i,−1}}, which no body pair has."""
    X, B, q, rate = np.array([0.3, -0.5, 0.8, 0.1, 0.2, -0.4]), se3.exp([0.1, 0.9, -0.3, 1.0, 0.5, 0.2]), 0.6, 1.7
    h = 1e-3

    def Ad(t):
        return se3.Ad_inv(B @ se3.exp(X * (q + rate * t)))

    slope = (8 * (Ad(h) - Ad(-h)) - Ad(2 * h) + Ad(-2 * h)) / (12 * h)
    assert_close(slope, -rate * se3.ad(X) @ Ad(0.0), 1e-9)


def test_equation_12_is_for_joints_of_one_coordinate():
    """On a joint of several coordinates a X ≠ 0 and J̇ = −A a J fails; J̇ = Ȧ X with eq. 19 does not."""
    model = random_tree(4, ["revolute", "spherical", "revolute"])
    q, v, a = random_state(model, 2)
    f = cf.closed_form(model, q, v, a)
    X = np.linalg.solve(f.A[0], f.J[0])
    joint = bracket(X @ v)
    assert np.abs(joint @ X).max() > 0.1
    h = 1e-3

    def J(t):
        return cf.closed_form(model, model.integrate(q, t * v), v, a).J[0]

    slope = (8 * (J(h) - J(-h)) - J(2 * h) + J(-2 * h)) / (12 * h)
    assert_close(slope, f.J[1], 1e-8)
    assert_close(slope, (f.A[0] @ joint - f.A[0] @ joint @ f.A[0]) @ X, 1e-8)
    differs(-f.A[0] @ joint @ f.J[0], slope)


def test_wrenches_of_27_37_53_are_those_that_the_robot_exerts():
    """W_EE is W_ext, and M adds Q_ext where K eq. 42 subtracts a wrench that acts on the body."""
    W = np.random.default_rng(3).normal(size=(len(MODEL.body_names), 6))
    q, v, a = STATE
    without = rbd.inverse_dynamics(MODEL, q, v, a)
    with_it = rbd.inverse_dynamics(MODEL, q, v, a, external_wrenches=W)
    power = sum(wrench @ twist for wrench, twist in zip(W, rbd.body_velocities(MODEL, q, v), strict=True))
    assert (with_it - without) @ v == pytest.approx(-power, rel=1e-9)
    assert_close(cf.closed_form(MODEL, q, v, a, external_wrenches=W).external[0], with_it - without, 1e-10)


def test_mass_matrices_of_the_two_link_arm():
    """A point mass at (L, 0, 0) has no inertia about x: 0, not L² m, at (1, 1). In the plane nothing shows it."""
    m, L = 2.0, 0.7
    point = rbd.Inertia(m, np.array([L, 0.0, 0.0]), np.zeros((3, 3)))
    assert_close(point.about_origin, np.diag([0.0, L**2 * m, L**2 * m]), 1e-15)
    for spin in np.eye(3):
        speed = np.cross(spin, [L, 0.0, 0.0])
        assert 0.5 * spin @ point.about_origin @ spin == pytest.approx(0.5 * m * speed @ speed, abs=1e-15)


def test_inertias_of_table_1_are_about_the_centre_of_mass():
    """About the frame's origin, as the authors' program takes them, link 2 would be lighter than its own mass allows:
    about the centre of mass there would remain less than nothing (m c² = 0.125 kg m², Table 1 has 0.0004)."""
    c, m, largest = np.array([-0.00767, 0.16669, -0.00355]), 4.50275, 0.00042
    assert m * c @ c > 100 * largest
    link = rbd.sample("iiwa").description.links["link_2"]
    assert np.diag(link.matrix) == pytest.approx([0.00032, 0.00010, 0.00042], abs=1e-12)
    assert link.com == pytest.approx(c)
    assert link.about_origin[0, 0] == pytest.approx(0.00032 + m * (c[1] ** 2 + c[2] ** 2), rel=1e-9)
