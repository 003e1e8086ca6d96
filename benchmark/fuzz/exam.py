"""Whether a node is as good as new: its answers to a fixed motion, to the last bit, or nearly (`ROUNDING`).

Meanwhile its timeouts are long, and the age of states counts for nothing, so that a machine that is busy with other
things does not look like a fault.
"""
from __future__ import annotations

import math
import time
from typing import Any

import numpy as np
from geometry_msgs.msg import Quaternion, Transform, Twist, Vector3
from lifecycle_msgs.msg import Transition
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import (
    JointTrajectory, JointTrajectoryPoint, MultiDOFJointTrajectory, MultiDOFJointTrajectoryPoint,
)

import rbd_ros as rbd
from rbd_interfaces.msg import JointReference

from .hostile import Sent, duration_of, time_of
from .peer import Peer
from .verdict import NOTHING

PERIOD = 5_000_000      # ns
SAFE, PROBES = 5, 20    # states without a reference, after activation; compared states of stream and trajectory each
QUIET = 120             # preceding cycles: longer than all timeouts and ramps of the attacked node together
PATIENT = {"state_timeout": 5.0, "reference_timeout": 5.0, "feedback.max_age": math.inf, "feedback.min_rate": 0.0}
GAP = 8                 # cycles between the last reference and the trajectory, as topics have no order among them
PASSED = 40             # cycles of the trajectory before its probes: longer than `ramp_in`
FAST = 600              # cycles of half a period before those of node cartesian: see `_following`
ROUNDING = 1e-9         # N m
TRIES = 5               # attempts, because states may be late on a busy machine

Answers = dict[str, dict[str, bytes]]


