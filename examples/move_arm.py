"""Lets the arm behind node `feedforward` move to a pose within three seconds, and says where it came to rest.

    python3 examples/move_arm.py joint_1=0.5 joint_4=-0.7

Joints that are not named stay where they are. Behind node `flatness`: add `--ros-args -r
feedforward/joint_trajectory:=flatness/joint_trajectory`. README.md shows how to start the node and a simulated arm.
"""
import sys

import rclpy
from rclpy.utilities import remove_ros_args
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

TOPIC = "feedforward/joint_trajectory"
DURATION, REST = 3, 1     # s
CLOSE = 0.01              # rad or m


def main() -> int:
    try:
        goals = {name: float(value) for name, value in (word.split("=") for word in remove_ros_args(sys.argv)[1:])}
    except ValueError:
        goals = {}
    if not goals:
        raise SystemExit(__doc__)

    rclpy.init()
    node = rclpy.create_node("move_arm")
    states: list[JointState] = []
    node.create_subscription(JointState, "joint_states", states.append, rclpy.qos.qos_profile_sensor_data)
    publisher = node.create_publisher(JointTrajectory, TOPIC, 1)

    def wait_until(condition, patience, otherwise):
        deadline = node.get_clock().now().nanoseconds + patience * 1e9
        while not condition():
            rclpy.spin_once(node, timeout_sec=0.1)
            if node.get_clock().now().nanoseconds > deadline:
                raise SystemExit(otherwise)

    try:
        wait_until(lambda: states, 10.0, "no joint states: start the driver of the arm, or node simulator")
        wait_until(publisher.get_subscription_count, 10.0, f"nobody listens on {TOPIC}: start node feedforward")
        begin = states[-1]
        unknown = [name for name in goals if name not in begin.name]
        if unknown:
            raise SystemExit(f"no joint {', '.join(unknown)}; the arm has {', '.join(begin.name)}")

        # A trajectory names all joints. Stamp 0 means now; the node interpolates from where the arm is.
        wanted = [goals.get(name, position) for name, position in zip(begin.name, begin.position, strict=True)]
        point = JointTrajectoryPoint(positions=wanted)
        point.time_from_start.sec = DURATION
        publisher.publish(JointTrajectory(joint_names=begin.name, points=[point]))

        end = seconds(begin) + DURATION + REST    # by the stamps of the states: right in simulated time, too
        wait_until(lambda: seconds(states[-1]) > end, 60.0, "the joint states stopped on the way")
        error = [abs(now - goal) for now, goal in zip(states[-1].position, wanted, strict=True)]
        for name, position, off in zip(states[-1].name, states[-1].position, error, strict=True):
            print(f"{name:24} {position:9.4f}  off by {off:.4f}")
        if max(error) > CLOSE:
            raise SystemExit("not there: the log of node feedforward says if it refused; without gains no pose is held")
    finally:
        node.destroy_node()
        rclpy.try_shutdown()
    return 0


def seconds(state: JointState) -> float:
    return state.header.stamp.sec + 1e-9 * state.header.stamp.nanosec


if __name__ == "__main__":
    sys.exit(main())
