"""The packed array of a model's links, in addition to the block of its nodes.

A node is the rigid body of all links connected by fixed joints; loads of fixed joints and inertias of single links need
separate links. Record per link, parents before children: index in `body_names`, row of the parent (−1: the root), mass,
first moment and inertia about the origin of the link's node, in node axes.
"""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from ...compiled.kernel import kernel
from ...lie.spatial import add, cross, rotate, rotate_back, sub
from ...model.assembly import depth_first
from ...model.block import LINK, LINK_POSITION, LINK_ROTATION, LINK_START, LINKS, integer, matrix, vector
from ...model.inertia import Array
from ...model.robot_model import RobotModel
from ...model.state import node_wrenches

INDEX, ABOVE, MASS, MOMENT, INERTIA, ROW = 0, 1, 2, 3, 6, 12
_TREES: WeakKeyDictionary[RobotModel, Array] = WeakKeyDictionary()


def link_tree(model: RobotModel) -> Array:
    """The cached array of a model."""
    tree = _TREES.get(model)
    if tree is None:
        tree = _TREES[model] = _packed(model)
    return tree


def _packed(model: RobotModel) -> Array:
    root, joints = depth_first(model.description)
    above = {joint.child: joint.parent for joint in joints}
    order = [root, *(joint.child for joint in joints)]
    start, count = int(model._block[LINK_START]), len(order)
    records = model._block[start:start + LINK * count].reshape(count, LINK)
    rows = np.zeros((count, ROW))
    for row, name in zip(rows, order, strict=True):
        record = records[model.body_index(name)]
        body = model.description.links[name].transformed(
            record[LINK_ROTATION:LINK_ROTATION + 9].reshape(3, 3), record[LINK_POSITION:LINK_POSITION + 3])
        row[INDEX] = model.body_index(name)
        row[ABOVE] = order.index(above[name]) if name in above else -1
        row[MASS] = body.mass
        row[MOMENT:MOMENT + 3] = body.moment
        row[INERTIA:ROW] = body.about_origin[np.triu_indices(3)]
    return rows.reshape(-1)


def link_wrenches(model: RobotModel, wrenches: Any, batch: int | None) -> Array:
    """External wrenches per link, in link frames, with arguments and checks of `node_wrenches`: flat, N·nb·6, or empty.
    """
    node_wrenches(model, wrenches, batch)
    if wrenches is None:
        return np.empty(0)
    full = np.zeros((1 if batch is None else batch, len(model.body_names), 6))
    if isinstance(wrenches, Mapping):
        for name, value in wrenches.items():
            full[:, model.body_index(name)] += np.asarray(value, dtype=np.float64)
    else:
        full += np.asarray(wrenches, dtype=np.float64)
    return full.reshape(-1)


@kernel
def link_record(B, i):
    """Offset of link i's record."""
    return integer(B, LINK_START) + LINK * i


@kernel
def link_count(B):
    """Number of links."""
    return integer(B, LINKS)


@kernel
def to_node(B, o, N, F):
    """A wrench from the frame of the link with record o to the frame of its node."""
    R = matrix(B, o + LINK_ROTATION)
    f = rotate(R, F)
    return add(rotate(R, N), cross(vector(B, o + LINK_POSITION), f)), f


@kernel
def to_link(B, o, N, F):
    """The inverse of `to_node`."""
    R = matrix(B, o + LINK_ROTATION)
    return rotate_back(R, sub(N, cross(vector(B, o + LINK_POSITION), F))), rotate_back(R, F)
