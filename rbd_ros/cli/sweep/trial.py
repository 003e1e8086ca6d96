"""One random robot that differs from its model, and the tracking errors of each law."""
from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...core.dynamics.friction import friction_effort
from ...core.dynamics.inverse import gravity_effort, inverse_dynamics
from ...core.errors import RbdError
from ...core.model.inertia import Inertia
from ...core.model.robot_model import RobotModel
from ...core.simulation.pd_law import PDLaw
from ...core.simulation.simulate import simulate
from ..demo_motion import Scenario

Array = NDArray[np.float64]
LAWS = ("pd", "pd + gravity", "full feed-forward")
PLANT_RATE = 1000.0    # Hz at least


@dataclass(frozen=True)
class Spread:
    """Random deviations of robots from their model. mass, friction: standard deviations of the logarithms of the
    factors of each link's mass and inertia and of each joint's friction. delay: largest delay, s, from measurement to
    torque. position_noise, velocity_noise: standard deviations of measurement noise, rad and rad/s (or m, m/s).
    """

    mass: float = 0.05
    friction: float = 0.3
    delay: float = 0.002
    position_noise: float = 0.0
    velocity_noise: float = 0.0


@dataclass(frozen=True)
class Trial:
    """Errors per law: root mean square and largest over all joints and times (rad or m), inf for diverged motions;
    random values: ratio of total mass to the model's, mean factor of friction, delay (s).
    """

    rms: Array
    largest: Array
    mass: float
    friction: float
    delay: float


@dataclass(frozen=True)
class Setup:
    """Common setup of trials. model: the controller's, with the rotors of the scenario; rate: of the controller, Hz."""

    model: RobotModel
    scenario: Scenario
    spread: Spread
    rate: float
    duration: float


def run(setup: Setup, _: int, random: np.random.Generator) -> Trial:
    """Run all laws for one robot, with the same delay and noise."""
    spread, nv = setup.spread, setup.model.nv
    factors = np.exp(spread.mass * random.standard_normal(len(setup.model.description.links)))
    rubs = np.exp(spread.friction * random.standard_normal(nv))
    delay = spread.delay * random.random()
    ticks = round(setup.duration * setup.rate)
    noise = random.standard_normal((ticks, 2, nv)) * [[spread.position_noise], [spread.velocity_noise]]
    robot = _scaled(setup.model, factors).with_(damping=rubs * setup.scenario.damping,
                                                friction=rubs * setup.scenario.friction)
    errors = np.array([_errors(setup, law, robot, delay, noise) for law in LAWS])
    return Trial(errors[:, 0], errors[:, 1], robot.total_mass / setup.model.total_mass, float(rubs.mean()), delay)


def _scaled(model: RobotModel, factors: Array) -> RobotModel:
    links = {name: Inertia(link.mass * factor, link.com, link.matrix * factor)
             for (name, link), factor in zip(model.description.links.items(), factors.tolist(), strict=True)}
    return RobotModel.from_description(dataclasses.replace(model.description, links=links))


def _errors(setup: Setup, kind: str, robot: RobotModel, delay: float, noise: Array) -> tuple[float, float]:
    """Root mean square and largest error of one motion."""
    scenario, ticks = setup.scenario, len(noise)
    per_tick = math.ceil(PLANT_RATE / setup.rate)
    step = 1.0 / (setup.rate * per_tick)
    t = np.arange(ticks) / setup.rate
    q, v, a = (getattr(scenario.motion, name)(t) for name in ("position", "velocity", "acceleration"))
    feedforward = np.zeros_like(q)
    if kind == "pd + gravity":
        feedforward = gravity_effort(setup.model, q)
    elif kind == "full feed-forward":
        feedforward = inverse_dynamics(setup.model, q, v, a) + friction_effort(setup.model, v)
    at_step = np.arange(ticks * per_tick) // per_tick
    law = PDLaw(scenario.kp, scenario.kd, (q - noise[:, 0])[at_step], (v - noise[:, 1])[at_step], feedforward[at_step],
                period=per_tick, delay=round(delay / step),
                initial=None if kind == "pd" else gravity_effort(setup.model, q[0]))
    try:
        plant = simulate(robot, q[0], v[0], law, step, ticks * per_tick, stride=per_tick, limits=False)
    except RbdError:    # diverged
        return math.inf, math.inf
    error = q - plant.q[:-1]
    return float(np.sqrt(np.mean(error**2))), float(np.abs(error).max())
