"""Motions for playback: configurations and torques over time, from plans, trajectory messages and recordings."""
from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from ..core.dynamics.inverse import inverse_dynamics
from ..core.errors import RbdError, shown, unknown_name
from ..core.identification.recorded.recording import Recording
from ..core.model.coordinates import Joint
from ..core.model.inertia import Array
from ..core.model.robot_model import RobotModel
from ..core.motion.trajectory import Reference, Trajectory, Waypoint

RATE, MOST = 200.0, 20_000    # samples per second, and at most
MESSAGES = (".yaml", ".yml", ".json")


@dataclass(frozen=True, eq=False)
class Timeline:
    """t (N,) s from 0, increasing; q (N, nq). effort (N, nv): torques for the bars, or None: holding torques of each
    pose; what: title of these torques. second (N, nv): torques for the lines. reference (N, nq): desired positions.
    """

    model: RobotModel
    t: Array
    q: Array
    effort: Array | None = None
    what: str = "Torque"
    second: Array | None = None
    reference: Array | None = None
    source: str = "motion"

    @property
    def duration(self) -> float:
        """s."""
        return float(self.t[-1])

    def at(self, t: float, table: Array | None = None) -> Array:
        """Positions (nq,) at time t, interpolated linearly; those of `table` if given, else of `q`."""
        rows = self.q if table is None else table
        i, part = self._place(t)
        if part == 0.0:
            return rows[i].copy()
        return self.model.integrate(rows[i], part * self.model.difference(rows[i], rows[i + 1]))

    def effort_at(self, t: float, table: Array | None) -> Array | None:
        """Efforts (nv,) of `effort` or `second` at time t; None if missing."""
        if table is None:
            return None
        i, part = self._place(t)
        return table[i] if part == 0.0 else table[i] + part * (table[i + 1] - table[i])

    def _place(self, t: float) -> tuple[int, float]:
        i = int(np.clip(np.searchsorted(self.t, t, side="right") - 1, 0, len(self.t) - 1))
        if i == len(self.t) - 1 or t <= self.t[0]:
            return i, 0.0
        return i, float((t - self.t[i]) / (self.t[i + 1] - self.t[i]))


def from_motion(model: RobotModel, motion: Any, source: str = "motion") -> Timeline:
    """The timeline of an object with `duration`, `motion(t).q` (N, nq) and optionally `effort(t)` (N, nv), such as the
    results of `rbd.optimize_motion` and `rbd.time_optimal`.
    """
    t = _times(float(motion.duration))
    z = motion(t)
    if np.shape(z.q) != (len(t), model.nq):
        raise RbdError(f"{source}: a motion of {np.shape(z.q)[-1]} coordinates, robot '{model.name}' has {model.nq}")
    effort = np.asarray(motion.effort(t)) if hasattr(motion, "effort") else inverse_dynamics(model, z.q, z.v, z.a)
    return Timeline(model, t, np.asarray(z.q), effort, "Torque of the motion", source=source)


def read_timeline(path: str, model: RobotModel, start: Array) -> Timeline:
    """The timeline of a file: a trajectory_msgs/JointTrajectory as YAML or JSON (`rbd plan --output`, `ros2 topic
    echo`), or a recording (CSV, also of `rbd plan`; NPZ; rosbag2). start (nq,): positions of joints missing in it.
    """
    if Path(path).suffix.lower() in MESSAGES:
        try:
            text = Path(path).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise RbdError(f"cannot read '{path}': {error}") from None
        return from_message(_parsed(text, path), model, start, Path(path).name)
    return from_recording(Recording.load(path), model, start)


def _parsed(text: str, path: str) -> Any:
    try:
        return json.loads(text) if path.lower().endswith(".json") else next(iter(yaml.safe_load_all(text)), None)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise RbdError(f"cannot read '{path}': {' '.join(str(error).split())[:200]}") from None


