"""Result of identification: model, friction, residuals, confidence."""
from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..dynamics.friction import STRIBECK_VELOCITY, Friction, joint_friction
from ..dynamics.inverse import inverse_dynamics
from ..errors import RbdError, unknown_name
from ..model.coordinates import per_coordinate
from ..model.inertia import Inertia, combine
from ..model.robot_model import RobotModel
from .base_parameters import BaseParameters
from .drive_friction import DriveFriction
from .expected_error import ExpectedError, ParameterErrors, ResidualBySpeed
from .regressor_columns import columns_of, follower_rotors, inertia_of
from .stribeck import StribeckTerms
from .transmission import Transmission
from .unknowns import Unknowns
from .zeros import Zeros
from .written.node_files import actuation_text, controller_text, parameters_text, ur_friction_text, write_text
from .written.urdf_writer import rewritten

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Estimate:
    """A base parameter: value of the consistent model; linear: of unconstrained least squares, with the 95 % interval
    ± half_width; prior: of the description; seen: whether the recording determines it.
    """

    name: str
    value: float
    linear: float
    half_width: float
    prior: float
    seen: bool


@dataclass(frozen=True)
class StribeckVelocity:
    """Stribeck velocity of a joint (rad/s, m/s), with the 95 % interval ± half_width."""

    joint: str
    velocity: float
    half_width: float


@dataclass(frozen=True, eq=False)
class Residuals:
    """‖τ − τ̂‖ / ‖τ‖ per joint (nv,) and over all joints: of the description, of the result, and of unconstrained least
    squares, on held-out data if held_out; training: of the result on fitted data.
    """

    before: Array
    after: Array
    unconstrained: Array
    overall_before: float
    overall: float
    overall_unconstrained: float
    training: float
    held_out: bool


@dataclass(frozen=True, eq=False)
class Validation:
    """Efforts (N, nv) of the validation: measured, of the description, of the result; and its residual by speed."""

    measured: Array
    before: Array
    after: Array
    by_speed: ResidualBySpeed


