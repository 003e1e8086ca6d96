"""Order of the integrators on the group, conservation of energy and momentum."""

import numpy as np
import pytest
from simulation import robots

import rbd_ros as rbd
from rbd_ros.core.simulation.integrators import INTEGRATORS

RNG = np.random.default_rng


def simulate(model, integrator, step, duration, q, v):
    zero = np.zeros(model.nv)
    for _ in range(round(duration / step)):
        q, v = INTEGRATORS[integrator](model, lambda q, v: rbd.forward_dynamics(model, q, v, zero), q, v, step)
    return q, v


def start(model, seed=1):
    rng = RNG(seed)
    return model.random_configuration(rng), rng.normal(size=model.nv)


MODELS = {"iiwa": robots.iiwa, "spherical": robots.top, "floating": robots.satellite,
          "falling": lambda: robots.satellite((0.0, 0.0, -9.81))}


@pytest.mark.parametrize("robot", MODELS)
@pytest.mark.parametrize(("integrator", "order", "step"), [("semi_implicit", 1, 5e-4), ("rk4", 4, 5e-3)])
def test_halving_the_step_reduces_the_error_by_two_to_the_order(robot, integrator, order, step):
    model = MODELS[robot]()
    q0, v0 = start(model)
    q, v = simulate(model, "rk4", step / 8 if order == 4 else 2e-3, 0.2, q0, v0)

    def error(h):
        qh, vh = simulate(model, integrator, h, 0.2, q0, v0)
        return np.linalg.norm(np.concatenate([model.difference(q, qh), vh - v]))

    assert np.log2(error(step) / error(step / 2)) == pytest.approx(order, abs=0.3)


@pytest.mark.parametrize("robot", ["iiwa", "spherical", "falling"])
def test_energy_of_a_swing_is_conserved_over_ten_seconds(robot):
    model = MODELS[robot]()
    q, v = start(model)
    if robot == "iiwa":    # mounted on a wall: hanging straight down from a floor or ceiling it would be singular
        model = model.with_(gravity=(-9.81, 0.0, 0.0))
        q, v = np.array([0.5, np.pi / 2 - 0.5, 0.5, 0.5, 0.5, -0.5, 0.5]), np.zeros(7)

    def energy(q, v):
        return rbd.kinetic_energy(model, q, v) + rbd.potential_energy(model, q)

    before = energy(q, v)
    kinetic = rbd.kinetic_energy(model, q, v)
    for _ in range(10):
        q, v = simulate(model, "rk4", 1e-3, 1.0, q, v)
        kinetic = max(kinetic, rbd.kinetic_energy(model, q, v))
    assert abs(energy(q, v) - before) < 1e-6 * kinetic


def test_momentum_of_a_free_floating_tree_is_conserved():
    model = robots.satellite()
    q, v = start(model)
    before = rbd.centroidal_momentum(model, q, v)
    q, v = simulate(model, "rk4", 1e-3, 2.0, q, v)
    np.testing.assert_allclose(rbd.centroidal_momentum(model, q, v), before, rtol=0.0,
                               atol=1e-9 * np.linalg.norm(before))


def test_quaternions_stay_on_the_group():
    model = robots.top()
    q, _ = simulate(model, "rk4", 1e-2, 10.0, *start(model))
    assert np.linalg.norm(q) == pytest.approx(1.0, abs=1e-14)
