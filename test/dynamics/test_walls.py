"""Virtual walls: depths against minimisation, gradients against differences, forces without steps, and files."""
from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from support.compiled import compiled
from support.samples import samples

import rbd_ros as rbd
from rbd_ros.core.dynamics.walls import FADE, RECESS, WALL, wall_depth, walls_on
from rbd_ros.core.lie import so3
from rbd_ros.runtime.control.walls_yaml import MOST, load_walls

KINDS = ("plane", "box", "sphere", "cone")
H = 1e-6


def numbers(x):
    return [float(each) for each in x]


def random_wall(kind, keep, rng):
    """The row of a wall, and its values in the file."""
    place = numbers(rng.uniform(-0.3, 0.3, 3))
    if kind == "plane":
        values = {"point": place, "normal": numbers(rng.normal(size=3))}
    elif kind == "box":
        values = {"center": place, "size": numbers(rng.uniform(0.2, 0.8, 3)), "rpy": numbers(rng.uniform(-3, 3, 3))}
    elif kind == "sphere":
        values = {"center": place, "radius": float(rng.uniform(0.1, 0.4))}
    else:
        values = {"apex": place, "axis": numbers(rng.normal(size=3)), "half_angle": float(rng.uniform(0.1, 1.4))}
    if kind != "plane":
        values["keep"] = keep
    return load_walls(f"walls: [{{{kind}: {values}}}]".replace("'", ""))[0], values


def constraints(kind, values):
    """Functions of a point that are at least 0 inside."""
    if kind == "plane":
        n = np.array(values["normal"]) / np.linalg.norm(values["normal"])
        return [lambda p: n @ (p - values["point"])]
    if kind == "box":
        R, half = so3.from_rpy(values["rpy"]), 0.5 * np.array(values["size"])
        return [lambda p, i=i, sign=sign: half[i] - sign * R[:, i] @ (p - values["center"])
                for i in range(3) for sign in (1.0, -1.0)]
    if kind == "sphere":
        return [lambda p: values["radius"] - np.linalg.norm(p - values["center"])]
    axis = np.array(values["axis"]) / np.linalg.norm(values["axis"])

    def cone(p):
        x = p - values["apex"]
        z = axis @ x
        return z * np.sin(values["half_angle"]) - np.linalg.norm(x - z * axis) * np.cos(values["half_angle"])
    return [cone]


@compiled
def depth_of(row, p):
    return wall_depth(row, 0, (p[0], p[1], p[2]))


@compiled
def acting(walls, p, stiffness, most, twist, rate):
    return walls_on(walls, (p[0], p[1], p[2]), stiffness, most, twist, rate)


def depth(row, p):
    d, n = depth_of(row, np.asarray(p))
    return d, np.array(n)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.thorough) for seed in range(1, 10))])
def test_depth_outside_is_the_distance_to_the_inside(kind, seed):
    rng = np.random.default_rng(seed)
    for _ in range(samples(12)):
        row, values = random_wall(kind, "inside", rng)
        bounds, p = constraints(kind, values), rng.uniform(-1, 1, 3)
        inside = min(each(p) for each in bounds) >= 0.0
        d, n = depth(row, p)
        if inside:
            assert d <= 0.0
            continue
        origin = np.array(values.get("center", values.get("apex", values.get("point"))))
        starts = [p, origin + 1e-3, origin + 0.1 * np.array(values.get("axis", np.zeros(3))) + 1e-4]
        least = min((found for found in (minimize(
            lambda x, p=p: (x - p) @ (x - p), start, method="SLSQP", options={"maxiter": 500, "ftol": 1e-16},
            constraints=[{"type": "ineq", "fun": each} for each in bounds]) for start in starts)
            if min(each(found.x) for each in bounds) > -1e-7), key=lambda found: found.fun)
        assert d == pytest.approx(np.sqrt(least.fun), abs=2e-5)
        np.testing.assert_allclose(n, (p - least.x) / np.sqrt(least.fun), atol=5e-3)
        assert np.linalg.norm(n) == pytest.approx(1.0)


