"""Cylinders that overlap others: against searches of all directions that may be those of the least width."""
from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from test_collision import SHAPES, free_pose, only, outside, support, two_bodies
from test_cylinder_distance import OTHERS, posed

from rbd_ros.core.motion.collision.cylinder_distance import CORE, cylinder_distance

pytest.importorskip("coal")


def width(first, T, second, U, n):
    return support(first, T, n) + support(second, U, -n)


def flat_ways(shape, pose):
    """Directions (N, 3) of edges and sides: where none of them is perpendicular to n, only rims are farthest along n.
    """
    if shape.surface is not None:
        corners = shape.surface.points[shape.surface.faces]
        edges = np.concatenate([corners[:, (k + 1) % 3] - corners[:, k] for k in range(3)])
        edges = edges[edges[:, 0] > 0.0]    # each is one of two faces
        return edges / np.linalg.norm(edges, axis=1, keepdims=True) @ pose[:3, :3].T
    return {"box": pose[:3, :3].T, "sphere": np.zeros((0, 3))}.get(shape.kind, pose[:3, 2][None])


def least_width(first, T, second, U):
    """On circles about the flat ways, by nets that close in; on the sphere from the best of a net, if both are
    cylinders. (Along both ways across n the surface of the difference is flat or round, with no edge from inside.)
    """
    of = lambda n: width(first, T, second, U, n.reshape(-1, 3)).reshape(n.shape[:-1])    # noqa: E731
    lines = np.concatenate([flat_ways(first, T), flat_ways(second, U)])
    best = of(np.concatenate([lines, -lines])).min()
    t = np.linspace(0.0, 2.0 * np.pi, 361)
    across = np.linalg.svd(lines[:, None])[2][:, 1:]
    values = of(np.stack([np.cos(t[:-1]), np.sin(t[:-1])], axis=1) @ across)
    which, lows = np.nonzero((values <= np.roll(values, 1, axis=1)) & (values <= np.roll(values, -1, axis=1)))
    middle, half = t[lows], t[1]
    for _ in range(17):    # to 1e-15 rad and less
        x = middle[:, None] + half * np.linspace(-1.0, 1.0, 17)
        values = of(np.stack([np.cos(x), np.sin(x)], axis=-1) @ across[which])
        middle, half = np.take_along_axis(x, values.argmin(axis=1)[:, None], axis=1)[:, 0], half / 8.0
    best = min(best, values.min())
    if first.kind == second.kind == "cylinder":
        net = np.random.default_rng(0).normal(size=(3000, 3))
        net /= np.linalg.norm(net, axis=1, keepdims=True)
        starts = net[np.argsort(of(net))[:3]]
        size, grid = np.full(3, 0.1), np.stack(np.meshgrid(*[np.linspace(-1.0, 1.0, 5)] * 2), axis=-1).reshape(-1, 2)
        for _ in range(300):    # downhill on nets of the tangent planes, finer where the middle is the lowest
            x = starts[:, None] + size[:, None, None] * (grid @ np.linalg.svd(starts[:, None])[2][:, 1:])
            x /= np.linalg.norm(x, axis=2, keepdims=True)
            values = of(x)
            lowest = np.where(values.min(axis=1) < values[:, 12], values.argmin(axis=1), 12)
            starts = x[np.arange(3), lowest]
            size[lowest == 12] *= 0.5
            if size.max() < 1e-13:
                break
        best = min(best, of(starts).min())
    return float(best)


def check(collisions, q, bound=1e-12, of_points=1e-12):
    """Depth as the search's; and the nearest points are in both pieces, one depth from each other."""
    (first, T, second, U), k, found = posed(collisions, q)
    d, (a, b), n = found.distances[k], found.points[k], found.normals[k]
    assert abs(d + least_width(first, T, second, U)) < bound
    assert abs(d + width(first, T, second, U, n[None])[0]) < bound and abs(n @ n - 1.0) < 1e-12
    np.testing.assert_allclose(b - a, d * n, atol=1e-11)
    assert max(outside(first, T, a), outside(second, U, b)) < of_points
    assert collisions.distances(q)[k] == d


@pytest.mark.parametrize("second", OTHERS)
@pytest.mark.parametrize("first", ["cylinder", "disc", "needle"])
def test_of_random_poses(first, second):
    count = 4 if second == "mesh" else 12
    radius = OTHERS[second]["radius"] if second in ("sphere", "capsule") else 0.0
    for collisions in (two_bodies(OTHERS[first], OTHERS[second]), two_bodies(OTHERS[second], OTHERS[first])):
        rng, checked = np.random.default_rng(0), 0
        while checked < count:
            q = free_pose(rng, 0.05)
            if collisions.distances(q)[only(collisions, "first", "second")] < -radius - 1e-6:    # the cores overlap
                check(collisions, q)
                checked += 1


@pytest.mark.parametrize("second", ["cylinder", "box", "capsule", "sphere", "disc", "needle", "plate", "mesh"])
@pytest.mark.parametrize("tilt", [0.0, 1e-9, 1e-6, 1e-4, 1e-3])
def test_of_parallel_faces_and_axes(second, tilt):
    """Where the nearest points are a line or a face, or nearly, on one axis or beside it."""
    collisions = two_bodies(OTHERS["cylinder"], OTHERS[second])
    for place in ([0.03, 0.02, 0.1], [0.0, 0.0, 0.05], [1e-7, 0.0, 0.0], [0.05, 0.0, 0.0]):
        for turn in ([0.0, 0.0, 0.0], [np.pi / 2, 0.0, 0.0], [0.0, np.pi / 2, 0.3]):
            rotation = Rotation.from_rotvec(tilt * np.array([0.6, -0.5, 0.62])) * Rotation.from_euler("xyz", turn)
            check(collisions, np.array([*place, *rotation.as_quat()]), 1e-9, 1e-9)


