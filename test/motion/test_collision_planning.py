"""Motions that hit nothing: certificates against samples, gradients, closed forms, and another library."""

import numpy as np
import pytest
from support.collisions import arm, capsules, collision, robot, with_free_pairs
from support.robots import urdf_paths

import rbd_ros as rbd
from rbd_ros.core.motion.collision.clearance import values, polynomials
from rbd_ros.core.motion.collision.distance_rows import FAR, DistanceRows

pytest.importorskip("coal")
pytestmark = pytest.mark.filterwarnings("ignore::rbd_ros.RbdWarning")
ARMS = ("ur_description/ur5_robot", "xarm_description/xarm7", "panda_description/panda",
        "panda_description/panda_collision")    # hulls; hulls of many corners; boxes, mimics; cylinders and spheres
AROUND = [{"name": "table", "shape": "box", "size": [0.8, 1.2, 0.05], "frame": [0.65, 0.0, 0.1]},
          {"name": "floor", "shape": "plane", "frame": [0.0, 0.0, -0.5]},
          {"name": "post", "shape": "cylinder", "radius": 0.1, "length": 0.6, "frame": [0.3, 0.4, 0.5]},
          {"name": "rod", "shape": "capsule", "radius": 0.06, "length": 0.5, "frame": [-0.3, 0.4, 0.5]},
          {"name": "ball", "shape": "sphere", "radius": 0.1, "frame": [0.0, -0.5, 0.6]},
          {"name": "stone", "shape": "mesh", "points": np.random.default_rng(3).normal(size=(40, 3)) * 0.1,
           "frame": [0.4, -0.4, 0.4]}]


def cell(name):
    model, collisions = arm(name)
    return model, with_free_pairs(collisions).with_obstacles(AROUND)


def spline(collisions, rng, size=1.0):
    """A random motion of splines within the limits, about a configuration without collisions if one is found soon."""
    model = collisions.model
    low, high = np.maximum(model.position_lower, -np.pi), np.minimum(model.position_upper, np.pi)
    draws = rng.uniform(low, high, (400, model.nv))
    middle = next((q for q in draws if not collisions.collides(q, 0.001)), draws[0])
    control = np.clip(middle + size * rng.normal(size=(12, model.nv)), low, high)
    return rbd.SplineMotion(control, 2.0)


def nearest(collisions, q):
    """The smallest distance at many configurations, or one of those below 0."""
    first, *others = np.random.default_rng(0).permutation(q)
    least = collisions.distances(first).min()
    for each in others:    # in a random order, so that few are nearer than all before
        if least < 0.0:
            break
        if collisions.collides(each, least):
            least = min(least, collisions.distances(each).min())
    return float(least)


# ---- the certificate


@pytest.mark.parametrize("name", ARMS)
def test_a_certificate_is_never_wrong_and_rarely_missing(name):
    _, collisions = cell(name)
    rng = np.random.default_rng(1)
    clear = narrow = 0
    for k in range(10):
        motion = spline(collisions, rng, 0.03 if k % 2 else 0.3)
        found = nearest(collisions, motion(np.linspace(0.0, 2.0, 200)).q)
        for clearance in (0.0, 0.01, max(found - 1e-3, 0.0), max(found + 1e-3, 0.0)):
            answer = collisions.certify(motion, clearance)
            if answer.clear:
                assert found > clearance
                clear += 1
            elif found > clearance + 2e-3:    # samples may miss the nearest place, by less than that
                raise AssertionError(f"{answer} of a motion that stays {found} m apart")
            else:
                assert answer.pair in collisions.pairs and 0.0 <= answer.time <= 2.0
                assert answer.distance <= clearance + 1e-6
                q = motion(answer.time).q
                k_pair = collisions.pairs.index(answer.pair)
                assert collisions.distances(q)[k_pair] == pytest.approx(answer.distance, abs=3e-6)
                narrow += 1
    assert clear > 3 and narrow > 3


