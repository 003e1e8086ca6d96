"""Rows of contacts, all pairs of surfaces: f, A and Ȧq̇ by complex step of their kernel, the bodies' velocities."""

import pickle

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from support.contacts import PAIRS, bodies, pair, placed
from support.robots import build, chain, inertia

import rbd_ros as rbd
from rbd_ros.core.dynamics.constrained.rows import Motion
from rbd_ros.core.dynamics.contact.contact_rows import contact_rows
from rbd_ros.core.dynamics.kinematics import _ACCEL, _ALPHA, _OMEGA, SIZE, node_motion
from rbd_ros.core.imaginary_step import step_positions

POINTS = [pair for pair in PAIRS if set(pair) != {"plane", "cylinder"}]    # that have contact coordinates
STEP = 1e-30


def complex_rows(model, constraints, q, v):
    """A, Ȧq̇ and f, nv + 2 numbers per row, of complex numbers: the kernels as plain Python."""
    C = constraints.bound(model).contacts.block
    W = np.zeros(SIZE * len(model._node_rows), complex)
    out = np.zeros(constraints.size * (model.nv + 2), complex)
    B = model._block.astype(complex)
    v, a = v.astype(complex), np.zeros(model.nv, complex)
    node_motion(B, q, 0, v, a, 0, 2, True, W)
    assert contact_rows(B, C.astype(complex), (q, 0, v, 0), Motion(W, SIZE, W, SIZE, _OMEGA, _ALPHA, _ACCEL, 0.0), out,
                        0) == -1
    return out.reshape(constraints.size, model.nv + 2)


def stepped(model, q, direction):
    """q with an imaginary step along a direction (nv,)."""
    total, x = q.astype(complex), np.empty(model.nq, complex)
    for c in np.flatnonzero(direction):
        step_positions(model._block, q, 0, c, x)
        total = total + direction[c] * (x - q)
    return total


@pytest.mark.parametrize("pair_of", PAIRS, ids="-".join)
@pytest.mark.parametrize("gap", [0.0, 0.03])
def test_by_complex_step(pair_of, gap):
    model, constraints = pair(*pair_of)
    q, v = placed(*pair_of, 7, gap)
    A, bias, f = (rbd.constraint_jacobian(model, constraints, q), rbd.constraint_bias(model, constraints, q, v),
                  rbd.constraint_values(model, constraints, q))
    assert abs(f[0] - gap) < 2e-2 * gap + 1e-12
    assert (f[1:] == 0.0).all()
    slopes = [complex_rows(model, constraints, stepped(model, q, e), v)[0, -1].imag / STEP for e in np.eye(model.nv)]
    np.testing.assert_allclose(A[0], slopes, atol=1e-11)
    along = complex_rows(model, constraints, stepped(model, q, v), v)[:, :model.nv].imag @ v / STEP
    np.testing.assert_allclose(bias, along, atol=1e-9 * max(1.0, np.abs(bias).max()))
    assert (np.abs(bias) > 1e-6).all()


@pytest.mark.parametrize("pair_of", POINTS, ids="-".join)
def test_rows_are_velocities_of_the_bodies_at_the_contact(pair_of):
    model, constraints = pair(*pair_of)
    q, v = placed(*pair_of, 3)
    contact = constraints["touch"]
    poses, twists = rbd.forward_kinematics(model, q), rbd.body_velocities(model, q, v)
    T1, T2 = (poses[model.body_index(link)] for link in ("one", "two"))
    touch = rbd.closest_points(contact.first, contact.second, np.linalg.inv(T1) @ T2)
    P = (T1 @ [*touch.point_2, 1.0])[:3]
    motion = []
    for link, T in (("one", T1), ("two", T2)):
        V = twists[model.body_index(link)]
        omega, velocity = T[:3, :3] @ V[:3], T[:3, :3] @ V[3:]
        motion.append((omega, velocity + np.cross(omega, P - T[:3, 3])))
    axes = T1[:3, :3] @ touch.axes
    omega, velocity = (axes.T @ (motion[1][i] - motion[0][i]) for i in (0, 1))
    np.testing.assert_allclose(rbd.constraint_jacobian(model, constraints, q) @ v,
                               [velocity[2], velocity[0], velocity[1], omega[2]], atol=1e-11)
    np.testing.assert_allclose(rbd.contact_rates(touch, [*omega, *velocity]).gap, velocity[2])


