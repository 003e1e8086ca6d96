"""`TorqueController`: the logic of the torque nodes for programs without ROS.

One call per cycle takes the place of a node's messages and timers: the time that is given is both the stamp of the
state and the present time, and a call without an accepted state is the watchdog of the node.
"""
from __future__ import annotations

import os
import traceback
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...core.actuation.motor_reference import MotorReference
from ...core.errors import RbdError, shown, unknown_name, warn
from ...core.lie import so3
from ...core.lie.se3 import checked_pose, from_rotation
from ...core.model.robot_model import RobotModel
from ...core.model.scalars import at_least, positive
from ...core.motion.trajectory import Reference
from ..estimation.contacts import Touch
from ..inputs.pose_points import PosePoint
from ..inputs.rejections import Rejected, Verdict
from ..inputs.trajectory_points import MOST_POINTS, Point
from ..parameters import Table
from ..safety import Command
from ..without_ros import LATEST, changed, checked_time, described, joint_state, numbers, stamp, values_of
from .cartesian import CartesianController
from .cartesian_settings import CARTESIAN_TABLE, CartesianSettings
from .elastic_controller import ElasticController, flatness_controller
from .elastic_settings import flatness_settings
from .feedforward import FEEDFORWARD_TABLE, FeedforwardController, FeedforwardSettings
from .flatness import FLATNESS_TABLE
from .following import FollowingController
from .torque_controller import Controller
from .torque_settings import TorqueSettings

Array = NDArray[np.float64]
TABLES: dict[str, Table] = {"feedforward": FEEDFORWARD_TABLE, "flatness": FLATNESS_TABLE, "cartesian": CARTESIAN_TABLE}
RATE = 100.0       # Hz, of the points of a motion
STEP = 1e-3        # s, of an unknown time before the second call
MOST_NOTICES = 100


class TorqueCommand(NamedTuple):
    """What `TorqueController.update` returns.

    effort (nv,): of the joints in model order, finite and within the effort limits. mode: as of the nodes (waiting,
    ramp_in, running, ramp_out, stale, stopped, inactive). valid: whether the effort answers the state of this call; if
    not, it is the last one or the safe output. reason: why it is not the command of the law, or why the state was
    refused; "" if all is well. rates (2, nv): first and second time derivative of the effort, of node `flatness`; None
    if unknown. motor_effort (nm,), motors: of elastic joints; None without, or without a command.
    """

    effort: Array
    mode: str
    valid: bool
    reason: str = ""
    rates: Array | None = None
    motor_effort: Array | None = None
    motors: MotorReference | None = None

    @property
    def following(self) -> bool:
        """Whether the effort has a command of the law in it."""
        return self.mode in ("ramp_in", "running", "ramp_out")


