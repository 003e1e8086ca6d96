"""The inertial regressor: inverse dynamics is linear in ten numbers per body, `τ = Y π` (K Table 5 for p = π_k).

Per body, in its link frame about that frame's origin: mass m, first moment m c (3), and inertia xx, xy, yy, xz, yz, zz.
"""
from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ..compile import UNSUITED, entry, kernel
from ..dynamics.inverse import _ACCEL, _ALPHA, _OMEGA, _P, _R, SIZE, inverse_dynamics_recursion
from ..lie.spatial import add, cross, rotate, rotate_back
from ..model.block import (
    IQ, IV, LINK, LINK_NODE, LINK_POSITION, LINK_ROTATION, LINK_START, LINKS, NODES, NQ, NV,
    matrix, node, parent, positions_valid, project, rates_valid, vector,
)
from ..model.inertia import Array
from ..model.robot_model import RobotModel
from ..model.state import shaped

PARAMETERS = 10


@kernel
def unit(c, z):
    return (z + 1.0 if c == 0 else z, z + 1.0 if c == 1 else z, z + 1.0 if c == 2 else z)


@kernel
def inertia_column(c, x, z):
    """`I x` for the inertia whose entry c of xx, xy, yy, xz, yz, zz is one."""
    if c == 0:
        return (x[0], z, z)
    if c == 1:
        return (x[1], x[0], z)
    if c == 2:
        return (z, x[1], z)
    if c == 3:
        return (x[2], z, x[0])
    if c == 4:
        return (z, x[2], x[1])
    return (z, z, x[2])


@kernel
def parameter_wrench(c, omega, alpha, accel):
    """Moment and force that parameter c of a body with this motion takes, about the origin of its frame."""
    z = 0.0 * omega[0]
    if c == 0:
        return (z, z, z), accel
    if c <= 3:
        e = unit(c - 1, z)
        return cross(e, accel), add(cross(alpha, e), cross(omega, cross(omega, e)))
    return add(inertia_column(c - 4, alpha, z), cross(omega, inertia_column(c - 4, omega, z))), (z, z, z)


@kernel
def regressor_rows(M, q, k, W, out, at):
    """From the motion in W: efforts per parameter, (10 · links) × nv to out[at:]."""
    nv = int(M[NV])
    for i in range(int(M[LINKS])):
        o = int(M[LINK_START]) + LINK * i
        n = int(M[o + LINK_NODE])
        if n < 0:
            continue
        E = matrix(M, o + LINK_ROTATION)
        r = vector(M, o + LINK_POSITION)
        w = SIZE * n
        omega = vector(W, w + _OMEGA)
        alpha = vector(W, w + _ALPHA)
        accel = add(vector(W, w + _ACCEL), add(cross(alpha, r), cross(omega, cross(omega, r))))
        omega = rotate_back(E, omega)
        alpha = rotate_back(E, alpha)
        accel = rotate_back(E, accel)
        for c in range(PARAMETERS):
            N, F = parameter_wrench(c, omega, alpha, accel)
            F = rotate(E, F)
            N = add(rotate(E, N), cross(r, F))
            row = at + (PARAMETERS * i + c) * nv
            j = n
            while j >= 0:
                oj = node(j)
                project(M, oj, q, k + int(M[oj + IQ]), N, F, out, row + int(M[oj + IV]))
                R = matrix(W, SIZE * j + _R)
                F = rotate(R, F)
                N = add(rotate(R, N), cross(vector(W, SIZE * j + _P), F))
                j = parent(M, oj)


@entry("boolean(float64[::1], float64[::1], float64[::1], float64[::1], int64, float64[::1])", nogil=True)
def regressor_entry(M, q, v, a, states, out):
    """This many states, checked; out flat, zero at first. False where the input is not what the model takes."""
    if not (positions_valid(M, q, states) and rates_valid(M, v, states) and rates_valid(M, a, states)):
        return False
    nv = int(M[NV])
    W = np.empty(SIZE * int(M[NODES]))
    tau = np.empty(v.shape[0])
    for s in range(states):
        inverse_dynamics_recursion(M, q, s * int(M[NQ]), v, a, s * nv, W[:0], 0, W, tau)
        regressor_rows(M, q, s * int(M[NQ]), W, out, s * PARAMETERS * int(M[LINKS]) * nv)
    return True


def inertial_regressor(model: RobotModel, q: ArrayLike, v: ArrayLike, a: ArrayLike) -> Array:
    """Y (nv, 10·nb) or (N, nv, 10·nb) with `inverse_dynamics(model, q, v, a) = Y π + armature · a`, to which rotors of
    mimic joints would add theirs, by the square of the ratio.

    π are `model.inertial_parameters`, ten per body in the order of `model.body_names`: m, m c (x, y, z), and inertia
    xx, xy, yy, xz, yz, zz about the origin of the link's frame, in its axes (K Table 5 with ∂I/∂p; Pinocchio's order).
    Bodies fixed to the world have columns of zeros. q (nq,) or (N, nq), v, a (nv,) or (N, nv); errors as of
    `inverse_dynamics`. Y is the derivative of the efforts by π, and exact: they are linear in it.
    """
    try:
        out = np.zeros((PARAMETERS * len(model.body_names), model.nv))
        if regressor_entry.call(model._block, q, v, a, 1, out.reshape(-1)):
            return out.T
    except UNSUITED:
        pass    # not float64 arrays of one state: looked at below
    given = shaped(model, q=q, v=v, a=a)
    out = given.empty(PARAMETERS * len(model.body_names), model.nv)
    out[:] = 0.0
    if not regressor_entry.call(model._block, *given.flat, given.count, out.reshape(-1)):
        given.check_values()
    return np.swapaxes(out, -1, -2)
