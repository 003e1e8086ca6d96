"""`rbd plan`: table, files, pictures, and what it says of wrong arguments."""
from __future__ import annotations

import csv

import numpy as np
import pytest
import yaml

import rbd_ros as rbd
from rbd_ros.cli.main import main

pytestmark = pytest.mark.filterwarnings("ignore::rbd_ros.RbdWarning")
ARM = ["plan", "two_link", "--from", "-0.5", "0.4", "--to", "0.6,-0.3"]


def test_a_motion_as_table_and_files(tmp_path, capsys):
    for name in ("motion.csv", "motion.yaml"):
        assert main([*ARM, "--duration", "1.5", "--output", str(tmp_path / name)]) == 0
    shown = capsys.readouterr().out
    assert "two_link: optimal motion, 1.5 s, least effort + 0.1 jerk_share" in shown
    assert "collisions are not considered: with itself, the table, or you (" in shown
    assert "no <collision> shapes" in shown and "wrote" in shown
    assert "shoulder  -0.500   0.600" in shown
    usage = next(line for line in shown.splitlines() if line.startswith("effort "))
    assert usage.split()[2] == "%" and usage.split()[3] in ("shoulder", "elbow")
    with (tmp_path / "motion.csv").open() as file:
        rows = list(csv.DictReader(file))
    model = rbd.sample("two_link")

    def columns(kind):
        return np.array([[float(row[f"{kind}_{name}"]) for name in model.joint_names] for row in rows])

    q, v, a = columns("position"), columns("velocity"), columns("acceleration")
    np.testing.assert_allclose(columns("effort"), rbd.inverse_dynamics(model, q, v, a) + rbd.friction_effort(model, v),
                               atol=1e-6)
    assert float(rows[-1]["time"]) == 1.5 and len(rows) == 151
    message = yaml.safe_load((tmp_path / "motion.yaml").read_text())
    assert message["joint_names"] == list(model.joint_names) and len(message["points"]) == 151
    assert message["points"][-1]["time_from_start"] == {"sec": 1, "nanosec": 500000000}
    # of another search, perhaps on code of the robot's own, which rounds otherwise
    np.testing.assert_allclose([point["positions"] for point in message["points"]], q, atol=1e-6)
    assert set(message["points"][0]) == {"positions", "velocities", "accelerations", "effort", "time_from_start"}


def test_a_picture(tmp_path, capsys):
    pytest.importorskip("matplotlib")
    path = tmp_path / "motion.png"
    assert main([*ARM, "--objective", "effort", "duration=10", "--acceleration", "20", "--plot", str(path)]) == 0
    assert path.read_bytes().startswith(b"\x89PNG")
    shown = capsys.readouterr().out
    assert "least effort + 10 duration" in shown and "acceleration" in shown


def test_options_make_another_motion(capsys):
    def cost(*options):
        assert main([*ARM, "--objective", "effort", *options]) == 0
        return float(capsys.readouterr().out.splitlines()[0].split()[-1])

    plain = cost("--duration", "1.5")
    assert cost("--duration", "1.5", "--payload", "2", "0.2", "0", "0") > 1.2 * plain
    on_the_axis = cost("--duration", "1.5", "--payload", "2", "--payload-body", "upper")    # of the shoulder
    assert on_the_axis == pytest.approx(plain, rel=1e-4) and cost("--duration", "1.5", "--payload", "2") > 1.2 * plain
    assert cost("--duration", "1.5", "--via", "0.5", "shoulder=0.9", "elbow=0.2") > plain
    assert cost("--duration", "1.5", "--velocity-scaling", "0.2") > plain
    assert cost("--duration", "1.5", "2.5", "--objective", "duration") == pytest.approx(1.5, rel=1e-3)


def test_what_cannot_be_has_exit_code_1(capsys):
    assert main([*ARM, "--duration", "0.3", "--effort-scaling", "0.25"]) == 1
    shown = capsys.readouterr().out
    assert "NO GOOD MOTION FOUND" in shown and "times its limit at" in shown


@pytest.mark.parametrize(("arguments", "message"), [
    (["--duration", "0.01"], "beyond its velocity limit"),
    (["--duration", "1", "2", "3"], "--duration takes one number, or two, got 3"),
    (["--payload", "1", "2"], "--payload takes a mass, or a mass and x y z, got 2 numbers"),
    (["--payload", "1", "--payload-body", "hand"], "unknown link in `payload_body`: 'hand'"),
    (["--objective", "efort"], "unknown name in `objective`: 'efort'; did you mean 'effort'"),
    (["--objective", "effort=x"], "--objective: 'x' is not a number"),
    (["--via", "0.5", "1"], "--via has 1 numbers, expected 2: shoulder, elbow"),
    (["--via", "half", "1", "1"], "--via: 'half' is not a number"),
    (["--output", "motion.txt"], "expected a file that ends in .yaml or .csv"),
    (["--output", "/no/such/folder/motion.csv"], "cannot write /no/such/folder/motion.csv"),
    (["--to", "sholder=1"], "--to: unknown joint 'sholder'; did you mean 'shoulder'"),
    (["--effort-scaling", "2"], "parameter 'effort_limits.scaling' is 2.0"),
])
def test_wrong_arguments_are_named(arguments, message, capsys):
    assert main([*ARM, *arguments]) == 1
    assert message in capsys.readouterr().err


def test_a_robot_that_is_not_there(capsys):
    assert main(["plan", "/no/such.urdf", "--from", "0", "--to", "1"]) == 1
    assert "/no/such.urdf" in capsys.readouterr().err


def test_poses_of_links_and_joints_without_motors(tmp_path, capsys):
    model = rbd.sample("iiwa")
    goal = rbd.forward_kinematics(model, np.array([0.4, 0.5, 0.1, -1.0, 0.2, 0.6, 0.1]))[-1]
    there = [f"{x:.9f}" for x in goal[:3, 3]]
    path = tmp_path / "motion.csv"
    arm = ["plan", "iiwa", "--duration", "2", "--output", str(path)]
    assert main([*arm, "--from", *["0.1"] * 7, "--to-body", model.body_names[-1], *there]) == 0
    with path.open() as file:
        last = list(csv.DictReader(file))[-1]
    q = np.array([float(last[f"position_{name}"]) for name in model.joint_names])
    np.testing.assert_allclose(rbd.forward_kinematics(model, q)[-1][:3, 3], goal[:3, 3], atol=1e-6)
    assert main([*arm, "--from-body", model.body_names[-1], *there, "0", "1.0", "0", "--to", *["0.1"] * 7]) == 0
    capsys.readouterr()
    for options, words in ((["--to-body", "link_7", "0.1"], "--to-body takes a link"),
                           (["--to-body", "link_8", "0", "0", "1"], "link_8"),
                           (["--to", *["0"] * 7, "--passive", "joint_9"], "passive_joints"),
                           (["--to", *["0.2"] * 7, "--passive", "joint_2"], "'joint_2' has no motor")):
        assert main([*arm, "--from", *["0.1"] * 7, *options]) == 1
        assert words in capsys.readouterr().err
