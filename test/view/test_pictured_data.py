"""What panels, players and the live view show, without a browser: bars, timelines, playback, an observed robot."""

import json
import math
from types import SimpleNamespace

import numpy as np
import pytest
import yaml

import rbd_ros as rbd
from rbd_ros.cli.main import main
from rbd_ros.core.errors import RbdError
from rbd_ros.core.identification.recorded.recording import Recording
from rbd_ros.runtime.inputs.trajectory_points import Point
from rbd_ros.runtime.observed_robot import LOST, SILENT, ObservedRobot
from rbd_ros.view import serving
from rbd_ros.view.bars import Bar, bars_of, html, places_html, places_of
from rbd_ros.view.efforts import holding_effort, passive_of
from rbd_ros.view.live import status_html
from rbd_ros.view.playback import Playback
from rbd_ros.view.plot import SPAN, Plot
from rbd_ros.view.timeline import from_message, from_motion, from_recording, read_timeline


@pytest.fixture(scope="module")
def arm():
    return rbd.sample("two_link")


@pytest.mark.parametrize("effort, limit, state, percent", [
    (50.0, 100.0, "good", "50 %"), (-85.0, 100.0, "near", "85 %"), (100.5, 100.0, "over", "100 % !"),
    (-250.0, 100.0, "over", "250 % !"), (5.0, 0.0, "unlimited", "–"), (5.0, math.inf, "unlimited", "–"),
    (math.nan, 10.0, "unknown", "")])
def test_bars_say_how_far_from_the_limit(effort, limit, state, percent):
    bar = Bar("<elbow>", effort, limit, "N m")
    assert bar.state == state
    text = html([bar], "Torque", "note & more")
    assert f'data-state="{state}"' in text and percent in text and "&lt;elbow&gt;" in text and "note &amp; more" in text
    assert ("1 over the limit" in text) == (state == "over")


def test_lost_bars_show_no_number():
    text = html([Bar("a", 12.345, 20.0, "N m", 3.0)], "Torque", lost=True)
    assert "12.3" not in text and "grayscale" in text


LONG = "left_arm_with_a_long_prefix_shoulder_pan_joint"


def test_names_are_whole_and_degrees_stand_beside_radians():
    """Long names take more lines, none is cut off; lengths stay lengths."""
    text = html([Bar(LONG, 1.0, 2.0, "N m")], "Torque")
    assert LONG in text and "ellipsis" not in text and "overflow-wrap:anywhere" in text
    model = rbd.sample("gripper")
    places = places_of(model)
    text = places_html(places, np.full(model.nq, 0.5))
    assert all(place.name in text for place in places) and "ellipsis" not in text
    assert ("0.500 rad" in text and "28.6°" in text) == any(place.turns for place in places)
    assert ("0.5000 m" in text and "500.0 mm" in text) == any(not place.turns for place in places)
    assert "0.5" not in places_html(places, np.full(model.nq, 0.5), lost=True)
    floating = rbd.sample("biped", root="floating")
    assert [place.name for place in places_of(floating)] == list(floating.velocity_names[6:])


def test_curves_are_those_that_were_shown(arm):
    """Of the last seconds, by joint; gaps where a torque is not known, nothing of what was never chosen."""
    pytest.importorskip("viser")
    now = [0.0]
    server = serving.open_server(port=0)
    try:
        plot = Plot(server, arm, (), lambda: now[0])
        for i in range(300):
            now[0] = 0.1 * i
            plot.add(np.array([i, -i]) * np.pi / 180.0, np.array([1.0 * i, math.nan]), np.array([2.0, 3.0]))
        assert not plot._chart.visible
        plot._quantity.value = "torque"
        plot.draw()
        curves = plot.curves()
        assert plot._chart.visible and list(curves) == ["s", "shoulder", "elbow"] and len(plot._chart.data) == 3
        assert curves["s"][-1] == 0.0 and curves["s"][0] == pytest.approx(-SPAN, abs=0.11)
        assert curves["shoulder"][-1] == 299.0 and np.isnan(curves["elbow"]).all()
        plot._joint.value = "elbow"
        assert list(plot.curves()) == ["s", "elbow", "elbow (line)"] and plot.curves()["elbow (line)"][-1] == 3.0
        plot._quantity.value = "position (°, m)"
        assert list(plot.curves()) == ["s", "elbow"] and plot.curves()["elbow"][-1] == pytest.approx(-299.0)
    finally:
        serving.end(server)


