"""Friction, stops, damping and errors of the simulator."""

import numpy as np
import pytest
from simulation import robots

import rbd_ros as rbd
from rbd_ros.core.simulation.impulses import impulses_entry
from rbd_ros.core.simulation.simulator import Simulator

SLIDE = {"joint_type": "prismatic", "axis": (1.0, 0.0, 0.0)}
both = pytest.mark.parametrize("integrator", ["variational", "semi_implicit", "rk4"])


def slide(v0, integrator="rk4", step=1e-3, **joint):
    return Simulator(robots.pendulum(**SLIDE, **joint), integrator=integrator, step=step, v=[v0])


@both
def test_equals_its_integrator_where_nothing_rubs(integrator):
    model = robots.iiwa()
    one, many = (Simulator(model, integrator=integrator, q=np.full(7, 0.3)) for _ in range(2))
    effort = np.linspace(-1.0, 1.0, 7)
    one.step(effort, 20)
    for _ in range(20):
        many.step(effort)
    np.testing.assert_array_equal(one.q, many.q)
    np.testing.assert_array_equal(one.v, many.v)
    assert one.time == pytest.approx(0.02)
    assert not one.q.flags.writeable


@both
def test_coulomb_friction_stops_a_slide_after_the_distance_that_takes_its_energy(integrator):
    simulator = slide(2.0, integrator, step=1e-4, friction=4.0)
    energy = [simulator.energy]
    while simulator.v[0] != 0.0:
        simulator.step()
        energy.append(simulator.energy)
    assert np.all(np.diff(energy) <= 0.0)
    assert simulator.time == pytest.approx(2.0 / 4.0, abs=2e-4)                # v / (F/m)
    assert 4.0 * simulator.q[0] == pytest.approx(0.5 * 2.0**2, rel=1e-3)       # work of friction = kinetic energy


@both
def test_friction_holds_against_a_smaller_effort_without_creep(integrator):
    simulator = slide(0.0, integrator, friction=4.0, damping=1.0)
    simulator.step([3.99], 1000)
    assert simulator.q[0] == 0.0
    simulator.step([4.5], 1000)
    assert simulator.v[0] == pytest.approx(0.5 * (1.0 - np.exp(-1.0)), rel=5e-3)    # v̇ = 4.5 − 4 − v


@both
def test_an_arm_with_much_friction_hangs_still_and_a_push_comes_to_rest(integrator):
    model = robots.iiwa().with_(friction=150.0)
    q = np.array([0.1, 0.9, 0.2, -0.8, 0.3, 0.7, 0.1])
    simulator = Simulator(model, integrator=integrator, q=q)
    simulator.step(n=200)
    np.testing.assert_array_equal(simulator.q, q)
    pushed = Simulator(model.with_(friction=20.0), integrator=integrator, q=np.full(7, 0.01), v=np.full(7, 0.5))
    energy = pushed.energy
    for _ in range(1000):
        pushed.step()
        assert pushed.energy <= energy + 1e-9
        energy = pushed.energy
    assert not pushed.v.any()


@both
def test_stops_hold_and_never_add_energy(integrator):
    simulator = Simulator(robots.pendulum(lower=-0.5, upper=1.0), integrator=integrator, q=[1.0], v=[0.0])
    energy = simulator.energy
    for _ in range(3000):
        simulator.step()
        assert -0.5 <= simulator.q[0] <= 1.0
        slack = 1e-9 if integrator == "rk4" else 2e-2    # order 1 does not conserve energy by itself
        assert simulator.energy <= energy + slack
        energy = min(energy, simulator.energy)
    assert abs(simulator.q[0]) <= 0.5


@both
def test_an_arm_falls_onto_its_stops(integrator):
    model = robots.iiwa()
    simulator = Simulator(model, integrator=integrator, q=np.full(7, 0.4))
    for _ in range(400):
        simulator.step(np.array([300.0, -200.0, 100.0, 100.0, 20.0, -20.0, 10.0]), 5)
        assert np.all(simulator.q >= model.position_lower) and np.all(simulator.q <= model.position_upper)
    energies = []
    for _ in range(1000):
        simulator.step(n=2)
        energies.append(simulator.energy)
    assert energies[-1] <= energies[0]


def test_a_joint_rests_on_its_stop_under_load_and_leaves_it_freely():
    simulator = slide(0.0, upper=0.0, lower=-1.0)
    simulator.step([10.0], 500)
    assert simulator.q[0] == 0.0 and simulator.v[0] == 0.0
    simulator.step([-1.0], 100)
    assert simulator.q[0] == pytest.approx(-0.5 * 0.1**2, rel=1e-9)


