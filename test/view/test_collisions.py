"""Collision shapes and obstacles in the view, without a browser: colours, nearest points, dragging, texts."""
from __future__ import annotations

import argparse
import re

import numpy as np
import pytest
from support.arm import arm_to_sphere, shaped_arm_urdf

import rbd_ros as rbd
from rbd_ros.core.lie import se3
from rbd_ros.core.motion.collision.clearance import Clearance
from rbd_ros.runtime.planning.collision_markers import HIT
from rbd_ros.view.collisions import certified, clearance_html, nearest_html, obstacles_yaml
from rbd_ros.view.drawing import rgb
from rbd_ros.view.playing import play_in
from rbd_ros.view.robot_view import RobotView
from rbd_ros.view.scene import load_scene
from rbd_ros.view.timeline import Timeline

pytest.importorskip("coal")
URDF = shaped_arm_urdf()
MODEL = rbd.load_urdf(URDF)
BALL = {"name": "ball", "shape": "sphere", "radius": 0.05, "frame": [0.72, 0.0, 0.0]}
CENTRE = (0.72, 0.0)
AWAY, INSIDE = np.array([0.8, 0.5]), np.zeros(2)


@pytest.fixture
def view():
    pytest.importorskip("viser")
    from rbd_ros.view.serving import end, open_server

    server = open_server(port=0)
    yield RobotView(server, load_scene(URDF), collisions=rbd.CollisionModel.from_urdf(URDF, MODEL, obstacles=[BALL]))
    end(server)


def drawn(view, name):
    return [handle for handle, _ in view.collisions._handles[name]]


def is_red(view, name):
    colours = {tuple(handle.color) for handle in drawn(view, name)}
    return colours == {rgb(HIT)}


def test_what_hits_is_red_and_shown_and_the_nearest_points_are_joined(view):
    collisions = view.collisions
    view.move(AWAY)
    assert not any(is_red(view, name) for name in ("upper", "lower", "ball"))
    assert not any(handle.visible for handle in drawn(view, "lower")) and all(
        handle.visible for handle in drawn(view, "ball"))
    first, second = collisions._line.points[0]
    distance = arm_to_sphere(AWAY[None], CENTRE, 0.05)[0]
    assert np.linalg.norm(second - first) == pytest.approx(distance, abs=1e-6)
    assert f"upper – ball: {1e3 * distance:.1f} mm" in collisions.nearest.content
    view.move(INSIDE)
    assert is_red(view, "lower") and is_red(view, "ball") and not is_red(view, "upper")
    assert all(handle.visible for handle in drawn(view, "lower")) and "depth 80.0 mm" in collisions.nearest.content
    view.move(AWAY)
    assert not is_red(view, "lower") and not is_red(view, "ball")
    collisions.show(True)
    assert all(handle.visible for name in ("upper", "lower", "ball") for handle in drawn(view, name))


def test_shapes_of_links_are_below_their_frames(view):
    """So that they move with the robot: a capsule is a cylinder and two balls."""
    paths = [handle.name for handle in drawn(view, "lower")]
    assert len(paths) == 3 and all(path.startswith("/robot/links/lower/") for path in paths)
    assert [handle.name.startswith("/obstacles/ball/") for handle in drawn(view, "ball")] == [True]


def test_obstacles_are_dragged_added_and_removed(view):
    collisions, changes = view.collisions, []
    collisions.on_change = lambda: changes.append(True)
    view.move(INSIDE)
    collisions.place("ball", se3.pose([0.72, 0.3, 0.0]))
    assert not is_red(view, "lower") and "lower – ball: 220.0 mm" in collisions.nearest.content
    name = collisions.add("box")
    assert name == "box_0" and collisions.add("box") == "box_1"
    collisions.place(name, se3.pose([0.4, 0.0, 0.0], [0.0, 0.3, 0.0]))
    assert is_red(view, "upper") and is_red(view, name) and not is_red(view, "box_1")
    assert collisions._dragging._link.options == ("nothing", "ball", "box_0", "box_1")
    collisions.remove(name)
    collisions.remove("box_1")
    assert [piece.name for piece in collisions.obstacles] == ["ball"] and not is_red(view, "upper")
    collisions.remove("nothing")
    assert [piece.name for piece in collisions.obstacles] == ["ball"]


def test_a_handle_drags_an_obstacle(view):
    """As a browser says it; numbers that are no pose leave it where it is."""
    handle = view.collisions._dragging
    handle.choose("ball")
    view.collisions._follow()
    np.testing.assert_allclose(handle._handle.position, [0.72, 0.0, 0.0])
    handle._asked = (1.0, 0.0, 0.0, 0.0), (0.5, 0.0, 0.25)
    handle._answer(True)
    np.testing.assert_allclose(view.collisions.obstacles[0].shape.pose[:3, 3], [0.5, 0.0, 0.25])
    handle._asked = (0.0, 0.0, 0.0, 0.0), (np.nan, 0.0, 0.0)
    handle._answer(True)
    np.testing.assert_allclose(view.collisions.obstacles[0].shape.pose[:3, 3], [0.5, 0.0, 0.25])


