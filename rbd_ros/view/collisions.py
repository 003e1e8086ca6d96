"""Collision shapes and obstacles in the view: red where they hit, the nearest points of the nearest pair, and obstacles
that are placed and dragged.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from html import escape
from typing import Any
from urllib.parse import quote

import numpy as np
import yaml

from ..core.lie import se3
from ..core.model.inertia import Array
from ..core.model.shapes.shapes import Shape
from ..core.motion.collision.clearance import Clearance
from ..core.motion.collision.collision_model import CollisionModel
from ..core.motion.collision.obstacles import SIZES, read_obstacles
from ..core.motion.collision.pieces import WORLD, Piece, pieces_of_shapes
from ..runtime.planning.collision_markers import HIT, Solid, solids
from ..runtime.planning.obstacle_messages import CUBE, CYLINDER, SPHERE
from .bars import COLOURS, HEAD
from .drawing import place_of, rgb, wxyz
from .dragging import DragHandle
from .sliders import rpy_of

NEAREST = (214, 39, 40)
NEW: dict[str, dict[str, Any]] = {"box": {"size": [0.2, 0.2, 0.2]}, "sphere": {"radius": 0.1},
                                  "cylinder": {"radius": 0.1, "length": 0.4}, "capsule": {"radius": 0.1, "length": 0.3}}


class CollisionView:
    """Drawing and tab of a collision model in a view."""

    def __init__(self, server: Any, tabs: Any, collisions: CollisionModel, q: Array, size: float, root: str,
                 lock: Any) -> None:
        """q (nq,): shown first; size: m, of the scene; root: of the robot's tree."""
        self._server, self._root, self._lock, self._size, self._q = server, root, lock, size, q
        self.collisions = collisions
        self.on_change: Callable[[], object] = lambda: None    # called after the user changed the obstacles
        self._handles: dict[str, list[tuple[Any, Solid]]] = {}    # by the names of pieces
        self._shown = False
        self._red: set[str] = set()
        self._line = server.scene.add_line_segments("/nearest", np.zeros((1, 2, 3), dtype=np.float32),
                                                    np.array(NEAREST), thickness=3.0, thickness_units="screen")
        with tabs.add_tab("Obstacles"):
            self.nearest = server.gui.add_html("")
            self._add_controls()
            self.text = server.gui.add_html("")
        self._draw()

    # ---- display

    def move(self, q: Array) -> None:
        """Colour what hits at a configuration, and draw the nearest points."""
        self._q = q
        found = self.collisions.closest(q)
        hits = np.flatnonzero(found.distances <= 0.0)
        red = {name for k in hits for name in found.pairs[k]}
        for name in red ^ self._red:
            for handle, solid in self._handles.get(name, []):
                handle.color = rgb(HIT if name in red else solid.colour)
        self._red = red
        self._visible()
        self._line.visible = bool(len(found.distances))
        if len(found.distances):
            k = int(np.argmin(found.distances))
            self._line.points = found.points[k][None].astype(np.float32)
        self.nearest.content = nearest_html(found.pairs, found.distances)

    def show(self, visible: bool) -> None:
        """Show or hide the shapes of the robot; those that hit are always shown."""
        self._shown = visible
        self._visible()

    def _visible(self) -> None:
        for name, handles in self._handles.items():
            for handle, solid in handles:
                handle.visible = self._shown or solid.group != "robot" or name in self._red

    def _draw(self) -> None:
        """Draw all pieces anew."""
        for handles in self._handles.values():
            for handle, _ in handles:
                handle.remove()
        self._handles, self._red = {}, set()
        for k, solid in enumerate(solids(self.collisions)):
            path = (f"{place_of(self._root, solid.frame)}/collision_{k}" if solid.group != "obstacles" else
                    f"/obstacles/{quote(solid.piece, safe='')}/{k}")
            self._handles.setdefault(solid.piece, []).append((self._add(path, solid), solid))
        self.text.content = ('<pre style="font-size:11px;padding:4px 10px;overflow:auto;max-height:30vh">'
                             f"{escape(obstacles_yaml(self.obstacles))}</pre>")

    def _add(self, path: str, solid: Solid) -> Any:
        api, (across, _, length) = self._server.scene, solid.scale
        options = {"color": rgb(solid.colour), "opacity": solid.colour[3], "wxyz": wxyz(solid.pose[:3, :3]),
                   "position": solid.pose[:3, 3], "cast_shadow": False, "receive_shadow": False}
        if solid.kind == CUBE:
            return api.add_box(path, dimensions=solid.scale, **options)
        if solid.kind == SPHERE:
            return api.add_icosphere(path, radius=0.5 * across, **options)
        if solid.kind == CYLINDER:
            return api.add_cylinder(path, radius=0.5 * across, height=length, **options)
        return api.add_mesh_simple(path, solid.points.astype(np.float32), np.arange(len(solid.points), dtype=np.uint32
                                                                                    ).reshape(-1, 3),
                                   flat_shading=True, side="double", **options)

    # ---- obstacles

    @property
    def obstacles(self) -> tuple[Piece, ...]:
        """The obstacles that stand there now."""
        return tuple(each for each in self.collisions.pieces if each.body < 0 and not each.own)

    def place(self, name: str, pose: Array) -> None:
        """Put an obstacle at a pose (4, 4), of several pieces the first of them."""
        here = next((each.shape.pose for each in self.obstacles if each.link == name), pose)
        moved = pose @ se3.inverse(here)
        self._change([replace(each, shape=replace(each.shape, pose=moved @ each.shape.pose)) if each.link == name else
                      each for each in self.obstacles])

    def add(self, kind: str) -> str:
        """Add an obstacle of this shape beside the robot; its name."""
        names = {each.link for each in self.collisions.pieces}
        name = next(f"{kind}_{k}" for k in range(len(names) + 1) if f"{kind}_{k}" not in names)
        entry = {"name": name, "shape": kind, "frame": [self._size, 0.0, 0.5 * self._size], **NEW[kind]}
        self._change([*self.obstacles, *pieces_of_shapes(read_obstacles([entry]), -1)])
        return name

    def remove(self, name: str) -> None:
        """Take an obstacle away."""
        self._change([each for each in self.obstacles if each.link != name])

    def _change(self, obstacles: Sequence[Piece]) -> None:
        with self._lock:
            others = [each for each in self.collisions.pieces if each.own or each.body >= 0]
            self.collisions = CollisionModel(self.collisions.model, [*others, *obstacles], self.collisions.allowed)
            self._draw()
            self._dragging.rename(list(dict.fromkeys(each.link for each in obstacles)))
            self.move(self._q)

    def _add_controls(self) -> None:
        gui = self._server.gui
        new = gui.add_button_group("add", tuple(NEW))
        names = list(dict.fromkeys(each.link for each in self.obstacles))
        self._dragging = DragHandle(self._server, names, self._size, self.place, self._follow,
                                    "a handle at this obstacle", "/obstacle_handle")
        remove = gui.add_button("remove it", hint="the obstacle with the handle")

        @new.on_click
        def _(event: Any) -> None:
            name = self.add(event.target.value)
            self._dragging.choose(name)
            self._follow()

        @remove.on_click
        def _(_event: Any) -> None:
            self.remove(self._dragging.chosen)
            self.on_change()

    def _follow(self) -> None:
        with self._lock:
            obstacles = self.obstacles
            if obstacles:
                self._dragging.follow([each.link for each in obstacles],
                                      np.array([each.shape.pose for each in obstacles]))
            self.on_change()


