"""C v is the velocity part of the bias, Ṁ − 2C is skew-symmetric, on all joint types."""

import numpy as np
import pinocchio as pin
import pytest
from support.analytic import TERMS, motion
from support.pinocchio_peer import peer
from support.plain import plain
from support.robots import assert_close, random_state
from support.trees import TYPES, mimic_tree, random_tree

import rbd_ros as rbd
from rbd_ros.core.dynamics import mass_matrix
from rbd_ros.core.model import block

STEP = 1e-30


def mass_rate(model, q, v):
    """Ṁ along the motion, by a complex step in time."""
    positions = (1j * STEP) ** np.arange(TERMS) @ motion(model, q, [v])[0]
    W = np.zeros(mass_matrix.SIZE * int(model._block[block.NODES]), dtype=complex)
    H = np.zeros(model.nv**2, dtype=complex)
    plain(mass_matrix.mass_matrix_recursion)(model._block.astype(complex), positions, 0, W, H, 0)
    return H.reshape(model.nv, model.nv).imag / STEP


@pytest.mark.parametrize("root", ["fixed", "floating"])
@pytest.mark.parametrize("kind", [*TYPES, "all"])
def test_product_and_skewness(kind, root):
    model = random_tree(31, TYPES if kind == "all" else [kind, "revolute", kind], root=root)
    for seed in range(3):
        q, v, _ = random_state(model, seed)
        C, rate = rbd.coriolis_matrix(model, q, v), mass_rate(model, q, v)
        bias = rbd.bias_effort(model, q, v) - rbd.gravity_effort(model, q)
        scale = np.abs(C) @ np.abs(v)
        assert np.abs(C @ v - bias).max() < 1e-13 * max(scale.max(), np.abs(rbd.gravity_effort(model, q)).max(), 1.0)
        assert_close(C + C.T, rate, 1e-12)
        assert_close(rbd.coriolis_matrix(model, q, -2.5 * v), -2.5 * C, 1e-13)


def test_mimic_joints():
    tree = mimic_tree()
    q, v, _ = random_state(tree, 1)
    C = rbd.coriolis_matrix(tree, q, v)
    assert_close(C @ v + rbd.gravity_effort(tree, q), rbd.bias_effort(tree, q, v), 1e-13)
    assert_close(C + C.T, mass_rate(tree, q, v), 1e-12)


@pytest.mark.parametrize(("name", "root"), [("panda_description/panda", "fixed"), ("talos_data/talos_reduced",
                                                                                  "floating")])
def test_product_and_symmetric_part_against_pinocchio(name, root):
    """The matrix is not unique, the product with v and, Ṁ being C + Cᵀ, the symmetric part are."""
    p = peer(name, root)
    q, v, _ = random_state(p.model, 4)
    P = p.rates(q)
    theirs = P.T @ pin.computeCoriolisMatrix(p.pin, p.data, p.q(q), P @ v) @ P
    ours = rbd.coriolis_matrix(p.model, q, v)
    assert_close(ours @ v, theirs @ v, 1e-11)
    assert_close(ours + ours.T, theirs + theirs.T, 1e-11)
