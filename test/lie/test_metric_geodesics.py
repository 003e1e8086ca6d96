"""Minimum-velocity geodesics of general metrics: ends, the equation's residual, lengths of 100 perturbed curves."""

import numpy as np
import pytest
from support.robots import assert_close
from support.trees import random_inertia

import rbd_ros as rbd
from rbd_ros.core.lie import geodesics, se3

lie = rbd.lie
DURATION = 1.4
NODES, WEIGHTS = np.polynomial.legendre.leggauss(24)
TIMES, WEIGHTS = DURATION * (NODES + 1.0) / 2.0, DURATION * WEIGHTS / 2.0


def Q_of(kind):
    rng = np.random.default_rng(7)
    if kind == "body":    # a free rigid body, centre of mass off the origin: twice the kinetic energy
        c = random_inertia(rng)
        hat = lie.so3.hat(c.moment)
        return np.block([[c.about_origin, hat], [hat.T, c.mass * np.eye(3)]])
    factor = rng.normal(size=(6, 6))
    return factor @ factor.T / 6 + np.eye(6)


CASES = [(kind, side, seed) for kind in ("body", "any") for side in ("left", "right") for seed in (0, 1)]


@pytest.fixture(scope="module", params=CASES, ids=str)
def case(request):
    kind, side, seed = request.param
    T0, T1 = se3.exp(np.random.default_rng(seed).normal(scale=0.6, size=(2, 6)))
    metric = lie.Metric(Q_of(kind), side)
    return metric, T0, T1, geodesics.minimum_velocity(T0, T1, DURATION, metric)


def speed(metric, pose, twist):
    """√⟨Ṫ, Ṫ⟩ through the metric's own definition, from poses and Ṫ = T V̂."""
    rate = pose @ se3.hat(twist)
    return np.sqrt(metric.inner(pose, rate, rate))


def test_ends_and_kinematics(case):
    _, T0, T1, curve = case
    assert_close(curve([0.0, DURATION]).pose, [T0, T1], 1e-11)
    h, t = 1e-3, 0.6
    at = {k: curve(t + k * h) for k in range(-3, 4)}

    def slope(of):
        return (45 * (of(at[1]) - of(at[-1])) - 9 * (of(at[2]) - of(at[-2])) + of(at[3]) - of(at[-3])) / (60 * h)

    assert_close(se3.inverse(at[0].pose) @ slope(lambda m: m.pose), se3.hat(at[0].twist), 1e-9)
    assert_close(slope(lambda m: m.twist), at[0].acceleration, 1e-8)


def test_residual_of_the_equation(case):
    """P eq. 20: Q U̇ = ± ad_Uᵀ Q U with U on the metric's side; and the speed is constant."""
    metric, *_, curve = case
    motion = curve(TIMES)
    U, Udot, sign = motion.twist, motion.acceleration, 1.0
    if metric.side == "right":
        U, Udot = ((se3.Ad(motion.pose) @ x[..., None])[..., 0] for x in (U, Udot))
        sign = -1.0
    left = Udot @ metric.Q
    right = sign * (np.swapaxes(se3.ad(U), -1, -2) @ (U @ metric.Q)[..., None])[..., 0]
    assert_close(left, right, 1e-10)
    assert np.abs(left).max() > 1e-3
    speeds = speed(metric, motion.pose, motion.twist)
    assert_close(speeds, np.full(len(TIMES), curve.length / DURATION), 1e-11)


def test_a_hundred_perturbed_curves_are_longer(case):
    """T(t) exp(ε b(t)) with b zero at the ends: longer by O(ε²), whatever b and its sign."""
    metric, *_, curve = case
    motion = curve(TIMES)
    rng = np.random.default_rng(5)
    s = TIMES / DURATION
    shapes = np.stack([np.sin(k * np.pi * s) for k in (1, 2, 3)]), np.stack(
        [k * np.pi / DURATION * np.cos(k * np.pi * s) for k in (1, 2, 3)])

    def length(change):
        x, xdot = (shape.T @ change for shape in shapes)
        pose = motion.pose @ se3.exp(x)
        twist = (se3.Ad_inv(se3.exp(x)) @ motion.twist[..., None] + lie.dexp_left(x) @ xdot[..., None])[..., 0]
        return WEIGHTS @ speed(metric, pose, twist)

    assert WEIGHTS @ speed(metric, motion.pose, motion.twist) == pytest.approx(curve.length, rel=1e-11)
    for _ in range(100):
        change = rng.normal(size=(3, 6)) / np.array([[1.0], [2.0], [3.0]])
        small, large = (length(size * change) - curve.length for size in (0.01, 0.02))
        back = length(-0.01 * change) - curve.length
        assert small > 0.0 < back and large > 0.0
        assert small + back > 5.0 * abs(small - back)    # no first variation


def test_invariance(case):
    metric, T0, T1, curve = case
    G = se3.exp([0.4, -1.0, 2.0, 3.0, -2.0, 1.0])
    plain = curve(TIMES)
    if metric.side == "left":
        moved = geodesics.minimum_velocity(G @ T0, G @ T1, DURATION, metric)(TIMES)
        assert_close(moved.pose, G @ plain.pose, 1e-10)
        assert_close(moved.twist, plain.twist, 1e-10)
    else:
        moved = geodesics.minimum_velocity(T0 @ G, T1 @ G, DURATION, metric)(TIMES)
        assert_close(moved.pose, plain.pose @ G, 1e-10)


def test_the_plain_metric_is_the_plain_curve():
    T0, T1 = se3.exp(np.random.default_rng(2).normal(size=(2, 6)))
    metric = lie.Metric(np.diag([2.0] * 3 + [0.7] * 3))
    for of in ("pose", "twist", "acceleration"):
        assert_close(getattr(geodesics.minimum_velocity(T0, T1, DURATION, metric)(TIMES), of),
                     getattr(geodesics.minimum_velocity(T0, T1, DURATION)(TIMES), of), 1e-11)


@pytest.mark.parametrize(("call", "message"), [
    (lambda: lie.Metric(np.eye(3)), "Q: expected shape"), (lambda: lie.Metric(-np.eye(6)), "positive definite"),
    (lambda: lie.Metric(np.eye(6) + np.eye(6, k=1)), "symmetric"), (lambda: lie.Metric(np.eye(6), "top"), "side"),
    (lambda: geodesics.minimum_velocity(np.eye(4), np.eye(4), 1.0, np.eye(6)), "metric: expected a Metric"),
    (lambda: geodesics.minimum_velocity(np.eye(4), np.eye(4), 1.0, lie.Metric(np.eye(6)))(1.1), "t: expected"),
    (lambda: geodesics.minimum_velocity(np.eye(4), se3.pose([1e9, 0, 0]), 1.0, lie.Metric(np.eye(6))), "beyond")])
def test_wrong_inputs_are_named(call, message):
    with pytest.raises(rbd.RbdError, match=message):
        call()
