"""The robot behind the simulator node, without ROS: commands in, motion in steps, everything wrong rejected."""
from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..control.inputs import JointMap, Rejected, Rejections, all_finite, as_array
from ..errors import RbdError
from ..model.robot_model import RobotModel
from .settings import SimulatorSettings
from .simulator import Simulator

Array = NDArray[np.float64]


class Plant:
    """A simulated robot that is commanded. Arrays are in model order; `time` (s) is that since the last reset.

    `stamp_origin` (s) + `time` is the stamp, on which `brakes_until` depends. Where the simulation fails, `failure`
    says why, and the robot stands still where it was until `reset`.
    """

    def __init__(self, model: RobotModel, settings: SimulatorSettings) -> None:
        self.model, self.settings = model, settings
        self.rejections = Rejections()
        self.counts: Counter[str] = Counter({"commands": 0, "saturated": 0, "timeouts": 0, "failures": 0})
        self.simulator = Simulator(settings.plant, step=settings.step, integrator=settings.integrator,
                                   limits=settings.position_limits, q=settings.initial_position,
                                   v=settings.initial_velocity)
        self._names = JointMap(model, extra=False)
        self.effort = np.zeros(model.nv)    # that acts in the next step
        self.reset()

    def reset(self, q: ArrayLike | None = None, v: ArrayLike | None = None, stamp_origin: float = 0.0) -> None:
        """Time zero in the given state, by default that of the settings; commands and wrenches are forgotten."""
        s = self.settings
        given = q is not None
        self.simulator.reset(q if given else s.initial_position,
                             v if v is not None else np.zeros(self.model.nv) if given else s.initial_velocity)
        self.steps, self.stamp_origin, self.failure = 0, stamp_origin, ""
        self._command: Array | None = None
        self._command_step = self._wrench_step = 0
        self._wrenches: Array | None = None
        self._timed_out = False
        self.effort = np.zeros(self.model.nv)

    def warm_up(self) -> None:
        """Load or compile what a step calls."""
        simulator = self.simulator
        q, v = simulator.q, simulator.v
        simulator.step(self.effort)
        simulator.step(self.effort, external_wrenches=np.zeros((len(self.model.body_names), 6)))
        simulator.reset(q, v)

    @property
    def time(self) -> float:
        return self.steps * self.settings.step

    # ---- inputs

    def on_commands(self, values: ArrayLike) -> bool:
        """Take efforts (nv,) in the order of parameter `joints`; False if they are rejected."""
        try:
            given = as_array(values)
            if given.shape != (self.model.nv,):
                raise Rejected("wrong_size", f"command has {given.size} efforts, expected {self.model.nv}: "
                                             f"{', '.join(self.settings.joints)}")
            if not all_finite(given):
                name = self.settings.joints[int(np.argmin(np.isfinite(given)))]
                raise Rejected("non_finite", f"effort of joint '{name}' is not finite")
            self._accept(given[self.settings.order])
        except Rejected as error:
            self.rejections.add(error)
            return False
        return True

    def on_named_commands(self, names: Sequence[str], efforts: ArrayLike) -> bool:
        """Take efforts by name, every joint in any order; False if they are rejected."""
        try:
            if not self._names.update(names):
                raise Rejected("unknown_joint", f"none of the joints {list(names)} belongs to the robot; its joints: "
                                                f"{', '.join(self.model.joint_names)}")
            self._accept(self._names.rates("effort", efforts))
        except Rejected as error:
            self.rejections.add(error)
            return False
        return True

    def _accept(self, effort: Array) -> None:
        limit = self.settings.effort_limit
        limited = np.clip(effort, -limit, limit)
        self.counts["saturated"] += not np.array_equal(limited, effort)
        self.counts["commands"] += 1
        self._command, self._command_step, self._timed_out = limited, self.steps, False
        self.effort = limited

    def on_wrenches(self, wrenches: Sequence[tuple[str, ArrayLike]]) -> bool:
        """Take all external wrenches: (body, [moment, force] on the body in its link frame); False if rejected."""
        total = np.zeros((len(self.model.body_names), 6))
        try:
            for body, value in wrenches:
                if body not in self.model.body_names:
                    raise Rejected("unknown_body", f"unknown body '{body}' in external wrenches; bodies: "
                                                   f"{', '.join(self.model.body_names)}")
                wrench = np.asarray(value, dtype=np.float64)
                if not np.isfinite(wrench).all():
                    raise Rejected("non_finite", f"external wrench on body '{body}' is not finite")
                total[self.model.body_names.index(body)] += wrench
        except Rejected as error:
            self.rejections.add(error)
            return False
        self._wrenches, self._wrench_step = (total if total.any() else None), self.steps
        return True

    # ---- motion

    def advance(self, steps: int) -> bool:
        """Move on by `steps`; False if the simulation fails on the way (it then stands still, time goes on)."""
        s, before = self.settings, self.failure
        for _ in range(steps):
            self._expire(s)
            if self.failure or self.stamp_origin + self.time < s.brakes_until - 1e-6:
                if self.simulator.v.any():
                    self.simulator.reset(self.simulator.q)
            else:
                self._move()
            self.steps += 1
        return self.failure == before

    def _expire(self, s: SimulatorSettings) -> None:
        if self._command is not None and s.command_timeout > 0.0 and not self._timed_out and (
                (self.steps - self._command_step) * s.step >= s.command_timeout * (1.0 - 1e-9)):
            self.counts["timeouts"] += 1
            self._timed_out = True
            if not s.hold:
                self.effort = np.zeros(self.model.nv)
        if self._wrenches is not None and s.wrench_timeout > 0.0 and (
                (self.steps - self._wrench_step) * s.step >= s.wrench_timeout):
            self._wrenches = None

    def _move(self) -> None:
        try:
            self.simulator.step(self.effort, external_wrenches=self._wrenches)
        except RbdError as error:
            self.failure = str(error)
            self.counts["failures"] += 1

    def report(self) -> dict[str, Any]:
        """Counters by name, as diagnostics publish them."""
        values: dict[str, Any] = {"model": self.model.name, "simulated_time": self.time, **self.counts,
                                  "rejected_total": self.rejections.total}
        return values | {f"rejected_{kind}": count for kind, count in self.rejections.counts.items()}
