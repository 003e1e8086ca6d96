"""Point clouds in messages: decoded as the middleware does, cells where their points are; hostile ones are rejected."""
from __future__ import annotations

import struct

import numpy as np
import pytest
from support.obstacle_messages import cloud, marker, markers
from test_obstacle_sources import ROBOT, far, names

from rbd_ros.runtime.inputs.point_cloud import Cloud, read_cloud
from rbd_ros.runtime.inputs.rejections import Rejected
from rbd_ros.runtime.planning.robot_collisions import UNAWARE
from rbd_ros.runtime.planning.surroundings import Surroundings

pytest.importorskip("coal")
RNG = np.random.default_rng(0)
POINTS = RNG.normal(size=(60, 3)).astype(np.float32).astype(float)
NAN, INF = float("nan"), float("inf")


def surroundings(size=0.1):
    return Surroundings(ROBOT, "world", size)


# ---- decoding

LAYOUTS = {"plain": {}, "double": {"kind": "f8"}, "padded": {"step": 32}, "rows": {"height": 6},
           "gaps between rows": {"height": 6, "row_step": 7 * 10 * 12}, "big": {"big": True},
           "big, double": {"big": True, "kind": "f8", "height": 5, "step": 48},
           "unaligned": {"step": 13}, "other order": {"fields": ("z", "x", "y")},
           "colours": {"step": 20, "fields": ("x", "y", "z", "rgb", "ring"), "offsets": (0, 4, 8, 12, 16),
                       "types": (7, 7, 7, 6, 4)}}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts(layout):
    found = read_cloud(cloud(POINTS, "camera", **LAYOUTS[layout]))
    assert found.frame_id == "camera"
    expected = POINTS[:, [1, 2, 0]] if layout == "other order" else POINTS
    np.testing.assert_array_equal(found.points, expected)


@pytest.mark.parametrize("frame", ["", "a", "ab", "abc", "abcd", "camera_link"])
@pytest.mark.parametrize("big", [False, True])
def test_as_the_middleware(frame, big):
    pytest.importorskip("rclpy")
    from rclpy.serialization import deserialize_message, serialize_message
    from sensor_msgs.msg import PointCloud2, PointField

    message = PointCloud2(height=2, width=30, is_bigendian=big, point_step=16, row_step=30 * 16, is_dense=True)
    message.header.frame_id = frame
    message.header.stamp.sec = 7
    message.fields = [PointField(name=name, offset=4 * k, datatype=7, count=1) for k, name in enumerate(
        ["x", "y", "z", "intensity"])]
    message.data = np.column_stack([POINTS, np.ones(60)]).astype(">f4" if big else "<f4").tobytes()
    found = read_cloud(serialize_message(message))
    assert found.frame_id == frame
    np.testing.assert_array_equal(found.points, POINTS)
    # and the one by hand, of the other tests, is one
    mine = deserialize_message(cloud(POINTS, frame, height=2, step=16, big=big), PointCloud2)
    assert (mine.header.frame_id, mine.height, mine.width, mine.row_step, mine.is_bigendian) == (
        frame, 2, 30, 480, big)
    assert [(each.name, each.offset, each.datatype, each.count) for each in mine.fields] == [
        ("x", 0, 7, 1), ("y", 4, 7, 1), ("z", 8, 7, 1)]


def test_what_was_not_seen_is_left_out():
    seen = POINTS.copy()
    seen[3, 1], seen[10], seen[20, 2] = NAN, INF, -INF
    kept = np.isfinite(seen).all(axis=1)
    assert np.count_nonzero(kept) == 57
    np.testing.assert_array_equal(read_cloud(cloud(seen)).points, POINTS[kept])
    signalling = bytearray(cloud(POINTS[:1]))
    begin = len(signalling) - 1 - 12
    signalling[begin:begin + 4] = struct.pack("<I", 0x7F800001)
    with np.errstate(all="raise"):
        assert len(read_cloud(bytes(signalling)).points) == 0
    for empty in (cloud([]), cloud([], fields=()), cloud(np.full((4, 3), NAN))):
        assert read_cloud(empty) == Cloud("base", pytest.approx(np.empty((0, 3))))


