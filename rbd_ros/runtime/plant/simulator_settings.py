"""Parameters of the simulated robot, and the model as simulated."""
from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.dynamics.friction import Friction
from ...core.dynamics.inverse import gravity_effort
from ...core.dynamics.mass_matrix import mass_matrix
from ...core.errors import RbdError
from ...core.model.constraints import ConstraintSet
from ...core.model.robot_model import RobotModel
from ...core.model.surfaces.compliant import CompliantContact
from ...core.model.surfaces.unilateral import UnilateralContact
from ...core.model.samples import constraints_from, contacts_from
from ...core.simulation.integrators import NAMES
from ..control.tracking_law import COMPENSATES
from ..parameters import Parameter, Table, parameter, per_joint, table_of, taken, validate
from ..robot import ROBOT_TABLE, joint_order, joints_row
from ..wrench_sensors import WRENCH_JOINTS, WrenchSensor, wrench_sensors

Array = NDArray[np.float64]
POSES = 50      # random poses for the gravity torque of a joint without effort limit
STOP = 50.0     # rad/s^2 or m/s^2: deceleration of a single joint by its brake
STILL = 1e-9    # rad/s or m/s: smoothing of friction that is not to be smoothed


@dataclass(frozen=True, kw_only=True)
class SimulatorSettings:
    """Validated parameters; arrays (nv,) in model order. `plant`: the model as simulated.

    `joints`: names in the order of parameter `joints`; `output`: permutation of an array to that order; `order`: its
    inverse. `publish_every`: steps per joint state. `effort_limit`: inf for none. `brakes`: whether brakes engage
    without commands. `friction`: the joints' where it depends on direction or load, else None. `reflex_rate`,
    `reflex_velocity`: limits of the protective stop, N m/s and rad/s, inf for none.
    """

    plant: RobotModel
    constraints: ConstraintSet
    joints: tuple[str, ...]
    output: NDArray[np.intp]
    order: NDArray[np.intp]
    publish_every: int
    effort_limit: Array
    brake_effort: Array
    reflex_velocity: Array
    brakes: bool
    hold: bool
    sensors: tuple[WrenchSensor, ...] = ()
    contacts: tuple[UnilateralContact | CompliantContact, ...] = ()
    friction: Friction | None = None
    step: float = parameter(0.001, "Integration step, s.", lower=1e-6, upper=0.1, read_only=True)
    integrator: str = parameter("variational", "variational: order 2, conserves momentum and bounds the energy error; "
                                "semi_implicit: order 1; both stable with stiff damping and springs; rk4: order 4, "
                                "explicit.", choices=NAMES, read_only=True)
    real_time_factor: float = parameter(1.0, "Simulated over elapsed time; 0: as fast as possible.", lower=0.0,
                                        upper=1000.0, read_only=True)
    publish_clock: bool = parameter(False, "Publish /clock with each joint state; stamps then begin at 0. Otherwise "
                                    "they begin at the system time of activation and go on by simulated time.",
                                    read_only=True)
    paused: bool = parameter(False, "Start paused: time and robot stand still until ~/pause or ~/step.", read_only=True)
    initial_position: Array = parameter((0.0,), "Initial position, rad or m.", lower=-1e6, upper=1e6, read_only=True)
    initial_velocity: Array = parameter((0.0,), "Initial velocity, rad/s or m/s.", lower=-1e6, upper=1e6,
                                        read_only=True)
    brakes_until: float = parameter(0.0, "Brakes are engaged, whatever is commanded, until the stamp reaches this, s; "
                                    "time goes on.", lower=0.0)
    position_limits: bool = parameter(True, "Joints stop, inelastically, at the limits of the description.",
                                      read_only=True)
    velocity_limits: bool = parameter(False, "No joint exceeds its velocity limit in the description, as in Gazebo (a "
                                      "limit of 0 counts as none); not with constraints_file or actuation_file.",
                                      read_only=True)
    compensates: tuple[str, ...] = parameter((), "What the robot's own controller adds to the command, after its "
                                             "limits, by a model that fits the simulated robot (mass_scale and "
                                             "friction included), as that of a maker does; not with actuation_file.",
                                             name="robot_compensates", choices=COMPENSATES, read_only=True)
    reflex_rate: Array = parameter((math.inf,), "Change of the command, from one published state to the next, at which "
                                   "the robot stops itself (brakes, until ~/reset), N m/s or N/s; a Franka: 1000.",
                                   name="reflex.effort_rate", lower=1e-3, read_only=True)
    command_timeout: float = parameter(0.1, "Simulated time without a valid command after which `timeout_action` "
                                       "begins, s; 0: never.", lower=0.0, upper=1e6)
    wait_for_command: float = parameter(0.0, "Real time that a state waits for a command that answers the previous "
                                        "one, s; 0: never, like a real robot. With it, a busy machine slows down both "
                                        "sides alike.", lower=0.0, upper=60.0)
    wrench_timeout: float = parameter(0.1, "Simulated time after which external wrenches expire, s; 0: never.",
                                      lower=0.0, upper=1e6)

    @staticmethod
    def from_values(values: Mapping[str, Any], model: RobotModel) -> SimulatorSettings:
        """Validate parameter values by name; missing ones get their defaults. Raises `RbdError`."""
        values = validate(SIMULATOR_TABLE, values)
        joints, output, order = joint_order(values["joints"], model)

        def listed(name: str) -> Array:
            return per_joint(name, values[name], order)

        damping, friction = listed("friction.damping"), listed("friction.coulomb")
        plant = model if values["mass_scale"] == 1.0 else model.with_scaled_masses(values["mass_scale"])
        plant = plant.with_(damping=np.where(damping < 0.0, model.damping, damping),
                            friction=np.where(friction < 0.0, model.friction, friction))
        asymmetry, load = listed("friction.asymmetry"), listed("friction.load")
        law = None
        if asymmetry.any() or load.any():
            law = Friction(plant.damping, plant.friction, smoothing=STILL, asymmetry=asymmetry, load=load)
            if values["robot_compensates"]:
                raise RbdError("parameters 'friction.asymmetry' and 'friction.load' must be 0 with robot_compensates: "
                               "a robot's own controller does not know of them")
        limit = np.where(model.effort_limit > 0.0, model.effort_limit, math.inf)
        fastest = np.where(model.velocity_limit > 0.0, model.velocity_limit, math.inf)
        constraints = constraints_from(values["constraints_file"], model)
        if constraints.size and values["robot_compensates"]:
            raise RbdError("parameter 'robot_compensates' is not supported with closed loops ('constraints_file')")
        return SimulatorSettings(
            plant=plant, friction=law, constraints=constraints, joints=joints, output=output, order=order,
            publish_every=_publish_every(values["step"], values["publish_rate"]),
            effort_limit=limit if values["effort_limits"] else np.full(model.nv, math.inf),
            brake_effort=_brake_effort(listed("brakes.effort"), limit, plant),
            reflex_velocity=listed("reflex.velocity") * fastest, brakes=values["timeout_action"] == "brake",
            hold=values["timeout_action"] == "hold", sensors=wrench_sensors(values["wrench_joints"], model),
            contacts=contacts_from(values["constraints_file"], model), **taken(SimulatorSettings, values, order))