@pytest.mark.parametrize("seed", [2, pytest.param(3, marks=pytest.mark.thorough)])
def test_straight_lines_and_fourier_series_are_as_their_samples(seed):
    model, collisions = cell("xarm_description/xarm7")
    rng = np.random.default_rng(seed)
    answers = set()
    for _ in range(15):
        points = model.random_configuration(rng) * 0.5 + 0.4 * rng.normal(size=(3, model.nv))
        s = np.linspace(0.0, 2.0, 401)
        q = np.stack([np.interp(s, [0.0, 1.0, 2.0], points[:, j]) for j in range(model.nv)], axis=1)
        answers.add((answer := collisions.certify(points, 0.01)).clear)
        assert answer.clear == (nearest(collisions, q) > 0.01)
    assert answers == {True, False}
    limits = rbd.MotionLimits(velocity=1.0, acceleration=5.0)
    made = rbd.excitation(model, 5.0, limits=limits, seconds=0.3)
    breaks, powers, error = polynomials(model, made)
    t = np.linspace(0.0, 5.0, 777)
    assert np.abs(values(breaks, powers, t) - made(t).q).max() <= error.max() < 1e-7


def test_what_moves_fast_between_two_samples_is_seen():
    """A thin wall between two ends, through which a motion passes within a millisecond."""
    text = robot("", collision('<sphere radius="0.01"/>'), ("prismatic",))
    model = rbd.load_urdf(text)
    wall = [{"name": "wall", "shape": "box", "size": [2.0, 1e-4, 2.0]}]
    collisions = rbd.CollisionModel.from_urdf(text, model, obstacles=wall)
    answer = collisions.certify(np.array([[-1.0], [1.0]]))
    assert not answer.clear and answer.pair == ("l1", "wall") and answer.time == pytest.approx(0.5, abs=0.02)
    assert "'l1' and 'wall' overlap by" in answer.reason
    assert collisions.certify(np.array([[-1.0], [-0.0101]])).clear
    assert not collisions.certify(np.array([[-1.0], [-0.0099]])).clear


def test_joints_whose_motion_has_no_bound_are_refused():
    text = robot("", collision('<sphere radius="0.01"/>'))
    model = rbd.load_urdf(text)
    collisions = rbd.CollisionModel.from_urdf(text, model, obstacles=AROUND)
    with pytest.raises(rbd.RbdError, match="spherical, floating or cam joints"):
        collisions.certify(np.zeros((2, 7)))


@pytest.mark.parametrize("wrong", [np.zeros((2, 3)), np.zeros((1, 6)), "motion", None, np.full((2, 6), np.nan)])
def test_what_is_no_motion_is_refused(wrong):
    _, collisions = arm("ur_description/ur5_robot")
    with pytest.raises(rbd.RbdError, match=r"expected positions \(N, 6\)"):
        collisions.certify(wrong)


# ---- distances and gradients


@pytest.mark.parametrize("name", ARMS)
def test_distances_are_those_of_coal_and_gradients_those_of_differences(name):
    model, collisions = cell(name)
    rng = np.random.default_rng(3)
    q = np.array([model.random_configuration(rng) for _ in range(40)])
    distances, gradients = collisions.sweeper.near(q, np.inf, slopes=True)
    apart = distances > -np.inf
    cylinders = name.endswith("panda_collision")
    assert np.abs(distances - collisions.distances(q))[apart].max() < (1e-7 if cylinders else 1e-9)
    assert (collisions.distances(q)[~apart] < 1e-9).all()
    rows = DistanceRows(collisions, 0.0, np.arange(len(collisions.pairs)))
    h, v = 1e-6, rng.normal(size=model.nv)
    near, slopes = rows.values(q), rows.jacobian(q) @ v
    change = (rows.values(q + h * v) - rows.values(q - h * v)) / (2.0 * h)
    smooth = (near < FAR - 1e-4) & apart
    wrong = np.abs(change - slopes)[smooth]
    assert smooth.sum() > 50 and np.quantile(wrong, 0.97) < 1e-4    # but at kinks
    assert np.abs(gradients[apart]).max() < 3.0


# ---- paths


WALL = [{"name": "wall", "shape": "box", "size": [0.1, 1.0, 1.0], "frame": [0.75, 0.0, 0.0]}]


