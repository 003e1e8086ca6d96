"""The desired motion: the newest of a stream of references or a trajectory, sampled at the time of a state."""
from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import RbdError
from ..model.robot_model import RobotModel
from .inputs import JointMap, Rejected, Rejections, Turns, as_array
from .trajectory import Interpolation, Reference, Trajectory, Waypoint, check_times

Array = NDArray[np.float64]


class Point(NamedTuple):
    """A trajectory point as it arrives: time from start (s) and values in the order of the message's names."""

    time: float
    position: ArrayLike
    velocity: ArrayLike = ()
    acceleration: ArrayLike = ()


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
        self._before: tuple[Interpolation, int] | None = None    # goes on until the start of that; its own start
        self._stamp_ns, self._start_ns, self._received = 0, 0, -math.inf
        self.stale = self._resting = False

    def forget(self, before: float) -> None:
        """Forget a trajectory, or a sample of a stream that came before that time."""
        if self._trajectory is not None or self._received < before:
            self.clear()

    def sample(self, now: float, stamp_ns: int) -> Reference | None:
        """What is desired at `stamp_ns` (of the joint state), or None before the first reference."""
        if self._before is not None:
            if stamp_ns < self._start_ns:
                return self._before[0].sample((stamp_ns - self._before[1]) * 1e-9)
            self._before = None
        if self._trajectory is not None:
            return self._trajectory.sample((stamp_ns - self._start_ns) * 1e-9)
        self.stale = self._stream is not None and self.timeout > 0.0 and now - self._received > self.timeout
        if self.stale and self._stream is not None and not self._resting:
            self._stream, self._resting = Reference.rest(self._stream.q), True
        return self._stream

    def accept(self, now: float, stamp_ns: int, names: Sequence[str], position: ArrayLike,
               velocity: ArrayLike = (), acceleration: ArrayLike = (), jerk: ArrayLike = (),
               snap: ArrayLike = ()) -> bool:
        """Take one sample of a stream. Empty velocity and acceleration mean zero, empty jerk and snap unknown."""
        try:
            self._map_names(names)
            fresh = self._trajectory is None and (self.timeout <= 0.0 or now - self._received <= self.timeout)
            if 0 < stamp_ns < self._stamp_ns and fresh:
                raise Rejected("stamp_backwards", f"stamp of the reference went back by "
                                                  f"{(self._stamp_ns - stamp_ns) * 1e-9:.6f} s")
            q = self._map.positions("reference position", position)
            zero = np.zeros(self._model.nv)
            v = self._optional("velocity", velocity)
            a = self._optional("acceleration", acceleration)
            higher = self._optional("jerk", jerk), self._optional("snap", snap)
        except Rejected as error:
            self._rejections.add(error)
            return False
        self._stream = Reference(q, zero if v is None else v, zero if a is None else a, *higher)
        self._trajectory, self._stamp_ns, self._received, self._resting = None, stamp_ns, now, False
        self._before = None
        return True

    def accept_trajectory(self, now: float, stamp_ns: int, state_stamp_ns: int, names: Sequence[str],
                          points: Sequence[Point], measured: Array) -> bool:
        """Take a trajectory that starts at `stamp_ns`, or at the last state if that is 0.

        It starts from the present reference, or from standing still at `measured` (model order) if there is none.
        A trajectory that runs goes on until the start. Of one that should have started already, the points to come
        count. Without points it means: stop, and stay there.
        """
        present = self.sample(now, state_stamp_ns) or Reference.rest(measured)
        start_ns = stamp_ns or state_stamp_ns
        before = None
        if start_ns > state_stamp_ns:
            before = self._before or (None if self._trajectory is None else (self._trajectory, self._start_ns))
            present = before[0].sample((start_ns - before[1]) * 1e-9) if before else Reference.rest(present.q)
        try:
            if not points:
                trajectory = self._interpolation([Waypoint(0.0, present.q)], present)
            else:
                self._map_names(names)
                waypoints = [self._waypoint(i, p) for i, p in enumerate(points)]
                check_times(waypoints)
                if start_ns < state_stamp_ns:
                    waypoints = self._to_come(waypoints, (state_stamp_ns - start_ns) * 1e-9, present)
                    start_ns = state_stamp_ns
                present = replace(present, q=self._turns.nearest(present.q, waypoints[0].q))    # the short way
                trajectory = self._interpolation(waypoints, present)
        except Rejected as error:
            self._rejections.add(error)
            return False
        except RbdError as error:
            self._rejections.add(Rejected("bad_trajectory", str(error)))
            return False
        self._trajectory, self._start_ns, self._before, self.stale = trajectory, start_ns, before, False
        self._stamp_ns = 0
        return True

    def _to_come(self, waypoints: Sequence[Waypoint], passed: float, present: Reference) -> list[Waypoint]:
        """The waypoints after that time (s), in the time since then."""
        left = [replace(point, time=point.time - passed) for point in waypoints if point.time > passed]
        if not left:
            raise Rejected("bad_trajectory", "trajectory lies in the past: it ended "
                           f"{passed - waypoints[-1].time:.3f} s ago")
        speed = np.abs(left[0].q - self._turns.nearest(present.q, left[0].q)) / left[0].time
        if (speed > self._model.velocity_limit).any():
            j = int(np.argmax(speed / self._model.velocity_limit))
            raise Rejected("bad_trajectory", f"trajectory began {passed:.3f} s ago: joint "
                           f"'{self._model.joint_names[j]}' would need {speed[j]:.3g} rad/s or m/s to catch up, limit "
                           f"{self._model.velocity_limit[j]:.3g}")
        return left

    def _map_names(self, names: Sequence[str]) -> None:
        if not self._map.update(names):
            raise Rejected("unknown_joint", f"none of the joints {list(names)} belongs to the model; its joints: "
                                            f"{', '.join(self._model.joint_names)}")

    def _optional(self, what: str, values: ArrayLike) -> Array | None:
        return self._map.rates(f"reference {what}", values) if len(as_array(values)) else None

    def _waypoint(self, index: int, point: Point) -> Waypoint:
        if not math.isfinite(point.time):
            raise Rejected("non_finite", f"time of trajectory point {index} is not finite")
        return Waypoint(point.time, self._map.positions(f"position in trajectory point {index}", point.position),
                        self._optional(f"velocity in trajectory point {index}", point.velocity),
                        self._optional(f"acceleration in trajectory point {index}", point.acceleration))
