"""Impedance of one link, with feed-forward of its motion (Khatib 1987; Albu-Schäffer, Ott and Hirzinger 2007).

    τ = g + Jᵀ (k + D (ν_d − ν)) + C(q, v) v_r + JᵀΛ (ν̇_d − J̇ v_r) + N (K_n (q_p ⊖ q) − d M (v − v_r)) + τ_limits

Twists ν = (ω, ṗ) and wrenches are in axes of the root link, about the link's origin; `v_r = M⁻¹JᵀΛ ν_d`. The springs k
have a potential: of translation p_d − p and of rotation log(R_d Rᵀ), each with its stiffness; beyond a given force or
moment it grows linearly, so that the wrench is bounded. D has the damping ratio asked for with the operational-space
inertia Λ = (J M⁻¹ Jᵀ)⁻¹, by diagonalising K and Λ together. With a target at rest no Coriolis effort is compensated:
kinetic energy and potentials together then never grow but by the work of others on the arm, and of K_n.
N = 1 − JᵀΛ J M⁻¹ is the dynamically consistent projection. Where the pose hides a direction, Λ is bounded.
"""
from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...core.dynamics.inverse import bias_effort, gravity_effort
from ...core.dynamics.kinematics import body_accelerations, body_velocities, forward_kinematics, jacobian
from ...core.dynamics.mass_matrix import mass_matrix
from ...core.lie import so3
from ...core.model.robot_model import RobotModel

Array = NDArray[np.float64]
LENGTH = 0.2         # m: angles count as translations at this arm
HEAVIEST = 10.0      # masses of the robot: Λ is bounded where a direction of the link appears heavier
SUBSTEP = 2e-3       # s, of the target's filter


class Pose(NamedTuple):
    """Origin (3,), m, and axes (3, 3) of a link, in axes of the root link."""

    p: Array
    R: Array


@dataclass(frozen=True)
class Impedance:
    """translation (3,), N/m, and rotation (3,), N m/rad: stiffness along the axes of the root link, or of the target
    if `in_target`; damping_ratio; largest force, N, and moment, N m, of the springs. posture_stiffness (nv,), N m/rad or
    N/m, and posture_damping, 1/s: of what the link's pose leaves open. limit_margin (nv,), rad or m, and
    limit_stiffness (nv,): springs near the limits of positions.
    """

    translation: Array
    rotation: Array
    in_target: bool
    damping_ratio: float
    largest_force: float
    largest_moment: float
    posture_stiffness: Array
    posture_damping: float
    limit_margin: Array
    limit_stiffness: Array


class Target(NamedTuple):
    """Desired pose, twist (6,) and its rate (6,), angular first, in axes of the root link."""

    pose: Pose
    twist: Array
    rate: Array


class TargetFilter:
    """A goal pose, followed by a low-pass of third order without overshoot: position, twist and its rate are
    continuous. bandwidth: 1/s; speeds: largest ones, m/s and rad/s.
    """

    def __init__(self, pose: Pose, bandwidth: float, speed: float, angular_speed: float) -> None:
        self.goal = self.pose = pose
        self.bandwidth, self.speed, self.angular_speed = bandwidth, speed, angular_speed
        self._v, self._a, self._w, self._b = np.zeros((4, 3))    # translation: root's axes; rotation: target's axes

    def advance(self, dt: float) -> None:
        """Go on by dt (s)."""
        steps = max(1, round(dt / SUBSTEP))
        h, k = dt / steps, self.bandwidth
        p, R = self.pose
        for _ in range(steps):
            e = _at_most(self.goal.p - p, 3.0 * self.speed / k)
            r = _at_most(so3.log(R.T @ self.goal.R), 3.0 * self.angular_speed / k)
            self._a = self._a + h * k * (k * (k * e - 3.0 * self._v) - 3.0 * self._a)
            self._b = self._b + h * k * (k * (k * r - 3.0 * self._w) - 3.0 * self._b)
            self._v = self._v + h * self._a
            self._w = self._w + h * self._b
            p, R = p + h * self._v, R @ so3.exp(h * self._w)
        self.pose = Pose(p, R)

    @property
    def target(self) -> Target:
        R = self.pose.R
        return Target(self.pose, np.concatenate([R @ self._w, self._v]), np.concatenate([R @ self._b, self._a]))


def _at_most(x: Array, size: float) -> Array:
    norm = float(np.linalg.norm(x))
    return x if norm <= size else size / norm * x


def pose_of(model: RobotModel, q: Array, body: str) -> Pose:
    """The pose of a link."""
    T = forward_kinematics(model, q)[model.body_index(body)]
    return Pose(T[:3, 3], T[:3, :3])


