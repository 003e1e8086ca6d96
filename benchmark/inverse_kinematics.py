"""Inverse kinematics of arms: 10,000 random reachable poses each, judged by Pinocchio's and MuJoCo's kinematics.

pink and mink, where installed, on the first of the same poses: differential inverse kinematics, iterated to the same
tolerance from the same first posture, then from random ones.
"""
from __future__ import annotations

import importlib
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import rbd_ros as rbd

from .timing import table

sys.path.append(str(Path(__file__).parents[1] / "test"))
ARMS = {"iiwa": ("", "link_7"), "panda": ("panda_description/panda", "panda_hand"),
        "ur5": ("ur_description/ur5_robot", "tool0"), "kinova": ("kinova_description/kinova", "j2s6s200_end_effector"),
        "xarm7": ("xarm_description/xarm7", "link7")}
COUNT, TOLERANCE, ROUNDING = 10_000, 1e-6, 1e-9    # m, rad
PEER_COUNT, PEER_STARTS, PEER_ITERATIONS = 200, 10, 100
SINGLE = 2_000    # calls of one pose that are timed


class Arm:
    """A model with those of Pinocchio and MuJoCo, and N poses of its tool."""

    def __init__(self, name: str, count: int) -> None:
        from support import mujoco_peer, pinocchio_peer
        from support.robots import load, urdf_paths

        path, self.body = ARMS[name]
        file = urdf_paths()[path] if path else rbd.sample_path(name)
        self.model = load(path, mimic="independent") if path else rbd.sample(name)
        self.pin = pinocchio_peer.Peer(self.model, pinocchio_peer.read(file))
        text = mujoco_peer.stripped(file).replace("balanceinertia=\"false\"", "balanceinertia=\"true\"")
        self.mujoco = mujoco_peer.Peer(self.model, text, False)
        rng = np.random.default_rng(1)
        q = np.array([self.model.random_configuration(rng) for _ in range(count)])
        self.poses = rbd.forward_kinematics(self.model, q)[:, self.model.body_index(self.body)]
        limited = self.model.position_lower != self.model.position_upper
        self.low = np.where(limited, self.model.position_lower, -np.inf)
        self.high = np.where(limited, self.model.position_upper, np.inf)

    def errors(self, q: np.ndarray, pose: np.ndarray) -> tuple[float, float]:
        """The larger distance (m) and angle (rad) from a pose by either library."""
        import mujoco

        self.mujoco.data.qpos[self.mujoco.q] = q
        mujoco.mj_kinematics(self.mujoco.mj, self.mujoco.data)
        body = self.mujoco.data.body(self.body)
        zero = np.zeros(self.model.nv)
        self.pin.update(q, zero, zero)
        other = self.pin.data.oMf[self.pin.frame(self.body)]
        found = [(body.xpos, body.xmat.reshape(3, 3)), (other.translation, other.rotation)]
        return (max(float(np.linalg.norm(p - pose[:3, 3])) for p, _ in found),
                max(float(np.linalg.norm(rbd.lie.so3.log(pose[:3, :3].T @ R))) for _, R in found))


def study(name: str, count: int) -> dict[str, Any]:
    """What is solved, what is beyond limits or called reached though it is not, and times (s)."""
    arm = Arm(name, count)
    rbd.inverse_kinematics(arm.model, arm.body, arm.poses[0])    # compiled
    begin = time.perf_counter()
    found = rbd.inverse_kinematics(arm.model, arm.body, arm.poses)
    batch = (time.perf_counter() - begin) / count
    times = []
    for pose in arm.poses[:SINGLE]:
        begin = time.perf_counter()
        rbd.inverse_kinematics(arm.model, arm.body, pose)
        times.append(time.perf_counter() - begin)
    reached = np.array([max(arm.errors(q, pose)) <= TOLERANCE + ROUNDING
                        for q, pose in zip(found.q, arm.poses, strict=True)])
    within = ((found.q >= arm.low) & (found.q <= arm.high)).all(axis=1)
    return {"solved": float(np.mean(reached & within & found.converged)), "beyond limits": int(np.sum(~within)),
            "wrongly reached": int(np.sum(found.converged & ~reached)), "batch": batch,
            "median": float(np.median(times)), "99 %": float(np.quantile(times, 0.99)),
            "mean": float(np.mean(times))}


