"""Distances of collision shapes: certificates from both sides, closed forms, other libraries, differences."""

import numpy as np
import pytest
from support.collisions import arm, collision, robot
from support.robots import urdf_paths

import rbd_ros as rbd
from rbd_ros.core.lie import se3

pytest.importorskip("coal")

# primitives, meshes, both; several shapes on a link; mimic joints; a gripper; a floating base
ARMS = ("panda_description/panda", "panda_description/panda_collision", "ur_description/ur5_robot",
        "ur_description/ur3_robot", "ur_description/ur10_robot", "ur_description/ur5_gripper", "xarm_description/xarm7",
        "z1_description/z1", "kinova_description/kinova", "so_arm_description/so100", "so_arm_description/so101",
        "tiago_description/tiago_no_hand", "baxter_description/baxter")
# those with pairs of primitives
PRIMITIVES = ("panda_description/panda_collision", "panda_description/panda", "z1_description/z1",
              "baxter_description/baxter", "tiago_description/tiago_no_hand")
SHAPES = {"box": {"shape": "box", "size": [0.2, 0.3, 0.1]}, "sphere": {"shape": "sphere", "radius": 0.15},
          "cylinder": {"shape": "cylinder", "radius": 0.1, "length": 0.3},
          "capsule": {"shape": "capsule", "radius": 0.08, "length": 0.25},
          "mesh": {"shape": "mesh", "points": np.random.default_rng(3).normal(size=(40, 3)) * 0.12}}


def two_bodies(first, second):
    """A free body with the second shape, and the first as obstacle: distances of one pair at poses q (7,)."""
    point = collision('<sphere radius="0.001"/>')
    text = robot("", point)
    model = rbd.load_urdf(text)
    made = rbd.CollisionModel.from_urdf(text, model, obstacles=[{"name": "first", **first}])
    return made.with_shapes("l1", [{"name": "second", **second}]).without_pairs([])


def only(collisions, *pair):
    return next(k for k, names in enumerate(collisions.pairs) if set(names) == set(pair))


def free_pose(rng, spread=0.3):
    x = rng.normal(size=4)
    return np.concatenate([rng.normal(size=3) * spread, x / np.linalg.norm(x)])


# ---- the optimum, proved from both sides


def support(shape, pose, directions):
    """Largest x·n over a shape for unit directions (N, 3) in the world."""
    n = directions @ pose[:3, :3]
    if shape.surface is not None:
        reach = (n @ shape.surface.points.T).max(axis=1)
    else:
        size, across, along = shape.size, np.hypot(n[:, 0], n[:, 1]), np.abs(n[:, 2])
        reach = {"box": lambda: np.abs(n) @ np.array(size) / 2.0, "sphere": lambda: np.full(len(n), size[0]),
                 "cylinder": lambda: size[0] * across + size[1] / 2.0 * along,
                 "capsule": lambda: size[0] + size[1] / 2.0 * along}[shape.kind]()
    return reach + directions @ pose[:3, 3]


def outside(shape, pose, point):
    """How far a point is beyond a shape, at most; 0 inside."""
    x = pose[:3, :3].T @ (point - pose[:3, 3])
    if shape.surface is not None:
        corners = shape.surface.points[shape.surface.faces]
        normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
        normals /= np.linalg.norm(normals, axis=1, keepdims=True)
        return max(0.0, float(np.einsum("ij,ij->i", normals, x - corners[:, 0]).max()))
    size = shape.size
    if shape.kind == "box":
        return max(0.0, float((np.abs(x) - np.array(size) / 2.0).max()))
    if shape.kind == "sphere":
        return max(0.0, float(np.linalg.norm(x) - size[0]))
    if shape.kind == "cylinder":
        return max(0.0, float(max(np.hypot(x[0], x[1]) - size[0], abs(x[2]) - size[1] / 2.0)))
    return max(0.0, float(np.linalg.norm(x - [0.0, 0.0, np.clip(x[2], -size[1] / 2.0, size[1] / 2.0)]) - size[0]))


