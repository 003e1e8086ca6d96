"""docs/equations.md: each equation evaluated as it is typeset, with other parts of the library than it describes."""
from __future__ import annotations

import re

import numpy as np
import pytest
from support.pages import PAGES, ROOT
from support.robots import assert_close, random_state
from support.trees import random_tree

import rbd_ros as rbd

KINDS = ("revolute", "prismatic", "helical", "revolute", "continuous", "revolute")
BOUND = 1e-11
coadjoint, se3, so3 = rbd.lie.coadjoint, rbd.lie.se3, rbd.lie.so3


def hat(x):
    return np.cross(np.eye(3), np.asarray(x))


class Tree:
    """A random robot with rotors, at a random state, and its parts by the letters of the page."""

    def __init__(self, seed):
        self.model = model = random_tree(seed, KINDS)
        self.q, self.v, self.a = random_state(model, seed)
        rng = np.random.default_rng(seed)
        self.tau = rng.normal(size=model.nv)
        self.outside = rng.normal(size=(len(model.body_names), 6))
        joints = {joint.child: joint for joint in model.description.joints}
        moving = {joint.child: joint for joint in model.joints}
        poses = rbd.forward_kinematics(model, self.q)
        index = model.body_index
        self.bodies = range(len(model.body_names))
        self.parent = [index(joints[name].parent) if name in joints else -1 for name in model.body_names]
        self.T = [np.linalg.solve(poses[p], poses[i]) if p >= 0 else poses[i] for i, p in enumerate(self.parent)]
        self.columns = [[moving[name].idx_v] if name in moving else [] for name in model.body_names]
        self.S = [rbd.jacobian(model, self.q, name)[:, self.columns[index(name)]] for name in model.body_names]
        self.inertia = rbd.spatial_inertias(model)
        self.twists = rbd.body_velocities(model, self.q, self.v)

    def children(self, i):
        return [k for k in self.bodies if self.parent[k] == i]

    def rate(self, i):
        """a_i: Ṡ is zero for these joints."""
        return se3.ad(self.twists[i]) @ self.S[i] @ self.v[self.columns[i]]


@pytest.fixture(params=[1, 2], scope="module")
def tree(request):
    return Tree(request.param)


def test_adjoints():
    T, V = se3.exp([0.3, -0.2, 0.5, 1.0, 0.4, -0.7]), np.array([0.4, 0.1, -0.3, 0.2, 0.6, 1.0])
    R, p = T[:3, :3], T[:3, 3]
    assert_close(se3.Ad(T), np.block([[R, np.zeros((3, 3))], [hat(p) @ R, R]]), 1e-14)
    assert_close(se3.ad(V), np.block([[hat(V[:3]), np.zeros((3, 3))], [hat(V[3:]), hat(V[:3])]]), 1e-14)
    assert_close(se3.hat(se3.Ad(T) @ V), T @ se3.hat(V) @ np.linalg.inv(T), 1e-13)
    assert_close(coadjoint.Ad_star(T), se3.Ad(T).T, 1e-14)
    assert_close(coadjoint.ad_star(V), se3.ad(V).T, 1e-14)


def test_rotations():
    r, rate, h = np.array([0.4, -0.7, 1.1]), np.array([0.3, 0.5, -0.2]), 1e-5
    angle, skew = np.linalg.norm(r), hat(r)
    R = np.eye(3) + np.sin(angle) / angle * skew + (1 - np.cos(angle)) / angle**2 * skew @ skew
    J = np.eye(3) - (1 - np.cos(angle)) / angle**2 * skew + (angle - np.sin(angle)) / angle**3 * skew @ skew
    assert_close(so3.exp(r), R, 1e-14)
    assert_close(so3.dexp(r), J, 1e-14)
    slope = (so3.exp(r + h * rate) - so3.exp(r - h * rate)) / (2 * h)
    assert_close(hat(J @ rate), R.T @ slope, 1e-9)


