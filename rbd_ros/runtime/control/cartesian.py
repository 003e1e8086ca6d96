"""Cartesian impedance control without ROS: a link is held at a target pose, by springs and dampers of its own space.

From activation the link is held where it is. A goal pose is approached by a filter, never stepped, at most as fast as
`target.speed` and `target.angular_speed`. A twist moves the target through the same filter, until the next goal or for
`target.twist_timeout`. A trajectory is followed as it is, later where the link is held up. Whenever the torque is not
that of the law (an emergency stop, joint states that cease, a loop that is too slow, a joint faster than its limit),
all of these are dropped, and the link is later held where it is then. Under law `joint` the arm is held in its posture
instead; a change in motion brings it to rest first. In hand guiding the link drags the target along free axes.
"""
from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.dynamics.kinematics import forward_kinematics, jacobian
from ...core.errors import RbdError
from ...core.lie import so3
from ...core.model.robot_model import RobotModel
from ...core.motion.pose_filter import PoseFilter
from ...core.motion.pose_trajectory import PosePoints, PoseTrajectory
from ...core.motion.smooth_trajectory import load
from ...core.motion.velocity_limits import velocity_limits
from ..inputs.finite import all_finite
from ..inputs.joint_map import Turns
from ..inputs.pose_points import PosePoint, pose_points, rotation
from ..inputs.rejections import IGNORED, TAKEN, Rejected, Verdict
from ..safety import NOTHING, Command, NoCommand
from .cartesian_laws import Aim, CartesianLaws
from .cartesian_settings import CartesianSettings
from .energy_tank import EnergyTank
from .following import NO_LOCK
from .force_control import ForceControl
from .friction_compensation import Dither
from .guiding import Guide, Taught
from .torque_controller import SETTLING, Controller
from .torque_settings import TorqueSettings

Array = NDArray[np.float64]
MODES = ("ramp_in", "running", "ramp_out")    # in which the law acts
LONGEST = 0.1     # s between two states for which the target goes on
EASY, FAST = 0.6, 1.2    # shares of the velocity limits: from there the target slows down; from there the law is off
BRAKE = 40.0             # 1/s, damping of a guided link whose joints are as fast as their limits
LEASH, TURN = 0.15, 0.8    # m, rad: how far the target leaves a link behind that does not follow
START, START_TURN = 0.02, 0.05    # m, rad: how far the first point of a trajectory may be from target or link
FASTEST = 100.0   # m/s or rad/s: twists beyond it are rejected
HUGE = 10.0       # largest wrenches: what is measured beyond is rejected