def planar(gravity=(0.0, 0.0, 0.0)):
    """Two links of 0.5 m, which turn about the vertical, and a wall: the second link has to fold to pass it."""
    rod = collision('<capsule radius="0.02" length="0.4"/>', '<origin xyz="0.25 0 0" rpy="0 1.5707963267948966 0"/>')
    inertial = '<inertial><mass value="1"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>'
    links = "".join(f'<link name="{name}">{inertial}{rod if name != "base" else ""}</link>'
                    for name in ("base", "upper", "lower"))
    joints = "".join(f'<joint name="{name}" type="revolute"><parent link="{a}"/><child link="{b}"/>'
                     f'<origin xyz="{x} 0 0"/><axis xyz="0 0 1"/>'
                     '<limit lower="-3" upper="3" velocity="2" effort="50"/></joint>'
                     for name, a, b, x in (("shoulder", "base", "upper", 0.0), ("elbow", "upper", "lower", 0.5)))
    text = f'<robot name="planar">{links}{joints}</robot>'
    model = rbd.load_urdf(text, gravity=gravity)
    return model, rbd.CollisionModel.from_urdf(text, model, obstacles=WALL)


def reach(q):
    """The farthest x of the capsules' centre lines, closed form."""
    return 0.5 * np.cos(q[..., 0]) + 0.5 * np.maximum(0.9 * np.cos(q[..., 0] + q[..., 1]), 0.0)


START, GOAL = np.array([-1.2, 0.2]), np.array([1.2, -0.2])


def test_a_planar_arm_folds_to_pass_a_wall():
    model, collisions = planar()
    straight = START + np.linspace(0.0, 1.0, 200)[:, None] * (GOAL - START)
    assert reach(straight).max() > 0.8
    path = rbd.plan_path(model, collisions, START, GOAL, clearance=0.01, seed=1).check()
    assert path.found and np.array_equal(path.points[0], START) and np.array_equal(path.points[-1], GOAL)
    along = np.concatenate([a + np.linspace(0.0, 1.0, 200)[:, None] * (b - a)
                            for a, b in zip(path.points[:-1], path.points[1:], strict=True)])
    assert reach(along).max() < 0.7 - 0.02 - 0.01    # the wall's face, the capsule, the clearance
    assert path.length >= np.linalg.norm(GOAL - START)
    again = rbd.plan_path(model, collisions, START, GOAL, clearance=0.01, seed=1)
    assert np.array_equal(again.points, path.points)


def test_an_optimal_motion_touches_the_clearance_and_no_more():
    """Least jerk past the wall: it bends as far as the wall asks for, known in closed form."""
    model, collisions = planar()
    free = rbd.optimize_motion(model, START, GOAL, 2.0, "jerk").check()
    t = np.linspace(0.0, 2.0, 2000)
    assert reach(free(t).q).max() > 0.8
    motion = rbd.optimize_motion(model, START, GOAL, 2.0, "jerk", collisions=collisions).check()
    assert motion.cost > free.cost
    farthest = reach(motion(t).q).max()
    assert 0.7 - 0.02 - 0.01 - 4e-3 < farthest < 0.7 - 0.02 - 0.01
    assert motion.usage["distance"].joint in ("lower – wall", "upper – wall") and motion.usage["distance"].ratio <= 1.0
    assert collisions.certify(motion, 0.01).clear


def test_impossible_ones_are_said_to_be():
    model, collisions = planar()
    cage = [{"name": f"side_{k}", "shape": "box", "size": [0.2, 0.02, 1.0],
             "frame": {"xyz": [0.4 * np.cos(a), 0.4 * np.sin(a), 0.0], "rpy": [0.0, 0.0, a]}} for k, a in
            enumerate((-0.6, 0.6))]
    shut = collisions.with_obstacles(cage)
    path = rbd.plan_path(model, shut, START, GOAL, iterations=50)
    assert not path.found and path.length == np.inf and path.iterations == 50
    with pytest.raises(rbd.RbdError, match="no path was found: the straight line hits something, and 50 random"):
        path.check()
    motion = rbd.optimize_motion(model, START, GOAL, 2.0, "jerk", collisions=shut, starts=1)
    assert not motion.good and "no way around" in motion.reason
    assert "overlap by" in motion.reason and " s" in motion.reason
    with pytest.raises(rbd.RbdError, match="overlap by"):
        motion.check()
    assert motion.usage["distance"].ratio > 1.0