def test_generalized_inertia():
    body = rbd.Inertia(2.0, np.array([0.1, -0.2, 0.3]), np.diag([0.03, 0.04, 0.05]))
    model = rbd.RobotModel.from_description(rbd.Description("body", {"base": rbd.Inertia.zero(), "link": body}, (
        rbd.JointSpec("joint", "revolute", "base", "link"),)))
    c = hat(body.com)
    expected = np.block([[body.matrix - 2.0 * c @ c, 2.0 * c], [-2.0 * c, 2.0 * np.eye(3)]])
    assert_close(rbd.spatial_inertias(model)[1], expected, 1e-14)


def test_inverse_dynamics(tree):
    V, A, F = {}, {}, {}
    tau = np.zeros(tree.model.nv)
    for i in tree.bodies:
        up, own = se3.Ad_inv(tree.T[i]), tree.columns[i]
        before = (V[tree.parent[i]], A[tree.parent[i]]) if tree.parent[i] >= 0 else (
            np.zeros(6), np.append(np.zeros(3), -tree.model.gravity))
        V[i] = up @ before[0] + tree.S[i] @ tree.v[own]
        A[i] = up @ before[1] + se3.ad(V[i]) @ tree.S[i] @ tree.v[own] + tree.S[i] @ tree.a[own]
    for i in reversed(tree.bodies):
        F[i] = tree.inertia[i] @ A[i] - coadjoint.ad_star(V[i]) @ tree.inertia[i] @ V[i] - tree.outside[i] + sum(
            coadjoint.Ad_star_inv(tree.T[k]) @ F[k] for k in tree.children(i))
        tau[tree.columns[i]] = tree.S[i].T @ F[i] + tree.model.armature[tree.columns[i]] * tree.a[tree.columns[i]]
    model, state = tree.model, (tree.q, tree.v, tree.a)
    assert_close(np.array([V[i] for i in tree.bodies]), rbd.body_velocities(model, *state[:2]), BOUND)
    assert_close(np.array([F[i] for i in tree.bodies]), rbd.joint_wrenches(model, *state, tree.outside), BOUND)
    assert_close(tau, rbd.inverse_dynamics(model, *state, tree.outside), BOUND)


def test_equations_of_motion(tree):
    model, q, v, a = tree.model.with_(damping=0.3, friction=0.2), tree.q, tree.v, tree.a
    law, h = rbd.joint_friction(model), 1e-6
    M, C = rbd.mass_matrix(model, q), rbd.coriolis_matrix(model, q, v)
    pushed = sum(rbd.jacobian(model, q, name).T @ tree.outside[i] for i, name in enumerate(model.body_names))
    tau = M @ a + C @ v + rbd.gravity_effort(model, q) - pushed + rbd.friction_effort(model, v)
    assert_close(tau, rbd.inverse_dynamics(model, q, v, a, tree.outside, friction=law), BOUND)
    M_dot = (rbd.mass_matrix(model, model.integrate(q, h * v)) - rbd.mass_matrix(
        model, model.integrate(q, -h * v))) / (2 * h)
    assert_close(M_dot - 2 * C, -(M_dot - 2 * C).T, 1e-7)


def test_coriolis_matrix(tree):
    model, q, v, h = tree.model, tree.q, tree.v, 1e-6
    expected = 0.0
    for i, name in enumerate(model.body_names):
        J = rbd.jacobian(model, q, name)
        J_dot = (rbd.jacobian(model, model.integrate(q, h * v), name)
                 - rbd.jacobian(model, model.integrate(q, -h * v), name)) / (2 * h)
        I, ad = tree.inertia[i], se3.ad(tree.twists[i])
        expected = expected + J.T @ (I @ J_dot + I @ ad @ J - ad.T @ I @ J)
    assert_close(rbd.coriolis_matrix(model, q, v), expected, 1e-7)


