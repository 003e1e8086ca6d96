"""The planar 2R arm of M §6.1: M's equations on symbols give the printed expressions, and the library their numbers."""

from itertools import pairwise

import numpy as np
import pytest
from support.robots import assert_close

import rbd_ros as rbd
from rbd_ros.core.dynamics.closed_form import product

sp = pytest.importorskip("sympy")

L1, L2, m1, m2, g = sp.symbols("L1 L2 m1 m2 g", positive=True)
Q = [sp.symbols(f"q{i} v{i} a{i} j{i} s{i}") for i in (1, 2)]    # up to the fourth derivative
(q1, v1, a1, j1, s1), (q2, v2, a2, j2, s2) = Q
sin, cos = sp.sin, sp.cos

PRINTED = [
    [L1**2 * a1 * m1 + L1**2 * a1 * m2 + L2**2 * a1 * m2 + L2**2 * a2 * m2 + L2 * g * m2 * cos(q1 + q2)
     + L1 * g * m1 * cos(q1) + L1 * g * m2 * cos(q1) - L1 * L2 * v2**2 * m2 * sin(q2)
     + 2 * L1 * L2 * a1 * m2 * cos(q2) + L1 * L2 * a2 * m2 * cos(q2) - 2 * L1 * L2 * v1 * v2 * m2 * sin(q2),
     L2 * m2 * (L1 * sin(q2) * v1**2 + L2 * a1 + L2 * a2 + g * cos(q1 + q2) + L1 * a1 * cos(q2))],
    [L1**2 * j1 * m1 + L1**2 * j1 * m2 + L2**2 * j1 * m2 + L2**2 * j2 * m2 - L2 * v1 * g * m2 * sin(q1 + q2)
     - L2 * v2 * g * m2 * sin(q1 + q2) + 2 * L1 * L2 * j1 * m2 * cos(q2) + L1 * L2 * j2 * m2 * cos(q2)
     - L1 * v1 * g * m1 * sin(q1) - L1 * v1 * g * m2 * sin(q1) - L1 * L2 * v2**3 * m2 * cos(q2)
     - 4 * L1 * L2 * a1 * v2 * m2 * sin(q2) - 2 * L1 * L2 * a2 * v1 * m2 * sin(q2)
     - 3 * L1 * L2 * a2 * v2 * m2 * sin(q2) - 2 * L1 * L2 * v1 * v2**2 * m2 * cos(q2),
     L2 * m2 * (L2 * j1 + L2 * j2 - v1 * g * sin(q1 + q2) - v2 * g * sin(q1 + q2) + L1 * j1 * cos(q2)
                + 2 * L1 * a1 * v1 * sin(q2) - L1 * a1 * v2 * sin(q2) + L1 * v1**2 * v2 * cos(q2))],
    [L1**2 * s1 * m1 + L1**2 * s1 * m2 + L2**2 * s1 * m2 + L2**2 * s2 * m2 - 3 * L1 * L2 * a2**2 * m2 * sin(q2)
     + L1 * L2 * v2**4 * m2 * sin(q2) - L1 * v1**2 * g * m1 * cos(q1) - L1 * v1**2 * g * m2 * cos(q1)
     - L2 * a1 * g * m2 * sin(q1 + q2) - L2 * a2 * g * m2 * sin(q1 + q2) + 2 * L1 * L2 * s1 * m2 * cos(q2)
     + L1 * L2 * s2 * m2 * cos(q2) - L1 * a1 * g * m1 * sin(q1) - L1 * a1 * g * m2 * sin(q1)
     - L2 * v1**2 * g * m2 * cos(q1 + q2) - L2 * v2**2 * g * m2 * cos(q1 + q2) - 6 * L1 * L2 * a1 * a2 * m2 * sin(q2)
     - 6 * L1 * L2 * j1 * v2 * m2 * sin(q2) - 2 * L1 * L2 * j2 * v1 * m2 * sin(q2)
     - 4 * L1 * L2 * j2 * v2 * m2 * sin(q2) - 6 * L1 * L2 * a1 * v2**2 * m2 * cos(q2)
     - 6 * L1 * L2 * a2 * v2**2 * m2 * cos(q2) + 2 * L1 * L2 * v1 * v2**3 * m2 * sin(q2)
     - 2 * L2 * v1 * v2 * g * m2 * cos(q1 + q2) - 6 * L1 * L2 * a2 * v1 * v2 * m2 * cos(q2),
     -L2 * m2 * (v1**2 * g * cos(q1 + q2) - L2 * s2 - L2 * s1 + v2**2 * g * cos(q1 + q2) - 2 * L1 * a1**2 * sin(q2)
                 + a1 * g * sin(q1 + q2) + a2 * g * sin(q1 + q2) - L1 * s1 * cos(q2) + L1 * v1**2 * v2**2 * sin(q2)
                 + 2 * v1 * v2 * g * cos(q1 + q2) + L1 * a1 * a2 * sin(q2) - 2 * L1 * j1 * v1 * sin(q2)
                 + 2 * L1 * j1 * v2 * sin(q2) + L1 * a1 * v2**2 * cos(q2) - L1 * a2 * v1**2 * cos(q2)
                 - 4 * L1 * a1 * v1 * v2 * cos(q2))],
]    # with the derivatives' dots that the text lost


