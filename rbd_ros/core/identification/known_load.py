"""The file of a known load: `body`, `mass`, `com`, `inertia`, as the parameters `payload.*` of the nodes."""
from __future__ import annotations

import os

import numpy as np

from ..errors import RbdError, shown, unknown_name
from ..model.files.yaml_text import read_yaml
from ..model.inertia import Inertia, finite
from ..model.payload import payload

KEYS = ("body", "mass", "com", "inertia")


def read_known_load(path: str | os.PathLike[str]) -> tuple[str, Inertia, str]:
    """Body, load in the frame of its link, and the argument `known`, for `drive_gains`.

    YAML: `body`; `mass`, kg; `com` [x, y, z], m; `inertia` [ixx, iyy, izz, ixy, ixz, iyz] about `com`, kg m². Without
    `inertia`, or without that and `com`, these are unknown. Raises `RbdError` for other keys and values.

        >>> read_known_load("{body: tool, mass: 2.8}")[2]
        'mass'
    """
    tree, source = read_yaml(path, "known load")
    if not isinstance(tree, dict) or not {"body", "mass"} <= tree.keys():
        raise RbdError(f"{source}: expected body and mass of the load, and com and inertia where they are known, got "
                       f"{shown(tree)}")
    for key in tree:
        if key not in KEYS:
            raise unknown_name("key", str(key), KEYS, source)
    if "inertia" in tree and "com" not in tree:
        raise RbdError(f"{source}: inertia is about com, which is missing")
    try:
        xx, yy, zz, xy, xz, yz = finite(tree.get("inertia", [0.0] * 6), (6,), "inertia")
        load = payload(float(finite(tree["mass"], (), "mass")), finite(tree.get("com", [0.0] * 3), (3,), "com"),
                       np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]))
    except RbdError as error:
        raise RbdError(f"{source}: {error}") from None
    return str(tree["body"]), load, "inertia" if "inertia" in tree else "com" if "com" in tree else "mass"
