"""`rbd excite` and `rbd identify`: from a description to a motion, from its recording to a better description."""
from __future__ import annotations

import re

import numpy as np
import pytest
import yaml
from support.recordings import periodic, perturbed, record

import rbd_ros as rbd
from rbd_ros.cli.doctor import examine
from rbd_ros.cli.main import main
from rbd_ros.runtime.estimation.contact_observer import ObserverSettings

pytestmark = pytest.mark.filterwarnings("ignore::rbd_ros.RbdWarning")
URDF = str(rbd.sample_path("iiwa"))


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    path = tmp_path_factory.mktemp("recorded") / "motion.npz"
    model = rbd.sample("iiwa")
    found = record(perturbed(model, 3), periodic(model, 3, periods=3))
    np.savez(path, t=found.t, q=found.q, tau=found.tau, joints=np.array(found.joints))
    return str(path)


def test_identify_writes_a_description_and_a_report(recording, tmp_path, capsys):
    new, page = tmp_path / "new.urdf", tmp_path / "report.html"
    assert main(["identify", URDF, recording, "-o", str(new), "--report", str(page)]) == 0
    said = capsys.readouterr()
    assert "residual on motion that was not fitted: 0." in said.out and "consistent fit" in said.err
    assert all(len(line) <= 110 for line in said.out.splitlines()), said.out
    rows = {line.split()[0]: line.split()[1:] for line in said.out.splitlines() if line.startswith("joint_")}
    assert rows["joint_1"][4] == "–" and float(rows["joint_7"][4]) > 0.0    # the first rotor is felt as its link is
    truth, found = perturbed(rbd.sample("iiwa"), 3), rbd.load_urdf(new)
    q = truth.random_configuration(0)
    np.testing.assert_allclose(rbd.gravity_effort(found, q), rbd.gravity_effort(truth, q), atol=0.1)
    np.testing.assert_allclose(found.damping, truth.damping, rtol=0.05)
    np.testing.assert_allclose(rbd.mass_matrix(found, q), rbd.mass_matrix(truth, q), atol=0.02)
    assert examine(new).healthy
    text = page.read_text()
    assert text.count("<svg") == 14 and "joint_1" in text and text.count("<polyline") == 28
    assert main(["identify", URDF, recording, "--mode", "friction", "--delay", "0", "--cutoff", "5"]) == 0


def test_the_error_to_expect_on_a_motion_is_told(recording, tmp_path, capsys):
    motion, page = tmp_path / "motion.yaml", tmp_path / "report.html"
    periodic(rbd.sample("iiwa"), 5).write_trajectory(motion, rbd.sample("iiwa").velocity_names)
    arguments = ["identify", URDF, recording, "--report", str(page), "--delay", "0", "--expect", str(motion)]
    assert main([*arguments, "--stiffness", "500"]) == 0
    said = capsys.readouterr().out
    rows = {line.split()[0]: line.split()[1:] for line in said[said.index("feed-forward on"):].splitlines()
            if line.startswith("joint_")}
    for effort, error, without, with_feed_forward in (map(float, row[:4]) for row in rows.values()):
        assert error < 0.2 * effort
        assert without == pytest.approx(effort / 500.0, rel=0.05) and with_feed_forward < 0.2 * without
    text = page.read_text()
    assert text.count("<svg") == 14 and "Feed-forward on another motion" in text and "Residual by speed" in text
    for more, words in ((["--stiffness", "1", "2"], "--stiffness: expected one positive number or 7"),
                        (["--stiffness", "nan"], "--stiffness"), (["--expect", str(page)], "cannot read"),
                        (["--expect", str(tmp_path / "no.yaml")], "cannot read")):
        assert main([*arguments, *more]) == 1
        assert words in capsys.readouterr().err
    assert main(["identify", URDF, recording, "--stiffness", "1"]) == 1 and "--expect" in capsys.readouterr().err


def test_a_coupled_wrist_is_told_by_a_file(recording, tmp_path, capsys):
    path = tmp_path / "wrist.yaml"
    path.write_text("joint_7: {joint_6: 30, joint_7: 30}\n")
    arguments = ["identify", URDF, recording, "--delay", "0", "--cutoff", "5", "--slowest", "0"]
    assert main([*arguments, "--transmission", str(path)]) == 0
    assert any(line.startswith("motor joint_7 ") for line in capsys.readouterr().out.splitlines())
    assert main([*arguments[:-1], "-1"]) == 1 and "slowest" in capsys.readouterr().err
    path.write_text("joint_9: {joint_6: 30, joint_9: 30}\n")
    assert main([*arguments, "--transmission", str(path)]) == 1
    assert "unknown joint 'joint_9'" in capsys.readouterr().err