@dataclass(frozen=True, eq=False, repr=False)
class Identification:
    """The result of `identify`.

    model: with the new inertias, rotors, damping and friction. offset (nv,): constant effort per joint, N m or N. load:
    of mode "payload", in addition to the body's own inertia, in the frame of its link. confidence: base parameters with
    intervals; unidentifiable: names of the parameters that the recording does not determine, with the description's
    values. findings: results, exclusions and doubts, as text. delay (s), gains (nv,): applied to the efforts. cutoff:
    of the filter, Hz. prior: the initial model. stribeck_height (nv,): friction near rest above the Coulomb level, N m
    or N, zero if not requested or not determined; stribeck: velocities of the joints with a height. drives: friction by
    direction and by load, if requested, zero if not determined. reversed: joints whose effort has the wrong sign; then
    no model is written. transmission: with rotors and friction of motors on more than one joint, which neither URDF nor
    nodes support. zeros: offsets of positions, and gravity, if requested: `model` has this gravity, and efforts are
    those of recorded positions plus offsets. covariance (rank, rank): of the unconstrained base parameters.
    """

    model: RobotModel
    smoothing: float
    offset: Array
    load: Inertia | None
    residual: Residuals
    confidence: tuple[Estimate, ...]
    unidentifiable: tuple[str, ...]
    findings: tuple[str, ...]
    base: BaseParameters
    condition: float
    delay: float
    gains: Array
    cutoff: float
    duration: float
    prior: RobotModel
    mode: str
    validation: Validation
    stribeck_height: Array
    stribeck: tuple[StribeckVelocity, ...]
    covariance: Array
    transmission: Transmission | None = None
    reversed: tuple[str, ...] = ()
    zeros: Zeros | None = None
    drives: DriveFriction | None = None

    @property
    def friction(self) -> Friction:
        """Friction of the joints: damping, Coulomb level, Stribeck's effect, dependence on direction and load."""
        law = joint_friction(self.model, self.smoothing)
        if self.stribeck:
            law = Friction(self.model.damping, self.model.friction, self.model.friction + self.stribeck_height,
                           self.stribeck_velocity, self.smoothing)
        return law if self.drives is None else dataclasses.replace(law, **self.drives._asdict())

    @property
    def stribeck_velocity(self) -> Array:
        """Stribeck velocities (nv,), rad/s or m/s; the default for joints that do not show the effect."""
        velocities = np.full(self.model.nv, STRIBECK_VELOCITY)
        for entry in self.stribeck:
            velocities[self.model.velocity_names.index(entry.joint)] = entry.velocity
        return velocities

    def effort(self, q: ArrayLike, v: ArrayLike, a: ArrayLike) -> Array:
        """Efforts of the motors: inverse dynamics, friction and offset, (nv,) or (N, nv), N m or N. For a robot with
        closed loops, the joint efforts without constraint forces: see `constrained_inverse_dynamics`.
        """
        tau: Array = inverse_dynamics(self.model, self._true_position(q), v, a)
        tau = self.friction.add(np.asarray(v, dtype=np.float64), tau) + self.offset
        return tau if self.transmission is None else tau + self.transmission.effort(self.model, v, a, self.smoothing)

    @property
    def parameter_errors(self) -> ParameterErrors:
        """Errors of the independent base parameters, the others held."""
        names = tuple(self.base.parameter_names[i] for i in self.base.independent)
        return ParameterErrors(self.prior, names, self.covariance, self.smoothing)

    def expected_error(self, q: ArrayLike, v: ArrayLike, a: ArrayLike) -> ExpectedError:
        """The expected error of this model's feed-forward efforts on a motion q, v, a (N, nv): from the residual of
        held-out motion at the same speeds, and from the uncertainty of the parameters.
        """
        from ..model.state import states

        arrays = states(self.model, positions={"q": q}, rates={"v": v, "a": a}).arrays
        q, v, a = (np.atleast_2d(x) for x in arrays)
        speeds = self.validation.by_speed
        deviation = self.parameter_errors.of_joints.deviation(self._true_position(q), v, a)
        return ExpectedError(speeds.at(v), deviation, np.abs(v).max(axis=0) > speeds.fastest)

    def _true_position(self, q: Any) -> Any:
        """True positions of encoder positions q: with the zero offsets added."""
        return q if self.zeros is None else np.asarray(q, dtype=np.float64) + self.zeros.position

    def require_signs(self) -> None:
        """Raise `RbdError` if efforts have the wrong sign: the fitted bodies and friction are then wrong."""
        if self.reversed:
            gains = " ".join(f"{name}=-1" for name in self.reversed)
            raise RbdError(f"no model is written: the effort of {', '.join(self.reversed)} has the wrong sign. Give "
                           f"--gains {gains} (in Python: gains={{\"{self.reversed[0]}\": -1.0}}), or correct the "
                           "recording")

    def write_urdf(self, path: str | os.PathLike[str], source: str | os.PathLike[str]) -> None:
        """Write the description `source` (file or XML text of the identified model) with new inertials, damping,
        friction and rotors; everything else, including comments, is unchanged.
        """
        self.require_signs()
        write_text(path, rewritten(source, self.prior, self.model))

    def write_parameters(self, path: str | os.PathLike[str]) -> None:
        """YAML with the nodes' parameters of rotors and friction, see `parameters_text`."""
        self.require_signs()
        write_text(path, parameters_text(self.model, self.friction))

    def write_actuation(self, path: str | os.PathLike[str]) -> None:
        """YAML of the drives with rotors and Stribeck's effect, see `actuation_text`."""
        self.require_signs()
        write_text(path, actuation_text(self.model, self.friction))

    def write_controller(self, path: str | os.PathLike[str], gains: ArrayLike | Mapping[str, float] | None = None
                         ) -> None:
        """Numbers for a controller by `rbd generate --ros2-control`, see `controller_text`. gains: (nv,) or by joint,
        where its drives are commanded in the unit of the recorded efforts; 1 for joints without one.
        """
        self.require_signs()
        if isinstance(gains, Mapping):
            for name in set(gains) - set(self.model.joint_names):
                raise unknown_name("joint", name, self.model.joint_names, "gains")
            gains = [gains.get(name, 1.0) for name in self.model.joint_names]
        scale = None if gains is None else per_coordinate(gains, self.model.nv, 0.0, "gains")
        write_text(path, controller_text(self.model, self.friction, scale))

    def write_ur_friction(self, path: str | os.PathLike[str]) -> None:
        """YAML that turns off a UR's own friction compensation, see `ur_friction_text`."""
        self.require_signs()
        write_text(path, ur_friction_text(self.model, self.friction))

    def __repr__(self) -> str:
        r = self.residual
        return (f"Identification of '{self.model.name}' ({self.mode}): residual {100.0 * r.overall:.2f} % "
                f"(was {100.0 * r.overall_before:.2f} %), {len(self.confidence)} base parameters, "
                f"{len(self.unidentifiable)} not seen")


def identified_model(model: RobotModel, theta: Array, unknown: Unknowns, part: Array,
                     stribeck: StribeckTerms | None) -> tuple[RobotModel, Inertia | None, Array, Array]:
    """The model with parameters θ, the load (mode "payload"), offsets and Stribeck heights (nv,)."""
    links = dict(model.description.links)
    load = None
    for k, (name, first, _) in enumerate(unknown.bodies):
        if unknown.load:
            load = inertia_of(part[10 * k:10 * k + 10])
            links[name] = combine([links[name], load])
        else:
            links[name] = inertia_of(theta[first:first + 10])
    changed = RobotModel.from_description(dataclasses.replace(model.description, links=links))
    values: dict[str, Array] = {}
    scalars = unknown.scalars
    for kind, field in (("rotor", "armature"), ("viscous", "damping"), ("coulomb", "friction")):
        columns = columns_of(model, kind)
        if np.any((scalars >= columns.start) & (scalars < columns.stop)):
            values[field] = np.maximum(theta[columns], 0.0)
    if "armature" in values:
        values["armature"] = np.maximum(values["armature"] - follower_rotors(model), 0.0)
    height = np.zeros(model.nv)
    if stribeck is not None:
        height[stribeck.joints] = theta[len(theta) - len(stribeck.joints):]
    return (changed.with_(**values) if values else changed), load, np.array(theta[columns_of(model, "offset")]), height
