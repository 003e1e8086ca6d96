"""Residual of the equations of motion: measured motion of a simulated or real robot against the model.

Between two joint states, with q and v at the midpoint of the interval and the acceleration from the difference of
velocities,

    residual = τ_applied − ID(q, v, Δv/Δt) − friction(v, ID)

The residual is the model error: O(Δt²) by the finite differences if robot and model are the same.
"""
from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...core.dynamics.inverse import inverse_dynamics
from ...core.model.robot_model import RobotModel
from ..friction_terms import FrictionTerms, drive_friction_rows, friction_rows
from ..inputs.joint_map import JointMap
from ..inputs.joint_states import StateInput
from ..inputs.rejections import TAKEN, Rejected, Rejections, Verdict
from ..parameters import Parameter, Table, parameter, table_of, taken, validate
from ..robot import ROBOT_TABLE, joint_order, joints_row
from .applied import AppliedCommands

Array = NDArray[np.float64]
SOURCES = ("joint_states", "effort")

@dataclass(frozen=True, kw_only=True)
class ResidualSettings:
    """Validated parameters; `output`: permutation to the order of `joints`. Times in s."""

    joints: tuple[str, ...]
    output: NDArray[np.intp]
    from_commands: bool
    friction: FrictionTerms
    effort_topic: str = parameter("feedforward/effort", "Commands (rbd_interfaces/JointEffort), stamped like the "
                                  "states that they answer.", read_only=True)
    effort_delay: float = parameter(0.0, "With effort_source effort: simulated time from a state until its answer "
                                    "acts, s.", lower=0.0, upper=10.0)
    max_interval: float = parameter(0.1, "Longest interval between two states that gives a residual, s.", lower=1e-6,
                                    upper=1e3)

    @staticmethod
    def from_values(values: Mapping[str, Any], model: RobotModel) -> ResidualSettings:
        """Validate parameter values by name; missing ones get their defaults. Raises `RbdError`."""
        values = validate(RESIDUAL_TABLE, values)
        joints, output, order = joint_order(values["joints"], model)
        return ResidualSettings(
            joints=joints, output=output, from_commands=values["effort_source"] == "effort",
            friction=FrictionTerms.from_values(values, order), **taken(ResidualSettings, values))


RESIDUAL_TABLE: Table = (
    *ROBOT_TABLE, joints_row("all lists with one entry per joint, and of the published residual"),
    Parameter("effort_source", "string", "joint_states", "Source of the effort that acted. joint_states: field effort "
              "of the state at the end of an interval; effort: the newest command on effort_topic that answers a state "
              "at its beginning or before. gz_ros2_control does not measure effort: use effort there.", choices=SOURCES,
              read_only=True),
    *table_of(ResidualSettings), *friction_rows("The model has"), *drive_friction_rows(),
)


