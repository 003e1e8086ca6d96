"""Wrenches in other frames: power and energy stay; rates of all four maps by differences."""

import numpy as np
import pytest

from rbd_ros.core.lie import coadjoint, se3

RNG = np.random.default_rng(3)
T = se3.exp(RNG.normal(size=(5, 6)))
XI = RNG.normal(size=(5, 6))


def test_power_and_energy_do_not_depend_on_the_frame():
    V_a, F_a = RNG.normal(size=(2, 5, 6))
    V_b = (se3.Ad_inv(T) @ V_a[..., None])[..., 0]
    F_b = coadjoint.transform_wrench(T, F_a)
    np.testing.assert_allclose((V_a * F_a).sum(-1), (V_b * F_b).sum(-1), rtol=1e-13)
    np.testing.assert_allclose((coadjoint.Ad_star_inv(T) @ F_b[..., None])[..., 0], F_a, rtol=1e-12, atol=1e-13)
    X = RNG.normal(size=(5, 6, 6))
    inertia = X @ np.swapaxes(X, -1, -2)
    there = coadjoint.transform_inertia(T, inertia)
    np.testing.assert_allclose(np.einsum("ni,nij,nj->n", V_b, there, V_b), np.einsum("ni,nij,nj->n", V_a, inertia, V_a),
                               rtol=1e-12)


@pytest.mark.parametrize(("value", "rate"), [
    (se3.Ad, coadjoint.Ad_dot), (se3.Ad_inv, coadjoint.Ad_inv_dot), (coadjoint.Ad_star, coadjoint.Ad_star_dot),
    (coadjoint.Ad_star_inv, coadjoint.Ad_star_inv_dot)], ids=lambda function: function.__name__)
def test_rates(value, rate):
    """Fourth-order differences along T exp(ξ t)."""
    h = 1e-3
    f = {k: value(T @ se3.exp(k * h * XI)) for k in (-2, -1, 1, 2)}
    difference = (f[-2] - 8.0 * f[-1] + 8.0 * f[1] - f[2]) / (12.0 * h)
    np.testing.assert_allclose(rate(T, XI), difference, rtol=0.0, atol=1e-9)


def test_81_as_printed_and_88_with_its_inverse():
    """K eq. 81 has `Ṫ T⁻¹`; K eq. 88 is the rate of Ad*_{T⁻¹}, not of Ad*_T, as one scan has it."""
    spatial = (se3.Ad(T) @ XI[..., None])[..., 0]
    np.testing.assert_allclose(se3.ad(spatial) @ se3.Ad(T), coadjoint.Ad_dot(T, XI), rtol=1e-11, atol=1e-12)
    printed = -coadjoint.Ad_star(T) @ coadjoint.ad_star(XI)
    assert np.abs(printed - coadjoint.Ad_star_dot(T, XI)).max() > 1.0


def test_momentum_in_moving_axes():
    """K eq. 28: components of a constant wrench of the world change by ad*_V Y in axes that move by V."""
    Y = RNG.normal(size=(5, 6))
    h = 1e-4
    there = [coadjoint.transform_wrench(T @ se3.exp(k * h * XI), Y) for k in (-1, 1)]
    rate = (coadjoint.ad_star(XI) @ coadjoint.transform_wrench(T, Y)[..., None])[..., 0]
    np.testing.assert_allclose((there[1] - there[0]) / (2.0 * h), rate, atol=1e-6)
