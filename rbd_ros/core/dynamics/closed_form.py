"""Equations of motion and their time derivatives in closed form: M eq. 2–57, by matrices of all bodies.

For trees of all joints. Dense, O(n²) to O(n³), in NumPy: for insight and verification of the recursions, not for
control rates. Each quantity is a list over the order of differentiation, by the Leibniz rule from M's first derivatives

    Ȧ = A a − A a A  (eq. 19),    J = A X  (eq. 9),    U̇ = −b U  (after eq. 36),

which hold for joints of several coordinates, unlike M's shortcut J̇ = −A a J (eq. 12, from a X = 0). For exponential
coordinates and cams X = S(q) has derivatives as well: those of `joint_kinds`.
"""
from __future__ import annotations

from math import comb, factorial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..compiled.entry import entry
from ..errors import RbdError
from ..lie import se3, so3
from ..lie.spatial import scale, unit
from ..model import block
from ..model.block import integer, node
from ..model.inertia import Array
from ..model.joint_kinds import CAM, series_dual, series_rate, series_size
from ..model.joints import Primitive
from ..model.robot_model import RobotModel
from ..model.state import node_wrenches, numbered, states


class ClosedForm(NamedTuple):
    """Terms by order of differentiation 0 … N (first axis; second axis of a batch): `mass`, `coriolis` (M eq. 20, 22),
    `skew_coriolis` (C̄, M eq. 54) (N + 1, nv, nv); `gravity`, `external`, `effort` (N + 1, nv); and to order N + 1 the
    factors `A` (N + 2, 6n, 6n) and `J` (N + 2, 6n, nv) of n nodes. First derivatives are also `mass_dot`, …, second
    ones `mass_ddot`, …. SI units.
    """

    mass: Array
    coriolis: Array
    skew_coriolis: Array
    gravity: Array
    external: Array
    effort: Array
    A: Array
    J: Array

    @property
    def mass_dot(self) -> Array:
        """Ṁ (nv, nv), M eq. 29, 30."""
        return _of_order(self.mass, 1, 3)

    @property
    def mass_ddot(self) -> Array:
        """M̈ (nv, nv), M eq. 40–44."""
        return _of_order(self.mass, 2, 3)

    @property
    def coriolis_dot(self) -> Array:
        """Ċ (nv, nv), M eq. 31–35."""
        return _of_order(self.coriolis, 1, 3)

    @property
    def coriolis_ddot(self) -> Array:
        """C̈ (nv, nv), M eq. 45–51."""
        return _of_order(self.coriolis, 2, 3)

    @property
    def gravity_dot(self) -> Array:
        """Q̇_grav (nv,), M eq. 36."""
        return _of_order(self.gravity, 1, 2)

    @property
    def gravity_ddot(self) -> Array:
        """Q̈_grav (nv,), M eq. 52."""
        return _of_order(self.gravity, 2, 2)

    @property
    def external_dot(self) -> Array:
        """Q̇_ext (nv,), M eq. 37."""
        return _of_order(self.external, 1, 2)

    @property
    def external_ddot(self) -> Array:
        """Q̈_ext (nv,), M eq. 53."""
        return _of_order(self.external, 2, 2)

    @property
    def effort_dot(self) -> Array:
        """Q̇ = τ̇ (nv,), M eq. 28."""
        return _of_order(self.effort, 1, 2)

    @property
    def effort_ddot(self) -> Array:
        """Q̈ = τ̈ (nv,), M eq. 38."""
        return _of_order(self.effort, 2, 2)


def _of_order(terms: Array, order: int, axes: int) -> Array:
    """Derivative `order` of terms whose last `axes` axes begin with the order of differentiation."""
    if terms.shape[-axes] <= order:
        raise RbdError(f"the closed form was asked for to order {terms.shape[-axes] - 1}: order {order} needs "
                       f"{order} time derivatives of the acceleration")
    derivative: Array = np.moveaxis(terms, -axes, 0)[order]
    return derivative


def product(*factors: list[Array]) -> list[Array]:
    """Derivatives of a product from those of its factors: the Leibniz rule."""
    first, *others = factors
    if not others:
        return first
    second = product(*others)
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


