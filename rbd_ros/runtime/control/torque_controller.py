"""Base of torque controllers, without ROS: accept a joint state, compute, make the effort safe."""
from __future__ import annotations

import math
import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...core.dynamics.inverse import gravity_effort, inverse_dynamics
from ...core.dynamics.mass_matrix import mass_matrix
from ...core.errors import RbdError
from ...core.model.robot_model import RobotModel
from ..damping_gains import high_damping
from ..inputs.finite import all_finite
from ..inputs.joint_map import Turns
from ..inputs.joint_states import StateInput
from ..inputs.plausibility import Known
from ..inputs.rejections import Rejections, Verdict
from ..safety import Command, Defect, NoCommand, SafetyFilter, SafetySettings
from ..safety.gravity_check import GravityVerdict, compare_gravity
from ..safety.hold import HoldGains, PositionHold
from ..statistics import CycleStatistics
from .carrying import Carrying, near
from .loop_rate import LoopRate
from .torque_settings import TorqueSettings

Array = NDArray[np.float64]
STILL, FOR = 0.05, 0.2    # rad/s or m/s, s: below this speed for this time counts as rest
SLIP = 0.3                # rad or m: largest deflection of the hold's springs
PAUSE, SETTLING = 4.0, 10    # periods without states after which the first ones may be outliers; so many states
LONGEST_RUN_DOWN = 3.0    # s


L = TypeVar("L", bound="Laws")


class Laws:
    """Control laws for given settings. After a change, old and new laws are both evaluated until the fade is over."""

    def __init__(self, settings: TorqueSettings) -> None:
        self.settings, self.model = settings, settings.model    # the model with its payload
        self._zero = np.zeros(self.model.nv)

    def safe_effort(self, q: Array, v: Array, at_rest: bool) -> Array:
        """g(q) − damping M(q) v (nv,), without damping if `at_rest`, without g if the robot compensates gravity."""
        settings = self.settings
        compensated = "gravity" in settings.compensates
        if compensated and (at_rest or not v.any()):
            return self._zero.copy()
        try:
            if at_rest:
                return self.gravity(q)
            effort = self.accelerating(q, -settings.safe_damping * v)
            if compensated:
                effort = effort - self.gravity(q)
        except RbdError:
            return settings.safety.fallback.copy() if at_rest and not compensated else self.safe_effort(q, v, True)
        return effort if all_finite(effort) else self.safe_effort(q, v, True)    # overflow by an absurd velocity

    def hold_gains(self, q: Array) -> HoldGains | None:
        """Gains of the position hold at q; None without gains."""
        return None

    def bounded(self, kp: Array, kd: Array, limit: Array, mass: Array | None = None) -> HoldGains | None:
        """The gains bounded by the configured share of the limit (n,), and by `SLIP`; None without a limit."""
        if self.settings.hold_position <= 0.0 or not kp.any():
            return None
        bound = self.settings.holding_share(limit)
        stiffness = kp if mass is None else kp * np.diag(mass)
        most = np.divide(bound, stiffness, out=np.zeros(len(kp)), where=stiffness > 0.0)
        return HoldGains(kp, kd, np.minimum(most, SLIP), mass)

    def gravity(self, q: Array) -> Array:
        """g(q) (nv,)."""
        return gravity_effort(self.model, q)

    def accelerating(self, q: Array, a: Array) -> Array:
        """g(q) + M(q) a (nv,)."""
        return inverse_dynamics(self.model, q, self._zero, a)


