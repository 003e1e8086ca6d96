"""Lets a controller hold the arm as soon as node `feedforward` is silent, or the controller of its torque inactive.

    python3 examples/watchdog.py effort_controller holding_controller

forward_command_controller repeats the last torque of a node that was killed for ever, and the arm falls. An active node
is never silent (docs/safety.md), so this asks /controller_manager to deactivate the one and to activate the other, in
one request. Where the first one was active and neither is any more, as the manager says on ~/activity, it asks for the
second: engage the brakes, and end this, before you deactivate both. Give it real-time priority, and start it when the
node is there; it ends when it has asked. It cannot help where the machine freezes: that is for the robot's brakes. For
another node or manager: `--ros-args -r feedforward/effort:=flatness/effort` and `-r`, both for
`controller_manager/switch_controller` and for `controller_manager/activity`, to `arm/controller_manager/…`. Where the
first one is a joint_trajectory_controller, which holds the arm of a silent node: `-r feedforward/effort:=none`.
"""
import sys
import time

import rclpy
from controller_manager_msgs.srv import SwitchController
from lifecycle_msgs.msg import State
from rclpy.qos import DurabilityPolicy, QoSProfile
from rclpy.utilities import remove_ros_args

from rbd_interfaces.msg import JointEffort

try:
    from controller_manager_msgs.msg import ControllerManagerActivity
except ImportError:    # an older ros2_control: silence alone is watched
    ControllerManagerActivity = None

SILENCE, TURN, PATIENCE = 0.05, 0.005, 2.0    # s


class Holders:
    """States of both controllers. left: whether the torque controller was active and neither of them is now."""

    def __init__(self, torque: str, holding: str) -> None:
        self.torque, self.names = torque, {torque, holding}
        self.heard = self.known = self.left = False

    def hear(self, message: "ControllerManagerActivity") -> None:
        active = {each.name for each in message.controllers if each.state.id == State.PRIMARY_STATE_ACTIVE}
        self.heard, self.known = True, self.known or self.torque in active
        self.left = self.known and not active & self.names


def main() -> int:
    try:
        torque, holding = remove_ros_args(sys.argv)[1:]
    except ValueError:
        raise SystemExit(__doc__) from None
    rclpy.init()
    node = rclpy.create_node("watchdog")
    heard: list[JointEffort] = []
    node.create_subscription(JointEffort, "feedforward/effort", heard.append, rclpy.qos.qos_profile_sensor_data)
    holders = Holders(torque, holding)
    if ControllerManagerActivity is not None:
        node.create_subscription(ControllerManagerActivity, "controller_manager/activity", holders.hear,
                                 QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL))
    manager = node.create_client(SwitchController, "controller_manager/switch_controller")
    request = SwitchController.Request(activate_controllers=[holding], deactivate_controllers=[torque],
                                       strictness=SwitchController.Request.STRICT, activate_asap=True)
    try:
        while not manager.service_is_ready():
            rclpy.spin_once(node, timeout_sec=0.1)
        deadline = time.monotonic() + PATIENCE
        while not (heard and (holders.heard or ControllerManagerActivity is None)) and time.monotonic() < deadline:
            rclpy.spin_once(node, timeout_sec=0.1)
        print(f"watching: {holding} will hold the arm", flush=True)
        if not heard:
            print("no torque yet: until some comes, only the controllers are watched", flush=True)
        if not holders.heard:
            print("the manager says nothing of its controllers: only a silent node is noticed", flush=True)
        speaks = False
        silent = left = 0.0
        while max(silent, left) < SILENCE:
            speaks = speaks or bool(heard)
            heard.clear()
            begin = time.monotonic()
            rclpy.spin_once(node, timeout_sec=TURN)
            # at most a turn: time in which this process stood still does not count
            turn = min(time.monotonic() - begin, TURN)
            silent = silent + turn if speaks and not heard else 0.0
            left = left + turn if holders.left else 0.0    # for so long: a switch may pass through this
        reason = f"{torque} is not active" if holders.left else "no torque"
        if holders.left:    # a strict request to deactivate it would be refused
            request.deactivate_controllers = []
        answer = manager.call_async(request)
        rclpy.spin_until_future_complete(node, answer, timeout_sec=5.0)
        if not answer.done():
            raise SystemExit(f"{reason}, and the controller manager does not answer")
        if not answer.result().ok:    # as after a regular end, with parameters handover.* of the node
            raise SystemExit(f"{reason}; {torque} was not switched to {holding}: {answer.result().message}")
        print(f"{reason}: {holding} holds the arm", flush=True)
    except KeyboardInterrupt:
        pass
    finally:
        node.destroy_node()
        rclpy.try_shutdown()
    return 0


if __name__ == "__main__":
    sys.exit(main())
