"""Cartesian impedance control without ROS: a link is held at a target pose, by springs and dampers of its own space.

From activation the link is held where it is. A goal pose is approached by a filter, never stepped, at most as fast as
`target.speed` and `target.angular_speed`. A twist moves the target through the same filter, until the next goal or for
`target.twist_timeout`. A trajectory is followed as it is, later where the link is held up. Whenever the torque is not
that of the law (an emergency stop, joint states that cease, a loop that is too slow, a joint faster than its limit),
all of these are dropped, and the link is later held where it is then. Under law `joint` the arm is held in its posture
instead; a change in motion brings it to rest first.
"""
from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...core.dynamics.inverse import inverse_dynamics
from ...core.dynamics.kinematics import forward_kinematics, jacobian
from ...core.dynamics.mass_matrix import mass_matrix
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
from ..inputs.rejections import TAKEN, Rejected, Verdict
from ..safety import NOTHING, Command, NoCommand
from ..safety.hold import HoldGains
from .cartesian_law import CartesianLaw
from .cartesian_settings import CartesianSettings
from .following import NO_LOCK
from .loop_rate import LoopRate
from .torque_controller import SLIP, Laws, TorqueController
from .torque_settings import TorqueSettings

Array = NDArray[np.float64]
MODES = ("ramp_in", "running", "ramp_out")    # in which the law acts
LONGEST = 0.1     # s between two states for which the target goes on
EASY, FAST = 0.6, 1.2    # shares of the velocity limits: from there the target slows down; from there the law is off
LEASH, TURN = 0.15, 0.8    # m, rad: how far the target leaves a link behind that does not follow
START, START_TURN = 0.02, 0.05    # m, rad: how far the first point of a trajectory may be from target or link
SETTLING = 5      # states that target and posture follow before they are held: the first one may be an outlier
FASTEST = 100.0   # m/s or rad/s: twists beyond it are rejected


class Aim(NamedTuple):
    """What the laws aim at: the target (24,), as of `PoseFilter`, and the posture (nq,); of law joint, positions and
    velocities (2, nv).
    """

    target: Array
    posture: Array
    held: Array


class CartesianLaws(Laws):
    """Impedance or springs of the joints, and gravity where the robot does not add it itself."""

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
        if self.settings.law == "joint":
            off = np.clip(self.model.difference(q, aim.held[0]), -SLIP, SLIP)
            slow = aim.held[1] - v
            effort = self.settings.kp * off + self.settings.kd * slow + self.settings.posture_damping * (
                mass_matrix(self.model, q) @ slow)
        else:
            period = max(loop.period, loop.step)    # as expected or learnt, or slower
            effort = self.law.effort(q, v, aim.target, aim.posture, 1.0 / period if period > 0.0 else np.inf)
        if "coriolis" in compensates:
            effort += self.gravity(q) - inverse_dynamics(self.model, q, v, self._zero)
        return own + loop.share * effort


