"""The inertial regressor, which is linear in what it is multiplied with, and the second derivatives."""

import numpy as np
import pytest
from support import complex_step
from support.robots import assert_close, random_state, urdf_paths
from support.trees import TYPES, random_tree

import rbd_ros as rbd


@pytest.mark.parametrize("kinds", [["revolute"] * 5, ["prismatic", "helical", "revolute", "cylindrical"],
                                   ["spherical_exponential", "revolute", "spherical_exponential"], TYPES])
@pytest.mark.parametrize("root", ["fixed", "floating"])
def test_regressor(kinds, root):
    model = random_tree(4, kinds, root=root)
    q, v, a = random_state(model, 4)
    Y = rbd.inertial_regressor(model, q, v, a)
    tau = Y @ model.inertial_parameters + model.armature * a
    assert_close(tau, rbd.inverse_dynamics(model, q, v, a), 1e-12)


@pytest.mark.skipif(not urdf_paths(), reason="example-robot-data is not installed")
@pytest.mark.parametrize("root", ["fixed", "floating"])
@pytest.mark.parametrize("name", ["panda_description/panda", "ur_description/ur5_robot", "talos_data/talos_reduced",
                                  "anymal_b_simple_description/anymal", "tiago_description/tiago"])
def test_regressor_against_pinocchio(name, root):
    """Pinocchio has a body per joint, whose ten parameters are the sum of those of its links: columns of the first."""
    pin = pytest.importorskip("pinocchio")
    from support import pinocchio_peer
    if name not in urdf_paths():
        pytest.skip("not in this version")
    peer = pinocchio_peer.peer(name, root)
    model = peer.model
    q, v, a = random_state(model, 2)
    P = peer.rates(q)
    theirs = P.T @ pin.computeJointTorqueRegressor(peer.pin, peer.data, peer.q(q), P @ v, P @ a)
    ours = rbd.inertial_regressor(model, q, v, a)
    compared = 0
    for spec in model.description.joints:
        if spec.name in model.joint_names:
            i, k = model.body_index(spec.child), peer.pin.getJointId(spec.name) - 1
            assert_close(ours[:, 10 * i:10 * i + 10], theirs[:, 10 * k:10 * k + 10], 1e-9, spec.name)
            compared += 1
    assert compared >= model.nv - 6


SECOND = {"chain": ["revolute"] * 4, "exponential": ["spherical_exponential", "prismatic", "helical"],
          "coordinates": ["universal", "planar", "spherical_euler"], "groups": ["spherical", "revolute", "floating"]}


@pytest.mark.parametrize("name", SECOND)
def test_second_derivatives(name):
    """Symmetry, differences of the first derivatives, and what is known: by v quadratic, ∂M."""
    model = random_tree(7, SECOND[name])
    q, v, a = random_state(model, 2)
    second = rbd.inverse_dynamics_second_derivatives(model, q, v, a)
    assert_close(second.vv, np.swapaxes(second.vv, 1, 2), 1e-12)
    assert_close(second.aq, np.swapaxes(second.aq, 0, 1), 1e-12)
    h = 1e-6
    first = [[rbd.inverse_dynamics_derivatives(model, model.integrate(q, s * h * e), v, a) for s in (1, -1)]
             for e in np.eye(model.nv)]
    for got, part, axis in ((second.qq, "q", -1), (second.qv, "v", 1), (second.aq, "a", -1)):
        rough = np.stack([(getattr(x, part) - getattr(y, part)) / (2 * h) for x, y in first], axis=axis)
        assert_close(got, rough, 1e-7, part)
    # quadratic in v: ∂τ/∂v (v) − ∂τ/∂v (0) = vv · v, and half of it v gives the velocity-dependent efforts
    rest = rbd.inverse_dynamics_derivatives(model, q, 0 * v, a).v
    full = rbd.inverse_dynamics_derivatives(model, q, v, a).v
    assert_close(second.vv @ v, full - rest, 1e-11)
    bias = rbd.bias_effort(model, q, v) - rbd.gravity_effort(model, q)
    assert_close(0.5 * np.einsum("ijk,j,k->i", second.vv, v, v), bias, 1e-11)
    twist = second.qq - np.swapaxes(second.qq, 1, 2)
    if name != "groups":
        assert np.abs(twist).max() <= 1e-11 * np.abs(second.qq).max()


def test_second_derivatives_of_a_rotation_differ_by_the_lie_bracket():
    model = random_tree(8, ["spherical", "revolute"])
    q, v, a = random_state(model, 2)
    second = rbd.inverse_dynamics_second_derivatives(model, q, v, a)
    by_q = rbd.inverse_dynamics_derivatives(model, q, v, a).q
    twist = second.qq - np.swapaxes(second.qq, 1, 2)
    for j in range(3):
        for k in range(3):
            bracket = np.zeros(model.nv)
            bracket[:3] = np.cross(np.eye(3)[k], np.eye(3)[j])
            assert np.abs(twist[:, j, k] - by_q @ bracket).max() <= 1e-11 * np.abs(second.qq).max()
    assert np.abs(twist[:, 3, :]).max() <= 1e-11 * np.abs(second.qq).max()


def test_second_derivatives_by_complex_step_of_the_first():
    """An independent kernel: the imaginary step through the regressor's recursion, differenced along v only."""
    model = random_tree(9, ["revolute", "spherical_exponential", "universal"])
    q, v, a = random_state(model, 2)
    second = rbd.inverse_dynamics_second_derivatives(model, q, v, a)
    one = np.eye(model.nv)
    for k in range(model.nv):
        # ∂τ/∂q is quadratic in v: the central difference of step 1 has no error
        parts = [complex_step.columns(lambda q, w=v + s * one[k]: complex_step.inverse_dynamics(model, q, w, a),
                                      (q, one))[0] for s in (1.0, -1.0)]
        assert_close(second.qv[:, :, k], (parts[0] - parts[1]) / 2, 1e-10)
