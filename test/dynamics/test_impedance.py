"""The impedance law against the same formulas by NumPy's factorisations, and what it promises: damping ratios, energy,
exact tracking, an undisturbed link, and bounded forces.
"""
from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from support.compiled import compiled

import rbd_ros as rbd
from rbd_ros.core.dynamics.impedance import LENGTH, REACH, SLOW, eigen
from rbd_ros.core.lie import so3
from rbd_ros.runtime.control.cartesian_law import HEAVIEST, CartesianLaw
from rbd_ros.runtime.control.cartesian_settings import CartesianSettings

IIWA = rbd.sample("iiwa")
TIP = IIWA.body_names[-1]
Q = np.linspace(0.2, 1.0, 7)
NO_LIMITS = {"limit_stiffness": np.zeros(7)}


def law_of(model=IIWA, body=TIP, **changed):
    values = {"damping_ratio": 0.7, "posture_bandwidth": 0.0, "posture_damping": 2.0, **changed}
    return CartesianLaw(replace(CartesianSettings.from_values({"end_effector": body}, model), **values))


def pose(q, model=IIWA, body=TIP):
    T = rbd.forward_kinematics(model, q)[model.body_index(body)]
    return T[:3, :3], T[:3, 3]


def aimed(R, p, twist=(0.0,) * 6, rate=(0.0,) * 6):
    return np.concatenate([np.ravel(R), p, twist, rate])


def bounded(force, deflection, stiffness, most):
    root, knee = np.sqrt(force @ deflection), most / np.sqrt(stiffness.max())
    return force if root <= knee else knee / root * force


def expected(law, q, v, target, posture):
    """The law's formulas, line by line."""
    model, z = law.model, law.settings
    J, M = rbd.jacobian(model, q, law.settings.body, "aligned"), rbd.mass_matrix(model, q)
    R, p = pose(q, model, law.settings.body)
    R_d, p_d, twist, rate = target[:9].reshape(3, 3), target[9:12], target[12:18], target[18:]
    S = np.diag([1.0 / LENGTH] * 3 + [1.0] * 3)
    sizes, V = np.linalg.eigh(S @ J @ np.linalg.solve(M, J.T) @ S)
    least = 1.0 / (HEAVIEST * model.total_mass)
    inertia = S @ V @ np.diag(1.0 / np.maximum(sizes, least)) @ V.T @ S
    led_inertia = S @ V @ np.diag(np.minimum(1.0, sizes / least) / np.maximum(sizes, least)) @ V.T @ S
    axes = R_d if z.frame == "target" else np.eye(3)
    K = np.zeros((6, 6))
    K[:3, :3], K[3:, 3:] = axes @ np.diag(z.rotation) @ axes.T, axes @ np.diag(z.translation) @ axes.T
    root = np.linalg.cholesky(inertia)
    k, U = np.linalg.eigh(np.linalg.solve(root, np.linalg.solve(root, K).T))
    D = root @ U @ np.diag(2.0 * z.damping_ratio * np.sqrt(k)) @ U.T @ root.T
    s, e = so3.log(R_d @ R.T), p_d - p
    spring = np.concatenate([so3.dexp_inv(s).T @ bounded(K[:3, :3] @ s, s, z.rotation, z.moment),
                             bounded(K[3:, 3:] @ e, e, z.translation, z.force)])
    led = np.linalg.solve(M, J.T @ led_inertia @ twist)

    def coriolis(w):
        return rbd.bias_effort(model, q, w) - rbd.gravity_effort(model, q)

    share = min(1.0, np.linalg.norm([*(LENGTH * twist[:3]), *twist[3:]]) / SLOW)
    follows = led + share * ((v - led) - np.linalg.solve(M, J.T @ led_inertia @ J @ (v - led)))
    h = 1e-6    # J̇ v by differences
    bias = (rbd.jacobian(model, q + h * follows, law.settings.body, "aligned") - rbd.jacobian(
        model, q - h * follows, law.settings.body, "aligned")) @ follows / (2.0 * h)
    wrench = spring + D @ (twist - J @ v) + led_inertia @ (rate - bias) * bool(twist.any() or rate.any())
    pull = M @ (z.posture_bandwidth**2 * (posture - q) - z.posture_damping * (v - led))
    free = pull - J.T @ inertia @ J @ np.linalg.solve(M, pull)
    into = (np.maximum(model.position_lower + z.margin - q, 0.0)
            - np.maximum(q - model.position_upper + z.margin, 0.0))
    limits = z.limit_stiffness * np.clip(into, -REACH, REACH)
    return J.T @ wrench + 0.5 * (coriolis(v + follows) - coriolis(v) - coriolis(follows)) + free + limits