def bound_of(first, second, overlap):
    """m: within which a distance of two kinds of shapes is right. docs/collision.md"""
    if not overlap or "mesh" not in (first, second):
        return 1e-9
    return 1e-6 if "cylinder" in (first, second) else 1e-8


def check_optimal(collisions, q, every=1):
    """Nearest points are in both shapes, and the normal separates the shapes by the distance: nothing is nearer. Of
    shapes that overlap: no direction in a fine net leads out on a shorter way.
    """
    poses = dict(zip(collisions.model.body_names, rbd.forward_kinematics(collisions.model, q), strict=True))
    closest = collisions.closest(q)
    pieces = dict(zip(collisions.piece_names, collisions.pieces, strict=True))
    net = np.random.default_rng(0).normal(size=(3000, 3))
    net /= np.linalg.norm(net, axis=1, keepdims=True)
    overlapping = 0
    for k in range(0, len(closest.pairs), every):
        first, second = (pieces[name].shape for name in closest.pairs[k])
        T, U = (poses.get(shape.link, np.eye(4)) @ shape.pose for shape in (first, second))
        d, (a, b), n = closest.distances[k], closest.points[k], closest.normals[k]
        bound = bound_of(first.kind, second.kind, d < 0.0)
        assert abs(n @ n - 1.0) < 1e-9
        np.testing.assert_allclose(b - a, d * n, atol=bound)
        assert max(outside(first, T, a), outside(second, U, b)) < bound
        gap = -support(second, U, -n[None])[0] - support(first, T, n[None])[0]
        assert abs(gap - d) < bound, closest.pairs[k]
        if d < 0.0:
            overlapping += 1
            assert (-support(second, U, -net) - support(first, T, net)).max() < d + bound
    return overlapping


@pytest.mark.parametrize("first", sorted(SHAPES))
@pytest.mark.parametrize("second", sorted(SHAPES))
def test_no_points_are_nearer(first, second):
    collisions = two_bodies(SHAPES[first], SHAPES[second])
    rng = np.random.default_rng(5)
    overlapping = sum(check_optimal(collisions, free_pose(rng, 0.15)) for _ in range(50))
    assert 10 < overlapping < 90