def nearest_html(pairs: Sequence[tuple[str, str]], distances: Array, most: int = 5) -> str:
    """HTML list of the nearest pairs: distances in mm, or depths in red."""
    rows = ""
    for k in np.argsort(distances)[:most]:
        hits = distances[k] <= 0.0
        style = f' style="color:{COLOURS["over"]};font-weight:600"' if hits else ""
        rows += (f"<div{style}>{escape(' – '.join(pairs[k]))}: {'depth ' if hits else ''}"
                 f"{1e3 * abs(distances[k]):.1f} mm</div>")
    return HEAD.format("Nearest") + (f'<div class="rbd-nearest" style="font:12px system-ui,sans-serif;'
                                     f'padding:4px 10px">{rows or "no pairs are compared"}</div>')


def clearance_html(found: Clearance) -> str:
    """HTML: whether a motion hits."""
    if found.clear:
        return HEAD.format("The motion hits nothing")
    return HEAD.format(f'<span style="color:{COLOURS["over"]}">{escape(found.reason)} at {found.time:.3g} s</span>')


def obstacles_yaml(obstacles: Sequence[Piece]) -> str:
    """The YAML text of obstacles, as `CollisionModel.with_obstacles` and topic ~/obstacles take it."""
    entries = [{"name": each.name, **_entry(each.shape)} for each in obstacles]
    return yaml.safe_dump({"obstacles": entries}, sort_keys=False, default_flow_style=None, width=100)


def _entry(shape: Shape) -> dict[str, Any]:
    assert shape.link == WORLD
    sizes: dict[str, Any] = {}
    if shape.surface is not None:
        sizes["points"] = shape.surface.points.round(6).tolist()
    elif shape.kind == "box":
        sizes["size"] = [float(x) for x in shape.size]
    else:
        sizes = dict(zip(SIZES[shape.kind], map(float, shape.size), strict=True))
    return {"shape": shape.kind, **sizes, "frame": {
        part: (values.round(6) + 0.0).tolist() for part, values in (    # without −0.0
            ("xyz", shape.pose[:3, 3]), ("rpy", rpy_of(shape.pose[:3, :3])))}}


def certified(collisions: CollisionModel, q: Array, t: Array) -> Clearance:
    """The certificate of a motion through positions q (N, nq) at times t (N,), connected by straight lines."""
    if len(q) < 2:
        return collisions.certify(np.repeat(q, 2, axis=0))
    found = collisions.certify(q)
    return found._replace(time=float(np.interp(found.time, np.arange(len(t)), t)))
