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
from .friction_compensation import Dither, FrictionCompensation
from .guiding import Guide, Taught
from .loop_rate import LoopRate
from .torque_controller import Laws, TorqueController
from .torque_settings import TorqueSettings

Array = NDArray[np.float64]
MODES = ("ramp_in", "running", "ramp_out")    # in which the law acts
LONGEST = 0.1     # s between two states for which the target goes on
EASY, FAST = 0.6, 1.2    # shares of the velocity limits: from there the target slows down; from there the law is off
BRAKE = 40.0             # 1/s, damping of a guided link whose joints are as fast as their limits
LEASH, TURN = 0.15, 0.8    # m, rad: how far the target leaves a link behind that does not follow
WHOLE = np.zeros(6)    # of the stiffness: nothing gone
HUGE = 10.0       # largest wrenches: what is measured beyond is rejected
UNFORCED = np.zeros(12)
UNIT = 1e-2       # deviation of a quaternion's norm from 1 that is accepted


class Aim(NamedTuple):
    """What the law aims at: the target (24,), as of `PoseFilter`, and the posture (nq,); applied (12,): a wrench and
    its setpoint; free (6,), share of the stiffness that is gone; drag, 1/s, the least rate of damping; dither, number
    or (nv,), of friction compensation.
    """

    target: Array
    posture: Array
    applied: Array = UNFORCED
    free: Array = WHOLE
    drag: float = 0.0
    dither: Array | float = 0.0