def test_forward_dynamics(tree):
    I, B, P, beta, u, A, a = {}, {}, {}, {}, {}, {}, np.zeros(tree.model.nv)
    for i in reversed(tree.bodies):
        S, own, moved = tree.S[i], tree.columns[i], tree.rate(i)
        up = {k: coadjoint.Ad_star_inv(tree.T[k]) for k in tree.children(i)}
        V = tree.twists[i]
        Pi = {k: I[k] - I[k] @ tree.S[k] @ P[k] @ tree.S[k].T @ I[k] for k in up}
        I[i] = tree.inertia[i] + sum(up[k] @ Pi[k] @ up[k].T for k in up)
        B[i] = -coadjoint.ad_star(V) @ tree.inertia[i] @ V - tree.outside[i] + sum(up[k] @ beta[k] for k in up)
        P[i] = np.linalg.inv(S.T @ I[i] @ S + np.diag(tree.model.armature[own]))
        u[i] = tree.tau[own] - S.T @ (I[i] @ moved + B[i])
        beta[i] = B[i] + I[i] @ (moved + S @ P[i] @ u[i])
    for i in tree.bodies:
        before = A[tree.parent[i]] if tree.parent[i] >= 0 else np.append(np.zeros(3), -tree.model.gravity)
        carried, own = se3.Ad_inv(tree.T[i]) @ before, tree.columns[i]
        a[own] = P[i] @ (u[i] - tree.S[i].T @ I[i] @ carried)
        A[i] = carried + tree.rate(i) + tree.S[i] @ a[own]
    state = (tree.model, tree.q, tree.v, tree.tau, tree.outside)
    found, expected = rbd.articulated_bodies(*state), rbd.forward_dynamics(*state, joint_wrenches=True)
    assert_close(np.array([I[i] for i in tree.bodies]), found.inertia, BOUND)
    assert_close(np.array([B[i] for i in tree.bodies]), found.bias, BOUND)
    assert_close(a, expected.acceleration, BOUND)
    assert_close(np.array([I[i] @ A[i] + B[i] for i in tree.bodies]), expected.joint_wrenches, BOUND)


def test_hybrid_dynamics(tree):
    model, q, v = tree.model, tree.q, tree.v
    u = np.arange(model.nv) % 2 == 0
    M, b = rbd.mass_matrix(model, q), rbd.bias_effort(model, q, v)
    free = np.linalg.solve(M[np.ix_(~u, ~u)], tree.tau[~u] - b[~u] - M[np.ix_(~u, u)] @ tree.a[u])
    found = rbd.hybrid_dynamics(model, q, v, tree.a, tree.tau, u)
    assert_close(found.acceleration[~u], free, BOUND)
    assert_close(found.effort[u], M[np.ix_(u, u)] @ tree.a[u] + M[np.ix_(u, ~u)] @ free + b[u], BOUND)


def test_operational_space():
    model = rbd.sample("iiwa")
    q, u = np.linspace(-0.8, 1.0, 7), np.array([0.3, -0.5, 0.0, 0.0, 0.6, 0.8])
    J = rbd.jacobian(model, q, "link_7")
    inverse = J @ np.linalg.solve(rbd.mass_matrix(model, q), J.T)
    assert_close(rbd.operational_space_inertia(model, q, "link_7", "body"), np.linalg.inv(inverse), 1e-9)
    assert rbd.effective_inertia(model, q, "link_7", u, "body") == pytest.approx(1.0 / (u @ inverse @ u), rel=1e-10)


def loop():
    model = rbd.sample("five_bar")
    constraints = rbd.sample_constraints("five_bar", model)
    q, v = rbd.project(model, constraints, [0.1, 0.3, 0.0, -0.1, 0.2], [1.0, 0.0, 0.0, 0.5, 0.0])
    return model, constraints, q, v, np.linspace(-1.0, 1.0, 5)


def dense(model, constraints, q):
    M, A = rbd.mass_matrix(model, q), rbd.constraint_jacobian(model, constraints, q)
    return np.block([[M, -A.T], [A, np.zeros((len(A), len(A)))]])


