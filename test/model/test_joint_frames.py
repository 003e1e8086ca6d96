"""The frames that the builder aligns with joint axes."""

import numpy as np
import pytest
from support.robots import build

import rbd_ros as rbd
from rbd_ros.core.model.joints import aligning_rotation, unit

AXES = [(1, 0, 0), (0, 1, 0), (0, 0, 1), (-1, 0, 0), (0, -1, 0), (0, 0, -1), (0.6, 0, 0.8), (1, 1, 1), (1, -2, 3),
        (0, -1, -4.37114e-8), (1e-9, 0, 1), (-1, 1e-8, 1e-12), (3e-5, 1, 0)]


@pytest.mark.parametrize("axis", AXES, ids=str)
def test_aligning_rotation_has_the_axis_as_third_column(axis):
    a = unit(axis, "joint")
    R = aligning_rotation(a)
    np.testing.assert_allclose(R[:, 2], a, rtol=0, atol=1e-16)
    np.testing.assert_allclose(R.T @ R, np.eye(3), rtol=0, atol=4e-15)    # unit() leaves 1e-15
    assert np.linalg.det(R) == pytest.approx(1.0, abs=4e-15)


@pytest.mark.parametrize("axis", AXES[:6], ids=str)
def test_coordinate_axes_are_aligned_without_rounding(axis):
    R = aligning_rotation(unit(axis, "joint"))
    assert sorted(np.abs(R).ravel()) == [0.0] * 6 + [1.0] * 3


@pytest.mark.parametrize("kind", ["revolute", "prismatic"])
def test_an_axis_that_is_almost_a_coordinate_axis_is_not_rounded_to_it(kind):
    tilt = 4.37114e-8    # as in a description that was exported in single precision
    model = build([rbd.JointSpec("j", kind, "base", "link", axis=(0.0, -1.0, tilt))])
    J = rbd.jacobian(model, [0.3], "link")[:, 0]
    assert J[2 if kind == "revolute" else 5] == pytest.approx(tilt, rel=1e-12)


@pytest.mark.parametrize("axis, message", [((0, 0, 0), "length zero"), ((0, np.nan, 1), "finite"), ((1, 0), "three")])
def test_a_bad_axis_is_named_with_its_joint(axis, message):
    with pytest.raises(rbd.RbdError, match=f"'elbow'.*{message}"):
        build([rbd.JointSpec("elbow", "revolute", "base", "link", axis=axis)])