def test_what_is_wrong_is_one_line(recording, tmp_path, capsys):
    for arguments, words in (([URDF, str(tmp_path / "no.csv")], "cannot read"),
                             ([URDF, recording, "--gains", "x"], "--gains"),
                             ([URDF, recording, "--expect", "x", "--constraints", "delta"], "with --constraints"),
                             ([URDF, recording, "--mode", "payload"], "body"),
                             ([URDF, recording, "-o", str(tmp_path / "a" / "b")], "cannot write")):
        assert main(["identify", *arguments]) == 1
        assert words in capsys.readouterr().err.splitlines()[-1]


def test_excite_writes_a_trajectory_within_the_limits(tmp_path, capsys):
    path = tmp_path / "motion.yaml"
    arm = str(rbd.sample_path("two_link"))
    assert main(["excite", arm, "-o", str(path), "--duration", "6", "--seconds", "0.5", "--acceleration", "10",
                 "--velocity", "0.5", "--no-collisions"]) == 0
    said = capsys.readouterr()
    assert "condition number" in said.out and str(path) in said.out and "condition number" in said.err
    model = rbd.sample("two_link")
    v = np.array([point["velocities"] for point in yaml.safe_load(path.read_text())["points"]])
    assert np.abs(v).max() <= 0.5 * model.velocity_limit.max() + 1e-9
    iiwa = str(rbd.sample_path("iiwa"))
    assert main(["excite", iiwa, "-o", str(path), "--duration", "5", "--seconds", "1", "--floor", "0.3",
                 "--no-collisions"]) == 0
    assert "clearance     at least 0." in capsys.readouterr().out
    q = np.array([point["positions"] for point in yaml.safe_load(path.read_text())["points"]])
    assert rbd.forward_kinematics(rbd.sample("iiwa"), q)[:, 4:, 2, 3].min() > 0.299
    for wrong in (["--velocity", "2"], ["--margin", "0.5"], ["--duration", "-1"]):
        assert main(["excite", arm, "-o", str(path), "--no-collisions", *wrong]) == 1
        assert capsys.readouterr().err.startswith("rbd excite:")


def test_poses_are_written_and_identified_with_their_zeros(tmp_path, capsys):
    path, arm = tmp_path / "poses.csv", str(rbd.sample_path("two_link"))
    assert main(["excite", arm, "-o", str(path), "--poses", "6", "--speed", "0.5", "--rate", "50",
                 "--no-collisions"]) == 0
    said = capsys.readouterr().out
    assert "6 poses of" in said and "begins at rest at" in said and f"wrote {path}" in said
    model = rbd.sample("two_link").with_(damping=0.2, friction=0.3)
    t, *columns = np.loadtxt(path, delimiter=",", skiprows=1).T
    q, v, a = np.reshape(columns, (3, 2, -1)).transpose(0, 2, 1)
    assert np.abs(v).max() == pytest.approx(0.5, rel=1e-3)
    tau = rbd.inverse_dynamics(model, q + np.array([0.0, 0.03]), v, a) + rbd.friction_effort(model, v)
    recording = tmp_path / "slow.npz"
    np.savez(recording, t=t, q=q, tau=tau, joints=model.velocity_names)
    assert main(["identify", arm, str(recording), "--zeros"]) == 0
    said = " ".join(capsys.readouterr().out.split())    # the last link's centre of mass explains the elbow's
    assert f"taken as right: {', '.join(model.velocity_names)}" in said
    # long and slow: 20 points per second
    assert main(["excite", arm, "-o", str(path), "--poses", "6", "--no-collisions"]) == 0
    assert np.diff(np.loadtxt(path, delimiter=",", skiprows=1)[:, 0]).mean() == pytest.approx(0.05, rel=0.01)
    assert main(["excite", arm, "-o", str(path), "--poses", "1", "--no-collisions"]) == 1
    assert "count must be an integer from 3" in capsys.readouterr().err


