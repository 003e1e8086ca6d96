"""Surfaces and frames of constraint files."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...errors import RbdError, shown, unknown_name
from ..robot_model import RobotModel
from ..surfaces.surface import Cylinder, Ellipsoid, Plane, Point, Sphere, Surface, Torus
from .collision_surfaces import FACE_NAMES, collision_shapes

_SURFACES: dict[str, tuple[type[Surface], tuple[str, ...], tuple[str, ...]]] = {    # class, required, optional keys
    "plane": (Plane, (), ("size",)), "point": (Point, (), ()), "sphere": (Sphere, ("radius",), ("inside",)),
    "cylinder": (Cylinder, ("radius",), ("inside",)), "ellipsoid": (Ellipsoid, ("semi_axes",), ("inside",)),
    "torus": (Torus, ("major_radius", "minor_radius"), ("inside",))}


def surface(which: str, entry: Any, model: RobotModel) -> Surface:
    """Surface `which` (first, second) of a contact from its entry; `RbdError` for invalid entries."""
    if not isinstance(entry, Mapping):
        raise RbdError(f"{which}: expected {{link: …, surface: …}}, got {shown(entry)}")
    kind = entry.get("surface")
    if kind == "collision":
        return _collision(which, entry, model)
    if not isinstance(kind, str) or kind not in _SURFACES:
        raise unknown_name("surface", kind, [*_SURFACES, "collision"], which)
    cls, sizes, more = _SURFACES[kind]
    keys = ("link", *sizes, "frame", *more)
    options: dict[str, Any] = {}
    for key, value in entry.items():
        if key == "surface":
            continue
        if key not in keys:
            raise unknown_name("key", key, ["surface", *keys], which)
        if has_truth(value) and key != "inside":
            raise RbdError(f"{which}: {key}: expected a value other than true or false, got {shown(value)}")
        options[key] = frame(f"{which}: frame", value) if key == "frame" else value
    missing = [key for key in ("link", *sizes) if key not in options]
    if missing:
        raise RbdError(f"{which}: a {kind} needs {', '.join(missing)}")
    return cls(**options)


def _collision(which: str, entry: Mapping[Any, Any], model: RobotModel) -> Surface:
    """Surface of a `<collision>` shape in the robot description."""
    for key in entry:
        if key not in ("link", "surface", "face", "shape"):
            raise unknown_name("key", key, ["link", "surface", "face", "shape"], which)
    link, face, index = entry.get("link"), entry.get("face"), entry.get("shape")
    if not isinstance(link, str):
        raise RbdError(f"{which}: a collision shape needs the name of its link")
    if not model.description.urdf:
        raise RbdError(f"{which}: robot '{model.name}' comes from no URDF, so it has no collision shapes: give the "
                       "surface and its sizes")
    shapes = collision_shapes(model.description.urdf, f"{which}: the URDF", link)
    names = [f"{i}: {'box' if len(faces) > 1 else type(faces[0]).__name__.lower()}" for i, faces in enumerate(shapes)]
    if not shapes:
        raise RbdError(f"{which}: link '{link}' has no <collision> sphere, cylinder or box in the robot description: "
                       "give the surface and its sizes")
    if index is None and len(shapes) > 1:
        raise RbdError(f"{which}: link '{link}' has {len(shapes)} collision shapes ({', '.join(names)}): say which "
                       "(shape: 0)")
    index = 0 if index is None else index
    if isinstance(index, bool) or not isinstance(index, int) or not 0 <= index < len(shapes):
        raise RbdError(f"{which}: shape is {shown(index)}, expected the number of one of the collision shapes of "
                       f"'{link}': {', '.join(names)}")
    surfaces = shapes[index]
    if len(surfaces) == 1:
        if face is not None:
            raise RbdError(f"{which}: face is read for a box, but that of '{link}' is a {names[index][3:]}")
        return surfaces[0]
    if face not in FACE_NAMES:
        raise RbdError(f"{which}: face is {shown(face)}, expected which side of the box on '{link}' touches: "
                       f"{', '.join(FACE_NAMES)}")
    return surfaces[FACE_NAMES.index(face)]


def has_truth(value: Any) -> bool:
    """Whether a value contains booleans, which Python would convert to 1 or 0."""
    if isinstance(value, Mapping):
        value = list(value.values())
    return isinstance(value, bool) or (isinstance(value, list) and any(map(has_truth, value)))


def frame(key: str, value: Any) -> Any:
    if not isinstance(value, Mapping):
        raise RbdError(f"{key}: expected {{xyz: […], rpy: […]}}, got {shown(value)}")
    for part in value:
        if part not in ("xyz", "rpy"):
            raise unknown_name(f"key of {key}", part, ("xyz", "rpy"))
    return value.get("xyz", [0.0, 0.0, 0.0]), value.get("rpy", [0.0, 0.0, 0.0])
