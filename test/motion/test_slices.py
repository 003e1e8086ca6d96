"""Convex slices of meshes: they hold all of the mesh, leave out what is hollow, and are few."""

import numpy as np
import pytest
from scipy.spatial import ConvexHull
from support.collisions import robot
from support.robots import urdf_paths

import rbd_ros as rbd
from rbd_ros.core.model.files.xml_tree import parse_xml
from rbd_ros.core.model.shapes.elements import read_shapes
from rbd_ros.core.motion.collision.slices import slices

def extruded(outline, height, turn=None):
    """Closed mesh of an outline (N, 2), counterclockwise and seen from its first corner, between ±height/2."""
    n = len(outline)
    points = np.concatenate([np.column_stack([outline, np.full(n, z)]) for z in (-0.5 * height, 0.5 * height)])
    faces = [[0, k + 1, k] for k in range(1, n - 1)] + [[n, n + k, n + k + 1] for k in range(1, n - 1)]
    faces += [each for k in range(n) for each in ([k, (k + 1) % n, n + k], [(k + 1) % n, n + (k + 1) % n, n + k])]
    return points if turn is None else points @ turn.T, np.array(faces)


def angle(width, arm=1.0):
    """An L of two arms, seen from its inner corner."""
    return np.array([[width, width], [width, arm], [0.0, arm], [0.0, 0.0], [arm, 0.0], [arm, width]])


def on_surface(points, faces, count, rng):
    """Random places (count, 3) on random triangles, edges and corners among them."""
    weights = rng.dirichlet([0.5, 0.5, 0.5], count)
    weights[::5] = np.eye(3)[rng.integers(0, 3, len(weights[::5]))]
    weights[1::5, 0], weights[1::5, 1] = 0.0, 1.0 - weights[1::5, 2]
    return np.einsum("nk,nkj->nj", weights, points[faces[rng.integers(0, len(faces), count)]])


def outside(places, parts):
    """How far (m) each place is outside of the nearest hull of the parts, at most; 0 inside of one."""
    beyond = [(hull.equations[:, :3] @ places.T + hull.equations[:, 3:]).max(axis=0) for hull in map(ConvexHull, parts)]
    return np.maximum(np.min(beyond, axis=0), 0.0)


def volume(parts):
    return sum(ConvexHull(part).volume for part in parts)


@pytest.mark.parametrize("axes", [(0, 1, 2), (1, 2, 0), (2, 0, 1)])
@pytest.mark.parametrize("width", [0.1, 0.23, 0.3])
def test_an_angle_becomes_two_slices_that_hold_its_surface_and_inside(axes, width):
    points, faces = extruded(angle(width), 0.3, np.eye(3)[list(axes)])
    parts = slices(points, faces)
    rng = np.random.default_rng(0)
    assert outside(on_surface(points, faces, 5000, rng), parts).max() < 1e-14
    inside = rng.uniform(0.0, 1.0, (5000, 3)) - [0.0, 0.0, 0.5]
    inside = inside[inside[:, :2].min(axis=1) < width] * [1.0, 1.0, 0.3]
    assert outside(inside @ np.eye(3)[list(axes)].T, parts).max() < 1e-14
    exact = 0.3 * (2.0 * width - width**2)
    assert len(parts) == 2 and exact - 1e-12 < volume(parts) < exact + 0.3 / 16


@pytest.mark.parametrize("seed", range(20))
def test_slices_hold_the_surface_of_open_tangled_meshes(seed):
    rng = np.random.default_rng(seed)
    points, faces = rng.normal(size=(30, 3)), rng.integers(0, 30, (12, 3))    # long triangles, some of them flat
    points[rng.integers(0, 30, 5), 0] = 0.0
    assert outside(on_surface(points, faces, 2000, rng), slices(points, faces)).max() < 1e-12


def test_a_convex_mesh_stays_one_piece():
    points, faces = extruded(np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]]), 1.0)
    assert [part is points for part in slices(points, faces)] == [True]


def test_what_has_no_volume_stays_as_it_is():
    points = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    assert [part is points for part in slices(points, np.array([[0, 1, 2]]))] == [True]


@pytest.mark.parametrize("name", ["ur_description/ur5_robot", "xarm_description/xarm7", "kinova_description/kinova",
                                  "z1_description/z1"])
def test_slices_of_real_links_hold_their_surfaces_and_are_few(name):
    if name not in urdf_paths():
        pytest.skip("example-robot-data is not installed")
    rng, most = np.random.default_rng(0), 0
    file = urdf_paths()[name]
    for element in parse_xml(file.read_bytes(), str(file)).iter("collision"):
        for surface in [shape.surface for shape in read_shapes(element, "link", file) if shape.surface is not None]:
            parts = slices(surface.points, surface.faces)
            assert outside(on_surface(surface.points, surface.faces, 2000, rng), parts).max() < 1e-12
            most = max(most, len(parts))
            assert len(parts) == 1 or volume(parts) < 0.93 * volume([surface.points])
    assert most <= 4


def test_a_link_leaves_room_where_its_mesh_is_hollow(tmp_path):
    """A ball in the corner of an angle, at the distance of the arm across the slices; a hull would swallow it."""
    points, faces = extruded(angle(0.125), 0.3)
    rows = "".join("facet normal 0 0 0\nouter loop\n" + "".join(f"vertex {x} {y} {z}\n" for x, y, z in points[face])
                   + "endloop\nendfacet\n" for face in faces)
    (tmp_path / "angle.stl").write_text(f"solid angle\n{rows}endsolid angle\n")
    urdf = tmp_path / "angle.urdf"
    mesh = '<collision><geometry><mesh filename="angle.stl"/></geometry></collision>'
    urdf.write_text(robot("", mesh, joints=("revolute",)))
    model = rbd.load_urdf(urdf)
    ball = {"name": "ball", "shape": "sphere", "radius": 0.1, "frame": [0.4, 0.4, 0.0]}
    collisions = rbd.CollisionModel.from_urdf(urdf, model, obstacles=[ball])
    assert collisions.piece_names == ("l1/0", "l1/1", "ball")
    np.testing.assert_allclose(collisions.distances(model.neutral()).min(), 0.4 - 0.125 - 0.1, atol=1e-9)
