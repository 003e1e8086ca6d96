"""Which link is touched: against sums over sampled forces, frequencies of links that are drawn, limits, and shapes."""
from __future__ import annotations

import numpy as np
import pytest
from support.robots import random_state
from support.trees import TYPES, mimic_tree, random_tree

import rbd_ros as rbd
from rbd_ros.core.estimation.contact_points import shape_area, shape_points
from rbd_ros.core.estimation.contact_probabilities import _surface
from rbd_ros.core.model.shapes.shapes import Shape
from rbd_ros.core.motion.collision.pieces import hull

IIWA = rbd.sample("iiwa")
LINKS = IIWA.body_names[1:]
MODELS = {"iiwa": lambda: IIWA, "mimic": mimic_tree,
          "fixed": lambda: random_tree(4, TYPES[:5]), "floating": lambda: random_tree(3, TYPES[5:8], root="floating")}


def jacobians(model, q, surface):
    """(P, 3, nv) of all points, in axes of the world, from central differences of where they are."""
    owner = np.repeat([model.body_index(body) for body in surface.bodies], np.diff(surface.begin))

    def places(q):
        poses = rbd.forward_kinematics(model, q)[owner]
        return np.einsum("pij,jp->pi", poses[:, :3, :3], surface.points) + poses[:, :3, 3]

    h = 1e-6 * np.eye(model.nv)
    slopes = [(places(model.integrate(q, x)) - places(model.integrate(q, -x))) / 2e-6 for x in h]
    return np.stack(slopes, axis=-1), rbd.forward_kinematics(model, q)[owner, :3, :3]


def sampled(model, surface, rng, count, size):
    """Pressing forces (3, P) of the prior at points drawn by their shares, in axes of the bodies; the points' places.
    """
    body = rng.integers(len(surface.bodies), size=count)
    place = np.empty(count, dtype=int)
    for b in range(len(surface.bodies)):
        points = np.arange(*surface.begin[b:b + 2])
        place[body == b] = rng.choice(points, size=(body == b).sum(), p=np.exp(surface.shares[points]))
    f = size / np.sqrt(3.0) * rng.normal(size=(3, count))
    n = surface.normals[:, place]
    return body, place, np.where(np.einsum("ip,ip->p", f, n) > 0.0, -f, f)


@pytest.mark.parametrize("kind", MODELS)
def test_probabilities_are_the_mean_likelihoods_of_sampled_forces(kind):
    rng, model = np.random.default_rng(1), MODELS[kind]()
    q, nv, surface = random_state(model, 2)[0], model.nv, _surface(model, None)
    J, R = jacobians(model, q, surface)
    half = 12.0 * (np.eye(nv) + 0.2 * rng.normal(size=(nv, nv)))    # large errors: many sampled forces are likely
    inverse = np.linalg.inv(half @ half.T)
    body, place, f = sampled(model, surface, rng, 300_000, 30.0)
    world = (R[place] @ f.T[..., None])[..., 0]
    expected = (world[:, None] @ J[place])[:, 0]
    for k in range(3):
        effort = expected[k] + half @ rng.normal(size=nv)
        off = expected - effort
        weight = np.exp(-0.5 * np.einsum("pi,pi->p", off @ inverse, off))
        mean = np.array([weight[body == b].mean() for b in range(len(surface.bodies))])
        spread = np.array([weight[body == b].std() / np.sqrt((body == b).sum()) for b in range(len(mean))]) / mean.sum()
        found = rbd.contact_probabilities(model, q, effort, half @ half.T)
        assert found.bodies == surface.bodies and (spread < 0.03).all()
        np.testing.assert_array_less(np.abs(found.probability - mean / mean.sum()), 4.0 * spread + 1e-3)


@pytest.mark.parametrize("kind", ["iiwa", "floating"])
def test_probabilities_are_frequencies(kind):
    """Of links that are drawn from the prior: as often right as said, within four standard deviations."""
    rng, model = np.random.default_rng(7), MODELS[kind]()
    surface, sigma, count = _surface(model, None), 0.3, 300
    drawn, place, f = sampled(model, surface, rng, count, 30.0)
    said, right, true, hoped = [], [], [], []
    for b, k, force in zip(drawn, place, f.T, strict=True):
        q = model.random_configuration(rng)
        J = rbd.jacobian(model, q, surface.bodies[b])
        effort = J.T @ np.append(np.cross(surface.points[:, k], force), force)
        found = rbd.contact_probabilities(model, q, effort + sigma * rng.normal(size=model.nv),
                                          np.full(model.nv, sigma**2))
        said.append(found.probability.max())
        right.append(found.likeliest == surface.bodies[b])
        true.append(found.probability[b])
        hoped.append(found.probability @ found.probability)
    said, right = np.array(said), np.array(right)
    bound = 4.0 * np.sqrt(np.sum(said * (1.0 - said)))
    assert abs(said.sum() - right.sum()) < bound < 0.2 * count and right.mean() > 0.4
    assert right[said > 0.99].mean() > 0.97 and (said > 0.99).sum() > 0.2 * count
    assert abs(np.mean(true) - np.mean(hoped)) < 0.06    # any link, not the likeliest alone


