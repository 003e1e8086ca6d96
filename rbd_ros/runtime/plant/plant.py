"""The simulated robot of the simulator node, without ROS: validation of commands, motion in steps."""
from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...core.dynamics.constrained.constraint_wrenches import constraint_wrenches
from ...core.dynamics.constrained.forward import constrained_forward_dynamics
from ...core.dynamics.constrained.values import constraint_values
from ...core.dynamics.friction import friction_effort
from ...core.dynamics.inverse import bias_effort, gravity_effort
from ...core.errors import RbdError
from ...core.model.robot_model import RobotModel
from ...core.simulation.contact.records import ContactState
from ...core.simulation.simulator import Simulator
from ..inputs.finite import all_finite, worst
from ..inputs.joint_map import JointMap, as_array, total_wrenches
from ..inputs.rejections import TAKEN, Rejected, Rejections, Verdict
from ..wrench_sensors import readings
from .contact_forces import ContactForces
from .simulator_settings import SimulatorSettings

Array = NDArray[np.float64]
LATE = 4       # periods: libfranka, too, tolerates three lost packets
SLOW = 1e-2    # rad/s or m/s: speed below which brakes count as holding if joints creep under friction


class ConstraintForces(NamedTuple):
    """Multipliers (m,), N or N m, and constraint violations (m,), m or rad."""

    force: Array
    residual: Array