@pytest.mark.parametrize("end", ["start", "goal"])
def test_an_end_that_touches_is_named_with_pair_and_depth(end):
    model, collisions = planar()
    ends = {"start": START, "goal": GOAL, end: np.array([0.0, 0.1])}
    depth = -collisions.distances(ends[end]).min()
    for call in (lambda: rbd.plan_path(model, collisions, ends["start"], ends["goal"]),
                 lambda: rbd.optimize_motion(model, ends["start"], ends["goal"], 2.0, collisions=collisions)):
        with pytest.raises(rbd.RbdError, match=rf"{end}: 'lower' and 'wall' overlap by {depth:.4g} m"):
            call()
    model, collisions = planar()
    with pytest.raises(rbd.RbdError, match=r"goal: 'lower' and 'wall' are .* apart, nearer than the clearance of 0.5"):
        rbd.plan_path(model, collisions, np.array([2.5, 0.0]), np.array([1.0, 0.0]), clearance=0.5)


def test_a_path_that_touches_is_refused_by_time_optimal():
    model, collisions = planar()
    with pytest.raises(rbd.RbdError, match=r"path: 'lower' and 'wall' overlap by 0\.\d+ m, at s = 0\.\d"):
        rbd.time_optimal(model, np.array([START, GOAL]), collisions=collisions)
    around = rbd.optimize_motion(model, START, GOAL, 2.0, "jerk", collisions=collisions).check()
    assert rbd.time_optimal(model, around, collisions=collisions).good
    points = np.array([START, [-0.9, 2.2], [0.0, 2.6], [0.9, -0.2 + 2.0], GOAL])
    limits = rbd.MotionLimits(acceleration=10.0)
    timed = rbd.time_optimal(model, points[:3], collisions=collisions, limits=limits)
    assert reach(timed(np.linspace(0.0, timed.duration, 500)).q).max() < 0.67


def test_waypoints_are_passed_around_the_wall():
    model, collisions = planar()
    motion = rbd.optimize_motion(model, START, GOAL, 3.0, "jerk", collisions=collisions,
                                 waypoints=[(0.3, np.array([-0.9, -1.0]))]).check()
    np.testing.assert_allclose(motion(0.9).q, [-0.9, -1.0], atol=1e-6)
    assert reach(motion(np.linspace(0.0, 3.0, 1000)).q).max() < 0.67


@pytest.mark.parametrize("wrong, said", [(None, "expected a CollisionModel"), ("cell", "expected a CollisionModel")])
def test_wrong_collision_models_are_refused(wrong, said):
    model, _ = planar()
    with pytest.raises(rbd.RbdError, match=said):
        rbd.plan_path(model, wrong, START, GOAL)
    _, others = arm("ur_description/ur5_robot")
    for call in (rbd.plan_path, lambda *a: rbd.optimize_motion(a[0], a[2], a[3], 1.0, collisions=a[1])):
        with pytest.raises(rbd.RbdError, match="whose joints and links are not those of 'planar'"):
            call(model, others, START, GOAL)
    delta = rbd.sample("delta")
    with pytest.raises(rbd.RbdError, match="collisions: not supported with constraints"):
        rbd.optimize_motion(delta, delta.neutral(), delta.neutral(), 1.0, collisions=others,
                            constraints=rbd.sample_constraints("delta", delta), actuated=["motor_1"])


def test_numbers_that_are_no_clearance_are_refused():
    model, collisions = planar()
    for bad in (-0.1, np.nan, "wide"):
        with pytest.raises(rbd.RbdError, match="clearance"):
            rbd.plan_path(model, collisions, START, GOAL, clearance=bad)
        with pytest.raises(rbd.RbdError, match="clearance"):
            rbd.optimize_motion(model, START, GOAL, 1.0, collisions=collisions, clearance=bad)
        with pytest.raises(rbd.RbdError, match="clearance"):
            collisions.certify(np.array([START, GOAL]), bad)
    with pytest.raises(rbd.RbdError, match="start: the position of joint 'elbow' is 4, beyond its limit"):
        rbd.plan_path(model, collisions, [0.0, 4.0], GOAL)


