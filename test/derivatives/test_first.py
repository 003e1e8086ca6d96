"""First derivatives of inverse, forward and hybrid dynamics: complex step, Pinocchio on every robot, dense algebra."""

import numpy as np
import pytest
from support import complex_step
from support.robots import assert_close, load, random_state, random_states, urdf_paths
from support.trees import TYPES, random_tree

import rbd_ros as rbd

BOUND = 1e-10
TREES = {
    "chain": {"kinds": ["revolute"] * 6}, "sliding": {"kinds": ["prismatic", "revolute", "helical", "cylindrical"]},
    "spherical": {"kinds": ["spherical", "revolute", "spherical"]},
    "exponential": {"kinds": ["spherical_exponential", "revolute", "spherical_exponential", "prismatic"]},
    "universal": {"kinds": ["universal", "spherical_euler", "universal"]}, "planar": {"kinds": ["planar", "planar"]},
    "floating": {"kinds": ["revolute", "spherical", "universal"], "root": "floating"},
    "all": {"kinds": list(TYPES)}, "all on a floating root": {"kinds": list(TYPES), "root": "floating"},
}
each_tree = pytest.mark.parametrize("name", TREES)


def tree(name):
    return random_tree(sorted(TREES).index(name), **TREES[name])


def by_tangent(model, q):
    return q, complex_step.tangents(model, q)


@each_tree
def test_inverse_dynamics_by_complex_step(name):
    model = tree(name)
    for seed in range(3):
        q, v, a = random_state(model, seed)
        F = np.random.default_rng(seed).normal(size=(len(model.body_names), 6))
        one = np.eye(model.nv)
        for wrenches in (None, F):
            flat = complex_step.wrenches_of(model, wrenches)
            expected = complex_step.columns(lambda *x, w=flat: complex_step.inverse_dynamics(model, *x, w),
                                            by_tangent(model, q), (v, one), (a, one))
            found = rbd.inverse_dynamics_derivatives(model, q, v, a, wrenches)
            for part, want, what in zip(found, expected, "qva", strict=True):
                assert_close(part, want, BOUND, f"∂τ/∂{what}, seed {seed}")


@each_tree
def test_forward_and_hybrid_dynamics_by_complex_step(name):
    model = tree(name)
    one = np.eye(model.nv)
    for seed in range(3):
        q, v, a = random_state(model, seed)
        rng = np.random.default_rng(seed)
        tau = rng.normal(size=model.nv)
        F = rng.normal(size=(len(model.body_names), 6))
        flat = complex_step.wrenches_of(model, F)
        no_mask, mask = np.zeros(0, dtype=bool), rng.random(model.nv) < 0.5

        def forward(q, v, tau, flat=flat, mask=no_mask):
            return complex_step.hybrid_dynamics(model, q, v, 0 * v, tau, mask, flat)[0]

        def sought(q, v, given, flat=flat, mask=mask):
            acceleration, effort = complex_step.hybrid_dynamics(model, q, v, given, given, mask, flat)
            return np.where(mask, effort, acceleration)

        expected = complex_step.columns(forward, by_tangent(model, q), (v, one), (tau, one))
        for part, want, what in zip(rbd.forward_dynamics_derivatives(model, q, v, tau, F), expected, "qvt",
                                    strict=True):
            assert_close(part, want, BOUND, f"∂a/∂{what}, seed {seed}")
        expected = complex_step.columns(sought, by_tangent(model, q), (v, one), (np.where(mask, a, tau), one))
        for part, want, what in zip(rbd.hybrid_dynamics_derivatives(model, q, v, a, tau, mask, F), expected, "qvg",
                                    strict=True):
            assert_close(part, want, BOUND, f"hybrid by {what}, seed {seed}")


@each_tree
def test_hybrid_limits_are_inverse_and_forward(name):
    model = tree(name)
    q, v, a = random_state(model, 7)
    tau = rbd.inverse_dynamics(model, q, v, a)
    everything, nothing = np.ones(model.nv, dtype=bool), np.zeros(model.nv, dtype=bool)
    hybrid = rbd.hybrid_dynamics_derivatives(model, q, v, a, tau, everything)
    for part, want in zip(hybrid, rbd.inverse_dynamics_derivatives(model, q, v, a), strict=True):
        assert_close(part, want, 1e-11)
    hybrid = rbd.hybrid_dynamics_derivatives(model, q, v, a, tau, nothing)
    for part, want in zip(hybrid, rbd.forward_dynamics_derivatives(model, q, v, tau), strict=True):
        assert_close(part, want, 1e-11)


