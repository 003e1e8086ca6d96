"""Minimal geodesics: end conditions, the differential equations, first variation, left invariance."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from rbd_ros.core.errors import RbdError
from rbd_ros.core.lie import geodesics, se3, so3

DURATION = 1.7
NODES, WEIGHTS = np.polynomial.legendre.leggauss(40)
TIMES, WEIGHTS = DURATION * (NODES + 1.0) / 2.0, DURATION * WEIGHTS / 2.0


def same(actual, expected, tolerance):
    np.testing.assert_allclose(actual, expected, rtol=0.0, atol=tolerance)


def _ends(seed, speed):
    rng = np.random.default_rng(seed)
    return (*se3.exp(rng.normal(size=(2, 6))), *(speed * rng.normal(size=(2, 6))))


CASES = [(seed, speed) for seed in (0, 1, 2) for speed in (0.0, 1e-6, 0.5, 1.5)]


@pytest.fixture(scope="module", params=CASES, ids=str)
def case(request):
    ends = _ends(*request.param)
    return ends, geodesics.minimum_acceleration(*ends, DURATION)


def _covariant(motion):
    """∇V = (ω̇, Rᵀp̈) = (ω̇, v̇ + ω × v)."""
    spin = np.cross(motion.twist[..., :3], motion.twist[..., 3:])
    return np.concatenate([motion.acceleration[..., :3], motion.acceleration[..., 3:] + spin], -1)


def test_both_ends_are_met(case):
    (T0, T1, V0, V1), curve = case
    ends = curve([0.0, DURATION])
    same(ends.pose, [T0, T1], 3e-14)
    same(ends.twist, [V0, V1], 3e-14)


def test_the_equations_hold_when_integrated_independently(case):
    """Ṙ = Rω̂, ω⃛ = ω̈ × ω and p⁗ = 0 as a system of first order, from the curve's own initial state."""
    (T0, _, V0, _), curve = case
    start, early = curve(0.0), 1e-3 * np.arange(9)
    omega_2 = [np.polynomial.Polynomial.fit(early, component, 8).deriv()(0.0)
               for component in curve(early).acceleration[:, :3].T]
    v0 = T0[:3, :3] @ V0[3:]
    a0 = start.pose[:3, :3] @ _covariant(start)[3:]
    jerk = (curve(DURATION).pose[:3, :3] @ _covariant(curve(DURATION))[3:] - a0) / DURATION

    def rate(t, y):
        R, omega, alpha, second = y[:9].reshape(3, 3), y[9:12], y[12:15], y[15:18]
        return np.concatenate([(R @ so3.hat(omega)).ravel(), alpha, second, np.cross(second, omega),
                               y[21:24], y[24:27], jerk])

    initial = np.concatenate([T0[:3, :3].ravel(), V0[:3], start.acceleration[:3], omega_2, T0[:3, 3], v0, a0])
    y = solve_ivp(rate, (0.0, DURATION), initial, method="DOP853", rtol=1e-12, atol=1e-12, t_eval=TIMES[::4]).y.T
    found = curve(TIMES[::4])
    same(found.pose[:, :3, :3], y[:, :9].reshape(-1, 3, 3), 1e-8)
    same(found.twist[:, :3], y[:, 9:12], 1e-8)
    same(found.pose[:, :3, 3], y[:, 18:21], 1e-10)


def test_the_residual_of_the_rotation_equation_vanishes(case):
    """R ω̈ is constant: so R(t) ω̈(t), from a polynomial through ω̇, is the same at all times."""
    _, curve = case
    nodes = DURATION * (1.0 - np.cos(np.pi * np.arange(41) / 40)) / 2.0
    motion = curve(nodes)
    second = np.stack([np.polynomial.Chebyshev.fit(nodes, component, 36).deriv()(nodes)
                       for component in motion.acceleration[:, :3].T], -1)
    constant = (motion.pose[:, :3, :3] @ second[..., None])[..., 0]
    same(constant, np.broadcast_to(constant[20], constant.shape), 2e-9 * (1.0 + np.abs(constant).max()))


