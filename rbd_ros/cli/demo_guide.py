"""`rbd demo guide`: one soft axis, a wall, a peg in a hole; then a hand teaches a way, which is played again.

The controllers of nodes `cartesian` and `feedforward`, and the simulator, in the library without ROS. The simulated arm
is 1 % heavier than its model and has a tenth more friction; its velocities are noisy.
"""
from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.model.surfaces.compliant import CompliantContact
from ..core.model.surfaces.surface import Plane, Sphere
from ..core.dynamics.kinematics import forward_kinematics
from ..core.dynamics.mass_matrix import mass_matrix
from ..core.lie import so3
from ..core.model.robot_model import RobotModel
from ..core.motion.inverse_kinematics import inverse_kinematics
from ..core.motion.optimal.limits import MotionLimits
from ..core.motion.smoothed_path import smoothed_path
from ..core.motion.time_optimal import TimedPath, time_optimal
from ..core.simulation.simulator import Simulator
from ..runtime.control.cartesian import CartesianController
from ..runtime.control.cartesian_settings import CartesianSettings
from ..runtime.control.feedforward import FeedforwardController, FeedforwardSettings
from ..runtime.inputs.references import Point
from ..runtime.planning.sampled import sampled
from . import demo_report as report
from .demo_motion import DAMPING
from .identification.demo_float import BANDWIDTH, arm

Array = NDArray[np.float64]
STEP = 1e-3                     # s
MASSES, FRICTION = 1.01, 1.1    # of the arm, relative to its model
NOISE = 2e-3                    # rad/s, of velocities
BODY = "link_7"
DOWN = np.diag([1.0, -1.0, -1.0])
HOME = np.array([0.5, 0.0, 0.45])    # m: the link above the table, its axis down
STIFF, SOFT = 2000.0, 150.0     # N/m
PUSH = 20.0                     # N
WALL = 0.08                     # m below the link
PEG = 0.12                      # m, from the link's origin to the peg's end
RADIUS, PLAY, DEPTH = 0.003, 2e-4, 0.03    # m, of the peg; half of what the hole is wider; its depth
CHAMFERS = ((0.006, 0.25 * np.pi), (0.002, 0.375 * np.pi))    # m, width, and rad, slope: from above
FUNNEL = sum(width * np.tan(slope) for width, slope in CHAMFERS)
ASIDE = np.array([3e-3, -2e-3, 0.0])       # m, by which the hole is not where it is thought to be
HAND = (400.0, 25.0)            # N/m, N: a hand that pulls along its way
WAY = 6.0                       # s of it
EVERY = 10                      # states between samples of the plots


class Bench:
    """Node `cartesian`'s controller and the simulated arm at `HOME`, with recorded rows."""

    def __init__(self, model: RobotModel, q: Array, contacts: Any = (), **settings: Any) -> None:
        self.model, self._settings = model, {"state_rate": 1.0 / STEP, "target.farthest": 3.0, "ramp_in": 0.1,
                                             "friction.compensation": 0.75, **settings}
        self.controller = CartesianController(model, CartesianSettings.from_values(self._settings, model))
        self.controller.activate(0.0)
        self.plant = Simulator(truth(model), step=STEP, q=q, contacts=contacts)
        self.now, self._rng = 0.0, np.random.default_rng(0)
        self.rows: dict[str, list[Any]] = {"t": [], "q": [], "p": [], "force": []}
        self.run(0.3)

    def run(self, duration: float, force: Any = None) -> None:
        """Simulate; force: position of the link (3,) → N at its origin, axes of the world."""
        link = self.model.body_index(BODY)
        for _ in range(round(duration / STEP)):
            self.now += STEP
            q = np.array(self.plant.q)
            command = self.controller.on_state(self.now, round(1e9 * self.now), self.model.joint_names, q,
                                               self.plant.v + NOISE * self._rng.standard_normal(self.model.nv))
            T = forward_kinematics(self.model, q)[link]
            push = np.zeros(3) if force is None else force(T[:3, 3])
            wrench = {BODY: np.concatenate([np.zeros(3), T[:3, :3].T @ push])} if push.any() else None
            self.plant.step(command.effort, external_wrenches=wrench)    # type: ignore[union-attr]
            touch = np.sum([contact.force for contact in self.plant.contacts], axis=0) if self.plant.contacts else push
            for name, value in (("t", self.now), ("q", q), ("p", T[:3, 3]), ("force", touch)):
                self.rows[name].append(value)

    def go(self, position: Array) -> None:
        self.controller.on_goal(self.now, "", tuple(position), tuple(so3.to_quaternion(DOWN)))

    def taken(self) -> dict[str, Array]:
        """The recorded rows, which are then cleared."""
        taken = {name: np.array(values) for name, values in self.rows.items()}
        for values in self.rows.values():
            values.clear()
        return taken


