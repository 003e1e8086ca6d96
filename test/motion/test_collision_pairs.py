"""Which pairs of links are compared, obstacles and tools, batches, and what is said of wrong input."""

import pickle
import subprocess
import sys
import warnings

import numpy as np
import pytest
from support.collisions import arm, collision, robot
from support.robots import load, urdf_paths

import rbd_ros as rbd

pytest.importorskip("coal")
BALL = collision('<sphere radius="0.05"/>')
THREE = robot(BALL, BALL, ("revolute",) * 3, BALL)


def made(text=THREE, **options):
    model = rbd.load_urdf(text)
    return rbd.CollisionModel.from_urdf(text, model, **options)


def named(*pairs):
    return {frozenset(pair) for pair in pairs}


def compared(collisions):
    return named(*collisions.pairs)


# ---- pairs


def test_neighbours_and_what_does_not_move_are_not_compared():
    assert compared(made()) == named(("l0", "l2"), ("l0", "l3"), ("l1", "l3"))
    fixed = robot(BALL, BALL, ("revolute", "fixed", "revolute"), BALL)    # l1 and l2 are one body
    assert compared(made(fixed)) == named(("l0", "l2"), ("l0", "l3"), ("l1", "l3"))
    model = rbd.load_urdf(THREE, locked={"j1": 0.3})
    locked = rbd.CollisionModel.from_urdf(THREE, model, srdf='<robot name="r"/>')
    assert compared(locked) == named(("l0", "l1"), ("l0", "l2"), ("l0", "l3"), ("l1", "l3"), ("l2", "l3"))


def test_links_without_shapes_are_looked_through():
    assert compared(made(robot(BALL, BALL, ("revolute",) * 3))) == set()    # l3 is next to l0
    two = robot(BALL, BALL + BALL, ("revolute", "revolute"), BALL)
    assert made(two).pairs == (("l0", "l2/0"), ("l0", "l2/1"))


@pytest.mark.parametrize(("tags", "expected"), [
    ("", [("l0", "l1"), ("l0", "l2"), ("l0", "l3"), ("l1", "l2"), ("l1", "l3"), ("l2", "l3")]),
    ('<disable_collisions link1="l1" link2="l0" reason="Adjacent"/><disable_collisions link1="l0" link2="l3"/>',
     [("l0", "l2"), ("l1", "l2"), ("l1", "l3"), ("l2", "l3")]),
    ('<disable_default_collisions link="l0"/><enable_collisions link1="l0" link2="l3"/>',
     [("l0", "l3"), ("l1", "l2"), ("l1", "l3"), ("l2", "l3")]),
])
def test_an_srdf_decides(tmp_path, tags, expected):
    file = tmp_path / "r.srdf"
    file.write_text(f'<robot name="r">{tags}</robot>')
    assert compared(made(srdf=file)) == named(*expected)


def test_links_that_are_not_there_are_warned_about():
    with pytest.warns(rbd.RbdWarning, match="'hand'"):
        found = made(srdf='<robot name="r"><disable_collisions link1="hand" link2="l0"/></robot>')
    assert len(found.pairs) == 6


def test_srdf_as_pinocchio():
    pin = pytest.importorskip("pinocchio")
    name = "panda_description/panda"
    if name not in urdf_paths():
        pytest.skip("example-robot-data is not installed")
    path = urdf_paths()[name]
    srdf = path.parents[1] / "srdf" / "panda.srdf"
    model = load(name, mimic="independent")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rbd.RbdWarning)
        ours = rbd.CollisionModel.from_urdf(path, model, srdf=srdf)
    theirs = pin.buildModelFromUrdf(str(path))
    geometry = pin.buildGeomFromUrdf(theirs, str(path), pin.GeometryType.COLLISION,
                                     package_dirs=[str(path.parents[4])])
    geometry.addAllCollisionPairs()
    pin.removeCollisionPairs(theirs, geometry, str(srdf))

    def link(k):
        return geometry.geometryObjects[k].name.rpartition("_")[0]

    expected = named(*((link(pair.first), link(pair.second)) for pair in geometry.collisionPairs))
    assert named(*((a.partition("/")[0], b.partition("/")[0]) for a, b in ours.pairs)) == expected


# ---- batches and copies


