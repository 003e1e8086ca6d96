"""Output for KUKA LBR (iiwa, med) through lbr_fri_ros2_stack: torque overlay by lbr_torque_command_controller.

The robot takes torque only while its session is COMMANDING_ACTIVE. The controller stores earlier commands and sends
them when the session becomes active, so nothing is published in any other state, and the effort ramps in anew each time
the session becomes active. `joint_position` is the measured one: the robot's impedance acts on the difference to it.
Without a fresh state of the robot, the position of the joint state is used and publishing continues, because the
controller would hold the last torque for ever.
"""
from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from rclpy.qos import QoSProfile, ReliabilityPolicy

from ...core.errors import RbdError
from ...core.model.robot_model import RobotModel
from ...runtime.control.adapter_topics import ADAPTER_TOPICS
from ...runtime.control.torque_settings import TorqueSettings
from ...runtime.parameters import Parameter, Table
from ...runtime.safety import Command
from .output import Array, Indices, Output, Source, Stamp, joint_indices, message_type

JOINTS = 7
COMMANDING_ACTIVE = 4    # of KUKA::FRI::ESessionState

COMMAND, STATE = ADAPTER_TOPICS["lbr"]
TABLE: Table = (
    COMMAND.parameter, STATE.parameter,
    Parameter("lbr.joints", "strings", (), "The joints A1 to A7 in this order. Empty: `joints`.", read_only=True),
)


class LbrOutput(Output):
    """lbr_fri_idl/LBRTorqueCommand, published while lbr_fri_idl/LBRState reports an active session."""

    def __init__(self, node: Any, source: Source, command: Any, state: Any, topics: tuple[str, str],
                 indices: Indices) -> None:
        super().__init__(node, command(), topics[0], indices, {"joint_position": JOINTS, "torque": JOINTS})
        self._source = source
        self._active, self._received = False, -math.inf
        self._measured = np.zeros(JOINTS)
        node.subscribe(state, topics[1], self._on_state, QoSProfile(
            depth=1, reliability=ReliabilityPolicy.BEST_EFFORT))

    def _on_state(self, message: Any) -> None:
        active = message.session_state == COMMANDING_ACTIVE
        if active and not self._active:
            self._source.fade_in()
        if active != self._active:
            self._node.get_logger().info(f"LBR session_state {message.session_state}: torque is "
                                         f"{'sent, ramping in' if active else 'withheld until it is 4'}")
        measured = np.asarray(message.measured_joint_position)
        if np.isfinite(measured).all():    # NaN before the robot's first message
            self._measured[:], self._received = measured, time.monotonic()
        self._active = active

    def publish(self, stamp: Stamp, q: Array, v: Array, command: Command) -> None:
        if not self._active:
            return
        fresh = time.monotonic() - self._received < self._source.state_timeout
        self.numbers["joint_position"][:] = self._measured if fresh else q[self._indices]
        self.numbers["torque"][:] = command.effort[self._indices]
        self.send()


def make(node: Any, model: RobotModel, settings: TorqueSettings, values: Mapping[str, Any]) -> LbrOutput:
    """The output of parameters `lbr.*`."""
    joints: Sequence[str] = values["lbr.joints"] or settings.joints
    if len(joints) != JOINTS:
        raise RbdError(f"adapter 'lbr' is for {JOINTS} joints, A1 to A7, but parameter 'lbr.joints' (or 'joints') has "
                       f"{len(joints)}: {', '.join(joints)}")
    indices = joint_indices("lbr.joints", joints, model)
    command, state = (message_type("lbr", "lbr_fri_idl", name) for name in ("LBRTorqueCommand", "LBRState"))
    return LbrOutput(node, node, command, state, (COMMAND.name(values), STATE.name(values)), indices)
