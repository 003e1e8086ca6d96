"""`ElasticSimulator`: simulation of links and motors of a robot with elastic joints, in fixed stable steps."""
from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..actuation.actuation import Actuation
from ..actuation.motor_reference import motor_reference
from ..dynamics.inverse import gravity_effort
from ..dynamics.mass_matrix import mass_matrix
from ..errors import RbdError, shown
from ..model.inertia import Array
from ..model.scalars import step_count
from ..model.state import real, states
from .simulator import Effort, Simulator, _view
from .springs import ArmSprings, with_rotors

RESOLUTION = 0.25    # product of default step and rate of the stiffest mode
STABILITY = 2.5      # largest product for rk4: radius of its stability region left of the imaginary axis
CHECK_EVERY = 50     # steps between checks of the step size


class ElasticSimulator:
    """State of a simulated robot with `actuation`: links `q`, `v` (nv,), motors `motor_position`, `motor_velocity`
    (nm,) in the order of `actuation.motor_names`, `time` (s); `step` advances it.

    step: s; by default a quarter of the time constant of the stiffest mode at the start. integrator: `variational`
    (order 2) or `semi_implicit` (order 1), with implicit springs and damping, stable at any stiffness; or `rk4` (order
    4; raises `RbdError`, here or in `step`, if the step is too long for the stiffest spring). Friction of motors and
    links is not smoothed, links stop at their limits, external wrenches act on links: all as in `Simulator`.

        >>> model = rbd.sample("two_link")
        >>> drive = rbd.SeriesDrive(rbd.SeriesSpring([500.0]), motor=rbd.Motor(rotor_inertia=1e-4, gear_ratio=100.0))
        >>> arm = rbd.Actuation(model, {"shoulder": drive, "elbow": drive})
        >>> simulated = rbd.ElasticSimulator(arm, q=[0.3, 0.5])
        >>> simulated.q
        array([0.3, 0.5])
    """

    def __init__(self, actuation: Actuation, *, step: float | None = None, integrator: str = "variational",
                 limits: bool = True, q: ArrayLike | None = None, v: ArrayLike | None = None,
                 motor_position: ArrayLike | None = None, motor_velocity: ArrayLike | None = None) -> None:
        self.actuation, self.model = actuation, actuation.model
        self._springs = ArmSprings(actuation)
        full, friction = with_rotors(actuation)
        x, rate = self._state(q, v, motor_position, motor_velocity, limits)
        self._full = full
        if step is None:
            step = _round_down(RESOLUTION / max(self._stiffest(x)[0], 1.0))
        self._simulator = Simulator(full, step=step, integrator=integrator, limits=limits, q=x, v=rate,
                                    springs=self._springs, friction=friction)
        self._limits = limits
        self.step_size, self.integrator = self._simulator.step_size, integrator
        self._check_step()

    def reset(self, q: ArrayLike | None = None, v: ArrayLike | None = None, motor_position: ArrayLike | None = None,
              motor_velocity: ArrayLike | None = None) -> None:
        """Put the robot into a state at time zero: q (nv,), by default neutral (within the limits); v (nv,), 0; motors
        (nm,), by default carrying the weight of the resting links, each moving as its link does.
        """
        x, rate = self._state(q, v, motor_position, motor_velocity, self._limits)
        if self.integrator == "rk4":
            self._check_rate(x)    # before any change
        self._simulator.reset(x, rate)

    def _state(self, q: Any, v: Any, z: Any, z_rate: Any, limits: bool) -> tuple[Array, Array]:
        """Coordinates (links, rotors) and their rates."""
        actuation, model = self.actuation, self.model
        if q is None:
            q = np.clip(model.neutral(), model.position_lower, model.position_upper) if limits else model.neutral()
        q, v = states(model, positions={"q": q}, rates={"v": np.zeros(model.nv) if v is None else v}).arrays
        if q.ndim != 1:
            raise RbdError(f"a simulator has one state: q has shape {q.shape}, expected ({model.nq},)")
        still = np.zeros(model.nv)
        rest = motor_reference(actuation, q, v, still, [gravity_effort(model, q), still, still])
        z = rest.position if z is None else self._motors("motor_position", z)
        z_rate = rest.velocity if z_rate is None else self._motors("motor_velocity", z_rate)
        x, rate = np.zeros((2, self._springs.size))
        x[self._springs.motors], rate[self._springs.motors] = z, z_rate
        x[:model.nv], rate[:model.nv] = q, v
        return x, rate

    def _motors(self, name: str, values: Any) -> Array:
        nm = self.actuation.nm
        array = real(values, name, f"({nm},)")
        if array.shape != (nm,) or not np.isfinite(array).all():
            raise RbdError(f"{name}: expected {nm} finite numbers, one per motor "
                           f"({', '.join(self.actuation.motor_names)}), got {shown(values)}")
        return array

    # ---- state

    @property
    def q(self) -> Array:
        """Positions of the links (nv,), read-only."""
        return _view(self._simulator.q[:self.model.nv])

    @property
    def v(self) -> Array:
        """Velocities of the links (nv,), read-only."""
        return _view(self._simulator.v[:self.model.nv])

    @property
    def motor_position(self) -> Array:
        """Positions of the motors (nm,)."""
        return np.asarray(self._simulator.q[self._springs.motors])

    @property
    def motor_velocity(self) -> Array:
        """Velocities of the motors (nm,)."""
        return np.asarray(self._simulator.v[self._springs.motors])

    @property
    def brakes(self) -> Array:
        """Friction (nm,) of brakes at the motors, behind the gears, as in `Simulator`."""
        return self._simulator.brakes[self._springs.motors]

    @brakes.setter
    def brakes(self, friction: ArrayLike | None) -> None:
        brakes = np.zeros(self._springs.size)
        if friction is not None:
            brakes[self._springs.motors] = self._motors("brakes", friction)
        self._simulator.brakes = brakes

    creeps = False    # joints held by friction do not creep

    @property
    def torque(self) -> Array:
        """Link-side torques of the springs and their dampers (nv,), as joint torque sensors measure; 0 at rigid
        joints.
        """
        return self._springs.torque(self._simulator.q, self._simulator.v)

    @property
    def stiffness(self) -> Array:
        """Stiffness of the springs now (nv,), N m/rad; inf at rigid joints."""
        return self._springs.joint_stiffness(self._simulator.q)

    @property
    def time(self) -> float:
        """Simulated time since the last reset (s)."""
        return self._simulator.time

    @property
    def steps(self) -> int:
        """Steps since the last reset."""
        return self._simulator.steps

    @property
    def energy(self) -> float:
        """Kinetic and potential energy of links, rotors and springs (J)."""
        return self._simulator.energy

    # ---- motion

    def step(self, motor_effort: Effort | None = None, n: int = 1, external_wrenches: Any = None) -> None:
        """Advance n steps with motor efforts (nm,) (N m or N, behind the gear; default 0) and external wrenches.

        motor_effort: constant, or a function of `time` (s), evaluated whenever the integrator needs it.
        external_wrenches: constant, `{body: (6,)}` or (nb, 6), as in `Simulator.step`. Raises `RbdError` if the step
        is too long for rk4, or if the motion diverges.
        """
        wrenches = self._wrenches(external_wrenches)
        if callable(motor_effort):
            function = motor_effort
            effort: Effort = lambda time: self._efforts(function(time))    # noqa: E731
        else:
            effort = self._efforts(motor_effort)
        remaining = step_count(n)
        while remaining:
            chunk = min(remaining, CHECK_EVERY - self.steps % CHECK_EVERY)
            self._simulator.step(effort, chunk, wrenches)
            remaining -= chunk
            if self.steps % CHECK_EVERY == 0:
                self._check_step()

    def _efforts(self, motor_effort: ArrayLike | None) -> Array:
        out = np.zeros(self._springs.size)
        if motor_effort is not None:
            out[self._springs.motors] = self._motors("motor_effort", motor_effort)
        return out

    def _wrenches(self, given: Any) -> Any:
        """Wrenches on the links as wrenches on the bodies of the simulated model, which includes rotors."""
        if given is None or isinstance(given, Mapping):
            return given
        nb = len(self.model.body_names)
        array = real(given, "external_wrenches", f"({nb}, 6)")
        if array.shape != (nb, 6):
            raise RbdError(f"external_wrenches has shape {array.shape}, expected {{body: (6,)}} or ({nb}, 6)")
        return dict(zip(self.model.body_names, array, strict=True))

    # ---- the step

    def _stiffest(self, x: Array) -> tuple[float, int]:
        """Bound (1/s) of the rates of all modes of springs and dampers at x, and the dominant coordinate of the
        stiffest mode: |λ| ≤ (d + √(d² + 4ω²))/2, with d and ω² the largest rates of damping and of springs.
        """
        try:
            inverse = np.linalg.inv(np.linalg.cholesky(mass_matrix(self._full, x)))
            squares, modes = np.linalg.eigh(inverse @ self._springs.stiffness(x) @ inverse.T)
            damping = self._springs.damping + np.diag(self._full.damping)
            d = float(np.linalg.eigvalsh(inverse @ damping @ inverse.T)[-1])
            rate = 0.5 * (d + math.hypot(d, 2.0 * math.sqrt(max(float(squares[-1]), 0.0))))
        except np.linalg.LinAlgError:    # for singular or non-finite matrices
            rate = math.nan
        if not math.isfinite(rate):
            raise RbdError(f"springs and inertias of model '{self.model.name}' have no modes of finite rate at links "
                           f"{x[:self.model.nv]}, motors {x[self._springs.motors]}: its mass matrix is singular there, "
                           "or the state is beyond what floating point numbers hold")
        return rate, int(np.argmax(np.abs(modes[:, -1])))

    def _check_step(self) -> None:
        if self.integrator != "rk4":
            return
        self._check_rate(np.asarray(self._simulator.q))

    def _check_rate(self, x: Array) -> None:
        rate, index = self._stiffest(x)
        if rate * self.step_size > STABILITY:
            joint = self._full.joint_names[index].split("/")[0]
            raise RbdError(f"step {self.step_size:g} s is too long for rk4 at {self.time:g} s: springs and inertias "
                           f"move at {rate:.3g} 1/s about joint '{joint}'; use at most {STABILITY / rate:.1e} s, or "
                           "the integrator variational")


def _round_down(time: float) -> float:
    """The largest of 1, 2, 5 times a power of ten that is not longer, at most 1 ms."""
    power = 10.0 ** math.floor(math.log10(time))
    return min(next(k * power for k in (5.0, 2.0, 1.0) if k * power <= time * (1.0 + 1e-9)), 1e-3)


