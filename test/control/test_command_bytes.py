"""Commands read in place from bytes: what the middleware gives, for all sizes and all kinds of harm."""
from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="rclpy is not importable: source ROS 2 or use scripts/test")
pytest.importorskip("rbd_interfaces.msg", reason="rbd_interfaces is not built: scripts/setup does it")

from rclpy.serialization import deserialize_message, serialize_message
from std_msgs.msg import Float64, Float64MultiArray, MultiArrayDimension

from benchmark import command_bytes as fuzz
from rbd_ros.nodes.loop import simulation_loop
from rbd_ros.runtime.inputs.joint_state_bytes import Malformed
from rbd_ros.runtime.inputs.number_bytes import read_array, read_number

pytestmark = pytest.mark.filterwarnings("ignore::rbd_ros.RbdWarning")    # the iiwa's inertias are as published


def refuse(data):
    raise AssertionError("this is not read in place")


@pytest.mark.parametrize("count", [1, 2, 7, 40])
def test_arrays_are_read_in_place(count):
    numbers = np.random.default_rng(0).standard_normal(count)
    message = Float64MultiArray(data=numbers)
    message.layout.data_offset = 3
    np.testing.assert_array_equal(read_array(bytes(serialize_message(message)), refuse), numbers)


def test_a_number_is_read_in_place():
    assert read_number(bytes(serialize_message(Float64(data=-0.3))), refuse) == -0.3


def test_what_is_not_written_so_goes_by_the_middleware():
    labelled = Float64MultiArray(data=[1.0, 2.0])
    labelled.layout.dim = [MultiArrayDimension(label="joints", size=2, stride=2)]
    for message in (Float64MultiArray(), labelled):
        data = bytes(serialize_message(message))
        assert list(read_array(data, lambda data: deserialize_message(data, Float64MultiArray))) == list(message.data)


@pytest.mark.parametrize("kind", fuzz.KINDS)
def test_what_is_no_message_is_named(kind):
    read = simulation_loop.reader(kind)
    for data in (b"", b"\x00\x01", b"\x00\x07\x00\x00" + bytes(5)):
        with pytest.raises(Malformed, match=f"{len(data)} bytes are not a .*{kind.__name__}"):
            read(data)


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.thorough)])
def test_hostile_bytes(seed):
    found = fuzz.run(4000, seed, show=False)
    assert found["violations"] == 0
    assert found["taken"] > 1000 and found["rejected"] > 100 and found["malformed"] > 100


def test_a_reader_that_guesses_is_found(monkeypatch):
    """The fuzz can fail: here the size is not looked at."""
    monkeypatch.setattr(simulation_loop, "read_array", lambda data, convert: np.frombuffer(data[20:len(data) // 8 * 8
                                                                                               - 4]))
    assert fuzz.run(2000, 1, show=False)["violations"] > 0
