"""The variational integrator: momentum exact, energy bounded, order 2, against independent integrations."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from simulation import robots
from simulation.robots import link, momentum

import rbd_ros as rbd
from rbd_ros.core.simulation.discrete_mechanics import GUESSED, foresee, remember
from rbd_ros.core.simulation.simulator import Simulator

FREE = (0.0, 0.0, 0.0)


def body():
    return rbd.RobotModel.from_description(rbd.Description(
        "body", {"body": link(2.0, (0.01, 0.02, -0.03), (0.05, 0.06, 0.08))}, (), root="floating", gravity=FREE))


def chain(root="fixed", gravity=(0.0, 0.0, -9.81)):
    """Four links, 0.3 m each, on spherical joints."""
    base = rbd.Inertia.zero() if root == "fixed" else link(1.0, (0.0, 0.0, 0.02), (0.02, 0.03, 0.025))
    names = ["base", "first", "second", "third", "fourth"]
    links = {"base": base} | {name: link(1.0, (0.01, 0.0, -0.15), (0.01, 0.012, 0.003)) for name in names[1:]}
    joints = tuple(rbd.JointSpec(f"ball_{child}", "spherical", parent, child,
                                 position=np.array([0.0, 0.0, 0.0 if parent == "base" else -0.3]))
                   for parent, child in pairwise(names))
    return rbd.RobotModel.from_description(rbd.Description("chain", links, joints, root=root, gravity=gravity))


def watch(simulator, steps, every=10):
    """Largest errors of energy, relative to the largest kinetic one, and of momentum about the centre of mass."""
    model = simulator.model
    energy, before = simulator.energy, rbd.centroidal_momentum(model, simulator.q, simulator.v)
    kinetic = error = drift = 0.0
    for _ in range(steps // every):
        simulator.step(n=every)
        q, v = simulator.q, simulator.v
        kinetic = max(kinetic, float(rbd.kinetic_energy(model, q, v)))
        error = max(error, abs(simulator.energy - energy))
        drift = max(drift, float(np.abs(rbd.centroidal_momentum(model, q, v) - before).max()))
    return error / kinetic, drift / (np.linalg.norm(before) or 1.0)


@pytest.mark.parametrize("spin", [5.0, 15.0])
def test_a_free_body_keeps_momentum_and_energy_for_a_minute(spin):
    simulator = Simulator(body(), v=[0.6 * spin, 0.8 * spin, 0.1 * spin, 0.3, -0.2, 0.1])
    energy, drift = watch(simulator, 60_000)
    assert energy < 1e-6 and drift < 1e-12


def test_a_free_body_moves_as_euler_says():
    model = body()
    v0 = np.array([3.0, 4.0, 0.5, 0.0, 0.0, 0.0])
    M = rbd.mass_matrix(model, model.neutral())
    I = np.linalg.inv(np.linalg.inv(M)[:3, :3])    # about the centre of mass
    exact = solve_ivp(lambda t, w: np.linalg.solve(I, np.cross(I @ w, w)), (0.0, 2.0), v0[:3], method="DOP853",
                      rtol=1e-13, atol=1e-14).y[:, -1]
    errors = []
    for h in (1.6e-2, 8e-3, 4e-3, 2e-3, 1e-3):
        simulator = Simulator(model, step=h, v=v0)
        simulator.step(n=round(2.0 / h))
        errors.append(np.abs(simulator.v[:3] - exact).max())
    np.testing.assert_allclose(np.log2(np.divide(errors[:-1], errors[1:])), 2.0, atol=0.1)


def test_four_floating_links_keep_momentum_and_energy_for_a_minute():
    model = chain("floating", FREE)
    rng = np.random.default_rng(1)
    simulator = Simulator(model, q=model.random_configuration(rng), v=0.5 * rng.normal(size=model.nv))
    energy, drift = watch(simulator, 60_000)
    assert energy < 1e-6 and drift < 1e-12


def test_four_hanging_links_keep_their_spin_and_the_error_of_energy_stays_of_order_two():
    model = chain()
    v = 0.25 * np.random.default_rng(1).normal(size=model.nv)
    errors = []
    for h in (2e-3, 1e-3):
        simulator = Simulator(model, step=h, v=v)
        before = momentum(model, simulator.q, v)[2]
        errors.append(watch(simulator, round(60.0 / h))[0])
        assert momentum(model, simulator.q, simulator.v)[2] == pytest.approx(before, rel=0.0, abs=1e-12)
    assert errors[1] < 1e-6 and errors[0] < 6.0 * errors[1]


def test_energy_of_an_arm_that_swings_freely():
    """The iiwa on a wall, without friction, for two of the sixty seconds of docs/simulation.md."""
    q = np.array([0.5, np.pi / 2 - 0.5, 0.5, 0.5, 0.5, -0.5, 0.5])
    simulator = Simulator(robots.iiwa().with_(gravity=(-9.81, 0.0, 0.0)), q=q, limits=False)
    assert watch(simulator, 2000)[0] < 1e-5


def test_energy_stays_bounded_over_a_hundred_thousand_steps():
    model = chain("floating", FREE)
    rng = np.random.default_rng(2)
    simulator = Simulator(model, step=4e-3, q=model.random_configuration(rng), v=rng.normal(size=model.nv))
    first, _ = watch(simulator, 20_000)
    all_of_them, _ = watch(simulator, 80_000)
    assert all_of_them < 10.0 * first and all_of_them < 1e-3


def test_four_links_swing_as_someone_else_integrates_them():
    model = chain()
    v0 = np.random.default_rng(3).normal(size=model.nv)
    quaternions = [slice(4 * i, 4 * i + 4) for i in range(4)]

    def rates(t, y):
        q, v = y[:16].copy(), y[16:]
        rate = np.empty(16)
        for i, part in enumerate(quaternions):
            q[part] /= np.linalg.norm(q[part])
            (x, y_, z, w), (a, b, c) = q[part], v[3 * i:3 * i + 3]
            rate[part] = 0.5 * np.array([w * a + y_ * c - z * b, w * b + z * a - x * c, w * c + x * b - y_ * a,
                                         -x * a - y_ * b - z * c])
        return np.concatenate([rate, np.linalg.solve(rbd.mass_matrix(model, q), -rbd.bias_effort(model, q, v))])

    exact = solve_ivp(rates, (0.0, 0.5), np.concatenate([model.neutral(), v0]), method="DOP853", rtol=1e-12,
                      atol=1e-13).y[:, -1]
    errors = []
    for h in (4e-3, 2e-3, 1e-3, 5e-4, 2.5e-4):
        simulator = Simulator(model, step=h, v=v0)
        simulator.step(n=round(0.5 / h))
        errors.append(np.abs(simulator.v - exact[16:]).max())
    np.testing.assert_allclose(np.log2(np.divide(errors[:-1], errors[1:])), 2.0, atol=0.15)


@pytest.mark.parametrize("friction", [0.0, 0.2])
def test_momentum_is_conserved_through_friction_and_stops(friction):
    model = robots.satellite()
    joints = tuple(rbd.JointSpec(**(vars(joint) | {"lower": -0.05, "upper": 0.05, "friction": friction}))
                   if joint.name == "shoulder" else joint for joint in model.description.joints)
    model = rbd.RobotModel.from_description(rbd.Description("stopped", model.description.links, joints, root="floating",
                                                            gravity=FREE))
    v = np.array([0.5, -0.4, 0.3, 0.2, -0.1, 0.3, 4.0, 1.0, -2.0, 1.5])
    simulator = Simulator(model, v=v)
    at = model.joint("shoulder").idx_q
    before, energy, largest = momentum(model, simulator.q, v), simulator.energy, 0.0
    for i in range(4000):
        simulator.step([0.0] * 6 + [2.0 * np.sign(np.sin(0.02 * i)), 0.0, 0.0, 0.0])
        largest = max(largest, abs(simulator.q[at]))
        drift = np.abs(momentum(model, simulator.q, simulator.v) - before).max()
        assert drift < 1e-12 * np.linalg.norm(before)
    assert 0.049 < largest <= 0.05 and simulator.energy < energy


def test_sliding_is_of_order_two():
    model = robots.iiwa().with_(friction=[1.0, 1.0, 1.0, 1.0, 0.05, 0.02, 0.005], damping=0.02)
    exact = Simulator(model, step=2e-4, integrator="rk4", q=np.full(7, 0.3), v=np.full(7, 3.0))
    exact.step(n=200)
    assert np.all(exact.v > 0.0)
    errors = []
    for h in (4e-3, 2e-3, 1e-3, 5e-4, 2.5e-4):
        simulator = Simulator(model, step=h, q=np.full(7, 0.3), v=np.full(7, 3.0))
        simulator.step(n=round(0.04 / h))
        errors.append(np.abs(simulator.v - exact.v).max())
    np.testing.assert_allclose(np.log2(np.divide(errors[:-1], errors[1:])), 2.0, atol=0.2)


def test_efforts_and_wrenches_in_time_keep_the_order():
    model = robots.satellite((0.0, 0.0, -9.81))
    wrench = {"left": [0.1, 0.2, -0.1, 1.0, -0.5, 0.3]}

    def effort(t):
        return np.linspace(-1.0, 1.0, model.nv) * np.sin(9.0 * t)

    def end(h, integrator):
        simulator = Simulator(model, step=h, integrator=integrator, v=np.full(model.nv, 0.7))
        simulator.step(effort, round(0.4 / h), wrench)
        return np.concatenate([simulator.q, simulator.v])

    exact = end(5e-4, "rk4")
    errors = [np.abs(end(h, "variational") - exact).max() for h in (1.6e-2, 8e-3, 4e-3, 2e-3, 1e-3)]
    np.testing.assert_allclose(np.log2(np.divide(errors[:-1], errors[1:])), 2.0, atol=0.15)


def test_absurd_speeds_are_solved_in_parts_or_refused():
    simulator = Simulator(chain("floating", FREE), v=np.full(18, 300.0))
    before = rbd.centroidal_momentum(simulator.model, simulator.q, simulator.v)
    simulator.step(n=5)
    after = rbd.centroidal_momentum(simulator.model, simulator.q, simulator.v)
    np.testing.assert_allclose(after, before, rtol=0.0, atol=1e-11 * np.linalg.norm(before))
    fast = Simulator(chain("floating", FREE), v=np.linspace(1e8, 2e8, 18))
    with pytest.raises(rbd.RbdError, match=r"diverged at .* smaller step"):
        fast.step(n=20)
    assert np.isfinite(fast.v).all()


def guesses(velocity, mean, steps):
    """The guesses of mean velocities `mean` (n, 2), with `velocity` (n, 2) at the starts of the steps."""
    seen, base, ahead = np.full(GUESSED * 2, np.nan), np.empty(2), np.empty(2)
    found = []
    for v, xi in zip(velocity[:steps], mean[:steps], strict=True):
        guess = v.copy()
        foresee(seen, guess, base, ahead)
        remember(seen, xi, base, ahead)
        found.append(guess)
    return np.array(found)


@pytest.mark.parametrize("degree", range(8))
def test_guesses_are_exact_for_polynomials_to_the_sixth_degree(degree):
    rng = np.random.default_rng(degree)
    coefficients = rng.uniform(0.5, 1.0, (2, degree + 1))
    times = 0.05 * np.arange(20.0)
    start, middle = (np.array([np.polynomial.Polynomial(c)(t) for c in coefficients]).T for t in (times, times + 0.025))
    error = np.abs(guesses(start, middle, 20) - middle).max(axis=1)
    assert error[0] > 1e-3 or degree == 0
    assert (error[10:].max() < 1e-11) == (degree <= 6)


def test_guesses_of_rough_motions_take_no_high_order():
    noise = np.random.default_rng(1).normal(size=(2, 500, 2))
    error = np.sqrt(((guesses(noise[0], noise[1], 500) - noise[1])**2).mean())
    third = np.sqrt(((noise[1, :-2] + 2.0 * (noise[0, 2:] - noise[0, 1:-1]) - noise[1, 2:])**2).mean())
    assert error < 1.5 * third
