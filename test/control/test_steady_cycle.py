"""The steady cycle gives what the ordinary way gives, to the last bit, whatever happens; and it is what mostly runs."""
from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from rclpy.serialization import deserialize_message, serialize_message
from sensor_msgs.msg import JointState
from support.twins import Twins, alike

from benchmark.walk import episode as walked
from rbd_ros.core.compile import COMPILED
from rbd_ros.runtime.control.feedforward import FeedforwardController
from rbd_ros.runtime.control.loop_rate import Transit
from rbd_ros.runtime.control.steady_cycle import SteadyCycle
from rbd_ros.runtime.inputs.joint_state_bytes import JointStateReader

S = 1_000_000_000


def fingerprint(controller, transit):
    """All that a controller knows of joint states."""
    state, safety, check = controller.state, controller.safety, controller.state._check
    last, suspect = check.last, check._suspect
    return {
        "report": {key: value for key, value in controller.report().items() if not key.startswith("latency")},
        "numbers": [each._numbers.copy() for each in (state.clock, controller.loop, controller.statistics, transit)],
        "last": None if last is None else tuple(last), "suspect": None if suspect is None else tuple(suspect),
        "state": [state.q, state.v, state.measured_effort, state.stamp_ns, state.time_ns, state.received,
                  state._unstamped, state._unstamped_since, state.refused, list(state.foreign)],
        "safety": [safety.output, safety.mode, safety.modes.weight, safety._time, safety._fresh_at, safety.clipped,
                   safety._faded, safety._stopping, safety._down, safety.channels[0].rated,
                   safety.channels[0].saturated, safety.laws.share, safety.settled],
        "controller": [controller._problem, controller.loop.time_ns, controller._restarts, controller._clocks],
        "reference": [controller.reference.stale, controller.reference._resting]}


class Both(Twins):
    """Two controllers of the same settings: joint states reach the first by the ordinary way alone."""

    def __init__(self, settings, rng):
        super().__init__(FeedforwardController(settings.model, settings),
                         FeedforwardController(settings.model, settings))
        transits = Transit(), Transit()
        self.__dict__.update(transits=transits, cycle=SteadyCycle(self.second, transits[1]), hits=Counter(), rng=rng)
        self.__dict__["reader"] = JointStateReader(lambda data: deserialize_message(data, JointState))

    def on_state(self, now, stamp_ns, names, position, velocity=(), effort=(), age=0.0):
        now_ns = round(now * 1e9) + 10**18
        received_ns = now_ns - round(age * 1e9)
        sent_ns = received_ns - int(self.rng.integers(0, 200_000)) if self.rng.random() < 0.9 else 0
        message = JointState(name=list(names), position=np.asarray(position).tolist(),
                             velocity=np.asarray(velocity).tolist(), effort=np.asarray(effort).tolist())
        message.header.stamp.sec, message.header.stamp.nanosec = divmod(stamp_ns, S)
        return self.on_bytes(bytes(serialize_message(message)), now, now_ns, sent_ns, received_ns)

    def on_bytes(self, data, now, now_ns, sent_ns, received_ns):
        first, second, cycle = self.first, self.second, self.cycle
        fields = self.reader.read(data)
        arguments = now, fields.stamp_ns, *fields[2:]
        wanted = first.on_state(*arguments, self.transits[0].age(now_ns, sent_ns, received_ns))
        before = fingerprint(second, self.transits[1])
        found = cycle.answer(data, now, now_ns, sent_ns, received_ns)
        self.hits[found is not None] += 1
        if found is not None:
            cycle.keep()
            assert cycle.stamp == (fields.sec, fields.nanosec)
        else:
            assert alike(before, fingerprint(second, self.transits[1])), "not its message, and yet it changed something"
            found = second.on_state(*arguments, self.transits[1].age(now_ns, sent_ns, received_ns))
            cycle.prepare(self.reader.layout(data), data)
        assert alike(tuple(found), tuple(wanted)), f"{found} instead of {wanted}"
        ours, theirs = (fingerprint(each, transit) for each, transit in zip((second, first), reversed(self.transits),
                                                                           strict=True))
        for key in theirs:
            assert alike(ours[key], theirs[key]), f"{key}: {ours[key]} instead of {theirs[key]}"
        return found


@pytest.fixture
def episodes(monkeypatch):
    """Episodes of a walk with twins."""
    made = []

    def arm(name):
        rng = np.random.default_rng(7)

        def both(settings):
            made.append(Both(settings, rng))
            return made[-1]

        return replace(original(name), controller=both)

    original = walked.arm
    monkeypatch.setattr(walked, "arm", arm)
    return made


@pytest.mark.parametrize("number", range(0, 12, 3))
def test_a_walk_with_and_without_the_steady_cycle_is_the_same(episodes, number):
    """References, trajectories, outliers, gaps, leaps, wrenches, parameters, stops: message by message."""
    for each in range(number, number + 3):
        episode = walked.Episode("feedforward", 3, each)
        episode.run(600)
        assert not episode.violations, "\n".join([*episode.violations, *episode.history])
    hits = sum((each.hits for each in episodes), Counter())
    assert hits[False] > 500 and hits[True] > (500 if COMPILED else 0)