class TorqueController:
    """The logic of a torque node without ROS: the same code, parameters and safety, one call of `update` per cycle.

    model: joints of one coordinate on a fixed base, or a URDF (path or text), loaded with parameters `gravity`,
    `mounting.rpy`, `locked.joints` and `rotor_inertia` as by the node. node: `feedforward`, `flatness` or `cartesian`.
    file: a ROS parameter file of this node; parameters of outputs and executors have no effect. parameters: those of
    the node, also nested: `gains={"kp": 100.0}` is gains.kp; they take precedence over the file.

    `update` raises nothing, whatever the states are: it counts and reports like the node. Everything else raises
    `RbdError` for what it refuses, and changes nothing then. Not for several threads at a time.

        >>> arm = rbd.Simulator(rbd.sample("two_link"), q=[0.3, 0.5])
        >>> controller = rbd.TorqueController(arm.model, feedforward="gravity")
        >>> controller.update(arm.time, arm.q, arm.v).mode
        'ramp_in'
        >>> controller.stop()
        >>> controller.update(arm.time + 0.001, arm.q, arm.v).effort - rbd.gravity_effort(arm.model, arm.q)
        array([0., 0.])
    """

    def __init__(self, model: RobotModel | str | os.PathLike[str], node: str = "feedforward",
                 file: str | os.PathLike[str] | None = None, **parameters: Any) -> None:
        if node not in TABLES:
            raise unknown_name("node", node, TABLES)
        self.node, self._table = node, TABLES[node]
        self._values = values_of(node, self._table, file, parameters)
        self._described = described(self._values, model)
        settings = self._settings(self._values)
        self._logic = _logic(node, self._described, settings)
        self._logic.warm_up()
        if settings.unlimited:
            warn(f"no limit for the effort of {', '.join(settings.unlimited)}: neither the robot description nor "
                 "'effort_limits.maximum' has one")
        self._names = list(self._described.joint_names)
        self._notices: deque[str] = deque(maxlen=MOST_NOTICES)
        self._active = False
        self._end: float | None = None                # time of the end at the latest, from `finish` on
        self._t: float | None = None                  # last time given, s
        self._now, self._offset, self._step, self._stamp_ns = 0.0, 0.0, STEP, 1
        self._last: TorqueCommand | None = None

    def __repr__(self) -> str:
        return f"TorqueController of '{self.model.name}': {self.node}, {self._logic.safety.mode}"

    # ---- a cycle

    def update(self, t: float, q: ArrayLike | None = None, v: ArrayLike | None = None, tau: ArrayLike | None = None, *,
               motors: tuple[ArrayLike, ArrayLike] | None = None,
               external_wrenches: Mapping[str, ArrayLike] | None = None) -> TorqueCommand:
        """The command at time t (s) for the state q, v (nv,), with the measured efforts tau; v and tau None or NaN
        where they are unknown. Without q, as the watchdog of the node: call it while states are missing. The first call
        activates.

        Times of a clock that was set back count as states of another clock: refused for `state_timeout`, then a
        restart. If t is no number, or the last measurement is given again with its time, the state is refused, and the
        time of a cycle passes.

        motors: positions and velocities (nm,) of elastic joints, in the order of `Actuation.motor_names`.
        external_wrenches: of the world on the robot, `{body: (6,)}` in the frame of the link, moment first; they hold
        until the next ones, for `wrench_timeout` at most.
        """
        try:
            return self._updated(t, q, v, tau, motors, external_wrenches)
        except Exception:    # must not end a control loop
            self._logic.safety.stop()
            return self._repeated(traceback.format_exc())

    def _updated(self, t: float, q: ArrayLike | None, v: ArrayLike | None, tau: ArrayLike | None, motors: Any,
                 external_wrenches: Any) -> TorqueCommand:
        logic, before = self._logic, self._now
        problem, now = self._advance(t, q), self._now
        if self._t is None:
            return self._repeated(problem)
        if not self._active:
            if self._last is not None and self._last.mode == "inactive":
                return self._repeated("the controller has finished: reset() begins anew")
            logic.activate(now)
            self._active = True
        if self._end is not None and (logic.finished or before >= self._end):
            return self._finished(logic.finish(now))
        verdict = Verdict(False, problem)
        if not problem:
            verdict = self._taken(motors, external_wrenches)
            if q is not None:
                answer = self._answer(q, v, tau)
                if isinstance(answer, Command):
                    self._look(now)
                    return self._said(answer, True, answer.problem or verdict.text)
                verdict = answer
        command = logic.watchdog(now)
        if command is None:
            return self._repeated(verdict.text)
        return self._said(command, False, "; ".join(filter(None, (verdict.text, command.problem))))

    def _advance(self, t: float, q: Any) -> str:
        """Advance the present time, which never decreases, to that of t; returns what is wrong with t. A cycle passes
        where t does not say how much: no number, or again that of the last measurement q.
        """
        try:
            seconds = checked_time(t)
        except Rejected as error:
            self._offset, self._now = self._offset + self._step, self._now + self._step
            return self._logic.rejections.add(error).text
        again = seconds == self._t and (q is None or (self._stamp_ns == self._logic.state.stamp_ns
                                                      and _same(q, self._logic.state.q)))
        if again:
            self._offset += self._step
        elif self._t is not None and seconds > self._t:
            self._step = min(seconds - self._t, self._logic.settings.safety.state_timeout)
        elif self._t is not None:
            self._offset += self._t - seconds
        self._now = seconds if self._t is None else max(seconds + self._offset, self._now)
        self._t, self._stamp_ns = seconds, stamp(seconds)
        if not again or q is None:
            return ""
        return self._logic.rejections.add(Rejected("repeated", f"the measurement of {seconds:.9g} s was given before: "
                                          "call update(t), with the present time, while there is no new one")).text

    def _answer(self, q: ArrayLike, v: ArrayLike | None, tau: ArrayLike | None) -> Command | Verdict:
        logic = self._logic
        try:
            position, velocity, effort = joint_state(q, v, tau)
        except Rejected as error:
            logic.state.refused = str(error)
            return logic.rejections.add(error)
        return logic.on_state(self._now, self._stamp_ns, self._names, position, velocity, effort)

    def _taken(self, motors: Any, external_wrenches: Any) -> Verdict:
        """Take the other inputs; the last refusal, if any."""
        logic, verdict = self._logic, Verdict(True)
        try:
            if motors is not None:
                if not isinstance(logic, ElasticController):
                    raise Rejected("malformed", "motors are given, but there is no parameter 'actuation_file'")
                position, velocity = _pair(motors)
                verdict = logic.on_motor_state(self._now, self._stamp_ns, logic.actuation.motor_names,
                                               numbers("motors", position), numbers("motors", velocity))
            if external_wrenches is not None:
                if not isinstance(logic, FollowingController):
                    raise Rejected("malformed", f"node '{self.node}' does not support external_wrenches")
                verdict = logic.on_wrenches(self._now, _wrenches(external_wrenches)) and verdict
        except Rejected as error:
            return logic.rejections.add(error)
        return verdict

    def _look(self, now: float) -> None:
        """Look at the answered state, for reports."""
        logic = self._logic
        if (gravity := logic.compare_gravity(now)) is not None:
            self._notices.append(gravity.text)
        if problem := logic.judge_gains():
            self._notices.append(problem)
        self._notices += logic.take_notices()
        logic.statistics.published(0.0)

    def _said(self, command: Command, valid: bool, reason: str) -> TorqueCommand:
        self._last = TorqueCommand(
            command.effort.copy(), self._logic.safety.mode, valid, reason, command.rates,
            None if command.motor_effort is None else command.motor_effort.copy(), command.motors)
        return self._last

    def _repeated(self, reason: str) -> TorqueCommand:
        """The last command, where a node is silent; before the first one, the fallback."""
        safety = self._logic.safety
        effort, *motor = [np.array(channel.let_down if channel.output is None else channel.output)
                          for channel in safety.channels]
        if safety.output is None and not reason:
            reason = "no joint state yet"
        self._last = TorqueCommand(effort, safety.mode, False, reason, None, motor[0] if motor else None)
        return self._last

    def _finished(self, command: Command | None) -> TorqueCommand:
        self._active, self._end = False, None
        return self._repeated("") if command is None else self._said(command, False, "")

    # ---- what is to be done

    def follow(self, motion: Any, start: float | None = None) -> None:
        """Follow a motion in place of what was followed: from the last state on, or from the time `start` (s) on.

        motion: with `duration` (s) and `motion(t)`, as of `optimize_motion`, `time_optimal` or `SplineMotion`; or
        points (t, q, v, a), times from the start, velocities and accelerations as far as known, interpolated as by the
        node; []: stop here, and stay. A `Reference` is a sample of a stream, which is followed for `reference_timeout`.
        Node `cartesian`: points (t, pose (4, 4), twist (6,), its rate (6,)) in axes of the root link, angular first.

        Refused where the robot is elsewhere, limits are exceeded, the robot is stopped or finishing, or there is no
        fresh state.
        """
        logic, verdict = self._ready(Controller), Verdict(True)
        if start is not None and not at_least(-LATEST, start, "start", "s") <= LATEST:
            raise RbdError(f"start is {start:g} s, at most {LATEST:g}")
        start_ns = 0 if start is None else stamp(start)
        if isinstance(logic, CartesianController):
            points = _points(motion, lambda t, pose, *rates: PosePoint(
                float(t), [_pose("motion", pose)], *([_twist("motion", rate)] for rate in rates)))
            verdict = logic.on_trajectory(self._now, start_ns, "", [logic.settings.body], points)
        elif isinstance(logic, FollowingController) and isinstance(motion, Reference):
            rows = [() if row is None else numbers("motion", row) for row in motion]
            verdict = logic.on_reference(self._now, 0, self._names, *rows)
        elif isinstance(logic, FollowingController):
            if callable(motion) and hasattr(motion, "duration"):
                duration = positive(motion.duration, "motion.duration", "time")
                t = np.linspace(0.0, duration, max(self._enough(duration * RATE), 2) + 1)
                try:
                    motion = list(zip(t, *motion(t)[:3], strict=True))
                except (TypeError, ValueError) as error:
                    raise RbdError(f"motion: expected q, v, a of {len(t)} times from motion(t) ({error})") from None
            points = _points(motion, lambda t, *rows: Point(
                float(t), *(() if row is None else numbers("motion", row) for row in rows)))
            self._enough(len(points))
            verdict = logic.on_trajectory(self._now, start_ns, self._names, points)
        self._accepted(verdict)

    @property
    def reference(self) -> Reference | Array | None:
        """What is followed, at the time of the last state: a motion that begins there goes on from it without a fade.
        None without; a motion then begins where the arm is. Node `cartesian`: the pose (4, 4) of the target.
        """
        if isinstance(self._logic, CartesianController):
            target = self._logic.target
            return None if target is None else from_rotation(target[:9].reshape(3, 3), target[9:12])
        assert isinstance(self._logic, FollowingController)
        return self._logic.followed(self._now)

    def goal(self, pose: ArrayLike, frame: str = "") -> None:
        """Node `cartesian`: go to a pose (4, 4) of the link, in axes of a link at its present place; "": the root."""
        p = _pose("pose", pose)
        self._accepted(self._ready(CartesianController).on_goal(self._now, frame, p[:3], p[3:]))

    def twist(self, twist: ArrayLike, frame: str = "") -> None:
        """Node `cartesian`: move the link by a twist (6,), angular first, about its origin, for
        `target.twist_timeout`; in axes of a link as they are now; "": the root.
        """
        V = _twist("twist", twist)
        self._accepted(self._ready(CartesianController).on_twist(self._now, frame, V[:3], V[3:]))

    def press(self, wrench: ArrayLike, frame: str = "") -> None:
        """Node `cartesian`: exert a wrench (6,), moment first, on what the link touches, about its origin, until the
        next one; zero ends it. In axes of a link as they are now; "": the root.
        """
        W = numbers("wrench", wrench, 6)
        self._accepted(self._ready(CartesianController).on_target_wrench(self._now, frame, W.tolist()))

    def guide(self, on: bool = True) -> None:
        """Node `cartesian`: begin or end hand guiding along the axes `guide.free`."""
        self._accepted(self._ready(CartesianController).guide(self._now, bool(on)))

    def stop(self) -> None:
        """Emergency stop: the safe effort from the next `update` on, until `reset`, also if it was not active yet."""
        self._logic.safety.stop()

    def reset(self) -> None:
        """Release the emergency stop: ramp in as after activation, without what was followed before. After the end of
        `finish`, the next `update` activates.
        """
        self._logic.reset(self._now)
        if not self._active:
            self._last = None

    def finish(self) -> None:
        """Begin the end, as the node at its deactivation: ramp to the safe effort. Go on with `update` until the mode
        is `inactive`: that effort is the one to leave behind. Nothing before the first `update` and after the end.
        """
        if self._active and self._end is None:
            self._logic.deactivate()
            self._end = self._logic.latest_end(self._now, self._now)

    def set(self, **parameters: Any) -> None:
        """Change parameters while running: the torque fades to the new laws within `ramp_in`."""
        values = changed(self._table, self._values, parameters)
        self._logic.apply(self._settings(values, self._logic.settings))
        self._values = values

    # ---- what is known

    @property
    def model(self) -> RobotModel:
        """The model, with its payload."""
        return self._logic.model

    @property
    def external_effort(self) -> Array | None:
        """What the world applies to the joints (nv,), N m or N, as `contact.reaction` of `feedforward` sees it: 0 after
        gaps. None without it: `EffortObserver` is for every controller.
        """
        logic = self._logic
        if not (isinstance(logic, FeedforwardController) and logic.contacts.watches):
            return None
        return logic.contacts.external.copy()

    @property
    def contact(self) -> Touch | None:
        """The contact that `contact.reaction` of `feedforward` sees: link, wrench, point and the time when it began."""
        return self._logic.contacts.contact if isinstance(self._logic, FeedforwardController) else None

    @property
    def parameters(self) -> dict[str, Any]:
        """All parameters by full name."""
        return dict(self._values)

    def report(self) -> dict[str, Any]:
        """Counters and measurements by name, as the node has them in /diagnostics."""
        return {key: value for key, value in self._logic.report().items()
                if not key.startswith(("latency", "deadline", "steady"))}

    def notices(self) -> list[str]:
        """What the node would have logged since the last call: dropped motions, restarts, the gravity check, gains that
        are too high for the rate.
        """
        notices = [*self._notices, *self._logic.take_notices()]
        self._notices.clear()
        return notices

    # ---- how

    def _settings(self, values: Mapping[str, Any], before: Any = None) -> TorqueSettings:
        if self.node == "flatness":
            return flatness_settings(values, self._described, before)
        kind = CartesianSettings if self.node == "cartesian" else FeedforwardSettings
        return kind.from_values(values, self._described)

    def _ready(self, kind: type[Any]) -> Any:
        """The logic, active."""
        if not isinstance(self._logic, kind):
            raise RbdError(f"not supported by node '{self.node}', expected a TorqueController with node='cartesian'")
        if not self._active:
            raise RbdError("the controller has finished: call reset, then update" if self._last is not None
                           and self._last.mode == "inactive" else
                           "there is no joint state to begin from: call update first")
        return self._logic

    def _enough(self, points: float) -> int:
        """This number of points of a motion, if it is allowed."""
        most = self._values[MOST_POINTS.name]
        if not points <= most:
            raise RbdError(f"motion has {points:.0f} points, at most {most:g} (parameter '{MOST_POINTS.name}')")
        return round(points)

    def _accepted(self, verdict: Verdict) -> None:
        if not verdict:
            raise RbdError(verdict.text)
        if verdict.text:
            self._notices.append(verdict.text)


