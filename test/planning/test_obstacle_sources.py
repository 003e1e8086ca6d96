"""Obstacles of markers and planning scenes: where they stand, by hand; what is wrong with them leaves the earlier ones.
"""
from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from support.arm import shaped_arm_urdf
from support.obstacle_messages import attached, marker, markers, pose, primitive, scene, thing

import rbd_ros as rbd
from rbd_ros.runtime.planning.obstacle_messages import BALL, BOX, CONE, PRISM, ROD
from rbd_ros.runtime.planning.robot_collisions import UNAWARE
from rbd_ros.runtime.planning.surroundings import Surroundings

pytest.importorskip("coal")
FLANGE = ('<link name="stand"/><joint name="fix" type="fixed"><parent link="base"/><child link="stand"/>'
          '<origin xyz="0 0 1" rpy="0 0 1.5707963267948966"/></joint></robot>')
URDF = shaped_arm_urdf().replace("</robot>", FLANGE)
MODEL = rbd.load_urdf(URDF)
ROBOT = rbd.CollisionModel.from_urdf(URDF, MODEL)
HALF = np.sqrt(0.5)
CUBE, SPHERE, CYLINDER = 1, 2, 3


def surroundings(frame="world"):
    return Surroundings(ROBOT, frame)


def names(made):
    return [piece.name for piece in made.collisions.pieces if not piece.own]


def far(made, point, name=None):
    """Signed distance of a small ball at a point (x, y, z) from what stands there, but for its radius."""
    ball = "<robot name='b'><link name='root'/><link name='ball'><inertial><mass value='1'/><inertia ixx='1' ixy='0' "\
           "ixz='0' iyy='1' iyz='0' izz='1'/></inertial><collision><geometry><sphere radius='0.001'/></geometry>"\
           "</collision></link><joint name='j' type='prismatic'><parent link='root'/><child link='ball'/>"\
           f"<origin xyz='{point[0]} {point[1]} {point[2]}'/><axis xyz='1 0 0'/><limit effort='1' velocity='1' "\
           "lower='-1' upper='1'/></joint></robot>"
    model = rbd.load_urdf(ball)
    empty = rbd.CollisionModel.from_urdf(ball, model)
    pieces = [piece for piece in made.collisions.pieces if not piece.own and name in (None, piece.name)]
    return float(type(empty)(model, [*empty.pieces, *pieces], ()).distances(np.zeros(1)).min()) + 0.001


# ---- markers

@pytest.mark.parametrize(("message", "at", "distance"), [
    (marker(CUBE, (1.0, 2.0, 3.0), (0.2, 0.4, 0.6)), (1.0, 3.0, 3.0), 0.8),
    (marker(CUBE, (1.0, 2.0, 3.0), (0.2, 0.4, 0.6), quaternion=(0, 0, HALF, HALF)), (1.0, 3.0, 3.0), 0.9),
    (marker(SPHERE, (0.0, 0.0, 1.0), (0.4, 0.4, 0.4)), (0.0, 0.0, 2.0), 0.8),
    (marker(CYLINDER, (0.0, 0.0, 1.0), (0.4, 0.4, 1.0)), (1.0, 0.0, 1.2), 0.8),
    (marker(6, (0.0, 0.0, 1.0), (0.2, 0.2, 0.2), points=[(1, 0, 0), (0, 5, 0)], quaternion=(0, 0, HALF, HALF)),
     (0.0, 2.0, 1.0), 0.9),
    (marker(7, (0.0, 0.0, 1.0), (0.2, 0.2, 0.2), points=[(1, 0, 0), (5, 0, 0)]), (2.0, 0.0, 1.0), 0.9),
    (marker(8, (0.0, 0.0, 0.0), (0.2, 0.1, 0.0), points=[(1, 0, 0)]), (2.0, 0.0, 0.0), 0.9),
    (marker(11, (0.0, 0.0, 0.0), (2.0, 1.0, 1.0), points=[(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 0), (1, 0, 0),
                                                        (0, 0, 1)]), (3.0, 0.0, 0.0), 1.0),
    (marker(CUBE, (1.0, 0.0, 0.0), frame="stand"), (0.0, 1.0, 2.0), 0.95),
    (marker(CUBE, (1.0, 0.0, 0.0), frame="world"), (2.0, 0.0, 0.0), 0.95),
])
def test_markers_stand_where_they_are_drawn(message, at, distance):
    made = surroundings()
    verdict = made.take_markers(markers(message))
    assert verdict, verdict.text
    assert far(made, at) == pytest.approx(distance, abs=1e-6)


