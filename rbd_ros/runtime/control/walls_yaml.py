"""Virtual walls from YAML, in axes of the root link; m and rad:

    walls:
      - plane: {point: [0, 0, 0.1], normal: [0, 0, 1]}            # the normal points to where the link may be
      - box: {center: [0.5, 0, 0.5], size: [0.6, 0.8, 0.6], rpy: [0, 0, 0], keep: inside}
      - sphere: {center: [0.3, 0.2, 0.4], radius: 0.1, keep: outside}
      - cone: {apex: [0.5, 0, 0.2], axis: [0, 0, 1], half_angle: 0.5, keep: inside}
"""
from __future__ import annotations

import math
import os
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.dynamics.walls import AXES, BOX, CONE, INSIDE, KIND, PLACE, PLANE, RECESS, SIZES, SPHERE, WALL
from ...core.errors import RbdError, shown, unknown_name
from ...core.lie.so3 import from_rpy
from ...core.model.files.yaml_text import read_yaml

Array = NDArray[np.float64]
MOST, FARTHEST = 64, 100.0    # walls; m
KEYS = {"plane": ("point", "normal"), "box": ("center", "size", "keep"), "sphere": ("center", "radius", "keep"),
        "cone": ("apex", "axis", "half_angle", "keep")}
KINDS = {"plane": PLANE, "box": BOX, "sphere": SPHERE, "cone": CONE}
SIZE = (1e-3, FARTHEST)       # of boxes and spheres
ANGLE = (0.05, 1.5)           # half the angle of a cone


def load_walls(path_or_text: str | os.PathLike[str]) -> Array:
    """The walls (n, WALL), see `core.dynamics.walls`, of a YAML file or its text; none for "". They stand where the
    link is when they appear. Raises `RbdError` naming the wall and the error.
    """
    if not path_or_text:
        return np.empty((0, WALL))
    tree, source = read_yaml(path_or_text, "walls")
    entries = tree.get("walls") if isinstance(tree, Mapping) and set(tree) == {"walls"} else None
    if not isinstance(entries, list) or len(entries) > MOST:
        raise RbdError(f"{source}: expected the key 'walls' alone, with a list of at most {MOST}")
    rows = np.empty((len(entries), WALL))
    for index, entry in enumerate(entries):
        try:
            rows[index] = _wall(entry)
        except RbdError as error:
            raise RbdError(f"{source}: wall {index}: {error}") from None
    return rows


def _wall(entry: Any) -> Array:
    if not isinstance(entry, Mapping) or len(entry) != 1:
        raise RbdError(f"expected {{kind: {{…}}}} with one of {', '.join(KEYS)}, got {shown(entry)}")
    (kind, values), = entry.items()
    if kind not in KEYS:
        raise unknown_name("kind", kind, KEYS)
    keys = KEYS[kind]
    if not isinstance(values, Mapping) or (missing := [key for key in keys if key not in values]):
        raise RbdError(f"a {kind} needs {', '.join(keys if not isinstance(values, Mapping) else missing)}")
    for key in values:
        if key not in keys and not (kind == "box" and key == "rpy"):
            raise unknown_name("key", key, keys)
    row = np.zeros(WALL)
    row[KIND], row[INSIDE], row[RECESS] = KINDS[kind], _inside(values.get("keep", "inside")), math.inf
    row[PLACE:SIZES] = _numbers(keys[0], values[keys[0]], 3, -FARTHEST, FARTHEST)
    axes = np.eye(3)
    if kind == "box":
        row[SIZES:RECESS] = 0.5 * _numbers("size", values["size"], 3, *SIZE)
        axes = from_rpy(_numbers("rpy", values.get("rpy", [0.0] * 3), 3, -2.0 * math.pi, 2.0 * math.pi))
    elif kind == "sphere":
        row[SIZES] = _numbers("radius", [values["radius"]], 1, *SIZE)[0]
    else:
        axes = _along(keys[1], values[keys[1]])
        row[SIZES] = _numbers("half_angle", [values["half_angle"]], 1, *ANGLE)[0] if kind == "cone" else 0.0
    row[AXES:PLACE] = axes.ravel()
    return row


def _inside(keep: Any) -> bool:
    if keep not in ("inside", "outside"):
        raise RbdError(f"keep: expected inside or outside, got {shown(keep)}")
    return bool(keep == "inside")


def _numbers(key: str, values: Any, count: int, lower: float, upper: float) -> Array:
    if (not isinstance(values, list) or len(values) != count
            or any(isinstance(x, bool) or not isinstance(x, int | float) or not lower <= x <= upper for x in values)):
        raise RbdError(f"{key}: expected {f'{count} numbers' if count > 1 else 'a number'} from {lower:g} to "
                       f"{upper:g}, got {shown(values if count > 1 else values[0])}")
    return np.array(values, dtype=np.float64)


def _along(key: str, values: Any) -> Array:
    """Axes (3, 3) whose z axis has this direction."""
    z = _numbers(key, values, 3, -1e3, 1e3)
    size = float(np.linalg.norm(z))
    if size < 1e-6:
        raise RbdError(f"{key}: expected a direction, got {shown(values)}")
    z /= size
    x = np.cross(np.eye(3)[int(np.argmin(np.abs(z)))], z)
    x /= np.linalg.norm(x)
    return np.column_stack([x, np.cross(z, x), z])
