"""A bare rclpy node, as lower bound of the cost of joint state in, effort out. Run as a process by `roundtrip`."""
from __future__ import annotations

import contextlib

import rclpy
from rclpy.executors import ExternalShutdownException
from rclpy.qos import QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import JointState

from rbd_interfaces.msg import JointEffort


def main() -> None:
    """Answer every joint state with an effort of the same size and stamp."""
    rclpy.init()
    node = rclpy.create_node("echo")
    publisher = node.create_publisher(JointEffort, "~/effort", QoSProfile(depth=1))
    answer = JointEffort()

    def on_state(message: JointState) -> None:
        answer.header.stamp = message.header.stamp
        answer.name = message.name
        answer.effort = message.position
        publisher.publish(answer)

    node.create_subscription(JointState, "joint_states", on_state,
                             QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT))
    with contextlib.suppress(KeyboardInterrupt, ExternalShutdownException):
        rclpy.spin(node)


if __name__ == "__main__":
    main()