def truth(model: RobotModel) -> RobotModel:
    return model.with_scaled_masses(MASSES).with_(friction=FRICTION * model.friction, damping=FRICTION * model.damping)


def run(namespace: argparse.Namespace) -> int:
    """One soft axis, a wall, a peg, a hand; table, files, picture."""
    begin = time.monotonic()
    report.prepare(namespace.output)
    titles = ("one soft axis", "a wall", "a peg in a hole", "guided by hand", "played")
    model = arm()
    q = inverse_kinematics(model, BODY, np.block([[DOWN, HOME[:, None]], [np.zeros((1, 3)), np.ones((1, 1))]]),
                           np.array([0.0, 0.5, 0.0, -1.3, 0.0, 1.2, 0.0])).q
    print(f"{model.name}: {100 * (MASSES - 1):.0f} % heavier than its model, {100 * (FRICTION - 1):.0f} % more "
          "friction.\n", flush=True)

    progress = report.Progress(titles[0], titles)
    moved = soft_axis(model, q)
    progress.done(f"{PUSH:g} N move it by {1e3 * moved[0]:.0f} mm along x, {1e3 * moved[1]:.0f} along y "
                  f"({STIFF:g} N/m), {1e3 * moved[2]:.0f} along z ({SOFT:g} N/m)")

    progress = report.Progress(titles[1], titles)
    wall, pressed, deep = a_wall(model, q)
    progress.done(f"goal 7 cm behind it: rests {1e3 * deep:.1f} mm behind its surface, pressed by {pressed:.0f} N of "
                  "its springs")

    progress = report.Progress(titles[2], titles)
    pegs = {kind: a_peg(model, q, sideways) for kind, sideways in (("stiff", 8000.0), ("soft", 400.0))}
    progress.done("; ".join(f"{kind}: {1e3 * inside:.0f} mm deep, {most:.0f} N at most"
                            for kind, (_, inside, most) in pegs.items()))

    progress = report.Progress(titles[3], titles)
    guided, taught, hand = by_hand(model, q)
    progress.done(f"{WAY:g} s along a figure of 8, {hand:.0f} N in the mean; {len(taught)} positions taught")

    progress = report.Progress(titles[4], titles)
    motion = time_optimal(model, smoothed_path(taught, 5e-3), limits=MotionLimits(
        velocity=0.5 * model.velocity_limit, acceleration=2.5, effort=0.8 * model.effort_limit))
    played = play(model, motion)
    off = distance(model, played["q"], taught)
    progress.done(f"in {motion.duration:.1f} s, {1e3 * off:.1f} mm from the taught way at most")

    good = (moved[2] > 5.0 * moved[:2].max() and deep < 0.01 and pegs["soft"][1] > 0.9 * DEPTH
            and pegs["soft"][2] < pegs["stiff"][2] and motion.good and off < 0.02)
    report.finish(namespace, begin, {
        "robot": model.name, "moved_by_20_n_mm": (1e3 * moved).tolist(), "behind_the_wall_mm": 1e3 * deep,
        "pressed_n": pressed, **{f"peg_{kind}": {"depth_mm": 1e3 * inside, "largest_n": most}
                                 for kind, (_, inside, most) in pegs.items()},
        "hand_n": hand, "taught": len(taught), "played_s": motion.duration, "played_off_mm": 1e3 * off},
        picture=("guide.png", lambda path: _draw(path, model, wall, pegs, guided, played)))
    return 0 if good else 1


def soft_axis(model: RobotModel, q: Array) -> Array:
    """Distances (3,) by which `PUSH` moves the link along each axis, m."""
    bench, moved = Bench(model, q, **{"stiffness.translation": [STIFF, STIFF, SOFT], "largest.force": 100.0}), []
    for axis in np.eye(3):
        before = bench.rows["p"][-1]
        bench.run(1.2, lambda p, push=PUSH * axis: push)
        moved.append(abs(float((bench.rows["p"][-1] - before) @ axis)))
        bench.run(1.2)
    return np.array(moved)


