"""Cartesian impedance control on a simulated arm."""
from __future__ import annotations

import numpy as np

import rbd_ros as rbd
from rbd_ros.core.lie import so3
from rbd_ros.core.motion.velocity_limits import velocity_limits
from rbd_ros.runtime.control.cartesian import CartesianController
from rbd_ros.runtime.control.cartesian_settings import CartesianSettings
from rbd_ros.runtime.damping_gains import largest_damping, sampled_inertia
from rbd_ros.runtime.inputs.pose_points import PosePoint
from rbd_ros.runtime.safety import Command

from .steady_twins import SteadyTwins

MODEL = rbd.sample("iiwa")
NAMES, TIP = MODEL.joint_names, MODEL.body_names[-1]
START = np.array([0.2, 0.5, -0.3, -1.2, 0.2, 0.8, 0.1])
STEP = 2e-3
INERTIA = np.diag(rbd.mass_matrix(MODEL, START))
GAINS = {"gains.kp": (100.0 * INERTIA).tolist(), "target.farthest": 3.0,
         "gains.kd": np.minimum(14.0 * INERTIA, 0.5 * largest_damping(sampled_inertia(MODEL), 1.0 / STEP)).tolist()}
LIMITS = velocity_limits(MODEL)
UNTURNED = (0.0, 0.0, 0.0, 1.0)


class Rig:
    """Controller and plant, at 500 Hz; masses and friction of the plant may be others than the model's, which has the
    friction `rubs`. twins: two controllers, one with a steady cycle.
    """

    def __init__(self, masses=1.0, friction=0.0, seed=0, rubs=0.0, twins=False, **values):
        model = MODEL.with_(friction=np.full(7, rubs), damping=np.full(7, rubs))
        settings = CartesianSettings.from_values({**GAINS, **values}, model)
        self.controller = (SteadyTwins(settings, np.random.default_rng(seed)) if twins else
                           CartesianController(model, settings))
        self.controller.activate(0.0)
        truth = MODEL.with_scaled_masses(masses).with_(friction=np.full(7, friction), damping=np.full(7, friction))
        self.plant = rbd.Simulator(truth, step=STEP, q=START)
        self.now, self.effort, self.rng = 1.0, np.zeros(7), np.random.default_rng(seed)
        self.fastest, self.modes, self.asked = 0.0, [], []

    def run(self, seconds, force=None, lost=False, stalled=False, lie=None):
        """force (3,): N on the tip, axes of the world; lost: no joint states; stalled: the controller stands still, and
        its last effort acts; lie: positions sent in place of true.
        """
        for _ in range(round(seconds / STEP)):
            self.now += STEP
            q, v = self.plant.q, self.plant.v + 1e-3 * self.rng.normal(size=7)
            answer = None if stalled else self.controller.watchdog(self.now) if lost else self.controller.on_state(
                self.now, round(1e9 * self.now), NAMES, q if lie is None else lie, v)
            if isinstance(answer, Command):
                self.effort = answer.effort
            wrench = None
            if force is not None:
                R = rbd.forward_kinematics(MODEL, self.plant.q)[-1, :3, :3]
                wrench = {TIP: np.concatenate([np.zeros(3), R.T @ force])}
            self.plant.step(self.effort, external_wrenches=wrench)
            self.fastest = max(self.fastest, float(np.max(np.abs(self.plant.v) / LIMITS)))
            self.modes.append(self.controller.safety.mode)
            self.asked.append(self.effort)
        return self

    @property
    def pose(self):
        return rbd.forward_kinematics(MODEL, self.plant.q)[-1]

    def blocked(self, seconds):
        """A link that cannot move; returns the efforts."""
        q, first = self.plant.q.copy(), len(self.asked)
        for _ in range(round(seconds / STEP)):
            self.now += STEP
            self.asked.append(self.controller.on_state(self.now, round(1e9 * self.now), NAMES, q, np.zeros(7)).effort)
        return np.array(self.asked[first:])

    def goal(self, move, turn=(0.0, 0.0, 0.0), frame=""):
        T = self.pose
        return self.controller.on_goal(self.now, frame, T[:3, 3] + move, so3.to_quaternion(
            so3.exp(np.array(turn)) @ T[:3, :3]))

    def follow(self, points, stamp_ns=0, frame="", names=(TIP,)):
        return self.controller.on_trajectory(self.now, stamp_ns, frame, list(names), points)

    def circle(self, radius=0.06, period=3.0, turn=0.2, count=60, begin=0.0):
        """Points of a circle in the plane of y and z that the target begins and ends at rest, turning about z."""
        R, p = self.controller.filter.target[:9].reshape(3, 3), self.controller.filter.target[9:12]
        points = []
        for s in np.arange(1, count + 1) / count:
            phi = 2.0 * np.pi * s**3 * (10.0 - 15.0 * s + 6.0 * s * s)
            points.append(PosePoint(begin + period * s, [[
                *p + radius * np.array([0.0, np.sin(phi), 1.0 - np.cos(phi)]),
                *so3.to_quaternion(so3.exp(np.array([0.0, 0.0, turn * np.sin(phi)])) @ R)]]))
        return points

    def drives(self, seconds, linear, angular=(0.0, 0.0, 0.0), frame="", period=0.02, jitter=0.0):
        """A stream of twists; returns the targets, before and after each message."""
        targets = []
        for _ in range(round(seconds / period)):
            assert self.controller.on_twist(self.now, frame, linear, angular)
            for _ in range(max(round(period * (1.0 + jitter * self.rng.uniform(-1.0, 1.0)) / STEP), 1)):
                self.run(STEP)
                targets.append(self.controller._aim.target)
        return np.array(targets)

    def change(self, **values):
        self.controller.apply(CartesianSettings.from_values({**GAINS, **values}, MODEL))
        return self

    def creeps(self):
        return float(np.abs(self.plant.v).max()) < 0.15

    def rests(self):
        return float(np.abs(self.plant.v).max()) < 0.02
