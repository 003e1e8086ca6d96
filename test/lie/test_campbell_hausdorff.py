"""BCH against the logarithm of the product in 60 digits: the order of every truncation, and its error term."""

import numpy as np
import pytest
from lie_exact import skew
from support.robots import assert_close

import rbd_ros as rbd

mpmath = pytest.importorskip("mpmath")
lie = rbd.lie


def exact(X, Y, size):
    """log(exp(size X) exp(size Y)) as a vector of mpmath numbers."""
    def matrix(x):
        dense = skew(x) if len(x) == 3 else np.block([[skew(x[:3]), x[3:, None]], [np.zeros((1, 4))]])
        return mpmath.matrix(dense) * size

    log = mpmath.logm(mpmath.expm(matrix(X)) * mpmath.expm(matrix(Y)))
    vector = [log[2, 1], log[0, 2], log[1, 0]]
    return vector if len(X) == 3 else vector + [log[i, 3] for i in range(3)]


@pytest.mark.parametrize("dimension", [3, 6])
@pytest.mark.parametrize("order", range(1, 9))
def test_the_order_and_the_error_term(order, dimension):
    """At size h the series is off by the error term, up to a share that falls with h: so by O(h^(order + 1))."""
    X, Y = np.random.default_rng(order + 10).normal(size=(2, dimension))
    found, shares = [], []
    with mpmath.workdps(60):
        for size in (0.2, 0.1, 0.05):
            wanted = exact(X, Y, mpmath.mpf(size))
            value, term = lie.bch(size * X, size * Y, order)
            left = np.array([float(w - mpmath.mpf(v)) for w, v in zip(wanted, value, strict=True)])
            found.append(np.linalg.norm(left))
            shares.append(np.linalg.norm(left - term) / np.linalg.norm(term))
    clear = [error > 1e-14 for error in found]
    assert clear[0] and shares[0] < 0.7
    for k in (1, 2):
        if clear[k]:
            assert np.log2(found[k - 1] / found[k]) == pytest.approx(order + 1, abs=0.5 / k)
            assert shares[k] < 0.6 * shares[k - 1]


def test_what_is_exact():
    """Commuting arguments, and the printed terms of P eq. 4 as corrected."""
    X, Y = np.random.default_rng(3).normal(size=(2, 6))
    value, term = lie.bch(X, 2.5 * X, 8)
    assert_close(value, 3.5 * X, 1e-14)
    assert np.abs(term).max() < 1e-13 * np.abs(X).max() ** 9
    ad = lie.se3.ad
    second = ad(X) @ Y
    assert_close(lie.bch(X, Y, 3).value, X + Y + second / 2 + (ad(X) @ second - ad(Y) @ second) / 12, 1e-14)
    assert_close(lie.bch(X, Y, 2).error_term, (ad(X) @ second - ad(Y) @ second) / 12, 1e-14)


def test_the_inverse_and_batches():
    """log of the inverse: BCH(−Y, −X) = −BCH(X, Y), term by term; leading axes are batches."""
    X, Y = np.random.default_rng(4).normal(size=(2, 5, 6))
    plain, inverse = lie.bch(X, Y[0], 7), lie.bch(-Y[0], -X, 7)
    assert_close(inverse.value, -plain.value, 1e-13)
    assert_close(inverse.error_term, -plain.error_term, 1e-12)
    for k in range(5):
        assert_close(lie.bch(X[k], Y[0], 7).value, plain.value[k], 1e-14)


@pytest.mark.parametrize(("call", "message"), [
    (lambda: lie.bch(np.zeros(6), np.zeros(6), 9), "order: expected a whole number 1 … 8"),
    (lambda: lie.bch(np.zeros(6), np.zeros(6), True), "order"),
    (lambda: lie.bch(np.zeros(6), np.zeros(3)), "one group"),
    (lambda: lie.bch(np.zeros(4), np.zeros(4)), r"X: expected shape \(…, 3\)"),
    (lambda: lie.bch(np.full(3, np.inf), np.zeros(3)), "X: expected finite"),
    (lambda: lie.bch("x", np.zeros(3)), "X: expected"), (lambda: lie.bch([[1.0], [2.0, 3.0]], np.zeros(3)), "X: exp")])
def test_wrong_inputs_are_named(call, message):
    with pytest.raises(rbd.RbdError, match=message):
        call()
