"""Drawing of a scene on a viser server; all parts of a robot are below one name in its tree."""
from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any
from urllib.parse import quote

import numpy as np

from ..core.lie.so3 import to_quaternion
from ..core.model.checks.diagnosis import Finding
from ..core.model.inertia import Array
from ..core.model.shapes.shapes import Colour, Shape
from .loops import CLOSED, Tie
from .scene import Scene

TIE = {"loop": (204, 121, 167), "contact": (0, 158, 115), "rolling": (0, 158, 115), "sliding": (0, 158, 115)}
OPEN = (214, 39, 40)
PUSH = (213, 94, 0)
FEEBLE, ARROW, LONGEST_ARROW = 2.0, 0.005, 0.6    # N; sizes of the scene per N, and at most


def wxyz(R: Array) -> Array:
    """Quaternion w, x, y, z of a rotation (3, 3), for viser."""
    x, y, z, w = to_quaternion(R)
    return np.array([w, x, y, z])


def rgb(colour: Colour) -> tuple[int, int, int]:
    """Red, green and blue, 0 … 255, of a colour."""
    red, green, blue = (round(255.0 * part) for part in colour[:3])
    return red, green, blue


def place_of(name: str, link: str) -> str:
    """Path of a link in viser's tree, one level below `name`: slashes in the link's name are escaped."""
    return f"{name}/links/{quote(link, safe='')}"


