"""Fixed-step integrators of `q̇ = v, v̇ = acceleration(q, v)` on the configuration group.

Positions change by `model.integrate` only, so quaternions stay on the group, and methods keep their order for spherical
and floating joints. `acceleration`: any function from (q, v) to (nv,).
"""
from __future__ import annotations

from collections.abc import Callable

from ..model.inertia import Array
from ..model.robot_model import RobotModel

Acceleration = Callable[[Array, Array], Array]
Integrator = Callable[[RobotModel, Acceleration, Array, Array, float], tuple[Array, Array]]


def move(model: RobotModel, q: Array, dv: Array) -> Array:
    """`model.integrate`; for plain coordinates a sum without checks."""
    return q + dv if model.nq == model.nv else model.integrate(q, dv)


def semi_implicit_euler(model: RobotModel, acceleration: Acceleration, q: Array, v: Array,
                        step: float) -> tuple[Array, Array]:
    """One step (s) of order 1: the new velocity moves the position. q (nq,), v (nv,); returns the next (q, v)."""
    v = v + step * acceleration(q, v)
    return move(model, q, step * v), v


def runge_kutta_4(model: RobotModel, acceleration: Acceleration, q: Array, v: Array,
                  step: float) -> tuple[Array, Array]:
    """One step (s) of order 4. q (nq,), v (nv,); returns the next (q, v).

    Commutator-free Lie group method of Celledoni, Marthinsen and Owren (2003); on vector spaces it is the classical
    Runge–Kutta method. Body velocities multiply from the right, so the factors stand in the order of time.
    """
    half = 0.5 * step
    a1 = acceleration(q, v)
    q2 = move(model, q, half * v)
    v2 = v + half * a1
    a2 = acceleration(q2, v2)
    v3 = v + half * a2
    a3 = acceleration(move(model, q, half * v2), v3)
    v4 = v + step * a3
    a4 = acceleration(move(model, q2, step * v3 - half * v), v4)
    middle = 2.0 * (v2 + v3)
    q = move(model, q, step / 12.0 * (3.0 * v + middle - v4))
    q = move(model, q, step / 12.0 * (-v + middle + 3.0 * v4))
    return q, v + step / 6.0 * (a1 + 2.0 * (a2 + a3) + a4)


INTEGRATORS: dict[str, Integrator] = {"semi_implicit": semi_implicit_euler, "rk4": runge_kutta_4}
# Times of the calls of `acceleration`, in order, relative to the step.
NODES: dict[str, tuple[float, ...]] = {"semi_implicit": (0.0,), "rk4": (0.0, 0.5, 0.5, 1.0)}
# Times relative to the step at which kernels for many steps take efforts (`effort_at`).
SAMPLES: dict[str, tuple[float, ...]] = {"variational": (0.5,), "semi_implicit": (0.0,),
                                         "rk4": (0.0, 0.25, 0.5, 0.75, 1.0)}
# Names for users; `variational` is implemented separately (`variational.py`).
NAMES = ("variational", *INTEGRATORS)
