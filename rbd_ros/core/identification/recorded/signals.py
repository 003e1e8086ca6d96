"""Preparation of a recording: equidistant filtered samples with velocities and accelerations; exclusions are reported.

Steps: remove rows with NaN, sort rows, split at restarts and gaps; equidistant sampling by splines; one zero-phase
low-pass for all signals; derivatives of the filtered positions by quintic splines.
"""
from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ...dynamics.friction import SMOOTHING, Friction
from ...errors import RbdError
from ...model.robot_model import RobotModel
from ...model.scalars import positive
from .cutoff import chosen_cutoff
from .reading import GAP, SHORTEST_GAP
from .recording import Recording
from .whole_turns import unwound

Array = NDArray[np.float64]
ORDER = 4            # of the Butterworth filter
SHORTEST = 1.0       # s, shortest piece
FEWEST = 50          # smallest number of samples of a piece
REST = 2e-3          # rad/s, m/s: slower joints stand still
LONGEST_REST = 0.5    # s, longest rest within a movement
STILL = 1e-3         # rad or m: joints that move less are at rest
LARGEST = 1e9        # larger numbers are rejected as invalid
SAMPLES_PER_CYCLE = 10.0    # of the cutoff frequency, for the regressor
MARGIN = 2.5         # periods of the cutoff frequency at both ends of a piece affected by two filters


@dataclass(frozen=True, eq=False)
class Piece:
    """Equidistant samples of one stretch of motion: t (N,), q, v, a, tau (N, nv), filtered equally. slip (N, nv + k):
    Coulomb friction per N m or N of its level, of the joints and of k motors on more than one joint; because it jumps,
    it is filtered like the efforts, at full rate.
    """

    t: Array
    q: Array
    v: Array
    a: Array
    tau: Array
    slip: Array

    @property
    def rate(self) -> float:
        return float((len(self.t) - 1) / (self.t[-1] - self.t[0]))


@dataclass(frozen=True, eq=False)
class Prepared:
    """Pieces at one rate (Hz), the cutoff frequency (Hz), and findings and exclusions as text."""

    pieces: tuple[Piece, ...]
    rate: float
    cutoff: float
    notes: tuple[str, ...]
    still: tuple[int, ...]      # joints that do not move
    unmeasured: tuple[int, ...]    # joints whose effort is constant

    @property
    def duration(self) -> float:
        return sum(float(piece.t[-1] - piece.t[0]) for piece in self.pieces)


def prepare(model: RobotModel, recording: Recording, cutoff: float | None = None, delay: float = 0.0,
            smoothing: float = SMOOTHING, motors: Array | None = None) -> Prepared:
    """The recording in the model's order, cleaned, filtered below `cutoff` (Hz; None: chosen from the positions) and
    differentiated; efforts are read `delay` (s) later than states. smoothing (rad/s, m/s): of the Coulomb friction.
    motors (k, nv): motors on more than one joint, speeds per joint speed.
    Raises `RbdError` if no usable data remain.
    """
    clean, period, parts, notes = stretches(model, recording)
    names = model.velocity_names
    ranges = np.max([np.ptp(clean.q[part], axis=0) for part in parts], axis=0)
    still = tuple(int(j) for j in np.flatnonzero(ranges < STILL))
    if len(still) == model.nv:
        raise RbdError(f"{recording.source}: no joint moves by more than {STILL:g} (rad or m)")
    if still:
        notes.append(f"joints that do not move: {', '.join(names[j] for j in still)}; what only they show is not seen")
    unmeasured = tuple(int(j) for j in np.flatnonzero(np.ptp(np.concatenate([clean.tau[part] for part in parts]),
                                                              axis=0) == 0.0))
    if len(unmeasured) == model.nv:
        raise RbdError(f"{recording.source}: the efforts of all joints are constant: they are not measured")
    if unmeasured:
        notes.append(f"efforts that are constant, left out: {', '.join(names[j] for j in unmeasured)}")
    rate = 1.0 / period
    sampled = [_evened(clean.part(part), rate, delay) for part in parts]
    sampled = [piece for piece in sampled if len(piece.t) >= FEWEST]
    if not sampled:
        raise RbdError(f"{recording.source}: no piece is as long as {FEWEST} samples and the delay")
    if cutoff is None:
        longest = max(sampled, key=lambda piece: len(piece.t)).q
        chosen = chosen_cutoff(longest[:, np.ptp(longest, axis=0) >= STILL], rate)
    else:
        chosen = positive(cutoff, "cutoff", "frequency")
    chosen = min(chosen, 0.4 * rate)
    pieces = tuple(_filtered(piece, rate, chosen, smoothing, motors) for piece in sampled)
    _compare_velocities(model, sampled, pieces, notes)
    moving = tuple(run for piece in pieces for run in _moving(piece))
    excluded = sum(len(piece.t) / piece.rate for piece in pieces) - sum(len(run.t) / run.rate for run in moving)
    if not moving:
        raise RbdError(f"{recording.source}: in no {SHORTEST:g} s on end does any joint move faster than {REST:g} "
                       "(rad/s or m/s)")
    if excluded > SHORTEST:
        notes.append(f"{excluded:.1f} s in which nothing moves, left out: efforts of joints that stick may be anything")
    return Prepared(moving, rate, chosen, tuple(notes), still, unmeasured)