@pytest.mark.parametrize("seed", range(12))
def test_it_is_what_its_formulas_say(seed):
    rng = np.random.default_rng(seed)
    body = TIP if seed % 4 else IIWA.body_names[4]    # behind fewer joints than directions, too
    law = law_of(body=body, translation=rng.uniform(100, 900, 3), rotation=rng.uniform(5, 40, 3),
                 frame=("base", "target")[seed % 2], posture_bandwidth=3.0, margin=np.full(7, 0.4))
    q, v = IIWA.random_configuration(seed), rng.normal(size=7)
    if seed == 5:
        q = np.zeros(7)    # stretched upwards: singular
    R, p = pose(q, body=body)
    moves = (0.0, 1.0, 2e-3)[seed % 3]
    target = aimed(so3.exp(rng.normal(size=3)) @ R, p + 0.1 * rng.normal(size=3), moves * rng.normal(size=6),
                   moves * rng.normal(size=6))
    posture = IIWA.random_configuration(seed + 50)
    found = law.effort(q, v, target, posture)
    np.testing.assert_allclose(found, expected(law, q, v, target, posture), rtol=0,
                               atol=1e-7 * max(1.0, np.abs(found).max()))
    assert law.seen.hidden > 0 or seed % 4


@pytest.mark.parametrize("seed", range(4))
def test_damping_ratios_of_the_linearised_arm_are_those_asked_for(seed):
    law = law_of(damping_ratio=0.7, **NO_LIMITS)
    for more in range(20):    # a pose that is not nearly singular
        q = IIWA.random_configuration(100 * seed + more)
        target = aimed(*pose(q))
        law.effort(q, np.zeros(7), target, q)
        if not law.seen.hidden:
            break

    def rates(x):
        return np.concatenate([x[7:], rbd.forward_dynamics(
            IIWA, x[:7], x[7:], law.effort(x[:7], x[7:], target, q) + rbd.gravity_effort(IIWA, x[:7]))])

    x, h = np.concatenate([q, np.zeros(7)]), 1e-6
    A = np.column_stack([(rates(x + h * e) - rates(x - h * e)) / (2.0 * h) for e in np.eye(14)])
    poles = np.linalg.eigvals(A)
    swinging = poles[poles.imag > 1e-2]
    assert len(swinging) == 6
    np.testing.assert_allclose(-swinging.real / np.abs(swinging), 0.7, rtol=1e-4)
    others = np.sort(poles[np.abs(poles.imag) <= 1e-2].real)
    np.testing.assert_allclose(others, [-2.0, 0.0], atol=1e-3)    # what the pose leaves open


@pytest.mark.parametrize("seed", range(3))
def test_energy_never_grows_with_a_target_at_rest(seed):
    rng = np.random.default_rng(seed)
    law, h = law_of(frame="target" if seed == 1 else "base"), 5e-4
    q, v = IIWA.random_configuration(seed), rng.normal(size=7)
    R, p = pose(q)
    target = aimed(so3.exp(1.2 * rng.normal(size=3)) @ R, p + 0.3 * rng.normal(size=3))

    def rates(q, v):
        return v, rbd.forward_dynamics(IIWA, q, v, law.effort(q, v, target, q) + rbd.gravity_effort(IIWA, q))

    energies = []
    for _ in range(800):
        k = [rates(q, v)]
        energies.append(law.seen.energy + 0.5 * v @ rbd.mass_matrix(IIWA, q) @ v)
        for share in (0.5, 0.5, 1.0):
            k.append(rates(q + share * h * k[-1][0], v + share * h * k[-1][1]))
        q, v = (x + h / 6.0 * (a + 2.0 * b + 2.0 * c + d) for x, (a, b, c, d) in zip((q, v), zip(*k, strict=True),
                                                                                   strict=True))
    assert (np.diff(energies) < 1e-9 * energies[0]).all() and energies[-1] < 0.9 * energies[0]


