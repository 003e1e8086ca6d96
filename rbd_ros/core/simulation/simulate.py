"""`simulate`: one robot from many initial states."""
from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import takewhile
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..dynamics.forward import forward_dynamics
from ..errors import RbdError
from ..model.inertia import Array
from ..model.robot_model import RobotModel
from ..model.scalars import step_count, whole_number
from ..model.state import node_wrenches, states
from ..specialize.machine import Code
from ..specialize.many_states import RANGES, scratch_size
from ..specialize.specialized import SpecializedModel
from .joint_data import BRAKES, BREAKAWAY, COULOMB, LOAD
from .many_motions import LANES, RK4, SEMI_IMPLICIT, VARIATIONAL, motions, motions_in_lanes
from .pd_law import Commands, PDLaw, command_entry, commands
from .simulator import Simulator
from .step_calls import ManySteps
from .variational import NONE, Variational

AT_ONCE = 200_000    # steps of one call, some 0.2 s, after which Python can be interrupted


class Motions(NamedTuple):
    """Of N simulations: `time` (k,) s, `q` (N, k, nq), `v` (N, k, nv), from the initial state on; of one (k, …)."""

    time: Array
    q: Array
    v: Array


def simulate(model: RobotModel, q: ArrayLike, v: ArrayLike | None = None, efforts: ArrayLike | PDLaw | None = None,
             step: float = 1e-3, n: int = 1, *, stride: int | None = None, external_wrenches: Any = None,
             threads: int = 1, **simulator: Any) -> Motions:
    """Simulate n steps of `step` (s) from each of N initial states, as `Simulator` does one by one.

    q (N, nq), v (N, nv) or None: at rest; or one state, (nq,) and (nv,). efforts: (nv,), (N, nv), (n, nv) or
    (N, n, nv), N m or N, where 1 may stand for N or n; a `PDLaw`; None: 0. stride: steps between the states that are
    returned, a divisor of n; None: the initial and the last state only. external_wrenches: constant, as in
    `Simulator.step`. threads: that many at once; results are the same bits. simulator: further arguments of
    `Simulator`, such as integrator, limits, friction or contacts.

    Fastest for joints with damping, dry friction and wrenches, and many times as fast for a specialised model with
    `semi_implicit` without dry friction and wrenches (docs/simulation.md), whose states differ by rounding. Raises
    `RbdError` for wrong input, and with the number of the state for what `Simulator` raises.

        >>> arm = rbd.sample("two_link")
        >>> motions = rbd.simulate(arm, [[0.3, 0.5], [0.1, 0.0]], n=100, stride=50)
        >>> motions.time
        array([0.  , 0.05, 0.1 ])
        >>> motions.q.shape
        (2, 3, 2)
    """
    count = step_count(n)
    every = count if stride is None else whole_number(stride, "stride")
    if count % every:
        raise RbdError(f"stride: expected a divisor of {count}, got {every}")
    workers = whole_number(threads, "threads")
    start = states(model, positions={"q": q}, rates={} if v is None else {"v": v}).arrays
    alone = start[0].ndim == 1
    start = tuple(np.atleast_2d(x) for x in start)
    rows = len(start[0])
    given = commands(model, efforts, rows, count)
    first = dict(zip("qv", (x[0] for x in start), strict=False)) if rows else {}
    robot = Simulator(model, step=step, **first, **simulator)
    time = robot.step_size * np.arange(0.0, count + 1, every)
    result = Motions(time, np.empty((rows, len(time), model.nq)), np.zeros((rows, len(time), model.nv)))
    for x, x0 in zip(result[1:], start, strict=False):    # without velocities at rest
        x[:, 0] = x0
    wrench = node_wrenches(model, external_wrenches, None)
    made = np.zeros(rows, np.bool_)
    if rows and isinstance(robot._many, ManySteps):
        made |= _can_start(robot, result.q[:, 0], result.v[:, 0])
        _compiled(robot._many, result, given, wrench, every, made, workers)
    failed: dict[int, RbdError] = {}

    def one_by_one(left: Iterator[int]) -> None:
        robot = Simulator(model, step=step, **first, **simulator)
        for row in left:
            if failed:    # rows before are done, or at work
                break
            try:
                robot.reset(*(x[row] for x in start))
                _steps(robot, given, row, external_wrenches, result.q[row], result.v[row], every)
            except RbdError as error:
                failed[row] = error

    if not made.all():
        _share(np.flatnonzero(~made).tolist(), one_by_one, workers)
    if failed:
        row, error = min(failed.items())
        raise error if alone else RbdError(f"state {row}: {error}") from error
    return Motions(time, result.q[0], result.v[0]) if alone else result


