"""Time-optimal s(t) along a path with continuous acceleration: limits of jerk, effort rate, motor velocity.

s is a quintic spline of time, with s = 0 at the start and 1 at the end: the problem of `optimize_motion` with one
coordinate, whose rows are those of the joints (`PathTask`), and with the duration as cost.
"""
from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...compiled.computing_time import computing_time
from ...dynamics.friction import Friction
from ...errors import RbdError
from ...model.robot_model import RobotModel
from ..optimal.certificate import Certificate, certify, samples
from ..optimal.first_guess import dense
from ..optimal.limits import CheckedLimits
from .path_task import Path, PathTask, at_rest
from ..optimal.springs import Springs
from ..optimal.refinement import refined
from ..optimization import LEFT, TOLERANCE
from ..optimal.task import ROUNDING
from ..splines import MOST_POINTS, SplineMotion, basis

Array = NDArray[np.float64]
EACH = 3             # knots per interval of the spline
FINER = 1.5          # factor of control points if limits are violated between knots
SLOWER = 1.25        # factor of the duration, until no limit is violated
SLOWEST = 60         # largest number of such steps
SHORTEST = 0.5       # lower bound, relative to the duration without these limits
LONGEST = 1e4        # s


class SmoothTiming(NamedTuple):
    """s(t), its certificate, whether the search converged, and the reason of its end."""

    way: SplineMotion
    certificate: Certificate
    converged: bool
    reason: str


def smooth_timing(model: RobotModel, path: Path, limits: CheckedLimits, friction: Friction, wrenches: Any,
                  springs: Springs | None, ends: list[float], fastest: float, control_points: int,
                  time_limit: float) -> SmoothTiming:
    """Find s(t) with speeds ds/dt `ends` (1/s) and s̈ = 0 at the ends. fastest: duration without these limits, s."""
    begin = computing_time()
    deadline = begin + (1.0 - LEFT) * time_limit
    resting = at_rest(path)
    position_only = tuple(still and speed == 0.0 for still, speed in zip(resting, ends, strict=True))
    rows = [np.array([[place], [speed], [0.0]]) for place, speed in zip((0.0, 1.0), ends, strict=True)]
    B = basis(5, control_points)
    task = PathTask(model, B, rows[0], rows[1], None, (SHORTEST * fastest, LONGEST),
                    {"duration": np.ones(model.nv)}, limits, np.zeros(0), np.zeros((0, 1)), wrenches, friction,
                    springs=springs, path=path, position_only=(position_only[0], position_only[1]))
    _check_ends(task)
    while True:
        control, T = _first_guess(task, fastest, ends)
        (_, solution, way, certificate), _ = refined(task, control, T, EACH * task.basis.intervals, TOLERANCE, deadline,
                                                  lambda *_: False)
        count = int(FINER * task.basis.count)
        now = computing_time()
        if not solution.converged or certificate.worst <= 1.0 + ROUNDING or count > MOST_POINTS or (
                2.0 * now - begin > deadline):    # another pass takes as long
            break
        task = replace(task, basis=basis(5, count))
    usage = {name: used for name, used in certificate.usage.items() if used.joint != "path"}
    return SmoothTiming(way, Certificate(usage, certificate.peaks), solution.converged, solution.reason)


def _check_ends(task: PathTask) -> None:
    """Raise `RbdError` if the prescribed speed at an end violates a limit."""
    prescribed = [name for name, free in zip(("start", "goal"), task.position_only, strict=True) if not free]
    for name, values in task.end_columns.items():
        limit = task.limits.of(name)[1]
        over = np.abs(values) - limit * (1.0 + 1e-9)
        if len(values) and over.max() > 0.0:
            i, j = np.unravel_index(int(np.argmax(over)), over.shape)
            raise RbdError(f"path: at its {prescribed[i]} the {name} of joint '{task.model.velocity_names[j]}' is "
                           f"{values[i, j]:.6g}, beyond its limit {limit[j]:.6g}")


def _first_guess(task: PathTask, fastest: float, ends: list[float]) -> tuple[Array, float]:
    """Control points (K, 1) and duration of the quintic polynomial between the ends, slowed down until no limit is
    violated, or as little as possible.
    """
    B, T, best = task.basis, fastest, (np.inf, fastest)
    s = np.linspace(0.0, 1.0, 4 * B.count)
    interval, values = B.values(s, 0)
    matrix = dense(interval, values[:, 0], B.count)

    def control(T: float) -> Array:
        rates = [1.0 if free else speed * T for free, speed in zip(task.position_only, ends, strict=True)]
        quintic = np.linalg.solve([[1.0, 1.0, 1.0], [3.0, 4.0, 5.0], [6.0, 12.0, 20.0]],
                                  [1.0 - rates[0], rates[1] - rates[0], 0.0])
        way = s * (rates[0] + s**2 * (quintic[0] + s * (quintic[1] + s * quintic[2])))
        return np.asarray(np.linalg.lstsq(matrix, way[:, None], rcond=None)[0])

    for _ in range(SLOWEST):
        worst = certify(task, SplineMotion(control(T), T), rate=samples(task, T) / T / 10.0).worst
        best = min(best, (worst, T))
        if worst <= 1.0 + 1e-6:
            break
        T *= SLOWER
    return control(best[1]), best[1]
