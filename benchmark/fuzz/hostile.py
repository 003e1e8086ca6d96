"""Random messages for a torque node: valid, nearly valid and hostile ones."""
from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from builtin_interfaces.msg import Duration, Time
from geometry_msgs.msg import (
    Point, PoseStamped, Quaternion, Transform, Twist, TwistStamped, Vector3, Wrench, WrenchStamped,
)
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import (
    JointTrajectory, JointTrajectoryPoint, MultiDOFJointTrajectory, MultiDOFJointTrajectoryPoint,
)

import rbd_ros as rbd
from rbd_interfaces.msg import JointReference, NamedWrench, NamedWrenches

from . import verdict
from .targets import Target

NUMBERS = (math.nan, math.inf, -math.inf, 1e78, -1e78, 1e140, 1e149, 1e155, 1e300, -1.7e308, 5e-324, 1e12, -0.0, 100.0)
WORDS = ("", "gripper", "shoulder ", "größe", "a" * 5000, "/", "joint_1\n", "elbow/stiffness", "\u202e")
SECOND = 1_000_000_000
LATEST = (2**31 - 1) * SECOND
SHIFTS = (0.9, 5.0, -0.9, -5.0)    # s that a stamp is off
LARGEST = 5_000_000    # bytes of all names of a message; no middleware takes the 4 GB to which they would grow


class Sent(NamedTuple):
    """A message, the key of its topic, and its expected verdict (None: not counted)."""

    topic: str
    message: Any
    verdict: verdict.Verdict | None


