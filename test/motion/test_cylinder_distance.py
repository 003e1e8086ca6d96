"""Cylinders that are apart from others, whose normals GJK finds to the square root of its error only: in 200 digits."""
from __future__ import annotations

import numpy as np
import pytest
from support.exact_distance import exact_distance
from test_collision import SHAPES, free_pose, only, two_bodies

from rbd_ros.core.motion.collision.cylinder_distance import CORE, cylinder_distance

pytest.importorskip("coal")
OTHERS = {**SHAPES, "disc": {"shape": "cylinder", "radius": 0.3, "length": 0.002},
          "needle": {"shape": "cylinder", "radius": 0.002, "length": 0.6},
          "plate": {"shape": "box", "size": [0.5, 0.4, 0.001]}}


def posed(collisions, q):
    """The two shapes of the pair and their poses, its index, and what is found."""
    k = only(collisions, "first", "second")
    places = collisions._places(q)[0][0]
    pieces = [collisions.pieces[i].shape for i in collisions._indices[k]]
    (i, j), found = collisions._indices[k], collisions.closest(q)
    return (pieces[0], places[i], pieces[1], places[j]), k, found


def check(collisions, q, bound=1e-11, of_distance=1e-12):
    """Against the oracle; returns how far the pieces are apart."""
    (first, T, second, U), k, found = posed(collisions, q)
    distance, normal = exact_distance(first, T, second, U)
    assert abs(found.distances[k] - distance) < of_distance
    np.testing.assert_allclose(found.normals[k], normal, atol=bound)
    np.testing.assert_allclose(found.points[k, 1] - found.points[k, 0], distance * normal, atol=bound)
    assert collisions.distances(q)[k] == found.distances[k]
    return distance


@pytest.mark.parametrize("second", OTHERS)
@pytest.mark.parametrize("first", ["cylinder", "disc", "needle"])
def test_of_random_poses(first, second):
    count = 4 if second == "mesh" else 12
    for collisions in (two_bodies(OTHERS[first], OTHERS[second]), two_bodies(OTHERS[second], OTHERS[first])):
        rng = np.random.default_rng(0)
        radius = sum(OTHERS[name]["radius"] for name in (first, second) if name in ("sphere", "capsule"))
        distances: list = []
        while len(distances) < count:
            q = free_pose(rng, 0.3)
            if collisions.distances(q)[only(collisions, "first", "second")] > 1e-4 - radius:    # the cores are apart
                distances.append(check(collisions, q))
        assert max(distances) > 0.05


@pytest.mark.parametrize(("second", "place", "turn"), [
    ("cylinder", [0.5, 0.1, 0.05], [0.0, 0.0, 0.0]), ("cylinder", [0.1, 0.05, 0.4], [0.0, 0.0, 0.0]),
    ("cylinder", [0.5, 0.0, 0.0], [np.pi / 2, 0.0, 0.0]), ("cylinder", [0.0, 0.0, 0.5], [np.pi / 2, 0.0, 0.0]),
    ("box", [0.05, 0.02, 0.4], [0.0, 0.0, 0.3]), ("box", [0.6, 0.0, 0.1], [0.0, 0.0, 0.0]),
    ("box", [0.5, 0.0, 0.0], [0.0, 0.0, np.pi / 4]), ("capsule", [0.5, 0.0, 0.1], [0.0, 0.0, 0.0]),
    ("capsule", [0.0, 0.0, 0.5], [np.pi / 2, 0.0, 0.0]), ("sphere", [0.0, 0.0, 0.5], [0.0, 0.0, 0.0]),
    ("sphere", [0.5, 0.0, 0.0], [0.0, 0.0, 0.0])])
@pytest.mark.parametrize("tilt", [0.0, 1e-9, 1e-6, 1e-4, 1e-3])
def test_beside_parallel_faces_and_axes(second, place, turn, tilt):
    """Where the nearest points are a line or a face, or nearly: the normal is one, to the bounds of the page."""
    from scipy.spatial.transform import Rotation

    collisions = two_bodies(OTHERS["cylinder"], OTHERS[second])
    rotation = Rotation.from_rotvec(tilt * np.array([0.6, -0.5, 0.62])) * Rotation.from_euler("xyz", turn)
    check(collisions, np.array([*place, *rotation.as_quat()]), 1e-7, 1e-9)


def test_it_is_exact_from_any_normal():
    """Hostile normals, of no length and NaN as well: of what is apart the distance is found, or −inf and nothing else.
    """
    rng, cores = np.random.default_rng(1), np.zeros((2, CORE))
    cores[:, :9] = np.eye(3).ravel()
    cores[:, 12:] = 0.1, 0.2
    cores[1, 9:12] = 0.3, 0.2, 0.5
    none, taken = np.empty((0, 3)), 0
    for vertices in (none, rng.normal(size=(20, 3)) * 0.05, np.zeros((1, 3))):
        normal, best = np.array([0.4, 0.4, 0.8]), 0.0
        for k in range(300):
            points, given = np.zeros((2, 3)), normal.copy()
            found = cylinder_distance.call(*cores, vertices, none, 0.0, 1.0, points, normal)
            if found == -np.inf:
                assert k and (normal == given).all() and not points.any()
            else:
                taken, best = taken + 1, best or found
                assert abs(found - best) < 1e-12 and abs(np.linalg.norm(normal) - 1.0) < 1e-12
                np.testing.assert_allclose(points[1] - points[0], found * normal, atol=1e-12)
            normal = rng.normal(size=3) if k > 2 else np.full(3, [0.0, np.nan, np.inf][k])
    assert taken > 600


@pytest.mark.parametrize("second", OTHERS)
def test_distances_are_continuous_where_pieces_touch(second):
    """Moved along the normal until they touch, and a little to either side: inside, another way out may be shorter.
    """
    collisions, rng = two_bodies(OTHERS["cylinder"], OTHERS[second]), np.random.default_rng(3)
    bound = 1e-8 if second == "mesh" else 1e-9
    for _ in range(5):
        q = free_pose(rng, 0.3)
        _, k, found = posed(collisions, q)
        d, n = found.distances[k], found.normals[k]
        for gap in (0.0, 1e-15, 1e-12, 1e-10, 1e-9, 1e-8, 1e-6, 1e-4):
            for side in (-1.0, 1.0):
                there = collisions.closest(np.concatenate([q[:3] + (side * gap - d) * n, q[3:]]))
                most = gap if side > 0.0 else 0.0
                assert side * gap - bound < there.distances[k] < most + bound
                assert np.isfinite(there.normals[k]).all() and np.isfinite(there.points[k]).all()


def test_of_spheres_and_cylinders_on_one_axis():
    collisions = two_bodies(OTHERS["cylinder"], OTHERS["sphere"])
    q = np.array([0.05, 0.0, 0.02, 0.0, 0.0, 0.0, 1.0])
    assert collisions.closest(q).distances[only(collisions, "first", "second")] == pytest.approx(-0.2, abs=1e-15)
