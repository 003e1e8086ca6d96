"""The steady cycle gives what the ordinary way gives, to the last bit, whatever happens; and it is what mostly runs."""
from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from support.arm import JOINT, LINK, arm
from support.steady_twins import Motion, SteadyTwins

import rbd_ros as rbd
from benchmark.walk import episode as walked
from rbd_ros.core.compiled.kernel import COMPILED
from rbd_ros.runtime.control.feedforward import FeedforwardSettings
from rbd_ros.runtime.inputs.joint_state_bytes import Malformed
from rbd_ros.runtime.inputs.references import Point

compiled = pytest.mark.skipif(not COMPILED, reason="there is no steady cycle in plain Python")


@pytest.fixture
def episodes(monkeypatch):
    """The twins of the episodes of a walk."""
    made = []

    def arm(name):
        rng = np.random.default_rng(7)

        def both(settings):
            made.append(SteadyTwins(settings, rng))
            return made[-1]

        return replace(original(name), controller=both)

    original = walked.arm
    monkeypatch.setattr(walked, "arm", arm)
    return made


@compiled
@pytest.mark.parametrize(("name", "numbers"), [*(("feedforward", range(k, k + 3)) for k in range(0, 12, 3)),
                                               ("series", range(6)), ("series", range(6, 12))])
def test_a_walk_with_and_without_the_steady_cycle_is_the_same(episodes, name, numbers):
    """References, trajectories, outliers, gaps, leaps, wrenches, parameters, stops: message by message."""
    for each in numbers:
        episode = walked.Episode(name, 3, each)
        episode.run(600)
        assert not episode.violations, "\n".join([*episode.violations, *episode.history])
    hits = sum((each.hits for each in episodes), Counter())
    assert hits[False] > 500 and hits[True] > 500


# ---- what a walk does not have

LAWS = ({"feedforward": "none", "gains.kp": [30.0], "gains.kd": [3.0]}, {"feedforward": "gravity"},
        {"feedforward": "gravity", "robot_compensates": ["gravity"], "gains.kp": [30.0]},
        {"feedforward": "full"}, {"feedforward": "full", "reference_lead": 0.015, "gains.kp": [30.0]},
        {"feedforward": "full", "gains.kp": [30.0], "gains.kd": [3.0],
         "robot_compensates": ["gravity", "coriolis", "friction"]},
        {"feedforward": "computed_torque", "gains.kp": [100.0], "gains.kd": [20.0], "effort_limits.rate": [1e5]})


def moving(values, model=None):
    model = model or rbd.sample("iiwa")
    return Motion(FeedforwardSettings.from_values(values | {"ramp_in": 0.0, "state_rate": 500.0}, model))


@compiled
@pytest.mark.parametrize("law", LAWS, ids=lambda law: law["feedforward"] + "".join(law.get("robot_compensates", ())))
def test_every_law_is_answered_by_the_steady_cycle(law):
    motion = moving(law)
    motion.go(20).stream()
    motion.go(3)
    assert motion.hits() == 20
    motion.trajectory((0.0, 0.0), (0.05, 0.02), (0.1, 0.01))
    assert motion.hits(25) >= 22       # all pieces, but for the change of laws
    motion.go(50)                      # and beyond the end
    assert motion.hits() == 20


@compiled
def test_dense_trajectories_and_streams_at_the_rate_of_the_states_are_steady():
    motion = moving({})
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
    motion = moving({})
    order = np.array([3, 0, 6, 2, 5, 1, 4])
    motion.fields = lambda q, v: ([*np.array(motion.names)[order], "gripper"], [*q[order], 0.01], [*v[order], 0.0],
                                  [*np.arange(7.0), np.nan])
    motion.go(20).stream()
    motion.go(3)
    assert motion.hits() == 20
    np.testing.assert_array_equal(motion.both.state.first.measured_effort, np.argsort(order))


@compiled
@pytest.mark.parametrize("event", ["late", "leap", "backwards", "jump", "fast", "nan", "wrench", "stop", "settings",
                                   "deactivate", "trajectory to come", "a first point nearby", "saturated",
                                   "other names", "no velocity", "few velocities", "few efforts"])
def test_what_is_unusual_goes_the_ordinary_way(event):
    """And the steady cycle goes on afterwards, where anything does."""
    motion = moving({"reference_timeout": 0.0, "gains.kp": [10.0]})
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
    elif event == "a first point nearby":    # farther than the velocity limits, but hardly: fades in
        both.on_trajectory(motion.now, 0, motion.names, [Point(1e-4, np.full(7, 0.02)), Point(1.0, np.zeros(7))])
        assert both.first.safety.laws.fading
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
def test_a_driver_that_repeats_itself_in_motion_is_refused_as_by_the_ordinary_way():
    """Steady until by its velocities a joint would have moved by 0.02 rad, at 0.3 rad/s."""
    motion = moving({"reference_timeout": 0.0, "gains.kp": [10.0]})
    motion.go(20).stream()
    motion.go(3)
    state, usual = motion.both.first.state, motion.fields
    q, v = state.q.copy(), state.v.copy()
    motion.fields = lambda *moved: (motion.names, q, v, ())
    count = int(0.02 / (2e-3 * np.abs(v).max())) + 1
    assert motion.hits(count) == count and state.stuck
    rejections = motion.both.first.rejections
    assert motion.hits(30) == 0 and rejections.counts["repeated"] == 30
    motion.both.watchdog(motion.now)
    assert motion.both.first.safety.mode == "stale"
    motion.fields = usual
    motion.go(700).stream()
    motion.go(300)
    assert motion.hits() == 20 and rejections.counts["repeated"] == 30


@compiled
def test_angles_that_wrap_are_the_same():
    """Continuous joints that are reported between −π and π."""
    model = arm(extra=LINK.format(name="hand", mass=0.5) + JOINT.format(
        name="wrist", kind="continuous", parent="lower", child="hand", x=0.3, effort=10, extra=""))
    motion = moving({"gains.kp": [1.0], "reference_timeout": 0.0}, model)
    motion.fields = lambda q, v: (motion.names, [0.1, 0.2, (3.0 * motion.now + np.pi) % (2.0 * np.pi) - np.pi],
                                  [0.0, 0.0, 3.0], ())
    motion.go(20)
    motion.both.on_reference(motion.now, 0, motion.names, [0.1, 0.2, 20.0])
    motion.go(3)
    assert motion.hits(2000) == 2000


@compiled
def test_hostile_bytes_are_the_same_message_by_message():
    """Bits turned, bytes cut: what is no such message changes nothing, by either way."""
    motion = moving({"reference_timeout": 0.0})
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
