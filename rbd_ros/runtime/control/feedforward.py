"""The feed-forward controller: references, trajectories and external wrenches in, joint efforts out."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.dynamics.bodies.link_tree import link_tree
from ...core.model.robot_model import RobotModel
from ...core.motion.trajectory import Reference
from ..friction_terms import FrictionTerms, friction_rows
from ..inputs.references import ReferenceInput
from ..parameters import Parameter, Table, per_joint, validate
from ..robot import joint_order
from ..safety import NOTHING, Command, NoCommand
from ..wrench_sensors import WRENCH_JOINTS, WrenchSensor, readings, wrench_sensors
from .following import FOLLOWING_TABLE, FollowingController, FollowingLaws, FollowingSettings
from .tracking_law import FEEDFORWARD, TrackingLaw, TrackingLawSettings
from .torque_settings import TorqueSettings

Array = NDArray[np.float64]

FEEDFORWARD_TABLE: Table = (
    *FOLLOWING_TABLE,
    Parameter("feedforward", "string", "full", "Model torque that is added to the feedback: none; gravity of the "
              "measured position; inverse dynamics of the reference (full); inverse dynamics of the measured state "
              "with the feedback as acceleration (computed_torque).", choices=FEEDFORWARD),
    Parameter("gains.kp", "numbers", (0.0,), "Proportional gain, N m/rad or N/m; 1/s² with computed_torque.", lower=0.0,
              upper=1e9),
    Parameter("gains.kd", "numbers", (0.0,), "Derivative gain, N m s/rad or N s/m; 1/s with computed_torque.",
              lower=0.0, upper=1e9),
    *friction_rows("Compensate", where=" at the reference's velocity; full and computed_torque"),
    WRENCH_JOINTS,
)


@dataclass(frozen=True, kw_only=True)
class FeedforwardSettings(FollowingSettings):
    """Validated parameters of the feed-forward controller."""

    law: TrackingLawSettings
    sensors: tuple[WrenchSensor, ...] = ()

    @staticmethod
    def from_values(values: Mapping[str, Any], model: RobotModel) -> FeedforwardSettings:
        """From parameter values by name, defaults where they are missing; `RbdError` says what is wrong."""
        values = validate(FEEDFORWARD_TABLE, values)
        order = joint_order(values["joints"], model)[2]
        law = TrackingLawSettings(
            kp=per_joint("gains.kp", values["gains.kp"], order), kd=per_joint("gains.kd", values["gains.kd"], order),
            feedforward=values["feedforward"], friction=FrictionTerms.from_values(values),
            compensates=values["robot_compensates"])
        sensors = wrench_sensors(values["wrench_joints"], model)
        settings = FeedforwardSettings(law=law, sensors=sensors, **FollowingSettings.fields_from(values, model))
        if sensors:    # what a new model takes at first, some ms, is not for the thread that computes torque
            link_tree(settings.model)
        return settings


class FeedforwardLaws(FollowingLaws):
    """The law of these settings."""

    def __init__(self, settings: FeedforwardSettings, reference: ReferenceInput) -> None:
        super().__init__(settings, reference)
        self.law = TrackingLaw(self.model, settings.law)


class FeedforwardController(FollowingController[FeedforwardLaws]):
    """Efforts by the law of the settings, for the newest reference."""

    settings: FeedforwardSettings

    def make_laws(self, settings: FeedforwardSettings) -> FeedforwardLaws:
        return FeedforwardLaws(settings, self.reference)

    def apply(self, settings: TorqueSettings) -> None:
        followed = self.safety.laws.newest.law.needs_reference
        super().apply(settings)
        if self.safety.laws.newest.law.needs_reference and not followed:    # by hand, it may have been led far from it
            self.reference.clear()

    def command(self, now: float, laws: FeedforwardLaws) -> Command | NoCommand:
        reference, law = self.desired(now, laws), laws.law
        if (reference is None and law.needs_reference) or (law.only_feedback and self.loop.share <= 0.0):
            return NOTHING
        return Command(law.effort(self.state.q, self.state.v, reference, self.fresh_wrenches(now), self.loop.share))

    def sensed(self, now: float) -> Array | None:
        """What the force-torque sensors of the settings should show (n, 6) in the last state, under the external
        wrenches, if the robot accelerates as it is meant to: as the reference does, or not at all without one. None
        where states are too old, or there are no sensors.
        """
        state, settings = self.state, self.settings
        if not settings.sensors or state.age(now) >= state.timeout:
            return None
        meant = self.desired(now, self.safety.laws.newest) if self.safety.mode in ("ramp_in", "running") else None
        return readings(self.model, settings.sensors, state.q, state.v,
                        np.zeros(self.model.nv) if meant is None else meant.a, self.fresh_wrenches(now))

    def warm_up(self) -> None:
        super().warm_up()
        zero = np.zeros(self.model.nv)
        readings(self.model, self.settings.sensors, self.model.neutral(), zero, zero, None)
        q, zero, law = self.model.neutral(), np.zeros(self.model.nv), self.safety.laws.newest.law
        law.effort(q, zero, Reference.rest(q))
        law.effort(q, zero, Reference.rest(q), np.zeros((len(self.model.body_names), 6)))