def test_markers_stay_until_they_are_deleted_or_replaced():
    made = surroundings()
    for message, left in (
            ([marker(), marker(number=1), marker(ns="lidar")], ["camera/0", "camera/1", "lidar/0"]),
            ([marker(9, number=7)], ["camera/0", "camera/1", "lidar/0"]),    # a text
            ([marker(number=1, action=2)], ["camera/0", "lidar/0"]),
            ([marker(7, number=0, points=[(1, 0, 0), (2, 0, 0)])], ["camera/0/0", "camera/0/1", "lidar/0"]),
            ([marker(action=3), marker(number=9)], ["lidar/0", "camera/9"]),
            ([marker(action=3, ns="")], []), ([marker(ns="")], ["marker/0"])):
        assert made.take_markers(markers(*message))
        assert names(made) == left
    before = made.collisions
    assert made.take_markers(markers(marker(ns=""))) and made.collisions is before    # nothing new
    assert made.take_text("obstacles: [{name: post, shape: sphere, radius: 0.1}]")
    assert made.take_markers(markers(marker(action=3, ns=""))) and names(made) == ["post"]


NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(("message", "words"), [
    (marker(frame="camera_link"), "frame 'camera_link', expected one that is fixed to the root link: world, base"),
    (marker(frame="upper"), "frame 'upper', expected one that is fixed"),
    (marker(frame=""), "frame '', expected one"),
    (marker(xyz=(NAN, 0, 0)), "], expected numbers of at most 1000 m"),
    (marker(xyz=(1e300, 0, 0)), "expected numbers of at most 1000 m"),
    (marker(quaternion=(0, 0, 0, 0)), "expected a quaternion of length 1"),
    (marker(quaternion=(NAN, 0, 0, 1)), "expected a quaternion of length 1"),
    (marker(scale=(NAN, 1, 1)), "size"), (marker(scale=(-1, 1, 1)), "size must be three positive"),
    (marker(scale=(0, 1, 1)), "size must be three positive"), (marker(scale=(INF, 1, 1)), "size"),
    (marker(scale=(1e-9, 1, 1)), "expected 1e-06 to 1000 m"),
    (marker(SPHERE, scale=(1, 1, 2)), "expected that of a round one: x and y and z alike"),
    (marker(CYLINDER, scale=(1, 2, 2)), "expected that of a round one: x and y alike"),
    (marker(SPHERE, scale=(NAN, 1, 1)), "expected that of a round one"),
    (marker(0), "it is an arrow, expected a solid"), (marker(4), "a line"),
    (marker(10), "a mesh by its file, which is not opened"), (marker(99), "unknown type 99"),
    (marker(action=1), "unknown action 1"),
    (marker(6, points=[(0, 0, 0)] * 201), "201 solids, expected at most 200"),
    (marker(6, points=[(0, NAN, 0)]), "point 0 is [0.0, nan, 0.0], expected numbers"),
    (marker(11, points=[(0, 0, 0)] * 3), "has no volume"), (marker(11), "expected finite points"),
    (marker(11, points=[(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)], scale=(INF, 1, 1)), "scale is"),
    (marker(11, points=[(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)], scale=(1e300, 1, 1)), "coordinate is larger"),
    (marker(ns="x" * 80), "expected at most 80 characters"), (marker(ns="a\nERROR: b"), "none of them for control"),
])
def test_hostile_markers_are_rejected_and_the_earlier_ones_stay(message, words):
    made = surroundings()
    assert made.take_markers(markers(marker(ns="before")))
    before = made.collisions
    verdict = made.take_markers(markers(marker(number=5), message))
    assert not verdict and words in verdict.text and "obstacles rejected, the earlier ones stay" in verdict.text
    assert made.collisions is before and made.rejections.counts["malformed"] == made.rejections.total == 1
    assert len(verdict.text) < 700 and verdict.text.isprintable()
    assert made.take_markers(markers(marker(ns="more"))) and names(made) == ["before/0", "more/0"]