def stretches(model: RobotModel, recording: Recording) -> tuple[Recording, float, list[slice], list[str]]:
    """The valid rows sorted by time, in the model's order and unwrapped; the period (s); stretches without gaps; and
    exclusions, as text. Raises `RbdError` if no usable data remain.
    """
    if not isinstance(recording, Recording):
        raise RbdError(f"recording: expected rbd.Recording, got {type(recording).__name__}")
    source = recording.source
    recording, foreign = recording.in_order_of(model)
    notes = [f"columns of no joint of the model, left out: {', '.join(foreign[:8])}"] if foreign else []
    finite = recording.t[np.isfinite(recording.t)]
    if not len(finite):
        raise RbdError(f"{source}: no stamp is a finite number")
    recording = replace(recording, t=recording.t - finite[0])    # relative to the first sample
    table = np.column_stack([recording.t, recording.q, recording.tau])
    good: NDArray[np.bool_] = np.all(np.abs(table) < LARGEST, axis=1)    # false for NaN, too
    if not good.all():
        first = int(np.argmin(good))
        notes.append(f"{np.sum(~good)} of {len(good)} rows are not finite numbers, the first is row {first}; left out")
    clean = recording.part(np.flatnonzero(good))
    if len(clean.t) < FEWEST:
        raise RbdError(f"{source}: {len(clean.t)} rows of finite numbers, expected at least {FEWEST}")
    velocities = clean.v
    if velocities is not None and not (np.abs(velocities) < LARGEST).all():
        notes.append("velocities are not all finite: they are taken from the positions")
        clean = replace(clean, v=None)
    steps = np.diff(clean.t)
    period = float(np.median(np.abs(steps[steps != 0.0]))) if (steps != 0.0).any() else 0.0
    if period == 0.0:
        raise RbdError(f"{source}: all stamps are the same")
    back = np.flatnonzero(steps < 0.0)
    starts = np.zeros(0, dtype=np.int64)
    if len(back) and len(back) <= max(3, 0.005 * len(steps)) and (-steps[back] > GAP * period).all():
        starts = back + 1
        notes.append(f"time goes back {len(back)} time{'s' * (len(back) > 1)} (restarts), first at row {starts[0]}: "
                     "each piece is taken by itself")
    elif len(back):
        notes.append(f"{len(back)} rows were not in order of time: sorted")
        clean = clean.part(np.argsort(clean.t, kind="stable"))
    repeated = np.concatenate([[False], np.diff(clean.t) == 0.0])
    if repeated.any():
        notes.append(f"{repeated.sum()} rows with the stamp of the row before, left out")
        unique_rows = ~repeated
        starts = np.searchsorted(np.flatnonzero(unique_rows), starts)
        clean = clean.part(np.flatnonzero(unique_rows))
    steps = np.diff(clean.t)
    period = float(np.median(steps[steps > 0.0]))
    gaps = np.flatnonzero(steps > max(GAP * period, SHORTEST_GAP)) + 1
    if len(gaps):
        widest = int(gaps[np.argmax(steps[gaps - 1])])
        notes.append(f"{len(gaps)} gap{'s' * (len(gaps) > 1)} in time, the longest of {steps[widest - 1]:.3g} s at "
                     f"t = {clean.t[widest - 1]:.4g} s: not bridged")
    bounds = np.unique(np.concatenate([[0], starts, gaps, [len(clean.t)]]))
    parts = [slice(int(a), int(b)) for a, b in pairwise(bounds)]
    kept_parts = [part for part in parts if part.stop - part.start >= FEWEST
                  and clean.t[part.stop - 1] - clean.t[part.start] >= SHORTEST]
    if not kept_parts:
        raise RbdError(f"{source}: no piece of at least {SHORTEST:g} s and {FEWEST} samples without a gap; the whole "
                       f"is {len(clean.t)} samples, median period {period:.3g} s")
    lost = sum(part.stop - part.start for part in parts) - sum(part.stop - part.start for part in kept_parts)
    if lost:
        notes.append(f"{len(parts) - len(kept_parts)} pieces too short, {lost} rows; left out")
    mean_period = float(np.mean([(clean.t[p.stop - 1] - clean.t[p.start]) / (p.stop - p.start - 1)
                                 for p in kept_parts]))
    q, unwrapped = unwound(model, clean.q, kept_parts)
    if unwrapped:
        clean = replace(clean, q=q)
        notes.append(f"positions of {', '.join(unwrapped)} jump by whole turns: taken back")
    return clean, mean_period, kept_parts, notes


