"""Hybrid dynamics of trees against the dense solution of K eq. 33, 34, and its extremes."""

import numpy as np
import pytest
from support.robots import assert_close, build, chain, inertia, load, random_state, random_states, urdf_paths

import rbd_ros as rbd

# Fingers and neck links that weigh nothing: no acceleration follows from an effort there, so these get rotors.
MASSLESS = ("romeo_description/romeo", "romeo_description/romeo_laas_small", "icub_description/icub")
ROBOTS = [name for name in urdf_paths() if name != "ur_description/ur3"]    # a file with no links, refused at loading
STATES = 6


def check(model, mask, q, v, a, tau):
    M, b = rbd.mass_matrix(model, q), rbd.bias_effort(model, q, v)
    got = rbd.hybrid_dynamics(model, q, v, a, tau, mask)
    free = ~mask
    acceleration = a.copy()
    if free.any():
        rest = tau[free] - b[free] - M[np.ix_(free, mask)] @ a[mask]
        acceleration[free] = np.linalg.solve(M[np.ix_(free, free)], rest)
    effort = np.where(mask, M @ acceleration + b, tau)
    assert_close(got.acceleration, acceleration, 1e-9, "acceleration")
    assert_close(got.effort, effort, 1e-9, "effort")


@pytest.mark.skipif(not urdf_paths(), reason="example-robot-data is not installed")
@pytest.mark.parametrize("root", ["fixed", "floating"])
@pytest.mark.parametrize("name", ROBOTS)
def test_robots_with_random_masks(name, root):
    model = load(name, root=root, mimic="independent")
    if name in MASSLESS:
        rotors = np.full(model.nv, 0.01)
        rotors[:6 if root == "floating" else 0] = 0.0    # the base has none
        model = model.with_(armature=rotors)
    rng = np.random.default_rng(0)
    q, v, a = random_states(model, STATES, 1)
    tau = rbd.inverse_dynamics(model, q, v, rng.normal(size=a.shape))
    for i in range(len(q)):
        check(model, rng.random(model.nv) < rng.random(), q[i], v[i], a[i], tau[i])
    everything, nothing = np.ones(model.nv, dtype=bool), np.zeros(model.nv, dtype=bool)
    np.testing.assert_allclose(rbd.hybrid_dynamics(model, q, v, a, tau, everything).effort,
                               rbd.inverse_dynamics(model, q, v, a), rtol=1e-9,
                               atol=1e-9 * np.abs(tau).max(initial=0.0))
    assert_close(rbd.hybrid_dynamics(model, q, v, a, tau, nothing).acceleration,
                 rbd.forward_dynamics(model, q, v, tau), 1e-12)


@pytest.mark.parametrize("kind", ["spherical", "spherical_exponential", "planar", "cylindrical", "universal"])
@pytest.mark.parametrize("half", [[0], [1], [0, 1]])
def test_a_joint_of_several_coordinates_half_prescribed(kind, half):
    model = chain("revolute", kind, "revolute")
    q, v, a = random_state(model, 4)
    mask = np.zeros(model.nv, dtype=bool)
    mask[np.array(half) + 1] = True
    check(model, mask, q, v, a, np.arange(1.0, model.nv + 1.0))


def test_a_floating_base_half_prescribed():
    model = build([rbd.JointSpec("a", "revolute", "base", "a")], {"base": inertia()}, root="floating")
    q, v, a = random_state(model, 4)
    for mask in (np.arange(7) < 3, np.arange(7) % 2 == 0, np.arange(7) == 5):
        check(model, mask, q, v, a, np.arange(7.0))
