"""Odometry: pose and twist of the robot's base, validated like joint states.

The message (nav_msgs/Odometry) has the pose of frame `child` in frame `world`, z up, and the twist of `child` in axes
of `child`. If `child` is the root link of the robot, these are position, quaternion and [ω, v] of a floating base.
"""
from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...core.errors import RbdError
from ...core.motion.continuity import BRAKING, GROWTH, WITHIN
from ..inputs.finite import HUGE
from ..inputs.rejections import TAKEN, Rejected, Rejections, Verdict
from ..parameters import Parameter
from .frames import unit_quaternion

Array = NDArray[np.float64]
STEADY, SLACK = 1.0, 0.02    # rad/s, rad: allowed turn beyond the angular velocity while odometry is fresh
FASTEST = 10.0               # rad/s: larger angular velocities are rejected
SHORTEST = 1e-3              # s: shortest interval of stamps for a velocity

ODOMETRY = Parameter("odometry", "string", "", "Topic of nav_msgs/Odometry that says where the root link is, how it is "
                     "turned and how it moves. Empty: none.", read_only=True)
ODOMETRY_TIMEOUT = Parameter("odometry_timeout", "number", 0.2, "Age at which odometry no longer counts, s.",
                             lower=1e-3, upper=10.0)


class Odometry(NamedTuple):
    """A message: frames, position (m), quaternion x, y, z, w, and twist [ω, v] in the axes of `child` (rad/s, m/s)."""

    stamp_ns: int
    world: str
    child: str
    position: tuple[float, ...]
    quaternion: tuple[float, ...]
    twist: tuple[float, ...]


class OdometryInput:
    """The last valid odometry of the frame `root`.

    Rejected are: other frames, non-finite numbers, quaternions of other than unit norm, angular velocities ω beyond
    `FASTEST`; and while the last message is fresh, decreasing or missing stamps, turns that disagree with ω, and an ω
    that is outside the range from the previous ω to that of the turn by more than T = `STEADY` (`WITHIN` + Δt /
    `BRAKING`), as for velocities of joints (`core.motion.continuity`). After a pause of `timeout` (s) any turn is
    accepted.
    """

    def __init__(self, root: str, timeout: float, rejections: Rejections | None = None) -> None:
        self._root, self.timeout = root, timeout
        self.rejections = rejections or Rejections()
        self._world = self._refused = ""
        self.position, self.quaternion, self.twist = np.zeros(3), np.array([0.0, 0.0, 0.0, 1.0]), np.zeros(6)
        self._stamp_ns, self._received = 0, -math.inf

    @property
    def known(self) -> bool:
        """Whether there was valid odometry."""
        return self._received > -math.inf

    def forget(self) -> None:
        """Reset: the next message is the first one."""
        self._stamp_ns, self._received = 0, -math.inf

    def age(self, now: float) -> float:
        """Age (s) of the last valid message; infinite before the first."""
        return now - self._received

    def problem(self, now: float) -> str:
        """Reason why the odometry is not used, "" if it is used."""
        if self.age(now) <= self.timeout:
            return ""
        last = f" The last one was rejected: {self._refused}" if self._refused else ""
        if not self.known:
            return f"no odometry has been received: which way gravity points is not known.{last}"
        return (f"the latest odometry is {self.age(now):.2f} s old, expected at most {self.timeout:g} s (parameter "
                f"'odometry_timeout').{last}")

    def accept(self, now: float, message: Odometry) -> Verdict:
        """Take a message that was received at `now` (s, steady)."""
        try:
            self._accept(now, message)
        except Rejected as error:
            self._refused = str(error)
            return self.rejections.add(error)
        self._refused = ""
        return TAKEN

    def _accept(self, now: float, message: Odometry) -> None:
        child, world = message.child.lstrip("/"), message.world.lstrip("/")
        if child != self._root:
            raise Rejected("frame", f"odometry of frame '{child}' (child_frame_id), expected '{self._root}', the root "
                                    "link of the robot description")
        if not world or world != (self._world or world):
            raise Rejected("frame", f"odometry in frame '{world}' (header.frame_id), expected " + (
                f"'{self._world}', as before" if self._world else "the name of a frame whose z axis points up"))
        position, twist = np.array(message.position), np.array(message.twist)
        try:
            quaternion = unit_quaternion("odometry: the orientation", message.quaternion)
        except RbdError as error:
            finite = all(map(math.isfinite, message.quaternion))
            raise Rejected("not_unit" if finite else "non_finite", str(error)) from None
        for quantity, values in (("position", position), ("twist", twist)):
            if not (np.abs(values) < HUGE).all():
                raise Rejected("non_finite", f"odometry: the {quantity} is not finite, or absurd")
        fast = float(np.linalg.norm(twist[:3]))
        if fast > FASTEST:
            raise Rejected("implausible", f"odometry: the angular velocity is {fast:.3g} rad/s, expected at most "
                                          f"{FASTEST:g}")
        if self.age(now) <= self.timeout:
            self._follow(self.age(now), message.stamp_ns, quaternion, twist[:3])
        self.position, self.quaternion, self.twist = position, quaternion, twist
        self._world, self._stamp_ns, self._received = world, message.stamp_ns, now

    def _follow(self, age: float, stamp_ns: int, quaternion: Array, omega: Array) -> None:
        """Raise `Rejected` if a message is no plausible successor of the last one, received `age` s before."""
        if stamp_ns < self._stamp_ns:
            raise Rejected("stamp_backwards", "stamp of the odometry " + (
                f"went backwards by {(self._stamp_ns - stamp_ns) * 1e-9:.6f} s" if stamp_ns else "is missing"))
        by_stamps = (stamp_ns - self._stamp_ns) * 1e-9 if self._stamp_ns else age
        passed, before = max(age, by_stamps), self.twist[:3]
        counts = min(passed, self.timeout)
        axis = _difference(self.quaternion, quaternion)
        sine, cosine = float(np.linalg.norm(axis)), float(self.quaternion @ quaternion)
        turned = 2.0 * math.atan2(sine, abs(cosine))
        fastest = max(float(np.linalg.norm(before)), float(np.linalg.norm(omega)))
        allowed = (GROWTH * fastest + STEADY) * counts + SLACK
        if turned > allowed:
            raise Rejected("implausible", f"odometry: the base turned by {turned:.3g} rad within {passed:.3g} s, "
                                          f"expected at most {allowed:.3g} by its angular velocity")
        turning = np.zeros(3)    # rad/s, angular velocity by the turn
        if sine > 0.0:
            turning = axis * math.copysign(turned / (sine * max(by_stamps, SHORTEST)), cosine)
        way, changed = turning - before, omega - before
        square = float(way @ way)
        between = min(max(float(changed @ way) / square, 0.0), 1.0) if square > 0.0 else 0.0
        off, allowed = float(np.linalg.norm(changed - between * way)), STEADY * (WITHIN + counts / BRAKING)
        if off > allowed:
            raise Rejected("implausible", f"odometry: the angular velocity changed by {np.linalg.norm(changed):.3g} "
                                          f"rad/s within {passed:.3g} s, and is off by {off:.3g} from that before and "
                                          f"that of the turn, expected at most {allowed:.3g}")


def _difference(p: Array, q: Array) -> Array:
    """Vector part of p⁻¹ q."""
    return np.asarray(p[3] * q[:3] - q[3] * p[:3] - np.cross(p[:3], q[:3]))
