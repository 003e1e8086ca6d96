"""The equations of motion and their time derivatives in closed form: M eq. 2–57, by matrices over all bodies at once.

For trees of joints with constant S (not exponential coordinates). Dense, O(n²) to O(n³), in NumPy: for insight and
as a second way to every number of the recursions, not for control rates. Each quantity is a list over the order of
differentiation, made by the Leibniz rule from M's first derivatives

    Ȧ = A a − A a A  (eq. 19),    J = A X  (eq. 9),    U̇ = −b U  (after eq. 36),

which stay right for joints of several coordinates, where M's shortcut J̇ = −A a J (eq. 12, from a X = 0) is not.
"""
from __future__ import annotations

from math import comb
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..errors import RbdError
from ..lie import se3, so3
from ..model import block
from ..model.inertia import Array
from ..model.joints import Primitive
from ..model.robot_model import RobotModel
from ..model.state import node_wrenches, numbered, states


class ClosedForm(NamedTuple):
    """Lists by order of differentiation, 0 … N: `mass`, `coriolis` (M eq. 20, 22), `skew_coriolis` (C̄, M eq. 54)
    (nv, nv); `gravity`, `external`, `effort` (nv,); and the matrices they are made of: `A` (6n, 6n), `J` (6n, nv).
    """

    mass: list[Array]
    coriolis: list[Array]
    skew_coriolis: list[Array]
    gravity: list[Array]
    external: list[Array]
    effort: list[Array]
    A: list[Array]
    J: list[Array]


def product(*factors: list[Array]) -> list[Array]:
    """Derivatives of a product from those of its factors: the Leibniz rule."""
    first, *rest = factors
    if not rest:
        return first
    second = product(*rest)
    return [sum((comb(k, j) * (first[j] @ second[k - j]) for j in range(1, k + 1)), start=first[0] @ second[k])
            for k in range(min(len(first), len(second)))]


def transposed(matrices: list[Array]) -> list[Array]:
    return [matrix.T for matrix in matrices]


def constant(matrix: Array, count: int) -> list[Array]:
    return [matrix] + [np.zeros_like(matrix)] * (count - 1)


def block_diagonal(blocks: list[Array]) -> Array:
    out = np.zeros((6 * len(blocks), 6 * len(blocks)))
    for i, part in enumerate(blocks):
        out[6 * i:6 * i + 6, 6 * i:6 * i + 6] = part
    return out


def node_step(row: Array) -> Primitive:
    """The joint of a node, in the node's axes."""
    return Primitive(int(row[block.TYPE]), pitch=float(row[block.PITCH]))


def node_pose(row: Array, q: Array) -> Array:
    """Pose (4, 4) of a node in its parent, B exp(X q) (M eq. 3), from its record and all positions."""
    at, step = int(row[block.IQ]), node_step(row)
    q = row[block.RATIO] * q[at:at + 1] + row[block.OFFSET] if step.kind.screw else q[at:at + step.nq]
    R, p = step.pose(q)
    B = se3.from_rotation(row[block.ROTATION:block.ROTATION + 9].reshape(3, 3),
                          row[block.POSITION:block.POSITION + 3])
    return B @ se3.from_rotation(R, p)


def screw(row: Array) -> Array:
    """S (6, number of coordinates) of a node: the X of M eq. 4, 5; constant."""
    step = node_step(row)
    return row[block.RATIO] * step.screw()[:, None] if step.kind.screw else np.eye(6, step.nv)


def node_inertia(row: Array) -> Array:
    """M_i (6, 6), M eq. 24."""
    I = np.zeros((3, 3))
    I[np.triu_indices(3)] = row[block.INERTIA:block.INERTIA + 6]
    c = so3.hat(row[block.MOMENT:block.MOMENT + 3])
    return np.block([[I + np.triu(I, 1).T, c], [-c, row[block.MASS] * np.eye(3)]])


