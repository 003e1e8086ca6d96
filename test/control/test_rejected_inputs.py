"""What is rejected changes nothing but counters: the controller is equal to one that never saw it."""
from __future__ import annotations

import copy
import types

import numpy as np
import pytest
from support.arm import NAMES, Q, V, arm

import rbd_ros as rbd
from rbd_ros.core.control.feedforward import FeedforwardController, FeedforwardSettings
from rbd_ros.core.control.flatness import FlatnessController, FlatnessSettings
from rbd_ros.core.control.inputs import JointMap, Rejections
from rbd_ros.core.control.reference import Point

SECOND, MS = 1_000_000_000, 1_000_000
NAN, INF = float("nan"), float("inf")
# said to users, or suspects until the next valid state, which forgets them
IGNORED = {"refused", "foreign", "_suspect", "_suspects"}


def same(one, other, path=""):
    """Deep equality of two objects, without counters and the cached order of names; the first difference, or ""."""
    if type(one) is not type(other):
        return path
    if one is other or isinstance(one, (Rejections, JointMap, rbd.RobotModel, types.FunctionType, types.MethodType)):
        return ""
    if isinstance(one, np.ndarray):
        return "" if np.array_equal(one, other, equal_nan=one.dtype.kind == "f") else path
    if isinstance(one, dict):
        if one.keys() != other.keys():
            return f"{path} keys"
        return next(filter(None, (same(one[k], other[k], f"{path}[{k}]") for k in one if k not in IGNORED)), "")
    if isinstance(one, (list, tuple)):
        if len(one) != len(other):
            return f"{path} length"
        return next(filter(None, (same(a, b, f"{path}[{i}]") for i, (a, b) in enumerate(zip(one, other, strict=True)))), "")
    if hasattr(one, "__dict__"):
        return same(vars(one), vars(other), f"{path}.{type(one).__name__}")
    return "" if one == other or (one != one and other != other) else path


def bad_state(rng, made, now, stamp):
    q, v = made.state.q, made.state.v
    ahead = stamp + rng.choice([0, 5 * SECOND, 900 * MS])
    return made.on_state, [
        (now, ahead, NAMES, [NAN, 0.0], v), (now, ahead, NAMES, [INF, 0.0]), (now, ahead, NAMES, [0.1]),
        (now, ahead, NAMES, q, [0.0]), (now, ahead, NAMES, q, v, [1.0]), (now, ahead, ["elbow"], [0.1]),
        (now, ahead, ["elbow", "elbow", "shoulder"], [0.1] * 3), (now, stamp - SECOND, NAMES, q, v),
        (now, 0, NAMES, q, v), (now, stamp + 5 * SECOND, NAMES, q, v), (now, stamp, NAMES, q + 0.5, v),
        (now, ahead, NAMES[::-1], q[::-1] + 0.5, v), (now, stamp, NAMES, q, [40.0, 0.0], [1.0, 2.0]),
        (now, ahead, ["gripper"], [0.1])]


def bad_reference(rng, made, now, stamp):
    return made.on_reference, [
        (now, stamp, NAMES, [NAN, 0.0]), (now, stamp, NAMES, [0.1]), (now, stamp, ["wrist"], [0.1]),
        (now, stamp, NAMES[::-1], Q, [0.1]), (now, stamp, NAMES, Q, V, [INF, 0.0]), (now, stamp, NAMES, Q, V, V, [NAN] * 2),
        (now, stamp, ["elbow"], [0.1])]


def bad_trajectory(rng, made, now, stamp):
    start = int(rng.choice([0, stamp + SECOND, stamp - 100 * MS]))
    q = made.state.q
    return made.on_trajectory, [
        (now, max(start, 0), NAMES, [Point(0.0, q + 0.8), Point(1.0, q)] if start in (0, stamp + SECOND) else [Point(-1.0, q)]), (now, start, NAMES, [Point(1.0, [NAN, 0.0])]),
        (now, start, NAMES, [Point(1.0, q), Point(1.0, q)]), (now, start, NAMES[::-1], [Point(1.0, [0.1])]),
        (now, start, ["wrist"], [Point(1.0, [0.1])]), (now, start, NAMES, [Point(2.0, q + 9.0)]),
        (now, stamp - 10 * SECOND, NAMES, [Point(1.0, q)]), (now, start, NAMES, [Point(5.0, q, [90.0, 0.0])])]


def bad_wrenches(rng, made, now, stamp):
    return made.on_wrenches, [(now, [("tool", np.zeros(6))]), (now, [("lower", np.full(6, NAN))])]


@pytest.mark.parametrize("kind", [bad_state, bad_reference, bad_trajectory, bad_wrenches])
@pytest.mark.parametrize(("controller", "settings"), [
    (FeedforwardController, FeedforwardSettings), (FlatnessController, FlatnessSettings)])
def test_it_is_as_if_it_had_not_been(controller, settings, kind):
    rng = np.random.default_rng(1)
    model = arm()
    made = controller(model, settings.from_values({"gains.kp": 50.0, "wrench_timeout": 0.0}, model))
    made.activate(0.0)
    for i in range(300):
        now, stamp = 1.0 + 0.002 * i, 1000 * SECOND + 2 * i * MS
        choice = rng.random()
        if choice < 0.1:
            made.on_reference(now, stamp, NAMES, made.state.q, V)
        elif choice < 0.15:
            made.on_trajectory(now, int(rng.choice([0, stamp + 20 * MS])), NAMES, [Point(1.0, Q + 0.3)])
        elif choice < 0.2:
            made.on_wrenches(now, [("lower", np.ones(6))])
        assert made.on_state(now, stamp, NAMES, Q + 1e-3 * np.sin(i), V) is not None, made.rejections.last
        if i % 3 == 2:
            before = copy.deepcopy(made)
            accept, messages = kind(rng, made, now + 1e-4, stamp)
            arguments = messages[rng.integers(len(messages))]
            total = made.rejections.total
            assert not isinstance(accept(*arguments), np.ndarray)
            assert made.rejections.total == total + 1 or arguments[2] == ["gripper"], arguments
            assert not same(made, before), (same(made, before), arguments)
