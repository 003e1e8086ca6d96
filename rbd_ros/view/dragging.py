"""A handle at a link, which users drag and turn: the robot follows by inverse kinematics."""
from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from ..core.errors import RbdError
from ..core.lie import se3, so3
from ..core.model.inertia import Array
from .drawing import wxyz

NOTHING = "nothing"
SIZE = 0.25    # of the handle, relative to that of the robot


class DragHandle:
    """drag: called with the link and the pose (4, 4) to which a user drags it."""

    def __init__(self, server: Any, links: Sequence[str], size: float, drag: Callable[[str, Array], None],
                 place: Callable[[], None], hint: str = "a handle at this link: the joints follow, within their limits",
                 path: str = "/handle") -> None:
        """place: called when the user takes another link: to call `follow`. hint: what the handle does. path: in
        viser's tree.
        """
        self._drag, self._place = drag, place
        self._held = False
        self._asked: tuple[Any, Any] | None = None
        self._worker = ThreadPoolExecutor(1, "rbd view drag")
        self._link = server.gui.add_dropdown("drag", (NOTHING, *links), initial_value=NOTHING, hint=hint)
        self._handle = server.scene.add_transform_controls(path, scale=SIZE * size, depth_test=False,
                                                           visible=False)

        @self._link.on_update
        def _(_event: Any) -> None:
            self._handle.visible = self._link.value != NOTHING
            place()

        @self._handle.on_update
        async def _(event: Any) -> None:    # in the order of the user's movements
            phase = getattr(event, "phase", "update")
            if phase == "update":
                self._asked = event.target.wxyz, event.target.position
            self._held = True
            self._worker.submit(self._answer, phase == "end")

    @property
    def chosen(self) -> str:
        """The link with the handle, or `NOTHING`."""
        return str(self._link.value)

    def choose(self, link: str) -> None:
        """Put the handle at this link."""
        self._link.value = link
        self._handle.visible = link != NOTHING

    def rename(self, links: Sequence[str]) -> None:
        """Offer these links; the handle stays where it is, if its link is among them."""
        if tuple(self._link.options) != (NOTHING, *links):
            chosen = self.chosen
            self._link.options = (NOTHING, *links)
            self.choose(chosen if chosen in links else NOTHING)

    def _answer(self, released: bool) -> None:
        """To the latest place of the handle; those in between are left out."""
        asked, self._asked = self._asked, None
        if asked is not None and self._link.value != NOTHING:
            with contextlib.suppress(RbdError):    # numbers that are no pose
                self._drag(self._link.value, dragged_to(*asked))
        if released:
            self._held = False
            self._place()

    def follow(self, names: Sequence[str], poses: Array) -> None:
        """Put the handle where its link is, unless a user holds it."""
        if self._link.value != NOTHING and not self._held:
            pose = poses[names.index(self._link.value)]
            self._handle.wxyz, self._handle.position = wxyz(pose[:3, :3]), pose[:3, 3]


def dragged_to(quaternion: Any, position: Any) -> Array:
    """The pose (4, 4) of a quaternion w, x, y, z and a position."""
    return se3.from_rotation(so3.from_quaternion(np.roll(quaternion, -1)), position)
