"""Where the time of `feedforward` goes between two messages: bytes in, decide, compute, bytes out. In one process."""
from __future__ import annotations

import itertools
import struct
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from rclpy.serialization import deserialize_message, serialize_message
from sensor_msgs.msg import JointState

import rbd_ros as rbd
from rbd_interfaces.msg import JointEffort
from rbd_ros.nodes.outputs.message_bytes import MessageBytes
from rbd_ros.runtime.control.feedforward import FeedforwardController, FeedforwardSettings
from rbd_ros.runtime.control.loop_rate import Transit
from rbd_ros.runtime.steady.steady_tracking import TrackingCycle
from rbd_ros.runtime.inputs.joint_state_bytes import JointStateReader
from rbd_ros.runtime.inputs.references import Point

from .timing import table

REPEATS, ROUNDS = 200, 50


class _Sink:
    def publish(self, message: bytes) -> None:
        """Nothing: the middleware's time is part of the echo's."""


def _best(call: Callable[[], Any]) -> float:
    """µs of processor time per call, the least of many rounds."""
    best = float("inf")
    for _ in range(ROUNDS):
        begin = time.perf_counter()
        for _ in range(REPEATS):
            call()
        best = min(best, time.perf_counter() - begin)
    return 1e6 * best / REPEATS


def run(full_us: float | None = None, echo_us: float | None = None) -> dict[str, float]:
    """Print and return µs per stage; the medians of round trips (µs), if given, are shown beside them."""
    model = rbd.sample("iiwa")
    controller = FeedforwardController(model, FeedforwardSettings.from_values({"ramp_in": 0.0, "state_rate": 500.0},
                                                                              model))
    controller.activate(0.0)
    names, q = list(model.joint_names), np.full(model.nv, 0.1)
    data = serialize_message(JointState(name=names, position=q.tolist(), velocity=[0.0] * model.nv))
    reader = JointStateReader(lambda given: deserialize_message(given, JointState))
    state = reader.read(data)
    clock = itertools.count(1)

    def cycle() -> Any:
        k = next(clock)
        return controller.on_state(2e-3 * k, 2_000_000 * k, state.names, state.position, state.velocity, state.effort)

    cycle()
    controller.on_trajectory(2e-3, 0, names, [Point(0.0, q, (), ()), Point(1e6, q + 0.1, (), ())])
    for _ in range(100):
        cycle()
    steady, stamped, stamp = TrackingCycle(controller, Transit()), bytearray(data), struct.Struct("<iI")

    def message(k: int) -> bytes:
        stamp.pack_into(stamped, 4, *divmod(2_000_000 * k, 1_000_000_000))
        return bytes(stamped)

    def steady_cycle() -> None:
        k = next(clock)
        answered = steady.answer(message(k), 2e-3 * k, 0, 0, 0)
        assert answered is not None
        steady.keep()

    law, reference = controller.safety.laws.newest.law, controller.reference.sample(1.0, 1_000_000_000)
    answer = MessageBytes(JointEffort(name=names), {"effort": model.nv}, True)
    effort = answer.numbers["effort"]

    def send() -> None:
        effort[:] = q
        answer.send(_Sink(), 1, 1)

    found = {"bytes in": _best(lambda: reader.read(data)), "decide and compute": _best(cycle),
             "compute": _best(lambda: law.effort(state.position, state.velocity, reference)), "bytes out": _best(send)}
    steady.prepare(reader.layout, data)
    found["steady cycle"] = _best(steady_cycle)
    found["decide"] = found["decide and compute"] - found["compute"]
    own = found["bytes in"] + found["decide and compute"] + found["bytes out"]
    rows = [[name, f"{found[name]:.1f}"] for name in ("bytes in", "decide", "compute", "bytes out")]
    rows.append(["bytes in, decide and compute in one call", f"{found['steady cycle']:.1f}"])
    if full_us is not None and echo_us is not None:
        rows += [["all of these", f"{own:.1f}"], ["full − direct_echo, medians", f"{full_us - echo_us:.0f}"],
                 ["middleware, waiting and waking", f"{full_us - own:.0f}"]]
    table("Where the time of feedforward goes, 7 joints (µs; stages: least of many, in one process)",
          ["stage", "µs"], rows)
    return found
