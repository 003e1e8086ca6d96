"""Cylinders that are apart from others, whose normals GJK finds to the square root of its error only: in 200 digits."""
from __future__ import annotations

import numpy as np
import pytest
from test_collision import SHAPES, free_pose, only, two_bodies

from rbd_ros.core.motion.collision import pair_distances
from rbd_ros.core.motion.collision.cylinder_normals import CORE, refine

pytest.importorskip("coal")
exact_distance = pytest.importorskip("support.exact_distance", reason="mpmath is not installed").exact_distance
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


def test_it_is_never_worse_than_what_is_given():
    """Hostile normals and points: planes with the normal separate the pieces by no less than before, or −inf."""
    rng, cores = np.random.default_rng(1), np.zeros((2, CORE))
    cores[:, :9] = np.eye(3).ravel()
    cores[:, 12:] = 0.1, 0.2
    cores[1, 9:12] = 0.3, 0.2, 0.5
    taken = 0
    for vertices in (np.empty((0, 3)), rng.normal(size=(20, 3)) * 0.05, np.zeros((1, 3))):
        near = np.array([[0.1, 0.0, 0.2], [0.25, 0.15, 0.3]]), np.array([0.4, 0.4, 0.8])
        best = refine.call(*cores, vertices, 0.0, 1.0, *near)
        for _ in range(300):
            normal, points = rng.normal(size=3), rng.normal(size=(2, 3))
            normal /= np.linalg.norm(normal)
            before = normal.copy(), points.copy()
            found = refine.call(*cores, vertices, 0.0, 1.0, points, normal)
            if found == -np.inf:
                assert (normal == before[0]).all() and (points == before[1]).all()
            else:
                taken += 1
                assert found < best + 1e-12 and abs(np.linalg.norm(normal) - 1.0) < 1e-12
    assert taken > 300


def test_what_touches_is_left_to_coal():
    cores = np.zeros((2, CORE))
    cores[:, :9], cores[:, 12:] = np.eye(3).ravel(), (0.1, 0.2)
    points, normal = np.zeros((2, 3)), np.array([0.0, 0.0, 1.0])
    assert refine.call(*cores, np.zeros((1, 3)), 0.0, 1.0, points, normal) == -np.inf and not points.any()
    collisions = two_bodies(OTHERS["cylinder"], OTHERS["sphere"])
    q = np.array([0.05, 0.0, 0.02, 0.0, 0.0, 0.0, 1.0])
    assert collisions.closest(q).distances[only(collisions, "first", "second")] == pytest.approx(-0.2, abs=1e-5)
    assert pair_distances.TOUCHING == 1e-9
