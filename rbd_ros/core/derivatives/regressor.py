"""The inertial regressor: inverse dynamics is linear in ten numbers per body, `τ = Y π` (K Table 5 for p = π_k).

Per body, in its link frame about that frame's origin: mass m, first moment m c (3), and inertia xx, xy, yy, xz, yz, zz.
"""
from __future__ import annotations


from numpy.typing import ArrayLike

from ..compiled.entry import quick_entry
from ..compiled.kernel import kernel, sweep
from ..dynamics.kinematics import _ACCEL, _ALPHA, _OMEGA, _P, _R, SIZE, node_motion
from ..lie.spatial import add, compose, cross, dot, rotate, rotate_back, sub
from ..model.block import (
    GRAVITY, LINK, LINKS, LINK_NODE, LINK_POSITION, LINK_ROTATION, LINK_START, all_finite, first_position,
    first_velocity, integer, kind, matrix, node, parent, put_add, rates_valid, size_q, size_v, vector,
)
from ..model.configuration import positions_valid
from ..model.inertia import Array
from ..model.joint_kinds import column, dof
from ..model.robot_model import RobotModel
from ..model.state import shaped
from ..compiled.door import Call, door
from ..compiled.workspace import ONE_STATE

PARAMETERS = 10


@kernel
def add_row(out, to, x, u, omega, alpha, accel):
    """Add the power along the twist (x, u) of each inertial parameter's wrench, for a body with this motion."""
    out[to] += dot(u, accel)
    put_add(out, to + 1, add(add(cross(accel, x), cross(u, alpha)), cross(omega, cross(omega, u))))
    t = cross(x, omega)
    out[to + 4] += x[0] * alpha[0] + t[0] * omega[0]
    out[to + 5] += x[0] * alpha[1] + x[1] * alpha[0] + t[0] * omega[1] + t[1] * omega[0]
    out[to + 6] += x[1] * alpha[1] + t[1] * omega[1]
    out[to + 7] += x[0] * alpha[2] + x[2] * alpha[0] + t[0] * omega[2] + t[2] * omega[0]
    out[to + 8] += x[1] * alpha[2] + x[2] * alpha[1] + t[1] * omega[2] + t[2] * omega[1]
    out[to + 9] += x[2] * alpha[2] + t[2] * omega[2]


@sweep
def regressor_rows(B, q, k, W, out, to):
    """Efforts per parameter, nv × (10 · links) to out[to:], from the motion in W."""
    links = integer(B, LINKS)
    for i in range(size_v(B) * PARAMETERS * links):
        out[to + i] = 0.0
    for i in range(links):
        o = integer(B, LINK_START) + LINK * i
        n = integer(B, o + LINK_NODE)
        if n < 0:
            continue
        E = matrix(B, o + LINK_ROTATION)
        r = vector(B, o + LINK_POSITION)
        w = SIZE * n
        R = matrix(W, w + _R)
        omega = vector(W, w + _OMEGA)
        alpha = vector(W, w + _ALPHA)
        accel = add(vector(W, w + _ACCEL), add(cross(alpha, r), cross(omega, cross(omega, r))))
        accel = rotate_back(E, sub(accel, rotate_back(R, vector(B, GRAVITY))))
        omega = rotate_back(E, omega)
        alpha = rotate_back(E, alpha)
        p = add(vector(W, w + _P), rotate(R, r))
        E = compose(R, E)
        j = n
        while j >= 0:    # columns of S of the supporting joints, in the axes of the link
            o = node(j)
            R = matrix(W, SIZE * j + _R)
            arm = sub(p, vector(W, SIZE * j + _P))
            for c in range(dof(kind(B, o))):
                sa, sl = column(B, o, q, k + first_position(B, o), c)
                sa = rotate(R, sa)
                sl = add(rotate(R, sl), cross(sa, arm))
                add_row(out, to + ((first_velocity(B, o) + c) * links + i) * PARAMETERS, rotate_back(E, sa),
                        rotate_back(E, sl), omega, alpha, accel)
            j = parent(B, o)


@quick_entry("boolean(float64[::1], float64[::1], float64[::1], float64[::1], int64, float64[::1], float64[::1])")
def regressor_entry(B, q, v, a, states, W, out):
    """Validate and evaluate `states` states; out flat. Returns False for invalid input or a non-finite result."""
    if not (positions_valid(B, q, states) and rates_valid(B, v, states) and rates_valid(B, a, states)):
        return False
    nq = size_q(B)
    nv = size_v(B)
    for s in range(states):
        node_motion(B, q, s * nq, v, a, s * nv, 2, True, W)
        regressor_rows(B, q, s * nq, W, out, s * PARAMETERS * integer(B, LINKS) * nv)
    return all_finite(out)


ONE_STATE.takes(lambda nodes, columns, nv: SIZE * nodes)


_door = door("inertial_regressor", Call(
    regressor_entry, "B q v a =1 W >", lambda model: [(model.nv, PARAMETERS * len(model.body_names))]))


def inertial_regressor(model: RobotModel, q: ArrayLike, v: ArrayLike, a: ArrayLike) -> Array:
    """Y (nv, 10·nb) or (N, nv, 10·nb) with `inverse_dynamics(model, q, v, a) = Y π + armature · a`; rotors of mimic
    joints add their inertia times the squared ratio.

    π are `model.inertial_parameters`, ten per body in the order of `model.body_names`: m, m c (x, y, z), and inertia
    xx, xy, yy, xz, yz, zz about the origin of the link's frame, in its axes (K Table 5 with ∂I/∂p; Pinocchio's order).
    Bodies fixed to the world have columns of zeros. q (nq,) or (N, nq), v, a (nv,) or (N, nv); errors as of
    `inverse_dynamics`. Y is the derivative of the efforts by π, in which they are linear.

        >>> model = rbd.sample("two_link")
        >>> rbd.inertial_regressor(model, [0.3, 0.5], [0.0, 0.0], [1.0, 0.0]).shape
        (2, 40)
    """
    if (regressor := _door(model, q, v, a)) is not None:
        return regressor    # type: ignore[no-any-return]
    inputs = shaped(model, positions={"q": q}, rates={"v": v, "a": a})
    out = inputs.empty(model.nv, PARAMETERS * len(model.body_names))
    if not regressor_entry.call(model._block, *inputs.flat, inputs.count, model._work, out.reshape(-1)):
        inputs.refuse(regressor=out)
    return out