@pytest.mark.parametrize("kind", KINDS[1:])
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.thorough) for seed in range(1, 10))])
def test_depth_inside_is_the_distance_to_the_nearest_face_where_that_is_clear(kind, seed):
    rng, clear = np.random.default_rng(seed), 0
    while clear < samples(20):
        row, values = random_wall(kind, "outside", rng)
        p, bounds = rng.uniform(-0.6, 0.6, 3), constraints(kind, values)
        away = sorted(each(p) for each in bounds)    # distances to the faces, inside
        d, n = depth(row, p)
        if away[0] < 0.0:
            assert d <= 0.0
            continue
        if kind == "box":
            near = away[1] < 2.0 / 0.8**2 * away[0]
        elif kind == "sphere":
            near = np.linalg.norm(p - values["center"]) < 0.5 * values["radius"]
        else:
            x, axis = p - values["apex"], np.array(values["axis"]) / np.linalg.norm(values["axis"])
            near = np.linalg.norm(x - axis @ x * axis) < 0.5 * axis @ x * np.tan(values["half_angle"])
        assert 0.0 <= d <= away[0] + 1e-12
        if near:
            assert np.linalg.norm(n) <= 1.0 + 1e-12
            continue
        clear += 1
        assert d == pytest.approx(away[0], abs=1e-12) and np.linalg.norm(n) == pytest.approx(1.0)
        assert min(each(p - (d + 1e-9) * n) for each in bounds) <= 0.0    # the face is there


def wall_force(walls, p, stiffness=3000.0, most=60.0):
    twist, rate = np.zeros(6), np.zeros(6)
    force, energy, K, _ = acting(np.ravel(walls), np.asarray(p), stiffness, most, twist, rate)
    return np.array(force), energy, np.array(K)


@pytest.mark.parametrize("keep", ["inside", "outside"])
@pytest.mark.parametrize("kind", KINDS)
def test_forces_are_gradients_bounded_and_without_steps(kind, keep):
    rng = np.random.default_rng(3)
    for _ in range(samples(6)):
        walls = np.array([random_wall(kind, keep, rng)[0]])
        walls[:, RECESS] = 0.0
        start, way = rng.uniform(-0.5, 0.5, 3), rng.normal(size=3)
        place, way = walls[0, 11:14], way / np.linalg.norm(way)
        for through in (start, place):    # lines through centres and apices, too
            steps = [wall_force(walls, through + x * way)[0] for x in np.linspace(-0.5, 0.5, 4001)]
            sizes = np.linalg.norm(steps, axis=1)
            assert sizes.max() <= 60.0 + 1e-9
            jumps = np.linalg.norm(np.diff(steps, axis=0), axis=1)
            # k, and curvature most/d < k · most/(k d) where d counts, of rounded edges and ridges
            assert jumps.max() <= 12.0 * 3000.0 * 0.5 / 4000 * 4.0, jumps.max()
        for _ in range(samples(40)):
            p = rng.uniform(-0.6, 0.6, 3)
            slope = [(wall_force(walls, p + H * e)[1] - wall_force(walls, p - H * e)[1]) / (2.0 * H) for e in np.eye(3)]
            np.testing.assert_allclose(wall_force(walls, p)[0], -np.array(slope), atol=2e-2)


def test_stiffness_for_the_damping_fades_in_and_is_that_of_the_force():
    floor = load_walls("walls: [{plane: {point: [0, 0, 0], normal: [0, 0, 1]}}]")
    floor[:, RECESS] = 0.0
    at = [wall_force(floor, [0.0, 0.0, -d])[2][5] for d in (-0.01, 0.0, 1e-6, 0.5 * FADE, FADE, 0.01)]
    np.testing.assert_allclose(at, [0.0, 0.0, 0.0, 1500.0, 3000.0, 3000.0], atol=1e-3)


def test_a_target_does_not_go_on_behind_a_wall():
    floor = load_walls("walls: [{plane: {point: [0, 0, 0], normal: [0, 0, 1]}}]")
    floor[:, RECESS] = 0.0
    for z, expected in ((0.1, [-0.2, -1.0]), (-0.01, [0.0, 0.0])):
        twist, rate = np.array([1.0, 2, 3, 0.4, 0.5, -0.2]), np.array([1.0, 2, 3, 4, 5, -1.0])
        acting(floor.ravel(), np.array([0.0, 0.0, z]), 3000.0, 60.0, twist, rate)
        np.testing.assert_allclose(twist, [1.0, 2, 3, 0.4, 0.5, expected[0]])
        np.testing.assert_allclose(rate, [1.0, 2, 3, 4, 5, expected[1]])
    twist = np.array([0, 0, 0, 0, 0, 0.3])
    acting(floor.ravel(), np.array([0.0, 0.0, -0.01]), 3000.0, 60.0, twist, np.zeros(6))
    assert twist[5] == 0.3    # out of it


