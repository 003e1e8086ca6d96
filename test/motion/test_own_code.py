"""Searches on the robot's own code: where it is on disk, or worth making; the same motions; within the time limit."""
from __future__ import annotations

import numpy as np
import pytest

import rbd_ros as rbd
from rbd_ros.core.motion import own_code

pytestmark = pytest.mark.skipif(not rbd.COMPILED, reason="needs numba")
Q0, Q1 = np.array([0.0, 0.5]), np.array([1.0, -0.4])


@pytest.fixture
def model(tmp_path, monkeypatch):
    """A robot that nobody has planned for, with an empty cache of its code."""
    monkeypatch.setattr("rbd_ros.core.specialize.machine.cache_directory", lambda: tmp_path)
    monkeypatch.setattr(own_code, "_at_hand", type(own_code._at_hand)())
    monkeypatch.setattr(own_code, "_spent", {})
    return rbd.sample("two_link").with_(damping=0.1, armature=np.random.default_rng().uniform(0.0, 1e-3, 2))


def planned(model, **more):
    return rbd.optimize_motion(model, Q0, Q1, 1.0, **more).check()


def test_it_is_made_once_searches_have_taken_long(model, monkeypatch):
    first = planned(model)
    assert first._task.specialized is model
    monkeypatch.setattr(own_code, "WORTH", 0.0)
    assert planned(model, time_limit=own_code.ROOM)._task.specialized is model    # which is too short to make it in
    second = planned(model)
    assert set(second._task.specialized.functions) == set(own_code.FUNCTIONS)
    assert all(isinstance(count, int) for count in second._task.specialized.functions.values())
    np.testing.assert_allclose(second.spline.control, first.spline.control, atol=1e-6)
    assert planned(model)._task.specialized is second._task.specialized
    other = rbd.RobotModel.from_description(model.description)    # another process would find it so
    monkeypatch.setattr(own_code, "WORTH", np.inf)
    assert planned(other)._task.specialized is not other


def test_large_robots_and_own_code_are_left_alone(model, monkeypatch):
    monkeypatch.setattr(own_code, "WORTH", 0.0)
    monkeypatch.setattr(own_code, "LARGEST", 1)
    for _ in range(2):
        assert planned(model)._task.specialized is model
    specialized = rbd.specialize(model)
    assert planned(specialized)._task.specialized is specialized


def test_no_more_robots_are_kept_than_a_few(model, monkeypatch):
    for k in range(own_code.ROBOTS + 3):
        planned(model.with_(damping=0.2 + 1e-3 * k))
    assert len(own_code._at_hand) == own_code.ROBOTS
