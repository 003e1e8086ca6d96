"""The desired motion: the newest of a stream of references or a trajectory, sampled at the time of a state."""
from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...core.errors import RbdError
from ...core.model.robot_model import RobotModel
from ...core.motion.position_limits import check_points
from ...core.motion.trajectory import Interpolation, Reference, Trajectory, Waypoint, check_times
from ...core.motion.velocity_limits import above_limits, check_speeds, must_jump, velocity_limits
from .joint_map import JointMap, Turns, as_array
from .rejections import TAKEN, Rejected, Rejections, Verdict

Array = NDArray[np.float64]
ORDERED = 0.2    # s: so long a stamp may not go back in a stream of references


class Point(NamedTuple):
    """A trajectory point as it arrives: time from start (s) and values in the order of the message's names."""

    time: float
    position: ArrayLike
    velocity: ArrayLike = ()
    acceleration: ArrayLike = ()


class Later(NamedTuple):
    """A trajectory that begins later: its start (ns), its waypoints and the motion through them; `jumps` as in
    `Verdict`.
    """

    start_ns: int
    waypoints: list[Waypoint]
    motion: Interpolation
    jumps: bool


class ReferenceInput:
    """The last valid reference. Stale streams turn into standing still at the last position (`timeout`, 0: never).

    `interpolation` makes a motion of waypoints and of the reference where it starts.
    """

    def __init__(self, model: RobotModel, rejections: Rejections, timeout: float,
                 interpolation: Callable[[Sequence[Waypoint], Reference], Interpolation] = Trajectory) -> None:
        self._model, self._interpolation = model, interpolation
        self._map = JointMap(model, extra=False)
        self._turns = Turns(model)
        self._rejections = rejections
        self.timeout = timeout
        self.clear()

    def clear(self) -> None:
        """Forget everything: a clock that was reset, a node that was activated anew."""
        self._stream: Reference | None = None
        self._trajectory: Interpolation | None = None
        self._later: Later | None = None    # what there is goes on until the start of that
        self._stamp_ns, self._start_ns, self._received = 0, 0, -math.inf
        self.stale = self._resting = False

    def streams(self, now: float) -> bool:
        """Whether a stream goes on: no trajectory has taken its place, and the last sample is not too old."""
        return self._trajectory is None and (self.timeout <= 0.0 or now - self._received <= self.timeout)

    def forget(self, before: float) -> None:
        """Forget a trajectory, or a sample of a stream that came before that time."""
        if self._trajectory is not None or self._later is not None or self._received < before:
            self.clear()

    def without_later(self) -> ReferenceInput:
        """What is followed now, as it goes on without what comes from now on."""
        present = copy.copy(self)
        present._later = None
        return present

    def due(self, stamp_ns: int) -> bool:
        """Whether a trajectory begins with the state of this stamp."""
        return self._later is not None and stamp_ns >= self._later.start_ns

    def sample(self, now: float, stamp_ns: int) -> Reference | None:
        """What is desired at `stamp_ns` (of the joint state), or None before the first reference."""
        if self._later is not None:
            self.begin(now, stamp_ns)
        if self._trajectory is not None:
            return self._trajectory.sample((stamp_ns - self._start_ns) * 1e-9)
        self.stale = self._is_stale(now)
        if self.stale and self._stream is not None and not self._resting:
            self._stream, self._resting = Reference.rest(self._stream.q), True
        return self._stream

    @property
    def waits(self) -> bool:
        """Whether a trajectory waits for its time."""
        return self._later is not None

    @property
    def followed(self) -> Interpolation | Reference | None:
        """The trajectory or the sample that counts."""
        return self._stream if self._trajectory is None else self._trajectory

    @property
    def start_ns(self) -> int:
        """When the trajectory began."""
        return self._start_ns

    @property
    def expiry(self) -> tuple[float, float]:
        """Timeout (s) of the sample, 0: none, and when it came."""
        return (0.0 if self._resting else self.timeout), self._received

    def _is_stale(self, now: float) -> bool:
        return self._stream is not None and 0.0 < self.timeout < now - self._received

    def _at(self, now: float, stamp_ns: int) -> Reference | None:
        """The same without any trace of it."""
        if self._trajectory is not None:
            return self._trajectory.sample((stamp_ns - self._start_ns) * 1e-9)
        return Reference.rest(self._stream.q) if self._stream is not None and self._is_stale(now) else self._stream

    def begin(self, now: float, stamp_ns: int) -> bool:
        """Begin the trajectory that is due with the state of this stamp, if one is; whether the reference jumps there.

        A stream is not where it was when the trajectory came.
        """
        later = self._later
        if later is None or stamp_ns < later.start_ns:
            return False
        self._later, motion, jumps = None, later.motion, later.jumps
        if self._trajectory is None and self._stream is not None:
            present = self._at(now, later.start_ns)
            assert present is not None
            try:
                waypoints, present, jumps = self._joined(later.waypoints or [Waypoint(0.0, present.q)], present, None)
                motion = self._interpolation(waypoints, present)
            except RbdError as error:
                self._rejections.add(Rejected("bad_trajectory", str(error)))
                return False
        self._trajectory, self._start_ns, self._stamp_ns, self.stale = motion, later.start_ns, 0, False
        return jumps

    def accept(self, now: float, stamp_ns: int, names: Sequence[str], position: ArrayLike,
               velocity: ArrayLike = (), acceleration: ArrayLike = (), jerk: ArrayLike = (),
               snap: ArrayLike = ()) -> Verdict:
        """Take one sample of a stream. Empty velocity and acceleration mean zero, empty jerk and snap unknown.

        A stamp that goes back is rejected for `ORDERED` s at most, so that one from the far future is not the last.
        A stream ends a trajectory that has begun; one that begins later takes the stream's place at its time.
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
        except Rejected as error:
            return self._rejections.add(error)
        if self._trajectory is not None:
            self._trajectory = self._later = None
        self._stream = Reference(q, zero if v is None else v, zero if a is None else a, *higher)
        self._stamp_ns, self._received, self._resting = stamp_ns, now, False
        return TAKEN

    def accept_trajectory(self, now: float, stamp_ns: int, state_ns: int, names: Sequence[str],
                          points: Sequence[Point], measured: Array | None) -> Verdict:
        """Take a trajectory that starts at `stamp_ns`, or at the last state (`state_ns`) if that is 0.

        It starts from the present reference, or from standing still at `measured` (model order) if there is none.
        What runs goes on until the start. Of one that should have started already, the points to come count. Where the
        robot is not known (None), only one with a stamp and with a first point at time 0 tells its start. Without
        points it means: stop, and stay there.
        """
        present = self._at(now, state_ns)
        running = present is not None
        start_ns = stamp_ns or state_ns
        jumps = False
        try:
            if measured is None and (present is None if not points else not stamp_ns or points[0].time != 0.0):
                raise Rejected("bad_trajectory", "there is no fresh joint state for the trajectory to start from")
            waypoints: list[Waypoint] = []
            if points:
                self._map_names(names)
                waypoints = self._waypoints(points)
                check_times(waypoints)
                check_speeds(self._model, waypoints)
            if measured is None and points:
                present = Reference.rest(waypoints[0].q)
            elif present is None:
                present = Reference.rest(np.asarray(measured))
            if start_ns > state_ns:
                if running and self._trajectory is not None:
                    present = self._trajectory.sample((start_ns - self._start_ns) * 1e-9)
                else:
                    present = Reference.rest(present.q)
            elif points and start_ns < state_ns:
                waypoints = self._to_come(waypoints, (state_ns - start_ns) * 1e-9, present)
                start_ns = state_ns
            wanted, here = waypoints, present.q
            if points:
                check_points(self._model, waypoints, None if measured is None else present.q)
                waypoints, present, jumps = self._joined(waypoints, present, measured)
            motion = self._interpolation(waypoints or [Waypoint(0.0, present.q)], present)
        except Rejected as error:
            return self._rejections.add(error)
        except RbdError as error:
            return self._rejections.add(Rejected("bad_trajectory", str(error)))
        start = [Waypoint(0.0, present.q, present.v, present.a)] if waypoints and waypoints[0].time > 0.0 else []
        warning = above_limits(self._model, [*start, *waypoints])
        if start_ns > state_ns:
            self._later = Later(start_ns, wanted, motion, jumps)
            if not running:    # stands still until then
                self._trajectory, self._start_ns, self._stamp_ns = Trajectory([Waypoint(0.0, here)], present), 0, 0
            return Verdict(True, warning)
        self._trajectory, self._start_ns, self._later, self.stale = motion, start_ns, None, False
        self._stamp_ns = 0
        return Verdict(True, warning, jumps and running)

    def _joined(self, waypoints: list[Waypoint], present: Reference, measured: Array | None
                ) -> tuple[list[Waypoint], Reference, bool]:
        """Waypoints and start of a motion from the present reference, the short way of continuous joints; whether the
        first point is a jump, within what is allowed.
        """
        near = present._replace(q=self._turns.nearest(present.q, waypoints[0].q))
        starts = [near.q] if measured is None else [near.q, self._turns.nearest(measured, waypoints[0].q)]
        if not must_jump(self._model, waypoints[0], starts):
            return waypoints, near, False
        first = replace(waypoints[0], time=0.0)
        return [first, *waypoints[1:]], Reference.rest(first.q), True

    def _to_come(self, waypoints: Sequence[Waypoint], passed: float, present: Reference) -> list[Waypoint]:
        """The waypoints after that time (s), in the time since then, from the first one that can be reached in time."""
        left = [replace(point, time=point.time - passed) for point in waypoints if point.time > passed]
        if not left:
            raise Rejected("bad_trajectory", "trajectory lies in the past: it ended "
                           f"{passed - waypoints[-1].time:.3f} s ago")
        limit = velocity_limits(self._model)
        for i, point in enumerate(left):
            speed = np.abs(point.q - self._turns.nearest(present.q, point.q)) / point.time
            if (speed <= limit).all():
                return left[i:]
        j = int(np.argmax(speed / limit))
        raise Rejected("bad_trajectory", f"trajectory began {passed:.3f} s ago: joint '{self._model.joint_names[j]}' "
                       f"would need {speed[j]:.3g} rad/s or m/s to catch up, limit {limit[j]:.3g}")

    def _map_names(self, names: Sequence[str]) -> None:
        if not self._map.update(names):
            raise Rejected("unknown_joint", f"none of the joints {list(names)} belongs to the model; its joints: "
                                            f"{', '.join(self._model.joint_names)}")

    def _optional(self, what: str, values: ArrayLike) -> Array | None:
        return self._map.rates(f"reference {what}", values) if len(as_array(values)) else None

    def _waypoints(self, points: Sequence[Point]) -> list[Waypoint]:
        """All at once if nothing is wrong and all points have the same fields, as control waits meanwhile."""
        times, *fields = zip(*points, strict=True)
        rows: list[Any] = [times]
        for i, field in enumerate(fields):
            given = i == 0 or any(map(len, field))
            table = self._map.table(field, i == 0) if given else [None] * len(points)
            rows.append(table)
        if any(table is None for table in rows) or not all(map(math.isfinite, times)):
            return [self._waypoint(i, point) for i, point in enumerate(points)]    # says what is wrong where
        return [Waypoint(*values) for values in zip(*rows, strict=True)]

    def _waypoint(self, index: int, point: Point) -> Waypoint:
        if not math.isfinite(point.time):
            raise Rejected("non_finite", f"time of trajectory point {index} is not finite")
        return Waypoint(point.time, self._map.positions(f"position in trajectory point {index}", point.position),
                        self._optional(f"velocity in trajectory point {index}", point.velocity),
                        self._optional(f"acceleration in trajectory point {index}", point.acceleration))
