"""What every torque controller does with a joint state, without ROS: accept it, compute, make the effort safe."""
from __future__ import annotations

import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...core.dynamics.inverse import gravity_effort, inverse_dynamics
from ...core.errors import RbdError
from ...core.model.robot_model import RobotModel
from ..inputs.finite import all_finite
from ..inputs.joint_states import StateInput
from ..inputs.plausibility import Known
from ..inputs.rejections import Rejections, Verdict
from ..safety import Command, Defect, NoCommand, SafetyFilter, SafetySettings
from ..safety.gravity_check import GravityVerdict, compare_gravity
from ..statistics import CycleStatistics
from .loop_rate import LoopRate
from .torque_settings import TorqueSettings

Array = NDArray[np.float64]
STILL = 0.05    # rad/s or m/s: slower than that counts as rest


L = TypeVar("L", bound="Laws")


class Laws:
    """What settings make of a state. After a change the old ones and the new ones are asked until the fade is over."""

    def __init__(self, settings: TorqueSettings) -> None:
        self.settings, self.model = settings, settings.model    # the model with its payload
        self._zero = np.zeros(self.model.nv)

    def safe_effort(self, q: Array, v: Array, at_rest: bool) -> Array:
        """g(q) − damping M(q) v (nv,), without damping if `at_rest`; 0 if the robot compensates gravity."""
        settings = self.settings
        if "gravity" in settings.compensates:
            return self._zero.copy()
        try:
            if at_rest:
                return self.gravity(q)
            effort = self.accelerating(q, -settings.safe_damping * v)
        except RbdError:
            return settings.safety.fallback.copy() if at_rest else self.safe_effort(q, v, True)
        return effort if all_finite(effort) else self.safe_effort(q, v, True)    # a velocity beyond all reason

    def gravity(self, q: Array) -> Array:
        """g(q) (nv,)."""
        return gravity_effort(self.model, q)

    def accelerating(self, q: Array, a: Array) -> Array:
        """g(q) + M(q) a (nv,)."""
        return inverse_dynamics(self.model, q, self._zero, a)