class ResidualMonitor:
    """Computes residuals from joint states and commands; arrays in model order. Statistics since the start.

    If joint states contain the acting effort, `delays` are the times (s) from a state to the start of the interval in
    which its command acted: 0 in lockstep, at least one period in a free-running simulation.
    """

    def __init__(self, model: RobotModel, settings: ResidualSettings) -> None:
        self.model = model
        self.rejections = Rejections()
        self._state = StateInput(model, self.rejections, math.inf, 0.0)
        self._map = JointMap(model, extra=True)
        self._commands: deque[tuple[int, Array]] = deque(maxlen=1000)
        self._last: tuple[int, Array, Array] | None = None
        self.counts = Counter({"residuals": 0, "gaps": 0, "repeated": 0, "without_effort": 0})
        self.applied = AppliedCommands(model)
        self._squares, self.maximum = np.zeros(model.nv), np.zeros(model.nv)
        self._delays, self.delay_max = [0, 0.0], 0.0
        self.apply(settings)

    def apply(self, settings: ResidualSettings) -> None:
        """Change the settings."""
        self.settings = settings
        self._friction = settings.friction.law(self.model)

    def warm_up(self) -> None:
        """Load or compile the code of a residual, without changing this object."""
        scratch, zero = ResidualMonitor(self.model, self.settings), np.zeros(self.model.nv)
        for stamp in (1, 2):
            scratch.on_state(stamp, self.model.joint_names, self.model.neutral(), zero, zero)

    def on_command(self, stamp_ns: int, names: Sequence[str], effort: ArrayLike) -> None:
        """Take the command that answers the state of this stamp."""
        try:
            if self._map.update(names):
                values = self._map.rates("effort", effort)
                if not self._commands or stamp_ns > self._commands[-1][0]:
                    self._commands.append((stamp_ns, values))
                elif stamp_ns < self._commands[-1][0]:    # a restart
                    self._commands.clear()
                    self._commands.append((stamp_ns, values))
        except Rejected as error:
            self.rejections.add(error)

    def on_state(self, stamp_ns: int, names: Sequence[str], position: ArrayLike, velocity: ArrayLike,
                 effort: ArrayLike) -> Array | Verdict:
        """Take a joint state; returns the residual (nv,) over the interval that ends at it, if there is one."""
        state = self._state
        if self._last is not None and stamp_ns == self._last[0]:    # a paused simulation
            self.counts["repeated"] += 1
            return TAKEN
        verdict = state.accept_stamped(stamp_ns, names, position, velocity, effort)
        if not verdict:
            return verdict
        last, self._last = self._last, (stamp_ns, state.q, state.v)
        if last is None or not 0 < stamp_ns - last[0] <= self.settings.max_interval * 1e9:
            self.counts["gaps"] += last is not None
            return TAKEN
        measured = state.measured_effort
        if measured is not None:
            self._measure_delay(last[0], measured)
        applied = measured
        if self.settings.from_commands:
            stamp, applied, before = self._command_at(last[0])
            if applied is not None and before is not None and stamp == last[0] - self._delay_ns:
                self.applied.judge((stamp_ns - last[0]) * 1e-9, last[1], last[2], state.v, before, applied)
        if applied is None or not np.isfinite(applied).all():
            self.counts["without_effort"] += 1
            return TAKEN
        return self._residual((stamp_ns - last[0]) * 1e-9, last[1], last[2], applied)

    def _residual(self, interval: float, q0: Array, v0: Array, applied: Array) -> Array:
        model, q1, v1 = self.model, self._state.q, self._state.v
        q = model.integrate(q0, 0.5 * model.difference(q0, q1))
        v = 0.5 * (v0 + v1)
        expected = inverse_dynamics(model, q, v, (v1 - v0) / interval)
        residual = applied - (expected if self._friction is None else self._friction.add(v, expected))
        self.counts["residuals"] += 1
        self._squares += residual**2
        self.maximum = np.maximum(self.maximum, np.abs(residual))
        return residual

    def _command_at(self, begin_ns: int) -> tuple[int, Array | None, Array | None]:
        """The command acting from `begin_ns` on, by stamps: stamp, effort, and the previous effort."""
        limit = begin_ns - self._delay_ns
        candidates = ((stamp, effort) for stamp, effort in reversed(self._commands) if stamp <= limit)
        stamp, effort = next(candidates, (0, None))
        return stamp, effort, next(candidates, (0, None))[1]

    @property
    def _delay_ns(self) -> int:
        return round(self.settings.effort_delay * 1e9)

    def _measure_delay(self, begin_ns: int, measured: Array) -> None:
        for stamp, effort in reversed(self._commands):
            if stamp <= begin_ns and np.array_equal(effort, measured):
                delay = (begin_ns - stamp) * 1e-9
                self._delays[0] += 1
                self._delays[1] += delay
                self.delay_max = max(self.delay_max, delay)
                return

    @property
    def rms(self) -> Array:
        """Root mean square of the residuals since the start (nv,)."""
        return np.asarray(np.sqrt(self._squares / max(self.counts["residuals"], 1)))

    def report(self) -> dict[str, Any]:
        """Counters and statistics by name, as diagnostics publish them."""
        values: dict[str, Any] = {"model": self.model.name, **self.counts, **self.applied.counts}
        if self._delays[0]:
            values |= {"command_delay_mean_ms": 1e3 * self._delays[1] / self._delays[0],
                       "command_delay_max_ms": 1e3 * self.delay_max}
        for name, rms, maximum in zip(self.model.joint_names, self.rms, self.maximum, strict=True):
            values |= {f"rms_{name}": float(rms), f"max_{name}": float(maximum)}
        return values | {"rejected_total": self.rejections.total}
