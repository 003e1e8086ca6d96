"""`rbd.simulate`: what `Simulator` gives for each initial state, whoever computes it."""
from __future__ import annotations

import itertools
import threading

import numpy as np
import pytest

import rbd_ros as rbd
from rbd_ros.core.simulation.simulate import _share

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
    ({"efforts": np.full(7, np.nan)}, r"efforts\[0, 0\] is nan"),
    ({"n": 2, "efforts": np.zeros((2, 7))}, r"efforts: shape \(2, 7\) may be of 2 states or of 2 steps"),
    ({"stride": 3}, "stride: expected a divisor of 4"), ({"stride": 0}, "stride"), ({"threads": 0}, "threads"),
    ({"n": -1}, "n"), ({"integrator": "euler"}, "integrator"),
    ({"q": [[0.0] * 7, [9.0] + [0.0] * 6]}, "state 1: joint 'joint_1' starts at 9, outside"),
    ({"efforts": np.full(7, 1e300)}, "state 0: simulation diverged"),
])
def test_wrong_input_is_named(changed, message):
    with pytest.raises(rbd.RbdError, match=message):
        rbd.simulate(**{"model": ARM, "q": np.zeros((2, 7)), "n": 4} | changed)


def test_efforts_of_each_state_are_those_of_all_its_steps():
    q, v, rng = starts()
    efforts = rng.standard_normal((N, 7))
    one, two, three = (rbd.simulate(ARM, q, v, each, n=STEPS, limits=False) for each in (
        efforts, efforts[:, None], np.repeat(efforts[:, None], STEPS, axis=1)))
    assert np.array_equal(one.q, two.q) and np.array_equal(one.q, three.q)
    assert np.array_equal(rbd.simulate(ARM, q[:7], v[:7], efforts[:7, None], n=7).v.shape, (7, 2, 7))


def test_no_states():
    assert rbd.simulate(ARM, np.zeros((0, 7)), n=4, stride=2).q.shape == (0, 3, 7)


@pytest.mark.parametrize("integrator", ["variational", "semi_implicit", "rk4"])
def test_compiled_calls_make_all_steps(integrator, monkeypatch):
    q, v, _ = starts()
    monkeypatch.setattr(rbd.Simulator, "step", None)    # would fail
    for efforts in (None, rbd.PDLaw(1.0, 0.0, np.zeros(7))):
        assert np.isfinite(rbd.simulate(ARM, q, v, efforts, n=STEPS, integrator=integrator).q).all()


def test_the_first_state_that_fails_is_named():
    q = np.zeros((N, 7))
    q[[9, 30], 0] = 9.0
    with pytest.raises(rbd.RbdError, match="state 9: joint 'joint_1' starts at 9, outside"):
        rbd.simulate(ARM, q, n=2, threads=3)


def test_rk4_refuses_damping_that_is_too_stiff_in_a_state():
    """With the arm stretched out a joint turns more than with the arm folded, along its axis."""
    arm = rbd.sample("two_link")
    straight, folded = np.array([0.0, 0.0]), np.array([0.0, 3.0])
    rates = [1e-3 * np.diag(np.linalg.inv(rbd.mass_matrix(arm, q))).max() for q in (straight, folded)]
    assert rates[0] != pytest.approx(rates[1], rel=1e-2)
    good, bad = (straight, folded) if rates[0] < rates[1] else (folded, straight)
    arm = arm.with_(damping=2.0 / sum(rates))
    rbd.simulate(arm, [good, good], n=2, integrator="rk4", limits=False)
    with pytest.raises(rbd.RbdError, match=r"state 1: damping .* is too stiff for rk4"):
        rbd.simulate(arm, [good, bad], n=2, integrator="rk4", limits=False)


def test_contacts_that_overlap_elsewhere():
    """A ball that starts above the floor, and not at the neutral positions, in it."""
    ball = rbd.Sphere("ball", 0.1)
    model = rbd.load_urdf('''<robot name="ball"><link name="world"/><link name="ball"><inertial><mass value="1"/>
        <inertia ixx="0.01" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial></link>
        <joint name="free" type="floating"><parent link="world"/><child link="ball"/></joint></robot>''')
    contacts = [rbd.UnilateralContact(rbd.Plane("world"), ball)]
    q = np.array([[0.0, 0.0, z, 0.0, 0.0, 0.0, 1.0] for z in (0.1, 0.3)])
    result = rbd.simulate(model, q, n=20, contacts=contacts)
    np.testing.assert_allclose(result.q[:, -1, 2], [0.1, 0.3 - 0.5 * 9.81 * 0.02**2], rtol=0, atol=1e-6)


def test_an_error_in_one_thread_ends_all():
    came, both = [], threading.Barrier(2, timeout=60.0)

    def run(left):
        for i in left:
            came.append(i)
            both.wait()
            if i == 0:
                raise MemoryError
            while next(left, None) is not None:
                pass

    with pytest.raises(MemoryError):
        _share(itertools.count(), run, 2)
    assert sorted(came) == [0, 1]
