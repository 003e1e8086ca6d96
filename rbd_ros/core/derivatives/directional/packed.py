"""Derivative of the packed model along a direction, for complex-step kernels."""
from __future__ import annotations

from typing import Any

import numpy as np

from ...dynamics.bodies.link_tree import INDEX, MASS, ROW, link_tree
from ...errors import RbdError
from ...lie import se3, so3
from ...model import block
from ...model.inertia import Array
from ...model.joint_kinds import HELICAL, PRISMATIC, REVOLUTE
from ...model.robot_model import RobotModel
from .parameters import D_ARMATURE, D_GRAVITY, D_INERTIA, D_OFFSET, D_RATIO, HEAD, PLACEMENT, RECORD, SCREW
from .records import _pose, _pseudo_inertia, _ten


def packed_change(model: RobotModel, record: Array, shifts: Array | None, start: Array, out: Array) -> None:
    """∂ of `model._block`, from a record and the twists of links of `Tangents`; in start, what gains a pitch is
    helical.
    """
    n = len(model._node_rows)
    rows, changes = (x[block.HEADER:block.HEADER + block.NODE * n].reshape(-1, block.NODE) for x in (start, out))
    out[block.GRAVITY:block.GRAVITY + 3] = record[D_GRAVITY:D_GRAVITY + 3]
    for row, change, x in zip(rows, changes, record[HEAD:HEAD + RECORD * n].reshape(n, RECORD), strict=True):
        R = row[block.ROTATION:block.POSITION].reshape(3, 3)
        w, u = x[PLACEMENT:PLACEMENT + 3], x[PLACEMENT + 3:SCREW]
        change[block.ROTATION:block.POSITION] = (R @ so3.hat(w)).reshape(-1)
        change[block.POSITION:block.MASS] = R @ u
        change[block.MASS:block.ARMATURE] = x[D_INERTIA:D_ARMATURE]
        change[block.ARMATURE:block.OWNER] = x[D_ARMATURE:]
        turn, slide = x[SCREW + 2], x[SCREW + 5]
        scale = turn
        if row[block.TYPE] == PRISMATIC:
            if x[SCREW:SCREW + 3].any():
                raise RbdError("screws: a sliding joint that begins to turn is known to the efforts and accelerations "
                               "of trees only, not to constraints and bodies")
            scale = slide
        elif row[block.TYPE] in (REVOLUTE, HELICAL):
            change[block.PITCH] = slide - row[block.PITCH] * turn
            if change[block.PITCH]:
                row[block.TYPE] = HELICAL
        change[block.RATIO] = x[D_RATIO] + scale * row[block.RATIO]
        change[block.OFFSET] = x[D_OFFSET] + scale * row[block.OFFSET]
    curves = record[HEAD + RECORD * n:]
    at = block.HEADER + block.NODE * n
    while len(curves):    # of each cam the number of its coefficients, then these
        size = int(start[at])
        out[at + 1:at + 1 + size] = curves[1:1 + size]
        curves, at = curves[1 + size:], at + 1 + size
    if shifts is None:
        return
    links, moved = (x[int(start[block.LINK_START]):].reshape(-1, block.LINK) for x in (start, out))
    for link, change, x in zip(links, moved, shifts, strict=True):
        R, p = link[block.LINK_ROTATION:block.LINK_POSITION].reshape(3, 3), link[block.LINK_POSITION:block.LINK]
        change[block.LINK_ROTATION:block.LINK_POSITION] = (so3.hat(x[:3]) @ R).reshape(-1)
        change[block.LINK_POSITION:block.LINK] = np.cross(x[:3], p) + x[3:]


def links_change(model: RobotModel, tangent: Any, shifts: Array | None) -> Array:
    """∂ of `link_tree`."""
    tree = link_tree(model)
    out = np.zeros_like(tree)
    own = np.asarray(model.inertial_parameters).reshape(-1, 10)
    links = model._block[int(model._block[block.LINK_START]):].reshape(-1, block.LINK)
    for row, change in zip(tree.reshape(-1, ROW), out.reshape(-1, ROW), strict=True):
        at = int(row[INDEX])
        name = model.body_names[at]
        T = _pose(links[at][block.LINK_ROTATION:block.LINK_POSITION], links[at][block.LINK_POSITION:block.LINK])
        if name in tangent.inertias:
            change[MASS:] += _ten(T @ _pseudo_inertia(np.asarray(tangent.inertias[name])) @ T.T)
        if shifts is not None:
            moved = se3.hat(shifts[at]) @ T @ _pseudo_inertia(own[at]) @ T.T
            change[MASS:] += _ten(moved + moved.T)
    return out
