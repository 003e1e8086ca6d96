"""Cartesian control beside the law of crisp_controllers, on the same simulated arm: rest under friction, and impact.

The iiwa at 1 kHz, with masses up to 2 % off the model of both, with friction, and noise in the velocities. CRISP's law
is written here from its equations (utiasDSL/crisp_controllers, `cartesian_controller.cpp`, 2026), with its defaults: no
mass matrix in the damping, 2 √k; moving averages of states, target and torque, errors clipped, torque limited in rate;
gravity and Coriolis torque by the model. The damping of its null space is 2 √k, as its parameters say. Both have its
stiffness, 500 N/m and 30 N m/rad. Its target is a step, as it takes goals, or the smooth one of node `cartesian`.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import rbd_ros as rbd
from rbd_ros.core.lie import so3
from rbd_ros.core.motion.pose_filter import PoseFilter
from rbd_ros.runtime.control.cartesian import CartesianController
from rbd_ros.runtime.control.cartesian_settings import CartesianSettings

from .timing import table

MODEL = rbd.sample("iiwa")
TIP = MODEL.body_names[-1]
H = 1e-3                                             # s
K_P, K_R = 500.0, 30.0                               # N/m, N m/rad
COULOMB = [0.6, 0.6, 0.4, 0.4, 0.25, 0.2, 0.15]      # N m
VISCOUS = [0.4, 0.4, 0.25, 0.25, 0.15, 0.1, 0.08]    # N m s/rad
NOISE = 1e-3                                         # rad/s
START = np.array([0.2, 0.5, -0.3, -1.2, 0.2, 0.8, 0.1])
BEHIND, WALL, WALL_DAMPING = 0.05, 3e4, 60.0         # m, N/m, N s/m
Array = np.ndarray


class Crisp:
    """CRISP's law with its defaults. friction: whether it compensates that of the joints, known exactly."""

    def __init__(self, q: Array, friction: bool = False) -> None:
        self.q, self.v, self.rest, self.friction = q.copy(), np.zeros(7), q.copy(), friction
        self.tau = rbd.gravity_effort(MODEL, q)
        pose = rbd.forward_kinematics(MODEL, q)[-1]
        self.R, self.p = pose[:3, :3], pose[:3, 3]
        self.K = np.diag([K_R] * 3 + [K_P] * 3)
        self.D = 2.0 * np.sqrt(self.K)

    def effort(self, q: Array, v: Array, R: Array, p: Array) -> Array:
        self.q, self.v = 0.5 * (self.q + q), 0.5 * (self.v + v)
        self.p = 0.9 * p + 0.1 * self.p
        self.R = so3.exp(0.9 * so3.log(R @ self.R.T)) @ self.R
        pose = rbd.forward_kinematics(MODEL, self.q)[-1]
        error = np.clip(np.concatenate([so3.log(self.R @ pose[:3, :3].T), self.p - pose[:3, 3]]),
                        [-0.5] * 3 + [-0.1] * 3, [0.5] * 3 + [0.1] * 3)
        J = rbd.jacobian(MODEL, self.q, TIP, "aligned")
        secondary = 1.0 * (self.rest - self.q) - 2.0 * self.v
        tau = (J.T @ (self.K @ error - self.D @ (J @ self.v)) + rbd.bias_effort(MODEL, self.q, self.v)
               + np.clip(secondary - np.linalg.pinv(J) @ (J @ secondary), -5.0, 5.0))
        if self.friction:
            tau += np.array(COULOMB) * np.tanh(5.0 * self.v) + np.array(VISCOUS) * self.v
        self.tau = 0.5 * (self.tau + np.clip(tau, self.tau - 0.5, self.tau + 0.5))
        return self.tau