class CartesianLaw:
    """The law above for one link of a model with joints of one coordinate each."""

    def __init__(self, model: RobotModel, body: str, impedance: Impedance) -> None:
        self.model, self.body, self.impedance = model, body, impedance
        self._scale = np.array([1.0 / LENGTH] * 3 + [1.0] * 3)
        self._index = model.body_index(body)
        self.hidden = 0    # directions in which Λ was bounded, in the last effort

    def inertia(self, J: Array, M: Array) -> tuple[Array, Array]:
        """Λ (6, 6), bounded near singular poses, and its root L: Λ = L Lᵀ."""
        S = self._scale
        A = S[:, None] * (J @ np.linalg.solve(M, J.T)) * S
        sizes, V = np.linalg.eigh(0.5 * (A + A.T))
        least = 1.0 / (HEAVIEST * self.model.total_mass)
        self.hidden = int((sizes < least).sum())
        L = S[:, None] * V / np.sqrt(np.maximum(sizes, least))
        return L @ L.T, L

    def stiffness(self, target: Pose) -> Array:
        """K (6, 6), rotation first, in axes of the root link."""
        z, K = self.impedance, np.zeros((6, 6))
        R = target.R if z.in_target else np.eye(3)
        K[:3, :3], K[3:, 3:] = R * z.rotation @ R.T, R * z.translation @ R.T
        return K

    def spring(self, pose: Pose, target: Pose) -> tuple[Array, float]:
        """Wrench (6,) of the springs on the link, and their energy, J."""
        z, K = self.impedance, self.stiffness(target)
        s = so3.log(target.R @ pose.R.T)
        moment, turned = _bounded(K[:3, :3] @ s, s, z.rotation, z.largest_moment)
        force, moved = _bounded(K[3:, 3:] @ (target.p - pose.p), target.p - pose.p, z.translation, z.largest_force)
        return np.concatenate([so3.dexp_inv(s).T @ moment, force]), turned + moved

    def limits(self, q: Array) -> tuple[Array, float]:
        """Effort (nv,) of the springs near position limits, and their energy, J."""
        z, model = self.impedance, self.model
        into = (np.maximum(model.position_lower + z.limit_margin - q, 0.0)
                - np.maximum(q - model.position_upper + z.limit_margin, 0.0))
        return z.limit_stiffness * into, 0.5 * float(z.limit_stiffness @ into**2)

    def effort(self, q: Array, v: Array, target: Target, posture: Array) -> Array:
        """The effort (nv,) without gravity; posture (nq,)."""
        model, z = self.model, self.impedance
        T = forward_kinematics(model, q)[self._index]
        pose = Pose(T[:3, 3], T[:3, :3])
        J, M = jacobian(model, q, self.body, "aligned"), mass_matrix(model, q)
        inertia, L = self.inertia(J, M)
        K = self.stiffness(target.pose)
        half = np.linalg.solve(L, K) @ np.linalg.inv(L).T
        sizes, U = np.linalg.eigh(0.5 * (half + half.T))
        Q = L @ U
        D = Q * (2.0 * z.damping_ratio * np.sqrt(np.maximum(sizes, 0.0))) @ Q.T
        wrench = self.spring(pose, target.pose)[0] + D @ (target.twist - J @ v)
        effort, led = self.limits(q)[0], np.zeros(model.nv)
        if target.twist.any() or target.rate.any():
            led = np.linalg.solve(M, J.T @ (inertia @ target.twist))
            still = gravity_effort(model, q)
            effort = effort + 0.5 * (bias_effort(model, q, v + led) - bias_effort(model, q, v)
                                     - bias_effort(model, q, led) + still)
            V = rates_of(model, q, led, self._index, T[:3, :3])
            wrench = wrench + inertia @ (target.rate - V)
        free = z.posture_stiffness * model.difference(q, posture) - z.posture_damping * (M @ (v - led))
        wrench = wrench - inertia @ (J @ np.linalg.solve(M, free))
        return np.asarray(effort + free + J.T @ wrench)


def rates_of(model: RobotModel, q: Array, v: Array, index: int, R: Array) -> Array:
    """J̇ v (6,) of a link, in axes of the root link, for its origin; R (3, 3): its axes."""
    V = body_velocities(model, q, v)[index]
    A = body_accelerations(model, q, v, np.zeros(model.nv))[index]
    return np.concatenate([R @ A[:3], R @ (A[3:] + np.cross(V[:3], V[3:]))])


def _bounded(force: Array, deflection: Array, stiffness: Array, most: float) -> tuple[Array, float]:
    """A spring's force, and its energy: quadratic up to where the force may be `most`, and linear from there."""
    double = float(force @ deflection)    # twice the energy
    knee = most / np.sqrt(max(float(stiffness.max()), 1e-12))
    root = np.sqrt(double)
    if root <= knee:
        return force, 0.5 * double
    return knee / root * force, knee * (root - 0.5 * knee)
