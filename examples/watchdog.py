"""Switch to a controller that holds the arm as soon as node `feedforward` is silent: killed, frozen or inactive.

    python3 examples/watchdog.py effort_controller holding_controller

forward_command_controller repeats the last torque of a killed node for ever, and the arm falls. An active node is never
silent (docs/safety.md): on silence, this program requests /controller_manager to deactivate the first controller and to
activate the second one, in one request, and ends. Give it real-time priority, and start it after the node. It cannot
help if the machine freezes: that requires the robot's brakes. For another node or manager: `--ros-args -r
feedforward/effort:=flatness/effort -r controller_manager/switch_controller:=arm/controller_manager/switch_controller`.
"""
import sys
import time

import rclpy
from controller_manager_msgs.srv import SwitchController
from rclpy.utilities import remove_ros_args

from rbd_interfaces.msg import JointEffort

SILENCE, TURN = 0.05, 0.005    # s


def main() -> int:
    try:
        torque, holding = remove_ros_args(sys.argv)[1:]
    except ValueError:
        raise SystemExit(__doc__) from None
    rclpy.init()
    node = rclpy.create_node("watchdog")
    heard: list[JointEffort] = []
    node.create_subscription(JointEffort, "feedforward/effort", heard.append, rclpy.qos.qos_profile_sensor_data)
    manager = node.create_client(SwitchController, "controller_manager/switch_controller")
    request = SwitchController.Request(activate_controllers=[holding], deactivate_controllers=[torque],
                                       strictness=SwitchController.Request.STRICT, activate_asap=True)
    try:
        while not (heard and manager.service_is_ready()):
            rclpy.spin_once(node, timeout_sec=0.1)
        print(f"watching: {holding} will hold the arm", flush=True)
        silent = 0.0
        while silent < SILENCE:
            heard.clear()
            begin = time.monotonic()
            rclpy.spin_once(node, timeout_sec=TURN)
            # at most one turn: time in which this process stood still is not counted
            silent = 0.0 if heard else silent + min(time.monotonic() - begin, TURN)
        answer = manager.call_async(request)
        rclpy.spin_until_future_complete(node, answer, timeout_sec=5.0)
        if not answer.done():
            raise SystemExit("no torque, and the controller manager does not answer")
        if not answer.result().ok:    # as after a regular end, with parameters handover.* of the node
            raise SystemExit(f"no torque; {torque} was not switched to {holding}: {answer.result().message}")
        print(f"no torque: {holding} holds the arm", flush=True)
    except KeyboardInterrupt:
        pass
    finally:
        node.destroy_node()
        rclpy.try_shutdown()
    return 0


if __name__ == "__main__":
    sys.exit(main())
