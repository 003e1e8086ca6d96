"""Scenes as data: 20 robots, shapes that cannot be read, boxes of inertia, sliders, loops."""

import base64
import json
import time
import tracemalloc
from types import SimpleNamespace

import numpy as np
import pytest
from support.robots import urdf_paths

import rbd_ros as rbd
from rbd_ros.core.errors import RbdError
from rbd_ros.core.model.checks.diagnosis import Finding
from rbd_ros.core.model.files import xml_tree
from rbd_ros.view.drawing import place_camera
from rbd_ros.view.geometry import visuals
from rbd_ros.core.model.shapes.collada import read_collada
from rbd_ros.view.geometry.inertia_boxes import inertia_box
from rbd_ros.core.model.shapes.meshes import find_mesh, read_mesh
from rbd_ros.view.loops import held, ties
from rbd_ros.view.robot_view import SIDES, RobotView
from rbd_ros.view.scene import load_scene, scene_of, start_of
from rbd_ros.view.serving import FIELD
from rbd_ros.view.sliders import moved, rpy_of, sliders_of, values_of

ROBOTS = ("a1_description/a1", "alexander_description/alexander_v1.lowerBodyOnly", "allegro_hand_description/"
          "allegro_right_hand", "anymal_c_simple_description/anymal", "bolt_description/bolt",
          "borinot_description/borinot_flying_arm_2", "double_pendulum_description/double_pendulum_continuous",
          "finger_edu_description/finger_edu", "go2_description/go2", "hector_description/quadrotor_base",
          "hyq_description/hyq_no_sensors", "iris_description/iris", "kinova_description/kinova",
          "laikago_description/laikago", "panda_description/panda", "pr2_description/pr2",
          "romeo_description/romeo_small", "solo_description/solo12", "talos_data/talos_left_arm",
          "tiago_description/tiago", "ur_description/ur10_robot", "xarm_description/xarm7")
# A box of 2 × 1 × 0.5 units of 0.1 m, one polygon per face, turned a quarter about z and moved by its node.
COLLADA = """<COLLADA xmlns="http://www.collada.org/2005/11/COLLADASchema"><asset><unit meter="0.1"/></asset>
<library_effects><effect id="e"><profile_COMMON><technique sid="t"><phong><diffuse><color>1 0.5 0 1</color></diffuse>
</phong></technique></profile_COMMON></effect></library_effects>
<library_materials><material id="m"><instance_effect url="#e"/></material></library_materials>
<library_geometries><geometry id="g"><mesh><source id="s"><float_array id="a" count="24">
0 0 0 2 0 0 2 1 0 0 1 0 0 0 0.5 2 0 0.5 2 1 0.5 0 1 0.5</float_array><technique_common>
<accessor source="#a" count="8" stride="3"/></technique_common></source>
<vertices id="v"><input semantic="POSITION" source="#s"/></vertices>
<polylist count="6" material="paint"><input semantic="VERTEX" source="#v" offset="0"/><vcount>4 4 4 4 4 4</vcount>
<p>0 3 2 1 4 5 6 7 0 1 5 4 1 2 6 5 2 3 7 6 3 0 4 7</p></polylist></mesh></geometry></library_geometries>
<library_visual_scenes><visual_scene id="w"><node><translate>5 0 0</translate><rotate>0 0 1 90</rotate>
<instance_geometry url="#g"><bind_material><technique_common><instance_material symbol="paint" target="#m"/>
</technique_common></bind_material></instance_geometry></node></visual_scene></library_visual_scenes>
<scene><instance_visual_scene url="#w"/></scene></COLLADA>"""


def robot(visual, inertia='<inertia ixx="0.02" iyy="0.05" izz="0.05" ixy="0" ixz="0" iyz="0"/>', more=""):
    return (f'<robot name="r"><link name="base"/><link name="arm"><inertial><origin xyz="0.1 0 0"/><mass value="2"/>'
            f'{inertia}</inertial>{visual}{more}</link><joint name="j" type="revolute"><parent link="base"/>'
            '<child link="arm"/><axis xyz="0 1 0"/><limit lower="-1" upper="2" effort="3" velocity="1"/></joint>'
            "</robot>")


@pytest.fixture(scope="module")
def server():
    pytest.importorskip("viser")
    from rbd_ros.view.serving import end, open_server

    found = open_server(port=0)
    yield found
    end(found)