class CartesianLaws(Laws):
    """The impedance, and gravity where the robot does not add it itself."""

    settings: CartesianSettings

    def __init__(self, settings: CartesianSettings) -> None:
        super().__init__(settings)
        self.law = CartesianLaw(settings)
        self._compensation = FrictionCompensation(
            None if "friction" in settings.compensates else settings.friction.law(settings.model),
            settings.compensation)
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
        if self._compensation:
            gravity = self.gravity(q) if own is self._zero else own
            effort += self._compensation.effort(v, effort, gravity + effort, aim.dither)
        if "coriolis" in compensates:
            effort += self.gravity(q) - inverse_dynamics(self.model, q, v, self._zero)
        return own + loop.share * effort

    def impedance(self, q: Array, v: Array, aim: Aim, loop: LoopRate) -> Array:
        """The effort (nv,) of the law alone."""
        period = max(loop.period, loop.step)    # as expected or learnt, or slower
        return self.law.effort(q, v, aim.target, aim.posture, 1.0 / period if period > 0.0 else np.inf, aim.applied,
                               aim.free, aim.drag)


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
        self._guide: Guide | None = None    # while and after the link is guided, until all stiffness is back
        self._dither: Dither | None = None
        self._taught: Taught | None = None
        self._time_ns = 0                   # of the last state
        self._goals = self._dropped = 0
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

    def begin_anew(self) -> None:
        super().begin_anew()
        if self.safety.mode in MODES:    # the law acts at once, from wherever the states say that the robot is
            self.safety.lose()

    def _drop(self) -> None:
        self._dropped += self._filter is not None and not self._filter.waits
        if self._guide is not None:
            self.notice("hand guiding ended, with what ended the law: call ~/guide again")
        self._filter = self._guide = self._dither = None
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

    def _check_held(self, now: float, refusal: str) -> PoseFilter:
        if self.safety.latched:
            raise Rejected("bad_trajectory", f"{refusal} during an emergency stop: call ~/reset first")
        if (self._filter is None or self.safety.mode not in ("ramp_in", "running") or self.loop.slow
                or self.state.age(now) >= self.state.timeout):
            raise Rejected("bad_trajectory", f"{refusal} while the link is not held, as without fresh joint states "
                           f"(mode '{self.safety.mode}')")
        return self._filter

    def _check_unguided(self, refusal: str) -> None:
        if self._guide is not None:
            raise Rejected("bad_trajectory", f"{refusal} while the link is guided: call ~/guide with false first")

    def guide(self, now: float, on: bool) -> Verdict:
        """Begin or end hand guiding: axes in `guide.free` lose their stiffness, and get it back, within 0.3 s."""
        if not on:
            if self._guide is not None:
                self._guide.on = False
            return TAKEN
        try:
            target = self._check_held(now, "no hand guiding")
        except Rejected as error:
            return self.rejections.add(error)
        if self._guide is not None:
            self._guide.on = True
            return TAKEN
        target.place(target.target[:9], target.target[9:12])
        self._force.aim(np.zeros(6))
        settings = self.settings
        self._guide = Guide(settings.free, settings.frame == "target",
                            np.concatenate([settings.translation, settings.rotation]), settings.release)
        return TAKEN

    def teach(self) -> Verdict:
        """Record the positions of the guided arm from now on, instead of those recorded before."""
        if self._guide is None or not self._guide.on:
            return self.rejections.add(Rejected("bad_trajectory", "nothing is taught while the link is not guided: "
                                                "call ~/guide with true first"))
        self._taught = Taught()
        return TAKEN

    def take_taught(self) -> Array | None:
        """Positions (N, nq) recorded since `teach`, which ends; None without any."""
        taught, self._taught = self._taught, None
        return None if taught is None else taught.positions

    def _accepted(self, now: float, frame: str, position: Array, quaternion: Array) -> tuple[Array, Array]:
        if not (all_finite(position) and all_finite(quaternion)):
            raise Rejected("non_finite", f"goal pose {position.tolist()}, {quaternion.tolist()} is not finite")
        size = float(np.linalg.norm(quaternion))
        if not abs(size - 1.0) <= UNIT:
            raise Rejected("not_unit", f"goal pose: the quaternion has norm {size:.3g}, expected 1")
        if frame and frame not in self.model.body_names:
            raise Rejected("frame", f"goal pose in frame '{frame[:80]}', expected a link: "
                           f"{', '.join(self.model.body_names)}")
        self._check_held(now, "no goal is accepted")
        self._check_unguided("no goal is accepted")
        R = so3.from_quaternion(quaternion / size)
        if frame and frame != self.model.body_names[0]:
            T = forward_kinematics(self.model, self.state.q)[self.model.body_index(frame)]
            position, R = T[:3, :3] @ position + T[:3, 3], T[:3, :3] @ R
        distance = float(np.linalg.norm(position - self.pose[:3, 3]))
        if not distance <= self.settings.farthest:
            raise Rejected("implausible", f"goal pose is {distance:.3g} m away, at most {self.settings.farthest:g} "
                           "('target.farthest')")
        return R, position

    def on_target_wrench(self, now: float, frame: str, wrench: Sequence[float]) -> Verdict:
        """Take a wrench, [moment, force], which the link shall exert on what it touches, about its origin, in axes that
        a link, "" for the root link, has now. It holds until the next one; zero ends it.
        """
        try:
            values = self._wrench("target wrench", frame, wrench, 1.0)
            self._check_held(now, "no target wrench is accepted")
            self._check_unguided("no target wrench is accepted")
        except Rejected as error:
            return self.rejections.add(error)
        R = self._place(frame)[:3, :3]
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
            values = self._wrench("measured wrench", frame, wrench, HUGE)
        except Rejected as error:
            return self.rejections.add(error)
        if self.safety.mode not in MODES:
            return IGNORED
        T = self._place(frame)
        force, arm = T[:3, :3] @ values[3:], T[:3, 3] - self.pose[:3, 3] if frame else np.zeros(3)
        self._force.measure(now, -np.concatenate([T[:3, :3] @ values[:3] + np.cross(arm, force), force]))
        return TAKEN

    def _wrench(self, what: str, frame: str, wrench: Sequence[float], most: float) -> Array:
        values, forces = np.array(wrench, dtype=np.float64), self.settings.forces
        if not all_finite(values):
            raise Rejected("non_finite", f"{what} {values.tolist()} is not finite")
        if frame and frame not in self.model.body_names:
            raise Rejected("frame", f"{what} in frame '{frame[:80]}', expected a link: "
                           f"{', '.join(self.model.body_names)}")
        for part, unit, bound in ((values[:3], "N m", forces.largest_moment), (values[3:], "N", forces.largest)):
            with np.errstate(over="ignore"):
                size = float(np.linalg.norm(part))
            if not size <= most * bound:
                raise Rejected("excessive_wrench", f"{what} of {size:.4g} {unit}, at most {most * bound:g}")
        return values

    def _place(self, frame: str) -> Array:
        """Where a link is (4, 4), by the last state; "": the root link."""
        if not frame:
            return np.eye(4)
        return np.array(forward_kinematics(self.model, self.state.q)[self.model.body_index(frame)])

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
        if elapsed > 0.0 and self._guide is not None:
            self._guided(min(elapsed, LONGEST), self._guide, self._filter)
        elif elapsed > 0.0:
            if settings.bandwidth > self._filter.bandwidth or self._filter.rests:    # else it would pass its goal
                self._filter.bandwidth = settings.bandwidth
            self._filter.advance(min(elapsed, LONGEST), self._pace(self._filter))
        posture = self._turns.nearest(self._posture, state.q) if self._turns.any else self._posture
        self._aim = Aim(self._filter.target, posture)
        if self._force.active:
            applied = self._force.advance(now, min(max(elapsed, 0.0), LONGEST), self.safety.mode == "running")
            applied[:6] *= self._tank.share
            self._aim = self._aim._replace(applied=applied)
        if (guide := self._guide) is not None:
            over = max(self._share_of_limits() - EASY, 0.0) / (1.0 - EASY)
            if not guide.on or guide.held or settings.dither <= 0.0:
                self._dither = None
            elif self._dither is None:
                self._dither = Dither(settings.dither, 1e-9 * state.time_ns, state.q)
            self._aim = self._aim._replace(
                free=guide.share, drag=guide.gone * (settings.guide_damping + BRAKE * over),
                dither=0.0 if self._dither is None else guide.gone * self._dither.direction(
                    1e-9 * state.time_ns, state.q, self.model))

    def _guided(self, dt: float, guide: Guide, target: PoseFilter) -> None:
        T, q = self.pose, self.state.q
        held = guide.held
        target.place(*guide.advance(dt, T[:3, :3], T[:3, 3], target.target))
        self._posture = self._posture + guide.gone * self.model.difference(self._posture, q)
        if guide.held != held:
            self.notice("the guided link drifts and is held: an error of the model, of friction or of the payload; "
                        "pull it to guide it again" if guide.held else "the guided link is free again")
        if self._taught is not None and guide.moves:
            self._taught.record(1e-9 * self.state.time_ns, q)
        if guide.over:
            self._guide = None

    def _pace(self, target: PoseFilter) -> float:
        """Share of its pace at which the target goes on: less near velocity limits, and away from a link left behind.
        """
        speed = self._share_of_limits()
        slack = self.safety.laws.newest.law.slack(self.state.q, target.target, target.goal, LEASH, TURN)
        return min(max(min((1.0 - speed) / (1.0 - EASY), slack), 0.0), 1.0)

    def _share_of_limits(self) -> float:
        """The largest ratio of a joint's speed to its limit."""
        return float(np.max(np.abs(self.state.v) / self._fastest))

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
        if self._guide is not None:
            self._guide.on = False
        elif self._filter is not None:
            self._filter.halt()

    def warm_up(self) -> None:
        super().warm_up()
        q, T = self.model.neutral(), forward_kinematics(self.model, self.model.neutral())[-1]
        target = PoseFilter(T[:3, :3], T[:3, 3], 1.0, 1.0, 1.0).advance(1e-3)
        self.safety.laws.newest.effort(q, self._zero, Aim(target, q), self.loop)

    def report(self) -> dict[str, Any]:
        seen, force = self.safety.laws.newest.law.seen, self._force
        return super().report() | {
            "guided": "no" if self._guide is None else "held" if self._guide.held else "yes",
            "taught_s": 0.0 if self._taught is None else self._taught.duration,
            "goals": self._goals, "goals_dropped": self._dropped, "position_error_mm": 1e3 * seen.off,
            "rotation_error_mrad": 1e3 * seen.turned, "hidden_directions": int(seen.hidden),
            "bounded_damping": int(seen.bounded), "wall_depth_mm": 1e3 * seen.depth,
            "spring_share": self.safety.laws.newest.law.share, "tank_j": self._tank.level,
            "target_wrenches": self._wrenches, "target_force_n": float(np.linalg.norm(force.setpoint[3:])),
            "measured_force_n": float(np.linalg.norm(force.measured[3:]))}
