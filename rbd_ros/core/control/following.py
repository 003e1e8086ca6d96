"""Torque controllers that follow references and trajectories, under external wrenches."""
from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..model.robot_model import RobotModel
from .inputs import Rejected, Turns, total_wrenches
from .parameters import Parameter, Table
from .position_limits import check_between
from .reference import Point, ReferenceInput
from .torque import TorqueController
from .torque_settings import TORQUE_TABLE, TorqueSettings
from .trajectory import Interpolation, Reference, Trajectory, Waypoint

Array = NDArray[np.float64]

FOLLOWING_TABLE: Table = (
    *TORQUE_TABLE,
    Parameter("reference_timeout", "number", 0.2, "Age at which a streamed reference turns into standing still at its "
              "position, s; 0: never.", lower=0.0, upper=1e6),
    Parameter("wrench_timeout", "number", 0.1, "Age at which external wrenches count as gone, s; 0: never.", lower=0.0,
              upper=1e6),
)


@dataclass(frozen=True)
class FollowingSettings(TorqueSettings):
    """Validated parameters of controllers that follow; timeouts in s."""

    reference_timeout: float
    wrench_timeout: float

    @staticmethod
    def fields_from(values: Mapping[str, Any], model: RobotModel) -> dict[str, Any]:
        return TorqueSettings.fields_from(values, model) | {name: values[name]
                                                            for name in ("reference_timeout", "wrench_timeout")}


class FollowingController(TorqueController):
    """Keeps the newest reference and the external wrenches. A subclass implements `command`."""

    settings: FollowingSettings

    def __init__(self, model: RobotModel, settings: FollowingSettings) -> None:
        super().__init__(model, settings)
        self.reference = ReferenceInput(model, self.rejections, settings.reference_timeout, self.interpolation)
        self._turns = Turns(model)
        self._wrenches: Array | None = None
        self._wrenches_received = -math.inf

    def interpolation(self, waypoints: Sequence[Waypoint], start: Reference) -> Interpolation:
        """The motion of a trajectory; `RbdError` if it cannot be."""
        trajectory = Trajectory(waypoints, start)
        check_between(self.model, trajectory)
        return trajectory

    def apply(self, settings: TorqueSettings) -> None:
        assert isinstance(settings, FollowingSettings)
        super().apply(settings)
        self.reference.timeout = settings.reference_timeout

    def clear(self) -> None:
        self.reference.clear()
        self._wrenches = None

    def reset(self, now: float) -> None:
        if self.safety.latched:    # since when there may not have been any state
            self.reference.forget(now - self.safety.patience)
        super().reset(now)

    def on_reference(self, now: float, stamp_ns: int, names: Sequence[str], position: ArrayLike,
                     velocity: ArrayLike = (), acceleration: ArrayLike = (), jerk: ArrayLike = (),
                     snap: ArrayLike = ()) -> bool:
        """Take a sample of a stream of references; False if it was rejected. A stream that begins anew may begin
        elsewhere.
        """
        begins = not self.reference.streams(now)
        accepted = self.reference.accept(now, stamp_ns, names, position, velocity, acceleration, jerk, snap)
        if accepted and begins:
            self.soften()
        return accepted

    def desired(self, now: float) -> Reference | None:
        """What to follow in the last state, continuous joints in the turn of that.

        Forgotten where the robot was stopped or let down: it is not where it was meant to be, and a trajectory has
        gone on without it.
        """
        if self.safety.abandoned(now):
            self.reference.forget(now - self.safety.patience)
        reference = self.reference.sample(now, self.state.time_ns)
        if self.reference.jumped:
            self.reference.jumped = False
            self.soften()
        return None if reference is None else replace(reference, q=self._turns.nearest(reference.q, self.state.q))

    def on_trajectory(self, now: float, stamp_ns: int, names: Sequence[str], points: Sequence[Point]) -> bool:
        """Take a trajectory, which replaces what was desired before; False if it was rejected."""
        if self.safety.latched:
            self.rejections.add(Rejected("bad_trajectory", "a trajectory would run on during the emergency stop: reset "
                                         "that first"))
            return False
        if stamp_ns and self.state.unstamped:
            self.rejections.add(Rejected("bad_trajectory", "joint states have no stamps that the trajectory's could be "
                                         "compared with: send it with stamp 0, to begin at once"))
            return False
        measured = self.state.q if self.state.age(now) < self.state.timeout else None
        return self.reference.accept_trajectory(now, stamp_ns, self.state.time_ns, names, points, measured)

    def on_wrenches(self, now: float, wrenches: Sequence[tuple[str, ArrayLike]]) -> bool:
        """Take all external wrenches: (body, [moment, force] on the body in its link frame); False if rejected."""
        try:
            self._wrenches = total_wrenches(self.model, wrenches)
        except Rejected as error:
            self.rejections.add(error)
            return False
        self._wrenches_received = now
        return True

    def fresh_wrenches(self, now: float) -> Array | None:
        """External wrenches (bodies, 6), None without any."""
        timeout = self.settings.wrench_timeout
        if self._wrenches is not None and 0.0 < timeout < now - self._wrenches_received:
            self._wrenches = None
        return self._wrenches