# ---- excitation


def test_an_excitation_hits_nothing_and_says_what_that_costs():
    model, collisions = planar((0.0, -9.81, 0.0))
    low = collisions.with_obstacles([{"name": "side", "shape": "box", "size": [2.0, 0.1, 1.0],
                                      "frame": [0.0, -0.75, 0.0]}])
    limits = rbd.MotionLimits(velocity=1.5, acceleration=10.0, position_lower=-3.0, position_upper=0.0)
    made = rbd.excitation(model, 4.0, limits=limits, collisions=low, seconds=2.0)
    assert made.good and made.usage["distance"].ratio <= 1.0 and low.certify(made, 0.01).clear
    assert nearest(low, made(np.linspace(0.0, 4.0, 2000)).q) > 0.01
    condition, log_det = made.without_collisions
    assert np.isfinite(condition) and log_det >= made.log_det
    freely = rbd.excitation(model, 4.0, limits=limits, seconds=1.0)
    assert freely.without_collisions is None and not low.certify(freely, 0.01).clear
    slow = rbd.excitation_poses(model, 5, limits=limits, collisions=low)
    assert nearest(low, slow(np.linspace(0.0, slow.duration, 2000)).q) > 0.01


@pytest.mark.parametrize("seed", [0, *(pytest.param(k, marks=pytest.mark.thorough) for k in (1, 2))])
@pytest.mark.parametrize("scene", ["free", "table"])
def test_an_excitation_is_found_whatever_the_best_without_obstacles_hits(scene, seed):
    """Even when there is hardly time to search: the best motion without obstacles passes through the UR5 and the table.
    """
    model, own = arm("ur_description/ur5_robot")
    cell = [] if scene == "free" else [{"name": "table", "shape": "box", "size": [0.8, 1.6, 0.05],
                                        "frame": [0.65, 0.0, 0.1]}]
    collisions = with_free_pairs(own).with_obstacles(cell)
    made = rbd.excitation(model, 6.0, limits=rbd.MotionLimits(acceleration=5.0), collisions=collisions, seconds=0.5,
                          seed=seed)
    assert made.good and nearest(collisions, made(np.linspace(0.0, 6.0, 1500)).q) > 0.01
    assert np.ptp(made(np.linspace(0.0, 6.0, 1500)).q, axis=0).min() > 0.02    # it moves


def test_knots_are_added_where_a_corner_is_passed_quickly():
    """Between two knots 6 ms apart, the corner of a crate comes nearer than the clearance by 30 µm."""
    model, collisions = arm("xarm_description/xarm7")
    cell = [{"name": name, "shape": "box", "size": size, "frame": place} for name, size, place in (
        ("table", [0.8, 1.6, 0.05], [0.65, 0.0, 0.1]), ("wall", [0.1, 3.0, 2.0], [-0.6, 0.0, 1.0]),
        ("crate", [0.2, 0.2, 0.3], [0.5, 0.2, 0.3]))]
    motion = rbd.optimize_motion(model, [2.8672, 0.9174, 2.5893, 2.9494, 1.8991, -1.1014, -2.3598],
                                 [-2.0499, -0.8105, 1.3217, 1.1119, 0.2128, 1.7763, 2.3485], None,
                                 {"duration": 1.0, "jerk_share": 0.1}, starts=1, time_limit=60.0,
                                 collisions=with_free_pairs(collisions).with_obstacles(cell))
    assert motion.good and "crate" in motion.usage["distance"].joint


# ---- by another library