class Controller(ABC, Generic[L]):
    """Computes a safe effort for each joint state. `now` is a steady time in s; all arrays are in model order.

    A subclass implements `make_laws` and `command`. Call `activate`, then `on_state` for every joint state and
    `watchdog` regularly; `deactivate`, and after some more states, when `finished`, `finish`.
    """

    def __init__(self, model: RobotModel, settings: TorqueSettings, rejections: Rejections | None = None) -> None:
        self.model, self.settings = settings.model, settings    # the model with its payload
        self.rejections = rejections or Rejections()
        self.state = StateInput(model, self.rejections, settings.safety.state_timeout, settings.velocity_cutoff,
                                settings.plausible_velocity)
        self.statistics = CycleStatistics(settings.state_rate)
        self.loop = LoopRate(settings.state_rate, settings.max_age, settings.min_rate)
        self._zero = np.zeros(model.nv)
        self.hold = PositionHold(Turns(model).turn)
        self.carrying = Carrying(STILL)
        self._notices: list[str] = []
        self._noticed, self._last_notice = 0, ""
        self._lost_at = math.inf    # time at which the states ceased, s
        self._settled_ns, self._settling = 0, SETTLING    # time of the last state; how many may be outliers
        self._moved_at = self._seen_at = -math.inf    # times of the last states in motion and in `rests`, s
        self._comparisons, self._compare_at = 0, 0.0
        self._restarts = self._clocks = 0
        self._defect: NoCommand | None = None    # of the cycle before, after its answer
        self._problem = ""    # problem of the last command, for reports
        self._steady_cycles = 0
        self._judged: list[object] = [None, False]    # by `judge_gains`: settings, whether for good
        self._kept: list[Array] | None = None    # carrying efforts less the safe ones, from `deactivate` on
        self.safety: SafetyFilter[L] = SafetyFilter(self.limits(settings), self.make_laws(settings), self._safe,
                                                      self.carried)

    def limits(self, settings: TorqueSettings) -> list[SafetySettings]:
        """Limits of every output."""
        return [settings.safety]

    @abstractmethod
    def make_laws(self, settings: Any) -> L:
        """The laws of these settings."""

    def apply(self, settings: TorqueSettings) -> None:
        """Change the settings; inputs keep their state, and the torque fades to the new laws."""
        self.model, self.settings = settings.model, settings
        self.state.timeout, self.state.cutoff = settings.safety.state_timeout, settings.velocity_cutoff
        self.state.allow(settings.plausible_velocity)
        self.loop.allow(settings.max_age, settings.min_rate)
        self.safety.use(self.limits(settings), self.make_laws(settings))

    @abstractmethod
    def command(self, now: float, laws: L) -> Command | NoCommand:
        """Compute the command of these laws in the last state."""

    @abstractmethod
    def clear(self) -> None:
        """Forget all references: on activation, and after a reset of the clock."""

    def on_state(self, now: float, stamp_ns: int, names: Sequence[str], position: ArrayLike, velocity: ArrayLike = (),
                 effort: ArrayLike = (), age: float = 0.0) -> Command | Verdict:
        """The command for this joint state; None if it is rejected or the controller is inactive.

        age: s since it was sent.
        """
        verdict = self.state.accept(now, stamp_ns, names, position, velocity, effort)
        if not verdict or self.safety.mode == "inactive":
            return verdict
        return self._answer(now, age)

    def on_bytes(self, now: float, data: bytes, age: Callable[[], float]) -> Command | None:
        """`on_state` for the bytes of an ordinary message; for any other message None, without a change: `on_state`
        must be called.
        """
        if self.safety.mode == "inactive" or not self.state.accept_bytes(now, data):
            return None
        return self._answer(now, age())

    def _answer(self, now: float, age: float) -> Command:
        """The command for the accepted state."""
        if self._lost_at < math.inf:
            self.notice(f"joint states are back after {now - self._lost_at:.3f} s")
            self._lost_at = math.inf
            self._begin_hold()
        if self.state.restarts != self._restarts:
            self._restarts = self.state.restarts
            self.begin_anew()
        if self.state.clock_restarts != self._clocks:
            self._clocks = self.state.clock_restarts
            self.loop.restart()
        self.loop.judge(now, self.state.time_ns, self.state.clock.pace * age, self.settings.safety.ramp_in)
        self.statistics.received(now)
        defect, self._defect = self._defect, None
        try:
            self.prepare(now)
        except Exception:
            defect = self._stop_by_a_defect()
        self._settle()
        self._follow_hold()
        still = now - self.safety.time
        if self.safety.mode in ("ramp_in", "running") and still >= self.settings.safety.state_timeout:
            self.notice(f"this node stood still for {still:.3f} s: ramping in")    # the watchdog stood still, too
            self.safety.lose()
        command = self.safety.update(now, lambda laws: self._asked(now, laws), self.again)
        if self.safety.modes.share >= 1.0:
            self.hold.forget()
        if defect is not None:
            command = command._replace(problem=defect.problem)
        if (late := self._observe(now)) is not None:
            command = command._replace(problem=late.problem)
        self._problem = command.problem
        return command

    def cycled(self, now: float) -> None:
        """Record a steady cycle that was answered in one compiled call."""
        self._problem = ""
        self._settle()
        self._steady_cycles += 1
        self._defect = self._observe(now)

    def _observe(self, now: float) -> NoCommand | None:
        try:
            self.observe(now)
        except Exception:
            return self._stop_by_a_defect()
        return None

    def observe(self, now: float) -> None:
        """Look at the state that was answered, for the next answer."""
        self.carrying.record(self.state.time_ns, self.speeds(), self.safety.outputs)

    def trusts(self, last: Known) -> bool:
        """Whether the loop rate check, the statistics and the safety filter also saw `last` as their last state."""
        return (self.loop.last == last.now == self.statistics.last == self.safety.time
                and self.loop.time_ns == last.time_ns)

    def begin_anew(self) -> None:
        """Handle a restart: joint states of another clock, or of a robot in another position."""
        self._begin_hold()
        self._kept = None
        self.clear()

    def notice(self, text: str) -> None:
        """Record a message for users."""
        self._notices.append(text)
        self._noticed, self._last_notice = self._noticed + 1, text

    def take_notices(self) -> list[str]:
        """Return the notices since the last call, for logs."""
        notices, self._notices = self._notices, []
        return notices

    def prepare(self, now: float) -> None:
        """Prepare a cycle, before the laws are evaluated."""

    def again(self, laws: L) -> tuple[Array, ...] | None:
        """The efforts of these laws in the last state with all other inputs as in the cycle before; None if unknown.
        """
        return None

    def withhold(self, laws: L) -> None:
        """Handle a cycle without a command, because the loop is too slow."""

    def _asked(self, now: float, laws: L) -> Command | NoCommand:
        if self.loop.slow:
            self.withhold(laws)
            return NoCommand(self.loop.problem)
        try:
            return self.command(now, laws)
        except RbdError as error:
            self.safety.counts["non_finite_command"] += 1
            return NoCommand(str(error))
        except Exception:
            return self._stop_by_a_defect()

    def _stop_by_a_defect(self) -> NoCommand:
        """Stop after a program error, which may recur in every cycle; the safe effort is still published."""
        self.safety.stop()
        return NoCommand(Defect(traceback.format_exc()))

    def _safe(self, laws: L, at_rest: bool) -> list[Array]:
        """Safe efforts; from the deactivation of a robot at rest on, near them what carried it."""
        efforts = self.safe(laws, at_rest)
        return efforts if self._kept is None else [a + b for a, b in zip(efforts, self._kept, strict=True)]

    def _keep_carrying(self) -> None:
        """Keep what carries a robot at rest, within `carried`, in the safe efforts from now on."""
        safe = self.safe(self.safety.laws.newest, True)
        carried = self.carried(safe)
        if carried is not safe:
            self._kept = [a - b for a, b in zip(carried, safe, strict=True)]

    def safe(self, laws: L, at_rest: bool) -> list[Array]:
        """Safe efforts in the last state, one per output."""
        effort = laws.safe_effort(self.state.q, self.state.v, at_rest)
        return [effort + self.held(self.hold_gains(laws), self.state.v, at_rest)]

    def safe_effort(self, at_rest: bool) -> Array:
        """Safe effort in the last state (nv,), by the newest settings."""
        return self.safe(self.safety.laws.newest, at_rest)[0]

    def held(self, gains: HoldGains | None, v: Array, at_rest: bool) -> Array | float:
        """Effort of the position hold at the velocity v, added to the safe effort; 0 in a loop that is too slow, and 0
        with `at_rest` while the robot moves.
        """
        if gains is None or self._too_slow or (at_rest and np.abs(self.state.v).max() > STILL):
            return 0.0
        return self.hold.effort(gains, 0.0 * v if at_rest else v)

    def carried(self, efforts: list[Array]) -> list[Array]:
        """Efforts for a robot whose joint states have ceased, one per output: those that carried it if it was at rest
        (`carrying`), within the share `hold_position` of the effort limits of the safe `efforts`; else these.
        """
        settings = self.settings
        means = None if (settings.hold_position <= 0.0 or self._too_slow or self._kept is not None
                         ) else self.carrying.rest()
        if means is None:
            return efforts
        try:
            inertial = self.inertial(self.safety.laws.newest, means.acceleration)
        except RbdError:    # overflow
            return efforts
        if not all(map(all_finite, inertial)):
            return efforts
        return near(efforts, means, inertial, [settings.holding_share(each.effort_limit)
                                              for each in self.limits(settings)])

    def speeds(self) -> Array:
        """Velocities by which `carrying` judges rest."""
        return self.state.v

    def inertial(self, laws: L, acceleration: Array) -> list[Array]:
        """Efforts, one per output, that accelerate the robot from the last state by `acceleration`, the derivative of
        `speeds`.
        """
        return [mass_matrix(laws.model, self.state.q) @ acceleration]

    @property
    def _too_slow(self) -> bool:
        """Whether the loop is too slow to hold anything."""
        return self.loop.slow or self.loop.share <= 0.0

    def hold_gains(self, laws: L) -> HoldGains | None:
        """Gains of the position hold in the last state."""
        return laws.hold_gains(self.state.q)

    def _begin_hold(self) -> None:
        """Hold nothing in place until some more states have arrived."""
        self.hold.forget()
        self.carrying.forget()
        self._settling = SETTLING

    def _settle(self) -> None:
        """Count the states since the last pause: after one a robot may be farther away, and outliers are believed."""
        passed, self._settled_ns = 1e-9 * (self.state.time_ns - self._settled_ns), self.state.time_ns
        paused = passed > PAUSE * self.state.clock.period
        self._settling = SETTLING if paused else max(self._settling - 1, 0)

    def _follow_hold(self) -> None:
        share = self.safety.modes.share
        # laws that fade out count until the end, so that what they hold fades out as well
        laws = [] if share >= 1.0 else self.safety.laws.all
        gains = [each for each in map(self.hold_gains, laws) if each is not None]
        if not gains or self._too_slow:
            self.hold.forget()
        elif share > 0.0:    # the command moves the robot
            self.hold.pause()
        else:
            self.hold.follow(self.holding_coordinates(), np.maximum.reduce([each.most for each in gains]),
                             self._settling > 0)

    def holding_coordinates(self) -> Array:
        """Measured coordinates (n,) held in place."""
        return self.state.q

    def compare_gravity(self, now: float) -> GravityVerdict | None:
        """Whether robot and model agree about gravity, judged twice after each activation; None at all other times.

        First before this controller's torque acts, then at rest when the sent torque is mostly gravity.
        """
        state, acting = self.state, self._comparisons == 1
        if self._comparisons > 1 or not self.settings.gravity_check or now < self._compare_at:
            return None
        measured = state.measured_effort
        if measured is None or not all_finite(measured) or np.abs(state.v).max() > STILL:
            self._compare_at = now + 0.05    # takes some µs: not in every cycle of a long motion
            return None
        try:
            gravity = self.safety.laws.newest.gravity(state.q)
        except RbdError:    # overflow
            return None
        compensates = "gravity" in self.settings.compensates
        if acting:
            self._compare_at = now + 0.5
            sent = self.safety.output
            if sent is None or self.safety.mode not in ("running", "waiting") or np.linalg.norm(
                    sent - (0.0 if compensates else gravity)) > 0.2 * np.linalg.norm(gravity):
                return None
        self._comparisons += 1
        self._compare_at = now + self.settings.safety.ramp_in + 0.5
        return compare_gravity(self.model.joint_names, measured, gravity, compensates, acting)

    def judge_gains(self) -> str:
        """Warning, once per settings, of damping gains that are too high for the rate, as soon as that is known, or
        seems to be by the first states; "" if there are none.
        """
        period, known = self.loop.likely_period, math.isfinite(self.loop.period)
        judged, settled = self._judged
        if not math.isfinite(period) or (judged is self.settings and (settled or not known)):
            return ""
        gains = self.settings.damping_gains()
        problem = "" if gains is None else high_damping(gains, 1.0 / period)
        self._judged = [self.settings, known or gains is None or bool(problem)]
        return problem

    def watchdog(self, now: float) -> Command | None:
        """The command without fresh joint states; None while states arrive."""
        command = self.safety.watchdog(now)
        if command is not None and self._lost_at == math.inf:
            self._lost_at = self.state.received
        return command

    def activate(self, now: float) -> None:
        self.clear()
        self._comparisons, self._compare_at, self.state.measured_effort = 0, now, None
        self.loop.restart()
        self._begin_hold()
        self._kept = None
        self.safety.activate(now)

    def reset(self, now: float) -> None:
        """Release the emergency stop."""
        self.safety.reset()

    def deactivate(self) -> None:
        self._moved_at = self.state.received
        self._keep_carrying()
        self.safety.deactivate()

    @property
    def finished(self) -> bool:
        """Whether `finish` can follow: the output contains no command, and the joint states are at rest."""
        safety = self.safety
        if safety.modes.share > 0.0 and self._kept is None and self.settings.hold_position > 0.0:
            self._moved_at = self.state.received    # the position hold begins with the end of the ramp
        return self.rests() and (safety.finished or (safety.mode == "stopped" and safety.settled))

    def halt(self, now: float) -> None:
        """Stop the motion smoothly; `rests` tells when the robot stands still."""
        self._moved_at = self.state.received

    def rests(self) -> bool:
        """Whether the robot was seen to stand still for `FOR` s, without a gap of `state_timeout`, or joint states have
        ceased before that, for as long as commands outlive them (`SafetyFilter.patience`); call it often.
        """
        received, before, self._seen_at = self.state.received, self._seen_at, self.state.received
        if np.abs(self.state.v).max() > STILL or received - before > self.settings.safety.state_timeout:
            self._moved_at = received
        return (received - self._moved_at >= FOR
                or self.safety.time - self._moved_at >= max(FOR, self.safety.patience))

    def latest_end(self, begin: float, now: float) -> float:
        """Time (s) of `finish` at the latest, if the robot does not come to rest: of an end that began at `begin`, with
        `deactivate` at `now`.

        Longer than the ramp only for the rate limit, and shorter than the timeout of `ros2 launch` (5 s). States may
        have ceased already: a simulation's long timeout must not keep the process alive.
        """
        safety = self.settings.safety
        return min(2.0 * safety.state_timeout, 1.0) + max(now + safety.ramp_out + FOR, begin + LONGEST_RUN_DOWN)

    def finish(self, now: float) -> Command | None:
        """The final command (`SafetyFilter.finish`)."""
        self._keep_carrying()
        return self.safety.finish(now)

    def warm_up(self) -> None:
        """Load or compile all code of a cycle, without changing the state of this controller."""
        model, q = self.model, self.model.neutral()
        inverse_dynamics(model, q, self._zero, self._zero)
        mass_matrix(model, q)
        model.difference(q, q)

    def report(self) -> dict[str, Any]:
        """Counters and measurements by name, as diagnostics publish them."""
        p50, p99 = self.statistics.latency_us()
        values: dict[str, Any] = {
            "model": self.model.name, "mode": self.safety.mode, "rate_hz": self.statistics.rate_hz,
            "latency_p50_us": p50, "latency_p99_us": p99, "deadline_misses": self.statistics.deadline_misses,
            "cycles": self.statistics.cycles, "steady_cycles": self._steady_cycles,
            "late_states": self.statistics.late_states, "clock_restarts": self.state.clock_restarts,
            "position_restarts": self.state.position_restarts, **self.safety.counts, **self.loop.counts,
            "notices": self._noticed, "last_notice": self._last_notice, "rejected_total": self.rejections.total}
        return values | {f"rejected_{kind}": count for kind, count in self.rejections.counts.items()}