@pytest.mark.parametrize("name", ROBOTS)
def test_robots_open_with_their_meshes(name, server):
    """Every shape is read as described, is finite, and of a robot's size; sliders can say where the robot is; all of it
    is drawn.
    """
    if name not in urdf_paths():
        pytest.skip("example-robot-data is not installed")
    scene = load_scene(urdf_paths()[name])
    assert scene.findings == ()
    q = start_of(scene.model)
    low, high = scene.bounds(q)
    assert (high - low > 0.01).all() and (high - low < 4.0).all()
    assert sum(shape.source == "visual" for shapes in scene.shapes.values() for shape in shapes) > 0
    sliders = sliders_of(scene.model)
    for slider, value in zip(sliders, values_of(scene.model, sliders, q), strict=True):
        assert slider.lower <= value <= slider.upper
        q = moved(q, slider, value)
    assert np.abs(scene.model.difference(start_of(scene.model), q)).max(initial=0.0) < 1e-3
    server.scene.reset()
    server.gui.reset()
    view = RobotView(server, scene)
    view.move(scene.model.random_configuration(0))
    assert len(view.drawing._shapes) == sum(map(len, scene.shapes.values()))


def test_a_box_is_that_of_a_box():
    sides, mass = np.array([0.4, 0.1, 0.25]), 3.0
    moments = mass / 12.0 * (np.sum(sides**2) - sides**2)
    R = rbd.lie.so3.from_rpy([0.3, -0.8, 1.2])
    box = inertia_box("link", rbd.Inertia(mass, np.array([0.1, 0.2, 0.3]), R @ np.diag(moments) @ R.T))
    assert np.allclose(np.sort(box.sides), np.sort(sides)) and box.problem == ""
    half = np.abs(box.pose[:3, :3]) @ (box.sides / 2)
    assert np.allclose(half, np.abs(R) @ (sides / 2)) and np.allclose(box.pose[:3, 3], [0.1, 0.2, 0.3])
    bad = inertia_box("link", rbd.Inertia(1.0, np.zeros(3), np.diag([0.1, 0.1, 0.5])))
    assert "triangle inequality" in bad.problem and bad.shape.colour != box.shape.colour and bad.sides.min() == 0.0
    assert inertia_box("link", rbd.Inertia.zero()) is None


def test_collada_in_units_places_and_colours(tmp_path):
    file = tmp_path / "box.dae"
    file.write_text(COLLADA)
    surface, = read_collada(file)
    assert np.allclose([surface.points.min(axis=0), surface.points.max(axis=0)], [[0.4, 0, 0], [0.5, 0.2, 0.05]])
    assert surface.colour == (1.0, 0.5, 0.0, 1.0) and len(surface.faces) == 12
    a, b, c = (surface.points[surface.faces[:, i]] for i in range(3))
    normals, middle = np.cross(b - a, c - a), surface.points.mean(axis=0)
    assert (np.sum(normals * (a - middle), axis=1) > 0.0).all()    # outwards
    assert np.isclose(np.abs(normals).sum() / 2.0, 2 * (0.2 * 0.1 + 0.2 * 0.05 + 0.1 * 0.05))


@pytest.mark.parametrize("content", [
    "", "<COLLADA/>", "<!DOCTYPE a>" + COLLADA, COLLADA.replace("2 1 0 0 1", "2 x 0 0 1"),
    COLLADA.replace('url="#g"', 'url="#h"'), COLLADA.replace("3 0 4 7", "3 0 4 70")])
def test_broken_meshes_are_said(tmp_path, content):
    file = tmp_path / "broken.dae"
    file.write_text(content)
    with pytest.raises(RbdError, match=r"broken\.dae"):
        read_mesh(file)


def instances(count):
    """Nodes of which each has the next one twice."""
    nodes = "".join(f'<node id="n{i}"><instance_node url="#n{i + 1}"/><instance_node url="#n{i + 1}"/></node>'
                    for i in range(count))
    return COLLADA.replace("<node>", f'{nodes}<node id="n{count}">')


HOSTILE = {
    "2^30 nodes": instances(30),
    "2^30 nodes of nothing": instances(30).replace('<instance_geometry url="#g">', '<nothing>').replace(
        "</instance_geometry>", "</nothing>"),
    "a polygon of 10^9 corners": COLLADA.replace("<vcount>4", "<vcount>1000000000"),
    "polygons of negative corners": COLLADA.replace("<vcount>4 4", "<vcount>-4 12"),
    "corners of 10^9 numbers": COLLADA.replace('offset="0"', 'offset="1000000000"'),
    "a document type behind a comment": f"<!--{5000 * ' '}--><!DOCTYPE a [<!ENTITY b '2'>]>" + COLLADA,
    "elements": COLLADA.replace("<library_effects>", 2000 * "<a/>" + "<library_effects>")}


