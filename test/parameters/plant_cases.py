"""What the parameters of the simulated robots do, in their logic without ROS."""
from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from parameters.case import Case, Values, split
from support.arm import TILT, TILTED

import rbd_ros as rbd
from rbd_ros.core.simulation.simulator import Simulator
from rbd_ros.runtime.cosimulation.mujoco_settings import MUJOCO_TABLE, mujoco_plant, mujoco_settings
from rbd_ros.runtime.parameters import validate
from rbd_ros.runtime.plant.plant import Plant
from rbd_ros.runtime.plant.simulator_settings import SIMULATOR_TABLE, SimulatorSettings
from rbd_ros.runtime.robot import load_model

URDF = str(rbd.sample_path("two_link"))
Q, V, EFFORT = np.array([0.3, -0.5]), np.array([0.8, -0.6]), np.array([2.0, -1.0])
MOVING = {"initial_position": list(Q), "initial_velocity": list(V), "step": 1e-5, "publish_rate": 1000.0}


def make(program: str, values: Values) -> Plant:
    own = program == "simulator"
    if not own:
        pytest.importorskip("mujoco", reason="MuJoCo is not installed: scripts/setup --peers")
    table = SIMULATOR_TABLE if own else MUJOCO_TABLE
    model, _ = load_model(validate(table, values), URDF)
    first, later = split(table, values)
    plant = Plant(model, SimulatorSettings.from_values(first, model)) if own else mujoco_plant(first, model, URDF)
    if later is not None:
        plant.settings = (SimulatorSettings.from_values if own else mujoco_settings)(later, model)
    return plant


def acceleration(program: str, values: Values) -> Any:
    """Mean of the first step, under the usual effort."""
    plant = make(program, values)
    v = np.array(plant.simulator.v)
    assert plant.on_commands(EFFORT[:plant.size]) and plant.advance(1)
    return (plant.simulator.v - v) / plant.settings.step


def start(program: str, values: Values) -> Any:
    plant = make(program, values)
    return np.array(plant.simulator.q), np.array(plant.simulator.v)


def commanded(program: str, values: Values) -> Any:
    """Names, and the effort in the order of the model."""
    plant = make(program, values)
    assert plant.on_commands([1.0, 2.0])
    return plant.command_names, np.array(plant.effort)


def limited(program: str, values: Values) -> Any:
    plant = make(program, values)
    assert plant.on_commands([100.0, -100.0])
    return np.array(plant.effort)


def passes_its_limit(program: str, values: Values) -> bool:
    plant = make(program, values)
    assert plant.on_commands([30.0, 0.0]) and plant.advance(1000)
    return bool(plant.simulator.q[0] > plant.model.position_upper[0] + 0.01)


def fastest(program: str, values: Values) -> float:
    plant = make(program, values)
    assert plant.on_commands([0.0, 30.0])
    return max(abs(plant.simulator.v[1]) for _ in range(200) if plant.advance(1))


def time_of_ten_steps(program: str, values: Values) -> float:
    plant = make(program, values)
    plant.advance(10)
    return plant.time


def held_for(program: str, values: Values) -> int:
    """Steps until the robot, commanded, begins to move."""
    plant = make(program, values)
    assert plant.on_commands(EFFORT)
    return _steps_until(plant, lambda: plant.simulator.v.any())


def commanded_for(program: str, values: Values) -> int:
    """Steps until the last command acts no more; -1: never."""
    plant = make(program, values)
    assert plant.on_commands(EFFORT)
    return _steps_until(plant, lambda: not plant.effort.any())


def stopped_by(program: str, values: Values) -> tuple[str, bool]:
    """What made the robot stop itself after a step of the command, and whether its brakes are engaged."""
    plant = make(program, values)
    assert plant.on_commands([5.0, 0.0]) and plant.advance(300)
    return plant.reflex.partition(" by ")[0], plant.braked


def brakes(program: str, values: Values) -> Any:
    plant = make(program, {**values, "brakes_until": 1.0})
    plant.advance(1)
    return np.array(plant.simulator.brakes)


def pushed_for(program: str, values: Values) -> int:
    """Steps until an external force acts no more: without gravity the velocity remains then."""
    plant = make(program, {**values, "gravity": [0.0, 0.0, 0.0], "timeout_action": "zero"})
    assert plant.on_wrenches([("tip", [0.0, 0.0, 0.0, 0.5, 0.0, 0.0])])
    energies = [0.0]

    def over() -> bool:
        energies.append(float(rbd.kinetic_energy(plant.model, plant.simulator.q, plant.simulator.v)))
        return abs(energies[-1] - energies[-2]) < 1e-3 * energies[-1]

    return _steps_until(plant, over)


def _steps_until(plant: Plant, condition: Any) -> int:
    for steps in range(1, 500):
        plant.advance(1)
        if condition():
            return steps
    return -1


def moved(program: str, values: Values) -> Any:
    plant = make(program, values)
    assert plant.on_commands(EFFORT) and plant.advance(100)
    return np.array(plant.simulator.q)


def constraints(program: str, values: Values) -> Any:
    """Their labels and how well the robot meets them."""
    model = rbd.sample("five_bar")
    plant = Plant(model, SimulatorSettings.from_values(values, model))
    plant.on_commands(np.zeros(5))
    plant.advance(20)
    forces = plant.constraint_forces()
    return plant.settings.constraints.labels, forces is not None and bool(np.abs(forces.residual).max() < 1e-9)


