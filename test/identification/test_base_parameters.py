"""Rank and combinations of base parameters: known robots, and the energy's rank in 50 digits on random trees."""
from __future__ import annotations

import numpy as np
import pytest
from support.robots import chain, urdf_paths
from support.trees import TYPES, mimic_tree, random_tree

import rbd_ros as rbd
from rbd_ros.core.model.joint_kinds import CAM, HELICAL, PRISMATIC, REVOLUTE
from rbd_ros.core.model.joints import primitives

mp = pytest.importorskip("mpmath")
pytestmark = pytest.mark.filterwarnings("ignore::rbd_ros.RbdWarning")
DIGITS = 50


def hat(w):
    return mp.matrix([[0, -w[2], w[1]], [w[2], 0, -w[0]], [-w[1], w[0], 0]])


def turned(w):
    """exp of a rotation vector."""
    angle = mp.sqrt(sum(x * x for x in w))
    if angle == 0:
        return mp.eye(3)
    K = hat([x / angle for x in w])
    return mp.eye(3) + mp.sin(angle) * K + (1 - mp.cos(angle)) * K * K


def exact(array):
    return mp.matrix(np.asarray(array, dtype=float).tolist())


def unit(a):
    return a / mp.sqrt(sum(x * x for x in a))


def orthonormal(array):
    """The rotation next to one of doubles."""
    R = exact(array)
    x = unit(R[:, 0])
    y = R[:, 1] - x * (x.T * R[:, 1])[0]
    y = unit(y)
    z = hat(x) * y
    out = mp.eye(3)
    for k, column in enumerate((x, y, z)):
        out[:, k] = column
    return out


class Exact:
    """Poses of all links in 50 digits, moved along velocity coordinates: nothing of it is the library's."""

    def __init__(self, model):
        self.model = model
        self.specs = {spec.child: spec for spec in model.description.joints}

    def moved(self, spec, x):
        """Pose of the child in the joint's frame: x, the coordinates of a chain of steps from the identity."""
        R, p, at = mp.eye(3), mp.zeros(3, 1), 0
        for step in primitives(spec):
            axis, values = unit(exact(step.axis)), x[at:at + step.nv]
            slide = mp.zeros(3, 1)
            if step.type in (REVOLUTE, HELICAL, CAM):
                turn = turned([a * values[0] for a in axis])
                advance = {REVOLUTE: mp.mpf(0), HELICAL: step.pitch * values[0]}.get(
                    step.type, sum(c * values[0]**k for k, c in enumerate(step.advance)))
                slide = axis * advance
            elif step.type == PRISMATIC:
                turn, slide = mp.eye(3), axis * values[0]
            else:    # spherical joints and the free-flyer: any rotation vector, and place
                turn, slide = turned(values[:3]), mp.matrix(list(values[3:]) or [0, 0, 0])
            p = p + R * slide
            R = R * turn
            at += step.nv
        return R, p

    def poses(self, x):
        """(R, p) by link at the coordinates x (nv,)."""
        place = {}
        for joint in [None, *self.model.description.joints]:
            if joint is None:
                children = {spec.child for spec in self.model.description.joints}
                root = next(name for name in self.model.body_names if name not in children)
                place[root] = (mp.eye(3), mp.zeros(3, 1))
                continue
            R, p = place[joint.parent]
            own = orthonormal(joint.rotation), exact(joint.position)
            R, p = R * own[0], R * own[1] + p
            if joint.type != "fixed":
                R1, p1 = self.moved(joint, self.coordinates(joint, x))
                R, p = R * R1, R * p1 + p
            place[joint.child] = (R, p)
        return place

    def coordinates(self, joint, x):
        for mimic in self.model.mimics:
            if mimic.name == joint.name:
                source = self.model.joint(mimic.source)
                return [mp.mpf(mimic.multiplier) * x[source.idx_v] + mp.mpf(mimic.offset)]
        found = self.model.joint(joint.name)
        return x[found.idx_v:found.idx_v + found.nv]

    def rows(self, rng):
        """What each parameter adds to the kinetic energy, and to the potential energy, of a random state."""
        nv = self.model.nv
        x = [mp.mpf(float(y)) for y in rng.uniform(-2.0, 2.0, nv)]
        v = [mp.mpf(float(y)) for y in rng.normal(size=nv)]
        h = mp.mpf(10)**-17
        ahead, behind = (self.poses([a + s * h * b for a, b in zip(x, v, strict=True)]) for s in (1, -1))
        here = self.poses(x)
        kinetic, potential = [], []
        g = exact(self.model.gravity)
        for name in self.model.body_names:
            R, p = here[name]
            W = R.T * (ahead[name][0] - behind[name][0]) / (2 * h)
            w = [(W[2, 1] - W[1, 2]) / 2, (W[0, 2] - W[2, 0]) / 2, (W[1, 0] - W[0, 1]) / 2]
            u = R.T * (ahead[name][1] - behind[name][1]) / (2 * h)
            cross = [u[1] * w[2] - u[2] * w[1], u[2] * w[0] - u[0] * w[2], u[0] * w[1] - u[1] * w[0]]
            kinetic += [sum(y * y for y in u) / 2, *cross, w[0]**2 / 2, w[0] * w[1], w[1]**2 / 2, w[0] * w[2],
                        w[1] * w[2], w[2]**2 / 2]
            down = R.T * g
            potential += [-(g.T * p)[0], *(-down[k] for k in range(3)), *[mp.mpf(0)] * 6]
        return kinetic, potential


