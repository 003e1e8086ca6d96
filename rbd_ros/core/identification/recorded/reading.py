"""Reading of recordings from CSV, NPZ and rosbag2 files, without ROS."""
from __future__ import annotations

import csv
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import RbdError, shown

Array = NDArray[np.float64]
JOINT_STATES = "/joint_states"
QUANTITIES = {"q": "q", "position": "q", "pos": "q", "v": "v", "velocity": "v", "vel": "v", "dq": "v", "qd": "v",
              "a": "a", "acceleration": "a", "acc": "a", "ddq": "a", "qdd": "a", "tau": "tau", "effort": "tau",
              "torque": "tau"}
TIMES = ("t", "time", "stamp", "timestamp")
GAP, SHORTEST_GAP = 10.0, 0.02    # median periods, and s: longer gaps are not interpolated


def read_csv(path: str | os.PathLike[str], columns: Mapping[str, object] | None,
             joints: Sequence[str] | None, efforts: bool = True) -> dict[str, Any]:
    """Arguments of `Recording`. efforts: whether efforts are required."""
    source = Path(path).name
    try:
        with Path(path).open(newline="", encoding="utf-8-sig") as file:
            rows = [row for row in csv.reader(file) if any(cell.strip() for cell in row)]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise RbdError(f"cannot read '{path}': {error}") from None
    if not rows:
        raise RbdError(f"{source} is empty")
    if columns is None:
        columns_of, names = _by_header([cell.strip() for cell in rows[0]], source, efforts)
        first = 1
    else:
        columns_of, names = _by_number(columns, joints, source)
        first = 0 if _number(rows[0][0]) is not None else 1
    width = 1 + max(max(indices) for indices in columns_of.values())
    table = np.full((len(rows) - first, width), np.nan)    # missing values and non-numbers stay NaN
    for i, row in enumerate(rows[first:]):
        for j, cell in enumerate(row[:width]):
            value = _number(cell)
            table[i, j] = np.nan if value is None else value
    if not len(table):
        raise RbdError(f"{source} has a header and no rows")
    arrays = {name: table[:, indices] for name, indices in columns_of.items()}
    return {**arrays, "t": arrays["t"][:, 0], "joints": names, "source": source}


def _number(cell: str) -> float | None:
    try:
        return float(cell)
    except ValueError:
        return None


def _by_header(header: list[str], source: str, efforts: bool) -> tuple[dict[str, list[int]], tuple[str, ...]]:
    """Column indices by quantity, and the joints' names in the order of q."""
    time_columns = [i for i, name in enumerate(header) if name.lower() in TIMES]
    indices: dict[str, dict[str, int]] = {"q": {}, "v": {}, "a": {}, "tau": {}}
    for i, name in enumerate(header):
        before, after = re.match(r"([A-Za-z]+)_(.+)$", name), re.match(r"(.+)[/.]([A-Za-z]+)$", name)
        if before and before[1].lower() in QUANTITIES:
            indices[QUANTITIES[before[1].lower()]][before[2]] = i
        elif after and after[2].lower() in QUANTITIES:
            indices[QUANTITIES[after[2].lower()]][after[1]] = i
    names = tuple(name for name in indices["q"] if not efforts or name in indices["tau"])
    if len(time_columns) != 1 or not names:
        raise RbdError(f"{source}: expected a header with t and, per joint, q_NAME{' and tau_NAME' * efforts} (v_NAME, "
                       f"a_NAME if known); got {shown(header)}. `columns` names columns by number")
    columns_of = {"t": time_columns} | {
        quantity: [by_joint[name] for name in names] for quantity, by_joint in indices.items()
        if all(name in by_joint for name in names)}
    return columns_of, names


def _by_number(columns: Mapping[str, object], joints: Sequence[str] | None,
               source: str) -> tuple[dict[str, list[int]], tuple[str, ...]]:
    if joints is None or not {"t", "q", "tau"} <= set(columns) <= {"t", "q", "v", "a", "tau"}:
        raise RbdError(f"{source}: columns must name the first column of t, q and tau (v, a if known), and joints the "
                       f"joints; got columns {shown(dict(columns))}, joints {shown(joints)}")
    columns_of = {}
    for quantity, first in columns.items():
        if isinstance(first, bool) or not isinstance(first, int) or first < 0:
            raise RbdError(f"{source}: column of {quantity} must be a number from 0, got {shown(first)}")
        columns_of[quantity] = [first] if quantity == "t" else list(range(first, first + len(joints)))
    return columns_of, tuple(joints)


