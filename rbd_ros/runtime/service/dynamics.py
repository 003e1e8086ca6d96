"""`DynamicsService`: logic of node `dynamics_server`, without ROS."""
from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from ...core.dynamics.bodies.joint_wrenches import joint_wrenches
from ...core.dynamics.coriolis import coriolis_matrix
from ...core.dynamics.energy import kinetic_energy, potential_energy
from ...core.dynamics.forward import forward_dynamics
from ...core.dynamics.friction import Friction
from ...core.dynamics.hybrid import hybrid_dynamics
from ...core.dynamics.inverse import bias_effort, gravity_effort, inverse_dynamics
from ...core.dynamics.mass_matrix import mass_matrix
from ...core.errors import RbdError, unknown_name
from ...core.model.constraints import ConstraintSet
from ...core.model.inertia import Array, Inertia
from ...core.model.payload import payload, with_payloads
from ...core.model.robot_model import RobotModel
from .constrained import ConstrainedMotion, ConstrainedRequest, constrained_motion
from .derivatives import PartialDerivatives, TimeDerivatives, partial_derivatives, time_derivatives
from .derivatives import warm_up as warm_up_derivatives
from .naming import AS_CONFIGURED, FRICTION, WITH_FRICTION, Coordinates, NamedWrenches, by_body, check_mode, checked
from .naming import wrenches_by_body
from .robot_state import RobotStates, StateRequest
from .server_settings import ServerSettings
from .trajectory import TrajectoryPoint, trajectory_efforts

Result = TypeVar("Result")
Wrenches = Sequence[tuple[str, ArrayLike]]    # (body, [moment, force] on it in its link frame)


class Efforts(NamedTuple):
    """Efforts (nv,) of the named coordinates; if requested, the wrench on each body by its parent joint."""

    name: tuple[str, ...]
    effort: Array
    joint_wrenches: NamedWrenches = ()


class Accelerations(NamedTuple):
    """Accelerations (nv,) of the named coordinates, and joint wrenches as in `Efforts`."""

    name: tuple[str, ...]
    acceleration: Array
    joint_wrenches: NamedWrenches = ()


class Motion(NamedTuple):
    """Accelerations and efforts (nv,) of the named coordinates, and joint wrenches as in `Efforts`."""

    name: tuple[str, ...]
    acceleration: Array
    effort: Array
    joint_wrenches: NamedWrenches = ()


class Terms(NamedTuple):
    """The terms of M a + C v + g = τ, matrices (nv, nv), and the energies (J)."""

    name: tuple[str, ...]
    mass_matrix: Array
    coriolis_matrix: Array
    gravity_effort: Array
    bias_effort: Array
    kinetic_energy: float
    potential_energy: float


class ModelInfo(NamedTuple):
    """Names, limits and masses of the robot; absent limits are infinite."""

    robot: str
    floating_base: bool
    total_mass: float
    gravity: Array
    body: tuple[str, ...]
    coordinate: tuple[str, ...]
    joint: tuple[str, ...]
    lower_position: Array
    upper_position: Array
    max_velocity: Array
    max_effort: Array
    constraint: tuple[str, ...]
    friction: bool


@dataclass(frozen=True)
class Robot:
    """Immutable snapshot for one request: model with loads, and constraints."""

    model: RobotModel
    constraints: ConstraintSet