@pytest.mark.parametrize("kind", KINDS)
def test_of_a_target_only_what_leads_into_the_wall_fades(kind):
    """Of its twist, the part along the normal that leads inward; of the twist's rate, the part along the normal."""
    rng, looked = np.random.default_rng(3), 0
    while looked < samples(20):
        row, _ = random_wall(kind, "inside" if kind == "cone" else "outside", rng)
        p = rng.uniform(-0.6, 0.6, 3)
        d, n = depth(row, p)
        if d < FADE:
            continue
        looked += 1
        row[RECESS] = 0.0    # it stands where it was, all of it counts
        twist, rate = rng.normal(size=6), rng.normal(size=6)
        was, before = twist.copy(), rate.copy()
        acting(row.copy(), p, 3000.0, 60.0, twist, rate)
        np.testing.assert_allclose(twist[3:], was[3:] - max(n @ was[3:], 0.0) * n, atol=1e-12)
        np.testing.assert_allclose(rate[3:], before[3:] - n @ before[3:] * n, atol=1e-12)
        assert (twist[:3] == was[:3]).all() and (rate[:3] == before[:3]).all()


def test_a_wall_appears_where_the_point_is_and_comes_back_with_it():
    floor = load_walls("walls: [{plane: {point: [0, 0, 0], normal: [0, 0, 1]}}]")
    found = [wall_force(floor, [0.0, 0.0, z], 1000.0)[0][2] for z in (-0.05, -0.06, -0.03, -0.04, 0.2, -0.01)]
    np.testing.assert_allclose(found, [0.0, 10.0, 0.0, 10.0, 0.0, 10.0], atol=1e-9)


def test_a_file(tmp_path):
    path = tmp_path / "walls.yaml"
    path.write_text("""walls:
  - plane: {point: [0, 0, 0.1], normal: [0, 0, 2]}
  - box: {center: [0.5, 0, 0.5], size: [0.6, 0.8, 0.6], keep: inside}
  - sphere: {center: [0.3, 0.2, 0.4], radius: 0.1, keep: outside}
  - cone: {apex: [0.5, 0, 0.2], axis: [0, 0, 1], half_angle: 0.5, keep: inside}
""")
    walls = load_walls(path)
    assert walls.shape == (4, WALL) and np.isinf(walls[:, RECESS]).all()
    assert load_walls("").shape == (0, WALL)
    np.testing.assert_allclose([depth(row, [0.5, 0.0, 0.05])[0] for row in walls[:2]], [0.05, 0.15])


@pytest.mark.parametrize(("text", "words"), [
    ("nothing: []", "key 'walls'"), ("walls: 3", "list"), ("walls: [3]", "wall 0: expected"),
    ("walls: [{torus: {}}]", "torus"), ("walls: [{plane: {point: [0, 0, 0]}}]", "needs normal"),
    ("walls: [{plane: 3}]", "needs point, normal"),
    ("walls: [{plane: {point: [0, 0], normal: [0, 0, 1]}}]", "3 numbers"),
    ("walls: [{plane: {point: [0, 0, .nan], normal: [0, 0, 1]}}]", "3 numbers"),
    ("walls: [{plane: {point: [0, 0, true], normal: [0, 0, 1]}}]", "3 numbers"),
    ("walls: [{plane: {point: [0, 0, 1e400], normal: [0, 0, 1]}}]", "3 numbers"),
    ("walls: [{plane: {point: [0, 0, 0], normal: [0, 0, 0]}}]", "direction"),
    ("walls: [{plane: {point: [0, 0, 0], normal: [0, 0, 1], keep: inside}}]", "keep"),
    ("walls: [{sphere: {center: [0, 0, 0], radius: -1, keep: inside}}]", "radius"),
    ("walls: [{sphere: {center: [0, 0, 0], radius: [1], keep: inside}}]", "radius"),
    ("walls: [{sphere: {center: [0, 0, 0], radius: 1, keep: in}}]", "inside or outside"),
    ("walls: [{sphere: {center: [0, 0, 0], radius: 1, keep: [a]}}]", "inside or outside"),
    ("walls: [{cone: {apex: [0, 0, 0], axis: [0, 0, 1], half_angle: 1.6, keep: inside}}]", "half_angle"),
    ("walls: [{box: {center: [0, 0, 0], size: [1, 1, 0], keep: inside}}]", "size"),
    ("walls: [{box: {center: [0, 0, 0], size: [1, 1, 1], rpy: 3, keep: inside}}]", "rpy"),
    ("walls: [" + "{plane: {point: [0, 0, 0], normal: [0, 0, 1]}}, " * (MOST + 1) + "]", "at most"),
    ("/nowhere/walls.yaml", "nowhere")])
def test_files_that_are_refused(text, words):
    with pytest.raises(rbd.RbdError, match=words):
        load_walls(text)