def test_pinocchio_finds_no_collision_of_an_arm_at_10_khz_and_no_limit_that_is_passed():
    """Its own kinematics and dynamics, the meshes instead of their hulls, differences of positions."""
    pin = pytest.importorskip("pinocchio")
    import coal

    name = "ur_description/ur5_robot"
    model, collisions = arm(name)
    shelf = [{"name": name, "shape": "box", "size": [0.35, 1.0, 0.03], "frame": [0.65, 0.0, z]}
             for name, z in (("low board", 0.1), ("high board", 0.6))]
    collisions = with_free_pairs(collisions).with_obstacles(shelf)
    file = str(urdf_paths()[name])
    theirs = pin.buildModelFromUrdf(file)
    folder = next(str(parent.parent) for parent in urdf_paths()[name].parents if parent.name == "example-robot-data")
    shapes = pin.buildGeomFromUrdf(theirs, file, pin.GeometryType.COLLISION, package_dirs=[folder])
    for entry in shelf:
        pose = pin.SE3(np.eye(3), np.array(entry["frame"]))
        shapes.addGeometryObject(pin.GeometryObject(entry["name"], 0, pose, coal.Box(*entry["size"])))
    names = {geometry.name.removesuffix("_0"): k for k, geometry in enumerate(shapes.geometryObjects)}
    links = {piece.name: piece.link for piece in collisions.pieces}    # a mesh may have several pieces
    for first, second in {(links[first], links[second]) for first, second in collisions.pairs}:
        shapes.addCollisionPair(pin.CollisionPair(names[first], names[second]))
    data, state = theirs.createData(), pin.GeometryData(shapes)
    manager = pin.BroadPhaseManager_DynamicAABBTreeCollisionManager(theirs, shapes, state)
    rng = np.random.default_rng(5)
    limits = {"velocity": 1.0, "acceleration": 0.8, "jerk": 2.5, "effort": 0.35 * model.effort_limit}
    checked = around = 0
    used = dict.fromkeys(limits, 0.0)
    while checked < 2:
        ends = [np.array([-1.0, -1.2, 1.2, -1.0, 0.5, 0.0]) * rng.uniform(0.6, 1.3, 6) * [s, 1, 1, 1, 1, 1]
                for s in (1.0, -1.0)]
        if collisions.collides(np.array(ends), 0.011).any():
            continue
        motion = rbd.optimize_motion(model, *ends, None, {"duration": 1.0, "jerk_share": 0.001}, collisions=collisions,
                                     starts=1, limits=rbd.MotionLimits(**limits))
        if motion.good:
            checked += 1
            q = motion(np.arange(0.0, motion.duration, 1e-3)).q
            v, a, j = (np.diff(q, k, axis=0) / 1e-3**k for k in (1, 2, 3))
            tau = [pin.rnea(theirs, data, *x) for x in zip(q[1:-1], 0.5 * (v[1:] + v[:-1]), a, strict=True)]
            for kind, values in zip(limits, (v, a, j, tau), strict=True):
                ratio = float(np.max(np.abs(values) / limits[kind]))
                assert ratio < 1.001
                used[kind] = max(used[kind], ratio)
            around += not collisions.certify(np.array(ends), 0.01).clear
            for q in motion(np.arange(0.0, motion.duration, 1e-4)).q:
                assert not pin.computeCollisions(theirs, data, manager, q, True)
    assert min(used.values()) > 0.9    # of each limit
    middle = 0.5 * (ends[0] + ends[1])
    middle[1:3] = [0.0, 0.0]    # stretched out, through the boards: the other library sees what touches
    assert collisions.collides(middle) == pin.computeCollisions(theirs, data, manager, middle, True)


def test_an_arm_of_capsules_solves_most_of_its_problems():
    text = capsules("iiwa")
    model = rbd.load_urdf(text)
    table = [{"name": "table", "shape": "box", "size": [0.8, 1.6, 0.05], "frame": [0.65, 0.0, 0.05]}]
    collisions = with_free_pairs(rbd.CollisionModel.from_urdf(text, model, obstacles=table))
    rng = np.random.default_rng(7)
    found = 0
    for seed in range(6):
        ends = []
        while len(ends) < 2:
            if not collisions.collides(q := model.random_configuration(rng), 0.012):
                ends.append(q)
        path = rbd.plan_path(model, collisions, *ends, clearance=0.01, seed=seed)
        assert path.found and collisions.certify(path.points, 0.01).clear
        motion = rbd.optimize_motion(model, *ends, None, {"duration": 1.0, "jerk_share": 0.1}, collisions=collisions,
                                     starts=1)
        if motion.good:
            found += 1
            assert nearest(collisions, motion(np.linspace(0.0, motion.duration, 500)).q) > 0.01
    assert found >= 5
