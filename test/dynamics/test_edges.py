"""Where formulas meet their limits: nothing to move, weightless links, very long chains."""

import numpy as np
import pytest
from support.robots import assert_close, build, inertia, random_state
from support.trees import random_rotation, random_tree

import rbd_ros as rbd


def weightless_tip(kind, **options):
    joints = [rbd.JointSpec("shoulder", "revolute", "base", "arm"),
              rbd.JointSpec("spin", kind, "arm", "tip", axis=(0, 0, 1), position=np.ones(3), **options)]
    return build(joints, links={"tip": rbd.Inertia.zero()})


@pytest.mark.parametrize("kind", ["revolute", "continuous", "prismatic", "spherical", "floating", "planar",
                                  "spherical_exponential", "translation"])
@pytest.mark.parametrize("batch", [False, True])
def test_a_joint_that_moves_nothing_is_named(kind, batch):
    model = weightless_tip(kind)
    q, v, tau = random_state(model, 1)
    if batch:
        q, v, tau = q[None], v[None], tau[None]
    assert np.isfinite(rbd.inverse_dynamics(model, q, v, tau)).all()
    with pytest.raises(rbd.RbdError, match=r"singular.*'spin'"):
        rbd.forward_dynamics(model, q, v, tau)


def test_a_point_mass_on_its_own_axis_is_named():
    model = build([rbd.JointSpec("spin", "revolute", "base", "needle", axis=(0, 0, 1))],
                  links={"needle": rbd.Inertia(1.0, np.array([0, 0, 0.3]), np.zeros((3, 3)))})
    with pytest.raises(rbd.RbdError, match=r"singular.*'spin'"):
        rbd.forward_dynamics(model, [0.3], [0.1], [1.0])


def test_the_joint_is_named_with_mimic_joints_too():
    joints = [rbd.JointSpec("shoulder", "revolute", "base", "arm"),
              rbd.JointSpec("thumb", "revolute", "arm", "tip1"),
              rbd.JointSpec("finger", "revolute", "arm", "tip2", mimic=("thumb", 1.0, 0.0))]
    model = build(joints, links={"tip1": rbd.Inertia.zero(), "tip2": rbd.Inertia.zero()})
    with pytest.raises(rbd.RbdError, match="singular"):
        rbd.forward_dynamics(model, [0.1, 0.2], [0.0, 0.0], [0.0, 1.0])


def test_needles_that_spin_about_one_axis():
    """Inertias about the axis 1e-9 of those across it: accelerations are differences of torques, to the last digits."""
    spin = 1e-9
    needle = rbd.Inertia(1.0, np.zeros(3), np.diag([1.0, 1.0, spin]))
    model = build([rbd.JointSpec("first", "continuous", "base", "one", axis=(0, 0, 1)),
                   rbd.JointSpec("second", "continuous", "one", "two", axis=(0, 0, 1))],
                  links={"one": needle, "two": needle})
    rng = np.random.default_rng(3)
    q, v = rng.uniform(-3.0, 3.0, (200, model.nq)), np.zeros((200, 2))
    tau = spin * rng.standard_normal((200, 2))
    expected = np.stack([tau[:, 0] - tau[:, 1], 2.0 * tau[:, 1] - tau[:, 0]], axis=1) / spin
    assert_close(rbd.forward_dynamics(model, q, v, tau), expected, 1e-14)


def test_a_rotor_makes_a_weightless_tip_move():
    model = weightless_tip("revolute", rotor_inertia=0.5)
    a = rbd.forward_dynamics(model, [0.3, 0.2], [0.0, 0.0], [0.0, 2.0])
    assert a[1] == pytest.approx(4.0, abs=1e-12)


def test_weightless_links_between_heavy_ones():
    """The same arm with and without a weightless link and its fixed joint in between."""
    half = np.array([0.1, 0.2, 0.15])
    one = build([rbd.JointSpec("a", "revolute", "base", "upper", axis=(0, 1, 0)),
                 rbd.JointSpec("b", "revolute", "upper", "lower", position=2 * half)])
    two = build([rbd.JointSpec("a", "revolute", "base", "upper", axis=(0, 1, 0)),
                 rbd.JointSpec("mount", "fixed", "upper", "adapter", position=half),
                 rbd.JointSpec("b", "revolute", "adapter", "lower", position=half)],
                links={"adapter": rbd.Inertia.zero()})
    for seed in range(5):
        q, v, a = random_state(one, seed)
        assert_close(rbd.inverse_dynamics(two, q, v, a), rbd.inverse_dynamics(one, q, v, a), 1e-14)
        assert_close(rbd.forward_dynamics(two, q, v, a), rbd.forward_dynamics(one, q, v, a), 1e-13)


