"""Motions and robots of the tests of feedback along a motion."""
from __future__ import annotations

import numpy as np

import rbd_ros as rbd
from rbd_ros.core.motion.rotation_splines import RotationSplines

HALF = 2    # samples of a `Drifting` motion per period


class Turning:
    """Joints of any kind on a spline of their coordinates from `start` on."""

    def __init__(self, model, start, control, duration):
        self.model, self.start, self.duration = model, start, duration
        self._spline = rbd.SplineMotion(control, duration)

    def __call__(self, t):
        x, rate, acceleration, *_ = self._spline(t)
        states = RotationSplines(self.model, self.start, x, rate, acceleration)
        return rbd.Reference(states.q, states.v, states.a)


class Resting:
    """A pose for some seconds."""

    def __init__(self, q, nv, duration):
        self.q, self.nv, self.duration = np.asarray(q, dtype=float), nv, duration

    def __call__(self, t):
        return rbd.Reference(np.tile(self.q, (len(t), 1)), *np.zeros((4, len(t), self.nv)))


class Drifting:
    """A floating robot whose joints follow a spline, and whose base does what momentum makes of it: at whole and half
    periods alone.
    """

    def __init__(self, model, control, duration, period):
        self.duration, self.step = duration, period / HALF
        self._spline = rbd.SplineMotion(control, duration)
        joints = np.arange(model.nv) >= 6
        count = round(duration / self.step) + HALF
        q, v = model.neutral(), np.zeros(model.nv)
        q[7:], v[6:], v[:6] = self._spline(0.0).q, self._spline(0.0).v, [0.1, -0.2, 0.15, 0.05, 0.1, -0.1]
        rows = []
        for k in range(count):
            rows.append((q, v, self._acceleration(model, joints, q, v, k * self.step)))
            h, t = self.step, k * self.step

            def rate(q, v, t):
                return v, self._acceleration(model, joints, q, v, t)

            a1 = rate(q, v, t)
            a2 = rate(model.integrate(q, 0.5 * h * a1[0]), v + 0.5 * h * a1[1], t + 0.5 * h)
            q, v = model.integrate(q, h * a2[0]), v + h * a2[1]    # midpoint
            q[7:], v[6:] = self._spline(t + h).q, self._spline(t + h).v
        self._rows = [np.array(x) for x in zip(*rows, strict=True)]

    def _acceleration(self, model, joints, q, v, t):
        a = np.zeros(model.nv)
        a[6:] = self._spline(t).a
        return rbd.hybrid_dynamics(model, q, v, a, np.zeros(model.nv), joints).acceleration

    def __call__(self, t):
        rows = np.rint(np.asarray(t) / self.step).astype(int)
        return rbd.Reference(*(x[rows] for x in self._rows))


def spline(start, end, duration):
    """From rest to rest."""
    return rbd.SplineMotion(np.repeat([start, end], 6, axis=0), duration)


def stepped(model, q, v, effort, h, steps=5):
    """State after h seconds under `effort(t)`: Runge and Kutta's method on the group."""
    simulated = rbd.Simulator(model, step=h / steps, integrator="rk4", limits=False, q=q, v=v)
    simulated.step(effort, steps)
    return simulated.q.copy(), simulated.v.copy()
