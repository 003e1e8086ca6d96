"""Choice of the filter's cutoff frequency from the positions: a multiple of the motion's bandwidth, without noise."""
from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
SHARE = 0.9995       # share of the velocities' power that defines the bandwidth
CUTOFF_FACTOR, LOWEST_CUTOFF, HIGHEST_CUTOFF = 4.0, 4.0, 40.0    # Hz
NOISY = 10.0         # multiple of the noise's median power above which a frequency belongs to the motion
NEIGHBOURS = 17      # number of averaged frequencies
NO_MOTION = 20.0     # Hz: above, there is only noise; its largest octave is used


def chosen_cutoff(q: Array, rate: float) -> float:
    """Cutoff, Hz: four times the frequency below which almost all power of the velocities lies; q (N, n): positions of
    moving joints, at this rate. Position noise grows with f² in velocities, so it is separated from the motion first.
    """
    from scipy.ndimage import uniform_filter1d

    power = np.abs(np.fft.rfft((q - q.mean(axis=0)) * np.hanning(len(q))[:, None], axis=0)) ** 2
    f = np.fft.rfftfreq(len(q), 1.0 / rate)
    first = min(NO_MOTION, 0.25 * rate)
    octave = np.floor(np.log2(np.maximum(f, first) / first))
    floor = np.max([np.median(power[(octave == k) & (f > first)], axis=0) for k in range(int(octave[-1]) + 1)
                    if np.sum((octave == k) & (f > first)) >= NEIGHBOURS], axis=0, initial=0.0)
    below = f < 0.25 * rate
    motion = uniform_filter1d(power, NEIGHBOURS, axis=0, mode="nearest") > NOISY * floor
    speed = (np.where(motion, power, 0.0) * f[:, None] ** 2)[below]
    total = speed.sum(axis=0)
    share = np.cumsum(speed, axis=0) / np.where(total > 0.0, total, 1.0)
    each = [float(f[below][np.searchsorted(column, SHARE)]) for column in share.T if column[-1] > 0.5]
    return float(np.clip(CUTOFF_FACTOR * max(each, default=1.0), LOWEST_CUTOFF, HIGHEST_CUTOFF))