def test_a_cylinder_on_a_plane_touches_along_a_line():
    """In its middle; the axis is kept parallel to the plane by a row of a loop."""
    model = build([rbd.JointSpec("free", "floating", "base", "roller")], {"roller": inertia()})
    plane = rbd.Plane("base", [[0.1, 0.0, 0.2], [0.2, -0.1, 0.4]])
    constraints = rbd.ConstraintSet([
        rbd.RollingContact(plane, rbd.Cylinder("roller", 0.3, [[0.02, 0.01, 0.03], [0.0, np.pi / 2, 0.0]]), spin=False),
        rbd.LoopClosure("base", "roller", ["ry"], plane.frame)])
    q = model.neutral()
    q[2] = 0.6
    q, v = rbd.project(model, constraints, q, np.random.default_rng(0).normal(size=6))
    h = 1e-6
    A = rbd.constraint_jacobian(model, constraints, q)
    slopes = [(rbd.constraint_values(model, constraints, model.integrate(q, h * e))[0]
               - rbd.constraint_values(model, constraints, model.integrate(q, -h * e))[0]) / (2 * h) for e in np.eye(6)]
    np.testing.assert_allclose(A[0], slopes, atol=1e-8)
    assert np.linalg.matrix_rank(A) == 5 and np.linalg.norm(v) > 0.01
    bias = rbd.constraint_bias(model, constraints, q, v)
    numeric = (rbd.constraint_jacobian(model, constraints, model.integrate(q, h * v))
               - rbd.constraint_jacobian(model, constraints, model.integrate(q, -h * v))) @ v / (2 * h)
    np.testing.assert_allclose(bias, numeric, atol=1e-8)


@pytest.mark.parametrize("tilt", [0.0, 1e-6, 0.3, 1.2])
@pytest.mark.parametrize("seed", range(3))
def test_a_cylinder_on_a_plane_tilts_about_the_circle_in_its_middle(tilt, seed):
    """Rows and bias at any tilt and rate of tilt, with a gap and slip; the gap is that of the circle's lowest point."""
    rng = np.random.default_rng(seed)
    model = build([rbd.JointSpec("free", "floating", "base", "roller")], {"roller": inertia()})
    on_base, on_roller, radius = [[0.1, 0.0, 0.2], [0.2, -0.1, 0.4]], [[0.02, 0.01, 0.03], [0.3, 0.2, 0.1]], 0.3
    floor, frame = (rbd.lie.se3.pose(*place) for place in (on_base, on_roller))
    contact = rbd.ConstraintSet([rbd.RollingContact(
        rbd.Plane("base", on_base), rbd.Cylinder("roller", radius, on_roller), spin=False)])
    pose = floor @ rbd.lie.se3.pose(np.array([0.0, 0.0, 1.0]) + rng.normal(size=3), [np.pi / 2 + tilt, 0.0, 0.0])
    body = pose @ np.linalg.inv(frame)
    q = np.concatenate([body[:3, 3], Rotation.from_matrix(body[:3, :3]).as_quat()])
    v, h = rng.normal(size=6), 1e-6
    value = rbd.constraint_values(model, contact, q)[0]
    up, axis = floor[:3, 2], pose[:3, 2]
    lowest = (pose[:3, 3] - floor[:3, 3]) @ up - radius * np.sqrt(1.0 - (up @ axis) ** 2)
    np.testing.assert_allclose(value, lowest, atol=1e-12)
    A = rbd.constraint_jacobian(model, contact, q)
    slopes = [(rbd.constraint_values(model, contact, model.integrate(q, h * e))[0]
               - rbd.constraint_values(model, contact, model.integrate(q, -h * e))[0]) / (2 * h) for e in np.eye(6)]
    np.testing.assert_allclose(A[0], slopes, atol=1e-8)
    numeric = (rbd.constraint_jacobian(model, contact, model.integrate(q, h * v))
               - rbd.constraint_jacobian(model, contact, model.integrate(q, -h * v))) @ v / (2 * h)
    np.testing.assert_allclose(rbd.constraint_bias(model, contact, q, v), numeric, atol=1e-7)


