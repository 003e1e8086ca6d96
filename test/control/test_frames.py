"""The mounting from static transforms: a chain up to the world, in any order, and what is wrong with others."""
from __future__ import annotations

import numpy as np
import pytest

import rbd_ros as rbd
from rbd_ros.core.lie.so3 import from_quaternion, from_rpy, to_quaternion
from rbd_ros.runtime.world.frames import StaticFrames, Transform
from rbd_ros.runtime.robot import turned

RNG = np.random.default_rng(6)


def test_rotations_of_a_chain_are_multiplied_downwards():
    names = ["world", "room", "table", "plate", "base_link"]
    given = [Transform(parent, child, q / np.linalg.norm(q)) for parent, child, q in zip(
        names, names[1:], RNG.normal(size=(4, 4)), strict=False)]
    frames = StaticFrames()
    for k in RNG.permutation(4):
        assert not frames.accept([Transform("/" + given[k].parent, given[k].child, 1.001 * given[k].quaternion)])
    assert not frames.accept([Transform("base_link", "tool", (0.0, 0.0, 0.0, 1.0))])
    expected = np.linalg.multi_dot([from_quaternion(each.quaternion) for each in given])
    np.testing.assert_allclose(frames.rotation("world", "base_link"), expected, atol=1e-14)
    np.testing.assert_allclose(frames.rotation("base_link", "base_link"), np.eye(3))
    frames.accept([Transform("room", "table", (0.0, 0.0, 0.0, 1.0))])    # the newest counts
    np.testing.assert_allclose(frames.rotation("room", "table"), np.eye(3))


def test_chains_that_do_not_lead_to_the_world():
    frames = StaticFrames()
    frames.accept([Transform("table", "base_link", (0.0, 0.0, 0.0, 1.0))])
    with pytest.raises(rbd.RbdError, match=r"no static transform from 'world' to 'base_link': the chain table → "
                                           r"base_link begins at 'table', which has no parent"):
        frames.rotation("world", "base_link")
    frames.accept([Transform("base_link", "table", (0.0, 0.0, 0.0, 1.0))])
    with pytest.raises(rbd.RbdError, match="base_link → table → base_link is a loop"):
        frames.rotation("world", "base_link")


@pytest.mark.parametrize(("quaternion", "words"), [
    ((0.0, 0.0, 0.0, 0.0), "has norm 0"), ((0.0, 0.0, 0.0, 1.1), "has norm 1.1"),
    ((0.0, np.nan, 0.0, 1.0), "is not finite"), ((np.inf, 0.0, 0.0, 1.0), "is not finite")])
def test_transforms_that_are_none_change_nothing(quaternion, words):
    frames = StaticFrames()
    good = to_quaternion(from_rpy([0.1, 0.2, 0.3]))
    assert not frames.accept([Transform("world", "base_link", good)])
    [wrong] = frames.accept([Transform("world", "base_link", quaternion)])
    assert "'world' to 'base_link'" in wrong and words in wrong
    np.testing.assert_allclose(frames.rotation("world", "base_link"), from_quaternion(good))
    assert len(frames.accept([Transform("", "a", good), Transform("a", "", good), Transform("a", "a", good)])) == 3


def test_gravity_in_the_axes_of_a_wall_a_ceiling_and_a_table():
    g = (0.0, 0.0, -9.81)
    np.testing.assert_allclose(turned(g, from_rpy([np.pi, 0.0, 0.7])), [0.0, 0.0, 9.81], atol=1e-14)
    np.testing.assert_allclose(turned(g, from_rpy([0.0, np.pi / 2, 0.0])), [9.81, 0.0, 0.0], atol=1e-14)
    assert tuple(turned(g, np.eye(3))) == g    # to the last bit
