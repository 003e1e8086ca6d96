"""What every torque controller does with a joint state, without ROS: accept it, compute, make the effort safe."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..dynamics.inverse import gravity_effort, inverse_dynamics
from ..errors import RbdError
from ..model.robot_model import RobotModel
from .inputs import Rejections, StateInput
from .safety import SafetyFilter
from .statistics import CycleStatistics
from .torque_settings import TorqueSettings

Array = NDArray[np.float64]


class TorqueController:
    """Joint states in, safe efforts out. `now` is a steady time in s; all arrays are in model order.

    A subclass implements `command`. Call `activate`, then `on_state` for every joint state and `watchdog` regularly;
    `deactivate`, and after some more states, when `finished`, `finish`.
    """

    def __init__(self, model: RobotModel, settings: TorqueSettings) -> None:
        self.model, self.settings = model, settings
        self.rejections = Rejections()
        self.state = StateInput(model, self.rejections, settings.safety.state_timeout, settings.velocity_cutoff)
        self.safety = SafetyFilter(settings.safety, self.safe_effort)
        self.statistics = CycleStatistics(settings.state_rate)
        self._zero = np.zeros(model.nv)
        self._restarts = 0

    def apply(self, settings: TorqueSettings) -> None:
        """Use other settings from now on; the state of all inputs remains."""
        self.settings = settings
        self.safety.settings = settings.safety
        self.state.timeout, self.state.cutoff = settings.safety.state_timeout, settings.velocity_cutoff

    def command(self, now: float) -> Array | None:
        """The wanted effort in the last state, None as long as it is not known."""
        raise NotImplementedError

    def clear(self) -> None:
        """Forget all references: activation, and a clock that was reset."""

    def on_state(self, now: float, stamp_ns: int, names: Sequence[str], position: ArrayLike, velocity: ArrayLike = (),
                 effort: ArrayLike = ()) -> Array | None:
        """The effort to publish for this joint state, None if the state is rejected or the controller inactive."""
        if not self.state.accept(now, stamp_ns, names, position, velocity, effort) or self.safety.mode == "inactive":
            return None
        if self.state.restarts != self._restarts:
            self._restarts = self.state.restarts
            self.clear()
        self.statistics.received(now)
        try:
            command = self.command(now)
        except RbdError:
            command = None
            self.safety.counts["non_finite_command"] += 1
        return self.safety.update(now, command)

    def safe_effort(self, at_rest: bool) -> Array:
        """g(q) − damping M(q) v in the last state, without damping if `at_rest`; 0 if the robot compensates gravity."""
        if "gravity" in self.settings.compensates:
            return self._zero.copy()
        try:
            if at_rest:
                return gravity_effort(self.model, self.state.q)
            return inverse_dynamics(self.model, self.state.q, self._zero, -self.settings.safe_damping * self.state.v)
        except RbdError:
            return self.settings.safety.fallback

    def compare_gravity(self) -> tuple[bool, str] | None:
        """Whether the measured effort looks like the model's gravity torque, and a sentence; None if it is not known.

        Gravity compensated twice and gravity not compensated at all are the two classic failures.
        """
        measured = self.state.measured_effort
        if measured is None or not np.isfinite(measured).all() or not measured.any():
            return None
        gravity = gravity_effort(self.model, self.state.q)
        i = int(np.argmax(np.abs(measured - gravity)))
        text = (f"measured effort and the model's gravity torque differ most at joint '{self.model.joint_names[i]}': "
                f"{measured[i]:.3g} and {gravity[i]:.3g} (N m or N)")
        return bool(abs(measured[i] - gravity[i]) <= 0.2 * np.abs(gravity).max() + 0.1), text

    def watchdog(self, now: float) -> Array | None:
        """The effort to publish because no joint state comes, None while they do."""
        return self.safety.watchdog(now)

    def activate(self, now: float) -> None:
        self.clear()
        self.safety.activate(now)

    def deactivate(self) -> None:
        self.safety.deactivate()

    @property
    def finished(self) -> bool:
        return self.safety.finished

    def finish(self, now: float) -> Array | None:
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
            "cycles": self.statistics.cycles, "late_states": self.statistics.late_states,
            "clock_restarts": self.state.restarts, **self.safety.counts,
            "rejected_total": self.rejections.total}
        return values | {f"rejected_{kind}": count for kind, count in self.rejections.counts.items()}
