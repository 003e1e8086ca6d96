"""Publishers of node `lockstep`: commands for a simulation, and the forwarded efforts."""
from __future__ import annotations

import math
from array import array
from typing import Any

from rclpy.qos import QoSProfile
from std_msgs.msg import Float64, Float64MultiArray

from rbd_interfaces.msg import JointEffort

from ...core.errors import RbdError
from ...runtime.cosimulation.lockstep import LockstepSettings

QOS = QoSProfile(depth=10)


class SimulationCommands:
    """`<controller>/commands`, the cmd_force topics of a bridge, and `~/effort`."""

    def __init__(self, node: Any, settings: LockstepSettings) -> None:
        self._node, self._settings = node, settings
        self._passed = node.create_publisher(JointEffort, "~/effort", QOS)
        self._commands = node.create_publisher(Float64MultiArray, f"{settings.controller}/commands",
                                               QOS) if settings.controller else None
        self._forces = [node.create_publisher(Float64, f"/model/{settings.bridge_model}/joint/{name}/cmd_force", QOS)
                        for name in (settings.joints if settings.bridge_model else ())]

    def destroy(self) -> None:
        for each in (self._passed, self._commands, *self._forces):
            if each is not None:
                self._node.destroy_publisher(each)

    @property
    def received(self) -> bool:
        """Whether all required receivers have subscribed to the commands."""
        return all(map(self._received, [*self._forces, *([self._commands] if self._commands else [])]))

    @property
    def controller_listens(self) -> bool:
        """Whether the controller has subscribed to its commands."""
        return self._commands is not None and self._received(self._commands)

    def _received(self, output: Any) -> bool:
        """Whether all `receivers` have subscribed to `output`; other subscribers are ignored."""
        if not output.get_subscription_count():
            return False
        if not self._settings.receivers:
            return True
        subscribers = {info.node_name for info in self._node.get_subscriptions_info_by_topic(output.topic_name)}
        return subscribers.issuperset(self._settings.receivers)

    def efforts(self, message: JointEffort) -> dict[str, float]:
        """The effort of each joint; raises `RbdError` for missing joints or non-finite efforts."""
        names, effort = message.name, message.effort
        sent = dict(zip(names, effort, strict=False))
        joints = self._settings.joints or names
        if not len(sent) == len(joints) == len(effort) or any(name not in sent for name in joints):
            raise RbdError(f"there are {len(effort)} efforts of {', '.join(names)}, but parameter 'joints' says "
                           f"{', '.join(joints)}")
        if not all(map(math.isfinite, effort)):
            raise RbdError("efforts that are not finite are not passed on")
        return sent

    def publish(self, message: JointEffort, sent: dict[str, float]) -> None:
        """Forward a message with these efforts."""
        joints = self._settings.joints or message.name
        if self._commands is not None:
            self._commands.publish(Float64MultiArray(data=array("d", [sent[name] for name in joints])))
        for name, publisher in zip(joints, self._forces, strict=False):
            publisher.publish(Float64(data=sent[name]))
        self._passed.publish(message)
