"""A pose that follows goals without steps: a low-pass of third order, with bounded speeds.

`ẋ⃛ = k² (k e − 3 ẋ) − 3 k ẍ` has three equal poles at −k: no overshoot, and position, speed and acceleration are
continuous whatever the goal does. The distance e to the goal counts up to 3 u/k, which lets the speed reach u, and half
a percent more. The same in the three directions of translation and for the rotation vector from pose to goal, in axes
of the pose.
"""
from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..compiled.entry import quick_entry
from ..compiled.kernel import routine
from ..lie import so3
from ..lie.spatial import add, compose, rotate, scale, sub
from ..model.block import all_finite, matrix, put, put_matrix, vector

Array = NDArray[np.float64]
SUBSTEP = 2e-3    # s
NEAR = 1e-4       # m, and of axes; at rest per s and s²
PACING = 0.05     # s in which the pace changes by 1
R, P, W, V, B, A, SIZE = 0, 9, 12, 15, 18, 21, 24    # axes, origin; angular and linear speed; their rates


@routine
def at_most(x, size):
    norm = np.sqrt(x[0] * x[0] + x[1] * x[1] + x[2] * x[2])
    return x if norm <= size else scale(size / norm, x)


@quick_entry("boolean(float64[::1], float64[::1], float64, int64, float64, float64, float64, float64[::1])")
def pose_filter_entry(state, goal, h, steps, k, speed, angular_speed, target):
    """The state (SIZE,) after some steps of h towards goal (12,): axes, origin. target (24,): axes, origin, twist and
    its rate, angular first, in axes of the root. False where the state is not finite.
    """
    G, g = matrix(goal, 0), vector(goal, 9)
    for _ in range(steps):
        Q, p = matrix(state, R), vector(state, P)
        x, y, z, w = so3.matrix_to_quaternion(compose((Q[0], Q[3], Q[6], Q[1], Q[4], Q[7], Q[2], Q[5], Q[8]), G))
        r = at_most(so3.quaternion_log(x, y, z, w), 3.0 * angular_speed / k)
        e = at_most(sub(g, p), 3.0 * speed / k)
        for part, rate, error in ((W, B, r), (V, A, e)):
            u, a = vector(state, part), vector(state, rate)
            jerk = scale(k, sub(scale(k, sub(scale(k, error), scale(3.0, u))), scale(3.0, a)))
            a = add(a, scale(h, jerk))
            put(state, rate, a)
            put(state, part, add(u, scale(h, a)))
        x, y, z, w = so3.matrix_to_quaternion(compose(Q, so3.exp_map(scale(h, vector(state, W)))))
        put_matrix(state, R, so3.quaternion_to_matrix(x, y, z, w))
        put(state, P, add(p, scale(h, vector(state, V))))
    Q = matrix(state, R)
    for i in range(12):
        target[i] = state[i]
    put(target, 12, rotate(Q, vector(state, W)))
    put(target, 15, vector(state, V))
    put(target, 18, rotate(Q, vector(state, B)))
    put(target, 21, vector(state, A))
    return all_finite(target)


class PoseFilter:
    """A target pose on its way to a goal. bandwidth: k, 1/s; speed, m/s, angular_speed, rad/s: largest ones of the
    target. axes (3, 3) and origin (3,): where it begins, at rest.
    """

    def __init__(self, axes: Array, origin: Array, bandwidth: float, speed: float, angular_speed: float) -> None:
        self.bandwidth, self.speed, self.angular_speed = bandwidth, speed, angular_speed
        self._pace = 1.0
        self._state = np.empty(SIZE)
        self.place(axes, origin)    # target (SIZE,): axes, origin, twist and its rate, in axes of the root

    def aim(self, axes: Array, origin: Array) -> None:
        """Another goal."""
        self.goal = np.concatenate([np.ravel(axes), origin])

    def place(self, axes: Array, origin: Array) -> None:
        """Another target at rest, which is its own goal."""
        self.aim(axes, origin)
        self._state[:12], self._state[12:] = self.goal, 0.0
        self.target = self._state.copy()

    def halt(self) -> None:
        """The goal is where the target comes to rest without turning back."""
        ahead = 3.0 / self.bandwidth
        self.aim(self._state[:9].reshape(3, 3) @ so3.exp(ahead * self._state[W:W + 3]),
                 self._state[P:P + 3] + ahead * self._state[V:V + 3])

    @property
    def waits(self) -> bool:
        """Whether the target has come to the goal."""
        return bool(np.abs(self.goal - self._state[:12]).max() < NEAR)

    @property
    def rests(self) -> bool:
        """Whether the target stands still, at any pace."""
        return bool(np.abs(self._state[W:]).max() < NEAR)

    def advance(self, dt: float, pace: float = 1.0) -> Array:
        """The target (24,) after dt (s), in which its time passes by pace · dt; the pace changes within `PACING`, so
        that its speed has no step.
        """
        steps = max(1, round(dt / SUBSTEP))
        pace = self._pace = self._pace + min(max(pace - self._pace, -dt / PACING), dt / PACING)
        target = np.empty(SIZE)
        pose_filter_entry.call(self._state, self.goal, pace * dt / steps, steps, self.bandwidth, self.speed,
                               self.angular_speed, target)
        target[12:18] *= pace
        target[18:] *= pace * pace
        self.target = target
        return target
