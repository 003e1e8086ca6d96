"""Poses and twists: exact power series, group axioms, inverses, complex step."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lie_exact import ANGLES, PI, adjoint, expm, factorials, power_series, rotation_vectors, screws, skew, vectors
from support.samples import samples

from rbd_ros.core.errors import RbdError
from rbd_ros.core.lie import se3, so3

WIDE = st.one_of(ANGLES, st.floats(0.0, 6.0))
run = settings(max_examples=samples(40), deadline=None, derandomize=True)


def same(actual, expected, tolerance):
    np.testing.assert_allclose(actual, expected, rtol=0.0, atol=tolerance)


def size(*arrays):
    return float(np.prod([1.0 + np.linalg.norm(a) for a in arrays]))


@run
@given(screws(WIDE))
def test_exp_is_the_matrix_exponential(V):
    same(se3.exp(V), expm(se3.hat(V)), 1.5e-15 * size(V[3:]))
    same(se3.hat(V), np.block([[skew(V[:3]), V[3:, None]], [np.zeros((1, 4))]]), 0.0)
    same(se3.vee(se3.hat(V)), V, 0.0)


@run
@given(screws())
def test_log_inverts_exp(V):
    T = se3.exp(V)
    found = se3.log(T)
    if np.linalg.norm(V[:3]) < PI - 1e-11:
        same(found[:3], V[:3], 2e-15 * math.hypot(*V[:3]) + 1e-300)
        same(found, V, 6e-15 * size(V[3:]))
    assert np.linalg.norm(found[:3]) <= PI + 2e-15
    same(se3.exp(found), T, 6e-15 * size(V[3:]))


@run
@given(screws(WIDE), screws(WIDE), vectors(6))
def test_group_axioms_and_adjoints(V, W, X):
    T, S = se3.exp(V), se3.exp(W)
    scale = size(V[3:], W[3:], X)
    same(se3.inverse(T) @ T, np.eye(4), 2e-15 * scale)
    same(se3.inverse(T), se3.exp(-V), 4e-15 * scale)
    same(se3.compose(T, S, se3.inverse(T)), se3.exp(se3.Ad(T) @ W), 1e-14 * scale)
    same(se3.Ad(T @ S), se3.Ad(T) @ se3.Ad(S), 6e-15 * scale)
    same(se3.Ad_inv(T) @ se3.Ad(T), np.eye(6), 4e-15 * scale)
    same(se3.hat(se3.Ad(T) @ X), T @ se3.hat(X) @ se3.inverse(T), 6e-15 * scale)
    same(se3.Ad(T), expm(adjoint(V)), 4e-15 * scale)
    bracket = se3.hat(V) @ se3.hat(X) - se3.hat(X) @ se3.hat(V)
    same(se3.vee(bracket - np.diag(np.diag(bracket))), se3.ad(V) @ X, 1e-14 * scale)


@run
@given(screws(WIDE), vectors(6))
def test_dexp_is_the_body_frame_derivative_of_exp(V, Vdot):
    same(se3.dexp(V), power_series(adjoint(V), factorials(-1, 1)), 2e-15 * size(V[3:]))
    step = 1e-4                                            # six-point difference of the exact exponential
    weights = {1: 45 / 60, 2: -9 / 60, 3: 1 / 60}
    Tdot = sum(w * (expm(se3.hat(V + k * step * Vdot)) - expm(se3.hat(V - k * step * Vdot)))
               for k, w in weights.items()) / step
    same(se3.inverse(se3.exp(V)) @ Tdot, se3.hat(se3.dexp(V) @ Vdot), 1e-11 * size(V[3:], Vdot))


@run
@given(screws(WIDE))
def test_dexp_inv(V):
    pole = 1.0 + 1.0 / (2.0 * PI - np.linalg.norm(V[:3]))
    same(se3.dexp_inv(V) @ se3.dexp(V), np.eye(6), 1e-14 * size(V[3:]) * pole**2)
    same(se3.dexp_inv(V) @ V, V, 1e-14 * size(V[3:]) * pole**2)


@run
@given(screws(WIDE), vectors(6))
def test_dexp_dot_is_the_derivative_of_the_exact_series(V, Vdot):
    ad, rate = adjoint(V), adjoint(Vdot)
    both = np.block([[ad, rate], [np.zeros((6, 6)), ad]])    # f of this holds Df(ad)[rate] above the diagonal
    exact = power_series(both, factorials(-1, 1))[:6, 6:]
    same(se3.dexp_dot(V, Vdot), exact, 3e-15 * size(V[3:], Vdot))


@run
@given(vectors(3), vectors(3), rotation_vectors())
def test_poses_from_parts(xyz, rpy, r):
    T = se3.pose(xyz, rpy)
    same(T, se3.from_rotation(so3.from_rpy(rpy), xyz), 0.0)
    same(se3.from_rotation(so3.exp(r)), se3.exp([*r, 0.0, 0.0, 0.0]), 0.0)
    same(T @ [0.0, 0.0, 0.0, 1.0], [*xyz, 1.0], 0.0)


def test_small_parts_of_a_screw_keep_their_digits():
    V = np.array([1e-9, 2e-9, -1e-9, 3e-12, 1e-12, -2e-12])
    np.testing.assert_allclose(se3.log(se3.exp(V)), V, rtol=1e-15, atol=0.0)


def test_nothing_composes_to_the_identity():
    same(se3.compose(), np.eye(4), 0.0)


def test_batches_equal_single_calls():
    rng = np.random.default_rng(5)
    V, W = rng.normal(size=(2, 3, 2, 6))
    T, S = se3.exp(V), se3.exp(W)
    for function, arguments in [(se3.exp, (V,)), (se3.log, (T,)), (se3.hat, (V,)), (se3.vee, (se3.hat(V),)),
                                (se3.Ad, (T,)), (se3.Ad_inv, (T,)), (se3.ad, (V,)), (se3.inverse, (T,)),
                                (se3.dexp, (V,)), (se3.dexp_inv, (V,)), (se3.dexp_dot, (V, W)),
                                (se3.compose, (T, S)), (se3.pose, (V[..., :3], V[..., 3:]))]:
        batch = function(*arguments)
        for index in np.ndindex(3, 2):
            same(batch[index], function(*(a[index] for a in arguments)), 1e-15)


@pytest.mark.parametrize(("call", "message"), [
    (lambda: se3.exp(np.zeros(3)), r"V: expected shape \(…, 6\), got \(3,\)"),
    (lambda: se3.log(np.zeros((4, 4))), "T: expected a pose with the last row 0 0 0 1"),
    (lambda: se3.log(np.diag([1.0, 1.0, 2.0, 1.0])), "T, upper left block: expected a rotation"),
    (lambda: se3.inverse(np.eye(3)), r"T: expected shape \(…, 4, 4\)"),
    (lambda: se3.Ad(np.full((4, 4), np.nan)), "finite"),
    (lambda: se3.vee(np.eye(4)), "se\\(3\\)"),
    (lambda: se3.compose(np.eye(4), 2.0 * np.eye(4)), "pose 1: expected a pose"),
    (lambda: se3.pose((0.0, 0.0)), "xyz: expected shape"),
    (lambda: se3.dexp_inv([2.0 * PI, 0.0, 0.0, 1.0, 0.0, 0.0]), "singular"),
])
def test_wrong_inputs_are_named(call, message):
    with pytest.raises(RbdError, match=message):
        call()
