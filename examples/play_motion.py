"""Play a motion of `rbd excite` or `rbd plan` on an arm that is at its first point.

    python3 examples/play_motion.py excitation.yaml /my_controller/joint_trajectory

`ros2 topic pub "$(cat excitation.yaml)"` cannot: a shell passes no argument longer than 128 KiB. Another topic of joint
states: `--ros-args -r joint_states:=arm/joint_states`.
"""
import sys

import rclpy
import yaml
from builtin_interfaces.msg import Duration
from rclpy.utilities import remove_ros_args
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

CLOSE = 0.05       # rad or m between the arm and the first point
PATIENCE = 10.0    # s until there are joint states, and a controller that listens


def main() -> int:
    arguments = remove_ros_args(sys.argv)[1:]
    if len(arguments) != 2:
        raise SystemExit(__doc__)
    message = trajectory(arguments[0])
    rclpy.init()
    node = rclpy.create_node("play_motion")
    states: list[JointState] = []
    node.create_subscription(JointState, "joint_states", states.append, rclpy.qos.qos_profile_sensor_data)
    publisher = node.create_publisher(JointTrajectory, arguments[1], 1)
    try:
        end = node.get_clock().now().nanoseconds + PATIENCE * 1e9
        while not (states and publisher.get_subscription_count()):
            rclpy.spin_once(node, timeout_sec=0.1)
            if node.get_clock().now().nanoseconds > end:
                raise SystemExit(f"nobody listens on {publisher.topic_name}" if states else "no joint states")
        place = dict(zip(states[-1].name, states[-1].position, strict=False))
        for name, first in zip(message.joint_names, message.points[0].positions, strict=True):
            if name not in place:
                raise SystemExit(f"no joint state of {name}")
            if abs(place[name] - first) > CLOSE:
                raise SystemExit(f"{name} is at {place[name]:.3f}, the motion begins at {first:.3f}: move there first")
        publisher.publish(message)
        last = message.points[-1].time_from_start
        print(f"sent: {len(message.points)} points, {last.sec + 1e-9 * last.nanosec:.0f} s")
        publisher.wait_for_all_acked(rclpy.duration.Duration(seconds=PATIENCE))
    finally:
        node.destroy_node()
        rclpy.try_shutdown()
    return 0


def trajectory(path: str) -> JointTrajectory:
    with open(path, encoding="utf-8") as file:
        content = yaml.load(file, getattr(yaml, "CSafeLoader", yaml.SafeLoader))    # the same loader, 10 times as fast
    return JointTrajectory(joint_names=content["joint_names"], points=[
        JointTrajectoryPoint(time_from_start=Duration(**point.pop("time_from_start")), **{
            name: [float(x) for x in values] for name, values in point.items()}) for point in content["points"]])


if __name__ == "__main__":
    sys.exit(main())
