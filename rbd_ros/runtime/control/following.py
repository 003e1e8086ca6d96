"""Torque controllers that follow references and trajectories, under external wrenches."""
from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...core.model.robot_model import RobotModel
from ...core.motion.position_limits import check_between
from ...core.motion.velocity_limits import FASTER, velocity_limits
from ...core.motion.trajectory import Interpolation, Reference, Trajectory, Waypoints
from ..inputs.joint_map import Turns
from ..inputs.references import Offer, ReferenceInput
from ..inputs.rejections import Rejected, Rejections, Verdict
from ..inputs.trajectory_points import MOST_POINTS, Point, PointTable
from ..inputs.wrench_input import WrenchInput, WrenchSettings
from ..parameters import Table, parameter, table_of, taken
from ..safety import NoCommand, SafetySettings
from .torque_controller import Controller, Laws
from .torque_settings import TORQUE_TABLE, TorqueSettings

Array = NDArray[np.float64]
LEAST_TOLERANCE = 0.1    # rad or m
TRIES = 10               # attempts to check a trajectory while other threads change its start
NO_LOCK = nullcontext()
BRAKING = 0.3            # s
LEAVING = "is accepted from the deactivation on: the torque ramps to the safe effort"


@dataclass(frozen=True, kw_only=True)
class FollowingSettings(TorqueSettings):
    """Validated parameters of controllers that follow references; timeout in s."""

    reference_timeout: float = parameter(0.2, "Age of a streamed reference after which the robot stands still at its "
                                         "position, s; 0: never.", lower=0.0, upper=1e6)
    reference_lead: float = parameter(0.0, "How far ahead of each joint state a trajectory is sampled, s: the delay of "
                                      "a command, and half a period. For loops of 200 Hz and less.", lower=0.0,
                                      upper=0.2, read_only=True)
    tracking_tolerance: Array = parameter((-1.0,), "Largest distance of a joint from its reference, rad or m: a robot "
                                          "that is farther away does not follow, and is stopped where it is. -1: where "
                                          "the feedback alone would lead it back faster than the velocity limit of its "
                                          "description (10 rad/s or 2 m/s if that is 0 or missing), 0.1 at least; inf: "
                                          "none.", lower=-1.0)
    wrenches: WrenchSettings

    @classmethod
    def fields_from(cls, values: Mapping[str, Any], model: RobotModel) -> dict[str, Any]:
        return super().fields_from(values, model) | {"wrenches": WrenchSettings(**taken(WrenchSettings, values))}


def following_table(*kinds: type[Any]) -> Table:
    """The parameters of a controller that follows references, whose settings these are."""
    return *TORQUE_TABLE, MOST_POINTS, *table_of(*kinds, SafetySettings, WrenchSettings)


class FollowingLaws(Laws):
    """Control laws with the followed reference. `used`, `used_before`: inputs, other than the state, of the last
    command and of the one before; None without a command.
    """

    settings: FollowingSettings

    def __init__(self, settings: FollowingSettings, reference: ReferenceInput) -> None:
        super().__init__(settings)
        self.reference = reference
        self.used: Any = None
        self.used_before: Any = None
        self._used_at = -math.inf
        self.tolerance = self._tolerance()

    def return_time(self) -> Array:
        """Time constant (nv,) in s of the return by feedback alone: error over requested velocity; inf without
        feedback.
        """
        return np.full(self.model.nv, math.inf)

    def _tolerance(self) -> Array:
        """Largest tracking error (nv,) allowed."""
        tolerance = self.settings.tracking_tolerance
        by_gains = np.maximum(velocity_limits(self.model) * self.return_time(), LEAST_TOLERANCE)
        return np.array(np.where(tolerance < 0.0, by_gains, tolerance))

    def use(self, at: float, inputs: Any) -> None:
        """Record the inputs of the command for the state received at this time."""
        self.used_before, self.used, self._used_at = self.used, inputs, at

    def using(self, at: float) -> Any:
        """Inputs of the command for the state received at this time; None without one."""
        return self.used if self._used_at == at else None

    def before(self, at: float) -> Any:
        """Inputs of the command for the state before the one received at this time."""
        return self.used_before if self._used_at == at else self.used


F = TypeVar("F", bound=FollowingLaws)


