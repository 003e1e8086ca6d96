"""The residual is what the model does not know, and nothing else."""
import numpy as np
import pytest

import rbd_ros as rbd
from rbd_ros.core.dynamics.friction import friction_effort
from rbd_ros.core.simulation.simulator import Simulator
from rbd_ros.runtime.cosimulation.residual import ResidualMonitor, ResidualSettings
from rbd_ros.runtime.inputs.rejections import IGNORED, TAKEN

STEP = 1e-3
MODEL = rbd.load_urdf(rbd.sample_path("two_link")).with_(armature=0.2)
Q0, V0 = np.array([0.3, -0.8]), np.array([1.5, -0.5])


def effort(k):
    return np.array([2.0 * np.sin(0.003 * k), np.cos(0.004 * k)])


def watch(robot, known=None, steps=600, every=1, integrator="rk4", **values):
    """Residuals (N, 2) of a robot that moves, and the states that they belong to."""
    simulator = Simulator(robot, step=STEP / every, q=Q0, v=V0, integrator=integrator)
    monitor = ResidualMonitor(known or MODEL, ResidualSettings.from_values(values, known or MODEL))
    residuals, speeds = [], []
    monitor.on_state(0, MODEL.joint_names, Q0, V0, effort(0))
    for k in range(steps):
        simulator.step(effort(k), every)
        residuals.append(monitor.on_state((k + 1) * 1_000_000, MODEL.joint_names, simulator.q, simulator.v, effort(k)))
        speeds.append(simulator.v)
    return np.array(residuals), np.array(speeds), monitor


def test_the_same_robot_leaves_nothing_but_the_truncation_of_second_order():
    errors = []
    for h in (2e-3, 1e-3):
        simulator = Simulator(MODEL, step=h, q=Q0, v=V0, integrator="rk4")
        monitor = ResidualMonitor(MODEL, ResidualSettings.from_values({}, MODEL))
        for k in range(round(0.5 / h) + 1):
            monitor.on_state(round(k * h * 1e9), MODEL.joint_names, simulator.q, simulator.v, [1.0, -0.5])
            simulator.step([1.0, -0.5])
        errors.append(monitor.maximum.max())
    assert errors[1] < 1e-5 and 3.7 < errors[0] / errors[1] < 4.3


def test_an_integrator_of_first_order_leaves_first_order():
    rough, _, _ = watch(MODEL, integrator="semi_implicit")
    fine, _, _ = watch(MODEL, integrator="rk4")
    assert 100.0 * np.abs(fine).max() < np.abs(rough).max() < 0.05


def test_it_is_the_friction_that_the_model_lacks():
    robot = MODEL.with_(damping=[0.4, 0.2])
    residuals, speeds, _ = watch(robot)
    # The middle of each interval, to the order of the differences.
    middle = (speeds[1:] + speeds[:-1]) / 2.0
    np.testing.assert_allclose(residuals[1:], middle * [0.4, 0.2], rtol=0.0, atol=2e-5)
    known, _, _ = watch(robot, robot)
    assert np.abs(known).max() < 2e-5
    ignored, _, _ = watch(robot, robot, **{"friction.damping": False})
    np.testing.assert_allclose(ignored, residuals, rtol=0.0, atol=1e-12)


def test_coulomb_friction_is_explained_except_near_rest():
    robot = MODEL.with_(friction=[0.3, 0.1])
    residuals, speeds, _ = watch(robot, robot, every=20)
    moving = (np.abs(speeds) > 0.05).all(axis=1)
    moving[0] = False
    assert moving.sum() > 100
    assert np.abs(residuals[moving]).max() < 2e-3
    ignored, _, _ = watch(robot, robot, every=20, **{"friction.coulomb": False})
    np.testing.assert_allclose(ignored[moving], friction_effort(robot, speeds[moving]), rtol=0.0, atol=2e-3)
    wide, _, _ = watch(robot, robot, every=20, **{"friction.smoothing": 10.0})
    assert np.abs(wide[moving]).max() > 0.05