def test_the_ghost_is_where_the_node_wants_the_robot(arm):
    """The reference of a stream and of a trajectory, as a node that runs follows them; none of one that has stopped."""
    robot = ObservedRobot(arm, "/feedforward", arm.neutral())
    names, second = ["shoulder", "elbow"], 10**9

    def at(t, mode="running"):
        robot.on_report(t, "/feedforward", "active", {"mode": mode})
        robot.on_state(t, names, [0.0, 0.0], [], round(t * second))
        return robot.at(t).reference

    assert at(1.0) is None
    robot.on_reference(1.0, 0, ["elbow", "shoulder"], [0.2, 0.1])
    assert np.allclose(at(1.1), [0.1, 0.2])
    points = [Point(2.0, [0.4, 0.0], [0.0, 0.0])]
    robot.on_trajectory(1.1, 0, names, points)
    assert np.allclose(at(3.1), [0.4, 0.0]) and np.allclose(at(9.0), [0.4, 0.0])
    robot.on_trajectory(9.0, 0, names, [Point(1.0, [99.0, 0.0])])    # beyond the limits: the node refuses it, too
    assert np.allclose(at(11.0), [0.4, 0.0])
    assert at(12.0, "stopped") is None and at(13.0) is None
    robot.on_trajectory(13.0, 0, names, points)
    assert at(16.0) is not None and robot.at(16.0 + LOST + 0.1).reference is None


def test_a_push_is_seen_until_it_is_old(arm):
    robot = ObservedRobot(arm, "/feedforward", arm.neutral())
    robot.on_state(1.0, ["shoulder", "elbow"], [0.0, 0.0], [])
    robot.on_report(1.0, "/feedforward", "active", {"mode": "running", "touched": "lower"})
    for body, force in (("lower", [1.0, 2.0, 3.0]), ("no link", [4.0, 5.0, 6.0]), ("upper", [np.nan, 0.0, 0.0])):
        robot.on_force(1.0, body, force)
    seen = robot.at(1.1)
    assert seen.pushed[0] == "lower" == seen.touched and seen.pushed[1].tolist() == [1.0, 2.0, 3.0]
    assert robot.at(1.0 + LOST + 0.1).pushed is None and robot.at(1.0 + SILENT + 0.1).touched == ""


def test_bars_leave_out_what_has_no_motor():
    model = rbd.sample("biped", root="floating")
    names = [bar.name for bar in bars_of(model, np.ones(model.nv))]
    assert names == list(model.velocity_names[6:])
    model = rbd.sample("five_bar")
    passive = passive_of(model, model.joint_names[:2])
    assert [bar.name for bar in bars_of(model, np.ones(model.nv), passive=passive)] == list(model.joint_names[:2])
    with pytest.raises(RbdError, match="nothing"):
        passive_of(model, ["nothing"])


def test_holding_effort_of_a_loop_is_that_of_its_motors():
    model = rbd.sample("delta")
    constraints = rbd.sample_constraints("delta", model)
    passive = passive_of(model, ["motor_1", "motor_2", "motor_3"])
    q = rbd.project(model, constraints, model.neutral()).q
    effort, note = holding_effort(model, constraints, passive, q)
    motors = np.array([name.startswith("motor") for name in model.velocity_names])
    assert note == "" and np.abs(effort[~motors]).max() < 1e-9
    at = effort[motors]
    assert np.ptp(at) < 1e-6 * np.abs(at).max() > 0.0    # three equal legs
    gravity = rbd.gravity_effort(model, q)
    A = rbd.constraint_jacobian(model, constraints, q)
    residual = effort - gravity
    assert np.abs(residual - A.T @ np.linalg.lstsq(A.T, residual, rcond=None)[0]).max() < 1e-8
    assert "open tree" in holding_effort(model, constraints, passive | {"motor_1", "motor_2"}, q)[1]


def message(joints=("elbow", "shoulder"), **fields):
    points = [{"positions": [0.0, 0.5], "velocities": [0.0, 0.0], "time_from_start": {"sec": 0, "nanosec": 0}},
              {"positions": [1.0, -0.5], "velocities": [0.0, 0.0], "time_from_start": {"sec": 2, "nanosec": 0}}]
    return {"joint_names": list(joints), "points": [point | fields for point in points]}


