"""RK4 with dry friction and stops: order 4 while sliding and through events, momentum and energy."""

import numpy as np
import pytest
from simulation import robots
from simulation.robots import link, momentum

import rbd_ros as rbd
from rbd_ros.core.simulation.simulator import Simulator

SLIDE = {"joint_type": "prismatic", "axis": (1.0, 0.0, 0.0)}


def slopes(end, steps, exact):
    errors = [np.abs(end(h) - exact).max() for h in steps]
    return np.log2(np.divide(errors[:-1], errors[1:]))


def block(h, duration, amplitude):
    simulator = Simulator(robots.pendulum(**SLIDE, friction=2.0, damping=0.5), integrator="rk4", step=h, v=[3.0])
    simulator.step(lambda t: [amplitude * np.sin(7.0 * t)], round(duration / h))
    return np.concatenate([simulator.q, simulator.v])


@pytest.mark.parametrize(("duration", "amplitude"), [(0.8, 1.0), (4.0, 4.0)])
def test_a_sliding_block_is_of_order_four_also_where_it_sticks_and_breaks_away(duration, amplitude):
    """For 4 s with 4 N against 2 N of friction it comes to rest and breaks away several times."""
    exact = block(1.0 / 1600.0, duration, amplitude)
    found = slopes(lambda h: block(h, duration, amplitude), (0.1, 0.05, 0.025, 0.0125, 0.00625), exact)
    np.testing.assert_allclose(found, 4.0, atol=0.2)


@pytest.mark.parametrize(("speed", "duration"), [(1.0, 0.16), (-0.2, 0.4)])
def test_an_arm_with_friction_is_of_order_four(speed, duration):
    model = robots.iiwa().with_(friction=1.0, damping=0.2)
    q = np.full(7, 0.3)
    effort = rbd.gravity_effort(model, q) + np.array([8.0, -9.0, 5.0, 4.0, 2.5, -2.0, 1.5])

    def end(h):
        simulator = Simulator(model, integrator="rk4", step=h, q=q, v=np.full(7, speed), limits=False)
        simulator.step(effort, round(duration / h))
        return np.concatenate([simulator.q, simulator.v])

    found = slopes(end, (8e-3, 4e-3, 2e-3, 1e-3, 5e-4), end(2e-4))
    np.testing.assert_allclose(found, 4.0, atol=0.5)


def test_a_block_that_hits_its_stop_stands_there_exactly():
    simulator = Simulator(robots.pendulum(**SLIDE, upper=0.1, lower=-1.0), integrator="rk4", step=0.03, v=[1.0])
    simulator.step(n=20)
    assert simulator.q[0] == 0.1 and simulator.v[0] == 0.0
    simulator.step([-2.0], 10)
    assert simulator.q[0] == pytest.approx(0.1 - 0.3**2, rel=1e-12)


@pytest.mark.parametrize("friction", [0.0, 0.2])
def test_momentum_is_kept_to_order_four_through_stops(friction):
    """Two floating bodies whose joint hits its stops, rests on them and leaves them: impacts themselves keep it."""
    joint = rbd.JointSpec("shoulder", "revolute", "hub", "arm", position=np.array([0.2, 0.0, 0.0]),
                          axis=(0.0, 0.6, 0.8), lower=-0.05, upper=0.05, friction=friction)
    model = rbd.RobotModel.from_description(rbd.Description("two", {
        "hub": link(2.0, (0.0, 0.02, 0.0), (0.05, 0.06, 0.07)), "arm": link(0.7, (0.2, 0.0, 0.0), (0.002, 0.01, 0.01))},
        (joint,), root="floating", gravity=(0.0, 0.0, 0.0)))
    v = np.array([0.5, -0.4, 0.3, 0.2, -0.1, 0.3, 4.0])
    drifts = []
    for h in (2e-3, 1e-3, 5e-4):
        simulator = Simulator(model, integrator="rk4", step=h, v=v)
        before = momentum(model, simulator.q, v)
        rests = 0
        for i in range(round(0.4 / h)):
            simulator.step([0.0] * 6 + [2.0 * np.sign(np.sin(20.0 * i * h))])
            rests += simulator.v[-1] == 0.0 and abs(simulator.q[-1]) == 0.05
        assert rests > 10
        drifts.append(np.abs(momentum(model, simulator.q, simulator.v) - before).max() / np.linalg.norm(before))
    assert drifts[-1] < 1e-11
    assert np.all(np.log2(np.divide(drifts[:-1], drifts[1:])) > 3.7)
