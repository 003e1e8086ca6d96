"""Controller of a robot with elastic joints: motor efforts and motor references in addition to joint efforts.

Each joint state is answered with link-side τ, τ̇, τ̈ of the reference, as for rigid joints, with the motors' motion by
the flatness map, and with motor efforts by the law of `elastic_law`. Joint and motor efforts pass safety filters in
the same mode. All outputs fall back to the safe effort if there is no command: for a missing or stale motor state
(needed by all modes but `feed_forward`), a reference without jerk and snap, or a spring that cannot carry the torque or
reach the stiffness. The cause is counted and reported in `Command.problem`.

The safe effort of the motors holds gravity through the springs, at the desired stiffness, and damps each motor's own
velocity while that is known: damping at the motor dissipates energy of every mode of the springs.
"""
from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...core.actuation.elastic_law import ElasticState
from ...core.actuation.motor_reference import MotorReference, motor_reference
from ...core.dynamics.mass_matrix import mass_matrix
from ...core.errors import RbdError
from ...core.model.robot_model import RobotModel
from ...core.motion import smooth_trajectory
from ...core.motion.trajectory import Reference
from ..inputs.finite import all_finite
from ..inputs.joint_map import Turns
from ..inputs.motor_states import MotorInput
from ..inputs.references import ReferenceInput
from ..inputs.rejections import Verdict
from ..safety import NOTHING, Command, NoCommand, SafetySettings
from ..safety.hold import PositionHold
from ..safety.motor_ramp import MotorRamp
from .elastic_laws import ElasticLaws
from .elastic_settings import ElasticSettings, held
from .flatness import FlatnessController, FlatnessSettings
from .smooth_stiffness import SmoothStiffness
from .torque_settings import TorqueSettings

Array = NDArray[np.float64]
BRAKING = 0.2    # largest share of a motor's own momentum that braking removes in one period


