"""Sine and cosine of one angle together, inlined: half the time of two calls of the C library.

Cody–Waite reduction by π/2 in two parts and the minimax polynomials on [−π/4, π/4] of fdlibm (`k_sin.c`, `k_cos.c`),
the reduction's remainder included: errors below one unit in the last place (test/lie/test_sincos.py). Angles beyond
`LIMIT`, next to multiples of π/2, and complex ones go to the C library. The notice of fdlibm:

Copyright (C) 1993 by Sun Microsystems, Inc. All rights reserved.
Developed at SunPro, a Sun Microsystems, Inc. business.
Permission to use, copy, modify, and distribute this software is freely granted,
provided that this notice is preserved.
"""
from __future__ import annotations

from typing import Any

import numpy as np

from ..compiled.kernel import kernel

LIMIT = 8e5    # rad: below it, products with the first part of π/2 (33 bits) are exact
NEAR = 5e-10   # rad, times the quadrant's number: closer to its border the 86 bits of π/2 are too few
QUADRANTS = 0.6366197723675814                 # 2/π
FIRST = 1.57079632673412561417                 # the first 33 bits of π/2
SECOND = 6.07710050650619224932e-11            # π/2 less `FIRST`
S1 = -1.66666666666666324348e-01
S2 = 8.33333333332248946124e-03
S3 = -1.98412698298579493134e-04
S4 = 2.75573137070700676789e-06
S5 = -2.50507602534068634195e-08
S6 = 1.58969099521155010221e-10
C1 = 4.16666666666666019037e-02
C2 = -1.38888888888741095749e-03
C3 = 2.48015872894767294178e-05
C4 = -2.75573143513906633035e-07
C5 = 2.08757232129817482790e-09
C6 = -1.13596475577881948265e-11


@kernel
def sincos(x: Any) -> Any:
    """(sin x, cos x)."""
    count = np.rint(QUADRANTS * x.real)
    leading = x.real - FIRST * count
    trailing = SECOND * count
    y = leading - trailing
    if x.imag != 0.0 or not (abs(x.real) < LIMIT and abs(y) >= NEAR * abs(count)):
        return np.sin(x), np.cos(x)
    remainder = (leading - y) - trailing
    z = y * y
    cube = z * y
    half = 0.5 * z
    s = y - ((z * (0.5 * remainder - cube * (S2 + z * (S3 + z * (S4 + z * (S5 + z * S6))))) - remainder) - cube * S1)
    w = 1.0 - half
    c = w + (((1.0 - w) - half) + (z * z * (C1 + z * (C2 + z * (C3 + z * (C4 + z * (C5 + z * C6))))) - y * remainder))
    quadrant = int(count)
    if quadrant & 1:
        s, c = c, -s
    if quadrant & 2:
        return -s, -c
    return s, c
