"""Joint states read in place from bytes: what the middleware gives, for all layouts and all kinds of harm."""
from __future__ import annotations

import struct
from itertools import product

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="rclpy is not importable: source ROS 2 or use scripts/test")

from rclpy.serialization import serialize_message
from sensor_msgs.msg import JointState

from benchmark import joint_state_bytes as fuzz
from rbd_ros.runtime.inputs.joint_state_bytes import JointStateReader, Malformed, _equal

SIZES = (0, 1, 3)
NAMES = ([], ["a"], ["joint_1", "bc", "ä"], ["a name of some length"] * 2)


@pytest.mark.parametrize(("names", "sizes"), list(product(NAMES, product(SIZES, repeat=3))), ids=str)
def test_the_second_message_is_read_in_place(names, sizes):
    rng = np.random.default_rng(0)
    reader = JointStateReader(fuzz.convert)
    for turn in range(3):
        message = JointState(name=names)
        message.header.frame_id = "base"
        message.header.stamp.sec, message.header.stamp.nanosec = turn, 999_999_999 - turn
        for field, size in zip(("position", "velocity", "effort"), sizes, strict=True):
            setattr(message, field, [np.nan, *rng.standard_normal(size)][-size:] if size else [])
        data = bytes(serialize_message(message))
        assert _equal(reader.read(data), fuzz.fields(data))
        assert reader.learnt == 1


def test_bytes_between_others_do_not_matter():
    """Middlewares write into them whatever lay in their memory."""
    message = JointState(name=["a", "bcd"], position=[1.0, 2.0], velocity=[3.0, 4.0])
    data = bytearray(serialize_message(message))
    reader = JointStateReader(fuzz.convert)
    reader.read(bytes(data))
    ordinary = fuzz.fields(bytes(data))
    for at in range(len(data)):
        other = bytearray(data)
        other[at] ^= 0xFF
        try:
            expected = fuzz.fields(bytes(other))
        except Exception:
            continue
        if at >= 12 and _equal(expected, ordinary):    # it means nothing there
            assert _equal(reader.read(bytes(other)), ordinary)
    assert reader.learnt <= 1 + 3    # ends of texts mean nothing, too, but always are the same


def test_messages_without_any_joint_of_the_robot_are_looked_at_once_a_second():
    reader = JointStateReader(fuzz.convert, ["joint_1", "ä"])
    foreign, own = (bytes(serialize_message(JointState(name=["other", name]))) for name in ("another", "ä"))
    looked = [reader.is_foreign(now, foreign) for now in (0.0, 0.1, 0.9, 1.1, 1.2, 2.2)]
    assert looked == [False, True, True, False, True, False]
    assert not any(reader.is_foreign(2.3, own) for _ in range(3))
    everyone = JointStateReader(fuzz.convert)
    assert not any(everyone.is_foreign(0.0, foreign) for _ in range(3))


def test_what_is_no_joint_state_is_named():
    reader = JointStateReader(fuzz.convert)
    for data in (b"", b"\x00\x01\x00\x00", bytes(serialize_message(JointState(name=["a"], position=[1.0])))[:-9]):
        with pytest.raises(Malformed, match=f"{len(data)} bytes are not a sensor_msgs/JointState"):
            reader.read(data)


def test_many_drivers_do_not_fill_the_memory():
    reader = JointStateReader(fuzz.convert)
    for count in range(1, 60):
        reader.read(bytes(serialize_message(JointState(name=["j"] * count, position=[0.0] * count))))
    assert len(reader._layouts) <= 8


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.thorough)])
def test_hostile_bytes(seed):
    found = fuzz.run(4000, seed, show=False)
    assert found["violations"] == 0
    assert found["in_place"] > 1000 and found["taken"] > 1000 and found["malformed"] > 100


def test_a_reader_that_guesses_is_found(monkeypatch):
    """The fuzz can fail: here the sizes are not looked at, or the names."""
    from rbd_ros.runtime.inputs import joint_state_bytes
    monkeypatch.setattr(joint_state_bytes.Layout, "read", _careless)
    assert fuzz.run(3000, 1, show=False)["violations"] > 0


def _careless(layout, data):
    from rbd_ros.runtime.inputs.joint_state_bytes import Fields
    numbers = np.frombuffer(data, np.float64, layout.width, layout.numbers) if layout.width else np.zeros(0)
    return Fields(*struct.unpack_from("<iI", data, 4), layout.names, *(numbers[part] for part in layout.parts))