def read_npz(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Arguments of `Recording`."""
    source = Path(path).name
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays: dict[str, Any] = {name: file[name] for name in ("t", "q", "v", "a", "tau", "joints")
                                     if name in file.files}
            present = list(file.files)
    except (OSError, ValueError, EOFError, KeyError, AttributeError) as error:    # for a corrupt or a pickled file
        raise RbdError(f"cannot read '{path}': {error}") from None
    except Exception as error:    # zipfile.BadZipFile, zlib.error
        raise RbdError(f"cannot read '{path}': {error}") from None
    if missing := {"t", "q", "tau"} - set(arrays):
        raise RbdError(f"{source}: expected arrays t, q, tau (v, a, joints), {', '.join(sorted(missing))} missing; "
                       f"got {shown(present)}")
    if "joints" in arrays:
        arrays["joints"] = tuple(str(name) for name in np.ravel(arrays["joints"]))
    return {**arrays, "source": source}


def read_bag(path: str | os.PathLike[str], topic: str, effort_topic: str | None) -> dict[str, Any]:
    """Arguments of `Recording`."""
    try:
        from rosbags.highlevel import AnyReader
        from rosbags.typesys import Stores, get_typestore
    except ImportError:
        raise RbdError("reading a bag needs the package rosbags (`pip install rosbags`); a CSV or NPZ file needs "
                       "nothing") from None
    source = Path(path).name
    if not Path(path).exists():
        raise RbdError(f"cannot read '{path}': there is no such file or folder")
    topics_read = {_slashed(name) for name in (topic, effort_topic) if name is not None}
    rows: dict[str, list[tuple[float, dict[str, tuple[float, float, float]]]]] = {name: [] for name in topics_read}
    try:
        with AnyReader([Path(path)], default_typestore=get_typestore(Stores.ROS2_JAZZY)) as reader:
            topics = sorted({connection.topic for connection in reader.connections})
            for name in topics_read - set(topics):
                raise RbdError(f"{source} has no topic {name}; it has {', '.join(topics) or 'none'}")
            connections = [connection for connection in reader.connections if connection.topic in topics_read]
            for connection, _, data in reader.messages(connections=connections):
                message: Any = reader.deserialize(data, connection.msgtype)
                rows[connection.topic].append(_state(message))
    except RbdError:
        raise
    except Exception as error:    # any exception of the reader for a corrupt file
        raise RbdError(f"cannot read '{path}': {error}") from None
    efforts = None if effort_topic is None else rows[_slashed(effort_topic)]
    return _arrays(rows[_slashed(topic)], efforts, source, topic, effort_topic or topic)


def _slashed(topic: str) -> str:
    return topic if topic.startswith("/") else "/" + topic


def _state(message: Any) -> tuple[float, dict[str, tuple[float, float, float]]]:
    """Stamp, and position, velocity and effort per joint, NaN if missing."""
    stamp = message.header.stamp
    names = list(message.name)

    def column(*fields: str) -> Sequence[float]:
        values = next((getattr(message, field) for field in fields if hasattr(message, field)), ())
        return values if len(values) == len(names) else [np.nan] * len(names)

    values = zip(column("position"), column("velocity"), column("effort", "efforts"), strict=True)
    return stamp.sec + 1e-9 * stamp.nanosec, dict(zip(names, values, strict=True))


def _arrays(states: list[tuple[float, dict[str, tuple[float, float, float]]]],
            efforts: list[tuple[float, dict[str, tuple[float, float, float]]]] | None,
            source: str, topic: str, effort_topic: str) -> dict[str, Any]:
    names = tuple(dict.fromkeys(name for _, row in states for name in row))
    if not names:
        raise RbdError(f"{source}: no message of {topic} names a joint")
    missing = (np.nan, np.nan, np.nan)
    table = np.array([[row.get(name, missing) for name in names] for _, row in states], dtype=np.float64)
    t = np.array([stamp for stamp, _ in states])
    tau = table[..., 2]
    if efforts is not None:
        order = np.argsort([stamp for stamp, _ in efforts], kind="stable")
        times = np.array([efforts[i][0] for i in order])
        tau = np.full_like(tau, np.nan)
        for j, name in enumerate(names):
            values = np.array([efforts[i][1].get(name, missing)[2] for i in order])
            good = np.isfinite(values)
            if good.any():
                tau[:, j] = _between(t, times[good], values[good])
    with_effort: NDArray[np.bool_] = ~np.all(np.isnan(tau), axis=0)
    if not with_effort.any():
        raise RbdError(f"{source}: {topic} has no efforts; give the topic that has them" if efforts is None else
                       f"{source}: {effort_topic} has no efforts of joints of {topic} at times of their positions")
    v = table[:, with_effort, 1]
    return {"t": t, "q": table[:, with_effort, 0], "v": None if np.isnan(v).all() else v, "tau": tau[:, with_effort],
            "joints": tuple(name for name, measured in zip(names, with_effort, strict=True) if measured),
            "source": source}


def _between(t: Array, times: Array, values: Array) -> Array:
    """Values at t, interpolated linearly between `times`; NaN outside and in gaps."""
    steps = np.diff(times)
    period = float(np.median(steps[steps > 0.0])) if (steps > 0.0).any() else 0.0
    values_at: Array = np.interp(t, times, values, left=np.nan, right=np.nan)
    index = np.searchsorted(times, t, side="right") - 1
    inside = (index >= 0) & (index < len(steps))
    later = np.clip(index, 0, max(len(steps) - 1, 0))
    if len(steps):
        values_at[inside & (steps[later] > max(GAP * period, SHORTEST_GAP)) & (t > times[later])] = np.nan
    return values_at
