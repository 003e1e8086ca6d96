"""A pose that follows goals, twists and trajectories without steps.

To a goal: a low-pass of third order with bounded speeds. `ẋ⃛ = k² (k e − 3 ẋ) − 3 k ẍ` has three equal poles at −k: no
overshoot, and position, speed and acceleration are continuous whatever the goal does. The distance e to the goal counts
up to 3 u/k, which lets the speed reach u, and half a percent more. The same in the three directions of translation and
for the rotation vector from pose to goal, in axes of the pose.
With a twist u: `ẋ⃛ = k² (u − ẋ) − 2 k ẍ`, two equal poles: the speed reaches u, and rest, without overshoot.
"""
from __future__ import annotations

import math
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ..compiled.entry import quick_entry
from ..compiled.kernel import routine
from ..lie import so3
from ..lie.spatial import add, compose, rotate, rotate_back, scale, sub
from ..model.block import all_finite, matrix, put, put_matrix, vector

Array = NDArray[np.float64]
NONE = np.zeros(0)
SUBSTEP = 2e-3    # s
NEAR = 1e-4       # m, and of axes; at rest per s and s²
PACING = 0.05     # s, time constant of the pace
SETTLED = 1e-6    # of the pace, and per s
AHEAD = 0.1       # s by which the goal leads a target that is moved by a twist or a trajectory
R, P, W, V, B, A, SIZE = 0, 9, 12, 15, 18, 21, 24    # axes, origin; angular and linear speed; their rates


@routine
def at_most(x, size):
    norm = np.sqrt(x[0] * x[0] + x[1] * x[1] + x[2] * x[2])
    return x if norm <= size else scale(size / norm, x)


@routine
def lead(state, w, v, goal):
    """The goal (12,) to which the pose would move within `AHEAD`: w in its own axes, v in those of the root."""
    put_matrix(goal, 0, compose(matrix(state, R), so3.exp_map(scale(AHEAD, w))))
    put(goal, 9, add(vector(state, P), scale(AHEAD, v)))


@routine
def timed(state, pace, slope, target):
    """The target (24,) of a state whose time passes at a pace, which has a slope (1/s)."""
    Q = matrix(state, R)
    for i in range(12):
        target[i] = state[i]
    w, v = rotate(Q, vector(state, W)), vector(state, V)
    put(target, 12, scale(pace, w))
    put(target, 15, scale(pace, v))
    put(target, 18, add(scale(pace * pace, rotate(Q, vector(state, B))), scale(slope, w)))
    put(target, 21, add(scale(pace * pace, vector(state, A)), scale(slope, v)))
    return all_finite(target)


@routine
def stepped(state, goal, twist, h, k, speed, angular_speed):
    """One step of `filtered`: without a loop, the same bits for all callers."""
    Q, p = matrix(state, R), vector(state, P)
    moved = len(twist) > 0
    if moved:
        r, e = rotate_back(Q, vector(twist, 0)), vector(twist, 3)
    else:
        x, y, z, w = so3.matrix_to_quaternion(compose((Q[0], Q[3], Q[6], Q[1], Q[4], Q[7], Q[2], Q[5], Q[8]),
                                                      matrix(goal, 0)))
        r = scale(k, at_most(so3.quaternion_log(x, y, z, w), 3.0 * angular_speed / k))
        e = scale(k, at_most(sub(vector(goal, 9), p), 3.0 * speed / k))
    own = 1.0 if moved else 3.0
    for part, rate, wanted in ((W, B, r), (V, A, e)):
        u, a = vector(state, part), vector(state, rate)
        jerk = scale(k, sub(scale(k, sub(wanted, scale(own, u))), scale(2.0 if moved else 3.0, a)))
        a = add(a, scale(h, jerk))
        put(state, rate, a)
        put(state, part, add(u, scale(h, a)))
    x, y, z, w = so3.matrix_to_quaternion(compose(Q, so3.exp_map(scale(h, vector(state, W)))))
    put_matrix(state, R, so3.quaternion_to_matrix(x, y, z, w))
    put(state, P, add(p, scale(h, vector(state, V))))


@routine
def filtered(state, goal, twist, h, steps, k, speed, angular_speed, pace, slope, target):
    """The state (SIZE,) after some steps of h towards goal (12,): axes, origin; or with a twist (6,), angular first, in
    axes of the root, (0,): none, for which goal becomes one ahead. target (24,): axes, origin, twist and its rate, in
    axes of the root, at this pace. False where the state is not finite.
    """
    for _ in range(steps):
        stepped(state, goal, twist, h, k, speed, angular_speed)
    if len(twist) > 0:
        lead(state, rotate_back(matrix(state, R), vector(twist, 0)), vector(twist, 3), goal)
    return timed(state, pace, slope, target)


@quick_entry("boolean(float64[::1], float64[::1], float64[::1], float64, int64, float64, float64, float64, float64, "
             "float64, float64[::1])")
def pose_filter_entry(state, goal, twist, h, steps, k, speed, angular_speed, pace, slope, target):
    """`filtered` of one pose."""
    return filtered(state, goal, twist, h, steps, k, speed, angular_speed, pace, slope, target)


