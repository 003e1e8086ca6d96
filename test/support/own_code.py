"""States for functions of a specialised model, and its results beside those of the ordinary kernels."""
from __future__ import annotations

import numpy as np

KINDS = {"q": "nq", "v": "nv"}


def states(model, inputs, count, seed=0):
    """Inputs of one state (count None) or of many."""
    rng = np.random.default_rng(seed)
    rows = [[model.random_configuration(rng) if kind == "q" else rng.normal(size=model.nv) for kind in inputs]
            for _ in range(1 if count is None else count)]
    if count is None:
        return rows[0]
    return [np.array([row[i] for row in rows]).reshape(count, getattr(model, KINDS[kind]))
            for i, kind in enumerate(inputs)]


def parts(result):
    return list(result) if isinstance(result, tuple) else [result]


def check_equal(one, other, tolerance):
    """Both results have the same type, shapes and numbers, each state by its own size."""
    assert type(one) is type(other)
    for a, b in zip(parts(one), parts(other), strict=True):
        assert a.shape == b.shape and b.dtype == np.float64
        rows = (len(a), -1) if a.ndim > 1 and a.size else (1, -1)
        size = np.abs(a.reshape(rows)).max(axis=1, initial=1e-300)
        error = np.abs((a - b).reshape(rows)).max(axis=1, initial=0.0) / size
        assert (error <= tolerance).all(), f"state {np.argmax(error)} is off by {error.max():.1e}"
