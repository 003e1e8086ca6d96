"""What each kind of joint says of itself, held against each other by complex step; and of what is no kind."""

import dataclasses

import numpy as np
import pytest
from support.complex_step import STEP, inverse_dynamics, tangents
from support.functions import functions
from support.plain import plain
from support.robots import assert_close, build
from support.trees import TYPES, random_tree

import rbd_ros as rbd
from rbd_ros.core.model import block, configuration, joint_kinds, joints
from rbd_ros.core.model.joints import KINDS, aligning_rotation, primitives
from rbd_ros.core.model.joints import TYPES as TABLE

NODES = [(kind, at) for kind in TYPES for at in range(len(random_tree(5, [kind])._node_rows))]
VARY = [number for number, row in KINDS.items() if row.varies]
UNKNOWN = 17
# they keep tables of coordinates, whose length is wrong where a kind is broken after the model was made
FACTORS = ("forward_dynamics_derivatives", "hybrid_dynamics_derivatives")


def _room(M, o, q, v, x, wrench, out):
    """All that the room says of the node at o: to out by rows of 6, 6, …; see `Room`."""
    kinds, t = plain(joint_kinds), plain(block.kind)(M, o)
    n = kinds.dof(t)
    k = int(M[o + block.IQ].real)
    j = int(M[o + block.IV].real)
    R, p = kinds.joint_pose(M, o, q, k)
    for i in range(9):
        out[0, i] = R[i]
    for i in range(3):
        out[1, i] = p[i]
    a, b = kinds.joint_twist(M, o, q, k, v, j)
    c, d = kinds.joint_bias(M, o, q, k, v, j)
    for i in range(3):
        out[2, i], out[2, i + 3], out[3, i], out[3, i + 3] = a[i], b[i], c[i], d[i]
    for r in range(n):
        a, b = kinds.column(M, o, q, k, r)
        for i in range(3):
            out[4 + r, i], out[4 + r, i + 3] = a[i], b[i]
    kinds.project(M, o, q, k, (wrench[0], wrench[1], wrench[2]), (wrench[3], wrench[4], wrench[5]), out[10], 0)
    for r in range(n):
        plain(configuration.tangent_node)(M, o, q, k, r, 1.0, out[20 + r], 0)
    if kinds.varies(t):
        rate, y = kinds.rates(t, v, j), kinds.rates(t, x, j)
        a, b = kinds.slope(M, o, q, k, y, rate)
        c, d = kinds.second_slope(M, o, q, k, y, rate)
        for i in range(3):
            out[16, i], out[16, i + 3], out[17, i], out[17, i + 3] = a[i], b[i], c[i], d[i]
        a = kinds.slope_dual(M, o, q, k, y, (wrench[0], wrench[1], wrench[2]), (wrench[3], wrench[4], wrench[5]))
        for i in range(3):
            out[18, i] = a[i]


class Room:
    """What the room says at the state (q, v) of the node `at` of a model, along x, of a wrench."""

    def __init__(self, model, at, q, v, x, wrench):
        out = np.zeros((26, 9), dtype=complex)
        arrays = [np.asarray(y, dtype=complex) for y in (q, v, x, wrench)]
        row = model._node_rows[at]
        _room(model._block.astype(complex), block.HEADER + block.NODE * at, *arrays, out)
        kind = KINDS.get(int(row[block.TYPE]))
        n, nq = (kind.nv, kind.nq) if kind else (1, 1)
        self.R, self.p = out[0].reshape(3, 3), out[1, :3]
        self.twist, self.bias, self.S = out[2, :6], out[3, :6], out[4:4 + n, :6].T
        self.projected = out[10, :n]
        self.tangents = out[20:20 + n, :nq].T
        self.slope, self.second, self.dual = out[16, :6], out[17, :6], out[18, :n]


def states(kind, at):
    model = random_tree(5, [kind])
    rows = model._node_rows
    rng = np.random.default_rng(2)
    q, v, x, wrench = model.random_configuration(3), *rng.normal(size=(2, model.nv)), rng.normal(size=6)
    row = rows[at]
    here = KINDS[int(row[block.TYPE])]
    iq, iv = int(row[block.IQ]), int(row[block.IV])
    return model, q, v, x, wrench, slice(iq, iq + here.nq), slice(iv, iv + here.nv), here


def close(found, expected):
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-14 * max(1.0, np.abs(expected).max(initial=0.0)))


def vee(skew):
    return np.array([skew[2, 1], skew[0, 2], skew[1, 0]])


@pytest.mark.parametrize(("kind", "at"), NODES)
def test_pose_twist_columns_and_slopes_are_derivatives_of_each_other(kind, at):
    model, q, v, x, wrench, pq, pv, here = states(kind, at)
    room = Room(model, at, q, v, x, wrench)
    S = room.S.real
    close(S @ v[pv], room.twist.real)
    close(S.T @ wrench, room.projected.real)

    def along(direction):
        moved = q.astype(complex)
        moved[pq] += 1j * STEP * (room.tangents.real @ direction)
        return Room(model, at, moved, v, x, wrench)

    for c in range(here.nv):    # T⁻¹ ∂T
        other = along(np.eye(here.nv)[c])
        close(vee(room.R.real.T @ other.R.imag / STEP), S[:3, c])
        close(room.R.real.T @ other.p.imag / STEP, S[3:, c])
    close(along(v[pv]).twist.imag / STEP, room.bias.real)
    slope = along(x[pv]).S.imag / STEP
    if here.varies:
        close(slope @ v[pv], room.slope.real)
        close(slope.T @ wrench, room.dual.real)
        close(along(v[pv]).slope.imag / STEP, room.second.real)
    else:
        close(slope, np.zeros_like(slope))


