"""Splines of all joints' coordinates, including quaternions: positions, rates, and backpropagation of gradients.

Vector coordinates x are offsets from the positions of a reference. A joint with a quaternion has the rotation
`R_0 exp(x)` (M eq. 6, 7), with `ω = J(x) ẋ`, `ω̇ = J ẍ + J̇ ẋ`; a floating joint is at `p_0 + x_p`, in axes of its
parent, with the body's velocity `u = Rᵀ ẋ_p` and its components' rate `u̇ = Rᵀ ẍ_p − ω × u`.
"""
from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..lie import so3
from ..model import block
from ..model.inertia import Array
from ..model.joint_kinds import FREE, SPHERICAL
from ..model.robot_model import RobotModel


class _Turn(NamedTuple):
    """One joint with a quaternion at N instants: J, J̇, and the derivatives of J ẋ and J ẍ + J̇ ẋ by x (N, 3, 3); for a
    floating joint also R (N, 3, 3), ω, u and Rᵀ ẍ_p (N, 3). iv: its first velocity coordinate.
    """

    iv: int
    J: Array
    J_dot: Array
    rate_slope: Array
    acceleration_slope: Array
    R: Array | None
    omega: Array
    u: Array
    accel: Array


class RotationSplines:
    """States (q, v, a) for x, ẋ, ẍ (N, nv each), and conversion of gradients by (q, v, a) to gradients by x, ẋ, ẍ."""

    def __init__(self, model: RobotModel, reference: Array, x: Array, rate: Array, acceleration: Array) -> None:
        turns = [(int(row[block.IQ]), int(row[block.IV]), int(row[block.TYPE]) == FREE) for row in model._node_rows
                 if int(row[block.TYPE]) in (SPHERICAL, FREE)]
        self.v, self.a = rate.copy(), acceleration.copy()
        self._turns: list[_Turn] = []
        if not turns:
            self.q = reference + x
            return
        translated = x.copy()
        for _, iv, free in turns:
            if free:
                translated[:, iv + 3:iv + 6] = 0.0
        self.q = np.asarray(model.integrate(reference, translated))
        for iq, iv, free in turns:
            rotation = slice(iv, iv + 3)
            r, r_dot, r_ddot = x[:, rotation], rate[:, rotation], acceleration[:, rotation]
            J, J_dot = so3.dexp(r), so3.dexp_dot(r, r_dot)
            directions = [np.broadcast_to(e, r.shape) for e in np.eye(3)]
            slopes = [so3.dexp_dot(r, e) for e in directions]
            self.v[:, rotation] = omega = _times(J, r_dot)
            self.a[:, rotation] = _times(J, r_ddot) + _times(J_dot, r_dot)
            R, u, accel = None, np.zeros_like(r), np.zeros_like(r)
            if free:
                translation = slice(iv + 3, iv + 6)
                self.q[:, iq:iq + 3] += x[:, translation]
                R = so3.from_quaternion(self.q[:, iq + 3:iq + 7])
                u, accel = (_times(np.swapaxes(R, 1, 2), y[:, translation]) for y in (rate, acceleration))
                self.v[:, translation] = u
                self.a[:, translation] = accel - np.cross(omega, u)
            self._turns.append(_Turn(
                iv, J, J_dot, np.stack([_times(S, r_dot) for S in slopes], axis=-1),
                np.stack([_times(S, r_ddot) + _times(so3.dexp_second(r, e, r_dot), r_dot)
                          for S, e in zip(slopes, directions, strict=True)], axis=-1), R, omega, u, accel))

    def gradient(self, by_q: Array, by_v: Array, by_a: Array) -> tuple[Array, Array, Array]:
        """Gradients by x, ẋ, ẍ, (N, nv) each, from gradients by q (along the tangent of `integrate`), v and a."""
        out = by_q.copy(), by_v.copy(), by_a.copy()
        for turn in self._turns:
            rotation, translation = slice(turn.iv, turn.iv + 3), slice(turn.iv + 3, turn.iv + 6)
            g_q, g_v, g_a = by_q[:, rotation], by_v[:, rotation], by_a[:, rotation]
            if turn.R is not None:
                f_a = by_a[:, translation]
                f_v = by_v[:, translation] + np.cross(turn.omega, f_a)
                g_q = g_q + np.cross(f_v, turn.u) + np.cross(f_a, turn.accel)
                g_v = g_v + np.cross(f_a, turn.u)
                for part, f in zip(out, (by_q[:, translation], f_v, f_a), strict=True):
                    part[:, translation] = _times(turn.R, f)
            J, J_dot, rate, acceleration = (np.swapaxes(y, 1, 2) for y in turn[1:5])
            out[0][:, rotation] = _times(J, g_q) + _times(rate, g_v) + _times(acceleration, g_a)
            out[1][:, rotation] = _times(J, g_v) + _times(rate + J_dot, g_a)
            out[2][:, rotation] = _times(J, g_a)
        return out


def _times(matrix: Array, vector: Array) -> Array:
    return np.asarray(np.einsum("nij,nj->ni", matrix, vector))
