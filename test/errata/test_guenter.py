"""Misprints of G, each against a complex step through G's own recursion, which equals `rbd.inverse_dynamics`."""

from types import SimpleNamespace

import numpy as np
import pytest
from errata.kim import skew
from support.robots import assert_close
from support.trees import random_inertia, random_rotation

import rbd_ros as rbd

N, Z = 4, np.array([0.0, 0.0, 1.0])
RNG = np.random.default_rng(1)
TURNS, STEPS = np.array([random_rotation(RNG) for _ in range(N)]), RNG.normal(scale=0.4, size=(N, 3))
BODIES = [random_inertia(RNG) for _ in range(N)]
CENTRE, MASS = np.array([body.com for body in BODIES]), [body.mass for body in BODIES]
EULER = [0.5 * np.trace(body.matrix) * np.eye(3) - body.matrix for body in BODIES]
DOWN = np.array([0.0, -9.80665, 0.0])
STATE = RNG.normal(size=(3, N))


def vee(m):
    return np.array([m[2, 1], m[0, 2], m[1, 0]])


def turned(x):
    """Rotation about z by x, real or complex."""
    return np.array([[np.cos(x), -np.sin(x), 0.0], [np.sin(x), np.cos(x), 0.0], [0.0, 0.0, 1.0]])


def recursion(q, v, a, base=-DOWN, carried=lambda A, f: A @ f, Omega_of=None, gravity=1.0):
    """G's equations of a chain of revolute joints; all quantities by name, each a list over the links."""
    s = SimpleNamespace(A=[TURNS[i] @ turned(q[i]) for i in range(N)], w=[], dw=[], O=[], s=[], r=[], F=[], M=[])
    for i in range(N):
        At = s.A[i].T
        w0, dw0, s0, O0 = ((s.w[-1], s.dw[-1], s.s[-1], s.O[-1]) if i else
                           (np.zeros(3), np.zeros(3), gravity * base, np.zeros((3, 3))))
        s.w.append(At @ w0 + Z * v[i])
        s.dw.append(At @ dw0 + np.cross(At @ w0, Z * v[i]) + Z * a[i])
        s.O.append(Omega_of(s, i) if Omega_of else skew(s.dw[i]) + skew(s.w[i]) @ skew(s.w[i]))
        s.s.append(At @ (s0 + O0 @ STEPS[i]))
        s.r.append(s.O[i] @ CENTRE[i] + s.s[i])
        s.F.append(MASS[i] * s.r[i])
        s.M.append(vee(s.O[i] @ EULER[i] - (s.O[i] @ EULER[i]).T))
    s.f, s.eta = [None] * N, [None] * N
    for i in range(N - 1, -1, -1):
        s.f[i], s.eta[i] = s.F[i], np.cross(CENTRE[i], s.F[i]) + s.M[i]
        if i + 1 < N:
            A, f, eta = s.A[i + 1], s.f[i + 1], s.eta[i + 1]
            s.f[i] = s.f[i] + A @ f
            s.eta[i] = s.eta[i] + A @ eta + np.cross(STEPS[i + 1], carried(A, f))
    s.tau = np.array([eta @ Z for eta in s.eta])
    return s


def slope(kind, j, **options):
    """Every quantity's partial by coordinate j of q, q̇ or q̈ (kind 0, 1, 2)."""
    state = STATE.astype(complex)
    state[kind, j] += 1e-30j
    return SimpleNamespace(**{name: np.array(value).imag / 1e-30
                              for name, value in vars(recursion(*state, **options)).items()})


HERE = recursion(*STATE)


def wrong(got, expected):
    assert np.abs(np.asarray(got) - expected).max() > 1e-2 * np.abs(expected).max()


def arm(gravity=DOWN):
    links, joints = {"l0": rbd.Inertia.zero()}, []
    for i in range(N):
        links[f"l{i + 1}"] = BODIES[i]
        joints.append(rbd.JointSpec(f"j{i}", "revolute", f"l{i}", f"l{i + 1}", TURNS[i], STEPS[i],
                                    axis=(0.0, 0.0, 1.0)))
    return rbd.RobotModel.from_description(rbd.Description("arm", links, tuple(joints), gravity=tuple(gravity)))


TRUE = rbd.inverse_dynamics(arm(), *STATE)


def test_base_condition():
    assert_close(HERE.tau, TRUE, 1e-12)
    wrong(recursion(*STATE, base=DOWN).tau, TRUE)


def test_value_of_g():
    """The standard acceleration of free fall is 9.80665 m/s²: two digits are swapped."""
    constants = pytest.importorskip("scipy.constants")
    assert -DOWN[1] == constants.g
    printed = recursion(*STATE, gravity=9.80655 / 9.80665).tau
    assert 0.0 < np.abs(printed - TRUE).max() < 1e-4 * np.abs(TRUE).max()


