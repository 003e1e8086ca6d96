"""The controller of a robot with elastic joints: motor efforts and motor references beside the efforts of the links.

A joint state is answered with link-side τ, τ̇, τ̈ of the reference, as in the rigid form, with the motors' motion by the
flatness map, and with motor efforts by the law of `elastic_law`. Both efforts go through safety filters in the same
mode. Whatever stands in the way of a command makes all outputs safe: a motor state that is missing or stale (needed by
all modes but `feed_forward`), a reference without jerk and snap, a spring that cannot carry the torque or reach the
stiffness. It is counted, and `problem` says what it is.

The safe effort of the motors holds gravity behind the springs, with the stiffness that is wanted, and brakes each
motor by its own velocity while that is known: at the motor, damping takes energy out of every mode of the springs.
"""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..actuation.flatness import MotorReference, motor_reference
from ..dynamics.mass_matrix import mass_matrix
from ..errors import RbdError
from ..model.robot_model import RobotModel
from .elastic_settings import ElasticSettings, held
from .flatness import FlatnessController
from .elastic_law import ElasticLaw, ElasticState
from .inputs import all_finite
from .motor_input import MotorInput
from .motor_ramp import MotorRamp
from .paired_filter import PairedFilter
from .stiffness_filter import StiffnessFilter
from .torque_settings import TorqueSettings
from .trajectory import Reference

Array = NDArray[np.float64]
SETTLING = 3      # cycles in which `feedback_linearization` may jump after a change, as it looks ahead by its last one
BRAKING = 0.2    # the most that braking takes from a motor's own momentum in one period


