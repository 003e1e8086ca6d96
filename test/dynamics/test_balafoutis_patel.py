"""G's recursion equals K Table 2, its partials those by a complex step."""

import numpy as np
import pytest
from support.analytic import inverse_dynamics_recursion
from support.robots import assert_close, load, random_state
from support.trees import random_tree

import rbd_ros as rbd
from rbd_ros.core.dynamics import balafoutis_patel as bp
from rbd_ros.core.dynamics import inverse
from rbd_ros.core.model import block

STEP = 1e-30
KINDS = ["revolute", "prismatic", "helical", "cylindrical", "translation", "universal", "planar", "spherical_euler",
         "composite"]


def mimic():
    joints = [rbd.JointSpec("a", "revolute", "l0", "l1", position=np.array([0.1, 0.2, 0.3])),
              rbd.JointSpec("b", "prismatic", "l1", "l2", mimic=("a", -0.3, 0.1)),
              rbd.JointSpec("c", "revolute", "l1", "l3", axis=(0.0, 1.0, 0.0), mimic=("a", 2.0, 0.1))]
    body = rbd.Inertia(1.3, np.array([0.1, -0.2, 0.3]), np.diag([0.02, 0.03, 0.04]))
    links = {"l0": rbd.Inertia.zero(), "l1": body, "l2": body, "l3": body}
    return rbd.RobotModel.from_description(rbd.Description("mimic", links, tuple(joints)))


MODELS = {"tree": lambda: random_tree(41, KINDS), "another tree": lambda: random_tree(42, KINDS), "mimic": mimic,
          "panda": lambda: load("panda_description/panda"), "iiwa": lambda: rbd.sample("iiwa")}


def complex_step(model, q, v, a, direction):
    M = model._block.astype(complex)
    W = np.zeros(inverse.SIZE * int(model._block[block.NODES]), dtype=complex)
    tau = np.zeros(model.nv, dtype=complex)
    q, v, a = (x + 1j * STEP * d for x, d in zip((q, v, a), direction, strict=True))
    inverse_dynamics_recursion(M, q, 0, v, a, 0, W[:0], 0, W, tau)
    return tau.imag / STEP


@pytest.mark.parametrize("name", MODELS)
def test_efforts_and_partials(name):
    model = MODELS[name]()
    for seed in range(3):
        state = random_state(model, seed)
        found = bp.balafoutis_patel(model, *state)
        assert_close(found.effort, rbd.inverse_dynamics(model, *state), 1e-12)
        for kind, partial in enumerate(found[1:]):
            for j, e in enumerate(np.eye(model.nv)):
                direction = [e if k == kind else 0.0 * e for k in range(3)]
                assert np.abs(partial[:, j] - complex_step(model, *state, direction)).max() < 1e-12 * np.abs(
                    partial).max()
        assert_close(found.a, rbd.mass_matrix(model, state[0]), 1e-12)


def test_what_it_does_not_take_is_said():
    model = rbd.sample("two_link", root="floating")
    with pytest.raises(rbd.RbdError, match="revolute"):
        bp.balafoutis_patel(model, model.neutral(), np.zeros(8), np.zeros(8))
    model = rbd.sample("two_link")
    with pytest.raises(rbd.RbdError, match="one state"):
        bp.balafoutis_patel(model, np.zeros((2, 2)), np.zeros(2), np.zeros(2))