def rank_of_energy(model, seed=0):
    """Efforts depend on what energies depend on: T of all states, and U but for a constant."""
    rng = np.random.default_rng(seed)
    with mp.workdps(DIGITS):
        robot = Exact(model)
        first = robot.rows(rng)[1]
        rows = []
        for k in range(10 * len(model.body_names) + 10):
            kinetic, potential = robot.rows(rng)
            rows.append(kinetic)
            if k < 4 * len(model.body_names) + 10:
                rows.append([a - b for a, b in zip(potential, first, strict=True)])
        return rank_of(rows)


def rank_of(rows):
    """By elimination with full pivots, whose sizes leave a gap of ten digits or more between numbers and nothing."""
    A = [list(row) for row in rows]
    sizes, columns = [], list(range(len(A[0])))
    scale = [max(abs(row[j]) for row in A) for j in columns]
    columns = [j for j in columns if scale[j] > mp.mpf(10)**-20]
    A = [[row[j] / scale[j] for j in columns] for row in A]
    while A and A[0]:
        size, i, j = max((abs(x), i, j) for i, row in enumerate(A) for j, x in enumerate(row))
        sizes.append(size)
        if size < mp.mpf(10)**-25:
            break
        pivot = A.pop(i)
        A = [[x - row[j] / pivot[j] * y for k, (x, y) in enumerate(zip(row, pivot, strict=True)) if k != j]
             for row in A]
    kept = [size for size in sizes if size > mp.mpf(10)**-10]
    assert all(size < mp.mpf(10)**-20 for size in sizes[len(kept):]), [mp.nstr(size, 3) for size in sizes]
    return len(kept)


@pytest.mark.parametrize("name, locked, rank", [
    ("panda_description/panda", {"panda_finger_joint1": 0.0}, 43), ("ur_description/ur5_robot", {}, 36),
    ("ur_description/ur10_robot", {}, 36), ("ur_description/ur3_robot", {}, 36)])
def test_rank_of_known_arms(name, locked, rank):
    path = urdf_paths().get(name) or pytest.skip("example-robot-data is not installed")
    assert rbd.base_parameters(rbd.load_urdf(path, locked=locked)).rank == rank


def test_rank_of_the_iiwa_and_of_a_pendulum():
    assert rbd.base_parameters(rbd.sample("iiwa")).rank == 43
    pendulum = chain("revolute", gravity=(0.0, -9.81, 0.0))
    found = rbd.base_parameters(pendulum)
    assert found.rank == 3 and set(found.names) == {"mx(l1)", "my(l1)", "izz(l1)"}
    assert rbd.base_parameters(pendulum, rotors=True).rank == 3    # the rotor is felt as izz is
    assert rbd.base_parameters(pendulum, rotors=True, friction=True).rank == 6


@pytest.mark.parametrize("kind", TYPES)
def test_rank_in_fifty_digits_of_each_type_of_joint(kind):
    model = random_tree(TYPES.index(kind), [kind, "revolute"])
    assert rbd.base_parameters(model).rank == rank_of_energy(model)


@pytest.mark.parametrize("seed", range(4))
def test_rank_in_fifty_digits_of_random_trees(seed):
    model = random_tree(seed, np.random.default_rng(seed).choice([kind for kind in TYPES if kind != "floating"], 2))
    assert rbd.base_parameters(model).rank == rank_of_energy(model)


@pytest.mark.parametrize("model", [random_tree(5), mimic_tree(), rbd.sample("iiwa")], ids=["tree", "mimic", "iiwa"])
def test_parameters_with_the_same_base_have_the_same_efforts(model):
    base = rbd.base_parameters(model)
    rng = np.random.default_rng(0)
    theta = model.inertial_parameters
    step = rng.normal(size=len(theta))
    step -= np.linalg.pinv(base.matrix) @ (base.matrix @ step)    # in the null space
    assert np.abs(step).max() > 0.1
    for _ in range(10):
        q = model.integrate(model.neutral(), rng.uniform(-2.0, 2.0, model.nv))
        Y = rbd.inertial_regressor(model, q, rng.normal(size=model.nv), rng.normal(size=model.nv))
        np.testing.assert_allclose(Y @ step, 0.0, atol=1e-8 * np.abs(Y).max())
        np.testing.assert_allclose(Y[:, base.independent] @ base.values(theta), Y @ theta, atol=1e-7 * np.abs(Y).max())


def test_a_body_that_does_not_move_is_not_seen():
    base = rbd.base_parameters(rbd.sample("iiwa"))
    assert "m(link_0)" in base.unidentifiable and not any("link_0" in name for name in base.names)
    with pytest.raises(rbd.RbdError, match="expected"):
        base.values([1.0])
    with pytest.raises(rbd.RbdError, match="no joints"):
        rbd.base_parameters(rbd.RobotModel.from_description(rbd.Description("box", {"a": rbd.Inertia.zero()}, ())))