def test_limits_can_be_switched_off():
    model = robots.pendulum(upper=0.1, lower=-0.1, **SLIDE)
    simulator = Simulator(model, limits=False, v=[1.0])
    simulator.step(n=1000)
    assert simulator.q[0] == pytest.approx(1.0)


@pytest.mark.parametrize("integrator", ["variational", "semi_implicit"])
def test_stiff_damping_is_stable_if_implicit_and_refused_if_not(integrator):
    simulator = slide(1.0, integrator, damping=1e6)
    simulator.step(n=10)
    assert 0.0 <= simulator.v[0] < 1e-9
    start = simulator.q[0]
    simulator.step([10.0], n=1000)
    assert simulator.v[0] == pytest.approx(1e-5) and simulator.q[0] - start == pytest.approx(1e-5, rel=1e-2)
    with pytest.raises(rbd.RbdError, match=r"damping 1e\+06 of joint 'hinge' is too stiff for rk4"):
        slide(1.0, "rk4", damping=1e6)


def test_external_wrench_acts_in_the_frame_of_the_link():
    simulator = slide(0.0)
    simulator.step(n=100, external_wrenches={"bob": [0.0, 0.0, 0.0, 2.0, 0.0, 0.0]})
    assert simulator.v[0] == pytest.approx(0.2)


def test_divergence_names_the_joint_and_keeps_the_last_finite_state():
    simulator = Simulator(robots.pendulum(), limits=False)
    with pytest.raises(rbd.RbdError, match=r"diverged at .* of joint 'hinge' is"):
        simulator.step([1e308], 10**6)
    assert np.isfinite(simulator.q).all() and np.isfinite(simulator.v).all()


@pytest.mark.parametrize(("arguments", "message"), [
    ({"step": 0.0}, "step must be a positive time"),
    ({"step": float("nan")}, "step must be a positive time"),
    ({"integrator": "rk5"}, "did you mean 'rk4'"),
    ({"q": [0.0, 0.0]}, "q has shape"),
    ({"q": [3.0]}, "joint 'hinge' starts at 3, outside its limits -1 … 1"),
    ({"v": [float("inf")]}, "must be finite"),
])
def test_bad_settings_are_refused(arguments, message):
    with pytest.raises(rbd.RbdError, match=message):
        Simulator(robots.pendulum(lower=-1.0, upper=1.0), **arguments)


@pytest.mark.parametrize(("effort", "n", "message"), [
    ([1.0, 2.0], 1, "effort has shape"), ([float("nan")], 1, "must be finite"), ([0.0], 0, "positive number of steps")])
def test_bad_steps_are_refused(effort, n, message):
    simulator = Simulator(robots.pendulum())
    with pytest.raises(rbd.RbdError, match=message):
        simulator.step(effort, n)
    assert simulator.time == 0.0


def test_impulses_solve_the_box_problem():
    rng = np.random.default_rng(0)
    for _ in range(300):
        n = int(rng.integers(1, 9))
        A = rng.normal(size=(n, n + 1)) * 10.0 ** rng.uniform(-1.5, 1.5, size=(n, 1))
        W = A @ A.T
        low, high = -rng.uniform(0.0, 1.0, n) / np.diag(W), rng.uniform(0.0, 1.0, n) / np.diag(W)
        kind = rng.integers(0, 4, n)
        low[kind == 1], high[kind == 1] = 0.0, np.inf
        low[kind == 2] = high[kind == 2] = 0.0
        before = rng.normal(size=n)
        v = before.copy()
        assert impulses_entry(W.reshape(-1), low, high, v) > 0
        p = np.linalg.solve(W, v - before)
        tolerance = 1e-6 * np.abs(p).max()
        assert np.all(p >= low - tolerance) and np.all(p <= high + tolerance)
        moves = (np.abs(v) > 1e-9) & (low < high)
        np.testing.assert_allclose(p[moves], np.where(v[moves] > 0.0, low[moves], high[moves]), atol=tolerance)
        assert p @ v - 0.5 * p @ W @ p <= 1e-9


def test_impulses_of_dependent_coordinates_dissipate(capfd):
    """Inverse inertia of rank one, as of coordinates that a loop ties together: no system of equations for them."""
    for scale in ([1.0, 1.0], [1.0, -2.0], [1.0, 3.0, -0.5]):
        W = np.outer(scale, scale)
        v = 0.7 * np.array(scale)
        energy_before = v[0]**2 / W[0, 0]
        wide = np.full(len(v), 10.0)
        impulses_entry(W.reshape(-1), -wide, wide, v)
        assert v[0]**2 / W[0, 0] <= energy_before and np.abs(v).max() < 1e-9
    assert not capfd.readouterr().err