@pytest.mark.parametrize("name", ["panda_description/panda_collision", "ur_description/ur5_robot"])
def test_batches_are_their_states_one_by_one(name):
    model, collisions = arm(name)
    collisions = collisions.with_obstacles([{"shape": "box", "size": [0.4, 0.4, 0.4], "frame": [0.5, 0.3, 0.3]},
                                            {"shape": "plane", "frame": [0.0, 0.0, 0.05]}])
    rng = np.random.default_rng(1)
    q = np.array([model.random_configuration(rng) for _ in range(12)])
    distances, closest, touching = collisions.distances(q), collisions.closest(q), collisions.touching(q, 0.02)
    copy = pickle.loads(pickle.dumps(collisions))
    assert distances.shape == (12, len(collisions.pairs)) and copy.pairs == collisions.pairs
    np.testing.assert_allclose(copy.distances(q), distances, atol=1e-11)
    np.testing.assert_array_equal(closest.distances, distances)
    np.testing.assert_array_equal(touching, distances <= 0.02)
    np.testing.assert_array_equal(collisions.collides(q, 0.02), touching.any(axis=1))
    assert 0 < np.count_nonzero(touching) < touching.size
    for k in range(12):
        np.testing.assert_array_equal(collisions.distances(q[k]), distances[k])
        single = collisions.closest(q[k])
        for field in ("distances", "points", "normals"):
            np.testing.assert_array_equal(getattr(single, field), getattr(closest, field)[k])
        np.testing.assert_allclose(single.gradients, closest.gradients[k], rtol=0.0, atol=1e-15)
        assert collisions.collides(q[k], 0.02) is bool(touching[k].any())
    none = collisions.closest(q[:0])
    assert none.gradients.shape == (0, len(collisions.pairs), model.nv) and collisions.collides(q[:0]).shape == (0,)


def test_only_near_pairs():
    model, collisions = arm("panda_description/panda")
    rng = np.random.default_rng(2)
    for q in (model.random_configuration(rng), np.array([model.random_configuration(rng) for _ in range(5)])):
        full, near = collisions.closest(q), collisions.closest(q, within=0.1)
        expected = np.flatnonzero((full.distances.reshape(-1, len(full.pairs)) <= 0.1).any(axis=0))
        np.testing.assert_array_equal(near.index, expected)
        assert near.pairs == tuple(collisions.pairs[k] for k in expected) and 0 < len(expected) < len(full.pairs)
        np.testing.assert_array_equal(near.distances, full.distances[..., expected])
        np.testing.assert_allclose(near.gradients, full.gradients[..., expected, :], rtol=0.0, atol=1e-15)
    far = made().closest(np.zeros(3), within=0.0)
    assert far.pairs == () and far.distances.shape == (0,) and far.gradients.shape == (0, 3)


# ---- obstacles and tools


def test_obstacles_from_yaml(tmp_path):
    trimesh = pytest.importorskip("trimesh")
    trimesh.creation.box([0.2, 0.2, 0.2]).export(tmp_path / "crate.stl")
    (tmp_path / "cell.yaml").write_text("""obstacles:
  - {name: table, shape: box, size: [1.0, 1.0, 0.1], frame: {xyz: [0.0, 0.0, -0.05]}}
  - {name: floor, shape: plane, frame: {xyz: [0.0, 0.0, -0.7]}}
  - {name: crate, shape: mesh, file: crate.stl, scale: 0.5, frame: {xyz: [0.5, 0.0, 1.0], rpy: [0.0, 0.0, 0.1]}}
""")
    collisions = made(obstacles=str(tmp_path / "cell.yaml"))
    assert {name for pair in collisions.pairs for name in pair if name[0] != "l"} == {"table", "floor", "crate"}
    assert not named(("l0", "table"), ("l0", "floor"), ("l0", "crate")) & compared(collisions)    # both are fixed
    found = {frozenset(pair): d for pair, d in zip(collisions.pairs, collisions.distances(np.zeros(3)), strict=True)}
    # links at 0, 0, 0.3 and 0.6 m
    assert found[frozenset(("l2", "floor"))] == pytest.approx(0.95, abs=1e-12)
    assert found[frozenset(("l2", "table"))] == pytest.approx(0.25, abs=1e-12)
    side = 0.5 * np.cos(0.1) - 0.05    # of the crate, turned about its middle; its file has single precision
    assert found[frozenset(("l3", "crate"))] == pytest.approx(np.hypot(side, 0.35) - 0.05, abs=1e-8)


def test_a_tool_is_compared_with_what_moves_and_what_it_may_not_touch():
    collisions = made()
    tool = {"name": "tool", "shape": "sphere", "radius": 0.02, "frame": [0.0, 0.0, 0.1]}

    def of_tool(collisions):
        return {pair for pair in compared(collisions) if "tool" in pair}

    carried = collisions.with_shapes("l3", [tool])
    assert of_tool(carried) == named(("l0", "tool"), ("l1", "tool"))    # l2 is the neighbour of l3
    assert of_tool(collisions.with_shapes("l3", [tool], touching=["l0"])) == named(("l1", "tool"))
    k = carried.pairs.index(("l0", "tool"))
    assert carried.distances(np.zeros(3))[k] == pytest.approx(0.6 + 0.1 - 0.07, abs=1e-12)
    wall = carried.with_obstacles([{"name": "wall", "shape": "sphere", "radius": 0.1, "frame": [0.0, 0.0, 1.0]}])
    assert wall.distances(np.zeros(3))[wall.pairs.index(("tool", "wall"))] == pytest.approx(0.18, abs=1e-12)
    assert compared(wall.without_pairs([("l3", "wall")])) == compared(wall) - named(("l3", "wall"))