class Exam:
    """Asks the node of `peer`. The first time it is fresh: then `expected` is what it answers."""

    def __init__(self, peer: Peer) -> None:
        self._peer = peer
        n = len(peer.target.joints)
        self._q = np.linspace(0.3, -0.4, n)
        self._shape = np.linspace(0.02, -0.03, n)
        self._reference = np.array([self._q + 0.05, *np.linspace(0.1, -0.1, 4 * n).reshape(4, n)])
        self._patient = {name: value for name, value in PATIENT.items() if name in peer.target.parameters}
        self.expected: Answers = {}
        self._rounds = peer.target.executable == "cartesian"    # its trajectory begins when the message arrives
        self.tries: list[int] = []

    def learn(self) -> None:
        """Answers of a fresh node, which must be reproducible."""
        for _ in range(TRIES):
            self._activate_anew()
            self.expected = self._safe() | self._following()
            self._activate_anew()
            if not (difference := self._difference(self._safe() | self._following())):
                self._restore()
                return
        self._peer.offend(f"a fresh node answers the same differently: {difference}")

    def compare(self, anew: bool) -> None:
        """Report a violation if the answers have changed. `anew`: after another activation."""
        difference = ""
        for attempt in range(1, TRIES + 1):
            self._restore()
            self._peer.reset()
            if anew:
                self._activate_anew()
            difference = self._difference((self._safe() if anew else {}) | self._following())
            if not difference:
                self._restore()
                self.tries.append(attempt)
                return
        self._peer.offend(f"answers differ from those of a fresh node after the storm, "
                          f"{'after' if anew else 'without'} another activation: {difference}")

    def _restore(self) -> None:
        self._peer.set({name: self._peer.target.parameters[name] for name in self._patient})

    def _activate_anew(self) -> None:
        peer = self._peer
        peer.change(Transition.TRANSITION_DEACTIVATE)
        if not peer.change(Transition.TRANSITION_ACTIVATE):
            peer.offend("activation failed")

    def _difference(self, answers: Answers) -> str:
        for key, got in answers.items():
            wanted = self.expected[key]
            for field in wanted | got:
                if wanted.get(field) != got.get(field):
                    a, b = np.frombuffer(wanted.get(field, b"")), np.frombuffer(got.get(field, b""))
                    if self._rounds and a.shape == b.shape and np.abs(a - b).max(initial=0.0) < ROUNDING:
                        continue
                    much = f"by up to {np.nanmax(np.abs(a - b)):.3g}" if a.shape == b.shape and len(a) else \
                        f"{len(b)} numbers instead of {len(a)}"
                    return f"{field} of {key}, {much}: {b} instead of {a}"
        return ""

    def _begin(self) -> int:
        """Listen, to a node that has dealt with what came before; the first stamp."""
        peer = self._peer
        peer.answer(self)    # in time
        peer.set(self._patient)
        peer.outputs.answers.clear()
        peer.outputs.listening = True
        return peer.stamp()

    def _safe(self) -> Answers:
        """Answers to states while there is no reference; of node cartesian, which ramps in at once, none."""
        if self._peer.target.executable == "cartesian":
            return {}
        stamps, begin = {}, self._begin()
        for k in range(SAFE):
            stamps[f"safe {k}"] = self._send(begin + k * PERIOD, k)
        return self._gather(stamps)

    def _following(self) -> Answers:
        """Answers on a stream of references, and on a trajectory after it."""
        stamps, begin = {}, self._begin()
        if self._peer.target.executable == "cartesian":
            # The damping is bounded by the mean step of the stamps, if that is longer than the period of `state_rate`.
            # A pause, as while parameters are set, stays in the mean for seconds; shorter steps bring it below that.
            for k in range(FAST):
                self._send(begin + k * PERIOD // 2, 0, PERIOD // 2)
            begin += FAST * PERIOD // 2
            for k in range(QUIET):
                if k == PASSED - GAP:
                    self._course(begin + PASSED * PERIOD)
                stamp = self._send(begin + k * PERIOD, 0)
                if k >= PASSED:
                    stamps[f"course {k}"] = stamp
            return self._gather(stamps)
        starts = QUIET + PROBES + GAP
        for k in range(starts + PASSED + PROBES):
            if k < QUIET + PROBES:
                self._stream()
            elif k == starts:
                self._trajectory(begin + (k + 2) * PERIOD)
            stamp = self._send(begin + k * PERIOD, max(k - QUIET, 0))
            if QUIET <= k < QUIET + PROBES or k >= starts + PASSED:
                stamps[f"{'stream' if k < starts else 'trajectory'} {k}"] = stamp
        return self._gather(stamps)

    def _gather(self, stamps: dict[str, int]) -> Answers:
        outputs = self._peer.outputs
        self._peer.spin(5e-3)    # what comes after ~/effort
        outputs.listening = False
        return {key: outputs.answers.get(stamp, {}) for key, stamp in stamps.items()}

    # ---- messages

    def state(self, stamp: int, k: int = 0) -> Any:
        """The joint state of cycle k of the motion."""
        t = k * PERIOD * 1e-9
        q, v = self._q + self._shape * np.sin(t), self._shape * np.cos(t) if k else 0.0 * self._q
        message = JointState(name=self._peer.target.joints, position=list(q), velocity=list(v))
        message.header.stamp = time_of(stamp)
        return message

    def motors(self, stamp: int) -> Any:
        """The state of motors at rest."""
        names = self._peer.target.motors
        second = len(names) - len(self._q)
        message = JointState(name=list(names), position=[*(self._q + 0.01), *[300.0] * second],
                             velocity=[0.0] * len(names))
        message.header.stamp = time_of(stamp)
        return message

    def _send(self, stamp: int, k: int, period: int = PERIOD) -> int:
        """The state of cycle k of the motion, a period later at the earliest and when it is answered; its stamp."""
        peer, due = self._peer, time.monotonic() + period * 1e-9
        if peer.target.motors:
            peer.send(Sent("motors", self.motors(stamp), NOTHING))
        peer.send(Sent("state", self.state(stamp, k), NOTHING))
        peer.until(lambda: time.monotonic() > due and peer.outputs.last_stamp == stamp, "answer")
        return stamp

    def _stream(self) -> None:
        q, v, a, jerk, snap = map(list, self._reference)
        self._publish("reference", JointReference(name=self._peer.target.joints, position=q, velocity=v,
                                                  acceleration=a, jerk=jerk, snap=snap), 0)

    def _trajectory(self, stamp: int) -> None:
        rest = self._reference[0]
        points = [JointTrajectoryPoint(positions=list(rest + at), velocities=[0.0] * len(rest),
                                       time_from_start=duration_of(t)) for t, at in ((0.0, 0.0), (2.0, 0.1))]
        self._publish("trajectory", JointTrajectory(joint_names=self._peer.target.joints, points=points), stamp)

    def _course(self, stamp: int) -> None:
        """A trajectory of the controlled link, at rest until its stamp, then 5 cm away and back."""
        model = self._peer.target.model
        T = rbd.forward_kinematics(model, self._q)[-1]
        x, y, z, w = (float(value) for value in rbd.lie.so3.to_quaternion(T[:3, :3]))
        points = [MultiDOFJointTrajectoryPoint(
            time_from_start=duration_of(t), velocities=[Twist()], accelerations=[Twist()], transforms=[Transform(
                translation=Vector3(x=float(T[0, 3] + away), y=float(T[1, 3]), z=float(T[2, 3])),
                rotation=Quaternion(x=x, y=y, z=z, w=w))]) for t, away in ((0.0, 0.0), (0.6, 0.05), (1.2, 0.0))]
        self._publish("course", MultiDOFJointTrajectory(joint_names=[model.body_names[-1]], points=points), stamp)

    def _publish(self, topic: str, message: Any, stamp: int) -> None:
        message.header.stamp = time_of(stamp)
        self._peer.send(Sent(topic, message, NOTHING))