def node_step(row: Array, B: Array | None = None) -> Primitive:
    """The joint of a node, in node axes; for a cam with its polynomial from the packed model B."""
    kind = int(row[block.TYPE])
    if kind != CAM or B is None:
        return Primitive(kind, pitch=float(row[block.PITCH]))
    offset = int(row[block.PITCH])
    return Primitive(kind, advance=tuple(B[offset + 1:offset + 1 + int(B[offset])].tolist()))


def node_pose(row: Array, q: Array, B: Array | None = None) -> Array:
    """Pose (4, 4) of a node in its parent, B exp(X q) (M eq. 3), from its record and all positions."""
    first, step = int(row[block.IQ]), node_step(row, B)
    q = row[block.RATIO] * q[first:first + 1] + row[block.OFFSET] if step.nq == 1 else q[first:first + step.nq]
    R, p = step.pose(q)
    home = se3.from_rotation(row[block.ROTATION:block.ROTATION + 9].reshape(3, 3),
                             row[block.POSITION:block.POSITION + 3])
    return home @ se3.from_rotation(R, p)


def screw(row: Array) -> Array:
    """S (6, number of coordinates) of a node: the X of M eq. 4, 5; constant."""
    step = node_step(row)
    return row[block.RATIO] * step.screw()[:, None] if step.kind.screw else np.eye(6, step.nv)


@entry("void(float64[::1], int64, float64[::1], float64[::1], int64, float64[:, ::1])")
def screw_series(B, i, q, v, K, out):
    """Into out[c] the Taylor coefficients 0 … K in time of row c of S(q(t)) of node i, from those of q̇ (K + 1, nv)."""
    o = node(i)
    k, j = integer(B, o + block.IQ), integer(B, o + block.IV)
    stride = v.shape[0] // (K + 1)
    C = np.zeros(series_size(B, o, K))
    count = out.shape[1] // (K + 1)
    for order in range(K + 1):
        series_rate(B, o, q, k, v, j, stride, order, K, C, 0)
    for c in range(6):
        for order in range(K + 1):
            on = 1.0 if order == 0 else 0.0
            n, f = scale(on, unit(c, 1.0)), scale(on, unit(c - 3, 1.0))
            series_dual(B, o, n, f, order, K, C, 0, out[c], count * order)


def screws(B: Array, i: int, row: Array, q: Array, rates: list[Array]) -> list[Array]:
    """S (6, number of coordinates) of node i and its time derivatives to order `len(rates) − 1`."""
    step = node_step(row)
    if not step.kind.varies:
        return constant(screw(row), len(rates))
    K = len(rates) - 1
    scales = np.array([factorial(k) for k in range(K + 1)], dtype=float)
    out = np.zeros((6, (K + 1) * step.nv))
    screw_series(B, i, q, np.concatenate([rate / n for rate, n in zip(rates, scales, strict=True)]), K, out)
    return list(np.moveaxis(out.reshape(6, K + 1, step.nv), 1, 0) * scales[:, None, None])


def node_inertia(row: Array) -> Array:
    """M_i (6, 6), M eq. 24."""
    I = np.zeros((3, 3))
    I[np.triu_indices(3)] = row[block.INERTIA:block.INERTIA + 6]
    c = so3.hat(row[block.MOMENT:block.MOMENT + 3])
    return np.block([[I + np.triu(I, 1).T, c], [-c, row[block.MASS] * np.eye(3)]])


def closed_form(model: RobotModel, q: ArrayLike, v: ArrayLike, a: ArrayLike, *higher: ArrayLike,
                external_wrenches: Any = None) -> ClosedForm:
    """All terms of the equations of motion and their time derivatives up to order N = len(higher): M eq. 2–57.

    Arguments as in `inverse_dynamics_time_derivatives`, one state or a batch: q, v, a, jerk, snap for order 2; external
    wrenches a tuple or list W, Ẇ, …. Effort of order k is Σ over M⁽ʲ⁾, C⁽ʲ⁾, gravity and wrenches (M eq. 1, 28, 38),
    rotor inertia included. Raises `RbdError` for wrong input.

        >>> model = rbd.sample("two_link")
        >>> rbd.closed_form(model, [0.3, 0.5], [0.0, 0.0], [1.0, 0.0]).mass.shape
        (1, 2, 2)
    """
    inputs = states(model, positions={"q": q}, rates={"v": v, "a": a, **numbered(higher)})
    wrenches = external_wrenches if isinstance(external_wrenches, (list, tuple)) else (external_wrenches,)
    size = max(1, 6 * int(inputs.model._block[block.NODES]))
    loads = [node_wrenches(model, wrench, inputs.batch).reshape(-1, size) for wrench in wrenches]
    if inputs.batch is None:
        terms = [np.stack(term) for term in _terms(model, list(inputs.arrays),
                                                   [load[0] for load in loads if load.size])]
    else:
        batch = [_terms(model, [x[i] for x in inputs.arrays], [load[i] for load in loads if load.size])
                 for i in range(inputs.batch)]
        at_rest = [model.neutral(), *np.zeros((len(inputs.arrays) - 1, model.nv))]
        shapes = _terms(model, at_rest, []) if not batch else ()
        terms = ([np.array([terms[k] for terms in batch]) for k in range(len(ClosedForm._fields))] if batch else
                 [np.empty((0, len(term), *term[0].shape)) for term in shapes])
    return ClosedForm(*inputs.finite(**dict(zip(ClosedForm._fields, terms, strict=True))))


