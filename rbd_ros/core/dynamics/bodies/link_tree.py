"""The links of a model as one array of numbers, beside the block of its nodes.

A node carries all links that are rigidly connected, as one body. What fixed joints carry, and what a link is by itself,
needs the links one by one: per link, every parent before its children, its index in `body_names`, the row of its parent
(−1: the root), mass, first moment and inertia about the origin of its node, in the node's axes.
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
    """The array of a model; made once."""
    found = _TREES.get(model)
    if found is None:
        found = _TREES[model] = _made(model)
    return found


def _made(model: RobotModel) -> Array:
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
    """External wrenches as `node_wrenches` takes and checks them, but per link, in link frames: flat, N·nb·6, or empty
    where there are none.
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
    """Where the record of link i begins."""
    return integer(B, LINK_START) + LINK * i


@kernel
def link_count(B):
    """How many links the model has."""
    return integer(B, LINKS)


@kernel
def to_node(B, o, N, F):
    """A wrench in the frame of the link with record o, in that of its node."""
    R = matrix(B, o + LINK_ROTATION)
    f = rotate(R, F)
    return add(rotate(R, N), cross(vector(B, o + LINK_POSITION), f)), f


@kernel
def to_link(B, o, N, F):
    """The inverse of `to_node`."""
    R = matrix(B, o + LINK_ROTATION)
    return rotate_back(R, sub(N, cross(vector(B, o + LINK_POSITION), F))), rotate_back(R, F)