def a_wall(model: RobotModel, q: Array) -> tuple[dict[str, Array], float, float]:
    """The way, the final force of the springs (N), and how far (m) the link is behind the wall."""
    height = HOME[2] - WALL
    bench = Bench(model, q, **{"stiffness.translation": [500.0] * 3, "walls.stiffness": 5000.0, "walls.file":
                               f"walls: [plane: {{point: [0, 0, {height}], normal: [0, 0, 1]}}]"})
    bench.go(HOME - [0.0, 0.0, 0.15])
    bench.run(3.0)
    rows = bench.taken()
    deep = float(height - rows["p"][-1, 2])
    goal = HOME[2] - 0.15
    return rows, min(500.0 * float(rows["p"][-1, 2] - goal), 50.0), deep


def a_peg(model: RobotModel, q: Array, sideways: float) -> tuple[dict[str, Array], float, float]:
    """The way, the depth reached (m), and the largest force on the peg (N), with this stiffness sideways, N/m."""
    top = HOME[2] - PEG - 0.02 - FUNNEL
    bench = Bench(model, q, hole(model, HOME + ASIDE - [0.0, 0.0, PEG + 0.02]), **{
        "stiffness.translation": [sideways, sideways, 1000.0], "stiffness.rotation": [30.0] * 3,
        "largest.force": 60.0, "target.speed": 0.03})
    bench.taken()
    bench.go(HOME - [0.0, 0.0, 0.03 + FUNNEL + DEPTH])    # a centimetre below its bottom
    bench.run(4.0)
    rows = bench.taken()
    sides = np.linalg.norm(rows["force"][:, :2], axis=1)
    return rows, float(top - (rows["p"][-1, 2] - PEG)), float(sides.max())


def hole(model: RobotModel, center: Array) -> list[CompliantContact]:
    """A square hole with chamfers in a block, its opening's center here, and the peg: spheres at its end and above."""
    world, half = model.body_names[0], RADIUS + PLAY
    out, deep = half + sum(width for width, _ in CHAMFERS), 0.0
    profile = [(0.0, 0.1, out + 0.05, 0.0)]    # slope, width, place outwards and down of the faces of one side
    for width, slope in CHAMFERS:
        height = width * np.tan(slope)
        profile.append((slope, float(np.hypot(width, height)), out - 0.5 * width, deep + 0.5 * height))
        out, deep = out - width, deep + height
    profile.append((0.5 * np.pi, DEPTH, half, deep + 0.5 * DEPTH))
    faces = [(np.eye(3), np.array([0.0, 0.0, -deep - DEPTH]), (2.0 * half, 2.0 * half))]
    for side in range(4):
        R = so3.exp(np.array([0.0, 0.0, 0.5 * np.pi * side]))
        faces += [(R @ so3.exp(np.array([0.0, -slope, 0.0])), R @ [outwards, 0.0, -down],
                   (width, 0.2 if slope == 0.0 else 2.0 * (outwards + width)))
                  for slope, width, outwards, down in profile]
    contacts = []
    for k, (axes, place, size) in enumerate(faces):
        frame = np.eye(4)
        frame[:3, :3], frame[:3, 3] = axes, center + place
        for end in (PEG - RADIUS, PEG - 0.02):
            peg = np.eye(4)
            peg[2, 3] = end
            contacts.append(CompliantContact(Plane(world, frame, size), Sphere(BODY, RADIUS, peg), stiffness=5e5,
                                             dissipation=2.0, friction=0.2, name=f"face_{k}_{end:.3f}"))
    return contacts


def figure(t: float) -> Array:
    """Where the hand leads the link, relative to `HOME`."""
    x = 2.0 * np.pi * min(max(t / WAY, 0.0), 1.0)
    ease = x - np.sin(x)
    return np.array([0.1 * np.sin(2.0 * ease), 0.2 * np.sin(ease), -0.05 * (1.0 - np.cos(ease))])


def by_hand(model: RobotModel, q: Array) -> tuple[dict[str, Array], Array, float]:
    """The way, the taught positions, and the mean force of the hand (N)."""
    bench = Bench(model, q, **{"stiffness.rotation": [60.0] * 3, "guide.free": ["tx", "ty", "tz"]})
    bench.controller.guide(bench.now, True)
    bench.run(0.5)
    bench.controller.teach()
    bench.taken()
    begin, here = bench.now, forward_kinematics(model, bench.plant.q)[model.body_index(BODY), :3, 3]

    def hand(p: Array) -> Array:
        pull = HAND[0] * (here + figure(bench.now - begin) - p)
        return pull * min(1.0, HAND[1] / max(float(np.linalg.norm(pull)), 1e-9))

    bench.run(WAY + 0.5, hand)
    taught = bench.controller.take_taught()
    assert taught is not None
    rows = bench.taken()
    return rows, taught.positions, float(np.linalg.norm(rows["force"], axis=1).mean())


