"""What arrives from outside: names mapped to model order, joint states accepted."""
from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...core.model.joints import is_endless
from ...core.model.robot_model import RobotModel
from ...core.motion.cycle import picked_entry
from ...core.motion.velocity_limits import velocity_limits
from .finite import HUGE, all_finite, worst
from .plausibility import CLOCK, ELSEWHERE, Implausible, Known, Plausibility
from .rejections import IGNORED, TAKEN, Rejected, Rejections, Verdict

Array = NDArray[np.float64]
_EMPTY = np.zeros(0)
UNSTAMPED, UNSTAMPED_PERIOD = 8, 0.2    # so many states of stamp 0, each within so many s of the last: they have none


class JointMap:
    """Maps arrays in the order of a message to model order, and caches the permutation of the last names.

    Joints may come in any order. Extra names are accepted if `extra`; mimic joints always are, and stand in for a
    source that is missing: q_source = (q_mimic − offset) / multiplier.
    """

    def __init__(self, model: RobotModel, extra: bool) -> None:
        self._model = model
        self._extra = extra
        self._names: Sequence[str] | None = None
        self.size = 0
        self.indices: NDArray[np.intp] = np.zeros(0, dtype=np.intp)
        self._scale = self._offset = _EMPTY    # of derived sources, empty if all are given

    @property
    def names(self) -> Sequence[str] | None:
        """Of the messages that this is prepared for."""
        return self._names

    @property
    def plain(self) -> bool:
        """Whether no joint is derived from one that mimics it."""
        return not len(self._scale)

    def update(self, names: Sequence[str]) -> bool:
        """Prepare for messages with these names; False if none of them belongs to the model."""
        if names == self._names:
            return True
        names = list(names)
        position = {name: i for i, name in enumerate(names)}
        model = self._model
        mimics = {mimic.name: mimic for mimic in model.mimics}
        if not any(name in position for name in (*model.joint_names, *mimics)):
            return False
        if len(position) != len(names):
            raise Rejected("duplicate_joint", f"joint named twice in {names}")
        unknown = [name for name in names if name not in model.joint_names and name not in mimics]
        if unknown and not self._extra:
            raise Rejected("unknown_joint", f"unknown joint '{unknown[0]}'; joints of the model: "
                                            f"{', '.join(model.joint_names)}")
        indices, scale, offset = [], np.ones(model.nv), np.zeros(model.nv)
        for i, name in enumerate(model.joint_names):
            stand_in = next((mimics[m] for m in mimics if mimics[m].source == name and m in position
                             and mimics[m].multiplier != 0.0), None)
            if name in position:
                indices.append(position[name])
            elif stand_in is not None:
                indices.append(position[stand_in.name])
                scale[i] = 1.0 / stand_in.multiplier
                offset[i] = -stand_in.offset / stand_in.multiplier
            else:
                raise Rejected("missing_joint", f"joint '{name}' is missing in {names}")
        self.indices = np.array(indices, dtype=np.intp)
        self._scale, self._offset = (scale, offset) if (scale != 1.0).any() or offset.any() else (_EMPTY, _EMPTY)
        self.size, self._names = len(names), names
        return True

    def positions(self, what: str, values: ArrayLike) -> Array:
        """Positions in model order; finite or rejected."""
        return self._finite(what, *self._picked(what, values, self._offset))

    def rates(self, what: str, values: ArrayLike) -> Array:
        """Velocities or accelerations in model order; finite or rejected."""
        return self._finite(what, *self._picked(what, values, _EMPTY))

    def raw_rates(self, what: str, values: ArrayLike) -> tuple[Array, bool]:
        """The same, with NaN where the message has it, and whether all are finite."""
        return self._picked(what, values, _EMPTY)

    def table(self, rows: Sequence[Any], positions: bool) -> Array | None:
        """Positions or rates of many messages (N, nv); None if anything is wrong."""
        if any(len(row) != self.size for row in rows):
            return None
        if all(row.__class__ is array and row.typecode == "d" for row in rows):
            given = np.frombuffer(b"".join(rows)).reshape(-1, self.size)    # much faster than row by row
        else:
            given = np.array([as_array(row) for row in rows])
        values = given[:, self.indices]
        if len(self._scale):
            values = values * self._scale + (self._offset if positions else 0.0)
        return values if all_finite(values.reshape(-1)) else None

    def _picked(self, what: str, values: ArrayLike, offset: Array) -> tuple[Array, bool]:
        given = as_array(values)
        if given.shape != (self.size,):
            raise Rejected("wrong_size", f"{what} has {given.size} numbers for {self.size} names")
        return picked(given, self.indices, self._scale, offset)

    def _finite(self, what: str, values: Array, finite: bool) -> Array:
        if not finite:
            name = self._model.joint_names[worst(values)]
            raise Rejected("non_finite", f"{what} of joint '{name}' is not finite")
        return values


