"""`rbd.simulate`: what `Simulator` gives for each initial state, whoever computes it."""
from __future__ import annotations

import numpy as np
import pytest

import rbd_ros as rbd

ARM = rbd.sample("iiwa")
N, STEPS = 40, 30


def starts():
    rng = np.random.default_rng(3)
    return 0.3 * rng.standard_normal((N, ARM.nq)), rng.standard_normal((N, ARM.nv)), rng


@pytest.mark.parametrize("integrator", ["variational", "semi_implicit", "rk4"])
@pytest.mark.parametrize("kind", ["none", "one", "each step", "each state"])
def test_as_one_by_one(integrator, kind):
    q, v, rng = starts()
    shape = {"none": None, "one": (7,), "each step": (STEPS, 7), "each state": (N, STEPS, 7)}[kind]
    efforts = None if shape is None else 3.0 * rng.standard_normal(shape)
    wrenches = {"link_7": [0.0, 0.1, 0.0, 1.0, 0.0, 2.0]}
    keywords = {"integrator": integrator, "velocity_limits": True}
    one, two = (rbd.simulate(ARM, q, v, efforts, 2e-3, STEPS, stride=10, external_wrenches=wrenches, threads=threads,
                             **keywords) for threads in (1, 3))
    assert np.array_equal(one.q, two.q) and np.array_equal(one.v, two.v)
    np.testing.assert_allclose(one.time, [0.0, 0.02, 0.04, 0.06], rtol=0, atol=1e-15)
    for row in (0, 17, N - 1):
        simulator = rbd.Simulator(ARM, step=2e-3, q=q[row], v=v[row], **keywords)
        for k in range(STEPS):
            effort = None if shape is None else np.broadcast_to(efforts, (N, STEPS, 7))[row, k]
            simulator.step(effort, 1, wrenches)
            if k % 10 == 9:
                assert np.array_equal(one.q[row, k // 10 + 1], simulator.q)
                assert np.array_equal(one.v[row, k // 10 + 1], simulator.v)


def test_from_rest_to_the_end_only():
    motions = rbd.simulate(ARM, np.zeros((2, 7)), n=5)
    assert motions.q.shape == (2, 2, 7) and not motions.v[:, 0].any() and motions.time[-1] == 0.005


def test_one_state():
    one, many = rbd.simulate(ARM, np.ones(7), n=4, stride=2), rbd.simulate(ARM, np.ones((1, 7)), n=4, stride=2)
    assert one.q.shape == (3, 7) and np.array_equal(one.q, many.q[0]) and np.array_equal(one.v, many.v[0])


@pytest.mark.parametrize("changed, message", [
    ({"q": np.zeros((2, 6))}, "q"), ({"q": np.zeros((2, 2, 7))}, "q"),
    ({"v": np.zeros((3, 7))}, "v"), ({"efforts": np.zeros((3, 7))}, "efforts: expected shape"),
    ({"efforts": "much"}, "efforts: expected real numbers"),
    ({"efforts": np.full(7, np.nan)}, "efforts: expected finite"), ({"stride": 3}, "stride: expected a divisor of 4"),
    ({"stride": 0}, "stride"), ({"threads": 0}, "threads"), ({"n": -1}, "n"), ({"integrator": "euler"}, "integrator"),
    ({"q": [[0.0] * 7, [9.0] + [0.0] * 6]}, "state 1: joint 'joint_1' starts at 9, outside"),
    ({"efforts": np.full(7, 1e300)}, "state 0: simulation diverged"),
])
def test_wrong_input_is_named(changed, message):
    with pytest.raises(rbd.RbdError, match=message):
        rbd.simulate(**{"model": ARM, "q": np.zeros((2, 7)), "n": 4} | changed)