def test_constraints():
    model, constraints, q, v, tau = loop()
    right = [tau - rbd.bias_effort(model, q, v), -rbd.constraint_bias(model, constraints, q, v)]
    found = rbd.constrained_forward_dynamics(model, constraints, q, v, tau)
    expected = np.linalg.solve(dense(model, constraints, q), np.concatenate(right))
    assert_close(np.concatenate([found.acceleration, found.multipliers]), expected, 1e-10)


def test_derivatives_with_constraints():
    model, constraints, q, v, tau = loop()
    dq, dv, dtau, h = *np.random.default_rng(4).normal(size=(3, 5)), 1e-6
    now = rbd.constrained_forward_dynamics(model, constraints, q, v, tau)

    def terms(step):    # at fixed accelerations and multipliers
        x, rate = q + step * dq, v + step * dv
        A = rbd.constraint_jacobian(model, constraints, x)
        return np.concatenate([
            tau + step * dtau - rbd.inverse_dynamics(model, x, rate, now.acceleration) + A.T @ now.multipliers,
            -(A @ now.acceleration + rbd.constraint_bias(model, constraints, x, rate))])

    expected = np.linalg.solve(dense(model, constraints, q), (terms(h) - terms(-h)) / (2 * h))
    found = rbd.constrained_forward_dynamics_directional(
        model, constraints, q, v, tau, rbd.Tangent(q=dq, v=dv, tau=dtau))
    assert_close(np.concatenate([found.acceleration, found.multipliers]), expected, 1e-6)


def test_derivatives_of_forward_dynamics(tree):
    model, q, v = tree.model, tree.q, tree.v
    found = rbd.forward_dynamics_derivatives(model, q, v, tree.tau)
    inverse = rbd.inverse_dynamics_derivatives(model, q, v, rbd.forward_dynamics(model, q, v, tree.tau))
    M = rbd.mass_matrix(model, q)
    for got, expected in ((found.q, -np.linalg.solve(M, inverse.q)), (found.v, -np.linalg.solve(M, inverse.v)),
                          (found.tau, np.linalg.inv(M)), (inverse.a, M)):
        assert_close(got, expected, BOUND)


def test_regressor(tree):
    state = (tree.model, tree.q, tree.v, tree.a)
    tau = rbd.inertial_regressor(*state) @ tree.model.inertial_parameters + tree.model.armature * tree.a
    assert_close(tau, rbd.inverse_dynamics(*state), BOUND)


def test_friction():
    v, (d, c, b, v_s, s) = np.linspace(-0.5, 0.5, 41), (0.4, 0.7, 1.1, 0.15, 0.02)
    expected = d * v + (c + (b - c) * np.exp(-(v / v_s)**2)) * np.tanh(v / s)
    assert_close(rbd.Friction(d, c, b, v_s, s).effort(v), expected, 1e-14)
    tau, (e, a, k, eps), t = np.linspace(-9.0, 9.0, 41)[::-1], (0.1, -0.3, 0.2, 0.1), np.tanh(v / s)
    law = rbd.Friction(d, c, b, v_s, s, a, e, k)
    expected = (d + e * t) * v + (c + (b - c) * np.exp(-(v / v_s)**2) + a * t + k * np.sqrt(tau**2 + eps**2)) * t
    assert_close(law.effort(v, tau), expected, 1e-14)
    whole, L = tau + expected, k * t
    y = whole - law.effort(v, 0.0) + k * eps * t
    assert_close((y - L * np.sqrt(y**2 + eps**2 * (1 - L**2))) / (1 - L**2), tau, 1e-13)
    assert_close(law.remove(v, whole), tau, 1e-13)
    assert_close(law.gain(v, tau), 1 + L * tau / np.sqrt(tau**2 + eps**2), 1e-14)


