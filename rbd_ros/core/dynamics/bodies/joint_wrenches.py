"""Joint wrenches F_i on each link by the joint above it: K eq. 42 and Tables 2–4, in O(n).

Newton–Euler equations of each link, with the motion of nodes from the RNEA of `inverse`. Tables 3 and 4 give the same
`F_i = Î_i V̇_i + B̂_i` (`articulated_bodies`).
"""
from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ...compiled.entry import quick_entry
from ...compiled.kernel import sweep
from ...errors import RbdError
from ...lie.spatial import add, cross, rotate, sub
from ...model.block import (
    GRAVITY, LINK_NODE, all_finite, integer, matrix, node, node_count, parent, put, put_add, rates_valid, six, size_q,
    size_v, vector, zero,
)
from ...model.configuration import positions_valid
from ...model.inertia import Array
from ...model.robot_model import RobotModel
from ...model.state import shaped
from ...compiled.door import Call, door
from ...compiled.workspace import ONE_STATE
from ..inverse import _ACCEL, _ALPHA, _OMEGA, _P, _R, SIZE, inverse_dynamics_recursion, newton_euler
from .link_tree import (
    ABOVE, INDEX, INERTIA, MASS, MOMENT, ROW, link_count, link_record, link_tree, link_wrenches, to_link, to_node,
)


@sweep
def joint_wrenches_recursion(B, L, q, k, v, a, j, wrench, e, W, out, offset):
    """One state q[k:], v[j:], a[j:], link wrenches wrench[e:] or empty; joint wrenches per link into out[offset:]."""
    z = zero(B, v, j)
    still = (z, z, z)
    tau = W[SIZE * node_count(B):]    # unused result
    inverse_dynamics_recursion(B, q, k, v[j:j + size_v(B)], a[j:j + size_v(B)], 0, W[:0], 0, W, tau)
    for r in range(link_count(B)):
        t = ROW * r
        i = integer(L, t + INDEX)
        o = link_record(B, i)
        h = integer(B, o + LINK_NODE)
        omega, alpha, accel = still, still, (z - B[GRAVITY], z - B[GRAVITY + 1], z - B[GRAVITY + 2])
        if h >= 0:
            omega = vector(W, SIZE * h + _OMEGA)
            alpha = vector(W, SIZE * h + _ALPHA)
            accel = vector(W, SIZE * h + _ACCEL)
        N, F = newton_euler(L[t + MASS], vector(L, t + MOMENT), six(L, t + INERTIA), omega, alpha, accel)
        if wrench.shape[0] > 0:
            moment, force = to_node(B, o, vector(wrench, e + 6 * i), vector(wrench, e + 6 * i + 3))
            N = sub(N, moment)
            F = sub(F, force)
        put(out, offset + 6 * i, N)
        put(out, offset + 6 * i + 3, F)
    for r in range(link_count(B) - 1, -1, -1):
        i = integer(L, ROW * r + INDEX)
        o = link_record(B, i)
        h = integer(B, o + LINK_NODE)
        N = vector(out, offset + 6 * i)
        F = vector(out, offset + 6 * i + 3)
        moment, force = to_link(B, o, N, F)
        put(out, offset + 6 * i, moment)
        put(out, offset + 6 * i + 3, force)
        above = integer(L, ROW * r + ABOVE)
        if above >= 0:
            up = integer(L, ROW * above + INDEX)
            last = integer(B, link_record(B, up) + LINK_NODE)
            while h != last:
                R = matrix(W, SIZE * h + _R)
                F = rotate(R, F)
                N = add(rotate(R, N), cross(vector(W, SIZE * h + _P), F))
                h = parent(B, node(h))
            put_add(out, offset + 6 * up, N)
            put_add(out, offset + 6 * up + 3, F)


@quick_entry("boolean(float64[::1], float64[::1], float64[::1], float64[::1], float64[::1], float64[::1], "
             "float64[::1], float64[:, ::1])")
def joint_wrenches_entry(B, L, q, v, a, wrench, W, wrenches):
    """Joint wrenches (N·links, 6) of N states, external wrenches in link frames or empty; False if invalid."""
    states = wrenches.shape[0] // link_count(B)
    if not (positions_valid(B, q, states) and rates_valid(B, v, states) and rates_valid(B, a, states)):
        return False
    out = wrenches.reshape(-1)
    size = 6 * link_count(B)
    for s in range(states):
        joint_wrenches_recursion(B, L, q, s * size_q(B), v, a, s * size_v(B), wrench, s * size, W, out, s * size)
    return all_finite(out)


ONE_STATE.takes(lambda nodes, columns, nv: SIZE * nodes + nv)
_NONE = np.empty(0)


_door = door("joint_wrenches", Call(
    joint_wrenches_entry, "B tree q v a none W >", lambda model: [(len(model.body_names), 6)],
    constants={"tree": link_tree, "none": lambda model: _NONE}))


def joint_wrenches(model: RobotModel, q: ArrayLike, v: ArrayLike, a: ArrayLike,
                   external_wrenches: Any = None) -> Array:
    """Joint wrenches (nb, 6) or (N, nb, 6), the loads of bearings and bolts: of the joint above on each link, moment
    first (N m, N), in the link's frame, about its origin: K's F_i (eq. 42), gravity and inertia included.

    q, v, a and external_wrenches as in `inverse_dynamics`. Fixed and locked joints are included; the root's wrench is
    that of its mounting (of a floating root, its six efforts). `Sᵀ F` of a joint is its effort without the share that
    accelerates the joint's rotor. A force-torque sensor measures the negative: the wrench of the link on the joint.
    Forces of loops and contacts: pass `constraint_wrenches` as external wrenches. Raises `RbdError` for wrong input.

        >>> model = rbd.sample("two_link")
        >>> rbd.joint_wrenches(model, [0.0, 0.0], [0.0, 0.0], [0.0, 0.0])[1].round(3)
        array([ 0.  ,  0.  ,  0.  ,  0.  ,  0.  , 19.62])
    """
    if external_wrenches is None and (wrenches := _door(model, q, v, a)) is not None:
        return wrenches    # type: ignore[no-any-return]
    inputs = shaped(model, positions={"q": q}, rates={"v": v, "a": a})
    out = inputs.empty(len(model.body_names), 6)
    if not joint_wrenches_entry.call(model._block, link_tree(model), *inputs.flat,
                                     link_wrenches(model, external_wrenches, inputs.batch), model._work,
                                     out.reshape(-1, 6)):
        inputs.refuse(joint_wrenches=out)
    return out


class Loaded:
    """Base of results with optional joint wrenches."""

    @property
    def joint_wrenches(self) -> Array:
        """`rbd.joint_wrenches` (nb, 6) or (N, nb, 6) at the accelerations, loops and contacts included. `RbdError`
        unless the function was called with joint_wrenches=True.
        """
        wrenches: Array | None = self.__dict__.get("_joint_wrenches")
        if wrenches is None:
            raise RbdError(f"this {type(self).__name__} has no joint wrenches: ask for them with joint_wrenches=True")
        return wrenches

    def _carrying(self, wrenches: Array) -> None:
        self.__dict__["_joint_wrenches"] = wrenches