def test_branches_do_not_touch():
    """Zeros are zeros, not small numbers."""
    model = random_tree(3, ["revolute"] * 9)
    q, v, a = random_state(model, 1)
    M = rbd.mass_matrix(model, q)
    assert (M == 0.0).any()
    for part in rbd.inverse_dynamics_derivatives(model, q, v, a):
        assert (part[M == 0.0] == 0.0).all()


def test_far_from_the_origin_no_digits_are_lost():
    model = random_tree(5, ["revolute", "spherical", "universal"], root="floating")
    q, v, a = random_state(model, 1)
    far = q.copy()
    far[:3] += [4e6, -3e6, 1e6]
    for near, away in zip(rbd.inverse_dynamics_derivatives(model, q, v, a),
                          rbd.inverse_dynamics_derivatives(model, far, v, a), strict=True):
        assert_close(away, near, 1e-8)    # positions themselves are known to 1e-9 there


def test_small_rotations_of_exponential_coordinates():
    model = random_tree(6, ["spherical_exponential", "spherical_exponential"])
    for size in (0.0, 1e-9, 1e-3, 0.5, 1.0, 1.001, 3.1, 3.2, 6.0):
        q, v, a = random_state(model, 2)
        q = size * q / np.linalg.norm(q[:3])
        expected = complex_step.columns(lambda *x: complex_step.inverse_dynamics(model, *x), (q, np.eye(6)),
                                        (v, np.eye(6)), (a, None))
        found = rbd.inverse_dynamics_derivatives(model, q, v, a)
        assert_close(found.q, expected[0], BOUND, f"angle {size}")
        assert_close(found.v, expected[1], BOUND, f"angle {size}")


@pytest.mark.parametrize("root", ["fixed", "floating"])
def test_wrenches_rotors_and_batches(root):
    model = random_tree(9, TYPES, root=root)
    q, v, a = random_states(model, 3, 4)
    F = np.random.default_rng(1).normal(size=(3, len(model.body_names), 6))
    mask = np.arange(model.nv) % 3 == 0
    for call in (lambda q, v, a, F: rbd.inverse_dynamics_derivatives(model, q, v, a, F),
                 lambda q, v, a, F: rbd.forward_dynamics_derivatives(model, q, v, a, F),
                 lambda q, v, a, F: rbd.hybrid_dynamics_derivatives(model, q, v, a, a, mask, F)):
        batch = call(q, v, a, F)
        for k in range(3):
            for part, one in zip(batch, call(q[k], v[k], a[k], F[k]), strict=True):
                assert_close(part[k], one, 1e-12)
    rotors = model.with_(armature=np.arange(model.nv) * 0.01)
    assert_close(rbd.inverse_dynamics_derivatives(rotors, q[0], v[0], a[0]).a, rbd.mass_matrix(rotors, q[0]), 1e-13)


def test_a_joint_that_moves_no_inertia_is_named():
    model = rbd.RobotModel.from_description(rbd.Description("bare", {
        "base": rbd.Inertia.zero(), "arm": rbd.Inertia(1.0, np.ones(3), np.eye(3)), "tip": rbd.Inertia.zero()}, (
            rbd.JointSpec("first", "revolute", "base", "arm"), rbd.JointSpec("loose", "revolute", "arm", "tip"))))
    one = np.ones(2)
    rbd.inverse_dynamics_derivatives(model, one, one, one)
    rbd.hybrid_dynamics_derivatives(model, one, one, one, one, ["loose"])
    for call in (rbd.forward_dynamics_derivatives, lambda *x: rbd.hybrid_dynamics_derivatives(*x, one, ["first"])):
        with pytest.raises(rbd.RbdError, match="loose"):
            call(model, one, one, one)


