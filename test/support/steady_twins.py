"""Two controllers of the same settings, one of them with a steady cycle: they have to be alike after every message."""
from __future__ import annotations

from collections import Counter

import numpy as np
from rclpy.serialization import deserialize_message, serialize_message
from sensor_msgs.msg import JointState

from rbd_ros.runtime.control.cartesian import CartesianController
from rbd_ros.runtime.control.cartesian_settings import CartesianSettings
from rbd_ros.runtime.control.elastic_controller import ElasticController
from rbd_ros.runtime.control.elastic_settings import ElasticSettings
from rbd_ros.runtime.control.feedforward import FeedforwardController, FeedforwardSettings
from rbd_ros.runtime.control.loop_rate import Transit
from rbd_ros.runtime.steady.steady_cartesian import CartesianCycle
from rbd_ros.runtime.steady.steady_flatness import FlatnessCycle
from rbd_ros.runtime.steady.steady_tracking import TrackingCycle
from rbd_ros.runtime.inputs.joint_state_bytes import JointStateReader
from rbd_ros.runtime.inputs.references import Point

from .twins import Twins, alike

S = 1_000_000_000
KINDS = ((ElasticSettings, True, ElasticController, FlatnessCycle),
         (CartesianSettings, False, CartesianController, CartesianCycle),
         (FeedforwardSettings, False, FeedforwardController, TrackingCycle))    # settings, whether elastic, …


def fingerprint(controller, transit):
    """All that a controller knows of joint states."""
    state, safety, check = controller.state, controller.safety, controller.state._check
    last, suspect = check.last, check._suspect
    found = {
        "report": {key: value for key, value in controller.report().items()
                   if not key.startswith(("latency", "steady"))},
        "numbers": [each._numbers.copy() for each in (state.clock, controller.loop, controller.statistics, transit)],
        "last": None if last is None else tuple(last), "suspect": None if suspect is None else tuple(suspect),
        "gap": [check._gap, check._behind],
        "state": [state.q, state.v, state.measured_effort, state.stamp_ns, state.time_ns, state.received,
                  state._unstamped, state._unstamped_since, state.refused, list(state.foreign)],
        "safety": [safety.mode, safety.modes.weight, safety.time, safety._fresh_at, safety.clipped, safety._faded,
                   safety._stopping, safety._down, safety.laws.share, safety.settled],
        "channels": [[each.output, each.held, each.saturated] for each in safety.channels],
        "controller": [controller._problem, controller.loop.time_ns, controller._restarts, controller._clocks]}
    if isinstance(controller, CartesianController):
        led, law = controller.filter, safety.laws.newest.law
        found["law"] = [law.known, law.walls, law.share, controller.tank.level, controller.gained, controller._aim,
                        controller.posture, controller._held, controller._held_ns, controller._following]
        if led is not None:
            found["led"] = [led.state, led.goal, led.target, led.time, led.twist, led._pace.rate, led._pace.slope]
        return found
    found["reference"] = [controller.reference.stale, controller.reference._resting]
    if isinstance(controller, ElasticController):
        motors, ramp = controller.motor_state, controller._ramp
        found["motors"] = [motors.motion.copy(), motors.stamp_ns, motors.received, ramp.last, ramp._at, ramp._began,
                           ramp._fade is None]
        found["cycles"] = [controller._heard, controller._cycle, controller._timed, controller._last_stamp,
                           controller._elapsed, controller._jumps, controller._stiffness.value]
    return found