def rate(expression):
    """d/dt."""
    return sum(sp.diff(expression, x) * y for one in Q for x, y in pairwise(one))


def test_printed_expressions_are_each_others_derivatives():
    for order in (0, 1):
        for joint in (0, 1):
            assert sp.simplify(sp.expand(rate(PRINTED[order][joint]) - PRINTED[order + 1][joint])) == 0


def arrays(matrix):
    return np.array(matrix.tolist(), dtype=object)


def hat(x):
    return sp.Matrix([[0, -x[2], x[1]], [x[2], 0, -x[0]], [-x[1], x[0], 0]])


def ad(x):
    return sp.BlockMatrix([[hat(x[:3]), sp.zeros(3)], [hat(x[3:]), hat(x[:3])]]).as_explicit()


def Ad_inverse(angle, r):
    R = sp.Matrix([[cos(angle), -sin(angle), 0], [sin(angle), cos(angle), 0], [0, 0, 1]])
    return sp.BlockMatrix([[R.T, sp.zeros(3)], [-R.T * hat(r), R.T]]).as_explicit()


def test_closed_form_on_symbols_gives_the_printed_expressions():
    """M eq. 9, 10, 19, 22–27, 28, 38 with the matrices of §6.1."""
    X = sp.zeros(12, 2)
    X[2, 0] = X[8, 1] = 1
    A = sp.eye(12)
    A[6:, :6] = Ad_inverse(q2, (L1, 0, 0))
    inertia = sp.zeros(12)
    for i, (m, L) in enumerate(((m1, L1), (m2, L2))):
        inertia[6 * i:6 * i + 6, 6 * i:6 * i + 6] = sp.BlockMatrix([
            [L**2 * m * sp.eye(3), m * hat((L, 0, 0))],
            [-m * hat((L, 0, 0)), m * sp.eye(3)]]).as_explicit()
    rates = [[one[k] for one in Q] for k in range(1, 5)]
    joint = [arrays(sp.diag(ad((0, 0, r[0], 0, 0, 0)), ad((0, 0, r[1], 0, 0, 0)))) for r in rates[:3]]
    As = [arrays(A)]
    for k in range(3):
        As.append(product(As[:k + 1], joint[:k + 1])[k] - product(As[:k + 1], joint[:k + 1], As[:k + 1])[k])
    J = [each @ arrays(X) for each in As]
    columns = [np.array([[x] for x in r], dtype=object) for r in rates]
    V = product(J[:3], columns[:3])
    b = [arrays(sp.diag(ad(list(x[:6, 0])), ad(list(x[6:, 0])))) for x in V]
    masses = [arrays(inertia)] + [np.zeros((12, 12), dtype=object)] * 2
    Jt = [each.T for each in J[:3]]
    mass = product(Jt, masses, J[:3])
    coriolis = [x - y for x, y in zip(product(Jt, masses, J[1:]), product(Jt, [x.T for x in b], masses, J[:3]),
                                      strict=True)]
    U = [As[0] @ arrays(sp.Matrix.vstack(Ad_inverse(q1, (0, 0, 0)), sp.zeros(6)))]
    for k in range(2):
        U.append(-product(b[:k + 1], U[:k + 1])[k])
    G = np.array([[0], [0], [0], [0], [g], [0]], dtype=object)
    gravity = [each @ G for each in product(Jt, masses, U)]
    for k, (x, y) in enumerate(zip(product(mass, columns[1:]), product(coriolis, columns[:3]), strict=True)):
        for i in (0, 1):
            effort = x[i, 0] + y[i, 0] + gravity[k][i, 0]
            assert sp.simplify(sp.expand(effort - PRINTED[k][i], trig=True)) == 0, f"order {k}, joint {i + 1}"


def test_library_gives_the_numbers():
    sizes = {L1: 0.7, L2: 0.4, m1: 2.0, m2: 1.3, g: 9.81}
    model = rbd.sample("two_link_mueller")
    evaluate = sp.lambdify([*Q[0], *Q[1]], sp.Matrix(PRINTED).subs(sizes), "numpy")
    rng = np.random.default_rng(1)
    for _ in range(20):
        states = rng.normal(size=(5, 2))
        expected = evaluate(*states[:, 0], *states[:, 1])
        assert_close(rbd.inverse_dynamics_time_derivatives(model, *states), expected, 1e-13)
