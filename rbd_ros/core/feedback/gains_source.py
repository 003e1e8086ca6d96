"""Gains along a motion as C99, for a local loop or firmware: tables and their interpolation, without dependencies."""
from __future__ import annotations

import re

import numpy as np

from ..errors import RbdError, unknown_name
from ..model.inertia import Array

MOST_SAMPLES, MOST_NUMBERS = 20_000, 500_000
PRECISIONS = {"double": "", "float": "f"}    # suffix of numbers
BODY = """
/* Feedback along the motion at time t (s) since its start: effort[NU] = feed-forward + gain (x - x_d), with the state
   q[N], v[N]. Between the samples of the table, STEP s apart, q_d is a cubic with their velocities, of which v_d is the
   derivative; feed-forward is a cubic too, and gains are linear. Before the start, at times that are no number, and
   after the end the robot is held there, at rest. */
void NAME_feedback(REAL t, const REAL q[N], const REAL v[N], REAL effort[NU])
{
    REAL error[2 * N];
    REAL position = t / STEP;
    const int before = !(position >= ZERO), after = position > LAST;
    if (before) position = ZERO;
    if (after) position = LAST;
    int k = (int)position;
    if (k > SAMPLES - 2) k = SAMPLES - 2;
    const REAL s = position - (REAL)k;
    const REAL *a = table[k], *b = table[k + 1];
    for (int i = 0; i < N; ++i) {
        const REAL jump = b[i] - a[i], c = STEP * a[N + i], d = STEP * b[N + i];
        const REAL e = THREE * jump - TWO * c - d, f = c + d - TWO * jump;
        error[i] = q[i] - (a[i] + s * (c + s * (e + s * f)));
        error[N + i] = before || after ? v[i] : v[i] - (c + s * (TWO * e + THREE * s * f)) / STEP;
    }
    a += 2 * N;
    b += 2 * N;
    for (int j = 0; j < NU; ++j) {
        const REAL jump = b[j] - a[j], c = STEP * a[NU + j], d = STEP * b[NU + j];
        REAL sum = a[j] + s * (c + s * (THREE * jump - TWO * c - d + s * (c + d - TWO * jump)));
        if (before || after) sum = held[after][j];
        for (int i = 0; i < 2 * N; ++i) {
            const int m = 2 * NU + 2 * N * j + i;
            sum += (a[m] + s * (b[m] - a[m])) * error[i];
        }
        effort[j] = sum;
    }
}
"""


def gains_source(table: Array, held: Array, step: float, n: int, inputs: tuple[str, ...], states: tuple[str, ...],
                 name: str, precision: str) -> str:
    """C99 text; table (samples, 2 n + 2 nu + 2 n nu): q, v, effort, its rate and gain of each sample, `step` s apart;
    held (2, nu): efforts at rest at start and end.
    """
    if precision not in PRECISIONS:
        raise unknown_name("precision", precision, PRECISIONS)
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z_]\w*", name, flags=re.ASCII):
        raise RbdError(f"name: expected an identifier of C, got '{name}'")
    if table.size > MOST_NUMBERS:
        raise RbdError(f"the table would have {table.size:,} numbers, expected at most {MOST_NUMBERS:,}: a lower "
                       "rate, or a shorter motion")
    suffix = PRECISIONS[precision]
    numbers = {"ZERO": 0.0, "TWO": 2.0, "THREE": 3.0, "STEP": step, "LAST": float(len(table) - 1)}
    words = {"NAME": name, "REAL": precision, "N": str(n), "NU": str(len(inputs)), "SAMPLES": str(len(table)),
             **{word: _number(x, suffix) for word, x in numbers.items()}}
    rows, at_rest = (",\n".join("    {" + ", ".join(_number(x, suffix) for x in row) + "}" for row in each)
                     for each in (table, held))
    columns = table.shape[1]
    head = [f"/* Gains along a motion of {step * (len(table) - 1):g} s, made by rbd_ros. SI units.",
            f"   q, v: {_listed(states)}.", f"   effort: {_listed(inputs)}. */", "",
            f"void {name}_feedback({precision} t, const {precision} q[{n}], const {precision} v[{n}], "
            f"{precision} effort[{len(inputs)}]);", "",
            f"static const {precision} table[{len(table)}][{columns}] = {{", rows, "};",
            f"static const {precision} held[2][{len(inputs)}] = {{", at_rest, "};"]
    return "\n".join(head) + "\n" + re.sub(r"\b(" + "|".join(words) + r")\b|NAME(?=_)",
                                           lambda match: words[match.group(0)], BODY)


def _number(x: float, suffix: str) -> str:
    return f"{float(np.float32(x)) if suffix else float(x)}{suffix}"


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(names).replace("*/", "")