class ElasticController(FlatnessController):
    """Joint and motor states in, efforts of joints and motors out; `now` is a steady time in s.

    `motors`: the motors of the last command by the flatness map, None while the output is safe. `motor_effort` (nm,):
    the last output for them, in the order of `Actuation.motor_names`. `problem`: why there was no command, or "".
    """

    settings: ElasticSettings
    safety: PairedFilter

    def __init__(self, model: RobotModel, settings: ElasticSettings) -> None:
        super().__init__(model, settings)
        self.actuation = settings.actuation
        self.motor_state = MotorInput(self.actuation, self.rejections, settings.safety.state_timeout,
                                      settings.plausible_velocity)
        self.safety = PairedFilter(settings.safety, self.safe_effort, settings.motors, self.safe_motors)
        self.problem = ""
        self.counts = {"motor_state_missing": 0, "reference_incomplete": 0, "impossible": 0}
        self._ramp, self._unsettled = MotorRamp(), 0
        self._now = self._last_stamp = 0.0
        self._law = ElasticLaw(settings.actuation, settings.law)
        self._stiffness = StiffnessFilter(settings.stiffness, settings.stiffness_poles)

    def apply(self, settings: TorqueSettings) -> None:
        assert isinstance(settings, ElasticSettings)
        super().apply(settings)
        self.actuation = settings.actuation
        self.motor_state.timeout = settings.safety.state_timeout
        self.motor_state.allow(settings.plausible_velocity)
        self.safety.motors.settings = settings.motors
        self._law = ElasticLaw(settings.actuation, settings.law)
        self._stiffness.aim(settings.stiffness, settings.stiffness_poles)

    def clear(self) -> None:
        super().clear()
        self.motor_state.clear()
        self._forget()
        self._stiffness.reset()

    def _forget(self) -> None:
        """The next command is the first one."""
        self._law.reset()
        self._ramp.forget()
        self._last_stamp = 0.0

    # ---- inputs

    def on_motor_state(self, now: float, stamp_ns: int, names: Sequence[str], position: ArrayLike,
                       velocity: ArrayLike) -> bool:
        """Take a state of the motors; False if it was rejected."""
        return self.motor_state.accept(now, stamp_ns, names, position, velocity)

    def on_state(self, now: float, stamp_ns: int, names: Sequence[str], position: ArrayLike, velocity: ArrayLike = (),
                 effort: ArrayLike = ()) -> Array | None:
        self._now = now
        return super().on_state(now, stamp_ns, names, position, velocity, effort)

    # ---- outputs

    @property
    def motors(self) -> MotorReference | None:
        return self._ramp.last if self.safety.motors.mode in ("ramp_in", "running") else None

    @property
    def motor_effort(self) -> Array | None:
        return self.safety.motors.output

    def command(self, now: float) -> Array | None:
        self.rates, self.safety.motor_command, self.problem = None, None, ""
        reference = self.desired(now)
        effort = None if reference is None else self._command(now, reference)
        if effort is None:
            self._forget()
        return effort

    def _command(self, now: float, reference: Reference) -> Array | None:
        if self.settings.law.mode != "feed_forward" and not self.motor_state.fresh(now):
            return self._refuse("motor_state_missing", "no motor state that is fresh")
        if reference.jerk is None or reference.snap is None:
            return self._refuse("reference_incomplete", "the reference has no jerk and snap, which elastic joints need")
        elapsed = self._elapsed()
        state = ElasticState(self.state.q, self.state.v, *self.motor_state.measured(self.state.q, self.state.v))
        try:
            effort, rates = self.feedforward(reference, self.fresh_wrenches(now))
            assert rates is not None
            command = self._law.command(np.stack([reference.q, reference.v, reference.a, reference.jerk,
                                                  reference.snap]), state, self._stiffness.advance(elapsed),
                                        np.vstack([effort, rates]))
            self._lead_in(now, command.reference)
        except RbdError as error:
            return self._refuse("impossible", str(error))
        if not all_finite(command.effort):
            return self._refuse("impossible", "the motor effort is not finite")
        self.rates, self.safety.motor_command = rates, command.effort
        return effort

    def soften(self) -> None:
        super().soften()
        self._unsettled = SETTLING

    def _lead_in(self, now: float, wanted: MotorReference) -> None:
        """Let the motor reference out, within `ramp_in` from where the motors are, after a change from where it was."""
        duration, time = self.settings.safety.ramp_in, self._last_stamp
        jumps, self._unsettled = self._unsettled > 0, max(self._unsettled - 1, 0)
        if jumps:
            self.safety.soften()
        if duration > 0.0 and (self._ramp.last is None or self.safety.motors.mode not in ("ramp_in", "running")):
            self._ramp.begin(time, self._present(now, wanted), wanted, duration)
        elif duration > 0.0 and jumps:
            self._ramp.jump(time, wanted, duration)
        self._ramp.follow(time, wanted)

    def _present(self, now: float, like: MotorReference) -> MotorReference:
        """The motors as measured; unless they are, where they hold gravity, or `RbdError` if springs do not bear it."""
        if self.motor_state.fresh(now):
            position, velocity = self.motor_state.measured(self.state.q, self.state.v)
        else:
            position, velocity = self._holding().position, 0.0 * like.velocity
        return like._replace(position=position, velocity=velocity, acceleration=0.0 * like.acceleration,
                             effort=self.safe_motors(True))

    def _holding(self) -> MotorReference:
        """The motors that hold gravity at rest in the last state; `RbdError` if it is more than the springs bear."""
        return motor_reference(self.actuation, self.state.q, self._zero, self._zero,
                               [self.safe_effort(True), self._zero, self._zero], self._stiffness.value[0])

    def _elapsed(self) -> float:
        """Time since the last command (s), after which damped springs have moved on by a period, or begin anew."""
        stamp = self.state.stamp_ns * 1e-9 if self.state.stamp_ns else self._now
        elapsed = stamp - self._last_stamp if self._last_stamp else 0.0
        self._last_stamp = stamp
        if elapsed > 1.5 * self.settings.law.period:
            self._law.reset()
        return elapsed

    def _refuse(self, kind: str, problem: str) -> Array | None:
        self.counts[kind] += 1
        self.problem = problem
        return None

    def safe_motors(self, at_rest: bool) -> Array:
        """Motor efforts (nm,) that hold gravity in the last state; braking, unless `at_rest`."""
        q, v = self.state.q, self.state.v
        try:
            effort = self._holding().effort
        except RbdError:
            effort = held(self.actuation, self.safe_effort(True))
        if not at_rest and self.motor_state.fresh(self._now):
            effort = effort - self._braking(q) * self.motor_state.measured(q, v)[1]
        return effort

    def _braking(self, q: Array) -> Array:
        """Damping of the motors (nm,), N m s/rad: what slows the arm down at the wanted rate, as far as sampling allows
        it.
        """
        actuation, nv = self.actuation, self.actuation.nv
        rate, period = self.settings.safe_damping, self.statistics.period
        links = np.zeros(actuation.nm)
        links[:nv] = np.diag(mass_matrix(self.model, q))
        for at, spring in actuation.groups:
            if spring.antagonistic:    # two motors share the link
                first = actuation.variable[at]
                links[nv + at] = links[first] = 0.5 * links[first]
        own = actuation.inertia.copy()
        own[actuation.rigid] = 0.0    # part of the link
        damping = rate * (own + links)
        most = np.where(own > 0.0, BRAKING * own / period if 0.0 < period < math.inf else rate * own, math.inf)
        return np.minimum(damping, most)

    def warm_up(self) -> None:
        super().warm_up()
        q, law = self.model.neutral(), self._law
        reference = np.zeros((5, self.model.nv))
        reference[0] = q
        state = ElasticState(q, self._zero, *np.zeros((2, self.actuation.nm)))
        for _ in range(2):
            try:
                law.command(reference, state, self._stiffness.value)
            except RbdError:    # in another state it may work
                break
        mass_matrix(self.model, q)
        self._law.reset()

    def report(self) -> dict[str, Any]:
        motors = self.safety.motors
        return super().report() | {
            "control_mode": self.settings.law.mode, "motor_mode": motors.mode,
            "motor_saturated": motors.counts["saturated"], "motor_rate_limited": motors.counts["rate_limited"],
            **self.counts, "problem": self.problem}