def test_boxes_of_a_cloud_are_one_obstacle(view):
    collisions = view.collisions
    text = "obstacles: [{name: scan, shape: points, voxel_size: 0.1, points: [[0.72, 0.01, 0.01], [0.72, 0.31, 0.01]]}]"
    collisions._change([piece for piece in collisions.collisions.with_obstacles(text).pieces if piece.body < 0])
    assert collisions._dragging._link.options == ("nothing", "ball", "scan")
    view.move(INSIDE)
    assert is_red(view, "scan/0") and not is_red(view, "scan/1")
    collisions.place("scan", se3.pose([0.72, -0.25, 0.05], [0.0, 0.0, 0.0]))
    assert not is_red(view, "scan/0") and is_red(view, "scan/1")
    turned = se3.pose([0.72, -0.25, 0.05], [0.0, 0.0, np.pi])
    collisions.place("scan", turned)
    assert not is_red(view, "scan/1")
    np.testing.assert_allclose(collisions.obstacles[-1].shape.pose, turned @ se3.pose([0.0, 0.3, 0.0]), atol=1e-12)
    collisions.remove("scan")
    assert [piece.name for piece in collisions.obstacles] == ["ball"]


def test_the_text_gives_the_same_obstacles_again():
    rng = np.random.default_rng(0)
    def frame():
        return se3.pose(rng.normal(size=3), rng.uniform(-1, 1, 3))

    cell = [BALL, {"name": "b", "shape": "box", "size": [0.1, 0.2, 0.3], "frame": frame()},
            {"name": "c", "shape": "cylinder", "radius": 0.1, "length": 0.5, "frame": frame()},
            {"name": "d", "shape": "capsule", "radius": 0.1, "length": 0.5, "frame": frame()},
            {"name": "e", "shape": "plane", "frame": frame()},
            {"name": "f: g", "shape": "mesh", "points": rng.normal(size=(20, 3)), "frame": frame()}]
    first = rbd.CollisionModel.from_urdf(URDF, MODEL, obstacles=cell)
    text = obstacles_yaml([piece for piece in first.pieces if not piece.own])
    again = rbd.CollisionModel.from_urdf(URDF, MODEL).with_obstacles(text, trusted=False)
    q = rng.uniform(-1, 1, (10, 2))
    assert again.pairs == first.pairs
    apart = first.distances(q) > 0
    np.testing.assert_allclose(again.distances(q)[apart], first.distances(q)[apart], atol=1e-5)


def test_a_motion_is_said_to_hit_and_not_to_after_the_obstacle_was_dragged_away(view, monkeypatch):
    add, made = view.server.gui.add_html, []
    monkeypatch.setattr(view.server.gui, "add_html", lambda *given, **options: made.append(add(*given, **options)) or
                        made[-1])
    t = np.linspace(0.0, 2.0, 50)
    q = np.stack([np.linspace(-1.0, 1.0, 50), np.zeros(50)], axis=1)
    play_in(view, Timeline(MODEL, t, q))
    [told] = [each for each in made if "overlap by" in each.content]
    found = certified(view.collisions.collisions, q, t)
    assert found.pair == ("lower", "ball") and found.time == pytest.approx(1.0, abs=0.02)
    assert told.content == clearance_html(found) and re.search(r"overlap by 0\.0[78]\d* m at (0\.9|1\.0)", told.content)
    view.collisions.place("ball", se3.pose([0.72, 1.0, 0.0]))
    view.collisions.on_change()
    assert "The motion hits nothing" in told.content
    assert certified(view.collisions.collisions, q[:1], t[:1]) == Clearance(True)


def test_sliders_follow_a_motion(view):
    t = np.linspace(0.0, 2.0, 50)
    player = play_in(view, Timeline(MODEL, t, np.stack([0.5 * t, -0.2 * t], axis=1)))
    for now in (0.0, 1.0, 2.0):
        player.seek(now)
        assert [handle.value for handle in view._handles] == pytest.approx([0.5 * now, -0.2 * now], abs=1e-3)


def test_html_is_escaped():
    text = nearest_html([("<b>", "&")], np.array([-0.001]))
    assert "&lt;b&gt; – &amp;: depth 1.0 mm" in text and "<b>:" not in text
    assert "&lt;b&gt;" in clearance_html(Clearance(False, ("<b>", "c"), 1.0, 0.0, "<b> and c overlap"))


def test_the_command_makes_it(tmp_path):
    pytest.importorskip("viser")
    from rbd_ros.cli.view import view as command
    from rbd_ros.view.serving import end

    urdf, cell = tmp_path / "arm.urdf", tmp_path / "cell.yaml"
    urdf.write_text(URDF)
    cell.write_text("obstacles:\n- {name: ball, shape: sphere, radius: 0.05, frame: [0.72, 0.0, 0.0]}\n")
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    for words, names in ((["--obstacles", str(cell)], ["ball"]), (["--collisions"], []), ([], None)):
        view = command.make(parser.parse_args([str(urdf), "--port", "0", *words]))
        end(view.server)
        assert names == (None if view.collisions is None else [piece.name for piece in view.collisions.obstacles])
    with pytest.raises(rbd.RbdError, match="cannot read obstacles"):
        command.make(parser.parse_args([str(urdf), "--port", "0", "--obstacles", str(tmp_path / "none.yaml")]))