def test_thresholds_are_parameters_of_the_observer(recording, tmp_path, capsys):
    path = tmp_path / "contact.yaml"
    assert main(["thresholds", URDF, recording, recording, "-o", str(path), "--gain", "30"]) == 0
    said = capsys.readouterr().out
    assert "60 s without contact" in said and "joint_7" in said and f"wrote {path}" in said
    values = yaml.safe_load(path.read_text())["observer"]["ros__parameters"]
    assert values["gain"] == 30 and len(values["threshold"]) == 7 and min(values["threshold"]) > 0.0
    ObserverSettings.from_values(values, rbd.sample("iiwa"))
    assert main(["thresholds", URDF, recording, "--alarms-per-hour", "-1"]) == 1
    assert "alarms_per_hour" in capsys.readouterr().err


CONTINUOUS = """<robot name="turner"><link name="base"/>
  <link name="arm"><inertial><origin xyz="0.2 0 0"/><mass value="1"/>
    <inertia ixx="0.01" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="turn" type="continuous"><parent link="base"/><child link="arm"/><axis xyz="0 1 0"/>
    <limit velocity="2" effort="EFFORT"/></joint></robot>"""


@pytest.mark.parametrize("effort", ["20", "0"])
def test_joints_that_turn_without_end_are_excited_and_what_has_no_limit_is_said(effort, tmp_path, capsys):
    arm, path = tmp_path / "arm.urdf", tmp_path / "motion.yaml"
    arm.write_text(CONTINUOUS.replace("EFFORT", effort))
    assert main(["excite", str(arm), "-o", str(path), "--duration", "4", "--seconds", "0.2", "--no-collisions"]) == 0
    said = capsys.readouterr().out
    points = yaml.safe_load(path.read_text())["points"]
    for name, field, free in (("position", "positions", True), ("acceleration", "accelerations", True),
                              ("velocity", "velocities", False), ("effort", None, effort == "0")):
        told = re.search(rf"{name} +no limit: turn up to ([0-9.]+)", said)
        assert bool(told) == free, said
        if told and field:
            most = max(abs(point[field][0]) for point in points)
            assert float(told[1]) == pytest.approx(most, rel=0.02)


def test_files_for_nodes_and_further_options(recording, tmp_path, capsys):
    files = {name: tmp_path / f"{name}.yaml" for name in ("parameters", "actuation", "ur-friction", "controller")}
    assert main(["identify", URDF, recording, "--delay", "0", "--stribeck", "--parameters",
                 str(files["parameters"]), "--actuation", str(files["actuation"]), "--controller",
                 str(files["controller"])]) == 0
    said = capsys.readouterr()
    assert "velocities of Stribeck's effect" in said.err and said.out.count("wrote ") == 3
    tree = yaml.safe_load(files["parameters"].read_text())
    assert len(tree["/**"]["ros__parameters"]["rotor_inertia"]) == 7
    assert rbd.load_actuation(files["actuation"], rbd.sample("iiwa")).nm == 7
    numbers = yaml.safe_load(files["controller"].read_text())["/**"]["ros__parameters"]
    assert len(numbers["dynamics"]["inertias"]) == 70 and "torque_scale" not in numbers["dynamics"]
    assert main(["identify", URDF, recording, "--ur-friction", str(files["ur-friction"])]) == 1
    assert "is not a UR" in capsys.readouterr().err
    for wrong, words in ((["--lock", "joint_7=x"], "--lock"), (["--prior", "0"], "prior"),
                         (["--constraints", "four_bar"], "do not fit")):
        assert main(["identify", URDF, recording, *wrong]) == 1
        assert words in capsys.readouterr().err


def test_gravity_and_locked_joints_are_those_of_the_installation(tmp_path, capsys):
    """An arm on the ceiling with a joint that stands still elsewhere than at zero."""
    hanging = rbd.load_urdf(URDF, gravity=(0.0, 0.0, 9.81), locked={"joint_7": 0.7})
    found = record(perturbed(hanging, 3), periodic(hanging, 3, periods=2))
    np.savez(tmp_path / "a.npz", t=found.t, q=found.q, tau=found.tau, joints=np.array(found.joints))
    here = ["--gravity", "0", "0", "9.81", "--lock", "joint_7=0.7"]
    assert main(["identify", URDF, str(tmp_path / "a.npz"), "--delay", "0", *here]) == 0
    out = capsys.readouterr().out
    assert "not fitted: 0." in out, out
