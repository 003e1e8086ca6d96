"""The steady cycle of elastic joints gives what the ordinary way gives, to the last bit; and it is what mostly runs.

Walks at random: `test_steady_cycle`. Every comparison is made by `SteadyTwins`, after every message.
"""
from __future__ import annotations

import numpy as np
import pytest
from actuation.drives import MIXED, iiwa
from support.arm import JOINT, LINK, arm
from support.steady_twins import Motion

import rbd_ros as rbd
from rbd_ros.core.compiled.kernel import COMPILED
from rbd_ros.runtime.control.elastic_settings import ElasticSettings
from rbd_ros.runtime.inputs.references import Point

pytestmark = pytest.mark.skipif(not COMPILED, reason="there is no steady cycle in plain Python")
KINDS = [MIXED["joint_1"], MIXED["joint_2"], MIXED["joint_3"]]    # rigid, linear, hardening with all kinds of friction
PD = {"motor_gains.kp": [20.0], "motor_gains.kd": [2.0]}
USUAL = {"reference_timeout": 0.0, **PD}


def settings(values, model=None, **drives):
    model = model or iiwa().with_(damping=0.5, friction=0.3)
    given = {name: KINDS[i % 3] for i, name in enumerate(model.joint_names)} | drives
    return ElasticSettings.from_drives({"ramp_in": 0.0, "state_rate": 500.0} | values, model,
                                       rbd.load_actuation(given, model).drives)


def moving(values, model=None, **drives):
    return Motion(settings(values, model, **drives))


@pytest.mark.parametrize("streams", [True, False], ids=["steady", "accepted in one call"])
def test_a_driver_that_repeats_itself_in_motion_is_refused_as_by_the_ordinary_way(streams):
    motion = moving(PD | {"reference_timeout": 0.0})
    motion.go(20)
    if streams:
        motion.stream(rows=5)
    motion.go(23)
    state, usual = motion.both.first.state, motion.fields
    q, v = state.q.copy(), state.v.copy()
    motion.fields = lambda *moved: (motion.names, q, v, ())
    count = int(0.02 / (2e-3 * np.abs(v).max())) + 1
    assert motion.hits(count) == (count if streams else 0) and state.stuck
    rejections = motion.both.first.rejections
    assert motion.hits(10) == 0 and rejections.counts["repeated"] == 10
    motion.fields = usual
    motion.go(50)
    assert rejections.counts["repeated"] == 10 and not state.stuck


@pytest.mark.parametrize("values", [{"mode": "feed_forward"}, PD, PD | {"friction.coulomb": False},
                                    PD | {"effort_limits.rate": [1e6], "motor_effort_limits.rate": [1e6]}])
def test_every_law_is_answered_by_the_steady_cycle(values):
    motion = moving(values | {"reference_timeout": 0.0})
    motion.go(20).stream(rows=5)
    motion.go(3)
    assert motion.hits() == 20
    motion.trajectory((0.2, 0.02), (0.4, 0.01))
    motion.go(3)
    assert motion.hits(220) >= 218    # all pieces, and beyond the end
    motion.stream(0.01, rows=5)
    assert motion.hits(20) >= 18


def test_streams_at_the_rate_of_the_states_are_steady_and_stand_when_they_end():
    motion = moving(PD)
    motion.go(20).stream(rows=5)
    motion.go(5)
    before = motion.both.hits[True]
    for k in range(50):
        motion.stream(1e-4 * k, rows=5)
        motion.go(1)
    assert motion.both.hits[True] - before == 50
    motion.go(150)    # the stream has ended, the robot stands
    assert motion.hits() == 20


def test_the_motors_are_led_in_by_the_ordinary_way():
    """Their reference ramps with the torque, and the steady cycle begins where it is the wanted one."""
    motion = moving(USUAL | {"ramp_in": 0.1})
    motion.go(5).stream(rows=5)
    assert motion.hits(45) == 0
    motion.go(10)
    assert motion.hits() == 20
    motion.trajectory((0.5, 0.02))
    motion.both.apply(settings(USUAL | {"ramp_in": 0.1, "motor_gains.kp": [30.0]}))
    assert motion.hits(45) == 0
    motion.go(10)
    assert motion.hits() == 20


def test_motors_that_are_led_in_by_a_slow_simulation_are_so_for_longer_than_the_torque_fades():
    motion = moving(USUAL | {"ramp_in": 0.1})
    motion.pace = 0.25
    motion.go(5).stream(rows=5)
    assert motion.hits(150) == 0
    motion.go(60)
    assert motion.both.first.safety.mode == "running" and motion.hits() == 20


def test_drivers_have_their_own_order_further_joints_and_efforts():
    motion = moving(USUAL)
    order = np.array([3, 0, 6, 2, 5, 1, 4])
    names = [*np.array(motion.names)[order], "gripper"]
    motion.fields = lambda q, v: (names, [*q[order], 0.01], [*v[order], 0.0], [*np.arange(7.0), np.nan])
    motion.motors = lambda q, v: (names[::-1], [*q[order], 0.01][::-1], [*v[order], 0.0][::-1])
    motion.go(20).stream(rows=5)
    motion.go(3)
    assert motion.hits() == 20
    np.testing.assert_array_equal(motion.both.state.first.measured_effort, np.argsort(order))


