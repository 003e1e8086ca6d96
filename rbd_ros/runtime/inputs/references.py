"""The desired motion: a stream of references or a trajectory, whichever is newer, sampled at the time of a state."""
from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...core.errors import RbdError
from ...core.model.robot_model import RobotModel
from ...core.motion.position_limits import check_points
from ...core.motion.point_table import find_points_entry, pick_points_entry
from ...core.motion.polynomial import polynomial_entry
from ...core.motion.trajectory import (
    Interpolation, Reference, Trajectory, Waypoint, Waypoints, check_times, with_start,
)
from ...core.motion.retimed import Retimed
from ...core.motion.velocity_limits import above_limits, check_rates, check_speeds, must_jump, velocity_limits
from .joint_map import JointMap, Turns, as_array
from .rejections import TAKEN, Rejected, Rejections, Verdict
from .trajectory_points import Point, PointTable

Array = NDArray[np.float64]
ORDERED = 0.2    # s after a sample in which the stamps of a stream must not decrease


class Later(NamedTuple):
    """A trajectory with a later start: start (ns), waypoints, and the motion through them; `jumps` as in `Verdict`.
    """

    start_ns: int
    waypoints: Waypoints
    motion: Interpolation
    jumps: bool


class Offer(NamedTuple):
    """A feasible trajectory (`later`), a warning, and whether another motion was followed on arrival (`running`). rest:
    motion until the start of the trajectory, None if unchanged.
    """

    later: Later
    begins: bool    # at once
    warning: str
    rest: Interpolation | None
    running: bool


