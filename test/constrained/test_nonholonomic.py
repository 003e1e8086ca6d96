"""Nonholonomic constraints: a blade on an incline, whose motion is known; what they leave to positions."""

import re
from pathlib import Path

import numpy as np
import pytest
from support.closed import check_equations
from support.robots import assert_close, build

import rbd_ros as rbd

PULL, SPIN, MASS = 3.0, 1.7, 2.5


def blade(gravity=(PULL, 0.0, 0.0), extra=()):
    """A skate on a plane, its blade along its x axis, its centre of mass above the contact."""
    model = build([rbd.JointSpec("plane", "planar", "ground", "skate", axis=(0.0, 0.0, 1.0)), *extra],
                  {"skate": rbd.Inertia(MASS, np.zeros(3), np.diag([0.1, 0.1, 0.2]))}, gravity=gravity)

    def row(q):
        return np.concatenate([[-np.sin(q[2]), np.cos(q[2])], np.zeros(model.nv - 2)])

    def gamma(q, v):
        return -(np.cos(q[2]) * v[0] + np.sin(q[2]) * v[1]) * v[2]

    return model, rbd.NonholonomicConstraint(row, gamma, name="blade")


def exact(t):
    """q, v of a skate that is spun from rest on an incline along x: a cycloid, across the slope and not down."""
    a, phase = PULL / (2.0 * SPIN**2), SPIN * t
    q = np.array([a * np.sin(phase) ** 2, a * (phase - np.sin(2.0 * phase) / 2.0), phase])
    return q, np.array([a * SPIN * np.sin(2.0 * phase), a * SPIN * (1.0 - np.cos(2.0 * phase)), SPIN])


def test_a_skate_on_an_incline_follows_its_cycloid():
    """Simulated over more than a period; it does not slide down the slope, since its blade does not let it."""
    model, constraint = blade()
    constraints = rbd.ConstraintSet([constraint])
    q, v = exact(0.0)
    simulator = rbd.Simulator(model, q=q, v=v, constraints=constraints, integrator="rk4", step=0.005)
    for t in np.arange(0.5, 4.01, 0.5):
        while simulator.time < t - 1e-9:
            simulator.step(np.zeros(3))
        q, v = exact(simulator.time)
        assert np.abs(simulator.q - q).max() < 1e-8
        assert np.abs(simulator.v - v).max() < 1e-8
        assert abs(constraint.A(simulator.q) @ simulator.v) < 1e-12


def test_acceleration_and_reaction_by_hand():
    """λ = m (u θ̇ + g sin θ): what turns the velocity u along the blade, and what holds it on the slope."""
    model, constraint = blade()
    constraints = rbd.ConstraintSet([constraint])
    for t in (0.1, 0.4, 1.1, 2.0):
        q, v = exact(t)
        found = rbd.constrained_forward_dynamics(model, constraints, q, v, np.zeros(3))
        h = 1e-4
        assert_close(found.acceleration, (exact(t + h)[1] - exact(t - h)[1]) / (2 * h), 1e-6)
        assert found.multipliers[0] == pytest.approx(MASS * 2.0 * PULL * np.sin(SPIN * t), abs=1e-9)
        check_equations(model, constraints, q, v, found.acceleration, np.zeros(3), found.multipliers)
        inverse = rbd.constrained_inverse_dynamics(model, constraints, q, v, found.acceleration, ["plane/0", "plane/2"])
        check_equations(model, constraints, q, v, found.acceleration, inverse.effort, inverse.multipliers)


def test_positions_are_free_and_velocities_are_not():
    model, constraint = blade()
    constraints = rbd.ConstraintSet([constraint])
    rng = np.random.default_rng(1)
    q, v = rng.normal(size=(2, 5, 3))
    projected = rbd.project(model, constraints, q, v)
    np.testing.assert_array_equal(projected.q, q)
    for x, before, after in zip(q, v, projected.v, strict=True):
        A = constraint.A(x)
        assert_close(after, before - A * (A @ before) / (A @ A), 1e-12)
    np.testing.assert_array_equal(rbd.constraint_values(model, constraints, q), np.zeros((5, 1)))
    assert list(constraints.holonomic) == [False]
    assert constraints.row_names == ("blade/0",)


def test_beside_a_holonomic_constraint_only_that_one_moves_positions():
    """The blade must not hold q back while a coupling is closed: the step is the least one for the coupling alone. With
    `f ≡ 0` of a UserConstraint it is another, which keeps across the blade what it may move.
    """
    slider = rbd.JointSpec("slider", "prismatic", "skate", "load", axis=(1.0, 0.0, 0.0))
    model, constraint = blade(extra=(slider,))
    coupling = rbd.JointCoupling({"plane/1": 1.0, "slider": -1.0})
    q = np.array([0.3, 0.2, 0.1, -0.4])
    step = np.array([0.0, -0.3, 0.0, 0.3])    # by hand: half of 0.6 each
    found = rbd.project(model, rbd.ConstraintSet([coupling, constraint]), q, np.ones(4))
    assert_close(found.q, q + step, 1e-12)
    A = rbd.constraint_jacobian(model, rbd.ConstraintSet([coupling, constraint]), found.q)
    assert np.abs(A @ found.v).max() < 1e-12
    trick = rbd.UserConstraint(lambda q: [0.0], constraint.A, constraint.gamma)
    other = rbd.project(model, rbd.ConstraintSet([coupling, trick]), q)
    assert np.abs(other.q - found.q).max() > 0.05


def test_baumgarte_damps_the_velocity_across():
    model, constraint = blade()
    constraints = rbd.ConstraintSet([constraint])
    q, v = np.array([0.1, 0.2, 0.3]), np.array([1.0, 2.0, -0.5])
    found = rbd.constrained_forward_dynamics(model, constraints, q, v, np.zeros(3), baumgarte=(4.0, 9.0))
    across = constraint.A(q) @ v
    assert constraint.A(q) @ found.acceleration + constraint.gamma(q, v) == pytest.approx(-8.0 * across, rel=1e-9)


@pytest.mark.parametrize(("make", "message"), [
    (lambda: rbd.NonholonomicConstraint(None, len), "must be functions"),
    (lambda: rbd.NonholonomicConstraint(len, len, 0), "size is 0"),
    (lambda: rbd.constraint_jacobian(blade()[0], rbd.ConstraintSet([rbd.NonholonomicConstraint(
        lambda q: np.zeros(2), lambda q, v: 0.0)]), np.zeros(3)), r"A\(q\) gave shape \(2,\)"),
    (lambda: rbd.constrained_forward_dynamics_derivatives(
        blade()[0], rbd.ConstraintSet([blade()[1]]), *np.zeros((3, 3))), "functions are unknown")])
def test_misuse(make, message):
    with pytest.raises(rbd.RbdError, match=message):
        make()


def test_the_example_of_the_page_runs():
    """The force that turns the velocity is m |v| θ̇."""
    page = (Path(__file__).parents[2] / "docs" / "theory.md").read_text(encoding="utf-8")
    names: dict = {}
    exec(re.findall(r"```python\n(.*?)```", page, re.DOTALL)[0], names)
    v = names["v"]
    assert -np.sin(0.3) * v[0] + np.cos(0.3) * v[1] == pytest.approx(0.0, abs=1e-12)
    assert names["found"].multipliers[0] == pytest.approx(2.5 * np.hypot(v[0], v[1]) * v[2], rel=1e-12)
