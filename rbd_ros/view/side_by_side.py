"""Several recorded runs of one robot side by side, synchronised, each with a ghost at the reference."""
from __future__ import annotations

import threading
from typing import Any

import numpy as np

from ..core.errors import RbdError
from ..core.model.checks.diagnosis import moving_links
from .bars import bars_of, html
from .drawing import Drawing, ground, place_camera
from .playback import Player
from .playing import GHOST, caption
from .scene import Scene
from .timeline import Timeline


class SideBySide:
    """runs: title → timeline with `reference` and `effort`."""

    def __init__(self, server: Any, scene: Scene, runs: dict[str, Timeline]) -> None:
        if not runs:
            raise RbdError("there are no runs to show")
        self._server, self._runs, self._lock = server, runs, threading.RLock()
        corners = [scene.bounds(run.q[i]) for run in runs.values() for i in (0, len(run.q) // 2, -1)]
        low, high = np.min([c[0] for c in corners], axis=0), np.max([c[1] for c in corners], axis=0)
        step = 1.15 * max(float(high[1] - low[1]), 0.5 * scene.size)
        offsets = [np.array([0.0, (i - 0.5 * (len(runs) - 1)) * step, 0.0]) for i in range(len(runs))]
        self._drawings, self._ghosts, self._bars = [], [], []
        panel = server.gui.add_panel()
        with panel.add_tab("Torque and error"):
            for _ in runs:
                self._bars.append(server.gui.add_html(""))
        panel.dock_left()
        panel.set_width(320)
        moving = moving_links(scene.model.description)
        for i, (title, offset) in enumerate(zip(runs, offsets, strict=True)):
            self._drawings.append(Drawing(server, scene, f"/run_{i}", offset=tuple(offset)))
            self._ghosts.append(Drawing(server, scene, f"/reference_{i}", GHOST, tuple(offset), moving))
            caption(server, f"/run_{i}/title", title, (0.0, 0.0, float(high[2]) + 0.12 * scene.size))
        ground(server, 6.0 * scene.size + step * len(runs), min(0.0, float(low[2])))
        place_camera(server.initial_camera, low + offsets[0], high + offsets[-1], (1.0, 0.0, 0.3), 1.4)
        server.gui.add_markdown("Solid: the robot. Ghost: the reference.")
        ghosts = server.gui.add_checkbox("ghosts", True)
        ghosts.on_update(lambda event: self._show_ghosts(event.target.value))
        self.player = Player(server, max(run.duration for run in runs.values()), self.draw, self._lock, loop=True)
        self.draw(0.0)

    def draw(self, t: float) -> None:
        """All runs at time t (s)."""
        with self._lock, self._server.atomic():
            for i, (title, run) in enumerate(self._runs.items()):
                self._drawings[i].move(run.at(t))
                note = ""
                if run.reference is not None:
                    self._ghosts[i].move(run.at(t, run.reference))
                    error = run.model.difference(run.at(t, run.reference), run.at(t))
                    note = f"error now {np.sqrt(np.mean(error**2)):.4f}, in all {rms(run):.4f} rad (RMS over joints)"
                effort = run.effort_at(t, run.effort)
                bars = bars_of(run.model, np.full(run.model.nv, np.nan) if effort is None else effort)
                self._bars[i].content = html(bars, title, note)

    def _show_ghosts(self, visible: bool) -> None:
        with self._lock:
            for ghost in self._ghosts:
                ghost.show("shapes", visible)


def rms(run: Timeline) -> float:
    """RMS error of all joints over the run, rad."""
    assert run.reference is not None
    return float(np.sqrt(np.mean(run.model.difference(run.reference, run.q) ** 2)))
