"""Drawing data of a robot: shapes by link, boxes of inertia, and poses at a configuration."""
from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..core.dynamics.energy import center_of_mass
from ..core.dynamics.kinematics import forward_kinematics
from ..core.errors import RbdError, RbdWarning
from ..core.model.checks.diagnosis import Finding
from ..core.model.files.urdf import load_urdf
from ..core.model.files.xml_tree import file_of, parse_xml, read_text
from ..core.model.inertia import Array
from ..core.model.robot_model import RobotModel
from ..core.model.shapes.shapes import Shape
from .geometry.inertia_boxes import InertiaBox, inertia_boxes
from .geometry.skeleton import size_of, skeleton
from .geometry.visuals import read_visuals


@dataclass(frozen=True, eq=False)
class Scene:
    """shapes: by link. size: m, reference length of markers. findings: about replaced shapes."""

    model: RobotModel
    shapes: Mapping[str, tuple[Shape, ...]]
    boxes: tuple[InertiaBox, ...]
    size: float
    findings: tuple[Finding, ...]

    def poses(self, q: Array) -> Array:
        """Poses (nb, 4, 4) of `model.body_names` in the world."""
        return forward_kinematics(self.model, q)

    def centre_of_mass(self, q: Array) -> Array | None:
        """Centre of mass (3,), m, of all moving links; None without mass."""
        try:
            return center_of_mass(self.model, q)
        except RbdError:
            return None

    def bounds(self, q: Array) -> Array:
        """(2, 3): low and high corner (m) of a box about all shapes, or about the origins of links without any."""
        corners = [np.zeros((1, 3))]
        for link, pose in zip(self.model.body_names, self.poses(q), strict=True):
            corners += [points @ pose[:3, :3].T + pose[:3, 3]
                        for points in [np.zeros((1, 3)), *(shape.corners for shape in self.shapes[link])]]
        points = np.concatenate(corners)
        return np.stack([points.min(axis=0), points.max(axis=0)])


def load_scene(path_or_xml: str | os.PathLike[str], progress: Callable[[str], object] = lambda link: None,
               **options: Any) -> Scene:
    """The scene of a description; path and options as of `load_urdf`. progress is called with the name of each link
    before its shapes are read.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RbdWarning)    # shown by the doctor in the view
        model = load_urdf(path_or_xml, **options)
    return scene_of(model, path_or_xml, progress)


def scene_of(model: RobotModel, path_or_xml: str | os.PathLike[str],
             progress: Callable[[str], object] = lambda link: None) -> Scene:
    """The scene of a model loaded from this description."""
    text, source = read_text(path_or_xml)
    boxes = inertia_boxes(model.description.links)
    of_link = {box.link: box.shape for box in boxes}
    visuals = read_visuals(parse_xml(text, source), file_of(path_or_xml), of_link.get, progress)
    shapes = {link: visuals.shapes.get(link, ()) for link in model.body_names}
    if not any(shapes.values()):
        shapes = skeleton(model.description)
    findings = tuple(Finding("note", "not drawn as described", link, why, "correct the path, or source the workspace "
                             "that has the package; dynamics does not read meshes") for link, why in visuals.notes)
    return Scene(model, shapes, boxes, size_of(model.description), findings)


def start_of(model: RobotModel) -> Array:
    """Initial positions (nq,): zero, or the limit nearest to it; the middle of limits that exclude zero."""
    q = model.neutral()
    low, high = model.position_lower, model.position_upper
    for i in np.flatnonzero(((q < low) | (q > high)) & (low <= high)):
        both = np.isfinite(low[i]) and np.isfinite(high[i])
        q[i] = 0.5 * (low[i] + high[i]) if both else np.clip(q[i], low[i], high[i])
    for first in model._quaternions:
        q[first:first + 4] = (0.0, 0.0, 0.0, 1.0)
    return q
