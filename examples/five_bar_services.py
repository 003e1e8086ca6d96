"""The five-bar with two, three and one motor, through services of `dynamics_server` (docs/tutorial_five_bar.md).

    ros2 run rbd_ros dynamics_server --ros-args -p constraints_file:=five_bar \\
        -p robot_description_file:=rbd_ros/core/model/data/five_bar.urdf
    python3 examples/five_bar_services.py
"""
import sys
import textwrap

import numpy as np
import rclpy
from rclpy.qos import QoSProfile

import rbd_ros as rbd
from rbd_interfaces.msg import RobotState
from rbd_interfaces.srv import ConstrainedDynamics

Request = ConstrainedDynamics.Request
PATIENCE = 300.0    # s: where the server still compiles its kernels, the first time ever, it answers afterwards
SERVICE = "dynamics_server/constrained_dynamics"
TWO = ["left_shoulder", "right_shoulder"]
THREE = [*TWO, "left_elbow"]


def main() -> int:
    # A state that closes the loop. A real robot publishes one: with an empty RobotState the server takes that.
    model = rbd.sample("five_bar")
    loop = rbd.sample_constraints("five_bar", model)
    q, v = rbd.project(model, loop, [0.1, 0.3, 0.0, -0.1, 0.2], [1.0, 0.0, 0.0, 0.5, 0.0])
    state = RobotState(name=list(model.joint_names), position=q.tolist(), velocity=v.tolist())

    rclpy.init()
    node = rclpy.create_node("five_bar_client")
    client = node.create_client(ConstrainedDynamics, SERVICE, qos_profile=QoSProfile(depth=1000))

    def ask(**fields):
        future = client.call_async(Request(state=state, **fields))
        rclpy.spin_until_future_complete(node, future, timeout_sec=PATIENCE)
        if not future.done():
            raise SystemExit(f"no answer from {SERVICE} within {PATIENCE:g} s")
        return future.result()

    try:
        if not client.wait_for_service(timeout_sec=60.0):
            raise SystemExit(f"there is no service {SERVICE}: start node dynamics_server")

        # two motors: the shoulders are told what to do, the passive joints and the efforts follow
        two = ask(mode=Request.HYBRID, name=TWO, prescribed=[True, True], acceleration=[2.0, -1.0])
        if not two.success:
            raise SystemExit(two.message)
        show("two motors", two)

        # three motors: the same motion with less internal force, or with smaller efforts
        for title, minimize in (("three, least forces", Request.MULTIPLIERS), ("three, least efforts", Request.EFFORT)):
            show(title, ask(mode=Request.INVERSE, name=two.name, acceleration=two.acceleration, actuated=THREE,
                            minimize=minimize))

        # one motor: it cannot make that motion, but the one that it makes can be asked for
        refused = ask(mode=Request.INVERSE, name=two.name, acceleration=two.acceleration, actuated=TWO[:1])
        print(textwrap.fill(f"one motor, that motion: {refused.message.split('. ')[0]}", 110, subsequent_indent="  "))
        one = ask(mode=Request.HYBRID, name=TWO[:1], prescribed=[True], acceleration=[2.0])
        show("one motor", one)
        print("one motor, acceleration", numbers(one.acceleration))
    finally:
        node.destroy_node()
        rclpy.try_shutdown()
    return 0


def numbers(values) -> str:
    return " ".join(f"{value:8.4f}" for value in np.asarray(values) + 0.0)


def show(title, answer) -> None:
    if not answer.success:
        raise SystemExit(answer.message)
    print(f"{title:20} effort {numbers(answer.effort)}  multipliers {numbers(answer.multiplier)}  rank {answer.rank}")


if __name__ == "__main__":
    sys.exit(main())
