"""Torque controllers that follow references and trajectories, under external wrenches."""
from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...core.model.robot_model import RobotModel
from ...core.motion.position_limits import check_between
from ...core.motion.trajectory import Interpolation, Reference, Trajectory, Waypoint
from ..inputs.joint_map import Turns, total_wrenches
from ..inputs.references import Point, ReferenceInput
from ..inputs.rejections import TAKEN, Rejected, Rejections, Verdict
from ..parameters import Parameter, Table
from .torque_controller import Laws, TorqueController
from .torque_settings import TORQUE_TABLE, TorqueSettings

Array = NDArray[np.float64]

FOLLOWING_TABLE: Table = (
    *TORQUE_TABLE,
    Parameter("reference_timeout", "number", 0.2, "Age of a streamed reference after which the robot stands still at "
              "its position, s; 0: never.", lower=0.0, upper=1e6),
    Parameter("wrench_timeout", "number", 0.1, "Age at which external wrenches expire, s; 0: never.", lower=0.0,
              upper=1e6),
)


@dataclass(frozen=True, kw_only=True)
class FollowingSettings(TorqueSettings):
    """Validated parameters of controllers that follow; timeouts in s."""

    reference_timeout: float
    wrench_timeout: float

    @staticmethod
    def fields_from(values: Mapping[str, Any], model: RobotModel) -> dict[str, Any]:
        return TorqueSettings.fields_from(values, model) | {name: values[name]
                                                            for name in ("reference_timeout", "wrench_timeout")}


class FollowingLaws(Laws):
    """Laws with the reference that they follow."""

    def __init__(self, settings: TorqueSettings, reference: ReferenceInput) -> None:
        super().__init__(settings)
        self.reference = reference


F = TypeVar("F", bound=FollowingLaws)


class FollowingController(TorqueController[F], Generic[F]):
    """Keeps the newest reference and the external wrenches. A subclass implements `make_laws` and `command`."""

    settings: FollowingSettings

    def __init__(self, model: RobotModel, settings: FollowingSettings) -> None:
        rejections = Rejections()
        self.reference = ReferenceInput(model, rejections, settings.reference_timeout, self.interpolation)
        super().__init__(model, settings, rejections)
        self._turns = Turns(model)
        self._wrenches: Array | None = None
        self._wrenches_received = -math.inf
        self._beginning: FollowingLaws | None = None    # those with which a stream began; no trajectory came since

    def interpolation(self, waypoints: Sequence[Waypoint], start: Reference) -> Interpolation:
        """The motion of a trajectory; `RbdError` if it cannot be."""
        trajectory = Trajectory(waypoints, start)
        check_between(self.model, trajectory)
        return trajectory

    def apply(self, settings: TorqueSettings) -> None:
        assert isinstance(settings, FollowingSettings)
        super().apply(settings)
        for reference in self._references():
            reference.timeout = settings.reference_timeout

    def clear(self) -> None:
        for reference in self._references():
            reference.clear()
        self._wrenches = None

    def _references(self) -> list[ReferenceInput]:
        """All that some laws follow, the newest last."""
        fade = self.safety.laws
        return [laws.reference for laws in (fade.old, fade.new) if laws is not None
                and laws.reference is not self.reference] + [self.reference]

    def reset(self, now: float) -> None:
        if self.safety.latched:    # since when there may not have been any state
            for reference in self._references():
                reference.forget(now - self.safety.patience)
        super().reset(now)

    def on_reference(self, now: float, stamp_ns: int, names: Sequence[str], position: ArrayLike,
                     velocity: ArrayLike = (), acceleration: ArrayLike = (), jerk: ArrayLike = (),
                     snap: ArrayLike = ()) -> Verdict:
        """Take a sample of a stream of references. A stream that begins anew may begin elsewhere."""
        before = None if self.reference.streams(now) else self.reference.without_later()
        accepted = self.reference.accept(now, stamp_ns, names, position, velocity, acceleration, jerk, snap)
        if accepted and before is not None:
            fade = self.safety.laws
            self._fade_from(before, self._beginning in (fade.new, fade.newest))
            self._beginning = fade.newest
        return accepted

    def _fade_from(self, before: ReferenceInput, same: bool = False) -> None:
        """The reference begins elsewhere: go over to it from what was followed before. A stream that pauses while it
        still fades in goes on as the `same` one.
        """
        fade = self.safety.laws
        if same and fade.fading:
            return
        alive = [laws for laws in (fade.old, fade.new) if laws is not None]
        if self.safety.modes.share <= 0.0:    # nothing of a command is in the output, so there is nothing to fade from
            for laws in alive:
                laws.reference = self.reference
            return
        for laws in alive:
            if laws.reference is self.reference:
                laws.reference = before
        fade.change(self.make_laws(self.settings))

    def desired(self, now: float, laws: FollowingLaws) -> Reference | None:
        """What these laws follow in the last state, continuous joints in the turn of that."""
        reference = laws.reference.sample(now, self.state.time_ns)
        if reference is None or not self._turns.any:
            return reference
        return reference._replace(q=self._turns.nearest(reference.q, self.state.q))

    def on_trajectory(self, now: float, stamp_ns: int, names: Sequence[str], points: Sequence[Point]) -> Verdict:
        """Take a trajectory, which replaces what was desired before."""
        if self.safety.latched:
            return self.rejections.add(Rejected("bad_trajectory", "no trajectory is accepted during an emergency stop: "
                                                "call ~/reset first"))
        if stamp_ns and self.state.unstamped:
            return self.rejections.add(Rejected("bad_trajectory", "joint states have no stamps to compare the "
                                                "trajectory's stamp with: send it with stamp 0, to begin at once"))
        measured = self.state.q if self.state.age(now) < self.state.timeout else None
        before = self.reference.without_later()
        accepted = self.reference.accept_trajectory(now, stamp_ns, self.state.time_ns, names, points, measured)
        self._beginning = None if accepted else self._beginning
        if accepted.jumps:    # as far as that is allowed
            self._fade_from(before)
        return accepted

    def prepare(self, now: float) -> None:
        """References are forgotten where the robot was stopped or let down, or the loop was too slow for as long: it is
        not where it was meant to be, and a trajectory has gone on without it.
        """
        if self.safety.abandoned(now) or (self.loop.slow and self.loop.slow_for(now) > self.safety.patience):
            for reference in self._references():
                reference.forget(now - self.safety.patience)
        if self.reference.due(self.state.time_ns):
            before = self.reference.without_later()
            if self.reference.begin(now, self.state.time_ns):
                self._fade_from(before)

    def on_wrenches(self, now: float, wrenches: Sequence[tuple[str, ArrayLike]]) -> Verdict:
        """Take all external wrenches: (body, [moment, force] on the body in its link frame)."""
        try:
            self._wrenches = total_wrenches(self.model, wrenches)
        except Rejected as error:
            return self.rejections.add(error)
        self._wrenches_received = now
        return TAKEN

    @property
    def wrenched(self) -> bool:
        """Whether there are external wrenches, which may be too old."""
        return self._wrenches is not None

    def fresh_wrenches(self, now: float) -> Array | None:
        """External wrenches (bodies, 6), None without any."""
        timeout = self.settings.wrench_timeout
        if self._wrenches is not None and 0.0 < timeout < now - self._wrenches_received:
            self._wrenches = None
        return self._wrenches
