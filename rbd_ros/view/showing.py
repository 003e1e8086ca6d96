"""The view from Python: `show("arm.urdf", motion)`."""
from __future__ import annotations

import os
from typing import Any

from ..core.model.constraints import ConstraintSet
from ..core.model.robot_model import RobotModel
from .playing import play_in
from .robot_view import RobotView
from .scene import load_scene, scene_of
from .serving import LOCAL, PORT, end, open_server, serve
from .timeline import Timeline, from_motion


def show(description: str | os.PathLike[str], motion: Any = None, model: RobotModel | None = None,
         constraints: ConstraintSet | None = None, host: str = LOCAL, port: int = PORT, browser: bool = True) -> None:
    """Show a robot in the browser until Ctrl-C.

    description: as of `load_urdf`; model: required if it was loaded with non-default options. motion: a result of
    `rbd.optimize_motion` or `rbd.time_optimal`, or a `Timeline`. Raises `RbdError` without viser.
    """
    view = view_of(description, motion, model, constraints, host, port)
    serve(view.server, browser)


def view_of(description: str | os.PathLike[str], motion: Any = None, model: RobotModel | None = None,
            constraints: ConstraintSet | None = None, host: str = LOCAL, port: int = PORT) -> RobotView:
    """The view that `show` serves; end it with `serving.end(view.server)`."""
    scene = load_scene(description) if model is None else scene_of(model, description)
    server = open_server(host, port, scene.model.name)
    try:
        view = RobotView(server, scene, constraints)
        if motion is not None:
            timeline = motion if isinstance(motion, Timeline) else from_motion(scene.model, motion)
            view.player = play_in(view, timeline)
        return view
    except BaseException:
        end(server)
        raise
