"""One robot in the browser: its drawing, bars of torque, sliders, switches and findings."""
from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from html import escape
from typing import Any

import numpy as np

from ..core.errors import RbdError
from ..core.model.checks.diagnosis import Finding
from ..core.model.constraints import ConstraintSet
from ..core.model.inertia import Array
from ..core.dynamics.constrained.projection import project
from ..core.motion.collision.collision_model import CollisionModel
from ..core.motion.inverse_kinematics import inverse_kinematics
from .bars import bars_of, html, places_html, places_of
from .collisions import CollisionView
from .dragging import DragHandle
from .drawing import Drawing, ground, place_camera
from .efforts import holding_effort, passive_of
from .loops import held, ties, ties_html
from .playback import Player
from .plot import Plot
from .scene import Scene, start_of
from .sliders import Slider, moved, sliders_of, values_of

CLEAR = 0.4    # opacity of transparent geometry
SIDES = {"oblique": (0.8, -0.8, 0.42), "front": (1.3, 0.0, 0.1), "side": (0.0, -1.3, 0.1), "top": (-0.01, 0.0, 1.3)}


class RobotView:
    """The view of one scene. All callbacks of the browser run under `lock`: models have one workspace."""

    def __init__(self, server: Any, scene: Scene, constraints: ConstraintSet | None = None,
                 findings: Sequence[Finding] = (), actuated: Sequence[str] = (), sliders: bool = True,
                 collisions: CollisionModel | None = None) -> None:
        self.server, self.scene, self.model = server, scene, scene.model
        self.constraints = constraints or ConstraintSet()
        self._passive = passive_of(self.model, actuated)
        self.findings = (*findings, *scene.findings)
        self.lock = threading.RLock()
        self.drawing = Drawing(server, scene)
        self.q, self._problem = self._closed(start_of(self.model))
        self._loops_shown = True
        low, high = self._bounds(collisions)
        place_camera(server.initial_camera, low, high)
        ground(server, 6.0 * scene.size, min(0.0, float(low[2])))
        panel = server.gui.add_panel()
        self.side = panel.add_tab("Robot")
        self._places = places_of(self.model)
        with self.side:
            self._bars, self._place, self._tied = (server.gui.add_html("") for _ in range(3))
            self._plot = Plot(server, self.model, self._passive)
        panel.dock_left()
        panel.set_width(320)
        self.tabs = server.gui.add_tab_group()
        self._sliders = sliders_of(self.model) if sliders else ()
        self._handles: list[Any] = []
        self.player: Player | None = None    # where a motion is played
        self.on_slide: Callable[[], object] = lambda: None    # called when the user moves the robot
        self._dragging: DragHandle | None = None
        if sliders:
            with self.tabs.add_tab("Joints"):
                if not self.constraints.size and self.model.nv:
                    self._dragging = DragHandle(server, self.model.body_names[::-1], scene.size, self.drag,
                                                lambda: self.move(self.q))
                self._handles = self._add_sliders()
        self.collisions = None if collisions is None else CollisionView(
            server, self.tabs, collisions, self.q, scene.size, self.drawing.name, self.lock)
        with self.tabs.add_tab("Show"):
            self._add_switches()
        with self.tabs.add_tab(f"Findings ({len(self.findings)})"):
            server.gui.add_html(findings_html(self.findings))
        self.drawing.label(self.findings)
        self.move(self.q)

    # ---- display

    def move(self, q: Array, effort: Array | None = None, second: Array | None = None, title: str = "",
             note: str = "", lost: bool = False) -> None:
        """Draw a configuration; effort (nv,): of the bars, by default the holding effort. second: of the lines."""
        with self.lock, self.server.atomic():
            self.q = q
            poses = self.drawing.move(q)
            if self.collisions is not None:
                self.collisions.move(q)
            if self._dragging is not None:
                self._dragging.follow(self.model.body_names, poses)
            if self.constraints.size:
                tied = ties(self.model, self.constraints, poses)
                self.drawing.tie(tied, self._loops_shown)
                self._tied.content = ties_html(tied)
            if effort is None:
                effort, remark = holding_effort(self.model, self.constraints, self._passive, q)
                title, note = title or "Gravity torque / limit", note or remark
            bars = bars_of(self.model, effort, second, self._passive)
            self._bars.content = html(bars, title, self._problem or note, lost)
            x, y, z = poses[-1][:3, 3]
            self._place.content = places_html(self._places, q, lost) + (
                '<div class="rbd-place" style="font:12px system-ui,sans-serif;opacity:0.85;padding:4px 10px">'
                f"{escape(self.model.body_names[-1])} at {x:.3f}, {y:.3f}, {z:.3f} m</div>")
            if not lost:
                self._plot.add(q, effort, second)

    def set_sliders(self, q: Array) -> None:
        """Set the sliders to a configuration."""
        for handle, value in zip(self._handles, values_of(self.model, self._sliders, q), strict=True):
            handle.value = value

    def _bounds(self, collisions: CollisionModel | None) -> Array:
        """(2, 3): low and high corner (m) of a box about the robot and its obstacles, but for planes."""
        standing = [] if collisions is None else [each.shape.corners for each in collisions.pieces if each.body < 0 and
                                                  each.shape.kind != "plane"]
        points = np.concatenate([self.scene.bounds(self.q), *standing])
        return np.stack([points.min(axis=0), points.max(axis=0)])

    # ---- user actions

    def slide(self, slider: Slider, value: float) -> None:
        """Handle a moved slider: move the robot, and project it onto its closed loops."""
        with self.lock:
            self.on_slide()
            q, self._problem = self._closed(moved(self.q, slider, value), slider)
            self.move(q)
            if self.constraints.size:
                self.set_sliders(q)

    def drag(self, body: str, pose: Array) -> None:
        """Handle a dragged link: the robot moves to the pose (4, 4), or as near as it gets from where it is."""
        with self.lock:
            self.on_slide()
            try:
                found = inverse_kinematics(self.model, body, pose, self.q, starts=1)
            except RbdError as error:    # where a joint is beyond its limits
                self._problem = str(error)
                self.move(self.q)
                return
            self._problem = "" if found.converged else f"{body}: {found.reason}"
            self.move(found.q)
            self.set_sliders(found.q)

    def _closed(self, q: Array, slider: Slider | None = None) -> tuple[Array, str]:
        """The configuration with closed loops, with this slider fixed if possible; else the last one, and the reason.
        """
        if not self.constraints.size:
            return q, ""
        before = getattr(self, "q", q)
        candidates = [self.constraints]
        if slider is not None and slider.name:
            candidates.insert(0, held(self.constraints, slider.name, float(q[slider.index])))
        for constraints in candidates:
            try:
                return project(self.model, constraints, q).q, ""
            except RbdError as error:
                reason = str(error)
        return before, f"the loops do not close there: {reason.split('. ')[0]}"

    def _add_sliders(self) -> list[Any]:
        gui = self.server.gui
        buttons = gui.add_button_group("all joints", ("start", "random"))

        @buttons.on_click
        def _(event: Any) -> None:
            with self.lock:
                self.on_slide()
                q = start_of(self.model) if event.target.value == "start" else self.model.random_configuration()
                q, self._problem = self._closed(q)
                self.set_sliders(q)
                self.move(q)

        handles = []
        for slider, value in zip(self._sliders, values_of(self.model, self._sliders, self.q), strict=True):
            label = f"{slider.label} ({slider.unit})".replace("_", "_\u200b")    # allows line breaks
            handle = gui.add_slider(label, min=slider.lower, max=slider.upper,
                                    step=slider.step, initial_value=value)
            handle.on_update(lambda event, slider=slider: None if event.client is None
                             else self.slide(slider, event.target.value))
            handles.append(handle)
        if self.model.mimics:
            gui.add_html('<div style="font:12px system-ui,sans-serif;opacity:0.75;padding:4px 10px">'
                         + "<br>".join(escape(f"{mimic.name} = {mimic.multiplier:g} {mimic.source}"
                                              + (f" {mimic.offset:+g}" if mimic.offset else ""))
                                       for mimic in self.model.mimics) + "</div>")
        return handles

    def _add_switches(self) -> None:
        gui, model = self.server.gui, self.model
        sides = self.server.gate.open(gui.add_button_group("look from", tuple(SIDES)))

        @sides.on_click
        def _(event: Any) -> None:
            with self.lock:
                low, high = self._bounds(None if self.collisions is None else self.collisions.collisions)
            with event.client.atomic():
                place_camera(event.client.camera, low, high, SIDES[event.target.value])

        shapes = gui.add_checkbox("geometry", True)
        clear = gui.add_checkbox("geometry transparent", False)
        inertia = gui.add_checkbox("boxes of inertia", False, hint="uniform boxes with each link's mass and inertia")
        masses = gui.add_checkbox("centres of mass", False, hint="black: of links, by mass; orange: of all")
        frames = gui.add_checkbox("link frames", False, hint="x red, y green, z blue")
        labels = gui.add_checkbox("findings at links", False, visible=bool(self.findings))
        collisions = gui.add_checkbox("collision shapes", False, visible=self.collisions is not None)
        loops = gui.add_checkbox("loops and contacts", True, visible=bool(self.constraints.size))
        for handle, group in ((shapes, "shapes"), (masses, "masses"), (frames, "frames"), (labels, "labels")):
            handle.on_update(lambda event, group=group: self._show(group, event.target.value))

        @collisions.on_update
        def _(event: Any) -> None:
            with self.lock:
                assert self.collisions is not None
                self.collisions.show(event.target.value)

        @inertia.on_update
        def _(event: Any) -> None:
            self._show("inertia", event.target.value)
            if event.client is not None:
                clear.value = event.target.value
                self.drawing.fade(CLEAR if clear.value else None)

        @clear.on_update
        def _(event: Any) -> None:
            with self.lock:
                self.drawing.fade(CLEAR if event.target.value else None)

        @loops.on_update
        def _(event: Any) -> None:
            self._loops_shown = event.target.value
            with self.lock:
                self.drawing.tie(ties(model, self.constraints, self.scene.poses(self.q)), self._loops_shown)

    def _show(self, group: str, visible: bool) -> None:
        with self.lock:
            self.drawing.show(group, visible)


def findings_html(findings: Sequence[Finding]) -> str:
    """The list of findings, in their order: worst first."""
    if not findings:
        return '<div style="font:13px system-ui,sans-serif;padding:8px 10px">nothing to complain about</div>'
    colours = {"error": "#d62728", "warning": "#d98200", "note": "inherit"}
    rows = [f'<li style="margin:0 0 8px"><b style="color:{colours[finding.severity]}">{finding.severity}</b> <b>'
            f"{escape(finding.subject)}</b>: {escape(finding.message)}"
            + (f" (line {escape(str(finding.line))})" if finding.line else "")
            + f'<br><span style="opacity:0.7">{escape(finding.fix)}</span></li>' for finding in findings]
    return ('<ul style="font:12px/1.35 system-ui,sans-serif;list-style:none;margin:0;padding:8px 10px;'
            f'overflow-wrap:anywhere">{"".join(rows)}</ul>')
