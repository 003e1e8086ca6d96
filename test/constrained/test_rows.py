"""f, A and Ȧq̇ of every kind of constraint, on and off the manifold: finite differences and complex step."""

import os
import subprocess
import sys
from itertools import combinations

import numpy as np
import pytest
from support.closed import NAMES, closed
from support.robots import build, chain, inertia, random_state

import rbd_ros as rbd
from rbd_ros.core.model.constraints import AXES

SUBSETS = [subset for count in range(1, 7) for subset in combinations(AXES, count)]
PLACES = {"predecessor_frame": ([0.1, 0.2, 0.3], [0.3, 0.2, 0.1]),
          "successor_frame": ([0.2, -0.1, 0.3], [0.5, 0.2, 0.1])}
TYPES = ("revolute", "spherical", "prismatic", "revolute", "spherical_exponential", "planar")


def tree():
    return chain(*TYPES, root="floating", links={"l0": inertia()})


def check_differences(model, constraints, q, v, bound):
    step = 1e-6

    def slope(function, direction):
        return (function(model.integrate(q, step * direction)) - function(model.integrate(q, -step * direction))) / (
            2.0 * step)

    A = rbd.constraint_jacobian(model, constraints, q)
    numeric = np.stack([slope(lambda x: rbd.constraint_values(model, constraints, x), e) for e in np.eye(model.nv)], 1)
    np.testing.assert_allclose(A, numeric, atol=bound)
    numeric = slope(lambda x: rbd.constraint_jacobian(model, constraints, x), v) @ v
    bias = rbd.constraint_bias(model, constraints, q, v)
    np.testing.assert_allclose(bias, numeric, atol=bound * max(1.0, np.abs(bias).max()))
    return A, bias


@pytest.mark.parametrize("seed", range(3))
def test_all_subsets_of_axes_by_differences(seed):
    model = tree()
    constraints = rbd.ConstraintSet([rbd.LoopClosure("l2", "l6", axes=s, name="-".join(s), **PLACES) for s in SUBSETS])
    q, v, _ = random_state(model, seed)
    A, bias = check_differences(model, constraints, q, v, 1e-7)
    assert (np.abs(A).max(axis=1) > 0.0).all()
    assert (np.abs(bias) > 0.0).all()


@pytest.mark.parametrize("name", NAMES)
def test_samples_by_differences(name):
    model, constraints, q = closed(name)
    rng = np.random.default_rng(0)
    q = model.integrate(q, 0.2 * rng.normal(size=model.nv))
    check_differences(model, constraints, q, rng.normal(size=model.nv), 1e-6)


def test_contacts_couplings_and_loops_between_branches():
    model = build([rbd.JointSpec("a", "revolute", "root", "a", axis=(0.0, 1.0, 0.0)),
                   rbd.JointSpec("b", "cylindrical", "a", "b", position=np.array([0.1, 0.2, 0.3])),
                   rbd.JointSpec("c", "spherical", "a", "c", position=np.array([0.0, -0.2, 0.1])),
                   rbd.JointSpec("d", "helical", "c", "d", pitch=0.1, position=np.array([0.3, 0.0, 0.1])),
                   rbd.JointSpec("e", "revolute", "b", "e", mimic=("a", -0.7, 0.2))])
    constraints = rbd.ConstraintSet([
        rbd.LoopClosure("e", "d", **PLACES), rbd.LoopClosure("d", "a", axes="spherical", name="up the tree"),
        rbd.LoopClosure("a", "world", axes=["x", "rz"], name="to the world"),
        rbd.FixedContact("d", [0.1, 0.0, 0.2], "point", ([0.1, 0.1, 0.1], [0.1, 0.2, 0.3])), rbd.FixedContact("e"),
        rbd.JointCoupling({"a": [1.0, 0.5, 0.2], "e": [0.3, 2.0], "b/1": 2.0, "d": [0.0, 0.0, 1.0]}, 0.3)])
    q, v, _ = random_state(model, 3)
    check_differences(model, constraints, q, v, 1e-7)
    x = {name: q[model.joint(name).idx_q] for name in "ad"}
    y = -0.7 * x["a"] + 0.2
    expected = (x["a"] + 0.5 * x["a"] ** 2 + 0.2 * x["a"] ** 3 + 0.3 * y + 2.0 * y ** 2
                + 2.0 * q[model.joint("b").idx_q + 1] + x["d"] ** 3 - 0.3)
    np.testing.assert_allclose(rbd.constraint_values(model, constraints, q)[-1], expected, rtol=1e-13)


