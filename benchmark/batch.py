"""`rbd.batch` with two workers beside this process alone: simulations of 1 s, the same bits."""
from __future__ import annotations

import time
from functools import partial
from typing import Any

import numpy as np

import rbd_ros as rbd


def simulated(model: rbd.RobotModel, _: int, random: np.random.Generator) -> bytes:
    """The state after 1 s at 1 kHz, from a random start, held by gravity's torque at the start."""
    start = model.random_configuration(random)
    return rbd.simulate(model, start, efforts=rbd.gravity_effort(model, start), n=1000, limits=False).q[-1].tobytes()


def run(quick: bool = False) -> dict[str, Any]:
    """Times of one and two workers, in turns."""
    model = rbd.sample("five_bar") if quick else rbd.sample("iiwa")
    model = model.with_(damping=0.5)
    cases, rounds = (100, 1) if quick else (2500, 4)
    work = partial(simulated, model)
    work(0, np.random.default_rng(0))    # kernels
    spent: dict[str, float] = {"one": 0.0, "two": 0.0}
    for i in range(rounds):
        found = {}
        for name, executor in (("one", 1), ("two", 2)):
            begin = time.perf_counter()
            found[name] = rbd.batch(work, range(cases), executor, seed=i)
            spent[name] += time.perf_counter() - begin
        if found["one"] != found["two"]:
            raise RuntimeError("results of one and two workers differ")
    ratio = spent["one"] / spent["two"]
    print(f"{rounds * cases} simulations of 1 s: one worker {spent['one']:.1f} s, two {spent['two']:.1f} s: "
          f"{ratio:.2f} times as fast, the same bits")
    return {"cases": rounds * cases, **spent, "ratio": ratio}
