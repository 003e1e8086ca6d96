"""State of a running torque node and its robot, observed from their topics, with expiry."""
from __future__ import annotations

import math
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ..core.errors import RbdError
from ..core.lie import se3, so3
from ..core.model.robot_model import RobotModel
from .inputs.references import ReferenceInput
from .inputs.rejections import Rejections
from .inputs.trajectory_points import Point

Array = NDArray[np.float64]
LOST = 0.5            # s without joint states after which a robot counts as lost: ten times the nodes' own limit
SILENT = 3.0          # s without diagnostics (published once a second) after which a node counts as lost
STREAMED = 0.2        # s of validity of a streamed reference, as in the nodes
FOLLOWING = ("running", "ramp_in")    # modes in which a node follows its reference
LATENCIES = ("latency_p50_us", "latency_p99_us")


@dataclass(frozen=True)
class Observation:
    """q (nq,): last position, None before the first. measured, commanded (nv,): torques, NaN if unknown. lost: why q
    and measured are outdated, "" if current; silent: likewise for mode, latencies (µs), rejections and commanded.
    braked: whether a simulated robot reports engaged brakes. reference (nq,): desired position of the node, None if
    unknown; derived from the messages since the start of the view, validated as in the node. pushed: a link and the
    external force on it (3,), N, in its axes, None if unknown; touched: the link at which the node feels a contact, "".
    target: pose (4, 4) of the target of node `cartesian`, in axes of the root link, None if unknown.
    """

    q: Array | None
    measured: Array
    commanded: Array
    mode: str
    status: str
    rate_hz: float
    latency_us: tuple[float, float]
    rejections: Mapping[str, int]
    lost: str
    silent: str
    braked: bool = False
    reference: Array | None = None
    pushed: tuple[str, Array] | None = None
    touched: str = ""
    target: Array | None = None


@dataclass(eq=False)
class ObservedRobot:
    """Collects messages, at times `now` (s, steady), into an `Observation`. start (nq,): positions of unreported
    joints.

    node: full name of the torque node in its diagnostics.
    """

    model: RobotModel
    node: str
    start: Array
    _q: Array | None = None
    _state_at: float = -math.inf
    _command_at: float = -math.inf
    _report_at: float = -math.inf
    _status: str = ""
    _values: dict[str, str] = field(default_factory=dict)
    _braked: bool = False
    _brakes_at: float = -math.inf
    _pushed: tuple[str, Array] | None = None
    _pushed_at: float = -math.inf
    _target: Array | None = None
    _target_at: float = -math.inf
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self._measured, self._commanded = np.full((2, self.model.nv), np.nan)
        self._reference = ReferenceInput(self.model, Rejections(), STREAMED)
        self._stamp_ns = 0
        self._places = {joint.name: joint for joint in self.model.joints if joint.nq == 1}

    def on_state(self, now: float, names: Sequence[str], position: Sequence[float], effort: Sequence[float],
                 stamp_ns: int = 0) -> None:
        """Take a joint state; ignored if non-finite or without joints of the robot."""
        if len(position) != len(names) or not self._places.keys() & set(names):
            return
        q = (self.start if self._q is None else self._q).copy()
        measured = np.full(self.model.nv, np.nan)
        for i, name in enumerate(names):
            joint = self._places.get(name)
            if joint is not None:
                q[joint.idx_q] = position[i]
                measured[joint.idx_v] = effort[i] if len(effort) == len(names) else np.nan
        if np.isfinite(q).all():
            with self._lock:
                self._q, self._measured, self._state_at, self._stamp_ns = q, measured, now, stamp_ns

    def on_reference(self, now: float, stamp_ns: int, names: Sequence[str], position: Sequence[float]) -> None:
        """Take a sample of a streamed reference."""
        with self._lock:
            self._reference.accept(now, stamp_ns, names, position)

    def on_trajectory(self, now: float, stamp_ns: int, names: Sequence[str], points: Sequence[Point]) -> None:
        """Take a trajectory sent to the node."""
        with self._lock:
            self._reference.accept_trajectory(now, stamp_ns, self._stamp_ns, names, points,
                                              self._q if now - self._state_at <= LOST else None)

    def on_command(self, now: float, names: Sequence[str], effort: Sequence[float]) -> None:
        """Take a command of the node."""
        if len(effort) != len(names):
            return
        commanded = np.full(self.model.nv, np.nan)
        for name, value in zip(names, effort, strict=True):
            if name in self._places:
                commanded[self._places[name].idx_v] = value
        with self._lock:
            self._commanded, self._command_at = commanded, now

    def on_force(self, now: float, body: str, force: Sequence[float]) -> None:
        """Take an external force on a link."""
        if body in self.model.body_names and np.isfinite(force).all():
            with self._lock:
                self._pushed, self._pushed_at = (body, np.array(force, dtype=np.float64)), now

    def on_target(self, now: float, frame: str, position: Sequence[float], quaternion: Sequence[float]) -> None:
        """Take the target pose of a link; quaternion x, y, z, w."""
        if frame != self.model.body_names[0]:
            return
        try:
            pose = se3.from_rotation(so3.from_quaternion(quaternion), position)
        except RbdError:
            return
        with self._lock:
            self._target, self._target_at = pose, now

    def on_report(self, now: float, name: str, message: str, values: Mapping[str, str]) -> None:
        """Take a status of `/diagnostics` of the node or of its simulated robot; others are ignored."""
        with self._lock:
            if name == self.node:
                self._status, self._values, self._report_at = message, dict(values), now
                if values.get("mode") not in FOLLOWING:    # it has dropped its reference
                    self._reference.clear()
            elif "brakes" in values and name.rpartition("/")[0] == self.node.rpartition("/")[0]:
                self._braked, self._brakes_at = values["brakes"] == "on", now

    def at(self, now: float) -> Observation:
        """The observation at time `now`, without expired values."""
        with self._lock:
            values = dict(self._values)
            lost = _missing("joint state", now - self._state_at, LOST)
            silent = _missing(f"report of {self.node}", now - self._report_at, SILENT)
            none = np.full(self.model.nv, np.nan)
            if silent:
                values.clear()
            rejections = {key.removeprefix("rejected_"): int(_number(value)) for key, value in values.items()
                          if key.startswith("rejected_") and key != "rejected_total" and _number(value) > 0.0}
            follows = not lost and values.get("mode") in FOLLOWING
            reference = self._reference.sample(now, self._stamp_ns) if follows else None
            return Observation(
                self._q, none if lost else self._measured, none if now - self._command_at > LOST else self._commanded,
                values.get("mode", ""), "" if silent else self._status, _number(values.get("rate_hz")),
                (_number(values.get(LATENCIES[0])), _number(values.get(LATENCIES[1]))), rejections, lost, silent,
                self._braked and now - self._brakes_at <= SILENT, None if reference is None else reference.q,
                self._pushed if now - self._pushed_at <= LOST else None, values.get("touched", ""),
                self._target if now - self._target_at <= LOST else None)


def _missing(what: str, age: float, longest: float) -> str:
    if age <= longest:
        return ""
    return f"no {what} yet" if math.isinf(age) else f"no {what} for {age:.1f} s"


def _number(text: str | None) -> float:
    try:
        return float(text) if text is not None else math.nan
    except ValueError:
        return math.nan
