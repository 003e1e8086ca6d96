"""Closed form against the recursions; M's printed equations, with the errata of docs/errata.md."""

import numpy as np
import pytest
from support.iiwa import motion
from support.robots import assert_close, load, random_state
from support.trees import TYPES, mimic_tree, random_tree

import rbd_ros as rbd
from rbd_ros.core.dynamics import closed_form as cf
from rbd_ros.core.lie import se3
from rbd_ros.core.model.state import node_wrenches

MODELS = {
    "all types": lambda: random_tree(3, TYPES), "free": lambda: random_tree(4, TYPES, root="floating"),
    "exponential coordinates": lambda: random_tree(5, ["spherical_exponential", "revolute", "spherical_exponential"]),
    "mimic": mimic_tree, "panda": lambda: load("panda_description/panda"),
    "single joints": lambda: random_tree(5, ["revolute", "prismatic", "universal", "helical", "planar", "revolute"]),
}


@pytest.mark.parametrize("name", MODELS)
def test_closed_form_is_the_recursion(name):
    model = MODELS[name]()
    q, v, a = random_state(model, 1)
    rng = np.random.default_rng(1)
    higher = rng.normal(size=(4, model.nv))
    for W in (None, tuple(rng.normal(scale=10.0, size=(3, len(model.body_names), 6)))):
        found = cf.closed_form(model, q, v, a, *higher, external_wrenches=W)
        expected = rbd.inverse_dynamics_time_derivatives(model, q, v, a, *higher, external_wrenches=W)
        for k in range(5):
            assert_close(found.effort[k], expected[k], 1e-12, f"order {k}")
    assert_close(found.mass[0], rbd.mass_matrix(model, q), 1e-13)
    assert_close(found.skew_coriolis[0], rbd.coriolis_matrix(model, q, v), 1e-12)
    assert_close(found.gravity[0], rbd.gravity_effort(model, q), 1e-13)
    for C in (found.coriolis, found.skew_coriolis):
        assert_close(C[0] @ v + found.gravity[0], rbd.bias_effort(model, q, v), 1e-13)
    for k in range(4):    # Ṁ = C̄ + C̄ᵀ and its derivatives, M eq. 56, 57
        assert_close(found.skew_coriolis[k] + found.skew_coriolis[k].T, found.mass[k + 1], 1e-12)
        assert_close(found.mass[k], found.mass[k].T, 1e-13)
    assert np.abs(found.coriolis[0] + found.coriolis[0].T - found.mass[1]).max() > 1e-3    # eq. 22 has it not


@pytest.mark.parametrize("angle", [0.0, 1e-6, 3.0, 9.9, 10.1, 30.0])
def test_exponential_coordinates_at_any_angle(angle):
    """X = S(q) and its derivatives are J(r) of lie/so3.py and its derivatives; efforts are those of the recursion."""
    model = random_tree(5, ["spherical_exponential", "revolute"])
    rng = np.random.default_rng(2)
    q, v, a, jerk, snap = rng.normal(size=(5, 4))
    q[:3] *= angle / np.linalg.norm(q[:3])
    found = cf.closed_form(model, q, v, a, jerk, snap)
    tau = rbd.inverse_dynamics_time_derivatives(model, q, v, a, jerk, snap)
    for k in range(3):
        assert_close(found.effort[k], tau[k], 1e-11, f"order {k}")
    J = rbd.lie.so3.dexp(q[:3])
    assert_close(found.J[0][:3, :3], J, 1e-14)
    assert_close(found.J[1][:3, :3], rbd.lie.so3.dexp_dot(q[:3], v[:3]), 1e-12)
    second = rbd.lie.so3.dexp_second(q[:3], v[:3], v[:3]) + rbd.lie.so3.dexp_dot(q[:3], a[:3])
    assert_close(found.J[2][:3, :3], second, 1e-11)


def test_what_it_does_not_take_is_said():
    model = random_tree(1, ["revolute"])
    with pytest.raises(rbd.RbdError, match=r"higher\[0\]"):
        cf.closed_form(model, np.zeros(1), np.zeros(1), np.zeros(1), np.zeros(2))