@pytest.mark.parametrize("name", ARMS)
def test_no_points_of_arms_are_nearer(name):
    model, collisions = arm(name)
    rng = np.random.default_rng(1)
    assert len(collisions.pairs) > 0
    for _ in range(3):
        check_optimal(collisions, model.random_configuration(rng), every=max(1, len(collisions.pairs) // 20))


@pytest.mark.parametrize("name", ["ur_description/ur5_robot", "xarm_description/xarm7"])
def test_hulls_hold_all_points_of_the_meshes(name):
    trimesh = pytest.importorskip("trimesh")
    _, collisions = arm(name)
    meshes = [piece for piece in collisions.pieces if piece.shape.surface is not None]
    assert meshes
    for piece in meshes:
        points = piece.shape.surface.points
        volume = trimesh.Trimesh(points, piece.shape.surface.faces).volume    # positive: faces look outward
        assert volume > 0.0 and abs(volume / trimesh.Trimesh(points).convex_hull.volume - 1.0) < 1e-9


# ---- other libraries and closed forms


@pytest.mark.parametrize("name", PRIMITIVES)
def test_as_pinocchio(name):
    """Primitives of arms, in the configurations of Pinocchio's own geometry model."""
    pin = pytest.importorskip("pinocchio")
    from support.pinocchio_peer import Peer, loadable, read

    if name in urdf_paths() and name not in loadable():
        pytest.skip("Pinocchio does not load it")
    model, collisions = arm(name, mimic="independent")
    path = urdf_paths()[name]
    peer = Peer(model, read(path))
    geometry = pin.buildGeomFromUrdf(peer.pin, str(path), pin.GeometryType.COLLISION,
                                     package_dirs=[str(path.parents[4])])
    theirs = {}
    for name, _ in zip(collisions.piece_names, collisions.pieces, strict=True):
        link, _, k = name.partition("/")
        theirs[name] = f"{link}_{k or 0}"
    simple = {piece.name for piece in collisions.pieces if piece.shape.surface is None and geometry.existGeometryName(
        theirs[piece.name]) and piece.shape.kind != "capsule"}
    pairs = [k for k, pair in enumerate(collisions.pairs) if set(pair) <= simple]
    assert pairs
    for k in pairs:
        geometry.addCollisionPair(pin.CollisionPair(*(geometry.getGeometryId(theirs[piece])
                                                      for piece in collisions.pairs[k])))
    data = geometry.createData()
    for request in data.distanceRequests:
        request.gjk_tolerance = 1e-12
    rng = np.random.default_rng(2)
    for _ in range(10):
        q = model.random_configuration(rng)
        pin.computeDistances(peer.pin, peer.data, geometry, data, peer.q(q))
        expected = np.array([result.min_distance for result in data.distanceResults])
        error = np.abs(collisions.distances(q)[pairs] - expected)
        assert error[expected > 0.0].max() < 1e-9 and error.max() < 2e-6    # its depths beside cylinders


@pytest.mark.parametrize("first", ["box", "sphere", "cylinder", "capsule"])
@pytest.mark.parametrize("second", ["box", "sphere", "cylinder", "capsule"])
def test_as_mujoco(first, second):
    mujoco = pytest.importorskip("mujoco")

    def geom(name, shape):
        size = {"box": lambda: np.array(shape["size"]) / 2.0, "sphere": lambda: [shape["radius"]]}.get(
            shape["shape"], lambda: [shape["radius"], shape["length"] / 2.0])()
        return f'<geom name="{name}" type="{shape["shape"]}" size="{" ".join(map(str, size))}"/>'

    peer = mujoco.MjModel.from_xml_string(
        f'<mujoco><option ccd_tolerance="1e-9" ccd_iterations="200"/><worldbody>{geom("first", SHAPES[first])}'
        f'<body><freejoint/>{geom("second", SHAPES[second])}</body></worldbody></mujoco>')
    data = mujoco.MjData(peer)
    collisions = two_bodies(SHAPES[first], SHAPES[second])
    k = only(collisions, "first", "second")
    rng = np.random.default_rng(4)
    apart = 0
    for _ in range(30):
        q = free_pose(rng)
        data.qpos[:] = [*q[:3], q[6], *q[3:6]]
        mujoco.mj_kinematics(peer, data)
        expected = mujoco.mj_geomDistance(peer, data, 0, 1, 10.0, None)
        if expected > 1e-3:    # depths it finds by other rules
            apart += 1
            assert abs(collisions.distances(q)[k] - expected) < 1e-6
    assert apart > 10


def test_closed_forms():
    rng = np.random.default_rng(6)
    ball = SHAPES["sphere"]["radius"]
    box = two_bodies(SHAPES["box"], SHAPES["sphere"])
    plane = two_bodies({"shape": "plane", "frame": ([0.0, 0.1, 0.0], [0.4, 0.2, 0.0])}, SHAPES["box"])
    T = se3.pose([0.0, 0.1, 0.0], [0.4, 0.2, 0.0])
    half = np.array(SHAPES["box"]["size"]) / 2.0
    sphere = two_bodies(SHAPES["sphere"], SHAPES["capsule"])
    for _ in range(50):
        q = free_pose(rng)
        pose = rbd.forward_kinematics(box.model, q)[1]
        x = np.abs(pose[:3, 3]) - half
        expected = np.linalg.norm(np.maximum(x, 0.0)) + min(x.max(), 0.0) - ball
        assert abs(box.distances(q)[only(box, "first", "second")] - expected) < 1e-12
        n = T[:3, 2]
        expected = n @ (pose[:3, 3] - T[:3, 3]) - np.abs(n @ pose[:3, :3]) @ half
        assert abs(plane.distances(q)[only(plane, "first", "second")] - expected) < 1e-12
        axis, length = pose[:3, 2], SHAPES["capsule"]["length"] / 2.0
        nearest = pose[:3, 3] + axis * np.clip(-axis @ pose[:3, 3], -length, length)
        expected = np.linalg.norm(nearest) - ball - SHAPES["capsule"]["radius"]
        assert abs(sphere.distances(q)[only(sphere, "first", "second")] - expected) < 1e-12


def test_a_centre_on_a_surface():
    """Where coal has a distance, but its normal is a rounding error or NaN: a sphere's centre on a box's face, and two
    boxes that touch.
    """
    half, rng = np.array(SHAPES["box"]["size"]) / 2.0, np.random.default_rng(10)
    for first, radius in (("sphere", SHAPES["sphere"]["radius"]), ("box", 0.0)):
        collisions = two_bodies(SHAPES[first], SHAPES["box"])
        k = only(collisions, "first", "second")
        assert collisions.pairs[k] == ("first", "second")
        for _ in range(100):
            q, axis, side = free_pose(rng), rng.integers(3), rng.choice([-1.0, 1.0])
            if first == "box":
                q[3:] = [0.0, 0.0, 0.0, 1.0]    # face to face, shifted along it
            R = rbd.forward_kinematics(collisions.model, q)[1, :3, :3]
            x = rng.uniform(-0.9, 0.9, 3) * half
            x[axis] = side * half[axis] * (2.0 if first == "box" else 1.0)
            q[:3] = -R @ x
            closest = collisions.closest(q)
            assert abs(closest.distances[k] + radius) < 1e-9
            np.testing.assert_allclose(closest.normals[k], -side * R[:, axis], atol=1e-6)
            assert np.isfinite(closest.gradients).all() and np.isfinite(closest.points).all()


# ---- gradients


def differences(collisions, q, h):
    """∂d/∂q by central differences of fourth order, and whether each pair is smooth there."""
    model = collisions.model
    at = lambda s: np.array([collisions.distances(model.integrate(q, s * u)) for u in np.eye(model.nv)])  # noqa: E731
    near, far = (at(h) - at(-h)) / (2.0 * h), (at(2.0 * h) - at(-2.0 * h)) / (4.0 * h)
    return ((4.0 * near - far) / 3.0).T, (np.abs(near - far) < 1e-7).all(axis=0)


def check_gradients(collisions, q, bound, h=1e-4):
    closest = collisions.closest(q)
    expected, smooth = differences(collisions, q, h)
    error = np.abs(closest.gradients - expected).max(axis=1)
    # where a pair stands within rounding of an edge between two nearly flat faces, both differences are their mean
    assert error[smooth].max(initial=0.0) < 1e-5
    assert np.count_nonzero(error[smooth] > bound) <= 0.01 * len(error)
    return int(smooth.sum()), len(smooth), float(np.abs(expected).max())


@pytest.mark.parametrize("first", sorted(SHAPES))
@pytest.mark.parametrize("second", sorted(SHAPES))
def test_gradients_of_free_bodies(first, second):
    """Penetrating pairs included, whose depth is as smooth."""
    collisions = two_bodies(SHAPES[first], SHAPES[second])
    rng = np.random.default_rng(7)
    counts = np.array([check_gradients(collisions, free_pose(rng), 1e-7)[:2] for _ in range(20)]).sum(axis=0)
    assert counts[0] > 0.5 * counts[1]


@pytest.mark.parametrize("name", ARMS)
def test_gradients_of_arms(name):
    model, collisions = arm(name)
    rng = np.random.default_rng(8)
    found = [check_gradients(collisions, model.random_configuration(rng), 1e-7) for _ in range(3)]
    assert sum(smooth for smooth, _, _ in found) > 0.3 * sum(count for _, count, _ in found)
    assert max(size for _, _, size in found) > 0.05


@pytest.mark.parametrize("root", ["fixed", "floating"])
def test_gradients_with_mimic_joints_and_a_floating_base(root):
    model, collisions = arm("panda_description/panda", root=root)
    assert model.mimics
    collisions = collisions.with_obstacles([{"shape": "sphere", "radius": 0.3, "frame": [0.6, 0.2, 0.4]}])
    rng = np.random.default_rng(9)
    for _ in range(2):
        smooth, count, size = check_gradients(collisions, model.random_configuration(rng), 1e-7)
        assert smooth > 0.5 * count and size > 0.1
