"""The numbers of one cycle, beside NumPy's: picked, clipped, limited in rate; with infinities and NaN among them."""
from __future__ import annotations

import numpy as np
import pytest

from rbd_ros.core.motion.cycle import HUGE, clipped_entry, followed_entry, picked_entry

SEEDS = range(50)


@pytest.mark.parametrize("seed", SEEDS)
def test_picked(seed):
    rng = np.random.default_rng(seed)
    given = rng.normal(size=9) * 10.0 ** rng.integers(-3, 4)
    indices = rng.permutation(9)[:7]
    scale, offset = ((), ()) if seed % 3 == 0 else (rng.normal(size=7), () if seed % 3 == 1 else rng.normal(size=7))
    out, scale, offset = np.empty(7), np.array(scale), np.array(offset)
    assert picked_entry.call(given, indices, scale, offset, out)
    expected = given[indices] * (scale if len(scale) else 1.0) + (offset if len(offset) else 0.0)
    np.testing.assert_allclose(out, expected, rtol=1e-15, atol=1e-15 * np.abs(expected).max())
    given[indices[rng.integers(7)]] = [np.nan, np.inf, -np.inf, 2.0 * HUGE, 0.5 * HUGE][seed % 5]
    assert picked_entry.call(given, indices, np.zeros(0), np.zeros(0), out) == (seed % 5 == 4)
    np.testing.assert_array_equal(out, given[indices])


@pytest.mark.parametrize("seed", SEEDS)
def test_limits(seed):
    rng = np.random.default_rng(seed)
    x, last, limit, out = 3.0 * rng.normal(size=7), rng.normal(size=7), np.abs(rng.normal(size=7)), np.empty(7)
    limit[rng.random(7) < 0.3] = np.inf
    same = clipped_entry.call(x, limit, out)
    np.testing.assert_array_equal(out, np.clip(x, -limit, limit))
    assert same == (out == x).all()
    assert clipped_entry.call(out.copy(), limit, out)
    elapsed = 0.0 if seed % 5 == 0 else float(rng.random())
    same = followed_entry.call(x, last, limit, elapsed, out)
    step = np.where(np.isinf(limit), np.inf, np.where(np.isinf(limit), 1.0, limit) * elapsed)
    np.testing.assert_array_equal(out, np.minimum(np.maximum(x, last - step), last + step))
    assert same == (out == x).all()
    assert followed_entry.call(last, last, limit, elapsed, out) and (out == last).all()