def test_names_and_which_rows_hold_positions():
    plane, ball = rbd.Plane("world"), rbd.Sphere("two", 0.1)
    constraints = rbd.ConstraintSet([rbd.RollingContact(plane, ball, name="roll"), rbd.SlidingContact(plane, ball),
                                     rbd.RollingContact(plane, ball, spin=False)])
    assert constraints.row_names == ("roll/normal", "roll/tangent_x", "roll/tangent_y", "sliding_1/normal",
                                     "rolling_2/normal", "rolling_2/tangent_x", "rolling_2/tangent_y", "rolling_2/spin")
    assert list(constraints.holonomic) == [True, False, False, True, True, False, False, False]
    assert constraints.labels[3] == "sliding_1"


def test_a_batch_and_a_mixture_are_their_parts():
    """Contacts, a loop, a coupling and functions in one set, in any order, for several states at once."""
    model, touch = pair("ellipsoid", "torus")
    user = rbd.NonholonomicConstraint(lambda q: np.arange(model.nv) * q[0], lambda q, v: np.arange(model.nv) @ v * v[0])
    parts = [user, touch["touch"], rbd.LoopClosure("arm", "two", ["x"], name="loop"),
             rbd.SlidingContact(rbd.Plane("base", [0.0, 0.0, -2.0]), rbd.Sphere("one", 0.1), name="floor")]
    constraints = rbd.ConstraintSet(parts)
    states = [placed("ellipsoid", "torus", seed) for seed in range(3)]
    q, v = (np.array(x) for x in zip(*states, strict=True))
    for function, arguments in ((rbd.constraint_values, (q,)), (rbd.constraint_jacobian, (q,)),
                                (rbd.constraint_bias, (q, v))):
        batch = function(model, constraints, *arguments)
        each = [function(model, constraints, *(x[i] for x in arguments)) for i in range(3)]
        np.testing.assert_array_equal(batch, each)
        alone = [function(model, rbd.ConstraintSet([part]), *arguments) for part in parts]
        np.testing.assert_array_equal(batch, np.concatenate(alone, axis=1))
    tau = np.random.default_rng(0).normal(size=model.nv)
    batch = rbd.constrained_forward_dynamics(model, constraints, q, v, np.stack([tau] * 3))
    each = [rbd.constrained_forward_dynamics(model, constraints, x, y, tau).acceleration for x, y in states]
    np.testing.assert_allclose(batch.acceleration, each, rtol=1e-12)
    assert rbd.constraint_values(model, constraints, np.empty((0, model.nq))).shape == (0, 7)


def test_sets_with_contacts_are_copied_anchored_and_sent():
    """`anchored` moves fixed contacts of the world alone; processes get what they are sent."""
    model = rbd.sample("ball_on_plate")
    q, zero = model.neutral(), np.zeros(model.nv)
    constraints = rbd.ConstraintSet([*rbd.sample_constraints("ball_on_plate", model).constraints,
                                     rbd.FixedContact("plate", name="grip")])
    held = rbd.anchored(model, constraints, q)
    assert np.abs(rbd.constraint_values(model, held, q)).max() < 1e-14
    again = pickle.loads(pickle.dumps(held))
    results = [rbd.constrained_forward_dynamics(model, each, q, zero, zero) for each in (held, again)]
    np.testing.assert_array_equal(results[0].multipliers, results[1].multipliers)
    assert results[0].multipliers[0] == pytest.approx(0.11 * 9.81)    # the plate is held: the ball lies on it


def test_links_of_one_body_and_bodies_on_a_chain():
    model = chain("revolute", "spherical", "revolute")
    with pytest.raises(rbd.RbdError, match=r"'rolling_0'.*one rigid body"):
        rbd.ConstraintSet([rbd.RollingContact(rbd.Plane("world"), rbd.Sphere("l0", 0.1))]).bound(model)
    with pytest.raises(rbd.RbdError, match=r"surface's link.*'l9'"):
        rbd.ConstraintSet([rbd.SlidingContact(rbd.Plane("l1"), rbd.Sphere("l9", 0.1))]).bound(model)
    contact = rbd.ConstraintSet([rbd.SlidingContact(rbd.Plane("l1", [0.0, 0.0, 0.2]), rbd.Sphere("l3", 0.1))])
    A = rbd.constraint_jacobian(model, contact, model.random_configuration(0))
    assert (A[0, 0] == 0.0) and (np.abs(A[0, 1:]) > 1e-6).any()    # the joint above both moves neither
    assert bodies().nv == 13