def time_of(ns: int) -> Time:
    return Time(sec=ns // SECOND, nanosec=ns % SECOND)


def duration_of(seconds: float) -> Duration:
    ns = round(seconds * 1e9)
    return Duration(sec=ns // SECOND, nanosec=ns % SECOND)


def _xyz(values: np.ndarray, names: str = "xyz") -> dict[str, float]:
    return {name: float(value) for name, value in zip(names, values, strict=True)}


def _size(names: Sequence[str]) -> int:
    """Approximate size of these names in a message, bytes."""
    return sum(len(name) + 8 for name in names)


class Hostile:
    """Generates messages for one target. `phase`: of the arm's motion, rad."""

    def __init__(self, target: Target, rng: np.random.Generator) -> None:
        self.target, self.rng = target, rng
        self.names = target.joints
        self.phase = 0.0
        n = len(self.names)
        self._amplitude, self._rate = np.linspace(0.3, 0.6, n), np.linspace(1.0, 2.0, n)

    def motion(self, ahead: float = 0.0) -> np.ndarray:
        """q, v, a, jerk, snap (5, nv) of a smooth motion within the limits."""
        w, A = self._rate, self._amplitude
        s, c = A * np.sin(w * (self.phase + ahead)), A * np.cos(w * (self.phase + ahead))
        return np.array([s, w * c, -w**2 * s, -w**3 * c, w**4 * s])

    # ---- good ones

    def state(self, stamp: int) -> Any:
        q, v = self.motion()[:2]
        error = self.rng.normal(scale=1e-3, size=(2, len(q)))
        order = self.rng.permutation(len(q)) if self.rng.random() < 0.3 else np.arange(len(q))
        message = JointState(name=[self.names[i] for i in order], position=list((q + error[0])[order]))
        if self.rng.random() < 0.8:
            message.velocity = list((v + error[1])[order])
        if self.rng.random() < 0.3:
            message.effort = list(self.rng.normal(size=len(q)))
        if self.rng.random() < 0.1:
            message.name = [*message.name, "gripper"]
            for values in (message.position, message.velocity, message.effort):
                if len(values):
                    values.append(math.nan)
        message.header.stamp = time_of(stamp)
        return message

    def motors(self, stamp: int) -> Any:
        names = self.target.motors
        r = self.motion()
        q = np.concatenate([r[0], np.full(len(names) - len(r[0]), 300.0)])
        v = np.concatenate([r[1], np.zeros(len(names) - len(r[0]))])
        message = JointState(name=list(names), position=list(q), velocity=list(v))
        message.header.stamp = time_of(stamp)
        return message

    def reference(self, stamp: int) -> Any:
        rows, count = self.motion(), int(self.rng.choice([0, 2, 4], p=[0.1, 0.2, 0.7]))
        message = JointReference(name=list(self.names), position=list(rows[0]))
        for field, row in list(zip(("velocity", "acceleration", "jerk", "snap"), rows[1:], strict=True))[:count]:
            setattr(message, field, list(row))
        message.header.stamp = time_of(stamp if self.rng.random() < 0.5 else 0)
        return message

    def trajectory(self, stamp: int) -> Any:
        rng, count = self.rng, int(self.rng.choice([1, 2, 5, 50]))
        times = np.cumsum(rng.uniform(0.05, 0.3, count)) - (0.05 if rng.random() < 0.3 else 0.0)
        if rng.random() < 0.3:
            times[0] = 0.0
        fields = int(rng.integers(1, 4))
        points = []
        for t in times:
            point = JointTrajectoryPoint(positions=list(self.motion(t)[0]), time_from_start=duration_of(max(t, 0.0)))
            if fields > 1:
                point.velocities = list(self.motion(t)[1])
            if fields > 2:
                point.accelerations = list(self.motion(t)[2])
            points.append(point)
        message = JointTrajectory(joint_names=list(self.names), points=points)
        if rng.random() < 0.5:
            message.header.stamp = time_of(stamp + int(rng.choice([0.0, 0.05, -0.1, 0.5]) * SECOND))
        return message

    def wrenches(self) -> Any:
        bodies = self.rng.choice(self.target.model.body_names, size=int(self.rng.integers(0, 3)))
        return NamedWrenches(wrenches=[NamedWrench(body=str(body), wrench=Wrench(
            force=Vector3(**dict(zip("xyz", self.rng.normal(scale=5.0, size=3), strict=True))),
            torque=Vector3(**dict(zip("xyz", self.rng.normal(size=3), strict=True))))) for body in bodies])

    # ---- of node cartesian

    def pose(self, ahead: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
        """Position and quaternion of the controlled link in the arm's motion."""
        T = rbd.forward_kinematics(self.target.model, self.motion(ahead)[0])[-1]
        return T[:3, 3], rbd.lie.so3.to_quaternion(T[:3, :3])

    def goal(self) -> Any:
        p, r = self.pose(self.rng.uniform(0.0, 0.3))
        message = PoseStamped()
        message.header.frame_id = self._frame()
        message.pose.position, message.pose.orientation = Point(**_xyz(p)), Quaternion(**_xyz(r, "xyzw"))
        return message

    def twist(self) -> Any:
        message = TwistStamped(twist=Twist(linear=Vector3(**_xyz(self.rng.normal(scale=0.1, size=3))),
                                           angular=Vector3(**_xyz(self.rng.normal(scale=0.3, size=3)))))
        message.header.frame_id = self._frame()
        return message

    def push(self) -> Any:
        message = WrenchStamped(wrench=Wrench(force=Vector3(**_xyz(self.rng.normal(scale=5.0, size=3))),
                                              torque=Vector3(**_xyz(self.rng.normal(scale=0.5, size=3)))))
        message.header.frame_id = self._frame()
        return message

    def course(self, stamp: int) -> Any:
        rng, count = self.rng, int(self.rng.choice([1, 2, 5, 50]))
        times, points = np.cumsum(rng.uniform(0.1, 0.4, count)), []
        for t in times:
            p, r = self.pose(0.2 * t)
            points.append(MultiDOFJointTrajectoryPoint(time_from_start=duration_of(t), transforms=[Transform(
                translation=Vector3(**_xyz(p)), rotation=Quaternion(**_xyz(r, "xyzw")))]))
        message = MultiDOFJointTrajectory(joint_names=[self.target.model.body_names[-1]], points=points)
        if rng.random() < 0.5:
            message.header.stamp = time_of(stamp + int(rng.choice([0.0, 0.05, -0.1, 0.5]) * SECOND))
        return message

    def _frame(self) -> str:
        names = self.target.model.body_names
        return "" if self.rng.random() < 0.8 else str(self.rng.choice(names))

    def _damage_cartesian(self, message: Any, stamp: int) -> None:
        what = self.rng.integers(8)
        if what == 0:
            message.header.frame_id = self._pick(WORDS)
        elif what == 1:
            self._stamp(message, stamp)
        elif isinstance(message, MultiDOFJointTrajectory):
            if what == 2:
                message.joint_names = [*self._pick(([], [self._pick(WORDS)], [*WORDS], message.joint_names * 3))]
            elif what <= 4:
                self._times(message, stamp)
            elif message.points:
                point = self._pick(message.points)
                fields = [part for each in point.transforms for part in (each.translation, each.rotation)]
                if what == 5 or not fields:
                    point.transforms = list(point.transforms) * self._pick((0, 2, 100))
                elif what == 6:
                    point.velocities = [Twist()] * self._pick((1, 2))
                else:
                    setattr(self._pick(fields), self._pick("xyz"), self._pick(NUMBERS))
        else:
            parts = ((message.pose.position, message.pose.orientation) if isinstance(message, PoseStamped) else
                     (message.twist.linear, message.twist.angular) if isinstance(message, TwistStamped) else
                     (message.wrench.force, message.wrench.torque))
            setattr(self._pick(parts), self._pick("xyz"), self._pick(NUMBERS))

    # ---- hostile ones

    def sent(self, topic: str, stamp: int, hostile: bool) -> Sent:
        """A message for this topic; a hostile one has been damaged once or more, which may still leave it good."""
        make: dict[str, Callable[[], Any]] = {
            "state": lambda: self.state(stamp), "motors": lambda: self.motors(stamp),
            "reference": lambda: self.reference(stamp), "trajectory": lambda: self.trajectory(stamp),
            "wrenches": self.wrenches, "goal": self.goal, "twist": self.twist, "push": self.push, "pushed": self.push,
            "course": lambda: self.course(stamp)}
        message = make[topic]()
        if hostile:
            for _ in range(int(self.rng.choice([1, 1, 1, 2, 4]))):
                self._damage(message, stamp)
        return Sent(topic, message, self._verdict(topic, message))

    def _verdict(self, topic: str, message: Any) -> verdict.Verdict | None:
        if topic == "state":
            return verdict.of_state(message, self.names)
        if topic == "motors":
            return verdict.of_motors(message, self.target.motors, self.target.elastic)
        if topic == "reference":
            return verdict.of_reference(message, self.names)
        if topic == "trajectory":
            return verdict.of_trajectory(message, self.names)
        if topic != "wrenches":
            return verdict.of_cartesian(message)
        return verdict.of_wrenches(message, self.target.model.body_names)

    def _damage(self, message: Any, stamp: int) -> None:
        if isinstance(message, PoseStamped | TwistStamped | WrenchStamped | MultiDOFJointTrajectory):
            self._damage_cartesian(message, stamp)
        elif isinstance(message, NamedWrenches):
            self._damage_wrenches(message)
        elif isinstance(message, JointTrajectory):
            self._pick((self._points, self._points, self._stamp, self._names, self._times))(message, stamp)
        else:    # rarely a stamp: the states after it may count as late until the timeout
            self._pick((self._values,) * 12 + (self._names,) * 7 + (self._stamp,))(message, stamp)

    def _values(self, message: Any, stamp: int) -> None:
        fields = ("positions", "velocities", "accelerations", "effort") if isinstance(message, JointTrajectoryPoint) \
            else ("position", "velocity", "effort") if isinstance(message, JointState) \
            else ("position", "velocity", "acceleration", "jerk", "snap")
        field = self._pick(fields)
        values = list(getattr(message, field))
        what = self.rng.integers(6)
        if what < 3 and values:
            values[int(self.rng.integers(len(values)))] = self._pick(NUMBERS)
        elif what == 3:
            values = [self._pick(NUMBERS)] * len(values)
        else:
            others = list(self.rng.normal(size=len(values)))
            values = self._pick((values[:-1], [*values, 0.0], [], [0.0] * 1000, others))
        setattr(message, field, values)

    def _names(self, message: Any, stamp: int) -> None:
        field = "joint_names" if isinstance(message, JointTrajectory) else "name"
        names = list(getattr(message, field))
        i = int(self.rng.integers(max(len(names), 1)))
        changed = self._pick((
            [], names[::-1], names[:-1], [*names, names[0] if names else ""], [*names, self._pick(WORDS)],
            [self._pick(WORDS) if k == i else name for k, name in enumerate(names)], [*WORDS], names[:1] * 7,
            names * 100 if 100 * _size(names) <= LARGEST else names))
        setattr(message, field, changed)

    def _stamp(self, message: Any, stamp: int) -> None:
        header = message.header
        what = self.rng.integers(4)
        if what == 0:
            header.stamp = time_of(stamp + int(self._pick(SHIFTS) * SECOND))
        elif what == 1:
            header.stamp = Time()
        elif what == 2:
            header.stamp = self._pick((time_of(LATEST), Time(sec=-(2**31)), Time(nanosec=2**32 - 1), time_of(1)))
        else:
            header.stamp = time_of(stamp - 1)

    def _points(self, message: Any, stamp: int) -> None:
        if not message.points:
            return
        if self.rng.random() < 0.05:    # huge
            message.points = [JointTrajectoryPoint(positions=list(p), time_from_start=duration_of(0.01 * (k + 1)))
                              for k, p in enumerate(self.rng.normal(scale=0.1, size=(2000, len(self.names))))]
        point = self._pick(message.points)
        if self.rng.random() < 0.3:     # far away, at once
            point = message.points[0]
            point.positions = list(self.rng.uniform(-2.0, 2.0, len(self.names)))
            point.time_from_start = Duration(nanosec=int(self._pick((0, 1, 1_000_000))))
        else:
            self._values(point, stamp)

    def _times(self, message: Any, stamp: int) -> None:
        points = message.points
        what = self.rng.integers(5)
        if what == 0:
            message.points = points[::-1]
        elif what == 1:
            message.points = []
        elif points:
            time = self._pick((Duration(), Duration(sec=-1), Duration(sec=2**31 - 1, nanosec=2**32 - 1),
                               Duration(sec=-(2**31)), Duration(nanosec=1)))
            self._pick(points).time_from_start = time

    def _damage_wrenches(self, message: Any) -> None:
        if not message.wrenches or self.rng.random() < 0.1:
            message.wrenches = [NamedWrench(body=self._pick((*WORDS, self.target.model.body_names[-1])))] * int(
                self._pick((1, 3, 1000)))
        item = self._pick(message.wrenches)
        if self.rng.random() < 0.3:
            item.body = self._pick(WORDS)
        else:
            setattr(self._pick((item.wrench.force, item.wrench.torque)), self._pick("xyz"), self._pick(NUMBERS))

    def _pick(self, among: Sequence[Any]) -> Any:
        return among[int(self.rng.integers(len(among)))]
