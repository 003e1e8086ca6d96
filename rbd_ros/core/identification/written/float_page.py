"""The float test as text, a table and an HTML page with the predicted drifts and their intervals."""
from __future__ import annotations

import html
import math
import os
from pathlib import Path

from ...errors import RbdError
from ..float_test import FloatTest, JointFloat
from .report import STYLE, _table

HEAD = ["joint", "verdict", "drift", "from", "to", "missing", "±", "friction", "±", "gain", "±"]
FAR = 3.0    # windows: larger drifts are not told apart
UNITS = ("drift and its 95 % interval in mrad (mm), positive as the joint counts, > and < beyond three windows; "
         "missing torque there and friction in N m (N); gain: true torque over recorded torque")
WIDTH, ROW, LEFT = 900, 26, 140    # of the plot, px
WORDS = {"sinks": "sinks", "climbs": "climbs", "unsure": "may leave the window", "unknown": "is not known"}


def float_summary(result: FloatTest) -> list[str]:
    """The verdict and the remedies, in a few lines."""
    failed = [f"{joint.joint} {WORDS[joint.verdict]}" for joint in result.joints if not joint.passed]
    lines = [f"{result.model.name}, gravity torque alone for {result.time:g} s, one joint at a time: "
             + ("pass: every joint stays within the window" if not failed else f"fail: {', '.join(failed)}")]
    return [*lines, *result.advice]


def float_rows(result: FloatTest) -> list[list[str]]:
    """Per joint the columns of `HEAD`."""
    rows = []
    for joint, window in zip(result.joints, result.window, strict=True):
        torques, far = joint.torques, FAR * float(window)
        gain = (["–", "–"] if torques is None or torques.kind not in ("factor", "both") else
                [f"{torques.gain:.3f}", f"{torques.gain_half_width:.2g}"])
        rows.append([joint.joint, joint.verdict, *(_drift(x, far) for x in (joint.drift, joint.low, joint.high)),
                     *(_number(x, ".3g") for x in (joint.error, joint.half_width, joint.level,
                                                   joint.level_half_width)), *gain])
    return rows


def _drift(value: float, far: float) -> str:
    """A drift in mrad or mm, bounded by ± `far`."""
    if abs(value) > far:
        return f"{'<' if value < 0.0 else '>'} {1e3 * math.copysign(far, value):.0f}"
    return _number(1e3 * value, ".1f")


def _number(value: float, kind: str) -> str:
    return "–" if math.isnan(value) else f"{value + 0.0:{kind}}"


def write_float_page(result: FloatTest, path: str | os.PathLike[str]) -> None:
    """Write one HTML page; raises `RbdError` on failure."""
    e, name = html.escape, html.escape(result.model.name)
    parts = [f"<!DOCTYPE html><html lang='en'><meta charset='utf-8'><title>{name}: float test</title><style>{STYLE}"
             f"</style><h1>{name}: float test</h1>", *(f"<p>{e(line)}</p>" for line in float_summary(result)),
             "<h2>Drifts</h2><p>Predicted drift and 95 % interval of each joint over the accepted window (green).</p>",
             _plot(result), "<h2>Joints</h2>", _table(HEAD, float_rows(result)), f"<p>{e(UNITS)}</p>"]
    if result.findings:
        parts += ["<h2>Findings</h2><ul>", *(f"<li>{e(finding)}</li>" for finding in result.findings), "</ul>"]
    try:
        Path(path).write_text("\n".join([*parts, "</html>"]), encoding="utf-8")
    except OSError as error:
        raise RbdError(f"cannot write '{path}': {error.strerror or error}") from None


def _plot(result: FloatTest) -> str:
    """One row per joint; intervals end at the frame, `FAR` windows from the middle."""
    middle, reach = LEFT + (WIDTH - LEFT) / 2, (WIDTH - LEFT) / 2 - 10
    half = reach / FAR

    def row(i: int, joint: JointFloat) -> str:
        window = float(result.window[i])

        def x(drift: float) -> float:
            return middle + reach * max(-1.0, min(1.0, drift / (FAR * window)))

        y = ROW * (i + 0.5)
        text = f"<text x='4' y='{y + 4}' font-size='13'>{html.escape(joint.joint)}</text>"
        if joint.torques is None:
            return text + f"<text x='{middle + 4}' y='{y + 4}' font-size='12' fill='#999'>not known</text>"
        color = "#0060c0" if joint.passed else "#c03000"
        line = f"<line y1='{y}' y2='{y}' stroke='{color}' x1='{x(joint.low):.1f}' x2='{x(joint.high):.1f}' "
        return f"{text}{line}stroke-width='3'/><circle cx='{x(joint.drift):.1f}' cy='{y}' r='5' fill='{color}'/>"

    height = ROW * len(result.joints)
    rows = "".join(row(i, joint) for i, joint in enumerate(result.joints))
    return (f"<svg width='{WIDTH}' height='{height}' viewBox='0 0 {WIDTH} {height}'>"
            f"<rect x='{middle - half:.1f}' y='0' width='{2.0 * half:.1f}' height='{height}' fill='#dff0df'/>"
            f"<line x1='{middle}' x2='{middle}' y1='0' y2='{height}' stroke='#999'/>{rows}</svg>")
