"""Time derivatives of joint friction along a motion, to any order, by Taylor coefficients."""
from __future__ import annotations

from collections.abc import Sequence
from math import factorial

import numpy as np

from ..dynamics.friction import Friction
from ..model.inertia import Array


def friction_series(law: Friction, rates: Sequence[Array]) -> Array:
    """τ_f, τ̇_f, τ̈_f, … (K, …, n) of `law` for K rates: v, a, jerk, … (…, n) each.

    With u = v/s and w = (v/v_s)², t = tanh u, p = 1 − t² and e = exp(−w) satisfy t' = p u', p' = −2 t p u' and
    e' = −e w', so their coefficients follow from each other order by order.
    """
    x = [rate / factorial(k) for k, rate in enumerate(rates)]
    u = [each / law.smoothing for each in x]
    z = [each / law.stribeck_velocity for each in x]
    far = np.exp(-2.0 * np.abs(u[0]))
    t, p = [np.tanh(u[0])], [4.0 * far / (1.0 + far) ** 2]    # 1 − t² without loss of digits
    w, e = [z[0] * z[0]], [np.exp(-z[0] * z[0])]
    for k in range(1, len(x)):
        product = [_coefficient(t, p, m) for m in range(k)]
        w.append(_coefficient(z, z, k))
        t.append(_following(u, p, k))
        p.append(-2.0 * _following(u, product, k))
        e.append(-_following(w, e, k))
    level = [(law.breakaway - law.coulomb) * each for each in e]
    level[0] = law.coulomb + level[0]
    return np.stack([factorial(k) * (law.damping * x[k] + _coefficient(level, t, k)) for k in range(len(x))])


def _following(x: Sequence[Array], y: Sequence[Array], k: int) -> Array:
    """Coefficient k of a function whose derivative is y x'."""
    return np.asarray(sum(j * x[j] * y[k - j] for j in range(1, k + 1)) / k)


def _coefficient(one: Sequence[Array], other: Sequence[Array], k: int) -> Array:
    """Coefficient k of a product."""
    return np.asarray(sum(one[j] * other[k - j] for j in range(k + 1)))
