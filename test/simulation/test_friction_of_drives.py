"""Dry friction by direction and by load: the effort while sliding, the range in which a joint sticks, energy."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.optimize import brentq
from simulation import robots
from support.closed import closed

import rbd_ros as rbd
from rbd_ros.core.dynamics.friction import LOAD_SMOOTHING

INTEGRATORS = pytest.mark.parametrize("integrator", ["semi_implicit", "variational", "rk4"])
LAW = rbd.Friction(coulomb=1.5, breakaway=2.0, asymmetry=0.4, load=0.3)
PLAIN = rbd.Friction(coulomb=1.5, asymmetry=0.4, load=0.3)


def block(gravity=0.0):
    """1 kg on a vertical slide."""
    return robots.pendulum(joint_type="prismatic", axis=(0.0, 0.0, 1.0)).with_(gravity=(0.0, 0.0, -gravity))


def carried(effort, way, law):
    """What a drive that slides passes on, from the law itself."""
    level = (law.coulomb + law.asymmetry * way) * way
    return brentq(lambda x: x + level + way * law.load * np.hypot(x, LOAD_SMOOTHING) - effort, -1e3, 1e3, xtol=1e-14)


@INTEGRATORS
@pytest.mark.parametrize("effort", [7.0, -0.3, -6.0])
@pytest.mark.parametrize("way", [1.0, -1.0])
def test_a_block_slides_as_its_drive_leaves(integrator, effort, way):
    robot = rbd.Simulator(block(), integrator=integrator, v=[10.0 * way], friction=PLAIN, step=1e-3)
    robot.step([effort], 50)
    np.testing.assert_allclose(robot.v[0], 10.0 * way + 0.05 * carried(effort, way, PLAIN), rtol=1e-12)


@INTEGRATORS
def test_it_sticks_exactly_up_to_the_breakaway_level_under_load(integrator):
    weight = 9.81
    level = LAW.load * np.hypot(weight, LOAD_SMOOTHING)
    least, most = weight - (2.0 - 0.4) - level, weight + (2.0 + 0.4) + level
    for effort, moves in ((least + 1e-6, 0), (0.5 * (least + most), 0), (most - 1e-6, 0), (least - 1e-6, -1),
                          (most + 1e-6, 1)):
        robot = rbd.Simulator(block(weight), integrator=integrator, friction=LAW, step=1e-3)
        robot.step([effort], 20)
        assert np.sign(robot.v[0]) == moves and (moves or robot.q[0] == 0.0), (effort, robot.v)


@INTEGRATORS
def test_a_moving_arm_is_that_of_forward_dynamics(integrator):
    """While both joints slide, against an ordinary differential equation with the law in `forward_dynamics`."""
    model = rbd.sample("two_link").with_(damping=[0.3, 0.2])
    law = rbd.Friction([0.3, 0.2], [1.5, 0.7], [2.0, 0.9], 0.8, 1e-4, [0.4, -0.3], load=[0.2, 0.4])
    q, v = np.array([0.3, -0.5]), np.array([2.0, -3.0])

    def effort(t):
        return np.array([12.0 * np.cos(3.0 * t), -6.0 + 9.0 * np.sin(4.0 * t)])

    def rates(t, x):
        return np.concatenate([x[2:], rbd.forward_dynamics(model, x[:2], x[2:], effort(t), friction=law)])

    end = solve_ivp(rates, (0.0, 0.1), np.concatenate([q, v]), rtol=1e-11, atol=1e-11).y[:, -1]
    assert (end[2:] * v > 0.01).all()
    errors = []
    for n in (20, 40):
        robot = rbd.Simulator(model, integrator=integrator, q=q, v=v, friction=law, step=0.1 / n)
        for _ in range(n):
            robot.step(effort)
        errors.append(np.abs(np.concatenate([robot.q, robot.v]) - end).max())
    order, close = {"semi_implicit": (1, 0.2), "variational": (1, 5e-2), "rk4": (4, 2e-6)}[integrator]
    assert errors[0] < close and errors[1] < errors[0] / 2**order * 1.5, errors


@INTEGRATORS
def test_friction_never_adds_energy(integrator):
    model = rbd.sample("iiwa").with_(gravity=(0.0, 0.0, 0.0), damping=0.0)
    rng = np.random.default_rng(1)
    law = rbd.Friction(0.0, 0.5, 0.8, asymmetry=rng.uniform(-0.5, 0.5, 7), load=rng.uniform(0.0, 0.8, 7))
    robot = rbd.Simulator(model, integrator=integrator, friction=law, q=np.full(7, 0.4), v=rng.normal(size=7),
                          step=2e-3)
    energies = [robot.energy]
    for _ in range(100):
        robot.step()
        energies.append(robot.energy)
    tolerance = 1e-9 if integrator == "rk4" else 1e-4    # of the motion without friction
    assert (np.diff(energies) <= tolerance * energies[0]).all() and energies[-1] < 0.9 * energies[0]


@pytest.mark.parametrize("integrator", ["semi_implicit", "variational"])
def test_closed_loops(integrator):
    """The acceleration is that of `constrained_forward_dynamics`, to the order of the step."""
    model, constraints, q = closed("five_bar")
    q = rbd.project(model, constraints, q).q
    v = rbd.project(model, constraints, q, np.linspace(1.0, -1.0, 5)).v
    law, effort = rbd.Friction(0.0, 0.5, asymmetry=0.1, smoothing=1e-5, load=0.3), np.array([20.0, 0.0, 0.0, 9.0, 0.0])
    expected = rbd.constrained_forward_dynamics(model, constraints, q, v, effort, friction=law).acceleration
    robot = rbd.Simulator(model, constraints=constraints, integrator=integrator, q=q, v=v, friction=law, step=1e-5)
    v = np.array(robot.v)
    robot.step(effort)
    np.testing.assert_allclose((robot.v - v) / 1e-5, expected, atol=1e-2 * np.abs(expected).max())


def test_what_is_not_supported_is_said():
    model, law = rbd.sample("two_link"), rbd.Friction(1.0, 1.0, load=0.1)
    drive = rbd.SeriesDrive(rbd.SeriesSpring([500.0]), motor=rbd.Motor(rotor_inertia=1e-4, gear_ratio=100.0))
    assert rbd.ElasticSimulator(rbd.Actuation(model, {"shoulder": drive, "elbow": drive})).time == 0.0
    with pytest.raises(rbd.RbdError, match=r"friction\.viscous_asymmetry"):
        rbd.Simulator(model, friction=rbd.Friction(1.0, 1.0, viscous_asymmetry=0.1))
    floor = rbd.CompliantContact(rbd.Plane("base"), rbd.Sphere(model.body_names[-1], 0.1), stiffness=1e4,
                                 dissipation=0.0)
    with pytest.raises(rbd.RbdError, match="contacts"):
        rbd.Simulator(model, friction=law, contacts=[floor])
    with pytest.raises(rbd.RbdError, match=r"friction\.damping is 1\.0, but a Simulator has the model's"):
        rbd.Simulator(model, friction=rbd.Friction(1.0, 1.0))
    assert rbd.Simulator(model.with_(damping=1.0), friction=rbd.Friction(1.0, 1.0)).time == 0.0
    for wrong, said in ((rbd.Friction(load=1.0), r"friction\.load must be"), (rbd.Friction([1.0] * 3), "got 3"),
                        (rbd.Friction(coulomb=[1.0] * 3), "got 3"), (3, "expected a Friction")):
        with pytest.raises(rbd.RbdError, match=said):
            rbd.Simulator(model, friction=wrong)
