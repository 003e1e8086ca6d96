"""Robots of example-robot-data against MuJoCo: mass matrix, bias and inverse dynamics, of another code's making."""

import pytest
from support.robots import assert_close, random_states, urdf_paths

import rbd_ros as rbd

pytest.importorskip("mujoco")
if not urdf_paths():
    pytest.skip("example-robot-data is not installed", allow_module_level=True)

from support.mujoco_peer import Peer, stripped

ROBOTS = ["panda_description/panda", "ur_description/ur5_robot", "kinova_description/kinova", "solo_description/solo12",
          "z1_description/z1", "a1_description/a1", "xarm_description/xarm7",
          "talos_data/talos_reduced", "double_pendulum_description/double_pendulum"]
BOUND = 1e-9


@pytest.mark.filterwarnings("ignore::rbd_ros.RbdWarning")
@pytest.mark.parametrize("root", ["fixed", "floating"])
@pytest.mark.parametrize("name", ROBOTS)
def test_mass_matrix_bias_and_inverse_dynamics(name, root):
    text = stripped(urdf_paths()[name])
    model = rbd.load_urdf(text, root=root, mimic="independent")
    peer = Peer(model, text, root == "floating")
    assert peer.mj.nv == model.nv
    for q, v, a in zip(*random_states(model, 10, seed=1), strict=True):
        M, tau, bias = peer.update(q, v, a)
        assert_close(rbd.mass_matrix(model, q), M, BOUND, "mass matrix")
        assert_close(rbd.inverse_dynamics(model, q, v, a), tau, BOUND, "inverse dynamics")
        if root == "fixed":
            assert_close(rbd.bias_effort(model, q, v), bias, BOUND, "bias")
