"""`rbd demo identify`: what it starts from, and a run with all processes."""
from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.demos import run_demo

import rbd_ros as rbd
from rbd_ros.cli.identification import demo_identify
from rbd_ros.cli.main import main
from rbd_ros.core.identification.consistency import is_consistent
from rbd_ros.core.identification.written.urdf_writer import rewritten

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.filterwarnings("ignore::rbd_ros.RbdWarning")


def test_the_robot_is_of_real_bodies_and_not_as_described():
    model = rbd.sample("iiwa")
    truth = demo_identify.robot(model)
    bodies = truth.inertial_parameters.reshape(-1, 10)
    assert all(is_consistent(body) for body in bodies if body[0] > 0.0)
    ratio = bodies[1:, 0] / model.inertial_parameters.reshape(-1, 10)[1:, 0]
    assert np.abs(ratio - 1.0).max() > 0.1 and np.abs(ratio - 1.0).max() <= demo_identify.MASS
    assert truth.armature.min() > 0.0 and truth.friction.min() > 0.0 and not model.armature.any()
    _, q, v, a = demo_identify.points()
    tau = rbd.inverse_dynamics(truth, q, v, a) + rbd.friction_effort(truth, v)
    assert (np.abs(tau) < 0.9 * model.effort_limit).all()
    loaded = rbd.load_urdf(rewritten(rbd.sample_path("iiwa"), model, truth))
    np.testing.assert_allclose(loaded.inertial_parameters, truth.inertial_parameters, atol=1e-8)


def test_what_was_recorded_is_late_and_noisy():
    t = np.arange(0.0, 1.0, 0.002)
    effort = np.column_stack([np.sin(t)] * 7)
    found = demo_identify.measured(t, 0.0 * effort, 1e3 * effort, rbd.sample("iiwa").joint_names)
    np.testing.assert_allclose(found.tau[demo_identify.LATE:], 1e3 * effort[:-demo_identify.LATE], atol=1.0)
    assert 0.5 * demo_identify.ENCODER < found.q.std() < 2.0 * demo_identify.ENCODER


@pytest.mark.parametrize("option", ["--rate", "--duration"])
def test_what_it_does_not_take_is_named(option, capsys):
    assert main(["demo", "identify", option, "1"]) == 1
    assert f"{option} is not for demo identify" in capsys.readouterr().err


def test_a_run(tmp_path):
    """With the identified description the same robot tracks at least five times better."""
    summary, printed = run_demo("identify", tmp_path)
    assert summary["better"] > 5.0 and list(summary["modes"]) == list(demo_identify.MODES)
    assert summary["residual"]["after"] < 0.2 * summary["residual"]["before"]
    assert summary["delay_s"] == pytest.approx((demo_identify.LATE - 0.5) / demo_identify.RATE, abs=0.002)
    for name in ("identified.png", "report.html", "identified.urdf", "nodes.yaml", "recording.npz"):
        assert (tmp_path / name).stat().st_size > 100, name
    assert "summary.json" in printed and "better" in printed