def _terms(model: RobotModel, state: list[Array], loads: list[Array]) -> tuple[list[Array], ...]:
    """Fields of `ClosedForm` for one state, as lists over orders."""
    rows, B = model._node_rows, model._block
    x, *rates = state
    n, count = len(rows), len(rates) - 1
    Xs = [np.zeros((6 * n, model.nv)) for _ in rates]
    A = np.eye(6 * n)
    poses: list[Array] = []
    for i, row in enumerate(rows):
        first, up = int(row[block.IV]), int(row[block.PARENT])
        for whole, S in zip(Xs, screws(B, i, row, x, rates), strict=True):
            whole[6 * i:6 * i + 6, first:first + S.shape[1]] = S
        T = node_pose(row, x, B)
        poses.append(T if up < 0 else poses[up] @ T)
        if up >= 0:    # eq. 10, 16
            A[6 * i:6 * i + 6] += se3.Ad_inv(T) @ A[6 * up:6 * up + 6]

    def brackets(vectors: Array) -> Array:
        return block_diagonal([se3.ad(part) for part in vectors.reshape(n, 6)])

    columns = [rate[:, None] for rate in rates]
    joint = [brackets(term) for term in product(Xs[:count], columns[:count])]            # a, eq. 13
    As = [A]
    for k in range(count):                                                               # eq. 19, k times more
        As.append(product(As[:k + 1], joint[:k + 1])[k] - product(As[:k + 1], joint[:k + 1], As[:k + 1])[k])
    J = product(As, Xs)                                                                  # eq. 9
    b = [brackets(term) for term in product(J[:count], columns[:count])]                 # eq. 8, 15, 23
    inertia = constant(block_diagonal([node_inertia(row) for row in rows]), count)       # eq. 21
    rotors = np.zeros((model.nv, model.nv))
    for row in rows:
        for c in range(node_step(row).nv):
            rotors[int(row[block.IV]) + c, int(row[block.IV]) + c] += row[block.ARMATURE + c]
    Jt = transposed(J[:count])
    mass = product(Jt, inertia, J[:count])                                               # eq. 20, 29, 40
    moving = product(Jt, inertia, J[1:])                                                 # −Jᵀ M A a J
    turning = product(Jt, transposed(b), inertia, J[:count])                             # Jᵀ bᵀ M J
    coriolis = [m - t for m, t in zip(moving, turning, strict=True)]       # eq. 22, 31, 45
    skew = [m + t.T for m, t in zip(coriolis, turning, strict=True)]       # eq. 54
    mass[0] = mass[0] + rotors
    U = [np.concatenate([se3.Ad_inv(T) for T in poses]) if n else np.zeros((0, 6))]      # eq. 26
    for k in range(count - 1):
        U.append(-product(b[:k + 1], U[:k + 1])[k])
    G = -np.concatenate([np.zeros(3), model.gravity])
    gravity = [term @ G for term in product(Jt, inertia, U)]                             # eq. 25, 36, 52
    W = [(-loads[k] if k < len(loads) else np.zeros(6 * n))[:, None] for k in range(count)]
    external = [term[:, 0] for term in product(Jt, W)]                                   # eq. 27, 37, 53
    accelerations = product(mass, columns[1:])                                           # eq. 1, 28, 38
    velocities = product(coriolis, columns[:count])
    effort = [accelerations[k][:, 0] + velocities[k][:, 0] + gravity[k] + external[k] for k in range(count)]
    return mass, coriolis, skew, gravity, external, effort, As, J
