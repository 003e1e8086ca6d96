"""Operational-space inertia of a link (Khatib 1987), from the factors of the articulated-body algorithm.

With `E x` the residual efforts of ABA for joint efforts x, `M⁻¹ = Eᵀ Ψ E` (as in constrained dynamics): `J M⁻¹ Jᵀ` is
the sum of `Ψ_c e_c e_cᵀ` over the coordinates between the link and the root, e_c the residual efforts of six unit
wrenches on the link. O(n), without mass matrix and Jacobian; a sum of squares, never indefinite.
"""
from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ...compiled.entry import entry
from ...errors import RbdError, shown
from ...lie.so3 import hat
from ...lie.spatial import add, cross, dot, rotate, scale, unit
from ...model.block import (
    LINK_NODE, RATIO, all_finite, first_position, integer, kind, matrix, node, node_count, parent, size_q, size_v,
    vector,
)
from ...model.configuration import positions_valid
from ...model.inertia import Array
from ...model.joint_kinds import column, dof, is_revolute
from ...model.robot_model import RobotModel
from ...model.state import shaped
from ..articulated import _P, _R, _U, SIZE, articulated_factors
from ..forward import solve_mass_matrix
from ..kinematics import FRAMES, forward_kinematics, jacobian
from ..mass_matrix import mass_matrix
from ..singular import solved
from .link_tree import link_record, to_node

SINGULAR = 1e-12    # of the largest eigenvalue of J M⁻¹ Jᵀ, after scaling of moments and forces to equal size


@entry("int64(float64[::1], float64[::1], int64, int64, float64[::1])", nogil=True)
def inverse_operational_entry(B, q, link, states, out):
    """J M⁻¹ Jᵀ of a link in its frame for `states` states, into out (N·36); returns as `forward_dynamics_batch`."""
    if not positions_valid(B, q, states):
        return -1
    n = size_v(B)
    W = np.empty(SIZE * node_count(B))
    still = np.zeros(n)
    none = np.empty(0, np.bool_)
    G = np.empty(36)    # the six wrenches
    e = np.empty(6)
    out[:] = 0.0
    for s in range(states):
        k = s * size_q(B)
        status = articulated_factors(B, q, k, still, still, 0, (none, still), (still[:0], 0), W)
        if status != 0:
            return status
        o = link_record(B, link)
        i = integer(B, o + LINK_NODE)
        for d in range(6):
            N, F = to_node(B, o, unit(d, B[0]), unit(d - 3, B[0]))
            for x in range(3):
                G[6 * d + x] = N[x]
                G[6 * d + 3 + x] = F[x]
        while i >= 0:
            o = node(i)
            w = SIZE * i
            t = kind(B, o)
            R = matrix(W, w + _R)
            p = vector(W, w + _P)
            for c in range(dof(t) - 1, -1, -1):
                u = w + _U + 8 * c
                sa, sl = column(B, o, q, k + first_position(B, o), c)
                for d in range(6):
                    N = vector(G, 6 * d)
                    F = vector(G, 6 * d + 3)
                    e[d] = B[o + RATIO] * N[2] if is_revolute(t) else dot(sa, N) + dot(sl, F)
                    x = -W[u + 6] * e[d]
                    N = add(N, scale(x, vector(W, u)))
                    F = add(F, scale(x, vector(W, u + 3)))
                    for r in range(3):
                        G[6 * d + r] = N[r]
                        G[6 * d + 3 + r] = F[r]
                for r in range(6):
                    for d in range(6):
                        out[36 * s + 6 * r + d] += W[u + 6] * e[r] * e[d]
            for d in range(6):
                F = rotate(R, vector(G, 6 * d + 3))
                N = add(rotate(R, vector(G, 6 * d)), cross(p, F))
                for r in range(3):
                    G[6 * d + r] = N[r]
                    G[6 * d + 3 + r] = F[r]
            i = parent(B, o)
    return 0 if all_finite(out) else -1


def inverse_operational_space_inertia(model: RobotModel, q: ArrayLike, body: str, frame: str = "body") -> Array:
    """`Λ⁻¹ = J M⁻¹ Jᵀ` (6, 6) or (N, 6, 6): acceleration of the link per wrench on it, angular first, SI units.

    frame as in `jacobian`. In singular poses Λ⁻¹ exists and is singular. O(n); with mimic joints by the mass matrix.
    Raises `RbdError` for a singular mass matrix and wrong input.

        >>> model, q = rbd.sample("iiwa"), np.full(7, 0.4)
        >>> rbd.inverse_operational_space_inertia(model, q, "link_7").shape
        (6, 6)
    """
    if frame not in FRAMES:
        raise RbdError(f"frame is {shown(frame)}, expected one of {', '.join(FRAMES)}")
    inputs = shaped(model, positions={"q": q})
    index = model.body_index(body)
    q = inputs.arrays[0]
    if model.mimics:
        J = jacobian(model, q, body, frame)
        Jt = np.swapaxes(J, -1, -2)
        with np.errstate(all="ignore"):
            return inputs.finite(inverse_inertia=np.asarray(J @ solve_mass_matrix(model, mass_matrix(model, q), Jt)))[0]
    out = inputs.empty(6, 6)
    solved(inverse_operational_entry.call(model._block, q.reshape(-1), index, inputs.count, out.reshape(-1)), inputs,
           inverse_inertia=out)
    if frame == "body":
        return out
    T = forward_kinematics(model, q)[..., index, :, :]
    X = np.zeros(out.shape)    # Ad_T; frame "aligned": without p
    X[..., :3, :3] = X[..., 3:, 3:] = T[..., :3, :3]
    if frame == "world":
        X[..., 3:, :3] = hat(T[..., :3, 3]) @ T[..., :3, :3]
    with np.errstate(all="ignore"):
        return inputs.finite(inverse_inertia=X @ out @ np.swapaxes(X, -1, -2))[0]


