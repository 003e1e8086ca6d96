"""Handover of the arm to another controller by the ros2_control controller manager, before a torque node ends.

The last published torque stays in the command interface: forward_command_controller writes it for ever, and after its
deactivation the hardware still applies it. With a model error of 1 % the arm then drifts. Therefore another controller
must take over first, and the node must answer joint states until then.
"""
from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from rclpy.duration import Duration

from ...core.errors import RbdError
from ...runtime.parameters import Parameter, Table
from ..base.optional import interface_type
from ..base.rclpy_inside import take_answer

AGAINST = "the last torque stays downstream: hold the arm by its brakes or another controller"

HANDOVER_TABLE: Table = (
    Parameter("handover.controller_manager", "string", "", "Controller manager to switch controllers before the torque "
              "ends, at deactivation, SIGINT and SIGTERM: <this>/switch_controller. Empty: none.",
              read_only=True),
    Parameter("handover.activate", "strings", (), "Controllers to activate, which then hold the arm.", read_only=True),
    Parameter("handover.deactivate", "strings", (), "Controllers to deactivate, which pass on this node's torque.",
              read_only=True),
    Parameter("handover.timeout", "number", 1.0, "Longest wait for the switch, s; after that the torque ends in any "
              "case.", lower=0.01, upper=3.0, read_only=True),
)


class Handover:
    """One request to controller_manager_msgs/srv/SwitchController, all or nothing (STRICT), in the manager's loop."""

    def __init__(self, node: Any, manager: str, activate: list[str], deactivate: list[str], timeout: float) -> None:
        service = interface_type("parameter 'handover.controller_manager' is for", "controller_manager_msgs", "srv",
                                 "SwitchController")
        self._node, self._timeout = node, timeout
        self._request = service.Request(activate_controllers=activate, deactivate_controllers=deactivate,
                                        strictness=service.Request.STRICT, activate_asap=True)
        # so that a manager with a stopped loop reports it before this node's timeout, and does not switch later
        self._request.timeout = Duration(seconds=0.8 * timeout).to_msg()
        self._wanted = "; ".join(f"{verb} {', '.join(names)}" for verb, names in (
            ("activate", activate), ("deactivate", deactivate)) if names)
        self._client = node.create_client(service, f"{manager}/switch_controller")
        if not activate:
            node.get_logger().warning("'handover.activate' is empty: after a controller with effort is deactivated, "
                                      "most hardware keeps applying the last torque")

    def run(self, go_on: Callable[[], None]) -> None:
        """Request the switch and log its result; calls `go_on`, which must be quick, meanwhile. Needs no executor."""
        name, begin = self._client.srv_name, time.monotonic()
        self._node.get_logger().info(f"asking {name} to {self._wanted}; the torque continues meanwhile")
        pending, problem = None, ""
        while time.monotonic() - begin < self._timeout:
            go_on()
            if pending is None:
                if self._client.service_is_ready():
                    pending = self._client.call_async(self._request)
                continue
            answer = take_answer(self._client, pending)
            if answer is not None:
                if answer.ok:
                    self._node.get_logger().info(f"the controllers were switched after {time.monotonic() - begin:.2f} "
                                                 "s: ramping out")
                    return
                problem = f"it refused: {answer.message}"
                break
        else:
            problem = (f"nobody offers {name}" if pending is None else "it did not answer") + f" for {self._timeout} s"
        if pending is not None:
            self._client.remove_pending_request(pending)
        self._node.get_logger().error(f"{name} should {self._wanted}, but {problem}. Ramping out all the same; "
                                      + AGAINST)

    def destroy(self) -> None:
        self._node.destroy_client(self._client)


def make_handover(node: Any, values: Mapping[str, Any]) -> Handover | None:
    """The handover of parameters `handover.*`; None without a controller manager."""
    manager, activate, deactivate = (values[f"handover.{name}"] for name in (
        "controller_manager", "activate", "deactivate"))
    if not manager:
        if activate or deactivate:
            raise RbdError("'handover.activate' and 'handover.deactivate' need 'handover.controller_manager'")
        return None
    if not activate and not deactivate:
        raise RbdError("'handover.controller_manager' is set, but neither 'handover.activate' nor "
                       "'handover.deactivate' names a controller")
    return Handover(node, manager, list(activate), list(deactivate), values["handover.timeout"])