SIMULATOR_TABLE: Table = (
    *ROBOT_TABLE,
    joints_row("joints in ~/commands, in the published joint states and in all lists with one entry per joint"),
    Parameter("constraints_file", "string", "", "YAML file of closed loops, couplings and contacts, unilateral and "
              "compliant ones included, or the name of a sample robot; the robot starts in the nearest state that "
              "satisfies them. Empty: none.", read_only=True),
    Parameter("actuation_file", "string", "", "YAML file of the drives, for a robot with elastic joints: ~/commands "
              "are then motor efforts, and motor states are published on motor_states. Empty: rigid joints.",
              read_only=True),
    Parameter("publish_rate", "number", 500.0, "Joint states per simulated second, Hz; the step rate divided by a "
              "whole number.", lower=1e-2, upper=1e6, read_only=True),
    Parameter("brakes.effort", "numbers", (-1.0,), "Friction by which brakes stop and hold a joint (with elastic "
              "joints its motor), N m or N; -1: twice the effort limit of the description or, where there is none, "
              "enough to hold its weight in any pose; 0: a joint without a brake.", lower=-1.0, upper=1e9,
              read_only=True),
    Parameter("mass_scale", "number", 1.0, "Factor of all masses and inertias, for a robot that differs from its "
              "model.", lower=1e-3, upper=1e3, read_only=True),
    Parameter("friction.damping", "numbers", (-1.0,), "Viscous friction, N m s/rad or N s/m; -1: as in the "
              "description.", lower=-1.0, upper=1e9, read_only=True),
    Parameter("friction.coulomb", "numbers", (-1.0,), "Coulomb friction, N m or N; -1: as in the description.",
              lower=-1.0, upper=1e9, read_only=True),
    Parameter("friction.asymmetry", "numbers", (0.0,), "Half of what Coulomb friction is more forwards than backwards, "
              "N m or N; at most friction.coulomb. Not with actuation_file or contacts.", lower=-1e9, upper=1e9,
              read_only=True),
    Parameter("friction.load", "numbers", (0.0,), "Share of what a joint carries (its effort without friction) that is "
              "added to the Coulomb friction, as in gears; likewise.", lower=0.0, upper=0.99, read_only=True),
    Parameter("effort_limits", "bool", True, "Commands are clipped to the effort limits of the description (a limit of "
              "0 counts as none).", read_only=True),
    Parameter("reflex.velocity", "numbers", (math.inf,), "Speed at which the robot stops itself, as a multiple of the "
              "velocity limit in the description (0 counts as none).", lower=1e-3, read_only=True),
    Parameter("timeout_action", "string", "brake", "Without commands: brake: brakes hold the joints, also before the "
              "first command; zero: no effort, a free pendulum, also before the first command; hold: the last command "
              "is kept, as by most controllers, and none before the first.", choices=("brake", "zero", "hold")),
    Parameter("controller", "string", "", "Also take efforts from <controller>/commands, as a "
              "forward_command_controller of this name does. Empty: only from ~/commands and ~/effort_commands.",
              read_only=True),
    WRENCH_JOINTS,
    *table_of(SimulatorSettings),
)


def _brake_effort(configured: Array, limit: Array, plant: RobotModel) -> Array:
    """Friction of the brakes. given: configured values, -1 for the default; limit: of efforts, inf for none."""
    poses = np.array([plant.random_configuration(seed) for seed in range(POSES)])
    heavy = np.abs(gravity_effort(plant, poses)).max(axis=0)
    enough = np.where(np.isfinite(limit), limit, heavy + STOP * np.diagonal(mass_matrix(plant, poses[0])))
    return np.where(configured < 0.0, 2.0 * enough, configured)


def _publish_every(step: float, rate: float) -> int:
    steps = 1.0 / (step * rate)
    every = max(round(steps), 1)
    if abs(steps - every) > 1e-6 * every:
        raise RbdError(f"parameter 'publish_rate' is {rate:g} Hz, expected {1.0 / step:g} Hz (one over `step`) divided "
                       f"by a whole number, such as {1.0 / (step * every):g}")
    return every
