"""A feedback as the fields of linear_feedback_controller_msgs/Control, for loco-3d's linear-feedback-controller.

That controller applies `u = feedforward + feedback_gain (x_0 ⊖ x)`, with the difference of Pinocchio: its gain is that
of `StateFeedback` with the opposite sign, and a floating base has its linear coordinates first.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import RbdError, shown
from ..model.coordinates import Joint
from ..model.inertia import Array
from ..model.robot_model import RobotModel

SWAP = [3, 4, 5, 0, 1, 2]    # of a twist: linear first


def control_fields(model: RobotModel, inputs: Sequence[str], feedback: Any, joints: Sequence[str] | None
                   ) -> dict[str, Any]:
    """Fields of Control as nested dictionaries; see `TrackingGains.control_message`."""
    base, others = _split(model)
    order = _ordered(others, joints)
    nv, positions = model.nv, [joint.idx_q for joint in order]
    velocities = [joint.idx_v for joint in order]
    tangent = ([base.idx_v + i for i in SWAP] if base is not None else []) + velocities
    names = model.velocity_names
    if base is not None and any(name in inputs for name in names[base.idx_v:base.idx_v + 6]):
        raise RbdError(f"the message has efforts of joints alone: joint '{base.name}' of the base is driven, expected "
                       "`actuated` without it")
    gain, effort = np.zeros((nv, 2 * nv)), np.zeros(nv)
    driven = [names.index(name) for name in inputs]
    gain[driven], effort[driven] = feedback.gain, feedback.effort
    columns = [*tangent, *(nv + i for i in tangent)]
    state: dict[str, Any] = {"joint_state": {
        "name": [joint.name for joint in order], "position": feedback.q[positions].tolist(),
        "velocity": feedback.v[velocities].tolist(), "effort": effort[velocities].tolist()}}
    if base is not None:
        pose, twist = feedback.q[base.idx_q:base.idx_q + 7], feedback.v[base.idx_v:base.idx_v + 6]
        state["base_pose"] = {"position": _named("xyz", pose[:3]), "orientation": _named("xyzw", pose[3:])}
        state["base_twist"] = {"linear": _named("xyz", twist[3:]), "angular": _named("xyz", twist[:3])}
    return {"feedback_gain": _matrix(-gain[np.ix_(velocities, columns)]),
            "feedforward": _matrix(effort[velocities][:, None]), "initial_state": state}


def _split(model: RobotModel) -> tuple[Joint | None, list[Joint]]:
    """The floating base, None if fixed, and the other joints; raises `RbdError` for joints that the message lacks."""
    base, others = None, list(model.joints)
    if others and others[0].nv == 6:
        base = others.pop(0)
    for joint in others:
        if joint.nq != 1 or joint.type == "continuous":
            raise RbdError(f"joint '{joint.name}' is {joint.type}: the message takes joints with one position, "
                           "and Pinocchio has more for this one, expected revolute or prismatic ones, and a base")
    return base, others


def _ordered(others: Sequence[Joint], joints: Sequence[str] | None) -> list[Joint]:
    if joints is None:
        return list(others)
    named = {joint.name: joint for joint in others}
    if isinstance(joints, str) or sorted(joints) != sorted(named):
        raise RbdError(f"joints: expected each of {', '.join(named)} once, in the receiver's order, got "
                       f"{shown(joints)}")
    return [named[name] for name in joints]


def _named(names: str, values: Array) -> dict[str, float]:
    return dict(zip(names, values.tolist(), strict=True))


def _matrix(matrix: Array) -> dict[str, Any]:
    """Fields of std_msgs/Float64MultiArray: rows, then columns."""
    rows, columns = matrix.shape
    return {"layout": {"dim": [{"label": "rows", "size": rows, "stride": matrix.size},
                               {"label": "cols", "size": columns, "stride": columns}], "data_offset": 0},
            "data": matrix.reshape(-1).tolist()}