class Drawing:
    """Drawing of one robot. name: root of its tree. tint: one colour for all shapes; offset (3,): position of the
    world's origin, m; only: draw only the shapes of these links (a ghost).
    """

    def __init__(self, server: Any, scene: Scene, name: str = "/robot", tint: Colour | None = None,
                 offset: Sequence[float] = (0.0, 0.0, 0.0),
                 only: Collection[str] | None = None) -> None:
        self._server, self.scene, self.name = server, scene, name
        api = server.scene
        self._root = api.add_frame(name, show_axes=False, position=tuple(offset))
        self._links = [api.add_frame(place_of(name, link), show_axes=False, axes_length=0.12 * scene.size,
                                     axes_radius=0.005 * scene.size) for link in scene.model.body_names]
        self._poses: list[Array | None] = [None] * len(self._links)
        self._labels: list[Any] = []
        self._arrows: dict[str, Any] = {}
        self._ties: dict[str, tuple[Any, ...]] = {}
        wanted = scene.shapes if only is None else {link: scene.shapes[link] for link in only}
        self._drawn = [shape for shapes in wanted.values() for shape in shapes]
        self._shapes = [self._add(f"{place_of(name, link)}/shape_{i}", shape, tint)
                        for link, shapes in wanted.items() for i, shape in enumerate(shapes)]
        self._boxes: list[Any] = []
        self._masses: list[Any] = []
        self._centre: Any = None
        if only is None:
            self._weigh()

    def _weigh(self) -> None:
        """Add boxes of inertia and centres of mass, initially hidden."""
        name, scene, api = self.name, self.scene, self._server.scene
        self._boxes = [self._add(f"{place_of(name, box.link)}/inertia", box.shape) for box in scene.boxes]
        self._masses = [self._mass(box) for box in scene.boxes]
        if scene.centre_of_mass(scene.model.neutral()) is not None:
            self._centre = api.add_icosphere(f"{name}/centre_of_mass", radius=0.022 * scene.size, color=(230, 159, 0))
        self.show("inertia", False)
        self.show("masses", False)

    def _add(self, name: str, shape: Shape, tint: Colour | None = None) -> Any:
        api, colour = self._server.scene, tint or shape.colour
        options: dict[str, Any] = {"color": rgb(colour), "wxyz": wxyz(shape.pose[:3, :3]),
                                   "position": shape.pose[:3, 3], "opacity": colour[3],    # a number: it may change
                                   "cast_shadow": False, "receive_shadow": False}
        if shape.surface is not None:
            return api.add_mesh_simple(name, shape.surface.points.astype(np.float32),
                                       shape.surface.faces.astype(np.uint32), flat_shading=shape.surface.flat,
                                       side="double", **options)
        if shape.kind == "box":
            return api.add_box(name, dimensions=shape.size, **options)
        if shape.kind in ("cylinder", "capsule"):
            return api.add_cylinder(name, radius=shape.size[0], height=shape.size[1], **options)
        return api.add_icosphere(name, radius=shape.size[0], **options)

    def _mass(self, box: Any) -> Any:
        share = box.mass / max(self.scene.model.total_mass, 1e-12)
        return self._server.scene.add_icosphere(
            f"{place_of(self.name, box.link)}/mass", radius=float(0.03 * self.scene.size * share ** (1.0 / 3.0)),
            position=box.pose[:3, 3], color=(213, 94, 0) if box.problem else (20, 20, 20), cast_shadow=False)

    def move(self, q: Array) -> Array:
        """Move to a configuration; returns the poses (nb, 4, 4) of the links."""
        poses = self.scene.poses(q)
        for i, (handle, pose) in enumerate(zip(self._links, poses, strict=True)):
            old = self._poses[i]
            if old is None or not np.array_equal(old[:3, 3], pose[:3, 3]):
                handle.position = pose[:3, 3]
            if old is None or not np.array_equal(old[:3, :3], pose[:3, :3]):
                handle.wxyz = wxyz(pose[:3, :3])
            self._poses[i] = pose
        if self._centre is not None and (centre := self.scene.centre_of_mass(q)) is not None:
            self._centre.position = centre
        return poses

    def show(self, group: str, visible: bool) -> None:
        """Show or hide a group: "shapes", "inertia", "masses" (centres of mass), "labels" (findings), "frames" (of
        links).
        """
        if group == "frames":
            for frame in self._links:
                frame.show_axes = visible
            return
        centre = [] if self._centre is None else [self._centre]
        handles = {"shapes": self._shapes, "inertia": self._boxes, "masses": [*self._masses, *centre],
                   "labels": self._labels}[group]
        for handle in handles:
            handle.visible = visible

    def fade(self, opacity: float | None) -> None:
        """Set the opacity of the geometry; None: as described."""
        for handle, shape in zip(self._shapes, self._drawn, strict=True):
            handle.opacity = shape.colour[3] if opacity is None else opacity

    def label(self, findings: Sequence[Finding]) -> None:
        """Label links with their errors and warnings; those of joints are at the joint's child."""
        specs = {joint.name: joint.child for joint in self.scene.model.description.joints}
        middles = {box.link: box.pose[:3, 3] for box in self.scene.boxes}
        by_link: dict[str, list[Finding]] = {}
        for finding in (finding for finding in findings if finding.severity != "note"):
            for subject in finding.subject.split(", "):
                link = subject if subject in self.scene.model.body_names else specs.get(subject)
                if link is not None:
                    by_link.setdefault(link, []).append(finding)
        for link, of_link in by_link.items():
            topics = dict.fromkeys(f"{finding.severity}: {finding.topic}" for finding in of_link)
            self._labels.append(self._server.scene.add_label(
                f"{place_of(self.name, link)}/finding", f"{link}, {', '.join(topics)}", font_screen_scale=0.8,
                anchor="center-left", position=middles.get(link, np.zeros(3)), visible=False))

    def tie(self, ties: Sequence[Tie], visible: bool) -> None:
        """Draw loops and contacts; open ones in red, with name and a line over the gap."""
        for tie in ties:
            if tie.name not in self._ties:
                self._ties[tie.name] = self._new_tie(tie)
        by_name = {tie.name: tie for tie in ties}
        for name, handles in self._ties.items():
            current = by_name.get(name)
            for handle in handles:
                handle.visible = visible and current is not None and not (handle is handles[1] and current.free)
            if current is None:
                continue
            point, axis, gap, label = handles
            is_open = current.gap > CLOSED
            for handle in (point, axis):
                handle.position, handle.wxyz = current.first, wxyz(current.axes)
                handle.color = OPEN if is_open else TIE[current.kind]
            gap.points = np.stack([current.first, current.second])[None].astype(np.float32)
            gap.visible = label.visible = is_open and visible
            label.position = current.first

    def push(self, pushed: tuple[str, Array] | None) -> None:
        """Draw a force (N, in the link's axes) as an arrow that ends at the link's origin; none below `FEEBLE`."""
        shown = None
        if pushed is not None and (size := float(np.linalg.norm(pushed[1]))) >= FEEBLE:
            shown, force = pushed
            length = min(ARROW * size, LONGEST_ARROW) * self.scene.size
            points = np.array([[-length / size * force, np.zeros(3)]], dtype=np.float32)
            if shown not in self._arrows:
                self._arrows[shown] = self._server.scene.add_arrows(
                    f"{place_of(self.name, shown)}/push", points, PUSH, shaft_radius=0.01 * self.scene.size,
                    head_radius=0.022 * self.scene.size, head_length=0.05 * self.scene.size)
            self._arrows[shown].points = points
        for link, arrow in self._arrows.items():
            arrow.visible = link == shown

    def _new_tie(self, tie: Tie) -> tuple[Any, ...]:
        api, path, size = self._server.scene, f"{self.name}/ties/{quote(tie.name, safe='')}", self.scene.size
        return (api.add_icosphere(f"{path}/point", radius=0.022 * size, color=TIE[tie.kind]),
                api.add_cylinder(f"{path}/axis", radius=0.006 * size, height=0.14 * size, color=TIE[tie.kind]),
                api.add_line_segments(f"{path}/gap", np.zeros((1, 2, 3), dtype=np.float32), np.array(OPEN),
                                      thickness=3.0, thickness_units="screen"),
                api.add_label(f"{path}/name", tie.name, font_screen_scale=0.8, anchor="top-left"))


def ground(server: Any, width: float, height: float) -> None:
    """A grid of this width and at this height (m)."""
    cell, side = (0.1, float(np.ceil(width))) if width < 20.0 else (1.0, 5.0 * float(np.ceil(width / 5.0)))
    server.scene.add_grid("/ground", width=side, height=side, cell_size=cell, section_size=5.0 * cell,
                          cell_color=(226, 229, 233), section_color=(190, 195, 202), position=(0.0, 0.0, height))


def place_camera(camera: Any, low: Array, high: Array, direction: Sequence[float] = (0.8, -0.8, 0.42),
                 farness: float = 1.2) -> None:
    """Point a camera (of one browser, or the initial one) at a box (m) from this direction. farness: distance in
    diagonals of the box.
    """
    middle, reach = 0.5 * (low + high), max(float(np.linalg.norm(high - low)), 0.2)
    camera.position = tuple(middle + farness * reach * np.array(direction))
    camera.look_at = tuple(middle)