def with_pink(arm: Arm, pose: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """From a posture to that after iterations of pink."""
    import pink
    import pinocchio as pin

    task = pink.tasks.FrameTask(arm.body, position_cost=1.0, orientation_cost=1.0)
    task.set_target(pin.SE3(pose))

    def solve(q: np.ndarray) -> np.ndarray:
        at = pink.Configuration(arm.pin.pin, arm.pin.data, arm.pin.q(q))
        for _ in range(PEER_ITERATIONS):
            if np.abs(task.compute_error(at)).max() <= 0.5 * TOLERANCE:
                break
            limits = [pink.limits.ConfigurationLimit(arm.pin.pin, config_limit_gain=1.0)]
            at.integrate_inplace(pink.solve_ik(at, [task], 1.0, solver="daqp", limits=limits, safety_break=False), 1.0)
        return np.concatenate([_position(at.q[theirs.idx_q:theirs.idx_q + theirs.nq]) for _, theirs in arm.pin.pairs])

    return solve


def _position(x: np.ndarray) -> np.ndarray:
    """An angle from Pinocchio's cosine and sine."""
    return np.array([np.arctan2(x[1], x[0])]) if len(x) == 2 else x


def with_mink(arm: Arm, pose: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """From a posture to that after iterations of mink."""
    import mink

    task = mink.FrameTask(arm.body, "body", position_cost=1.0, orientation_cost=1.0)
    task.set_target(mink.SE3.from_matrix(pose))
    limits = [mink.ConfigurationLimit(arm.mujoco.mj, gain=1.0)]

    def solve(q: np.ndarray) -> np.ndarray:
        x = np.empty(arm.mujoco.mj.nq)
        x[arm.mujoco.q] = q
        at = mink.Configuration(arm.mujoco.mj, x)
        for _ in range(PEER_ITERATIONS):
            if np.abs(task.compute_error(at)).max() <= 0.5 * TOLERANCE:
                break
            at.integrate_inplace(mink.solve_ik(at, [task], 1.0, solver="daqp", limits=limits, safety_break=False), 1.0)
        return np.array(at.q[arm.mujoco.q])

    return solve


def peer(name: str, solver: Callable[[Arm, np.ndarray], Callable[[np.ndarray], np.ndarray]], count: int
         ) -> dict[str, float]:
    """Shares solved from one and from `PEER_STARTS` starts, and the median time (s) of those solved."""
    arm, rng = Arm(name, count), np.random.default_rng(2)
    bounded = np.isfinite(arm.low) & np.isfinite(arm.high)
    middle = np.where(bounded, 0.5 * (np.where(bounded, arm.low, 0.0) + np.where(bounded, arm.high, 0.0)), 0.0)
    times, starts = [], []
    for pose in arm.poses:
        solve = solver(arm, pose)
        begin = time.perf_counter()
        for start in range(PEER_STARTS):
            try:
                q = solve(middle if start == 0 else arm.model.random_configuration(rng))
            except Exception:    # a quadratic programme without solution
                continue
            if (max(arm.errors(q, pose)) <= TOLERANCE and (q >= arm.low - ROUNDING).all()
                    and (q <= arm.high + ROUNDING).all()):
                times.append(time.perf_counter() - begin)
                starts.append(start)
                break
    return {"one start": starts.count(0) / count, "several starts": len(starts) / count,
            "median": float(np.median(times)) if times else np.nan}


def run(quick: bool = False) -> dict[str, Any]:
    """Print the tables; violations: less than 99.9 % solved, anything beyond limits, or called reached that is not."""
    count = 500 if quick else COUNT
    found: dict[str, Any] = {name: study(name, count) for name in ARMS}
    table(f"Inverse kinematics, {count} reachable poses each, to 1e-6 m and rad",
          ["arm", "solved", "beyond limits", "wrongly reached", "a call (ms): median", "mean", "99 %", "of a batch"],
          [[name, f"{100.0 * of['solved']:.2f} %", str(of["beyond limits"]), str(of["wrongly reached"]),
            *(f"{1e3 * of[key]:.3f}" for key in ("median", "mean", "99 %", "batch"))] for name, of in found.items()])
    rows = []
    for library, solver in (("pink", with_pink), ("mink", with_mink)):
        try:
            importlib.import_module(library)
        except ImportError:
            print(f"{library} is not installed")
            continue
        for name in ARMS:
            of = found[f"{library} {name}"] = peer(name, solver, PEER_COUNT // 5 if quick else PEER_COUNT)
            rows.append([f"{library} {name}", f"{100.0 * of['one start']:.1f} %",
                         f"{100.0 * of['several starts']:.1f} %", f"{1e3 * of['median']:.1f}"])
    if rows:
        table(f"Differential inverse kinematics, up to {PEER_ITERATIONS} iterations, the first of these poses",
              ["library, arm", "solved from the same start", f"from {PEER_STARTS} starts", "median (ms)"], rows)
    return found | {"violations": sum(
        (not quick and found[name]["solved"] < 0.999) + found[name]["beyond limits"] + found[name]["wrongly reached"]
        for name in ARMS)}
