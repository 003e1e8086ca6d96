"""Functions for many states on a CUDA device: time per state, beside those of copying as many bytes and of a core."""
from __future__ import annotations

import statistics
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import rbd_ros as rbd
from rbd_ros.core.specialize.cuda_batch import DTYPES

from .timing import interleaved, table

FUNCTIONS = {"inverse_dynamics": 3, "forward_dynamics": 3, "mass_matrix": 1, "forward_kinematics": 1,
             "inverse_dynamics_derivatives": 3, "forward_dynamics_derivatives": 3}
STATES, ON_PROCESSOR = 1_000_000, 10_000


def run(quick: bool = False) -> dict[str, Any]:
    """Print and return nanoseconds per state of the sample iiwa, for arrays (n, N) and (N, n)."""
    model, found, rows = rbd.sample("iiwa"), {}, []
    try:
        rbd.cuda_batch(model, "gravity_effort")
    except rbd.RbdError as error:
        print(f"cuda: nothing is measured. {error}")
        return {}
    states, fast, rng = STATES // 10 if quick else STATES, rbd.specialize(model), np.random.default_rng(0)
    for name, count in FUNCTIONS.items():
        x = rng.normal(size=(count, ON_PROCESSOR, 7))
        own = interleaved({"own": partial(getattr(rbd, name), fast, *x)}, 9)["own"] / ON_PROCESSOR * 1e9
        for precision in ("double", "float"):
            across, copying, size = _one(model, name, count, precision, -1, states)
            along = _one(model, name, count, precision, 0, states)[0]
            found[f"{name} {precision}"] = across
            rows.append([name, precision, str(size), *(f"{x:.3g}" for x in (across, along, copying, own))])
    table(f"iiwa, {states:,} states: ns per state", ["function", "precision", "bytes", "(n, N)", "(N, n)", "copying",
                                                     "own code, one core"], rows)
    return found


def _one(model: rbd.RobotModel, name: str, count: int, precision: str, axis: int, states: int
         ) -> tuple[float, float, int]:
    """Nanoseconds per state, those of copying as many bytes, and bytes per state."""
    import cupy

    function = rbd.cuda_batch(model, name, precision=precision, axis=axis)
    shape = (states, model.nv) if axis == 0 else (model.nv, states)
    x = [cupy.asarray(np.random.default_rng(k).normal(size=shape).astype(DTYPES[precision])) for k in range(count)]
    result = function(*x)
    size = sum(each.nbytes for each in (*x, *(result if isinstance(result, tuple) else (result,))))
    block = cupy.zeros(size // 2, dtype="uint8")    # is read and written
    return (_elapsed(lambda: function(*x)) / states, _elapsed(block.copy) / states, size // states)


def _elapsed(call: Callable[[], object], rounds: int = 20) -> float:
    """Median nanoseconds on the device."""
    import cupy

    samples = []
    for _ in range(rounds):
        begin, end = cupy.cuda.Event(), cupy.cuda.Event()
        begin.record()
        call()
        end.record()
        end.synchronize()
        samples.append(cupy.cuda.get_elapsed_time(begin, end) * 1e6)
    return statistics.median(samples)
