"""Cartesian impedance control without ROS: a link is held at a target pose, by springs and dampers of its own space.

From activation the link is held where it is. A goal pose is approached by a filter, never stepped, at most as fast as
`target.speed` and `target.angular_speed`. Whenever the torque is not that of the law (an emergency stop, joint states
that cease, a loop that is too slow, a joint faster than its limit), the goal is dropped, and the link is later held
where it is then.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...core.dynamics.inverse import inverse_dynamics
from ...core.dynamics.kinematics import forward_kinematics
from ...core.lie import so3
from ...core.model.robot_model import RobotModel
from ...core.motion.pose_filter import PoseFilter
from ...core.motion.velocity_limits import velocity_limits
from ..inputs.finite import all_finite
from ..inputs.joint_map import Turns
from ..inputs.rejections import IGNORED, TAKEN, Rejected, Verdict
from ..safety import NOTHING, Command, NoCommand
from ..safety.hold import HoldGains
from .cartesian_law import CartesianLaw
from .cartesian_settings import CartesianSettings
from .energy_tank import EnergyTank
from .force_control import ForceControl
from .loop_rate import LoopRate
from .torque_controller import Laws, TorqueController
from .torque_settings import TorqueSettings

Array = NDArray[np.float64]
MODES = ("ramp_in", "running", "ramp_out")    # in which the law acts
LONGEST = 0.1     # s between two states for which the target goes on
EASY, FAST = 0.6, 1.2    # shares of the velocity limits: from there the target slows down; from there the law is off
LEASH, TURN = 0.15, 0.8    # m, rad: how far the target leaves a link behind that does not follow
HUGE = 10.0       # largest wrenches: what is measured beyond is rejected
UNFORCED = np.zeros(12)
UNIT = 1e-2       # deviation of a quaternion's norm from 1 that is accepted


class Aim(NamedTuple):
    """What the law aims at: the target (24,), as of `PoseFilter`, and the posture (nq,); applied (12,): a wrench and
    its setpoint.
    """

    target: Array
    posture: Array
    applied: Array = UNFORCED


class CartesianLaws(Laws):
    """The impedance, and gravity where the robot does not add it itself."""

    settings: CartesianSettings

    def __init__(self, settings: CartesianSettings) -> None:
        super().__init__(settings)
        self.law = CartesianLaw(settings)
        self._hold_gains = self.bounded(settings.kp, settings.kd, settings.safety.effort_limit)

    def hold_gains(self, q: Array) -> HoldGains | None:
        return self._hold_gains

    def effort(self, q: Array, v: Array, aim: Aim, loop: LoopRate) -> Array:
        """The effort (nv,); the loop's share is a factor of all but gravity."""
        compensates = self.settings.compensates
        own = self._zero if "gravity" in compensates else self.gravity(q)
        if loop.share <= 0.0:
            return own
        effort = self.impedance(q, v, aim, loop)
        if "coriolis" in compensates:
            effort += self.gravity(q) - inverse_dynamics(self.model, q, v, self._zero)
        return own + loop.share * effort

    def impedance(self, q: Array, v: Array, aim: Aim, loop: LoopRate) -> Array:
        """The effort (nv,) of the law alone."""
        period = max(loop.period, loop.step)    # as expected or learnt, or slower
        return self.law.effort(q, v, aim.target, aim.posture, 1.0 / period if period > 0.0 else np.inf, aim.applied)


