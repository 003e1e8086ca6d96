"""Elastic joints: states as bytes, accepted in one call, give the answers of the ordinary way to the last bit."""
from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from rclpy.serialization import deserialize_message, serialize_message
from sensor_msgs.msg import JointState
from support.twins import Twins, alike

import rbd_ros as rbd
from benchmark.walk import episode as walked
from benchmark.walk.arms import arm
from rbd_ros.core.compiled.kernel import COMPILED
from rbd_ros.runtime.control.elastic_controller import ElasticController
from rbd_ros.runtime.control.flatness import FlatnessController
from rbd_ros.runtime.inputs.joint_state_bytes import JointStateReader
from rbd_ros.runtime.inputs.joint_states import StateInput
from rbd_ros.runtime.inputs.rejections import Rejections

pytestmark = pytest.mark.skipif(not COMPILED, reason="plain Python has the ordinary way alone")
FIELDS = ("q", "v", "stamp_ns", "time_ns", "received", "refused", "_unstamped", "_unstamped_since", "clock_restarts",
          "position_restarts")


class Both(Twins):
    """The second one has states as bytes first."""

    def __init__(self, settings):
        kind = ElasticController if hasattr(settings, "actuation") else FlatnessController
        super().__init__(kind(settings.model, settings), kind(settings.model, settings))
        self.__dict__.update(hits=Counter(), readers={key: JointStateReader(
            lambda data: deserialize_message(data, JointState)) for key in ("joints", "motors")})

    def _read(self, key, stamp_ns, names, position, velocity):
        message = JointState(name=list(names), position=list(position), velocity=list(velocity))
        message.header.stamp.sec, message.header.stamp.nanosec = divmod(stamp_ns, 10**9)
        data = bytes(serialize_message(message))
        return data, self.readers[key].read(data)

    def on_motor_state(self, now, stamp_ns, names, position, velocity):
        data, fields = self._read("motors", stamp_ns, names, position, velocity)
        arguments = now, fields.stamp_ns, fields.names, fields.position, fields.velocity
        self.first.on_motor_state(*arguments)
        motors = self.second.motor_state
        if not motors.accept_bytes(now, data):
            self.second.on_motor_state(*arguments)
            motors.prepare(self.readers["motors"].layout, data)
        for name in ("position", "velocity", "stamp_ns", "received"):
            assert alike(getattr(motors, name), getattr(self.first.motor_state, name))

    def on_state(self, now, stamp_ns, names, position, velocity=(), effort=(), age=0.0):
        data, fields = self._read("joints", stamp_ns, names, position, velocity)
        arguments = now, fields.stamp_ns, *fields[2:], age
        wanted, second = self.first.on_state(*arguments), self.second
        found = second.on_bytes(now, data, lambda: age)
        self.hits[found is not None] += 1
        if found is None:
            found = second.on_state(*arguments)
            second.state.prepare(self.readers["joints"].layout, data)
        assert alike(tuple(found), tuple(wanted)), f"{found} instead of {wanted}"
        for name in FIELDS:
            assert alike(getattr(second.state, name), getattr(self.first.state, name)), name
        for name in ("_gap", "_behind"):    # what repeated positions allow the next ones
            assert alike(getattr(second.state._check, name), getattr(self.first.state._check, name)), name
        assert alike(second.report(), self.first.report())
        assert alike(second.state.clock.numbers, self.first.state.clock.numbers)
        return found


@pytest.mark.parametrize("name", ["flatness", "elastic"])
@pytest.mark.parametrize("number", range(2))
def test_a_walk_with_states_as_bytes_is_the_same(monkeypatch, name, number):
    made = []

    def twins(settings):
        made.append(Both(settings))
        return made[-1]

    monkeypatch.setattr(walked, "arm", lambda name: arm(name).__class__(**{**vars(arm(name)), "controller": twins}))
    episode = walked.Episode(name, 11, number)
    episode.run(400)
    assert not episode.violations, "\n".join([*episode.violations, *episode.history])
    hits = sum((each.hits for each in made), Counter())
    assert hits[True] > 500 and hits[False] >= 5
    assert np.isfinite(made[0].first.state.q).all()


def test_all_states_in_a_row_are_accepted_in_one_call():
    """After the first ones, which show their layout; none has to be asked twice."""
    model = rbd.sample("iiwa")
    state, reader = (StateInput(model, Rejections(), 0.05, 0.0, 2.0),
                     JointStateReader(lambda data: deserialize_message(data, JointState)))
    hits = []
    for k in range(20):
        now = 10.0 + 2e-3 * k
        message = JointState(name=list(model.joint_names), position=[0.1 * now] * 7, velocity=[0.1] * 7)
        message.header.stamp.sec, message.header.stamp.nanosec = divmod(round(now * 1e9), 10**9)
        data = bytes(serialize_message(message))
        hits.append(state.accept_bytes(now, data))
        if not hits[-1]:
            fields = reader.read(data)
            assert state.accept(now, fields.stamp_ns, *fields[2:])
            state.prepare(reader.layout, data)
    assert hits == [False] + [True] * 19
