"""`rbd.EffortObserver` and node `observer`: the same to the bit on the same inputs."""
from __future__ import annotations

import threading

import numpy as np
import pytest
from builtin_interfaces.msg import Time
from sensor_msgs.msg import JointState
from silent_node import Log
from support.twins import alike

import rbd_ros as rbd
from rbd_interfaces.msg import JointEffort
from rbd_ros.nodes.observer import ObserverNode
from rbd_ros.runtime.estimation.contact_observer import ContactObserver
from rbd_ros.runtime.estimation.contacts import wrench_and_point
from rbd_ros.runtime.parameters import select, validate

S = 1_000_000_000
MODEL = rbd.sample("iiwa")
TIP = MODEL.body_names[-1]
VALUES = {"threshold": [0.05], "sigma": [0.1], "payload.estimate": TIP, "release": 0.05, "max_interval": 0.05}
CHANGES = ({"gain": 30.0}, {"gain": 50.0}, {"threshold": [1.0]}, {"threshold": [0.05]}, {"payload.memory": 5.0},
           {"payload.body": "link_4", "payload.mass": 0.7}, {"payload.mass": 0.0}, {"friction.coulomb": False})


class SilentObserver:
    """A node `observer` that no constructor of ROS has seen: its own callbacks; published: what it told."""

    def __init__(self, values):
        node = self.node = object.__new__(ObserverNode)
        node._log, node.lock, node.active = Log(), threading.RLock(), True
        node._publish = lambda message, observed: self.published.append(observed)
        self.values, self.published = validate(node.table, values), []
        node._observer = ContactObserver(MODEL, node.settings(self.values, MODEL))
        node.get_logger = lambda: Quiet()

    def state(self, stamp_ns, *numbers):
        self.published.clear()
        message = JointState(name=list(MODEL.joint_names))
        message.header.stamp = Time(sec=stamp_ns // S, nanosec=stamp_ns % S)
        message.position, message.velocity, message.effort = ([float(x) for x in each] for each in numbers)
        self.node._on_state(message)
        return self.published[0] if self.published else None

    def set(self, changes):
        self.values = validate(self.node.table, self.values | changes)
        self.node.apply(self.node.settings(self.values, MODEL))


class Quiet:
    def warning(self, *words, **how):
        pass

    info = warning


def same(one, other):
    if one is None or other is None:
        return one is other
    change = one.change is other.change is None or (
        one.change is not None and other.change is not None and alike(tuple(one.change), tuple(other.change)))
    load = one.load is other.load is None or (
        one.load is not None and other.load is not None and one.load.body == other.load.body
        and alike(one.load.load.matrix, other.load.load.matrix) and alike(one.load.half_width, other.load.half_width)
        and alike(one.load.observed, other.load.observed) and one.load.touching == other.load.touching)
    return (change and load and alike(one.effort, other.effort) and alike(one.sigma, other.sigma)
            and alike(one.wrench.wrench, other.wrench.wrench) and alike(one.wrench.covariance, other.wrench.covariance))


@pytest.mark.parametrize("source", ["joint_states", "effort"])
@pytest.mark.parametrize("seed", range(4))
def test_a_walk_has_the_same_numbers(seed, source):
    """Motion with pushes, gaps, clocks set back, wrong numbers, missing velocities and efforts, changed parameters."""
    rng = np.random.default_rng([seed, len(source)])
    values = VALUES | {"effort_source": source}
    node, face = SilentObserver(values), rbd.EffortObserver(MODEL, **values)
    assert select(node.node.logic, node.values) == face.parameters
    amplitude, rate = rng.uniform(0.1, 0.4, 7), rng.uniform(0.5, 3.0, 7)
    t, push_until, told, begins, loads, none = 1.0, 0.0, 0, 0, 0, 0
    for _ in range(2500):
        event = rng.random()
        t += float(rng.choice([1e-3, 2e-3, 4e-3])) if event > 0.02 else float(rng.choice([0.0, -0.7, 0.3, 5.0]))
        t = max(t, 1e-3)
        q, v = amplitude * np.sin(rate * t), amplitude * rate * np.cos(rate * t)
        tau = rbd.inverse_dynamics(MODEL, q, v, -rate**2 * q)
        if rng.random() < 0.005:
            push_until = t + 0.15
        if t < push_until:
            tau = tau - rbd.jacobian(MODEL, q, TIP).T @ [0.0, 0.0, 1.0, 15.0, 5.0, 0.0]
        lie = rng.random()
        if lie < 0.02:
            [q, v, tau][rng.integers(3)][rng.integers(7)] = rng.choice([np.nan, np.inf, 1e300, 1e160])
        v, tau = () if 0.02 < lie < 0.03 else v, () if 0.03 < lie < 0.04 else tau
        if 0.04 < lie < 0.045:
            q = q[:5]
        if rng.random() < 0.005:
            change = CHANGES[rng.integers(len(CHANGES))]
            node.set(change)
            face.set(**change)
        if source == "effort" and len(tau):
            node.node._on_effort(JointEffort(name=list(MODEL.joint_names), effort=[float(x) for x in tau]))
        seen = node.state(round(t * 1e9), q, v, tau if source == "joint_states" else ())
        mine = face.update(t, q, v if len(v) else None, tau if len(tau) else None)
        assert same(seen, mine)
        if seen is None:
            none += 1
            continue
        told, loads = told + 1, loads + (seen.load is not None)
        if seen.change is not None and seen.change.touching:
            wrench, point = wrench_and_point(face.model, seen.change)
            assert alike(face.contact.wrench, wrench) and alike(face.contact.point, point)
            assert face.contact.body == seen.change.body
            if seen.change.begins:
                begins += 1
                assert face.contact.since == t
        elif seen.change is not None:
            assert face.contact is None
    assert alike(face.report(), node.node.report())
    assert told > 1500 and begins > 3 and loads and none > 50
