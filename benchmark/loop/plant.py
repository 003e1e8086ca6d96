"""The arm of the closed-loop walk: links with errors against the model, friction, motor lag, limits, brakes, and, if it
has such, springs between motors and links.

Friction and brakes are implicit: M + h diag(d) takes the place of M, with d = damping + c/max(|v|, CREEP), so that they
only take energy out, at any step, and a joint that sticks creeps by less than CREEP.
"""
from __future__ import annotations

import numpy as np

import rbd_ros as rbd
from rbd_ros.core.compiled.entry import quick_entry
from rbd_ros.core.dynamics.articulated import articulated_recursion
from rbd_ros.core.model.block import ARMATURE, first_velocity, node, node_count

Array = np.ndarray
STEP = 5e-4      # s
CREEP = 1e-3     # rad/s


@quick_entry("int64(float64[::1], float64[::1], float64[::1], float64[:, ::1], float64[::1], float64[::1], "
             "float64[::1], float64[::1], int64, float64, float64[:, ::1])")
def arm_steps(B, q, v, J, command, tau, a, W, steps, lag, L):
    """So many steps of STEP. J (6, n): armature, damping, Coulomb friction, brakes, lower and upper limits. L (5, n):
    kp and kd of motors that close a loop, their torque limit, its quantum, and true over commanded torque.
    """
    n = len(q)
    acceleration = W[len(W) - n:]
    for _ in range(steps):
        for k in range(node_count(B)):
            i = first_velocity(B, node(k))
            asked = command[i]
            if L[3, i] > 0.0:
                asked = L[4, i] * L[3, i] * np.rint((asked - L[0, i] * q[i] - L[1, i] * v[i]) / L[3, i])
                asked = min(max(asked, -L[2, i]), L[2, i])
            tau[i] += (asked - tau[i]) * lag
            d = J[1, i] + (J[2, i] + J[3, i]) / max(abs(v[i]), CREEP)
            B[node(k) + ARMATURE] = J[0, i] + STEP * d
            a[i] = tau[i] - d * v[i]
        if articulated_recursion(B, q, 0, v, a, 0, (W[:0].view(np.bool_), v), (W[:0], 0), W, acceleration,
                                 acceleration) != 0:
            return 1
        for i in range(n):
            v[i] += STEP * acceleration[i]
            q[i] += STEP * v[i]
            if q[i] < J[4, i] or q[i] > J[5, i]:
                q[i] = min(max(q[i], J[4, i]), J[5, i])
                v[i] = 0.0
    return 0


@quick_entry("int64(float64[::1], float64[::1], float64[::1], float64[:, ::1], float64[::1], float64[::1], "
             "float64[::1], float64[::1], int64, float64, float64[:, ::1])")
def elastic_steps(B, q, v, J, command, tau, a, W, steps, lag, S):
    """So many steps of STEP, each in two halves. J as above, brakes act on motors. S (4, n): positions and velocities
    of motors, their inertia, stiffness of springs.
    """
    n, h = len(q), 0.5 * STEP
    acceleration = W[len(W) - n:]
    for step in range(2 * steps):
        for k in range(node_count(B)):
            i = first_velocity(B, node(k))
            if step % 2 == 0:
                tau[i] += (command[i] - tau[i]) * lag
            spring = S[3, i] * (S[0, i] - q[i])
            d = J[3, i] / max(abs(S[1, i]), CREEP)
            S[1, i] = (S[1, i] + h * (tau[i] - spring) / S[2, i]) / (1.0 + h * d / S[2, i])
            d = J[1, i] + J[2, i] / max(abs(v[i]), CREEP)
            B[node(k) + ARMATURE] = h * d
            a[i] = spring - d * v[i]
        if articulated_recursion(B, q, 0, v, a, 0, (W[:0].view(np.bool_), v), (W[:0], 0), W, acceleration,
                                 acceleration) != 0:
            return 1
        for i in range(n):
            v[i] += h * acceleration[i]
            q[i] += h * v[i]
            S[0, i] += h * S[1, i]
            if q[i] < J[4, i] or q[i] > J[5, i]:
                q[i] = min(max(q[i], J[4, i]), J[5, i])
                v[i] = 0.0
    return 0


class Plant:
    """q, v, tau (nv,): state, and the torque that acts. model: of the arm as it is. lag: time constant of motors, s.

    brakes: torque (nv,) with which they hold, N m, where they are on. springs (2, nv): inertia of motors and stiffness
    of the springs between motors and links, where they are elastic; `motors` (2, nv) is then where they are and how
    fast, else q and v.
    """

    def __init__(self, model: rbd.RobotModel, q: Array, lag: float, brakes: Array,
                 springs: Array | None = None) -> None:
        n = model.nv
        self.q, self.v, self.tau, self.command = np.array(q), np.zeros(n), np.zeros(n), np.zeros(n)
        self._work, self._a = np.zeros(len(model._work) + n), np.zeros(n)
        self._brakes, self.braked = brakes, True
        self._lag = 1.0 - np.exp(-STEP / lag) if lag > 0.0 else 1.0
        self._joints = np.zeros((6, n))
        self.local = np.zeros((5, n))    # of motors that close a loop on τ = command − kp q − kd v
        self.springs: Array | None = None
        if springs is not None:
            self.springs = np.stack([self.q, self.v, *springs])
        self.become(model)
        self.rest_at(q)

    def rest_at(self, q: Array) -> None:
        """Be there, at rest, with springs that bear gravity."""
        self.q[:], self.v[:] = q, 0.0
        if self.springs is not None:
            self.springs[0], self.springs[1] = q + rbd.gravity_effort(self.model, q) / self.springs[3], 0.0

    def become(self, model: rbd.RobotModel) -> None:
        """Go on as this arm: another load."""
        self.model = model
        self._block = np.array(model._block)
        self._joints[:3] = model.armature, model.damping, model.friction
        self._joints[4:] = model.position_lower, model.position_upper

    def advance(self, steps: int) -> None:
        self._joints[3] = self._brakes if self.braked else 0.0
        arrays = (self._block, self.q, self.v, self._joints, self.command, self.tau, self._a, self._work, steps,
                  self._lag)
        failed = (arm_steps.call(*arrays, self.local) if self.springs is None else
                  elastic_steps.call(*arrays, self.springs))
        assert failed == 0 and np.isfinite(self.v).all(), "the plant itself failed"

    @property
    def motors(self) -> Array:
        return np.stack([self.q, self.v]) if self.springs is None else self.springs[:2]

    @property
    def kinetic_energy(self) -> float:
        return float(rbd.kinetic_energy(self.model, self.q, self.v))