@pytest.mark.parametrize("mode", ["feed_forward", "feed_forward_pd"])
@pytest.mark.parametrize("event", [
    "late", "leap", "backwards", "jump", "fast", "nan", "wrench", "stop", "settings", "deactivate",
    "trajectory to come", "saturated", "saturated motors", "weak spring", "no motors", "wrong motors", "no snap",
    "other names", "no velocity", "few velocities", "few efforts", "linearization"])
def test_what_is_unusual_goes_the_ordinary_way(event, mode):
    """And the steady cycle goes on afterwards, where anything does."""
    drives = {"joint_2": MIXED["joint_2"] | {"max_deflection": 0.02}} if event == "weak spring" else {}
    limits = {"motor_effort_limits.maximum": [300.0]} if event == "saturated motors" else {}
    motion = moving(USUAL | {"mode": mode} | limits, **drives)
    both, usual, motors = motion.both, motion.fields, motion.motors
    motion.go(20).stream(rows=5)
    motion.go(3)
    assert motion.hits() == 20
    motion.fields = {"jump": lambda q, v: (motion.names, q + 0.5, v, ()),
                     "fast": lambda q, v: (motion.names, q, v + 50.0, ()),
                     "nan": lambda q, v: (motion.names, q * np.nan, v, ()),
                     "other names": lambda q, v: ([*motion.names[1:], "other"], q, v, ()),
                     "no velocity": lambda q, v: (motion.names, q, (), ()),
                     "few velocities": lambda q, v: (motion.names, q, v[:5], ()),
                     "few efforts": lambda q, v: (motion.names, q, v, v[:3])}.get(event, usual)
    motion.motors = {"no motors": lambda q, v: (), "wrong motors": lambda q, v: (motion.names, q + np.nan, v)}.get(
        event, motors)
    if event == "wrench":
        both.on_wrenches(motion.now, [(motion.model.body_names[-1], np.ones(6))])
    elif event == "stop":
        both.safety.stop()
    elif event == "settings":
        both.apply(settings(USUAL | {"motor_gains.kp": [30.0], "mode": mode}, **drives))
    elif event == "linearization":
        both.apply(settings(USUAL | {"mode": "feedback_linearization"}, **drives))
    elif event == "deactivate":
        both.deactivate()
    elif event == "trajectory to come":
        both.on_trajectory(motion.now, round((motion.now + 0.01) * 1e9), motion.names, [Point(0.1, np.zeros(7))])
    elif event.startswith(("saturated", "weak")):
        zero = np.zeros(7)
        far = {"saturated": (40.0, 1.0), "saturated motors": (0.0, 1e6), "weak spring": (250.0, 1.0)}[event]
        assert both.on_reference(motion.now, 0, motion.names, zero, zero, zero + far[0], zero, zero + far[1])
    elif event == "no snap":
        motion.stream(rows=3)
    if event.endswith("motors") and event != "saturated motors":
        count = motion.hits(40, step=2e-3)    # the last state of the motors counts for 50 ms
        assert count == (40 if mode == "feed_forward" else 25)
    else:
        wait = {"late": {"step": 0.03}, "leap": {"stamp": round((motion.now + 0.5) * 1e9)},
                "backwards": {"stamp": round((motion.now - 0.01) * 1e9)}}
        assert motion.hits(1, **wait.get(event, {})) == 0
    counts = both.first.report()
    seen = {"saturated": "saturated", "saturated motors": "motor_saturated", "weak spring": "impossible",
            "no snap": "reference_incomplete", "wrong motors": "rejected_non_finite"}
    assert event not in seen or counts[seen[event]] > 0
    assert not event.endswith("motors") or counts["motor_state_missing"] == 0 or mode != "feed_forward"
    if event.startswith("few") or event == "linearization":
        assert motion.hits(10) == 0
    motion.fields, motion.motors = usual, motors
    if event == "linearization":
        both.apply(settings(USUAL | {"mode": mode}, **drives))
    motion.go(700)
    if event in ("stop", "deactivate"):
        assert motion.hits() == 0
    else:
        motion.stream(rows=5)
        motion.go(300)
        assert motion.hits() == 20


def test_angles_of_joints_and_motors_that_wrap_are_the_same():
    """Continuous joints and their motors that are reported between −π and π, each in its own turn."""
    model = arm(extra=LINK.format(name="hand", mass=0.5) + JOINT.format(
        name="wrist", kind="continuous", parent="lower", child="hand", x=0.3, effort=10, extra=""))
    motion = moving({"reference_timeout": 0.0, "motor_gains.kp": [1.0], "motor_gains.kd": [0.1]}, model,
                    wrist=KINDS[1])

    def wrapped(x):
        return (x + np.pi) % (2.0 * np.pi) - np.pi

    motion.fields = lambda q, v: (motion.names, [0.1, 0.2, wrapped(3.0 * motion.now)], [0.0, 0.0, 3.0], ())
    motion.motors = lambda q, v: (motion.names, [0.1, 0.2, wrapped(3.0 * motion.now + 0.01)], [0.0, 0.0, 3.0])
    motion.go(20)
    zero = [0.0, 0.0, 0.0]
    motion.both.on_reference(motion.now, 0, motion.names, [0.1, 0.2, 20.0], zero, zero, zero, zero)
    motion.go(3)
    assert motion.hits(2000) == 2000
