"""Second derivatives of distances: against differences of the gradients, of all pairs of shapes."""

import numpy as np
import pytest
from support.collisions import arm, collision

import rbd_ros as rbd
from rbd_ros.core.motion.collision.contacts import CONTACT
from rbd_ros.core.motion.collision.distance_rows import FAR, DistanceRows

pytest.importorskip("coal")
pytestmark = pytest.mark.filterwarnings("ignore::rbd_ros.RbdWarning")
SHAPES = {"sphere": {"radius": 0.08}, "capsule": {"radius": 0.05, "length": 0.2}, "box": {"size": [0.2, 0.1, 0.14]},
          "cylinder": {"radius": 0.07, "length": 0.18}, "mesh": {"points": 0.1 * np.random.default_rng(3).normal(
              size=(12, 3))}, "plane": {}}
JOINTS = [(kind, axis) for kind in ("prismatic", "revolute") for axis in ("1 0 0", "0 1 0", "0 0 1")]
ONE = np.array([0])


def moving(first, second):
    """A piece on six joints, three of them prismatic, and another one that stands still: one pair."""
    body = '<inertial><mass value="1"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>'
    far = collision('<sphere radius="0.01"/>', '<origin xyz="0 0 50"/>')
    links = "".join(f'<link name="{k}">{body}{far if k == 5 else ""}</link>' for k in range(6))
    joints = "".join(f'<joint name="j{k}" type="{kind}"><parent link="{k - 1 if k else "base"}"/><child link="{k}"/>'
                     f'<axis xyz="{axis}"/><limit lower="-9" upper="9" velocity="1" effort="1"/></joint>'
                     for k, (kind, axis) in enumerate(JOINTS))
    text = f'<robot name="free"><link name="base"/>{links}{joints}</robot>'
    model = rbd.load_urdf(text)
    still = {"name": "still", "shape": second, "frame": [0.01, -0.02, 0.03], **SHAPES[second]}
    collisions = rbd.CollisionModel.from_urdf(text, model, obstacles=[still]).with_shapes(
        "5", [{"name": "held", "shape": first, "frame": [0.02, 0.01, -0.03], **SHAPES[first]}])
    return collisions.without_pairs([pair for pair in collisions.pairs if set(pair) != {"held", "still"}])


def difference(gradient, q, h):
    """Central differences of a gradient (1, nq) -> (nv,)."""
    steps = h * np.eye(q.shape[1])
    return np.array([(gradient(q + e) - gradient(q - e)) / (2.0 * h) for e in steps])


@pytest.mark.parametrize("second", SHAPES)
@pytest.mark.parametrize("first", [name for name in SHAPES if name != "plane"])
def test_second_derivatives_are_those_of_differences(first, second):
    sweeper = moving(first, second).sweeper
    rng, wrong = np.random.default_rng(0), []

    def gradient(q):
        return sweeper.near(q, 2.0, ONE, True)[1][0, 0]

    for _ in range(60):
        q = np.concatenate([rng.uniform(-0.4, 0.4, 3), rng.uniform(-3.0, 3.0, 3)])[None]
        contacts = np.empty((1, 1, CONTACT))
        distance = sweeper.near(q, 2.0, ONE, True, contacts)[0][0, 0]
        if distance < 1e-3:
            continue
        computed = sweeper.curvature(q, ONE, contacts, np.ones((1, 1)), np.zeros((1, 1)))[0]
        assert np.array_equal(computed, computed.T)
        coarse, fine = difference(gradient, q, 1e-4), difference(gradient, q, 5e-5)
        if np.abs(coarse - fine).max() < 1e-3 * max(1.0, np.abs(fine).max()):    # otherwise features change
            expected = (4.0 * fine - coarse) / 3.0
            wrong.append(np.abs(computed - expected).max() / max(1.0, np.abs(expected).max()))
    # gradients of cylinders beside edges are exact to 3e-6 only, and their differences to 3e-6 / 5e-5
    rough = "cylinder" in (first, second) and not {first, second} & {"sphere", "plane"}
    assert len(wrong) >= 12 and max(wrong) < (3e-3 if rough else 1e-8)


def test_squares_of_gradients_are_added():
    sweeper, q = moving("box", "capsule").sweeper, np.array([[0.4, 0.1, 0.2, 0.3, -0.4, 0.5]])
    contacts = np.empty((1, 1, CONTACT))
    slope = sweeper.near(q, 2.0, ONE, True, contacts)[1][0, 0]
    zero, two = np.zeros((1, 1)), np.full((1, 1), 2.0)
    assert np.allclose(sweeper.curvature(q, ONE, contacts, zero, two)[0], 2.0 * np.outer(slope, slope), atol=1e-15)


def test_of_pieces_that_overlap_there_are_none():
    sweeper, q = moving("box", "box").sweeper, np.zeros((1, 6))
    contacts = np.empty((1, 1, CONTACT))
    assert sweeper.near(q, 2.0, ONE, True, contacts)[0][0, 0] == -np.inf
    assert not sweeper.curvature(q, ONE, contacts, np.ones((1, 1)), np.zeros((1, 1))).any()


@pytest.mark.parametrize("distance", [0.03, 0.061, 0.075, 0.09, 0.12])
def test_rows_end_smoothly(distance):
    """Between two balls: value, gradient and second derivative before, within and after the smooth end."""
    collisions, clearance = moving("sphere", "sphere"), 0.01
    rows = DistanceRows(collisions, clearance, ONE)
    apart = np.array([0.01, -0.02, 0.03]) - [0.02, 0.01, -0.03] + [distance + 0.16, 0.0, 0.0]
    q = np.concatenate([apart, np.zeros(3)])[None]
    near = distance < clearance + 0.5 * FAR
    assert rows.values(q)[0, 0] == pytest.approx(distance, abs=1e-12) if near else rows.values(q)[0, 0] < distance
    assert rows.values(q)[0, 0] <= clearance + 0.75 * FAR + 1e-15
    steps = 1e-6 * np.eye(6)
    slope = np.array([(rows.values(q + e) - rows.values(q - e))[0, 0] / 2e-6 for e in steps])
    assert np.abs(rows.jacobian(q)[0, 0] - slope).max() < 1e-8
    bend = difference(lambda x: rows.jacobian(x)[0, 0], q, 1e-6)
    assert np.abs(rows.curvature(q, np.ones((1, 1)))[0] - bend).max() < 1e-6
    assert bool(bend.any()) == (distance < clearance + FAR)


def test_samples_find_the_least_distance():
    model, collisions = arm("panda_description/panda")
    rows = DistanceRows.of_all(model, collisions, 0.01)
    rng = np.random.default_rng(2)
    for _ in range(5):
        q = np.linspace(model.random_configuration(rng), model.random_configuration(rng), 501)
        all_of_them = collisions._near(q, rows.within)[0]
        assert rows.samples(1.0).values(q).min() == pytest.approx(all_of_them.min(), abs=1e-12)
        near = all_of_them < 0.06
        assert np.abs(rows.samples(0.95).values(q) - all_of_them)[near].max(initial=0.0) < 1e-12


def test_a_pair_that_is_far_has_no_curvature_at_any_clearance():
    """Where rounding leaves a slope at the distance that is not exceeded, the kernel would read contacts of no pair."""
    collisions = moving("box", "sphere")
    q = np.array([[3.0, 0.0, 0.0, 0.1, 0.2, 0.3]])
    for clearance in np.linspace(0.0, 0.05, 500):
        rows = DistanceRows(collisions, clearance, ONE)
        assert not rows._near(q).contacts.any() and not rows.curvature(q, np.ones((1, 1))).any()
