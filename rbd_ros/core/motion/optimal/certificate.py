"""Certificate of a motion, sampled at 1 kHz or finer: largest use of each limit, with joint and time."""
from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..splines import SplineMotion
from .dynamic_rows import ClosedRows, rows_of
from .task import Task

Array = NDArray[np.float64]
RATE = 1000.0        # Hz
SHARPER = 5.0        # factor of RATE for nonlinear springs: motor speeds have peaks at sign changes of efforts
EACH = 20            # smallest number of samples per interval of the spline
MOST = 50_000        # largest number of samples (motions of more than 50 s)
MOST_IN_LOOPS = 20_000    # likewise with loops (more than 20 s);
MOST_RATES_IN_LOOPS = 5_000    # and with effort rates
AT_ONCE = 20_000     # samples evaluated at once
PASSIVE = "passive_effort"    # limit of unactuated joints: the tolerated effort


class Usage(NamedTuple):
    """The largest ratio of a motion to a limit: 1 is at the limit. time in s."""

    ratio: float
    joint: str
    time: float


class Certificate(NamedTuple):
    """Usage by limit ("position", "velocity", "effort", …), and the s in [0, 1] of its peaks near the limits."""

    usage: dict[str, Usage]
    peaks: Array

    @property
    def worst(self) -> float:
        """Largest use of a limit, unactuated joints' efforts excluded, as more knots do not reduce those."""
        return max((usage.ratio for name, usage in self.usage.items() if name != PASSIVE), default=0.0)


def samples(task: Task, duration: float, rate: float = RATE) -> int:
    """Number of samples of a motion of this duration (s)."""
    rates = np.isfinite(task.limits.effort_rate).any() or np.isfinite(task.limits.motor_velocity).any()
    most = MOST if task.chain is None else MOST_RATES_IN_LOOPS if rates else MOST_IN_LOOPS
    if task.springs is not None and task.springs.bent:
        rate *= SHARPER
    return max(int(np.ceil(min(duration * rate, most))), EACH * task.basis.intervals) + 1


def certify(task: Task, motion: SplineMotion, near: float = 1.0, rate: float = RATE) -> Certificate:
    """Sample the motion and compare it with the limits; peaks with a ratio above `near` are listed."""
    count = samples(task, motion.duration, rate)
    s = np.linspace(0.0, 1.0, count)
    rows = rows_of(task, [column.name for column in task.columns
                          if not (np.isfinite(column.lower) | np.isfinite(column.upper)).any()])
    usage: dict[str, Usage] = {}
    peaks: list[Array] = []
    ratios: list[list[Array]] = [[] for _ in task.columns]
    ends = np.cumsum([len(column.labels) for column in task.columns]).tolist()
    for part in np.split(s, range(AT_ONCE, count, AT_ONCE)):
        z = motion.states(part, task.orders)
        values = rows.values(z)
        if isinstance(rows, ClosedRows):
            rows.go_on()
        z = z.reshape(len(z), -1)
        for parts, column, end in zip(ratios, task.columns, ends, strict=True):
            if (np.isfinite(column.lower) | np.isfinite(column.upper)).any():
                x, last = (values, end) if end <= rows.count else (z, end - rows.count)
                parts.append(ratio_to_limits(x[:, last - len(column.labels):last], column.lower, column.upper))
    for column, parts in zip(task.columns, ratios, strict=True):
        if not parts:
            continue
        ratio = parts[0] if len(parts) == 1 else np.concatenate(parts)
        ratio[np.isnan(ratio)] = np.inf    # open loops
        driven = np.full(len(column.labels), True)
        if column.name == "effort" and len(task.passive):
            driven[task.passive] = False
            usage[PASSIVE] = _usage(ratio, ~driven, column.labels, s * motion.duration)
            if not np.isfinite(column.upper[driven]).any():
                continue
        worst = _usage(ratio, driven, column.labels, s * motion.duration)
        if column.name not in usage or worst.ratio > usage[column.name].ratio:
            usage[column.name] = worst
        peaks.append(_peaks(s, ratio[:, driven], near))
    if isinstance(rows, ClosedRows) and not rows.ended_at(task.arrival(motion.control[-1])):
        usage["position"] = Usage(np.inf, task.model.velocity_names[-1], motion.duration)
    return Certificate(usage, np.unique(np.concatenate([np.zeros(0), *peaks])))


def _usage(ratio: Array, which: NDArray[np.bool_], labels: tuple[str, ...], times: Array) -> Usage:
    """The largest usage among these columns."""
    some = np.where(which, ratio, -np.inf)
    i, j = np.unravel_index(int(np.argmax(some)), ratio.shape)
    return Usage(float(some[i, j]), labels[j], float(times[i]))


def ratio_to_limits(values: Array, lower: Array, upper: Array) -> Array:
    """Distance from the middle over half the range; for a one-sided limit, 1 + violation."""
    both = np.isfinite(lower) & np.isfinite(upper)
    if both.all():
        half = 0.5 * (upper - lower)
        ratio: Array = np.abs(values - (lower + half)) / half
        return ratio
    half = np.where(both, 0.5 * (upper - lower), 1.0)
    return 1.0 + np.maximum(values - upper, lower - values) / half    # −inf without limits


def _peaks(s: Array, ratio: Array, near: float) -> Array:
    """The s of local maxima of the ratio above `near`."""
    over = ratio > near
    if not over.any():
        return np.zeros(0)
    padded = np.pad(ratio, ((1, 1), (0, 0)), constant_values=-np.inf)
    peak = over & (ratio >= padded[:-2]) & (ratio >= padded[2:])
    return s[peak.any(axis=1)]
