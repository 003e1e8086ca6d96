"""Poses, twists, accelerations and Jacobians of links: K eq. 37, 41."""
from __future__ import annotations

import weakref

from numpy.typing import ArrayLike

from ..compiled.entry import quick_entry
from ..compiled.kernel import kernel
from ..errors import RbdError, shown
from ..lie.spatial import add, add_cross, add_rotated, add_rotated_back, compose, cross, rotate, rotate_back, scale
from ..model.block import (
    LINK, LINKS, LINK_NODE, LINK_POSITION, LINK_ROTATION, LINK_START, RATIO, all_finite, first_position, first_velocity,
    integer, kind, layout, matrix, node, node_count, parent, put, put_matrix, rates_valid, size_q, size_v, vector, zero,
)
from ..model.configuration import positions_valid
from ..model.inertia import Array
from ..model.joint_kinds import column, dof, is_revolute, joint_bias, joint_pose, joint_twist
from ..model.robot_model import RobotModel
from ..model.state import shaped
from ..compiled.door import Call, Way, door
from ..compiled.workspace import ONE_STATE

# workspace per node: world pose; twist (ω, v), angular acceleration and classical acceleration, in node axes
_R, _P, _OMEGA, _V, _ALPHA, _ACCEL, SIZE = layout(R=9, p=3, omega=3, v=3, alpha=3, accel=3)


@kernel
def node_motion(B, q, k, v, a, j, order, posed, W):
    """Into W: world poses if `posed`; twists (order 1), also accelerations without gravity (2)."""
    z = zero(B, v, j)
    omega = velo = alpha = accel = (z, z, z)
    for i in range(node_count(B)):
        o = node(i)
        w = SIZE * i
        iq = k + first_position(B, o)
        R, p = joint_pose(B, o, q, iq)
        h = parent(B, o)
        x = SIZE * h
        if posed:
            if h < 0:
                put_matrix(W, w + _R, R)
                put(W, w + _P, p)
            else:
                R_h = matrix(W, x + _R)
                put_matrix(W, w + _R, compose(R_h, R))
                put(W, w + _P, add_rotated(vector(W, x + _P), R_h, p))
        if order == 0:
            continue
        iv = j + first_velocity(B, o)
        if h < 0:
            omega = velo = alpha = accel = (z, z, z)
        elif h != i - 1:    # else the node before
            omega, velo = vector(W, x + _OMEGA), vector(W, x + _V)
            if order == 2:
                alpha, accel = vector(W, x + _ALPHA), vector(W, x + _ACCEL)
        omega_r, velo_r = joint_twist(B, o, q, iq, v, iv)
        velo = add_rotated_back(velo_r, R, add_cross(velo, omega, p))
        centripetal = cross(omega, cross(omega, p))
        omega = rotate_back(R, omega)
        if order == 2:
            alpha_r, accel_r = joint_twist(B, o, q, iq, a, iv)
            bias_a, bias_l = joint_bias(B, o, q, iq, v, iv)
            accel = add_cross(add_rotated_back(add(accel_r, bias_l), R, add_cross(add(accel, centripetal), alpha, p)),
                              add(scale(2.0, omega), omega_r), velo_r)
            alpha = add_cross(add_rotated_back(add(alpha_r, bias_a), R, alpha), omega, omega_r)
            put(W, w + _ALPHA, alpha)
            put(W, w + _ACCEL, accel)
        omega = add(omega, omega_r)
        put(W, w + _OMEGA, omega)
        put(W, w + _V, velo)


@quick_entry("boolean(float64[::1], float64[::1], float64[::1], float64[:, :, ::1])")
def poses_entry(B, q, W, poses):
    """Poses (N·links, 4, 4) of N states; False if an input is invalid or a pose not finite."""
    nq = size_q(B)
    links = integer(B, LINKS)
    states = poses.shape[0] // links
    if not positions_valid(B, q, states):
        return False
    out = poses.reshape(-1)
    finite = True
    for s in range(states):
        node_motion(B, q, s * nq, B, B, 0, 0, True, W)
        for i in range(links):
            o = integer(B, LINK_START) + LINK * i
            R = matrix(B, o + LINK_ROTATION)
            p = vector(B, o + LINK_POSITION)
            h = integer(B, o + LINK_NODE)
            if h >= 0:
                R_h = matrix(W, SIZE * h + _R)
                R = compose(R_h, R)
                p = add_rotated(vector(W, SIZE * h + _P), R_h, p)
            k = 16 * (s * links + i)
            finite &= (R[0] - R[0]) + (R[4] - R[4]) + (p[0] - p[0]) + (p[1] - p[1]) + (p[2] - p[2]) == 0.0
            for r in range(3):
                out[k + 4 * r] = R[3 * r]
                out[k + 4 * r + 1] = R[3 * r + 1]
                out[k + 4 * r + 2] = R[3 * r + 2]
                out[k + 4 * r + 3] = p[r]
                out[k + 12 + r] = 0.0
            out[k + 15] = 1.0
    return finite


