"""Rotations: exact power series, group axioms, inverses, complex step; near 0 and π, and exactly there."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lie_exact import (
    ANGLES,
    PI,
    complex_step,
    expm,
    factorials,
    power_series,
    rotation_vectors,
    skew,
    vectors,
)
from scipy.spatial.transform import Rotation
from support.samples import samples

from rbd_ros.core.errors import RbdError
from rbd_ros.core.lie import so3

WIDE = st.one_of(ANGLES, st.floats(0.0, 6.0))    # beyond π, short of the pole at 2π
run = settings(max_examples=samples(60), deadline=None, derandomize=True)


def same(actual, expected, tolerance):
    np.testing.assert_allclose(actual, expected, rtol=0.0, atol=tolerance)


@run
@given(rotation_vectors(WIDE))
def test_exp_is_the_matrix_exponential(r):
    same(so3.exp(r), expm(skew(r)), 1.2e-15)
    relative = np.linalg.norm(so3.exp(r) - so3.exp(r).T - 2.0 * np.sinc(np.linalg.norm(r) / PI) * skew(r))
    assert relative <= 1e-15 * np.linalg.norm(r) + 1e-300


@run
@given(rotation_vectors(WIDE), rotation_vectors(WIDE))
def test_group_axioms(r, s):
    R, S = so3.exp(r), so3.exp(s)
    same(R.T @ R, np.eye(3), 2e-15)
    assert np.linalg.det(R) == pytest.approx(1.0, abs=2e-15)
    same(so3.exp(-r) @ R, np.eye(3), 2e-15)
    same(so3.exp(2.0 * r), R @ R, 4e-15)
    same(R @ S @ R.T, so3.exp(R @ s), 6e-15)
    same(so3.exp(np.zeros(3)), np.eye(3), 0.0)


@run
@given(rotation_vectors(), vectors())
def test_hat_is_the_cross_product_and_vee_its_inverse(r, y):
    same(so3.hat(r) @ y, np.cross(r, y), 1e-15 * (1.0 + np.linalg.norm(y)) * 4)
    same(so3.vee(so3.hat(r)), r, 0.0)


@run
@given(rotation_vectors())
def test_log_inverts_exp_with_relative_precision(r):
    found = so3.log(so3.exp(r))
    angle = math.hypot(*r)
    assert np.linalg.norm(found) <= PI + 2e-15
    if angle > PI - 1e-11 and found @ r < 0.0:    # r and −r are one rotation at π
        found = -found * (2.0 * PI / np.linalg.norm(found) - 1.0)
    same(found, r, 2e-15 * angle + 1e-300)
    same(so3.exp(so3.log(so3.exp(r))), so3.exp(r), 3e-15)


@run
@given(rotation_vectors(st.just(1.0)))
def test_log_at_exactly_pi(axis):
    R = 2.0 * np.outer(axis, axis) - np.eye(3)
    r = so3.log(R)
    assert np.linalg.norm(r) == pytest.approx(PI, abs=1e-15)
    same(np.abs(r @ axis), PI, 2e-15)


@pytest.mark.parametrize("half_turn", [(1, -1, -1), (-1, 1, -1), (-1, -1, 1)])
def test_log_of_half_turns_about_the_axes(half_turn):
    same(np.abs(so3.log(np.diag(half_turn))), PI * (np.array(half_turn) > 0), 0.0)


def test_log_takes_the_short_way():
    same(so3.log(so3.exp([0.0, 4.0, 0.0])), [0.0, 4.0 - 2.0 * PI, 0.0], 2e-15)


@run
@given(rotation_vectors(WIDE), vectors())
def test_dexp_is_the_body_frame_derivative_of_exp(r, rdot):
    same(so3.dexp(r), power_series(skew(r), factorials(-1, 1)), 1e-15)
    derivative = complex_step(so3.exp_map, r, rdot).reshape(3, 3)
    same(so3.exp(r).T @ derivative, skew(so3.dexp(r) @ rdot), 4e-15 * (1.0 + np.linalg.norm(rdot)))
    same(so3.dexp(-r), so3.dexp(r).T, 0.0)


@run
@given(rotation_vectors(WIDE))
def test_dexp_inv(r):
    pole = 1.0 / (2.0 * PI - np.linalg.norm(r))
    same(so3.dexp_inv(r) @ so3.dexp(r), np.eye(3), 4e-15 * (1.0 + pole))
    same(so3.dexp_inv(r) @ r, r, 4e-15 * (1.0 + pole))


def test_dexp_inv_near_zero_is_its_power_series():
    r = np.array([0.02, -0.01, 0.03])
    same(so3.dexp_inv(r), np.eye(3) + skew(r) / 2 + skew(r) @ skew(r) / 12
         - np.linalg.matrix_power(skew(r), 4) / 720 + np.linalg.matrix_power(skew(r), 6) / 30240, 2e-16)


@run
@given(rotation_vectors(WIDE), vectors(), vectors())
def test_derivatives_of_dexp_by_complex_step(r, u, w):
    size = (1.0 + np.linalg.norm(u)) * (1.0 + np.linalg.norm(w))
    same(so3.dexp_dot(r, u), complex_step(so3.right_jacobian, r, u).reshape(3, 3), 2e-15 * size)
    second = complex_step(lambda at: so3.right_jacobian_dot(at, tuple(complex(x) for x in w)), r, u)
    same(so3.dexp_second(r, u, w), second.reshape(3, 3), 2e-15 * size)
    same(so3.dexp_second(r, u, w), so3.dexp_second(r, w, u), 1e-15 * size)


@run
@given(rotation_vectors(WIDE), rotation_vectors(WIDE), st.floats(0.1, 10.0))
def test_quaternions_agree_with_matrices(r, s, length):
    p, q = so3.exp_quaternion(r), so3.exp_quaternion(s)
    assert np.linalg.norm(p) == pytest.approx(1.0, abs=4e-16)
    same(so3.from_quaternion(p), so3.exp(r), 2e-15)
    same(so3.from_quaternion(p), Rotation.from_quat(p).as_matrix(), 2e-15)
    same(so3.from_quaternion(-length * p), so3.from_quaternion(p), 2e-15)
    product = np.array(so3.quaternion_multiply(tuple(p), tuple(q)))
    same(so3.from_quaternion(product), so3.exp(r) @ so3.exp(s), 4e-15)
    back = so3.to_quaternion(so3.exp(r))
    same(back * np.sign(back @ p), p, 1e-15)


@run
@given(rotation_vectors(), st.sampled_from([1.0, -1.0, 3.0, -0.2]))
def test_quaternion_log_inverts_exp_with_relative_precision(r, factor):
    found = so3.log_quaternion(factor * so3.exp_quaternion(r))
    angle = math.hypot(*r)
    if angle > PI - 1e-11 and found @ r < 0.0:
        found = -found * (2.0 * PI / np.linalg.norm(found) - 1.0)
    same(found, r, 2e-15 * angle + 1e-300)
    assert np.linalg.norm(found) <= PI + 2e-15


@run
@given(rotation_vectors(st.floats(0.0, 3.1)), vectors())
def test_complex_step_through_the_quaternion(r, rdot):
    q = so3.exp_quaternion(r)
    rate = complex_step(so3.quaternion_exp, r, rdot)
    omega = so3.dexp(r) @ rdot
    spin = np.array(so3.quaternion_multiply(tuple(q), (*(omega / 2), 0.0)))
    same(rate, spin, 2e-15 * (1.0 + np.linalg.norm(rdot)))
    back = complex_step(lambda z: so3.quaternion_log(*z), q, rate)
    same(back, rdot, 4e-14 * (1.0 + np.linalg.norm(rdot)))


@run
@given(vectors())
def test_rpy_are_the_fixed_axis_angles_of_urdf(rpy):
    same(so3.from_rpy(rpy), Rotation.from_euler("xyz", rpy).as_matrix(), 2e-15)


def test_batches_equal_single_calls():
    rng = np.random.default_rng(3)
    r, u, w = rng.normal(size=(3, 2, 4, 3))
    for function, arguments in [(so3.exp, (r,)), (so3.dexp, (r,)), (so3.dexp_inv, (r,)), (so3.dexp_dot, (r, u)),
                                (so3.dexp_second, (r, u, w)), (so3.exp_quaternion, (r,)), (so3.from_rpy, (r,)),
                                (so3.hat, (r,)), (so3.log, (so3.exp(r),)), (so3.vee, (so3.hat(r),)),
                                (so3.to_quaternion, (so3.exp(r),)), (so3.from_quaternion, (so3.exp_quaternion(r),)),
                                (so3.log_quaternion, (so3.exp_quaternion(r),))]:
        batch = function(*arguments)
        for index in np.ndindex(2, 4):
            np.testing.assert_array_equal(batch[index], function(*(a[index] for a in arguments)), function.__name__)
    assert so3.exp(np.zeros((0, 3))).shape == (0, 3, 3)
    assert so3.log(np.zeros((0, 3, 3))).shape == (0, 3)


def test_lists_integers_and_read_only_arrays():
    fixed = np.arange(6.0)[::2]
    fixed.setflags(write=False)
    same(so3.exp([0, 2, 4]), so3.exp(fixed), 0.0)


@pytest.mark.parametrize(("call", "message"), [
    (lambda: so3.exp([1.0, 2.0]), r"r: expected shape \(…, 3\), got \(2,\)"),
    (lambda: so3.exp(1.0), r"r: expected shape \(…, 3\), got \(\)"),
    (lambda: so3.exp([1.0, np.nan, 0.0]), "r: expected finite numbers, got nan"),
    (lambda: so3.exp([1.0, 2j, 0.0]), "r: expected real numbers"),
    (lambda: so3.exp("abc"), "r: expected real numbers"),
    (lambda: so3.dexp_dot([0.0, 0.0, 1.0], [0.0, np.inf, 1.0]), "rdot: expected finite"),
    (lambda: so3.log(1.01 * np.eye(3)), "R: expected a rotation matrix"),
    (lambda: so3.log(-np.eye(3)), "determinant -1"),
    (lambda: so3.vee(np.eye(3)), "skew"),
    (lambda: so3.dexp_inv([0.0, 2.0 * PI, 0.0]), "singular"),
    (lambda: so3.dexp_inv([0.0, 0.0, -4.0 * PI]), "singular"),
    (lambda: so3.log_quaternion([0.0, 0.0, 0.0, 0.0]), "length zero"),
    (lambda: so3.from_quaternion(np.eye(3)), r"shape \(…, 4\)"),
])
def test_wrong_inputs_are_named(call, message):
    with pytest.raises(RbdError, match=message):
        call()
