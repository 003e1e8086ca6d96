"""External efforts from the generalized momentum (De Luca and Mattone 2003; Haddadin, De Luca, Albu-Schäffer 2017).

`ṗ = τ + τ_ext + C̄ᵀ v − g` with p = M v gives the mean external effort of a step from the change of p. The residual r is
that mean through the filter K/(s + K), integrated exactly: without error at any K h for external efforts that are
constant within each step, and for a ramp with a lag smaller than the filter's by K h²/12 times its slope. The rate of p
is integrated by Simpson's rule; the state in the middle of a step is that of the cubic (Hermite) through the states at
its ends, unless positions and velocities contradict each other: then that of a constant acceleration.

Coulomb friction of a sticking joint can be anything from −g to g, where the law has `g tanh(v/s)`. The undetermined
part, `g (1 − tanh²(v/s))`, through the same filter, approximately bounds the contribution of sticking to the residual.
"""
from __future__ import annotations

import math
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..compiled.assign import assign
from ..compiled.door import where_suited
from ..compiled.entry import quick_entry
from ..compiled.kernel import kernel
from ..dynamics.friction import (
    Friction, fitting, friction_law, friction_level, friction_load_share, friction_unloaded,
)
from ..dynamics.momentum import SIZE, momentum_recursion
from ..errors import RbdError, shown
from ..lie.spatial import add, cross, scale
from ..model.block import (
    OWNER, all_finite, first_position, first_velocity, kind, node, node_count, put_add, rates_valid, size_v, vector,
)
from ..model.configuration import between_node, integrate_state, positions_valid
from ..model.inertia import Array
from ..model.joint_kinds import has_quaternion, is_free
from ..model.robot_model import RobotModel
from ..model.scalars import positive
from ..model.state import not_a_model, shaped

LAW = len(fields(Friction))
LONGEST = 1.0    # s: longer steps are gaps, which require a reset
# rows of an observer's memory: those of the last state, r, and the uncertainty of r by friction near rest
MOMENTUM, RATE, VELOCITY, RESIDUAL, UNCERTAINTY, ROWS = range(6)
# rows of its scratch
(MEAN_VELOCITY, MIDDLE_VELOCITY, MIDDLE_MOMENTUM, MIDDLE_RATE, NEW_MOMENTUM, NEW_RATE, NEW_RESIDUAL, NEW_UNCERTAINTY,
 STEP, SCRATCH) = range(10)


@kernel
def integral_of_velocity(B, q0, v0, q1, v1, h, out):
    """`∫ v dt` over a step of h from q0 to q1: their difference less what turning axes add (Magnus): h²/12 [v0, v1]."""
    for i in range(node_count(B)):
        o = node(i)
        if B[o + OWNER] == 0.0:
            continue
        j, t = first_velocity(B, o), kind(B, o)
        between_node(B, o, q0, q1, first_position(B, o), out, j)
        if has_quaternion(t):
            w0, w1 = vector(v0, j), vector(v1, j)
            put_add(out, j, scale(-h * h / 12.0, cross(w0, w1)))
            if is_free(t):
                bracket = add(cross(w0, vector(v1, j + 3)), cross(vector(v0, j + 3), w1))
                put_add(out, j + 3, scale(-h * h / 12.0, bracket))


@quick_entry("boolean(float64[::1], float64[::1], float64[::1], float64[::1], float64[::1], float64[::1], "
             "float64[::1], float64[:, ::1], float64, float64[::1], float64[:, ::1], float64[::1], float64[:, ::1])")