def test_twist_and_acceleration_are_the_derivatives_of_the_pose(case):
    _, curve = case
    for t in (0.2, 0.9, 1.4):
        h = 1e-3
        at = {k: curve(t + k * h) for k in range(-3, 4)}

        def slope(of, at=at, h=h):
            return (45 * (of(at[1]) - of(at[-1])) - 9 * (of(at[2]) - of(at[-2])) + of(at[3]) - of(at[-3])) / (60 * h)

        Tdot = slope(lambda m: m.pose)
        same(se3.inverse(at[0].pose) @ Tdot, se3.hat(at[0].twist), 1e-9)
        same(slope(lambda m: m.twist), at[0].acceleration, 1e-9)


def _bumped(curve, bump, size):
    """∫|∇V|² of the curve T exp(size·bump(t)), with twist by the exact kinematics of the product."""
    motion = curve(TIMES)
    x, x1, x2 = (size * b for b in bump(TIMES))
    J, Jdot = se3.dexp(x), se3.dexp_dot(x, x1)
    back = se3.Ad_inv(se3.exp(x))
    own = (J @ x1[..., None])[..., 0]
    carried = (back @ motion.twist[..., None])[..., 0]
    twist = carried + own
    acceleration = (back @ motion.acceleration[..., None])[..., 0] - (se3.ad(own) @ carried[..., None])[..., 0] \
        + (J @ x2[..., None] + Jdot @ x1[..., None])[..., 0]
    nabla = _covariant(geodesics.Motion(motion.pose, twist, acceleration))
    return WEIGHTS @ (nabla**2).sum(-1)


def test_first_variation_vanishes_and_bumps_cost(case):
    """The cost is stationary against every bump that leaves poses and twists at the ends as they are."""
    _, curve = case
    rng = np.random.default_rng(8)
    for _ in range(4):
        u, n = rng.normal(size=6), rng.integers(0, 3)

        def bump(t, u=u, n=n):
            p = np.polynomial.Polynomial([0, 0, 1]) * np.polynomial.Polynomial([1, -1]) ** 2 \
                * np.polynomial.Polynomial([1, -0.7]) ** int(n)
            s = t / DURATION
            return [np.multiply.outer(p.deriv(k)(s) if k else p(s), u) / DURATION**k for k in (0, 1, 2)]

        plain = _bumped(curve, bump, 0.0)
        high, low = _bumped(curve, bump, 1e-3), _bumped(curve, bump, -1e-3)
        higher, lower = _bumped(curve, bump, 2e-3), _bumped(curve, bump, -2e-3)
        first = (8 * (high - low) - (higher - lower)) / 12e-3
        assert abs(first) < 1e-9 * (1.0 + plain)
        assert high > plain < low


def test_left_invariance(case):
    """Moving both ends by one G moves the curve by G and leaves its twists alone."""
    (T0, T1, V0, V1), curve = case
    G = se3.exp([0.4, -1.0, 2.0, 3.0, -2.0, 1.0])
    moved, plain = geodesics.minimum_acceleration(G @ T0, G @ T1, V0, V1, DURATION)(TIMES), curve(TIMES)
    same(moved.pose, G @ plain.pose, 2e-13)
    same(moved.twist, plain.twist, 2e-13)
    same(moved.acceleration, plain.acceleration, 2e-12)


def test_run_backwards_it_is_the_same_curve(case):
    (T0, T1, V0, V1), curve = case
    back = geodesics.minimum_acceleration(T1, T0, -V1, -V0, DURATION)(DURATION - TIMES)
    same(back.pose, curve(TIMES).pose, 1e-12)
    same(back.twist, -curve(TIMES).twist, 1e-12)


def test_about_one_axis_it_is_the_cubic():
    axis = np.array([2.0, -1.0, 2.0]) / 3.0
    curve = geodesics.minimum_acceleration(np.eye(4), se3.exp([*(1.2 * axis), 0, 0, 0]), [*(0.7 * axis), 0, 0, 0],
                                           [*(-0.4 * axis), 0, 0, 0], 2.0)
    s = np.linspace(0.0, 1.0, 7)
    angle = 1.4 * s + (3 * 1.2 - 2 * 1.4 + 0.8) * s**2 + (1.4 - 0.8 - 2 * 1.2) * s**3
    same(so3.log(curve(2.0 * s).pose[:, :3, :3]), np.multiply.outer(angle, axis), 4e-15)