@pytest.mark.parametrize("seed", range(4))
def test_springs_are_gradients_and_bounded(seed):
    rng = np.random.default_rng(seed)
    law = law_of(translation=np.array([900.0, 300.0, 0.0]), rotation=np.array([5.0, 40.0, 20.0]),
                 frame="target" if seed > 1 else "base",
                 margin=np.full(7, 0.5), posture_damping=0.0)
    q, zero = IIWA.random_configuration(seed), np.zeros(7)
    R, p = pose(q)
    for reach in (0.01, 1.0):
        target = aimed(so3.exp(2.0 * reach * rng.normal(size=3)) @ R, p + reach * rng.normal(size=3))
        tau, slope = law.effort(q, zero, target, q), np.zeros(7)
        for j in range(7):
            for sign in (1.0, -1.0):
                law.effort(q + sign * 1e-5 * np.eye(7)[j], zero, target, q)
                slope[j] -= sign * law.seen.energy / 2e-5
        np.testing.assert_allclose(tau, slope, atol=2e-5 * max(1.0, np.abs(tau).max()))
    free = law_of(force=30.0, **NO_LIMITS)
    far = free.effort(q, zero, aimed(R, p + np.array([5.0, 0.0, 0.0])), q)
    np.testing.assert_allclose(far, rbd.jacobian(IIWA, q, TIP, "aligned").T @ [0, 0, 0, 30.0, 0, 0], atol=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_a_link_on_its_target_stays_there(seed):
    """It has the acceleration of the target, whatever else the arm does."""
    rng = np.random.default_rng(seed)
    law, h = law_of(posture_bandwidth=3.0, posture_damping=5.0, **NO_LIMITS), 1e-6
    q, v, rate = Q + 0.03 * rng.normal(size=7), rng.normal(size=7), rng.normal(size=6)
    J = rbd.jacobian(IIWA, q, TIP, "aligned")
    tau = law.effort(q, v, aimed(*pose(q), J @ v, rate), Q) + rbd.gravity_effort(IIWA, q)
    bias = (rbd.jacobian(IIWA, q + h * v, TIP, "aligned") - rbd.jacobian(IIWA, q - h * v, TIP, "aligned")) @ v / (2 * h)
    assert not law.seen.hidden
    np.testing.assert_allclose(J @ rbd.forward_dynamics(IIWA, q, v, tau) + bias, rate, atol=1e-8)


def test_the_posture_does_not_move_the_link():
    law = law_of(posture_bandwidth=5.0, **NO_LIMITS)
    tau = law.effort(Q, np.zeros(7), aimed(*pose(Q)), Q + 0.3)
    a = rbd.forward_dynamics(IIWA, Q, np.zeros(7), tau + rbd.gravity_effort(IIWA, Q))
    assert np.abs(a).max() > 0.1
    np.testing.assert_allclose(rbd.jacobian(IIWA, Q, TIP) @ a, 0.0, atol=1e-10)


def test_springs_at_limits_are_bounded_by_the_rate():
    law, q = law_of(translation=np.zeros(3), rotation=np.zeros(3), posture_damping=0.0), Q.copy()
    q[6] = IIWA.position_upper[6] + 0.01
    target, inertia = aimed(*pose(q)), rbd.mass_matrix(IIWA, q)[6, 6]
    at = [law.effort(q, np.zeros(7), target, q, rate)[6] / -0.06 for rate in (np.inf, 1000.0, 100.0)]
    np.testing.assert_allclose(at, [100.0, min(100.0, inertia * 300.0**2), inertia * 30.0**2])


@pytest.mark.parametrize("seed", range(6))
def test_a_target_waits_for_its_link(seed):
    """Less and less the farther ahead it is, by the axes that hold it; never on the way back."""
    rng = np.random.default_rng(seed)
    law = law_of(translation=np.array([400.0, 100.0, 0.0]), frame="target" if seed % 2 else "base")
    R, p = pose(Q)
    R_d = so3.exp(np.array([0.1, -0.2, 0.3])) @ R
    axes = R_d if seed % 2 else np.eye(3)
    way = axes @ (0.05 * rng.normal(size=3))
    weighted = np.sqrt([1.0, 0.25, 0.0]) * (axes.T @ way)

    def slack(ahead, turn):
        goal = np.concatenate([(so3.exp(turn * so3.log(R_d @ R.T)) @ R_d).ravel(), p + way + ahead])
        return law.slack(Q, aimed(R_d, p + way), goal, 0.15, 0.8)

    apart = 2.0 - 2.0 * np.linalg.norm(weighted) / 0.15
    turned = 2.0 - 2.0 * np.linalg.norm(so3.log(R_d @ R.T)) / 0.8
    np.testing.assert_allclose([slack(way, 0.0), slack(-way, 0.0), slack(-way, 0.1), slack(way, 0.1)],
                               [min(apart, 1.0), 1.0, min(turned, 1.0), min(apart, turned, 1.0)], atol=1e-9)


@compiled
def factorise(B, V, n):
    eigen(B, V, n)


@pytest.mark.parametrize("n", [1, 2, 6])
def test_eigenvalues(n):
    rng = np.random.default_rng(n)
    for scale in (np.ones(n), 10.0 ** rng.uniform(-4, 4, n)):
        X = scale[:, None] * rng.normal(size=(n, n))
        A = X @ X.T
        B, V = A.copy(), np.empty((n, n))
        factorise(B, V, n)
        np.testing.assert_allclose(V @ np.diag(np.diag(B)) @ V.T, A, atol=1e-13 * np.abs(A).max())
        np.testing.assert_allclose(V.T @ V, np.eye(n), atol=1e-13)


def test_numbers_that_overflow_are_refused():
    law = law_of()
    with pytest.raises(rbd.RbdError, match="finite"):
        law.effort(Q, np.full(7, 1.7e308), aimed(*pose(Q)), Q)
    with pytest.raises(rbd.RbdError, match="finite"):
        law.effort(Q, np.zeros(7), np.full(24, np.nan), Q)
