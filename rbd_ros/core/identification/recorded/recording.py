"""Recordings of a robot: times, positions and efforts of joints by name, from arrays, CSV, NPZ or rosbag2."""
from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...errors import RbdError, shown, unknown_name
from ...model.inertia import numbers
from ...model.robot_model import RobotModel
from .reading import JOINT_STATES, read_bag, read_csv, read_npz

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False, init=False, repr=False)
class Recording:
    """A raw recorded motion: gaps, NaN and restarts are handled on use.

    t (N,): s. q, v, a, tau (N, n): positions, velocities, accelerations and efforts of the columns `joints`, rad, m, s,
    N m, N; v and a may be None: computed from the positions. joints: names of the columns; by default the model's
    coordinates in its order. Raises `RbdError` for inconsistent shapes.

        >>> t = np.linspace(0.0, 1.0, 101)
        >>> rbd.Recording(t, np.outer(t, [1.0, 2.0]), tau=np.zeros((101, 2)), joints=["shoulder", "elbow"]).joints
        ('shoulder', 'elbow')
    """

    t: Array
    q: Array
    v: Array | None
    a: Array | None
    tau: Array
    joints: tuple[str, ...] | None
    source: str

    def __init__(self, t: ArrayLike, q: ArrayLike, v: ArrayLike | None = None, a: ArrayLike | None = None, *,
                 tau: ArrayLike, joints: Sequence[str] | None = None, source: str = "recording") -> None:
        times = _numbers(t, "t", 1)
        if not len(times):
            raise RbdError(f"{source}: there are no samples")
        parts: dict[str, Array | None] = {}
        for name, values in (("q", q), ("v", v), ("a", a), ("tau", tau)):
            if values is None and name in ("v", "a"):
                parts[name] = None
                continue
            array = _numbers(values, name, 2)
            if len(array) != len(times):
                raise RbdError(f"{source}: {name} has {len(array)} rows, t has {len(times)}")
            parts[name] = array
        width = parts["q"].shape[1]    # type: ignore[union-attr]
        for name, part in parts.items():
            if part is not None and part.shape[1] != width:
                raise RbdError(f"{source}: {name} has {part.shape[1]} columns, q has {width}: one per joint")
        if joints is not None:
            joints = tuple(str(joint) for joint in joints)
            if len(joints) != width:
                raise RbdError(f"{source}: {len(joints)} names of joints for {width} columns")
            twice = sorted({joint for joint in joints if joints.count(joint) > 1})
            if twice:
                raise RbdError(f"{source}: joint '{twice[0]}' occurs twice")
        for name, value in (("t", times), *parts.items(), ("joints", joints), ("source", source)):
            object.__setattr__(self, name, value)

    @classmethod
    def from_csv(cls, path: str | os.PathLike[str], columns: Mapping[str, object] | None = None,
                 joints: Sequence[str] | None = None) -> Recording:
        """Read a CSV file with a header, or without one if `columns` is given.

        Header: `t` (or `time`, `stamp`), and per joint `q_NAME`, `tau_NAME`, optionally `v_NAME`, `a_NAME`; also
        `position_…`, `velocity_…`, `acceleration_…`, `effort_…`, and `NAME/position`, `NAME.position`. columns: index
        of the first column of each of "t", "q", "v", "a", "tau"; the number of columns is that of `joints`.
        """
        return cls(**read_csv(path, columns, joints))

    @classmethod
    def from_npz(cls, path: str | os.PathLike[str]) -> Recording:
        """Read an NPZ file with arrays t, q, tau, and optionally v, a, joints (names)."""
        return cls(**read_npz(path))

    @classmethod
    def from_bag(cls, path: str | os.PathLike[str], topic: str = JOINT_STATES,
                 effort_topic: str | None = None) -> Recording:
        """Read a rosbag2 (folder, .db3 or .mcap), without ROS; needs the package rosbags.

        topic: of sensor_msgs/JointState, with efforts. effort_topic: topic of JointState or rbd_interfaces efforts,
        whose values, interpolated at the times of `topic`, replace the efforts of joint states.
        """
        for name, value in (("topic", topic), ("effort_topic", effort_topic or "")):
            if not isinstance(value, str):
                raise RbdError(f"{name}: expected a name, got {type(value).__name__}; joints have the names that the "
                               "bag says, `identify` takes the model")
        return cls(**read_bag(path, topic, effort_topic))

    @classmethod
    def load(cls, path: str | os.PathLike[str], topic: str = JOINT_STATES,
             effort_topic: str | None = None) -> Recording:
        """Read a file of any supported kind, by its name."""
        kind = Path(path).suffix.lower()
        if kind == ".csv":
            return cls.from_csv(path)
        if kind == ".npz":
            return cls.from_npz(path)
        if not Path(path).is_dir() and (kind not in (".db3", ".mcap") or not Path(path).exists()):
            raise RbdError(f"cannot read '{path}': expected a recording that is there: .csv, .npz, or a bag (its "
                           "folder, .db3, .mcap)")
        return cls.from_bag(path, topic, effort_topic)

    def __repr__(self) -> str:
        return f"Recording '{self.source}': {len(self.t)} samples of {self.q.shape[1]} joints"

    def in_order_of(self, model: RobotModel) -> tuple[Recording, tuple[str, ...]]:
        """The columns in the model's order, and the names of foreign columns; raises `RbdError`, naming missing
        columns.
        """
        if model.nq != model.nv or model._quaternions:
            raise RbdError("recordings hold one number per coordinate: joints with quaternions, such as a floating "
                           "root, cannot be identified from them")
        names = model.velocity_names
        if self.joints is None:
            if self.q.shape[1] != len(names):
                raise RbdError(f"{self.source}: {self.q.shape[1]} columns without names, the model has {len(names)} "
                               f"joints: {', '.join(names)}")
            return self, ()
        missing = [name for name in names if name not in self.joints]
        if missing:
            raise unknown_name("joint", missing[0], self.joints, f"{self.source}: no column for a joint of the model")
        indices = [self.joints.index(name) for name in names]
        q, v, a, tau = (None if x is None else x[:, indices] for x in (self.q, self.v, self.a, self.tau))
        assert q is not None and tau is not None
        foreign = tuple(name for name in self.joints if name not in names)
        return Recording(self.t, q, v, a, tau=tau, joints=names, source=self.source), foreign

    def same_as(self, other: Recording) -> bool:
        """Whether both have the same times, positions and efforts."""
        return self.joints == other.joints and all(np.array_equal(a, b, equal_nan=True) for a, b in (
            (self.t, other.t), (self.q, other.q), (self.tau, other.tau)))

    def part(self, rows: slice | NDArray[np.int64]) -> Recording:
        """The recording with the selected rows."""
        v, a = (None if x is None else x[rows] for x in (self.v, self.a))
        return Recording(self.t[rows], self.q[rows], v, a, tau=self.tau[rows], joints=self.joints, source=self.source)


def _numbers(value: object, name: str, dimensions: int) -> Array:
    try:
        array = np.array(numbers(value))
    except (TypeError, ValueError, OverflowError):
        raise RbdError(f"{name}: expected numbers, got {shown(value)}") from None
    if array.ndim != dimensions:
        raise RbdError(f"{name}: expected {dimensions} dimension{'s' * (dimensions > 1)}, got shape {array.shape}")
    return array