def test_it_is_the_mass_that_the_model_lacks():
    robot = MODEL.with_scaled_masses(1.1)
    residuals, _, monitor = watch(robot)
    simulator = Simulator(robot, step=STEP, q=Q0, v=V0, integrator="rk4")
    for k in range(200):
        simulator.step(effort(k))
    q, v = simulator.q, simulator.v
    a = rbd.forward_dynamics(robot, q, v, effort(200))
    missing = rbd.inverse_dynamics(robot, q, v, a) - rbd.inverse_dynamics(MODEL, q, v, a)
    np.testing.assert_allclose(residuals[200], missing, rtol=0.0, atol=0.02)
    np.testing.assert_allclose(monitor.rms, np.sqrt((residuals**2).mean(axis=0)), rtol=1e-12)
    np.testing.assert_array_equal(monitor.maximum, np.abs(residuals).max(axis=0))


def test_commands_stand_in_where_effort_is_not_measured():
    simulator = Simulator(MODEL, step=STEP, q=Q0, v=V0, integrator="rk4")
    nan = [np.nan, np.nan]
    late = ResidualMonitor(MODEL, ResidualSettings.from_values(
        {"effort_source": "effort", "effort_delay": 0.001}, MODEL))
    at_once = ResidualMonitor(MODEL, ResidualSettings.from_values({"effort_source": "effort"}, MODEL))
    missing = ResidualMonitor(MODEL, ResidualSettings.from_values({}, MODEL))
    for k in range(100):
        for monitor in (late, at_once, missing):
            monitor.on_state(k * 1_000_000, MODEL.joint_names, simulator.q, simulator.v, nan)
            monitor.on_command(k * 1_000_000, MODEL.joint_names[::-1], 10.0 * effort(40 * k)[::-1])
        simulator.step(10.0 * effort(40 * (k - 1)) if k else np.zeros(2))    # a step later than it was computed
    assert late.maximum.max() < 1e-4 < 0.3 < at_once.maximum.max()
    assert late.counts["residuals"] == 98 and late.counts["without_effort"] == 1
    assert missing.counts["without_effort"] == 99


def test_the_delay_of_commands_is_measured():
    for steps in (0, 1, 3):
        monitor = ResidualMonitor(MODEL, ResidualSettings.from_values({}, MODEL))
        sent = [effort(100 * k) for k in range(50)]
        for k in range(50):
            acted = sent[k - 1 - steps] if k > steps else np.zeros(2)
            monitor.on_state(k * 1_000_000, MODEL.joint_names, Q0, V0, acted)
            monitor.on_command(k * 1_000_000, MODEL.joint_names, sent[k])
        report = monitor.report()
        assert report["command_delay_max_ms"] == pytest.approx(steps)
        assert report["command_delay_mean_ms"] == pytest.approx(steps)


def test_gaps_resets_and_malformed_states_give_none():
    monitor = ResidualMonitor(MODEL, ResidualSettings.from_values({"max_interval": 0.01}, MODEL))
    names = MODEL.joint_names

    def state(stamp_ms, q=Q0):
        return monitor.on_state(stamp_ms * 1_000_000, names, q, V0, [0.0, 0.0])

    assert state(5) is TAKEN and isinstance(state(6), np.ndarray)
    assert state(100) is TAKEN and isinstance(state(101), np.ndarray)    # a gap
    assert state(2) is TAKEN and isinstance(state(3), np.ndarray)        # a reset
    assert state(3) is TAKEN                                             # the same once more
    assert monitor.counts["gaps"] == 2 and monitor.counts["repeated"] == 1
    verdict = state(4, [np.nan, 0.0])
    assert not verdict and "'" in verdict.text and monitor.rejections.total == 1
    assert isinstance(state(5), np.ndarray)
    assert monitor.on_state(6_000_000, ["other"], [0.0], [0.0], [0.0]) == IGNORED
    monitor.on_command(0, names, [1.0])
    assert monitor.rejections.counts["wrong_size"] == 1


def test_any_order_of_joints_gives_the_same():
    forward, _, _ = watch(MODEL, steps=20)
    simulator = Simulator(MODEL, step=STEP, q=Q0, v=V0, integrator="rk4")
    monitor = ResidualMonitor(MODEL, ResidualSettings.from_values({}, MODEL))
    names = [*MODEL.joint_names[::-1], "gripper"]
    monitor.on_state(0, names, [*Q0[::-1], 0.1], [*V0[::-1], 0.1], [0.0, 0.0, 9.0])
    for k in range(20):
        simulator.step(effort(k))
        residual = monitor.on_state((k + 1) * 1_000_000, names, [*simulator.q[::-1], 0.1], [*simulator.v[::-1], 0.1],
                                    [*effort(k)[::-1], 9.0])
        np.testing.assert_allclose(residual, forward[k], rtol=0.0, atol=1e-12)