@kernel
def link_motions(B, W, order, out, offset):
    """Into out[offset:] the motion of each link, from the node motion W."""
    for i in range(integer(B, LINKS)):
        o = integer(B, LINK_START) + LINK * i
        h = integer(B, o + LINK_NODE)
        k = offset + 6 * i
        if h < 0:
            for c in range(6):
                out[k + c] = 0.0
            continue
        R = matrix(B, o + LINK_ROTATION)
        p = vector(B, o + LINK_POSITION)
        w = SIZE * h
        omega = vector(W, w + _OMEGA)
        velo = add_cross(vector(W, w + _V), omega, p)
        if order == 1:
            put(out, k, rotate_back(R, omega))
            put(out, k + 3, rotate_back(R, velo))
        else:
            alpha = vector(W, w + _ALPHA)
            accel = add_cross(add_cross(vector(W, w + _ACCEL), alpha, p), omega, cross(omega, p))
            put(out, k, rotate_back(R, alpha))
            put(out, k + 3, rotate_back(R, add_cross(accel, velo, omega)))


@quick_entry("boolean(float64[::1], float64[::1], float64[::1], float64[::1], int64, float64[::1], float64[:, ::1])")
def motions_entry(B, q, v, a, order, W, motions):
    """Motions (N·links, 6) of N states: V (order 1) or V̇ (order 2), angular first, in link axes."""
    nq = size_q(B)
    nv = size_v(B)
    links = integer(B, LINKS)
    states = motions.shape[0] // links
    if not (positions_valid(B, q, states) and rates_valid(B, v, states)
            and (order == 1 or rates_valid(B, a, states))):
        return False
    out = motions.reshape(-1)
    for s in range(states):
        if order == 1:
            node_motion(B, q, s * nq, v, a, s * nv, 1, False, W)
            link_motions(B, W, 1, out, 6 * s * links)
        else:
            node_motion(B, q, s * nq, v, a, s * nv, 2, False, W)
            link_motions(B, W, 2, out, 6 * s * links)
    return all_finite(out)


@kernel
def jacobian_recursion(B, q, k, link, frame, J, offset):
    """Into J[offset:] the Jacobian (6 × nv) of a link, from the link to the root. frame: 0 body, 1 world, 2 aligned.

    Returns the pose (R, p) of the link.
    """
    nv = size_v(B)
    z = 0.0 * B[0]
    for c in range(6 * nv):
        J[offset + c] = z
    o = integer(B, LINK_START) + LINK * link
    R = matrix(B, o + LINK_ROTATION)    # pose of the link in the current node
    p = vector(B, o + LINK_POSITION)
    i = integer(B, o + LINK_NODE)
    while i >= 0:
        o = node(i)
        iq = k + first_position(B, o)
        t = kind(B, o)
        for c in range(dof(t)):
            b = offset + first_velocity(B, o) + c
            if is_revolute(t):
                ratio = B[o + RATIO]
                va = scale(ratio, (R[6], R[7], R[8]))
                vl = add(scale(-ratio * p[1], (R[0], R[1], R[2])), scale(ratio * p[0], (R[3], R[4], R[5])))
            else:
                sa, sl = column(B, o, q, iq, c)
                va = rotate_back(R, sa)
                vl = rotate_back(R, add_cross(sl, sa, p))
            for r in range(3):
                J[b + r * nv] += va[r]
                J[b + (r + 3) * nv] += vl[r]
        Rj, pj = joint_pose(B, o, q, iq)
        p = add_rotated(pj, Rj, p)
        R = compose(Rj, R)
        i = parent(B, o)
    if frame > 0:
        for c in range(nv):
            b = offset + c
            va = rotate(R, (J[b], J[b + nv], J[b + 2 * nv]))
            vl = rotate(R, (J[b + 3 * nv], J[b + 4 * nv], J[b + 5 * nv]))
            if frame == 1:
                vl = add_cross(vl, p, va)
            for r in range(3):
                J[b + r * nv] = va[r]
                J[b + (r + 3) * nv] = vl[r]
    return R, p


@quick_entry("boolean(float64[::1], float64[::1], int64, int64, float64[:, ::1])")
def jacobian_entry(B, q, link, frame, J):
    """Jacobians J (N·6, nv) of N states; False if an input is invalid or J not finite."""
    nq = size_q(B)
    nv = size_v(B)
    states = J.shape[0] // 6
    if not positions_valid(B, q, states):
        return False
    flat = J.reshape(-1)
    for s in range(states):
        jacobian_recursion(B, q, s * nq, link, frame, flat, s * 6 * nv)
    return all_finite(flat)