def observe_entry(B, q, v, tau, rotors, gain, W, law, h, last, memory, middle, scratch):
    """One step of h (s), zero for the first state: updates positions last (nq,) and memory (ROWS, nv) to those of q, v;
    with mean efforts tau of the step. law (8, nv): of friction at the mean speed of the step; (8, 0) without.
    rotors (nv,): momentum of rotors in addition to that of v. middle (nq,), scratch (SCRATCH, nv). Returns False, with
    memory unchanged, for invalid input or a non-finite result.
    """
    if not (positions_valid(B, q, 1) and rates_valid(B, v, 1) and rates_valid(B, tau, 1) and all_finite(rotors)):
        return False
    momentum_recursion(B, q, v, W, True, scratch[NEW_MOMENTUM], scratch[NEW_RATE])
    if h > 0.0:
        integral_of_velocity(B, last, memory[VELOCITY], q, v, h, scratch[STEP])
        for i in range(size_v(B)):
            before, mean = memory[VELOCITY, i], 0.5 * (memory[VELOCITY, i] + v[i])
            curved = scratch[STEP, i] / h - mean    # h/12 of the change of acceleration
            if not abs(curved) <= abs(before) + abs(v[i]):
                curved = 0.0
            scratch[MEAN_VELOCITY, i] = mean
            scratch[MIDDLE_VELOCITY, i] = mean + 1.5 * curved
            scratch[STEP, i] = h * (0.5 * (mean + curved) + 0.125 * (before - v[i]))
        integrate_state(B, last, 0, scratch[STEP], 0, middle)
        momentum_recursion(B, middle, scratch[MIDDLE_VELOCITY], W, True, scratch[MIDDLE_MOMENTUM], scratch[MIDDLE_RATE])
    for i in range(size_v(B)):
        scratch[NEW_MOMENTUM, i] += rotors[i]
        scratch[NEW_RESIDUAL, i] = 0.0
        scratch[NEW_UNCERTAINTY, i] = 0.0
        if h > 0.0:
            mean = (memory[RATE, i] + 4.0 * scratch[MIDDLE_RATE, i] + scratch[NEW_RATE, i]) / 6.0
            effort = tau[i]
            share = 1.0 - math.exp(-gain[i] * h)
            if law.shape[1] > 0:
                x = (law[0, i], law[1, i], law[2, i], law[3, i], law[4, i], law[5, i], law[6, i], law[7, i])
                u = scratch[MEAN_VELOCITY, i]
                effort = friction_unloaded(friction_load_share(x, u), effort - friction_law(x, u))
                open_part = (friction_level(x, u) + x[7] * abs(effort)) * (1.0 - math.tanh(u / x[4]) ** 2)
                scratch[NEW_UNCERTAINTY, i] = memory[UNCERTAINTY, i] + share * (open_part - memory[UNCERTAINTY, i])
            external = (scratch[NEW_MOMENTUM, i] - memory[MOMENTUM, i]) / h - mean - effort
            scratch[NEW_RESIDUAL, i] = memory[RESIDUAL, i] + share * (external - memory[RESIDUAL, i])
    if not (all_finite(scratch[NEW_MOMENTUM]) and all_finite(scratch[NEW_RATE]) and all_finite(scratch[NEW_RESIDUAL])
            and all_finite(scratch[NEW_UNCERTAINTY])):
        return False
    assign(memory[MOMENTUM], scratch[NEW_MOMENTUM])
    assign(memory[RATE], scratch[NEW_RATE])
    assign(memory[VELOCITY], v)
    assign(memory[RESIDUAL], scratch[NEW_RESIDUAL])
    assign(memory[UNCERTAINTY], scratch[NEW_UNCERTAINTY])
    assign(last, q)
    return True


