"""A running node in the view: torques, mode, rejections and latency, with a stop button."""
from __future__ import annotations

import time
from collections.abc import Callable
from html import escape
from typing import Any, Protocol

import numpy as np

from ..runtime.observed_robot import Observation, ObservedRobot
from ..core.model.inertia import Array
from .dragging import DragHandle
from .drawing import wxyz
from .playing import ghost_of
from .robot_view import RobotView

MODES = {"running": "#009e73", "ramp_in": "#0072b2", "ramp_out": "#0072b2", "waiting": "#d98200", "stale": "#d62728",
         "stopped": "#d62728", "inactive": "#8a8f98"}
STOP = "EMERGENCY STOP"
TARGET, LENGTH = "target", 0.1    # name; length of its axes relative to the robot
FADED = 0.25    # opacity of a robot with outdated pose


class Source(Protocol):
    """Connection to the node."""

    def poll(self, observed: ObservedRobot) -> None:
        """Pass received messages to `observed`."""

    def go_to(self, pose: Array) -> None:
        """Send a goal (4, 4) of the link of node `cartesian`."""

    def emergency_stop(self) -> str:
        """Stop the robot; returns a message."""

    def reset(self, tell: Callable[[str], object]) -> None:
        """Release the stop; `tell` is called with the result."""


class LiveView:
    """View of a running node; call `step` some thirty times per second, in one thread."""

    def __init__(self, view: RobotView, source: Source, observed: ObservedRobot,
                 clock: Callable[[], float] = time.monotonic) -> None:
        self._view, self._source, self._observed, self._clock = view, source, observed, clock
        self._faded, self._said = False, ""
        self._ghost = ghost_of(view)
        self._ghost.show("shapes", False)
        self._haunts = False
        self._target: tuple[Any, DragHandle] | None = None    # the axes of the target, and what drags it
        self._shown = ""
        gui = view.server.gui
        with view.side:
            self._status = gui.add_html("", order=-2.0)    # above the torques
            reset = gui.add_button("reset", order=-1.0, hint="service ~/reset: the node ramps in again")
        stop = view.server.gate.open(stop_button(view.server))
        stop.on_click(lambda _: self._say(source.emergency_stop()))
        reset.on_click(lambda _: source.reset(self._say))
        self.step()

    def step(self) -> None:
        """Process received messages and update the display."""
        self._source.poll(self._observed)
        latest = self._observed.at(self._clock())
        faded = bool(latest.lost)
        if faded != self._faded:
            with self._view.lock:
                self._view.drawing.fade(FADED if faded else None)
            self._faded = faded
        with self._view.lock, self._view.server.atomic():
            if latest.reference is not None:
                self._ghost.move(latest.reference)
            if self._haunts != (latest.reference is not None):
                self._haunts = not self._haunts
                self._ghost.show("shapes", self._haunts)
            self._show_target(latest.target)
            self._view.drawing.push(None if latest.lost else latest.pushed)
        only_command = not np.isfinite(latest.measured).any()
        if latest.q is not None and not latest.lost:
            fill, line = (latest.commanded, None) if only_command else (latest.measured, latest.commanded)
            self._view.move(latest.q, fill, line, "Commanded torque" if only_command else
                            "Measured torque (line: commanded)")
        else:
            unknown = np.full(self._view.model.nv, np.nan)
            self._view.move(self._view.q, unknown, None, "Torque: LOST", latest.lost, lost=True)
        content = status_html(latest, self._observed.node, self._said)
        if content != self._shown:
            self._status.content = self._shown = content

    def _show_target(self, pose: Array | None) -> None:
        """Axes at the target of node `cartesian`, and a handle that sends goals."""
        view = self._view
        if self._target is None:
            if pose is None:
                return
            size = view.drawing.scene.size
            with view.side:
                self._target = (
                    view.server.scene.add_frame("/target", axes_length=LENGTH * size, axes_radius=0.05 * LENGTH * size),
                    DragHandle(view.server, (TARGET,), size, lambda _, goal: self._source.go_to(goal), lambda: None,
                               "a handle at the target of the link: the robot is sent where it is dragged"))
        axes, handle = self._target
        axes.visible = pose is not None
        if pose is not None:
            axes.wxyz, axes.position = wxyz(pose[:3, :3]), pose[:3, 3]
            handle.follow((TARGET,), pose[None])

    def _say(self, text: str) -> None:
        self._said = text


def stop_button(server: Any) -> Any:
    """A large stop button at the bottom of the page, above all other elements."""
    panel = server.gui.add_panel()
    with panel.add_tab(STOP):
        button = server.gui.add_button(STOP, color=(200, 20, 20))
        window, own = f'[data-floating-window]:has([id="{button._impl.uuid}"])', f'[id="{button._impl.uuid}"]'
        server.gui.add_html(
            f"<style>{window} {{position:static!important; box-shadow:none!important}}"
            f"{window} :is([data-dock-griphandle],[data-dock-strip],[data-dock-resize]) {{display:none!important}}"
            f'[style*="display: none"]:has({own}) {{display:block!important; height:0!important}}'    # narrow pages
            f"{own} {{position:fixed!important; z-index:10000; bottom:16px; left:50%; transform:translateX(-50%);"
            "width:min(420px,92vw)!important; height:72px!important; font-size:28px!important; border-radius:8px;"
            "box-shadow:0 2px 12px rgba(0,0,0,0.4)}</style>")
    panel.float(x=0.0, y=0.0)
    panel.expand()
    return button


def status_html(seen: Observation, node: str, message: str) -> str:
    """Mode, latency, rate and rejections; unknown values are omitted."""
    rows = [("node", escape(node))]
    chip = '<b style="background:{};color:#fff;border-radius:3px;padding:2px 8px">{}</b>'
    if seen.silent:
        rows.append(("node is", chip.format("#d62728", "LOST") + f" {escape(seen.silent)}"))
    else:
        rows.append(("mode", chip.format(MODES.get(seen.mode, "#8a8f98"), escape(seen.mode or "?"))))
        rows.append(("status", escape(seen.status)))
        if np.isfinite(seen.latency_us).all():
            rows.append(("latency", f"{seen.latency_us[0]:.0f} µs median, {seen.latency_us[1]:.0f} µs p99"))
        if np.isfinite(seen.rate_hz):
            rows.append(("rate", f"{seen.rate_hz:.0f} Hz"))
        rejected = ", ".join(f"{count} {kind.replace('_', ' ')}" for kind, count in seen.rejections.items())
        rows.append(("rejected", f'<b style="color:#d62728">{escape(rejected)}</b>' if rejected else "nothing"))
    if seen.lost:
        rows.append(("robot is", chip.format("#d62728", "LOST") + f" {escape(seen.lost)}"))
    elif seen.braked:
        rows.append(("robot", chip.format("#d98200", "brakes hold the arm")))
    if seen.touched:
        rows.append(("touched", chip.format("#d98200", f"at {escape(seen.touched)}")))
    if seen.pushed is not None and not seen.lost:
        rows.append(("pushed", f"{np.linalg.norm(seen.pushed[1]):.1f} N on {escape(seen.pushed[0])}"))
    if message:
        rows.append(("", escape(message)))
    cells = "".join(f'<span style="opacity:0.7">{name}</span><span>{value}</span>' for name, value in rows)
    return ('<div class="rbd-live" style="display:grid;grid-template-columns:5em 1fr;gap:4px 8px;padding:8px 10px;'
            f'font:12px/1.4 system-ui,sans-serif">{cells}</div>')