@pytest.mark.parametrize("content, encoding", [*((name, "utf-8") for name in HOSTILE),
                                               ("a document type behind a comment", "utf-16")])
def test_hostile_meshes_are_refused_at_once(tmp_path, monkeypatch, content, encoding):
    monkeypatch.setattr(xml_tree, "MAX_ELEMENTS", 1000)
    file = tmp_path / "hostile.dae"
    file.write_text(HOSTILE[content], encoding=encoding)
    tracemalloc.start()
    begin = time.process_time()
    try:
        with pytest.raises(RbdError, match=r"cannot read 'hostile\.dae'"):
            read_mesh(file)
        assert time.process_time() - begin < 60.0 and tracemalloc.get_traced_memory()[1] < 2**30
    finally:
        tracemalloc.stop()


def gltf(**changes):
    views = [{"buffer": 0, "byteLength": 36}]
    tree = {"asset": {"version": "2.0"}, "scene": 0, "scenes": [{"nodes": [0]}], "nodes": [{"mesh": 0}],
            "meshes": [{"primitives": [{"attributes": {"POSITION": 0}}]}],
            "accessors": [{"bufferView": 0, "componentType": 5126, "count": 3, "type": "VEC3"}], "bufferViews": views,
            "buffers": [{"byteLength": 36, "uri": "data:;base64," + base64.b64encode(
                np.eye(3, dtype=np.float32).tobytes()).decode()}]}
    return json.dumps(tree | changes)


@pytest.mark.parametrize("changes", [
    {"accessors": [{"componentType": 5126, "count": 2**28, "type": "VEC3"}]},
    {"accessors": [{"bufferView": 0, "componentType": 5126, "count": 3, "type": "VEC3"},
                   {"componentType": 5126, "count": -2**28, "type": "VEC3"}]},
    {"bufferViews": 20 * [{"buffer": 0, "byteLength": 2**24}]},
    {"nodes": 2**12 * [{"mesh": 0}], "meshes": [{"primitives": 2**11 * [{"attributes": {"POSITION": 0}}]}]},
    {"nodes": [{"mesh": 7}]}, {"accessors": 3}])
def test_hostile_gltf_files_are_refused(tmp_path, changes):
    pytest.importorskip("trimesh")
    for name, content in (("good", gltf()), ("hostile", gltf(**changes))):
        (tmp_path / f"{name}.gltf").write_text(content)
    surface, = read_mesh(tmp_path / "good.gltf")
    assert len(surface.faces) == 1
    with pytest.raises(RbdError, match=r"expected at most|no glTF|larger"):
        read_mesh(tmp_path / "hostile.gltf")


def test_all_meshes_together_are_bounded(tmp_path, monkeypatch):
    (tmp_path / "box.dae").write_text(COLLADA)
    (tmp_path / "r.urdf").write_text(robot('<visual><geometry><mesh filename="box.dae"/></geometry></visual>' * 3))
    monkeypatch.setattr(visuals, "MOST_POINTS", 20)
    scene = load_scene(tmp_path / "r.urdf")
    assert [shape.source for shape in scene.shapes["arm"]] == ["visual", "visual", "stand-in"]
    assert "more than 20 points" in scene.findings[0].message


@pytest.mark.parametrize("visual, source", [
    ('<visual><geometry><mesh filename="package://nowhere/a.stl"/></geometry></visual>', "box"),
    ('<visual><geometry><mesh filename="a.stl"/></geometry></visual><collision><geometry><sphere radius="0.1"/>'
     '</geometry></collision>', "sphere"),
    ('<visual><geometry><box size="1 nan 1"/></geometry></visual>', "box"),
    ('<visual><geometry><mesh filename="http://a.de/b.stl"/></geometry></visual>', "box"),
    ('<visual/>', "box")])
def test_what_cannot_be_read_has_a_stand_in_and_is_said(visual, source):
    scene = load_scene(robot(visual))
    shape, = scene.shapes["arm"]
    assert (shape.kind, shape.source) == (source, "stand-in")
    finding, = scene.findings
    assert finding.subject == "arm" and finding.severity == "note" and finding.message


