"""Fuzz of commands as bytes: a simulator makes the same of them on both ways, message by message.

Efforts by order and by name, efforts of one joint, wrenches, and the answers that node lockstep passes on: cut,
lengthened, in other encodings and byte orders, with labels, names and sizes that do not belong there, numbers that are
not finite or enormous, single bits flipped.
"""
from __future__ import annotations

import struct
import sys
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
from rclpy.serialization import deserialize_message, serialize_message
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64, Float64MultiArray, MultiArrayDimension

import rbd_ros as rbd
from rbd_interfaces.msg import JointEffort, NamedWrench, NamedWrenches
from rbd_ros.nodes.base.conversions import fields_of, named_wrenches
from rbd_ros.nodes.loop.simulation_loop import reader
from rbd_ros.runtime.plant.plant import Plant
from rbd_ros.runtime.plant.simulator_settings import SimulatorSettings

from .joint_state_bytes import ODD, harm

KINDS = (Float64MultiArray, JointState, NamedWrenches, Float64, JointEffort)


class Side:
    """One decoder, and a plant that takes its results. ways: by kind of message, from bytes to plain values."""

    def __init__(self, model: rbd.RobotModel, ways: dict[type, Callable[[bytes], Any]]) -> None:
        self.ways = ways
        self.plant = Plant(model, SimulatorSettings.from_values({"joints": list(model.joint_names)[::-1]}, model))

    def take(self, kind: type, data: bytes) -> tuple[Any, ...]:
        """All state that may depend on the decoder."""
        plant = self.plant
        try:
            values = self.ways[kind](data)
        except Exception:    # Malformed of the one way, whatever the middleware raises of the other
            return ("malformed",)
        if kind is Float64:
            return (struct.pack("<d", values),)
        if kind is JointEffort:
            return (bytes(serialize_message(values)),)
        if kind is JointState:
            verdict = plant.on_named_commands(values.names, values.effort)
        else:
            verdict = (plant.on_commands if kind is Float64MultiArray else plant.on_wrenches)(values)
        wrenches = None if plant._wrenches is None else plant._wrenches.tobytes()
        stamp = values.stamp_ns if kind is JointState else 0
        return (tuple(verdict), stamp, plant.effort.tobytes(), wrenches, dict(plant.counts),
                dict(plant.rejections.counts))


class Senders:
    """Generates messages of all kinds, half of them corrupted."""

    def __init__(self, model: rbd.RobotModel, rng: np.random.Generator) -> None:
        self._model, self._rng = model, rng

    def message(self) -> tuple[type, bytes, bool]:
        """The next message as bytes, and whether it is corrupted."""
        rng = self._rng
        kind = KINDS[rng.choice(len(KINDS), p=[0.4, 0.3, 0.1, 0.1, 0.1])]
        spoilt = rng.random() < 0.5
        message = self._make(kind, spoilt)
        data = bytes(serialize_message(message))
        return kind, harm(data, int(rng.integers(-2, 4)), rng) if spoilt else data, spoilt

    def _numbers(self, count: int, spoilt: bool) -> list[float]:
        rng = self._rng
        if spoilt and rng.random() < 0.2:
            count = int(rng.integers(0, 12))
        numbers = (10.0 ** rng.integers(0, 4) * rng.standard_normal(count)).tolist()
        if spoilt and count and rng.random() < 0.3:
            numbers[int(rng.integers(count))] = float(rng.choice(ODD))
        return numbers

    def _names(self, spoilt: bool) -> list[str]:
        rng, names = self._rng, list(self._model.joint_names)
        if rng.random() < 0.3:
            names = names[::-1]
        if spoilt and rng.random() < 0.3:
            names[int(rng.integers(len(names)))] = str(rng.choice(["joint_1", "joint_X", "", "ä"]))
        return names

    def _make(self, kind: type, spoilt: bool) -> Any:
        rng, nv = self._rng, self._model.nv
        if kind is Float64:
            return Float64(data=self._numbers(1, False)[0])
        if kind is Float64MultiArray:
            array = Float64MultiArray(data=self._numbers(nv, spoilt))
            if rng.random() < 0.1:
                array.layout.data_offset = int(rng.integers(5))
                array.layout.dim = [MultiArrayDimension(label="joints", size=nv, stride=nv)] * int(rng.integers(3))
            return array
        if kind is NamedWrenches:
            wrench = NamedWrench(body=str(rng.choice([self._model.body_names[-1], "nothing"], p=[0.8, 0.2])))
            wrench.wrench.force.x, wrench.wrench.torque.z = [*self._numbers(2, spoilt), 0.0, 0.0][:2]
            return NamedWrenches(wrenches=[wrench] * int(rng.integers(3)))
        message = kind(name=self._names(spoilt), effort=self._numbers(nv, spoilt))
        message.header.stamp.sec, message.header.stamp.nanosec = int(rng.integers(-1, 9)), int(rng.integers(10**9))
        if kind is JointState and rng.random() < 0.5:
            message.position = message.velocity = self._numbers(nv, spoilt)
        return message


def ordinary(kind: type) -> Callable[[bytes], Any]:
    """The middleware's conversion from bytes to plain values."""
    plain = {JointState: fields_of, NamedWrenches: named_wrenches, Float64MultiArray: lambda message: message.data,
             Float64: lambda message: message.data, JointEffort: lambda message: message}[kind]
    return lambda data: plain(deserialize_message(data, kind))


def run(messages: int = 100_000, seed: int = 1, show: bool = True) -> dict[str, Any]:
    """Compare both decoders; returns counts, including `violations`, and µs per valid command of both."""
    model, rng = rbd.sample("iiwa"), np.random.default_rng(seed)
    quick = Side(model, {kind: reader(kind) for kind in KINDS})
    usual = Side(model, {kind: ordinary(kind) for kind in KINDS})
    senders, counts, spent = Senders(model, rng), Counter[str](), np.zeros(2)
    for i in range(messages):
        kind, data, spoilt = senders.message()
        times = [time.perf_counter()]
        outcomes = []
        for side in (quick, usual):
            outcomes.append(side.take(kind, data))
            times.append(time.perf_counter())
        if kind in (Float64MultiArray, JointState) and not spoilt:
            spent += np.diff(times)
            counts["timed"] += 1
        if outcomes[0] != outcomes[1]:
            counts["violations"] += 1
            print(f"message {i} of seed {seed} differs: {kind.__name__} {data.hex()}\n  {outcomes[0]}\n  {outcomes[1]}",
                  file=sys.stderr)
        counts["malformed"] += outcomes[0] == ("malformed",)
    taken = quick.plant.counts["commands"]
    found = {"messages": messages, "seed": seed, "taken": taken, "rejected": quick.plant.rejections.total,
             "malformed": counts["malformed"], "violations": counts["violations"],
             "bytes_us": 1e6 * spent[0] / counts["timed"], "objects_us": 1e6 * spent[1] / counts["timed"]}
    if show:
        print("\nCommands as bytes: " + ", ".join(f"{key} {value:.0f}" for key, value in found.items()))
    return found
