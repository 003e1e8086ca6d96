"""Generalized momentum is M v; its rate without efforts is that of the Coriolis matrix, and of M and bias, for all
joint types."""
from __future__ import annotations

import numpy as np
import pytest
from support.robots import assert_close, random_state
from support.trees import TYPES, mimic_tree, random_tree

import rbd_ros as rbd


@pytest.mark.parametrize("root", ["fixed", "floating"])
@pytest.mark.parametrize("kind", [*TYPES, "all", "mimic"])
def test_momentum_and_rate(kind, root):
    if kind == "mimic":
        if root == "floating":
            pytest.skip("one tree with mimic joints")
        model = mimic_tree()
    else:
        model = random_tree(41, TYPES if kind == "all" else [kind, "revolute", kind], root=root)
    for seed in range(3):
        q, v, _ = random_state(model, seed)
        found = rbd.generalized_momentum(model, q, v)
        assert_close(found.momentum, rbd.mass_matrix(model, q) @ v, 1e-13)
        C, gravity = rbd.coriolis_matrix(model, q, v), rbd.gravity_effort(model, q)
        size = np.abs(C.T) @ np.abs(v) + np.abs(gravity)
        assert np.abs(found.rate - (C.T @ v - gravity)).max() < 1e-12 * max(size.max(), 1.0)


@pytest.mark.parametrize("seed", range(4))
def test_it_changes_by_efforts_alone(seed):
    model = random_tree(seed, TYPES, root="floating")
    q, v, a = random_state(model, seed)
    h = 1e-5
    after, before = (rbd.generalized_momentum(model, model.integrate(q, s * h * v + 0.5 * h * h * a), v + s * h * a)
                     for s in (1.0, -1.0))
    change = (after.momentum - before.momentum) / (2.0 * h)
    tau = rbd.inverse_dynamics(model, q, v, a)
    exact = tau + rbd.generalized_momentum(model, q, v).rate
    fixed = [joint for joint in model.joints if not joint.type.startswith("spherical")]
    rows = np.concatenate([np.arange(joint.idx_v, joint.idx_v + joint.nv) for joint in fixed])
    assert np.abs(change - exact)[rows].max() < 1e-6 * max(np.abs(exact).max(), 1.0)


def test_batches():
    model = rbd.sample("iiwa")
    rng = np.random.default_rng(0)
    q, v = np.array([model.random_configuration(rng) for _ in range(5)]), rng.normal(size=(5, 7))
    many = rbd.generalized_momentum(model, q, v)
    for k in range(5):
        one = rbd.generalized_momentum(model, q[k], v[k])
        np.testing.assert_array_equal(one.momentum, many.momentum[k])
        np.testing.assert_array_equal(one.rate, many.rate[k])
    with pytest.raises(rbd.RbdError, match="v has shape"):
        rbd.generalized_momentum(model, q[0], v[0, :3])
    with pytest.raises(rbd.RbdError, match="finite"):
        rbd.generalized_momentum(model, q[0], np.nan * v[0])
