"""`rbd demo`: its motions, its report, and a short run with all processes."""
from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from support.domains import private_domain_id
from support.processes import PATIENCE, ends

import rbd_ros as rbd
from rbd_ros.cli import demo, demo_motion, demo_nodes, demo_report, demo_tracking
from rbd_ros.cli.main import main
from rbd_ros.cli.processes import NodeProcesses

ROOT = Path(__file__).parents[2]
KEYS = ["pd", "pd_gravity", "pd_full"]

pytestmark = pytest.mark.filterwarnings("ignore::rbd_ros.RbdWarning")


@pytest.fixture
def results():
    rng = np.random.default_rng(0)
    t = np.linspace(0.0, 1.0, 101)
    report = {"latency_p50_us": 200.0, "latency_p99_us": 900.0, "deadline_misses": 2.0, "rate_hz": 500.0,
              "saturated": 0.0}
    recordings = [SimpleNamespace(t=t, q=scale * rng.normal(size=(101, 2)), report=report,
                                  plant={"waits": 3.0, "deadline_misses": 4.0}) for scale in (0.1, 0.05, 0.01)]
    return {key: demo_nodes.Executed(title, recording, 0.0 * recording.q)
            for (key, (title, _)), recording in zip(demo_tracking.MODES.items(), recordings, strict=True)}


def test_the_published_motion_stays_within_the_limits_of_the_iiwa():
    model, motion = rbd.sample("iiwa"), demo_motion.published_motion()
    t = np.linspace(0.0, 5.0, 1001)
    q = motion.position(t)
    effort = rbd.inverse_dynamics(model, q, motion.velocity(t), motion.acceleration(t))
    assert np.all(q > model.position_lower) and np.all(q < model.position_upper)
    assert np.all(np.abs(effort) < 0.5 * model.effort_limit)


def test_velocity_and_acceleration_are_derivatives_of_the_position():
    motion, h = demo_motion.published_motion(), 1e-4
    t = np.array([0.3, 1.7])
    for quantity, rate in ((motion.position, motion.velocity), (motion.velocity, motion.acceleration)):
        np.testing.assert_allclose(rate(t), (quantity(t + h) - quantity(t - h)) / (2.0 * h), atol=1e-6)
    assert motion.position(0.3).shape == (7,) and not motion.velocity(0.0).any()
    all_of_them = motion.derivatives(t)
    np.testing.assert_allclose(all_of_them[:, 0], motion.position(t))
    slopes = (motion.derivatives(t + h) - motion.derivatives(t - h)) / (2.0 * h)
    np.testing.assert_allclose(all_of_them[:, 1:], slopes[:, :-1], atol=1e-4)
    np.testing.assert_allclose(all_of_them[:, 2], motion.acceleration(t), atol=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_a_random_motion_stays_within_the_limits(seed):
    model = rbd.sample("two_link")
    motion = demo_motion.random_motion(model, 3.0, seed)
    t = np.linspace(0.0, 3.0, 301)
    q, v = motion.position(t), motion.velocity(t)
    assert np.all(q > model.position_lower) and np.all(q < model.position_upper)
    assert np.all(np.abs(v) <= 0.5 * model.velocity_limit)
    assert np.all(np.abs(rbd.inverse_dynamics(model, q, v, motion.acceleration(t))) <= 0.61 * model.effort_limit)
    again, other = demo_motion.random_motion(model, 3.0, seed), demo_motion.random_motion(model, 3.0, seed + 10)
    np.testing.assert_array_equal(motion.position(t), again.position(t))
    assert not np.array_equal(motion.position(t), other.position(t))


def test_an_arm_too_weak_for_its_own_weight_is_named():
    model = rbd.sample("two_link").with_(effort_limit=[0.01, 0.01])
    with pytest.raises(rbd.RbdError, match="no motion found within the effort limits: joint 'shoulder'"):
        demo_motion.random_motion(model.with_(gravity=(9.81, 0.0, 0.0)), 2.0)


def test_the_report_says_how_much_better_each_mode_is(results, tmp_path):
    text = demo_report.table(results, demo_nodes.columns(results, ["shoulder", "elbow"]))
    assert len(text.splitlines()) == 4 and "200 / 900 µs" in text
    assert text.split()[:8] == ["RMS", "error", "better", "worst", "joint", "latency", "p50", "/"]
    content = demo_report.summary(results, ["shoulder", "elbow"], {**demo_nodes.cycles(results), "robot": "arm"})
    demo_report.write_summary(tmp_path / "summary.json", content)
    read = json.loads((tmp_path / "summary.json").read_text())
    assert list(read["rms_error_rad"]) == KEYS and read["deadline_misses"] == 6 and read["robot"] == "arm"
    with pytest.raises(rbd.RbdError, match="cannot write"):
        demo_report.write_summary(tmp_path / "missing" / "summary.json", content)


def test_the_plot_is_a_picture(results, tmp_path):
    pytest.importorskip("matplotlib")
    demo_tracking.plot(tmp_path / "tracking.png", results, ["shoulder", "elbow"], "arm")
    assert (tmp_path / "tracking.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(("arguments", "message"), [
    (["--duration", "0"], "--duration is 0, expected 0.2 to 60"), (["--rate", "1e6"], "--rate is 1e+06"),
    (["/no/such/robot.urdf"], "/no/such/robot.urdf"),
    (["--config", "/no/such/arm.yaml"], "/no/such/arm.yaml"),
    (["--config", "config/ur.yaml", "--rate", "500"], "--rate is that of the configuration"),
    (["motion", "--config", "config/ur.yaml"], "--config is not for demo motion"),
    (["sea", "--config", "config/ur.yaml"], "--config is for rigid joints")])