def play(model: RobotModel, motion: TimedPath) -> dict[str, Array]:
    """The way of the arm under node `feedforward`."""
    points = sampled(motion, 0.02)
    inertia = np.diag(mass_matrix(model, points.q[0]))
    controller = FeedforwardController(model, FeedforwardSettings.from_values({
        "gains.kp": (inertia * BANDWIDTH**2).tolist(), "gains.kd": (2.0 * DAMPING * inertia * BANDWIDTH).tolist(),
        "state_rate": 1.0 / STEP, "ramp_in": 0.1}, model))
    controller.activate(0.0)
    plant, now = Simulator(truth(model), step=STEP, q=points.q[0]), 0.0
    rows: dict[str, list[Any]] = {"t": [], "q": [], "p": []}
    link, rng = model.body_index(BODY), np.random.default_rng(1)
    for k in range(round((motion.duration + 1.0) / STEP)):
        now += STEP
        if k == 200:
            controller.on_trajectory(now, 0, model.joint_names, [
                Point(float(t), *row) for t, *row in zip(points.time, points.q, points.v, points.a, strict=True)])
        q = np.array(plant.q)
        command = controller.on_state(now, round(1e9 * now), model.joint_names, q,
                                      plant.v + NOISE * rng.standard_normal(model.nv))
        plant.step(command.effort)    # type: ignore[union-attr]
        for name, value in (("t", now), ("q", q), ("p", forward_kinematics(model, q)[link, :3, 3])):
            rows[name].append(value)
    return {name: np.array(values) for name, values in rows.items()}


def distance(model: RobotModel, q: Array, taught: Array) -> float:
    """Largest distance (m) of the link from the taught way, at positions q (N, nq)."""
    link = model.body_index(BODY)
    way = np.array([forward_kinematics(model, each)[link, :3, 3] for each in taught])
    return max(float(np.linalg.norm(way - forward_kinematics(model, each)[link, :3, 3], axis=1).min())
               for each in q[::20])


def _draw(path: Path, model: RobotModel, wall: dict[str, Array], pegs: Any, guided: dict[str, Array],
          played: dict[str, Array]) -> None:
    """The link at the wall; the peg's forces and depth; the taught and the played way."""
    black, blue, orange = "#333333", report.COLORS[1], report.COLORS[0]

    def content(figure: Any) -> None:
        at_wall, sides, depth, way = figure.subplots(2, 2).ravel()
        at_wall.plot(wall["t"], 1e3 * (wall["p"][:, 2] - HOME[2]), color=blue, label="link")
        at_wall.axhline(-1e3 * WALL, color=black, linewidth=1.0, label="wall")
        at_wall.axhline(-150.0, color=orange, linestyle="--", linewidth=1.0, label="goal")
        at_wall.set(xlabel="time (s)", ylabel="height (mm)", title="a virtual wall before the goal")
        for (kind, (rows, _, most)), color in zip(pegs.items(), (orange, blue), strict=True):
            t = rows["t"] - rows["t"][0]
            sides.plot(t[::EVERY], np.linalg.norm(rows["force"][::EVERY, :2], axis=1), color=color,
                       label=f"{kind} sideways: {most:.0f} N at most")
            depth.plot(t[::EVERY], 1e3 * (HOME[2] - 0.02 - FUNNEL - rows["p"][::EVERY, 2]), color=color, label=kind)
        depth.axhline(1e3 * DEPTH, color=black, linewidth=1.0, label="bottom of the hole")
        sides.set(xlabel="time (s)", ylabel="force sideways (N)",
                  title=f"a peg, {1e3 * np.linalg.norm(ASIDE):.1f} mm beside its hole")
        depth.set(xlabel="time (s)", ylabel="depth (mm)", title="the peg in the hole")
        way.plot(1e3 * guided["p"][:, 1], 1e3 * guided["p"][:, 0], color=black, linewidth=3.0, alpha=0.35,
                 label="taught by hand")
        way.plot(1e3 * played["p"][:, 1], 1e3 * played["p"][:, 0], color=blue, label="played, as fast as it may")
        way.set(xlabel="y (mm)", ylabel="x (mm)", title="teach and play", aspect="equal", ylim=(400.0, 700.0))
        for axes in (at_wall, sides, depth, way):
            axes.grid(alpha=0.25)
            axes.legend(fontsize=9)
        figure.suptitle(f"{model.name} under Cartesian impedance control")

    report.draw(path, (11.0, 8.5), content)
