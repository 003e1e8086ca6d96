"""Move the arm controlled by node `feedforward` to a pose within three seconds, and print where it came to rest.

    python3 examples/move_arm.py joint_1=0.5 joint_4=-0.7

Unnamed joints keep their positions. Behind node `flatness`: add `--ros-args -r
feedforward/joint_trajectory:=flatness/joint_trajectory`. README.md shows how to start the node and a simulated arm.
"""
import sys

import rclpy
from diagnostic_msgs.msg import DiagnosticArray
from rclpy.utilities import remove_ros_args
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from rbd_interfaces.msg import JointEffort

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
    efforts: list[JointEffort] = []
    node.create_subscription(JointState, "joint_states", states.append, rclpy.qos.qos_profile_sensor_data)
    publisher = node.create_publisher(JointTrajectory, TOPIC, 1)
    answers = publisher.topic_name.rpartition("/")[0] + "/effort"    # of the same node, remapped or not
    node.create_subscription(JointEffort, answers, efforts.append, rclpy.qos.qos_profile_sensor_data)
    modes: list[str] = []     # of the same node, once a second
    server = answers.removesuffix("/effort")

    def read(message: DiagnosticArray) -> None:
        modes.extend(pair.value for status in message.status if status.name.strip("/") == server.strip("/")
                     for pair in status.values if pair.key == "mode")

    node.create_subscription(DiagnosticArray, "/diagnostics", read, 10)

    def check_stop():
        if modes and modes[-1] == "stopped":
            raise SystemExit(f"stopped: call ~/reset (ros2 service call {server}/reset std_srvs/srv/Trigger), once it "
                             "is safe to move")

    def wait_until(condition, patience, otherwise):
        deadline = node.get_clock().now().nanoseconds + patience * 1e9
        while not condition():
            rclpy.spin_once(node, timeout_sec=0.1)
            if node.get_clock().now().nanoseconds > deadline:
                raise SystemExit(otherwise)

    try:
        wait_until(lambda: states, 10.0, "no joint states: start the driver of the arm, or node simulator")
        wait_until(publisher.get_subscription_count, 10.0, f"nobody listens on {TOPIC}: start node feedforward")
        # The robot's joints are those that get torque; joint states may have others, such as a gripper's.
        wait_until(lambda: efforts and positions(states, efforts[0].name), 10.0,
                   f"no torque on {answers}: the log of node feedforward says why")
        wait_until(lambda: modes, 10.0, f"no /diagnostics of {server}")
        check_stop()
        joints, begin = efforts[0].name, states[-1]
        unknown = [name for name in goals if name not in joints]
        if unknown:
            raise SystemExit(f"no joint {', '.join(unknown)}; the arm has {', '.join(joints)}")

        # A trajectory names all joints. Stamp 0 means now; the node interpolates from where the arm is.
        before = positions(states, joints)
        target = [goals.get(name, position) for name, position in zip(joints, before, strict=True)]
        point = JointTrajectoryPoint(positions=target)
        point.time_from_start.sec = DURATION
        publisher.publish(JointTrajectory(joint_names=joints, points=[point]))

        end = seconds(begin) + DURATION + REST    # by the stamps of the states: right in simulated time, too
        late = end + DURATION    # a busy node begins late
        wait_until(lambda: seconds(states[-1]) > (late if moves(states[-1]) else end), 60.0,
                   "the joint states stopped on the way")
        check_stop()
        reached = positions(states, joints)
        error = [abs(now - goal) for now, goal in zip(reached, target, strict=True)]
        moved = [now - first for now, first in zip(reached, before, strict=True)]
        for name, *numbers in zip(joints, reached, moved, error, strict=True):
            position, way, off = (round(x, 4) + 0.0 for x in numbers)    # no -0.0000
            print(f"{name:24} {position:9.4f}  moved by {way:9.4f}  off by {off:.4f}")
        if max(map(abs, moved)) < CLOSE < max(error):
            raise SystemExit("it did not move: the log of node feedforward says if it refused, that of the robot if it "
                             "stopped itself")
        if max(error) > CLOSE:
            raise SystemExit("not there: the log of node feedforward says if it refused; without gains no pose is held")
        if moves(states[-1]):
            raise SystemExit("there, but still moving: gains too high or too low, or nothing holds the arm")
    finally:
        node.destroy_node()
        rclpy.try_shutdown()
    return 0


def positions(states: list[JointState], joints: list[str]) -> list[float]:
    """Positions of these joints in the newest state that has them; empty without such a state."""
    for state in reversed(states):
        place = dict(zip(state.name, state.position, strict=False))
        if place.keys() >= set(joints):
            return [place[name] for name in joints]
    return []


def moves(state: JointState) -> bool:
    """Whether a joint moves, by the velocities of the state."""
    return any(abs(speed) > CLOSE for speed in state.velocity)


def seconds(state: JointState) -> float:
    return state.header.stamp.sec + 1e-9 * state.header.stamp.nanosec


if __name__ == "__main__":
    sys.exit(main())
