"""Unwrapping of continuous joints' angles."""
from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...model.joints import is_driven, is_length
from ...model.robot_model import RobotModel

Array = NDArray[np.float64]
NEAR = 1.0    # rad: steps this close to a whole turn are wraps
TURN = 2.0 * np.pi


def unwound(model: RobotModel, q: Array, pieces: list[slice]) -> tuple[Array, tuple[str, ...]]:
    """Positions (N, nv) unwrapped within pieces, and the names of the affected joints."""
    out = q.copy()
    names = []
    for joint in model.joints:
        if not is_driven(joint.type) or is_length(joint.type):
            continue
        column = out[:, joint.idx_v]
        jumped = False
        for piece in pieces:
            steps = np.diff(column[piece])
            turns = np.where(np.abs(np.abs(steps) - TURN) < NEAR, np.sign(steps), 0.0)
            column[piece.start + 1:piece.stop] -= TURN * np.cumsum(turns)
            jumped = jumped or bool(turns.any())
        if jumped:
            names.append(joint.name)
    return out, tuple(names)