def sensors(program: str, values: Values) -> Any:
    """Topic and frame of each, and what they show while brakes hold the robot."""
    plant = make(program, {**values, "brakes_until": 1.0})
    shown = plant.sensed()
    return tuple(text for sensor in plant.settings.sensors for text in (sensor.topic, sensor.frame)), (
        np.zeros(0) if shown is None else shown)


def cases(program: str) -> dict[str, Case]:
    """By name of the parameter, for what both programs have."""
    model = rbd.load_urdf(URDF)

    def case(value: Any, observe: Any, expected: Any, given: Values | None = None, tolerance: float = 1e-9) -> Case:
        return Case(value, partial(observe, program), expected, given or {}, tolerance)

    def dynamic(value: Any, changed: rbd.RobotModel, given: Values = MOVING, friction: Any = 0.0) -> Case:
        expected = rbd.forward_dynamics(changed, Q[:changed.nv], V[:changed.nv], EFFORT[:changed.nv] - friction)
        return case(value, acceleration, expected, given, tolerance=0.01)

    def locked(value: Any, angle: float, **given: Any) -> Case:
        alone = {"initial_position": Q[0], "initial_velocity": V[0], **given}
        return dynamic(value, rbd.load_urdf(URDF, locked={"elbow": angle}),
                       {name: value for name, value in {**MOVING, **alone}.items()})

    weight = -rbd.joint_wrenches(model, np.zeros(2), np.zeros(2), np.zeros(2))[[model.body_index("tip")]]
    still = {"initial_position": 0.3}
    never = {"command_timeout": 0.0}
    moon = (0.0, 1.0, -1.62)
    return {
        "gravity": dynamic(list(moon), model.with_(gravity=moon)),
        "mounting.rpy": dynamic(list(TILT), model.with_(gravity=TILTED)),
        "rotor_inertia": dynamic([0.2, 0.1], model.with_(armature=[0.2, 0.1])),
        "mass_scale": dynamic(1.5, model.with_scaled_masses(1.5)),
        "friction.damping": dynamic([0.4, 0.2], model, friction=[0.4, 0.2] * V),
        "friction.coulomb": dynamic([0.3, 0.2], model, friction=[0.3, 0.2] * np.sign(V)),
        "locked.joints": locked(["elbow"], 0.0),
        "locked.positions": locked(0.5, 0.5, **{"locked.joints": ["elbow"]}),
        "joints": case(["elbow", "shoulder"], commanded, (("elbow", "shoulder"), np.array([2.0, 1.0]))),
        "step": case(0.002, time_of_ten_steps, 0.02),
        "initial_position": case(list(Q), start, (Q, np.zeros(2))),
        "initial_velocity": case(list(V), start, (np.zeros(2), V)),
        "brakes_until": case(0.05, held_for, 51, still),
        "brakes.effort": case([3.0, 0.0], brakes, np.array([3.0, 0.0])),
        "robot_compensates": dynamic(["gravity"], model.with_(gravity=np.zeros(3))),
        "reflex.effort_rate": case([2499.0, 1.0], stopped_by, ("the command to joint 'shoulder' changes", True), never),
        "reflex.velocity": case([0.1, 1.0], stopped_by, ("joint 'shoulder' moves", True), never),
        "position_limits": case(False, passes_its_limit, True, {"initial_position": [3.0, 0.0], **never}),
        "effort_limits": case(False, limited, np.array([100.0, -100.0])),
        "command_timeout": case(0.05, commanded_for, 51),
        "timeout_action": case("hold", commanded_for, -1, {"command_timeout": 0.05}),
        "wrench_timeout": case(0.05, pushed_for, 51),
        "wrench_joints": case(["tip_joint"], sensors, (("~/wrench/tip_joint", "tip"), weight)),
    }


def simulator_cases() -> dict[str, Case]:
    model = rbd.load_urdf(URDF)
    own = Simulator(model, integrator="rk4")
    own.step(EFFORT, 100)
    labels = rbd.sample_constraints("five_bar", rbd.sample("five_bar")).labels

    def rubbing(value: Any, given: Values, **law: Any) -> Case:
        left = rbd.Friction(smoothing=1e-9, **law).remove(V, EFFORT)
        return Case(value, partial(acceleration, "simulator"), rbd.forward_dynamics(model, Q, V, left),
                    {**MOVING, **given}, 0.01)

    level = [0.3, 0.2]
    return {**cases("simulator"),
            "integrator": Case("rk4", partial(moved, "simulator"), np.array(own.q), tolerance=1e-12),
            "friction.asymmetry": rubbing([0.2, -0.1], {"friction.coulomb": level}, coulomb=level,
                                          asymmetry=[0.2, -0.1]),
            "friction.load": rubbing([0.3, 0.2], {}, load=[0.3, 0.2]),
            "velocity_limits": Case(True, partial(fastest, "simulator"), model.velocity_limit[1],
                                    {"command_timeout": 0.0}),
            "constraints_file": Case("five_bar", partial(constraints, "simulator"), (tuple(labels), True))}


def mujoco_cases() -> dict[str, Case]:
    own = Simulator(rbd.load_urdf(URDF), integrator="rk4")
    own.step(EFFORT, 100)
    return {**cases("mujoco_plant"),
            "integrator": Case("rk4", partial(moved, "mujoco_plant"), np.array(own.q), tolerance=1e-7)}