def test_a_trajectory_message_is_played_as_controllers_do(arm, tmp_path):
    """By names, cubic between points; YAML as `ros2 topic echo` prints it, and JSON."""
    file = tmp_path / "motion.yaml"
    file.write_text(yaml.safe_dump({"header": {"frame_id": ""}, **message()}) + "---\n")
    (tmp_path / "motion.json").write_text(json.dumps(message()))
    for name in ("motion.yaml", "motion.json"):
        line = read_timeline(str(tmp_path / name), arm, arm.neutral())
        assert line.duration == 2.0 and np.allclose(line.at(0.0), [0.5, 0.0]) and np.allclose(line.at(9.0), [-0.5, 1.0])
        assert np.allclose(line.at(0.5), [0.5 - 5.0 / 32.0, 5.0 / 32.0], atol=1e-4)
        s, v, a = 0.15625, 0.5625, 0.75
        expected = rbd.inverse_dynamics(arm, np.array([0.5 - s, s]), [-v, v], [-a, a])
        assert np.allclose(line.effort_at(0.5, line.effort), expected, atol=1e-2)


def test_efforts_of_a_message_are_shown_beside_those_of_the_model(arm):
    line = from_message(message(effort=[3.0, 4.0]), arm, arm.neutral(), "test")
    assert np.allclose(line.effort_at(1.0, line.effort), [4.0, 3.0]) and line.second is not None


@pytest.mark.parametrize("wrong, text", [
    ({}, "joint_names"), ([], "joint_names"), (message(joints=("elbow", "wrist")), "wrist"),
    (message(positions=[1.0]), "positions"), (message(positions=[1.0, "x"]), "positions"),
    (message(time_from_start={"sec": "x"}), "time_from_start"), (message(time_from_start=1.0), "increase")])
def test_wrong_messages_are_said(arm, wrong, text):
    with pytest.raises(RbdError, match=text):
        from_message(wrong, arm, arm.neutral(), "test")


def test_recordings_are_played_from_their_first_good_row(arm, tmp_path):
    t = np.array([5.0, 5.1, 5.1, 5.2, 5.3])
    q = np.array([[0.1, 0.2], [0.2, 0.3], [9.0, 9.0], [np.nan, 0.4], [0.4, 0.5]])
    line = from_recording(Recording(t, q, tau=10.0 * q, joints=("elbow", "shoulder")), arm, arm.neutral())
    assert np.allclose(line.t, [0.0, 0.1, 0.3]) and np.allclose(line.q, [[0.2, 0.1], [0.3, 0.2], [0.5, 0.4]])
    assert np.allclose(line.effort_at(0.05, line.effort), [2.5, 1.5]) and line.second is None
    file = tmp_path / "log.csv"
    file.write_text("t,q_shoulder,q_elbow,tau_shoulder,tau_elbow\n0,0,0,1,1\n1,1,1,2,2\n")
    assert np.allclose(read_timeline(str(file), arm, arm.neutral()).at(0.5), [0.5, 0.5])


def test_a_motion_is_played_with_its_efforts(arm):
    class Motion:
        duration = 1.0

        def __call__(self, t):
            return SimpleNamespace(q=np.stack([np.sin(t), t], axis=1))

        def effort(self, t):
            return np.stack([t, 2.0 * t], axis=1)

    line = from_motion(arm, Motion())
    assert np.allclose(line.at(0.3), [np.sin(0.3), 0.3], atol=1e-5)
    assert np.allclose(line.effort_at(0.3, line.effort), [0.3, 0.6])


def test_playback_in_time():
    player = Playback(10.0)
    player.play(100.0)
    assert player.advance(102.0) == 2.0
    player.speed = 0.5
    assert player.advance(104.0) == 3.0
    player.playing = False
    assert player.advance(200.0) == 3.0
    player.play(300.0)
    assert player.advance(400.0) == 10.0 and not player.playing
    player.loop = True
    player.play(500.0)
    assert player.advance(523.0) == pytest.approx(1.5) and player.playing


