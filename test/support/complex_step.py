"""Derivatives of the kernels by an imaginary step of 1e-30, exact to rounding, along any tangent."""

import numpy as np

from support.plain import plain

from rbd_ros.core.dynamics import articulated, inverse, kinematics
from rbd_ros.core.dynamics.bodies import joint_wrenches as loads
from rbd_ros.core.dynamics.bodies.link_tree import link_tree, link_wrenches
from rbd_ros.core.dynamics.constrained import rows
from rbd_ros.core.model import block, joint_kinds
from rbd_ros.core.model.constraint_block import ROWS
from rbd_ros.core.model.joints import KINDS
from rbd_ros.core.model.state import node_wrenches

STEP = 1e-30


inverse_dynamics_recursion = plain(inverse.inverse_dynamics_recursion)
articulated_recursion = plain(articulated.articulated_recursion)
joint_wrenches_recursion = plain(loads.joint_wrenches_recursion)
node_motion = plain(kinematics.node_motion)


def packed_rows(M, C, q, v, a, W, A, f, b):
    """`rows.constraint_rows` on packed arrays."""
    node_motion(M, q, 0, v, a, 0, 2, True, W)
    motion = rows.Motion(W, kinematics.SIZE, W, kinematics.SIZE, kinematics._OMEGA, kinematics._ALPHA,
                         kinematics._ACCEL, 0.0)
    plain(rows.constraint_rows)(M, C, (q, 0, v, 0, a, 0), motion, (W[:0], 0), 2, (A, f, b, 0))


def nodes(model):
    return int(model._block[block.NODES])


def wrenches_of(model, wrenches):
    return node_wrenches(model, wrenches, None).astype(complex)


def inverse_dynamics(model, q, v, a, wrench=None, M=None):
    """Complex efforts at complex arguments; wrench flat and per node."""
    tau = np.zeros(model.nv, dtype=complex)
    M, q, v, a, wrench = (np.asarray(x, dtype=complex) for x in (
        model._block if M is None else M, q, v, a, np.zeros(0) if wrench is None else wrench))
    inverse_dynamics_recursion(M, q, 0, v, a, 0, wrench, 0, np.zeros(inverse.SIZE * nodes(model), dtype=complex), tau)
    return tau


def hybrid_dynamics(model, q, v, a, tau, mask, wrench=None, M=None):
    """Complex accelerations and efforts at complex arguments; an empty mask: forward dynamics."""
    out, effort = np.zeros((2, model.nv), dtype=complex)
    M, q, v, a, tau, wrench = (np.asarray(x, dtype=complex) for x in (
        model._block if M is None else M, q, v, a, tau, np.zeros(0) if wrench is None else wrench))
    W = np.zeros(articulated.SIZE * nodes(model), dtype=complex)
    articulated_recursion(M, q, 0, v, tau, 0, (mask, a), (wrench, 0), W, out, effort)
    return out, effort


def joint_wrenches(model, q, v, a, wrenches=None):
    """Complex joint wrenches, flat; wrenches as the library takes them."""
    out = np.zeros(6 * len(model.body_names), dtype=complex)
    M, L, q, v, a, wrench = (np.asarray(x, dtype=complex) for x in (
        model._block, link_tree(model), q, v, a, link_wrenches(model, wrenches, None)))
    W = np.zeros(inverse.SIZE * nodes(model) + model.nv, dtype=complex)
    joint_wrenches_recursion(M, L, q, 0, v, a, 0, wrench, 0, W, out, 0)
    return out


