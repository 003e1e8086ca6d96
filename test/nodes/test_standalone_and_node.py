"""`rbd.TorqueController` and the nodes: the same torque to the bit on the same inputs."""
from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
import yaml
from benchmark.walk.arms import ACTUATION, COMMON, SERIES, arm
from benchmark.walk.motion import Motion
from builtin_interfaces.msg import Duration
from geometry_msgs.msg import PoseStamped, TwistStamped, WrenchStamped
from silent_node import SilentNode
from std_srvs.srv import SetBool
from support.twins import alike
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

import rbd_ros as rbd
from rbd_interfaces.msg import JointReference, NamedWrench, NamedWrenches
from rbd_ros.core.lie import so3
from rbd_ros.runtime.inputs.pose_points import PosePoint
from rbd_ros.runtime.inputs.rejections import Rejected

pytestmark = pytest.mark.filterwarnings("ignore::rbd_ros.RbdWarning")
S = 1_000_000_000
ROWS = ("velocity", "acceleration", "jerk", "snap")
EVENTS = {"outlier": 3, "gap": 2, "long_gap": 2, "back": 1, "ahead": 1, "no_time": 1, "malformed": 2, "bare": 2,
          "stream": 3, "trajectory": 3, "halt": 1, "wrenches": 1, "parameters": 4, "stop": 1, "finish": 1, "refused": 1,
          "again": 2, "frozen": 2}    # so often among as many, in a random order: each occurs in every walk
CARTESIAN = (
    ("ramp_in", (0.0, 0.02, 0.1)), ("state_timeout", (0.03, 0.05)), ("safe_output.damping", (0.0, 5.0)),
    ("effort_limits.maximum", ([math.inf], [30.0])), ("effort_limits.rate", ([math.inf], [2000.0])),
    ("stiffness.translation", ([300.0] * 3, [800.0, 100.0, 300.0])), ("damping_ratio", (0.7, 1.0)),
    ("stiffness.frame", ("base", "target")), ("payload.mass", (0.0, 0.5)), ("law", ("cartesian", "cartesian", "joint")),
    ("friction.compensation", (0.0, 0.5)))