class Arm:
    """The plant under one law. crisp: that law instead of node `cartesian`'s; smooth: its target, else goals are steps;
    share: of the friction, that node `cartesian` compensates.
    """

    def __init__(self, seed: int, crisp: Callable[[Array], Crisp] | None = None, smooth: bool = True,
                 share: float = 0.0) -> None:
        self.rng, self.smooth = np.random.default_rng(seed), smooth
        masses = 1.0 + 0.02 * self.rng.uniform(-1.0, 1.0)
        self.plant = rbd.Simulator(MODEL.with_scaled_masses(masses).with_(friction=COULOMB, damping=VISCOUS), step=H,
                                   q=START)
        pose = self.pose
        self.target = PoseFilter(pose[:3, :3], pose[:3, 3], 10.0, 0.25, 1.0)    # as by default
        model = MODEL.with_(friction=COULOMB, damping=VISCOUS)
        self.made = CartesianController(model, CartesianSettings.from_values({
            "stiffness.translation": [K_P] * 3, "stiffness.rotation": [K_R] * 3, "ramp_in": 0.1,
            "friction.compensation": share}, model))
        self.made.activate(0.0)
        self.now, self.crisp, self.wall = 1.0, None if crisp is None else crisp(START), np.inf
        self.force, self.off = [], []
        self.run(0.5)

    @property
    def pose(self) -> Array:
        return rbd.forward_kinematics(MODEL, self.plant.q)[-1]

    def go(self, move: Array, turn: Array) -> None:
        """To a goal, relative to the last one."""
        goal = self.target.goal
        R, p = so3.exp(turn) @ goal[:9].reshape(3, 3), goal[9:] + move
        self.target.aim(R, p)
        assert self.crisp is not None or self.made.on_goal(self.now, "", p, so3.to_quaternion(R))

    def run(self, seconds: float) -> None:
        for _ in range(round(seconds / H)):
            self.now += H
            q, v = self.plant.q, self.plant.v + NOISE * self.rng.normal(size=7)
            target = self.target.advance(H)
            if self.crisp is None:
                tau = self.made.on_state(self.now, round(1e9 * self.now), MODEL.joint_names, q, v).effort
            else:
                to = target if self.smooth else self.target.goal
                tau = self.crisp.effort(q, v, to[:9].reshape(3, 3), to[9:12])
            pose, J = self.pose, rbd.jacobian(MODEL, self.plant.q, TIP, "aligned")
            deep = pose[1, 3] - self.wall
            pressed = max(WALL * deep + WALL_DAMPING * (J @ self.plant.v)[4], 0.0) if deep > 0.0 else 0.0
            self.plant.step(tau, external_wrenches={TIP: np.concatenate([np.zeros(3), -pressed * pose[1, :3]])})
            self.force.append(pressed)
            self.off.append(float(np.linalg.norm(target[9:12] - self.pose[:3, 3])))


OURS = "rbd_ros, friction compensated"
LAWS: dict[str, dict[str, Any]] = {
    "rbd_ros": {}, OURS: {"share": 0.75},
    "CRISP": {"crisp": Crisp}, "CRISP, goals as steps": {"crisp": Crisp, "smooth": False},
    "CRISP, friction compensated": {"crisp": lambda q: Crisp(q, True)}}


def rest(law: str, moves: int, seed: int) -> tuple[list[float], list[float], list[float]]:
    """Distances (mm), angles (mrad) to goals where the link rests, and RMS (mm) to the target in motion."""
    arm, rng, off, turned, moving = Arm(seed, **LAWS[law]), np.random.default_rng(100 + seed), [], [], []
    home = arm.target.goal[9:].copy()
    for _ in range(moves):
        arm.go(home + 0.12 * rng.uniform(-1.0, 1.0, 3) - arm.target.goal[9:], 0.2 * rng.normal(size=3))
        arm.off.clear()
        arm.run(4.0)
        goal, pose = arm.target.goal, arm.pose
        moving.append(1e3 * float(np.sqrt(np.mean(np.square(arm.off[:1000])))))
        off.append(1e3 * float(np.linalg.norm(goal[9:] - pose[:3, 3])))
        turned.append(1e3 * float(np.linalg.norm(so3.log(goal[:9].reshape(3, 3) @ pose[:3, :3].T))))
    return off, turned, moving


def impact(law: str, seed: int) -> tuple[float, float]:
    """Largest and final force (N) on a wall, 10 cm ahead, of a link whose goal is behind it."""
    arm = Arm(seed, **LAWS[law])
    arm.wall = arm.pose[1, 3] + 0.1
    arm.go(np.array([0.0, 0.1 + BEHIND, 0.0]), np.zeros(3))
    arm.force.clear()
    arm.run(4.0)
    return max(arm.force), float(np.mean(arm.force[-500:]))


def run(quick: bool = False) -> dict[str, Any]:
    """Print the table. Violations: node `cartesian` with friction compensation is farther from its target, or hits
    harder.
    """
    seeds, moves = (2, 4) if quick else (6, 10)
    found: dict[str, Any] = {}
    for law in LAWS:
        rests = [rest(law, moves, seed) for seed in range(seeds)]
        hits = [impact(law, seed) for seed in range(seeds)]
        off, turned, moving = (np.concatenate([each[k] for each in rests]) for k in range(3))
        found[law] = {"rest_mm": float(np.mean(off)), "rest_worst_mm": float(np.max(off)),
                      "rest_mrad": float(np.mean(turned)), "moving_mm": float(np.mean(moving)),
                      "peak_n": float(np.mean([hit[0] for hit in hits])),
                      "final_n": float(np.mean([hit[1] for hit in hits]))}
    header = ["law", "at rest, mm", "worst", "mrad", "in motion, mm", "peak, N", "final, N"]
    table("Cartesian control: rest under friction, and impact", header, [
        [law, *(f"{value:.2f}" for value in row.values())] for law, row in found.items()])
    theirs = [row for law, row in found.items() if law.startswith("CRISP")]
    violations = sum(found[OURS][key] > min(row[key] for row in theirs) for key in (
        "rest_mm", "rest_mrad", "moving_mm", "peak_n"))
    return {**found, "violations": int(violations)}
