"""The result as text, tables and a self-contained HTML page with measured and predicted efforts per joint."""
from __future__ import annotations

import html
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ...errors import RbdError
from ...text_table import aligned
from ...motion.trajectory import Reference
from ..drive_gains import DriveGains
from ..expected_error import BINS
from ..identified import Identification
from ..regressor_columns import felt_rotors
from ..transmission import PER_MOTOR

Array = NDArray[np.float64]
POINTS = 1500        # points of a curve
WIDTH, HEIGHT = 900, 150
FRICTION_WIDTH, FRICTION_POINTS = 300, 201
EXPECTED = ("Root mean squares: the effort (N m or N), and the error to expect of it: the residual at the same speeds "
            "on motion that was not fitted, and the uncertainty of the parameters. Positions (rad or m): effort or "
            "error over the stiffness of the position controller.")
COLORS = {"measured": "#444444", "description": "#d08000", "identified": "#0060c0"}
STYLE = """body{font:15px/1.45 sans-serif;max-width:980px;margin:2em auto;padding:0 1em;color:#222}
table{border-collapse:collapse;margin:1em 0}td,th{padding:.15em .7em;text-align:right;border-bottom:1px solid #ddd}
td:first-child,th:first-child{text-align:left}.unseen{color:#999}svg{background:#fafafa;border:1px solid #ddd}"""


def summary(result: Identification) -> list[str]:
    """Summary of the result in a few lines."""
    r = result.residual
    data = "on motion that was not fitted" if r.held_out else "on the motion that was fitted"
    lines = [f"{result.prior.name}: {result.duration:.1f} s of motion, filtered at {result.cutoff:.1f} Hz; condition "
             f"number {result.condition:.3g}",
             f"relative residual {data}: {100.0 * r.overall:.2f} %, before {100.0 * r.overall_before:.2f} % "
             f"(without physical consistency {100.0 * r.overall_unconstrained:.2f} %; fitted "
             f"{100.0 * r.training:.2f} %)"]
    if result.load is not None:
        c = ", ".join(f"{x:.4f}" for x in result.load.com)
        lines.append(f"load: {result.load.mass:.4f} kg at ({c}) m in the frame of its link")
    n = sum(estimate.seen for estimate in result.confidence)
    others = "the description's" if result.load is None else "those of a small ball, a guess"
    lines.append(f"{n} of {len(result.confidence)} base parameters are shown by the recording; the others are {others}"
                 if n < len(result.confidence) else f"all {n} base parameters are shown by the recording")
    if result.drives is not None:
        templates = ("by direction, ± {:.3g} N m (or N)", "by direction, viscous, ± {:.3g} N m s/rad (or N s/m)",
                     "by load, {:.3g} of it")
        for template, values in zip(templates, result.drives, strict=True):
            lines += [f"friction of {name} {template.format(value)}" for name, value in
                      zip(result.model.velocity_names, values, strict=True) if value]
    heights = dict(zip(result.model.velocity_names, result.stribeck_height, strict=True))
    return lines + [f"Stribeck's effect: friction of {entry.joint} near rest is {heights[entry.joint]:.4g} N m (or N) "
                    f"above Coulomb's, with a velocity of {entry.velocity:.4g} ± {entry.half_width:.2g} rad/s (or m/s)"
                    for entry in result.stribeck]


def joint_rows(result: Identification) -> list[list[str]]:
    """Per joint: name, residual before and after (%), viscous, Coulomb, rotor, offset."""
    model, r = result.model, result.residual
    individual = _individual(result)
    rotors = felt_rotors(model)
    rows = []
    for j, name in enumerate(model.velocity_names):
        values = []
        for kind, value in (("viscous", model.damping[j]), ("coulomb", model.friction[j]), ("rotor", rotors[j]),
                            ("offset", result.offset[j])):
            values.append(f"{value:.4g}" if f"{kind}({name})" in individual else "–")
        rows.append([name, _percent(r.before[j]), _percent(r.after[j]), *values])
    return rows + _motor_rows(result, individual)


def _motor_rows(result: Identification, individual: set[str]) -> list[list[str]]:
    """Table rows of motors on more than one joint."""
    if result.transmission is None:
        return []
    motors = result.transmission.coupled(result.model)
    rows = []
    for k, name in enumerate(motors.names):
        shown = [f"{x:.4g}" if f"{kind}(motor {name})" in individual else "–"
                 for kind, x in zip(PER_MOTOR, motors.parameters[k::len(motors.names)], strict=True)]
        rows.append([f"motor {name}", "", "", shown[1], shown[2], shown[0], ""])
    return rows


def _individual(result: Identification) -> set[str]:
    """Parameters identified individually, not only in combination with others."""
    involved = result.base.matrix != 0.0
    single = involved.sum(axis=1) == 1
    return {estimate.name for estimate, row, is_single in zip(result.confidence, involved, single, strict=True)
            if estimate.seen and is_single and involved[:, row].sum() == 1}


