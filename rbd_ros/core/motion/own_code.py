"""Specialized code (`specialize`) for searches: loaded from disk, or made once it pays.

For an arm it takes 0.3 to 1 s to make, as long as some twenty searches, each of which it shortens by a sixth: so it is
made once searches of this robot have taken longer in this process, within the time limit of the next one, and kept.
"""
from __future__ import annotations

import time
from collections import OrderedDict
from threading import Lock

import numpy as np

from ..compiled.kernel import COMPILED
from ..derivatives.inverse import inverse_dynamics_derivatives
from ..dynamics.inverse import inverse_dynamics
from ..model.robot_model import RobotModel
from ..specialize.specialized import SpecializedModel, specialize

FUNCTIONS = ("inverse_dynamics", "inverse_dynamics_derivatives")
WORTH = 1.0      # s of searches
ROOM = 5.0       # s, at least, until the deadline
LARGEST = 10     # coordinates: code of larger robots takes longer to make
ROBOTS = 8       # of which code is at hand
KNOWN = 1000     # of which the time of searches is remembered
_at_hand: OrderedDict[int, tuple[RobotModel, RobotModel]] = OrderedDict()    # by id: models, and what to search with
_spent: dict[bytes, float] = {}    # s of searches without own code, by what that would depend on
_lock = Lock()


def own_code(model: RobotModel, deadline: float) -> RobotModel:
    """The model specialized for batches of `FUNCTIONS`, loaded or made; else unchanged. deadline: of the search
    (`time.perf_counter`).
    """
    if not COMPILED or isinstance(model, SpecializedModel):
        return model
    with _lock:    # who waits here would otherwise make the same
        due = (model.nv <= LARGEST and deadline - time.perf_counter() > ROOM
               and _spent.get(model._block.tobytes(), 0.0) > WORTH)
        found = _at_hand.get(id(model))
        if found is not None and (found[1] is not model or not due):
            return found[1]
        made: RobotModel
        made = own = specialize(model)
        if due or all(own._specialized.is_kept(name) for name in FUNCTIONS):
            states = np.array([model.neutral()] * 2), np.zeros((2, model.nv)), np.zeros((2, model.nv))
            inverse_dynamics(made, *states)
            inverse_dynamics_derivatives(made, *states)
        else:
            made = model
        _at_hand[id(model)] = model, made
        if len(_at_hand) > ROBOTS:
            _at_hand.popitem(last=False)
        return made


def remember(model: RobotModel, seconds: float) -> None:
    """Remember that a search for this robot without code of its own took so long."""
    key = model._block.tobytes()
    with _lock:
        if key in _spent or len(_spent) < KNOWN:
            _spent[key] = _spent.get(key, 0.0) + seconds
