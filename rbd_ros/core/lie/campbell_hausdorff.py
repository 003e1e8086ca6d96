"""Baker–Campbell–Hausdorff series on so(3) and se(3), with its first omitted term: P eq. 4."""
from __future__ import annotations

from math import factorial
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..errors import RbdError, shown
from .series import _bernoulli
from .so3 import Array
from .trivialized import group_of

HIGHEST_ORDER = 8


class BCH(NamedTuple):
    """`value` (…, 3) or (…, 6): sum of the terms up to `order`; `error_term`: the term of order + 1."""

    value: Array
    error_term: Array


def bch(X: ArrayLike, Y: ArrayLike, order: int = 4) -> BCH:
    """Z of exp(Z) = exp(X) exp(Y), truncated after `order` (1 … 8); X, Y: (…, 3) of so(3) or (…, 6) of se(3).

    Z = X + Y + [X, Y]/2 + ([X, [X, Y]] + [[X, Y], Y])/12 + … (P eq. 4, corrected). The term of order n is homogeneous
    of degree n in (X, Y). For small X and Y the truncation error is about `error_term`, its leading term. The series
    may diverge for |X| + |Y| above about π (rotation), which a large `error_term` shows; log(exp(X) exp(Y)) is exact.
    Raises `RbdError` for another order, and for X and Y of different groups or wrong shapes.
    """
    if isinstance(order, bool) or not isinstance(order, (int, np.integer)) or not 1 <= order <= HIGHEST_ORDER:
        raise RbdError(f"order: expected a whole number 1 … {HIGHEST_ORDER}, got {shown(order)}")
    group, X = group_of("X", X)
    other, Y = group_of("Y", Y)
    if group is not other:
        raise RbdError(f"X and Y: expected both of one group, got {X.shape} and {Y.shape}")
    X, Y = np.broadcast_arrays(X, Y)
    ad = group.hat if X.shape[-1] == 3 else group.ad

    def applied(matrix: Array, vector: Array) -> Array:
        return np.asarray((matrix @ vector[..., None])[..., 0])

    # (n + 1) Z_{n+1} = [X − Y, Z_n]/2 + Σ_p B_2p/(2p)! W_2p,n with W_j,m = Σ_k ad_{Z_k} W_{j−1},m−k, W_0,0 = X + Y
    numbers = _bernoulli(order)
    difference = ad(X - Y)
    terms, brackets = [X + Y], [ad(X + Y)]
    zero = np.zeros_like(terms[0])
    nested = [{0: terms[0]}]    # W_j,m by j and m
    for n in range(1, order + 1):
        total = 0.5 * applied(difference, terms[-1])
        for j in range(1, n + 1):
            if j == len(nested):
                nested.append({})
            nested[j][n] = sum((applied(brackets[k - 1], nested[j - 1][n - k]) for k in range(1, n + 1)
                                if n - k in nested[j - 1]), start=zero)
            if j % 2 == 0:
                total = total + float(numbers[j] / factorial(j)) * nested[j][n]
        terms.append(total / (n + 1))
        brackets.append(ad(terms[-1]))
    return BCH(np.sum(terms[:order], axis=0), terms[order])