def from_message(message: Any, model: RobotModel, start: Array, source: str) -> Timeline:
    """The timeline of a JointTrajectory as mappings and lists, interpolated as by joint_trajectory_controller."""
    if not isinstance(message, Mapping) or not message.get("joint_names") or not message.get("points"):
        raise RbdError(f"{source}: expected a JointTrajectory with joint_names and points, got {shown(message)}")
    names, points = [str(name) for name in message["joint_names"]], message["points"]
    joints = _single(names, model, source)
    indices = [i for i, joint in enumerate(joints) if joint is not None]
    used = [joint for joint in joints if joint is not None]

    def column(field: str, required: bool = False) -> Array | None:
        rows = [point.get(field) if isinstance(point, Mapping) else None for point in points]
        if not required and not all(row is not None and len(row) for row in rows):
            return None
        try:
            table = np.array(rows, dtype=np.float64)
        except (TypeError, ValueError):
            table = np.zeros((0, 0))
        if table.shape != (len(points), len(names)) or not np.isfinite(table).all():
            raise RbdError(f"{source}: {field} of each point must be {len(names)} finite numbers")
        return table[:, indices]

    q = column("positions", True)
    assert q is not None
    v, a, effort = column("velocities"), column("accelerations"), column("effort")
    times = [_seconds(point.get("time_from_start"), source) for point in points]
    first = start[[joint.idx_q for joint in used]]
    path = Trajectory([Waypoint(t, q[i], None if v is None else v[i], None if a is None else a[i])
                       for i, t in enumerate(times)], Reference.rest(first))
    t = _times(path.duration)
    samples = [path.sample(time) for time in t[:-1].tolist()]
    samples.append(Reference(q[-1], q[-1] * 0.0 if v is None else v[-1], q[-1] * 0.0 if a is None else a[-1]))
    Q, V, A = _spread(model, start, used, *(np.array([getattr(sample, part) for sample in samples]) for part in "qva"))
    if effort is not None and len(times) > 1:
        message_effort = np.stack([np.interp(t, times, column) for column in effort.T], axis=1)
        tau = np.full((len(t), model.nv), np.nan)
        tau[:, [joint.idx_v for joint in used]] = message_effort
        return Timeline(model, t, Q, tau, "Torque in the message", inverse_dynamics(model, Q, V, A), source=source)
    return Timeline(model, t, Q, inverse_dynamics(model, Q, V, A), "Torque of the motion", source=source)


def from_recording(recording: Recording, model: RobotModel, start: Array) -> Timeline:
    """The timeline of a recorded motion with measured torques; lines: the model's torques, if accelerations are known.
    """
    names = list(recording.joints or model.velocity_names)
    joints = _single(names, model, recording.source)
    columns = [i for i, joint in enumerate(joints) if joint is not None]
    used = [joint for joint in joints if joint is not None]
    if recording.q.shape[1] != len(names):
        raise RbdError(f"{recording.source}: {recording.q.shape[1]} columns, robot '{model.name}' has {len(names)}")
    good = np.isfinite(recording.t) & np.isfinite(recording.q[:, columns]).all(axis=1)
    good &= np.concatenate([[True], recording.t[1:] > np.maximum.accumulate(recording.t)[:-1]])
    if good.sum() < 1:
        raise RbdError(f"{recording.source}: no row is finite")
    rows = np.flatnonzero(good)
    t, tau = recording.t[rows] - recording.t[rows[0]], np.full((len(rows), model.nv), np.nan)
    tau[:, [joint.idx_v for joint in used]] = recording.tau[rows][:, columns]
    zero = np.zeros((len(rows), len(used)))
    v, a = (zero if part is None else np.nan_to_num(part[rows][:, columns]) for part in (recording.v, recording.a))
    Q, V, A = _spread(model, start, used, recording.q[rows][:, columns], v, a)
    second = None if recording.v is None or recording.a is None else inverse_dynamics(model, Q, V, A)
    return Timeline(model, t, Q, tau, "Measured torque", second, source=recording.source)


def _single(names: Sequence[str], model: RobotModel, source: str) -> list[Joint | None]:
    """The joints with these names; None for fixed and mimic joints."""
    fixed = {spec.name for spec in model.description.joints} - set(model.joint_names)
    result: list[Joint | None] = []
    for name in names:
        if name in fixed:
            result.append(None)
            continue
        if name not in model.joint_names:
            raise unknown_name("joint", name, model.joint_names, source)
        joint = model.joint(name)
        if joint.nq != 1:
            raise RbdError(f"{source}: joint '{name}' has {joint.nq} coordinates, a trajectory has one per joint")
        result.append(joint)
    if not any(result):
        raise RbdError(f"{source}: none of its joints moves in robot '{model.name}'")
    return result


def _spread(model: RobotModel, start: Array, joints: Sequence[Joint], q: Array, v: Array,
            a: Array) -> tuple[Array, Array, Array]:
    """q (N, nq), v, a (N, nv) of all joints from those of `joints`."""
    Q = np.tile(start, (len(q), 1))
    V, A = np.zeros((2, len(q), model.nv))
    Q[:, [joint.idx_q for joint in joints]] = q
    V[:, [joint.idx_v for joint in joints]], A[:, [joint.idx_v for joint in joints]] = v, a
    return Q, V, A


def _times(duration: float) -> Array:
    return np.linspace(0.0, duration, int(np.clip(np.ceil(RATE * duration), 1, MOST)) + 1) if duration else np.zeros(1)


def _seconds(value: Any, source: str) -> float:
    """Seconds of `{sec, nanosec}` or of a number."""
    try:
        if isinstance(value, Mapping):
            return float(value.get("sec", 0)) + 1e-9 * float(value.get("nanosec", 0))
        return float(value)
    except (TypeError, ValueError):
        raise RbdError(f"{source}: time_from_start is {shown(value)}, expected {{sec, nanosec}}") from None