def test_an_observed_robot_is_never_older_than_it_says(arm):
    robot = ObservedRobot(arm, "/feedforward", arm.neutral())
    assert robot.at(0.0).lost == "no joint state yet" and robot.at(0.0).q is None and robot.at(0.0).silent
    robot.on_state(1.0, ["elbow", "wheel", "shoulder"], [0.2, 9.0, 0.1], [2.0, 9.0, 1.0])
    robot.on_command(1.0, ["elbow", "shoulder"], [2.5, 1.5])
    robot.on_report(1.0, "/feedforward", "active", {"mode": "running", "latency_p50_us": "120", "latency_p99_us": "300",
                                                    "rate_hz": "500", "rejected_total": "3", "rejected_not_finite": "3",
                                                    "rejected_wrong_size": "0"})
    robot.on_report(1.5, "/other", "active", {"mode": "stopped"})
    assert not robot.at(1.1).braked
    robot.on_report(1.0, "/simulator", "active", {"mode": "running", "brakes": "on"})
    robot.on_report(1.0, "/beside/simulator", "active", {"mode": "running", "brakes": "off"})
    assert robot.at(1.1).braked and "brakes hold the arm" in status_html(robot.at(1.1), "/feedforward", "")
    assert not robot.at(1.0 + SILENT + 0.1).braked
    robot.on_report(1.0, "/simulator", "active", {"mode": "running", "brakes": "off"})
    seen = robot.at(1.1)
    assert "brakes" not in status_html(seen, "/feedforward", "")
    assert not seen.lost and not seen.silent and seen.mode == "running" and seen.latency_us == (120.0, 300.0)
    assert np.allclose([seen.q, seen.measured, seen.commanded], [[0.1, 0.2], [1.0, 2.0], [1.5, 2.5]])
    assert seen.rejections == {"not_finite": 3}
    text = status_html(seen, "/feedforward", "")
    assert "running" in text and "3 not finite" in text and "120 µs" in text and "LOST" not in text
    late = robot.at(1.0 + LOST + 0.1)
    assert late.lost == "no joint state for 0.6 s" and np.isnan(late.measured).all() and np.isnan(late.commanded).all()
    assert late.mode == "running"
    gone = robot.at(1.0 + SILENT + 0.1)
    assert gone.silent and gone.mode == "" and gone.rejections == {} and np.isnan(gone.latency_us).all()
    text = status_html(gone, "/feedforward", "stop sent")
    assert text.count("LOST") == 2 and "running" not in text and "500" not in text and "stop sent" in text
    robot.on_state(10.0, ["elbow"], [math.nan], [])
    robot.on_state(10.0, ["elbow"], [], [])
    robot.on_state(10.0, ["wheel"], [1.0], [])
    robot.on_command(10.0, ["elbow"], [])
    robot.on_target(10.0, "nowhere", [0.1, 0.2, 0.3], [0.0, 0.0, 0.0, 1.0])
    robot.on_target(10.0, arm.body_names[0], [0.1, math.nan, 0.3], [0.0, 0.0, 0.0, 1.0])
    assert robot.at(10.0).lost and robot.at(10.0).target is None
    robot.on_target(10.0, arm.body_names[0], [0.1, 0.2, 0.3], [0.0, 0.0, 0.0, 1.0])
    assert robot.at(10.0).target[:3, 3].tolist() == [0.1, 0.2, 0.3] and robot.at(10.1 + LOST).target is None


@pytest.mark.parametrize("arguments, text", [
    (["nowhere.urdf"], "cannot read"), (["none"], "sample"), (["a.urdf", "--sample", "iiwa"], "named once"),
    (["iiwa", "--actuated", "x"], "x"), (["iiwa", "--constraints", "delta"], "do not fit"),
    (["iiwa", "--play", "nowhere.yaml"], "cannot read"),
    (["iiwa", "--allow-host", "http://robot"], "--allow-host"),
    (["iiwa", "--port", "70000"], "70000"), (["iiwa", "--live", "--play", "x"], "cannot be combined"),
    (["iiwa", "--live", "--node", "x"], "full")])
def test_wrong_arguments_are_said(arguments, text, capsys):
    pytest.importorskip("viser")
    assert main(["view", *arguments, "--no-browser"]) == 1
    assert text in capsys.readouterr().err


def test_a_missing_viser_is_said_with_its_command(monkeypatch, capsys):
    monkeypatch.setitem(__import__("sys").modules, "viser", None)
    assert main(["view", "iiwa"]) == 1
    assert "pip install 'rbd_ros[view]'" in capsys.readouterr().err
    assert main(["demo", "--view"]) == 1 and main(["demo", "sea", "--view"]) == 1


def test_a_motion_of_the_library_is_shown_from_python(arm):
    pytest.importorskip("viser")
    from rbd_ros.view.showing import view_of
    view = view_of(rbd.sample_path("two_link"), from_message(message(), arm, arm.neutral(), "test"), port=0)
    view.player.seek(2.0)
    assert np.allclose(view.q, [-0.5, 1.0])
    serving.end(view.server)


def test_it_serves_this_machine_alone_on_a_free_port():
    pytest.importorskip("viser")
    first = serving.open_server(port=0)
    second = serving.open_server(port=first.get_port())
    try:
        assert first.get_host() == "127.0.0.1" and first.get_port() != second.get_port()
        assert serving.url_of(first) == f"http://localhost:{first.get_port()}/{first.gate.token}/"
        assert first.gate.token != second.gate.token
    finally:
        serving.end(first)
        serving.end(second)
