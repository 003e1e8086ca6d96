"""Control law of a robot with elastic joints: unlimited motor efforts for a reference of links (and stiffness).

| mode                     | motor effort                                                                        |
|--------------------------|-------------------------------------------------------------------------------------|
| `feed_forward`           | τ_m of the flatness map                                                             |
| `feed_forward_pd`        | τ_m + Kp (θ_ref − θ) + Kd (θ̇_ref − θ̇), all motors (stable as the motor side is)     |
| `feedback_linearization` | the error dynamics of `gains`, from the measured motion of links and motors         |

A rigid joint's motor is the joint. An effort held for a period acts with a delay of half a period; in feedback
linearisation, which places the poles of the springs' modes, the delay reduces damping. `look_ahead` compensates it.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..errors import RbdError, shown, unknown_name
from ..model.inertia import Array
from ..model.scalars import positive
from ..model.state import real
from .actuation import Actuation, SeriesDrive
from .damped_deflection import DampedDeflection
from .feedback_linearization import FeedbackLinearization, feedback_linearization
from .motor_reference import MotorReference, flat_motors, link_efforts, motor_reference
from .poles import FeedbackGains
from .spring_motion import Motion

Rows = Any    # five arrays (nv,): q, v, a, jerk, snap; or an array (5, nv)
MODES = ("feed_forward", "feed_forward_pd", "feedback_linearization")


@dataclass(frozen=True, eq=False)
class ElasticLawSettings:
    """mode: of `MODES`. period: of the control, s. kp, kd: of all motors, a number or (nm,), N m/rad and N m s/rad.

    gains: of the error dynamics (`FeedbackGains.placed`). look_ahead: of `feedback_linearization`, in periods.

        >>> rbd.ElasticLawSettings(period=0.001, kp=100.0, kd=10.0).mode
        'feed_forward_pd'
    """

    period: float
    mode: str = "feed_forward_pd"
    kp: ArrayLike = 0.0
    kd: ArrayLike = 0.0
    gains: FeedbackGains | None = None
    look_ahead: float = 0.5


class ElasticState(NamedTuple):
    """Measured state: q, v (nv,) of the links; motor_position, motor_velocity (nm,), behind the gears."""

    q: Array
    v: Array
    motor_position: Array
    motor_velocity: Array


class ElasticCommand(NamedTuple):
    """effort (nm,) for the motors; reference: their motion by the flatness map, for drives with a position loop.
    """

    effort: Array
    reference: MotorReference


class ElasticLaw:
    """Computes the command of one robot once per period; call `reset` before a new motion.

    Springs with damping have a state, the deflection of the reference. In `feedback_linearization`, dampers that
    settle within two periods (D/K < 2 periods) are ignored: no sampled control could use them.

        >>> model = rbd.sample("two_link")
        >>> drive = rbd.SeriesDrive(rbd.SeriesSpring([500.0]), motor=rbd.Motor(rotor_inertia=1e-4, gear_ratio=100.0))
        >>> arm = rbd.Actuation(model, {"shoulder": drive, "elbow": drive})
        >>> law = rbd.ElasticLaw(arm, rbd.ElasticLawSettings(period=0.001, kp=100.0, kd=10.0))
        >>> law.gains is None
        False
    """

    def __init__(self, actuation: Actuation, settings: ElasticLawSettings) -> None:
        if settings.mode not in MODES:
            raise unknown_name("mode", settings.mode, MODES)
        positive(settings.period, "period", "time in seconds")
        if settings.mode == "feedback_linearization" and settings.gains is None:
            raise RbdError("feedback_linearization needs gains: FeedbackGains.placed(actuation, poles)")
        self.actuation, self.settings = actuation, settings
        self._kp, self._kd = (_gains(actuation, name, getattr(settings, name)) for name in ("kp", "kd"))
        self._slow = without_fast_dampers(actuation, 2.0 * settings.period)
        self._linearized: FeedbackLinearization | None = None
        self.reset()

    @property
    def gains(self) -> tuple[Array, Array] | None:
        """Kp and Kd (nm,) of the PD, None without one."""
        return (self._kp, self._kd) if self.settings.mode == "feed_forward_pd" else None

    def reset(self) -> None:
        """Forget the deflections and accelerations of the last period."""
        self._deflection: DampedDeflection | None = None
        self._linearized = None

    def command(self, reference: ArrayLike, state: ElasticState | None = None,
                stiffness: ArrayLike | None = None, efforts: ArrayLike | None = None,
                share: float = 1.0) -> ElasticCommand:
        """The command for reference (5, nv): q, v, a, jerk, snap, and stiffness (n,) or (3, n): k, k̇, k̈ of the
        joints in `Actuation.variable`, by default that of their drives.

        state: measured, needed by all modes but `feed_forward`. efforts: link-side τ, τ̇, τ̈ (3, nv) of the reference
        for the flatness map, by default `link_efforts`. share: factor of the PD feedback. Raises `RbdError` naming the
        invalid input, or the joint whose spring cannot produce the effort.
        """
        r = real(reference, "reference", f"(5, {self.actuation.nv})")
        if r.shape != (5, self.actuation.nv):
            raise RbdError(f"reference has shape {r.shape}, expected (5, {self.actuation.nv}): q, v, a, jerk, snap")
        efforts = link_efforts(self.actuation, *r) if efforts is None else efforts
        motors = motor_reference(self.actuation, r[0], r[1], r[2], efforts, stiffness, self._advanced(efforts))
        if state is None and self.settings.mode != "feed_forward":
            raise RbdError(f"mode {self.settings.mode} needs the measured state")
        return self._commanded(motors, r, None if state is None else self._measured(state), stiffness, share)

    def follow(self, reference: Rows, state: ElasticState, stiffness: Array, efforts: Sequence[Array],
               share: float = 1.0) -> ElasticCommand:
        """`command` for finite inputs: five arrays of the reference, three of the efforts, and stiffness (3, n).
        The result may be non-finite.
        """
        deflection = self._advanced(np.stack(efforts)) if self.actuation.damped.size else None
        motors = flat_motors(self.actuation, Motion(*reference[:3]), Motion(*efforts), Motion(*stiffness), deflection)
        return self._commanded(motors, reference, state, stiffness, share)

    def _commanded(self, motors: MotorReference, r: Rows, state: ElasticState | None,
                   stiffness: ArrayLike | None, share: float) -> ElasticCommand:
        mode = self.settings.mode
        if mode == "feed_forward" or state is None:
            return ElasticCommand(motors.effort, motors)
        if mode == "feed_forward_pd":
            return ElasticCommand(motors.effort + share * self.feedback(motors, state), motors)
        return ElasticCommand(self._linearizing(np.stack(r), state, stiffness), motors)

    def _measured(self, state: ElasticState) -> ElasticState:
        nv, nm = self.actuation.nv, self.actuation.nm
        arrays = []
        for name, value, size in zip(ElasticState._fields, state, (nv, nv, nm, nm), strict=True):
            array = real(value, name, f"({size},)")
            if array.shape != (size,) or not np.isfinite(array).all():
                raise RbdError(f"measured {name}: expected {size} finite numbers, got {shown(value)}")
            arrays.append(array)
        return ElasticState(*arrays)

    def feedback(self, motors: MotorReference, state: ElasticState) -> Array:
        """Kp (θ_ref − θ) + Kd (θ̇_ref − θ̇) (nm,)."""
        return (self._kp * (motors.position - state.motor_position)
                + self._kd * (motors.velocity - state.motor_velocity))

    def _advanced(self, efforts: ArrayLike) -> Array | None:
        """Deflection of the reference of damped springs, one period later; None without damped springs."""
        if not self.actuation.damped.size:
            return None
        if self._deflection is None:
            self._deflection = DampedDeflection(self.actuation, self.settings.period, efforts)
            return self._deflection.value
        return self._deflection.advance(efforts)

    def _linearizing(self, r: Array, state: ElasticState, stiffness: ArrayLike | None) -> Array:
        gains, last = self.settings.gains, self._linearized
        assert gains is not None
        h = self.settings.look_ahead * self.settings.period
        q, v, z, w = state
        if last is not None and h > 0.0:    # with the accelerations of the last period
            q, v = q + h * (v + 0.5 * h * last.acceleration), v + h * last.acceleration
            z, w = z + h * (w + 0.5 * h * last.motor_acceleration), w + h * last.motor_acceleration
            r = ahead(r, h)
        self._linearized = feedback_linearization(self._slow, gains, q, v, z, w, r, stiffness)
        return self._linearized.effort


def ahead(reference: Array, h: float) -> Array:
    """The reference (5, nv) extrapolated by h seconds at constant snap."""
    q, v, a, j, s = reference
    return np.stack([q + h * (v + h / 2.0 * (a + h / 3.0 * (j + h / 4.0 * s))),
                     v + h * (a + h / 2.0 * (j + h / 3.0 * s)), a + h * (j + h / 2.0 * s), j + h * s, s])


def without_fast_dampers(actuation: Actuation, time: float) -> Actuation:
    """The drives without the dampers whose time constant D/K is shorter than `time` (s)."""
    changed: Mapping[str, SeriesDrive] = {
        name: replace(drive, damping=0.0) for name, drive in actuation.drives.items()
        if isinstance(drive, SeriesDrive) and 0.0 < drive.damping < time * drive.spring.coefficients[0]}
    return Actuation(actuation.model, {**actuation.drives, **changed}) if changed else actuation


def _gains(actuation: Actuation, name: str, value: ArrayLike) -> Array:
    array = real(value, name, f"({actuation.nm},)")
    if array.shape not in ((1,), (actuation.nm,)) or not np.isfinite(array).all() or np.any(array < 0.0):
        raise RbdError(f"{name}: expected one number or {actuation.nm} (one per motor), none negative, got "
                       f"{shown(value)}")
    return np.broadcast_to(array, actuation.nm)
