"""Simulation: time of a step, MuJoCo as peer, in turns in one run; both take many steps in one call."""
from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import mujoco
import numpy as np

import rbd_ros as rbd
from rbd_ros.runtime.cosimulation.mujoco_model import mujoco_model

from .timing import interleaved, table

STEPS = 1000
STEP = 1e-3    # s
PEERS = {"semi_implicit": "Euler", "rk4": "RK4", "variational": "Euler"}
START = np.array([0.1, 0.3, 0.1, -1.0, 0.1, 0.5, 0.1])


def run(quick: bool = False) -> dict[str, Any]:
    """Steps of the sample iiwa, free and with damping, friction and stops, and many of its simulations."""
    found: dict[str, Any] = {}
    arm = rbd.sample("iiwa")
    arm = arm.with_(damping=0.0 * arm.damping, friction=0.0 * arm.friction)
    rubs = arm.with_(damping=0.5 + 0.0 * arm.damping, friction=0.01 * arm.effort_limit)
    rows = []
    for kind, model, limits in (("free", arm, False), ("friction and stops", rubs, True)):
        functions = {name: _ours(model, name, limits) for name in PEERS}
        functions |= {f"MuJoCo {name}": _mujoco(model, name, limits) for name in ("Euler", "RK4")}
        seconds = interleaved(functions, 9 if quick else 49)
        for name, peer in PEERS.items():
            ours, other = (1e6 * seconds[each] / STEPS for each in (name, f"MuJoCo {peer}"))
            found[f"{kind}, {name}"] = ours / other
            rows.append([kind, name, f"{ours:.2f}", f"{peer} {other:.2f}", f"{ours / other:.2f}"])
    table("Simulation: sample iiwa, 1 ms, µs per step", ["joints", "integrator", "ours", "MuJoCo", "ratio"], rows)
    count = 500 if quick else 10_000
    q = START + 0.1 * np.random.default_rng(1).standard_normal((count, arm.nq))
    spent = {}
    for threads in (1, 2):
        begin = time.perf_counter()
        rbd.simulate(arm, q, step=STEP, n=1000, integrator="semi_implicit", limits=False, threads=threads)
        spent[threads] = found[f"{count} simulations of 1 s, threads: {threads}"] = time.perf_counter() - begin
    table(f"{count} simulations of 1 s, semi_implicit, free: s", ["threads", "seconds", "times as fast as one"],
          [[str(threads), f"{each:.2f}", f"{spent[1] / each:.2f}"] for threads, each in spent.items()])
    return found


def _ours(model: rbd.RobotModel, integrator: str, limits: bool) -> Callable[[], object]:
    simulator = rbd.Simulator(model, step=STEP, integrator=integrator, limits=limits)
    effort = rbd.gravity_effort(model, START) + 1.0

    def steps() -> None:
        simulator.reset(START, np.zeros(model.nv))
        simulator.step(effort, STEPS)

    return steps


def _mujoco(model: rbd.RobotModel, integrator: str, limits: bool) -> Callable[[], object]:
    peer = mujoco_model(model, str(rbd.sample_path("iiwa")), STEP)
    peer.opt.integrator = {"Euler": mujoco.mjtIntegrator.mjINT_EULER, "RK4": mujoco.mjtIntegrator.mjINT_RK4}[integrator]
    if not limits:
        peer.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_LIMIT
    data = mujoco.MjData(peer)
    effort = rbd.gravity_effort(model, START) + 1.0

    def steps() -> None:
        data.qpos[:], data.qvel[:], data.qacc_warmstart[:] = START, 0.0, 0.0
        data.qfrc_applied[:] = effort
        mujoco.mj_step(peer, data, STEPS)

    return steps