def test_moment_of_the_next_link_s_force():
    """A_{i+} is missing in s̃_{i,i+} f_{i+}^{i+}: the force must be in axes of link i."""
    wrong(recursion(*STATE, carried=lambda A, f: f).tau, TRUE)


def test_Omega_takes_the_link_s_own_rates():
    def printed(s, i):    # ω̇_i, ω_i of the link before, as the equation has them
        before = (s.dw[i - 1], s.w[i - 1]) if i else (np.zeros(3), np.zeros(3))
        return skew(s.A[i].T @ before[0]) + skew(s.A[i].T @ before[1]) @ skew(s.A[i].T @ before[1])

    wrong(recursion(*STATE, Omega_of=printed).tau, TRUE)


def test_gradient_of_the_energy_has_tau():
    """∂P/∂q_j = 2 Σ τ_i ∂τ_i/∂q_j at one instant; without τ_i the units are wrong, too."""
    for j in range(N):
        state = STATE.astype(complex)
        state[0, j] += 1e-30j
        expected = (recursion(*state).tau ** 2).sum().imag / 1e-30
        by_q = slope(0, j).tau
        assert 2.0 * HERE.tau @ by_q == pytest.approx(expected, rel=1e-10)
        wrong(2.0 * by_q.sum(), expected)


def test_partials_of_accelerations_not_of_positions():
    """∂F = m ∂r̈: with the partial of the position r or the velocity ṙ of the centre it is not."""
    def centre(q):
        T, p = np.eye(3), np.zeros(3)
        for i in range(N):
            p, T = p + T @ STEPS[i], T @ TURNS[i] @ turned(q[i])
        return T.T @ (p + T @ CENTRE[-1])

    by = slope(0, 1)
    assert_close(by.F[-1], MASS[-1] * by.r[-1], 1e-13)
    moved = STATE[0].astype(complex)
    moved[1] += 1e-30j
    wrong(MASS[-1] * centre(moved).imag / 1e-30, by.F[-1])


def test_moment_arm_in_partials_of_eta():
    """r_{i,i}; r_{i,i+} is the arm of another body's centre."""
    for kind in range(3):
        by, i = slope(kind, 0), N - 2
        A, f, eta = HERE.A[i + 1], by.f[i + 1], by.eta[i + 1]
        rest = by.M[i] + A @ eta + np.cross(STEPS[i + 1], A @ f)
        assert_close(np.cross(CENTRE[i], by.F[i]) + rest, by.eta[i], 1e-12)
        wrong(np.cross(STEPS[i + 1] + A @ CENTRE[i + 1], by.F[i]) + rest, by.eta[i])


def test_partial_of_angular_acceleration_by_its_own_angle():
    j = 2
    by, dAt = slope(0, j), slope(0, j).A[j].T
    expected = dAt @ HERE.dw[j - 1] + np.cross(dAt @ HERE.w[j - 1], Z * STATE[1, j])
    assert_close(by.dw[j], expected, 1e-12)
    wrong(dAt @ HERE.dw[j - 1] + np.cross(dAt @ HERE.dw[j - 1], Z * STATE[1, j]), by.dw[j])


def test_partial_of_angular_acceleration_by_rates():
    j = 1
    by = slope(1, j)
    assert_close(by.dw[j], np.cross(HERE.A[j].T @ HERE.w[j - 1], Z), 1e-12)
    carried = HERE.A[j + 1].T @ by.w[j]
    after = HERE.A[j + 1].T @ by.dw[j]
    assert_close(by.dw[j + 1], after + np.cross(carried, Z * STATE[1, j + 1]), 1e-12)
    with pytest.raises(ValueError, match="mismatch"):
        (HERE.A[j].T @ HERE.w[j - 1])[:, None] @ Z[:, None]    # as printed: a vector times a vector


def test_gravity_in_the_partial_at_the_root():
    by = slope(0, 0)
    expected = by.A[0].T @ -DOWN
    assert_close(by.s[0], expected, 1e-13)
    weightless = slope(0, 0, gravity=0.0)
    assert not np.abs(weightless.s[0]).any()
    wrong(weightless.tau, by.tau)


def test_partials_of_forces_take_those_of_the_next_link():
    for kind in range(3):
        by, i = slope(kind, 1), 1
        turned_force = by.A[i + 1] @ HERE.f[i + 1]
        assert_close(by.F[i] + turned_force + HERE.A[i + 1] @ by.f[i + 1], by.f[i], 1e-12)
        wrong(by.F[i] + turned_force + HERE.A[i + 1] @ by.f[i], by.f[i])
        leaf = np.cross(CENTRE[-1], by.F[-1]) + by.M[-1]
        assert_close(leaf, by.eta[-1], 1e-12)                               # right where no link follows,
        wrong(np.cross(CENTRE[i], by.F[i]) + by.M[i], by.eta[i])           # printed for links that others follow