class FollowingController(Controller[F], Generic[F]):
    """Stores the newest reference and the external wrenches. A subclass implements `make_laws` and `command`."""

    settings: FollowingSettings

    def __init__(self, model: RobotModel, settings: FollowingSettings) -> None:
        rejections = Rejections()
        self.reference = ReferenceInput(model, rejections, settings.reference_timeout, self.interpolation)
        super().__init__(model, settings, rejections)
        self._turns, self._fastest = Turns(model), velocity_limits(model)
        self._not_following = 0    # cycles
        self.wrenches = WrenchInput(model, rejections, settings.wrenches)
        self._beginning: FollowingLaws | None = None    # laws at the start of the stream; None after a trajectory

    def interpolation(self, waypoints: Waypoints, start: Reference) -> Interpolation:
        """The motion through waypoints; raises `RbdError` if infeasible."""
        trajectory = Trajectory(waypoints, start)
        check_between(self.model, trajectory)
        return trajectory

    def apply(self, settings: TorqueSettings) -> None:
        assert isinstance(settings, FollowingSettings)
        super().apply(settings)
        for reference in self._references():
            reference.timeout = settings.reference_timeout
        self.wrenches.allow(settings.wrenches)

    def clear(self) -> None:
        for reference in self._references():
            reference.clear()
        self.wrenches.clear()

    @property
    def reference_ns(self) -> int:
        """The time (ns) at which references are sampled for the last state: its stamp and `reference_lead`."""
        return self.state.time_ns + round(self.settings.reference_lead * 1e9)

    def _references(self) -> list[ReferenceInput]:
        """The references of all active laws, the newest last."""
        fade = self.safety.laws
        return [laws.reference for laws in (fade.old, fade.new) if laws is not None
                and laws.reference is not self.reference] + [self.reference]

    def reset(self, now: float) -> None:
        if self.safety.latched:    # no state may have arrived since the stop
            self._drop("an emergency stop", now)
        super().reset(now)

    def begin_anew(self) -> None:
        cause = "of another clock" if self.state.clock_restarts != self._clocks else "of a robot that is elsewhere"
        dropped = any([reference.followed is not None or reference.waits for reference in self._references()])
        self.notice(f"joint states are those {cause}" + (
            ": the trajectory or reference was dropped, and the robot is held; send another one" if dropped else ""))
        super().begin_anew()

    def _drop(self, cause: str, now: float) -> None:
        """Forget references older than `patience`."""
        if any([reference.forget(now - self.safety.patience) for reference in self._references()]):
            self.notice(f"the trajectory or reference was dropped: {cause}")

    def on_reference(self, now: float, stamp_ns: int, names: Sequence[str], position: ArrayLike,
                     velocity: ArrayLike = (), acceleration: ArrayLike = (), jerk: ArrayLike = (),
                     snap: ArrayLike = ()) -> Verdict:
        """Take a sample of a stream of references. A new stream may start at another position."""
        before = None if self.reference.streams(now) else self.reference.without_later()
        if before is not None and self.safety.leaving:    # a stream that is followed goes on, in the ramp
            return self.rejections.add(Rejected("bad_trajectory", f"no reference {LEAVING}"))
        accepted = self.reference.accept(now, stamp_ns, names, position, velocity, acceleration, jerk, snap)
        if accepted and before is not None:
            fade = self.safety.laws
            self._fade_from(before, self._beginning in (fade.new, fade.newest))
            self._beginning = fade.newest
        return accepted

    def followed(self, now: float) -> Reference | None:
        """The newest reference at the last state, from which a trajectory begins; None without one."""
        reference = self.reference.at(now, self.reference_ns)
        return None if reference is None else self.turned(reference)

    def _fade_from(self, before: ReferenceInput, same: bool = False) -> None:
        """Fade from the reference followed before to the new one. A stream that pauses during its fade-in continues
        as the `same` stream.
        """
        fade = self.safety.laws
        if same and fade.fading:
            return
        alive = [laws for laws in (fade.old, fade.new) if laws is not None]
        if self.safety.modes.share <= 0.0:    # the output contains no command, so there is nothing to fade from
            for laws in alive:
                laws.reference = self.reference
            return
        for laws in alive:
            if laws.reference is self.reference:
                laws.reference = before
        fade.change(self.make_laws(self.settings))

    def desired(self, now: float, laws: FollowingLaws) -> Reference | None:
        """The reference of these laws in the last state; continuous joints within half a turn of the state."""
        reference = laws.reference.sample(now, self.reference_ns)
        return None if reference is None else self.turned(reference)

    def turned(self, reference: Reference) -> Reference:
        """The reference with continuous joints within half a turn of the last state."""
        return reference._replace(q=self._turns.nearest(reference.q, self.state.q)) if self._turns.any else reference

    def lagging(self, now: float, laws: F, reference: Reference) -> Array:
        """Way (nv,) from the reference of these laws to that of a mixed torque: during a fade, feedback leads to a mean
        of both references. At most what the velocity limits allow since the fade began: a robot that was elsewhere then
        does not follow.
        """
        fade = self.safety.laws
        other = fade.old if laws is fade.new else fade.new
        if fade.old is None or other is None or other.reference is laws.reference:
            return self._zero
        before = self.desired(now, other)    # type: ignore[arg-type]
        if before is None:
            return self._zero
        reach = FASTER * self._fastest * fade.share * self.settings.safety.ramp_in
        share = 1.0 - fade.share if laws is fade.new else fade.share
        return np.clip(share * self.model.difference(reference.q, before.q), -reach, reach)

    def astray(self, now: float, laws: F, reference: Reference) -> str:
        """Joint whose tracking error exceeds `tracking_tolerance`, "" if none."""
        if self.safety.mode not in ("waiting", "ramp_in", "running"):    # no tracking needed in ramp_out
            return ""
        ramp = max(self.safety.modes.weight, 0.2) if self.safety.mode == "ramp_in" else 1.0    # as feedback acts
        error = self.model.difference(self.state.q, reference.q)
        if self.safety.laws.fading:
            error = error + self.lagging(now, laws, reference)
        distance, tolerance = np.abs(error), laws.tolerance / ramp
        over = np.flatnonzero(distance > tolerance)
        if not over.size:
            return ""
        i = int(over[np.argmax(distance[over] / tolerance[over])])
        return (f"joint '{self.model.velocity_names[i]}' is {distance[i]:.3g} (rad or m) from its reference, at "
                f"most {tolerance[i]:.3g} ('tracking_tolerance')")

    def lost(self, laws: F, problem: str) -> NoCommand:
        """Handle excessive tracking error: hold the robot in place, and drop the trajectory."""
        laws.use(self.state.received, None)
        if laws.reference.followed is not None and laws.reference.start_ns:
            laws.reference.clear()
            self.notice(f"the trajectory was dropped, and the robot is held: {problem}")
        self._not_following += 1
        return NoCommand(problem)

    def withhold(self, laws: F) -> None:
        laws.use(self.state.received, None)

    def on_trajectory(self, now: float, stamp_ns: int, names: Sequence[str], points: PointTable | Sequence[Point],
                      lock: AbstractContextManager[Any] = NO_LOCK) -> Verdict:
        """Take a trajectory, which replaces the previous reference. lock: held briefly before and after the checks of
        the trajectory, so that another thread can answer states during them.
        """
        for _ in range(TRIES):
            with lock:
                refused = self._refuses_trajectory(stamp_ns, len(points) == 0)
                before, state_ns = self.reference.without_later(), self.reference_ns
                measured = self.state.q if self.state.age(now) < self.state.timeout else None
            offer: Offer | Rejected
            try:
                offer = refused or before.offered(now, stamp_ns, state_ns, names, points, measured)
            except Rejected as error:
                offer = error
            with lock:
                if isinstance(offer, Rejected):
                    return self.rejections.add(offer)
                if self.safety.latched or before.changes != self.reference.changes:
                    continue    # stopped, or its start changed
                self._beginning = None
                accepted = self.reference.take(offer)
                if accepted.jumps:    # within the allowed range
                    self._fade_from(before)
                return accepted
        with lock:
            return self.rejections.add(Rejected(
                "bad_trajectory", f"what it starts from changed {TRIES} times while it was checked: send it again"))

    def _refuses_trajectory(self, stamp_ns: int, empty: bool) -> Rejected | None:
        if self.safety.leaving and not empty:
            return Rejected("bad_trajectory", f"no trajectory {LEAVING}")
        if self.safety.latched:
            return Rejected("bad_trajectory", "no trajectory is accepted during an emergency stop: call ~/reset first")
        if stamp_ns and self.state.unstamped:
            return Rejected("bad_trajectory", "joint states have no stamps to compare the trajectory's stamp with: "
                            "send it with stamp 0, to begin at once")
        return None

    @property
    def reacts(self) -> bool:
        """Whether a reaction is active that `prepare` continues."""
        return False

    def let_go(self) -> None:
        """Drop all references: the output is the safe effort immediately, as without a reference."""
        for reference in self._references():
            reference.clear()
        self.safety.laws.replace(self.safety.laws.newest)
        self.safety.restart()
        self._moved_at = self.state.received

    def halt(self, now: float) -> None:
        super().halt(now)
        reference = self.reference.sample(now, self.reference_ns)
        if reference is None or self.safety.mode not in ("ramp_in", "running"):
            return
        ahead = Point(BRAKING, reference.q + 0.5 * BRAKING * reference.v, self._zero, self._zero)
        if not self.on_trajectory(now, 0, self.model.joint_names, [ahead]):    # there is a limit
            self.on_trajectory(now, 0, (), ())

    def prepare(self, now: float) -> None:
        """Drop references after a stop, a ramp to the fallback, or a loop that was too slow for as long: the robot is
        no longer at the reference, and the trajectory has advanced without it.
        """
        if self.safety.abandoned(now) or (self.loop.slow and self.loop.slow_for(now) > self.safety.patience):
            self._drop("the loop was too slow for too long" if self.loop.slow else "an emergency stop"
                       if self.safety.latched else "there were no joint states for too long", now)
        if self.reference.due(self.reference_ns):
            before = self.reference.without_later()
            if self.reference.begin(now, self.reference_ns):
                self._fade_from(before)

    def on_wrenches(self, now: float, wrenches: Sequence[tuple[str, ArrayLike]]) -> Verdict:
        """Take all external wrenches: (body, [moment, force] on the body in its link frame)."""
        return self.wrenches.accept(now, wrenches)

    @property
    def wrenched(self) -> bool:
        """Whether there are external wrenches, fresh or stale."""
        return self.wrenches.any

    def fresh_wrenches(self, now: float) -> Array | None:
        """External wrenches in use (bodies, 6), None without any."""
        return self.wrenches.at(now)

    def report(self) -> dict[str, Any]:
        return super().report() | {"not_following": self._not_following}