class ElasticController(FlatnessController[ElasticLaws]):
    """Computes efforts of joints and motors, and motor references by the flatness map, from joint and motor states.
    `now` is a steady time in s.
    """

    settings: ElasticSettings

    def __init__(self, model: RobotModel, settings: ElasticSettings) -> None:
        super().__init__(model, settings)
        self.actuation = settings.actuation
        self.motor_state = MotorInput(self.actuation, self.rejections, settings.safety.state_timeout,
                                       settings.plausible_velocity)
        self.counts = {"motor_state_missing": 0, "reference_incomplete": 0, "impossible": 0, "feedback_missing": 0}
        self.hold = PositionHold(np.concatenate([Turns(model).turn, np.zeros(self.actuation.nm - model.nv)]))
        self._ramp, self._led_by, self._jumps = MotorRamp(), self.safety.laws.new, False
        self._last_stamp = self._elapsed = 0.0
        self._heard = -math.inf    # time of the previous joint state
        self._cycle = self._timed = 0
        self._stiffness = SmoothStiffness(settings.stiffness, settings.stiffness_poles)

    def limits(self, settings: TorqueSettings) -> list[SafetySettings]:
        assert isinstance(settings, ElasticSettings)
        return [settings.safety, settings.motors]

    def make_laws(self, settings: ElasticSettings) -> ElasticLaws:
        return ElasticLaws(settings, self.reference)

    def apply(self, settings: TorqueSettings) -> None:
        assert isinstance(settings, ElasticSettings)
        super().apply(settings)
        self.actuation = settings.actuation
        self.motor_state.timeout = settings.safety.state_timeout
        self.motor_state.allow(settings.plausible_velocity)
        self._stiffness.aim(settings.stiffness, settings.stiffness_poles)

    def clear(self) -> None:
        self._clear_commands()
        self.motor_state.clear()

    def begin_anew(self) -> None:
        """Handle a restart of the joint states: forget motor states received in the first half of the time since the
        previous joint state. Plausibility of motor states is checked independently.
        """
        self._clear_commands()
        if self.motor_state.received <= 0.5 * (self._heard + self.state.received):
            self.motor_state.clear()

    def _clear_commands(self) -> None:
        super().clear()
        fade = self.safety.laws
        for laws in (fade.old, fade.new):
            if laws is not None:
                self._forget(laws)
        self._stiffness.reset()

    def _forget(self, laws: ElasticLaws) -> None:
        """Reset the laws: the next command is the first one."""
        laws.motors.reset()
        laws.use(self.state.received, None)
        if laws is self.safety.laws.new:
            self._ramp.forget()
            self._last_stamp = 0.0

    # ---- inputs

    def on_motor_state(self, now: float, stamp_ns: int, names: Sequence[str], position: ArrayLike,
                       velocity: ArrayLike) -> Verdict:
        """Take a state of the motors."""
        return self.motor_state.accept(now, stamp_ns, names, position, velocity)

    def hear(self) -> None:
        """A joint state begins a cycle."""
        self._heard, self._cycle = self.state.received, self._cycle + 1

    def on_state(self, now: float, stamp_ns: int, names: Sequence[str], position: ArrayLike, velocity: ArrayLike = (),
                 effort: ArrayLike = (), age: float = 0.0) -> Command | Verdict:
        self.hear()
        return super().on_state(now, stamp_ns, names, position, velocity, effort, age)

    def on_bytes(self, now: float, data: bytes, age: Callable[[], float]) -> Command | None:
        before = self._heard, self._cycle
        self.hear()
        command = super().on_bytes(now, data, age)
        if command is None:
            self._heard, self._cycle = before
        return command

    def _fade_from(self, before: ReferenceInput, same: bool = False) -> None:
        super()._fade_from(before, same)
        self._jumps = True

    # ---- outputs

    def withhold(self, laws: ElasticLaws) -> None:
        self._forget(laws)

    def command(self, now: float, laws: ElasticLaws) -> Command | NoCommand:
        newest = laws is self.safety.laws.new
        try:
            result = self._command(now, laws, newest)
        except RbdError as error:
            result = self._refuse("impossible", str(error), newest)
        if isinstance(result, NoCommand):
            self._forget(laws)
        return result

    def again(self, laws: ElasticLaws) -> tuple[Array, ...] | None:
        motors = laws.before(self.state.received)
        if motors is None:    # `feedback_linearization`, too
            return None
        motor_effort = motors.effort
        if laws.motors.gains is not None:
            state = ElasticState(self.state.q, self.state.v,
                                 *self.motor_state.measured(self.state.q, self.state.v))
            motor_effort = motor_effort + self.loop.share * laws.motors.feedback(motors, state)
        return motors.torque, motor_effort

    def _command(self, now: float, laws: ElasticLaws, newest: bool) -> Command | NoCommand:
        reference = self.desired(now, laws)
        if reference is None:
            return NOTHING
        if problem := self.astray(now, laws, reference):
            return self.lost(laws, problem)
        if laws.settings.law.mode != "feed_forward" and not self.motor_state.fresh(now):
            return self._refuse("motor_state_missing", "no fresh motor state", newest)
        if laws.settings.law.mode == "feedback_linearization" and self.loop.share <= 0.0:
            return self._refuse("feedback_missing", "the joint state is too old for feedback", newest)
        if reference.jerk is None or reference.snap is None:
            return self._refuse("reference_incomplete", "the reference has no jerk and snap, which elastic joints need",
                                newest)
        if self._since_last() > 1.5 * laws.settings.law.period:    # damped springs move on by a period, or begin anew
            laws.motors.reset()
        state = ElasticState(self.state.q, self.state.v, *self.motor_state.measured(self.state.q, self.state.v))
        effort, rates, motors_ = laws.flat(reference, self.fresh_wrenches(now), state, self._stiffness.value,
                                         self.loop.share)
        if motors_ is None:
            return self._refuse("impossible", "the time derivatives of the effort are not finite", newest)
        if not (all_finite(motors_.effort) and _finite(motors_.reference)):
            return self._refuse("impossible", "the motor reference is not finite", newest)
        motors = None
        laws.use(self.state.received, None if laws.settings.law.mode == "feedback_linearization" else motors_.reference)
        if newest and self.safety.mode in ("waiting", "stale", "ramp_in", "running"):
            motors = self._led_in(now, laws, motors_.reference)
        return Command(effort, rates, motors_.effort, motors)

    def _led_in(self, now: float, laws: ElasticLaws, wanted: MotorReference) -> MotorReference:
        """The motor reference blended within `ramp_in`: from the measured motors at the start, from the last reference
        after a change.
        """
        duration, time = self.settings.safety.ramp_in, self._last_stamp
        jumps, self._jumps, self._led_by = self._jumps or laws is not self._led_by, False, laws
        if duration > 0.0 and (self._ramp.last is None or self.safety.mode not in ("ramp_in", "running")):
            self._ramp.begin(time, self._present(now, wanted), wanted, duration)
        elif duration > 0.0 and jumps:
            self._ramp.jump(time, wanted, duration)
        blended = self._ramp.follow(time, wanted)
        if blended is not wanted and not _finite(blended):
            raise RbdError("the ramp of the motors to their reference is not finite")
        return blended

    @property
    def led(self) -> bool:
        """Whether the motor reference passes unchanged."""
        return not self._jumps and self._led_by is self.safety.laws.new and self._ramp.rests

    def lead(self, motors: MotorReference) -> None:
        """Record a reference that passed unchanged."""
        self._since_last()
        self._ramp.follow(self._last_stamp, motors)

    def _present(self, now: float, like: MotorReference) -> MotorReference:
        """The measured motor positions; if unknown, those that hold gravity. Raises `RbdError` if they exceed the
        springs' range.
        """
        laws = self.safety.laws.new
        if self.motor_state.fresh(now):
            position, velocity = self.motor_state.measured(self.state.q, self.state.v)
        else:
            position, velocity = self._holding(laws).position, 0.0 * like.velocity
        return like._replace(position=position, velocity=velocity, acceleration=0.0 * like.acceleration,
                             effort=self.safe(laws, True)[1])

    def _holding(self, laws: ElasticLaws) -> MotorReference:
        """Motor positions that hold gravity at rest in the last state; raises `RbdError` beyond the springs' range.
        """
        q = self.state.q
        return motor_reference(laws.actuation, q, self._zero, self._zero,
                               [laws.safe_effort(q, self._zero, True), self._zero, self._zero],
                               self._stiffness.value[0])

    def _since_last(self) -> float:
        """Time since the last command (s), 0 before the first; advances the stiffness filter once per cycle."""
        if self._timed != self._cycle:
            stamp = self.state.stamp_ns * 1e-9 if self.state.stamp_ns else self.state.received
            self._elapsed = stamp - self._last_stamp if self._last_stamp else 0.0
            self._last_stamp, self._timed = stamp, self._cycle
            self._stiffness.advance(self._elapsed)
        return self._elapsed

    def _refuse(self, kind: str, problem: str, newest: bool) -> NoCommand:
        if newest:
            self.counts[kind] += 1
        return NoCommand(problem)

    def safe(self, laws: ElasticLaws, at_rest: bool) -> list[Array]:
        """Safe efforts of the joints (nv,), and of the motors (nm,): gravity in the last state, and braking."""
        q, v = self.state.q, self.state.v
        try:
            effort = self._holding(laws).effort
        except RbdError:
            effort = held(laws.actuation, laws.safe_effort(q, v, True))
        if not at_rest and self.motor_state.fresh(self.state.received):
            effort = effort - self._braking(laws, q) * self.motor_state.measured(q, v)[1]
        if self.motor_state.fresh(self.state.received):
            effort = effort + self.held(laws.hold_gains(q), self.motor_state.measured(q, v)[1], at_rest)
        return [laws.safe_effort(q, v, at_rest), effort]

    def speeds(self) -> Array:
        return np.concatenate((self.state.v, self.motor_state.velocity))    # without motors of rigid joints: 0

    def inertial(self, laws: ElasticLaws, acceleration: Array) -> list[Array]:
        actuation = laws.actuation
        links, motors = np.split(acceleration, [actuation.nv])
        effort = super().inertial(laws, links)[0]
        return [effort, held(actuation, effort) + actuation.inertia_behind_springs * motors]

    def holding_coordinates(self) -> Array:
        return self.motor_state.measured(self.state.q, self.state.v)[0]

    def safe_motors(self, at_rest: bool) -> Array:
        """Safe effort of the motors in the last state (nm,), by the newest settings."""
        return self.safe(self.safety.laws.newest, at_rest)[1]

    def _braking(self, laws: ElasticLaws, q: Array) -> Array:
        """Braking damping of the motors (nm,), N m s/rad, for the configured rate, bounded by the sampling period.
        """
        actuation, nv = laws.actuation, laws.actuation.nv
        rate, period = laws.settings.safe_damping, self.statistics.period
        links = np.zeros(actuation.nm)
        links[:nv] = np.diag(mass_matrix(laws.model, q))
        for joints, spring in actuation.groups:
            if spring.antagonistic:    # two motors share the link
                first = actuation.variable[joints]
                links[nv + joints] = links[first] = 0.5 * links[first]
        rotor = actuation.inertia.copy()
        rotor[actuation.rigid] = 0.0    # part of the link
        damping = rate * (rotor + links)
        bound = np.where(rotor > 0.0, BRAKING * rotor / period if 0.0 < period < math.inf else rate * rotor, math.inf)
        return np.minimum(damping, bound)

    def warm_up(self) -> None:
        super().warm_up()
        q, law = self.model.neutral(), self.safety.laws.newest.motors
        reference = np.zeros((5, self.model.nv))
        reference[0] = q
        state = ElasticState(q, self._zero, *np.zeros((2, self.actuation.nm)))
        for _ in range(2):
            try:
                law.command(reference, state, self._stiffness.value)
            except RbdError:    # may be feasible in another state
                break
        self.safety.laws.newest.flat(Reference.rest(q), None, state, self._stiffness.value, 1.0)
        law.reset()

    def report(self) -> dict[str, Any]:
        motors = self.safety.channels[1]
        return super().report() | {
            "control_mode": self.settings.law.mode, "motor_mode": self.safety.mode,
            "motor_saturated": motors.counts["saturated"], "motor_rate_limited": motors.counts["rate_limited"],
            **self.counts, "problem": self._problem}


def flatness_controller(model: RobotModel, settings: FlatnessSettings) -> FlatnessController[Any]:
    """The controller of rigid or elastic joints, by the kind of the settings."""
    smooth_trajectory.load()
    if isinstance(settings, ElasticSettings):
        return ElasticController(model, settings)
    return FlatnessController(model, settings)


def _finite(motors: MotorReference) -> bool:
    """Whether all numbers of a motor reference are finite."""
    return all(map(all_finite, motors[:4]))
