"""The echo of `echo_node` on the loop of the torque nodes: own wait set, messages as bytes. Run by `roundtrip`."""
from __future__ import annotations

import contextlib
from collections.abc import Mapping

import rclpy
from rclpy.executors import ExternalShutdownException
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rclpy.serialization import deserialize_message
from sensor_msgs.msg import JointState

from rbd_interfaces.msg import JointEffort
from rbd_ros.nodes.loop.control_loop import DirectLoop
from rbd_ros.nodes.loop.scheduling import SCHEDULING_TABLE, Scheduling
from rbd_ros.nodes.outputs.message_bytes import MessageBytes
from rbd_ros.runtime.inputs.joint_state_bytes import JointStateReader
from rbd_ros.runtime.parameters import validate

JOINTS = [f"joint_{i}" for i in range(1, 8)]


def main() -> None:
    """Answer every joint state with an effort of the same size and stamp."""
    rclpy.init()
    node = rclpy.create_node("direct_echo")
    publisher = node.create_publisher(JointEffort, "~/effort", QoSProfile(depth=1))
    reader = JointStateReader(lambda data: deserialize_message(data, JointState))
    answer = MessageBytes(JointEffort(name=JOINTS), {"effort": len(JOINTS)}, True)
    effort = answer.numbers["effort"]
    loop = DirectLoop(node, Scheduling(validate(SCHEDULING_TABLE, {})))

    def on_state(data: bytes, info: Mapping[str, int]) -> None:
        state = reader.read(data)
        effort[:] = state.position
        answer.send(publisher, state.sec, state.nanosec)

    node.create_subscription(JointState, "joint_states", on_state,
                             QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT),
                             callback_group=loop.group, raw=True)
    loop.start()
    with contextlib.suppress(KeyboardInterrupt, ExternalShutdownException):
        rclpy.spin(node)
    loop.stop()


if __name__ == "__main__":
    main()
