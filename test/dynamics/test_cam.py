"""Cams: a joint that turns about its axis and slides along it by a polynomial of its angle."""

import numpy as np
import pytest
from support.robots import assert_close, build, inertia
from support.trees import random_tree

import rbd_ros as rbd
from rbd_ros.core.simulation.simulator import Simulator

ADVANCE = (0.01, 0.08, -0.05, 0.02)
STATE = (np.array([0.7]), np.array([-1.3]), np.array([2.1]))


def cam(axis=(0.0, 0.0, 1.0), advance=ADVANCE, **options):
    return rbd.JointSpec("cam", "cam", "base", "follower", axis=axis, advance=advance, **options)


def lifted(x, order):
    return np.polynomial.Polynomial(ADVANCE).deriv(order)(x)


def test_effort_of_a_lifted_body_is_that_of_its_lagrangian():
    """L = ½ (I + m f'²) v² − m g f: effort (I + m f'²) a + m f' f'' v² + m g f', the term of v² from Ṡ v."""
    model = build([cam()], {"follower": inertia(2.0, (0.0, 0.0, 0.3), (0.1, 0.1, 0.04))})
    (q,), (v,), (a,) = STATE
    f1, f2 = lifted(q, 1), lifted(q, 2)
    expected = (0.04 + 2.0 * f1 * f1) * a + 2.0 * f1 * f2 * v * v + 2.0 * 9.81 * f1
    np.testing.assert_allclose(rbd.inverse_dynamics(model, *STATE), [expected], rtol=1e-14)
    np.testing.assert_allclose(rbd.forward_dynamics(model, *STATE[:2], np.array([expected])), STATE[2], rtol=1e-13)


def test_the_pose_is_a_turn_and_its_advance():
    model = build([cam(axis=(0.0, 1.0, 0.0))])
    T = rbd.forward_kinematics(model, STATE[0])[-1]
    c, s = np.cos(0.7), np.sin(0.7)
    np.testing.assert_allclose(T[:3, :3], [[c, 0.0, s], [0.0, 1.0, 0.0], [-s, 0.0, c]], atol=1e-15)
    np.testing.assert_allclose(T[:3, 3], [0.0, lifted(0.7, 0), 0.0], atol=1e-15)


def test_a_straight_cam_is_a_screw():
    specs = (cam(axis=(1.0, 2.0, 3.0), advance=(0.0, 0.2)),
             rbd.JointSpec("cam", "helical", "base", "follower", axis=(1.0, 2.0, 3.0), pitch=0.2))
    found, expected = (build([spec]) for spec in specs)
    for call in (rbd.inverse_dynamics, rbd.forward_dynamics, rbd.inverse_dynamics_derivatives,
                 rbd.forward_dynamics_derivatives):
        assert_close(np.array(call(found, *STATE)), np.array(call(expected, *STATE)), 1e-13)


def test_forward_dynamics_undoes_inverse_dynamics():
    model = random_tree(17, ["revolute", "cam", "universal", "cam", "floating", "cam"], root="floating")
    rng = np.random.default_rng(0)
    q, v, a = model.random_configuration(rng), *rng.normal(size=(2, model.nv))
    assert_close(rbd.forward_dynamics(model, q, v, rbd.inverse_dynamics(model, q, v, a)), a, 1e-10)


def test_a_mimic_joint_may_be_a_cam():
    """At q = 2 x + 0.1 of its source x: the same as a body on a cam of that polynomial of x."""
    heavy = {"follower": inertia(2.0), "knob": rbd.Inertia.zero()}
    source = rbd.JointSpec("source", "revolute", "base", "knob", axis=(0.0, 0.0, 1.0), rotor_inertia=0.01)
    model = build([source, cam(mimic=("source", 2.0, 0.1))], heavy)
    polynomial = np.polynomial.Polynomial(ADVANCE)(np.polynomial.Polynomial([0.1, 2.0]))
    free = build([cam()], {"follower": inertia(2.0)})
    q, v, a = (x[0] for x in STATE)
    tau = rbd.inverse_dynamics(free, [2.0 * q + 0.1], [2.0 * v], [2.0 * a])
    np.testing.assert_allclose(rbd.inverse_dynamics(model, *STATE), 2.0 * tau + 0.01 * a, rtol=1e-13)
    assert polynomial(q) == pytest.approx(rbd.forward_kinematics(model, STATE[0])[model.body_index("follower"), 2, 3])


@pytest.mark.parametrize("integrator", ["variational", "rk4"])
def test_energy_stays(integrator):
    model = build([cam(axis=(0.3, 0.0, 1.0), advance=(0.0, 0.3, 0.2))], {"follower": inertia(2.0)})
    simulator = Simulator(model, step=1e-3, integrator=integrator, q=[0.2], v=[1.0])

    def energy():
        return rbd.kinetic_energy(model, simulator.q, simulator.v) + rbd.potential_energy(model, simulator.q)

    first = energy()
    for _ in range(300):
        simulator.step([0.0])
    assert energy() == pytest.approx(first, abs=1e-4 if integrator == "variational" else 1e-8)


@pytest.mark.parametrize("advance", [(), (0.1,), (0.0, np.nan), 3.0, "far"])
def test_an_advance_that_is_none_is_refused_by_name(advance):
    with pytest.raises(rbd.RbdError, match="joint 'cam'"):
        build([cam(advance=advance)])