def body_motions(model, q, v, a):
    """Complex V and V̇ of all links (without gravity), flat, from those of the nodes that carry them."""
    M, q, v, a = (np.asarray(x, dtype=complex) for x in (model._block, q, v, a))
    W = np.zeros(kinematics.SIZE * nodes(model), dtype=complex)
    node_motion(M, q, 0, v, a, 0, 2, True, W)
    out = np.zeros((2, len(model.body_names), 6), dtype=complex)
    start, size = int(model._block[block.LINK_START]), block.LINK
    for i in range(len(model.body_names)):
        record = model._block[start + size * i:start + size * (i + 1)]
        at = int(record[block.LINK_NODE])
        if at < 0:
            continue
        omega, v_o, alpha, a_o = (W[kinematics.SIZE * at + k:kinematics.SIZE * at + k + 3] for k in (
            kinematics._OMEGA, kinematics._V, kinematics._ALPHA, kinematics._ACCEL))
        R = record[block.LINK_ROTATION:block.LINK_ROTATION + 9].reshape(3, 3)
        p = record[block.LINK_POSITION:block.LINK_POSITION + 3]
        v_l = v_o + np.cross(omega, p)
        a_l = a_o + np.cross(alpha, p) + np.cross(omega, np.cross(omega, p)) - np.cross(omega, v_l)
        for row, parts in zip(out[:, i], ((omega, v_l), (alpha, a_l)), strict=True):
            row[:] = np.concatenate([R.T @ part for part in parts])
    return out.reshape(2, -1)


def rotations(model, q):
    """Complex R (nb, 3, 3) of all links, world from link."""
    W = np.zeros(kinematics.SIZE * nodes(model), dtype=complex)
    still = np.zeros(model.nv, dtype=complex)
    node_motion(model._block.astype(complex), np.asarray(q, dtype=complex), 0, still, still, 0, 2, True, W)
    out = []
    for i in range(len(model.body_names)):
        at = int(model._block[block.LINK_START]) + block.LINK * i
        node, R = int(model._block[at + block.LINK_NODE]), model._block[at + block.LINK_ROTATION:][:9].reshape(3, 3)
        w = kinematics.SIZE * node + kinematics._R
        out.append(R if node < 0 else W[w:w + 9].reshape(3, 3) @ R)
    return np.array(out)


def constraint_rows(model, constraints, q, v):
    """Complex A (m, nv) and Ȧq̇ (m,) at complex arguments."""
    C = constraints.bound(model).block
    m = int(C[ROWS])
    A, f, b = np.zeros((m, model.nv), dtype=complex), np.zeros(m, dtype=complex), np.zeros(m, dtype=complex)
    arrays = [np.asarray(x, dtype=complex) for x in (model._block, C, q, v, np.zeros(model.nv))]
    packed_rows(*arrays, np.zeros(kinematics.SIZE * nodes(model), dtype=complex), A.reshape(-1), f, b)
    return A, b


def constraint_jacobian(model, constraints, q):
    return constraint_rows(model, constraints, q, np.zeros(model.nv))[0]


def tangents(model, q):
    """(nq, nv): how positions change per unit along each velocity coordinate."""
    Q = np.zeros((model.nq, model.nv))
    for row in model._node_rows:
        iq, iv, kind = int(row[block.IQ]), int(row[block.IV]), int(row[block.TYPE])
        if kind == joint_kinds.FREE:
            x, y, z, w = q[iq + 3:iq + 7]
            R = np.array([[1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
                          [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
                          [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)]])
            Q[iq:iq + 3, iv + 3:iv + 6] = R
            iq += 3
        if kind in (joint_kinds.FREE, joint_kinds.SPHERICAL):
            x, y, z, w = q[iq:iq + 4]
            Q[iq:iq + 4, iv:iv + 3] = 0.5 * np.array([[w, -z, y], [z, w, -x], [-y, x, w], [-x, -y, -z]])
        else:
            count = KINDS[kind].nv
            Q[iq:iq + count, iv:iv + count] = np.eye(count)
    return Q


def columns(function, *arguments):
    """The Jacobian of `function(x, …)` by each of its real arguments: arguments (x, directions (size, n) or None)."""
    found = []
    values = [np.asarray(x, dtype=complex) for x, _ in arguments]
    for i, (_, directions) in enumerate(arguments):
        if directions is None:
            continue
        steps = np.transpose(directions)
        found.append(np.transpose([function(*values[:i], values[i] + 1j * STEP * e, *values[i + 1:]).imag / STEP
                                   for e in steps]))
    return found
