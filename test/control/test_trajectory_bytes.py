"""Trajectories read from bytes: what the middleware gives, for all layouts and all kinds of harm."""
from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="rclpy is not importable: source ROS 2 or use scripts/test")

from rclpy.serialization import deserialize_message, serialize_message
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from support.trees import mimic_tree

import rbd_ros as rbd
from rbd_ros.core.motion.point_table import FIELDS, SMALLEST, find_points_entry
from rbd_ros.runtime.inputs.joint_state_bytes import Malformed
from rbd_ros.runtime.inputs.rejections import Rejected
from rbd_ros.runtime.inputs.trajectory_points import Point, PointTable, TrajectoryReader

MODEL = rbd.sample("iiwa")
READER = TrajectoryReader("/a/joint_trajectory", 10_000, 65536, MODEL)


def message(rng, points, sizes):
    """With fields of these sizes, chosen anew for every point."""
    made = JointTrajectory(joint_names=[*MODEL.joint_names][:int(rng.integers(8))] + ["ä"] * int(rng.integers(2)))
    made.header.frame_id = "x" * int(rng.integers(9))
    made.header.stamp.sec, made.header.stamp.nanosec = int(rng.integers(-5, 99)), int(rng.integers(10**9))
    for _ in range(points):
        point = JointTrajectoryPoint()
        for field in ("positions", "velocities", "accelerations", "effort"):
            setattr(point, field, rng.standard_normal(rng.choice(sizes)).tolist())
        point.time_from_start.sec, point.time_from_start.nanosec = int(rng.integers(-9, 9)), int(rng.integers(10**9))
        made.points.append(point)
    return made


def agrees(found, expected):
    stamp = expected.header.stamp
    assert found.stamp_ns == stamp.sec * 10**9 + stamp.nanosec and found.names == list(expected.joint_names)
    assert len(found.points) == len(expected.points)
    for i, point in enumerate(expected.points):
        time = point.time_from_start
        got = found.points[i]
        assert got.time == (time.sec * 10**9 + time.nanosec) * 1e-9
        for one, other in zip(got[1:], (point.positions, point.velocities, point.accelerations), strict=True):
            assert np.asarray(one).tobytes() == np.asarray(other, dtype=np.float64).tobytes()


@pytest.mark.parametrize("seed", range(40))
def test_it_is_what_the_middleware_reads(seed):
    rng = np.random.default_rng(seed)
    data = bytes(serialize_message(message(rng, int(rng.integers(6)), [0, 1, 7, 8])))
    agrees(READER.read(data), deserialize_message(data, JointTrajectory))


@pytest.mark.parametrize("seed", range(4))
def test_harmed_bytes_are_what_the_middleware_reads_or_refused(seed):
    """Bits, cuts and counts; nothing is read outside, whatever the counts say."""
    rng = np.random.default_rng(seed)
    good = bytes(serialize_message(message(rng, 4, [0, 3])))
    read = refused = 0
    for _ in range(1500):
        harmed = bytearray(good)
        for _ in range(int(rng.integers(1, 4))):
            at = int(rng.integers(4, len(harmed)))
            if rng.random() < 0.5:
                harmed[at] ^= 1 << int(rng.integers(8))
            else:
                at -= at % 4
                harmed[at:at + 4] = int(rng.choice([0, 1, 2, 2**31, 2**32 - 1, len(good)])).to_bytes(4, "little")
        data = bytes(harmed[:int(rng.integers(len(harmed)))] if rng.random() < 0.3 else harmed)
        try:
            found = READER.read(data)
        except Rejected:
            refused += 1
            continue
        try:
            expected = deserialize_message(data, JointTrajectory)
        except Exception:    # a text that does not end, for one, is read here up to its length
            continue
        agrees(found, expected)
        read += 1
    assert read > 100 and refused > 100


