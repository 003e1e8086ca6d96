"""Limits of motors behind springs: their speeds as `motor_reference` has them, gradients, refusals."""
from __future__ import annotations

import numpy as np
import pytest

import rbd_ros as rbd
from rbd_ros.core.motion.optimal.checked_task import checked_task
from rbd_ros.core.motion.optimal.first_guess import minimum_jerk
from rbd_ros.core.motion.optimal.nodes import Nodes
from rbd_ros.core.motion.optimal.problem import Problem

MODEL = rbd.sample("two_link").with_(damping=0.2)
# hardening, and softening beyond a deflection that the last one does not reach
SPRINGS = {"linear": [[40.0], [15.0]], "hardening": [[30.0, 200.0], [12.0, 100.0, 50.0]],
           "softening": [[60.0, -100.0], [30.0, -100.0]]}
Q0, Q1 = np.array([-1.2, 0.4]), np.array([0.3, -0.8])


def actuation(kind="linear", **change):
    drives = {name: rbd.SeriesDrive(rbd.SeriesSpring(k, 0.3 if kind == "softening" else np.inf),
                                    motor=rbd.Motor(rotor_inertia=0.1))
              for name, k in zip(MODEL.joint_names, SPRINGS[kind], strict=True)}
    return rbd.Actuation(MODEL, {**drives, **change})


def motor_speeds(motion, t, drives):
    q, v, a, jerk, snap = motion(t)
    link = drives.model
    tau = rbd.inverse_dynamics_time_derivatives(link, q, v, a, jerk, snap)
    first, second = rbd.friction_effort_derivatives(link, v, a, jerk)
    tau = tau + np.stack([rbd.friction_effort(link, v), first, second], axis=1)
    return rbd.motor_reference(drives, q, v, a, tau).velocity


@pytest.mark.parametrize("kind", SPRINGS)
def test_motors_keep_their_speed(kind):
    drives, t = actuation(kind), np.linspace(0.0, 0.8, 2001)
    free = rbd.optimize_motion(MODEL, Q0, Q1, 0.8, actuation=drives, degree=7).check()
    fastest = np.abs(motor_speeds(free, t, drives)).max(axis=0)
    limits = rbd.MotionLimits(motor_velocity=0.93 * fastest)
    motion = rbd.optimize_motion(MODEL, Q0, Q1, 0.8, actuation=drives, degree=7, limits=limits).check()
    found = np.abs(motor_speeds(motion, t, drives)) / (0.93 * fastest)
    assert found.max() <= 1.0 + 1e-6
    np.testing.assert_allclose(found.max(), motion.usage["motor_velocity"].ratio, rtol=1e-4)
    assert motion.cost > free.cost


@pytest.mark.parametrize("kind", SPRINGS)
def test_the_gradient_is_that_of_differences(kind):
    limits = rbd.MotionLimits(motor_velocity=3.0)
    task = checked_task(MODEL, Q0, Q1, (0.5, 2.0), "effort", limits, (), None, 0.05, 5, 12, actuation=actuation(kind))
    problem = Problem(task, Nodes.of(task.basis, 20, task.orders), 10.0)
    x = problem.unknowns(minimum_jerk(task, 0.9), 0.9)
    x = x + 0.1 * np.random.default_rng(1).normal(size=len(x)) * (np.arange(len(x)) < problem.free)
    y = np.random.default_rng(2).uniform(0.0, 1.0, len(problem.values(x).rows))
    gradient = problem.gradient(problem.linear(x), y)

    def value(z):
        found = problem.values(z)
        return found.cost + y @ found.rows

    for e in np.eye(len(x))[::3]:
        d = [(value(x + h * e) - value(x - h * e)) / (2.0 * h) for h in (1e-3, 5e-4, 2.5e-4)]
        first = [(4.0 * d[1] - d[0]) / 3.0, (4.0 * d[2] - d[1]) / 3.0]
        assert abs((16.0 * first[1] - first[0]) / 15.0 - gradient @ e) <= 1e-7 * np.abs(gradient).max()


def test_springs_carry_no_more_than_their_largest_torque():
    """Also where there is no motor velocity to limit; what an end needs is said at once."""
    drives = actuation(shoulder=rbd.SeriesDrive(rbd.SeriesSpring([40.0, 100.0], 0.3), motor=rbd.Motor(0.1)))
    reach = float(drives.series_spring.max_torque[0])
    free = rbd.optimize_motion(MODEL, Q0, Q1, 0.4).check()
    t = np.linspace(0.0, 0.4, 2001)
    assert np.abs(free.effort(t)[:, 0]).max() > 1.02 * reach
    motion = rbd.optimize_motion(MODEL, Q0, Q1, 0.4, actuation=drives).check()
    assert np.abs(motion.effort(t)[:, 0]).max() <= reach
    rbd.motor_reference(drives, *motion(t)[:3], np.stack([motion.effort(t), *np.zeros((2, len(t), 2))], axis=1))
    weak = actuation(shoulder=rbd.SeriesDrive(rbd.SeriesSpring([40.0], 0.001), motor=rbd.Motor(0.1)))
    with pytest.raises(rbd.RbdError, match=r"the effort of joint 'shoulder' is .* beyond its limit -0.04"):
        rbd.optimize_motion(MODEL, Q0, Q1, 0.5, actuation=weak)


@pytest.mark.parametrize(("change", "what"), [
    ({"limits": rbd.MotionLimits(motor_velocity=1.0)}, "give their actuation"), ({"actuation": 3}, "an Actuation"),
    ({"actuation": actuation(shoulder=rbd.SeriesDrive(rbd.SeriesSpring([40.0]), 0.1, rbd.Motor(0.1)))},
     "the spring of joint 'shoulder' has damping"),
    ({"actuation": actuation(elbow=rbd.VariableDrive(rbd.StiffnessInput(10.0, 90.0, 1.0), *[rbd.Motor(0.1)] * 2))},
     "joint 'elbow' has two motors")])
def test_what_is_not_known_is_refused(change, what):
    with pytest.raises(rbd.RbdError, match=what):
        rbd.optimize_motion(MODEL, Q0, Q1, 1.0, **change)