def test_meshes_are_found_in_packages_and_beside_the_description(tmp_path, monkeypatch):
    (tmp_path / "share/ament_index/resource_index/packages").mkdir(parents=True)
    (tmp_path / "share/ament_index/resource_index/packages/arm_description").touch()
    mesh = tmp_path / "share/arm_description/meshes/a.stl"
    mesh.parent.mkdir(parents=True)
    mesh.touch()
    description = tmp_path / "share/arm_description/urdf/arm.urdf"
    description.parent.mkdir()
    name = "package://arm_description/meshes/a.stl"
    monkeypatch.setenv("AMENT_PREFIX_PATH", "")
    assert find_mesh(name, description) == find_mesh("../meshes/a.stl", description).resolve() == mesh
    with pytest.raises(RbdError, match=r"no package 'arm_description'.*ROS_PACKAGE_PATH"):
        find_mesh(name, None)
    monkeypatch.setenv("AMENT_PREFIX_PATH", str(tmp_path))
    assert find_mesh(name, None) == mesh == find_mesh(f"file://{mesh}", None)


@pytest.mark.parametrize("name", ["package://arm/../../secret.stl", "package://arm/meshes/../../secret.stl",
                                  "package://../secret.stl", "package://./secret.stl", "package:///secret.stl"])
def test_names_of_packages_do_not_leave_them(tmp_path, monkeypatch, name):
    for folder in ("share/ament_index/resource_index/packages/arm", "share/arm/meshes", "share/arm/urdf"):
        (tmp_path / folder).mkdir(parents=True)
    for place in (tmp_path, tmp_path / "share", tmp_path / "share/arm"):
        (place / "secret.stl").touch()
    for prefix in (str(tmp_path), ""):
        monkeypatch.setenv("AMENT_PREFIX_PATH", prefix)
        with pytest.raises(RbdError, match="inside the package"):
            find_mesh(name, tmp_path / "share/arm/urdf/arm.urdf")
        with pytest.raises(RbdError, match="inside the package"):
            rbd.load_urdf(name.replace("stl", "urdf"))
    monkeypatch.setenv("AMENT_PREFIX_PATH", str(tmp_path))
    assert find_mesh("package://arm//meshes/../secret.stl", None) == tmp_path / "share/arm/secret.stl"


def test_a_description_that_came_as_text_opens_files_of_packages_alone(tmp_path, monkeypatch):
    """One from a topic does not choose among the files of this computer."""
    (tmp_path / "ours/share/arm").mkdir(parents=True)
    (tmp_path / "box.dae").write_text(COLLADA)
    (tmp_path / "ours/share/arm/box.dae").write_text(COLLADA)
    monkeypatch.setenv("AMENT_PREFIX_PATH", str(tmp_path / "ours"))
    monkeypatch.chdir(tmp_path)

    def source(filename):
        scene = load_scene(robot(f'<visual><geometry><mesh filename="{filename}"/></geometry></visual>'))
        return scene.shapes["arm"][0].source

    inside = f"file://{tmp_path}/ours/share/arm"
    assert source(f"{inside}/box.dae") == "visual"
    for filename in (f"file://{tmp_path}/box.dae", f"{inside}/../../../box.dae", f"{tmp_path}/box.dae", "box.dae",
                     "a" * 5000):
        assert source(filename) == "stand-in"


def test_primitives_colours_and_poses():
    scene = load_scene(robot('<visual><origin xyz="0 0 1" rpy="0 1.5707963267948966 0"/><geometry>'
                             '<cylinder radius="0.1" length="0.6"/></geometry><material name="red"/></visual>').replace(
        "<link name=\"base\"/>", '<material name="red"><color rgba="1 0 0 1"/></material><link name="base"/>'))
    shape, = scene.shapes["arm"]
    assert shape.size == (0.1, 0.6) and shape.colour == (1.0, 0.0, 0.0, 1.0)
    assert np.allclose(scene.bounds(np.zeros(1))[1], [0.3, 0.1, 1.1])
    q = np.array([np.pi / 2])
    assert np.allclose(scene.bounds(q)[0], [0.0, -0.1, -0.3])    # a quarter about y: z becomes x, x becomes -z
    assert np.allclose(scene.bounds(q)[1], [1.1, 0.1, 0.3])


def test_the_first_picture_is_of_an_arm(server):
    """The sample: in two tones, every link with a shape, joined; findings, frames and names of loops do not float over
    it until they are asked for.
    """
    scene = load_scene(rbd.sample_path("iiwa"))
    colours = {shape.colour for shapes in scene.shapes.values() for shape in shapes}
    assert len(colours) >= 2 and all(len(shapes) >= 2 for shapes in scene.shapes.values())
    low, high = scene.bounds(scene.model.neutral())
    assert np.allclose(low, [-0.105, -0.105, -0.36], atol=0.01) and high[2] > 0.9    # as high as the real one
    view = RobotView(server, scene, findings=[Finding("warning", "odd", "link_2", "why", "fix")])
    assert view.drawing._labels and not any(label.visible for label in view.drawing._labels)
    assert not any(frame.show_axes for frame in view.drawing._links)
    view.drawing.show("frames", True)
    assert all(frame.show_axes for frame in view.drawing._links)
    view.drawing.show("labels", True)
    assert all(label.visible for label in view.drawing._labels)