def test_the_kernel_reads_nothing_outside():
    """Compiled code checks no index: every end of the words, with counts that point beyond it."""
    rng = np.random.default_rng(0)
    good = np.frombuffer(bytes(4) + bytes(serialize_message(message(rng, 3, [0, 2])))[:], np.uint8)
    words = np.zeros(len(good) // 4 + 8, np.int32)
    words.view(np.uint8)[:len(good)] = good
    for end in range(len(words)):
        for place in range(0, end, 3):
            for count in (-1, 2**31 - 1, (end - place) // 2, (end - place) // 2 + 1):
                harmed = words.copy()
                harmed[place] = count
                places = np.zeros((3, 2 * FIELDS), np.int64)
                for entry in (find_points_entry.call, find_points_entry.python):
                    whole = entry(harmed, min(8, end), end, places, np.zeros(3, np.int64))
                    ends = places[:whole, ::2] + places[:whole, 1::2]
                    assert (ends[places[:whole, 1::2] > 0] * 2 <= end).all()


@pytest.mark.parametrize("data", [b"", b"\0\1", b"\0\0\0\0" + bytes(80), b"\0\1\0\0" + bytes(19),
                                  b"\0\1\0\0" + b"\xff" * 80])
def test_what_is_no_trajectory_is_named(data):
    with pytest.raises(Malformed, match=f"{len(data)} bytes are not a trajectory_msgs/JointTrajectory"):
        READER.read(data)


def test_too_many_points_or_names():
    reader = TrajectoryReader("/a/joint_trajectory", 3, 2000, MODEL)
    rng = np.random.default_rng(0)
    with pytest.raises(Rejected, match="4 points on /a/joint_trajectory, at most 3 "):
        reader.read(bytes(serialize_message(message(rng, 4, [1]))))
    many = JointTrajectory(joint_names=["joint"] * 1000)
    with pytest.raises(Rejected, match="bytes before its points on /a/joint_trajectory, at most 2000") as error:
        reader.read(bytes(serialize_message(many)))
    assert error.value.kind == "too_large"
    whole = message(rng, 3, [7])
    assert len(bytes(serialize_message(whole))) <= reader.most and len(reader.read(bytes(serialize_message(
        whole))).points) == 3


def test_a_message_of_all_joints_is_not_too_large():
    """Mimic joints too, which drivers report."""
    model = mimic_tree()
    names = [*model.joint_names, *(each.name for each in model.mimics)]
    reader = TrajectoryReader("/a/joint_trajectory", 5, 4 * sum(len(name) + 12 for name in names), model)
    n = model.nv + len(model.mimics)
    points = [JointTrajectoryPoint(positions=[0.0] * n, velocities=[0.0] * n, accelerations=[0.0] * n, effort=[0.0] * n)
              for _ in range(5)]
    data = bytes(serialize_message(JointTrajectory(joint_names=names, points=points)))
    assert reader.most // 2 < len(data) <= reader.most and len(reader.read(data).points) == 5


def test_a_table_of_points():
    points = [Point(0.1, [1.0, 2.0]), Point(0.2, [3.0], [4.0, 5.0], np.array([6.0])), Point(0.3, [])]
    table = PointTable.of(points)
    assert PointTable.of(table) is table and len(table) == 3
    for i, point in enumerate(points):
        assert [np.asarray(x).tolist() for x in table[i]] == [np.asarray(x).tolist() for x in point]
    assert SMALLEST == 6


def test_without_a_compiler():
    """The same code reads as plain Python."""
    code = ("from rclpy.serialization import serialize_message\n"
            "import numpy as np, test_trajectory_bytes as t\n"
            "rng = np.random.default_rng(0)\n"
            "data = bytes(serialize_message(t.message(rng, 5, [0, 7])))\n"
            "t.agrees(t.READER.read(data), t.deserialize_message(data, t.JointTrajectory))\n"
            "t.test_harmed_bytes_are_what_the_middleware_reads_or_refused(1)\n")
    here = Path(__file__).parent
    path = os.pathsep.join([str(here), str(here.parent), *filter(None, [os.environ.get("PYTHONPATH")])])
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True, cwd=here.parent.parent,
                   env={**os.environ, "RBD_DISABLE_COMPILE": "1", "PYTHONPATH": path})