def test_more_markers_than_are_taken_are_rejected_together():
    made = surroundings()
    assert made.take_markers(markers(*(marker(number=k, xyz=(5, 0, 0)) for k in range(200))))
    assert not made.take_markers(markers(marker(number=200))) and "201 of them" in made.rejections.last
    assert made.obstacles == 200


# ---- planning scenes

@pytest.mark.parametrize(("item", "at", "distance"), [
    (thing("a", primitive(BOX, 0.2, 0.4, 0.6), xyz=(1, 2, 3)), (1, 3, 3), 0.8),
    (thing("a", primitive(BALL, 0.2), places=[pose((0, 0, 1))], xyz=(0, 0, 1)), (0, 0, 3), 0.8),
    (thing("a", primitive(ROD, 1.0, 0.2)), (0.1, 0, 1.0), 0.5),
    (thing("a", primitive(ROD, 1.0, 0.2)), (1, 0, 0.2), 0.8),
    (thing("a", primitive(CONE, 1.0, 0.2)), (0, 0, 1.0), 0.5),
    (thing("a", primitive(CONE, 1.0, 0.2)), (0, 0, -1.0), 0.5),
    (thing("a", primitive(PRISM, 1.0, polygon=[(0, 0, 0), (1, 0, 0), (0, 1, 0)])), (0.2, 0.2, 1.0), 0.5),
    (thing("a", meshes=[[(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1), (0.1, 0.1, 0.1)]]), (2, 0, 0), 1.0),
    (thing("a", planes=[[0, 0, 2.0, 1.0]]), (7, 8, 1.5), 2.0),
    (thing("a", planes=[[-3.0, 0, 0, -6.0]]), (-5.0, 8, 1.5), 3.0),
    (thing("a", primitive(BOX, 0.1, 0.1, 0.1), xyz=(1, 0, 0), frame="stand"), (0, 1, 2), 0.95),
])
def test_objects_stand_where_a_scene_says(item, at, distance):
    made = surroundings()
    verdict = made.take_scene(scene(item))
    assert verdict, verdict.text
    assert names(made) == ["a"] and far(made, at) == pytest.approx(distance, abs=1e-6)


def test_a_cone_is_inside_its_hull():
    made = surroundings()
    assert made.take_scene(scene(thing("a", primitive(CONE, 1.0, 0.2))))
    angles = np.random.default_rng(0).uniform(0, 2 * np.pi, 50)
    assert all(-0.005 < far(made, (0.2 * np.cos(x), 0.2 * np.sin(x), -0.5)) < 1e-9 for x in angles)


def test_a_scene_is_edited_by_its_operations():
    box, ball = primitive(BOX, 0.1, 0.1, 0.1), primitive(BALL, 0.05)
    made = surroundings()
    assert made.take_markers(markers(marker()))
    for message, left in (
            (scene(thing("a", box), thing("b", box, ball)), ["a", "b/0", "b/1"]),
            (scene(thing("a", xyz=(0, 0, 4), operation=3)), ["a", "b/0", "b/1"]),
            (scene(thing("a", ball, xyz=(0, 0, 5), operation=2)), ["a/0", "a/1", "b/0", "b/1"]),
            (scene(thing("b", operation=1)), ["a/0", "a/1"]),
            (scene(thing("c", ball, operation=2)), ["a/0", "a/1", "c"]),
            (scene(), ["a/0", "a/1", "c"]), (scene(thing("d", box), diff=False), ["d"]),
            (scene(thing("", operation=1)), []), (scene(thing("d", box)), ["d"]), (scene(diff=False), [])):
        assert made.take_scene(message), made.rejections.last
        assert names(made) == ["camera/0", *left]
        if left[:2] == ["a/0", "a/1"]:
            assert far(made, (0, 0, 4.5), "a/0") == pytest.approx(0.45) == far(made, (0, 0, 4.5), "a/1")