def test_what_no_joint_feels_leaves_all_links_equally_likely():
    for model in (IIWA, MODELS["floating"]()):
        found = rbd.contact_probabilities(model, model.neutral(), np.zeros(model.nv), np.full(model.nv, 1e12))
        np.testing.assert_allclose(found.probability, 1.0 / len(found.bodies), rtol=1e-6)


@pytest.mark.parametrize("joint", range(7))
def test_links_before_a_joint_that_feels_it_are_not_touched(joint):
    effort = 10.0 * np.eye(7)[joint]
    found = rbd.contact_probabilities(IIWA, IIWA.random_configuration(joint), effort, np.full(7, 0.01))
    assert found.bodies == LINKS and found.probability[:joint].sum() < 1e-30
    assert found.probability.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("link", range(1, 8))
def test_the_likeliest_point_and_force_explain_the_effort(link):
    rng = np.random.default_rng(link)
    surface, q = _surface(IIWA, None), IIWA.random_configuration(link)
    k = surface.begin[link - 1] + int(rng.integers(800))
    p, force = surface.points[:, k], -20.0 * surface.normals[:, k]
    effort = rbd.jacobian(IIWA, q, LINKS[link - 1]).T @ np.append(np.cross(p, force), force)
    found = rbd.contact_probabilities(IIWA, q, effort, np.full(7, 1e-4))
    b = found.bodies.index(found.likeliest)
    J = rbd.jacobian(IIWA, q, found.likeliest)
    explained = J.T @ np.append(np.cross(found.point[b], found.force[b]), found.force[b])
    np.testing.assert_allclose(explained, effort, atol=0.1)
    if link == 7:    # and they are the true ones, where all six numbers of the wrench are felt
        assert found.likeliest == "link_7" and found.probability[6] > 0.99
        np.testing.assert_allclose(found.force[6], force, atol=0.3)
        assert np.linalg.norm(np.cross(found.point[6] - p, force / 20.0)) < 0.02    # on the same line


@pytest.mark.parametrize("force", [[20.0, 0.0, 0.0], [0.0, 0.0, 20.0], [-20.0, 0.0, 0.0]])
def test_a_force_through_the_axes_of_the_wrist(force):
    """Joints 5 to 7 do not feel it, and `touched_body` names the link before; its line passes by that link."""
    q = np.linspace(-1.0, 1.0, 7)
    effort = rbd.jacobian(IIWA, q, "link_6").T @ np.append(np.zeros(3), force)
    assert rbd.touched_body(IIWA, effort, 0.5) == "link_4"
    found = rbd.contact_probabilities(IIWA, q, effort, np.full(7, 0.01))
    assert found.likeliest == "link_6" and found.probability[5] > 0.8 and found.probability[:3].sum() < 1e-6


def test_it_does_not_depend_on_where_a_floating_robot_is():
    model, rng = random_tree(3, ["revolute", "prismatic", "spherical"], root="floating"), np.random.default_rng(0)
    q, effort = model.random_configuration(rng), 5.0 * rng.normal(size=model.nv)
    found = rbd.contact_probabilities(model, q, effort, np.ones(model.nv))
    moved = np.concatenate([model.random_configuration(rng)[:7], q[7:]])
    assert (model.joints[0].nq, model.joints[0].nv) == (7, 6)
    other = rbd.contact_probabilities(model, moved, effort, np.ones(model.nv))
    np.testing.assert_allclose(other.probability, found.probability, atol=1e-9)
    np.testing.assert_allclose(other.force, found.force, atol=1e-9)


def test_a_batch_is_its_states():
    rng = np.random.default_rng(3)
    q, effort = [IIWA.random_configuration(rng) for _ in range(4)], 10.0 * rng.normal(size=(4, 7))
    many = rbd.contact_probabilities(IIWA, q, effort, np.ones(7))
    for k in range(4):
        one = rbd.contact_probabilities(IIWA, q[k], effort[k], np.eye(7))
        np.testing.assert_allclose(many.probability[k], one.probability, atol=1e-12)
        np.testing.assert_array_equal(many.point[k], one.point)
        np.testing.assert_allclose(many.force[k], one.force, atol=1e-9)
        assert many.likeliest[k] == one.likeliest


# --- shapes

R = np.linalg.qr(np.random.default_rng(0).normal(size=(3, 3)))[0]
POSE = np.eye(4)
POSE[:3, :3], POSE[:3, 3] = R * np.linalg.det(R), [0.3, -0.2, 0.5]
CLOUD = np.random.default_rng(1).normal(size=(30, 3))
SHAPES = {"box": (Shape("a", "box", POSE, (0.4, 0.2, 0.1)), 0.008, 0.28),
          "sphere": (Shape("a", "sphere", POSE, (0.3,)), 4.0 / 3.0 * np.pi * 0.027, 4.0 * np.pi * 0.09),
          "cylinder": (Shape("a", "cylinder", POSE, (0.1, 0.5)), np.pi * 0.005, 2.0 * np.pi * 0.1 * 0.6),
          "capsule": (Shape("a", "capsule", POSE, (0.1, 0.5)), np.pi * (0.005 + 4e-3 / 3.0), 2.0 * np.pi * 0.1 * 0.7),
          "mesh": (Shape("a", "mesh", POSE, (), surface=hull(CLOUD, "a")), None, None)}


