"""Constraints at a state: f, A, Ȧq̇; contacts anchored at their present poses."""
from __future__ import annotations

import dataclasses
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ...compiled.entry import entry
from ...errors import RbdError, warn
from ...model.block import all_finite, integer, node_count, rates_valid, size_q, size_v
from ...model.configuration import positions_valid
from ...model.constraint_block import ROWS
from ...model.constraints import ConstraintSet, FixedContact, bound_to
from ...model.inertia import Array
from ...model.robot_model import RobotModel
from ...model.state import shaped, states
from ..kinematics import _ACCEL, _ALPHA, _OMEGA, SIZE, forward_kinematics, node_motion
from .given import given_rows
from .rows import Motion, constraint_rows

GAP = 1e-3    # m, rad: above the errors left by Baumgarte stabilisation and projection


@entry("boolean(float64[::1], float64[::1], float64[::1], float64[::1], float64[::1], float64[::1], int64, int64, "
       "float64[::1], float64[::1], float64[::1])")
def constraint_rows_entry(B, C, q, v, a, user, states, order, A, f, b):
    """f (order 0), A (1), A q̈ + Ȧq̇ (2) of `states` states, flat; user: the users' A, Ȧq̇, f. False if invalid."""
    nq = size_q(B)
    nv = size_v(B)
    if not (positions_valid(B, q, states) and rates_valid(B, v, states) and rates_valid(B, a, states)):
        return False
    rows = integer(C, ROWS)
    W = np.empty(SIZE * node_count(B), dtype=q.dtype)
    size = user.shape[0] // max(states, 1)
    for s in range(states):
        node_motion(B, q, s * nq, v, a, s * nv, order, True, W)
        constraint_rows(B, C, (q, s * nq, v, s * nv, a, s * nv), Motion(W, SIZE, W, SIZE, _OMEGA, _ALPHA, _ACCEL, 0.0),
                        (user, s * size), order, (A, f, b, s * rows))
    return all_finite(f) and (order < 1 or all_finite(A)) and (order < 2 or all_finite(b))


class ConstraintRows(NamedTuple):
    """`value` f (m,), `jacobian` A (m, nv), `acceleration` A q̈ + Ȧq̇ (m,); a batch adds an axis."""

    value: Array
    jacobian: Array
    acceleration: Array


def evaluate(model: RobotModel, constraints: ConstraintSet, q: Array, v: Array, a: Array,
             order: int = 2) -> ConstraintRows:
    """f (order 0), A (1), A q̈ + Ȧq̇ (2) at states of valid shape; higher orders than `order` are undefined."""
    bound = bound_to(model, constraints)
    m, lead = bound.size, q.shape[:-1]
    out = ConstraintRows(np.empty((*lead, m)), np.empty((*lead, m, model.nv)), np.empty((*lead, m)))
    if not constraint_rows_entry.call(model._block, bound.block, q.reshape(-1), v.reshape(-1), a.reshape(-1),
                                      given_rows(bound, q, v), int(np.prod(lead)), order, out.jacobian.reshape(-1),
                                      out.value.reshape(-1), out.acceleration.reshape(-1)):
        inputs = shaped(model, positions={"q": q}, rates={"v": v, "a": a})
        inputs.refuse(**dict(list(out._asdict().items())[:order + 1]))
    return out


def warn_of_gap(model: RobotModel, constraints: ConstraintSet, q: Array, value: Array | None = None) -> None:
    """`RbdWarning`, once per set and only in its first calls, for a state off the constraints: constrained dynamics is
    correct there, but no mechanism reaches the state. value: f(q), if known.
    """
    constraints.unseen -= 1
    v = model._zeros if q.ndim == 1 else np.zeros((len(q), model.nv))
    f = np.abs(evaluate(model, constraints, q, v, v, 0).value if value is None else value) * constraints.holonomic
    if f.size and f.max() > GAP:
        constraints.unseen = 0
        index = np.unravel_index(int(np.argmax(f)), f.shape)
        where = f"state {index[0]}: " if f.ndim == 2 else ""
        warn(f"constraints: {where}the state does not meet them: {constraints.labels[index[-1]]} is off by "
             f"{f.max():.3g} (m or rad). `project(model, constraints, q, v)` is a state that does, `baumgarte=` leads "
             "there. Said once per ConstraintSet")


def constraint_values(model: RobotModel, constraints: ConstraintSet, q: ArrayLike) -> Array:
    """f(q) (m,) or (N, m): m, and rad for small angles (see the constraint's class); zero on the manifold.

        >>> model = rbd.sample("five_bar")
        >>> loop = rbd.sample_constraints("five_bar", model)
        >>> rbd.constraint_values(model, loop, np.zeros(5)).round(12)
        array([-0.,  0.,  0.])
    """
    q, v = states(model, positions={"q": q}, rates={"v": getattr(model, "_zeros", ())}).arrays
    return evaluate(model, constraints, q, v, v, 0).value


def constraint_jacobian(model: RobotModel, constraints: ConstraintSet, q: ArrayLike) -> Array:
    """A(q) = ∂f/∂q (m, nv) or (N, m, nv) on the velocity space: ḟ = A v (K eq. 55).

        >>> model = rbd.sample("five_bar")
        >>> loop = rbd.sample_constraints("five_bar", model)
        >>> rbd.constraint_jacobian(model, loop, np.zeros(5)).shape
        (3, 5)
    """
    q, v = states(model, positions={"q": q}, rates={"v": getattr(model, "_zeros", ())}).arrays
    return evaluate(model, constraints, q, v, v, 1).jacobian


def constraint_bias(model: RobotModel, constraints: ConstraintSet, q: ArrayLike, v: ArrayLike) -> Array:
    """Ȧq̇ (m,) or (N, m): f̈ = A q̈ + Ȧq̇ (K §3.2).

        >>> model = rbd.sample("five_bar")
        >>> loop = rbd.sample_constraints("five_bar", model)
        >>> rbd.constraint_bias(model, loop, np.zeros(5), np.zeros(5)).round(12)
        array([-0.,  0.,  0.])
    """
    q, v, a = states(model, positions={"q": q}, rates={"v": v, "a": getattr(model, "_zeros", ())}).arrays
    return evaluate(model, constraints, q, v, a, 2).acceleration


def anchored(model: RobotModel, constraints: ConstraintSet, q: ArrayLike) -> ConstraintSet:
    """The same constraints, with every `FixedContact` at the pose of its link's frame at q (nq,).

    A contact of kind "surface" takes position and axes, one of kind "point" the position only.

        >>> model, foot = rbd.sample("two_link"), rbd.ConstraintSet([rbd.FixedContact("tip", kind="point")])
        >>> rbd.constraint_values(model, rbd.anchored(model, foot, [0.3, 0.5]), [0.3, 0.5]).round(12)
        array([0., 0., 0.])
    """
    bound_to(model, constraints)
    inputs = states(model, positions={"q": q})
    if inputs.batch is not None:
        raise RbdError(f"contacts are anchored at one state: q has shape {np.shape(q)}, expected ({model.nq},)")
    poses = forward_kinematics(model, inputs.arrays[0])
    new = []
    for name, item in zip(constraints.names, constraints.constraints, strict=True):
        if isinstance(item, FixedContact):
            world = poses[model.body_index(item.link)] @ np.asarray(item.frame)
            if item.kind == "point":
                world[:3, :3] = np.asarray(item.world)[:3, :3]
            item = dataclasses.replace(item, world=world)
        new.append(dataclasses.replace(item, name=name))
    return ConstraintSet(new)