def test_what_is_attached_moves_with_its_link_and_may_touch_what_it_should():
    made = surroundings()
    grasped = thing("part", primitive(BALL, 0.02), frame="lower", xyz=(0.5, 0, 0))
    assert made.take_scene(scene(thing("part", primitive(BALL, 0.02), xyz=(0.9, 0, 0)),
                                 thing("bin", primitive(BOX, 0.1, 0.1, 0.1), xyz=(0.4, 0.0, 0.5))))
    assert made.take_scene(scene(held=[attached("lower", grasped, ["lower", "upper"])]))
    assert made.collisions.pairs == (("upper", "bin"), ("lower", "bin"), ("bin", "part"))
    q = np.random.default_rng(0).uniform(-1, 1, (20, 2))
    at = rbd.forward_kinematics(MODEL, q)[:, MODEL.body_index("lower")] @ [0.5, 0.0, 0.0, 1.0]
    beyond = np.maximum(np.abs(at[:, :3] - [0.4, 0.0, 0.5]) - 0.05, 0.0)
    apart = np.linalg.norm(beyond, axis=1) - 0.02
    np.testing.assert_allclose(made.collisions.distances(q)[:, 2][apart > 0], apart[apart > 0], atol=1e-7)
    # as MoveIt says it when the gripper lets go; a state without names and objects is none
    assert made.take_scene(scene()) and "part" in names(made)
    assert made.take_scene(scene(thing("part", primitive(BALL, 0.02)), state_diff=False, joints=["shoulder", "elbow"]))
    assert ("upper", "part") in made.collisions.pairs
    assert made.take_scene(scene(held=[attached("lower", grasped)]))
    assert made.collisions.pairs[-1] == ("bin", "part")    # not the link it is attached to, nor its neighbour
    lets_go = attached("lower", thing("part", operation=1))
    assert not made.take_scene(scene(held=[lets_go])) and "where it stays is not said" in made.rejections.last
    assert made.take_scene(scene(thing("part", operation=1), held=[lets_go])) and names(made) == ["bin"]


def test_pairs_that_a_scene_allows_are_not_compared():
    made = surroundings()
    table = thing("table", primitive(BOX, 1, 1, 0.1), primitive(BALL, 0.1))
    matrix = (["upper", "table", "nobody"], [[0, 1, 0], [1, 0, 1], [0, 1, 0]])
    assert made.take_scene(scene(table, allowed=matrix))
    assert made.collisions.pairs == (("lower", "table/0"), ("lower", "table/1"))
    assert made.take_scene(scene(thing("b", primitive(BALL, 0.1))))    # none: as before
    assert ("upper", "table/0") not in made.collisions.pairs and ("upper", "b") in made.collisions.pairs
    assert made.take_scene(scene(allowed=(["upper"], [[0]]))) and ("upper", "table/0") in made.collisions.pairs


BLOCK = primitive(BOX, 0.1, 0.1, 0.1)