@pytest.mark.parametrize("kind", SHAPES)
def test_points_of_shapes_have_its_area_volume_and_centre(kind):
    """By the theorem of Gauss; normals are outward unit vectors, and no point is beyond another one's plane."""
    shape, volume, area = SHAPES[kind]
    if kind == "mesh":
        from scipy.spatial import ConvexHull

        volume, area = ConvexHull(CLOUD).volume, ConvexHull(CLOUD).area
    assert shape_area(shape) == pytest.approx(area)
    points, normals = shape_points(shape, 20_000)
    points = points - POSE[:3, 3]
    np.testing.assert_allclose(np.linalg.norm(normals, axis=1), 1.0)
    assert area * np.einsum("pi,pi->p", points, normals).mean() / 3.0 == pytest.approx(volume, rel=2e-3)
    np.testing.assert_allclose(normals.mean(axis=0), 0.0, atol=2e-3)
    assert (points[::40] @ normals.T <= np.einsum("pi,pi->p", points, normals) + 1e-9).all()    # convex
    if kind != "mesh":
        np.testing.assert_allclose(points.mean(axis=0), 0.0, atol=2e-3)


def test_shapes_of_links_and_tools_are_those_touched(tmp_path):
    pytest.importorskip("coal", reason="collision models need the package coal")
    urdf = tmp_path / "arm.urdf"
    text = rbd.sample_path("two_link").read_text()
    capsule = '<origin xyz="0 0 -0.3"/><geometry><capsule radius="0.05" length="0.4"/></geometry>'
    text = text.replace('<link name="base"/>', '<link name="base"><collision>' + capsule + "</collision></link>")
    text = text.replace('<link name="upper">', '<link name="upper"><collision>' + capsule + "</collision>")
    urdf.write_text(text)
    model = rbd.load_urdf(urdf)
    collisions = rbd.CollisionModel.from_urdf(urdf, model)
    q, effort = np.array([0.3, 0.4]), np.array([8.0, 0.01])
    found = rbd.contact_probabilities(model, q, effort, np.full(2, 0.01), collisions=collisions)
    assert found.bodies == ("upper",) and found.probability == pytest.approx(1.0)
    x, y, z = found.point[0] + [0.0, 0.0, 0.3]
    assert np.hypot(np.hypot(x, y), max(abs(z) - 0.2, 0.0)) == pytest.approx(0.05)
    tool = [{"name": "tool", "shape": "box", "size": [0.1, 0.1, 0.1], "frame": [0.0, 0.0, -0.5]}]
    both = rbd.contact_probabilities(model, q, effort, np.full(2, 0.01), collisions=collisions.with_shapes(
        "lower", tool))
    assert both.bodies == ("upper", "lower") and both.probability[0] > 0.5
    assert np.abs(both.point[1] + [0.0, 0.0, 0.5]).max() == pytest.approx(0.05)
    with pytest.raises(rbd.RbdError, match="no moving link has a shape"):
        rbd.contact_probabilities(model, q, effort, np.ones(2), collisions=rbd.CollisionModel(
            model, collisions.pieces[:1], ()))
    with pytest.raises(rbd.RbdError, match="another robot"):
        rbd.contact_probabilities(IIWA, np.zeros(7), np.zeros(7), np.ones(7), collisions=collisions)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(("wrong", "words"), [
    ({"effort": np.full(7, 1e300)}, "too large"), ({"effort": np.zeros(6)}, "effort"), ({"q": np.zeros(6)}, "q"),
    ({"effort": np.full(7, np.nan)}, "effort"), ({"covariance": None}, "covariance"),
    ({"covariance": np.zeros(7)}, "covariance"), ({"covariance": np.ones(6)}, "covariance"),
    ({"force": 0.0}, "force"), ({"force": "strong"}, "force"), ({"collisions": "robot.urdf"}, "CollisionModel"),
    ({"model": rbd.from_screws([[0, 0, 1, 0, 0, 0]], [np.eye(4)], [rbd.Inertia(0.0, np.zeros(3), np.zeros((3, 3)))],
                               frame="body"), "q": [0.0], "effort": [0.0], "covariance": [1.0]}, "no moving link"),
    ({"model": None}, "model")])
def test_wrong_input(wrong, words):
    arguments = {"model": IIWA, "q": np.zeros(7), "effort": np.zeros(7), "covariance": np.ones(7), **wrong}
    with pytest.raises(rbd.RbdError, match=words):
        rbd.contact_probabilities(**arguments)
