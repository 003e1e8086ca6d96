"""Wrenches of loops and contacts on the links, from the multipliers."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ...compiled.entry import entry
from ...errors import RbdError
from ...lie import se3
from ...lie.coadjoint import Ad_star_inv
from ...lie.spatial import unit
from ...model.assembly import WORLD
from ...model.block import matrix
from ...model.constraints import AXES, ConstraintSet, FixedContact, LoopClosure, bound_to
from ...model.inertia import Array
from ...model.robot_model import RobotModel
from ...model.state import real, states
from ...model.surfaces.contacts import RollingContact, SlidingContact
from ..bodies.joint_wrenches import joint_wrenches
from ..bodies.link_tree import link_wrenches
from ..contact.coordinates import closest_points
from ..kinematics import forward_kinematics
from ..turning import turned, turning_rate


@entry("void(float64[::1], float64[::1], float64[::1])")
def turning_rows_entry(R, flags, G):
    """Into G (N·9) the G of `f' = G ω` of rotation rows, by axis, for R (N·9); rows of unconstrained axes are zero."""
    for s in range(R.shape[0] // 9):
        R_s = matrix(R, 9 * s)
        count, c, u, h = turned(R_s, flags[0], flags[1], flags[2])
        for d in range(3):
            rate = turning_rate(R_s, count, c, u, h, unit(d, R[0]))
            for r in range(3):
                G[9 * s + 3 * r + d] = flags[r] * rate[r]


def constraint_wrenches(model: RobotModel, constraints: ConstraintSet, q: ArrayLike, multipliers: ArrayLike) -> Array:
    """Wrenches (nb, 6) or (N, nb, 6) of constraints with multipliers (m,) or (N, m) on the links, moment first, in the
    links' frames, about their origins: `Σ Jᵀ W = Aᵀ λ`.

    Loop closures and rolling or sliding contacts exert opposite wrenches on both bodies, fixed contacts on their link.
    Couplings, user and nonholonomic constraints are excluded: they act as efforts at joints, like motors (a wheel's or
    blade's point of contact is unknown). With the result as `external_wrenches`, functions of trees compute closed
    mechanisms. SI units. Raises `RbdError` for wrong input.

        >>> model = rbd.sample("five_bar")
        >>> loop = rbd.sample_constraints("five_bar", model)
        >>> rbd.constraint_wrenches(model, loop, np.zeros(5), [1.0, 0.0, 0.0]).shape
        (6, 6)
    """
    size = bound_to(model, constraints).size
    inputs = states(model, positions={"q": q})
    lam = real(multipliers, "multipliers", f"({size},) or (N, {size})")
    if lam.ndim not in (1, 2) or lam.shape[-1] != size or not np.isfinite(lam).all():
        raise RbdError(f"multipliers: expected ({size},) or (N, {size}) finite numbers, one per row of the constraints "
                       f"({', '.join(constraints.names)}), got shape {lam.shape}")
    q = inputs.arrays[0]
    if lam.ndim == 2 and q.ndim == 2 and len(lam) != len(q):
        raise RbdError(f"batches of different length: q has {len(q)}, multipliers has {len(lam)}")
    poses = forward_kinematics(model, q)
    lead = lam.shape[:-1] or poses.shape[:-3]
    poses = np.broadcast_to(poses, (*lead, *poses.shape[-3:]))
    out = np.zeros((*lead, len(model.body_names), 6))
    for name, item in zip(constraints.names, constraints.constraints, strict=True):
        rows = np.broadcast_to(lam, (*lead, size))[..., constraints.rows[name]]
        if isinstance(item, LoopClosure):
            first = None if item.predecessor == WORLD and WORLD not in model.body_names else item.predecessor
            _add(model, poses, out, (first, item.predecessor_frame), (item.successor, item.successor_frame), item.axes,
                 rows)
        elif isinstance(item, FixedContact):
            _add(model, poses, out, (None, item.world), (item.link, item.frame), item.rows(), rows)
        elif isinstance(item, RollingContact | SlidingContact):
            _add_contact(model, poses, out, item, name, rows)
    inputs.finite(constraint_wrenches=out)
    return out


def _add(model: RobotModel, poses: Array, out: Array, first: tuple[str | None, Any], second: tuple[str, Any],
         axes: Sequence[str], rows: Array) -> None:
    """Add the wrenches of one constraint between two frames on links (None: the world)."""
    frame_1, frame_2 = np.asarray(first[1]), np.asarray(second[1])
    i, j = (None if first[0] is None else model.body_index(first[0])), model.body_index(second[0])
    T1 = frame_1 if i is None else poses[..., i, :, :] @ frame_1
    T2 = poses[..., j, :, :] @ frame_2
    back = np.swapaxes(T1[..., :3, :3], -1, -2)    # R, p: of the successor's frame in the predecessor's
    R = np.ascontiguousarray(back @ T2[..., :3, :3])
    p = (back @ (T2[..., :3, 3] - T1[..., :3, 3])[..., None])[..., 0]
    full = np.zeros((*rows.shape[:-1], 6))
    full[..., [AXES.index(axis) for axis in axes]] = rows
    flags = np.array([float(axis in axes) for axis in AXES[:3]])
    G = np.empty(R.shape)
    turning_rows_entry.call(R.reshape(-1), flags, G.reshape(-1))
    # wrench on the successor about its frame's origin, in axes of the predecessor's frame
    moment, force = (np.swapaxes(G, -1, -2) @ full[..., :3, None])[..., 0], full[..., 3:]
    turn = np.swapaxes(R, -1, -2)
    wrench = np.concatenate([(turn @ moment[..., None])[..., 0], (turn @ force[..., None])[..., 0]], axis=-1)
    out[..., j, :] += (Ad_star_inv(frame_2) @ wrench[..., None])[..., 0]
    if i is not None:
        wrench = np.concatenate([moment + np.cross(p, force), force], axis=-1)
        out[..., i, :] -= (Ad_star_inv(frame_1) @ wrench[..., None])[..., 0]


def _add_contact(model: RobotModel, poses: Array, out: Array, item: RollingContact | SlidingContact, name: str,
                 rows: Array) -> None:
    """Add the wrenches of a rolling or sliding contact: a force at the contact, and a moment about its normal."""
    ends = [None if surface.link == WORLD and WORLD not in model.body_names else model.body_index(surface.link)
            for surface in (item.first, item.second)]
    for state in np.ndindex(rows.shape[:-1]):
        T = [np.eye(4) if end is None else poses[state][end] for end in ends]
        touch = closest_points(item.first, item.second, se3.inverse(T[0]) @ T[1], f"contact '{name}'")
        R, P = T[0][:3, :3] @ touch.axes, T[0] @ [*touch.point_2, 1.0]
        lam = np.zeros(4)
        lam[:rows.shape[-1]] = rows[state]
        force, moment = R @ lam[[1, 2, 0]], lam[3] * R[:, 2]
        for end, pose, sign in zip(ends, T, (-1.0, 1.0), strict=True):
            if end is not None:
                turn, arm = pose[:3, :3].T, P[:3] - pose[:3, 3]
                out[state][end] += sign * np.concatenate([turn @ (moment + np.cross(arm, force)), turn @ force])


def carry(result: Any, model: RobotModel, constraints: ConstraintSet, q: Array, v: Array, external_wrenches: Any,
          a: Array | None = None) -> None:
    """Add joint wrenches at (q, v) to a result, for its multipliers and accelerations (or the accelerations a)."""
    loads = constraint_wrenches(model, constraints, q, result.multipliers)
    external = link_wrenches(model, external_wrenches, None if q.ndim == 1 else len(q))
    result._carrying(joint_wrenches(model, q, v, result.acceleration if a is None else a,
                                    loads + external.reshape(loads.shape) if external.size else loads))
