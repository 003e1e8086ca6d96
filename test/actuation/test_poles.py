"""Gains from poles."""

import numpy as np
import pytest
from actuation.drives import MIXED, mixed, series

import rbd_ros as rbd
from rbd_ros.core.actuation.poles import gains_of


def test_the_polynomial_has_the_poles():
    poles = [-20.0, -30.0, -25.0 + 15.0j, -25.0 - 15.0j]
    g = gains_of(poles, 4)
    for p in poles:
        assert abs(p**4 + g[3] * p**3 + g[2] * p**2 + g[1] * p + g[0]) < 1e-9 * abs(p)**4
    np.testing.assert_allclose(gains_of(10.0, 4), [1e4, 4e3, 600.0, 40.0])
    np.testing.assert_allclose(gains_of(10.0, 2), [100.0, 20.0])
    np.testing.assert_allclose(gains_of([-3.0], 1), [3.0])


def test_each_drive_has_its_order():
    actuation = mixed(joint_2=MIXED["joint_2"] | {"damping": 5.0})
    assert actuation.orders.tolist() == [2, 3, 4, 4, 4, 4, 4]
    gains = rbd.FeedbackGains.placed(actuation, 10.0, {name: 5.0 for name in list(MIXED)[3:]})
    np.testing.assert_allclose(gains.links[:3], [[100.0, 20.0, 0.0, 0.0], [1000.0, 300.0, 30.0, 0.0],
                                                 [1e4, 4e3, 600.0, 40.0]])
    np.testing.assert_allclose(gains.stiffness, [[25.0, 10.0]] * 4)
    assert rbd.FeedbackGains.placed(series(), 3.0).stiffness.shape == (0, 2)


@pytest.mark.parametrize(("poles", "words"), [
    (-3.0, "bandwidth must be a positive number"), (0.0, "bandwidth"), (np.nan, "bandwidth"),
    ("fast", "poles: expected"),
    ([-1.0] * 3, "expected 4 poles, got 3"), ([-1.0, -1.0, -1.0, 0.0], "negative real part"),
    ([-1.0, -1.0, -1.0 + 1j, -1.0 + 1j], "conjugate pairs"), ([-1.0, -1.0, -1.0, -np.inf], "negative real part"),
    ({"joint_1": 3.0}, "poles of joint 'joint_2' are missing"), ({"joint_9": 3.0}, "unknown joint in poles 'joint_9'")])
def test_wrong_poles_are_named(poles, words):
    with pytest.raises(rbd.RbdError, match=words):
        rbd.FeedbackGains.placed(series(), poles)
