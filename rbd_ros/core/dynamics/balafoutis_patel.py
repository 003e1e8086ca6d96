"""Inverse dynamics after Balafoutis and Patel and its partial derivatives by q, v, a: G.

For trees of revolute, prismatic and helical steps (universal, planar, Euler joints are chains of them), in NumPy, as an
independent method; for all kinds of joints: `derivatives/balafoutis_patel.py`, `motion/effort_energy.py`. G's partials
are one forward and one backward recursion, differentiated in 3 nv directions at once: `d` below has shape (…, 3 nv), by
q, then v, then a. Corrections of G's text, see docs/errata.md: gravity at the base is −g; partials of accelerations are
partials of r̈, s̈; the leaf's moment arm is r_{i,i}; the partial of gravity at the root joint is included.
The recursions work on arrays with 1 + 3 nv columns: value, then partials.
"""
from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..errors import RbdError
from ..lie import so3
from ..model import block
from ..model.inertia import Array
from ..model.joints import Primitive
from ..model.robot_model import RobotModel
from ..model.state import states


class Partials(NamedTuple):
    """`effort` (nv,) and its partials by `q`, `v`, `a`, (nv, nv) each."""

    effort: Array
    q: Array
    v: Array
    a: Array


def times(a: Array, b: Array, operation: str) -> Array:
    """Product of two arrays with the column axis last, by the product rule. operation: einsum without that axis."""
    first, second, out = operation.replace("->", ",").split(",")
    result = np.einsum(f"{first}z,{second}->{out}z", a, b[..., 0])
    result[..., 1:] += np.einsum(f"{first},{second}z->{out}z", a[..., 0], b[..., 1:])
    return np.asarray(result)


def applied(A: Array, x: Array) -> Array:
    return times(A, x, "ij,j->i")


def applied_back(A: Array, x: Array) -> Array:
    return times(A, x, "ji,j->i")


_HAT = np.array([so3.hat(e) for e in np.eye(3)])    # _HAT[k] = ẽ_k


def dual(x: Array) -> Array:
    """G's dual: vector → skew matrix."""
    return np.einsum("kz,kij->ijz", x, _HAT)


def crossed(a: Array, b: Array) -> Array:
    return applied(dual(a), b)


def turning_and_sliding(row: Array) -> tuple[float, float]:
    """Rotation about and translation along z per unit of the node's coordinate."""
    S = Primitive(int(row[block.TYPE]), pitch=float(row[block.PITCH])).screw()
    return float(S[2]), float(S[5])


def balafoutis_patel(model: RobotModel, q: ArrayLike, v: ArrayLike, a: ArrayLike) -> Partials:
    """Efforts of one state and their partial derivatives, O(n · nv): G. Rotor inertia included.

    q, v, a as in `inverse_dynamics`. Raises `RbdError` for wrong input and for spherical, exponential or floating
    joints, which G does not cover.
    """
    inputs = states(model, positions={"q": q}, rates={"v": v, "a": a})
    rows = model._node_rows
    if inputs.batch is not None or not all(kind.screw for _, kind in model._kinds):
        raise RbdError(f"model '{model.name}': the Balafoutis–Patel recursion takes one state of a model with "
                       "revolute, prismatic and helical steps only")
    nv = model.nv
    columns = 1 + 3 * nv
    coordinates = np.zeros((3, nv, columns))    # q, q̇, q̈ and their partials
    for kind, array in enumerate(inputs.arrays):
        coordinates[kind, :, 0] = array
        coordinates[kind, np.arange(nv), 1 + kind * nv + np.arange(nv)] = 1.0
    z = np.array([0.0, 0.0, 1.0])

    def constant(x: Array) -> Array:
        out = np.zeros((*x.shape, columns))
        out[..., 0] = x
        return out

    zero = constant(np.zeros(3))
    record: list[tuple[Array, ...]] = []
    for row in rows:
        first, ratio = int(row[block.IV]), row[block.RATIO]
        turns, slides = turning_and_sliding(row)
        position, rate, acceleration = (ratio * x[first] for x in coordinates)
        position = position + np.eye(columns)[0] * row[block.OFFSET]
        B = row[block.ROTATION:block.ROTATION + 9].reshape(3, 3)
        turn = so3.exp(turns * position[0] * z)
        A = np.einsum("ij,z->ijz", B @ turn @ _HAT[2] * turns, position)
        A[..., 0] = B @ turn
        s = constant(row[block.POSITION:block.POSITION + 3]) + np.outer(slides * (B @ z), position)    # o_i- to o_i
        axis, slide = np.outer(turns * z, rate), np.outer(slides * z, rate)
        up = int(row[block.PARENT])
        if up < 0:    # base conditions, with gravity as acceleration −g
            omega, omega_dot, s_ddot, Omega = zero, zero, constant(-np.asarray(model.gravity)), dual(zero)
        else:
            omega, omega_dot, s_ddot, Omega = record[up][:4]
        s_ddot = applied_back(A, s_ddot + applied(Omega, s))
        above = applied_back(A, omega)
        omega = above + axis
        omega_dot = applied_back(A, omega_dot) + crossed(above, axis) + np.outer(turns * z, acceleration)
        s_ddot = s_ddot + np.outer(slides * z, acceleration) + 2.0 * crossed(above, slide)
        Omega = dual(omega_dot) + times(dual(omega), dual(omega), "ij,jk->ik")
        m = row[block.MASS]
        moment = row[block.MOMENT:block.MOMENT + 3]
        r = moment / m if m > 0.0 else 0.0 * moment    # o_i to c_i
        I = np.zeros((3, 3))
        I[np.triu_indices(3)] = row[block.INERTIA:block.INERTIA + 6]
        I = I + np.triu(I, 1).T + m * so3.hat(r) @ so3.hat(r)    # about c_i
        J = 0.5 * np.trace(I) * np.eye(3) - I
        r_ddot = applied(Omega, constant(r)) + s_ddot
        F = m * r_ddot
        OJ = np.einsum("ijz,jk->ikz", Omega, J)
        skew = OJ - OJ.transpose(1, 0, 2)
        M = np.array([skew[2, 1], skew[0, 2], skew[1, 0]])
        record.append((omega, omega_dot, s_ddot, Omega, A, s, F, M + np.einsum("ij,jz->iz", so3.hat(r), F)))
    forces = [entry[6] for entry in record]
    moments = [entry[7] for entry in record]
    effort = np.zeros((nv, columns))
    for i in range(len(rows) - 1, -1, -1):
        row = rows[i]
        first, ratio, up = int(row[block.IV]), row[block.RATIO], int(row[block.PARENT])
        f, eta = forces[i], moments[i]
        turns, slides = turning_and_sliding(row)
        effort[first] += ratio * (turns * eta[2] + slides * f[2])
        effort[first] += row[block.ARMATURE] * coordinates[2, first]
        if up >= 0:
            A, s = record[i][4:6]
            f = applied(A, f)
            forces[up] = forces[up] + f
            moments[up] = moments[up] + applied(A, eta) + crossed(s, f)
    return Partials(effort[:, 0], *(effort[:, 1 + kind * nv:1 + (kind + 1) * nv] for kind in range(3)))