def closed_form(model: RobotModel, q: ArrayLike, v: ArrayLike, a: ArrayLike, *higher: ArrayLike,
                external_wrenches: Any = None) -> ClosedForm:
    """All terms of one state and their time derivatives up to order N = len(higher): M eq. 2–57.

    Arguments as in `inverse_dynamics_time_derivatives`; external wrenches a tuple or list W, Ẇ, …. Effort of order k is
    Σ over M⁽ʲ⁾, C⁽ʲ⁾, gravity and wrenches (M eq. 1, 28, 38), rotor inertia included. Raises `RbdError` for wrong input
    and for joints whose S depends on q, such as exponential coordinates.
    """
    given = states(model, positions={"q": q}, rates={"v": v, "a": a, **numbered(higher)})
    rows = model._node_rows
    if given.batch is not None or any(kind.varies for _, kind in model._kinds):
        raise RbdError(f"model '{model.name}': the closed form takes one state of a model in which no joint's "
                       "S depends on q, as it does for exponential coordinates")
    x, *rates = given.arrays
    n, count = len(rows), len(higher) + 1
    X = np.zeros((6 * n, model.nv))
    A = np.eye(6 * n)
    poses: list[Array] = []
    for i, row in enumerate(rows):
        S, at, up = screw(row), int(row[block.IV]), int(row[block.PARENT])
        X[6 * i:6 * i + 6, at:at + S.shape[1]] = S
        T = node_pose(row, x)
        poses.append(T if up < 0 else poses[up] @ T)
        if up >= 0:    # eq. 10, 16
            A[6 * i:6 * i + 6] += se3.Ad_inv(T) @ A[6 * up:6 * up + 6]

    def brackets(vectors: Array) -> Array:
        return block_diagonal([se3.ad(part) for part in vectors.reshape(n, 6)])

    joint = [brackets(X @ rate) for rate in rates]                                       # a, eq. 13
    As = [A]
    for k in range(count):                                                               # eq. 19, k times more
        As.append(product(As[:k + 1], joint[:k + 1])[k] - product(As[:k + 1], joint[:k + 1], As[:k + 1])[k])
    J = [each @ X for each in As]                                                        # eq. 9
    V = [each[:, 0] for each in product(J[:count], [rate[:, None] for rate in rates[:count]])]    # eq. 8, 15
    b = [brackets(each) for each in V]                                                   # eq. 23
    inertia = constant(block_diagonal([node_inertia(row) for row in rows]), count)       # eq. 21
    rotors = np.zeros((model.nv, model.nv))
    for row in rows:
        for c in range(node_step(row).nv):
            rotors[int(row[block.IV]) + c, int(row[block.IV]) + c] += row[block.ARMATURE + c]
    Jt = transposed(J[:count])
    mass = product(Jt, inertia, J[:count])                                               # eq. 20, 29, 40
    moving = product(Jt, inertia, J[1:])                                                 # −Jᵀ M A a J
    turning = product(Jt, transposed(b), inertia, J[:count])                             # Jᵀ bᵀ M J
    coriolis = [left - right for left, right in zip(moving, turning, strict=True)]       # eq. 22, 31, 45
    skew = [left + right.T for left, right in zip(coriolis, turning, strict=True)]       # eq. 54
    mass[0] = mass[0] + rotors
    U = [np.concatenate([se3.Ad_inv(T) for T in poses]) if n else np.zeros((0, 6))]      # eq. 26
    for k in range(count - 1):
        U.append(-product(b[:k + 1], U[:k + 1])[k])
    G = -np.concatenate([np.zeros(3), model.gravity])
    gravity = [each @ G for each in product(Jt, inertia, U)]                             # eq. 25, 36, 52
    wrenches = external_wrenches if isinstance(external_wrenches, (list, tuple)) else (external_wrenches,)
    loads = [node_wrenches(model, wrench, None) for wrench in wrenches]
    W = [(-loads[k] if k < len(loads) and loads[k].size else np.zeros(6 * n))[:, None] for k in range(count)]
    external = [each[:, 0] for each in product(Jt, W)]                                   # eq. 27, 37, 53
    accelerations = product(mass, [rate[:, None] for rate in rates[1:]])                 # eq. 1, 28, 38
    velocities = product(coriolis, [rate[:, None] for rate in rates[:count]])
    effort = [accelerations[k][:, 0] + velocities[k][:, 0] + gravity[k] + external[k] for k in range(count)]
    return ClosedForm(mass, coriolis, skew, gravity, external, effort, As, J)
