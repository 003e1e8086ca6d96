"""HTML: torques relative to their limits as bars, and positions."""
from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from html import escape

import numpy as np

from ..core.model.assembly import ROOT_JOINT
from ..core.model.inertia import Array
from ..core.model.joints import is_driven
from ..core.model.robot_model import RobotModel

FULL, NEAR = 1.0, 0.8      # shares of the limit from which bars are red, amber
COLOURS = {"good": "#0072b2", "near": "#e69f00", "over": "#d62728", "unlimited": "#8a8f98", "unknown": "#8a8f98"}
CSS = "display:grid;gap:2px 6px;align-items:center;font:12px/1.25 system-ui,sans-serif;padding:4px 10px"
HEAD = '<div style="font:600 13px system-ui,sans-serif;padding:6px 10px 2px">{}</div>'
NAME = "overflow-wrap:anywhere"    # complete names, wrapped
RIGHT = "text-align:right;white-space:nowrap"
TRACK = "position:relative;height:12px;background:rgba(128,136,148,0.22);border-radius:2px"


@dataclass(frozen=True)
class Bar:
    """A torque (N m, or N) and its limit, inf or 0 for none. second: another torque, shown as a line, NaN for none."""

    name: str
    effort: float
    limit: float
    unit: str
    second: float = float("nan")

    @property
    def share(self) -> float:
        """|effort| / limit; NaN without a limit."""
        return abs(self.effort) / self.limit if 0.0 < self.limit < np.inf else float("nan")

    @property
    def state(self) -> str:
        """A key of COLOURS."""
        if not np.isfinite(self.effort):
            return "unknown"
        if not np.isfinite(self.share):
            return "unlimited"
        return "over" if self.share > FULL else "near" if self.share > NEAR else "good"


def bars_of(model: RobotModel, effort: Array, second: Array | None = None,
            passive: Collection[str] = ()) -> tuple[Bar, ...]:
    """A bar per velocity coordinate of joints that can have a motor; effort, second (nv,)."""
    lengths, names = rate_lengths(model), model.velocity_names
    more = np.full(model.nv, np.nan) if second is None else second
    return tuple(
        Bar(names[i], float(effort[i]), float(model.effort_limit[i]), "N" if lengths[i] else "N m", float(more[i]))
        for i in shown_coordinates(model, passive))


def shown_coordinates(model: RobotModel, passive: Collection[str]) -> list[int]:
    """Velocity coordinates with a bar."""
    return [i for i, (name, driven) in enumerate(zip(model.velocity_names, driven_of(model), strict=True))
            if driven and name not in passive]


@dataclass(frozen=True)
class Place:
    """An angle or length in q: its index, and whether it is an angle."""

    name: str
    index: int
    turns: bool


def places_of(model: RobotModel) -> tuple[Place, ...]:
    """The coordinates in q with a velocity coordinate of the same name, i.e. all except quaternions."""
    return tuple(Place(model.velocity_names[joint.idx_v + i], joint.idx_q + i, not model._is_length[joint.idx_q + i])
                 for joint in model.joints if joint.nq == joint.nv for i in range(joint.nq))


def places_html(places: Sequence[Place], q: Array, lost: bool = False) -> str:
    """A table of positions: angles in rad and degrees, lengths in m and mm."""
    rows = "".join(
        f'<div style="{NAME}">{escape(place.name)}</div>' + "".join(
            f'<div style="{RIGHT}">{"–" if lost else text}</div>' for text in (
                (f"{q[place.index]:.3f} rad", f"{np.degrees(q[place.index]):.1f}°") if place.turns
                else (f"{q[place.index]:.4f} m", f"{1e3 * q[place.index]:.1f} mm"))) for place in places)
    return HEAD.format("Position") + (f'<div class="rbd-places" style="{CSS};grid-template-columns:'
                                      f'1fr max-content 5.5em;max-height:40vh;overflow:auto">{rows}</div>')


def driven_of(model: RobotModel) -> list[bool]:
    """Per velocity coordinate whether it can have a motor, unlike a floating base."""
    return [joint.name != ROOT_JOINT and is_driven(joint.type) for joint in model.joints for _ in range(joint.nv)]


def rate_lengths(model: RobotModel) -> list[bool]:
    """Per velocity coordinate whether its effort is a force."""
    flags: list[bool] = []
    for joint in model.joints:
        if joint.nq == 7 and joint.nv == 6:    # free: v = (ω, v)
            flags += [False] * 3 + [True] * 3
        elif joint.nq == joint.nv:
            flags += [bool(length) for length in model._is_length[joint.idx_q:joint.idx_q + joint.nq]]
        else:
            flags += [False] * joint.nv
    return flags


def html(bars: Sequence[Bar], title: str, note: str = "", lost: bool = False) -> str:
    """A table of bars. lost: grey, for outdated values."""
    scale = max((abs(bar.effort) for bar in bars if bar.state == "unlimited"), default=0.0) or 1.0
    over = sum(bar.state == "over" for bar in bars)
    head = HEAD.format(escape(title) + (
        f' <span style="color:{COLOURS["over"]}">{over} over the limit</span>' if over else ""))
    rows = "".join(_row(bar, scale, lost) for bar in bars)
    foot = f'<div style="font:11px system-ui,sans-serif;opacity:0.75;padding:0 10px 6px">{escape(note)}</div>'
    return (f'{head}<div class="rbd-bars" style="{CSS};grid-template-columns:minmax(3em,9em) 1fr max-content 4.2em;'
            f'max-height:60vh;overflow:auto'
            f'{";opacity:0.35;filter:grayscale(1)" if lost else ""}">{rows}</div>{foot if note else ""}')


def _row(bar: Bar, scale: float, lost: bool) -> str:
    known = bar.state != "unknown"
    reach = bar.limit if np.isfinite(bar.share) else scale
    part = min(abs(bar.effort) / reach, 1.0) if known else 0.0
    left = 50.0 - 50.0 * part if known and bar.effort < 0.0 else 50.0
    share = f"{100.0 * bar.share:.0f} %" if np.isfinite(bar.share) else "–" if known else ""
    line = ""
    if np.isfinite(bar.second):
        position = 50.0 + 50.0 * min(max(bar.second / reach, -1.0), 1.0)
        line = (f'<div title="commanded {bar.second:.4g} {bar.unit}" style="position:absolute;'
                f'left:calc({position:.1f}% - 1px);width:2px;top:-2px;bottom:-2px;background:currentColor"></div>')
    value = f"{_short(bar.effort)} {bar.unit}" if known and not lost else "–"
    mark, colour = (" !", COLOURS["over"]) if bar.state == "over" else ("", "inherit")
    return (f'<div style="{NAME}">{escape(bar.name)}</div>'
            f'<div style="{TRACK}"><div style="position:absolute;left:{left:.1f}%;width:{50.0 * part:.1f}%;height:100%;'
            f'border-radius:2px;background:{COLOURS[bar.state]}"></div>'
            '<div style="position:absolute;left:50%;width:1px;height:100%;background:#9aa0a8"></div>'
            f'{line}</div><div data-state="{bar.state}" style="{RIGHT};color:{colour}">{value}</div>'
            f'<b style="{RIGHT};color:{colour}">'
            f"{share if not lost else ''}{mark}</b>")


def _short(value: float) -> str:
    text = f"{value:.1f}" if abs(value) < 999.5 else f"{value:.0f}"
    return "0.0" if text == "-0.0" else text
