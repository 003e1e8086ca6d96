"""The steady cycle gives what the ordinary way gives, to the last bit, whatever happens; and it is what mostly runs."""
from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from rclpy.serialization import deserialize_message, serialize_message
from sensor_msgs.msg import JointState
from support.arm import JOINT, LINK, arm
from support.twins import Twins, alike

import rbd_ros as rbd
from benchmark.walk import episode as walked
from rbd_ros.core.compile import COMPILED
from rbd_ros.runtime.control.feedforward import FeedforwardController, FeedforwardSettings
from rbd_ros.runtime.control.loop_rate import Transit
from rbd_ros.runtime.control.steady_tracking import TrackingCycle
from rbd_ros.runtime.inputs.joint_state_bytes import JointStateReader, Malformed
from rbd_ros.runtime.inputs.references import Point

S = 1_000_000_000
compiled = pytest.mark.skipif(not COMPILED, reason="there is no steady cycle in plain Python")


def fingerprint(controller, transit):
    """All that a controller knows of joint states."""
    state, safety, check = controller.state, controller.safety, controller.state._check
    last, suspect = check.last, check._suspect
    return {
        "report": {key: value for key, value in controller.report().items()
                   if not key.startswith(("latency", "steady"))},
        "numbers": [each._numbers.copy() for each in (state.clock, controller.loop, controller.statistics, transit)],
        "last": None if last is None else tuple(last), "suspect": None if suspect is None else tuple(suspect),
        "state": [state.q, state.v, state.measured_effort, state.stamp_ns, state.time_ns, state.received,
                  state._unstamped, state._unstamped_since, state.refused, list(state.foreign)],
        "safety": [safety.output, safety.mode, safety.modes.weight, safety.time, safety._fresh_at, safety.clipped,
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
        self.__dict__.update(transits=transits, cycle=TrackingCycle(self.second, transits[1]), hits=Counter(), rng=rng)
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
            assert alike([cycle.q, cycle.v], [first.state.q, first.state.v])
        else:
            assert alike(before, fingerprint(second, self.transits[1])), "not its message, and yet it changed something"
            found = second.on_state(*arguments, self.transits[1].age(now_ns, sent_ns, received_ns))
            cycle.prepare(self.reader.layout, data)
        assert alike(tuple(found), tuple(wanted)), f"{found} instead of {wanted}"
        ours, theirs = (fingerprint(each, transit) for each, transit in zip((second, first), reversed(self.transits),
                                                                           strict=True))
        for key in theirs:
            assert alike(ours[key], theirs[key]), f"{key}: {ours[key]} instead of {theirs[key]}"
        return wanted


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


@compiled
@pytest.mark.parametrize("number", range(0, 12, 3))
def test_a_walk_with_and_without_the_steady_cycle_is_the_same(episodes, number):
    """References, trajectories, outliers, gaps, leaps, wrenches, parameters, stops: message by message."""
    for each in range(number, number + 3):
        episode = walked.Episode("feedforward", 3, each)
        episode.run(600)
        assert not episode.violations, "\n".join([*episode.violations, *episode.history])
    hits = sum((each.hits for each in episodes), Counter())
    assert hits[False] > 500 and hits[True] > 500


# ---- what a walk does not have

LAWS = ({"feedforward": "none", "gains.kp": [30.0], "gains.kd": [3.0]}, {"feedforward": "gravity"},
        {"feedforward": "gravity", "robot_compensates": ["gravity"], "gains.kp": [30.0]},
        {"feedforward": "full"}, {"feedforward": "full", "gains.kp": [30.0], "gains.kd": [3.0],
                                  "robot_compensates": ["gravity", "coriolis", "friction"]},
        {"feedforward": "computed_torque", "gains.kp": [100.0], "gains.kd": [20.0], "effort_limits.rate": [1e5]})


class Motion:
    """Twins in a motion: `go` lets that many states follow, each a message with what `fields` makes of q and v."""

    def __init__(self, values, model=None):
        self.model = model or rbd.sample("iiwa")
        values = {"ramp_in": 0.0, "state_rate": 500.0} | values
        self.both = Both(FeedforwardSettings.from_values(values, self.model), np.random.default_rng(1))
        self.now, self.names = 100.0, list(self.model.joint_names)
        self.both.activate(self.now)
        self.fields = lambda q, v: (self.names, q, v, ())

    def go(self, count, step=2e-3, stamp=None):
        for _ in range(count):
            self.now += step
            phase = self.now + np.arange(self.model.nv)
            names, q, v, effort = self.fields(0.3 * np.sin(phase), 0.3 * np.cos(phase))
            self.both.on_state(self.now, round(self.now * 1e9) if stamp is None else stamp, names, q, v, effort)
        return self

    def hits(self, count=20, **how):
        """Of so many messages, how many the steady cycle answered."""
        before = self.both.hits[True]
        self.go(count, **how)
        return self.both.hits[True] - before

    def stream(self, offset=0.0):
        position, *rates = np.full((3, self.model.nv), 0.1)
        assert self.both.on_reference(self.now, 0, self.names, 0.0 * position + offset, *rates)

    def trajectory(self, *points, rest=True):
        zero = np.zeros(self.model.nv)
        derivatives = (zero, zero) if rest else ()
        assert self.both.on_trajectory(self.now, 0, self.names,
                                       [Point(t, q + zero, *derivatives) for t, q in points])


@compiled
@pytest.mark.parametrize("law", LAWS, ids=lambda law: law["feedforward"] + "".join(law.get("robot_compensates", ())))
def test_every_law_is_answered_by_the_steady_cycle(law):
    motion = Motion(law)
    motion.go(20).stream()
    motion.go(3)
    assert motion.hits() == 20
    motion.trajectory((0.0, 0.0), (0.05, 0.02), (0.1, 0.01))
    assert motion.hits(25) >= 22       # all pieces, but for the change of laws
    motion.go(50)                      # and beyond the end
    assert motion.hits() == 20


@compiled
def test_dense_trajectories_and_streams_at_the_rate_of_the_states_are_steady():
    motion = Motion({})
    motion.go(20).stream()
    motion.go(5).trajectory(*((0.005 * k, 1e-4 * k) for k in range(200)), rest=False)
    motion.go(5)
    assert motion.hits(200) > 190
    motion.stream()
    motion.go(5)
    before = motion.both.hits[True]
    for k in range(50):
        motion.stream(1e-4 * k)
        motion.go(1)
    assert motion.both.hits[True] - before == 50
    motion.go(150)                     # the stream has ended, the robot stands
    assert motion.hits() == 20


@compiled
def test_drivers_have_their_own_order_further_joints_and_efforts():
    motion = Motion({})
    order = np.array([3, 0, 6, 2, 5, 1, 4])
    motion.fields = lambda q, v: ([*np.array(motion.names)[order], "gripper"], [*q[order], 0.01], [*v[order], 0.0],
                                  [*np.arange(7.0), np.nan])
    motion.go(20).stream()
    motion.go(3)
    assert motion.hits() == 20
    np.testing.assert_array_equal(motion.both.state.first.measured_effort, np.argsort(order))


@compiled
@pytest.mark.parametrize("event", ["late", "leap", "backwards", "jump", "fast", "nan", "wrench", "stop", "settings",
                                   "deactivate", "trajectory to come", "saturated", "other names", "no velocity",
                                   "few velocities", "few efforts"])
def test_what_is_unusual_goes_the_ordinary_way(event):
    """And the steady cycle goes on afterwards, where anything does."""
    motion = Motion({"reference_timeout": 0.0, "gains.kp": [10.0]})
    both, usual = motion.both, motion.fields
    motion.go(20).stream()
    motion.go(3)
    assert motion.hits() == 20
    unusual = {"jump": lambda q, v: (motion.names, q + 0.5, v, ()),
               "fast": lambda q, v: (motion.names, q, v + 50.0, ()),
               "nan": lambda q, v: (motion.names, q * np.nan, v, ()), "saturated": usual,
               "other names": lambda q, v: ([*motion.names[1:], "other"], q, v, ()),
               "no velocity": lambda q, v: (motion.names, q, (), ()),
               "few velocities": lambda q, v: (motion.names, q, v[:5], ()),
               "few efforts": lambda q, v: (motion.names, q, v, v[:3])}
    motion.fields = unusual.get(event, usual)
    if event == "wrench":
        both.on_wrenches(motion.now, [(motion.model.body_names[-1], np.ones(6))])
    elif event == "stop":
        both.safety.stop()
    elif event == "settings":
        both.apply(FeedforwardSettings.from_values({"gains.kp": [20.0]}, motion.model))
    elif event == "deactivate":
        both.deactivate()
    elif event == "trajectory to come":
        both.on_trajectory(motion.now, round((motion.now + 0.01) * 1e9), motion.names, [Point(0.1, np.zeros(7))])
    elif event == "saturated":
        motion.stream(40.0)
    wait = {"late": {"step": 0.03}, "leap": {"stamp": round((motion.now + 0.5) * 1e9)},
            "backwards": {"stamp": round((motion.now - 0.01) * 1e9)}}
    assert motion.hits(1, **wait.get(event, {})) == 0
    if event.startswith("few"):
        assert motion.hits(10) == 0
    motion.fields = usual
    motion.go(700)
    if event in ("stop", "deactivate"):
        assert motion.hits() == 0
    else:
        motion.stream()
        motion.go(300)
        assert motion.hits() == 20


@compiled
def test_angles_that_wrap_are_the_same():
    """Continuous joints that are reported between −π and π."""
    model = arm(extra=LINK.format(name="hand", mass=0.5) + JOINT.format(
        name="wrist", kind="continuous", parent="lower", child="hand", x=0.3, effort=10, extra=""))
    motion = Motion({"gains.kp": [1.0], "reference_timeout": 0.0}, model)
    motion.fields = lambda q, v: (motion.names, [0.1, 0.2, (3.0 * motion.now + np.pi) % (2.0 * np.pi) - np.pi],
                                  [0.0, 0.0, 3.0], ())
    motion.go(20)
    motion.both.on_reference(motion.now, 0, motion.names, [0.1, 0.2, 20.0])
    motion.go(3)
    assert motion.hits(2000) == 2000


@compiled
def test_hostile_bytes_are_the_same_message_by_message():
    """Bits turned, bytes cut: what is no such message changes nothing, by either way."""
    motion = Motion({"reference_timeout": 0.0})
    motion.go(20).stream()
    motion.go(5)
    both, rng = motion.both, np.random.default_rng(3)
    taken = Counter()
    original = both.on_bytes

    def hostile(data, *times):
        if rng.random() < 0.5:
            broken = bytearray(data)
            broken[int(rng.integers(len(data)))] ^= 1 << int(rng.integers(8))
            data = bytes(broken[:int(rng.integers(len(data)))] if rng.random() < 0.1 else broken)
        try:
            return original(data, *times)
        except Malformed:
            assert both.cycle.answer(data, *times) is None
            taken["malformed"] += 1

    both.__dict__["on_bytes"] = hostile
    for _ in range(100):
        motion.go(20)
        if both.first.safety.mode != "running":
            both.on_reference(motion.now, 0, motion.names, np.zeros(7))
    assert taken["malformed"] > 20 and both.hits[True] > 500