def test_wrong_arguments_are_named(arguments, message, capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(demo, "_check_ros", lambda: None)
    assert main(["demo", "--output", str(tmp_path), *arguments]) == 1
    assert message in capsys.readouterr().err


def test_without_ros_it_says_what_to_do(tmp_path):
    code = ("import sys; sys.modules['rclpy'] = None\n"
            "from rbd_ros.cli.main import main; sys.exit(main(['demo', '--output', sys.argv[1]]))")
    result = subprocess.run([sys.executable, "-c", code, str(tmp_path)], cwd=ROOT, capture_output=True, text=True,
                            check=False)
    assert result.returncode == 1
    assert "needs ROS 2" in result.stderr and "scripts/demo" in result.stderr and "Traceback" not in result.stderr


def test_a_process_that_ends_by_itself_is_reported(tmp_path):
    with NodeProcesses(tmp_path, "/nowhere") as processes:
        processes.start("no_such_node", {})
        processes._running["no_such_node"].wait(60.0)
        with pytest.raises(rbd.RbdError, match=r"node no_such_node ended with code 1: .*no_such_node"):
            processes.check()
    assert not processes._running


DEAF = """
import os, sys, time
from pathlib import Path
from rbd_ros import signals
from rbd_ros.cli.processes import NodeProcesses
signals.LONGEST_END, sys.executable = float(sys.argv[1]), sys.argv[2]
with NodeProcesses(Path(sys.argv[2]).parent, "/nowhere", float(sys.argv[3])) as nodes:
    for name in ("first", "second"):
        nodes.start(name, {})
    with os.fdopen(os.open(Path(sys.argv[2]).with_name("deaf"), os.O_RDWR)) as deaf:    # which each one says
        print(*(deaf.readline().strip() for _ in nodes._running), flush=True)
    if sys.argv[4:]:
        raise ValueError
    time.sleep(600.0)
"""


@pytest.mark.parametrize("arguments", [(0.0, 60.0), (600.0, 0.5, "error")], ids=["pressed often", "after an error"])
def test_ctrl_c_leaves_no_node_behind(tmp_path, arguments):
    """Though they do not listen."""
    node = tmp_path / "node"
    os.mkfifo(tmp_path / "deaf")
    node.write_text(f"#!/bin/sh\ntrap '' INT TERM\necho $$ > {tmp_path}/deaf\nexec sleep 600\n")
    node.chmod(0o755)
    longest, *more = map(str, arguments)
    process = subprocess.Popen([sys.executable, "-c", DEAF, longest, str(node), *more], cwd=ROOT, text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    pids = process.stdout.readline().split()
    until = time.monotonic() + PATIENCE
    while process.poll() is None and time.monotonic() < until:
        process.send_signal(signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(0.05)
    _, errors = process.communicate(timeout=PATIENCE)
    assert len(pids) == 2 and ("Interrupted" in errors or process.returncode == 128 + signal.SIGINT), errors
    assert all(ends(int(pid)) for pid in pids)


def test_a_rehearsal(tmp_path):
    pytest.importorskip("rclpy", reason="rclpy is not importable: source ROS 2 or use scripts/test")
    pytest.importorskip("rbd_interfaces.msg", reason="rbd_interfaces is not built: scripts/setup does it")
    result = subprocess.run([sys.executable, "-m", "rbd_ros.cli.main", "demo", "--duration", "1", "--config",
                             "config/iiwa_lbr.yaml", "--output", str(tmp_path)], cwd=ROOT, capture_output=True,
                            text=True, check=False, env=os.environ | {
                                "ROS_DOMAIN_ID": private_domain_id("demo"),
                                "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST"})
    assert result.returncode == 0, result.stdout + result.stderr
    assert "adapter lbr is replaced by adapter forward_command" in result.stdout
    assert "The simulated robot did not stop itself." in result.stdout
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert summary["worst_excursion"] < 0.1 and summary["stopped_itself"] == ""
    assert f"worst excursion: {summary['worst_excursion']:.4f} rad" in result.stdout


def test_a_short_run(tmp_path):
    pytest.importorskip("rclpy", reason="rclpy is not importable: source ROS 2 or use scripts/test")
    pytest.importorskip("rbd_interfaces.msg", reason="rbd_interfaces is not built: scripts/setup does it")
    result = subprocess.run([sys.executable, "-m", "rbd_ros.cli.main", "demo", "--duration", "1", "--output",
                             str(tmp_path), "--plot"], cwd=ROOT, capture_output=True, text=True, check=False,
                            env=os.environ | {"ROS_DOMAIN_ID": private_domain_id("demo"),
                                              "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST"})
    assert result.returncode == 0, result.stderr
    assert "ended with code" not in result.stderr
    assert "RMS error" in result.stdout and "\r" not in result.stdout
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert {"rms_error_rad", "latency_us", "deadline_misses", "rate_hz"} <= set(summary)
    assert list(summary["rms_error_rad"]) == KEYS and set(summary["latency_us"]) == {"p50", "p99"}
    assert summary["rms_error_rad"]["pd_full"] < summary["rms_error_rad"]["pd"] / 3.0
    assert all(summary["modes"][key]["states"] == 501 for key in KEYS)    # none is lost on a busy machine
    for key in KEYS:
        with np.load(tmp_path / f"{key}.npz") as recording:
            np.testing.assert_allclose(recording["q"][0], recording["reference"][0], atol=1e-6)    # the same start
    assert (tmp_path / "tracking.png").exists()