COMPLEX_STEP = """
import warnings
warnings.simplefilter("ignore")
import numpy as np
import rbd_ros as rbd
from rbd_ros.core.dynamics.constrained.values import constraint_rows_entry
from rbd_ros.core.model.constraints import AXES
from support.robots import chain, random_state
places = {"predecessor_frame": ([0.1, 0.2, 0.3], [0.3, 0.2, 0.1]), "successor_frame": ([0.2, -0.1, 0.3], [0.5, 0.2, 0])}
model = chain("revolute", "prismatic", "helical", "spherical_exponential", "cylindrical", "revolute")
sets = (AXES, ("rx", "ry", "x"), ("ry", "rz"), ("rx", "rz"), ("rx",), ("ry",), ("rz",))
constraints = rbd.ConstraintSet([rbd.LoopClosure("l1", "l5", axes=s, name="-".join(s), **places) for s in sets] + [
    rbd.FixedContact("l6"), rbd.JointCoupling({"j0": [1.0, 0.5, 0.2], "j1": -2.0})])
q, v, _ = random_state(model, 0)
m, n, step = constraints.size, model.nv, 1e-30
assert not rbd.COMPILED

def rows(q):
    A, f, b = np.zeros(m * n, complex), np.zeros(m, complex), np.zeros(m, complex)
    assert constraint_rows_entry.python(model._block, constraints.bound(model).block, q, v.astype(complex),
                                        np.zeros(n, complex), np.zeros(0), 1, 2, A, f, b)
    return f, A.reshape(m, n), b

f, A, bias = (x.real for x in rows(q.astype(complex)))
slopes = np.stack([rows(q + 1j * step * e)[0].imag / step for e in np.eye(n)], axis=1)
np.testing.assert_allclose(A, slopes, atol=1e-13 * np.abs(A).max())
np.testing.assert_allclose(bias, rows(q + 1j * step * v)[1].imag @ v / step, atol=1e-13 * np.abs(bias).max())
np.testing.assert_allclose(rbd.constrained_forward_dynamics(model, constraints, q, v, v, damping=0.5).rank, n)
"""


def test_by_complex_step():
    """In plain Python, which takes complex numbers without compiling anew."""
    result = subprocess.run([sys.executable, "-c", COMPLEX_STEP], env={**os.environ, "RBD_DISABLE_COMPILE": "1",
                            "PYTHONPATH": os.pathsep.join(sys.path)}, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("axes", ["revolute", "fixed", "universal"])
def test_jacobian_is_the_geometric_one_on_the_manifold(axes):
    """Rotation rows are the relative angular velocity in the predecessor's axes (of a universal joint: its normal)."""
    model = chain("revolute", "spherical", "spherical", "revolute")
    loop = rbd.LoopClosure("l1", "l3", axes=axes)
    q, v = rbd.project(model, rbd.ConstraintSet([loop]), *random_state(model, 1)[:2])
    q, v = q, random_state(model, 2)[1]
    poses = rbd.forward_kinematics(model, q)
    twist = rbd.body_velocities(model, q, v)
    R = poses[1, :3, :3].T @ poses[3, :3, :3]
    omega = R @ twist[3, :3] - twist[1, :3]
    rates = rbd.constraint_jacobian(model, rbd.ConstraintSet([loop]), q) @ v
    expected = {"revolute": omega[:2], "fixed": omega, "universal": [np.cross([1.0, 0.0, 0.0], R[:, 1]) @ omega]}[axes]
    np.testing.assert_allclose(rates[:len(expected)], expected, atol=1e-10)


def test_a_batch_is_its_states():
    model, constraints, q0 = closed("delta")
    q = np.array([model.integrate(q0, 0.1 * e) for e in np.eye(model.nv)[:3]])
    v = np.random.default_rng(0).normal(size=(3, model.nv))
    for function, arguments in ((rbd.constraint_values, (q,)), (rbd.constraint_jacobian, (q,)),
                                (rbd.constraint_bias, (q, v))):
        batch = function(model, constraints, *arguments)
        each = [function(model, constraints, *(x[i] for x in arguments)) for i in range(3)]
        np.testing.assert_array_equal(batch, each)


def test_a_contact_is_with_the_world_whatever_the_links_are_called():
    """Many descriptions have a root link `world`, which moves where it is loaded with a floating root."""
    joint = rbd.JointSpec("hip", "revolute", "world", "foot", position=np.array([0.1, 0.0, 0.3]))
    named, other = (build([rbd.JointSpec(**{**vars(joint), "parent": root})], root="floating")
                    for root in ("world", "base"))
    contact = rbd.ConstraintSet([rbd.FixedContact("foot", [0.0, 0.1, -0.2])])
    q = random_state(other, 1)[0]
    expected = rbd.constraint_jacobian(other, contact, q)
    assert np.linalg.matrix_rank(expected) == 6
    np.testing.assert_array_equal(rbd.constraint_jacobian(named, contact, q), expected)
    np.testing.assert_array_equal(rbd.constraint_values(named, contact, q), rbd.constraint_values(other, contact, q))


@pytest.mark.parametrize("c", range(3))
def test_an_axis_turned_by_exactly_half_a_turn(c):
    """A frame drawn upside down: off by 2 sin(π/2) = 2, never NaN, and `project` finds the way."""
    model = chain("spherical", "revolute")
    flipped = np.diag(np.where(np.arange(4) == 3, 1.0, np.where(np.arange(4) == (c + 1) % 3, 1.0, -1.0)))
    constraints = rbd.ConstraintSet([rbd.LoopClosure("world", "l1", [x for x in AXES[:3] if x != AXES[c]], flipped)])
    q, v = model.neutral(), np.linspace(0.1, 0.4, model.nv)
    assert sorted(np.abs(rbd.constraint_values(model, constraints, q))) == [0.0, 2.0]
    assert np.linalg.matrix_rank(rbd.constraint_jacobian(model, constraints, q)) == 2
    assert np.isfinite(rbd.constraint_bias(model, constraints, q, v)).all()
    assert np.isfinite(rbd.constrained_forward_dynamics(model, constraints, q, v, v).multipliers).all()
    projected = rbd.project(model, constraints, q).q
    assert np.abs(rbd.constraint_values(model, constraints, projected)).max() < 1e-12
    R = rbd.forward_kinematics(model, projected)[1, :3, :3]
    assert R[:, c] @ flipped[:3, c] == pytest.approx(1.0)
