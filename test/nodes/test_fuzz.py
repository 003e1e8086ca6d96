"""Torque nodes under a storm of messages over DDS, in short: `scripts/bench fuzz` is the long form. And its rules."""
from __future__ import annotations

import contextlib
import math
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="rclpy is not importable: source ROS 2 or use scripts/test")
pytest.importorskip("rbd_interfaces.msg", reason="rbd_interfaces is not built: scripts/setup does it")

from rclpy.serialization import serialize_message
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

import rbd_ros as rbd
from benchmark.fuzz import targets, verdict
from benchmark.fuzz.hostile import LARGEST, Hostile
from benchmark.fuzz.outputs import Limits, Pair
from benchmark.fuzz.peer import Peer, Violation
from benchmark.fuzz.storm import Storm
from rbd_interfaces.msg import JointReference, NamedWrench, NamedWrenches
from rbd_ros.nodes.base.conversions import named_wrenches, nanoseconds, trajectory_points
from rbd_ros.runtime.control.elastic_controller import ElasticController
from rbd_ros.runtime.control.elastic_settings import ElasticSettings
from rbd_ros.runtime.control.feedforward import FEEDFORWARD_TABLE, FeedforwardController, FeedforwardSettings
from rbd_ros.runtime.control.flatness import FLATNESS_TABLE, FlatnessController, FlatnessSettings
from rbd_ros.runtime.parameters import select

pytestmark = [pytest.mark.thorough,
              pytest.mark.filterwarnings("ignore::rbd_ros.RbdWarning")]    # the iiwa's inertias are as published
NAMES = ("shoulder", "elbow")


@pytest.mark.parametrize("name", targets.NAMES)
def test_a_storm(tmp_path, private_domain, name):
    row = Storm(targets.make(name), tmp_path, 1, lambda text: None).run(2000)
    assert not row["violations"], "\n".join(row["violations"])
    assert row["efforts"] > 300 and row["rejected"] > 200 and row["exams"] == 2


class Deaf:
    """A process that is none."""

    ended = True

    def __init__(self, *args):
        self.ends = 0

    def end(self):
        self.ends += 1
        return 0

    def log(self):
        return ""


def test_a_storm_whose_own_middleware_fails_leaves_nothing_behind(tmp_path, private_domain, monkeypatch):
    monkeypatch.setattr("benchmark.fuzz.storm.Process", Deaf)
    storm = Storm(targets.make("elastic"), tmp_path, 1, lambda text: None)

    def fail(messages):
        raise RuntimeError("not enough memory")

    monkeypatch.setattr(storm, "_attack", fail)
    with pytest.raises(RuntimeError, match="not enough memory"):
        storm.run(100)
    assert storm._process.ends == 1 and not storm._peer.context.ok()


@pytest.mark.parametrize(("leap", "patient"), [(10.0, True), (0.04, False)])
def test_time_in_which_the_machine_stood_still_does_not_count(monkeypatch, leap, patient):
    """Forty turns of ten seconds are a machine that starves both, a thousand of 40 ms a node that does not answer."""
    clock, turns = count(step=leap), count()
    peer = SimpleNamespace(process=SimpleNamespace(ended=False), spin=lambda seconds: None, offend=lambda what: None)
    monkeypatch.setattr("benchmark.fuzz.peer.time", SimpleNamespace(monotonic=lambda: next(clock)))
    with contextlib.nullcontext() if patient else pytest.raises(Violation):
        assert Peer.until(peer, lambda: next(turns) > (40 if patient else 1000), "answer")


@pytest.mark.parametrize("topic", ["state", "motors", "reference", "trajectory", "wrenches"])
def test_no_message_outgrows_the_middleware(topic):
    """However often it is damaged; what it is after some of it is what the storm sends."""
    make = Hostile(targets.make("elastic"), np.random.default_rng(4))
    for _ in range(20):
        message = make.sent(topic, 10**12, False).message
        for _ in range(40):
            make._damage(message, 10**12)
            names = message.joint_names if topic == "trajectory" else [item.body for item in message.wrenches] if \
                topic == "wrenches" else message.name
            assert sum(len(name) + 8 for name in names) < 2 * LARGEST
        assert len(serialize_message(message)) < 4 * LARGEST


def controller(target):
    """The logic of the node, without one."""
    values, model = target.parameters, target.model
    if target.motors:
        drives = rbd.load_actuation(Path(values["actuation_file"]), model).drives
        return ElasticController(model, ElasticSettings.from_drives(select(FLATNESS_TABLE, values), model, drives))
    if target.name == "flatness":
        return FlatnessController(model, FlatnessSettings.from_values(select(FLATNESS_TABLE, values), model))
    return FeedforwardController(model, FeedforwardSettings.from_values(select(FEEDFORWARD_TABLE, values), model))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")    # overflow, which is what is asked for