@pytest.mark.parametrize("second", OTHERS)
def test_the_way_out_is_as_long_as_the_depth(second):
    """Moved along the normal, a piece is less deep by as much, and once it is out, that far away."""
    collisions, rng = two_bodies(OTHERS["cylinder"], OTHERS[second]), np.random.default_rng(2)
    for _ in range(10):
        q = free_pose(rng, 0.1)
        _, k, found = posed(collisions, q)
        d, n = found.distances[k], found.normals[k]
        for s in np.abs(d) * np.array([0.25, 0.9, 0.999, 1.001, 2.0]):
            out = np.concatenate([q[:3] + s * n, q[3:]])
            assert abs(collisions.distances(out)[k] - d - s) < (1e-8 if second == "mesh" else 1e-9)


@pytest.mark.parametrize("tilt", [1e-7, 3.67e-6, 1e-4, 1e-3])
def test_of_a_disc_nearly_on_the_axis(tilt):
    """The width is bent within the angle of both axes: Newton's method alone leaves it."""
    collisions = two_bodies({"shape": "cylinder", "radius": 0.12, "length": 0.14},
                            {"shape": "cylinder", "radius": 0.07, "length": 0.0006})
    rng = np.random.default_rng(0)
    for _ in range(40):
        q = np.array([*rng.uniform(-0.07, 0.07, 2), rng.uniform(-1e-3, 1e-3), *rng.normal(size=3) * 0.5 * tilt, 1.0])
        q[3:] /= np.linalg.norm(q[3:])
        check(collisions, q, 1e-10, 1e-9)


@pytest.mark.parametrize("angle", [0.0, 1.5708, 1.570796327])
def test_of_round_numbers_and_typed_angles(angle):
    """Hulls with large faces, where several normals are as good and the one given is none of them."""
    t, rng = np.arange(12) * (np.pi / 6), np.random.default_rng(0)
    drum = np.concatenate([np.stack([np.cos(t), np.sin(t), np.full(12, s)], axis=1) for s in (-1.0, 1.0)]) * 0.2
    cube = np.array([[x, y, z] for x in (-0.2, 0.2) for y in (-0.2, 0.2) for z in (-0.2, 0.2)])
    rotation = Rotation.from_euler("x", angle).as_quat()
    for radius, length in ((0.3, 0.2), (0.45, 0.3)):
        for points in (drum, cube):
            collisions = two_bodies({"shape": "cylinder", "radius": radius, "length": length},
                                    {"shape": "mesh", "points": points})
            for _ in range(5):
                check(collisions, np.array([*rng.uniform(-0.25, 0.25, 2).round(2), 0.0, *rotation]), 1e-6, 1e-8)


@pytest.mark.parametrize("second", ["cylinder", "box", "capsule", "sphere"])
def test_answers_scale(second):
    for size in (1e-3, 1e3):
        scenes = [two_bodies(*({key: value if key == "shape" else (np.array(value) * s).tolist()
                                for key, value in SHAPES[name].items()} for name in ("cylinder", second)))
                  for s in (1.0, size)]
        rng = np.random.default_rng(4)
        for _ in range(15):
            q = free_pose(rng, 0.1)
            (d, n), (e, m) = ((found.distances[k], found.normals[k]) for _, k, found in (
                posed(scene, np.array([*(s * q[:3]), *q[3:]])) for scene, s in zip(scenes, (1.0, size), strict=True)))
            assert abs(e / size - d) < 1e-12
            np.testing.assert_allclose(m, n, atol=1e-10)


def test_it_is_never_deeper_than_what_is_given():
    """Hostile normals, of no length and NaN as well: the width is that of the normal found, and no more; or −inf, of a
    hull, and nothing else.
    """
    rng, cores = np.random.default_rng(1), np.zeros((2, CORE))
    cores[:, :9] = np.eye(3).ravel()
    cores[:, 12:] = 0.1, 0.2
    cores[1, 9:12] = 0.02, 0.05, 0.1
    none, refused = np.empty((0, 3)), 0
    for vertices, ways in ((none, np.eye(3)[2:]), (none, none), (rng.normal(size=(20, 3)) * 0.05, none),
                           (np.zeros((1, 3)), none)):
        def width(n, vertices=vertices):
            reach = 0.1 * np.hypot(*n[:2]) + 0.2 * abs(n[2])
            return reach + ((vertices @ -n).max() if len(vertices) else reach) - n @ cores[1, 9:12]

        for k in range(300):
            normal, points = rng.normal(size=3) if k > 2 else np.full(3, [0.0, np.nan, np.inf][k]), np.zeros((2, 3))
            given = normal.copy()
            distance = cylinder_distance.call(*cores, vertices, ways, 0.0, 1.0, points, normal)
            if distance == -np.inf:
                np.testing.assert_equal(normal, given)
                assert len(vertices) == 20 and not points.any()
                refused += 1
                continue
            assert k < 3 or -distance <= width(given / np.linalg.norm(given)) + 1e-15
            assert abs(width(normal) + distance) < 1e-12 and abs(np.linalg.norm(normal) - 1.0) < 1e-12
            np.testing.assert_allclose(points[1] - points[0], distance * normal, atol=1e-12)
            assert np.hypot(*points[0, :2]) < 0.1 + 1e-9 and abs(points[0, 2]) < 0.2 + 1e-9
    assert refused < 250    # of 300, of which most are far from any way out of a hull
