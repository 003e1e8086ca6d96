"""Whether two controllers are equal, for tests of what must leave no trace."""
from __future__ import annotations

import types
from collections import deque

import numpy as np

import rbd_ros as rbd
from rbd_ros.runtime.inputs.joint_map import JointMap
from rbd_ros.runtime.inputs.rejections import Rejections

# said to users; suspects until the next valid state, which forgets them; the last order of motors; what is made of the
# points of a trajectory when it is needed
IGNORED = {"refused", "foreign", "_suspect", "_suspects", "_names", "_indices", "_segments"}

LEFT_OUT = (Rejections, JointMap, rbd.RobotModel, types.FunctionType, types.MethodType)


def same(one, other, path="", above=()):
    """The first difference of two objects, "" without any; counters and cached orders of names do not count.

    above: ids of pairs of objects that hold these, to which they may refer.
    """
    if type(one) is not type(other):
        return path
    if one is other or (id(one), id(other)) in above or isinstance(one, LEFT_OUT):
        return ""
    if isinstance(one, np.ndarray):
        return "" if np.array_equal(one, other, equal_nan=one.dtype.kind == "f") else path
    if isinstance(one, dict):
        if one.keys() != other.keys():
            return f"{path} keys"
        return next(filter(None, (same(one[k], other[k], f"{path}[{k}]", above) for k in one if k not in IGNORED)), "")
    if isinstance(one, (list, tuple, deque)):
        if len(one) != len(other):
            return f"{path} length"
        pairs = enumerate(zip(one, other, strict=True))
        return next(filter(None, (same(a, b, f"{path}[{i}]", above) for i, (a, b) in pairs)), "")
    if hasattr(one, "__dict__"):
        return same(vars(one), vars(other), f"{path}.{type(one).__name__}", (*above, (id(one), id(other))))
    return "" if one == other or (one != one and other != other) else path
