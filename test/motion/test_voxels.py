"""Points as boxes: all points in boxes, boxes in the occupied cells; distances by brute force over cells."""
from __future__ import annotations

import pickle

import numpy as np
import pytest
import yaml
from scipy.spatial.transform import Rotation
from support.collisions import collision, robot

import rbd_ros as rbd
from rbd_ros.core.lie import se3
from rbd_ros.core.motion.collision.obstacles import read_obstacles
from rbd_ros.core.motion.collision.voxels import joined, occupied_cells

RADIUS = 0.02


def clouds():
    """Clouds (N, 3) by name, of which cells are occupied, with gaps and alone."""
    rng = np.random.default_rng(0)
    ball = rng.normal(size=(4000, 3))
    table = rng.uniform([-0.5, -0.5, 0.0], [0.5, 0.5, 0.01], (5000, 3))
    return {"scattered": rng.normal(size=(300, 3)) * 0.3, "one": np.array([[0.31, -0.2, 0.05]]),
            "ball": 0.4 * ball / np.linalg.norm(ball, axis=1, keepdims=True) + [0.1, -0.3, 0.2],
            "table, tilted": table @ Rotation.from_euler("xyz", [0.4, 0.3, 0.2]).as_matrix(),
            "solid": rng.uniform(-0.25, 0.25, (20_000, 3)), "on the grid": rng.integers(-4, 5, (200, 3)) * 0.1,
            "checkerboard": np.argwhere(np.indices((6, 6, 6)).sum(axis=0) % 2 == 0) * 0.1 + 0.05}


CLOUDS = clouds()


@pytest.mark.parametrize("name", CLOUDS)
@pytest.mark.parametrize("size", [0.1, 0.037])
def test_points_are_in_boxes_and_boxes_in_occupied_cells(name, size):
    points = CLOUDS[name]
    cells = {tuple(cell) for cell in np.floor(points / size).astype(int)}
    first, behind = joined(occupied_cells(points, size, "it"), "it")
    covered = [cell for low, high in zip(first, behind, strict=True)
               for cell in np.argwhere(np.ones(high - low, dtype=bool)) + low]
    assert len(covered) == len(cells) and set(map(tuple, covered)) == cells    # each once
    # as the obstacle's shapes have it
    boxes = read_obstacles([{"name": "it", "shape": "points", "points": points, "voxel_size": size}])["it"]
    middles, sides = np.array([box.pose[:3, 3] for box in boxes]), np.array([box.size for box in boxes])
    out = (np.abs(points[:, None] - middles) - 0.5 * sides).max(axis=2).min(axis=1)
    assert len(boxes) == len(first) and out.max() < 1e-14
    np.testing.assert_allclose([box.pose[:3, :3] for box in boxes], np.broadcast_to(np.eye(3), (len(boxes), 3, 3)))


def test_what_is_alike_is_joined():
    def boxes(*blocks):
        cells = np.unique(np.concatenate([np.argwhere(np.ones(np.subtract(high, low), bool)) + low
                                          for low, high in blocks]), axis=0)
        return len(joined(np.random.default_rng(1).permutation(cells), "it")[0])

    assert boxes(((0, 0, 0), (7, 5, 3))) == 1
    assert boxes(((0, 0, 0), (9, 9, 1)), ((0, 0, 1), (1, 1, 8))) == 2      # a table and its leg
    assert boxes(((0, 0, 0), (2, 2, 2)), ((-9, 0, 0), (-7, 2, 2))) == 2    # apart
    for axes in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):    # a shelf of three boards between two walls, however it stands
        parts = [((0, 0, 0), (1, 4, 9)), ((8, 0, 0), (9, 4, 9)), *(((1, 0, z), (8, 4, z + 1)) for z in (0, 4, 8))]
        assert boxes(*(tuple(np.array(end)[list(axes)] for end in part) for part in parts)) == 5


