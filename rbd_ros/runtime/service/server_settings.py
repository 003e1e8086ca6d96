"""Parameters of the server, and its model and constraints."""
from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...core.errors import RbdError
from ...core.model.constraints import ConstraintSet
from ...core.model.robot_model import RobotModel
from ...core.model.samples import constraints_from, contacts_from
from ..control.torque_settings import VELOCITY_CUTOFF
from ..friction_terms import ALL_FRICTION, FrictionTerms, drive_friction_rows, smoothing_row
from ..parameters import Parameter, Table, parameter, per_joint, setting, table_of, taken, validate
from ..robot import ROBOT_TABLE, joint_order, load_model
from ..world.odometry import ODOMETRY, ODOMETRY_TIMEOUT


@dataclass(frozen=True, kw_only=True)
class ServerSettings:
    """Validated parameters."""

    constraints: ConstraintSet
    contacts: tuple[str, ...] = ()    # names of unilateral and compliant contacts, unsupported by services
    constraint_tolerance: float = parameter(1e-3, "Largest violation of the constraints by the state of a request for "
                                            "constrained dynamics, m or rad, and m/s or rad/s.", lower=0.0, upper=1e3)
    friction: bool = parameter(False, "Whether services count the joints' friction where a request does not say, "
                               "viscous and Coulomb as the description has it.")
    friction_terms: FrictionTerms = ALL_FRICTION    # of all velocity coordinates
    odometry: str = setting(ODOMETRY)
    odometry_timeout: float = setting(ODOMETRY_TIMEOUT)
    state_timeout: float = parameter(0.5, "Age of the latest joint state at which requests for the present state fail, "
                                     "s.", lower=1e-3, upper=1e6)
    velocity_cutoff: float = setting(VELOCITY_CUTOFF)

    @staticmethod
    def from_values(values: Mapping[str, Any], model: RobotModel) -> ServerSettings:
        """Validate parameter values by name; missing ones get their defaults. Raises `RbdError`."""
        values = validate(SERVER_TABLE, values)
        if values["odometry"] and model.description.root != "floating":
            raise RbdError("parameter 'odometry' is for a base that moves: expected 'root' floating")
        return ServerSettings(
            constraints=constraints_from(values["constraints_file"], model),
            contacts=tuple(contact.name for contact in contacts_from(values["constraints_file"], model)),
            friction_terms=_friction_terms(values, model), **taken(ServerSettings, values))


SERVER_TABLE: Table = (
    *ROBOT_TABLE,
    Parameter("joints", "strings", (), "Order of rotor_inertia and of the lists of friction. Empty: the order of the "
              "model, as in all answers.", read_only=True),
    Parameter("root", "string", "fixed", "fixed: the root link does not move; floating: it does, and requests give its "
              "pose and twist.", choices=("fixed", "floating"), read_only=True),
    Parameter("constraints_file", "string", "", "YAML file of closed loops, couplings and contacts, or the name of a "
              "sample robot, for service constrained_dynamics; unilateral and compliant contacts are the simulator's. "
              "Empty: none.", read_only=True),
    *table_of(ServerSettings), smoothing_row(beware=" Derivatives grow with 1/s."), *drive_friction_rows(),
)


def _friction_terms(values: Mapping[str, Any], model: RobotModel) -> FrictionTerms:
    """Friction terms of all velocity coordinates, 0 of a floating base. Raises `RbdError` if friction would drive."""
    order = joint_order(values["joints"], model)[2]
    base = np.zeros(model.nv - len(order))
    listed: Any = {
        name: np.concatenate([base, per_joint(f"friction.{name}", values[f"friction.{name}"], order)])
        for name in ("asymmetry", "viscous_asymmetry", "load")}
    terms = FrictionTerms(smoothing=values["friction.smoothing"], **listed)
    terms.law(model)
    return terms


def load_server_model(values: Mapping[str, Any], description: str) -> tuple[RobotModel, list[str]]:
    """`load_model` with parameter `root`."""
    if values["root"] == "floating" and any(values.get("mounting.rpy", ())):
        raise RbdError("parameter 'mounting.rpy' is for a root link that does not move; this one is floating")
    model, notes = load_model(values, description)
    if values["root"] == "floating":
        model = RobotModel.from_description(dataclasses.replace(model.description, root="floating"))
        if not model.total_mass > 0.0:
            raise RbdError(f"robot '{model.name}' has no mass, so its floating base cannot be accelerated")
    return model, notes