class TorqueController(ABC, Generic[L]):
    """Joint states in, safe efforts out. `now` is a steady time in s; all arrays are in model order.

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
        self._comparisons, self._compare_at = 0, 0.0
        self._restarts = self._clocks = 0
        self._problem = ""    # of the last answer, for reports
        self._steady_cycles = 0
        self.safety: SafetyFilter[L] = SafetyFilter(self.limits(settings), self.make_laws(settings), self.safe)

    def limits(self, settings: TorqueSettings) -> list[SafetySettings]:
        """Limits of every output."""
        return [settings.safety]

    @abstractmethod
    def make_laws(self, settings: Any) -> L:
        """The laws of these settings."""

    def apply(self, settings: TorqueSettings) -> None:
        """Use other settings from now on; the state of all inputs remains. The torque goes over to theirs softly."""
        self.model, self.settings = settings.model, settings
        self.state.timeout, self.state.cutoff = settings.safety.state_timeout, settings.velocity_cutoff
        self.state.allow(settings.plausible_velocity)
        self.loop.allow(settings.max_age, settings.min_rate)
        self.safety.use(self.limits(settings), self.make_laws(settings))

    @abstractmethod
    def command(self, now: float, laws: L) -> Command | NoCommand:
        """What these laws want in the last state."""

    @abstractmethod
    def clear(self) -> None:
        """Forget all references: activation, and a clock that was reset."""

    def on_state(self, now: float, stamp_ns: int, names: Sequence[str], position: ArrayLike, velocity: ArrayLike = (),
                 effort: ArrayLike = (), age: float = 0.0) -> Command | Verdict:
        """What to publish for this joint state; nothing where it is rejected, or the controller inactive.

        age: s since it was sent.
        """
        verdict = self.state.accept(now, stamp_ns, names, position, velocity, effort)
        if not verdict or self.safety.mode == "inactive":
            return verdict
        return self._answer(now, age)

    def on_bytes(self, now: float, data: bytes, age: Callable[[], float]) -> Command | None:
        """`on_state` of a message as bytes, if nothing is unusual with it; None, and nothing is changed, if that has to
        be called.
        """
        if self.safety.mode == "inactive" or not self.state.accept_bytes(now, data):
            return None
        return self._answer(now, age())

    def _answer(self, now: float, age: float) -> Command:
        """What to publish for the state that was accepted."""
        if self.state.restarts != self._restarts:
            self._restarts = self.state.restarts
            self.begin_anew()
        if self.state.clock_restarts != self._clocks:
            self._clocks = self.state.clock_restarts
            self.loop.restart()
        self.loop.judge(now, self.state.time_ns, self.state.clock.pace * age, self.settings.safety.ramp_in)
        self.statistics.received(now)
        defect = None
        try:
            self.prepare(now)
        except Exception:
            defect = self._stop_by_a_defect()
        found = self.safety.update(now, lambda laws: self._asked(now, laws))
        if defect is not None:
            found = found._replace(problem=defect.problem)
        self._problem = found.problem
        return found

    def cycled(self) -> None:
        """A steady cycle was answered in one compiled call."""
        self._problem = ""
        self._steady_cycles += 1

    def trusts(self, last: Known) -> bool:
        """Whether the last state is also the one that the loop, the cycles and the safety filter saw last."""
        return (self.loop.last == last.now == self.statistics.last == self.safety.time
                and self.loop.time_ns == last.time_ns)

    def begin_anew(self) -> None:
        """The joint states are those of another clock, or of a robot that is elsewhere."""
        self.clear()

    def prepare(self, now: float) -> None:
        """What has to be done once in a cycle, before laws are asked."""

    def withhold(self, laws: L) -> None:
        """No command is asked for in this cycle, as the loop is too slow."""

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
        """It may be there in every cycle from now on: there must be an effort all the same."""
        self.safety.stop()
        return NoCommand(Defect(traceback.format_exc()))

    def safe(self, laws: L, at_rest: bool) -> list[Array]:
        """What is safe in the last state, one effort per output."""
        return [laws.safe_effort(self.state.q, self.state.v, at_rest)]

    def safe_effort(self, at_rest: bool) -> Array:
        """What the newest settings hold for safe in the last state (nv,)."""
        return self.safety.laws.newest.safe_effort(self.state.q, self.state.v, at_rest)

    def compare_gravity(self, now: float) -> GravityVerdict | None:
        """Whether robot and model agree about gravity, judged twice after each activation; None at all other times.

        First before this controller's torque acts, then at rest and with little but gravity in the torque that is sent.
        """
        state, acting = self.state, self._comparisons == 1
        if self._comparisons > 1 or not self.settings.gravity_check or now < self._compare_at:
            return None
        measured = state.measured_effort
        if measured is None or not all_finite(measured) or np.abs(state.v).max() > STILL:
            self._compare_at = now + 0.05    # it costs some µs: not in every cycle of a long motion
            return None
        try:
            gravity = self.safety.laws.newest.gravity(state.q)
        except RbdError:    # beyond numbers
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

    def watchdog(self, now: float) -> Command | None:
        """What to publish because no joint state comes, None while they do."""
        return self.safety.watchdog(now)

    def activate(self, now: float) -> None:
        self.clear()
        self._comparisons, self._compare_at, self.state.measured_effort = 0, now, None
        self.loop.restart()
        self.safety.activate(now)

    def reset(self, now: float) -> None:
        """Release the emergency stop."""
        self.safety.reset()

    def deactivate(self) -> None:
        self.safety.deactivate()

    @property
    def finished(self) -> bool:
        """Whether `finish` can follow. A robot that was stopped on the way out is braked until it stands still, or as
        long as the ramp would have taken.
        """
        safety = self.safety
        return safety.finished or (safety.mode == "stopped" and safety.settled
                                   and float(np.abs(self.state.v).max()) <= STILL)

    def finish(self, now: float) -> Command | None:
        """What to publish last of all (`SafetyFilter.finish`)."""
        return self.safety.finish(now)

    def warm_up(self) -> None:
        """Load or compile all that a cycle calls, without any trace in the state of this controller."""
        model, q = self.model, self.model.neutral()
        inverse_dynamics(model, q, self._zero, self._zero)
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
            "rejected_total": self.rejections.total}
        return values | {f"rejected_{kind}": count for kind, count in self.rejections.counts.items()}