HEAD = ["joint", "before", "after", "viscous", "Coulomb", "rotor", "offset"]
UNITS = "residual ‖τ − τ̂‖ / ‖τ‖ in %; N m s/rad, N m, kg m² (N s/m, N, kg); – is not shown, or only in combination"


def joint_table(result: Identification) -> list[str]:
    """The table for a terminal."""
    return [*aligned([HEAD, *joint_rows(result)]), f"({UNITS})"]


def _percent(share: float) -> str:
    return f"{100.0 * share:.1f}" if np.isfinite(share) else "–"


def speed_rows(result: Identification) -> list[list[str]]:
    """Per joint: name, and RMS of the residual at each range of speeds, N m or N; the last is the largest speed."""
    speeds = result.validation.by_speed
    return [[name, *(f"{x:.3g}" if np.isfinite(x) else "–" for x in rms), f"{fastest:.3g}"] for name, rms, fastest in
            zip(result.model.velocity_names, speeds.rms, speeds.fastest, strict=True)]


def expected_rows(result: Identification, motion: Reference, stiffness: Array | None) -> list[list[str]]:
    """Per joint: name, RMS of its effort on this motion and of the expected error, N m or N, and with the stiffness
    (nv,) of a position controller, N m/rad or N/m, the RMS position errors without and with feed-forward.
    """
    effort = result.effort(motion.q, motion.v, motion.a)
    expected = result.expected_error(motion.q, motion.v, motion.a)
    rows = []
    for j, name in enumerate(result.model.velocity_names):
        size, error = (float(np.sqrt(np.mean(x[:, j] ** 2))) for x in (effort, expected.total))
        cells = [name, f"{size:.3g}", f"{error:.3g}" if np.isfinite(error) else "not shown"]
        if stiffness is not None:
            cells += [f"{x / stiffness[j]:.2g}" if np.isfinite(x) else "not shown" for x in (size, error)]
        rows.append([*cells, "faster than judged" if expected.outside[j] else ""])
    return rows


def expected_head(stiffness: Array | None) -> list[str]:
    """Column heads of `expected_rows`."""
    position = [] if stiffness is None else ["position error without", "with feed-forward"]
    return ["joint", "effort", "error to expect", *position, ""]


def gain_rows(result: Identification, drives: DriveGains | None) -> list[list[str]]:
    """Per joint: name and gain; for gains from a known load with 95 % interval and the unexplained share of the
    recorded values (%).
    """
    rows = [[name, f"{gain:.5g}"] for name, gain in zip(result.model.velocity_names, result.gains, strict=True)]
    if drives is None:
        return rows
    return [[*row, *([f"{low:.4g} to {high:.4g}", _percent(unexplained)] if gain == determined else ["given", ""])]
            for row, determined, gain, (low, high), unexplained in
            zip(rows, result.gains, drives.gains, drives.interval, drives.residual, strict=True)]