class DynamicsService:
    """Answers requests by coordinate name; `RbdError` names the invalid field and the expected value.

    A request reads `robot` once, so a new load never acts within a request.
    """

    def __init__(self, model: RobotModel, settings: ServerSettings) -> None:
        self.settings = settings
        self.robot = Robot(model, settings.constraints)
        self.coordinates = Coordinates(model)
        self.states = RobotStates(model, self.coordinates, settings.state_timeout, settings.velocity_cutoff,
                                  settings.odometry_timeout if settings.odometry else None)
        self._unloaded = model
        self._loads: dict[str, Inertia] = {}

    def apply(self, settings: ServerSettings) -> None:
        """Change the settings, except the constraints."""
        self.settings = settings
        self.states.latest.timeout, self.states.latest.cutoff = settings.state_timeout, settings.velocity_cutoff
        if self.states.odometry is not None:
            self.states.odometry.timeout = settings.odometry_timeout

    def warm_up(self) -> None:
        """Load or compile the code of requests."""
        model, q = self.robot.model, self.robot.model.neutral()
        zero, wrench = np.zeros(model.nv), np.zeros((len(model.body_names), 6))
        inverse_dynamics(model, q, zero, zero, wrench)
        forward_dynamics(model, q, zero, zero)
        forward_dynamics(model, q, zero, zero, wrench)
        hybrid_dynamics(model, q, zero, zero, zero, np.zeros(model.nv, dtype=bool))
        joint_wrenches(model, q, zero, zero)
        self._terms(q, zero)
        warm_up_derivatives(model, q)

    # ---- requests

    def inverse(self, state: StateRequest, name: Sequence[str] = (), acceleration: ArrayLike = (),
                external_wrenches: Wrenches = (), with_joint_wrenches: bool = False,
                friction: int = AS_CONFIGURED) -> Efforts:
        """Inverse dynamics; friction: of `FRICTION`, as in all requests."""
        model = self.robot.model
        q, v = self._read(state)
        a = self.coordinates.vector("acceleration", name, acceleration)
        wrenches = wrenches_by_body(model, external_wrenches)
        tau = inverse_dynamics(model, q, v, a, wrenches, friction=self._friction(friction))
        carried = _carried(model, q, v, a, wrenches, with_joint_wrenches)
        return self._checked(Efforts(self.coordinates.names, tau, carried))

    def forward(self, state: StateRequest, name: Sequence[str] = (), effort: ArrayLike = (),
                external_wrenches: Wrenches = (), with_joint_wrenches: bool = False,
                friction: int = AS_CONFIGURED) -> Accelerations:
        """Forward dynamics."""
        model = self.robot.model
        q, v = self._read(state)
        tau = self.coordinates.vector("effort", name, effort)
        wrenches = wrenches_by_body(model, external_wrenches)
        a = forward_dynamics(model, q, v, tau, wrenches, friction=self._friction(friction))
        carried = _carried(model, q, v, a, wrenches, with_joint_wrenches)
        return self._checked(Accelerations(self.coordinates.names, a, carried))

    def hybrid(self, state: StateRequest, name: Sequence[str] = (), prescribed: Sequence[bool] = (),
               acceleration: ArrayLike = (), effort: ArrayLike = (), external_wrenches: Wrenches = (),
               with_joint_wrenches: bool = False, friction: int = AS_CONFIGURED) -> Motion:
        """Hybrid dynamics: input is the acceleration of prescribed coordinates, else the effort; returns both."""
        model = self.robot.model
        q, v = self._read(state)
        mask = self.coordinates.mask("prescribed", name, prescribed)
        a = self.coordinates.vector("acceleration", name, acceleration)
        tau = self.coordinates.vector("effort", name, effort)
        wrenches = wrenches_by_body(model, external_wrenches)
        solution = hybrid_dynamics(model, q, v, a, tau, mask, wrenches, friction=self._friction(friction))
        carried = _carried(model, q, v, solution.acceleration, wrenches, with_joint_wrenches)
        return self._checked(Motion(self.coordinates.names, *solution, carried))

    def constrained(self, state: StateRequest, request: ConstrainedRequest,
                    external_wrenches: Wrenches = ()) -> ConstrainedMotion:
        """Inverse, forward or hybrid dynamics under the constraints, with multipliers."""
        robot, contacts = self.robot, self.settings.contacts
        if contacts and not robot.constraints.size:
            raise RbdError(f"the server has no constraints, only unilateral or compliant contacts "
                           f"({', '.join(contacts)}), which node simulator uses: declare them as rolling or sliding "
                           "ones, which hold")
        wrenches = wrenches_by_body(robot.model, external_wrenches)
        q, v = self._read(state)
        return self._checked(constrained_motion(robot.model, robot.constraints, self.coordinates, q, v, request,
                                                wrenches, self.settings.constraint_tolerance,
                                                self._friction(request.friction)))

    def terms(self, state: StateRequest) -> Terms:
        """Mass matrix, Coriolis matrix, gravity, bias, energies."""
        return self._checked(self._terms(*self._read(state)))

    def derivatives(self, state: StateRequest, mode: int, name: Sequence[str] = (), input: ArrayLike = (),
                    external_wrenches: Wrenches = (), friction: int = AS_CONFIGURED) -> PartialDerivatives:
        """Partial derivatives of inverse or forward dynamics; input: accelerations or efforts."""
        model = self.robot.model
        wrenches = wrenches_by_body(model, external_wrenches)
        q, v = self._read(state)
        return self._checked(partial_derivatives(model, self.coordinates, q, v, mode, name, input, wrenches,
                                                 self._friction(friction)))

    def time_derivatives(self, state: StateRequest, mode: int, name: Sequence[str] = (), rows: int = 1,
                         input: ArrayLike = (), friction: int = AS_CONFIGURED) -> TimeDerivatives:
        """Inverse or forward dynamics with time derivatives; input: one row per order, the lowest first."""
        q, v = self._read(state)
        return self._checked(time_derivatives(self.robot.model, self.coordinates, q, v, mode, name, rows, input,
                                              self._friction(friction)))

    def trajectory(self, names: Sequence[str], points: Sequence[TrajectoryPoint],
                   friction: int = AS_CONFIGURED) -> Array:
        """Efforts (N, number of names) by `trajectory_efforts`."""
        return trajectory_efforts(self.robot.model, self.coordinates, names, points, self._friction(friction))

    def set_payload(self, body: str, mass: float, com: ArrayLike, matrix: ArrayLike) -> str:
        """Attach a load to a body, replacing its previous load, or remove it (mass 0); returns a message."""
        if body not in self._unloaded.body_names:
            raise unknown_name("body", body, self._unloaded.body_names)
        loads = {name: load for name, load in self._loads.items() if name != body}
        if mass != 0.0:
            loads[body] = payload(mass, com, matrix)
        model = with_payloads(self._unloaded, loads)
        self._loads, self.robot = loads, Robot(model, self.robot.constraints)
        return f"'{body}' carries {mass:g} kg" if mass else f"'{body}' carries no load"

    def model_info(self) -> ModelInfo:
        """Names, limits and masses."""
        model, skip = self.robot.model, self.coordinates.floating
        q, v = (slice(7, None), slice(6, None)) if skip else (slice(None), slice(None))
        return ModelInfo(model.name, self.coordinates.floating, model.total_mass, model.gravity, model.body_names,
                         self.coordinates.names, self.coordinates.joints, model.position_lower[q],
                         model.position_upper[q], model.velocity_limit[v], model.effort_limit[v],
                         self.robot.constraints.labels, self.settings.friction)

    # ---- inside

    def _read(self, state: StateRequest) -> tuple[Array, Array]:
        return self.states.read(state, time.monotonic())

    def _friction(self, wanted: int) -> Friction | None:
        """The friction law for the value `wanted` of a request's field `friction`."""
        check_mode(wanted, FRICTION, "friction")
        counts = self.settings.friction if wanted == AS_CONFIGURED else wanted == WITH_FRICTION
        return self.settings.friction_terms.law(self.robot.model) if counts else None

    def _checked(self, result: Result) -> Result:
        return checked(result, self.coordinates.names)

    def _terms(self, q: Array, v: Array) -> Terms:
        model = self.robot.model
        return Terms(self.coordinates.names, mass_matrix(model, q), coriolis_matrix(model, q, v),
                     gravity_effort(model, q), bias_effort(model, q, v), float(kinetic_energy(model, q, v)),
                     float(potential_energy(model, q)))


def _carried(model: RobotModel, q: Array, v: Array, a: Array, wrenches: dict[str, Array] | None,
             wanted: bool) -> NamedWrenches:
    """Joint wrenches, if requested."""
    return by_body(model, joint_wrenches(model, q, v, a, wrenches)) if wanted else ()