def total_wrenches(model: RobotModel, wrenches: Sequence[tuple[str, ArrayLike]]) -> Array | None:
    """Sum (bodies, 6) of (body, [moment, force] on it in its link frame), None without any; raises `Rejected`."""
    total = np.zeros((len(model.body_names), 6))
    for body, value in wrenches:
        if body not in model.body_names:
            raise Rejected("unknown_body", f"unknown body '{body}' in external wrenches; bodies: "
                                           f"{', '.join(model.body_names)}")
        wrench = np.asarray(value, dtype=np.float64)
        if not all_finite(wrench.reshape(-1)):    # no sum of what is left overflows
            raise Rejected("non_finite", f"external wrench on body '{body}' is not finite")
        total[model.body_names.index(body)] += wrench
    return total if total.any() else None


class Turns:
    """Continuous joints, whose angle may be off by whole turns: many drivers report it between −π and π."""

    def __init__(self, model: RobotModel) -> None:
        turning = [is_endless(joint.type) for joint in model.joints for _ in range(joint.nv)]
        self._turn = 2.0 * math.pi * np.array(turning, dtype=np.float64)
        self.any = any(turning)

    @property
    def turn(self) -> Array:
        """(nv,) 2π for continuous joints, 0 for all others."""
        return self._turn

    def nearest(self, q: Array, to: Array) -> Array:
        """The same position (nv,), by less than half a turn away from `to` where that is possible."""
        return q + self._turn * np.round((to - q) / (2.0 * math.pi)) if self.any else q


def as_array(values: Any) -> Array:
    """float64 array of what a message holds; an `array.array('d')` without a copy."""
    if values.__class__ is array and values.typecode == "d":
        return np.frombuffer(values) if values else _EMPTY
    return np.asarray(values, dtype=np.float64)


def picked(given: Array, indices: NDArray[np.intp], scale: Array, offset: Array) -> tuple[Array, bool]:
    """`picked_entry`: what it finds, and whether that is finite."""
    found = np.empty(len(indices))
    try:
        return found, picked_entry.call(given, indices, scale, offset, found)
    except TypeError:    # with gaps, or read-only
        return found, picked_entry.call(np.array(given), indices, scale, offset, found)