def test_loops_are_a_list_and_named_in_the_picture_where_they_are_open(server):
    model = rbd.sample("delta")
    constraints = rbd.sample_constraints("delta", model)
    view = RobotView(server, scene_of(model, rbd.sample_path("delta")), constraints)
    names = list(constraints.names)
    labels = {name: view.drawing._ties[name][3] for name in names}
    assert not any(label.visible for label in labels.values())
    assert all(name in view._tied.content for name in names) and "open" not in view._tied.content
    q = view.q.copy()
    q[model.joint("motor_1").idx_q] += 0.1
    view.move(q)
    assert {name for name, label in labels.items() if label.visible} == {"ball_1a", "ball_1b"}
    assert view._tied.content.count("open by") == 2


def test_the_camera_goes_to_each_side_of_what_is_shown():
    low, high = np.array([-0.1, -0.2, 0.0]), np.array([0.3, 0.2, 1.0])
    for direction in SIDES.values():
        camera = SimpleNamespace()
        place_camera(camera, low, high, direction)
        assert np.allclose(camera.look_at, [0.1, 0.0, 0.5])
        distance = np.linalg.norm(np.subtract(camera.position, camera.look_at))
        assert distance * np.sin(FIELD / 2) >= 0.5 * np.linalg.norm(high - low)    # all of it is in the picture


def test_a_robot_without_shapes_is_drawn_as_rods():
    scene = load_scene(rbd.sample_path("five_bar"))
    assert {shape.source for shapes in scene.shapes.values() for shape in shapes} == {"skeleton"}
    low, high = scene.bounds(start_of(scene.model))
    assert np.linalg.norm(high - low) > 0.2


@pytest.mark.parametrize("seed", range(5))
def test_sliders_of_a_floating_base_move_one_thing_each(seed):
    model = rbd.sample("biped", root="floating")
    sliders, q = sliders_of(model), model.random_configuration(seed)
    assert [slider.label for slider in sliders[:6]] == [
        "root_joint x", "root_joint y", "root_joint z", "root_joint roll", "root_joint pitch", "root_joint yaw"]
    before = np.array(values_of(model, sliders, q))
    for i, slider in enumerate(sliders):
        value = 0.3 * slider.lower + 0.4 * slider.upper
        after = np.array(values_of(model, sliders, moved(q, slider, value)))
        assert abs(after[i] - value) < 1e-3
        if abs(before[4]) < 1.5:    # roll and yaw are about one axis at ±π/2
            assert np.abs(np.delete(after - before, i)).max() < 1e-3
    assert np.allclose(rbd.lie.so3.from_rpy(rpy_of(np.eye(3))), np.eye(3))


@pytest.mark.parametrize("name", ["four_bar", "delta", "gripper", "ball_on_plate", "stewart"])
def test_loops_are_drawn_where_they_close(name):
    model = rbd.sample(name)
    constraints = rbd.sample_constraints(name, model)
    scene = scene_of(model, rbd.sample_path(name))
    q = rbd.project(model, constraints, start_of(model)).q
    found = ties(model, constraints, scene.poses(q))
    assert found and max(tie.gap for tie in found) < 1e-8
    off = ties(model, constraints, scene.poses(q + 0.0 if name == "ball_on_plate" else model.integrate(
        q, 0.1 * np.random.default_rng(0).normal(size=model.nv))))
    assert name == "ball_on_plate" or max(tie.gap for tie in off) > 1e-3


def test_a_held_slider_leads():
    model = rbd.sample("four_bar")
    constraints = rbd.sample_constraints("four_bar", model)
    q = rbd.project(model, constraints, start_of(model)).q
    for joint in model.joints:
        q_new = q.copy()
        q_new[joint.idx_q] += 0.2
        found = rbd.project(model, held(constraints, joint.name, float(q_new[joint.idx_q])), q_new).q
        assert abs(found[joint.idx_q] - q_new[joint.idx_q]) < 1e-9
        assert np.abs(rbd.constraint_values(model, constraints, found)).max() < 1e-9