class Plant:
    """A simulated robot with commands. Arrays are in model order; `time` (s) is that since the last reset.

    Brakes hold the joints while there are no commands (`timeout_action: brake`), until the stamp (`stamp_origin` (s) +
    `time`) reaches `brakes_until`, and after a protective stop: `reflex` is its reason, until `reset`. If the
    simulation fails, `failure` is the reason, and the robot stands still until `reset`. simulator: by default
    `Simulator`; any object with its `q`, `v`, `brakes`, `creeps`, `step` and `reset`.
    """

    def __init__(self, model: RobotModel, settings: SimulatorSettings, simulator: Any = None) -> None:
        self.model, self.settings = model, settings
        self.rejections = Rejections()
        self.counts: Counter[str] = Counter({"commands": 0, "saturated": 0, "timeouts": 0, "failures": 0,
                                             "reflexes": 0})
        self.simulator = simulator or Simulator(
            settings.plant, step=settings.step, integrator=settings.integrator, limits=settings.position_limits,
            velocity_limits=settings.velocity_limits, q=settings.initial_position, v=settings.initial_velocity,
            constraints=settings.constraints if settings.constraints.size else None, contacts=settings.contacts,
            friction=settings.friction)
        self._contacts = ContactForces(settings.plant, self.simulator, settings.contacts) if settings.contacts else None
        self._names = JointMap(model, extra=False)
        self.effort = np.zeros(self.size)    # commanded effort of the drives in the next step
        self.reset()

    # ---- commanded coordinates: the joints here, the motors in a subclass

    motor_names: tuple[str, ...] = ()    # motors with their own coordinates, in the order of commands

    @property
    def size(self) -> int:
        """Number of efforts in a command."""
        return self.model.nv

    @property
    def command_names(self) -> tuple[str, ...]:
        """Names of the efforts, in the order of ~/commands."""
        return self.settings.joints

    def in_model_order(self, command: Array) -> Array:
        return command[self.settings.order]

    @property
    def effort_limit(self) -> Array:
        """Limits of efforts in model order, inf for none."""
        return self.settings.effort_limit

    @property
    def brake_effort(self) -> Array:
        """Friction of the brakes in model order."""
        return self.settings.brake_effort

    @property
    def joint_effort(self) -> Array:
        """Effort (nv,) of the drives, for the joint state."""
        return self.effort + self.compensation()

    def compensation(self) -> Array:
        """Effort (nv,) added to the command by the robot's own controller while the drives are on."""
        s, q, v = self.settings, np.array(self.simulator.q), np.array(self.simulator.v)
        effort = np.zeros(self.model.nv)
        if self._off:
            return effort
        if "gravity" in s.compensates:
            effort += gravity_effort(s.plant, q)
        if "coriolis" in s.compensates:
            effort += bias_effort(s.plant, q, v) - gravity_effort(s.plant, q)
        if "friction" in s.compensates:
            effort += friction_effort(s.plant, v)
        return effort

    def reset(self, q: ArrayLike | None = None, v: ArrayLike | None = None, stamp_origin: float = 0.0) -> None:
        """Reset to time zero in the given state, by default that of the settings; forget commands and wrenches."""
        s = self.settings
        explicit = q is not None
        self.simulator.reset(q if explicit else s.initial_position,
                             v if v is not None else np.zeros(self.model.nv) if explicit else s.initial_velocity)
        self.steps, self.stamp_origin, self.failure = 0, stamp_origin, ""
        if self._contacts is not None:
            self._contacts.forget()
        self._before: Array | None = None    # velocities before the last step
        self._command: Array | None = None
        self._command_step = self._wrench_step = 0
        self._wrenches: Array | None = None
        self._timed_out, self.reflex = False, ""
        self.effort = self._supervised = np.zeros(self.size)
        self._supervised_step, self.delayed = 0, 0.0    # s by which simulated time fell behind since that step
        self.simulator.brakes, self._engaged = None, False

    def warm_up(self) -> None:
        """Load or compile the code of a step."""
        simulator = self.simulator
        q, v = simulator.q, simulator.v
        simulator.step(self.effort)
        simulator.step(self.effort, external_wrenches=np.zeros((len(self.model.body_names), 6)))
        self.constraint_forces()
        self.contact_forces()
        self.compensation()
        self._before = np.array(v)
        self.sensed()
        self._before = None
        simulator.reset(q, v)

    @property
    def time(self) -> float:
        return self.steps * self.settings.step

    # ---- inputs

    def on_commands(self, values: ArrayLike) -> Verdict:
        """Take efforts in the order of `command_names`."""
        try:
            efforts = as_array(values)
            if efforts.shape != (self.size,):
                raise Rejected("wrong_size", f"command has {efforts.size} efforts, expected {self.size}: "
                                             f"{', '.join(self.command_names)}")
            if not all_finite(efforts):
                name = self.command_names[worst(efforts)]
                raise Rejected("non_finite", f"effort of joint '{name}' is not finite")
            self._accept(self.in_model_order(efforts))
        except Rejected as error:
            return self.rejections.add(error)
        return TAKEN

    def on_named_commands(self, names: Sequence[str], efforts: ArrayLike) -> Verdict:
        """Take the efforts of all names, in any order."""
        try:
            if not self._names.update(names):
                raise Rejected("unknown_joint", f"none of the joints {list(names)} belongs to the robot; its joints: "
                                                f"{', '.join(self.command_names)}")
            self._accept(self._names.rates("effort", efforts))
        except Rejected as error:
            return self.rejections.add(error)
        return TAKEN

    def _accept(self, effort: Array) -> None:
        limit = self.effort_limit
        limited = np.clip(effort, -limit, limit)
        self.counts["saturated"] += not np.array_equal(limited, effort)
        self.counts["commands"] += 1
        self._command, self._command_step, self._timed_out = limited, self.steps, False
        self.effort = np.zeros(self.size) if self.reflex else limited

    def on_wrenches(self, wrenches: Sequence[tuple[str, ArrayLike]]) -> Verdict:
        """Take all external wrenches: (body, [moment, force] on the body in its link frame)."""
        try:
            self._wrenches = total_wrenches(self.model, wrenches)
        except Rejected as error:
            return self.rejections.add(error)
        self._wrench_step = self.steps
        return TAKEN

    # ---- motion

    def advance(self, steps: int) -> bool:
        """Advance by `steps`; False if the simulation fails (the robot then stands still while time advances)."""
        s, before = self.settings, self.failure
        for _ in range(steps):
            self._expire(s)
            if self.steps % s.publish_every == 0:
                self._supervise(s)
            if self.braked != self._engaged:
                self._engaged = not self._engaged
                self.simulator.brakes = self.brake_effort if self._engaged else None
            if self.failure or (
                    self._engaged and self.simulator.creeps and np.abs(self.simulator.v).max() < SLOW):
                if self.simulator.v.any():
                    self.stand_still()
            else:
                self._move()
            self.steps += 1
        return self.failure == before

    @property
    def braked(self) -> bool:
        """Whether the brakes are engaged."""
        return self._off or self.stamp_origin + self.time < self.settings.brakes_until - 1e-6

    @property
    def _off(self) -> bool:
        """Whether the drives are off, by a stop or for lack of commands."""
        left_alone = self.settings.brakes and (self._command is None or self._timed_out)
        return left_alone or bool(self.reflex)

    def _supervise(self, s: SimulatorSettings) -> None:
        """Protective stop of the robot's own controller, checked once per period: command rate and velocity. The rate
        of a late command is taken over the time since the last one, at most LATE periods, plus the real time by which
        simulated time is behind.
        """
        if self.reflex or self.failure:
            return
        v, change = np.abs(self.simulator.v), np.zeros(self.model.nv)
        if self.effort is not self._supervised:
            late = min(self.steps - self._supervised_step, LATE * s.publish_every)
            change = np.abs(self.effort - self._supervised)[:self.model.nv] / (
                max(late, s.publish_every) * s.step + self.delayed)
            self._supervised, self._supervised_step, self.delayed = self.effort, self.steps, 0.0
        for label, value, limit, unit in (("the command to", change, s.reflex_rate, "N m/s"),
                                         ("", v, s.reflex_velocity, "rad/s")):
            i = int(np.argmax(value / limit))
            if value[i] > limit[i] * (1.0 + 1e-9):
                verb = "changes" if label else "moves"
                self.reflex = (f"{label} joint '{self.model.joint_names[i]}' {verb} by {value[i]:.4g} {unit}, at "
                               f"most {limit[i]:.4g} {unit} is allowed").lstrip()
                self.counts["reflexes"] += 1
                self.effort = np.zeros(self.size)
                return

    def stand_still(self) -> None:
        """Stop at the present position, clipped to the position limits if a soft stop was compressed."""
        q = self.simulator.q
        if self.settings.position_limits:
            q = np.clip(q, self.model.position_lower, self.model.position_upper)
        self.simulator.reset(q)

    def _expire(self, s: SimulatorSettings) -> None:
        if self._command is not None and s.command_timeout > 0.0 and not self._timed_out and (
                (self.steps - self._command_step) * s.step >= s.command_timeout * (1.0 - 1e-9)):
            self.counts["timeouts"] += 1
            self._timed_out = True
            if not s.hold:
                self.effort = np.zeros(self.size)
                self._supervised = self.effort    # the drives are off: no command
        if self._wrenches is not None and s.wrench_timeout > 0.0 and (
                (self.steps - self._wrench_step) * s.step >= s.wrench_timeout):
            self._wrenches = None

    def _move(self) -> None:
        self._before = np.array(self.simulator.v)
        effort = self.effort + self.compensation() if self.settings.compensates else self.effort
        try:
            self.simulator.step(effort, external_wrenches=self._wrenches)
            if self._contacts is not None:
                self._contacts.stepped()
        except RbdError as error:
            self.failure = str(error)
            self.counts["failures"] += 1

    def constraint_forces(self) -> ConstraintForces | None:
        """Forces and violations of all constraints in the present state, under the acting effort, viscous and Coulomb
        friction and external wrenches. None without constraints, while brakes hold, or in a singular pose. The
        influence of joint stops and sticking joints on the forces is neglected.
        """
        simulator, constraints = self.simulator, self.settings.constraints
        if not constraints.size or self.braked or self.failure:
            return None
        model, q, v = simulator.model, simulator.q, simulator.v
        effort = self.effort - model.damping * v - model.friction * np.sign(v)
        if self.settings.friction is not None:
            effort = self.settings.friction.remove(v, self.effort)
        try:
            dynamics = constrained_forward_dynamics(model, constraints, q, v, effort, external_wrenches=self._wrenches)
        except RbdError:
            return None
        return ConstraintForces(dynamics.multipliers, constraint_values(model, constraints, q))

    def contact_forces(self) -> tuple[ContactState, ...] | None:
        """Unilateral and compliant contacts, with the impulses since the last call. None without any, and after a
        failure.
        """
        if self._contacts is None or self.failure:
            return None
        try:
            return self._contacts.take()
        except RbdError:    # no closest points: reported by the next step
            return None

    def sensed(self) -> Array | None:
        """Readings (n, 6) of the configured force-torque sensors in the present state, with the mean acceleration of
        the last step (including friction, stops and brakes), external wrenches, contacts, and constraint forces by
        `constraint_forces`. None before the first step, and if constraint forces are unknown.
        """
        settings, simulator = self.settings, self.simulator
        rests = bool(self.failure) or (self.braked and not simulator.v.any())
        if not settings.sensors or not (rests or self._before is not None):
            return None
        model, q, v = settings.plant, np.array(simulator.q), np.array(simulator.v)
        a = np.zeros(model.nv) if rests or self._before is None else (v - self._before) / settings.step
        wrenches = self._wrenches
        if settings.constraints.size and not rests:
            forces = self.constraint_forces()
            if forces is None:
                return None
            try:
                loads = constraint_wrenches(model, settings.constraints, q, forces.force)
            except RbdError:    # overflow
                return None
            wrenches = loads if wrenches is None else loads + wrenches
        if self._contacts is not None and not self.failure:
            touched = self._contacts.wrenches(q, settings.step)
            wrenches = touched if wrenches is None else touched + wrenches
        return readings(model, settings.sensors, q, v, a, wrenches)

    def report(self) -> dict[str, Any]:
        """Counters by name, as diagnostics publish them."""
        values: dict[str, Any] = {"model": self.model.name, "simulated_time": self.time,
                                  "brakes": "on" if self.braked else "off", **self.counts,
                                  "rejected_total": self.rejections.total}
        return values | {f"rejected_{kind}": count for kind, count in self.rejections.counts.items()}
