"""A controller manager of ros2_control for tests: its service, and the command interface that controllers write to.

controller_manager_msgs cannot be installed everywhere, and a message package without its C part cannot be sent. So the
request travels as JSON in diagnostic_msgs/AddDiagnostics, which has a text there and `success`, `message` back. The
node under test imports `PACKAGE`, whose class looks like SwitchController to it and like that service to rclpy.
"""
from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from diagnostic_msgs.srv import AddDiagnostics
from harness import Peer, rclpy
from rclpy.qos import DurabilityPolicy, QoSProfile
from std_msgs.msg import Float64MultiArray

SERVICE, ACTIVITY = "/controller_manager/switch_controller", "/controller_manager/activity"
CONTROLLERS = {"effort_controller": "active", "holding_controller": "inactive"}
PACKAGE = '''
import json
from builtin_interfaces.msg import Duration
from diagnostic_msgs.srv import AddDiagnostics

AddDiagnostics.Response.ok = property(lambda self: self.success)


class Request(AddDiagnostics.Request):
    """Fields of controller_manager_msgs/srv/SwitchController of ros2_control 4 to 6."""

    BEST_EFFORT, STRICT, AUTO, FORCE_AUTO = 1, 2, 3, 4

    def __init__(self, activate_controllers, deactivate_controllers, strictness, activate_asap):
        super().__init__()
        self.fields = {"activate": list(activate_controllers), "deactivate": list(deactivate_controllers),
                       "strictness": int(strictness), "asap": bool(activate_asap)}
        self.timeout = Duration()

    @property
    def load_namespace(self):
        timeout = self.timeout.sec + 1e-9 * self.timeout.nanosec
        return json.dumps({**self.fields, "timeout": timeout})

    @load_namespace.setter
    def load_namespace(self, value):
        pass

    @property
    def deactivate_controllers(self):
        return self.fields["deactivate"]

    @deactivate_controllers.setter
    def deactivate_controllers(self, names):
        self.fields["deactivate"] = list(names)


Request.__name__, Request.__module__ = AddDiagnostics.Request.__name__, AddDiagnostics.Request.__module__


class SwitchController(AddDiagnostics):
    Request = Request
'''
MESSAGES = '''
from types import SimpleNamespace
from diagnostic_msgs.msg import DiagnosticArray as ControllerManagerActivity

# a state's id travels as text; controllers: NamedLifecycleState[] of ros2_control 4 to 6
ControllerManagerActivity.controllers = property(lambda self: [
    SimpleNamespace(name=each.name, state=SimpleNamespace(id=int(each.message))) for each in self.status])
'''
STATES = {"inactive": 2, "active": 3}    # of lifecycle_msgs/State


def install(folder: Path, activity: bool = True) -> Path:
    """Make the package in this folder, which is to be on the node's PYTHONPATH. activity: not in older versions."""
    package = folder / "controller_manager_msgs"
    for name, text in (("srv", PACKAGE), *((("msg", MESSAGES),) if activity else ())):
        (package / name).mkdir(parents=True)
        (package / name / "__init__.py").write_text(text)
    (package / "__init__.py").touch()
    return folder


class Manager:
    """Behaves as controller_manager 4 to 6 do with one effort interface per joint.

    effort_controller is a forward_command_controller: while it is active each message is the command, and after it the
    last one stays. holding_controller claims the same interface: switching to it while the other one is active fails,
    unless that is deactivated in the same request. `mode`: answer, refuse, or silent.
    """

    def __init__(self, peer: Peer, mode: str = "answer") -> None:
        self._peer, self.mode = peer, mode
        self.states = dict(CONTROLLERS)
        self.requests: list[dict[str, Any]] = []
        self.command: Any = None            # in the interface, nan: never written
        self.written: list[Any] = []        # by effort_controller while active
        self.late: list[Any] = []           # what came for it afterwards
        # a node that nobody spins never answers
        self._node = rclpy.create_node("controller_manager", context=peer.context) if mode == "silent" else peer.node
        self._service = self._node.create_service(AddDiagnostics, SERVICE, self._on_call)
        self._topic = peer.node.create_subscription(Float64MultiArray, "effort_controller/commands", self._on_command,
                                                    50)
        self._activity = peer.node.create_publisher(DiagnosticArray, ACTIVITY, QoSProfile(
            depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL))
        self._tell()

    def _tell(self) -> None:
        """What the real one publishes with each change of a state."""
        self._activity.publish(DiagnosticArray(status=[
            DiagnosticStatus(name=name, message=str(STATES[state])) for name, state in self.states.items()]))

    def become(self, **states: str) -> None:
        """What somebody else has asked the manager for."""
        self.states |= states
        self._tell()

    def destroy(self) -> None:
        self._node.destroy_service(self._service)
        self._peer.node.destroy_subscription(self._topic)
        self._peer.node.destroy_publisher(self._activity)
        if self._node is not self._peer.node:
            self._node.destroy_node()

    def _on_command(self, message: Float64MultiArray) -> None:
        active = self.states["effort_controller"] == "active"
        (self.written if active else self.late).append(np.array(message.data))
        if active:
            self.command = np.array(message.data)

    def _on_call(self, request: Any, response: Any) -> Any:
        wanted = json.loads(request.load_namespace)
        self.requests.append(wanted)
        response.message = self._switch(wanted)
        response.success = not response.message
        return response

    def _switch(self, wanted: dict[str, Any]) -> str:
        """Why not, as the real one says it with strictness STRICT; "" if the controllers were switched."""
        if self.mode == "refuse":
            return "Could not switch controllers since prepare command mode switch was rejected."
        for verb, before in (("activate", "inactive"), ("deactivate", "active")):
            for name in wanted[verb]:
                if name not in self.states:
                    return (f"Could not {verb} controller with name '{name}' because no controller with this name "
                            "exists")
                if self.states[name] != before:
                    return f"Controller with name '{name}' is not {before}"
        after = self.states | dict.fromkeys(wanted["activate"], "active") | dict.fromkeys(wanted["deactivate"],
                                                                                           "inactive")
        if list(after.values()).count("active") > 1:
            return "command interfaces are claimed by another active controller"
        self.states = after
        if after["holding_controller"] == "active":
            self.command = None    # it writes its own from now on
        self._tell()
        return ""
