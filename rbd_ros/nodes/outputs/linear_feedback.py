"""Output for loco-3d's linear-feedback-controller: linear_feedback_controller_msgs/Control, imported only if selected.

The controller applies `u = feedforward + feedback_gain (x_0 − x)` in each of its cycles until the next message comes:
between two answers the feedback is its own. It takes the order of joints for Pinocchio's.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from rclpy.node import Node
from std_msgs.msg import MultiArrayDimension

from ...core.errors import RbdError
from ...core.model.robot_model import RobotModel
from ...runtime.control.adapter_topics import ADAPTER_TOPICS
from ...runtime.control.torque_settings import TorqueSettings
from ...runtime.parameters import Parameter, Table
from ...runtime.safety import Command
from .output import Array, Indices, Output, Stamp, joint_indices, message_type

(TOPIC,) = ADAPTER_TOPICS["linear_feedback"]
TABLE: Table = (
    TOPIC.parameter,
    Parameter("linear_feedback.joints", "strings", (), "All joints in the order of that controller, which is that of "
              "Pinocchio. Empty: `joints`.", read_only=True),
    Parameter("linear_feedback.hold", "number", 0.02, "Time for which that controller holds a message, s: the period "
              "of joint states here. Its reference is that of the middle of this time.", lower=0.0, upper=1.0,
              read_only=True),
)


class LinearFeedbackOutput(Output):
    """linear_feedback_controller_msgs/Control, stamped with the time of publication."""

    def __init__(self, node: Any, kind: Any, topic: str, joints: Sequence[str], indices: Indices, hold: float) -> None:
        from ...runtime.control.local_feedback import local_feedback    # not in nodes without this output
        n = len(indices)
        message = kind()
        message.initial_state.joint_state.name = list(joints)
        for field, columns in ((message.feedback_gain, 2 * n), (message.feedforward, 1)):
            field.layout.dim = [MultiArrayDimension(label="rows", size=n, stride=n * columns),
                                MultiArrayDimension(label="cols", size=columns, stride=columns)]
        super().__init__(node, message, topic, indices, {
            "feedback_gain.data": 2 * n * n, "feedforward.data": n,
            **{f"initial_state.joint_state.{field}": n for field in ("position", "velocity", "effort")}}, stamped=True)
        self._owner, self._hold, self._local = node, hold, local_feedback
        node.controller.local_loop = True
        self._columns = np.concatenate([indices, n + indices])

    def publish(self, stamp: Stamp, q: Array, v: Array, command: Command) -> None:
        at = self._local(self._owner.controller, q, v, command.effort, self._hold)
        numbers, order = self.numbers, self._indices
        numbers["feedback_gain.data"][:] = -at.gain[np.ix_(order, self._columns)].reshape(-1)
        numbers["feedforward.data"][:] = at.effort[order]
        for field, values in (("position", at.q), ("velocity", at.v), ("effort", at.effort)):
            numbers[f"initial_state.joint_state.{field}"][:] = values[order]
        self.send(self._node.get_clock().now().seconds_nanoseconds())


def make(node: Node, model: RobotModel, settings: TorqueSettings, values: Mapping[str, Any]) -> LinearFeedbackOutput:
    """The output of parameters `linear_feedback.*`."""
    from ...runtime.control.feedforward import FeedforwardSettings    # not in nodes without this output
    joints = values["linear_feedback.joints"] or settings.joints
    indices = joint_indices("linear_feedback.joints", joints, model)
    if len(indices) != model.nv or any(joint.nq != 1 for joint in model.joints):
        raise RbdError(f"parameter 'linear_feedback.joints': that controller takes the state of all joints, of one "
                       f"coordinate each, expected {', '.join(model.joint_names)}, got {', '.join(joints)}")
    if not isinstance(settings, FeedforwardSettings) or settings.floating is not None:
        raise RbdError("adapter 'linear_feedback' has the feedback of node feedforward, without odometry: other nodes "
                       "and bases that move are not supported")
    return LinearFeedbackOutput(node, message_type("linear_feedback", "linear_feedback_controller_msgs", "Control"),
                                TOPIC.name(values), joints, indices, values["linear_feedback.hold"])
