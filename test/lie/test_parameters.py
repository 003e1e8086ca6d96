"""Cayley–Rodrigues parameters and both trivialised differentials, against definitions and complex steps."""

import numpy as np
import pytest
from hypothesis import given, settings
from lie_exact import ANGLES, expm, rotation_vectors, screws, skew, vectors
from support.samples import samples

import rbd_ros as rbd

lie = rbd.lie
run = settings(max_examples=samples(30), deadline=None, derandomize=True)


def same(actual, expected, tolerance):
    np.testing.assert_allclose(actual, expected, rtol=0.0, atol=tolerance)


@run
@given(rotation_vectors(ANGLES.filter(lambda angle: angle < 3.1)))
def test_cayley_is_the_rotation_of_tan_half_the_angle(r):
    angle = np.linalg.norm(r)
    c = r * (np.tan(angle / 2) / angle if angle else 0.5)
    R = lie.cayley(c)
    same(R, expm(skew(r)), 4e-15)
    same(R, np.linalg.solve(np.eye(3) - skew(c), np.eye(3) + skew(c)), 1e-12 * (1 + c @ c))
    same(lie.cayley_inverse(R), c, 1e-14 * (1 + c @ c))


def test_differentials_of_cayley_by_a_complex_step():
    rng = np.random.default_rng(1)
    for size in (0.0, 1e-9, 0.5, 3.0, 50.0):
        c, rate = size * rng.normal(size=3), rng.normal(size=3)
        moved = c + 1e-30j * rate

        def hat(x):
            return np.array([[0, -x[2], x[1]], [x[2], 0, -x[0]], [-x[1], x[0], 0]])

        x = hat(moved)
        Rdot = (np.eye(3) + 2.0 * (x + x @ x) / (1.0 + moved @ moved)).imag / 1e-30
        R = lie.cayley(c)
        same(lie.rodrigues.dcayley_left(c) @ rate, lie.left_velocity(R, Rdot), 1e-12)
        same(lie.rodrigues.dcayley_right(c) @ rate, lie.right_velocity(R, Rdot), 1e-12)
        for side in ("left", "right"):
            there, back = (getattr(lie.rodrigues, f"{name}_{side}")(c) for name in ("dcayley", "dcayley_inverse"))
            same(there @ back, np.eye(3), 1e-12)


def test_half_a_turn_and_nearly():
    with pytest.raises(rbd.RbdError, match="half a turn"):
        lie.cayley_inverse(np.diag([-1.0, -1.0, 1.0]))
    same(lie.cayley([0.0, 0.0, 1e300]), np.diag([-1.0, -1.0, 1.0]), 1e-15)
    with pytest.raises(rbd.RbdError, match="c: expected shape"):
        lie.cayley(np.zeros(4))


@run
@given(screws(ANGLES), vectors(6))
def test_left_and_right_by_definition(xi, rate):
    """X⁻¹Ẋ and ẊX⁻¹ with Ẋ from the power series of an augmented matrix, for SE(3) and SO(3)."""
    def slope(A, B):
        n = len(A)
        return expm(np.block([[A, B], [np.zeros((n, n)), A]]))[:n, n:]

    for element, change, group in ((xi, rate, lie.se3), (xi[:3], rate[:3], lie.so3)):
        X = group.exp(element)
        Xdot = slope(np.asarray(group.hat(element)), np.asarray(group.hat(change)))
        left, right = lie.left_velocity(X, Xdot), lie.right_velocity(X, Xdot)
        bound = 1e-13 * (1 + np.linalg.norm(element) ** 2) * (1 + np.linalg.norm(change))
        same(lie.dexp_left(element) @ change, left, bound)
        same(lie.dexp_right(element) @ change, right, bound)
        if np.linalg.norm(element[:3]) < 3.0:
            same(lie.dlog_left(element) @ left, change, 1e2 * bound)
            same(lie.dlog_right(element) @ right, change, 1e2 * bound)
    same(lie.se3.Ad(lie.se3.exp(xi)) @ lie.dexp_left(xi), lie.dexp_right(xi), 1e-12 * (1 + np.linalg.norm(xi)) ** 2)


@pytest.mark.parametrize(("call", "message"), [
    (lambda: lie.dexp_left(np.zeros(4)), "xi: expected shape"), (lambda: lie.dlog_right([2 * np.pi, 0, 0]), "singular"),
    (lambda: lie.left_velocity(np.eye(4), np.eye(4)), "Xdot: expected a velocity"),
    (lambda: lie.right_velocity(np.eye(3), np.eye(4)), "Xdot: expected shape"),
    (lambda: lie.left_velocity(np.eye(5), np.eye(5)), "X: expected shape")])
def test_wrong_inputs_are_named(call, message):
    with pytest.raises(rbd.RbdError, match=message):
        call()
