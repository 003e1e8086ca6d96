"""Simulated robots put into states beyond all reason: `RbdError`, never another error, and the state before stays."""
from __future__ import annotations

import itertools

import numpy as np
import pytest
from simulation import robots
from support.elastic_arm import DRIVES

import rbd_ros as rbd
from rbd_ros.core.actuation.damped_deflection import DampedDeflection
from rbd_ros.core.actuation.series_elastic import SeriesSpring
from rbd_ros.core.simulation.elastic_simulator import ElasticSimulator
from rbd_ros.core.simulation.simulator import Simulator
from rbd_ros.core.actuation.elastic_law import ElasticLaw, ElasticLawSettings, ElasticState
from rbd_ros.runtime.parameters import validate
from rbd_ros.runtime.plant.elastic_plant import ElasticPlant
from rbd_ros.runtime.plant.plant import Plant
from rbd_ros.runtime.plant.simulator_settings import SIMULATOR_TABLE, SimulatorSettings

pytestmark = [pytest.mark.filterwarnings("ignore::RuntimeWarning"),
              pytest.mark.filterwarnings("ignore::rbd_ros.RbdWarning")]
ABSURD = (1e8, 1e20, 1e100, 1e160, 1e308, -1e308, np.nan, np.inf)
HARDENING = {"shoulder": {"type": "series_elastic", "coefficients": [800.0, 1e5, 3e7], "motor": {"rotor_inertia": 0.3}},
             "elbow": {"type": "variable_stiffness", "spring": "antagonistic_exponential", "scale": 2.0, "rate": 8.0,
                       "range": [0.05, 0.6], "motor": {"rotor_inertia": 0.1}}}


def attempt(call, *arguments, **options):
    """Whether it was taken."""
    try:
        call(*arguments, **options)
    except rbd.RbdError as error:
        assert len(str(error)) < 600
        return False
    return True


@pytest.mark.parametrize("drives", [DRIVES, HARDENING], ids=["linear", "hardening"])
@pytest.mark.parametrize("integrator", ["semi_implicit", "rk4"])
def test_an_elastic_simulator(integrator, drives):
    model = rbd.sample("two_link")
    actuation = rbd.load_actuation(drives, model)
    simulator = ElasticSimulator(actuation, step=1e-5, integrator=integrator, limits=False)
    refused = 0
    names = ("q", "v", "motor_position", "motor_velocity")
    for name, size, at in itertools.product(names, ABSURD, (0, -1, None)):
        given = np.zeros(model.nv if len(name) == 1 else actuation.nm)
        given[slice(None) if at is None else at] = size
        before = simulator.q.copy(), simulator.motor_position.copy()
        if attempt(simulator.reset, **{name: given}):
            attempt(simulator.step, np.full(actuation.nm, 1e3), 60)
            simulator.reset()
        else:
            refused += 1
            np.testing.assert_array_equal(simulator.q, before[0])
            np.testing.assert_array_equal(simulator.motor_position, before[1])
        attempt(ElasticSimulator, actuation, integrator=integrator, limits=False, **{name: given})
        attempt(simulator.step, np.full(actuation.nm, size), 2)
        simulator.reset()
    assert refused >= 2 * 3 * len(names)    # those that are no numbers, at least


def test_a_singular_elastic_robot_is_named():
    nothing = {"mass": 0.0, "inertia": np.zeros((3, 3))}
    model = rbd.sample("two_link").with_body("lower", **nothing).with_body("tip", **nothing)
    drives = {"shoulder": {"type": "rigid"}, "elbow": {"type": "series_elastic", "stiffness": 100.0,
                                                       "motor": {"rotor_inertia": 0.1}}}
    with pytest.raises(rbd.RbdError, match=r"mass matrix is singular|singular at joint"):
        ElasticSimulator(rbd.load_actuation(drives, model))