def _logic(node: str, model: RobotModel, settings: Any) -> Controller[Any]:
    if node == "flatness":
        return flatness_controller(model, settings)
    return (CartesianController if node == "cartesian" else FeedforwardController)(model, settings)


def _same(q: Any, last: Array) -> bool:
    try:
        return bool(np.array_equal(q, last))
    except (TypeError, ValueError):
        return False


def _pair(motors: Any) -> tuple[Any, Any]:
    try:
        position, velocity = motors
    except (TypeError, ValueError):
        raise Rejected("malformed", f"motors is {shown(motors)}, expected positions and velocities") from None
    return position, velocity


def _wrenches(wrenches: Any) -> list[tuple[str, Array]]:
    if not isinstance(wrenches, Mapping):
        raise Rejected("malformed", f"external_wrenches is {shown(wrenches)}, expected {{body: (6,)}}")
    return [(str(body), numbers("external_wrenches", wrench, 6)) for body, wrench in wrenches.items()]


def _points(motion: Any, make: Any) -> list[Any]:
    """Points of a trajectory; raises `RbdError`, naming the malformed one."""
    if isinstance(motion, str | bytes) or not isinstance(motion, Sequence | np.ndarray):
        raise RbdError(f"motion is {shown(motion)}, expected a motion with duration, or points (t, q, v, a)")
    points: list[Any] = []
    for point in motion:
        try:
            points.append(make(*point))
        except (TypeError, ValueError) as error:
            raise RbdError(f"motion: point {len(points)} is {shown(point)}, expected its time and values"
                           f"{f' ({error})' if isinstance(error, RbdError) else ''}") from None
    return points


def _pose(what: str, pose: ArrayLike) -> list[float]:
    """Position and quaternion (7,)."""
    T = checked_pose(what, pose)
    return [*T[:3, 3].tolist(), *so3.to_quaternion(T[:3, :3]).tolist()]


def _twist(what: str, twist: ArrayLike) -> list[float]:
    """(6,) with the linear part first, as in messages."""
    V = numbers(what, twist, 6)
    return [*V[3:].tolist(), *V[:3].tolist()]