FAST = _ends(20, 3.0)


def test_fast_ends_take_another_turn_and_still_meet_them():
    r, (omega0, omega1) = so3.log(FAST[0][:3, :3].T @ FAST[1][:3, :3]), (V[:3] for V in FAST[2:])
    assert geodesics._continue(r, omega0, omega1) is None    # the branch of the shortest rotation has ended before
    curve = geodesics.minimum_acceleration(*FAST)
    same(curve([0.0, 1.0]).pose, FAST[:2], 2e-13)
    same(curve([0.0, 1.0]).twist, FAST[2:], 2e-12)


def test_ends_too_fast_are_an_error_and_not_a_wrong_curve(monkeypatch):
    monkeypatch.setattr(geodesics, "_SMALLEST_STEP", 0.9)    # gives up at once
    with pytest.raises(RbdError, match="no minimum-acceleration rotation found with end velocities"):
        geodesics.minimum_acceleration(FAST[0], FAST[1], 4.0 * FAST[2], 4.0 * FAST[3])


def test_minimum_velocity_is_steady_rotation_along_a_straight_line():
    T0, T1, _, _ = _ends(3, 0.0)
    motion = geodesics.minimum_velocity(T0, T1, DURATION)(TIMES)
    s = TIMES / DURATION
    same(motion.pose[:, :3, 3], T0[:3, 3] + s[:, None] * (T1 - T0)[:3, 3], 2e-15)
    r = so3.log(T0[:3, :3].T @ T1[:3, :3])
    same(motion.pose[:, :3, :3], T0[:3, :3] @ so3.exp(s[:, None] * r), 3e-15)
    same(_covariant(motion), 0.0, 1e-15)
    length = WEIGHTS @ (motion.twist**2).sum(-1)
    assert length == pytest.approx((r @ r + ((T1 - T0)[:3, 3] ** 2).sum()) / DURATION, rel=1e-14)
    G = se3.exp([0.4, -1.0, 2.0, 3.0, -2.0, 1.0])
    moved = geodesics.minimum_velocity(G @ T0, G @ T1, DURATION)(TIMES)
    same(moved.pose, G @ motion.pose, 1e-14)
    same(moved.twist, motion.twist, 1e-14)


def test_minimum_velocity_by_half_a_turn():
    half_turn = np.diag([-1.0, -1.0, 1.0, 1.0])
    curve = geodesics.minimum_velocity(np.eye(4), half_turn)
    same(curve(1.0).pose, half_turn, 1e-15)
    same(np.abs(curve(0.5).twist), [0, 0, np.pi, 0, 0, 0], 1e-15)


def test_a_steady_rotation_needs_no_acceleration():
    T0, T1, _, _ = _ends(6, 0.0)
    steady = geodesics.minimum_velocity(T0, T1, DURATION)
    twists = steady([0.0, DURATION]).twist
    same(geodesics.minimum_acceleration(T0, T1, *twists, DURATION)(TIMES).pose, steady(TIMES).pose, 4e-15)


@pytest.mark.parametrize(("call", "message"), [
    (lambda: geodesics.minimum_velocity(np.eye(4), np.eye(4), 0.0), "duration: expected more than 0"),
    (lambda: geodesics.minimum_velocity(np.eye(3), np.eye(4)), "T0: expected shape"),
    (lambda: geodesics.minimum_velocity(np.eye(4), np.zeros((2, 4, 4))), r"T1: expected shape \(4, 4\), got"),
    (lambda: geodesics.minimum_acceleration(np.eye(4), np.eye(4), np.zeros(3), np.zeros(6)), "V0: expected shape"),
    (lambda: geodesics.minimum_velocity(np.eye(4), np.eye(4), 2.0)(2.1), r"t: expected 0 … 2.0 s"),
    (lambda: geodesics.minimum_velocity(np.eye(4), np.eye(4), [1.0, 2.0]), r"duration: expected shape \(\)"),
])
def test_wrong_inputs_are_named(call, message):
    with pytest.raises(RbdError, match=message):
        call()


def test_curves_cannot_be_changed():
    curve = geodesics.minimum_velocity(np.eye(4), np.eye(4))
    with pytest.raises(ValueError, match="read-only"):
        curve.translation[0] = 1.0
