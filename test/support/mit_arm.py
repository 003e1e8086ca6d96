"""An arm whose motors close a loop at 1 kHz (position, velocity, kp, kd, torque), in MuJoCo, and a node's logic that
answers its joint states at 100 Hz, late."""
from __future__ import annotations

from collections import deque

import mujoco
import numpy as np

from rbd_ros.runtime.control.feedforward import FeedforwardController, FeedforwardSettings
from rbd_ros.runtime.control.mit import MitLaw, MitSettings, within
from rbd_ros.runtime.cosimulation.mujoco_model import mujoco_model
from rbd_ros.runtime.parameters import table_of, validate

STEP, PERIOD = 1e-3, 1e-2    # s, of the motors and of the joint states
RANGES = ((12.5, 16), (45.0, 12), (54.0, 12), (500.0, 12), (5.0, 12))    # of position, velocity, torque, kp, kd: bits


def encoded(command):
    """(5, n) as motors get it: clipped to their ranges and truncated, as drivers of Damiao motors do."""
    result = np.empty_like(command)
    for row, (most, bits), low in zip(range(5), RANGES, (-1.0, -1.0, -1.0, 0.0, 0.0), strict=True):
        span, steps = most * (1.0 - low), 2 ** bits - 1
        part = (np.clip(command[row], low * most, most) - low * most) / span
        result[row] = np.floor(part * steps + 1e-9) / steps * span + low * most
    return result


class MitArm:
    """`model`: the arm as it is; scale: true over commanded torque; quantum: of torques, N m; delay: s. weight: link,
    mass (kg) and place (3,) in the link's frame of what hangs there.

    `applied`, `told` (n,): torque of the motors, and as they report it. Commands are those of `send` (5, n): q, v,
    effort, kp, kd.
    """

    def __init__(self, model, description, q, scale=1.3, quantum=0.03, delay=0.01, limit=np.inf, weight=None):
        self.mj = mujoco_model(model, description, STEP)
        self.data = mujoco.MjData(self.mj)
        self.places = np.array([self.mj.joint(name).qposadr[0] for name in model.joint_names])
        self.dofs = np.array([self.mj.joint(name).dofadr[0] for name in model.joint_names])
        self.data.qpos[self.places] = q
        self.scale, self.quantum, self.delay, self.limit = scale, quantum, delay, limit
        self.now, self.underway, self.acting = 0.0, deque(), None
        self.applied = self.told = np.zeros(model.nv)
        self.weight = weight

    @property
    def q(self):
        return self.data.qpos[self.places].copy()

    @property
    def v(self):
        return self.data.qvel[self.dofs].copy()

    def send(self, command):
        self.underway.append((self.now + self.delay, encoded(command)))

    def step(self, look=None):
        """One step of the motors' loop; brakes hold the arm until the first command."""
        while self.underway and self.underway[0][0] <= self.now + 1e-9:
            self.acting = self.underway.popleft()[1]
        self.now += STEP
        if self.acting is None:
            return
        q_d, v_d, effort, kp, kd = self.acting
        asked = effort + kp * (q_d - self.data.qpos[self.places]) + kd * (v_d - self.data.qvel[self.dofs])
        self.told = self.quantum * np.rint(asked / self.quantum)
        self.applied = self.scale * self.told
        if self.limit < np.inf:
            self.applied = np.clip(self.applied, -self.limit, self.limit)
        if look is not None:
            look()
        self.data.qfrc_applied[self.dofs] = self.applied
        if self.weight is not None:
            self._hang(*self.weight)
        mujoco.mj_step(self.mj, self.data)


    def _hang(self, link, mass, place):
        body, force = self.mj.body(link).id, mass * self.mj.opt.gravity
        arm = self.data.xpos[body] + self.data.xmat[body].reshape(3, 3) @ place - self.data.xipos[body]
        (x, y, z), (fx, fy, fz) = arm, force    # np.cross takes longer than a step
        self.data.xfrc_applied[body] = fx, fy, fz, y * fz - z * fy, z * fx - x * fz, x * fy - y * fx


def settings_of(model, values, **mit):
    """(settings of node feedforward, of its output mit) for values by name, in the order of the model."""
    mit = {"mit.kp": values["gains.kp"], "mit.kd": values["gains.kd"], **{
        f"mit.{name}": value for name, value in mit.items()}}
    settings = FeedforwardSettings.from_values(values, model)
    made = MitSettings.from_values(validate(table_of(MitSettings), mit), settings)
    return within(settings, made), made


class MitLoop:
    """A node's logic without ROS and an arm; `cycle` is one period of the joint states.

    node_until, states_until, commands_until: until then the node stands still, joint states get lost, commands are held
    back. alive: whether there is a node. error: what is added to the next position. `torques`, `near`: per step of the
    motors, their torque, and whether the state is as near to the set point as the output's promise needs.
    """

    def __init__(self, arm, model, settings, mit):
        self.arm, self.model, self.mit = arm, model, mit
        self.law = MitLaw(model, mit)
        self.controller = FeedforwardController(model, settings)
        self.controller.activate(arm.now)
        self.node_until = self.states_until = self.commands_until = 0.0
        self.alive, self.error = True, None
        self.held = []
        self.torques, self.near, self.speeds = [], [], []

    def cycle(self):
        arm, now = self.arm, self.arm.now
        if self.alive and now >= self.node_until:
            command = None
            if now >= self.states_until:
                q = arm.q if self.error is None else arm.q + self.error
                self.error = None
                command = self.controller.on_state(now, 10**9 + round(now * 1e9), self.model.joint_names, q, arm.v)
            for each in (command, self.controller.watchdog(now)):
                if hasattr(each, "effort"):
                    state = self.controller.state
                    sent = self.law.command(state.q, state.v, each.effort, state.age(now) - state.timeout,
                                            each is not command)
                    self.held += [] if sent is None else [sent]
        if now >= self.commands_until:
            for command in self.held:
                arm.send(command)
            self.held.clear()
        for _ in range(round(PERIOD / STEP)):
            arm.step(self._look)

    def _look(self):
        arm, mit = self.arm, self.mit
        q_d, v_d = arm.acting[:2]
        self.torques.append(arm.applied)
        self.near.append((np.abs(arm.q - q_d) <= mit.position_change) & (np.abs(arm.v - v_d) <= mit.velocity_change))
        self.speeds.append(np.abs(arm.v).max())

    def run(self, duration, each=None):
        for _ in range(round(duration / PERIOD)):
            if each is not None:
                each()
            self.cycle()

    def follow(self, points, stamp_ns=0):
        return self.controller.on_trajectory(self.arm.now, stamp_ns, self.model.joint_names, points)
