"""The runs of the demo side by side in the browser."""
from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ...core.errors import RbdError
from ...core.model.robot_model import RobotModel
from ...view.scene import scene_of
from ...view.serving import LOCAL, end, open_server, serve
from ...view.side_by_side import SideBySide
from ...view.timeline import Timeline


def show(folder: Path, titles: Mapping[str, str], model: RobotModel, urdf: str, port: int, browser: bool) -> int:
    """Serve `<key>.npz` of each key of `titles` until Ctrl-C."""
    server = open_server(LOCAL, port, "rbd demo")
    try:
        SideBySide(server, scene_of(model, urdf), {title: run_of(folder / f"{key}.npz", model, title)
                                                   for key, title in titles.items()}).player.play()
    except BaseException:
        end(server)
        raise
    return serve(server, browser)


def run_of(path: Path, model: RobotModel, title: str) -> Timeline:
    """Read a run written by the demo."""
    try:
        with np.load(path, allow_pickle=False) as file:
            data: dict[str, Any] = {name: file[name] for name in ("t", "q", "effort", "reference")}
    except (OSError, ValueError, KeyError) as error:
        raise RbdError(f"cannot read '{path}': {error}") from None
    return Timeline(model, data["t"] - data["t"][0], data["q"], data["effort"], "Torque", None, data["reference"],
                    title)