@pytest.mark.parametrize("name", CLOUDS)
def test_a_ball_is_as_far_away_as_from_the_nearest_cell(name):
    """Turned and shifted; of a ball whose middle is outside: the distance from each cell by hand."""
    size, points = 0.1, CLOUDS[name]
    pose = se3.pose([0.2, 0.1, -0.3], [0.3, -0.2, 0.5])
    text = robot("", collision(f'<sphere radius="{RADIUS}"/>'))
    model = rbd.load_urdf(text)
    collisions = rbd.CollisionModel.from_urdf(text, model, obstacles=[
        {"name": "cloud", "shape": "points", "points": points, "voxel_size": size, "frame": pose}])
    low = size * np.unique(np.floor(points / size), axis=0)
    rng, q = np.random.default_rng(2), np.zeros(7)
    q[6], apart = 1.0, 0
    for _ in range(40):
        x = points[rng.integers(len(points))] + rng.normal(size=3) * 0.15
        q[:3] = pose[:3, :3] @ x + pose[:3, 3]
        ways = x - np.clip(x, low, low + size)
        k = np.argmin(np.linalg.norm(ways, axis=1))
        expected = np.linalg.norm(ways[k])
        found = collisions.closest(q)
        nearest = np.argmin(found.distances)
        if expected > 1e-6:
            apart += 1
            assert abs(found.distances[nearest] + RADIUS - expected) < 1e-9
        if expected > 1e-3:
            np.testing.assert_allclose(found.gradients[nearest], [0.0, 0.0, 0.0, *pose[:3, :3] @ ways[k] / expected],
                                       atol=1e-7)    # angular, linear
        if expected == 0.0:
            assert found.distances[nearest] < -RADIUS + 1e-6
    assert apart > 10


def test_the_obstacle_is_one_name(tmp_path):
    text = robot(collision('<sphere radius="0.1"/>'), collision('<sphere radius="0.1"/>'), ("revolute",))
    model = rbd.load_urdf(text)
    cloud = {"name": "shelf", "shape": "points", "points": [[1.0, 0.0, 0.0], [2.0, 0.0, 0.0]], "voxel_size": 0.1}
    collisions = rbd.CollisionModel.from_urdf(text, model, obstacles=[cloud])
    assert collisions.pairs == (("l1", "shelf/0"), ("l1", "shelf/1"))
    assert pickle.loads(pickle.dumps(collisions)).pairs == collisions.pairs
    assert collisions.without_pairs([("l1", "shelf")]).pairs == ()
    tool = [{"name": "tool", "shape": "points", "points": [[0.0, 0.0, 0.3]], "voxel_size": 0.05}]
    held = collisions.with_shapes("l1", tool, touching=["shelf"])
    assert held.pairs == (*collisions.pairs, ) and held.piece_names[-1] == "tool"    # one box
    with pytest.raises(rbd.RbdError, match="'shelf/0' is given twice"):
        collisions.with_obstacles([{"name": "shelf/0", "shape": "sphere", "radius": 0.1}])
    assert len(collisions.certify([[0.0], [0.5]]).reason) == 0


@pytest.mark.parametrize("ending", ["npy", "ply", "ascii.ply"])
def test_files_beside_the_text(ending, tmp_path):
    points = np.random.default_rng(3).normal(size=(50, 3)).astype(np.float32)
    if ending == "npy":
        points[7] = np.nan    # nothing was seen
        np.save(tmp_path / "cloud.npy", points)
    else:
        trimesh = pytest.importorskip("trimesh")
        (tmp_path / f"cloud.{ending}").write_bytes(trimesh.exchange.ply.export_ply(
            trimesh.PointCloud(points), encoding="ascii" if "ascii" in ending else "binary"))
    path = tmp_path / "cell.yaml"
    path.write_text(yaml.safe_dump({"obstacles": [{"name": "it", "shape": "points", "file": f"cloud.{ending}",
                                                   "scale": 0.1, "voxel_size": 0.05}]}))
    inline = [{"name": "it", "shape": "points", "points": 0.1 * points[np.isfinite(points[:, 0])].astype(float),
               "voxel_size": 0.05}]
    for mine, theirs in zip(read_obstacles(path)["it"], read_obstacles(inline)["it"], strict=True):
        assert mine.size == theirs.size and (mine.pose == theirs.pose).all()


