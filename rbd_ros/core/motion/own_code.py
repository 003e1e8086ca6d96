"""Specialized code (`specialize`) for searches: loaded from disk, or compiled once worthwhile.

Compilation takes 0.3 to 1 s for an arm, as long as some twenty searches, and shortens each search by a sixth. The code
is therefore compiled after searches of a robot have taken `WORTH` in this process, within the time limit of the next
one, and cached.
"""
from __future__ import annotations

from collections import OrderedDict
from threading import Lock

import numpy as np

from ..compiled.computing_time import computing_time
from ..compiled.kernel import COMPILED
from ..derivatives.inverse import inverse_dynamics_derivatives
from ..dynamics.inverse import inverse_dynamics
from ..model.robot_model import RobotModel
from ..specialize.specialized import SpecializedModel, specialize

FUNCTIONS = ("inverse_dynamics", "inverse_dynamics_derivatives")
WORTH = 1.0      # s of searches before compilation
ROOM = 5.0       # s, smallest time until the deadline
LARGEST = 10     # coordinates: larger robots take longer to compile
ROBOTS = 8       # number of robots with cached code
KNOWN = 1000     # number of robots with recorded search times
_at_hand: OrderedDict[int, tuple[RobotModel, RobotModel]] = OrderedDict()    # by id: model, and model for searches
_spent: dict[bytes, float] = {}    # s of searches without specialized code, by key of the code
_lock = Lock()


def own_code(model: RobotModel, deadline: float) -> RobotModel:
    """The model specialized for batches of `FUNCTIONS`, loaded or compiled; unchanged if not worthwhile. deadline: of
    the search (`computing_time`).
    """
    if not COMPILED or isinstance(model, SpecializedModel):
        return model
    with _lock:    # avoids duplicate compilation
        due = (model.nv <= LARGEST and deadline - computing_time() > ROOM
               and _spent.get(model._block.tobytes(), 0.0) > WORTH)
        cached = _at_hand.get(id(model))
        if cached is not None and (cached[1] is not model or not due):
            return cached[1]
        specialized: RobotModel
        specialized = own = specialize(model)
        if due or all(own._specialized.is_kept(name) for name in FUNCTIONS):
            states = np.array([model.neutral()] * 2), np.zeros((2, model.nv)), np.zeros((2, model.nv))
            inverse_dynamics(specialized, *states)
            inverse_dynamics_derivatives(specialized, *states)
        else:
            specialized = model
        _at_hand[id(model)] = model, specialized
        if len(_at_hand) > ROBOTS:
            _at_hand.popitem(last=False)
        return specialized


def remember(model: RobotModel, seconds: float) -> None:
    """Record the time (s) of a search for this robot without specialized code."""
    key = model._block.tobytes()
    with _lock:
        if key in _spent or len(_spent) < KNOWN:
            _spent[key] = _spent.get(key, 0.0) + seconds