def _evened(recording: Recording, rate: float, delay: float) -> Piece:
    """Equidistant samples by cubic splines; efforts read `delay` later. v: recorded velocities, or NaN."""
    from scipy.interpolate import CubicSpline

    t = recording.t - recording.t[0]
    first, last = max(0.0, -delay), t[-1] - max(0.0, delay)
    times = np.arange(first, last, 1.0 / rate)
    q, tau = CubicSpline(t, recording.q)(times), CubicSpline(t, recording.tau)(times + delay)
    v = np.full_like(q, np.nan) if recording.v is None else CubicSpline(t, recording.v)(times)
    nothing = np.full_like(q, np.nan)
    return Piece(times + recording.t[0], q, v, nothing, tau, nothing)


def low_pass(signal: Array, rate: float, cutoff: float) -> Array:
    """Zero-phase low-pass along the first axis with the response 1 / (1 + (f / cutoff)⁸): that of a forward-backward
    Butterworth filter of order four, but independent of the rate. Ends are continued by odd reflection.
    """
    n = len(signal)
    pad = min(n - 1, int(3.0 * rate / cutoff))
    head, tail = 2.0 * signal[:1] - signal[pad:0:-1], 2.0 * signal[-1:] - signal[-2:-pad - 2:-1]
    padded = np.concatenate([head, signal, tail])
    f = np.fft.rfftfreq(len(padded), 1.0 / rate)
    response = 1.0 / (1.0 + (f / cutoff) ** (2 * ORDER))
    spectrum = np.fft.rfft(padded, axis=0) * response.reshape(-1, *(1,) * (signal.ndim - 1))
    filtered: Array = np.fft.irfft(spectrum, n=len(padded), axis=0)[pad:pad + n]
    return filtered