def test_a_tool_is_compared_whatever_the_srdf_says_of_its_link():
    srdf = '<robot name="r"><disable_collisions link1="l0" link2="l3" reason="Never"/></robot>'
    collisions = made(srdf=srdf).with_shapes("l3", [{"name": "tool", "shape": "sphere", "radius": 0.02}])
    assert named(("l0", "tool"), ("l1", "tool")) < compared(collisions)
    assert not named(("l0", "l3"), ("l2", "tool"), ("l3", "tool")) & compared(collisions)


def test_pieces_instead_of_a_mesh():
    box = np.array(np.meshgrid([-0.1, 0.1], [-0.1, 0.1], [-0.1, 0.1])).reshape(3, 8).T
    shift = np.array([0.3, 0.0, 0.0])
    collisions = made(pieces={"l3": [box + shift, box - shift]})
    distances = dict(zip(collisions.pairs, collisions.distances(np.zeros(3)), strict=True))
    assert distances["l0", "l3/0"] == pytest.approx(np.hypot(0.2, 0.5) - 0.05, abs=1e-12)
    assert ("l0", "l3/1") in distances


def test_a_disc_of_many_corners():
    """A fan of triangles would have a corner with more neighbours than coal counts, as a cone has."""
    angles = np.linspace(0.0, 2.0 * np.pi, 600, endpoint=False)
    ring = np.stack([np.cos(angles), np.sin(angles), np.zeros(600)], axis=1)
    disc = np.concatenate([ring, ring + np.array([0.0, 0.0, 0.2])])
    collisions = made(obstacles=[{"name": "disc", "shape": "mesh", "points": disc, "frame": [0.0, 0.0, 1.0]}])
    distance = collisions.distances(np.zeros(3))[collisions.pairs.index(("l3", "disc"))]
    assert distance == pytest.approx(1.0 - 0.6 - 0.05, abs=1e-12)
    cone = np.concatenate([ring, [[0.0, 0.0, 1.0]]])
    with pytest.raises(rbd.RbdError, match="neighbors"):
        made(obstacles=[{"name": "cone", "shape": "mesh", "points": cone}])


def test_a_robot_that_does_not_move():
    collisions = made(robot(BALL, BALL, ("fixed",)))
    closest = collisions.closest([])
    assert collisions.pairs == () and collisions.distances([]).shape == (0,) and closest.gradients.shape == (0, 0)
    assert collisions.collides([]) is False


# ---- sampling


def test_sampled_pairs_are_written_and_read_back(tmp_path):
    model, collisions = arm("panda_description/panda")
    sampled, again = rbd.sampled_pairs(collisions, 300), rbd.sampled_pairs(collisions, 300)
    np.testing.assert_array_equal(sampled.counts, again.counts)
    assert {"Adjacent", "Never", "Always", ""} >= set(sampled.reasons) >= {"Adjacent", "Never", ""}
    for pair, count, reason in zip(sampled.pairs, sampled.counts, sampled.reasons, strict=True):
        assert (count == 0) == (reason == "Never") or reason == "Adjacent", pair
    sampled.write(tmp_path / "panda.srdf")
    read = rbd.CollisionModel.from_urdf(urdf_paths()["panda_description/panda"], model, srdf=tmp_path / "panda.srdf")
    assert read.pairs == sampled.collisions.pairs and 0 < len(read.pairs) < len(collisions.pairs)


def test_counts_are_those_of_distances():
    model = rbd.load_urdf(THREE)
    collisions = rbd.CollisionModel.from_urdf(THREE, model, srdf='<robot name="r"/>')
    sampled = rbd.sampled_pairs(collisions, 50, seed=3)
    rng = np.random.default_rng(3)
    q = np.array([model.random_configuration(rng) for _ in range(50)])
    expected = dict(zip(collisions.pairs, np.count_nonzero(collisions.distances(q) <= 0.0, axis=0), strict=True))
    assert dict(zip(sampled.pairs, sampled.counts, strict=True)) == expected
    assert dict(zip(sampled.pairs, sampled.reasons, strict=True))["l0", "l1"] == "Adjacent"
    assert expected["l0", "l1"] == 50    # both are at one place


# ---- wrong input