def test_every_printed_equation():
    """M eq. 12 … 53 term by term, as printed but for what docs/errata.md names: 43, 48 and 51."""
    model = random_tree(5, ["revolute", "prismatic", "universal", "helical", "planar", "revolute"], rotors=False)
    q, v, acc = random_state(model, 1)
    higher = np.random.default_rng(1).normal(size=(2, model.nv))
    wrenches = tuple(np.random.default_rng(2).normal(size=(3, len(model.body_names), 6)))
    f = cf.closed_form(model, q, v, acc, *higher, external_wrenches=wrenches)
    A, J = f.A[0], f.J[0]
    X = np.linalg.solve(A, J)
    M = cf.block_diagonal([cf.node_inertia(row) for row in model._node_rows])

    def bracket(twists):
        return cf.block_diagonal([se3.ad(part) for part in twists.reshape(-1, 6)])

    a, da, dda = (bracket(X @ rate) for rate in (v, acc, higher[0]))
    V = [J @ v, J @ acc + f.J[1] @ v, J @ higher[0] + 2 * f.J[1] @ acc + f.J[2] @ v]
    b, db, ddb = (bracket(each) for each in V)
    Aa, Ada, Aaa = A @ a, A @ da, A @ a @ a
    MAa, At = M @ Aa, Aa.T

    def same(inner, expected):
        assert_close(J.T @ inner @ J, expected, 1e-12)

    def C_with(a, b):
        return -M @ A @ a - b.T @ M

    def M1_with(a):
        return -M @ A @ a - (M @ A @ a).T

    assert_close(-Aa @ J, f.J[1], 1e-12)                                             # 12
    assert_close(A @ a - A @ a @ A, f.A[1], 1e-12)                                   # 19
    assert_close(V[1], J @ acc - Aa @ V[0], 1e-12)                                   # 15
    C = C_with(a, b)
    same(C, f.coriolis[0])                                                           # 22
    same(-(MAa + b.T @ M - M @ b), f.skew_coriolis[0])                               # 54
    M1 = M1_with(a)
    same(M1, f.mass[1])                                                              # 30
    dC = C_with(da, db) + MAa @ Aa - M @ Aaa                                         # 33
    C1 = dC - C @ Aa - At @ C                                                        # 32, 34
    same(C1, f.coriolis[1])
    same(-M @ Ada - db.T @ M + b.T @ MAa + At @ b.T @ M + At @ MAa + 2 * MAa @ Aa - M @ Aaa, f.coriolis[1])    # 35
    turn = M @ (Aa @ A - Aa) @ a
    dM1 = M1_with(da) + turn + turn.T                                                # 41, 42
    M2 = dM1 - M1 @ Aa - At @ M1                                                     # 39
    same(M2, f.mass[2])
    same(M1_with(da) + turn + turn.T - M1 @ Aa - (M1 @ Aa).T, f.mass[2])             # 43 corrected
    same(-M @ Ada - (M @ Ada).T + 2 * MAa @ Aa + 2 * (MAa @ Aa).T + 2 * At @ MAa - M @ Aaa - (M @ Aaa).T,
         f.mass[2])                                                                  # 44
    ddC = (C_with(dda, ddb) + M @ Ada @ Aa + 2 * MAa @ Ada - 2 * MAa @ Aa @ Aa + 2 * MAa @ Aaa - 3 * M @ Aa @ da
           - M @ Aaa @ a + M @ Aaa @ Aa)                                             # 49; 48 corrected
    dC1 = (ddC - dC @ Aa - At @ dC - C @ Ada - Ada.T @ C + C @ Aa @ Aa + At @ At @ C - C @ Aaa
           - a.T @ At @ C)                                                           # 47
    same(dC1 - C1 @ Aa - At @ C1, f.coriolis[2])                                     # 46
    same(C_with(dda, ddb) - 2 * C1 @ Aa - 2 * At @ C1 - C @ Ada - Ada.T @ C - 2 * At @ C @ Aa - C @ Aaa
         - a.T @ At @ C + M @ Ada @ Aa + 2 * MAa @ Ada - 2 * MAa @ Aa @ Aa + 2 * MAa @ Aaa - 3 * M @ Aa @ da
         - M @ Aaa @ a + M @ Aaa @ Aa, f.coriolis[2])                                # 50
    same(-M @ A @ dda - ddb.T @ M + 2 * db.T @ MAa + 2 * At @ db.T @ M + 3 * M @ Ada @ Aa + 2 * MAa @ Ada
         + 2 * At @ M @ Ada - C @ Ada - Ada.T @ C + 2 * C @ Aa @ Aa + 2 * At @ C @ Aa + 2 * At @ At @ C
         - 4 * MAa @ Aa @ Aa - 2 * At @ MAa @ Aa + 2 * M @ Aaa @ Aa + 2 * At @ M @ Aaa + 2 * MAa @ Aaa
         - 3 * M @ Aa @ da - M @ Aaa @ a + M @ Aaa @ Aa - C @ Aaa - a.T @ At @ C, f.coriolis[2])    # 51 corrected
    poses = []
    for row in model._node_rows:
        step, up = cf.node_pose(row, q), int(row[0])
        poses.append(step if up < 0 else poses[up] @ step)
    UG = np.concatenate([se3.Ad_inv(T) for T in poses]) @ -np.concatenate([np.zeros(3), model.gravity])
    for k, inner in enumerate((M, M1, M2)):                                          # 25, 36, 52
        assert_close(J.T @ inner @ UG, f.gravity[k], 1e-12)
    W, dW, ddW = (-node_wrenches(model, w, None) for w in wrenches)
    assert_close(J.T @ (dW - At @ W), f.external[1], 1e-12)                          # 37
    assert_close(J.T @ (ddW - 2 * At @ dW + (2 * (Aa @ Aa).T - Ada.T - Aaa.T) @ W), f.external[2], 1e-12)    # 53


def test_iiwa_along_the_trajectory():
    """M §6.2: closed form == recursion at every instant, and τ̇, τ̈ are the derivatives of τ (M's own check, Fig. 4)."""
    model = rbd.sample("iiwa")
    step = 1e-3
    instants = np.arange(0.0, 5.0, 0.1)
    states = motion(instants)
    tau = rbd.inverse_dynamics_time_derivatives(model, *states)
    for k in range(0, len(instants), 5):
        form = cf.closed_form(model, *(x[k] for x in states))
        for order in range(3):
            assert_close(form.effort[order], tau[k, order], 1e-11)
    weights = {1: 0.8, 2: -0.2, 3: 4 / 105, 4: -1 / 280}    # central differences of order 8
    for order in (0, 1):
        slope = sum(w * (rbd.inverse_dynamics_time_derivatives(model, *motion(instants + j * step))[:, order]
                         - rbd.inverse_dynamics_time_derivatives(model, *motion(instants - j * step))[:, order])
                    for j, w in weights.items()) / step
        assert_close(slope, tau[:, order + 1], 1e-10)
