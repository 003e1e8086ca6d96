"""Torque with its first and second time derivative along a reference, for flatness control of elastic joints.

    τ = ID(q, v, a) + friction(v) + Kp (q_ref ⊖ q) + Kd (v_ref − v)

Inverse dynamics, friction and their time derivatives are evaluated along the reference, using its derivatives up to
the fourth order (M, recursion of `derivatives.time_derivatives`). The feedback is added to τ only: τ̇ and τ̈ are those of
the smooth feed-forward. External wrenches are assumed constant in the body frame.
"""
from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from ...core.actuation.elastic_law import MODES
from ...core.derivatives.time_derivatives import friction_series, inverse_dynamics_time_derivatives
from ...core.dynamics.inverse import inverse_dynamics
from ...core.errors import RbdError
from ...core.model.robot_model import RobotModel
from ...core.motion.smooth_trajectory import SmoothTrajectory
from ...core.motion.trajectory import Reference, Waypoints
from ..damping_gains import DampingGains, sampled_inertia
from ..friction_terms import FrictionTerms, drive_friction_rows, friction_rows
from ..inputs.references import ReferenceInput
from ..parameters import Parameter, Table, parameter, validate
from ..robot import joint_order
from ..safety import NOTHING, Command, NoCommand
from ..safety.hold import HoldGains
from .following import FollowingController, FollowingLaws, FollowingSettings, following_table

Array = NDArray[np.float64]

ELASTIC_TABLE: Table = (    # of robots with elastic joints; ignored without `actuation_file`
    Parameter("actuation_file", "string", "", "YAML file of the drives: which joints are rigid, series elastic or of "
              "variable stiffness. Empty: the rigid form, without motors.", read_only=True),
    Parameter("mode", "string", "feed_forward_pd", "Motor torque with actuation_file: feed_forward, with a PD of all "
              "motors, or feedback linearisation of links and motors.", choices=MODES),
    Parameter("motor_gains.kp", "numbers", (0.0,), "Proportional gain of feed_forward_pd, N m/rad or N/m: one number, "
              "or one per motor (the joints, then the second motors).", lower=0.0, upper=1e9, per="motor"),
    Parameter("motor_gains.kd", "numbers", (0.0,), "Derivative gain of feed_forward_pd, N m s/rad or N s/m, likewise.",
              lower=0.0, upper=1e9, per="motor"),
    Parameter("poles", "numbers", (100.0,), "Bandwidth of the error dynamics of each joint under "
              "feedback_linearization, all its poles at minus this, 1/s.", lower=1e-3, upper=1e6),
    Parameter("stiffness_poles", "numbers", (50.0,), "The same for a stiffness, in all modes: how fast it follows "
              "`stiffness`, 1/s. One number, or one per joint of variable stiffness.", lower=1e-3, upper=1e6,
              per="joint of variable stiffness"),
    Parameter("stiffness", "numbers", (-1.0,), "Desired stiffness of joints of variable stiffness, N m/rad or N/m: one "
              "number, or one per such joint; -1: as in actuation_file.", lower=-1.0, upper=1e12,
              per="joint of variable stiffness"),
    Parameter("motor_effort_limits.maximum", "numbers", (-1.0,), "Limit of the motor torque behind the gear, N m or N: "
              "one number, or one per motor; -1: that of the joint.", lower=-1.0, per="motor"),
    Parameter("motor_effort_limits.rate", "numbers", (math.inf,), "Rate limit of the motor torque, N m/s or N/s, "
              "likewise; of feedback_linearization, whose torque is feedback, it holds back ramps and fades alone.",
              lower=1e-3, per="motor"),
)


@dataclass(frozen=True, kw_only=True)
class FlatnessSettings(FollowingSettings):
    """Validated parameters; gains (nv,) in N m/rad, N m s/rad."""

    kp: Array = parameter((0.0,), "Proportional gain, N m/rad or N/m.", name="gains.kp", lower=0.0, upper=1e9)
    kd: Array = parameter((0.0,), "Derivative gain, N m s/rad or N s/m.", name="gains.kd", lower=0.0, upper=1e9)
    friction: FrictionTerms

    @staticmethod
    def from_values(values: Mapping[str, Any], model: RobotModel) -> FlatnessSettings:
        """Validate parameter values by name; missing ones get their defaults. Raises `RbdError`."""
        values = validate(FLATNESS_TABLE, values)
        if "coriolis" in values["robot_compensates"]:
            raise RbdError("parameter 'robot_compensates': 'coriolis' is not supported in flatness control, as its "
                           "time derivatives depend on the measured state; expected 'gravity', 'friction'")
        order = joint_order(values["joints"], model)[2]
        return FlatnessSettings(friction=FrictionTerms.from_values(values, order),
                                **FlatnessSettings.fields_from(values, model))

    def damping_gains(self) -> DampingGains | None:
        model = self.model
        return DampingGains("gains.kd", model.joint_names, self.kd, sampled_inertia(model),
                            model.armature > 0.0) if self.kd.any() else None