class ReferenceInput:
    """The last valid reference. A stale stream is replaced by rest at its last position (`timeout`, 0: never).

    `interpolation` returns the motion through waypoints from a start reference.
    """

    def __init__(self, model: RobotModel, rejections: Rejections, timeout: float,
                 interpolation: Callable[[Waypoints, Reference], Interpolation] = Trajectory) -> None:
        self._model, self._interpolation = model, interpolation
        self._map = JointMap(model, extra=False)
        self._turns, self._fastest = Turns(model), velocity_limits(model)
        self._rejections = rejections
        self.timeout = timeout
        self.changes = 0    # count of changes other than sampling and the passage of time
        for entry in (find_points_entry, pick_points_entry, polynomial_entry):    # not in a control cycle
            entry.compile()
        self.clear()

    def clear(self) -> None:
        """Forget all references: on activation, and after a reset of the clock."""
        self.changes += 1
        self._stream: Reference | None = None
        self._trajectory: Interpolation | None = None
        self._later: Later | None = None    # the present motion continues until its start
        self._stamp_ns, self._start_ns, self._received = 0, 0, -math.inf
        self.stale = self._resting = False

    def streams(self, now: float) -> bool:
        """Whether a stream is followed: not replaced by a trajectory, and not stale."""
        return self._trajectory is None and (self.timeout <= 0.0 or now - self._received <= self.timeout)

    def forget(self, before: float) -> bool:
        """Forget a trajectory, or a sample received before the time `before` (s); returns whether there was one."""
        dropped = self._trajectory is not None or self._later is not None or (
            self._stream is not None and self._received < before)
        if dropped:
            self.clear()
        return dropped

    def without_later(self) -> ReferenceInput:
        """A copy without the waiting trajectory."""
        present = copy.copy(self)
        present._later = None
        return present

    def due(self, stamp_ns: int) -> bool:
        """Whether a waiting trajectory starts with the state of this stamp."""
        return self._later is not None and stamp_ns >= self._later.start_ns

    def sample(self, now: float, stamp_ns: int) -> Reference | None:
        """The reference at the joint state's stamp `stamp_ns`, None before the first input."""
        if self._later is not None:
            self.begin(now, stamp_ns)
        if self._trajectory is not None:
            if isinstance(self._trajectory, Retimed) and self._trajectory.caught_up(t := (
                    stamp_ns - self._start_ns) * 1e-9):    # the motion itself, which is faster
                self._start_ns = stamp_ns - round(self._trajectory.time(t)[0] * 1e9)
                self._trajectory = self._trajectory.motion
            return self._trajectory.sample((stamp_ns - self._start_ns) * 1e-9)
        self.stale = self._is_stale(now)
        if self.stale and self._stream is not None and not self._resting:
            self._stream, self._resting = Reference.rest(self._stream.q), True
        return self._stream

    @property
    def waits(self) -> bool:
        """Whether a trajectory waits for its start."""
        return self._later is not None

    @property
    def followed(self) -> Interpolation | Reference | None:
        """The followed trajectory or sample."""
        return self._stream if self._trajectory is None else self._trajectory

    @property
    def start_ns(self) -> int:
        """Start of the trajectory, ns."""
        return self._start_ns

    @property
    def expiry(self) -> tuple[float, float]:
        """Timeout (s) of the sample, 0: none, and its time of reception."""
        return (0.0 if self._resting else self.timeout), self._received

    def place(self, stamp_ns: int) -> tuple[Interpolation, float, float] | None:
        """The followed trajectory, and the time (s) on it and its rate at this stamp; None without one that goes on."""
        motion, t = self._trajectory, (stamp_ns - self._start_ns) * 1e-9
        if not isinstance(motion, Retimed):
            return None if motion is None else (motion, t, 1.0)
        return (motion.motion, *motion.time(t)[:2]) if motion.goes_on else None

    def replace(self, stamp_ns: int, motion: Interpolation) -> None:
        """Follow this motion from the stamp on, in place of all others."""
        self.changes += 1
        self._trajectory, self._later, self._start_ns, self._stamp_ns, self.stale = motion, None, stamp_ns, 0, False

    def _is_stale(self, now: float) -> bool:
        return self._stream is not None and 0.0 < self.timeout < now - self._received

    def at(self, now: float, stamp_ns: int) -> Reference | None:
        """`sample` without changing this object."""
        if self._trajectory is not None:
            return self._trajectory.sample((stamp_ns - self._start_ns) * 1e-9)
        return Reference.rest(self._stream.q) if self._stream is not None and self._is_stale(now) else self._stream

    def begin(self, now: float, stamp_ns: int) -> bool:
        """Start the trajectory that is due with the state of this stamp, if any; returns whether the reference jumps.

        The start is joined anew, because a stream has moved since the trajectory's arrival.
        """
        later = self._later
        if later is None or stamp_ns < later.start_ns:
            return False
        self.changes += 1
        self._later, motion, jumps = None, later.motion, later.jumps
        if self._trajectory is None and self._stream is not None:
            present = self.at(now, later.start_ns)
            assert present is not None
            try:
                waypoints = later.waypoints if len(later.waypoints) else _only(present.q)
                waypoints, present, jumps = self._joined(waypoints, present, None)
                motion = self._interpolation(waypoints, present)
            except RbdError as error:
                self._rejections.add(Rejected("bad_trajectory", str(error)))
                return False
        self._trajectory, self._start_ns, self._stamp_ns, self.stale = motion, later.start_ns, 0, False
        return jumps

    def accept(self, now: float, stamp_ns: int, names: Sequence[str], position: ArrayLike,
               velocity: ArrayLike = (), acceleration: ArrayLike = (), jerk: ArrayLike = (),
               snap: ArrayLike = ()) -> Verdict:
        """Take a sample of a stream. Empty velocity and acceleration mean zero, empty jerk and snap unknown.

        Decreasing stamps are rejected for at most `ORDERED` s, so that a stamp from the far future does not block the
        stream. A stream replaces a running trajectory; a waiting trajectory replaces the stream at its start.
        """
        try:
            self._map_names(names)
            if 0 < stamp_ns < self._stamp_ns and self.streams(now) and now - self._received <= ORDERED:
                raise Rejected("stamp_backwards", "stamp of the reference went backwards by "
                                                  f"{(self._stamp_ns - stamp_ns) * 1e-9:.6f} s")
            q = self._map.positions("reference position", position)
            zero = np.zeros(self._model.nv)
            v = self._optional("velocity", velocity)
            a = self._optional("acceleration", acceleration)
            higher = self._optional("jerk", jerk), self._optional("snap", snap)
            check_rates(self._model, "reference", zero if v is None else v, zero if a is None else a, self._fastest)
        except RbdError as error:
            return self._rejections.add(error if isinstance(error, Rejected) else Rejected("implausible", str(error)))
        self.changes += 1
        if self._trajectory is not None:
            self._trajectory, self._later, self._start_ns = None, None, 0
        self._stream = Reference(q, zero if v is None else v, zero if a is None else a, *higher)
        self._stamp_ns, self._received, self._resting = stamp_ns, now, False
        return TAKEN

    def accept_trajectory(self, now: float, stamp_ns: int, state_ns: int, names: Sequence[str],
                          points: PointTable | Sequence[Point], measured: Array | None) -> Verdict:
        """Check a trajectory (`offered`) and follow it (`take`)."""
        try:
            return self.take(self.offered(now, stamp_ns, state_ns, names, points, measured))
        except Rejected as error:
            return self._rejections.add(error)

    def offered(self, now: float, stamp_ns: int, state_ns: int, names: Sequence[str],
                points: PointTable | Sequence[Point], measured: Array | None) -> Offer:
        """Check a trajectory without changing this object; raises `Rejected` if it cannot be followed.

        A trajectory starts at `stamp_ns`, or at the last state (`state_ns`) if `stamp_ns` is 0. It starts from the
        present reference, or from rest at `measured` (model order) without a reference. The present motion continues
        until the start. For a start in the past, only the future points are used. Without a fresh state (`measured`
        None) it needs a stamp and a first point at time 0. A trajectory without points means: stop, and hold.
        """
        points = PointTable.of(points)
        try:
            return self._offered(now, stamp_ns, state_ns, names, points, measured)
        except Rejected:
            raise
        except RbdError as error:
            raise Rejected("bad_trajectory", str(error)) from None

    def _offered(self, now: float, stamp_ns: int, state_ns: int, names: Sequence[str], points: PointTable,
                 measured: Array | None) -> Offer:
        present = self.at(now, state_ns)
        running = present is not None
        start_ns = stamp_ns or state_ns
        jumps = False
        if measured is None and (present is None if not len(points) else not stamp_ns or points.times[0] != 0.0):
            raise Rejected("bad_trajectory", "there is no fresh joint state for the trajectory to start from")
        waypoints = _only(np.zeros(self._model.nv)).taken(slice(0))
        if len(points):
            self._map_names(names)
            waypoints = self._waypoints(points)
            check_times(waypoints.time)
            check_speeds(self._model, waypoints)
        if measured is None and len(points):
            present = Reference.rest(waypoints.q[0])
        elif present is None:
            present = Reference.rest(np.asarray(measured))
        if start_ns > state_ns:
            if running and self._trajectory is not None:
                present = self._trajectory.sample((start_ns - self._start_ns) * 1e-9)
            else:
                present = Reference.rest(present.q)
        elif len(points) and start_ns < state_ns:
            waypoints = self._to_come(waypoints, (state_ns - start_ns) * 1e-9, present)
            start_ns = state_ns
        wanted, position = waypoints, present.q
        if len(points):
            check_points(self._model, waypoints.q, None if measured is None else present.q)
            waypoints, present, jumps = self._joined(waypoints, present, measured)
        else:
            waypoints = _only(present.q)
        motion = self._interpolation(waypoints, present)
        warning = above_limits(self._model, with_start(waypoints, present))
        begins = start_ns <= state_ns
        before_start = None if begins or running else Trajectory(_only(position), present)    # at rest until the start
        return Offer(Later(start_ns, wanted, motion, jumps), begins, warning, before_start, running)

    def take(self, offer: Offer) -> Verdict:
        """Follow the trajectory from its start on. This object must be unchanged since `offered`."""
        self.changes += 1
        later = offer.later
        if offer.begins:
            self._trajectory, self._start_ns, self._later, self.stale = later.motion, later.start_ns, None, False
            self._stamp_ns = 0
            return Verdict(True, offer.warning, later.jumps and offer.running)
        self._later = later
        if offer.rest is not None:
            self._trajectory, self._start_ns, self._stamp_ns = offer.rest, 0, 0
        return Verdict(True, offer.warning)

    def _joined(self, waypoints: Waypoints, present: Reference, measured: Array | None
                ) -> tuple[Waypoints, Reference, bool]:
        """Waypoints and start of a motion from the present reference, continuous joints by the short way; whether the
        first point is a jump, within the allowed range.
        """
        first = waypoints[0]
        near = present._replace(q=self._turns.nearest(present.q, first.q))
        starts = [near.q] if measured is None else [near.q, self._turns.nearest(measured, first.q)]
        if not must_jump(self._model, first, starts):
            return waypoints, near, False
        return replace(waypoints, time=np.append(0.0, waypoints.time[1:])), Reference.rest(first.q), True

    def _to_come(self, waypoints: Waypoints, passed: float, present: Reference) -> Waypoints:
        """The waypoints after time `passed` (s), relative to it, from the first one that can be reached in time."""
        future = waypoints.taken(waypoints.time > passed)
        if not len(future):
            raise Rejected("bad_trajectory", "trajectory lies in the past: it ended "
                           f"{passed - waypoints.time[-1]:.3f} s ago")
        future = replace(future, time=future.time - passed)
        limit = self._fastest
        speed = np.abs(future.q - self._turns.nearest(present.q, future.q)) / future.time[:, None]
        reached = (speed <= limit).all(axis=1)
        if reached.any():
            return future.taken(slice(int(np.argmax(reached)), None))
        last = speed[-1]
        j = int(np.argmax(last / limit))
        raise Rejected("bad_trajectory", f"trajectory began {passed:.3f} s ago: joint '{self._model.joint_names[j]}' "
                       f"would need {last[j]:.3g} rad/s or m/s to catch up, limit {limit[j]:.3g}")

    def _map_names(self, names: Sequence[str]) -> None:
        if not self._map.update(names):
            raise Rejected("unknown_joint", f"none of the joints {list(names)} belongs to the model; its joints: "
                                            f"{', '.join(self._model.joint_names)}")

    def _optional(self, what: str, values: ArrayLike) -> Array | None:
        return self._map.rates(f"reference {what}", values) if len(as_array(values)) else None

    def _waypoints(self, points: PointTable) -> Waypoints:
        """Waypoints in model order; raises `Rejected`, naming the first invalid point."""
        q, v, a = np.zeros((3, len(points), self._model.nv))
        right = min(self._map.pick_points(points.numbers, points.places, field, out)
                    for field, out in enumerate((q, v, a)))
        infinite = np.flatnonzero(~np.isfinite(points.times))
        right = min([right, *infinite[:1].tolist()])
        if right < len(points):
            self._refuse(right, points[right])
        return Waypoints(points.times, q, v, a, points.places[:, 3] > 0, points.places[:, 5] > 0)

    def _refuse(self, index: int, point: Point) -> NoReturn:
        where = f"in trajectory point {index}"
        if math.isfinite(point.time):
            self._map.positions(f"position {where}", point.position)
            self._optional(f"velocity {where}", point.velocity)
            self._optional(f"acceleration {where}", point.acceleration)
        raise Rejected("non_finite", f"time of trajectory point {index} is not finite")


def _only(q: Array) -> Waypoints:
    """A single waypoint at time 0."""
    return Waypoints.of([Waypoint(0.0, q)])
