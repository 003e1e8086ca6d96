"""Mounting of the robot, from topic `/tf_static` (tf2_msgs/TFMessage, latched): parameter `mounting.frame`.

Only static transforms are used: a moving base needs odometry. The root link's rotation is read at configuration, which
waits for it; no torque is computed before.
"""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from rclpy.qos import DurabilityPolicy, QoSProfile

from ...core.errors import RbdError
from ...core.model.robot_model import RobotModel
from ...runtime.robot import turned
from ...runtime.world.frames import StaticFrames, Transform
from ..base.optional import interface_type

TOPIC = "/tf_static"    # absolute, as in tf2
WAITING = "waiting for the transform of the mounting"
LONGEST = 2**22    # bytes of a message
LATCHED = QoSProfile(depth=100, durability=DurabilityPolicy.TRANSIENT_LOCAL)


class Mounting:
    """Rotation of the root link in the world frame of parameter `mounting.frame`."""

    def __init__(self, node: Any, world: str) -> None:
        self._node, self.world = node, world
        self._frames = StaticFrames()
        self._applied: Any = None    # root link and rotation of the configuration
        self.received = False
        self.problem = ""    # reason why no transform can be received
        try:
            kind = interface_type("parameter 'mounting.frame' reads", "tf2_msgs", "msg", "TFMessage")
        except RbdError as error:
            self.problem = str(error)
        else:
            node.listen(kind, TOPIC, self.take, LATCHED, LONGEST)

    def take(self, message: Any) -> None:
        """Take transforms, and start the node if it waits for them."""
        self.received = True
        for wrong in self._frames.accept(
                Transform(each.header.frame_id, each.child_frame_id, (r.x, r.y, r.z, r.w))
                for each in message.transforms for r in (each.transform.rotation,)):
            self._node.seldom.warning("tf_static", wrong)
        if self._applied is None:
            self._node.mounting_changed()
            return
        root, before = self._applied
        try:
            same = np.allclose(self._frames.rotation(self.world, root), before, rtol=0.0, atol=1e-9)
        except RbdError:
            same = False
        if not same:
            self._node.get_logger().warning(f"the mounting of '{root}' in '{self.world}' has changed on {TOPIC}: it "
                                            "takes effect at the next configuration")

    def applied(self, model: RobotModel, values: Mapping[str, Any]) -> RobotModel:
        """The model with gravity for this mounting; raises `RbdError` if the mounting is unknown."""
        self._applied = None
        if self.problem:
            raise RbdError(self.problem)
        if any(values["mounting.rpy"]):
            raise RbdError("parameters 'mounting.rpy' and 'mounting.frame' are both set: expected one of them")
        if model.description.root == "floating":
            raise RbdError("parameter 'mounting.frame' is for a root link that does not move; this one is floating")
        root = model.body_names[0]
        R = self._frames.rotation(self.world, root)
        self._applied = root, R
        gravity = turned(values["gravity"], R)
        self._node.get_logger().info(f"'{root}' is mounted in '{self.world}' so that gravity is "
                                     f"{np.round(gravity, 4).tolist()} m/s² in its axes")
        return model.with_(gravity=gravity)

    def forget(self) -> None:
        """Forget the applied rotation at the end of a configuration."""
        self._applied = None


def make_mounting(node: Any) -> Mounting | None:
    """`Mounting` for parameter `mounting.frame`; None if empty."""
    world = node.get_parameter("mounting.frame").value
    return Mounting(node, world) if isinstance(world, str) and world else None