FLATNESS_TABLE: Table = (
    *following_table(FlatnessSettings),
    *friction_rows("Compensate", 0.1, beware=" The second derivative of the torque grows with 1/s²."),
    *drive_friction_rows(), *ELASTIC_TABLE,
)


class FlatnessLaws(FollowingLaws):
    """Feed-forward with its time derivatives, and feedback, for given settings."""

    settings: FlatnessSettings

    def __init__(self, settings: FlatnessSettings, reference: ReferenceInput) -> None:
        super().__init__(settings, reference)
        model = self.model
        self._feedback = bool(settings.kp.any() or settings.kd.any())
        self._hold_gains = self.bounded(settings.kp, settings.kd, settings.safety.effort_limit)
        # Gravity compensated by the robot is subtracted from the torque and from its derivatives.
        self._dynamics = model.with_(gravity=(0.0, 0.0, 0.0)) if "gravity" in settings.compensates else model
        self._friction = None if "friction" in settings.compensates else settings.friction.of(model)
        self._law = None if "friction" in settings.compensates else settings.friction.law(model)

    def return_time(self) -> Array:
        kp, kd = self.settings.kp, self.settings.kd
        return np.divide(kd, kp, out=np.full(self.model.nv, np.inf), where=(kp > 0.0) & (kd > 0.0))

    def hold_gains(self, q: Array) -> HoldGains | None:
        return self._hold_gains

    def effort(self, q: Array, v: Array, reference: Reference, wrenches: Any = None,
               share: float = 1.0) -> tuple[Array, Array | None]:
        """τ (nv,) in the state q, v, with the feedback scaled by `share`, and τ̇, τ̈ (2, nv) of the feed-forward, None
        if unknown.
        """
        effort, rates = self.feedforward(reference, wrenches)
        if self._feedback and share > 0.0:
            s = self.settings
            feedback = s.kp * self.model.difference(q, reference.q) + s.kd * (reference.v - v)
            effort = effort + (feedback if share >= 1.0 else share * feedback)
        return effort, rates

    def feedforward(self, reference: Reference, wrenches: Any = None) -> tuple[Array, Array | None]:
        """τ (nv,), and τ̇, τ̈ (2, nv); the latter None if non-finite or if the reference has no jerk and snap."""
        q, v, a = reference.q, reference.v, reference.a
        if reference.jerk is None or reference.snap is None:
            effort = inverse_dynamics(self._dynamics, q, v, a, wrenches)
            return (effort if self._law is None else self._law.add(v, effort)), None
        efforts = inverse_dynamics_time_derivatives(self._dynamics, q, v, a, reference.jerk, reference.snap,
                                                    external_wrenches=None if wrenches is None else [wrenches])
        if self._law is not None:
            efforts += friction_series(self._law, (v, a, reference.jerk), list(efforts))
        return efforts[0], efforts[1:] if np.isfinite(efforts[1:]).all() else None


W = TypeVar("W", bound=FlatnessLaws)


class FlatnessController(FollowingController[W], Generic[W]):
    """Computes efforts and their time derivatives for the newest reference. The derivatives are None if non-finite or
    if the reference has no jerk and snap.
    """

    settings: FlatnessSettings

    def make_laws(self, settings: Any) -> W:
        return FlatnessLaws(settings, self.reference)    # type: ignore[return-value]

    def interpolation(self, waypoints: Waypoints, start: Reference) -> SmoothTrajectory:
        return SmoothTrajectory(waypoints, start, self.model)

    def command(self, now: float, laws: W) -> Command | NoCommand:
        reference = self.desired(now, laws)
        if reference is None:
            laws.use(self.state.received, None)
            return NOTHING
        if problem := self.astray(now, laws, reference):
            return self.lost(laws, problem)
        wrenches = self.fresh_wrenches(now)
        laws.use(self.state.received, (reference, wrenches))
        return Command(*laws.effort(self.state.q, self.state.v, reference, wrenches, self.loop.share))

    def again(self, laws: W) -> tuple[Array, ...] | None:
        used = laws.before(self.state.received)
        if used is None:
            return None
        reference, wrenches = used
        return (laws.effort(self.state.q, self.state.v, self.turned(reference), wrenches, self.loop.share)[0],)

    def warm_up(self) -> None:
        super().warm_up()
        q, laws = self.model.neutral(), self.safety.laws.newest
        wrenches = np.zeros((len(self.model.body_names), 6))
        for reference in (Reference.rest(q), Reference(q, self._zero, self._zero)):
            laws.feedforward(reference)
            laws.feedforward(reference, wrenches)