class CartesianController(TorqueController[CartesianLaws]):
    """Holds a link at the target; `on_goal` sets where it goes."""

    settings: CartesianSettings

    def __init__(self, model: RobotModel, settings: CartesianSettings) -> None:
        super().__init__(model, settings)
        self._turns, self._fastest = Turns(model), velocity_limits(model)
        self._filter: PoseFilter | None = None
        self._posture = self._zero
        self._aim: Aim | None = None
        self._before: Aim | None = None     # of the cycle before
        self._time_ns, self._elapsed = 0, 0.0    # of the last state, and s before it
        self._goals = self._dropped = self._wrenches = 0
        self._tank: EnergyTank[CartesianLaws] = EnergyTank(settings.tank)
        self._force = ForceControl(settings.forces)
        self._gained = 0.0                  # W that the tank gains in the last state

    def make_laws(self, settings: CartesianSettings) -> CartesianLaws:
        return CartesianLaws(settings)

    def apply(self, settings: TorqueSettings) -> None:
        assert isinstance(settings, CartesianSettings)
        before = self.safety.laws.newest.law
        super().apply(settings)
        self.safety.laws.newest.law.replace(before)
        self._tank.size, self._force.settings = settings.tank, settings.forces
        if self._filter is not None:
            self._filter.speed, self._filter.angular_speed = settings.speed, settings.angular_speed

    def clear(self) -> None:
        self._drop()
        self._aim = None

    def _drop(self) -> None:
        self._dropped += self._filter is not None and not self._filter.waits
        self._filter = None
        for laws in (self.safety.laws.old, self.safety.laws.new, self.safety.laws.newest):
            if laws is not None:
                laws.law.forget()
        self._tank.refill()
        self._force.clear()
        self._gained = 0.0

    @property
    def pose(self) -> Array:
        """(4, 4), of the link in the last state, in axes of the root link."""
        return np.array(forward_kinematics(self.model, self.state.q)[self.model.body_index(self.settings.body)])

    def on_goal(self, now: float, frame: str, position: Sequence[float], quaternion: Sequence[float]) -> Verdict:
        """Take a goal pose in axes of a link, "" for the root link, at its present place; quaternion x, y, z, w."""
        try:
            axes, origin = self._accepted(now, frame, np.array(position, dtype=np.float64),
                                          np.array(quaternion, dtype=np.float64))
        except Rejected as error:
            return self.rejections.add(error)
        assert self._filter is not None
        self._filter.aim(axes, origin)
        self._goals += 1
        return TAKEN

    def _accepted(self, now: float, frame: str, position: Array, quaternion: Array) -> tuple[Array, Array]:
        if not (all_finite(position) and all_finite(quaternion)):
            raise Rejected("non_finite", f"goal pose {position.tolist()}, {quaternion.tolist()} is not finite")
        size = float(np.linalg.norm(quaternion))
        if not abs(size - 1.0) <= UNIT:
            raise Rejected("not_unit", f"goal pose: the quaternion has norm {size:.3g}, expected 1")
        R, T = so3.from_quaternion(quaternion / size), self._placed("goal pose", now, frame)
        position = T[:3, :3] @ position + T[:3, 3]
        distance = float(np.linalg.norm(position - self.pose[:3, 3]))
        if not distance <= self.settings.farthest:
            raise Rejected("implausible", f"goal pose is {distance:.3g} m away, at most {self.settings.farthest:g} "
                           "('target.farthest')")
        return T[:3, :3] @ R, position

    def on_target_wrench(self, now: float, frame: str, wrench: Sequence[float]) -> Verdict:
        """Take a wrench, [moment, force], which the link shall exert on what it touches, about its origin, in axes that
        a link, "" for the root link, has now. It holds until the next one; zero ends it.
        """
        try:
            values = self._wrench("target wrench", wrench, 1.0)
            R = self._placed("target wrench", now, frame)[:3, :3]
        except Rejected as error:
            return self.rejections.add(error)
        if values.any() and not self._force.active:
            self._tank.add(self._tank.size)
        self._force.aim(np.concatenate([R @ values[:3], R @ values[3:]]))
        self._wrenches += 1
        return TAKEN

    def on_measured_wrench(self, now: float, frame: str, wrench: Sequence[float]) -> Verdict:
        """Take a measured wrench, [moment, force], that acts on the link, in axes of a link and about its origin; "":
        in those of the root link, about the controlled one's origin.
        """
        try:
            values, T = self._wrench("measured wrench", wrench, HUGE), self._place("measured wrench", frame)
        except Rejected as error:
            return self.rejections.add(error)
        if self.safety.mode not in MODES:
            return IGNORED
        force, arm = T[:3, :3] @ values[3:], T[:3, 3] - self.pose[:3, 3] if frame else np.zeros(3)
        self._force.measure(now, -np.concatenate([T[:3, :3] @ values[:3] + np.cross(arm, force), force]))
        return TAKEN

    def _wrench(self, what: str, wrench: Sequence[float], most: float) -> Array:
        values, forces = np.array(wrench, dtype=np.float64), self.settings.forces
        if not all_finite(values):
            raise Rejected("non_finite", f"{what} {values.tolist()} is not finite")
        for part, unit, bound in ((values[:3], "N m", forces.largest_moment), (values[3:], "N", forces.largest)):
            with np.errstate(over="ignore"):
                size = float(np.linalg.norm(part))
            if not size <= most * bound:
                raise Rejected("excessive_wrench", f"{what} of {size:.4g} {unit}, at most {most * bound:g}")
        return values

    def _place(self, what: str, frame: str) -> Array:
        """Where a link is (4, 4), by the last state, in axes of the root link, which is ""."""
        names = self.model.body_names
        if frame and frame not in names:
            raise Rejected("frame", f"{what} in frame '{frame[:80]}', expected a link: {', '.join(names)}")
        if not frame or frame == names[0]:
            return np.eye(4)
        return np.array(forward_kinematics(self.model, self.state.q)[self.model.body_index(frame)])

    def _placed(self, what: str, now: float, frame: str) -> Array:
        """`_place`; raises `Rejected` unless the target can be moved."""
        T = self._place(what, frame)
        if self.safety.latched:
            raise Rejected("bad_trajectory", f"no {what} is accepted during an emergency stop: call ~/reset first")
        if (self._filter is None or self.safety.mode not in ("ramp_in", "running") or self.loop.slow
                or self.state.age(now) >= self.state.timeout):
            raise Rejected("bad_trajectory", f"no {what} is accepted while the link is not held, as without fresh "
                           f"joint states (mode '{self.safety.mode}')")
        return T

    def prepare(self, now: float) -> None:
        state, settings = self.state, self.settings
        self._before, elapsed = self._aim, 1e-9 * (state.time_ns - self._time_ns)
        self._time_ns, self._elapsed = state.time_ns, elapsed
        if (self._filter is None or self.safety.mode not in MODES or self.loop.slow
                or now - self.safety.time >= settings.safety.state_timeout):
            self._drop()
            T = self.pose
            self._filter = PoseFilter(T[:3, :3], T[:3, 3], settings.bandwidth, settings.speed, settings.angular_speed)
            self._posture = np.array(state.q)
        elif elapsed > 0.0:
            self._tank.add(self._gained * min(elapsed, LONGEST))
            if settings.bandwidth > self._filter.bandwidth or self._filter.rests:    # else it would pass its goal
                self._filter.bandwidth = settings.bandwidth
            self._filter.advance(min(elapsed, LONGEST), self._pace(self._filter))
        posture = self._turns.nearest(self._posture, state.q) if self._turns.any else self._posture
        self._aim = Aim(self._filter.target, posture)
        if self._force.active:
            applied = self._force.advance(now, min(max(elapsed, 0.0), LONGEST), self.safety.mode == "running")
            applied[:6] *= self._tank.share
            self._aim = self._aim._replace(applied=applied)

    def _pace(self, target: PoseFilter) -> float:
        """Share of its pace at which the target goes on: less near velocity limits, and away from a link left behind.
        """
        speed = float(np.max(np.abs(self.state.v) / self._fastest))
        slack = self.safety.laws.newest.law.slack(self.state.q, target.target, target.goal, LEASH, TURN)
        return min(max(min((1.0 - speed) / (1.0 - EASY), slack), 0.0), 1.0)

    def command(self, now: float, laws: CartesianLaws) -> Command | NoCommand:
        if self._aim is None:
            return NOTHING
        over = np.abs(self.state.v) / self._fastest
        j = int(np.argmax(over))
        if over[j] > FAST and self.safety.mode != "ramp_out":
            self._drop()
            return NoCommand(f"joint '{self.model.velocity_names[j]}' moves at {self.state.v[j]:.3g}, faster than its "
                             f"limit {self._fastest[j]:.3g} (rad/s or m/s)")
        if laws is self.safety.laws.new:
            self._release()
        effort = laws.effort(self.state.q, self.state.v, self._aim, self.loop)
        seen, weight = laws.law.seen, self._tank.weights.get(laws, 0.0) * self.safety.modes.share
        self._gained += weight * (max(seen.damped - max(seen.applied, 0.0), 0.0) - seen.applied)
        return Command(effort)

    def _release(self) -> None:
        """Let the springs of new laws act as the tank affords."""
        fade, state, aim, ramp = self.safety.laws, self.state, self._aim, self.settings.safety.ramp_in
        assert aim is not None
        feedback = self.loop.share
        old = {} if fade.old is None else {fade.old: (1.0 - fade.share) * feedback}
        self._gained = 0.0
        self._tank.release(fade.new, {**old, fade.new: fade.share * feedback},
                           lambda laws: laws.impedance(state.q, state.v, aim, self.loop),
                           max(self._elapsed, 0.0) / ramp if ramp > 0.0 else 1.0)

    def again(self, laws: CartesianLaws) -> tuple[Array, ...] | None:
        if self._before is None:
            return None
        return (laws.effort(self.state.q, self.state.v, self._before, self.loop),)

    def halt(self, now: float) -> None:
        super().halt(now)
        self._force.aim(np.zeros(6))
        if self._filter is not None:
            self._filter.halt()

    def warm_up(self) -> None:
        super().warm_up()
        q, T = self.model.neutral(), forward_kinematics(self.model, self.model.neutral())[-1]
        target = PoseFilter(T[:3, :3], T[:3, 3], 1.0, 1.0, 1.0).advance(1e-3)
        self.safety.laws.newest.effort(q, self._zero, Aim(target, q), self.loop)

    def report(self) -> dict[str, Any]:
        seen, force = self.safety.laws.newest.law.seen, self._force
        return super().report() | {
            "goals": self._goals, "goals_dropped": self._dropped, "position_error_mm": 1e3 * seen.off,
            "rotation_error_mrad": 1e3 * seen.turned, "hidden_directions": int(seen.hidden),
            "bounded_damping": int(seen.bounded), "wall_depth_mm": 1e3 * seen.depth,
            "spring_share": self.safety.laws.newest.law.share, "tank_j": self._tank.level,
            "target_wrenches": self._wrenches, "target_force_n": float(np.linalg.norm(force.setpoint[3:])),
            "measured_force_n": float(np.linalg.norm(force.measured[3:]))}