@pytest.mark.parametrize(("message", "words"), [
    (scene(thing("a", BLOCK, frame="camera")), "object 'a': frame 'camera', expected one that is fixed"),
    (scene(thing("a", BLOCK, xyz=(NAN, 0, 0))), "object 'a': position"),
    (scene(thing("a", BLOCK, places=[pose((0, INF, 0))])), "object 'a', primitive 0: position"),
    (scene(thing("a", BLOCK, places=[])), "1 of primitive, and 0 poses of them"),
    (scene(thing("a")), "0 shapes, expected 1 to 200"), (scene(thing("a", *[BLOCK] * 201)), "201 shapes, expected"),
    (scene(thing("", BLOCK)), "expected a name"), (scene(thing("x" * 81, BLOCK)), "expected a name of at most 80"),
    (scene(thing("a", BLOCK, operation=7)), "unknown operation 7"),
    (scene(thing("a", operation=3)), "there is no such object"),
    (scene(thing("old", BLOCK, operation=3)), "it is to move, and has shapes"),
    (scene(thing("a", primitive(9))), "unknown type 9"), (scene(thing("a", primitive(BOX, 1, 1))), "2 dimensions"),
    (scene(thing("a", primitive(BOX, 1, NAN, 1))), "size"), (scene(thing("a", primitive(BALL, -1))), "radius"),
    (scene(thing("a", primitive(CONE, NAN, 1))), "expected finite points"),
    (scene(thing("a", primitive(PRISM, 1, polygon=[(0, 0, 0)]))), "has no volume"),
    (scene(thing("a", planes=[[0, 0, 0, 1]])), "expected finite ones with a normal"),
    (scene(thing("a", planes=[[0, 0, NAN, 1]])), "expected finite ones with a normal"),
    (scene(thing("a", planes=[[0, 0, 1e-9, 1]])), "a coordinate is larger than 1000 m"),
    (scene(thing("a", meshes=[[(0, 0, 0)]])), "has no volume"),
    (scene(thing("a", meshes=[[]])), "expected finite points"),
    (scene(thing("upper", BLOCK)), "the name 'upper' is given twice"),
    (scene(octomap=[1, 2]), "an octomap, which is not read"),
    (scene(held=[attached("nowhere", thing("a", BLOCK, frame="nowhere"))]), "nowhere"),
    (scene(held=[attached("lower", thing("a", BLOCK))]), "frame 'base', expected that of the link it is attached to"),
    (scene(held=[attached("lower", thing("a", frame="lower"))]), "attached to 'lower' without shapes"),
    (scene(held=[attached("lower", thing("a", BLOCK, frame="lower"), ["nobody"])]), "nobody"),
    (scene(held=[attached("lower", thing("a", BLOCK, frame="lower"), ["x"] * 1001)]), "1001 touch_links"),
    (scene(held=[attached("lower", thing("a", planes=[[0, 0, 1, 0]], frame="lower"))]), "a plane is endless"),
    (scene(allowed=(["a", "b"], [[0, 1]])), "expected 2 rows of 2 values"),
    (scene(allowed=(["a", "b"], [[0, 1], [0, 0]])), "expected a symmetric one"),
    (scene(allowed=(["a", "a"], [[0, 1], [1, 0]])), "each once"),
    (scene(allowed=([str(k) for k in range(501)], [])), "501 names, expected at most 500"),
])
def test_hostile_scenes_are_rejected_and_the_earlier_one_stays(message, words):
    made = surroundings()
    assert made.take_scene(scene(thing("old", BLOCK)))
    before = made.collisions
    verdict = made.take_scene(message)
    assert not verdict and words in verdict.text, verdict.text
    assert made.collisions is before and made.rejections.counts["malformed"] == 1
    assert len(verdict.text) < 700 and verdict.text.isprintable()
    assert made.take_scene(scene()) and names(made) == ["old"]


def test_random_numbers_are_taken_or_rejected_and_never_an_error():
    rng = np.random.default_rng(3)
    odd = [0.0, -1.0, NAN, INF, -INF, 1e308, 1e-308, 999.0, 0.3]
    made, taken = surroundings(), []
    for k in range(300):
        def number(likely):
            return float(rng.choice(odd)) if rng.random() < 0.05 else likely

        xyz, size = [number(x) for x in rng.normal(size=3)], [number(0.2) for _ in range(3)]
        turn = [number(x) for x in Rotation.random(random_state=k).as_quat()]
        points = [[number(x) for x in p] for p in rng.normal(size=(6, 3))]
        with np.errstate(over="raise", invalid="raise", divide="raise"):
            taken.append(bool(made.take_markers(markers(marker(int(rng.integers(1, 12)), xyz, size, quaternion=turn,
                                                               points=points)))))
            taken.append(bool(made.take_scene(scene(thing(
                "a", primitive(int(rng.integers(1, 6)), *size[:int(rng.integers(1, 4))], polygon=points), xyz=xyz,
                meshes=[points], planes=[[*xyz, size[0]]])))))
    assert 50 < sum(taken) < 500


def test_without_a_collision_model_all_are_rejected():
    made = Surroundings(None)
    for verdict in (made.take_markers(markers(marker())), made.take_scene(scene()), made.take_text("obstacles: []")):
        assert not verdict and UNAWARE in verdict.text
    assert made.take_text("") and made.collisions is None and made.report() == {"collision_pairs": 0, "obstacles": 0}
