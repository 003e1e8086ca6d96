"""A torque node's logic and an arm in a loop, without ROS: states go out as bytes, efforts come back late."""
from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np

import rbd_ros as rbd
from rbd_ros.runtime.control.loop_rate import Transit
from rbd_ros.runtime.control.mit import MitLaw, MitSettings
from rbd_ros.runtime.inputs.joint_state_bytes import JointStateReader
from rbd_ros.runtime.safety import Command

from .cases import Case
from .messages import JointStates
from .plant import STEP, Array, Plant

BEGIN = 1_000_000_000_000    # ns of the first stamp
BRAKES = 0.1                 # s without commands until brakes engage, where the robot has such
WATCH = 0.01                 # s between looks of the watchdog
SUPERVISED = 0.02            # s without a driver until a robot of its own stops
QUANTUM = 0.03               # N m, of the torque of motors that close a loop
RELEASE = 0.02               # s from the first command that acts until brakes are open


class Rig:
    """`now` (s) goes on by `cycle`. What stands between node and arm: `node_until`, `driver_until`: they stand still
    until then; `blind_until`: no joint state reaches the node; `elsewhere`: a controller that has the arm instead,
    q, v → effort.
    """

    def __init__(self, case: Case, rng: np.random.Generator) -> None:
        self.case, self._rng, model = case, rng, case.model
        self.period = 1.0 / case.rate
        mass, rub = rng.uniform(0.9, 1.1), rng.uniform(0.7, 1.3, model.nv)
        if "friction" in case.compensates:
            rub = np.abs(rub - 1.0)    # what is left of it
        self.arm = model.with_scaled_masses(mass).with_(friction=rub * model.friction, damping=rub * model.damping)
        quick = case.simulated or case.springs is not None    # its drives
        self.plant = Plant(self.arm, rng.uniform(*case.poses), rng.choice([0.0, 1e-3, 3e-3]) * (not quick),
                           0.5 * model.effort_limit, case.springs)
        real = not case.simulated
        self._delay = real * float(rng.uniform(0.0, case.delay))
        self._jitter = real * float(rng.choice([0.0, 0.2])) * self.period
        self._quantum = 2.0 * np.pi / 2 ** int(rng.integers(16, 21))
        self._noise = real * float(rng.choice([0.0, 1e-3, 5e-3]))
        self.motors: Any = None    # makes commands for motors that close a loop
        if case.mit is not None:
            self.motors = MitLaw(model, MitSettings.from_values(case.mit, case.settings()))
        self._scale = 1.0 if self.motors is None else float(rng.uniform(0.95, 1.05))    # what calibration leaves
        self.within = [0, 0]    # looks at motors that close a loop: all; near the state that was answered
        self.has_brakes = real and bool(rng.random() < 0.5)
        self._limit = np.where(model.effort_limit > 0.0, model.effort_limit, np.inf)
        self._messages = JointStates(model.joint_names)
        self.now, self.cycles = 1.0, 0
        self._underway: deque[tuple[float, Array]] = deque()    # commands, with the times at which they act
        self._acting = np.zeros(model.nv)                       # the newest that acts
        self._commanded_at = self._passed_at = -np.inf
        self._open_at = np.inf    # when the brakes are
        self.node_until = self.driver_until = self.blind_until = 0.0
        self.elsewhere: Any = None
        self.errors: dict[str, Any] = {}    # of the next states: what is done to them
        self.sent: deque[bytes] = deque(maxlen=4)
        self._watched = 0.0
        self.settings = case.settings()
        self.lines: list[str] = []    # of the log
        self.outputs = 0
        self.last: Array | None = None
        self.start()

    # ---- the node

    def start(self) -> None:
        """Another process of the node, active at once."""
        self.controller = self.case.controller(self.settings)
        self.controller.activate(self.now)
        self._answered = -np.inf    # when the state was received that was answered last
        if self.motors is not None:
            self.motors.begin()
        self._transit = Transit()
        self.steady: Any = self.case.steady(self.controller, self._transit)
        self._reader = JointStateReader(self._messages.convert)
        self.leaving = False
        self.left_at_speed = 0.0    # rad/s, of the arm when a node that ended left it

    def _hear(self, data: bytes, sent: float) -> None:
        controller, now = self.controller, self.now
        now_ns, sent_ns = (BEGIN + round(t * 1e9) for t in (now, sent))
        found: Any = self.steady and self.steady.answer(data, now, now_ns, sent_ns, now_ns)
        if found is not None:
            found = Command(*(None if each is None else each.copy() for each in (
                found.effort, None, found.motor_effort)))
            self.steady.keep()
        else:
            fields = self._reader.read(data)
            found = controller.on_state(now, fields.stamp_ns, fields.names, fields.position, fields.velocity,
                                        fields.effort, self._transit.age(now_ns, sent_ns, now_ns))
            if self.steady is not None:
                self.steady.prepare(self._reader.layout, data)
        if isinstance(found, Command):
            self._send(found)
        elif found.text:
            self.lines.append(found.text)
        self.lines += controller.take_notices()

    def _send(self, command: Command) -> None:
        effort = command.efforts[-1]
        if not (np.isfinite(effort).all() and (np.abs(effort) <= self._limit * (1.0 + 1e-12)).all()):
            raise AssertionError(f"effort {effort} beyond its limits")
        if command.problem:
            self.lines.append(command.problem)
        if self.motors is not None:
            state = self.controller.state
            lost, again = state.age(self.now) - state.timeout, state.received == self._answered
            self._answered = state.received
            rows = self.motors.command(state.q, state.v, effort, lost, again)
            if rows is not None:
                self._underway.append((self.now + self._delay, rows))
        else:
            self._underway.append((self.now + self._delay, effort.copy()))
        self._commanded_at, self.last = self.now, effort.copy()
        self.outputs += 1

    # ---- a cycle

    def cycle(self) -> None:
        """One period of the joint states."""
        self._move(self.period + self._rng.uniform(-self._jitter, self._jitter))
        self.cycles += 1
        now = self.now
        runs = now >= self.node_until
        if now >= self.driver_until:
            self._state(runs and now >= self.blind_until)
        if runs and self.controller.safety.mode != "inactive" and now - self._watched >= WATCH:
            self._watched = now
            command = self.controller.watchdog(now)
            if command is not None:
                self._send(command)
        if self.leaving and runs and self.controller.finished:
            self.left_at_speed = float(np.abs(self.plant.v).max())
            self.finish()

    def finish(self) -> None:
        command = self.controller.finish(self.now)
        if command is not None:
            self._send(command)
        self.leaving = False

    def _state(self, runs: bool) -> None:
        plant, errors = self.plant, self.errors
        q = np.round(plant.q / self._quantum) * self._quantum
        v = plant.v + self._noise * self._rng.standard_normal(len(q)) if self._noise else plant.v
        if self.case.springs is not None and runs:
            motors = np.round(plant.motors[0] / self._quantum) * self._quantum
            self.controller.on_motor_state(self.now, BEGIN + round(self.now * 1e9), self.case.model.joint_names, motors,
                                           plant.motors[1])
        stamp = BEGIN + round(self.now * 1e9)
        age = 0.0
        if (error := errors.get("outlier")) is not None:
            q, v = q + error[0], v + error[1]
            del errors["outlier"]
        if errors.get("repeat", 0) > 0 and self.sent:    # old numbers with a new stamp
            errors["repeat"] -= 1
            q, v = self._last_numbers
        if errors.get("old_until", 0.0) > self.now:
            age = errors["old_age"]
            q, v = q - age * v, v
        self._last_numbers = q, v
        data = self._messages.message(stamp - round(age * 1e9), q, v)
        self.sent.append(data)
        if runs:
            self._hear(data, self.now - age)

    def _move(self, duration: float) -> None:
        plant, steps = self.plant, max(round(duration / STEP), 1)
        own = rbd.gravity_effort(plant.model, plant.q) if "gravity" in self.case.compensates else 0.0
        late = self.now - self._commanded_at > BRAKES and self.elsewhere is None
        # robots with a controller of their own stop when their real-time connection misses cycles
        supervised = bool(self.case.compensates) and self.motors is None
        missed = supervised and self._passed_at + SUPERVISED < self.now < self.driver_until
        if self.now >= self.driver_until:
            self._passed_at = self.now
        if self.last is None or missed or (self.has_brakes and late):
            self._open_at = np.inf
        plant.braked = self.now < self._open_at
        for count in (steps // 2, steps - steps // 2):
            while self._underway and self._underway[0][0] <= self.now:
                self._acting = self._underway.popleft()[1]
                self._open_at = min(self._open_at, self.now + RELEASE)
            if self.now >= self.driver_until:    # a manager that stands still passes nothing on
                if self.elsewhere is None and self._acting.ndim > 1:
                    self._pass(*self._acting, own)
                elif self.motors is not None and self.elsewhere is not None:    # with loops of the motors, too
                    zero, mit = np.zeros(len(plant.q)), self.motors.settings
                    plant.command = self.elsewhere(zero, zero) + own
                    plant.local[:3], plant.local[3], plant.local[4] = (mit.kp, mit.kd, self._limit), QUANTUM, 1.0
                else:
                    acting = self._acting if self.elsewhere is None else self.elsewhere(*plant.motors)
                    plant.local[:] = 0.0
                    plant.command = np.clip(acting, -self._limit, self._limit) + own
            plant.advance(count)
            self.now += count * STEP

    def _pass(self, q: Array, v: Array, effort: Array, kp: Array, kd: Array, own: Array | float) -> None:
        """Pass a command on to motors that close a loop, with what their driver adds itself. In states as near to the
        answered one as promised, their torque is within the limits, without that.
        """
        plant, mit = self.plant, self.motors.settings
        plant.command = effort + kp * q + kd * v + own
        plant.local[:3], plant.local[3], plant.local[4] = (kp, kd, self._limit), QUANTUM, self._scale
        near = (np.abs(plant.q - q) <= mit.position_change) & (np.abs(plant.v - v) <= mit.velocity_change)
        beyond = np.abs(plant.command - own - kp * plant.q - kd * plant.v) > self._limit * (1.0 + 1e-12)
        self.within[0] += near.size
        self.within[1] += int(near.sum())
        if (near & beyond).any():
            raise AssertionError("a torque of the motors' loops beyond its limits")