class CartesianController(Controller[CartesianLaws]):
    """Holds a link at the target; `on_goal`, `on_twist` and `on_trajectory` set where it goes."""

    settings: CartesianSettings

    def __init__(self, model: RobotModel, settings: CartesianSettings) -> None:
        super().__init__(model, settings)
        self.fastest, self._turns = velocity_limits(model), Turns(model)    # rad/s or m/s
        self._fastest = self.fastest.tolist()
        self.filter: PoseFilter | None = None
        self.posture, self._following = self._zero, 0    # states that target, posture and walls still follow
        self._held, self._held_ns, self._held_bandwidth = np.zeros((2, model.nv)), 0, 1.0    # as it began
        self._speeds: list[float] = []    # of the last state, as shares of the limits
        self._aim: Aim | None = None
        self._before: Aim | None = None     # of the cycle before
        self._time_ns, self._elapsed = 0, 0.0    # of the last state, and s before it
        self._guide: Guide | None = None    # while and after the link is guided, until all stiffness is back
        self._dither: Dither | None = None
        self._taught: Taught | None = None
        self.tank: EnergyTank[CartesianLaws] = EnergyTank(settings.tank)
        self._force = ForceControl(settings.forces)
        self.gained = 0.0                  # W that the tank gains in the last state
        self._twist, self._twist_at = np.zeros(6), -np.inf    # the last one, while it acts, and when it came, s
        self._goals = self._twists = self._trajectories = self._wrenches = self._dropped = 0

    def make_laws(self, settings: CartesianSettings) -> CartesianLaws:
        return CartesianLaws(settings)

    def apply(self, settings: TorqueSettings) -> None:
        assert isinstance(settings, CartesianSettings)
        joint = settings.law == "joint" != self.settings.law
        before = self.safety.laws.newest.law
        super().apply(settings)
        self.safety.laws.newest.law.replace(before)
        self.tank.size, self._force.settings = settings.tank, settings.forces
        if self.filter is not None:
            if joint:
                self._count_dropped("law joint")
                if self._guide is not None:
                    self._guide.on = False    # softly: the law of before acts until it has faded
                    self.notice("hand guiding ended: law joint")
                else:
                    self._stop_target()
                self._force.aim(np.zeros(6))
            self.filter.speed, self.filter.angular_speed = settings.speed, settings.angular_speed

    def clear(self) -> None:
        self._drop("joint states are those of another clock, or of a robot that is elsewhere")
        self._aim = None

    def begin_anew(self) -> None:
        super().begin_anew()
        if self.safety.mode in MODES:    # the law acts at once, from wherever the states say that the robot is
            self.safety.lose()

    def reset(self, now: float) -> None:
        if self.safety.latched:    # no state may have arrived since the stop
            self._drop("an emergency stop")
        super().reset(now)

    def _drop(self, cause: str) -> None:
        """Forget the target."""
        self._count_dropped(cause)
        self._end_guiding()
        self.filter = None
        self._twist_at = -np.inf
        self._forget_walls()
        self.tank.refill()
        self._force.clear()
        self.gained = 0.0

    def _forget_walls(self) -> None:
        for laws in (self.safety.laws.old, self.safety.laws.new, self.safety.laws.newest):
            if laws is not None:
                laws.law.forget()

    def _end_guiding(self) -> None:
        if self._guide is not None:
            self.notice("hand guiding ended, with what ended the law: call ~/guide again")
        self._guide = self._dither = None
        self._end_teaching()

    def _end_teaching(self) -> None:
        if self._taught is not None:
            self._taught.on = False    # as the arm may be elsewhere when it is guided again

    def _count_dropped(self, cause: str) -> None:
        if self.filter is not None and not self.filter.waits:
            self._dropped += 1
            self.notice(f"the goal was dropped, and the arm is held; send another one: {cause}")

    @property
    def target(self) -> Array | None:
        """(24,), as of `PoseFilter`; None before the first joint state, and under law joint."""
        return None if self._aim is None or self.settings.law == "joint" else self._aim.target

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
        assert self.filter is not None
        self.filter.aim(axes, origin)
        self._twist_at = -np.inf
        self._goals += 1
        return TAKEN

    def on_twist(self, now: float, frame: str, linear: Sequence[float], angular: Sequence[float]) -> Verdict:
        """Take a twist of the controlled link, about its origin, in axes that a link, "" for the root link, has now."""
        try:
            twist = np.array([*angular, *linear], dtype=np.float64)
            if not all_finite(twist):
                raise Rejected("non_finite", f"twist {twist[3:].tolist()}, {twist[:3].tolist()} is not finite")
            R = self._placed("twist", now, frame)[:3, :3]
            if np.abs(twist).max() > FASTEST:
                raise Rejected("implausible", f"twist of {np.abs(twist).max():.3g} m/s or rad/s, at most {FASTEST:g}")
        except Rejected as error:
            return self.rejections.add(error)
        assert self.filter is not None
        self._twist, self._twist_at = np.concatenate([R @ twist[:3], R @ twist[3:]]), now
        if not twist.any():
            self._stop_target()
        self._twists += 1
        return TAKEN

    def on_trajectory(self, now: float, stamp_ns: int, frame: str, names: Sequence[str], points: Sequence[PosePoint],
                      lock: AbstractContextManager[Any] = NO_LOCK) -> Verdict:
        """Take a trajectory of the controlled link, `names`, in axes of a link at its present place, "" for the root
        link; it begins now or, in the time of the joint states, at its stamp. Without points: stop. lock: held while
        the state is read and the trajectory begins, not during its checks.
        """
        try:
            with lock:
                T = self._placed("trajectory", now, frame)
                if stamp_ns and self.state.unstamped:
                    raise Rejected("bad_trajectory", "joint states have no stamps to compare the trajectory's stamp "
                                   "with: send it with stamp 0, to begin at once")
                assert self.filter is not None
                state_ns, start, link = self.state.time_ns, self.filter.state.copy(), self.pose
            course = None if not len(points) else self._course(
                pose_points(names, points, self.settings.body).seen_from(T), start, link,
                1e-9 * (stamp_ns - state_ns) if stamp_ns else 0.0)
            with lock:
                self._placed("trajectory", now, frame)
                if course is None:
                    self._stop_target()
                else:
                    passed = 1e-9 * (self.state.time_ns - state_ns)
                    course.begin(self.filter.state, passed)
                    self.filter.follow(course, passed)
                    self._twist_at = -np.inf
        except RbdError as error:
            return self.rejections.add(error if isinstance(error, Rejected) else Rejected("bad_trajectory", str(error)))
        self._trajectories += 1
        return TAKEN

    def _course(self, points: PosePoints, start: Array, link: Array, delay: float) -> PoseTrajectory:
        """The motion from a state (24,) of the target through the points; link (4, 4): where that is."""
        past = int(np.sum(points.time + delay <= 0.0))
        if past == len(points.time):
            raise Rejected("bad_trajectory", "trajectory has no point after its start" if delay == 0.0 else
                           f"trajectory lies in the past: it ended {-delay - points.time[-1]:.3f} s ago")
        if past and delay == 0.0:    # of the first point only its place counts
            gaps = [(float(np.linalg.norm(points.origin[0] - p)), float(np.linalg.norm(so3.log(points.axes[0] @ R.T))))
                    for R, p in ((start[:9].reshape(3, 3), start[9:12]), (link[:3, :3], link[:3, 3]))]
            if not any(off <= START and turned <= START_TURN for off, turned in gaps):
                raise Rejected("bad_trajectory", f"trajectory begins {gaps[0][0]:.3g} m and {gaps[0][1]:.3g} rad from "
                               f"the target, at most {START:g} m and {START_TURN:g} rad: give its first point a later "
                               "time")
        points = points.after(past, delay)
        distance = np.linalg.norm(points.origin - link[:3, 3], axis=1)
        i = int(np.argmax(distance))
        if not distance[i] <= self.settings.farthest:
            raise Rejected("implausible", f"trajectory point {past + i} is {distance[i]:.3g} m away, at most "
                           f"{self.settings.farthest:g} ('target.farthest')")
        settings = self.settings
        return PoseTrajectory(points, start, settings.speed, settings.angular_speed, past, settings.acceleration,
                              settings.angular_acceleration)

    def _stop_target(self) -> None:
        self._twist_at = -np.inf
        if self.filter is not None:
            self.filter.halt()

    def guide(self, now: float, on: bool) -> Verdict:
        """Begin or end hand guiding: axes in `guide.free` lose their stiffness, and get it back, within 0.3 s."""
        if not on:
            if self._guide is not None:
                self._guide.on = False
            return TAKEN
        try:
            self._check_held("hand guiding", now)
        except Rejected as error:
            return self.rejections.add(error)
        if self._guide is not None:
            self._guide.on = True
            return TAKEN
        assert self.filter is not None
        settings, target = self.settings, self.filter.target
        force = float(np.linalg.norm(settings.free[:3] * settings.translation * (target[9:12] - self.pose[:3, 3])))
        if force > settings.release and self.filter.rests:
            return self.rejections.add(Rejected("bad_trajectory", f"no hand guiding: the springs carry {force:.3g} N, "
                                                f"which the hand would have to (at most {settings.release:g}, "
                                                "'guide.release'): is a load missing in payload.*?"))
        self._twist_at = -np.inf
        self._force.aim(np.zeros(6))
        self._guide = Guide(settings.free, settings.frame == "target",
                            np.concatenate([settings.translation, settings.rotation]), settings.release,
                            self.filter.target[12:])
        return TAKEN

    def teach(self) -> Verdict:
        """Record the positions of the guided arm from now on, instead of those recorded before."""
        if self._guide is None or not self._guide.on:
            return self.rejections.add(Rejected("bad_trajectory", "nothing is taught while the link is not guided: "
                                                "call ~/guide with true first"))
        self._taught = Taught()
        return TAKEN

    def take_taught(self) -> Taught | None:
        """What was recorded since `teach`, which ends."""
        taught, self._taught = self._taught, None
        return taught

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
            self.tank.add(self.tank.size)
        self._force.aim(np.concatenate([R @ values[:3], R @ values[3:]]))
        self._wrenches += 1
        return TAKEN

    def on_measured_wrench(self, now: float, frame: str, wrench: Sequence[float]) -> Verdict:
        """Take a measured wrench, [moment, force], that acts on the link, in axes of a link and about its origin; "":
        in those of the root link, about the controlled one's origin.
        """
        try:
            values = self._wrench("measured wrench", wrench, HUGE)
            T = self._place("measured wrench", frame)
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

    def _placed(self, what: str, now: float, frame: str) -> Array:
        """Where a link is (4, 4), by the last state, in axes of the root link; raises `Rejected` unless the target can
        be moved.
        """
        T = self._place(what, frame)
        self._check_held(what, now)
        if self._guide is not None:
            raise Rejected("bad_trajectory", f"no {what} is accepted while the link is guided: call ~/guide with false "
                           "first")
        return T

    def _check_held(self, what: str, now: float) -> None:
        if self.settings.law == "joint" or not self._acts("cartesian"):
            raise Rejected("bad_trajectory", f"no {what} is accepted under law 'joint' (parameter 'law')")
        if self.safety.latched:
            raise Rejected("bad_trajectory", f"no {what} is accepted during an emergency stop: call ~/reset first")
        if (self.filter is None or self.safety.mode not in ("ramp_in", "running") or self.loop.slow
                or self.state.age(now) >= self.state.timeout):
            raise Rejected("bad_trajectory", f"no {what} is accepted while the link is not held, as without fresh "
                           f"joint states (mode '{self.safety.mode}')")

    def _place(self, what: str, frame: str) -> Array:
        names = self.model.body_names
        if frame and frame not in names:
            raise Rejected("frame", f"{what} in frame '{frame[:80]}', expected a link: {', '.join(names)}")
        if not frame or frame == names[0]:
            return np.eye(4)
        return np.array(forward_kinematics(self.model, self.state.q)[self.model.body_index(frame)])

    def _accepted(self, now: float, frame: str, position: Array, quaternion: Array) -> tuple[Array, Array]:
        if not (all_finite(position) and all_finite(quaternion)):
            raise Rejected("non_finite", f"goal pose {position.tolist()}, {quaternion.tolist()} is not finite")
        R, T = rotation("goal pose", quaternion), self._placed("goal pose", now, frame)
        position = T[:3, :3] @ position + T[:3, 3]
        distance = float(np.linalg.norm(position - self.pose[:3, 3]))
        if not distance <= self.settings.farthest:
            raise Rejected("implausible", f"goal pose is {distance:.3g} m away, at most {self.settings.farthest:g} "
                           "('target.farthest')")
        return T[:3, :3] @ R, position

    def prepare(self, now: float) -> None:
        state, settings = self.state, self.settings
        self._before, elapsed = self._aim, 1e-9 * (state.time_ns - self._time_ns)
        self._time_ns, self._elapsed = state.time_ns, elapsed
        self._speeds = [abs(v) / most for v, most in zip(state.v.tolist(), self._fastest, strict=True)]
        if elapsed > 0.0:
            self.tank.add(self.gained * min(elapsed, LONGEST))
        if (self.filter is None or self.safety.mode not in MODES or self.loop.slow
                or now - self.safety.time >= settings.safety.state_timeout):
            self._drop("an emergency stop" if self.safety.latched else self.loop.problem if self.loop.slow else
                       "there were no joint states, or no answers to them")
            self._following = SETTLING
        elif self._following > 0 and not self.filter.waits:
            self._following = 0
        if self.filter is None or self._following > 0:
            self._following -= 1
            self.filter = self._target_at_link()
            self._hold(self._zero)
            self._forget_walls()
        elif elapsed > 0.0 and self._guide is not None:
            self._guided(min(elapsed, LONGEST), self._guide, self.filter)
        elif elapsed > 0.0:
            bandwidth = self.filter.bandwidth
            if settings.bandwidth > bandwidth or (settings.bandwidth < bandwidth and self.filter.rests):
                self.filter.bandwidth = settings.bandwidth    # a lower one in motion would pass its goal
            if self._twist_at > -np.inf:
                self._lead(now, self.filter)
            self.filter.advance(min(elapsed, LONGEST), self._pace(self.filter))
        if not (of_joints := self._acts("joint")):
            self._hold(state.v)
        if not self._acts("cartesian"):    # it begins where the link is, and as fast, and comes to rest
            self.filter = self._target_at_link(jacobian(self.model, state.q, settings.body, "aligned") @ state.v)
            self._forget_walls()
        posture = self._turns.nearest(self.posture, state.q) if self._turns.any else self.posture
        self._aim = Aim(self.filter.target, posture, self._held_now() if of_joints else self._held)
        if self._force.active:
            applied = self._force.advance(now, min(max(elapsed, 0.0), LONGEST), self.safety.mode == "running")
            applied[:6] *= self.tank.share
            self._aim = self._aim._replace(applied=applied)
        if (guide := self._guide) is not None:
            twist = jacobian(self.model, state.q, settings.body, "aligned") @ state.v
            over = max((max(self._speeds) - EASY) / (1.0 - EASY), 0.0,
                       float(np.linalg.norm(twist[3:])) / settings.speed - 1.0,
                       float(np.linalg.norm(twist[:3])) / settings.angular_speed - 1.0)
            if not guide.on or guide.held or settings.dither <= 0.0:
                self._dither = None
            elif self._dither is None:
                self._dither = Dither(settings.dither, 1e-9 * state.time_ns, state.q)
            self._aim = self._aim._replace(
                free=guide.share, drag=guide.gone, brake=guide.gone * BRAKE * over,
                dither=0.0 if self._dither is None else guide.gone * self._dither.direction(
                    1e-9 * state.time_ns, state.q, self.model))

    @property
    def led(self) -> bool:
        """Whether the link is held at a target that goes to a goal, or along a trajectory, at its own pace, and nothing
        else acts: no hand guiding, no wrench.
        """
        return (self.filter is not None and self._guide is None and self._twist_at == -math.inf
                and not self._force.active and self._following <= 0)

    def follow_steady(self, posture: Array, gained: float) -> None:
        """Record a steady cycle, after which `filter` and `tank` are as of the last state. gained: W."""
        assert self.filter is not None
        self._hold(self.state.v)
        self.gained, self._time_ns = gained, self.state.time_ns
        self._aim = Aim(self.filter.target, posture, self._held)

    def _acts(self, law: str) -> bool:
        """Whether this law has an effect; a new one has none before an earlier fade is over."""
        fade = self.safety.laws
        return fade.new.settings.law == law or (fade.old is not None and fade.old.settings.law == law)

    def _guided(self, dt: float, guide: Guide, target: PoseFilter) -> None:
        T, q = self.pose, self.state.q
        held, guide.in_target = guide.held, self.safety.laws.new.settings.frame == "target"
        target.place(*guide.advance(dt, T[:3, :3], T[:3, 3], target.target))
        posture = self._turns.nearest(self.posture, q)
        self.posture = posture + guide.gone * (q - posture)
        if guide.held != held:
            self.notice("the guided link drifts and is held: an error of the model, of friction or of the payload; "
                        "pull it to guide it again" if guide.held else "the guided link is free again")
        if (taught := self._taught) is not None and taught.on and guide.moves and not taught.record(
                dt, q if taught.last is None else self._turns.nearest(q, taught.last)):
            self.notice(f"nothing is recorded after {taught.duration:.0f} s: call ~/teach with false")
        if guide.over:
            self._guide = None
            self._end_teaching()

    def _target_at_link(self, twist: Array | None = None) -> PoseFilter:
        """A target that begins where the link is, and the present posture with it."""
        T, settings, self.posture = self.pose, self.settings, np.array(self.state.q)
        return PoseFilter(T[:3, :3], T[:3, 3], settings.bandwidth, settings.speed, settings.angular_speed, twist)

    def _hold(self, v: Array) -> None:
        """Law joint begins where the arm is, and at this velocity."""
        self._held[0], self._held[1] = self.state.q, v
        self._held_ns, self._held_bandwidth = self.state.time_ns, self.settings.bandwidth

    def _held_now(self) -> Array:
        """What law joint holds: it comes to rest with two equal poles, without turning back."""
        (q, v), k, t = self._held, self._held_bandwidth, 1e-9 * (self.state.time_ns - self._held_ns)
        decay = math.exp(-k * t)
        return np.stack([self._turns.nearest(q + (2.0 / k - (2.0 / k + t) * decay) * v, self.state.q),
                         (1.0 + k * t) * decay * v])

    def _lead(self, now: float, target: PoseFilter) -> None:
        """Move the target by the last twist, slower and slower towards `target.farthest` from the link."""
        if now - self._twist_at > self.settings.twist_timeout:
            self._stop_target()
            return
        away = target.state[9:12] - self.pose[:3, 3]
        distance = max(float(np.linalg.norm(away)), 1e-9)
        outwards = float(self._twist[3:] @ away) / distance
        room = 0.125 * target.bandwidth * max(self.settings.farthest - distance, 0.0)
        target.move(self._twist if outwards <= room else room / outwards * self._twist)

    def _pace(self, target: PoseFilter) -> float:
        """Share of its pace at which the target goes on: less near velocity limits, and away from a link left behind.
        """
        slack = self.safety.laws.newest.law.slack(self.state.q, target.target, target.goal, LEASH, TURN)
        return min(max(min((1.0 - max(self._speeds)) / (1.0 - EASY), slack), 0.0), 1.0)

    def command(self, now: float, laws: CartesianLaws) -> Command | NoCommand:
        if self._aim is None:
            return NOTHING
        if (fastest := max(self._speeds)) > FAST and self.safety.mode != "ramp_out":
            j = self._speeds.index(fastest)
            problem = (f"joint '{self.model.velocity_names[j]}' moves at {self.state.v[j]:.3g}, faster than its limit "
                       f"{self._fastest[j]:.3g} (rad/s or m/s)")
            self._drop(problem)
            return NoCommand(problem)
        if laws is self.safety.laws.new:
            self._release()
        effort = laws.effort(self.state.q, self.state.v, self._aim, self.loop)
        seen, weight = laws.law.seen, self.tank.weights.get(laws, 0.0) * self.safety.modes.share
        self.gained += weight * (max(seen.damped - max(seen.applied, 0.0), 0.0) - seen.applied)
        return Command(effort)

    def _release(self) -> None:
        """Let the springs of new laws act as the tank affords."""
        fade, state, aim, ramp = self.safety.laws, self.state, self._aim, self.settings.safety.ramp_in
        assert aim is not None
        self.gained = 0.0
        if fade.new.of_joints:    # its springs are relaxed when it begins
            self.tank.weights = {}
            return
        feedback = self.loop.share
        old = {} if fade.old is None or fade.old.of_joints else {fade.old: (1.0 - fade.share) * feedback}
        self.tank.release(fade.new, {**old, fade.new: fade.share * feedback},
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
        else:
            self._stop_target()

    def warm_up(self) -> None:
        super().warm_up()
        q, T = self.model.neutral(), forward_kinematics(self.model, self.model.neutral())[-1]
        target = PoseFilter(T[:3, :3], T[:3, 3], 1.0, 1.0, 1.0)
        load()
        points = PosePoints(np.arange(1.0, 4.0), np.tile(T[:3, :3], (3, 1, 1)), np.tile(T[:3, 3], (3, 1)))
        target.follow(PoseTrajectory(points, target.state, 1.0, 1.0))
        target.advance(1e-3)
        target.halt()
        self.safety.laws.newest.effort(q, self._zero, Aim(target.advance(1e-3), q, self._held), self.loop)

    def report(self) -> dict[str, Any]:
        seen, force = self.safety.laws.newest.law.seen, self._force
        return super().report() | {
            "guided": "no" if self._guide is None else "held" if self._guide.held else "yes",
            "taught_s": 0.0 if self._taught is None else self._taught.duration,
            "goals": self._goals, "twists": self._twists, "trajectories": self._trajectories,
            "goals_dropped": self._dropped, "position_error_mm": 1e3 * seen.off,
            "rotation_error_mrad": 1e3 * seen.turned, "hidden_directions": int(seen.hidden),
            "bounded_damping": int(seen.bounded), "wall_depth_mm": 1e3 * seen.depth,
            "spring_share": self.safety.laws.newest.law.share, "tank_j": self.tank.level,
            "target_wrenches": self._wrenches, "target_force_n": float(np.linalg.norm(force.setpoint[3:])),
            "measured_force_n": float(np.linalg.norm(force.measured[3:]))}