def _filtered(piece: Piece, rate: float, cutoff: float, smoothing: float, motors: Array | None) -> Piece:
    """The piece filtered and differentiated."""
    from scipy.interpolate import make_interp_spline

    q, tau = low_pass(piece.q, rate, cutoff), low_pass(piece.tau, rate, cutoff)
    spline = make_interp_spline(piece.t, q, k=5)
    step = max(1, int(rate / (SAMPLES_PER_CYCLE * cutoff)))
    rows = slice(0, len(q), step)
    t = piece.t[rows]
    v = spline(piece.t, nu=1)
    speeds = v if motors is None else np.concatenate([v, v @ motors.T], axis=1)
    slip = low_pass(Friction(coulomb=1.0, smoothing=smoothing).effort(speeds), rate, cutoff)
    return Piece(t, q[rows], v[rows], spline(t, nu=2), tau[rows], slip[rows])


def _moving(piece: Piece) -> list[Piece]:
    """The stretches of a piece with a moving joint, including short rests."""
    fast = np.flatnonzero(np.abs(piece.v).max(axis=1) > REST)
    if not len(fast):
        return []
    cuts = np.flatnonzero(np.diff(fast) > LONGEST_REST * piece.rate)
    runs = zip(fast[np.concatenate([[0], cuts + 1])], fast[np.concatenate([cuts, [len(fast) - 1]])], strict=True)
    return [Piece(*(getattr(piece, name)[first:last + 1] for name in ("t", "q", "v", "a", "tau", "slip")))
            for first, last in runs if (last - first) / piece.rate >= SHORTEST]


def _compare_velocities(model: RobotModel, raw: list[Piece], pieces: tuple[Piece, ...], notes: list[str]) -> None:
    """Compare recorded velocities with derivatives of positions, to detect swapped joints, signs and units."""
    if any(np.isnan(piece.v).any() for piece in raw):
        return
    recorded = np.concatenate([np.column_stack([np.interp(filtered.t, piece.t, column) for column in piece.v.T])
                               for piece, filtered in zip(raw, pieces, strict=True)])
    derived = np.concatenate([piece.v for piece in pieces])
    size = np.sqrt(np.mean(derived**2, axis=0))
    error = np.sqrt(np.mean((recorded - derived) ** 2, axis=0))
    for j in np.flatnonzero(error > 0.5 * np.maximum(size, 1e-2)):
        scores = [abs(float(np.corrcoef(recorded[:, j], column)[0, 1])) if np.ptp(column) and np.ptp(recorded[:, j])
                  else 0.0 for column in derived.T]
        best = int(np.argmax(scores))
        hint = (f"; it is that of {model.velocity_names[best]}" if best != j and scores[best] > 0.95 else "")
        notes.append(f"velocity of {model.velocity_names[j]} is not the derivative of its position{hint}: columns "
                     "swapped, or other units? Velocities are taken from the positions")


def decimation(prepared: Prepared, piece: Piece) -> slice:
    """Rows of a piece at a few samples per cycle of the cutoff, without the ends affected by one-sided filtering.
    """
    step = max(1, int(piece.rate / (2.5 * prepared.cutoff)))
    margin = min(int(MARGIN * piece.rate / prepared.cutoff), len(piece.t) // 8)
    return slice(margin, len(piece.t) - margin, step)


def noise_correlation(prepared: Prepared, piece: Piece, lags: int = 40) -> Array:
    """Correlation of white noise after the filter, at lags of 0, 1, … rows of `decimation`."""
    f = np.linspace(0.0, 0.5 * prepared.rate, 4001)
    density = 1.0 / (1.0 + (f / prepared.cutoff) ** (2 * ORDER)) ** 2
    period = decimation(prepared, piece).step / piece.rate
    correlation: Array = np.cos(2.0 * np.pi * np.outer(np.arange(lags) * period, f)) @ density / density.sum()
    return correlation


def shifted(piece: Piece, delay: float) -> Piece:
    """The piece with efforts read `delay` (s) later, by cubic splines, with constant extrapolation."""
    from scipy.interpolate import CubicSpline

    return replace(piece, tau=CubicSpline(piece.t, piece.tau)(np.clip(piece.t + delay, piece.t[0], piece.t[-1])))