class Walk:
    """Both through the same random events. `step` is a cycle, after which both must be alike."""

    def __init__(self, name, seed, folder, monkeypatch):
        self.rng = np.random.default_rng([seed, len(name)])
        kind = name if name in ("feedforward", "cartesian") else "flatness"
        known = arm("feedforward" if name == "cartesian" else name)
        self.name, self.model, self.motors = name, known.model, known.motors
        values = {**known.values, "plausible_velocity": [float(self.rng.choice([2.0, math.inf]))],
                  "gravity_check": bool(self.rng.random() < 0.5)}
        self.others = known.others
        if name == "cartesian":
            values = {key: COMMON[key] for key in ("ramp_in", "ramp_out", "state_timeout", "safe_output.hold")} | {
                "gains.kp": [50.0], "gains.kd": [2.0], "payload.body": self.model.body_names[-1]}
            self.others = CARTESIAN
        if name == "elastic":
            values["actuation_file"] = str(ACTUATION)
        if name == "series":
            file = folder / "series.yaml"
            file.write_text(yaml.safe_dump({"actuation": SERIES}))
            values["actuation_file"] = str(file)
        self.node = SilentNode(kind, self.model, values, monkeypatch)
        self.face = rbd.TorqueController(self.model, node=kind, **values)
        self.names = list(self.model.joint_names)
        self.motion = Motion(len(self.names), self.rng)
        self.t = float(self.rng.choice([0.0, 3.0, 1e5]))
        self.now, self.shift, self.step_size = self.t, 0.0, 1e-3
        self.silent_until = self.bare_until = self.stream_until = self.frozen_until = -math.inf
        self.stopped_until = math.inf
        self.error = self.wrenches = self.still_at = None    # still_at: time from which the robot stands still
        self.frozen_at = 0.0    # time of the motion at which the driver repeats itself until `frozen_until`
        self.active, self.count, self.seen, self.events = False, 0, Counter(), []
        self.leap = 0.0                  # s without a call before the next cycle
        self.last = None                 # effort that the node published last
        self.notices = []

    def run(self, cycles):
        while self.count < cycles:
            if self.rng.random() < 0.05 and self.active:
                self.events = self.events or [*self.rng.permutation(np.repeat([*EVENTS], [*EVENTS.values()]))]
                event = self.events.pop()
                self.seen[event] += 1
                getattr(self, f"_on_{event}")()
            self.cycle()
        assert alike(self.reports()[0], self.reports()[1])
        self.notices += self.face.notices()
        logged = [*self.node.log.lines, *self.node.controller.take_notices()]    # these come with the next answer
        assert [line for line in self.notices if "is too high for" not in line] == [
            line for line in logged if not line.startswith(("active:", "emergency stop", "guide refused"))]
        return self

    def reports(self):
        node = {key: value for key, value in self.node.controller.report().items()
                if not key.startswith(("latency", "deadline", "steady"))}
        return self.face.report(), node

    # ---- a cycle

    def advance(self, step, back=0.0):
        before = self.before = self.t
        self.t = before + step - back
        if self.t <= before:
            self.shift += before - self.t
        else:
            self.step_size = min(self.t - before, self.node.controller.settings.safety.state_timeout)
        self.now = self.node.now = max(self.now, self.t + self.shift)

    def pass_a_cycle(self):
        """Of a time that does not say how much has passed."""
        self.shift += self.step_size
        self.now = self.node.now = max(self.now, self.t + self.shift)

    def cycle(self, back=0.0):
        """Another state, or none, for both."""
        self.count += 1
        if self.now > self.stopped_until:    # before the time goes on: for the face, now is the last cycle
            self.stopped_until = math.inf
            self.node.reset()
            self.face.reset()
        if self.active and self.now < self.stream_until:
            self._stream()
        self.advance(self.leap + float(self.rng.choice([0.5e-3, 1e-3, 2e-3, 4e-3])), back)
        self.leap = 0.0
        if not self.active:
            self.node.activate()
            self.active = True
        if self.now < self.silent_until:
            if self.t == self.before:
                self.pass_a_cycle()
            self.judge(self.face.update(self.t), watched=True)
            return
        moment = self.frozen_at if self.now < self.frozen_until else self.now
        q, v = self.motion.measured(moment if self.still_at is None else self.still_at)
        if self.still_at is not None:
            v = 0.0 * v
        if self.error is not None:
            q, v, self.error = q + self.error[0], v + self.error[1], None
        tau = (None, np.full(len(q), np.nan), rbd.gravity_effort(self.model, q))[int(self.rng.integers(3))]
        v = None if self.now < self.bare_until else v
        self.answer(q, v, tau)

    def answer(self, q, v, tau=None):
        stamp, more, state = round(self.t * 1e9) or 1, {}, self.node.controller.state
        if self.t == self.before and stamp == state.stamp_ns and np.array_equal(q, state.q):
            self.seen["repeated"] += 1
            self.pass_a_cycle()
            self.node.controller.rejections.add(Rejected("repeated", ""))
            self.judge(self.face.update(self.t, q, v, tau), True)
            return
        if self.motors:
            second = np.full(len(self.motors) - len(q), 300.0)
            motors = np.concatenate([q + 0.002, second]), np.concatenate([0.0 * q, 0.0 * second])
            more["motors"] = motors
            self.node.motor_state(stamp, self.motors, *motors)
        if self.wrenches is not None:
            more["external_wrenches"], self.wrenches = self.wrenches, None
            message = NamedWrenches()
            for body, (*moment, fx, fy, fz) in more["external_wrenches"].items():
                item = NamedWrench(body=body)
                item.wrench.torque.x, item.wrench.torque.y, item.wrench.torque.z = moment
                item.wrench.force.x, item.wrench.force.y, item.wrench.force.z = fx, fy, fz
                message.wrenches.append(item)
            self.node.node._on_wrenches([(body, [float(x) for x in w]) for body, w in
                                         more["external_wrenches"].items()])
        self.node.state(stamp, self.names, q, () if v is None else v, () if tau is None else tau)
        self.judge(self.face.update(self.t, q, v, tau, **more))

    def judge(self, command, watched=False):
        node = self.node
        if not node.published:
            node.watch()
        published, node.published = node.published, []
        assert len(published) <= 1
        wanted, answers = published[0] if published else (None, False)
        where = f"{self.name}, cycle {self.count}, t = {self.t}: {command}, {wanted}"
        assert command.mode == node.controller.safety.mode and command.valid == answers, where
        assert np.isfinite(command.effort).all(), where
        if wanted is not None:
            assert alike(command.effort, wanted.effort) and alike(command.rates, wanted.rates), where
            assert alike(command.motor_effort, wanted.motor_effort), where
            assert (command.motors is None) == (wanted.motors is None), where
            assert command.motors is None or alike(tuple(command.motors), tuple(wanted.motors)), where
            assert wanted.problem in command.reason and (answers or command.reason), where
            self.last = wanted.effort.copy()
        elif self.last is not None:
            assert alike(command.effort, self.last), where
        checks = [each.state._check for each in (node.controller, self.face._logic)]
        assert alike(*([each._gap, each._behind] for each in checks)), where
        self.seen[command.mode] += 1
        self.seen["stuck"] += checks[0].stuck
        self.seen["valid" if answers else "watchdog" if published else "silent"] += 1
        self.notices += self.face.notices()

    def both(self, face, node):
        """Call both; both refuse, or neither does."""
        rejections = self.node.controller.rejections
        before = rejections.total
        node()
        try:
            face()
            refused = False
        except rbd.RbdError:
            refused = True
        assert refused == (rejections.total > before)
        self.seen["refused input" if refused else "taken"] += 1

    # ---- events

    def _on_outlier(self):
        size = float(self.rng.choice([0.1, 1.0, 10.0, 1e6, 1e80]))
        self.error = self.rng.normal(scale=size, size=(2, len(self.names)))
        self.error[int(self.rng.integers(2))] = 0.0

    def _on_gap(self):
        self.silent_until = self.now + float(self.rng.uniform(0.0, 0.03))

    def _on_long_gap(self):
        """Without a call, or with calls without a state."""
        gap = float(self.rng.uniform(0.03, 0.4))
        if self.rng.random() < 0.5:
            self.leap = gap
        else:
            self.silent_until = self.now + gap

    def _on_back(self):
        """The clock is set back."""
        self.cycle(back=min(float(self.rng.choice([0.0005, 0.9, 50.0])), self.t))

    def _on_ahead(self):
        self.leap = float(self.rng.choice([0.9, 5.0, 1e4]))

    def _on_no_time(self):
        """A time that is no number: that of a cycle passes."""
        self.shift += self.step_size
        self.now = self.node.now = self.now + self.step_size
        self.node.controller.rejections.add(Rejected("non_finite", ""))
        self.judge(self.face.update([math.nan, math.inf, None, "now"][int(self.rng.integers(4))], np.zeros(7)), True)

    def _on_again(self):
        """The last measurement is given again, as it is."""
        self.before, state = self.t, self.node.controller.state
        if state.stamp_ns == (round(self.t * 1e9) or 1):
            self.answer(state.q.copy(), state.v.copy())

    def _on_frozen(self):
        """The driver repeats positions and velocities, with new stamps."""
        self.frozen_at = self.now
        self.frozen_until = self.now + float(self.rng.uniform(0.0, 0.3))

    def _on_malformed(self):
        q, v = self.motion.measured(self.now)
        kind = int(self.rng.integers(4))
        if kind == 0:
            q = np.where(np.arange(len(q)) == self.rng.integers(len(q)), [math.nan, math.inf, 1e200][self.count % 3], q)
        elif kind == 1:
            q = q[1:]
        elif kind == 2:
            v = v[1:]
        else:
            v = np.where(np.arange(len(v)) == self.rng.integers(len(v)), math.nan, v)
        self.advance(1e-3)
        self.answer(q, v)

    def _on_bare(self):
        self.bare_until = self.now + float(self.rng.uniform(0.0, 0.1))

    def _on_stream(self):
        self.stream_until = self.now + float(self.rng.uniform(0.0, 0.6))
        if self.rng.random() < 0.3:
            self.motion.offset = self.rng.uniform(-0.5, 0.5, len(self.names))

    def _stream(self):
        if self.name == "cartesian":
            V = self.rng.normal(scale=0.1, size=6)
            message = TwistStamped()
            for part, numbers in ((message.twist.angular, V[:3]), (message.twist.linear, V[3:])):
                part.x, part.y, part.z = numbers.tolist()
            self.both(lambda: self.face.twist(V), lambda: self.node.node._on_twist(message))
            return
        rows = self.motion(self.now)
        rows = rows[:int(self.rng.choice([3, 5]))]
        if self.rng.random() < 0.02:
            rows = [rows[0], *(1e6 * row for row in rows[1:])]
        q, *rates = rows
        message = JointReference(name=self.names, position=q.tolist(), **{
            name: row.tolist() for name, row in zip(ROWS, rates, strict=False)})
        self.both(lambda: self.face.follow(rbd.Reference(*rows)), lambda: self.node.node._on_reference(message))

    def _on_trajectory(self):
        if self.name == "cartesian":
            self._on_goal()
            return
        goal, points, message = self.motion.measured(self.now)[0], [], JointTrajectory(joint_names=self.names)
        more = bool(self.rng.random() < 0.5)
        for k in range(int(self.rng.integers(1, 4))):
            goal, time = goal + self.rng.uniform(-0.1, 0.1, len(goal)), round(0.3e9) * (k + 1)
            points.append((time * 1e-9, goal, *([0.0 * goal] * 2 if more else [])))
            message.points.append(JointTrajectoryPoint(
                positions=goal.tolist(), time_from_start=Duration(sec=time // S, nanosec=time % S),
                **({"velocities": [0.0] * len(goal), "accelerations": [0.0] * len(goal)} if more else {})))
        self.stream_until = -math.inf
        self.both(lambda: self.face.follow(points), lambda: self.node.trajectory(message))

    def _on_goal(self):
        T = rbd.forward_kinematics(self.model, self.node.controller.state.q)[-1]
        T = T @ rbd.lie.se3.exp(self.rng.normal(scale=0.1, size=6))
        T[:3, :3] = so3.exp(so3.log(T[:3, :3]))
        numbers = [*T[:3, 3].tolist(), *so3.to_quaternion(T[:3, :3]).tolist()]
        kind = int(self.rng.integers(4))
        if kind == 0:
            message, wrench = WrenchStamped(), self.rng.normal(scale=3.0, size=6)
            for part, values in ((message.wrench.torque, wrench[:3]), (message.wrench.force, wrench[3:])):
                part.x, part.y, part.z = values.tolist()
            self.both(lambda: self.face.press(wrench), lambda: self.node.node._on_target_wrench(message))
        elif kind == 1:
            self.both(lambda: self.face.follow([(1.0, T)]), lambda: self.node.node._on_trajectory(
                0, "", [self.model.body_names[-1]], [PosePoint(1.0, [numbers])]))
        elif kind == 2:
            on = bool(self.rng.random() < 0.5)
            response = SetBool.Response()
            self.node.node._counts = Counter()
            self.both(lambda: self.face.guide(on), lambda: self.node.node._on_guide(SetBool.Request(data=on), response))
        else:
            message = PoseStamped()
            p, r = message.pose.position, message.pose.orientation
            p.x, p.y, p.z, r.x, r.y, r.z, r.w = numbers
            self.both(lambda: self.face.goal(T), lambda: self.node.node._on_pose(message))

    def _on_halt(self):
        if self.name == "cartesian":
            self.both(lambda: self.face.follow([]), lambda: self.node.node._on_trajectory(
                0, "", [self.model.body_names[-1]], []))
            return
        self.stream_until = -math.inf
        self.both(lambda: self.face.follow([]), lambda: self.node.trajectory(JointTrajectory(joint_names=self.names)))

    def _on_wrenches(self):
        if self.name != "cartesian":
            body = self.model.body_names[-1]
            self.wrenches = {body: self.rng.normal(scale=float(self.rng.choice([3.0, 1e4])), size=6)}

    def _on_parameters(self):
        picked = [self.others[int(i)] for i in self.rng.integers(len(self.others), size=int(self.rng.integers(1, 4)))]
        changes = {name: values[int(self.rng.integers(len(values)))] for name, values in picked}
        refused = []
        for change in (lambda: self.face.set(**changes), lambda: self.node.set(changes)):
            try:
                change()
            except rbd.RbdError as error:
                refused.append(str(error))
        assert len(refused) in (0, 2) and len(set(refused)) <= 1

    def _on_stop(self):
        self.node.stop()
        self.face.stop()
        self.stopped_until = self.now + float(self.rng.uniform(0.0, 0.3))

    def _on_refused(self):
        """Nothing of it changes anything."""
        with pytest.raises(rbd.RbdError):
            self.face.set(joints=self.names)
        with pytest.raises(rbd.RbdError):
            self.face.set(feedfoward="none")

    def _late_cycle(self):
        if self.rng.random() < 0.05:
            (self._on_trajectory if self.rng.random() < 0.7 else self._on_stream)()
        self.cycle()

    def _on_finish(self):
        """The node runs down with the states of these cycles; then both begin anew."""
        self.still_at = self.now if self.rng.random() < 0.8 else None
        self.face.finish()
        self.node.end(self._late_cycle)
        self.still_at = None
        (final, _), = self.node.published or [(None, False)]
        self.node.published = []
        self.advance(1e-3)
        command = self.face.update(self.t, np.zeros(len(self.names)))
        assert command.mode == self.node.controller.safety.mode == "inactive" and not command.valid
        if final is not None:
            assert alike(command.effort, final.effort) and alike(command.motor_effort, final.motor_effort)
            assert alike(self.face.update(self.t).effort, final.effort)
            self.pass_a_cycle()
        self.seen["inactive"] += 1
        self.advance(1e-3)
        self.node.reset()
        self.face.reset()
        self.active, self.last, self.stopped_until = False, None, math.inf


@pytest.mark.parametrize(("name", "seeds"), [
    ("feedforward", [0]), ("cartesian", [0]), ("series", [0]),
    *(pytest.param(*each, marks=pytest.mark.thorough) for each in (
        ("feedforward", [1, 2]), ("cartesian", [1, 2]), ("series", [1, 2]), ("flatness", [0, 1, 2]),
        ("elastic", [0, 1])))])
def test_a_random_walk_gives_the_same_to_the_bit(name, seeds, tmp_path, monkeypatch):
    seen = Counter()
    for seed in seeds:
        seen += Walk(name, seed, tmp_path, monkeypatch).run(2000).seen
    assert all(seen[each] for each in (
        "running", "ramp_in", "waiting", "stale", "stopped", "ramp_out", "inactive", "valid", "silent", "watchdog",
        "taken", "refused input", "repeated", "stuck", *EVENTS)), seen