class StateInput:
    """The last valid joint state in model order, its stamp (ns) and steady time of reception (s).

    A velocity that is missing or NaN is the difference of positions over the difference of stamps, through a
    first-order low-pass with cut-off `cutoff` Hz (0: none). What cannot follow on the last valid state is rejected
    (`plausibility`; `plausible`: factor of the velocity limits, one or (nv,), inf: no check), as are stamps that go
    backwards or cease while that is fresh. Where a state is valid all the same, it counts as a restart:
    `clock_restarts` of a simulation, a driver, a bag; `position_restarts` of a robot that is elsewhere.
    """

    def __init__(self, model: RobotModel, rejections: Rejections, timeout: float, cutoff: float,
                 plausible: Array | float = math.inf) -> None:
        self._model = model
        self._map = JointMap(model, extra=True)
        self._turns = Turns(model)
        self._rejections = rejections
        self._check = Plausibility(model.velocity_names, velocity_limits(model), plausible, self._turns.turn)
        self.clock = self._check.clock
        self.timeout, self.cutoff = timeout, cutoff
        self.q, self.v = model.neutral(), np.zeros(model.nv)
        self.measured_effort: Array | None = None
        self.stamp_ns, self.received = 0, -math.inf
        self.time_ns = 0                    # the stamp; of states that have none, the time since that is known
        self._unstamped = 0                 # states with stamp 0 in a row
        self._unstamped_since: float | None = None
        self.clock_restarts = self.position_restarts = 0
        self.refused = ""                   # why the last state with joints of the model was rejected
        self.foreign: Sequence[str] = ()    # names of the last one without any of them, since the last valid one

    @property
    def unstamped(self) -> bool:
        """Whether states come without stamps."""
        return self._unstamped_since is not None

    @property
    def restarts(self) -> int:
        """How often what was known before no longer held."""
        return self.clock_restarts + self.position_restarts

    def allow(self, plausible: Array | float) -> None:
        """Another factor of the velocity limits."""
        self._check.allow(plausible)

    def forget(self) -> None:
        """The next state is the first one."""
        self._check.forget()
        self.stamp_ns, self.time_ns, self.received = 0, 0, -math.inf

    def age(self, now: float) -> float:
        """Seconds since the last valid state; infinite before the first one."""
        return now - self.received

    def accept(self, now: float, stamp_ns: int, names: Sequence[str], position: ArrayLike,
               velocity: ArrayLike = (), effort: ArrayLike = ()) -> Verdict:
        """Take a joint state; one that has none of the model's joints is of no concern."""
        try:
            return self._accept(now, stamp_ns, names, position, velocity, effort)
        except Rejected as error:
            self.refused = str(error)
            return self._rejections.add(error)

    def _accept(self, now: float, stamp_ns: int, names: Sequence[str], position: ArrayLike, velocity: ArrayLike,
                effort: ArrayLike) -> Verdict:
        joints = self._map
        if not joints.update(names):
            self.foreign = names
            return IGNORED
        q = joints.positions("position", position)
        v, measured_all = None, False
        if len(velocity):    # type: ignore[arg-type]
            v, measured_all = joints.raw_rates("velocity", velocity)
        measured = joints.raw_rates("effort", effort)[0] if len(effort) else self.measured_effort    # type: ignore[arg-type]
        time_ns = stamp_ns or (0 if self._unstamped_since is None else round((now - self._unstamped_since) * 1e9))
        if v is not None and not measured_all:
            v = np.where(np.isfinite(v), v, np.nan)
        try:
            meaning = self._check.admit(now, time_ns, q, v, self.timeout)
        except Implausible as error:
            raise Rejected(error.kind, f"joint state: {error}") from None
        # From here on nothing is wrong.
        judged = v
        if v is None or not measured_all:
            passed = (time_ns - self.time_ns) * 1e-9 if stamp_ns else now - self.received
            estimate = self._estimate(q, passed) if now - self.received < self.timeout else np.zeros(self._model.nv)
            v = estimate if v is None else np.where(np.abs(v) < HUGE, v, estimate)
            judged = self._check.within(v)    # no measure of how fast the robot can be
        self._check.keep(now, time_ns, q, v if judged is None else judged, meaning)
        self.clock_restarts += meaning == CLOCK
        self.position_restarts += meaning == ELSEWHERE
        self._count_unstamped(now, stamp_ns)
        self.q, self.v, self.measured_effort = q, v, measured
        self.stamp_ns, self.time_ns, self.received = stamp_ns, time_ns, now
        self.refused, self.foreign = "", ()
        return TAKEN

    @property
    def follows(self) -> Known | None:
        """The state that the next one has to follow on, if only that counts: it had a stamp and all velocities."""
        last = self._check.last
        same = (last is not None and last.q is self.q and last.v is self.v
                and last.time_ns == self.time_ns == self.stamp_ns != 0 and last.now == self.received)
        return last if same else None

    @property
    def bounds(self) -> tuple[Array, Array, Array]:
        """Of `core.motion.continuity`: bound, usual and turn."""
        return self._check.bounds

    def indices(self, names: Sequence[str]) -> NDArray[np.intp] | None:
        """Where the joints stand in messages with these names, if that is all there is to it."""
        return self._map.indices if names == self._map.names and self._map.plain else None

    def keep(self, now: float, time_ns: int, q: Array, v: Array, measured: Array | None) -> None:
        """A state that follows on the last one, and for which the clock was advanced, is the last valid one."""
        self._check.settle(Known(now, time_ns, q, v))
        self.q, self.v, self.measured_effort = q, v, measured
        self.stamp_ns = self.time_ns = time_ns
        self.received, self.refused, self.foreign = now, "", ()

    def _count_unstamped(self, now: float, stamp_ns: int) -> None:
        """Tell states without stamps from those of a simulation that stands at time 0."""
        if stamp_ns:
            self._unstamped, self._unstamped_since = 0, None
            return
        self._unstamped = self._unstamped + 1 if now - self.received < UNSTAMPED_PERIOD else 1
        if self._unstamped >= UNSTAMPED and self._unstamped_since is None:
            self._unstamped_since = now

    def _estimate(self, q: Array, passed: float) -> Array:
        if passed <= 0.0:
            return self.v
        elapsed = max(passed, self._check.clock.least)    # stamps that are nearly the same are no measure
        difference = self._model.difference(self.q, self._turns.nearest(q, self.q)) / elapsed
        if self.cutoff <= 0.0:
            return difference
        weight = 1.0 - math.exp(-2.0 * math.pi * self.cutoff * elapsed)
        return self.v + weight * (difference - self.v)
