"""A model from a product of exponentials: joint screws, poses of the bodies at zero, inertias (P §4, M eq. 3–5)."""
from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from ...errors import RbdError, shown, unknown_name
from ...lie import se3
from ..assembly import Description
from ..inertia import Array, Inertia, finite
from ..joints import JointSpec
from ..robot_model import RobotModel

FRAMES = ("world", "body")
BASE = "base"
UNIT = 1e-9    # tolerance of the length of a screw's axis


def from_screws(screws: ArrayLike, home: ArrayLike, inertias: Sequence[Inertia], *, frame: str = "world",
                parents: Sequence[int] | None = None, names: Sequence[str] | None = None, name: str = "screws",
                gravity: ArrayLike = (0.0, 0.0, -9.81)) -> RobotModel:
    """A chain, or tree, of n joints of one coordinate: `T_i(q) = exp(Ŝ_1 q_1) … exp(Ŝ_i q_i) H_i` (P), along parents.

    screws (n, 6): (ω, v) with |ω| = 1, or ω = 0 and |v| = 1: revolute, helical (pitch ω·v, m/rad) or prismatic; q_i in
    rad or m. frame "world": S_i in world axes at q = 0; "body": X_i in axes of body i, as in M eq. 3, 4. home
    (n, 4, 4): poses H_i of the bodies' frames in the world at q = 0 (M's B_1 B_2 … B_i). inertias: one per body, in its
    frame.
    parents: index of body i's parent, −1 for the world; by default i − 1. names: of the bodies, by default "body1", …;
    joints are "joint1", … or "NAME_joint". A body's frame may be off its joint's axis: massless links "…_axis" are on
    the axes. Raises `RbdError`, naming the joint, unless all screws are unit screws, and for wrong shapes.

        >>> rod = rbd.Inertia(1.0, [0.25, 0.0, 0.0], np.diag([0.0, 0.02, 0.02]))
        >>> model = rbd.from_screws([[0, 1, 0, 0, 0, 0]], [np.eye(4)], [rod])
        >>> rbd.gravity_effort(model, [0.0]).round(3)
        array([-2.452])
    """
    H = se3.checked_pose("home", home)
    n = len(H) if H.ndim == 3 else -1
    if n < 0:
        raise RbdError(f"home: expected shape (n, 4, 4), got {H.shape}")
    S = finite(screws, (n, 6), "screws")    # type: ignore[arg-type]
    bodies = [f"body{i + 1}" for i in range(n)] if names is None else list(names)
    above = list(range(-1, n - 1)) if parents is None else list(parents)
    for label, values in (("inertias", inertias), ("names", bodies), ("parents", above)):
        if len(values) != n:
            raise RbdError(f"{label}: expected {n}, one per screw, got {len(values)}")
    if len({BASE, *bodies}) <= n:
        raise RbdError(f"names: expected {n} different ones, none of them '{BASE}', got {shown(bodies)}")
    if frame not in FRAMES:
        raise unknown_name("frame of the screws", frame, FRAMES)
    links = {BASE: Inertia.zero()}
    joints: list[JointSpec] = []
    for i, body in enumerate(bodies):
        joint = f"joint{i + 1}" if names is None else f"{body}_joint"
        if isinstance(above[i], bool) or not isinstance(above[i], (int, np.integer)) or not -1 <= above[i] < i:
            raise RbdError(f"parents: that of body {i} is {shown(above[i])}, expected −1 … {i - 1}")
        if not isinstance(inertias[i], Inertia):
            raise RbdError(f"inertias: expected Inertia, that of body {i} is {type(inertias[i]).__name__}")
        kind, axis, centre, pitch = _parts(S[i] if frame == "body" else se3.Ad_inv(H[i]) @ S[i], joint)
        step = H[i] if above[i] < 0 else se3.inverse(H[above[i]]) @ H[i]
        parent = BASE if above[i] < 0 else bodies[above[i]]
        moved = parent, f"{body}_axis" if centre.any() else body
        joints.append(JointSpec(joint, kind, *moved, step[:3, :3], step[:3, :3] @ centre + step[:3, 3],
                                axis=(axis[0], axis[1], axis[2]), pitch=pitch))
        if centre.any():
            links[moved[1]] = Inertia.zero()
            joints.append(JointSpec(f"{body}_mount", "fixed", moved[1], body, position=-centre))
        links[body] = inertias[i]
    down = finite(gravity, (3,), "gravity")
    return RobotModel.from_description(Description(name, links, tuple(joints), gravity=down))


def _parts(X: Array, joint: str) -> tuple[str, Array, Array, float]:
    """Type, axis, a point of the axis, and pitch of a unit screw in body axes (M eq. 4, 5)."""
    w, v = X[:3], X[3:]
    turning, sliding = float(np.linalg.norm(w)), float(np.linalg.norm(v))
    if turning == 0.0 and abs(sliding - 1.0) <= UNIT:
        return "prismatic", v / sliding, np.zeros(3), 0.0
    if not abs(turning - 1.0) <= UNIT:
        raise RbdError(f"screws: that of joint '{joint}' has |ω| = {turning:.6g}, |v| = {sliding:.6g}; expected "
                       "|ω| = 1, or ω = 0 and |v| = 1")
    pitch = float(w @ v) / turning**2
    centre = np.cross(w, v) / turning**2
    size = 1.0 + sliding
    centre = np.where(np.abs(centre) < 1e-14 * size, 0.0, centre)
    return ("revolute", w, centre, 0.0) if abs(pitch) < 1e-14 * size else ("helical", w, centre, pitch)