class MomentumObserver:
    """External joint efforts of a moving robot, from positions, velocities and motor efforts.

    gain: K of the filter K/(s + K) from external efforts to their estimate, 1/s, a number or (nv,); 25 to 100 at 1 kHz.
    friction: `Friction` of the joints, or None. Any joint kinds, a floating base and mimic joints. With elastic joints,
    either `tau` is the torque of the springs and the model's `armature` zero, or `motor_velocity` is given.

        >>> model = rbd.sample("two_link")
        >>> observer, q, v = rbd.MomentumObserver(model, gain=50.0), np.array([0.3, 0.5]), np.zeros(2)
        >>> held = rbd.gravity_effort(model, q) + [3.0, 0.0]    # the arm rests against something
        >>> for _ in range(500): external = observer.update(0.001, q, v, held)
        >>> external.round(6)
        array([-3.,  0.])
    """

    def __init__(self, model: RobotModel, gain: ArrayLike = 50.0, friction: Friction | None = None) -> None:
        if not hasattr(model, "_block"):
            raise not_a_model(model)
        try:
            gains = np.array(np.broadcast_to(np.asarray(gain, dtype=np.float64), model.nv))
        except (TypeError, ValueError):
            gains = np.full(1, np.nan)
        if not (np.isfinite(gains).all() and (gains > 0.0).all()):
            raise RbdError(f"gain: expected a positive number or {model.nv} of them, 1/s, got {shown(gain)}")
        self.model, self.gain = model, gains
        self._memory = np.zeros((ROWS, model.nv))
        self._law = np.empty((LAW, 0)) if friction is None else np.array(
            np.broadcast_to(fitting(model, friction).packed, (LAW, model.nv)), order="C")
        self._work = np.empty(SIZE * len(model._node_rows))
        self._scratch = np.zeros((SCRATCH, model.nv))
        self._last, self._middle = np.zeros((2, model.nq))
        self._zeros = np.zeros(model.nv)
        self._started = False

    @property
    def external_effort(self) -> Array:
        """The last estimate (nv,), N m or N; zero before the first update."""
        return self._memory[RESIDUAL].copy()

    @property
    def friction_uncertainty(self) -> Array:
        """Uncertainty of the last estimate by friction of joints near rest (nv,), N m or N; zero for joints in motion,
        and without friction law.
        """
        return self._memory[UNCERTAINTY].copy()

    def reset(self, q: ArrayLike, v: ArrayLike, *, motor_velocity: ArrayLike | None = None) -> None:
        """Restart from this state, with an estimate of zero."""
        self._step(0.0, q, v, self._zeros, motor_velocity)
        self._started = True

    def update(self, dt: float, q: ArrayLike, v: ArrayLike, tau: ArrayLike, *,
               motor_velocity: ArrayLike | None = None) -> Array:
        """The external effort (nv,), applied by the environment, after a step of dt (s) that ends at q, v.

        tau (nv,): mean effort of the motors over the step, with friction, after saturation: the held command, or the
        mean of the measurements at both ends. motor_velocity (nv,): of elastic joints, whose `armature` in the model is
        that of the motors; tau is then the effort of the motors. The first call only sets the state. Raises `RbdError`,
        without change of state, for invalid numbers and for a dt above 1 s: after a gap, call `reset`.
        """
        step = dt if type(dt) is float and 0.0 < dt <= LONGEST else positive(dt, "dt", "time")
        if step > LONGEST:
            raise RbdError(f"dt: expected at most {LONGEST:g} s, got {step:g}: the efforts within a gap are unknown; "
                           "reset the observer")
        if not self._started:
            self.reset(q, v, motor_velocity=motor_velocity)
            return self.external_effort
        self._step(step, q, v, tau, motor_velocity)
        return self.external_effort

    def _step(self, h: float, q: Any, v: Any, tau: Any, motor_velocity: Any) -> None:
        model = self.model
        if motor_velocity is None and where_suited(self._observe, h, q, v, tau, self._zeros):
            return
        inputs = shaped(model, positions={"q": q}, rates={"v": v, "tau": tau} | (
            {} if motor_velocity is None else {"motor_velocity": motor_velocity}))
        if inputs.batch is not None:
            raise RbdError("the observer takes one state: expected one-dimensional arrays")
        rotors = self._zeros
        if motor_velocity is not None:
            inputs.check_values()
            rotors = model.armature * (inputs.arrays[3] - inputs.arrays[1])
        q, v, tau = inputs.arrays[:3]
        if not self._observe(h, q, v, tau, rotors):
            momentum, rate, external = self._scratch[[NEW_MOMENTUM, NEW_RATE, NEW_RESIDUAL]]
            inputs.refuse(momentum=momentum, rate=rate, external_effort=external)

    def _observe(self, h: float, q: Any, v: Any, tau: Any, rotors: Any) -> bool:
        return bool(observe_entry.call(self.model._block, q, v, tau, rotors, self.gain, self._work, self._law, h,
                                       self._last, self._memory, self._middle, self._scratch))