def test_time_derivatives():
    model, states = rbd.sample("iiwa"), np.random.default_rng(5).normal(size=(5, 7))
    _, v, a, jerk, snap = states
    form = rbd.closed_form(model, *states)
    M, C = form.mass[0], form.coriolis[0]
    first = M @ jerk + (form.mass_dot + C) @ a + form.coriolis_dot @ v + form.gravity_dot
    second = (M @ snap + (2 * form.mass_dot + C) @ jerk + (form.mass_ddot + 2 * form.coriolis_dot) @ a
              + form.coriolis_ddot @ v + form.gravity_ddot)
    assert_close(rbd.inverse_dynamics_time_derivatives(model, *states)[1:], np.array([first, second]), BOUND)


def test_motors_of_elastic_joints():
    model, k, r = rbd.sample("two_link"), np.array([900.0, 500.0]), np.array([0.3, 0.2])
    actuation = rbd.Actuation(model, {name: rbd.SeriesDrive(rbd.SeriesSpring([k[i]]), motor=rbd.Motor(r[i]))
                                      for i, name in enumerate(model.joint_names)})
    states = np.random.default_rng(6).normal(size=(5, 2))
    q, v, a = states[:3]
    efforts = rbd.inverse_dynamics_time_derivatives(model, *states)
    motors = rbd.motor_reference(actuation, q, v, a, efforts)
    assert_close(motors.position, q + efforts[0] / k, BOUND)
    assert_close(motors.velocity, v + efforts[1] / k, BOUND)
    assert_close(motors.effort, efforts[0] + r * (a + efforts[2] / k), BOUND)


def test_closest_points_of_moving_surfaces():
    """Two ellipsoids apart, the second moving with ω and the velocity v of its closest point P, in the first's axes."""
    first, second = rbd.Ellipsoid("a", (0.3, 0.2, 0.25)), rbd.Ellipsoid("b", (0.15, 0.2, 0.1))
    pose = se3.from_rotation(so3.exp([0.4, -0.3, 0.7]), np.array([0.35, -0.2, 0.45]))
    w, v, h = np.array([0.5, -0.3, 0.8]), np.array([0.2, 0.4, -0.1]), 1e-4
    touch = rbd.closest_points(first, second, pose)
    P, n = np.asarray(touch.point_2), touch.axes[:, 2]

    def points(t):
        """Of each body in its own axes."""
        turn, now = so3.exp(t * w), pose.copy()
        now[:3, :3], now[:3, 3] = turn @ pose[:3, :3], P + t * v + turn @ (pose[:3, 3] - P)
        moved = rbd.closest_points(first, second, now)
        return np.asarray(moved.point_1), now[:3, :3].T @ (moved.point_2 - now[:3, 3])

    s_1, s_2 = ((after - before) / (2 * h) for after, before in zip(points(h), points(-h), strict=True))
    s_2 = pose[:3, :3] @ s_2
    S_1, S_2 = (axes[:, :2] @ chart.curvature @ axes[:, :2].T for axes, chart in (
        (touch.chart_1.axes, touch.chart_1), (pose[:3, :3] @ touch.chart_2.axes, touch.chart_2)))
    assert touch.gap > 0.05
    assert_close(S_1 @ s_1 + S_2 @ s_2, np.cross(w, n), 1e-6)
    assert_close(s_2, s_1 + touch.gap * S_1 @ s_1 - (v - n * (n @ v)), 1e-6)


def test_every_typeset_equation_names_its_test():
    """In the text below it, before the next one."""
    found = 0
    for page in PAGES:
        parts = re.split(r"^\$\$$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
        for below in parts[2::2]:
            named = re.search(r"`((?:\w+/)?test_\w+\.py)::(test_\w+)`", below)
            found += 1
            assert named is not None, f"{page.name}: no test below the equation before {below[:60]!r}"
            text = (ROOT / "test" / named[1]).read_text(encoding="utf-8")
            assert f"def {named[2]}(" in text, f"{page.name}: {named[0]}"
    assert found > 17