ONE_STATE.takes(lambda nodes, columns, nv: SIZE * nodes)


_poses = door("forward_kinematics", Call(poses_entry, "B q W >", lambda model: [(len(model.body_names), 4, 4)]))
_velocities, _accelerations = (
    door(name, Call(motions_entry, f"B q v {a} ={order} W >", lambda model: [(len(model.body_names), 6)]))
    for order, name, a in ((1, "body_velocities", "v"), (2, "body_accelerations", "a")))


def forward_kinematics(model: RobotModel, q: ArrayLike) -> Array:
    """Poses (nb, 4, 4) or (N, nb, 4, 4) of all links, world from body, in the order of `model.body_names`.

        >>> model = rbd.sample("two_link")
        >>> rbd.forward_kinematics(model, [0.0, 0.0])[-1, :3, 3].round(3)    # position of the last link, m
        array([ 0.,  0., -1.])
    """
    if (poses := _poses(model, q)) is not None:
        return poses    # type: ignore[no-any-return]
    inputs = shaped(model, positions={"q": q})
    out = inputs.empty(len(model.body_names), 4, 4)
    if not poses_entry.call(model._block, *inputs.flat, model._work, out.reshape(-1, 4, 4)):
        inputs.refuse(poses=out)
    return out


def body_velocities(model: RobotModel, q: ArrayLike, v: ArrayLike) -> Array:
    """Body twists V (nb, 6) or (N, nb, 6): (ω, v) of each link in its own frame, K eq. 37.

        >>> model = rbd.sample("two_link")
        >>> rbd.body_velocities(model, [0.0, 0.0], [1.0, 0.0])[-1].round(3)
        array([ 0.,  1.,  0., -1.,  0.,  0.])
    """
    if (velocities := _velocities(model, q, v)) is not None:
        return velocities    # type: ignore[no-any-return]
    return _motions(model, q, v, v, 1)


def body_accelerations(model: RobotModel, q: ArrayLike, v: ArrayLike, a: ArrayLike) -> Array:
    """Derivatives V̇ (nb, 6) or (N, nb, 6) of the components of the body twists, without gravity, K eq. 41.

    The acceleration of a link's origin in link axes is `V̇[3:] + ω × V[3:]`.

        >>> model = rbd.sample("two_link")
        >>> rbd.body_accelerations(model, [0.0, 0.0], [1.0, 0.0], [0.0, 0.0])[-1].round(3)
        array([0., 0., 0., 0., 0., 0.])
    """
    if (accelerations := _accelerations(model, q, v, a)) is not None:
        return accelerations    # type: ignore[no-any-return]
    return _motions(model, q, v, a, 2)


def _motions(model: RobotModel, q: ArrayLike, v: ArrayLike, a: ArrayLike, order: int) -> Array:
    inputs = shaped(model, positions={"q": q}, rates={"v": v, "a": a})
    out = inputs.empty(len(model.body_names), 6)
    if not motions_entry.call(model._block, *inputs.flat, order, model._work, out.reshape(-1, 6)):
        inputs.refuse(**{"velocities" if order == 1 else "accelerations": out})
    return out


FRAMES = {"body": 0, "world": 1, "aligned": 2}


class _Jacobians(dict[str, dict[str, Way]]):
    """Direct calls of a model by link and frame."""

    def __init__(self, model: RobotModel) -> None:
        self._model = weakref.proxy(model)

    def __missing__(self, body: str) -> dict[str, Way]:
        link = self._model._body_by_name[body]
        self[body] = ways = {frame: Call(jacobian_entry, f"B q ={link} ={choice} >",
                                         lambda model: [(6, model.nv)]).way(self._model)
                             for frame, choice in FRAMES.items()}
        return ways


_jacobian = door("jacobian", _Jacobians)


def jacobian(model: RobotModel, q: ArrayLike, body: str, frame: str = "body") -> Array:
    """Jacobian (6, nv) or (N, 6, nv) of a link, angular rows first: twist = J v.

    frame "body": body twist, link axes; "world": spatial twist, world axes, about the world's origin; "aligned":
    velocity of the link's origin in world axes.

        >>> model = rbd.sample("two_link")
        >>> rbd.jacobian(model, [0.0, 0.0], "tip", "world").shape
        (6, 2)
    """
    if (J := _jacobian(model, q, body, frame)) is not None:
        return J    # type: ignore[no-any-return]
    choice = FRAMES.get(frame)
    if choice is None:
        raise RbdError(f"frame is {shown(frame)}, expected one of {', '.join(FRAMES)}")
    inputs = shaped(model, positions={"q": q})
    index = model.body_index(body)
    J = inputs.empty(6, model.nv)
    if not jacobian_entry.call(model._block, *inputs.flat, index, choice, J.reshape(inputs.count * 6, model.nv)):
        inputs.refuse(jacobian=J)
    return J