@pytest.mark.parametrize(("obstacle", "words"), [
    ({"shape": "cube"}, ["unknown shape 'cube'", "box"]),
    ({"shape": "box"}, ["a box needs size"]),
    ({"shape": "box", "size": [1, 2]}, ["size", "three finite"]),
    ({"shape": "box", "size": [1, -2, 1]}, ["three positive"]),
    ({"shape": "sphere", "radius": 0.0}, ["radius", "positive"]),
    ({"shape": "sphere", "radius": True}, ["radius", "true or false"]),
    ({"shape": "cylinder", "radius": 1.0, "lenght": 1.0}, ["lenght", "length"]),
    ({"shape": "plane", "frame": {"xyz": [0, 0, 0], "quat": [0, 0, 0, 1]}}, ["quat"]),
    ({"shape": "plane", "frame": [0, 0]}, ["frame", "xyz (3,)"]),
    ({"shape": "mesh"}, ["either file or points"]),
    ({"shape": "mesh", "file": "nothing.stl"}, ["nothing.stl"]),
    ({"shape": "mesh", "points": [[0, 0, 0], [1, 0, 0], [0, 1, 0]]}, ["volume"]),
    ({"shape": "mesh", "points": [[0, 0, 0], [1, 0, np.nan]]}, ["finite points"]),
    ({"shape": "sphere", "radius": 1.0, "name": "l0"}, ["'l0'", "twice"]),
    ("sphere", ["expected {name"]),
])
def test_a_wrong_obstacle_is_named(obstacle, words):
    with pytest.raises(rbd.RbdError) as caught:
        made(obstacles=[obstacle])
    assert all(word in str(caught.value) for word in words), str(caught.value)


@pytest.mark.parametrize(("call", "words"), [
    (lambda c: c.distances([0.0, 0.0]), ["q has shape", "(3,)"]),
    (lambda c: c.distances([0.0, np.nan, 0.0]), ["finite"]),
    (lambda c: c.closest([0.0] * 3, within=-1.0), ["within"]),
    (lambda c: c.collides([0.0] * 3, margin="x"), ["margin"]),
    (lambda c: c.with_shapes("l9", []), ["unknown body 'l9'"]),
    (lambda c: c.with_shapes("l3", [{"shape": "plane"}]), ["plane"]),
    (lambda c: c.with_shapes("l3", [], touching=["x"]), ["unknown link in touching 'x'"]),
    (lambda c: c.without_pairs([("l0", "x")]), ["'x'"]),
    (lambda c: c.without_pairs(["l0"]), ["two names"]),
    (lambda c: rbd.sampled_pairs(c, 0), ["count"]),
    (lambda c: rbd.sampled_pairs("c"), ["CollisionModel"]),
    (lambda c: rbd.CollisionModel.from_urdf(THREE, "model"), ["RobotModel"]),
    (lambda c: rbd.CollisionModel.from_urdf(robot("", ""), rbd.load_urdf(robot("", ""))), ["no <collision>"]),
    (lambda c: rbd.CollisionModel.from_urdf(robot("", BALL, ("revolute",) * 5), c.model), ["another robot"]),
    (lambda c: rbd.CollisionModel.from_urdf(THREE, c.model, pieces={"l9": []}), ["unknown body 'l9'"]),
    (lambda c: rbd.CollisionModel.from_urdf(THREE, c.model, pieces={"l3": 3}), ["pieces"]),
    (lambda c: rbd.CollisionModel.from_urdf(THREE, c.model, obstacles=3), ["obstacles", "list"]),
    (lambda c: rbd.CollisionModel.from_urdf(THREE, c.model, srdf="<urdf/>"), ["<robot>"]),
    (lambda c: rbd.CollisionModel.from_urdf(THREE.replace("0.05", "-1", 1), c.model), ["collision of link 'l0'", "-1"]),
    (lambda c: rbd.CollisionModel.from_urdf(THREE, c.model, obstacles="/nowhere.yaml"), ["nowhere.yaml"]),
    (lambda c: rbd.CollisionModel.from_urdf(THREE, c.model, obstacles="boxes: []"), ["obstacles:"]),
])
def test_wrong_input_is_named(call, words):
    with pytest.raises(rbd.RbdError) as caught:
        call(made())
    assert all(word in str(caught.value) for word in words), str(caught.value)


def test_without_coal_everything_else_works():
    code = f"""
import sys
sys.modules["coal"] = None    # as if it were not installed
import rbd_ros as rbd
text = {THREE!r}
model = rbd.load_urdf(text)
assert rbd.mass_matrix(model, [0.0] * 3).shape == (3, 3) and rbd.CollisionModel
try:
    rbd.CollisionModel.from_urdf(text, model)
except rbd.RbdError as error:
    print(error)
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pip install coal" in result.stdout