def write_report(result: Identification, path: str | os.PathLike[str], motion: Reference | None = None,
                 stiffness: Array | None = None, drives: DriveGains | None = None) -> None:
    """Write one HTML page; raises `RbdError` on failure. motion, stiffness: see `expected_rows`. drives: the result's
    gains if they are from a known load.
    """
    e = html.escape
    parts = [f"<!DOCTYPE html><html lang='en'><meta charset='utf-8'><title>{e(result.prior.name)}: identification"
             f"</title><style>{STYLE}</style><h1>{e(result.prior.name)}: identification</h1>",
             *(f"<p>{e(line)}</p>" for line in summary(result)),
             "<h2>Joints</h2>", _table(HEAD, joint_rows(result)), f"<p>{e(UNITS)}</p>"]
    if not (result.gains == 1.0).all():
        head = ["joint", "gain", *(["95 % interval", "not explained, %"] if drives is not None else [])]
        source = "" if drives is None else " From a known load, with the share of the values that they leave."
        parts += [f"<h2>Gains</h2><p>Factors from recorded values to N m or N.{source}</p>",
                  _table(head, gain_rows(result, drives))]
    if findings := [*(drives.findings if drives is not None else ()), *result.findings]:
        parts += ["<h2>Findings</h2><ul>", *(f"<li>{e(finding)}</li>" for finding in findings), "</ul>"]
    data = "not fitted" if result.residual.held_out else "fitted"
    parts.append(f"<h2>Efforts, on motion that was {data}</h2><p>" + ", ".join(
        f"<span style='color:{color}'>{name}</span>" for name, color in COLORS.items()) + "; N m or N over samples</p>")
    parts += [f"<h2>Residual by speed, on motion that was {data}</h2><p>Root mean square, N m or N, up to 5, 25, 60 "
              "and 100 % of the largest speed in rad/s or m/s, the last column. – was not shown.</p>",
              _table(["joint", *BINS, "largest speed"], speed_rows(result))]
    if motion is not None:
        parts += [f"<h2>Feed-forward on another motion</h2><p>{e(EXPECTED)}</p>",
                  _table(expected_head(stiffness), expected_rows(result, motion, stiffness))]
    if result.unidentifiable:
        parts.append(f"<h2>Not shown</h2><p>{e(', '.join(result.unidentifiable))}: of the description.</p>")
    parts.append("<h2>Friction</h2><p>N m or N over speed, up to the largest recorded; without offset.</p>")
    for j, name in enumerate(result.model.velocity_names):
        parts.append(f"<h3>{e(name)}</h3>" + _friction_plot(result, j))
    v = result.validation
    for j, name in enumerate(result.model.velocity_names):
        parts.append(f"<h3>{e(name)}</h3>" + _plot([v.measured[:, j], v.before[:, j], v.after[:, j]]))
    rows = [[estimate.name, f"{estimate.prior:.4g}", f"{estimate.value:.4g}", f"{estimate.half_width:.2g}"]
            if estimate.seen else [estimate.name, f"{estimate.prior:.4g}", "not shown", ""]
            for estimate in result.confidence]
    parts += ["<h2>Base parameters</h2><p>95 % intervals reach ± the last column about the value of unconstrained "
              "least squares. SI units; inertias about the origins of the links' frames.</p>",
              _table(["combination", "description", "identified", "±"], rows), "</html>"]
    try:
        Path(path).write_text("\n".join(parts), encoding="utf-8")
    except OSError as error:
        raise RbdError(f"cannot write '{path}': {error.strerror or error}") from None


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    def line(cells: Sequence[str], tag: str) -> str:
        grey = " class='unseen'" if "not shown" in cells else ""
        return f"<tr{grey}>" + "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in cells) + "</tr>"

    return "<table>" + line(head, "th") + "".join(line(row, "td") for row in rows) + "</table>"


def _friction_plot(result: Identification, j: int) -> str:
    """Friction of a joint over its speeds, in both directions."""
    fastest = float(result.validation.by_speed.fastest[j])
    if not fastest > 0.0:
        return "<p>not shown</p>"
    v = np.zeros((FRICTION_POINTS, result.model.nv))
    v[:, j] = fastest * np.linspace(-1.0, 1.0, FRICTION_POINTS) ** 3    # most points near rest
    effort = result.friction.effort(v, np.zeros_like(v))[:, j]
    largest = float(np.abs(effort).max()) or 1.0
    x, y = FRICTION_WIDTH * (0.5 + 0.5 * v[:, j] / fastest), HEIGHT * (0.5 - 0.5 * effort / largest)
    points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, y, strict=True))
    middle, axis = FRICTION_WIDTH / 2, "stroke='#bbb' stroke-width='1'"
    return (f"<svg width='{FRICTION_WIDTH}' height='{HEIGHT + 4}' viewBox='0 -2 {FRICTION_WIDTH} {HEIGHT + 4}'>"
            f"<line x1='0' x2='{FRICTION_WIDTH}' y1='{HEIGHT / 2}' y2='{HEIGHT / 2}' {axis}/>"
            f"<line x1='{middle}' x2='{middle}' y1='0' y2='{HEIGHT}' {axis}/>"
            f"<polyline fill='none' stroke='{COLORS['identified']}' stroke-width='1.5' points='{points}'/>"
            f"<text x='{middle + 4}' y='12' font-size='11'>{largest:.3g}</text>"
            f"<text x='{FRICTION_WIDTH - 44}' y='{HEIGHT / 2 - 4}' font-size='11'>{fastest:.3g}</text></svg>")


def _plot(curves: Sequence[Array]) -> str:
    """Three curves in one frame, labelled with the range."""
    n = len(curves[0])
    rows = np.unique(np.linspace(0, n - 1, min(n, POINTS)).astype(int))
    low, high = (float(f([f(curve) for curve in curves])) for f in (np.min, np.max))
    span = (high - low) or 1.0
    x = WIDTH * rows / max(n - 1, 1)
    lines = []
    order = dict(zip(COLORS, curves, strict=True))
    for name in ("description", "measured", "identified"):
        y = HEIGHT * (1.0 - (order[name][rows] - low) / span)
        points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, y, strict=True))
        lines.append(f"<polyline fill='none' stroke='{COLORS[name]}' stroke-width='1.2' points='{points}'/>")
    return (f"<svg width='{WIDTH}' height='{HEIGHT + 4}' viewBox='0 -2 {WIDTH} {HEIGHT + 4}'>{''.join(lines)}"
            f"<text x='4' y='12' font-size='11'>{high:.3g}</text>"
            f"<text x='4' y='{HEIGHT - 3}' font-size='11'>{low:.3g}</text></svg>")
