"""Certificate of a motion, sampled at 1 kHz or finer: largest use of each limit, with joint and time."""
from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..splines import SplineMotion
from ..usage import Usage
from .dynamic_rows import ClosedRows, rows_of
from .task import Task

Array = NDArray[np.float64]
RATE = 1000.0        # Hz
NONLINEAR_FACTOR = 5.0          # factor of RATE for nonlinear springs: motor speeds peak at sign changes of efforts
SAMPLES_PER_INTERVAL = 20       # at least, of the spline
MAX_SAMPLES = 50_000            # in motions of more than 50 s
MAX_SAMPLES_IN_LOOPS = 20_000   # with loops, in motions of more than 20 s
MAX_SAMPLES_OF_RATES_IN_LOOPS = 5_000    # with loops and effort rates
CHUNK = 20_000                  # samples evaluated in one batch
PASSIVE = "passive_effort"      # name of the limit of unactuated joints: the tolerated effort


class Certificate(NamedTuple):
    """Usage by limit ("position", "velocity", "effort", …), and the s in [0, 1] of its peaks near the limits."""

    usage: dict[str, Usage]
    peaks: Array

    @property
    def worst(self) -> float:
        """Largest ratio to a limit, except for efforts of unactuated joints, which more knots do not reduce."""
        return max((usage.ratio for name, usage in self.usage.items() if name != PASSIVE), default=0.0)


def samples(task: Task, duration: float, rate: float = RATE) -> int:
    """Number of samples for a motion of this duration (s) at `rate` (Hz), within the bounds above."""
    rates = np.isfinite(task.limits.effort_rate).any() or np.isfinite(task.limits.motor_velocity).any()
    largest = MAX_SAMPLES if task.chain is None else MAX_SAMPLES_OF_RATES_IN_LOOPS if rates else MAX_SAMPLES_IN_LOOPS
    if task.springs is not None and task.springs.nonlinear:
        rate *= NONLINEAR_FACTOR
    return max(int(np.ceil(min(duration * rate, largest))), SAMPLES_PER_INTERVAL * task.basis.intervals) + 1


def certify(task: Task, motion: SplineMotion, threshold: float = 1.0, rate: float = RATE) -> Certificate:
    """Certificate of the motion from samples at `rate` (Hz); lists peaks with a ratio above `threshold`."""
    count = samples(task, motion.duration, rate)
    s = np.linspace(0.0, 1.0, count)
    rows = rows_of(task, [column.name for column in task.columns
                          if not (np.isfinite(column.lower) | np.isfinite(column.upper)).any()], threshold)
    usage: dict[str, Usage] = {}
    peaks: list[Array] = []
    ratios: list[list[Array]] = [[] for _ in task.columns]
    ends = np.cumsum([len(column.labels) for column in task.columns]).tolist()
    for chunk in np.split(s, range(CHUNK, count, CHUNK)):
        z = motion.states(chunk, task.orders)
        values = rows.values(z)
        if isinstance(rows, ClosedRows):
            rows.go_on()
        z = z.reshape(len(z), -1)
        for chunks, column, end in zip(ratios, task.columns, ends, strict=True):
            if (np.isfinite(column.lower) | np.isfinite(column.upper)).any():
                table, stop = (values, end) if end <= rows.count else (z, end - rows.count)
                chunks.append(ratio_to_limits(table[:, stop - len(column.labels):stop], column.lower, column.upper))
    for column, chunks in zip(task.columns, ratios, strict=True):
        if not chunks:
            continue
        ratio = chunks[0] if len(chunks) == 1 else np.concatenate(chunks)
        ratio[np.isnan(ratio)] = np.inf    # open loops
        actuated = np.full(len(column.labels), True)
        if column.name == "effort" and len(task.passive):
            actuated[task.passive] = False
            usage[PASSIVE] = _usage(ratio, ~actuated, column.labels, s * motion.duration)
            if not np.isfinite(column.upper[actuated]).any():
                continue
        worst = _usage(ratio, actuated, column.labels, s * motion.duration)
        if column.name not in usage or worst.ratio > usage[column.name].ratio:
            usage[column.name] = worst
        peaks.append(_peaks(s, ratio[:, actuated], threshold))
    if isinstance(rows, ClosedRows) and not rows.ended_at(task.arrival(motion.control[-1])):
        usage["position"] = Usage(np.inf, task.model.velocity_names[-1], motion.duration)
    return Certificate(usage, np.unique(np.concatenate([np.zeros(0), *peaks])))


def _usage(ratio: Array, selection: NDArray[np.bool_], labels: tuple[str, ...], times: Array) -> Usage:
    """The largest usage among the selected columns."""
    selected = np.where(selection, ratio, -np.inf)
    i, j = np.unravel_index(int(np.argmax(selected)), ratio.shape)
    return Usage(float(selected[i, j]), labels[j], float(times[i]))


def ratio_to_limits(values: Array, lower: Array, upper: Array) -> Array:
    """Distance from the middle of a range over half its width; for a one-sided limit, 1 + violation."""
    both = np.isfinite(lower) & np.isfinite(upper)
    if both.all():
        half = 0.5 * (upper - lower)
        ratio: Array = np.abs(values - (lower + half)) / half
        return ratio
    half = np.where(both, 0.5 * (upper - lower), 1.0)
    return 1.0 + np.maximum(values - upper, lower - values) / half    # −inf without limits


def _peaks(s: Array, ratio: Array, threshold: float) -> Array:
    """The s of local maxima of the ratio above `threshold`."""
    over = ratio > threshold
    if not over.any():
        return np.zeros(0)
    padded = np.pad(ratio, ((1, 1), (0, 0)), constant_values=-np.inf)
    peak = over & (ratio >= padded[:-2]) & (ratio >= padded[2:])
    return s[peak.any(axis=1)]