def _can_start(robot: Simulator, q: Array, v: Array) -> NDArray[np.bool_]:
    """Of states (N, …), those that the simulator takes; none where it may be that it takes none."""
    bounds = robot._bounds
    x = q[:, bounds.plain_q]
    inside = np.array(((bounds.lower <= x) & (x <= bounds.upper)).all(axis=1))
    try:
        if robot.integrator == "rk4":
            inside &= (robot._damping_rates(q) <= 1.0).all(axis=1)
        if robot.integrator != "variational":
            forward_dynamics(robot.model, q[0], v[0], np.zeros(v.shape[1]))
    except RbdError:    # singular
        inside[:] = False
    return inside


def _compiled(steps: ManySteps, result: Motions, given: Commands, wrench: Array, every: int, made: NDArray[np.bool_],
              threads: int) -> None:
    """Fill the motions of the states in `made` (N,), which becomes False for those with a step that Python has to make.
    """
    _, q, v = result
    count, method, code = len(q), steps.method, _lanes(steps, wrench)
    last = np.array(np.broadcast_to(given.last, (count, *given.last.shape[1:])), order="C")
    law, rest = (*given[:4], last), (steps.joints, steps.h, every, made)
    size = max(1, min(AT_ONCE // (every * (q.shape[1] - 1)), -(-count // (RANGES * threads))))
    size = size if code is None else -(-size // LANES) * LANES
    block, damping, frame, gravity, kind = steps.stepped._block, NONE, wrench, wrench, VARIATIONAL
    if isinstance(method, Variational):
        block, damping, frame, gravity = method.block, method.damping, method.begin()[2], method.gravity
    else:
        kind = RK4 if method == "rk4" else SEMI_IMPLICIT

    numbers, room = None, 0
    if code is not None:
        numbers = code.numbers(code.rows_of, v.shape[2])
        room = scratch_size(code, q.shape[2] + 2 * v.shape[2], v.shape[2])

    def run(begins: Iterator[int]) -> None:
        scratch = np.empty(room)
        for begin in begins:
            end = min(begin + size, count)
            if numbers is not None:
                motions_in_lanes.call(numbers, block, q, v, *law, *rest, scratch, begin, end)
            else:
                motions.call(kind, block, q, v, *law, wrench, steps.code, damping, frame, gravity, *rest, begin, end)

    (motions if code is None else motions_in_lanes).compile()    # by one thread
    _share(range(0, count, size), run, threads)


def _lanes(steps: ManySteps, wrench: Array) -> Code | None:
    """Specialised code for the forward dynamics of many states, if that is all that a step of this robot takes."""
    if (steps.method != "semi_implicit" or not isinstance(steps.stepped, SpecializedModel) or wrench.size
            or steps.joints[[COULOMB, BREAKAWAY, BRAKES, LOAD]].any()):
        return None
    return steps.stepped._specialized.code("forward_dynamics")


def _steps(robot: Simulator, given: Commands, row: int, wrenches: Any, q: Array, v: Array, every: int) -> None:
    """The motion of one state by `Simulator.step`, into q (k, nq), v (k, nv)."""
    efforts, reference, last = (x[min(row, len(x) - 1)] for x in (given.efforts, given.reference, given.last))
    effort = np.empty(robot.model.nv)
    at_once = 1 if len(given.gains) else every
    q[0], v[0] = robot.q, robot.v
    for s in range(0, every * (len(q) - 1), at_once):
        if len(given.gains):
            command_entry(robot.model._block, np.array(robot.q), np.array(robot.v), efforts, given.gains, reference,
                          given.period, last, s, effort)
            robot.step(effort, 1, wrenches)
        else:
            robot.step(efforts[s:s + every, 0] if len(efforts) > 1 else efforts[0, 0], every, wrenches)
        if (s + at_once) % every == 0:
            q[(s + at_once) // every], v[(s + at_once) // every] = robot.q, robot.v


def _share(items: Iterable[int], run: Callable[[Iterator[int]], None], threads: int) -> None:
    """Call `run` in so many threads, the calling one among them; all take items from one iterator."""
    ended: list[bool] = []    # after an error or an interrupt in one nobody goes on
    left = takewhile(lambda _: not ended, items)

    def until_end() -> None:
        try:
            run(left)
        finally:
            ended.append(True)

    with ThreadPoolExecutor(max(threads - 1, 1)) as pool:
        others = [pool.submit(until_end) for _ in range(threads - 1)]
        until_end()
        for other in others:
            other.result()