def operational_space_inertia(model: RobotModel, q: ArrayLike, body: str, frame: str = "body") -> Array:
    """Λ = (J M⁻¹ Jᵀ)⁻¹ (6, 6) or (N, 6, 6): operational-space inertia (Khatib 1987), wrench on the link per
    acceleration, all joints free; moment and angular acceleration first, SI units. Rotor inertia is included.

    frame as in `jacobian`. Raises `RbdError` unless the link can move in all six directions (fewer than six joints, or
    a singular pose); alternatives are `inverse_operational_space_inertia` and `effective_inertia`.

        >>> model, q = rbd.sample("iiwa"), np.full(7, 0.4)
        >>> rbd.operational_space_inertia(model, q, "link_7").shape
        (6, 6)
    """
    inverse = inverse_operational_space_inertia(model, q, body, frame)
    diagonal = np.diagonal(inverse, axis1=-2, axis2=-1)
    angular, linear = diagonal[..., :3].max(axis=-1), diagonal[..., 3:].max(axis=-1)
    size = np.repeat(np.stack([angular, linear], axis=-1), 3, axis=-1)
    with np.errstate(all="ignore"):
        root = 1.0 / np.sqrt(size)
        scaled = inverse * root[..., :, None] * root[..., None, :]
    scaled = np.where(np.isfinite(scaled), scaled, 0.0)
    values = np.linalg.eigvalsh(scaled)
    bad = ~(values[..., 0] > SINGULAR * values[..., -1])
    if bad.any():
        state = int(np.argmax(bad))
        eigenvalues = values.reshape(-1, 6)[state]
        rank = int((eigenvalues > SINGULAR * max(eigenvalues[-1], 1e-300)).sum())
        where = "" if inverse.ndim == 2 else f"state {state}: "
        raise RbdError(f"{where}body '{body}' of model '{model.name}' can be moved in {rank} of 6 directions here, so "
                       "its operational-space inertia is infinite in the others: use "
                       "inverse_operational_space_inertia, or effective_inertia along a direction")
    inertia = np.linalg.inv(scaled) * root[..., :, None] * root[..., None, :]
    return np.asarray(0.5 * (inertia + np.swapaxes(inertia, -1, -2)))


def effective_inertia(model: RobotModel, q: ArrayLike, body: str, direction: ArrayLike, frame: str = "body") -> Any:
    """Effective inertia of a link along a direction: force per acceleration along it (kg), or moment per angular
    acceleration (kg m²), all joints free: 1 / (uᵀ J M⁻¹ Jᵀ u). A number, or (N,).

    direction (6,): direction of the wrench, moment first, about the origin of the frame (as in `jacobian`); normalised
    to a unit force, or a unit moment if the force is zero. (0, 0, 0, 0, 0, 1) is a force along z at the link's origin.
    Raises `RbdError` if the link cannot accelerate in that direction.

        >>> model, q = rbd.sample("iiwa"), np.full(7, 0.4)
        >>> round(float(rbd.effective_inertia(model, q, "link_7", [0, 0, 0, 0, 0, 1], "world")), 2)    # kg
        0.49
    """
    inverse = inverse_operational_space_inertia(model, q, body, frame)
    try:
        u = np.array(direction, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        u = np.zeros(0)
    if u.shape != (6,) or not np.isfinite(u).all() or not u.any():
        raise RbdError(f"direction: expected a wrench of six finite numbers, not all zero, got {shown(direction)}")
    u /= np.abs(u).max()
    u /= np.linalg.norm(u[3:]) if u[3:].any() else np.linalg.norm(u[:3])
    with np.errstate(all="ignore"):
        mobility = np.einsum("i,...ij,j->...", u, inverse, u)
        diagonal = np.diagonal(inverse, axis1=-2, axis2=-1)
        scale = (u[:3] @ u[:3]) * diagonal[..., :3].max(axis=-1) + (u[3:] @ u[3:]) * diagonal[..., 3:].max(axis=-1)
        inertia = 1.0 / mobility
    bad = ~((mobility > SINGULAR * scale) & np.isfinite(inertia))
    if np.any(bad):
        where = "" if inverse.ndim == 2 else f"state {int(np.argmax(bad))}: "
        raise RbdError(f"{where}body '{body}' of model '{model.name}' cannot give way along {shown(direction)} here: "
                       "its effective inertia is infinite")
    return inertia