@pytest.mark.parametrize(("kind", "at"), NODES)
def test_the_pose_of_a_step_is_that_of_its_node(kind, at):
    """`Primitive.pose`, for locked joints and constraints, beside the kernel's: relative to q = 0, in the same axes."""
    model, q, v, x, wrench, pq, _, _ = states(kind, at)
    step = primitives(model.description.joints[0])[at]
    zero = model.neutral()
    A = np.eye(4)
    A[:3, :3] = aligning_rotation(step.axis) if step.nv == 1 else np.eye(3)    # as the model builder turns it

    def pose(R, p):
        T = np.eye(4)
        T[:3, :3], T[:3, 3] = R, p
        return T

    def node(positions):
        room = Room(model, at, positions, v, x, wrench)
        return pose(room.R.real, room.p.real)

    moved = np.linalg.solve(pose(*step.pose(zero[pq])), pose(*step.pose(q[pq]))) @ A
    np.testing.assert_allclose(np.linalg.solve(node(zero), node(q)), np.linalg.solve(A, moved), rtol=0, atol=1e-14)


@pytest.mark.parametrize("kind", sorted(kind for kind in TYPES if any(
    row[block.TYPE] in VARY for row in random_tree(5, [kind])._node_rows)))
def test_series_in_time_begin_with_the_slopes(kind):
    """`series_rate`, `series_dual`: the rate of the effort is that along the motion, by complex step."""
    model = random_tree(5, ["revolute", kind])
    rng = np.random.default_rng(4)
    q, (v, a, jerk) = model.random_configuration(3), rng.normal(size=(3, model.nv))
    found = rbd.inverse_dynamics_time_derivatives(model, q, v, a, jerk)[1]
    step = 1j * STEP
    moved = q + step * (tangents(model, q) @ v)
    expected = inverse_dynamics(model, moved, v + step * a, a + step * jerk).imag / STEP
    assert_close(found, expected, 1e-13)


@pytest.mark.parametrize("number", KINDS)
def test_predicates_are_those_of_the_table(number):
    row = KINDS[number]
    assert (joint_kinds.dof(number), bool(joint_kinds.is_screw(number)), bool(joint_kinds.varies(number))) == (
        row.nv, row.screw, row.varies)
    assert bool(joint_kinds.has_quaternion(number)) == (row.quaternion is not None)
    assert bool(joint_kinds.is_free(number)) == row.free
    assert row.nq == row.nv + (row.quaternion is not None)
    if row.quaternion is not None:
        assert joint_kinds.quaternion_at(number) == row.quaternion


@pytest.mark.parametrize("kind", ["revolute", "spherical", "spherical_exponential", "floating"])
def test_no_function_takes_a_kind_that_is_none(kind):
    """Nothing falls through to the kind that is asked for last: results are not numbers, and that is an error."""
    model = random_tree(4, [kind])
    broken = model._block.copy()
    broken[block.HEADER + block.TYPE] = UNKNOWN
    with pytest.raises(rbd.RbdError, match="a step of kind 17"):
        dataclasses.replace(model, _block=broken).neutral()
    bad = dataclasses.replace(model, _block=model._block.copy())
    assert len(bad._kinds) == len(model._kinds)    # which are kept, so that kernels are asked
    bad._block[:] = broken
    q, v = model.neutral(), np.ones(model.nv)
    for name, call in functions(bad).items():
        if name in FACTORS:
            continue
        with pytest.raises(rbd.RbdError):
            call(q, v, v)
            pytest.fail(f"{name} takes a kind that is none")


def test_an_unknown_type_or_step_is_refused_by_name():
    with pytest.raises(rbd.RbdError, match=r"joint type of 'knee'.*twisty"):
        build([rbd.JointSpec("knee", "twisty", "base", "l1")])
    with pytest.raises(rbd.RbdError, match=r"joint 'knee': a step of kind 17, expected one of 0 \(revolute\)"):
        build([rbd.JointSpec("knee", "composite", "base", "l1", parts=(rbd.Primitive(UNKNOWN),))])


def test_every_type_has_its_row_in_the_table_of_types():
    rows = [row.split("|")[1] for row in joints.__doc__.splitlines() if row.startswith("| ")][1:]
    assert {name.strip() for row in rows for name in row.split(",")} == set(TYPES)


def test_every_type_is_a_chain_of_kinds():
    used = {step.type for kind in TABLE for step in primitives(rbd.JointSpec(
        "j", kind, "a", "b", advance=(0.0, 0.1),
        parts=(rbd.Primitive(joint_kinds.HELICAL),) if kind == "composite" else ()))}
    assert used == set(KINDS)