class Pace:
    """The rate at which a time passes: a low-pass of second order of the wanted one, from 1 on; its slope (1/s) is
    continuous.
    """

    def __init__(self) -> None:
        self.rate, self.slope = 1.0, 0.0

    def advance(self, dt: float, wanted: float) -> tuple[float, float]:
        """Rate and slope after dt (s)."""
        k, off = 1.0 / PACING, self.rate - wanted
        push, decay = self.slope + k * off, math.exp(-k * dt)
        self.rate = wanted + (off + push * dt) * decay
        self.slope = (push - k * (off + push * dt)) * decay
        if abs(self.rate - wanted) < SETTLED and abs(self.slope) < SETTLED:
            self.rate, self.slope = wanted, 0.0
        return self.rate, self.slope


class Course(Protocol):
    """A motion of the pose in its own time, such as `PoseTrajectory`."""

    duration: float

    def sample(self, t: float, pace: float, slope: float, state: Array, goal: Array, target: Array) -> None:
        """State, goal and target, as of `filtered`, at time t (s)."""
        ...


class PoseFilter:
    """A target pose on its way. bandwidth: k, 1/s; speed, m/s, angular_speed, rad/s: largest ones of the target. axes
    (3, 3) and origin (3,): where it begins, at rest or with a twist (6,), angular first, in axes of the root.
    """

    def __init__(self, axes: Array, origin: Array, bandwidth: float, speed: float, angular_speed: float,
                 twist: Array | None = None) -> None:
        self.bandwidth, self.speed, self.angular_speed = bandwidth, speed, angular_speed
        self._pace = Pace()
        self.state = np.zeros(SIZE)    # the angular speed and its rate in axes of the pose
        self._twist: Array | None = None
        self.course: Course | None = None
        self.time, self.changes = 0.0, 0    # on the course, s; how often it was led elsewhere
        self.state[:12] = self.goal = np.concatenate([np.ravel(axes), origin])
        if twist is not None:
            self.state[W:V], self.state[V:B] = axes.T @ twist[:3], twist[3:]
            self.halt()
        self.target = np.empty(SIZE)    # axes, origin, twist and its rate, in axes of the root
        pose_filter_entry.call(self.state, self.goal, NONE, 0.0, 0, 1.0, 1.0, 1.0, 1.0, 0.0, self.target)

    def aim(self, axes: Array, origin: Array) -> None:
        """Go to another goal."""
        self.goal, self._twist, self.course = np.concatenate([np.ravel(axes), origin]), None, None
        self.changes += 1

    def place(self, axes: Array, origin: Array, motion: Array) -> None:
        """Be elsewhere, which is the goal, at rest but for the motion (12,) of the target: twist and its rate."""
        self.aim(axes, origin)
        self.state[:12], self.state[12:], self._pace = self.goal, 0.0, Pace()
        self.target = np.concatenate([self.goal, motion])

    def move(self, twist: Array) -> None:
        """Move with a twist (6,), angular first, in axes of the root; as a whole so fast as both speeds allow."""
        self._twist, self.course = twist, None    # the goal follows
        self.changes += 1

    def follow(self, course: Course, t: float = 0.0) -> None:
        """Follow a motion from its time t (s) on, at which it has the present state."""
        self._twist, self.course, self.time = None, course, t
        self.changes += 1

    def halt(self) -> None:
        """Come to rest without turning back, from the speed at the present pace."""
        pace = self._pace
        self.state[B:] = pace.rate**2 * self.state[B:] + pace.slope * self.state[W:B]
        self.state[W:B] *= pace.rate
        self._pace = Pace()
        self.move(np.zeros(6))

    @property
    def waits(self) -> bool:
        """Whether the target has come to the goal."""
        return self.course is None and bool(np.abs(self.goal - self.state[:12]).max() < NEAR)

    @property
    def rests(self) -> bool:
        """Whether the target stands still, at any pace."""
        return self.course is None and bool(np.abs(self.state[W:]).max() < NEAR)

    @property
    def paced(self) -> bool:
        """Whether its time passes at a pace other than 1."""
        return self._pace.rate != 1.0 or self._pace.slope != 0.0

    @property
    def twist(self) -> Array:
        """The twist (6,) that moves it, slow enough for both speeds; (0,): a goal or a course does."""
        if self._twist is None:
            return NONE
        return self._twist / max(float(np.linalg.norm(self._twist[:3])) / self.angular_speed,
                                 float(np.linalg.norm(self._twist[3:])) / self.speed, 1.0)

    def advance(self, dt: float, pace: float = 1.0) -> Array:
        """The target (24,) after dt (s), in which its time passes at `pace`, smoothed by `Pace`."""
        rate, slope = self._pace.advance(dt, pace)
        target = np.empty(SIZE)
        if self.course is not None:
            self.time += rate * dt
            self.course.sample(self.time, rate, slope, self.state, self.goal, target)
            if self.time >= self.course.duration:
                self.aim(self.state[:P].reshape(3, 3), self.state[P:W])
        else:
            steps = max(1, round(dt / SUBSTEP))
            pose_filter_entry.call(self.state, self.goal, self.twist, rate * dt / steps, steps, self.bandwidth,
                                   self.speed, self.angular_speed, rate, slope, target)
        self.target = target
        return target