GOOD = {"name": "it", "shape": "points", "points": [[0.0, 0.0, 0.0]], "voxel_size": 0.1}


@pytest.mark.parametrize(("fields", "words"), [
    ({"voxel_size": 0.0}, "voxel_size must be a positive length"), ({"voxel_size": np.nan}, "voxel_size must be"),
    ({"voxel_size": None}, "voxel_size must be"), ({"points": []}, r"expected points \(N, 3\)"),
    ({"points": [[1.0, 2.0]]}, r"expected points \(N, 3\)"), ({"points": "text"}, "expected real numbers of shape"),
    ({"points": [[np.nan, 0.0, 0.0], [0.0, np.inf, 0.0]]}, "none of its 2 points is finite"),
    ({"points": [[1e300, 0.0, 0.0]]}, r"a coordinate is 1e\+300 m, expected at most 524288 voxels of 0.1 m"),
    ({"points": [[1000.0, 0.0, 0.0]], "voxel_size": 1e-9}, "a coordinate is 1000 m, expected at most 524288 voxels"),
    ({"points": [[1000.0, 0.0, 0.0]], "voxel_size": 5e-324}, "a coordinate is 1000 m, expected at most 524288"),
    ({"points": np.random.default_rng(0).normal(size=(1500, 3)), "voxel_size": 0.01}, "make 1500 boxes, expected at "
     "most 1000: take larger voxels"),
    ({"points": np.random.default_rng(0).uniform(size=(70_000, 3)), "voxel_size": 1e-4}, "70000 voxels of 0.0001 m, "
     "expected at most 50000"),
    ({"file": "cloud.npy"}, "a cloud needs either file or points"), ({"radius": 1.0}, "a cloud: unknown key 'radius'"),
])
def test_what_is_wrong_is_named(fields, words):
    with pytest.raises(rbd.RbdError, match=words) as error:
        read_obstacles([{**GOOD, **fields}])
    assert "obstacle 'it'" in str(error.value) and len(str(error.value)) < 500


def test_without_points_or_a_size():
    for key, words in (("voxel_size", "a cloud needs voxel_size"), ("points", "a cloud needs either file or points")):
        with pytest.raises(rbd.RbdError, match=words):
            read_obstacles([{name: value for name, value in GOOD.items() if name != key}])


@pytest.mark.parametrize(("name", "content", "words"), [
    ("a.npy", b"\x93NUMPY", "cannot read 'a.npy'"), ("a.ply", b"ply\nformat", "cannot read 'a.ply'"),
    ("a.pcd", b"", "points are read from .npy, .ply"), ("b.npy", None, r"array of shape \(4,\), expected \(N, 3\)"),
    ("c.npy", None, "cannot read 'c.npy'"), ("none.npy", None, "there is no file"),
])
def test_files_that_are_no_points(name, content, words, tmp_path):
    np.save(tmp_path / "b.npy", np.zeros(4))
    np.save(tmp_path / "c.npy", np.array([["a", "b", "c"]]))
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(rbd.RbdError, match=words):
        read_obstacles([{"name": "it", "shape": "points", "file": str(tmp_path / name), "voxel_size": 0.1}])


def test_of_strangers():
    read_obstacles([GOOD], trusted=False)
    with pytest.raises(rbd.RbdError, match="names a file, which is not opened"):
        read_obstacles([{**GOOD, "file": "cloud.npy"}], trusted=False)
    with pytest.raises(rbd.RbdError, match="a coordinate is larger than 1000 m"):
        read_obstacles([{**GOOD, "points": [[1500.0, 0.0, 0.0]]}], trusted=False)
    with pytest.raises(rbd.RbdError, match="sizes are"):
        read_obstacles([{**GOOD, "voxel_size": 1e-7}], trusted=False)
    apart = np.argwhere(np.ones((10, 9, 9))) * 0.3    # 810 boxes
    with pytest.raises(rbd.RbdError, match="1620 shapes and boxes of clouds together, expected at most 1200"):
        read_obstacles([{**GOOD, "name": name, "points": apart} for name in "ab"], trusted=False)