@pytest.mark.parametrize("elastic", [False, True], ids=["rigid", "elastic"])
@pytest.mark.parametrize("integrator", ["semi_implicit", "rk4"])
def test_a_plant(integrator, elastic):
    model = rbd.sample("two_link")
    values = {"integrator": integrator, "step": 1e-5, "publish_rate": 1000.0, "position_limits": False}
    settings = SimulatorSettings.from_values(validate(SIMULATOR_TABLE, values), model)
    drives = rbd.load_actuation(DRIVES, model).drives
    plant = ElasticPlant(model, settings, drives) if elastic else Plant(model, settings)
    for size, part in itertools.product(ABSURD, ("q", "v")):
        state = {"q": np.zeros(2), "v": np.zeros(2)} | {part: np.array([size, 0.0])}
        if attempt(plant.reset, state["q"], state["v"]):
            plant.advance(60)
            assert np.isfinite(plant.simulator.q).all() and np.isfinite(plant.simulator.v).all()
            assert len(plant.failure) < 600
    plant.reset()
    assert plant.advance(10)


@pytest.mark.parametrize("name", ["initial_position", "initial_velocity"])
@pytest.mark.parametrize("size", [1e6, -1e6, 1e7, 1e308, float("nan")])
def test_initial_states_of_parameters(name, size):
    model = rbd.sample("two_link")

    def start():
        settings = SimulatorSettings.from_values({name: [size, 0.0], "position_limits": False}, model)
        ElasticPlant(model, settings, rbd.load_actuation(DRIVES, model).drives).advance(20)
        Plant(model, settings).advance(20)

    assert attempt(start) or size


@pytest.mark.parametrize("integrator", ["variational", "semi_implicit", "rk4"])
@pytest.mark.parametrize("friction", [0.0, 1.0])
@pytest.mark.parametrize("arms", [False, True], ids=["two_link", "satellite"])
def test_a_robot_that_moves_no_inertia_is_named(integrator, friction, arms):
    model = robots.satellite() if arms else rbd.sample("two_link")
    for name in ("left",) if arms else ("lower", "tip"):
        model = model.with_body(name, mass=0.0, inertia=np.zeros((3, 3)))
    with pytest.raises(rbd.RbdError, match=f"singular at joint '{'shoulder' if arms else 'elbow'}'"):
        Simulator(model.with_(friction=friction, damping=0.1), integrator=integrator).step(np.ones(model.nv), 3)


def test_what_numpy_cannot_solve_on_the_way_is_a_divergence(monkeypatch):
    simulator = Simulator(robots.pendulum())

    def fail(*arguments):
        raise np.linalg.LinAlgError("Singular matrix")

    monkeypatch.setattr(simulator, "_many", None)
    monkeypatch.setattr(simulator, "_advance", fail)
    with pytest.raises(rbd.RbdError, match="diverged at 0 s: velocity of joint 'hinge'"):
        simulator.step()


@pytest.mark.parametrize("value", ["soon", "x" * 10_000, [1.0] * 10_000, None, 1e-3j, np.zeros(5), -10**5000, 0, -1.0],
                         ids=["word", "text", "list", "none", "complex", "array", "integer", "zero", "negative"])
def test_times_and_counts_that_are_none(value):
    arm = rbd.sample("two_link")
    actuation = rbd.load_actuation(DRIVES, arm)
    simulator, elastic = Simulator(robots.pendulum()), ElasticSimulator(actuation)
    elastic_state = ElasticState(np.zeros(2), np.zeros(2), np.zeros(actuation.nm), value)
    law = ElasticLaw(actuation, ElasticLawSettings(1e-3, "feed_forward_pd"))
    for call in (lambda: Simulator(robots.pendulum(), step=value), lambda: simulator.step(n=value),
                 lambda: elastic.step(n=value), lambda: ElasticLaw(actuation, ElasticLawSettings(value)),
                 lambda: ElasticLaw(actuation, ElasticLawSettings(1e-3, kp=[value] * 7)),
                 lambda: law.command(np.zeros((5, 2)), elastic_state),
                 lambda: DampedDeflection(actuation, value, np.zeros((3, 2))),
                 lambda: rbd.friction_effort(arm, np.zeros(2), smoothing=value)):
        with pytest.raises(rbd.RbdError) as caught:
            call()
        assert len(str(caught.value)) < 600
    assert simulator.time == 0.0


def test_springs_whose_coefficients_are_too_far_apart():
    with pytest.raises(rbd.RbdError, match="orders of magnitude"):
        SeriesSpring(np.array([1e300, -1e308, -1e-320]), np.array(0.1))