class CartesianController(TorqueController[CartesianLaws]):
    """Holds a link at the target; `on_goal`, `on_twist` and `on_trajectory` set where it goes."""

    settings: CartesianSettings

    def __init__(self, model: RobotModel, settings: CartesianSettings) -> None:
        super().__init__(model, settings)
        self._turns, self._fastest = Turns(model), velocity_limits(model)
        self._filter: PoseFilter | None = None
        self._posture, self._settling = self._zero, 0
        self._held, self._held_ns, self._held_bandwidth = np.zeros((2, model.nv)), 0, 1.0    # as it began
        self._speeds = self._zero    # of the last state, as shares of the limits
        self._aim: Aim | None = None
        self._before: Aim | None = None     # of the cycle before
        self._time_ns = 0                   # of the last state
        self._twist, self._twist_at = np.zeros(6), -np.inf    # the last one, while it acts, and when it came, s
        self._goals = self._twists = self._trajectories = self._dropped = 0

    def make_laws(self, settings: CartesianSettings) -> CartesianLaws:
        return CartesianLaws(settings)

    def apply(self, settings: TorqueSettings) -> None:
        assert isinstance(settings, CartesianSettings)
        joint = settings.law == "joint" != self.settings.law
        super().apply(settings)
        if self._filter is not None:
            if joint:
                self._count_dropped("law joint")
                self._stop_target()
            self._filter.speed, self._filter.angular_speed = settings.speed, settings.angular_speed

    def clear(self) -> None:
        self._drop("joint states are those of another clock, or of a robot that is elsewhere")
        self._aim = None

    def reset(self, now: float) -> None:
        if self.safety.latched:    # no state may have arrived since the stop
            self._drop("an emergency stop")
        super().reset(now)

    def _drop(self, cause: str) -> None:
        """Forget the target."""
        self._count_dropped(cause)
        self._filter = None
        self._twist_at = -np.inf

    def _count_dropped(self, cause: str) -> None:
        if self._filter is not None and not self._filter.waits:
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
        assert self._filter is not None
        self._filter.aim(axes, origin)
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
        assert self._filter is not None
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
                assert self._filter is not None
                state_ns, start, link = self.state.time_ns, self._filter.state.copy(), self.pose
            course = None if not len(points) else self._course(
                pose_points(names, points, self.settings.body).seen_from(T), start, link,
                1e-9 * (stamp_ns - state_ns) if stamp_ns else 0.0)
            with lock:
                self._placed("trajectory", now, frame)
                if course is None:
                    self._stop_target()
                else:
                    passed = 1e-9 * (self.state.time_ns - state_ns)
                    course.begin(self._filter.state, passed)
                    self._filter.follow(course, passed)
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
        return PoseTrajectory(points, start, self.settings.speed, self.settings.angular_speed, past)

    def _stop_target(self) -> None:
        self._twist_at = -np.inf
        if self._filter is not None:
            self._filter.halt()

    def _placed(self, what: str, now: float, frame: str) -> Array:
        """Where a link is (4, 4), by the last state, in axes of the root link; raises `Rejected` unless the target can
        be moved.
        """
        names = self.model.body_names
        if frame and frame not in names:
            raise Rejected("frame", f"{what} in frame '{frame[:80]}', expected a link: {', '.join(names)}")
        if self.settings.law == "joint":
            raise Rejected("bad_trajectory", f"no {what} is accepted under law 'joint' (parameter 'law')")
        if self.safety.latched:
            raise Rejected("bad_trajectory", f"no {what} is accepted during an emergency stop: call ~/reset first")
        if (self._filter is None or self.safety.mode not in ("ramp_in", "running") or self.loop.slow
                or self.state.age(now) >= self.state.timeout):
            raise Rejected("bad_trajectory", f"no {what} is accepted while the link is not held, as without fresh "
                           f"joint states (mode '{self.safety.mode}')")
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
        self._time_ns, self._speeds = state.time_ns, np.abs(state.v) / self._fastest
        if (self._filter is None or self.safety.mode not in MODES or self.loop.slow
                or now - self.safety.time >= settings.safety.state_timeout):
            self._drop("an emergency stop" if self.safety.latched else self.loop.problem if self.loop.slow else
                       "there were no joint states, or no answers to them")
            self._settling = SETTLING
        elif self._settling > 0 and not self._filter.waits:
            self._settling = 0
        if self._filter is None or self._settling > 0:
            self._settling -= 1
            self._filter = self._target_at_link()
            self._hold(self._zero)
        elif elapsed > 0.0:
            bandwidth = self._filter.bandwidth
            if settings.bandwidth > bandwidth or (settings.bandwidth < bandwidth and self._filter.rests):
                self._filter.bandwidth = settings.bandwidth    # a lower one in motion would pass its goal
            if self._twist_at > -np.inf:
                self._lead(now, self._filter)
            self._filter.advance(min(elapsed, LONGEST), self._pace(self._filter))
        alive = [laws.settings.law for laws in (self.safety.laws.old, self.safety.laws.new, self.safety.laws.newest)
                 if laws is not None]
        if "joint" not in alive:
            self._hold(state.v)
        if "cartesian" not in alive:    # it begins where the link is, and as fast, and comes to rest
            self._filter = self._target_at_link(jacobian(self.model, state.q, settings.body, "aligned") @ state.v)
        posture = self._turns.nearest(self._posture, state.q) if self._turns.any else self._posture
        self._aim = Aim(self._filter.target, posture, self._held_now() if "joint" in alive else self._held)

    def _target_at_link(self, twist: Array | None = None) -> PoseFilter:
        """A target that begins where the link is, and the present posture with it."""
        T, settings, self._posture = self.pose, self.settings, np.array(self.state.q)
        return PoseFilter(T[:3, :3], T[:3, 3], settings.bandwidth, settings.speed, settings.angular_speed, twist)

    def _hold(self, v: Array) -> None:
        """Law joint begins where the arm is, and at this velocity."""
        self._held[0], self._held[1] = self.state.q, v
        self._held_ns, self._held_bandwidth = self.state.time_ns, self.settings.bandwidth

    def _held_now(self) -> Array:
        """What law joint holds: it comes to rest with two equal poles, without turning back."""
        (q, v), k, t = self._held, self._held_bandwidth, 1e-9 * (self.state.time_ns - self._held_ns)
        decay = math.exp(-k * t)
        return np.stack([q + (2.0 / k - (2.0 / k + t) * decay) * v, (1.0 + k * t) * decay * v])

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
        speed = float(self._speeds.max())
        slack = self.safety.laws.newest.law.slack(self.state.q, target.target, target.goal, LEASH, TURN)
        return min(max(min((1.0 - speed) / (1.0 - EASY), slack), 0.0), 1.0)

    def command(self, now: float, laws: CartesianLaws) -> Command | NoCommand:
        if self._aim is None:
            return NOTHING
        j = int(self._speeds.argmax())
        if self._speeds[j] > FAST and self.safety.mode != "ramp_out":
            problem = (f"joint '{self.model.velocity_names[j]}' moves at {self.state.v[j]:.3g}, faster than its limit "
                       f"{self._fastest[j]:.3g} (rad/s or m/s)")
            self._drop(problem)
            return NoCommand(problem)
        return Command(laws.effort(self.state.q, self.state.v, self._aim, self.loop))

    def again(self, laws: CartesianLaws) -> tuple[Array, ...] | None:
        if self._before is None:
            return None
        return (laws.effort(self.state.q, self.state.v, self._before, self.loop),)

    def halt(self, now: float) -> None:
        super().halt(now)
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
        seen = self.safety.laws.newest.law.seen
        return super().report() | {
            "goals": self._goals, "twists": self._twists, "trajectories": self._trajectories,
            "goals_dropped": self._dropped, "position_error_mm": 1e3 * seen.off,
            "rotation_error_mrad": 1e3 * seen.turned, "hidden_directions": int(seen.hidden),
            "bounded_damping": int(seen.bounded)}
