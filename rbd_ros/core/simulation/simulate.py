"""`simulate`: one robot from many initial states."""
from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..errors import RbdError
from ..model.inertia import Array
from ..model.robot_model import RobotModel
from ..model.scalars import step_count, whole_number
from ..model.state import real, states
from .simulator import Simulator

SHARE = 16    # states of one task of a thread


class Motions(NamedTuple):
    """Of N simulations: `time` (k,) s, `q` (N, k, nq), `v` (N, k, nv), from the initial state on; of one (k, …)."""

    time: Array
    q: Array
    v: Array


def simulate(model: RobotModel, q: ArrayLike, v: ArrayLike | None = None, efforts: ArrayLike | None = None,
             step: float = 1e-3, n: int = 1, *, stride: int | None = None, external_wrenches: Any = None,
             threads: int = 1, **simulator: Any) -> Motions:
    """Simulate n steps of `step` (s) from each of N initial states, as `Simulator` does one by one.

    q (N, nq), v (N, nv) or None: at rest; or one state, (nq,) and (nv,). efforts: (nv,), (n, nv) or (N, n, nv), N m or
    N; None: 0. stride: steps between the states that are returned, a divisor of n; None: the initial and the last state
    only. external_wrenches: constant, as in `Simulator.step`. threads: that many at once; results are the same bits.
    simulator: further arguments of `Simulator`, such as integrator, limits, friction or contacts.

    Fastest for joints with damping, dry friction and wrenches (docs/simulation.md). Raises `RbdError` for wrong input,
    and with the number of the state for what `Simulator` raises.

        >>> arm = rbd.sample("two_link")
        >>> motions = rbd.simulate(arm, [[0.3, 0.5], [0.1, 0.0]], n=100, stride=50)
        >>> motions.time
        array([0.  , 0.05, 0.1 ])
        >>> motions.q.shape
        (2, 3, 2)
    """
    count = step_count(n)
    every = max(count, 1) if stride is None else whole_number(stride, "stride")
    if count % every:
        raise RbdError(f"stride: expected a divisor of {count}, got {every}")
    workers = whole_number(threads, "threads")
    start = states(model, positions={"q": q}, rates={} if v is None else {"v": v}).arrays
    alone = start[0].ndim == 1
    start = tuple(np.atleast_2d(x) for x in start)
    rows = len(start[0])
    given = _efforts(model, efforts, rows, count)
    time = Simulator(model, step=step, **simulator).step_size * np.arange(0.0, count + 1, every)    # checks arguments
    motions = Motions(time, np.empty((rows, len(time), model.nq)), np.empty((rows, len(time), model.nv)))
    share = rows if workers == 1 else SHARE

    def run(begin: int) -> None:
        robot = Simulator(model, step=step, **simulator)
        for row in range(begin, min(begin + share, rows)):
            effort = given[min(row, len(given) - 1)]
            try:
                robot.reset(*(x[row] for x in start))
                motions.q[row, 0], motions.v[row, 0] = robot.q, robot.v
                for k in range(1, len(time)):
                    robot.step(effort[every * (k - 1):every * k] if len(effort) > 1 else effort[0], every,
                               external_wrenches)
                    motions.q[row, k], motions.v[row, k] = robot.q, robot.v
            except RbdError as error:
                if alone:
                    raise
                raise RbdError(f"state {row}: {error}") from error

    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(run, range(0, rows, max(share, 1))))
    return Motions(time, motions.q[0], motions.v[0]) if alone else motions


def _efforts(model: RobotModel, efforts: ArrayLike | None, rows: int, count: int) -> Array:
    """(N or 1, n or 1, nv)."""
    shapes = ((model.nv,), (count, model.nv), (rows, count, model.nv))
    given = np.zeros(model.nv) if efforts is None else real(efforts, "efforts", str(shapes[2]))
    if given.shape not in shapes:
        raise RbdError(f"efforts: expected shape {', '.join(map(str, shapes[:2]))} or {shapes[2]}, got {given.shape}")
    if not np.isfinite(given).all():
        raise RbdError("efforts: expected finite numbers")
    return given.reshape((1,) * (3 - given.ndim) + given.shape)
