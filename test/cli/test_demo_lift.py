"""`rbd demo motion`: what it promises, and a run with all processes."""
from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.demos import run_demo

import rbd_ros as rbd
from rbd_ros.cli import demo_lift, demo_report
from rbd_ros.cli.main import main

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.filterwarnings("ignore::rbd_ros.RbdWarning")


def test_the_straight_motion_of_least_jerk():
    t = np.linspace(0.0, demo_lift.DURATION, 1001)
    q, v, a = demo_lift.straight(t)
    np.testing.assert_allclose(q[[0, -1]], [demo_lift.START, demo_lift.GOAL], atol=1e-12)
    assert not v[[0, -1]].any() and np.abs(a[[0, -1]]).max() < 1e-12
    np.testing.assert_allclose(np.gradient(q, t, axis=0)[1:-1], v[1:-1], atol=1e-4)
    np.testing.assert_allclose(np.gradient(v, t, axis=0)[1:-1], a[1:-1], atol=1e-3)


def test_the_load_is_more_than_one_and_a_half_times_what_it_can_carry():
    arm = demo_lift.lifter()
    most = demo_lift.heaviest(arm)
    t = np.linspace(0.0, demo_lift.DURATION, 501)

    def share(mass):
        effort = rbd.inverse_dynamics(demo_lift.loaded(arm, mass), *demo_lift.straight(t))
        return np.abs(effort / arm.effort_limit).max()

    assert share(most) <= 1.0 < share(1.001 * most) and most > 10.0
    assert 1.5 * most <= demo_lift.LOAD
    motion = rbd.optimize_motion(demo_lift.loaded(arm, demo_lift.LOAD), demo_lift.START, demo_lift.GOAL,
                                 demo_lift.DURATION, {"effort": 1.0, "jerk": demo_lift.JERK},
                                 limits=rbd.MotionLimits(effort=demo_lift.SCALING * arm.effort_limit)).check()
    assert np.all(np.abs(motion.effort(t)) <= demo_lift.SCALING * arm.effort_limit * (1.0 + 1e-9))


def test_the_robot_carries_the_load_as_a_link(tmp_path):
    demo_lift._write_urdf(tmp_path / "arm.urdf")
    arm = demo_lift.loaded(rbd.sample("iiwa"), demo_lift.LOAD)
    carrying = rbd.load_urdf(tmp_path / "arm.urdf")
    q = np.array(demo_lift.GOAL)
    np.testing.assert_allclose(rbd.mass_matrix(carrying, q), rbd.mass_matrix(arm, q), atol=1e-9)
    np.testing.assert_allclose(rbd.gravity_effort(carrying, q), rbd.gravity_effort(arm, q), atol=1e-9)


@pytest.mark.parametrize("option", ["--rate", "--duration"])
def test_what_it_does_not_take_is_named(option, capsys):
    assert main(["demo", "motion", option, "1"]) == 1
    assert f"{option} is not for demo motion" in capsys.readouterr().err


def test_a_run(tmp_path):
    """The nodes execute both motions: with the straight one the arm drops the load, with the other one it lifts it."""
    summary, printed = run_demo("motion", tmp_path)
    assert summary["load_ratio"] >= 1.5 and list(summary["modes"]) == list(demo_lift.MODES)
    straight, optimal = (summary["modes"][mode] for mode in demo_lift.MODES)
    assert max(straight["effort_share"]) > 1.5 and straight["time_at_a_limit"] > 0.3
    assert straight["end_error_rad"] > 0.5
    assert max(optimal["effort_share"]) <= 0.91 and optimal["time_at_a_limit"] == 0.0
    assert optimal["max_error_rad"] < 0.02 and optimal["end_error_rad"] < 0.01
    assert optimal["kkt_residual"] <= 1e-6 and optimal["violation"] <= 0.0
    assert (tmp_path / "torques.png").read_bytes().startswith(b"\x89PNG")
    assert "iiwa lifts 24 kg" in printed and "times what the straight motion can carry" in printed


def test_the_table_names_the_worst_joint():
    t = np.linspace(0.0, 1.0, 11)
    run = demo_lift.Run("mode", t, np.outer(t, [1.0, 4.0]), t, np.outer(t, [1.0, 2.0]), np.outer(t, [0.01, 0.0]),
                        np.array([2.0, 2.0]), {})
    assert run.saturated == pytest.approx(1 / 11) and run.squared == pytest.approx(17.0 / 3.0, rel=0.02)
    text = demo_report.table({"mode": run}, demo_lift.columns(["one", "two"]))
    assert "200 %" in text and "two" in text and "10.0 mrad" in text