def test_inertia_of_fixed_links_is_carried_by_the_link_that_moves():
    tool = inertia(0.7, (0.02, -0.1, 0.3), (0.01, 0.02, 0.015))
    model = build([rbd.JointSpec("a", "revolute", "base", "arm", axis=(0, 1, 0)),
                   rbd.JointSpec("mount", "fixed", "arm", "tool", position=np.array([0.1, 0.2, 0.3]))],
                  links={"tool": tool})
    arm = inertia()
    expected = arm.about_origin[1, 1] + (tool.matrix[1, 1] + 0.7 * ((0.02 + 0.1)**2 + (0.3 + 0.3)**2))
    assert rbd.mass_matrix(model, [0.4])[0, 0] == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize("kind", ["revolute", "prismatic", "spherical", "universal"])
def test_a_chain_of_a_thousand_bodies(kind):
    count = 1000 if kind in ("revolute", "prismatic") else 300
    at = np.array([0.02, 0.0, 0.05])
    axes = np.eye(3)
    model = build([rbd.JointSpec(f"j{i}", kind, f"l{i}", f"l{i + 1}", position=at, axis=tuple(axes[i % 3]))
                   for i in range(count)])
    q, v, a = random_state(model, 1)
    v, a = 0.1 * v, 0.1 * a
    tau = rbd.inverse_dynamics(model, q, v, a)
    found = rbd.forward_dynamics(model, q, v, tau)
    M = rbd.mass_matrix(model, q)
    dense = np.linalg.solve(M, tau - rbd.bias_effort(model, q, v))
    error, other = np.abs(found - a).max(), np.abs(dense - a).max()
    assert error < 1e-9 * np.linalg.norm(tau) and error < 10 * other + 1e-12, f"{error:.3g}, densely {other:.3g}"
    assert_close(rbd.inverse_dynamics(model, q, v, found), tau, 1e-12)
    assert_close(M @ a + rbd.bias_effort(model, q, v), tau, 1e-12)
    assert_close(rbd.kinetic_energy(model, q, v), v @ M @ v / 2, 1e-12)
    J = rbd.jacobian(model, q, f"l{count}")
    assert_close(J @ v, rbd.body_velocities(model, q, v)[-1], 1e-12)


def test_zero_gravity_and_gravity_in_any_direction():
    model = random_tree(3, count=4)
    q, _, _ = random_state(model, 2)
    assert not rbd.gravity_effort(model.with_(gravity=(0, 0, 0)), q).any()
    total = sum(rbd.gravity_effort(model.with_(gravity=axis), q) * g
                for axis, g in zip(np.eye(3), model.gravity, strict=True))
    assert_close(total, rbd.gravity_effort(model, q), 1e-14)


SINGULAR = {
    "forward": lambda m, q, v, tau: rbd.forward_dynamics(m, q, v, tau),
    "hybrid": lambda m, q, v, tau: rbd.hybrid_dynamics(m, q, v, v, tau, ["d"]),
    "time derivatives": lambda m, q, v, tau: rbd.forward_dynamics_time_derivatives(m, q, v, tau, tau),
    "directional": lambda m, q, v, tau: rbd.forward_dynamics_directional(m, q, v, tau, rbd.Tangent(tau=tau)),
    "derivatives": lambda m, q, v, tau: rbd.forward_dynamics_derivatives(m, q, v, tau),
    "projection": lambda m, q, v, tau: rbd.project(m, rbd.ConstraintSet([rbd.JointCoupling({"d": 1.0})]), q, v,
                                                   mass_weighted=True),
}


@pytest.mark.parametrize("mimic", [False, True])
@pytest.mark.parametrize("compute", SINGULAR.values(), ids=SINGULAR)
def test_a_mass_matrix_that_is_singular_but_for_rounding(compute, mimic):
    """Two hinges on one skew line with nothing between them; a dense factorisation may find any small pivot."""
    for seed in range(10):
        rng = np.random.default_rng(seed)
        axis = rng.normal(size=3)
        axis /= np.linalg.norm(axis)
        R = random_rotation(rng)
        model = build([rbd.JointSpec("a", "revolute", "r", "b", axis=tuple(axis)),
                       rbd.JointSpec("c", "revolute", "b", "c", R, 0.3 * axis, axis=tuple(R.T @ axis)),
                       rbd.JointSpec("d", "revolute", "c", "d", position=np.array([0.1, 0.2, 0.3])),
                       rbd.JointSpec("e", "revolute", "d", "e", axis=(0.6, 0.8, 0.0),
                                     mimic=("d", -0.5, 0.1) if mimic else None)], {"b": rbd.Inertia.zero()})
        with pytest.raises(rbd.RbdError, match="singular"):
            compute(model, *random_state(model, seed))
