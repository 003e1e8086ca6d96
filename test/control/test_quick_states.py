"""Motor states as bytes are accepted in one call with the outcome of the ordinary way, whatever comes."""
from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from actuation.drives import iiwa, mixed, series
from rclpy.serialization import deserialize_message, serialize_message
from sensor_msgs.msg import JointState
from support.twins import alike

from rbd_ros.core.compiled.kernel import COMPILED
from rbd_ros.runtime.inputs.joint_state_bytes import JointStateReader
from rbd_ros.runtime.inputs.motor_states import MotorInput
from rbd_ros.runtime.inputs.rejections import Rejections

pytestmark = pytest.mark.skipif(not COMPILED, reason="plain Python has the ordinary way alone")


def fingerprint(motors, rejections):
    check = motors._check
    return [motors.position, motors.velocity, motors.stamp_ns, motors.received, dict(rejections.counts),
            check.clock.numbers, None if check.last is None else tuple(check.last),
            None if check._suspect is None else tuple(check._suspect)]


def field(rng, names, q, v):
    """The usual, or something else."""
    kind = rng.choice(["usual"] * 30 + ["jump", "fast", "nan", "short", "bare", "order", "missing", "twice"])
    order = rng.permutation(len(names))
    return {"usual": (names, q, v), "jump": (names, q + 1.0, v), "fast": (names, q, v + 100.0),
            "nan": (names, np.where(np.arange(len(q)) == 2, np.nan, q), v), "short": (names, q, v[:4]),
            "bare": (names, q, ()), "order": ([names[i] for i in order], q[order], v[order]),
            "missing": (names[2:], q[2:], v[2:]), "twice": ([names[0], *names[:-1]], q, v)}[kind]


@pytest.mark.parametrize("actuation", [series(), mixed()], ids=["series", "mixed"])
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.thorough) for seed in range(1, 4))])
def test_random_states_have_the_same_outcome_message_by_message(actuation, seed):
    rng, names = np.random.default_rng(seed), list(actuation.motor_names)
    rejections = Rejections(), Rejections()
    slow, quick = (MotorInput(actuation, each, 0.05, 2.0) for each in rejections)
    reader, now, shift, hits = JointStateReader(lambda data: deserialize_message(data, JointState)), 10.0, 0, Counter()
    for _ in range(1500):
        now += float(rng.choice([2e-3] * 20 + [1e-3, 0.02, 0.2]))
        shift += int(rng.choice([0] * 200 + [10**9, -10**9, 4_000_000]))
        if rng.random() < 0.003:
            factor = float(rng.choice([1.0, 2.0, np.inf]))
            slow.allow(factor), quick.allow(factor)
        if rng.random() < 0.003:
            slow.clear(), quick.clear()
        phase = now + np.arange(len(names))
        name, q, v = field(rng, names, 0.2 * np.sin(phase), 0.2 * np.cos(phase))
        message = JointState(name=name, position=list(q), velocity=list(v))
        message.header.stamp.sec, message.header.stamp.nanosec = divmod(
            round(now * 1e9) + shift if rng.random() > 0.01 else 0, 10**9)
        data = bytes(serialize_message(message))
        fields = reader.read(data)
        slow.accept(now, fields.stamp_ns, fields.names, fields.position, fields.velocity)
        before = fingerprint(quick, rejections[1])
        hit = quick.accept_bytes(now, data)
        hits[hit] += 1
        if not hit:
            assert alike(before, fingerprint(quick, rejections[1]))
            quick.accept(now, fields.stamp_ns, fields.names, fields.position, fields.velocity)
            quick.prepare(reader.layout, data)
        assert alike(fingerprint(slow, rejections[0]), fingerprint(quick, rejections[1]))
    assert hits[True] > 600 and hits[False] > 100
    assert iiwa().nv == len(actuation.joint_names)