if urdf_paths():
    from support import pinocchio_peer
    pin = pytest.importorskip("pinocchio")
    ROBOTS = pinocchio_peer.loadable()
else:
    ROBOTS = []
# mass matrices that nearly all digits are lost in: only inverse dynamics is compared
SINGULAR = ("romeo_description/romeo", "romeo_description/romeo_laas_small", "icub_description/icub")


@pytest.mark.parametrize("root", ["fixed", "floating"])
@pytest.mark.parametrize("name", ROBOTS)
def test_against_pinocchio(name, root):
    peer = pinocchio_peer.peer(name, root)
    model = peer.model
    assert not any(joint.type == "planar" for joint in model.joints)    # whose rates would turn
    for q, v, a in zip(*random_states(model, 2, seed=11), strict=True):
        P = peer.rates(q)
        x, y, z = peer.q(q), P @ v, P @ a
        expected = [np.array(part) for part in pin.computeRNEADerivatives(peer.pin, peer.data, x, y, z)]
        expected[2] = np.triu(expected[2]) + np.triu(expected[2], 1).T
        for part, want, what in zip(rbd.inverse_dynamics_derivatives(model, q, v, a), expected, "qva", strict=True):
            error = np.abs(part - P.T @ want @ P).max(initial=0.0)    # of a single propeller, ∂τ/∂v is zero
            size = np.abs(want).max(initial=0.0)
            largest = max(np.abs(x).max(initial=0.0) for x in expected)
            assert error <= max(1e-8 * size, 1e-12 * largest), f"∂τ/∂{what}: off by {error:.3g} of {size:.3g}"
        if name in SINGULAR or model.nv == 0:
            continue
        tau = rbd.inverse_dynamics(model, q, v, a)
        expected = [np.array(part) for part in pin.computeABADerivatives(peer.pin, peer.data, x, y, P @ tau)]
        expected[2] = np.triu(expected[2]) + np.triu(expected[2], 1).T
        largest = max(np.abs(x).max() for x in expected)
        found = rbd.forward_dynamics_derivatives(model, q, v, tau)
        for part, want, what in zip(found, expected, "qvt", strict=True):
            error, size = np.abs(part - P.T @ want @ P).max(), np.abs(want).max()
            assert error <= max(1e-8 * size, 1e-12 * largest), f"∂a/∂{what}: off by {error:.3g} of {size:.3g}"


@pytest.mark.skipif(not urdf_paths(), reason="example-robot-data is not installed")
@pytest.mark.parametrize("name", ["panda_description/panda", "tiago_pro_description/tiago_pro",
                                  "talos_data/talos_full_v2"])
def test_mimic_joints_by_complex_step(name):
    model = load(name, root="floating", mimic="project")
    assert model.mimics
    one = np.eye(model.nv)
    q, v, a = random_state(model, 3)
    expected = complex_step.columns(lambda *x: complex_step.inverse_dynamics(model, *x), by_tangent(model, q), (v, one),
                                    (a, one))
    found = rbd.inverse_dynamics_derivatives(model, q, v, a)
    for part, want, what in zip(found, expected, "qva", strict=True):
        assert_close(part, want, BOUND, f"∂τ/∂{what}")
    tau = rbd.inverse_dynamics(model, q, v, a)
    forward = rbd.forward_dynamics_derivatives(model, q, v, tau)
    for part, want, what in zip(forward[:2], found[:2], "qv", strict=True):
        assert_close(found.a @ part, -want, 1e-8, f"M ∂a/∂{what}")
    assert_close(found.a @ forward.tau, one, 1e-8)
    mask = np.arange(model.nv) % 2 == 0
    hybrid = rbd.hybrid_dynamics_derivatives(model, q, v, a, tau, mask)
    free = ~mask
    for part, want, what in zip(hybrid[:2], found[:2], "qv", strict=True):
        moved = np.where(mask[:, None], 0.0, part)
        assert_close(found.a @ moved + want, np.where(mask[:, None], part, 0.0), 1e-8, f"hybrid by {what}")
    assert_close(found.a[np.ix_(free, free)] @ hybrid.given[np.ix_(free, free)], one[np.ix_(free, free)], 1e-8)
