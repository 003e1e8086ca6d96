"""A motion in the view: pose and torque bars along it, with a ghost at the reference."""
from __future__ import annotations

from typing import Any

from ..core.model.checks.diagnosis import moving_links
from ..core.model.shapes.shapes import Colour
from .collisions import certified, clearance_html
from .drawing import Drawing
from .playback import Player
from .robot_view import RobotView
from .timeline import Timeline

GHOST: Colour = (0.35, 0.65, 0.95, 0.3)


def play_in(view: RobotView, timeline: Timeline, loop: bool = False) -> Player:
    """Add the tab with the controls, and draw the first pose."""
    ghost = None if timeline.reference is None else ghost_of(view)

    def draw(t: float) -> None:
        view.move(timeline.at(t), timeline.effort_at(t, timeline.effort), timeline.effort_at(t, timeline.second),
                  "" if timeline.effort is None else timeline.what + (
                      "" if timeline.second is None else " (line: the model's)"))
        view.set_sliders(timeline.at(t))
        if ghost is not None:
            ghost.move(timeline.at(t, timeline.reference))

    with view.tabs.add_tab("Motion"):
        view.server.gui.add_markdown(f"`{timeline.source[:60].replace('`', ' ')}`, {timeline.duration:.3g} s")
        checked = view.server.gui.add_html("", visible=view.collisions is not None)
        player = Player(view.server, timeline.duration, draw, view.lock, loop)

    def check() -> None:
        assert view.collisions is not None
        checked.content = clearance_html(certified(view.collisions.collisions, timeline.q, timeline.t))

    if view.collisions is not None:
        view.collisions.on_change = check
        check()

    def pause() -> None:
        player.pause()
        if ghost is not None:
            ghost.move(timeline.at(player.playback.position, timeline.reference))

    view.on_slide = pause
    with view.lock:
        draw(0.0)
    return player


def ghost_of(view: RobotView) -> Drawing:
    """A second, transparent robot at the reference."""
    return Drawing(view.server, view.scene, "/reference", GHOST, only=moving_links(view.model.description))


def caption(server: Any, name: str, text: str, position: Any) -> Any:
    """A label in the scene."""
    return server.scene.add_label(name, text, position=tuple(position), anchor="bottom-center", depth_test=False)
