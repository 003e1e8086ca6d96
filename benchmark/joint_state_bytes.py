"""Fuzz of joint states as bytes: the way in place gives what the middleware's conversion gives, message by message.

Drivers take turns; their messages are cut, lengthened, written in other encodings and byte orders, with names swapped,
renamed or doubled, sizes changed, numbers that are not finite or enormous, stamps that go back, single bits flipped.
"""
from __future__ import annotations

import struct
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from rclpy.serialization import deserialize_message, serialize_message
from sensor_msgs.msg import JointState

import rbd_ros as rbd
from rbd_ros.runtime.inputs.joint_state_bytes import Fields, JointStateReader, Malformed
from rbd_ros.runtime.inputs.joint_states import StateInput
from rbd_ros.runtime.inputs.rejections import Rejections

ODD = (np.nan, np.inf, -np.inf, 1e308, 0.0, -0.0, 1e-320)


def convert(data: bytes) -> Any:
    """The middleware's conversion."""
    return deserialize_message(data, JointState)


def fields(data: bytes) -> Fields:
    """What the ordinary way sees; raises what it raises."""
    message = convert(data)
    stamp = message.header.stamp
    return Fields(stamp.sec, stamp.nanosec, message.name, message.position, message.velocity, message.effort)


class Side:
    """One decoder, and the controllers' input that takes its results."""

    def __init__(self, model: rbd.RobotModel, read: Callable[[bytes], Fields]) -> None:
        self.read, self.rejections = read, Rejections()
        self.state = StateInput(model, self.rejections, timeout=0.05, cutoff=30.0, plausible=2.0)

    def take(self, now: float, data: bytes) -> tuple[Any, ...]:
        """All state that may depend on the decoder."""
        try:
            found = self.read(data)
        except Exception as error:    # Malformed of the one way, whatever the middleware raises of the other
            known = error if isinstance(error, Malformed) else Malformed(data, "sensor_msgs/JointState", error)
            self.rejections.counts[known.kind] += 1
            return ("malformed",)
        verdict = self.state.accept(now, found.stamp_ns, found.names, found.position, found.velocity, found.effort)
        state = self.state
        measured = None if state.measured_effort is None else state.measured_effort.tobytes()
        return (bool(verdict), state.q.tobytes(), state.v.tobytes(), measured, state.stamp_ns, state.restarts,
                dict(self.rejections.counts))


class Drivers:
    """Generates messages of several drivers of one robot, some of them corrupted."""

    def __init__(self, model: rbd.RobotModel, rng: np.random.Generator) -> None:
        self._model, self._rng = model, rng
        names = list(model.joint_names)
        self._names = [names, names[::-1], ["gripper", *names], [*names, "ä", ""], ["wheel"] * 3]
        self._stamp = 1_000_000_000

    def message(self) -> bytes:
        """The next one, as bytes."""
        rng = self._rng
        driver = int(rng.choice(len(self._names), p=[0.8, 0.08, 0.05, 0.05, 0.02]))
        names = list(self._names[driver])
        self._stamp += 2_000_000
        message = JointState(name=names)
        message.header.frame_id = "base" if driver == 1 else ""
        message.header.stamp.sec, message.header.stamp.nanosec = divmod(self._stamp, 1_000_000_000)
        for field in ("position", "velocity", "effort"):
            if rng.random() < 0.98 and (field != "effort" or driver in (0, 2)):
                setattr(message, field, (0.3 + 1e-3 * rng.standard_normal(len(names))).tolist())
        if rng.random() < 0.5:
            return bytes(serialize_message(message))
        return self._spoilt(message)

    def _spoilt(self, message: JointState) -> bytes:
        rng = self._rng
        kind = rng.integers(10)
        if kind == 0 and len(message.name) > 1:
            i, j = rng.choice(len(message.name), 2, replace=False)
            message.name[i], message.name[j] = message.name[j], message.name[i]
        elif kind == 1 and len(message.name):
            message.name[rng.integers(len(message.name))] = str(rng.choice(["joint_1", "joint_X", "", "\n"]))
        elif kind == 2:
            field = str(rng.choice(["position", "velocity", "effort"]))
            setattr(message, field, rng.standard_normal(rng.integers(0, 12)).tolist())
        elif kind == 3 and len(message.position):
            message.position[rng.integers(len(message.position))] = float(rng.choice(ODD))
        elif kind == 4 and len(message.velocity):
            message.velocity[rng.integers(len(message.velocity))] = float(rng.choice(ODD))
        elif kind == 5:
            message.header.stamp.sec = int(rng.integers(0, 3))
        return harm(serialize_message(message), int(kind) - 6, rng)


def harm(message: bytes, kind: int, rng: np.random.Generator) -> bytes:
    """Bytes that are truncated (0), lengthened (1), of another encoding (2), with a flipped bit (3), or unchanged."""
    data = bytearray(message)
    if kind == 0:
        data = data[:rng.integers(0, len(data))]
    elif kind == 1:
        data += bytes(rng.integers(0, 256, rng.integers(1, 9), dtype=np.uint8))
    elif kind == 2:
        data[:4] = struct.pack("<I", int(rng.choice([0, 0x0700, 0x0300, 0x0200, 0xFFFFFFFF])))
    elif kind == 3:
        at = int(rng.integers(len(data)))
        data[at] ^= 1 << int(rng.integers(8))
    return bytes(data)


def run(messages: int = 100_000, seed: int = 1, show: bool = True) -> dict[str, Any]:
    """Compare both decoders; returns counts, including `violations`."""
    model, rng = rbd.sample("iiwa"), np.random.default_rng(seed)
    reader, drivers = JointStateReader(convert), Drivers(model, rng)
    quick, ordinary = Side(model, reader.read), Side(model, fields)
    taken = violations = malformed = 0
    begin = time.monotonic()
    for i in range(messages):
        data = drivers.message()
        now = 1.0 + 2e-3 * i
        one, other = quick.take(now, data), ordinary.take(now, data)
        if one != other:
            violations += 1
            print(f"message {i} of seed {seed} differs: {data.hex()}\n  {one}\n  {other}", file=sys.stderr)
        taken += one[0] is True
        malformed += one == ("malformed",)
        if show and (i + 1) % 20_000 == 0:
            print(f"  {i + 1} messages, {violations} differ", flush=True)
    found = {"messages": messages, "seed": seed, "taken": taken, "malformed": malformed,
             "in_place": messages - reader.learnt, "violations": violations, "seconds": time.monotonic() - begin}
    if show:
        print("\nJoint states as bytes: " + ", ".join(f"{key} {value:.0f}" for key, value in found.items()))
    return found
