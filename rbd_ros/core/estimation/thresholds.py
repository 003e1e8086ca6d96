"""Thresholds of external efforts from motions without contact, for a rate of false alarms.

The maxima of the residual in windows follow Gumbel's distribution, whose tail gives the threshold with the permitted
rate of exceedance (Gumbel 1958). The uncertainty of friction near rest is subtracted here and added while it lasts
(`touched_body`), so that thresholds are as low as joints in motion allow.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..dynamics.friction import Friction
from ..errors import RbdError, shown
from ..identification.recorded.recording import Recording
from ..identification.recorded.signals import stretches
from ..model.inertia import Array
from ..model.robot_model import RobotModel
from ..model.scalars import positive
from .momentum_observer import MomentumObserver

WINDOW = 0.5          # s
MEAN = 0.02           # s: over which much of the noise of velocities cancels, and a contact changes little
SETTLING = 5.0        # time constants of the observer after a gap that are excluded
FEWEST = 40           # windows
EULER = 0.5772156649015329


@dataclass(frozen=True, eq=False)
class ContactThresholds:
    """threshold (nv,), N m or N, for `touched_body` with `MomentumObserver.friction_uncertainty`; largest (nv,): of the
    residual in the recordings, less this uncertainty; covariance (nv, nv): of the residual, for `external_wrench`;
    mean_covariance (nv, nv): of its means over 20 ms, for `contact_probabilities` of such means; speed (nv,): largest
    recorded speed, rad/s or m/s, beyond which thresholds are not validated; seconds: duration of the recordings; gain:
    of the observer, 1/s.
    """

    threshold: Array
    largest: Array
    covariance: Array
    mean_covariance: Array
    speed: Array
    seconds: float
    gain: float

    def delay(self, effort: ArrayLike) -> Array:
        """Time (s) until constant external efforts (…, nv) exceed the thresholds; infinite for smaller efforts."""
        size = np.abs(np.asarray(effort, dtype=np.float64))
        passed = size > self.threshold
        share = np.where(passed, self.threshold / np.where(passed, size, 1.0), 0.0)
        return np.where(passed, -np.log1p(-share) / self.gain, np.inf)


def contact_thresholds(model: RobotModel, recordings: Recording | Sequence[Recording], *, gain: float = 50.0,
                       friction: Friction | None = None, alarms_per_hour: float = 0.1) -> ContactThresholds:
    """Thresholds for `MomentumObserver` and node `observer` from recordings of motions without contact.

    recordings: with efforts in N m or N, at the rate of the control loop, long and representative of the task, because
    thresholds hold for similar speeds and motions only. gain, friction: of the observer. alarms_per_hour: of all joints
    together. Raises `RbdError` for recordings that are too short.

        >>> model, t = rbd.sample("two_link"), np.arange(0.0, 40.0, 0.01)
        >>> q = np.stack([np.sin(t), np.cos(2.0 * t)], axis=1)
        >>> v, a = np.gradient(q, t, axis=0), -np.stack([np.sin(t), 4.0 * np.cos(2.0 * t)], axis=1)
        >>> noise = np.random.default_rng(0).normal(size=q.shape)
        >>> quiet = rbd.Recording(t, q, v, tau=rbd.inverse_dynamics(model, q, v, a) + noise)
        >>> bool((rbd.contact_thresholds(model, quiet).threshold > 0.3).all())
        True
    """
    rate = positive(alarms_per_hour, "alarms_per_hour", "rate")
    several = list(recordings) if isinstance(recordings, Sequence) else [recordings]
    if not several or not all(isinstance(recording, Recording) for recording in several):
        raise RbdError(f"recordings: expected rbd.Recording, or several, got {shown(recordings)}")
    stretches = [stretch for recording in several
                 for stretch in _residuals(model, recording, positive(gain, "gain", "rate"), friction)]
    windows = [part for stretch in stretches for part in _windows(stretch)]
    if len(windows) < FEWEST:
        raise RbdError(f"recordings: {len(windows) * WINDOW:g} s of motion without gaps, expected at least "
                       f"{FEWEST * WINDOW:g} s")
    excess = np.sqrt([np.maximum(part.residual**2 - part.uncertainty**2, 0.0).max(axis=0) for part in windows])
    plain = np.array([np.abs(part.residual).max(axis=0) for part in windows])
    allowed = min(rate * WINDOW / 3600.0 / model.nv, 0.5)    # share of the windows of a joint with an alarm
    level, largest = np.zeros((2, model.nv))
    for j in range(model.nv):
        moving = excess[:, j] > 0.0    # the residual of a joint that always sticks is friction only
        maxima = excess[moving, j] if moving.sum() >= FEWEST else plain[:, j]
        scale = np.std(maxima) * np.sqrt(6.0) / np.pi
        level[j] = np.mean(maxima) - EULER * scale - scale * np.log(-np.log1p(-allowed))
        largest[j] = maxima.max()
    return ContactThresholds(np.maximum(level, largest), largest,
                             _second_moment([stretch.residual for stretch in stretches]),
                             _second_moment([_means(stretch) for stretch in stretches]),
                             np.max([np.abs(stretch.v).max(axis=0) for stretch in stretches], axis=0),
                             float(sum(stretch.t[-1] - stretch.t[0] for stretch in stretches)), float(gain))


def _second_moment(rows: Sequence[Array]) -> Array:
    values = np.concatenate(rows)
    return np.asarray(values.T @ values / len(values))


class _Stretch(NamedTuple):
    """Times (N,) of a recording without gaps; residual, its uncertainty by friction near rest, velocities (N, nv)."""

    t: Array
    residual: Array
    uncertainty: Array
    v: Array


def _windows(stretch: _Stretch) -> list[_Stretch]:
    """The complete windows of a stretch."""
    window = np.floor((stretch.t - stretch.t[0]) / WINDOW).astype(int)
    return [_Stretch(*(x[window == k] for x in stretch)) for k in range(window[-1])]


def _means(stretch: _Stretch) -> Array:
    """Means (N, nv) of the residual over `MEAN`."""
    count = max(round(MEAN / float(np.median(np.diff(stretch.t)))), 1)
    sums = np.cumsum(np.concatenate([np.zeros((1, stretch.residual.shape[1])), stretch.residual]), axis=0)
    return np.asarray(sums[count:] - sums[:-count]) / count


def _residuals(model: RobotModel, recording: Recording, gain: float, friction: Friction | None) -> list[_Stretch]:
    """Residuals of each stretch without gaps, after the observer has settled."""
    clean, _, parts, _ = stretches(model, recording)
    observer = MomentumObserver(model, gain, friction)
    settled_stretches: list[_Stretch] = []
    for part in parts:
        t, q, tau = clean.t[part], clean.q[part], clean.tau[part]
        v = np.gradient(q, t, axis=0) if clean.v is None else clean.v[part]
        observer.reset(q[0], v[0])
        residual, uncertainty = np.zeros((2, len(t), model.nv))
        for i in range(1, len(t)):
            residual[i] = observer.update(float(t[i] - t[i - 1]), q[i], v[i], 0.5 * (tau[i - 1] + tau[i]))
            uncertainty[i] = observer.friction_uncertainty
        settled = t - t[0] >= SETTLING / gain
        if settled.sum() > 1:
            settled_stretches.append(_Stretch(t[settled], residual[settled], uncertainty[settled], v[settled]))
    return settled_stretches