HOSTILE = {
    "big-endian message": (cloud(POINTS, encapsulation=b"\0\0\0\0"), "not CDR in little-endian order"),
    "no z": (cloud(POINTS, fields=("x", "y")), "no field 'z' of type FLOAT32 or FLOAT64"),
    "no fields": (cloud(POINTS, fields=()), "no field 'x'"),
    "integers": (cloud(POINTS, types=(5, 7, 7)), "no field 'x' of type"),
    "unknown type": (cloud(POINTS, types=(7, 200, 7)), "no field 'y' of type"),
    "many fields": (cloud(POINTS, fields=[f"f{k}" for k in range(101)]), "101 fields, expected at most 100"),
    "point_step 0": (cloud(POINTS, step=0, data=bytes(720)), "are not a sensor_msgs/PointCloud2"),
    "point_step too small": (cloud(POINTS, step=8, data=bytes(720)), "are not a sensor_msgs/PointCloud2"),
    "point_step huge": (cloud(POINTS[:1], step=2**32 - 1, row_step=720, data=bytes(720)), "are not a sensor_msgs"),
    "offset huge": (cloud(POINTS, offsets=(0, 4, 2**32 - 1)), "are not a sensor_msgs/PointCloud2"),
    "row_step 0": (cloud(POINTS, row_step=0, data=bytes(720)), "1 rows of 0 bytes, with 60 points of 12 bytes"),
    "row_step too small": (cloud(POINTS, height=2, row_step=359, data=bytes(720)), "2 rows of 359 bytes"),
    "row_step too large": (cloud(POINTS, height=2, row_step=361, data=bytes(720)), "are not in 720 bytes of data"),
    "little data": (cloud(POINTS, data=bytes(719)), "are not in 719 bytes of data"),
    "no data": (cloud(POINTS, data=b""), "are not in 0 bytes of data"),
    "cut": (cloud(POINTS)[:-2], "are not in 720 bytes of data"), "nothing": (b"", "0 bytes are not"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_clouds_are_rejected_and_the_earlier_one_stays(name):
    data, words = HOSTILE[name]
    made = surroundings()
    assert made.take_cloud(cloud([[1.0, 0.0, 0.0]]))
    before = made.collisions
    verdict = made.take_cloud(data)
    assert not verdict and words in verdict.text and "the earlier ones stay" in verdict.text
    assert made.collisions is before and made.rejections.total == 1 and len(verdict.text) < 700
    assert made.take_cloud(cloud([[2.0, 0.0, 0.0]])) and names(made) == ["cloud"]


def test_bytes_that_are_cut_or_changed_anywhere_are_taken_or_rejected_and_never_an_error():
    whole, rng, taken = cloud(POINTS[:4], fields=("x", "y", "z", "i"), step=16), np.random.default_rng(1), 0
    for k in range(len(whole) - 1):    # the last byte is not read
        with pytest.raises(Rejected):
            read_cloud(whole[:k])
    for _ in range(3000):
        data = bytearray(whole)
        for _ in range(rng.integers(1, 4)):
            data[rng.integers(4, len(data))] = rng.choice([0, 1, 2, 7, 8, 127, 128, 255, rng.integers(256)])
        try:
            taken += len(read_cloud(bytes(data)).points) < 100
        except Rejected as error:
            assert error.kind == "malformed" and len(str(error)) < 400
    assert 100 < taken < 2900


# ---- where the cells are


@pytest.mark.parametrize(("frame", "at"), [("base", (0.42, 0.33, 1.27)), ("world", (0.42, 0.33, 1.27)),
                                           ("stand", (0.33, -0.42, 0.27))])
def test_cells_are_along_the_axes_of_the_root(frame, at):
    """Frame stand is 1 m above the root, turned by 90° about z: x is the root's y."""
    made = surroundings()
    verdict = made.take_cloud(cloud([at], frame))
    assert verdict, verdict.text
    (box,) = (piece for piece in made.collisions.pieces if not piece.own)
    np.testing.assert_allclose(box.shape.pose, [[1, 0, 0, 0.45], [0, 1, 0, 0.35], [0, 0, 1, 1.25], [0, 0, 0, 1]],
                               atol=1e-15)
    assert box.shape.size == pytest.approx((0.1, 0.1, 0.1)) and far(made, (0.45, 0.35, 2.0)) == pytest.approx(0.7)


def test_each_cloud_replaces_the_one_before_and_nothing_else():
    made = surroundings()
    assert made.take_markers(markers(marker())) and made.take_text("obstacles: [{shape: sphere, radius: 0.1}]")
    standing = ["obstacle_0", "camera/0"]
    assert names(made) == standing
    for points, left in (([[1.0, 0, 0], [1.5, 0, 0]], ["cloud/0", "cloud/1"]), ([[1.0, 0, 0]], ["cloud"]), ([], [])):
        assert made.take_cloud(cloud(points)) and names(made) == [*standing, *left]
        assert made.obstacles == len(standing) + len(left)
    assert made.take_cloud(cloud([[1.0, 0, 0], [1.5, 0, 0]]))
    before = made.collisions
    in_the_same_cells = cloud([[1.02, 0, 0], [1.51, 0, 0.05], [NAN, 0, 0]])
    assert made.take_cloud(in_the_same_cells) and made.collisions is before
    apart = made.without_pairs([("upper", "cloud")])
    assert ("lower", "cloud/1") in apart.pairs and not any(
        first == "upper" and second.startswith("cloud") for first, second in apart.pairs)
    assert made.take_markers(markers(marker(action=3, ns=""))) and names(made) == ["obstacle_0", "cloud/0", "cloud/1"]


@pytest.mark.parametrize(("data", "words"), [
    (cloud(POINTS, "camera_link"), "point cloud: frame 'camera_link', expected one that is fixed to the root link"),
    (cloud(POINTS, "upper"), "point cloud: frame 'upper', expected one that is fixed"),
    (cloud([[1e5, 0.0, 0.0]]), "point cloud: a coordinate is 100000 m, expected at most"),
    (cloud([[2000.0, 0.0, 0.0]]), "a coordinate is larger than 1000 m"),
    (cloud([[3e38, 0.0, 0.0]]), "point cloud: a coordinate is 3e+38 m"),
    (cloud([[1e308, 1e308, 1e308]], "stand", kind="f8"), "point cloud: a coordinate is"),
    (cloud(RNG.uniform(-3, 3, size=(3000, 3))), "boxes, expected at most 1000: take larger voxels, or fewer points"),
    (cloud(RNG.uniform(-50, 50, size=(60_000, 3))), "voxels of 0.1 m, expected at most 50000: take larger ones"),
])
def test_clouds_that_are_too_large_or_elsewhere(data, words):
    made = surroundings(0.01 if "100000" in words else 0.1)
    assert made.take_cloud(cloud([[1.0, 0.0, 0.0]]))
    before = made.collisions
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        verdict = made.take_cloud(data)
    assert not verdict and words in verdict.text, verdict.text
    assert made.collisions is before and made.rejections.counts["malformed"] == 1


def test_without_a_collision_model():
    made = Surroundings(None)
    assert not made.take_cloud(cloud(POINTS)) and UNAWARE in made.rejections.last
    assert made.collisions is None
