"""The feed-forward controller: references, trajectories and external wrenches in, joint efforts out."""
from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..model.robot_model import RobotModel
from .inputs import Rejected
from .law import FEEDFORWARD, Law, LawSettings
from .parameters import Parameter, Table, per_joint, validate
from .reference import Point, ReferenceInput
from .torque import TorqueController
from .torque_settings import TORQUE_TABLE, TorqueSettings, joint_order

Array = NDArray[np.float64]

FEEDFORWARD_TABLE: Table = (
    *TORQUE_TABLE,
    Parameter("feedforward", "string", "full", "Model torque that is added to the feedback: none; gravity of the "
              "measured position; inverse dynamics of the reference (full); inverse dynamics of the measured state "
              "with the feedback as acceleration (computed_torque).", choices=FEEDFORWARD),
    Parameter("gains.kp", "numbers", (0.0,), "Proportional gain, N m/rad or N/m; 1/s² with computed_torque.", lower=0.0,
              upper=1e9),
    Parameter("gains.kd", "numbers", (0.0,), "Derivative gain, N m s/rad or N s/m; 1/s with computed_torque.",
              lower=0.0, upper=1e9),
    Parameter("friction.damping", "bool", True, "Compensate viscous friction (<dynamics damping>) at the reference's "
              "velocity; full and computed_torque."),
    Parameter("friction.coulomb", "bool", True, "Compensate Coulomb friction (<dynamics friction>), likewise."),
    Parameter("friction.smoothing", "number", 0.01, "Velocity s in tanh(v/s), which replaces the sign of v; rad/s or "
              "m/s.", lower=1e-6, upper=100.0),
    Parameter("reference_timeout", "number", 0.2, "Age at which a streamed reference turns into standing still at its "
              "position, s; 0: never.", lower=0.0, upper=1e6),
    Parameter("wrench_timeout", "number", 0.1, "Age at which external wrenches count as gone, s; 0: never.", lower=0.0,
              upper=1e6),
)


@dataclass(frozen=True)
class FeedforwardSettings(TorqueSettings):
    """Validated parameters of the feed-forward controller; timeouts in s."""

    law: LawSettings
    reference_timeout: float
    wrench_timeout: float

    @staticmethod
    def from_values(values: Mapping[str, Any], model: RobotModel) -> FeedforwardSettings:
        """From parameter values by name, defaults where they are missing; `RbdError` says what is wrong."""
        values = validate(FEEDFORWARD_TABLE, values)
        order = joint_order(values["joints"], model)[2]
        law = LawSettings(
            kp=per_joint("gains.kp", values["gains.kp"], order), kd=per_joint("gains.kd", values["gains.kd"], order),
            feedforward=values["feedforward"], friction_damping=values["friction.damping"],
            friction_coulomb=values["friction.coulomb"], friction_smoothing=values["friction.smoothing"],
            compensates=values["robot_compensates"])
        return FeedforwardSettings(law=law, reference_timeout=values["reference_timeout"],
                                   wrench_timeout=values["wrench_timeout"],
                                   **TorqueSettings.fields_from(values, model))


class FeedforwardController(TorqueController):
    """Efforts by the law of the settings, for the newest reference."""

    settings: FeedforwardSettings

    def __init__(self, model: RobotModel, settings: FeedforwardSettings) -> None:
        super().__init__(model, settings)
        self.reference = ReferenceInput(model, self.rejections, settings.reference_timeout)
        self._law = Law(model, settings.law)
        self._wrenches: Array | None = None
        self._wrenches_received = -math.inf

    def apply(self, settings: TorqueSettings) -> None:
        assert isinstance(settings, FeedforwardSettings)
        super().apply(settings)
        self._law = Law(self.model, settings.law)
        self.reference.timeout = settings.reference_timeout

    def clear(self) -> None:
        self.reference.clear()
        self._wrenches = None

    def command(self, now: float) -> Array | None:
        reference = self.reference.sample(now, self.state.stamp_ns)
        if reference is None and self._law.needs_reference:
            return None
        return self._law.effort(self.state.q, self.state.v, reference, self._fresh_wrenches(now))

    def on_reference(self, now: float, stamp_ns: int, names: Sequence[str], position: ArrayLike,
                     velocity: ArrayLike = (), acceleration: ArrayLike = ()) -> bool:
        """Take a sample of a stream of references; False if it was rejected."""
        return self.reference.accept(now, stamp_ns, names, position, velocity, acceleration)

    def on_trajectory(self, now: float, stamp_ns: int, names: Sequence[str], points: Sequence[Point]) -> bool:
        """Take a trajectory, which replaces what was desired before; False if it was rejected."""
        return self.reference.accept_trajectory(now, stamp_ns, self.state.stamp_ns, names, points, self.state.q)

    def on_wrenches(self, now: float, wrenches: Sequence[tuple[str, ArrayLike]]) -> bool:
        """Take all external wrenches: (body, [moment, force] on the body in its link frame); False if rejected."""
        total = np.zeros((len(self.model.body_names), 6))
        try:
            for body, value in wrenches:
                if body not in self.model.body_names:
                    raise Rejected("unknown_body", f"unknown body '{body}' in external wrenches; bodies: "
                                                   f"{', '.join(self.model.body_names)}")
                wrench = np.asarray(value, dtype=np.float64)
                if not np.isfinite(wrench).all():
                    raise Rejected("non_finite", f"external wrench on body '{body}' is not finite")
                total[self.model.body_names.index(body)] += wrench
        except Rejected as error:
            self.rejections.add(error)
            return False
        self._wrenches = total if total.any() else None
        self._wrenches_received = now
        return True

    def _fresh_wrenches(self, now: float) -> Array | None:
        timeout = self.settings.wrench_timeout
        if self._wrenches is not None and 0.0 < timeout < now - self._wrenches_received:
            self._wrenches = None
        return self._wrenches

    def warm_up(self) -> None:
        super().warm_up()
        q, zero = self.model.neutral(), np.zeros(self.model.nv)
        rest = ReferenceInput(self.model, self.rejections, 0.0)
        rest.accept(0.0, 0, self.model.joint_names, q)
        self._law.effort(q, zero, rest.sample(0.0, 0))
        self._law.effort(q, zero, rest.sample(0.0, 0), np.zeros((len(self.model.body_names), 6)))
