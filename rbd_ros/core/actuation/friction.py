"""Joint friction: viscous and Coulomb, the latter smoothed by tanh, and its time derivatives."""
from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ..errors import RbdError
from ..model.inertia import Array
from ..model.robot_model import RobotModel
from ..model.state import states


def friction_effort(model: RobotModel, v: ArrayLike, smoothing: float = 0.01) -> Array:
    """Effort that overcomes friction, `damping v + friction tanh(v / smoothing)`: (nv,) or (N, nv), N m or N.

    v: (nv,) or (N, nv) in rad/s or m/s; `damping` and `friction` are the model's. smoothing: speed in v's unit at
    which 76 % of the Coulomb friction acts. Add the result to inverse dynamics, subtract it in forward dynamics.
    """
    speed = states(model, v=v).arrays[0]
    return model.damping * speed + model.friction * np.tanh(speed / _checked(smoothing))


def friction_effort_derivatives(model: RobotModel, v: ArrayLike, a: ArrayLike, jerk: ArrayLike,
                                smoothing: float = 0.01) -> tuple[Array, Array]:
    """First and second time derivative of `friction_effort` along a motion: each (nv,) or (N, nv), N m/s and N m/s².

    v, a, jerk: velocity, acceleration and jerk of the joints, (nv,) or (N, nv).
    """
    speed, rate, rate_dot = states(model, v=v, a=a, jerk=jerk).arrays
    width = _checked(smoothing)
    t = np.tanh(speed / width)
    slope = model.damping + model.friction * (1.0 - t * t) / width
    curvature = -2.0 * model.friction * t * (1.0 - t * t) / width**2
    return slope * rate, slope * rate_dot + curvature * rate * rate


def _checked(smoothing: float) -> float:
    if not (np.isfinite(smoothing) and smoothing > 0.0):
        raise RbdError(f"smoothing must be a positive speed, got {smoothing!r}")
    return float(smoothing)