@pytest.mark.parametrize("name", targets.NAMES)
def test_every_message_for_itself(name):
    """Without DDS: each one is counted once, as its verdict says, or not at all."""
    target, rng = targets.make(name), np.random.default_rng(3)
    logic, make = controller(target), Hostile(target, rng)
    logic.activate(0.0)
    topics = ["state", "reference", "trajectory", "wrenches", *(["motors"] if target.motors else [])]
    for k in range(4000):
        now = 1.0 + 1e-3 * k
        sent = make.sent(topics[rng.integers(len(topics))], int(1e12 + now * 1e9), rng.random() < 0.7)
        message, before = sent.message, logic.rejections.counts.copy()
        stamp = 0 if sent.topic == "wrenches" else nanoseconds(message.header.stamp)
        if sent.topic == "state":
            logic.on_state(now, stamp, message.name, message.position, message.velocity, message.effort)
        elif sent.topic == "motors":
            logic.on_motor_state(now, stamp, message.name, message.position, message.velocity)
        elif sent.topic == "reference":
            logic.on_reference(now, stamp, message.name, message.position, message.velocity, message.acceleration,
                               message.jerk, message.snap)
        elif sent.topic == "trajectory":
            logic.on_trajectory(now, stamp, message.joint_names, trajectory_points(message))
        else:
            logic.on_wrenches(now, named_wrenches(message))
        counted = logic.rejections.counts - before
        assert counted.total() <= 1
        if sent.verdict is None:
            assert not counted, message
        elif sent.verdict:
            assert counted.keys() <= sent.verdict | verdict.ALWAYS and counted, message


def test_verdicts():
    """What must become of a message, by hand."""
    def state(names=NAMES, position=(0.0, 1.0), velocity=(), effort=()):
        return verdict.of_state(JointState(name=list(names), position=list(position), velocity=list(velocity),
                                           effort=list(effort)), NAMES)

    assert state() == state(velocity=(math.nan, 1.0)) == state((*NAMES, "gripper"), (0.0, 1.0, math.nan)) == set()
    assert state(("gripper",), (1.0,)) is state((), ()) is None
    assert state(position=(math.nan, 1.0)) == {"non_finite"}
    assert state(position=(math.inf,)) == {"non_finite", "wrong_size"}
    assert state(velocity=(1.0,)) == state(effort=(1.0,) * 3) == state(position=()) == {"wrong_size"}
    assert state(NAMES[:1], (1.0,)) == {"missing_joint"}
    assert state((*NAMES, "elbow"), (1.0,) * 3) == {"duplicate_joint"}

    def reference(names=NAMES, position=(0.0, 1.0), **fields):
        return verdict.of_reference(JointReference(name=list(names), position=list(position), **fields), NAMES)

    assert reference() == reference(jerk=[1.0, 2.0]) == set()
    assert reference((*NAMES, "gripper"), (0.0,) * 3) == {"unknown_joint"}
    assert reference(snap=[math.nan, 0.0]) == {"non_finite"} and reference(jerk=[1.0]) == {"wrong_size"}

    def trajectory(*times):
        message = JointTrajectory(joint_names=list(NAMES))
        for time in times:
            message.points.append(JointTrajectoryPoint(positions=[0.0, 0.0]))
            message.points[-1].time_from_start.sec = time
        return verdict.of_trajectory(message, NAMES)

    assert trajectory() == trajectory(0, 1) == set() and trajectory(1, 1) == trajectory(-1) == {"bad_trajectory"}
    assert verdict.of_wrenches(NamedWrenches(wrenches=[NamedWrench(body="x")]), NAMES) == {"unknown_body"}
    assert verdict.of_motors(JointState(name=["b"], position=[1.0]), ("a", "b"), ("b",)) == {"wrong_size"}


def test_counters_that_do_not_add_up():
    ledger = verdict.Ledger()
    for kinds in (("wrong_size",), ("wrong_size",), ("non_finite", "wrong_size"), (), ()):
        ledger.sent(verdict.Verdict(kinds))
    ledger.sent(None)
    assert not ledger.contradictions({"wrong_size": 2, "non_finite": 1})
    assert not ledger.contradictions({"wrong_size": 3, "non_finite": 1, "new_kind": 1})
    assert not ledger.contradictions({"wrong_size": 2, "stamp_backwards": 1})
    assert ledger.contradictions({"wrong_size": 1, "non_finite": 2, "unknown_body": 3})    # of six, one is not counted
    assert ledger.contradictions({"wrong_size": 1, "non_finite": 1}) and not ledger.complete({"wrong_size": 2})
    assert ledger.complete({"wrong_size": 9}) and ledger.contradictions({"wrong_size": 9})


def test_limits_in_force():
    limits = Limits(np.array([10.0, 1.0]))
    limits.ask(5.0, 100.0)
    np.testing.assert_array_equal(limits.at(105.0), [10.0, 1.0])
    limits.answer(True, 110.0, 0.0)
    limits.ask(9.0, 150.0)
    np.testing.assert_array_equal(limits.at(151.0), [9.0, 1.0])
    limits.answer(False, 160.0, 0.0)
    limits.ask(8.0, 200.0)
    limits.answer(True, 210.0, 50.0)
    for when, wanted in ((99.0, 10.0), (105.0, 10.0), (111.0, 5.0), (155.0, 5.0), (201.0, 8.0), (300.0, 8.0)):
        np.testing.assert_array_equal(limits.at(when), [wanted, 1.0])


def test_outputs_that_differ():
    pair = Pair()
    pair.leads += [b"1", b"2"]
    assert pair.agree()
    pair.follows.append(b"1")
    assert pair.agree() and list(pair.leads) == [b"2"]
    pair.follows.append(b"3")
    assert not pair.agree()