class SteadyTwins(Twins):
    """Joint states reach the first one by the ordinary way alone, the second one as a node has them. hits: of the
    steady cycle.
    """

    def __init__(self, settings, rng):
        elastic, kind, cycle = next(each for of, *each in KINDS if isinstance(settings, of))
        super().__init__(kind(settings.model, settings), kind(settings.model, settings))
        transits = Transit(), Transit()
        self.__dict__.update(transits=transits, hits=Counter(), rng=rng, elastic=elastic,
                             cycle=cycle(self.second, transits[1]))
        self.__dict__.update({name: JointStateReader(lambda data: deserialize_message(data, JointState))
                              for name in ("reader", "motors")})

    def on_motor_state(self, now, stamp_ns, names, position, velocity):
        data = _serialized(stamp_ns, names, position, velocity, ())
        fields = self.motors.read(data)
        arguments = now, fields.stamp_ns, *fields[2:5]
        self.first.on_motor_state(*arguments)
        quick = self.second.motor_state
        if not quick.accept_bytes(now, data):
            self.second.on_motor_state(*arguments)
            quick.prepare(self.motors.layout, data)

    def on_state(self, now, stamp_ns, names, position, velocity=(), effort=(), age=0.0):
        now_ns = round(now * 1e9) + 10**18
        received_ns = now_ns - round(age * 1e9)
        sent_ns = received_ns - int(self.rng.integers(0, 200_000)) if self.rng.random() < 0.9 else 0
        return self.on_bytes(_serialized(stamp_ns, names, position, velocity, effort), now, now_ns, sent_ns,
                             received_ns)

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
            assert alike([cycle.q, cycle.v], [first.state.q, first.state.v])
        else:
            assert alike(before, fingerprint(second, self.transits[1])), "not its message, and yet it changed something"
            found = self._otherwise(data, arguments, (now_ns, sent_ns, received_ns))
            cycle.prepare(self.reader.layout, data)
        assert alike(tuple(found), tuple(wanted)), f"{found} instead of {wanted}"
        ours, theirs = (fingerprint(each, transit) for each, transit in zip((second, first), reversed(self.transits),
                                                                           strict=True))
        for key in theirs:
            assert alike(ours[key], theirs[key]), f"{key}: {ours[key]} instead of {theirs[key]}"
        return wanted

    def _otherwise(self, data, arguments, times):
        """What the steady cycle does not answer: of elastic joints, accepted in one call if that can."""
        second, transit = self.second, self.transits[1]
        found = second.on_bytes(arguments[0], data, lambda: transit.age(*times)) if self.elastic else None
        if found is None:
            found = second.on_state(*arguments, transit.age(*times))
            if self.elastic:
                second.state.prepare(self.reader.layout, data)
        return found


def _serialized(stamp_ns, names, *numbers):
    message = JointState(name=list(names), **{field: np.asarray(each, np.float64).tolist() for field, each in zip(
        ("position", "velocity", "effort"), numbers, strict=True)})
    message.header.stamp.sec, message.header.stamp.nanosec = divmod(stamp_ns, S)
    return bytes(serialize_message(message))


class Motion:
    """Twins in a motion: `go` lets that many states follow, each a message with what `fields` makes of q and v; before
    it, where joints are elastic, one of the motors, with what `motors` makes of these.
    """

    def __init__(self, settings):
        self.model = settings.model
        self.both = SteadyTwins(settings, np.random.default_rng(1))
        self.now, self.names = 100.0, list(self.model.joint_names)
        self.pace = 1.0    # of the stamps
        self.both.activate(self.now)
        self.fields = lambda q, v: (self.names, q, v, ())
        self.motors = lambda q, v: (self.names, q + 1e-3, v)

    def go(self, count, step=2e-3, stamp=None):
        for _ in range(count):
            self.now += step
            phase = self.now + np.arange(self.model.nv)
            q, v = 0.3 * np.sin(phase), 0.3 * np.cos(phase)
            time_ns = round((100.0 + self.pace * (self.now - 100.0)) * 1e9) if stamp is None else stamp
            if self.both.elastic and (motors := self.motors(q, v)):
                self.both.on_motor_state(self.now, time_ns, *motors)
            names, *numbers = self.fields(q, v)
            self.both.on_state(self.now, time_ns, names, *numbers)
        return self

    def hits(self, count=20, **how):
        """Of so many messages, how many the steady cycle answered."""
        before = self.both.hits[True]
        self.go(count, **how)
        return self.both.hits[True] - before

    def stream(self, offset=0.0, rows=3):
        position, *rates = np.full((rows, self.model.nv), 0.1)
        assert self.both.on_reference(self.now, 0, self.names, 0.0 * position + offset, *rates)

    def trajectory(self, *points, rest=True):
        zero = np.zeros(self.model.nv)
        derivatives = (zero, zero) if rest else ()
        assert self.both.on_trajectory(self.now, 0, self.names,
                                       [Point(t, q + zero, *derivatives) for t, q in points])
